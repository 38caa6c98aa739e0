// tensor_message.c — Tensors in RPC messages: small ones are copied, large ones go out from and
// stay in the memory they are in.
#include "cluster/task/tensor_message.h"

#include "cluster/task/fields.h"
#include "tensor/shape.h"
#include "tensor/tensor_proto.h"
#include "tensor/variant_proto.h"
#include "wire/wire.h"

enum {
  LARGE_SIZE = 4096,  // bytes from which a reference costs less than a copy
  TENSOR_DTYPE = 1,   // fields of TensorProto
  TENSOR_SHAPE = 2,
  TENSOR_CONTENT = 4,
  SHAPE_DIM = 2,
  DIM_SIZE = 1,
};

static bool is_large(const weir_tensor_t* tensor) {
  return weir_dtype_is_plain(weir_tensor_type(tensor)) &&
         weir_tensor_byte_size(tensor) >= LARGE_SIZE;
}

static void release_tensor(void* arg) { weir_tensor_release(arg); }

size_t weir_message_size(const weir_message_builder_t* builder) {
  return builder->head.size + weir_rpc_message_size(builder->message);
}

static void fail(weir_message_builder_t* builder, weir_status_t* take_status) {
  if (builder->status) weir_status_destroy(take_status);
  else builder->status = take_status;
}

// Everything of a TensorProto but the elements, which must follow.
static void put_tensor_head(weir_strbuf_t* out, const weir_tensor_t* tensor) {
  weir_wire_put_int(out, TENSOR_DTYPE, weir_tensor_type(tensor));
  size_t shape = weir_wire_begin(out, TENSOR_SHAPE);
  for (int i = 0; i < tensor->rank; ++i) {
    size_t dim = weir_wire_begin(out, SHAPE_DIM);
    weir_wire_put_int(out, DIM_SIZE, tensor->dims[i]);
    weir_wire_end(out, dim);
  }
  weir_wire_end(out, shape);
  weir_wire_put_tag(out, TENSOR_CONTENT, WEIR_WIRE_BYTES);
  weir_wire_put_varint(out, weir_tensor_byte_size(tensor));
}

// |prefix| holds the fields that stand before the tensor in the enclosing message (may be empty).
static void put_large(weir_message_builder_t* builder, uint32_t field, const weir_strbuf_t* prefix,
                      uint32_t tensor_field, weir_tensor_t* tensor) {
  weir_strbuf_t head = {0}, middle = {0};
  size_t size = weir_tensor_byte_size(tensor);
  put_tensor_head(&head, tensor);
  if (prefix) {  // a message around the tensor: its own head comes first
    weir_strbuf_append(&middle, prefix->data, prefix->size);
    weir_wire_put_tag(&middle, tensor_field, WEIR_WIRE_BYTES);
    weir_wire_put_varint(&middle, head.size + size);
  }
  weir_wire_put_tag(&builder->head, field, WEIR_WIRE_BYTES);
  weir_wire_put_varint(&builder->head, middle.size + head.size + size);
  weir_strbuf_append(&builder->head, middle.data, middle.size);
  weir_strbuf_append(&builder->head, head.data, head.size);
  if (head.failed || middle.failed) builder->head.failed = true;
  weir_strbuf_free(&head);
  weir_strbuf_free(&middle);
  if (!builder->message) builder->message = weir_rpc_message_create();
  if (!builder->message) fail(builder, weir_out_of_memory());  // what comes later is not all of it
  weir_rpc_message_append_strbuf(builder->message, &builder->head);
  weir_rpc_message_append_ref(builder->message, tensor->data, size, release_tensor,
                              weir_tensor_retain(tensor));
}

void weir_message_put_tensor(weir_message_builder_t* builder, uint32_t field,
                             weir_tensor_t* tensor) {
  if (is_large(tensor)) {
    put_large(builder, field, NULL, 0, tensor);
    return;
  }
  size_t at = weir_wire_begin(&builder->head, field);
  fail(builder, tensor->dtype == WEIR_DTYPE_VARIANT ? weir_variant_write(tensor, &builder->head)
                                                    : weir_tensor_write(tensor, &builder->head));
  weir_wire_end(&builder->head, at);
}

void weir_message_put_named_tensor(weir_message_builder_t* builder, uint32_t field,
                                   weir_view_t name, weir_tensor_t* tensor) {
  weir_strbuf_t prefix = {0};
  weir_wire_put_bytes(&prefix, NAMED_TENSOR_NAME, name.data, name.size);
  if (is_large(tensor)) {
    put_large(builder, field, &prefix, NAMED_TENSOR_TENSOR, tensor);
  } else {
    size_t at = weir_wire_begin(&builder->head, field);
    weir_strbuf_append(&builder->head, prefix.data, prefix.size);
    weir_message_put_tensor(builder, NAMED_TENSOR_TENSOR, tensor);
    weir_wire_end(&builder->head, at);
  }
  if (prefix.failed) builder->head.failed = true;
  weir_strbuf_free(&prefix);
}

weir_status_t* weir_message_finish(weir_message_builder_t* builder,
                                   weir_rpc_message_t** out_message) {
  weir_status_t* status = builder->status;
  builder->status = NULL;
  if (!status) status = weir_strbuf_finish(&builder->head);
  if (status) {
    weir_message_abandon(builder);
    return status;
  }
  if (!builder->message) builder->message = weir_rpc_message_create();
  weir_rpc_message_append_strbuf(builder->message, &builder->head);
  *out_message = builder->message;
  builder->message = NULL;
  return NULL;
}

void weir_message_abandon(weir_message_builder_t* builder) {
  weir_strbuf_free(&builder->head);
  weir_rpc_message_destroy(builder->message);
  weir_status_destroy(builder->status);
  *builder = (weir_message_builder_t){.message = NULL};
}

// ---- reading ----

typedef struct parsed_t {
  weir_dtype_t dtype;
  weir_view_t content;
  int rank;
  int64_t dims[WEIR_MAX_RANK];
} parsed_t;

static bool parse_shape(weir_view_t message, parsed_t* parsed) {
  weir_wire_reader_t shape = weir_wire_reader(message);
  while (weir_wire_next(&shape)) {
    if (shape.field != SHAPE_DIM || shape.type != WEIR_WIRE_BYTES) return false;
    if (parsed->rank == WEIR_MAX_RANK) return false;
    parsed->dims[parsed->rank] = 0;
    weir_wire_reader_t dim = weir_wire_reader(shape.bytes);
    while (weir_wire_next(&dim)) {
      if (dim.field == DIM_SIZE && dim.type == WEIR_WIRE_VARINT)
        parsed->dims[parsed->rank] = weir_wire_int(&dim);
    }
    if (dim.error) return false;
    ++parsed->rank;
  }
  return !shape.error;
}

// Whether |proto| is nothing but a type, a shape and elements as bytes.
static bool parse_simple(weir_view_t proto, parsed_t* parsed) {
  weir_wire_reader_t reader = weir_wire_reader(proto);
  while (weir_wire_next(&reader)) {
    if (reader.field == TENSOR_DTYPE && reader.type == WEIR_WIRE_VARINT)
      parsed->dtype = (weir_dtype_t)reader.value;
    else if (reader.field == TENSOR_SHAPE && reader.type == WEIR_WIRE_BYTES && parsed->rank == 0) {
      if (!parse_shape(reader.bytes, parsed)) return false;
    } else if (reader.field == TENSOR_CONTENT && reader.type == WEIR_WIRE_BYTES)
      parsed->content = reader.bytes;
    else return false;
  }
  return !reader.error && weir_dtype_is_plain(parsed->dtype);
}

static void release_buffer(void* data, size_t size, void* arg) {
  (void)data;
  (void)size;
  weir_rpc_buffer_release(arg);
}

weir_status_t* weir_message_get_tensor(weir_rpc_buffer_t* buffer, weir_view_t proto,
                                       weir_tensor_t** out_tensor) {
  parsed_t parsed = {.rank = 0};
  int64_t count = 0;
  if (weir_variant_is_proto(proto)) return weir_variant_parse(proto, out_tensor);
  if (proto.size < LARGE_SIZE || !parse_simple(proto, &parsed))
    return weir_tensor_parse(proto, out_tensor);
  bool is_aligned = (uintptr_t)parsed.content.data % WEIR_TENSOR_ALIGNMENT == 0;
  if (!is_aligned) return weir_tensor_parse(proto, out_tensor);
  WEIR_TRY(weir_shape_count(parsed.dtype, parsed.rank, parsed.dims, &count));
  size_t size = (size_t)count * weir_dtype_size(parsed.dtype);
  if (size != parsed.content.size) return weir_tensor_parse(proto, out_tensor);
  return weir_tensor_wrap(parsed.dtype, parsed.rank, parsed.dims,
                          (void*)(uintptr_t)parsed.content.data, size, release_buffer,
                          weir_rpc_buffer_retain(buffer), out_tensor);
}

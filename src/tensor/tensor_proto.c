// tensor_proto.c — Tensors to and from TensorProto, by the rules of TensorFlow's Tensor::FromProto.
#include "tensor/tensor_proto.h"

#include <inttypes.h>
#include <unistd.h>

#include "tensor/handle.h"
#include "tensor/numeric.h"
#include "tensor/shape.h"
#include "wire/wire.h"

// Numbers of TensorProto's fields.
enum {
  FIELD_DTYPE = 1,
  FIELD_SHAPE = 2,
  FIELD_CONTENT = 4,
  FIELD_FLOAT = 5,
  FIELD_DOUBLE = 6,
  FIELD_INT = 7,
  FIELD_STRING = 8,
  FIELD_SCOMPLEX = 9,
  FIELD_INT64 = 10,
  FIELD_BOOL = 11,
  FIELD_DCOMPLEX = 12,
  FIELD_HALF = 13,
  FIELD_HANDLE = 14,
  FIELD_UINT32 = 16,
  FIELD_UINT64 = 17,
  FIELD_FLOAT8 = 18,
};

// Numbers of ResourceHandleProto's and its DtypeAndShape's fields.
enum {
  HANDLE_DEVICE = 1,
  HANDLE_CONTAINER = 2,
  HANDLE_NAME = 3,
  HANDLE_HASH = 4,
  HANDLE_TYPE = 5,
  HANDLE_CONTENT = 6,
  CONTENT_DTYPE = 1,
  CONTENT_SHAPE = 2,
};

// Where a type's values stand when not in tensor_content, and how: |unit| bytes a value, |units|
// values an element.
typedef struct value_list_t {
  uint8_t field;
  uint8_t wire;
  uint8_t unit;
  uint8_t units;
} value_list_t;

static const value_list_t value_lists[WEIR_DTYPE_COUNT] = {
    [WEIR_DTYPE_FLOAT] = {FIELD_FLOAT, WEIR_WIRE_FIXED32, 4, 1},
    [WEIR_DTYPE_DOUBLE] = {FIELD_DOUBLE, WEIR_WIRE_FIXED64, 8, 1},
    [WEIR_DTYPE_INT32] = {FIELD_INT, WEIR_WIRE_VARINT, 4, 1},
    [WEIR_DTYPE_UINT8] = {FIELD_INT, WEIR_WIRE_VARINT, 1, 1},
    [WEIR_DTYPE_INT16] = {FIELD_INT, WEIR_WIRE_VARINT, 2, 1},
    [WEIR_DTYPE_INT8] = {FIELD_INT, WEIR_WIRE_VARINT, 1, 1},
    [WEIR_DTYPE_STRING] = {FIELD_STRING, WEIR_WIRE_BYTES, 24, 1},
    [WEIR_DTYPE_COMPLEX64] = {FIELD_SCOMPLEX, WEIR_WIRE_FIXED32, 4, 2},
    [WEIR_DTYPE_INT64] = {FIELD_INT64, WEIR_WIRE_VARINT, 8, 1},
    [WEIR_DTYPE_BOOL] = {FIELD_BOOL, WEIR_WIRE_VARINT, 1, 1},
    [WEIR_DTYPE_QINT8] = {FIELD_INT, WEIR_WIRE_VARINT, 1, 1},
    [WEIR_DTYPE_QUINT8] = {FIELD_INT, WEIR_WIRE_VARINT, 1, 1},
    [WEIR_DTYPE_QINT32] = {FIELD_INT, WEIR_WIRE_VARINT, 4, 1},
    [WEIR_DTYPE_BFLOAT16] = {FIELD_HALF, WEIR_WIRE_VARINT, 2, 1},
    [WEIR_DTYPE_QINT16] = {FIELD_INT, WEIR_WIRE_VARINT, 2, 1},
    [WEIR_DTYPE_QUINT16] = {FIELD_INT, WEIR_WIRE_VARINT, 2, 1},
    [WEIR_DTYPE_UINT16] = {FIELD_INT, WEIR_WIRE_VARINT, 2, 1},
    [WEIR_DTYPE_COMPLEX128] = {FIELD_DCOMPLEX, WEIR_WIRE_FIXED64, 8, 2},
    [WEIR_DTYPE_HALF] = {FIELD_HALF, WEIR_WIRE_VARINT, 2, 1},
    [WEIR_DTYPE_RESOURCE] = {FIELD_HANDLE, WEIR_WIRE_BYTES, 8, 1},
    [WEIR_DTYPE_UINT32] = {FIELD_UINT32, WEIR_WIRE_VARINT, 4, 1},
    [WEIR_DTYPE_UINT64] = {FIELD_UINT64, WEIR_WIRE_VARINT, 8, 1},
    [WEIR_DTYPE_FLOAT8_E5M2] = {FIELD_FLOAT8, WEIR_WIRE_BYTES, 1, 1},
    [WEIR_DTYPE_FLOAT8_E4M3FN] = {FIELD_FLOAT8, WEIR_WIRE_BYTES, 1, 1},
    [WEIR_DTYPE_FLOAT8_E4M3FNUZ] = {FIELD_FLOAT8, WEIR_WIRE_BYTES, 1, 1},
    [WEIR_DTYPE_FLOAT8_E4M3B11FNUZ] = {FIELD_FLOAT8, WEIR_WIRE_BYTES, 1, 1},
    [WEIR_DTYPE_FLOAT8_E5M2FNUZ] = {FIELD_FLOAT8, WEIR_WIRE_BYTES, 1, 1},
    [WEIR_DTYPE_INT4] = {FIELD_INT, WEIR_WIRE_VARINT, 1, 1},
    [WEIR_DTYPE_UINT4] = {FIELD_INT, WEIR_WIRE_VARINT, 1, 1},
    [WEIR_DTYPE_INT2] = {FIELD_INT, WEIR_WIRE_VARINT, 1, 1},
    [WEIR_DTYPE_UINT2] = {FIELD_INT, WEIR_WIRE_VARINT, 1, 1},
    [WEIR_DTYPE_FLOAT4_E2M1FN] = {FIELD_FLOAT8, WEIR_WIRE_BYTES, 1, 1},
};

// ---- reading: the header ----

typedef struct header_t {
  weir_dtype_t dtype;
  const weir_shape_t* shape;
  weir_view_t content;
} header_t;

static weir_status_t* check_dtype(uint64_t number, weir_dtype_t* out_dtype) {
  weir_dtype_t dtype = number < WEIR_DTYPE_COUNT ? (weir_dtype_t)number : WEIR_DTYPE_INVALID;
  if (!weir_dtype_is_valid(dtype)) {
    return WEIR_STATUS(INVALID_ARGUMENT, "TensorProto has the type %" PRId64 ", not one of tensors",
                       (int64_t)number);
  }
  if (dtype == WEIR_DTYPE_VARIANT) {
    return WEIR_STATUS(UNIMPLEMENTED, "variant tensors cannot be read from a TensorProto");
  }
  *out_dtype = dtype;
  return NULL;
}

static weir_status_t* read_header(weir_view_t proto, weir_arena_t* arena, header_t* out_header) {
  uint64_t dtype = 0;
  weir_view_t shape = {0};
  weir_wire_reader_t reader = weir_wire_reader(proto);
  while (weir_wire_next(&reader)) {
    if (reader.field == FIELD_DTYPE && reader.type == WEIR_WIRE_VARINT) dtype = reader.value;
    if (reader.type != WEIR_WIRE_BYTES) continue;
    if (reader.field == FIELD_SHAPE) shape = reader.bytes;
    if (reader.field == FIELD_CONTENT) out_header->content = reader.bytes;
  }
  WEIR_TRY(weir_wire_check(&reader, "TensorProto"));
  WEIR_TRY(check_dtype(dtype, &out_header->dtype));
  WEIR_TRY(weir_shape_parse(shape, arena, &out_header->shape));
  if (!weir_shape_is_full(out_header->shape)) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "TensorProto of type %s has a shape that is not fully known",
                       weir_dtype_name(out_header->dtype));
  }
  return NULL;
}

// A few bytes may declare any size. The system may promise more memory than it has, so what exceeds
// the machine's is refused before the values are repeated into it.
weir_status_t* weir_tensor_proto_check_memory(weir_dtype_t dtype, const weir_shape_t* shape) {
  int64_t count = 0;
  WEIR_TRY(weir_shape_count(dtype, shape->rank, shape->dims, &count));
  int64_t pages = sysconf(_SC_PHYS_PAGES);
  int64_t page_size = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_size <= 0) return NULL;
  int64_t element_size = (int64_t)weir_dtype_size(dtype);
  if (count / page_size * element_size < pages) return NULL;
  char text[WEIR_SHAPE_TEXT_SIZE];
  return WEIR_STATUS(
      RESOURCE_EXHAUSTED,
      "TensorProto declares a %s tensor of shape %s, more than this machine's memory",
      weir_dtype_name(dtype), weir_shape_text(shape->rank, shape->dims, text));
}

// Content of another size than the shape's is refused before there is memory for the shape.
static weir_status_t* check_content(const header_t* header) {
  const weir_shape_t* shape = header->shape;
  int64_t count = 0;
  if (header->content.size == 0 || !weir_dtype_is_plain(header->dtype)) return NULL;
  WEIR_TRY(weir_shape_count(header->dtype, shape->rank, shape->dims, &count));
  size_t size = (size_t)count * weir_dtype_size(header->dtype);
  if (header->content.size == size || count == 0)
    return NULL;  // as TensorFlow, which does not look
  char text[WEIR_SHAPE_TEXT_SIZE];
  return WEIR_STATUS(
      INVALID_ARGUMENT,
      "TensorProto of type %s and shape %s has %zu bytes of tensor_content, expected %zu",
      weir_dtype_name(header->dtype), weir_shape_text(shape->rank, shape->dims, text),
      header->content.size, size);
}

// ---- reading: tensor_content ----

static bool read_size(weir_view_t* rest, uint64_t* out_size) {
  uint64_t size = 0;
  for (unsigned shift = 0; shift < 64 && rest->size > 0; shift += 7) {
    uint8_t byte = (uint8_t)*rest->data;
    *rest = weir_view(rest->data + 1, rest->size - 1);
    size |= (uint64_t)(byte & 127) << shift;
    if (byte < 128) {
      *out_size = size;
      return true;
    }
  }
  return false;
}

// Strings in tensor_content: the sizes of all as varints, then the bytes of all.
static weir_status_t* read_string_content(weir_view_t content, weir_tensor_t* tensor) {
  weir_string_t* strings = tensor->data;
  weir_view_t sizes = content;
  weir_view_t bytes = content;
  uint64_t size = 0;
  for (int64_t i = 0; i < tensor->count; ++i) {
    if (!read_size(&bytes, &size)) goto malformed;
  }
  for (int64_t i = 0; i < tensor->count; ++i) {
    if (!read_size(&sizes, &size) || size > bytes.size) goto malformed;
    WEIR_TRY(weir_string_set(&strings[i], bytes.data, size));
    bytes = weir_view(bytes.data + size, bytes.size - size);
  }
  if (bytes.size == 0) return NULL;
malformed:
  return WEIR_STATUS(INVALID_ARGUMENT, "malformed tensor_content of a string TensorProto");
}

// C reads only 0 and 1 as a bool, and 4-bit integers count by their low bits: bytes from outside
// may hold anything.
static void normalise(weir_tensor_t* tensor) {
  uint8_t* bytes = tensor->data;
  weir_dtype_t dtype = weir_tensor_type(tensor);
  for (int64_t i = 0; dtype == WEIR_DTYPE_BOOL && i < tensor->count; ++i) bytes[i] = bytes[i] != 0;
  for (int64_t i = 0; dtype == WEIR_DTYPE_INT4 && i < tensor->count; ++i) {
    bytes[i] = (uint8_t)weir_int4_wrap((int8_t)bytes[i]);
  }
  for (int64_t i = 0; dtype == WEIR_DTYPE_UINT4 && i < tensor->count; ++i) {
    bytes[i] = weir_uint4_wrap(bytes[i]);
  }
}

static weir_status_t* read_content(weir_view_t content, weir_tensor_t* tensor) {
  if (tensor->dtype == WEIR_DTYPE_STRING) return read_string_content(content, tensor);
  if (!weir_dtype_is_plain(tensor->dtype)) {
    return WEIR_STATUS(UNIMPLEMENTED, "a %s cannot be read from tensor_content",
                       weir_dtype_name(tensor->dtype));
  }
  // check_content has seen that it is as much, or that there is nothing to fill.
  memcpy(tensor->data, content.data, weir_tensor_byte_size(tensor));
  normalise(tensor);
  return NULL;
}

// ---- reading: lists of numbers ----

// Where the next value goes. Values for which there is no place are left out, as TensorFlow does.
typedef struct sink_t {
  char* data;
  uint64_t capacity;  // values
  uint64_t count;     // values stored
  size_t unit;
} sink_t;

// Stores the low |unit| bytes of |bits|, whatever the byte order.
static void sink_put(sink_t* sink, uint64_t bits, bool is_bool) {
  if (sink->count >= sink->capacity) return;
  char* at = sink->data + sink->count++ * sink->unit;
  if (is_bool) bits = bits != 0;
  uint8_t u8 = (uint8_t)bits;
  uint16_t u16 = (uint16_t)bits;
  uint32_t u32 = (uint32_t)bits;
  switch (sink->unit) {
    case 1: memcpy(at, &u8, 1); break;
    case 2: memcpy(at, &u16, 2); break;
    case 4: memcpy(at, &u32, 4); break;
    default: memcpy(at, &bits, 8);
  }
}

static void sink_put_all(sink_t* sink, weir_view_t bytes) {
  uint64_t n = WEIR_MIN(bytes.size / sink->unit, sink->capacity - sink->count);
  if (n) memcpy(sink->data + sink->count * sink->unit, bytes.data, n * sink->unit);
  sink->count += n;
}

static weir_status_t* read_field(const weir_wire_reader_t* reader, const value_list_t* list,
                                 bool is_bool, sink_t* sink) {
  bool is_fixed = list->wire != WEIR_WIRE_VARINT;
  if (is_fixed && reader->type == WEIR_WIRE_BYTES) {
    if (reader->bytes.size % list->unit != 0) {
      return WEIR_STATUS(INVALID_ARGUMENT, "malformed TensorProto: truncated value list");
    }
    sink_put_all(sink, reader->bytes);
    return NULL;
  }
  if (reader->type != WEIR_WIRE_BYTES && reader->type != (weir_wire_type_t)list->wire) return NULL;
  weir_wire_packed_t packed = weir_wire_packed(reader, (weir_wire_type_t)list->wire);
  uint64_t bits = 0;
  while (weir_wire_packed_next(&packed, &bits)) sink_put(sink, bits, is_bool);
  if (packed.failed) {
    return WEIR_STATUS(INVALID_ARGUMENT, "malformed TensorProto: truncated value list");
  }
  return NULL;
}

// Fills elements [filled, count) with the last one given, or with zeros when none was. The copied
// run doubles each round.
static void repeat_last(weir_tensor_t* tensor, size_t filled) {
  size_t unit = weir_dtype_size(weir_tensor_type(tensor));
  size_t count = (size_t)tensor->count;
  char* data = tensor->data;
  if (filled == 0) {
    memset(data, 0, count * unit);
    return;
  }
  char* last = data + (filled - 1) * unit;
  size_t run = 1;
  for (size_t left = count - filled; left > 0;) {
    size_t n = WEIR_MIN(run, left);
    memcpy(last + run * unit, last, n * unit);
    run += n;
    left -= n;
  }
}

static weir_status_t* read_numbers(weir_view_t proto, weir_tensor_t* tensor) {
  const value_list_t* list = &value_lists[tensor->dtype];
  sink_t sink = {.data = tensor->data, .unit = list->unit};
  sink.capacity = (uint64_t)tensor->count * list->units;
  weir_wire_reader_t reader = weir_wire_reader(proto);
  while (weir_wire_next(&reader)) {
    if (reader.field != list->field) continue;
    WEIR_TRY(read_field(&reader, list, tensor->dtype == WEIR_DTYPE_BOOL, &sink));
  }
  if (tensor->count > 0) repeat_last(tensor, (size_t)(sink.count / list->units));
  normalise(tensor);
  return NULL;
}

// ---- reading: strings and handles ----

static weir_status_t* read_handle_content(weir_view_t proto, weir_handle_t* handle) {
  weir_arena_t arena = {0};
  const weir_shape_t* shape = NULL;
  weir_status_t* status = NULL;
  weir_wire_reader_t reader = weir_wire_reader(proto);
  while (!status && weir_wire_next(&reader)) {
    if (reader.field == CONTENT_DTYPE && reader.type == WEIR_WIRE_VARINT) {
      bool is_known = reader.value < WEIR_DTYPE_COUNT;
      handle->dtype = is_known ? (weir_dtype_t)reader.value : WEIR_DTYPE_INVALID;
    } else if (reader.field == CONTENT_SHAPE && reader.type == WEIR_WIRE_BYTES) {
      status = weir_shape_parse(reader.bytes, &arena, &shape);
    }
  }
  if (!status) status = weir_wire_check(&reader, "ResourceHandleProto.DtypeAndShape");
  if (!status && shape && !handle->shape) {
    handle->shape = weir_shape_clone(shape);
    if (!handle->shape) status = weir_out_of_memory();
  }
  weir_arena_free(&arena);
  return status;
}

static weir_status_t* replace_text(char** text, weir_view_t value) {
  char* copy = weir_strndup(value.size ? value.data : "", value.size);
  if (!copy) return weir_out_of_memory();
  weir_free(*text);
  *text = copy;
  return NULL;
}

static weir_status_t* read_handle_field(const weir_wire_reader_t* reader, weir_handle_t* handle) {
  if (reader->field == HANDLE_HASH && reader->type == WEIR_WIRE_VARINT) {
    handle->type_hash = reader->value;
  }
  if (reader->type != WEIR_WIRE_BYTES) return NULL;
  switch (reader->field) {
    case HANDLE_DEVICE: return replace_text(&handle->device, reader->bytes);
    case HANDLE_CONTAINER: return replace_text(&handle->container, reader->bytes);
    case HANDLE_NAME: return replace_text(&handle->name, reader->bytes);
    case HANDLE_TYPE: return replace_text(&handle->type_name, reader->bytes);
    case HANDLE_CONTENT: return read_handle_content(reader->bytes, handle);
    default: return NULL;
  }
}

weir_status_t* weir_handle_parse(weir_view_t proto, weir_handle_t** out_handle) {
  weir_handle_t* handle = NULL;
  WEIR_TRY(weir_handle_create("", "", "", "", &handle));
  weir_status_t* status = NULL;
  weir_wire_reader_t reader = weir_wire_reader(proto);
  while (!status && weir_wire_next(&reader)) status = read_handle_field(&reader, handle);
  if (!status) status = weir_wire_check(&reader, "ResourceHandleProto");
  if (status) {
    weir_handle_release(handle);
    return status;
  }
  *out_handle = handle;
  return NULL;
}

static weir_status_t* read_object(weir_view_t bytes, weir_tensor_t* tensor, int64_t index) {
  if (tensor->dtype == WEIR_DTYPE_STRING) {
    return weir_tensor_set_string(tensor, index, bytes.data, bytes.size);
  }
  return weir_handle_parse(bytes, &WEIR_TENSOR_DATA(tensor, weir_handle_t*)[index]);
}

static weir_status_t* read_objects(weir_view_t proto, weir_tensor_t* tensor) {
  weir_dtype_t dtype = weir_tensor_type(tensor);
  uint32_t field = value_lists[dtype].field;
  int64_t seen = 0;
  weir_wire_reader_t reader = weir_wire_reader(proto);
  while (weir_wire_next(&reader)) {
    if (reader.field != field || reader.type != WEIR_WIRE_BYTES) continue;
    if (seen == tensor->count) break;
    WEIR_TRY(read_object(reader.bytes, tensor, seen++));
  }
  if (seen == 0) return NULL;  // elements start empty
  char* data = tensor->data;
  size_t unit = weir_dtype_size(dtype);
  const char* last = data + (size_t)(seen - 1) * unit;
  for (int64_t i = seen; i < tensor->count; ++i) {
    WEIR_TRY(weir_elements_copy(dtype, data + (size_t)i * unit, last, 1));
  }
  return NULL;
}

weir_status_t* weir_tensor_parse(weir_view_t proto, weir_tensor_t** out_tensor) {
  weir_arena_t arena = {0};
  weir_tensor_t* tensor = NULL;
  header_t header = {0};
  weir_status_t* status = read_header(proto, &arena, &header);
  if (status) goto done;
  status = check_content(&header);
  if (!status) status = weir_tensor_proto_check_memory(header.dtype, header.shape);
  if (status) goto done;
  status = weir_tensor_create(header.dtype, header.shape->rank, header.shape->dims, &tensor);
  if (status) goto done;
  if (header.content.size > 0) {
    status = read_content(header.content, tensor);
  } else if (weir_dtype_is_plain(header.dtype)) {
    status = read_numbers(proto, tensor);
  } else {
    status = read_objects(proto, tensor);
  }
  if (status) goto done;
  *out_tensor = tensor;
  tensor = NULL;
done:
  weir_tensor_release(tensor);
  weir_arena_free(&arena);
  return status;
}

// ---- writing ----

static void write_text(uint32_t field, const char* text, weir_strbuf_t* out) {
  if (text && *text) weir_wire_put_string(out, field, text);  // "" is proto3's default
}

void weir_handle_write(const weir_handle_t* handle, weir_strbuf_t* out) {
  write_text(HANDLE_DEVICE, handle->device, out);
  write_text(HANDLE_CONTAINER, handle->container, out);
  write_text(HANDLE_NAME, handle->name, out);
  if (handle->type_hash) weir_wire_put_int(out, HANDLE_HASH, (int64_t)handle->type_hash);
  write_text(HANDLE_TYPE, handle->type_name, out);
  if (handle->dtype == WEIR_DTYPE_INVALID) return;
  size_t content = weir_wire_begin(out, HANDLE_CONTENT);
  weir_wire_put_int(out, CONTENT_DTYPE, handle->dtype);
  size_t shape = weir_wire_begin(out, CONTENT_SHAPE);
  weir_shape_write(handle->shape ? handle->shape : &weir_shape_unknown, out);
  weir_wire_end(out, shape);
  weir_wire_end(out, content);
}

static void write_handle(const weir_handle_t* handle, weir_strbuf_t* out) {
  size_t begin = weir_wire_begin(out, FIELD_HANDLE);
  if (handle) weir_handle_write(handle, out);
  weir_wire_end(out, begin);
}

static void write_elements(const weir_tensor_t* tensor, weir_strbuf_t* out) {
  if (weir_dtype_is_plain(weir_tensor_type(tensor))) {
    size_t size = weir_tensor_byte_size(tensor);
    if (size) weir_wire_put_bytes(out, FIELD_CONTENT, tensor->data, size);
    return;
  }
  for (int64_t i = 0; i < tensor->count; ++i) {
    if (tensor->dtype == WEIR_DTYPE_STRING) {
      weir_view_t text = weir_string_view(&WEIR_TENSOR_DATA(tensor, weir_string_t)[i]);
      weir_wire_put_bytes(out, FIELD_STRING, text.data, text.size);
    } else {
      write_handle(WEIR_TENSOR_DATA(tensor, weir_handle_t*)[i], out);
    }
  }
}

weir_status_t* weir_tensor_write(const weir_tensor_t* tensor, weir_strbuf_t* out) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (tensor->dtype == WEIR_DTYPE_VARIANT) {
    return WEIR_STATUS(UNIMPLEMENTED,
                       "a variant tensor of shape %s cannot be written as TensorProto",
                       weir_tensor_shape_text(tensor, text));
  }
  if (!weir_tensor_is_host(tensor)) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "a %s tensor of shape %s in device memory cannot be written as TensorProto",
                       weir_dtype_name(weir_tensor_type(tensor)),
                       weir_tensor_shape_text(tensor, text));
  }
  weir_wire_put_int(out, FIELD_DTYPE, tensor->dtype);
  size_t begin = weir_wire_begin(out, FIELD_SHAPE);
  weir_shape_write_dims(tensor->rank, tensor->dims, out);
  weir_wire_end(out, begin);
  write_elements(tensor, out);
  return weir_strbuf_finish(out);
}

// encode_proto.c — EncodeProto: rows of tensors to serialised messages.
#include "op/shape_ctx.h"
#include "ops/io/common.h"
#include "ops/io/proto_source.h"

// ---- shapes ----

// All but the last dimension of the values and of the sizes.
static weir_status_t* encode_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t *sizes = weir_shape_input(ctx, 0), *prefix = NULL;
  WEIR_TRY(weir_shape_at_least(ctx, sizes, 1));
  prefix = weir_shape_sub(ctx, sizes, 0, sizes->rank - 1);
  for (int i = 1; i < ctx->node->input_count; ++i) {
    const weir_shape_t* value = weir_shape_input(ctx, i);
    WEIR_TRY(weir_shape_at_least(ctx, value, 2));
    WEIR_TRY(weir_shape_join(ctx, prefix, weir_shape_sub(ctx, value, 0, value->rank - 1), &prefix));
  }
  return weir_shape_set(ctx, 0, prefix);
}

// ---- checks ----

static weir_status_t* check_value(const proto_source_t* s, size_t i, const weir_tensor_t* value,
                                  const weir_tensor_t* first) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  const char* name = s->fields[i]->row->name;
  if (!proto_source_fits(s->fields[i], weir_tensor_type(value))) {
    return WEIR_STATUS(
        INVALID_ARGUMENT, "Incompatible type for field %s.  Saw dtype: %s but field type is: %s",
        name, weir_dtype_name(weir_tensor_type(value)), weir_proto_type_name(s->fields[i]));
  }
  if (value->rank < 2) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Invalid shape for field %s.  Saw shape %s but it should be at least a "
                       "matrix.",
                       name, weir_tensor_shape_text(value, text));
  }
  if (value->rank == first->rank &&
      memcmp(value->dims, first->dims, (size_t)(value->rank - 1) * sizeof *value->dims) == 0)
    return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Values must match up to the last dimension");
}

static weir_status_t* check_sizes_shape(const weir_tensor_t* sizes, const weir_tensor_t* first,
                                        size_t count) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  const size_t prefix = (size_t)(first->rank - 1) * sizeof *first->dims;
  if (sizes->rank == first->rank && memcmp(sizes->dims, first->dims, prefix) == 0 &&
      sizes->dims[sizes->rank - 1] == (int64_t)count)
    return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "sizes should be batch_size + [len(field_names)].  Saw: %s but expected the "
                     "batch size of the values and %zu",
                     weir_tensor_shape_text(sizes, text), count);
}

static weir_status_t* check_sizes(const weir_kernel_ctx_t* ctx, const proto_source_t* s) {
  const weir_tensor_t* sizes = weir_kernel_input(ctx, 0);
  const int32_t* size = WEIR_TENSOR_DATA(sizes, int32_t);
  for (int64_t k = 0; s->count > 0 && k < sizes->count; ++k) {
    const int64_t field = k % (int64_t)s->count;
    const weir_tensor_t* value = weir_kernel_input(ctx, 1 + (int)field);
    const int64_t most = value->dims[value->rank - 1];
    if (size[k] <= most) continue;
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Size to write must not be larger than value tensor; but saw: %d > %lld at "
                       "message %lld field %lld",
                       size[k], (long long)most, (long long)(k / (int64_t)s->count),
                       (long long)field);
  }
  return NULL;
}

static weir_status_t* check_inputs(const weir_kernel_ctx_t* ctx, const proto_source_t* s) {
  if (s->count != (size_t)ctx->input_count - 1)
    return WEIR_STATUS(INVALID_ARGUMENT, "Length of inputs list must match field_names");
  const weir_tensor_t* first = weir_kernel_input(ctx, 1);
  for (size_t i = 0; i < s->count; ++i)
    WEIR_TRY(check_value(s, i, weir_kernel_input(ctx, 1 + (int)i), first));
  WEIR_TRY(check_sizes_shape(weir_kernel_input(ctx, 0), first, s->count));
  return check_sizes(ctx, s);
}

// ---- writing ----

// Element |i| as the bits of the field's type on the wire.
static uint64_t bits_at(const weir_proto_field_t* field, const weir_tensor_t* t, int64_t i) {
  uint64_t bits = 0;
  uint32_t word;
  float real;
  switch (weir_tensor_type(t)) {
    case WEIR_DTYPE_FLOAT: memcpy(&word, &WEIR_TENSOR_DATA(t, float)[i], 4); return word;
    case WEIR_DTYPE_DOUBLE:
      if (field->type == WEIR_FIELD_DOUBLE) {
        memcpy(&bits, &WEIR_TENSOR_DATA(t, double)[i], 8);
        return bits;
      }
      real = (float)WEIR_TENSOR_DATA(t, double)[i];
      memcpy(&word, &real, 4);
      return word;
    case WEIR_DTYPE_BOOL: return WEIR_TENSOR_DATA(t, uint8_t)[i] != 0;
    case WEIR_DTYPE_INT32: bits = (uint64_t)(int64_t)WEIR_TENSOR_DATA(t, int32_t)[i]; break;
    case WEIR_DTYPE_UINT32: bits = WEIR_TENSOR_DATA(t, uint32_t)[i]; break;
    default: bits = WEIR_TENSOR_DATA(t, uint64_t)[i]; break;
  }
  switch (field->type) {  // those of 32 bits lose the others
    case WEIR_FIELD_INT32: return (uint64_t)(int64_t)(int32_t)(uint32_t)bits;
    case WEIR_FIELD_SINT32: return (uint32_t)bits << 1 ^ (bits & 0x80000000u ? UINT32_MAX : 0);
    case WEIR_FIELD_SINT64: return bits << 1 ^ (bits >> 63 ? UINT64_MAX : 0);
    case WEIR_FIELD_UINT32: return (uint32_t)bits;
    default: return bits;
  }
}

static void put_number(weir_strbuf_t* out, weir_wire_type_t type, uint64_t bits) {
  char bytes[8];
  if (type == WEIR_WIRE_VARINT) {
    weir_wire_put_varint(out, bits);
    return;
  }
  for (int i = 0; i < 8; ++i) bytes[i] = (char)(bits >> (8 * i));
  weir_strbuf_append(out, bytes, type == WEIR_WIRE_FIXED32 ? 4 : 8);
}

static void write_numbers(const weir_proto_field_t* field, const weir_tensor_t* t, int64_t first,
                          int64_t count, weir_strbuf_t* out) {
  const weir_wire_type_t type = weir_field_wire_type(field->type);
  const size_t begin = field->is_packed ? weir_wire_begin(out, field->row->number) : 0;
  for (int64_t i = first; i < first + count; ++i) {
    if (!field->is_packed) weir_wire_put_tag(out, field->row->number, type);
    put_number(out, type, bits_at(field, t, i));
  }
  if (field->is_packed) weir_wire_end(out, begin);
}

static void write_strings(const weir_proto_field_t* field, const weir_tensor_t* t, int64_t first,
                          int64_t count, weir_strbuf_t* out) {
  const uint32_t number = field->row->number;
  for (int64_t i = first; i < first + count; ++i) {
    const weir_view_t text = io_string(t, i);
    if (field->type != WEIR_FIELD_GROUP) {
      weir_wire_put_bytes(out, number, text.data, text.size);
      continue;
    }
    weir_wire_put_tag(out, number, WEIR_WIRE_GROUP);
    weir_strbuf_append(out, text.data, text.size);
    weir_wire_put_tag(out, number, WEIR_WIRE_END_GROUP);
  }
}

static void write_message(const weir_kernel_ctx_t* ctx, const proto_source_t* s, int64_t message,
                          weir_strbuf_t* out) {
  const int32_t* sizes =
      WEIR_TENSOR_DATA(weir_kernel_input(ctx, 0), int32_t) + message * (int64_t)s->count;
  for (size_t k = 0; k < s->count; ++k) {
    const size_t i = s->order[k];
    const weir_tensor_t* value = weir_kernel_input(ctx, 1 + (int)i);
    const int64_t first = message * value->dims[value->rank - 1];
    if (sizes[i] <= 0) continue;
    if (weir_tensor_type(value) == WEIR_DTYPE_STRING)
      write_strings(s->fields[i], value, first, sizes[i], out);
    else write_numbers(s->fields[i], value, first, sizes[i], out);
  }
}

static weir_status_t* encode_cpu(weir_kernel_ctx_t* ctx) {
  const proto_source_t* s = ctx->state;
  weir_tensor_t* out = NULL;
  weir_strbuf_t bytes = {0};
  WEIR_TRY(check_inputs(ctx, s));
  const weir_tensor_t* sizes = weir_kernel_input(ctx, 0);
  WEIR_TRY(weir_kernel_output(ctx, 0, sizes->rank - 1, sizes->dims, &out));
  weir_status_t* status = NULL;
  for (int64_t m = 0; !status && m < out->count; ++m) {
    bytes.size = 0;
    write_message(ctx, s, m, &bytes);
    status = weir_strbuf_finish(&bytes);
    if (!status) status = weir_tensor_set_string(out, m, bytes.data, bytes.size);
  }
  weir_strbuf_free(&bytes);
  return status;
}

static weir_status_t* encode_init(const weir_kernel_init_t* init, void* state) {
  return proto_source_init(init->node->attrs, false, state);
}

static void encode_deinit(void* state) { proto_source_deinit(state); }

const weir_op_module_t weir_ops_io_encode_proto = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "EncodeProto",
         .attrs = "field_names: list(string); message_type: string; descriptor_source: string = "
                  "'local://'; Tinput_types: list(type) >= 1",
         .inputs = "sizes: int32; values: Tinput_types",
         .outputs = "bytes: string",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "Serialised messages with values of tensors in their fields",
         .infer_shape = encode_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = encode_cpu, .init = encode_init,
                                    .deinit = encode_deinit, .state_size = sizeof(proto_source_t))},
        {0}}};

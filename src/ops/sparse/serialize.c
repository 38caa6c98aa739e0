// serialize.c — SerializeSparse, SerializeManySparse: sparse tensors as three strings or variants
// each, of indices, values and shape.
#include "ops/sparse/batch.h"
#include "tensor/parcel.h"
#include "tensor/tensor_proto.h"
#include "wire/wire.h"

static weir_status_t* serialize_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_sparse_shape_check(ctx, 0));
  return weir_shape_set_vector(ctx, 0, 3);
}

static weir_status_t* serialize_many_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_sparse_shape_check(ctx, 0));
  return weir_shape_set_dims(ctx, 0, 2, (const int64_t[]){-1, 3});
}

// A TensorProto with all strings in its tensor_content, sizes first: where weir_tensor_write has a
// list of them, this op of TensorFlow's has that.
static void write_strings(const weir_tensor_t* tensor, weir_strbuf_t* out) {
  enum { DTYPE = 1, SHAPE = 2, CONTENT = 4, SHAPE_DIM = 2, DIM_SIZE = 1 };
  const weir_string_t* strings = tensor->data;
  weir_wire_put_int(out, DTYPE, WEIR_DTYPE_STRING);
  size_t shape = weir_wire_begin(out, SHAPE);
  for (int d = 0; d < tensor->rank; ++d) {
    size_t dim = weir_wire_begin(out, SHAPE_DIM);
    if (tensor->dims[d] != 0) weir_wire_put_int(out, DIM_SIZE, tensor->dims[d]);
    weir_wire_end(out, dim);
  }
  weir_wire_end(out, shape);
  if (tensor->count == 0) return;
  size_t content = weir_wire_begin(out, CONTENT);
  for (int64_t i = 0; i < tensor->count; ++i)
    weir_wire_put_varint(out, weir_string_view(&strings[i]).size);
  for (int64_t i = 0; i < tensor->count; ++i) {
    weir_view_t text = weir_string_view(&strings[i]);
    weir_strbuf_append(out, text.data, text.size);
  }
  weir_wire_end(out, content);
}

// Element |i| of |out| is |tensor|, as a string or a variant.
static weir_status_t* put_part(weir_tensor_t* out, int64_t i, weir_tensor_t* tensor) {
  if (weir_tensor_type(out) == WEIR_DTYPE_VARIANT) {
    weir_parcel_t* parcel = NULL;
    WEIR_TRY(weir_parcel_create(&weir_tensor_variant_type, 1, &parcel));
    parcel->items[0] = weir_tensor_retain(tensor);
    weir_parcel_put(out, i, parcel);
    return NULL;
  }
  weir_strbuf_t text = {0};
  weir_status_t* status = NULL;
  if (weir_tensor_type(tensor) == WEIR_DTYPE_STRING) write_strings(tensor, &text);
  else status = weir_tensor_write(tensor, &text);
  if (!status) status = weir_strbuf_finish(&text);
  if (!status) status = weir_tensor_set_string(out, i, text.data, text.size);
  weir_strbuf_free(&text);
  return status;
}

static weir_status_t* serialize_cpu(weir_kernel_ctx_t* ctx) {
  weir_sparse_t s;
  weir_tensor_t* out = NULL;
  weir_sparse_get(weir_kernel_input(ctx, 0), weir_kernel_input(ctx, 1), weir_kernel_input(ctx, 2),
                  &s);
  WEIR_TRY(weir_sparse_check_ranks(&s));
  WEIR_TRY(weir_kernel_output(ctx, 0, 1, (const int64_t[]){3}, &out));
  for (int i = 0; i < 3; ++i) WEIR_TRY(put_part(out, i, ctx->inputs[i].tensor));
  return NULL;
}

static weir_status_t* serialize_row(const weir_sparse_t* s, int64_t row, int64_t begin, int64_t end,
                                    weir_tensor_t* out) {
  weir_tensor_t* parts[3] = {NULL, NULL, NULL};
  weir_status_t* status = weir_sparse_cut_row(s, begin, end, parts);
  for (int i = 0; i < 3; ++i) {
    if (!status) status = put_part(out, 3 * row + i, parts[i]);
    weir_tensor_release(parts[i]);
  }
  return status;
}

static weir_status_t* serialize_many_cpu(weir_kernel_ctx_t* ctx) {
  weir_sparse_t s;
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_sparse_read_rows(ctx, &s));
  WEIR_TRY(weir_kernel_output(ctx, 0, 2, (const int64_t[]){s.dims[0], 3}, &out));
  int64_t at = 0;
  for (int64_t row = 0; row < s.dims[0]; ++row) {
    int64_t begin = at;
    while (at < s.count && weir_sparse_row(&s, at)[0] == row) ++at;
    WEIR_TRY(serialize_row(&s, row, begin, at, out));
  }
  return NULL;
}

#define SERIALIZE_OP(op_name, text, shape_fn, fn, constraint)                               \
  {                                                                                         \
    .name = op_name, .attrs = "T: type; out_type: {string, variant} = DT_STRING",           \
    .inputs = "sparse_indices: int64; sparse_values: T; sparse_shape: int64",               \
    .outputs = "serialized_sparse: out_type", .flags = WEIR_OP_HOST_ONLY, .summary = text,  \
    .infer_shape = shape_fn, .kernels = WEIR_CPU_KERNEL(.types = constraint, .compute = fn) \
  }

const weir_op_module_t weir_ops_sparse_serialize = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        SERIALIZE_OP("SerializeSparse", "A sparse tensor as three strings or variants",
                     serialize_shape, serialize_cpu, NULL),
        SERIALIZE_OP("SerializeManySparse", "The rows of a sparse tensor, three strings each",
                     serialize_many_shape, serialize_many_cpu, SPARSE_ANY),
        {0}}};

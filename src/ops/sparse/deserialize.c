// deserialize.c — DeserializeSparse, DeserializeManySparse: sparse tensors from three strings or
// variants each, put together.
#include "ops/sparse/batch.h"
#include "tensor/parcel.h"
#include "tensor/tensor_proto.h"

static weir_status_t* set_outputs(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_set_dims(ctx, 0, 2, (const int64_t[]){-1, -1}));
  WEIR_TRY(weir_shape_set_vector(ctx, 1, -1));
  return weir_shape_set_vector(ctx, 2, -1);
}

static weir_status_t* check_last(const weir_shape_t* in) {
  int64_t last = weir_shape_dim(in, -1);
  if (last < 0 || last == 3) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Dimension must be 3 but is %" PRId64, last);
}

static weir_status_t* deserialize_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* in = weir_shape_input(ctx, 0);
  WEIR_TRY(weir_shape_at_least(ctx, in, 1));
  WEIR_TRY(check_last(in));
  return set_outputs(ctx);
}

static weir_status_t* deserialize_many_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 2, NULL));
  WEIR_TRY(check_last(weir_shape_input(ctx, 0)));
  return set_outputs(ctx);
}

static weir_status_t* check_input(const weir_tensor_t* in) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (in->rank == 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Serialized sparse should have non-zero rank %s",
                       weir_tensor_shape_text(in, text));
  }
  if (in->dims[in->rank - 1] != 3) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Serialized sparse should have 3 as the last dimension %s",
                       weir_tensor_shape_text(in, text));
  }
  if (in->count == 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Serialized sparse should have at least 1 serialized tensor, but has a zero "
                       "dimension %s",
                       weir_tensor_shape_text(in, text));
  }
  return NULL;
}

// Creates the tensor that element |i| is.
static weir_status_t* read_part(const weir_tensor_t* in, int64_t i, weir_tensor_t** out) {
  if (weir_tensor_type(in) == WEIR_DTYPE_VARIANT) {
    const weir_parcel_t* parcel = weir_parcel_at(in, i, &weir_tensor_variant_type);
    if (!parcel) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Expected element %" PRId64 " to be a tensor but it is a %s", i,
                         weir_variant_name_at(in, i));
    }
    *out = weir_tensor_retain(parcel->items[0]);
    return NULL;
  }
  weir_view_t text = weir_string_view(WEIR_TENSOR_DATA(in, weir_string_t) + i);
  weir_status_t* status = weir_tensor_parse(text, out);
  if (!status || weir_status_code(status) != WEIR_INVALID_ARGUMENT) return status;
  weir_status_destroy(status);
  return WEIR_STATUS(INVALID_ARGUMENT, "Could not parse serialized proto");
}

static weir_status_t* deserialize_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  WEIR_TRY(check_input(in));
  weir_tensor_t** parts = weir_calloc((size_t)in->count, sizeof(weir_tensor_t*));
  weir_status_t* status = parts ? NULL : weir_out_of_memory();
  for (int64_t i = 0; i < in->count && !status; ++i) status = read_part(in, i, &parts[i]);
  if (!status) status = weir_sparse_join(ctx, parts, in->count / 3, in->rank - 1, in->dims);
  for (int64_t i = 0; parts && i < in->count; ++i) weir_tensor_release(parts[i]);
  weir_free(parts);
  return status;
}

#define DESERIALIZED "sparse_indices: int64; sparse_values: dtype; sparse_shape: int64"

const weir_op_module_t weir_ops_sparse_deserialize = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "DeserializeSparse",
         .attrs = "dtype: type; Tserialized: {string, variant} = DT_STRING",
         .inputs = "serialized_sparse: Tserialized",
         .outputs = DESERIALIZED,
         .summary = "A sparse tensor from what SerializeSparse made of it, or a batch of them",
         .infer_shape = deserialize_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = deserialize_cpu)},
        {.name = "DeserializeManySparse",
         .attrs = "dtype: type",
         .inputs = "serialized_sparse: string",
         .outputs = DESERIALIZED,
         .summary = "Sparse tensors, one of each row of three strings, as one",
         .infer_shape = deserialize_many_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = deserialize_cpu)},
        {0}}};

// variant.c — RaggedTensorToVariant, RaggedTensorFromVariant, RaggedTensorToVariantGradient: ragged
// tensors as elements of variant tensors, one or a batch of them.
#include "ops/math/common.h"
#include "ops/ragged/ragged.h"
#include "tensor/parcel_kinds.h"

// ---- RaggedTensorToVariant ----

static weir_status_t* to_variant_shape(weir_shape_ctx_t* ctx) {
  const int levels = (int)weir_attrs_int(weir_shape_attrs(ctx), "RAGGED_RANK");
  const weir_shape_t* values = weir_shape_input(ctx, levels);
  for (int i = 0; i < levels; ++i)
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), 1, NULL));
  if (levels > 0) WEIR_TRY(weir_shape_at_least(ctx, values, 1));
  if (!weir_attrs_bool(weir_shape_attrs(ctx), "batched_input"))
    return weir_shape_set_scalar(ctx, 0);
  if (levels == 0) return weir_shape_set_vector(ctx, 0, weir_shape_dim(values, 0));
  int64_t splits = weir_shape_dim(weir_shape_input(ctx, 0), 0);
  return weir_shape_set_vector(ctx, 0, splits > 0 ? splits - 1 : -1);
}

// Rows [begin, end) of |splits|, from 0 on.
static weir_status_t* cut_splits(const weir_tensor_t* splits, int64_t begin, int64_t end,
                                 weir_tensor_t** out) {
  const int64_t count = end - begin + 1;
  WEIR_TRY(weir_tensor_create(weir_tensor_type(splits), 1, &count, out));
  int64_t first = weir_tensor_int_at(splits, begin);
  for (int64_t i = 0; i < count; ++i)
    weir_move_set_int(*out, i, weir_tensor_int_at(splits, begin + i) - first);
  return NULL;
}

static weir_status_t* check_range(int64_t begin, int64_t end, int64_t most) {
  if (begin >= 0 && begin <= end && end <= most) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Ragged splits [%" PRId64 ", %" PRId64 ") do not lie within %" PRId64 " rows",
                     begin, end, most);
}

// The part of a ragged tensor that row |row| of its first level is.
static weir_status_t* cut_row(const weir_kernel_ctx_t* ctx, int levels, int64_t row,
                              weir_parcel_t* out) {
  weir_tensor_t* values = ctx->inputs[levels].tensor;
  int64_t begin = row, end = row + 1;
  for (int level = 0; level < levels; ++level) {
    const weir_tensor_t* splits = weir_kernel_input(ctx, level);
    WEIR_TRY(check_range(begin, end, splits->count - 1));
    if (level > 0) WEIR_TRY(cut_splits(splits, begin, end, &out->items[level - 1]));
    begin = weir_tensor_int_at(splits, begin);
    end = weir_tensor_int_at(splits, end);
  }
  WEIR_TRY(check_range(begin, end, values->dims[0]));
  return weir_tensor_slice(values, begin, end, &out->items[out->count - 1]);
}

// Row |row| of a dense tensor, without that dimension.
static weir_status_t* cut_dense(weir_tensor_t* values, int64_t row, weir_tensor_t** out) {
  weir_tensor_t* slice = NULL;
  WEIR_TRY(weir_tensor_slice(values, row, row + 1, &slice));
  weir_status_t* status = weir_tensor_reshape(slice, values->rank - 1, values->dims + 1, out);
  weir_tensor_release(slice);
  return status;
}

static weir_status_t* put_row(const weir_kernel_ctx_t* ctx, int levels, int64_t row,
                              weir_tensor_t* out) {
  weir_parcel_t* parcel = NULL;
  WEIR_TRY(weir_parcel_create(&weir_ragged_variant_type, levels > 0 ? levels : 1, &parcel));
  weir_status_t* status = levels > 0 ? cut_row(ctx, levels, row, parcel)
                                     : cut_dense(ctx->inputs[0].tensor, row, &parcel->items[0]);
  if (status) weir_variant_release(&parcel->base);
  else weir_parcel_put(out, row, parcel);
  return status;
}

static weir_status_t* put_whole(weir_kernel_ctx_t* ctx, int levels) {
  weir_tensor_t* out = NULL;
  weir_parcel_t* parcel = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, 0, NULL, &out));
  WEIR_TRY(weir_parcel_create(&weir_ragged_variant_type, levels + 1, &parcel));
  for (int i = 0; i <= levels; ++i) parcel->items[i] = weir_tensor_retain(ctx->inputs[i].tensor);
  weir_parcel_put(out, 0, parcel);
  return NULL;
}

static weir_status_t* to_variant_cpu(weir_kernel_ctx_t* ctx) {
  const int levels = (int)weir_attrs_int(weir_kernel_attrs(ctx), "RAGGED_RANK");
  const weir_tensor_t* values = weir_kernel_input(ctx, levels);
  weir_tensor_t* out = NULL;
  if (!weir_attrs_bool(weir_kernel_attrs(ctx), "batched_input")) return put_whole(ctx, levels);
  if (values->rank == 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Values rank must be at least 1 where the input is batched");
  }
  for (int i = 0; i < levels; ++i) {
    if (weir_kernel_input(ctx, i)->rank != 1 || weir_kernel_input(ctx, i)->count == 0)
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Invalid ragged splits: they must be a vector and not empty");
  }
  const int64_t rows = levels > 0 ? weir_kernel_input(ctx, 0)->count - 1 : values->dims[0];
  WEIR_TRY(weir_kernel_output(ctx, 0, 1, &rows, &out));
  for (int64_t r = 0; r < rows; ++r) WEIR_TRY(put_row(ctx, levels, r, out));
  return NULL;
}

static weir_status_t* to_variant_grad(weir_grad_ctx_t* g) {
  const int levels = g->node->input_count - 1;
  weir_edge_t values = weir_grad_input(g, levels);
  weir_edge_t splits =
      levels > 0 ? weir_grad_input(g, 0) : weir_build_scalar(g->builder, WEIR_DTYPE_INT32, 0);
  weir_edge_t dx =
      weir_grad_node_with(g, "RaggedTensorToVariantGradient",
                          WEIR_EDGES(weir_grad_dy(g, 0), splits, weir_grad_shape_of(g, values)),
                          WEIR_ATTRS(weir_attr_type("Tvalues", weir_grad_dtype(g, values))));
  return weir_grad_set(g, levels, dx);
}

// ---- RaggedTensorFromVariant ----

static weir_status_t* from_variant_shape(weir_shape_ctx_t* ctx) {
  const int64_t in_levels = weir_attrs_int(weir_shape_attrs(ctx), "input_ragged_rank");
  const int levels = (int)weir_attrs_int(weir_shape_attrs(ctx), "output_ragged_rank");
  const weir_shape_t* in = weir_shape_input(ctx, 0);
  if (in->rank >= 0 && in_levels >= 0 && levels != in_levels + in->rank) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "output_ragged_rank must be equal to input_ragged_rank + "
                       "encoded_ragged.rank. Found output_ragged_rank: %d, input_ragged_rank: "
                       "%" PRId64 ", encoded_ragged.rank: %d.",
                       levels, in_levels, in->rank);
  }
  for (int i = 0; i < levels; ++i) WEIR_TRY(weir_shape_set_vector(ctx, i, -1));
  return weir_shape_set(ctx, levels, &weir_shape_unknown);
}

static weir_status_t* check_component(const weir_kernel_ctx_t* ctx, const weir_tensor_t* in,
                                      int64_t i, int64_t given_levels) {
  const int64_t in_levels = WEIR_MAX(given_levels, 0);
  const weir_parcel_t* parcel = weir_parcel_at(in, i, &weir_ragged_variant_type);
  const int levels = ctx->output_count - 1;
  if (!parcel) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Input Variant element at index %" PRId64
                       " doesn't hold a RaggedTensorVariant: %s",
                       i, weir_variant_name_at(in, i));
  }
  if (parcel->count - 1 != in_levels) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Encoded input RaggedTensorVariant has ragged_rank=%d.  Expected "
                       "ragged_rank=%" PRId64 ".",
                       parcel->count - 1, in_levels);
  }
  if (weir_tensor_type(parcel->items[in_levels]) != ctx->node->output_types[levels]) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Expected values Tensor dtype: %s, found: %s",
                       weir_dtype_name(ctx->node->output_types[levels]),
                       weir_dtype_name(weir_tensor_type(parcel->items[in_levels])));
  }
  for (int64_t k = 0; k < in_levels; ++k) {
    if (weir_tensor_type(parcel->items[k]) == ctx->node->output_types[0]) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "Expected row_splits Tensor dtype: %s, found: %s",
                       weir_dtype_name(ctx->node->output_types[0]),
                       weir_dtype_name(weir_tensor_type(parcel->items[k])));
  }
  const weir_tensor_t* values = parcel->items[in_levels];
  if (in->rank > 0 && given_levels >= 0 && values->rank < 1)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Ragged values must have rank >= 1; encoded scalar element "
                       "at index %" PRId64 " has values Tensor: rank 0",
                       i);
  return NULL;
}

// Splits of the dimensions of the variant tensor but the last: all rows have one length.
static weir_status_t* write_outer(weir_kernel_ctx_t* ctx, const weir_tensor_t* in) {
  int64_t rows = 1;
  for (int d = 0; d + 1 < in->rank; ++d) {
    weir_tensor_t* splits = NULL;
    rows *= in->dims[d];
    WEIR_TRY(weir_kernel_output(ctx, d, 1, (const int64_t[]){rows + 1}, &splits));
    for (int64_t i = 0; i <= rows; ++i) weir_move_set_int(splits, i, i * in->dims[d + 1]);
  }
  return NULL;
}

// How many rows component |i| has at level |level|: 0 is the first.
static int64_t component_rows(const weir_parcel_t* parcel, int level) {
  const weir_tensor_t* item = parcel->items[level];
  return level + 1 < parcel->count ? item->count - 1 : item->dims[0];
}

// The level of splits that the components themselves are rows of.
static weir_status_t* write_lengths(weir_kernel_ctx_t* ctx, const weir_tensor_t* in) {
  weir_tensor_t* splits = NULL;
  WEIR_TRY(weir_kernel_output(ctx, in->rank - 1, 1, (const int64_t[]){in->count + 1}, &splits));
  int64_t at = 0;
  weir_move_set_int(splits, 0, 0);
  for (int64_t i = 0; i < in->count; ++i) {
    at += component_rows(weir_parcel_at(in, i, &weir_ragged_variant_type), 0);
    weir_move_set_int(splits, i + 1, at);
  }
  return NULL;
}

static weir_status_t* join_splits(weir_kernel_ctx_t* ctx, const weir_tensor_t* in, int level) {
  weir_tensor_t* splits = NULL;
  int64_t count = 1, at = 0, offset = 0;
  for (int64_t i = 0; i < in->count; ++i)
    count += weir_parcel_at(in, i, &weir_ragged_variant_type)->items[level]->count - 1;
  WEIR_TRY(weir_kernel_output(ctx, in->rank + level, 1, &count, &splits));
  weir_move_set_int(splits, 0, 0);
  for (int64_t i = 0; i < in->count; ++i) {
    const weir_tensor_t* own = weir_parcel_at(in, i, &weir_ragged_variant_type)->items[level];
    for (int64_t k = 1; k < own->count; ++k)
      weir_move_set_int(splits, ++at, offset + weir_tensor_int_at(own, k));
    if (own->count > 0) offset += weir_tensor_int_at(own, own->count - 1);
  }
  return NULL;
}

static weir_status_t* join_values(weir_kernel_ctx_t* ctx, const weir_tensor_t* in, int level) {
  weir_tensor_t* out = NULL;
  int64_t dims[WEIR_MAX_RANK] = {0};
  int rank = 1;
  int64_t rows = 0, at = 0;
  for (int64_t i = 0; i < in->count; ++i) {
    const weir_tensor_t* own = weir_parcel_at(in, i, &weir_ragged_variant_type)->items[level];
    bool fits = i == 0 || (own->rank == rank && memcmp(own->dims + 1, dims + 1,
                                                       sizeof(int64_t) * (size_t)(rank - 1)) == 0);
    if (!fits) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "All flat_values must have compatible shapes.  Shape at index 0: its rank "
                         "is %d.  Shape at index %" PRId64 ": its rank is %d.",
                         rank, i, own->rank);
    }
    rank = own->rank;
    memcpy(dims, own->dims, sizeof(int64_t) * (size_t)rank);
    rows += own->dims[0];
  }
  dims[0] = rows;
  WEIR_TRY(weir_kernel_output(ctx, ctx->output_count - 1, rank, dims, &out));
  for (int64_t i = 0; i < in->count; ++i) {
    const weir_tensor_t* own = weir_parcel_at(in, i, &weir_ragged_variant_type)->items[level];
    WEIR_TRY(
        weir_elements_copy(weir_tensor_type(out), weir_sparse_at(out, at), own->data, own->count));
    at += own->count;
  }
  return NULL;
}

// Components that are dense tensors without rows, each a row of the values.
static weir_status_t* stack_values(weir_kernel_ctx_t* ctx, const weir_tensor_t* in) {
  weir_tensor_t* out = NULL;
  int64_t dims[WEIR_MAX_RANK] = {in->count};
  const weir_tensor_t* first =
      in->count > 0 ? weir_parcel_at(in, 0, &weir_ragged_variant_type)->items[0] : NULL;
  const int rank = first ? first->rank : 0;
  if (rank + 1 > WEIR_MAX_RANK)
    return WEIR_STATUS(INVALID_ARGUMENT, "Too many dimensions in tensor: %d", rank + 1);
  if (first) memcpy(dims + 1, first->dims, sizeof(int64_t) * (size_t)rank);
  WEIR_TRY(weir_kernel_output(ctx, ctx->output_count - 1, rank + 1, dims, &out));
  for (int64_t i = 0; i < in->count; ++i) {
    const weir_tensor_t* own = weir_parcel_at(in, i, &weir_ragged_variant_type)->items[0];
    if (!first || !weir_tensor_same_shape(own, first)) {
      return WEIR_STATUS(
          INVALID_ARGUMENT,
          "All flat_values must have compatible shapes, that at index %" PRId64 " has not", i);
    }
    WEIR_TRY(weir_elements_copy(weir_tensor_type(out), weir_sparse_at(out, i * own->count),
                                own->data, own->count));
  }
  return NULL;
}

static weir_status_t* from_variant_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const int levels = ctx->output_count - 1;
  int64_t in_levels = weir_attrs_int(weir_kernel_attrs(ctx), "input_ragged_rank");
  if (in_levels < 0) in_levels = levels - in->rank;
  const bool is_stack = in->rank == 1 && levels == 0;  // of dense tensors
  if (in_levels < 0 && !is_stack) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Inferred input_ragged_rank (output_ragged_rank - encoded_variant.dims()) "
                       "must be >= 0, found output_ragged_rank: %d, encoded_variant.dims(): %d, "
                       "inferred input_ragged_rank: %" PRId64,
                       levels, in->rank, in_levels);
  }
  if (levels != in_levels + in->rank) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "output_ragged_rank must be equal to input_ragged_rank + "
                       "encoded_ragged.dims(); output_ragged_rank: %d, input_ragged_rank: %" PRId64
                       ", encoded_variant.dims(): %d.",
                       levels, in_levels, in->rank);
  }
  for (int64_t i = 0; i < in->count; ++i) WEIR_TRY(check_component(ctx, in, i, in_levels));
  if (in_levels < 0) {
    WEIR_TRY(write_outer(ctx, in));
    return stack_values(ctx, in);
  }
  if (in->rank == 0) {
    const weir_parcel_t* parcel = weir_parcel_at(in, 0, &weir_ragged_variant_type);
    for (int k = 0; k < parcel->count; ++k)
      weir_kernel_set(ctx, k, weir_tensor_retain(parcel->items[k]));
    return NULL;
  }
  WEIR_TRY(write_outer(ctx, in));
  WEIR_TRY(write_lengths(ctx, in));
  for (int k = 0; k < in_levels; ++k) WEIR_TRY(join_splits(ctx, in, k));
  return join_values(ctx, in, (int)in_levels);
}

static weir_status_t* from_variant_grad(weir_grad_ctx_t* g) {
  const int levels = g->node->output_count - 1;
  const int rank = weir_grad_shape(g, weir_grad_input(g, 0))->rank;
  if (rank > 1) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Unable to compute gradient: RaggedTensorToVariant can currently only "
                       "generate 0D or 1D output.");
  }
  const bool is_batched = rank < 0 ? levels > 0 : rank == 1;
  weir_edge_t* edges = weir_alloc_array((size_t)levels + 1, sizeof(*edges));
  if (!edges) return weir_out_of_memory();
  for (int i = 0; i < levels; ++i) edges[i] = weir_grad_output(g, i);
  edges[levels] = weir_grad_dy(g, levels);
  weir_edge_t dx = weir_grad_node_with(
      g, "RaggedTensorToVariant", (weir_edges_t){.items = edges, .count = levels + 1},
      WEIR_ATTRS(weir_attr_int("RAGGED_RANK", levels), weir_attr_bool("batched_input", is_batched),
                 weir_attr_type("Tsplits", weir_attrs_type(weir_grad_attrs(g), "Tsplits"))));
  weir_free(edges);
  return weir_grad_set(g, 0, dx);
}

// ---- RaggedTensorToVariantGradient ----

static weir_status_t* gradient_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* out = NULL;
  WEIR_TRY(weir_shape_from_value_or_scalar(ctx, 2, &out));
  return weir_shape_set(ctx, 0, out);
}

static weir_status_t* gradient_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  int64_t dims[WEIR_MAX_RANK];
  int rank = 0;
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_ints(ctx, 2, dims, WEIR_MAX_RANK, &rank));
  WEIR_TRY(weir_kernel_output(ctx, 0, rank, dims, &out));
  weir_move_zero(weir_tensor_type(out), out->data, out->count);
  int64_t at = 0;
  for (int64_t i = 0; i < in->count; ++i) {
    const weir_parcel_t* parcel = weir_parcel_at(in, i, &weir_ragged_variant_type);
    if (!parcel) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Input Variant element at index %" PRId64
                         " doesn't hold a RaggedTensorVariant: %s",
                         i, weir_variant_name_at(in, i));
    }
    const weir_tensor_t* values = parcel->items[parcel->count - 1];
    if (weir_tensor_type(values) != weir_tensor_type(out) || values->count > out->count - at) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "The gradient of element %" PRId64 " does not fit the values", i);
    }
    WEIR_TRY(weir_elements_copy(weir_tensor_type(out), weir_sparse_at(out, at), values->data,
                                values->count));
    at += values->count;
  }
  return NULL;
}

const weir_op_module_t weir_ops_ragged_variant = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "RaggedTensorToVariant",
         .attrs = "RAGGED_RANK: int >= 0; Tvalues: type; Tsplits: {int32, int64} = DT_INT64; "
                  "batched_input: bool",
         .inputs = "rt_nested_splits: RAGGED_RANK * Tsplits; rt_dense_values: Tvalues",
         .outputs = "encoded_ragged: variant",
         .summary = "A ragged tensor as a variant, or its rows as variants.",
         .infer_shape = to_variant_shape,
         .build_grad = to_variant_grad,
         .kernels = WEIR_CPU_KERNEL(.types = RAGGED_VALUES("Tvalues"), .compute = to_variant_cpu)},
        {.name = "RaggedTensorFromVariant",
         .attrs = "input_ragged_rank: int >= -1; output_ragged_rank: int >= 0; Tvalues: type; "
                  "Tsplits: {int32, int64} = DT_INT64",
         .inputs = "encoded_ragged: variant",
         .outputs = "output_nested_splits: output_ragged_rank * Tsplits; output_dense_values: "
                    "Tvalues",
         .summary = "The ragged tensor that variants are, stacked where there are several.",
         .infer_shape = from_variant_shape,
         .build_grad = from_variant_grad,
         .kernels =
             WEIR_CPU_KERNEL(.types = RAGGED_VALUES("Tvalues"), .compute = from_variant_cpu)},
        {.name = "RaggedTensorToVariantGradient",
         .attrs = "Tvalues: type; Tsplits: {int32, int64} = DT_INT64",
         .inputs = "encoded_ragged_grad: variant; row_splits: Tsplits; dense_values_shape: int32",
         .outputs = "dense_values_grad: Tvalues",
         .summary = "The gradient of RaggedTensorToVariant with respect to the values.",
         .infer_shape = gradient_shape,
         .kernels = WEIR_CPU_KERNEL(.types = RAGGED_VALUES("Tvalues"), .compute = gradient_cpu,
                                    .host_inputs = "dense_values_shape")},
        {0}}};

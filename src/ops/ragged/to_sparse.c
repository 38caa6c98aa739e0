// to_sparse.c — RaggedTensorToSparse: a ragged tensor as a sparse one.
#include "ops/math/common.h"
#include "ops/ragged/ragged.h"

static weir_status_t* to_sparse_shape(weir_shape_ctx_t* ctx) {
  const int splits = (int)weir_attrs_int(weir_shape_attrs(ctx), "RAGGED_RANK");
  const weir_shape_t* values = weir_shape_input(ctx, splits);
  for (int i = 0; i < splits; ++i)
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), 1, NULL));
  WEIR_TRY(weir_shape_at_least(ctx, values, 1));
  const int64_t count = weir_sparse_shape_elements(values);
  return weir_sparse_shape_set(ctx, 0, count, values->rank < 0 ? -1 : values->rank + splits);
}

// Checks one level, whose rows are made of |length| parts.
static weir_status_t* check_level(const weir_tensor_t* splits, int64_t length) {
  if (splits->count == 0) return WEIR_STATUS(INVALID_ARGUMENT, "ragged splits may not be empty.");
  if (weir_tensor_int_at(splits, 0) != 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "First value of ragged splits must be 0.");
  for (int64_t i = 1; i < splits->count; ++i) {
    int64_t before = weir_tensor_int_at(splits, i - 1), after = weir_tensor_int_at(splits, i);
    if (before <= after) continue;
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Ragged splits should be non decreasing, but we got %" PRId64
                       " followed by %" PRId64,
                       before, after);
  }
  if (weir_tensor_int_at(splits, splits->count - 1) != length) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Final value of ragged splits must match the length the corresponding "
                       "ragged values.");
  }
  return NULL;
}

static weir_status_t* check_levels(const weir_kernel_ctx_t* ctx, int count,
                                   const weir_tensor_t* values) {
  for (int i = 0; i < count; ++i) {
    int64_t length = i + 1 < count      ? weir_kernel_input(ctx, i + 1)->count - 1
                     : values->rank > 0 ? values->dims[0]
                                        : -1;
    WEIR_TRY(check_level(weir_kernel_input(ctx, i), length));
  }
  return NULL;
}

// Writes the first |depth| indices of every part of level |depth| - 1's rows: |rows| has |width|
// places each, the first |depth| - 1 of which are those of the rows before.
static void spread(const weir_tensor_t* splits, int depth, int64_t width, const int64_t* from,
                   int64_t* to) {
  for (int64_t r = 0; r + 1 < splits->count; ++r) {
    int64_t begin = weir_tensor_int_at(splits, r), end = weir_tensor_int_at(splits, r + 1);
    for (int64_t i = begin; i < end; ++i) {
      memcpy(to + i * width, from + r * width, sizeof(int64_t) * (size_t)depth);
      to[i * width + depth] = i - begin;
    }
  }
}

// The indices of every row of the values, in |prefixes|, with |width| places each. |scratch| is as
// large.
static void find_prefixes(const weir_kernel_ctx_t* ctx, int levels, int64_t* prefixes,
                          int64_t* scratch) {
  const int64_t width = levels + 1;
  int64_t* from = levels % 2 ? scratch : prefixes;
  int64_t* to = levels % 2 ? prefixes : scratch;
  const int64_t rows = weir_kernel_input(ctx, 0)->count - 1;
  for (int64_t r = 0; r < rows; ++r) from[r * width] = r;
  for (int level = 0; level < levels; ++level) {
    spread(weir_kernel_input(ctx, level), level + 1, width, from, to);
    int64_t* swap = from;
    from = to;
    to = swap;
  }
}

static weir_status_t* write_indices(weir_kernel_ctx_t* ctx, int levels, const weir_tensor_t* values,
                                    const int64_t* prefixes) {
  const int rank = levels + values->rank, inner_rank = values->rank - 1;
  weir_tensor_t* out = NULL;
  int64_t inner = 1;
  for (int d = 1; d < values->rank; ++d) inner *= values->dims[d];
  WEIR_TRY(weir_kernel_output(ctx, 0, 2, (const int64_t[]){values->count, rank}, &out));
  for (int64_t i = 0; i < values->count; ++i) {
    int64_t* row = WEIR_TENSOR_DATA(out, int64_t) + i * rank;
    memcpy(row, prefixes + i / inner * (levels + 1), sizeof(int64_t) * (size_t)(levels + 1));
    int64_t rest = i % inner;
    for (int d = inner_rank; d > 0; --d) {
      row[levels + d] = rest % values->dims[d];
      rest /= values->dims[d];
    }
  }
  return NULL;
}

static weir_status_t* write_shape(weir_kernel_ctx_t* ctx, int levels, const weir_tensor_t* values) {
  int64_t dims[WEIR_MAX_RANK];
  dims[0] = weir_kernel_input(ctx, 0)->count - 1;
  for (int level = 0; level < levels; ++level) {
    const weir_tensor_t* splits = weir_kernel_input(ctx, level);
    int64_t widest = 0;
    for (int64_t r = 0; r + 1 < splits->count; ++r) {
      widest = WEIR_MAX(widest, weir_tensor_int_at(splits, r + 1) - weir_tensor_int_at(splits, r));
    }
    dims[level + 1] = widest;
  }
  for (int d = 1; d < values->rank; ++d) dims[levels + d] = values->dims[d];
  return weir_sparse_output_vector(ctx, 2, dims, levels + values->rank);
}

static weir_status_t* to_sparse_cpu(weir_kernel_ctx_t* ctx) {
  const int levels = (int)weir_attrs_int(weir_kernel_attrs(ctx), "RAGGED_RANK");
  const weir_tensor_t* values = weir_kernel_input(ctx, levels);
  WEIR_TRY(check_levels(ctx, levels, values));
  if (levels + values->rank > WEIR_MAX_RANK)
    return WEIR_STATUS(INVALID_ARGUMENT, "The ragged tensor has too many dimensions");
  int64_t most = values->dims[0];
  for (int i = 0; i < levels; ++i) most = WEIR_MAX(most, weir_kernel_input(ctx, i)->count);
  const size_t size = sizeof(int64_t) * (size_t)(levels + 1);
  int64_t* prefixes = weir_alloc_array((size_t)most, size);
  int64_t* scratch = weir_alloc_array((size_t)most, size);
  weir_status_t* status = prefixes && scratch ? NULL : weir_out_of_memory();
  if (!status) {
    find_prefixes(ctx, levels, prefixes, scratch);
    status = write_indices(ctx, levels, values, prefixes);
  }
  weir_free(prefixes);
  weir_free(scratch);
  weir_tensor_t* flat = NULL;
  if (!status) status = write_shape(ctx, levels, values);
  if (!status) status = weir_tensor_reshape(ctx->inputs[levels].tensor, 1, &values->count, &flat);
  if (!status) weir_kernel_set(ctx, 1, flat);
  return status;
}

static weir_status_t* to_sparse_grad(weir_grad_ctx_t* g) {
  const int levels = (int)weir_attrs_int(weir_grad_attrs(g), "RAGGED_RANK");
  weir_edge_t shape = weir_grad_shape_of(g, weir_grad_input(g, levels));
  return weir_grad_set(g, levels, node2(g, "Reshape", weir_grad_dy(g, 1), shape));
}

const weir_op_module_t weir_ops_ragged_to_sparse = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "RaggedTensorToSparse",
         .attrs = "RAGGED_RANK: int >= 1; T: type; Tsplits: {int32, int64} = DT_INT64",
         .inputs = "rt_nested_splits: RAGGED_RANK * Tsplits; rt_dense_values: T",
         .outputs = "sparse_indices: int64; sparse_values: T; sparse_dense_shape: int64",
         .flags = WEIR_OP_VIEW,
         .summary = "A ragged tensor as a sparse one.",
         .infer_shape = to_sparse_shape,
         .build_grad = to_sparse_grad,
         .kernels = WEIR_CPU_KERNEL(.compute = to_sparse_cpu)},
        {0}}};

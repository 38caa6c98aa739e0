// gather.c — RaggedGather: rows of a ragged tensor by number.
#include "ops/array/common.h"
#include "ops/math/common.h"
#include "ops/ragged/ragged.h"

static weir_status_t* gather_shape(weir_shape_ctx_t* ctx) {
  const int splits = (int)weir_attrs_int(weir_shape_attrs(ctx), "PARAMS_RAGGED_RANK");
  const int out_splits = (int)weir_attrs_int(weir_shape_attrs(ctx), "OUTPUT_RAGGED_RANK");
  const weir_shape_t* values = weir_shape_input(ctx, splits);
  const weir_shape_t* indices = weir_shape_input(ctx, splits + 1);
  for (int i = 0; i < splits; ++i)
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), 1, NULL));
  WEIR_TRY(weir_shape_at_least(ctx, values, 1));
  if (indices->rank >= 0 && indices->rank + splits - 1 != out_splits) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "OUTPUT_RAGGED_RANK must be the rank of indices and PARAMS_RAGGED_RANK - 1: "
                       "%d, not %d",
                       indices->rank + splits - 1, out_splits);
  }
  for (int i = 0; i < out_splits; ++i) WEIR_TRY(weir_shape_set_vector(ctx, i, -1));
  if (values->rank < 0) return weir_shape_set(ctx, out_splits, &weir_shape_unknown);
  int64_t dims[WEIR_MAX_RANK];
  memcpy(dims, values->dims, sizeof(int64_t) * (size_t)values->rank);
  dims[0] = -1;
  return weir_shape_set_dims(ctx, out_splits, values->rank, dims);
}

typedef struct params_t {
  const weir_kernel_ctx_t* ctx;
  int splits;  // inputs 0 to splits - 1
  const weir_tensor_t* values;
  const weir_tensor_t* indices;
} params_t;

static weir_status_t* check_indices(const params_t* p) {
  const int64_t rows = weir_kernel_input(p->ctx, 0)->dims[0] - 1;
  for (int64_t i = 0; i < p->indices->count; ++i) {
    int64_t row = weir_tensor_int_at(p->indices, i);
    if (row >= 0 && row < rows) continue;
    char place[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "indices%s = %" PRId64 " is not in [0, %" PRId64 ")",
                       array_place_text(p->indices, i, place), row, rows);
  }
  return NULL;
}

// The splits of a level lead into what comes next, in order: also those that nobody asks for. As in
// TensorFlow, the last may be one more than there are rows.
static weir_status_t* check_level(const params_t* p, int level) {
  const weir_tensor_t* splits = weir_kernel_input(p->ctx, level);
  const int64_t count = splits->count;
  const int64_t most =
      level + 1 < p->splits ? weir_kernel_input(p->ctx, level + 1)->count : p->values->dims[0];
  if (count == 0) return WEIR_STATUS(INVALID_ARGUMENT, "Ragged splits may not be empty");
  if (weir_tensor_int_at(splits, 0) < 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "Ragged splits must be non-negative");
  if (weir_tensor_int_at(splits, count - 1) > most)
    return WEIR_STATUS(INVALID_ARGUMENT, "Ragged splits must not point past values");
  for (int64_t i = 1; i < count; ++i) {
    if (weir_tensor_int_at(splits, i - 1) > weir_tensor_int_at(splits, i))
      return WEIR_STATUS(INVALID_ARGUMENT, "Ragged splits must be sorted");
  }
  return NULL;
}

static weir_status_t* check_params(const params_t* p) {
  if (weir_kernel_input(p->ctx, 0)->rank == 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "Split tensors must not be scalars");
  if (p->values->rank == 0) return WEIR_STATUS(INVALID_ARGUMENT, "params.rank must be nonzero");
  WEIR_TRY(check_indices(p));
  for (int i = 0; i < p->splits; ++i) WEIR_TRY(check_level(p, i));
  return NULL;
}

// Appends the lengths of rows [begin, end) of |level| to output |out|, from |*at| on, and says what
// range of the next level they cover.
typedef struct output_t {
  weir_tensor_t* splits;
  int64_t at;
} output_t;

// What is gathered: ranges of the values. |outs| may be NULL: only counts.
typedef struct walk_t {
  const params_t* p;
  int64_t* counts;  // rows of each level of the output
  output_t* outs;   // one a level
  weir_tensor_t* values;
  int64_t value_at;
  int64_t inner;
} walk_t;

static weir_status_t* take_row(walk_t* w, int64_t row) {
  int64_t begin = row, end = row + 1;
  for (int level = 0; level < w->p->splits; ++level) {
    const weir_tensor_t* splits = weir_kernel_input(w->p->ctx, level);
    for (int64_t r = begin; r < end; ++r) {
      int64_t a = weir_tensor_int_at(splits, r), b = weir_tensor_int_at(splits, r + 1);
      if (w->outs && w->outs[level].splits) {
        output_t* out = &w->outs[level];
        int64_t before = weir_tensor_int_at(out->splits, out->at);
        weir_move_set_int(out->splits, ++out->at, before + b - a);
      }
    }
    w->counts[level] += end - begin;
    begin = weir_tensor_int_at(splits, begin);
    end = weir_tensor_int_at(splits, end);
    if (level + 1 < w->p->splits && end >= weir_kernel_input(w->p->ctx, level + 1)->count)
      return WEIR_STATUS(INVALID_ARGUMENT, "Ragged splits must not point past values");
  }
  if (w->values) {
    WEIR_TRY(weir_elements_copy(
        weir_tensor_type(w->values), weir_sparse_at(w->values, w->value_at * w->inner),
        weir_sparse_at(w->p->values, begin * w->inner), (end - begin) * w->inner));
  }
  w->value_at += end - begin;
  return NULL;
}

static weir_status_t* take_rows(walk_t* w) {
  w->value_at = 0;
  memset(w->counts, 0, sizeof(int64_t) * (size_t)w->p->splits);
  for (int64_t i = 0; i < w->p->indices->count; ++i)
    WEIR_TRY(take_row(w, weir_tensor_int_at(w->p->indices, i)));
  return NULL;
}

// The splits that indices of more dimensions bring: all rows of one length.
static weir_status_t* write_outer(weir_kernel_ctx_t* ctx, const weir_tensor_t* indices) {
  int64_t rows = 1;
  for (int d = 0; d + 1 < indices->rank; ++d) {
    weir_tensor_t* splits = NULL;
    rows *= indices->dims[d];
    WEIR_TRY(weir_kernel_output(ctx, d, 1, (const int64_t[]){rows + 1}, &splits));
    for (int64_t i = 0; i <= rows; ++i) weir_move_set_int(splits, i, i * indices->dims[d + 1]);
  }
  return NULL;
}

static weir_status_t* write_gathered(weir_kernel_ctx_t* ctx, walk_t* w) {
  const params_t* p = w->p;
  const int outer = p->indices->rank - 1;
  int64_t dims[WEIR_MAX_RANK];
  WEIR_TRY(take_rows(w));
  for (int level = 0; level < p->splits; ++level) {
    if (outer + level < 0) continue;  // one row: its length is that of the values
    WEIR_TRY(weir_kernel_output(ctx, outer + level, 1, (const int64_t[]){w->counts[level] + 1},
                                &w->outs[level].splits));
    weir_move_set_int(w->outs[level].splits, 0, 0);
  }
  memcpy(dims, p->values->dims, sizeof(int64_t) * p->values->rank);
  dims[0] = w->value_at;
  WEIR_TRY(weir_kernel_output(ctx, ctx->output_count - 1, p->values->rank, dims, &w->values));
  return take_rows(w);
}

static weir_status_t* gather_cpu(weir_kernel_ctx_t* ctx) {
  const int splits = (int)weir_attrs_int(weir_kernel_attrs(ctx), "PARAMS_RAGGED_RANK");
  params_t p = {.ctx = ctx,
                .splits = splits,
                .values = weir_kernel_input(ctx, splits),
                .indices = weir_kernel_input(ctx, splits + 1)};
  WEIR_TRY(check_params(&p));
  if (p.indices->rank + splits - 1 != ctx->output_count - 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "OUTPUT_RAGGED_RANK does not fit the rank of indices");
  }
  WEIR_TRY(write_outer(ctx, p.indices));
  walk_t w = {.p = &p,
              .counts = weir_calloc((size_t)splits, sizeof(int64_t)),
              .outs = weir_calloc((size_t)splits, sizeof(output_t)),
              .inner = 1};
  for (int d = 1; d < p.values->rank; ++d) w.inner *= p.values->dims[d];
  weir_status_t* status = w.counts && w.outs ? write_gathered(ctx, &w) : weir_out_of_memory();
  weir_free(w.counts);
  weir_free(w.outs);
  return status;
}

// ---- gradient ----

static weir_edge_t gather_rows(weir_grad_ctx_t* g, weir_edge_t from, weir_edge_t indices) {
  return node3(g, "GatherV2", from, indices, weir_build_int32(g->builder, 0));
}

// The gradient has rows where the gathered values came from.
static weir_status_t* gather_grad(weir_grad_ctx_t* g) {
  const int splits = (int)weir_attrs_int(weir_grad_attrs(g), "PARAMS_RAGGED_RANK");
  const int32_t minus_one[] = {-1};
  weir_edge_t values = weir_grad_input(g, splits);
  weir_edge_t flat = node2(g, "Reshape", weir_grad_input(g, splits + 1),
                           weir_build_int32s(g->builder, minus_one, 1));
  weir_edge_t all = weir_grad_input(g, 0);
  for (int i = 1; i < splits; ++i) all = gather_rows(g, weir_grad_input(g, i), all);
  weir_edge_t next = node2(g, "AddV2", flat, weir_grad_scalar(g, flat, 1));
  weir_edge_t begin = gather_rows(g, all, flat);
  weir_edge_t range =
      node3(g, "RaggedRange", begin, gather_rows(g, all, next), weir_grad_scalar(g, begin, 1));
  weir_edge_t dy = weir_grad_dy(g, g->node->output_count - 1);
  return weir_grad_set_slices(g, splits, dy, weir_build_output(range, 1),
                              weir_grad_shape_of(g, values));
}

const weir_op_module_t weir_ops_ragged_gather = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "RaggedGather",
         .attrs = "Tvalues: type; Tindices: {int32, int64}; Tsplits: {int32, int64} = DT_INT64; "
                  "PARAMS_RAGGED_RANK: int >= 1; OUTPUT_RAGGED_RANK: int >= 0",
         .inputs = "params_nested_splits: PARAMS_RAGGED_RANK * Tsplits; params_dense_values: "
                   "Tvalues; indices: Tindices",
         .outputs = "output_nested_splits: OUTPUT_RAGGED_RANK * Tsplits; output_dense_values: "
                    "Tvalues",
         .summary = "Rows of a ragged tensor by number.",
         .infer_shape = gather_shape,
         .build_grad = gather_grad,
         .kernels = WEIR_CPU_KERNEL(.types = RAGGED_VALUES("Tvalues"), .compute = gather_cpu)},
        {0}}};

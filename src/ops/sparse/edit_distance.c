// edit_distance.c — EditDistance: how many elements must be added, removed or replaced to make one
// sequence of another, for the rows of two sparse tensors.
#include <math.h>

#include "base/interrupt.h"
#include "ops/sparse/sparse.h"
#include "tensor/cast.h"

// Constant values of both shapes make the result's known.
static weir_status_t* distance_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_sparse_shape_validate(ctx, 0));
  WEIR_TRY(weir_sparse_shape_validate(ctx, 3));
  const weir_tensor_t* a = weir_shape_value(ctx, 2);
  const weir_tensor_t* b = weir_shape_value(ctx, 5);
  int64_t dims[WEIR_MAX_RANK];
  if (!a || !b || a->count > WEIR_MAX_RANK) return weir_shape_set(ctx, 0, &weir_shape_unknown);
  if (a->count != b->count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Num elements of hypothesis_shape does not match truth_shape: %" PRId64
                       " vs. %" PRId64,
                       a->count, b->count);
  }
  if (a->count < 2) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Input Hypothesis SparseTensors must have rank at least 2, but "
                       "hypothesis_shape rank is: %" PRId64,
                       a->count);
  }
  for (int64_t d = 0; d < a->count - 1; ++d) {
    dims[d] = WEIR_MAX(WEIR_TENSOR_DATA(a, int64_t)[d], WEIR_TENSOR_DATA(b, int64_t)[d]);
    if (dims[d] < 0) return weir_shape_set(ctx, 0, &weir_shape_unknown);
  }
  return weir_shape_set_dims(ctx, 0, (int)a->count - 1, dims);
}

static weir_status_t* check_ranks(const weir_sparse_t* s, const char* name) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  const struct {
    const weir_tensor_t* tensor;
    const char* what;
    int rank;
  } parts[] = {{s->indices, "indices", 2}, {s->values, "values", 1}, {s->shape, "shape", 1}};
  for (int i = 0; i < 3; ++i) {
    if (parts[i].tensor->rank == parts[i].rank) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "%s_%s should be a %s, but got shape: %s", name,
                       parts[i].what, i == 0 ? "matrix" : "vector",
                       weir_tensor_shape_text(parts[i].tensor, text));
  }
  return NULL;
}

static weir_status_t* check_counts(const weir_sparse_t* s, const char* name) {
  char x[WEIR_SHAPE_TEXT_SIZE], y[WEIR_SHAPE_TEXT_SIZE];
  if (s->count != s->values->count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Expected %s_values.NumElements == #rows(%s_indices), their shapes are: %s "
                       "and %s",
                       name, name, weir_tensor_shape_text(s->values, x),
                       weir_tensor_shape_text(s->indices, y));
  }
  if (s->indices->dims[1] != s->shape->count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Expected %s_shape.NumElements == #cols(%s_indices), their shapes are: %s "
                       "and %s",
                       name, name, weir_tensor_shape_text(s->shape, x),
                       weir_tensor_shape_text(s->indices, y));
  }
  return NULL;
}

static weir_status_t* read_inputs(const weir_kernel_ctx_t* ctx, weir_sparse_t* hypothesis,
                                  weir_sparse_t* truth) {
  weir_sparse_get(weir_kernel_input(ctx, 0), weir_kernel_input(ctx, 1), weir_kernel_input(ctx, 2),
                  hypothesis);
  weir_sparse_get(weir_kernel_input(ctx, 3), weir_kernel_input(ctx, 4), weir_kernel_input(ctx, 5),
                  truth);
  WEIR_TRY(check_ranks(hypothesis, "hypothesis"));
  WEIR_TRY(check_ranks(truth, "truth"));
  if (truth->shape->count < 2) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Input SparseTensors must have rank at least 2, but truth_shape rank is: "
                       "%" PRId64,
                       truth->shape->count);
  }
  WEIR_TRY(check_counts(hypothesis, "hypothesis"));
  WEIR_TRY(check_counts(truth, "truth"));
  if (hypothesis->rank != truth->rank) {
    char x[WEIR_SHAPE_TEXT_SIZE], y[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Expected truth and hypothesis to have matching ranks, but their shapes "
                       "are: %s and %s",
                       weir_tensor_shape_text(truth->shape, x),
                       weir_tensor_shape_text(hypothesis->shape, y));
  }
  int64_t count = 0;
  WEIR_TRY(weir_shape_count(WEIR_DTYPE_INT8, hypothesis->rank,
                            WEIR_TENSOR_DATA(hypothesis->shape, int64_t), &count));
  return weir_shape_count(WEIR_DTYPE_INT8, truth->rank, WEIR_TENSOR_DATA(truth->shape, int64_t),
                          &count);
}

// ---- distances ----

typedef struct run_t {
  const weir_sparse_t* s;
  int64_t begin, end;
} run_t;

static run_t next_run(const weir_sparse_t* s, int64_t begin) {
  run_t run = {s, begin, begin};
  while (run.end < s->count && weir_sparse_compare(weir_sparse_row(s, begin),
                                                   weir_sparse_row(s, run.end), s->rank - 1) == 0)
    ++run.end;
  return run;
}

static bool is_same(const weir_tensor_t* a, int64_t i, const weir_tensor_t* b, int64_t j) {
  const void* x = weir_sparse_at(a, i);
  const void* y = weir_sparse_at(b, j);
  const weir_dtype_t dtype = weir_tensor_type(a);
  if (dtype == WEIR_DTYPE_STRING) return weir_view_equal(weir_string_view(x), weir_string_view(y));
  if (memcmp(x, y, weir_dtype_size(dtype)) == 0) return true;
  double p = 0, q = 1;  // 0 and -0
  if (!weir_dtype_is_floating(dtype)) return false;
  weir_element_to_double(dtype, x, &p);
  weir_element_to_double(dtype, y, &q);
  return p == q;
}

// By rows of the usual table: |row| has a place for every element of |b|, and one more.
static weir_status_t* levenshtein(run_t a, run_t b, int64_t* row, int64_t* out_distance) {
  const int64_t n = b.end - b.begin;
  for (int64_t j = 0; j <= n; ++j) row[j] = j;
  for (int64_t i = a.begin; i < a.end; ++i) {
    WEIR_TRY(weir_interrupt_poll(i));
    int64_t diagonal = row[0];
    row[0] = i - a.begin + 1;
    for (int64_t j = 1; j <= n; ++j) {
      int64_t replaced = diagonal + !is_same(a.s->values, i, b.s->values, b.begin + j - 1);
      diagonal = row[j];
      row[j] = WEIR_MIN(replaced, 1 + WEIR_MIN(row[j], row[j - 1]));
    }
  }
  *out_distance = row[n];
  return NULL;
}

static weir_status_t* place_of(const int64_t* group, const weir_tensor_t* out, int64_t* out_place) {
  int64_t place = 0;
  for (int d = 0; d < out->rank; ++d) place = place * out->dims[d] + group[d];
  if (place < 0 || place >= out->count) {
    return WEIR_STATUS(INTERNAL,
                       "Got an inner product %" PRId64
                       " which would require writing to outside of the buffer for the output "
                       "tensor (max elements %" PRId64 ")",
                       place, out->count);
  }
  *out_place = place;
  return NULL;
}

// The distance of a pair of runs, either of which may be missing.
static weir_status_t* distance_of(run_t hypothesis, run_t truth, bool normalizes, int64_t* row,
                                  float* out) {
  const int64_t want = truth.end - truth.begin, got = hypothesis.end - hypothesis.begin;
  int64_t distance = WEIR_MAX(want, got);
  if (want > 0 && got > 0) WEIR_TRY(levenshtein(truth, hypothesis, row, &distance));
  *out = (float)distance;
  if (normalizes) *out = want > 0 ? (float)distance / (float)want : INFINITY;
  return NULL;
}

static weir_status_t* measure(const weir_sparse_t* hypothesis, const weir_sparse_t* truth,
                              bool normalizes, int64_t* row, weir_tensor_t* out) {
  const run_t none = {NULL, 0, 0};
  int64_t i = 0, j = 0;
  while (i < hypothesis->count || j < truth->count) {
    int order = i == hypothesis->count ? 1
                : j == truth->count
                    ? -1
                    : weir_sparse_compare(weir_sparse_row(hypothesis, i), weir_sparse_row(truth, j),
                                          truth->rank - 1);
    run_t a = order <= 0 ? next_run(hypothesis, i) : none;
    run_t b = order >= 0 ? next_run(truth, j) : none;
    const int64_t* group = order <= 0 ? weir_sparse_row(hypothesis, i) : weir_sparse_row(truth, j);
    int64_t place = 0;
    WEIR_TRY(place_of(group, out, &place));
    WEIR_TRY(distance_of(a, b, normalizes, row, WEIR_TENSOR_DATA(out, float) + place));
    if (order <= 0) i = a.end;
    if (order >= 0) j = b.end;
  }
  return NULL;
}

static weir_status_t* distance_cpu(weir_kernel_ctx_t* ctx) {
  weir_sparse_t hypothesis, truth;
  int64_t dims[WEIR_MAX_RANK];
  int64_t count = 0;
  weir_tensor_t* out = NULL;
  WEIR_TRY(read_inputs(ctx, &hypothesis, &truth));
  const int rank = truth.rank - 1;
  WEIR_TRY(weir_sparse_check_dims(truth.dims, truth.rank, NULL));
  for (int d = 0; d < rank; ++d) dims[d] = WEIR_MAX(hypothesis.dims[d], truth.dims[d]);
  WEIR_TRY(weir_sparse_check_dims(dims, rank, &count));
  if (count == 0) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "Got output shape %s which has 0 elements",
                       weir_shape_text(rank, dims, text));
  }
  WEIR_TRY(weir_kernel_output(ctx, 0, rank, dims, &out));
  weir_move_zero(WEIR_DTYPE_FLOAT, out->data, out->count);
  int64_t* row = weir_alloc_array((size_t)hypothesis.count + 1, sizeof(*row));
  if (!row) return weir_out_of_memory();
  weir_status_t* status =
      measure(&hypothesis, &truth, weir_attrs_bool(weir_kernel_attrs(ctx), "normalize"), row, out);
  weir_free(row);
  return status;
}

const weir_op_module_t weir_ops_sparse_edit_distance = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "EditDistance",
         .attrs = "normalize: bool = true; T: type",
         .inputs = "hypothesis_indices: int64; hypothesis_values: T; hypothesis_shape: int64; "
                   "truth_indices: int64; truth_values: T; truth_shape: int64",
         .outputs = "output: float",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "The Levenshtein distances between sequences of two sparse tensors",
         .infer_shape = distance_shape,
         .kernels =
             WEIR_CPU_KERNEL(.types = SPARSE_NUMBER ", bool, string", .compute = distance_cpu)},
        {0}}};

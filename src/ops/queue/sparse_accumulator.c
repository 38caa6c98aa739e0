// sparse_accumulator.c — SparseConditionalAccumulator: means of gradients given as rows, each row
// by its own count.
#include "kernel/elementwise/update.h"
#include "op/shape_ctx.h"
#include "ops/queue/accumulator_resource.h"
#include "tensor/cast.h"

typedef struct sparse_sum_t {
  weir_tensor_t* values;  // rows, one an index
  int64_t* indices;
  int64_t* counts;  // gradients that had the row
  int64_t rows;
} sparse_sum_t;

static void sparse_free(void* sum) {
  sparse_sum_t* s = sum;
  weir_tensor_release(s->values);
  weir_free(s->indices);
  weir_free(s->counts);
  weir_free(s);
}

static sparse_sum_t* sparse_alloc(int64_t rows) {
  sparse_sum_t* s = weir_calloc(1, sizeof(*s));
  if (!s) return NULL;
  s->indices = weir_alloc_array((size_t)rows, sizeof(int64_t));
  s->counts = weir_alloc_array((size_t)rows, sizeof(int64_t));
  s->rows = rows;
  if (s->indices && s->counts) return s;
  sparse_free(s);
  return NULL;
}

static weir_status_t* check_gradient(const weir_accumulator_t* a, weir_kernel_ctx_t* ctx,
                                     int first) {
  const weir_tensor_t* indices = weir_kernel_input(ctx, first);
  const weir_tensor_t* values = weir_kernel_input(ctx, first + 1);
  const weir_tensor_t* shape = weir_kernel_input(ctx, first + 2);
  if (weir_tensor_type(values) != a->dtype) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Expected a gradient of %s, got %s",
                       weir_dtype_name(a->dtype), weir_dtype_name(weir_tensor_type(values)));
  }
  if (indices->rank != 1) {
    char received[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "Input indices should be vector but received shape: %s",
                       weir_tensor_shape_text(indices, received));
  }
  if (values->rank < 1) return WEIR_STATUS(INVALID_ARGUMENT, "Values cannot be 0-dimensional.");
  if (values->dims[0] != indices->dims[0]) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Expected %lld non-empty input values, got %lld",
                       (long long)indices->dims[0], (long long)values->dims[0]);
  }
  if (!weir_attrs_bool(weir_kernel_attrs(ctx), "has_known_shape")) return NULL;
  // The accumulator's shape may be a prefix: SyncReplicasOptimizer gives a scalar's for all.
  if (a->shape->rank > shape->count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Shape mismatch: expected shape rank at least %d, got %lld", a->shape->rank,
                       (long long)shape->count);
  }
  for (int i = 0; i < a->shape->rank; ++i) {
    int64_t dim = weir_tensor_int_at(shape, i);
    if (a->shape->dims[i] < 0 || dim == a->shape->dims[i]) continue;
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Shape mismatch: expected shape dim %d to be %lld, got %lld", i,
                       (long long)a->shape->dims[i], (long long)dim);
  }
  return NULL;
}

// Checks rows against those summed so far or, with none, against the accumulator's shape.
static weir_status_t* check_rows(const weir_accumulator_t* a, const sparse_sum_t* sum,
                                 const weir_tensor_t* values) {
  const int rank = sum ? sum->values->rank : a->shape->rank;
  const int64_t* dims = sum ? sum->values->dims : a->shape->dims;
  if (sum ? values->rank != rank : values->rank < rank) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Shape mismatch: expected values rank %s%d, got %d",
                       sum ? "" : "at least ", rank, values->rank);
  }
  for (int i = 1; i < rank; ++i) {
    if (dims[i] < 0 || dims[i] == values->dims[i]) continue;
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Shape mismatch: expected values dim %d to be %lld, got %lld", i,
                       (long long)dims[i], (long long)values->dims[i]);
  }
  return NULL;
}

static weir_status_t* check_indices(const weir_accumulator_t* a, const weir_tensor_t* indices) {
  const int64_t limit =
      a->shape->rank > 0 && a->shape->dims[0] >= 0 ? a->shape->dims[0] : INT64_MAX;
  for (int64_t i = 0; i < indices->count; ++i) {
    int64_t index = weir_tensor_int_at(indices, i);
    if (index >= 0 && index < limit) continue;
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Shape mismatch: index of slice %lld exceeded limits of shape; index is "
                       "%lld exceeded %lld",
                       (long long)i, (long long)index, (long long)limit);
  }
  return NULL;
}

// The number of rows of two sorted lists of indices together.
static int64_t merged_count(const sparse_sum_t* sum, const int64_t* indices, int64_t count) {
  int64_t i = 0, j = 0, rows = 0;
  while (sum && i < sum->rows && j < count) {
    int64_t a = sum->indices[i], b = indices[j];
    i += a <= b;
    j += b <= a;
    ++rows;
  }
  return rows + (sum ? sum->rows - i : 0) + count - j;
}

// Appends a row taken from the sum, from the gradient, or from both.
static void merge_row(const weir_accumulator_t* a, sparse_sum_t* out, int64_t at,
                      const sparse_sum_t* sum, int64_t i, const weir_tensor_t* values, int64_t j) {
  const int64_t row = out->rows ? out->values->count / out->rows : 0;
  const int64_t size = row * (int64_t)weir_dtype_size(a->dtype);
  char* dst = (char*)out->values->data + at * size;
  out->counts[at] = (i >= 0 ? sum->counts[i] : 0) + (j >= 0 ? 1 : 0);
  if (i >= 0) memcpy(dst, (const char*)sum->values->data + i * size, (size_t)size);
  if (j < 0) return;
  const char* src = (const char*)values->data + j * size;
  if (i < 0) {
    memcpy(dst, src, (size_t)size);
  } else {
    (void)weir_update_find(WEIR_UPDATE_ADD, a->dtype)(dst, src, row, false);
  }
}

static weir_status_t* sparse_add(weir_accumulator_t* a, weir_kernel_ctx_t* ctx, int first,
                                 void** sum) {
  const weir_tensor_t* indices = weir_kernel_input(ctx, first);
  const weir_tensor_t* values = weir_kernel_input(ctx, first + 1);
  const sparse_sum_t* old = *sum;
  int64_t dims[WEIR_MAX_RANK];
  WEIR_TRY(check_gradient(a, ctx, first));
  WEIR_TRY(check_indices(a, indices));
  WEIR_TRY(check_rows(a, old, values));
  const int64_t* added = WEIR_TENSOR_DATA(indices, const int64_t);
  sparse_sum_t* out = sparse_alloc(merged_count(old, added, indices->count));
  if (!out) return weir_out_of_memory();
  memcpy(dims, values->dims, sizeof(int64_t) * values->rank);
  dims[0] = out->rows;
  weir_status_t* status = weir_tensor_create(a->dtype, values->rank, dims, &out->values);
  if (status) {
    sparse_free(out);
    return status;
  }
  int64_t i = 0, j = 0;
  for (int64_t at = 0; at < out->rows; ++at) {
    bool has_old = old && i < old->rows, has_new = j < indices->count;
    bool takes_old = has_old && (!has_new || old->indices[i] <= added[j]);
    bool takes_new = has_new && (!has_old || added[j] <= old->indices[i]);
    out->indices[at] = takes_old ? old->indices[i] : added[j];
    merge_row(a, out, at, old, takes_old ? i++ : -1, values, takes_new ? j++ : -1);
  }
  if (*sum) sparse_free(*sum);
  *sum = out;
  return NULL;
}

static weir_status_t* emit_values(const weir_accumulator_t* a, weir_kernel_ctx_t* ctx,
                                  const sparse_sum_t* s) {
  weir_tensor_t* mean = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 1, s->values->rank, s->values->dims, &mean));
  memcpy(mean->data, s->values->data, (size_t)mean->count * weir_dtype_size(a->dtype));
  const int64_t row = s->rows ? mean->count / s->rows : 0;
  for (int64_t i = 0; a->is_mean && i < s->rows; ++i) {
    uint64_t divisor = 0;  // of any type the op has a kernel for
    double value = (double)s->counts[i];
    WEIR_TRY(weir_cast_elements(a->dtype, &divisor, WEIR_DTYPE_DOUBLE, &value, 1));
    (void)weir_update_find(WEIR_UPDATE_DIV, a->dtype)(
        (char*)mean->data + i * row * (int64_t)weir_dtype_size(a->dtype), &divisor, row, true);
  }
  return NULL;
}

static weir_status_t* sparse_emit(const weir_accumulator_t* a, weir_kernel_ctx_t* ctx, void* sum,
                                  int64_t count) {
  const sparse_sum_t* s = sum;
  weir_tensor_t* indices = NULL;
  weir_tensor_t* shape = NULL;
  (void)count;
  WEIR_TRY(weir_kernel_output(ctx, 0, 1, &s->rows, &indices));
  memcpy(indices->data, s->indices, sizeof(int64_t) * (size_t)s->rows);
  WEIR_TRY(emit_values(a, ctx, s));
  WEIR_TRY(weir_kernel_output(ctx, 2, 1, (const int64_t[]){s->values->rank}, &shape));
  for (int i = 0; i < s->values->rank; ++i) {
    WEIR_TENSOR_DATA(shape, int64_t)
    [i] = i > 0 ? s->values->dims[i] : a->shape->rank > 0 ? a->shape->dims[0] : -1;
  }
  return NULL;
}

static const weir_accumulator_vtable_t sparse_vtable = {
    .add = sparse_add, .emit = sparse_emit, .free_sum = sparse_free};

static weir_status_t* sparse_init(const weir_kernel_init_t* init, void* state) {
  return weir_accumulator_init(init, &sparse_vtable, state);
}

static weir_status_t* take_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 0, NULL));
  WEIR_TRY(weir_shape_set_vector(ctx, 0, -1));
  return weir_shape_set_vector(ctx, 2, -1);
}

const weir_op_module_t weir_ops_queue_sparse_accumulator = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "SparseConditionalAccumulator",
         .summary = "Adds up sparse gradients that are not stale, until enough can be taken",
         .attrs = "dtype: numbertype; shape: shape; container: string = ''; shared_name: string = "
                  "''; reduction_type: "
                  "{'MEAN', 'SUM'} = 'MEAN'",
         .outputs = "handle: Ref(string)",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_CHEAP,
         .infer_shape = weir_shared_handle_shape,
         .kernels =
             (const weir_kernel_def_t[]){
                 {WEIR_DEVICE_CPU, .types = "dtype: double, float, half",
                  .compute = weir_accumulator_cpu, .state_size = sizeof(weir_accumulator_state_t),
                  .init = sparse_init, .deinit = weir_accumulator_deinit},
                 {0}}},
        {.name = "SparseAccumulatorApplyGradient",
         .summary = "Adds a sparse gradient to an accumulator unless its step is stale",
         .attrs = "dtype: numbertype; has_known_shape: bool",
         .inputs = "handle: Ref(string); local_step: int64; gradient_indices: int64; "
                   "gradient_values: dtype; "
                   "gradient_shape: int64",
         .infer_shape = weir_shape_fn_none,
         .kernels =
             (const weir_kernel_def_t[]){{WEIR_DEVICE_CPU, .compute = weir_accumulator_apply_cpu},
                                         {0}}},
        {.name = "SparseAccumulatorTakeGradient",
         .summary = "The sparse average of at least num_required gradients, waiting for them",
         .attrs = "dtype: numbertype",
         .inputs = "handle: Ref(string); num_required: int32",
         .outputs = "indices: int64; values: dtype; shape: int64",
         .infer_shape = take_shape,
         .kernels =
             (const weir_kernel_def_t[]){
                 {WEIR_DEVICE_CPU, .compute_async = weir_accumulator_take_cpu}, {0}}},
        {0}}};

// top_k.c — TopKV2, the older TopK and ApproxTopK: the largest elements of rows.
#include "kernel/reduce/cuda_top_k.h"
#include "ops/array/common.h"
#include "ops/array/sort_key.h"

// |k| is -1 where it is not known.
static weir_status_t* top_k_shape_with(weir_shape_ctx_t* ctx, int64_t k) {
  const weir_shape_t* in = weir_shape_input(ctx, 0);
  int64_t dims[WEIR_MAX_RANK];
  WEIR_TRY(weir_shape_at_least(ctx, in, 1));
  if (in->rank < 0) return NULL;
  for (int i = 0; i < in->rank; ++i) dims[i] = in->dims[i];
  int64_t last = in->dims[in->rank - 1];
  if (k >= 0 && last >= 0 && last < k) {
    return WEIR_STATUS(INVALID_ARGUMENT, "input must have last dimension >= k = %lld but is %lld",
                       (long long)k, (long long)last);
  }
  dims[in->rank - 1] = k;
  WEIR_TRY(weir_shape_set_dims(ctx, 0, in->rank, dims));
  return weir_shape_set_dims(ctx, 1, in->rank, dims);
}

static weir_status_t* top_k_shape(weir_shape_ctx_t* ctx) {
  array_ints_t k_ints;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 0, NULL));
  array_input_ints(ctx, 1, &k_ints);
  int64_t k = k_ints.is_exact && k_ints.count == 1 ? k_ints.values[0] : -1;
  if (k_ints.is_exact && k < 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Dimension size, given by scalar input 1, must be non-negative but is %lld",
                       (long long)k);
  }
  return top_k_shape_with(ctx, k);
}

static weir_status_t* top_k_v1_shape(weir_shape_ctx_t* ctx) {
  return top_k_shape_with(ctx, weir_attrs_int(weir_shape_attrs(ctx), "k"));
}

// ---- the kernel ----

typedef struct entry_t {
  uint64_t key;
  int64_t index;
} entry_t;

// Whether |a| comes before |b|: larger, or equal and earlier.
static bool is_before(entry_t a, entry_t b) {
  return a.key != b.key ? a.key > b.key : a.index < b.index;
}

// |heap| keeps at its root the entry that comes last.
static void sift_down(entry_t* heap, int64_t count, int64_t at) {
  for (;;) {
    int64_t child = 2 * at + 1;
    if (child >= count) return;
    if (child + 1 < count && is_before(heap[child], heap[child + 1])) ++child;
    if (!is_before(heap[at], heap[child])) return;
    entry_t other = heap[at];
    heap[at] = heap[child];
    heap[child] = other;
    at = child;
  }
}

typedef struct top_k_job_t {
  const weir_tensor_t* in;
  weir_tensor_t* values;
  weir_tensor_t* indices;
  int64_t columns, k;
  atomic_bool failed;  // memory ran out
} top_k_job_t;

static void write_row(const top_k_job_t* job, int64_t row, const char* data, const entry_t* top) {
  const size_t size = weir_dtype_size(weir_tensor_type(job->in));
  char* values = (char*)job->values->data + (size_t)(row * job->k) * size;
  for (int64_t i = 0; i < job->k; ++i) {
    memcpy(values + (size_t)i * size, data + (size_t)top[i].index * size, size);
    weir_move_set_int(job->indices, row * job->k + i, top[i].index);
  }
}

// The first |k| entries of a row in order, for a small |k|.
static void select_top(const top_k_job_t* job, const char* data, entry_t* heap) {
  const weir_dtype_t dtype = weir_tensor_type(job->in);
  for (int64_t i = 0; i < job->k; ++i) heap[i] = (entry_t){sort_key(dtype, data, i), i};
  for (int64_t i = job->k / 2 - 1; i >= 0; --i) sift_down(heap, job->k, i);
  for (int64_t i = job->k; i < job->columns; ++i) {
    entry_t entry = {sort_key(dtype, data, i), i};
    if (!is_before(entry, heap[0])) continue;
    heap[0] = entry;
    sift_down(heap, job->k, 0);
  }
  for (int64_t i = job->k - 1; i > 0; --i) {  // what comes last goes to the end
    entry_t last = heap[0];
    heap[0] = heap[i];
    heap[i] = last;
    sift_down(heap, i, 0);
  }
}

// The byte of a key at |shift|, the largest first.
static unsigned digit(entry_t entry, int shift) { return (unsigned)(~entry.key >> shift & 255); }

// All entries of a row in order, in one of two buffers: sorted by each byte in which the keys
// differ, the lowest first, equal ones staying as they were.
static entry_t* sort_row(const top_k_job_t* job, const char* data, entry_t* from, entry_t* to) {
  const weir_dtype_t dtype = weir_tensor_type(job->in);
  uint64_t varying = 0;
  for (int64_t i = 0; i < job->columns; ++i) {
    from[i] = (entry_t){sort_key(dtype, data, i), i};
    varying |= from[i].key ^ from[0].key;
  }
  for (int shift = 0; shift < 64; shift += 8) {
    if (!(varying >> shift & 255)) continue;
    int64_t starts[257] = {0};
    for (int64_t i = 0; i < job->columns; ++i) ++starts[digit(from[i], shift) + 1];
    for (int i = 1; i < 256; ++i) starts[i] += starts[i - 1];
    for (int64_t i = 0; i < job->columns; ++i) to[starts[digit(from[i], shift)]++] = from[i];
    entry_t* other = from;
    from = to;
    to = other;
  }
  return from;
}

static void top_k_range(void* arg, int64_t begin, int64_t end) {
  top_k_job_t* job = arg;
  const size_t size = weir_dtype_size(weir_tensor_type(job->in));
  const bool is_sort = job->k >= 64 && job->k >= job->columns / 8;
  const int64_t count = is_sort ? job->columns : job->k;
  entry_t* entries = weir_alloc_array((size_t)count, 2 * sizeof(*entries));
  if (!entries) atomic_store(&job->failed, true);
  for (int64_t row = begin; entries && row < end; ++row) {
    const char* data = (const char*)job->in->data + (size_t)(row * job->columns) * size;
    const entry_t* top = entries;
    if (is_sort) {
      top = sort_row(job, data, entries, entries + count);
    } else {
      select_top(job, data, entries);
    }
    write_row(job, row, data, top);
  }
  weir_free(entries);
}

// Checks the input, and makes the outputs.
static weir_status_t* make_outputs(weir_kernel_ctx_t* ctx, int64_t k, top_k_job_t* job) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  int64_t dims[WEIR_MAX_RANK];
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (k < 0) return WEIR_STATUS(INVALID_ARGUMENT, "Need k >= 0, got %lld", (long long)k);
  if (in->rank < 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "input must be >= 1-D, got shape %s",
                       weir_tensor_shape_text(in, text));
  }
  job->in = in;
  job->columns = in->dims[in->rank - 1];
  job->k = k;
  if (job->columns < k) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "input must have at least k columns. Had %lld, needed %lld",
                       (long long)job->columns, (long long)k);
  }
  for (int i = 0; i < in->rank; ++i) dims[i] = in->dims[i];
  dims[in->rank - 1] = k;
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank, dims, &job->values));
  return weir_kernel_output(ctx, 1, in->rank, dims, &job->indices);
}

// Only a GPU's rows have a state.
static weir_status_t* top_k_compute(weir_kernel_ctx_t* ctx, int64_t k) {
  top_k_job_t job = {0};
  atomic_init(&job.failed, false);
  WEIR_TRY(make_outputs(ctx, k, &job));
  if (ctx->state) return weir_cuda_top_k(ctx, ctx->state, job.in, job.values, job.indices);
  if (job.values->count == 0) return NULL;
  double cost_ns = 4 * (double)job.columns + 30 * (double)k;
  weir_pool_for(weir_kernel_pool(ctx), job.values->count / k, cost_ns, top_k_range, &job);
  return atomic_load(&job.failed) ? weir_out_of_memory() : NULL;
}

static weir_status_t* top_k(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* k = weir_kernel_input(ctx, 1);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (k->rank != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "k must be scalar, got shape %s",
                       weir_tensor_shape_text(k, text));
  }
  return top_k_compute(ctx, weir_move_int_at(k, 0));
}

static weir_status_t* top_k_v1(weir_kernel_ctx_t* ctx) {
  return top_k_compute(ctx, weir_attrs_int(weir_kernel_attrs(ctx), "k"));
}

static weir_status_t* top_k_gpu_init(const weir_kernel_init_t* init, void* state) {
  const weir_node_def_t* node = init->node;
  return weir_cuda_top_k_find(init->device, node->input_types[0], node->output_types[1], state);
}

// Of what ApproxTopK asks for, a CPU has the largest elements along the last dimension, exactly.
static weir_status_t* approx_top_k_cpu(weir_kernel_ctx_t* ctx) {
  const weir_attrs_t attrs = weir_kernel_attrs(ctx);
  if (weir_attrs_bool(attrs, "is_max_k") && weir_attrs_int(attrs, "reduction_dimension") == -1) {
    return top_k_v1(ctx);
  }
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "ApproxTopK has a kernel for is_max_k and reduction_dimension -1 alone");
}

// ---- gradient: dy scattered to where the values came from ----

static weir_edge_t last_dim(weir_grad_ctx_t* g, weir_edge_t shape) {
  const int64_t minus_one[] = {-1}, zero[] = {0}, one[] = {1};
  return weir_grad_node_with(g, "StridedSlice",
                             WEIR_EDGES(shape, array_grad_ints(g, WEIR_DTYPE_INT32, minus_one, 1),
                                        array_grad_ints(g, WEIR_DTYPE_INT32, zero, 1),
                                        array_grad_ints(g, WEIR_DTYPE_INT32, one, 1)),
                             WEIR_ATTRS(weir_attr_int("shrink_axis_mask", 1)));
}

// Indices into the flattened input, one a row of a matrix of one column.
static weir_edge_t flat_indices(weir_grad_ctx_t* g, weir_edge_t x_shape) {
  const int64_t column[] = {-1, 1};
  weir_edge_t indices = weir_grad_output(g, 1);
  weir_edge_t as_column = array_grad_ints(g, WEIR_DTYPE_INT32, column, 2);
  if (weir_grad_dtype(g, indices) != WEIR_DTYPE_INT32) {
    indices = weir_grad_node_with(g, "Cast", WEIR_EDGES(indices),
                                  WEIR_ATTRS(weir_attr_type("DstT", WEIR_DTYPE_INT32)));
  }
  if (weir_grad_shape(g, indices)->rank != 1) {
    weir_edge_t k = last_dim(g, weir_grad_shape_of(g, indices));
    weir_edge_t columns = last_dim(g, x_shape);
    weir_edge_t minus_one = weir_build_int32(g->builder, -1);
    indices = weir_grad_node(
        g, "Reshape", WEIR_EDGES(indices, weir_grad_node(g, "Pack", WEIR_EDGES(minus_one, k))));
    weir_edge_t count = weir_grad_node(g, "Size", WEIR_EDGES(weir_grad_input(g, 0)));
    weir_edge_t starts =
        weir_grad_node(g, "Range", WEIR_EDGES(weir_build_int32(g->builder, 0), count, columns));
    starts = weir_grad_node(g, "Reshape", WEIR_EDGES(starts, as_column));
    indices = weir_grad_node(g, "AddV2", WEIR_EDGES(indices, starts));
  }
  return weir_grad_node(g, "Reshape", WEIR_EDGES(indices, as_column));
}

static weir_status_t* top_k_grad(weir_grad_ctx_t* g) {
  const int64_t flat[] = {-1};
  weir_edge_t x = weir_grad_input(g, 0);
  weir_edge_t x_shape = weir_grad_shape_of(g, x);
  weir_edge_t dy = weir_grad_node(
      g, "Reshape", WEIR_EDGES(weir_grad_dy(g, 0), array_grad_ints(g, WEIR_DTYPE_INT32, flat, 1)));
  weir_edge_t count = array_grad_vector(g, weir_grad_node(g, "Size", WEIR_EDGES(x)));
  weir_edge_t dx = weir_grad_node(g, "ScatterNd", WEIR_EDGES(flat_indices(g, x_shape), dy, count));
  return weir_grad_set(g, 0, weir_grad_node(g, "Reshape", WEIR_EDGES(dx, x_shape)));
}

#define TOP_K_KERNELS(...)                                                             \
  ((const weir_kernel_def_t[]){{WEIR_DEVICE_CPU, __VA_ARGS__},                         \
                               {WEIR_DEVICE_GPU, .init = top_k_gpu_init,               \
                                .state_size = sizeof(weir_cuda_top_k_t), __VA_ARGS__}, \
                               {0}})

const weir_op_module_t weir_ops_array_top_k = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "TopK",
         .mixed = WEIR_MIXED_CLEAR,  // TensorFlow refuses graphs of today that hold it; there is no
                                     // reason to
         .attrs = "k: int >= 0; sorted: bool = true; T: {float, double, int32, uint8, int16, int8, "
                  "int64, bfloat16, uint16, half, uint32, uint64}",
         .inputs = "input: T",
         .outputs = "values: T; indices: int32",
         .summary = "As TopKV2, with k an attribute.",
         .infer_shape = top_k_v1_shape,
         .build_grad = top_k_grad,
         .kernels = TOP_K_KERNELS(.compute = top_k_v1)},
        {.name = "TopKV2",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "sorted: bool = true; T: {float, double, int32, uint8, int16, int8, int64, "
                  "bfloat16, uint16, half, "
                  "uint32, uint64}; Tk: {int16, int32, int64} = DT_INT32; index_type: {int16, "
                  "int32, int64} = DT_INT32",
         .inputs = "input: T; k: Tk",
         .outputs = "values: T; indices: index_type",
         .summary =
             "Returns the k largest elements of each row and their places, the largest first.",
         .infer_shape = top_k_shape,
         .build_grad = top_k_grad,
         .kernels = TOP_K_KERNELS(.compute = top_k, .host_inputs = "k")},
        {.name = "ApproxTopK",
         .attrs = "k: int >= 0; reduction_dimension: int = -1; recall_target: float = 0.95; "
                  "is_max_k: bool = true; reduction_input_size_override: int = -1; "
                  "aggregate_to_topk: bool = true; T: {half, bfloat16, float}",
         .inputs = "input: T",
         .outputs = "values: T; indices: int32",
         .summary = "As TopK, where less than the best would do elsewhere.",
         .infer_shape = top_k_v1_shape,
         .build_grad = top_k_grad,
         .kernels = WEIR_CPU_KERNEL(.compute = approx_top_k_cpu)},
        {0}}};

// nth_element.c — NthElement: the n-th smallest (or largest) element of each row.
#include "ops/array/sort_key.h"

typedef struct nth_job_t {
  const weir_tensor_t* in;
  weir_tensor_t* out;
  int64_t columns;
  int64_t n;           // counted from the smallest
  atomic_bool failed;  // memory ran out
} nth_job_t;

typedef struct nth_entry_t {
  uint64_t key;
  int64_t index;
} nth_entry_t;

static void swap_entries(nth_entry_t* a, nth_entry_t* b) {
  const nth_entry_t held = *a;
  *a = *b;
  *b = held;
}

// The entry that would be at |n| if they were sorted: parts are split at the middle of three until
// one of them is it.
static nth_entry_t select_nth(nth_entry_t* entries, int64_t count, int64_t n) {
  int64_t low = 0, high = count - 1;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (entries[middle].key < entries[low].key) swap_entries(&entries[middle], &entries[low]);
    if (entries[high].key < entries[low].key) swap_entries(&entries[high], &entries[low]);
    if (entries[high].key < entries[middle].key) swap_entries(&entries[high], &entries[middle]);
    const uint64_t pivot = entries[middle].key;
    int64_t i = low, j = high;
    while (i <= j) {
      while (entries[i].key < pivot) ++i;
      while (entries[j].key > pivot) --j;
      if (i <= j) swap_entries(&entries[i++], &entries[j--]);
    }
    if (n <= j) {
      high = j;
    } else if (n >= i) {
      low = i;
    } else {
      break;
    }
  }
  return entries[n];
}

static void nth_range(void* arg, int64_t begin, int64_t end) {
  nth_job_t* job = arg;
  const weir_dtype_t dtype = weir_tensor_type(job->in);
  const size_t size = weir_dtype_size(dtype);
  nth_entry_t* entries = weir_alloc_array((size_t)job->columns, sizeof(*entries));
  if (!entries) atomic_store(&job->failed, true);
  for (int64_t row = begin; entries && row < end; ++row) {
    const char* data = (const char*)job->in->data + (size_t)(row * job->columns) * size;
    for (int64_t i = 0; i < job->columns; ++i) {
      entries[i] = (nth_entry_t){sort_key(dtype, data, i), i};
    }
    const nth_entry_t found = select_nth(entries, job->columns, job->n);
    memcpy((char*)job->out->data + (size_t)row * size, data + (size_t)found.index * size, size);
  }
  weir_free(entries);
}

static weir_status_t* nth_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const weir_tensor_t* n = weir_kernel_input(ctx, 1);
  if (n->rank != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "N must be scalar but has rank %d", n->rank);
  }
  nth_job_t job = {.in = in, .n = weir_tensor_int_at(n, 0)};
  if (job.n < 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "n must be non-negative but is %lld", (long long)job.n);
  }
  if (in->rank < 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Input must be at least rank 1 but is rank 0");
  }
  job.columns = in->dims[in->rank - 1];
  if (job.columns <= job.n) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Input must have last dimension > n = %lld",
                       (long long)job.n);
  }
  if (weir_attrs_bool(weir_kernel_attrs(ctx), "reverse")) job.n = job.columns - job.n - 1;
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank - 1, in->dims, &job.out));
  const double ns = 10 * (double)job.columns;
  weir_pool_for(weir_kernel_pool(ctx), job.out->count, ns, nth_range, &job);
  return atomic_load(&job.failed) ? weir_out_of_memory() : NULL;
}

static weir_status_t* nth_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* in = weir_shape_input(ctx, 0);
  const weir_tensor_t* value = weir_shape_value(ctx, 1);
  WEIR_TRY(weir_shape_at_least(ctx, in, 1));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 0, NULL));
  const int64_t n = value ? weir_tensor_int_at(value, 0) : 0;
  if (n < 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Dimension size, given by scalar input 1, must be "
                       "non-negative but is %lld",
                       (long long)n);
  }
  if (in->rank < 0) return NULL;
  const int64_t last = weir_shape_dim(in, -1);
  if (value && last >= 0 && last <= n) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Input must have last dimension > n = %lld but is %lld",
                       (long long)n, (long long)last);
  }
  return weir_shape_set(ctx, 0, weir_shape_sub(ctx, in, 0, in->rank - 1));
}

// Elements that equal the result share its gradient.
static weir_status_t* nth_grad(weir_grad_ctx_t* g) {
  weir_edge_t dy = weir_grad_dy(g, 0), last = weir_build_int32(g->builder, -1);
  weir_edge_t y = weir_grad_node(g, "ExpandDims", WEIR_EDGES(weir_grad_output(g, 0), last));
  weir_edge_t is_it = weir_grad_node(g, "Equal", WEIR_EDGES(y, weir_grad_input(g, 0)));
  is_it = weir_grad_node_with(g, "Cast", WEIR_EDGES(is_it),
                              WEIR_ATTRS(weir_attr_type("DstT", weir_grad_dtype(g, dy))));
  weir_edge_t count = weir_grad_node_with(g, "Sum", WEIR_EDGES(is_it, last),
                                          WEIR_ATTRS(weir_attr_bool("keep_dims", true)));
  weir_edge_t share = weir_grad_node(g, "RealDiv", WEIR_EDGES(is_it, count));
  dy = weir_grad_node(g, "ExpandDims", WEIR_EDGES(dy, last));
  return weir_grad_set(g, 0, weir_grad_mul(g, share, dy));
}

const weir_op_module_t weir_ops_array_nth_element = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "NthElement",
         .attrs = "reverse: bool = false; T: realnumbertype",
         .inputs = "input: T; n: int32",
         .outputs = "values: T",
         .summary = "The n-th smallest element of each row",
         .infer_shape = nth_shape,
         .build_grad = nth_grad,
         .kernels = WEIR_CPU_KERNEL(.compute = nth_cpu, .host_inputs = "n")},
        {0}}};

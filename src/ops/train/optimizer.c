// optimizer.c — The kernel and shape function that all optimizers share.
#include "ops/train/optimizer.h"

#include "op/shape_ctx.h"
#include "ops/train/optimizer_cuda.h"
#include "tensor/cast.h"
#include "tensor/numeric.h"

#define NARROW_BLOCK 256

// ---- init ----
static bool is_variable_type(weir_dtype_t dtype) {
  return dtype == WEIR_DTYPE_RESOURCE || weir_dtype_is_ref(dtype);
}

static int find_input(const weir_node_def_t* node, const char* name) {
  for (int i = 0; i < node->op->input_count; ++i) {
    if (strcmp(node->op->inputs[i].name, name) == 0) return i;
  }
  return -1;
}

weir_status_t* weir_optimizer_init(const weir_kernel_init_t* init,
                                   const weir_optimizer_family_t* family,
                                   weir_optimizer_state_t* state) {
  const weir_node_def_t* node = init->node;
  state->family = family;
  while (state->slot_count < node->input_count &&
         is_variable_type(node->input_types[state->slot_count])) {
    ++state->slot_count;
  }
  state->grad = find_input(node, "grad");
  if (state->grad < 0) state->grad = find_input(node, "delta");
  state->indices = find_input(node, "indices");
  while (state->scalar_count < WEIR_OPTIMIZER_MAX_SCALARS && family->scalars[state->scalar_count]) {
    int input = find_input(node, family->scalars[state->scalar_count]);
    state->scalars[state->scalar_count++] =
        WEIR_MAX(input, 0);  // 0: a variant without it, which reads a zero
  }
  const weir_attr_t* flag = family->flag ? weir_attrs_find(node->attrs, family->flag) : NULL;
  state->flag = flag && flag->u.b;
  WEIR_CHECK(state->grad > 0 && state->slot_count > 0 &&
             state->slot_count <= WEIR_OPTIMIZER_MAX_SLOTS);
  state->is_cuda = weir_device_is_cuda(init->device);
  return state->is_cuda ? weir_optimizer_cuda_init(init, state) : NULL;
}

// ---- one run ----
typedef struct job_t {
  const weir_optimizer_state_t* state;
  weir_optimizer_fn_t fn;
  weir_optimizer_args_t args;
  weir_dtype_t dtype;
  int64_t size;                  // bytes an element
  const weir_tensor_t* indices;  // NULL: dense
  int64_t row_count;             // elements a row
  double cost_ns;
} job_t;

static weir_optimizer_fn_t find_fn(const weir_optimizer_family_t* family, weir_dtype_t dtype) {
  switch (dtype) {
    case WEIR_DTYPE_FLOAT:
    case WEIR_DTYPE_HALF:
    case WEIR_DTYPE_BFLOAT16: return family->run_float;
    case WEIR_DTYPE_DOUBLE: return family->run_double;
    case WEIR_DTYPE_COMPLEX64: return family->run_complex64;
    case WEIR_DTYPE_COMPLEX128: return family->run_complex128;
    default: return NULL;
  }
}

static void widen(weir_dtype_t dtype, const void* src, float* dst, int64_t count) {
  const weir_half_t* half = src;
  const weir_bfloat16_t* bfloat16 = src;
  for (int64_t i = 0; i < count; ++i) {
    dst[i] = dtype == WEIR_DTYPE_HALF ? weir_half_to_float(half[i])
                                      : weir_bfloat16_to_float(bfloat16[i]);
  }
}

static void narrow(weir_dtype_t dtype, const float* src, void* dst, int64_t count) {
  weir_half_t* half = dst;
  weir_bfloat16_t* bfloat16 = dst;
  for (int64_t i = 0; i < count; ++i) {
    if (dtype == WEIR_DTYPE_HALF) {
      half[i] = weir_half_from_float(src[i]);
    } else {
      bfloat16[i] = weir_bfloat16_from_float(src[i]);
    }
  }
}

// Runs the loop on elements [at, at + count) of the slots and [grad_at, …) of the gradient.
static void run_span(const job_t* job, int64_t at, int64_t grad_at, int64_t count) {
  weir_optimizer_args_t args = job->args;
  const int slots = job->state->slot_count;
  for (int i = 0; i < slots; ++i) args.slots[i] = (char*)args.slots[i] + at * job->size;
  args.grad = (const char*)args.grad + grad_at * job->size;
  if (job->size != 2) {
    job->fn(&args, count);
    return;
  }
  float buffers[WEIR_OPTIMIZER_MAX_SLOTS + 1][NARROW_BLOCK];
  for (int64_t done = 0; done < count; done += NARROW_BLOCK) {
    int64_t n = WEIR_MIN(count - done, NARROW_BLOCK);
    weir_optimizer_args_t wide = args;
    for (int i = 0; i < slots; ++i) {
      widen(job->dtype, (char*)args.slots[i] + done * 2, buffers[i], n);
      wide.slots[i] = buffers[i];
    }
    widen(job->dtype, (const char*)args.grad + done * 2, buffers[slots], n);
    wide.grad = buffers[slots];
    job->fn(&wide, n);
    for (int i = 0; i < slots; ++i)
      narrow(job->dtype, buffers[i], (char*)args.slots[i] + done * 2, n);
  }
}

static void run_dense(void* arg, int64_t begin, int64_t end) {
  run_span(arg, begin, begin, end - begin);
}

// Rows are dealt out by a hash of their number, so that all uses of one row fall to one bucket and
// are applied in order, whatever the number of threads.
#define ROW_BUCKETS 16
#define ROWS_AHEAD 4  // rows of a large table come from memory: they are asked for so much earlier

static unsigned bucket_of(int64_t row) {
  return (unsigned)(((uint64_t)row * 0x9e3779b97f4a7c15u) >> 60);
}

static void prefetch_row(const job_t* job, int64_t row) {
  const int64_t bytes = job->row_count * job->size;
  for (int i = 0; i < job->state->slot_count; ++i) {
    const char* data = (const char*)job->args.slots[i] + row * bytes;
    for (int64_t at = 0; at < WEIR_MIN(bytes, 512); at += 64) __builtin_prefetch(data + at, 1);
  }
}

static void run_row(const job_t* job, int64_t i) {
  int64_t row = weir_tensor_int_at(job->indices, i);
  run_span(job, row * job->row_count, i * job->row_count, job->row_count);
}

static void run_bucket(const job_t* job, unsigned bucket) {
  int64_t ahead[ROWS_AHEAD];
  int64_t found = 0;
  for (int64_t i = 0; i < job->indices->count; ++i) {
    int64_t row = weir_tensor_int_at(job->indices, i);
    if (bucket_of(row) != bucket) continue;
    prefetch_row(job, row);
    if (found >= ROWS_AHEAD) run_row(job, ahead[found % ROWS_AHEAD]);
    ahead[found++ % ROWS_AHEAD] = i;
  }
  for (int64_t k = WEIR_MAX(found - ROWS_AHEAD, 0); k < found; ++k) {
    run_row(job, ahead[k % ROWS_AHEAD]);
  }
}

static void run_buckets(void* arg, int64_t begin, int64_t end) {
  for (int64_t bucket = begin; bucket < end; ++bucket) run_bucket(arg, (unsigned)bucket);
}

// ---- checks ----
static const char* input_name(const weir_kernel_ctx_t* ctx, int i) {
  return ctx->node->op->inputs[i].name;
}

static weir_status_t* check_indices(const weir_tensor_t* var, const weir_tensor_t* indices) {
  for (int64_t i = 0; i < indices->count; ++i) {
    int64_t index = weir_tensor_int_at(indices, i);
    if (index < 0 || index >= var->dims[0]) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Index %lld at offset %lld in indices is out of range",
                         (long long)index, (long long)i);
    }
  }
  return NULL;
}

static weir_status_t* check_sparse(const weir_optimizer_state_t* s, const weir_tensor_t* var,
                                   const weir_tensor_t* grad, const weir_tensor_t* indices) {
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  if (var->rank < 1) return WEIR_STATUS(INVALID_ARGUMENT, "var must be at least 1 dimensional");
  if (indices->rank != 1) return WEIR_STATUS(INVALID_ARGUMENT, "indices must be one-dimensional");
  bool fits = grad->rank == var->rank;
  bool is_empty = false;
  for (int d = 1; fits && d < var->rank; ++d) {
    fits = grad->dims[d] == var->dims[d];
    is_empty = is_empty || var->dims[d] == 0;
  }
  if (!fits) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "var and grad must match in all dimensions but the first: %s vs. %s",
                       weir_tensor_shape_text(var, a), weir_tensor_shape_text(grad, b));
  }
  if (grad->dims[0] != indices->dims[0]) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "grad must be the same size as indices in the first dimension.");
  }
  if (is_empty && s->family->refuses_empty_rows) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Inner dimension should be greater than zero.");
  }
  return s->is_cuda ? NULL : check_indices(var, indices);  // a GPU leaves out what is not there
}

// TensorFlow calls a handle of nothing an internal error, but a reference to nothing a failed
// precondition.
static weir_status_t* uninitialized(weir_kernel_ctx_t* ctx, int i) {
  const char* name = input_name(ctx, i);
  if (weir_kernel_input_ref(ctx, i)) {
    return WEIR_STATUS(FAILED_PRECONDITION, "Attempting to use uninitialized value: input %s of %s",
                       name, ctx->node->name);
  }
  return WEIR_STATUS(INTERNAL, "Invalid variable reference: input %s of %s is not initialized",
                     name, ctx->node->name);
}

static bool is_in_range(char range, bool flag, double value) {
  switch (range) {
    case '+': return value > 0;
    case '0': return value >= 0;
    case '-': return value <= 0;
    case 'z': return value > 0 || (flag && value == 0);
    default: return true;
  }
}

static const char* range_name(char range) {
  switch (range) {
    case '+': return "positive";
    case '0': return "non-negative";
    case '-': return "non-positive";
    default: return "positive (or zero if the flag is set)";
  }
}

static weir_status_t* check_scalar(const weir_optimizer_state_t* s, int i,
                                   const weir_tensor_t* scalar) {
  const weir_optimizer_family_t* family = s->family;
  const bool is_sparse = s->indices >= 0 && family->sparse_ranges;
  const char* ranges = is_sparse ? family->sparse_ranges : family->ranges;
  char text[WEIR_SHAPE_TEXT_SIZE];
  double value = 0;
  if (scalar->rank != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "%s is not a scalar: %s", family->scalars[i],
                       weir_tensor_shape_text(scalar, text));
  }
  if (!ranges || ranges[i] == ' ' || s->is_cuda) return NULL;
  WEIR_TRY(
      weir_cast_elements(WEIR_DTYPE_DOUBLE, &value, weir_tensor_type(scalar), scalar->data, 1));
  if (is_in_range(ranges[i], s->flag, value)) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "%s is not a %s scalar: %g", family->scalars[i],
                     range_name(ranges[i]), value);
}

static weir_status_t* check_locked(weir_kernel_ctx_t* ctx, const weir_optimizer_state_t* s,
                                   weir_variable_t** variables) {
  const weir_tensor_t* grad = weir_kernel_input(ctx, s->grad);
  const weir_tensor_t* var = variables[0]->tensor;
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  for (int i = 0; i < s->slot_count; ++i) {
    const weir_tensor_t* slot = variables[i]->tensor;
    if (!slot) return uninitialized(ctx, i);
    if (slot->dtype != grad->dtype) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Expected %s to be of type %s, but it is %s",
                         input_name(ctx, i), weir_dtype_name(weir_tensor_type(grad)),
                         weir_dtype_name(weir_tensor_type(slot)));
    }
    if (!weir_tensor_same_shape(var, slot)) {
      return WEIR_STATUS(INVALID_ARGUMENT, "var and %s do not have the same shape%s %s",
                         input_name(ctx, i), weir_tensor_shape_text(var, a),
                         weir_tensor_shape_text(slot, b));
    }
  }
  for (int i = 0; i < s->scalar_count; ++i) {
    const weir_tensor_t* scalar = s->scalars[i] ? weir_kernel_input(ctx, s->scalars[i]) : NULL;
    if (scalar) WEIR_TRY(check_scalar(s, i, scalar));
  }
  if (s->indices >= 0) return check_sparse(s, var, grad, weir_kernel_input(ctx, s->indices));
  if (!weir_tensor_same_shape(var, grad)) {
    return WEIR_STATUS(INVALID_ARGUMENT, "var and %s do not have the same shape%s %s",
                       input_name(ctx, s->grad), weir_tensor_shape_text(var, a),
                       weir_tensor_shape_text(grad, b));
  }
  return NULL;
}

static weir_status_t* run_on_cpu(weir_kernel_ctx_t* ctx, const weir_optimizer_state_t* s,
                                 weir_variable_t** variables) {
  const weir_tensor_t* grad = weir_kernel_input(ctx, s->grad);
  job_t job = {.state = s, .dtype = weir_tensor_type(grad), .cost_ns = s->family->cost_ns};
  weir_dtype_t wide = weir_dtype_size(job.dtype) == 2 ? WEIR_DTYPE_FLOAT : job.dtype;
  weir_complex128_t scalars[WEIR_OPTIMIZER_MAX_SCALARS] = {0};
  job.size = (int64_t)weir_dtype_size(job.dtype);
  job.fn = find_fn(s->family, job.dtype);
  if (!job.fn)
    return WEIR_STATUS(UNIMPLEMENTED, "%s is not defined for %s", ctx->node->op_name,
                       weir_dtype_name(job.dtype));
  for (int i = 0; i < s->scalar_count; ++i) {
    if (!s->scalars[i]) continue;
    const weir_tensor_t* scalar = weir_kernel_input(ctx, s->scalars[i]);
    WEIR_TRY(weir_cast_elements(wide, (char*)scalars + (size_t)i * weir_dtype_size(wide),
                                weir_tensor_type(scalar), scalar->data, 1));
  }
  for (int i = 0; i < s->slot_count; ++i) job.args.slots[i] = variables[i]->tensor->data;
  job.args.grad = grad->data;
  job.args.scalars = scalars;
  job.args.flag = s->flag;
  if (grad->count == 0) return NULL;
  if (s->indices < 0) {
    weir_pool_for(weir_kernel_pool(ctx), grad->count, job.cost_ns, run_dense, &job);
    return NULL;
  }
  job.indices = weir_kernel_input(ctx, s->indices);
  job.row_count = grad->count / grad->dims[0];
  weir_pool_for(weir_kernel_pool(ctx), ROW_BUCKETS, job.cost_ns * (double)grad->count / ROW_BUCKETS,
                run_buckets, &job);
  return NULL;
}

static weir_status_t* apply_locked(weir_kernel_ctx_t* ctx, const weir_optimizer_state_t* s,
                                   weir_variable_t** variables) {
  WEIR_TRY(check_locked(ctx, s, variables));
  for (int i = 0; i < s->slot_count; ++i)
    WEIR_TRY(weir_variable_make_sole_locked(variables[i], input_name(ctx, i)));
  return s->is_cuda ? weir_optimizer_cuda_run(ctx, s, variables) : run_on_cpu(ctx, s, variables);
}

// Locks in the order of addresses, so that two optimizers that share slots cannot wait for each
// other.
static int sort_unique(weir_variable_t* const* variables, int count, weir_variable_t** sorted) {
  int unique = 0;
  for (int i = 0; i < count; ++i) {
    int at = 0;
    while (at < unique && (uintptr_t)sorted[at] < (uintptr_t)variables[i]) ++at;
    if (at < unique && sorted[at] == variables[i]) continue;
    for (int j = unique; j > at; --j) sorted[j] = sorted[j - 1];
    sorted[at] = variables[i];
    ++unique;
  }
  return unique;
}

weir_status_t* weir_optimizer_compute(weir_kernel_ctx_t* ctx) WEIR_NO_THREAD_SAFETY {
  const weir_optimizer_state_t* s = ctx->state;
  weir_variable_t* variables[WEIR_OPTIMIZER_MAX_SLOTS] = {NULL};
  weir_variable_t* locked[WEIR_OPTIMIZER_MAX_SLOTS] = {NULL};
  weir_status_t* status = NULL;
  for (int i = 0; i < s->slot_count; ++i) {
    status = weir_kernel_variable(ctx, i, &variables[i]);
    if (status && weir_status_code(status) == WEIR_FAILED_PRECONDITION) {
      weir_status_destroy(status);
      status = uninitialized(ctx, i);
    }
    if (status) goto done;
  }
  const int count = sort_unique(variables, s->slot_count, locked);
  for (int i = 0; i < count; ++i) weir_mutex_lock(&locked[i]->mu);
  status = count < s->slot_count
               ? WEIR_STATUS(INVALID_ARGUMENT, "%s: the same variable serves as two slots",
                             ctx->node->name)
               : apply_locked(ctx, s, variables);
  for (int i = count - 1; i >= 0; --i) weir_mutex_unlock(&locked[i]->mu);
  if (!status && ctx->output_count > 0) weir_kernel_set_ref(ctx, 0, variables[0]);
done:
  for (int i = 0; i < s->slot_count; ++i) {
    if (variables[i]) weir_resource_release(&variables[i]->base);
  }
  return status;
}

// ---- shapes ----
static const weir_shape_t* slot_shape(weir_shape_ctx_t* ctx, int i) {
  if (ctx->node->input_types[i] != WEIR_DTYPE_RESOURCE) return weir_shape_input(ctx, i);
  const weir_handle_info_t* info = ctx->input_handles[i];
  return info && info->shape ? info->shape : &weir_shape_unknown;
}

// A gradient of some rows of |var|, one for each index.
static weir_status_t* check_rows(weir_shape_ctx_t* ctx, const weir_shape_t* var,
                                 const weir_shape_t* grad, const weir_shape_t* indices) {
  int64_t rows = 0;
  const weir_shape_t* joined = NULL;
  if (grad->rank > 0 && indices->rank == 1)
    WEIR_TRY(weir_dim_join(ctx, indices->dims[0], grad->dims[0], &rows));
  if (var->rank <= 0 || grad->rank <= 0) return NULL;
  return weir_shape_join(ctx, weir_shape_sub(ctx, var, 1, var->rank),
                         weir_shape_sub(ctx, grad, 1, grad->rank), &joined);
}

weir_status_t* weir_optimizer_shape(weir_shape_ctx_t* ctx) {
  const weir_node_def_t* node = ctx->node;
  const weir_shape_t* var = slot_shape(ctx, 0);
  const int indices = find_input(node, "indices");
  for (int i = 1; i < node->input_count; ++i) {
    const char* name = node->op->inputs[i].name;
    if (is_variable_type(node->input_types[i])) {
      WEIR_TRY(weir_shape_join(ctx, var, slot_shape(ctx, i), &var));
    } else if (i == indices) {
      WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), 1, NULL));
    } else if (strcmp(name, "grad") != 0 && strcmp(name, "delta") != 0) {
      WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), 0, NULL));
    } else if (indices < 0) {
      WEIR_TRY(weir_shape_join(ctx, var, weir_shape_input(ctx, i), &var));
    } else {
      WEIR_TRY(check_rows(ctx, var, weir_shape_input(ctx, i), weir_shape_input(ctx, indices)));
    }
  }
  return node->output_count > 0 ? weir_shape_set(ctx, 0, var) : NULL;
}

void weir_optimizer_cost(const weir_cost_ctx_t* ctx, weir_cost_t* cost) {
  const weir_node_def_t* node = ctx->node;
  int grad = find_input(node, "grad"), slots = 0;
  if (grad < 0) grad = find_input(node, "delta");
  if (grad < 0) return;
  for (int i = 0; i < node->input_count; ++i) slots += is_variable_type(node->input_types[i]);
  cost->flops = 2 * slots * weir_cost_count(ctx->inputs[grad]);
  cost->bytes = (1 + 2 * slots) * weir_cost_bytes(ctx->inputs[grad], node->input_types[grad]);
}

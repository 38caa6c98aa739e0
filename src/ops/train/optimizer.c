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

static int find_arg(const weir_node_def_t* node, const char* name) {
  for (int i = 0; i < node->op->input_count; ++i) {
    if (strcmp(node->op->inputs[i].name, name) == 0) return i;
  }
  return -1;
}

static int find_input(const weir_node_def_t* node, const char* name) {
  int first = 0, count = 0, arg = find_arg(node, name);
  if (arg < 0) return -1;
  weir_node_input_range(node, arg, &first, &count);
  return first;
}

// Variables come first, those of all updates for a slot together.
static void find_slots(const weir_node_def_t* node, weir_optimizer_state_t* state) {
  for (int arg = 0; arg < node->op->input_count; ++arg) {
    int first = 0, count = 0;
    weir_node_input_range(node, arg, &first, &count);
    if (!is_variable_type(node->input_types[first])) return;
    WEIR_CHECK(state->slot_count < WEIR_OPTIMIZER_MAX_SLOTS);
    state->slots[state->slot_count++] = first;
    state->update_count = count;
  }
}

weir_status_t* weir_optimizer_init(const weir_kernel_init_t* init,
                                   const weir_optimizer_family_t* family,
                                   weir_optimizer_state_t* state) {
  const weir_node_def_t* node = init->node;
  state->family = family;
  find_slots(node, state);
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
  WEIR_CHECK(state->grad > 0 && state->slot_count > 0);
  const int words = state->slot_count + 1 + state->scalar_count + 3;  // of the table, for an update
  const int most = WEIR_MIN(WEIR_OPTIMIZER_MAX_LOCKED / state->slot_count,
                            (WEIR_OPTIMIZER_TABLE_WORDS - 1) / words);
  state->most_updates = WEIR_MIN(state->update_count, most);
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
static const char* slot_name(const weir_kernel_ctx_t* ctx, int slot) {
  return ctx->node->op->inputs[slot].name;  // the first arguments
}

static const char* grad_name(const weir_kernel_ctx_t* ctx) {
  return find_arg(ctx->node, "grad") >= 0 ? "grad" : "delta";
}

// The name of the node whose update it is.
static weir_view_t update_name(const weir_kernel_ctx_t* ctx,
                               const weir_optimizer_update_t* update) {
  if (!(ctx->node->op->flags & WEIR_OP_COMPOSITE)) return weir_view_of(ctx->node->name);
  return weir_attrs_list(ctx->node->attrs, "names")->u.strings[update->number];
}

static weir_status_t* at_update(const weir_kernel_ctx_t* ctx, const weir_optimizer_update_t* update,
                                weir_status_t* take_status) {
  bool is_joined = ctx->node->op->flags & WEIR_OP_COMPOSITE;
  return is_joined ? weir_composite_at_node(ctx->node, update->number, take_status) : take_status;
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
  if (grad->rank != var->rank && s->family->compares_ranks)
    return WEIR_STATUS(INVALID_ARGUMENT, "grad must have the same number of dimensions as var");
  bool is_empty = false;
  for (int d = 1; d < WEIR_MIN(var->rank, grad->rank); ++d) {
    if (grad->dims[d] != var->dims[d])
      return WEIR_STATUS(INVALID_ARGUMENT, "var and grad must match in dimension %d", d);
    is_empty = is_empty || var->dims[d] == 0;
  }
  if (grad->rank == 0 || grad->dims[0] != indices->dims[0]) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "grad must be the same size as indices in the first dimension.");
  }
  // More dimensions will do where they are 1.
  bool fits = s->family->needs_same_rank ? grad->rank == var->rank : grad->rank >= var->rank;
  for (int d = var->rank; fits && d < grad->rank; ++d) fits = grad->dims[d] == 1;
  if (!fits) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "var and grad must match in all dimensions but the first: %s vs. %s",
                       weir_tensor_shape_text(var, a), weir_tensor_shape_text(grad, b));
  }
  if (is_empty && s->family->refuses_empty_rows) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Inner dimension should be greater than zero.");
  }
  return s->is_cuda ? NULL : check_indices(var, indices);  // a GPU leaves out what is not there
}

// TensorFlow calls a handle of nothing an internal error, but a reference to nothing a failed
// precondition.
static weir_status_t* uninitialized(const weir_kernel_ctx_t* ctx,
                                    const weir_optimizer_update_t* update, int slot) {
  const weir_optimizer_state_t* s = ctx->state;
  weir_view_t node = update_name(ctx, update);
  if (weir_kernel_input_ref(ctx, s->slots[slot] + update->number)) {
    return WEIR_STATUS(FAILED_PRECONDITION,
                       "Attempting to use uninitialized value: input %s of %.*s",
                       slot_name(ctx, slot), WEIR_VIEW_ARG(node));
  }
  return WEIR_STATUS(INTERNAL, "Invalid variable reference: input %s of %.*s is not initialized",
                     slot_name(ctx, slot), WEIR_VIEW_ARG(node));
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
    default: return "positive (or zero if multiply_linear_by_lr is set)";
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
    const bool is_ranged = is_sparse && ranges[i] != ' ';
    return WEIR_STATUS(INVALID_ARGUMENT, "%s is not a %s%sscalar: %s", family->scalars[i],
                       is_ranged ? range_name(ranges[i]) : "", is_ranged ? " " : "",
                       weir_tensor_shape_text(scalar, text));
  }
  if (!ranges || ranges[i] == ' ' || s->is_cuda) return NULL;
  WEIR_TRY(
      weir_cast_elements(WEIR_DTYPE_DOUBLE, &value, weir_tensor_type(scalar), scalar->data, 1));
  if (is_in_range(ranges[i], s->flag, value)) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "%s is not a %s scalar: %g", family->scalars[i],
                     range_name(ranges[i]), value);
}

static weir_status_t* check_locked(const weir_kernel_ctx_t* ctx,
                                   const weir_optimizer_update_t* update) {
  const weir_optimizer_state_t* s = ctx->state;
  const weir_tensor_t* grad = weir_optimizer_grad(ctx, update);
  const weir_tensor_t* var = update->variables[0]->tensor;
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  for (int i = 0; i < s->slot_count; ++i) {
    const weir_tensor_t* slot = update->variables[i]->tensor;
    if (!slot) return uninitialized(ctx, update, i);
    if (slot->dtype != grad->dtype) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Expected %s to be of type %s, but it is %s",
                         slot_name(ctx, i), weir_dtype_name(weir_tensor_type(grad)),
                         weir_dtype_name(weir_tensor_type(slot)));
    }
    if (!weir_tensor_same_shape(var, slot)) {
      return WEIR_STATUS(INVALID_ARGUMENT, "var and %s do not have the same shape%s %s",
                         slot_name(ctx, i), weir_tensor_shape_text(var, a),
                         weir_tensor_shape_text(slot, b));
    }
  }
  for (int i = 0; i < s->scalar_count; ++i) {
    const weir_tensor_t* scalar = weir_optimizer_scalar(ctx, update, i);
    if (scalar) WEIR_TRY(check_scalar(s, i, scalar));
  }
  if (s->indices >= 0) return check_sparse(s, var, grad, weir_kernel_input(ctx, s->indices));
  if (!weir_tensor_same_shape(var, grad)) {
    return WEIR_STATUS(INVALID_ARGUMENT, "var and %s do not have the same shape%s %s",
                       grad_name(ctx), weir_tensor_shape_text(var, a),
                       weir_tensor_shape_text(grad, b));
  }
  return NULL;
}

static weir_status_t* run_on_cpu(const weir_kernel_ctx_t* ctx,
                                 const weir_optimizer_update_t* update) {
  const weir_optimizer_state_t* s = ctx->state;
  const weir_tensor_t* grad = weir_optimizer_grad(ctx, update);
  job_t job = {.state = s, .dtype = weir_tensor_type(grad), .cost_ns = s->family->cost_ns};
  weir_dtype_t wide = weir_dtype_size(job.dtype) == 2 ? WEIR_DTYPE_FLOAT : job.dtype;
  weir_complex128_t scalars[WEIR_OPTIMIZER_MAX_SCALARS] = {0};
  job.size = (int64_t)weir_dtype_size(job.dtype);
  job.fn = find_fn(s->family, job.dtype);
  if (!job.fn)
    return WEIR_STATUS(UNIMPLEMENTED, "%s is not defined for %s", ctx->node->op_name,
                       weir_dtype_name(job.dtype));
  for (int i = 0; i < s->scalar_count; ++i) {
    const weir_tensor_t* scalar = weir_optimizer_scalar(ctx, update, i);
    if (!scalar) continue;
    WEIR_TRY(weir_cast_elements(wide, (char*)scalars + (size_t)i * weir_dtype_size(wide),
                                weir_tensor_type(scalar), scalar->data, 1));
  }
  for (int i = 0; i < s->slot_count; ++i) job.args.slots[i] = update->variables[i]->tensor->data;
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

// ---- updates whose variables are locked together ----

// Variables are in the order of their addresses, in which they are locked, so that two optimizers
// that share some cannot wait for each other.
typedef struct batch_t {
  int count;
  int locked_count;
  weir_optimizer_update_t updates[WEIR_OPTIMIZER_MAX_LOCKED];
  weir_variable_t* locked[WEIR_OPTIMIZER_MAX_LOCKED];
} batch_t;

// False when it is there already.
static bool insert_variable(batch_t* batch, weir_variable_t* variable) {
  int at = batch->locked_count;
  while (at > 0 && (uintptr_t)batch->locked[at - 1] >= (uintptr_t)variable) --at;
  if (at < batch->locked_count && batch->locked[at] == variable) return false;
  for (int i = batch->locked_count++; i > at; --i) batch->locked[i] = batch->locked[i - 1];
  batch->locked[at] = variable;
  return true;
}

static bool has_variable(const batch_t* batch, const weir_variable_t* variable) {
  for (int i = 0; i < batch->locked_count; ++i) {
    if (batch->locked[i] == variable) return true;
  }
  return false;
}

static void release_variables(weir_optimizer_update_t* update) {
  for (int i = 0; i < WEIR_OPTIMIZER_MAX_SLOTS; ++i) {
    if (update->variables[i]) weir_resource_release(&update->variables[i]->base);
  }
}

static weir_status_t* find_variables(weir_kernel_ctx_t* ctx, weir_optimizer_update_t* update) {
  const weir_optimizer_state_t* s = ctx->state;
  for (int i = 0; i < s->slot_count; ++i) {
    weir_status_t* status =
        weir_kernel_variable(ctx, s->slots[i] + update->number, &update->variables[i]);
    if (status && weir_status_code(status) == WEIR_FAILED_PRECONDITION) {
      weir_status_destroy(status);
      status = uninitialized(ctx, update, i);
    }
    if (status) return status;
  }
  return NULL;
}

// Adds an update. One of a variable that another one of the batch updates comes in the next:
// |out_is_full|.
static weir_status_t* add_update(weir_kernel_ctx_t* ctx, int number, batch_t* batch,
                                 bool* out_is_full) {
  const weir_optimizer_state_t* s = ctx->state;
  weir_optimizer_update_t* update = &batch->updates[batch->count];
  *update = (weir_optimizer_update_t){.number = number};
  weir_status_t* status = find_variables(ctx, update);
  for (int i = 0; i < s->slot_count && !status; ++i)
    *out_is_full = *out_is_full || has_variable(batch, update->variables[i]);
  for (int i = 0; i < s->slot_count && !status && !*out_is_full; ++i) {
    if (insert_variable(batch, update->variables[i])) continue;
    weir_view_t name = update_name(ctx, update);
    status = WEIR_STATUS(INVALID_ARGUMENT, "%.*s: the same variable serves as two slots",
                         WEIR_VIEW_ARG(name));
  }
  if (!status && !*out_is_full) ++batch->count;
  else release_variables(update);
  return at_update(ctx, update, status);
}

// As many of the updates from |first| on as can be done together, at least one.
static weir_status_t* fill_batch(weir_kernel_ctx_t* ctx, int first, batch_t* batch) {
  const weir_optimizer_state_t* s = ctx->state;
  bool is_full = false;
  while (!is_full && first + batch->count < s->update_count && batch->count < s->most_updates)
    WEIR_TRY(add_update(ctx, first + batch->count, batch, &is_full));
  return NULL;
}

static weir_status_t* apply_locked(weir_kernel_ctx_t* ctx, const batch_t* batch) {
  const weir_optimizer_state_t* s = ctx->state;
  for (int k = 0; k < batch->count; ++k) {
    const weir_optimizer_update_t* update = &batch->updates[k];
    weir_status_t* status = check_locked(ctx, update);
    for (int i = 0; i < s->slot_count && !status; ++i)
      status = weir_variable_make_sole_locked(update->variables[i], slot_name(ctx, i));
    if (!status && !s->is_cuda) status = run_on_cpu(ctx, update);
    if (status) return at_update(ctx, update, status);
  }
  return s->is_cuda ? weir_optimizer_cuda_run(ctx, batch->updates, batch->count) : NULL;
}

static weir_status_t* apply(weir_kernel_ctx_t* ctx, const batch_t* batch) WEIR_NO_THREAD_SAFETY {
  for (int i = 0; i < batch->locked_count; ++i) weir_mutex_lock(&batch->locked[i]->mu);
  weir_status_t* status = apply_locked(ctx, batch);
  for (int i = batch->locked_count - 1; i >= 0; --i) weir_mutex_unlock(&batch->locked[i]->mu);
  return status;
}

weir_status_t* weir_optimizer_compute(weir_kernel_ctx_t* ctx) {
  const weir_optimizer_state_t* s = ctx->state;
  weir_status_t* status = NULL;
  for (int done = 0; done < s->update_count && !status;) {
    batch_t batch;
    batch.count = batch.locked_count = 0;
    status = fill_batch(ctx, done, &batch);
    if (!status) status = apply(ctx, &batch);
    done += batch.count;
    for (int k = 0; k < batch.count; ++k) {
      weir_optimizer_update_t* update = &batch.updates[k];
      if (!status && ctx->output_count > 0)
        weir_kernel_set_ref(ctx, update->number, update->variables[0]);
      release_variables(update);
    }
  }
  return status;
}

// ---- shapes ----
static const weir_shape_t* slot_shape(weir_shape_ctx_t* ctx, int i) {
  if (ctx->node->input_types[i] != WEIR_DTYPE_RESOURCE) return weir_shape_input(ctx, i);
  const weir_handle_info_t* info = ctx->input_handles[i];
  return info && info->shape ? info->shape : &weir_shape_unknown;
}

// A gradient of some rows of |*var|, one for each index. Of a resource's, kernels look at
// dimensions that it has not.
static weir_status_t* check_rows(weir_shape_ctx_t* ctx, const weir_shape_t* grad,
                                 const weir_shape_t* indices, const weir_shape_t** var) {
  int64_t count = 0, dims[WEIR_MAX_RANK];
  const weir_shape_t* vector = NULL;
  WEIR_TRY(weir_shape_with_rank(ctx, indices, 1, &vector));
  if (grad->rank == 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Argument grad must not be a scalar. Got grad with rank 0");
  }
  if (grad->rank < 0) return NULL;
  WEIR_TRY(weir_dim_join(ctx, vector->dims[0], grad->dims[0], &count));
  const bool is_resource = ctx->node->input_types[0] == WEIR_DTYPE_RESOURCE;
  if (is_resource && grad->rank > (*var)->rank) return NULL;
  memcpy(dims, grad->dims, (size_t)grad->rank * sizeof(*dims));
  dims[0] = -1;  // which rows they are is not said
  return weir_shape_join(ctx, *var, weir_shape_make(ctx->arena, grad->rank, dims), var);
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
      WEIR_TRY(check_rows(ctx, weir_shape_input(ctx, i), weir_shape_input(ctx, indices), &var));
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

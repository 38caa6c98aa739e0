// batch.c — Batch and BatchFunction: kernels of several steps put together to one batch.
#include "op/call.h"
#include "op/grad_ctx.h"
#include "op/shape_ctx.h"
#include "op/shared_handle.h"
#include "ops/batch/batcher.h"

// So many batches run at a time where an adaptive scheduler was asked for.
enum { ADAPTIVE_THREADS = 64 };

typedef struct batch_state_t {
  weir_shared_handle_t handle;
  weir_step_batcher_config_t config;  // borrows from the node
  weir_strbuf_t queue;
  weir_callee_t callee;
  int input_count;
} batch_state_t;

// ---- attributes ----

static weir_status_t* read_int(const weir_kernel_init_t* init, const char* attr, int64_t* out) {
  *out = weir_attrs_int(init->node->attrs, attr);
  if (*out >= INT32_MIN && *out <= INT32_MAX) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Attr %s has value %lld out of range for an int32", attr,
                     (long long)*out);
}

static weir_status_t* check_allowed(const weir_step_batcher_config_t* c, bool may_differ) {
  for (size_t i = 1; i < c->allowed_count; ++i) {
    if (c->allowed_sizes[i] > c->allowed_sizes[i - 1]) continue;
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "allowed_batch_sizes entries must be monotonically increasing");
  }
  if (c->allowed_count == 0 || may_differ) return NULL;
  if (c->allowed_sizes[c->allowed_count - 1] == c->max_batch_size) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "final entry in allowed_batch_sizes must equal max_batch_size%s",
                     c->is_function ? " when enable_large_batch_splitting is False" : "");
}

static weir_status_t* common_init(const weir_kernel_init_t* init, batch_state_t* s) {
  weir_step_batcher_config_t* c = &s->config;
  const weir_attr_t* allowed = weir_attrs_list(init->node->attrs, "allowed_batch_sizes");
  WEIR_TRY(read_int(init, "num_batch_threads", &c->thread_count));
  WEIR_TRY(read_int(init, "max_batch_size", &c->max_batch_size));
  WEIR_TRY(read_int(init, "batch_timeout_micros", &c->timeout_us));
  WEIR_TRY(read_int(init, "max_enqueued_batches", &c->max_enqueued_count));
  c->allowed_sizes = allowed->u.ints;
  c->allowed_count = allowed->count;
  return weir_shared_handle_init_names(init, &s->handle);
}

static weir_status_t* batch_init(const weir_kernel_init_t* init, void* state) {
  batch_state_t* s = state;
  weir_view_t queue = weir_attrs_string(init->node->attrs, "batching_queue");
  s->input_count = (int)weir_attrs_list(init->node->attrs, "T")->count;
  WEIR_TRY(common_init(init, s));
  weir_strbuf_append(&s->queue, queue.data, queue.size);
  WEIR_TRY(weir_strbuf_finish(&s->queue));
  return check_allowed(&s->config, false);
}

// An adaptive scheduler is shared by name, not the queues in it.
static weir_status_t* name_queue(const weir_kernel_init_t* init, batch_state_t* s) {
  weir_view_t queue = weir_attrs_string(init->node->attrs, "batching_queue");
  weir_view_t shared = weir_attrs_string(init->node->attrs, "shared_name");
  if (s->config.is_adaptive) {
    weir_strbuf_printf(&s->queue, "%s/%.*s", init->node->name, WEIR_VIEW_ARG(shared));
  }
  weir_strbuf_append(&s->queue, queue.data, queue.size);
  return weir_strbuf_finish(&s->queue);
}

static weir_status_t* function_init(const weir_kernel_init_t* init, void* state) {
  batch_state_t* s = state;
  weir_step_batcher_config_t* c = &s->config;
  const weir_attrs_t attrs = init->node->attrs;
  const bool splits = weir_attrs_bool(attrs, "enable_large_batch_splitting");
  weir_callee_init(&s->callee, weir_attrs_func(attrs, "f"));
  s->input_count = (int)weir_attrs_list(attrs, "Tin")->count;
  WEIR_TRY(common_init(init, s));
  c->is_function = true;
  c->is_adaptive = c->thread_count <= 0;
  if (c->is_adaptive) c->thread_count = ADAPTIVE_THREADS;
  c->splits = splits || c->is_adaptive;
  c->batches_down = weir_view_is(weir_attrs_string(attrs, "batch_padding_policy"), "BATCH_DOWN");
  WEIR_TRY(name_queue(init, s));
  return check_allowed(c, splits);
}

static void batch_deinit(void* state) {
  batch_state_t* s = state;
  weir_strbuf_free(&s->queue);
  weir_shared_handle_deinit(&s->handle);
}

// ---- kernels ----

static weir_status_t* bad_inputs(const weir_kernel_ctx_t* ctx, int count, const char* what) {
  weir_strbuf_t text = {0};
  for (int i = 0; i < count; ++i) {
    char shape[WEIR_SHAPE_TEXT_SIZE];
    weir_strbuf_printf(&text, " - input %d has shape %s\n", i,
                       weir_tensor_shape_text(weir_kernel_input(ctx, i), shape));
  }
  weir_status_t* status = weir_strbuf_finish(&text);
  if (!status) {
    status = WEIR_STATUS(INVALID_ARGUMENT, "%s.\nBelow are the input tensors: \n%s", what,
                         text.data ? text.data : "");
  }
  weir_strbuf_free(&text);
  return status;
}

static weir_status_t* check_inputs(const weir_kernel_ctx_t* ctx, const batch_state_t* s) {
  for (int i = 0; i < s->input_count; ++i) {
    const weir_tensor_t* input = weir_kernel_input(ctx, i);
    if (s->config.is_function && weir_tensor_type(input) == WEIR_DTYPE_RESOURCE) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "BatchFunction cannot take resource inputs but input %d is a resource.",
                         i);
    }
    if (input->rank == 0) {
      return bad_inputs(ctx, s->input_count,
                        "Batching input tensors must have at least one dimension");
    }
    if (input->dims[0] != weir_kernel_input(ctx, 0)->dims[0]) {
      return bad_inputs(ctx, s->input_count,
                        "Batching input tensors supplied in a given op invocation must have equal "
                        "0th-dimension size");
    }
  }
  return NULL;
}

// A step without rows has nothing to put into a batch.
static weir_status_t* set_empty(weir_kernel_ctx_t* ctx) {
  weir_tensor_t* out = NULL;
  for (int i = 0; i < ctx->output_count; ++i) {
    WEIR_TRY(weir_kernel_output(ctx, i, 1, (const int64_t[]){0}, &out));
  }
  return NULL;
}

static weir_status_t* find_batcher(weir_kernel_ctx_t* ctx, weir_step_batcher_t** out_batcher) {
  batch_state_t* s = ctx->state;
  weir_resource_t* resource = NULL;
  WEIR_TRY(weir_shared_handle_create(ctx, &s->handle, &weir_step_batcher_type,
                                     weir_step_batcher_create, &s->config, &resource));
  *out_batcher = (weir_step_batcher_t*)resource;
  if (weir_step_batcher_is_function(*out_batcher) == s->config.is_function) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "'%s' is shared between Batch and BatchFunction",
                     s->handle.name);
}

static void batch_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  batch_state_t* s = ctx->state;
  weir_step_batcher_t* batcher = NULL;
  weir_batch_call_t call = {.queue = weir_view(s->queue.data, s->queue.size),
                            .input_count = s->input_count};
  weir_status_t* status = NULL;
  if (s->config.is_function) status = weir_callee_handle(&s->callee, ctx, &call.function);
  if (!status) status = find_batcher(ctx, &batcher);
  if (!status) status = check_inputs(ctx, s);
  const bool is_empty = !status && weir_kernel_input(ctx, 0)->dims[0] == 0;
  if (is_empty) status = set_empty(ctx);
  if (status || is_empty) {
    weir_resource_release((weir_resource_t*)batcher);
    weir_done_call(done, status);
    return;
  }
  weir_step_batcher_submit(batcher, &call, ctx, done);
  weir_resource_release((weir_resource_t*)batcher);
}

// ---- shapes and gradient ----

static weir_status_t* batch_shape(weir_shape_ctx_t* ctx) {
  const int count = ctx->node->input_count;
  for (int i = 0; i < count; ++i) {
    const weir_shape_t* shape = weir_shape_input(ctx, i);
    if (!shape || shape->rank < 0) continue;
    int64_t dims[WEIR_MAX_RANK];
    WEIR_TRY(weir_shape_at_least(ctx, shape, 1));
    for (int axis = 0; axis < shape->rank; ++axis) dims[axis] = shape->dims[axis];
    dims[0] = -1;
    WEIR_TRY(weir_shape_set_dims(ctx, i, shape->rank, dims));
  }
  WEIR_TRY(weir_shape_set_dims(ctx, count, 2, (const int64_t[]){-1, 3}));
  return weir_shape_set_scalar(ctx, count + 1);
}

#define BATCH_NAMES \
  "container: string = ''; shared_name: string = ''; batching_queue: string = ''; "
#define BATCH_KERNEL(init_fn)                                                            \
  WEIR_CPU_KERNEL(.compute_async = batch_cpu, .init = (init_fn), .deinit = batch_deinit, \
                  .state_size = sizeof(batch_state_t))

const weir_op_module_t weir_ops_batch_batch = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Batch",
         .attrs = "num_batch_threads: int; max_batch_size: int; max_enqueued_batches: int = 10; "
                  "batch_timeout_micros: int; allowed_batch_sizes: list(int) = []; "
                  "grad_timeout_micros: int; " BATCH_NAMES "T: list(type) >= 1",
         .inputs = "in_tensors: T",
         .outputs = "batched_tensors: T; batch_index: int64; id: int64",
         .flags = WEIR_OP_NO_FOLD | WEIR_OP_ALLOW_DISTRIBUTED,
         .summary = "Collects rows of several steps into a batch, which one of these steps gets",
         .infer_shape = batch_shape,
         .kernels = BATCH_KERNEL(batch_init)},
        {.name = "BatchFunction",
         .attrs = "f: func; num_batch_threads: int; max_batch_size: int; "
                  "batch_timeout_micros: int; max_enqueued_batches: int = 10; "
                  "allowed_batch_sizes: list(int) = []; " BATCH_NAMES
                  "low_priority_max_batch_size: int = 0; "
                  "low_priority_batch_timeout_micros: int = 0; "
                  "low_priority_allowed_batch_sizes: list(int) = []; "
                  "low_priority_max_enqueued_batches: int = 0; "
                  "mixed_priority_policy: {'low_priority_padding_with_max_batch_size', "
                  "'low_priority_padding_with_next_allowed_batch_size', 'priority_isolation', "
                  "'priority_merge'} = 'low_priority_padding_with_max_batch_size'; "
                  "batch_padding_policy: {'PAD_UP', 'BATCH_DOWN', "
                  "'MINIMIZE_TPU_COST_PER_REQUEST'} = 'PAD_UP'; "
                  "Tin: list(type) >= 1; Tcaptured: list(type) >= 0; Tout: list(type) >= 1; "
                  "enable_large_batch_splitting: bool = false",
         .inputs = "in_tensors: Tin; captured_tensors: Tcaptured",
         .outputs = "out_tensors: Tout",
         .flags = WEIR_OP_NO_FOLD | WEIR_OP_ALLOW_DISTRIBUTED,
         .summary = "Calls a function with the rows of several steps as one batch",
         .infer_shape = weir_shape_fn_unknown,
         .kernels = BATCH_KERNEL(function_init)},
        {0}}};

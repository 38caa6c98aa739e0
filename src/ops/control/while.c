// while.c — While, StatelessWhile and the old _While: a loop over two functions.
//
// Both functions may finish at once or later, on any thread. Whoever finishes last of the two, the
// call itself or its callback, goes on with the loop, so that a loop of any length uses constant
// stack.
#include "op/call.h"
#include "ops/control/output_shapes.h"

typedef struct while_state_t {
  weir_callee_t cond;
  weir_callee_t body;
} while_state_t;

// One loop under way. Touched by one thread at a time: |barrier| hands it over.
typedef struct loop_t {
  weir_kernel_ctx_t* ctx;
  weir_done_t done;
  weir_function_handle_t cond;
  weir_function_handle_t body;
  weir_call_t call;
  weir_status_t* status;  // of the last call
  atomic_int barrier;     // 2 while a call is under way; its return and its callback take one each
  int count;              // loop variables
  bool is_in_cond;        // the call under way is the condition's
  weir_tensor_t* truth;   // what the condition returned
  weir_tensor_t* tensors[];  // |count| variables, then |count| new ones
} loop_t;

static void loop_drive(loop_t* loop);

static void release_all(weir_tensor_t** tensors, int count) {
  for (int i = 0; i < count; ++i) {
    weir_tensor_release(tensors[i]);
    tensors[i] = NULL;
  }
}

// Ends the loop; the variables become the outputs.
static void loop_finish(loop_t* loop, weir_status_t* take_status) {
  weir_done_t done = loop->done;
  if (!take_status) take_status = weir_kernel_set_results(loop->ctx, loop->tensors);
  release_all(loop->tensors, 2 * loop->count);
  weir_tensor_release(loop->truth);
  weir_free(loop);
  weir_done_call(done, take_status);
}

static bool loop_is_last(loop_t* loop) {
  return atomic_fetch_sub_explicit(&loop->barrier, 1, memory_order_acq_rel) ==
         1;  // pairs with the other side's
}

static void call_done(void* arg, weir_status_t* take_status) {
  loop_t* loop = arg;
  loop->status = take_status;
  if (loop_is_last(loop)) loop_drive(loop);
}

// Starts a call. True when it is done already, and then the caller goes on.
static bool loop_call(loop_t* loop) {
  weir_functions_t* functions = loop->ctx->step->functions;
  loop->call = (weir_call_t){.function = loop->is_in_cond ? loop->cond : loop->body,
                             .args = loop->tensors,
                             .arg_count = loop->count,
                             .rets = loop->is_in_cond ? &loop->truth : loop->tensors + loop->count,
                             .ret_count = loop->is_in_cond ? 1 : loop->count};
  atomic_store_explicit(&loop->barrier, 2,
                        memory_order_relaxed);  // nobody else sees the loop before the call
  functions->vtable->call(functions, loop->ctx, &loop->call,
                          (weir_done_t){.fn = call_done, .arg = loop});
  return loop_is_last(loop);
}

// A body that gives back other types than it took would be called with them again.
static weir_status_t* check_results(const loop_t* loop) {
  for (int i = 0; i < loop->count; ++i) {
    weir_dtype_t want = loop->ctx->node->output_types[i];
    weir_dtype_t got = weir_tensor_type(loop->tensors[loop->count + i]);
    if (want != got)
      return WEIR_STATUS(INVALID_ARGUMENT, "Expected type %s for return value %d but got %s.",
                         weir_dtype_name(want), i, weir_dtype_name(got));
  }
  return NULL;
}

// Takes the results of the call that ended. *|out_is_over|: the condition said no.
static weir_status_t* loop_advance(loop_t* loop, bool* out_is_over) {
  weir_status_t* status = loop->status;
  loop->status = NULL;
  if (status) return status;
  if (loop->is_in_cond) {
    bool truth = false;
    status = weir_tensor_truth(loop->truth, &truth);
    weir_tensor_release(loop->truth);
    loop->truth = NULL;
    *out_is_over = !truth;
  } else {
    WEIR_TRY(check_results(loop));
    weir_tensor_t** next = loop->tensors + loop->count;
    release_all(loop->tensors, loop->count);
    for (int i = 0; i < loop->count; ++i) {
      loop->tensors[i] = next[i];
      next[i] = NULL;
    }
  }
  loop->is_in_cond = !loop->is_in_cond;
  return status;
}

// Runs after a call has ended: takes its results and starts the next, until one does not end at
// once.
static void loop_drive(loop_t* loop) {
  do {
    bool is_over = false;
    weir_status_t* status = loop_advance(loop, &is_over);
    if (!status && !is_over && weir_cancel_is_cancelled(loop->ctx->step->cancel)) {
      status = WEIR_STATUS(CANCELLED, "Loop execution was cancelled");
    }
    if (status || is_over) {
      loop_finish(loop, status);
      return;
    }
  } while (loop_call(loop));
}

static weir_status_t* loop_create(weir_kernel_ctx_t* ctx, weir_done_t done, loop_t** out_loop) {
  while_state_t* state = ctx->state;
  weir_function_handle_t cond = 0, body = 0;
  WEIR_TRY(weir_callee_handle(&state->cond, ctx, &cond));
  WEIR_TRY(weir_callee_handle(&state->body, ctx, &body));
  loop_t* loop =
      weir_calloc(1, sizeof(*loop) + 2 * (size_t)ctx->input_count * sizeof(weir_tensor_t*));
  if (!loop) return weir_out_of_memory();
  loop->ctx = ctx;
  loop->done = done;
  loop->cond = cond;
  loop->body = body;
  loop->count = ctx->input_count;
  loop->is_in_cond = true;
  atomic_init(&loop->barrier, 0);
  // Taken out of the context: a variable's memory is free as soon as the body has replaced it.
  for (int i = 0; i < loop->count; ++i) loop->tensors[i] = weir_kernel_take_input(ctx, i);
  *out_loop = loop;
  return NULL;
}

static void while_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  loop_t* loop = NULL;
  weir_status_t* status = loop_create(ctx, done, &loop);
  if (status) {
    weir_done_call(done, status);
  } else if (loop_call(loop)) {
    loop_drive(loop);
  }
}

static weir_status_t* while_init(const weir_kernel_init_t* init, void* state) {
  while_state_t* loop = state;
  weir_callee_init(&loop->cond, weir_attrs_func(init->node->attrs, "cond"));
  weir_callee_init(&loop->body, weir_attrs_func(init->node->attrs, "body"));
  return NULL;
}

static weir_status_t* while_shape(weir_shape_ctx_t* ctx) {
  bool is_set = false;
  WEIR_TRY(set_output_shapes(ctx, &is_set));
  for (int i = 0; i < ctx->node->output_count; ++i) {
    if (!is_set) WEIR_TRY(weir_shape_set(ctx, i, weir_shape_input(ctx, i)));
    if (ctx->output_handles) ctx->output_handles[i] = ctx->input_handles[i];
  }
  return NULL;
}

#define WHILE_OP(op_name, op_flags)                                                      \
  {                                                                                      \
    .name = op_name,                                                                     \
    .attrs =                                                                             \
        "T: list(type) >= 0; cond: func; body: func; output_shapes: list(shape) = []; "  \
        "parallel_iterations: int = 10",                                                 \
    .inputs = "input: T", .outputs = "output: T", .flags = op_flags,                     \
    .summary = "Calls a function on its own results while another says so.",             \
    .infer_shape = while_shape, .kernels = (const weir_kernel_def_t[]) {                 \
      {WEIR_DEVICE_CPU, .compute_async = while_cpu, .state_size = sizeof(while_state_t), \
       .init = while_init},                                                              \
      {                                                                                  \
        0                                                                                \
      }                                                                                  \
    }                                                                                    \
  }

static weir_status_t* old_shape(weir_shape_ctx_t* ctx) {
  for (int i = 0; i < ctx->node->output_count; ++i) {
    WEIR_TRY(weir_shape_set(ctx, i, weir_shape_input(ctx, i)));
  }
  return NULL;
}

const weir_op_module_t weir_ops_control_while = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        WHILE_OP("While", WEIR_OP_STATEFUL),
        WHILE_OP("StatelessWhile", WEIR_OP_NO_FOLD),
        {.name = "_While",
         .attrs = "T: list(type) >= 0; cond: func; body: func",
         .inputs = "input: T",
         .outputs = "output: T",
         .flags = WEIR_OP_STATEFUL,
         .summary = "Calls a function on its own results while another says so.",
         .infer_shape = old_shape,
         .kernels = WEIR_CPU_KERNEL(.compute_async = while_cpu, .init = while_init,
                                    .state_size = sizeof(while_state_t))},
        {0}}};

// for.c — For: a function called for each of a row of numbers, on its own results; RemoteCall: one
// called on a device of this process; _ListToArray, _ArrayToList: tensors handed on.
#include <ctype.h>

#include "op/call.h"
#include "op/shape_ctx.h"

typedef struct for_state_t {
  weir_callee_t body;
} for_state_t;

// One loop under way. Touched by one thread at a time: |barrier| hands it over.
typedef struct for_loop_t {
  weir_kernel_ctx_t* ctx;
  weir_done_t done;
  weir_function_handle_t body;
  weir_call_t call;
  weir_status_t* status;  // of the last call
  atomic_int barrier;     // 2 while a call is under way; its return and its callback take one each
  int64_t at, limit, delta;
  int count;                 // variables
  weir_tensor_t* tensors[];  // the number, |count| variables, then |count| new ones
} for_loop_t;

static void for_drive(for_loop_t* loop, bool is_first);

static void for_finish(for_loop_t* loop, weir_status_t* take_status) {
  weir_done_t done = loop->done;
  if (!take_status) take_status = weir_kernel_set_results(loop->ctx, loop->tensors + 1);
  for (int i = 0; i < 2 * loop->count + 1; ++i) weir_tensor_release(loop->tensors[i]);
  weir_free(loop);
  weir_done_call(done, take_status);
}

static bool for_is_last(for_loop_t* loop) {
  return atomic_fetch_sub_explicit(&loop->barrier, 1, memory_order_acq_rel) ==
         1;  // pairs with the other side's
}

static void for_called(void* arg, weir_status_t* take_status) {
  for_loop_t* loop = arg;
  loop->status = take_status;
  if (for_is_last(loop)) for_drive(loop, false);
}

// Starts a turn. True when it is done already, and then the caller goes on.
static bool for_call(for_loop_t* loop) {
  weir_functions_t* functions = loop->ctx->step->functions;
  loop->call = (weir_call_t){.function = loop->body,
                             .args = loop->tensors,
                             .arg_count = loop->count + 1,
                             .rets = loop->tensors + 1 + loop->count,
                             .ret_count = loop->count};
  atomic_store_explicit(&loop->barrier, 2,
                        memory_order_relaxed);  // nobody else sees the loop before the call
  functions->vtable->call(functions, loop->ctx, &loop->call,
                          (weir_done_t){.fn = for_called, .arg = loop});
  return for_is_last(loop);
}

static weir_status_t* set_number(for_loop_t* loop) {
  weir_tensor_t* number = NULL;
  WEIR_TRY(weir_tensor_create(WEIR_DTYPE_INT32, 0, NULL, &number));
  WEIR_TENSOR_DATA(number, int32_t)[0] = (int32_t)loop->at;
  weir_tensor_release(loop->tensors[0]);
  loop->tensors[0] = number;
  return NULL;
}

// Takes the results of the turn that ended; INVALID_ARGUMENT when they are of other types.
static weir_status_t* take_results(for_loop_t* loop) {
  weir_tensor_t **old = loop->tensors + 1, **next = old + loop->count;
  if (loop->status) {
    weir_status_t* status = loop->status;
    loop->status = NULL;
    return status;
  }
  for (int i = 0; i < loop->count; ++i) {
    const weir_dtype_t want = loop->ctx->node->output_types[i];
    if (weir_tensor_type(next[i]) != want) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Expected type %s for return value %d but got %s.",
                         weir_dtype_name(want), i, weir_dtype_name(weir_tensor_type(next[i])));
    }
    weir_tensor_release(old[i]);
    old[i] = next[i];
    next[i] = NULL;
  }
  loop->at += loop->delta;
  return NULL;
}

static bool is_beyond(const for_loop_t* loop, int64_t at) {
  return loop->delta > 0 ? at >= loop->limit : at <= loop->limit;
}

static bool is_over(const for_loop_t* loop) { return is_beyond(loop, loop->at); }

static void for_drive(for_loop_t* loop, bool is_first) {
  do {
    weir_status_t* status = is_first ? NULL : take_results(loop);
    is_first = false;
    if (!status && weir_cancel_is_cancelled(loop->ctx->step->cancel)) {
      status = WEIR_STATUS(CANCELLED, "Loop execution was cancelled");
    }
    const bool ends = status || is_over(loop);
    if (!ends) status = set_number(loop);
    if (ends || status) {
      for_finish(loop, status);
      return;
    }
  } while (for_call(loop));
}

static weir_status_t* read_range(const weir_kernel_ctx_t* ctx, for_loop_t* loop) {
  static const char* const names[] = {"start", "limit", "delta"};
  for (int i = 0; i < 3; ++i) {
    if (weir_kernel_input(ctx, i)->rank == 0) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "%s must be a scalar", names[i]);
  }
  loop->at = weir_tensor_int_at(weir_kernel_input(ctx, 0), 0);
  loop->limit = weir_tensor_int_at(weir_kernel_input(ctx, 1), 0);
  loop->delta = weir_tensor_int_at(weir_kernel_input(ctx, 2), 0);
  const bool is_right = (loop->delta > 0 && loop->at <= loop->limit) ||
                        (loop->delta < 0 && loop->at >= loop->limit) ||
                        (loop->delta == 0 && loop->at == loop->limit);
  if (is_right) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Invalid start/limit/delta: %lld %lld %lld",
                     (long long)loop->at, (long long)loop->limit, (long long)loop->delta);
}

// Results that do not fit are noticed by the next turn, or where there is none, by who takes them;
// those of a body that is never called, by nobody.
static weir_status_t* check_body(const for_loop_t* loop) {
  weir_functions_t* functions = loop->ctx->step->functions;
  const int count = functions->vtable->result_count(functions, loop->body);
  if (count == loop->count || is_over(loop)) return NULL;
  if (is_beyond(loop, loop->at + loop->delta)) {
    return WEIR_STATUS(INTERNAL, "Expect to produce %d tensors, but only get %d", loop->count,
                       count);
  }
  return WEIR_STATUS(INVALID_ARGUMENT, "For loop body returned %d arguments. Expected: %d", count,
                     loop->count);
}

static void for_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  const int count = ctx->input_count - 3;
  for_loop_t* loop =
      weir_calloc(1, sizeof(*loop) + (2 * (size_t)count + 1) * sizeof(weir_tensor_t*));
  if (!loop) {
    weir_done_call(done, weir_out_of_memory());
    return;
  }
  loop->ctx = ctx;
  loop->done = done;
  loop->count = count;
  atomic_init(&loop->barrier, 0);
  weir_status_t* status = read_range(ctx, loop);
  if (!status) status = weir_callee_handle(&((for_state_t*)ctx->state)->body, ctx, &loop->body);
  if (!status) status = check_body(loop);
  if (status) {
    weir_free(loop);
    weir_done_call(done, status);
    return;
  }
  for (int i = 0; i < count; ++i) loop->tensors[1 + i] = weir_kernel_take_input(ctx, 3 + i);
  for_drive(loop, true);
}

static weir_status_t* for_init(const weir_kernel_init_t* init, void* state) {
  weir_callee_init(&((for_state_t*)state)->body, weir_attrs_func(init->node->attrs, "body"));
  return NULL;
}

// ---- RemoteCall ----

static weir_status_t* remote_init(const weir_kernel_init_t* init, void* state) {
  weir_callee_init(&((for_state_t*)state)->body, weir_attrs_func(init->node->attrs, "f"));
  return NULL;
}

// Whether |target| is the CPU of this process: "/CPU:0", "/device:CPU:0", or the device's whole
// name.
static bool is_here(weir_view_t target, const weir_device_t* device) {
  char lower[64] = "";
  if (weir_view_is(target, device->name)) return true;
  if (target.size >= sizeof(lower)) return false;
  for (size_t i = 0; i < target.size; ++i) lower[i] = (char)tolower((unsigned char)target.data[i]);
  return strcmp(lower, "/cpu:0") == 0 || strcmp(lower, "/device:cpu:0") == 0 ||
         strcmp(lower, "/job:localhost/replica:0/task:0/device:cpu:0") == 0 ||
         strcmp(lower, "/job:localhost/replica:0/task:0/cpu:0") == 0;
}

static void remote_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  const weir_tensor_t* target = weir_kernel_input(ctx, 0);
  weir_status_t* status = NULL;
  if (target->rank != 0) {
    status = WEIR_STATUS(INVALID_ARGUMENT, "target must be a scalar");
  } else if (!is_here(weir_string_view(target->data), ctx->device)) {
    status = WEIR_STATUS(UNIMPLEMENTED,
                         "RemoteCall to '%.*s': functions are called on this process's CPU only",
                         WEIR_VIEW_ARG(weir_string_view(target->data)));
  }
  if (status) {
    weir_done_call(done, status);
  } else {
    weir_callee_call(&((for_state_t*)ctx->state)->body, ctx, 1, done);
  }
}

// ---- lists ----

static weir_status_t* pass_all_cpu(weir_kernel_ctx_t* ctx) {
  for (int i = 0; i < ctx->input_count; ++i) {
    const weir_dtype_t has = ctx->node->input_types[i], wanted = ctx->node->output_types[i];
    if (has != wanted) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Input %d is %s, output %d %s", i, weir_dtype_name(has),
                         i, weir_dtype_name(wanted));
    }
    weir_kernel_pass(ctx, i, i);
  }
  return NULL;
}

const weir_op_module_t weir_ops_control_for = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "For",
         .attrs = "T: list(type) >= 0; body: func",
         .inputs = "start: int32; limit: int32; delta: int32; input: T",
         .outputs = "output: T",
         .flags = WEIR_OP_NO_FOLD,
         .summary = "Calls a function for each of a row of numbers, on its own results.",
         .infer_shape = weir_shape_fn_unknown,
         .kernels = WEIR_CPU_KERNEL(.compute_async = for_cpu, .init = for_init,
                                    .state_size = sizeof(for_state_t),
                                    .host_inputs = "start, limit, delta")},
        {.name = "RemoteCall",
         .attrs = "Tin: list(type) >= 1; Tout: list(type) >= 1; f: func",
         .inputs = "target: string; args: Tin",
         .outputs = "output: Tout",
         .flags = WEIR_OP_STATEFUL,
         .summary = "Calls a function on a device.",
         .infer_shape = weir_shape_fn_unknown,
         .kernels = WEIR_CPU_KERNEL(.compute_async = remote_cpu, .init = remote_init,
                                    .state_size = sizeof(for_state_t), .host_inputs = "target")},
        {.name = "_ListToArray",
         .attrs = "Tin: list(type) >= 1; T: type; N: int >= 1",
         .inputs = "input: Tin",
         .outputs = "output: N * T",
         .flags = WEIR_OP_VIEW | WEIR_OP_CHEAP,
         .summary = "A list of tensors as an array of them.",
         .infer_shape = weir_shape_fn_unknown,
         .kernels = WEIR_CPU_KERNEL(.compute = pass_all_cpu)},
        {.name = "_ArrayToList",
         .attrs = "T: type; N: int >= 1; out_types: list(type) >= 1",
         .inputs = "input: N * T",
         .outputs = "output: out_types",
         .flags = WEIR_OP_VIEW | WEIR_OP_CHEAP,
         .summary = "An array of tensors as a list of them.",
         .infer_shape = weir_shape_fn_unknown,
         .kernels = WEIR_CPU_KERNEL(.compute = pass_all_cpu)},
        {0}}};

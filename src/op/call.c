// call.c — Calling functions from kernels.
#include "op/call.h"

#include "tensor/cast.h"

bool weir_call_asks_to_lower(weir_attrs_t attrs) {
  const weir_attr_t* asked = weir_attrs_find(attrs, "_lower_using_switch_merge");
  return asked && asked->kind == WEIR_ATTR_BOOL && !asked->is_list && asked->u.b;
}

weir_status_t* weir_callee_handle(weir_callee_t* callee, weir_kernel_ctx_t* ctx,
                                  weir_function_handle_t* out_handle) {
  // Relaxed: a handle is a number, nothing is published with it, and everyone computes the same
  // one.
  weir_function_handle_t handle = atomic_load_explicit(&callee->handle, memory_order_relaxed);
  if (!handle) {
    weir_functions_t* functions = ctx->step->functions;
    if (!functions) {
      return WEIR_STATUS(FAILED_PRECONDITION,
                         "function '%.*s' cannot be called: the step has no function library",
                         WEIR_VIEW_ARG(callee->func->name));
    }
    WEIR_TRY(functions->vtable->instantiate(functions, callee->func, &handle));
    atomic_store_explicit(&callee->handle, handle, memory_order_relaxed);
  }
  *out_handle = handle;
  return NULL;
}

weir_status_t* weir_kernel_set_results(weir_kernel_ctx_t* ctx, weir_tensor_t** take_tensors) {
  weir_status_t* status = NULL;
  for (int i = 0; i < ctx->output_count; ++i) {
    weir_dtype_t want = ctx->node->output_types[i], got = weir_tensor_type(take_tensors[i]);
    if (!status && want != got)
      status = WEIR_STATUS(INTERNAL, "Expect %d-th output is of type %s but get %s", i,
                           weir_dtype_name(want), weir_dtype_name(got));
    weir_kernel_set(ctx, i, take_tensors[i]);
    take_tensors[i] = NULL;
  }
  return status;
}

// A call under way: lives until the function is done.
typedef struct call_run_t {
  weir_call_t call;
  weir_kernel_ctx_t* ctx;
  weir_done_t done;
  weir_tensor_t* tensors[];  // arguments, then results
} call_run_t;

static void call_done(void* arg, weir_status_t* take_status) {
  call_run_t* run = arg;
  weir_done_t done = run->done;
  if (!take_status) take_status = weir_kernel_set_results(run->ctx, run->call.rets);
  weir_free(run);
  weir_done_call(done, take_status);
}

void weir_callee_call(weir_callee_t* callee, weir_kernel_ctx_t* ctx, int first_input,
                      weir_done_t done) {
  weir_function_handle_t handle = 0;
  weir_status_t* status = weir_callee_handle(callee, ctx, &handle);
  if (status) {
    weir_done_call(done, status);
    return;
  }
  int arg_count = ctx->input_count - first_input;
  size_t tensor_count = (size_t)(arg_count + ctx->output_count);
  call_run_t* run = weir_calloc(1, sizeof(*run) + tensor_count * sizeof(weir_tensor_t*));
  if (!run) {
    weir_done_call(done, weir_out_of_memory());
    return;
  }
  for (int i = 0; i < arg_count; ++i) run->tensors[i] = ctx->inputs[first_input + i].tensor;
  run->ctx = ctx;
  run->done = done;
  run->call = (weir_call_t){.function = handle,
                            .args = run->tensors,
                            .arg_count = arg_count,
                            .rets = run->tensors + arg_count,
                            .ret_count = ctx->output_count};
  weir_functions_t* functions = ctx->step->functions;
  functions->vtable->call(functions, ctx, &run->call, (weir_done_t){.fn = call_done, .arg = run});
}

// The types that TensorFlow makes a boolean of.
static bool has_truth(weir_dtype_t dtype) {
  return dtype == WEIR_DTYPE_BOOL || dtype == WEIR_DTYPE_FLOAT || dtype == WEIR_DTYPE_DOUBLE ||
         dtype == WEIR_DTYPE_INT32 || dtype == WEIR_DTYPE_INT16 || dtype == WEIR_DTYPE_INT8 ||
         dtype == WEIR_DTYPE_UINT8;
}

weir_status_t* weir_tensor_truth(const weir_tensor_t* tensor, bool* out_truth) {
  weir_dtype_t dtype = weir_tensor_type(tensor);
  double value = 0;
  if (tensor->rank > 0) {
    *out_truth = tensor->count > 0;
  } else if (dtype == WEIR_DTYPE_STRING) {
    *out_truth = weir_string_view(tensor->data).size > 0;
  } else if (dtype == WEIR_DTYPE_INT64) {
    *out_truth = *WEIR_TENSOR_DATA(tensor, const int64_t) != 0;
  } else if (has_truth(dtype) && weir_element_to_double(dtype, tensor->data, &value)) {
    *out_truth = value != 0;
  } else {
    return WEIR_STATUS(INVALID_ARGUMENT, "%s cannot be converted to a boolean",
                       weir_dtype_name(dtype));
  }
  return NULL;
}

// accumulator.c — ConditionalAccumulator and its resource twin: sums and means of dense gradients.
#include "kernel/elementwise/update.h"
#include "op/shape_ctx.h"
#include "ops/queue/accumulator_resource.h"
#include "tensor/cast.h"

// The sum is a tensor: the first gradient itself, copied when somebody else holds it and a second
// comes.
static weir_status_t* make_sole(void** sum) {
  weir_tensor_t* tensor = *sum;
  weir_tensor_t* copy = NULL;
  if (weir_tensor_is_sole(tensor)) return NULL;
  WEIR_TRY(weir_tensor_copy(tensor, &copy));
  weir_tensor_release(tensor);
  *sum = copy;
  return NULL;
}

static weir_status_t* check_gradient(const weir_accumulator_t* a, const weir_tensor_t* gradient,
                                     const weir_tensor_t* sum) {
  char got[WEIR_SHAPE_TEXT_SIZE];
  if (weir_tensor_type(gradient) != a->dtype) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Expected a gradient of %s, got %s",
                       weir_dtype_name(a->dtype), weir_dtype_name(weir_tensor_type(gradient)));
  }
  if (!weir_shape_accepts(a->shape, gradient->rank, gradient->dims)) {
    weir_strbuf_t expected = {0};
    weir_shape_append(a->shape, &expected);
    weir_status_t* status = WEIR_STATUS(INVALID_ARGUMENT, "Shape mismatch: expected %.*s, got %s",
                                        WEIR_VIEW_ARG(weir_strbuf_view(&expected)),
                                        weir_tensor_shape_text(gradient, got));
    weir_strbuf_free(&expected);
    return status;
  }
  if (sum && !weir_tensor_same_shape(sum, gradient)) {
    char expected[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "Shape mismatch: expected %s, got %s",
                       weir_tensor_shape_text(sum, expected),
                       weir_tensor_shape_text(gradient, got));
  }
  return NULL;
}

static weir_status_t* dense_add(weir_accumulator_t* a, weir_kernel_ctx_t* ctx, int first,
                                void** sum) {
  const weir_tensor_t* gradient = weir_kernel_input(ctx, first);
  WEIR_TRY(check_gradient(a, gradient, *sum));
  if (!*sum) {
    *sum = weir_kernel_take_input(ctx, first);
    return NULL;
  }
  WEIR_TRY(make_sole(sum));
  weir_tensor_t* tensor = *sum;
  weir_update_parallel(weir_kernel_pool(ctx), weir_update_find(WEIR_UPDATE_ADD, a->dtype), a->dtype,
                       tensor->data, gradient->data, gradient->count);
  return NULL;
}

static weir_status_t* dense_emit(const weir_accumulator_t* a, weir_kernel_ctx_t* ctx, void* sum,
                                 int64_t count) {
  if (!a->is_mean || count == 1) {
    weir_kernel_set(ctx, 0, weir_tensor_retain(sum));
    return NULL;
  }
  double value = (double)count;
  uint64_t divisor = 0;  // of any type the op has a kernel for
  weir_tensor_t* mean = NULL;
  WEIR_TRY(weir_cast_elements(a->dtype, &divisor, WEIR_DTYPE_DOUBLE, &value, 1));
  WEIR_TRY(weir_tensor_copy(sum, &mean));
  (void)weir_update_find(WEIR_UPDATE_DIV, a->dtype)(mean->data, &divisor, mean->count, true);
  weir_kernel_set(ctx, 0, mean);
  return NULL;
}

static void dense_free(void* sum) { weir_tensor_release(sum); }

static const weir_accumulator_vtable_t dense_vtable = {
    .add = dense_add, .emit = dense_emit, .free_sum = dense_free};

static weir_status_t* dense_init(const weir_kernel_init_t* init, void* state) {
  return weir_accumulator_init(init, &dense_vtable, state);
}

// A scalar beside the handle: a step, or how many gradients.
static weir_status_t* number_shape(weir_shape_ctx_t* ctx) {
  return weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 0, NULL);
}

#define KERNEL(fn) WEIR_CPU_KERNEL(.compute = fn, .host_inputs = "handle")
#define MAKE(op, text, out)                                                                   \
  {                                                                                           \
    .name = op, .summary = text,                                                              \
    .attrs =                                                                                  \
        "dtype: numbertype; shape: shape; container: string = ''; shared_name: string = ''; " \
        "reduction_type: {'MEAN', "                                                           \
        "'SUM'} = 'MEAN'",                                                                    \
    .outputs = "handle: " out, .flags = WEIR_OP_STATEFUL | WEIR_OP_CHEAP,                     \
    .infer_shape = weir_shared_handle_shape, .kernels = (const weir_kernel_def_t[]) {         \
      {WEIR_DEVICE_CPU,                                                                       \
       .types = "dtype: double, float, half",                                                 \
       .compute = weir_accumulator_cpu,                                                       \
       .state_size = sizeof(weir_accumulator_state_t),                                        \
       .init = dense_init,                                                                    \
       .deinit = weir_accumulator_deinit,                                                     \
       .host_outputs = "handle"},                                                             \
      {                                                                                       \
        0                                                                                     \
      }                                                                                       \
    }                                                                                         \
  }
#define FAMILY(prefix, in, op_flags)                                                         \
  {.name = prefix "AccumulatorApplyGradient",                                                \
   .summary = "Adds a gradient to an accumulator unless its step is stale",                  \
   .attrs = "dtype: numbertype",                                                             \
   .inputs = "handle: " in "; local_step: int64; gradient: dtype",                           \
   .flags = op_flags,                                                                        \
   .infer_shape = number_shape,                                                              \
   .kernels = KERNEL(weir_accumulator_apply_cpu)},                                           \
      {.name = prefix "AccumulatorTakeGradient",                                             \
       .summary = "The average of at least num_required gradients, waiting for them",        \
       .attrs = "dtype: numbertype",                                                         \
       .inputs = "handle: " in "; num_required: int32",                                      \
       .outputs = "average: dtype",                                                          \
       .flags = op_flags,                                                                    \
       .infer_shape = number_shape,                                                          \
       .kernels = (const weir_kernel_def_t[]){{WEIR_DEVICE_CPU,                              \
                                               .compute_async = weir_accumulator_take_cpu,   \
                                               .host_inputs = "handle, num_required"},       \
                                              {0}}},                                         \
      {.name = prefix "AccumulatorNumAccumulated",                                           \
       .summary = "The number of gradients added since the last were taken",                 \
       .inputs = "handle: " in,                                                              \
       .outputs = "num_accumulated: int32",                                                  \
       .flags = (op_flags) | WEIR_OP_CHEAP,                                                  \
       .infer_shape = weir_shape_fn_scalar,                                                  \
       .kernels = KERNEL(weir_accumulator_count_cpu)},                                       \
  {                                                                                          \
    .name = prefix "AccumulatorSetGlobalStep",                                               \
    .summary = "Sets the step below which gradients are stale",                              \
    .inputs = "handle: " in "; new_global_step: int64", .flags = (op_flags) | WEIR_OP_CHEAP, \
    .infer_shape = number_shape, .kernels = KERNEL(weir_accumulator_set_step_cpu)            \
  }

const weir_op_module_t weir_ops_queue_accumulator = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        MAKE("ConditionalAccumulator",
             "Adds up gradients that are not stale, until enough can be taken", "Ref(string)"),
        MAKE("ResourceConditionalAccumulator",
             "Adds up gradients that are not stale, until enough can be taken", "resource"),
        FAMILY("", "Ref(string)", 0),
        FAMILY("Resource", "resource", WEIR_OP_STATEFUL),
        {0}}};

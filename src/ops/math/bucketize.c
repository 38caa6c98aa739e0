// bucketize.c — Bucketize: which of the intervals between sorted boundaries each element falls
// into.
#include "op/kernel.h"
#include "op/shape_ctx.h"

typedef struct bucketize_t {
  const float* boundaries;  // borrowed from the node
  size_t count;
} bucketize_t;

static weir_status_t* bucketize_init(const weir_kernel_init_t* init, void* state) {
  bucketize_t* self = state;
  const weir_attr_t* list = weir_attrs_list(init->node->attrs, "boundaries");
  self->boundaries = list->u.floats;
  self->count = list->count;
  for (size_t i = 1; i < self->count; ++i) {
    if (self->boundaries[i] >= self->boundaries[i - 1]) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "Expected sorted boundaries");
  }
  return NULL;
}

// The element as TensorFlow compares it: integers against float boundaries become floats.
static double element_at(const weir_tensor_t* t, int64_t i) {
  switch (weir_tensor_type(t)) {
    case WEIR_DTYPE_FLOAT: return WEIR_TENSOR_DATA(t, float)[i];
    case WEIR_DTYPE_DOUBLE: return WEIR_TENSOR_DATA(t, double)[i];
    default: return (float)weir_tensor_int_at(t, i);
  }
}

// The number of boundaries not above |value|.
static int32_t bucket_of(const bucketize_t* self, double value) {
  size_t low = 0, high = self->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (value < self->boundaries[middle]) high = middle;
    else low = middle + 1;
  }
  return (int32_t)low;
}

typedef struct job_t {
  const bucketize_t* self;
  const weir_tensor_t* in;
  int32_t* out;
} job_t;

static void bucketize_range(void* arg, int64_t begin, int64_t end) {
  const job_t* job = arg;
  for (int64_t i = begin; i < end; ++i) job->out[i] = bucket_of(job->self, element_at(job->in, i));
}

static weir_status_t* bucketize_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank, in->dims, &out));
  job_t job = {.self = ctx->state, .in = in, .out = WEIR_TENSOR_DATA(out, int32_t)};
  weir_pool_for(weir_kernel_pool(ctx), in->count, 10, bucketize_range, &job);
  return NULL;
}

const weir_op_module_t weir_ops_math_bucketize = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Bucketize",
         .attrs = "T: {int32, int64, float, double}; boundaries: list(float)",
         .inputs = "input: T",
         .outputs = "output: int32",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "The number of boundaries not above each element",
         .infer_shape = weir_shape_fn_unchanged,
         .kernels = WEIR_CPU_KERNEL(.compute = bucketize_cpu, .init = bucketize_init,
                                    .state_size = sizeof(bucketize_t))},
        {0}}};

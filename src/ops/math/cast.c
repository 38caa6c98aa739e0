// cast.c — Cast: elements to another type.
#include "tensor/cast.h"

#include <stdio.h>

#include "kernel/elementwise/cuda_elementwise.h"
#include "kernel/elementwise/cuda_formula.h"
#include "ops/math/common.h"

typedef struct cast_job_t {
  weir_dtype_t from;
  weir_dtype_t to;
  const char* x;
  char* y;
  int dropped_bits;  // mantissa bits cleared before rounding can see them (Truncate); 0: none
  atomic_bool is_bad;
} cast_job_t;

#define CAST_BLOCK 256

// Copies |n| floats or doubles with the lowest mantissa bits cleared: narrowing then truncates.
static void clear_low_bits(const cast_job_t* job, const char* x, void* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    if (job->from == WEIR_DTYPE_FLOAT) {
      ((uint32_t*)out)[i] = ((const uint32_t*)(const void*)x)[i] >> job->dropped_bits
                                                                        << job->dropped_bits;
    } else {
      ((uint64_t*)out)[i] = ((const uint64_t*)(const void*)x)[i] >> job->dropped_bits
                                                                        << job->dropped_bits;
    }
  }
}

static void cast_range(void* arg, int64_t begin, int64_t end) {
  cast_job_t* job = arg;
  size_t size = weir_dtype_size(job->from);
  size_t out_size = weir_dtype_size(job->to);
  int64_t block = job->dropped_bits ? CAST_BLOCK : end - begin;
  for (; begin < end; begin += block) {
    int64_t n = WEIR_MIN(block, end - begin);
    uint64_t cleared[CAST_BLOCK];
    const void* x = job->x + (size_t)begin * size;
    if (job->dropped_bits) {
      clear_low_bits(job, x, cleared, n);
      x = cleared;
    }
    weir_status_t* status =
        weir_cast_elements(job->to, job->y + (size_t)begin * out_size, job->from, x, n);
    // Relaxed: the pool's join orders it before the read.
    if (status) atomic_store_explicit(&job->is_bad, true, memory_order_relaxed);
    weir_status_destroy(status);
  }
}

static int mantissa_bits(weir_dtype_t dtype) {
  switch (dtype) {
    case WEIR_DTYPE_DOUBLE: return 52;
    case WEIR_DTYPE_FLOAT: return 23;
    case WEIR_DTYPE_HALF: return 10;
    case WEIR_DTYPE_BFLOAT16: return 7;
    default: return 0;
  }
}

static int dropped_bits(weir_attrs_t attrs, weir_dtype_t from, weir_dtype_t to) {
  if (!weir_attrs_bool(attrs, "Truncate") || mantissa_bits(from) < 23 || mantissa_bits(to) == 0)
    return 0;
  return WEIR_MAX(mantissa_bits(from) - mantissa_bits(to), 0);
}

static weir_status_t* cast_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  cast_job_t job = {.from = weir_tensor_type(x),
                    .to = weir_dtype_base(ctx->node->output_types[0]),
                    .is_bad = false};
  if (job.from == job.to) {
    weir_kernel_pass(ctx, 0, 0);
    return NULL;
  }
  if (!weir_dtype_is_plain(job.from) || !weir_dtype_is_plain(job.to)) {
    return WEIR_STATUS(UNIMPLEMENTED, "Cast %s to %s is not supported", weir_dtype_name(job.from),
                       weir_dtype_name(job.to));
  }
  job.dropped_bits = dropped_bits(weir_kernel_attrs(ctx), job.from, job.to);
  weir_tensor_t* y = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, x->rank, x->dims, &y));
  job.x = x->data;
  job.y = y->data;
  weir_pool_for(weir_kernel_pool(ctx), x->count, 0.5, cast_range, &job);
  if (!atomic_load_explicit(&job.is_bad, memory_order_relaxed)) return NULL;
  return WEIR_STATUS(UNIMPLEMENTED, "Cast %s to %s is not supported", weir_dtype_name(job.from),
                     weir_dtype_name(job.to));
}

// ---- GPU ----

static weir_status_t* cast_gpu_init(const weir_kernel_init_t* init, void* state) {
  weir_dtype_t from = weir_dtype_base(init->node->input_types[0]);
  weir_dtype_t to = weir_dtype_base(init->node->output_types[0]);
  int bits = dropped_bits(init->node->attrs, from, to);
  char cleared[96];
  snprintf(cleared, sizeof(cleared),
           from == WEIR_DTYPE_FLOAT ? "__int_as_float(__float_as_int(a) >> %d << %d)"
                                    : "__longlong_as_double(__double_as_longlong(a) >> %d << %d)",
           bits, bits);
  const char* formula = bits ? cleared : weir_cuda_cast_formula(from, to);
  return weir_cuda_formula_find(init->device, true, formula, from, to, state);
}

static weir_status_t* cast_gpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  if (weir_tensor_type(x) != weir_dtype_base(ctx->node->output_types[0]))
    return weir_cuda_unary_compute(ctx);
  weir_kernel_pass(ctx, 0, 0);
  return NULL;
}

static bool is_differentiable(weir_dtype_t dtype) {
  return weir_dtype_is_floating(dtype) || weir_dtype_is_complex(dtype);
}

static weir_status_t* cast_grad(weir_grad_ctx_t* g) {
  weir_dtype_t from = weir_attrs_type(weir_grad_attrs(g), "SrcT");
  weir_dtype_t to = weir_attrs_type(weir_grad_attrs(g), "DstT");
  if (!is_differentiable(from) || !is_differentiable(to)) return weir_grad_set(g, 0, WEIR_NO_EDGE);
  return weir_grad_set(g, 0, cast_to(g, weir_grad_dy(g, 0), from));
}

static weir_status_t* cast_simplify(weir_simplify_ctx_t* ctx) {
  if (weir_dtype_is_ref(ctx->node->input_types[0])) return NULL;
  if (ctx->node->input_types[0] == ctx->node->output_types[0]) ctx->replacement = ctx->inputs[0];
  return NULL;
}

#define GPU_TYPES \
  "float, double, half, bfloat16, int8, int16, int32, int64, uint8, uint16, uint32, uint64, bool"

const weir_op_module_t weir_ops_math_cast = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Cast",
         .attrs = "SrcT: type; DstT: type; Truncate: bool = false",
         .inputs = "x: SrcT",
         .outputs = "y: DstT",
         .flags = WEIR_OP_VIEW | WEIR_OP_POINTWISE,
         .scalar = {WEIR_SCALAR_CAST, 0},
         .summary = "The elements as another type",
         .infer_shape = weir_shape_fn_unchanged,
         .build_grad = cast_grad,
         .simplify = cast_simplify,
         .kernels = (const weir_kernel_def_t[]){{WEIR_DEVICE_CPU, .compute = cast_cpu},
                                                {WEIR_DEVICE_GPU,
                                                 .types = "SrcT: " GPU_TYPES "; DstT: " GPU_TYPES,
                                                 .compute = cast_gpu, .init = cast_gpu_init,
                                                 .state_size = sizeof(weir_cuda_elementwise_t)},
                                                {0}}},
        {0}}};

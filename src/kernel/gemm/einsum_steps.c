// einsum_steps.c — What Einsum is made of, by the pool of a CPU or by kernels of a GPU.
#include "kernel/gemm/einsum_steps.h"

#include "kernel/elementwise/cwise.h"
#include "kernel/gemm/cuda_gemm.h"
#include "tensor/cast.h"

#define FEW_BATCHES 8  // fewer than this many products are split within, more are run side by side

weir_status_t* weir_einsum_init(const weir_kernel_init_t* init, void* state) {
  weir_einsum_t* s = state;
  WEIR_TRY(weir_einsum_parse(init->node, &s->equation));
  if (!weir_device_is_cuda(init->device)) return NULL;
  weir_dtype_t dtype = weir_dtype_base(init->node->output_types[0]);
  WEIR_TRY(weir_move_gpu_init(init, &s->move));
  WEIR_TRY(weir_cuda_reduce_find(init->device, WEIR_REDUCE_SUM, dtype, &s->sum));
  return weir_cuda_binary_find(init->device, WEIR_BINARY_MUL, dtype, dtype, &s->mul);
}

// ---- copies ----

weir_status_t* weir_einsum_move(weir_kernel_ctx_t* ctx, weir_dtype_t dtype, int rank,
                                weir_move_dim_t* dims, const void* src, void* dst) {
  if (weir_device_is_cuda(ctx->device))
    return weir_kernel_move_box(ctx, dtype, rank, dims, src, dst);
  return weir_move_box(weir_kernel_pool(ctx), dtype, rank, dims, src, dst);
}

weir_status_t* weir_einsum_zero(weir_kernel_ctx_t* ctx, weir_dtype_t dtype, void* dst,
                                int64_t count) {
  if (weir_device_is_cuda(ctx->device)) return weir_kernel_move_zero(ctx, dtype, dst, count);
  weir_move_zero(dtype, dst, count);
  return NULL;
}

// ---- sums ----

// By a product with ones.
static weir_status_t* sum_on_cpu(weir_kernel_ctx_t* ctx, weir_dtype_t dtype, int64_t m, int64_t k,
                                 const void* src, void* dst) {
  weir_pool_t* pool = weir_kernel_pool(ctx);
  weir_tensor_t* ones = NULL;
  double one = 1;
  char element[16];
  WEIR_TRY(weir_cast_elements(dtype, element, WEIR_DTYPE_DOUBLE, &one, 1));
  WEIR_TRY(weir_kernel_scratch(ctx, dtype, k, &ones));
  weir_gemm_args_t args = {.dtype_a = dtype, .dtype_b = dtype, .dtype_c = dtype};
  args.m = m;
  args.n = 1;
  args.k = k;
  args.a = src;
  args.b = ones->data;
  args.c = dst;
  weir_status_t* status = weir_move_fill(pool, dtype, element, ones->data, k);
  if (!status) status = weir_gemm_any(pool, &args);
  weir_tensor_release(ones);
  return status;
}

weir_status_t* weir_einsum_sum(weir_kernel_ctx_t* ctx, weir_dtype_t dtype, int64_t m, int64_t k,
                               const void* src, void* dst) {
  const weir_einsum_t* s = ctx->state;
  if (!weir_device_is_cuda(ctx->device)) return sum_on_cpu(ctx, dtype, m, k, src, dst);
  return weir_cuda_reduce(ctx, &s->sum, dtype, 2, (const int64_t[]){m, k},
                          (const bool[]){false, true}, src, dst);
}

// ---- products ----

// Of elements: a product each.
static bool is_elementwise(const weir_gemm_args_t* args) {
  return args->m * args->n * args->k == 1;
}

typedef struct product_job_t {
  weir_pool_t* pool;  // for the inside of one product; NULL when products run side by side
  weir_gemm_args_t args;
  size_t size;  // of an element
  weir_first_error_t error;
} product_job_t;

static void product_range(void* arg, int64_t begin, int64_t end) {
  product_job_t* job = arg;
  for (int64_t i = begin; i < end; ++i) {
    weir_gemm_args_t args = job->args;
    args.a = (const char*)args.a + (size_t)(i * args.m * args.k) * job->size;
    args.b = (const char*)args.b + (size_t)(i * args.k * args.n) * job->size;
    args.c = (char*)args.c + (size_t)(i * args.m * args.n) * job->size;
    if (is_elementwise(&args)) {  // all at once
      weir_binary_find(WEIR_BINARY_MUL, args.dtype_a)(args.a, args.b, args.c, end - begin,
                                                      WEIR_SPAN_BOTH);
      return;
    }
    weir_status_t* status = weir_gemm_any(job->pool, &args);
    if (!status) continue;
    weir_first_error_set(&job->error, status);
    return;
  }
}

static weir_status_t* multiply_on_cpu(weir_pool_t* pool, const weir_gemm_args_t* args,
                                      int64_t count) {
  product_job_t job = {.size = weir_dtype_size(args->dtype_c), .args = *args};
  double cost = 0.15 * (double)args->m * (double)args->n * (double)args->k;
  if (count < FEW_BATCHES && !is_elementwise(args)) {
    job.pool = pool;
    product_range(&job, 0, count);
  } else {
    weir_pool_for(pool, count, is_elementwise(args) ? 0.5 : cost + 100, product_range, &job);
  }
  return job.error.status;
}

weir_status_t* weir_einsum_multiply(weir_kernel_ctx_t* ctx, const weir_gemm_args_t* args,
                                    int64_t count) {
  const weir_einsum_t* s = ctx->state;
  if (!weir_device_is_cuda(ctx->device)) return multiply_on_cpu(weir_kernel_pool(ctx), args, count);
  if (is_elementwise(args))
    return weir_cuda_binary_run(ctx->device, &s->mul, args->a, args->b, args->c, count,
                                WEIR_SPAN_BOTH);
  return weir_cuda_gemm(ctx->device, args,
                        (weir_gemm_batch_t){.count = count,
                                            .a_stride = args->m * args->k,
                                            .b_stride = args->k * args->n,
                                            .c_stride = args->m * args->n});
}

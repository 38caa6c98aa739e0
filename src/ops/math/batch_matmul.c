// batch_matmul.c — BatchMatMul, BatchMatMulV2, BatchMatMulV3: products of matrices in batches,
// possibly adjoint; V2 and V3 broadcast the batch dimensions.
#include <inttypes.h>

#include "kernel/gemm/cuda_gemm.h"
#include "ops/math/common.h"

#define FEW_BATCHES 8  // fewer than this many products are split within, more are run side by side

typedef struct batch_state_t {
  bool adj_x;
  bool adj_y;
  bool broadcasts;
} batch_state_t;

static weir_status_t* batch_init(const weir_kernel_init_t* init, void* state) {
  batch_state_t* s = state;
  s->adj_x = weir_attrs_bool(init->node->attrs, "adj_x");
  s->adj_y = weir_attrs_bool(init->node->attrs, "adj_y");
  return NULL;
}
static weir_status_t* broadcast_init(const weir_kernel_init_t* init, void* state) {
  ((batch_state_t*)state)->broadcasts = true;
  return batch_init(init, state);
}

typedef struct batch_job_t {
  weir_pool_t* pool;  // for the inside of one product; NULL when products run side by side
  const weir_broadcast_t* plan;
  weir_gemm_args_t args;
  size_t x_bytes;  // of a matrix
  size_t y_bytes;
  size_t z_bytes;
  weir_first_error_t error;
} batch_job_t;

static void batch_range(void* arg, int64_t begin, int64_t end) {
  batch_job_t* job = arg;
  for (int64_t i = begin; i < end; ++i) {
    int64_t x;
    int64_t y;
    weir_broadcast_at(job->plan, i, &x, &y);
    weir_gemm_args_t args = job->args;
    args.a = (const char*)args.a + (size_t)x * job->x_bytes;
    args.b = (const char*)args.b + (size_t)y * job->y_bytes;
    args.c = (char*)args.c + (size_t)i * job->z_bytes;
    weir_status_t* status = weir_gemm_any(job->pool, &args);
    if (!status) continue;
    weir_first_error_set(&job->error, status);
    return;
  }
}

static weir_status_t* mismatch(const char* what, const weir_tensor_t* x, const weir_tensor_t* y) {
  char a[WEIR_SHAPE_TEXT_SIZE];
  char b[WEIR_SHAPE_TEXT_SIZE];
  return WEIR_STATUS(INVALID_ARGUMENT, "%s: %s vs. %s", what, weir_tensor_shape_text(x, a),
                     weir_tensor_shape_text(y, b));
}

static weir_status_t* batch_mismatch(const weir_tensor_t* x, const weir_tensor_t* y) {
  return mismatch("In[0] and In[1] must have compatible batch dimensions", x, y);
}

static weir_status_t* check_inputs(const batch_state_t* s, const weir_tensor_t* x,
                                   const weir_tensor_t* y) {
  if (!s->broadcasts && x->rank != y->rank)
    return mismatch("In[0] and In[1] has different ndims", x, y);
  if (x->rank < 2) return WEIR_STATUS(INVALID_ARGUMENT, "In[0] ndims must be >= 2: %d", x->rank);
  if (y->rank < 2) return WEIR_STATUS(INVALID_ARGUMENT, "In[1] ndims must be >= 2: %d", y->rank);
  for (int i = 0; !s->broadcasts && i < x->rank - 2; ++i) {
    if (x->dims[i] != y->dims[i]) return batch_mismatch(x, y);
  }
  return NULL;
}

// One call where the products follow each other at even distances, else one a product.
static weir_status_t* launch_batches(weir_kernel_ctx_t* ctx, const batch_job_t* job) {
  const weir_broadcast_t* plan = job->plan;
  const weir_gemm_args_t* p = &job->args;
  weir_gemm_batch_t batch = {.count = plan->count, .c_stride = p->m * p->n};
  if (plan->rank <= 1) {
    batch.a_stride = plan->rank ? plan->x_strides[0] * p->m * p->k : 0;
    batch.b_stride = plan->rank ? plan->y_strides[0] * p->k * p->n : 0;
    return weir_cuda_gemm(ctx->device, p, batch);
  }
  for (int64_t i = 0; i < plan->count; ++i) {
    int64_t x, y;
    weir_broadcast_at(plan, i, &x, &y);
    weir_gemm_args_t args = *p;
    args.a = (const char*)p->a + (size_t)x * job->x_bytes;
    args.b = (const char*)p->b + (size_t)y * job->y_bytes;
    args.c = (char*)p->c + (size_t)i * job->z_bytes;
    WEIR_TRY(weir_cuda_gemm(ctx->device, &args, (weir_gemm_batch_t){.count = 1}));
  }
  return NULL;
}

static weir_status_t* run_batches(weir_kernel_ctx_t* ctx, batch_job_t* job) {
  const weir_gemm_args_t* p = &job->args;
  job->x_bytes = (size_t)(p->m * p->k) * weir_dtype_size(p->dtype_a);
  job->y_bytes = (size_t)(p->k * p->n) * weir_dtype_size(p->dtype_b);
  job->z_bytes = (size_t)(p->m * p->n) * weir_dtype_size(p->dtype_c);
  if (weir_device_is_cuda(ctx->device)) return launch_batches(ctx, job);
  if (job->plan->count < FEW_BATCHES) {
    job->pool = weir_kernel_pool(ctx);
    batch_range(job, 0, job->plan->count);
  } else {
    double cost = 0.15 * (double)p->m * (double)p->n * (double)WEIR_MAX(p->k, 1) + 100.0;
    weir_pool_for(weir_kernel_pool(ctx), job->plan->count, cost, batch_range, job);
  }
  return job->error.status;
}

static weir_status_t* batch_matmul(weir_kernel_ctx_t* ctx) {
  const batch_state_t* s = ctx->state;
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  const weir_tensor_t* y = weir_kernel_input(ctx, 1);
  WEIR_TRY(check_inputs(s, x, y));
  weir_broadcast_t plan;
  if (!weir_broadcast_plan((weir_shape_view_t){x->rank - 2, x->dims},
                           (weir_shape_view_t){y->rank - 2, y->dims}, &plan)) {
    return batch_mismatch(x, y);
  }
  if (x->dims[x->rank - (s->adj_x ? 2 : 1)] != y->dims[y->rank - (s->adj_y ? 1 : 2)]) {
    return mismatch("Matrix size-incompatible: In[0] mismatch In[1] shape", x, y);
  }
  if (plan.rank < 0) return mismatch("Batch dimensions alternate too often", x, y);
  int64_t m = x->dims[x->rank - (s->adj_x ? 1 : 2)];
  int64_t n = y->dims[y->rank - (s->adj_y ? 2 : 1)];
  int64_t dims[WEIR_MAX_RANK];
  memcpy(dims, plan.out_dims, sizeof(int64_t) * (size_t)plan.out_rank);
  dims[plan.out_rank] = m;
  dims[plan.out_rank + 1] = n;
  weir_tensor_t* z = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, plan.out_rank + 2, dims, &z));
  if (z->count == 0) return NULL;
  batch_job_t job = {.plan = &plan,
                     .args = {.dtype_a = weir_tensor_type(x),
                              .dtype_b = weir_tensor_type(y),
                              .dtype_c = weir_tensor_type(z),
                              .trans_a = s->adj_x ? WEIR_CONJ_TRANS : WEIR_NO_TRANS,
                              .trans_b = s->adj_y ? WEIR_CONJ_TRANS : WEIR_NO_TRANS,
                              .m = m,
                              .n = n,
                              .k = x->dims[x->rank - (s->adj_x ? 2 : 1)],
                              .a = x->data,
                              .b = y->data,
                              .c = z->data}};
  return run_batches(ctx, &job);
}

// ---- shapes ----

static weir_status_t* check_inner(weir_shape_ctx_t* ctx, const weir_shape_t* x,
                                  const weir_shape_t* y) {
  bool adj_x = weir_attrs_bool(weir_shape_attrs(ctx), "adj_x");
  bool adj_y = weir_attrs_bool(weir_shape_attrs(ctx), "adj_y");
  int64_t inner;
  return weir_dim_join(ctx, weir_shape_dim(x, adj_x ? -2 : -1), weir_shape_dim(y, adj_y ? -1 : -2),
                       &inner);
}

static weir_status_t* batch_shape_with(weir_shape_ctx_t* ctx, bool broadcasts) {
  const weir_shape_t* x = weir_shape_input(ctx, 0);
  const weir_shape_t* y = weir_shape_input(ctx, 1);
  WEIR_TRY(weir_shape_at_least(ctx, x, 2));
  WEIR_TRY(weir_shape_at_least(ctx, y, 2));
  if (x->rank < 0 || y->rank < 0) return weir_shape_set(ctx, 0, &weir_shape_unknown);
  bool adj_x = weir_attrs_bool(weir_shape_attrs(ctx), "adj_x");
  bool adj_y = weir_attrs_bool(weir_shape_attrs(ctx), "adj_y");
  const weir_shape_t* batch;
  const weir_shape_t* x_batch = weir_shape_sub(ctx, x, 0, x->rank - 2);
  const weir_shape_t* y_batch = weir_shape_sub(ctx, y, 0, y->rank - 2);
  if (!x_batch || !y_batch) return weir_out_of_memory();
  if (broadcasts) WEIR_TRY(check_inner(ctx, x, y));  // TensorFlow's order: it names the first fault
  WEIR_TRY(broadcasts ? weir_shape_broadcast(ctx, x_batch, y_batch, &batch)
                      : weir_shape_join(ctx, x_batch, y_batch, &batch));
  if (!broadcasts) WEIR_TRY(check_inner(ctx, x, y));
  int64_t dims[WEIR_MAX_RANK + 2];
  memcpy(dims, batch->dims, sizeof(int64_t) * (size_t)batch->rank);
  dims[batch->rank] = weir_shape_dim(x, adj_x ? -1 : -2);
  dims[batch->rank + 1] = weir_shape_dim(y, adj_y ? -2 : -1);
  return weir_shape_set_dims(ctx, 0, batch->rank + 2, dims);
}
static weir_status_t* batch_shape(weir_shape_ctx_t* ctx) { return batch_shape_with(ctx, false); }
static weir_status_t* broadcast_shape(weir_shape_ctx_t* ctx) { return batch_shape_with(ctx, true); }

// ---- gradients ----

// The product in the type of |like|, as the gradient needs it.
static weir_edge_t product(weir_grad_ctx_t* g, weir_edge_t a, bool adj_a, weir_edge_t b, bool adj_b,
                           const char* marker) {
  weir_attrs_t adjoints = WEIR_ATTRS(weir_attr_bool("adj_x", adj_a), weir_attr_bool("adj_y", adj_b),
                                     weir_attr_bool(marker, true));
  weir_dtype_t ta = weir_grad_dtype(g, a);
  weir_dtype_t tb = weir_grad_dtype(g, b);
  if (ta == tb) return weir_grad_node_with(g, "BatchMatMulV2", WEIR_EDGES(a, b), adjoints);
  weir_dtype_t dtype = weir_dtype_is_integer(ta) ? tb : ta;
  return weir_grad_node_with(
      g, "BatchMatMulV2",
      WEIR_EDGES(ta == dtype ? a : cast_to(g, a, dtype), tb == dtype ? b : cast_to(g, b, dtype)),
      adjoints);
}

// Whether the batch dimensions of both inputs are known to agree.
static bool same_batch(weir_grad_ctx_t* g) {
  const weir_shape_t* x = weir_grad_shape(g, weir_grad_input(g, 0));
  const weir_shape_t* y = weir_grad_shape(g, weir_grad_input(g, 1));
  if (x->rank < 2 || x->rank != y->rank) return false;
  for (int i = 0; i < x->rank - 2; ++i) {
    if (x->dims[i] < 0 || x->dims[i] != y->dims[i]) return false;
  }
  return true;
}

static weir_status_t* set_reduced(weir_grad_ctx_t* g, weir_edge_t dx, weir_edge_t dy) {
  weir_edge_t sx = weir_grad_shape_of(g, weir_grad_input(g, 0));
  weir_edge_t sy = weir_grad_shape_of(g, weir_grad_input(g, 1));
  weir_edge_t rx =
      node2(g, "BroadcastGradientArgs", weir_grad_batch_shape(g, sx), weir_grad_batch_shape(g, sy));
  weir_edge_t ry = weir_build_output(rx, 1);
  WEIR_TRY(weir_grad_set(g, 0, node2(g, "Reshape", node2(g, "Sum", dx, rx), sx)));
  return weir_grad_set(g, 1, node2(g, "Reshape", node2(g, "Sum", dy, ry), sy));
}

static weir_status_t* batch_grad(weir_grad_ctx_t* g) {
  bool adj_x = weir_attrs_bool(weir_grad_attrs(g), "adj_x");
  bool adj_y = weir_attrs_bool(weir_grad_attrs(g), "adj_y");
  weir_edge_t dz = weir_grad_dy(g, 0);
  weir_edge_t x = weir_grad_input(g, 0);
  weir_edge_t y = weir_grad_input(g, 1);
  weir_edge_t dx =
      adj_x ? product(g, y, adj_y, dz, true, "grad_x") : product(g, dz, false, y, !adj_y, "grad_x");
  weir_edge_t dy =
      adj_y ? product(g, dz, true, x, adj_x, "grad_y") : product(g, x, !adj_x, dz, false, "grad_y");
  if (!same_batch(g)) return set_reduced(g, dx, dy);
  WEIR_TRY(weir_grad_set(g, 0, dx));
  return weir_grad_set(g, 1, dy);
}

#define BATCH_ATTRS \
  "adj_x: bool = false; adj_y: bool = false; grad_x: bool = false; grad_y: bool = false"
#define BATCH_KERNEL(types_, init_fn)                                           \
  {                                                                             \
    WEIR_DEVICE_CPU, .types = types_, .compute = batch_matmul, .init = init_fn, \
                     .state_size = sizeof(batch_state_t)                        \
  }
#define BATCH_GPU_KERNEL(types_, init_fn)                                       \
  {                                                                             \
    WEIR_DEVICE_GPU, .types = types_, .compute = batch_matmul, .init = init_fn, \
                     .state_size = sizeof(batch_state_t)                        \
  }
#define GPU_TYPES "T: bfloat16, half, float, double"
#define V3_TYPES "{bfloat16,half,float,double,uint8,int8,int16,int32,int64,complex64,complex128}"
#define SAME_TYPES(type) "Ta: " type "; Tb: " type "; Tout: " type
#define V3_SAME(type) BATCH_KERNEL(SAME_TYPES(type), broadcast_init)
#define V3_GPU(type) BATCH_GPU_KERNEL(SAME_TYPES(type), broadcast_init)

const weir_op_module_t weir_ops_math_batch_matmul = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "BatchMatMul",
         .mixed = WEIR_MIXED_ALLOW,
         .attrs = "T: {bfloat16,half,float,double,int32,int64,complex64,complex128}; " BATCH_ATTRS,
         .inputs = "x: T; y: T",
         .outputs = "output: T",
         .summary = "Products of matrices in equal batches",
         .infer_shape = batch_shape,
         .cost = weir_cost_fn_matmul,
         .build_grad = batch_grad,
         .kernels =
             (const weir_kernel_def_t[]){
                 BATCH_KERNEL(NULL, batch_init), BATCH_GPU_KERNEL(GPU_TYPES, batch_init), {0}}},
        {.name = "BatchMatMulV2",
         .mixed = WEIR_MIXED_ALLOW,
         .attrs = "T: "
                  "{bfloat16,half,float,double,int16,int32,int64,uint8,uint16,uint32,uint64,"
                  "complex64,complex128}; " BATCH_ATTRS,
         .inputs = "x: T; y: T",
         .outputs = "output: T",
         .summary = "Products of matrices in batches that broadcast",
         .infer_shape = broadcast_shape,
         .cost = weir_cost_fn_matmul,
         .build_grad = batch_grad,
         .kernels =
             (const weir_kernel_def_t[]){
                 BATCH_KERNEL(
                     "T: bfloat16, half, float, double, int16, int32, int64, complex64, complex128",
                     broadcast_init),
                 BATCH_GPU_KERNEL(GPU_TYPES, broadcast_init),
                 {0}}},
        {.name = "BatchMatMulV3",
         .attrs =
             "Ta: " V3_TYPES "; Tb: " V3_TYPES "; Tout: "
             "{bfloat16,half,float,double,int16,int32,int64,complex64,complex128}; " BATCH_ATTRS,
         .inputs = "x: Ta; y: Tb",
         .outputs = "output: Tout",
         .summary = "As BatchMatMulV2, with types of their own",
         .infer_shape = broadcast_shape,
         .cost = weir_cost_fn_matmul,
         .build_grad = batch_grad,
         .kernels =
             (const weir_kernel_def_t[]){
                 V3_SAME("bfloat16"),
                 V3_SAME("float"),
                 V3_SAME("double"),
                 V3_SAME("int16"),
                 V3_SAME("int32"),
                 V3_SAME("int64"),
                 V3_SAME("complex64"),
                 V3_SAME("complex128"),
                 V3_SAME("half"),
                 BATCH_KERNEL("Ta: int8, uint8; Tb: int8, uint8; Tout: int32", broadcast_init),
                 BATCH_KERNEL("Ta: int8, uint8; Tb: bfloat16; Tout: bfloat16", broadcast_init),
                 BATCH_KERNEL("Ta: bfloat16; Tb: int8, uint8; Tout: bfloat16", broadcast_init),
                 V3_GPU("bfloat16"),
                 V3_GPU("half"),
                 V3_GPU("float"),
                 V3_GPU("double"),
                 {0}}},
        {0}}};

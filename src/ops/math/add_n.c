// add_n.c — AddN, AccumulateNV2: the sum of many tensors of one shape; also of variants that know
// how to add.
#include "kernel/cuda/source.h"
#include "ops/math/common.h"
#include "tensor/handle.h"

#define ADD_N_BLOCK 2048  // elements: partial sums stay in the cache while all inputs go by

typedef struct add_n_job_t {
  weir_binary_fn_t add;
  const weir_kernel_ctx_t* ctx;
  const void* first;  // data of inputs 0 and 1, of which one may be the output
  const void* second;
  char* sum;
  size_t size;
} add_n_job_t;

static void add_n_range(void* arg, int64_t begin, int64_t end) {
  const add_n_job_t* job = arg;
  for (; begin < end; begin += ADD_N_BLOCK) {
    int64_t n = WEIR_MIN(ADD_N_BLOCK, end - begin);
    size_t offset = (size_t)begin * job->size;
    char* sum = job->sum + offset;
    job->add((const char*)job->first + offset, (const char*)job->second + offset, sum, n,
             WEIR_SPAN_BOTH);
    for (int i = 2; i < job->ctx->input_count; ++i) {
      job->add(sum, (const char*)weir_kernel_input(job->ctx, i)->data + offset, sum, n,
               WEIR_SPAN_BOTH);
    }
  }
}

static weir_status_t* check_shapes(const weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* first = weir_kernel_input(ctx, 0);
  for (int i = 1; i < ctx->input_count; ++i) {
    const weir_tensor_t* t = weir_kernel_input(ctx, i);
    if (WEIR_LIKELY(weir_tensor_same_shape(first, t))) continue;
    char a[WEIR_SHAPE_TEXT_SIZE];
    char b[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Inputs to operation %s of type %s must have the same size and shape.  "
                       "Input 0: %s != input %d: %s",
                       ctx->node->name, ctx->node->op_name, weir_tensor_shape_text(first, a), i,
                       weir_tensor_shape_text(t, b));
  }
  return NULL;
}

static weir_status_t* add_n_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  if (ctx->input_count == 1) {
    weir_kernel_pass(ctx, 0, 0);
    return NULL;
  }
  WEIR_TRY(check_shapes(ctx));
  add_n_job_t job = {.add = weir_binary_find(WEIR_BINARY_ADD, weir_tensor_type(x)),
                     .ctx = ctx,
                     .size = weir_dtype_size(weir_tensor_type(x))};
  if (!job.add)
    return WEIR_STATUS(UNIMPLEMENTED, "AddN of type %s", weir_dtype_name(weir_tensor_type(x)));
  int64_t count = x->count;
  job.first = x->data;
  job.second = weir_kernel_input(ctx, 1)->data;
  // Only the first two may be written over: the others are read after the first sum is stored.
  int from = weir_tensor_is_sole(ctx->inputs[0].tensor) ? 0 : 1;
  weir_tensor_t* sum = NULL;
  WEIR_TRY(weir_kernel_forward(ctx, from, 0, x->rank, x->dims, &sum));
  job.sum = sum->data;
  double cost = 0.4 * (double)ctx->input_count;
  if ((double)count * cost < 20000.0) {
    add_n_range(&job, 0, count);
  } else {
    weir_pool_for(weir_kernel_pool(ctx), count, cost, add_n_range, &job);
  }
  return NULL;
}

// ---- GPU ----

WEIR_CUDA_SOURCE(add_n);

// As the kernel has it.
enum { AT_ONCE = 8 };
typedef struct inputs_t {
  const void* at[AT_ONCE];
  int count;
} inputs_t;

static weir_status_t* add_n_gpu_init(const weir_kernel_init_t* init, void* state) {
  weir_strbuf_t text = {0};
  weir_strbuf_printf(&text, "#define T %s\n", weir_cuda_type_name(init->node->output_types[0]));
  return weir_cuda_build(init->device, &text, weir_cuda_source_add_n, "add_n", state);
}

static weir_status_t* launch_add_n(weir_kernel_ctx_t* ctx, inputs_t* inputs, void* y, int64_t n) {
  uintptr_t all = (uintptr_t)y;
  for (int i = 0; i < inputs->count; ++i) all |= (uintptr_t)inputs->at[i];
  int is_aligned = (all & 15) == 0;
  weir_cuda_size_t size = weir_cuda_size_for(ctx->device, n / 4 + 1);
  return weir_cuda_launch(ctx->device, *(const weir_cuda_function_t*)ctx->state, &size,
                          WEIR_CUDA_ARGS(inputs, &y, &n, &is_aligned));
}

static weir_status_t* add_n_gpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  int64_t n = x->count;
  if (ctx->input_count == 1) {
    weir_kernel_pass(ctx, 0, 0);
    return NULL;
  }
  WEIR_TRY(check_shapes(ctx));
  inputs_t inputs = {.at = {x->data, weir_kernel_input(ctx, 1)->data}, .count = 2};
  int from = weir_tensor_is_sole(ctx->inputs[0].tensor) ? 0 : 1;
  weir_tensor_t* sum = NULL;
  WEIR_TRY(weir_kernel_forward(ctx, from, 0, x->rank, x->dims, &sum));
  if (n == 0) return NULL;
  for (int i = 2; i < ctx->input_count; ++i) {
    if (inputs.count == AT_ONCE) {
      WEIR_TRY(launch_add_n(ctx, &inputs, sum->data, n));
      inputs = (inputs_t){.at = {sum->data}, .count = 1};
    }
    inputs.at[inputs.count++] = weir_kernel_input(ctx, i)->data;
  }
  return launch_add_n(ctx, &inputs, sum->data, n);
}

// ---- variants ----

static weir_status_t* add_variants(const weir_variant_object_t* a, const weir_variant_object_t* b,
                                   weir_variant_object_t** out_sum) {
  if (!a || !b || a->type != b->type) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Cannot add variants of different types: %s and %s",
                       a ? a->type->type_name : "empty", b ? b->type->type_name : "empty");
  }
  if (!a->type->add)
    return WEIR_STATUS(UNIMPLEMENTED, "No addition is known for variants of type %s",
                       a->type->type_name);
  void* sum = NULL;
  WEIR_TRY(a->type->add(a, b, &sum));
  *out_sum = sum;
  return NULL;
}

static weir_status_t* add_n_variants_cpu(weir_kernel_ctx_t* ctx) {
  if (ctx->input_count == 1) {
    weir_kernel_pass(ctx, 0, 0);
    return NULL;
  }
  WEIR_TRY(check_shapes(ctx));
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  weir_tensor_t* y = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, x->rank, x->dims, &y));
  for (int64_t e = 0; e < x->count; ++e) {
    weir_variant_object_t* sum = WEIR_TENSOR_DATA(x, weir_variant_t)[e].object;
    if (sum) sum = weir_variant_retain(sum);
    for (int i = 1; i < ctx->input_count; ++i) {
      weir_variant_object_t* next = NULL;
      weir_status_t* status = add_variants(
          sum, WEIR_TENSOR_DATA(weir_kernel_input(ctx, i), weir_variant_t)[e].object, &next);
      if (sum) weir_variant_release(sum);
      if (status) return status;
      sum = next;
    }
    WEIR_TENSOR_DATA(y, weir_variant_t)[e].object = sum;
  }
  return NULL;
}

// ---- shape, gradient ----

static weir_status_t* add_n_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_fn_merge_all(ctx));
  // The sum of TensorLists is a TensorList of what the first is known to hold.
  if (ctx->output_handles && ctx->input_handles && ctx->input_handles[0])
    ctx->output_handles[0] = ctx->input_handles[0];
  return NULL;
}

static weir_status_t* accumulate_shape(weir_shape_ctx_t* ctx) {
  return weir_shape_set(ctx, 0, weir_attrs_shape(weir_shape_attrs(ctx), "shape"));
}

static weir_status_t* add_n_grad(weir_grad_ctx_t* g) {
  weir_edge_t dy = weir_grad_dy(g, 0);
  for (int i = 1; i < g->node->input_count; ++i) WEIR_TRY(weir_grad_set(g, i, dy));
  return weir_grad_set(g, 0, dy);
}

static weir_status_t* add_n_simplify(weir_simplify_ctx_t* ctx) {
  return ctx->node->input_count == 1 ? weir_simplify_to_input(ctx, 0) : NULL;
}

const weir_op_module_t weir_ops_math_add_n = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "AddN",
         .scalar = {WEIR_SCALAR_BINARY_SAME, WEIR_BINARY_ADD},  // of two
         .mixed = WEIR_MIXED_INFER,
         .attrs = "N: int >= 1; T: "
                  "{float,double,int32,uint8,int16,int8,complex64,int64,qint8,quint8,qint32,"
                  "bfloat16,qint16,"
                  "quint16,uint16,complex128,half,uint32,uint64,variant}",
         .inputs = "inputs: N * T",
         .outputs = "sum: T",
         .flags = WEIR_OP_VIEW | WEIR_OP_COMMUTATIVE | WEIR_OP_AGGREGATE,
         .summary = "The sum of all inputs",
         .infer_shape = add_n_shape,
         .build_grad = add_n_grad,
         .simplify = add_n_simplify,
         .kernels =
             (const weir_kernel_def_t[]){
                 {WEIR_DEVICE_CPU, .types = CPU_NUMBER, .compute = add_n_cpu},
                 {WEIR_DEVICE_CPU, .types = "T: variant", .compute = add_n_variants_cpu},
                 {WEIR_DEVICE_GPU,
                  .types = "T: float, double, half, bfloat16, int64, uint32, uint64",
                  .compute = add_n_gpu, .init = add_n_gpu_init,
                  .state_size = sizeof(weir_cuda_function_t)},
                 {WEIR_DEVICE_GPU, .types = "T: int32", .compute = add_n_cpu,
                  .host_inputs = "inputs", .host_outputs = "sum"},
                 {0}}},
        {.name = "AccumulateNV2",
         .mixed = WEIR_MIXED_INFER,
         .attrs = "N: int >= 1; T: numbertype; shape: shape",
         .inputs = "inputs: N * T",
         .outputs = "sum: T",
         .flags = WEIR_OP_VIEW | WEIR_OP_COMMUTATIVE | WEIR_OP_AGGREGATE,
         .summary = "The sum of all inputs",
         .infer_shape = accumulate_shape,
         .build_grad = add_n_grad,
         .kernels = WEIR_CPU_KERNEL(.types = CPU_NUMBER, .compute = add_n_cpu)},
        {0}}};

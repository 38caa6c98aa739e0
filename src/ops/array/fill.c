// fill.c — Fill, Empty, ZerosLike, OnesLike: tensors of one value.
#include "kernel/cuda/source.h"
#include "ops/array/common.h"
#include "tensor/cast.h"
#include "tensor/handle.h"

// ---- Fill ----

static weir_status_t* fill_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* out = NULL;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 1, NULL));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 0, NULL));
  const weir_tensor_t* dims = weir_shape_value(ctx, 0);
  WEIR_TRY(weir_shape_from_value(ctx, 0, &out));
  for (int64_t i = 0; dims && i < dims->count; ++i) {
    if (weir_tensor_int_at(dims, i) < 0) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Fill dimensions must be >= 0");
    }
  }
  return weir_shape_set(ctx, 0, out);
}

// Reads a vector of sizes; a scalar counts as a vector of one.
static weir_status_t* read_dims(const weir_tensor_t* t, int64_t dims[WEIR_MAX_RANK],
                                int* out_rank) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (t->rank > 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "dims must represent a vector, got shape %s",
                       weir_tensor_shape_text(t, text));
  }
  if (t->count > WEIR_MAX_RANK) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "dims has %lld entries, at most %d dimensions are possible",
                       (long long)t->count, WEIR_MAX_RANK);
  }
  *out_rank = (int)t->count;
  for (int i = 0; i < *out_rank; ++i) {
    dims[i] = weir_tensor_int_at(t, i);
    if (dims[i] < 0) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Dimension %lld must be >= 0", (long long)dims[i]);
    }
  }
  return NULL;
}

static weir_status_t* fill_output(weir_kernel_ctx_t* ctx, weir_tensor_t** out) {
  const weir_tensor_t* value = weir_kernel_input(ctx, 1);
  char text[WEIR_SHAPE_TEXT_SIZE];
  int64_t dims[WEIR_MAX_RANK];
  int rank = 0;
  WEIR_TRY(read_dims(weir_kernel_input(ctx, 0), dims, &rank));
  if (value->count != 1 || value->rank > 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "value must represent a scalar, got shape %s",
                       weir_tensor_shape_text(value, text));
  }
  return weir_kernel_output(ctx, 0, rank, dims, out);
}

static weir_status_t* fill_cpu(weir_kernel_ctx_t* ctx) {
  weir_tensor_t* out = NULL;
  WEIR_TRY(fill_output(ctx, &out));
  return weir_move_fill(weir_kernel_pool(ctx), weir_tensor_type(out),
                        weir_kernel_input(ctx, 1)->data, out->data, out->count);
}

// On GPUs by |name|, "fill" from device memory or "fill_with" a value of the host.
WEIR_CUDA_SOURCE(fill);
static weir_status_t* find_fill(const weir_kernel_init_t* init, const char* name, void* state) {
  weir_strbuf_t text = {0};
  weir_strbuf_printf(
      &text, "#define T %s\n",
      weir_cuda_bytes_name(weir_dtype_size(weir_dtype_base(init->node->output_types[0]))));
  return weir_cuda_build(init->device, &text, weir_cuda_source_fill, name, state);
}

static weir_status_t* launch_fill(weir_kernel_ctx_t* ctx, weir_tensor_t* out, void* value) {
  if (out->count == 0) return NULL;
  weir_cuda_size_t size = weir_cuda_size_for(ctx->device, out->count / 4 + 1);
  return weir_cuda_launch(ctx->device, *(const weir_cuda_function_t*)ctx->state, &size,
                          WEIR_CUDA_ARGS(&out->data, &out->count, value));
}

static weir_status_t* fill_gpu_init(const weir_kernel_init_t* init, void* state) {
  return find_fill(init, "fill", state);
}

static weir_status_t* fill_gpu(weir_kernel_ctx_t* ctx) {
  weir_tensor_t* out = NULL;
  WEIR_TRY(fill_output(ctx, &out));
  const void* value = weir_kernel_input(ctx, 1)->data;
  return launch_fill(ctx, out, &value);
}

static weir_status_t* fill_grad(weir_grad_ctx_t* g) {  // dvalue = Sum(dy)
  weir_edge_t dy = weir_grad_dy(g, 0);
  return weir_grad_set(g, 1, weir_grad_node(g, "Sum", WEIR_EDGES(dy, array_grad_all_axes(g, dy))));
}

// ---- Empty ----

static weir_status_t* empty_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* out = NULL;
  WEIR_TRY(weir_shape_from_value(ctx, 0, &out));
  return weir_shape_set(ctx, 0, out);
}

// Not every byte is a bool, and TensorFlow's client refuses those that are none. Large tensors are
// left as they are: to set them takes memory that nobody may ever look at.
static bool is_bool_to_set(const weir_tensor_t* out) {
  return weir_tensor_type(out) == WEIR_DTYPE_BOOL && out->count <= 1 << 20;
}

// |*out_is_zero|: elements are to be set.
static weir_status_t* empty_output(weir_kernel_ctx_t* ctx, weir_tensor_t** out, bool* out_is_zero) {
  const weir_tensor_t* shape = weir_kernel_input(ctx, 0);
  int64_t dims[WEIR_MAX_RANK];
  int rank = 0;
  if (shape->rank != 1) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "shape must be a vector of int32, got shape %s",
                       weir_tensor_shape_text(shape, text));
  }
  WEIR_TRY(read_dims(shape, dims, &rank));
  WEIR_TRY(weir_kernel_output(ctx, 0, rank, dims, out));
  const bool is_asked_for = weir_attrs_bool(weir_kernel_attrs(ctx), "init");
  *out_is_zero = (*out)->count > 0 && (is_asked_for || is_bool_to_set(*out));
  return NULL;
}

static weir_status_t* empty_cpu(weir_kernel_ctx_t* ctx) {
  weir_tensor_t* out = NULL;
  bool is_zero = false;
  WEIR_TRY(empty_output(ctx, &out, &is_zero));
  if (is_zero) weir_move_zero(weir_tensor_type(out), out->data, out->count);
  return NULL;
}

static weir_status_t* empty_gpu(weir_kernel_ctx_t* ctx) {
  weir_tensor_t* out = NULL;
  bool is_zero = false;
  WEIR_TRY(empty_output(ctx, &out, &is_zero));
  return is_zero ? weir_cuda_zero(ctx->device, out->data, weir_tensor_byte_size(out)) : NULL;
}

// ---- ZerosLike, OnesLike ----

static weir_status_t* zeros_of_variant(const weir_variant_t* in, weir_variant_t* out) {
  if (!in->object) return NULL;
  if (!in->object->type->zeros_like) {
    return WEIR_STATUS(
        UNIMPLEMENTED,
        "No unary variant unary_op function found for op ZEROS_LIKE Variant type_name: %s",
        in->object->type->type_name);
  }
  void* zeros = NULL;
  WEIR_TRY(in->object->type->zeros_like(in->object, &zeros));
  out->object = zeros;
  return NULL;
}

static weir_status_t* zeros_like_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  weir_tensor_t* out = NULL;
  if (weir_dtype_is_plain(weir_tensor_type(x))) {
    WEIR_TRY(weir_kernel_forward(ctx, 0, 0, x->rank, x->dims, &out));
    weir_move_zero(weir_tensor_type(out), out->data, out->count);
    return NULL;
  }
  WEIR_TRY(weir_kernel_output(ctx, 0, x->rank, x->dims, &out));
  if (x->dtype != WEIR_DTYPE_VARIANT) return NULL;
  for (int64_t i = 0; i < x->count; ++i) {
    WEIR_TRY(zeros_of_variant((const weir_variant_t*)x->data + i, (weir_variant_t*)out->data + i));
  }
  return NULL;
}

static weir_status_t* ones_like_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  weir_tensor_t* out = NULL;
  const double one = 1;
  _Alignas(16) char element[16];
  WEIR_TRY(weir_cast_elements(weir_tensor_type(x), element, WEIR_DTYPE_DOUBLE, &one, 1));
  WEIR_TRY(weir_kernel_forward(ctx, 0, 0, x->rank, x->dims, &out));
  return weir_move_fill(weir_kernel_pool(ctx), weir_tensor_type(out), element, out->data,
                        out->count);
}

static weir_status_t* zeros_like_gpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_forward(ctx, 0, 0, x->rank, x->dims, &out));
  if (out->count == 0) return NULL;
  return weir_cuda_zero(ctx->device, out->data,
                        (size_t)out->count * weir_dtype_size(weir_tensor_type(out)));
}

static weir_status_t* ones_like_gpu_init(const weir_kernel_init_t* init, void* state) {
  return find_fill(init, "fill_with", state);
}

static weir_status_t* ones_like_gpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  weir_tensor_t* out = NULL;
  const double one = 1;
  _Alignas(16) char element[16];
  WEIR_TRY(weir_cast_elements(weir_tensor_type(x), element, WEIR_DTYPE_DOUBLE, &one, 1));
  WEIR_TRY(weir_kernel_forward(ctx, 0, 0, x->rank, x->dims, &out));
  return launch_fill(ctx, out, element);
}

#define GPU_TYPES                                                                            \
  "float, double, half, bfloat16, int8, int16, int64, uint8, uint16, uint32, uint64, bool, " \
  "complex64, complex128"
// int32, the type of shapes and counters, stays in host memory.
#define KERNELS(cpu, gpu, gpu_init, state, host, all, result)                      \
  (const weir_kernel_def_t[]) {                                                    \
    {WEIR_DEVICE_CPU, .compute = cpu, .host_inputs = host},                        \
        {WEIR_DEVICE_GPU,  .types = "T: " GPU_TYPES, .compute = gpu,               \
         .init = gpu_init, .state_size = state,      .host_inputs = host},         \
        {WEIR_DEVICE_GPU, .types = "T: int32", .compute = cpu, .host_inputs = all, \
         .host_outputs = result},                                                  \
    {                                                                              \
      0                                                                            \
    }                                                                              \
  }

const weir_op_module_t weir_ops_array_fill = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Fill",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "T: type; index_type: {int32, int64} = DT_INT32",
         .inputs = "dims: index_type; value: T",
         .outputs = "output: T",
         .summary = "Creates a tensor of a given shape filled with one value.",
         .infer_shape = fill_shape,
         .build_grad = fill_grad,
         .kernels = KERNELS(fill_cpu, fill_gpu, fill_gpu_init, sizeof(weir_cuda_function_t), "dims",
                            "dims, value", "output")},
        {.name = "Empty",
         .attrs = "dtype: type; init: bool = false",
         .inputs = "shape: int32",
         .outputs = "output: dtype",
         .flags = WEIR_OP_STATEFUL,
         .summary = "Creates a tensor whose elements are not set unless init is true.",
         .infer_shape = empty_shape,
         .kernels =
             (const weir_kernel_def_t[]){
                 {WEIR_DEVICE_CPU, .compute = empty_cpu, .host_inputs = "shape"},
                 {WEIR_DEVICE_GPU, .types = "dtype: " GPU_TYPES, .compute = empty_gpu,
                  .is_recordable = true, .host_inputs = "shape"},
                 {WEIR_DEVICE_GPU, .types = "dtype: int32", .compute = empty_cpu,
                  .host_inputs = "shape", .host_outputs = "output"},
                 {0}}},
        {.name = "ZerosLike",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "T: type",
         .inputs = "x: T",
         .outputs = "y: T",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "Creates a tensor of zeros of the same type and shape.",
         .infer_shape = weir_shape_fn_unchanged,
         .kernels = KERNELS(zeros_like_cpu, zeros_like_gpu, NULL, 0, NULL, "x", "y")},
        {.name = "OnesLike",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, "
                  "int64, uint64, "
                  "complex64, complex128, bool}",
         .inputs = "x: T",
         .outputs = "y: T",
         .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_SHAPE_ONLY,
         .summary = "Creates a tensor of ones of the same type and shape.",
         .infer_shape = weir_shape_fn_unchanged,
         .kernels = KERNELS(ones_like_cpu, ones_like_gpu, ones_like_gpu_init,
                            sizeof(weir_cuda_function_t), NULL, "x", "y")},
        {0}}};

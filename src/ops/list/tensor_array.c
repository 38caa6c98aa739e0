// tensor_array.c — TensorArray, its gradient, single reads and writes, size, close, of all three
// generations.
#include <stdio.h>

#include "ops/list/array_common.h"

#define TYPE_NAME "N10tensorflow11TensorArrayE"

// ---- create ----

static weir_status_t* create_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 0, NULL));
  weir_attrs_t attrs = weir_shape_attrs(ctx);
  const weir_shape_t* shape = weir_attrs_shape(attrs, "element_shape");
  bool is_alike = weir_attrs_bool(attrs, "identical_element_shapes");
  WEIR_TRY(weir_shape_set_scalar(ctx, 0));
  WEIR_TRY(weir_shape_set_scalar(ctx, 1));
  return weir_shape_set_handle(ctx, 0, weir_attrs_type(attrs, "dtype"),
                               is_alike ? shape : &weir_shape_unknown);
}

// The flow orders operations; its value means nothing.
static weir_status_t* set_flow(weir_kernel_ctx_t* ctx) {
  weir_tensor_t* flow = NULL;
  if (ctx->output_count < 2) return NULL;  // the old ones have none
  WEIR_TRY(weir_kernel_output(ctx, 1, 0, NULL, &flow));
  if (weir_device_is_cuda(ctx->device))
    return weir_cuda_zero(ctx->device, flow->data, sizeof(float));
  *WEIR_TENSOR_DATA(flow, float) = 0;
  return NULL;
}

static weir_status_t* array_name(weir_kernel_ctx_t* ctx, weir_view_t given, char* name,
                                 size_t size) {
  char prefix[192];
  if (given.size == 0) given = weir_view_of(ctx->node->name);
  size_t length = WEIR_MIN(given.size, sizeof(prefix) - 1);
  memcpy(prefix, given.data, length);
  prefix[length] = '\0';
  return weir_kernel_unique_name(ctx, prefix, name, size);
}

static weir_status_t* create_cpu(weir_kernel_ctx_t* ctx) {
  weir_attrs_t attrs = weir_kernel_attrs(ctx);
  const weir_tensor_t* size = weir_kernel_input(ctx, 0);
  weir_tensor_array_t* array = NULL;
  char name[256];
  if (size->rank != 0) {
    char shape[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "TensorArray size must be scalar, but had shape: %s",
                       weir_tensor_shape_text(size, shape));
  }
  int64_t count = weir_tensor_int_at(size, 0);
  if (count < 0) return WEIR_STATUS(INVALID_ARGUMENT, "Size should be >= 0.");
  WEIR_TRY(array_name(ctx, weir_attrs_string(attrs, "tensor_array_name"), name, sizeof(name)));
  weir_tensor_array_params_t params = {
      .name = name,
      .dtype = weir_attrs_type(attrs, "dtype"),
      .size = count,
      .element_shape = weir_attrs_shape(attrs, "element_shape"),
      .is_dynamic = weir_attrs_bool(attrs, "dynamic_size"),
      .clears_after_read = weir_attrs_bool(attrs, "clear_after_read"),
      .has_identical_shapes =
          ctx->output_count > 1 && weir_attrs_bool(attrs, "identical_element_shapes")};
  WEIR_TRY(weir_tensor_array_create(&params, &array));
  WEIR_TRY(weir_step_resource_publish(ctx, 0, &array->base, name, TYPE_NAME));
  return set_flow(ctx);
}

// ---- gradient array ----

static weir_status_t* grad_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(array_check_shapes(ctx, 1));
  WEIR_TRY(weir_shape_set_scalar(ctx, 0));
  const weir_handle_info_t* info = ctx->input_handles ? ctx->input_handles[0] : NULL;
  if (info && ctx->node->input_count == 2)
    WEIR_TRY(weir_shape_set_handle(ctx, 0, info->dtype, info->shape));
  return weir_shape_set_scalar(ctx, 1);
}

static weir_status_t* read_prefix(weir_kernel_ctx_t* ctx, weir_arena_t* arena,
                                  const weir_shape_t** out_prefix) {
  if (ctx->input_count < 3) return NULL;
  int64_t dims[WEIR_MAX_RANK];
  int rank = 0;
  WEIR_TRY(weir_kernel_ints(ctx, 2, dims, WEIR_MAX_RANK, &rank));
  for (int i = 0; i < rank; ++i) {
    if (dims[i] < 0)
      return WEIR_STATUS(INVALID_ARGUMENT, "Dimension %lld must be >= 0", (long long)dims[i]);
  }
  *out_prefix = weir_shape_make(arena, rank, dims);
  return *out_prefix ? NULL : weir_out_of_memory();
}

// Makes the gradient array's handle output 0 and keeps it with the forward array, for the
// iterations to come.
static weir_status_t* create_grad(weir_kernel_ctx_t* ctx, weir_tensor_array_t* array,
                                  weir_view_t source) {
  weir_tensor_array_t* grad = NULL;
  weir_arena_t arena = {0};
  char prefix[280], name[320];
  snprintf(prefix, sizeof(prefix), "%.200s@%.*s", array->name,
           (int)WEIR_MIN(source.size, (size_t)64), source.data);
  WEIR_TRY(weir_kernel_unique_name(ctx, prefix, name, sizeof(name)));
  weir_tensor_array_grad_params_t params = {.source = source, .name = name};
  weir_status_t* status = read_prefix(ctx, &arena, &params.prefix);
  if (!status) status = weir_tensor_array_grad(array, &params, &grad);
  weir_arena_free(&arena);
  if (!status) status = weir_step_resource_publish(ctx, 0, &grad->base, name, TYPE_NAME);
  if (!status && ctx->outputs[0].tensor) {
    weir_tensor_array_keep_grad_handle(array, source, ctx->outputs[0].tensor);
  }
  return status;
}

// Handles by reference are not kept: the array gets one more name each time.
static weir_status_t* find_grad(weir_kernel_ctx_t* ctx, weir_tensor_array_t* array,
                                weir_view_t source) {
  weir_tensor_t* handle = weir_tensor_array_grad_handle(array, source);
  if (handle) {
    weir_kernel_set(ctx, 0, handle);
    return NULL;
  }
  return create_grad(ctx, array, source);
}

static weir_status_t* grad_cpu(weir_kernel_ctx_t* ctx) {
  weir_view_t source = weir_attrs_string(weir_kernel_attrs(ctx), "source");
  weir_tensor_array_t* array = NULL;
  WEIR_TRY(array_of(ctx, &array));
  WEIR_TRY(find_grad(ctx, array, source));
  return set_flow(ctx);
}

// ---- write and read ----

static weir_status_t* write_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(array_check_shapes(ctx, 3));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 0, NULL));
  const weir_handle_info_t* info = ctx->input_handles ? ctx->input_handles[0] : NULL;
  const weir_shape_t* joined = NULL;
  if (info && info->shape)
    WEIR_TRY(weir_shape_join(ctx, info->shape, weir_shape_input(ctx, 2), &joined));
  return weir_shape_set_scalar(ctx, 0);
}

static weir_status_t* write_cpu(weir_kernel_ctx_t* ctx) {
  weir_tensor_array_t* array = NULL;
  int64_t index = 0;
  WEIR_TRY(array_of(ctx, &array));
  WEIR_TRY(array_index(ctx, &index));
  WEIR_TRY(array_check_write(array, weir_kernel_input(ctx, 2)));
  WEIR_TRY(
      weir_tensor_array_write(array, index, weir_kernel_take_input(ctx, 2), ARRAY_MEMORY(ctx)));
  weir_kernel_pass(ctx, 3, 0);
  return NULL;
}

static weir_status_t* write_grad(weir_grad_ctx_t* g) {
  weir_edge_t flow = array_grad_barrier(g);
  array_grad_t grad = array_grad_of(g, flow);
  weir_dtype_t dtype = weir_attrs_type(weir_grad_attrs(g), "T");
  weir_edge_t dx = weir_grad_node_with(g, "TensorArrayReadV3",
                                       WEIR_EDGES(grad.handle, weir_grad_input(g, 1), grad.flow),
                                       WEIR_ATTRS(weir_attr_type("dtype", dtype)));
  WEIR_TRY(weir_grad_set(g, 2, dx));
  return weir_grad_set(g, 3, flow);
}

static weir_status_t* read_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(array_check_shapes(ctx, 2));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 0, NULL));
  const weir_handle_info_t* info = ctx->input_handles ? ctx->input_handles[0] : NULL;
  return weir_shape_set(ctx, 0, info && info->shape ? info->shape : &weir_shape_unknown);
}

static weir_status_t* read_cpu(weir_kernel_ctx_t* ctx) {
  weir_tensor_array_t* array = NULL;
  weir_tensor_t* value = NULL;
  int64_t index = 0;
  WEIR_TRY(array_of(ctx, &array));
  WEIR_TRY(array_index(ctx, &index));
  WEIR_TRY(array_check_read(array, ctx->node->output_types[0]));
  WEIR_TRY(weir_tensor_array_read(array, index, ARRAY_MEMORY(ctx), &value));
  weir_kernel_set(ctx, 0, value);
  return NULL;
}

static weir_status_t* read_grad(weir_grad_ctx_t* g) {
  array_grad_t grad = array_grad_of(g, weir_grad_input(g, 2));
  weir_edge_t flow =
      weir_grad_node(g, "TensorArrayWriteV3",
                     WEIR_EDGES(grad.handle, weir_grad_input(g, 1), weir_grad_dy(g, 0), grad.flow));
  return weir_grad_set(g, 2, flow);
}

// ---- size, close ----

static weir_status_t* size_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(array_check_shapes(ctx, 1));
  return weir_shape_set_scalar(ctx, 0);
}

static weir_status_t* size_cpu(weir_kernel_ctx_t* ctx) {
  weir_tensor_array_t* array = NULL;
  int64_t size = 0;
  WEIR_TRY(array_of(ctx, &array));
  WEIR_TRY(weir_tensor_array_size(array, &size));
  return weir_kernel_output_int(ctx, 0, size);
}

static weir_status_t* close_shape(weir_shape_ctx_t* ctx) { return array_check_shapes(ctx, -1); }

static weir_status_t* close_cpu(weir_kernel_ctx_t* ctx) {
  weir_tensor_array_t* array = NULL;
  WEIR_TRY(array_of(ctx, &array));
  weir_tensor_array_close(array);
  return NULL;
}

#define FLAGS (WEIR_OP_STATEFUL | WEIR_OP_STEP_STATE | WEIR_OP_CHEAP)

// ---- the generations before: handles are strings, by reference (first) or by value ----

static weir_status_t* old_create_shape(weir_shape_ctx_t* ctx) {
  if (weir_dtype_is_ref(ctx->node->output_types[0])) return NULL;
  if (ctx->node->input_types[0] == WEIR_DTYPE_INT32) {
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 0, NULL));
  } else {
    WEIR_TRY(array_check_shapes(ctx, -1));
  }
  return weir_shape_set_vector(ctx, 0, 2);
}

// Of the first one nothing is known.
static weir_status_t* old_write_shape(weir_shape_ctx_t* ctx) {
  return weir_dtype_is_ref(ctx->node->input_types[0]) ? NULL : write_shape(ctx);
}
static weir_status_t* old_read_shape(weir_shape_ctx_t* ctx) {
  return weir_dtype_is_ref(ctx->node->input_types[0]) ? NULL : read_shape(ctx);
}
static weir_status_t* old_size_shape(weir_shape_ctx_t* ctx) {
  return weir_dtype_is_ref(ctx->node->input_types[0]) ? NULL : size_shape(ctx);
}

#define READ_TYPES                                                                 \
  "dtype: variant, resource, string, bool, complex128, complex64, double, float, " \
  "bfloat16, half, int32, int8, uint8, int16, uint16, uint32, int64, uint64"
#define OLD_FLAGS (WEIR_OP_NO_FOLD | WEIR_OP_CHEAP)
#define OLD_CREATE(op, text, specs, in, out, fn)                                            \
  {                                                                                         \
    .name = op, .attrs = specs, .inputs = in, .outputs = out,                               \
    .flags = FLAGS | WEIR_OP_NO_GRADIENT, .summary = text, .infer_shape = old_create_shape, \
    .kernels = WEIR_CPU_KERNEL(.compute = fn)                                               \
  }
#define OLD_OPS(v, handle)                                                             \
  {.name = "TensorArrayWrite" v,                                                       \
   .attrs = "T: type",                                                                 \
   .inputs = "handle: " handle "; index: int32; value: T; flow_in: float",             \
   .outputs = "flow_out: float",                                                       \
   .flags = OLD_FLAGS,                                                                 \
   .summary = "Writes an element.",                                                    \
   .infer_shape = old_write_shape,                                                     \
   .kernels = WEIR_CPU_KERNEL(ARRAY_WRITER, .compute = write_cpu)},                    \
      {.name = "TensorArrayRead" v,                                                    \
       .attrs = "dtype: type",                                                         \
       .inputs = "handle: " handle "; index: int32; flow_in: float",                   \
       .outputs = "value: dtype",                                                      \
       .flags = OLD_FLAGS,                                                             \
       .summary = "Reads an element.",                                                 \
       .infer_shape = old_read_shape,                                                  \
       .kernels = WEIR_CPU_KERNEL(.types = READ_TYPES, .compute = read_cpu)},          \
      {.name = "TensorArraySize" v,                                                    \
       .inputs = "handle: " handle "; flow_in: float",                                 \
       .outputs = "size: int32",                                                       \
       .flags = OLD_FLAGS | WEIR_OP_NO_GRADIENT,                                       \
       .summary = "Returns the number of elements.",                                   \
       .infer_shape = old_size_shape,                                                  \
       .kernels = WEIR_CPU_KERNEL(.compute = size_cpu)},                               \
  {                                                                                    \
    .name = "TensorArrayClose" v, .inputs = "handle: " handle,                         \
    .flags = OLD_FLAGS | WEIR_OP_NO_GRADIENT,                                          \
    .summary = "Drops the elements before the step ends.", .infer_shape = close_shape, \
    .kernels = WEIR_CPU_KERNEL(.compute = close_cpu)                                   \
  }

const weir_op_module_t weir_ops_list_tensor_array = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "TensorArrayV3",
         .attrs = "dtype: type; element_shape: shape = <unknown>; dynamic_size: bool = false; "
                  "clear_after_read: bool = true; identical_element_shapes: bool = false; "
                  "tensor_array_name: string = ''",
         .inputs = "size: int32",
         .outputs = "handle: resource; flow: float",
         .flags = FLAGS | WEIR_OP_NO_GRADIENT,
         .summary = "Makes an array of tensors that lives as long as the step.",
         .infer_shape = create_shape,
         .kernels =
             LIST_KERNELS(.compute = create_cpu, .host_inputs = "size", .host_outputs = "handle")},
        {.name = "TensorArrayGradV3",
         .attrs = "source: string",
         .inputs = "handle: resource; flow_in: float",
         .outputs = "grad_handle: resource; flow_out: float",
         .flags = FLAGS | WEIR_OP_NO_GRADIENT,
         .summary = "Finds or makes the array that adds up gradients of a TensorArray.",
         .infer_shape = grad_shape,
         .kernels = LIST_KERNELS(.compute = grad_cpu, .host_inputs = "handle",
                                 .host_outputs = "grad_handle")},
        {.name = "TensorArrayGradWithShape",
         .attrs = "source: string",
         .inputs = "handle: resource; flow_in: float; shape_to_prepend: int32",
         .outputs = "grad_handle: resource; flow_out: float",
         .flags = FLAGS | WEIR_OP_NO_GRADIENT,
         .summary = "As TensorArrayGradV3, with dimensions put before those of the elements.",
         .infer_shape = grad_shape,
         .kernels = LIST_KERNELS(.compute = grad_cpu, .host_inputs = "handle, shape_to_prepend",
                                 .host_outputs = "grad_handle")},
        {.name = "TensorArrayWriteV3",
         .attrs = "T: type",
         .inputs = "handle: resource; index: int32; value: T; flow_in: float",
         .outputs = "flow_out: float",
         .flags = FLAGS,
         .summary = "Writes an element.",
         .infer_shape = write_shape,
         .build_grad = write_grad,
         .kernels =
             LIST_KERNELS(ARRAY_WRITER, .compute = write_cpu, .host_inputs = "handle, index")},
        {.name = "TensorArrayReadV3",
         .attrs = "dtype: type",
         .inputs = "handle: resource; index: int32; flow_in: float",
         .outputs = "value: dtype",
         .flags = FLAGS,
         .summary = "Reads an element.",
         .infer_shape = read_shape,
         .build_grad = read_grad,
         .kernels = LIST_KERNELS(
                 .types =
                     "dtype: variant, resource, string, bool, complex128, complex64, double, "
                     "float, "
                     "bfloat16, half, int32, int8, uint8, int16, uint16, uint32, int64, uint64",
                 .compute = read_cpu, .host_inputs = "handle, index")},
        {.name = "TensorArraySizeV3",
         .inputs = "handle: resource; flow_in: float",
         .outputs = "size: int32",
         .flags = FLAGS | WEIR_OP_NO_GRADIENT,
         .summary = "Returns the number of elements.",
         .infer_shape = size_shape,
         .kernels =
             LIST_KERNELS(.compute = size_cpu, .host_inputs = "handle", .host_outputs = "size")},
        {.name = "TensorArrayCloseV3",
         .inputs = "handle: resource",
         .flags = FLAGS | WEIR_OP_NO_GRADIENT,
         .summary = "Drops the elements before the step ends.",
         .infer_shape = close_shape,
         .kernels = LIST_KERNELS(.compute = close_cpu, .host_inputs = "handle")},
        OLD_CREATE("TensorArray",
                   "Makes an array of tensors that lives as long as the step, of old graphs.",
                   "dtype: type; dynamic_size: bool = false; clear_after_read: bool = true; "
                   "tensor_array_name: string = ''; element_shape: shape = <unknown>",
                   "size: int32", "handle: Ref(string)", create_cpu),
        OLD_CREATE("TensorArrayV2",
                   "Makes an array of tensors that lives as long as the step, of old graphs.",
                   "dtype: type; element_shape: shape = <unknown>; dynamic_size: bool = false; "
                   "clear_after_read: bool = true; tensor_array_name: string = ''",
                   "size: int32", "handle: string", create_cpu),
        OLD_CREATE(
            "TensorArrayGrad",
            "Finds or makes the array that adds up gradients of a TensorArray, of old graphs.",
            "source: string", "handle: string; flow_in: float", "grad_handle: Ref(string)",
            grad_cpu),
        OLD_CREATE(
            "TensorArrayGradV2",
            "Finds or makes the array that adds up gradients of a TensorArray, of old graphs.",
            "source: string", "handle: string; flow_in: float", "grad_handle: string", grad_cpu),
        OLD_OPS("", "Ref(string)"),
        OLD_OPS("V2", "string"),
        {0}}};

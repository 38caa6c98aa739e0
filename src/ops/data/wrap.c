// wrap.c — WrapDatasetVariant, UnwrapDatasetVariant: a dataset inside another variant.
#include "ops/data/dataset.h"

typedef struct wrapped_t {
  weir_variant_object_t base;
  weir_data_t* dataset;  // retained
} wrapped_t;

static void wrapped_destroy(void* object) {
  weir_dataset_release(((wrapped_t*)object)->dataset);
  weir_free(object);
}

static const weir_variant_type_t wrapped_type = {.type_name = "tensorflow::WrappedDatasetVariant",
                                                 .destroy = wrapped_destroy};

static weir_status_t* output_variant(weir_kernel_ctx_t* ctx, weir_variant_object_t* take_object) {
  weir_tensor_t* tensor = NULL;
  WEIR_TRY(weir_tensor_create_variant(take_object, &tensor));
  weir_kernel_set(ctx, 0, tensor);
  return NULL;
}

static weir_status_t* wrap_cpu(weir_kernel_ctx_t* ctx) {
  weir_data_t* dataset = NULL;
  WEIR_TRY(weir_dataset_of(weir_kernel_input(ctx, 0), &dataset));
  wrapped_t* wrapped = weir_calloc(1, sizeof(*wrapped));
  if (!wrapped) return weir_out_of_memory();
  wrapped->base.type = &wrapped_type;
  weir_ref_init(&wrapped->base.ref);
  wrapped->dataset = weir_dataset_retain(dataset);
  return output_variant(ctx, &wrapped->base);
}

static weir_status_t* unwrap_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* input = weir_kernel_input(ctx, 0);
  const weir_variant_object_t* object =
      input->rank == 0 ? WEIR_TENSOR_DATA(input, const weir_variant_t)->object : NULL;
  if (!object || object->type != &wrapped_type)
    return WEIR_STATUS(INVALID_ARGUMENT, "Tensor must be a WrappedDataset variant object.");
  return output_variant(ctx, &weir_dataset_retain(((const wrapped_t*)object)->dataset)->base);
}

const weir_op_module_t weir_ops_data_wrap = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){{.name = "WrapDatasetVariant",
                                    .inputs = "input_handle: variant",
                                    .outputs = "output_handle: variant",
                                    .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
                                    .summary = "A dataset inside another variant",
                                    .infer_shape = weir_shape_fn_scalar,
                                    .kernels = WEIR_CPU_KERNEL(.compute = wrap_cpu)},
                                   {.name = "UnwrapDatasetVariant",
                                    .inputs = "input_handle: variant",
                                    .outputs = "output_handle: variant",
                                    .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
                                    .summary = "The dataset inside another variant",
                                    .infer_shape = weir_shape_fn_scalar,
                                    .kernels = WEIR_CPU_KERNEL(.compute = unwrap_cpu)},
                                   {0}}};

// iterator_state.c — SerializeIterator, DeserializeIterator: an iterator's state as a tensor that a
// checkpoint may hold.
#include "ops/data/background_kernel.h"
#include "ops/data/iterator_resource.h"
#include "ops/data/state.h"

// ---- SerializeIterator ----

static weir_status_t* save(weir_kernel_ctx_t* ctx, weir_iterator_resource_t* iterator,
                           weir_variant_data_t* data) {
  int64_t policy = weir_attrs_int(weir_kernel_attrs(ctx), "external_state_policy");
  weir_state_t state = weir_state_save(data, (weir_state_policy_t)policy, ctx->step->cancel);
  return weir_iterator_resource_save(iterator, &state);
}

static weir_status_t* serialize(weir_kernel_ctx_t* ctx) {
  weir_resource_t* resource = NULL;
  weir_variant_data_t* data = NULL;
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_resource(ctx, 0, &weir_iterator_resource_type, &resource));
  weir_status_t* status = weir_variant_data_create(&data);
  if (!status) status = save(ctx, (weir_iterator_resource_t*)resource, data);
  if (!status) status = weir_kernel_output(ctx, 0, 1, (const int64_t[]){1}, &out);
  if (!status) WEIR_TENSOR_DATA(out, weir_variant_t)[0].object = &data->base;
  else weir_variant_data_release(data);
  weir_resource_release(resource);
  return status;
}

static void serialize_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  weir_background_kernel(ctx, done, serialize);
}

// ---- DeserializeIterator ----

static weir_status_t* state_of(const weir_tensor_t* tensor, weir_variant_data_t** out_data) {
  weir_variant_object_t* object =
      tensor->count == 1 ? WEIR_TENSOR_DATA(tensor, weir_variant_t)[0].object : NULL;
  if (!object || object->type != &weir_iterator_state_type)
    return WEIR_STATUS(INVALID_ARGUMENT, "serialized is not the state of an iterator");
  *out_data = (weir_variant_data_t*)object;
  return NULL;
}

static weir_status_t* deserialize(weir_kernel_ctx_t* ctx) {
  weir_resource_t* resource = NULL;
  weir_variant_data_t* data = NULL;
  WEIR_TRY(state_of(weir_kernel_input(ctx, 1), &data));
  WEIR_TRY(weir_kernel_resource(ctx, 0, &weir_iterator_resource_type, &resource));
  weir_state_t state = weir_state_restore(data, ctx->step->cancel);
  weir_status_t* status =
      weir_iterator_resource_restore((weir_iterator_resource_t*)resource, ctx, &state);
  weir_resource_release(resource);
  return status;
}

static void deserialize_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  weir_background_kernel(ctx, done, deserialize);
}

const weir_op_module_t weir_ops_data_iterator_state = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "SerializeIterator",
         .attrs = "external_state_policy: int = 0",
         .inputs = "resource_handle: resource",
         .outputs = "serialized: variant",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY | WEIR_OP_UNBOUNDED,
         .summary = "The state of an iterator, to be saved",
         .infer_shape = weir_shape_fn_unknown,
         .kernels = WEIR_CPU_KERNEL(.compute_async = serialize_cpu)},
        {.name = "DeserializeIterator",
         .inputs = "resource_handle: resource; serialized: variant",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY | WEIR_OP_UNBOUNDED,
         .summary = "Lets an iterator go on from a state that was saved",
         .infer_shape = weir_shape_fn_none,
         .kernels = WEIR_CPU_KERNEL(.compute_async = deserialize_cpu)},
        {0}}};

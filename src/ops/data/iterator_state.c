// iterator_state.c — SerializeIterator, DeserializeIterator: not here yet. Their state is
// TensorFlow's own, key by key for each dataset; they say so, and nothing is lost in silence.
#include "ops/data/iterator_resource.h"

static weir_status_t* refuse(weir_kernel_ctx_t* ctx) {
  weir_resource_t* resource = NULL;
  WEIR_TRY(weir_kernel_resource(ctx, 0, &weir_iterator_resource_type, &resource));
  weir_resource_release(resource);
  return WEIR_STATUS(UNIMPLEMENTED, "%s: the state of an iterator cannot be saved or restored",
                     ctx->node->op_name);
}

const weir_op_module_t weir_ops_data_iterator_state = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "SerializeIterator",
         .attrs = "external_state_policy: int = 0",
         .inputs = "resource_handle: resource",
         .outputs = "serialized: variant",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "UNIMPLEMENTED",
         .infer_shape = weir_shape_fn_unknown,
         .kernels = WEIR_CPU_KERNEL(.compute = refuse)},
        {.name = "DeserializeIterator",
         .inputs = "resource_handle: resource; serialized: variant",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "UNIMPLEMENTED",
         .infer_shape = weir_shape_fn_none,
         .kernels = WEIR_CPU_KERNEL(.compute = refuse)},
        {0}}};

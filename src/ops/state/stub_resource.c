// stub_resource.c — StubResourceHandleOp and ResourceCreateOp: a resource that is only there or
// not, which TensorFlow's own tests use.
#include "base/alloc.h"
#include "op/shape_ctx.h"
#include "op/shared_handle.h"

#define STUB_TYPE_NAME "N10tensorflow12StubResourceE"

static void stub_destroy(weir_resource_t* resource) { weir_free(resource); }

static const weir_resource_type_t stub_type = {.name = STUB_TYPE_NAME, .destroy = stub_destroy};

static weir_status_t* stub_init(const weir_kernel_init_t* init, void* state) {
  return weir_shared_handle_init(init, STUB_TYPE_NAME, state);
}

static void stub_deinit(void* state) { weir_shared_handle_deinit(state); }

static weir_status_t* stub_cpu(weir_kernel_ctx_t* ctx) {
  weir_shared_handle_set(ctx, ctx->state);
  return NULL;
}

static weir_status_t* create_cpu(weir_kernel_ctx_t* ctx) {
  const weir_handle_t* handle = weir_tensor_handle(weir_kernel_input(ctx, 0));
  weir_resources_t* manager = NULL;
  if (!handle) return WEIR_STATUS(INVALID_ARGUMENT, "%s needs a resource handle", ctx->node->name);
  if (strcmp(handle->type_name, STUB_TYPE_NAME) != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Trying to access a handle's resource using the wrong type. The handle "
                       "points to a resource (name '%s') of type '%s' but you are trying to access "
                       "the resource as type '%s'",
                       handle->name, handle->type_name, STUB_TYPE_NAME);
  }
  WEIR_TRY(weir_kernel_manager(ctx, handle, &manager));
  weir_resource_t* stub = weir_calloc(1, sizeof(*stub));
  if (!stub) return weir_out_of_memory();
  weir_resource_init(stub, &stub_type);
  return weir_resources_add(manager, weir_view_of(handle->container), weir_view_of(handle->name),
                            stub);
}

const weir_op_module_t weir_ops_state_stub_resource = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "StubResourceHandleOp",
         .attrs = "container: string = ''; shared_name: string = ''",
         .outputs = "resource: resource",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_CHEAP,
         .summary = "Names a resource that holds nothing",
         .infer_shape = weir_shared_handle_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = stub_cpu, .init = stub_init, .deinit = stub_deinit,
                                    .state_size = sizeof(weir_shared_handle_t))},
        {.name = "ResourceCreateOp",
         .inputs = "resource: resource",
         .flags = WEIR_OP_STATEFUL,
         .summary = "Creates a resource that holds nothing",
         .infer_shape = weir_shape_fn_none,
         .kernels = WEIR_CPU_KERNEL(.compute = create_cpu)},
        {0}}};

// iterator.c — Iterator, IteratorV2, AnonymousIterator to V3, MakeIterator, DeleteIterator:
// iterators that a dataset is given to.
#include "ops/data/iterator_names.h"
#include "ops/data/resources.h"

// ---- by name ----

typedef struct named_t {
  weir_iterator_names_t names;  // first
  weir_element_spec_t spec;     // borrowed from the node
} named_t;

static weir_status_t* named_init(const weir_kernel_init_t* init, void* state) {
  named_t* self = state;
  WEIR_TRY(weir_element_spec_of(init->node->attrs, &self->spec));
  return weir_iterator_names_init(init, &self->names);
}

static void named_deinit(void* state) { weir_iterator_names_deinit(&((named_t*)state)->names); }

static weir_status_t* named_cpu(weir_kernel_ctx_t* ctx) {
  named_t* self = ctx->state;
  weir_iterator_resource_t* resource = NULL;
  WEIR_TRY(weir_iterator_names_resource(ctx, &self->names, &self->spec, &resource));
  weir_resource_release((weir_resource_t*)resource);
  weir_kernel_set(ctx, 0, weir_tensor_retain(self->names.tensor));
  return NULL;
}

// ---- by handle alone ----

// The handle keeps the iterator alive: it is gone with the last copy.
static weir_status_t* anonymous_cpu(weir_kernel_ctx_t* ctx) {
  weir_element_spec_t spec;
  weir_resource_t* resource = NULL;
  WEIR_TRY(weir_element_spec_of(weir_kernel_attrs(ctx), &spec));
  WEIR_TRY(weir_iterator_resource_create(&spec, &resource));
  return weir_data_output_handle(ctx, resource, "AnonymousIterator", WEIR_ITERATOR_TYPE_NAME);
}

static weir_status_t* delete_cpu(weir_kernel_ctx_t* ctx) {
  const weir_handle_t* handle = weir_tensor_handle(weir_kernel_input(ctx, 0));
  if (!handle) return WEIR_STATUS(INVALID_ARGUMENT, "handle is not a resource handle");
  if (handle->object) return NULL;
  weir_resources_t* manager = NULL;
  WEIR_TRY(weir_kernel_manager(ctx, handle, &manager));
  return weir_resources_remove(manager, weir_view_of(handle->container), weir_view_of(handle->name),
                               &weir_iterator_resource_type);
}

// ---- what is walked over ----

static weir_status_t* make_cpu(weir_kernel_ctx_t* ctx) {
  weir_data_t* dataset = NULL;
  weir_resource_t* resource = NULL;
  WEIR_TRY(weir_dataset_of(weir_kernel_input(ctx, 0), &dataset));
  WEIR_TRY(weir_kernel_resource(ctx, 1, &weir_iterator_resource_type, &resource));
  weir_status_t* status =
      weir_iterator_resource_set((weir_iterator_resource_t*)resource, ctx, dataset);
  weir_resource_release(resource);
  return status;
}

#define SPEC "output_types: list(type) >= 1; output_shapes: list(shape) >= 1"
#define NAMED(op)                                                                   \
  {                                                                                 \
    .name = op, .attrs = "shared_name: string; container: string; " SPEC,           \
    .outputs = "handle: resource",                                                  \
    .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,            \
    .summary = "An iterator by name, shared by all who name it so",                 \
    .infer_shape = weir_shape_fn_scalar,                                            \
    .kernels = WEIR_CPU_KERNEL(.compute = named_cpu, .state_size = sizeof(named_t), \
                               .init = named_init, .deinit = named_deinit)          \
  }
#define ANONYMOUS(op, handles)                                                                \
  {                                                                                           \
    .name = op, .attrs = SPEC, .outputs = handles,                                            \
    .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,                      \
    .summary = "An iterator that lives as long as its handle",                                \
    .infer_shape = weir_shape_fn_scalar, .kernels = WEIR_CPU_KERNEL(.compute = anonymous_cpu) \
  }

const weir_op_module_t weir_ops_data_iterator = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        NAMED("Iterator"),
        NAMED("IteratorV2"),
        ANONYMOUS("AnonymousIterator", "handle: resource"),
        ANONYMOUS("AnonymousIteratorV2", "handle: resource; deleter: variant"),
        ANONYMOUS("AnonymousIteratorV3", "handle: resource"),
        {.name = "MakeIterator",
         .inputs = "dataset: variant; iterator: resource",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "Lets an iterator walk over a dataset from its start",
         .infer_shape = weir_shape_fn_none,
         .kernels = WEIR_CPU_KERNEL(.compute = make_cpu)},
        {.name = "DeleteIterator",
         .inputs = "handle: resource; deleter: variant",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "Ends an iterator",
         .infer_shape = weir_shape_fn_none,
         .kernels = WEIR_CPU_KERNEL(.compute = delete_cpu)},
        {0}}};

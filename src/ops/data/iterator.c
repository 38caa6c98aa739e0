// iterator.c — Iterator, IteratorV2, AnonymousIterator to V3, MakeIterator, DeleteIterator:
// iterators that a dataset is given to.
#include "ops/data/iterator_handle.h"
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
  return weir_iterator_names_init(init, &weir_iterator_resource_type, &self->names);
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

static weir_status_t* create(weir_kernel_ctx_t* ctx, weir_resource_t** out_resource) {
  weir_element_spec_t spec;
  WEIR_TRY(weir_element_spec_of(weir_kernel_attrs(ctx), &spec));
  return weir_iterator_resource_create(&spec, out_resource);
}

// The handle keeps the iterator alive: it is gone with the last copy.
static weir_status_t* anonymous_cpu(weir_kernel_ctx_t* ctx) {
  weir_resource_t* resource = NULL;
  WEIR_TRY(create(ctx, &resource));
  return weir_data_output_handle(ctx, resource, "AnonymousIterator", WEIR_ITERATOR_TYPE_NAME);
}

// AnonymousIterator's is there until someone deletes it: a string may be all that is left of the
// handle.
static weir_status_t* kept_cpu(weir_kernel_ctx_t* ctx) {
  weir_resource_t* resource = NULL;
  WEIR_TRY(create(ctx, &resource));
  return weir_data_output_kept(ctx, resource, "AnonymousIterator", WEIR_ITERATOR_TYPE_NAME);
}

static weir_status_t* delete_cpu(weir_kernel_ctx_t* ctx) {
  return weir_iterator_handle_delete(ctx, &weir_iterator_resource_type);
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

#define NAMED(op)                                                                       \
  {                                                                                     \
    .name = op, .attrs = "shared_name: string; container: string; " WEIR_ITERATOR_SPEC, \
    .outputs = "handle: resource",                                                      \
    .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,                \
    .summary = "Names an iterator, shared by all who name it so",                       \
    .infer_shape = weir_shape_fn_scalar,                                                \
    .kernels = WEIR_CPU_KERNEL(.compute = named_cpu, .state_size = sizeof(named_t),     \
                               .init = named_init, .deinit = named_deinit)              \
  }
#define ANONYMOUS(op, handles, kernel)                                                 \
  {                                                                                    \
    .name = op, .attrs = WEIR_ITERATOR_SPEC, .outputs = handles,                       \
    .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,               \
    .summary = "An iterator that lives as long as its handle",                         \
    .infer_shape = weir_shape_fn_scalar, .kernels = WEIR_CPU_KERNEL(.compute = kernel) \
  }

const weir_op_module_t weir_ops_data_iterator = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        NAMED("Iterator"),
        NAMED("IteratorV2"),
        ANONYMOUS("AnonymousIterator", "handle: resource", kept_cpu),
        ANONYMOUS("AnonymousIteratorV2", "handle: resource; deleter: variant", anonymous_cpu),
        ANONYMOUS("AnonymousIteratorV3", "handle: resource", anonymous_cpu),
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

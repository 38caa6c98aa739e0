// multi_device.c — MultiDeviceIterator, AnonymousMultiDeviceIterator, V3, and what is done with
// them: one dataset for several devices.
#include "ops/data/multi_device.h"

#include "ops/data/background_kernel.h"
#include "ops/data/iterator_handle.h"
#include "ops/data/iterator_names.h"
#include "ops/data/resources.h"

static weir_status_t* read_params(weir_attrs_t attrs, weir_multi_device_params_t* out_params) {
  out_params->shard_count = (int)weir_attrs_list(attrs, "devices")->count;
  return weir_element_spec_of(attrs, &out_params->spec);
}

static weir_status_t* matches(weir_resource_t* resource, const weir_element_spec_t* spec) {
  return weir_multi_device_matches((weir_multi_device_t*)resource, spec);
}

// ---- handles ----

typedef struct named_t {
  weir_iterator_names_t names;
  weir_multi_device_params_t params;  // borrowed from the node
} named_t;

static weir_status_t* named_init(const weir_kernel_init_t* init, void* state) {
  named_t* self = state;
  WEIR_TRY(read_params(init->node->attrs, &self->params));
  return weir_iterator_names_init(init, &weir_multi_device_type, &self->names);
}

static void named_deinit(void* state) { weir_iterator_names_deinit(&((named_t*)state)->names); }

static weir_status_t* create(void* arg, weir_resource_t** out_resource) {
  return weir_multi_device_create(arg, out_resource);
}

static weir_status_t* named_cpu(weir_kernel_ctx_t* ctx) {
  named_t* self = ctx->state;
  weir_resource_t* resource = NULL;
  WEIR_TRY(weir_iterator_names_find(ctx, &self->names, create, &self->params, &resource));
  weir_status_t* status = matches(resource, &self->params.spec);
  weir_resource_release(resource);
  if (!status) weir_kernel_set(ctx, 0, weir_tensor_retain(self->names.tensor));
  return status;
}

static weir_status_t* anonymous_cpu(weir_kernel_ctx_t* ctx) {
  weir_multi_device_params_t params;
  weir_resource_t* resource = NULL;
  WEIR_TRY(read_params(weir_kernel_attrs(ctx), &params));
  WEIR_TRY(weir_multi_device_create(&params, &resource));
  return weir_data_output_handle(ctx, resource, "AnonymousMultiDeviceIterator",
                                 weir_multi_device_type.name);
}

static weir_status_t* to_string_cpu(weir_kernel_ctx_t* ctx) {
  return weir_iterator_handle_to_string(ctx, &weir_multi_device_type);
}

static weir_status_t* from_string_cpu(weir_kernel_ctx_t* ctx) {
  return weir_iterator_handle_from_string(ctx, &weir_multi_device_type, matches);
}

static weir_status_t* delete_cpu(weir_kernel_ctx_t* ctx) {
  return weir_iterator_handle_delete(ctx, &weir_multi_device_type);
}

// ---- elements ----

static weir_status_t* init_cpu(weir_kernel_ctx_t* ctx) {
  int64_t limit = 0, incarnation = 0;
  weir_data_t* dataset = NULL;
  weir_resource_t* resource = NULL;
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_dataset_int(ctx, 2, "max_buffer_size", &limit));
  WEIR_TRY(weir_dataset_of(weir_kernel_input(ctx, 0), &dataset));
  WEIR_TRY(weir_kernel_resource(ctx, 1, &weir_multi_device_type, &resource));
  weir_status_t* status = weir_multi_device_set((weir_multi_device_t*)resource, ctx, dataset,
                                                limit == 0 ? 1 : limit, &incarnation);
  weir_resource_release(resource);
  if (!status) status = weir_kernel_output(ctx, 0, 0, NULL, &out);
  if (!status) *WEIR_TENSOR_DATA(out, int64_t) = incarnation;
  return status;
}

static weir_status_t* pull(weir_kernel_ctx_t* ctx, weir_multi_device_t* iterator,
                           weir_tensor_t** element) {
  int64_t shard = 0, incarnation = 0;
  bool is_end = false;
  WEIR_TRY(weir_dataset_int(ctx, 1, "shard_num", &shard));
  WEIR_TRY(weir_dataset_int(ctx, 2, "incarnation_id", &incarnation));
  WEIR_TRY(weir_multi_device_next(iterator, (int)shard, incarnation, ctx->step->cancel, element,
                                  &is_end));
  if (is_end) return WEIR_STATUS(OUT_OF_RANGE, "End of sequence");
  return weir_element_check(weir_kernel_attrs(ctx), element, weir_multi_device_width(iterator));
}

static weir_status_t* next(weir_kernel_ctx_t* ctx) {
  weir_resource_t* resource = NULL;
  WEIR_TRY(weir_kernel_resource(ctx, 0, &weir_multi_device_type, &resource));
  weir_multi_device_t* iterator = (weir_multi_device_t*)resource;
  int count = weir_multi_device_width(iterator);
  weir_tensor_t** element = weir_element_create(count);
  weir_status_t* status = element ? pull(ctx, iterator, element) : weir_out_of_memory();
  for (int i = 0; i < count && !status; ++i) {
    weir_kernel_set(ctx, i, element[i]);
    element[i] = NULL;
  }
  weir_element_free(element, count);
  weir_resource_release(resource);
  return status;
}

static void next_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  weir_background_kernel(ctx, done, next);
}

// ---- ops ----

#define FLAGS (WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY)
#define ANONYMOUS(op, handles)                                                                     \
  {                                                                                                \
    .name = op, .attrs = "devices: list(string) >= 1; " WEIR_ITERATOR_SPEC, .outputs = handles,    \
    .flags = FLAGS, .summary = "An iterator for several devices that lives as long as its handle", \
    .infer_shape = weir_shape_fn_scalar, .kernels = WEIR_CPU_KERNEL(.compute = anonymous_cpu)      \
  }

const weir_op_module_t weir_ops_data_multi_device = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "MultiDeviceIterator",
         .attrs = "devices: list(string) >= 1; shared_name: string; container: "
                  "string; " WEIR_ITERATOR_SPEC,
         .outputs = "handle: resource",
         .flags = FLAGS,
         .summary = "An iterator by name, whose elements go to several devices in turn",
         .infer_shape = weir_shape_fn_scalar,
         .kernels = WEIR_CPU_KERNEL(.compute = named_cpu, .state_size = sizeof(named_t),
                                    .init = named_init, .deinit = named_deinit)},
        ANONYMOUS("AnonymousMultiDeviceIterator", "handle: resource; deleter: variant"),
        ANONYMOUS("AnonymousMultiDeviceIteratorV3", "handle: resource"),
        {.name = "MultiDeviceIteratorInit",
         .inputs = "dataset: variant; multi_device_iterator: resource; max_buffer_size: int64",
         .outputs = "incarnation_id: int64",
         .flags = FLAGS,
         .summary = "Lets an iterator walk over a dataset from its start; which time it is",
         .infer_shape = weir_shape_fn_scalar,
         .kernels = WEIR_CPU_KERNEL(.compute = init_cpu)},
        {.name = "MultiDeviceIteratorGetNextFromShard",
         .attrs = WEIR_ITERATOR_SPEC,
         .inputs = "multi_device_iterator: resource; shard_num: int32; incarnation_id: int64",
         .outputs = "components: output_types",
         .flags = FLAGS | WEIR_OP_UNBOUNDED,
         .summary = "The next element for one device; OUT_OF_RANGE after the last",
         .infer_shape = weir_iterator_next_shape,
         .kernels = WEIR_CPU_KERNEL(.compute_async = next_cpu)},
        {.name = "MultiDeviceIteratorToStringHandle",
         .inputs = "multi_device_iterator: resource",
         .outputs = "string_handle: string",
         .flags = FLAGS,
         .summary = "The iterator's handle as a string",
         .infer_shape = weir_shape_fn_scalar,
         .kernels = WEIR_CPU_KERNEL(.compute = to_string_cpu)},
        {.name = "MultiDeviceIteratorFromStringHandle",
         .attrs = WEIR_ITERATOR_MAYBE_SPEC,
         .inputs = "string_handle: string",
         .outputs = "multi_device_iterator: resource",
         .flags = FLAGS,
         .summary = "The iterator that a string names",
         .infer_shape = weir_iterator_handle_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = from_string_cpu)},
        {.name = "DeleteMultiDeviceIterator",
         .attrs = "N: int >= 0",
         .inputs = "multi_device_iterator: resource; iterators: N * resource; deleter: variant",
         .flags = FLAGS,
         .summary = "Ends an iterator for several devices",
         .infer_shape = weir_shape_fn_none,
         .kernels = WEIR_CPU_KERNEL(.compute = delete_cpu)},
        {0}}};

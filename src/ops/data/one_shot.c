// one_shot.c — OneShotIterator: an iterator over the dataset that a function makes, at its first
// use.
#include "ops/data/background_kernel.h"
#include "ops/data/captured.h"
#include "ops/data/iterator_names.h"

typedef struct one_shot_t {
  weir_iterator_names_t names;
  weir_element_spec_t spec;
  weir_mutex_t making;  // held while the dataset is made: by one step, others wait for it
} one_shot_t;

static weir_status_t* one_shot_init(const weir_kernel_init_t* init, void* state) {
  one_shot_t* self = state;
  weir_mutex_init(&self->making);
  WEIR_TRY(weir_element_spec_of(init->node->attrs, &self->spec));
  return weir_iterator_names_init(init, &weir_iterator_resource_type, &self->names);
}

static void one_shot_deinit(void* state) {
  one_shot_t* self = state;
  weir_iterator_names_deinit(&self->names);
  weir_mutex_destroy(&self->making);
}

static weir_status_t* make_dataset(weir_kernel_ctx_t* ctx, weir_tensor_t** out_dataset) {
  weir_captured_t factory = {.count = 0};
  weir_walk_t walk = weir_step_walk(ctx);
  weir_status_t* status = weir_captured_init(ctx, "dataset_factory", 0, 0, &factory);
  weir_results_t results = {.count = 1, .items = out_dataset};
  if (!status) status = weir_captured_call(&factory, &walk, ctx->step->cancel, NULL, 0, &results);
  weir_captured_deinit(&factory);
  return status;
}

static weir_status_t* set_iterator(weir_kernel_ctx_t* ctx, weir_iterator_resource_t* iterator) {
  weir_tensor_t* made = NULL;
  weir_data_t* dataset = NULL;
  WEIR_TRY(make_dataset(ctx, &made));
  weir_status_t* status = weir_dataset_of(made, &dataset);
  if (!status) status = weir_iterator_resource_set(iterator, ctx, dataset);
  weir_tensor_release(made);
  return status;
}

static weir_status_t* make_once(weir_kernel_ctx_t* ctx) {
  one_shot_t* self = ctx->state;
  weir_iterator_resource_t* iterator = NULL;
  weir_status_t* status = NULL;
  weir_mutex_lock(&self->making);
  status = weir_iterator_names_resource(ctx, &self->names, &self->spec, &iterator);
  if (!status && !weir_iterator_resource_is_set(iterator)) status = set_iterator(ctx, iterator);
  weir_mutex_unlock(&self->making);
  if (iterator) weir_resource_release((weir_resource_t*)iterator);
  if (!status) weir_kernel_set(ctx, 0, weir_tensor_retain(self->names.tensor));
  return status;
}

static void one_shot_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  weir_background_kernel(ctx, done, make_once);
}

const weir_op_module_t weir_ops_data_one_shot = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "OneShotIterator",
         .attrs = "dataset_factory: func; output_types: list(type) >= 1; "
                  "output_shapes: list(shape) >= 1; container: string = ''; "
                  "shared_name: string = ''",
         .outputs = "handle: resource",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY | WEIR_OP_UNBOUNDED,
         .summary = "An iterator over the dataset that a function makes",
         .infer_shape = weir_shape_fn_scalar,
         .kernels = WEIR_CPU_KERNEL(.compute_async = one_shot_cpu, .state_size = sizeof(one_shot_t),
                                    .init = one_shot_init, .deinit = one_shot_deinit,
                                    .names_functions = true)},
        {0}}};

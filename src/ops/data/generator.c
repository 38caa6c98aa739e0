// generator.c — GeneratorDataset: elements that a function makes of a state that another made.
#include "ops/data/captured.h"

typedef struct generator_t {
  weir_data_t base;
  weir_captured_t init, next, finalize;
} generator_t;

typedef struct generator_iterator_t {
  weir_iterator_t base;
  bool is_begun;  // init was called, and finalize is to be
  weir_tensor_t** state;
  int state_count;
} generator_iterator_t;

static weir_status_t* generator_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  generator_t* self = (generator_t*)dataset;
  int inits = weir_captured_count(ctx, "Tinit_func_args");
  int nexts = weir_captured_count(ctx, "Tnext_func_args");
  int ends = weir_captured_count(ctx, "Tfinalize_func_args");
  WEIR_TRY(weir_dataset_set_attrs(ctx, "output_types", "output_shapes", dataset));
  WEIR_TRY(weir_captured_init(ctx, "init_func", 0, inits, &self->init));
  WEIR_TRY(weir_captured_init(ctx, "next_func", inits, nexts, &self->next));
  return weir_captured_init(ctx, "finalize_func", inits + nexts, ends, &self->finalize);
}

static void generator_deinit(weir_data_t* dataset) {
  generator_t* self = (generator_t*)dataset;
  weir_captured_deinit(&self->init);
  weir_captured_deinit(&self->next);
  weir_captured_deinit(&self->finalize);
}

static weir_status_t* begin(generator_iterator_t* self, weir_cancel_t* cancel) {
  const generator_t* generator = (const generator_t*)self->base.dataset;
  const weir_walk_t* walk = self->base.walk;
  int count = 0;
  WEIR_TRY(weir_captured_result_count(&generator->init, walk, &count));
  weir_element_free(self->state, self->state_count);
  self->state_count = count;
  self->state = weir_element_create(count);
  if (!self->state) return weir_out_of_memory();
  weir_results_t results = {.count = count, .items = self->state};
  WEIR_TRY(weir_captured_call(&generator->init, walk, cancel, NULL, 0, &results));
  self->is_begun = true;
  return NULL;
}

static weir_status_t* end(generator_iterator_t* self, weir_cancel_t* cancel) {
  const generator_t* generator = (const generator_t*)self->base.dataset;
  int count = 0;
  if (!self->is_begun) return NULL;
  self->is_begun = false;
  WEIR_TRY(weir_captured_result_count(&generator->finalize, self->base.walk, &count));
  weir_tensor_t** made = weir_element_create(count);
  if (!made) return weir_out_of_memory();
  weir_results_t results = {.count = count, .items = made};
  weir_status_t* status = weir_captured_call(&generator->finalize, self->base.walk, cancel,
                                             self->state, self->state_count, &results);
  weir_element_free(made, count);
  return status;
}

static weir_status_t* generator_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                     weir_tensor_t** out, bool* out_is_end) {
  generator_iterator_t* self = (generator_iterator_t*)iterator;
  const weir_data_t* dataset = iterator->dataset;
  if (!self->is_begun) WEIR_TRY(begin(self, cancel));
  weir_results_t results = {.count = dataset->count, .types = dataset->types, .items = out};
  weir_status_t* status = weir_captured_call(&((const generator_t*)dataset)->next, iterator->walk,
                                             cancel, self->state, self->state_count, &results);
  if (weir_status_code(status) != WEIR_OUT_OF_RANGE) return status;
  weir_status_destroy(status);
  *out_is_end = true;
  return end(self, cancel);
}

// What was begun is ended, also where nobody walked to the end; there is nobody to tell of errors.
static void generator_stop(weir_iterator_t* iterator) {
  generator_iterator_t* self = (generator_iterator_t*)iterator;
  weir_status_destroy(end(self, NULL));
  weir_element_free(self->state, self->state_count);
}

static const weir_iterator_vtable_t generator_iterator = {
    .size = sizeof(generator_iterator_t), .next = generator_next, .stop = generator_stop};
static const weir_dataset_vtable_t generator_dataset = {.name = "Generator",
                                                        .size = sizeof(generator_t),
                                                        .init = generator_init,
                                                        .deinit = generator_deinit,
                                                        .cardinality = weir_dataset_unknown_size,
                                                        .iterator = &generator_iterator};

static weir_status_t* generator_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &generator_dataset);
}

const weir_op_module_t weir_ops_data_generator = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "GeneratorDataset",
         .attrs = "init_func: func; next_func: func; finalize_func: func; "
                  "Tinit_func_args: list(type) >= 0; Tnext_func_args: list(type) >= 0; "
                  "Tfinalize_func_args: list(type) >= 0; " WEIR_DATASET_ATTRS,
         .inputs = "init_func_other_args: Tinit_func_args; next_func_other_args: Tnext_func_args; "
                   "finalize_func_other_args: Tfinalize_func_args",
         .outputs = "handle: variant",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "Elements that a function makes of a state that another made",
         .infer_shape = weir_dataset_shape,
         .kernels = WEIR_DATASET_KERNEL(generator_cpu)},
        {0}}};

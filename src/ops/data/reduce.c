// reduce.c — ReduceDataset, DatasetToSingleElement, DatasetCardinality: what a whole dataset comes
// to.
#include "ops/data/background_kernel.h"
#include "ops/data/captured.h"
#include "ops/data/seeds.h"

// Walks over the dataset of input 0 within the step.
static weir_status_t* begin(weir_kernel_ctx_t* ctx, const weir_walk_t* walk,
                            weir_iterator_t** out_iterator) {
  weir_data_t* dataset = NULL;
  WEIR_TRY(weir_dataset_of(weir_kernel_input(ctx, 0), &dataset));
  return walk->seeds ? weir_iterator_create_root(dataset, walk, out_iterator)
                     : weir_iterator_create(dataset, walk, out_iterator);
}

static weir_status_t* check_shapes(const weir_kernel_ctx_t* ctx, weir_tensor_t* const* items) {
  const weir_attr_t* shapes = weir_attrs_list(weir_kernel_attrs(ctx), "output_shapes");
  for (int i = 0; i < ctx->output_count && (size_t)i < shapes->count; ++i) {
    const weir_tensor_t* item = items[i];
    if (weir_tensor_type(item) != ctx->node->output_types[i])
      return WEIR_STATUS(
          INVALID_ARGUMENT, "Data type mismatch at component %d: expected %s but got %s.", i,
          weir_dtype_name(ctx->node->output_types[i]), weir_dtype_name(weir_tensor_type(item)));
    if (weir_shape_accepts(shapes->u.shapes[i], item->rank, item->dims)) continue;
    char text[WEIR_SHAPE_TEXT_SIZE];
    weir_strbuf_t want = {0};
    weir_shape_append(shapes->u.shapes[i], &want);
    weir_status_t* status = WEIR_STATUS(
        INVALID_ARGUMENT, "Incompatible shapes at component %d: expected %s but got %s.", i,
        want.data, weir_tensor_shape_text(item, text));
    weir_strbuf_free(&want);
    return status;
  }
  return NULL;
}

weir_status_t* weir_element_output(weir_kernel_ctx_t* ctx, weir_tensor_t** items, int count) {
  if (count != ctx->output_count)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Number of components does not match: expected %d types but got %d.",
                       ctx->output_count, count);
  WEIR_TRY(check_shapes(ctx, items));
  for (int i = 0; i < count; ++i) weir_kernel_set(ctx, i, items[i]);
  for (int i = 0; i < count; ++i) items[i] = NULL;
  return NULL;
}

// ---- ReduceDataset ----

// Replaces |state| by f(state, element).
static weir_status_t* fold_in(const weir_captured_t* function, const weir_walk_t* walk,
                              weir_tensor_t** args, int state_count, int width,
                              const weir_results_t* results) {
  WEIR_TRY(weir_captured_call(function, walk, walk->cancel, args, state_count + width, results));
  for (int i = 0; i < state_count; ++i) {
    weir_tensor_release(args[i]);
    args[i] = results->items[i];
    results->items[i] = NULL;
  }
  return NULL;
}

// |args| holds the state, then place for an element; |made| has place for a new state.
static weir_status_t* fold_all(weir_kernel_ctx_t* ctx, const weir_captured_t* function,
                               weir_iterator_t* iterator, weir_tensor_t** args,
                               weir_tensor_t** made, int state_count) {
  int width = iterator->dataset->count;
  const weir_walk_t* walk = iterator->walk;
  weir_results_t results = {.count = state_count,
                            .types = weir_attrs_list(weir_kernel_attrs(ctx), "Tstate")->u.types,
                            .items = made};
  for (;;) {
    bool is_end = false;
    WEIR_TRY(weir_iterator_next(iterator, walk->cancel, args + state_count, &is_end));
    if (is_end) return NULL;
    weir_status_t* status = fold_in(function, walk, args, state_count, width, &results);
    weir_element_clear(args + state_count, width);
    bool is_over = weir_status_code(status) == WEIR_OUT_OF_RANGE;  // as a function may end it
    if (is_over) weir_status_destroy(status);
    if (status) return is_over ? NULL : status;
  }
}

static weir_status_t* reduce(weir_kernel_ctx_t* ctx) {
  weir_walk_t walk = weir_step_walk(ctx);
  weir_captured_t function = {.count = 0};
  weir_iterator_t* iterator = NULL;
  weir_tensor_t **args = NULL, **made = NULL;
  int states = weir_captured_count(ctx, "Tstate"), width = 0;
  weir_status_t* status =
      weir_captured_init(ctx, "f", 1 + states, weir_captured_count(ctx, "Targuments"), &function);
  if (!status) status = weir_seed_places_create(&walk.seeds);
  if (!status) status = begin(ctx, &walk, &iterator);
  if (!status) {
    width = iterator->dataset->count;
    args = weir_element_create(states + width);
    made = weir_element_create(states);
    if (!args || !made) status = weir_out_of_memory();
  }
  for (int i = 0; i < states && !status; ++i)
    args[i] = weir_tensor_retain(ctx->inputs[1 + i].tensor);
  if (!status) status = fold_all(ctx, &function, iterator, args, made, states);
  if (!status) status = weir_element_output(ctx, args, states);
  weir_element_free(args, states + width);
  weir_element_free(made, states);
  weir_iterator_destroy(iterator);
  weir_seed_places_destroy(walk.seeds);
  weir_captured_deinit(&function);
  return status;
}

static void reduce_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  weir_background_kernel(ctx, done, reduce);
}

// ---- DatasetToSingleElement ----

static weir_status_t* take_only(weir_kernel_ctx_t* ctx, weir_iterator_t* iterator,
                                weir_tensor_t** element, weir_tensor_t** another) {
  bool is_end = false;
  weir_cancel_t* cancel = ctx->step->cancel;
  WEIR_TRY(weir_iterator_next(iterator, cancel, element, &is_end));
  if (is_end) return WEIR_STATUS(INVALID_ARGUMENT, "Dataset was empty.");
  WEIR_TRY(weir_element_output(ctx, element, iterator->dataset->count));
  WEIR_TRY(weir_iterator_next(iterator, cancel, another, &is_end));
  return is_end ? NULL : WEIR_STATUS(INVALID_ARGUMENT, "Dataset had more than one element.");
}

static weir_status_t* single(weir_kernel_ctx_t* ctx) {
  weir_walk_t walk = weir_step_walk(ctx);
  weir_iterator_t* iterator = NULL;
  WEIR_TRY(begin(ctx, &walk, &iterator));
  int width = iterator->dataset->count;
  weir_tensor_t** element = weir_element_create(2 * width);
  weir_status_t* status =
      element ? take_only(ctx, iterator, element, element + width) : weir_out_of_memory();
  weir_element_free(element, 2 * width);
  weir_iterator_destroy(iterator);
  return status;
}

static void single_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  weir_background_kernel(ctx, done, single);
}

// ---- DatasetCardinality ----

static weir_status_t* cardinality_cpu(weir_kernel_ctx_t* ctx) {
  weir_data_t* dataset = NULL;
  WEIR_TRY(weir_dataset_of(weir_kernel_input(ctx, 0), &dataset));
  return weir_kernel_output_int(ctx, 0, weir_dataset_cardinality(dataset));
}

weir_status_t* weir_element_shape(weir_shape_ctx_t* ctx) {
  const weir_attr_t* shapes = weir_attrs_list(weir_shape_attrs(ctx), "output_shapes");
  if (shapes->count != (size_t)ctx->node->output_count)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "`output_shapes` must be the same length as `output_types` (%zu vs. %d)",
                       shapes->count, ctx->node->output_count);
  for (size_t i = 0; i < shapes->count; ++i)
    WEIR_TRY(weir_shape_set(ctx, (int)i, shapes->u.shapes[i]));
  return NULL;
}

const weir_op_module_t weir_ops_data_reduce = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ReduceDataset",
         .attrs =
             "f: func; Tstate: list(type) >= 1; Targuments: list(type) >= 0; " WEIR_DATASET_SPEC
             "; use_inter_op_parallelism: bool = true; metadata: string = ''",
         .inputs = "input_dataset: variant; initial_state: Tstate; other_arguments: Targuments",
         .outputs = "components: output_types",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY | WEIR_OP_UNBOUNDED,
         .summary = "A state that a function makes of itself and each element",
         .infer_shape = weir_element_shape,
         .kernels = WEIR_CPU_KERNEL(.compute_async = reduce_cpu)},
        {.name = "DatasetToSingleElement",
         .attrs = WEIR_DATASET_ATTRS,
         .inputs = "dataset: variant",
         .outputs = "components: output_types",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY | WEIR_OP_UNBOUNDED,
         .summary = "The one element of a dataset",
         .infer_shape = weir_element_shape,
         .kernels = WEIR_CPU_KERNEL(.compute_async = single_cpu)},
        {.name = "DatasetCardinality",
         .attrs = "cardinality_options: string = ''",
         .inputs = "input_dataset: variant",
         .outputs = "cardinality: int64",
         .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "How many elements there are; -1: infinitely many, -2: not known",
         .infer_shape = weir_shape_fn_scalar,
         .kernels = WEIR_CPU_KERNEL(.compute = cardinality_cpu)},
        {0}}};

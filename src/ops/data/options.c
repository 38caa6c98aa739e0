// options.c — OptionsDataset, ModelDataset, OptimizeDataset, V2, FinalizeDataset, RewriteDataset,
// MaxIntraOpParallelismDataset, PrivateThreadPoolDataset: the same elements. What
// they ask for concerns how TensorFlow makes them; here that is decided without being asked.
#include "ops/data/data_options.h"
#include "ops/data/state.h"

static const weir_iterator_vtable_t same_iterator = {.size = sizeof(weir_iterator_t),
                                                     .start = weir_iterator_start_input,
                                                     .next = weir_iterator_next_input,
                                                     .state = weir_state_inputs,
                                                     .may_resume = true};
// Of those that nothing is known about but their elements.
static const weir_dataset_vtable_t same_dataset = {.name = "Optimize",
                                                   .size = sizeof(weir_data_t),
                                                   .init = weir_dataset_init_like_input,
                                                   .iterator = &same_iterator};
static const weir_dataset_vtable_t model_dataset = {.name = "Model",
                                                    .size = sizeof(weir_data_t),
                                                    .init = weir_dataset_init_like_input,
                                                    .iterator = &same_iterator};

// The node's options, which those of the input come before.
static weir_status_t* options_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  const weir_attr_t* own = weir_attrs_find(weir_kernel_attrs(ctx), "serialized_options");
  if (own)
    WEIR_TRY(weir_data_options_parse(
        weir_attrs_string(weir_kernel_attrs(ctx), "serialized_options"), dataset));
  return weir_dataset_init_like_input(ctx, dataset);
}

static const weir_dataset_vtable_t options_dataset = {.name = "Options",
                                                      .size = sizeof(weir_data_t),
                                                      .init = options_init,
                                                      .get = weir_dataset_get_input,
                                                      .iterator = &same_iterator};

static weir_status_t* same_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &same_dataset);
}

static weir_status_t* model_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &model_dataset);
}

static weir_status_t* options_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &options_dataset);
}

static weir_status_t* parallelism_cpu(weir_kernel_ctx_t* ctx) {
  int64_t limit = 0;
  WEIR_TRY(weir_dataset_int(ctx, 1, "max_intra_op_parallelism", &limit));
  if (limit < 0) return WEIR_STATUS(INVALID_ARGUMENT, "`max_intra_op_parallelism` must be >= 0");
  return weir_dataset_output(ctx, &same_dataset);
}

static weir_status_t* thread_pool_cpu(weir_kernel_ctx_t* ctx) {
  int64_t count = 0;
  WEIR_TRY(weir_dataset_int(ctx, 1, "num_threads", &count));
  if (count < 0) return WEIR_STATUS(INVALID_ARGUMENT, "`num_threads` must be >= 0");
  return weir_dataset_output(ctx, &same_dataset);
}

#define SAME(op, text, attributes, others, shape_fn, kernel)                         \
  {                                                                                  \
    .name = op, .attrs = attributes, .inputs = "input_dataset: variant" others,      \
    .outputs = "handle: variant", .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,  \
    .summary = text, .infer_shape = shape_fn, .kernels = WEIR_DATASET_KERNEL(kernel) \
  }
#define CONFIGS WEIR_DATASET_SPEC "; optimization_configs: list(string) = []"

const weir_op_module_t weir_ops_data_options = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        SAME("OptionsDataset", "The same elements, with options for the pipeline",
             "serialized_options: string; " WEIR_DATASET_ATTRS, "", weir_dataset_shape,
             options_cpu),
        SAME("ModelDataset", "The same elements; tunes the pipeline elsewhere, not here",
             "algorithm: int = 0; cpu_budget: int = 0; ram_budget: int = 0; " WEIR_DATASET_SPEC, "",
             weir_dataset_shape, model_cpu),
        SAME("OptimizeDataset", "The same elements; rewrites the pipeline elsewhere, not here",
             CONFIGS, "; optimizations: string", weir_dataset_shape, same_cpu),
        SAME("OptimizeDatasetV2", "The same elements; rewrites the pipeline elsewhere, not here",
             CONFIGS,
             "; optimizations_enabled: string; optimizations_disabled: string; "
             "optimizations_default: string",
             weir_dataset_shape, same_cpu),
        SAME("FinalizeDataset", "The same elements: marks where a pipeline ends",
             "has_captured_ref: bool = false; " WEIR_DATASET_SPEC, "", weir_dataset_shape,
             same_cpu),
        SAME("RewriteDataset", "The same elements; rewrites the pipeline elsewhere, not here",
             WEIR_DATASET_SPEC, "; rewrite_name: string", weir_dataset_shape_scalars, options_cpu),
        SAME("MaxIntraOpParallelismDataset",
             "The same elements; limits the threads of one kernel elsewhere, not here",
             WEIR_DATASET_SPEC, "; max_intra_op_parallelism: int64", weir_dataset_shape,
             parallelism_cpu),
        SAME("PrivateThreadPoolDataset",
             "The same elements; made by threads of their own elsewhere, not here",
             WEIR_DATASET_SPEC, "; num_threads: int64", weir_dataset_shape, thread_pool_cpu),
        {0}}};

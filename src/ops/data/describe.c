// describe.c — GetOptions, ComputeBatchSize: what is known of a dataset without walking over it.
#include "ops/data/dataset.h"

static weir_status_t* options_cpu(weir_kernel_ctx_t* ctx) {
  weir_data_t* dataset = NULL;
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_dataset_of(weir_kernel_input(ctx, 0), &dataset));
  WEIR_TRY(weir_kernel_output(ctx, 0, 0, NULL, &out));
  return weir_string_set(out->data, dataset->options.data, dataset->options.size);
}

// ---- ComputeBatchSize ----

static bool is_named(const weir_data_t* dataset, const char* const* names) {
  for (; *names; ++names)
    if (strcmp(dataset->vtable->name, *names) == 0) return true;
  return false;
}

// The size of batches that |dataset| has for elements; -1 where TensorFlow does not see it.
static int64_t batch_size_of(const weir_data_t* dataset) {
  static const char* const kKeep[] = {
      "AssertCardinality", "Cache",    "Filter", "Model", "Options",
      "ParseExample",      "Prefetch", "Repeat", "Shard", "ShuffleAndRepeat",
      "Shuffle",           "Skip",     "Take",   NULL};
  static const char* const kJoin[] = {"Concatenate", "Zip", NULL};
  if (dataset->batch_size > 0) return dataset->batch_size;
  if (is_named(dataset, kKeep)) return batch_size_of(dataset->inputs[0]);
  if (!is_named(dataset, kJoin)) return -1;
  int64_t size = batch_size_of(dataset->inputs[0]);
  for (int i = 1; i < dataset->input_count; ++i)
    if (batch_size_of(dataset->inputs[i]) != size) return -1;
  return size;
}

static weir_status_t* batch_size_cpu(weir_kernel_ctx_t* ctx) {
  weir_data_t* dataset = NULL;
  WEIR_TRY(weir_dataset_of(weir_kernel_input(ctx, 0), &dataset));
  return weir_kernel_output_int(ctx, 0, batch_size_of(dataset));
}

const weir_op_module_t weir_ops_data_describe = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){{.name = "GetOptions",
                                    .inputs = "input_dataset: variant",
                                    .outputs = "serialized_options: string",
                                    .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
                                    .summary = "The options of a dataset and of those below it",
                                    .infer_shape = weir_shape_fn_scalar,
                                    .kernels = WEIR_CPU_KERNEL(.compute = options_cpu)},
                                   {.name = "ComputeBatchSize",
                                    .inputs = "input_dataset: variant",
                                    .outputs = "batch_size: int64",
                                    .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
                                    .summary = "The size of a dataset's batches; -1: not known",
                                    .infer_shape = weir_shape_fn_scalar,
                                    .kernels = WEIR_CPU_KERNEL(.compute = batch_size_cpu)},
                                   {0}}};

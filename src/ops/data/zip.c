// zip.c — ZipDataset: elements of several datasets side by side.
#include "ops/data/state.h"

static weir_status_t* gather_components(weir_data_t* dataset, int count) {
  weir_dtype_t* types = weir_alloc_array((size_t)count, sizeof(*types));
  if (!types) return weir_out_of_memory();
  for (int i = 0, at = 0; i < dataset->input_count; ++i)
    for (int k = 0; k < dataset->inputs[i]->count; ++k) types[at++] = dataset->inputs[i]->types[k];
  weir_status_t* status = weir_dataset_set_components(count, types, dataset);
  weir_free(types);
  for (int i = 0, at = 0; i < dataset->input_count; ++i) {
    for (int k = 0; k < dataset->inputs[i]->count && !status; ++k) {
      const weir_shape_t* shape = dataset->inputs[i]->shapes[k];
      status = weir_dataset_set_shape(dataset, at++, shape->rank, shape->dims);
    }
  }
  return status;
}

static weir_status_t* zip_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  int count = 0;
  WEIR_TRY(weir_dataset_set_inputs(ctx, 0, ctx->input_count, dataset));
  for (int i = 0; i < dataset->input_count; ++i) count += dataset->inputs[i]->count;
  return gather_components(dataset, count);
}

static int64_t zip_cardinality(const weir_data_t* dataset) {
  int64_t least = WEIR_CARDINALITY_INFINITE;
  for (int i = 0; i < dataset->input_count; ++i) {
    int64_t n = weir_dataset_cardinality(dataset->inputs[i]);
    if (n == WEIR_CARDINALITY_UNKNOWN) return n;
    if (n >= 0 && (least < 0 || n < least)) least = n;
  }
  return least;
}

static weir_status_t* zip_get(weir_data_t* dataset, const weir_walk_t* walk, int64_t index,
                              weir_tensor_t** out) {
  WEIR_TRY(weir_dataset_check_index(dataset, index));
  for (int i = 0; i < dataset->input_count; ++i) {
    WEIR_TRY(weir_dataset_get(dataset->inputs[i], walk, index, out));
    out += dataset->inputs[i]->count;
  }
  return NULL;
}

static weir_status_t* zip_start(weir_iterator_t* self) {
  for (int i = 0; i < self->dataset->input_count; ++i) WEIR_TRY(weir_iterator_open(self, i));
  return NULL;
}

// After an error the other inputs are advanced all the same, so that all stay in step.
static weir_status_t* zip_next(weir_iterator_t* self, weir_cancel_t* cancel, weir_tensor_t** out,
                               bool* out_is_end) {
  weir_status_t* first = NULL;
  int at = 0;
  for (int i = 0; i < self->dataset->input_count; ++i) {
    bool is_end = false;
    weir_status_t* status = weir_iterator_pull(self, i, cancel, out + at, &is_end);
    if (!first) first = status;
    else weir_status_destroy(status);
    *out_is_end |= is_end;
    if (*out_is_end && !first) break;
    at += self->dataset->inputs[i]->count;
  }
  if (*out_is_end) weir_element_clear(out, self->dataset->count);
  if (*out_is_end) self->is_ended = true;  // also where another input failed
  return first;
}

static const weir_iterator_vtable_t zip_iterator = {.size = sizeof(weir_iterator_t),
                                                    .start = zip_start,
                                                    .next = zip_next,
                                                    .state = weir_state_inputs};
static const weir_dataset_vtable_t zip_dataset = {.name = "Zip",
                                                  .size = sizeof(weir_data_t),
                                                  .init = zip_init,
                                                  .cardinality = zip_cardinality,
                                                  .get = zip_get,
                                                  .iterator = &zip_iterator};

static weir_status_t* zip_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &zip_dataset);
}

const weir_op_module_t weir_ops_data_zip = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ZipDataset",
         .attrs = WEIR_DATASET_SPEC "; N: int >= 1; metadata: string = ''",
         .inputs = "input_datasets: N * variant",
         .outputs = "handle: variant",
         .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "Elements of several datasets side by side, until one ends",
         .infer_shape = weir_dataset_shape,
         .kernels = WEIR_DATASET_KERNEL(zip_cpu)},
        {0}}};

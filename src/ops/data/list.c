// list.c — ListDataset, WindowOp: tensors in a list, so many to an element.
#include "ops/data/state.h"

typedef struct list_t {
  weir_data_t base;
  weir_tensor_t** items;
  int item_count;
} list_t;

typedef struct list_iterator_t {
  weir_iterator_t base;
  int64_t next;
} list_iterator_t;

static weir_status_t* list_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  list_t* self = (list_t*)dataset;
  WEIR_TRY(weir_dataset_set_attrs(ctx, "output_types", "output_shapes", dataset));
  self->items = weir_element_create(ctx->input_count);
  if (!self->items) return weir_out_of_memory();
  self->item_count = ctx->input_count;
  for (int i = 0; i < ctx->input_count; ++i)
    self->items[i] = weir_tensor_retain(ctx->inputs[i].tensor);
  return NULL;
}

static void list_deinit(weir_data_t* dataset) {
  list_t* self = (list_t*)dataset;
  weir_element_free(self->items, self->item_count);
}

static int64_t list_cardinality(const weir_data_t* dataset) {
  return ((const list_t*)dataset)->item_count / dataset->count;
}

static weir_status_t* list_get(weir_data_t* dataset, const weir_walk_t* walk, int64_t index,
                               weir_tensor_t** out) {
  (void)walk;
  WEIR_TRY(weir_dataset_check_index(dataset, index));
  weir_element_share(((list_t*)dataset)->items + index * dataset->count, out, dataset->count);
  return NULL;
}

static weir_status_t* list_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                weir_tensor_t** out, bool* out_is_end) {
  (void)cancel;
  list_iterator_t* self = (list_iterator_t*)iterator;
  const list_t* list = (const list_t*)iterator->dataset;
  int width = iterator->dataset->count;
  *out_is_end = self->next >= list_cardinality(iterator->dataset);
  if (!*out_is_end) weir_element_share(list->items + self->next++ * width, out, width);
  return NULL;
}

static void list_state(weir_iterator_t* iterator, weir_state_t* state) {
  list_iterator_t* self = (list_iterator_t*)iterator;
  weir_state_int(state, "next", &self->next, 0, INT64_MAX);
}

static const weir_iterator_vtable_t list_iterator = {
    .size = sizeof(list_iterator_t), .next = list_next, .state = list_state};
static const weir_dataset_vtable_t list_dataset = {.name = "List",
                                                   .size = sizeof(list_t),
                                                   .init = list_init,
                                                   .deinit = list_deinit,
                                                   .cardinality = list_cardinality,
                                                   .get = list_get,
                                                   .iterator = &list_iterator};

static weir_status_t* list_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &list_dataset);
}

const weir_op_module_t weir_ops_data_list = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ListDataset",
         .attrs = "Tinput_types: list(type) >= 1; " WEIR_DATASET_ATTRS,
         .inputs = "tensors: Tinput_types",
         .outputs = "handle: variant",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "A dataset of given tensors, taken in order, so many to an element",
         .infer_shape = weir_dataset_shape,
         .kernels = WEIR_DATASET_KERNEL(list_cpu)},
        {.name = "WindowOp",
         .attrs = WEIR_DATASET_SPEC "; Tinputs: list(type) >= 1",
         .inputs = "inputs: Tinputs",
         .outputs = "handle: variant",
         .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "A dataset of given tensors, taken in order, so many to an element",
         .infer_shape = weir_dataset_shape,
         .kernels = WEIR_DATASET_KERNEL(list_cpu)},
        {0}}};

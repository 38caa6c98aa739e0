// unique.c — UniqueDataset: elements that were not there before.
#include "base/map.h"
#include "ops/data/state.h"

typedef struct unique_iterator_t {
  weir_iterator_t base;
  weir_map_t seen;  // elements as bytes
} unique_iterator_t;

static weir_status_t* unique_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  WEIR_TRY(weir_dataset_init_like_input(ctx, dataset));
  if (dataset->count != 1)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "UniqueDataset only supports inputs with a single component.");
  weir_dtype_t type = dataset->types[0];
  if (type == WEIR_DTYPE_INT32 || type == WEIR_DTYPE_INT64 || type == WEIR_DTYPE_STRING)
    return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "UniqueDataset only supports inputs with a single `tf.int32`, `tf.int64`, or "
                     "`tf.string` component.");
}

static void append_key(const weir_tensor_t* tensor, weir_strbuf_t* key) {
  weir_strbuf_append(key, tensor->dims, tensor->rank * sizeof(*tensor->dims));
  weir_strbuf_append(key, &tensor->rank, sizeof(tensor->rank));
  if (weir_tensor_type(tensor) != WEIR_DTYPE_STRING) {
    weir_strbuf_append(key, tensor->data, weir_tensor_byte_size(tensor));
    return;
  }
  for (int64_t i = 0; i < tensor->count; ++i) {
    weir_view_t text = weir_string_view(&WEIR_TENSOR_DATA(tensor, weir_string_t)[i]);
    weir_strbuf_append(key, &text.size, sizeof(text.size));
    weir_strbuf_append(key, text.data, text.size);
  }
}

static weir_status_t* note(unique_iterator_t* self, const weir_tensor_t* tensor, bool* out_is_new) {
  weir_strbuf_t key = {0};
  append_key(tensor, &key);
  weir_status_t* status = weir_strbuf_finish(&key);
  *out_is_new = !status && !weir_map_find(&self->seen, weir_strbuf_view(&key));
  if (*out_is_new) status = weir_map_put(&self->seen, weir_strbuf_view(&key), self);
  weir_strbuf_free(&key);
  return status;
}

static weir_status_t* unique_start(weir_iterator_t* iterator) {
  ((unique_iterator_t*)iterator)->seen.owns_keys = true;
  return weir_iterator_open(iterator, 0);
}

static weir_status_t* unique_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                  weir_tensor_t** out, bool* out_is_end) {
  for (;; weir_element_clear(out, 1)) {
    bool is_new = false;
    WEIR_TRY(weir_iterator_pull(iterator, 0, cancel, out, out_is_end));
    if (*out_is_end) return NULL;
    WEIR_TRY(note((unique_iterator_t*)iterator, out[0], &is_new));
    if (is_new) return NULL;
  }
}

static void unique_stop(weir_iterator_t* iterator) {
  weir_map_free(&((unique_iterator_t*)iterator)->seen);
}

static void unique_state(weir_iterator_t* iterator, weir_state_t* state) {
  unique_iterator_t* self = (unique_iterator_t*)iterator;
  size_t count = self->seen.count, at = 0;
  weir_state_count(state, "seen", &count);
  for (size_t i = 0; i < count && weir_state_is_good(state); ++i) {
    const weir_map_entry_t* entry = state->is_restoring ? NULL : weir_map_next(&self->seen, &at);
    weir_view_t key = entry ? entry->key : weir_view("", 0);
    weir_state_bytes(state, "element", &key);
    if (weir_state_is_good(state) && !entry)
      weir_state_fail(state, weir_map_put(&self->seen, key, self));
  }
  weir_state_inputs(iterator, state);
}

static const weir_iterator_vtable_t unique_iterator = {.size = sizeof(unique_iterator_t),
                                                       .start = unique_start,
                                                       .next = unique_next,
                                                       .stop = unique_stop,
                                                       .state = unique_state};
static const weir_dataset_vtable_t unique_dataset = {.name = "Unique",
                                                     .size = sizeof(weir_data_t),
                                                     .init = unique_init,
                                                     .cardinality = weir_dataset_unknown_size,
                                                     .iterator = &unique_iterator};

static weir_status_t* unique_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &unique_dataset);
}

const weir_op_module_t weir_ops_data_unique = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){{.name = "UniqueDataset",
                                    .attrs = WEIR_DATASET_ATTRS,
                                    .inputs = "input_dataset: variant",
                                    .outputs = "handle: variant",
                                    .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
                                    .summary = "Elements that were not there before",
                                    .infer_shape = weir_dataset_shape,
                                    .kernels = WEIR_DATASET_KERNEL(unique_cpu)},
                                   {0}}};

// matching_files.c — MatchingFilesDataset: names of files that match patterns.
#include "ops/data/files.h"

typedef struct matching_iterator_t {
  weir_iterator_t base;
  bool is_begun;
  weir_names_t names;  // of all patterns
  size_t next;
} matching_iterator_t;

static weir_status_t* matching_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  if (weir_kernel_input(ctx, 0)->rank > 1)
    return WEIR_STATUS(INVALID_ARGUMENT, "`patterns` must be a scalar or a vector.");
  return weir_files_init(ctx, (weir_files_t*)dataset);
}

// Those of one pattern are sorted.
static weir_status_t* add_matches(matching_iterator_t* self, const char* pattern) {
  weir_names_t found = {0};
  weir_status_t* status = weir_fs_glob(pattern, &found);
  if (!status) weir_names_sort(&found);
  for (size_t i = 0; i < found.count && !status; ++i)
    status = weir_names_add(&self->names, weir_view_of(found.items[i]));
  weir_names_free(&found);
  return status;
}

static weir_status_t* find(matching_iterator_t* self) {
  const weir_files_t* patterns = (const weir_files_t*)self->base.dataset;
  for (int64_t i = 0; i < patterns->count; ++i) WEIR_TRY(add_matches(self, patterns->names[i]));
  self->is_begun = self->names.count > 0;
  return self->is_begun ? NULL : WEIR_STATUS(NOT_FOUND, "Don't find any matched files");
}

static weir_status_t* matching_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                    weir_tensor_t** out, bool* out_is_end) {
  (void)cancel;
  matching_iterator_t* self = (matching_iterator_t*)iterator;
  if (!self->is_begun) WEIR_TRY(find(self));
  *out_is_end = self->next >= self->names.count;
  if (*out_is_end) return NULL;
  const char* name = self->names.items[self->next++];
  WEIR_TRY(weir_tensor_create(WEIR_DTYPE_STRING, 0, NULL, &out[0]));
  return weir_tensor_set_string(out[0], 0, name, strlen(name));
}

static void matching_stop(weir_iterator_t* iterator) {
  weir_names_free(&((matching_iterator_t*)iterator)->names);
}

// The names as they were found, not as they are found now.
static void matching_state(weir_iterator_t* iterator, weir_state_t* state) {
  matching_iterator_t* self = (matching_iterator_t*)iterator;
  size_t count = self->names.count;
  weir_state_bool(state, "is_begun", &self->is_begun);
  weir_state_size(state, "next", &self->next, SIZE_MAX);
  weir_state_count(state, "names", &count);
  for (size_t i = 0; i < count && weir_state_is_good(state); ++i) {
    weir_view_t name = state->is_restoring ? weir_view("", 0) : weir_view_of(self->names.items[i]);
    weir_state_bytes(state, "name", &name);
    if (state->is_restoring && weir_state_is_good(state))
      weir_state_fail(state, weir_names_add(&self->names, name));
  }
}

static const weir_iterator_vtable_t matching_iterator = {.size = sizeof(matching_iterator_t),
                                                         .next = matching_next,
                                                         .stop = matching_stop,
                                                         .state = matching_state};
static const weir_dataset_vtable_t matching_dataset = {.name = "MatchingFiles",
                                                       .size = sizeof(weir_files_t),
                                                       .init = matching_init,
                                                       .deinit = weir_files_deinit,
                                                       .cardinality = weir_dataset_unknown_size,
                                                       .iterator = &matching_iterator};

static weir_status_t* matching_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &matching_dataset);
}

const weir_op_module_t weir_ops_data_matching_files = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "MatchingFilesDataset",
         .inputs = "patterns: string",
         .outputs = "handle: variant",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "Names of files that match patterns, sorted",
         .infer_shape = weir_dataset_shape,
         .kernels = WEIR_DATASET_KERNEL(matching_cpu)},
        {0}}};

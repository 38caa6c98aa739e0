// import_options.c — TF_ImportGraphDefOptions and results, and the functions that import by them.
#include "tensorflow/import.h"
#include "tensorflow/internal.h"

TF_ImportGraphDefOptions* TF_NewImportGraphDefOptions(void) {
  return weir_calloc(1, sizeof(TF_ImportGraphDefOptions));
}

void TF_DeleteImportGraphDefOptions(TF_ImportGraphDefOptions* opts) {
  if (!opts) return;
  weir_free(opts->mappings);
  weir_free(opts->controls);
  weir_free(opts->outputs);
  weir_free(opts->operations);
  weir_arena_free(&opts->arena);
  weir_free(opts);
}

// These functions have no status: where memory is exhausted there is no way on.
static const char* keep(TF_ImportGraphDefOptions* opts, const char* text) {
  const char* copy = weir_arena_strndup(&opts->arena, text, strlen(text));
  WEIR_CHECK(copy);
  return copy;
}

void TF_ImportGraphDefOptionsSetPrefix(TF_ImportGraphDefOptions* opts, const char* prefix) {
  opts->prefix = keep(opts, prefix);
}
void TF_ImportGraphDefOptionsSetDefaultDevice(TF_ImportGraphDefOptions* opts, const char* device) {
  opts->default_device = keep(opts, device);
}
void TF_ImportGraphDefOptionsSetUniquifyNames(TF_ImportGraphDefOptions* opts,
                                              unsigned char uniquify_names) {
  opts->uniquify_names = uniquify_names != 0;
}
void TF_ImportGraphDefOptionsSetUniquifyPrefix(TF_ImportGraphDefOptions* opts,
                                               unsigned char uniquify_prefix) {
  opts->uniquify_prefix = uniquify_prefix != 0;
}

static void add_mapping(TF_ImportGraphDefOptions* opts, const char* name, int index,
                        weir_edge_t to) {
  WEIR_CHECK(WEIR_GROW(opts->mappings, opts->mapping_capacity, opts->mapping_count + 1));
  opts->mappings[opts->mapping_count++] =
      (tf_input_mapping_t){.name = keep(opts, name), .index = index, .to = to};
}

void TF_ImportGraphDefOptionsAddInputMapping(TF_ImportGraphDefOptions* opts, const char* src_name,
                                             int src_index, TF_Output dst) {
  add_mapping(opts, src_name, src_index, tf_edge(dst));
}

void TF_ImportGraphDefOptionsRemapControlDependency(TF_ImportGraphDefOptions* opts,
                                                    const char* src_name, TF_Operation* dst) {
  add_mapping(opts, src_name, -1, (weir_edge_t){.node = tf_node(dst), .index = 0});
}

void TF_ImportGraphDefOptionsAddControlDependency(TF_ImportGraphDefOptions* opts,
                                                  TF_Operation* oper) {
  WEIR_CHECK(WEIR_GROW(opts->controls, opts->control_capacity, opts->control_count + 1));
  opts->controls[opts->control_count++] = tf_node(oper);
}

void TF_ImportGraphDefOptionsAddReturnOutput(TF_ImportGraphDefOptions* opts, const char* oper_name,
                                             int index) {
  WEIR_CHECK(WEIR_GROW(opts->outputs, opts->output_capacity, opts->output_count + 1));
  opts->outputs[opts->output_count++] =
      (tf_return_t){.name = keep(opts, oper_name), .index = index};
}

int TF_ImportGraphDefOptionsNumReturnOutputs(const TF_ImportGraphDefOptions* opts) {
  return (int)opts->output_count;
}

void TF_ImportGraphDefOptionsAddReturnOperation(TF_ImportGraphDefOptions* opts,
                                                const char* oper_name) {
  WEIR_CHECK(WEIR_GROW(opts->operations, opts->operation_capacity, opts->operation_count + 1));
  opts->operations[opts->operation_count++] = (tf_return_t){.name = keep(opts, oper_name)};
}

int TF_ImportGraphDefOptionsNumReturnOperations(const TF_ImportGraphDefOptions* opts) {
  return (int)opts->operation_count;
}

// ---- results ----

static weir_status_t* create_results(const TF_ImportGraphDefOptions* opts,
                                     TF_ImportGraphDefResults** out_results) {
  TF_ImportGraphDefResults* results = weir_calloc(1, sizeof(*results));
  if (!results) return weir_out_of_memory();
  weir_arena_t* arena = &results->arena;
  results->outputs = weir_arena_array(arena, opts->output_count, sizeof(*results->outputs));
  results->operations =
      weir_arena_array(arena, opts->operation_count, sizeof(*results->operations));
  results->missing_names =
      weir_arena_array(arena, opts->mapping_count, sizeof(*results->missing_names));
  results->missing_indexes =
      weir_arena_array(arena, opts->mapping_count, sizeof(*results->missing_indexes));
  const bool has_all =
      results->outputs && results->operations && results->missing_names && results->missing_indexes;
  if (!has_all) {
    TF_DeleteImportGraphDefResults(results);
    return weir_out_of_memory();
  }
  *out_results = results;
  return NULL;
}

void TF_DeleteImportGraphDefResults(TF_ImportGraphDefResults* results) {
  if (!results) return;
  weir_arena_free(&results->arena);
  weir_free(results);
}

void TF_ImportGraphDefResultsReturnOutputs(TF_ImportGraphDefResults* results, int* num_outputs,
                                           TF_Output** outputs) {
  *num_outputs = results->output_count;
  *outputs = results->outputs;
}

void TF_ImportGraphDefResultsReturnOperations(TF_ImportGraphDefResults* results, int* num_opers,
                                              TF_Operation*** opers) {
  *num_opers = results->operation_count;
  *opers = results->operations;
}

void TF_ImportGraphDefResultsMissingUnusedInputMappings(TF_ImportGraphDefResults* results,
                                                        int* num_missing_unused_input_mappings,
                                                        const char*** src_names,
                                                        int** src_indexes) {
  *num_missing_unused_input_mappings = results->missing_count;
  *src_names = results->missing_names;
  *src_indexes = results->missing_indexes;
}

// ---- importing ----

TF_ImportGraphDefResults* TF_GraphImportGraphDefWithResults(TF_Graph* graph,
                                                            const TF_Buffer* graph_def,
                                                            const TF_ImportGraphDefOptions* options,
                                                            TF_Status* status) {
  TF_ImportGraphDefResults* results = NULL;
  weir_status_t* result = create_results(options, &results);
  if (!result) result = tf_graph_import(graph->graph, tf_buffer_view(graph_def), options, results);
  if (tf_status_take(status, result)) return results;
  TF_DeleteImportGraphDefResults(results);
  return NULL;
}

TF_ImportGraphDefResults* TF_GraphImportGraphDefWithResultsNoSerialization(
    TF_Graph* graph, const TF_Buffer* graph_def, const TF_ImportGraphDefOptions* options,
    TF_Status* status) {
  (void)graph;
  (void)graph_def;
  (void)options;
  tf_status_take(status, WEIR_STATUS(UNIMPLEMENTED,
                                     "the GraphDef is a C++ object of TensorFlow's here: give the "
                                     "serialised one to TF_GraphImportGraphDefWithResults"));
  return NULL;
}

void TF_GraphImportGraphDefWithReturnOutputs(TF_Graph* graph, const TF_Buffer* graph_def,
                                             const TF_ImportGraphDefOptions* options,
                                             TF_Output* return_outputs, int num_return_outputs,
                                             TF_Status* status) {
  if (num_return_outputs != (int)options->output_count) {
    tf_status_take(status,
                   WEIR_STATUS(INVALID_ARGUMENT, "Expected 'num_return_outputs' to be %d, got %d",
                               (int)options->output_count, num_return_outputs));
    return;
  }
  TF_ImportGraphDefResults* results =
      TF_GraphImportGraphDefWithResults(graph, graph_def, options, status);
  if (results && num_return_outputs)
    memcpy(return_outputs, results->outputs, sizeof(TF_Output) * (size_t)num_return_outputs);
  TF_DeleteImportGraphDefResults(results);
}

void TF_GraphImportGraphDef(TF_Graph* graph, const TF_Buffer* graph_def,
                            const TF_ImportGraphDefOptions* options, TF_Status* status) {
  tf_status_take(status, tf_graph_import(graph->graph, tf_buffer_view(graph_def), options, NULL));
}

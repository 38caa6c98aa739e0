// write_meta.h — MetaGraphDef and SavedModel messages of what is saved.
#ifndef WEIR_MODEL_WRITE_META_H_
#define WEIR_MODEL_WRITE_META_H_

#include "api/saver.h"
#include "weir/model.h"

// What a saved graph says of itself. Names are those of nodes of |graph|.
typedef struct weir_meta_spec_t {
  weir_graph_t* graph;
  const weir_model_save_options_t* options;
  const weir_saver_t* saver;              // NULL: no variables
  const weir_variable_info_t* variables;  // edges and nodes of any graph: only names are used
  int variable_count;
  const char* const* asset_files;  // by asset
} weir_meta_spec_t;
// Appends a SavedModel with one graph.
WEIR_MUST_USE weir_status_t* weir_meta_write(const weir_meta_spec_t* spec, weir_strbuf_t* out);

#endif  // WEIR_MODEL_WRITE_META_H_

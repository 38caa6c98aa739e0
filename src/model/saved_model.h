// saved_model.h — saved_model.pb: which of its graphs is meant, by tags.
#ifndef WEIR_MODEL_SAVED_MODEL_H_
#define WEIR_MODEL_SAVED_MODEL_H_

#include "base/string.h"

// The MetaGraphDef of |saved_model| whose tags are those of |tags|, "serve,gpu", in any order.
// DATA_LOSS: the message is malformed. NOT_FOUND names the tags that there are.
WEIR_MUST_USE weir_status_t* weir_saved_model_select(weir_view_t saved_model, const char* tags,
                                                     weir_view_t* out_meta_graph);
// Whether |directory| holds a SavedModel; if so, |out_path| is its saved_model.pb or .pbtxt.
bool weir_saved_model_is(const char* directory, weir_strbuf_t* out_path);

#endif  // WEIR_MODEL_SAVED_MODEL_H_

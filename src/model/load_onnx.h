// load_onnx.h — Models in ONNX's format.
#ifndef WEIR_MODEL_LOAD_ONNX_H_
#define WEIR_MODEL_LOAD_ONNX_H_

#include "model/model.h"

// Gives |model| the graph of the file |path|, and one signature, "serving_default", of its inputs
// and outputs.
WEIR_MUST_USE weir_status_t* weir_model_import_onnx(const char* path, weir_model_t* model);

#endif  // WEIR_MODEL_LOAD_ONNX_H_

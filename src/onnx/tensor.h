// tensor.h — TensorProto messages of ONNX as tensors, external data included.
#ifndef WEIR_ONNX_TENSOR_H_
#define WEIR_ONNX_TENSOR_H_

#include "base/base.h"
#include "base/map.h"
#include "weir/tensor.h"

// Files beside the model that hold data of tensors. Zero-initialise but for |folder|.
typedef struct onnx_files_t {
  const char* folder;   // of the model; NULL: it has none, and external data are refused
  weir_map_t mappings;  // by location; owned
} onnx_files_t;
void onnx_files_free(onnx_files_t* files);

// Creates a tensor from a TensorProto. INVALID_ARGUMENT or DATA_LOSS when its data do not fit its
// shape, or its file is outside of the model's folder; UNIMPLEMENTED naming a type that Weir lacks.
WEIR_MUST_USE weir_status_t* onnx_tensor_parse(weir_view_t message, onnx_files_t* files,
                                               weir_tensor_t** out_tensor);

#endif  // WEIR_ONNX_TENSOR_H_

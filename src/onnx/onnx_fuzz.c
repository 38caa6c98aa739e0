// onnx_fuzz.c — Fuzz target: any bytes as an ONNX model.
#include "base/base.h"
#include "weir/onnx.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weir_onnx_t* model = NULL;
  weir_status_destroy(size ? weir_onnx_import_bytes(data, size, &model) : NULL);
  weir_onnx_destroy(model);
  return 0;
}

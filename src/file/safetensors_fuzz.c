// safetensors_fuzz.c — Fuzz target: any bytes as a safetensors file, all tensors of which are read.
#include "file/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weir_mapping_t* mapping = NULL;
  weir_safetensors_t* file = NULL;
  WEIR_CHECK(!weir_mapping_from_view(weir_view(data, size), &mapping));
  weir_status_destroy(weir_safetensors_parse(mapping, "fuzz.safetensors", &file));
  for (int i = 0; i < weir_safetensors_count(file); ++i) {
    weir_tensor_t* tensor = NULL;
    const char* name = weir_safetensors_at(file, i)->name;
    weir_status_destroy(weir_safetensors_read(file, name, &tensor));
    weir_tensor_release(tensor);
  }
  weir_safetensors_close(file);
  return 0;
}

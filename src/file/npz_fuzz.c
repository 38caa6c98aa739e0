// npz_fuzz.c — Fuzz target: any bytes as an .npz file, all arrays of which are read.
#include "file/npz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weir_file_t* file = NULL;
  weir_npz_t* npz = NULL;
  const weir_npz_options_t options = {.limit = 1 << 20};
  WEIR_CHECK(!weir_file_from_view(weir_view(data, size), "fuzz.npz", &file));
  weir_status_t* status = weir_npz_from_file(file, &options, &npz);
  weir_status_destroy(status);
  for (int i = 0; i < weir_npz_count(npz); ++i) {
    weir_tensor_t* tensor = NULL;
    weir_status_destroy(weir_npz_read(npz, weir_npz_name(npz, i), &tensor));
    weir_tensor_release(tensor);
  }
  weir_npz_close(npz);
  return 0;
}

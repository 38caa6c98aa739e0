// npy_fuzz.c — Fuzz target: any bytes as an .npy file. What is read must be written and read alike.
#include "file/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weir_tensor_t* tensor = NULL;
  weir_status_t* status = weir_npy_parse(weir_view(data, size), &tensor);
  if (!status) {
    weir_tensor_t* again = NULL;
    weir_strbuf_t bytes = {0};
    WEIR_CHECK(!weir_npy_write(tensor, &bytes));
    WEIR_CHECK(!weir_npy_parse(weir_strbuf_view(&bytes), &again));
    WEIR_CHECK(again->dtype == tensor->dtype && weir_tensor_same_shape(again, tensor));
    if (tensor->dtype != WEIR_DTYPE_STRING && tensor->count > 0) {
      WEIR_CHECK(memcmp(again->data, tensor->data, weir_tensor_byte_size(tensor)) == 0);
    }
    weir_tensor_release(again);
    weir_strbuf_free(&bytes);
  }
  weir_status_destroy(status);
  weir_tensor_release(tensor);
  return 0;
}

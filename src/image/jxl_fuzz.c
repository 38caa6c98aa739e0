// jxl_fuzz.c — Fuzz target: any bytes as a JPEG XL image, where libjxl is there.
#include "base/alloc.h"
#include "image/jxl.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const weir_view_t bytes = weir_view(data, size);
  weir_jxl_t jxl;
  weir_status_t* status = weir_jxl_open(bytes, &jxl);
  if (!status && (uint64_t)jxl.width * jxl.height < 1 << 20) {
    uint8_t* pixels = weir_alloc_array((size_t)jxl.width * jxl.height, (size_t)jxl.channels);
    if (pixels) status = weir_jxl_decode(bytes, &jxl, pixels);
    weir_free(pixels);
  }
  weir_status_destroy(status);
  return 0;
}

// cuda_describe.c — Which GPUs there are, and which of the libraries that their kernels want.
#include <dlfcn.h>

#include "device/cuda/cuda.h"

static weir_status_t* append_gpu(int number, weir_strbuf_t* out) {
  cuda_core_t* core = NULL;
  size_t free = 0, total = 0;
  WEIR_TRY(weir_cuda_core_create(number, &core));
  weir_strbuf_printf(out, "cuda:%d  %s, sm_%d, %d multiprocessors, %.1f GiB", number, core->name,
                     core->architecture, core->multiprocessors,
                     (double)core->memory / (double)(1 << 30));
  weir_cuda_core_enter(core);
  if (core->driver->memory_info(&free, &total) == 0)
    weir_strbuf_printf(out, ", %.1f free", (double)free / (double)(1 << 30));
  double busy = weir_cuda_busy(core);
  if (busy >= 0) weir_strbuf_printf(out, ", %.0f %% busy", 100 * busy);
  weir_strbuf_putc(out, '\n');
  weir_cuda_core_release(core);
  return NULL;
}

static void append_libraries(weir_strbuf_t* out) {
  static const char* const names[][2] = {{"libnvrtc.so.13", "libnvrtc.so.12"},
                                         {"libcublasLt.so.13", "libcublasLt.so.12"},
                                         {"libcudnn.so.9", NULL}};
  for (size_t i = 0; i < WEIR_COUNT_OF(names); ++i) {
    void* library = dlopen(names[i][0], RTLD_LAZY | RTLD_LOCAL);
    bool is_second = !library && names[i][1];
    if (is_second) library = dlopen(names[i][1], RTLD_LAZY | RTLD_LOCAL);
    weir_strbuf_printf(out, "        %s%s\n", names[i][is_second && library],
                       library ? "" : " is missing: kernels that need it fail");
    if (library) dlclose(library);
  }
}

void weir_cuda_describe(weir_strbuf_t* out) {
  const cuda_driver_t* driver = NULL;
  int count = 0;
  weir_status_t* status = weir_cuda_driver(&driver);
  if (!status) status = weir_cuda_check(driver, driver->device_count(&count), "counting GPUs");
  for (int i = 0; i < count && !status; ++i) status = append_gpu(i, out);
  if (!status) append_libraries(out);
  if (status) weir_strbuf_printf(out, "cuda    none: %s\n", weir_status_message(status));
  weir_status_destroy(status);
}

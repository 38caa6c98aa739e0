// cuda_busy.c — How busy a GPU is, by NVML: the management library that comes with the driver,
// opened at run time. It samples by itself, so a look costs next to nothing and steps cost nothing
// at all.
#include <pthread.h>

#include "device/cuda/cuda.h"

typedef struct nvml_rates_t {
  unsigned gpu, memory;  // percent of the time of the last sample
} nvml_rates_t;

typedef struct nvml_t {
  int (*init)(void);
  int (*find)(const char* bus, void** out_device);
  int (*rates)(void* device, nvml_rates_t* out_rates);
} nvml_t;

static nvml_t nvml;
static bool is_open;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void open_once(void) {
  static const char* const sonames[] = {"libnvidia-ml.so.1", NULL};
  static const char* const symbols[] = {"nvmlInit_v2", "nvmlDeviceGetHandleByPciBusId_v2",
                                        "nvmlDeviceGetUtilizationRates"};
  weir_status_t* status = weir_cuda_open(sonames, symbols, WEIR_COUNT_OF(symbols), &nvml);
  is_open = !status && nvml.init() == 0;
  weir_status_destroy(status);  // without it nobody is told
}

double weir_cuda_busy(const cuda_core_t* core) {
  void* device = NULL;
  nvml_rates_t rates = {0};
  pthread_once(&once, open_once);
  if (!is_open || nvml.find(core->bus, &device) != 0 || nvml.rates(device, &rates) != 0) return -1;
  return (double)rates.gpu / 100;
}

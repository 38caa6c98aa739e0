// nvml_fake.c — A libnvidia-ml.so.1 for the driver that is a fake: its devices are busy for 37 % of
// the time.
#include <string.h>

#define FAKE __attribute__((visibility("default")))

FAKE int nvmlInit_v2(void);
FAKE int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, void** out_device);
FAKE int nvmlDeviceGetUtilizationRates(void* device, unsigned* out_rates);

int nvmlInit_v2(void) { return 0; }

int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, void** out_device) {
  static char device;
  *out_device = &device;
  return strncmp(bus, "0000:0", 6);
}

int nvmlDeviceGetUtilizationRates(void* device, unsigned* out_rates) {
  out_rates[0] = 37;
  out_rates[1] = 5;
  return device ? 0 : 1;
}

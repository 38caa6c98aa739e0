// device_kernels.c — What passes ask about kernels of a placed node's device.
#include "pass/device_kernels.h"

#include "device/device.h"

const char* weir_pass_kernel_type(const weir_node_t* node) {
  weir_device_name_t name;
  weir_status_t* status = weir_device_name_parse(weir_view_of(node->def.device), &name);
  const weir_device_kind_t* kind =
      status ? NULL : weir_device_kind_find(weir_view_of(*name.type ? name.type : WEIR_DEVICE_CPU));
  weir_status_destroy(status);
  return kind ? kind->kernel_type : NULL;
}

const weir_kernel_def_t* weir_pass_find_kernel(const weir_node_def_t* def,
                                               const char* kernel_type) {
  const weir_kernel_def_t* kernel = weir_op_kernel(def, kernel_type);
  return kernel && strcmp(kernel->device, kernel_type) == 0 ? kernel : NULL;
}

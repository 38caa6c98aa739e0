// rates.h — How fast the devices of a runtime are, measured in some milliseconds.
#ifndef WEIR_RUNTIME_RATES_H_
#define WEIR_RUNTIME_RATES_H_

#include "pass/place.h"
#include "runtime/runtime.h"

// What is known of the devices without measuring: whose memory and whose threads they use.
void weir_rates_init(const weir_runtime_t* runtime, weir_rates_t* out_rates);
// Those of the runtime's CPU.
WEIR_MUST_USE weir_status_t* weir_rates_measure_cpu(weir_runtime_t* runtime,
                                                    const weir_registry_t* registry,
                                                    weir_rates_t* out_rates);
// Fills |out_rates|, one a device: products and memory on the CPU, which all devices' kernels are
// compared with; steps of nodes that do next to nothing, and copies, on each device.
WEIR_MUST_USE weir_status_t* weir_rates_measure(weir_runtime_t* runtime,
                                                const weir_registry_t* registry,
                                                weir_rates_t* out_rates);

#endif  // WEIR_RUNTIME_RATES_H_

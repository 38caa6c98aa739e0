// rates_file.h — Rates as text, so that a placement can be repeated: a line a device,
//
//   GUARD:0 flops=1.2e+10 bytes=9e+09 node_ns=61000 copy_bytes=1e+09 speed=0.25
//
// of numbers that are 0 where they are not given, and speed 1. What follows # does not count. Of a
// cluster, full names stand there, and the numbers of copies are those of transfers between tasks;
// the first task is the one that starts the steps.
#ifndef WEIR_RUNTIME_RATES_FILE_H_
#define WEIR_RUNTIME_RATES_FILE_H_

#include "base/string.h"
#include "pass/place.h"
#include "runtime/runtime.h"

// Reads the rates of each device of |runtime|; others may be in it. INVALID_ARGUMENT quotes what is
// wrong and says in which line; NOT_FOUND names a device that is not in it.
WEIR_MUST_USE weir_status_t* weir_rates_parse(weir_view_t text, const weir_runtime_t* runtime,
                                              weir_rates_t* out_rates);
// The same of a file.
WEIR_MUST_USE weir_status_t* weir_rates_load(const char* path, const weir_runtime_t* runtime,
                                             weir_rates_t* out_rates);
// Reads the CPUs of a cluster, one a task, in |arena|.
WEIR_MUST_USE weir_status_t* weir_cluster_rates_load(const char* path, weir_arena_t* arena,
                                                     weir_placement_t** out_devices,
                                                     int* out_count);
// Appends what weir_rates_parse reads.
void weir_rates_print(const weir_runtime_t* runtime, const weir_rates_t* rates, weir_strbuf_t* out);

#endif  // WEIR_RUNTIME_RATES_FILE_H_

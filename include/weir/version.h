// version.h — Which Weir this is, and what it can do.
#ifndef WEIR_VERSION_H_
#define WEIR_VERSION_H_

#include <stddef.h>
#include <stdint.h>

#include "weir/status.h"

#ifdef __cplusplus
extern "C" {
#endif

WEIR_API const char* weir_version(void);  // "0.1.0"; static

// The ops of this build, one a line: name, types, devices, gradient; as text for people or, with
// |json|, as JSON objects. NOT_FOUND for an unknown |name|; NULL: all. |out_text| is the caller's:
// weir_buffer_free it.
WEIR_API WEIR_MUST_USE weir_status_t* weir_describe_ops(const char* name, bool json,
                                                        char** out_text);
// The devices of this machine, one a line, and what GPUs lack; |out_text| likewise.
WEIR_API WEIR_MUST_USE weir_status_t* weir_describe_devices(char** out_text);
// All ops as a serialised OpList.
WEIR_API WEIR_MUST_USE weir_status_t* weir_op_list(char** out_data, size_t* out_size);
// Tensor memory in use at its highest, in bytes, since the start or the last reset.
WEIR_API int64_t weir_peak_bytes(void);
WEIR_API void weir_reset_peak_bytes(void);

#ifdef __cplusplus
}
#endif
#endif  // WEIR_VERSION_H_

// safetensors.h — Safetensors files from inside. weir/safetensors.h says what callers see.
#ifndef WEIR_FILE_SAFETENSORS_H_
#define WEIR_FILE_SAFETENSORS_H_

#include "file/mapping.h"
#include "weir/safetensors.h"

// As weir_safetensors_open, of a file that is in memory. Consumes |take_mapping|, also when this
// fails. |name| is the file's, for messages.
WEIR_MUST_USE weir_status_t* weir_safetensors_parse(weir_mapping_t* take_mapping, const char* name,
                                                    weir_safetensors_t** out_file);

#endif  // WEIR_FILE_SAFETENSORS_H_

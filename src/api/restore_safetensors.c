// restore_safetensors.c — The variables of a session from a safetensors file.
#include "api/checkpoint.h"
#include "weir/argument.h"
#include "weir/safetensors.h"

static weir_status_t* read_tensor(void* source, const char* name, weir_tensor_t** out_value) {
  return weir_safetensors_read(source, name, out_value);
}

weir_status_t* weir_safetensors_restore(weir_session_t* session, const char* path) {
  WEIR_REQUIRE_ARG(session);
  WEIR_REQUIRE_ARG(path);
  weir_safetensors_t* file = NULL;
  WEIR_TRY(weir_safetensors_open(path, &file));
  weir_status_t* status = weir_checkpoint_assign_all(session, read_tensor, file);
  weir_safetensors_close(file);
  return status;
}

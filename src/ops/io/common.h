// common.h — What the file ops share: string inputs as paths, and checks in TensorFlow's words.
#ifndef WEIR_OPS_IO_COMMON_H_
#define WEIR_OPS_IO_COMMON_H_

#include "base/alloc.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

static inline weir_view_t io_string(const weir_tensor_t* tensor, int64_t i) {
  size_t size = 0;
  const char* data = weir_tensor_string(tensor, i, &size);
  return weir_view(data, size);
}

// Copies string |i| of |tensor| as a terminated path, to be freed by weir_free.
static inline weir_status_t* io_path(const weir_tensor_t* tensor, int64_t i, char** out_path) {
  weir_view_t text = io_string(tensor, i);
  if (text.size > 0 && memchr(text.data, '\0', text.size)) {
    return WEIR_STATUS(INVALID_ARGUMENT, "path '%.*s' holds a zero byte", WEIR_VIEW_ARG(text));
  }
  *out_path = weir_strndup(text.data ? text.data : "", text.size);
  return *out_path ? NULL : weir_out_of_memory();
}

// Sets output |i| to a scalar string.
static inline weir_status_t* io_output_string(weir_kernel_ctx_t* ctx, int i, weir_view_t text) {
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, i, 0, NULL, &out));
  return weir_tensor_set_string(out, 0, text.data, text.size);
}

#endif  // WEIR_OPS_IO_COMMON_H_

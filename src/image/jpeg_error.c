// jpeg_error.c — How libjpeg's errors become statuses.
#include "image/jpeg_error.h"

#include <jerror.h>

#include "base/alloc.h"

void weir_jpeg_error_raise(j_common_ptr info, weir_status_t* take_status) {
  weir_jpeg_error_t* error = (weir_jpeg_error_t*)info->err;
  error->status = take_status;
  longjmp(error->jump, 1);
}

static void on_error(j_common_ptr info) {
  const weir_jpeg_error_t* error = (const weir_jpeg_error_t*)info->err;
  char message[JMSG_LENGTH_MAX];
  if (info->err->msg_code == JERR_OUT_OF_MEMORY) weir_jpeg_error_raise(info, weir_out_of_memory());
  info->err->format_message(info, message);
  weir_jpeg_error_raise(
      info, weir_status_create(error->code, __FILE__, __LINE__, "%s: %s", error->prefix, message));
}

static void on_message(j_common_ptr info) { (void)info; }

struct jpeg_error_mgr* weir_jpeg_error_init(weir_jpeg_error_t* error, weir_code_t code,
                                            const char* prefix) {
  jpeg_std_error(&error->base);
  error->base.error_exit = on_error;
  error->base.output_message = on_message;
  error->code = code;
  error->prefix = prefix;
  return &error->base;
}

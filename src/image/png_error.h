// png_error.h — How libpng's errors become statuses, and where its memory comes from. Private to
// image/png*.c.
//
// libpng leaves by longjmp: code between the setjmp and it must hold nothing but what its decoder
// or encoder owns.
#ifndef WEIR_IMAGE_PNG_ERROR_H_
#define WEIR_IMAGE_PNG_ERROR_H_

#include <png.h>

#include "base/base.h"

typedef struct weir_png_error_t {
  weir_code_t code;       // of what libpng complains about
  const char* prefix;     // of its messages
  weir_status_t* status;  // what went wrong; owned by who catches the jump
  bool is_out_of_memory;
} weir_png_error_t;

// Create what decodes or encodes; |error| is borrowed until it is destroyed. NULL: out of memory.
png_structp weir_png_create_reader(weir_png_error_t* error);
png_structp weir_png_create_writer(weir_png_error_t* error);

#endif  // WEIR_IMAGE_PNG_ERROR_H_

// jpeg_error.h — How libjpeg's errors become statuses. Private to image/jpeg*.c.
//
// libjpeg leaves by longjmp: code between the setjmp and it must hold nothing but what its decoder
// or encoder owns.
#ifndef WEIR_IMAGE_JPEG_ERROR_H_
#define WEIR_IMAGE_JPEG_ERROR_H_

#include <setjmp.h>
// clang-format off
#include <stdio.h>  // jpeglib.h needs it before
#include <jpeglib.h>
// clang-format on

#include "base/base.h"

typedef struct weir_jpeg_error_t {
  struct jpeg_error_mgr base;  // what libjpeg sees
  jmp_buf jump;                // set by the caller before every call of libjpeg
  weir_status_t* status;       // what went wrong; owned by who catches the jump
  weir_code_t code;            // of what libjpeg complains about
  const char* prefix;          // of its messages
} weir_jpeg_error_t;

// To be the |err| of a decoder or encoder. Warnings are counted, nothing is printed.
struct jpeg_error_mgr* weir_jpeg_error_init(weir_jpeg_error_t* error, weir_code_t code,
                                            const char* prefix);
// Jumps to whoever waits for errors, with |take_status|.
_Noreturn void weir_jpeg_error_raise(j_common_ptr info, weir_status_t* take_status);

#endif  // WEIR_IMAGE_JPEG_ERROR_H_

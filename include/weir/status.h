// status.h — How every fallible function of Weir reports: a status, NULL when all went well.
//
// Ownership rule of the whole API, stated once: functions named create, copy or load hand the
// caller one reference or the only owner; get, find and at lend, valid as long as the parent;
// parameters named take_x (or documented "consumes |x|") move ownership into the callee; everything
// else is borrowed for the call. release and destroy accept NULL.
#ifndef WEIR_STATUS_H_
#define WEIR_STATUS_H_

#include <stdbool.h>

#include "weir/export.h"

#ifdef __cplusplus
extern "C" {
#endif

// The canonical codes, numbered as TensorFlow and gRPC number them.
typedef enum weir_code_t {
  WEIR_OK = 0,
  WEIR_CANCELLED = 1,
  WEIR_UNKNOWN = 2,
  WEIR_INVALID_ARGUMENT = 3,
  WEIR_DEADLINE_EXCEEDED = 4,
  WEIR_NOT_FOUND = 5,
  WEIR_ALREADY_EXISTS = 6,
  WEIR_PERMISSION_DENIED = 7,
  WEIR_RESOURCE_EXHAUSTED = 8,
  WEIR_FAILED_PRECONDITION = 9,
  WEIR_ABORTED = 10,
  WEIR_OUT_OF_RANGE = 11,
  WEIR_UNIMPLEMENTED = 12,
  WEIR_INTERNAL = 13,
  WEIR_UNAVAILABLE = 14,
  WEIR_DATA_LOSS = 15,
  WEIR_UNAUTHENTICATED = 16,
} weir_code_t;

// An error: immutable after create, except that its owner may annotate it. NULL is success.
typedef struct weir_status_t weir_status_t;

// Returns a new status with a printf-formatted message. Never returns NULL for code != WEIR_OK:
// when memory is exhausted it returns a static RESOURCE_EXHAUSTED status. Prefer the WEIR_STATUS
// macro, which records file and line.
WEIR_API WEIR_MUST_USE weir_status_t* weir_status_create(weir_code_t code, const char* file,
                                                         int line, const char* format, ...)
    WEIR_PRINTF(4, 5);
#define WEIR_STATUS(code, ...) weir_status_create(WEIR_##code, __FILE__, __LINE__, __VA_ARGS__)

// Returns |take_status| with "<text>" put before its message ("node 'x': " + message). Consumes
// |take_status|; NULL stays NULL.
WEIR_API WEIR_MUST_USE weir_status_t* weir_status_prefix(weir_status_t* take_status,
                                                         const char* format, ...) WEIR_PRINTF(2, 3);

// Returns a copy the caller owns; NULL for NULL.
WEIR_API WEIR_MUST_USE weir_status_t* weir_status_copy(const weir_status_t* status);

WEIR_API weir_code_t weir_status_code(const weir_status_t* status);     // WEIR_OK for NULL
WEIR_API const char* weir_status_message(const weir_status_t* status);  // "" for NULL; borrowed
WEIR_API const char* weir_code_name(weir_code_t code);  // "INVALID_ARGUMENT"; static
WEIR_API void weir_status_destroy(weir_status_t* status);

// Prints "CODE: message (file:line)" to stderr, destroys |take_status|, and returns whether there
// was an error.
WEIR_API bool weir_status_report(weir_status_t* take_status);

// Returns the error of |expr| from the calling function. Only where nothing is held.
#define WEIR_TRY(expr)                           \
  do {                                           \
    weir_status_t* weir_try_status = (expr);     \
    if (weir_try_status) return weir_try_status; \
  } while (0)

#ifdef __cplusplus
}
#endif
#endif  // WEIR_STATUS_H_

// argument.h — Asking for the arguments of a function: for those who write functions that others
// call.
#ifndef WEIR_ARGUMENT_H_
#define WEIR_ARGUMENT_H_

#include "weir/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Returns INVALID_ARGUMENT from the calling function, naming it and |argument|, when that is NULL.
#define WEIR_REQUIRE_ARG(argument)                                                                \
  do {                                                                                            \
    if (!(argument)) return WEIR_STATUS(INVALID_ARGUMENT, "%s: %s is NULL", __func__, #argument); \
  } while (0)
// The same for a number of things that is negative.
#define WEIR_REQUIRE_COUNT(count)                                                      \
  do {                                                                                 \
    if ((count) < 0)                                                                   \
      return WEIR_STATUS(INVALID_ARGUMENT, "%s: %s is %d", __func__, #count, (count)); \
  } while (0)
// As WEIR_REQUIRE_ARG where no status can be returned: says so on stderr, with the calls that led
// there, and aborts.
#define WEIR_ASSERT_ARG(argument) ((argument) ? (void)0 : weir_abort_null(__func__, #argument))
WEIR_API void weir_abort_null(const char* function, const char* argument) __attribute__((noreturn));

#ifdef __cplusplus
}
#endif
#endif  // WEIR_ARGUMENT_H_

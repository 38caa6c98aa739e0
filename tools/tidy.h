// tidy.h — What clang-tidy cannot see across files: a status that is made is not NULL.
// tools/check.sh includes it in every file; without it, each out parameter that is set on success
// only would seem to be read when it is not.
#include "base/alloc.h"
#include "weir/status.h"

static inline weir_status_t* tidy_never_null(weir_status_t* status) {
  __builtin_assume(status != NULL);
  return status;
}
#undef WEIR_STATUS
#define WEIR_STATUS(code, ...) \
  tidy_never_null(weir_status_create(WEIR_##code, __FILE__, __LINE__, __VA_ARGS__))
#define weir_out_of_memory() tidy_never_null(weir_out_of_memory())

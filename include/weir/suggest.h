// suggest.h — What somebody who misspelt a name may have meant.
#ifndef WEIR_SUGGEST_H_
#define WEIR_SUGGEST_H_

#include <stddef.h>

#include "weir/export.h"

#ifdef __cplusplus
extern "C" {
#endif

// Of |names| the one that is most like |wanted|, a few letters wrong, missing, or in the other
// order; NULL when none is, or there is nothing to compare. Borrowed. Thread-safe.
WEIR_API const char* weir_suggest(const char* wanted, const char* const* names, size_t count);

#ifdef __cplusplus
}
#endif
#endif  // WEIR_SUGGEST_H_

// cmocka.h — cmocka with what it needs before it, so that includes can be sorted.
#ifndef WEIR_TESTING_CMOCKA_H_
#define WEIR_TESTING_CMOCKA_H_

// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

// Loops over many inputs that are alike take one in so many: more than one with ThreadSanitizer,
// where each takes long.
#ifndef WEIR_TEST_STRIDE
#define WEIR_TEST_STRIDE 1
#endif

#include "testing/limit.h"

#endif  // WEIR_TESTING_CMOCKA_H_

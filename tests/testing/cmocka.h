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

#endif  // WEIR_TESTING_CMOCKA_H_

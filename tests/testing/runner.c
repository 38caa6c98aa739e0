// runner.c — Runs unit tests by name, out of all that are linked into one program; see
// tests/CMakeLists.txt.
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define WEIR_TEST(name) int name##_main(void);
#include "tests.inc"
#undef WEIR_TEST

typedef struct {
  const char* name;
  int (*main)(void);
} unit_test_t;

static const unit_test_t tests[] = {
#define WEIR_TEST(name) {#name, name##_main},
#include "tests.inc"
#undef WEIR_TEST
};

int main(int count, char** names) {
  int failures = 0;
  for (int i = 1; i < count; ++i) {
    const unit_test_t* test = NULL;
    for (size_t k = 0; k < sizeof tests / sizeof tests[0]; ++k) {
      if (strcmp(tests[k].name, names[i]) == 0) test = &tests[k];
    }
    if (!test) {
      fprintf(stderr, "no unit test is named %s\n", names[i]);
      return 2;
    }
    failures += test->main() != 0;
  }
  return failures > 0;
}

// siphash_test.c — The vectors of the paper's appendix: bytes 0, 1, 2, … under the key 0 … 15.
#include "base/siphash.h"

#include "testing/cmocka.h"

static void test_vectors(void** state) {
  (void)state;
  const uint64_t key[2] = {0x0706050403020100u, 0x0f0e0d0c0b0a0908u};
  uint8_t data[16];
  for (size_t i = 0; i < sizeof(data); ++i) data[i] = (uint8_t)i;
  assert_true(weir_siphash(key, data, 15) == 0xa129ca6149be45e5u);
  assert_true(weir_siphash(key, data, 0) == 0x726fdb47dd0e0e31u);
  assert_true(weir_siphash(key, data, 8) == 0x93f5f5799a932462u);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_vectors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

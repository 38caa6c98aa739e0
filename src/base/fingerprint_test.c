// fingerprint_test.c — Known answers of the fingerprint at the edges of each range of sizes.
#include "base/fingerprint.h"

#include "testing/cmocka.h"

static void test_known_answers(void** state) {
  (void)state;
  static const struct {
    size_t size;
    uint64_t fingerprint;
  } answers[] = {
      {0, UINT64_C(0x9ae16a3b2f90404f)},   {1, UINT64_C(0x4271b80e2915c76a)},
      {3, UINT64_C(0x373a2b2a12e0c581)},   {4, UINT64_C(0xcc1e778137ae6d69)},
      {7, UINT64_C(0x960838fbc6d9c975)},   {8, UINT64_C(0x7d507025ed4eecfd)},
      {16, UINT64_C(0xd836480326a974d6)},  {17, UINT64_C(0x5cded6cb65c9dac6)},
      {32, UINT64_C(0xa03300e1b2be6da7)},  {33, UINT64_C(0x839154ca67815696)},
      {64, UINT64_C(0x000f03eac52d3535)},  {65, UINT64_C(0xfb360c5023f60db6)},
      {127, UINT64_C(0xd70e348fcbf64d04)}, {128, UINT64_C(0x33ef435f17af1739)},
      {129, UINT64_C(0xc30a81b637d2e4dd)}, {192, UINT64_C(0xe277d6ad7892dd23)},
      {300, UINT64_C(0x70118fe7a7f708b5)},
  };
  unsigned char bytes[300];
  for (unsigned i = 0; i < sizeof(bytes); ++i) bytes[i] = (unsigned char)(i * 37 + 11);
  for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); ++i) {
    assert_true(weir_fingerprint64(bytes, answers[i].size) == answers[i].fingerprint);
  }
  assert_true(weir_fingerprint64(NULL, 0) == answers[0].fingerprint);
}

static void test_every_byte_counts(void** state) {
  (void)state;
  unsigned char bytes[260] = {0};
  for (size_t size = 1; size <= sizeof(bytes); ++size) {
    uint64_t before = weir_fingerprint64(bytes, size);
    for (size_t i = 0; i < size; ++i) {
      bytes[i] ^= 1;
      assert_true(weir_fingerprint64(bytes, size) != before);
      bytes[i] ^= 1;
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_known_answers),
                                     cmocka_unit_test(test_every_byte_counts)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

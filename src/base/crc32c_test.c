// crc32c_test.c — Known answers of CRC-32C, extension at any split, masks, and the tables against
// the CPU.

#include "base/crc32c.h"

#include "testing/cmocka.h"

uint32_t weir_crc32c_extend_by_tables(uint32_t crc, const void* data, size_t size);

static void test_known_answers(void** state) {
  (void)state;
  unsigned char bytes[32] = {0};
  assert_int_equal(weir_crc32c("123456789", 9), 0xe3069283);
  assert_int_equal(weir_crc32c(bytes, 32), 0x8a9136aa);
  memset(bytes, 0xff, 32);
  assert_int_equal(weir_crc32c(bytes, 32), 0x62a8ab43);
  for (unsigned i = 0; i < 32; ++i) bytes[i] = (unsigned char)i;
  assert_int_equal(weir_crc32c(bytes, 32), 0x46dd794e);
  assert_int_equal(weir_crc32c(NULL, 0), 0);
}

static void test_extend_and_tables(void** state) {
  (void)state;
  unsigned char bytes[200];
  for (unsigned i = 0; i < sizeof(bytes); ++i) bytes[i] = (unsigned char)(i * 37 + 11);
  uint32_t whole = weir_crc32c(bytes, sizeof(bytes));
  for (size_t split = 0; split <= sizeof(bytes); ++split) {
    uint32_t crc = weir_crc32c(bytes, split);
    assert_int_equal(weir_crc32c_extend(crc, bytes + split, sizeof(bytes) - split), whole);
    assert_int_equal(weir_crc32c_extend_by_tables(0, bytes, split), crc);
    assert_int_equal(weir_crc32c_extend_by_tables(crc, bytes + split, sizeof(bytes) - split),
                     whole);
  }
}

static void test_mask(void** state) {
  (void)state;
  uint32_t crc = weir_crc32c("foo", 3);
  assert_int_not_equal(weir_crc32c_mask(crc), crc);
  assert_int_equal(weir_crc32c_unmask(weir_crc32c_mask(crc)), crc);
  assert_int_equal(weir_crc32c_unmask(weir_crc32c_unmask(weir_crc32c_mask(weir_crc32c_mask(crc)))),
                   crc);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_known_answers),
                                     cmocka_unit_test(test_extend_and_tables),
                                     cmocka_unit_test(test_mask)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

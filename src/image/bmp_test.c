// bmp_test.c — Tests of BMP files: rows in either order, channels, and headers that lie.
#include "image/bmp.h"

#include "testing/cmocka.h"

enum { kHead = 54, kSize = kHead + 2 * 8 };

// Two rows of two pixels, each row filled up to 8 bytes.
static void make_file(int32_t width, int32_t height, uint8_t bits, uint8_t* file) {
  memset(file, 0, kSize);
  memcpy(file, "BM", 2);
  file[10] = kHead;
  memcpy(file + 18, &width, 4);
  memcpy(file + 22, &height, 4);
  file[28] = bits;
  for (int i = kHead; i < kSize; ++i) file[i] = (uint8_t)i;
}

static void test_rows(void** state) {
  (void)state;
  uint8_t file[kSize], pixels[16];
  weir_bmp_t bmp;
  make_file(2, 2, 24, file);
  assert_null(weir_bmp_open(weir_view(file, kSize), &bmp));
  assert_true(bmp.width == 2 && bmp.height == 2 && bmp.channels == 3);
  weir_bmp_decode(&bmp, 4, pixels);
  const uint8_t bottom_up[16] = {64, 63, 62, 255, 67, 66, 65, 255,
                                 56, 55, 54, 255, 59, 58, 57, 255};
  assert_memory_equal(pixels, bottom_up, 16);
  make_file(2, -2, 24, file);
  assert_null(weir_bmp_open(weir_view(file, kSize), &bmp));
  weir_bmp_decode(&bmp, 3, pixels);
  const uint8_t top_down[6] = {56, 55, 54, 59, 58, 57};
  assert_memory_equal(pixels, top_down, 6);
}

static void check_bad(const uint8_t* file, size_t size) {
  weir_bmp_t bmp;
  weir_status_t* status = weir_bmp_open(weir_view(file, size), &bmp);
  assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
  weir_status_destroy(status);
}

static void test_lies(void** state) {
  (void)state;
  uint8_t file[kSize];
  const int32_t sizes[][2] = {{0, 2},         {2, 0}, {-2, 2},       {INT32_MAX, INT32_MAX},
                              {2, INT32_MIN}, {2, 3}, {40000, 40000}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    make_file(sizes[i][0], sizes[i][1], 24, file);
    check_bad(file, kSize);
  }
  make_file(2, 2, 16, file);
  check_bad(file, kSize);
  make_file(2, 2, 24, file);
  for (size_t size = 0; size < kSize; ++size) check_bad(file, size);
  file[13] = 0x80;  // a place before the file
  check_bad(file, kSize);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_lies)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

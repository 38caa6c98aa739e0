// png_test.c — Tests of the PNG codec: what is encoded comes back, damage is an error.
#include "image/png.h"

#include "base/alloc.h"
#include "testing/cmocka.h"

enum { kWidth = 23, kHeight = 17, kMost = kWidth * kHeight * 4 };

static void make_file(int channels, int bits, int level, uint16_t* pixels, weir_strbuf_t* out) {
  uint32_t seed = 7;
  for (int i = 0; i < kMost; ++i) {
    seed = seed * 1664525u + 1013904223u;
    pixels[i] = i % 5 ? (uint16_t)(seed >> 16) : (uint16_t)(3 * i);
  }
  const weir_png_source_t source = {
      .pixels = pixels, .width = kWidth, .height = kHeight, .channels = channels, .bits = bits};
  assert_null(weir_png_encode(&source, level, out));
}

static void test_round_trip(void** state) {
  (void)state;
  uint16_t pixels[kMost], got[kMost];
  for (int channels = 1; channels <= 4; ++channels) {
    for (int bits = 8; bits <= 16; bits += 8) {
      for (int level = -1; level < 10; level += 5) {
        weir_strbuf_t file = {0};
        weir_png_t* png = NULL;
        uint32_t width = 0, height = 0;
        int file_channels = 0;
        make_file(channels, bits, level, pixels, &file);
        assert_null(weir_png_open(weir_strbuf_view(&file), &png));
        weir_png_size(png, &width, &height, &file_channels);
        assert_int_equal(width, kWidth);
        assert_int_equal(height, kHeight);
        assert_int_equal(file_channels, channels);
        assert_null(weir_png_decode(png, channels, bits, got));
        assert_memory_equal(got, pixels, (size_t)(kWidth * kHeight * channels * bits / 8));
        weir_png_destroy(png);
        weir_strbuf_free(&file);
      }
    }
  }
}

static weir_status_t* decode(weir_view_t file, uint16_t* pixels) {
  weir_png_t* png = NULL;
  uint32_t width = 0, height = 0;
  int channels = 0;
  WEIR_TRY(weir_png_open(file, &png));
  weir_png_size(png, &width, &height, &channels);
  assert_true(width == kWidth && height == kHeight);  // a checksum guards them
  weir_status_t* status = weir_png_decode(png, 4, 16, pixels);
  weir_png_destroy(png);
  return status;
}

static void test_damage(void** state) {
  (void)state;
  uint16_t pixels[kMost];
  weir_strbuf_t file = {0};
  make_file(3, 8, 6, pixels, &file);
  for (size_t i = 0; i < file.size; ++i) {
    weir_status_t* status = decode(weir_view(file.data, i), pixels);
    assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
    weir_status_destroy(status);
    file.data[i] ^= 0x11;
    status = decode(weir_strbuf_view(&file), pixels);
    assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
    weir_status_destroy(status);
    file.data[i] ^= 0x11;
  }
  assert_null(decode(weir_strbuf_view(&file), pixels));
  weir_strbuf_free(&file);
}

// A file of 45 bytes with a part that says that it has 2 GB: refused before memory is asked for,
// but that of the status.
static void test_a_part_longer_than_the_file(void** state) {
  (void)state;
  static const uint8_t file[] =
      "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\5\0\0\0\4\4\3\0\0\0\xb4\x1d\xe8\x73"
      "\x7f\xff\xff\xffsPLTabcd";
  weir_png_t* png = NULL;
  weir_alloc_fail_at(2, true);
  weir_status_t* status = weir_png_open(weir_view(file, sizeof file - 1), &png);
  weir_alloc_fail_at(0, false);
  assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
  weir_status_destroy(status);
}

static void test_no_pixels(void** state) {
  (void)state;
  weir_strbuf_t file = {0};
  const weir_png_source_t source = {
      .pixels = "", .width = 0, .height = 3, .channels = 1, .bits = 8};
  weir_status_t* status = weir_png_encode(&source, 6, &file);
  assert_int_equal(weir_status_code(status), WEIR_INTERNAL);
  weir_status_destroy(status);
  weir_strbuf_free(&file);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_round_trip), cmocka_unit_test(test_damage),
      cmocka_unit_test(test_a_part_longer_than_the_file), cmocka_unit_test(test_no_pixels)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

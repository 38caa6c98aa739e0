// jpeg_test.c — Tests of the JPEG codec: what is encoded comes back nearly alike, damage is an
// error.
#include "image/jpeg.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "testing/cmocka.h"

enum { kWidth = 37, kHeight = 29 };

static void make_image(int channels, uint8_t* pixels) {
  for (int i = 0; i < kWidth * kHeight * channels; ++i) {
    const int x = i / channels % kWidth, y = i / channels / kWidth;
    pixels[i] = (uint8_t)(40 + 3 * x + 2 * y + 10 * (i % channels));
  }
}

static weir_status_t* decode(weir_view_t file, const weir_jpeg_options_t* options, int64_t* width,
                             int64_t* height, uint8_t* pixels) {
  weir_jpeg_t* jpeg = NULL;
  int channels = 0;
  WEIR_TRY(weir_jpeg_open(file, options, &jpeg));
  weir_jpeg_size(jpeg, width, height, &channels);
  weir_status_t* status = weir_jpeg_decode(jpeg, pixels);
  weir_jpeg_destroy(jpeg);
  return status;
}

static void encode(int channels, bool is_progressive, bool is_optimized, weir_strbuf_t* out) {
  uint8_t pixels[kWidth * kHeight * 3];
  make_image(channels, pixels);
  const weir_jpeg_source_t source = {
      .pixels = pixels, .width = kWidth, .height = kHeight, .channels = channels};
  const weir_jpeg_params_t params = {.quality = 95,
                                     .is_progressive = is_progressive,
                                     .is_optimized = is_optimized,
                                     .has_small_chroma = true,
                                     .density_unit = 1,
                                     .x_density = 300,
                                     .y_density = 300};
  assert_null(weir_jpeg_encode(&source, &params, out));
}

static void test_round_trip(void** state) {
  (void)state;
  uint8_t wanted[kWidth * kHeight * 3], got[kWidth * kHeight * 3];
  for (int kind = 0; kind < 12; ++kind) {
    const int channels = kind % 2 ? 3 : 1;
    const weir_jpeg_options_t options = {
        .ratio = 1, .is_fancy = true, .is_fast = kind >= 6, .acceptable_fraction = 1};
    weir_strbuf_t file = {0};
    int64_t width = 0, height = 0;
    encode(channels, kind % 3 == 0, kind % 3 == 1, &file);
    assert_null(decode(weir_strbuf_view(&file), &options, &width, &height, got));
    assert_int_equal(width, kWidth);
    assert_int_equal(height, kHeight);
    make_image(channels, wanted);
    for (int i = 0; i < kWidth * kHeight * channels; ++i) assert_true(abs(got[i] - wanted[i]) < 12);
    weir_strbuf_free(&file);
  }
}

static void test_smaller(void** state) {
  (void)state;
  uint8_t pixels[kWidth * kHeight * 3];
  weir_strbuf_t file = {0};
  encode(3, false, false, &file);
  for (int ratio = 2; ratio <= 8; ratio *= 2) {
    const weir_jpeg_options_t options = {.ratio = ratio, .acceptable_fraction = 1};
    int64_t width = 0, height = 0;
    assert_null(decode(weir_strbuf_view(&file), &options, &width, &height, pixels));
    assert_int_equal(width, (kWidth + ratio - 1) / ratio);
    assert_int_equal(height, (kHeight + ratio - 1) / ratio);
    assert_true(abs(pixels[0] - 45) < 20);
  }
  weir_strbuf_free(&file);
}

// Every cut and every changed byte gives pixels or INVALID_ARGUMENT.
static void test_damage(void** state) {
  (void)state;
  // A changed header may ask for more than the image.
  uint8_t* pixels = weir_malloc((size_t)1 << 22);
  for (int kind = 0; kind < 4; ++kind) {
    weir_strbuf_t file = {0};
    encode(3, kind % 2 == 1, false, &file);
    const weir_jpeg_options_t options = {
        .ratio = 1, .is_fancy = true, .recovers = kind >= 2, .acceptable_fraction = 1};
    for (size_t i = 0; i < file.size; ++i) {
      weir_jpeg_t* jpeg = NULL;
      int64_t width = 0, height = 0;
      int channels = 0;
      file.data[i] ^= 0x15;
      weir_status_t* status = weir_jpeg_open(weir_strbuf_view(&file), &options, &jpeg);
      if (!status) weir_jpeg_size(jpeg, &width, &height, &channels);
      if (!status && width * height * 3 <= 1 << 22) status = weir_jpeg_decode(jpeg, pixels);
      weir_jpeg_destroy(jpeg);
      assert_true(!status || weir_status_code(status) == WEIR_INVALID_ARGUMENT);
      weir_status_destroy(status);
      file.data[i] ^= 0x15;
      status = decode(weir_view(file.data, i), &options, &width, &height, pixels);
      if (kind < 2) assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
      weir_status_destroy(status);
    }
    weir_strbuf_free(&file);
  }
  weir_free(pixels);
}

static void test_bad_sources(void** state) {
  (void)state;
  weir_strbuf_t file = {0};
  const uint8_t pixel = 1;
  weir_jpeg_source_t source = {.pixels = &pixel, .width = 0, .height = 1, .channels = 1};
  weir_jpeg_params_t params = {.quality = 50};
  weir_status_t* status = weir_jpeg_encode(&source, &params, &file);
  assert_int_equal(weir_status_code(status), WEIR_INTERNAL);
  weir_status_destroy(status);
  source.width = 1;
  params.xmp = weir_view(&pixel, 70000);
  status = weir_jpeg_encode(&source, &params, &file);
  assert_int_equal(weir_status_code(status), WEIR_INTERNAL);
  weir_status_destroy(status);
  weir_strbuf_free(&file);
}

// Where the last segment with |marker| begins.
static size_t find_marker(const weir_strbuf_t* file, uint8_t marker) {
  size_t at = file->size - 2;
  while ((uint8_t)file->data[at] != 0xff || (uint8_t)file->data[at + 1] != marker) at -= 1;
  return at;
}

static void assert_refused(weir_view_t file, int ratio, const char* reason) {
  const weir_jpeg_options_t options = {.ratio = ratio, .acceptable_fraction = 1};
  uint8_t pixels[kWidth * kHeight * 3];
  int64_t width = 0, height = 0;
  weir_status_t* status = decode(file, &options, &width, &height, pixels);
  assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
  assert_non_null(strstr(weir_status_message(status), reason));
  weir_status_destroy(status);
}

// Small files that would take much time or memory.
static void test_bombs(void** state) {
  (void)state;
  weir_strbuf_t file = {0}, bomb = {0};
  encode(3, true, false, &file);
  const size_t scan = find_marker(&file, 0xda), end = find_marker(&file, 0xd9);
  weir_strbuf_append(&bomb, file.data, scan);
  for (int i = 0; i < 600; ++i) weir_strbuf_append(&bomb, file.data + scan, end - scan);
  weir_strbuf_append(&bomb, file.data + end, file.size - end);
  assert_null(weir_strbuf_finish(&bomb));
  assert_refused(weir_strbuf_view(&bomb), 1, "scans");
  const size_t frame = find_marker(&file, 0xc2);
  memcpy(file.data + frame + 5, "\xff\xdc\xff\xdc", 4);  // 65500 by 65500
  assert_refused(weir_strbuf_view(&file), 1, "too many");
  assert_refused(weir_strbuf_view(&file), 8, "too many");
  weir_strbuf_free(&file);
  weir_strbuf_free(&bomb);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip),
                                     cmocka_unit_test(test_smaller), cmocka_unit_test(test_damage),
                                     cmocka_unit_test(test_bombs),
                                     cmocka_unit_test(test_bad_sources)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

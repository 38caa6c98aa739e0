// gif_test.c — Tests of GIF files: damage of any kind is an error, or leaves frames that are whole.
#include "image/gif.h"

#include "base/alloc.h"
#include "testing/cmocka.h"

// Two frames: one of 6 by 5 pixels; one of 4 by 3 within it, interlaced, with its own colors.
static const uint8_t kFile[] = {
    0x47, 0x49, 0x46, 0x38, 0x39, 0x61, 0x06, 0x00, 0x05, 0x00, 0x81, 0x00, 0x00, 0x43, 0xf9, 0x2d,
    0xe5, 0xcc, 0xd8, 0x1d, 0x64, 0xa0, 0x7e, 0xaa, 0xad, 0x21, 0xf9, 0x04, 0x00, 0x05, 0x00, 0x00,
    0x00, 0x2c, 0x00, 0x00, 0x00, 0x00, 0x06, 0x00, 0x05, 0x00, 0x00, 0x02, 0x0b, 0x94, 0x87, 0xa0,
    0x38, 0xe1, 0x06, 0x85, 0x0b, 0x4c, 0x81, 0x02, 0x00, 0x21, 0xf9, 0x04, 0x01, 0x05, 0x00, 0x01,
    0x00, 0x2c, 0x01, 0x00, 0x01, 0x00, 0x04, 0x00, 0x03, 0x00, 0xc1, 0x21, 0x0b, 0x00, 0x0c, 0x26,
    0xff, 0x30, 0xa7, 0xc0, 0x3c, 0x48, 0x6f, 0x02, 0x04, 0x8c, 0x2f, 0x79, 0x05, 0x00, 0x3b};

enum { kFrame = 6 * 5 * 3, kMost = 1 << 20 };

// Decodes what can be; returns the number of frames, 0 for an error.
static int64_t decode(const uint8_t* file, size_t size) {
  weir_gif_t* gif = NULL;
  int64_t frames = 0, width = 0, height = 0;
  weir_status_t* status = weir_gif_open(weir_view(file, size), &gif);
  if (!status) {
    weir_gif_size(gif, &frames, &width, &height);
    assert_true(frames > 0 && width > 0 && height > 0);
    assert_true(frames * width * height * 3 <= kMost);
    uint8_t* pixels = weir_malloc((size_t)(frames * width * height * 3));
    assert_non_null(pixels);
    status = weir_gif_decode(gif, frames, pixels);
    weir_free(pixels);
  }
  const bool is_bad = status != NULL;
  if (is_bad) assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
  weir_status_destroy(status);
  weir_gif_destroy(gif);
  return is_bad ? 0 : frames;
}

static void test_frames(void** state) {
  (void)state;
  weir_gif_t* gif = NULL;
  int64_t frames = 0, width = 0, height = 0;
  uint8_t pixels[2 * kFrame];
  assert_null(weir_gif_open(weir_view(kFile, sizeof kFile), &gif));
  weir_gif_size(gif, &frames, &width, &height);
  assert_true(frames == 2 && width == 6 && height == 5);
  assert_null(weir_gif_decode(gif, 2, pixels));
  // The second leaves the first row and the first column as they were.
  assert_memory_equal(pixels, pixels + kFrame, 6 * 3);
  assert_memory_equal(pixels + 18, pixels + kFrame + 18, 3);
  weir_gif_destroy(gif);
}

static void test_cut_off(void** state) {
  (void)state;
  int64_t most = 0;
  for (size_t size = 0; size <= sizeof kFile; ++size) {
    // A copy of that size, so that a sanitizer sees what is read behind it.
    uint8_t* copy = weir_malloc(size + 1);
    memcpy(copy, kFile, size);
    const int64_t frames = decode(copy, size);
    assert_true(frames >= most);
    most = frames;
    weir_free(copy);
  }
  assert_int_equal(most, 2);
}

static void test_damage(void** state) {
  (void)state;
  uint8_t file[sizeof kFile];
  memcpy(file, kFile, sizeof kFile);
  for (size_t i = 0; i < sizeof kFile; ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      file[i] ^= (uint8_t)(1 << bit);
      decode(file, sizeof file);
      file[i] ^= (uint8_t)(1 << bit);
    }
  }
}

// A frame of 65535 by 32767 pixels, of which there are four: nothing is made of it.
static void test_lies(void** state) {
  (void)state;
  static const uint8_t kLies[] = {'G',  'I',  'F',  '8',  '9', 'a', 0xff, 0xff, 0xff, 0x7f, 0x80, 0,
                                  0,    1,    2,    3,    4,   5,   6,    ',',  0,    0,    0,    0,
                                  0xff, 0xff, 0xff, 0x7f, 0,   2,   2,    0x4c, 0x01, 0,    ';'};
  assert_int_equal(decode(kLies, sizeof kLies), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_frames), cmocka_unit_test(test_cut_off),
                                     cmocka_unit_test(test_damage), cmocka_unit_test(test_lies)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

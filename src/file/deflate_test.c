// deflate_test.c — Tests of deflate, zlib and gzip.
#include "file/deflate.h"

#include "base/alloc.h"
#include "file/testing.h"

static void test_checksums(void** state) {
  (void)state;
  assert_int_equal(weir_crc32(0, "123456789", 9), 0xcbf43926);
  assert_int_equal(weir_crc32(weir_crc32(0, "1234", 4), "56789", 5), 0xcbf43926);
  assert_int_equal(weir_adler32(1, "Wikipedia", 9), 0x11e60398);
  assert_int_equal(weir_adler32(1, "", 0), 1);
}

// Data of several kinds: |kind| 0 random, 1 few symbols, 2 long repeats, 3 text.
static void make_data(int kind, size_t size, weir_strbuf_t* out) {
  uint32_t seed = 12345;
  out->size = 0;
  for (size_t i = 0; i < size; ++i) {
    seed = seed * 1664525u + 1013904223u;
    const uint32_t random = seed >> 16;
    char c = (char)random;
    if (kind == 1) c = (char)('a' + random % 3);
    if (kind == 2) c = (char)(i / 1000 % 7);
    if (kind == 3)
      c = i > 40 && random % 8 ? out->data[i - 1 - random % 40] : (char)(32 + random % 90);
    weir_strbuf_putc(out, c);
  }
}

static void test_round_trip(void** state) {
  (void)state;
  static const size_t kSizes[] = {0, 1, 2, 3, 4, 257, 65535, 65536, 200000};
  weir_strbuf_t data = {0}, packed = {0}, again = {0};
  for (int kind = 0; kind < 4; ++kind) {
    for (size_t k = 0; k < WEIR_COUNT_OF(kSizes); ++k) {
      make_data(kind, kSizes[k], &data);
      for (int level = -1; level < 10; level += WEIR_TEST_STRIDE) {
        const weir_deflate_format_t format = (weir_deflate_format_t)((level + 1) % 3);
        packed.size = again.size = 0;
        CHECK_OK(weir_deflate(format, level, weir_strbuf_view(&data), &packed));
        CHECK_OK(weir_inflate(format, weir_strbuf_view(&packed), data.size, &again));
        assert_true(weir_view_equal(weir_strbuf_view(&again), weir_strbuf_view(&data)));
        if (level != 0 && kind > 0 && data.size > 60000)
          assert_true(packed.size < data.size * 3 / 4);
      }
    }
  }
  weir_strbuf_free(&data);
  weir_strbuf_free(&packed);
  weir_strbuf_free(&again);
}

// "hello hello hello" as other programs wrote it.
static const uint8_t kZlib[] = {0x78, 0x9c, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x57,
                                0xc8, 0x40, 0x90, 0x00, 0x3a, 0x2e, 0x06, 0x7d};
static const uint8_t kGzip[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03,
                                0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x57, 0xc8, 0x40, 0x90, 0x00,
                                0x80, 0x88, 0xf9, 0xe5, 0x11, 0x00, 0x00, 0x00};

static void test_known_bytes(void** state) {
  (void)state;
  weir_strbuf_t out = {0}, twice = {0};
  CHECK_OK(weir_inflate(WEIR_DEFLATE_ZLIB, weir_view(kZlib, sizeof kZlib), 100, &out));
  assert_true(weir_view_is(weir_strbuf_view(&out), "hello hello hello"));
  out.size = 0;
  weir_strbuf_append(&twice, kGzip, sizeof kGzip);
  weir_strbuf_append(&twice, kGzip, sizeof kGzip);
  CHECK_OK(weir_inflate(WEIR_DEFLATE_GZIP, weir_strbuf_view(&twice), 100, &out));
  assert_true(weir_view_is(weir_strbuf_view(&out), "hello hello hellohello hello hello"));
  weir_strbuf_free(&out);
  weir_strbuf_free(&twice);
}

static void test_damage(void** state) {
  (void)state;
  weir_strbuf_t out = {0};
  uint8_t bytes[sizeof kZlib];
  for (size_t size = 0; size < sizeof kZlib; ++size) {
    out.size = 0;
    CHECK_FAILS(weir_inflate(WEIR_DEFLATE_ZLIB, weir_view(kZlib, size), 100, &out), DATA_LOSS,
                "cut off");
  }
  memcpy(bytes, kZlib, sizeof bytes);
  bytes[sizeof bytes - 1] ^= 1;
  CHECK_FAILS(weir_inflate(WEIR_DEFLATE_ZLIB, weir_view(bytes, sizeof bytes), 100, &out), DATA_LOSS,
              "incorrect data check");
  bytes[1] ^= 1;
  CHECK_FAILS(weir_inflate(WEIR_DEFLATE_ZLIB, weir_view(bytes, sizeof bytes), 100, &out), DATA_LOSS,
              "incorrect header check");
  CHECK_FAILS(weir_inflate(WEIR_DEFLATE_RAW, weir_view("\x07", 1), 100, &out), DATA_LOSS,
              "invalid block type");
  CHECK_FAILS(weir_inflate(WEIR_DEFLATE_RAW, weir_view("\x03\x02\x00", 3), 100, &out), DATA_LOSS,
              "too far back");
  CHECK_FAILS(weir_deflate(WEIR_DEFLATE_RAW, 10, weir_view("x", 1), &out), INVALID_ARGUMENT, "10");
  weir_strbuf_free(&out);
}

static void test_limit(void** state) {
  (void)state;
  weir_strbuf_t data = {0}, packed = {0}, out = {0};
  make_data(2, 300000, &data);
  CHECK_OK(weir_deflate(WEIR_DEFLATE_ZLIB, 9, weir_strbuf_view(&data), &packed));
  CHECK_FAILS(weir_inflate(WEIR_DEFLATE_ZLIB, weir_strbuf_view(&packed), 200000, &out),
              RESOURCE_EXHAUSTED, "200000");
  weir_strbuf_free(&data);
  weir_strbuf_free(&packed);
  weir_strbuf_free(&out);
}

// Reading begins behind what is damaged, which is then skipped.
static void test_damage_that_is_skipped(void** state) {
  (void)state;
  weir_strbuf_t data = {0}, packed = {0};
  weir_file_t* file = NULL;
  char byte = 0;
  size_t got = 0;
  make_data(3, 300000, &data);
  CHECK_OK(weir_deflate(WEIR_DEFLATE_ZLIB, 6, weir_strbuf_view(&data), &packed));
  packed.data[packed.size - 1] ^= 1;  // of the checksum
  CHECK_OK(weir_fs_write_all(test_path("z"), weir_strbuf_view(&packed)));
  CHECK_OK(weir_file_open_inflated(test_path("z"), WEIR_DEFLATE_ZLIB, &file));
  CHECK_FAILS(weir_file_read(file, data.size + 10, &byte, 1, &got), DATA_LOSS, "data check");
  weir_file_close(file);
  CHECK_OK(weir_file_open_inflated(test_path("z"), WEIR_DEFLATE_GZIP, &file));
  CHECK_FAILS(weir_file_read(file, 10, &byte, 1, &got), DATA_LOSS, "");
  weir_file_close(file);
  weir_strbuf_free(&data);
  weir_strbuf_free(&packed);
}

static void test_file(void** state) {
  (void)state;
  weir_strbuf_t data = {0}, packed = {0};
  weir_file_t* file = NULL;
  char* buffer = weir_malloc(100000);
  size_t got = 0;
  make_data(3, 300000, &data);
  CHECK_OK(weir_deflate(WEIR_DEFLATE_GZIP, 6, weir_strbuf_view(&data), &packed));
  CHECK_OK(weir_fs_write_all(test_path("z"), weir_strbuf_view(&packed)));
  CHECK_OK(weir_file_open_inflated(test_path("z"), WEIR_DEFLATE_GZIP, &file));
  static const uint64_t kOffsets[] = {0, 100000, 250000, 7, 299999, 300000, 400000};
  for (size_t i = 0; i < WEIR_COUNT_OF(kOffsets); ++i) {  // onward, over a gap, and back
    const uint64_t at = WEIR_MIN(kOffsets[i], (uint64_t)data.size);
    CHECK_OK(weir_file_read(file, kOffsets[i], buffer, 100000, &got));
    assert_int_equal(got, WEIR_MIN((size_t)100000, data.size - at));
    assert_memory_equal(buffer, data.data + at, got);
  }
  weir_file_close(file);
  // Cut off: what is there can be read, and then it ends.
  CHECK_OK(weir_fs_write_all(test_path("z"), weir_view(packed.data, packed.size / 2)));
  CHECK_OK(weir_file_open_inflated(test_path("z"), WEIR_DEFLATE_GZIP, &file));
  CHECK_OK(weir_file_read(file, 0, buffer, 100000, &got));
  assert_int_equal(got, 100000);
  CHECK_OK(weir_file_read(file, 290000, buffer, 100000, &got));
  assert_int_equal(got, 0);
  weir_file_close(file);
  CHECK_OK(weir_file_open_inflated(test_path("z"), WEIR_DEFLATE_ZLIB, &file));
  CHECK_FAILS(weir_file_read(file, 0, buffer, 10, &got), DATA_LOSS, "header check");
  weir_file_close(file);
  CHECK_FAILS(weir_file_open_inflated(test_path("none"), WEIR_DEFLATE_ZLIB, &file), NOT_FOUND,
              "none");
  weir_free(buffer);
  weir_strbuf_free(&data);
  weir_strbuf_free(&packed);
}

int main(void) {
  const struct CMUnitTest tests[] = {FILE_TEST(test_checksums),
                                     FILE_TEST(test_round_trip),
                                     FILE_TEST(test_known_bytes),
                                     FILE_TEST(test_damage),
                                     FILE_TEST(test_limit),
                                     FILE_TEST(test_file),
                                     FILE_TEST(test_damage_that_is_skipped)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

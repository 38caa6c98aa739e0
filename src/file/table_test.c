// table_test.c — Tests of sorted tables.
#include "file/table.h"

#include "base/crc32c.h"
#include "file/coding.h"
#include "file/testing.h"

// Builds a table of |count| keys "key000000" … with values that repeat the key.
static void build(const char* path, int count, weir_strbuf_t* out_bytes) {
  weir_writer_t* writer = NULL;
  CHECK_OK(weir_writer_open(path, false, &writer));
  weir_table_builder_t builder = weir_table_builder(writer);
  for (int i = 0; i < count; ++i) {
    char key[32], value[64];
    snprintf(key, sizeof key, "key%06d", i * 2);
    snprintf(value, sizeof value, "%s-%s", key, key);
    CHECK_OK(weir_table_add(&builder, weir_view_of(key), weir_view_of(value)));
  }
  CHECK_OK(weir_table_finish(&builder));
  weir_table_builder_free(&builder);
  CHECK_OK(weir_writer_close(writer));
  CHECK_OK(weir_fs_read_all(path, out_bytes));
}

static void check_walk(int count) {
  weir_strbuf_t bytes = {0};
  weir_table_t table;
  build(test_path("t"), count, &bytes);
  CHECK_OK(weir_table_open(weir_strbuf_view(&bytes), &table));
  weir_table_cursor_t cursor = weir_table_cursor(&table);
  bool found = false;
  for (int i = 0; i < count; ++i) {
    char key[32];
    snprintf(key, sizeof key, "key%06d", i * 2);
    CHECK_OK(weir_table_next(&cursor, &found));
    assert_true(found && weir_view_is(weir_table_key(&cursor), key));
    assert_int_equal(weir_table_value(&cursor).size, 19);
    assert_memory_equal(weir_table_value(&cursor).data, key, 9);
  }
  CHECK_OK(weir_table_next(&cursor, &found));
  assert_false(found);
  weir_table_cursor_free(&cursor);
  weir_strbuf_free(&bytes);
}

static void test_walk(void** state) {
  (void)state;
  static const int kCounts[] = {0, 1, 2, 15, 16, 17, 100, 30000};  // the last needs several blocks
  for (size_t i = 0; i < WEIR_COUNT_OF(kCounts); ++i) check_walk(kCounts[i]);
}

static void test_seek(void** state) {
  (void)state;
  enum { kCount = 30000 };
  weir_strbuf_t bytes = {0};
  weir_table_t table;
  build(test_path("t"), kCount, &bytes);
  CHECK_OK(weir_table_open(weir_strbuf_view(&bytes), &table));
  weir_table_cursor_t cursor = weir_table_cursor(&table);
  bool found = false;
  for (int i = 0; i < 2 * kCount; i += 7) {
    char key[32], expected[32];
    snprintf(key, sizeof key, "key%06d", i);
    snprintf(expected, sizeof expected, "key%06d", (i + 1) / 2 * 2);
    CHECK_OK(weir_table_seek(&cursor, weir_view_of(key), &found));
    bool is_inside = (i + 1) / 2 < kCount;
    assert_int_equal(found, is_inside);
    if (found) assert_true(weir_view_is(weir_table_key(&cursor), expected));
  }
  CHECK_OK(weir_table_seek(&cursor, weir_view("", 0), &found));
  assert_true(found && weir_view_is(weir_table_key(&cursor), "key000000"));
  CHECK_OK(weir_table_next(&cursor, &found));
  assert_true(found && weir_view_is(weir_table_key(&cursor), "key000002"));
  CHECK_OK(weir_table_seek(&cursor, weir_view_of("z"), &found));
  assert_false(found);
  weir_table_cursor_free(&cursor);
  weir_strbuf_free(&bytes);
}

static void test_keys_must_ascend(void** state) {
  (void)state;
  weir_writer_t* writer = NULL;
  CHECK_OK(weir_writer_open(test_path("t"), false, &writer));
  weir_table_builder_t builder = weir_table_builder(writer);
  CHECK_OK(weir_table_add(&builder, weir_view("", 0), weir_view_of("empty")));
  CHECK_OK(weir_table_add(&builder, weir_view_of("b"), weir_view_of("")));
  CHECK_FAILS(weir_table_add(&builder, weir_view_of("b"), weir_view_of("")), INVALID_ARGUMENT,
              "'b'");
  CHECK_FAILS(weir_table_add(&builder, weir_view_of("a"), weir_view_of("")), INVALID_ARGUMENT,
              "'a'");
  weir_table_builder_free(&builder);
  CHECK_OK(weir_writer_close(writer));
}

static weir_status_t* walk(weir_view_t file) {
  weir_table_t table;
  bool found = true;
  WEIR_TRY(weir_table_open(file, &table));
  weir_table_cursor_t cursor = weir_table_cursor(&table);
  weir_status_t* status = NULL;
  while (!status && found) status = weir_table_next(&cursor, &found);
  weir_table_cursor_free(&cursor);
  return status;
}

// Whatever one byte becomes, the walk ends, and the table is not taken for whole unless the byte is
// in the padding of the footer or in the metaindex.
static void test_every_flip(void** state) {
  (void)state;
  weir_strbuf_t bytes = {0};
  build(test_path("t"), 40, &bytes);
  int missed = 0;
  for (size_t i = 0; i < bytes.size; i += WEIR_TEST_STRIDE) {
    bytes.data[i] ^= 0x41;
    weir_status_t* status = walk(weir_strbuf_view(&bytes));
    missed += status == NULL;
    weir_status_destroy(status);
    bytes.data[i] ^= 0x41;
  }
  assert_true(missed < 60);
  for (size_t cut = 0; cut < bytes.size; cut += WEIR_TEST_STRIDE) {
    CHECK_FAILS(walk(weir_view(bytes.data, cut)), DATA_LOSS, "");
  }
  CHECK_OK(walk(weir_strbuf_view(&bytes)));
  weir_strbuf_free(&bytes);
}

// The first block of |bytes|, without its trailer: of that length the checksum is right.
static size_t first_block(const weir_strbuf_t* bytes) {
  size_t size = 0;
  while (weir_crc32c_mask(weir_crc32c(bytes->data, size + 1)) !=
         weir_decode32(bytes->data + size + 1))
    ++size;
  return size;
}

// Restarts that lead out of their block, with a checksum that says it is whole: walking does not
// need them, seeking does.
static void test_bad_restarts(void** state) {
  (void)state;
  weir_strbuf_t bytes = {0};
  weir_table_t table;
  bool found = false;
  build(test_path("t"), 40, &bytes);
  const size_t size = first_block(&bytes);
  const uint32_t count = weir_decode32(bytes.data + size - 4);
  assert_true(count > 1);
  for (uint32_t i = 0; i < count; ++i) weir_encode32(bytes.data + size - 8 - 4 * i, 1 << 20);
  weir_encode32(bytes.data + size + 1, weir_crc32c_mask(weir_crc32c(bytes.data, size + 1)));
  CHECK_OK(walk(weir_strbuf_view(&bytes)));
  CHECK_OK(weir_table_open(weir_strbuf_view(&bytes), &table));
  weir_table_cursor_t cursor = weir_table_cursor(&table);
  CHECK_FAILS(weir_table_seek(&cursor, weir_view_of("key000040"), &found), DATA_LOSS, "restart");
  assert_false(found);
  weir_table_cursor_free(&cursor);
  weir_strbuf_free(&bytes);
}

// More restarts than their block has room for.
static void test_too_many_restarts(void** state) {
  (void)state;
  weir_strbuf_t bytes = {0};
  build(test_path("t"), 40, &bytes);
  const size_t size = first_block(&bytes);
  const uint32_t most = (uint32_t)(size - 4) / 4;
  const uint32_t counts[] = {most + 1, most + 2, most + 3, UINT32_MAX};
  for (size_t i = 0; i < WEIR_COUNT_OF(counts); ++i) {
    weir_encode32(bytes.data + size - 4, counts[i]);
    weir_encode32(bytes.data + size + 1, weir_crc32c_mask(weir_crc32c(bytes.data, size + 1)));
    CHECK_FAILS(walk(weir_strbuf_view(&bytes)), DATA_LOSS, "bad block contents");
  }
  weir_strbuf_free(&bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      FILE_TEST(test_walk),       FILE_TEST(test_seek),         FILE_TEST(test_keys_must_ascend),
      FILE_TEST(test_every_flip), FILE_TEST(test_bad_restarts), FILE_TEST(test_too_many_restarts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

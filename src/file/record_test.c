// record_test.c — Tests of TFRecord files.
#include "file/record.h"

#include "file/testing.h"

static void write_records(const char* path, const char* const* records, size_t count) {
  weir_writer_t* writer = NULL;
  CHECK_OK(weir_writer_open(path, false, &writer));
  for (size_t i = 0; i < count; ++i) {
    CHECK_OK(weir_record_write(writer, records[i], strlen(records[i])));
  }
  CHECK_OK(weir_writer_close(writer));
}

static void test_round_trip(void** state) {
  (void)state;
  static const char* const kRecords[] = {"one", "", "three"};
  weir_record_reader_t* reader = NULL;
  weir_view_t record;
  write_records(test_path("r"), kRecords, 3);
  CHECK_OK(weir_record_reader_open(test_path("r"), &reader));
  for (int i = 0; i < 3; ++i) {
    CHECK_OK(weir_record_next(reader, &record));
    assert_true(weir_view_is(record, kRecords[i]));
  }
  assert_int_equal(weir_record_tell(reader), 8 + 3 * 16);
  CHECK_FAILS(weir_record_next(reader, &record), OUT_OF_RANGE, "end of file");
  CHECK_FAILS(weir_record_next(reader, &record), OUT_OF_RANGE, "end of file");
  weir_record_seek(reader, 19);
  CHECK_OK(weir_record_next(reader, &record));
  assert_int_equal(record.size, 0);
  weir_record_reader_destroy(reader);
  weir_record_reader_destroy(NULL);
}

// The bytes of one record "abc" as TensorFlow writes them.
static void test_known_bytes(void** state) {
  (void)state;
  static const char* const kRecords[] = {"abc"};
  static const uint8_t kExpected[] = {3, 0, 0, 0, 0, 0, 0, 0};
  weir_strbuf_t bytes = {0};
  write_records(test_path("r"), kRecords, 1);
  CHECK_OK(weir_fs_read_all(test_path("r"), &bytes));
  assert_int_equal(bytes.size, 19);
  assert_memory_equal(bytes.data, kExpected, sizeof kExpected);
  assert_memory_equal(bytes.data + 12, "abc", 3);
  weir_strbuf_free(&bytes);
}

static weir_status_t* read_first(weir_view_t bytes) {
  weir_file_t* file = NULL;
  weir_record_reader_t* reader = NULL;
  weir_view_t record;
  CHECK_OK(weir_file_from_view(bytes, "memory", &file));
  CHECK_OK(weir_record_reader_create(file, &reader));
  weir_status_t* status = weir_record_next(reader, &record);
  weir_record_reader_destroy(reader);
  return status;
}

static void test_every_cut_and_every_flip(void** state) {
  (void)state;
  static const char* const kRecords[] = {"abc"};
  weir_strbuf_t bytes = {0};
  write_records(test_path("r"), kRecords, 1);
  CHECK_OK(weir_fs_read_all(test_path("r"), &bytes));
  for (size_t cut = 0; cut < 12; ++cut) {
    CHECK_FAILS(read_first(weir_view(bytes.data, cut)), OUT_OF_RANGE, "end of file");
  }
  for (size_t cut = 12; cut < bytes.size; ++cut) {
    CHECK_FAILS(read_first(weir_view(bytes.data, cut)), DATA_LOSS, "truncated record at 0");
  }
  for (size_t i = 0; i < bytes.size; ++i) {
    bytes.data[i] ^= 0x10;
    CHECK_FAILS(read_first(weir_strbuf_view(&bytes)), DATA_LOSS, "corrupted record at 0");
    bytes.data[i] ^= 0x10;
  }
  CHECK_OK(read_first(weir_strbuf_view(&bytes)));
  weir_strbuf_free(&bytes);
}

static void test_reading_while_written(void** state) {
  (void)state;
  weir_writer_t* writer = NULL;
  weir_record_reader_t* reader = NULL;
  weir_view_t record;
  CHECK_OK(weir_writer_open(test_path("r"), false, &writer));
  CHECK_OK(weir_record_reader_open(test_path("r"), &reader));
  CHECK_FAILS(weir_record_next(reader, &record), OUT_OF_RANGE, "");
  CHECK_OK(weir_record_write(writer, "later", 5));
  CHECK_OK(weir_writer_flush(writer));
  CHECK_OK(weir_record_next(reader, &record));
  assert_true(weir_view_is(record, "later"));
  weir_record_reader_destroy(reader);
  CHECK_OK(weir_writer_close(writer));
}

static void test_large_records(void** state) {
  (void)state;
  enum { kSize = 1 << 20 };
  char* data = weir_malloc(kSize);
  for (int i = 0; i < kSize; ++i) data[i] = (char)(i * 31 >> 3);
  weir_writer_t* writer = NULL;
  weir_record_reader_t* reader = NULL;
  weir_view_t record;
  CHECK_OK(weir_writer_open(test_path("r"), false, &writer));
  for (size_t size = 1; size <= kSize; size = size * 4) {
    CHECK_OK(weir_record_write(writer, data, size));
  }
  CHECK_OK(weir_writer_close(writer));
  CHECK_OK(weir_record_reader_open(test_path("r"), &reader));
  for (size_t size = 1; size <= kSize; size = size * 4) {
    CHECK_OK(weir_record_next(reader, &record));
    assert_int_equal(record.size, size);
    assert_memory_equal(record.data, data, size);
  }
  weir_record_reader_destroy(reader);
  weir_free(data);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      FILE_TEST(test_round_trip),
      FILE_TEST(test_known_bytes),
      FILE_TEST(test_every_cut_and_every_flip),
      FILE_TEST(test_reading_while_written),
      FILE_TEST(test_large_records),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

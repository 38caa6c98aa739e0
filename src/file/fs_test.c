// fs_test.c — Tests of file systems.
#include "file/fs.h"

#include "file/testing.h"

static void test_write_then_read(void** state) {
  (void)state;
  weir_writer_t* writer = NULL;
  weir_strbuf_t text = {0};
  CHECK_OK(weir_writer_open(test_path("a"), false, &writer));
  CHECK_OK(weir_writer_write(writer, "hello ", 6));
  CHECK_OK(weir_writer_flush(writer));
  CHECK_OK(weir_writer_write(writer, "world", 5));
  assert_int_equal(writer->size, 11);
  CHECK_OK(weir_writer_sync(writer));
  CHECK_OK(weir_writer_close(writer));
  CHECK_OK(weir_writer_open(test_path("a"), true, &writer));
  assert_int_equal(writer->size, 11);
  CHECK_OK(weir_writer_write(writer, "!", 1));
  CHECK_OK(weir_writer_close(writer));
  CHECK_OK(weir_fs_read_all(test_path("a"), &text));
  assert_string_equal(text.data, "hello world!");
  weir_strbuf_free(&text);
  CHECK_OK(weir_writer_close(NULL));
}

static int count_open_files(void) {
  weir_names_t names = {0};
  CHECK_OK(weir_fs_list("/proc/self/fd", &names));
  int count = (int)names.count;
  weir_names_free(&names);
  return count;
}

static void test_closed(void** state) {
  (void)state;
  const int before = count_open_files();
  for (int i = 0; i < 3; ++i) {
    weir_writer_t* writer = NULL;
    CHECK_OK(weir_writer_open(test_path("closed"), false, &writer));
    assert_int_equal(count_open_files(), before + 1);
    CHECK_OK(weir_writer_close(writer));
    assert_int_equal(count_open_files(), before);
  }
}

static void test_large_writes(void** state) {
  (void)state;
  enum { kSize = 300000 };
  char* data = weir_malloc(kSize);
  for (int i = 0; i < kSize; ++i) data[i] = (char)(i * 7);
  weir_writer_t* writer = NULL;
  weir_strbuf_t text = {0};
  CHECK_OK(weir_writer_open(test_path("a"), false, &writer));
  for (size_t at = 0, step = 1; at < kSize; at += step, step = step * 3 + 1) {
    step = WEIR_MIN(step, kSize - at);
    CHECK_OK(weir_writer_write(writer, data + at, step));
  }
  CHECK_OK(weir_writer_close(writer));
  CHECK_OK(weir_fs_read_all(test_path("a"), &text));
  assert_int_equal(text.size, kSize);
  assert_memory_equal(text.data, data, kSize);
  weir_strbuf_free(&text);
  weir_free(data);
}

static void test_positioned_reads(void** state) {
  (void)state;
  weir_file_t* file = NULL;
  char buffer[8];
  size_t got = 0;
  CHECK_OK(weir_fs_write_all(test_path("a"), weir_view_of("0123456789")));
  CHECK_OK(weir_file_open(test_path("a"), &file));
  assert_int_equal(file->size, 10);
  CHECK_OK(weir_file_read(file, 7, buffer, 8, &got));
  assert_int_equal(got, 3);
  assert_memory_equal(buffer, "789", 3);
  CHECK_OK(weir_file_read(file, 20, buffer, 8, &got));
  assert_int_equal(got, 0);
  CHECK_OK(weir_file_read_exactly(file, 2, buffer, 3));
  assert_memory_equal(buffer, "234", 3);
  CHECK_FAILS(weir_file_read_exactly(file, 8, buffer, 3), DATA_LOSS, "ends early");
  weir_file_close(file);
  CHECK_OK(weir_file_from_view(weir_view_of("abc"), "memory", &file));
  CHECK_OK(weir_file_read(file, 1, buffer, 8, &got));
  assert_int_equal(got, 2);
  CHECK_OK(weir_file_read(file, 9, buffer, 8, &got));
  assert_int_equal(got, 0);
  weir_file_close(file);
  weir_file_close(NULL);
}

static void test_errors_name_the_path(void** state) {
  (void)state;
  weir_file_t* file = NULL;
  weir_writer_t* writer = NULL;
  weir_names_t names = {0};
  CHECK_FAILS(weir_file_open(test_path("nope"), &file), NOT_FOUND, test_path("nope"));
  CHECK_FAILS(weir_file_open(test_dir, &file), FAILED_PRECONDITION, "Is a directory");
  CHECK_FAILS(weir_writer_open(test_path("no/pe"), false, &writer), NOT_FOUND, "no/pe");
  CHECK_FAILS(weir_fs_remove(test_path("nope")), NOT_FOUND, "nope");
  CHECK_FAILS(weir_fs_rename(test_path("nope"), test_path("b")), NOT_FOUND, "nope");
  CHECK_FAILS(weir_fs_list(test_path("nope"), &names), NOT_FOUND, "nope");
  CHECK_FAILS(weir_file_open("s3://bucket/x", &file), UNIMPLEMENTED,
              "File system scheme 's3' not implemented (file: 's3://bucket/x')");
  if (geteuid() != 0) {
    CHECK_FAILS(weir_writer_open("/root_only", false, &writer), PERMISSION_DENIED, "/root_only");
  }
}

static void test_schemes(void** state) {
  (void)state;
  char path[600];
  snprintf(path, sizeof path, "file://%s", test_path("a"));
  CHECK_OK(weir_fs_write_all(path, weir_view_of("x")));
  assert_true(weir_fs_exists(test_path("a")));
  assert_true(weir_fs_exists(path));
  const weir_fs_t* fs = NULL;
  const char* local = NULL;
  CHECK_OK(weir_fs_find("a b://c", &fs, &local));  // no scheme: it has a space
  assert_string_equal(local, "a b://c");
}

static void test_directories(void** state) {
  (void)state;
  weir_names_t names = {0};
  weir_file_info_t info;
  CHECK_OK(weir_fs_make_directories(test_path("a/b//c/")));
  CHECK_OK(weir_fs_make_directories(test_path("a/b/c")));
  CHECK_OK(weir_fs_info(test_path("a/b/c"), &info));
  assert_true(info.is_directory);
  CHECK_OK(weir_fs_write_all(test_path("a/file"), weir_view_of("12")));
  CHECK_OK(weir_fs_info(test_path("a/file"), &info));
  assert_true(!info.is_directory && info.size == 2);
  CHECK_FAILS(weir_fs_make_directories(test_path("a/file/x")), FAILED_PRECONDITION, "a/file");
  CHECK_FAILS(weir_fs_remove_directory(test_path("a")), FAILED_PRECONDITION, "not empty");
  CHECK_OK(weir_fs_list(test_path("a"), &names));
  weir_names_sort(&names);
  assert_int_equal(names.count, 2);
  assert_string_equal(names.items[0], "b");
  assert_string_equal(names.items[1], "file");
  weir_names_free(&names);
  assert_true(weir_view_is(weir_path_parent("/x"), "/"));
  assert_true(weir_view_is(weir_path_parent("a/b/c"), "a/b"));
  assert_int_equal(weir_path_parent("a").size, 0);
}

static void test_replace(void** state) {
  (void)state;
  weir_strbuf_t text = {0};
  weir_names_t names = {0};
  CHECK_OK(weir_fs_replace(test_path("a"), weir_view_of("old")));
  CHECK_OK(weir_fs_replace(test_path("a"), weir_view_of("new")));
  CHECK_OK(weir_fs_read_all(test_path("a"), &text));
  assert_string_equal(text.data, "new");
  weir_strbuf_free(&text);
  CHECK_FAILS(weir_fs_replace(test_path("no/a"), weir_view_of("x")), NOT_FOUND, "no/a");
  CHECK_OK(weir_fs_list(test_dir, &names));
  assert_int_equal(names.count, 1);
  weir_names_free(&names);
}

static void expect_matches(const char* pattern, const char* expected) {
  weir_names_t names = {0};
  weir_strbuf_t joined = {0};
  CHECK_OK(weir_fs_glob(test_path(pattern), &names));
  weir_names_sort(&names);
  for (size_t i = 0; i < names.count; ++i) {
    weir_strbuf_printf(&joined, "%s%s", i ? " " : "", names.items[i] + strlen(test_dir) + 1);
  }
  assert_string_equal(joined.data ? joined.data : "", expected);
  weir_names_free(&names);
  weir_strbuf_free(&joined);
}

static void test_glob(void** state) {
  (void)state;
  CHECK_OK(weir_fs_make_directories(test_path("d1")));
  CHECK_OK(weir_fs_make_directories(test_path("d2")));
  CHECK_OK(weir_fs_write_all(test_path("d1/a.txt"), weir_view_of("")));
  CHECK_OK(weir_fs_write_all(test_path("d2/a.txt"), weir_view_of("")));
  CHECK_OK(weir_fs_write_all(test_path("d2/b.bin"), weir_view_of("")));
  CHECK_OK(weir_fs_write_all(test_path("d2/.hidden"), weir_view_of("")));
  expect_matches("d?/a.*", "d1/a.txt d2/a.txt");
  expect_matches("d2/*", "d2/.hidden d2/a.txt d2/b.bin");
  expect_matches("*", "d1 d2");
  expect_matches("*a.txt", "");
  expect_matches("d[2-9]/[!a]*", "d2/.hidden d2/b.bin");
  expect_matches("d1/a.txt", "d1/a.txt");
  expect_matches("nope/*", "");
  expect_matches("d1/a.txt/*", "");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      FILE_TEST(test_write_then_read),
      FILE_TEST(test_closed),
      FILE_TEST(test_large_writes),
      FILE_TEST(test_positioned_reads),
      FILE_TEST(test_errors_name_the_path),
      FILE_TEST(test_schemes),
      FILE_TEST(test_directories),
      FILE_TEST(test_replace),
      FILE_TEST(test_glob),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

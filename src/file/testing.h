// testing.h — What the tests of this folder share: a fresh directory, and checks of statuses.
#ifndef WEIR_FILE_TESTING_H_
#define WEIR_FILE_TESTING_H_

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
// cmocka wants those before.

#include "base/alloc.h"
#include "file/fs.h"
#include "testing/cmocka.h"

#define CHECK_OK(expr) check_status((expr), WEIR_OK, "", #expr, __FILE__, __LINE__)
#define CHECK_FAILS(expr, code, text) \
  check_status((expr), WEIR_##code, text, #expr, __FILE__, __LINE__)

static inline void check_status(weir_status_t* status, weir_code_t code, const char* text,
                                const char* expr, const char* file, int line) {
  bool is_good = weir_status_code(status) == code && strstr(weir_status_message(status), text);
  if (!is_good) {
    print_error("%s: %s: %s\n", expr, weir_code_name(weir_status_code(status)),
                weir_status_message(status));
  }
  weir_status_destroy(status);
  _assert_true(is_good, expr, file, line);
}

// The directory of the running test.
static char test_dir[256];

static inline int test_dir_make(void** state) {
  (void)state;
  const char* base = getenv("TMPDIR");
  snprintf(test_dir, sizeof test_dir, "%s/weir_file_XXXXXX", base ? base : "/tmp");
  return mkdtemp(test_dir) ? 0 : -1;
}

static inline void remove_tree(const char* path) {
  weir_names_t names = {0};
  weir_status_destroy(weir_fs_list(path, &names));
  for (size_t i = 0; i < names.count; ++i) {
    weir_strbuf_t child = {0};
    weir_file_info_t info = {0};
    weir_strbuf_printf(&child, "%s/%s", path, names.items[i]);
    weir_status_destroy(weir_fs_info(child.data, &info));
    if (info.is_directory) remove_tree(child.data);
    weir_status_destroy(weir_fs_remove(child.data));
    weir_strbuf_free(&child);
  }
  weir_names_free(&names);
  weir_status_destroy(weir_fs_remove_directory(path));
}

static inline int test_dir_remove(void** state) {
  (void)state;
  remove_tree(test_dir);
  return 0;
}

// The path of |name| in the test's directory; good until the fourth call after.
static inline const char* test_path(const char* name) {
  static char paths[4][512];
  static int next;
  char* path = paths[next++ % 4];
  snprintf(path, sizeof paths[0], "%s/%s", test_dir, name);
  return path;
}

#define FILE_TEST(function) \
  cmocka_unit_test_setup_teardown(function, test_dir_make, test_dir_remove)

#endif  // WEIR_FILE_TESTING_H_

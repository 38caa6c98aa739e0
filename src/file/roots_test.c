// roots_test.c — The folders that graphs may use: which paths are below them, by whatever way.
#include "file/roots.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file/fs.h"
#include "file/sqlite.h"
#include "testing/cmocka.h"

// "/tmp/x/in" is a root, "/tmp/x/in2" is another, "/tmp/x/out" is none.
static char base[64];

static const char* at(const char* name) {
  static char paths[8][256];
  static int next;
  char* path = paths[next++ % 8];
  snprintf(path, sizeof(paths[0]), "%s/%s", base, name);
  return path;
}

static void put(const char* name) { assert_null(weir_fs_write_all(at(name), weir_view("x", 1))); }
static void tie(const char* target, const char* name) {
  assert_int_equal(symlink(target, at(name)), 0);
}

static int set_up(void** state) {
  (void)state;
  snprintf(base, sizeof(base), "/tmp/weir_roots_XXXXXX");
  assert_non_null(mkdtemp(base));
  const char* folders[] = {"in", "in/deep", "in2", "inside", "out"};
  for (size_t i = 0; i < WEIR_COUNT_OF(folders); ++i)
    assert_int_equal(mkdir(at(folders[i]), 0700), 0);
  put("in/file");
  put("in2/file");
  put("inside/file");
  put("out/file");
  tie(at("out"), "in/away");
  tie(at("out/file"), "in/away_file");
  tie(at("out/new"), "in/away_new");
  tie("../in2", "in/near");
  tie(at("in"), "out/back");
  return 0;
}

static int tear_down(void** state) {
  (void)state;
  char command[96];
  snprintf(command, sizeof(command), "rm -r %s", base);
  return system(command);
}

static void add(void) {
  char list[256];
  snprintf(list, sizeof(list), "%s:%s/", at("in"), at("in2"));
  assert_null(weir_roots_add(list));
}

static void expect(weir_status_t* take_status, weir_code_t code) {
  if (weir_status_code(take_status) != code)
    print_message("%s: %s\n", weir_code_name(weir_status_code(take_status)),
                  weir_status_message(take_status));
  assert_int_equal(weir_status_code(take_status), code);
  if (code == WEIR_PERMISSION_DENIED)
    assert_non_null(strstr(weir_status_message(take_status), "--file-roots"));
  weir_status_destroy(take_status);
}

static void test_paths(void** state) {
  (void)state;
  const char* good[] = {"in",
                        "in/",
                        "in/file",
                        "in/none",
                        "in/none/none",
                        "in/deep/../file",
                        "in2/file",
                        "in/near/file",
                        "in/near/none",
                        "out/back/file",
                        "in/./file",
                        "in/../in2/file",
                        "in/away/../in/file",
                        "in//file",
                        "in/file/none"};
  const char* bad[] = {"",          "out",          "out/file",          "out/none",
                       "in/..",     "in/../out",    "in/../out/none",    "in/away",
                       "in/away/x", "in/away_file", "in/away_new",       "in/away_new/x",
                       "inside",    "inside/file",  "in/none/../../out", "in/none/..",
                       "in3"};
  add();
  for (size_t i = 0; i < WEIR_COUNT_OF(good); ++i)
    expect(weir_roots_check(at(good[i]), WEIR_ROOTS_OPEN), WEIR_OK);
  for (size_t i = 0; i < WEIR_COUNT_OF(bad); ++i)
    expect(weir_roots_check(at(bad[i]), WEIR_ROOTS_OPEN), WEIR_PERMISSION_DENIED);
  const char* others[] = {"/", "", ".", "none", "/proc/self/root", "/etc/passwd", "/dev/stdin"};
  for (size_t i = 0; i < WEIR_COUNT_OF(others); ++i)
    expect(weir_roots_check(others[i], WEIR_ROOTS_OPEN), WEIR_PERMISSION_DENIED);
  // That the way to the roots is there is no secret.
  expect(weir_roots_check(base, WEIR_ROOTS_LOOK), WEIR_OK);
  expect(weir_roots_check("/", WEIR_ROOTS_LOOK), WEIR_OK);
  expect(weir_roots_check(at("none"), WEIR_ROOTS_LOOK), WEIR_PERMISSION_DENIED);
  expect(weir_roots_check(at("out"), WEIR_ROOTS_LOOK), WEIR_PERMISSION_DENIED);
  weir_roots_remove();
  expect(weir_roots_check(at("out"), WEIR_ROOTS_OPEN), WEIR_OK);
}

// Relative paths begin in the working directory.
static void test_relative(void** state) {
  (void)state;
  char before[4096];
  assert_non_null(getcwd(before, sizeof(before)));
  add();
  assert_int_equal(chdir(at("in")), 0);
  expect(weir_roots_check("file", WEIR_ROOTS_OPEN), WEIR_OK);
  expect(weir_roots_check("none/none", WEIR_ROOTS_OPEN), WEIR_OK);
  expect(weir_roots_check("../in2", WEIR_ROOTS_OPEN), WEIR_OK);
  expect(weir_roots_check("../out/file", WEIR_ROOTS_OPEN), WEIR_PERMISSION_DENIED);
  assert_int_equal(chdir(at("out")), 0);
  expect(weir_roots_check("file", WEIR_ROOTS_OPEN), WEIR_PERMISSION_DENIED);
  assert_int_equal(chdir(before), 0);
  weir_roots_remove();
}

static void test_functions(void** state) {
  (void)state;
  weir_file_t* file = NULL;
  weir_writer_t* writer = NULL;
  weir_file_info_t info;
  weir_names_t names = {0};
  const weir_code_t denied = WEIR_PERMISSION_DENIED;
  add();
  expect(weir_file_open(at("out/file"), &file), denied);
  expect(weir_file_open(at("out/none"), &file), denied);
  expect(weir_writer_open(at("out/new"), false, &writer), denied);
  expect(weir_writer_open(at("in/away_new"), true, &writer), denied);
  assert_int_equal(access(at("out/new"), F_OK), -1);
  expect(weir_fs_info(at("out/file"), &info), denied);
  assert_false(weir_fs_exists(at("out/file")));
  expect(weir_fs_rename(at("in/file"), at("out/file2")), denied);
  expect(weir_fs_rename(at("out/file"), at("in/file2")), denied);
  expect(weir_fs_remove(at("out/file")), denied);
  expect(weir_fs_remove_directory(at("out")), denied);
  expect(weir_fs_make_directories(at("out/new")), denied);
  expect(weir_fs_make_directories(at("new")), denied);
  expect(weir_fs_list(at("out"), &names), denied);
  expect(weir_fs_list(base, &names), denied);
  expect(weir_fs_replace(at("out/file"), weir_view("y", 1)), denied);
  expect(weir_fs_glob(at("out/*"), &names), denied);
  expect(weir_fs_glob(at("*"), &names), denied);
  expect(weir_fs_glob(at("out/file"), &names), denied);
  expect(weir_fs_glob(at("in/*/../../out/*"), &names), WEIR_OK);
  assert_int_equal(names.count, 0);
  expect(weir_fs_glob(at("in/f*"), &names), WEIR_OK);
  assert_int_equal(names.count, 1);
  weir_names_free(&names);
  expect(weir_fs_make_directories(at("in/a/b/c")), WEIR_OK);
  expect(weir_fs_replace(at("in/a/b/c/file"), weir_view("y", 1)), WEIR_OK);
  expect(weir_fs_list(at("in/a/b/c"), &names), WEIR_OK);
  assert_int_equal(names.count, 1);
  weir_names_free(&names);
  expect(weir_file_open("file:///etc/passwd", &file), denied);
  weir_roots_suspend();
  expect(weir_file_open(at("out/file"), &file), WEIR_OK);
  weir_roots_resume();
  weir_file_close(file);
  expect(weir_file_open(at("out/file"), &file), denied);
  weir_roots_remove();
}

// A query must not reach files by itself.
static void run_query(const char* query, weir_code_t code) {
  weir_sqlite_t* db = NULL;
  weir_status_t* status = weir_sqlite_open(at("in/data.db"), &db);
  int columns = 0;
  bool is_end = false;
  if (!status) status = weir_sqlite_prepare(db, query, &columns);
  if (!status) status = weir_sqlite_step(db, NULL, &is_end);
  if (weir_status_code(status) != code) print_message("%s\n", query);
  if (code == WEIR_OK) assert_null(status);
  else assert_non_null(status);
  weir_status_destroy(status);
  weir_sqlite_close(db);
}

static void test_sqlite(void** state) {
  (void)state;
  weir_sqlite_t* db = NULL;
  char query[256];
  weir_status_t* status = weir_sqlite_open(at("in/data.db"), &db);
  if (weir_status_code(status) == WEIR_UNIMPLEMENTED) {
    weir_status_destroy(status);
    skip();
  }
  assert_null(status);
  weir_sqlite_close(db);
  add();
  expect(weir_sqlite_open(at("out/data.db"), &db), WEIR_PERMISSION_DENIED);
  expect(weir_sqlite_open("file:/etc/passwd", &db), WEIR_PERMISSION_DENIED);
  run_query("CREATE TABLE IF NOT EXISTS t (x INTEGER)", WEIR_OK);
  run_query("SELECT count(*) FROM t", WEIR_OK);
  snprintf(query, sizeof(query), "ATTACH DATABASE '%s' AS other", at("out/attached.db"));
  run_query(query, WEIR_PERMISSION_DENIED);
  snprintf(query, sizeof(query), "VACUUM INTO '%s'", at("out/vacuumed.db"));
  run_query(query, WEIR_PERMISSION_DENIED);
  snprintf(query, sizeof(query), "PRAGMA temp_store_directory = '%s'", at("out"));
  run_query(query, WEIR_PERMISSION_DENIED);
  assert_int_equal(access(at("out/attached.db"), F_OK), -1);
  assert_int_equal(access(at("out/vacuumed.db"), F_OK), -1);
  weir_roots_remove();
}

static void test_lists(void** state) {
  (void)state;
  const char* bad[] = {"", ":", "/tmp:", "/no/such/folder", "/tmp:/no/such/folder", "/etc/passwd"};
  for (size_t i = 0; i < WEIR_COUNT_OF(bad); ++i) {
    expect(weir_roots_add(bad[i]), WEIR_INVALID_ARGUMENT);
    assert_false(weir_roots_are_set());
  }
  assert_null(weir_roots_add(NULL));
  assert_false(weir_roots_are_set());
  add();
  expect(weir_roots_add("/tmp"), WEIR_FAILED_PRECONDITION);
  add();
  weir_roots_remove();
  assert_true(weir_roots_are_set());
  weir_roots_remove();
  assert_false(weir_roots_are_set());
  assert_null(weir_roots_add("/"));
  expect(weir_roots_check("/etc/passwd", WEIR_ROOTS_OPEN), WEIR_OK);
  weir_roots_remove();
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_paths), cmocka_unit_test(test_relative),
                                     cmocka_unit_test(test_functions),
                                     cmocka_unit_test(test_sqlite), cmocka_unit_test(test_lists)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}

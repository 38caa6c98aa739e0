// temporary_test.c — Which temporary files are removed, and that no others are.
#include "file/temporary.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/log.h"
#include "file/bundle.h"
#include "file/checkpoint_v1.h"
#include "file/testing.h"

static void make_file(const char* name, int days_old) {
  int fd = open(test_path(name), O_WRONLY | O_CREAT | O_EXCL, 0600);
  assert_true(fd >= 0);
  time_t then = time(NULL) - (time_t)days_old * 24 * 3600;
  const struct timespec times[] = {{.tv_sec = then}, {.tv_sec = then}};
  assert_int_equal(futimens(fd, times), 0);
  close(fd);
}

// The name of a temporary file of a process that has ended.
static void name_of_the_dead(char* out_name, size_t size) {
  int ends[2], end = 0;
  assert_int_equal(pipe(ends), 0);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    weir_strbuf_t name = {0};
    weir_strbuf_puts(&name, "m.index");
    weir_temporary_append(&name);
    _exit(write(ends[1], name.data, name.size) == (ssize_t)name.size ? 0 : 1);
  }
  ssize_t got = read(ends[0], out_name, size - 1);
  assert_true(got > 0);
  out_name[got] = '\0';
  assert_int_equal(waitpid(child, &end, 0), child);
  assert_int_equal(end, 0);
  close(ends[0]);
  close(ends[1]);
}

// What |written| says of the time counts, not this host's clock, which may be wrong.
static void check_age(int written_days_old, int days_old, bool goes) {
  const char* const name = "a.tempstate0123456789abcdef-1234-0123456789abcdef";
  make_file("written", written_days_old);
  make_file(name, days_old);
  weir_temporary_clean(test_path("written"));
  assert_int_equal(weir_fs_exists(test_path(name)), !goes);
  if (!goes) CHECK_OK(weir_fs_remove(test_path(name)));
  CHECK_OK(weir_fs_remove(test_path("written")));
}

static void test_whose_clock(void** state) {
  (void)state;
  check_age(0, 2, true);
  check_age(9, 9, false);
  check_age(-9, -9, false);
  check_age(9, 0, false);
  check_age(7, 9, true);
}

static void test_which_go(void** state) {
  (void)state;
  const struct {
    const char* name;
    int days_old;
    bool goes;
  } cases[] = {
      // Another host's: nobody knows whether the process lives, but time tells.
      {"m.index.tempstate0123456789abcdef-1234-0123456789abcdef", 0, false},
      {"m.data.tempstate0123456789abcdef-1234-0123456789abcdef", 2, true},
      {"checkpoint.tempstate0123456789abcdef-1-0123456789abcdef", 2, true},
      {".tempstatex.tempstate0123456789abcdef-1-0123456789abcdef", 2, true},
      // Not ours, whatever the age.
      {"m.index.tempstate123456789", 9, false},
      {"m.index.tempstate", 9, false},
      {"m.index", 9, false},
      {"tempstate0123456789abcdef-1234-0123456789abcdef", 9, false},
      {"m.tempstate0123456789abcdef-1234-0123456789abcdef.copy", 9, false},
      {"m.tempstate0123456789abcdef-1234-0123456789abcde", 9, false},
      {"m.tempstate0123456789abcdeg-1234-0123456789abcdef", 9, false},
      {"m.tempstate0123456789abcdef--234-0123456789abcdef", 9, false},
      {"m.tempstate0123456789abcdef-0-0123456789abcdef", 9, false},
      {"m.tempstate0123456789abcdef-99999999999999999999-0123456789abcdef", 9, false},
  };
  weir_strbuf_t own = {0}, own_old = {0};
  char dead[128];
  const char* const folder = "f.tempstate0123456789abcdef-1234-0123456789abcdef";
  name_of_the_dead(dead, sizeof(dead));
  weir_strbuf_puts(&own, "own");
  weir_temporary_append(&own);
  weir_strbuf_puts(&own_old, "own");
  weir_temporary_append(&own_old);
  assert_string_not_equal(own.data, own_old.data);
  make_file(dead, 0);
  make_file(own.data, 0);
  make_file(own_old.data, 9);
  assert_int_equal(mkdir(test_path(folder), 0700), 0);
  for (size_t i = 0; i < WEIR_COUNT_OF(cases); ++i) make_file(cases[i].name, cases[i].days_old);
  make_file("written", 0);
  weir_temporary_clean(test_path("written"));
  assert_false(weir_fs_exists(test_path(dead)));
  assert_true(weir_fs_exists(test_path(own.data)));
  assert_true(weir_fs_exists(test_path(own_old.data)));
  assert_true(weir_fs_exists(test_path(folder)));
  for (size_t i = 0; i < WEIR_COUNT_OF(cases); ++i)
    assert_int_equal(weir_fs_exists(test_path(cases[i].name)), !cases[i].goes);
  weir_strbuf_free(&own);
  weir_strbuf_free(&own_old);
}

// ---- what kills leave, and the next save removes ----

static weir_status_t* save_v1(void) {
  weir_v1_writer_t* writer = NULL;
  weir_tensor_t* value = NULL;
  const int64_t one = 1;
  const weir_slice_t all = {.rank = 1, .lengths = {1}};
  WEIR_TRY(weir_tensor_create_from(WEIR_DTYPE_INT64, 1, &one, &one, &value));
  weir_status_t* status = weir_v1_writer_create(test_path("first"), &writer);
  if (!status) status = weir_v1_writer_add(writer, weir_view_of("w"), &one, &all, value);
  if (!status) status = weir_v1_writer_finish(writer);
  weir_v1_writer_destroy(writer);
  weir_tensor_release(value);
  return status;
}

static weir_status_t* save_v2(void) {
  weir_bundle_writer_t* writer = NULL;
  weir_status_t* status = weir_bundle_writer_create(test_path("second"), 1, &writer);
  if (!status) status = weir_bundle_finish(writer);
  weir_bundle_writer_destroy(writer);
  return status;
}

static weir_status_t* replace(void) {
  return weir_fs_replace(test_path("checkpoint"), weir_view_of("text"));
}

// Calls |save| in a process that is killed as it writes the first byte.
static void save_killed(weir_status_t* (*save)(void)) {
  int end = 0;
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    const struct rlimit none = {.rlim_cur = 0, .rlim_max = 0}, no_core = none;
    signal(SIGXFSZ, SIG_DFL);
    bool is_set = setrlimit(RLIMIT_CORE, &no_core) == 0 && setrlimit(RLIMIT_FSIZE, &none) == 0;
    _exit(is_set && !save() ? 0 : 1);
  }
  assert_int_equal(waitpid(child, &end, 0), child);
  assert_true(WIFSIGNALED(end));
  assert_int_equal(WTERMSIG(end), SIGXFSZ);
}

static size_t count_files(void) {
  weir_names_t names = {0};
  CHECK_OK(weir_fs_list(test_dir, &names));
  const size_t count = names.count;
  weir_names_free(&names);
  return count;
}

static void check_killed(weir_status_t* (*killed)(void), weir_status_t* (*next)(void),
                         size_t files) {
  save_killed(killed);
  assert_int_equal(count_files(), 1);
  CHECK_OK(next());
  assert_int_equal(count_files(), files);
}

static void test_killed_v1(void** state) {
  (void)state;
  check_killed(save_v1, save_v1, 1);
}

static void test_killed_state(void** state) {
  (void)state;
  check_killed(replace, save_v2, 2);  // data and index
}

// A directory that is not there is nobody's trouble, but somebody may want to know.
static void test_no_directory(void** state) {
  (void)state;
  char said[512];
  int ends[2], end = 0;
  assert_int_equal(pipe(ends), 0);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    bool is_set = dup2(ends[1], STDERR_FILENO) >= 0 && setenv("WEIR_LOG_LEVEL", "1", 1) == 0;
    weir_log_read_level();
    weir_temporary_clean(test_path("none/m.index"));
    _exit(is_set ? 0 : 1);
  }
  close(ends[1]);
  assert_int_equal(waitpid(child, &end, 0), child);
  assert_int_equal(end, 0);
  ssize_t got = read(ends[0], said, sizeof(said) - 1);
  assert_true(got > 0);
  said[got] = '\0';
  assert_non_null(strstr(said, "none/m.index' stay: "));
  close(ends[0]);
}

int main(void) {
  const struct CMUnitTest tests[] = {FILE_TEST(test_which_go), FILE_TEST(test_whose_clock),
                                     FILE_TEST(test_no_directory), FILE_TEST(test_killed_v1),
                                     FILE_TEST(test_killed_state)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

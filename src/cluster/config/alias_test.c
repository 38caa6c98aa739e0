// alias_test.c — What a process is called in a cluster that a client describes.
#include "cluster/config/alias.h"

#include "testing/tensors.h"
#include "wire/wire.h"

// A ClusterDef: job "a" with task 0, job "b" with tasks 0 and 7.
static void put_cluster(weir_strbuf_t* out) {
  static const struct {
    const char *job, *address;
    int index;
  } tasks[] = {{"a", "h1:1", 0}, {"b", "h2:1", 0}, {"b", "h3:1", 7}};
  for (size_t i = 0; i < WEIR_COUNT_OF(tasks); ++i) {
    size_t job = weir_wire_begin(out, 1);
    weir_wire_put_string(out, 1, tasks[i].job);
    size_t entry = weir_wire_begin(out, 2);
    weir_wire_put_int(out, 1, tasks[i].index);
    weir_wire_put_string(out, 2, tasks[i].address);
    weir_wire_end(out, entry);
    weir_wire_end(out, job);
  }
}

static weir_status_t* find(const char* target, const char* job, int index, weir_alias_t** out) {
  weir_strbuf_t cluster = {0};
  put_cluster(&cluster);
  weir_status_t* status =
      weir_alias_find(weir_view_of(target), job, index, weir_strbuf_view(&cluster), out);
  weir_strbuf_free(&cluster);
  return status;
}

static void test_find(void** state) {
  (void)state;
  static const struct {
    const char *target, *job;
    int index;
    const char* task;
  } cases[] = {
      {"grpc://h3:1", "localhost", 0, "/job:b/replica:0/task:7"},
      {"h1:1", "localhost", 0, "/job:a/replica:0/task:0"},
      {"h1:1", "b", 7, "/job:a/replica:0/task:0"},  // the address says more than the name
      {"elsewhere:1", "b", 7, "/job:b/replica:0/task:7"},
      {"", "a", 0, "/job:a/replica:0/task:0"},
  };
  for (size_t i = 0; i < WEIR_COUNT_OF(cases); ++i) {
    weir_alias_t* alias = NULL;
    check_ok(find(cases[i].target, cases[i].job, cases[i].index, &alias));
    assert_string_equal(alias->task, cases[i].task);
    assert_string_equal(weir_cluster_spec_find(&alias->spec, "b", 7), "h3:1");
    weir_alias_release(weir_alias_retain(alias));
    weir_alias_release(alias);
  }
  weir_alias_release(weir_alias_retain(NULL));
}

static void test_errors(void** state) {
  (void)state;
  weir_alias_t* alias = NULL;
  check_error(find("grpc://h4:1", "c", 0, &alias), WEIR_INVALID_ARGUMENT, "h4:1");
  check_error(find("", "b", 1, &alias), WEIR_INVALID_ARGUMENT, "task 1 of job 'b'");
  check_error(weir_alias_find(weir_view_of("h1:1"), "a", 0, weir_view("\x0a\x05", 2), &alias),
              WEIR_INVALID_ARGUMENT, "ClusterDef");
  check_error(weir_alias_create(weir_view_of("no job"), 0, weir_view("", 0), &alias),
              WEIR_INVALID_ARGUMENT, "no job");
  assert_null(alias);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_find), cmocka_unit_test(test_errors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

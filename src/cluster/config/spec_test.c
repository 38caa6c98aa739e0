// spec_test.c — Jobs and tasks of a cluster, and the ClusterDef message.
#include "cluster/config/spec.h"

#include "testing/tensors.h"
#include "wire/wire.h"

static void add(weir_cluster_spec_t* spec, const char* job, int index, const char* address) {
  check_ok(weir_cluster_spec_add(spec, weir_view_of(job), index, weir_view_of(address)));
}

static void test_tasks_are_sorted(void** state) {
  (void)state;
  weir_cluster_spec_t spec = {.job_count = 0};
  add(&spec, "ps", 2, "c:1");
  add(&spec, "ps", 0, "a:1");
  add(&spec, "worker", 5, "w:1");  // numbers may have gaps
  add(&spec, "ps", 1, "b:1");
  assert_int_equal(spec.job_count, 2);
  assert_int_equal(spec.jobs[0].task_count, 3);
  for (int i = 0; i < 3; ++i) assert_int_equal(spec.jobs[0].tasks[i].index, i);
  assert_string_equal(weir_cluster_spec_find(&spec, "ps", 1), "b:1");
  assert_string_equal(weir_cluster_spec_find(&spec, "worker", 5), "w:1");
  assert_null(weir_cluster_spec_find(&spec, "worker", 0));
  assert_null(weir_cluster_spec_find(&spec, "nobody", 0));
  weir_cluster_spec_free(&spec);
  weir_cluster_spec_free(&spec);  // empty by then
}

static void test_task_given_twice(void** state) {
  (void)state;
  weir_cluster_spec_t spec = {.job_count = 0};
  add(&spec, "ps", 1, "a:1");
  add(&spec, "ps", 3, "b:1");
  check_error(weir_cluster_spec_add(&spec, weir_view_of("ps"), 1, weir_view_of("c:1")),
              WEIR_ALREADY_EXISTS, "task 1 of job 'ps' is given twice: a:1 and c:1");
  check_error(weir_cluster_spec_add(&spec, weir_view_of("ps"), 3, weir_view_of("c:1")),
              WEIR_ALREADY_EXISTS, "task 3");
  assert_int_equal(spec.jobs[0].task_count, 2);
  weir_cluster_spec_free(&spec);
}

// ---- ClusterDef ----

static void put_task(weir_strbuf_t* out, int64_t index, const char* address) {
  size_t entry = weir_wire_begin(out, 2);
  if (index) weir_wire_put_int(out, 1, index);
  weir_wire_put_string(out, 2, address);
  weir_wire_end(out, entry);
}

static void test_cluster_def(void** state) {
  (void)state;
  weir_cluster_spec_t spec = {.job_count = 0};
  weir_strbuf_t def = {0};
  size_t job = weir_wire_begin(&def, 1);
  put_task(&def, 0, "a:1");  // before the name: fields come in any order
  weir_wire_put_string(&def, 1, "ps");
  put_task(&def, 7, "b:1");
  weir_wire_end(&def, job);
  job = weir_wire_begin(&def, 1);
  weir_wire_put_string(&def, 1, "empty");
  weir_wire_end(&def, job);
  check_ok(weir_cluster_spec_parse_def(&spec, weir_strbuf_view(&def)));
  assert_string_equal(weir_cluster_spec_find(&spec, "ps", 0), "a:1");
  assert_string_equal(weir_cluster_spec_find(&spec, "ps", 7), "b:1");
  assert_int_equal(spec.job_count, 1);
  weir_cluster_spec_free(&spec);
  // Every prefix of it is an error or a smaller cluster.
  for (size_t size = 0; size < def.size; ++size) {
    weir_status_destroy(weir_cluster_spec_parse_def(&spec, weir_view(def.data, size)));
    weir_cluster_spec_free(&spec);
  }
  weir_strbuf_free(&def);
}

static void test_bad_cluster_defs(void** state) {
  (void)state;
  static const int64_t bad[] = {-1, INT64_C(1) << 31, INT64_MIN};
  weir_cluster_spec_t spec = {.job_count = 0};
  for (size_t i = 0; i < WEIR_COUNT_OF(bad); ++i) {
    weir_strbuf_t def = {0};
    size_t job = weir_wire_begin(&def, 1);
    weir_wire_put_string(&def, 1, "ps");
    put_task(&def, bad[i], "a:1");
    weir_wire_end(&def, job);
    check_error(weir_cluster_spec_parse_def(&spec, weir_strbuf_view(&def)), WEIR_INVALID_ARGUMENT,
                "job 'ps' has a task");
    weir_strbuf_free(&def);
  }
  check_error(weir_cluster_spec_parse_def(&spec, weir_view("\x0a\x05hi", 4)), WEIR_INVALID_ARGUMENT,
              "ClusterDef");
  weir_cluster_spec_free(&spec);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_tasks_are_sorted),
      cmocka_unit_test(test_task_given_twice),
      cmocka_unit_test(test_cluster_def),
      cmocka_unit_test(test_bad_cluster_defs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

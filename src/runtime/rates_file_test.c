// rates_file_test.c — Rates as text: there and back, and what is refused.
#include "runtime/rates_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "testing/world.h"

#define GOOD "CPU:0 flops=2 bytes=3 node_ns=500 copy_bytes=4\n"

typedef struct two_t {
  weir_runtime_t* runtime;
  weir_rates_t rates[2];
} two_t;

static int set_up(void** state) {
  two_t* two = weir_calloc(1, sizeof(*two));
  assert_non_null(two);
  check_ok(weir_runtime_create(
      &(weir_runtime_options_t){.container = "", .threads = 1, .devices = "cpu,guard"},
      &two->runtime));
  *state = two;
  return 0;
}

static int tear_down(void** state) {
  two_t* two = *state;
  weir_runtime_release(two->runtime);
  weir_free(two);
  return 0;
}

static weir_status_t* parse(two_t* two, const char* text) {
  return weir_rates_parse(weir_view_of(text), two->runtime, two->rates);
}

static void test_there_and_back(void** state) {
  two_t* two = *state;
  weir_strbuf_t text = {0};
  check_ok(parse(two,
                 "# a comment\n\nTPU:7 flops=1 bytes=1 copy_bytes=1\n" GOOD
                 "  GUARD:0  flops=1e10 bytes=5 node_ns=6.5 delay_ns=7 submit_ns=8 copy_bytes=9 "
                 "copy_ns=10 speed=0.25"));
  assert_true(two->rates[0].node_ns == 500 && two->rates[0].speed == 1 && two->rates[0].is_host);
  assert_true(two->rates[0].delay_ns == 0);
  assert_true(two->rates[1].flops == 1e10 && two->rates[1].speed == 0.25);
  assert_true(!two->rates[1].is_host && two->rates[1].processor == 1);
  weir_rates_t before = two->rates[1];
  weir_rates_print(two->runtime, two->rates, &text);
  check_ok(weir_strbuf_finish(&text));
  two->rates[1] = (weir_rates_t){0};
  check_ok(parse(two, text.data));
  assert_true(two->rates[1].node_ns == before.node_ns && two->rates[1].copy_ns == 10 &&
              two->rates[1].submit_ns == 8 && two->rates[1].copy_bytes == 9);
  weir_strbuf_free(&text);
}

static void test_bad_rates(void** state) {
  static const struct {
    const char* text;
    weir_code_t code;
    const char* message;
  } cases[] = {
      {"", WEIR_NOT_FOUND, "nothing is said of CPU:0"},
      {GOOD, WEIR_NOT_FOUND, "nothing is said of GUARD:0"},
      {GOOD GOOD, WEIR_INVALID_ARGUMENT, "line 2: CPU:0 is there twice"},
      {"\nCPU:0 flops=2 bytes=3 weight=4", WEIR_INVALID_ARGUMENT,
       "line 2: 'weight=4' is not among"},
      {"CPU:0 flops=1 bytes=2 flops=1", WEIR_INVALID_ARGUMENT, "line 1: flops= is there twice"},
      {"CPU:0 flops", WEIR_INVALID_ARGUMENT, "'flops' is no rate"},
      {"CPU:0 flops=", WEIR_INVALID_ARGUMENT, "'flops=' is no rate"},
      {"CPU:0 flops=fast", WEIR_INVALID_ARGUMENT, "'flops=fast' is no rate"},
      {"CPU:0 flops=0", WEIR_INVALID_ARGUMENT, "'flops=0' is no rate"},
      {"CPU:0 flops=-1", WEIR_INVALID_ARGUMENT, "'flops=-1' is no rate"},
      {"CPU:0 flops=nan", WEIR_INVALID_ARGUMENT, "'flops=nan' is no rate"},
      {"CPU:0 node_ns=inf", WEIR_INVALID_ARGUMENT, "'node_ns=inf' is no rate"},
      {"CPU:0 flops=2 copy_bytes=1", WEIR_INVALID_ARGUMENT, "bytes= is missing"},
      {"CPU:0 flops=11111111111111111111111111111111111111111111111111111111111111111",
       WEIR_INVALID_ARGUMENT, "is no rate"},
  };
  for (size_t i = 0; i < WEIR_COUNT_OF(cases); ++i)
    check_error(parse(*state, cases[i].text), cases[i].code, cases[i].message);
  two_t* two = *state;
  check_error(weir_rates_load("/no/such/rates", two->runtime, two->rates), WEIR_NOT_FOUND,
              "rates '/no/such/rates'");
}

static weir_status_t* load_cluster(const char* text, weir_arena_t* arena,
                                   weir_placement_t** out_devices, int* out_count) {
  char path[] = "/tmp/weir_rates.XXXXXX";
  int file = mkstemp(path);
  assert_true(file >= 0);
  assert_int_equal(write(file, text, strlen(text)), strlen(text));
  close(file);
  weir_status_t* status = weir_cluster_rates_load(path, arena, out_devices, out_count);
  unlink(path);
  return status;
}

#define TASK "/job:worker/replica:0/task:%d/device:CPU:0 flops=1 bytes=1 copy_bytes=1"

static void test_cluster(void** state) {
  weir_arena_t arena = {0};
  weir_placement_t* devices = NULL;
  int count = 0;
  char text[512];
  (void)state;
  snprintf(text, sizeof(text), "# two\n" TASK "\n" TASK " copy_ns=5 step_ns=7\n", 0, 1);
  check_ok(load_cluster(text, &arena, &devices, &count));
  assert_int_equal(count, 2);
  assert_string_equal(devices[1].device, "/job:worker/replica:0/task:1/device:CPU:0");
  assert_true(devices[0].rates.is_host && !devices[1].rates.is_host);
  assert_true(devices[1].task == 1 && devices[1].rates.processor == 1);
  assert_true(devices[1].rates.copy_ns == 5 && devices[1].rates.step_ns == 7);
  check_error(load_cluster("# none", &arena, &devices, &count), WEIR_INVALID_ARGUMENT, "no task");
  check_error(load_cluster("CPU:0 flops=1", &arena, &devices, &count), WEIR_INVALID_ARGUMENT,
              "line 1: ");
  check_error(load_cluster("/job:a/task:0/device:GPU:0", &arena, &devices, &count),
              WEIR_INVALID_ARGUMENT, "is not the full name of a task's CPU");
  check_error(load_cluster("\n/job:a/task:0/device:CPU:0 flops=1", &arena, &devices, &count),
              WEIR_INVALID_ARGUMENT, "line 2: bytes= is missing");
  weir_arena_free(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_there_and_back, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_bad_rates, set_up, tear_down),
      cmocka_unit_test(test_cluster),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

// transfer_log_test.c — What a task notes of the tensors that it fetched, and for how long.
#include "cluster/task/transfer_log.h"

#include "base/alloc.h"
#include "cluster/task/fields.h"
#include "testing/tensors.h"
#include "wire/wire.h"

#define FROM "/job:ps/replica:0/task:0/device:CPU:0"
#define TO "/job:worker/replica:0/task:1/device:CPU:0"

enum { FIELD = 5, MAX_SIZE = 4 << 20 };

static weir_transfer_t transfer_of(int64_t step_id, const char* key) {
  return (weir_transfer_t){
      .step_id = step_id, .key = weir_view_of(key), .start_us = 100, .end_us = 104, .byte_size = 8};
}

// Nested bytes, or a number, of a field that must be there.
static weir_view_t bytes_of(weir_view_t message, uint32_t field) {
  weir_wire_reader_t reader = weir_wire_reader(message);
  while (weir_wire_next(&reader)) {
    if (reader.field == field && reader.type == WEIR_WIRE_BYTES) return reader.bytes;
  }
  fail_msg("no field %u", field);
  return weir_view("", 0);
}
static int64_t number_of(weir_view_t message, uint32_t field) {
  weir_wire_reader_t reader = weir_wire_reader(message);
  while (weir_wire_next(&reader)) {
    if (reader.field == field && reader.type == WEIR_WIRE_VARINT) return weir_wire_int(&reader);
  }
  fail_msg("no field %u", field);
  return 0;
}

static int count_of(weir_view_t message, uint32_t field) {
  int count = 0;
  weir_wire_reader_t reader = weir_wire_reader(message);
  while (weir_wire_next(&reader)) count += reader.field == field;
  check_ok(weir_wire_check(&reader, "message"));
  return count;
}

// How many transfers are told of the step; they are forgotten.
static int take_count(weir_transfer_log_t* log, int64_t step_id) {
  weir_strbuf_t out = {0};
  weir_transfer_log_take(log, step_id, FIELD, &out);
  assert_false(out.failed);
  int count = 0;
  if (out.size > 0) {
    weir_view_t labeled = bytes_of(weir_strbuf_view(&out), FIELD);
    assert_int_equal(number_of(labeled, LABELED_STEP_STATS_STEP_ID), step_id);
    count = count_of(bytes_of(labeled, LABELED_STEP_STATS_STEP_STATS), STEP_STATS_DEV_STATS);
  }
  weir_strbuf_free(&out);
  return count;
}

// It is on while any of those who switched it on has not switched it off.
static void test_switch(void** state) {
  (void)state;
  weir_transfer_log_t log;
  weir_transfer_log_init(&log);
  assert_false(weir_transfer_log_is_on(&log));
  for (int i = 0; i < 3; ++i) weir_transfer_log_switch(&log, false);  // by one who never asked
  assert_false(weir_transfer_log_is_on(&log));
  weir_transfer_log_switch(&log, true);
  assert_true(weir_transfer_log_is_on(&log));
  weir_transfer_log_switch(&log, true);
  weir_transfer_log_switch(&log, false);
  assert_true(weir_transfer_log_is_on(&log));
  weir_transfer_log_switch(&log, false);
  assert_false(weir_transfer_log_is_on(&log));
  weir_transfer_log_free(&log);
}

static void check_node(weir_view_t node, int64_t micros, const char* label) {
  assert_true(weir_view_is(bytes_of(node, NODE_EXEC_STATS_NODE_NAME), "RecvTensor"));
  assert_int_equal(number_of(node, NODE_EXEC_STATS_ALL_START_MICROS), 100);
  assert_int_equal(number_of(node, NODE_EXEC_STATS_OP_END_REL_MICROS), micros);
  assert_int_equal(number_of(node, NODE_EXEC_STATS_ALL_END_REL_MICROS), micros);
  assert_true(weir_view_is(bytes_of(node, NODE_EXEC_STATS_TIMELINE_LABEL), label));
  weir_view_t output = bytes_of(node, NODE_EXEC_STATS_OUTPUT);
  weir_view_t description = bytes_of(output, NODE_OUTPUT_TENSOR_DESCRIPTION);
  weir_view_t allocation = bytes_of(description, TENSOR_DESCRIPTION_ALLOCATION_DESCRIPTION);
  assert_int_equal(number_of(allocation, ALLOCATION_DESCRIPTION_REQUESTED_BYTES), 8);
}

static void test_what_is_told(void** state) {
  (void)state;
  weir_transfer_log_t log;
  weir_transfer_log_init(&log);
  weir_transfer_t transfer = transfer_of(7, FROM ";00aa;" TO ";edge_1_x;0:0");
  weir_transfer_log_add(&log, &transfer);
  transfer.end_us = transfer.start_us;  // no time at all is a microsecond
  weir_transfer_log_add(&log, &transfer);
  weir_strbuf_t out = {0};
  weir_transfer_log_take(&log, 7, FIELD, &out);
  weir_view_t labeled = bytes_of(weir_strbuf_view(&out), FIELD);
  assert_int_equal(number_of(labeled, LABELED_STEP_STATS_STEP_ID), 7);
  weir_wire_reader_t devices = weir_wire_reader(bytes_of(labeled, LABELED_STEP_STATS_STEP_STATS));
  for (int i = 0; i < 2; ++i) {
    assert_true(weir_wire_next(&devices));
    assert_true(weir_view_is(bytes_of(devices.bytes, DEVICE_STEP_STATS_DEVICE), TO));
    check_node(bytes_of(devices.bytes, DEVICE_STEP_STATS_NODE_STATS), i == 0 ? 4 : 1,
               i == 0 ? "[8B] [16.000000Mb/s] edge_1_x from " FROM " to " TO
                      : "[8B] [64.000000Mb/s] edge_1_x from " FROM " to " TO);
  }
  assert_false(weir_wire_next(&devices));
  weir_strbuf_free(&out);
  weir_transfer_log_free(&log);
}

// Each step's are its own, and told once.
static void test_steps(void** state) {
  (void)state;
  weir_transfer_log_t log;
  weir_transfer_log_init(&log);
  for (int64_t step = 1; step <= 3; ++step) {
    weir_transfer_t transfer = transfer_of(step, FROM ";00aa;" TO ";x;0:0");
    for (int64_t i = 0; i < step; ++i) weir_transfer_log_add(&log, &transfer);
  }
  assert_int_equal(take_count(&log, 4), 0);
  assert_int_equal(take_count(&log, 2), 2);
  assert_int_equal(take_count(&log, 2), 0);
  weir_transfer_t transfer = transfer_of(2, FROM ";00aa;" TO ";x;0:0");
  weir_transfer_log_add(&log, &transfer);
  assert_int_equal(take_count(&log, 2), 1);
  assert_int_equal(take_count(&log, 3), 3);
  weir_transfer_log_clear(&log);
  assert_int_equal(take_count(&log, 1), 0);
  assert_int_equal(log.size, 0);
  weir_transfer_log_free(&log);
}

// A key without two devices is of no other task.
static void test_other_keys(void** state) {
  (void)state;
  static const char* const keys[] = {"", "x", FROM ";00aa", FROM ";00aa;" TO};
  weir_transfer_log_t log;
  weir_transfer_log_init(&log);
  for (size_t i = 0; i < WEIR_COUNT_OF(keys); ++i) {
    weir_transfer_t transfer = transfer_of(1, keys[i]);
    weir_transfer_log_add(&log, &transfer);
  }
  assert_int_equal(log.size, 0);
  assert_int_equal(take_count(&log, 1), 0);
  weir_transfer_log_free(&log);
}

// Adds a transfer whose name has |size| bytes; by how much the log grew.
static size_t add_long(weir_transfer_log_t* log, int64_t step_id, size_t size) {
  weir_strbuf_t key = {0};
  weir_strbuf_puts(&key, FROM ";00aa;" TO ";");
  while (size-- > 0) weir_strbuf_putc(&key, 'x');
  weir_strbuf_puts(&key, ";0:0");
  weir_transfer_t transfer = transfer_of(step_id, key.data);
  size_t before = log->size;
  weir_transfer_log_add(log, &transfer);
  weir_strbuf_free(&key);
  return log->size - before;
}

// What fits is kept to the last byte; then all of it is lost but what came last.
static void test_bound(void** state) {
  (void)state;
  const size_t long_name = 1 << 20;
  for (size_t over = 0; over < 2; ++over) {
    weir_transfer_log_t log;
    weir_transfer_log_init(&log);
    size_t rest = MAX_SIZE, more = 0;
    for (int64_t step = 1; step <= 3; ++step) {
      size_t size = add_long(&log, step, long_name);
      rest -= size;
      more = size - long_name;  // what there is beside the name
    }
    add_long(&log, 4, rest - more + over);
    if (over == 0) {
      assert_int_equal(log.size, MAX_SIZE);
      assert_int_equal(take_count(&log, 1), 1);
      assert_int_equal(take_count(&log, 4), 1);
      assert_int_equal(add_long(&log, 5, long_name), long_name + more);  // there is room again
      assert_int_equal(take_count(&log, 2), 1);
    } else {
      assert_int_equal(log.size, rest + 1);
      assert_int_equal(take_count(&log, 3), 0);
      assert_int_equal(take_count(&log, 4), 1);
    }
    weir_transfer_log_free(&log);
  }
}

// Without memory a step's transfers are not told, and nothing else changes.
static void test_out_of_memory(void** state) {
  (void)state;
  weir_transfer_t transfer = transfer_of(1, FROM ";00aa;" TO ";x;0:0");
  weir_transfer_t other = transfer_of(2, FROM ";00aa;" TO ";y;0:0");
  bool is_done = false;
  for (int64_t n = 1; !is_done; ++n) {
    weir_transfer_log_t log;
    weir_transfer_log_init(&log);
    weir_transfer_log_add(&log, &other);
    weir_alloc_fail_at(n, false);
    weir_transfer_log_add(&log, &transfer);
    weir_alloc_fail_at(0, false);
    is_done = take_count(&log, 1) == 1;
    assert_int_equal(take_count(&log, 2), 1);
    assert_int_equal(log.size, 0);
    assert_true(n < 100);
    weir_transfer_log_free(&log);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_switch), cmocka_unit_test(test_what_is_told),
      cmocka_unit_test(test_steps),  cmocka_unit_test(test_other_keys),
      cmocka_unit_test(test_bound),  cmocka_unit_test(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

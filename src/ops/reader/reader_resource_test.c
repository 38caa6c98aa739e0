// reader_resource_test.c — Readers: reads that wait for a name, take turns, are cancelled; many
// empty files; states that cannot be.

#include "ops/reader/reader_resource.h"

#include <stdlib.h>
#include <unistd.h>

#include "file/fs.h"
#include "testing/cmocka.h"

// A kernel call that somebody else may finish.
typedef struct call_t {
  weir_kernel_ctx_t ctx;
  weir_node_def_t node;
  weir_value_t inputs[1];
  weir_value_t outputs[2];
  weir_dtype_t types[2];
  int done_count;
  weir_status_t* status;
} call_t;

typedef struct fixture_t {
  weir_pool_t* pool;
  weir_device_t* device;
  weir_step_t step, other;
  weir_queue_t* queue;
  weir_reader_t* reader;
  char path[64];   // a file of the lines "one" and "two"
  char empty[64];  // an empty file
} fixture_t;

static void make_file(char path[64], const char* text) {
  strcpy(path, "/tmp/weir_reader_test_XXXXXX");
  int file = mkstemp(path);
  assert_true(file >= 0);
  close(file);
  assert_null(weir_fs_write_all(path, weir_view_of(text)));
}

static int set_up(void** state) {
  static const weir_dtype_t type = WEIR_DTYPE_STRING;
  fixture_t* f = calloc(1, sizeof(*f));
  assert_non_null(f);
  assert_null(weir_pool_create(1, &f->pool));
  assert_null(weir_cpu_device_create("", 0, f->pool, &f->device));
  assert_null(weir_cancel_create(NULL, &f->step.cancel));
  assert_null(weir_cancel_create(NULL, &f->other.cancel));
  assert_null(weir_queue_create(
      &(weir_queue_config_t){.name = "q", .component_count = 1, .types = &type, .capacity = -1},
      &f->queue));
  assert_null(
      weir_reader_create(&(weir_reader_config_t){.kind = WEIR_READER_TEXT_LINE}, &f->reader));
  make_file(f->path, "one\ntwo");
  make_file(f->empty, "");
  *state = f;
  return 0;
}

static int tear_down(void** state) {
  fixture_t* f = *state;
  weir_resource_release((weir_resource_t*)f->reader);
  weir_resource_release((weir_resource_t*)f->queue);
  weir_cancel_destroy(f->step.cancel);
  weir_cancel_destroy(f->other.cancel);
  weir_device_release(f->device);
  weir_pool_destroy(f->pool);
  unlink(f->path);
  unlink(f->empty);
  free(f);
  return 0;
}

static void on_done(void* arg, weir_status_t* take_status) {
  call_t* call = arg;
  call->status = take_status;
  call->done_count += 1;
}

static void call_init(call_t* call, fixture_t* f, weir_step_t* step, int outputs) {
  memset(call, 0, sizeof(*call));
  call->types[0] = call->types[1] = WEIR_DTYPE_STRING;
  call->node = (weir_node_def_t){.name = "call",
                                 .op_name = "Call",
                                 .input_types = call->types,
                                 .output_types = call->types,
                                 .input_count = 1,
                                 .output_count = outputs};
  call->ctx = (weir_kernel_ctx_t){.node = &call->node,
                                  .inputs = call->inputs,
                                  .outputs = call->outputs,
                                  .device = f->device,
                                  .step = step,
                                  .input_count = 1,
                                  .output_count = outputs};
}

static void call_free(call_t* call) {
  weir_value_release(&call->inputs[0]);
  weir_value_release(&call->outputs[0]);
  weir_value_release(&call->outputs[1]);
  weir_status_destroy(call->status);
}

static void start_read(call_t* call, fixture_t* f, weir_step_t* step, int64_t limit) {
  call_init(call, f, step, 2);
  weir_reader_read(f->reader, f->queue, &call->ctx, limit,
                   (weir_done_t){.fn = on_done, .arg = call});
}

static void enqueue(fixture_t* f, const char* path) {
  call_t call;
  call_init(&call, f, &f->step, 0);
  assert_null(
      weir_tensor_create_strings(0, NULL, (const char*[]){path}, NULL, &call.inputs[0].tensor));
  weir_queue_enqueue(f->queue, &call.ctx, 0, false, (weir_done_t){.fn = on_done, .arg = &call});
  assert_int_equal(call.done_count, 1);
  assert_null(call.status);
  call_free(&call);
}

static void assert_value(const call_t* call, int64_t i, const char* expected) {
  size_t size = 0;
  assert_int_equal(call->done_count, 1);
  if (call->status) fail_msg("%s", weir_status_message(call->status));
  const char* text = weir_tensor_string(call->outputs[1].tensor, i, &size);
  assert_true(weir_view_is(weir_view(text, size), expected));
}

static void test_reads_wait_and_take_turns(void** state) {
  fixture_t* f = *state;
  call_t a, b, c;
  start_read(&a, f, &f->step, -1);
  start_read(&b, f, &f->step, -1);
  start_read(&c, f, &f->step, 5);
  assert_int_equal(a.done_count + b.done_count + c.done_count, 0);
  enqueue(f, f->path);
  assert_value(&a, 0, "one");
  assert_value(&b, 0, "two");
  assert_int_equal(c.done_count, 0);
  assert_int_equal(weir_reader_files_finished(f->reader), 1);
  enqueue(f, f->path);
  assert_value(&c, 1, "two");
  assert_int_equal(c.outputs[0].tensor->count, 2);
  assert_int_equal(weir_reader_records_produced(f->reader), 4);
  call_free(&a);
  call_free(&b);
  call_free(&c);
}

static void test_cancelled_reads_let_others_go_on(void** state) {
  fixture_t* f = *state;
  call_t a, b, c;
  start_read(&a, f, &f->other, -1);  // waits for a name
  start_read(&b, f, &f->other, -1);  // waits for its turn
  start_read(&c, f, &f->step, -1);
  weir_cancel_start(f->other.cancel);
  assert_int_equal(a.done_count, 1);
  assert_int_equal(b.done_count, 1);
  assert_int_equal(weir_status_code(a.status), WEIR_CANCELLED);
  assert_int_equal(weir_status_code(b.status), WEIR_CANCELLED);
  assert_int_equal(c.done_count, 0);
  enqueue(f, f->path);
  assert_value(&c, 0, "one");
  call_free(&a);
  call_free(&b);
  call_free(&c);
}

static void test_passes_over_many_empty_files(void** state) {
  fixture_t* f = *state;
  enum { COUNT = 5000 };
  call_t a;
  for (int i = 0; i < COUNT; ++i) enqueue(f, f->empty);
  enqueue(f, f->path);
  start_read(&a, f, &f->step, -1);
  assert_value(&a, 0, "one");
  assert_int_equal(weir_reader_files_finished(f->reader), COUNT);
  weir_reader_reset(f->reader);
  assert_int_equal(weir_reader_files_finished(f->reader), 0);
  assert_int_equal(weir_reader_records_produced(f->reader), 0);
  call_free(&a);
}

static void check_restore(weir_reader_t* reader, const char* state, size_t size, const char* text) {
  weir_status_t* status = weir_reader_restore(reader, weir_view(state, size));
  assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
  assert_string_equal(weir_status_message(status), text);
  weir_status_destroy(status);
}

static void test_bad_states_name_the_reader(void** state) {
  weir_reader_t* reader = NULL;
  weir_reader_config_t config = {.kind = WEIR_READER_IDENTITY, .name = "names"};
  (void)state;
  assert_null(weir_reader_create(&config, &reader));
  check_restore(reader, "BOGUS\n\"\377", 8,
                "Could not parse state for IdentityReader 'names': BOGUS\\n\\\"\\377");
  check_restore(reader, "\x08\x02\x10\x01\"\x02yz", 8,
                "Inconsistent work started vs. finished when restoring in IdentityReader 'names': "
                "\nwork_started: 2\nwork_finished: 1\ncurrent_work: \"yz\"");
  check_restore(reader, "\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11,
                "Unexpected negative value when restoring in IdentityReader 'names': "
                "\nnum_records_produced: -1");
  weir_resource_release((weir_resource_t*)reader);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_reads_wait_and_take_turns, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_cancelled_reads_let_others_go_on, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_passes_over_many_empty_files, set_up, tear_down),
      cmocka_unit_test(test_bad_states_name_the_reader),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

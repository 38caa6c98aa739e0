// answer_test.c — Kernels that ask a GPU, on a driver that is a fake: numbers arrive, errors name
// their nodes, cancelled steps end, and nothing of them is recorded.
#include "kernel/cuda/answer.h"

#include <math.h>

#include "base/outcome.h"
#include "device/cuda/cuda_compiler.h"
#include "session/session.h"
#include "testing/cuda_fake.h"
#include "testing/world.h"

// ---- a GPU whose one kernel looks for what is not a number ----

static void run_check(void** args) {
  const float* x = (const float*)cuda_fake_at(*(void**)args[0]);
  uint64_t* found = (uint64_t*)cuda_fake_at(*(void**)args[2]);
  for (int64_t i = 0; i < *(int64_t*)args[1]; ++i) {
    if (isnan(x[i])) *found |= 4;
  }
}

static weir_status_t* compile(const char* name, const char* source, int architecture,
                              char** out_code, size_t* out_size) {
  (void)name, (void)architecture;
  cuda_fake_code_t* code = weir_calloc(1, sizeof(*code));
  if (!code) return weir_out_of_memory();
  memcpy(code->magic, cuda_fake_magic, sizeof(code->magic));
  if (strstr(source, "check_numerics"))
    code->function =
        (cuda_fake_function_t){.run = run_check,
                               .arg_count = 3,
                               .arg_sizes = {sizeof(void*), sizeof(int64_t), sizeof(void*)}};
  *out_code = (char*)code;
  *out_size = sizeof(*code);
  return NULL;
}

static int setup(void** state) {
  weir_cuda_driver_replace(&cuda_fake_driver);
  weir_cuda_compiler_replace(compile);
  return world_setup(state);
}

static int teardown(void** state) {
  int result = world_teardown(state);
  weir_cuda_compiler_replace(NULL);
  weir_cuda_driver_replace(NULL);
  return result;
}

// ---- one kernel ----

static int afters;
static weir_cancel_t* to_cancel;  // in between, if there is one

static weir_status_t* ask(weir_answer_t* answer) {
  int64_t* numbers = NULL;
  void* data = NULL;
  WEIR_TRY(weir_answer_scratch(answer, 3, WEIR_DTYPE_FLOAT, 100, WEIR_ANSWER_ANY, &data));
  WEIR_TRY(weir_answer_numbers(answer, 3, &numbers));
  WEIR_TRY(weir_cuda_set(answer->ctx->device, numbers + 1, 1, sizeof(*numbers)));
  if (to_cancel) weir_cancel_start(to_cancel);
  return NULL;
}

static weir_status_t* ask_nothing(weir_answer_t* answer) {
  weir_tensor_t* y = NULL;
  return weir_kernel_output(answer->ctx, 0, 0, NULL, &y);
}

static weir_status_t* ask_wrongly(weir_answer_t* answer) {
  int64_t* numbers = NULL;
  WEIR_TRY(weir_answer_numbers(answer, 3, &numbers));
  return WEIR_STATUS(ABORTED, "before");
}

static weir_status_t* go_on(weir_answer_t* answer, const int64_t* numbers) {
  weir_tensor_t* y = NULL;
  ++afters;
  assert_true(numbers[0] == 0 && numbers[1] == 0x0101010101010101 && numbers[2] == 0);
  return weir_kernel_output(answer->ctx, 0, 0, NULL, &y);
}

static weir_status_t* run(weir_device_t* device, weir_cancel_t* cancel,
                          weir_status_t* (*before)(weir_answer_t* answer), bool* out_has_output) {
  const weir_dtype_t type = WEIR_DTYPE_FLOAT;
  weir_node_def_t node = {.name = "n", .op_name = "Ask", .output_count = 1};
  node.output_types = (weir_dtype_t*)&type;
  const weir_kernel_def_t kernel = {.device = WEIR_DEVICE_GPU};
  weir_value_t y = {.tensor = NULL};
  weir_step_t step = {.cancel = cancel};
  weir_kernel_ctx_t ctx = {.node = &node,
                           .kernel = &kernel,
                           .outputs = &y,
                           .device = device,
                           .step = &step,
                           .output_count = 1};
  const weir_answer_fns_t fns = {.size = sizeof(weir_answer_t), .before = before, .after = go_on};
  weir_outcome_t outcome;
  weir_outcome_init(&outcome);
  weir_answer_run(&ctx, &fns, (weir_done_t){.fn = weir_outcome_set, .arg = &outcome});
  weir_status_t* status = weir_outcome_wait(&outcome);
  *out_has_output = y.tensor != NULL;
  weir_value_release(&y);
  return status;
}

static void test_both_halves(void** state) {
  (void)state;
  weir_device_t** devices = NULL;
  weir_cancel_t* cancel = NULL;
  int count = 0;
  bool has_output = false;
  check_ok(weir_devices_create("cpu,cuda", NULL, NULL, &devices, &count));
  check_ok(weir_cancel_create(NULL, &cancel));
  afters = 0;
  check_ok(run(devices[1], cancel, ask, &has_output));
  assert_true(has_output && afters == 1);
  check_ok(run(devices[1], cancel, ask_nothing, &has_output));
  assert_true(has_output && afters == 1);
  check_error(run(devices[1], cancel, ask_wrongly, &has_output), WEIR_ABORTED, "before");
  assert_true(!has_output && afters == 1);
  to_cancel = cancel;
  check_error(run(devices[1], cancel, ask, &has_output), WEIR_CANCELLED, "Step was cancelled");
  assert_true(!has_output && afters == 1);
  to_cancel = NULL;
  weir_cancel_destroy(cancel);
  weir_devices_release(devices, count);
}

// ---- steps ----

static weir_status_t* run_step(world_t* w, weir_edge_t x, weir_edge_t y, float value) {
  weir_tensor_t *fed = FLOATS(1, value, 3), *result = NULL;
  weir_step_spec_t spec = {WEIR_FEEDS({x, fed}), WEIR_FETCHES(y)};
  weir_status_t* status = weir_session_run(w->session, &spec, &result);
  if (!status)
    assert_memory_equal(result->data, WEIR_TENSOR_DATA(fed, const float), 3 * sizeof(float));
  weir_tensor_release(result);
  weir_tensor_release(fed);
  return status;
}

static void open_gpu(world_t* w, weir_edge_t* x, weir_edge_t* y) {
  *x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  *y = output(add(w, "CheckNumerics", "look", WEIR_EDGES(*x),
                  WEIR_ATTRS(weir_attr_string("message", "odd"))),
              0);
  weir_session_options_t options = {.threads = 2, .devices = "cpu,cuda"};
  check_ok(weir_session_create(w->graph, &options, &w->session));
}

// Again and again: a step that is the same each time would be recorded by now.
static void test_a_step_that_checks(void** state) {
  world_t* w = *state;
  weir_edge_t x, y;
  open_gpu(w, &x, &y);
  int launches = cuda_fake_launches, graphs = cuda_fake_graph_launches;
  for (int i = 0; i < 8; ++i) {
    check_ok(run_step(w, x, y, 2));
    weir_status_t* status = run_step(w, x, y, NAN);
    assert_non_null(strstr(weir_status_message(status), "look"));
    check_error(status, WEIR_INVALID_ARGUMENT, "odd : Tensor had NaN values");
  }
  assert_int_equal(cuda_fake_launches - launches, 16);
  assert_int_equal(cuda_fake_graph_launches, graphs);
}

// What both halves put in the stream is the node's.
static void test_traces(void** state) {
  world_t* w = *state;
  weir_edge_t x, y;
  open_gpu(w, &x, &y);
  for (int i = 0; i < 3; ++i) {
    weir_tensor_t *fed = FLOATS(1, 2, 3), *result = NULL;
    weir_step_spec_t spec = {WEIR_FEEDS({x, fed}), WEIR_FETCHES(y)};
    char* json = NULL;
    check_ok(weir_session_run_traced(w->session, &spec, &result, &json));
    const char* event = strstr(json, "\"look\"");
    assert_non_null(event);
    assert_non_null(strstr(event + 1, "\"look\""));  // on the host, and in the stream
    weir_buffer_free(json);
    weir_tensor_release(result);
    weir_tensor_release(fed);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_both_halves, setup, teardown),
      cmocka_unit_test_setup_teardown(test_a_step_that_checks, setup, teardown),
      cmocka_unit_test_setup_teardown(test_traces, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

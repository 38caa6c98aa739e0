// functions_test.c — Functions called as steps of their own, from threads that run no kernel.
#include "runtime/functions.h"

#include <pthread.h>

#include "base/outcome.h"
#include "runtime/program.h"
#include "testing/world.h"

// Grow(x) = x + 1, and Wait(), which takes from a queue that is empty.
static const char kLibrary[] =
    "library {"
    " function {signature {name: 'Grow' input_arg {name: 'x' type: DT_FLOAT}"
    "   output_arg {name: 'y' type: DT_FLOAT}}"
    "  node_def {name: 'one' op: 'Const' attr {key: 'dtype' value {type: DT_FLOAT}}"
    "   attr {key: 'value' value {tensor {dtype: DT_FLOAT tensor_shape {} float_val: 1}}}}"
    "  node_def {name: 'sum' op: 'AddV2' input: 'x' input: 'one:output:0'"
    "   attr {key: 'T' value {type: DT_FLOAT}}}"
    "  ret {key: 'y' value: 'sum:z:0'}}"
    " function {signature {name: 'Wait' output_arg {name: 'y' type: DT_FLOAT} is_stateful: true}"
    "  node_def {name: 'queue' op: 'FIFOQueueV2'"
    "   attr {key: 'component_types' value {list {type: DT_FLOAT}}}}"
    "  node_def {name: 'item' op: 'QueueDequeueV2' input: 'queue:handle:0'"
    "   attr {key: 'component_types' value {list {type: DT_FLOAT}}}}"
    "  ret {key: 'y' value: 'item:components:0'}}"
    "}";

typedef struct fixture_t {
  weir_runtime_t* runtime;
  weir_program_t* program;
  weir_functions_t* functions;
} fixture_t;

static fixture_t open_program(world_t* w) {
  fixture_t f = {0};
  import_text(w, kLibrary);
  check_ok(weir_runtime_create(&(weir_runtime_options_t){.container = "localhost", .threads = 2},
                               &f.runtime));
  weir_program_options_t options = {.runtime = f.runtime, .graph = w->graph};
  check_ok(weir_program_create(&options, &f.program));
  f.functions = weir_function_plans_base(f.program->functions);
  return f;
}

static void close_program(fixture_t* f) {
  weir_program_destroy(f->program);
  weir_runtime_release(f->runtime);
}

static weir_function_handle_t handle_of(const fixture_t* f, const char* name) {
  weir_function_handle_t handle = 0;
  weir_func_t func = {.name = weir_view_of(name)};
  check_ok(f->functions->vtable->instantiate(f->functions, &func, &handle));
  return handle;
}

// ---- one call that is waited for ----

static void start(const fixture_t* f, weir_cancel_t* cancel, weir_call_t* call,
                  weir_outcome_t* outcome) {
  weir_outcome_init(outcome);
  f->functions->vtable->start(f->functions, cancel, call,
                              (weir_done_t){.fn = weir_outcome_set, .arg = outcome});
}

// ---- tests ----

enum { THREADS = 4, CALLS = 200 };

typedef struct caller_t {
  const fixture_t* fixture;
  weir_function_handle_t function;
  float value;
} caller_t;

static void* call_many(void* arg) {
  caller_t* caller = arg;
  for (int i = 0; i < CALLS; ++i) {
    weir_tensor_t *x = make_float(caller->value), *y = NULL;
    weir_call_t call = {
        .function = caller->function, .args = &x, .arg_count = 1, .rets = &y, .ret_count = 1};
    weir_cancel_t* cancel = NULL;
    weir_outcome_t outcome;
    check_ok(weir_cancel_create(NULL, &cancel));
    start(caller->fixture, cancel, &call, &outcome);
    check_ok(weir_outcome_wait(&outcome));
    caller->value = *WEIR_TENSOR_DATA(y, float);
    weir_tensor_release(x);
    weir_tensor_release(y);
    weir_cancel_destroy(cancel);
  }
  return NULL;
}

static void test_from_many_threads(void** state) {
  fixture_t f = open_program(*state);
  pthread_t threads[THREADS];
  caller_t callers[THREADS];
  for (int i = 0; i < THREADS; ++i) {
    callers[i] = (caller_t){.fixture = &f, .function = handle_of(&f, "Grow"), .value = (float)i};
    assert_int_equal(pthread_create(&threads[i], NULL, call_many, &callers[i]), 0);
  }
  for (int i = 0; i < THREADS; ++i) {
    assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_true(callers[i].value == (float)(i + CALLS));
  }
  close_program(&f);
}

static void test_its_own_cancellation(void** state) {
  fixture_t f = open_program(*state);
  weir_tensor_t *x = make_float(1), *y = NULL, *never = NULL;
  weir_cancel_t *cancel = NULL, *other = NULL;
  weir_outcome_t waiting, growing;
  check_ok(weir_cancel_create(NULL, &cancel));
  check_ok(weir_cancel_create(NULL, &other));
  weir_call_t wait = {.function = handle_of(&f, "Wait"), .rets = &never, .ret_count = 1};
  weir_call_t grow = {
      .function = handle_of(&f, "Grow"), .args = &x, .arg_count = 1, .rets = &y, .ret_count = 1};
  start(&f, cancel, &wait, &waiting);
  start(&f, other, &grow, &growing);  // is not held up, nor ended by what ends the other
  check_ok(weir_outcome_wait(&growing));
  assert_true(*WEIR_TENSOR_DATA(y, float) == 2);
  weir_cancel_start(cancel);
  check_error(weir_outcome_wait(&waiting), WEIR_CANCELLED, "");
  assert_null(never);
  weir_tensor_release(x);
  weir_tensor_release(y);
  weir_cancel_destroy(cancel);
  weir_cancel_destroy(other);
  close_program(&f);
}

static void test_wrong_calls(void** state) {
  fixture_t f = open_program(*state);
  weir_cancel_t* cancel = NULL;
  weir_outcome_t outcome;
  weir_tensor_t* ret = NULL;
  check_ok(weir_cancel_create(NULL, &cancel));
  start(&f, cancel, &(weir_call_t){.function = 77}, &outcome);
  check_error(weir_outcome_wait(&outcome), WEIR_NOT_FOUND, "77");
  weir_function_handle_t grow = handle_of(&f, "Grow");
  weir_call_t call = {.function = grow, .rets = &ret, .ret_count = 1};
  start(&f, cancel, &call, &outcome);
  check_error(weir_outcome_wait(&outcome), WEIR_INVALID_ARGUMENT, "called with 0 and 1");
  weir_tensor_t* number = make_int(3);
  call = (weir_call_t){
      .function = grow, .args = &number, .arg_count = 1, .rets = &ret, .ret_count = 1};
  start(&f, cancel, &call, &outcome);
  check_error(weir_outcome_wait(&outcome), WEIR_INVALID_ARGUMENT, "expects float");
  weir_tensor_release(number);
  weir_cancel_destroy(cancel);
  close_program(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
      TEST(test_from_many_threads),
      TEST(test_its_own_cancellation),
      TEST(test_wrong_calls),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

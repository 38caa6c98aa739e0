// while_test.c — The While kernel against functions of the test's own: at once and from other
// threads, failing, cancelled.

#include "base/outcome.h"
#include "op/kernel.h"
#include "testing/cmocka.h"

extern const weir_op_module_t weir_ops_control_while;

enum { COND = 1, BODY = 2 };

// cond: x < limit; body: x + 1.
typedef struct fake_t {
  weir_functions_t base;
  weir_pool_t* pool;  // NULL: functions finish at once
  int64_t limit;
  int64_t fail_at;  // the body fails there; -1: never
  weir_cancel_t* cancel;
  int64_t cancel_at;  // the body cancels the step there; -1: never
} fake_t;

typedef struct fake_call_t {
  fake_t* fake;
  weir_call_t* call;
  weir_done_t done;
} fake_call_t;

static weir_status_t* fake_instantiate(weir_functions_t* self, const weir_func_t* func,
                                       weir_function_handle_t* out_handle) {
  (void)self;
  *out_handle = weir_view_is(func->name, "cond") ? COND : BODY;
  return NULL;
}

static weir_status_t* fake_compute(fake_t* fake, weir_call_t* call) {
  int64_t x = *WEIR_TENSOR_DATA(call->args[0], const int64_t);
  if (call->function == COND) {
    bool goes_on = x < fake->limit;
    return weir_tensor_create_from(WEIR_DTYPE_BOOL, 0, NULL, &goes_on, &call->rets[0]);
  }
  if (x == fake->fail_at) return WEIR_STATUS(DATA_LOSS, "the body failed");
  if (x == fake->cancel_at) weir_cancel_start(fake->cancel);
  ++x;
  return weir_tensor_create_from(WEIR_DTYPE_INT64, 0, NULL, &x, &call->rets[0]);
}

static void fake_task(void* arg) {
  fake_call_t task = *(fake_call_t*)arg;
  weir_free(arg);
  weir_done_call(task.done, fake_compute(task.fake, task.call));
}

static void fake_call(weir_functions_t* self, weir_kernel_ctx_t* ctx, weir_call_t* call,
                      weir_done_t done) {
  (void)ctx;
  fake_t* fake = (fake_t*)self;
  if (!fake->pool) {
    weir_done_call(done, fake_compute(fake, call));
    return;
  }
  fake_call_t* task = weir_malloc(sizeof(*task));
  *task = (fake_call_t){.fake = fake, .call = call, .done = done};
  weir_pool_submit(fake->pool, fake_task, task);
}

static const weir_functions_vtable_t fake_vtable = {.instantiate = fake_instantiate,
                                                    .call = fake_call};

// Runs the loop from 0 on; *|out_value| is where it ended.
static weir_status_t* run(fake_t* fake, int64_t* out_value) {
  static const weir_func_t cond = {.name = {"cond", 4}}, body = {.name = {"body", 4}};
  const weir_op_def_t* def = &weir_ops_control_while.ops[0];
  const weir_kernel_def_t* kernel = &def->kernels[0];
  weir_dtype_t type = WEIR_DTYPE_INT64;
  weir_node_def_t node = {
      .name = "loop",
      .op_name = def->name,
      .attrs = WEIR_ATTRS(weir_attr_func("cond", &cond), weir_attr_func("body", &body)),
      .input_count = 1,
      .output_count = 1,
      .input_types = &type,
      .output_types = &type};
  weir_outcome_t outcome;
  weir_outcome_init(&outcome);
  fake->base.vtable = &fake_vtable;
  assert_null(weir_cancel_create(NULL, &fake->cancel));
  weir_step_t step = {.cancel = fake->cancel, .functions = &fake->base};
  weir_value_t input = {.tensor = NULL}, output = {.tensor = NULL};
  int64_t zero = 0;
  assert_null(weir_tensor_create_from(WEIR_DTYPE_INT64, 0, NULL, &zero, &input.tensor));
  void* state = weir_calloc(1, kernel->state_size);
  assert_null(kernel->init(&(weir_kernel_init_t){.node = &node}, state));
  weir_kernel_ctx_t ctx = {.node = &node,
                           .state = state,
                           .inputs = &input,
                           .outputs = &output,
                           .step = &step,
                           .input_count = 1,
                           .output_count = 1};
  kernel->compute_async(&ctx, (weir_done_t){.fn = weir_outcome_set, .arg = &outcome});
  weir_status_t* status = weir_outcome_wait(&outcome);
  if (!status) *out_value = *WEIR_TENSOR_DATA(output.tensor, const int64_t);
  weir_value_release(&input);
  weir_value_release(&output);
  weir_free(state);
  weir_cancel_destroy(fake->cancel);
  return status;
}

static void assert_code(weir_status_t* status, weir_code_t code) {
  assert_int_equal(weir_status_code(status), code);
  weir_status_destroy(status);
}

static void run_all(weir_pool_t* pool) {
  int64_t value = -1;
  assert_null(run(&(fake_t){.pool = pool, .limit = 0, .fail_at = -1, .cancel_at = -1}, &value));
  assert_int_equal(value, 0);
  assert_null(
      run(&(fake_t){.pool = pool, .limit = 100000, .fail_at = -1, .cancel_at = -1}, &value));
  assert_int_equal(value, 100000);
  assert_code(run(&(fake_t){.pool = pool, .limit = 100, .fail_at = 7, .cancel_at = -1}, &value),
              WEIR_DATA_LOSS);
  assert_code(run(&(fake_t){.pool = pool, .limit = 1 << 30, .fail_at = -1, .cancel_at = 7}, &value),
              WEIR_CANCELLED);
}

static void test_at_once(void** state) {
  (void)state;
  run_all(NULL);
}

static void test_on_other_threads(void** state) {
  (void)state;
  weir_pool_t* pool = NULL;
  assert_null(weir_pool_create(3, &pool));
  run_all(pool);
  weir_pool_destroy(pool);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_at_once),
                                     cmocka_unit_test(test_on_other_threads)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

// node_run_test.c — What ends a step before its time.
#include "exec/node_run.h"

#include "testing/tensors.h"

static void test_step_check(void** state) {
  (void)state;
  weir_step_t step = {.cancel = NULL};
  int64_t now = weir_clock_ns();
  check_ok(weir_step_check(&step, 0));
  check_ok(weir_step_check(&step, INT64_MAX));
  check_error(weir_step_check(&step, now - 1), WEIR_DEADLINE_EXCEEDED, "Timed out");
  check_ok(weir_cancel_create(NULL, &step.cancel));
  check_ok(weir_step_check(&step, 0));
  weir_cancel_start(step.cancel);
  check_error(weir_step_check(&step, 0), WEIR_CANCELLED, "Step was cancelled");
  check_error(weir_step_check(&step, now - 1), WEIR_CANCELLED, "Step was cancelled");
  weir_cancel_destroy(step.cancel);
}

// What an op wants the value of it gets the value of, and no reference beside it: whoever it hands
// that on to would read the variable anew.
static void test_references_are_read(void** state) {
  (void)state;
  static const weir_op_t op = {.name = "Op"};
  const weir_dtype_t types[] = {WEIR_DTYPE_FLOAT, weir_dtype_ref(WEIR_DTYPE_FLOAT)};
  const weir_node_def_t def = {
      .name = "n", .op_name = "Op", .op = &op, .input_types = types, .input_count = 2};
  const weir_plan_node_t node = {.def = &def, .input_count = 2, .input_work = WEIR_INPUTS_READ};
  weir_variable_t* variable = NULL;
  weir_value_t inputs[2] = {{.tensor = NULL}, {.tensor = NULL}};
  check_ok(weir_variable_create(WEIR_DTYPE_FLOAT, NULL, &variable));
  check_ok(weir_variable_assign(variable, make_float(3)));
  for (int i = 0; i < 2; ++i) {
    weir_resource_retain(&variable->base);
    inputs[i].ref = variable;
  }
  check_ok(weir_node_prepare_inputs(&node, inputs));
  assert_null(inputs[0].ref);
  assert_true(WEIR_TENSOR_DATA(inputs[0].tensor, float)[0] == 3);
  assert_ptr_equal(inputs[1].ref, variable);
  assert_null(inputs[1].tensor);
  weir_node_release_inputs(inputs, 2);
  weir_resource_release(&variable->base);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_step_check),
                                     cmocka_unit_test(test_references_are_read)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

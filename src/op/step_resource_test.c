// step_resource_test.c — Resources of a step that are known by the strings of a reference.
#include "op/step_resource.h"

#include "testing/tensors.h"

static void test_found_by_strings(void** state) {
  (void)state;
  const weir_dtype_t type = weir_dtype_ref(WEIR_DTYPE_STRING);
  const weir_resource_type_t other = {.name = "Other"};
  weir_node_def_t node = {.name = "n", .output_types = &type, .output_count = 1};
  weir_step_t step = {.resources = NULL};
  weir_value_t handle = {.tensor = NULL};
  weir_kernel_ctx_t ctx = {
      .node = &node, .step = &step, .inputs = &handle, .outputs = &handle, .output_count = 1};
  weir_variable_t* made = NULL;
  weir_resource_t* found = NULL;
  check_ok(weir_resources_create("localhost", &step.resources));
  check_ok(weir_variable_create(WEIR_DTYPE_FLOAT, NULL, &made));
  check_ok(weir_step_resource_publish(&ctx, 0, &made->base, "it", "type"));
  assert_non_null(handle.ref);
  check_ok(weir_step_resource_get(&ctx, 0, &weir_variable_type, &found));
  assert_ptr_equal(found, made);
  check_error(weir_step_resource_get(&ctx, 0, &other, &found), WEIR_NOT_FOUND, "Other");
  weir_tensor_t* strings = NULL;
  for (int count = 1; count <= 2; ++count) {
    check_ok(weir_tensor_create_strings(1, (const int64_t[]){count},
                                        (const char* const[]){WEIR_STEP_CONTAINER, "another"}, NULL,
                                        &strings));
    check_ok(weir_variable_assign(handle.ref, strings));
    weir_code_t code = count == 1 ? WEIR_INVALID_ARGUMENT : WEIR_NOT_FOUND;
    check_error(weir_step_resource_get(&ctx, 0, &weir_variable_type, &found), code,
                count == 1 ? "must have two elements" : "another");
  }
  weir_value_release(&handle);
  weir_resources_destroy(step.resources);
}

// A reference that holds nothing yet, two elements of another type: no handle is made of them.
static void test_no_strings(void** state) {
  (void)state;
  const int64_t two = 2;
  const int32_t numbers[] = {1, 2};
  weir_node_def_t node = {.name = "n"};
  weir_step_t step = {.resources = NULL};
  weir_value_t handle = {.tensor = NULL};
  weir_kernel_ctx_t ctx = {.node = &node, .step = &step, .inputs = &handle};
  weir_resource_t* found = NULL;
  check_ok(weir_resources_create("localhost", &step.resources));
  for (int i = 0; i < 2; ++i) {
    check_ok(weir_variable_create(WEIR_DTYPE_INT32, NULL, &handle.ref));
    if (i == 1)
      check_ok(weir_variable_assign(handle.ref, make_tensor(WEIR_DTYPE_INT32, 1, &two, numbers)));
    check_error(weir_step_resource_get(&ctx, 0, &weir_variable_type, &found), WEIR_INVALID_ARGUMENT,
                "Resource handle must have two elements: [container, name]");
    weir_value_release(&handle);
  }
  weir_value_release(&handle);
  weir_resources_destroy(step.resources);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_found_by_strings),
                                     cmocka_unit_test(test_no_strings)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

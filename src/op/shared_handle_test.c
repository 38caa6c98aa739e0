// shared_handle_test.c — Resources that are known by the strings of a reference, as TensorFlow's
// first queues and readers are.
#include "op/shared_handle.h"

#include "testing/tensors.h"

// What becomes of a reference to |count| elements of |dtype|: strings are a container and a name.
static weir_status_t* find(weir_resources_t* resources, weir_dtype_t dtype, int64_t count) {
  weir_step_t step = {.session_resources = resources};
  weir_node_def_t node = {.name = "n"};
  weir_value_t handle = {.tensor = NULL};
  weir_device_t device = {.ordinal = 0};
  weir_kernel_ctx_t ctx = {.node = &node, .device = &device, .step = &step, .inputs = &handle};
  weir_resource_t* found = NULL;
  weir_tensor_t* value = NULL;
  check_ok(weir_variable_create(dtype, NULL, &handle.ref));
  if (dtype == WEIR_DTYPE_STRING)
    check_ok(weir_tensor_create_strings(1, &count, (const char* const[]){"localhost", "it", "more"},
                                        NULL, &value));
  else check_ok(weir_tensor_create(dtype, 1, &count, &value));
  if (count > 0) check_ok(weir_variable_assign(handle.ref, value));
  else weir_tensor_release(value);
  weir_status_t* status = weir_shared_handle_resource(&ctx, 0, &weir_variable_type, &found);
  weir_resource_release(found);
  weir_value_release(&handle);
  return status;
}

static void test_two_strings(void** state) {
  (void)state;
  static const char kBad[] = "Resource handle must be a vector of 2 strings";
  weir_resources_t* resources = NULL;
  weir_variable_t* made = NULL;
  check_ok(weir_resources_create("localhost", &resources));
  check_error(find(resources, WEIR_DTYPE_STRING, 2), WEIR_NOT_FOUND, "it");
  check_ok(weir_variable_create(WEIR_DTYPE_FLOAT, NULL, &made));
  check_ok(
      weir_resources_add(resources, weir_view_of("localhost"), weir_view_of("it"), &made->base));
  check_ok(find(resources, WEIR_DTYPE_STRING, 2));
  check_error(find(resources, WEIR_DTYPE_STRING, 0), WEIR_INVALID_ARGUMENT, kBad);  // not assigned
  check_error(find(resources, WEIR_DTYPE_STRING, 1), WEIR_INVALID_ARGUMENT, kBad);
  check_error(find(resources, WEIR_DTYPE_STRING, 3), WEIR_INVALID_ARGUMENT, kBad);
  check_error(find(resources, WEIR_DTYPE_INT32, 2), WEIR_INVALID_ARGUMENT, kBad);
  weir_resources_destroy(resources);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_two_strings)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

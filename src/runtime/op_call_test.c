// op_call_test.c — A kernel that ends later is waited for, one that ends at once is not, and a
// failing one says so.
#include "runtime/op_call.h"

#include "testing/world.h"

static weir_status_t* nothing_shape(weir_shape_ctx_t* ctx) {
  (void)ctx;
  return NULL;
}

static int calls;

static weir_status_t* at_once(weir_kernel_ctx_t* ctx) {
  (void)ctx;
  ++calls;
  return NULL;
}

static void later(weir_kernel_ctx_t* ctx, weir_done_t done) {
  (void)ctx;
  ++calls;
  done.fn(done.arg, WEIR_STATUS(ABORTED, "later"));
}

static const weir_op_module_t module = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){{.name = "AtOnce",
                                    .summary = "Counts",
                                    .infer_shape = nothing_shape,
                                    .kernels = WEIR_CPU_KERNEL(.compute = at_once)},
                                   {.name = "Later",
                                    .summary = "Counts, and fails",
                                    .infer_shape = nothing_shape,
                                    .kernels = WEIR_CPU_KERNEL(.compute_async = later)},
                                   {0}}};

static weir_status_t* call(weir_registry_t* registry, const char* name, weir_device_t* device,
                           bool may_wait) {
  weir_op_call_t* op_call = NULL;
  weir_step_t step = {.id = 1};
  weir_node_def_t node = {.name = "n",
                          .op_name = name,
                          .op = weir_registry_find(registry, weir_view_of(name)),
                          .device = ""};
  check_ok(weir_cancel_create(NULL, &step.cancel));
  check_ok(weir_op_call_create(&node, device, &op_call));
  assert_int_equal(weir_op_call_may_wait(op_call), may_wait);
  weir_status_t* status = weir_op_call_run(op_call, &step, NULL, NULL);
  weir_op_call_destroy(op_call);
  weir_cancel_destroy(step.cancel);
  return status;
}

// On a device with a stream, and without.
static void test_both_kinds(void** state) {
  (void)state;
  const weir_op_module_t* modules[] = {&module, NULL};
  weir_registry_t* registry = NULL;
  weir_device_t** devices = NULL;
  int count = 0;
  check_ok(weir_registry_create(modules, &registry));
  check_ok(weir_devices_create("cpu,guard", NULL, NULL, &devices, &count));
  for (int i = 0; i < count; ++i) {
    calls = 0;
    check_ok(call(registry, "AtOnce", devices[i], false));
    assert_int_equal(calls, 1);
  }
  check_error(call(registry, "Later", devices[0], true), WEIR_ABORTED, "later");
  assert_int_equal(calls, 2);
  weir_devices_release(devices, count);
  weir_registry_destroy(registry);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_both_kinds)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

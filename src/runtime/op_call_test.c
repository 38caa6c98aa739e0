// op_call_test.c — A kernel that ends later is waited for, one that ends at once is not, and a
// failing one says so.
#include "runtime/op_call.h"

#include "base/alloc.h"
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

// Hands out what it made by itself, in the host's memory.
static weir_status_t* make(weir_kernel_ctx_t* ctx) {
  weir_tensor_t* tensor = NULL;
  WEIR_TRY(weir_tensor_create_from(WEIR_DTYPE_FLOAT, 1, (const int64_t[]){2}, (const float[]){3, 4},
                                   &tensor));
  weir_kernel_set(ctx, 0, tensor);
  return NULL;
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
                                   {.name = "Make",
                                    .outputs = "y: float",
                                    .summary = "Makes a vector",
                                    .infer_shape = nothing_shape,
                                    .kernels = WEIR_CPU_KERNEL(.compute = make)},
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

// A device with memory of its own has it moved there; each allocation fails in turn.
static void test_outputs_are_moved(void** state) {
  (void)state;
  const weir_op_module_t* modules[] = {&module, NULL};
  weir_registry_t* registry = NULL;
  weir_device_t** devices = NULL;
  int count = 0;
  check_ok(weir_registry_create(modules, &registry));
  check_ok(weir_devices_create("guard", NULL, NULL, &devices, &count));
  weir_device_t* guard = devices[count - 1];
  const weir_dtype_t types[] = {WEIR_DTYPE_FLOAT};
  weir_node_def_t node = {.name = "n",
                          .op_name = "Make",
                          .op = weir_registry_find(registry, weir_view_of("Make")),
                          .device = "",
                          .output_types = types,
                          .output_count = 1};
  weir_op_call_t* op_call = NULL;
  weir_step_t step = {.id = 1};
  check_ok(weir_cancel_create(NULL, &step.cancel));
  check_ok(weir_op_call_create(&node, guard, &op_call));
  weir_code_t code = WEIR_RESOURCE_EXHAUSTED;
  for (int64_t n = 1; code != WEIR_OK; ++n) {
    weir_value_t output = {0};
    weir_alloc_fail_at(n, false);
    weir_status_t* status = weir_op_call_run(op_call, &step, NULL, &output);
    weir_alloc_fail_at(0, false);
    code = weir_status_code(status);
    if (code == WEIR_OK) {
      assert_true(n > 2);
      assert_ptr_equal(weir_tensor_space(output.tensor),
                       weir_device_allocator(guard, WEIR_MEMORY_DEVICE)->space);
    } else {
      assert_int_equal(code, WEIR_RESOURCE_EXHAUSTED);
    }
    weir_status_destroy(status);
    weir_value_release(&output);
  }
  weir_op_call_destroy(op_call);
  weir_cancel_destroy(step.cancel);
  weir_devices_release(devices, count);
  weir_registry_destroy(registry);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_both_kinds),
                                     cmocka_unit_test(test_outputs_are_moved)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

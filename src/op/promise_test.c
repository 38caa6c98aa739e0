// promise_test.c — Which outputs are promised, of what shape, and a kernel that makes others.
#include "op/promise.h"

#include "testing/world.h"

enum { COUNT = 6 };

static bool may_promise(weir_edge_t edge) {
  const weir_kernel_def_t* kernel = NULL;
  check_ok(weir_op_find_kernel(&edge.node->def, "CPU", &kernel));
  return weir_node_may_promise(&edge.node->def, kernel);
}

static void test_which(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT), shape = OP(w, "Shape", x);
  weir_attrs_t attrs = WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_FLOAT));
  assert_true(may_promise(OP(w, "AddV2", x, x)));
  assert_true(may_promise(OP(w, "Fill", shape, x)));
  assert_false(may_promise(shape));                       // made on the host
  assert_false(may_promise(OP(w, "Reshape", x, shape)));  // shares memory
  assert_false(may_promise(OP(w, "AsString", x)));        // is no device's
  assert_false(may_promise(output(add(w, "RandomUniform", "r", WEIR_EDGES(shape), attrs), 0)));
}

// A call of |node| on a CPU, as far as promises look at it.
typedef struct call_t {
  weir_device_t* device;
  weir_value_t inputs[2], outputs[1], promised[1];
  weir_kernel_ctx_t ctx;
} call_t;

static void call_init(call_t* call, weir_edge_t edge, int64_t count) {
  memset(call, 0, sizeof(*call));
  const weir_node_def_t* node = &edge.node->def;
  check_ok(weir_cpu_device_create(NULL, 0, NULL, &call->device));
  for (int i = 0; i < node->input_count; ++i)
    check_ok(weir_tensor_create(node->input_types[i], 1, &count, &call->inputs[i].tensor));
  call->ctx = (weir_kernel_ctx_t){.node = node,
                                  .device = call->device,
                                  .inputs = call->inputs,
                                  .outputs = call->outputs,
                                  .input_count = node->input_count,
                                  .output_count = node->output_count};
}

static void call_end(call_t* call) {
  for (int i = 0; i < 2; ++i) weir_value_release(&call->inputs[i]);
  weir_value_release(call->outputs);
  weir_value_release(call->promised);
  weir_device_release(call->device);
}

static void test_shapes(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  call_t call;
  call_init(&call, OP(w, "AddV2", x, x), COUNT);
  assert_true(weir_promise_make(&call.ctx, call.promised));
  const weir_tensor_t* promised = call.promised[0].tensor;
  assert_int_equal(promised->rank, 1);
  assert_int_equal(promised->dims[0], COUNT);
  call_end(&call);
  call_init(&call, OP(w, "Where", x), COUNT);  // as many rows as it finds
  assert_false(weir_promise_make(&call.ctx, call.promised));
  assert_null(call.promised[0].tensor);
  call_end(&call);
}

static void test_another_shape_than_promised(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  call_t call;
  weir_tensor_t* made = NULL;
  call_init(&call, OP(w, "Neg", x), COUNT);
  assert_true(weir_promise_make(&call.ctx, call.promised));
  check_error(weir_promise_keep(&call.ctx, call.promised), WEIR_INTERNAL, "missing");
  check_ok(weir_kernel_output(&call.ctx, 0, 1, (const int64_t[]){COUNT}, &made));
  for (int i = 0; i < COUNT; ++i) WEIR_TENSOR_DATA(made, float)[i] = (float)i;
  check_ok(weir_promise_keep(&call.ctx, call.promised));
  for (int i = 0; i < COUNT; ++i)
    assert_true(WEIR_TENSOR_DATA(call.promised[0].tensor, float)[i] == (float)i);
  check_ok(weir_kernel_output(&call.ctx, 0, 2, (const int64_t[]){2, COUNT / 2}, &made));
  check_error(weir_promise_keep(&call.ctx, call.promised), WEIR_INTERNAL,
              "is [2,3], but its shape function said [6]");
  call_end(&call);
}

// A kernel that asks for what was promised gets that, not memory of its own, and not its input's.
static void test_promised_memory_is_written(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  const int64_t same[] = {COUNT}, other[] = {COUNT / 2, 2};
  call_t call;
  weir_tensor_t* made = NULL;
  call_init(&call, OP(w, "Neg", x), COUNT);
  assert_true(weir_promise_make(&call.ctx, call.promised));
  call.ctx.promised = call.promised;
  weir_tensor_t *promised = call.promised[0].tensor, *input = call.inputs[0].tensor;
  check_ok(weir_kernel_output(&call.ctx, 0, 1, same, &made));
  assert_ptr_equal(made, promised);
  check_ok(weir_kernel_forward(&call.ctx, 0, 0, 1, same, &made));
  assert_ptr_equal(made, promised);
  assert_ptr_equal(call.inputs[0].tensor, input);
  check_ok(weir_promise_keep(&call.ctx, call.promised));
  check_ok(weir_kernel_output(&call.ctx, 0, 2, other, &made));
  assert_ptr_not_equal(made, promised);
  check_error(weir_promise_keep(&call.ctx, call.promised), WEIR_INTERNAL, "shape function said");
  call_end(&call);
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
      TEST(test_which),
      TEST(test_shapes),
      TEST(test_another_shape_than_promised),
      TEST(test_promised_memory_is_written),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

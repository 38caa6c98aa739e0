// node_test.c — Nodes of any op by name: every kind of attribute, and what is refused.
#include "weir/node.h"

#include "testing/world.h"
#include "weir/ops.h"

static weir_node_t* end_ok(world_t* w, weir_node_builder_t* builder) {
  weir_node_t* node = weir_node_end(builder);
  check_scope(w);
  assert_non_null(node);
  return node;
}

static void test_inputs_and_attributes(void** state) {
  world_t* w = *state;
  weir_edge_t x = weir_const_floats(w->scope, WEIR_DIMS(1, 2), (float[]){1, 2});
  weir_node_builder_t* b = weir_node_begin(w->scope, "MatMul");
  weir_node_inputs(b, &x, 1);
  weir_node_inputs(b, &x, 1);
  weir_node_set_bool(b, "transpose_b", true);
  weir_node_t* product = end_ok(w, b);
  assert_int_equal(weir_node_input_count(product), 2);
  int64_t dims[2];
  assert_int_equal(weir_edge_dims((weir_edge_t){product, 0}, dims, 2), 2);
  assert_int_equal(dims[1], 1);
}

static void test_kinds(void** state) {
  world_t* w = *state;
  weir_node_builder_t* b = weir_node_begin(w->scope, "Placeholder");
  weir_node_set_type(b, "dtype", WEIR_DTYPE_FLOAT);
  weir_node_set_shape(b, "shape", WEIR_SHAPE(-1, 3));
  weir_edge_t x = {end_ok(w, b), 0};
  assert_int_equal(weir_edge_dims(x, NULL, 0), 2);
  b = weir_node_begin(w->scope, "Squeeze");
  weir_node_inputs(b, &(weir_edge_t){end_ok(w, weir_node_begin(w->scope, "NoOp")), 0}, 0);
  weir_node_inputs(b, &x, 1);
  weir_node_set_ints(b, "squeeze_dims", (weir_ints_t){NULL, 0});
  end_ok(w, b);
  b = weir_node_begin(w->scope, "FIFOQueueV2");
  weir_node_set_types(b, "component_types", WEIR_TYPES(WEIR_DTYPE_FLOAT));
  weir_node_set_shapes(b, "shapes", WEIR_SHAPES(WEIR_SHAPE(2)));
  weir_node_set_int(b, "capacity", 7);
  weir_node_set_string(b, "shared_name", "queue", 5);
  end_ok(w, b);
  b = weir_node_begin(w->scope, "LeakyRelu");
  weir_node_inputs(b, &x, 1);
  weir_node_set_float(b, "alpha", 0.5f);
  end_ok(w, b);
}

static void expect_refused(world_t* w, weir_code_t code, const char* text) {
  weir_status_t* status = weir_scope_take_error(w->scope);
  assert_non_null(status);
  assert_int_equal(weir_status_code(status), code);
  assert_non_null(strstr(weir_status_message(status), text));
  weir_status_destroy(status);
  check_scope(w);
}

static void test_refusals(void** state) {
  world_t* w = *state;
  assert_null(weir_node_end(weir_node_begin(w->scope, "NoSuchOp")));
  expect_refused(w, WEIR_NOT_FOUND, "NoSuchOp");
  weir_node_builder_t* b = weir_node_begin(w->scope, "NoOp");
  weir_node_set_int(b, "axis", 1);
  assert_null(weir_node_end(b));
  expect_refused(w, WEIR_INVALID_ARGUMENT, "axis");
  b = weir_node_begin(w->scope, "NoOp");
  for (int i = 0; i < 30; ++i) weir_node_set_int(b, "axis", i);
  assert_null(weir_node_end(b));
  expect_refused(w, WEIR_INVALID_ARGUMENT, "one too many");
  b = weir_node_begin(w->scope, "NoOp");
  weir_node_set_strings(b, "names", (weir_strings_t){NULL, 2});
  assert_null(weir_node_end(b));
  expect_refused(w, WEIR_INVALID_ARGUMENT, "names is NULL");
}

static void test_scope_goes_on_after_a_taken_error(void** state) {
  world_t* w = *state;
  assert_null(weir_scope_take_error(w->scope));
  weir_scope_fail(w->scope, WEIR_STATUS(ABORTED, "mine"));
  assert_null(weir_node_begin(w->scope, "NoOp"));
  weir_node_set_int(NULL, "axis", 1);
  assert_null(weir_node_end(NULL));
  expect_refused(w, WEIR_ABORTED, "mine");
  end_ok(w, weir_node_begin(w->scope, "NoOp"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {TEST(test_inputs_and_attributes), TEST(test_kinds),
                                     TEST(test_refusals),
                                     TEST(test_scope_goes_on_after_a_taken_error)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

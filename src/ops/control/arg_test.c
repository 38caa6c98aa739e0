// arg_test.c — What is known of a function's argument: the shape that its attributes give.
#include "graph/graph.h"
#include "testing/world.h"

static const weir_shape_t* shape_with(world_t* w, const char* attr) {
  weir_strbuf_t text = {0};
  weir_strbuf_printf(&text,
                     "node {name: 'a' op: '_Arg' attr {key: 'T' value {type: DT_FLOAT}}"
                     " attr {key: 'index' value {i: 0}} %s}",
                     attr);
  import_text(w, text.data);
  weir_strbuf_free(&text);
  return weir_edge_shape(output(weir_graph_find(w->graph, weir_view_of("a")), 0));
}

static void check_vector(const weir_shape_t* shape, int64_t size) {
  assert_int_equal(shape->rank, 1);
  assert_int_equal(shape->dims[0], size);
}

static void test_no_shape(void** state) { assert_int_equal(shape_with(*state, "")->rank, -1); }

static void test_shape(void** state) {
  check_vector(shape_with(*state, "attr {key: '_shape' value {shape {dim {size: 2}}}}"), 2);
}

static void test_output_shapes(void** state) {
  check_vector(shape_with(*state,
                          "attr {key: '_shape' value {shape {dim {size: 2}}}} attr {key: "
                          "'_output_shapes' value {list {shape {dim {size: 3}}}}}"),
               3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
int main(void) {
  const struct CMUnitTest tests[] = {TEST(test_no_shape), TEST(test_shape),
                                     TEST(test_output_shapes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

// cost_test.c — What nodes are said to compute and to touch.
#include "op/cost.h"

#include "testing/world.h"

static weir_cost_t cost_of(weir_edge_t edge) {
  const weir_node_t* node = edge.node;
  const weir_shape_t* inputs[8];
  assert_true(node->def.input_count <= 8);
  for (int i = 0; i < node->def.input_count; ++i) inputs[i] = weir_edge_shape(node->inputs[i]);
  weir_cost_ctx_t ctx = {.node = &node->def, .inputs = inputs, .outputs = node->shapes};
  return weir_cost_of(&ctx);
}

static weir_edge_t value(world_t* w, int rank, const int64_t* dims) {
  const weir_shape_t* shape = weir_shape_make(&w->graph->arena, rank, dims);
  assert_non_null(shape);
  return output(
      add(w, "Placeholder", NULL, WEIR_NO_EDGES,
          WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_FLOAT), weir_attr_shape("shape", shape))),
      0);
}
#define VALUE(w, ...) \
  value((w), (int)WEIR_COUNT_OF(((int64_t[]){__VA_ARGS__})), (int64_t[]){__VA_ARGS__})

static void check(weir_edge_t edge, double flops, double bytes) {
  weir_cost_t cost = cost_of(edge);
  assert_float_equal(cost.flops, flops, 1e-6 * flops);
  assert_float_equal(cost.bytes, bytes, 1e-6 * bytes);
}

static void test_products(void** state) {
  world_t* w = *state;
  weir_edge_t a = VALUE(w, 5, 7), b = VALUE(w, 5, 11);
  weir_node_t* node =
      add(w, "MatMul", NULL, WEIR_EDGES(a, b), WEIR_ATTRS(weir_attr_bool("transpose_a", true)));
  check(output(node, 0), 2 * 7 * 11 * 5, 4 * (35 + 55 + 77));
  weir_edge_t many = OP(w, "BatchMatMulV2", VALUE(w, 3, 2, 4, 5), VALUE(w, 2, 5, 6));
  check(many, 2.0 * 6 * 4 * 6 * 5, 4 * (120 + 60 + 144));
}

static void test_convolutions(void** state) {
  world_t* w = *state;
  weir_edge_t x = VALUE(w, 2, 8, 8, 3), filter = VALUE(w, 3, 3, 3, 16);
  weir_attrs_t attrs = WEIR_ATTRS(weir_attr_ints("strides", ((int64_t[]){1, 1, 1, 1}), 4),
                                  weir_attr_string("padding", "SAME"));
  weir_edge_t y = output(add(w, "Conv2D", NULL, WEIR_EDGES(x, filter), attrs), 0);
  double flops = 2.0 * (2 * 8 * 8 * 16) * (3 * 3 * 3);
  check(y, flops, 4.0 * (2 * 64 * 3 + 27 * 16 + 2 * 64 * 16));
  weir_edge_t sizes = weir_const_ints(w->scope, (const int[]){2, 8, 8, 3}, 4);
  weir_edge_t dx =
      output(add(w, "Conv2DBackpropInput", NULL, WEIR_EDGES(sizes, filter, y), attrs), 0);
  assert_float_equal(cost_of(dx).flops, flops, 1);
  weir_edge_t filter_sizes = weir_const_ints(w->scope, (const int[]){3, 3, 3, 16}, 4);
  weir_edge_t dw =
      output(add(w, "Conv2DBackpropFilter", NULL, WEIR_EDGES(x, filter_sizes, y), attrs), 0);
  assert_float_equal(cost_of(dw).flops, flops, 1);
}

// All that is read counts, and what is not known counts as if it were 32.
static void test_elements(void** state) {
  world_t* w = *state;
  weir_edge_t x = VALUE(w, 10, 20);
  check(OP(w, "Sum", x, weir_const_int(w->scope, 0)), 200, 4 * (200 + 1 + 20));
  check(OP(w, "Square", x), 200, 4 * 400);
  assert_true(cost_of(OP(w, "Exp", x)).flops > 10 * 200);
  check(OP(w, "Square", placeholder(w, NULL, WEIR_DTYPE_FLOAT)), 32, 4 * 64);
}

// A table counts as much as is read of it, a value that is only handed on not at all.
static void test_what_is_not_touched(void** state) {
  world_t* w = *state;
  weir_edge_t table = VALUE(w, 1000, 4), ids = weir_const_ints(w->scope, (const int[]){1, 2}, 2);
  check(OP(w, "GatherV2", table, ids, weir_const_int(w->scope, 0)), 8, 4 * 16);
  check(OP(w, "Identity", table), 0, 0);
  check(OP(w, "Shape", table), 0, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
      TEST(test_products),
      TEST(test_convolutions),
      TEST(test_elements),
      TEST(test_what_is_not_touched),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

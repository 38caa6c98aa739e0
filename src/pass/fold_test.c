// fold_test.c — Constant folding: chains, deadness, side effects, limits, and values known from
// shapes.
#include <stdio.h>

#include "pass/pass_testing.h"

typedef struct counter_t {
  int calls;
} counter_t;

// Knows Add and Div of float scalars, Neg, Identity, Two and Fill.
static weir_status_t* evaluate(void* self, const weir_node_t* node, weir_tensor_t* const* inputs,
                               weir_tensor_t** outputs) {
  ++((counter_t*)self)->calls;
  const char* op = node->def.op_name;
  if (strcmp(op, "Fill") == 0) {
    int64_t size = weir_tensor_int_at(inputs[0], 0);
    return weir_tensor_create(weir_tensor_type(inputs[1]), 1, &size, &outputs[0]);
  }
  if (strcmp(op, "Identity") == 0) {
    outputs[0] = weir_tensor_retain(inputs[0]);
    return NULL;
  }
  if (weir_tensor_type(inputs[0]) != WEIR_DTYPE_FLOAT)
    return WEIR_STATUS(UNIMPLEMENTED, "not here");
  float a = WEIR_TENSOR_DATA(inputs[0], float)[0];
  float b = node->def.input_count > 1 ? WEIR_TENSOR_DATA(inputs[1], float)[0] : 0;
  if (strcmp(op, "Div") == 0 && b == 0) return WEIR_STATUS(INVALID_ARGUMENT, "division by zero");
  float y = strcmp(op, "Add") == 0 ? a + b : strcmp(op, "Div") == 0 ? a / b : -a;
  for (int i = 0; i < node->def.output_count; ++i) {
    float value = y * (float)(i + 1);
    WEIR_TRY(weir_tensor_create_from(WEIR_DTYPE_FLOAT, 0, NULL, &value, &outputs[i]));
  }
  return NULL;
}

static void fold(testing_t* t, weir_node_t** target, counter_t* counter) {
  weir_pass_ctx_t ctx = {.graph = t->graph,
                         .targets = target,
                         .target_count = target ? 1 : 0,
                         .evaluator = {.evaluate = counter ? evaluate : NULL, .self = counter}};
  check_ok(weir_pass_fold(&ctx));
}

static void test_chain(void** state) {
  testing_t* t = *state;
  counter_t counter = {0};
  weir_edge_t sum =
      ADD(t->graph, "Add", "sum", add_float(t->graph, "a", 1), add_float(t->graph, "b", 2));
  weir_edge_t neg = ADD(t->graph, "Neg", "neg", ADD(t->graph, "Identity", "id", sum));
  add_retval(t->graph, "ret", neg, 0);
  fold(t, NULL, &counter);
  assert_int_equal(counter.calls, 3);
  check_input(t->graph, "ret", 0, "neg_folded:0");
  assert_true(constant_float(t->graph, "neg_folded") == -3);
}

static void test_all_outputs(void** state) {
  testing_t* t = *state;
  counter_t counter = {0};
  weir_edge_t two = ADD(t->graph, "Two", "two", add_float(t->graph, "a", 1));
  add_retval(t->graph, "r0", two, 0);
  add_retval(t->graph, "r1", edge_of(two.node, 1), 1);
  fold(t, NULL, &counter);
  check_input(t->graph, "r0", 0, "two_folded:0");
  check_input(t->graph, "r1", 0, "two_folded_1:0");
  assert_true(constant_float(t->graph, "two_folded_1") == -2);
}

static void test_left_alone(void** state) {
  testing_t* t = *state;
  counter_t counter = {0};
  weir_edge_t a = add_float(t->graph, "a", 1);
  weir_edge_t x = add_placeholder(t->graph, "x", WEIR_DTYPE_FLOAT, &weir_shape_unknown);
  add_retval(t->graph, "r0", ADD(t->graph, "Effect", "effect", a), 0);
  add_retval(t->graph, "r1", ADD(t->graph, "Guard", "guard", a), 1);
  add_retval(t->graph, "r2", ADD(t->graph, "Add", "sum", a, x), 2);
  add_retval(t->graph, "r3", ADD(t->graph, "Enter", "enter", a), 3);
  fold(t, NULL, &counter);
  assert_int_equal(counter.calls, 0);
  check_input(t->graph, "r0", 0, "effect:0");
  check_input(t->graph, "r3", 0, "enter:0");
}

static void test_errors_wait_for_the_run(void** state) {
  testing_t* t = *state;
  counter_t counter = {0};
  weir_edge_t div =
      ADD(t->graph, "Div", "div", add_float(t->graph, "a", 1), add_float(t->graph, "b", 0));
  add_retval(t->graph, "ret", div, 0);
  fold(t, NULL, &counter);
  check_input(t->graph, "ret", 0, "div:0");
}

static void test_no_evaluator(void** state) {
  testing_t* t = *state;
  add_retval(t->graph, "ret", ADD(t->graph, "Neg", "neg", add_float(t->graph, "a", 1)), 0);
  fold(t, NULL, NULL);
  check_input(t->graph, "ret", 0, "neg:0");
}

static void test_controls_are_carried(void** state) {
  testing_t* t = *state;
  counter_t counter = {0};
  weir_edge_t effect = ADD(t->graph, "Effect", "effect", add_float(t->graph, "a", 1));
  weir_edge_t b = add_float(t->graph, "b", 2);
  check_ok(weir_graph_add_control(b.node, effect.node));  // a constant of a branch looks like this
  weir_edge_t neg = ADD(t->graph, "Neg", "neg", b);
  weir_node_t* group = add_with(t->graph, "NoOp", "group", WEIR_NO_EDGES, WEIR_NO_ATTRS);
  check_ok(weir_graph_add_control(group, neg.node));
  weir_node_t* target = neg.node;
  fold(t, &target, &counter);
  check_input(t->graph, "neg_folded", 0, "^effect");
  check_input(t->graph, "group", 0, "^neg_folded");
  assert_string_equal(target->def.name, "neg_folded");
}

static void test_size_limit(void** state) {
  testing_t* t = *state;
  counter_t counter = {0};
  int32_t large = 3 << 20, small = 3;  // 12 MB of floats, 12 bytes
  weir_edge_t one = add_float(t->graph, "one", 1);
  weir_edge_t dims = add_tensor(t->graph, "dims", WEIR_DTYPE_INT32, 1, 1, &large);
  weir_edge_t few = add_tensor(t->graph, "few", WEIR_DTYPE_INT32, 1, 1, &small);
  add_retval(t->graph, "r0", ADD(t->graph, "Fill", "large", dims, one), 0);
  add_retval(t->graph, "r1", ADD(t->graph, "Fill", "small", few, one), 1);
  fold(t, NULL, &counter);
  assert_int_equal(counter.calls, 1);
  check_input(t->graph, "r0", 0, "large:0");
  check_input(t->graph, "r1", 0, "small_folded:0");
}

static weir_edge_t add_known(weir_graph_t* graph, const char* name, int64_t size) {
  return add_placeholder(graph, name, WEIR_DTYPE_FLOAT, vector_shape(graph, size));
}

static void test_known_shape(void** state) {
  testing_t* t = *state;
  counter_t counter = {0};
  weir_edge_t x = add_known(t->graph, "x", 5);
  weir_edge_t shape = ADD(t->graph, "Shape", "shape", x);
  weir_edge_t fill = ADD(t->graph, "Fill", "fill", shape, x);
  assert_int_equal(weir_edge_shape(fill)->rank, -1);
  add_retval(t->graph, "ret", ADD(t->graph, "Shape", "again", ADD(t->graph, "Neg", "neg", fill)),
             0);
  add_retval(t->graph, "unknown", ADD(t->graph, "Shape", "partial", add_known(t->graph, "y", -1)),
             1);
  fold(t, NULL, &counter);
  assert_int_equal(counter.calls, 0);
  check_input(t->graph, "fill", 0, "shape_folded:0");
  check_input(t->graph, "ret", 0,
              "again_folded:0");  // the constant told the shape of fill, and that of neg
  check_input(t->graph, "unknown", 0, "partial:0");
  assert_int_equal(find(t->graph, "again_folded")->control_count, 0);
  assert_int_equal(
      weir_tensor_int_at(weir_edge_constant(edge_of(find(t->graph, "again_folded"), 0)), 0), 5);
}

static void test_shape_in_a_branch(void** state) {
  testing_t* t = *state;
  weir_edge_t pred = add_placeholder(t->graph, "pred", WEIR_DTYPE_BOOL, &weir_shape_scalar);
  weir_edge_t sw = ADD(t->graph, "Switch", "switch", add_known(t->graph, "x", 5), pred);
  add_retval(t->graph, "r0", ADD(t->graph, "Shape", "direct", edge_of(sw.node, 1)), 0);
  weir_edge_t neg = ADD(t->graph, "Neg", "neg", edge_of(sw.node, 1));
  add_retval(t->graph, "r1", ADD(t->graph, "Shape", "behind", neg), 1);
  fold(t, NULL, NULL);
  check_input(t->graph, "r0", 0,
              "direct:0");  // a control edge from a Switch does not tell which side is dead
  check_input(t->graph, "r1", 0, "behind_folded:0");
  check_input(t->graph, "behind_folded", 0, "^neg");
}

static void test_shape_keeps_side_effects(void** state) {
  testing_t* t = *state;
  weir_edge_t lost = ADD(t->graph, "Effect", "lost", add_known(t->graph, "x", 5));
  weir_edge_t kept = ADD(t->graph, "Effect", "kept", add_known(t->graph, "y", 5));
  add_retval(t->graph, "r0", ADD(t->graph, "Shape", "s0", ADD(t->graph, "Neg", "neg", lost)), 0);
  add_retval(t->graph, "r1", ADD(t->graph, "Shape", "s1", kept), 1);
  add_retval(t->graph, "r2", kept, 2);
  fold(t, NULL, NULL);
  check_input(t->graph, "r0", 0, "s0_folded:0");
  check_input(t->graph, "s0_folded", 0, "^s0");
  check_input(t->graph, "r1", 0, "s1_folded:0");
  assert_int_equal(find(t->graph, "s1_folded")->control_count, 0);
}

// What is computed from such a shape waits, too: the shape itself is gone.
static void test_what_comes_of_a_shape_keeps_side_effects(void** state) {
  testing_t* t = *state;
  counter_t counter = {0};
  weir_edge_t lost = ADD(t->graph, "Effect", "lost", add_known(t->graph, "x", 5));
  weir_edge_t shape = ADD(t->graph, "Shape", "shape", lost);
  add_retval(t->graph, "ret", ADD(t->graph, "Fill", "fill", shape, add_float(t->graph, "a", 1)), 0);
  fold(t, NULL, &counter);
  check_input(t->graph, "ret", 0, "fill_folded:0");
  check_input(t->graph, "fill_folded", 0, "^shape");
}

static void test_waiting_for_a_shape(void** state) {
  testing_t* t = *state;
  weir_edge_t shape = ADD(t->graph, "Shape", "shape",
                          ADD(t->graph, "Effect", "effect", add_known(t->graph, "x", 5)));
  weir_node_t* group = add_with(t->graph, "NoOp", "group", WEIR_NO_EDGES, WEIR_NO_ATTRS);
  check_ok(weir_graph_add_control(group, shape.node));
  fold(t, &group, NULL);
  check_input(t->graph, "group", 0, "^shape");
}

static void test_reference_shape(void** state) {
  testing_t* t = *state;
  weir_attrs_t attrs = WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_FLOAT),
                                  weir_attr_shape("shape", &weir_shape_scalar));
  weir_edge_t v = edge_of(add_with(t->graph, "Variable", "v", WEIR_NO_EDGES, attrs), 0);
  add_retval(t->graph, "ret", ADD(t->graph, "Shape", "shape", v), 0);
  fold(t, NULL, NULL);
  check_input(t->graph, "ret", 0, "shape:0");  // an assignment may change it
}

static weir_edge_t add_scalar_variable(testing_t* t, const char* name) {
  weir_attrs_t attrs = WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_FLOAT),
                                  weir_attr_shape("shape", &weir_shape_scalar));
  return edge_of(add_with(t->graph, "Variable", name, WEIR_NO_EDGES, attrs), 0);
}

// Whose size comes of a value that was made after an assignment comes after it, too.
static void test_shape_keeps_order(void** state) {
  testing_t* t = *state;
  weir_edge_t v = add_scalar_variable(t, "v"), w = add_scalar_variable(t, "w");
  weir_edge_t assign = ADD(t->graph, "Assign", "assign", v, add_float(t->graph, "a", 1));
  weir_edge_t neg = ADD(t->graph, "Neg", "neg", add_known(t->graph, "x", 5));
  check_ok(weir_graph_add_control(neg.node, assign.node));
  weir_edge_t before = ADD(t->graph, "Shape", "before", neg);
  weir_edge_t other = ADD(t->graph, "Shape", "other", neg);
  add_retval(t->graph, "r0", ADD(t->graph, "Fill", "reads_v", before, v), 0);
  add_retval(t->graph, "r1", ADD(t->graph, "Fill", "reads_w", other, w), 1);
  add_retval(t->graph, "r2", neg, 2);  // so nothing is lost but the order
  fold(t, NULL, NULL);
  check_input(t->graph, "reads_v", 0, "before_folded:0");
  check_input(t->graph, "before_folded", 0, "^before");
  check_input(t->graph, "reads_w", 0, "other_folded:0");
  assert_int_equal(find(t->graph, "other_folded")->control_count, 0);
}

// The same with more users of variables than are looked at at once.
static void test_shape_keeps_order_among_many(void** state) {
  testing_t* t = *state;
  enum { COUNT = 100, FIRST = 3, LAST = 90 };
  weir_edge_t variables[COUNT];
  weir_edge_t neg = ADD(t->graph, "Neg", "neg", add_known(t->graph, "x", 5));
  for (int i = 0; i < COUNT; ++i) {
    char names[4][16];
    const char* const kinds[] = {"v", "a", "assign", "r"};
    for (int k = 0; k < 4; ++k) snprintf(names[k], sizeof(names[k]), "%s%d", kinds[k], i);
    variables[i] = add_scalar_variable(t, names[0]);
    weir_edge_t assign =
        ADD(t->graph, "Assign", names[2], variables[i], add_float(t->graph, names[1], 1));
    add_retval(t->graph, names[3], assign, i);
    if (i == FIRST || i == LAST) check_ok(weir_graph_add_control(neg.node, assign.node));
  }
  weir_edge_t before = ADD(t->graph, "Shape", "before", neg);
  add_retval(t->graph, "read", ADD(t->graph, "Fill", "fill", before, variables[LAST]), COUNT);
  add_retval(t->graph, "kept", neg, COUNT + 1);
  fold(t, NULL, NULL);
  check_input(t->graph, "fill", 0, "before_folded:0");
  check_input(t->graph, "before_folded", 0, "^before");
}

static void test_no_nodes(void** state) {
  testing_t* t = *state;
  counter_t counter = {0};
  fold(t, NULL, &counter);
  assert_int_equal(t->graph->node_count, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, testing_setup, testing_teardown)
      TEST(test_no_nodes),
      TEST(test_chain),
      TEST(test_all_outputs),
      TEST(test_left_alone),
      TEST(test_errors_wait_for_the_run),
      TEST(test_no_evaluator),
      TEST(test_controls_are_carried),
      TEST(test_size_limit),
      TEST(test_known_shape),
      TEST(test_shape_in_a_branch),
      TEST(test_shape_keeps_side_effects),
      TEST(test_what_comes_of_a_shape_keeps_side_effects),
      TEST(test_waiting_for_a_shape),
      TEST(test_reference_shape),
      TEST(test_shape_keeps_order),
      TEST(test_shape_keeps_order_among_many),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

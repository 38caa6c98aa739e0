// mixed_test.c — Mixed precision: which nodes compute in 16 bits, where casts are, and what it
// leaves alone.
#include "pass/pass.h"
#include "testing/world.h"

static void retval(world_t* w, const char* name, weir_edge_t edge, int index) {
  add(w, "_Retval", name, WEIR_EDGES(edge), WEIR_ATTRS(weir_attr_int("index", index)));
}

static void paint_as(world_t* w, weir_pass_ctx_t ctx) {
  ctx.graph = w->graph;
  check_ok(weir_pass_mixed(&ctx));
}
static void paint(world_t* w) { paint_as(w, (weir_pass_ctx_t){.mixed = WEIR_DTYPE_BFLOAT16}); }

static void check_types(const weir_edge_t* edges, size_t count, weir_dtype_t type) {
  for (size_t i = 0; i < count; ++i) {
    if (weir_edge_dtype(edges[i]) != type)
      fail_msg("'%s' is of type %s", edges[i].node->def.name,
               weir_dtype_name(weir_edge_dtype(edges[i])));
  }
}
#define CHECK_TYPES(type, ...)              \
  check_types((weir_edge_t[]){__VA_ARGS__}, \
              sizeof((weir_edge_t[]){__VA_ARGS__}) / sizeof(weir_edge_t), type)
#define CHECK_NARROW(...) CHECK_TYPES(WEIR_DTYPE_BFLOAT16, __VA_ARGS__)
#define CHECK_WIDE(...) CHECK_TYPES(WEIR_DTYPE_FLOAT, __VA_ARGS__)

static weir_node_t* input_of(weir_edge_t edge, int index) { return edge.node->inputs[index].node; }

// Asserts that an input is the cast of |from|, and returns the cast.
static weir_node_t* check_cast(weir_edge_t reader, int index, weir_edge_t from) {
  weir_node_t* cast = input_of(reader, index);
  assert_string_equal(cast->def.op_name, "Cast");
  assert_true(weir_edge_equal(cast->inputs[0], from));
  return cast;
}

static int count_casts(world_t* w) {
  int count = 0;
  for (size_t i = 0; i < w->graph->node_count; ++i)
    count += strcmp(w->graph->nodes[i]->def.op_name, "Cast") == 0;
  return count;
}

static weir_edge_t matrix(world_t* w, const char* name) {
  return placeholder(w, name, WEIR_DTYPE_FLOAT);
}

static void test_parse(void** state) {
  (void)state;
  weir_dtype_t type = WEIR_DTYPE_FLOAT;
  check_ok(weir_mixed_parse(NULL, &type));
  assert_int_equal(type, WEIR_DTYPE_INVALID);
  check_ok(weir_mixed_parse("bf16", &type));
  assert_int_equal(type, WEIR_DTYPE_BFLOAT16);
  check_ok(weir_mixed_parse("half", &type));
  assert_int_equal(type, WEIR_DTYPE_HALF);
  weir_status_t* status = weir_mixed_parse("int8", &type);
  assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
  weir_status_destroy(status);
}

static void test_nothing_without_it(void** state) {
  world_t* w = *state;
  weir_edge_t x = matrix(w, "x");
  weir_edge_t y = OP(w, "MatMul", x, x);
  retval(w, "r", y, 0);
  size_t count = w->graph->node_count;
  paint_as(w, (weir_pass_ctx_t){.target_count = 0});
  assert_int_equal(w->graph->node_count, count);
  CHECK_WIDE(x, y);
}

// One cast for all readers on either side; what is fetched stays float.
static void test_chain(void** state) {
  world_t* w = *state;
  weir_edge_t x = matrix(w, "x");
  weir_edge_t a = OP(w, "MatMul", x, x);
  weir_edge_t b = OP(w, "Relu", a);
  weir_edge_t c = OP(w, "MatMul", b, x);
  retval(w, "r0", c, 0);
  retval(w, "r1", b, 1);
  retval(w, "r2", b, 2);
  paint(w);
  CHECK_WIDE(x);
  CHECK_NARROW(a, b, c);
  weir_node_t* cast = check_cast(a, 0, x);
  assert_ptr_equal(input_of(a, 1), cast);
  assert_ptr_equal(input_of(c, 1), cast);
  assert_ptr_equal(input_of(c, 0), b.node);
  weir_edge_t r1 = output(weir_graph_find_node(w->graph, "r1"), 0);
  weir_edge_t r2 = output(weir_graph_find_node(w->graph, "r2"), 0);
  assert_ptr_equal(check_cast(r1, 0, b), check_cast(r2, 0, b));
  assert_int_equal(count_casts(w), 3);
}

static void test_diamond(void** state) {
  world_t* w = *state;
  weir_edge_t x = matrix(w, "x");
  weir_edge_t a = OP(w, "MatMul", x, x);
  weir_edge_t b = OP(w, "Tanh", a);
  weir_edge_t c = OP(w, "Neg", a);
  weir_edge_t d = OP(w, "AddV2", b, c);
  weir_edge_t e = OP(w, "MatMul", d, d);
  retval(w, "r", e, 0);
  paint(w);
  CHECK_NARROW(a, b, c, d, e);
  assert_int_equal(count_casts(w), 2);
}

// INFER nodes follow between two products, not after the last; constants are converted.
static void test_between(void** state) {
  world_t* w = *state;
  weir_edge_t x = matrix(w, "x");
  weir_edge_t one = weir_const_float(w->scope, 1);
  weir_edge_t a = OP(w, "MatMul", x, x);
  weir_edge_t b = OP(w, "AddV2", a, one);
  weir_edge_t c = OP(w, "MatMul", b, b);
  weir_edge_t d = OP(w, "AddV2", c, one);
  retval(w, "r", d, 0);
  paint(w);
  CHECK_NARROW(a, b, c);
  CHECK_WIDE(one, d);
  assert_string_equal(input_of(b, 1)->def.op_name, "Const");
  assert_ptr_equal(input_of(d, 1), one.node);
  check_cast(d, 0, c);
}

// What an exponential or a sum gives stays in float, also by way of others.
static void test_denied(void** state) {
  world_t* w = *state;
  weir_edge_t x = matrix(w, "x");
  weir_edge_t a = OP(w, "MatMul", x, x);
  weir_edge_t b = OP(w, "Exp", a);
  weir_edge_t c = OP(w, "Neg", b);
  weir_edge_t d = OP(w, "Mul", c, a);
  weir_edge_t e = OP(w, "MatMul", d, d);
  weir_edge_t f = OP(w, "Neg", OP(w, "Softmax", e));  // beside a product: nothing is lost by it
  weir_edge_t g = OP(w, "MatMul", f, f);
  retval(w, "r", g, 0);
  paint(w);
  CHECK_NARROW(a, e, f, g);
  CHECK_WIDE(b, c, d);
}

// CLEAR nodes follow on both sides.
static void test_beside(void** state) {
  world_t* w = *state;
  const int dims[] = {2, 2};
  weir_edge_t shape = weir_const_ints(w->scope, dims, 2);
  weir_edge_t x = matrix(w, "x");
  weir_edge_t a = OP(w, "Reshape", x, shape);
  weir_edge_t b = OP(w, "MatMul", a, a);
  weir_edge_t c = OP(w, "Identity", b);
  weir_edge_t d = OP(w, "Shape", c);
  weir_edge_t lone = OP(w, "Neg", x);
  retval(w, "r0", c, 0);
  retval(w, "r1", d, 1);
  retval(w, "r2", lone, 2);
  paint(w);
  CHECK_NARROW(a, b, c);
  CHECK_WIDE(lone);
  assert_ptr_equal(input_of(d, 0), c.node);
  assert_int_equal(d.node->def.input_types[0], WEIR_DTYPE_BFLOAT16);
}

// Batch normalisation keeps its statistics; where it cannot do 16 bits it is left alone.
static void test_statistics(void** state) {
  world_t* w = *state;
  weir_edge_t x = matrix(w, "x"), scale = matrix(w, "scale");
  weir_named_attr_t strides = weir_attr_ints("strides", (int64_t[]){1, 1, 1, 1}, 4);
  weir_attrs_t attrs = WEIR_ATTRS(strides, weir_attr_string("padding", "SAME"));
  weir_edge_t a = output(add(w, "Conv2D", NULL, WEIR_EDGES(x, x), attrs), 0);
  weir_edges_t inputs = WEIR_EDGES(a, scale, scale, scale, scale);
  weir_node_t* new_one =
      add(w, "FusedBatchNormV3", NULL, inputs, WEIR_ATTRS(weir_attr_type("U", WEIR_DTYPE_FLOAT)));
  weir_node_t* old_one = add(w, "FusedBatchNorm", NULL, inputs, WEIR_NO_ATTRS);
  weir_edge_t b = output(add(w, "Conv2D", NULL, WEIR_EDGES(output(new_one, 0), x), attrs), 0);
  weir_edge_t c = output(add(w, "Conv2D", NULL, WEIR_EDGES(output(old_one, 0), x), attrs), 0);
  retval(w, "r0", b, 0);
  retval(w, "r1", c, 1);
  retval(w, "r2", output(new_one, 1), 2);
  paint(w);
  CHECK_NARROW(a, b, c, output(new_one, 0));
  CHECK_WIDE(output(new_one, 1), output(old_one, 0));
  assert_ptr_equal(new_one->inputs[1].node, scale.node);
}

// ---- references ----

typedef struct variable_t {
  weir_edge_t ref, read;
} variable_t;

static variable_t add_variable(world_t* w) {
  const weir_shape_t* shape = weir_shape_make(&w->graph->arena, 2, (int64_t[]){1, 1});
  variable_t v;
  v.ref = output(
      add(w, "VariableV2", "v", WEIR_NO_EDGES,
          WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_FLOAT), weir_attr_shape("shape", shape))),
      0);
  v.read = OP(w, "Identity", v.ref);
  return v;
}

// A reader that is ordered after a write sees what was written, with a cast of its own.
static void test_references(void** state) {
  world_t* w = *state;
  variable_t v = add_variable(w);
  const int64_t dims[] = {1, 1};
  float values[] = {3, 5};
  weir_tensor_t* three = make_tensor(WEIR_DTYPE_FLOAT, 2, dims, &values[0]);
  weir_tensor_t* five = make_tensor(WEIR_DTYPE_FLOAT, 2, dims, &values[1]);
  weir_edge_t start = OP(w, "Assign", v.ref, weir_const(w->scope, three));
  weir_edge_t x = weir_const(w->scope, three);
  weir_edge_t before = OP(w, "MatMul", v.read, x);
  weir_edge_t again = OP(w, "MatMul", x, v.read);
  weir_edge_t write = OP(w, "Assign", v.ref, weir_const(w->scope, five));
  weir_edge_t after = OP(w, "MatMul", v.read, x);
  weir_edge_t view = OP(w, "Identity", v.read);
  weir_edge_t viewed = OP(w, "MatMul", view, x);
  check_ok(weir_graph_add_control(write.node, before.node));
  check_ok(weir_graph_add_control(after.node, write.node));
  check_ok(weir_graph_add_control(viewed.node, write.node));
  weir_session_options_t options = {.threads = 2, .mixed_precision = "bf16"};
  weir_tensor_t* results[3] = {NULL};
  check_ok(weir_session_create(w->graph, &options, &w->session));
  check_ok(weir_session_run_target(w->session, start.node));
  check_ok(weir_session_run(w->session, &(weir_step_spec_t){WEIR_FETCHES(before, after, viewed)},
                            results));
  assert_true(float_of(results[0]) == 9);
  assert_true(float_of(results[1]) == 15);
  assert_true(float_of(results[2]) == 15);
  for (int i = 0; i < 3; ++i) weir_tensor_release(results[i]);
  weir_tensor_release(three);
  weir_tensor_release(five);

  retval(w, "r0", before, 0);
  retval(w, "r1", again, 1);
  retval(w, "r2", after, 2);
  retval(w, "r3", viewed, 3);
  paint(w);
  CHECK_NARROW(before, again, after, viewed);
  CHECK_WIDE(v.read, view);
  weir_node_t* shared = check_cast(before, 0, v.read);
  assert_ptr_equal(input_of(again, 1), shared);
  assert_int_equal(shared->control_count, 0);
  weir_node_t* own = check_cast(after, 0, v.read);
  assert_ptr_not_equal(own, shared);
  assert_ptr_equal(own->control_inputs[0], write.node);
  assert_ptr_not_equal(check_cast(viewed, 0, view), own);
}

// An argument of a function may be a variable's memory.
static void test_moving_arguments(void** state) {
  world_t* w = *state;
  weir_edge_t x =
      output(add(w, "_Arg", "x", WEIR_NO_EDGES,
                 WEIR_ATTRS(weir_attr_type("T", WEIR_DTYPE_FLOAT), weir_attr_int("index", 0))),
             0);
  queue_nodes_t q = add_queue(w, "q", 1);
  weir_edge_t a = OP(w, "MatMul", x, x);
  weir_edge_t b = OP(w, "MatMul", x, q.value);
  retval(w, "r0", a, 0);
  retval(w, "r1", b, 1);
  paint_as(w, (weir_pass_ctx_t){.mixed = WEIR_DTYPE_BFLOAT16, .has_moving_args = true});
  weir_node_t* own = check_cast(b, 0, x);
  assert_ptr_not_equal(own, check_cast(a, 0, x));
  assert_int_equal(own->control_count, 1);
  assert_ptr_equal(own->control_inputs[0], q.value.node);
}

// ---- control flow ----

// What goes round in a loop keeps its type; products in it do not, nor what it is given for good.
static void test_loop(void** state) {
  world_t* w = *state;
  const int64_t dims[] = {1, 1};
  float value = 2;
  weir_tensor_t* two = make_tensor(WEIR_DTYPE_FLOAT, 2, dims, &value);
  weir_edge_t x = weir_const(w->scope, two);
  weir_tensor_release(two);
  loop_nodes_t loop =
      open_loop(w, "loop", weir_const_int(w->scope, 0), x, weir_const_int(w->scope, 5), 10);
  weir_edge_t y = placeholder(w, "y", WEIR_DTYPE_FLOAT);
  weir_edge_t inside = add_enter(w, y, "loop", true, 10);
  weir_edge_t first = OP(w, "MatMul", loop.x, x);  // of a constant that is in no loop
  weir_edge_t product = OP(w, "MatMul", first, inside);
  close_loop(w, &loop, product);
  weir_session_options_t options = {.threads = 1, .mixed_precision = "half"};
  check_ok(weir_session_create(w->graph, &options, &w->session));
  weir_tensor_t *result = NULL, *one = make_tensor(WEIR_DTYPE_FLOAT, 2, dims, &(float){1});
  check_ok(weir_session_run(
      w->session, &(weir_step_spec_t){WEIR_FEEDS({y, one}), WEIR_FETCHES(loop.exit_x)}, &result));
  assert_true(float_of(result) == 64);
  weir_tensor_release(result);
  weir_tensor_release(one);
  retval(w, "r", loop.exit_x, 0);
  paint(w);
  CHECK_NARROW(first, product, loop.x, inside);
  CHECK_WIDE(output(loop.merge_x, 0), loop.exit_x);
  assert_string_equal(input_of(first, 1)->def.op_name, "Const");
  check_cast(inside, 0, y);  // once, before the loop
}

// A variable that a loop reads, and that is written before the loop begins.
static void test_reference_in_loop(void** state) {
  world_t* w = *state;
  variable_t v = add_variable(w);
  const int64_t dims[] = {1, 1};
  weir_edge_t one = weir_const_floats(w->scope, 2, dims, &(float){1});
  weir_edge_t start = OP(w, "Assign", v.ref, weir_const_floats(w->scope, 2, dims, &(float){3}));
  weir_edge_t write = OP(w, "Assign", v.ref, weir_const_floats(w->scope, 2, dims, &(float){5}));
  weir_edge_t x = OP(w, "Identity", one);
  check_ok(weir_graph_add_control(write.node, v.read.node));
  check_ok(weir_graph_add_control(x.node, write.node));
  loop_nodes_t loop =
      open_loop(w, "loop", weir_const_int(w->scope, 0), x, weir_const_int(w->scope, 2), 10);
  weir_edge_t inside = add_enter(w, v.read, "loop", true, 10);
  weir_edge_t product = OP(w, "MatMul", loop.x, inside);
  close_loop(w, &loop, product);
  weir_session_options_t options = {.threads = 2, .mixed_precision = "bf16"};
  weir_tensor_t* result = NULL;
  check_ok(weir_session_create(w->graph, &options, &w->session));
  check_ok(weir_session_run_target(w->session, start.node));
  check_ok(weir_session_run(w->session, &(weir_step_spec_t){WEIR_FETCHES(loop.exit_x)}, &result));
  assert_true(float_of(result) == 25);
  weir_tensor_release(result);
  retval(w, "r", loop.exit_x, 0);
  paint(w);
  CHECK_NARROW(product);
  CHECK_WIDE(inside);
  assert_ptr_equal(check_cast(product, 1, inside)->control_inputs[0], loop.x.node);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_parse),
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
      TEST(test_nothing_without_it),
      TEST(test_chain),
      TEST(test_diamond),
      TEST(test_between),
      TEST(test_denied),
      TEST(test_beside),
      TEST(test_statistics),
      TEST(test_references),
      TEST(test_moving_arguments),
      TEST(test_loop),
      TEST(test_reference_in_loop),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

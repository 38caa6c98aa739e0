// gradient_test.c — Gradients built in C: sums, slices, loops, conditionals, functions, errors,
// exhausted memory.
#include "graph/gradient.h"

#include <math.h>

#include "graph/lower.h"
#include "testing/world.h"

static weir_edge_t gradient(world_t* w, weir_edge_t y, weir_edge_t x) {
  weir_edge_t dx = WEIR_NO_EDGE;
  check_ok(weir_gradients(w->scope, &y, 1, &x, 1, NULL, &dx));
  return dx;
}

static weir_status_t* try_gradient(world_t* w, weir_edge_t y, weir_edge_t x) {
  weir_edge_t dx = WEIR_NO_EDGE;
  return weir_gradients(w->scope, &y, 1, &x, 1, NULL, &dx);
}

static float run_at(world_t* w, weir_edge_t fetch, weir_edge_t x, float value) {
  if (!w->session) open_session(w, 2);
  weir_tensor_t* fed = make_float(value);
  weir_tensor_t* result = NULL;
  weir_step_spec_t spec = {WEIR_FEEDS({x, fed}), WEIR_FETCHES(fetch)};
  check_ok(weir_session_run(w->session, &spec, &result));
  float got = float_of(result);
  weir_tensor_release(result);
  weir_tensor_release(fed);
  return got;
}

#define CHECK_NEAR(a, b) \
  assert_true(fabs((double)(a) - (double)(b)) <= 1e-5 * (1 + fabs((double)(b))))

// ---- straight graphs ----

static void test_derivatives(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t y = OP(w, "Mul", OP(w, "Mul", x, x), x);
  weir_edge_t first = gradient(w, y, x);
  weir_edge_t second = gradient(w, first, x);
  weir_edge_t third = gradient(w, second, x);
  CHECK_NEAR(run_at(w, first, x, 2), 12);
  CHECK_NEAR(run_at(w, second, x, 2), 12);
  CHECK_NEAR(run_at(w, third, x, 2), 6);
}

static void test_no_dependence(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t z = placeholder(w, "z", WEIR_DTYPE_FLOAT);
  assert_null(gradient(w, OP(w, "Mul", z, z), x).node);
  assert_null(gradient(w, OP(w, "StopGradient", x), x).node);
}

static void test_x_in_the_middle(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t middle = OP(w, "StopGradient", x);
  weir_edge_t dx = gradient(w, OP(w, "Mul", middle, middle), middle);
  CHECK_NEAR(run_at(w, dx, x, 3), 6);
}

static void test_slices_stay_slices(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t rows = weir_const_ints(w->scope, (const int[]){0, 2}, 2);
  weir_edge_t axis = weir_const_int(w->scope, 0);
  weir_edge_t y = output(add(w, "GatherV2", NULL, WEIR_EDGES(x, rows, axis), WEIR_NO_ATTRS), 0);
  weir_gradient_t dx;
  check_ok(weir_gradients_sparse(w->scope, &y, 1, &x, 1, NULL, &dx));
  assert_non_null(dx.indices.node);
  assert_non_null(dx.dense_shape.node);
}

// ---- loops and conditionals ----

// x, squared |n| times.
static weir_edge_t squares(world_t* w, weir_edge_t x, int n) {
  loop_nodes_t loop =
      open_loop(w, "squares", weir_const_int(w->scope, 0), x, weir_const_int(w->scope, n), 10);
  close_loop(w, &loop, OP(w, "Mul", loop.x, loop.x));
  return loop.exit_x;
}

static void test_loop(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  const float powers[] = {1, 2, 4, 8};
  for (int n = 0; n < 4; ++n) {
    weir_edge_t dx = gradient(w, squares(w, x, n), x);
    weir_session_destroy(w->session);
    w->session = NULL;
    CHECK_NEAR(run_at(w, dx, x, 1.5f), powers[n] * powf(1.5f, powers[n] - 1));
  }
}

static void test_loop_second_derivative(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t second = gradient(w, gradient(w, squares(w, x, 2), x), x);
  CHECK_NEAR(run_at(w, second, x, 1.5f), 12 * 1.5f * 1.5f);
}

// x = rows of x, times c, in a shape that only the step knows: what was inferred from the shape
// that x enters with does not hold in later turns.
static void test_loop_whose_variable_changes_shape(void** state) {
  world_t* w = *state;
  weir_edge_t x = weir_const_floats(w->scope, WEIR_DIMS(2, 1), (float[]){1, 5});
  weir_edge_t c = weir_const_floats(w->scope, WEIR_DIMS(3), (float[]){2, 2, 2});
  weir_edge_t shape = placeholder(w, "shape", WEIR_DTYPE_INT32);
  loop_nodes_t loop =
      open_loop(w, "rows", weir_const_int(w->scope, 0), x, weir_const_int(w->scope, 2), 10);
  c = add_enter(w, c, "rows", true, 10);
  weir_node_t* rows =
      add(w, "Unpack", NULL, WEIR_EDGES(loop.x), WEIR_ATTRS(weir_attr_int("num", 2)));
  weir_edge_t product =
      OP(w, "Pack", OP(w, "Mul", output(rows, 0), c), OP(w, "Mul", output(rows, 1), c));
  close_loop(w, &loop, OP(w, "Reshape", product, add_enter(w, shape, "rows", true, 10)));
  weir_edge_t dx = gradient(w, loop.exit_x, x);
  weir_tensor_t* fed = make_tensor(WEIR_DTYPE_INT32, 1, (int64_t[]){2}, (const int32_t[]){2, 3});
  weir_tensor_t* result = NULL;
  check_ok(weir_session_run(open_session(w, 1),
                            &(weir_step_spec_t){WEIR_FEEDS({shape, fed}), WEIR_FETCHES(dx)},
                            &result));
  assert_int_equal(weir_tensor_count(result), 2);
  for (int i = 0; i < 2; ++i)
    assert_float_equal(((const float*)weir_tensor_data(result))[i], 12, 0);
  weir_tensor_release(result);
  weir_tensor_release(fed);
}

static void test_loop_without_gradient_saves_nothing(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t y = squares(w, x, 2);
  weir_callable_t *before = NULL, *after = NULL;
  weir_step_spec_t spec = {
      .feeds = &(weir_feed_t){.edge = x}, .feed_count = 1, .fetches = &y, .fetch_count = 1};
  check_ok(weir_callable_create(open_session(w, 1), &spec, &before));
  assert_non_null(gradient(w, y, x).node);
  check_ok(weir_callable_create(w->session, &spec, &after));
  assert_int_equal(weir_callable_node_count(before), weir_callable_node_count(after));
  weir_callable_destroy(before);
  weir_callable_destroy(after);
}

static void test_cond(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t pred = OP(w, "Greater", x, weir_const_float(w->scope, 0));
  weir_node_t* split = add(w, "Switch", NULL, WEIR_EDGES(x, pred), WEIR_NO_ATTRS);
  weir_edge_t y = OP(w, "Merge", OP(w, "Neg", output(split, 0)), OP(w, "Square", output(split, 1)));
  weir_edge_t dx = gradient(w, y, x);
  CHECK_NEAR(run_at(w, dx, x, -3), -1);
  CHECK_NEAR(run_at(w, dx, x, 3), 6);
}

// ---- functions ----

static const char cube_text[] =
    "library { function { signature { name: 'Cube' input_arg { name: 'a' type: DT_FLOAT } "
    "output_arg { name: 'c' type: "
    "DT_FLOAT } } node_def { name: 's' op: 'Square' input: 'a' attr { key: 'T' value { type: "
    "DT_FLOAT } } } node_def { name: "
    "'m' op: 'Mul' input: 's:y:0' input: 'a' attr { key: 'T' value { type: DT_FLOAT } } } ret { "
    "key: 'c' value: 'm:z:0' } } "
    "function { signature { name: 'Again' input_arg { name: 'a' type: DT_FLOAT } output_arg { "
    "name: 'c' type: DT_FLOAT } } "
    "node_def { name: 'r' op: 'Again' input: 'a' } ret { key: 'c' value: 'r:c:0' } } } "
    "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } } "
    "node { name: 'y' op: 'Cube' input: 'x' } "
    "node { name: 'z' op: 'Again' input: 'x' } "
    "node { name: 'p' op: 'PartitionedCall' input: 'x' attr { key: 'f' value { func { name: 'Cube' "
    "} } } attr { key: 'Tin' "
    "value { list { type: DT_FLOAT } } } attr { key: 'Tout' value { list { type: DT_FLOAT } } } } ";

static weir_edge_t named(world_t* w, const char* name) {
  weir_edge_t edge = WEIR_NO_EDGE;
  check_ok(weir_graph_find_output(w->graph, name, &edge));
  return edge;
}

static void test_function(void** state) {
  world_t* w = *state;
  import_text(w, cube_text);
  weir_edge_t x = named(w, "x");
  const char* calls[] = {"y", "p"};
  for (size_t i = 0; i < WEIR_COUNT_OF(calls); ++i) {
    weir_edge_t y = named(w, calls[i]);
    weir_edge_t dx = gradient(w, y, x);
    assert_string_equal(weir_node_op(y.node), "IdentityN");
    weir_session_destroy(w->session);
    w->session = NULL;
    CHECK_NEAR(run_at(w, y, x, 2), 8);
    CHECK_NEAR(run_at(w, dx, x, 2), 12);
  }
}

static void test_can_lower(void** state) {
  world_t* w = *state;
  import_text(w, cube_text);
  assert_false(weir_node_can_lower(named(w, "x").node));
  assert_true(weir_node_can_lower(named(w, "y").node));
  assert_true(weir_node_can_lower(named(w, "p").node));
}

// ---- errors ----

static void test_recursion_is_refused(void** state) {
  world_t* w = *state;
  import_text(w, cube_text);
  check_error(try_gradient(w, named(w, "z"), named(w, "x")), WEIR_UNIMPLEMENTED,
              "nested more than");
}

static void test_inside_a_loop_is_refused(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  loop_nodes_t loop =
      open_loop(w, "loop", weir_const_int(w->scope, 0), x, weir_const_int(w->scope, 2), 10);
  weir_edge_t inside = OP(w, "Mul", loop.x, loop.x);
  close_loop(w, &loop, inside);
  check_error(try_gradient(w, loop.exit_x, inside), WEIR_INVALID_ARGUMENT, "inside a loop");
  check_error(try_gradient(w, inside, x), WEIR_INVALID_ARGUMENT, "inside a loop");
}

static void test_before_the_switch_is_refused(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  loop_nodes_t loop =
      open_loop(w, "loop", weir_const_int(w->scope, 0), x, weir_const_int(w->scope, 2), 10);
  close_loop(w, &loop, OP(w, "Mul", loop.x, OP(w, "Sin", output(loop.merge_x, 0))));
  check_error(try_gradient(w, loop.exit_x, x), WEIR_UNIMPLEMENTED, "not in its body");
}

static void test_integers_are_refused(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_INT32);
  check_error(try_gradient(w, x, x), WEIR_INVALID_ARGUMENT, "its type is int32");
}

static weir_status_t* build_under_pressure(world_t* w, int64_t n) {
  weir_edge_t x = named(w, "x");
  weir_edge_t y = squares(w, named(w, "y"), 2);
  weir_alloc_fail_at(n, true);
  weir_status_t* status = try_gradient(w, y, x);
  weir_alloc_fail_at(0, false);
  return status;
}

static void test_exhausted_memory(void** state) {
  (void)state;
  bool is_done = false;
  for (int64_t n = 1; !is_done; n += 1 + n / 16) {
    world_t* w = NULL;
    world_setup((void**)&w);
    import_text(w, cube_text);
    weir_status_t* status = build_under_pressure(w, n);
    is_done = !status;
    if (status) assert_int_equal(weir_status_code(status), WEIR_RESOURCE_EXHAUSTED);
    weir_status_destroy(status);
    world_teardown((void**)&w);
  }
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_derivatives),
      TEST(test_no_dependence),
      TEST(test_x_in_the_middle),
      TEST(test_slices_stay_slices),
      TEST(test_loop),
      TEST(test_loop_second_derivative),
      TEST(test_loop_whose_variable_changes_shape),
      TEST(test_loop_without_gradient_saves_nothing),
      TEST(test_cond),
      TEST(test_function),
      TEST(test_can_lower),
      TEST(test_recursion_is_refused),
      TEST(test_inside_a_loop_is_refused),
      TEST(test_before_the_switch_is_refused),
      TEST(test_integers_are_refused),
      cmocka_unit_test(test_exhausted_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

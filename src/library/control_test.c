// control_test.c — Loops and conditionals built from C functions: values, captures, nesting,
// gradients against differences, errors.
#include "weir/control.h"

#include <math.h>

#include "testing/bench.h"

// ---- a world to build in ----

// x is a float scalar, fed.
static int setup_x(void** state) {
  setup(state);
  bench_t* b = *state;
  b->x = weir_placeholder(b->s, WEIR_DTYPE_FLOAT, .shape = WEIR_SCALAR_SHAPE);
  return 0;
}

// The value of |y|, a float scalar, at x; twice over, with one thread and with two.
static float value_at(bench_t* b, weir_edge_t y, float x) {
  float got[2] = {0};
  for (int i = 0; i < 2; ++i) {
    weir_session_t* session = NULL;
    weir_session_options_t options = {.threads = i + 1};
    weir_tensor_t* fed = make_float(x);
    weir_tensor_t* result = NULL;
    weir_step_spec_t spec = {WEIR_FEEDS({b->x, fed}), WEIR_FETCHES(y)};
    check_ok(weir_session_create(b->graph, &options, &session));
    check_ok(weir_session_run_target(session, weir_initializer(b->s)));
    check_ok(weir_session_run(session, &spec, &result));
    got[i] = float_of(result);
    weir_tensor_release(result);
    weir_tensor_release(fed);
    weir_session_destroy(session);
  }
  assert_true(float_ulps(got[0], got[1]) == 0);
  return got[0];
}

#define CHECK_NEAR(a, b, tolerance) \
  assert_true(fabs((double)(a) - (double)(b)) <= (tolerance) * (1 + fabs((double)(b))))

// Checks value and gradient of |y| at |x|, and the gradient against differences.
static void check_at(bench_t* b, weir_edge_t y, float x, float value, float slope) {
  weir_edge_t dx = {0};
  if (weir_scope_status(b->s)) print_error("%s\n", weir_status_message(weir_scope_status(b->s)));
  check_ok(weir_gradients(b->s, &y, 1, &b->x, 1, NULL, &dx));
  const float h = 1e-2f;
  float difference = (value_at(b, y, x + h) - value_at(b, y, x - h)) / (2 * h);
  CHECK_NEAR(value_at(b, y, x), value, 1e-5);
  CHECK_NEAR(value_at(b, dx, x), slope, 1e-5);
  CHECK_NEAR(difference, slope, 1e-2);
}

// ---- loops ----

typedef struct power_t {
  weir_edge_t x, times;
  bool is_nested;
} power_t;

static weir_edge_t counts(weir_scope_t* s, const weir_edge_t* state, void* user) {
  power_t* p = user;
  return weir_less(s, state[0], p->times);
}

// state[1] *= x
static void multiply(weir_scope_t* s, weir_edge_t* state, void* user) {
  power_t* p = user;
  state[0] = weir_add_v2(s, state[0], weir_const_int(s, 1));
  state[1] = weir_mul(s, state[1], p->x);
}

static void test_loop(void** state) {
  bench_t* b = *state;
  power_t p = {.x = b->x, .times = weir_const_int(b->s, 3)};
  weir_edge_t vars[] = {weir_const_int(b->s, 0), weir_const_float(b->s, 2)};
  weir_while_loop(b->s, vars, 2, counts, multiply, &p, vars);
  check_at(b, vars[1], 1.5f, 2 * 3.375f, 2 * 3 * 2.25f);  // 2 x^3
}

static void test_loop_of_no_iteration(void** state) {
  bench_t* b = *state;
  power_t p = {.x = b->x, .times = weir_const_int(b->s, 0)};
  weir_edge_t vars[] = {weir_const_int(b->s, 0), weir_mul(b->s, b->x, b->x)};
  weir_while_loop(b->s, vars, 2, counts, multiply, &p, vars);
  check_at(b, vars[1], 1.5f, 2.25f, 3);
}

static void test_captured_computation(void** state) {
  bench_t* b = *state;
  power_t p = {.x = weir_sin(b->s, b->x), .times = weir_identity(b->s, weir_const_int(b->s, 2))};
  weir_edge_t vars[] = {weir_const_int(b->s, 0), b->x};
  weir_while_loop(b->s, vars, 2, counts, multiply, &p, vars, .parallel_iterations = 1);
  float sx = sinf(0.7f), cx = cosf(0.7f);  // x sin² x
  check_at(b, vars[1], 0.7f, 0.7f * sx * sx, sx * sx + 2 * 0.7f * sx * cx);
}

static void test_maximum_iterations(void** state) {
  bench_t* b = *state;
  power_t p = {.x = b->x, .times = weir_const_int(b->s, 1000)};
  weir_edge_t vars[] = {weir_const_int(b->s, 0), b->x};
  weir_while_loop(b->s, vars, 2, counts, multiply, &p, vars, .maximum_iterations = 2);
  check_at(b, vars[1], 1.5f, 3.375f, 3 * 2.25f);
}

// state[1] = Σ_k state[1] * x^2 ... : an inner loop in each iteration, both using x.
static void inner_loop(weir_scope_t* s, weir_edge_t* state, void* user) {
  power_t* p = user;
  power_t inner = {.x = p->x, .times = weir_const_int(s, 2)};
  weir_edge_t vars[] = {weir_const_int(s, 0), state[1]};
  weir_while_loop(s, vars, 2, counts, multiply, &inner, vars);
  state[0] = weir_add_v2(s, state[0], weir_const_int(s, 1));
  state[1] = weir_add_v2(s, vars[1], weir_mul(s, p->x, weir_const_float(s, 0.5f)));
}

static void test_nested_loops(void** state) {
  bench_t* b = *state;
  power_t p = {.x = weir_identity(b->s, b->x), .times = weir_const_int(b->s, 2)};
  weir_edge_t vars[] = {weir_const_int(b->s, 0), b->x};
  weir_while_loop(b->s, vars, 2, counts, inner_loop, &p, vars);
  float x = 1.1f;  // (x^3 + x/2) x^2 + x/2 = x^5 + x^3/2 + x/2
  check_at(b, vars[1], x, powf(x, 5) + x * x * x / 2 + x / 2, 5 * powf(x, 4) + 1.5f * x * x + 0.5f);
}

// A random number an iteration: no input of the loop, so only the pivot makes it run there.
static void add_random(weir_scope_t* s, weir_edge_t* state, void* user) {
  (void)user;
  weir_edge_t none = weir_const_ints(s, NULL, 0);
  weir_edge_t random = weir_random_uniform(s, none, WEIR_DTYPE_FLOAT, .seed = 3, .seed2 = 4);
  state[0] = weir_add_v2(s, state[0], weir_const_int(s, 1));
  state[1] = weir_add_v2(s, state[1], weir_add_v2(s, random, weir_const_float(s, 1)));
  state[2] = random;
}

static void test_node_without_inputs(void** state) {
  bench_t* b = *state;
  power_t p = {.times = weir_const_int(b->s, 4)};
  weir_edge_t zero = weir_const_float(b->s, 0);
  weir_edge_t vars[] = {weir_const_int(b->s, 0), zero, zero};
  weir_while_loop(b->s, vars, 3, counts, add_random, &p, vars);
  float sum = value_at(b, vars[1], 0);
  float last = value_at(b, vars[2], 0);
  assert_true(sum > 4 && sum < 8);
  assert_true(sum - 4 > last);  // others were added, and they differ
}

static void make_variable(weir_scope_t* s, weir_edge_t* state, void* user) {
  (void)user;
  weir_edge_t two = weir_add_v2(s, weir_const_float(s, 1), weir_const_float(s, 1));
  weir_edge_t w = weir_variable(s, "w", two);
  state[0] = weir_add_v2(s, state[0], weir_const_int(s, 1));
  state[1] = weir_mul(s, state[1], w);
}

static void test_variable_in_a_loop(void** state) {
  bench_t* b = *state;
  power_t p = {.times = weir_const_int(b->s, 3)};
  weir_edge_t vars[] = {weir_const_int(b->s, 0), b->x};
  weir_while_loop(b->s, vars, 2, counts, make_variable, &p, vars);
  assert_int_equal(weir_scope_variable_count(b->s), 1);
  weir_edge_t handle = weir_scope_variable_at(b->s, 0).handle;
  assert_string_equal(weir_node_name(handle.node), "while/w");
  check_at(b, vars[1], 1.5f, 12, 8);
  weir_edge_t dw = {0};
  check_ok(weir_gradients(b->s, &vars[1], 1, &handle, 1, NULL, &dw));
  CHECK_NEAR(value_at(b, dw, 1.5f), 1.5 * 3 * 4, 1e-6);  // x w^3
}

static void grow(weir_scope_t* s, weir_edge_t* state, void* user) {
  (void)user;
  const weir_edge_t twice[] = {state[1], state[1]};
  state[0] = weir_add_v2(s, state[0], weir_const_int(s, 1));
  state[1] = weir_concat_v2(s, twice, 2, weir_const_int(s, 0));
}

static void test_growing_shape(void** state) {
  bench_t* b = *state;
  power_t p = {.times = weir_const_int(b->s, 3)};
  weir_edge_t one = weir_expand_dims(b->s, b->x, weir_const_int(b->s, 0));
  weir_edge_t vars[] = {weir_const_int(b->s, 0), one};
  weir_while_loop(b->s, vars, 2, counts, grow, &p, vars,
                  .shapes = WEIR_SHAPES(WEIR_SCALAR_SHAPE, WEIR_SHAPE(-1)));
  int64_t dims[1] = {0};
  assert_int_equal(weir_edge_dims(vars[1], dims, 1), 1);
  assert_int_equal(dims[0], -1);
  check_at(b, weir_sum(b->s, vars[1], weir_const_int(b->s, 0)), 1.5f, 12, 8);
}

static void ordered_body(weir_scope_t* s, weir_edge_t* state, void* user) {
  power_t* p = user;
  weir_scope_t* after = weir_scope_after(s, &p->x.node, 1);  // an outer node orders an inner one
  state[0] = weir_add_v2(after, state[0], weir_const_int(s, 1));
  state[1] = weir_mul(s, state[1], weir_const_float(after, 2));  // a constant with an order
}

static void test_order_across_the_loop(void** state) {
  bench_t* b = *state;
  power_t p = {.x = weir_square(b->s, b->x), .times = weir_const_int(b->s, 3)};
  weir_edge_t vars[] = {weir_const_int(b->s, 0), b->x};
  weir_scope_t* after = weir_scope_after(b->s, &p.x.node, 1);
  weir_while_loop(after, vars, 2, counts, ordered_body, &p, vars);
  check_at(b, vars[1], 1.5f, 12, 8);
}

// ---- conditionals ----

typedef struct choice_t {
  weir_edge_t x, pred;
} choice_t;

static void square(weir_scope_t* s, weir_edge_t* outs, void* user) {
  choice_t* c = user;
  outs[0] = weir_mul(s, c->x, c->x);
  outs[1] = c->x;
}

static void constant(weir_scope_t* s, weir_edge_t* outs, void* user) {
  choice_t* c = user;
  outs[0] = weir_const_float(s, 7);
  outs[1] = weir_neg(s, c->x);
}

static void test_cond(void** state) {
  bench_t* b = *state;
  choice_t c = {.x = weir_identity(b->s, b->x)};
  weir_edge_t outs[2];
  weir_edge_t pred = weir_greater(b->s, b->x, weir_const_float(b->s, 0));
  weir_cond(b->s, pred, square, constant, &c, outs, 2);
  weir_edge_t sum = weir_add_v2(b->s, outs[0], outs[1]);
  check_at(b, sum, 3, 12, 7);
  check_at(b, sum, -3, 10, -1);
}

static void fail_branch(weir_scope_t* s, weir_edge_t* outs, void* user) {
  choice_t* c = user;
  const weir_edge_t data[] = {c->x};
  weir_node_t* check = weir_assert(s, c->pred, data, 1);
  outs[0] = weir_identity(weir_scope_after(s, &check, 1), c->x);
}

static void plain_branch(weir_scope_t* s, weir_edge_t* outs, void* user) {
  choice_t* c = user;
  outs[0] = weir_mul(s, c->x, weir_const_float(s, 2));
}

static void test_only_one_branch_runs(void** state) {
  bench_t* b = *state;
  weir_edge_t is_positive = weir_greater(b->s, b->x, weir_const_float(b->s, 0));
  choice_t c = {.x = b->x, .pred = is_positive};
  weir_edge_t out;
  weir_cond(b->s, is_positive, plain_branch, fail_branch, &c, &out, 1);
  CHECK_NEAR(value_at(b, out, 2), 4, 1e-6);  // the other branch would have failed
}

static void nested_else(weir_scope_t* s, weir_edge_t* outs, void* user) {
  choice_t* c = user;
  weir_edge_t below = weir_less(s, c->x, weir_const_float(s, -2));
  weir_cond(s, below, square, constant, c, outs, 2);
}

static void test_nested_conds(void** state) {
  bench_t* b = *state;
  choice_t c = {.x = b->x};
  weir_edge_t outs[2];
  weir_edge_t pred = weir_greater(b->s, b->x, weir_const_float(b->s, 0));
  weir_cond(b->s, pred, square, nested_else, &c, outs, 2);
  weir_edge_t sum = weir_add_v2(b->s, outs[0], outs[1]);
  check_at(b, sum, 3, 12, 7);
  check_at(b, sum, -1, 8, -1);
  check_at(b, sum, -3, 6, -5);
}

static void first(weir_scope_t* s, weir_edge_t* outs, void* user) {
  outs[0] = weir_square(s, *(weir_edge_t*)user);
}
static void second(weir_scope_t* s, weir_edge_t* outs, void* user) {
  outs[0] = weir_exp(s, *(weir_edge_t*)user);
}
static void third(weir_scope_t* s, weir_edge_t* outs, void* user) {
  outs[0] = weir_neg(s, *(weir_edge_t*)user);
}

static void test_case(void** state) {
  bench_t* b = *state;
  const weir_branch_fn_t branches[] = {first, second, third};
  const float values[] = {2.25f, expf(1.5f), -1.5f, -1.5f};
  const float slopes[] = {3, expf(1.5f), -1, -1};
  for (int i = 0; i < 4; ++i) {
    weir_edge_t out;
    weir_edge_t index = weir_identity(b->s, weir_const_int(b->s, i == 3 ? -1 : i));
    weir_switch_case(b->s, index, branches, 3, &b->x, &out, 1);
    check_at(b, out, 1.5f, values[i], slopes[i]);
  }
}

// ---- loops in conditionals and the reverse ----

static void choose_in_loop(weir_scope_t* s, weir_edge_t* state, void* user) {
  power_t* p = user;
  choice_t c = {.x = state[1]};
  weir_edge_t is_odd =
      weir_equal(s, weir_floor_mod(s, state[0], weir_const_int(s, 2)), weir_const_int(s, 1));
  weir_edge_t outs[2];
  weir_cond(s, is_odd, square, constant, &c, outs, 2);  // odd: x², x; even: 7, -x
  state[0] = weir_add_v2(s, state[0], weir_const_int(s, 1));
  state[1] = weir_add_v2(s, weir_mul(s, outs[0], p->x), outs[1]);
}

static void test_cond_in_a_loop(void** state) {
  bench_t* b = *state;
  power_t p = {.x = weir_identity(b->s, b->x), .times = weir_const_int(b->s, 2)};
  weir_edge_t vars[] = {weir_const_int(b->s, 0), b->x};
  weir_while_loop(b->s, vars, 2, counts, choose_in_loop, &p, vars);
  float x = 0.5f;  // a = 7x - x = 6x; then a² x + a = 36 x³ + 6x
  check_at(b, vars[1], x, 36 * x * x * x + 6 * x, 108 * x * x + 6);
}

static void loop_in_branch(weir_scope_t* s, weir_edge_t* outs, void* user) {
  choice_t* c = user;
  power_t p = {.x = c->x, .times = weir_const_int(s, 2)};
  weir_edge_t vars[] = {weir_const_int(s, 0), c->x};
  weir_while_loop(s, vars, 2, counts, multiply, &p, vars);
  outs[0] = vars[1];
  outs[1] = weir_cast(s, vars[0], WEIR_DTYPE_FLOAT);
}

static void test_loop_in_a_cond(void** state) {
  bench_t* b = *state;
  choice_t c = {.x = b->x};
  weir_edge_t outs[2];
  weir_edge_t pred = weir_greater(b->s, b->x, weir_const_float(b->s, 0));
  weir_cond(b->s, pred, loop_in_branch, constant, &c, outs, 2);
  weir_edge_t sum = weir_add_v2(b->s, outs[0], outs[1]);
  check_at(b, sum, 2, 10, 12);  // x³ + 2
  check_at(b, sum, -2, 9, -1);  // 7 - x
}

// ---- errors ----

static void check_stuck(bench_t* b, weir_code_t code, const char* text) {
  weir_status_t* status = weir_scope_finish(b->s);
  b->s = weir_scope_create(b->graph);
  check_error(status, code, text);
}

static void wrong_type(weir_scope_t* s, weir_edge_t* state, void* user) {
  (void)user;
  state[1] = weir_cast(s, state[1], WEIR_DTYPE_DOUBLE);
}
static void no_state(weir_scope_t* s, weir_edge_t* state, void* user) {
  (void)s, (void)user;
  state[1].node = NULL;
}
static weir_edge_t no_truth(weir_scope_t* s, const weir_edge_t* state, void* user) {
  (void)s, (void)user;
  return state[0];
}

static void test_loop_errors(void** state) {
  bench_t* b = *state;
  power_t p = {.x = b->x, .times = weir_const_int(b->s, 1)};
  weir_edge_t ones = weir_const_floats(b->s, WEIR_DIMS(1), (const float[]){1});
  weir_edge_t vars[] = {weir_const_int(b->s, 0), ones}, out[2];
  weir_while_loop(b->s, vars, 2, counts, grow, &p, out);
  check_stuck(b, WEIR_INVALID_ARGUMENT, "not an invariant for the loop 'while'");
  weir_while_loop(b->s, vars, 2, counts, multiply, &p, out,
                  .shapes = WEIR_SHAPES(WEIR_SCALAR_SHAPE, WEIR_SHAPE(5)));
  check_stuck(b, WEIR_INVALID_ARGUMENT, "shape invariant specified for state 1");
  weir_while_loop(b->s, vars, 2, counts, wrong_type, &p, out, .name = "convert");
  check_stuck(b, WEIR_INVALID_ARGUMENT,
              "state 1 of loop 'convert' enters as float, but is double after one iteration");
  weir_while_loop(b->s, vars, 2, counts, no_state, &p, out);
  check_stuck(b, WEIR_INVALID_ARGUMENT, "gives no state 1");
  weir_while_loop(b->s, vars, 2, no_truth, multiply, &p, out);
  check_stuck(b, WEIR_INVALID_ARGUMENT, "must give a bool scalar");
  weir_while_loop(b->s, vars, 0, counts, multiply, &p, out);
  check_stuck(b, WEIR_INVALID_ARGUMENT, "has no state");
  vars[0].node = NULL;
  weir_while_loop(b->s, vars, 2, counts, multiply, &p, out);
  check_stuck(b, WEIR_INVALID_ARGUMENT, "state 0 of loop");
}

static void leak(weir_scope_t* s, weir_edge_t* state, void* user) {
  multiply(s, state, user);
  ((power_t*)user)->x = state[1];
}
static void variable_of_state(weir_scope_t* s, weir_edge_t* state, void* user) {
  (void)user;
  state[1] = weir_variable(s, "v", state[1]);
}

static void test_inside_is_not_outside(void** state) {
  bench_t* b = *state;
  power_t p = {.x = b->x, .times = weir_const_int(b->s, 1)};
  weir_edge_t vars[] = {weir_const_int(b->s, 0), b->x}, out[2];
  weir_while_loop(b->s, vars, 2, counts, leak, &p, out);
  assert_null(weir_neg(b->s, p.x).node);
  check_stuck(b, WEIR_INVALID_ARGUMENT, "inside loop 'while' and is used outside of it");
  weir_while_loop(b->s, vars, 2, counts, variable_of_state, &p, out);
  check_stuck(b, WEIR_INVALID_ARGUMENT, "a variable cannot start from");
}

static void nothing(weir_scope_t* s, weir_edge_t* outs, void* user) {
  (void)s, (void)outs, (void)user;
}
static void integer(weir_scope_t* s, weir_edge_t* outs, void* user) {
  (void)user;
  outs[0] = weir_const_int(s, 1);
}

static void test_cond_errors(void** state) {
  bench_t* b = *state;
  weir_edge_t out;
  weir_edge_t pred = weir_greater(b->s, b->x, weir_const_float(b->s, 0));
  weir_cond(b->s, pred, first, nothing, &b->x, &out, 1);
  check_stuck(b, WEIR_INVALID_ARGUMENT, "the 'else' branch of 'cond' gives no result 0");
  weir_cond(b->s, pred, first, integer, &b->x, &out, 1);
  check_stuck(b, WEIR_INVALID_ARGUMENT, "float in the 'then' branch");
  weir_cond(b->s, b->x, first, second, &b->x, &out, 1);
  check_stuck(b, WEIR_INVALID_ARGUMENT, "must be a bool scalar");
  weir_switch_case(b->s, b->x, (const weir_branch_fn_t[]){first}, 1, &b->x, &out, 1);
  check_stuck(b, WEIR_INVALID_ARGUMENT, "needs an int32 index");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup_x, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_loop),
      TEST(test_loop_of_no_iteration),
      TEST(test_captured_computation),
      TEST(test_maximum_iterations),
      TEST(test_nested_loops),
      TEST(test_node_without_inputs),
      TEST(test_variable_in_a_loop),
      TEST(test_growing_shape),
      TEST(test_order_across_the_loop),
      TEST(test_cond),
      TEST(test_only_one_branch_runs),
      TEST(test_nested_conds),
      TEST(test_case),
      TEST(test_cond_in_a_loop),
      TEST(test_loop_in_a_cond),
      TEST(test_loop_errors),
      TEST(test_inside_is_not_outside),
      TEST(test_cond_errors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

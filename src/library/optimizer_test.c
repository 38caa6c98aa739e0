// optimizer_test.c — Optimizers on a scope: which variables, which order, which errors. That they
// give TensorFlow's numbers is tested in tests/optimizers_test.py.
#include "weir/optimizer.h"

#include <math.h>

#include "testing/tensors.h"
#include "weir/weir.h"

typedef struct world_t {
  weir_graph_t* graph;
  weir_scope_t* scope;
  weir_session_t* session;
} world_t;

static int setup(void** state) {
  world_t* w = calloc(1, sizeof(*w));
  check_ok(weir_graph_create(&w->graph));
  w->scope = weir_scope_create(w->graph);
  *state = w;
  return 0;
}

static int teardown(void** state) {
  world_t* w = *state;
  weir_session_destroy(w->session);
  weir_status_destroy(weir_scope_finish(w->scope));
  weir_graph_release(w->graph);
  free(w);
  return 0;
}

static void open_world(world_t* w) {
  weir_node_t* init = weir_initializer(w->scope);
  check_ok(weir_status_copy(weir_scope_status(w->scope)));
  check_ok(weir_session_create(w->graph, NULL, &w->session));
  check_ok(weir_session_run_target(w->session, init));
}

static double fetch(world_t* w, weir_edge_t edge) {
  weir_tensor_t* result = NULL;
  weir_step_spec_t spec = {WEIR_FETCHES(edge)};
  check_ok(weir_session_run(w->session, &spec, &result));
  const void* data = weir_tensor_data(result);
  double value = 0;
  switch (weir_tensor_dtype(result)) {
    case WEIR_DTYPE_FLOAT: value = (double)*(const float*)data; break;
    case WEIR_DTYPE_DOUBLE: value = *(const double*)data; break;
    case WEIR_DTYPE_INT64: value = (double)*(const int64_t*)data; break;
    default: value = (double)*(const int32_t*)data; break;
  }
  weir_tensor_release(result);
  return value;
}

static void run(world_t* w, weir_node_t* node) {
  check_ok(weir_session_run_target(w->session, node));
}

// (x - target)², whose gradient at x is 2 (x - target).
static weir_edge_t distance(weir_scope_t* s, weir_edge_t x, float target) {
  weir_edge_t goal = weir_const_float(s, target);
  if (weir_edge_type(x) != WEIR_DTYPE_FLOAT) goal = weir_cast(s, goal, weir_edge_type(x));
  return weir_square(s, weir_sub(s, x, goal));
}

static weir_edge_t scalar(weir_scope_t* s, const char* name, float value) {
  return weir_variable(s, name, weir_const_float(s, value));
}

// ---- steps ----

static void test_minimize(void** state) {
  world_t* w = *state;
  weir_scope_t* s = w->scope;
  weir_edge_t x = scalar(s, "x", 3);
  weir_edge_t fixed = weir_state_variable(s, "fixed", weir_const_float(s, 5));
  weir_optimizer_t sgd = weir_sgd(0.25f);
  weir_node_t* step = weir_minimize(s, &sgd, weir_square(s, weir_sub(s, x, fixed)),
                                    .global_step = weir_global_step(s));
  open_world(w);
  for (int i = 0; i < 3; ++i) run(w, step);
  assert_true(fetch(w, x) == 4.75);  // the error halves at each step: 2, 1, 0.5, 0.25
  assert_true(fetch(w, fixed) == 5);
  assert_true(fetch(w, weir_global_step(s)) == 3);
}

static void test_only_some_variables(void** state) {
  world_t* w = *state;
  weir_scope_t* s = w->scope;
  weir_edge_t x = scalar(s, "x", 3), y = scalar(s, "y", 3), z = scalar(s, "z", 3);
  weir_edge_t loss = weir_add_v2(s, distance(s, x, 0), distance(s, y, 0));
  loss = weir_add_v2(s, loss, distance(s, z, 0));
  weir_edge_t some[] = {y, weir_variable_handle(z)};
  weir_optimizer_t sgd = weir_sgd(0.5f);
  weir_node_t* step = weir_minimize(s, &sgd, loss, .variables = some, .variable_count = 2);
  open_world(w);
  run(w, step);
  assert_true(fetch(w, x) == 3);
  assert_true(fetch(w, y) == 0);
  assert_true(fetch(w, z) == 0);
}

static void test_two_halves(void** state) {
  world_t* w = *state;
  weir_scope_t* s = w->scope;
  weir_edge_t x = scalar(s, "x", 10), apart = scalar(s, "apart", 1);
  weir_variable_gradient_t* gradients = NULL;
  int count = weir_compute_gradients(s, distance(s, x, 0), &gradients);
  assert_int_equal(count, 2);
  assert_null(gradients[1].gradient.values.node);
  gradients[0].gradient = weir_clip_gradient_by_norm(s, gradients[0].gradient, 3.0f);
  weir_optimizer_t sgd = weir_sgd(1.0f);
  weir_node_t* step = weir_apply_gradients(s, &sgd, gradients, count);
  open_world(w);
  run(w, step);
  assert_true(fetch(w, x) == 7);
  assert_true(fetch(w, apart) == 1);
}

// What layers collect is run with the step, and once only.
static void test_updates_run_with_the_step(void** state) {
  world_t* w = *state;
  weir_scope_t* s = w->scope;
  weir_edge_t x = scalar(s, "x", 3);
  weir_edge_t seen = weir_state_variable(s, "seen", weir_const_float(s, 0));
  weir_node_t* count =
      weir_assign_add_variable_op(s, weir_variable_handle(seen), weir_const_float(s, 1));
  weir_scope_collect(s, WEIR_UPDATES, (weir_edge_t){count, 0});
  weir_optimizer_t sgd = weir_sgd(0.1f);
  weir_node_t* step = weir_minimize(s, &sgd, distance(s, x, 0), .accumulate = 2);
  open_world(w);
  for (int i = 0; i < 4; ++i) run(w, step);
  assert_true(fetch(w, seen) == 4);
}

// Slots do not wait for what the step waits for.
static void test_initializers_are_lifted(void** state) {
  world_t* w = *state;
  weir_scope_t* s = w->scope;
  weir_edge_t x = scalar(s, "x", 3);
  weir_edge_t runs = weir_state_variable(s, "runs", weir_const_float(s, 0));
  weir_node_t* count =
      weir_assign_add_variable_op(s, weir_variable_handle(runs), weir_const_float(s, 1));
  weir_optimizer_t adam = weir_adam(0.1f);
  weir_node_t* step = weir_minimize(weir_scope_after(s, &count, 1), &adam, distance(s, x, 0));
  open_world(w);
  assert_true(fetch(w, runs) == 0);
  run(w, step);
  assert_true(fetch(w, runs) == 1);
}

static void test_names(void** state) {
  world_t* w = *state;
  weir_scope_t* s = w->scope;
  weir_edge_t x = scalar(weir_scope_in(s, "dense"), "kernel", 3);
  weir_optimizer_t adam = weir_adam(0.1f), rms = weir_rmsprop(0.1f, .centered = true);
  weir_optimizer_t other = weir_momentum(0.1f, 0.9f);
  other.name = "Mine";
  weir_minimize(s, &adam, distance(s, x, 0));
  weir_minimize(s, &rms, distance(s, x, 0));
  weir_minimize(s, &other, distance(s, x, 0));
  weir_minimize(weir_scope_in(s, "tower"), &adam, distance(s, x, 0));
  check_ok(weir_status_copy(weir_scope_status(s)));
  const char* expected[] = {"dense/kernel",
                            "beta1_power",
                            "beta2_power",
                            "dense/kernel/Adam",
                            "dense/kernel/Adam_1",
                            "dense/kernel/RMSProp",
                            "dense/kernel/RMSProp_1",
                            "dense/kernel/RMSProp_2",
                            "dense/kernel/Mine",
                            "tower/beta1_power",
                            "tower/beta2_power",
                            "dense/kernel/Adam_2",
                            "dense/kernel/Adam_3"};
  int count = (int)(sizeof(expected) / sizeof(*expected));
  assert_int_equal(weir_scope_variable_count(s), count);
  for (int i = 0; i < count; ++i) {
    weir_variable_info_t variable = weir_scope_variable_at(s, i);
    assert_string_equal(weir_node_name(variable.handle.node), expected[i]);
  }
}

// Hyperparameters are cast to the variable's type; slots have it.
static void test_doubles(void** state) {
  world_t* w = *state;
  weir_scope_t* s = w->scope;
  weir_edge_t x = weir_variable(s, "x", weir_cast(s, weir_const_float(s, 3), WEIR_DTYPE_DOUBLE));
  weir_optimizer_t all[] = {
      weir_adam(0.01f), weir_ftrl(0.01f, .beta = 0.1f, .l2_shrinkage = 0.1f),
      weir_sgd(weir_exponential_decay(s, 0.1f, weir_global_step(s), 2, 0.5f))};
  weir_node_t* steps[3];
  for (int i = 0; i < 3; ++i) {
    steps[i] = weir_minimize(s, &all[i], distance(s, x, 0), .clip_global_norm = 1,
                             .accumulate = i == 2 ? 2 : 0);
  }
  open_world(w);
  double before = 3;
  for (int i = 0; i < 3; ++i) {
    run(w, steps[i]);
    run(w, steps[i]);
    double after = fetch(w, x);
    assert_true(fabs(after) < fabs(before) || i == 1);
    before = after;
  }
}

static void test_variable_of_unknown_shape(void** state) {
  world_t* w = *state;
  weir_scope_t* s = w->scope;
  weir_edge_t size =
      weir_placeholder_with_default(s, weir_const_ints(s, (const int[]){3}, 1), WEIR_SHAPE(-1));
  weir_edge_t x = weir_variable(s, "x", weir_fill(s, size, weir_const_float(s, 2)));
  weir_edge_t loss = weir_sum(s, weir_square(s, x), weir_const_int(s, 0));
  weir_optimizer_t momentum = weir_momentum(0.25f, 0.5f);
  weir_node_t* step = weir_minimize(s, &momentum, loss);
  open_world(w);
  run(w, step);
  assert_true(fetch(w, loss) == 3);  // 2 - 0.25 * 4 = 1, thrice
}

static void test_accumulation(void** state) {
  world_t* w = *state;
  weir_scope_t* s = w->scope;
  weir_edge_t x = scalar(s, "x", 4);
  weir_optimizer_t sgd = weir_sgd(0.5f);
  weir_edge_t global_step = weir_global_step(s);
  weir_node_t* step =
      weir_minimize(s, &sgd, distance(s, x, 0), .accumulate = 3, .global_step = global_step);
  open_world(w);
  for (int round = 0; round < 2; ++round) {
    double before = fetch(w, x);
    for (int i = 0; i < 3; ++i) {
      assert_true(fetch(w, x) == before);
      assert_true(fetch(w, global_step) == round);
      run(w, step);
    }
    assert_true(fetch(w, x) == 0);  // the mean of three equal gradients
    assert_true(fetch(w, global_step) == round + 1);
  }
}

// ---- loss scaling ----

static weir_edge_t named(weir_scope_t* s, const char* name) {
  for (int i = 0; i < weir_scope_variable_count(s); ++i) {
    weir_variable_info_t variable = weir_scope_variable_at(s, i);
    if (!strcmp(weir_node_name(variable.handle.node), name)) return variable.value;
  }
  fail_msg("there is no variable '%s'", name);
  return (weir_edge_t){0};
}

// Steps are those without a scale; it doubles after two of them.
static void test_loss_scale(void** state) {
  world_t* w = *state;
  weir_scope_t* s = w->scope;
  weir_edge_t x = scalar(s, "x", 4), y = scalar(s, "y", 4);
  weir_optimizer_t momentum = weir_momentum(0.0625f, 0.5f);
  weir_node_t* step =
      weir_minimize(s, &momentum, distance(s, x, 0), .loss_scale = 1024, .loss_scale_period = 2);
  weir_node_t* plain = weir_minimize(s, &momentum, distance(s, y, 0));
  weir_edge_t scale = named(s, "current_loss_scale");
  open_world(w);
  const double scales[] = {1024, 2048, 2048, 4096};
  for (int i = 0; i < 4; ++i) {
    run(w, step);
    run(w, plain);
    assert_true(fetch(w, x) == fetch(w, y));
    assert_true(fetch(w, scale) == scales[i]);
  }
}

// A step that overflows changes nothing but the scale.
static void test_loss_scale_overflow(void** state) {
  world_t* w = *state;
  weir_scope_t* s = w->scope;
  weir_edge_t x = scalar(s, "x", 4);
  weir_edge_t at = weir_global_step(s);
  weir_optimizer_t adam = weir_adam(0.5f);
  weir_edge_t narrow = weir_cast(s, x, WEIR_DTYPE_HALF);
  weir_edge_t loss = weir_cast(s, weir_mul(s, narrow, narrow), WEIR_DTYPE_FLOAT);
  weir_node_t* step = weir_minimize(s, &adam, loss, .loss_scale = 32768, .global_step = at);
  weir_edge_t scale = named(s, "current_loss_scale"), runs = named(s, "good_steps");
  weir_edge_t power = named(s, "beta1_power");
  open_world(w);
  double before = fetch(w, power);
  for (int i = 0; i < 4; ++i) {  // 8 times the scale is beyond half, thrice
    assert_true(fetch(w, x) == 4);
    run(w, step);
  }
  assert_true(fetch(w, scale) == 4096 && fetch(w, x) < 4);
  assert_true(fetch(w, at) == 1 && fetch(w, runs) == 1 && fetch(w, power) < before);
}

static void test_loss_scale_accumulation(void** state) {
  world_t* w = *state;
  weir_scope_t* s = w->scope;
  weir_edge_t x = scalar(s, "x", 4);
  weir_edge_t fed = weir_placeholder(s, WEIR_DTYPE_FLOAT);
  weir_edge_t loss = weir_mul(s, distance(s, x, 0), fed);
  weir_optimizer_t sgd = weir_sgd(0.5f);
  weir_node_t* step = weir_minimize(s, &sgd, loss, .loss_scale = 2, .accumulate = 2);
  open_world(w);
  const float factors[] = {1, INFINITY, NAN, 1};  // what is not finite is not added, either
  for (int i = 0; i < 4; ++i) {
    assert_true(fetch(w, x) == 4);
    weir_tensor_t* tensor = make_float(factors[i]);
    check_ok(weir_session_run(
        w->session, &(weir_step_spec_t){WEIR_FEEDS({fed, tensor}), WEIR_TARGETS(step)}, NULL));
    weir_tensor_release(tensor);
  }
  assert_true(fetch(w, x) == 0);
}

// ---- a rule of one's own ----

// x = gradient * data
static weir_node_t* replace(const weir_update_t* update) {
  weir_edge_t factor = weir_update_const(update, *(const float*)update->optimizer->data);
  weir_edge_t value = weir_mul(update->scope, update->gradient, factor);
  return weir_assign_variable_op(update->scope, update->variable.handle, value);
}

static void test_own_rule(void** state) {
  world_t* w = *state;
  weir_scope_t* s = w->scope;
  static const weir_update_rule_t rule = {.name = "Replace", .apply = replace};
  const float factor = 10;
  weir_edge_t x = scalar(s, "x", 3);
  weir_optimizer_t optimizer = {.rule = &rule, .data = &factor};
  weir_node_t* step = weir_minimize(s, &optimizer, distance(s, x, 1));
  open_world(w);
  run(w, step);
  assert_true(fetch(w, x) == 40);
}

// ---- errors ----

static void expect_error(void** state, weir_optimizer_t optimizer, const char* text) {
  world_t* w = *state;
  weir_edge_t x = scalar(w->scope, "x", 3);
  assert_null(weir_minimize(w->scope, &optimizer, distance(w->scope, x, 0)));
  check_error(weir_status_copy(weir_scope_status(w->scope)), WEIR_INVALID_ARGUMENT, text);
}

static void test_bad_adagrad(void** state) {
  weir_optimizer_t optimizer = weir_adagrad(0.1f, .initial_accumulator = WEIR_SET(0));
  expect_error(state, optimizer, "initial_accumulator_value must be positive: 0");
}
static void test_bad_proximal(void** state) {
  weir_optimizer_t optimizer = weir_proximal_adagrad(0.1f, .initial_accumulator = WEIR_SET(-1));
  expect_error(state, optimizer, "initial_accumulator_value must be positive: -1");
}
static void test_bad_ftrl_power(void** state) {
  weir_optimizer_t optimizer = weir_ftrl(0.1f, .rate_power = WEIR_SET(0.5f));
  expect_error(state, optimizer, "learning_rate_power 0.5 needs to be negative or zero");
}
static void test_bad_ftrl_strength(void** state) {
  weir_optimizer_t optimizer = weir_ftrl(0.1f, .l1 = -2);
  expect_error(state, optimizer, "l1_regularization_strength -2 needs to be positive or zero");
}
static void test_no_rule(void** state) {
  expect_error(state, (weir_optimizer_t){.name = "x"}, "without a rule");
}

static void test_nothing_to_train(void** state) {
  world_t* w = *state;
  weir_edge_t fixed = weir_state_variable(w->scope, "fixed", weir_const_float(w->scope, 1));
  assert_null(weir_train_adam(w->scope, distance(w->scope, fixed, 0), 0.1f));
  check_error(weir_status_copy(weir_scope_status(w->scope)), WEIR_INVALID_ARGUMENT,
              "no variable to train");
}

static void test_no_variable_at_all(void** state) {
  world_t* w = *state;
  assert_null(weir_train_sgd(w->scope, weir_const_float(w->scope, 1), 0.1f));
  check_error(weir_status_copy(weir_scope_status(w->scope)), WEIR_INVALID_ARGUMENT,
              "no variable to train");
}

static void test_nothing_to_average(void** state) {
  world_t* w = *state;
  weir_moving_average_t average = weir_moving_average(w->scope, 0.9f);
  assert_int_equal(average.count, 0);
  check_error(weir_status_copy(weir_scope_status(w->scope)), WEIR_INVALID_ARGUMENT,
              "nothing to average");
}

static void test_loss_depends_on_nothing(void** state) {
  world_t* w = *state;
  scalar(w->scope, "x", 3);
  assert_null(weir_train_sgd(w->scope, weir_const_float(w->scope, 1), 0.1f));
  check_error(weir_status_copy(weir_scope_status(w->scope)), WEIR_INVALID_ARGUMENT,
              "no gradients provided for any variable");
}

static void test_no_such_variable(void** state) {
  world_t* w = *state;
  weir_edge_t x = scalar(w->scope, "x", 3);
  weir_edge_t other = weir_const_float(weir_scope_name(w->scope, "other"), 1);
  weir_optimizer_t sgd = weir_sgd(0.1f);
  weir_minimize(w->scope, &sgd, distance(w->scope, x, 0), .variables = &other, .variable_count = 1);
  check_error(weir_status_copy(weir_scope_status(w->scope)), WEIR_INVALID_ARGUMENT,
              "'other' (variable 0 to train) is no variable");
}

static void test_global_step_is_no_variable(void** state) {
  world_t* w = *state;
  weir_edge_t x = scalar(w->scope, "x", 3);
  weir_edge_t other = weir_const_float(weir_scope_name(w->scope, "other"), 1);
  weir_optimizer_t sgd = weir_sgd(0.1f);
  weir_minimize(w->scope, &sgd, distance(w->scope, x, 0), .global_step = other);
  check_error(weir_status_copy(weir_scope_status(w->scope)), WEIR_INVALID_ARGUMENT,
              "global step 'other' is no variable");
}

// ---- schedules, clipping, averages ----

static void test_bad_pieces(void** state) {
  world_t* w = *state;
  weir_edge_t step = weir_global_step(w->scope);
  weir_piecewise_constant(w->scope, step, WEIR_INTS(1, 2), WEIR_FLOATS(0.1f, 0.2f));
  check_error(weir_status_copy(weir_scope_status(w->scope)), WEIR_INVALID_ARGUMENT,
              "boundaries (2) should be 1 less than the length of values (2)");
}

static void test_descending_pieces(void** state) {
  world_t* w = *state;
  weir_edge_t step = weir_global_step(w->scope);
  weir_piecewise_constant(w->scope, step, WEIR_INTS(5, 2), WEIR_FLOATS(0.1f, 0.2f, 0.3f));
  check_error(weir_status_copy(weir_scope_status(w->scope)), WEIR_INVALID_ARGUMENT,
              "boundary 1 descends to 2");
}

static void test_schedule_of_no_step(void** state) {
  world_t* w = *state;
  weir_cosine_decay(w->scope, 0.1f, (weir_edge_t){0}, 10);
  check_error(weir_status_copy(weir_scope_status(w->scope)), WEIR_INVALID_ARGUMENT,
              "CosineDecay: input 0 is an edge without a node");
}

static void test_norm_of_nothing(void** state) {
  world_t* w = *state;
  weir_gradient_t none = {.indices = {NULL, 0}};
  weir_clip_by_global_norm(w->scope, &none, 1, 1.0f);
  check_error(weir_status_copy(weir_scope_status(w->scope)), WEIR_INVALID_ARGUMENT,
              "global norm of no gradients");
}

static void test_average_of_integers(void** state) {
  world_t* w = *state;
  weir_edge_t step = weir_global_step(w->scope);
  weir_moving_average(w->scope, 0.9f, .values = &step, .value_count = 1);
  check_error(weir_status_copy(weir_scope_status(w->scope)), WEIR_INVALID_ARGUMENT,
              "must be half, float, or double");
}

static void test_average(void** state) {
  world_t* w = *state;
  weir_scope_t* s = w->scope;
  weir_edge_t x = scalar(s, "x", 8), y = weir_square(s, x);
  weir_moving_average_t average = weir_moving_average(s, 0.5f);
  weir_edge_t kept = weir_moving_average_of(&average, x);
  assert_null(weir_moving_average_of(&average, y).node);
  assert_int_equal(average.count, 1);
  weir_node_t* set = weir_assign_variable_op(s, weir_variable_handle(x), weir_const_float(s, 0));
  weir_node_t* swap = weir_moving_average_swap(s, &average);
  open_world(w);
  assert_true(fetch(w, kept) == 8);
  run(w, set);
  run(w, average.update);
  run(w, average.update);
  assert_true(fetch(w, kept) == 2);
  run(w, swap);
  assert_true(fetch(w, x) == 2 && fetch(w, kept) == 0);
  run(w, swap);
  assert_true(fetch(w, x) == 0 && fetch(w, kept) == 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_minimize),
      TEST(test_only_some_variables),
      TEST(test_two_halves),
      TEST(test_updates_run_with_the_step),
      TEST(test_initializers_are_lifted),
      TEST(test_names),
      TEST(test_doubles),
      TEST(test_variable_of_unknown_shape),
      TEST(test_accumulation),
      TEST(test_loss_scale),
      TEST(test_loss_scale_overflow),
      TEST(test_loss_scale_accumulation),
      TEST(test_own_rule),
      TEST(test_bad_adagrad),
      TEST(test_bad_proximal),
      TEST(test_bad_ftrl_power),
      TEST(test_bad_ftrl_strength),
      TEST(test_no_rule),
      TEST(test_nothing_to_train),
      TEST(test_no_variable_at_all),
      TEST(test_nothing_to_average),
      TEST(test_loss_depends_on_nothing),
      TEST(test_no_such_variable),
      TEST(test_global_step_is_no_variable),
      TEST(test_bad_pieces),
      TEST(test_descending_pieces),
      TEST(test_schedule_of_no_step),
      TEST(test_norm_of_nothing),
      TEST(test_average_of_integers),
      TEST(test_average),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

// frame_test.c — Ops run when they are added: values, errors in the midst, variables over scopes,
// control flow, functions, devices whose memory the host cannot touch, threads.
#include <pthread.h>

#include "api/scope.h"
#include "testing/tensors.h"
#include "weir/eager.h"
#include "weir/weir.h"

#define TYPES WEIR_TYPES(WEIR_DTYPE_FLOAT)

static weir_eager_t* open_eager(const char* devices) {
  weir_eager_t* eager = NULL;
  check_ok(weir_eager_create(&(weir_eager_options_t){.threads = 2, .devices = devices}, &eager));
  return eager;
}

static float value_of(weir_scope_t* s, weir_edge_t edge) {
  float value = 0;
  check_ok(weir_eager_float(s, edge, &value));
  return value;
}

static weir_edge_t floats(weir_scope_t* s, int count, const float* values) {
  return weir_const_floats(s, 1, (const int64_t[]){count}, values);
}

static void test_runs_at_once(void** state) {
  (void)state;
  weir_eager_t* eager = open_eager(NULL);
  weir_scope_t* s = weir_eager_scope(eager);
  assert_true(weir_scope_is_eager(s));
  weir_edge_t x = floats(s, 3, (const float[]){1, 2, 3});
  weir_edge_t y = weir_mul(s, x, weir_const_float(s, 2));
  weir_tensor_t* value = NULL;
  check_ok(weir_eager_value(s, y, &value));
  check_floats(value, 0, 2, 4, 6);
  assert_int_equal(weir_edge_dims(y, NULL, 0), 1);
  assert_true(value_of(s, weir_sum(s, y, weir_const_int(s, 0))) == 12);
  // The shape follows the value.
  weir_edge_t rows = weir_where(s, weir_greater(s, x, weir_const_float(s, 1.5f)));
  int64_t dims[2];
  assert_int_equal(weir_edge_dims(rows, dims, 2), 2);
  assert_int_equal(dims[0], 2);
  check_ok(weir_scope_finish(s));
  check_floats(value, 0, 2, 4, 6);  // outlives the scope
  weir_tensor_release(value);
  weir_eager_destroy(eager);
}

static void test_errors_stick_and_come_out(void** state) {
  (void)state;
  weir_eager_t* eager = open_eager(NULL);
  weir_scope_t* s = weir_eager_scope(eager);
  weir_edge_t x = floats(s, 2, (const float[]){1, 2});
  weir_edge_t bad = weir_add_v2(s, x, floats(s, 3, (const float[]){1, 2, 3}));
  assert_null(bad.node);
  assert_null(weir_mul(s, x, x).node);
  weir_tensor_t* none = NULL;
  check_error(weir_eager_value(s, x, &none), WEIR_INVALID_ARGUMENT, "AddV2");
  check_error(weir_eager_recover(s), WEIR_INVALID_ARGUMENT, "Incompatible shapes");
  assert_null(weir_eager_recover(s));
  assert_true(value_of(s, weir_sum(s, x, weir_const_int(s, 0))) == 3);
  // Types, attributes, ops, edges.
  assert_null(weir_add_v2(s, x, weir_const_int(s, 1)).node);
  check_error(weir_eager_recover(s), WEIR_INVALID_ARGUMENT, "AddV2");
  assert_null(weir_scope_add(s, "NoSuchOp", NULL, WEIR_NO_EDGES, WEIR_NO_ATTRS));
  check_error(weir_eager_recover(s), WEIR_NOT_FOUND, "NoSuchOp");
  assert_null(weir_scope_add(s, "Abs", NULL, WEIR_EDGES(x), WEIR_ATTRS(weir_attr_int("k", 1))));
  check_error(weir_eager_recover(s), WEIR_INVALID_ARGUMENT, "'k'");
  assert_null(weir_op_abs(s, (weir_edge_t){0}).node);
  check_error(weir_eager_recover(s), WEIR_INVALID_ARGUMENT, "no edge");
  assert_null(weir_op_abs(s, (weir_edge_t){.node = x.node, .index = 7}).node);
  check_error(weir_eager_recover(s), WEIR_INVALID_ARGUMENT, "has 1 outputs");
  assert_null(weir_placeholder(s, WEIR_DTYPE_FLOAT).node);
  check_error(weir_eager_recover(s), WEIR_INVALID_ARGUMENT, "feed");
  check_error(weir_eager_float(s, x, &(float){0}), WEIR_INVALID_ARGUMENT, "float[2]");
  check_error(weir_eager_value(s, (weir_edge_t){0}, &none), WEIR_INVALID_ARGUMENT, "no edge");
  check_error(weir_eager_value(NULL, x, &none), WEIR_INVALID_ARGUMENT, "scope is NULL");
  check_error(weir_eager_value(s, x, NULL), WEIR_INVALID_ARGUMENT, "out_tensor is NULL");
  check_error(weir_eager_create(NULL, NULL), WEIR_INVALID_ARGUMENT, "out_eager is NULL");
  check_error(weir_eager_recover(NULL), WEIR_INVALID_ARGUMENT, "scope is NULL");
  weir_eager_t* wrong = NULL;
  check_error(weir_eager_create(&(weir_eager_options_t){.devices = "toaster"}, &wrong),
              WEIR_INVALID_ARGUMENT, "toaster");
  weir_eager_destroy(NULL);
  check_ok(weir_scope_finish(s));
  weir_eager_destroy(eager);
}

// Graphs and eager scopes do not mix.
static void test_graphs_are_apart(void** state) {
  (void)state;
  weir_eager_t* eager = open_eager(NULL);
  weir_eager_t* other = open_eager(NULL);
  weir_graph_t* graph = NULL;
  check_ok(weir_graph_create(&graph));
  weir_scope_t* g = weir_scope_create(graph);
  weir_scope_t* s = weir_eager_scope(eager);
  weir_scope_t* o = weir_eager_scope(other);
  weir_edge_t x = weir_const_float(g, 1);
  weir_tensor_t* value = NULL;
  check_error(weir_eager_value(g, x, &value), WEIR_FAILED_PRECONDITION, "not eager");
  assert_null(weir_abs(s, x).node);
  check_error(weir_eager_recover(s), WEIR_INVALID_ARGUMENT, "of another graph");
  weir_edge_t y = weir_const_float(s, 1);
  assert_null(weir_abs(g, y).node);
  check_error(weir_eager_recover(g), WEIR_INVALID_ARGUMENT, "of another graph");
  assert_null(weir_abs(o, y).node);
  check_error(weir_eager_recover(o), WEIR_INVALID_ARGUMENT, "of another graph");
  weir_session_t* session = NULL;
  check_error(weir_session_create(weir_scope_graph(s), NULL, &session), WEIR_FAILED_PRECONDITION,
              "eager");
  char* data = NULL;
  size_t size = 0;
  check_error(weir_graph_to_def(weir_scope_graph(s), &data, &size), WEIR_FAILED_PRECONDITION,
              "eager");
  check_error(weir_graph_import_def(weir_scope_graph(s), "", 0, NULL), WEIR_FAILED_PRECONDITION,
              "eager");
  check_ok(weir_scope_finish(g));
  check_ok(weir_scope_finish(s));
  check_ok(weir_scope_finish(o));
  weir_graph_release(graph);
  weir_eager_destroy(eager);
  weir_eager_destroy(other);
}

static void test_gradients(void** state) {
  (void)state;
  weir_eager_t* eager = open_eager(NULL);
  weir_scope_t* s = weir_eager_scope(eager);
  weir_edge_t x = weir_const_float(s, 3);
  weir_edge_t y = weir_mul(s, weir_square(s, x), x);  // x^3
  weir_edge_t first, second, third, none;
  check_ok(weir_gradients(s, &y, 1, &x, 1, NULL, &first));
  assert_true(value_of(s, first) == 27);
  check_ok(weir_gradients(s, &first, 1, &x, 1, NULL, &second));
  assert_true(value_of(s, second) == 18);
  check_ok(weir_gradients(s, &second, 1, &x, 1, NULL, &third));
  assert_true(value_of(s, third) == 6);
  // The tape is still there.
  weir_edge_t seed = weir_const_float(s, 2), again;
  check_ok(weir_gradients(s, &y, 1, &x, 1, &seed, &again));
  assert_true(value_of(s, again) == 54);
  weir_edge_t apart = weir_const_float(s, 1);
  check_ok(weir_gradients(s, &y, 1, &apart, 1, NULL, &none));
  assert_null(none.node);
  check_ok(weir_scope_finish(s));
  weir_eager_destroy(eager);
}

// ---- variables ----

static void test_variables_live_in_the_context(void** state) {
  (void)state;
  weir_eager_t* eager = open_eager(NULL);
  for (int step = 0; step < 3; ++step) {
    weir_scope_t* s = weir_eager_scope(eager);
    weir_edge_t w = weir_variable(s, "w", weir_const_float(s, 10));
    weir_edge_t twice = weir_add_v2(s, w, w);
    assert_true(value_of(s, twice) == 2.0f * (10 + (float)step));
    weir_assign_add_variable_op(s, weir_variable_handle(w), weir_const_float(s, 1));
    assert_true(value_of(s, w) == 11 + (float)step);  // what it holds now
    assert_true(value_of(s, weir_identity(s, w)) == 11 + (float)step);
    assert_true(value_of(s, twice) == 2.0f * (10 + (float)step));  // what was computed stays
    // All reads count.
    weir_edge_t y = weir_add_v2(s, twice, weir_mul(s, w, weir_const_float(s, 5))), dw;
    check_ok(weir_gradients(s, &y, 1, &w, 1, NULL, &dw));
    assert_true(value_of(s, dw) == 7);
    check_ok(weir_scope_finish(s));
  }
  weir_scope_t* s = weir_eager_scope(eager);
  weir_variable(s, "w", floats(s, 2, (const float[]){1, 2}));
  check_error(weir_scope_finish(s), WEIR_INVALID_ARGUMENT, "'w' is there already");
  weir_eager_reset(eager);
  s = weir_eager_scope(eager);
  assert_true(value_of(s, weir_variable(s, "w", weir_const_float(s, 1))) == 1);
  check_ok(weir_scope_finish(s));
  weir_eager_destroy(eager);
}

// Made on one scope, used and trained on others; edges of a scope that is gone are not found again
// in the place of new ones.
static void test_edges_of_other_scopes(void** state) {
  (void)state;
  weir_eager_t* eager = open_eager(NULL);
  weir_scope_t* model = weir_eager_scope(eager);
  weir_edge_t w = weir_variable(model, "w", weir_const_float(model, 2));
  weir_edge_t k = weir_const_float(model, 3);
  for (int step = 0; step < 5; ++step) {
    weir_scope_t* s = weir_eager_scope(eager);
    weir_edge_t y = weir_mul(s, w, k), grads[2];
    const weir_edge_t xs[] = {w, k};
    float before = value_of(model, w);
    assert_true(value_of(s, y) == before * 3);
    check_ok(weir_gradients(s, &y, 1, xs, 2, NULL, grads));
    assert_true(value_of(s, grads[0]) == 3);
    assert_true(value_of(s, grads[1]) == before);
    weir_assign_sub_variable_op(s, weir_variable_handle(w), grads[0]);
    weir_edge_t kept = weir_identity(model, y);
    check_ok(weir_scope_finish(s));
    assert_true(value_of(model, kept) == before * 3);
    assert_true(value_of(model, w) == before - 3);
  }
  check_ok(weir_scope_finish(model));
  weir_eager_destroy(eager);
}

static weir_edge_t mlp(weir_scope_t* s, weir_edge_t x) {
  weir_edge_t h = weir_relu(s, weir_layer_dense(s, x, 8, .name = "hidden"));
  return weir_layer_dense(s, h, 1, .name = "out");
}

// A model of the library, built anew each step.
static void test_layers_and_optimizers(void** state) {
  (void)state;
  weir_eager_t* eager = open_eager(NULL);
  weir_optimizer_t adam = weir_adam(0.05f);
  float first = 0, last = 0;
  for (int step = 0; step < 60; ++step) {
    weir_scope_t* s = weir_eager_scope(eager);
    weir_scope_seed(s, 7);
    weir_edge_t x =
        weir_const_floats(s, 2, (const int64_t[]){4, 2}, (const float[]){0, 0, 0, 1, 1, 0, 1, 1});
    weir_edge_t want =
        weir_const_floats(s, 2, (const int64_t[]){4, 1}, (const float[]){0, 1, 1, 0});
    weir_edge_t loss = weir_mean(s, weir_square(s, weir_sub(s, mlp(s, x), want)),
                                 weir_const_ints(s, (const int[]){0, 1}, 2));
    weir_minimize(s, &adam, loss);
    last = value_of(s, loss);
    if (step == 0) first = last;
    assert_int_equal(weir_scope_variable_count(s), 4 + 8 + 2);
    check_ok(weir_scope_finish(s));
  }
  assert_true(last < first / 4);
  weir_eager_destroy(eager);
}

// ---- control flow ----

static weir_edge_t below_100(weir_scope_t* s, const weir_edge_t* loop, void* user) {
  (void)user;
  return weir_less(s, loop[0], weir_const_float(s, 100));
}
static void triple(weir_scope_t* s, weir_edge_t* loop, void* user) {
  (void)user;
  loop[0] = weir_mul(s, loop[0], weir_const_float(s, 3));
}
static void then_fn(weir_scope_t* s, weir_edge_t* outs, void* user) {
  outs[0] = weir_square(s, *(weir_edge_t*)user);
}
static void else_fn(weir_scope_t* s, weir_edge_t* outs, void* user) {
  (void)user;
  weir_scope_fail(s, WEIR_STATUS(INTERNAL, "the other branch was taken"));
  outs[0] = (weir_edge_t){0};
}
static weir_edge_t not_truth(weir_scope_t* s, const weir_edge_t* loop, void* user) {
  (void)s;
  (void)user;
  return loop[0];
}

static void test_control_flow(void** state) {
  (void)state;
  weir_eager_t* eager = open_eager(NULL);
  weir_scope_t* s = weir_eager_scope(eager);
  weir_edge_t x = weir_const_float(s, 2), y, z, dx;
  weir_while_loop(s, &x, 1, below_100, triple, NULL, &y);
  assert_true(value_of(s, y) == 162);  // 2 * 3^4
  check_ok(weir_gradients(s, &y, 1, &x, 1, NULL, &dx));
  assert_true(value_of(s, dx) == 81);
  weir_while_loop(s, &x, 1, below_100, triple, NULL, &y, .maximum_iterations = 2);
  assert_true(value_of(s, y) == 18);
  weir_cond(s, weir_less(s, x, y), then_fn, else_fn, &x, &z, 1);
  assert_true(value_of(s, z) == 4);
  check_ok(weir_gradients(s, &z, 1, &x, 1, NULL, &dx));
  assert_true(value_of(s, dx) == 4);
  weir_while_loop(s, &x, 1, not_truth, triple, NULL, &y);
  check_error(weir_eager_recover(s), WEIR_INVALID_ARGUMENT, "bool scalar");
  weir_cond(s, x, then_fn, else_fn, &x, &z, 1);
  check_error(weir_eager_recover(s), WEIR_INVALID_ARGUMENT, "bool scalar");
  check_ok(weir_scope_finish(s));
  weir_eager_destroy(eager);
}

// ---- functions ----

static void affine(weir_scope_t* s, const weir_edge_t* args, weir_edge_t* results, void* user) {
  const weir_edge_t* outside = user;  // a variable and a value
  results[0] = weir_add_v2(s, weir_mul(s, weir_square(s, args[0]), outside[0]), outside[1]);
}

static void test_traced_functions(void** state) {
  (void)state;
  weir_eager_t* eager = open_eager(NULL);
  weir_scope_t* model = weir_eager_scope(eager);
  weir_edge_t big =
      weir_fill(model, weir_const_ints(model, (const int[]){2000}, 1), weir_const_float(model, 1));
  weir_edge_t outside[] = {weir_variable(model, "w", weir_const_float(model, 5)), big};
  weir_spec_t spec = {WEIR_TYPES(WEIR_DTYPE_FLOAT), WEIR_SHAPES(WEIR_SCALAR_SHAPE)};
  weir_defined_t f = weir_define_function(model, "affine", spec, affine, outside, 1);
  assert_null(weir_scope_status(model));
  assert_int_equal(f.captured_count, 2);
  for (int step = 0; step < 3; ++step) {
    weir_scope_t* s = weir_eager_scope(eager);
    weir_edge_t x = weir_const_float(s, 3), y, grads[2];
    weir_eager_call(s, &f, &x, 1, &y);
    weir_edge_t sum = weir_sum(s, y, weir_const_int(s, 0));
    float w = 5 + (float)step;
    assert_true(value_of(s, sum) == 2000 * (9 * w + 1));
    const weir_edge_t xs[] = {x, outside[0]};
    check_ok(weir_gradients(s, &sum, 1, xs, 2, NULL, grads));
    assert_true(value_of(s, grads[0]) == 2000 * 6 * w);
    assert_true(value_of(s, grads[1]) == 2000 * 9);
    weir_edge_t second;
    check_ok(weir_gradients(s, &grads[0], 1, &x, 1, NULL, &second));
    assert_true(value_of(s, second) == 2000 * 2 * w);
    weir_assign_add_variable_op(s, weir_variable_handle(outside[0]), weir_const_float(s, 1));
    check_ok(weir_scope_finish(s));
  }
  weir_edge_t y;
  weir_eager_call(model, &f, outside, 1, NULL);
  check_error(weir_eager_recover(model), WEIR_INVALID_ARGUMENT, "results is NULL");
  weir_eager_call(model, NULL, outside, 1, &y);
  check_error(weir_eager_recover(model), WEIR_INVALID_ARGUMENT, "function is NULL");
  weir_eager_call(model, &f, outside, 0, &y);
  check_error(weir_eager_recover(model), WEIR_INVALID_ARGUMENT, "a function of 3 arguments");
  check_ok(weir_scope_finish(model));
  weir_eager_destroy(eager);
}

static void random_body(weir_scope_t* s, const weir_edge_t* args, weir_edge_t* results,
                        void* user) {
  (void)user;
  weir_edge_t shape = weir_const_ints(s, (const int[]){0}, 0);
  results[0] = weir_mul(s, args[0], weir_random_uniform(s, shape, WEIR_DTYPE_FLOAT));
}

static void test_functions_with_effects_have_no_gradient(void** state) {
  (void)state;
  weir_eager_t* eager = open_eager(NULL);
  weir_scope_t* s = weir_eager_scope(eager);
  weir_spec_t spec = {WEIR_TYPES(WEIR_DTYPE_FLOAT), WEIR_SHAPES(WEIR_SCALAR_SHAPE)};
  weir_defined_t f = weir_define_function(s, "random", spec, random_body, NULL, 1);
  weir_edge_t x = weir_const_float(s, 1), y, dx;
  weir_eager_call(s, &f, &x, 1, &y);
  assert_true(value_of(s, y) < 1);
  check_error(weir_gradients(s, &y, 1, &x, 1, NULL, &dx), WEIR_UNIMPLEMENTED, "is random");
  check_ok(weir_scope_finish(s));
  weir_eager_destroy(eager);
}

// ---- state ----

static void test_state_of_scopes(void** state) {
  (void)state;
  weir_eager_t* eager = open_eager(NULL);
  float seen[2][2];
  for (int step = 0; step < 2; ++step) {
    weir_scope_t* s = weir_eager_scope(eager);
    // A queue is the scope's own: that of the step before is gone.
    weir_edge_t queue = weir_fifo_queue_v2(s, TYPES);
    weir_edge_t x = weir_const_float(s, (float)step), out;
    weir_queue_enqueue_v2(s, queue, &x, 1);
    assert_true(value_of(s, weir_cast(s, weir_queue_size_v2(s, queue), WEIR_DTYPE_FLOAT)) == 1);
    out = weir_queue_dequeue_v2(s, queue, TYPES);
    assert_true(value_of(s, out) == (float)step);
    // A TensorArray lives as long as the scope.
    weir_tensor_array_v3_result_t array =
        weir_tensor_array_v3(s, weir_const_int(s, 2), WEIR_DTYPE_FLOAT);
    weir_edge_t flow =
        weir_tensor_array_write_v3(s, array.handle, weir_const_int(s, 0), x, array.flow);
    weir_edge_t read =
        weir_tensor_array_read_v3(s, array.handle, weir_const_int(s, 0), flow, WEIR_DTYPE_FLOAT);
    assert_true(value_of(s, read) == (float)step);
    // A random op goes on.
    for (int i = 0; i < 2; ++i) {
      weir_edge_t shape = weir_const_ints(s, (const int[]){0}, 0);
      seen[step][i] =
          value_of(s, weir_random_uniform(s, shape, WEIR_DTYPE_FLOAT, .seed = 3, .seed2 = 4));
    }
    check_ok(weir_scope_finish(s));
  }
  assert_true(seen[0][0] != seen[0][1] && seen[0][0] != seen[1][0] && seen[0][1] != seen[1][1]);
  weir_eager_destroy(eager);
}

static void twice_element(weir_scope_t* s, const weir_edge_t* element, weir_edge_t* results,
                          void* user) {
  (void)user;
  results[0] = weir_mul(s, element[0], element[0]);
}

static void test_datasets(void** state) {
  (void)state;
  weir_eager_t* eager = open_eager(NULL);
  weir_scope_t* s = weir_eager_scope(eager);
  weir_dataset_t d = weir_dataset_range(s, 0, 4, 1);
  d = weir_dataset_map(s, d, twice_element, NULL, 1);
  weir_dataset_iterator_t walk = weir_dataset_iterator(s, d);
  assert_null(weir_scope_status(s));
  for (int i = 0; i < 4; ++i) {
    weir_edge_t element;
    weir_tensor_t* value = NULL;
    weir_dataset_get_next(s, walk, &element);
    check_ok(weir_eager_value(s, element, &value));
    assert_int_equal(*(const int64_t*)weir_tensor_data(value), i * i);
    weir_tensor_release(value);
  }
  weir_edge_t end;
  weir_dataset_get_next(s, walk, &end);
  check_error(weir_eager_recover(s), WEIR_OUT_OF_RANGE, "End of sequence");
  check_ok(weir_scope_finish(s));
  weir_eager_destroy(eager);
}

// ---- devices ----

static void test_guard_device(void** state) {
  (void)state;
  weir_eager_t* eager = open_eager("cpu,guard:1");
  weir_scope_t* s = weir_eager_scope(eager);
  weir_scope_t* on = weir_scope_on(s, "/device:GUARD:0");
  weir_edge_t x = floats(s, 3, (const float[]){1, 2, 3});
  weir_edge_t y = weir_exp(on, x);
  weir_edge_t follows = weir_mul(s, y, y);  // where its inputs are
  weir_edge_t w = weir_variable(on, "w", weir_mul(on, x, x)), dw;
  weir_edge_t loss = weir_sum(s, weir_mul(s, w, w), weir_const_int(s, 0));
  check_ok(weir_gradients(s, &loss, 1, &w, 1, NULL, &dw));
  weir_assign_sub_variable_op(s, weir_variable_handle(w), dw);
  weir_tensor_t* value = NULL;
  check_ok(weir_eager_value(s, w, &value));
  check_floats(value, 0, -1, -4, -9);
  weir_tensor_release(value);
  check_ok(weir_eager_value(s, follows, &value));
  weir_tensor_release(value);
  assert_true(value_of(s, loss) == 1 + 16 + 81);
  // A host argument, and back.
  weir_edge_t slice = weir_gather_v2(on, y, weir_const_int(s, 0), weir_const_int(s, 0));
  assert_true(value_of(s, weir_log(weir_scope_on(s, "/device:CPU:0"), slice)) == 1);
  assert_null(weir_abs(weir_scope_on(s, "/device:GPU:7"), x).node);
  check_error(weir_eager_recover(s), WEIR_INVALID_ARGUMENT, "/device:GPU:7");
  check_ok(weir_scope_finish(s));
  weir_eager_destroy(eager);
}

// ---- threads ----

static void* train_apart(void* arg) {
  weir_eager_t* eager = arg;
  for (int step = 0; step < 20; ++step) {
    weir_scope_t* s = weir_eager_scope(eager);
    weir_edge_t w = weir_variable(s, "shared", weir_const_float(s, 1));
    weir_edge_t y = weir_add_v2(
        s, weir_square(s, w),
        mlp(s, weir_const_floats(s, 2, (const int64_t[]){1, 2}, (const float[]){1, 2})));
    weir_edge_t dw;
    weir_status_t* status = weir_gradients(s, &y, 1, &w, 1, NULL, &dw);
    if (status) weir_scope_fail(s, status);
    weir_assign_add_variable_op(s, weir_variable_handle(w), weir_const_float(s, 1));
    status = weir_scope_finish(s);
    if (status) return status;
  }
  return NULL;
}

static void test_threads_share_a_context(void** state) {
  (void)state;
  weir_eager_t* eager = open_eager(NULL);
  weir_scope_t* s = weir_eager_scope(eager);
  weir_edge_t w = weir_variable(s, "shared", weir_const_float(s, 1));
  mlp(s, weir_const_floats(s, 2, (const int64_t[]){1, 2}, (const float[]){1, 2}));
  pthread_t threads[3];
  for (int i = 0; i < 3; ++i)
    assert_int_equal(pthread_create(&threads[i], NULL, train_apart, eager), 0);
  for (int i = 0; i < 3; ++i) {
    void* status = NULL;
    pthread_join(threads[i], &status);
    check_ok(status);
  }
  assert_true(value_of(s, w) == 61);
  check_ok(weir_scope_finish(s));
  weir_eager_destroy(eager);
}

static void* cancel_it(void* arg) {
  weir_eager_cancel(arg);
  return NULL;
}

// The dequeue waits until another thread ends the scope.
static void test_cancel(void** state) {
  (void)state;
  weir_eager_t* eager = open_eager(NULL);
  weir_scope_t* s = weir_eager_scope(eager);
  weir_edge_t queue = weir_fifo_queue_v2(s, TYPES);
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, cancel_it, s), 0);
  weir_queue_dequeue_v2(s, queue, TYPES);
  pthread_join(thread, NULL);
  check_error(weir_scope_finish(s), WEIR_CANCELLED, "");
  weir_eager_destroy(eager);
}

// ---- memory ----

static void step_in(weir_eager_t* eager, weir_status_t** out_status) {
  weir_scope_t* s = weir_eager_scope(eager);
  if (!s) {
    *out_status = weir_out_of_memory();
    return;
  }
  weir_edge_t w = weir_variable(s, "w", weir_const_float(s, 1));
  weir_edge_t y = weir_mul(s, w, weir_square(s, w)), dw;
  weir_status_t* status = weir_gradients(s, &y, 1, &w, 1, NULL, &dw);
  if (!weir_scope_status(s)) weir_scope_fail(s, status);
  else weir_status_destroy(status);
  *out_status = weir_scope_finish(s);
}

// Each allocation fails in turn.
static void test_out_of_memory(void** state) {
  (void)state;
  weir_code_t code = WEIR_RESOURCE_EXHAUSTED;
  for (int64_t n = 1; code != WEIR_OK; ++n) {
    weir_eager_t* eager = open_eager(NULL);
    weir_status_t* status = NULL;
    weir_alloc_fail_at(n, false);
    step_in(eager, &status);
    weir_alloc_fail_at(0, false);
    code = weir_status_code(status);
    if (code != WEIR_OK) assert_int_equal(code, WEIR_RESOURCE_EXHAUSTED);
    weir_status_destroy(status);
    weir_eager_destroy(eager);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_runs_at_once),
      cmocka_unit_test(test_errors_stick_and_come_out),
      cmocka_unit_test(test_graphs_are_apart),
      cmocka_unit_test(test_gradients),
      cmocka_unit_test(test_variables_live_in_the_context),
      cmocka_unit_test(test_edges_of_other_scopes),
      cmocka_unit_test(test_layers_and_optimizers),
      cmocka_unit_test(test_control_flow),
      cmocka_unit_test(test_traced_functions),
      cmocka_unit_test(test_functions_with_effects_have_no_gradient),
      cmocka_unit_test(test_state_of_scopes),
      cmocka_unit_test(test_datasets),
      cmocka_unit_test(test_guard_device),
      cmocka_unit_test(test_threads_share_a_context),
      cmocka_unit_test(test_cancel),
      cmocka_unit_test(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

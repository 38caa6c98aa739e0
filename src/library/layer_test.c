// layer_test.c — Layers and initialisers: names, shapes, shared weights, collections, errors.
// Values and gradients are compared with TensorFlow's in tests/layers_test.py.
#include "weir/layer.h"

#include "testing/bench.h"
#include "weir/embedding.h"
#include "weir/loss.h"
#include "weir/optimizer.h"
#include "weir/sampled.h"

static void check_shape(weir_edge_t edge, weir_ints_t expected) {
  int64_t dims[8];
  assert_non_null(edge.node);
  assert_int_equal(weir_edge_dims(edge, dims, 8), expected.count);
  for (int i = 0; i < expected.count; ++i) assert_int_equal(dims[i], expected.items[i]);
}

static void check_variable(bench_t* b, int index, const char* name, bool is_trainable) {
  weir_variable_info_t variable = weir_scope_variable_at(b->s, index);
  assert_string_equal(weir_node_name(variable.handle.node), name);
  assert_int_equal(variable.is_trainable, is_trainable);
}

// ---- names and shapes ----

static void test_names_are_those_of_tensorflow(void** state) {
  bench_t* b = *state;
  weir_edge_t x = FED(b, FLOAT, -1, 8, 8, 3);
  x = weir_layer_conv2d(b->s, x, 4, 3);
  x = weir_layer_batch_norm(b->s, x);
  x = weir_layer_separable_conv2d(b->s, x, 2, 3);
  x = weir_layer_flatten(b->s, x);
  x = weir_layer_dense(b->s, x, 5);
  x = weir_layer_dense(b->s, x, 2, .name = "logits");
  check_shape(x, WEIR_INTS(-1, 2));
  const char* names[] = {"conv2d/kernel",
                         "conv2d/bias",
                         "batch_normalization/gamma",
                         "batch_normalization/beta",
                         "batch_normalization/moving_mean",
                         "batch_normalization/moving_variance",
                         "separable_conv2d/depthwise_kernel",
                         "separable_conv2d/pointwise_kernel",
                         "separable_conv2d/bias",
                         "dense/kernel",
                         "dense/bias",
                         "logits/kernel",
                         "logits/bias"};
  assert_int_equal(weir_scope_variable_count(b->s), sizeof(names) / sizeof(*names));
  for (int i = 0; i < weir_scope_variable_count(b->s); ++i)
    check_variable(b, i, names[i], !strstr(names[i], "moving"));
  check_ok(weir_status_copy(weir_scope_status(b->s)));
}

static void test_names_are_unique(void** state) {
  bench_t* b = *state;
  weir_edge_t x = FED(b, FLOAT, -1, 3);
  weir_layer_dense(b->s, weir_layer_dense(b->s, x, 3), 3);
  check_variable(b, 0, "dense/kernel", true);
  check_variable(b, 2, "dense_1/kernel", true);
}

static void test_shapes(void** state) {
  bench_t* b = *state;
  weir_edge_t x = FED(b, FLOAT, -1, 9, 8, 3);
  check_shape(weir_layer_conv2d(b->s, x, 4, 3), WEIR_INTS(-1, 7, 6, 4));
  check_shape(weir_layer_conv2d(b->s, x, 4, 3, .strides = {2}, .padding = "SAME"),
              WEIR_INTS(-1, 5, 4, 4));
  check_shape(weir_layer_conv2d(b->s, x, 4, 0, .kernel_sizes = {1, 5}), WEIR_INTS(-1, 9, 4, 4));
  check_shape(weir_layer_conv2d_transpose(b->s, x, 4, 3, .strides = {2}, .padding = "SAME"),
              WEIR_INTS(-1, 18, 16, 4));
  check_shape(weir_layer_depthwise_conv2d(b->s, x, 3, .depth_multiplier = 2),
              WEIR_INTS(-1, 7, 6, 6));
  check_shape(weir_layer_max_pool2d(b->s, x, 2), WEIR_INTS(-1, 4, 4, 3));
  check_shape(weir_layer_average_pool2d(b->s, x, 3, .strides = {1}), WEIR_INTS(-1, 7, 6, 3));
  check_shape(weir_layer_global_average_pool(b->s, x), WEIR_INTS(-1, 3));
  check_shape(weir_layer_dropout(b->s, x, 0.5f), WEIR_INTS(-1, 9, 8, 3));
  weir_edge_t training = weir_placeholder(b->s, WEIR_DTYPE_BOOL, .shape = WEIR_SCALAR_SHAPE);
  check_shape(weir_layer_batch_norm(b->s, x, .training = training), WEIR_INTS(-1, 9, 8, 3));
  check_shape(weir_layer_dense(b->s, x, 7), WEIR_INTS(-1, 9, 8, 7));
  weir_edge_t ids = FED(b, INT32, -1, 4);
  check_shape(weir_layer_embedding(b->s, ids, 100, 16), WEIR_INTS(-1, 4, 16));
}

static void test_variables_have_the_type_of_the_input(void** state) {
  bench_t* b = *state;
  weir_edge_t y = weir_layer_dense(b->s, FED(b, DOUBLE, -1, 3), 3, .activation = weir_gelu);
  assert_int_equal(weir_edge_type(y), WEIR_DTYPE_DOUBLE);
  y = weir_layer_dense(b->s, FED(b, HALF, -1, 3), 3, .kernel_l2 = 0.5f);
  assert_int_equal(weir_edge_type(y), WEIR_DTYPE_HALF);
  assert_int_equal(weir_edge_type(weir_scope_variable_at(b->s, 2).value), WEIR_DTYPE_HALF);
  y = weir_layer_batch_norm(b->s, y, .is_training = true);  // statistics of halves are floats
  assert_int_equal(weir_edge_type(y), WEIR_DTYPE_HALF);
  assert_int_equal(weir_edge_type(weir_scope_variable_at(b->s, 4).value), WEIR_DTYPE_FLOAT);
}

static void test_shared_weights_are_no_new_variables(void** state) {
  bench_t* b = *state;
  weir_edge_t x = FED(b, FLOAT, -1, 3);
  weir_layer_dense(b->s, x, 3);
  weir_edge_t kernel = weir_scope_variable_at(b->s, 0).value;
  weir_edge_t bias = weir_scope_variable_at(b->s, 1).value;
  assert_non_null(weir_layer_dense(b->s, x, 3, .kernel = kernel, .bias = bias).node);
  assert_int_equal(weir_scope_variable_count(b->s), 2);
}

// ---- collections ----

static void test_batch_norm_collects_updates(void** state) {
  bench_t* b = *state;
  const weir_edge_t* updates = NULL;
  weir_edge_t x = FED(b, FLOAT, -1, 4, 4, 3);
  weir_layer_batch_norm(b->s, x);
  assert_int_equal(weir_scope_collected(b->s, WEIR_UPDATES, &updates), 0);
  weir_layer_batch_norm(b->s, x, .is_training = true);
  assert_int_equal(weir_scope_collected(b->s, WEIR_UPDATES, &updates), 2);
  assert_string_equal(weir_node_op(updates[0].node), "AssignSubVariableOp");
}

static void test_penalties_are_summed_up(void** state) {
  bench_t* b = *state;
  weir_edge_t zero = weir_loss_regularization(b->s);
  assert_string_equal(weir_node_op(zero.node), "Const");
  weir_edge_t x = FED(b, FLOAT, -1, 2), loss = weir_const_float(b->s, 1);
  assert_ptr_equal(weir_loss_total(b->s, loss).node, loss.node);
  weir_layer_dense(b->s, x, 2, .kernel_l2 = 0.5f, .kernel_init = weir_init_constant(3));
  weir_layer_dense(b->s, x, 1, .kernel_l1 = 2, .kernel_init = weir_init_constant(-1));
  weir_edge_t total = weir_loss_total(b->s, loss);
  weir_session_t* session = NULL;
  weir_tensor_t* result = NULL;
  check_ok(weir_session_create(b->graph, NULL, &session));
  check_ok(weir_session_run_target(session, weir_initializer(b->s)));
  check_ok(weir_session_run(session, &(weir_step_spec_t){WEIR_FETCHES(total)}, &result));
  assert_float_equal(float_of(result), 1 + 0.5 * 4 * 9 + 2 * 2, 0);
  weir_tensor_release(result);
  weir_session_destroy(session);
}

// ---- errors ----

static void test_errors_of_layers(void** state) {
  bench_t* b = *state;
  weir_edge_t x = FED(b, FLOAT, -1, 8, 8, 3), flat = FED(b, FLOAT, -1, 4);
  weir_edge_t open = FED(b, FLOAT, -1, -1);
  const weir_edge_t none = {0};
  check_fails(b, weir_layer_dense(b->s, flat, 0), "units > 0, got 0");
  check_fails(b, weir_layer_dense(b->s, open, 3), "last dimension is known");
  check_fails(b, weir_layer_dense(b->s, none, 3), "without a node");
  check_fails(b, weir_layer_conv2d(b->s, flat, 3, 3), "rank 4");
  check_fails(b, weir_layer_conv2d(b->s, x, -1, 3), "filters must be positive, got -1");
  check_fails(b, weir_layer_conv2d(b->s, x, 3, 0), "must be positive");
  check_fails(b, weir_layer_conv2d(b->s, x, 3, 3, .strides = {-1}), "must be positive");
  check_fails(b, weir_layer_conv2d(b->s, x, 3, 3, .padding = "HALF"), "got 'HALF'");
  check_fails(b, weir_layer_conv2d_transpose(b->s, x, 3, 3, .dilations = {2}), "dilations");
  check_fails(b, weir_layer_depthwise_conv2d(b->s, x, 3, .depth_multiplier = -2), "got -2");
  check_fails(b, weir_layer_max_pool2d(b->s, flat, 2), "rank 4, got 2");
  check_fails(b, weir_layer_max_pool2d(b->s, x, 0), "must be positive");
  check_fails(b, weir_layer_max_pool2d(b->s, x, 2, .padding = "x"), "got 'x'");
  check_fails(b, weir_layer_global_average_pool(b->s, flat), "rank 3 or more, got 2");
  check_fails(b, weir_layer_batch_norm(b->s, open), "last dimension is known");
  check_fails(b, weir_layer_norm(b->s, open), "last dimension is known");
  check_fails(b, weir_layer_dropout(b->s, x, 1), "[0, 1), got 1");
  check_fails(b, weir_layer_dropout(b->s, x, -0.5f), "got -0.5");
  check_fails(b, weir_layer_flatten(b->s, weir_const_float(b->s, 1)), "scalar");
}

static void test_errors_of_initializers(void** state) {
  bench_t* b = *state;
  weir_scope_t* s = b->s;
  check_fails(b, weir_init_edge(s, weir_init_ones(), WEIR_DTYPE_FLOAT, WEIR_SHAPE(2, -1)),
              "dimension 1");
  check_fails(b, weir_init_edge(b->s, weir_init_identity(1), WEIR_DTYPE_FLOAT, WEIR_SHAPE(2)),
              "needs a matrix");
  check_fails(b, weir_init_edge(b->s, weir_init_orthogonal(1, 1), WEIR_DTYPE_FLOAT, WEIR_SHAPE(2)),
              "at least a matrix");
  weir_init_t scaling = weir_init_variance_scaling(0, WEIR_FAN_IN, WEIR_DISTRIBUTION_UNIFORM, 1);
  check_fails(b, weir_init_edge(b->s, scaling, WEIR_DTYPE_FLOAT, WEIR_SHAPE(2)), "positive, got 0");
  weir_init_t given = weir_init_value(weir_const_float(b->s, 1));
  check_fails(b, weir_init_edge(b->s, given, WEIR_DTYPE_FLOAT, WEIR_SHAPE(2)), "type and shape");
  given = weir_init_value(weir_const_float(b->s, 1));
  assert_non_null(weir_init_edge(b->s, given, WEIR_DTYPE_FLOAT, WEIR_SCALAR_SHAPE).node);
}

static void test_errors_of_embeddings(void** state) {
  bench_t* b = *state;
  weir_edge_t ids = FED(b, INT32, -1), floats = FED(b, FLOAT, -1), x = FED(b, FLOAT, -1, 4);
  check_fails(b, weir_embedding_lookup(b->s, ((weir_tables_t){NULL, 0}), ids), "at least one");
  check_fails(b, weir_embedding_lookup(b->s, WEIR_TABLES(x), floats), "int32 or int64, got float");
  check_fails(b, weir_embedding_lookup(b->s, WEIR_TABLES(x, (weir_edge_t){0}), ids), "without");
  check_fails(b, weir_layer_embedding(b->s, ids, 0, 4), "got 0 rows of 4");
  weir_tables_t one = WEIR_TABLES(x);
  check_fails(b, weir_nce_loss(b->s, one, one, ids, x, 3, 10), "must be matrices");
  weir_edge_t labels = FED(b, INT64, -1, 1);
  check_fails(b, weir_sampled_softmax_loss(b->s, one, one, labels, x, 0, 10), "num_sampled 0");
}

// ---- together ----

// A network learns exclusive or: layers, an optimizer and updates in one step.
static void test_layers_learn(void** state) {
  bench_t* b = *state;
  weir_edge_t x = weir_const_floats(b->s, WEIR_DIMS(4, 2), (float[]){0, 0, 0, 1, 1, 0, 1, 1});
  weir_edge_t labels = weir_const_ints(b->s, (int[]){0, 1, 1, 0}, 4);
  weir_edge_t hidden = weir_layer_dense(b->s, x, 8, .activation = weir_op_tanh,
                                        .kernel_init = weir_init_glorot_uniform(1));
  hidden = weir_layer_batch_norm(b->s, hidden, .is_training = true);
  weir_edge_t logits = weir_layer_dense(b->s, hidden, 2, .kernel_init = weir_init_he_normal(2));
  weir_edge_t loss = weir_loss_sparse_softmax_cross_entropy(b->s, labels, logits);
  weir_node_t* step = weir_train_adam(b->s, loss, 0.05f);
  const weir_edge_t* updates = NULL;
  assert_int_equal(weir_scope_collected(b->s, WEIR_UPDATES, &updates), 2);
  weir_node_t* nodes[] = {step, updates[0].node, updates[1].node};
  weir_node_t* train = weir_group(b->s, "train", nodes, 3);
  weir_session_t* session = NULL;
  weir_tensor_t* result = NULL;
  check_ok(weir_session_create(b->graph, NULL, &session));
  check_ok(weir_session_run_target(session, weir_initializer(b->s)));
  for (int i = 0; i < 100; ++i) check_ok(weir_session_run_target(session, train));
  check_ok(weir_session_run(session, &(weir_step_spec_t){WEIR_FETCHES(loss)}, &result));
  assert_true(float_of(result) < 0.05f);
  weir_tensor_release(result);
  weir_session_destroy(session);
}

// A step changes the rows that it has used, and no others.
static void test_embeddings_learn_by_row(void** state) {
  bench_t* b = *state;
  weir_edge_t ids = weir_const_ints(b->s, (int[]){2, 0, 2}, 3);
  weir_edge_t rows = weir_layer_embedding(b->s, ids, 4, 2, .init = weir_init_ones());
  weir_edge_t axes = weir_const_ints(b->s, (int[]){0, 1}, 2);
  weir_node_t* step = weir_train_sgd(b->s, weir_sum(b->s, rows, axes), 0.25f);
  weir_edge_t table = weir_scope_variable_at(b->s, 0).value;
  weir_session_t* session = NULL;
  weir_tensor_t* result = NULL;
  check_ok(weir_session_create(b->graph, NULL, &session));
  check_ok(weir_session_run_target(session, weir_initializer(b->s)));
  check_ok(weir_session_run_target(session, step));
  check_ok(weir_session_run(session, &(weir_step_spec_t){WEIR_FETCHES(table)}, &result));
  check_floats(result, 0, 0.75f, 0.75f, 1, 1, 0.5f, 0.5f, 1, 1);
  weir_tensor_release(result);
  weir_session_destroy(session);
}

// ---- seeds ----

// The first element of a new random weight on a scope with |seed|.
static float draw(weir_graph_t* graph, int64_t seed) {
  weir_scope_t* s = weir_scope_create(graph);
  weir_scope_seed(s, seed);
  assert_int_equal(weir_scope_get_seed(weir_scope_in(s, "inner")), seed);
  weir_edge_t w = weir_weight(s, "w", weir_init_uniform(0, 1, 0), WEIR_SHAPE(1000));
  weir_edge_t first = weir_reshape(
      s, weir_slice(s, w, weir_const_ints(s, (int[]){0}, 1), weir_const_ints(s, (int[]){1}, 1)),
      weir_const_ints(s, NULL, 0));
  weir_node_t* init = weir_initializer(s);
  weir_session_t* session = NULL;
  float value = 0;
  check_ok(weir_scope_finish(s));
  check_ok(weir_session_create(graph, NULL, &session));
  check_ok(weir_session_run_target(session, init));
  check_ok(weir_session_fetch_float(session, first, &value));
  weir_session_destroy(session);
  return value;
}

static void test_seeds_repeat(void** state) {
  (void)state;
  float values[5];
  const int64_t seeds[] = {7, 7, 8, 0, 0};
  for (int i = 0; i < 5; ++i) {
    weir_graph_t* graph = NULL;
    check_ok(weir_graph_create(&graph));
    values[i] = draw(graph, seeds[i]);
    weir_graph_release(graph);
  }
  assert_true(values[0] == values[1]);
  assert_true(values[0] != values[2]);
  assert_true(values[3] != values[4]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_names_are_those_of_tensorflow),
      TEST(test_names_are_unique),
      TEST(test_shapes),
      TEST(test_variables_have_the_type_of_the_input),
      TEST(test_shared_weights_are_no_new_variables),
      TEST(test_batch_norm_collects_updates),
      TEST(test_penalties_are_summed_up),
      TEST(test_errors_of_layers),
      TEST(test_errors_of_initializers),
      TEST(test_errors_of_embeddings),
      TEST(test_layers_learn),
      TEST(test_embeddings_learn_by_row),
      TEST(test_seeds_repeat),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

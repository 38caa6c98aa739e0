// cases.c — Builds each layer, loss and metric into a graph of its own and writes it to a folder,
// for layers_test.py to run beside TensorFlow's. Inputs are placeholders, results nodes of known
// names.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/weir.h>

#define COUNT_OF(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define INPUT(s, name, dtype, ...)                                   \
  weir_placeholder(weir_scope_name((s), (name)), WEIR_DTYPE_##dtype, \
                   .shape = WEIR_SHAPE(__VA_ARGS__))

static void output(weir_scope_t* s, const char* name, weir_edge_t edge) {
  weir_identity(weir_scope_name(s, name), edge);
}

static weir_edge_t training(weir_scope_t* s) {
  return weir_placeholder(weir_scope_name(s, "training"), WEIR_DTYPE_BOOL,
                          .shape = WEIR_SCALAR_SHAPE);
}

// ---- initialisers ----

static void initializers(weir_scope_t* s) {
  const struct {
    const char* name;
    weir_init_t init;
  } all[] = {
      {"zeros", weir_init_zeros()},
      {"ones", weir_init_ones()},
      {"constant", weir_init_constant(1.5)},
      {"uniform", weir_init_uniform(-2, 3, 11)},
      {"normal", weir_init_normal(0.5, 2, 12)},
      {"truncated_normal", weir_init_truncated_normal(-1, 0.5, 13)},
      {"glorot_uniform", weir_init_glorot_uniform(14)},
      {"glorot_normal", weir_init_glorot_normal(15)},
      {"he_uniform", weir_init_he_uniform(16)},
      {"he_normal", weir_init_he_normal(17)},
      {"lecun_uniform", weir_init_lecun_uniform(18)},
      {"lecun_normal", weir_init_lecun_normal(19)},
      {"scaled_out", weir_init_variance_scaling(3, WEIR_FAN_OUT, WEIR_DISTRIBUTION_NORMAL, 20)},
      {"identity", weir_init_identity(2.5)}};
  const weir_init_t orthogonal = weir_init_orthogonal(1.5, 21);
  output(s, "orthogonal", weir_init_edge(s, orthogonal, WEIR_DTYPE_FLOAT, WEIR_SHAPE(6, 4)));
  output(s, "orthogonal_wide", weir_init_edge(s, orthogonal, WEIR_DTYPE_FLOAT, WEIR_SHAPE(3, 8)));
  output(s, "orthogonal_4d",
         weir_init_edge(s, orthogonal, WEIR_DTYPE_DOUBLE, WEIR_SHAPE(3, 2, 5, 4)));
  for (int i = 0; i < COUNT_OF(all); ++i) {
    char name[64];
    output(s, all[i].name, weir_init_edge(s, all[i].init, WEIR_DTYPE_FLOAT, WEIR_SHAPE(6, 4)));
    if (!strcmp(all[i].name, "identity")) continue;
    snprintf(name, sizeof(name), "%s_4d", all[i].name);
    output(s, name, weir_init_edge(s, all[i].init, WEIR_DTYPE_FLOAT, WEIR_SHAPE(3, 2, 5, 4)));
    snprintf(name, sizeof(name), "%s_double", all[i].name);
    output(s, name, weir_init_edge(s, all[i].init, WEIR_DTYPE_DOUBLE, WEIR_SHAPE(7)));
  }
  weir_init_t seeded = weir_init_normal(0, 1, 5);
  seeded.graph_seed = 99;
  output(s, "graph_seeded", weir_init_edge(s, seeded, WEIR_DTYPE_FLOAT, WEIR_SHAPE(6)));
}

// ---- layers ----

static void dense(weir_scope_t* s) {
  weir_edge_t x = INPUT(s, "x", FLOAT, -1, 5);
  output(s, "y",
         weir_layer_dense(s, x, 3, .activation = weir_op_tanh,
                          .kernel_init = weir_init_glorot_uniform(1),
                          .bias_init = weir_init_normal(0, 1, 2)));
}

static void dense_deep(weir_scope_t* s) {
  weir_edge_t x = INPUT(s, "x", FLOAT, -1, -1, 5);
  x = weir_layer_dense(s, x, 4, .activation = weir_gelu, .kernel_init = {.seed = 3},
                       .name = "hidden");
  output(s, "y",
         weir_layer_dense(s, x, 3, .no_bias = true, .activation = weir_silu,
                          .kernel_init = weir_init_he_normal(4)));
}

static void dense_shared(weir_scope_t* s) {
  weir_edge_t x = INPUT(s, "x", FLOAT, -1, 5);
  weir_edge_t kernel = weir_variable(
      s, "w", weir_init_edge(s, weir_init_normal(0, 1, 1), WEIR_DTYPE_FLOAT, WEIR_SHAPE(5, 5)));
  x = weir_layer_dense(s, x, 5, .kernel = kernel, .no_bias = true);
  output(s, "y", weir_layer_dense(s, x, 5, .kernel = kernel, .bias_init = weir_init_ones()));
}

static void flatten(weir_scope_t* s) {
  output(s, "y", weir_layer_flatten(s, INPUT(s, "x", FLOAT, -1, 3, 2, 4)));
  weir_edge_t any = weir_placeholder(weir_scope_name(s, "any"), WEIR_DTYPE_FLOAT);
  output(s, "y_any", weir_layer_flatten(s, any));
  output(s, "y_partly", weir_layer_flatten(s, INPUT(s, "partly", FLOAT, -1, -1, 4)));
}

static void regularized(weir_scope_t* s) {
  weir_edge_t x = INPUT(s, "x", FLOAT, -1, 5);
  x = weir_layer_dense(s, x, 4, .kernel_l2 = 0.25f, .kernel_init = weir_init_normal(0, 1, 1));
  x = weir_layer_dense(s, x, 4, .kernel_l1 = 0.5f, .kernel_l2 = 0.125f,
                       .kernel_init = weir_init_normal(0, 1, 2));
  output(s, "y", weir_loss_total(s, weir_loss_mean_squared(s, weir_zeros_like(s, x), x)));
  output(s, "penalty", weir_loss_regularization(s));
}

static void conv1d(weir_scope_t* s) {
  weir_edge_t x = INPUT(s, "x", FLOAT, -1, 11, 3);
  output(s, "y",
         weir_layer_conv1d(s, x, 4, 3, .strides = {2}, .padding = "same",
                           .kernel_init = weir_init_normal(0, 1, 1),
                           .bias_init = weir_init_normal(0, 1, 2)));
}

static void conv2d(weir_scope_t* s) {
  weir_edge_t x = INPUT(s, "x", FLOAT, -1, 9, 8, 3);
  output(s, "y",
         weir_layer_conv2d(s, x, 4, 3, .activation = weir_op_relu,
                           .kernel_init = weir_init_normal(0, 1, 1),
                           .bias_init = weir_init_normal(0, 1, 2)));
}

static void conv2d_options(weir_scope_t* s) {
  weir_edge_t x = INPUT(s, "x", FLOAT, -1, 9, 8, 3);
  x = weir_layer_conv2d(s, x, 4, 0, .kernel_sizes = {3, 2}, .dilations = {2, 1}, .padding = "SAME",
                        .no_bias = true, .kernel_init = weir_init_normal(0, 1, 1));
  output(s, "y",
         weir_layer_conv2d(s, x, 2, 3, .strides = {2, 1}, .padding = "SAME",
                           .kernel_init = weir_init_normal(0, 1, 3)));
}

static void conv3d(weir_scope_t* s) {
  weir_edge_t x = INPUT(s, "x", FLOAT, -1, 5, 6, 4, 2);
  output(s, "y",
         weir_layer_conv3d(s, x, 3, 3, .strides = {1, 2, 1}, .padding = "SAME",
                           .kernel_init = weir_init_normal(0, 1, 1)));
}

static void conv2d_transpose(weir_scope_t* s) {
  weir_edge_t x = INPUT(s, "x", FLOAT, -1, 4, 5, 3);
  output(s, "y",
         weir_layer_conv2d_transpose(s, x, 2, 3, .strides = {2},
                                     .kernel_init = weir_init_normal(0, 1, 1),
                                     .bias_init = weir_init_normal(0, 1, 2)));
}

static void conv2d_transpose_same(weir_scope_t* s) {
  weir_edge_t x = INPUT(s, "x", FLOAT, -1, -1, 5, 3);
  output(s, "y",
         weir_layer_conv2d_transpose(s, x, 2, 3, .strides = {2, 3}, .padding = "SAME",
                                     .kernel_init = weir_init_normal(0, 1, 1)));
}

static void depthwise_conv2d(weir_scope_t* s) {
  weir_edge_t x = INPUT(s, "x", FLOAT, -1, 7, 6, 3);
  output(s, "y",
         weir_layer_depthwise_conv2d(s, x, 3, .depth_multiplier = 2,
                                     .kernel_init = weir_init_normal(0, 1, 1),
                                     .bias_init = weir_init_normal(0, 1, 2)));
}

static void separable_conv2d(weir_scope_t* s) {
  weir_edge_t x = INPUT(s, "x", FLOAT, -1, 7, 6, 3);
  output(s, "y",
         weir_layer_separable_conv2d(s, x, 4, 3, .depth_multiplier = 2, .padding = "SAME",
                                     .kernel_init = weir_init_normal(0, 1, 1),
                                     .bias_init = weir_init_normal(0, 1, 2)));
}

static void max_pool2d(weir_scope_t* s) {
  output(s, "y", weir_layer_max_pool2d(s, INPUT(s, "x", FLOAT, -1, 9, 8, 3), 2));
}
static void average_pool2d(weir_scope_t* s) {
  output(s, "y",
         weir_layer_average_pool2d(s, INPUT(s, "x", FLOAT, -1, 9, 8, 3), 0, .pool_sizes = {3, 2},
                                   .strides = {2}, .padding = "SAME"));
}
static void max_pool1d(weir_scope_t* s) {
  output(s, "y", weir_layer_max_pool1d(s, INPUT(s, "x", FLOAT, -1, 9, 3), 3, .strides = {2}));
}
static void average_pool1d(weir_scope_t* s) {
  output(s, "y", weir_layer_average_pool1d(s, INPUT(s, "x", FLOAT, -1, 9, 3), 2));
}
static void global_average_pool(weir_scope_t* s) {
  output(s, "y", weir_layer_global_average_pool(s, INPUT(s, "x", FLOAT, -1, 5, 4, 3)));
}
static void global_max_pool(weir_scope_t* s) {
  output(s, "y", weir_layer_global_max_pool(s, INPUT(s, "x", FLOAT, -1, 5, 3)));
}

#define NORM_INITS                                                                   \
  .gamma_init = weir_init_normal(1, 0.5, 1), .beta_init = weir_init_normal(0, 1, 2), \
  .moving_mean_init = weir_init_normal(0, 1, 3),                                     \
  .moving_variance_init = weir_init_uniform(0.5, 2, 4)

static void batch_norm_training(weir_scope_t* s) {
  weir_edge_t x = INPUT(s, "x", FLOAT, -1, 5, 4, 3);
  output(s, "y", weir_layer_batch_norm(s, x, .is_training = true, NORM_INITS));
}
static void batch_norm_inference(weir_scope_t* s) {
  weir_edge_t x = INPUT(s, "x", FLOAT, -1, 5, 4, 3);
  output(s, "y", weir_layer_batch_norm(s, x, NORM_INITS));
}
static void batch_norm_fed(weir_scope_t* s) {
  weir_edge_t x = INPUT(s, "x", FLOAT, -1, 5, 4, 3);
  output(s, "y",
         weir_layer_batch_norm(s, x, .training = training(s), .momentum = WEIR_SET(0.75f),
                               .epsilon = WEIR_SET(0.01f), NORM_INITS));
}
static void batch_norm_vectors(weir_scope_t* s) {
  weir_edge_t x = INPUT(s, "x", FLOAT, -1, 6);
  output(s, "y", weir_layer_batch_norm(s, x, .training = training(s), NORM_INITS));
}
static void batch_norm_bare(weir_scope_t* s) {
  weir_edge_t x = INPUT(s, "x", FLOAT, -1, 6);
  output(s, "y",
         weir_layer_batch_norm(s, x, .is_training = true, .no_scale = true, .no_center = true));
}

static void batch_norm_half(weir_scope_t* s) {
  weir_edge_t x = INPUT(s, "x", HALF, -1, 5, 4, 3);
  weir_edge_t y = weir_layer_batch_norm(s, x, .is_training = true, NORM_INITS);
  output(s, "y", weir_cast(s, y, WEIR_DTYPE_FLOAT));
}

static void layer_norm(weir_scope_t* s) {
  weir_edge_t x = INPUT(s, "x", FLOAT, -1, 3, 6);
  output(s, "y",
         weir_layer_norm(s, x, .gamma_init = weir_init_normal(1, 0.5, 1),
                         .beta_init = weir_init_normal(0, 1, 2)));
}

static void dropout(weir_scope_t* s) {
  weir_edge_t x = INPUT(s, "x", FLOAT, -1, 40);
  output(s, "y", weir_layer_dropout(s, x, 0.25f, .is_training = true, .seed = 7));
}
static void dropout_fed(weir_scope_t* s) {
  weir_edge_t x = INPUT(s, "x", FLOAT, -1, 40);
  output(s, "y", weir_layer_dropout(s, x, 0.25f, .training = training(s), .seed = 7));
}

// ---- embeddings ----

static weir_edge_t table(weir_scope_t* s, const char* name, int64_t rows, int64_t size, int seed) {
  return weir_variable(
      s, name,
      weir_init_edge(s, weir_init_normal(0, 1, seed), WEIR_DTYPE_FLOAT, WEIR_SHAPE(rows, size)));
}

static void embedding(weir_scope_t* s) {
  weir_edge_t ids = INPUT(s, "ids", INT32, -1, -1);
  output(s, "y", weir_layer_embedding(s, ids, 10, 4, .init = {.seed = 1}));
}
static void embedding_max_norm(weir_scope_t* s) {
  weir_edge_t ids = INPUT(s, "ids", INT32, -1, -1);
  output(s, "y",
         weir_embedding_lookup(s, WEIR_TABLES(table(s, "t0", 10, 4, 1)), ids, .max_norm = 1.5f));
}
static void embedding_mod(weir_scope_t* s) {
  weir_edge_t ids = INPUT(s, "ids", INT64, -1, -1);
  weir_edge_t a = table(s, "t0", 4, 4, 1), b = table(s, "t1", 3, 4, 2), c = table(s, "t2", 3, 4, 3);
  output(s, "y", weir_embedding_lookup(s, WEIR_TABLES(a, b, c), ids));
}
static void embedding_div(weir_scope_t* s) {
  weir_edge_t ids = INPUT(s, "ids", INT32, -1, -1);
  weir_edge_t a = table(s, "t0", 4, 4, 1), b = table(s, "t1", 3, 4, 2), c = table(s, "t2", 3, 4, 3);
  output(s, "y",
         weir_embedding_lookup(s, WEIR_TABLES(a, b, c), ids, .partition = WEIR_PARTITION_DIV,
                               .max_norm = 1.75f));
}
static void embedding_sparse(weir_scope_t* s, weir_combiner_t combiner, bool is_weighted) {
  weir_edge_t indices = INPUT(s, "indices", INT64, -1, 2), ids = INPUT(s, "ids", INT64, -1);
  weir_edge_t a = table(s, "t0", 5, 4, 1), b = table(s, "t1", 5, 4, 2);
  weir_edge_t weights = {0};
  if (is_weighted) weights = INPUT(s, "weights", FLOAT, -1);
  output(s, "y",
         weir_embedding_lookup_sparse(s, WEIR_TABLES(a, b), indices, ids, .combiner = combiner,
                                      .weights = weights));
}
static void sparse_mean(weir_scope_t* s) { embedding_sparse(s, WEIR_COMBINE_MEAN, false); }
static void sparse_sum(weir_scope_t* s) { embedding_sparse(s, WEIR_COMBINE_SUM, false); }
static void sparse_sqrtn(weir_scope_t* s) { embedding_sparse(s, WEIR_COMBINE_SQRTN, false); }
static void sparse_mean_weighted(weir_scope_t* s) { embedding_sparse(s, WEIR_COMBINE_MEAN, true); }
static void sparse_sum_weighted(weir_scope_t* s) { embedding_sparse(s, WEIR_COMBINE_SUM, true); }
static void sparse_sqrtn_weighted(weir_scope_t* s) {
  embedding_sparse(s, WEIR_COMBINE_SQRTN, true);
}

// ---- losses ----

static void losses(weir_scope_t* s) {
  weir_edge_t x = INPUT(s, "x", FLOAT, -1, 5), labels = INPUT(s, "labels", FLOAT, -1, 5);
  weir_edge_t weights = INPUT(s, "weights", FLOAT, -1, 1), each = INPUT(s, "each", FLOAT, -1);
  weir_edge_t classes = INPUT(s, "classes", INT32, -1), column = INPUT(s, "column", INT64, -1, 1);
  weir_edge_t deep = INPUT(s, "deep", FLOAT, 2, -1, 5), places = INPUT(s, "places", INT64, 2, -1);
  weir_edge_t deep_labels = INPUT(s, "deep_labels", FLOAT, 2, -1, 5);
  weir_edge_t scalar = weir_const_float(s, 0.5f);
  output(s, "softmax", weir_loss_softmax_cross_entropy(s, labels, x));
  output(s, "softmax_weighted", weir_loss_softmax_cross_entropy(s, labels, x, .weights = each));
  output(s, "softmax_smooth",
         weir_loss_softmax_cross_entropy(s, labels, x, .label_smoothing = 0.125f));
  output(s, "softmax_deep", weir_loss_softmax_cross_entropy(s, deep_labels, deep));
  output(s, "sparse", weir_loss_sparse_softmax_cross_entropy(s, classes, x));
  output(s, "sparse_column",
         weir_loss_sparse_softmax_cross_entropy(s, column, x, .weights = weights));
  output(s, "sparse_deep", weir_loss_sparse_softmax_cross_entropy(s, places, deep));
  output(s, "sigmoid", weir_loss_sigmoid_cross_entropy(s, labels, x));
  output(
      s, "sigmoid_weighted",
      weir_loss_sigmoid_cross_entropy(s, labels, x, .weights = weights, .label_smoothing = 0.25f));
  output(s, "sigmoid_positive", weir_weighted_sigmoid_cross_entropy(s, labels, x, scalar));
  output(s, "squared", weir_loss_mean_squared(s, labels, x, .weights = weights));
  output(s, "squared_none",
         weir_loss_mean_squared(s, labels, x, .weights = weights, .reduction = WEIR_REDUCE_NONE));
  output(s, "squared_sum",
         weir_loss_mean_squared(s, labels, x, .weights = weights, .reduction = WEIR_REDUCE_SUM));
  output(s, "squared_mean",
         weir_loss_mean_squared(s, labels, x, .weights = weights, .reduction = WEIR_REDUCE_MEAN));
  output(s, "squared_batch",
         weir_loss_mean_squared(s, labels, x, .weights = weights,
                                .reduction = WEIR_REDUCE_OVER_BATCH_SIZE));
  output(s, "squared_scalar", weir_loss_mean_squared(s, labels, x, .weights = scalar));
  output(s, "squared_nothing",
         weir_loss_mean_squared(s, labels, x, .weights = weir_const_float(s, 0)));
  output(s, "absolute", weir_loss_absolute(s, labels, x));
  output(s, "huber", weir_loss_huber(s, labels, x));
  output(s, "huber_delta", weir_loss_huber(s, labels, x, .delta = WEIR_SET(0.25f)));
  output(s, "hinge", weir_loss_hinge(s, labels, x));
  output(s, "log", weir_loss_log(s, labels, weir_sigmoid(s, x), .weights = weights));
  output(s, "log_epsilon",
         weir_loss_log(s, labels, weir_sigmoid(s, x), .epsilon = WEIR_SET(0.01f)));
  output(s, "cosine", weir_loss_cosine_distance(s, labels, x));
}

// ---- sampled losses ----

static void sampled(weir_scope_t* s, bool is_nce, bool is_split, int num_true,
                    weir_opt_bool_t remove) {
  weir_edge_t x = INPUT(s, "x", FLOAT, -1, 4), labels = INPUT(s, "labels", INT64, -1, num_true);
  weir_edge_t w[2], b[2];
  w[0] = table(s, "t0", is_split ? 10 : 20, 4, 1);
  w[1] = is_split ? table(s, "t1", 10, 4, 2) : w[0];
  b[0] = weir_variable(s, "b0",
                       weir_init_edge(s, weir_init_normal(0, 1, 3), WEIR_DTYPE_FLOAT,
                                      WEIR_SHAPE(is_split ? 10 : 20)));
  b[1] = b[0];
  if (is_split)
    b[1] = weir_variable(
        s, "b1", weir_init_edge(s, weir_init_normal(0, 1, 4), WEIR_DTYPE_FLOAT, WEIR_SHAPE(10)));
  weir_tables_t weights = {w, is_split ? 2 : 1}, biases = {b, is_split ? 2 : 1};
  weir_edge_t loss =
      is_nce ? weir_nce_loss(s, weights, biases, labels, x, 6, 20, .num_true = num_true, .seed = 9,
                             .remove_hits = remove)
             : weir_sampled_softmax_loss(s, weights, biases, labels, x, 6, 20, .num_true = num_true,
                                         .seed = 9, .partition = WEIR_PARTITION_DIV,
                                         .remove_hits = remove);
  output(s, "y", loss);
}
static void sampled_softmax(weir_scope_t* s) { sampled(s, false, false, 1, (weir_opt_bool_t){0}); }
static void sampled_softmax_split(weir_scope_t* s) {
  sampled(s, false, true, 2, (weir_opt_bool_t)WEIR_SET(false));
}
static void nce(weir_scope_t* s) { sampled(s, true, false, 1, (weir_opt_bool_t){0}); }
static void nce_split(weir_scope_t* s) {
  sampled(s, true, true, 2, (weir_opt_bool_t)WEIR_SET(true));
}

// ---- metrics ----

static void metric(weir_scope_t* s, const char* name, weir_metric_t metric) {
  char text[64];
  weir_node_t* nodes[] = {metric.reset};
  snprintf(text, sizeof(text), "%s_value", name);
  output(s, text, metric.value);
  snprintf(text, sizeof(text), "%s_updated", name);
  output(s, text, metric.updated);
  snprintf(text, sizeof(text), "%s_reset", name);
  weir_group(s, text, nodes, 1);
}

static void metrics(weir_scope_t* s) {
  weir_edge_t p = INPUT(s, "p", FLOAT, -1), q = INPUT(s, "q", FLOAT, -1);
  weir_edge_t labels = INPUT(s, "labels", INT32, -1), guesses = INPUT(s, "guesses", INT32, -1);
  weir_edge_t classes = INPUT(s, "classes", INT32, -1), scores = INPUT(s, "scores", FLOAT, -1, 6);
  weir_edge_t w = INPUT(s, "w", FLOAT, -1);
  metric(s, "mean", weir_metric_mean(s, p));
  metric(s, "mean_weighted", weir_metric_mean(s, p, .weights = w));
  metric(s, "accuracy", weir_metric_accuracy(s, labels, guesses));
  metric(s, "accuracy_weighted",
         weir_metric_accuracy(s, labels, guesses, .weights = w, .name = "acc"));
  metric(s, "top_3", weir_metric_top_k_accuracy(s, classes, scores, 3));
  metric(s, "squared", weir_metric_mean_squared_error(s, q, p, .weights = w));
  metric(s, "root", weir_metric_root_mean_squared_error(s, q, p));
  metric(s, "absolute", weir_metric_mean_absolute_error(s, q, p));
  metric(s, "precision", weir_metric_precision(s, labels, guesses));
  metric(s, "precision_weighted", weir_metric_precision(s, labels, guesses, .weights = w));
  metric(s, "recall", weir_metric_recall(s, labels, guesses));
  metric(s, "recall_weighted", weir_metric_recall(s, labels, guesses, .weights = w));
  metric(s, "auc", weir_metric_auc(s, labels, p));
  metric(s, "auc_weighted", weir_metric_auc(s, labels, p, .weights = w, .threshold_count = 33));
  metric(s, "auc_pr", weir_metric_auc(s, labels, p, .curve = WEIR_AUC_PR));
  metric(s, "auc_pr_careful",
         weir_metric_auc(s, labels, p, .curve = WEIR_AUC_PR, .sum = WEIR_AUC_INTERPOLATED));
  metric(s, "auc_minoring", weir_metric_auc(s, labels, p, .sum = WEIR_AUC_MINORING));
  metric(s, "auc_majoring", weir_metric_auc(s, labels, p, .sum = WEIR_AUC_MAJORING));
}

// ---- all of them ----

#define CASE(name) \
  { #name, name }
static const struct {
  const char* name;
  void (*build)(weir_scope_t* s);
} cases[] = {
    CASE(initializers),
    CASE(dense),
    CASE(dense_deep),
    CASE(dense_shared),
    CASE(flatten),
    CASE(regularized),
    CASE(conv1d),
    CASE(conv2d),
    CASE(conv2d_options),
    CASE(conv3d),
    CASE(conv2d_transpose),
    CASE(conv2d_transpose_same),
    CASE(depthwise_conv2d),
    CASE(separable_conv2d),
    CASE(max_pool2d),
    CASE(average_pool2d),
    CASE(max_pool1d),
    CASE(average_pool1d),
    CASE(global_average_pool),
    CASE(global_max_pool),
    CASE(batch_norm_training),
    CASE(batch_norm_inference),
    CASE(batch_norm_fed),
    CASE(batch_norm_vectors),
    CASE(batch_norm_bare),
    CASE(batch_norm_half),
    CASE(layer_norm),
    CASE(dropout),
    CASE(dropout_fed),
    CASE(embedding),
    CASE(embedding_max_norm),
    CASE(embedding_mod),
    CASE(embedding_div),
    CASE(sparse_mean),
    CASE(sparse_sum),
    CASE(sparse_sqrtn),
    CASE(sparse_mean_weighted),
    CASE(sparse_sum_weighted),
    CASE(sparse_sqrtn_weighted),
    CASE(losses),
    CASE(sampled_softmax),
    CASE(sampled_softmax_split),
    CASE(nce),
    CASE(nce_split),
    CASE(metrics),
};

static weir_status_t* write_graph(weir_graph_t* graph, const char* folder, const char* name) {
  char path[4096], *data = NULL;
  size_t size = 0;
  WEIR_TRY(weir_graph_to_def(graph, &data, &size));
  snprintf(path, sizeof(path), "%s/%s.pb", folder, name);
  FILE* file = fopen(path, "wb");
  bool is_written = file && fwrite(data, 1, size, file) == size;
  if (file && fclose(file)) is_written = false;
  weir_buffer_free(data);
  return is_written ? NULL : WEIR_STATUS(UNKNOWN, "cannot write '%s'", path);
}

// Adds "all_updates", what layers want run with each step, and "start", which sets all variables.
static void add_targets(weir_scope_t* s) {
  const weir_edge_t* updates = NULL;
  weir_node_t* nodes[16];
  const int count = weir_scope_collected(s, WEIR_UPDATES, &updates);
  for (int i = 0; i < count && i < COUNT_OF(nodes); ++i) nodes[i] = updates[i].node;
  if (count) weir_group(s, "all_updates", nodes, count);
  nodes[0] = weir_initializer(s);
  weir_group(s, "start", nodes, 1);
}

int main(int argc, char** argv) {
  if (argc != 2) return fputs("usage: cases FOLDER\n", stderr), 2;
  bool is_failed = false;
  for (int i = 0; i < COUNT_OF(cases); ++i) {
    weir_graph_t* graph = NULL;
    if (weir_status_report(weir_graph_create(&graph))) return 1;
    weir_scope_t* s = weir_scope_create(graph);
    weir_placeholder(weir_scope_name(s, "dy"), WEIR_DTYPE_FLOAT);  // for gradients
    cases[i].build(s);
    add_targets(s);
    weir_status_t* status = weir_status_prefix(weir_scope_finish(s), "%s: ", cases[i].name);
    if (!status) status = write_graph(graph, argv[1], cases[i].name);
    is_failed |= weir_status_report(status);
    weir_graph_release(graph);
  }
  return is_failed;
}

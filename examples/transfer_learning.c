// transfer_learning.c — What was learnt on the digits 0 to 4 helps to tell 5 to 9 apart from a few
// examples: a checkpoint of one model, restored in part into another, and frozen there.
#include <weir/weir.h>

#include "support.h"

enum { CLASSES = 5, BATCH = 100, FEW = 50, HEAD_STEPS = 200 };

typedef struct model_t {
  weir_graph_t* graph;
  weir_session_t* session;
  weir_edge_t images, labels, loss, accuracy;
  weir_saver_t* saver;  // of the trunk
  weir_node_t *init, *step;
} model_t;

// What recognises strokes, whatever they are part of.
static weir_edge_t trunk(weir_scope_t* s, weir_edge_t x) {
  x = weir_layer_conv2d(s, x, 16, 5, .activation = weir_op_relu);
  x = weir_layer_conv2d(s, weir_layer_max_pool2d(s, x, 2), 32, 5, .activation = weir_op_relu);
  return weir_layer_flatten(s, weir_layer_max_pool2d(s, x, 2));
}

// With |is_frozen| only the head, which scores the classes, is trained.
static model_t build(bool is_frozen) {
  model_t m = {0};
  check(weir_graph_create(&m.graph));
  weir_scope_t* s = weir_scope_create(m.graph);
  weir_scope_seed(s, 1);
  m.images = weir_placeholder(s, WEIR_DTYPE_UINT8, .shape = WEIR_SHAPE(-1, 28, 28));
  m.labels = weir_placeholder(s, WEIR_DTYPE_INT32, .shape = WEIR_SHAPE(-1));
  weir_edge_t x = weir_cast(s, m.images, WEIR_DTYPE_FLOAT);
  x = weir_expand_dims(s, weir_mul(s, x, weir_const_float(s, 1.0f / 255)), weir_const_int(s, 3));
  x = trunk(weir_scope_in(s, "trunk"), x);
  m.saver = weir_saver_create(s);  // all variables there are so far
  const int trunk_count = weir_scope_variable_count(s);
  weir_edge_t scores = weir_layer_dense(s, x, CLASSES, .name = "head"), head[2];
  for (int i = 0; i < 2; ++i) head[i] = weir_scope_variable_at(s, trunk_count + i).value;

  weir_edge_t is_right = weir_in_top_k(s, scores, m.labels, 1);
  m.accuracy = weir_mean(s, weir_cast(s, is_right, WEIR_DTYPE_FLOAT), weir_const_int(s, 0));
  m.loss = weir_loss_sparse_softmax_cross_entropy(s, m.labels, scores);
  weir_optimizer_t adam = weir_adam(0.002f);
  m.step = is_frozen ? weir_minimize(s, &adam, m.loss, .variables = head, .variable_count = 2)
                     : weir_minimize(s, &adam, m.loss);
  m.init = weir_initializer(s);
  check(weir_scope_finish(s));
  check(weir_session_create(m.graph, NULL, &m.session));
  check(weir_session_run_target(m.session, m.init));
  return m;
}

static void destroy(model_t m) {
  weir_saver_destroy(m.saver);
  weir_session_destroy(m.session);
  weir_graph_release(m.graph);
}

// Images of digits |first| to |first| + 4, at most |most|, as a batcher of |batch| each. Their
// labels count from 0.
static weir_batcher_t* select_digits(const data_t* d, int first, int most, int batch) {
  weir_tensor_t* columns[2];
  weir_batcher_t* data = NULL;
  const uint8_t *images = weir_tensor_data(d->images), *digits = weir_tensor_data(d->labels);
  check(weir_tensor_create(WEIR_DTYPE_UINT8, WEIR_DIMS(most, 28, 28), &columns[0]));
  check(weir_tensor_create(WEIR_DTYPE_INT32, WEIR_DIMS(most), &columns[1]));
  int count = 0;
  for (int i = 0; i < d->count && count < most; ++i) {
    if (digits[i] < first || digits[i] >= first + CLASSES) continue;
    memcpy((uint8_t*)weir_tensor_data(columns[0]) + 784 * count, images + 784 * i, 784);
    ((int32_t*)weir_tensor_data(columns[1]))[count++] = digits[i] - first;
  }
  for (int i = 0; i < 2; ++i) {
    weir_tensor_t* all = columns[i];
    check(weir_tensor_slice(all, 0, count, &columns[i]));
    weir_tensor_release(all);
  }
  check(weir_batcher_create(columns, 2, &data, .batch_size = batch, .seed = 1));
  for (int i = 0; i < 2; ++i) weir_tensor_release(columns[i]);
  return data;
}

static void train(const model_t* m, weir_batcher_t* data, int steps) {
  weir_edge_t inputs[] = {m->images, m->labels};
  check(weir_fit(m->session, m->step, m->loss, NULL, .max_steps = steps, .data = data,
                 .inputs = inputs, .is_quiet = true));
}

static float test(const model_t* m, weir_batcher_t* data) {
  weir_tensor_t *batch[2], *result = NULL;
  check(weir_batcher_next(data, batch));
  weir_step_spec_t spec = {WEIR_FEEDS({m->images, batch[0]}, {m->labels, batch[1]}),
                           WEIR_FETCHES(m->accuracy)};
  check(weir_session_run(m->session, &spec, &result));
  for (int i = 0; i < 2; ++i) weir_tensor_release(batch[i]);
  return 100 * float_of(result);
}

int main(int argc, char** argv) {
  const int steps = steps_option(argc, argv, 400);
  data_t all = load("data/mnist", "train-images-idx3-ubyte", "train-labels-idx1-ubyte");
  data_t others = load("data/mnist", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte");
  weir_batcher_t* low = select_digits(&all, 0, all.count, BATCH);
  weir_batcher_t* low_test = select_digits(&others, 0, 2000, 2000);
  weir_batcher_t* few = select_digits(&all, 5, FEW, FEW);
  weir_batcher_t* high_test = select_digits(&others, 5, 2000, 2000);

  model_t first = build(false);
  train(&first, low, steps);
  printf("digits 0 to 4, learnt from all examples: %.2f %% right\n", test(&first, low_test));
  char* path = NULL;
  check(weir_saver_save(first.saver, first.session, "runs/transfer/trunk.ckpt", steps, &path));
  destroy(first);

  model_t alone = build(false);
  train(&alone, few, HEAD_STEPS);
  printf("digits 5 to 9, learnt from %d examples: %.2f %%\n", FEW, test(&alone, high_test));
  destroy(alone);

  model_t second = build(true);
  check(weir_saver_restore(second.saver, second.session, path));
  train(&second, few, HEAD_STEPS);
  printf("the same with the trunk of the first model: %.2f %%\n", test(&second, high_test));
  destroy(second);

  weir_buffer_free(path);
  weir_batcher_t* sets[] = {low, low_test, few, high_test};
  for (int i = 0; i < 4; ++i) weir_batcher_destroy(sets[i]);
  unload(all);
  unload(others);
  return 0;
}

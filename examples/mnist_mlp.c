// mnist_mlp.c — A perceptron with two hidden layers reads handwritten digits: layers with dropout,
// a batcher, a learning rate by schedule, and the library's training loop.
#include <weir/weir.h>

#include "support.h"

enum { BATCH = 100 };

typedef struct model_t {
  weir_edge_t inputs[2];  // to feed: images and labels
  weir_edge_t training;   // to feed when testing: false
  weir_edge_t loss, accuracy;
  weir_node_t *init, *step;
} model_t;

static model_t build(weir_graph_t* graph, int steps) {
  model_t m = {0};
  weir_scope_t* s = weir_scope_create(graph);
  weir_scope_seed(s, 1);
  m.inputs[0] = weir_placeholder(s, WEIR_DTYPE_UINT8, .shape = WEIR_SHAPE(-1, 28, 28));
  m.inputs[1] = weir_placeholder(s, WEIR_DTYPE_UINT8, .shape = WEIR_SHAPE(-1));
  m.training = weir_placeholder_with_default(s, weir_const_bool(s, true), WEIR_SCALAR_SHAPE);
  weir_edge_t labels = weir_cast(s, m.inputs[1], WEIR_DTYPE_INT32);

  weir_edge_t x = weir_layer_flatten(s, weir_cast(s, m.inputs[0], WEIR_DTYPE_FLOAT));
  x = weir_mul(s, x, weir_const_float(s, 1.0f / 255));
  x = weir_layer_dense(s, x, 256, .activation = weir_op_relu);
  x = weir_layer_dropout(s, x, 0.2f, .training = m.training);
  x = weir_layer_dense(s, x, 128, .activation = weir_op_relu);
  weir_edge_t scores = weir_layer_dense(s, x, 10);

  weir_edge_t is_right = weir_in_top_k(s, scores, labels, 1);
  m.accuracy = weir_mean(s, weir_cast(s, is_right, WEIR_DTYPE_FLOAT), weir_const_int(s, 0));
  m.loss = weir_loss_sparse_softmax_cross_entropy(s, labels, scores);
  weir_edge_t step = weir_global_step(s);
  weir_optimizer_t adam = weir_adam(weir_cosine_decay(s, 0.002f, step, (float)steps));
  m.step = weir_minimize(s, &adam, m.loss, .global_step = step);
  m.init = weir_initializer(s);
  check(weir_scope_finish(s));
  return m;
}

static float test(weir_session_t* session, const model_t* m, const data_t* d) {
  weir_tensor_t *training = tensor_of(WEIR_DTYPE_BOOL, 0, NULL, &(bool){false}), *result = NULL;
  weir_step_spec_t spec = {
      WEIR_FEEDS({m->inputs[0], d->images}, {m->inputs[1], d->labels}, {m->training, training}),
      WEIR_FETCHES(m->accuracy)};
  check(weir_session_run(session, &spec, &result));
  weir_tensor_release(training);
  return float_of(result);
}

int main(int argc, char** argv) {
  const int steps = steps_option(argc, argv, 6000);  // 10 epochs
  data_t digits = load("data/mnist", "train-images-idx3-ubyte", "train-labels-idx1-ubyte");
  data_t others = load("data/mnist", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte");
  weir_tensor_t* columns[] = {digits.images, digits.labels};
  weir_graph_t* graph = NULL;
  weir_session_t* session = NULL;
  weir_batcher_t* data = NULL;
  check(weir_batcher_create(columns, 2, &data, .batch_size = BATCH, .seed = 1));
  check(weir_graph_create(&graph));
  model_t m = build(graph, steps);
  check(weir_session_create(graph, NULL, &session));
  check(weir_fit(session, m.step, m.loss, NULL, .max_steps = steps, .init = m.init, .data = data,
                 .inputs = m.inputs, .item_name = "images"));
  printf("%.2f %% of %d test images right\n", 100 * test(session, &m, &others), others.count);
  weir_session_destroy(session);
  weir_graph_release(graph);
  weir_batcher_destroy(data);
  unload(digits);
  unload(others);
  return 0;
}

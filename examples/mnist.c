// mnist.c — Trains a convolutional network to read handwritten digits.
#include <math.h>
#include <string.h>
#include <weir/weir.h>

#include "support.h"

enum { BATCH = 100, EPOCHS = 4 };

// ---- the network ----

typedef struct model_t {
  weir_edge_t images, labels;  // to feed: a data set,
  weir_edge_t batch, rate;     // which rows of it to use, and how fast to learn
  weir_edge_t loss, accuracy;
  weir_node_t *init, *step;
} model_t;

// Scores for each of the ten digits. Weights start as normal numbers scaled so that a layer keeps
// the variance of what passes through it (He et al.), from fixed seeds.
static weir_edge_t network(weir_scope_t* s, weir_edge_t x) {
  x = weir_layer_conv2d(s, x, 32, 5, .activation = weir_op_relu,
                        .kernel_init = weir_init_he_normal(1));
  x = weir_layer_max_pool2d(s, x, 2);
  x = weir_layer_conv2d(s, x, 64, 5, .activation = weir_op_relu,
                        .kernel_init = weir_init_he_normal(2));
  x = weir_layer_flatten(s, weir_layer_max_pool2d(s, x, 2));
  x = weir_layer_dense(s, x, 512, .activation = weir_op_relu,
                       .kernel_init = weir_init_he_normal(3));
  return weir_layer_dense(s, x, 10, .kernel_init = weir_init_he_normal(4));
}

static model_t build(weir_graph_t* graph) {
  model_t m = {0};
  weir_scope_t* s = weir_scope_create(graph);
  m.images = weir_placeholder(s, WEIR_DTYPE_UINT8, .shape = WEIR_SHAPE(-1, 28, 28));
  m.labels = weir_placeholder(s, WEIR_DTYPE_UINT8, .shape = WEIR_SHAPE(-1));
  m.batch = weir_placeholder(s, WEIR_DTYPE_INT32, .shape = WEIR_SHAPE(-1));
  m.rate = weir_placeholder(s, WEIR_DTYPE_FLOAT, .shape = WEIR_SCALAR_SHAPE);
  weir_edge_t axis = weir_const_int(s, 0);
  weir_edge_t digits = weir_cast(s, weir_gather_v2(s, m.labels, m.batch, axis), WEIR_DTYPE_INT32);
  weir_edge_t x = weir_cast(s, weir_gather_v2(s, m.images, m.batch, axis), WEIR_DTYPE_FLOAT);
  x = weir_mul(s, x, weir_const_float(s, 1.0f / 255));
  x = weir_reshape(s, x, weir_const_ints(s, (const int[]){-1, 28, 28, 1}, 4));
  weir_edge_t scores = network(s, x);
  weir_edge_t is_right = weir_in_top_k(s, scores, digits, 1);
  m.loss = weir_loss_sparse_softmax_cross_entropy(s, digits, scores);
  m.accuracy = weir_mean(s, weir_cast(s, is_right, WEIR_DTYPE_FLOAT), axis);
  m.step = weir_train_adam_with(s, m.loss, m.rate);
  m.init = weir_initializer(s);
  check(weir_scope_finish(s));  // the first error of all of the above
  return m;
}

// ---- training ----

// With a rate, takes a training step and returns the loss; with rate 0, returns the accuracy.
static float run(weir_session_t* session, const model_t* m, const data_t* d, int at, int count,
                 float rate) {
  weir_tensor_t *batch = NULL, *step_size = NULL, *result = NULL;
  check(weir_tensor_slice(d->order, at, at + count, &batch));
  check(weir_tensor_create_from(WEIR_DTYPE_FLOAT, 0, NULL, &rate, &step_size));
  weir_step_spec_t spec = {WEIR_FEEDS({m->images, d->images}, {m->labels, d->labels},
                                      {m->batch, batch}, {m->rate, step_size}),
                           WEIR_FETCHES(rate > 0 ? m->loss : m->accuracy), .targets = &m->step,
                           .target_count = rate > 0};
  check(weir_session_run(session, &spec, &result));
  float value = *(float*)weir_tensor_data(result);
  weir_tensor_release(batch);
  weir_tensor_release(step_size);
  weir_tensor_release(result);
  return value;
}

static void train(weir_session_t* session, const model_t* m, const data_t* d, int steps,
                  weir_events_t* events) {
  const double start = now();
  for (int step = 0; step < steps; ++step) {
    const int at = step * BATCH % d->count;
    if (at == 0) shuffle(weir_tensor_data(d->order), d->count);
    float rate = 5e-4f * (1 + cosf(3.14159265f * (float)step / (float)steps));  // 0.001 … 0
    float loss = run(session, m, d, at, BATCH, rate);
    check(weir_events_scalar(events, "loss", loss, step + 1));
    show_progress(step + 1, steps, BATCH, loss, now() - start);
  }
}

static float evaluate(weir_session_t* session, const model_t* m, const data_t* d) {
  const int count = 1000;
  float sum = 0;
  for (int at = 0; at + count <= d->count; at += count) sum += run(session, m, d, at, count, 0);
  return sum * (float)count / (float)d->count;
}

int main(int argc, char** argv) {
  const char *source = "data/mnist", *directory = "runs/mnist";
  int steps = EPOCHS * 60000 / BATCH;
  weir_session_options_t options = {0};
  bool is_checked = true;
  char devices[64];
  for (int i = 1; i < argc; ++i) {
    if (!strncmp(argv[i], "--data=", 7)) source = argv[i] + 7;
    else if (!strncmp(argv[i], "--device=", 9))
      options.devices = devices_option(argv[i] + 9, devices);
    else if (!strncmp(argv[i], "--steps=", 8)) steps = (int)strtol(argv[i] + 8, NULL, 10);
    else if (!strncmp(argv[i], "--amp=", 6)) options.mixed_precision = argv[i] + 6;
    else if (!strcmp(argv[i], "--no-check")) is_checked = false;
    else if (argv[i][0] != '-') directory = argv[i];
    else
      return fputs(
                 "usage: mnist [--data=DIR] [--device=cuda:0] [--amp=bf16|half] [--steps=N] "
                 "[--no-check] [DIR]\n",
                 stderr),
             2;
  }
  data_t training = load(source, "train-images-idx3-ubyte", "train-labels-idx1-ubyte");
  data_t test = load(source, "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte");
  weir_graph_t* graph = NULL;
  weir_session_t* session = NULL;
  weir_events_t* events = NULL;
  check(weir_graph_create(&graph));
  model_t model = build(graph);
  check(weir_session_create(graph, &options, &session));
  check(weir_events_create(directory, &events));
  check(weir_events_graph(events, graph));
  check(weir_session_run_target(session, model.init));
  train(session, &model, &training, steps, events);
  float accuracy = evaluate(session, &model, &test);
  check(weir_events_scalar(events, "accuracy", accuracy, steps));
  check(weir_events_close(events));
  char prefix[4096];
  snprintf(prefix, sizeof(prefix), "%s/model.ckpt-%d", directory, steps);
  check(weir_checkpoint_save(session, prefix));
  printf("%.2f %% of %d test images right; checkpoint %s\n", 100 * accuracy, test.count, prefix);
  weir_session_destroy(session);
  weir_graph_release(graph);
  unload(training);
  unload(test);
  return is_checked && accuracy < 0.99f;
}

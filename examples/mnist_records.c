// mnist_records.c — A small convolutional network reads handwritten digits out of TFRecord files: a
// dataset that shuffles, parses and shifts images on several threads, ahead of the training steps.
#include <sys/stat.h>
#include <weir/weir.h>

#include "support.h"

enum { BATCH = 64, FILES = 4, SIDE = 28, SHIFT = 2 };
static const char* const folder = "runs/mnist_records";

// ---- files: Examples with an image's bytes and its label, written once ----

static void path_of(const char* set, int number, char path[256]) {
  snprintf(path, 256, "%s/%s-%d.tfrecord", folder, set, number);
}

static void write_file(const data_t* d, const char* set, int number) {
  const uint8_t *images = weir_tensor_data(d->images), *labels = weir_tensor_data(d->labels);
  char path[256], part[300];
  weir_record_writer_t* writer = NULL;
  weir_example_t* example = NULL;
  path_of(set, number, path);
  snprintf(part, sizeof(part), "%s.part", path);
  check(weir_record_writer_create(part, &writer));
  check(weir_example_create(&example));
  for (int i = number; i < d->count; i += FILES) {
    weir_example_clear(example);
    weir_example_bytes(example, "image", images + (size_t)i * SIDE * SIDE, SIDE * SIDE);
    weir_example_ints(example, "label", &(int64_t){labels[i]}, 1);
    check(weir_example_write(example, writer));
  }
  weir_example_destroy(example);
  check(weir_record_writer_close(writer));
  if (rename(part, path)) check(WEIR_STATUS(INTERNAL, "cannot write %s", path));
}

static void write_records(const char* set, const char* images, const char* labels) {
  char last[256];
  path_of(set, FILES - 1, last);
  if (!access(last, R_OK)) return;
  mkdir("runs", 0777);
  mkdir(folder, 0777);
  data_t digits = load("data/mnist", images, labels);
  for (int i = 0; i < FILES; ++i) write_file(&digits, set, i);
  unload(digits);
}

// ---- the pipeline ----

// An element: a string that is an Example. Results: [28, 28, 1] floats in [0, 1], and the label.
static void parse(weir_scope_t* s, const weir_edge_t* element, weir_edge_t* results, void* user) {
  const weir_dense_feature_t features[] = {{.name = "image", .dtype = WEIR_DTYPE_STRING},
                                           {.name = "label", .dtype = WEIR_DTYPE_INT64}};
  weir_edge_t values[2];
  (void)user;
  weir_parse_dense(s, element[0], features, 2, values);
  weir_edge_t bytes = weir_decode_raw(s, values[0], WEIR_DTYPE_UINT8);
  weir_edge_t image = weir_reshape(s, bytes, weir_const_ints(s, (const int[]){SIDE, SIDE, 1}, 3));
  results[0] = weir_mul(s, weir_cast(s, image, WEIR_DTYPE_FLOAT), weir_const_float(s, 1.0f / 255));
  results[1] = weir_cast(s, values[1], WEIR_DTYPE_INT32);
}

// The same image, up to SHIFT pixels aside: a random part of one with a black margin.
static void shift(weir_scope_t* s, const weir_edge_t* element, weir_edge_t* results, void* user) {
  weir_edge_t margin =
      weir_reshape(s, weir_const_ints(s, (const int[]){SHIFT, SHIFT, SHIFT, SHIFT, 0, 0}, 6),
                   weir_const_ints(s, (const int[]){3, 2}, 2));
  weir_edge_t place =
      weir_random_uniform_int(s, weir_const_ints(s, (const int[]){2}, 1), weir_const_int(s, 0),
                              weir_const_int(s, 2 * SHIFT + 1), .seed = 3);
  weir_edge_t parts[] = {place, weir_const_ints(s, (const int[]){0}, 1)};
  weir_edge_t begin = weir_concat_v2(s, parts, 2, weir_const_int(s, 0));
  (void)user;
  results[0] = weir_slice(s, weir_pad(s, element[0], margin), begin,
                          weir_const_ints(s, (const int[]){SIDE, SIDE, 1}, 3));
  results[1] = element[1];
}

static weir_dataset_t records_of(weir_scope_t* s, const weir_edge_t* element, void* user) {
  (void)user;
  return weir_dataset_records(s, element[0]);
}

static weir_dataset_t pipeline(weir_scope_t* s, const char* set, bool is_training) {
  char pattern[256];
  snprintf(pattern, sizeof(pattern), "%s/%s-*.tfrecord", folder, set);
  weir_dataset_t d = weir_dataset_files(s, weir_const_string(s, pattern), .seed = 1);
  d = weir_dataset_interleave(s, d, records_of, NULL, .cycle_length = FILES);
  if (is_training) d = weir_dataset_repeat(s, weir_dataset_shuffle(s, d, 4096, .seed = 2), -1);
  d = weir_dataset_map(s, d, parse, NULL, 2, .parallel = WEIR_AUTOTUNE);
  if (is_training) d = weir_dataset_map(s, d, shift, NULL, 2, .parallel = WEIR_AUTOTUNE);
  return weir_dataset_prefetch(s, weir_dataset_batch(s, d, BATCH), 2);
}

// ---- the network ----

typedef struct model_t {
  weir_edge_t loss, right;                  // right: how many images of the batch were read rightly
  weir_node_t *init, *step, *train, *test;  // train, test: from now on batches are of this kind
} model_t;

static model_t build(weir_graph_t* graph, int steps) {
  model_t m = {0};
  weir_scope_t* s = weir_scope_create(graph);
  weir_scope_seed(s, 1);
  weir_dataset_iterator_t batches = weir_dataset_iterator(s, pipeline(s, "train", true));
  m.train = batches.initializer;
  m.test = weir_dataset_restart(s, batches, pipeline(s, "test", false));
  weir_edge_t batch[2];  // images and labels
  weir_dataset_get_next(s, batches, batch);

  weir_edge_t x = weir_layer_conv2d(s, batch[0], 8, 5, .activation = weir_op_relu);
  x = weir_layer_max_pool2d(s, x, 2);
  x = weir_layer_conv2d(s, x, 16, 5, .activation = weir_op_relu);
  x = weir_layer_flatten(s, weir_layer_max_pool2d(s, x, 2));
  weir_edge_t scores = weir_layer_dense(s, x, 10);

  weir_edge_t is_right = weir_cast(s, weir_in_top_k(s, scores, batch[1], 1), WEIR_DTYPE_FLOAT);
  m.right = weir_sum(s, is_right, weir_const_int(s, 0));
  m.loss = weir_loss_sparse_softmax_cross_entropy(s, batch[1], scores);
  weir_edge_t step = weir_global_step(s);
  weir_optimizer_t adam = weir_adam(weir_cosine_decay(s, 0.003f, step, (float)steps));
  m.step = weir_minimize(s, &adam, m.loss, .global_step = step);
  m.init = weir_initializer(s);
  check(weir_scope_finish(s));
  return m;
}

// Walks over the test images until they end.
static float test(weir_session_t* session, const model_t* m) {
  float right = 0, sum = 0;
  weir_status_t* status = NULL;
  check(weir_session_run_target(session, m->test));
  while (!(status = weir_session_fetch_float(session, m->right, &right))) sum += right;
  if (weir_status_code(status) != WEIR_OUT_OF_RANGE) check(status);
  weir_status_destroy(status);
  return sum;
}

int main(int argc, char** argv) {
  const int steps = steps_option(argc, argv, 3000);  // 3.2 epochs
  write_records("train", "train-images-idx3-ubyte", "train-labels-idx1-ubyte");
  write_records("test", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte");
  weir_graph_t* graph = NULL;
  weir_session_t* session = NULL;
  check(weir_graph_create(&graph));
  model_t m = build(graph, steps);
  check(weir_session_create(graph, NULL, &session));
  check(weir_fit(session, m.step, m.loss, NULL, .max_steps = steps, .init = m.init,
                 .start = m.train));
  printf("%.2f %% of 10000 test images right\n", test(session, &m) / 100);
  weir_session_destroy(session);
  weir_graph_release(graph);
  return 0;
}

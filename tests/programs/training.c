// training.c — Writes what training writes, for training_test.py to read with TensorFlow:
// checkpoints of a saver, summaries, records. And reads TensorFlow's.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/weir.h>

static void check(weir_status_t* status) {
  if (weir_status_report(status)) exit(1);
}

// ---- variables of many types, and a saver for them ----

typedef struct model_t {
  weir_graph_t* graph;
  weir_session_t* session;
  weir_saver_t* saver;
  weir_node_t* init;
} model_t;

static void add_variable(weir_scope_t* s, const char* name, weir_dtype_t dtype, int rank,
                         const int64_t* dims, const void* data) {
  weir_tensor_t* tensor = NULL;
  check(weir_tensor_create_from(dtype, rank, dims, data, &tensor));
  weir_variable(s, name, weir_const(s, tensor));
  weir_tensor_release(tensor);
}

// |target|: a server that runs the steps; NULL: this process.
static model_t build(bool is_sharded, const char* target) {
  model_t m = {0};
  check(weir_graph_create(&m.graph));
  weir_scope_t* s = weir_scope_create(m.graph);
  weir_scope_t* layer = weir_scope_in(s, "layer");
  const float kernel[] = {0.1f, -0.0f, 1e-40f, 3e38f, -7.25f, 1.0f / 3};
  const double bias[] = {0.1, -1e300};
  const int64_t steps = INT64_C(1) << 40;
  const int32_t table[] = {-1, 0, 7};
  const bool flags[] = {true, false};
  add_variable(layer, "kernel", WEIR_DTYPE_FLOAT, WEIR_DIMS(2, 3), kernel);
  add_variable(layer, "bias", WEIR_DTYPE_DOUBLE, WEIR_DIMS(2), bias);
  add_variable(s, "global_step", WEIR_DTYPE_INT64, 0, NULL, &steps);
  add_variable(s, "table", WEIR_DTYPE_INT32, WEIR_DIMS(3), table);
  add_variable(s, "flags", WEIR_DTYPE_BOOL, WEIR_DIMS(2), flags);
  m.init = weir_initializer(s);
  m.saver = weir_saver_create(s, .is_sharded = is_sharded, .max_to_keep = 2);
  check(weir_scope_finish(s));
  weir_session_options_t options = {.target = target};
  check(weir_session_create(m.graph, &options, &m.session));
  return m;
}

static void close_model(model_t m) {
  weir_saver_destroy(m.saver);
  weir_session_destroy(m.session);
  weir_graph_release(m.graph);
}

// Saves steps 1, 2, 3, and the graph.
static int save(const char* directory, bool is_sharded, const char* target) {
  char path[4096];
  char* def = NULL;
  size_t size = 0;
  model_t m = build(is_sharded, target);
  check(weir_session_run_target(m.session, m.init));
  snprintf(path, sizeof(path), "%s/model.ckpt", directory);
  for (int step = 1; step <= 3; ++step)
    check(weir_saver_save(m.saver, m.session, path, step, NULL));
  snprintf(path, sizeof(path), "%s/graph.pb", directory);
  check(weir_graph_to_def(m.graph, &def, &size));
  FILE* file = fopen(path, "wb");
  if (!file || fwrite(def, 1, size, file) != size || fclose(file)) return 1;
  weir_buffer_free(def);
  close_model(m);
  return 0;
}

// Saves steps 1 to 5 with a metric, in the background, in two runs.
static int save_best(const char* directory) {
  const double metrics[] = {0.5, 0.9, 0.7, 0.2, 0.1};
  char path[4096];
  model_t m = build(false, NULL);
  check(weir_session_run_target(m.session, m.init));
  snprintf(path, sizeof(path), "%s/model.ckpt", directory);
  for (int step = 1; step <= 5; ++step) {
    if (step == 1 || step == 4) {
      weir_scope_t* s = weir_scope_create(m.graph);
      weir_saver_destroy(m.saver);
      m.saver = weir_saver_create(s, .max_to_keep = 1, .keep_best = 2, .higher_is_better = true,
                                  .keep_every_n_hours = 1);
      check(weir_scope_finish(s));
      check(weir_saver_recover(m.saver, directory));
    }
    check(weir_saver_save_with(
        m.saver, m.session, path, step,
        &(const weir_save_options_t){.metric = &metrics[step - 1], .in_background = true}, NULL));
  }
  check(weir_saver_wait(m.saver));
  close_model(m);
  return 0;
}

// Restores the latest of |from|, and saves it again in |to|.
static int copy(const char* from, const char* to) {
  char path[4096];
  char* latest = NULL;
  model_t m = build(false, NULL);
  check(weir_latest_checkpoint(from, &latest));
  if (!latest) return fputs("no checkpoint\n", stderr), 1;
  check(weir_saver_restore(m.saver, m.session, latest));
  snprintf(path, sizeof(path), "%s/copy.ckpt", to);
  check(weir_saver_save(m.saver, m.session, path, -1, NULL));
  puts(latest);
  weir_buffer_free(latest);
  close_model(m);
  return 0;
}

// ---- summaries ----

static int summarize(const char* directory) {
  weir_graph_t* graph = NULL;
  weir_session_t* session = NULL;
  weir_events_t* events = NULL;
  check(weir_graph_create(&graph));
  weir_scope_t* s = weir_scope_create(graph);
  weir_edge_t x = weir_placeholder(s, WEIR_DTYPE_FLOAT, .shape = WEIR_SCALAR_SHAPE);
  weir_edge_t row = weir_const_floats(s, WEIR_DIMS(4), (const float[]){-2, 0, 0.5f, 3});
  weir_edge_t images = weir_reshape(s, weir_tile(s, row, weir_const_ints(s, (const int[]){6}, 1)),
                                    weir_const_ints(s, (const int[]){2, 3, 4, 1}, 4));
  weir_summary_scalar(s, "train/x", x);
  weir_summary_histogram(s, "row", weir_mul(s, row, x));
  weir_summary_image(s, "pictures", images, .max_images = 2);
  weir_summary_text(s, "note", weir_const_string(s, "**hello**"));
  weir_edge_t all = weir_summary_merge_all(s);
  check(weir_scope_finish(s));
  check(weir_session_create(graph, NULL, &session));
  check(weir_events_create(directory, &events));
  for (int step = 1; step <= 3; ++step) {
    const float value = 0.5f * (float)step;
    weir_tensor_t *fed = NULL, *summary = NULL;
    check(weir_tensor_create_from(WEIR_DTYPE_FLOAT, 0, NULL, &value, &fed));
    weir_step_spec_t spec = {WEIR_FEEDS({x, fed}), WEIR_FETCHES(all)};
    check(weir_session_run(session, &spec, &summary));
    check(weir_events_add_summary(events, summary, step));
    weir_tensor_release(fed);
    weir_tensor_release(summary);
  }
  check(weir_events_close(events));
  weir_session_destroy(session);
  weir_graph_release(graph);
  return 0;
}

// ---- records ----

static int write_records(const char* path) {
  weir_record_writer_t* writer = NULL;
  weir_example_t* example = NULL;
  check(weir_record_writer_create(path, &writer));
  check(weir_example_create(&example));
  for (int i = 0; i < 3; ++i) {
    const float floats[] = {(float)i, 0.25f};
    const int64_t ints[] = {-i, INT64_C(1) << 40};
    weir_example_clear(example);
    weir_example_floats(example, "floats", floats, 2);
    weir_example_ints(example, "ints", ints, 2);
    weir_example_ints(example, "none", NULL, 0);
    weir_example_bytes(example, "bytes", "a\0b", 3);
    check(weir_example_write(example, writer));
  }
  weir_example_destroy(example);
  check(weir_record_writer_close(writer));
  return 0;
}

// Prints the sum of the feature "x" of all Examples of a file, read by a pipeline.
static int read_records(const char* path) {
  weir_graph_t* graph = NULL;
  weir_session_t* session = NULL;
  weir_coordinator_t* coordinator = NULL;
  weir_queue_runner_t runners[4];
  weir_edge_t batch, x;
  check(weir_graph_create(&graph));
  weir_scope_t* s = weir_scope_create(graph);
  weir_edge_t record =
      weir_read_records(s, weir_string_input_producer(s, &path, 1, .epochs = 1)).value;
  weir_shuffle_batch(s, &record, 1, 4, &batch, .allow_smaller_final_batch = true);
  weir_parse_dense(
      s, batch,
      (const weir_dense_feature_t[]){
          {.name = "x", .dtype = WEIR_DTYPE_FLOAT, .default_value = weir_const_float(s, 100)}},
      1, &x);
  const int count = weir_queue_runners(s, runners, 4);
  check(weir_scope_finish(s));
  check(weir_session_create(graph, NULL, &session));
  check(weir_coordinator_create(&coordinator));
  for (int i = 0; i < count; ++i) check(weir_queue_runner_start(&runners[i], session, coordinator));
  weir_step_spec_t spec = {WEIR_FETCHES(x)};
  weir_status_t* status = NULL;
  double sum = 0;
  while (!status) {
    weir_tensor_t* values = NULL;
    status = weir_session_run(session, &spec, &values);
    for (int64_t i = 0; !status && i < weir_tensor_count(values); ++i)
      sum += (double)((const float*)weir_tensor_data(values))[i];
    weir_tensor_release(values);
  }
  weir_coordinator_request_stop(coordinator, status);  // the end of the data is no error
  check(weir_coordinator_join(coordinator, -1));
  printf("%g\n", sum);
  weir_coordinator_destroy(coordinator);
  weir_session_destroy(session);
  weir_graph_release(graph);
  return 0;
}

// ---- the training loop ----

// y = w x + b by gradient descent, until it is interrupted or has taken 2,000,000 steps.
static int train(const char* directory) {
  const float xs[] = {0, 1, 2, 3}, ys[] = {2, 5, 8, 11};
  const int64_t count = 4;
  weir_graph_t* graph = NULL;
  weir_session_t* session = NULL;
  weir_batcher_t* data = NULL;
  weir_tensor_t* tensors[2] = {NULL};
  weir_fit_result_t result;
  check(weir_graph_create(&graph));
  weir_scope_t* s = weir_scope_create(graph);
  weir_edge_t x = weir_placeholder(s, WEIR_DTYPE_FLOAT, .shape = WEIR_SHAPE(-1));
  weir_edge_t y = weir_placeholder(s, WEIR_DTYPE_FLOAT, .shape = WEIR_SHAPE(-1));
  weir_edge_t w = weir_variable(s, "w", weir_const_float(s, 0));
  weir_edge_t b = weir_variable(s, "b", weir_const_float(s, 0));
  weir_edge_t loss = weir_loss_mean_squared(s, y, weir_add_v2(s, weir_mul(s, w, x), b));
  weir_node_t* step = weir_train_sgd(s, loss, 0.01f);
  weir_node_t* init = weir_initializer(s);
  weir_saver_t* saver = weir_saver_create(s);
  check(weir_scope_finish(s));
  check(weir_session_create(graph, NULL, &session));
  check(weir_tensor_create_from(WEIR_DTYPE_FLOAT, 1, &count, xs, &tensors[0]));
  check(weir_tensor_create_from(WEIR_DTYPE_FLOAT, 1, &count, ys, &tensors[1]));
  check(weir_batcher_create(tensors, 2, &data, .batch_size = 2));
  check(weir_fit(session, step, loss, &result, .max_steps = 2000000, .init = init, .data = data,
                 .inputs = (const weir_edge_t[]){x, y}, .directory = directory, .saver = saver,
                 .item_name = "points"));
  printf("%s at step %lld%s\n", result.reason == WEIR_STOP_SIGNAL ? "interrupted" : "done",
         (long long)result.step, result.is_resumed ? ", resumed" : "");
  for (int i = 0; i < 2; ++i) weir_tensor_release(tensors[i]);
  weir_batcher_destroy(data);
  weir_saver_destroy(saver);
  weir_session_destroy(session);
  weir_graph_release(graph);
  return 0;
}

int main(int argc, char** argv) {
  const char* verb = argc > 2 ? argv[1] : "";
  if (!strcmp(verb, "save")) return save(argv[2], false, argc > 3 ? argv[3] : NULL);
  if (!strcmp(verb, "save_sharded")) return save(argv[2], true, argc > 3 ? argv[3] : NULL);
  if (!strcmp(verb, "best")) return save_best(argv[2]);
  if (!strcmp(verb, "copy") && argc > 3) return copy(argv[2], argv[3]);
  if (!strcmp(verb, "summarize")) return summarize(argv[2]);
  if (!strcmp(verb, "write")) return write_records(argv[2]);
  if (!strcmp(verb, "train")) return train(argv[2]);
  if (!strcmp(verb, "read")) return read_records(argv[2]);
  return fputs(
             "usage: training save|save_sharded|best|copy|summarize|write|read|train PATH [PATH]\n",
             stderr),
         2;
}

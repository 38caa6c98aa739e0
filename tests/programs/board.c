// board.c — Trains a small model and writes all that TensorBoard shows, for tensorboard_test.py:
// usage: board DIRECTORY.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <weir/weir.h>

enum { WORDS = 8, WIDTH = 3, RATE = 8000 };

static void check(weir_status_t* status) {
  if (weir_status_report(status)) exit(1);
}

// Words on a line, learnt from their numbers: table[word] . direction = word.
typedef struct model_t {
  weir_graph_t* graph;
  weir_session_t* session;
  weir_edge_t loss, summaries;
  weir_node_t *init, *step;
  weir_saver_t* saver;
} model_t;

static model_t build(void) {
  model_t m = {0};
  check(weir_graph_create(&m.graph));
  weir_scope_t* s = weir_scope_create(m.graph);
  weir_scope_t* layer = weir_scope_in(s, "layer");
  weir_edge_t start = weir_random_standard_normal(
      s, weir_const_ints(s, (const int[]){WORDS, WIDTH}, 2), WEIR_DTYPE_FLOAT, .seed = 3);
  weir_edge_t table = weir_variable(layer, "table", start);
  weir_edge_t direction = weir_const_floats(layer, WEIR_DIMS(WIDTH, 1), (const float[]){1, 2, -1});
  weir_edge_t wanted =
      weir_const_floats(s, WEIR_DIMS(WORDS, 1), (const float[]){0, 1, 2, 3, 4, 5, 6, 7});
  m.loss = weir_loss_mean_squared(s, wanted, weir_mat_mul(layer, table, direction));
  weir_summary_scalar(s, "layer/norm", weir_l2_loss(s, table));
  weir_summary_histogram(s, "layer/table", table);
  m.summaries = weir_summary_merge_all(s);
  m.step = weir_train_sgd(s, m.loss, 0.05f);
  m.init = weir_initializer(s);
  m.saver = weir_saver_create(s);
  check(weir_scope_finish(s));
  check(weir_session_create(m.graph, NULL, &m.session));
  return m;
}

// ---- what a program writes itself ----

static void write_pictures(weir_events_t* events) {
  uint8_t pixels[2][8][8][3];
  float waves[1][RATE / 10];
  weir_tensor_t *pictures = NULL, *sounds = NULL, *values = NULL;
  for (int i = 0; i < 2 * 8 * 8 * 3; ++i) (&pixels[0][0][0][0])[i] = (uint8_t)(i * 7 % 256);
  for (int i = 0; i < RATE / 10; ++i) waves[0][i] = sinf(440 * 6.2831853f * (float)i / RATE);
  check(weir_tensor_create_from(WEIR_DTYPE_UINT8, 4, (const int64_t[]){2, 8, 8, 3}, pixels,
                                &pictures));
  check(weir_tensor_create_from(WEIR_DTYPE_FLOAT, 2, (const int64_t[]){1, RATE / 10}, waves,
                                &sounds));
  check(weir_tensor_create_from(WEIR_DTYPE_DOUBLE, 1, (const int64_t[]){4},
                                (const double[]){-1, 0, 0, 3}, &values));
  check(weir_events_images(events, "inputs", pictures, 2, 5));
  check(weir_events_sounds(events, "tone", sounds, RATE, 1, 5));
  check(weir_events_histogram(events, "errors", values, 5));
  check(weir_events_text(events, "notes", "learns **words** on a line", 5));
  weir_tensor_release(pictures);
  weir_tensor_release(sounds);
  weir_tensor_release(values);
}

// How one step runs, for the graph page.
static void write_step(const model_t* m, weir_events_t* events) {
  char* metadata = NULL;
  size_t size = 0;
  weir_step_spec_t spec = {WEIR_TARGETS(m->step)};
  const weir_run_options_t options = {.trace = true};
  check(weir_session_run_with(m->session, &spec, &options, NULL, &metadata, &size));
  check(weir_events_run_metadata(events, "step 41", metadata, size, 41));
  weir_buffer_free(metadata);
}

static void write_hparams(weir_events_t* events) {
  const weir_hparam_t hparams[] = {
      {"rate", .number = 0.05},
      {"optimizer", WEIR_HPARAM_TEXT, .text = "sgd"},
      {"shuffled", WEIR_HPARAM_BOOL, .number = 0},
  };
  check(weir_events_hparams(events, hparams, 3));
}

int main(int argc, char** argv) {
  if (argc != 2) return fputs("usage: board DIRECTORY\n", stderr), 2;
  static const char* const labels[WORDS] = {"zero", "one",  "two", "three",
                                            "four", "five", "six", "seven"};
  const weir_projected_t table = {
      .variable = "layer/table", .labels = labels, .label_count = WORDS};
  weir_events_t* events = NULL;
  model_t m = build();
  check(weir_fit(m.session, m.step, m.loss, NULL, .max_steps = 40, .init = m.init,
                 .directory = argv[1], .saver = m.saver, .summaries = m.summaries,
                 .summary_every = 10, .is_quiet = true));
  check(weir_events_create(argv[1], &events));  // further events of the same run
  write_hparams(events);
  write_pictures(events);
  write_step(&m, events);
  check(weir_projector_write(argv[1], &table, 1));
  check(weir_events_hparams_end(events, true));
  check(weir_events_close(events));
  weir_saver_destroy(m.saver);
  weir_session_destroy(m.session);
  weir_graph_release(m.graph);
  return 0;
}

// partitions.c — Trains an embedding and a classifier whose variables are in parts, and prints the
// losses as JSON. tests/partitions_test.py does the same with TensorFlow.
//
//   partitions TARGET PARTS STRATEGY LOSS OPTIMIZER LOAD SAVE
//
// TARGET: "" for this process, else a worker of a cluster with two parameter servers. PARTS: a
// number, "bytes:N", "whole", or "files:PATH", three parts of which those of the embedding lie in
// files. STRATEGY: mod or div. LOAD and SAVE: checkpoints; "" for none.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/replicas.h>
#include <weir/weir.h>

enum { STEPS = 5, BATCH = 6, ROWS = 23, WIDTH = 4, CLASSES = 11, SAMPLES = 5, PS_COUNT = 2 };

static void check(weir_status_t* status) {
  if (weir_status_report(status)) exit(1);
}

// ---- the model ----

// The same numbers as the test's.
static weir_edge_t numbers(weir_scope_t* s, weir_dims_t shape, int seed) {
  float values[ROWS * WIDTH];
  int count = 1;
  for (int i = 0; i < shape.rank; ++i) count *= (int)shape.dims[i];
  for (int i = 0; i < count; ++i)
    values[i] = (float)(((i * 37 + seed * 11 + i * i * 3) % 101) / 101.0 - 0.5);
  return weir_const_floats(s, shape.rank, shape.dims, values);
}

static const char* const on_servers[] = {"/job:ps/task:0", "/job:ps/task:1"};
static const char* const here[] = {"", ""};
static const char* const* devices = here;  // of parts in files

static weir_tables_t variable(weir_scope_t* s, const char* name, weir_dims_t shape, int seed,
                              const char* parts) {
  weir_edge_t initial = numbers(s, shape, seed);
  if (!strcmp(parts, "whole")) {
    weir_edge_t* only = weir_scope_alloc(s, 1, sizeof(*only));
    *only = weir_variable(s, name, initial);
    return (weir_tables_t){only, 1};
  }
  if (!strncmp(parts, "files:", 6) && !strcmp(name, "table"))
    return weir_partitioned_variable(s, name, (weir_init_t){0}, shape, weir_partition_fixed(3),
                                     .path = parts + 6, .devices = devices, .device_count = 2);
  if (!strncmp(parts, "files:", 6)) parts = "3";
  weir_partitioner_t how = !strncmp(parts, "bytes:", 6) ? weir_partition_by_size(atoi(parts + 6), 0)
                                                        : weir_partition_fixed(atoi(parts));
  return weir_partitioned_variable(s, name, weir_init_value(initial), shape, how);
}

static weir_edge_t loss_of(weir_scope_t* s, const char* kind, weir_edge_t x, weir_edge_t ids,
                           const char* parts, weir_partition_t strategy) {
  weir_tables_t w = variable(s, "w", WEIR_SHAPE(CLASSES, WIDTH), 2, parts);
  weir_tables_t b = variable(s, "b", WEIR_SHAPE(CLASSES), 3, parts);
  weir_edge_t classes = weir_cast(s, weir_const_int(s, CLASSES), WEIR_DTYPE_INT64);
  weir_edge_t labels = weir_floor_mod(s, ids, classes);
  weir_edge_t column = weir_expand_dims(s, labels, weir_const_int(s, 1));
  if (!strcmp(kind, "softmax")) return weir_partitioned_softmax_loss(s, w, b, labels, x, strategy);
  const bool on_parts = strstr(kind, "on_parts") != NULL;
  if (!strncmp(kind, "nce", 3))
    return weir_nce_loss(s, w, b, column, x, SAMPLES, CLASSES, .partition = strategy, .seed = 9,
                         .on_parts = on_parts);
  return weir_sampled_softmax_loss(s, w, b, column, x, SAMPLES, CLASSES, .partition = strategy,
                                   .seed = 9, .on_parts = on_parts);
}

static weir_optimizer_t optimizer_of(const char* name) {
  if (!strcmp(name, "adam")) return weir_adam(0.02f);
  if (!strcmp(name, "adagrad")) return weir_adagrad(0.3f);
  if (!strcmp(name, "momentum")) return weir_momentum(0.1f, 0.9f);
  return weir_sgd(0.5f);
}

// ---- training ----

typedef struct model_t {
  weir_graph_t* graph;
  weir_session_t* session;
  weir_edge_t ids, loss;
  weir_node_t *init, *step;
  weir_saver_t* saver;
} model_t;

static model_t open_model(char** args) {
  model_t m = {0};
  if (*args[1]) devices = on_servers;
  check(weir_graph_create(&m.graph));
  weir_scope_t* root = weir_scope_create(m.graph);
  weir_scope_t* s = weir_scope_replica(root, *args[1] ? PS_COUNT : 0, 0);
  const weir_partition_t strategy =
      strcmp(args[3], "div") ? WEIR_PARTITION_MOD : WEIR_PARTITION_DIV;
  m.ids = weir_placeholder(s, WEIR_DTYPE_INT64, .shape = WEIR_SHAPE(BATCH));
  weir_tables_t table = variable(s, "table", WEIR_SHAPE(ROWS, WIDTH), 1, args[2]);
  weir_edge_t x = weir_embedding_lookup(s, table, m.ids, .partition = strategy);
  weir_edge_t losses = loss_of(s, args[4], x, m.ids, args[2], strategy);
  m.loss = weir_mean(s, losses, weir_const_ints(s, (const int[]){0}, 1));
  weir_optimizer_t optimizer = optimizer_of(args[5]);
  m.step = weir_minimize(s, &optimizer, m.loss);
  m.init = weir_initializer(s);
  m.saver = weir_saver_create(root, .is_sharded = *args[1] != 0);
  check(weir_scope_finish(root));
  check(
      weir_session_create(m.graph, &(const weir_session_options_t){.target = args[1]}, &m.session));
  return m;
}

static float run(const model_t* m, int step) {
  int64_t ids[BATCH];
  for (int i = 0; i < BATCH; ++i) ids[i] = (step * 3 + i * i) % ROWS;
  weir_tensor_t *fed = NULL, *result = NULL;
  check(weir_tensor_create_from(WEIR_DTYPE_INT64, 1, &(int64_t){BATCH}, ids, &fed));
  weir_step_spec_t spec = {WEIR_FEEDS({m->ids, fed}), WEIR_FETCHES(m->loss), WEIR_TARGETS(m->step)};
  check(weir_session_run(m->session, &spec, &result));
  const float loss = *(float*)weir_tensor_data(result);
  weir_tensor_release(fed);
  weir_tensor_release(result);
  return loss;
}

int main(int argc, char** argv) {
  if (argc != 8)
    return fputs("usage: partitions TARGET PARTS STRATEGY LOSS OPTIMIZER LOAD SAVE\n", stderr), 2;
  model_t m = open_model(argv);
  check(weir_session_run_target(m.session, m.init));
  if (*argv[6]) check(weir_saver_restore(m.saver, m.session, argv[6]));
  printf("[");
  for (int i = 0; i < STEPS; ++i) printf("%s%.9g", i ? ", " : "", (double)run(&m, i));
  printf("]\n");
  if (*argv[7]) check(weir_saver_save(m.saver, m.session, argv[7], -1, NULL));
  weir_saver_destroy(m.saver);
  weir_session_destroy(m.session);
  weir_graph_release(m.graph);
  return 0;
}

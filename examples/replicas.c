// replicas.c — The perceptron of mnist_mlp.c trained by many processes: every worker of a cluster
// runs this program, variables are on parameter servers, and a step takes the gradients of all but
// the slowest workers. Any of them may die and be started again: with --directory, also those that
// have the variables. With --devices=cuda:2 it is one process, and the replicas are its GPUs.
#include <weir/weir.h>

#include "support.h"

enum { BATCH = 100, SAVE_EVERY = 50, PATIENCE_MS = 60000, MOST_DEVICES = 16 };

typedef struct options_t {
  const char* target;  // this worker's server; NULL: one process, no cluster
  const char*
      directory;        // of the chief's checkpoints, which the parameter servers write; NULL: none
  const char* devices;  // "cuda:2": of one process; NULL: its CPU
  int worker, workers, ps, backups, steps;
} options_t;

typedef struct model_t {
  weir_edge_t inputs[2];  // to feed: images and labels
  weir_edge_t tested[2];  // the same for |accuracy|: of several copies of the net, the last one's
  weir_edge_t loss, accuracy, missing;
  weir_sync_replicas_t sync;
  weir_node_t* init;
  weir_saver_t* saver;
} model_t;

static options_t parse(int argc, char** argv) {
  options_t o = {.workers = 1, .steps = 1000};
  const struct {
    const char* name;
    int* value;
    int least;
  } numbers[] = {{"--worker=", &o.worker, 0},
                 {"--workers=", &o.workers, 1},
                 {"--ps=", &o.ps, 0},
                 {"--backups=", &o.backups, 0},
                 {"--steps=", &o.steps, 1}};
  for (int i = 1; i < argc; ++i) {
    bool is_known = !strncmp(argv[i], "--target=", 9);
    if (is_known) o.target = argv[i] + 9;
    if (!strncmp(argv[i], "--devices=", 10)) {
      o.devices = argv[i] + 10;
      is_known = true;
    }
    if (!strncmp(argv[i], "--directory=", 12)) {
      o.directory = argv[i] + 12;
      is_known = true;
    }
    for (size_t k = 0; k < sizeof(numbers) / sizeof(*numbers) && !is_known; ++k) {
      const size_t size = strlen(numbers[k].name);
      char* end = NULL;
      if (strncmp(argv[i], numbers[k].name, size)) continue;
      const long value = strtol(argv[i] + size, &end, 10);
      is_known = end != argv[i] + size && !*end && value >= numbers[k].least && value < 1 << 30;
      *numbers[k].value = (int)value;
    }
    if (is_known && o.worker < o.workers && o.backups < o.workers) continue;
    if (is_known && i + 1 < argc) continue;  // what does not fit yet may do so later
    fprintf(stderr,
            "usage: %s [--target=grpc://HOST:PORT] [--worker=N] [--workers=N] [--ps=N] "
            "[--backups=N] [--steps=N] [--directory=DIR]\n"
            "       %s --devices=KIND:COUNT [--steps=N]\n",
            argv[0], argv[0]);
    exit(2);
  }
  return o;
}

static void add_inputs(weir_scope_t* s, model_t* m) {
  weir_scope_seed(s, 1);
  m->inputs[0] = weir_placeholder(s, WEIR_DTYPE_UINT8, .shape = WEIR_SHAPE(-1, 28, 28));
  m->inputs[1] = weir_placeholder(s, WEIR_DTYPE_UINT8, .shape = WEIR_SHAPE(-1));
}

// The loss of what |inputs| are. |arg| is the model_t.
static weir_edge_t add_net(weir_scope_t* s, const weir_edge_t* inputs, void* arg) {
  model_t* m = arg;
  m->tested[0] = inputs[0];
  m->tested[1] = inputs[1];
  weir_edge_t labels = weir_cast(s, inputs[1], WEIR_DTYPE_INT32);
  weir_edge_t x = weir_layer_flatten(s, weir_cast(s, inputs[0], WEIR_DTYPE_FLOAT));
  x = weir_mul(s, x, weir_const_float(s, 1.0f / 255));
  x = weir_layer_dense(s, x, 256, .activation = weir_op_relu);
  x = weir_layer_dense(s, x, 128, .activation = weir_op_relu);
  weir_edge_t scores = weir_layer_dense(s, x, 10);
  weir_edge_t is_right = weir_in_top_k(s, scores, labels, 1);
  m->accuracy = weir_mean(s, weir_cast(s, is_right, WEIR_DTYPE_FLOAT), weir_const_int(s, 0));
  return weir_loss_sparse_softmax_cross_entropy(s, labels, scores);
}

// The same graph in every process but for the number of its worker.
static model_t build(weir_graph_t* graph, const options_t* o) {
  model_t m = {0};
  weir_scope_t* root = weir_scope_create(graph);
  weir_scope_t* s = weir_scope_replica(root, o->ps, o->worker, .choice = WEIR_PS_BY_SIZE);
  add_inputs(s, &m);
  m.loss = add_net(s, m.inputs, &m);
  weir_optimizer_t adam =
      weir_adam(weir_cosine_decay(s, 0.002f, weir_global_step(s), (float)o->steps));
  m.sync = weir_sync_replicas(s, &adam, m.loss, o->worker, o->workers,
                              .needed = o->workers - o->backups);
  m.missing = weir_uninitialized(s);
  m.init = weir_initializer(s);
  m.saver = weir_saver_create(s, .is_sharded = true);
  check(weir_scope_finish(root));
  return m;
}

static weir_session_t* connect_to(weir_graph_t* graph, const options_t* o) {
  weir_session_t* session = NULL;
  char filters[64];  // other workers are not our concern: they may come late, or die
  snprintf(filters, sizeof(filters), "/job:ps,/job:worker/task:%d", o->worker);
  weir_session_options_t options = {.target = o->target, .device_filters = filters};
  check(weir_session_create(graph, &options, &session));
  return session;
}

// Takes steps until the chief, who takes them, too, says that it is enough.
static void train(weir_session_t* session, const model_t* m, const options_t* o) {
  data_t digits = load("data/mnist", "train-images-idx3-ubyte", "train-labels-idx1-ubyte");
  weir_batcher_t* data = NULL;
  weir_coordinator_t* coordinator = NULL;
  weir_fit_result_t result;
  const bool is_chief = o->worker == 0;
  check(weir_batcher_create(((weir_tensor_t*[]){digits.images, digits.labels}), 2, &data,
                            .batch_size = BATCH, .seed = 1 + (uint64_t)o->worker));
  check(weir_coordinator_create(&coordinator));
  if (is_chief) check(weir_sync_replicas_lead(&m->sync, session, coordinator, o->steps));
  check(weir_fit(session, m->sync.step, m->loss, &result, .init = m->init,
                 .start = is_chief ? m->sync.chief_start : m->sync.begin, .data = data,
                 .inputs = m->inputs, .item_name = "images", .uninitialized = m->missing,
                 .is_worker = !is_chief, .global_step = m->sync.global_step,
                 .saver = o->directory ? m->saver : NULL, .directory = o->directory,
                 .save_every = SAVE_EVERY));
  weir_coordinator_request_stop(coordinator, NULL);  // after Ctrl-C the chief ends it for all
  check(weir_coordinator_join(coordinator, PATIENCE_MS));
  printf("worker %d took %lld steps\n", o->worker, (long long)result.taken);
  if (result.recoveries) printf("servers were lost %d times\n", result.recoveries);
  weir_coordinator_destroy(coordinator);
  weir_batcher_destroy(data);
  unload(digits);
}

static void test(weir_session_t* session, const model_t* m) {
  data_t d = load("data/mnist", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte");
  weir_tensor_t* result = NULL;
  weir_step_spec_t spec = {WEIR_FEEDS({m->tested[0], d.images}, {m->tested[1], d.labels}),
                           WEIR_FETCHES(m->accuracy)};
  check(weir_session_run(session, &spec, &result));
  printf("%.2f %% of %d test images right\n", 100 * float_of(result), d.count);
  unload(d);
}

// ---- one process ----

// "cuda:2" as names of devices, and as what a session is asked for. Returns how many there are.
static int read_devices(const char* text, char names[MOST_DEVICES][32], char session[64]) {
  static const char* const types[][2] = {{"cuda", "GPU"}, {"cpu", "CPU"}, {"guard", "GUARD"}};
  const char* colon = strchr(text, ':');
  const size_t size = colon ? (size_t)(colon - text) : strlen(text);
  const int count = colon ? atoi(colon + 1) : 1;
  for (size_t k = 0; k < sizeof(types) / sizeof(*types); ++k) {
    if (strlen(types[k][0]) != size || strncmp(text, types[k][0], size)) continue;
    if (count < 1 || count > MOST_DEVICES) break;
    snprintf(session, 64, k == 1 ? "%s:%d" : "cpu,%s:%d", types[k][0], count);
    for (int i = 0; i < count; ++i) snprintf(names[i], 32, "/device:%s:%d", types[k][1], i);
    return count;
  }
  fprintf(stderr, "--devices=%s: neither cuda, cpu nor guard, with a number up to %d\n", text,
          MOST_DEVICES);
  exit(2);
}

// A copy of the model on each device, which gets its part of every batch.
static void train_here(const options_t* o) {
  char names[MOST_DEVICES][32], devices[64];
  const char* list[MOST_DEVICES];
  const int count = read_devices(o->devices, names, devices);
  for (int i = 0; i < count; ++i) list[i] = names[i];
  weir_graph_t* graph = NULL;
  weir_session_t* session = NULL;
  weir_batcher_t* data = NULL;
  model_t m = {0};
  check(weir_graph_create(&graph));
  weir_scope_t* s = weir_scope_create(graph);
  add_inputs(s, &m);
  const weir_tower_model_t model = {
      .build = add_net, .arg = &m, .inputs = m.inputs, .input_count = 2};
  weir_edge_t step = weir_global_step(s);
  weir_optimizer_t adam = weir_adam(weir_cosine_decay(s, 0.002f, step, (float)o->steps));
  const weir_towers_t towers = weir_towers(s, &adam, &model, list, count, .global_step = step);
  m.init = weir_initializer(s);
  check(weir_scope_finish(s));
  check(weir_session_create(graph, &(weir_session_options_t){.devices = devices}, &session));
  data_t digits = load("data/mnist", "train-images-idx3-ubyte", "train-labels-idx1-ubyte");
  check(weir_batcher_create(((weir_tensor_t*[]){digits.images, digits.labels}), 2, &data,
                            .batch_size = BATCH * count, .seed = 1));
  check(weir_fit(session, towers.step, towers.loss, NULL, .max_steps = o->steps, .init = m.init,
                 .start = towers.start, .data = data, .inputs = m.inputs, .item_name = "images"));
  test(session, &m);
  weir_batcher_destroy(data);
  unload(digits);
  weir_session_destroy(session);
  weir_graph_release(graph);
}

int main(int argc, char** argv) {
  const options_t o = parse(argc, argv);
  if (o.devices) {
    train_here(&o);
    return 0;
  }
  weir_graph_t* graph = NULL;
  check(weir_graph_create(&graph));
  const model_t m = build(graph, &o);
  weir_session_t* session = connect_to(graph, &o);
  train(session, &m, &o);
  if (o.worker == 0) test(session, &m);
  weir_saver_destroy(m.saver);
  weir_session_destroy(session);
  weir_graph_release(graph);
  return 0;
}

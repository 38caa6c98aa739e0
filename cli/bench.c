// bench.c — weir bench: runs a graph's training step repeatedly and prints how long it takes.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

enum { MAX_FEEDS = 64 };

typedef struct bench_t {
  const char* path;
  const char* init;  // these three: NULL: found by what nodes are
  const char* run;
  const char* fetch;
  const char* signature;
  const char* feeds[MAX_FEEDS];  // "name=value"
  int given_count;
  long batch;  // of random feeds; 0: not asked for
  weir_session_options_t options;
  const char* profile;
  long steps;
  long warmup;
  long threads;
  long trace;
  double seconds;
  bool json;
  // What is being measured.
  weir_model_t* model;  // NULL: a graph alone
  weir_graph_t* graph;  // of the model, or owned
  weir_session_t* session;
  weir_feed_t feed[MAX_FEEDS];
  weir_tensor_t* values[MAX_FEEDS];  // of |feed|, borrowed
  int feed_count;
  weir_callable_t* step;
  weir_node_t* first;   // NULL: nothing runs before
  weir_node_t* target;  // NULL: only the fetch
  char times[64];       // "cost:" and a file with the times of nodes; empty: they were not measured
  weir_edge_t loss;
  double* times_ms;
  long time_count;
  double start_ms;
  double ready_s;  // from the start to the end of the first step
  double busy;     // of the GPUs, when the last step ended; negative: not known
} bench_t;

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static weir_step_spec_t spec_of(bench_t* bench) {
  return (weir_step_spec_t){.feeds = bench->feed,
                            .feed_count = bench->feed_count,
                            .fetches = &bench->loss,
                            .fetch_count = 1,
                            .targets = &bench->target,
                            .target_count = bench->target ? 1 : 0};
}

static weir_status_t* open_session(bench_t* bench, const weir_session_options_t* options) {
  WEIR_TRY(weir_session_create(bench->graph, options, &bench->session));
  return bench->first ? weir_session_run_target(bench->session, bench->first) : NULL;
}

// Traces a step where the graph wants its nodes, the second or later, and leaves the times of nodes
// in a file. What it does to variables is gone with its session.
static weir_status_t* measure_nodes(bench_t* bench) {
  weir_session_options_t options = bench->options;
  weir_step_spec_t spec = spec_of(bench);
  char* json = NULL;
  options.place = NULL;
  options.isolate_state = true;
  WEIR_TRY(open_session(bench, &options));
  for (int i = 0; i < 3; ++i) {
    weir_tensor_t* result = NULL;
    weir_buffer_free(json);
    json = NULL;
    WEIR_TRY(weir_session_run_traced(bench->session, &spec, &result, &json));
    weir_tensor_release(result);
  }
  weir_session_destroy(bench->session);
  bench->session = NULL;
  snprintf(bench->times, sizeof(bench->times), "cost:/tmp/weir_times.XXXXXX");
  int file = mkstemp(bench->times + strlen("cost:"));
  if (file >= 0) close(file);
  bool is_written = file >= 0 && write_file(bench->times + strlen("cost:"), json, strlen(json));
  weir_buffer_free(json);
  bench->options.place = bench->times;
  return is_written ? NULL : WEIR_STATUS(UNKNOWN, "the times of nodes were not written");
}

// ---- feeds ----

static bool is_fed(const bench_t* bench, weir_edge_t edge) {
  for (int i = 0; i < bench->feed_count; ++i) {
    if (bench->feed[i].edge.node == edge.node && bench->feed[i].edge.index == edge.index)
      return true;
  }
  return false;
}

// "name=random", "name=1,2", "name=@x.npy" of a tensor, or of an input of the signature.
static weir_status_t* add_given(bench_t* bench, const weir_signature_t* signature,
                                const char* text) {
  char name[1024];
  const char* equals = strchr(text, '=');
  weir_feed_t* feed = &bench->feed[bench->feed_count];
  if (!equals) return WEIR_STATUS(INVALID_ARGUMENT, "--feed '%s' is not NAME=VALUE", text);
  snprintf(name, sizeof(name), "%.*s", (int)(equals - text), text);
  int port = 0, ports = signature ? signature->input_count : 0;
  while (port < ports && strcmp(signature->inputs[port].name, name) != 0) ++port;
  if (port < ports) feed->edge = signature->inputs[port].edge;
  else
    WEIR_TRY(
        weir_status_prefix(weir_graph_find_output(bench->graph, name, &feed->edge), "--feed: "));
  int64_t dims[WEIR_MAX_RANK];
  int rank = weir_edge_dims(feed->edge, dims, WEIR_MAX_RANK);
  weir_dtype_t dtype = weir_dtype_base(weir_edge_type(feed->edge));
  weir_status_t* status =
      strcmp(equals + 1, "random") == 0
          ? random_value(dtype, rank, dims, bench->batch ? bench->batch : 1, &feed->tensor)
          : parse_value(equals + 1, dtype, &feed->tensor);
  if (!status) bench->values[bench->feed_count++] = feed->tensor;
  return weir_status_prefix(status, "--feed %s: ", name);
}

static weir_status_t* add_random(bench_t* bench, weir_edge_t edge, int rank, const int64_t* dims) {
  if (is_fed(bench, edge)) return NULL;
  if (bench->feed_count == MAX_FEEDS)
    return WEIR_STATUS(INVALID_ARGUMENT, "more than %d placeholders", MAX_FEEDS);
  weir_feed_t* feed = &bench->feed[bench->feed_count];
  feed->edge = edge;
  weir_status_t* status = random_value(weir_edge_type(edge), rank, dims,
                                       bench->batch ? bench->batch : 1, &feed->tensor);
  if (!status) bench->values[bench->feed_count++] = feed->tensor;
  return weir_status_prefix(status, "'%s' (--feed it): ", weir_node_name(edge.node));
}

static weir_status_t* add_feeds(bench_t* bench, const weir_signature_t* signature) {
  for (int i = 0; i < bench->given_count; ++i)
    WEIR_TRY(add_given(bench, signature, bench->feeds[i]));
  for (int i = 0; signature && i < signature->input_count; ++i) {
    const weir_model_port_t* port = &signature->inputs[i];
    WEIR_TRY(add_random(bench, port->edge, port->rank, port->dims));
  }
  for (size_t i = 0; !signature && bench->batch && i < weir_graph_node_count(bench->graph); ++i) {
    weir_edge_t edge = {weir_graph_node_at(bench->graph, i), 0};
    int64_t dims[WEIR_MAX_RANK];
    if (strcmp(weir_node_op(edge.node), "Placeholder") != 0) continue;
    WEIR_TRY(add_random(bench, edge, weir_edge_dims(edge, dims, WEIR_MAX_RANK), dims));
  }
  return NULL;
}

// ---- what to run ----

// The node of that name; where none was asked for, the one called |usual| or else |picked|.
static weir_status_t* choose_node(bench_t* bench, const char* option, const char* name,
                                  const char* usual, weir_node_t* (*pick)(weir_graph_t*),
                                  weir_node_t** out_node) {
  if (name && *name) return find_node(bench->graph, option, name, out_node);
  if (name) return NULL;  // none at all
  *out_node = weir_graph_find_node(bench->graph, usual);
  if (!*out_node) *out_node = pick(bench->graph);
  return NULL;
}

static weir_status_t* choose_nodes(bench_t* bench) {
  WEIR_TRY(choose_node(bench, "init", bench->init, "init", pick_init, &bench->first));
  WEIR_TRY(choose_node(bench, "run", bench->run, "step", pick_step, &bench->target));
  if (!bench->first && !bench->init && has_variables(bench->graph))
    return WEIR_STATUS(
        NOT_FOUND,
        "nothing in the graph initialises its variables (--init=NODE says what does, "
        "--init= that nothing has to)");
  if (bench->fetch)
    return weir_status_prefix(weir_graph_find_output(bench->graph, bench->fetch, &bench->loss),
                              "--fetch: ");
  weir_node_t* usual = weir_graph_find_node(bench->graph, "loss");
  bench->loss = (weir_edge_t){usual, 0};
  if (usual || pick_loss(bench->graph, &bench->loss)) return NULL;
  return WEIR_STATUS(NOT_FOUND,
                     "no node of the graph looks like a loss, a float scalar that depends on "
                     "variables (--fetch=TENSOR says what to compute)");
}

static weir_status_t* load_model(bench_t* bench) {
  weir_model_options_t options = {.session = bench->options};
  WEIR_TRY(weir_model_load(bench->path, &options, &bench->model));
  bench->graph = weir_model_graph(bench->model);
  bench->session = weir_model_session(bench->model);
  const weir_signature_t* signature = weir_model_find_signature(bench->model, bench->signature);
  if (!signature || signature->output_count == 0)
    return WEIR_STATUS(NOT_FOUND, "the model has no signature '%s'; 'weir show %s' lists them",
                       bench->signature ? bench->signature : "serving_default", bench->path);
  bench->loss = signature->outputs[0].edge;
  if (bench->fetch) WEIR_TRY(weir_graph_find_output(bench->graph, bench->fetch, &bench->loss));
  return add_feeds(bench, signature);
}

static weir_status_t* load_graph(bench_t* bench) {
  WEIR_TRY(weir_graph_load(bench->path, &bench->graph));
  WEIR_TRY(choose_nodes(bench));
  WEIR_TRY(add_feeds(bench, NULL));
  const char* place = bench->options.place;
  if (place && strcmp(place, "measured") == 0) WEIR_TRY(measure_nodes(bench));
  return open_session(bench, &bench->options);
}

static weir_status_t* set_up(bench_t* bench) {
  struct stat info;
  bench->options.threads = (int)bench->threads;
  bench->options.allow_soft_placement = true;
  bool is_model = bench->signature || (stat(bench->path, &info) == 0 && S_ISDIR(info.st_mode));
  WEIR_TRY(is_model ? load_model(bench) : load_graph(bench));
  weir_step_spec_t spec = spec_of(bench);
  return weir_callable_create(bench->session, &spec, &bench->step);
}

// One step; the loss as a number, whatever float type it has.
static weir_status_t* run_step(bench_t* bench, double* out_loss) {
  weir_tensor_t* result = NULL;
  WEIR_TRY(weir_callable_run(bench->step, bench->values, &result));
  const void* data = weir_tensor_data(result);
  bool is_one = weir_tensor_count(result) == 1;
  weir_dtype_t dtype = weir_tensor_dtype(result);
  *out_loss = is_one && dtype == WEIR_DTYPE_FLOAT    ? *(const float*)data
              : is_one && dtype == WEIR_DTYPE_DOUBLE ? *(const double*)data
                                                     : 0;
  weir_tensor_release(result);
  return NULL;
}

static const char* graph_name(const bench_t* bench, char* buffer, size_t size) {
  const char* slash = strrchr(bench->path, '/');
  snprintf(buffer, size, "%s", slash ? slash + 1 : bench->path);
  char* dot = strrchr(buffer, '.');
  if (dot) *dot = 0;
  return buffer;
}

static weir_status_t* trace_losses(bench_t* bench) {
  char name[256];
  printf("{\"graph\": \"%s\", \"system\": \"weir %s\", \"losses\": [",
         graph_name(bench, name, sizeof(name)), weir_version());
  weir_status_t* status = NULL;
  for (long i = 0; i < bench->trace && !status; ++i) {
    double loss = 0;
    status = run_step(bench, &loss);
    if (!status) printf("%s%.9g", i ? ", " : "", loss);
  }
  printf("]}\n");
  return status;
}

static void show_progress(const bench_t* bench, double elapsed_ms) {
  static double last = 0;
  if (!isatty(STDERR_FILENO) || elapsed_ms - last < 100) return;
  last = elapsed_ms;
  fprintf(stderr, "\r%ld steps, %.1f s ", bench->time_count, elapsed_ms / 1e3);
}

static weir_status_t* measure(bench_t* bench, double* out_loss) {
  enum { AT_LEAST = 5 };
  bench->times_ms =
      malloc(sizeof(double) * (size_t)(bench->steps > AT_LEAST ? bench->steps : AT_LEAST));
  if (!bench->times_ms)
    return WEIR_STATUS(RESOURCE_EXHAUSTED, "no memory for %ld times", bench->steps);
  for (long i = 0; i < bench->warmup; ++i) {
    WEIR_TRY(run_step(bench, out_loss));
    if (i == 0) bench->ready_s = (now_ms() - bench->start_ms) / 1e3;
  }
  double begin = now_ms();
  while (bench->time_count < AT_LEAST ||
         (bench->time_count < bench->steps && now_ms() - begin < bench->seconds * 1e3)) {
    double start = now_ms();
    WEIR_TRY(run_step(bench, out_loss));
    bench->times_ms[bench->time_count++] = now_ms() - start;
    show_progress(bench, now_ms() - begin);
  }
  bench->busy = weir_session_device_busy(bench->session);
  if (isatty(STDERR_FILENO)) fputs("\r\033[K", stderr);
  return NULL;
}

static int compare_doubles(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void print_result(bench_t* bench, double loss) {
  char name[256];
  graph_name(bench, name, sizeof(name));
  qsort(bench->times_ms, (size_t)bench->time_count, sizeof(double), compare_doubles);
  double median = bench->times_ms[bench->time_count / 2];
  double p90 = bench->times_ms[(long)((double)bench->time_count * 0.9)];
  size_t nodes = weir_callable_node_count(bench->step);
  long long peak = (long long)weir_peak_bytes();
  long long device_peak = (long long)weir_session_device_peak_bytes(bench->session);
  char busy[32] = "null";
  if (bench->busy >= 0) snprintf(busy, sizeof(busy), "%.2f", bench->busy);
  if (bench->json) {
    printf(
        "{\"graph\": \"%s\", \"system\": \"weir %s\", \"step_ms\": %.4f, \"p90_ms\": %.4f, "
        "\"steps\": %ld, "
        "\"loss\": %.5f, \"nodes\": %zu, \"peak_bytes\": %lld, \"device_peak_bytes\": %lld, "
        "\"device_busy\": %s, \"ready_s\": %.3f}\n",
        name, weir_version(), median, p90, bench->time_count, loss, nodes, peak, device_peak, busy,
        bench->ready_s);
  } else {
    printf(
        "%s: %.4f ms a step (p90 %.4f, %ld steps), %.0f ns a node of %zu, loss %.5f, peak %.1f "
        "MB",
        name, median, p90, bench->time_count, nodes ? median * 1e6 / (double)nodes : 0, nodes, loss,
        (double)peak / 1e6);
    if (device_peak) printf(", on devices %.1f MB", (double)device_peak / 1e6);
    if (bench->busy >= 0) printf(", GPU %.0f %% busy", 100 * bench->busy);
    putchar('\n');
  }
}

static weir_status_t* write_profile(bench_t* bench) {
  weir_step_spec_t spec = spec_of(bench);
  weir_tensor_t* result = NULL;
  char* json = NULL;
  WEIR_TRY(weir_session_run_traced(bench->session, &spec, &result, &json));
  bool is_written = write_file(bench->profile, json, strlen(json));
  weir_tensor_release(result);
  weir_buffer_free(json);
  return is_written ? NULL : WEIR_STATUS(UNKNOWN, "the profile was not written");
}

static weir_status_t* run_all(bench_t* bench) {
  double loss = 0;
  WEIR_TRY(set_up(bench));
  if (bench->trace > 0) return trace_losses(bench);
  WEIR_TRY(measure(bench, &loss));
  print_result(bench, loss);
  return bench->profile ? write_profile(bench) : NULL;
}

static int parse(bench_t* bench, args_t* args) {
  while (args->next < args->argc) {
    const char* at = args->argv[args->next];
    const char* value = NULL;
    bool is_good = true;
    if (args_option(args, "init", &bench->init) || args_option(args, "run", &bench->run) ||
        args_option(args, "fetch", &bench->fetch) ||
        args_option(args, "signature", &bench->signature) || args_running(args, &bench->options) ||
        args_option(args, "target", &bench->options.target) || args_tls(args, &bench->options) ||
        args_option(args, "profile", &bench->profile)) {
      continue;
    }
    if (args_flag(args, "json")) bench->json = true;
    else if (bench->given_count < MAX_FEEDS && args_option(args, "feed", &value))
      bench->feeds[bench->given_count++] = value;
    else if (args_option(args, "batch", &value))
      is_good = parse_long(value, &bench->batch) && bench->batch > 0;
    else if (args_option(args, "steps", &value))
      is_good = parse_long(value, &bench->steps) && bench->steps > 0;
    else if (args_option(args, "warmup", &value))
      is_good = parse_long(value, &bench->warmup) && bench->warmup >= 0;
    else if (args_option(args, "threads", &value))
      is_good = parse_long(value, &bench->threads) && bench->threads >= 0;
    else if (args_option(args, "trace", &value))
      is_good = parse_long(value, &bench->trace) && bench->trace > 0;
    else if (args_option(args, "seconds", &value))
      is_good = parse_double(value, &bench->seconds) && bench->seconds >= 0;
    else if (!bench->path && (bench->path = args_positional(args))) continue;
    else return unknown_argument(&verb_bench, at);
    if (!is_good) return usage_error(&verb_bench, "'%s' is not a valid number for '%s'", value, at);
  }
  return bench->path ? EXIT_OK : usage_error(&verb_bench, "no graph given");
}

static int run_bench(int argc, char** argv) {
  bench_t bench = {.steps = 50, .warmup = 3, .seconds = 20};
  bench.start_ms = now_ms();
  args_t args = {.argc = argc, .argv = argv};
  int code = parse(&bench, &args);
  if (code != EXIT_OK) return code;
  weir_status_t* status = run_all(&bench);
  weir_callable_destroy(bench.step);
  free(bench.times_ms);
  if (*bench.times) unlink(bench.times + strlen("cost:"));
  for (int i = 0; i < bench.feed_count; ++i) weir_tensor_release(bench.feed[i].tensor);
  if (!bench.model) return finish(bench.session, bench.graph, status);
  weir_model_destroy(bench.model);
  return status ? fail(status) : EXIT_OK;
}

const verb_t verb_bench = {
    .name = "bench",
    .summary = "time the training step of a graph",
    .help =
        "usage: weir bench GRAPH|MODEL_DIRECTORY [OPTIONS]\n"
        "Runs what initialises the variables once, then a step with the loss again and again. "
        "Which\n"
        "nodes those are it finds by their names ('init', 'step', 'loss') or by what they are. Of "
        "a\n"
        "SavedModel it runs a signature, with random inputs.\n\n"
        "  --init=NODE       node to run first; empty for none\n"
        "  --run=NODE        node a step runs; empty for none\n"
        "  --fetch=TENSOR    value a step fetches\n"
        "  --feed NAME=VALUE as for 'weir run', or random; may be repeated\n"
        "  --batch=N         random values for all other placeholders, N where the first "
        "dimension\n"
        "                    is not known (of models 1)\n"
        "  --signature=NAME  of a model (serving_default)\n"
        "  --steps=N         at most so many timed steps (50)\n"
        "  --seconds=S       stop after so many seconds, but not before 5 steps (20)\n"
        "  --warmup=N        steps before the clock starts (3)\n"
        "  --threads=N       threads in all; 0: one a CPU (0)\n"
        "  --device=cuda:0   a GPU, beside the CPU; [--tf32=0] products of floats in IEEE float,\n"
        "                    [--deterministic] the same bits every time\n"
        "  --devices=LIST    devices of this process: \"cpu:2,guard:1\" (cpu:1)\n"
        "  --place=HOW       nodes without a device: graph, cost[:TRACE], random:SEED, "
        "/device:GUARD:0 (graph)\n"
        "                    measured: by cost, and the times of nodes in steps that are run "
        "before\n"
        "  --rates=FILE      for cost: how fast the devices are, as 'weir place --print-rates' "
        "tells\n"
        "  --amp=TYPE        mixed precision: bf16, or half, for which the graph scales its loss "
        "(off)\n"
        "  --plugin=FILE     load ops of a shared object first; may be repeated\n"
        "  --target=grpc://HOST:PORT   run the steps on a server\n"
        "  --tls-ca=FILE --tls-cert=FILE --tls-key=FILE\n"
        "                    grpc+tls://HOST:PORT: whom to trust, own certificate and key (PEM)\n"
        "  --token-file=FILE the secret that the server asks for\n"
        "  --trace=N         print the losses of the first N steps instead\n"
        "  --profile=FILE    write a Chrome trace of one step\n"
        "  --json            print one JSON object: step_ms, p90_ms, steps, loss, nodes, "
        "peak_bytes,\n"
        "                    device_peak_bytes, device_busy: of GPUs, by NVML, over about the "
        "last second,\n"
        "                    ready_s: from the start to the end of the first step\n",
    .run = run_bench};

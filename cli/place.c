// place.c — weir place: where the nodes of a step would go, and how long the step should take.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

typedef struct place_t {
  const char* path;
  const char* run;
  const char* fetch;
  long threads;
  bool print_rates;
  const char* tasks;  // whose rates are printed; NULL: of this process's devices
  weir_session_options_t session_options;  // no place: by cost, and by the times of the trace
  weir_describe_options_t options;
  // What is made for it.
  char* by_cost;
  weir_graph_t* graph;
  weir_session_t* session;
  char* text;
} place_t;

static weir_status_t* open_session(place_t* place) {
  weir_session_options_t* options = &place->session_options;
  options->threads = (int)place->threads;
  options->allow_soft_placement = true;
  if (!options->place) {
    const char* trace = place->options.trace ? place->options.trace : "";
    size_t size = strlen(trace) + sizeof("cost:");
    place->by_cost = malloc(size);
    if (!place->by_cost) return WEIR_STATUS(RESOURCE_EXHAUSTED, "no memory for a path");
    snprintf(place->by_cost, size, *trace ? "cost:%s" : "cost%s", trace);
    options->place = place->by_cost;
  }
  return weir_session_create(place->graph, options, &place->session);
}

static weir_status_t* describe(place_t* place) {
  weir_node_t* target = NULL;
  weir_edge_t fetch = {.node = NULL};
  if (place->tasks) return print_transfers(&place->session_options, place->tasks);
  if (place->path) WEIR_TRY(weir_graph_load(place->path, &place->graph));
  else WEIR_TRY(weir_graph_create(&place->graph));
  WEIR_TRY(open_session(place));
  if (place->print_rates) return weir_session_describe_rates(place->session, &place->text);
  if (*place->fetch) WEIR_TRY(weir_graph_find_output(place->graph, place->fetch, &fetch));
  if (*place->run) WEIR_TRY(find_node(place->graph, "run", place->run, &target));
  weir_step_spec_t spec = {.fetches = &fetch,
                           .fetch_count = *place->fetch ? 1 : 0,
                           .targets = &target,
                           .target_count = target ? 1 : 0};
  return weir_session_describe_step(place->session, &spec, &place->options, &place->text);
}

static int parse(place_t* place, int argc, char** argv) {
  args_t args = {.argc = argc, .argv = argv};
  while (args.next < argc) {
    const char* at = argv[args.next];
    const char* value = NULL;
    if (args_running(&args, &place->session_options) || args_option(&args, "run", &place->run) ||
        args_option(&args, "fetch", &place->fetch) ||
        args_option(&args, "cluster", &place->options.cluster) ||
        args_option(&args, "tasks", &place->tasks) ||
        args_option(&args, "target", &place->session_options.target) ||
        args_tls(&args, &place->session_options) ||
        args_option(&args, "trace", &place->options.trace))
      continue;
    if (args_flag(&args, "print-rates")) place->print_rates = true;
    else if (args_flag(&args, "json")) place->options.json = true;
    else if (args_flag(&args, "verbose")) place->options.with_nodes = true;
    else if (args_option(&args, "threads", &value)) {
      if (!parse_long(value, &place->threads) || place->threads < 0)
        return usage_error(&verb_place, "'%s' is not a valid number for '%s'", value, at);
    } else if (!place->path && (place->path = args_positional(&args))) continue;
    else return unknown_argument(&verb_place, at);
  }
  if (!place->tasks != !place->session_options.target || (place->tasks && !place->print_rates))
    return usage_error(&verb_place, "--print-rates, --tasks and --target go together");
  return place->path || place->print_rates ? EXIT_OK : usage_error(&verb_place, "no graph given");
}

static int run_place(int argc, char** argv) {
  place_t place = {.run = "step", .fetch = "loss:0"};
  int code = parse(&place, argc, argv);
  if (code != EXIT_OK) return code;
  weir_status_t* status = describe(&place);
  if (!status && place.text) fputs(place.text, stdout);
  weir_buffer_free(place.text);
  free(place.by_cost);
  return finish(place.session, place.graph, status);
}

const verb_t verb_place = {
    .name = "place",
    .summary = "tell where a step's nodes would run, and how long it would take",
    .help =
        "usage: weir place GRAPH.pb --devices=LIST [OPTIONS]\n"
        "       weir place --print-rates --devices=LIST >RATES\n"
        "       weir place --print-rates --tasks=LIST --target=grpc://HOST:PORT >RATES\n"
        "Places the nodes of a step, plays the step through in simulated time, and prints what "
        "each "
        "device\n"
        "does, the predicted time, the bytes that cross between memories and the critical path. "
        "Nothing runs.\n\n"
        "  --devices=LIST    devices of the process: \"cpu:2,guard:2@speed=0.5\" (cpu:1)\n"
        "  --place=HOW       nodes without a device: graph, cost[:TRACE], random:SEED, "
        "/device:GUARD:0 (cost)\n"
        "  --rates=FILE      how fast the devices are; measured without\n"
        "  --amp=TYPE        mixed precision: bf16 or half (off)\n"
        "  --print-rates     print that instead, a line a device, for --rates of place, run and "
        "bench\n"
        "  --cluster=FILE    on the tasks of a cluster, one CPU each, that are as fast as it "
        "says:\n"
        "                    'weir place --print-rates --target=grpc://HOST:PORT "
        "--tasks=/job:worker/task:0,…' tells\n"
        "  --trace=FILE      node times from a trace that 'weir bench --profile=FILE' wrote\n"
        "  --run=NODE        node the step runs; empty for none (step)\n"
        "  --fetch=TENSOR    value the step fetches; empty for none (loss:0)\n"
        "  --threads=N       threads in all; 0: one a CPU (0)\n"
        "  --verbose         every node with its device and time\n"
        "  --json            one JSON object: step_ns, crossed_bytes, devices, critical_path\n"
        "  --plugin=FILE     load ops of a shared object first; may be repeated\n",
    .run = run_place};

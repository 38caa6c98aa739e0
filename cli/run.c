// run.c — weir run: feeds a graph, runs it once, prints what was fetched.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum { MAX_ITEMS = 256 };

typedef struct run_args_t {
  const char* path;
  const char* init;              // NULL: none
  const char* feeds[MAX_ITEMS];  // "name=value"
  int feed_count;
  const char* fetches[MAX_ITEMS];
  int fetch_count;
  const char* targets[MAX_ITEMS];
  int target_count;
  const char* save;  // prefix of npy files; NULL: print
  long threads;
  weir_session_options_t session;  // target "grpc://…", and TLS files; no target: steps run here
} run_args_t;

// "1", "1,2,3" or text, as the edge's type asks; one value is a scalar, several are a vector.
static weir_status_t* parse_value(const char* text, weir_dtype_t dtype,
                                  weir_tensor_t** out_tensor) {
  if (dtype == WEIR_DTYPE_STRING)
    return weir_tensor_create_strings(0, NULL, &text, NULL, out_tensor);
  int64_t count = 1;
  for (const char* c = text; *c; ++c) count += *c == ',';
  WEIR_TRY(weir_tensor_create(dtype, count > 1, &count, out_tensor));
  char* data = weir_tensor_data(*out_tensor);
  const char* at = text;
  for (int64_t i = 0; i < count; ++i) {
    char* end = NULL;
    double number = strtod(at, &end);
    bool is_bool =
        dtype == WEIR_DTYPE_BOOL && (strncmp(at, "true", 4) == 0 || strncmp(at, "false", 5) == 0);
    if (is_bool) end = (char*)at + (*at == 't' ? 4 : 5);
    if (end == at || (*end && *end != ','))
      return WEIR_STATUS(INVALID_ARGUMENT, "'%s' is not a list of numbers", text);
    switch (dtype) {
      case WEIR_DTYPE_FLOAT: ((float*)data)[i] = (float)number; break;
      case WEIR_DTYPE_DOUBLE: ((double*)data)[i] = number; break;
      case WEIR_DTYPE_INT32: ((int32_t*)data)[i] = (int32_t)number; break;
      case WEIR_DTYPE_INT64: ((int64_t*)data)[i] = strtoll(at, NULL, 10); break;
      case WEIR_DTYPE_UINT8: ((uint8_t*)data)[i] = (uint8_t)number; break;
      case WEIR_DTYPE_BOOL: ((bool*)data)[i] = is_bool ? *at == 't' : number != 0; break;
      default:
        return WEIR_STATUS(UNIMPLEMENTED, "values of type %s are given as @file.npy",
                           weir_dtype_name(dtype));
    }
    at = end + 1;
  }
  return NULL;
}

static weir_status_t* parse_feed(weir_graph_t* graph, const char* text, weir_feed_t* out_feed) {
  const char* equals = strchr(text, '=');
  if (!equals) return WEIR_STATUS(INVALID_ARGUMENT, "--feed '%s' is not NAME=VALUE", text);
  char name[512];
  snprintf(name, sizeof(name), "%.*s", (int)(equals - text), text);
  WEIR_TRY(weir_graph_find_output(graph, name, &out_feed->edge));
  if (equals[1] == '@') return weir_tensor_load_npy(equals + 2, &out_feed->tensor);
  weir_dtype_t dtype = weir_dtype_base(weir_edge_type(out_feed->edge));
  weir_status_t* status = parse_value(equals + 1, dtype, &out_feed->tensor);
  return status ? weir_status_prefix(status, "--feed %s: ", name) : NULL;
}

static weir_status_t* show_result(const run_args_t* args, int index, const weir_tensor_t* tensor) {
  if (args->save) {
    char path[1024];
    snprintf(path, sizeof(path), "%s%d.npy", args->save, index);
    return weir_tensor_save_npy(tensor, path);
  }
  char* text = NULL;
  WEIR_TRY(weir_tensor_to_text(tensor, 100, &text));
  printf("%s = %s\n", args->fetches[index], text);
  weir_buffer_free(text);
  return NULL;
}

typedef struct prepared_t {
  weir_graph_t* graph;
  weir_session_t* session;
  weir_feed_t feeds[MAX_ITEMS];
  weir_edge_t fetches[MAX_ITEMS];
  weir_node_t* targets[MAX_ITEMS];
  weir_tensor_t* results[MAX_ITEMS];
} prepared_t;

static weir_status_t* find_target(weir_graph_t* graph, const char* name, weir_node_t** out_node) {
  *out_node = weir_graph_find_node(graph, name);
  return *out_node ? NULL : WEIR_STATUS(NOT_FOUND, "the graph has no node '%s'", name);
}

static weir_status_t* prepare(const run_args_t* args, prepared_t* p) {
  WEIR_TRY(weir_graph_load(args->path, &p->graph));
  weir_session_options_t options = args->session;
  options.threads = (int)args->threads;
  options.allow_soft_placement = true;
  WEIR_TRY(weir_session_create(p->graph, &options, &p->session));
  for (int i = 0; i < args->feed_count; ++i)
    WEIR_TRY(parse_feed(p->graph, args->feeds[i], &p->feeds[i]));
  for (int i = 0; i < args->fetch_count; ++i)
    WEIR_TRY(weir_graph_find_output(p->graph, args->fetches[i], &p->fetches[i]));
  for (int i = 0; i < args->target_count; ++i)
    WEIR_TRY(find_target(p->graph, args->targets[i], &p->targets[i]));
  if (!args->init) return NULL;
  weir_node_t* init = NULL;
  WEIR_TRY(find_target(p->graph, args->init, &init));
  return weir_session_run_target(p->session, init);
}

static weir_status_t* execute(const run_args_t* args, prepared_t* p) {
  WEIR_TRY(prepare(args, p));
  weir_step_spec_t spec = {.feeds = p->feeds,
                           .feed_count = args->feed_count,
                           .fetches = p->fetches,
                           .fetch_count = args->fetch_count,
                           .targets = p->targets,
                           .target_count = args->target_count};
  WEIR_TRY(weir_session_run(p->session, &spec, p->results));
  for (int i = 0; i < args->fetch_count; ++i) WEIR_TRY(show_result(args, i, p->results[i]));
  return NULL;
}

static void release(prepared_t* p) {
  for (int i = 0; i < MAX_ITEMS; ++i) {
    weir_tensor_release(p->feeds[i].tensor);
    weir_tensor_release(p->results[i]);
  }
  weir_session_destroy(p->session);
  weir_graph_release(p->graph);
}

static int parse(run_args_t* run, int argc, char** argv) {
  args_t args = {.argc = argc, .argv = argv};
  while (args.next < argc) {
    const char* at = argv[args.next];
    const char* value = NULL;
    if (run->feed_count == MAX_ITEMS || run->fetch_count == MAX_ITEMS ||
        run->target_count == MAX_ITEMS) {
      return usage_error(&verb_run, "more than %d feeds, fetches or targets", MAX_ITEMS);
    }
    if (args_option(&args, "feed", &value)) run->feeds[run->feed_count++] = value;
    else if (args_option(&args, "fetch", &value)) run->fetches[run->fetch_count++] = value;
    else if (args_option(&args, "target", &value)) {
      if (strncmp(value, "grpc", 4) == 0 && strstr(value, "://")) run->session.target = value;
      else run->targets[run->target_count++] = value;
    } else if (args_option(&args, "init", &run->init) || args_option(&args, "save", &run->save) ||
               args_tls(&args, &run->session) || args_running(&args, &run->session))
      continue;
    else if (args_option(&args, "threads", &value)) {
      if (!parse_long(value, &run->threads) || run->threads < 0)
        return usage_error(&verb_run, "'%s' is not a number of threads", value);
    } else if (!run->path && (run->path = args_positional(&args))) continue;
    else return usage_error(&verb_run, "unknown option or argument '%s'", at);
  }
  if (!run->path) return usage_error(&verb_run, "no graph given");
  if (run->fetch_count + run->target_count == 0)
    return usage_error(&verb_run, "nothing to --fetch or --target");
  return EXIT_OK;
}

static int run_run(int argc, char** argv) {
  run_args_t args = {0};
  int code = parse(&args, argc, argv);
  if (code != EXIT_OK) return code;
  prepared_t* prepared = calloc(1, sizeof(*prepared));
  if (!prepared) return EXIT_FAILED;
  weir_status_t* status = execute(&args, prepared);
  release(prepared);
  free(prepared);
  return status ? fail(status) : EXIT_OK;
}

const verb_t verb_run = {
    .name = "run",
    .summary = "feed a graph, run it, print what was fetched",
    .help =
        "usage: weir run GRAPH.pb --feed NAME=VALUE --fetch NAME [--target NAME] [OPTIONS]\n"
        "VALUE is a number, several separated by commas (a vector), a text, or @FILE.npy.\n\n"
        "  --feed NAME=VALUE   value of a tensor; may be repeated\n"
        "  --fetch NAME        tensor to print; may be repeated\n"
        "  --target NAME       node to run; may be repeated\n"
        "  --init=NODE         node to run before, as a step of its own\n"
        "  --save=PREFIX       write fetches to PREFIX0.npy, PREFIX1.npy … instead of printing\n"
        "  --threads=N         threads in all; 0: one a CPU (0)\n"
        "  --devices=LIST      devices of this process: \"cpu:2,guard:1\" (cpu:1)\n"
        "  --place=HOW         nodes without a device: graph, cost[:TRACE], random:SEED, "
        "/device:GUARD:0 "
        "(graph)\n"
        "  --rates=FILE        for cost: how fast the devices are, as 'weir place --print-rates' "
        "tells\n"
        "  --amp=TYPE          mixed precision: bf16 or half (off)\n"
        "  --plugin=FILE       load ops of a shared object first; may be repeated\n"
        "  --target=grpc://HOST:PORT   run it on a server\n"
        "  --tls-ca=FILE --tls-cert=FILE --tls-key=FILE\n"
        "                      grpc+tls://HOST:PORT: whom to trust, own certificate and key "
        "(PEM)\n"
        "  --token-file=FILE   the secret that the server asks for\n",
    .run = run_run};

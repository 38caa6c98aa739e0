// run.c — weir run: feeds a graph or model, runs it once, prints what was fetched.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"

enum { MAX_ITEMS = 256 };

typedef struct run_args_t {
  const char* path;
  const char* init;              // NULL: found, where there are variables
  const char* feeds[MAX_ITEMS];  // "name=value"
  int feed_count;
  const char* fetches[MAX_ITEMS];
  int fetch_count;
  const char* targets[MAX_ITEMS];
  int target_count;
  const char* outs[MAX_ITEMS];  // "name=@file.npy"
  int out_count;
  const char* save;  // prefix of npy files; NULL: print
  const char* checkpoint;
  const char* signature;
  const char* tags;
  long threads;
  bool json;
  weir_session_options_t session;  // target "grpc://…", and TLS files; no target: steps run here
} run_args_t;

typedef struct prepared_t {
  weir_model_t* model;  // NULL: a graph alone
  const weir_signature_t* signature;
  weir_graph_t* graph;  // of the model, or owned
  weir_session_t* session;
  char* names[MAX_ITEMS];  // of feeds
  weir_feed_t feeds[MAX_ITEMS];
  const char* fetch_names[MAX_ITEMS];
  weir_edge_t fetches[MAX_ITEMS];
  int fetch_count;
  weir_node_t* targets[MAX_ITEMS];
  weir_tensor_t* results[MAX_ITEMS];
  bool by_signature;  // all names are the signature's
} prepared_t;

// ---- names ----

static const weir_model_port_t* find_port(const weir_model_port_t* ports, int count,
                                          const char* name) {
  for (int i = 0; i < count; ++i) {
    if (strcmp(ports[i].name, name) == 0) return &ports[i];
  }
  return NULL;
}

// An error about |name|, which no signature has, with those that there are.
static weir_status_t* no_port(const weir_model_port_t* ports, int count, const char* what,
                              const char* name, weir_status_t* take_status) {
  const char* names[MAX_ITEMS];
  char list[1024] = "";
  size_t used = 0;
  for (int i = 0; i < count && i < MAX_ITEMS; ++i) {
    names[i] = ports[i].name;
    if (used < sizeof(list))
      used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "", names[i]);
  }
  const char* meant = weir_suggest(name, names, (size_t)(count < MAX_ITEMS ? count : MAX_ITEMS));
  if (weir_status_code(take_status) != WEIR_NOT_FOUND) return take_status;
  weir_status_destroy(take_status);
  return WEIR_STATUS(
      NOT_FOUND, "'%s' is neither an %s of the signature nor in the graph%s%s%s; %ss: %s", name,
      what, meant ? " (did you mean '" : "", meant ? meant : "", meant ? "'?)" : "", what, list);
}

static weir_status_t* find_named(prepared_t* p, const char* name, bool is_input,
                                 weir_edge_t* out_edge) {
  const weir_signature_t* s = p->signature;
  const weir_model_port_t* ports = s ? (is_input ? s->inputs : s->outputs) : NULL;
  int count = s ? (is_input ? s->input_count : s->output_count) : 0;
  const weir_model_port_t* port = find_port(ports, count, name);
  if (port) {
    *out_edge = port->edge;
    return NULL;
  }
  p->by_signature = false;
  weir_status_t* status = weir_graph_find_output(p->graph, name, out_edge);
  return status && s ? no_port(ports, count, is_input ? "input" : "output", name, status) : status;
}

static weir_status_t* parse_feed(prepared_t* p, const char* text, int index) {
  const char* equals = strchr(text, '=');
  weir_feed_t* feed = &p->feeds[index];
  if (!equals) return WEIR_STATUS(INVALID_ARGUMENT, "--feed '%s' is not NAME=VALUE", text);
  char* name = p->names[index] = malloc((size_t)(equals - text) + 1);
  if (!name) return WEIR_STATUS(RESOURCE_EXHAUSTED, "no memory for a name");
  memcpy(name, text, (size_t)(equals - text));
  name[equals - text] = 0;
  WEIR_TRY(weir_status_prefix(find_named(p, name, true, &feed->edge), "--feed: "));
  weir_dtype_t dtype = weir_dtype_base(weir_edge_type(feed->edge));
  weir_status_t* status = NULL;
  if (strcmp(equals + 1, "random") == 0 && dtype != WEIR_DTYPE_STRING) {
    int64_t dims[WEIR_MAX_RANK];
    int rank = weir_edge_dims(feed->edge, dims, WEIR_MAX_RANK);
    status = random_value(dtype, rank, dims, 1, &feed->tensor);
  } else {
    status = parse_value(equals + 1, dtype, &feed->tensor);
  }
  return weir_status_prefix(status, "--feed %s: ", name);
}

// ---- loading ----

static bool is_directory(const char* path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool ends_with(const char* text, const char* end) {
  size_t size = strlen(text), tail = strlen(end);
  return size >= tail && strcmp(text + size - tail, end) == 0;
}

// A graph alone is run by names of its nodes; all else has signatures.
static bool is_model(const run_args_t* args) {
  return args->signature || args->tags || is_directory(args->path) ||
         ends_with(args->path, ".meta") || ends_with(args->path, "saved_model.pb") ||
         args->fetch_count + args->target_count == 0;
}

static weir_status_t* no_signature(const prepared_t* p, const char* name) {
  const char* names[MAX_ITEMS];
  char list[1024] = "";
  size_t used = 0;
  int count = weir_model_signature_count(p->model);
  if (count > MAX_ITEMS) count = MAX_ITEMS;
  for (int i = 0; i < count; ++i) {
    names[i] = weir_model_signature_at(p->model, i)->name;
    if (used < sizeof(list))
      used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "", names[i]);
  }
  const char* meant = weir_suggest(name, names, (size_t)count);
  return WEIR_STATUS(NOT_FOUND, "the model has no signature '%s'%s%s%s; it has: %s",
                     name ? name : "serving_default", meant ? " (did you mean '" : "",
                     meant ? meant : "", meant ? "'?)" : "", count ? list : "none");
}

static weir_status_t* load_model(const run_args_t* args, prepared_t* p) {
  weir_model_options_t options = {
      .tags = args->tags, .session = args->session, .checkpoint = args->checkpoint};
  options.session.threads = (int)args->threads;
  options.session.allow_soft_placement = true;
  WEIR_TRY(weir_model_load(args->path, &options, &p->model));
  p->graph = weir_model_graph(p->model);
  p->session = weir_model_session(p->model);
  p->signature = weir_model_find_signature(p->model, args->signature);
  bool is_needed = args->signature || args->fetch_count + args->target_count == 0;
  return p->signature || !is_needed ? NULL : no_signature(p, args->signature);
}

// Runs what |init| names; without one, and without a checkpoint, what initialises the variables.
static weir_status_t* initialise(const run_args_t* args, prepared_t* p) {
  weir_node_t* init = NULL;
  if (args->checkpoint && !p->model)
    WEIR_TRY(weir_checkpoint_restore(p->session, args->checkpoint));
  if (args->init) WEIR_TRY(find_node(p->graph, "init", args->init, &init));
  else if (!args->checkpoint && !args->session.target) init = pick_init(p->graph);
  if (init) WEIR_TRY(weir_session_run_target(p->session, init));
  weir_node_t* tables = args->init || args->session.target ? NULL : pick_table_init(p->graph);
  return tables ? weir_session_run_target(p->session, tables) : NULL;
}

static weir_status_t* load_graph(const run_args_t* args, prepared_t* p) {
  WEIR_TRY(weir_graph_load(args->path, &p->graph));
  weir_session_options_t options = args->session;
  options.threads = (int)args->threads;
  options.allow_soft_placement = true;
  return weir_session_create(p->graph, &options, &p->session);
}

static weir_status_t* resolve(const run_args_t* args, prepared_t* p) {
  p->by_signature = p->signature && args->target_count == 0;
  for (int i = 0; i < args->feed_count; ++i) WEIR_TRY(parse_feed(p, args->feeds[i], i));
  p->fetch_count = args->fetch_count;
  for (int i = 0; i < args->fetch_count; ++i) {
    p->fetch_names[i] = args->fetches[i];
    WEIR_TRY(
        weir_status_prefix(find_named(p, args->fetches[i], false, &p->fetches[i]), "--fetch: "));
  }
  for (int i = 0; i < args->target_count; ++i)
    WEIR_TRY(find_node(p->graph, "target", args->targets[i], &p->targets[i]));
  if (args->fetch_count + args->target_count > 0) return NULL;
  for (; p->fetch_count < p->signature->output_count && p->fetch_count < MAX_ITEMS;
       ++p->fetch_count)
    p->fetch_names[p->fetch_count] = p->signature->outputs[p->fetch_count].name;
  return NULL;
}

// ---- running ----

static weir_status_t* run_signature(const run_args_t* args, prepared_t* p) {
  weir_named_tensor_t inputs[MAX_ITEMS], outputs[MAX_ITEMS];
  for (int i = 0; i < args->feed_count; ++i)
    inputs[i] = (weir_named_tensor_t){p->names[i], p->feeds[i].tensor};
  for (int i = 0; i < p->fetch_count; ++i)
    outputs[i] = (weir_named_tensor_t){p->fetch_names[i], NULL};
  WEIR_TRY(weir_model_run(p->model, p->signature->name, inputs, args->feed_count, outputs,
                          p->fetch_count, NULL));
  for (int i = 0; i < p->fetch_count; ++i) p->results[i] = outputs[i].tensor;
  return NULL;
}

static weir_status_t* run_step(const run_args_t* args, prepared_t* p) {
  weir_step_spec_t spec = {.feeds = p->feeds,
                           .feed_count = args->feed_count,
                           .fetches = p->fetches,
                           .fetch_count = p->fetch_count,
                           .targets = p->targets,
                           .target_count = args->target_count};
  return weir_session_run(p->session, &spec, p->results);
}

// ---- results ----

// The file of "--out NAME=@FILE" for |name|; NULL: it is printed.
static const char* out_file(const run_args_t* args, const char* name) {
  size_t size = strlen(name);
  for (int i = 0; i < args->out_count; ++i) {
    const char* out = args->outs[i];
    if (strncmp(out, name, size) == 0 && strncmp(out + size, "=@", 2) == 0) return out + size + 2;
  }
  return NULL;
}

static weir_status_t* check_outs(const run_args_t* args, const prepared_t* p) {
  for (int i = 0; i < args->out_count; ++i) {
    char name[1024];
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(args->outs[i], "="), args->outs[i]);
    int k = 0;
    while (k < p->fetch_count && strcmp(p->fetch_names[k], name) != 0) ++k;
    if (!strstr(args->outs[i], "=@"))
      return WEIR_STATUS(INVALID_ARGUMENT, "--out '%s' is not NAME=@FILE.npy", args->outs[i]);
    if (k == p->fetch_count) return WEIR_STATUS(NOT_FOUND, "--out: '%s' is not fetched", name);
  }
  return NULL;
}

static weir_status_t* show_result(const run_args_t* args, const prepared_t* p, int index) {
  const weir_tensor_t* tensor = p->results[index];
  const char* file = out_file(args, p->fetch_names[index]);
  char path[1024];
  snprintf(path, sizeof(path), "%s%d.npy", args->save ? args->save : "", index);
  if (args->save || file) return weir_tensor_save_npy(tensor, file ? file : path);
  char* text = NULL;
  WEIR_TRY(weir_tensor_to_text(tensor, 100, &text));
  printf("%s = %s\n", p->fetch_names[index], text);
  weir_buffer_free(text);
  return NULL;
}

static void print_json_name(const char* name) {
  print_json_text(name);
  fputs(": ", stdout);
}

// One object. All texts are made before the first letter is printed, as one may fail.
static weir_status_t* show_json(const run_args_t* args, const prepared_t* p) {
  char* texts[MAX_ITEMS] = {NULL};
  weir_status_t* status = NULL;
  for (int i = 0; i < p->fetch_count && !status; ++i) {
    const char* file = out_file(args, p->fetch_names[i]);
    status = file ? weir_tensor_save_npy(p->results[i], file)
                  : weir_tensor_to_json(p->results[i], &texts[i]);
  }
  if (!status) fputs("{\"outputs\": {", stdout);
  bool is_first = true;
  for (int i = 0; i < p->fetch_count; ++i) {
    if (!status && texts[i]) {
      if (!is_first) fputs(", ", stdout);
      is_first = false;
      print_json_name(p->fetch_names[i]);
      fputs(texts[i], stdout);
    }
    weir_buffer_free(texts[i]);
  }
  if (!status) puts("}}");
  return status;
}

static weir_status_t* execute(const run_args_t* args, prepared_t* p) {
  if (is_model(args)) WEIR_TRY(load_model(args, p));
  else WEIR_TRY(load_graph(args, p));
  bool is_saved = is_directory(args->path) || ends_with(args->path, "saved_model.pb");
  if (!is_saved || args->init) WEIR_TRY(initialise(args, p));
  WEIR_TRY(resolve(args, p));
  WEIR_TRY(check_outs(args, p));
  WEIR_TRY(p->by_signature ? run_signature(args, p) : run_step(args, p));
  if (args->json) return show_json(args, p);
  for (int i = 0; i < p->fetch_count; ++i) WEIR_TRY(show_result(args, p, i));
  return NULL;
}

static void release(prepared_t* p) {
  for (int i = 0; i < MAX_ITEMS; ++i) {
    weir_tensor_release(p->feeds[i].tensor);
    weir_tensor_release(p->results[i]);
    free(p->names[i]);
  }
  if (!p->model) {
    weir_session_destroy(p->session);
    weir_graph_release(p->graph);
  }
  weir_model_destroy(p->model);
}

// ---- arguments ----

static int parse(run_args_t* run, int argc, char** argv) {
  args_t args = {.argc = argc, .argv = argv};
  while (args.next < argc) {
    const char* at = argv[args.next];
    const char* value = NULL;
    if (run->feed_count == MAX_ITEMS || run->fetch_count == MAX_ITEMS ||
        run->target_count == MAX_ITEMS || run->out_count == MAX_ITEMS) {
      return usage_error(&verb_run, "more than %d feeds, fetches or targets", MAX_ITEMS);
    }
    if (args_option(&args, "feed", &value)) run->feeds[run->feed_count++] = value;
    else if (args_option(&args, "fetch", &value)) run->fetches[run->fetch_count++] = value;
    else if (args_option(&args, "out", &value)) run->outs[run->out_count++] = value;
    else if (args_option(&args, "target", &value)) {
      if (strncmp(value, "grpc", 4) == 0 && strstr(value, "://")) run->session.target = value;
      else run->targets[run->target_count++] = value;
    } else if (args_option(&args, "init", &run->init) || args_option(&args, "save", &run->save) ||
               args_option(&args, "checkpoint", &run->checkpoint) ||
               args_option(&args, "signature", &run->signature) ||
               args_option(&args, "tags", &run->tags) || args_tls(&args, &run->session) ||
               args_running(&args, &run->session))
      continue;
    else if (args_flag(&args, "json")) run->json = true;
    else if (args_option(&args, "threads", &value)) {
      if (!parse_long(value, &run->threads) || run->threads < 0)
        return usage_error(&verb_run, "'%s' is not a number of threads", value);
    } else if (!run->path && (run->path = args_positional(&args))) continue;
    else return unknown_argument(&verb_run, at);
  }
  if (!run->path) return usage_error(&verb_run, "no model or graph given");
  if (run->json && run->save) return usage_error(&verb_run, "one of --json and --save at a time");
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
    .summary = "feed a model or graph, run it, print what was fetched",
    .help =
        "usage: weir run MODEL_DIRECTORY|GRAPH --feed NAME=VALUE [--fetch NAME] [OPTIONS]\n"
        "Of a model, inputs and outputs are named as in its signature ('weir show' tells them), "
        "and\n"
        "all outputs are fetched unless some are named. Of a graph they are names of nodes.\n"
        "VALUE is a number, several separated by commas (a vector), JSON ([[1,2],[3,4]]), a text,\n"
        "@FILE.npy, or random: values between 0 and 1 of the shape that the input has.\n\n"
        "  --feed NAME=VALUE   value of an input or tensor; may be repeated\n"
        "  --fetch NAME        output or tensor to print; may be repeated\n"
        "  --target NAME       node to run; may be repeated\n"
        "  --signature=NAME    of a model (serving_default, or the only one)\n"
        "  --tags=LIST         which graph of a SavedModel (serve)\n"
        "  --checkpoint=P      restore the variables from this checkpoint\n"
        "  --init=NODE         node to run before, as a step of its own (of a graph whose\n"
        "                      variables no checkpoint restores: what initialises them)\n"
        "  --json              print one object: {\"outputs\": {NAME: {\"dtype\", \"shape\", "
        "\"values\"}}}\n"
        "  --out NAME=@FILE    write this output as .npy instead of printing it; may be repeated\n"
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

// serve.c — weir serve: models behind TensorFlow Serving's REST and gRPC APIs.
#include "weir/serve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum { EXIT_LISTEN = 3, GRACE_MS = 10000 };

static int run_serve(int argc, char** argv);

const verb_t verb_serve = {
    .name = "serve",
    .summary = "serve models over REST and gRPC, as TensorFlow Serving does",
    .help =
        "usage: weir serve --model=[NAME=]DIR [--model=...] [OPTIONS]\n"
        "\n"
        "Answers TensorFlow Serving's requests to the models until it is told to end. DIR has a\n"
        "folder for each version of a SavedModel, named by its number, or is a SavedModel itself\n"
        "(version 1). Versions that come are loaded while it serves, and replace older ones.\n"
        "\n"
        "  curl -d '{\"instances\": [[1, 2, 3]]}' http://127.0.0.1:8501/v1/models/NAME:predict\n"
        "\n"
        "Models:\n"
        "  --model=[NAME=]DIR  may be repeated; NAME is the last part of DIR by default\n"
        "  --keep-versions=N|all\n"
        "                      so many of the newest versions serve (1)\n"
        "  --label=[MODEL/]NAME=VERSION\n"
        "                      lets clients ask for /labels/NAME; may be repeated\n"
        "  --poll-ms=N         how often folders are looked at (1000); 0: never\n"
        "  --warm-up           without assets.extra/tf_serving_warmup_requests, run each\n"
        "                      signature once on zeros before a version serves\n"
        "\n"
        "Where it listens:\n"
        "  --port=N            gRPC (8500); 0: any free port\n"
        "  --rest-port=N       HTTP (8501): REST, /metrics, /healthz, /readyz; 0: any free port\n"
        "  --bind=HOST         default 127.0.0.1, which other machines cannot reach; 0.0.0.0:\n"
        "                      every interface\n"
        "  --tls-cert=FILE --tls-key=FILE --tls-ca=FILE --tls-mutual\n"
        "                      TLS, by PEM files; mutual: clients need a certificate\n"
        "  --token-file=FILE   a secret that every request must bear: 'Authorization: Bearer ...'\n"
        "\n"
        "Running:\n"
        "  --max-batch=N       join requests of the same kind up to N rows (they are not joined)\n"
        "  --batch-timeout-us=N\n"
        "                      so long the first one waits for others (0: it takes those that\n"
        "                      wait already)\n"
        "  --threads=N         threads for each model's kernels (one a CPU)\n"
        "\n"
        "Limits:\n"
        "  --max-body-size=BYTES     of a request (128M); more is 413, RESOURCE_EXHAUSTED\n"
        "  --max-requests=N          at a time (1000); more are 429, RESOURCE_EXHAUSTED\n"
        "  --max-connections=N       of each API (1000)\n"
        "  --request-timeout-ms=N    then 504, DEADLINE_EXCEEDED (none)\n"
        "\n"
        "Once it serves it prints 'weir serve: gRPC on port N, REST on port M' to stdout. SIGTERM\n"
        "and SIGINT end it in order: running requests have 10 seconds; a second signal ends it at\n"
        "once. Exit codes: 0 ended as told, 1 a model does not load, 2 wrong usage, 3 cannot\n"
        "listen there.\n",
    .run = run_serve};

// ---- flags ----

enum { MAX_MODELS = 256 };

typedef struct flags_t {
  weir_serve_options_t options;
  const char* models[MAX_MODELS];
  const char* labels[MAX_MODELS];
} flags_t;

// Ports and times that 0 has a meaning for, while an option's 0 is its default.
static int or_none(int value) { return value == 0 ? -1 : value; }

static bool parse_text(args_t* args, weir_serve_options_t* options) {
  return args_option(args, "bind", &options->bind) ||
         args_option(args, "tls-cert", &options->tls_cert) ||
         args_option(args, "tls-key", &options->tls_key) ||
         args_option(args, "tls-ca", &options->tls_ca) ||
         args_option(args, "token-file", &options->token_file);
}

static bool parse_switch(args_t* args, weir_serve_options_t* options) {
  if (args_flag(args, "tls-mutual")) options->is_tls_mutual = true;
  else if (args_flag(args, "warm-up")) options->warm_up = true;
  else return false;
  return true;
}

// Takes "--model" or "--label".
static bool parse_list(args_t* args, flags_t* flags, bool* out_is_good) {
  const char* value = NULL;
  if (args_option(args, "model", &value)) {
    *out_is_good = flags->options.model_count < MAX_MODELS;
    if (*out_is_good) flags->models[flags->options.model_count++] = value;
    return true;
  }
  if (!args_option(args, "label", &value)) return false;
  *out_is_good = flags->options.label_count < MAX_MODELS;
  if (*out_is_good) flags->labels[flags->options.label_count++] = value;
  return true;
}

// Takes an option that is a number; |out_is_good|: whether its value is.
static bool parse_number(args_t* args, weir_serve_options_t* options, bool* out_is_good) {
  const struct {
    const char* name;
    int max;
    bool has_zero;  // 0 is not the default
    int* value;
  } numbers[] = {{"port", 65535, true, &options->port},
                 {"rest-port", 65535, true, &options->rest_port},
                 {"poll-ms", 1 << 30, true, &options->poll_ms},
                 {"threads", 1 << 16, false, &options->threads},
                 {"max-batch", 1 << 30, false, &options->max_batch},
                 {"batch-timeout-us", 60000000, false, &options->batch_timeout_us},
                 {"max-requests", 1 << 30, false, &options->max_requests},
                 {"max-connections", 1 << 30, false, &options->max_connections},
                 {"request-timeout-ms", 1 << 30, false, &options->request_timeout_ms}};
  const char* value = NULL;
  for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); ++i) {
    if (!args_option(args, numbers[i].name, &value)) continue;
    *out_is_good = parse_int(value, numbers[i].max, numbers[i].value);
    if (numbers[i].has_zero) *numbers[i].value = or_none(*numbers[i].value);
    return true;
  }
  return false;
}

static bool parse_rest(args_t* args, weir_serve_options_t* options, bool* out_is_good) {
  const char* value = NULL;
  if (args_option(args, "max-body-size", &value)) {
    *out_is_good = parse_size(value, &options->max_body_size);
    return true;
  }
  if (!args_option(args, "keep-versions", &value)) return false;
  if (strcmp(value, "all") == 0) options->keep_versions = -1;
  else *out_is_good = parse_int(value, 1 << 30, &options->keep_versions) && options->keep_versions;
  return true;
}

// Returns an exit code, or -1 to go on.
static int parse(int argc, char** argv, flags_t* flags) {
  args_t args = {.argc = argc, .argv = argv};
  while (args.next < argc) {
    const char* text = argv[args.next];
    bool is_good = true;
    bool is_known = parse_switch(&args, &flags->options) || parse_text(&args, &flags->options) ||
                    parse_list(&args, flags, &is_good) ||
                    parse_number(&args, &flags->options, &is_good) ||
                    parse_rest(&args, &flags->options, &is_good);
    if (!is_known) return usage_error(&verb_serve, "unknown argument '%s'", text);
    if (!is_good) return usage_error(&verb_serve, "'%s' is out of range or no number", text);
  }
  if (flags->options.model_count > 0) return -1;
  return usage_error(&verb_serve, "no --model is given");
}

// ---- the verb ----

static void stop(void* serve) { weir_serve_stop(serve); }

static int exit_code(weir_code_t code) {
  if (code == WEIR_INVALID_ARGUMENT || code == WEIR_ALREADY_EXISTS) return EXIT_USAGE;
  return code == WEIR_UNAVAILABLE ? EXIT_LISTEN : EXIT_FAILED;
}

static int run_serve(int argc, char** argv) {
  flags_t flags = {.options = {.models = NULL}};
  weir_serve_t* serve = NULL;
  int code = parse(argc, argv, &flags);
  if (code >= 0) return code;
  flags.options.models = flags.models;
  flags.options.labels = flags.labels;
  block_ending_signals();
  weir_status_t* status = weir_serve_create(&flags.options, &serve);
  if (status) {
    code = exit_code(weir_status_code(status));
    fail(status);
    return code;
  }
  printf("weir serve: gRPC on port %d, REST on port %d\n", weir_serve_port(serve),
         weir_serve_rest_port(serve));
  fflush(stdout);
  if (!watch_ending_signals("serve", stop, serve)) {
    weir_serve_destroy(serve, 0);
    return EXIT_FAILED;
  }
  weir_serve_wait(serve, -1);
  unwatch_ending_signals();
  weir_serve_destroy(serve, GRACE_MS);
  return EXIT_OK;
}

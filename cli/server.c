// server.c — weir server: one task of a cluster.
#include "weir/server.h"

#include <stdio.h>

#include "cli.h"

enum { EXIT_LISTEN = 3, GRACE_MS = 5000, CHIEF_PATIENCE_S = 10 };

static int run_server(int argc, char** argv);

const verb_t verb_server = {
    .name = "server",
    .summary = "serve as one task of a cluster (TensorFlow's gRPC protocol)",
    .help =
        "usage: weir server [OPTIONS]\n"
        "       weir server --shut-down=ADDRESS [TLS OPTIONS] [--token-file=FILE]\n"
        "\n"
        "Serves until it is told to end. Which task of which cluster this process is, the first\n"
        "of these says:\n"
        "  1. --cluster, --job and --task;\n"
        "  2. TF_CONFIG, as Kubernetes' TFJob sets it;\n"
        "  3. Slurm: 'srun weir server' makes every task of the step a task of the cluster;\n"
        "  4. none of them: a cluster of one task, /job:localhost/task:0, on --port.\n"
        "\n"
        "The cluster:\n"
        "  --cluster=SPEC    jobs separated by commas: 'ps|h1:2222;h2:2222,worker|h3:2222'\n"
        "  --job=NAME        the job of this process (over what TF_CONFIG says, too)\n"
        "  --task=N          its number in the job (default 0)\n"
        "  --jobs=LIST       Slurm's tasks in order of rank: 'ps:1,worker:3' (default: workers)\n"
        "  --no-environment  do not look at TF_CONFIG and SLURM_*\n"
        "  --etcd=HOST:PORT[,...] --etcd-prefix=PREFIX\n"
        "                    tasks say there, under keys with PREFIX, where they are; those whose\n"
        "                    address is '-' in the cluster are found by that ('ps|-;-')\n"
        "  --advertise=HOST  where the others find this task then (default: --bind or, where that\n"
        "                    is every interface, this machine's name)\n"
        "\n"
        "Where it listens:\n"
        "  --port=N          default: what the cluster says; alone: any that is free. Slurm: of\n"
        "                    the first task on each node, the others follow (default 8888)\n"
        "  --bind=HOST       default 127.0.0.1, which other machines cannot reach; 0.0.0.0: every\n"
        "                    interface\n"
        "  --unix=PATH       a Unix socket instead of a port\n"
        "  --tls-cert=FILE --tls-key=FILE --tls-ca=FILE --tls-mutual\n"
        "                    TLS, by PEM files, for the monitoring pages, too; mutual: clients\n"
        "                    need a certificate\n"
        "  --token-file=FILE a secret that clients and tasks must send with every call\n"
        "  --file-roots=DIR[:DIR...]\n"
        "                    the folders that graphs may read and write (default: all)\n"
        "\n"
        "What clients may ask for, of which more is RESOURCE_EXHAUSTED:\n"
        "  --max-graph-size=BYTES    of a session's graph (2 GiB)\n"
        "  --max-message-size=BYTES  of a message, and so of a tensor that arrives (4 GiB)\n"
        "  --max-connections=N       (10000, or half of the files that the process may open)\n"
        "  --max-steps=N             that run at a time (10000)\n"
        "  --max-calls=N             that are not answered yet (100000)\n"
        "\n"
        "Running:\n"
        "  --devices=LIST    devices of this task: \"cpu:2,guard:1\" (cpu:1)\n"
        "  --place=HOW       where its master puts nodes without a device: graph, cost[:TRACE],\n"
        "                    random:SEED, /job:ps (graph: on this task)\n"
        "  --rates=FILE      for cost: how fast the tasks are, as 'weir place --print-rates\n"
        "                    --tasks=LIST' tells (default: it measures them)\n"
        "  --transport=HOW   how large tensors go between tasks: auto, ucx (by UCX, unencrypted:\n"
        "                    not with TLS), ucx:plain (with it, too) (auto)\n"
        "  --threads=N       threads for kernels (default: one a CPU)\n"
        "  --plugin=FILE     load ops of a shared object first; may be repeated\n"
        "  --metrics-port=N  HTTP with /metrics (Prometheus) and /healthz; 0: any free port\n"
        "  --exit-with-chief[=SECONDS]\n"
        "                    end when the chief (chief:0, master:0 or worker:0) has answered once\n"
        "                    and then not for so long (default 10)\n"
        "  --shut-down=ADDRESS\n"
        "                    do not serve; tell the server at ADDRESS to end\n"
        "TF_CPP_MIN_LOG_LEVEL (0 to 3, default 2) says how much it reports on stderr.\n"
        "WEIR_SAME_HOST=0 makes it use the network also for tensors between tasks of one machine.\n"
        "WEIR_TRANSPORT says what --transport does, where that is not given.\n"
        "\n"
        "Once it serves it prints 'weir server listening on port N' (or 'on unix:PATH') to "
        "stdout.\n"
        "SIGTERM and SIGINT end it in order: running calls have 5 seconds; a second signal ends "
        "it\n"
        "at once. Exit codes: 0 ended as told, 1 failure, 2 wrong usage or a bad description of\n"
        "the cluster, 3 cannot listen there.\n",
    .run = run_server};

// ---- flags ----

typedef struct flags_t {
  weir_server_options_t options;
  const char* shut_down;
} flags_t;

// Takes a flag of the limits; |out_is_good|: whether its value is.
static bool parse_limit(args_t* args, weir_server_options_t* options, bool* out_is_good) {
  const struct {
    const char* name;
    int* value;
  } counts[] = {{"max-connections", &options->max_connections},
                {"max-steps", &options->max_steps},
                {"max-calls", &options->max_calls}};
  const struct {
    const char* name;
    uint64_t* value;
  } sizes[] = {{"max-graph-size", &options->max_graph_size},
               {"max-message-size", &options->max_message_size}};
  const char* value = NULL;
  for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); ++i) {
    if (!args_option(args, counts[i].name, &value)) continue;
    *out_is_good = parse_int(value, 1 << 30, counts[i].value) && *counts[i].value > 0;
    return true;
  }
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
    if (!args_option(args, sizes[i].name, &value)) continue;
    *out_is_good = parse_size(value, sizes[i].value);
    return true;
  }
  return false;
}

static bool parse_text(args_t* args, flags_t* flags) {
  weir_server_options_t* options = &flags->options;
  const struct {
    const char* name;
    const char** value;
  } texts[] = {{"cluster", &options->cluster},
               {"job", &options->job},
               {"jobs", &options->jobs},
               {"bind", &options->bind},
               {"unix", &options->unix_path},
               {"tls-cert", &options->tls_cert},
               {"tls-key", &options->tls_key},
               {"tls-ca", &options->tls_ca},
               {"shut-down", &flags->shut_down},
               {"devices", &options->devices},
               {"place", &options->place},
               {"rates", &options->rates},
               {"transport", &options->transport},
               {"token-file", &options->token_file},
               {"file-roots", &options->file_roots},
               {"etcd", &options->etcd},
               {"etcd-prefix", &options->etcd_prefix},
               {"advertise", &options->advertise}};
  for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); ++i) {
    if (args_option(args, texts[i].name, texts[i].value)) return true;
  }
  return false;
}

static bool parse_switch(args_t* args, weir_server_options_t* options) {
  if (args_flag(args, "tls-mutual")) options->is_tls_mutual = true;
  else if (args_flag(args, "no-environment")) options->use_environment = false;
  else if (args_flag(args, "exit-with-chief")) options->exit_with_chief_s = CHIEF_PATIENCE_S;
  else return false;
  return true;
}

// Returns an exit code, or -1 to go on.
static int parse(int argc, char** argv, flags_t* flags) {
  args_t args = {.argc = argc, .argv = argv};
  weir_server_options_t* options = &flags->options;
  while (args.next < argc) {
    const char* text = argv[args.next];
    const char* value = NULL;
    bool is_good = true;
    if (parse_switch(&args, options) || parse_text(&args, flags)) continue;
    if (parse_limit(&args, options, &is_good)) {
      if (is_good) continue;
    } else if (args_option(&args, "task", &value)) {
      is_good = parse_int(value, 1 << 30, &options->task);
    } else if (args_option(&args, "port", &value)) {
      is_good = parse_int(value, 65535, &options->port);
    } else if (args_option(&args, "threads", &value)) {
      is_good = parse_int(value, 1 << 16, &options->threads);
    } else if (args_option(&args, "metrics-port", &value)) {
      is_good = parse_int(value, 65535, &options->metrics_port);
      if (options->metrics_port == 0) options->metrics_port = -1;
    } else if (args_option(&args, "exit-with-chief", &value)) {
      is_good =
          parse_int(value, 1 << 20, &options->exit_with_chief_s) && options->exit_with_chief_s > 0;
    } else {
      return unknown_argument(&verb_server, text);
    }
    if (!is_good) return usage_error(&verb_server, "'%s' is out of range or no number", text);
  }
  return -1;
}

// ---- serving ----

static void stop(void* server) { weir_server_stop(server); }

static int serve(weir_server_t* server) {
  if (!watch_ending_signals("server", stop, server)) {
    weir_server_destroy(server, 0);
    return EXIT_FAILED;
  }
  weir_server_end_t end = weir_server_wait(server, -1);
  if (end == WEIR_SERVER_CHIEF_GONE) fputs("weir server: the chief is gone: ending\n", stderr);
  if (end == WEIR_SERVER_SHUT_DOWN) fputs("weir server: told to end by a client\n", stderr);
  unwatch_ending_signals();
  weir_server_destroy(server, GRACE_MS);
  return EXIT_OK;
}

// ---- the verb ----

static int exit_code(weir_code_t code) {
  if (code == WEIR_INVALID_ARGUMENT || code == WEIR_ALREADY_EXISTS) return EXIT_USAGE;
  return code == WEIR_UNAVAILABLE ? EXIT_LISTEN : EXIT_FAILED;
}

static void announce(const weir_server_t* server) {
  int port = weir_server_port(server), metrics_port = weir_server_metrics_port(server);
  if (metrics_port) printf("weir server metrics on port %d\n", metrics_port);
  fprintf(stderr, "weir server: %s at %s\n", weir_server_task_name(server),
          weir_server_address(server));
  // Last, for who waits for it: everything is up.
  if (port) printf("weir server listening on port %d\n", port);
  else printf("weir server listening on %s\n", weir_server_address(server));
  fflush(stdout);
}

static int run_server(int argc, char** argv) {
  flags_t flags = {.options = {.use_environment = true}};
  weir_server_t* server = NULL;
  int code = parse(argc, argv, &flags);
  if (code >= 0) return code;
  if (flags.shut_down) {
    weir_status_t* status = weir_server_shut_down(flags.shut_down, &flags.options);
    return status ? fail(status) : EXIT_OK;
  }
  block_ending_signals();
  weir_status_t* status = weir_server_create(&flags.options, &server);
  if (status) {
    code = exit_code(weir_status_code(status));
    fail(status);
    return code;
  }
  announce(server);
  return serve(server);
}

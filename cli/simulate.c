// simulate.c — weir simulate: how fast a cluster would train, from what a few of its parts cost.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "simulation.h"

enum { MOST_COUNTS = 64, MOST_TASKS = 100000, MOST_STEPS = 10000000, MOST_MESSAGES = 10000000 };

typedef struct simulate_t {
  cluster_model_t model;
  int workers[MOST_COUNTS], backups[MOST_COUNTS];
  int worker_counts, backup_counts;
  bool json;
} simulate_t;

// "1,2,4" as numbers from |least|.
static bool parse_counts(const char* text, int least, int* out_counts, int* out_count) {
  char item[16];
  for (*out_count = 0; *out_count < MOST_COUNTS; ++text) {
    const size_t size = strcspn(text, ",");
    if (size >= sizeof(item)) return false;
    memcpy(item, text, size);
    item[size] = 0;
    int* count = &out_counts[(*out_count)++];
    if (!parse_int(item, MOST_TASKS, count) || *count < least) return false;
    text += size;
    if (!*text) return true;
  }
  return false;
}

// A number from 0 to |most|, in |unit|s.
static bool parse_amount(const char* text, double most, double unit, double* out_amount) {
  if (!parse_double(text, out_amount) || !(*out_amount >= 0 && *out_amount <= most)) return false;
  *out_amount *= unit;
  return true;
}

static bool parse_bytes(const char* text, double* out_bytes) {
  uint64_t size = 0;
  if (strcmp(text, "0") != 0 && !parse_size(text, &size)) return false;
  *out_bytes = (double)size;
  return true;
}

// SHARE:FACTOR
static bool parse_slow(const char* text, cluster_model_t* model) {
  char share[32];
  const char* colon = strchr(text, ':');
  if (!colon || (size_t)(colon - text) >= sizeof(share)) return false;
  memcpy(share, text, (size_t)(colon - text));
  share[colon - text] = 0;
  return parse_amount(share, 1, 1, &model->slow_share) &&
         parse_amount(colon + 1, 1e6, 1, &model->slow_factor);
}

static bool parse_seed(const char* text, uint64_t* out_seed) {
  long seed = 0;
  const bool is_good = parse_long(text, &seed) && seed >= 0;
  *out_seed = (uint64_t)seed;
  return is_good;
}

// 0: no such option; -1: not a value for it.
static int take_option(simulate_t* s, args_t* args) {
  cluster_model_t* m = &s->model;
  const char* v = NULL;
  bool is_good = false;
  if (args_option(args, "workers", &v)) is_good = parse_counts(v, 1, s->workers, &s->worker_counts);
  else if (args_option(args, "backups", &v))
    is_good = parse_counts(v, 0, s->backups, &s->backup_counts);
  else if (args_option(args, "ps", &v))
    is_good = parse_int(v, MOST_TASKS, &m->servers) && m->servers > 0;
  else if (args_option(args, "fetch", &v)) is_good = parse_bytes(v, &m->fetched);
  else if (args_option(args, "push", &v)) is_good = parse_bytes(v, &m->pushed);
  else if (args_option(args, "compute", &v)) is_good = parse_amount(v, 1e9, 1e-3, &m->compute);
  else if (args_option(args, "spread", &v)) is_good = parse_amount(v, 5, 1, &m->spread);
  else if (args_option(args, "slow", &v)) is_good = parse_slow(v, m);
  else if (args_option(args, "latency", &v)) is_good = parse_amount(v, 1e9, 1e-6, &m->latency);
  else if (args_option(args, "request", &v)) is_good = parse_amount(v, 1e9, 1e-6, &m->request);
  else if (args_option(args, "apply", &v)) is_good = parse_amount(v, 1e6, 1e-9, &m->apply);
  else if (args_option(args, "bandwidth", &v)) {
    is_good = parse_amount(v, 1e6, 0.125e9, &m->bandwidth);
    if (m->bandwidth == 0) m->bandwidth = INFINITY;
  } else if (args_option(args, "cores", &v)) is_good = parse_int(v, MOST_TASKS, &m->cores);
  else if (args_option(args, "steps", &v))
    is_good = parse_int(v, MOST_STEPS, &m->steps) && m->steps > 0;
  else if (args_option(args, "seed", &v)) is_good = parse_seed(v, &m->seed);
  else return 0;
  return is_good ? 1 : -1;
}

static int parse(simulate_t* s, int argc, char** argv) {
  args_t args = {.argc = argc, .argv = argv};
  while (args.next < argc) {
    const char* at = argv[args.next];
    const int taken = take_option(s, &args);
    if (taken > 0) continue;
    if (taken < 0)
      return usage_error(&verb_simulate, "'%s' is not a valid value for '%s'", argv[args.next - 1],
                         at);
    if (args_flag(&args, "async")) s->model.is_synchronous = false;
    else if (args_flag(&args, "json")) s->json = true;
    else return unknown_argument(&verb_simulate, at);
  }
  if (!s->model.is_synchronous && (s->backup_counts > 1 || s->backups[0] > 0))
    return usage_error(&verb_simulate, "--async takes every gradient: there are no --backups");
  return EXIT_OK;
}

static void print_row(const simulate_t* s, const simulated_t* r, bool is_first) {
  const cluster_model_t* m = &s->model;
  if (s->json) {
    printf(
        "%s{\"workers\": %d, \"backups\": %d, \"median_ms\": %.6g, \"p10_ms\": %.6g, "
        "\"p90_ms\": %.6g, \"steps_per_second\": %.6g, \"dropped\": %.4g}",
        is_first ? "[" : ",\n ", m->workers, m->backups, 1e3 * r->median, 1e3 * r->p10,
        1e3 * r->p90, r->steps_per_second, r->dropped);
    return;
  }
  if (is_first) printf("workers backups    median       p10       p90     steps/s  dropped\n");
  printf("%7d %7d %9.3f %9.3f %9.3f ms %9.4g %6.1f %%\n", m->workers, m->backups, 1e3 * r->median,
         1e3 * r->p10, 1e3 * r->p90, r->steps_per_second, 100 * r->dropped);
}

static int run_rows(simulate_t* s) {
  for (int i = 0; i < s->worker_counts; ++i) {
    for (int k = 0; k < s->backup_counts; ++k) {
      simulated_t result;
      s->model.workers = s->workers[i];
      s->model.backups = s->backups[k];
      const int64_t tasks = s->model.workers + s->model.backups;
      if (tasks * s->model.servers > MOST_MESSAGES)
        return usage_error(&verb_simulate, "%lld workers with %d servers are too many",
                           (long long)tasks, s->model.servers);
      if (!simulate_cluster(&s->model, &result)) {
        fprintf(stderr, "weir: RESOURCE_EXHAUSTED: no memory for %lld workers\n", (long long)tasks);
        return EXIT_FAILED;
      }
      print_row(s, &result, i == 0 && k == 0);
    }
  }
  if (s->json) printf("]\n");
  return EXIT_OK;
}

static int run_simulate(int argc, char** argv) {
  simulate_t s = {.model = {.is_synchronous = true,
                            .servers = 1,
                            .slow_factor = 1,
                            .latency = 50e-6,
                            .request = 20e-6,
                            .bandwidth = 1.25e9,
                            .steps = 200,
                            .seed = 1},
                  .workers = {1},
                  .worker_counts = 1,
                  .backup_counts = 1};
  const int code = parse(&s, argc, argv);
  return code == EXIT_OK ? run_rows(&s) : code;
}

const verb_t verb_simulate = {
    .name = "simulate",
    .summary = "tell how fast a cluster would train, from what its parts cost",
    .help =
        "usage: weir simulate [OPTIONS]\n"
        "Plays the messages of a training cluster through in simulated time: workers fetch "
        "parameters from\n"
        "servers, compute, and hand gradients in; messages queue for links and processors. Prints "
        "the time of\n"
        "a step for each number of workers. Nothing runs.\n\n"
        "  --workers=LIST    gradients a step takes: 1,10,100 (1)\n"
        "  --backups=LIST    workers more than that (0)\n"
        "  --async           workers do not wait for each other; times are of each one's steps\n"
        "  --ps=N            parameter servers (1)\n"
        "  --fetch=BYTES     what a worker fetches each step, from all servers: 100M (0)\n"
        "  --push=BYTES      and what it sends (0)\n"
        "  --compute=MS      a worker's computation, the median (0)\n"
        "  --spread=S        standard deviation of its logarithm (0)\n"
        "  --slow=P:F        a share P of the steps takes F times as long (0:1)\n"
        "  --latency=US      of a message, one way (50)\n"
        "  --bandwidth=GBIT  a second, of each task's link in each direction; 0: no limit (10)\n"
        "  --request=US      a server's processor for each message (20)\n"
        "  --apply=NS        and for each byte that it applies (0)\n"
        "  --cores=N         all tasks on one machine of N cores; 0: each has its own (0)\n"
        "  --steps=N         steps counted (200)\n"
        "  --seed=N          of chance (1)\n"
        "  --json            an array with an object for each row\n",
    .run = run_simulate};

// transfers.c — How fast values go from one task of a cluster to another, by steps that do nothing
// else.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli.h"

enum { ATTEMPTS = 30, FEW = 3, MANY = 19, FAN = 64, MAX_NAME = 256 };
// How many numbers are worked with for a while, and are sent.
enum { WORK = 1 << 18, SMALL = 1 << 16, LARGE = 1 << 18, LARGER = 1 << 20 };

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

// How long a step takes: the shortest of some, or the one that is longer than |rank| of them.
static weir_status_t* time_step(const weir_session_options_t* options, weir_graph_t* graph,
                                weir_node_t* last, int rank, double* out_ns) {
  double took[ATTEMPTS];
  weir_session_t* session = NULL;
  weir_status_t* status = weir_session_create(graph, options, &session);
  for (int i = 0; i < ATTEMPTS && !status; ++i) {
    double start = now_ns();
    status = weir_session_run_target(session, last);
    took[i] = now_ns() - start;
  }
  weir_session_destroy(session);
  if (status) return status;
  qsort(took, ATTEMPTS, sizeof(*took), compare);
  *out_ns = took[rank];
  return NULL;
}

// Numbers that each task has for itself in a step.
static weir_edge_t draw(weir_scope_t* scope, int count) {
  return weir_random_uniform(scope, weir_const_ints(scope, &count, 1), WEIR_DTYPE_FLOAT);
}

// How long a step takes in which a number goes |length| times from one of the two tasks to the
// other, each of which works for a while before it hands it on: as in real steps, threads that wait
// for a message have gone to sleep when it comes. How long one takes to wake up differs: the
// luckiest step does not count.
static weir_status_t* time_errand(const weir_session_options_t* options, const char* const* tasks,
                                  int length, double* out_ns) {
  weir_graph_t* graph = NULL;
  WEIR_TRY(weir_graph_create(&graph));
  weir_scope_t* root = weir_scope_create(graph);
  weir_scope_t* scopes[] = {weir_scope_on(root, tasks[0]), weir_scope_on(root, tasks[1])};
  weir_edge_t work[] = {draw(scopes[0], WORK), draw(scopes[1], WORK)};
  weir_edge_t x = weir_const_float(scopes[0], 1);
  for (int i = 0; i < length; ++i) {
    weir_scope_t* scope = scopes[i % 2];
    x = weir_mean(scope, weir_mul(scope, x, work[i % 2]), weir_const_int(scope, 0));
  }
  weir_status_t* status = weir_scope_finish(root);
  if (!status) status = time_step(options, graph, x.node, ATTEMPTS / 4, out_ns);
  weir_graph_release(graph);
  return status;
}

// How long a step takes that draws |count| numbers and squares them |length| times, in turn on the
// two tasks.
static weir_status_t* time_chain(const weir_session_options_t* options, const char* const* tasks,
                                 int length, int count, double* out_ns) {
  weir_graph_t* graph = NULL;
  WEIR_TRY(weir_graph_create(&graph));
  weir_scope_t* root = weir_scope_create(graph);
  weir_scope_t* scopes[] = {weir_scope_on(root, tasks[0]), weir_scope_on(root, tasks[1])};
  weir_edge_t shape = weir_const_ints(scopes[0], &count, 1);
  weir_edge_t x = weir_random_uniform(scopes[0], shape, WEIR_DTYPE_FLOAT);
  for (int i = 0; i < length; ++i) x = weir_square(scopes[i % 2], x);
  weir_status_t* status = weir_scope_finish(root);
  if (!status) status = time_step(options, graph, x.node, 0, out_ns);
  weir_graph_release(graph);
  return status;
}

// How long a step takes in which |length| values are made on the first task, one after the other,
// and used on the second.
static weir_status_t* time_fan(const weir_session_options_t* options, const char* const* tasks,
                               int length, double* out_ns) {
  weir_graph_t* graph = NULL;
  WEIR_TRY(weir_graph_create(&graph));
  const int count = 1;
  weir_scope_t* root = weir_scope_create(graph);
  weir_scope_t* scopes[] = {weir_scope_on(root, tasks[0]), weir_scope_on(root, tasks[1])};
  weir_edge_t shape = weir_const_ints(scopes[0], &count, 1);
  weir_edge_t x = weir_random_uniform(scopes[0], shape, WEIR_DTYPE_FLOAT), sum = x;
  for (int i = 0; i < length; ++i) {
    x = weir_square(scopes[0], x);
    sum = weir_add(scopes[1], sum, x);
  }
  weir_status_t* status = weir_scope_finish(root);
  if (!status) status = time_step(options, graph, sum.node, 0, out_ns);
  weir_graph_release(graph);
  return status;
}

// What one errand more takes.
static weir_status_t* measure_errand(const weir_session_options_t* options,
                                     const char* const* tasks, double* out_ns) {
  double few = 0, many = 0;
  WEIR_TRY(time_errand(options, tasks, FEW, &few));
  WEIR_TRY(time_errand(options, tasks, MANY, &many));
  *out_ns = (many - few) / (MANY - FEW);
  return NULL;
}

typedef struct more_t {
  double few_ns;  // of the whole step
  double ns;      // for one square more
} more_t;

static weir_status_t* measure(const weir_session_options_t* options, const char* const* tasks,
                              int count, more_t* out) {
  double many = 0;
  WEIR_TRY(time_chain(options, tasks, FEW, count, &out->few_ns));
  WEIR_TRY(time_chain(options, tasks, MANY, count, &many));
  out->ns = (many - out->few_ns) / (MANY - FEW);
  return NULL;
}

static double at_least(double value, double least) { return value < least ? least : value; }

// What |count| numbers take on their way between two tasks, besides what a single one does.
static weir_status_t* measure_bytes(const weir_session_options_t* options, const char* first,
                                    const char* other, int count, double base_ns, double* out_ns) {
  const char *stay[] = {first, first}, *cross[] = {first, other};
  more_t stays, crosses;
  WEIR_TRY(measure(options, stay, count, &stays));
  WEIR_TRY(measure(options, cross, count, &crosses));
  *out_ns = at_least(crosses.ns - stays.ns - base_ns, 1);
  return NULL;
}

// How the time of a message grows with its size: large ones go another way, which takes time to
// begin with, and is faster then.
typedef struct growth_t {
  double copy_bytes, large_ns, small_bytes;
} growth_t;

static weir_status_t* measure_growth(const weir_session_options_t* options, const char* first,
                                     const char* other, double base_ns, growth_t* out) {
  double small = 0, large = 0, larger = 0;
  WEIR_TRY(measure_bytes(options, first, other, SMALL, base_ns, &small));
  WEIR_TRY(measure_bytes(options, first, other, LARGE, base_ns, &large));
  WEIR_TRY(measure_bytes(options, first, other, LARGER, base_ns, &larger));
  double number_ns = at_least(larger - large, 1) / (LARGER - LARGE);
  *out = (growth_t){.copy_bytes = 4e9 / number_ns,
                    .large_ns = at_least(large - LARGE * number_ns, 0),
                    .small_bytes = 4e9 * SMALL / small};
  return NULL;
}

// Between the first task and |other|.
static weir_status_t* print_task(const weir_session_options_t* options, const char* first,
                                 const char* other, const char* rates) {
  const char *stay[] = {first, first}, *cross[] = {first, other};
  more_t stays, crosses;
  growth_t growth;
  double works = 0, goes = 0, narrow = 0, wide = 0;
  WEIR_TRY(measure(options, stay, 1, &stays));
  WEIR_TRY(measure(options, cross, 1, &crosses));
  WEIR_TRY(measure_errand(options, stay, &works));
  WEIR_TRY(measure_errand(options, cross, &goes));
  WEIR_TRY(time_fan(options, cross, FEW, &narrow));
  WEIR_TRY(time_fan(options, cross, FEW + FAN, &wide));
  double awake = at_least(crosses.ns - stays.ns, 1);
  WEIR_TRY(measure_growth(options, first, other, awake, &growth));
  printf(
      "%s/device:CPU:0 %s copy_bytes=%.6g copy_ns=%.6g large_ns=%.6g small_bytes=%.6g "
      "message_ns=%.6g step_ns=%.6g\n",
      other, rates, growth.copy_bytes, at_least(goes - works, 1), growth.large_ns,
      growth.small_bytes, at_least((wide - narrow) / FAN, 0),
      at_least(crosses.few_ns - (FEW - 1) * awake, 0));
  return NULL;
}

// Whether a rate, "step_ns=0", is one that print_task measures.
static bool is_of_task(const char* rate) {
  static const char* const own[] = {
      "copy_bytes=", "copy_ns=", "message_ns=", "step_ns=", "large_ns=", "small_bytes="};
  for (size_t i = 0; i < sizeof(own) / sizeof(*own); ++i)
    if (!strncmp(rate, own[i], strlen(own[i]))) return true;
  return false;
}

// Takes the name of the device, and what print_task measures, out of a line of rates.
static void keep_rates(char* line) {
  char *rest = NULL, *end = line;
  strtok_r(line, " ", &rest);
  for (char* rate; (rate = strtok_r(NULL, " ", &rest));) {
    size_t size = strlen(rate);
    if (is_of_task(rate)) continue;
    if (end > line) *end++ = ' ';
    memmove(end, rate, size);
    end += size;
  }
  *end = 0;
}

// What the rates of this process say of its CPU, for the lines of all tasks.
static weir_status_t* cpu_rates(char** out_rates) {
  weir_graph_t* graph = NULL;
  weir_session_t* session = NULL;
  WEIR_TRY(weir_graph_create(&graph));
  weir_status_t* status = weir_session_create(graph, NULL, &session);
  char* text = NULL;
  if (!status) status = weir_session_describe_rates(session, &text);
  if (!status) {
    text[strcspn(text, "\n")] = 0;
    keep_rates(text);
    *out_rates = strdup(text);
    if (!*out_rates) status = WEIR_STATUS(RESOURCE_EXHAUSTED, "no memory for a line");
  }
  weir_buffer_free(text);
  weir_session_destroy(session);
  weir_graph_release(graph);
  return status;
}

// Takes the next of |tasks|, separated by commas.
static bool next_task(const char** tasks, char* out_name) {
  size_t size = strcspn(*tasks, ",");
  if (!size || size >= MAX_NAME) return false;
  memcpy(out_name, *tasks, size);
  out_name[size] = 0;
  *tasks += size + ((*tasks)[size] == ',');
  return true;
}

weir_status_t* print_transfers(const weir_session_options_t* options, const char* tasks) {
  char first[MAX_NAME], other[MAX_NAME];
  char* rates = NULL;
  const char* rest = tasks;
  if (!next_task(&rest, first) || !*rest)
    return WEIR_STATUS(INVALID_ARGUMENT, "'%s' does not name two tasks or more", tasks);
  weir_status_t* status = cpu_rates(&rates);
  rest = tasks;
  while (!status && next_task(&rest, other)) status = print_task(options, first, other, rates);
  free(rates);
  return status;
}

// cudnn_choose.c — Which of cuDNN's engines computes a convolution.
//
// cuDNN proposes configurations of engines: those it thinks the fastest, best first, and those that
// work for almost anything, among which are the fastest for some. Whatever works is run, and what
// is far behind the best is not run a second time. A search takes a moment each time that the
// convolution runs, with the best so far, so that no step waits long. The fastest is remembered on
// disk in the end, so that the next process need not search.
#include <string.h>

#include "base/log.h"
#include "device/cuda/cuda_cache.h"
#include "kernel/conv/cudnn_internal.h"

// ---- choices: a configuration as numbers ----

enum { MOST_KNOBS = 64 };

typedef struct knob_t {
  int64_t kind, value;
} knob_t;

// All of it is compared: no padding between the members.
typedef struct choice_t {
  int64_t engine;
  int64_t knob_count;
  knob_t knobs[MOST_KNOBS];
} choice_t;

static bool read_knob(const cudnn_t* dnn, dnn_t knob, knob_t* out_knob) {
  int kind = 0;
  int64_t count = 0;
  const dnn_functions_t* call = &dnn->call;
  if (call->get(knob, DNN_KNOB_KIND, DNN_TYPE_KNOB, 1, &count, &kind) != 0) return false;
  out_knob->kind = kind;
  return call->get(knob, DNN_KNOB_VALUE, DNN_TYPE_INT64, 1, &count, &out_knob->value) == 0;
}

static bool read_knobs(const cudnn_t* dnn, dnn_t config, choice_t* out_choice) {
  dnn_t knobs[MOST_KNOBS] = {NULL};
  int64_t count = 0;
  const dnn_functions_t* call = &dnn->call;
  int result = 0;
  for (int i = 0; i < MOST_KNOBS && !result; ++i) result = call->make(DNN_KNOB, &knobs[i]);
  if (!result)
    result = call->get(config, DNN_CONFIG_KNOBS, DNN_TYPE_DESCRIPTOR, MOST_KNOBS, &count, knobs);
  bool is_read = !result && count <= MOST_KNOBS;
  for (int64_t i = 0; i < count && is_read; ++i)
    is_read = read_knob(dnn, knobs[i], &out_choice->knobs[i]);
  for (int i = 0; i < MOST_KNOBS; ++i) weir_cudnn_drop(dnn, knobs[i]);
  out_choice->knob_count = count;
  return is_read;
}

// The caller drops it.
static dnn_t engine_of(const cudnn_t* dnn, dnn_t config) {
  dnn_t engine = NULL;
  int64_t count = 0;
  const dnn_functions_t* call = &dnn->call;
  if (call->make(DNN_ENGINE, &engine) != 0) return NULL;
  if (call->get(config, DNN_CONFIG_ENGINE, DNN_TYPE_DESCRIPTOR, 1, &count, &engine) == 0)
    return engine;
  weir_cudnn_drop(dnn, engine);
  return NULL;
}

// False: cuDNN does not tell. It can be run then, but not be remembered.
static bool read_choice(const cudnn_t* dnn, dnn_t config, choice_t* out_choice) {
  int64_t count = 0;
  memset(out_choice, 0, sizeof(*out_choice));
  dnn_t engine = engine_of(dnn, config);
  bool is_read = engine && dnn->call.get(engine, DNN_ENGINE_INDEX, DNN_TYPE_INT64, 1, &count,
                                         &out_choice->engine) == 0;
  weir_cudnn_drop(dnn, engine);
  return is_read && read_knobs(dnn, config, out_choice);
}

static int make_engine(const cudnn_t* dnn, dnn_t graph, int64_t index, dnn_t* out_engine) {
  const dnn_functions_t* call = &dnn->call;
  int result = call->make(DNN_ENGINE, out_engine);
  if (!result) result = call->set(*out_engine, DNN_ENGINE_GRAPH, DNN_TYPE_DESCRIPTOR, 1, &graph);
  if (!result) result = call->set(*out_engine, DNN_ENGINE_INDEX, DNN_TYPE_INT64, 1, &index);
  return result ? result : call->finish(*out_engine);
}

static int make_knob(const cudnn_t* dnn, const knob_t* from, dnn_t* out_knob) {
  const dnn_functions_t* call = &dnn->call;
  int kind = (int)from->kind;
  int result = call->make(DNN_KNOB, out_knob);
  if (!result) result = call->set(*out_knob, DNN_KNOB_KIND, DNN_TYPE_KNOB, 1, &kind);
  if (!result) result = call->set(*out_knob, DNN_KNOB_VALUE, DNN_TYPE_INT64, 1, &from->value);
  return result ? result : call->finish(*out_knob);
}

// NULL: cuDNN has none like it any more. The caller drops it.
static dnn_t config_of(const cudnn_t* dnn, dnn_t graph, const choice_t* choice) {
  dnn_t engine = NULL, config = NULL, knobs[MOST_KNOBS] = {NULL};
  const dnn_functions_t* call = &dnn->call;
  int64_t count = choice->knob_count;
  if (count < 0 || count > MOST_KNOBS) return NULL;
  int result = make_engine(dnn, graph, choice->engine, &engine);
  for (int64_t i = 0; i < count && !result; ++i)
    result = make_knob(dnn, &choice->knobs[i], &knobs[i]);
  if (!result) result = call->make(DNN_CONFIG, &config);
  if (!result) result = call->set(config, DNN_CONFIG_ENGINE, DNN_TYPE_DESCRIPTOR, 1, &engine);
  if (!result && count > 0)
    result = call->set(config, DNN_CONFIG_KNOBS, DNN_TYPE_DESCRIPTOR, count, knobs);
  if (!result) result = call->finish(config);
  for (int64_t i = 0; i < count; ++i) weir_cudnn_drop(dnn, knobs[i]);
  weir_cudnn_drop(dnn, engine);
  if (!result) return config;
  weir_cudnn_drop(dnn, config);
  return NULL;
}

// ---- plans ----

// Whether a list of notes of |engine| has one of |unwanted|.
static bool has_note(const cudnn_t* dnn, dnn_t engine, int attribute, int type, unsigned unwanted) {
  enum { MOST = 16 };
  int notes[MOST];
  int64_t count = 0;
  if (dnn->call.get(engine, attribute, type, MOST, &count, notes) != 0) return false;
  for (int64_t i = 0; i < WEIR_MIN(count, MOST); ++i) {
    if (notes[i] >= 0 && notes[i] < 32 && (unwanted >> notes[i] & 1)) return true;
  }
  return false;
}

// Whether an engine compiles kernels first, which takes long, rounds floats to TF32 where that is
// not allowed, or adds in any order where that is not.
static bool is_unwanted(const cudnn_task_t* task, dnn_t config) {
  const cudnn_t* dnn = task->dnn;
  unsigned notes = 0;
  if (task->conv->dtype == WEIR_DTYPE_FLOAT && !weir_cuda_allows_tf32(dnn->device))
    notes |= 1u << DNN_NOTE_TENSOR_CORE | 1u << DNN_NOTE_DOWN_CONVERT;
  if (weir_cuda_is_deterministic(dnn->device)) notes |= 1u << DNN_NOTE_NONDETERMINISTIC;
  dnn_t engine = engine_of(dnn, config);
  bool is_bad = !engine ||
                has_note(dnn, engine, DNN_ENGINE_BEHAVIOR_NOTE, DNN_TYPE_BEHAVIOR_NOTE,
                         1u << DNN_NOTE_COMPILES) ||
                has_note(dnn, engine, DNN_ENGINE_NUMERICAL_NOTE, DNN_TYPE_NUMERICAL_NOTE, notes);
  weir_cudnn_drop(dnn, engine);
  return is_bad;
}

// Bytes of workspace that a convolution may take: TensorFlow's limit, and less of small GPUs.
static int64_t most_workspace(const cudnn_t* dnn) {
  return WEIR_MIN(dnn->device->memory_limit / 16, (int64_t)4 << 30);
}

static bool make_plan(const cudnn_task_t* task, dnn_t config, plan_t* out_plan) {
  const cudnn_t* dnn = task->dnn;
  const dnn_functions_t* call = &dnn->call;
  int64_t count = 0, size = 0;
  dnn_t plan = NULL;
  if (is_unwanted(task, config)) return false;
  int result = call->make(DNN_PLAN, &plan);
  if (!result) result = call->set(plan, DNN_PLAN_HANDLE, DNN_TYPE_HANDLE, 1, &dnn->handle);
  if (!result) result = call->set(plan, DNN_PLAN_CONFIG, DNN_TYPE_DESCRIPTOR, 1, &config);
  if (!result) result = call->finish(plan);
  if (!result) result = call->get(plan, DNN_PLAN_WORKSPACE, DNN_TYPE_INT64, 1, &count, &size);
  if (result || size > most_workspace(dnn)) {
    weir_cudnn_drop(dnn, plan);
    return false;
  }
  *out_plan = (plan_t){.plan = plan, .workspace_size = size};
  return true;
}

// ---- measuring ----

// |times| runs, one after another; INT64_MAX: it does not work.
static int64_t run_time(const cudnn_task_t* task, const plan_t* plan, int64_t times) {
  weir_device_t* device = task->dnn->device;
  weir_status_t* status = weir_cuda_synchronize(device);
  int64_t start = weir_clock_ns();
  for (int64_t i = 0; i < times && !status; ++i) status = weir_cudnn_execute(task, plan);
  if (!status) status = weir_cuda_synchronize(device);
  if (!status) return weir_clock_ns() - start;
  weir_status_destroy(status);
  return INT64_MAX;
}

// ---- the search ----

// The lists: what cuDNN thinks the fastest, and what works for almost anything.
enum { FAST, FALLBACK, LISTS, MOST_CONFIGS = 32 };

struct search_t {
  const cudnn_task_t* task;  // borrowed, while the search goes on
  dnn_t configs[LISTS][MOST_CONFIGS];
  int64_t counts[LISTS], taken[LISTS];
  choice_t seen[LISTS * MOST_CONFIGS];
  int seen_count;
  int tried;
  int turns;                     // runs of the convolution so far
  int64_t wall_ns;               // of all turns
  int64_t measured_ns, best_ns;  // of runs, without the first of each plan
  plan_t best;
  bool has_choice;  // |choice| is the best's
  choice_t choice;
  bool has_left_out, leaves_nothing_out;  // of engines that are hopeless
};

static int64_t propose(const cudnn_t* dnn, dnn_t graph, int mode, dnn_t* configs) {
  const dnn_functions_t* call = &dnn->call;
  dnn_t heuristic = NULL;
  int64_t count = 0;
  int result = call->make(DNN_HEURISTIC, &heuristic);
  if (!result) result = call->set(heuristic, DNN_HEURISTIC_GRAPH, DNN_TYPE_DESCRIPTOR, 1, &graph);
  if (!result) result = call->set(heuristic, DNN_HEURISTIC_MODE, DNN_TYPE_HEURISTIC, 1, &mode);
  if (!result) result = call->finish(heuristic);
  for (int i = 0; i < MOST_CONFIGS && !result; ++i) result = call->make(DNN_CONFIG, &configs[i]);
  if (!result)
    result = call->get(heuristic, DNN_HEURISTIC_RESULTS, DNN_TYPE_DESCRIPTOR, MOST_CONFIGS, &count,
                       configs);
  weir_cudnn_drop(dnn, heuristic);
  return result ? 0 : WEIR_MIN(count, MOST_CONFIGS);
}

// |times| runs, whose time is the search's.
static int64_t spend(search_t* s, const plan_t* plan, int64_t times) {
  int64_t ns = run_time(s->task, plan, times);
  if (ns != INT64_MAX) s->measured_ns += ns;
  return ns;
}

// What a run takes, or a rough guess where that is far above the best. The first run loads kernels,
// which others will use, too, and so is not counted; a single one has what launching and waiting
// take in it.
static int64_t measure(search_t* s, const plan_t* plan) {
  const int64_t loading = 20000000, waiting = 20000, wanted = 400000;
  int64_t tolerated = s->best.plan ? s->best_ns + s->best_ns / 2 : INT64_MAX / 2;
  int64_t ns = run_time(s->task, plan, 1);
  if (ns > tolerated + loading) return ns;
  ns = spend(s, plan, 1);
  if (ns > tolerated + waiting) return ns;
  int64_t times = WEIR_MAX(WEIR_MIN(wanted / WEIR_MAX(ns, 1), 8), 2);
  ns = spend(s, plan, times);
  return ns == INT64_MAX ? ns : ns / times;
}

// ---- engines that are hopeless ----

// An engine, and the convolutions that are alike to it. All of it is compared: no padding.
typedef struct engine_key_t {
  int64_t engine;
  int64_t kind, dtype, is_nchw;
} engine_key_t;

static engine_key_t key_of_engine(const search_t* s, int64_t engine) {
  const weir_cudnn_conv_t* c = s->task->conv;
  return (engine_key_t){
      .engine = engine, .kind = c->kind, .dtype = c->dtype, .is_nchw = c->is_nchw};
}

static bool is_hopeless(const search_t* s, const choice_t* choice) {
  engine_key_t key = key_of_engine(s, choice->engine);
  return weir_map_find(&s->task->dnn->hopeless, weir_view((const char*)&key, sizeof(key))) != NULL;
}

// Some take seconds for what others do in a millisecond, whatever the shape: once is enough. |ns|
// is of a first run, which may have loaded a library.
static void note_hopeless(search_t* s, const choice_t* choice, int64_t ns) {
  const int64_t times = 100, loading = 200000000;
  if (ns == INT64_MAX || !s->best.plan || ns < loading + times * s->best_ns) return;
  cudnn_t* dnn = s->task->dnn;
  engine_key_t key = key_of_engine(s, choice->engine);
  WEIR_LOG(INFO, "cuDNN's engine %lld took %lld us, others %lld: it is not tried again",
           (long long)choice->engine, (long long)(ns / 1000), (long long)(s->best_ns / 1000));
  // Without memory it is tried again, that is all.
  weir_status_destroy(weir_map_put(&dnn->hopeless, weir_view((const char*)&key, sizeof(key)), dnn));
}

// ---- turns ----

static bool is_new(search_t* s, const choice_t* choice) {
  for (int i = 0; i < s->seen_count; ++i) {
    if (memcmp(&s->seen[i], choice, sizeof(*choice)) == 0) return false;
  }
  s->seen[s->seen_count++] = *choice;
  return true;
}

static void try_config(search_t* s, dnn_t config) {
  choice_t choice;
  plan_t plan;
  const cudnn_t* dnn = s->task->dnn;
  bool is_known = read_choice(dnn, config, &choice);
  if (is_known && !s->leaves_nothing_out && is_hopeless(s, &choice)) {
    s->has_left_out = true;
    return;
  }
  if (is_known && !is_new(s, &choice)) return;
  if (!make_plan(s->task, config, &plan)) return;
  int64_t ns = measure(s, &plan);
  ++s->tried;
  if (is_known) note_hopeless(s, &choice, ns);
  if (ns >= s->best_ns) {
    weir_cudnn_drop(dnn, plan.plan);
    return;
  }
  weir_cudnn_drop(dnn, s->best.plan);
  s->best = plan;
  s->best_ns = ns;
  s->has_choice = is_known;
  s->choice = choice;
}

// The runs of a search take no longer than so many of the best, unless those are a moment. Where
// results must repeat, clocks decide nothing: the first that works is taken.
static bool is_over(const search_t* s) {
  const int64_t runs = 40, least = 20000000;
  if (s->taken[FAST] == s->counts[FAST] && s->taken[FALLBACK] == s->counts[FALLBACK]) return true;
  if (!s->best.plan) return false;
  return weir_cuda_is_deterministic(s->task->dnn->device) ||
         s->measured_ns > WEIR_MAX(least, runs * s->best_ns);
}

// The list to go on with. Fallbacks may be slow beyond measure: none is tried in the first turn
// where anything else works, later they take turns with the others, a little behind.
static int next_list(const search_t* s) {
  const int64_t behind = 2;
  if (s->taken[FAST] == s->counts[FAST]) return FALLBACK;
  bool is_due = s->best.plan && s->turns > 1 && s->taken[FAST] >= s->taken[FALLBACK] + behind;
  return is_due && s->taken[FALLBACK] < s->counts[FALLBACK] ? FALLBACK : FAST;
}

// Whether the convolution has waited long enough for the search.
static bool is_turn_over(const search_t* s, int64_t start) {
  const int64_t slice = 25000000;
  if (is_over(s)) return true;
  return s->best.plan &&
         ((s->turns == 1 && next_list(s) == FALLBACK) || weir_clock_ns() - start > slice);
}

static void try_some(search_t* s, int64_t start) {
  while (!is_turn_over(s, start)) {
    int list = next_list(s);
    try_config(s, s->configs[list][s->taken[list]++]);
  }
}

static void take_turn(search_t* s) {
  int64_t start = weir_clock_ns();
  ++s->turns;
  try_some(s, start);
  if (!s->best.plan && s->has_left_out) {  // slow is better than not at all
    s->leaves_nothing_out = true;
    s->taken[FAST] = s->taken[FALLBACK] = 0;
    try_some(s, start);
  }
  s->wall_ns += weir_clock_ns() - start;
}

static void log_choice(const search_t* s) {
  WEIR_LOG(INFO,
           "cuDNN's engine %lld takes %lld us and %lld bytes, the best of %d (proposed: %lld and "
           "%lld), found in %lld us of %d runs",
           s->has_choice ? (long long)s->choice.engine : -1LL, (long long)(s->best_ns / 1000),
           (long long)s->best.workspace_size, s->tried, (long long)s->counts[FAST],
           (long long)s->counts[FALLBACK], (long long)(s->wall_ns / 1000), s->turns);
}

// ---- what is remembered ----

static const char kKind[] = "conv";  // the ending of files

// All that a choice depends on.
static weir_status_t* write_key(const cudnn_task_t* task, weir_strbuf_t* out_key) {
  weir_device_t* device = task->dnn->device;
  weir_strbuf_printf(out_key, "%s, tf32 %d, workspace %lld\n", task->dnn->identity,
                     weir_cuda_allows_tf32(device), (long long)most_workspace(task->dnn));
  weir_strbuf_append(out_key, (const char*)task->conv, sizeof(*task->conv));
  return weir_strbuf_finish(out_key);
}

// False: nothing is remembered, or it does not work any more.
static bool recall(const cudnn_task_t* task, dnn_t graph, plan_t* out_plan) {
  choice_t choice;
  plan_t plan = {NULL};
  weir_strbuf_t key = {0};
  weir_status_t* status = write_key(task, &key);
  bool is_there = !status && weir_cuda_cache_recall(weir_view(key.data, key.size), kKind, &choice,
                                                    sizeof(choice));
  weir_status_destroy(status);
  weir_strbuf_free(&key);
  if (!is_there) return false;
  dnn_t config = config_of(task->dnn, graph, &choice);
  bool is_made = config && make_plan(task, config, &plan);
  weir_cudnn_drop(task->dnn, config);
  if (is_made && run_time(task, &plan, 1) != INT64_MAX) {
    *out_plan = plan;
    return true;
  }
  weir_cudnn_drop(task->dnn, plan.plan);
  return false;
}

static void remember(const search_t* s) {
  weir_strbuf_t key = {0};
  weir_status_t* status = write_key(s->task, &key);
  if (!status)
    weir_cuda_cache_remember(weir_view(key.data, key.size), kKind, &s->choice, sizeof(s->choice));
  weir_status_destroy(status);
  weir_strbuf_free(&key);
}

// ---- the whole ----

// Drops all but the best.
void weir_cudnn_search_free(const cudnn_t* dnn, search_t* s) {
  if (!s) return;
  for (int i = 0; i < LISTS * MOST_CONFIGS; ++i)
    weir_cudnn_drop(dnn, s->configs[i / MOST_CONFIGS][i % MOST_CONFIGS]);
  weir_free(s);
}

weir_status_t* weir_cudnn_search_begin(const cudnn_task_t* task, dnn_t graph, plan_t* out_plan,
                                       search_t** out_search) {
  static const int modes[LISTS] = {DNN_HEURISTIC_A, DNN_HEURISTIC_FALLBACK};
  *out_search = NULL;
  if (!weir_cuda_is_deterministic(task->dnn->device) && recall(task, graph, out_plan)) return NULL;
  search_t* s = weir_calloc(1, sizeof(*s));
  if (!s) return weir_out_of_memory();
  int64_t start = weir_clock_ns();
  s->best_ns = INT64_MAX;
  for (int k = 0; k < LISTS; ++k) s->counts[k] = propose(task->dnn, graph, modes[k], s->configs[k]);
  s->wall_ns = weir_clock_ns() - start;
  *out_search = s;
  return NULL;
}

weir_status_t* weir_cudnn_search_on(const cudnn_task_t* task, plan_t* plan, search_t** search) {
  search_t* s = *search;
  s->task = task;
  take_turn(s);
  *plan = s->best;
  if (!is_over(s)) return NULL;
  if (s->best.plan) log_choice(s);
  if (s->has_choice && !weir_cuda_is_deterministic(task->dnn->device)) remember(s);
  weir_cudnn_search_free(task->dnn, s);
  *search = NULL;
  return plan->plan ? NULL : WEIR_STATUS(UNIMPLEMENTED, "cuDNN has no engine for this convolution");
}

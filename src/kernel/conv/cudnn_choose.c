// cudnn_choose.c — Which of cuDNN's engines computes a convolution.
//
// cuDNN proposes configurations of engines: those it thinks the fastest, best first, and those that
// work for almost anything, among which are the fastest for some. Both lists are gone through side
// by side; whatever works is run, and what is far behind the best is not run a second time. The
// fastest is remembered on disk, so that the next process need not search.
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

enum { LISTS = 2, MOST_CONFIGS = 32 };

typedef struct search_t {
  const cudnn_task_t* task;
  dnn_t configs[LISTS][MOST_CONFIGS];
  int64_t counts[LISTS];
  choice_t seen[LISTS * MOST_CONFIGS];
  int seen_count;
  int tried;
  int64_t spent_ns, best_ns;
  plan_t best;
  bool has_choice;  // |choice| is the best's
  choice_t choice;
} search_t;

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
  if (ns != INT64_MAX) s->spent_ns += ns;
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
  bool is_known = read_choice(s->task->dnn, config, &choice);
  if ((is_known && !is_new(s, &choice)) || !make_plan(s->task, config, &plan)) return;
  int64_t ns = measure(s, &plan);
  ++s->tried;
  if (ns >= s->best_ns) {
    weir_cudnn_drop(s->task->dnn, plan.plan);
    return;
  }
  weir_cudnn_drop(s->task->dnn, s->best.plan);
  s->best = plan;
  s->best_ns = ns;
  s->has_choice = is_known;
  s->choice = choice;
}

// The runs of a search take no longer than so many of the best, unless those are a moment.
static bool is_over(const search_t* s) {
  const int64_t runs = 40, least = 20000000;
  return s->best.plan && s->spent_ns > WEIR_MAX(least, runs * s->best_ns);
}

static void search(search_t* s, dnn_t graph) {
  static const int modes[LISTS] = {DNN_HEURISTIC_A, DNN_HEURISTIC_FALLBACK};
  const cudnn_t* dnn = s->task->dnn;
  int64_t start = weir_clock_ns();
  s->best_ns = INT64_MAX;
  for (int k = 0; k < LISTS; ++k) s->counts[k] = propose(dnn, graph, modes[k], s->configs[k]);
  for (int i = 0; i < MOST_CONFIGS; ++i) {
    for (int k = 0; k < LISTS; ++k) {
      if (i < s->counts[k] && !is_over(s)) try_config(s, s->configs[k][i]);
    }
  }
  for (int i = 0; i < LISTS * MOST_CONFIGS; ++i)
    weir_cudnn_drop(dnn, s->configs[i / MOST_CONFIGS][i % MOST_CONFIGS]);
  if (s->best.plan)
    WEIR_LOG(INFO,
             "cuDNN's engine %lld takes %lld us and %lld bytes, the best of %d (proposed: %lld and "
             "%lld), found in %lld us",
             s->has_choice ? (long long)s->choice.engine : -1LL, (long long)(s->best_ns / 1000),
             (long long)s->best.workspace_size, s->tried, (long long)s->counts[0],
             (long long)s->counts[1], (long long)((weir_clock_ns() - start) / 1000));
}

// ---- what is remembered ----

static const char kKind[] = "conv";  // the ending of files

// All that a choice depends on.
static weir_status_t* write_key(const cudnn_task_t* task, weir_strbuf_t* out_key) {
  weir_device_t* device = task->dnn->device;
  weir_strbuf_printf(out_key, "%s, tf32 %d, deterministic %d, workspace %lld\n",
                     task->dnn->identity, weir_cuda_allows_tf32(device),
                     weir_cuda_is_deterministic(device), (long long)most_workspace(task->dnn));
  weir_strbuf_append(out_key, (const char*)task->conv, sizeof(*task->conv));
  return weir_strbuf_finish(out_key);
}

// False: nothing is remembered, or it does not work any more.
static bool recall(const cudnn_task_t* task, dnn_t graph, weir_view_t key, plan_t* out_plan) {
  choice_t choice;
  plan_t plan = {NULL};
  if (!weir_cuda_cache_recall(key, kKind, &choice, sizeof(choice))) return false;
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

static weir_status_t* choose(search_t* s, dnn_t graph, weir_view_t key) {
  search(s, graph);
  if (!s->best.plan) return WEIR_STATUS(UNIMPLEMENTED, "cuDNN has no engine for this convolution");
  if (s->has_choice) weir_cuda_cache_remember(key, kKind, &s->choice, sizeof(s->choice));
  return NULL;
}

weir_status_t* weir_cudnn_choose(const cudnn_task_t* task, dnn_t graph, plan_t* out_plan) {
  weir_strbuf_t text = {0};
  search_t* s = weir_calloc(1, sizeof(*s));
  weir_status_t* status = s ? write_key(task, &text) : weir_out_of_memory();
  weir_view_t key = weir_view(text.data, text.size);
  if (!status && !recall(task, graph, key, out_plan)) {
    s->task = task;
    status = choose(s, graph, key);
    if (!status) *out_plan = s->best;
  }
  weir_free(s);
  weir_strbuf_free(&text);
  return status;
}

// cudnn_choose.c — Which of cuDNN's engines computes a convolution, and in which way it is asked.
//
// cuDNN proposes configurations of engines: those it thinks the fastest, best first, and those that
// work for almost anything, among which are the fastest for some. It is asked in several ways
// (WAY_TAIL, WAY_WIDE, WAY_FOLDED), and what a way needs before and after cuDNN's own kernels is
// measured with them. Whatever works is run, and what is far behind the best is not run a second
// time; in the end what differs from the best by one knob is tried, too. A search takes a moment
// each time that the convolution runs, with the best so far, so that no step waits long. The
// fastest is remembered on disk in the end, so that the next process need not search.
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "device/cuda/cuda_cache.h"
#include "kernel/conv/cudnn_internal.h"

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
  dnn_t engine = weir_cudnn_engine_of(dnn, config);
  bool is_bad = !engine ||
                has_note(dnn, engine, DNN_ENGINE_BEHAVIOR_NOTE, DNN_TYPE_BEHAVIOR_NOTE,
                         1u << DNN_NOTE_COMPILES) ||
                has_note(dnn, engine, DNN_ENGINE_NUMERICAL_NOTE, DNN_TYPE_NUMERICAL_NOTE, notes);
  weir_cudnn_drop(dnn, engine);
  return is_bad;
}

// Whether an engine gives in a recording what it gives otherwise. It has been seen that some do
// not, among those that are chosen for IEEE float where order is free; transforms are suspected,
// and all of those are left out.
static bool repeats(const cudnn_task_t* task, dnn_t config) {
  const cudnn_t* dnn = task->dnn;
  const unsigned transforms = 1u << DNN_NOTE_FFT | 1u << DNN_NOTE_WINOGRAD;
  weir_dtype_t dtype = task->conv->dtype;
  bool is_ieee = dtype == WEIR_DTYPE_DOUBLE ||
                 (dtype == WEIR_DTYPE_FLOAT && !weir_cuda_allows_tf32(dnn->device));
  if (is_ieee && !weir_cuda_is_deterministic(dnn->device)) return false;
  dnn_t engine = weir_cudnn_engine_of(dnn, config);
  bool is_transform = !engine || has_note(dnn, engine, DNN_ENGINE_NUMERICAL_NOTE,
                                          DNN_TYPE_NUMERICAL_NOTE, transforms);
  weir_cudnn_drop(dnn, engine);
  return !is_transform;
}

// Bytes of workspace that a convolution may take: TensorFlow's limit, and less of small GPUs.
static int64_t most_workspace(const cudnn_t* dnn) {
  return WEIR_MIN(dnn->device->memory_limit / 16, (int64_t)4 << 30);
}

static bool make_plan(const cudnn_task_t* task, int way, dnn_t config, plan_t* out_plan) {
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
  *out_plan =
      (plan_t){.plan = plan, .workspace_size = size, .way = way, .repeats = repeats(task, config)};
  return true;
}

// ---- plans that are not cuDNN's ----

static plan_t product_of(const cudnn_task_t* task) {
  return (plan_t){.way = weir_cudnn_is_product(task->conv) ? WAY_PRODUCT : 0, .repeats = true};
}

// WAY_DIRECT, and how the image is brought into a form that its kernel takes; 0: there is none.
static int direct_way(const cudnn_task_t* task, weir_conv_t* out_shape) {
  static const int forms[] = {0, WAY_FOLDED, WAY_WIDE};
  const weir_device_t* device = task->dnn->device;
  for (size_t i = 0; i < WEIR_COUNT_OF(forms); ++i) {
    if (weir_cudnn_shape(device, task->conv, forms[i], out_shape) &&
        weir_by_filter_takes(device, task->conv, out_shape))
      return WAY_DIRECT | forms[i];
  }
  return 0;
}

// Its kernel begins to be compiled. |out_plan|'s way is 0: there is none, or not now.
static void make_direct(const cudnn_task_t* task, plan_t* out_plan) {
  weir_conv_t shape;
  *out_plan = (plan_t){.way = direct_way(task, &shape), .repeats = true};
  if (!out_plan->way) return;
  weir_status_t* status = weir_by_filter_make(task->dnn->device, &shape, &out_plan->direct);
  out_plan->workspace_size = out_plan->direct.part_size * (int64_t)sizeof(float);
  if (status) out_plan->way = 0;
  weir_status_destroy(status);
}

// ---- measuring ----

// |times| runs, one after another; INT64_MAX: it does not work.
static int64_t run_time(const cudnn_task_t* task, const plan_t* plan, int64_t times) {
  weir_device_t* device = task->dnn->device;
  weir_status_t* status = weir_cuda_synchronize(device);
  int64_t start = task->dnn->clock_ns();
  for (int64_t i = 0; i < times && !status; ++i) status = weir_cudnn_execute(task, plan);
  if (!status) status = weir_cuda_synchronize(device);
  if (!status) return task->dnn->clock_ns() - start;
  weir_status_destroy(status);
  return INT64_MAX;
}

// ---- the search ----

enum { GRAPHS = WAY_PRODUCT, MOST_CONFIGS = 48, LISTS = 7, MOST_VARIANTS = 96, MOST_SEEN = 512 };

// What cuDNN proposes for the graph of a way.
typedef struct list_t {
  int way;
  bool is_fallback;  // what works for almost anything
  dnn_t configs[MOST_CONFIGS];
  int64_t count, taken;
} list_t;

struct search_t {
  const cudnn_task_t* task;      // borrowed, while the search goes on
  cudnn_graph_t graphs[GRAPHS];  // by way
  list_t lists[LISTS];
  variant_t variants[MOST_VARIANTS];  // of |varied|, when the lists are at their end
  int variant_count, variants_taken;
  bool is_varied;
  choice_t varied;
  uint64_t seen[MOST_SEEN];  // hashes of choices
  int seen_count;
  int tried;
  int turns;                     // runs of the convolution so far
  int64_t wall_ns;               // of all turns
  int64_t measured_ns, best_ns;  // of runs, without the first of each plan
  plan_t best;
  bool has_choice;  // |choice| is the best's
  choice_t choice;
  // Plans that are not cuDNN's, which the first run does not wait for. Their way is 0 once they
  // were tried, or where there is none.
  plan_t product, direct;
  double* reference;                      // the first result, where results are checked
  bool has_left_out, leaves_nothing_out;  // of engines that are hopeless
};

static bool has_best(const search_t* s) { return s->best_ns != INT64_MAX; }

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
// take in it, and gets a second chance, as hosts have other things to do.
static int64_t measure(search_t* s, const plan_t* plan) {
  const int64_t loading = 20000000, waiting = 20000, wanted = 400000;
  int64_t tolerated = has_best(s) ? s->best_ns + s->best_ns / 4 : INT64_MAX / 2;
  int64_t ns = run_time(s->task, plan, 1);
  if (ns > tolerated + loading) return ns;
  ns = spend(s, plan, 1);
  if (ns > tolerated + waiting && ns < 2 * tolerated) ns = WEIR_MIN(ns, spend(s, plan, 1));
  if (ns > tolerated + waiting) return ns;
  int64_t times = WEIR_MAX(WEIR_MIN(wanted / WEIR_MAX(ns, 1), 8), 2);
  ns = spend(s, plan, times);
  return ns == INT64_MAX ? ns : ns / times;
}

// ---- engines that are hopeless ----

// An engine, and the convolutions that are alike to it. All of it is compared: no padding.
typedef struct engine_key_t {
  int64_t engine;
  int64_t way, kind, tail, dtype, is_nchw;
} engine_key_t;

static engine_key_t key_of_engine(const search_t* s, const choice_t* choice) {
  const weir_cudnn_conv_t* c = s->task->conv;
  return (engine_key_t){.engine = choice->engine,
                        .way = choice->way,
                        .kind = c->kind,
                        .tail = c->tail,
                        .dtype = c->dtype,
                        .is_nchw = c->is_nchw};
}

static bool is_hopeless(const search_t* s, const choice_t* choice) {
  engine_key_t key = key_of_engine(s, choice);
  return weir_map_find(&s->task->dnn->hopeless, weir_view((const char*)&key, sizeof(key))) != NULL;
}

// Some take seconds for what others do in a millisecond, whatever the shape: once is enough. |ns|
// is of a first run, which may have loaded a library.
static void note_hopeless(search_t* s, const choice_t* choice, int64_t ns) {
  const int64_t times = 100, loading = 200000000;
  if (ns == INT64_MAX || !has_best(s) || ns < loading + times * s->best_ns) return;
  cudnn_t* dnn = s->task->dnn;
  engine_key_t key = key_of_engine(s, choice);
  WEIR_LOG(INFO, "cuDNN's engine %lld took %lld us, others %lld: it is not tried again",
           (long long)choice->engine, (long long)(ns / 1000), (long long)(s->best_ns / 1000));
  // Without memory it is tried again, that is all.
  weir_status_destroy(weir_map_put(&dnn->hopeless, weir_view((const char*)&key, sizeof(key)), dnn));
}

// ---- what is told ----

// WEIR_CUDNN_LOG=2: what is told besides of a plan that has run.
static void describe_result(search_t* s, const plan_t* plan, char* text, size_t size) {
  double difference = weir_cudnn_difference(s->task, &s->reference);
  bool loses_nan = plan->way & WAY_TAIL && !weir_cudnn_keeps_nan(s->task, plan);
  snprintf(text, size, ", differs by %.1e%s", difference, loses_nan ? ", loses NaN" : "");
}

// What |plan| takes; and tells of it.
static int64_t measure_and_tell(search_t* s, const plan_t* plan, const choice_t* choice) {
  char result[64] = "", time[32] = "fails", more[128];
  bool is_checked = s->task->dnn->is_checked;
  if (is_checked) weir_cudnn_spoil(s->task);
  int64_t ns = measure(s, plan);
  ++s->tried;
  if (is_checked && ns != INT64_MAX) describe_result(s, plan, result, sizeof(result));
  if (ns != INT64_MAX) snprintf(time, sizeof(time), "%.1f us", (double)ns / 1000);
  snprintf(more, sizeof(more), ": %s, %lld bytes%s", time, (long long)plan->workspace_size, result);
  weir_cudnn_tell_choice(s->task, "tried", choice, more);
  return ns;
}

// ---- turns ----

static bool is_new(search_t* s, const choice_t* choice) {
  uint64_t hash = weir_hash_bytes(choice, sizeof(*choice), 0);
  for (int i = 0; i < s->seen_count; ++i) {
    if (s->seen[i] == hash) return false;
  }
  if (s->seen_count < MOST_SEEN) s->seen[s->seen_count++] = hash;
  return true;
}

// |plan| is the search's from here.
static void take_best(search_t* s, const plan_t* plan, int64_t ns, const choice_t* choice) {
  const cudnn_t* dnn = s->task->dnn;
  if (ns >= s->best_ns) {
    weir_cudnn_drop(dnn, plan->plan);
    return;
  }
  weir_cudnn_drop(dnn, s->best.plan);
  s->best = *plan;
  s->best_ns = ns;
  s->has_choice = choice != NULL;
  if (choice) s->choice = *choice;
}

static void try_config(search_t* s, int way, dnn_t config) {
  choice_t choice;
  plan_t plan;
  bool is_known = weir_cudnn_read_choice(s->task->dnn, way, config, &choice);
  if (is_known && !s->leaves_nothing_out && is_hopeless(s, &choice)) {
    s->has_left_out = true;
    return;
  }
  if (is_known && !is_new(s, &choice)) return;
  if (!make_plan(s->task, way, config, &plan)) return;
  int64_t ns = measure_and_tell(s, &plan, is_known ? &choice : NULL);
  if (is_known) note_hopeless(s, &choice, ns);
  take_best(s, &plan, ns, is_known ? &choice : NULL);
}

// The next that is not cuDNN's, once the first of its own was measured; NULL: none now. A product
// is there, what is being compiled can wait for another run.
static plan_t* next_own(search_t* s) {
  if (!has_best(s)) return NULL;
  if (s->product.way) return &s->product;
  return s->direct.way && s->turns > 1 ? &s->direct : NULL;
}

static void try_own(search_t* s, plan_t* own) {
  choice_t choice;
  const plan_t plan = *own;
  memset(&choice, 0, sizeof(choice));
  choice.way = plan.way;
  own->way = 0;
  run_time(s->task, &plan, 1);  // finds the algorithm, or waits for the compiler
  take_best(s, &plan, measure_and_tell(s, &plan, &choice), &choice);
}

// The list to go on with; NULL: all are at their end. Fallbacks may be slow beyond measure: none is
// tried in the first turn where anything else works, later they take turns with the others, a
// little behind. Where cuDNN takes the tail on, the way without is seldom the faster.
static list_t* next_list(search_t* s) {
  list_t* next = NULL;
  int64_t least = INT64_MAX;
  bool has_tail = s->task->conv->tail != WEIR_CONV_NO_TAIL;
  for (int i = 0; i < LISTS; ++i) {
    list_t* list = &s->lists[i];
    if (list->taken == list->count) continue;
    bool is_unlikely = has_tail && !(list->way & WAY_TAIL) && !list->is_fallback;
    int64_t place = list->is_fallback ? 2 * list->taken + 3 : 2 * list->taken;
    if (is_unlikely) place = 6 * list->taken + 1;
    if (list->is_fallback && (s->turns == 1 || !has_best(s))) place = INT64_MAX - 1;
    if (place >= least) continue;
    least = place;
    next = list;
  }
  return next;
}

// Whether there is a variant of the best that was not tried, as far as is known.
static bool has_variant(search_t* s) {
  if (!s->has_choice || s->choice.way >= GRAPHS) return false;
  if (s->variants_taken < s->variant_count) return true;
  if (s->is_varied && memcmp(&s->varied, &s->choice, sizeof(s->choice)) == 0) return false;
  s->is_varied = true;
  s->varied = s->choice;
  s->variants_taken = 0;
  s->variant_count = weir_cudnn_variants(s->task->dnn, s->graphs[s->choice.way].graph, &s->choice,
                                         s->variants, MOST_VARIANTS);
  return s->variant_count > 0;
}

static void try_variant(search_t* s) {
  const cudnn_t* dnn = s->task->dnn;
  const variant_t* variant = &s->variants[s->variants_taken++];
  choice_t choice = s->varied;
  choice.knobs[variant->knob].value = variant->value;
  dnn_t config = weir_cudnn_config_of(dnn, s->graphs[choice.way].graph, &choice);
  if (config) try_config(s, (int)choice.way, config);
  weir_cudnn_drop(dnn, config);
}

// The runs of a search take no longer than so many of the best, unless those are a moment. Where
// results must repeat, clocks decide nothing: the first that works is taken.
static bool is_over(search_t* s) {
  const int64_t runs = 160, least = 40000000;
  if (has_best(s) && weir_cuda_is_deterministic(s->task->dnn->device)) return true;
  if (has_best(s) && s->measured_ns > WEIR_MAX(least, runs * s->best_ns)) return true;
  if (has_best(s) && (s->product.way || s->direct.way)) return false;
  return !next_list(s) && !has_variant(s);
}

// Whether the convolution has waited long enough for the search: a moment the first time, when the
// step is that somebody waits for.
static bool is_turn_over(search_t* s, int64_t start) {
  const int64_t slice = s->turns == 1 ? 3000000 : 25000000;
  if (is_over(s)) return true;
  const list_t* next = next_list(s);
  return has_best(s) && ((s->turns == 1 && (!next || next->is_fallback)) ||
                         s->task->dnn->clock_ns() - start > slice);
}

static void try_some(search_t* s, int64_t start) {
  while (!is_turn_over(s, start)) {
    list_t* list = next_list(s);
    plan_t* own = next_own(s);
    if (own) try_own(s, own);
    else if (list) try_config(s, list->way, list->configs[list->taken++]);
    else try_variant(s);
  }
}

// Operands are others in each turn: what the best makes of them is what others are compared with.
static void renew_reference(search_t* s) {
  weir_free(s->reference);
  s->reference = NULL;
  if (has_best(s) && run_time(s->task, &s->best, 1) != INT64_MAX)
    weir_cudnn_difference(s->task, &s->reference);
}

static void take_turn(search_t* s) {
  int64_t start = s->task->dnn->clock_ns();
  ++s->turns;
  if (s->task->dnn->is_checked) renew_reference(s);
  try_some(s, start);
  if (!has_best(s) && s->has_left_out) {  // slow is better than not at all
    s->leaves_nothing_out = true;
    for (int i = 0; i < LISTS; ++i) s->lists[i].taken = 0;
    try_some(s, start);
  }
  s->wall_ns += s->task->dnn->clock_ns() - start;
}

static void log_choice(const search_t* s) {
  int64_t proposed = 0;
  for (int i = 0; i < LISTS; ++i) proposed += s->lists[i].count;
  WEIR_LOG(
      INFO,
      "cuDNN's engine %lld (%s) takes %lld us and %lld bytes, the best of %d (proposed: %lld), "
      "found in %lld us of %d runs",
      s->has_choice ? (long long)s->choice.engine : -1LL, weir_cudnn_way_names[s->best.way],
      (long long)(s->best_ns / 1000), (long long)s->best.workspace_size, s->tried,
      (long long)proposed, (long long)(s->wall_ns / 1000), s->turns);
  char more[32];
  snprintf(more, sizeof(more), ": %.1f us", (double)s->best_ns / 1000);
  weir_cudnn_tell_choice(s->task, "chosen", s->has_choice ? &s->choice : NULL, more);
}

// ---- what is remembered ----

static const char kKind[] = "conv";  // the ending of files

// All that a choice depends on.
static weir_status_t* write_key(const cudnn_task_t* task, weir_strbuf_t* out_key) {
  weir_device_t* device = task->dnn->device;
  weir_strbuf_printf(out_key, "%s, ways %d, tf32 %d, workspace %lld\n", task->dnn->identity, WAYS,
                     weir_cuda_allows_tf32(device), (long long)most_workspace(task->dnn));
  weir_strbuf_append(out_key, (const char*)task->conv, sizeof(*task->conv));
  return weir_strbuf_finish(out_key);
}

// False: nothing is remembered.
static bool recall_choice(const cudnn_task_t* task, choice_t* out_choice) {
  weir_strbuf_t key = {0};
  weir_status_t* status = write_key(task, &key);
  bool is_there = !status && weir_cuda_cache_recall(weir_view(key.data, key.size), kKind,
                                                    out_choice, sizeof(*out_choice));
  weir_status_destroy(status);
  weir_strbuf_free(&key);
  return is_there && out_choice->way >= 0 && out_choice->way < WAYS &&
         weir_cudnn_way_names[out_choice->way];
}

// Of a way that is not cuDNN's.
static bool recall_own(const cudnn_task_t* task, const choice_t* choice, plan_t* out_plan) {
  plan_t plan = product_of(task);
  if (choice->way != WAY_PRODUCT) make_direct(task, &plan);
  if (!plan.way || plan.way != choice->way || run_time(task, &plan, 1) == INT64_MAX) return false;
  *out_plan = plan;
  weir_cudnn_tell_choice(task, "remembered", choice, "");
  return true;
}

// False: nothing is remembered, or it does not work any more.
static bool recall(const cudnn_task_t* task, plan_t* out_plan) {
  choice_t choice;
  cudnn_graph_t graph;
  const cudnn_t* dnn = task->dnn;
  dnn_t config = NULL;
  plan_t plan = {NULL};
  if (!recall_choice(task, &choice)) return false;
  if (choice.way >= GRAPHS) return recall_own(task, &choice, out_plan);
  weir_status_t* status = weir_cudnn_describe(dnn, task->conv, (int)choice.way, &graph);
  if (!status) config = weir_cudnn_config_of(dnn, graph.graph, &choice);
  bool is_made = config && make_plan(task, (int)choice.way, config, &plan) &&
                 run_time(task, &plan, 1) != INT64_MAX;
  weir_status_destroy(status);
  weir_cudnn_drop(dnn, config);
  weir_cudnn_graph_drop(dnn, &graph);
  if (is_made) *out_plan = plan;
  else weir_cudnn_drop(dnn, plan.plan);
  if (is_made) weir_cudnn_tell_choice(task, "remembered", &choice, "");
  return is_made;
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
    weir_cudnn_drop(dnn, s->lists[i / MOST_CONFIGS].configs[i % MOST_CONFIGS]);
  for (int way = 0; way < GRAPHS; ++way) weir_cudnn_graph_drop(dnn, &s->graphs[way]);
  weir_free(s->reference);
  weir_free(s);
}

// The graph of each way that there is. cuDNN must know the plain one; what it does not take on, or
// in no wider form, is done around it.
static weir_status_t* describe_ways(const cudnn_task_t* task, search_t* s) {
  const cudnn_t* dnn = task->dnn;
  for (int way = 0; way < GRAPHS; ++way) {
    weir_conv_t shape;
    if (!weir_cudnn_shape(dnn->device, task->conv, way, &shape)) continue;
    weir_status_t* status = weir_cudnn_describe(dnn, task->conv, way, &s->graphs[way]);
    if (!status) continue;
    weir_cudnn_graph_drop(dnn, &s->graphs[way]);
    if (way == 0) return status;
    weir_cudnn_tell(task, weir_cudnn_way_names[way], weir_status_message(status));
    weir_status_destroy(status);
  }
  return NULL;
}

static void tell_proposals(const cudnn_task_t* task, const search_t* s) {
  char text[256] = "";
  size_t used = 0;
  for (int i = 0; i < LISTS; ++i) {
    const list_t* list = &s->lists[i];
    used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%lld %s%s", i ? ", " : "",
                             (long long)list->count, weir_cudnn_way_names[list->way],
                             list->is_fallback ? " as a fallback" : "");
  }
  weir_cudnn_tell(task, "proposed", text);
}

static void propose_all(const cudnn_task_t* task, search_t* s) {
  static const list_t lists[LISTS] = {
      {.way = WAY_TAIL}, {.way = WAY_TAIL | WAY_WIDE}, {.way = WAY_TAIL | WAY_FOLDED}, {.way = 0},
      {.way = WAY_WIDE}, {.way = WAY_FOLDED},          {.way = 0, .is_fallback = true}};
  for (int i = 0; i < LISTS; ++i) {
    list_t* list = &s->lists[i];
    *list = lists[i];
    dnn_t graph = s->graphs[list->way].graph;
    int mode = list->is_fallback ? DNN_HEURISTIC_FALLBACK : DNN_HEURISTIC_A;
    if (graph) list->count = propose(task->dnn, graph, mode, list->configs);
  }
  tell_proposals(task, s);
}

weir_status_t* weir_cudnn_search_begin(const cudnn_task_t* task, plan_t* out_plan,
                                       search_t** out_search) {
  *out_search = NULL;
  if (!weir_cuda_is_deterministic(task->dnn->device) && recall(task, out_plan)) return NULL;
  search_t* s = weir_calloc(1, sizeof(*s));
  if (!s) return weir_out_of_memory();
  int64_t start = task->dnn->clock_ns();
  s->best_ns = INT64_MAX;
  weir_status_t* status = describe_ways(task, s);
  if (status) {
    weir_cudnn_search_free(task->dnn, s);
    return status;
  }
  propose_all(task, s);
  s->product = product_of(task);
  make_direct(task, &s->direct);
  s->wall_ns = task->dnn->clock_ns() - start;
  *out_search = s;
  return NULL;
}

weir_status_t* weir_cudnn_search_on(const cudnn_task_t* task, plan_t* plan, search_t** search) {
  search_t* s = *search;
  s->task = task;
  take_turn(s);
  *plan = s->best;
  if (!is_over(s)) return NULL;
  if (has_best(s)) log_choice(s);
  if (s->has_choice && !weir_cuda_is_deterministic(task->dnn->device)) remember(s);
  bool has_plan = has_best(s);
  weir_cudnn_search_free(task->dnn, s);
  *search = NULL;
  return has_plan ? NULL : WEIR_STATUS(UNIMPLEMENTED, "cuDNN has no engine for this convolution");
}

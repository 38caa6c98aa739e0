// cudnn_choice.c — Configurations of cuDNN's engines as numbers, and numbers as configurations.
#include <string.h>

#include "kernel/conv/cudnn_internal.h"

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

dnn_t weir_cudnn_engine_of(const cudnn_t* dnn, dnn_t config) {
  dnn_t engine = NULL;
  int64_t count = 0;
  const dnn_functions_t* call = &dnn->call;
  if (call->make(DNN_ENGINE, &engine) != 0) return NULL;
  if (call->get(config, DNN_CONFIG_ENGINE, DNN_TYPE_DESCRIPTOR, 1, &count, &engine) == 0)
    return engine;
  weir_cudnn_drop(dnn, engine);
  return NULL;
}

bool weir_cudnn_read_choice(const cudnn_t* dnn, int way, dnn_t config, choice_t* out_choice) {
  int64_t count = 0;
  memset(out_choice, 0, sizeof(*out_choice));
  out_choice->way = way;
  dnn_t engine = weir_cudnn_engine_of(dnn, config);
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

dnn_t weir_cudnn_config_of(const cudnn_t* dnn, dnn_t graph, const choice_t* choice) {
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

// ---- variants ----

// The values that a knob can have.
typedef struct range_t {
  int64_t kind, least, most, step;
} range_t;

static bool read_range(const cudnn_t* dnn, dnn_t info, range_t* out_range) {
  int kind = 0;
  int64_t count = 0;
  const dnn_functions_t* call = &dnn->call;
  int result = call->get(info, DNN_KNOB_INFO_KIND, DNN_TYPE_KNOB, 1, &count, &kind);
  out_range->kind = kind;
  if (!result)
    result = call->get(info, DNN_KNOB_INFO_LEAST, DNN_TYPE_INT64, 1, &count, &out_range->least);
  if (!result)
    result = call->get(info, DNN_KNOB_INFO_MOST, DNN_TYPE_INT64, 1, &count, &out_range->most);
  if (!result)
    result = call->get(info, DNN_KNOB_INFO_STEP, DNN_TYPE_INT64, 1, &count, &out_range->step);
  return !result && out_range->step > 0;
}

// How many ranges of |index|'s knobs there are.
static int read_ranges(const cudnn_t* dnn, dnn_t graph, int64_t index, range_t ranges[MOST_KNOBS]) {
  dnn_t engine = NULL, infos[MOST_KNOBS] = {NULL};
  int64_t count = 0;
  int made = 0;
  const dnn_functions_t* call = &dnn->call;
  int result = make_engine(dnn, graph, index, &engine);
  for (int i = 0; i < MOST_KNOBS && !result; ++i) result = call->make(DNN_KNOB_INFO, &infos[i]);
  if (!result)
    result = call->get(engine, DNN_ENGINE_KNOBS, DNN_TYPE_DESCRIPTOR, MOST_KNOBS, &count, infos);
  for (int64_t i = 0; i < WEIR_MIN(count, MOST_KNOBS) && !result; ++i)
    made += read_range(dnn, infos[i], &ranges[made]);
  for (int i = 0; i < MOST_KNOBS; ++i) weir_cudnn_drop(dnn, infos[i]);
  weir_cudnn_drop(dnn, engine);
  return made;
}

// More blocks in a cluster than every GPU of the kind can hold together.
static bool is_large_cluster(const choice_t* choice, int knob, int64_t value) {
  const int64_t most = 8;
  int64_t blocks = 1;
  for (int i = 0; i < choice->knob_count; ++i) {
    int64_t kind = choice->knobs[i].kind;
    if (kind == DNN_KNOB_CLUSTER_M || kind == DNN_KNOB_CLUSTER_N)
      blocks *= i == knob ? value : choice->knobs[i].value;
  }
  return blocks > most;
}

typedef struct variants_t {
  variant_t* at;
  int count, most;
} variants_t;

static void vary_knob(const choice_t* choice, int knob, const range_t* r, variants_t* out) {
  const int64_t few = 32, now = choice->knobs[knob].value;
  const int64_t others[] = {now / 2, now - now / 4, now + now / 2, 2 * now};
  bool has_few = (r->most - r->least) / r->step < few;
  for (int64_t i = 0; i < (has_few ? few : (int64_t)WEIR_COUNT_OF(others)); ++i) {
    int64_t value = has_few ? r->least + i * r->step : others[i];
    if (value == now || value < r->least || value > r->most) continue;
    if (is_large_cluster(choice, knob, value) || out->count == out->most) continue;
    out->at[out->count++] = (variant_t){.knob = knob, .value = value};
  }
}

int weir_cudnn_variants(const cudnn_t* dnn, dnn_t graph, const choice_t* choice,
                        variant_t* variants, int most) {
  range_t ranges[MOST_KNOBS];
  variants_t out = {.at = variants, .most = most};
  int count = read_ranges(dnn, graph, choice->engine, ranges);
  for (int i = 0; i < count; ++i) {
    for (int k = 0; k < choice->knob_count; ++k) {
      if (choice->knobs[k].kind == ranges[i].kind) vary_knob(choice, k, &ranges[i], &out);
    }
  }
  return out.count;
}

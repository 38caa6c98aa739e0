// environment.c — TF_CONFIG: the JSON by which Kubernetes' TFJob and others describe a cluster.
#include "base/alloc.h"
#include "base/json.h"
#include "cluster/config/config.h"

#define EVALUATOR "evaluator"

// Writes "cluster.job[2]" and the like before what is wrong there.
static weir_status_t* must_be(const char* what, weir_view_t where, const char* expected,
                              const weir_json_t* value) {
  return WEIR_STATUS(INVALID_ARGUMENT, "%s%s%.*s must be %s, not %s", what, where.size ? "." : "",
                     WEIR_VIEW_ARG(where), expected, weir_json_kind_name(value->kind));
}

// [addresses], or {"index": address} where some tasks are absent.
static weir_status_t* read_job(weir_cluster_config_t* config, const weir_json_t* job) {
  bool is_map = job->kind == WEIR_JSON_OBJECT;
  if (!is_map && job->kind != WEIR_JSON_ARRAY)
    return must_be("cluster", job->key, "an array of addresses or an object of them", job);
  int64_t index = -1;
  for (const weir_json_t* task = job->first; task; task = task->next) {
    ++index;
    if (is_map && (!weir_parse_int64(task->key, &index) || index < 0 || index > INT32_MAX))
      return WEIR_STATUS(INVALID_ARGUMENT, "cluster.%.*s: '%.*s' is no number of a task",
                         WEIR_VIEW_ARG(job->key), WEIR_VIEW_ARG(task->key));
    if (task->kind != WEIR_JSON_STRING)
      return WEIR_STATUS(INVALID_ARGUMENT, "cluster.%.*s: task %lld must be a string, not %s",
                         WEIR_VIEW_ARG(job->key), (long long)index,
                         weir_json_kind_name(task->kind));
    WEIR_TRY(weir_cluster_config_add(config, job->key, (int)index, task->text));
  }
  return NULL;
}

// An evaluator's address does not belong to the cluster. Where it is this task, it is wanted to
// listen on.
static weir_status_t* read_evaluator(const weir_json_t* cluster, int64_t index,
                                     char** out_own_address) {
  const weir_json_t* job = weir_json_find(cluster, EVALUATOR);
  weir_cluster_config_t alone = {.job = NULL};
  if (!job) return NULL;
  weir_status_t* status = read_job(&alone, job);
  const char* address = status || index > INT32_MAX
                            ? NULL
                            : weir_cluster_spec_find(&alone.spec, EVALUATOR, (int)index);
  if (address) {
    *out_own_address = weir_strdup(address);
    if (!*out_own_address) status = weir_out_of_memory();
  }
  weir_cluster_config_free(&alone);
  return status;
}

// "type" and "index"; some launchers write the number as a string.
static weir_status_t* read_task(const weir_json_t* root, weir_view_t* out_type,
                                int64_t* out_index) {
  const weir_json_t* task = weir_json_find(root, "task");
  const weir_json_t* type = weir_json_find(task, "type");
  const weir_json_t* index = weir_json_find(task, "index");
  if (!task) return NULL;
  if (task->kind != WEIR_JSON_OBJECT) return must_be("task", weir_view("", 0), "an object", task);
  if (type && type->kind != WEIR_JSON_STRING)
    return must_be("task.type", weir_view("", 0), "a string", type);
  if (type) *out_type = type->text;
  if (!index) return NULL;
  bool is_number = index->kind == WEIR_JSON_STRING ? weir_parse_int64(index->text, out_index)
                                                   : weir_json_int(index, out_index);
  if (is_number && *out_index >= 0) return NULL;
  if (index->kind == WEIR_JSON_STRING || index->kind == WEIR_JSON_NUMBER)
    return WEIR_STATUS(INVALID_ARGUMENT, "task.index '%.*s' is no number of a task",
                       WEIR_VIEW_ARG(index->text));
  return must_be("task.index", weir_view("", 0), "a number", index);
}

static weir_status_t* read_root(weir_cluster_config_t* config, const weir_config_options_t* options,
                                const weir_json_t* root, char** out_own_address) {
  if (root->kind != WEIR_JSON_OBJECT) return must_be("it", weir_view("", 0), "an object", root);
  const weir_json_t* cluster = weir_json_find(root, "cluster");
  weir_view_t type = {.data = NULL};
  int64_t index = 0;
  WEIR_TRY(read_task(root, &type, &index));
  if (!cluster || cluster->kind == WEIR_JSON_NULL) return NULL;
  if (cluster->kind != WEIR_JSON_OBJECT)
    return must_be("cluster", weir_view("", 0), "an object", cluster);
  if (options->job) type = weir_view_of(options->job);
  if (weir_view_is(type, EVALUATOR)) return read_evaluator(cluster, index, out_own_address);
  for (const weir_json_t* job = cluster->first; job; job = job->next) {
    if (!weir_view_is(job->key, EVALUATOR)) WEIR_TRY(read_job(config, job));
  }
  if (config->spec.job_count == 0) return NULL;
  if (!type.data)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "task.type is missing: which job of the cluster is this process?");
  return weir_cluster_config_set_task(config, type, index);
}

weir_status_t* weir_cluster_config_from_json(weir_cluster_config_t* config,
                                             const weir_config_options_t* options, weir_view_t text,
                                             char** out_own_address) {
  weir_arena_t arena = {0};
  const weir_json_t* root = NULL;
  weir_status_t* status = weir_json_parse(text, &arena, &root);
  if (!status) status = read_root(config, options, root, out_own_address);
  weir_arena_free(&arena);
  return status;
}

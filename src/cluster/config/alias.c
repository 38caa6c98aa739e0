// alias.c — The name of this process in a cluster that a client describes.
#include "cluster/config/alias.h"

#include "base/alloc.h"
#include "device/device.h"

static weir_status_t* init(weir_alias_t* alias, weir_view_t job, int64_t index,
                           weir_view_t cluster_def) {
  weir_strbuf_t task = {0};
  weir_device_name_t name;
  weir_strbuf_printf(&task, "/job:%.*s/replica:0/task:%lld", WEIR_VIEW_ARG(job), (long long)index);
  alias->task = task.data;
  WEIR_TRY(weir_strbuf_finish(&task));
  WEIR_TRY(weir_device_name_parse(weir_view_of(alias->task), &name));
  return weir_cluster_spec_parse_def(&alias->spec, cluster_def);
}

weir_status_t* weir_alias_create(weir_view_t job, int64_t index, weir_view_t cluster_def,
                                 weir_alias_t** out_alias) {
  weir_alias_t* alias = weir_calloc(1, sizeof(*alias));
  if (!alias) return weir_out_of_memory();
  weir_ref_init(&alias->ref);
  weir_status_t* status = init(alias, job, index, cluster_def);
  if (status) weir_alias_release(alias);
  else *out_alias = alias;
  return status;
}

weir_alias_t* weir_alias_retain(weir_alias_t* alias) {
  if (alias) weir_ref_inc(&alias->ref, 1);
  return alias;
}

void weir_alias_release(weir_alias_t* alias) {
  if (!alias || !weir_ref_dec(&alias->ref)) return;
  weir_cluster_spec_free(&alias->spec);
  weir_free(alias->task);
  weir_free(alias);
}

static weir_status_t* find(const weir_cluster_spec_t* spec, weir_view_t address, const char* job,
                           int index, weir_view_t cluster_def, weir_alias_t** out_alias) {
  for (int i = 0; i < spec->job_count; ++i) {
    const weir_cluster_job_t* of_job = &spec->jobs[i];
    for (int k = 0; k < of_job->task_count; ++k) {
      if (weir_view_is(address, of_job->tasks[k].address))
        return weir_alias_create(weir_view_of(of_job->name), of_job->tasks[k].index, cluster_def,
                                 out_alias);
    }
  }
  if (weir_cluster_spec_find(spec, job, index))
    return weir_alias_create(weir_view_of(job), index, cluster_def, out_alias);
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "the cluster_def of the session has no task with the address '%.*s', nor a "
                     "task %d of job '%s', which this server is",
                     WEIR_VIEW_ARG(address), index, job);
}

weir_status_t* weir_alias_find(weir_view_t target, const char* job, int index,
                               weir_view_t cluster_def, weir_alias_t** out_alias) {
  static const char scheme[] = "grpc://";
  weir_cluster_spec_t spec = {.job_count = 0};
  weir_view_t address = target;
  if (weir_view_starts_with(target, scheme))
    address = weir_view(target.data + strlen(scheme), target.size - strlen(scheme));
  weir_status_t* status = weir_cluster_spec_parse_def(&spec, cluster_def);
  if (!status) status = find(&spec, address, job, index, cluster_def, out_alias);
  weir_cluster_spec_free(&spec);
  return status;
}

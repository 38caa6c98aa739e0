// spec.c — Jobs and tasks of a cluster.
#include "cluster/config/spec.h"

#include "base/alloc.h"
#include "cluster/task/fields.h"
#include "wire/wire.h"

static weir_cluster_job_t* find_job(const weir_cluster_spec_t* spec, weir_view_t name) {
  for (int i = 0; i < spec->job_count; ++i) {
    if (weir_view_is(name, spec->jobs[i].name)) return &spec->jobs[i];
  }
  return NULL;
}

static weir_status_t* add_job(weir_cluster_spec_t* spec, weir_view_t name,
                              weir_cluster_job_t** out_job) {
  size_t count = (size_t)spec->job_count + 1;
  weir_cluster_job_t* jobs = weir_realloc_array(spec->jobs, count, sizeof(*jobs));
  if (!jobs) return weir_out_of_memory();
  spec->jobs = jobs;
  char* copy = weir_strndup(name.data, name.size);
  if (!copy) return weir_out_of_memory();
  jobs[spec->job_count] = (weir_cluster_job_t){.name = copy};
  *out_job = &jobs[spec->job_count++];
  return NULL;
}

weir_status_t* weir_cluster_spec_add(weir_cluster_spec_t* spec, weir_view_t job_name, int index,
                                     weir_view_t address) {
  weir_cluster_job_t* job = find_job(spec, job_name);
  if (!job) WEIR_TRY(add_job(spec, job_name, &job));
  int at = job->task_count;
  while (at > 0 && job->tasks[at - 1].index >= index) --at;
  if (at < job->task_count && job->tasks[at].index == index) {
    return WEIR_STATUS(ALREADY_EXISTS, "task %d of job '%s' is given twice: %s and %.*s", index,
                       job->name, job->tasks[at].address, WEIR_VIEW_ARG(address));
  }
  size_t count = (size_t)job->task_count + 1;
  weir_cluster_task_t* tasks = weir_realloc_array(job->tasks, count, sizeof(*tasks));
  if (!tasks) return weir_out_of_memory();
  job->tasks = tasks;
  char* copy = weir_strndup(address.data, address.size);
  if (!copy) return weir_out_of_memory();
  memmove(tasks + at + 1, tasks + at, sizeof(*tasks) * (size_t)(job->task_count - at));
  tasks[at] = (weir_cluster_task_t){.index = index, .address = copy};
  ++job->task_count;
  return NULL;
}

void weir_cluster_spec_free(weir_cluster_spec_t* spec) {
  for (int i = 0; i < spec->job_count; ++i) {
    for (int k = 0; k < spec->jobs[i].task_count; ++k) weir_free(spec->jobs[i].tasks[k].address);
    weir_free(spec->jobs[i].tasks);
    weir_free(spec->jobs[i].name);
  }
  weir_free(spec->jobs);
  *spec = (weir_cluster_spec_t){.job_count = 0};
}

bool weir_cluster_is_absent(const char* address) {
  return strcmp(address, WEIR_ABSENT_ADDRESS) == 0;
}

const char* weir_cluster_spec_find(const weir_cluster_spec_t* spec, const char* job_name,
                                   int index) {
  const weir_cluster_job_t* job = find_job(spec, weir_view_of(job_name));
  for (int i = 0; job && i < job->task_count; ++i) {
    if (job->tasks[i].index == index) return job->tasks[i].address;
  }
  return NULL;
}

// ---- ClusterDef ----

static weir_status_t* parse_task(weir_cluster_spec_t* spec, weir_view_t job, weir_view_t entry) {
  weir_wire_reader_t reader = weir_wire_reader(entry);
  int64_t index = 0;
  weir_view_t address = weir_view("", 0);
  while (weir_wire_next(&reader)) {
    if (reader.field == TASKS_ENTRY_KEY && reader.type == WEIR_WIRE_VARINT)
      index = weir_wire_int(&reader);
    if (reader.field == TASKS_ENTRY_VALUE && reader.type == WEIR_WIRE_BYTES) address = reader.bytes;
  }
  WEIR_TRY(weir_wire_check(&reader, "JobDef.tasks"));
  if (index < 0 || index > INT32_MAX)
    return WEIR_STATUS(INVALID_ARGUMENT, "job '%.*s' has a task %lld", WEIR_VIEW_ARG(job),
                       (long long)index);
  return weir_cluster_spec_add(spec, job, (int)index, address);
}

static weir_status_t* parse_job(weir_cluster_spec_t* spec, weir_view_t message) {
  weir_view_t name = weir_view("", 0);
  weir_wire_reader_t reader = weir_wire_reader(message);
  while (weir_wire_next(&reader)) {
    if (reader.field == JOB_DEF_NAME && reader.type == WEIR_WIRE_BYTES) name = reader.bytes;
  }
  WEIR_TRY(weir_wire_check(&reader, "JobDef"));
  reader = weir_wire_reader(message);
  while (weir_wire_next(&reader)) {
    if (reader.field == JOB_DEF_TASKS && reader.type == WEIR_WIRE_BYTES)
      WEIR_TRY(parse_task(spec, name, reader.bytes));
  }
  return NULL;
}

weir_status_t* weir_cluster_spec_parse_def(weir_cluster_spec_t* spec, weir_view_t message) {
  weir_wire_reader_t reader = weir_wire_reader(message);
  while (weir_wire_next(&reader)) {
    if (reader.field == CLUSTER_DEF_JOB && reader.type == WEIR_WIRE_BYTES)
      WEIR_TRY(parse_job(spec, reader.bytes));
  }
  return weir_wire_check(&reader, "ClusterDef");
}

// spec.h — What a cluster consists of: jobs, their tasks, the address of each; and which task this
// process is. Read from flags, TF_CONFIG, Slurm's environment, or a ClusterDef message.
//
// Immutable after create; single owner.
#ifndef WEIR_CLUSTER_CONFIG_SPEC_H_
#define WEIR_CLUSTER_CONFIG_SPEC_H_

#include "base/base.h"
#include "base/string.h"

// In place of an address that etcd tells (cluster/task/members.h).
#define WEIR_ABSENT_ADDRESS "-"

typedef struct weir_cluster_task_t {
  int index;      // its number within the job; numbers may have gaps
  char* address;  // "host:port", or WEIR_ABSENT_ADDRESS
} weir_cluster_task_t;

typedef struct weir_cluster_job_t {
  char* name;
  weir_cluster_task_t* tasks;  // by ascending index
  int task_count;
} weir_cluster_job_t;

typedef struct weir_cluster_spec_t {
  weir_cluster_job_t* jobs;
  int job_count;
} weir_cluster_spec_t;

// Adds a task, and its job when that is new. ALREADY_EXISTS naming a task given twice.
WEIR_MUST_USE weir_status_t* weir_cluster_spec_add(weir_cluster_spec_t* spec, weir_view_t job,
                                                   int index, weir_view_t address);
void weir_cluster_spec_free(weir_cluster_spec_t* spec);
bool weir_cluster_is_absent(const char* address);
// The address of a task; NULL when there is none.
const char* weir_cluster_spec_find(const weir_cluster_spec_t* spec, const char* job, int index);
// Adds the jobs of a ClusterDef message.
WEIR_MUST_USE weir_status_t* weir_cluster_spec_parse_def(weir_cluster_spec_t* spec,
                                                         weir_view_t message);

#endif  // WEIR_CLUSTER_CONFIG_SPEC_H_

// config.h — Which cluster there is and which task of it this process is: from flags, TF_CONFIG,
// Slurm's variables, or none of them; the first that says anything counts.
//
// Thread-compatible; the environment is read through a function, so that tests can give their own.
#ifndef WEIR_CLUSTER_CONFIG_CONFIG_H_
#define WEIR_CLUSTER_CONFIG_CONFIG_H_

#include "cluster/config/spec.h"

// As TensorFlow's resolver for Slurm has it: tasks on one node listen from here on.
#define WEIR_SLURM_PORT 8888

// The value of variable |name|, borrowed; NULL when it is not set.
typedef const char* (*weir_getenv_fn_t)(void* arg, const char* name);

typedef struct weir_config_options_t {
  const char* cluster;    // "ps|h1:2222;h2:2222,worker|h3:2222"; NULL: not given by flag
  const char* job;        // of this process; NULL: as the environment has it
  int task;               // its number; counts when |job| is given, or when it is not 0
  const char* jobs;       // "ps:1,worker:3": how Slurm's tasks are dealt out; NULL: all "worker"
  const char* bind;       // for the address of a cluster of one; NULL: 127.0.0.1
  const char* unix_path;  // as |bind|: a socket there instead
  int port;               // of a cluster of one; Slurm: of the first task on a node, 0: 8888
  bool has_etcd;          // which tells the addresses of tasks that have "-" in place of one
  weir_getenv_fn_t getenv_fn;  // NULL: the environment is not looked at
  void* getenv_arg;
} weir_config_options_t;

typedef struct weir_cluster_config_t {
  weir_cluster_spec_t spec;
  char* job;
  int task;
  const char* source;  // "flags", "TF_CONFIG", "Slurm", "default"
  bool has_etcd;       // the options'
} weir_cluster_config_t;

// INVALID_ARGUMENT quoting what is wrong and where it was read.
WEIR_MUST_USE weir_status_t* weir_cluster_config_read(const weir_config_options_t* options,
                                                      weir_cluster_config_t* out_config);
void weir_cluster_config_free(weir_cluster_config_t* config);
// The task whose end is the end of the training: chief:0, else master:0, else worker:0. NULL when
// the cluster has none of them. |out_job| is static.
const char* weir_cluster_chief(const weir_cluster_spec_t* spec, const char** out_job);

// ---- for the readers: each adds to an empty |config| ----
// Adds a task after checking its job's name and its address.
WEIR_MUST_USE weir_status_t* weir_cluster_config_add(weir_cluster_config_t* config, weir_view_t job,
                                                     int index, weir_view_t address);
WEIR_MUST_USE weir_status_t* weir_cluster_config_set_task(weir_cluster_config_t* config,
                                                          weir_view_t job, int64_t index);
// environment.c: TF_CONFIG. Leaves |config| empty when the text names no cluster, or when the task
// is an evaluator, which works alone; its address then goes to |out_own_address| (else NULL).
WEIR_MUST_USE weir_status_t* weir_cluster_config_from_json(weir_cluster_config_t* config,
                                                           const weir_config_options_t* options,
                                                           weir_view_t text,
                                                           char** out_own_address);
// slurm.c. Leaves |config| empty outside of Slurm.
WEIR_MUST_USE weir_status_t* weir_cluster_config_from_slurm(weir_cluster_config_t* config,
                                                            const weir_config_options_t* options);

#endif  // WEIR_CLUSTER_CONFIG_CONFIG_H_

// alias.h — What this process is called in a cluster that a client describes in its session's
// configuration, where it may have another job and number than the one it was started as.
//
// Immutable after create; reference-counted: sessions and their steps hold it.
#ifndef WEIR_CLUSTER_CONFIG_ALIAS_H_
#define WEIR_CLUSTER_CONFIG_ALIAS_H_

#include "base/thread.h"
#include "cluster/config/spec.h"

typedef struct weir_alias_t {
  weir_ref_t ref;
  char* task;  // "/job:worker/replica:0/task:0"
  weir_cluster_spec_t spec;
} weir_alias_t;

// Of task |index| of |job| in the cluster that |cluster_def|, a ClusterDef message, describes.
WEIR_MUST_USE weir_status_t* weir_alias_create(weir_view_t job, int64_t index,
                                               weir_view_t cluster_def, weir_alias_t** out_alias);
weir_alias_t* weir_alias_retain(weir_alias_t* alias);  // NULL-safe
void weir_alias_release(weir_alias_t* alias);          // NULL-safe
// Which task of the cluster the process is: the one that |target|, what the client connected to,
// is the address of, or else the one that is called |job| and |index|, as the process is outside of
// the session. INVALID_ARGUMENT when there is neither.
WEIR_MUST_USE weir_status_t* weir_alias_find(weir_view_t target, const char* job, int index,
                                             weir_view_t cluster_def, weir_alias_t** out_alias);

#endif  // WEIR_CLUSTER_CONFIG_ALIAS_H_

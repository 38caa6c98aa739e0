// members.h — Where the tasks of a cluster are, as etcd knows it: each says so under a key of its
// own, and learns about the others.
//
// Tasks whose address the cluster's description leaves out ("-") have a channel here that follows
// them. What was learnt last holds until there is something newer: a task that is gone for a while,
// and an etcd that is, change nothing. A task's key is "<prefix>/<job>/<task>". It goes with a
// lease, and who comes last has it: a task that was started again does not wait for its old lease
// to end.
//
// Thread-safe; what is asked of etcd is asked by a thread of its own.
#ifndef WEIR_CLUSTER_TASK_MEMBERS_H_
#define WEIR_CLUSTER_TASK_MEMBERS_H_

#include "cluster/etcd/client.h"

struct weir_task_t;  // which has the members that are made of it
typedef struct weir_members_t weir_members_t;

typedef struct weir_members_options_t {
  weir_etcd_options_t etcd;  // no endpoints: there are no members
  const char* prefix;
} weir_members_options_t;

// Of |task|, on whose loop the channels are. Learns nothing before it is started.
WEIR_MUST_USE weir_status_t* weir_members_create(struct weir_task_t* task,
                                                 const weir_members_options_t* options,
                                                 weir_members_t** out_members);
// From now on the others can find this task at |address|.
WEIR_MUST_USE weir_status_t* weir_members_start(weir_members_t* members, const char* address);
// Takes back what was said, and learns nothing any more. The channels stay. NULL-safe.
void weir_members_stop(weir_members_t* members);
void weir_members_destroy(weir_members_t* members);  // stopped or not; NULL-safe

// The channel to a task; NULL to this one, and where the description has the address. Borrowed.
weir_rpc_channel_t* weir_members_channel(const weir_members_t* members, const char* job, int index);
// Appends where a task is whose address the description leaves out, as far as is known; else "-".
void weir_members_write_address(weir_members_t* members, const char* job, int index,
                                weir_strbuf_t* out);

#endif  // WEIR_CLUSTER_TASK_MEMBERS_H_

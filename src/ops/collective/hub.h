// hub.h — Where the members of a collective meet: all-reduces, gathers, broadcasts and their kin.
//
// A member comes with what it wants and, but for a broadcast's receivers, with a tensor. When as
// many have come as the group is large, the last one computes for all, in the order of ranks, so
// that results are the same on all members and from run to run. Nothing waits on a thread. What
// disagrees (sizes of the group, kinds, types, shapes), a member that is cancelled or lost, and a
// timeout end the meeting for all that have come.
//
// Members of one step meet in that step. Members of steps that different sessions run, each with a
// client of its own, meet in the order in which they come: a device is in a meeting once.
//
// Members whose tensors are in the memory of GPUs of this process stay there: what they get is made
// by NCCL, which the last one to come launches for all of them (device/cuda/cuda_nccl.h).
//
// A process has one hub a runtime. Within a cluster members are brought to the hub of the task
// that leads (cluster/task/collectives.h), which puts itself before it (weir_hub_t.before).
// Thread-safe. No lock is held across a callback.
#ifndef WEIR_OPS_COLLECTIVE_HUB_H_
#define WEIR_OPS_COLLECTIVE_HUB_H_

#include "base/cancel.h"
#include "base/map.h"
#include "base/thread.h"
#include "device/span.h"
#include "kernel/elementwise/update.h"
#include "tensor/tensor.h"

// The numbers are TensorFlow's, which its messages show.
typedef enum weir_collective_kind_t {
  WEIR_COLLECTIVE_REDUCE = 0,
  WEIR_COLLECTIVE_BROADCAST = 1,
  WEIR_COLLECTIVE_GATHER = 2,
  WEIR_COLLECTIVE_ALL_TO_ALL = 4,
  WEIR_COLLECTIVE_REDUCE_SCATTER = 5,
  WEIR_COLLECTIVE_GROUP = 6,  // nothing is exchanged: the group is complete when all have come
  WEIR_COLLECTIVE_KIND_COUNT
} weir_collective_kind_t;

// Whose numbers |instance_key| and |id| are.
typedef enum weir_collective_space_t {
  WEIR_COLLECTIVE_SPACE_GRAPH = 0,  // the graph's
  WEIR_COLLECTIVE_SPACE_GROUP,      // of groups that are made for a communicator
  WEIR_COLLECTIVE_SPACE_CALL,       // the calls of a communicator, counted
  WEIR_COLLECTIVE_SPACE_SHARD,      // |id|, which the leader drew: parts of a large reduction. Its
                                    // group was looked at before
  WEIR_COLLECTIVE_SPACE_NAME,       // |id|, of a name that nodes of a step share; no group
} weir_collective_space_t;

// Between GPUs of one process: who does it.
typedef enum weir_collective_way_t {
  WEIR_COLLECTIVE_BY_ANY = 0,  // NCCL, where it is there and can, else the host
  WEIR_COLLECTIVE_BY_HOST,
  WEIR_COLLECTIVE_BY_NCCL,
} weir_collective_way_t;

// What a member wants. Plain data; pointers are borrowed.
typedef struct weir_collective_t {
  weir_collective_kind_t kind;
  weir_collective_space_t space;
  weir_dtype_t dtype;      // INVALID for a GROUP
  weir_update_op_t merge;  // of reductions
  bool is_mean;            // they are divided by the number of members
  bool is_for_one;         // likewise: one member gets the result
  bool is_source;          // of a broadcast; or that one
  bool wants_roster;       // members bring no tensor, and learn who they are: see weir_hub_roster
  int group_key, group_size, instance_key;
  int rank;           // -1: by the order of device names
  uint64_t id;        // SHARD, NAME
  int64_t iteration;  // of the loop that the node is in. The frames of functions that members call,
                      // each its own, have no number in common
  uint64_t scope;     // whose steps |step_id| counts: a number of the session
  int64_t step_id;
  const char* device;    // full name
  uint64_t incarnation;  // of the device
  int dim_count;         // the shape that all must have: of a tensor that is not here, or declared
  const int64_t* dims;   // by a broadcast's sender; NULL: the tensor's
  int64_t timeout_ns;    // 0: none
  weir_device_t* place;  // in whose memory its tensor is, and will be; NULL: the host's. Of members
                         // of this process only
  weir_collective_way_t way;
} weir_collective_t;

// |take_tensor| is NULL with a status, and for a GROUP.
typedef void (*weir_hub_done_fn_t)(void* arg, weir_status_t* take_status,
                                   weir_tensor_t* take_tensor);
// Who is told. |cancel| must live until then.
typedef struct weir_hub_caller_t {
  weir_cancel_t* cancel;
  weir_pool_t* pool;  // |done| runs there if others were waited for; NULL: on the thread of the
                      // last one
  weir_hub_done_fn_t done;
  void* arg;
  weir_stream_span_t* span;  // of a member with a place, in traced runs; lives until |done|
} weir_hub_caller_t;

typedef struct weir_hub_t weir_hub_t;
typedef void (*weir_hub_enter_fn_t)(void* self, const weir_collective_t* what,
                                    weir_tensor_t* tensor, const weir_hub_caller_t* caller);

// |pool|, borrowed, computes.
WEIR_MUST_USE weir_status_t* weir_hub_create(weir_pool_t* pool, weir_hub_t** out_hub);
void weir_hub_destroy(weir_hub_t* hub);  // NULL-safe; nobody may be in it
// From now on kernels come to |enter|, which brings them to this or another hub. Before the first.
void weir_hub_put_before(weir_hub_t* hub, weir_hub_enter_fn_t enter, void* self);

// Has |fn| called, from a thread of the hub's, for every device of a group that some members have
// waited for more than |delay_ns|: it may be gone, and whoever finds that out says so by
// weir_hub_lose. With a NULL device: nobody waits any more. Before the first member.
typedef void (*weir_hub_watch_fn_t)(void* self, const char* device, uint64_t incarnation);
void weir_hub_watch(weir_hub_t* hub, weir_hub_watch_fn_t fn, void* self, int64_t delay_ns);
// Ends the hub's thread. Nobody joins any more.
void weir_hub_stop(weir_hub_t* hub);

// Whether members may be other processes'.
bool weir_hub_is_shared(const weir_hub_t* hub);

// For kernels: joins where members of the cluster meet.
void weir_hub_enter(weir_hub_t* hub, const weir_collective_t* what, weir_tensor_t* tensor,
                    const weir_hub_caller_t* caller);
// Joins here. |tensor| is retained; NULL where the member brings none. The callback is called once,
// maybe before the return.
void weir_hub_join(weir_hub_t* hub, const weir_collective_t* what, weir_tensor_t* tensor,
                   const weir_hub_caller_t* caller);
// The devices of task |task| ("/job:worker/replica:0/task:1") are gone, since |status|: whoever
// meets them is told so, and groups forget them.
void weir_hub_lose(weir_hub_t* hub, weir_view_t task, const weir_status_t* status);

// A roster is a vector of strings: 8 bytes that are the |id| of the shards, then the members'
// devices in the order of ranks. False when |tensor| is none of |count| members.
bool weir_hub_read_roster(const weir_tensor_t* tensor, int count, uint64_t* out_id);

#endif  // WEIR_OPS_COLLECTIVE_HUB_H_

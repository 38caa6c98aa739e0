// master_session.h — A client's session on the master: its graph, the devices it may use, and for
// each signature the parts that its tasks run.
//
// Thread-safe. Reference-counted: steps hold the session they run in.
#ifndef WEIR_CLUSTER_MASTER_MASTER_SESSION_H_
#define WEIR_CLUSTER_MASTER_MASTER_SESSION_H_

#include "base/lru.h"
#include "cluster/task/task.h"
#include "pass/place.h"
#include "runtime/program.h"
#include "session/signature.h"

// Another task that takes part in the session.
typedef struct weir_peer_t {
  char* name;                   // "/job:ps/replica:0/task:0"
  weir_rpc_channel_t* channel;  // the task's
} weir_peer_t;

// What a ConfigProto asks for.
typedef struct weir_master_config_t {
  bool allow_soft_placement;
  bool is_isolated;
  int64_t timeout_ms;          // operation_timeout_in_ms; 0: none
  const weir_view_t* filters;  // device_filters; borrowed
  int filter_count;
  bool is_unoptimized;      // graphs are run as they are
  weir_view_t message;      // the ConfigProto itself
  weir_view_t cluster_def;  // empty: the server's own cluster
  weir_view_t target;       // what the client connected to
} weir_master_config_t;

typedef struct weir_master_session_t {
  weir_ref_t ref;
  weir_task_t* task;    // borrowed
  weir_alias_t* alias;  // what the task is called here; NULL: as everywhere
  char handle[40];
  weir_graph_t* graph;
  uint64_t graph_size;              // bytes it came in; guarded by the graph's mu
  weir_program_t* program;          // compiles and runs what happens in this process
  weir_resources_t* own_resources;  // isolated; NULL otherwise
  weir_peer_t* peers;               // peer i is task number i + 1 of |devices|; 0 is this process
  int peer_count;
  weir_placement_t* devices;  // this process's first
  int device_count;
  int64_t* memory_limits;  // by device, for ListDevices
  char** descriptions;     // likewise; each may be NULL
  bool allow_soft_placement;
  int64_t timeout_ms;
  weir_strbuf_t config;   // the ConfigProto, for the peers
  weir_cancel_t* cancel;  // parent of every step's
  int64_t last_used_ns;   // of weir_clock_ns; guarded by the master's mu
  atomic_llong next_cut;  // number of the next graph that is cut into parts
  weir_mutex_t mu;        // guards all below
  int64_t version;        // of the graph: how often it was extended
  weir_lru_t runs;        // signature → weir_master_run_t
  weir_map_t callables;   // number (8 bytes) → weir_master_callable_t
  weir_map_t partials;    // handle → weir_partial_step_t
  int64_t next_callable;
  int64_t next_partial;
  bool is_closed;
} weir_master_session_t;

// The part of a signature that another task runs.
typedef struct weir_remote_part_t {
  int peer;      // index into the session's peers
  char* handle;  // that RegisterGraph gave
} weir_remote_part_t;

// A signature, made ready. Reference-counted: the session's table holds it until newer ones take
// its place; callables, partial runs and steps hold theirs.
typedef struct weir_master_run_t {
  weir_lru_item_t lru;  // guarded by the session's mu
  weir_ref_t ref;
  weir_plan_t* local;  // NULL: nothing of it runs here
  weir_remote_part_t* parts;
  int part_count;
  weir_edge_t* feeds;  // in the order of the plan's arguments
  int feed_count;
  weir_edge_t* fetches;
  int fetch_count;
  weir_strbuf_t* partitions;  // GraphDefs, the local one first; for traces
  int partition_count;
} weir_master_run_t;

// A signature that clients run by number.
typedef struct weir_master_callable_t {
  weir_master_run_t* run;  // retained
  bool is_traced, wants_partitions;
} weir_master_callable_t;

// Connects to every task that the filters leave and creates a session on each. Waits for tasks that
// are not up yet, until |cancel| fires.
WEIR_MUST_USE weir_status_t* weir_master_session_create(weir_task_t* task,
                                                        const weir_master_config_t* config,
                                                        weir_view_t graph_def,
                                                        weir_cancel_t* cancel,
                                                        weir_master_session_t** out_session);
void weir_master_session_retain(weir_master_session_t* session);
void weir_master_session_release(weir_master_session_t* session);
// Cancels running steps and tells the peers; later runs are refused. Idempotent.
void weir_master_session_close(weir_master_session_t* session);
// Adds nodes. ABORTED when |version| is not the session's.
WEIR_MUST_USE weir_status_t* weir_master_session_extend(weir_master_session_t* session,
                                                        weir_view_t graph_def, int64_t version,
                                                        int64_t* out_version);

// A connection by names: who reads "to:0" reads "from:0" instead.
typedef struct weir_named_connection_t {
  weir_view_t from, to;
} weir_named_connection_t;

// A signature by names: feeds and fetches "x:0", targets "x".
typedef struct weir_master_signature_t {
  const weir_view_t* feeds;
  int feed_count;
  const weir_view_t* fetches;
  int fetch_count;
  const weir_view_t* targets;
  int target_count;
  const weir_named_connection_t* connections;  // of callables
  int connection_count;
  bool is_partial;   // fed and fetched piece by piece, over the step's rendezvous
  bool is_snapshot;  // reads variables as whole steps leave them (pass/fence.h)
} weir_master_signature_t;
// The run for a signature, retained, if there is one already; NULL otherwise.
WEIR_MUST_USE weir_status_t* weir_master_session_find(weir_master_session_t* session,
                                                      const weir_master_signature_t* signature,
                                                      weir_master_run_t** out_run);
// As find, and makes it where it is new: places, cuts, compiles, registers with the peers. Blocks.
WEIR_MUST_USE weir_status_t* weir_master_session_prepare(weir_master_session_t* session,
                                                         const weir_master_signature_t* signature,
                                                         weir_master_run_t** out_run);
weir_master_run_t* weir_master_run_retain(weir_master_run_t* run);
// The last one takes its parts back from the peers. NULL-safe.
void weir_master_run_release(weir_master_session_t* session, weir_master_run_t* run);

// ---- master_devices.c ----
// Fills peers and devices: asks every task of the cluster that the filters leave for its devices.
WEIR_MUST_USE weir_status_t* weir_master_find_devices(weir_master_session_t* session,
                                                      const weir_master_config_t* config,
                                                      weir_cancel_t* cancel);
// Placement by cost: says how fast the devices are, and what goes between tasks, as the file of the
// task's options has it; without one, by measuring. Nodes that ask for nothing are for the first
// CPU of each task.
WEIR_MUST_USE weir_status_t* weir_master_find_rates(weir_master_session_t* session,
                                                    weir_cancel_t* cancel);
// Whether device filters allow a task; none allow all. INVALID_ARGUMENT for one that is no device.
WEIR_MUST_USE weir_status_t* weir_master_filter(const weir_view_t* filters, int count,
                                                const char* task, bool* out_is_allowed);
// Calls |method| of a peer's worker and waits, until |cancel| fires or the deadline passes (of
// weir_clock_ns; 0: none).
WEIR_MUST_USE weir_status_t* weir_peer_call(weir_rpc_channel_t* channel, const char* method,
                                            weir_strbuf_t* take_request, weir_cancel_t* cancel,
                                            int64_t deadline_ns, weir_rpc_buffer_t** out_response);

#endif  // WEIR_CLUSTER_MASTER_MASTER_SESSION_H_

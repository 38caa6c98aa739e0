// plan.h — A plan: a graph frozen for execution. Nodes in an array, fan-out as index ranges,
// kernels resolved.
//
// A plan is immutable after create, but for the statistics and recycled step memory its runs share:
// thread-safe.
#ifndef WEIR_EXEC_PLAN_H_
#define WEIR_EXEC_PLAN_H_

#include "base/lru.h"
#include "exec/kernel_cache.h"
#include "graph/graph.h"
#include "op/kernel.h"

// Where an output goes: an input slot of another node, or an order only.
typedef struct weir_plan_edge_t {
  int32_t node;    // index into plan->nodes
  int32_t slot;    // input slot within the consumer's frame; -1: a control edge
  int32_t output;  // which output of the producer; -1: a control edge
} weir_plan_edge_t;

// weir_plan_node_t.input_work
enum {
  WEIR_INPUTS_READ = 1,   // some come from a ref output, but the op wants the value
  WEIR_INPUTS_SET = 2,    // some are refs, for an op that wants variables with a value
  WEIR_INPUTS_RENEW = 4,  // some may be memory of a reference variable, read earlier in the step
};

// A constant input: put into its slot just before the node runs, so constants cost no node of their
// own.
typedef struct weir_plan_const_t {
  int32_t input;
  weir_tensor_t* tensor;  // retained: the graph's, or a copy in the memory of the node's device
} weir_plan_const_t;

// A constant that waits for nothing, and that a Merge or the caller gets: there before anything
// runs.
typedef struct weir_plan_given_t {
  int32_t node;
  weir_tensor_t* tensor;  // retained, as above
} weir_plan_given_t;

typedef struct weir_plan_node_t {
  weir_status_t* (*compute)(
      weir_kernel_ctx_t* ctx);  // NULL for asynchronous kernels and for nodes without a kernel
  // Of those without |compute|; NULL: the kernel's own, in the stream of its device.
  void (*start)(weir_kernel_ctx_t* ctx, weir_done_t done);
  void* state;
  weir_device_t* device;
  uint64_t host_outputs;            // weir_kernel_ctx_t's
  const weir_kernel_def_t* kernel;  // NULL: the executor itself does it (arguments, results)
  const weir_node_def_t* def;
  int32_t first_slot;  // of its inputs, within its frame
  int32_t input_count;
  int32_t output_count;
  int32_t first_edge;  // data edges, sorted by output
  int32_t data_edge_count;
  int32_t edge_count;  // data and then control edges
  int32_t first_const;
  int32_t const_count;
  int32_t frame;          // static frame it runs in
  int32_t local;          // index among the frame's nodes
  int32_t child_frame;    // ENTER: the frame it enters
  int32_t ret;            // RETVAL: index of the result; -1 otherwise
  int32_t control_count;  // control inputs
  uint8_t role;           // weir_role_t
  uint8_t input_work;     // what inputs need before the kernel sees them: WEIR_INPUTS_*
  bool has_refs;          // some input or output is a ref
  bool is_copy;           // from or to the memory of its device
  bool is_cheap;
  bool runs_locked;             // only hands values on: not worth releasing the run's lock for
  bool is_constant_enter;       // the value is the same in every iteration
  bool is_entry;                // an Enter, or a copy of what one brings into its loop
  bool owns_state;              // |state| is the plan's own, not the kernel cache's
  bool may_promise;             // outputs may be handed on before the kernel ran: op/promise.h
  bool is_write;                // to a variable: op/gate.h
  bool is_unbounded;            // was it short the last time, it may take long the next
  _Atomic(int32_t) cost_ns;     // measured, smoothed; -1: not yet
  _Atomic(int64_t) cost_bytes;  // of the inputs when it was measured last
} weir_plan_node_t;

// A loop (or the whole graph, frame 0): what every iteration of it looks like.
typedef struct weir_plan_frame_t {
  int32_t parent;
  const char* name;
  int32_t node_count;
  int32_t slot_count;
  int32_t enter_count;  // Enter nodes into it
  int32_t parallel_iterations;
  int32_t* pending;      // by local index: inputs awaited before a node is ready
  int32_t* data_inputs;  // by local index: data inputs, for Merge
} weir_plan_frame_t;

typedef struct weir_plan_t {
  weir_lru_item_t lru;  // of the session's cache; guarded by the session's mu
  weir_ref_t ref;
  weir_graph_t* graph;    // owned reference
  weir_device_t* device;  // borrowed; LINEAR: of all nodes
  weir_arena_t arena;
  weir_plan_node_t* nodes;  // in a topological order
  int32_t node_count;
  weir_plan_edge_t* edges;
  weir_plan_const_t* consts;
  int32_t const_count;
  weir_plan_frame_t* frames;
  int32_t frame_count;
  int32_t* roots;  // nodes that wait for nothing
  int32_t root_count;
  weir_plan_given_t* given;
  int32_t given_count;
  int32_t* args;  // node index of argument k, or -1 when nothing reads it
  int32_t arg_count;
  int32_t ret_count;
  int32_t max_outputs;
  _Atomic(int64_t) brief_ns;     // LINEAR: how long the last run took; 0: not yet
  _Atomic(int64_t) brief_bytes;  // LINEAR: of the arguments it took that long with
  bool is_unbounded;             // some node of it is
  bool has_transfers;            // Send or Recv nodes: the step needs a rendezvous
  bool has_moving_rets;          // results may be memory of a reference variable
  bool has_writes;               // some node is a write
  bool has_streams;              // some kernels are submitted to a device's stream
  bool is_linear;  // no loops, no conditionals, no asynchronous kernels: runs in array order
  weir_mutex_t mu;
  void* free_states;                 // recycled step memory (linear.c); guarded by mu
  struct weir_recorded_t* recorded;  // steps that a device repeats; NULL: it cannot. Owned
} weir_plan_t;

typedef struct weir_plan_params_t {
  weir_graph_t* graph;          // consumed in every case; args are ARG nodes, results RETVAL nodes
  weir_node_t* const* targets;  // further nodes that must run
  int target_count;
  int arg_count;
  int ret_count;
  bool has_moving_args;  // the body of a function: arguments may be memory of a reference variable
  weir_device_t* const* devices;  // of the runtime
  int device_count;
  const int* device_of;         // by node id: which of |devices|; NULL: the first
  weir_functions_t* functions;  // for kernels' init; may be NULL
  weir_kernel_cache_t*
      kernels;  // state of stateful kernels, shared between plans; NULL: the plan's own
} weir_plan_params_t;
// INVALID_ARGUMENT / NOT_FOUND / UNIMPLEMENTED naming the node for what cannot run.
WEIR_MUST_USE weir_status_t* weir_plan_create(const weir_plan_params_t* params,
                                              weir_plan_t** out_plan);
weir_plan_t* weir_plan_retain(weir_plan_t* plan);
void weir_plan_release(weir_plan_t* plan);  // NULL-safe

#endif  // WEIR_EXEC_PLAN_H_

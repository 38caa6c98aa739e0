// sync_replicas.h — What the worker's and the chief's part of synchronous training share while they
// are built.
#ifndef WEIR_LIBRARY_SYNC_REPLICAS_H_
#define WEIR_LIBRARY_SYNC_REPLICAS_H_

#include "weir/replicas.h"

// One call of weir_sync_replicas under way.
typedef struct weir_sync_t {
  weir_scope_t* outer;  // the caller's: variables of the optimizer
  weir_scope_t* scope;  // nodes of the worker
  weir_scope_t* clock;  // the same beside the global step: queues
  const char* name;     // of what the processes share
  int worker, worker_count, needed;
  weir_variable_info_t global_step;
  const weir_variable_gradient_t* gradients;
  int count;
  int lanes;                  // accumulators a variable: one for all workers, or one for each
  weir_edge_t* accumulators;  // handles, by variable, then lane; no node where there is no gradient
  weir_edge_t* queues;        // of step numbers, by worker
  weir_edge_t local_step;     // the handle of the variable that has this worker's
  weir_edge_t is_led;         // the handle of a variable that the first chief initialises
} weir_sync_t;

// A variable's accumulator of a lane.
static inline weir_edge_t weir_sync_accumulator(const weir_sync_t* sync, int variable, int lane) {
  return sync->accumulators[variable * sync->lanes + lane];
}

// |scope| on the device of |edge|, if that is on one.
weir_scope_t* weir_sync_beside(weir_scope_t* scope, weir_edge_t edge);
weir_edge_t weir_sync_read_step(weir_scope_t* scope, weir_edge_t handle);

// The chief's nodes. NULL after an error.
weir_node_t* weir_sync_chief_begin(const weir_sync_t* sync);
weir_node_t* weir_sync_advance(const weir_sync_t* sync, const weir_optimizer_t* optimizer,
                               const weir_minimize_options_t* options);
weir_node_t* weir_sync_close(const weir_sync_t* sync);

#endif  // WEIR_LIBRARY_SYNC_REPLICAS_H_

// context.h — What ops that run at once share: devices and threads, the functions of a library,
// state, and a cache of ops that are ready to run.
//
// Variables, random generators and the like live in the context, from op to op. Thread-safe,
// reference-counted: what runs in it holds it.
#ifndef WEIR_EAGER_CONTEXT_H_
#define WEIR_EAGER_CONTEXT_H_

#include "graph/graph.h"
#include "runtime/program.h"

typedef struct weir_eager_op_t weir_eager_op_t;  // eager/prepared.h

struct weir_eager_t {
  weir_ref_t ref;
  weir_runtime_t* runtime;  // retained
  weir_graph_t* graph;      // registry and library; without nodes
  weir_program_t* program;  // of the library's functions
  weir_cancel_t* cancel;    // parent of all that runs
  bool allow_soft_placement;
  atomic_llong next_id;  // of steps and frames
  weir_mutex_t make_mu;  // held while a kernel or a plan is made
  weir_mutex_t mu;       // guards all below; nothing is taken inside but memory
  weir_eager_op_t** slots;
  size_t slot_count;  // a power of two
  size_t op_count;
  weir_eager_op_t* retired;  // those that call functions which may be others by now
};
typedef struct weir_eager_t weir_eager_t;

typedef struct weir_eager_params_t {
  const weir_registry_t* registry;
  int threads;          // 0: one a CPU
  const char* devices;  // as weir_devices_create reads it; NULL: one CPU
  const char* task;     // what names of devices begin with; NULL: that of a process by itself
  const char* disabled_passes;
  bool allow_soft_placement;
} weir_eager_params_t;

WEIR_MUST_USE weir_status_t* weir_eager_new(const weir_eager_params_t* params,
                                            weir_eager_t** out_eager);
weir_eager_t* weir_eager_ref(weir_eager_t* eager);
void weir_eager_unref(weir_eager_t* eager);  // NULL-safe

// What one op, or all of a scope, is run as: its state dies with it (TensorArrays, stacks).
WEIR_MUST_USE weir_status_t* weir_eager_step_init(weir_eager_t* eager, weir_step_t* step);
void weir_eager_step_deinit(weir_step_t* step);  // also of a zeroed one

#endif  // WEIR_EAGER_CONTEXT_H_

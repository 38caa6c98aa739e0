// program.h — A program: a graph's functions together with the state that its steps share. It turns
// graphs into plans and runs them; sessions, masters and workers stand on it.
//
// Thread-safe. What runs must have ended before it is destroyed.
#ifndef WEIR_RUNTIME_PROGRAM_H_
#define WEIR_RUNTIME_PROGRAM_H_

#include "exec/run.h"
#include "pass/place.h"
#include "runtime/functions.h"
#include "runtime/runtime.h"

struct weir_program_t {
  weir_runtime_t* runtime;       // retained, unless |is_lent_runtime|
  bool is_lent_runtime;          // a clone that is part of the runtime's own resources
  weir_graph_t* graph;           // retained: registry and library of all graphs it compiles
  weir_resources_t* resources;   // the runtime's, or lent
  weir_kernel_cache_t* kernels;  // of the graph's own nodes; functions keep theirs in their plans
  weir_kernel_cache_t own_kernels;  // what |kernels| points to unless it is lent
  weir_function_plans_t* functions;
  char* disabled_passes;  // NULL: none
  weir_dtype_t mixed;     // as weir_pass_ctx_t has it
  bool allow_soft_placement;
  weir_place_policy_t place;
  struct weir_placing_t* placing;  // what placement by cost knows and remembers
  struct weir_homes_t* homes;      // of state that it shares with others; may be NULL
  bool is_placed;
  int depth;  // how many graphs that kernels run it is within (loaded.h)
};

typedef struct weir_program_options_t {
  weir_runtime_t* runtime;
  weir_graph_t* graph;
  weir_resources_t* resources;   // of an isolated one, must outlive it; NULL: the runtime's
  weir_kernel_cache_t* kernels;  // likewise; NULL: its own
  const char* disabled_passes;   // NULL: none
  const char* mixed_precision;   // as weir_mixed_parse reads it
  bool allow_soft_placement;
  const char* place;           // as weir_place_policy_parse reads it
  const char* rates;           // COST: file with the rates of devices; NULL: they are measured
  struct weir_homes_t* homes;  // COST: of state that it shares with others; lent; NULL: none
  bool is_placed;              // a master has given every node a device
} weir_program_options_t;

WEIR_MUST_USE weir_status_t* weir_program_create(const weir_program_options_t* options,
                                                 weir_program_t** out_program);
void weir_program_destroy(weir_program_t* program);  // NULL-safe
// Creates a program of the same library and options, without a node of the graph and without the
// state of its kernels: it keeps neither the graph nor a runtime alive that owns the resources, so
// a resource may own it.
WEIR_MUST_USE weir_status_t* weir_program_clone(const weir_program_t* program,
                                                weir_program_t** out_clone);
// The same with the library of |graph|, which it retains, in place of the program's.
WEIR_MUST_USE weir_status_t* weir_program_clone_for(const weir_program_t* program,
                                                    weir_graph_t* graph,
                                                    weir_program_t** out_clone);

// A graph that is to become a plan: pruned, thread-confined to the caller.
typedef struct weir_source_t {
  weir_graph_t* graph;
  weir_node_t** targets;  // nodes of it
  int target_count;
  int arg_count;
  int ret_count;
  bool is_function;  // the body of one: it keeps the state of its kernels to itself
  bool is_on_host;   // all of it runs on the first device, a CPU
  bool is_part;      // cut out by a master: |targets| are its ends, not all that a client named
} weir_source_t;
// Optimises the graph in place.
WEIR_MUST_USE weir_status_t* weir_program_optimize(weir_program_t* program,
                                                   const weir_source_t* source);
// Places the graph, unless a master did, and optimises it. |out_device_of|, by node id, in |arena|:
// which of the runtime's devices; not set where there is but one.
WEIR_MUST_USE weir_status_t* weir_program_prepare(weir_program_t* program,
                                                  const weir_source_t* source, weir_arena_t* arena,
                                                  int** out_device_of);
// Places, optimises and freezes the graph, which is consumed in every case.
WEIR_MUST_USE weir_status_t* weir_program_compile(weir_program_t* program,
                                                  const weir_source_t* take_source,
                                                  weir_plan_t** out_plan);
// What a step of |plan| runs with: the caller adds arguments, results and what is the step's own.
weir_run_params_t weir_program_step(weir_program_t* program, weir_plan_t* plan);

#endif  // WEIR_RUNTIME_PROGRAM_H_

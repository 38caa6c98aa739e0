// pass.h — Graph passes: each rewrites the pruned copy of a graph that one signature runs, before
// it becomes a plan.
//
// A pass edits in place: it rewires inputs and adds nodes; nodes nothing reaches any more are left
// for the planner to drop. It must keep what results, targets and side effects give.
// Thread-confined: the copy belongs to one caller.
#ifndef WEIR_PASS_PASS_H_
#define WEIR_PASS_PASS_H_

#include "graph/graph.h"

// Computes one stateless node on constant inputs: handed in by the session, which knows kernels and
// devices. |outputs| gets def.output_count owned tensors. UNIMPLEMENTED means "leave it alone".
typedef struct weir_evaluator_t {
  weir_status_t* (*evaluate)(void* self, const weir_node_t* node, weir_tensor_t* const* inputs,
                             weir_tensor_t** outputs);
  void* self;
} weir_evaluator_t;

typedef struct weir_pass_ctx_t {
  weir_graph_t* graph;    // results are RETVAL nodes, arguments ARG nodes
  weir_node_t** targets;  // nodes that must run; a pass may replace an entry by an equivalent node
  int target_count;
  bool has_moving_args;        // the body of a function: see weir_plan_params_t
  bool is_part;                // cut out by a master: who named targets is not known here
  weir_dtype_t mixed;          // HALF or BFLOAT16: floats may become this type; INVALID: none does
  weir_evaluator_t evaluator;  // evaluate may be NULL: nothing is folded
} weir_pass_ctx_t;

typedef struct weir_pass_t {
  const char* name;  // "fold"
  weir_status_t* (*run)(weir_pass_ctx_t* ctx);
  bool is_local;  // adds ops that mean nothing elsewhere: of placed graphs that this process runs
  bool is_required;  // graphs may not run without it: "all" does not disable it, its name does
} weir_pass_t;

// In the order they run; ended by a zero row. passes.c holds the table.
extern const weir_pass_t weir_passes[];
// Runs them all but the local ones. |disabled|: names to leave out, separated by commas, or "all";
// NULL: none. The environment variable WEIR_DISABLE_PASSES adds to it. INVALID_ARGUMENT for a name
// that no pass has.
WEIR_MUST_USE weir_status_t* weir_passes_run(weir_pass_ctx_t* ctx, const char* disabled);
// Runs the local ones, after those and after placement.
WEIR_MUST_USE weir_status_t* weir_passes_run_local(weir_pass_ctx_t* ctx, const char* disabled);

// ---- prune: the copy that passes work on (prune.c) ----
// Who reads |to| reads |from| instead. Connections are made one after the other, once all feeds are
// in place: |from| is its node's own output, fed or not, unless a later one replaces that too.
typedef struct weir_connection_t {
  weir_edge_t from, to;
} weir_connection_t;
typedef struct weir_connections_t {
  const weir_connection_t* items;
  int count;
} weir_connections_t;
#define WEIR_NO_CONNECTIONS ((weir_connections_t){.items = NULL})

typedef struct weir_prune_params_t {
  weir_graph_t* graph;
  weir_edges_t feeds;              // become ARG nodes
  weir_connections_t connections;  // become Identity nodes where they are read
  weir_edges_t fetches;            // become RETVAL nodes
  weir_node_t* const* targets;
  int target_count;
} weir_prune_params_t;
// Copies what |fetches| and |targets| need, given |feeds| and |connections|. |out_targets|,
// target_count of them, in the copy's arena. INVALID_ARGUMENT for an edge that is replaced twice,
// or connected and fetched, for a connection that makes a cycle and for a reader that wants another
// type.
WEIR_MUST_USE weir_status_t* weir_prune(const weir_prune_params_t* params, weir_graph_t** out_copy,
                                        weir_node_t*** out_targets);

// ---- the passes ----
// The type of mixed precision that |text| names: "bf16" or "bfloat16", "half", "fp16" or "float16";
// INVALID for NULL or "off". INVALID_ARGUMENT for any other text.
WEIR_MUST_USE weir_status_t* weir_mixed_parse(const char* text, weir_dtype_t* out_type);
weir_status_t* weir_pass_mixed(weir_pass_ctx_t* ctx);  // floats become 16 bits, where asked for
weir_status_t* weir_pass_fold(weir_pass_ctx_t* ctx);   // constant folding
weir_status_t* weir_pass_cse(weir_pass_ctx_t* ctx);    // common subexpressions
weir_status_t* weir_pass_arithmetic(weir_pass_ctx_t* ctx);  // each op's own simplify hook
weir_status_t* weir_pass_unread(weir_pass_ctx_t* ctx);      // what only control edges await
weir_status_t* weir_pass_epilogue(weir_pass_ctx_t* ctx);    // nodes take over what follows them
weir_status_t* weir_pass_fuse(weir_pass_ctx_t* ctx);        // elementwise nodes become one
weir_status_t* weir_pass_join(weir_pass_ctx_t* ctx);        // updates of variables become one
weir_status_t* weir_pass_calls(
    weir_pass_ctx_t* ctx);  // library functions used as ops become PartitionedCall nodes

#endif  // WEIR_PASS_PASS_H_

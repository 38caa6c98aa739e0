// gradient_internal.h — The state of one gradient construction, shared by the files that make it
// up:
//   gradient.c           which nodes gradients flow through, collecting gradients, one node's
//   gradient, the sweep gradient_flow.c      which loop each node is in and under which conditions
//   it is alive gradient_shapes.c    shapes of loop variables, as far as they can be known
//   gradient_loop.c      a loop's gradient: a loop that runs backward
//   gradient_save.c      forward values within a backward loop: saved on stacks, one push and one
//   pop an iteration gradient_stack.c     gradients of such stacks themselves, for derivatives of
//   derivatives
#ifndef WEIR_GRAPH_GRADIENT_INTERNAL_H_
#define WEIR_GRAPH_GRADIENT_INTERNAL_H_

#include "graph/analysis.h"
#include "graph/gradient.h"

// Gradients that reached one edge, to be summed.
typedef struct collected_t {
  weir_grad_value_t* items;
  size_t count;
  size_t capacity;
} collected_t;

// A condition under which a value is alive: output |branch| of a Switch on |pred|. A list: all of
// them. Immutable.
typedef struct guard_t {
  weir_edge_t pred;
  int branch;
  const struct guard_t* next;
} guard_t;

// A loop of the forward graph, or the graph itself.
typedef struct frame_t {
  struct frame_t* parent;  // NULL: the graph itself
  weir_view_t name;
  int64_t parallel_iterations;
  int depth;
  weir_node_t** members;  // nodes that run in it, by id
  int member_count;
  weir_edge_t cond;      // its LoopCond
  const guard_t* guard;  // when it runs at all, within its parent
  struct frame_t* next;  // all frames, in a list
  int pending;           // while its parent is swept: consumers of its results not done yet
  // Added when the loop is differentiated: a counter of iterations.
  weir_edge_t count;  // the number of iterations, in the parent; none: not added yet
  weir_edge_t pivot;  // runs once an iteration, and not when the loop ends
  weir_node_t* increment;
  weir_node_t*
      sync;  // runs when all pushes of an iteration have been done or skipped; NULL: none yet
} frame_t;

// A backward loop under construction, or the graph itself.
typedef struct backward_t {
  struct backward_t* parent;  // NULL: the graph itself
  frame_t* frame;             // whose backward loop it is
  const char* name;           // of its own frame
  weir_edge_t cond;
  weir_edge_t pivot;  // runs once an iteration
  weir_node_t* decrement;
  weir_edge_t done;   // in the parent, once all iterations are done
  weir_node_t* sync;  // runs when all pops of an iteration have been done or skipped
  weir_map_t known;   // forward edges → weir_edge_t within this loop
  weir_map_t gates;   // conditions → weir_edge_t, alive when they hold
  weir_map_t shapes;  // "Shape of edge" and the like → the forward node
} backward_t;

// What is known of a node.
typedef struct node_flow_t {
  frame_t* frame;  // where its outputs live
  frame_t*
      inside;  // where it runs: another one for Enter and Exit. NULL: made by this construction
  const guard_t* guard;  // of its outputs, except those of a Switch: see weir_flow_guard
  backward_t* made_in;   // a gradient node: where it lives; NULL: a forward node
} node_flow_t;

typedef struct gradient_t {
  weir_graph_t* graph;
  const weir_gradient_params_t* params;
  const char* prefix;
  const char* source;  // names this construction among all of the graph
  weir_graph_builder_t builder;
  weir_builder_vtable_t vtable;  // of |builder|
  weir_arena_t arena;
  size_t node_count;        // of the forward graph: nodes added since are gradients
  bool* depends;            // by node id: depends on an x
  bool* is_between;         // and a y depends on it
  collected_t** collected;  // by node id, one an output; NULL: nothing yet
  int* pending;             // by node id, while its frame is swept: consumers not done yet
  node_flow_t* flows;       // by node id; grows with the graph; on the heap
  size_t flow_capacity;
  frame_t* frames;             // the graph's own is first
  backward_t root;             // the graph itself
  backward_t* context;         // where new gradient nodes go
  struct stack_link_t* links;  // what is pushed on a stack and popped from it (gradient_stack.c)
} gradient_t;

// ---- gradient.c ----
bool weir_gradient_flows(weir_edge_t edge);  // whether values of its type have gradients
WEIR_MUST_USE weir_status_t* weir_gradient_add(gradient_t* g, weir_edge_t edge,
                                               weir_grad_value_t value);
weir_grad_value_t weir_gradient_take(gradient_t* g,
                                     weir_edge_t edge);  // summed; values.node NULL: none
weir_edge_t weir_gradient_densify(weir_builder_t* b, weir_grad_value_t value);
weir_edge_t weir_gradient_zeros(weir_builder_t* b, weir_edge_t like);
// Calls the op's gradient function and collects what it gives for the inputs.
WEIR_MUST_USE weir_status_t* weir_gradient_of_node(gradient_t* g, weir_node_t* node);
// Goes backward through the nodes that run in |frame|, inner loops as one.
WEIR_MUST_USE weir_status_t* weir_gradient_sweep(gradient_t* g, frame_t* frame);

// ---- gradient_flow.c ----
WEIR_MUST_USE weir_status_t* weir_flow_analyze(gradient_t* g, weir_node_t* const* order);
// Notes what a new node is. Errors stick in the builder.
void weir_flow_note(gradient_t* g, weir_node_t* node, node_flow_t flow);
bool weir_flow_is_loop_switch(const weir_node_t* node);
// NextIteration, Exit, LoopCond and loop variables' Merge and Switch: what a loop is made of.
bool weir_flow_is_structure(const weir_node_t* node);
const guard_t* weir_flow_guard(gradient_t* g, weir_edge_t edge);
weir_edge_t weir_flow_behind_identities(weir_edge_t edge);
WEIR_INLINE node_flow_t* weir_flow_of(const gradient_t* g, const weir_node_t* node) {
  return &g->flows[node->id];
}

// ---- gradient_shapes.c ----
WEIR_MUST_USE weir_status_t* weir_gradient_infer_loops(gradient_t* g, weir_node_t* const* order);

// ---- gradient_loop.c ----
WEIR_MUST_USE weir_status_t* weir_gradient_of_loop(gradient_t* g, frame_t* frame);

// ---- gradient_save.c: errors stick in the builder ----
// Sets up the builder gradient functions see: it replaces forward values by what stands for them
// where the node goes.
void weir_gradient_builder_init(gradient_t* g);
// Adds a node as it is and notes |flow| for it.
weir_edge_t weir_gradient_put(gradient_t* g, node_flow_t flow, const char* op, weir_edges_t inputs,
                              weir_attrs_t attrs, weir_node_t* control);
// The value of |edge|, forward or from an outer backward loop, within |context|.
weir_edge_t weir_backward_value(gradient_t* g, backward_t* context, weir_edge_t edge);
// Hands |value| of the parent context into the loop |context|.
weir_edge_t weir_backward_enter(gradient_t* g, backward_t* context, weir_edge_t value,
                                bool is_constant);
// Adds the counter to a forward loop and to those around it.
void weir_frame_count(gradient_t* g, frame_t* frame);
// Makes |*sync| (a ControlTrigger) if there is none, has |waiter| wait for it, and it for |node|.
void weir_gradient_sync(gradient_t* g, node_flow_t flow, weir_node_t** sync, weir_node_t* waiter,
                        weir_node_t* node);
// A node that is alive in those iterations of a backward loop for whose forward iteration |guard|
// held.
weir_node_t* weir_backward_gate(gradient_t* g, backward_t* context, const guard_t* guard);
// A stack in the forward frame |frame|.
weir_edge_t weir_gradient_stack(gradient_t* g, frame_t* frame, weir_dtype_t dtype);
void weir_backward_free(backward_t* context);

// ---- gradient_stack.c ----
// Finds the pairs of pushes and pops that earlier gradients left in the graph.
WEIR_MUST_USE weir_status_t* weir_stacks_find(gradient_t* g);
// A popped value depends on what was pushed. Both return whether a mark is new.
bool weir_stacks_mark_after(gradient_t* g);
bool weir_stacks_mark_before(gradient_t* g);
// Each loop whose pushes, of values gradients flow through, are popped in |loop|; NULL: no further
// one. |*cursor| begins as NULL.
frame_t* weir_stacks_pushed_in(const gradient_t* g, const frame_t* loop,
                               const struct stack_link_t** cursor);
bool weir_stack_is_link(const gradient_t* g, const weir_node_t* node);
WEIR_MUST_USE weir_status_t* weir_stack_gradient(gradient_t* g, weir_node_t* node);
// Whether gradients of values pushed in |loop| are on stacks; |waiter| (NULL: none) then waits
// until all of them are.
bool weir_stacks_hold_gradients(const gradient_t* g, const frame_t* loop, weir_node_t* waiter);

#endif  // WEIR_GRAPH_GRADIENT_INTERNAL_H_

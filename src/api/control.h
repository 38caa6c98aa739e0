// control.h — Control-flow contexts: the loop or branch that nodes made on a scope belong to.
//
// A scope has a context (NULL: the graph itself), and so has every node made on it. Before a node
// is added, its inputs are brought into the scope's context: through an Enter for each loop around
// it, through a Switch for each branch. A node without an input of its own context gets a control
// input from the context's pivot, so that it runs when the iteration or the branch does.
//
// Constants that nothing orders belong nowhere and are used everywhere. Threading: as the scope.
#ifndef WEIR_API_CONTROL_H_
#define WEIR_API_CONTROL_H_

#include "api/scope.h"
#include "weir/control.h"

typedef enum weir_control_kind_t {
  WEIR_CONTROL_FRAME,   // a loop: its condition
  WEIR_CONTROL_BODY,    // its body; the parent is its frame
  WEIR_CONTROL_BRANCH,  // one side of a conditional
} weir_control_kind_t;

// A value of the parent context and what stands for it in this one.
typedef struct weir_capture_t {
  weir_edge_t outside;
  weir_edge_t inside;
  struct weir_capture_t* next;
} weir_capture_t;

struct weir_control_t {
  weir_control_kind_t kind;
  weir_control_t* parent;
  weir_scope_t* outside;  // in the parent context, under the loop's or conditional's name
  const char* name;       // for messages
  weir_node_t* pivot;     // alive when nodes of this context are to run; NULL: none yet
  weir_capture_t* captures;
  // A frame:
  const char* frame_name;
  int64_t parallel_iterations;
  // A branch:
  weir_edge_t pred;
  int side;              // the output of a Switch on |pred| that is alive in this branch
  weir_control_t* twin;  // the other branch: a Switch made for one serves both
};

// Inputs and control inputs of a node to be added to |scope|, brought into its context. Arrays are
// in the scope's arena. Returns false when an error stuck.
typedef struct weir_control_inputs_t {
  weir_edges_t inputs;
  weir_node_t* const* controls;
  int control_count;
} weir_control_inputs_t;
bool weir_control_place(weir_scope_t* scope, const char* op, weir_control_inputs_t* io);
// Notes that |node| belongs to |control|.
void weir_control_note(weir_scope_root_t* root, const weir_node_t* node, weir_control_t* control);

// Whether |edge| is an output of a node at all.
WEIR_INLINE bool weir_control_is_edge(weir_edge_t edge) {
  return edge.node && edge.index >= 0 && edge.index < edge.node->def.output_count;
}

// The value of |edge| in the context of |scope|; WEIR_NO_EDGE when an error stuck.
weir_edge_t weir_control_value(weir_scope_t* scope, weir_edge_t edge);
// Whether |edge| belongs to the very context of |scope|.
bool weir_control_owns(const weir_scope_t* scope, weir_edge_t edge);
// On an eager scope: whether |pred|, a bool scalar, is true. False when an error stuck.
bool weir_control_truth(weir_scope_t* scope, weir_edge_t pred);
// A scope in |control|, named as control->outside.
weir_scope_t* weir_control_scope(weir_control_t* control);
// Adds a node whose inputs are taken as they are, and notes that it belongs to |owner|.
weir_node_t* weir_control_add(weir_scope_t* scope, const char* op, weir_edges_t inputs,
                              weir_control_t* owner);
// |edge|, which may be inside loops and branches, computed outside of all of them: a copy of the
// nodes it comes from. INVALID_ARGUMENT sticks when it depends on a loop's state.
weir_edge_t weir_control_lift(weir_scope_t* scope, weir_edge_t edge);

#endif  // WEIR_API_CONTROL_H_

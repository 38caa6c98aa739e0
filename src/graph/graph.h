// graph.h — The dataflow graph: nodes, edges, functions; built by hand, by import, or by gradients
// and passes.
//
// Threading: thread-compatible; sessions lock the graph they share. Nodes are never removed: passes
// work on pruned copies. Ownership: the graph owns its nodes and everything they point to, in one
// arena.
#ifndef WEIR_GRAPH_GRAPH_H_
#define WEIR_GRAPH_GRAPH_H_

#include "base/map.h"
#include "base/thread.h"
#include "op/builder.h"
#include "op/op.h"
#include "op/shape_ctx.h"
#include "weir/edge.h"

typedef struct weir_graph_t weir_graph_t;
typedef struct weir_function_t weir_function_t;
typedef struct weir_function_library_t weir_function_library_t;

struct weir_node_t {
  weir_node_def_t def;  // first: name, op, attributes, types
  weir_graph_t* graph;
  int id;               // index in graph->nodes
  weir_edge_t* inputs;  // def.input_count of them
  weir_node_t** control_inputs;
  int control_count;
  // What inference knows of each output; never NULL once the node was inferred.
  const weir_shape_t** shapes;
  const weir_shape_t** values_as_shape;  // entries may be NULL
  const weir_handle_info_t** handles;    // entries may be NULL
  weir_view_t unknown_fields;            // of the NodeDef it came from, written back as they were
};

typedef struct weir_node_params_t weir_node_params_t;

// What adds the nodes of a graph in place of weir_graph_add: such a graph runs each of them at once
// (eager/frame.h). Its nodes are no session's.
typedef struct weir_graph_adder_t weir_graph_adder_t;
typedef struct weir_graph_adder_vtable_t {
  weir_status_t* (*add)(weir_graph_adder_t* self, const weir_node_params_t* params,
                        weir_node_t** out_node);
  // The gradient of a node that calls functions, whose bodies are not part of the graph.
  weir_status_t* (*build_call_grad)(weir_grad_ctx_t* ctx);
  void (*destroy)(weir_graph_adder_t* self);  // the graph goes, and its nodes after this
} weir_graph_adder_vtable_t;
struct weir_graph_adder_t {
  const weir_graph_adder_vtable_t* vtable;
};

struct weir_graph_t {
  weir_ref_t ref;
  weir_mutex_t mu;  // taken by the API and by sessions around any use; not by the functions below
  // State shared by the graph's sessions: made by the first, ended by the last. NULL without any.
  struct weir_resources_t* resources;
  int resource_users;
  const weir_registry_t* registry;  // borrowed
  weir_graph_adder_t* adder;        // owned; NULL: nodes are added and not run
  weir_arena_t arena;
  weir_tensor_list_t tensors;  // references held by attributes
  weir_node_t** nodes;
  size_t node_count;
  size_t node_capacity;
  weir_map_t names;                  // name → node
  weir_map_t name_counts;            // base name → how often it was made unique
  weir_function_library_t* library;  // shared with copies of this graph; never NULL
  int version;                       // grows with every change: sessions see extensions by it
  int64_t producer;                  // versions.producer of the GraphDef, kept for the round trip
  int64_t min_consumer;
  weir_strbuf_t unknown_fields;  // of the GraphDef
  weir_graph_t* source;    // a copy keeps alive the graph whose attributes it shares; else NULL
  weir_strbuf_t* imports;  // bytes of imported GraphDefs, which nodes point into
  size_t import_count;
  size_t import_capacity;
};

WEIR_MUST_USE weir_status_t* weir_graph_new(const weir_registry_t* registry,
                                            weir_graph_t** out_graph);
weir_graph_t* weir_graph_ref(weir_graph_t* graph);  // NULL stays NULL
void weir_graph_unref(weir_graph_t* graph);

// What a new node is. Names and views are copied.
struct weir_node_params_t {
  const char* op;      // required
  const char* prefix;  // of the name, with a "/" after it; NULL or "": none
  const char* name;    // required and unique, unless |unique_name|
  bool unique_name;    // append _1, _2 … where taken
  bool any_name;       // also one that no GraphDef may have, as TensorFlow's C API takes it
  const char* device;  // NULL: none
  weir_edges_t inputs;
  weir_node_t* const* control_inputs;
  int control_count;
  weir_attrs_t attrs;  // what the inputs determine may be left out
  bool refuse_attrs;   // that the op does not have; else they are kept, as those of imports are
};
// Adds a node: resolves its attributes, checks input types, infers its shapes. INVALID_ARGUMENT and
// friends name the node.
WEIR_MUST_USE weir_status_t* weir_graph_add(weir_graph_t* graph, const weir_node_params_t* params,
                                            weir_node_t** out_node);
// INVALID_ARGUMENT naming an attribute that |op| lacks, and those it has. Names that begin with "_"
// are anyone's.
WEIR_MUST_USE weir_status_t* weir_op_check_attr_names(const weir_op_t* op, const char* node_name,
                                                      weir_attrs_t attrs);
WEIR_MUST_USE weir_status_t* weir_graph_add_control(weir_node_t* node, weir_node_t* on);
// Replaces input |index|, for back edges of loops and for passes. Types must agree.
WEIR_MUST_USE weir_status_t* weir_graph_set_input(weir_node_t* node, int index, weir_edge_t edge);

// Makes |node| another op with other inputs, which keeps its name and control inputs, and whose
// outputs its readers read from now on (redefine.c). Neither their types nor its shapes are looked
// at: it is for rewrites of several nodes, after which weir_graph_infer_all is called.
WEIR_MUST_USE weir_status_t* weir_graph_redefine(weir_node_t* node, const char* op,
                                                 weir_edges_t inputs, weir_attrs_t attrs);
// Checks the types of all inputs and infers all shapes anew.
WEIR_MUST_USE weir_status_t* weir_graph_infer_all(weir_graph_t* graph);

weir_node_t* weir_graph_find(const weir_graph_t* graph, weir_view_t name);  // NULL when absent
// A node of op |op| whose first input is an output of |source| and that nothing else orders; NULL
// when absent.
weir_node_t* weir_graph_find_reader(const weir_node_t* source, const char* op);
// "name", "name:1" → edge; "^name" is not one. NOT_FOUND / INVALID_ARGUMENT naming it.
WEIR_MUST_USE weir_status_t* weir_graph_find_edge(const weir_graph_t* graph, weir_view_t name,
                                                  weir_edge_t* out_edge);
// INVALID_ARGUMENT when |edge| is not an output of a node of |graph|: nodes point at their inputs,
// so an edge of another graph would be read after that graph is gone. "|what| |index|" says which
// edge it is, "fetch 0".
WEIR_MUST_USE weir_status_t* weir_graph_check_edge(const weir_graph_t* graph, weir_edge_t edge,
                                                   const char* what, int index);
WEIR_INLINE weir_dtype_t weir_edge_dtype(weir_edge_t e) {
  return e.node->def.output_types[e.index];
}
WEIR_INLINE const weir_shape_t* weir_edge_shape(weir_edge_t e) { return e.node->shapes[e.index]; }
WEIR_INLINE weir_role_t weir_node_role(const weir_node_t* n) {
  return n->def.op ? n->def.op->role : WEIR_ROLE_NONE;
}
// A constant that nothing orders: the same in every loop, branch and task.
WEIR_INLINE bool weir_node_is_free_const(const weir_node_t* n) {
  return weir_node_role(n) == WEIR_ROLE_CONST && n->control_count == 0;
}
// Whether an output may be the memory of an input: by WEIR_OP_VIEW and its kin; what calls
// functions, keeps tensors in variants or is unknown may do anything.
bool weir_node_may_share(const weir_node_t* node);
WEIR_INLINE bool weir_node_has(const weir_node_t* n, weir_op_flags_t flag) {
  return n->def.op && (n->def.op->flags & flag);
}

// ---- GraphDef (graph_def.c) ----
typedef struct weir_import_params_t {
  const char* prefix;         // NULL or "": names stay; else "prefix/name"
  weir_edges_t input_map_to;  // inputs named input_map_from[i] become these edges
  const char* const* input_map_from;
} weir_import_params_t;
// Adds the nodes of a binary GraphDef. Nothing is added when it fails. Unknown ops are added and
// fail when run.
WEIR_MUST_USE weir_status_t* weir_graph_import(weir_graph_t* graph, weir_view_t graph_def,
                                               const weir_import_params_t* params);
WEIR_MUST_USE weir_status_t* weir_graph_write(const weir_graph_t* graph, weir_strbuf_t* out);
// The same without the nodes before number |first|: what a graph has grown by.
WEIR_MUST_USE weir_status_t* weir_graph_write_from(const weir_graph_t* graph, size_t first,
                                                   weir_strbuf_t* out);
// The same with copies of the constants that loops use inside of them, as TensorFlow wants it
// (portable.c).
WEIR_MUST_USE weir_status_t* weir_graph_write_portable(const weir_graph_t* graph, size_t first,
                                                       weir_strbuf_t* out);

// ---- shapes (infer.c) ----
// Infers the outputs of |node| from its inputs. Inputs not inferred yet count as unknown.
// Outputs of which nothing is known keep what was known of them.
WEIR_MUST_USE weir_status_t* weir_graph_infer(weir_node_t* node);
void weir_node_forget_shapes(weir_node_t* node);  // nothing is known of its outputs
// The value of |edge| when it is a constant, looking through pass-through nodes; NULL otherwise.
const weir_tensor_t* weir_edge_constant(weir_edge_t edge);

// ---- order (order.c) ----
// Nodes in topological order, back edges (into Merge from NextIteration) not counted.
// INVALID_ARGUMENT naming a node on a cycle when there is another one. The array is in |arena|.
WEIR_MUST_USE weir_status_t* weir_graph_order(const weir_graph_t* graph, weir_arena_t* arena,
                                              weir_node_t*** out_nodes);

// ---- copies (copy.c) ----
// A new graph with the nodes for which keep[id] is true (NULL: all), in the same order, sharing
// registry and functions. Control inputs that are not kept are dropped; data inputs that are not
// kept are WEIR_NO_EDGE, which the caller must set before anything else reads the copy. |out_map|
// (optional, node_count entries, in |arena|) gives the copy of each node.
WEIR_MUST_USE weir_status_t* weir_graph_copy(const weir_graph_t* graph, const bool* keep,
                                             weir_arena_t* arena, weir_graph_t** out_copy,
                                             weir_node_t*** out_map);

// A copy of what results (RETVAL nodes), SEND nodes and |targets| need: passes leave behind what
// nothing reads.
WEIR_MUST_USE weir_status_t* weir_graph_copy_reachable(const weir_graph_t* graph,
                                                       weir_node_t* const* targets,
                                                       int target_count, weir_arena_t* arena,
                                                       weir_graph_t** out_copy);

// ---- a builder that adds to a graph (graph_builder.c) ----
typedef struct weir_graph_builder_t {
  weir_builder_t base;  // first
  weir_graph_t* graph;
  const char* prefix;            // of names: "gradients"; NULL: none
  const char* device;            // NULL: none
  weir_node_t* const* controls;  // control inputs every new node gets
  int control_count;
} weir_graph_builder_t;
void weir_graph_builder_init(weir_graph_builder_t* builder, weir_graph_t* graph,
                             const char* prefix);
extern const weir_builder_vtable_t weir_graph_builder_vtable;

#endif  // WEIR_GRAPH_GRAPH_H_

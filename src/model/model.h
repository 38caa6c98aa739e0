// model.h — A loaded model from inside: a graph, its session, and signatures bound to edges.
#ifndef WEIR_MODEL_MODEL_H_
#define WEIR_MODEL_MODEL_H_

#include "model/meta_graph.h"
#include "session/session.h"
#include "weir/model.h"

// A step of a signature, made at its first run and kept.
typedef struct weir_prepared_t {
  bool* wanted;  // by output
  int fetch_count;
  weir_plan_t* plan;  // retained
} weir_prepared_t;
enum { WEIR_MODEL_PREPARED = 4 };  // of one signature; further ones are the session's to keep

typedef struct weir_bound_signature_t {
  weir_signature_t info;                          // first: what the public functions lend
  weir_tensor_t** defaults;                       // by input; owned; NULL: it must be given
  weir_prepared_t prepared[WEIR_MODEL_PREPARED];  // grows only, under the model's lock
  int prepared_count;
} weir_bound_signature_t;

struct weir_model_t {
  weir_live_t live;
  weir_arena_t arena;  // names, ports, shapes
  weir_graph_t* graph;
  weir_session_t* session;
  weir_bound_signature_t* signatures;
  int signature_count;
  weir_node_t* initializer;  // NULL: nothing initialises it
  weir_asset_t* assets;      // where they were found; in the arena
  int asset_count;
  weir_mutex_t mu;  // guards what is prepared
};

// Binds what |meta| says of signatures to the model's graph (ports.c). INVALID_ARGUMENT names a
// tensor that the graph lacks or that is of another type.
WEIR_MUST_USE weir_status_t* weir_model_bind(weir_model_t* model, const weir_meta_graph_t* meta);
// Gives the model one signature, of the placeholders and of what nothing reads (ports.c).
WEIR_MUST_USE weir_status_t* weir_model_bind_default(weir_model_t* model);

// UNIMPLEMENTED listing the ops that |roots| need, within functions too, and this build lacks
// (missing.c).
WEIR_MUST_USE weir_status_t* weir_model_check_ops(weir_graph_t* graph, weir_node_t* const* roots,
                                                  size_t root_count);
// Which nodes |roots| need, themselves included, by id: in |arena|; NULL: no memory.
bool* weir_model_reach(const weir_graph_t* graph, weir_node_t* const* roots, size_t root_count,
                       weir_arena_t* arena);

// NOT_FOUND naming the signatures that there are (run.c).
WEIR_MUST_USE weir_status_t* weir_model_no_signature(const weir_model_t* model, const char* name);
// "'a', 'b'" of the names of ports: for messages.
void weir_model_list_ports(const weir_model_port_t* ports, int count, weir_strbuf_t* out);

#endif  // WEIR_MODEL_MODEL_H_

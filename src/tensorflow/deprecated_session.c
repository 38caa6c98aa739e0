// deprecated_session.c — TF_DeprecatedSession: sessions of before 1.0, which own their graph and
// are told of its nodes by name. Each call finds the nodes and hands on to TF_Session's.
#include "graph/graph.h"
#include "tensorflow/internal.h"

struct TF_DeprecatedSession {
  TF_Graph* graph;
  TF_Session* session;
};

// What a call names, as TF_SessionRun has it; in |arena|.
typedef struct named_t {
  weir_arena_t arena;
  TF_Output* inputs;
  TF_Output* outputs;
  const TF_Operation** targets;
} named_t;
typedef struct names_t {
  const char** inputs;
  int input_count;
  const char** outputs;
  int output_count;
  const char** targets;
  int target_count;
} names_t;

// ---- life ----

TF_DeprecatedSession* TF_NewDeprecatedSession(const TF_SessionOptions* options, TF_Status* status) {
  TF_DeprecatedSession* session = weir_calloc(1, sizeof(*session));
  TF_Graph* graph = session ? TF_NewGraph() : NULL;
  if (!graph) {
    weir_free(session);
    tf_status_take(status, weir_out_of_memory());
    return NULL;
  }
  session->graph = graph;
  session->session = TF_NewSession(graph, options, status);
  if (session->session) return session;
  TF_DeleteGraph(graph);
  weir_free(session);
  return NULL;
}

void TF_CloseDeprecatedSession(TF_DeprecatedSession* session, TF_Status* status) {
  TF_CloseSession(session->session, status);
}

void TF_DeleteDeprecatedSession(TF_DeprecatedSession* session, TF_Status* status) {
  tf_status_clear(status);
  if (!session) return;
  TF_DeleteSession(session->session, status);
  TF_DeleteGraph(session->graph);
  weir_free(session);
}

void TF_ExtendGraph(TF_DeprecatedSession* session, const void* proto, size_t proto_len,
                    TF_Status* status) {
  weir_graph_t* graph = session->graph->graph;
  weir_mutex_lock(&graph->mu);
  weir_status_t* failure = weir_graph_import(graph, weir_view(proto, proto_len), NULL);
  weir_mutex_unlock(&graph->mu);
  tf_status_take(status, failure);
}

TF_DeviceList* TF_DeprecatedSessionListDevices(TF_DeprecatedSession* session, TF_Status* status) {
  return TF_SessionListDevices(session->session, status);
}

// ---- names ----

static weir_status_t* find_outputs_locked(named_t* named, const weir_graph_t* graph,
                                          const char** names, int count, TF_Output** out_outputs) {
  *out_outputs = weir_arena_array(&named->arena, (size_t)WEIR_MAX(count, 1), sizeof(TF_Output));
  if (!*out_outputs) return weir_out_of_memory();
  for (int i = 0; i < count; ++i) {
    weir_edge_t edge = {0};
    weir_status_t* failure = weir_graph_find_edge(graph, weir_view_of(names[i]), &edge);
    if (failure) {  // NOT_FOUND is of targets, as in TensorFlow
      weir_status_destroy(failure);
      return WEIR_STATUS(INVALID_ARGUMENT, "Tensor %s, to be fed or fetched, is not in the graph",
                         names[i]);
    }
    (*out_outputs)[i] = tf_output(edge);
  }
  return NULL;
}

static weir_status_t* find_targets_locked(named_t* named, const weir_graph_t* graph,
                                          const names_t* names) {
  const int count = names->target_count;
  named->targets =
      weir_arena_array(&named->arena, (size_t)WEIR_MAX(count, 1), sizeof(*named->targets));
  if (!named->targets) return weir_out_of_memory();
  for (int i = 0; i < count; ++i) {
    const weir_node_t* node = weir_graph_find(graph, weir_view_of(names->targets[i]));
    if (!node)
      return WEIR_STATUS(NOT_FOUND, "Operation '%s' is not in the graph", names->targets[i]);
    named->targets[i] = tf_operation(node);
  }
  return NULL;
}

static weir_status_t* find_locked(named_t* named, const weir_graph_t* graph, const names_t* names) {
  if (!graph->node_count)
    return WEIR_STATUS(INVALID_ARGUMENT, "Session was not created with a graph before Run()!");
  WEIR_TRY(find_outputs_locked(named, graph, names->inputs, names->input_count, &named->inputs));
  WEIR_TRY(find_outputs_locked(named, graph, names->outputs, names->output_count, &named->outputs));
  return find_targets_locked(named, graph, names);
}

// True when all is found; |out_named| is to be freed either way.
static bool find(TF_DeprecatedSession* session, const names_t* names, named_t* out_named,
                 TF_Status* status) {
  weir_graph_t* graph = session->graph->graph;
  weir_mutex_lock(&graph->mu);
  weir_status_t* failure = find_locked(out_named, graph, names);
  weir_mutex_unlock(&graph->mu);
  return tf_status_take(status, failure);
}

// ---- steps ----

void TF_Run(TF_DeprecatedSession* session, const TF_Buffer* run_options, const char** input_names,
            TF_Tensor** inputs, int ninputs, const char** output_names, TF_Tensor** outputs,
            int noutputs, const char** target_oper_names, int ntargets, TF_Buffer* run_metadata,
            TF_Status* status) {
  const names_t names = {input_names, ninputs, output_names, noutputs, target_oper_names, ntargets};
  named_t named = {0};
  for (int i = 0; i < noutputs; ++i) outputs[i] = NULL;
  if (find(session, &names, &named, status))
    TF_SessionRun(session->session, run_options, named.inputs, inputs, ninputs, named.outputs,
                  outputs, noutputs, named.targets, ntargets, run_metadata, status);
  weir_arena_free(&named.arena);
}

void TF_PRunSetup(TF_DeprecatedSession* session, const char** input_names, int ninputs,
                  const char** output_names, int noutputs, const char** target_oper_names,
                  int ntargets, const char** handle, TF_Status* status) {
  const names_t names = {input_names, ninputs, output_names, noutputs, target_oper_names, ntargets};
  named_t named = {0};
  *handle = NULL;
  if (find(session, &names, &named, status))
    TF_SessionPRunSetup(session->session, named.inputs, ninputs, named.outputs, noutputs,
                        named.targets, ntargets, handle, status);
  weir_arena_free(&named.arena);
}

void TF_PRun(TF_DeprecatedSession* session, const char* handle, const char** input_names,
             TF_Tensor** inputs, int ninputs, const char** output_names, TF_Tensor** outputs,
             int noutputs, const char** target_oper_names, int ntargets, TF_Status* status) {
  const names_t names = {input_names, ninputs, output_names, noutputs, target_oper_names, ntargets};
  named_t named = {0};
  for (int i = 0; i < noutputs; ++i) outputs[i] = NULL;
  if (find(session, &names, &named, status))
    TF_SessionPRun(session->session, handle, named.inputs, inputs, ninputs, named.outputs, outputs,
                   noutputs, named.targets, ntargets, status);
  weir_arena_free(&named.arena);
}

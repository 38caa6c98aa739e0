// saved_model.c — TF_LoadSessionFromSavedModel: what weir_model_load loads, as a graph and a
// session.
#include "model/saved_model.h"

#include "file/fs.h"
#include "session/session.h"
#include "tensorflow/internal.h"
#include "weir/model.h"

static weir_status_t* join_tags(const char* const* tags, int count, weir_strbuf_t* out) {
  for (int i = 0; i < count; ++i) weir_strbuf_printf(out, "%s%s", i ? "," : "", tags[i]);
  if (!count) weir_strbuf_puts(out, "");
  return weir_strbuf_finish(out);
}

static weir_status_t* load(const TF_SessionOptions* session_options, const char* export_dir,
                           const char* tags, TF_Graph* graph, TF_Session** out_session) {
  weir_arena_t arena = {0};
  weir_model_t* model = NULL;
  weir_model_options_t options = {.tags = tags};
  if (graph->graph->node_count) return WEIR_STATUS(INVALID_ARGUMENT, "Graph is non-empty.");
  weir_status_t* status = tf_session_options(session_options, &arena, &options.session);
  if (!status && options.session.target)
    status = WEIR_STATUS(UNIMPLEMENTED, "a SavedModel is loaded in this process, not at '%s'",
                         options.session.target);
  options.session.isolate_state =
      false;  // what loads it and what runs it are sessions of one graph
  if (!status) status = weir_model_load(export_dir, &options, &model);
  weir_session_t* session = NULL;
  weir_graph_t* loaded = status ? NULL : weir_graph_ref(weir_model_graph(model));
  // A second session on the graph shares the variables, and so keeps them when the model goes.
  if (!status) status = weir_session_create(loaded, &options.session, &session);
  if (!status) status = tf_session_wrap(loaded, NULL, session, out_session);
  weir_model_destroy(model);
  weir_arena_free(&arena);
  if (status) {
    weir_graph_unref(loaded);
    return status;
  }
  weir_graph_unref(graph->graph);
  graph->graph = loaded;
  return NULL;
}

// The MetaGraphDef of a SavedModel in binary form.
static weir_status_t* give_meta_graph(const char* export_dir, const char* tags, TF_Buffer* out) {
  weir_strbuf_t path = {0}, message = {0}, bytes = {0};
  weir_view_t meta_graph = {0};
  weir_status_t* status =
      weir_saved_model_is(export_dir, &path)
          ? weir_fs_read_all(path.data, &message)
          : WEIR_STATUS(NOT_FOUND,
                        "Could not find SavedModel .pb or .pbtxt at supplied export "
                        "directory path: %s",
                        export_dir);
  if (!status && weir_view_ends_with(weir_strbuf_view(&path), ".pbtxt"))
    status = WEIR_STATUS(UNIMPLEMENTED, "'%s' is text: its MetaGraphDef is not given", path.data);
  if (!status) status = weir_saved_model_select(weir_strbuf_view(&message), tags, &meta_graph);
  if (!status) weir_strbuf_append(&bytes, meta_graph.data, meta_graph.size);
  if (!status) status = tf_buffer_take(out, &bytes);
  weir_strbuf_free(&path);
  weir_strbuf_free(&message);
  weir_strbuf_free(&bytes);
  return status;
}

TF_Session* TF_LoadSessionFromSavedModel(const TF_SessionOptions* session_options,
                                         const TF_Buffer* run_options, const char* export_dir,
                                         const char* const* tags, int tags_len, TF_Graph* graph,
                                         TF_Buffer* meta_graph_def, TF_Status* status) {
  weir_strbuf_t joined = {0};
  weir_run_options_t unused;
  TF_Session* session = NULL;
  weir_status_t* result = tf_run_options_parse(run_options, &unused);
  if (!result) result = join_tags(tags, tags_len, &joined);
  if (!result && meta_graph_def) result = give_meta_graph(export_dir, joined.data, meta_graph_def);
  if (!result) result = load(session_options, export_dir, joined.data, graph, &session);
  weir_strbuf_free(&joined);
  tf_status_take(status, result);
  return session;
}

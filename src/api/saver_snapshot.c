// saver_snapshot.c — Saving where the variables are with servers: these take them between the steps
// of all clients (op/gate.h) and write them while steps go on.
//
// It is one step, that of the saver's nodes, with one more fetch: a node that comes after the reads
// of all variables. Its value says that they are taken, long before the step ends.
#include "api/saver.h"
#include "api/scope.h"
#include "base/alloc.h"
#include "session/session.h"

// Adds the node, when the first is saved so: graphs that are not have what TensorFlow's have.
static weir_status_t* add_taken(weir_saver_t* saver, weir_graph_t* graph) {
  if (saver->taken.node) return NULL;
  weir_scope_t* root = weir_scope_create(graph);
  weir_node_t** reads = weir_scope_alloc(root, (size_t)saver->value_count, sizeof(*reads));
  for (int i = 0; reads && i < saver->value_count; ++i) reads[i] = saver->values[i].node;
  weir_scope_t* after = weir_scope_after(root, reads, reads ? saver->value_count : 0);
  weir_strbuf_t name = {0};
  weir_strbuf_printf(&name, "%s/taken", saver->saved.node->def.name);
  weir_status_t* status = weir_strbuf_finish(&name);
  weir_node_t* node = NULL;
  if (!status)
    node = weir_scope_add(after, "Identity", name.data, WEIR_EDGES(saver->filename), WEIR_NO_ATTRS);
  weir_strbuf_free(&name);
  weir_status_t* failed = weir_scope_finish(root);
  if (status) weir_status_destroy(failed);
  else status = failed;
  if (!status) saver->taken = weir_scope_first(node);
  return status;
}

weir_status_t* weir_saver_begin_snapshot(weir_saver_t* saver, weir_session_t* session,
                                         const char* path, void** out_step) {
  weir_tensor_t* filename = NULL;
  WEIR_TRY(add_taken(saver, session->graph));
  WEIR_TRY(weir_tensor_create_strings(0, NULL, &path, NULL, &filename));
  const weir_feed_t feed = {saver->filename, filename};
  const weir_edge_t fetches[] = {saver->taken, saver->saved};
  const weir_step_spec_t spec = {
      .feeds = &feed, .feed_count = 1, .fetches = fetches, .fetch_count = 2};
  weir_remote_session_t* remote = session->remote;
  weir_status_t* status = remote->vtable->begin_snapshot(remote, &spec, out_step);
  weir_tensor_release(filename);
  return status;
}

weir_status_t* weir_saver_end_snapshot(weir_session_t* session, void* take_step) {
  return session->remote->vtable->end_snapshot(session->remote, take_step);
}

// file_api.c — The public functions on files: graphs, npy arrays, event files.
#include <stdio.h>

#include "api/events.h"
#include "file/fs.h"
#include "file/npy.h"
#include "graph/graph.h"
#include "weir/argument.h"
#include "weir/file.h"

weir_status_t* weir_graph_load(const char* path, weir_graph_t** out_graph) {
  WEIR_REQUIRE_ARG(path);
  WEIR_REQUIRE_ARG(out_graph);
  weir_strbuf_t bytes = {0};
  weir_graph_t* graph = NULL;
  weir_view_t name = weir_view_of(path);
  bool is_text = weir_view_ends_with(name, ".pbtxt") || weir_view_ends_with(name, ".txt");
  weir_status_t* status = weir_fs_read_all(path, &bytes);
  if (!status) status = weir_graph_create(&graph);
  if (!status) {
    status = is_text ? weir_graph_import_text(graph, bytes.data, bytes.size, NULL)
                     : weir_graph_import_def(graph, bytes.data, bytes.size, NULL);
    status = weir_status_prefix(status, "%s: ", path);
  }
  weir_strbuf_free(&bytes);
  if (status) {
    weir_graph_release(graph);
    return status;
  }
  *out_graph = graph;
  return NULL;
}

weir_status_t* weir_tensor_load_npy(const char* path, weir_tensor_t** out_tensor) {
  WEIR_REQUIRE_ARG(path);
  WEIR_REQUIRE_ARG(out_tensor);
  return weir_npy_load(path, out_tensor);
}
weir_status_t* weir_tensor_save_npy(const weir_tensor_t* tensor, const char* path) {
  WEIR_REQUIRE_ARG(tensor);
  WEIR_REQUIRE_ARG(path);
  return weir_npy_save(path, tensor);
}

weir_status_t* weir_tensor_to_text(const weir_tensor_t* tensor, int64_t limit, char** out_text) {
  WEIR_REQUIRE_ARG(tensor);
  WEIR_REQUIRE_ARG(out_text);
  weir_strbuf_t text = {0};
  weir_strbuf_puts(&text, "");
  weir_tensor_print(tensor, limit, &text);
  weir_status_t* status = weir_strbuf_finish(&text);
  if (status) weir_strbuf_free(&text);
  else *out_text = text.data;
  return status;
}

weir_status_t* weir_events_create(const char* directory, weir_events_t** out_events) {
  WEIR_REQUIRE_ARG(directory);
  WEIR_REQUIRE_ARG(out_events);
  weir_events_t* events = weir_calloc(1, sizeof(*events));
  if (!events) return weir_out_of_memory();
  weir_status_t* status = weir_event_writer_create(directory, "", &events->writer);
  if (status) {
    weir_free(events);
    return status;
  }
  *out_events = events;
  return NULL;
}

weir_status_t* weir_events_scalar(weir_events_t* events, const char* tag, float value,
                                  int64_t step) {
  WEIR_REQUIRE_ARG(events);
  WEIR_REQUIRE_ARG(tag);
  return weir_event_add_scalar(events->writer, step, tag, (double)value);
}

weir_status_t* weir_events_add_summary(weir_events_t* events, const weir_tensor_t* summary,
                                       int64_t step) {
  WEIR_REQUIRE_ARG(events);
  WEIR_REQUIRE_ARG(summary);
  if (weir_tensor_dtype(summary) != WEIR_DTYPE_STRING || weir_tensor_count(summary) != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "a summary is one string, not %lld of %s",
                       (long long)weir_tensor_count(summary),
                       weir_dtype_name(weir_tensor_dtype(summary)));
  }
  size_t size = 0;
  const char* data = weir_tensor_string(summary, 0, &size);
  return weir_event_add_summary(events->writer, step, weir_view(data, size));
}

weir_status_t* weir_events_graph(weir_events_t* events, weir_graph_t* graph) {
  WEIR_REQUIRE_ARG(events);
  WEIR_REQUIRE_ARG(graph);
  char* data = NULL;
  size_t size = 0;
  WEIR_TRY(weir_graph_to_def(graph, &data, &size));
  weir_status_t* status = weir_event_add_graph(events->writer, 0, weir_view(data, size));
  weir_buffer_free(data);
  return status;
}

weir_status_t* weir_events_flush(weir_events_t* events) {
  WEIR_REQUIRE_ARG(events);
  return weir_event_writer_flush(events->writer);
}

weir_status_t* weir_events_close(weir_events_t* take_events) {
  if (!take_events) return NULL;
  weir_status_t* status = weir_event_writer_close(take_events->writer);
  weir_free(take_events);
  return status;
}

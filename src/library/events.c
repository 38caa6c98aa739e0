// events.c — Histograms, pictures and sounds that a program writes to event files itself: by the
// ops that make their summaries, in a graph of one node.
#include "nodes.h"
#include "weir/argument.h"
#include "weir/tensorboard.h"

// A graph with an input for |value|, and a scope in it where the summary of |input| is to be made.
typedef struct one_node_t {
  weir_graph_t* graph;
  weir_scope_t* s;
  weir_edge_t tag, input;
} one_node_t;

static weir_status_t* open_node(const char* tag, const weir_tensor_t* value, one_node_t* n) {
  WEIR_TRY(weir_graph_create(&n->graph));
  n->s = weir_scope_create(n->graph);
  n->tag = weir_const_string(n->s, tag);
  n->input = weir_placeholder(n->s, weir_tensor_dtype(value), .shape = {.rank = -1});
  return NULL;
}

// Ends the scope, runs |summary| and writes it.
static weir_status_t* write_node(one_node_t* n, weir_edge_t summary, weir_events_t* events,
                                 weir_tensor_t* value, int64_t step) {
  weir_session_t* session = NULL;
  weir_tensor_t* result = NULL;
  weir_step_spec_t spec = {WEIR_FEEDS({n->input, value}), WEIR_FETCHES(summary)};
  weir_status_t* status = weir_scope_finish(n->s);
  if (!status)
    status = weir_session_create(n->graph, &(const weir_session_options_t){.threads = 1}, &session);
  if (!status) status = weir_session_run(session, &spec, &result);
  if (!status) status = weir_events_add_summary(events, result, step);
  weir_tensor_release(result);
  weir_session_destroy(session);
  weir_graph_release(n->graph);
  return status;
}

weir_status_t* weir_events_histogram(weir_events_t* events, const char* tag, weir_tensor_t* values,
                                     int64_t step) {
  WEIR_REQUIRE_ARG(events);
  WEIR_REQUIRE_ARG(tag);
  WEIR_REQUIRE_ARG(values);
  one_node_t n = {0};
  WEIR_TRY(open_node(tag, values, &n));
  return write_node(&n, weir_histogram_summary(n.s, n.tag, n.input), events, values, step);
}

weir_status_t* weir_events_images(weir_events_t* events, const char* tag, weir_tensor_t* images,
                                  int count, int64_t step) {
  WEIR_REQUIRE_ARG(events);
  WEIR_REQUIRE_ARG(tag);
  WEIR_REQUIRE_ARG(images);
  WEIR_REQUIRE_COUNT(count);
  one_node_t n = {0};
  WEIR_TRY(open_node(tag, images, &n));
  weir_edge_t summary = weir_image_summary(n.s, n.tag, n.input, .max_images = {count, count != 0});
  return write_node(&n, summary, events, images, step);
}

weir_status_t* weir_events_sounds(weir_events_t* events, const char* tag, weir_tensor_t* sounds,
                                  float rate, int count, int64_t step) {
  WEIR_REQUIRE_ARG(events);
  WEIR_REQUIRE_ARG(tag);
  WEIR_REQUIRE_ARG(sounds);
  WEIR_REQUIRE_COUNT(count);
  one_node_t n = {0};
  WEIR_TRY(open_node(tag, sounds, &n));
  weir_edge_t summary = weir_audio_summary_v2(n.s, n.tag, n.input, weir_const_float(n.s, rate),
                                              .max_outputs = {count, count != 0});
  return write_node(&n, summary, events, sounds, step);
}

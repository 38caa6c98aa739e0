// loop_events.c — The events that a training loop writes: the loss of each step, metrics, summaries
// and, into a file of its own, the graph.
//
// Where there is no space for its own file the loop goes on without: what would be written is left
// out, and after a while another file is begun, since the one before may end in half a record.
// TensorBoard shows the files of a directory as one run.
#include "loop.h"

// More than one, since files are named by the second.
enum { PAUSE_SECONDS = 2 };

static weir_status_t* open_file(weir_fit_loop_t* loop) {
  WEIR_TRY(weir_events_create(loop->o->directory, &loop->own_events));
  loop->state.events = loop->own_events;
  return weir_events_graph(loop->own_events, weir_session_graph(loop->session));
}

// The graph goes with the loop's own events; who hands in events writes it there if he likes.
weir_status_t* weir_loop_open_events(weir_fit_loop_t* loop) {
  const weir_fit_options_t* o = loop->o;
  if (!o->directory || o->events || loop->own_events || loop->is_worker) return NULL;
  return open_file(loop);
}

weir_status_t* weir_loop_close_events(weir_fit_loop_t* loop) {
  weir_events_t* events = loop->own_events;
  loop->own_events = NULL;
  loop->state.events = loop->o->events;
  return weir_events_close(events);
}

// ---- without space ----

// Closes the file where that is what |take_status| says; else it is the caller's.
static weir_status_t* do_without(weir_fit_loop_t* loop, weir_status_t* take_status) {
  if (weir_status_code(take_status) != WEIR_RESOURCE_EXHAUSTED || loop->o->events)
    return take_status;
  weir_status_destroy(weir_loop_close_events(loop));  // what is left of it has no space either
  if (!loop->events_pause_until)
    weir_progress_note(&loop->progress, "events are not written", weir_status_message(take_status));
  weir_status_destroy(take_status);
  loop->events_pause_until = weir_loop_now() + PAUSE_SECONDS;
  return NULL;
}

// Begins another file, if one was closed for want of space and it is time to look.
static weir_status_t* look_for_space(weir_fit_loop_t* loop) {
  if (!loop->events_pause_until || weir_loop_now() < loop->events_pause_until) return NULL;
  WEIR_TRY(do_without(loop, weir_loop_open_events(loop)));
  if (!loop->own_events) return NULL;
  loop->events_pause_until = 0;
  weir_progress_note(&loop->progress, "events are written", "there is space again");
  return NULL;
}

weir_status_t* weir_loop_scalar(weir_fit_loop_t* loop, const char* tag, float value) {
  WEIR_TRY(look_for_space(loop));
  if (!loop->state.events) return NULL;
  return do_without(loop, weir_events_scalar(loop->state.events, tag, value, loop->state.step));
}

weir_status_t* weir_loop_summary(weir_fit_loop_t* loop, const weir_tensor_t* summary) {
  if (!loop->state.events) return NULL;
  return do_without(loop, weir_events_add_summary(loop->state.events, summary, loop->state.step));
}

// trainer.c — The training loop: takes steps until something says stop, and writes down what
// happened.
#include "weir/trainer.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "progress.h"
#include "signals.h"

enum { SUMMARY_EVERY = 100, EVALUATE_EVERY = 1000, SAVE_SECONDS = 600, GRACE_SECONDS = 5 };

// A running loop.
typedef struct loop_t {
  const weir_fit_options_t* o;
  weir_session_t* session;
  weir_node_t* target;
  weir_edge_t loss;
  weir_fit_state_t state;
  weir_fit_result_t result;
  weir_events_t* own_events;  // to be closed
  weir_progress_t progress;
  double saved_at;      // seconds, of the last checkpoint
  int64_t saved_step;   // -1: none
  int evaluations_bad;  // in a row
  bool is_over;         // result.reason says why
  // What ends a step that goes on after a signal:
  weir_cancellation_t* cancellation;  // NULL: nothing
  atomic_bool is_beginning;           // variables are initialised or restored
  atomic_bool is_overdue;             // a signal came, and the grace after it is over
} loop_t;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void stop(loop_t* loop, weir_stop_t reason) {
  if (!loop->is_over) loop->result.reason = reason;
  loop->is_over = true;
}

// ---- signals ----

// Called on another thread when the grace after a signal is over.
static void end_step(void* arg) {
  loop_t* loop = arg;
  atomic_store(&loop->is_overdue, true);
  weir_cancellation_cancel(loop->cancellation);
  if (atomic_load(&loop->is_beginning)) weir_session_cancel(loop->session);  // a saver's run
}

static weir_status_t* catch_signals(loop_t* loop) {
  const double grace = loop->o->grace_seconds;
  if (loop->o->no_signals) return NULL;
  WEIR_TRY(weir_cancellation_create(&loop->cancellation));
  weir_status_t* status = weir_signals_catch(grace != 0 ? grace : GRACE_SECONDS, end_step, loop);
  if (!status) return NULL;
  weir_cancellation_destroy(loop->cancellation);
  loop->cancellation = NULL;
  return status;
}

static void restore_signals(loop_t* loop) {
  if (loop->cancellation) weir_signals_restore();
  weir_cancellation_destroy(loop->cancellation);
}

// Whether |*status| is what end_step did, and no error then.
static bool was_ended(loop_t* loop, weir_status_t** status) {
  const bool is_ended =
      weir_status_code(*status) == WEIR_CANCELLED && atomic_load(&loop->is_overdue);
  if (!is_ended) return false;
  weir_status_destroy(*status);
  *status = NULL;
  loop->result.is_cut = true;
  stop(loop, WEIR_STOP_SIGNAL);
  return true;
}

static weir_status_t* run_spec(loop_t* loop, const weir_step_spec_t* spec,
                               weir_tensor_t** results) {
  const weir_run_options_t options = {.cancellation = loop->cancellation};
  return weir_session_run_with(loop->session, spec, &options, results, NULL, NULL);
}

// ---- checkpoints ----

static weir_status_t* save(loop_t* loop) {
  const weir_fit_options_t* o = loop->o;
  if (!o->saver || !o->directory || loop->saved_step == loop->state.step) return NULL;
  char prefix[4096];
  int size = snprintf(prefix, sizeof(prefix), "%s/model.ckpt", o->directory);
  if (size >= (int)sizeof(prefix))
    return WEIR_STATUS(INVALID_ARGUMENT, "fit: the name of the directory is too long");
  WEIR_TRY(weir_saver_save(o->saver, loop->session, prefix, loop->state.step, NULL));
  loop->saved_step = loop->state.step;
  loop->saved_at = now();
  return NULL;
}

static bool is_save_due(const loop_t* loop) {
  const weir_fit_options_t* o = loop->o;
  if (o->save_every > 0 && loop->state.step % o->save_every == 0) return true;
  double seconds = o->save_every_seconds;
  if (seconds <= 0) seconds = o->save_every > 0 ? INFINITY : SAVE_SECONDS;
  return now() - loop->saved_at >= seconds;
}

// "dir/model.ckpt-120" was made after step 120.
static int64_t step_of(const char* prefix) {
  const char* dash = strrchr(prefix, '-');
  char* end = NULL;
  if (!dash) return 0;
  const int64_t step = strtoll(dash + 1, &end, 10);
  return end != dash + 1 && !*end && step > 0 ? step : 0;
}

static weir_status_t* run_node(loop_t* loop, weir_node_t* node) {
  weir_tensor_t* none = NULL;
  return run_spec(loop, &(const weir_step_spec_t){WEIR_TARGETS(node)}, &none);
}

// Restores the latest checkpoint or, without one, initialises.
static weir_status_t* begin(loop_t* loop) {
  const weir_fit_options_t* o = loop->o;
  char* prefix = NULL;
  if (o->saver && o->directory && !o->no_resume) {
    WEIR_TRY(weir_latest_checkpoint(o->directory, &prefix));
    weir_status_t* status = weir_saver_recover(o->saver, o->directory);
    if (!status && prefix) status = weir_saver_restore(o->saver, loop->session, prefix);
    loop->result.is_resumed = prefix != NULL;
    if (prefix) loop->state.step = loop->saved_step = step_of(prefix);
    weir_buffer_free(prefix);
    if (status) return status;
  }
  if (loop->result.is_resumed && o->data) weir_batcher_seek(o->data, loop->state.step);
  if (!loop->result.is_resumed && o->init) WEIR_TRY(run_node(loop, o->init));
  return o->start ? run_node(loop, o->start) : NULL;
}

// ---- one step ----

static weir_status_t* gather_feeds(loop_t* loop, weir_feed_t* feeds, int* count) {
  const weir_fit_options_t* o = loop->o;
  if (o->data) {
    weir_tensor_t* batch[WEIR_FIT_MAX_FEEDS] = {NULL};
    const int tensors = weir_batcher_tensor_count(o->data);
    WEIR_TRY(weir_batcher_next(o->data, batch));
    for (int i = 0; i < tensors; ++i) feeds[(*count)++] = (weir_feed_t){o->inputs[i], batch[i]};
  }
  return o->feed ? o->feed(o->arg, loop->state.step, feeds, count) : NULL;
}

static weir_status_t* note_loss(loop_t* loop, weir_tensor_t* value) {
  if (weir_tensor_dtype(value) != WEIR_DTYPE_FLOAT || weir_tensor_count(value) != 1)
    return WEIR_STATUS(INVALID_ARGUMENT, "fit: the loss is not a float scalar");
  loop->state.loss = *(const float*)weir_tensor_data(value);
  ++loop->state.step;
  if (!loop->state.events) return NULL;
  return weir_events_scalar(loop->state.events, "loss", loop->state.loss, loop->state.step);
}

static weir_status_t* take_step(loop_t* loop) {
  const weir_fit_options_t* o = loop->o;
  weir_feed_t feeds[WEIR_FIT_MAX_FEEDS];
  weir_tensor_t* results[2] = {NULL, NULL};
  int count = 0;
  const int every = o->summary_every > 0 ? o->summary_every : SUMMARY_EVERY;
  const bool is_summary =
      o->summaries.node && loop->state.events && (loop->state.step + 1) % every == 0;
  const weir_edge_t fetches[] = {loop->loss, o->summaries};
  weir_status_t* status = gather_feeds(loop, feeds, &count);
  if (status) goto done;
  weir_step_spec_t spec = {.feeds = feeds,
                           .feed_count = count,
                           .fetches = fetches,
                           .fetch_count = is_summary ? 2 : 1,
                           .targets = &loop->target,
                           .target_count = 1};
  status = run_spec(loop, &spec, results);
  if (!status) status = note_loss(loop, results[0]);
  if (!status && is_summary)
    status = weir_events_add_summary(loop->state.events, results[1], loop->state.step);
  const bool has_rows = count > 0 && weir_tensor_rank(feeds[0].tensor) > 0;
  if (has_rows) loop->progress.items += weir_tensor_dim(feeds[0].tensor, 0);
done:
  for (int i = 0; i < count; ++i) weir_tensor_release(feeds[i].tensor);
  weir_tensor_release(results[0]);
  weir_tensor_release(results[1]);
  return status;
}

// ---- after a step ----

static weir_status_t* evaluate(loop_t* loop) {
  const weir_fit_options_t* o = loop->o;
  const int every = o->evaluate_every > 0 ? o->evaluate_every : EVALUATE_EVERY;
  float metric = NAN;
  if (!o->evaluate || loop->state.step % every) return NULL;
  WEIR_TRY(o->evaluate(o->arg, &loop->state, &metric));
  const float gain =
      o->higher_is_better ? metric - loop->result.best_metric : loop->result.best_metric - metric;
  const bool is_first = isnan(loop->result.best_metric);
  if (!isnan(metric) && (is_first || gain > o->min_delta)) {
    loop->result.best_metric = metric;
    loop->result.best_step = loop->state.step;
    loop->evaluations_bad = 0;
  } else if (++loop->evaluations_bad >= o->patience && o->patience > 0) {
    stop(loop, WEIR_STOP_METRIC);
  }
  if (!loop->state.events) return NULL;
  return weir_events_scalar(loop->state.events, "metric", metric, loop->state.step);
}

static weir_status_t* after_step(loop_t* loop) {
  const weir_fit_options_t* o = loop->o;
  bool is_asked = false;
  loop->state.seconds = now() - loop->progress.began;
  if (o->on_step) WEIR_TRY(o->on_step(o->arg, &loop->state, &is_asked));
  WEIR_TRY(evaluate(loop));
  if (is_save_due(loop)) WEIR_TRY(save(loop));
  if (is_asked) stop(loop, WEIR_STOP_REQUEST);
  if (o->max_steps > 0 && loop->state.step >= o->max_steps) stop(loop, WEIR_STOP_STEPS);
  return NULL;
}

static weir_status_t* run(loop_t* loop) {
  const weir_fit_options_t* o = loop->o;
  weir_status_t* status = NULL;
  if (o->max_steps > 0 && loop->state.step >= o->max_steps) stop(loop, WEIR_STOP_STEPS);
  while (!loop->is_over && !status) {
    if (weir_signals_caught()) stop(loop, WEIR_STOP_SIGNAL);
    if (o->coordinator && weir_coordinator_should_stop(o->coordinator))
      stop(loop, WEIR_STOP_REQUEST);
    if (loop->is_over) break;
    status = take_step(loop);
    if (was_ended(loop, &status)) break;
    if (weir_status_code(status) == WEIR_OUT_OF_RANGE) {
      weir_status_destroy(status);
      status = NULL;
      stop(loop, WEIR_STOP_DATA);
      break;
    }
    if (!status) status = after_step(loop);
    if (!status) {
      loop->progress.is_last = loop->is_over;
      weir_progress_show(&loop->progress, loop->state.step, loop->state.loss, now());
    }
  }
  weir_progress_end(&loop->progress);
  return status ? status : save(loop);
}

// What would be passed over in silence is taken for a mistake.
static weir_status_t* check_arguments(const loop_t* loop) {
  const weir_fit_options_t* o = loop->o;
  const char* wrong = !loop->session                    ? "session is NULL"
                      : !loop->target                   ? "step is NULL: nothing would be trained"
                      : !loop->loss.node                ? "loss is an edge without a node"
                      : o->max_steps < 0                ? "max_steps is negative"
                      : o->inputs && !o->data           ? "inputs are given, but data is NULL"
                      : o->saver && !o->directory       ? "a saver is given, but directory is NULL"
                      : o->patience > 0 && !o->evaluate ? "patience is given, but evaluate is NULL"
                                                        : NULL;
  if (wrong) return WEIR_STATUS(INVALID_ARGUMENT, "fit: %s", wrong);
  if (!o->data) return NULL;
  const int tensors = weir_batcher_tensor_count(o->data);
  if (o->inputs && tensors <= WEIR_FIT_MAX_FEEDS) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "fit: a batcher of %d tensors needs as many inputs, at most %d", tensors,
                     WEIR_FIT_MAX_FEEDS);
}

static weir_status_t* fit(loop_t* loop) {
  atomic_store(&loop->is_beginning, true);
  weir_status_t* status = begin(loop);
  atomic_store(&loop->is_beginning, false);
  if (was_ended(loop, &status)) return NULL;  // there is nothing to save
  loop->saved_at = now();
  weir_progress_begin(&loop->progress, loop->o, loop->state.step, now());
  return status ? status : run(loop);
}

weir_status_t* weir_fit_with(weir_session_t* session, weir_node_t* step, weir_edge_t loss,
                             const weir_fit_options_t* options, weir_fit_result_t* out_result) {
  options = options ? options : &(const weir_fit_options_t){0};
  loop_t loop = {.o = options,
                 .session = session,
                 .target = step,
                 .loss = loss,
                 .state = {.loss = NAN, .session = session, .events = options->events},
                 .result = {.best_metric = NAN},
                 .saved_step = -1};
  WEIR_TRY(check_arguments(&loop));
  if (options->directory && !options->events) {
    WEIR_TRY(weir_events_create(options->directory, &loop.own_events));
    loop.state.events = loop.own_events;
  }
  weir_status_t* status = catch_signals(&loop);
  if (!status) status = fit(&loop);
  restore_signals(&loop);
  weir_status_t* closed = weir_events_close(loop.own_events);
  if (status) weir_status_destroy(closed);
  else status = closed;
  loop.result.step = loop.state.step;
  loop.result.loss = loop.state.loss;
  if (out_result) *out_result = loop.result;
  return status;
}

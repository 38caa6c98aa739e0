// trainer.c — The training loop: takes steps until something says stop, and writes down what
// happened.
#include "weir/trainer.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

#include "lease.h"
#include "loop.h"
#include "signals.h"

enum { SUMMARY_EVERY = 100, EVALUATE_EVERY = 1000, GRACE_SECONDS = 5 };

double weir_loop_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void weir_loop_stop(weir_fit_loop_t* loop, weir_stop_t reason) {
  if (!loop->is_over) loop->result.reason = reason;
  loop->is_over = true;
}

void weir_loop_heed(weir_fit_loop_t* loop) {
  const weir_fit_options_t* o = loop->o;
  if (weir_signals_caught()) weir_loop_stop(loop, WEIR_STOP_SIGNAL);
  if (o->coordinator && weir_coordinator_should_stop(o->coordinator))
    weir_loop_stop(loop, WEIR_STOP_REQUEST);
}

// ---- signals ----

// Called on another thread when the grace after a signal is over.
static void end_step(void* arg) {
  weir_fit_loop_t* loop = arg;
  atomic_store(&loop->is_overdue, true);
  weir_cancellation_cancel(loop->cancellation);
  if (atomic_load(&loop->is_beginning)) weir_session_cancel(loop->session);  // a saver's run
}

static weir_status_t* catch_signals(weir_fit_loop_t* loop) {
  const double grace = loop->o->grace_seconds;
  if (loop->o->no_signals) return NULL;
  WEIR_TRY(weir_cancellation_create(&loop->cancellation));
  weir_status_t* status = weir_signals_catch(grace != 0 ? grace : GRACE_SECONDS, end_step, loop);
  if (!status) return NULL;
  weir_cancellation_destroy(loop->cancellation);
  loop->cancellation = NULL;
  return status;
}

static void restore_signals(weir_fit_loop_t* loop) {
  if (loop->cancellation) weir_signals_restore();
  weir_cancellation_destroy(loop->cancellation);
}

// Whether |*status| is what end_step did, and no error then.
static bool was_ended(weir_fit_loop_t* loop, weir_status_t** status) {
  const bool is_ended =
      weir_status_code(*status) == WEIR_CANCELLED && atomic_load(&loop->is_overdue);
  if (!is_ended) return false;
  weir_status_destroy(*status);
  *status = NULL;
  loop->result.is_cut = true;
  weir_loop_stop(loop, WEIR_STOP_SIGNAL);
  return true;
}

weir_status_t* weir_loop_run(weir_fit_loop_t* loop, const weir_step_spec_t* spec, double seconds,
                             weir_tensor_t** results) {
  const weir_run_options_t options = {.cancellation = loop->cancellation,
                                      .timeout_ms = (int64_t)ceil(1000 * seconds)};
  return weir_session_run_with(loop->session, spec, &options, results, NULL, NULL);
}

// ---- one step ----

static weir_status_t* gather_feeds(weir_fit_loop_t* loop, weir_feed_t* feeds, int* count) {
  const weir_fit_options_t* o = loop->o;
  if (o->data) {
    weir_tensor_t* batch[WEIR_FIT_MAX_FEEDS] = {NULL};
    const int tensors = weir_batcher_tensor_count(o->data);
    WEIR_TRY(weir_batcher_next(o->data, batch));
    for (int i = 0; i < tensors; ++i) feeds[(*count)++] = (weir_feed_t){o->inputs[i], batch[i]};
  }
  return o->feed ? o->feed(o->arg, loop->state.step, feeds, count) : NULL;
}

static weir_status_t* note_loss(weir_fit_loop_t* loop, weir_tensor_t* value) {
  if (weir_tensor_dtype(value) != WEIR_DTYPE_FLOAT || weir_tensor_count(value) != 1)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "fit: the loss '%s:%d' is %s of rank %d, not a float scalar",
                       weir_node_name(loop->loss.node), loop->loss.index,
                       weir_dtype_name(weir_tensor_dtype(value)), weir_tensor_rank(value));
  loop->state.loss = *(const float*)weir_tensor_data(value);
  return weir_loop_scalar(loop, "loss", loop->state.loss);
}

// The step read the global step at some moment, perhaps before it was counted. It is not said to
// go back, for that.
static weir_status_t* note_step(weir_fit_loop_t* loop, const weir_tensor_t* global_step) {
  int64_t step = loop->state.step + 1;
  if (global_step) WEIR_TRY(weir_loop_read_step(global_step, &step));
  loop->step_before = loop->state.step;
  if (step > loop->state.step) loop->state.step = step;
  ++loop->taken;
  ++loop->result.taken;
  loop->lost_since = loop->retry_pause = 0;
  loop->unready = loop->attempts = 0;
  return NULL;
}

// What follows a loss that is no number is none either: there is nothing to train any more.
static weir_status_t* check_loss(const weir_fit_loop_t* loop) {
  if (!isnan(loop->state.loss) || loop->o->allow_nan) return NULL;
  return WEIR_STATUS(
      INVALID_ARGUMENT,
      "fit: the loss '%s:%d' is NaN at step %lld; a smaller learning rate, gradients "
      "that are clipped (weir/clip.h), or a look at the data may help "
      "(allow_nan goes on)",
      weir_node_name(loop->loss.node), loop->loss.index, (long long)loop->state.step);
}

static weir_status_t* take_step(weir_fit_loop_t* loop) {
  const weir_fit_options_t* o = loop->o;
  weir_feed_t feeds[WEIR_FIT_MAX_FEEDS];
  weir_tensor_t* results[3] = {NULL, NULL, NULL};
  int count = 0;
  const int every = o->summary_every > 0 ? o->summary_every : SUMMARY_EVERY;
  const bool is_summary = o->summaries.node && loop->state.events && (loop->taken + 1) % every == 0;
  const int counter = is_summary ? 2 : 1;  // where the global step is
  const weir_edge_t fetches[] = {loop->loss, is_summary ? o->summaries : o->global_step,
                                 o->global_step};
  weir_status_t* status = gather_feeds(loop, feeds, &count);
  if (status) goto done;
  weir_step_spec_t spec = {.feeds = feeds,
                           .feed_count = count,
                           .fetches = fetches,
                           .fetch_count = counter + (o->global_step.node != NULL),
                           .targets = &loop->target,
                           .target_count = 1};
  status = weir_loop_run(loop, &spec, o->step_seconds, results);
  if (!status) status = note_step(loop, results[counter]);
  if (!status) status = note_loss(loop, results[0]);
  if (!status && is_summary) status = weir_loop_summary(loop, results[1]);
  if (!status) status = check_loss(loop);
  const bool has_rows = count > 0 && weir_tensor_rank(feeds[0].tensor) > 0;
  if (has_rows) loop->progress.items += weir_tensor_dim(feeds[0].tensor, 0);
done:
  for (int i = 0; i < count; ++i) weir_tensor_release(feeds[i].tensor);
  for (int i = 0; i < 3; ++i) weir_tensor_release(results[i]);
  return status;
}

// ---- after a step ----

static weir_status_t* evaluate(weir_fit_loop_t* loop) {
  const weir_fit_options_t* o = loop->o;
  const int every = o->evaluate_every > 0 ? o->evaluate_every : EVALUATE_EVERY;
  float metric = NAN;
  loop->metric = NAN;
  if (!o->evaluate || !weir_loop_is_due(loop, every)) return NULL;
  WEIR_TRY(o->evaluate(o->arg, &loop->state, &metric));
  loop->metric = metric;
  const float gain =
      o->higher_is_better ? metric - loop->result.best_metric : loop->result.best_metric - metric;
  const bool is_first = isnan(loop->result.best_metric);
  if (!isnan(metric) && (is_first || gain > o->min_delta)) {
    loop->result.best_metric = metric;
    loop->result.best_step = loop->state.step;
    loop->evaluations_bad = 0;
  } else if (++loop->evaluations_bad >= o->patience && o->patience > 0) {
    weir_loop_stop(loop, WEIR_STOP_METRIC);
  }
  return weir_loop_scalar(loop, "metric", metric);
}

static weir_status_t* check_steps(weir_fit_loop_t* loop) {
  const int64_t most = loop->o->max_steps;
  if (most <= 0 || loop->state.step + 1 < most) return NULL;
  WEIR_TRY(weir_loop_count(loop));
  if (loop->state.step >= most) weir_loop_stop(loop, WEIR_STOP_STEPS);
  return NULL;
}

static weir_status_t* after_step(weir_fit_loop_t* loop) {
  const weir_fit_options_t* o = loop->o;
  bool is_asked = false;
  loop->state.seconds = weir_loop_now() - loop->progress.began;
  if (o->on_step) WEIR_TRY(o->on_step(o->arg, &loop->state, &is_asked));
  WEIR_TRY(evaluate(loop));
  WEIR_TRY(weir_loop_ask(loop, false));
  WEIR_TRY(weir_loop_save_when_due(loop));
  if (is_asked) weir_loop_stop(loop, WEIR_STOP_REQUEST);
  return check_steps(loop);
}

static weir_status_t* take_steps(weir_fit_loop_t* loop) {
  weir_status_t* status = NULL;
  while (!loop->is_over && !status) {
    weir_loop_heed(loop);
    if (loop->is_over) break;
    status = take_step(loop);
    if (was_ended(loop, &status)) break;
    if (weir_status_code(status) == WEIR_OUT_OF_RANGE) {
      weir_status_destroy(status);
      status = NULL;
      weir_loop_stop(loop, WEIR_STOP_DATA);
      break;
    }
    if (!status) status = after_step(loop);
    if (!status) {
      loop->progress.is_last = loop->is_over;
      weir_progress_show(&loop->progress, loop->state.step, loop->state.loss, weir_loop_now());
    } else {
      status = weir_loop_recover(loop, status);
      if (was_ended(loop, &status)) break;
    }
  }
  return status;
}

// Servers may also be lost when the last step was taken but not saved. What is restored then is of
// an earlier step, and there are steps to take again.
static weir_status_t* save_end(weir_fit_loop_t* loop, bool* out_is_again) {
  const weir_stop_t reason = loop->result.reason;
  const bool is_last = reason == WEIR_STOP_STEPS || reason == WEIR_STOP_DATA;
  weir_status_t* status = is_last ? weir_loop_await_save(loop) : NULL;
  if (!status) status = weir_loop_save(loop);
  if (loop->result.reason == WEIR_STOP_SIGNAL)
    status = weir_status_prefix(status, "fit: asked to end, but the state was not saved: ");
  *out_is_again = status && loop->result.reason == WEIR_STOP_STEPS;
  if (!*out_is_again) return status;
  loop->is_over = false;
  status = weir_loop_recover(loop, status);
  if (!status) status = check_steps(loop);
  was_ended(loop, &status);
  return status;
}

static weir_status_t* run(weir_fit_loop_t* loop) {
  weir_status_t* status = check_steps(loop);
  if (status) status = weir_loop_recover(loop, status);
  for (bool is_again = true; is_again && !status;) {
    status = take_steps(loop);
    weir_progress_end(&loop->progress);
    if (!status) status = save_end(loop, &is_again);
  }
  weir_loop_resign(loop);
  return status ? weir_loop_end_save(loop, status) : NULL;
}

// What would be passed over in silence is taken for a mistake.
static weir_status_t* check_arguments(const weir_fit_loop_t* loop) {
  const weir_fit_options_t* o = loop->o;
  bool is_highest = o->higher_is_better;
  const bool is_leased = weir_lib_is_lease(&o->lease);
  const bool keeps_best = o->saver && !o->is_worker && weir_saver_keeps_best(o->saver, &is_highest);
  const char* wrong = !loop->session                    ? "session is NULL"
                      : !loop->target                   ? "step is NULL: nothing would be trained"
                      : !loop->loss.node                ? "loss is an edge without a node"
                      : o->max_steps < 0                ? "max_steps is negative"
                      : o->inputs && !o->data           ? "inputs are given, but data is NULL"
                      : o->saver && !o->directory       ? "a saver is given, but directory is NULL"
                      : o->patience > 0 && !o->evaluate ? "patience is given, but evaluate is NULL"
                      : keeps_best && !o->evaluate
                          ? "the saver keeps the best checkpoints, but evaluate is NULL"
                      : keeps_best && is_highest != o->higher_is_better
                          ? "the saver and the loop differ in higher_is_better"
                      : o->is_worker && !o->uninitialized.node
                          ? "a worker needs uninitialized, to know what to wait for"
                      : is_leased && o->is_worker
                          ? "lease and is_worker are given: one of them says who is the chief"
                      : is_leased && !o->uninitialized.node
                          ? "a lease needs uninitialized: who has it not is a worker"
                      : o->step_seconds < 0 ? "step_seconds is negative"
                                            : NULL;
  if (wrong) return WEIR_STATUS(INVALID_ARGUMENT, "fit: %s", wrong);
  if (!o->data) return NULL;
  const int tensors = weir_batcher_tensor_count(o->data);
  if (o->inputs && tensors <= WEIR_FIT_MAX_FEEDS) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "fit: a batcher of %d tensors needs as many inputs, at most %d", tensors,
                     WEIR_FIT_MAX_FEEDS);
}

static weir_status_t* fit(weir_fit_loop_t* loop) {
  weir_progress_begin(&loop->progress, loop->o, 0, weir_loop_now());
  weir_status_t* status = weir_loop_begin(loop);
  if (was_ended(loop, &status)) return NULL;
  if (status || loop->is_over) return status;  // there is nothing to save
  loop->saved_at = weir_loop_now();
  weir_progress_begin(&loop->progress, loop->o, loop->state.step, weir_loop_now());
  return run(loop);
}

weir_status_t* weir_fit_with(weir_session_t* session, weir_node_t* step, weir_edge_t loss,
                             const weir_fit_options_t* options, weir_fit_result_t* out_result) {
  options = options ? options : &(const weir_fit_options_t){0};
  weir_fit_loop_t loop = {.o = options,
                          .session = session,
                          .target = step,
                          .loss = loss,
                          .state = {.loss = NAN, .session = session, .events = options->events},
                          .result = {.best_metric = NAN},
                          .saved_step = -1,
                          .is_worker = options->is_worker || weir_lib_is_lease(&options->lease),
                          .metric = NAN};
  WEIR_TRY(check_arguments(&loop));
  weir_status_t* status = weir_loop_open_events(&loop);
  if (!status) status = catch_signals(&loop);
  if (!status) status = fit(&loop);
  restore_signals(&loop);
  weir_status_t* closed = weir_loop_close_events(&loop);
  if (status) weir_status_destroy(closed);
  else status = closed;
  loop.result.step = loop.state.step;
  loop.result.loss = loop.state.loss;
  if (out_result) *out_result = loop.result;
  return status;
}

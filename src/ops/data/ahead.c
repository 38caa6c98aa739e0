// ahead.c — Pulling ahead.
#include "ops/data/ahead.h"

#include "ops/data/background.h"

weir_status_t* weir_ahead_init(weir_ahead_t* ahead, const weir_walk_t* walk) {
  weir_monitor_init(&ahead->monitor);
  ahead->is_made = true;
  return weir_cancel_create(walk->cancel, &ahead->cancel);
}

static void entry_free(weir_ahead_entry_t* entry, int width) {
  if (!entry) return;
  weir_element_free(entry->element, width);
  weir_status_destroy(entry->status);
  weir_free(entry);
}

void weir_ahead_stop(weir_ahead_t* ahead) {
  if (!ahead->is_made) return;
  if (ahead->cancel) weir_cancel_start(ahead->cancel);
  weir_mutex_lock(&ahead->monitor.mu);
  while (ahead->running > 0) weir_cond_wait(&ahead->monitor.changed, &ahead->monitor.mu);
  weir_mutex_unlock(&ahead->monitor.mu);
  while (ahead->head) {
    weir_ahead_entry_t* entry = ahead->head;
    ahead->head = entry->next;
    entry_free(entry, ahead->out_width);
  }
  weir_cancel_destroy(ahead->cancel);
  weir_monitor_destroy(&ahead->monitor);
  ahead->is_made = false;
}

// ---- the threads ----

static bool may_pull_locked(const weir_ahead_t* ahead) {
  return ahead->count < ahead->limit && !ahead->is_pulling && !ahead->is_paused;
}

// Waits for this thread's turn to pull, which it has then; false: there is nothing more to pull.
static bool wait_for_turn(weir_ahead_t* ahead) {
  weir_cancel_token_t token = weir_monitor_enter(&ahead->monitor, ahead->cancel);
  ++ahead->waiting;
  if (ahead->is_paused) weir_cond_broadcast(&ahead->monitor.changed);
  while (!may_pull_locked(ahead) && !ahead->is_ended &&
         weir_monitor_wait(&ahead->monitor, ahead->cancel))
    continue;
  --ahead->waiting;
  const bool is_mine =
      may_pull_locked(ahead) && !ahead->is_ended && !weir_cancel_is_cancelled(ahead->cancel);
  if (is_mine) ahead->is_pulling = true;
  weir_monitor_leave(&ahead->monitor, ahead->cancel, token);
  return is_mine;
}

static void append_locked(weir_ahead_t* ahead, weir_ahead_entry_t* entry, bool is_ready) {
  entry->is_ready = is_ready;
  if (ahead->tail) ahead->tail->next = entry;
  else ahead->head = entry;
  ahead->tail = entry;
  ++ahead->count;
}

// The turn is another's. NULL: there was no memory.
static void end_turn(weir_ahead_t* ahead, weir_ahead_entry_t* entry, bool is_ready, bool is_last) {
  weir_mutex_lock(&ahead->monitor.mu);
  if (entry) append_locked(ahead, entry, is_ready);
  else ahead->is_out_of_memory = true;
  ahead->is_pulling = false;
  ahead->is_ended = ahead->is_ended || is_last;
  if (is_ready || is_last || ahead->waiting) weir_cond_broadcast(&ahead->monitor.changed);
  weir_mutex_unlock(&ahead->monitor.mu);
}

// Pulls once. Returns the entry if something is to be made of its element.
static weir_ahead_entry_t* pull(weir_ahead_t* ahead) {
  int width = ahead->input->dataset->count;
  weir_ahead_entry_t* entry = weir_calloc(1, sizeof(*entry));
  weir_tensor_t** element = weir_element_create(width);
  if (!entry || !element) {
    weir_free(element);
    weir_free(entry);
    end_turn(ahead, NULL, false, true);
    return NULL;
  }
  entry->ahead = ahead;
  entry->element = element;
  entry->status = weir_iterator_next(ahead->input, ahead->cancel, element, &entry->is_end);
  // TensorFlow's maps hand on an end that comes with an error, what only buffers does not.
  if (entry->status && !ahead->process) entry->is_end = false;
  bool goes_on = (entry->status || !entry->is_end) && !weir_cancel_is_cancelled(ahead->cancel);
  bool is_ready = entry->status || entry->is_end || !ahead->process;
  if (is_ready && ahead->process) {  // as wide as what |process| would have made
    weir_free(element);
    entry->element = NULL;
  }
  end_turn(ahead, entry, is_ready, !goes_on);
  return is_ready ? NULL : entry;
}

static void run(void* arg);

static weir_status_t* start_thread(weir_ahead_t* ahead) {
  weir_mutex_lock(&ahead->monitor.mu);
  ++ahead->running;
  weir_mutex_unlock(&ahead->monitor.mu);
  weir_status_t* status = weir_background_run(run, ahead);
  if (!status) return NULL;
  weir_mutex_lock(&ahead->monitor.mu);
  --ahead->running;
  weir_cond_broadcast(&ahead->monitor.changed);
  weir_mutex_unlock(&ahead->monitor.mu);
  return status;
}

// Another thread pulls while this one is busy. Where there is none to be had it does so later.
static void get_help(weir_ahead_t* ahead) {
  weir_mutex_lock(&ahead->monitor.mu);
  const bool is_wanted = !ahead->waiting && !ahead->is_ended && may_pull_locked(ahead) &&
                         ahead->running < ahead->at_once;
  weir_mutex_unlock(&ahead->monitor.mu);
  if (is_wanted) weir_status_destroy(start_thread(ahead));
}

static void finish(weir_ahead_entry_t* entry) {
  weir_ahead_t* ahead = entry->ahead;
  weir_mutex_lock(&ahead->monitor.mu);
  entry->is_ready = true;
  if (entry == ahead->head && ahead->takers) weir_cond_broadcast(&ahead->monitor.changed);
  weir_mutex_unlock(&ahead->monitor.mu);
}

static void run(void* arg) {
  weir_ahead_t* ahead = arg;
  while (wait_for_turn(ahead)) {
    weir_ahead_entry_t* entry = pull(ahead);
    if (!entry) continue;
    get_help(ahead);
    ahead->process(ahead->arg, entry);
    finish(entry);
  }
  weir_mutex_lock(&ahead->monitor.mu);
  --ahead->running;
  weir_cond_broadcast(&ahead->monitor.changed);
  weir_mutex_unlock(&ahead->monitor.mu);
}

// ---- who asks ----

static weir_status_t* start_once(weir_ahead_t* ahead) {
  if (ahead->is_started) return NULL;
  WEIR_TRY(start_thread(ahead));
  ahead->is_started = true;
  return NULL;
}

// The oldest entry when it is ready; NULL: cancelled, or there will be none.
static weir_ahead_entry_t* take(weir_ahead_t* ahead, weir_cancel_t* cancel) {
  weir_cancel_token_t token = weir_monitor_enter(&ahead->monitor, cancel);
  ++ahead->takers;
  while ((ahead->head ? !ahead->head->is_ready : ahead->running > 0) &&
         weir_monitor_wait(&ahead->monitor, cancel))
    continue;
  --ahead->takers;
  weir_ahead_entry_t* entry = ahead->head && ahead->head->is_ready ? ahead->head : NULL;
  if (entry) {
    ahead->head = entry->next;
    if (!ahead->head) ahead->tail = NULL;
    --ahead->count;
    if (ahead->waiting || ahead->takers) weir_cond_broadcast(&ahead->monitor.changed);
  }
  weir_monitor_leave(&ahead->monitor, cancel, token);
  return entry;
}

weir_status_t* weir_ahead_next(weir_ahead_t* ahead, weir_cancel_t* cancel, weir_tensor_t** out,
                               bool* out_is_end) {
  WEIR_TRY(start_once(ahead));
  weir_ahead_entry_t* entry = take(ahead, cancel);
  if (!entry && weir_cancel_is_cancelled(cancel))
    return WEIR_STATUS(CANCELLED, "Iterator was cancelled");
  if (!entry) {  // the threads are gone: nobody else writes
    *out_is_end = !ahead->is_out_of_memory;
    return ahead->is_out_of_memory ? weir_out_of_memory() : NULL;
  }
  weir_status_t* status = entry->status;
  entry->status = NULL;
  *out_is_end = entry->is_end;
  if (!status && !entry->is_end) weir_element_move(entry->element, out, ahead->out_width);
  entry_free(entry, ahead->out_width);
  return status;
}

// ---- saving and restoring ----

static void resume(void* arg) {
  weir_ahead_t* ahead = arg;
  weir_mutex_lock(&ahead->monitor.mu);
  ahead->is_paused = false;
  weir_cond_broadcast(&ahead->monitor.changed);
  weir_mutex_unlock(&ahead->monitor.mu);
}

// Waits until all threads do: all that was pulled is made then.
static weir_status_t* pause(weir_ahead_t* ahead, weir_cancel_t* cancel) {
  weir_cancel_token_t token = weir_monitor_enter(&ahead->monitor, cancel);
  ahead->is_paused = true;
  weir_cond_broadcast(&ahead->monitor.changed);
  bool is_busy = true;
  do is_busy = ahead->running > ahead->waiting;
  while (is_busy && weir_monitor_wait(&ahead->monitor, cancel));
  weir_monitor_leave(&ahead->monitor, cancel, token);
  if (!is_busy) return NULL;
  resume(ahead);
  return WEIR_STATUS(CANCELLED, "Iterator was cancelled");
}

static void entry_state(weir_ahead_entry_t* entry, weir_state_t* state,
                        weir_element_types_t components) {
  weir_state_bool(state, "is_end", &entry->is_end);
  weir_state_status(state, "status", &entry->status);
  weir_state_maybe_element(state, "element", components, entry->element);
}

static weir_ahead_entry_t* create_entry(weir_ahead_t* ahead, weir_state_t* state) {
  weir_ahead_entry_t* entry = weir_calloc(1, sizeof(*entry));
  if (entry) entry->element = weir_element_create(ahead->out_width);
  if (entry && entry->element) {
    entry->ahead = ahead;
    append_locked(ahead, entry, true);  // nobody else is there yet
    return entry;
  }
  weir_free(entry);
  weir_state_fail(state, weir_out_of_memory());
  return NULL;
}

// An entry has an element, an error, or is the end.
static bool is_whole(const weir_ahead_entry_t* entry) {
  return entry->status || entry->is_end || entry->element[0];
}

static void entries_state(weir_ahead_t* ahead, weir_state_t* state,
                          weir_element_types_t components) {
  size_t count = (size_t)ahead->count;
  weir_state_count(state, "ahead", &count);
  weir_ahead_entry_t* entry = ahead->head;
  for (size_t i = 0; i < count && weir_state_is_good(state); ++i) {
    if (state->is_restoring) entry = create_entry(ahead, state);
    if (!entry) return;
    entry_state(entry, state, components);
    if (weir_state_is_good(state) && state->is_restoring && !is_whole(entry))
      weir_state_fail(state, WEIR_STATUS(INVALID_ARGUMENT, "an element made ahead is empty"));
    entry = entry->next;
  }
}

void weir_ahead_state(weir_ahead_t* ahead, weir_state_t* state, weir_element_types_t components) {
  if (!state->is_restoring) {
    weir_status_t* status = pause(ahead, state->cancel);
    weir_state_fail(state, status);
    if (status) return;
    weir_state_defer(state, resume, ahead);
    if (!weir_state_is_good(state)) return;
  }
  bool is_over = ahead->is_started && !ahead->running;  // nobody else writes these now
  // A walk that stopped for want of memory is not at its end, and must not seem so when restored.
  if (ahead->is_out_of_memory) weir_state_fail(state, weir_out_of_memory());
  weir_state_bool(state, "is_over", &is_over);
  if (state->is_restoring) ahead->is_started = is_over;
  entries_state(ahead, state, components);
}

// gate.c — The gate: who has passed, who waits, who holds it and until when.
#include "op/gate.h"

#include <signal.h>

#include "base/alloc.h"
#include "base/map.h"

// A step that has passed and not left.
typedef struct passed_t {
  int64_t step;
  uint64_t connection;  // weir_gate_tie; 0: not yet
} passed_t;

// Who waits: to pass, to hold, or for others to leave.
typedef struct waiter_t {
  weir_gate_t* gate;
  struct waiter_t *next, **place;  // in a list of the gate's; |place| NULL: in none any more
  int64_t step;
  weir_cancel_t* cancel;
  weir_cancel_token_t token;
  weir_done_t done;
  weir_status_t* status;  // what |done| will be told
} waiter_t;

struct weir_gate_t {
  int64_t limit_ns;
  weir_mutex_t mu;      // guards all below
  weir_map_t passed;    // step (8 bytes) → passed_t
  int64_t holder;       // 0: open
  int64_t deadline_ns;  // of the holder
  int64_t* allowed;     // may pass although it is held
  size_t allowed_count;
  waiter_t *writers, *holders, *awaiter;
  weir_cond_t changed;  // for the thread that opens what is held for too long
  pthread_t watch;
  bool has_watch, is_ending;
};

static weir_view_t key_of(const int64_t* step) {
  return weir_view((const char*)step, sizeof(*step));
}

// ---- waiters ----

static void link_last(waiter_t** list, waiter_t* waiter) {
  while (*list) list = &(*list)->next;
  waiter->next = NULL;
  waiter->place = list;
  *list = waiter;
}

static void unlink_waiter(waiter_t* waiter) {
  *waiter->place = waiter->next;
  if (waiter->next) waiter->next->place = waiter->place;
  waiter->place = NULL;
}

// Moves a waiter to those that are told once the lock is released.
static void settle(waiter_t* waiter, weir_status_t* take_status, waiter_t** told) {
  unlink_waiter(waiter);
  waiter->status = take_status;
  while (*told) told = &(*told)->next;
  waiter->next = NULL;
  *told = waiter;
}

static void tell(waiter_t* told) {
  while (told) {
    waiter_t* waiter = told;
    told = waiter->next;
    if (waiter->token) weir_cancel_deregister(waiter->cancel, waiter->token);
    waiter->done.fn(waiter->done.arg, waiter->status);
    weir_free(waiter);
  }
}

static void on_cancel(void* arg) {
  waiter_t* waiter = arg;
  weir_gate_t* gate = waiter->gate;
  waiter_t* told = NULL;
  weir_mutex_lock(&gate->mu);
  bool is_waiting = waiter->place != NULL;  // else another thread is about to tell it
  if (is_waiting)
    settle(waiter, WEIR_STATUS(CANCELLED, "the step was cancelled at the gate of its variables"),
           &told);
  weir_mutex_unlock(&gate->mu);
  if (is_waiting) waiter->token = 0;  // it is being called
  tell(told);
}

static waiter_t* waiter_create(weir_gate_t* gate, int64_t step, weir_cancel_t* cancel,
                               weir_done_t done) {
  waiter_t* waiter = weir_calloc(1, sizeof(*waiter));
  if (!waiter) {
    done.fn(done.arg, weir_out_of_memory());
    return NULL;
  }
  waiter->gate = gate;
  waiter->step = step;
  waiter->cancel = cancel;
  waiter->done = done;
  return waiter;
}

// Leaves a waiter that is in a list to its fate, unless its step is cancelled.
static void stay(waiter_t* waiter, waiter_t** told) {
  if (!waiter->place) return;
  waiter->token = weir_cancel_register(waiter->cancel, on_cancel, waiter);
  if (waiter->token || !waiter->cancel) return;
  const bool is_cancelled = weir_cancel_is_cancelled(waiter->cancel);
  settle(waiter,
         is_cancelled
             ? WEIR_STATUS(CANCELLED, "the step was cancelled at the gate of its variables")
             : weir_out_of_memory(),
         told);
}

// ---- passing ----

static bool may_pass(const weir_gate_t* gate, int64_t step) {
  if (!gate->holder || gate->holder == step) return true;
  for (size_t i = 0; i < gate->allowed_count; ++i) {
    if (gate->allowed[i] == step) return true;
  }
  return false;
}

static weir_status_t* note_passed(weir_gate_t* gate, int64_t step) {
  if (step == gate->holder || weir_map_find(&gate->passed, key_of(&step))) return NULL;
  passed_t* passed = weir_calloc(1, sizeof(*passed));
  if (!passed) return weir_out_of_memory();
  passed->step = step;
  weir_status_t* status = weir_map_put(&gate->passed, key_of(&passed->step), passed);
  if (status) weir_free(passed);
  return status;
}

// Lets those pass that may.
static void flush_writers(weir_gate_t* gate, waiter_t** told) {
  for (waiter_t *waiter = gate->writers, *next; waiter; waiter = next) {
    next = waiter->next;
    if (may_pass(gate, waiter->step)) settle(waiter, note_passed(gate, waiter->step), told);
  }
}

static void flush_awaiter(weir_gate_t* gate, waiter_t** told) {
  if (gate->awaiter && gate->passed.count == 0) settle(gate->awaiter, NULL, told);
}

bool weir_gate_try_pass(weir_gate_t* gate, int64_t step) {
  weir_mutex_lock(&gate->mu);
  weir_status_t* status = NULL;
  bool has_passed = may_pass(gate, step) || weir_map_find(&gate->passed, key_of(&step));
  if (has_passed) status = note_passed(gate, step);
  weir_mutex_unlock(&gate->mu);
  has_passed = has_passed && !status;
  weir_status_destroy(status);
  return has_passed;
}

void weir_gate_pass(weir_gate_t* gate, int64_t step, weir_cancel_t* cancel, weir_done_t done) {
  waiter_t* waiter = waiter_create(gate, step, cancel, done);
  waiter_t* told = NULL;
  if (!waiter) return;
  weir_mutex_lock(&gate->mu);
  link_last(&gate->writers, waiter);
  if (weir_map_find(&gate->passed, key_of(&step))) settle(waiter, NULL, &told);
  flush_writers(gate, &told);
  stay(waiter, &told);
  weir_mutex_unlock(&gate->mu);
  tell(told);
}

// ---- holding ----

static void take_hold(weir_gate_t* gate, int64_t step) {
  gate->holder = step;
  gate->deadline_ns = weir_clock_ns() + gate->limit_ns;
  weir_cond_broadcast(&gate->changed);
}

// Opens it for those that wait to pass, and after them closes it for the next that would hold it.
static void open_gate(weir_gate_t* gate, waiter_t** told) {
  gate->holder = 0;
  weir_free(gate->allowed);
  gate->allowed = NULL;
  gate->allowed_count = 0;
  if (gate->awaiter)
    settle(gate->awaiter,
           WEIR_STATUS(DEADLINE_EXCEEDED,
                       "%zu steps that write to variables have not ended within the %lld ms that "
                       "others are held for",
                       gate->passed.count, (long long)(gate->limit_ns / 1000000)),
           told);
  flush_writers(gate, told);
  if (!gate->holders) return;
  take_hold(gate, gate->holders->step);
  settle(gate->holders, NULL, told);
}

static void* watch_main(void* arg) {
  weir_gate_t* gate = arg;
  weir_mutex_lock(&gate->mu);
  while (!gate->is_ending) {
    if (!gate->holder) {
      weir_cond_wait(&gate->changed, &gate->mu);
    } else if (weir_clock_ns() < gate->deadline_ns) {
      weir_cond_wait_until(&gate->changed, &gate->mu, gate->deadline_ns);
    } else {
      waiter_t* told = NULL;
      open_gate(gate, &told);
      weir_mutex_unlock(&gate->mu);
      tell(told);
      weir_mutex_lock(&gate->mu);
    }
  }
  weir_mutex_unlock(&gate->mu);
  return NULL;
}

static weir_status_t* start_watch(weir_gate_t* gate) {
  if (gate->has_watch) return NULL;
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);  // signals are for the program's own threads
  const int error = pthread_create(&gate->watch, NULL, watch_main, gate);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  if (error)
    return WEIR_STATUS(RESOURCE_EXHAUSTED, "no thread to watch the gate of variables: %s",
                       strerror(error));
  gate->has_watch = true;
  return NULL;
}

void weir_gate_hold(weir_gate_t* gate, int64_t step, weir_cancel_t* cancel, weir_done_t done) {
  waiter_t* waiter = waiter_create(gate, step, cancel, done);
  waiter_t* told = NULL;
  if (!waiter) return;
  weir_mutex_lock(&gate->mu);
  link_last(&gate->holders, waiter);
  weir_status_t* status = start_watch(gate);
  if (status) {
    settle(waiter, status, &told);
  } else if (!gate->holder || gate->holder == step) {
    take_hold(gate, step);
    settle(waiter, NULL, &told);
  }
  stay(waiter, &told);
  weir_mutex_unlock(&gate->mu);
  tell(told);
}

weir_status_t* weir_gate_list(weir_gate_t* gate, int64_t** out_steps, size_t* out_count) {
  weir_map_entry_t* entry;
  size_t count = 0;
  weir_mutex_lock(&gate->mu);
  int64_t* steps = weir_alloc_array(gate->passed.count + 1, sizeof(*steps));
  for (size_t i = 0; steps && (entry = weir_map_next(&gate->passed, &i));)
    steps[count++] = ((passed_t*)entry->value)->step;
  weir_mutex_unlock(&gate->mu);
  if (!steps) return weir_out_of_memory();
  *out_steps = steps;
  *out_count = count;
  return NULL;
}

static weir_status_t* check_holder(const weir_gate_t* gate, int64_t step) {
  if (gate->holder == step) return NULL;
  return WEIR_STATUS(DEADLINE_EXCEEDED,
                     "taking the variables took more than the %lld ms that steps are held for",
                     (long long)(gate->limit_ns / 1000000));
}

static weir_status_t* allow(weir_gate_t* gate, const int64_t* steps, size_t count) {
  int64_t* allowed = weir_alloc_array(count + 1, sizeof(*allowed));
  if (!allowed) return weir_out_of_memory();
  if (count) memcpy(allowed, steps, count * sizeof(*allowed));
  weir_free(gate->allowed);
  gate->allowed = allowed;
  gate->allowed_count = count;
  return NULL;
}

void weir_gate_await(weir_gate_t* gate, int64_t step, const int64_t* steps, size_t count,
                     weir_cancel_t* cancel, weir_done_t done) {
  waiter_t* waiter = waiter_create(gate, step, cancel, done);
  waiter_t* told = NULL;
  if (!waiter) return;
  weir_mutex_lock(&gate->mu);
  weir_status_t* status = check_holder(gate, step);
  if (!status && gate->awaiter)
    status = WEIR_STATUS(INVALID_ARGUMENT, "a step waits at the gate of its variables twice");
  if (!status) status = allow(gate, steps, count);
  if (status) {
    waiter->status = status;
    told = waiter;
  } else {
    link_last(&gate->awaiter, waiter);
    flush_writers(gate, &told);
    flush_awaiter(gate, &told);
    stay(waiter, &told);
  }
  weir_mutex_unlock(&gate->mu);
  tell(told);
}

weir_status_t* weir_gate_open(weir_gate_t* gate, int64_t step) {
  waiter_t* told = NULL;
  weir_mutex_lock(&gate->mu);
  weir_status_t* status = check_holder(gate, step);
  if (!status) open_gate(gate, &told);
  weir_mutex_unlock(&gate->mu);
  tell(told);
  return status;
}

// ---- leaving ----

void weir_gate_leave(weir_gate_t* gate, int64_t step) {
  waiter_t* told = NULL;
  weir_mutex_lock(&gate->mu);
  passed_t* passed = weir_map_remove(&gate->passed, key_of(&step));
  if (passed) flush_awaiter(gate, &told);
  if (gate->holder == step && step) open_gate(gate, &told);
  weir_mutex_unlock(&gate->mu);
  weir_free(passed);
  tell(told);
}

void weir_gate_tie(weir_gate_t* gate, int64_t step, uint64_t connection) {
  weir_mutex_lock(&gate->mu);
  passed_t* passed = weir_map_find(&gate->passed, key_of(&step));
  if (passed) passed->connection = connection;
  weir_mutex_unlock(&gate->mu);
}

// One step that is tied to |connection|; 0: there is none.
static int64_t find_tied(weir_gate_t* gate, uint64_t connection) {
  weir_map_entry_t* entry;
  int64_t step = 0;
  weir_mutex_lock(&gate->mu);
  for (size_t i = 0; !step && (entry = weir_map_next(&gate->passed, &i));) {
    const passed_t* passed = entry->value;
    if (passed->connection == connection) step = passed->step;
  }
  weir_mutex_unlock(&gate->mu);
  return step;
}

void weir_gate_disconnect(weir_gate_t* gate, uint64_t connection) {
  for (int64_t step; (step = find_tied(gate, connection));) weir_gate_leave(gate, step);
}

// ---- life ----

weir_status_t* weir_gate_create(int64_t limit_ns, weir_gate_t** out_gate) {
  weir_gate_t* gate = weir_calloc(1, sizeof(*gate));
  if (!gate) return weir_out_of_memory();
  gate->limit_ns = limit_ns;
  gate->passed.owns_keys = true;
  weir_mutex_init(&gate->mu);
  weir_cond_init(&gate->changed);
  *out_gate = gate;
  return NULL;
}

void weir_gate_destroy(weir_gate_t* gate) {
  if (!gate) return;
  weir_mutex_lock(&gate->mu);
  gate->is_ending = true;
  weir_cond_broadcast(&gate->changed);
  const bool has_watch = gate->has_watch;
  weir_mutex_unlock(&gate->mu);
  if (has_watch) pthread_join(gate->watch, NULL);
  weir_map_entry_t* entry;
  for (size_t i = 0; (entry = weir_map_next(&gate->passed, &i));) weir_free(entry->value);
  weir_map_free(&gate->passed);
  weir_free(gate->allowed);
  weir_cond_destroy(&gate->changed);
  weir_mutex_destroy(&gate->mu);
  weir_free(gate);
}

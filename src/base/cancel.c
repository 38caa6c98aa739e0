// cancel.c — Cancellation managers: callbacks in generation-tagged places, so that (de)registering
// is O(1).
#include "base/cancel.h"

#include "base/alloc.h"
#include "base/thread.h"

typedef enum place_state_t { PLACE_FREE, PLACE_WAITING, PLACE_RUNNING } place_state_t;

typedef struct place_t {
  weir_cancel_fn_t fn;
  void* arg;
  uint32_t generation;  // of the token that may name this place; never 0
  uint32_t next_free;   // 1-based, 0 ends the list; while free
  place_state_t state;
} place_t;

// Thread-safe. A callback may destroy the manager that runs it: |ref| keeps the memory until the
// run is over.
struct weir_cancel_t {
  weir_ref_t ref;
  atomic_bool is_cancelled;  // set once, under |mu|
  weir_mutex_t mu;
  weir_cond_t callback_done;
  place_t* places;        // guarded by mu
  size_t place_capacity;  // guarded by mu
  uint32_t place_count;   // guarded by mu; stands still once cancelled
  uint32_t first_free;    // guarded by mu; 1-based
  pthread_t runner;       // guarded by mu; valid once cancelled
  weir_cancel_t* parent;  // outlives this
  weir_cancel_token_t parent_token;
};

static void unref(weir_cancel_t* cancel) {
  if (!weir_ref_dec(&cancel->ref)) return;
  weir_cond_destroy(&cancel->callback_done);
  weir_mutex_destroy(&cancel->mu);
  weir_free(cancel->places);
  weir_free(cancel);
}

static void cancel_child(void* arg) { weir_cancel_start(arg); }

weir_status_t* weir_cancel_create(weir_cancel_t* parent, weir_cancel_t** out_cancel) {
  weir_cancel_t* cancel = weir_calloc(1, sizeof(*cancel));
  if (!cancel) return weir_out_of_memory();
  weir_ref_init(&cancel->ref);
  atomic_init(&cancel->is_cancelled, false);
  weir_mutex_init(&cancel->mu);
  weir_cond_init(&cancel->callback_done);
  if (parent) {
    cancel->parent = parent;
    cancel->parent_token = weir_cancel_register(parent, cancel_child, cancel);
    if (cancel->parent_token == 0) {
      if (!weir_cancel_is_cancelled(parent)) {
        unref(cancel);
        return weir_out_of_memory();
      }
      weir_cancel_start(cancel);
    }
  }
  *out_cancel = cancel;
  return NULL;
}

static void free_place_locked(weir_cancel_t* cancel, uint32_t index) WEIR_REQUIRES(cancel->mu);
static void free_place_locked(weir_cancel_t* cancel, uint32_t index) {
  place_t* place = &cancel->places[index];
  place->state = PLACE_FREE;
  if (++place->generation == 0) place->generation = 1;
  place->next_free = cancel->first_free;
  cancel->first_free = index + 1;
}

void weir_cancel_destroy(weir_cancel_t* cancel) {
  if (!cancel) return;
  if (cancel->parent_token != 0) (void)weir_cancel_deregister(cancel->parent, cancel->parent_token);
  weir_mutex_lock(&cancel->mu);
  for (uint32_t i = 0; i < cancel->place_count;
       ++i) {  // a run that called us must find nothing more to do
    if (cancel->places[i].state == PLACE_WAITING) free_place_locked(cancel, i);
  }
  weir_mutex_unlock(&cancel->mu);
  unref(cancel);
}

// Ends with |mu| held, as it begins; lets go of it for the callback, which may come back to this
// manager.
static void run_place_locked(weir_cancel_t* cancel, uint32_t index) WEIR_REQUIRES(cancel->mu);
static void run_place_locked(weir_cancel_t* cancel, uint32_t index) {
  weir_cancel_fn_t fn = cancel->places[index].fn;
  void* arg = cancel->places[index].arg;
  cancel->places[index].state = PLACE_RUNNING;
  weir_mutex_unlock(&cancel->mu);
  fn(arg);
  weir_mutex_lock(&cancel->mu);
  free_place_locked(cancel, index);
  weir_cond_broadcast(&cancel->callback_done);
}

void weir_cancel_start(weir_cancel_t* cancel) {
  if (!cancel) return;
  weir_mutex_lock(&cancel->mu);
  if (atomic_load_explicit(&cancel->is_cancelled,
                           memory_order_relaxed)) {  // relaxed: written under |mu|
    weir_mutex_unlock(&cancel->mu);
    return;
  }
  weir_ref_inc(&cancel->ref, 1);
  cancel->runner = pthread_self();
  // Pairs with the acquire in weir_cancel_is_cancelled.
  atomic_store_explicit(&cancel->is_cancelled, true, memory_order_release);
  for (uint32_t i = 0; i < cancel->place_count; ++i) {
    if (cancel->places[i].state == PLACE_WAITING) run_place_locked(cancel, i);
  }
  weir_mutex_unlock(&cancel->mu);
  unref(cancel);
}

bool weir_cancel_is_cancelled(const weir_cancel_t* cancel) {
  // Pairs with the release in weir_cancel_start.
  return cancel && atomic_load_explicit(&cancel->is_cancelled, memory_order_acquire);
}

static weir_cancel_token_t add_place_locked(weir_cancel_t* cancel, weir_cancel_fn_t fn, void* arg)
    WEIR_REQUIRES(cancel->mu);
static weir_cancel_token_t add_place_locked(weir_cancel_t* cancel, weir_cancel_fn_t fn, void* arg) {
  uint32_t index = cancel->first_free;
  if (index != 0) {
    cancel->first_free = cancel->places[--index].next_free;
  } else {
    if (cancel->place_count == UINT32_MAX) return 0;
    index = cancel->place_count;
    if (!WEIR_GROW(cancel->places, cancel->place_capacity, (size_t)index + 1)) return 0;
    cancel->places[index].generation = 1;
    ++cancel->place_count;
  }
  place_t* place = &cancel->places[index];
  place->fn = fn;
  place->arg = arg;
  place->state = PLACE_WAITING;
  return (weir_cancel_token_t)place->generation << 32 | index;
}

weir_cancel_token_t weir_cancel_register(weir_cancel_t* cancel, weir_cancel_fn_t fn, void* arg) {
  if (!cancel || weir_cancel_is_cancelled(cancel)) return 0;
  weir_cancel_token_t token = 0;
  weir_mutex_lock(&cancel->mu);
  if (!weir_cancel_is_cancelled(cancel)) token = add_place_locked(cancel, fn, arg);
  weir_mutex_unlock(&cancel->mu);
  return token;
}

// The state of the place that |token| names; PLACE_FREE when its callback has run or it was
// deregistered.
static place_state_t token_state_locked(const weir_cancel_t* cancel, weir_cancel_token_t token)
    WEIR_REQUIRES(cancel->mu);
static place_state_t token_state_locked(const weir_cancel_t* cancel, weir_cancel_token_t token) {
  uint32_t index = (uint32_t)token;
  if (index >= cancel->place_count) return PLACE_FREE;
  const place_t* place = &cancel->places[index];
  return place->generation == (uint32_t)(token >> 32) ? place->state : PLACE_FREE;
}

static bool deregister(weir_cancel_t* cancel, weir_cancel_token_t token, bool waits) {
  if (!cancel || token == 0) return false;
  weir_mutex_lock(&cancel->mu);
  place_state_t state = token_state_locked(cancel, token);
  if (state == PLACE_WAITING) {
    free_place_locked(cancel, (uint32_t)token);
  } else if (waits && state == PLACE_RUNNING && !pthread_equal(cancel->runner, pthread_self())) {
    while (token_state_locked(cancel, token) == PLACE_RUNNING)
      weir_cond_wait(&cancel->callback_done, &cancel->mu);
  }
  weir_mutex_unlock(&cancel->mu);
  return state == PLACE_WAITING;
}

bool weir_cancel_deregister(weir_cancel_t* cancel, weir_cancel_token_t token) {
  return deregister(cancel, token, true);
}

bool weir_cancel_try_deregister(weir_cancel_t* cancel, weir_cancel_token_t token) {
  return deregister(cancel, token, false);
}

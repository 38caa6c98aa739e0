// ahead.h — Elements made before they are asked for: a thread that pulls from an iterator, and a
// queue in the order of the pulls. Thread-safe but for start and stop.
#ifndef WEIR_OPS_DATA_AHEAD_H_
#define WEIR_OPS_DATA_AHEAD_H_

#include "ops/data/dataset.h"
#include "ops/data/monitor.h"
#include "ops/data/state.h"

typedef struct weir_ahead_t weir_ahead_t;

// One pull, and what was made of it.
typedef struct weir_ahead_entry_t {
  weir_ahead_t* ahead;
  weir_tensor_t** element;  // |width| places; after |process|: |out_width| of them
  weir_status_t* status;
  bool is_end;
  bool is_ready;  // guarded by the monitor
  struct weir_ahead_entry_t* next;
} weir_ahead_entry_t;

struct weir_ahead_t {
  // Set before start.
  weir_iterator_t* input;  // borrowed; pulled from by the thread alone until stop
  int out_width;           // components of what comes out
  int64_t limit;           // pulls that are under way or waiting to be asked for
  // Optional, default: what was pulled comes out. Called on the thread with an element that is
  // there; makes something of it, on any thread, and then calls weir_ahead_ready once.
  void (*process)(void* arg, weir_ahead_entry_t* entry);
  void* arg;
  // The rest is private.
  weir_monitor_t monitor;
  weir_cancel_t* cancel;  // of the thread and of what |process| does
  bool is_made, is_started;
  bool is_running;                  // guarded by monitor: the thread, of which there is one
  bool is_paused;                   // guarded by monitor: the thread shall not pull
  bool is_waiting;                  // guarded by monitor: it does not
  bool is_out_of_memory;            // guarded by monitor: that is why it ended
  int64_t count;                    // guarded by monitor: entries in the queue
  int64_t pending;                  // guarded by monitor: of those, the ones that are not ready
  weir_ahead_entry_t *head, *tail;  // guarded by monitor
};

WEIR_MUST_USE weir_status_t* weir_ahead_init(weir_ahead_t* ahead, const weir_walk_t* walk);
void weir_ahead_stop(weir_ahead_t* ahead);  // ends the thread and frees all; also when not made
// The next element, in the order of the pulls. The first call starts the thread.
WEIR_MUST_USE weir_status_t* weir_ahead_next(weir_ahead_t* ahead, weir_cancel_t* cancel,
                                             weir_tensor_t** out, bool* out_is_end);
void weir_ahead_ready(weir_ahead_entry_t* entry);

// Hands over what was made ahead, elements of |components|. Where that is saved nobody pulls from
// the iterator below, nor is anything being made, until the whole walk is: who calls hands that
// iterator over next.
void weir_ahead_state(weir_ahead_t* ahead, weir_state_t* state, weir_element_types_t components);

#endif  // WEIR_OPS_DATA_AHEAD_H_

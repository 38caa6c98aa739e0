// ahead.h — Elements made before they are asked for: threads that pull from an iterator, one at a
// time, and a queue in the order of the pulls. Thread-safe but for start and stop.
//
// Whoever has pulled also makes something of the element, while another pulls: to hand it to a
// thread of its own would cost as much as a small element does. For the same reason nobody is woken
// who would only look and wait on.
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
  weir_iterator_t* input;  // borrowed; pulled from by the threads alone until stop
  int out_width;           // components of what comes out
  int64_t limit;           // pulls that are under way or waiting to be asked for
  int64_t at_once;         // threads; 0: one
  // Optional, default: what was pulled comes out. Makes something of an element that is there.
  void (*process)(void* arg, weir_ahead_entry_t* entry);
  void* arg;
  // The rest is private.
  weir_monitor_t monitor;
  weir_cancel_t* cancel;  // of the threads and of what |process| does
  bool is_made, is_started;
  // Guarded by monitor:
  int64_t running;        // threads
  int64_t waiting;        // of those, the ones that wait until they may pull
  int64_t takers;         // that wait for an element
  bool is_pulling;        // one of the threads
  bool is_paused;         // none shall pull
  bool is_ended;          // likewise, for ever
  bool is_out_of_memory;  // that is why
  int64_t count;          // entries in the queue
  weir_ahead_entry_t *head, *tail;
};

WEIR_MUST_USE weir_status_t* weir_ahead_init(weir_ahead_t* ahead, const weir_walk_t* walk);
void weir_ahead_stop(weir_ahead_t* ahead);  // ends the threads and frees all; also when not made
// The next element, in the order of the pulls. The first call starts a thread.
WEIR_MUST_USE weir_status_t* weir_ahead_next(weir_ahead_t* ahead, weir_cancel_t* cancel,
                                             weir_tensor_t** out, bool* out_is_end);

// Hands over what was made ahead, elements of |components|. Where that is saved nobody pulls from
// the iterator below, nor is anything being made, until the whole walk is: who calls hands that
// iterator over next.
void weir_ahead_state(weir_ahead_t* ahead, weir_state_t* state, weir_element_types_t components);

#endif  // WEIR_OPS_DATA_AHEAD_H_

// interrupt.h — What may end the work of a thread before it is through.
//
// Whoever runs a piece of work that may be long puts up an interrupt on its thread. weir_pool_for
// takes it over to the threads that help, and looks at it before every chunk; code that is long
// without such a loop asks weir_is_interrupted now and then. Both then leave the rest of the work
// undone: what it was to make is not whole, and whoever put the interrupt up must see |is_hit| and
// drop it. A thread without an interrupt is never interrupted.
#ifndef WEIR_BASE_INTERRUPT_H_
#define WEIR_BASE_INTERRUPT_H_

#include <stdatomic.h>

#include "base/base.h"

typedef struct weir_interrupt_t weir_interrupt_t;
struct weir_interrupt_t {
  bool (*is_due)(weir_interrupt_t* self);  // any thread; once true, always true
  atomic_bool is_hit;                      // work was left undone
};

// Puts |interrupt| up, NULL for none, and returns what was up before: for the caller to put back.
weir_interrupt_t* weir_interrupt_set(weir_interrupt_t* interrupt);
weir_interrupt_t* weir_interrupt_current(void);

// Whether to stop; notes it. NULL never is.
bool weir_interrupt_look(weir_interrupt_t* interrupt);
// The same for the one of this thread.
bool weir_is_interrupted(void);

#if WEIR_HAVE_PERTURB
// Calls |fn| before every look at an interrupt that is not hit yet; NULL ends it. For tests, which
// so choose where work is left undone; not while something runs.
void weir_interrupt_watch(void (*fn)(void* arg), void* arg);
#endif

// For loops of many short turns, as WEIR_TRY(weir_interrupt_poll(i)): CANCELLED when the work is to
// end, at some of the turns.
WEIR_INLINE weir_status_t* weir_interrupt_poll(int64_t i) {
  bool is_over = WEIR_UNLIKELY((i & 63) == 63) && weir_is_interrupted();
  return is_over ? WEIR_STATUS(CANCELLED, "the work was interrupted") : NULL;
}

#endif  // WEIR_BASE_INTERRUPT_H_

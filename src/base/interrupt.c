// interrupt.c — The interrupt of each thread.
#include "base/interrupt.h"

static _Thread_local weir_interrupt_t* current __attribute__((tls_model("initial-exec")));

weir_interrupt_t* weir_interrupt_set(weir_interrupt_t* interrupt) {
  weir_interrupt_t* before = current;
  current = interrupt;
  return before;
}

weir_interrupt_t* weir_interrupt_current(void) { return current; }

bool weir_interrupt_look(weir_interrupt_t* interrupt) {
  if (!interrupt) return false;
  // Relaxed: whoever reads the result has been told by other means that the work is over.
  if (atomic_load_explicit(&interrupt->is_hit, memory_order_relaxed)) return true;
  if (!interrupt->is_due(interrupt)) return false;
  atomic_store_explicit(&interrupt->is_hit, true, memory_order_relaxed);
  return true;
}

bool weir_is_interrupted(void) { return weir_interrupt_look(current); }

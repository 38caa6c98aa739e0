// interrupt.c — The interrupt of each thread.
#include "base/interrupt.h"

static _Thread_local weir_interrupt_t* current __attribute__((tls_model("initial-exec")));

weir_interrupt_t* weir_interrupt_set(weir_interrupt_t* interrupt) {
  weir_interrupt_t* before = current;
  current = interrupt;
  return before;
}

weir_interrupt_t* weir_interrupt_current(void) { return current; }

#if WEIR_HAVE_PERTURB
static void (*watch_fn)(void* arg);
static void* watch_arg;

void weir_interrupt_watch(void (*fn)(void* arg), void* arg) {
  watch_fn = fn;
  watch_arg = arg;
}

static void tell_watch(void) {
  if (watch_fn) watch_fn(watch_arg);
}
#else
static void tell_watch(void) {}
#endif

bool weir_interrupt_look(weir_interrupt_t* interrupt) {
  if (!interrupt) return false;
  // Relaxed: whoever reads the result has been told by other means that the work is over.
  if (atomic_load_explicit(&interrupt->is_hit, memory_order_relaxed)) return true;
  tell_watch();
  if (!interrupt->is_due(interrupt)) return false;
  atomic_store_explicit(&interrupt->is_hit, true, memory_order_relaxed);
  return true;
}

bool weir_is_interrupted(void) { return weir_interrupt_look(current); }

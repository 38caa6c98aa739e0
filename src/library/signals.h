// signals.h — Catching SIGINT and SIGTERM for the time of a training loop. Not public.
#ifndef WEIR_LIBRARY_SIGNALS_H_
#define WEIR_LIBRARY_SIGNALS_H_

#include <stdbool.h>

#include "weir/status.h"

// Until restored, the first signal is only noted; a second one does what it did before. When
// |grace_seconds| have passed since the first, |overdue| is called once, on a thread of its own; a
// negative grace has no end.
WEIR_MUST_USE weir_status_t* weir_signals_catch(double grace_seconds, void (*overdue)(void* arg),
                                                void* arg);
bool weir_signals_caught(void);
// |overdue| is not called any more once this returns.
void weir_signals_restore(void);

#endif  // WEIR_LIBRARY_SIGNALS_H_

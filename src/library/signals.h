// signals.h — Catching SIGINT and SIGTERM for the time of a training loop. Not public.
#ifndef WEIR_LIBRARY_SIGNALS_H_
#define WEIR_LIBRARY_SIGNALS_H_

#include <stdbool.h>

// Until restored, the first signal is only noted; a second one does what it did before.
void weir_signals_catch(void);
bool weir_signals_caught(void);
void weir_signals_restore(void);

#endif  // WEIR_LIBRARY_SIGNALS_H_

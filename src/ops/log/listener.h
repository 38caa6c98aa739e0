// listener.h — Who wants to have what PrintV2 would write to a stream. Thread-safe.
#ifndef WEIR_OPS_LOG_LISTENER_H_
#define WEIR_OPS_LOG_LISTENER_H_

#include "base/base.h"
#include "weir/status.h"

typedef void (*weir_print_fn_t)(const char* text);

// From now on |fn| is called, for good, with each text, on the thread that prints, and
// nothing is written any more.
WEIR_MUST_USE weir_status_t* weir_print_listen(weir_print_fn_t fn);

// Tells all who listen; false when there is nobody.
bool weir_print_tell(const char* text);

#endif  // WEIR_OPS_LOG_LISTENER_H_

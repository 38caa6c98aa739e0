// background.h — Threads for what waits: walks over datasets.
//
// A walk calls functions and waits for their end, reads files, waits for other walks. On a thread
// of a pool it would keep that from computing, maybe the very thing it waits for. So it has a
// thread of its own for as long as it takes; threads that are through wait a while for the next.
// Thread-safe.
#ifndef WEIR_OPS_DATA_BACKGROUND_H_
#define WEIR_OPS_DATA_BACKGROUND_H_

#include "base/thread.h"

// Runs |fn| on a thread of its own. RESOURCE_EXHAUSTED when there is none to be had: then it is not
// called.
WEIR_MUST_USE weir_status_t* weir_background_run(weir_task_fn_t fn, void* arg);

#endif  // WEIR_OPS_DATA_BACKGROUND_H_

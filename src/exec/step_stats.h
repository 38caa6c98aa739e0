// step_stats.h — Traces of steps elsewhere: what a master's RunMetadata says of them.
#ifndef WEIR_EXEC_STEP_STATS_H_
#define WEIR_EXEC_STEP_STATS_H_

#include "base/string.h"

// Appends Chrome's trace JSON of a RunMetadata message, as weir_trace_write_chrome does for a trace
// of this process. Its times begin with the first node of all devices, by the clocks of their
// tasks. INVALID_ARGUMENT: it is not such a message.
WEIR_MUST_USE weir_status_t* weir_step_stats_write_chrome(weir_view_t metadata, weir_strbuf_t* out);

#endif  // WEIR_EXEC_STEP_STATS_H_

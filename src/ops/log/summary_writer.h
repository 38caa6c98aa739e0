// summary_writer.h — Writing a Summary to the event file of a kernel's writer.
#ifndef WEIR_OPS_LOG_SUMMARY_WRITER_H_
#define WEIR_OPS_LOG_SUMMARY_WRITER_H_

#include "base/string.h"
#include "op/kernel.h"

// Writes what |summary| holds to the writer that input 0 names, as an event of step input 1, and
// frees it in every case.
WEIR_MUST_USE weir_status_t* weir_summary_write(weir_kernel_ctx_t* ctx, weir_strbuf_t* summary);

#endif  // WEIR_OPS_LOG_SUMMARY_WRITER_H_

// transfer_log.h — Which tensors a task fetched from others, how large they were and how long that
// took; kept for the masters that ask for it (WorkerService's Logging). Thread-safe.
#ifndef WEIR_CLUSTER_TASK_TRANSFER_LOG_H_
#define WEIR_CLUSTER_TASK_TRANSFER_LOG_H_

#include "base/map.h"
#include "base/string.h"
#include "base/thread.h"

typedef struct weir_transfer_log_t {
  atomic_int wanted;  // how many masters want it now; nothing is kept while that is 0
  weir_mutex_t mu;
  weir_map_t steps;  // number of a step (8 bytes) → weir_strbuf_t with its DeviceStepStats; by mu
  size_t size;       // bytes kept; guarded by mu
} weir_transfer_log_t;

typedef struct weir_transfer_t {
  int64_t step_id;
  weir_view_t key;  // of the rendezvous: where the tensor came from, where to, its name
  int64_t start_us, end_us;
  size_t byte_size;
} weir_transfer_t;

void weir_transfer_log_init(weir_transfer_log_t* log);
void weir_transfer_log_free(weir_transfer_log_t* log);
void weir_transfer_log_switch(weir_transfer_log_t* log, bool is_on);  // on and off again by each
bool weir_transfer_log_is_on(weir_transfer_log_t* log);
// Notes a transfer. What cannot be kept is dropped: a log fails no step.
void weir_transfer_log_add(weir_transfer_log_t* log, const weir_transfer_t* transfer);
// Appends a LabeledStepStats as field |field|, if anything was noted of the step, and forgets it.
void weir_transfer_log_take(weir_transfer_log_t* log, int64_t step_id, uint32_t field,
                            weir_strbuf_t* out);
void weir_transfer_log_clear(weir_transfer_log_t* log);

#endif  // WEIR_CLUSTER_TASK_TRANSFER_LOG_H_

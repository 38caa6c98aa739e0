// batch.h — Joins jobs of a version that are alike: same signature, same outputs, inputs that agree
// in type and in all dimensions but the first. They run as one, on inputs put one below the other,
// and each gets its rows of the outputs.
//
// A lane is a kind of jobs. Whoever comes while a lane's runs are under way waits in it, without a
// thread, and is taken by the next run: so the busier, the larger the batches. What fails together
// is run one by one, so that nobody fails for another's input.
//
// Thread-safe.
#ifndef WEIR_SERVING_BATCH_H_
#define WEIR_SERVING_BATCH_H_

#include "serving/job.h"

WEIR_MUST_USE weir_status_t* weir_lanes_create(const weir_lanes_options_t* options,
                                               weir_lanes_t** out_lanes);
void weir_lanes_destroy(weir_lanes_t* lanes);  // NULL-safe; no job is in it
// False: |job| cannot be joined with others, and is left to the caller. True: done is called,
// before this returns or later. The thread may run other jobs meanwhile.
bool weir_lanes_take(weir_lanes_t* lanes, weir_job_t* job);

// Jobs that ran joined, and how many runs they took; of the whole process.
void weir_batch_counts(long long* out_jobs, long long* out_runs);

#endif  // WEIR_SERVING_BATCH_H_

// join.h — Jobs that are alike, run as one.
#ifndef WEIR_SERVING_JOIN_H_
#define WEIR_SERVING_JOIN_H_

#include "serving/job.h"

// Runs the jobs of a list, whose inputs agree in all but their first dimensions, and has done
// called for each: of the last one on this thread, of the others on |pool|.
void weir_jobs_run(weir_job_t* take_jobs, weir_pool_t* pool);

#endif  // WEIR_SERVING_JOIN_H_

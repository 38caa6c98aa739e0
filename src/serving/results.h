// results.h — What classifiers and regressors answer, out of a job's outputs.
#ifndef WEIR_SERVING_RESULTS_H_
#define WEIR_SERVING_RESULTS_H_

#include "serving/job.h"

// Classes and scores of each example; either may be missing. Borrowed from the job.
typedef struct weir_classes_t {
  const weir_tensor_t *classes, *scores;  // strings and floats [examples, count], or NULL
  int64_t examples, count;
} weir_classes_t;
WEIR_MUST_USE weir_status_t* weir_job_classes(const weir_job_t* job, weir_classes_t* out_classes);

// One float an example.
WEIR_MUST_USE weir_status_t* weir_job_regressions(const weir_job_t* job, const float** out_values,
                                                  int64_t* out_count);

#endif  // WEIR_SERVING_RESULTS_H_

// suppress.h — Non-maximum suppression: boxes are chosen by score, but for those that overlap too
// much with a chosen one; or, softly, whose score drops too far for it. Thread-safe.
#ifndef WEIR_KERNEL_IMAGE_SUPPRESS_H_
#define WEIR_KERNEL_IMAGE_SUPPRESS_H_

#include "base/base.h"

typedef struct weir_suppress_t {
  int64_t count;          // boxes
  const float* scores;    // of them
  const float* boxes;     // four corners each; or NULL:
  const float* overlaps;  // count by count
  int64_t most;           // to be chosen
  float threshold;        // of overlaps
  float least_score;      // what is chosen scores more
  float sigma;            // of soft suppression; 0: hard
  bool is_half;           // scores and thresholds are halves: results are rounded as theirs
} weir_suppress_t;

typedef struct weir_chosen_t {
  int64_t count;
  int32_t* boxes;  // owned
  float* scores;   // owned
} weir_chosen_t;

// What was chosen, in the order of its scores. To be freed by the caller, on failure, too.
WEIR_MUST_USE weir_status_t* weir_suppress(const weir_suppress_t* suppress, weir_chosen_t* chosen);
void weir_chosen_free(weir_chosen_t* chosen);

#endif  // WEIR_KERNEL_IMAGE_SUPPRESS_H_

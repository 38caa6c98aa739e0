// outcome.h — A thread waits for one callback: for those who call what ends later and want its end.
//
//   weir_outcome_t outcome;
//   weir_outcome_init(&outcome);
//   start_something(weir_outcome_set, &outcome);
//   return weir_outcome_wait(&outcome);
#ifndef WEIR_BASE_OUTCOME_H_
#define WEIR_BASE_OUTCOME_H_

#include "base/thread.h"

// Lives where it is waited for. What else a callback brings is put beside it before it wakes.
typedef struct weir_outcome_t {
  weir_mutex_t mu;
  weir_cond_t cond;
  bool is_done;           // guarded by mu
  weir_status_t* status;  // likewise
} weir_outcome_t;

void weir_outcome_init(weir_outcome_t* outcome);
// The callback, |arg| the outcome: called once, on any thread.
void weir_outcome_set(void* arg, weir_status_t* take_status);
// Returns what the callback was given, and ends the outcome.
WEIR_MUST_USE weir_status_t* weir_outcome_wait(weir_outcome_t* outcome);

#endif  // WEIR_BASE_OUTCOME_H_

// outcome.c — A flag with a lock.
#include "base/outcome.h"

void weir_outcome_init(weir_outcome_t* outcome) {
  weir_mutex_init(&outcome->mu);
  weir_cond_init(&outcome->cond);
  outcome->is_done = false;
  outcome->status = NULL;
}

void weir_outcome_set(void* arg, weir_status_t* take_status) {
  weir_outcome_t* outcome = arg;
  weir_mutex_lock(&outcome->mu);
  outcome->is_done = true;
  outcome->status = take_status;
  // Within the lock: whoever waits ends the outcome as soon as it has it.
  weir_cond_signal(&outcome->cond);
  weir_mutex_unlock(&outcome->mu);
}

weir_status_t* weir_outcome_wait(weir_outcome_t* outcome) {
  weir_mutex_lock(&outcome->mu);
  while (!outcome->is_done) weir_cond_wait(&outcome->cond, &outcome->mu);
  weir_mutex_unlock(&outcome->mu);
  weir_cond_destroy(&outcome->cond);
  weir_mutex_destroy(&outcome->mu);
  return outcome->status;
}

// select.h — Elements of one run or another, as a condition says. Thread-safe.
#ifndef WEIR_KERNEL_ELEMENTWISE_SELECT_H_
#define WEIR_KERNEL_ELEMENTWISE_SELECT_H_

#include "base/base.h"

// A step is 1, or 0 where one element stands for all of the run.
typedef struct weir_select_run_t {
  int64_t count;
  const bool* condition;
  const void* t;
  const void* e;
  void* y;  // may be |t| or |e| where that steps
  int64_t condition_step;
  int64_t t_step;
  int64_t e_step;
} weir_select_run_t;

// y = condition ? t : e for elements of |size| bytes.
void weir_select_run(const weir_select_run_t* run, size_t size);

#endif  // WEIR_KERNEL_ELEMENTWISE_SELECT_H_

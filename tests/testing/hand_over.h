// hand_over.h — A step that hands one tensor from task 1 of a pair to task 0.
#ifndef WEIR_TESTS_TESTING_HAND_OVER_H_
#define WEIR_TESTS_TESTING_HAND_OVER_H_

#include "testing/task_pair.h"

#define KEY TASK(1) "/device:CPU:0;1;" TASK(0) "/device:CPU:0;edge;0:0"

static inline weir_tensor_t* make_pattern(weir_dtype_t dtype, int rank, const int64_t* dims) {
  weir_tensor_t* tensor = NULL;
  check_ok(weir_tensor_create(dtype, rank, dims, &tensor));
  uint8_t* bytes = weir_tensor_data(tensor);
  for (size_t i = 0; i < weir_tensor_byte_size(tensor); ++i) bytes[i] = (uint8_t)(i % 251 & 1);
  return tensor;
}

typedef struct receive_t {
  weir_mutex_t mu;
  weir_cond_t cond;
  bool is_done;
  weir_status_t* status;
  weir_tensor_t* tensor;
} receive_t;

static inline void receive_done(void* arg, weir_status_t* take_status, weir_tensor_t* take_tensor,
                                bool is_dead) {
  receive_t* receive = arg;
  assert_false(is_dead);
  weir_mutex_lock(&receive->mu);
  receive->status = take_status;
  receive->tensor = take_tensor;
  receive->is_done = true;
  weir_cond_broadcast(&receive->cond);
  weir_mutex_unlock(&receive->mu);
}

// |alias|: what task 0 is called in the step; NULL: as everywhere.
static inline void hand_over_begin(pair_t* pair, int64_t step_id, weir_alias_t* alias,
                                   weir_rendezvous_t* ends[2]) {
  check_ok(weir_task_step_as(pair->tasks[0], step_id, alias, &ends[0]));
  check_ok(weir_task_step(pair->tasks[1], step_id, &ends[1]));
}

static inline void hand_over_end(pair_t* pair, int64_t step_id, weir_rendezvous_t* ends[2]) {
  for (int i = 0; i < 2; ++i) weir_task_end_step(pair->tasks[i], step_id);
  for (int i = 0; i < 2; ++i) weir_rendezvous_release(ends[i]);
}

static inline void hand_over_tensor(weir_rendezvous_t* ends[2], weir_tensor_t* tensor) {
  receive_t receive = {.is_done = false};
  weir_mutex_init(&receive.mu);
  weir_cond_init(&receive.cond);
  weir_cancel_t* cancel = NULL;
  check_ok(weir_cancel_create(NULL, &cancel));
  ends[0]->vtable->recv_async(ends[0], weir_view_of(KEY), cancel, receive_done, &receive);
  check_ok(ends[1]->vtable->send(ends[1], weir_view_of(KEY), tensor, false));
  int64_t deadline = weir_clock_ns() + INT64_C(60000000000);
  weir_mutex_lock(&receive.mu);
  while (!receive.is_done && weir_cond_wait_until(&receive.cond, &receive.mu, deadline)) {
  }
  assert_true(receive.is_done);
  weir_mutex_unlock(&receive.mu);
  check_ok(receive.status);
  assert_int_equal(weir_tensor_type(receive.tensor), weir_tensor_type(tensor));
  assert_true(weir_tensor_same_shape(receive.tensor, tensor));
  assert_ptr_not_equal(weir_tensor_data(receive.tensor), weir_tensor_data(tensor));
  assert_memory_equal(weir_tensor_data(receive.tensor), weir_tensor_data(tensor),
                      weir_tensor_byte_size(tensor));
  weir_tensor_release(receive.tensor);
  weir_cancel_destroy(cancel);
  weir_cond_destroy(&receive.cond);
  weir_mutex_destroy(&receive.mu);
}

#endif  // WEIR_TESTS_TESTING_HAND_OVER_H_

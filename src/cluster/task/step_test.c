// step_test.c — The rendezvous of a step: values sent here, values fetched from another task, in
// either order, aborted, cancelled and cleaned up.
#include <pthread.h>

#include "base/perturb.h"
#include "testing/task_pair.h"

#define KEY(from, to) TASK(from) "/device:CPU:0;1;" TASK(to) "/device:CPU:0;edge;0:0"

static int set_up(void** state) {
  *state = pair_start(1);
  return 0;
}

// ---- a receive and how it ended ----

typedef struct receive_t {
  weir_mutex_t mu;
  weir_cond_t cond;
  bool is_done, is_dead;
  weir_status_t* status;
  weir_tensor_t* tensor;
  weir_cancel_t* cancel;
} receive_t;

static void receive_done(void* arg, weir_status_t* take_status, weir_tensor_t* take_tensor,
                         bool is_dead) {
  receive_t* receive = arg;
  weir_mutex_lock(&receive->mu);
  receive->status = take_status;
  receive->tensor = take_tensor;
  receive->is_dead = is_dead;
  receive->is_done = true;
  weir_cond_broadcast(&receive->cond);
  weir_mutex_unlock(&receive->mu);
}

static void receive_init(receive_t* receive) {
  memset(receive, 0, sizeof(*receive));
  weir_mutex_init(&receive->mu);
  weir_cond_init(&receive->cond);
  check_ok(weir_cancel_create(NULL, &receive->cancel));
}

static void receive_begin(receive_t* receive, weir_rendezvous_t* rendezvous, const char* key) {
  rendezvous->vtable->recv_async(rendezvous, weir_view_of(key), receive->cancel, receive_done,
                                 receive);
}

static void receive_start(receive_t* receive, weir_rendezvous_t* rendezvous, const char* key) {
  receive_init(receive);
  receive_begin(receive, rendezvous, key);
}

static weir_status_t* receive_join(receive_t* receive) {
  int64_t deadline = weir_clock_ns() + INT64_C(60000000000);
  weir_mutex_lock(&receive->mu);
  while (!receive->is_done && weir_cond_wait_until(&receive->cond, &receive->mu, deadline)) {
  }
  assert_true(receive->is_done);
  weir_mutex_unlock(&receive->mu);
  weir_cancel_destroy(receive->cancel);
  weir_cond_destroy(&receive->cond);
  weir_mutex_destroy(&receive->mu);
  return receive->status;
}

static void check_received(receive_t* receive, float value) {
  check_ok(receive_join(receive));
  assert_false(receive->is_dead);
  assert_float_equal(*(const float*)weir_tensor_data(receive->tensor), value, 0);
  weir_tensor_release(receive->tensor);
}

static weir_rendezvous_t* step_of(pair_t* pair, int task, int64_t id) {
  weir_rendezvous_t* rendezvous = NULL;
  check_ok(weir_task_step(pair->tasks[task], id, &rendezvous));
  return rendezvous;
}

static void send_float(weir_rendezvous_t* rendezvous, const char* key, float value) {
  weir_tensor_t* tensor = make_float(value);
  check_ok(rendezvous->vtable->send(rendezvous, weir_view_of(key), tensor, false));
  weir_tensor_release(tensor);
}

static void end_steps(pair_t* pair, int64_t id) {
  for (int i = 0; i < 2; ++i) weir_task_end_step(pair->tasks[i], id);
}

// ---- tests ----

static void test_within_a_task(void** state) {
  pair_t* pair = *state;
  weir_rendezvous_t* step = step_of(pair, 0, 5);
  receive_t receive;
  send_float(step, KEY(0, 0), 1);
  receive_start(&receive, step, KEY(0, 0));
  check_received(&receive, 1);
  receive_start(&receive, step, KEY(0, 1));  // of this task, though for another
  send_float(step, KEY(0, 1), 2);
  check_received(&receive, 2);
  end_steps(pair, 5);
  weir_rendezvous_release(step);
}

static void test_between_tasks(void** state) {
  pair_t* pair = *state;
  for (int64_t id = 1; id < 40; ++id) {
    weir_rendezvous_t *to = step_of(pair, 0, id), *from = NULL;
    receive_t receive;
    if (id % 3) receive_start(&receive, to, KEY(1, 0));  // the sender may not even know the step
    if (id % 3 == 2) usleep(1000);
    from = step_of(pair, 1, id);
    send_float(from, KEY(1, 0), (float)id);
    if (id % 3 == 0) receive_start(&receive, to, KEY(1, 0));
    check_received(&receive, (float)id);
    end_steps(pair, id);
    weir_rendezvous_release(from);
    weir_rendezvous_release(to);
  }
  for (int i = 0; i < 2; ++i) assert_int_equal(pair->tasks[i]->steps.count, 0);
  for (int i = 0; i < 2; ++i) assert_int_equal(pair->tasks[i]->unknown_step_count, 0);
}

static void test_dead_and_large(void** state) {
  pair_t* pair = *state;
  weir_rendezvous_t *to = step_of(pair, 0, 7), *from = step_of(pair, 1, 7);
  receive_t receive;
  check_ok(from->vtable->send(from, weir_view_of(KEY(1, 0)), NULL, true));
  receive_start(&receive, to, KEY(1, 0));
  check_ok(receive_join(&receive));
  assert_true(receive.is_dead);
  assert_null(receive.tensor);
  weir_tensor_t* large = NULL;
  int64_t count = 1 << 20;
  check_ok(weir_tensor_create(WEIR_DTYPE_FLOAT, 1, &count, &large));
  for (int64_t i = 0; i < count; ++i) ((float*)weir_tensor_data(large))[i] = (float)(i % 1000);
  check_ok(from->vtable->send(from, weir_view_of(KEY(1, 0) "x"), large, false));
  receive_start(&receive, to, KEY(1, 0) "x");
  check_ok(receive_join(&receive));
  assert_memory_equal(weir_tensor_data(receive.tensor), weir_tensor_data(large),
                      (size_t)count * sizeof(float));
  weir_tensor_release(receive.tensor);
  weir_tensor_release(large);
  end_steps(pair, 7);
  weir_rendezvous_release(from);
  weir_rendezvous_release(to);
}

static void* cancel_it(void* arg) {
  weir_cancel_start(arg);
  return NULL;
}

// A cancellation that comes while a receive begins, at any point of it, ends the receive.
static void test_cancelled_as_it_begins(void** state) {
  pair_t* pair = *state;
  weir_rendezvous_t* to = step_of(pair, 0, 8);
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    receive_t receive;
    receive_init(&receive);
    weir_perturb_start(seed);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, cancel_it, receive.cancel), 0);
    receive_begin(&receive, to, KEY(1, 0));
    assert_int_equal(pthread_join(thread, NULL), 0);
    weir_perturb_start(0);
    check_error(receive_join(&receive), WEIR_CANCELLED, "");
  }
  end_steps(pair, 8);
  weir_rendezvous_release(to);
}

static void test_cancelled(void** state) {
  pair_t* pair = *state;
  for (int i = 0; i < 30; ++i) {
    weir_rendezvous_t* to = step_of(pair, 0, 8);
    receive_t receive;
    receive_start(&receive, to, KEY(1, 0));
    if (i % 2) usleep(500);
    weir_cancel_start(receive.cancel);
    check_error(receive_join(&receive), WEIR_CANCELLED, "");
    weir_rendezvous_release(to);
  }
  end_steps(pair, 8);
}

// Whoever waits learns why the step ended, on both sides.
static void test_aborted(void** state) {
  pair_t* pair = *state;
  weir_rendezvous_t *to = step_of(pair, 0, 9), *from = step_of(pair, 1, 9);
  receive_t here, there, later;
  weir_status_t* reason = WEIR_STATUS(DATA_LOSS, "the disk is gone");
  receive_start(&here, to, KEY(1, 0));
  receive_start(&there, from, KEY(1, 0) "other");
  from->vtable->abort(from, reason);
  check_error(receive_join(&there), WEIR_DATA_LOSS, "the disk is gone");
  check_error(receive_join(&here), WEIR_DATA_LOSS, "the disk is gone");
  to->vtable->abort(to, reason);
  receive_start(&later, to, KEY(1, 0));
  check_error(receive_join(&later), WEIR_DATA_LOSS, "the disk is gone");
  weir_status_destroy(reason);
  receive_start(&later, to, KEY(0, 0));
  check_error(receive_join(&later), WEIR_DATA_LOSS, "");
  end_steps(pair, 9);
  weir_rendezvous_release(from);
  weir_rendezvous_release(to);
}

static void test_cleanup_ends_receivers(void** state) {
  pair_t* pair = *state;
  weir_rendezvous_t *to = step_of(pair, 0, 10), *from = step_of(pair, 1, 10);
  receive_t receive;
  receive_start(&receive, to, KEY(1, 0));
  weir_task_end_step(pair->tasks[0], 10);
  check_error(receive_join(&receive), WEIR_ABORTED, "Cleanup 10");
  weir_task_end_step(pair->tasks[0], 10);  // twice does no harm
  end_steps(pair, 10);
  weir_rendezvous_release(from);
  weir_rendezvous_release(to);
}

static void test_unknown_peer(void** state) {
  pair_t* pair = *state;
  weir_rendezvous_t* step = step_of(pair, 0, 11);
  receive_t receive;
  receive_start(&receive, step, KEY(7, 0));
  check_error(receive_join(&receive), WEIR_NOT_FOUND, "names no task");
  receive_start(&receive, step, "nonsense;1;2;3");
  weir_status_t* status = receive_join(&receive);
  assert_non_null(status);
  weir_status_destroy(status);
  end_steps(pair, 11);
  weir_rendezvous_release(step);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, pair_stop)
int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_within_a_task),          TEST(test_between_tasks),
      TEST(test_dead_and_large),         TEST(test_cancelled),
      TEST(test_cancelled_as_it_begins), TEST(test_aborted),
      TEST(test_cleanup_ends_receivers), TEST(test_unknown_peer),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

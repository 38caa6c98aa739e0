// pool_test.c — The pool: coverage of loops, nesting, tasks, many callers, and fork.

#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/elastic.h"
#include "base/interrupt.h"
#include "base/subnormal.h"
#include "testing/cmocka.h"

#define ITEM_COUNT 20000

typedef struct marks_t {
  atomic_int hits[ITEM_COUNT];
  atomic_int calls;
} marks_t;

static void mark_range(void* arg, int64_t begin, int64_t end) {
  marks_t* marks = arg;
  atomic_fetch_add(&marks->calls, 1);
  for (int64_t i = begin; i < end; ++i) atomic_fetch_add(&marks->hits[i], 1);
}

static void expect_each(const marks_t* marks, int64_t total, int times) {
  for (int64_t i = 0; i < ITEM_COUNT; ++i) assert_int_equal(marks->hits[i], i < total ? times : 0);
}

static weir_pool_t* make_pool(int thread_count) {
  weir_pool_t* pool = NULL;
  assert_null(weir_pool_create(thread_count, &pool));
  return pool;
}

static void test_create(void** state) {
  (void)state;
  weir_pool_t* pool = NULL;
  weir_status_t* status = weir_pool_create(-1, &pool);
  assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
  weir_status_destroy(status);
  pool = make_pool(0);
  assert_int_equal(weir_pool_thread_count(pool), weir_cpu_count());
  weir_pool_destroy(pool);
  weir_pool_destroy(NULL);
  assert_int_equal(weir_pool_thread_count(NULL), 1);
}

static void test_for_covers(void** state) {
  (void)state;
  static const int64_t totals[] = {0, 1, 2, 3, 7, 63, 64, 65, 1000, 19999, ITEM_COUNT};
  static const double costs[] = {0, 1, 100, 1e5, 1e12};
  for (int threads = 1; threads <= 4; ++threads) {
    weir_pool_t* pool = make_pool(threads);
    for (size_t i = 0; i < WEIR_COUNT_OF(totals); ++i) {
      for (size_t k = 0; k < WEIR_COUNT_OF(costs); ++k) {
        static marks_t marks;
        memset(&marks, 0, sizeof(marks));
        weir_pool_for(pool, totals[i], costs[k], mark_range, &marks);
        expect_each(&marks, totals[i], 1);
      }
    }
    weir_pool_destroy(pool);
  }
}

static void test_for_splits_when_it_pays(void** state) {
  (void)state;
  weir_pool_t* pool = make_pool(3);
  static marks_t marks;
  memset(&marks, 0, sizeof(marks));
  weir_pool_for(pool, ITEM_COUNT, 0.5, mark_range, &marks);  // 10 us
  assert_int_equal(marks.calls, 1);
  weir_pool_for(pool, ITEM_COUNT, 1000, mark_range, &marks);  // 20 ms
  assert_true(marks.calls > 3);
  expect_each(&marks, ITEM_COUNT, 2);
  weir_pool_destroy(pool);
  memset(&marks, 0, sizeof(marks));
  weir_pool_for(NULL, ITEM_COUNT, 1000, mark_range, &marks);
  assert_int_equal(marks.calls, 1);
}

typedef struct nest_t {
  weir_pool_t* pool;
  atomic_int sum;
} nest_t;

static void add_range(void* arg, int64_t begin, int64_t end) {
  atomic_fetch_add((atomic_int*)arg, (int)(end - begin));
}

static void nest_range(void* arg, int64_t begin, int64_t end) {
  nest_t* nest = arg;
  for (int64_t i = begin; i < end; ++i) weir_pool_for(nest->pool, 100, 1e5, add_range, &nest->sum);
}

static void nest_task(void* arg) { nest_range(arg, 0, 10); }

static void test_nested(void** state) {
  (void)state;
  for (int threads = 1; threads <= 4; ++threads) {
    nest_t nest = {.pool = make_pool(threads)};
    weir_pool_for(nest.pool, 50, 1e6, nest_range, &nest);
    assert_int_equal(nest.sum, 5000);
    for (int i = 0; i < 20; ++i) weir_pool_submit(nest.pool, nest_task, &nest);
    weir_pool_for(nest.pool, 50, 1e6, nest_range, &nest);
    weir_pool_destroy(nest.pool);  // waits for the tasks
    assert_int_equal(nest.sum, 5000 + 20 * 1000 + 5000);
  }
}

static void count_task(void* arg) { atomic_fetch_add((atomic_int*)arg, 1); }

static void test_submit(void** state) {
  (void)state;
  for (int threads = 1; threads <= 4; ++threads) {
    weir_pool_t* pool = make_pool(threads);
    atomic_int count = 0;
    for (int i = 0; i < 5000; ++i) weir_pool_submit(pool, count_task, &count);
    weir_pool_destroy(pool);
    assert_int_equal(count, 5000);
  }
}

static void test_submit_after_idle(void** state) {
  (void)state;
  weir_pool_t* pool = make_pool(3);
  atomic_int count = 0;
  for (int i = 1; i <= 20; ++i) {
    usleep(500);  // longer than workers spin
    weir_pool_submit(pool, count_task, &count);
    while (atomic_load(&count) < i) usleep(50);
  }
  weir_pool_destroy(pool);
}

typedef struct meet_t {
  weir_mutex_t mu;
  weir_cond_t cond;
  int here;
} meet_t;

// Returns only when two tasks run at the same time: a task left queued while a worker sleeps would
// hang the test.
static void meet_task(void* arg) {
  meet_t* meet = arg;
  weir_mutex_lock(&meet->mu);
  ++meet->here;
  weir_cond_broadcast(&meet->cond);
  while (meet->here < 2) weir_cond_wait(&meet->cond, &meet->mu);
  weir_mutex_unlock(&meet->mu);
}

static void test_tasks_run_together(void** state) {
  (void)state;
  weir_pool_t* pool = make_pool(3);
  for (int i = 0; i < 200; ++i) {
    meet_t meet = {.here = 0};
    weir_mutex_init(&meet.mu);
    weir_cond_init(&meet.cond);
    if (i % 4 == 0) usleep(200);
    weir_pool_submit(pool, meet_task, &meet);
    weir_pool_submit(pool, meet_task, &meet);
    weir_mutex_lock(&meet.mu);
    while (meet.here < 2) weir_cond_wait(&meet.cond, &meet.mu);
    weir_mutex_unlock(&meet.mu);
    atomic_int sum = 0;
    weir_pool_for(pool, 64, 1e5, add_range, &sum);  // the tasks may still be leaving
    assert_int_equal(sum, 64);
    weir_pool_t* old = pool;
    pool = make_pool(3);
    weir_pool_destroy(old);
    weir_cond_destroy(&meet.cond);
    weir_mutex_destroy(&meet.mu);
  }
  weir_pool_destroy(pool);
}

static void* caller_main(void* arg) {
  nest_t* nest = arg;
  for (int i = 0; i < 500; ++i) weir_pool_for(nest->pool, 64, 1e5, add_range, &nest->sum);
  return NULL;
}

static void test_many_callers(void** state) {
  (void)state;
  nest_t nest = {.pool = make_pool(3)};
  pthread_t threads[4];
  for (size_t i = 0; i < 4; ++i)
    assert_int_equal(pthread_create(&threads[i], NULL, caller_main, &nest), 0);
  for (size_t i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  weir_pool_destroy(nest.pool);
  assert_int_equal(nest.sum, 4 * 500 * 64);
}

static void write_range(void* arg, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) ((int*)arg)[i] += (int)i;
}

static void test_writes_are_seen(
    void** state) {  // plain memory: the sanitizer for threads judges the ordering
  (void)state;
  weir_pool_t* pool = make_pool(4);
  static int items[1000];
  for (int round = 0; round < 200; ++round) weir_pool_for(pool, 1000, 1e3, write_range, items);
  for (int i = 0; i < 1000; ++i) assert_int_equal(items[i], 200 * i);
  weir_pool_destroy(pool);
}

static void test_without_memory(void** state) {
  (void)state;
  weir_pool_t* pool = NULL;
  weir_alloc_fail_at(1, true);
  weir_status_t* status = weir_pool_create(2, &pool);
  weir_alloc_fail_at(0, false);
  assert_ptr_equal(status, weir_out_of_memory());
  pool = make_pool(4);
  atomic_int sum = 0;
  weir_alloc_fail_at(1, true);  // no threads can be recorded: all runs here
  weir_pool_for(pool, 64, 1e5, add_range, &sum);
  weir_pool_submit(pool, count_task, &sum);
  weir_alloc_fail_at(0, false);
  assert_int_equal(sum, 65);
  weir_pool_destroy(pool);
}

static void test_fork(void** state) {
  (void)state;
#if !defined(__SANITIZE_THREAD__)  // which does not support threads started before a fork
  weir_pool_t* pool = make_pool(3);
  atomic_int sum = 0;
  weir_pool_for(pool, 64, 1e5, add_range, &sum);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    alarm(30);
    weir_pool_for(pool, 64, 1e5, add_range, &sum);
    weir_pool_submit(pool, count_task, &sum);
    bool is_good = sum == 129 && weir_pool_thread_count(pool) == 1;
    weir_pool_destroy(pool);
    _exit(is_good ? 0 : 1);
  }
  int result = 0;
  assert_int_equal(waitpid(child, &result, 0), child);
  assert_true(WIFEXITED(result) && WEXITSTATUS(result) == 0);
  weir_pool_for(pool, 64, 1e5, add_range, &sum);
  assert_int_equal(sum, 128);
  weir_pool_destroy(pool);
#endif
}

static void test_cond_deadline(void** state) {
  (void)state;
  meet_t meet = {.here = 0};
  weir_mutex_init(&meet.mu);
  weir_cond_init(&meet.cond);
  weir_mutex_lock(&meet.mu);
  int64_t deadline = weir_clock_ns() + 2000000;
  while (weir_cond_wait_until(&meet.cond, &meet.mu, deadline)) {
  }
  assert_true(weir_clock_ns() >= deadline);
  assert_false(weir_cond_wait_until(&meet.cond, &meet.mu, -5));
  weir_mutex_unlock(&meet.mu);
  weir_cond_destroy(&meet.cond);
  weir_mutex_destroy(&meet.mu);
  assert_true(weir_wall_clock_us() > 1500000000000000);
  assert_true(weir_cpu_count() >= 1);
}

static void fail_range(void* arg, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i)
    weir_first_error_set(arg, WEIR_STATUS(ABORTED, "item %lld", (long long)i));
}

// Of all the errors one comes back; the others are freed.
static void test_first_error(void** state) {
  (void)state;
  weir_pool_t* pool = NULL;
  weir_first_error_t error = {NULL};
  assert_null(weir_pool_create(4, &pool));
  weir_pool_for(pool, 100, 1e6, fail_range, &error);
  weir_pool_destroy(pool);
  assert_int_equal(weir_status_code(error.status), WEIR_ABORTED);
  weir_status_destroy(error.status);
}

// ---- elastic pools ----

typedef struct gate_t {
  atomic_bool is_open;
  atomic_int passed;
} gate_t;

static void wait_at_gate(void* arg) {
  while (!atomic_load(&((gate_t*)arg)->is_open)) usleep(100);
  atomic_fetch_add(&((gate_t*)arg)->passed, 1);
}
static void wait_in_range(void* arg, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) wait_at_gate(arg);
}
static void long_loop_task(void* arg) {
  void** args = arg;
  weir_pool_for(args[0], 4, 1e9, wait_in_range, args[1]);
}

// Tasks and loops hold every thread of the pool; another task is run all the same.
static void test_elastic_tasks_do_not_wait(void** state) {
  (void)state;
  for (int threads = 2; threads <= 3; ++threads) {
    weir_pool_t* pool = make_pool(threads);
    gate_t gate = {.is_open = false};
    atomic_int count = 0;
    void* args[] = {pool, &gate};
    weir_pool_make_elastic(pool, 8);
    weir_pool_submit(pool, long_loop_task, args);
    for (int i = 0; i < 3; ++i) weir_pool_submit(pool, wait_at_gate, &gate);
    for (int i = 1; i <= 20; ++i) {
      weir_pool_submit(pool, count_task, &count);
      while (atomic_load(&count) < i) usleep(100);
    }
    atomic_store(&gate.is_open, true);
    weir_pool_destroy(pool);
    assert_int_equal(gate.passed, 4 + 3);
  }
}

typedef struct place_t {
  pthread_t thread;
  atomic_bool is_known;
} place_t;

static void note_thread(void* arg) {
  ((place_t*)arg)->thread = pthread_self();
  atomic_store(&((place_t*)arg)->is_known, true);
}
static void take_a_moment(void* arg) {
  (void)arg;
  usleep(200);
}
static pthread_t thread_of_a_task(weir_pool_t* pool) {
  place_t place = {.is_known = false};
  weir_pool_submit(pool, take_a_moment, NULL);
  weir_pool_submit(pool, note_thread, &place);
  while (!atomic_load(&place.is_known)) sched_yield();
  return place.thread;
}

// Once the pool's own thread is free again, it does the work, not the one that was added: else a
// pool of one thread would compute with two. A machine that stalls may make some exceptions, but
// not time and again.
static void test_elastic_threads_stay_out(void** state) {
  (void)state;
  enum { TASKS = 200, ROUNDS = 10 };
  weir_pool_t* pool = make_pool(2);
  gate_t gate = {.is_open = false};
  int exceptions = TASKS;
  weir_pool_make_elastic(pool, 8);
  weir_pool_submit(pool, wait_at_gate, &gate);
  const pthread_t extra = thread_of_a_task(pool);
  atomic_store(&gate.is_open, true);
  while (atomic_load(&gate.passed) == 0) usleep(100);
  for (int round = 0; round < ROUNDS && exceptions > TASKS / 10; ++round) {
    exceptions = 0;
    for (int i = 0; i < TASKS; ++i) exceptions += pthread_equal(thread_of_a_task(pool), extra) != 0;
  }
  weir_pool_destroy(pool);
  assert_in_range(exceptions, 0, TASKS / 10);
}

// ---- interrupts ----

typedef struct stop_t {
  weir_interrupt_t base;
  atomic_int items;
  int stop_at;
} stop_t;

static bool stop_is_due(weir_interrupt_t* base) {
  stop_t* stop = (stop_t*)base;
  return atomic_load(&stop->items) >= stop->stop_at;
}
static void count_items(void* arg, int64_t begin, int64_t end) {
  atomic_fetch_add(&((stop_t*)arg)->items, (int)(end - begin));
}
static void nested_items(void* arg, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) weir_pool_for(NULL, 100, 1e9, count_items, arg);
}

static void test_interrupted_loop_ends(void** state) {
  (void)state;
  for (int threads = 1; threads <= 4; ++threads) {
    weir_pool_t* pool = make_pool(threads);
    for (int is_nested = 0; is_nested < 2; ++is_nested) {
      stop_t stop = {.base = {.is_due = stop_is_due}, .stop_at = 50};
      assert_null(weir_interrupt_set(&stop.base));
      weir_pool_for(pool, 1000, 1e9, is_nested ? nested_items : count_items, &stop);
      assert_ptr_equal(weir_interrupt_set(NULL), &stop.base);
      assert_true(stop.base.is_hit);
      assert_in_range(stop.items, 50, 50 + threads);
      weir_pool_for(pool, 1000, 1e9, count_items, &stop);  // nothing is up: all of it
      assert_true(stop.items >= 1050);
    }
    weir_pool_destroy(pool);
  }
}

typedef struct modes_t {
  atomic_int flushing;
  atomic_int all;
} modes_t;

static void note_mode(void* arg, int64_t begin, int64_t end) {
  modes_t* modes = arg;
  volatile float smallest = 1e-38f;
  const float tenth = smallest * 0.1f;  // subnormal
  atomic_fetch_add(&modes->all, (int)(end - begin));
  if (tenth == 0) atomic_fetch_add(&modes->flushing, (int)(end - begin));
  usleep(100);  // the thread that helps comes before all is done
}

static void* assist_main(void* arg) {
  for (int i = 0; i < 1000 && !weir_pool_assist(arg); ++i) usleep(100);
  return NULL;
}

// All threads, the pool's own and one of the program that lends itself, take their caller's mode:
// whether a result is subnormal or zero must not depend on which part of a loop it lies in.
static void test_loops_have_their_callers_float_mode(void** state) {
  (void)state;
  const weir_float_mode_t before = weir_float_mode();
  for (int flushes = 0; flushes < 2; ++flushes) {
    weir_pool_t* pool = make_pool(3);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, assist_main, pool), 0);
    if (flushes) weir_flush_subnormals();
    modes_t modes = {0};
    for (int i = 0; i < 20; ++i) weir_pool_for(pool, 100, 1e6, note_mode, &modes);
    weir_float_mode_restore(before);
    pthread_join(thread, NULL);
    weir_pool_destroy(pool);
    assert_int_equal(modes.all, 2000);
    assert_int_equal(modes.flushing, flushes ? 2000 : 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_create),
                                     cmocka_unit_test(test_elastic_tasks_do_not_wait),
                                     cmocka_unit_test(test_elastic_threads_stay_out),
                                     cmocka_unit_test(test_interrupted_loop_ends),
                                     cmocka_unit_test(test_loops_have_their_callers_float_mode),
                                     cmocka_unit_test(test_for_covers),
                                     cmocka_unit_test(test_for_splits_when_it_pays),
                                     cmocka_unit_test(test_nested),
                                     cmocka_unit_test(test_first_error),
                                     cmocka_unit_test(test_submit),
                                     cmocka_unit_test(test_submit_after_idle),
                                     cmocka_unit_test(test_tasks_run_together),
                                     cmocka_unit_test(test_many_callers),
                                     cmocka_unit_test(test_writes_are_seen),
                                     cmocka_unit_test(test_without_memory),
                                     cmocka_unit_test(test_fork),
                                     cmocka_unit_test(test_cond_deadline)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

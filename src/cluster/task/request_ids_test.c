// request_ids_test.c — Requests that arrive twice are refused; new numbers cannot be foreseen.
#include "cluster/task/request_ids.h"

#include <sys/wait.h>
#include <unistd.h>

#include "cluster/task/task.h"
#include "testing/tensors.h"

enum { SIZE = 4096 };

static void test_repeated(void** state) {
  (void)state;
  weir_request_ids_t ids;
  check_ok(weir_request_ids_init(&ids, SIZE));
  check_ok(weir_request_ids_add(&ids, 7, "RunStep"));
  check_ok(weir_request_ids_add(&ids, -7, "RunStep"));
  check_error(weir_request_ids_add(&ids, 7, "RunStep"), WEIR_ABORTED,
              "RunStep: request_id 7 has been seen before");
  check_error(weir_request_ids_add(&ids, -7, "RecvTensor"), WEIR_ABORTED, "RecvTensor");
  for (int i = 0; i < 3; ++i) check_ok(weir_request_ids_add(&ids, 0, "RunStep"));  // not given
  weir_request_ids_clear(&ids);
  check_ok(weir_request_ids_add(&ids, 7, "RunStep"));
  weir_request_ids_free(&ids);
}

// The newest are known, old ones are forgotten, none is mistaken for another.
static void test_many(void** state) {
  (void)state;
  weir_request_ids_t ids;
  check_ok(weir_request_ids_init(&ids, SIZE));
  for (int64_t i = 1; i <= 20 * SIZE; ++i) check_ok(weir_request_ids_add(&ids, i, "RunStep"));
  for (int64_t i = 19 * SIZE + 1; i <= 20 * SIZE; ++i)
    check_error(weir_request_ids_add(&ids, i, "RunStep"), WEIR_ABORTED, "");
  check_ok(weir_request_ids_add(&ids, 1, "RunStep"));
  weir_request_ids_free(&ids);
}

enum { THREADS = 4, NUMBERS = 200 };
static weir_request_ids_t shared;
static atomic_int accepted;

static void* add_all(void* arg) {
  (void)arg;
  for (int64_t i = 1; i <= NUMBERS; ++i) {
    weir_status_t* status = weir_request_ids_add(&shared, i, "RunStep");
    if (!status) atomic_fetch_add(&accepted, 1);
    weir_status_destroy(status);
  }
  return NULL;
}

// Of the same request on several threads one is accepted.
static void test_threads(void** state) {
  (void)state;
  pthread_t threads[THREADS];
  check_ok(weir_request_ids_init(&shared, SIZE));
  for (int i = 0; i < THREADS; ++i)
    assert_int_equal(pthread_create(&threads[i], NULL, add_all, NULL), 0);
  for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  assert_int_equal(atomic_load(&accepted), NUMBERS);
  weir_request_ids_free(&shared);
}

// New numbers are the kernel's: a copy of the process, which has all of its state, gives others.
static void test_cannot_be_foreseen(void** state) {
  (void)state;
  uint64_t of_child = 0;
  int ends[2], end = 0;
  assert_int_equal(pipe(ends), 0);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    uint64_t value = weir_task_random();
    _exit(write(ends[1], &value, sizeof(value)) == (ssize_t)sizeof(value) ? 0 : 1);
  }
  assert_int_equal(read(ends[0], &of_child, sizeof(of_child)), sizeof(of_child));
  assert_int_equal(waitpid(child, &end, 0), child);
  assert_int_equal(end, 0);
  assert_true(of_child != 0 && of_child != weir_task_random());
  for (int i = 0; i < 2; ++i) close(ends[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_repeated),
      cmocka_unit_test(test_many),
      cmocka_unit_test(test_threads),
      cmocka_unit_test(test_cannot_be_foreseen),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

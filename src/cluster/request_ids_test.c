// request_ids_test.c — Requests that arrive twice are refused.
#include "cluster/request_ids.h"

#include "testing/tensors.h"

static void test_repeated(void** state) {
  (void)state;
  weir_request_ids_t ids;
  weir_request_ids_init(&ids);
  check_ok(weir_request_ids_add(&ids, 7, "RunStep"));
  check_ok(weir_request_ids_add(&ids, -7, "RunStep"));
  check_error(weir_request_ids_add(&ids, 7, "RunStep"), WEIR_ABORTED,
              "RunStep: request_id 7 has been seen before");
  check_error(weir_request_ids_add(&ids, -7, "RecvTensor"), WEIR_ABORTED, "RecvTensor");
  for (int i = 0; i < 3; ++i) check_ok(weir_request_ids_add(&ids, 0, "RunStep"));  // not given
  weir_request_ids_free(&ids);
}

// Old ones are forgotten, never mistaken for others.
static void test_many(void** state) {
  (void)state;
  weir_request_ids_t ids;
  weir_request_ids_init(&ids);
  for (int64_t i = 1; i <= 20 * WEIR_REQUEST_IDS_SIZE; ++i)
    check_ok(weir_request_ids_add(&ids, i, "RunStep"));
  check_error(weir_request_ids_add(&ids, 20 * WEIR_REQUEST_IDS_SIZE, "RunStep"), WEIR_ABORTED, "");
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

// Of the same request on several threads at least one is accepted. (More than one may be: when
// another number took its place in between.)
static void test_threads(void** state) {
  (void)state;
  pthread_t threads[THREADS];
  weir_request_ids_init(&shared);
  for (int i = 0; i < THREADS; ++i)
    assert_int_equal(pthread_create(&threads[i], NULL, add_all, NULL), 0);
  for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  assert_in_range(atomic_load(&accepted), NUMBERS, THREADS * NUMBERS - 1);
  weir_request_ids_free(&shared);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_repeated),
      cmocka_unit_test(test_many),
      cmocka_unit_test(test_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

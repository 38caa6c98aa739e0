// cancel_test.c — Cancellation: order of events, children, races of deregistering with running, and
// reentry.

#include "base/cancel.h"

#include <unistd.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "testing/cmocka.h"

static void count(void* arg) { atomic_fetch_add((atomic_int*)arg, 1); }

static weir_cancel_t* make(weir_cancel_t* parent) {
  weir_cancel_t* cancel = NULL;
  assert_null(weir_cancel_create(parent, &cancel));
  return cancel;
}

static void test_start_runs_once(void** state) {
  (void)state;
  weir_cancel_t* cancel = make(NULL);
  atomic_int calls = 0;
  weir_cancel_token_t token = weir_cancel_register(cancel, count, &calls);
  assert_true(token != 0);
  assert_true(weir_cancel_register(cancel, count, &calls) != token);
  assert_false(weir_cancel_is_cancelled(cancel));
  weir_cancel_start(cancel);
  weir_cancel_start(cancel);
  assert_true(weir_cancel_is_cancelled(cancel));
  assert_int_equal(calls, 2);
  assert_false(weir_cancel_deregister(cancel, token));
  assert_true(weir_cancel_register(cancel, count, &calls) == 0);
  weir_cancel_destroy(cancel);
}

static void test_deregister(void** state) {
  (void)state;
  weir_cancel_t* cancel = make(NULL);
  atomic_int calls = 0;
  weir_cancel_token_t tokens[100];
  for (int i = 0; i < 100; ++i) tokens[i] = weir_cancel_register(cancel, count, &calls);
  for (int i = 0; i < 100; i += 2) assert_true(weir_cancel_deregister(cancel, tokens[i]));
  for (int i = 0; i < 100; i += 2) assert_false(weir_cancel_try_deregister(cancel, tokens[i]));
  weir_cancel_token_t again = weir_cancel_register(cancel, count, &calls);
  for (int i = 0; i < 100; i += 2)
    assert_true(tokens[i] != again);  // a place is used again, its token is not
  assert_true(weir_cancel_try_deregister(cancel, again));
  weir_cancel_start(cancel);
  assert_int_equal(calls, 50);
  weir_cancel_destroy(cancel);
}

static void test_null(void** state) {
  (void)state;
  assert_false(weir_cancel_is_cancelled(NULL));
  assert_true(weir_cancel_register(NULL, count, NULL) == 0);
  assert_false(weir_cancel_deregister(NULL, 0));
  weir_cancel_start(NULL);
  weir_cancel_destroy(NULL);
}

static void test_children(void** state) {
  (void)state;
  weir_cancel_t* session = make(NULL);
  weir_cancel_t* call = make(session);
  weir_cancel_t* step = make(call);
  weir_cancel_t* other = make(session);
  weir_cancel_destroy(other);
  atomic_int calls = 0;
  assert_true(weir_cancel_register(step, count, &calls) != 0);
  weir_cancel_start(call);
  assert_int_equal(calls, 1);
  assert_true(weir_cancel_is_cancelled(step));
  assert_false(weir_cancel_is_cancelled(session));
  weir_cancel_t* late = make(call);
  assert_true(weir_cancel_is_cancelled(late));
  weir_cancel_destroy(late);
  weir_cancel_destroy(step);
  weir_cancel_destroy(call);
  weir_cancel_start(session);
  weir_cancel_destroy(session);
}

typedef struct self_t {
  weir_cancel_t* cancel;
  weir_cancel_token_t token;
  bool result;
} self_t;

static void deregister_self(void* arg) {
  self_t* self = arg;
  self->result = weir_cancel_deregister(self->cancel, self->token);
}

static void destroy_self(void* arg) { weir_cancel_destroy(arg); }

static void test_reentry(void** state) {
  (void)state;
  self_t self = {.cancel = make(NULL), .result = true};
  self.token = weir_cancel_register(self.cancel, deregister_self, &self);
  weir_cancel_start(self.cancel);  // must not wait for itself
  assert_false(self.result);
  weir_cancel_destroy(self.cancel);
  // A step ends, and with it its manager, inside the callback of its own cancellation.
  weir_cancel_t* parent = make(NULL);
  weir_cancel_t* child = make(parent);
  atomic_int calls = 0;
  assert_true(weir_cancel_register(child, destroy_self, child) != 0);
  assert_true(weir_cancel_register(child, count, &calls) != 0);
  weir_cancel_start(parent);
  assert_int_equal(calls, 0);  // dropped by the destroy
  weir_cancel_destroy(parent);
}

typedef struct slow_t {
  atomic_bool has_begun;
  int value;  // plain: deregister must order it
} slow_t;

static void slow(void* arg) {
  slow_t* s = arg;
  atomic_store(&s->has_begun, true);
  usleep(2000);
  s->value = 1;
}

static void* start_main(void* arg) {
  weir_cancel_start(arg);
  return NULL;
}

static void test_deregister_waits(void** state) {
  (void)state;
  weir_cancel_t* cancel = make(NULL);
  slow_t s = {.value = 0};
  weir_cancel_token_t token = weir_cancel_register(cancel, slow, &s);
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, start_main, cancel), 0);
  while (!atomic_load(&s.has_begun)) usleep(10);
  assert_false(weir_cancel_try_deregister(cancel, token));
  assert_false(weir_cancel_deregister(cancel, token));
  assert_int_equal(s.value, 1);
  pthread_join(thread, NULL);
  weir_cancel_destroy(cancel);
}

typedef struct race_t {
  weir_cancel_t* parent;
  atomic_int ran;
  atomic_int withdrawn;
  atomic_int refused;
} race_t;

static void* race_main(void* arg) {
  race_t* race = arg;
  for (int i = 0; i < 300; ++i) {
    weir_cancel_t* child = NULL;
    if (weir_cancel_create(race->parent, &child)) return NULL;
    atomic_int ran = 0;  // on this stack: dead once deregister returned
    weir_cancel_token_t token = weir_cancel_register(child, count, &ran);
    if (token == 0) {
      atomic_fetch_add(&race->refused, 1);
    } else if (weir_cancel_deregister(child, token)) {
      atomic_fetch_add(&race->withdrawn, 1);
    } else {
      atomic_fetch_add(&race->ran, ran);
    }
    weir_cancel_destroy(child);
  }
  return NULL;
}

static void test_race(void** state) {
  (void)state;
  for (int round = 0; round < 20; ++round) {
    race_t race = {.parent = make(NULL)};
    pthread_t threads[3];
    for (size_t i = 0; i < 3; ++i)
      assert_int_equal(pthread_create(&threads[i], NULL, race_main, &race), 0);
    usleep((useconds_t)round * 20);
    weir_cancel_start(race.parent);
    for (size_t i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
    assert_int_equal(race.ran + race.withdrawn + race.refused, 900);  // each exactly one way
    weir_cancel_destroy(race.parent);
  }
}

static void test_out_of_memory(void** state) {
  (void)state;
  weir_cancel_t* parent = make(NULL);
  for (int64_t n = 1; n <= 2; ++n) {
    weir_cancel_t* child = NULL;
    weir_alloc_fail_at(n, false);
    weir_status_t* status = weir_cancel_create(parent, &child);
    weir_alloc_fail_at(0, false);
    assert_ptr_equal(status, weir_out_of_memory());
    assert_null(child);
  }
  weir_cancel_destroy(parent);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_start_runs_once),
                                     cmocka_unit_test(test_deregister),
                                     cmocka_unit_test(test_null),
                                     cmocka_unit_test(test_children),
                                     cmocka_unit_test(test_reentry),
                                     cmocka_unit_test(test_deregister_waits),
                                     cmocka_unit_test(test_race),
                                     cmocka_unit_test(test_out_of_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

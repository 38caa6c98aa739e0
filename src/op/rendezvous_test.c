// rendezvous_test.c — Send and Recv in either order, dead values, aborts, cancellation, and all of
// it at once.
// cmocka.h needs the headers before it.
#include "op/rendezvous.h"

#include <pthread.h>
#include <stdio.h>

#include "testing/cmocka.h"

// What a receiver got.
typedef struct outcome_t {
  atomic_int calls;
  weir_code_t code;
  int value;  // of the tensor; -1 for none
  bool is_dead;
} outcome_t;

static void on_recv(void* arg, weir_status_t* take_status, weir_tensor_t* take_tensor,
                    bool is_dead) {
  outcome_t* outcome = arg;
  outcome->code = weir_status_code(take_status);
  outcome->value = take_tensor ? *WEIR_TENSOR_DATA(take_tensor, int32_t) : -1;
  outcome->is_dead = is_dead;
  weir_status_destroy(take_status);
  weir_tensor_release(take_tensor);
  atomic_fetch_add(&outcome->calls, 1);
}

static weir_rendezvous_t* create(void) {
  weir_rendezvous_t* r = NULL;
  assert_null(weir_local_rendezvous_create(&r));
  return r;
}

static void send(weir_rendezvous_t* r, const char* key, int32_t value) {
  weir_tensor_t* t = NULL;
  assert_null(weir_tensor_create_from(WEIR_DTYPE_INT32, 0, NULL, &value, &t));
  assert_null(r->vtable->send(r, weir_view_of(key), t, false));
  weir_tensor_release(t);
}

static void recv(weir_rendezvous_t* r, const char* key, weir_cancel_t* cancel, outcome_t* outcome) {
  r->vtable->recv_async(r, weir_view_of(key), cancel, on_recv, outcome);
}

static void expect(const outcome_t* o, weir_code_t code, int value) {
  assert_int_equal(atomic_load(&o->calls), 1);
  assert_int_equal(o->code, code);
  assert_int_equal(o->value, value);
}

static void test_either_order(void** state) {
  (void)state;
  weir_rendezvous_t* r = create();
  outcome_t a = {0};
  outcome_t b = {0};
  outcome_t c = {0};
  send(r, "x", 1);
  recv(r, "x", NULL, &a);
  expect(&a, WEIR_OK, 1);
  recv(r, "x", NULL, &b);
  recv(r, "y", NULL, &c);
  assert_int_equal(atomic_load(&b.calls), 0);
  send(r, "y", 3);
  expect(&c, WEIR_OK, 3);
  send(r, "x", 2);
  expect(&b, WEIR_OK, 2);
  weir_rendezvous_release(r);
}

static void test_queues_and_dead(void** state) {
  (void)state;
  weir_rendezvous_t* r = create();
  outcome_t o[3] = {0};
  send(r, "x", 1);
  assert_null(r->vtable->send(r, weir_view_of("x"), NULL, true));
  send(r, "x", 3);
  for (int i = 0; i < 3; ++i) recv(r, "x", NULL, &o[i]);
  expect(&o[0], WEIR_OK, 1);
  expect(&o[1], WEIR_OK, -1);
  assert_true(o[1].is_dead);
  expect(&o[2], WEIR_OK, 3);
  send(r, "never received", 4);  // freed with the rendezvous
  weir_rendezvous_release(r);
}

static void test_abort(void** state) {
  (void)state;
  weir_rendezvous_t* r = create();
  outcome_t before = {0};
  outcome_t after = {0};
  weir_cancel_t* cancel = NULL;
  assert_null(weir_cancel_create(NULL, &cancel));
  recv(r, "x", cancel, &before);
  send(r, "y", 1);
  weir_status_t* reason = WEIR_STATUS(UNAVAILABLE, "gone");
  r->vtable->abort(r, reason);
  weir_status_destroy(reason);
  expect(&before, WEIR_UNAVAILABLE, -1);
  recv(r, "y", cancel, &after);
  expect(&after, WEIR_UNAVAILABLE, -1);
  weir_status_t* status = r->vtable->send(r, weir_view_of("x"), NULL, true);
  assert_int_equal(weir_status_code(status), WEIR_UNAVAILABLE);
  weir_status_destroy(status);
  weir_rendezvous_release(r);
  weir_cancel_destroy(cancel);
}

static void test_cancel(void** state) {
  (void)state;
  weir_rendezvous_t* r = create();
  outcome_t first = {0};
  outcome_t kept = {0};
  outcome_t late = {0};
  weir_cancel_t* cancel = NULL;
  assert_null(weir_cancel_create(NULL, &cancel));
  recv(r, "x", cancel, &first);
  recv(r, "x", NULL, &kept);
  weir_cancel_start(cancel);
  expect(&first, WEIR_CANCELLED, -1);
  recv(r, "x", cancel, &late);
  expect(&late, WEIR_CANCELLED, -1);
  send(r, "x", 5);
  expect(&kept, WEIR_OK, 5);
  weir_rendezvous_release(r);
  weir_cancel_destroy(cancel);
}

// Receivers of one key are served in order, whichever of them went away: the |gone|th of three, and
// one comes after.
static void test_cancel_one_of_a_queue(void** state) {
  (void)state;
  for (int gone = 0; gone < 3; ++gone) {
    weir_rendezvous_t* r = create();
    outcome_t o[4] = {0};
    weir_cancel_t* cancel = NULL;
    assert_null(weir_cancel_create(NULL, &cancel));
    for (int i = 0; i < 3; ++i) recv(r, "x", i == gone ? cancel : NULL, &o[i]);
    weir_cancel_start(cancel);
    expect(&o[gone], WEIR_CANCELLED, -1);
    recv(r, "x", NULL, &o[3]);
    int32_t value = 0;
    for (int i = 0; i < 4; ++i) {
      if (i == gone) continue;
      assert_int_equal(atomic_load(&o[i].calls), 0);
      send(r, "x", ++value);
      expect(&o[i], WEIR_OK, value);
    }
    weir_rendezvous_release(r);
    weir_cancel_destroy(cancel);
  }
}

// Every allocation of receiving and of sending fails in turn; the rendezvous goes on.
static void test_out_of_memory(void** state) {
  (void)state;
  weir_rendezvous_t* r = create();
  weir_cancel_t* cancel = NULL;
  assert_null(weir_cancel_create(NULL, &cancel));
  outcome_t waiting = {0};
  for (int64_t n = 1;; ++n) {
    weir_alloc_fail_at(n, false);
    recv(r, "x", cancel, &waiting);
    weir_alloc_fail_at(0, false);
    if (atomic_load(&waiting.calls) == 0) break;  // it took fewer than n allocations
    expect(&waiting, WEIR_RESOURCE_EXHAUSTED, -1);
    atomic_store(&waiting.calls, 0);
  }
  int32_t value = 3;
  weir_tensor_t* t = NULL;
  assert_null(weir_tensor_create_from(WEIR_DTYPE_INT32, 0, NULL, &value, &t));
  for (int64_t n = 1;; ++n) {
    weir_alloc_fail_at(n, false);
    weir_status_t* status = r->vtable->send(r, weir_view_of("y"), t, false);
    weir_alloc_fail_at(0, false);
    if (!status) break;
    assert_int_equal(weir_status_code(status), WEIR_RESOURCE_EXHAUSTED);
    weir_status_destroy(status);
  }
  outcome_t sent = {0};
  recv(r, "y", NULL, &sent);
  expect(&sent, WEIR_OK, 3);
  assert_true(weir_tensor_is_sole(t));
  weir_tensor_release(t);
  send(r, "x", 4);
  expect(&waiting, WEIR_OK, 4);
  weir_rendezvous_release(r);
  weir_cancel_destroy(cancel);
}

static void test_destroy_fails_waiters(void** state) {
  (void)state;
  weir_rendezvous_t* r = create();
  outcome_t o = {0};
  recv(r, "x", NULL, &o);
  weir_rendezvous_release(r);
  expect(&o, WEIR_CANCELLED, -1);
}

// ---- many threads ----

enum { KEYS = 200 };
typedef struct race_t {
  weir_rendezvous_t* rendezvous;
  weir_cancel_t* cancel;
  outcome_t outcomes[KEYS];
  bool with_cancel;
} race_t;

static void* sender(void* arg) {
  race_t* race = arg;
  for (int32_t i = 0; i < KEYS; ++i) {
    char key[16];
    snprintf(key, sizeof(key), "k%d", i);
    weir_tensor_t* t = NULL;
    weir_status_destroy(weir_tensor_create_from(WEIR_DTYPE_INT32, 0, NULL, &i, &t));
    weir_status_destroy(
        race->rendezvous->vtable->send(race->rendezvous, weir_view_of(key), t, false));
    weir_tensor_release(t);
  }
  return NULL;
}

static void* receiver(void* arg) {
  race_t* race = arg;
  for (int i = KEYS - 1; i >= 0; --i) {
    char key[16];
    snprintf(key, sizeof(key), "k%d", i);
    recv(race->rendezvous, key, race->cancel, &race->outcomes[i]);
  }
  return NULL;
}

static void* canceller(void* arg) {
  race_t* race = arg;
  if (race->with_cancel) weir_cancel_start(race->cancel);
  return NULL;
}

static void run_race(bool with_cancel) {
  race_t* race = weir_calloc(1, sizeof(*race));
  race->rendezvous = create();
  race->with_cancel = with_cancel;
  assert_null(weir_cancel_create(NULL, &race->cancel));
  pthread_t threads[3];
  assert_int_equal(pthread_create(&threads[0], NULL, receiver, race), 0);
  assert_int_equal(pthread_create(&threads[1], NULL, sender, race), 0);
  assert_int_equal(pthread_create(&threads[2], NULL, canceller, race), 0);
  for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < KEYS; ++i) {
    assert_int_equal(atomic_load(&race->outcomes[i].calls), 1);
    if (race->outcomes[i].code == WEIR_OK) {
      assert_int_equal(race->outcomes[i].value, i);
    } else {
      assert_true(with_cancel && race->outcomes[i].code == WEIR_CANCELLED);
    }
  }
  weir_rendezvous_release(race->rendezvous);
  weir_cancel_destroy(race->cancel);
  weir_free(race);
}

static void test_races(void** state) {
  (void)state;
  for (int i = 0; i < 50; ++i) run_race(i % 2 == 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_either_order),
      cmocka_unit_test(test_queues_and_dead),
      cmocka_unit_test(test_abort),
      cmocka_unit_test(test_cancel),
      cmocka_unit_test(test_cancel_one_of_a_queue),
      cmocka_unit_test(test_out_of_memory),
      cmocka_unit_test(test_destroy_fails_waiters),
      cmocka_unit_test(test_races),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

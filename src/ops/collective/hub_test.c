// hub_test.c — Members of collectives: who meets whom, what they get, and how meetings fail.
#include "ops/collective/hub.h"

#include "testing/tensors.h"

typedef struct outcome_t {
  atomic_int calls;
  weir_status_t* status;
  weir_tensor_t* tensor;
} outcome_t;

static void on_done(void* arg, weir_status_t* take_status, weir_tensor_t* take_tensor) {
  outcome_t* outcome = arg;
  outcome->status = take_status;
  outcome->tensor = take_tensor;
  atomic_fetch_add(&outcome->calls, 1);
}

static void clear(outcome_t* outcome) {
  weir_status_destroy(outcome->status);
  weir_tensor_release(outcome->tensor);
  *outcome = (outcome_t){0};
}

static int setup(void** state) {
  weir_hub_t* hub = NULL;
  check_ok(weir_hub_create(NULL, &hub));
  *state = hub;
  return 0;
}

static int teardown(void** state) {
  weir_hub_destroy(*state);
  return 0;
}

#define TASK "/job:worker/replica:0/task:"
static const char* const devices[] = {TASK "0/device:CPU:0", TASK "1/device:CPU:0",
                                      TASK "2/device:CPU:0", TASK "10/device:CPU:0"};

// What device |i| of |size| wants: a sum of floats.
static weir_collective_t sum_of(int i, int size) {
  return (weir_collective_t){.kind = WEIR_COLLECTIVE_REDUCE,
                             .dtype = WEIR_DTYPE_FLOAT,
                             .merge = WEIR_UPDATE_ADD,
                             .group_key = 1,
                             .group_size = size,
                             .instance_key = 1,
                             .rank = -1,
                             .step_id = 1,
                             .device = devices[i]};
}

static void join_with(weir_hub_t* hub, const weir_collective_t* what, weir_tensor_t* take_tensor,
                      weir_cancel_t* cancel, outcome_t* outcome) {
  weir_hub_caller_t caller = {.cancel = cancel, .done = on_done, .arg = outcome};
  weir_hub_join(hub, what, take_tensor, &caller);
  weir_tensor_release(take_tensor);
}

static void join(weir_hub_t* hub, const weir_collective_t* what, weir_tensor_t* take_tensor,
                 outcome_t* outcome) {
  join_with(hub, what, take_tensor, NULL, outcome);
}

static void expect_floats(outcome_t* outcome, int64_t count, const float* expected) {
  assert_int_equal(outcome->calls, 1);
  check_ok(outcome->status);
  check_floats_at(outcome->tensor, count, expected, 0, __FILE__, __LINE__);
  outcome->status = NULL;
  clear(outcome);
}
#define EXPECT(outcome, ...)                                                          \
  expect_floats((outcome), (int64_t)(sizeof((float[]){__VA_ARGS__}) / sizeof(float)), \
                (const float[]){__VA_ARGS__})

static void expect_error(outcome_t* outcome, weir_code_t code, const char* text) {
  assert_int_equal(outcome->calls, 1);
  assert_null(outcome->tensor);
  check_error(outcome->status, code, text);
  *outcome = (outcome_t){0};
}

// 2^24 + 1 - 2^24 in floats depends on the order.
static void test_sums_in_the_order_of_ranks(void** state) {
  const float big = 16777216;
  const float values[] = {big, 1, -big, 0};
  const int orders[][4] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 3, 0, 2}};
  for (int k = 0; k < 3; ++k) {
    outcome_t outcomes[4] = {{0}};
    for (int j = 0; j < 4; ++j) {
      int i = orders[k][j];
      weir_collective_t what = sum_of(i, 4);
      assert_int_equal(outcomes[i].calls, 0);
      join(*state, &what, FLOATS(values[i], 1), &outcomes[i]);
    }
    for (int i = 0; i < 4; ++i) EXPECT(&outcomes[i], 0, 4);
  }
}

static void test_merges_and_means(void** state) {
  const weir_update_op_t ops[] = {WEIR_UPDATE_ADD, WEIR_UPDATE_MUL, WEIR_UPDATE_MIN,
                                  WEIR_UPDATE_MAX};
  const float expected[] = {6, 8, 2, 4};
  for (int k = 0; k < 4; ++k) {
    for (int is_mean = 0; is_mean < 2; ++is_mean) {
      outcome_t a = {0}, b = {0};
      weir_collective_t x = sum_of(0, 2), y = sum_of(1, 2);
      x.merge = y.merge = ops[k];
      x.is_mean = y.is_mean = is_mean;
      join(*state, &x, make_float(2), &a);
      join(*state, &y, make_float(4), &b);
      EXPECT(&a, expected[k] / (is_mean ? 2 : 1));
      EXPECT(&b, expected[k] / (is_mean ? 2 : 1));
    }
  }
}

static void test_gathers_and_exchanges(void** state) {
  const weir_collective_kind_t kinds[] = {WEIR_COLLECTIVE_GATHER, WEIR_COLLECTIVE_ALL_TO_ALL,
                                          WEIR_COLLECTIVE_REDUCE_SCATTER};
  for (int k = 0; k < 3; ++k) {
    outcome_t a = {0}, b = {0};
    weir_collective_t x = sum_of(3, 2), y = sum_of(2, 2);  // task 10 comes after task 2
    x.kind = y.kind = kinds[k];
    join(*state, &x, FLOATS(3, 4), &b);
    join(*state, &y, FLOATS(1, 2), &a);
    if (k == 0) {
      EXPECT(&a, 1, 2, 3, 4);
      EXPECT(&b, 1, 2, 3, 4);
    } else if (k == 1) {
      EXPECT(&a, 1, 3);
      EXPECT(&b, 2, 4);
    } else {
      EXPECT(&a, 4);
      EXPECT(&b, 6);
    }
  }
}

static weir_collective_t broadcast_of(int i, int size, bool is_source) {
  static const int64_t dims[] = {2};
  weir_collective_t what = sum_of(i, size);
  what.kind = WEIR_COLLECTIVE_BROADCAST;
  what.is_source = is_source;
  if (!is_source) what.dims = dims;
  if (!is_source) what.dim_count = 1;
  return what;
}

static void test_broadcasts(void** state) {
  outcome_t outcomes[3] = {{0}};
  for (int i = 0; i < 3; ++i) {
    weir_collective_t what = broadcast_of(i, 3, i == 1);
    join(*state, &what, i == 1 ? FLOATS(5, 6) : NULL, &outcomes[i]);
  }
  for (int i = 0; i < 3; ++i) EXPECT(&outcomes[i], 5, 6);
}

static void test_broadcasts_have_one_source(void** state) {
  for (int sources = 0; sources <= 2; sources += 2) {
    outcome_t a = {0}, b = {0};
    weir_collective_t x = broadcast_of(0, 2, sources), y = broadcast_of(1, 2, sources);
    join(*state, &x, sources ? FLOATS(1, 2) : NULL, &a);
    join(*state, &y, sources ? FLOATS(1, 2) : NULL, &b);
    const char* text = sources ? "Instance 1 already has source 0, received second claim from 1"
                               : "Instance 1 found no source for broadcast.";
    expect_error(&a, WEIR_INTERNAL, text);
    expect_error(&b, WEIR_INTERNAL, text);
  }
}

// Instances that are under way at once, joined in any order, meet by key.
static void test_many_instances_at_once(void** state) {
  enum { COUNT = 500 };
  outcome_t* outcomes = calloc(2 * COUNT, sizeof(*outcomes));
  for (int side = 0; side < 2; ++side) {
    for (int k = 0; k < COUNT; ++k) {
      int key = side ? COUNT - 1 - k : k;
      weir_collective_t what = sum_of(side, 2);
      what.instance_key = key;
      join(*state, &what, make_float((float)key), &outcomes[side * COUNT + key]);
    }
  }
  for (int k = 0; k < COUNT; ++k) {
    EXPECT(&outcomes[k], 2 * (float)k);
    EXPECT(&outcomes[COUNT + k], 2 * (float)k);
  }
  free(outcomes);
}

// The second time that a device comes with the same keys is for the second meeting.
static void test_a_device_is_in_a_meeting_once(void** state) {
  outcome_t a[3] = {{0}}, b[3] = {{0}};
  weir_collective_t x = sum_of(0, 2), y = sum_of(1, 2);
  for (int i = 0; i < 3; ++i) join(*state, &x, make_float((float)i), &a[i]);
  for (int i = 0; i < 3; ++i) {
    join(*state, &y, make_float(10), &b[i]);
    EXPECT(&a[i], 10 + (float)i);
    EXPECT(&b[i], 10 + (float)i);
  }
}

static void test_steps_of_a_session_do_not_mix(void** state) {
  outcome_t old = {0}, a = {0}, b = {0};
  weir_cancel_t* cancel = NULL;
  check_ok(weir_cancel_create(NULL, &cancel));
  weir_collective_t x = sum_of(0, 2), y = sum_of(1, 2);
  join_with(*state, &x, make_float(100), cancel, &old);
  x.step_id = y.step_id = 2;
  join(*state, &y, make_float(1), &b);
  assert_int_equal(b.calls, 0);
  weir_cancel_start(cancel);
  expect_error(&old, WEIR_CANCELLED, "");
  join(*state, &x, make_float(2), &a);
  EXPECT(&a, 3);
  EXPECT(&b, 3);
  weir_cancel_destroy(cancel);
}

static void test_sessions_meet_in_order(void** state) {
  outcome_t a = {0}, b = {0};
  weir_collective_t x = sum_of(0, 2), y = sum_of(1, 2);
  x.scope = 1;
  y.scope = 2;
  y.step_id = 7;
  join(*state, &x, make_float(1), &a);
  join(*state, &y, make_float(2), &b);
  EXPECT(&a, 3);
  EXPECT(&b, 3);
}

static void test_disagreement_is_told_to_all(void** state) {
  enum { SIZE, KIND, TYPE, SHAPE, MERGE, COUNT };
  const weir_code_t codes[] = {WEIR_INTERNAL, WEIR_INTERNAL, WEIR_INTERNAL, WEIR_INVALID_ARGUMENT,
                               WEIR_INVALID_ARGUMENT};
  const char* const texts[] = {
      TASK "1/device:CPU:0 is joining a group with size3, but that group has size 2 (group_key=1)",
      "Collective instance 1 expected type 0 and data_type 1 but got type 2 and data_type 1",
      "Collective instance 1 expected type 0 and data_type 1 but got type 0 and data_type 3",
      "Op at device " TASK
      "1/device:CPU:0 expected shape [1] but another member in the group "
      "expected shape [2]",
      "in different ways"};
  for (int k = 0; k < COUNT; ++k) {
    outcome_t a = {0}, b = {0};
    weir_collective_t x = sum_of(0, 2), y = sum_of(1, 2);
    if (k == SIZE) y.group_size = 3;
    if (k == KIND) y.kind = WEIR_COLLECTIVE_GATHER;
    if (k == TYPE) y.dtype = WEIR_DTYPE_INT32;
    if (k == MERGE) y.merge = WEIR_UPDATE_MUL;
    join(*state, &x, FLOATS(1, 2), &a);
    join(*state, &y, k == TYPE ? make_int(1) : k == SHAPE ? FLOATS(1) : FLOATS(1, 2), &b);
    expect_error(&a, codes[k], texts[k]);
    expect_error(&b, codes[k], texts[k]);
  }
}

// Members of sessions of their own are told, however late; once, and not those of later steps.
static void test_disagreement_is_told_to_who_comes_late(void** state) {
  for (int is_size = 0; is_size < 2; ++is_size) {
    outcome_t a = {0}, b = {0}, c = {0};
    weir_collective_t what[3];
    for (int i = 0; i < 3; ++i) {
      what[i] = sum_of(i, 3);
      what[i].scope = (uint64_t)i + 1;
      what[i].group_key = 1 + is_size;
    }
    if (is_size) what[1].group_size = 4;
    join(*state, &what[0], FLOATS(1, 2), &a);
    join(*state, &what[1], is_size ? FLOATS(1, 2) : FLOATS(1), &b);
    join(*state, &what[2], FLOATS(1, 2), &c);
    weir_code_t code = is_size ? WEIR_INTERNAL : WEIR_INVALID_ARGUMENT;
    const char* text = is_size ? "size4, but that group has size 3" : "Shape mismatch";
    expect_error(&a, code, text);
    expect_error(&b, code, text);
    expect_error(&c, code, text);
    what[1].group_size = 3;
    join(*state, &what[2], make_float(1), &c);
    join(*state, &what[0], make_float(1), &a);
    join(*state, &what[1], make_float(1), &b);
    EXPECT(&a, 3);
    EXPECT(&b, 3);
    EXPECT(&c, 3);
  }
}

// A later session with the same keys has nothing to do with it.
static void test_quarrels_stay_within_a_session(void** state) {
  for (int k = 0; k < 3; ++k) {
    outcome_t outcomes[3] = {{0}};
    for (int i = 0; i < 2 + (k == 2); ++i) {
      weir_collective_t what = sum_of(i, 3);
      what.scope = (uint64_t)k;
      if (k == 0) what.group_size += i;
      if (k == 1) what.instance_key = i;
      if (k == 1) what.kind = WEIR_COLLECTIVE_ALL_TO_ALL;
      join(*state, &what, make_float(1), &outcomes[i]);
    }
    for (int i = 0; i < 2 + (k == 2); ++i) {
      if (k == 2) EXPECT(&outcomes[i], 3);
      else if (k == 1) expect_error(&outcomes[i], WEIR_INVALID_ARGUMENT, "input to all-to-all");
      else expect_error(&outcomes[i], WEIR_INTERNAL, "is joining a group with size4");
    }
  }
}

static void test_a_full_group_takes_no_other(void** state) {
  outcome_t outcomes[3] = {{0}};
  for (int i = 0; i < 3; ++i) {
    weir_collective_t what = sum_of(i, 2);
    join(*state, &what, make_float(1), &outcomes[i]);
  }
  EXPECT(&outcomes[0], 2);
  EXPECT(&outcomes[1], 2);
  expect_error(&outcomes[2], WEIR_INTERNAL, "is joining a group that is already full");
  // Another session may mean another group by the key.
  weir_collective_t what = sum_of(2, 1);
  what.scope = 5;
  join(*state, &what, make_float(1), &outcomes[2]);
  EXPECT(&outcomes[2], 1);
}

// A later session whose group has one device in place of another.
static void test_places_in_a_group_are_taken_over(void** state) {
  const int members[][2] = {{0, 1}, {0, 2}, {3, 2}};
  for (int k = 0; k < 3; ++k) {
    outcome_t outcomes[2] = {{0}};
    for (int i = 0; i < 2; ++i) {
      weir_collective_t what = sum_of(members[k][i], 2);
      what.scope = (uint64_t)k;
      join(*state, &what, make_float(1), &outcomes[i]);
    }
    EXPECT(&outcomes[0], 2);
    EXPECT(&outcomes[1], 2);
  }
}

static void test_whoever_leaves_ends_it_for_all(void** state) {
  outcome_t a = {0}, b = {0}, c = {0};
  weir_cancel_t* cancel = NULL;
  check_ok(weir_cancel_create(NULL, &cancel));
  weir_collective_t x = sum_of(0, 3), y = sum_of(1, 3);
  join(*state, &x, make_float(1), &a);
  join_with(*state, &y, make_float(1), cancel, &b);
  weir_cancel_start(cancel);
  expect_error(&b, WEIR_CANCELLED, "");
  expect_error(&a, WEIR_UNAVAILABLE, "task:1/device:CPU:0 has left");
  join_with(*state, &y, make_float(1), cancel, &c);  // cancelled before it came
  expect_error(&c, WEIR_CANCELLED, "");
  weir_cancel_destroy(cancel);
}

static void test_timeouts_end_it_for_all(void** state) {
  outcome_t a = {0}, b = {0};
  weir_collective_t x = sum_of(0, 3), y = sum_of(1, 3);
  x.timeout_ns = INT64_MAX / 4;
  y.timeout_ns = 1000000;
  join(*state, &x, make_float(1), &a);
  join(*state, &y, make_float(1), &b);
  while (!atomic_load(&a.calls) || !atomic_load(&b.calls)) sched_yield();
  expect_error(&a, WEIR_DEADLINE_EXCEEDED, "Collective has timed out waiting for other workers.");
  expect_error(&b, WEIR_DEADLINE_EXCEEDED, "Collective has timed out waiting for other workers.");
}

static void test_lost_tasks_are_not_waited_for(void** state) {
  outcome_t a = {0}, b = {0}, other = {0};
  weir_collective_t x = sum_of(0, 2), y = sum_of(1, 2), z = sum_of(0, 2);
  z.group_key = 2;
  join(*state, &x, make_float(1), &a);
  join(*state, &y, make_float(1), &b);
  clear(&a);
  clear(&b);
  join(*state, &x, make_float(1), &a);  // waits for device 1, which the group knows
  join(*state, &z, make_float(1), &other);
  weir_status_t* status = WEIR_STATUS(UNAVAILABLE, "task 1 is gone");
  weir_hub_lose(*state, weir_view_of(TASK "1"), status);
  weir_status_destroy(status);
  expect_error(&a, WEIR_UNAVAILABLE, "task 1 is gone");
  assert_int_equal(other.calls, 0);
  weir_collective_t w = sum_of(3, 2);  // 10 is not 1
  w.group_key = 2;
  join(*state, &w, make_float(1), &b);
  EXPECT(&b, 2);
  EXPECT(&other, 2);
}

typedef struct watcher_t {
  atomic_int devices, ends;
} watcher_t;

static void on_watch(void* self, const char* device, uint64_t incarnation) {
  watcher_t* watcher = self;
  assert_true(!device || incarnation == 9);
  atomic_fetch_add(device ? &watcher->devices : &watcher->ends, 1);
}

// Whoever is waited for is watched, until nobody waits.
static void test_watches_who_is_waited_for(void** state) {
  outcome_t a = {0}, b = {0};
  watcher_t watcher = {0};
  weir_collective_t x = sum_of(0, 2), y = sum_of(1, 2);
  x.incarnation = y.incarnation = 9;
  weir_hub_watch(*state, on_watch, &watcher, 1000000);
  for (int round = 1; round <= 2; ++round) {
    join(*state, &x, make_float(1), &a);
    while (atomic_load(&watcher.devices) < 2 * round - 1) sched_yield();
    join(*state, &y, make_float(1), &b);
    EXPECT(&a, 2);
    EXPECT(&b, 2);
    while (atomic_load(&watcher.ends) < round) sched_yield();
  }
  assert_int_equal(watcher.devices, 3);  // itself, when nobody else was known; then both
}

static void test_rosters(void** state) {
  outcome_t a = {0}, b = {0};
  const int64_t dims[] = {1 << 30};
  weir_collective_t x = sum_of(1, 2), y = sum_of(0, 2);
  x.wants_roster = y.wants_roster = true;
  x.dims = y.dims = dims;
  x.dim_count = y.dim_count = 1;
  join(*state, &x, NULL, &a);
  join(*state, &y, NULL, &b);
  check_ok(a.status);
  check_ok(b.status);
  uint64_t id = 0, other = 0;
  size_t size = 0;
  assert_true(weir_hub_read_roster(a.tensor, 2, &id));
  assert_true(weir_hub_read_roster(b.tensor, 2, &other));
  assert_false(weir_hub_read_roster(a.tensor, 3, &id));
  assert_true(id == other);
  assert_memory_equal(weir_tensor_string(a.tensor, 1, &size), devices[0], strlen(devices[0]));
  a.status = b.status = NULL;
  clear(&a);
  clear(&b);
}

static void test_ranks(void** state) {
  outcome_t a = {0}, b = {0};
  for (int is_twice = 0; is_twice < 2; ++is_twice) {
    weir_collective_t x = sum_of(0, 2), y = sum_of(1, 2);
    x.kind = y.kind = WEIR_COLLECTIVE_GATHER;
    x.rank = 1;
    y.rank = is_twice ? 1 : 0;
    join(*state, &x, FLOATS(1), &a);
    join(*state, &y, FLOATS(2), &b);
    if (is_twice) {
      expect_error(&a, WEIR_INVALID_ARGUMENT, "Duplicate ranks");
      expect_error(&b, WEIR_INVALID_ARGUMENT, "Duplicate ranks");
    } else {
      EXPECT(&a, 2, 1);
      EXPECT(&b, 2, 1);
    }
  }
}

static void test_out_of_memory(void** state) {
  for (int64_t n = 1;; ++n) {
    outcome_t a = {0}, b = {0};
    weir_collective_t x = sum_of(0, 2), y = sum_of(1, 2);
    x.is_mean = y.is_mean = true;
    weir_tensor_t *p = make_float(1), *q = make_float(1);
    weir_cancel_t* cancel = NULL;
    check_ok(weir_cancel_create(NULL, &cancel));
    weir_alloc_fail_at(n, false);
    join_with(*state, &x, p, cancel, &a);
    join_with(*state, &y, q, cancel, &b);
    weir_alloc_fail_at(0, false);
    weir_cancel_start(cancel);
    assert_int_equal(a.calls, 1);
    assert_int_equal(b.calls, 1);
    bool is_through = !a.status && !b.status;
    clear(&a);
    clear(&b);
    weir_cancel_destroy(cancel);
    if (is_through) break;
  }
}

// ---- threads ----

enum { THREADS = 4, ROUNDS = 400 };

typedef struct side_t {
  weir_hub_t* hub;
  int index;
  outcome_t outcomes[ROUNDS];
} side_t;

static void* run_side(void* arg) {
  side_t* side = arg;
  for (int k = 0; k < ROUNDS; ++k) {
    int key = side->index % 2 ? ROUNDS - 1 - k : k;
    weir_collective_t what = sum_of(side->index, THREADS);
    what.instance_key = key;
    what.timeout_ns = (int64_t)100 * 1000000000;
    weir_cancel_t* cancel = NULL;
    check_ok(weir_cancel_create(NULL, &cancel));
    join_with(side->hub, &what, make_float(1), NULL, &side->outcomes[key]);
    if (key % 7 == side->index) {  // someone else's, beside it
      outcome_t dropped = {0};
      what.group_key = 100 + side->index;
      join_with(side->hub, &what, make_float(1), cancel, &dropped);
      weir_cancel_start(cancel);
      while (!atomic_load(&dropped.calls)) sched_yield();
      clear(&dropped);
    }
    weir_cancel_destroy(cancel);
  }
  return NULL;
}

static void test_threads(void** state) {
  side_t* sides = calloc(THREADS, sizeof(*sides));
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; ++i) {
    sides[i].hub = *state;
    sides[i].index = i;
    assert_int_equal(pthread_create(&threads[i], NULL, run_side, &sides[i]), 0);
  }
  for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < THREADS; ++i) {
    for (int k = 0; k < ROUNDS; ++k) EXPECT(&sides[i].outcomes[k], THREADS);
  }
  free(sides);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
int main(void) {
  const struct CMUnitTest tests[] = {TEST(test_sums_in_the_order_of_ranks),
                                     TEST(test_merges_and_means),
                                     TEST(test_gathers_and_exchanges),
                                     TEST(test_broadcasts),
                                     TEST(test_broadcasts_have_one_source),
                                     TEST(test_many_instances_at_once),
                                     TEST(test_a_device_is_in_a_meeting_once),
                                     TEST(test_steps_of_a_session_do_not_mix),
                                     TEST(test_sessions_meet_in_order),
                                     TEST(test_disagreement_is_told_to_all),
                                     TEST(test_disagreement_is_told_to_who_comes_late),
                                     TEST(test_quarrels_stay_within_a_session),
                                     TEST(test_a_full_group_takes_no_other),
                                     TEST(test_places_in_a_group_are_taken_over),
                                     TEST(test_whoever_leaves_ends_it_for_all),
                                     TEST(test_timeouts_end_it_for_all),
                                     TEST(test_lost_tasks_are_not_waited_for),
                                     TEST(test_watches_who_is_waited_for),
                                     TEST(test_rosters),
                                     TEST(test_ranks),
                                     TEST(test_out_of_memory),
                                     TEST(test_threads)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

// device_test.c — Device names, and the conformance test that every device must pass.
// cmocka.h needs the headers before it.

#include "device/device.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/outcome.h"
#include "device/thread_stream.h"
#include "testing/cmocka.h"

// ---- names ----

static void test_names(void** state) {
  (void)state;
  weir_device_name_t full;
  weir_device_name_t n;
  assert_null(weir_device_name_parse(weir_view_of("/job:ps/replica:0/task:1/device:CPU:0"), &full));
  assert_string_equal(full.job, "ps");
  assert_int_equal(full.replica, 0);
  assert_int_equal(full.task, 1);
  assert_string_equal(full.type, "CPU");
  assert_int_equal(full.index, 0);
  const char* matching[] = {"",
                            "/job:ps",
                            "/cpu:0",
                            "/CPU:*",
                            "/device:cpu:0",
                            "/task:1",
                            "/job:*/replica:*/device:*:*",
                            "/device:CPU"};
  for (size_t i = 0; i < WEIR_COUNT_OF(matching); ++i) {
    assert_null(weir_device_name_parse(weir_view_of(matching[i]), &n));
    assert_true(weir_device_name_matches(&n, &full));
  }
  const char* others[] = {"/job:worker", "/gpu:0", "/task:0", "/device:CPU:1", "/replica:3"};
  for (size_t i = 0; i < WEIR_COUNT_OF(others); ++i) {
    assert_null(weir_device_name_parse(weir_view_of(others[i]), &n));
    assert_false(weir_device_name_matches(&n, &full));
  }
}

static void test_bad_names(void** state) {
  (void)state;
  const char* bad[] = {"job:ps",   "/job:",    "/task:x", "/task:-1", "/device:CPU:x",
                       "/nope:1",  "/job:a/b", "CPU:0",   "/job:1x",  "/task:99999999999",
                       "/job:a b", "//"};
  for (size_t i = 0; i < WEIR_COUNT_OF(bad); ++i) {
    weir_device_name_t n;
    weir_status_t* status = weir_device_name_parse(weir_view_of(bad[i]), &n);
    if (weir_status_code(status) != WEIR_INVALID_ARGUMENT) fail_msg("%s was accepted", bad[i]);
    assert_non_null(strstr(weir_status_message(status), bad[i]));
    weir_status_destroy(status);
  }
}

// ---- conformance: the same for every device ----

typedef weir_status_t* (*create_fn_t)(weir_device_t** out_device);

static weir_status_t* create_cpu(weir_device_t** out_device) {
  return weir_cpu_device_create("/job:w/replica:0/task:2", 1, NULL, out_device);
}

static weir_status_t* create_guard(weir_device_t** out_device) {
  weir_device_params_t params = {.task = "/job:w/replica:0/task:2", .index = 1, .bandwidth = 1e9};
  return weir_guard_kind.create(&params, out_device);
}

static weir_status_t* create_tight(weir_device_t** out_device) {
  weir_device_params_t params = {.task = "/job:w/replica:0/task:2", .index = 1, .memory = 1e6};
  return weir_tight_kind.create(&params, out_device);
}

static weir_status_t* create_staged(weir_device_t** out_device) {
  weir_device_params_t params = {.task = "/job:w/replica:0/task:2", .index = 1, .is_staged = true};
  return weir_guard_kind.create(&params, out_device);
}

static weir_tensor_t* fetch(weir_device_t* device, weir_memory_t memory, const weir_tensor_t* src) {
  weir_tensor_t* copy = NULL;
  assert_null(weir_device_fetch(device, memory, src, &copy));
  return copy;
}

static void check_round_trip(weir_device_t* device, int64_t count) {
  weir_tensor_t* src = NULL;
  assert_null(weir_tensor_create(WEIR_DTYPE_INT32, 1, &count, &src));
  for (int64_t i = 0; i < count; ++i) WEIR_TENSOR_DATA(src, int32_t)[i] = (int32_t)(i * 7 - 3);
  weir_tensor_t* there = fetch(device, WEIR_MEMORY_DEVICE, src);
  weir_tensor_t* back = fetch(device, WEIR_MEMORY_HOST, there);
  assert_int_equal(weir_tensor_is_host(there), weir_device_is_host(device));
  assert_true(weir_tensor_is_host(back));
  if (count) assert_memory_equal(src->data, back->data, (size_t)count * sizeof(int32_t));
  if (count) assert_int_equal((uintptr_t)there->data % WEIR_TENSOR_ALIGNMENT, 0);
  weir_tensor_release(src);
  weir_tensor_release(there);
  weir_tensor_release(back);
}

static void expect_refused(void* arg, weir_status_t* take_status) {
  ++*(int*)arg;
  assert_int_equal(weir_status_code(take_status), WEIR_INVALID_ARGUMENT);
  weir_status_destroy(take_status);
}

static void check_mismatch(weir_device_t* device) {
  weir_tensor_t* a = NULL;
  weir_tensor_t* b = NULL;
  const int64_t three = 3;
  const int64_t four = 4;
  int calls = 0;
  assert_null(weir_tensor_create(WEIR_DTYPE_FLOAT, 1, &three, &a));
  assert_null(weir_tensor_create(WEIR_DTYPE_FLOAT, 1, &four, &b));
  weir_device_copy(device, a, b, expect_refused, &calls);
  assert_int_equal(calls, 1);
  weir_tensor_release(a);
  weir_tensor_release(b);
}

static void conformance(create_fn_t create) {
  weir_device_t* device = NULL;
  weir_device_t* other = NULL;
  assert_null(create(&device));
  assert_null(create(&other));
  weir_device_name_t name;
  assert_null(weir_device_name_parse(weir_view_of(device->name), &name));
  assert_string_equal(name.type, device->type);
  const weir_device_kind_t* kind =
      weir_device_kind_find(weir_view_of(name.type));  // says the same of it
  assert_non_null(kind);
  assert_string_equal(kind->kernel_type, device->kernel_type);
  assert_int_equal(kind->has_queue, device->vtable->submit != NULL);
  assert_string_equal(name.job, "w");
  assert_int_equal(name.index, 1);
  assert_true(device->incarnation != other->incarnation);
  weir_device_release(other);
  assert_true(weir_allocator_is_host(weir_device_allocator(device, WEIR_MEMORY_HOST)));
  assert_true(weir_allocator_is_host(weir_device_allocator(device, WEIR_MEMORY_PINNED)));
  check_round_trip(device, 0);
  check_round_trip(device, 1);
  check_round_trip(device, 100000);
  check_mismatch(device);
  // Memory outlives the last reference on the device, and so does what says whose it is.
  weir_tensor_t* t = NULL;
  const int64_t count = 10;
  assert_null(weir_tensor_create_in(weir_device_allocator(device, WEIR_MEMORY_DEVICE),
                                    WEIR_DTYPE_FLOAT, 1, &count, &t));
  assert_ptr_equal(weir_device_retain(device), device);
  const weir_space_t* space = weir_tensor_space(t);
  bool is_host = weir_device_is_host(device);
  assert_ptr_equal(space->device, is_host ? NULL : device);
  weir_device_release(device);
  weir_device_release(device);
  assert_ptr_equal(weir_tensor_space(t), space);
  assert_null(space->device);
  weir_device_t* next = NULL;  // maybe where the other was
  assert_null(create(&next));
  assert_int_equal(weir_tensor_space(t) == weir_device_allocator(next, WEIR_MEMORY_DEVICE)->space,
                   is_host);
  weir_device_release(next);
  weir_tensor_release(t);
}

static void test_cpu(void** state) {
  (void)state;
  conformance(create_cpu);
}

// ---- streams: of every device that has them ----

typedef struct step_t {
  weir_work_t work;  // first
  int* order;
  int number;
  weir_tensor_t* memory;
} step_t;

static void step_run(weir_work_t* work) {
  step_t* step = (step_t*)work;
  step->number = (*step->order)++;
  WEIR_TENSOR_DATA(step->memory, int32_t)[0] += 1;  // in reach now
}

static void step_done(weir_work_t* work) { (void)work; }

static void check_order(create_fn_t create) {
  enum { STEPS = 20 };
  weir_device_t* device = NULL;
  assert_null(create(&device));
  assert_false(weir_device_is_host(device));
  int32_t zero = 0;
  int order = 0;
  step_t steps[STEPS];
  weir_tensor_t* src = NULL;
  assert_null(weir_tensor_create_from(WEIR_DTYPE_INT32, 0, NULL, &zero, &src));
  weir_tensor_t* there = fetch(device, WEIR_MEMORY_DEVICE, src);
  for (int i = 0; i < STEPS; ++i) {
    steps[i] =
        (step_t){.work = {.run = step_run, .done = step_done}, .order = &order, .memory = there};
    device->vtable->submit(device, WEIR_STREAM_COMPUTE, &steps[i].work);
  }
  weir_tensor_t* back = fetch(device, WEIR_MEMORY_HOST, there);  // after all of them
  for (int i = 0; i < STEPS; ++i) assert_int_equal(steps[i].number, i);
  assert_int_equal(WEIR_TENSOR_DATA(back, int32_t)[0], STEPS);
  weir_tensor_release(src);
  weir_tensor_release(there);
  weir_tensor_release(back);
  weir_device_release(device);
}

// ---- events ----

typedef struct held_t {
  weir_work_t work;  // first
  weir_mutex_t mu;
  weir_cond_t cond;
  bool may_go, is_gone;
} held_t;

static void held_run(weir_work_t* work) {
  held_t* held = (held_t*)work;
  weir_mutex_lock(&held->mu);
  while (!held->may_go) weir_cond_wait(&held->cond, &held->mu);
  held->is_gone = true;
  weir_cond_broadcast(&held->cond);
  weir_mutex_unlock(&held->mu);
}

static void let_go(held_t* held) {
  weir_mutex_lock(&held->mu);
  held->may_go = true;
  weir_cond_broadcast(&held->cond);
  weir_mutex_unlock(&held->mu);
}

static void await_gone(held_t* held) {
  weir_mutex_lock(&held->mu);
  while (!held->is_gone) weir_cond_wait(&held->cond, &held->mu);
  weir_mutex_unlock(&held->mu);
}

static void held_init(held_t* held, void (*run)(weir_work_t* self)) {
  *held = (held_t){.work = {.run = run, .done = step_done}};
  weir_mutex_init(&held->mu);
  weir_cond_init(&held->cond);
}

static void held_submit(weir_device_t* device, weir_stream_t stream, held_t* held) {
  held_init(held, held_run);
  device->vtable->submit(device, stream, &held->work);
}

// A stream waits for another's event, of another device too, and for nothing else.
static void check_events(create_fn_t create, create_fn_t create_other) {
  weir_device_t* devices[2];
  held_t first, second, third, free_one;
  weir_event_t* event = NULL;
  assert_null(create(&devices[0]));
  assert_null(create_other(&devices[1]));
  held_submit(devices[0], WEIR_STREAM_COMPUTE, &first);
  assert_null(devices[0]->vtable->record(devices[0], WEIR_STREAM_COMPUTE, &event));
  held_submit(devices[0], WEIR_STREAM_COMPUTE, &third);
  assert_null(devices[1]->vtable->wait(devices[1], WEIR_STREAM_DOWNLOAD, event));
  weir_event_release(event);
  held_submit(devices[1], WEIR_STREAM_DOWNLOAD, &second);
  let_go(&second);
  held_submit(devices[0], WEIR_STREAM_DOWNLOAD, &free_one);
  let_go(&free_one);
  await_gone(&free_one);
  assert_false(first.is_gone || second.is_gone);
  let_go(&first);
  await_gone(&second);
  assert_true(first.is_gone);
  assert_false(third.is_gone);
  let_go(&third);
  weir_device_release(devices[0]);
  weir_device_release(devices[1]);
  assert_true(third.is_gone);
}

// An event of a kind that no stream knows: it is reached when the test says so.
typedef struct strange_event_t {
  weir_event_t base;  // first
  weir_mutex_t mu;
  weir_notice_t* notice;  // guarded by mu
  bool* is_destroyed;
} strange_event_t;

static void strange_destroy(weir_event_t* base) {
  strange_event_t* event = (strange_event_t*)base;
  weir_mutex_destroy(&event->mu);
  *event->is_destroyed = true;
  weir_free(event);
}

static void strange_notify(weir_event_t* base, weir_notice_t* notice) {
  strange_event_t* event = (strange_event_t*)base;
  weir_mutex_lock(&event->mu);
  event->notice = notice;
  weir_mutex_unlock(&event->mu);
}

static const weir_event_vtable_t strange_vtable = {.destroy = strange_destroy,
                                                   .notify = strange_notify};

static void strange_reach(strange_event_t* event) {
  weir_notice_t* notice = NULL;
  while (!notice) {  // the stream gets there
    weir_mutex_lock(&event->mu);
    notice = event->notice;
    weir_mutex_unlock(&event->mu);
  }
  notice->call(notice);
}

// A stream waits for events of other kinds than its own, and holds them as long as it needs them.
static void check_strange_events(create_fn_t create) {
  weir_device_t* device = NULL;
  held_t after, beside;
  bool is_destroyed = false;
  strange_event_t* event = weir_calloc(1, sizeof(*event));
  event->base.vtable = &strange_vtable;
  event->is_destroyed = &is_destroyed;
  weir_ref_init(&event->base.ref);
  weir_mutex_init(&event->mu);
  assert_null(create(&device));
  assert_null(device->vtable->wait(device, WEIR_STREAM_UPLOAD, &event->base));
  held_submit(device, WEIR_STREAM_UPLOAD, &after);
  held_submit(device, WEIR_STREAM_COMPUTE, &beside);
  let_go(&after);
  let_go(&beside);
  await_gone(&beside);
  weir_mutex_lock(&after.mu);
  assert_false(after.is_gone);
  weir_mutex_unlock(&after.mu);
  weir_event_release(weir_event_retain(&event->base));
  strange_reach(event);
  await_gone(&after);
  assert_false(is_destroyed);
  weir_event_release(&event->base);
  weir_device_release(device);
  assert_true(is_destroyed);
}

typedef struct told_t {
  weir_notice_t notice;  // first
  atomic_int count;
} told_t;

static void tell(weir_notice_t* notice) { atomic_fetch_add(&((told_t*)notice)->count, 1); }

// The host hears of an event, once, when it is reached and ever after, without the device too.
static void check_notices(create_fn_t create) {
  weir_device_t* device = NULL;
  held_t first, last;
  weir_event_t *early = NULL, *late = NULL;
  told_t told[4];
  for (int i = 0; i < 4; ++i) told[i] = (told_t){.notice = {.call = tell}};
  assert_null(create(&device));
  held_submit(device, WEIR_STREAM_COMPUTE, &first);
  assert_null(device->vtable->record(device, WEIR_STREAM_COMPUTE, &early));
  held_submit(device, WEIR_STREAM_COMPUTE, &last);
  assert_null(device->vtable->record(device, WEIR_STREAM_COMPUTE, &late));
  early->vtable->notify(early, &told[0].notice);
  early->vtable->notify(early, &told[1].notice);
  late->vtable->notify(late, &told[2].notice);
  assert_int_equal(atomic_load(&told[0].count) + atomic_load(&told[1].count), 0);
  let_go(&first);
  weir_event_await(early);
  assert_int_equal(atomic_load(&told[2].count), 0);
  let_go(&last);
  weir_device_release(device);
  weir_event_await(late);
  late->vtable->notify(late, &told[3].notice);
  for (int i = 0; i < 4; ++i) assert_int_equal(atomic_load(&told[i].count), 1);
  weir_event_release(early);
  weir_event_release(late);
}

static void test_guard(void** state) {
  (void)state;
  conformance(create_guard);
  check_order(create_guard);
  check_events(create_guard, create_guard);
  check_strange_events(create_guard);
  check_notices(create_guard);
}

static void test_staged(void** state) {
  (void)state;
  weir_device_t* device = NULL;
  conformance(create_staged);
  assert_null(create_staged(&device));
  check_round_trip(device, 1000003);  // in pieces
  weir_device_release(device);
  check_order(create_staged);
  check_events(create_staged, create_tight);
}

static void test_tight(void** state) {
  (void)state;
  conformance(create_tight);
  check_order(create_tight);
  check_events(create_tight, create_tight);
  check_strange_events(create_tight);
  check_notices(create_tight);
  check_events(create_guard, create_tight);
  check_events(create_tight, create_guard);
}

// ---- peers ----

typedef struct writing_t {
  held_t held;  // first
  weir_tensor_t* memory;
} writing_t;

static void writing_run(weir_work_t* work) {
  held_run(work);
  WEIR_TENSOR_DATA(((writing_t*)work)->memory, int32_t)[0] = 17;
}

// What a kernel of |source| makes before the copy begins arrives at its peer, though the kernel is
// not through yet.
static void check_peers(create_fn_t create, create_fn_t create_source) {
  weir_device_t *device = NULL, *source = NULL;
  const int32_t zero = 0;
  weir_tensor_t* src = NULL;
  writing_t writing;
  weir_outcome_t outcome;
  assert_null(create(&device));
  assert_null(create_source(&source));
  assert_true(weir_device_is_peer(device, source));
  assert_false(weir_device_is_peer(device, device));
  assert_null(weir_tensor_create_from(WEIR_DTYPE_INT32, 0, NULL, &zero, &src));
  weir_tensor_t* first = fetch(source, WEIR_MEMORY_DEVICE, src);
  weir_tensor_t* second = fetch(device, WEIR_MEMORY_DEVICE, src);
  held_init(&writing.held, writing_run);
  writing.memory = first;
  source->vtable->submit(source, WEIR_STREAM_COMPUTE, &writing.held.work);
  weir_outcome_init(&outcome);
  weir_device_copy(device, first, second, weir_outcome_set, &outcome);
  let_go(&writing.held);
  assert_null(weir_outcome_wait(&outcome));
  weir_tensor_t* back = fetch(device, WEIR_MEMORY_HOST, second);
  assert_int_equal(WEIR_TENSOR_DATA(back, int32_t)[0], 17);
  weir_device_release(source);
  weir_device_release(device);
  weir_tensor_release(src);
  weir_tensor_release(first);
  weir_tensor_release(second);
  weir_tensor_release(back);
}

static void test_peers(void** state) {
  (void)state;
  check_peers(create_guard, create_guard);
  check_peers(create_guard, create_staged);
  check_peers(create_staged, create_guard);
}

// Devices that are none say so.
static void test_strangers(void** state) {
  (void)state;
  weir_device_t *guard = NULL, *tight = NULL;
  const int32_t zero = 0;
  weir_tensor_t* src = NULL;
  int calls = 0;
  assert_null(create_guard(&guard));
  assert_null(create_tight(&tight));
  assert_null(weir_tensor_create_from(WEIR_DTYPE_INT32, 0, NULL, &zero, &src));
  weir_tensor_t* there = fetch(guard, WEIR_MEMORY_DEVICE, src);
  weir_tensor_t* here = fetch(tight, WEIR_MEMORY_DEVICE, src);
  weir_device_copy(tight, there, here, expect_refused, &calls);
  weir_device_copy(tight, here, here, expect_refused, &calls);
  assert_int_equal(calls, 2);
  weir_tensor_release(src);
  weir_tensor_release(there);
  weir_tensor_release(here);
  weir_device_release(guard);
  weir_device_release(tight);
}

// ---- what is theirs alone ----

// Whoever looks at its memory from the host dies.
static void test_guard_bites(void** state) {
  (void)state;
  weir_device_t* device = NULL;
  weir_tensor_t* there = NULL;
  const int64_t count = 10;
  assert_null(create_guard(&device));
  assert_null(weir_tensor_create_in(weir_device_allocator(device, WEIR_MEMORY_DEVICE),
                                    WEIR_DTYPE_FLOAT, 1, &count, &there));
  pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
    signal(SIGBUS, SIG_DFL);
    volatile float seen = WEIR_TENSOR_DATA(there, float)[3];
    (void)seen;
    _exit(0);
  }
  int how = 0;
  assert_int_equal(waitpid(child, &how, 0), child);
  assert_true(WIFSIGNALED(how));
  weir_tensor_release(there);
  weir_device_release(device);
}

// ---- staging ----

enum { TRANSFERS = 6, TRANSFER_COUNT = 700001 };  // elements: three pieces each, more than buffers

typedef struct transfers_t {
  weir_mutex_t mu;
  weir_cond_t cond;
  int left;  // guarded by mu
} transfers_t;

static void on_transferred(void* arg, weir_status_t* take_status) {
  transfers_t* transfers = arg;
  assert_null(take_status);
  weir_mutex_lock(&transfers->mu);
  --transfers->left;
  weir_cond_broadcast(&transfers->cond);
  weir_mutex_unlock(&transfers->mu);
}

static void transfer_all(weir_device_t* device, weir_tensor_t* const* from,
                         weir_tensor_t* const* to) {
  transfers_t transfers = {.left = TRANSFERS};
  weir_mutex_init(&transfers.mu);
  weir_cond_init(&transfers.cond);
  for (int i = 0; i < TRANSFERS; ++i)
    weir_device_copy(device, from[i], to[i], on_transferred, &transfers);
  weir_mutex_lock(&transfers.mu);
  while (transfers.left > 0) weir_cond_wait(&transfers.cond, &transfers.mu);
  weir_mutex_unlock(&transfers.mu);
  weir_cond_destroy(&transfers.cond);
  weir_mutex_destroy(&transfers.mu);
}

// Many copies at once share a few buffers, and none gets another's bytes.
static void test_transfers_take_turns(void** state) {
  (void)state;
  weir_device_t* device = NULL;
  weir_tensor_t *from[TRANSFERS], *there[TRANSFERS], *back[TRANSFERS];
  const int64_t count = TRANSFER_COUNT;
  assert_null(create_staged(&device));
  for (int i = 0; i < TRANSFERS; ++i) {
    assert_null(weir_tensor_create(WEIR_DTYPE_INT32, 1, &count, &from[i]));
    assert_null(weir_tensor_create(WEIR_DTYPE_INT32, 1, &count, &back[i]));
    assert_null(weir_tensor_create_in(weir_device_allocator(device, WEIR_MEMORY_DEVICE),
                                      WEIR_DTYPE_INT32, 1, &count, &there[i]));
    for (int32_t k = 0; k < TRANSFER_COUNT; ++k) WEIR_TENSOR_DATA(from[i], int32_t)[k] = k * 8 + i;
  }
  transfer_all(device, from, there);
  transfer_all(device, there, back);
  for (int i = 0; i < TRANSFERS; ++i) {
    assert_memory_equal(from[i]->data, back[i]->data, TRANSFER_COUNT * sizeof(int32_t));
    weir_tensor_release(from[i]);
    weir_tensor_release(there[i]);
    weir_tensor_release(back[i]);
  }
  weir_device_release(device);
}

// What was fetched is in pinned memory while there is some, elsewhere when there is none.
static void test_fetched_is_pinned(void** state) {
  (void)state;
  enum { MOST = 16 };
  weir_device_t* device = NULL;
  weir_tensor_t *src = NULL, *full[MOST];
  const int64_t count = 1 << 22;
  assert_null(create_staged(&device));
  weir_allocator_t* pinned = weir_device_allocator(device, WEIR_MEMORY_PINNED);
  assert_true(weir_allocator_is_host(pinned));
  assert_null(weir_tensor_create(WEIR_DTYPE_INT32, 1, &count, &src));
  for (int64_t i = 0; i < count; ++i) WEIR_TENSOR_DATA(src, int32_t)[i] = (int32_t)(i * 7);
  weir_tensor_t* there = fetch(device, WEIR_MEMORY_DEVICE, src);
  int taken = 0;
  while (taken < MOST &&
         (full[taken] = fetch(device, WEIR_MEMORY_HOST, there), full[taken++]->allocator == pinned))
    continue;
  assert_in_range(taken, 2, MOST - 1);
  for (int i = 0; i < taken; ++i) {
    assert_memory_equal(full[i]->data, src->data, (size_t)count * sizeof(int32_t));
    weir_tensor_release(full[i]);
  }
  weir_tensor_t* again = fetch(device, WEIR_MEMORY_HOST, there);
  assert_ptr_equal(again->allocator, pinned);
  weir_device_release(device);
  assert_int_equal(WEIR_TENSOR_DATA(again, int32_t)[1], 7);  // it outlives the device
  weir_tensor_release(again);
  weir_tensor_release(there);
  weir_tensor_release(src);
}

static void never_called(void* arg, weir_status_t* take_status) {
  (void)arg;
  weir_status_destroy(take_status);
}

// Whoever gives it ordinary memory dies.
static void test_staged_bites(void** state) {
  (void)state;
  pid_t child = fork();
  if (child == 0) {
    signal(SIGABRT, SIG_DFL);
    weir_device_t* device = NULL;
    if (create_staged(&device)) _exit(1);
    char here[8];
    device->vtable->copy(device, WEIR_STREAM_DOWNLOAD, here, here, sizeof(here), never_called,
                         NULL);
    _exit(0);
  }
  int how = 0;
  assert_int_equal(waitpid(child, &how, 0), child);
  assert_true(WIFSIGNALED(how));
}

static weir_status_t* take_bytes(weir_device_t* device, int64_t size, weir_tensor_t** out_tensor) {
  return weir_tensor_create_in(weir_device_allocator(device, WEIR_MEMORY_DEVICE), WEIR_DTYPE_INT8,
                               1, &size, out_tensor);
}

// Its memory is given out to the last byte and no further, and again when it comes back.
static void test_tight_runs_out(void** state) {
  (void)state;
  weir_device_t* device = NULL;
  weir_tensor_t *most = NULL, *rest = NULL, *more = NULL;
  assert_null(create_tight(&device));
  assert_int_equal(device->memory_limit, 1000000);
  assert_null(take_bytes(device, 999900, &most));
  weir_status_t* status = take_bytes(device, 101, &more);
  assert_int_equal(weir_status_code(status), WEIR_RESOURCE_EXHAUSTED);
  assert_non_null(strstr(weir_status_message(status),
                         "shape[101] and type int8 on /job:w/replica:0/task:2/device:TIGHT:1: 101 "
                         "bytes asked, 999900 of 1000000 in use"));
  weir_status_destroy(status);
  assert_null(take_bytes(device, 100, &rest));
  weir_tensor_release(most);
  assert_null(take_bytes(device, 999900, &more));
  weir_tensor_release(rest);
  weir_device_release(device);
  weir_tensor_release(more);  // the memory outlives the device
}

// ---- lists ----

static void test_lists(void** state) {
  (void)state;
  weir_device_t** devices = NULL;
  int count = 0;
  assert_null(weir_devices_create("guard:2@speed=0.5,CPU:2", NULL, NULL, &devices, &count));
  const char* names[] = {"CPU:0", "CPU:1", "GUARD:0", "GUARD:1"};
  assert_int_equal(count, 4);
  for (int i = 0; i < count; ++i) {
    assert_non_null(strstr(devices[i]->name, names[i]));
    assert_int_equal(devices[i]->ordinal, i);
  }
  weir_devices_release(devices, count);
  assert_null(weir_devices_create("guard", NULL, NULL, &devices, &count));
  assert_int_equal(count, 2);  // there is always a CPU
  weir_devices_release(devices, count);
  assert_null(weir_devices_create("tight,tight@memory=1e6", NULL, NULL, &devices, &count));
  assert_int_equal(count, 3);
  assert_int_equal(devices[1]->memory_limit, 64 << 20);
  assert_int_equal(devices[2]->memory_limit, 1000000);
  weir_devices_release(devices, count);
  assert_null(weir_devices_create("guard@speed=2@staged,guard", NULL, NULL, &devices, &count));
  assert_non_null(devices[1]->staging);
  assert_null(devices[2]->staging);
  weir_devices_release(devices, count);
  const char* bad[] = {"guard@staged=1",
                       "tight@memory=0.5",
                       "tight@memory=",
                       "gpu:1",
                       "cpu:0",
                       "cpu:x",
                       "cpu:-1",
                       "guard@speed=0",
                       "guard@size=3",
                       "cpu:100",
                       ":2",
                       "cpu:60,guard:60",
                       "cuda@deterministic=2"};
  for (size_t i = 0; i < WEIR_COUNT_OF(bad); ++i) {
    weir_status_t* status = weir_devices_create(bad[i], NULL, NULL, &devices, &count);
    if (weir_status_code(status) != WEIR_INVALID_ARGUMENT) fail_msg("%s was accepted", bad[i]);
    weir_status_destroy(status);
  }
}

// However the machine is loaded, nothing sleeps for less: a second and a bit, and a bit.
static void test_sleep(void** state) {
  (void)state;
  const double times[] = {1.01e9, 1.5e7, 0.5, 0};
  for (size_t i = 0; i < WEIR_COUNT_OF(times); ++i) {
    int64_t start = weir_clock_ns();
    weir_thread_sleep(times[i]);
    assert_true((double)(weir_clock_ns() - start) >= times[i] - 1);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sleep),
      cmocka_unit_test(test_names),
      cmocka_unit_test(test_bad_names),
      cmocka_unit_test(test_cpu),
      cmocka_unit_test(test_guard),
      cmocka_unit_test(test_guard_bites),
      cmocka_unit_test(test_lists),
      cmocka_unit_test(test_tight),
      cmocka_unit_test(test_tight_runs_out),
      cmocka_unit_test(test_staged),
      cmocka_unit_test(test_staged_bites),
      cmocka_unit_test(test_transfers_take_turns),
      cmocka_unit_test(test_fetched_is_pinned),
      cmocka_unit_test(test_peers),
      cmocka_unit_test(test_strangers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

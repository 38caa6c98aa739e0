// cuda_test.c — A GPU's memory, copies and events, on a driver that is a fake.
#include "device/cuda/cuda.h"

#include <stdlib.h>

#include "base/outcome.h"
#include "device/cuda/cuda_memory.h"
#include "device/span.h"
#include "testing/cmocka.h"
#include "testing/cuda_fake.h"

static weir_device_t* make_nth(int index, double memory) {
  weir_device_t* device = NULL;
  weir_device_params_t params = {.index = index, .memory = memory};
  weir_cuda_driver_replace(&cuda_fake_driver);
  assert_null(weir_cuda_kind.create(&params, &device));
  return device;
}

static weir_device_t* make_device(double memory) { return make_nth(0, memory); }

static void release(weir_device_t* device) {
  weir_device_release(device);
  weir_cuda_driver_replace(NULL);
}

// ---- memory ----

static void* take(weir_allocator_t* allocator, size_t size) {
  return allocator->vtable->alloc(allocator, size, 64);
}

static void give(weir_allocator_t* allocator, void* block, size_t size) {
  allocator->vtable->free(allocator, block, size);
}

static void test_freed_memory_is_used_again(void** state) {
  (void)state;
  weir_device_t* device = make_device(0);
  weir_allocator_t* memory = weir_device_allocator(device, WEIR_MEMORY_DEVICE);
  const size_t sizes[] = {1, 600, (size_t)1 << 20, (size_t)40 << 20};
  for (size_t i = 0; i < WEIR_COUNT_OF(sizes); ++i) {
    void* first = take(memory, sizes[i]);
    assert_non_null(first);
    assert_int_equal((uintptr_t)first % 512, 0);
    give(memory, first, sizes[i]);
    void* second = take(memory, sizes[i]);
    assert_ptr_equal(first, second);
    give(memory, second, sizes[i]);
  }
  release(device);
}

// What a kernel takes is counted for traces, in whole blocks, and all of it comes back.
static void test_memory_is_metered(void** state) {
  (void)state;
  weir_device_t* device = make_device(0);
  weir_allocator_t* memory = weir_device_allocator(device, WEIR_MEMORY_DEVICE);
  weir_alloc_meter_t meter;
  weir_alloc_meter_begin(&meter);
  void* scratch = take(memory, 600);
  void* output = take(memory, 512);
  give(memory, scratch, 600);
  weir_alloc_meter_end(&meter);
  assert_int_equal(meter.device.total, 1024 + 512);
  assert_int_equal(meter.device.peak, 1024 + 512);
  assert_int_equal(meter.device.live, 512);
  assert_int_equal(meter.host.total, 0);
  give(memory, output, 512);
  release(device);
}

// Neighbours that are freed become one block, in whatever order.
static void test_neighbours_are_joined(void** state) {
  (void)state;
  enum { COUNT = 4 };
  const size_t size = (size_t)8 << 20;
  static const int orders[][COUNT] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 3, 0, 2}, {0, 2, 1, 3}};
  for (size_t k = 0; k < WEIR_COUNT_OF(orders); ++k) {
    weir_device_t* device = make_device(33 << 20);
    weir_allocator_t* memory = weir_device_allocator(device, WEIR_MEMORY_DEVICE);
    void* blocks[COUNT];
    for (int i = 0; i < COUNT; ++i) assert_non_null(blocks[i] = take(memory, size));
    assert_null(take(memory, size));  // all is in use
    for (int i = 0; i < COUNT; ++i) give(memory, blocks[orders[k][i]], size);
    void* whole = take(memory, COUNT * size);
    assert_non_null(whole);
    give(memory, whole, COUNT * size);
    release(device);
  }
}

// What small requests took goes back to the driver when a large one needs it.
static void test_idle_segments_go_back(void** state) {
  (void)state;
  weir_device_t* device = make_device(64 << 20);
  weir_allocator_t* memory = weir_device_allocator(device, WEIR_MEMORY_DEVICE);
  void* small[64];
  for (int i = 0; i < 64; ++i) assert_non_null(small[i] = take(memory, 900 << 10));
  for (int i = 0; i < 64; ++i) give(memory, small[i], 900 << 10);
  void* large = take(memory, (size_t)60 << 20);
  assert_non_null(large);
  give(memory, large, (size_t)60 << 20);
  release(device);
}

// Blocks given out never overlap, and the counts are right, whatever comes and goes.
static void test_blocks_are_apart(void** state) {
  (void)state;
  enum { COUNT = 200, ROUNDS = 20000 };
  weir_device_t* device = make_device(256 << 20);
  weir_allocator_t* memory = weir_device_allocator(device, WEIR_MEMORY_DEVICE);
  static struct {
    char* block;
    size_t size;
  } held[COUNT];
  unsigned seed = 7;
  for (int round = 0; round < ROUNDS; ++round) {
    int i = rand_r(&seed) % COUNT;
    if (held[i].block) {
      assert_int_equal(*cuda_fake_at(held[i].block), (char)i);
      assert_int_equal(*cuda_fake_at(held[i].block + held[i].size - 1), (char)i);
      give(memory, held[i].block, held[i].size);
      held[i].block = NULL;
      continue;
    }
    held[i].size = (size_t)(rand_r(&seed) % (rand_r(&seed) % 8 ? 20000 : 3000000)) + 1;
    held[i].block = take(memory, held[i].size);
    if (!held[i].block) continue;
    *cuda_fake_at(held[i].block) = (char)i;
    *cuda_fake_at(held[i].block + held[i].size - 1) = (char)i;
  }
  weir_allocator_use_t use;
  for (int i = 0; i < COUNT; ++i) {
    if (held[i].block) give(memory, held[i].block, held[i].size);
    held[i].block = NULL;
  }
  memory->vtable->get_use(memory, &use);
  assert_int_equal(use.in_use, 0);
  assert_true(use.peak > 0 && use.peak <= use.limit);
  release(device);
}

static void test_exhausted_memory_has_a_message(void** state) {
  (void)state;
  weir_device_t* device = make_device(8 << 20);
  weir_tensor_t* tensor = NULL;
  const int64_t dims[] = {100 << 20};
  weir_status_t* status = weir_tensor_create_in(weir_device_allocator(device, WEIR_MEMORY_DEVICE),
                                                WEIR_DTYPE_FLOAT, 1, dims, &tensor);
  assert_int_equal(weir_status_code(status), WEIR_RESOURCE_EXHAUSTED);
  assert_non_null(strstr(weir_status_message(status), "GPU:0"));
  weir_status_destroy(status);
  release(device);
}

// ---- copies and events ----

static void test_copies(void** state) {
  (void)state;
  weir_device_t* device = make_device(0);
  weir_tensor_t *there = NULL, *back = NULL, *host = NULL;
  const int64_t dims[] = {3, 1000003};  // more than one buffer of the staging
  assert_null(weir_tensor_create(WEIR_DTYPE_INT32, 2, dims, &host));
  for (int64_t i = 0; i < host->count; ++i) WEIR_TENSOR_DATA(host, int32_t)[i] = (int32_t)(7 * i);
  assert_null(weir_device_fetch(device, WEIR_MEMORY_DEVICE, host, &there));
  assert_false(weir_tensor_is_host(there));
  assert_null(weir_device_fetch(device, WEIR_MEMORY_HOST, there, &back));
  assert_memory_equal(back->data, host->data, weir_tensor_byte_size(host));
  weir_tensor_t* copy = NULL;
  assert_null(weir_tensor_copy(there, &copy));  // within the device's memory
  assert_ptr_not_equal(copy->data, there->data);
  assert_memory_equal(cuda_fake_at(copy->data), host->data, weir_tensor_byte_size(host));
  weir_tensor_release(copy);
  weir_tensor_release(back);
  weir_tensor_release(host);
  release(device);
  weir_tensor_release(there);  // memory outlives its device
}

// What is in the device's memory comes to the host; all else stays as it is.
static void test_results_are_collected(void** state) {
  (void)state;
  weir_device_t* device = make_device(0);
  const int64_t dims[] = {2, 3}, none[] = {0};
  weir_tensor_t *host = NULL, *empty = NULL;
  assert_null(weir_tensor_create(WEIR_DTYPE_FLOAT, 2, dims, &host));
  for (int i = 0; i < 6; ++i) WEIR_TENSOR_DATA(host, float)[i] = (float)i;
  assert_null(weir_tensor_create_in(weir_device_allocator(device, WEIR_MEMORY_DEVICE),
                                    WEIR_DTYPE_FLOAT, 1, none, &empty));
  weir_tensor_t* results[] = {NULL, host, NULL, empty};
  assert_null(weir_device_fetch(device, WEIR_MEMORY_DEVICE, host, &results[0]));
  assert_null(device->vtable->collect(device, results, WEIR_COUNT_OF(results)));
  assert_true(weir_tensor_is_host(results[0]) && weir_tensor_is_host(results[3]));
  assert_memory_equal(results[0]->data, host->data, weir_tensor_byte_size(host));
  assert_ptr_equal(results[1], host);
  assert_null(results[2]);
  for (size_t i = 0; i < WEIR_COUNT_OF(results); ++i) weir_tensor_release(results[i]);
  release(device);
}

static void test_events(void** state) {
  (void)state;
  weir_device_t* device = make_device(0);
  weir_device_t* other = NULL;
  weir_device_params_t params = {.index = 0};
  weir_event_t *own = NULL, *foreign = NULL;
  assert_null(weir_guard_kind.create(&params, &other));
  assert_null(device->vtable->record(device, WEIR_STREAM_COMPUTE, &own));
  assert_null(other->vtable->record(other, WEIR_STREAM_COMPUTE, &foreign));
  assert_null(device->vtable->wait(device, WEIR_STREAM_UPLOAD, own));
  assert_null(device->vtable->wait(device, WEIR_STREAM_UPLOAD, foreign));
  assert_null(other->vtable->wait(other, WEIR_STREAM_COMPUTE, own));
  weir_event_await(own);
  weir_outcome_t outcome;
  weir_outcome_init(&outcome);
  device->vtable->settle(device, weir_outcome_set, &outcome);
  assert_null(weir_outcome_wait(&outcome));
  weir_device_release(other);
  release(device);
  weir_event_await(own);  // reached, though its device is gone
  weir_event_release(own);
  weir_event_release(foreign);
}

// ---- times ----

static void check_times(const weir_stream_span_t* span, int64_t from, int64_t to) {
  enum { CLOCKS_APART_NS = 1000000 };  // the anchor is somewhere between two looks at the clock
  assert_null(span->first);
  assert_null(span->last);
  assert_true(span->start_ns >= from - CLOCKS_APART_NS && span->start_ns <= span->end_ns);
  assert_true(span->end_ns <= to + CLOCKS_APART_NS && span->end_ns - span->start_ns <= to - from);
}

// What a thread puts in the compute stream, from the first to the last; nothing where it puts none.
static void test_kernels_are_timed(void** state) {
  (void)state;
  weir_device_t* device = make_device(0);
  weir_allocator_t* memory = weir_device_allocator(device, WEIR_MEMORY_DEVICE);
  void* block = take(memory, 512);
  weir_stream_span_t spans[2] = {{0}};
  int64_t before = weir_clock_ns();
  assert_null(weir_span_set(&spans[0]));
  assert_null(weir_cuda_zero(device, block, 512));
  assert_null(weir_cuda_set(device, block, 1, 512));
  weir_span_close(&spans[0]);
  int64_t after = weir_clock_ns();
  assert_ptr_equal(weir_span_set(&spans[1]), &spans[0]);
  weir_span_close(&spans[1]);
  weir_span_forget(&spans[0]);  // which is not up
  assert_ptr_equal(weir_span_set(NULL), &spans[1]);
  assert_null(weir_cuda_zero(device, block, 512));  // nobody wants to know
  weir_spans_resolve(device, spans, WEIR_COUNT_OF(spans), sizeof(spans[0]));
  check_times(&spans[0], before, after);
  assert_int_equal(spans[0].stream, WEIR_STREAM_COMPUTE);
  assert_true(!spans[1].device && !spans[1].end_ns);
  give(memory, block, 512);
  release(device);
}

// A copy in many pieces, which other threads start, is one span, of the stream it is in.
static void test_copies_are_timed(void** state) {
  (void)state;
  weir_device_t* device = make_device(0);
  weir_tensor_t *host = NULL, *there = NULL, *back = NULL;
  const int64_t dims[] = {5000003};
  weir_stream_span_t spans[2] = {{0}};
  assert_null(weir_tensor_create(WEIR_DTYPE_FLOAT, 1, dims, &host));
  memset(host->data, 1, weir_tensor_byte_size(host));
  int64_t times[3] = {weir_clock_ns()};
  weir_span_set(&spans[0]);
  assert_null(weir_device_fetch(device, WEIR_MEMORY_DEVICE, host, &there));
  times[1] = weir_clock_ns();
  weir_span_set(&spans[1]);
  assert_null(weir_device_fetch(device, WEIR_MEMORY_HOST, there, &back));
  weir_span_set(NULL);
  times[2] = weir_clock_ns();
  weir_spans_resolve(device, spans, 2, sizeof(spans[0]));
  for (int i = 0; i < 2; ++i) check_times(&spans[i], times[i], times[i + 1]);
  assert_int_equal(spans[0].stream, WEIR_STREAM_UPLOAD);
  assert_int_equal(spans[1].stream, WEIR_STREAM_DOWNLOAD);
  assert_true(spans[0].end_ns - spans[0].start_ns > 0);
  weir_tensor_release(host);
  weir_tensor_release(there);
  weir_tensor_release(back);
  release(device);
}

// Peers reach each other once, if they can; copies arrive in either case, and are timed.
static void check_peer_copy(weir_device_t* device, weir_device_t* from) {
  weir_tensor_t *host = NULL, *there = NULL, *here = NULL;
  const int64_t dims[] = {100003};
  weir_stream_span_t span = {0};
  assert_null(weir_tensor_create(WEIR_DTYPE_INT32, 1, dims, &host));
  for (int64_t i = 0; i < host->count; ++i) WEIR_TENSOR_DATA(host, int32_t)[i] = (int32_t)(3 * i);
  assert_null(weir_device_fetch(from, WEIR_MEMORY_DEVICE, host, &there));
  assert_true(weir_device_is_peer(device, from));
  int copies = cuda_fake_peer_copies;
  int64_t before = weir_clock_ns();
  weir_span_set(&span);
  assert_null(weir_device_fetch(device, WEIR_MEMORY_DEVICE, there, &here));
  weir_span_set(NULL);
  int64_t after = weir_clock_ns();
  assert_ptr_equal(weir_tensor_space(here)->device, device);
  assert_memory_equal(cuda_fake_at(here->data), host->data, weir_tensor_byte_size(host));
  assert_int_equal(cuda_fake_peer_copies, copies + 1);
  weir_spans_resolve(device, &span, 1, sizeof(span));
  check_times(&span, before, after);
  assert_int_equal(span.stream, WEIR_STREAM_UPLOAD);
  weir_tensor_release(here);
  weir_tensor_release(there);
  weir_tensor_release(host);
}

static void test_peers(void** state) {
  (void)state;
  cuda_fake_are_peers = false;
  weir_device_t *first = make_nth(0, 0), *second = make_nth(1, 0);
  check_peer_copy(first, second);
  assert_int_equal(cuda_fake_reached, 0);
  cuda_fake_are_peers = true;
  check_peer_copy(first, second);  // which was asked before
  assert_int_equal(cuda_fake_reached, 0);
  for (int i = 0; i < 2; ++i) {
    check_peer_copy(second, first);
    assert_int_equal(cuda_fake_reached, 1);
  }
  weir_device_release(second);
  second = make_nth(1, 0);  // another device on the same context
  check_peer_copy(second, first);
  assert_int_equal(cuda_fake_reached, 1);
  weir_device_release(second);
  release(first);
}

static void test_absent_gpu(void** state) {
  (void)state;
  weir_device_t* device = NULL;
  weir_device_params_t params = {.index = 17};
  weir_cuda_driver_replace(&cuda_fake_driver);
  weir_status_t* status = weir_cuda_kind.create(&params, &device);
  weir_cuda_driver_replace(NULL);
  assert_int_equal(weir_status_code(status), WEIR_UNAVAILABLE);
  assert_non_null(strstr(weir_status_message(status), "GPU 17"));
  weir_status_destroy(status);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_freed_memory_is_used_again),
      cmocka_unit_test(test_memory_is_metered),
      cmocka_unit_test(test_neighbours_are_joined),
      cmocka_unit_test(test_idle_segments_go_back),
      cmocka_unit_test(test_blocks_are_apart),
      cmocka_unit_test(test_exhausted_memory_has_a_message),
      cmocka_unit_test(test_copies),
      cmocka_unit_test(test_results_are_collected),
      cmocka_unit_test(test_events),
      cmocka_unit_test(test_kernels_are_timed),
      cmocka_unit_test(test_copies_are_timed),
      cmocka_unit_test(test_peers),
      cmocka_unit_test(test_absent_gpu),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

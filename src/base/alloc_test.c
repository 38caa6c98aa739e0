// alloc_test.c — Process memory, fault injection, arenas and the host's tensor allocator.

#include "base/alloc.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/memory.h"
#include "testing/cmocka.h"

static void test_overflow(void** state) {
  (void)state;
  assert_null(weir_alloc_array(SIZE_MAX / 2, 3));
  assert_null(weir_calloc(SIZE_MAX / 2, 3));
  assert_null(weir_realloc_array(NULL, SIZE_MAX / 2, 3));
}

// The system would promise as much as the machine has, and take back its word later.
static void test_more_than_there_is(void** state) {
  (void)state;
  const size_t resident = weir_memory_resident();
  assert_true(resident > 0);
  const size_t size = weir_memory_limit() - resident / 2;
  assert_null(weir_malloc(size));
  assert_null(weir_calloc(1, size));
  assert_null(weir_realloc_array(NULL, 1, size));
  assert_null(weir_aligned_malloc(size, 64));
  weir_allocator_t* host = weir_host_allocator();
  assert_null(host->vtable->alloc(host, size, 64));
}

static void test_zero_size(void** state) {
  (void)state;
  void* pointers[] = {weir_malloc(0), weir_calloc(0, 8), weir_alloc_array(3, 0),
                      weir_realloc_array(NULL, 0, 4), weir_aligned_malloc(0, 4096)};
  for (size_t i = 0; i < WEIR_COUNT_OF(pointers); ++i) {
    assert_non_null(pointers[i]);
    weir_free(pointers[i]);
  }
  weir_free(NULL);
}

static void test_strings(void** state) {
  (void)state;
  char* text = weir_strdup("weir");
  assert_string_equal(text, "weir");
  weir_free(text);
  text = weir_strndup("a\0b", 3);
  assert_memory_equal(text, "a\0b", 4);
  weir_free(text);
  text = weir_strndup(NULL, 0);
  assert_string_equal(text, "");
  weir_free(text);
}

static void test_fail_at(void** state) {
  (void)state;
  weir_alloc_fail_at(2, false);
  void* a = weir_malloc(8);
  void* b = weir_malloc(8);
  void* c = weir_calloc(1, 8);
  assert_non_null(a);
  assert_null(b);
  assert_non_null(c);
  weir_alloc_fail_at(1, true);
  assert_null(weir_realloc_array(a, 4, 8));
  assert_null(weir_aligned_malloc(8, 64));
  weir_alloc_fail_at(0, false);
  weir_free(a);
  weir_free(c);
}

static void test_grow(void** state) {
  (void)state;
  int* array = NULL;
  size_t capacity = 0;
  for (size_t i = 0; i < 1000; ++i) {
    assert_true(WEIR_GROW(array, capacity, i + 1));
    assert_true(capacity > i);
    array[i] = (int)i;
  }
  for (size_t i = 0; i < 1000; ++i) assert_int_equal(array[i], i);
  assert_false(WEIR_GROW(array, capacity, SIZE_MAX / 2));
  assert_int_equal(array[999], 999);
  weir_free(array);
}

static void test_arena(void** state) {
  (void)state;
  weir_arena_t arena = {0};
  unsigned char* blocks[200];
  for (size_t i = 0; i < 200; ++i) {
    size_t size = i * i * 7 % 9001;
    blocks[i] = weir_arena_alloc(&arena, size);
    assert_non_null(blocks[i]);
    assert_int_equal((uintptr_t)blocks[i] % 16, 0);
    for (size_t k = 0; k < size; ++k) assert_int_equal(blocks[i][k], 0);
    memset(blocks[i], (int)i, size);
  }
  for (size_t i = 0; i < 200; ++i) {
    for (size_t k = 0; k < i * i * 7 % 9001; ++k) assert_int_equal(blocks[i][k], i);
  }
  assert_string_equal(weir_arena_strndup(&arena, "hello", 4), "hell");
  assert_string_equal(weir_arena_printf(&arena, "%d-%s", 5, "x"), "5-x");
  assert_null(weir_arena_array(&arena, SIZE_MAX / 2, 4));
  assert_null(weir_arena_alloc(&arena, SIZE_MAX - 3));
  weir_arena_free(&arena);
  assert_non_null(weir_arena_alloc(&arena, 1 << 20));
  assert_non_null(weir_arena_alloc(&arena, 8));
  weir_arena_free(&arena);
  weir_alloc_fail_at(1, true);
  void* none = weir_arena_alloc(&arena, 8);
  weir_alloc_fail_at(0, false);
  assert_null(none);
  weir_arena_free(&arena);
  weir_arena_split(true);  // each time is one that can fail
  for (int i = 1; i <= 3; ++i) {
    weir_alloc_fail_at(i, false);
    for (int k = 1; k <= 3; ++k) assert_int_equal(!weir_arena_alloc(&arena, 8), k == i);
    weir_alloc_fail_at(0, false);
  }
  weir_arena_split(false);
  weir_arena_free(&arena);
}

static const size_t sizes[] = {0,      1,      63,     64,      65,      192,
                               1000,   1024,   1025,   2048,    2049,    65536,
                               262144, 262145, 300000, 1000003, 5 << 20, 6000001};

static void test_host_sizes(void** state) {
  (void)state;
  weir_allocator_t* host = weir_host_allocator();
  assert_true(weir_allocator_is_host(host));
  for (int round = 0; round < 3; ++round) {
    void* pointers[WEIR_COUNT_OF(sizes)];
    for (size_t i = 0; i < WEIR_COUNT_OF(sizes); ++i) {
      pointers[i] = host->vtable->alloc(host, sizes[i], 16);
      assert_non_null(pointers[i]);
      assert_int_equal((uintptr_t)pointers[i] % 64, 0);
      memset(pointers[i], (int)i, sizes[i]);
    }
    for (size_t i = 0; i < WEIR_COUNT_OF(sizes); ++i) {
      const unsigned char* bytes = pointers[i];
      if (sizes[i]) assert_int_equal(bytes[0] + bytes[sizes[i] - 1], 2 * i);
      host->vtable->free(host, pointers[i], sizes[i]);
    }
  }
  host->vtable->free(host, NULL, 64);
  assert_null(host->vtable->alloc(host, SIZE_MAX - 5, 64));
}

static void test_host_alignment(void** state) {
  (void)state;
  weir_allocator_t* host = weir_host_allocator();
  for (size_t i = 0; i < WEIR_COUNT_OF(sizes); ++i) {
    void* pointer = host->vtable->alloc(host, sizes[i], 4096);
    assert_int_equal((uintptr_t)pointer % 4096, 0);
    memset(pointer, 1, sizes[i]);
    host->vtable->free(host, pointer, sizes[i]);
    pointer = host->vtable->alloc(host, sizes[i], 64);  // may be the same block
    memset(pointer, 2, sizes[i]);
    host->vtable->free(host, pointer, sizes[i]);
  }
}

static void test_host_meter(void** state) {
  (void)state;
  enum { SMALL = 100, BIG = 1 << 20 };
  weir_allocator_t* host = weir_host_allocator();
  void* before = host->vtable->alloc(host, SMALL, 64);
  weir_alloc_meter_t outer, inner;
  weir_alloc_meter_begin(&outer);
  void* big = host->vtable->alloc(host, BIG, 64);
  host->vtable->free(host, big, BIG);
  weir_alloc_meter_begin(&inner);
  host->vtable->free(host, before, SMALL);
  weir_alloc_meter_end(&inner);
  void* small = host->vtable->alloc(host, SMALL, 64);
  weir_alloc_meter_end(&outer);
  host->vtable->free(host, small, SMALL);
  assert_int_equal(outer.host.total, BIG + SMALL);
  assert_int_equal(outer.host.peak, BIG);
  assert_int_equal(outer.host.live, SMALL);
  assert_int_equal(inner.host.total, 0);
  assert_int_equal(inner.host.peak, 0);
  assert_int_equal(inner.host.live, -SMALL);
}

// A meter that goes on, and memory that is not the host's.
static void test_meter_resumed(void** state) {
  (void)state;
  const weir_space_t space = {.device = NULL};
  weir_alloc_meter_t meter;
  weir_alloc_meter_note(&space, 5);  // nobody counts
  weir_alloc_meter_begin(&meter);
  weir_alloc_meter_note(&space, 100);
  weir_alloc_meter_note(&weir_host_space, 7);
  weir_alloc_meter_end(&meter);
  weir_alloc_meter_note(&space, 1000);
  weir_alloc_meter_resume(&meter);
  weir_alloc_meter_note(&space, 10);
  weir_alloc_meter_note(&space, -100);
  weir_alloc_meter_end(&meter);
  assert_int_equal(meter.device.total, 110);
  assert_int_equal(meter.device.peak, 110);
  assert_int_equal(meter.device.live, 10);
  assert_int_equal(meter.host.total, 7);
}

static void test_host_accounting(void** state) {
  (void)state;
  weir_allocator_t* host = weir_host_allocator();
  int64_t before = weir_host_allocator_bytes();
  weir_host_allocator_reset_peak();
  void* small = host->vtable->alloc(host, 100, 64);
  void* big = host->vtable->alloc(host, 1 << 20, 64);
  assert_int_equal(weir_host_allocator_bytes() - before, 100 + (1 << 20));
  host->vtable->free(host, big, 1 << 20);
  host->vtable->free(host, small, 100);
  assert_int_equal(weir_host_allocator_bytes(), before);
  assert_int_equal(weir_host_allocator_peak() - before, 100 + (1 << 20));
  weir_host_allocator_reset_peak();
  assert_int_equal(weir_host_allocator_peak(), before);
}

static void test_host_faults(void** state) {
  (void)state;
  weir_allocator_t* host = weir_host_allocator();
  void* warm = host->vtable->alloc(host, 192, 64);
  host->vtable->free(host, warm, 192);
  weir_alloc_fail_at(2, false);
  void* a = host->vtable->alloc(host, 192, 64);
  void* b = host->vtable->alloc(host, 192, 64);
  host->vtable->free(host, a, 192);
  weir_alloc_fail_at(0, false);
  assert_non_null(a);
  assert_null(b);
}

static void test_host_many(
    void** state) {  // more than any list keeps, and than the big cache keeps
  (void)state;
  weir_allocator_t* host = weir_host_allocator();
  int64_t before = weir_host_allocator_bytes();
  static void* pointers[1000];
  for (size_t i = 0; i < 1000; ++i)
    assert_non_null(pointers[i] = host->vtable->alloc(host, 256, 64));
  for (size_t i = 0; i < 1000; ++i) host->vtable->free(host, pointers[i], 256);
  for (size_t i = 0; i < 40; ++i)
    assert_non_null(pointers[i] = host->vtable->alloc(host, (i + 1) << 19, 64));
  for (size_t i = 0; i < 40; ++i) host->vtable->free(host, pointers[i], (i + 1) << 19);
  for (size_t i = 0; i < 40; ++i)
    assert_non_null(pointers[i] = host->vtable->alloc(host, (i + 1) << 19, 64));
  for (size_t i = 40; i-- > 0;) host->vtable->free(host, pointers[i], (i + 1) << 19);
  assert_int_equal(weir_host_allocator_bytes(), before);
}

// Bytes of blocks that the C library has from the system one by one: all of 32 MiB and more.
static size_t mapped_bytes(void) { return mallinfo2().hblkhd; }

// Big blocks of sizes that nobody wants any more go back when others are wanted, not before.
static void test_host_idle(void** state) {
  (void)state;
  const size_t old_size = (size_t)40 << 20, new_size = (size_t)56 << 20;
  weir_allocator_t* host = weir_host_allocator();
  size_t before = mapped_bytes();
  void* old = host->vtable->alloc(host, old_size, 64);
  if (mapped_bytes() == before) {  // a sanitizer's malloc
    host->vtable->free(host, old, old_size);
    skip();
  }
  host->vtable->free(host, old, old_size);
  assert_true(mapped_bytes() >= before + old_size);
  void* fresh = host->vtable->alloc(host, new_size, 64);
  assert_true(mapped_bytes() >= before + old_size + new_size);
  host->vtable->free(host, fresh, new_size);
  usleep(2100000);
  assert_true(mapped_bytes() >= before + old_size + new_size);
  fresh = host->vtable->alloc(host, new_size, 64);  // a size that is there is just taken
  assert_true(mapped_bytes() >= before + old_size + new_size);
  void* other = host->vtable->alloc(host, 2 * old_size, 64);
  assert_true(mapped_bytes() < before + new_size + 3 * old_size);
  host->vtable->free(host, other, 2 * old_size);
  host->vtable->free(host, fresh, new_size);
}

typedef struct exchange_t {
  _Atomic(void*) slots[64];
} exchange_t;

static size_t slot_size(size_t slot) { return slot * 9001 % 400000 + 8; }

// ---- one thread allocates, another frees ----

enum { HANDED = 2000, HANDED_SIZE = 1000 };

typedef struct handover_t {
  void* blocks[HANDED];
  size_t live_bytes;  // of the C library, when all are freed and the thread still lives
} handover_t;

static void* free_main(void* arg) {
  handover_t* handover = arg;
  weir_allocator_t* host = weir_host_allocator();
  for (int i = 0; i < HANDED; ++i) host->vtable->free(host, handover->blocks[i], HANDED_SIZE);
  handover->live_bytes = mallinfo2().uordblks;
  return NULL;
}

// As in a server, whose io threads make the tensors that others are through with. With sanitizers
// there is nothing to see: the C library has no part in it, and nothing is kept.
static void test_host_keeps_no_more_than_it_lacked(void** state) {
  (void)state;
  static handover_t handover;
  weir_allocator_t* host = weir_host_allocator();
  size_t before = mallinfo2().uordblks;
  for (int i = 0; i < HANDED; ++i) {
    handover.blocks[i] = host->vtable->alloc(host, HANDED_SIZE, 64);
    assert_non_null(handover.blocks[i]);
  }
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, free_main, &handover), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_true(handover.live_bytes < before + (size_t)HANDED * HANDED_SIZE / 4);
}

// Swaps blocks through shared slots, so that most are freed on another thread than allocated.
static void* exchange_main(void* arg) {
  exchange_t* exchange = arg;
  weir_allocator_t* host = weir_host_allocator();
  for (size_t i = 0; i < 20000; ++i) {
    size_t slot = i * 31 % 64;
    void* pointer = host->vtable->alloc(host, slot_size(slot), 64);
    if (!pointer) return exchange;
    memset(pointer, (int)i, 8);
    void* old = atomic_exchange(&exchange->slots[slot], pointer);
    if (old) host->vtable->free(host, old, slot_size(slot));
  }
  return NULL;
}

static void test_host_threads(void** state) {
  (void)state;
  weir_allocator_t* host = weir_host_allocator();
  int64_t before = weir_host_allocator_bytes();
  static exchange_t exchange;
  pthread_t threads[4];
  for (size_t i = 0; i < 4; ++i)
    assert_int_equal(pthread_create(&threads[i], NULL, exchange_main, &exchange), 0);
  for (size_t i = 0; i < 4; ++i) {
    void* failed = NULL;
    assert_int_equal(pthread_join(threads[i], &failed), 0);
    assert_null(failed);
  }
  for (size_t i = 0; i < 64; ++i) {
    void* pointer = exchange.slots[i];
    if (pointer) host->vtable->free(host, pointer, slot_size(i));
  }
  assert_int_equal(weir_host_allocator_bytes(),
                   before);  // the threads ended, so the count is exact
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_overflow),
                                     cmocka_unit_test(test_more_than_there_is),
                                     cmocka_unit_test(test_zero_size),
                                     cmocka_unit_test(test_strings),
                                     cmocka_unit_test(test_fail_at),
                                     cmocka_unit_test(test_grow),
                                     cmocka_unit_test(test_arena),
                                     cmocka_unit_test(test_host_idle),  // the cache is empty yet
                                     cmocka_unit_test(test_host_sizes),
                                     cmocka_unit_test(test_host_alignment),
                                     cmocka_unit_test(test_host_accounting),
                                     cmocka_unit_test(test_host_meter),
                                     cmocka_unit_test(test_meter_resumed),
                                     cmocka_unit_test(test_host_faults),
                                     cmocka_unit_test(test_host_many),
                                     cmocka_unit_test(test_host_keeps_no_more_than_it_lacked),
                                     cmocka_unit_test(test_host_threads)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

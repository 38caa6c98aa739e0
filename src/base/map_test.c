// map_test.c — The string map against an array, its order, its keys and its hash.

#include "base/map.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "testing/cmocka.h"

#define KEY_COUNT 500

static int values[KEY_COUNT];

static weir_view_t make_key(int i, char text[32]) {
  snprintf(text, 32, "layer_%d/weights", i);
  return weir_view_of(text);
}

static void test_empty(void** state) {
  (void)state;
  weir_map_t map = {0};
  size_t position = 0;
  assert_null(weir_map_find(&map, weir_view_of("x")));
  assert_null(weir_map_remove(&map, weir_view_of("x")));
  assert_null(weir_map_next(&map, &position));
  weir_map_free(&map);
}

static void test_random_walk(void** state) {
  (void)state;
  weir_map_t map = {.owns_keys = true};
  bool is_in[KEY_COUNT] = {false};
  size_t count = 0;
  uint64_t random = 1;
  for (int step = 0; step < 20000; ++step) {
    random = weir_hash_mix(random + 0x9e3779b97f4a7c15u);
    int i = (int)(random % KEY_COUNT);
    char text[32];
    weir_view_t key = make_key(i, text);
    assert_ptr_equal(weir_map_find(&map, key), is_in[i] ? &values[i] : NULL);
    if (random >> 40 & 1) {
      assert_null(weir_map_put(&map, key, &values[i]));
      count += !is_in[i];
      is_in[i] = true;
    } else {
      assert_ptr_equal(weir_map_remove(&map, key), is_in[i] ? &values[i] : NULL);
      count -= is_in[i];
      is_in[i] = false;
    }
    assert_int_equal(map.count, count);
  }
  size_t seen = 0;
  weir_map_entry_t* entry;
  for (size_t at = 0; (entry = weir_map_next(&map, &at));) {
    assert_true(is_in[(int*)entry->value - values]);
    ++seen;
  }
  assert_int_equal(seen, count);
  weir_map_free(&map);
}

static void test_order(void** state) {
  (void)state;
  weir_map_t map = {.owns_keys = true};
  char text[32];
  for (int i = 0; i < KEY_COUNT; ++i)
    assert_null(weir_map_put(&map, make_key(i, text), &values[i]));
  for (int i = 0; i < KEY_COUNT; i += 3) assert_non_null(weir_map_remove(&map, make_key(i, text)));
  assert_null(weir_map_put(&map, make_key(1, text), &values[1]));  // replacing keeps the place
  int expected = 1;
  weir_map_entry_t* entry;
  for (size_t at = 0; (entry = weir_map_next(&map, &at));) {
    assert_ptr_equal(entry->value, &values[expected]);
    expected += expected % 3 == 1 ? 1 : 2;
  }
  assert_int_equal(expected, KEY_COUNT);  // 499 = 1 mod 3, the last one kept, is followed by 500
  weir_map_free(&map);
}

static void test_borrowed_keys(void** state) {
  (void)state;
  weir_map_t map = {0};
  const char* key = "borrowed";
  assert_null(weir_map_put(&map, weir_view_of(key), &values[0]));
  assert_null(weir_map_put(&map, weir_view(key, 0), &values[1]));
  size_t at = 0;
  assert_ptr_equal(weir_map_next(&map, &at)->key.data, key);
  assert_ptr_equal(weir_map_find(&map, weir_view(NULL, 0)), &values[1]);
  assert_null(weir_map_find(&map, weir_view(key, 4)));
  weir_map_free(&map);
}

static void test_out_of_memory(void** state) {
  (void)state;
  for (int64_t n = 1; n <= 3; ++n) {  // slots, entries, key
    weir_map_t map = {.owns_keys = true};
    weir_alloc_fail_at(n, false);
    weir_status_t* status = weir_map_put(&map, weir_view_of("k"), &values[0]);
    weir_alloc_fail_at(0, false);
    assert_ptr_equal(status, weir_out_of_memory());
    assert_null(weir_map_find(&map, weir_view_of("k")));
    assert_null(weir_map_put(&map, weir_view_of("k"), &values[0]));
    assert_ptr_equal(weir_map_find(&map, weir_view_of("k")), &values[0]);
    weir_map_free(&map);
  }
}

static void test_hash(void** state) {
  (void)state;
  assert_true(weir_hash_bytes("abc", 3, 0) == weir_hash_bytes("abcd", 3, 0));
  assert_true(weir_hash_bytes("abc", 3, 0) != weir_hash_bytes("abc", 3, 1));
  assert_true(weir_hash_bytes("a\0", 2, 0) != weir_hash_bytes("a", 1, 0));
  assert_true(weir_hash_bytes("", 0, 0) == weir_hash_bytes(NULL, 0, 0));
}

// Keys that all fall into one slot of a table whose hash is known do not in ours.
static void test_hash_is_keyed(void** state) {
  (void)state;
  enum { KEYS = 256, MASK = 0xfff };
  weir_map_t map = {.owns_keys = true};
  int counts[MASK + 1] = {0}, top = 0;
  for (uint64_t i = 0; map.count < KEYS; ++i) {
    if ((weir_hash_bytes(&i, sizeof(i), 0) & MASK) != 0) continue;
    assert_null(weir_map_put(&map, weir_view((const char*)&i, sizeof(i)), &values[0]));
    int count = ++counts[map.entries[map.count - 1].hash & MASK];
    top = count > top ? count : top;
  }
  assert_in_range(top, 1, 16);
  weir_map_free(&map);
}

static void test_keyed_hash_spreads(void** state) {
  (void)state;
  enum { SIZE = 40 };
  char text[SIZE];
  uint64_t seen[SIZE + 1];
  memset(text, 'x', sizeof(text));
  for (size_t size = 0; size <= SIZE; ++size) {
    seen[size] = weir_hash_keyed(text, size);
    for (size_t i = 0; i < size; ++i) {
      assert_true(seen[i] != seen[size]);
      text[i] = 'y';  // each byte counts
      assert_true(weir_hash_keyed(text, size) != seen[size]);
      text[i] = 'x';
    }
    assert_true(weir_hash_keyed(text, size) == seen[size]);
  }
}

// Where the key of another process of this program goes, for test_key_is_new.
#define KEY_TO "WEIR_TEST_KEY_TO"

static void tell_key(const char* descriptor) {
  uint64_t hash = weir_hash_keyed("", 0);
  _exit(write(atoi(descriptor), &hash, sizeof(hash)) == (ssize_t)sizeof(hash) ? 0 : 1);
}

// Every process has another key.
static void test_key_is_new(void** state) {
  (void)state;
  uint64_t of_child = 0;
  int ends[2], end = 0;
  char text[16];
  assert_int_equal(pipe(ends), 0);
  snprintf(text, sizeof(text), "%d", ends[1]);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    setenv(KEY_TO, text, 1);
    execl("/proc/self/exe", "base_map_test", "base_map_test", (char*)NULL);
    _exit(1);
  }
  assert_int_equal(waitpid(child, &end, 0), child);
  assert_int_equal(end, 0);
  assert_int_equal(read(ends[0], &of_child, sizeof(of_child)), sizeof(of_child));
  assert_true(of_child != weir_hash_keyed("", 0));
  for (int i = 0; i < 2; ++i) close(ends[i]);
}

int main(void) {
  if (getenv(KEY_TO)) tell_key(getenv(KEY_TO));
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_empty),         cmocka_unit_test(test_random_walk),
      cmocka_unit_test(test_order),         cmocka_unit_test(test_borrowed_keys),
      cmocka_unit_test(test_out_of_memory), cmocka_unit_test(test_hash),
      cmocka_unit_test(test_hash_is_keyed), cmocka_unit_test(test_keyed_hash_spreads),
      cmocka_unit_test(test_key_is_new)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

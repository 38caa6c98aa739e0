// table_test.c — Lookup tables: filling once, changing, removing, export, and many threads at once.

#include "ops/table/table.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "testing/cmocka.h"

static weir_lookup_table_t* make_table(weir_dtype_t key, weir_dtype_t value, bool is_mutable) {
  weir_lookup_table_t* table = NULL;
  assert_null(weir_lookup_table_create(
      &(weir_lookup_table_config_t){
          .key_dtype = key, .value_dtype = value, .is_mutable = is_mutable},
      &table));
  return table;
}

static void release(weir_lookup_table_t* table) { weir_resource_release((weir_resource_t*)table); }

static weir_tensor_t* ints(int64_t count, const int64_t* values) {
  weir_tensor_t* tensor = NULL;
  assert_null(weir_tensor_create_from(WEIR_DTYPE_INT64, 1, &count, values, &tensor));
  return tensor;
}

static weir_tensor_t* scalar(int64_t value) {
  weir_tensor_t* tensor = NULL;
  assert_null(weir_tensor_create_from(WEIR_DTYPE_INT64, 0, NULL, &value, &tensor));
  return tensor;
}

static weir_tensor_t* strings(int64_t count, const char* const* values) {
  weir_tensor_t* tensor = NULL;
  assert_null(weir_tensor_create_strings(1, &count, values, NULL, &tensor));
  return tensor;
}

static void assert_fails(weir_status_t* status, weir_code_t code, const char* text) {
  assert_int_equal(weir_status_code(status), code);
  if (!strstr(weir_status_message(status), text)) fail_msg("%s", weir_status_message(status));
  weir_status_destroy(status);
}

// The value under |key|, or -1.
static int64_t lookup(weir_lookup_table_t* table, int64_t key) {
  weir_tensor_t *keys = ints(1, &key), *none = scalar(-1), *out = ints(1, &key);
  assert_null(weir_lookup_table_find(table, keys, none, out));
  int64_t value = weir_tensor_int_at(out, 0);
  weir_tensor_release(keys);
  weir_tensor_release(none);
  weir_tensor_release(out);
  return value;
}

static void insert_range(weir_lookup_table_t* table, int64_t begin, int64_t end, int64_t add) {
  for (int64_t i = begin; i < end; ++i) {
    weir_tensor_t *key = scalar(i), *value = scalar(i + add);
    assert_null(weir_lookup_table_insert(table, key, value));
    weir_tensor_release(key);
    weir_tensor_release(value);
  }
}

static void test_is_filled_once(void** state) {
  (void)state;
  weir_lookup_table_t* table = make_table(WEIR_DTYPE_INT64, WEIR_DTYPE_INT64, false);
  weir_tensor_t *keys = ints(3, (int64_t[]){1, 2, 1}), *differing = ints(3, (int64_t[]){4, 5, 6});
  weir_tensor_t *values = ints(3, (int64_t[]){4, 5, 4}), *none = scalar(-1), *two = NULL;
  weir_tensor_t *out_keys = NULL, *out_values = NULL;
  two = ints(2, (int64_t[]){1, 2});
  assert_fails(weir_lookup_table_find(table, keys, none, differing), WEIR_FAILED_PRECONDITION,
               "Table not initialized");
  assert_fails(weir_lookup_table_export(table, &out_keys, &out_values), WEIR_ABORTED,
               "not initialized");
  assert_int_equal(weir_lookup_table_size(table), 0);
  weir_tensor_release(differing);
  differing = ints(3, (int64_t[]){4, 5, 6});
  assert_fails(weir_lookup_table_initialize(table, keys, differing), WEIR_FAILED_PRECONDITION,
               "different value for same key");
  assert_null(weir_lookup_table_initialize(table, keys, values));
  assert_int_equal(weir_lookup_table_size(table), 2);
  assert_int_equal(lookup(table, 1), 4);
  assert_int_equal(lookup(table, 3), -1);
  assert_null(
      weir_lookup_table_initialize(table, two, two));  // as many entries: taken for the same
  assert_fails(weir_lookup_table_initialize(table, keys, values), WEIR_FAILED_PRECONDITION,
               "already initialized");
  assert_fails(weir_lookup_table_insert(table, keys, values), WEIR_UNIMPLEMENTED,
               "Insert not supported");
  assert_fails(weir_lookup_table_remove(table, keys), WEIR_UNIMPLEMENTED, "Remove not supported");
  weir_tensor_release(keys);
  weir_tensor_release(differing);
  weir_tensor_release(values);
  weir_tensor_release(none);
  weir_tensor_release(two);
  release(table);
}

static void test_inserts_replaces_and_removes(void** state) {
  (void)state;
  enum { COUNT = 1000 };
  weir_lookup_table_t* table = make_table(WEIR_DTYPE_INT64, WEIR_DTYPE_INT64, true);
  insert_range(table, 0, COUNT, 7);
  insert_range(table, 0, COUNT / 2, 9);
  assert_int_equal(weir_lookup_table_size(table), COUNT);
  // Every third goes; what was pushed along by collisions must still be found.
  for (int64_t i = 0; i < COUNT; i += 3) {
    weir_tensor_t* key = ints(2, (int64_t[]){i, COUNT + i});
    assert_null(weir_lookup_table_remove(table, key));
    weir_tensor_release(key);
  }
  for (int64_t i = 0; i < COUNT; ++i) {
    int64_t expected = i % 3 == 0 ? -1 : i + (i < COUNT / 2 ? 9 : 7);
    assert_int_equal(lookup(table, i), expected);
  }
  assert_int_equal(weir_lookup_table_size(table), COUNT - (COUNT + 2) / 3);
  release(table);
}

static void test_holds_strings(void** state) {
  (void)state;
  const char* long_text = "a string that does not fit into the element itself";
  weir_lookup_table_t* table = make_table(WEIR_DTYPE_STRING, WEIR_DTYPE_STRING, true);
  weir_tensor_t *keys = strings(3, (const char*[]){"a", long_text, ""}),
                *values = strings(3, (const char*[]){long_text, "b", "c"}), *out_keys = NULL,
                *out_values = NULL;
  assert_null(weir_lookup_table_insert(table, keys, values));
  assert_null(weir_lookup_table_import(table, keys, values));
  assert_int_equal(weir_lookup_table_size(table), 3);
  weir_tensor_release(values);
  values = strings(1, (const char*[]){"a"});
  assert_null(weir_lookup_table_remove(table, values));
  assert_null(weir_lookup_table_export(table, &out_keys, &out_values));
  assert_int_equal(out_keys->count, 2);
  for (int64_t i = 0; i < 2; ++i) {
    size_t key_size = 0, value_size = 0;
    (void)weir_tensor_string(out_keys, i, &key_size);
    const char* value = weir_tensor_string(out_values, i, &value_size);
    assert_int_equal(value_size, 1);
    assert_int_equal(value[0], key_size ? 'b' : 'c');
  }
  weir_tensor_release(keys);
  weir_tensor_release(values);
  weir_tensor_release(out_keys);
  weir_tensor_release(out_values);
  release(table);
}

static weir_lookup_table_t* fill_table(weir_dtype_t dtype, weir_tensor_t** out_keys,
                                       weir_tensor_t** out_values) {
  enum { COUNT = 1000 };
  int64_t numbers[COUNT];
  char texts[COUNT][8];
  const char* pointers[COUNT];
  for (int i = 0; i < COUNT; ++i) {
    numbers[i] = i;
    snprintf(texts[i], sizeof(texts[i]), "%d", i);
    pointers[i] = texts[i];
  }
  weir_lookup_table_t* table = make_table(dtype, WEIR_DTYPE_INT64, true);
  *out_keys = dtype == WEIR_DTYPE_INT64 ? ints(COUNT, numbers) : strings(COUNT, pointers);
  *out_values = ints(COUNT, numbers);
  assert_null(weir_lookup_table_insert(table, *out_keys, *out_values));
  return table;
}

static int count_found(weir_lookup_table_t* table, weir_tensor_t* keys) {
  weir_tensor_t *none = scalar(-1), *out = NULL;
  int found = 0;
  assert_null(weir_tensor_create(WEIR_DTYPE_INT64, keys->rank, keys->dims, &out));
  assert_null(weir_lookup_table_find(table, keys, none, out));
  for (int64_t i = 0; i < out->count; ++i) found += weir_tensor_int_at(out, i) >= 0;
  weir_tensor_release(none);
  weir_tensor_release(out);
  return found;
}

// Where a key is depends on the process' key: with another one it is looked for elsewhere.
static void test_hash_is_keyed(void** state) {
  (void)state;
  const weir_dtype_t dtypes[] = {WEIR_DTYPE_INT64, WEIR_DTYPE_STRING};
  for (size_t i = 0; i < WEIR_COUNT_OF(dtypes); ++i) {
    weir_tensor_t *keys = NULL, *values = NULL;
    const uint64_t own = weir_hash_key[0];
    weir_lookup_table_t* table = fill_table(dtypes[i], &keys, &values);
    assert_int_equal(count_found(table, keys), keys->count);
    weir_hash_key[0] = ~own;
    const int found = count_found(table, keys);
    weir_hash_key[0] = own;
    assert_in_range(found, 0, keys->count / 2);
    weir_tensor_release(keys);
    weir_tensor_release(values);
    release(table);
  }
}

static void test_checks_types_and_shapes(void** state) {
  (void)state;
  weir_lookup_table_t* table = make_table(WEIR_DTYPE_INT64, WEIR_DTYPE_INT64, true);
  weir_tensor_t *three = ints(3, (int64_t[]){1, 2, 3}), *two = ints(2, (int64_t[]){1, 2}),
                *text = strings(3, (const char*[]){"a", "b", "c"});
  weir_status_t* (*const fills[])(weir_lookup_table_t*, const weir_tensor_t*,
                                  const weir_tensor_t*) = {weir_lookup_table_insert,
                                                           weir_lookup_table_import};
  for (size_t i = 0; i < WEIR_COUNT_OF(fills); ++i) {
    assert_fails(fills[i](table, three, two), WEIR_INVALID_ARGUMENT,
                 "Expected shape [3] for value, got [2]");
    assert_fails(fills[i](table, text, three), WEIR_INVALID_ARGUMENT, "Key must be type");
    assert_fails(fills[i](table, three, text), WEIR_INVALID_ARGUMENT, "Value must be type");
  }
  assert_fails(weir_lookup_table_remove(table, text), WEIR_INVALID_ARGUMENT, "Key must be type");
  assert_fails(weir_lookup_table_find(table, three, two, three), WEIR_INVALID_ARGUMENT,
               "Expected shape [] or [3] for default value, got [2]");
  assert_fails(weir_lookup_table_initialize(table, three, three), WEIR_INVALID_ARGUMENT,
               "not initializable");
  weir_tensor_release(three);
  weir_tensor_release(two);
  weir_tensor_release(text);
  release(table);
}

static void* insert_many(void* arg) {
  weir_lookup_table_t* table = arg;
  insert_range(table, 0, 2000, 1);
  for (int64_t i = 0; i < 2000; ++i) assert_int_equal(lookup(table, i), i + 1);
  return NULL;
}

static void test_serves_threads(void** state) {
  (void)state;
  weir_lookup_table_t* table = make_table(WEIR_DTYPE_INT64, WEIR_DTYPE_INT64, true);
  pthread_t threads[4];
  for (size_t i = 0; i < 4; ++i)
    assert_int_equal(pthread_create(&threads[i], NULL, insert_many, table), 0);
  for (size_t i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  assert_int_equal(weir_lookup_table_size(table), 2000);
  release(table);
}

// Puts two entries in, twice, and takes them out again.
static weir_status_t* pass_through(weir_lookup_table_t* table, const weir_tensor_t* keys,
                                   const weir_tensor_t* values, weir_tensor_t** out_keys,
                                   weir_tensor_t** out_values) {
  WEIR_TRY(weir_lookup_table_insert(table, keys, values));
  WEIR_TRY(weir_lookup_table_import(table, keys, values));
  return weir_lookup_table_export(table, out_keys, out_values);
}

static void assert_same_strings(const weir_tensor_t* a, const weir_tensor_t* b) {
  assert_int_equal(a->count, b->count);
  for (int64_t i = 0; i < a->count; ++i) {
    size_t size = 0, other_size = 0;
    const char* text = weir_tensor_string(a, i, &size);
    const char* other = weir_tensor_string(b, i, &other_size);
    assert_int_equal(size, other_size);
    assert_memory_equal(text, other, size);
  }
}

// Every allocation fails once: the error comes back, or all entries do.
static void test_out_of_memory(void** state) {
  (void)state;
  const char* texts[] = {"a string that does not fit into the element itself",
                         "another string that does not fit into the element"};
  weir_tensor_t *keys = strings(2, texts),
                *values = strings(2, (const char*[]){texts[1], texts[0]});
  weir_code_t code = WEIR_RESOURCE_EXHAUSTED;
  for (int64_t n = 1; code != WEIR_OK; ++n) {
    weir_lookup_table_t* table = make_table(WEIR_DTYPE_STRING, WEIR_DTYPE_STRING, true);
    weir_tensor_t *out_keys = NULL, *out_values = NULL;
    weir_alloc_fail_at(n, false);
    weir_status_t* status = pass_through(table, keys, values, &out_keys, &out_values);
    weir_alloc_fail_at(0, false);
    code = weir_status_code(status);
    if (code == WEIR_OK) {
      assert_same_strings(keys, out_keys);
      assert_same_strings(values, out_values);
      assert_true(n > 10);
    } else {
      assert_int_equal(code, WEIR_RESOURCE_EXHAUSTED);
    }
    weir_status_destroy(status);
    weir_tensor_release(out_keys);
    weir_tensor_release(out_values);
    release(table);
  }
  weir_tensor_release(keys);
  weir_tensor_release(values);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_is_filled_once), cmocka_unit_test(test_inserts_replaces_and_removes),
      cmocka_unit_test(test_holds_strings),  cmocka_unit_test(test_checks_types_and_shapes),
      cmocka_unit_test(test_serves_threads), cmocka_unit_test(test_hash_is_keyed),
      cmocka_unit_test(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

// cuda_cache_test.c — What is kept comes back, and what is damaged does not.
#include "device/cuda/cuda_cache.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "file/fs.h"
#include "testing/cmocka.h"

static char folder[64];

static int set_up(void** state) {
  (void)state;
  snprintf(folder, sizeof(folder), "/tmp/weir_cache_XXXXXX");
  if (!mkdtemp(folder)) return -1;
  return setenv("WEIR_CACHE_DIR", folder, 1);
}

static int tear_down(void** state) {
  (void)state;
  char command[96];
  snprintf(command, sizeof(command), "rm -r %s", folder);
  return system(command);
}

static const weir_view_t key = {"a\0key", 5}, other = {"a\0kez", 5};

static void test_records(void** state) {
  (void)state;
  int64_t record = 0;
  const int64_t wanted = 17;
  assert_false(weir_cuda_cache_recall(key, "conv", &record, sizeof(record)));
  weir_cuda_cache_remember(key, "conv", &wanted, sizeof(wanted));
  assert_true(weir_cuda_cache_recall(key, "conv", &record, sizeof(record)));
  assert_int_equal(record, wanted);
  assert_false(weir_cuda_cache_recall(other, "conv", &record, sizeof(record)));
  assert_false(weir_cuda_cache_recall(key, "gemm", &record, sizeof(record)));
  int32_t shorter = 0;  // what another version has kept
  assert_false(weir_cuda_cache_recall(key, "conv", &shorter, sizeof(shorter)));
}

static void test_damage_is_noticed(void** state) {
  (void)state;
  weir_strbuf_t name = {0}, text = {0};
  char path[256];
  char* data = NULL;
  size_t size = 0;
  assert_null(weir_cuda_cache_name(key, "sm_90", &name));
  snprintf(path, sizeof(path), "%s/%s", folder, name.data);
  weir_cuda_cache_store(name.data, "machine code", 12);
  assert_null(weir_fs_read_all(path, &text));
  for (size_t cut = 0; cut < text.size; ++cut) {
    assert_null(weir_fs_replace(path, weir_view(text.data, cut)));
    assert_false(weir_cuda_cache_load(name.data, &data, &size));
  }
  text.data[text.size - 1] ^= 1;
  assert_null(weir_fs_replace(path, weir_view(text.data, text.size)));
  assert_false(weir_cuda_cache_load(name.data, &data, &size));
  text.data[text.size - 1] ^= 1;
  assert_null(weir_fs_replace(path, weir_view(text.data, text.size)));
  assert_true(weir_cuda_cache_load(name.data, &data, &size));
  assert_int_equal(size, 12);
  assert_memory_equal(data, "machine code", 12);
  weir_free(data);
  weir_strbuf_free(&text);
  weir_strbuf_free(&name);
}

static void test_no_place(void** state) {
  (void)state;
  int64_t record = 1;
  setenv("WEIR_CACHE_DIR", "/dev/null/nowhere", 1);
  weir_cuda_cache_remember(key, "conv", &record, sizeof(record));
  assert_false(weir_cuda_cache_recall(key, "conv", &record, sizeof(record)));
  setenv("WEIR_CACHE_DIR", folder, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_records, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_damage_is_noticed, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_no_place, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

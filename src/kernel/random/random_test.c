// random_test.c — Numbers that TensorFlow draws from the same seeds, over successive runs, and
// independence of threads.

#include "kernel/random/random.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "testing/cmocka.h"

// Three runs of one stateful node each, as TensorFlow gives them for seed 1, seed2 2.
static const uint32_t uniform_runs[3][3] = {{0x3ed0133c, 0x3f5b8ba6, 0x3d62e6c0},
                                            {0x3e2c72f8, 0x3f639c76, 0x3f091654},
                                            {0x3effb890, 0x3d80b5f0, 0x3eeb8dc0}};
static const uint32_t normal_runs[3][3] = {{0xbf85fcdd, 0x3f56f6e1, 0x3f9e2fe3},
                                           {0xbf9b0be8, 0x3fb94a52, 0x3cce9609},
                                           {0x3ee8173c, 0x3f8b3845, 0x3f9889d5}};
static const uint64_t truncated_runs[3][5] = {
    {0x3fe298089076cdd3, 0xbff8eb3aca515204, 0xbff212c734d3894d, 0xbfe0803aba843b6c,
     0xbff20bf7ca0d8c29},
    {0xbff166ba7b80183f, 0xbff2bf37e220b9b3, 0xbfd5b976ce21b42d, 0xbfe2ba38fd484027,
     0xbfb5afdf76513732},
    {0x3ffaa744a5fae7da, 0xbfc854ac1f2b7c48, 0xbff5762a6ebb2b28, 0xbff9d34fa19faa5e,
     0xbfcf386e74c715a5}};
static const int64_t integer_runs[3][3] = {{374, 36, 412}, {581, 424, 696}, {799, 4, 755}};

static void check_runs(weir_random_spec_t spec, const void* expected, int64_t count) {
  const size_t size = (size_t)count * weir_dtype_size(spec.dtype);
  weir_random_state_t state;
  char out[64];
  weir_random_state_init(&state, 1, 2);
  for (int run = 0; run < 3; ++run) {
    weir_philox_t philox =
        weir_random_reserve(&state, (uint64_t)count * WEIR_RANDOM_GROUPS_PER_OUTPUT);
    weir_random_fill(NULL, &spec, philox, out, count);
    assert_memory_equal(out, (const char*)expected + (size_t)run * size, size);
  }
  weir_random_state_deinit(&state);
}

static void test_like_tensorflow(void** state) {
  (void)state;
  check_runs((weir_random_spec_t){.kind = WEIR_RANDOM_UNIFORM, .dtype = WEIR_DTYPE_FLOAT},
             uniform_runs, 3);
  check_runs((weir_random_spec_t){.kind = WEIR_RANDOM_NORMAL, .dtype = WEIR_DTYPE_FLOAT},
             normal_runs, 3);
  check_runs((weir_random_spec_t){.kind = WEIR_RANDOM_TRUNCATED_NORMAL, .dtype = WEIR_DTYPE_DOUBLE},
             truncated_runs, 5);
  check_runs(
      (weir_random_spec_t){
          .kind = WEIR_RANDOM_UNIFORM_INT, .dtype = WEIR_DTYPE_INT64, .low = -5, .range = 1005},
      integer_runs, 3);
}

static void test_threads_do_not_show(void** state) {
  (void)state;
  enum { COUNT = 100003 };
  weir_pool_t* pool = NULL;
  double* one = weir_alloc_array(COUNT, sizeof(double));
  double* many = weir_alloc_array(COUNT, sizeof(double));
  assert_null(weir_pool_create(4, &pool));
  for (int kind = WEIR_RANDOM_UNIFORM; kind <= WEIR_RANDOM_TRUNCATED_NORMAL; ++kind) {
    weir_random_spec_t spec = {.kind = (weir_random_t)kind, .dtype = WEIR_DTYPE_DOUBLE};
    weir_random_fill(NULL, &spec, weir_philox_seed(3, 4), one, COUNT);
    weir_random_fill(pool, &spec, weir_philox_seed(3, 4), many, COUNT);
    assert_memory_equal(one, many, COUNT * sizeof(double));
  }
  weir_pool_destroy(pool);
  weir_free(one);
  weir_free(many);
}

static void test_words(void** state) {
  (void)state;
  for (uint64_t skip = 0; skip < 13; ++skip) {
    for (uint64_t before = 0; before < 6; ++before) {
      weir_random_words_t a = weir_random_words(weir_philox_seed(5, 6));
      weir_random_words_t b = a;
      for (uint64_t i = 0; i < before; ++i)
        assert_int_equal(weir_random_word(&a), weir_random_word(&b));
      for (uint64_t i = 0; i < skip; ++i) (void)weir_random_word(&a);
      weir_random_skip_words(&b, skip);
      assert_int_equal(weir_random_word(&a), weir_random_word(&b));
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_like_tensorflow),
      cmocka_unit_test(test_threads_do_not_show),
      cmocka_unit_test(test_words),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

// move_test.c — Strided copies, fills and gathers against plain loops.
#include "kernel/move/move.h"

#include <stdlib.h>

#include "testing/cmocka.h"

static uint64_t random_state = 1;

static int64_t random_below(int64_t limit) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (int64_t)((random_state >> 33) % (uint64_t)limit);
}

static void ok(weir_status_t* status) { assert_false(weir_status_report(status)); }

static void copy_plainly(size_t size, int rank, const weir_move_dim_t* dims, const char* src,
                         char* dst) {
  if (rank == 0) {
    memcpy(dst, src, size);
    return;
  }
  for (int64_t i = 0; i < dims[0].size; ++i) {
    copy_plainly(size, rank - 1, dims + 1, src + i * dims[0].src_stride * (int64_t)size,
                 dst + i * dims[0].dst_stride * (int64_t)size);
  }
}

static const weir_dtype_t types[] = {WEIR_DTYPE_INT8, WEIR_DTYPE_HALF, WEIR_DTYPE_FLOAT,
                                     WEIR_DTYPE_DOUBLE, WEIR_DTYPE_COMPLEX128};

static void check_box(weir_pool_t* pool, weir_dtype_t dtype, int rank, const weir_move_dim_t* dims,
                      int64_t src_count, int64_t dst_count, int64_t src_start, int64_t dst_start) {
  const size_t size = weir_dtype_size(dtype);
  char* src = malloc((size_t)src_count * size + 1);
  char* dst = calloc((size_t)dst_count + 1, size);
  char* expected = calloc((size_t)dst_count + 1, size);
  weir_move_dim_t work[8];
  for (size_t i = 0; i < (size_t)src_count * size; ++i) src[i] = (char)random_below(256);
  memcpy(work, dims, (size_t)rank * sizeof(*dims));
  copy_plainly(size, rank, dims, src + (size_t)src_start * size,
               expected + (size_t)dst_start * size);
  ok(weir_move_box(pool, dtype, rank, work, src + (size_t)src_start * size,
                   dst + (size_t)dst_start * size));
  assert_memory_equal(dst, expected, (size_t)dst_count * size);
  free(src);
  free(dst);
  free(expected);
}

// A permutation of a row-major source, with some dimensions reversed or repeated.
static void check_random_box(weir_pool_t* pool, int64_t largest) {
  int rank = (int)random_below(5);
  int order[5] = {0, 1, 2, 3, 4};
  weir_move_dim_t dims[5];
  for (int i = rank - 1; i > 0; --i) {
    int k = (int)random_below(i + 1), t = order[i];
    order[i] = order[k];
    order[k] = t;
  }
  for (int i = 0; i < rank; ++i) dims[i].size = 1 + random_below(largest);
  int64_t stride = 1, start = 0;
  for (int i = 0; i < rank; ++i) {
    weir_move_dim_t* d = &dims[order[i]];
    d->src_stride = stride;
    stride *= d->size;
    if (random_below(6) == 0) d->src_stride = 0;
    if (random_below(6) == 0) {
      start += d->src_stride * (d->size - 1);
      d->src_stride = -d->src_stride;
    }
  }
  weir_move_contiguous_dst(rank, dims);
  check_box(pool, types[random_below((int64_t)WEIR_COUNT_OF(types))], rank, dims, stride, stride,
            start, 0);
}

static void test_boxes(void** state) {
  (void)state;
  for (int i = 0; i < 1000; ++i) check_random_box(NULL, 11);
}

static void test_boxes_with_threads(void** state) {
  (void)state;
  weir_pool_t* pool = NULL;
  ok(weir_pool_create(3, &pool));
  for (int i = 0; i < 30; ++i) check_random_box(pool, 40);
  weir_pool_destroy(pool);
}

static void test_scatter_side(void** state) {
  (void)state;
  // Every second row and every third column of a 6 x 9 destination.
  const weir_move_dim_t dims[] = {{3, 3, 18}, {3, 1, 3}};
  for (size_t i = 0; i < WEIR_COUNT_OF(types); ++i) check_box(NULL, types[i], 2, dims, 9, 54, 0, 0);
}

static void test_empty_box(void** state) {
  (void)state;
  weir_move_dim_t dims[] = {{2, 1, 1}, {0, 1, 1}};
  ok(weir_move_box(NULL, WEIR_DTYPE_FLOAT, 2, dims, NULL, NULL));
}

static void test_transpose_of_matrices(void** state) {
  (void)state;
  for (size_t i = 0; i < WEIR_COUNT_OF(types); ++i) {
    for (int64_t rows = 1; rows < 40; rows += 7) {
      for (int64_t columns = 1; columns < 40; columns += 6) {
        const weir_move_dim_t dims[] = {{columns, 1, rows}, {rows, columns, 1}};
        check_box(NULL, types[i], 2, dims, rows * columns, rows * columns, 0, 0);
      }
    }
  }
}

// Rows so long that their columns are transposed in several parts.
static void test_transpose_in_chunks(void** state) {
  (void)state;
  const weir_move_dim_t dims[] = {{70, 1, 701}, {701, 70, 1}};
  for (size_t i = 0; i < WEIR_COUNT_OF(types); ++i)
    check_box(NULL, types[i], 2, dims, 70 * 701, 70 * 701, 0, 0);
}

static void test_reversed_rows(void** state) {
  (void)state;
  for (size_t i = 0; i < WEIR_COUNT_OF(types); ++i) {
    for (int64_t columns = 1; columns < 40; ++columns) {
      const weir_move_dim_t dims[] = {{3, columns, columns}, {columns, -1, 1}};
      check_box(NULL, types[i], 2, dims, 3 * columns, 3 * columns, columns - 1, 0);
    }
  }
}

static void test_strings(void** state) {
  (void)state;
  const int64_t dims[] = {2, 2};
  const char* const words[] = {"a", "a string too long for its element", "", "d"};
  weir_tensor_t* src = NULL;
  weir_tensor_t* dst = NULL;
  ok(weir_tensor_create_strings(2, dims, words, NULL, &src));
  ok(weir_tensor_create(WEIR_DTYPE_STRING, 2, dims, &dst));
  weir_move_dim_t box[] = {{2, 1, 2}, {2, 2, 1}};
  ok(weir_move_box(NULL, WEIR_DTYPE_STRING, 2, box, src->data, dst->data));
  assert_string_equal(weir_tensor_string(dst, 2, NULL), words[1]);
  ok(weir_move_fill(NULL, WEIR_DTYPE_STRING, (const weir_string_t*)src->data + 1, dst->data, 4));
  for (int i = 0; i < 4; ++i) assert_string_equal(weir_tensor_string(dst, i, NULL), words[1]);
  weir_tensor_release(src);
  weir_tensor_release(dst);
}

static void test_fill(void** state) {
  (void)state;
  float data[37];
  const float value = 2.5f;
  ok(weir_move_fill(NULL, WEIR_DTYPE_FLOAT, &value, data, 37));
  for (int i = 0; i < 37; ++i) assert_true(data[i] == value);
  weir_move_zero(WEIR_DTYPE_FLOAT, data, 37);
  for (int i = 0; i < 37; ++i) assert_true(data[i] == 0);
}

static void check_gather(weir_dtype_t index_type, int64_t inner, int64_t bad_at) {
  const weir_move_gather_t g = {
      .batch = 2, .outer = 3, .rows = 5, .index_count = 300, .inner = inner};
  const int64_t count = g.batch * g.index_count;
  weir_tensor_t* indices = NULL;
  int64_t bad = 0;
  ok(weir_tensor_create(index_type, 1, &count, &indices));
  for (int64_t i = 0; i < count; ++i) {
    int64_t value = i == bad_at ? 5 : random_below(5);
    weir_move_set_int(indices, i, value);
  }
  int32_t* src = malloc((size_t)(2 * 3 * 5 * inner) * sizeof(*src));
  int32_t* dst = malloc((size_t)(2 * 3 * 300 * inner) * sizeof(*dst));
  for (int64_t i = 0; i < 2 * 3 * 5 * inner; ++i) src[i] = (int32_t)i;
  ok(weir_move_gather(NULL, WEIR_DTYPE_INT32, &g, src, indices, dst, &bad));
  assert_int_equal(bad, bad_at);
  for (int64_t i = 0; bad < 0 && i < 2 * 3 * 300 * inner; ++i) {
    int64_t row = i / inner, slab = row / 300;
    int64_t index = weir_move_int_at(indices, slab / 3 * 300 + row % 300);
    assert_int_equal(dst[i], (slab * 5 + index) * inner + i % inner);
  }
  free(src);
  free(dst);
  weir_tensor_release(indices);
}

static void test_gather(void** state) {
  (void)state;
  check_gather(WEIR_DTYPE_INT32, 1, -1);
  check_gather(WEIR_DTYPE_INT64, 7, -1);
  check_gather(WEIR_DTYPE_INT16, 2, -1);
  check_gather(WEIR_DTYPE_INT32, 1, 417);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_boxes),
      cmocka_unit_test(test_boxes_with_threads),
      cmocka_unit_test(test_scatter_side),
      cmocka_unit_test(test_empty_box),
      cmocka_unit_test(test_transpose_of_matrices),
      cmocka_unit_test(test_transpose_in_chunks),
      cmocka_unit_test(test_reversed_rows),
      cmocka_unit_test(test_strings),
      cmocka_unit_test(test_fill),
      cmocka_unit_test(test_gather),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

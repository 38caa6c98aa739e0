// strided_slice_test.c — Slices with masks, in full and in part known.
#include "kernel/move/strided_slice.h"

#include "testing/cmocka.h"

static const int64_t dims[] = {4, 5, 6};

static void expect(const weir_strided_slice_spec_t* spec, int rank, const int64_t* out_dims) {
  weir_strided_slice_t slice;
  assert_false(weir_status_report(weir_strided_slice_resolve(spec, 3, dims, &slice)));
  assert_int_equal(slice.out_rank, rank);
  for (int i = 0; i < rank; ++i) assert_int_equal(slice.out_dims[i], out_dims[i]);
}

static void expect_error(const weir_strided_slice_spec_t* spec, const char* text) {
  weir_strided_slice_t slice;
  weir_status_t* status = weir_strided_slice_resolve(spec, 3, dims, &slice);
  assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
  assert_non_null(strstr(weir_status_message(status), text));
  weir_status_destroy(status);
}

static void test_plain(void** state) {
  (void)state;
  const int64_t begin[] = {1, -1}, end[] = {3, 0}, strides[] = {1, -2}, out[] = {2, 2, 6};
  expect(&(weir_strided_slice_spec_t){.count = 2, .begin = begin, .end = end, .strides = strides},
         3, out);
}

static void test_masks(void** state) {
  (void)state;
  // x[..., newaxis, 2]
  const int64_t begin[] = {0, 0, 2}, end[] = {0, 0, 3}, strides[] = {1, 1, 1}, out[] = {4, 5, 1};
  expect(&(weir_strided_slice_spec_t){.count = 3,
                                      .begin = begin,
                                      .end = end,
                                      .strides = strides,
                                      .ellipsis_mask = 1,
                                      .new_axis_mask = 2,
                                      .shrink_axis_mask = 4},
         3, out);
}

static void test_unknown_bounds(void** state) {
  (void)state;
  const int64_t strides[] = {1, 1, -1}, out[] = {-1, 6};
  // x[a:b, c, ::-1] with a, b, c not known
  expect(
      &(weir_strided_slice_spec_t){
          .count = 3, .strides = strides, .begin_mask = 4, .end_mask = 4, .shrink_axis_mask = 2},
      2, out);
}

static void test_errors(void** state) {
  (void)state;
  const int64_t begin[] = {9, 0, 0, 0}, end[] = {10, 1, 1, 1}, strides[] = {1, 1, 1, 1},
                zero[] = {0};
  weir_strided_slice_spec_t spec = {
      .count = 1, .begin = begin, .end = end, .strides = strides, .shrink_axis_mask = 1};
  expect_error(&spec, "out of bounds");
  spec = (weir_strided_slice_spec_t){.count = 1, .begin = begin, .end = end, .strides = zero};
  expect_error(&spec, "must be non-zero");
  spec = (weir_strided_slice_spec_t){.count = 4, .begin = begin, .end = end, .strides = strides};
  expect_error(&spec, "Index out of range using input dim 3");
  spec.ellipsis_mask = 3;
  expect_error(&spec, "Multiple ellipses");
}

static void test_box(void** state) {
  (void)state;
  const int64_t begin[] = {1, 4}, end[] = {3, 1}, strides[] = {1, -2};
  weir_strided_slice_spec_t spec = {.count = 2, .begin = begin, .end = end, .strides = strides};
  weir_strided_slice_t slice;
  weir_move_dim_t box[3];
  assert_false(weir_status_report(weir_strided_slice_resolve(&spec, 3, dims, &slice)));
  assert_int_equal(weir_strided_slice_box(&slice, dims, box), 1 * 30 + 4 * 6);
  assert_int_equal(box[0].src_stride, 30);
  assert_int_equal(box[1].src_stride, -12);
  assert_int_equal(box[1].size, 2);
  assert_int_equal(box[0].dst_stride, 12);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_plain),
      cmocka_unit_test(test_masks),
      cmocka_unit_test(test_unknown_bounds),
      cmocka_unit_test(test_errors),
      cmocka_unit_test(test_box),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

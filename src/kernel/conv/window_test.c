// window_test.c — Sizes and padding of sliding windows, in the cases where TensorFlow's rules
// differ from school arithmetic.
#include "kernel/conv/window.h"

#include "testing/cmocka.h"

static void expect(const weir_window_t* w, int64_t in, int64_t size, int64_t want_out,
                   int64_t want_pad) {
  int64_t out, pad;
  assert_null(weir_window_output(w, 0, in, size, &out, &pad));
  assert_int_equal(out, want_out);
  assert_int_equal(pad, want_pad);
}

static void expect_shape(const weir_window_t* w, int64_t in, int64_t size, int64_t want) {
  int64_t out;
  assert_null(weir_window_output_shape(w, 0, in, size, &out));
  assert_int_equal(out, want);
}

static void expect_refused(weir_status_t* take_status, const char* text) {
  assert_int_equal(weir_status_code(take_status), WEIR_INVALID_ARGUMENT);
  assert_non_null(strstr(weir_status_message(take_status), text));
  weir_status_destroy(take_status);
}

static void test_same(void** state) {
  (void)state;
  weir_window_t w = {.padding = WEIR_PADDING_SAME, .stride = {1, 1}, .dilation = {1, 1}};
  expect(&w, 5, 3, 5, 1);
  expect(&w, 5, 4, 5, 1);  // the odd one goes after
  w.stride[0] = 2;
  expect(&w, 5, 3, 3, 1);
  expect(&w, 6, 3, 3, 0);
  expect(&w, 6, 1, 3, 0);
  expect(&w, 0, 3, 0, 0);
  expect_shape(&w, -1, 3, -1);
  expect_shape(&w, 0, 3, 0);
  expect_shape(&w, 6, -1, 3);  // the output does not depend on the window
}

static void test_valid(void** state) {
  (void)state;
  weir_window_t w = {.padding = WEIR_PADDING_VALID, .stride = {2, 1}, .dilation = {2, 1}};
  int64_t out, pad;
  expect(&w, 7, 3, 2, 0);
  expect(&w, 5, 3, 1, 0);
  expect(&w, 2, 2, 0, 0);  // less than a stride too short: there is none, and a kernel takes that
  expect_refused(weir_window_output(&w, 0, 0, 3, &out, &pad),
                 "Computed output size would be negative: -1");
  expect_shape(&w, 7, 3, 2);
  expect_shape(&w, 7, -1, -1);
  expect_shape(&w, -1, 3, -1);
  expect_refused(weir_window_output_shape(&w, 0, 2, 2, &out), "subtracting 3 from 2");
}

static void test_rates(void** state) {
  (void)state;
  weir_window_t w = {.padding = WEIR_PADDING_SAME, .stride = {0, 1}, .dilation = {1, 1}};
  int64_t out, pad;
  expect_refused(weir_window_output(&w, 0, 2, 3, &out, &pad), "Stride must be > 0, but got 0");
  expect_refused(weir_window_output_shape(&w, 0, 2, 3, &out), "Stride must be > 0, but got 0");
  w = (weir_window_t){.stride = {1, 1}, .dilation = {0, 1}};
  expect_refused(weir_window_output_shape(&w, 0, 2, 3, &out), "Dilation rate must be >= 1");
}

static void test_explicit(void** state) {
  (void)state;
  weir_window_t w = {.padding = WEIR_PADDING_EXPLICIT,
                     .stride = {1, 1},
                     .dilation = {1, 1},
                     .pads = {{1, 2}, {0, 0}}};
  expect(&w, 4, 3, 5, 1);
}

static void test_formats(void** state) {
  (void)state;
  weir_window_t w = {.axes = 2,
                     .is_nchw = true,
                     .padding = WEIR_PADDING_SAME,
                     .stride = {2, 1},
                     .dilation = {1, 1}};
  weir_conv_t conv;
  int64_t dims[4];
  assert_null(weir_window_conv(&w, "test", (const int64_t[]){2, 6, 5, 4},
                               (const int64_t[]){3, 3, 3, 8}, false, &conv));
  assert_int_equal(conv.groups, 2);
  assert_int_equal(conv.group_out, 4);
  assert_memory_equal(conv.out, ((const int64_t[]){1, 3, 4}), sizeof(conv.out));
  weir_window_dims(&w, conv.batch, conv.out + 1, conv.out_c, dims);
  assert_memory_equal(dims, ((const int64_t[]){2, 8, 3, 4}), sizeof(dims));
  weir_status_t* status = weir_window_conv(&w, "test", (const int64_t[]){2, 6, 5, 4},
                                           (const int64_t[]){3, 3, 4, 8}, false, &conv);
  assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
  weir_status_destroy(status);
}

static void test_volumes(void** state) {
  (void)state;
  weir_named_attr_t items[] = {weir_attr_string("data_format", "NDHWC"),
                               weir_attr_string("padding", "VALID"),
                               weir_attr_ints("strides", (const int64_t[]){1, 3, 2, 1, 1}, 5),
                               weir_attr_ints("dilations", (const int64_t[]){1, 1, 1, 2, 1}, 5)};
  weir_window_t w;
  weir_conv_t conv;
  int64_t dims[5];
  assert_null(weir_window_read_conv((weir_attrs_t){items, WEIR_COUNT_OF(items)},
                                    WEIR_INVALID_ARGUMENT, &w));
  assert_int_equal(w.axes, 3);
  assert_null(weir_window_conv(&w, "test", (const int64_t[]){2, 7, 6, 5, 4},
                               (const int64_t[]){1, 2, 3, 4, 8}, false, &conv));
  assert_memory_equal(conv.out, ((const int64_t[]){3, 3, 1}), sizeof(conv.out));
  weir_window_dims(&w, conv.batch, conv.out, conv.out_c, dims);
  assert_memory_equal(dims, ((const int64_t[]){2, 3, 3, 1, 8}), sizeof(dims));
  items[0] = weir_attr_string("data_format", "NHWC");  // five strides for four dimensions
  weir_status_t* status =
      weir_window_read_conv((weir_attrs_t){items, WEIR_COUNT_OF(items)}, WEIR_INVALID_ARGUMENT, &w);
  assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
  weir_status_destroy(status);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_same),     cmocka_unit_test(test_valid),
      cmocka_unit_test(test_explicit), cmocka_unit_test(test_formats),
      cmocka_unit_test(test_volumes),  cmocka_unit_test(test_rates),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

// slice_test.c — Tests of tensor slices.
#include "file/slice.h"

#include "file/testing.h"

static void test_specs(void** state) {
  (void)state;
  int rank = 0;
  int64_t dims[WEIR_MAX_RANK];
  weir_slice_t slice;
  weir_strbuf_t text = {0};
  CHECK_OK(weir_slice_parse_spec(weir_view_of("4 10 1,2:-"), &rank, dims, &slice));
  assert_true(rank == 2 && dims[0] == 4 && dims[1] == 10);
  assert_true(slice.starts[0] == 1 && slice.lengths[0] == 2 && slice.lengths[1] == -1);
  assert_false(weir_slice_is_full(&slice, dims));
  weir_slice_append(&slice, &text);
  assert_string_equal(text.data, "1,2:-");
  weir_strbuf_free(&text);
  CHECK_OK(weir_slice_parse_spec(weir_view_of("4 10 0,4:-"), &rank, dims, &slice));
  assert_true(weir_slice_is_full(&slice, dims));
}

static void test_bad_specs(void** state) {
  (void)state;
  static const struct {
    const char* spec;
    weir_code_t code;
    const char* text;
  } kCases[] = {
      {"", WEIR_INVALID_ARGUMENT, "Need least two elements"},
      {"4", WEIR_INVALID_ARGUMENT, "Need least two elements"},
      {"4 4", WEIR_INVALID_ARGUMENT, "Expected a pair of numbers or '-' but got '4'"},
      {"4 4 0,2", WEIR_INTERNAL, "Mismatching ranks: shape = [4,4], slice = 0,2"},
      {"4 4 0,2:a", WEIR_INVALID_ARGUMENT, "but got 'a'"},
      {"4 4 0,9:-", WEIR_INTERNAL, "Extent in dimension 0 out of bounds"},
      {"4 4 9223372036854775807,9223372036854775807:-", WEIR_INTERNAL, "out of bounds"},
      {"x 4 -:-", WEIR_INVALID_ARGUMENT, "Non numerical dimension"},
      {"-1 4 -:-", WEIR_INVALID_ARGUMENT, "Non numerical dimension"},
      {"4 4 0,0:-", WEIR_INVALID_ARGUMENT, "positive length"},
      {"4 4 -1,1:-", WEIR_INVALID_ARGUMENT, "non-negative start"},
  };
  for (size_t i = 0; i < WEIR_COUNT_OF(kCases); ++i) {
    int rank = 0;
    int64_t dims[WEIR_MAX_RANK];
    weir_slice_t slice;
    check_status(weir_slice_parse_spec(weir_view_of(kCases[i].spec), &rank, dims, &slice),
                 kCases[i].code, kCases[i].text, kCases[i].spec, __FILE__, __LINE__);
  }
}

static void test_proto_round_trip(void** state) {
  (void)state;
  weir_slice_t slice = {.rank = 3, .starts = {0, 5, 0}, .lengths = {-1, 300, 1}};
  weir_slice_t back;
  weir_strbuf_t proto = {0};
  weir_slice_write(&slice, &proto);
  CHECK_OK(weir_slice_parse(weir_strbuf_view(&proto), &back));
  assert_int_equal(back.rank, 3);
  assert_memory_equal(back.starts, slice.starts, 3 * sizeof(int64_t));
  assert_memory_equal(back.lengths, slice.lengths, 3 * sizeof(int64_t));
  weir_strbuf_free(&proto);
}

// The first key is one TensorFlow wrote; the others follow the rules of its code.
static void test_keys(void** state) {
  (void)state;
  weir_slice_t slice = {.rank = 2, .starts = {0, 0}, .lengths = {2, -1}};
  weir_strbuf_t key = {0};
  weir_slice_append_key(weir_view_of("x"), &slice, &key);
  assert_int_equal(key.size, 10);
  assert_memory_equal(key.data, "\0x\0\1\1\2\x80\x82\x80\x7f", 10);
  assert_true(weir_slice_is_key(weir_strbuf_view(&key)));
  key.size = 0;
  slice = (weir_slice_t){.rank = 2, .starts = {64, 8192}, .lengths = {300, 1 << 20}};
  weir_slice_append_key(weir_view("\0\xff", 2), &slice, &key);
  static const uint8_t kExpected[] = {0,    0,    0xff, 0xff, 0,    0, 1,    1,    2, 0xc0,
                                      0x40, 0xc1, 0x2c, 0xe0, 0x20, 0, 0xf0, 0x10, 0, 0};
  assert_int_equal(key.size, sizeof kExpected);
  assert_memory_equal(key.data, kExpected, sizeof kExpected);
  weir_strbuf_free(&key);
}

// Copies between all pairs of boxes of a small tensor, against a plain loop.
static void check_copy(const weir_slice_t* from, const weir_slice_t* to) {
  weir_slice_t common;
  weir_tensor_t *src = NULL, *dst = NULL;
  if (!weir_slice_intersect(from, to, &common)) return;
  CHECK_OK(weir_tensor_create(WEIR_DTYPE_INT32, 2, from->lengths, &src));
  CHECK_OK(weir_tensor_create(WEIR_DTYPE_INT32, 2, to->lengths, &dst));
  int32_t* s = src->data;
  int32_t* d = dst->data;
  for (int64_t i = 0; i < src->count; ++i) {
    s[i] = (int32_t)((from->starts[0] + i / from->lengths[1]) * 100 + from->starts[1] +
                     i % from->lengths[1]);
  }
  for (int64_t i = 0; i < dst->count; ++i) d[i] = -1;
  CHECK_OK(weir_slice_copy(&common, from, src, to, dst));
  int64_t copied = 0;
  for (int64_t i = 0; i < dst->count; ++i) {
    int64_t row = to->starts[0] + i / to->lengths[1];
    int64_t column = to->starts[1] + i % to->lengths[1];
    if (d[i] == -1) continue;
    assert_int_equal(d[i], row * 100 + column);
    ++copied;
  }
  assert_int_equal(copied, weir_slice_count(&common));
  weir_tensor_release(src);
  weir_tensor_release(dst);
}

static void test_copies(void** state) {
  (void)state;
  weir_slice_t boxes[36];
  int count = 0;
  for (int a = 0; a < 3; ++a) {
    for (int b = a + 1; b <= 3; ++b) {
      for (int c = 0; c < 3; ++c) {
        for (int d = c + 1; d <= 3; ++d) {
          boxes[count++] = (weir_slice_t){.rank = 2, .starts = {a, c}, .lengths = {b - a, d - c}};
        }
      }
    }
  }
  for (int i = 0; i < count; ++i) {
    for (int k = 0; k < count; ++k) check_copy(&boxes[i], &boxes[k]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_specs),
      cmocka_unit_test(test_bad_specs),
      cmocka_unit_test(test_proto_round_trip),
      cmocka_unit_test(test_keys),
      cmocka_unit_test(test_copies),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

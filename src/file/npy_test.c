// npy_test.c — Tests of .npy files; tests/files_test.py compares with NumPy itself.
#include "file/npy.h"

#include "file/testing.h"

// Parses version 1 with the dictionary |dict| and the bytes |data|.
static weir_status_t* parse(const char* dict, const void* data, size_t size, weir_tensor_t** out) {
  weir_strbuf_t file = {0};
  size_t dict_size = strlen(dict);
  weir_strbuf_append(&file, "\x93NUMPY\1\0", 8);
  weir_strbuf_putc(&file, (char)(dict_size & 0xff));
  weir_strbuf_putc(&file, (char)(dict_size >> 8));
  weir_strbuf_append(&file, dict, dict_size);
  weir_strbuf_append(&file, data, size);
  weir_status_t* status = weir_npy_parse(weir_strbuf_view(&file), out);
  weir_strbuf_free(&file);
  return status;
}

static void test_orders(void** state) {
  (void)state;
  static const int16_t kData[] = {1, 2, 3, 4, 5, 6};
  static const int16_t kTransposed[] = {1, 3, 5, 2, 4, 6};
  static const uint8_t kBig[] = {0x01, 0x02};
  weir_tensor_t* tensor = NULL;
  CHECK_OK(
      parse("{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3), }\n", kData, 12, &tensor));
  assert_int_equal(tensor->rank, 2);
  assert_memory_equal(tensor->data, kTransposed, 12);
  weir_tensor_release(tensor);
  CHECK_OK(parse("{'shape':(),\"descr\":'>i2','fortran_order':False}", kBig, 2, &tensor));
  assert_int_equal(*(int16_t*)tensor->data, 0x0102);
  assert_int_equal(tensor->rank, 0);
  weir_tensor_release(tensor);
  CHECK_OK(parse("{'descr': 'i2', 'fortran_order': False, 'shape': (6,), }", kData, 12, &tensor));
  assert_int_equal(tensor->dtype, WEIR_DTYPE_INT16);  // without an order: the machine's
  assert_memory_equal(tensor->data, kData, 12);
  weir_tensor_release(tensor);
}

static void test_strings(void** state) {
  (void)state;
  weir_tensor_t* tensor = NULL;
  size_t size = 0;
  CHECK_OK(
      parse("{'descr': '|S3', 'fortran_order': False, 'shape': (2,), }", "ab\0xyz", 6, &tensor));
  assert_string_equal(weir_tensor_string(tensor, 0, &size), "ab");
  assert_int_equal(size, 2);
  weir_tensor_release(tensor);
  static const uint32_t kText[] = {0x20ac, 'x', 0};
  CHECK_OK(parse("{'descr': '<U3', 'fortran_order': False, 'shape': (1,), }", kText, 12, &tensor));
  assert_string_equal(weir_tensor_string(tensor, 0, &size), "\xe2\x82\xacx");
  weir_tensor_release(tensor);
}

static void test_bad_files(void** state) {
  (void)state;
  weir_tensor_t* tensor = NULL;
  static const char kZeros[64];
#define DICT(descr, order, shape) \
  "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }"
  CHECK_FAILS(weir_npy_parse(weir_view_of("hello world"), &tensor), INVALID_ARGUMENT, "not an npy");
  CHECK_FAILS(weir_npy_parse(weir_view("\x93NUMPY\4\0\0\0\0\0", 12), &tensor), UNIMPLEMENTED,
              "version 4.0");
  CHECK_FAILS(weir_npy_parse(weir_view("\x93NUMPY\1\0\xff\0", 10), &tensor), DATA_LOSS, "header");
  CHECK_FAILS(parse(DICT("'<f4'", "False", "(4,)"), kZeros, 15, &tensor), DATA_LOSS, "ends early");
  CHECK_FAILS(parse(DICT("'<f4'", "False", "(-4,)"), kZeros, 16, &tensor), INVALID_ARGUMENT,
              "dimension");
  CHECK_FAILS(parse(DICT("'<f4'", "False", "(4294967296, 4294967296)"), kZeros, 16, &tensor),
              INVALID_ARGUMENT, "");
  CHECK_FAILS(parse(DICT("'<f4'", "Maybe", "(4,)"), kZeros, 16, &tensor), INVALID_ARGUMENT,
              "order");
  CHECK_FAILS(parse(DICT("'|O'", "False", "(4,)"), kZeros, 16, &tensor), UNIMPLEMENTED, "'|O'");
  CHECK_FAILS(parse(DICT("'<M8[ns]'", "False", "(4,)"), kZeros, 16, &tensor), INVALID_ARGUMENT,
              "size");
  CHECK_FAILS(parse(DICT("'<f16'", "False", "(1,)"), kZeros, 16, &tensor), UNIMPLEMENTED, "'<f16'");
  CHECK_FAILS(parse(DICT("[('a', '<f4')]", "False", "(1,)"), kZeros, 16, &tensor), UNIMPLEMENTED,
              "structures");
  CHECK_FAILS(parse("{'descr': '<f4', 'shape': (1,)}", kZeros, 16, &tensor), INVALID_ARGUMENT,
              "expected");
  CHECK_FAILS(parse("{'descr': '<f4', 'shape': (1,)", kZeros, 0, &tensor), INVALID_ARGUMENT,
              "closed");
  assert_null(tensor);
}

static void test_unwritable(void** state) {
  (void)state;
  weir_tensor_t* tensor = NULL;
  weir_strbuf_t out = {0};
  const char* texts[] = {"a"};
  const size_t sizes[] = {2};
  CHECK_OK(weir_tensor_create(WEIR_DTYPE_BFLOAT16, 0, NULL, &tensor));
  CHECK_FAILS(weir_npy_write(tensor, &out), UNIMPLEMENTED, "bfloat16");
  weir_tensor_release(tensor);
  CHECK_OK(weir_tensor_create_strings(0, NULL, texts, sizes, &tensor));
  CHECK_FAILS(weir_npy_write(tensor, &out), INVALID_ARGUMENT, "zero byte");
  weir_tensor_release(tensor);
  weir_strbuf_free(&out);
}

static void test_files(void** state) {
  (void)state;
  weir_tensor_t *written = NULL, *back = NULL;
  CHECK_OK(weir_tensor_create_from(WEIR_DTYPE_DOUBLE, 1, (const int64_t[]){2},
                                   (const double[]){1, 2}, &written));
  CHECK_OK(weir_npy_save(test_path("a.npy"), written));
  CHECK_OK(weir_npy_load(test_path("a.npy"), &back));
  assert_memory_equal(back->data, written->data, 16);
  weir_tensor_release(back);
  weir_tensor_release(written);
  CHECK_FAILS(weir_npy_load(test_path("b.npy"), &back), NOT_FOUND, "b.npy");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      FILE_TEST(test_orders),     FILE_TEST(test_strings), FILE_TEST(test_bad_files),
      FILE_TEST(test_unwritable), FILE_TEST(test_files),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

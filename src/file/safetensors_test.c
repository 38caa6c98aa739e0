// safetensors_test.c — Tests of safetensors files; tests/formats_test.py compares with the package
// of that name.
#include "file/safetensors.h"

#include "file/coding.h"
#include "file/testing.h"
#include "tensor/tensor.h"

// Parses the header |text| with |size| bytes of tensors behind it.
static weir_status_t* parse(const char* text, size_t size, weir_safetensors_t** out) {
  static _Alignas(64) char bytes[1024];
  weir_mapping_t* mapping = NULL;
  memset(bytes, 0, sizeof bytes);
  weir_encode64(bytes, strlen(text));
  memcpy(bytes + 8, text, strlen(text));
  CHECK_OK(weir_mapping_from_view(weir_view(bytes, 8 + strlen(text) + size), &mapping));
  return weir_safetensors_parse(mapping, "test", out);
}

#define TENSOR(type, shape, offsets) \
  "{\"dtype\":\"" type "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static void test_header(void** state) {
  (void)state;
  weir_safetensors_t* file = NULL;
  weir_tensor_t* tensor = NULL;
  CHECK_OK(
      parse("{\"__metadata__\":{\"by\":\"hand\"},\"b\":" TENSOR(
                "I16", "[2,2]",
                "[4,12]") ",\"a\":" TENSOR("F32", "[]", "[0,4]") ",\"e\":" TENSOR("F64", "[0,9]",
                                                                                  "[4,4]") "}   ",
            12, &file));
  assert_int_equal(weir_safetensors_count(file), 3);
  assert_string_equal(weir_safetensors_at(file, 0)->name, "a");
  assert_int_equal(weir_safetensors_at(file, 0)->rank, 0);
  assert_string_equal(weir_safetensors_at(file, 2)->type, "I16");
  assert_int_equal(weir_safetensors_find(file, "b")->size, 8);
  assert_null(weir_safetensors_find(file, "c"));
  assert_null(weir_safetensors_at(file, 3));
  assert_string_equal(weir_safetensors_note_at(file, 0).value, "hand");
  assert_null(weir_safetensors_note_at(file, 1).key);
  CHECK_OK(weir_safetensors_read(file, "e", &tensor));
  assert_int_equal(tensor->count, 0);
  weir_tensor_release(tensor);
  CHECK_FAILS(weir_safetensors_read(file, "x", &tensor), NOT_FOUND, "'x'");
  weir_safetensors_close(file);
}

static void check_refused(const char* header, size_t size, weir_code_t code, const char* text) {
  weir_safetensors_t* file = NULL;
  check_status(parse(header, size, &file), code, text, header, __FILE__, __LINE__);
  assert_null(file);
}

static void test_bad_files(void** state) {
  (void)state;
  const weir_code_t bad = WEIR_INVALID_ARGUMENT;
  check_refused("", 0, bad, "no header");
  check_refused("[]", 0, bad, "no header");
  check_refused("{\"a\":1", 0, bad, "JSON");
  check_refused("{\"a\":1}", 0, bad, "'a' is no object");
  check_refused("{\"a\":" TENSOR("F32", "[1]", "[0,4]") "}", 3, WEIR_DATA_LOSS,
                "within tensor 'a'");
  check_refused("{\"a\":" TENSOR("F32", "[1]", "[0,4]") "}", 5, bad, "1 bytes belong to no tensor");
  check_refused("{\"a\":" TENSOR("F32", "[1]", "[4,8]") "}", 8, bad, "after a hole");
  check_refused("{\"a\":" TENSOR("F32", "[1]", "[0,4]") ",\"b\":" TENSOR("F32", "[1]", "[2,6]") "}",
                6, bad, "overlaps");
  check_refused("{\"a\":" TENSOR("F32", "[1]", "[0,4]") ",\"a\":" TENSOR("F32", "[1]", "[4,8]") "}",
                8, bad, "twice");
  check_refused("{\"a\":" TENSOR("F32", "[2]", "[0,4]") "}", 4, bad, "its shape needs 8");
  check_refused("{\"a\":" TENSOR("F32", "[-1]", "[0,4]") "}", 4, bad, "bad dimension");
  check_refused("{\"a\":" TENSOR("F32", "[4294967296,4294967296]", "[0,4]") "}", 4, bad,
                "many elements");
  check_refused("{\"a\":" TENSOR("F32", "[1]", "[4,0]") "}", 4, bad, "data_offsets");
  check_refused("{\"a\":" TENSOR("F32", "[1]", "[0]") "}", 4, bad, "data_offsets");
  check_refused("{\"a\":" TENSOR("Q4", "[1]", "[0,4]") "}", 4, bad, "dtype");
  check_refused("{\"a\":" TENSOR("F4", "[1]", "[0,1]") "}", 1, bad, "end with a byte");
  check_refused("{\"__metadata__\":{\"a\":1}}", 0, bad, "no string");
  check_refused("{\"__metadata__\":{},\"__metadata__\":{}}", 0, bad, "twice");
  weir_safetensors_t* file = NULL;
  weir_mapping_t* mapping = NULL;
  CHECK_OK(weir_mapping_from_view(weir_view("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10), &mapping));
  CHECK_FAILS(weir_safetensors_parse(mapping, "t", &file), INVALID_ARGUMENT, "header of");
  CHECK_OK(weir_mapping_from_view(weir_view("\x09\0\0\0\0\0\0\0{}", 10), &mapping));
  CHECK_FAILS(weir_safetensors_parse(mapping, "t", &file), DATA_LOSS, "within its header");
  CHECK_OK(weir_mapping_from_view(weir_view("{}", 2), &mapping));
  CHECK_FAILS(weir_safetensors_parse(mapping, "t", &file), INVALID_ARGUMENT, "2 bytes");
}

static void test_types_that_are_not_ours(void** state) {
  (void)state;
  weir_safetensors_t* file = NULL;
  weir_tensor_t* tensor = NULL;
  CHECK_OK(parse("{\"a\":" TENSOR("F4", "[2]", "[0,1]") "}", 1, &file));
  assert_int_equal(weir_safetensors_at(file, 0)->dtype, WEIR_DTYPE_INVALID);
  CHECK_FAILS(weir_safetensors_read(file, "a", &tensor), UNIMPLEMENTED, "of type F4");
  weir_safetensors_close(file);
}

// What is written is aligned, so that reading copies nothing; a tensor outlives its file.
static void test_round_trip(void** state) {
  (void)state;
  weir_tensor_t *tensors[2] = {NULL, NULL}, *back = NULL;
  weir_safetensors_t* file = NULL;
  const char* names[] = {"byte", "wide \"x\""};
  const weir_safetensors_note_t note = {"format", "weir"};
  CHECK_OK(weir_tensor_create_from(WEIR_DTYPE_UINT8, 1, (const int64_t[]){3}, "abc", &tensors[0]));
  CHECK_OK(weir_tensor_create_from(WEIR_DTYPE_DOUBLE, 2, (const int64_t[]){1, 2},
                                   (const double[]){1, 2}, &tensors[1]));
  const char* path = test_path("a.safetensors");
  CHECK_OK(weir_safetensors_save(path, names, tensors, 2, &note, 1));
  CHECK_OK(weir_safetensors_open(path, &file));
  assert_string_equal(weir_safetensors_at(file, 0)->name, names[1]);
  CHECK_OK(weir_safetensors_read(file, names[1], &back));
  assert_non_null(back->deallocator);  // a view
  weir_safetensors_close(file);
  assert_memory_equal(back->data, tensors[1]->data, 16);
  for (int i = 0; i < 2; ++i) weir_tensor_release(tensors[i]);
  weir_tensor_release(back);
}

static void test_unwritable(void** state) {
  (void)state;
  weir_tensor_t* text = NULL;
  const char* names[] = {"a", "a"};
  CHECK_OK(weir_tensor_create_strings(0, NULL, names, NULL, &text));
  CHECK_FAILS(weir_safetensors_save(test_path("a"), names, &text, 1, NULL, 0), UNIMPLEMENTED,
              "no type for string");
  weir_tensor_release(text);
  weir_tensor_t* twice[2] = {NULL, NULL};
  CHECK_OK(weir_tensor_create(WEIR_DTYPE_INT8, 0, NULL, &twice[0]));
  twice[1] = twice[0];
  CHECK_FAILS(weir_safetensors_save(test_path("a"), names, twice, 2, NULL, 0), INVALID_ARGUMENT,
              "twice");
  weir_tensor_release(twice[0]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      FILE_TEST(test_header),
      FILE_TEST(test_bad_files),
      FILE_TEST(test_types_that_are_not_ours),
      FILE_TEST(test_round_trip),
      FILE_TEST(test_unwritable),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

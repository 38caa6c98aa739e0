// tensor_proto_test.c — Tests of reading and writing TensorProto.

#include "tensor/tensor_proto.h"

#include <stdio.h>

#include "tensor/cast.h"
#include "tensor/handle.h"
#include "testing/cmocka.h"
#include "wire/wire.h"

// Starts a TensorProto of rank 1; the caller appends its values.
static weir_strbuf_t begin_proto(weir_dtype_t dtype, int64_t dim) {
  weir_strbuf_t out = {0};
  weir_wire_put_int(&out, 1, dtype);
  size_t begin = weir_wire_begin(&out, 2);
  weir_shape_write_dims(1, &dim, &out);
  weir_wire_end(&out, begin);
  return out;
}

static weir_tensor_t* parse(weir_strbuf_t* take_proto) {
  weir_tensor_t* tensor = NULL;
  weir_status_t* status = weir_tensor_parse(weir_strbuf_view(take_proto), &tensor);
  if (status) fail_msg("%s", weir_status_message(status));
  weir_strbuf_free(take_proto);
  return tensor;
}

static void expect_refused(weir_strbuf_t* take_proto, weir_code_t code, const char* text) {
  weir_tensor_t* tensor = NULL;
  weir_status_t* status = weir_tensor_parse(weir_strbuf_view(take_proto), &tensor);
  assert_int_equal(weir_status_code(status), code);
  assert_non_null(strstr(weir_status_message(status), text));
  assert_null(tensor);
  weir_status_destroy(status);
  weir_strbuf_free(take_proto);
}

static double at(const weir_tensor_t* tensor, int64_t index) {
  double value = 0;
  weir_dtype_t dtype = weir_tensor_dtype(tensor);
  const char* data = weir_tensor_data(tensor);
  assert_true(weir_element_to_double(dtype, data + (size_t)index * weir_dtype_size(dtype), &value));
  return value;
}

// Every type whose values are varints: one unpacked, two packed, the last repeated.
static void test_varint_lists(void** state) {
  (void)state;
  static const struct {
    weir_dtype_t dtype;
    uint32_t field;
  } rows[] = {{WEIR_DTYPE_INT32, 7},   {WEIR_DTYPE_INT16, 7},  {WEIR_DTYPE_UINT16, 7},
              {WEIR_DTYPE_INT8, 7},    {WEIR_DTYPE_UINT8, 7},  {WEIR_DTYPE_QINT8, 7},
              {WEIR_DTYPE_QUINT8, 7},  {WEIR_DTYPE_QINT16, 7}, {WEIR_DTYPE_QUINT16, 7},
              {WEIR_DTYPE_QINT32, 7},  {WEIR_DTYPE_INT64, 10}, {WEIR_DTYPE_UINT32, 16},
              {WEIR_DTYPE_UINT64, 17}, {WEIR_DTYPE_INT4, 7},   {WEIR_DTYPE_UINT4, 7}};
  for (size_t i = 0; i < WEIR_COUNT_OF(rows); ++i) {
    weir_strbuf_t proto = begin_proto(rows[i].dtype, 9);
    weir_wire_put_int(&proto, rows[i].field, 5);
    weir_wire_put_bytes(&proto, rows[i].field, "\x06\x07", 2);
    weir_tensor_t* tensor = parse(&proto);
    assert_true(at(tensor, 0) == 5 && at(tensor, 1) == 6 && at(tensor, 2) == 7);
    assert_true(at(tensor, 3) == 7 && at(tensor, 8) == 7);
    weir_tensor_release(tensor);
  }
  weir_strbuf_t proto = begin_proto(WEIR_DTYPE_INT8, 1);
  weir_wire_put_int(&proto, 7, -5);
  weir_tensor_t* tensor = parse(&proto);
  assert_true(at(tensor, 0) == -5);
  weir_tensor_release(tensor);
}

static void test_floating_lists(void** state) {
  (void)state;
  weir_strbuf_t proto = begin_proto(WEIR_DTYPE_FLOAT, 4);
  weir_wire_put_float(&proto, 5, 1.5f);
  weir_wire_put_bytes(&proto, 5, "\0\0\x20\x40", 4);  // 2.5, packed
  weir_tensor_t* tensor = parse(&proto);
  assert_true(at(tensor, 0) == 1.5 && at(tensor, 1) == 2.5 && at(tensor, 3) == 2.5);
  weir_tensor_release(tensor);

  proto = begin_proto(WEIR_DTYPE_DOUBLE, 2);
  weir_wire_put_double(&proto, 6, -0.1);
  tensor = parse(&proto);
  assert_true(at(tensor, 1) == -0.1);
  weir_tensor_release(tensor);

  proto = begin_proto(WEIR_DTYPE_HALF, 2);
  weir_wire_put_int(&proto, 13, 0x3c00);
  tensor = parse(&proto);
  assert_true(at(tensor, 1) == 1);
  weir_tensor_release(tensor);

  proto = begin_proto(WEIR_DTYPE_BFLOAT16, 2);
  weir_wire_put_int(&proto, 13, 0x3f80);
  tensor = parse(&proto);
  assert_true(at(tensor, 1) == 1);
  weir_tensor_release(tensor);

  proto = begin_proto(WEIR_DTYPE_FLOAT8_E5M2, 3);
  weir_wire_put_bytes(&proto, 18, "\x3c\x40", 2);
  tensor = parse(&proto);
  assert_true(at(tensor, 0) == 1 && at(tensor, 1) == 2 && at(tensor, 2) == 2);
  weir_tensor_release(tensor);

  proto = begin_proto(WEIR_DTYPE_FLOAT8_E4M3FNUZ, 3);
  weir_wire_put_bytes(&proto, 18, "\x40\x48", 2);
  tensor = parse(&proto);
  assert_true(at(tensor, 0) == 1 && at(tensor, 1) == 2 && at(tensor, 2) == 2);
  weir_tensor_release(tensor);

  proto = begin_proto(WEIR_DTYPE_INT2, 3);
  weir_wire_put_bytes(&proto, 7, "\x01\x02\x03", 3);  // by the two bits that count
  tensor = parse(&proto);
  assert_true(at(tensor, 0) == 1 && at(tensor, 1) == -2 && at(tensor, 2) == -1);
  weir_tensor_release(tensor);
}

static void test_complex_and_bool(void** state) {
  (void)state;
  weir_strbuf_t proto = begin_proto(WEIR_DTYPE_COMPLEX64, 3);
  weir_wire_put_float(&proto, 9, 1);
  weir_wire_put_float(&proto, 9, 2);
  weir_tensor_t* tensor = parse(&proto);
  const float* floats = weir_tensor_data(tensor);
  assert_true(floats[0] == 1 && floats[1] == 2 && floats[4] == 1 && floats[5] == 2);
  weir_tensor_release(tensor);

  proto = begin_proto(WEIR_DTYPE_COMPLEX128, 1);
  weir_wire_put_double(&proto, 12, 3);
  weir_wire_put_double(&proto, 12, 4);
  tensor = parse(&proto);
  assert_true(WEIR_TENSOR_DATA(tensor, double)[1] == 4);
  weir_tensor_release(tensor);

  proto = begin_proto(WEIR_DTYPE_BOOL, 3);
  weir_wire_put_bytes(&proto, 11, "\x01\x00", 2);
  tensor = parse(&proto);
  assert_memory_equal(weir_tensor_data(tensor), "\1\0\0", 3);
  weir_tensor_release(tensor);

  proto = begin_proto(WEIR_DTYPE_BOOL, 2);
  weir_wire_put_bytes(&proto, 4, "\x02\x00", 2);
  tensor = parse(&proto);
  assert_memory_equal(weir_tensor_data(tensor), "\1\0", 2);
  weir_tensor_release(tensor);
}

static void test_no_values_are_zeros(void** state) {
  (void)state;
  for (int i = 1; i < WEIR_DTYPE_COUNT; ++i) {
    weir_dtype_t dtype = (weir_dtype_t)i;
    if (!weir_dtype_is_valid(dtype) || dtype == WEIR_DTYPE_VARIANT) continue;
    weir_strbuf_t proto = begin_proto(dtype, 3);
    weir_tensor_t* tensor = parse(&proto);
    const char* data = weir_tensor_data(tensor);
    for (size_t j = 0; j < weir_tensor_byte_size(tensor); ++j) assert_int_equal(data[j], 0);
    weir_tensor_release(tensor);
  }
  weir_strbuf_t proto = begin_proto(WEIR_DTYPE_FLOAT, 0);
  weir_tensor_t* tensor = parse(&proto);
  assert_int_equal(weir_tensor_count(tensor), 0);
  weir_tensor_release(tensor);
}

static void test_refusals(void** state) {
  (void)state;
  weir_strbuf_t proto = begin_proto(WEIR_DTYPE_FLOAT, 2);
  weir_wire_put_bytes(&proto, 4, "1234567", 7);
  expect_refused(&proto, WEIR_INVALID_ARGUMENT, "7 bytes of tensor_content, expected 8");
  proto = begin_proto(WEIR_DTYPE_FLOAT, 2);
  weir_wire_put_bytes(&proto, 5, "12345", 5);
  expect_refused(&proto, WEIR_INVALID_ARGUMENT, "truncated");
  proto = begin_proto(WEIR_DTYPE_INT32, 2);
  weir_wire_put_bytes(&proto, 7, "\x80", 1);
  expect_refused(&proto, WEIR_INVALID_ARGUMENT, "truncated");
  proto = begin_proto(WEIR_DTYPE_FLOAT, -1);
  expect_refused(&proto, WEIR_INVALID_ARGUMENT, "not fully known");
  proto = begin_proto(WEIR_DTYPE_INVALID, 1);
  expect_refused(&proto, WEIR_INVALID_ARGUMENT, "type 0");
  proto = begin_proto(weir_dtype_ref(WEIR_DTYPE_FLOAT), 1);
  expect_refused(&proto, WEIR_INVALID_ARGUMENT, "type 101");
  proto = begin_proto(WEIR_DTYPE_VARIANT, 1);
  expect_refused(&proto, WEIR_UNIMPLEMENTED, "variant");
  proto = begin_proto(WEIR_DTYPE_FLOAT, INT64_MAX / 2);
  expect_refused(&proto, WEIR_RESOURCE_EXHAUSTED, "[4611686018427387903]");
  proto = begin_proto(WEIR_DTYPE_FLOAT, INT64_C(1) << 50);
  weir_wire_put_float(&proto, 5, 1);
  expect_refused(&proto, WEIR_RESOURCE_EXHAUSTED, "[1125899906842624]");
  proto = (weir_strbuf_t){0};
  weir_strbuf_append(&proto, "\x08", 1);
  expect_refused(&proto, WEIR_INVALID_ARGUMENT, "malformed TensorProto");
}

// Far more values than the shape has, so that storing them all would not go unnoticed. They come in
// two fields: the bound holds from where the first one ended.
static void test_more_values_than_the_shape(void** state) {
  (void)state;
  enum { MANY = 4 << 20 };  // bytes
  static const struct {
    weir_dtype_t dtype;
    uint32_t field;
    unsigned unit;  // bytes a value has in the list
  } rows[] = {{WEIR_DTYPE_FLOAT, 5, 4},        {WEIR_DTYPE_DOUBLE, 6, 8},
              {WEIR_DTYPE_COMPLEX64, 9, 4},    {WEIR_DTYPE_COMPLEX128, 12, 8},
              {WEIR_DTYPE_FLOAT8_E5M2, 18, 1}, {WEIR_DTYPE_INT64, 10, 1},
              {WEIR_DTYPE_HALF, 13, 1},        {WEIR_DTYPE_BOOL, 11, 1}};
  char* values = weir_calloc(1, MANY);
  for (size_t i = 0; i < WEIR_COUNT_OF(rows); ++i) {
    for (unsigned first = 0; first <= 1; ++first) {
      weir_strbuf_t proto = begin_proto(rows[i].dtype, 3);
      weir_wire_put_bytes(&proto, rows[i].field, values, first * rows[i].unit);
      weir_wire_put_bytes(&proto, rows[i].field, values, MANY);
      weir_tensor_t* tensor = parse(&proto);  // the rest is ignored, as in TensorFlow
      assert_int_equal(weir_tensor_count(tensor), 3);
      weir_tensor_release(tensor);
    }
  }
  weir_free(values);
}

static void test_strings(void** state) {
  (void)state;
  weir_strbuf_t proto = begin_proto(WEIR_DTYPE_STRING, 3);
  weir_wire_put_string(&proto, 8, "one");
  weir_wire_put_string(&proto, 8, "a longer string than fits inside");
  weir_tensor_t* tensor = parse(&proto);
  assert_string_equal(weir_tensor_string(tensor, 2, NULL), "a longer string than fits inside");
  weir_strbuf_t again = {0};
  assert_null(weir_tensor_write(tensor, &again));
  weir_tensor_release(tensor);
  tensor = parse(&again);
  assert_string_equal(weir_tensor_string(tensor, 0, NULL), "one");
  weir_tensor_release(tensor);

  proto = begin_proto(WEIR_DTYPE_STRING, 2);
  weir_wire_put_bytes(&proto, 4,
                      "\x02\x01"
                      "abc",
                      5);
  tensor = parse(&proto);
  assert_string_equal(weir_tensor_string(tensor, 0, NULL), "ab");
  assert_string_equal(weir_tensor_string(tensor, 1, NULL), "c");
  weir_tensor_release(tensor);
  proto = begin_proto(WEIR_DTYPE_STRING, 2);
  weir_wire_put_bytes(&proto, 4,
                      "\x02\x05"
                      "abc",
                      5);
  expect_refused(&proto, WEIR_INVALID_ARGUMENT, "malformed tensor_content");
}

// TensorFlow reads what the shape has room for and leaves the rest.
static void test_more_values_than_places(void** state) {
  (void)state;
  weir_strbuf_t proto = begin_proto(WEIR_DTYPE_INT32, 1);
  weir_wire_put_bytes(&proto, 7, "\x01\x02", 2);
  weir_tensor_t* tensor = parse(&proto);
  assert_int_equal(WEIR_TENSOR_DATA(tensor, int32_t)[0], 1);
  weir_tensor_release(tensor);
  proto = begin_proto(WEIR_DTYPE_UINT8, 0);
  weir_wire_put_bytes(&proto, 4, "\x01", 1);  // of no elements the content is not looked at
  tensor = parse(&proto);
  assert_int_equal(weir_tensor_count(tensor), 0);
  weir_tensor_release(tensor);
  proto = begin_proto(WEIR_DTYPE_FLOAT, 1);
  weir_wire_put_float(&proto, 5, 1);
  weir_wire_put_bytes(&proto, 5, "\0\0\0\0", 4);
  tensor = parse(&proto);
  assert_true(WEIR_TENSOR_DATA(tensor, float)[0] == 1);
  weir_tensor_release(tensor);
  proto = begin_proto(WEIR_DTYPE_STRING, 1);
  weir_wire_put_string(&proto, 8, "a");
  weir_wire_put_string(&proto, 8, "b");
  tensor = parse(&proto);
  assert_string_equal(weir_tensor_string(tensor, 0, NULL), "a");
  weir_tensor_release(tensor);
  proto = begin_proto(WEIR_DTYPE_STRING, 0);
  weir_wire_put_string(&proto, 8, "a");
  tensor = parse(&proto);
  assert_int_equal(weir_tensor_count(tensor), 0);
  weir_tensor_release(tensor);
}

static void test_handle_round_trip(void** state) {
  (void)state;
  weir_handle_t* handle = NULL;
  weir_tensor_t* tensor = NULL;
  weir_strbuf_t proto = {0};
  assert_null(weir_handle_create("/cpu:0", "box", "v", "N10tensorflow3VarE", &handle));
  handle->type_hash = UINT64_MAX - 1;
  handle->dtype = WEIR_DTYPE_HALF;
  handle->shape = weir_shape_clone(&weir_shape_scalar);
  assert_null(weir_tensor_create_handle(handle, &tensor));
  weir_handle_release(handle);
  assert_null(weir_tensor_write(tensor, &proto));
  weir_tensor_release(tensor);
  tensor = parse(&proto);
  handle = weir_tensor_handle(tensor);
  assert_string_equal(handle->device, "/cpu:0");
  assert_string_equal(handle->container, "box");
  assert_string_equal(handle->name, "v");
  assert_string_equal(handle->type_name, "N10tensorflow3VarE");
  assert_true(handle->type_hash == UINT64_MAX - 1);
  assert_int_equal(handle->dtype, WEIR_DTYPE_HALF);
  assert_int_equal(handle->shape->rank, 0);
  weir_tensor_release(tensor);
}

static void test_plain_round_trip(void** state) {
  (void)state;
  for (int i = 1; i < WEIR_DTYPE_COUNT; ++i) {
    weir_dtype_t dtype = (weir_dtype_t)i;
    if (!weir_dtype_is_valid(dtype) || !weir_dtype_is_plain(dtype)) continue;
    weir_tensor_t* tensor = NULL;
    weir_strbuf_t proto = {0};
    assert_null(weir_tensor_create(dtype, 2, (int64_t[]){2, 3}, &tensor));
    memset(tensor->data, 1, weir_tensor_byte_size(tensor));
    assert_null(weir_tensor_write(tensor, &proto));
    weir_tensor_t* back = parse(&proto);
    assert_int_equal(back->dtype, dtype);
    assert_true(weir_tensor_same_shape(tensor, back));
    assert_memory_equal(back->data, tensor->data, weir_tensor_byte_size(tensor));
    weir_tensor_release(back);
    weir_tensor_release(tensor);
  }
}

// More than one variant has no form that TensorFlow would read.
static void test_variants_are_not_written(void** state) {
  (void)state;
  weir_tensor_t* tensor = NULL;
  weir_strbuf_t out = {0};
  assert_null(weir_tensor_create(WEIR_DTYPE_VARIANT, 1, (const int64_t[]){2}, &tensor));
  weir_status_t* status = weir_tensor_write(tensor, &out);
  assert_int_equal(weir_status_code(status), WEIR_UNIMPLEMENTED);
  assert_non_null(strstr(weir_status_message(status), "shape [2]"));
  weir_status_destroy(status);
  weir_strbuf_free(&out);
  weir_tensor_release(tensor);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_varint_lists),
      cmocka_unit_test(test_floating_lists),
      cmocka_unit_test(test_complex_and_bool),
      cmocka_unit_test(test_no_values_are_zeros),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_more_values_than_the_shape),
      cmocka_unit_test(test_more_values_than_places),
      cmocka_unit_test(test_strings),
      cmocka_unit_test(test_handle_round_trip),
      cmocka_unit_test(test_plain_round_trip),
      cmocka_unit_test(test_variants_are_not_written),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

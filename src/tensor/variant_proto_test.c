// variant_proto_test.c — TensorLists, composite and ragged tensors and maps through TensorProto and
// back; malformed ones.
#include "tensor/variant_proto.h"

#include "tensor/composite.h"
#include "tensor/parcel_kinds.h"
#include "tensor/tensor_list.h"
#include "testing/cmocka.h"
#include "wire/wire.h"

static weir_list_t* make_list(void) {
  const weir_shape_t* shape = &weir_shape_unknown;
  weir_list_t* list = NULL;
  weir_tensor_t* item = NULL;
  const float values[] = {1, 2, 3};
  const int64_t dims[] = {3};
  assert_null(weir_list_create(WEIR_DTYPE_FLOAT, shape, 4, &list));
  assert_null(weir_tensor_create_from(WEIR_DTYPE_FLOAT, 1, dims, values, &item));
  list->items[0] = weir_tensor_retain(item);
  list->items[2] = item;
  return list;
}

static void expect_list(const weir_tensor_t* tensor) {
  assert_int_equal(tensor->dtype, WEIR_DTYPE_VARIANT);
  const weir_list_t* list = (const weir_list_t*)((const weir_variant_t*)tensor->data)[0].object;
  assert_ptr_equal(list->base.type, &weir_list_type);
  assert_int_equal(list->count, 4);
  assert_int_equal(list->max_count, -1);
  assert_int_equal(list->dtype, WEIR_DTYPE_FLOAT);
  assert_non_null(list->items[0]);
  assert_null(list->items[1]);
  assert_non_null(list->items[2]);
  assert_null(list->items[3]);
  assert_true(WEIR_TENSOR_DATA(list->items[2], float)[1] == 2);
}

// What becomes of a tensor that holds |list|, taken, as a message and read again.
static weir_tensor_t* sent(weir_list_t* list) {
  weir_tensor_t *tensor = NULL, *copy = NULL;
  weir_strbuf_t proto = {0};
  assert_null(weir_tensor_create_variant(&list->base, &tensor));
  assert_null(weir_variant_write(tensor, &proto));
  assert_true(weir_variant_is_proto(weir_strbuf_view(&proto)));
  assert_null(weir_variant_parse(weir_strbuf_view(&proto), &copy));
  weir_tensor_release(tensor);
  weir_strbuf_free(&proto);
  return copy;
}

static void test_round_trip(void** state) {
  (void)state;
  weir_tensor_t* copy = sent(make_list());
  expect_list(copy);
  weir_tensor_release(copy);
}

static void test_first_absent(void** state) {
  (void)state;
  weir_list_t* list = make_list();
  weir_tensor_release(list->items[0]);
  list->items[0] = NULL;
  weir_tensor_t* copy = sent(list);
  list = (weir_list_t*)((weir_variant_t*)copy->data)[0].object;
  assert_int_equal(list->count, 4);
  assert_null(list->items[0]);
  assert_null(list->items[1]);
  assert_non_null(list->items[2]);
  weir_tensor_release(copy);
}

// A list in a list, and an element that is empty.
static void test_nested(void** state) {
  (void)state;
  weir_tensor_t* inner = NULL;
  weir_list_t* list = NULL;
  assert_null(weir_tensor_create_variant(&make_list()->base, &inner));
  assert_null(weir_list_create(WEIR_DTYPE_VARIANT, &weir_shape_scalar, 0, &list));
  assert_null(weir_list_push(list, inner));
  assert_null(weir_tensor_create(WEIR_DTYPE_VARIANT, 0, NULL, &inner));
  assert_null(weir_list_push(list, inner));
  weir_tensor_t* copy = sent(list);
  list = (weir_list_t*)((weir_variant_t*)copy->data)[0].object;
  assert_int_equal(list->count, 2);
  expect_list(list->items[0]);
  assert_null(WEIR_TENSOR_DATA(list->items[1], weir_variant_t)[0].object);
  weir_tensor_release(copy);
}

// Cut anywhere, it is an error or a tensor, never a crash.
static void test_cut(void** state) {
  (void)state;
  weir_tensor_t *tensor = NULL, *copy = NULL;
  weir_strbuf_t proto = {0};
  assert_null(weir_tensor_create_variant(&make_list()->base, &tensor));
  assert_null(weir_variant_write(tensor, &proto));
  for (size_t size = 0; size < proto.size; ++size) {
    copy = NULL;
    weir_status_t* status = weir_variant_parse(weir_view(proto.data, size), &copy);
    assert_true((status == NULL) == (copy != NULL));
    weir_status_destroy(status);
    weir_tensor_release(copy);
  }
  for (size_t i = 0; i < proto.size; ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      proto.data[i] = (char)(proto.data[i] ^ (1 << bit));
      copy = NULL;
      weir_status_destroy(weir_variant_parse(weir_strbuf_view(&proto), &copy));
      weir_tensor_release(copy);
      proto.data[i] = (char)(proto.data[i] ^ (1 << bit));
    }
  }
  weir_tensor_release(tensor);
  weir_strbuf_free(&proto);
}

static weir_status_t* parse_number(const char* type, const void* bytes, size_t size,
                                   weir_tensor_t** out_tensor) {
  weir_strbuf_t proto = {0};
  weir_wire_put_int(&proto, 1, WEIR_DTYPE_VARIANT);
  size_t at = weir_wire_begin(&proto, 15);
  weir_wire_put_string(&proto, 1, type);
  weir_wire_put_bytes(&proto, 2, bytes, size);
  weir_wire_end(&proto, at);
  weir_status_t* status = weir_variant_parse(weir_strbuf_view(&proto), out_tensor);
  weir_strbuf_free(&proto);
  return status;
}

static void test_numbers(void** state) {
  (void)state;
  weir_tensor_t *tensor = NULL, *copy = NULL;
  weir_strbuf_t proto = {0}, text = {0};
  const int32_t seven = 7;
  void* sum = NULL;
  assert_null(parse_number("int", &seven, sizeof(seven), &tensor));
  assert_null(weir_variant_write(tensor, &proto));
  assert_null(weir_variant_parse(weir_strbuf_view(&proto), &copy));
  const weir_variant_object_t* object = WEIR_TENSOR_DATA(copy, weir_variant_t)[0].object;
  assert_null(object->type->add(object, object, &sum));
  object->type->describe(sum, &text);
  assert_true(weir_view_equal(weir_strbuf_view(&text), weir_view_of("14")));
  weir_variant_release(sum);
  weir_tensor_release(copy);
  weir_tensor_release(tensor);
  weir_strbuf_free(&proto);
  weir_strbuf_free(&text);
  weir_status_t* status = parse_number("double", &seven, sizeof(seven), &tensor);
  assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
  weir_status_destroy(status);
}

// Places without a value stay empty, and values without a place are left out.
static void test_fewer_and_more(void** state) {
  (void)state;
  const int32_t seven = 7;
  const char* const dims[] = {"\x12\x02\x08\x03", "\x12\x02\x08\x00"};  // [3], [0]
  for (int i = 0; i < 2; ++i) {
    weir_strbuf_t proto = {0};
    weir_tensor_t* tensor = NULL;
    weir_wire_put_int(&proto, 1, WEIR_DTYPE_VARIANT);
    weir_wire_put_bytes(&proto, 2, dims[i], 4);
    size_t at = weir_wire_begin(&proto, 15);
    weir_wire_put_string(&proto, 1, "int");
    weir_wire_put_bytes(&proto, 2, (const char*)&seven, sizeof(seven));
    weir_wire_end(&proto, at);
    assert_null(weir_variant_parse(weir_strbuf_view(&proto), &tensor));
    assert_int_equal(weir_tensor_count(tensor), i == 0 ? 3 : 0);
    if (i == 0) assert_null(WEIR_TENSOR_DATA(tensor, weir_variant_t)[2].object);
    weir_tensor_release(tensor);
    weir_strbuf_free(&proto);
  }
}

// Fewer bytes than variants are refused before there is a tensor of them.
static void test_content_too_short(void** state) {
  (void)state;
  weir_strbuf_t proto = {0};
  weir_tensor_t* tensor = NULL;
  weir_wire_put_int(&proto, 1, WEIR_DTYPE_VARIANT);
  weir_wire_put_bytes(&proto, 2, "\x12\x05\x08\x80\x80\x80\x08", 7);  // [2^24]
  weir_wire_put_bytes(&proto, 4, "\x01\x01", 2);
  weir_status_t* status = weir_variant_parse(weir_strbuf_view(&proto), &tensor);
  assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
  assert_non_null(strstr(weir_status_message(status), "has not the 16777216 variants"));
  weir_status_destroy(status);
  weir_strbuf_free(&proto);
}

// Components and metadata, and none of either; cut off anywhere it is read or refused.
static void test_composite(void** state) {
  (void)state;
  for (int count = 0; count < 3; ++count) {
    weir_tensor_t *tensor = NULL, *copy = NULL;
    weir_parcel_t* parcel = NULL;
    weir_strbuf_t proto = {0};
    const int32_t number = 7;
    assert_null(weir_composite_create(count, weir_view("meta", count ? 4 : 0), &parcel));
    for (int i = 0; i < count; ++i) {
      assert_null(weir_tensor_create_from(WEIR_DTYPE_INT32, 0, NULL, &number, &parcel->items[i]));
    }
    assert_null(weir_tensor_create_variant(&parcel->base, &tensor));
    assert_null(weir_variant_write(tensor, &proto));
    assert_null(weir_variant_parse(weir_strbuf_view(&proto), &copy));
    const weir_parcel_t* got = weir_parcel_at(copy, 0, &weir_composite_variant_type);
    assert_non_null(got);
    assert_int_equal(got->count, count + 1);
    assert_int_equal(weir_composite_metadata(got).size, count ? 4 : 0);
    for (int i = 0; i < count; ++i) {
      assert_int_equal(WEIR_TENSOR_DATA(got->items[i], int32_t)[0], 7);
    }
    weir_tensor_release(copy);
    for (size_t size = 0; size < proto.size; ++size) {
      copy = NULL;
      weir_status_destroy(weir_variant_parse(weir_view(proto.data, size), &copy));
      weir_tensor_release(copy);
    }
    weir_tensor_release(tensor);
    weir_strbuf_free(&proto);
  }
}

// Sends a parcel of |type| with the int32 vectors |items|, and reads it.
static weir_status_t* send(const weir_variant_type_t* type, int count, const char* const* items,
                           weir_tensor_t** out_copy) {
  weir_tensor_t* tensor = NULL;
  weir_parcel_t* parcel = NULL;
  weir_strbuf_t proto = {0};
  assert_null(weir_parcel_create(type, count, &parcel));
  for (int i = 0; i < count; ++i) {
    const int64_t size = (int64_t)strlen(items[i]);
    assert_null(weir_tensor_create(WEIR_DTYPE_INT32, 1, &size, &parcel->items[i]));
    for (int64_t k = 0; k < size; ++k) {
      WEIR_TENSOR_DATA(parcel->items[i], int32_t)[k] = items[i][k] - '0';
    }
  }
  assert_null(weir_tensor_create_variant(&parcel->base, &tensor));
  assert_null(weir_variant_write(tensor, &proto));
  weir_status_t* status = weir_variant_parse(weir_strbuf_view(&proto), out_copy);
  weir_tensor_release(tensor);
  weir_strbuf_free(&proto);
  return status;
}

static void check_sent(const weir_variant_type_t* type, int count, const char* const* items) {
  weir_tensor_t* copy = NULL;
  assert_null(send(type, count, items, &copy));
  const weir_parcel_t* got = weir_parcel_at(copy, 0, type);
  assert_non_null(got);
  assert_int_equal(got->count, count);
  for (int i = 0; i < count; ++i) assert_int_equal(got->items[i]->count, strlen(items[i]));
  weir_tensor_release(copy);
}

static void check_refused(const weir_variant_type_t* type, int count, const char* const* items) {
  weir_tensor_t* copy = NULL;
  weir_status_t* status = send(type, count, items, &copy);
  assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
  assert_null(copy);
  weir_status_destroy(status);
}

#define ITEMS(...) ((const char* const[]){__VA_ARGS__})

static void test_parcels(void** state) {
  (void)state;
  check_sent(&weir_map_variant_type, 0, ITEMS(""));
  check_sent(&weir_map_variant_type, 4, ITEMS("1", "22", "3", ""));
  check_refused(&weir_map_variant_type, 3, ITEMS("1", "22", "3"));
  check_sent(&weir_ragged_variant_type, 1, ITEMS("123"));
  check_sent(&weir_ragged_variant_type, 3, ITEMS("012", "023", "777"));
  check_refused(&weir_ragged_variant_type, 0, ITEMS(""));
  check_refused(&weir_ragged_variant_type, 2, ITEMS("", "123"));
  check_refused(&weir_ragged_variant_type, 2, ITEMS("024", "123"));
  check_refused(&weir_ragged_variant_type, 2, ITEMS("0213", "123"));
  check_refused(&weir_ragged_variant_type, 2, ITEMS("123", "123"));
}

static void test_other_kinds(void** state) {
  (void)state;
  weir_strbuf_t proto = {0};
  weir_tensor_t* tensor = NULL;
  weir_wire_put_int(&proto, 1, WEIR_DTYPE_VARIANT);
  size_t at = weir_wire_begin(&proto, 15);
  weir_wire_put_string(&proto, 1, "tensorflow::Unheard");
  weir_wire_end(&proto, at);
  weir_status_t* status = weir_variant_parse(weir_strbuf_view(&proto), &tensor);
  assert_int_equal(weir_status_code(status), WEIR_UNIMPLEMENTED);
  weir_status_destroy(status);
  weir_strbuf_free(&proto);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip),
                                     cmocka_unit_test(test_first_absent),
                                     cmocka_unit_test(test_nested),
                                     cmocka_unit_test(test_cut),
                                     cmocka_unit_test(test_numbers),
                                     cmocka_unit_test(test_fewer_and_more),
                                     cmocka_unit_test(test_content_too_short),
                                     cmocka_unit_test(test_composite),
                                     cmocka_unit_test(test_parcels),
                                     cmocka_unit_test(test_other_kinds)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

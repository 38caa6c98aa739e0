// tensor_test.c — Tests of tensors, their elements, narrow numbers, casts and printing.

#include "tensor/tensor.h"

#include <math.h>

#include "base/string.h"
#include "tensor/cast.h"
#include "tensor/handle.h"
#include "tensor/numeric.h"
#include "testing/cmocka.h"

static void expect_error(weir_status_t* status, weir_code_t code, const char* text) {
  assert_non_null(status);
  assert_int_equal(weir_status_code(status), code);
  if (!strstr(weir_status_message(status), text)) {
    fail_msg("'%s' lacks '%s'", weir_status_message(status), text);
  }
  weir_status_destroy(status);
}

// ---- creation and views ----

static void test_create(void** state) {
  (void)state;
  for (int rank = 0; rank <= WEIR_MAX_RANK; rank += 1 + rank / 3) {
    int64_t dims[WEIR_MAX_RANK];
    for (int i = 0; i < rank; ++i) dims[i] = i < 3 ? i + 2 : 1;
    weir_tensor_t* tensor = NULL;
    assert_null(weir_tensor_create(WEIR_DTYPE_FLOAT, rank, dims, &tensor));
    assert_int_equal(weir_tensor_rank(tensor), rank);
    assert_int_equal((uintptr_t)tensor->data % WEIR_TENSOR_ALIGNMENT, 0);
    memset(tensor->data, 1, weir_tensor_byte_size(tensor));
    assert_true(weir_tensor_is_sole(tensor));
    weir_tensor_release(tensor);
  }
  weir_tensor_release(NULL);
  assert_null(weir_tensor_retain(NULL));
}

static void test_create_refuses(void** state) {
  (void)state;
  weir_tensor_t* tensor = NULL;
  int64_t many[WEIR_MAX_RANK + 1] = {0};
  expect_error(weir_tensor_create(WEIR_DTYPE_FLOAT, 2, (int64_t[]){2, -3}, &tensor),
               WEIR_INVALID_ARGUMENT, "[2,-3] of a float tensor");
  expect_error(weir_tensor_create(WEIR_DTYPE_INT64, 2, (int64_t[]){INT64_MAX, 2}, &tensor),
               WEIR_INVALID_ARGUMENT, "more than 2**63 - 1 elements");
  expect_error(weir_tensor_create(WEIR_DTYPE_INT64, 1, (int64_t[]){INT64_MAX / 4}, &tensor),
               WEIR_RESOURCE_EXHAUSTED, "shape[2305843009213693951] and type int64");
  expect_error(weir_tensor_create(WEIR_DTYPE_FLOAT, WEIR_MAX_RANK + 1, many, &tensor),
               WEIR_INVALID_ARGUMENT, "rank 255");
  expect_error(weir_tensor_create(WEIR_DTYPE_FLOAT, -1, NULL, &tensor), WEIR_INVALID_ARGUMENT,
               "rank -1");
  expect_error(weir_tensor_create(WEIR_DTYPE_INVALID, 0, NULL, &tensor), WEIR_INVALID_ARGUMENT,
               "type");
  expect_error(weir_tensor_create(weir_dtype_ref(WEIR_DTYPE_FLOAT), 0, NULL, &tensor),
               WEIR_INVALID_ARGUMENT, "type");
  expect_error(weir_tensor_create_from(WEIR_DTYPE_STRING, 0, NULL, "", &tensor),
               WEIR_INVALID_ARGUMENT, "string");
  weir_alloc_fail_at(1, true);
  weir_status_t* status = weir_tensor_create(WEIR_DTYPE_FLOAT, 1, (int64_t[]){50000000}, &tensor);
  weir_alloc_fail_at(0, false);
  assert_int_equal(weir_status_code(status), WEIR_RESOURCE_EXHAUSTED);
  weir_status_destroy(status);
  assert_null(tensor);
}

static void test_check_sizes(void** state) {
  (void)state;
  assert_null(weir_shape_check_sizes(3, (int64_t[]){INT64_MAX, 1, 0}));
  expect_error(weir_shape_check_sizes(2, (int64_t[]){0, -1}), WEIR_INVALID_ARGUMENT, "got -1");
  expect_error(weir_shape_check_sizes(2, (int64_t[]){INT64_MAX, 2}), WEIR_INVALID_ARGUMENT,
               "overflow when multiplying 9223372036854775807 with 2");
}

static void test_empty(void** state) {
  (void)state;
  weir_tensor_t* tensor = NULL;
  weir_tensor_t* row = NULL;
  assert_null(weir_tensor_create(WEIR_DTYPE_STRING, 2, (int64_t[]){3, 0}, &tensor));
  assert_int_equal(weir_tensor_count(tensor), 0);
  assert_int_equal(weir_tensor_byte_size(tensor), 0);
  assert_null(weir_tensor_slice(tensor, 1, 3, &row));
  assert_int_equal(weir_tensor_dim(row, 0), 2);
  assert_int_equal(weir_tensor_dim(row, 2), -1);
  weir_tensor_release(row);
  weir_tensor_release(tensor);
}

static void test_views(void** state) {
  (void)state;
  const float values[6] = {0, 1, 2, 3, 4, 5};
  weir_tensor_t* tensor = NULL;
  weir_tensor_t* rows = NULL;
  weir_tensor_t* flat = NULL;
  weir_tensor_t* bits = NULL;
  assert_null(weir_tensor_create_from(WEIR_DTYPE_FLOAT, 2, (int64_t[]){3, 2}, values, &tensor));
  assert_null(weir_tensor_slice(tensor, 1, 3, &rows));
  assert_null(weir_tensor_reshape(rows, 1, (int64_t[]){4}, &flat));
  assert_null(weir_tensor_view_as(flat, WEIR_DTYPE_DOUBLE, 1, (int64_t[]){2}, &bits));
  assert_ptr_equal(flat->root, tensor);
  assert_ptr_equal(bits->data, flat->data);
  assert_false(weir_tensor_is_sole(flat));
  weir_tensor_release(tensor);
  weir_tensor_release(rows);
  weir_tensor_release(bits);
  assert_true(weir_tensor_is_sole(flat));
  assert_true(WEIR_TENSOR_DATA(flat, float)[0] == 2);
  assert_true(WEIR_TENSOR_DATA(flat, float)[3] == 5);

  weir_tensor_t* none = NULL;
  expect_error(weir_tensor_reshape(flat, 1, (int64_t[]){5}, &none), WEIR_INVALID_ARGUMENT,
               "[4] with 4 elements cannot be reshaped to [5]");
  expect_error(weir_tensor_slice(flat, 2, 5, &none), WEIR_INVALID_ARGUMENT, "rows [2, 5)");
  expect_error(weir_tensor_slice(flat, -1, 2, &none), WEIR_INVALID_ARGUMENT, "rows [-1, 2)");
  expect_error(weir_tensor_view_as(flat, WEIR_DTYPE_STRING, 0, NULL, &none), WEIR_INVALID_ARGUMENT,
               "string");
  expect_error(weir_tensor_view_as(flat, WEIR_DTYPE_DOUBLE, 1, (int64_t[]){4}, &none),
               WEIR_INVALID_ARGUMENT, "double");
  weir_tensor_release(flat);
}

static void count_call(void* data, size_t size, void* arg) {
  (void)data;
  (void)size;
  ++*(int*)arg;
}

static void test_wrap(void** state) {
  (void)state;
  char memory[64] = {0};
  int calls = 0;
  weir_tensor_t* tensor = NULL;
  weir_tensor_t* view = NULL;
  assert_null(weir_tensor_wrap(WEIR_DTYPE_INT32, 1, (int64_t[]){4}, memory, sizeof(memory),
                               count_call, &calls, &tensor));
  assert_ptr_equal(weir_tensor_data(tensor), memory);
  assert_false(weir_tensor_is_sole(tensor));
  assert_null(weir_tensor_reshape(tensor, 2, (int64_t[]){2, 2}, &view));
  weir_tensor_release(tensor);
  assert_int_equal(calls, 0);
  weir_tensor_release(view);
  assert_int_equal(calls, 1);
  expect_error(weir_tensor_wrap(WEIR_DTYPE_INT32, 1, (int64_t[]){4}, memory, 15, count_call, &calls,
                                &tensor),
               WEIR_INVALID_ARGUMENT, "15 bytes given for a int32 tensor of shape [4]");
  assert_int_equal(calls, 2);
  expect_error(weir_tensor_wrap(WEIR_DTYPE_INT32, 1, (int64_t[]){-4}, memory, 64, count_call,
                                &calls, &tensor),
               WEIR_INVALID_ARGUMENT, "must be >= 0");
  assert_int_equal(calls, 3);
}

// ---- memory of devices ----

static int64_t device_bytes;
static void* device_alloc(weir_allocator_t* self, size_t size, size_t alignment) {
  (void)self;
  if (size > 1 << 20) return NULL;
  device_bytes += (int64_t)size;
  return weir_aligned_malloc(size, alignment);
}
static void device_free(weir_allocator_t* self, void* pointer, size_t size) {
  (void)self;
  device_bytes -= (int64_t)size;
  weir_free(pointer);
}

static void test_create_in(void** state) {
  (void)state;
  static const weir_allocator_vtable_t vtable = {.alloc = device_alloc, .free = device_free};
  const weir_space_t space = {.device = NULL};
  weir_allocator_t device = {.vtable = &vtable, .space = &space};
  weir_allocator_t pinned = {.vtable = &vtable, .space = &weir_host_space};
  weir_tensor_t* tensor = NULL;
  weir_tensor_t* copy = NULL;
  assert_null(weir_tensor_create_in(&device, WEIR_DTYPE_FLOAT, 1, (int64_t[]){100}, &tensor));
  assert_int_equal(device_bytes, 400);
  assert_false(weir_tensor_is_host(tensor));
  assert_null(weir_tensor_copy(tensor, &copy));  // into memory of the same kind
  assert_int_equal(device_bytes, 800);
  assert_ptr_equal(weir_tensor_space(copy), &space);
  weir_tensor_release(copy);
  weir_tensor_release(tensor);
  assert_int_equal(device_bytes, 0);
  assert_null(weir_tensor_create_in(&device, WEIR_DTYPE_FLOAT, 1, (int64_t[]){0}, &tensor));
  weir_tensor_release(tensor);
  assert_null(weir_tensor_create_in(&pinned, WEIR_DTYPE_STRING, 1, (int64_t[]){2}, &tensor));
  assert_null(weir_tensor_set_string(tensor, 1, "a string that is longer than 22 bytes", 37));
  weir_tensor_release(tensor);
  assert_int_equal(device_bytes, 0);
  assert_null(weir_tensor_create_in(NULL, WEIR_DTYPE_FLOAT, 0, NULL, &tensor));
  weir_tensor_release(tensor);
  expect_error(weir_tensor_create_in(&device, WEIR_DTYPE_STRING, 0, NULL, &copy),
               WEIR_INVALID_ARGUMENT, "string");
  expect_error(weir_tensor_create_in(&device, WEIR_DTYPE_INT8, 1, (int64_t[]){1 << 21}, &copy),
               WEIR_RESOURCE_EXHAUSTED, "[2097152] and type int8");
}

// ---- strings, handles, variants ----

static void test_string_element(void** state) {
  (void)state;
  char text[100];
  memset(text, 'x', sizeof(text));
  weir_string_t string;
  weir_string_init(&string);
  const size_t sizes[] = {0, 22, 23, 100, 60, 22, 23, 1};
  for (size_t i = 0; i < WEIR_COUNT_OF(sizes); ++i) {
    assert_null(weir_string_set(&string, text, sizes[i]));
    assert_true(weir_view_equal(weir_string_view(&string), weir_view(text, sizes[i])));
    assert_int_equal(weir_string_view(&string).data[sizes[i]], 0);
  }
  char* bytes = weir_string_resize(&string, 50);
  assert_int_equal(bytes[0], 'x');
  memset(bytes, 'y', 50);
  bytes[49] = 'z';
  weir_view_t view = weir_string_view(&string);
  assert_null(weir_string_set(&string, view.data + 20, 30));  // from itself
  assert_int_equal(weir_string_view(&string).data[29], 'z');
  assert_non_null(weir_string_resize(&string, 80));
  assert_int_equal(weir_string_view(&string).data[29], 'z');
  assert_non_null(weir_string_resize(&string, 3));
  assert_true(weir_view_is(weir_string_view(&string), "yyy"));
  weir_alloc_fail_at(1, true);
  assert_null(weir_string_resize(&string, 80));
  weir_alloc_fail_at(0, false);
  weir_string_free(&string);
  assert_int_equal(weir_string_view(&string).size, 0);
  weir_string_t borrowed = {.u.large = {.size_and_kind = 5 << 2 | WEIR_STRING_VIEW}};
  const char* bytes_of_others = text;
  memcpy((char*)&borrowed + sizeof(size_t), &bytes_of_others,
         sizeof(bytes_of_others));  // as TString
  assert_int_equal(weir_string_view(&borrowed).size, 5);
  weir_string_free(&borrowed);
}

// What fits into the element, as in TensorFlow's layout, takes no memory.
static void test_short_strings_are_inside(void** state) {
  (void)state;
  char text[23];
  memset(text, 'x', sizeof(text));
  weir_string_t string;
  weir_string_init(&string);
  weir_alloc_fail_at(1, true);
  for (size_t size = 0; size <= 22; ++size) assert_null(weir_string_set(&string, text, size));
  assert_non_null(weir_string_resize(&string, 22));
  weir_status_t* status = weir_string_set(&string, text, 23);
  weir_alloc_fail_at(0, false);
  assert_int_equal(weir_status_code(status), WEIR_RESOURCE_EXHAUSTED);
  weir_status_destroy(status);
  weir_string_free(&string);
}

static void test_string_tensor(void** state) {
  (void)state;
  const char* strings[] = {"short", "a string that needs its own block", NULL};
  weir_tensor_t* tensor = NULL;
  weir_tensor_t* copy = NULL;
  size_t size = 0;
  assert_null(weir_tensor_create_strings(1, (int64_t[]){3}, strings, NULL, &tensor));
  assert_null(weir_tensor_copy(tensor, &copy));
  weir_tensor_release(tensor);
  assert_string_equal(weir_tensor_string(copy, 1, &size), strings[1]);
  assert_int_equal(size, 33);
  weir_tensor_string(copy, 2, &size);
  assert_int_equal(size, 0);
  assert_null(weir_tensor_string(copy, 3, &size));
  expect_error(weir_tensor_set_string(copy, 3, "", 0), WEIR_INVALID_ARGUMENT, "no string 3");
  weir_tensor_release(copy);
}

static int released;
static void release_object(void* object) {
  (void)object;
  ++released;
}
static void destroy_variant(void* object) {
  ++released;
  weir_free(object);
}

static void test_handles(void** state) {
  (void)state;
  weir_handle_t* handle = NULL;
  weir_tensor_t* tensor = NULL;
  weir_tensor_t* copy = NULL;
  released = 0;
  assert_null(weir_handle_create("/cpu:0", "", "v", NULL, &handle));
  handle->object = &released;
  handle->release_object = release_object;
  assert_null(weir_tensor_create_handle(handle, &tensor));
  weir_handle_release(handle);
  assert_null(weir_tensor_copy(tensor, &copy));
  assert_null(weir_elements_copy(WEIR_DTYPE_RESOURCE, copy->data, copy->data, 1));
  weir_tensor_release(tensor);
  assert_ptr_equal(weir_tensor_handle(copy), handle);
  assert_int_equal(released, 0);
  weir_tensor_release(copy);
  assert_int_equal(released, 1);
}

static void test_variants(void** state) {
  (void)state;
  static const weir_variant_type_t type = {.type_name = "test", .destroy = destroy_variant};
  weir_variant_object_t* object = weir_calloc(1, sizeof(*object));
  object->type = &type;
  weir_ref_init(&object->ref);
  weir_tensor_t* tensor = NULL;
  weir_tensor_t* copy = NULL;
  released = 0;
  assert_null(weir_tensor_create_variant(object, &tensor));
  assert_null(weir_tensor_copy(tensor, &copy));
  weir_tensor_release(tensor);
  assert_int_equal(released, 0);
  weir_tensor_release(copy);
  assert_int_equal(released, 1);
}

// ---- numbers ----

static void test_half(void** state) {
  (void)state;
  for (uint32_t bits = 0; bits < 1 << 16; ++bits) {
    weir_half_t half = {(uint16_t)bits};
    float value = weir_half_to_float(half);
    assert_true(value != value || value == weir_half_to_float_soft(half));
    if (value != value) {
      assert_true(isnan(weir_half_to_float_soft(half)));
      assert_true((weir_half_from_float_soft(value).bits & 0x7fff) > 0x7c00);
      continue;
    }
    assert_int_equal(weir_half_from_float(value).bits, bits);
    assert_int_equal(weir_half_from_float_soft(value).bits, bits);
  }
  // Hardware and portable code agree on rounding, on a stride through all floats.
  for (uint64_t i = 0; i < UINT64_C(1) << 32; i += 4099) {
    float value = weir_float_from_bits((uint32_t)i);
    if (value != value) continue;
    assert_int_equal(weir_half_from_float(value).bits, weir_half_from_float_soft(value).bits);
  }
  assert_int_equal(weir_half_from_float_soft(65519.0f).bits, 0x7bff);
  assert_int_equal(weir_half_from_float_soft(65520.0f).bits, 0x7c00);
  assert_int_equal(weir_half_from_float_soft(0x1p-25f).bits, 0);  // a tie goes to even
  assert_int_equal(weir_half_from_float_soft(0x1.8p-24f).bits, 2);
}

static void test_bfloat16(void** state) {
  (void)state;
  assert_int_equal(weir_bfloat16_from_float(1.0f).bits, 0x3f80);
  assert_int_equal(weir_bfloat16_from_float(0x1.01p0f).bits, 0x3f80);  // ties to even
  assert_int_equal(weir_bfloat16_from_float(0x1.03p0f).bits, 0x3f82);
  assert_int_equal(weir_bfloat16_from_float(3.4e38f).bits, 0x7f80);
  assert_int_equal(weir_bfloat16_from_float(weir_float_from_bits(0x7f800001)).bits, 0x7fc0);
  assert_int_equal(weir_bfloat16_from_float(-INFINITY).bits, 0xff80);
  assert_true(weir_bfloat16_to_float((weir_bfloat16_t){0x4049}) == 3.140625f);
}

static void test_float8(void** state) {
  (void)state;
  for (unsigned bits = 0; bits < 256; ++bits) {
    float a = weir_float8_e5m2_to_float((weir_float8_e5m2_t){(uint8_t)bits});
    float b = weir_float8_e4m3fn_to_float((weir_float8_e4m3fn_t){(uint8_t)bits});
    if (a == a) assert_int_equal(weir_float8_e5m2_from_float(a).bits, bits);
    if (b == b) assert_int_equal(weir_float8_e4m3fn_from_float(b).bits, bits);
    assert_int_equal(b != b, (bits & 0x7f) == 0x7f);
    assert_int_equal(a != a, (bits & 0x7f) > 0x7c);
  }
  assert_int_equal(weir_float8_e4m3fn_from_float(448).bits, 0x7e);
  assert_int_equal(weir_float8_e4m3fn_from_float(464).bits, 0x7e);
  assert_int_equal(weir_float8_e4m3fn_from_float(-465).bits, 0xff);
  assert_int_equal(weir_float8_e4m3fn_from_float(INFINITY).bits, 0x7f);
  assert_int_equal(weir_float8_e5m2_from_float(57344).bits, 0x7b);
  assert_int_equal(weir_float8_e5m2_from_float(61440).bits, 0x7c);
}

static double cast_one(weir_dtype_t to, weir_dtype_t from, const void* element) {
  double buffer[2] = {0};
  double value = 0;
  assert_null(weir_cast_elements(to, buffer, from, element, 1));
  assert_true(weir_element_to_double(to, buffer, &value));
  return value;
}

static void test_cast_saturates(void** state) {
  (void)state;
  const float big = 1e20f;
  const float low = -1e20f;
  const float nan = NAN;
  const float fraction = -2.75f;
  const int32_t wide = 300;
  assert_true(cast_one(WEIR_DTYPE_INT32, WEIR_DTYPE_FLOAT, &big) == INT32_MAX);
  assert_true(cast_one(WEIR_DTYPE_INT32, WEIR_DTYPE_FLOAT, &low) == INT32_MIN);
  // Narrow types: the low bits of int32.
  assert_true(cast_one(WEIR_DTYPE_INT8, WEIR_DTYPE_FLOAT, &low) == 0);
  assert_true(cast_one(WEIR_DTYPE_UINT8, WEIR_DTYPE_FLOAT, &(float){-1}) == 255);
  assert_true(cast_one(WEIR_DTYPE_UINT16, WEIR_DTYPE_DOUBLE, &(double){-200}) == 65336);
  assert_true(cast_one(WEIR_DTYPE_UINT64, WEIR_DTYPE_FLOAT, &low) == 0);
  assert_true(cast_one(WEIR_DTYPE_INT64, WEIR_DTYPE_FLOAT, &nan) == 0);
  assert_true(cast_one(WEIR_DTYPE_INT16, WEIR_DTYPE_FLOAT, &fraction) == -2);
  assert_true(cast_one(WEIR_DTYPE_UINT8, WEIR_DTYPE_INT32, &wide) == 44);
  assert_true(cast_one(WEIR_DTYPE_BOOL, WEIR_DTYPE_FLOAT, &nan) == 1);
  assert_true(cast_one(WEIR_DTYPE_INT4, WEIR_DTYPE_INT32, &(int32_t){9}) == -7);
  assert_true(cast_one(WEIR_DTYPE_INT2, WEIR_DTYPE_INT32, &(int32_t){6}) == -2);
  assert_true(cast_one(WEIR_DTYPE_UINT2, WEIR_DTYPE_INT32, &(int32_t){6}) == 2);
  assert_true(cast_one(WEIR_DTYPE_FLOAT4_E2M1FN, WEIR_DTYPE_FLOAT, &big) == 6);
  const float complex64[2] = {3, 4};
  assert_true(cast_one(WEIR_DTYPE_UINT16, WEIR_DTYPE_COMPLEX64, complex64) == 3);
  double complex128[2];
  assert_null(
      weir_cast_elements(WEIR_DTYPE_COMPLEX128, complex128, WEIR_DTYPE_COMPLEX64, complex64, 1));
  assert_true(complex128[0] == 3 && complex128[1] == 4);
  expect_error(weir_cast_elements(WEIR_DTYPE_STRING, complex128, WEIR_DTYPE_FLOAT, &big, 1),
               WEIR_UNIMPLEMENTED, "Cast float to string");
}

static void expect_as_singles(weir_dtype_t to, weir_dtype_t from, const void* elements, int count) {
  const size_t size = weir_dtype_size(to), step = weir_dtype_size(from);
  char many[64 * 8], one[8];
  assert_null(weir_cast_elements(to, many, from, elements, count));
  for (int i = 0; i < count; ++i) {
    assert_null(weir_cast_elements(to, one, from, (const char*)elements + (size_t)i * step, 1));
    assert_memory_equal(many + (size_t)i * size, one, size);
  }
}

// What does not fit is the same in the vector part of a loop as for one element.
static void test_cast_vectors(void** state) {
  (void)state;
  static const double values[] = {0.5,     -0.5,         300.7,    -1,        0x1p31,
                                  -0x1p31, 0x1p31 - 0.5, 1e10,     -1e10,     0x1p32,
                                  1e20,    -1e20,        INFINITY, -INFINITY, NAN};
  enum { COUNT = 3 * WEIR_COUNT_OF(values) };
  double doubles[COUNT];
  float floats[COUNT];
  for (int i = 0; i < COUNT; ++i) {
    doubles[i] = values[i % (COUNT / 3)];
    floats[i] = (float)doubles[i];
  }
  for (int t = 1; t < WEIR_DTYPE_COUNT; ++t) {
    const weir_dtype_t to = (weir_dtype_t)t;
    if (!weir_dtype_is_valid(to) || !weir_dtype_is_integer(to)) continue;
    expect_as_singles(to, WEIR_DTYPE_FLOAT, floats, COUNT);
    expect_as_singles(to, WEIR_DTYPE_DOUBLE, doubles, COUNT);
  }
}

// Every pair of plain types carries small whole numbers, across chunk borders too.
static void test_cast_all_pairs(void** state) {
  (void)state;
  enum { COUNT = 600 };
  static uint8_t values[COUNT];
  static double from[2 * COUNT];
  static double to[2 * COUNT];
  static double back[COUNT];
  for (int i = 0; i < COUNT; ++i) values[i] = (uint8_t)(i % 2);
  for (int a = 1; a < WEIR_DTYPE_COUNT; ++a) {
    if (!weir_dtype_is_valid((weir_dtype_t)a) || !weir_dtype_is_plain((weir_dtype_t)a)) continue;
    assert_null(weir_cast_elements((weir_dtype_t)a, from, WEIR_DTYPE_UINT8, values, COUNT));
    for (int b = 1; b < WEIR_DTYPE_COUNT; ++b) {
      if (!weir_dtype_is_valid((weir_dtype_t)b) || !weir_dtype_is_plain((weir_dtype_t)b)) continue;
      assert_null(weir_cast_elements((weir_dtype_t)b, to, (weir_dtype_t)a, from, COUNT));
      assert_null(weir_cast_elements(WEIR_DTYPE_DOUBLE, back, (weir_dtype_t)b, to, COUNT));
      for (int i = 0; i < COUNT; ++i) assert_true(back[i] == i % 2);
    }
  }
}

// ---- printing ----

static void expect_print(weir_tensor_t* take_tensor, int64_t limit, const char* text) {
  weir_strbuf_t out = {0};
  weir_tensor_print(take_tensor, limit, &out);
  assert_string_equal(out.data, text);
  weir_strbuf_free(&out);
  weir_tensor_release(take_tensor);
}

static weir_tensor_t* tensor_of(weir_dtype_t dtype, int rank, const int64_t* dims,
                                const void* data) {
  weir_tensor_t* tensor = NULL;
  assert_null(weir_tensor_create_from(dtype, rank, dims, data, &tensor));
  return tensor;
}

static void test_print(void** state) {
  (void)state;
  const int64_t two_by_three[] = {2, 3};
  const int64_t three[] = {3};
  const int64_t nine[] = {9};
  const int32_t ints[] = {1, 2, 3, 4, 5, -6};
  expect_print(tensor_of(WEIR_DTYPE_INT32, 2, two_by_three, ints), -1, "[[1 2 3] [4 5 -6]]");
  expect_print(tensor_of(WEIR_DTYPE_INT32, 2, two_by_three, ints), 2, "[[1 2...] [4 5...]]");
  expect_print(tensor_of(WEIR_DTYPE_INT32, 0, NULL, ints), 2, "1");
  const float floats[] = {0.1f, 100, 1e10f, -2.5f, NAN, -INFINITY, 123456.0f, 16777216.0f, 0};
  expect_print(tensor_of(WEIR_DTYPE_FLOAT, 1, nine, floats), -1,
               "[0.1 100 1e+10 -2.5 nan -inf 123456 16777216 0]");
  const double doubles[] = {0.1, 1.0 / 3, 1e-7};
  expect_print(tensor_of(WEIR_DTYPE_DOUBLE, 1, three, doubles), -1,
               "[0.1 0.3333333333333333 1e-07]");
  const weir_half_t halves[] = {weir_half_from_float(0.1f), weir_half_from_float(2050), {0}};
  expect_print(tensor_of(WEIR_DTYPE_HALF, 1, three, halves), -1, "[0.1 2050 0]");
  expect_print(tensor_of(WEIR_DTYPE_BOOL, 1, three, "\1\0\1"), -1, "[True False True]");
  const float complex64[] = {1, -2};
  expect_print(tensor_of(WEIR_DTYPE_COMPLEX64, 0, NULL, complex64), -1, "1-2j");
  const uint64_t large = UINT64_MAX;
  expect_print(tensor_of(WEIR_DTYPE_UINT64, 0, NULL, &large), -1, "18446744073709551615");
  expect_print(tensor_of(WEIR_DTYPE_FLOAT, 2, (int64_t[]){0, 2}, NULL), -1, "[]");
  weir_tensor_t* strings = NULL;
  assert_null(weir_tensor_create_strings(1, (int64_t[]){2}, (const char*[]){"a\"b", "\n\1"}, NULL,
                                         &strings));
  expect_print(strings, -1, "[\"a\\\"b\" \"\\n\\x01\"]");
}

static void test_shape_text(void** state) {
  (void)state;
  char text[WEIR_SHAPE_TEXT_SIZE];
  int64_t dims[WEIR_MAX_RANK];
  for (int i = 0; i < WEIR_MAX_RANK; ++i) dims[i] = INT64_MIN;
  assert_string_equal(weir_shape_text(0, NULL, text), "[]");
  assert_string_equal(weir_shape_text(2, (int64_t[]){2, 3}, text), "[2,3]");
  assert_true(strlen(weir_shape_text(WEIR_MAX_RANK, dims, text)) < WEIR_SHAPE_TEXT_SIZE);
  assert_non_null(strstr(text, ",...]"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_create),        cmocka_unit_test(test_create_refuses),
      cmocka_unit_test(test_check_sizes),   cmocka_unit_test(test_empty),
      cmocka_unit_test(test_views),         cmocka_unit_test(test_wrap),
      cmocka_unit_test(test_create_in),     cmocka_unit_test(test_string_element),
      cmocka_unit_test(test_string_tensor), cmocka_unit_test(test_short_strings_are_inside),
      cmocka_unit_test(test_handles),       cmocka_unit_test(test_variants),
      cmocka_unit_test(test_half),          cmocka_unit_test(test_bfloat16),
      cmocka_unit_test(test_float8),        cmocka_unit_test(test_cast_saturates),
      cmocka_unit_test(test_cast_vectors),  cmocka_unit_test(test_cast_all_pairs),
      cmocka_unit_test(test_print),         cmocka_unit_test(test_shape_text),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

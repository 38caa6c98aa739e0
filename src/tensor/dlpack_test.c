// dlpack_test.c — DLPack: out and in again without a copy, strides, and what is refused.
#include "tensor/dlpack.h"

#include <string.h>

#include "tensor/tensor.h"
#include "testing/tensors.h"
#include "weir/dlpack.h"

static weir_tensor_t* create(void) {
  weir_tensor_t* tensor = NULL;
  float values[] = {1, 2, 3, 4, 5, 6};
  assert_null(weir_tensor_create_from(WEIR_DTYPE_FLOAT, 2, (int64_t[]){2, 3}, values, &tensor));
  return tensor;
}

static void test_out_and_in(void** state) {
  (void)state;
  weir_tensor_t* tensor = create();
  const void* data = weir_tensor_data(tensor);
  struct DLManagedTensorVersioned* managed = NULL;
  assert_true(weir_tensor_is_writable(tensor));
  assert_null(weir_tensor_to_dlpack(tensor, &managed));
  assert_false(weir_tensor_is_writable(tensor));
  assert_int_equal(managed->flags, 0);
  assert_int_equal(managed->tensor.strides[0], 3);
  assert_int_equal(managed->tensor.strides[1], 1);
  weir_tensor_release(tensor);
  assert_null(weir_tensor_from_dlpack(managed, &tensor));
  assert_ptr_equal(weir_tensor_data(tensor), data);
  assert_int_equal(weir_tensor_dim(tensor, 1), 3);
  assert_null(weir_tensor_to_dlpack(tensor, &managed));
  assert_int_equal(managed->flags, DLPACK_READ_ONLY);  // somebody else's memory
  weir_tensor_release(tensor);
  managed->deleter(managed);
}

static void test_old(void** state) {
  (void)state;
  weir_tensor_t* tensor = create();
  struct DLManagedTensor* managed = NULL;
  assert_null(weir_tensor_to_dlpack_old(tensor, &managed));
  struct DLManagedTensor* second = NULL;
  check_error(weir_tensor_to_dlpack_old(tensor, &second), WEIR_FAILED_PRECONDITION, "shared");
  weir_tensor_release(tensor);
  assert_null(weir_tensor_from_dlpack_old(managed, &tensor));
  assert_float_equal(((float*)weir_tensor_data(tensor))[5], 6, 0);
  weir_tensor_release(tensor);
}

static int deleted;
static void count_old(struct DLManagedTensor* self) {
  (void)self;
  ++deleted;
}
static void count_versioned(struct DLManagedTensorVersioned* self) {
  (void)self;
  ++deleted;
}

static struct DLManagedTensor strided(float* data, int64_t* shape, int64_t* strides) {
  return (struct DLManagedTensor){.tensor = {data, DLPACK_CPU, 0, 2, {2, 32, 1}, shape, strides, 0},
                                  .deleter = count_old};
}

static void test_strides_are_copied(void** state) {
  (void)state;
  float data[] = {1, 2, 3, 4, 5, 6};
  int64_t shape[] = {3, 2}, transposed[] = {1, 3};
  struct DLManagedTensor managed = strided(data, shape, transposed);
  weir_tensor_t* tensor = NULL;
  deleted = 0;
  assert_null(weir_tensor_from_dlpack_old(&managed, &tensor));
  assert_int_equal(deleted, 1);
  assert_memory_equal(weir_tensor_data(tensor), ((float[]){1, 4, 2, 5, 3, 6}), sizeof(data));
  weir_tensor_release(tensor);
  managed = strided(data + 5, shape, (int64_t[]){-2, -1});  // backwards
  assert_null(weir_tensor_from_dlpack_old(&managed, &tensor));
  assert_memory_equal(weir_tensor_data(tensor), ((float[]){6, 5, 4, 3, 2, 1}), sizeof(data));
  weir_tensor_release(tensor);
  managed = strided(data, shape, NULL);
  managed.tensor.byte_offset = 0;
  assert_null(weir_tensor_from_dlpack_old(&managed, &tensor));
  assert_ptr_equal(weir_tensor_data(tensor), data);
  weir_tensor_release(tensor);
  assert_int_equal(deleted, 3);
}

static void refuse(struct DLManagedTensor managed, weir_code_t code, const char* text) {
  weir_tensor_t* tensor = NULL;
  deleted = 0;
  check_error(weir_tensor_from_dlpack_old(&managed, &tensor), code, text);
  assert_int_equal(deleted, 1);
  assert_null(tensor);
}

static void test_refusals(void** state) {
  (void)state;
  float data[6] = {0};
  int64_t shape[] = {3, 2}, negative[] = {3, -2}, huge[] = {INT64_MAX, 16};
  struct DLManagedTensor good = strided(data, shape, NULL), bad = good;
  bad.tensor.device_type = 2;
  refuse(bad, WEIR_UNIMPLEMENTED, "device type 2");
  bad = good;
  bad.tensor.type.lanes = 4;
  refuse(bad, WEIR_UNIMPLEMENTED, "4 lanes");
  bad = good;
  bad.tensor.rank = 300;
  refuse(bad, WEIR_INVALID_ARGUMENT, "rank 300");
  bad.tensor.rank = -1;
  refuse(bad, WEIR_INVALID_ARGUMENT, "rank -1");
  bad = good;
  bad.tensor.shape = NULL;
  refuse(bad, WEIR_INVALID_ARGUMENT, "without a shape");
  bad = good;
  bad.tensor.data = NULL;
  refuse(bad, WEIR_INVALID_ARGUMENT, "without data");
  refuse(strided(data, negative, NULL), WEIR_INVALID_ARGUMENT, "");
  refuse(strided(data, huge, NULL), WEIR_INVALID_ARGUMENT, "");
  struct DLManagedTensorVersioned later = {.major = 2, .deleter = count_versioned};
  weir_tensor_t* tensor = NULL;
  deleted = 0;
  check_error(weir_tensor_from_dlpack(&later, &tensor), WEIR_UNIMPLEMENTED, "version 2.0");
  assert_int_equal(deleted, 1);
  weir_tensor_t* strings = NULL;
  assert_null(weir_tensor_create(WEIR_DTYPE_STRING, 0, NULL, &strings));
  struct DLManagedTensorVersioned* managed = NULL;
  check_error(weir_tensor_to_dlpack(strings, &managed), WEIR_UNIMPLEMENTED, "string");
  weir_tensor_release(strings);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_out_and_in), cmocka_unit_test(test_old),
                                     cmocka_unit_test(test_strides_are_copied),
                                     cmocka_unit_test(test_refusals)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

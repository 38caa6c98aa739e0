// parcel_test.c — Copies of parcels: of every item, or of none.
#include "tensor/parcel.h"

#include "base/alloc.h"
#include "testing/tensors.h"

enum { COUNT = 3 };

static weir_parcel_t* make_parcel(void) {
  weir_parcel_t* parcel = NULL;
  check_ok(weir_parcel_create(&weir_tensor_variant_type, COUNT, &parcel));
  for (int i = 0; i < COUNT; ++i) parcel->items[i] = make_float((float)i);
  return parcel;
}

// Copies as many tensors as |arg| says, and fails then.
static weir_status_t* copy_some(void* arg, weir_tensor_t* tensor, weir_tensor_t** out_tensor) {
  int* left = arg;
  if ((*left)-- == 0) return WEIR_STATUS(DATA_LOSS, "no more");
  return weir_tensor_create_from(WEIR_DTYPE_FLOAT, 0, NULL, tensor->data, out_tensor);
}

static void test_map(void** state) {
  (void)state;
  weir_parcel_t* parcel = make_parcel();
  int left = COUNT;
  void* object = NULL;
  check_ok(weir_parcel_map(parcel, (weir_tensor_map_t){copy_some, &left}, &object));
  weir_parcel_t* copy = object;
  assert_int_equal(copy->count, COUNT);
  for (int i = 0; i < COUNT; ++i) {
    assert_ptr_not_equal(copy->items[i], parcel->items[i]);
    assert_float_equal(float_of(copy->items[i]), i, 0);
  }
  weir_variant_release(&copy->base);
  weir_variant_release(&parcel->base);
}

static void test_map_fails(void** state) {
  (void)state;
  weir_parcel_t* parcel = make_parcel();
  void* object = NULL;
  for (int n = 0; n < COUNT; ++n) {
    int left = n;
    check_error(weir_parcel_map(parcel, (weir_tensor_map_t){copy_some, &left}, &object),
                WEIR_DATA_LOSS, "no more");
    assert_null(object);
  }
  int left = COUNT;
  weir_alloc_fail_at(1, false);
  weir_status_t* status = weir_parcel_map(parcel, (weir_tensor_map_t){copy_some, &left}, &object);
  weir_alloc_fail_at(0, false);
  check_error(status, WEIR_RESOURCE_EXHAUSTED, "memory");
  assert_null(object);
  weir_variant_release(&parcel->base);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_map), cmocka_unit_test(test_map_fails)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

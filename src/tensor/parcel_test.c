// parcel_test.c — Copies of parcels: of every item, or of none; zeros like them.
#include "tensor/parcel.h"

#include "base/alloc.h"
#include "tensor/composite.h"
#include "tensor/parcel_kinds.h"
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

// Zeros of a ragged row: its splits, and zeros for its values.
static void test_zeros(void** state) {
  (void)state;
  weir_parcel_t* row = NULL;
  const int64_t two = 2;
  check_ok(weir_parcel_create(&weir_ragged_variant_type, 2, &row));
  row->items[0] = make_tensor(WEIR_DTYPE_INT64, 1, &two, (const int64_t[]){0, 2});
  row->items[1] = make_tensor(WEIR_DTYPE_FLOAT, 1, &two, (const float[]){3, 4});
  for (int64_t n = 0; n <= 1; ++n) {
    void* object = NULL;
    weir_alloc_fail_at(n, false);
    weir_status_t* status = weir_ragged_variant_type.zeros_like(row, &object);
    weir_alloc_fail_at(0, false);
    if (n > 0) {
      check_error(status, WEIR_RESOURCE_EXHAUSTED, "memory");
      assert_null(object);
      continue;
    }
    check_ok(status);
    weir_parcel_t* zeros = object;
    assert_int_equal(zeros->count, 2);
    assert_ptr_equal(zeros->items[0], row->items[0]);
    assert_memory_equal(zeros->items[1]->data, ((const float[]){0, 0}), 2 * sizeof(float));
    weir_variant_release(&zeros->base);
  }
  weir_variant_release(&row->base);
}

// A composite: each allocation of it fails in turn.
static void test_composite(void** state) {
  (void)state;
  static const char kMetadata[] = "longer than a string that needs no memory of its own";
  weir_parcel_t* parcel = NULL;
  weir_code_t code = WEIR_RESOURCE_EXHAUSTED;
  for (int64_t n = 1; code != WEIR_OK; ++n) {
    weir_alloc_fail_at(n, false);
    weir_status_t* status = weir_composite_create(COUNT, weir_view_of(kMetadata), &parcel);
    weir_alloc_fail_at(0, false);
    code = weir_status_code(status);
    assert_true(code == WEIR_OK ? n > 2 : code == WEIR_RESOURCE_EXHAUSTED && !parcel);
    weir_status_destroy(status);
  }
  assert_int_equal(parcel->count, COUNT + 1);
  assert_true(weir_view_is(weir_composite_metadata(parcel), kMetadata));
  weir_variant_release(&parcel->base);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_map), cmocka_unit_test(test_map_fails),
                                     cmocka_unit_test(test_zeros),
                                     cmocka_unit_test(test_composite)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

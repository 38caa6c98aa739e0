// tensor_list_test.c — Lists of tensors: copies, sums and zeros, also of lists within lists.
#include "tensor/tensor_list.h"

#include "base/alloc.h"
#include "tensor/accumulate.h"
#include "testing/cmocka.h"

static weir_tensor_t* vector(float a, float b) {
  weir_tensor_t* t = NULL;
  weir_status_t* status =
      weir_tensor_create_from(WEIR_DTYPE_FLOAT, 1, (const int64_t[]){2}, (const float[]){a, b}, &t);
  assert_null(status);
  return t;
}

static void assert_fails(weir_status_t* status, const char* text) {
  assert_non_null(status);
  assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
  if (!strstr(weir_status_message(status), text))
    fail_msg("'%s' not in '%s'", text, weir_status_message(status));
  weir_status_destroy(status);
}

static void assert_vector(weir_tensor_t* take_tensor, float a, float b) {
  assert_int_equal(take_tensor->count, 2);
  assert_true(WEIR_TENSOR_DATA(take_tensor, float)[0] == a);
  assert_true(WEIR_TENSOR_DATA(take_tensor, float)[1] == b);
  weir_tensor_release(take_tensor);
}

static void test_sum_and_copy(void** state) {
  (void)state;
  weir_list_t* a = NULL;
  weir_list_t* b = NULL;
  void* sum = NULL;
  void* zeros = NULL;
  assert_null(weir_list_create(WEIR_DTYPE_FLOAT, &weir_shape_unknown, 1, &a));
  assert_null(weir_list_push(a, vector(1, 2)));
  assert_null(weir_list_copy(a, &b));
  assert_ptr_equal(a->items[1], b->items[1]);
  assert_null(weir_list_type.add(a, b, &sum));
  assert_null(((weir_list_t*)sum)->items[0]);
  assert_vector(weir_tensor_retain(((weir_list_t*)sum)->items[1]), 2, 4);
  assert_vector(weir_tensor_retain(a->items[1]), 1, 2);
  assert_null(weir_list_type.zeros_like(a, &zeros));
  assert_vector(weir_tensor_retain(((weir_list_t*)zeros)->items[1]), 0, 0);
  assert_null(weir_list_resize(b, 5));
  weir_list_release(sum);
  sum = NULL;
  assert_fails(weir_list_type.add(a, b, &sum), "different lengths");
  weir_list_release(zeros);
  weir_list_release(a);
  weir_list_release(b);
}

// Its array has no place left: whoever goes past the end leaves the memory of the list.
static void test_zeros_of_a_full_list(void** state) {
  (void)state;
  weir_list_t* list = NULL;
  void* zeros = NULL;
  assert_null(weir_list_create(WEIR_DTYPE_FLOAT, &weir_shape_unknown, 0, &list));
  do assert_null(weir_list_push(list, vector(1, 2)));
  while (list->count < list->capacity);
  assert_null(weir_list_type.zeros_like(list, &zeros));
  assert_int_equal(((weir_list_t*)zeros)->count, list->count);
  for (size_t i = 0; i < list->count; ++i)
    assert_vector(weir_tensor_retain(((weir_list_t*)zeros)->items[i]), 0, 0);
  weir_list_release(zeros);
  weir_list_release(list);
}

// A list of a tensor of variants: a list of one vector, one that was never set, the same list.
static weir_list_t* list_of_lists(bool has_gap) {
  weir_list_t *list = NULL, *first = NULL, *last = NULL;
  weir_tensor_t* item = NULL;
  assert_null(weir_list_create(WEIR_DTYPE_FLOAT, &weir_shape_unknown, 0, &first));
  assert_null(weir_list_push(first, vector(1, 2)));
  assert_null(weir_list_copy(first, &last));
  assert_null(
      weir_tensor_create_zeros(WEIR_DTYPE_VARIANT, 1, (const int64_t[]){has_gap ? 3 : 2}, &item));
  WEIR_TENSOR_DATA(item, weir_variant_t)[0].object = &first->base;
  WEIR_TENSOR_DATA(item, weir_variant_t)[has_gap ? 2 : 1].object = &last->base;
  assert_null(weir_list_create(WEIR_DTYPE_VARIANT, &weir_shape_unknown, 0, &list));
  assert_null(weir_list_push(list, item));
  return list;
}

static const weir_list_t* inner(const weir_list_t* list, int i) {
  return (const void*)WEIR_TENSOR_DATA(list->items[0], const weir_variant_t)[i].object;
}

static void test_zeros_of_lists_within_a_list(void** state) {
  (void)state;
  weir_list_t* list = list_of_lists(true);
  void* zeros = NULL;
  assert_null(weir_list_type.zeros_like(list, &zeros));
  assert_int_equal(((weir_list_t*)zeros)->items[0]->count, 3);
  assert_null(inner(zeros, 1));
  for (int i = 0; i < 3; i += 2) {
    assert_int_equal(inner(zeros, i)->count, 1);
    assert_vector(weir_tensor_retain(inner(zeros, i)->items[0]), 0, 0);
  }
  assert_vector(weir_tensor_retain(inner(list, 0)->items[0]), 1, 2);
  weir_list_release(zeros);
  weir_list_release(list);
}

static void test_sum_of_lists_within_a_list(void** state) {
  (void)state;
  weir_list_t *list = list_of_lists(false), *gap = list_of_lists(true);
  void* sum = NULL;
  assert_null(weir_list_type.add(list, list, &sum));
  for (int i = 0; i < 2; ++i) assert_vector(weir_tensor_retain(inner(sum, i)->items[0]), 2, 4);
  assert_vector(weir_tensor_retain(inner(list, 0)->items[0]), 1, 2);
  weir_list_release(sum);
  sum = NULL;
  assert_fails(weir_list_type.add(gap, gap, &sum), "Cannot add variants of different types");
  assert_fails(weir_list_type.add(list, gap, &sum), "incompatible element shapes");
  weir_list_release(list);
  weir_list_release(gap);
}

// Whichever allocation fails, nothing is left of what was made, and the list is as it was.
static void test_out_of_memory(void** state) {
  (void)state;
  weir_list_t* list = list_of_lists(false);
  weir_list_t* copy = NULL;
  assert_null(weir_list_push(list, weir_tensor_retain(list->items[0])));
  for (int what = 0; what < 3; ++what) {
    bool is_done = false;
    for (int64_t n = 1; !is_done; ++n) {
      void* made = NULL;
      weir_alloc_fail_at(n, false);
      weir_status_t* status = what == 0   ? weir_list_type.zeros_like(list, &made)
                              : what == 1 ? weir_list_type.add(list, list, &made)
                                          : weir_list_copy(list, &copy);
      weir_alloc_fail_at(0, false);
      is_done = status == NULL;
      if (status) assert_int_equal(weir_status_code(status), WEIR_RESOURCE_EXHAUSTED);
      weir_status_destroy(status);
      if (is_done) weir_list_release(what == 2 ? copy : made);
    }
  }
  assert_int_equal(list->count, 2);
  assert_vector(weir_tensor_retain(inner(list, 0)->items[0]), 1, 2);
  weir_list_release(list);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sum_and_copy),
      cmocka_unit_test(test_zeros_of_a_full_list),
      cmocka_unit_test(test_zeros_of_lists_within_a_list),
      cmocka_unit_test(test_sum_of_lists_within_a_list),
      cmocka_unit_test(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

// tensor_array_resource_test.c — TensorArrays below the ops: write once, read, add up, copy on
// write.
#include "ops/list/tensor_array_resource.h"

#include "testing/cmocka.h"

static weir_tensor_t* vector(float a, float b) {
  weir_tensor_t* t = NULL;
  weir_status_t* status =
      weir_tensor_create_from(WEIR_DTYPE_FLOAT, 1, (const int64_t[]){2}, (const float[]){a, b}, &t);
  assert_null(status);
  return t;
}

static weir_tensor_array_t* create(int64_t size, bool is_dynamic, bool clears) {
  weir_tensor_array_t* array = NULL;
  weir_status_t* status =
      weir_tensor_array_create(&(weir_tensor_array_params_t){.name = "a",
                                                             .dtype = WEIR_DTYPE_FLOAT,
                                                             .size = size,
                                                             .element_shape = &weir_shape_unknown,
                                                             .is_dynamic = is_dynamic,
                                                             .clears_after_read = clears,
                                                             .has_identical_shapes = true},
                               &array);
  assert_null(status);
  return array;
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

static void test_write_and_read(void** state) {
  (void)state;
  weir_tensor_array_t* array = create(2, false, true);
  weir_tensor_t* value = NULL;
  assert_fails(weir_tensor_array_read(array, 0, NULL, &value), "not fully defined: <unknown>.");
  assert_null(weir_tensor_array_write(array, 1, vector(1, 2), NULL));
  assert_fails(weir_tensor_array_write(array, 1, vector(1, 2), NULL), "already been written");
  assert_fails(weir_tensor_array_write(array, 2, vector(1, 2), NULL), "not resizeable");
  assert_fails(weir_tensor_array_read(array, 2, NULL, &value), "array size is: 2");
  assert_null(weir_tensor_array_read(array, 1, NULL, &value));
  assert_vector(value, 1, 2);
  assert_fails(weir_tensor_array_read(array, 1, NULL, &value), "cleared after a previous read");
  assert_null(weir_tensor_array_read(array, 0, NULL, &value));  // the shape is known by now
  assert_vector(value, 0, 0);
  weir_tensor_array_close(array);
  assert_fails(weir_tensor_array_read(array, 1, NULL, &value), "already been closed");
  weir_resource_release(&array->base);
}

static void test_dynamic_size(void** state) {
  (void)state;
  weir_tensor_array_t* array = create(0, true, false);
  int64_t size = 0;
  assert_null(weir_tensor_array_write(array, 4, vector(1, 2), NULL));
  assert_null(weir_tensor_array_size(array, &size));
  assert_int_equal(size, 5);
  weir_tensor_t* value = NULL;
  for (int i = 0; i < 2; ++i) {
    assert_null(weir_tensor_array_read(array, 4, NULL, &value));
    assert_vector(value, 1, 2);
  }
  weir_resource_release(&array->base);
}

static void test_gradient_adds_up(void** state) {
  (void)state;
  weir_tensor_array_t* array = create(2, true, false);
  weir_tensor_array_t* grad = NULL;
  weir_tensor_array_t* again = NULL;
  weir_tensor_t* value = NULL;
  weir_tensor_array_grad_params_t params = {.source = weir_view_of("gradients"),
                                            .name = "a@gradients"};
  assert_null(weir_tensor_array_write(array, 0, vector(1, 2), NULL));
  assert_null(weir_tensor_array_grad(array, &params, &grad));
  assert_null(weir_tensor_array_grad(array, &params, &again));
  assert_ptr_equal(grad, again);
  assert_fails(weir_tensor_array_write(array, 5, vector(1, 2), NULL), "not resizeable");
  weir_tensor_t* shared = vector(3, 4);
  assert_null(weir_tensor_array_write(grad, 0, weir_tensor_retain(shared), NULL));
  assert_null(weir_tensor_array_write(grad, 0, vector(10, 20), NULL));
  assert_null(weir_tensor_array_write(grad, 0, vector(100, 200), NULL));
  assert_vector(shared, 3, 4);  // what others hold is not written to
  assert_null(weir_tensor_array_read(grad, 0, NULL, &value));
  assert_vector(value, 113, 224);
  assert_null(weir_tensor_array_read(grad, 1, NULL, &value));
  assert_vector(value, 0, 0);
  params.source = weir_view_of("other");
  weir_tensor_array_t* other = NULL;
  assert_fails(weir_tensor_array_grad(grad, &params, &other), "gradients of gradients");
  weir_resource_release(&grad->base);
  weir_resource_release(&again->base);
  weir_resource_release(&array->base);
}

// Every allocation fails once: nothing leaks, and the error comes back.
static void test_out_of_memory(void** state) {
  (void)state;
  for (int64_t n = 1; n < 20; ++n) {
    weir_tensor_array_t* array = NULL;
    weir_tensor_t* value = vector(1, 2);
    weir_alloc_fail_at(n, false);
    weir_status_t* status = weir_tensor_array_create(
        &(weir_tensor_array_params_t){
            .name = "a", .dtype = WEIR_DTYPE_FLOAT, .size = 3, .element_shape = &weir_shape_scalar},
        &array);
    if (!status) status = weir_tensor_array_merge_shape(array, &weir_shape_unknown);
    if (!status) {
      status = weir_tensor_array_write(array, 0, weir_tensor_retain(value), NULL);
      weir_status_destroy(status);
      weir_resource_release(&array->base);
    } else {
      assert_int_equal(weir_status_code(status), WEIR_RESOURCE_EXHAUSTED);
      weir_status_destroy(status);
    }
    weir_alloc_fail_at(0, false);
    weir_tensor_release(value);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_write_and_read),
      cmocka_unit_test(test_dynamic_size),
      cmocka_unit_test(test_gradient_adds_up),
      cmocka_unit_test(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

// state_test.c — Pieces of states: what is saved comes back; what does not fit is refused.
#include "ops/data/state.h"

#include "testing/tensors.h"

typedef struct held_t {
  int64_t number;
  bool flag;
  size_t size;
  uint32_t words[2];
  weir_status_t* error;
  weir_tensor_t* element[1];
} held_t;

static const weir_dtype_t kInt = WEIR_DTYPE_INT64;
static const weir_element_types_t kOne = {.count = 1, .types = &kInt};

static void hand_over(held_t* held, weir_state_t* state) {
  weir_state_int(state, "number", &held->number, -9, 9);
  weir_state_bool(state, "flag", &held->flag);
  weir_state_size(state, "size", &held->size, 100);
  weir_state_words(state, "words", held->words, 2);
  weir_state_status(state, "error", &held->error);
  weir_state_maybe_element(state, "element", kOne, held->element);
}

static void held_free(held_t* held) {
  weir_status_destroy(held->error);
  weir_tensor_release(held->element[0]);
}

static weir_variant_data_t* save(int64_t number) {
  weir_variant_data_t* data = NULL;
  int64_t seven = 7;
  held_t held = {.number = number,
                 .flag = true,
                 .size = 5,
                 .words = {1, UINT32_MAX},
                 .error = WEIR_STATUS(DATA_LOSS, "gone")};
  check_ok(weir_tensor_create_from(kInt, 0, NULL, &seven, &held.element[0]));
  check_ok(weir_variant_data_create(&data));
  weir_state_t state = weir_state_save(data, WEIR_STATE_FAIL, NULL);
  hand_over(&held, &state);
  check_ok(weir_state_finish(&state));
  held_free(&held);
  return data;
}

static void test_pieces_come_back(void** unused) {
  (void)unused;
  weir_variant_data_t* data = save(-3);
  held_t held = {.number = 0};
  weir_state_t state = weir_state_restore(data, NULL);
  hand_over(&held, &state);
  check_ok(weir_state_finish(&state));
  assert_int_equal(held.number, -3);
  assert_true(held.flag);
  assert_int_equal(held.size, 5);
  assert_true(held.words[0] == 1 && held.words[1] == UINT32_MAX);
  assert_int_equal(weir_status_code(held.error), WEIR_DATA_LOSS);
  assert_string_equal(weir_status_message(held.error), "gone");
  assert_int_equal(*WEIR_TENSOR_DATA(held.element[0], int64_t), 7);
  held_free(&held);
  weir_variant_data_release(data);
}

static weir_code_t restore_code(weir_variant_data_t* data) {
  held_t held = {.number = 0};
  weir_state_t state = weir_state_restore(data, NULL);
  hand_over(&held, &state);
  weir_status_t* status = weir_state_finish(&state);
  weir_code_t code = weir_status_code(status);
  weir_status_destroy(status);
  held_free(&held);
  return code;
}

static void test_numbers_out_of_bounds_are_refused(void** unused) {
  (void)unused;
  weir_variant_data_t* data = save(10);
  assert_int_equal(restore_code(data), WEIR_INVALID_ARGUMENT);
  weir_variant_data_release(data);
}

static void test_a_piece_of_another_name_is_refused(void** unused) {
  (void)unused;
  weir_variant_data_t* data = save(1);
  int64_t number = 0;
  weir_state_t state = weir_state_restore(data, NULL);
  weir_state_int(&state, "another", &number, 0, 9);
  weir_status_t* status = weir_state_finish(&state);
  assert_int_equal(weir_status_code(status), WEIR_NOT_FOUND);
  weir_status_destroy(status);
  weir_variant_data_release(data);
}

static void test_a_state_that_is_cut_off_or_damaged_is_no_crash(void** unused) {
  (void)unused;
  weir_variant_data_t* data = save(1);
  for (size_t size = data->bytes.size; size-- > 0;) {
    data->bytes.size = size;
    assert_int_not_equal(restore_code(data), WEIR_OK);
  }
  weir_variant_data_release(data);
  for (size_t i = 0;; ++i) {
    data = save(1);
    bool is_in = i < data->bytes.size;
    if (is_in) data->bytes.data[i] ^= 0x15;
    (void)restore_code(data);
    weir_variant_data_release(data);
    if (!is_in) break;
  }
}

static void test_tensors_that_lack_or_are_of_another_type_are_refused(void** unused) {
  (void)unused;
  weir_variant_data_t* data = save(1);
  weir_tensor_release(data->tensors[0]);
  float half = 0.5f;
  check_ok(weir_tensor_create_from(WEIR_DTYPE_FLOAT, 0, NULL, &half, &data->tensors[0]));
  assert_int_equal(restore_code(data), WEIR_INVALID_ARGUMENT);
  weir_tensor_release(data->tensors[--data->count]);
  assert_int_equal(restore_code(data), WEIR_INVALID_ARGUMENT);
  weir_variant_data_release(data);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_pieces_come_back),
      cmocka_unit_test(test_numbers_out_of_bounds_are_refused),
      cmocka_unit_test(test_a_piece_of_another_name_is_refused),
      cmocka_unit_test(test_a_state_that_is_cut_off_or_damaged_is_no_crash),
      cmocka_unit_test(test_tensors_that_lack_or_are_of_another_type_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

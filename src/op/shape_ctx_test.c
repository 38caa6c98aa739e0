// shape_ctx_test.c — What shape functions share: merging, broadcasting, shapes from values.
// cmocka.h needs the headers before it.

#include "op/shape_ctx.h"

#include "testing/cmocka.h"

typedef struct fixture_t {
  weir_arena_t arena;
  weir_node_def_t node;
  const weir_shape_t* inputs[4];
  const weir_tensor_t* values[4];
  const weir_shape_t* as_shapes[4];
  const weir_handle_info_t* handles[4];
  const weir_shape_t* outputs[4];
  const weir_shape_t* out_as_shapes[4];
  const weir_handle_info_t* out_handles[4];
  weir_shape_ctx_t ctx;
} fixture_t;

static int setup(void** state) {
  fixture_t* f = weir_calloc(1, sizeof(*f));
  f->node = (weir_node_def_t){.name = "n", .input_count = 2, .output_count = 1};
  f->ctx = (weir_shape_ctx_t){.node = &f->node,
                              .arena = &f->arena,
                              .input_shapes = f->inputs,
                              .input_values = f->values,
                              .input_values_as_shape = f->as_shapes,
                              .input_handles = f->handles,
                              .output_shapes = f->outputs,
                              .output_values_as_shape = f->out_as_shapes,
                              .output_handles = f->out_handles};
  *state = f;
  return 0;
}

static int teardown(void** state) {
  fixture_t* f = *state;
  weir_arena_free(&f->arena);
  weir_free(f);
  return 0;
}

// A shape from "2,-1"; "" is a scalar, "?" unknown.
static const weir_shape_t* shape(fixture_t* f, const char* text) {
  int64_t dims[8];
  int rank = 0;
  if (strcmp(text, "?") == 0) return &weir_shape_unknown;
  weir_view_t rest = weir_view_of(text);
  weir_view_t part;
  while (rest.size && weir_view_next(&rest, ',', &part))
    assert_true(weir_parse_int64(part, &dims[rank++]));
  return weir_shape_make(&f->arena, rank, dims);
}

static void expect_error(weir_status_t* status, const char* text) {
  assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
  if (!strstr(weir_status_message(status), text)) fail_msg("%s", weir_status_message(status));
  weir_status_destroy(status);
}

static void expect_shape(fixture_t* f, const weir_shape_t* got, const char* want) {
  assert_true(weir_shape_equal(got, shape(f, want)));
}

static void expect_broadcast(fixture_t* f, const char* a, const char* b, const char* want) {
  const weir_shape_t* out = NULL;
  assert_null(weir_shape_broadcast(&f->ctx, shape(f, a), shape(f, b), &out));
  expect_shape(f, out, want);
  assert_null(weir_shape_broadcast(&f->ctx, shape(f, b), shape(f, a), &out));
  expect_shape(f, out, want);
}

static void test_outputs_that_are_not_there(void** state) {
  fixture_t* f = *state;
  assert_null(weir_shape_set_scalar(&f->ctx, 0));
  for (int output = -1; output <= 1; output += 2) {
    weir_status_t* status = weir_shape_set_scalar(&f->ctx, output);
    assert_int_equal(weir_status_code(status), WEIR_INTERNAL);
    weir_status_destroy(status);
  }
}

static void test_broadcast(void** state) {
  fixture_t* f = *state;
  expect_broadcast(f, "2,3", "3", "2,3");
  expect_broadcast(f, "2,1", "1,3", "2,3");
  expect_broadcast(f, "", "2,3", "2,3");
  expect_broadcast(f, "0", "1", "0");
  expect_broadcast(f, "-1", "1", "-1");
  expect_broadcast(f, "-1", "5", "5");
  expect_broadcast(f, "-1", "-1", "-1");
  expect_broadcast(f, "-1", "0", "-1");
  expect_broadcast(f, "?", "5", "?");
  const weir_shape_t* out = NULL;
  expect_error(weir_shape_broadcast(&f->ctx, shape(f, "2"), shape(f, "3"), &out),
               "Dimensions must be equal, but are 2 and 3");
  expect_error(weir_shape_broadcast(&f->ctx, shape(f, "0"), shape(f, "3"), &out), "0 and 3");
}

static void test_join(void** state) {
  fixture_t* f = *state;
  const weir_shape_t* out = NULL;
  assert_null(weir_shape_join(&f->ctx, shape(f, "2,-1"), shape(f, "-1,3"), &out));
  expect_shape(f, out, "2,3");
  assert_null(weir_shape_join(&f->ctx, shape(f, "?"), shape(f, "-1,3"), &out));
  expect_shape(f, out, "-1,3");
  expect_error(weir_shape_join(&f->ctx, shape(f, "2"), shape(f, "2,3"), &out),
               "Shapes must be equal rank, but are 1 and 2");
  expect_error(
      weir_shape_join(&f->ctx, shape(f, "2,3"), shape(f, "2,4"), &out),
      "Dimension 1 in both shapes must be equal, but are 3 and 4. Shapes are [2,3] and [2,4].");
  int64_t dim = 0;
  assert_null(weir_dim_join(&f->ctx, -1, 4, &dim));
  assert_int_equal(dim, 4);
  expect_error(weir_dim_join(&f->ctx, 3, 4, &dim), "Dimensions must be equal, but are 3 and 4");
}

static void test_ranks(void** state) {
  fixture_t* f = *state;
  const weir_shape_t* out = NULL;
  assert_null(weir_shape_with_rank(&f->ctx, shape(f, "?"), 2, &out));
  expect_shape(f, out, "-1,-1");
  expect_error(weir_shape_with_rank(&f->ctx, shape(f, "2,3"), 1, NULL),
               "Shape must be rank 1 but is rank 2");
  expect_error(weir_shape_at_least(&f->ctx, shape(f, "2"), 2), "at least rank 2 but is rank 1");
  expect_error(weir_shape_at_most(&f->ctx, shape(f, "2,2"), 1), "at most rank 1 but is rank 2");
  assert_null(weir_shape_at_least(&f->ctx, shape(f, "?"), 2));
  assert_int_equal(weir_shape_dim(shape(f, "2,3"), -1), 3);
  assert_int_equal(weir_shape_dim(shape(f, "2,3"), 2), -1);
  expect_shape(f, weir_shape_concat(&f->ctx, shape(f, "2"), shape(f, "-1,4")), "2,-1,4");
  expect_shape(f, weir_shape_sub(&f->ctx, shape(f, "2,3,4"), 1, 3), "3,4");
  expect_shape(f, weir_shape_sub(&f->ctx, shape(f, "?"), 1, 3), "?");
}

static void test_from_value(void** state) {
  fixture_t* f = *state;
  const weir_shape_t* out = NULL;
  f->inputs[0] = shape(f, "2");
  assert_null(weir_shape_from_value(&f->ctx, 0, &out));
  expect_shape(f, out, "-1,-1");
  f->as_shapes[0] = shape(f, "-1,7");
  assert_null(weir_shape_from_value(&f->ctx, 0, &out));
  expect_shape(f, out, "-1,7");
  const int64_t dims[] = {2};
  const int32_t data[] = {3, -1};
  const int32_t bad[] = {3, -5};
  weir_tensor_t* value = NULL;
  assert_null(weir_tensor_create_from(WEIR_DTYPE_INT32, 1, dims, data, &value));
  f->values[0] = value;
  assert_null(weir_shape_from_value(&f->ctx, 0, &out));
  expect_shape(f, out, "3,-1");
  memcpy(value->data, bad, sizeof(bad));
  expect_error(weir_shape_from_value(&f->ctx, 0, &out),
               "Invalid value in tensor used for shape: -5");
  weir_tensor_release(value);
  f->values[0] = NULL;
  f->as_shapes[0] = NULL;
  f->inputs[0] = shape(f, "2,2");
  expect_error(weir_shape_from_value(&f->ctx, 0, &out), "Shape must be rank 1 but is rank 2");
  f->inputs[0] = &weir_shape_scalar;
  expect_error(weir_shape_from_value(&f->ctx, 0, &out), "Shape must be rank 1 but is rank 0");
}

// A scalar spells a shape where -1 may stand for any, and nowhere else: whatever its value is.
static void test_from_scalar(void** state) {
  fixture_t* f = *state;
  const weir_shape_t* out = NULL;
  int32_t data = -1;
  weir_tensor_t* value = NULL;
  assert_null(weir_tensor_create_from(WEIR_DTYPE_INT32, 0, NULL, &data, &value));
  f->inputs[0] = shape(f, "");
  for (int is_known = 0; is_known < 2; ++is_known) {
    f->values[0] = is_known ? value : NULL;
    expect_error(weir_shape_from_value(&f->ctx, 0, &out), "Shape must be rank 1 but is rank 0");
    assert_null(weir_shape_from_value_or_scalar(&f->ctx, 0, &out));
    expect_shape(f, out, "?");
  }
  *(int32_t*)value->data = 2;
  expect_error(weir_shape_from_value_or_scalar(&f->ctx, 0, &out), "that is not '-1': 2");
  weir_tensor_release(value);
  f->values[0] = NULL;
  f->inputs[0] = shape(f, "2");
  assert_null(weir_shape_from_value_or_scalar(&f->ctx, 0, &out));
  expect_shape(f, out, "-1,-1");
}

static void test_functions(void** state) {
  fixture_t* f = *state;
  f->inputs[0] = shape(f, "2,-1");
  f->inputs[1] = shape(f, "2,3");
  const weir_handle_info_t info = {.dtype = WEIR_DTYPE_FLOAT, .shape = &weir_shape_scalar};
  f->handles[0] = &info;
  // A value goes on as a shape only through an op that passes it on as it is.
  static const weir_op_t kPasses = {.flags = WEIR_OP_PASS_THROUGH}, kChanges = {.flags = 0};
  f->as_shapes[0] = shape(f, "5,6");
  f->node.op = &kChanges;
  assert_null(weir_shape_fn_unchanged(&f->ctx));
  assert_null(f->out_as_shapes[0]);
  f->node.op = &kPasses;
  assert_null(weir_shape_fn_unchanged(&f->ctx));
  assert_ptr_equal(f->out_as_shapes[0], f->as_shapes[0]);
  expect_shape(f, f->outputs[0], "2,-1");
  assert_ptr_equal(f->out_handles[0], &info);
  assert_null(weir_shape_fn_merge_all(&f->ctx));
  expect_shape(f, f->outputs[0], "2,3");
  f->inputs[1] = shape(f, "3,3");
  expect_error(weir_shape_fn_merge_all(&f->ctx), "From merging shape 1 with other shapes.");
  assert_null(weir_shape_fn_scalar(&f->ctx));
  expect_shape(f, f->outputs[0], "");
  assert_null(weir_shape_set_handle(&f->ctx, 0, WEIR_DTYPE_INT32, NULL));
  assert_int_equal(f->out_handles[0]->shape->rank, -1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_outputs_that_are_not_there, setup, teardown),
      cmocka_unit_test_setup_teardown(test_broadcast, setup, teardown),
      cmocka_unit_test_setup_teardown(test_join, setup, teardown),
      cmocka_unit_test_setup_teardown(test_ranks, setup, teardown),
      cmocka_unit_test_setup_teardown(test_from_value, setup, teardown),
      cmocka_unit_test_setup_teardown(test_from_scalar, setup, teardown),
      cmocka_unit_test_setup_teardown(test_functions, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

// switch_test.c — The shape function of Merge, which only graphs show: of more than one input no
// kernel call has them all.

#include "op/shape_ctx.h"
#include "testing/cmocka.h"

extern const weir_op_module_t weir_ops_control_switch;

// What Merge infers from |count| inputs, of values or of handles.
typedef struct merged_t {
  const weir_shape_t* shape;
  const weir_handle_info_t* handle;
  const weir_shape_t* index;
} merged_t;

static merged_t infer(weir_arena_t* arena, int count, const weir_shape_t* const* shapes,
                      const weir_handle_info_t* const* handles) {
  const weir_op_def_t* op = weir_ops_control_switch.ops;
  while (op->name && strcmp(op->name, "Merge") != 0) ++op;
  assert_non_null(op->name);
  const weir_shape_t* outputs[2] = {NULL};
  const weir_handle_info_t* out_handles[2] = {NULL};
  weir_node_def_t node = {.name = "m", .input_count = count, .output_count = 2};
  weir_shape_ctx_t ctx = {.node = &node,
                          .arena = arena,
                          .input_shapes = (const weir_shape_t**)(uintptr_t)shapes,
                          .input_handles = (const weir_handle_info_t**)(uintptr_t)handles,
                          .output_shapes = outputs,
                          .output_handles = out_handles};
  assert_null(op->infer_shape(&ctx));
  return (merged_t){.shape = outputs[0], .handle = out_handles[0], .index = outputs[1]};
}

static const weir_shape_t* matrix(weir_arena_t* arena, int64_t rows, int64_t columns) {
  return weir_shape_make(arena, 2, (int64_t[]){rows, columns});
}

static void test_merge_keeps_what_all_inputs_share(void** state) {
  (void)state;
  weir_arena_t arena = {0};
  const weir_shape_t* vector = weir_shape_make(&arena, 1, (int64_t[]){2});
  const struct {
    const weir_shape_t *a, *b, *want;
  } rows[] = {
      {matrix(&arena, 2, 3), matrix(&arena, 2, 3), matrix(&arena, 2, 3)},
      {matrix(&arena, 2, 3), matrix(&arena, 2, 4), matrix(&arena, 2, -1)},
      {matrix(&arena, 2, 3), matrix(&arena, 5, 3), matrix(&arena, -1, 3)},
      {matrix(&arena, 2, 3), matrix(&arena, -1, 3), matrix(&arena, -1, 3)},
      {matrix(&arena, -1, 3), matrix(&arena, 2, -1), matrix(&arena, -1, -1)},
      {matrix(&arena, 2, 3), vector, &weir_shape_unknown},
      {matrix(&arena, 2, 3), &weir_shape_unknown, &weir_shape_unknown},
      {&weir_shape_unknown, &weir_shape_unknown, &weir_shape_unknown},
      {&weir_shape_scalar, &weir_shape_scalar, &weir_shape_scalar},
  };
  for (size_t i = 0; i < WEIR_COUNT_OF(rows); ++i) {
    const weir_handle_info_t* none[3] = {NULL};
    merged_t two = infer(&arena, 2, (const weir_shape_t*[]){rows[i].a, rows[i].b}, none);
    assert_true(weir_shape_equal(two.shape, rows[i].want));
    assert_int_equal(two.index->rank, 0);
    two = infer(&arena, 2, (const weir_shape_t*[]){rows[i].b, rows[i].a}, none);
    assert_true(weir_shape_equal(two.shape, rows[i].want));
    merged_t three =
        infer(&arena, 3, (const weir_shape_t*[]){rows[i].a, rows[i].a, rows[i].b}, none);
    assert_true(weir_shape_equal(three.shape, rows[i].want));
  }
  weir_arena_free(&arena);
}

// What is known of a resource behind the handles is merged in the same way.
static void test_merge_of_handles(void** state) {
  (void)state;
  weir_arena_t arena = {0};
  const weir_shape_t* scalars[2] = {&weir_shape_scalar, &weir_shape_scalar};
  weir_handle_info_t a = {.dtype = WEIR_DTYPE_FLOAT, .shape = matrix(&arena, 2, 3)};
  weir_handle_info_t b = {.dtype = WEIR_DTYPE_FLOAT, .shape = matrix(&arena, 2, 4)};
  weir_handle_info_t integer = {.dtype = WEIR_DTYPE_INT32, .shape = a.shape};
  merged_t same = infer(&arena, 2, scalars, (const weir_handle_info_t*[]){&a, &a});
  assert_int_equal(same.handle->dtype, WEIR_DTYPE_FLOAT);
  assert_true(weir_shape_equal(same.handle->shape, a.shape));
  merged_t part = infer(&arena, 2, scalars, (const weir_handle_info_t*[]){&a, &b});
  assert_int_equal(part.handle->dtype, WEIR_DTYPE_FLOAT);
  assert_true(weir_shape_equal(part.handle->shape, matrix(&arena, 2, -1)));
  assert_null(infer(&arena, 2, scalars, (const weir_handle_info_t*[]){&a, &integer}).handle);
  assert_null(infer(&arena, 2, scalars, (const weir_handle_info_t*[]){&a, NULL}).handle);
  assert_null(infer(&arena, 2, scalars, (const weir_handle_info_t*[]){NULL, &a}).handle);
  weir_arena_free(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_merge_keeps_what_all_inputs_share),
      cmocka_unit_test(test_merge_of_handles),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

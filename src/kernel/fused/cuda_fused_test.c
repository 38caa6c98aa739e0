// cuda_fused_test.c — How fused programs are cut into launches, and what their kernels' texts say.
#include "kernel/fused/cuda_fused.h"

#include "kernel/elementwise/elementwise.h"
#include "kernel/fused/cuda_launch.h"
#include "testing/cmocka.h"

typedef struct fixture_t {
  weir_cuda_fused_t code;
  weir_arena_t arena;
  weir_fused_step_t steps[4];
  uint16_t outputs[4];
  weir_dtype_t types[8];
  uint64_t sources[8];
  int16_t output_of[8];
  weir_view_t names[4];
  weir_shape_view_t shapes[8];
  int64_t counts[8];
  weir_fused_launches_t launches;
} fixture_t;

static void add_step(fixture_t* f, weir_scalar_t scalar, uint16_t x, uint16_t y) {
  weir_fused_program_t* program = &f->code.program;
  int value = program->input_count + program->step_count;
  weir_fused_step_t* step = &f->steps[program->step_count++];
  *step = (weir_fused_step_t){
      .scalar = scalar, .type = WEIR_DTYPE_FLOAT, .out_type = WEIR_DTYPE_FLOAT, .operands = {x, y}};
  f->types[value] = WEIR_DTYPE_FLOAT;
  f->sources[value] = f->sources[x] | (weir_scalar_arity(scalar) > 1 ? f->sources[y] : 0);
  f->output_of[value] = -1;
}

static void add_output(fixture_t* f, uint16_t value) {
  f->output_of[value] = (int16_t)f->code.program.output_count;
  f->outputs[f->code.program.output_count++] = value;
}

// A program of float inputs, without steps.
static void start(fixture_t* f, int input_count) {
  *f = (fixture_t){.code = {.program = {.input_count = input_count,
                                        .steps = f->steps,
                                        .outputs = f->outputs,
                                        .names = f->names,
                                        .op_names = f->names},
                            .types = f->types,
                            .sources = f->sources,
                            .output_of = f->output_of}};
  for (int i = 0; i < input_count; ++i) {
    f->types[i] = WEIR_DTYPE_FLOAT;
    f->sources[i] = (uint64_t)1 << i;
    f->output_of[i] = -1;
  }
  for (int i = 0; i < 4; ++i) f->names[i] = weir_view_of("node");
}

static weir_status_t* plan(fixture_t* f) {
  weir_fused_shapes_t shapes = {.shapes = f->shapes, .counts = f->counts};
  weir_arena_free(&f->arena);
  f->arena = (weir_arena_t){0};
  WEIR_TRY(weir_fused_find_shapes(&f->code.program, &f->arena, &shapes));
  return weir_fused_plan(&f->code, &shapes, &f->arena, &f->launches);
}

#define SHAPE(...)                                                                        \
  ((weir_shape_view_t){.rank = (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
                       .dims = (const int64_t[]){__VA_ARGS__}})
#define SCALAR ((weir_shape_view_t){.rank = 0, .dims = NULL})

static const weir_scalar_t add = {WEIR_SCALAR_BINARY, WEIR_BINARY_ADD};
static const weir_scalar_t flat = {WEIR_SCALAR_BINARY_FLAT, WEIR_BINARY_TANH_GRAD};
static const weir_scalar_t sum = {WEIR_SCALAR_REDUCE, WEIR_REDUCE_SUM};
static const weir_scalar_t negative = {WEIR_SCALAR_UNARY, WEIR_UNARY_NEG};

// One way in which the second of two operands may lie in the first.
static void check_kind(weir_shape_view_t x, weir_shape_view_t y, weir_fused_kind_t kind,
                       int64_t extent) {
  fixture_t f;
  start(&f, 2);
  add_step(&f, negative, 0, 0);
  add_step(&f, add, 2, 1);
  add_output(&f, 3);
  f.shapes[0] = x;
  f.shapes[1] = y;
  assert_null(plan(&f));
  assert_int_equal(f.launches.count, 1);
  assert_false(f.launches.is_stepwise);
  assert_int_equal(f.launches.items[0].operand_count, 2);
  assert_int_equal(f.launches.items[0].operands[0].kind, WEIR_FUSED_FULL);
  assert_int_equal(f.launches.items[0].operands[1].kind, kind);
  if (extent) assert_int_equal(f.launches.items[0].operands[1].extent, extent);
  weir_arena_free(&f.arena);
}

static void test_kinds(void** state) {
  (void)state;
  check_kind(SHAPE(4, 6), SHAPE(4, 6), WEIR_FUSED_FULL, 0);
  check_kind(SHAPE(4, 6), SHAPE(1, 4, 6), WEIR_FUSED_FULL, 0);
  check_kind(SHAPE(4, 6), SCALAR, WEIR_FUSED_ONE, 0);
  check_kind(SHAPE(4, 6), SHAPE(1, 1), WEIR_FUSED_ONE, 0);
  check_kind(SHAPE(4, 6), SHAPE(6), WEIR_FUSED_ROW, 6);
  check_kind(SHAPE(3, 4, 6), SHAPE(1, 4, 6), WEIR_FUSED_ROW, 24);
  check_kind(SHAPE(4, 6), SHAPE(4, 1), WEIR_FUSED_COLUMN, 6);
  check_kind(SHAPE(3, 4, 6), SHAPE(3, 1, 1), WEIR_FUSED_COLUMN, 24);
  check_kind(SHAPE(3, 4, 6), SHAPE(3, 1, 6), WEIR_FUSED_STRIDED, 0);
  check_kind(SHAPE(3, 4, 6), SHAPE(4, 1), WEIR_FUSED_STRIDED, 0);
}

// Neighbouring dimensions that an operand does not tell apart are one.
static void test_strides(void** state) {
  (void)state;
  fixture_t f;
  start(&f, 2);
  add_step(&f, add, 0, 1);
  add_output(&f, 2);
  f.shapes[0] = SHAPE(2, 3, 1, 4, 5, 6);
  f.shapes[1] = SHAPE(2, 3, 1, 1, 1, 6);
  assert_null(plan(&f));
  const weir_fused_launch_t* launch = &f.launches.items[0];
  assert_int_equal(launch->rank, 3);
  const int64_t dims[] = {6, 20, 6}, strides[] = {6, 0, 1};
  assert_memory_equal(launch->dims, dims, sizeof(dims));
  assert_memory_equal(launch->operands[1].strides, strides, sizeof(strides));
  weir_arena_free(&f.arena);
}

// A launch for each shape of the outputs, which reads what that needs; none for what is empty.
static void test_launches(void** state) {
  (void)state;
  fixture_t f;
  start(&f, 2);
  add_step(&f, negative, 1, 0);
  add_step(&f, add, 0, 2);
  add_step(&f, negative, 3, 0);
  for (uint16_t value = 2; value < 5; ++value) add_output(&f, value);
  f.shapes[0] = SHAPE(4, 6);
  f.shapes[1] = SHAPE(6);
  assert_null(plan(&f));
  assert_int_equal(f.launches.count, 2);
  assert_int_equal(f.launches.items[0].n, 6);
  assert_int_equal(f.launches.items[0].operand_count, 1);
  assert_int_equal(f.launches.items[1].n, 24);
  assert_int_equal(f.launches.items[1].result_count, 2);
  f.shapes[0] = SHAPE(0, 6);
  assert_null(plan(&f));
  assert_int_equal(f.launches.count, 1);
  weir_arena_free(&f.arena);
}

// An op that counts elements takes those of another shape as they come.
static void test_steps_alone(void** state) {
  (void)state;
  fixture_t f;
  start(&f, 3);
  add_step(&f, add, 0, 1);
  add_step(&f, flat, 2, 3);
  add_output(&f, 4);
  f.shapes[0] = SHAPE(4, 6);
  f.shapes[1] = SHAPE(6);
  f.shapes[2] = SHAPE(24);
  assert_null(plan(&f));
  assert_true(f.launches.is_stepwise);
  assert_int_equal(f.launches.count, 2);
  assert_int_equal(f.launches.items[1].operands[0].kind, WEIR_FUSED_FULL);
  f.shapes[2] = SHAPE(1, 4, 6);
  assert_null(plan(&f));
  assert_false(f.launches.is_stepwise);
  f.shapes[2] = SHAPE(23);
  weir_status_t* status = plan(&f);
  assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
  weir_status_destroy(status);
  weir_arena_free(&f.arena);
}

static void check_text(const fixture_t* f, int width, const char* const* parts) {
  const weir_fused_launch_t* launch = &f->launches.items[0];
  uint16_t values[8];
  uint8_t kinds[8];
  weir_fused_variant_t variant = {.reduced = launch->reduced,
                                  .is_row = launch->is_row,
                                  .operand_count = launch->operand_count,
                                  .result_count = launch->result_count,
                                  .results = launch->results,
                                  .values = values,
                                  .kinds = kinds};
  for (int i = 0; i < launch->operand_count; ++i) {
    values[i] = launch->operands[i].value;
    kinds[i] = launch->operands[i].kind;
  }
  weir_strbuf_t text = {0};
  assert_null(weir_fused_write(&f->code, &variant, &text));
  assert_null(weir_strbuf_finish(&text));
  assert_int_equal(variant.width, width);
  for (; *parts; ++parts) {
    if (!strstr(text.data, *parts)) fail_msg("no '%s' in:\n%s", *parts, text.data);
  }
  weir_strbuf_free(&text);
}

static void test_texts(void** state) {
  (void)state;
  fixture_t f;
  start(&f, 3);
  add_step(&f, add, 0, 1);
  add_step(&f, add, 3, 2);
  add_output(&f, 4);
  f.shapes[0] = SHAPE(4, 6);
  f.shapes[1] = SHAPE(6);
  f.shapes[2] = SCALAR;
  assert_null(plan(&f));
  const char* const parts[] = {"#define NO_CONTRACTION",
                               "void steps(float v0, float v1, float v2, float* r4)",
                               "float v3 = f0(v0, v1);",
                               "float v4 = f0(v3, v2);",
                               "x1 = pack_at(p1, i % ((I)n1 / WIDTH));",
                               "float v2 = *p2;",
                               "steps(p0[i], p1[i % (I)n1], v2, p4 + i);",
                               NULL};
  check_text(&f, 4, parts);
  f.types[0] = f.types[1] = f.types[2] = f.types[3] = f.types[4] = WEIR_DTYPE_HALF;
  for (int i = 0; i < 2; ++i) f.steps[i].type = f.steps[i].out_type = WEIR_DTYPE_HALF;
  check_text(&f, 8, (const char* const[]){"half_t v3 = f0(v0, v1);", NULL});
  weir_arena_free(&f.arena);
}

// A sum over all but the channels goes along with what it sums, over that one's shape; another one
// is a launch of its own.
static void test_reductions(void** state) {
  (void)state;
  fixture_t f;
  start(&f, 2);
  add_step(&f, add, 0, 1);
  add_step(&f, sum, 2, 0);
  f.steps[1].axes = WEIR_FUSED_KEEPS_LAST;
  add_output(&f, 2);
  add_output(&f, 3);
  f.shapes[0] = SHAPE(4, 5, 6);
  f.shapes[1] = SHAPE(6);
  assert_null(plan(&f));
  const weir_fused_launch_t* launch = &f.launches.items[0];
  assert_int_equal(f.launches.count, 1);
  assert_int_equal(f.shapes[3].rank, 1);
  assert_int_equal(f.shapes[3].dims[0], 6);
  assert_int_equal(launch->n, 120);
  assert_int_equal(launch->result_count, 1);
  assert_int_equal(launch->reduced, 3);
  assert_false(launch->is_row);
  const char* const parts[] = {"#define T float",
                               "enum { AHEAD = 2 };",
                               "struct source_t {",
                               "held.x1 = *(const pack_t<float, N>*)(s.p1 + i % (I)s.n1);",
                               "steps(held.x0.at[k], held.x1.at[k], &y2.at[k], &reduced[k]);",
                               "store_whole((pack_t<float, N>*)(s.p2 + i), y2);",
                               NULL};
  check_text(&f, 4, parts);
  f.steps[1].axes = WEIR_FUSED_KEEPS_SECOND;
  assert_null(plan(&f));
  assert_int_equal(f.shapes[3].dims[0], 5);
  assert_true(f.launches.items[0].is_row);
  add_step(&f, sum, 2, 0);
  f.steps[2].axes = WEIR_FUSED_KEEPS_LAST;
  add_output(&f, 4);
  assert_null(plan(&f));
  assert_int_equal(f.launches.count, 2);
  assert_int_equal(f.launches.items[1].reduced, 4);
  assert_int_equal(f.launches.items[1].result_count, 0);
  f.shapes[0] = SHAPE(4, 0, 6);
  assert_null(plan(&f));
  assert_int_equal(f.launches.count, 0);
  f.shapes[0] = SHAPE(6);
  weir_status_t* status = plan(&f);
  assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
  weir_status_destroy(status);
  weir_arena_free(&f.arena);
}

// The program goes into attributes and comes back; one that reads a sum is none.
static void test_attributes(void** state) {
  (void)state;
  fixture_t f;
  weir_named_attr_t attrs[WEIR_FUSED_ATTRS];
  weir_fused_program_t program;
  start(&f, 1);
  add_step(&f, negative, 0, 0);
  add_step(&f, sum, 1, 0);
  f.steps[1].axes = WEIR_FUSED_KEEPS_SECOND;
  add_output(&f, 2);
  assert_null(weir_fused_encode(&f.code.program, &f.arena, attrs));
  weir_node_def_t node = {.input_types = f.types,
                          .input_count = 1,
                          .output_types = f.types,
                          .output_count = 1,
                          .attrs = {.items = attrs, .count = WEIR_FUSED_ATTRS}};
  assert_null(weir_fused_decode(&node, &f.arena, &program));
  assert_true(weir_fused_reduces(&program));
  assert_int_equal(program.steps[1].axes, WEIR_FUSED_KEEPS_SECOND);
  add_step(&f, negative, 2, 0);
  assert_null(weir_fused_encode(&f.code.program, &f.arena, attrs));
  weir_status_t* status = weir_fused_decode(&node, &f.arena, &program);
  assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
  weir_status_destroy(status);
  weir_arena_free(&f.arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_kinds),      cmocka_unit_test(test_strides),
      cmocka_unit_test(test_launches),   cmocka_unit_test(test_steps_alone),
      cmocka_unit_test(test_texts),      cmocka_unit_test(test_reductions),
      cmocka_unit_test(test_attributes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

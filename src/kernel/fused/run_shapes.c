// run_shapes.c — Runs of fused programs where inputs broadcast: which steps go over the largest
// shape.
//
// Values only grow by broadcasting. So the steps whose results are of the largest shape read no
// others than such and smaller ones: these are computed first, each over its own shape, once, and
// then spread over the tiles. Where that order does not hold (empty tensors, ops that count
// elements only), each step is run alone.
#include "kernel/fused/internal.h"
#include "kernel/fused/shapes.h"

typedef struct shaped_t {
  weir_kernel_ctx_t* ctx;
  const weir_fused_code_t* code;
  weir_arena_t arena;
  weir_shape_view_t* shapes;  // by value
  int64_t* counts;            // by value: elements
  char** data;                // by value: memory; NULL: none yet, or in registers only
  bool* is_main;              // by step: of the largest shape
  weir_tensor_t** scratch;    // by step: memory of what is no output; NULL: none
  place_t* places;            // by value
  spread_t** spreads;
  int spread_count;
  int spread_capacity;
} shaped_t;

static weir_status_t* find_shapes(shaped_t* s) {
  const weir_fused_program_t* program = &s->code->program;
  weir_fused_shapes_t found = {.shapes = s->shapes, .counts = s->counts};
  for (int i = 0; i < program->input_count; ++i) {
    const weir_tensor_t* t = weir_kernel_input(s->ctx, i);
    s->shapes[i] = weir_shape_view_of(t);
    s->data[i] = t->data;
  }
  return weir_fused_find_shapes(program, &s->arena, &found);
}

// ---- which steps go together ----

// Whether elements of one lie as those of the other: dimensions of size 1 aside.
static bool is_same_layout(weir_shape_view_t a, weir_shape_view_t b) {
  int i = 0, k = 0;
  for (;;) {
    while (i < a.rank && a.dims[i] == 1) ++i;
    while (k < b.rank && b.dims[k] == 1) ++k;
    if (i == a.rank || k == b.rank) return i == a.rank && k == b.rank;
    if (a.dims[i++] != b.dims[k++]) return false;
  }
}

static int largest_step(const shaped_t* s) {
  int inputs = s->code->program.input_count;
  int largest = 0;
  for (int i = 1; i < s->code->program.step_count; ++i) {
    if (s->counts[inputs + i] > s->counts[inputs + largest]) largest = i;
  }
  return largest;
}

// Whether a step outside the tiles waits for one of theirs.
static bool is_out_of_order(const shaped_t* s, int step) {
  const weir_fused_loop_t* loop = &s->code->loops[step];
  int inputs = s->code->program.input_count;
  for (int k = 0; k < loop->arity; ++k) {
    if (loop->operands[k] >= inputs && s->is_main[loop->operands[k] - inputs]) return true;
  }
  return false;
}

static void choose_main(shaped_t* s, int largest) {
  int inputs = s->code->program.input_count;
  int count = s->code->program.step_count;
  bool is_ordered = true;
  for (int i = 0; i < count; ++i) {
    s->is_main[i] = s->counts[inputs + i] == s->counts[inputs + largest] &&
                    is_same_layout(s->shapes[inputs + i], s->shapes[inputs + largest]);
    if (!s->is_main[i] && is_out_of_order(s, i)) is_ordered = false;
  }
  // Any value may come to be spread, besides those in registers.
  size_t registers = (size_t)(s->code->register_count + inputs + count);
  if (!is_ordered || !weir_fused_fits(registers, s->code->element_size))
    memset(s->is_main, 0, sizeof(*s->is_main) * (size_t)count);
}

// ---- running ----

static weir_status_t* add_spread(shaped_t* s, int value, weir_shape_view_t shape, size_t size) {
  spread_t* spread = weir_arena_alloc(&s->arena, sizeof(*spread));
  if (!spread) return weir_out_of_memory();
  *spread = (spread_t){.data = s->data[value], .size = size, .value = (uint16_t)value};
  WEIR_CHECK(weir_broadcast_plan(shape, s->shapes[value], &spread->plan));
  s->spreads[s->spread_count++] = spread;
  return NULL;
}

// Places an operand that is in memory, for steps over |n| elements of |shape|.
static weir_status_t* place_operand(shaped_t* s, int value, size_t size, weir_shape_view_t shape,
                                    int64_t n) {
  for (int i = 0; i < s->spread_count; ++i) {
    if (s->spreads[i]->value == value) return NULL;
  }
  bool is_one = s->counts[value] == 1;
  bool advances = s->counts[value] == n;
  if (!is_one && !advances) return add_spread(s, value, shape, size);
  s->places[value] = (place_t){
      .base = s->data[value], .step = (uint16_t)(is_one ? 0 : size), .is_one = is_one && n > 1};
  return NULL;
}

static size_t operand_size(const weir_fused_loop_t* loop, int k) {
  return loop->kind == WEIR_SCALAR_SELECT && k == 0 ? sizeof(bool) : weir_dtype_size(loop->type);
}

static weir_status_t* place_operands(shaped_t* s, const uint16_t* list, int count,
                                     weir_shape_view_t shape, int64_t n) {
  s->spread_count = 0;
  for (int i = 0; i < count; ++i) {
    const weir_fused_loop_t* loop = &s->code->loops[list[i]];
    for (int k = 0; k < loop->arity; ++k) {
      if (!s->data[loop->operands[k]]) continue;  // a register
      weir_status_t* status = place_operand(s, loop->operands[k], operand_size(loop, k), shape, n);
      if (status) return weir_fused_at_node(&s->code->program, list[i], status);
    }
  }
  return NULL;
}

static void place_registers(shaped_t* s, const uint16_t* list, int count, size_t slot_size) {
  size_t next = count > 1 ? (size_t)s->code->register_count : 0;
  for (int i = 0; i < count; ++i) {
    const weir_fused_loop_t* loop = &s->code->loops[list[i]];
    place_t* place = &s->places[loop->result];
    char* data = s->data[loop->result];
    *place = (place_t){.base = data,
                       .step = data ? loop->out_size : 0,
                       .offset = (uint32_t)(loop->slot * slot_size)};
  }
  for (int i = 0; i < s->spread_count; ++i, ++next)
    s->places[s->spreads[i]->value] = (place_t){.offset = (uint32_t)(next * slot_size)};
}

// Runs steps whose results have |n| elements of |shape|, and memory where they are read elsewhere.
static weir_status_t* run_list(shaped_t* s, const uint16_t* list, int count,
                               weir_shape_view_t shape, int64_t n) {
  const weir_fused_code_t* code = s->code;
  if (n == 0) return NULL;
  WEIR_TRY(place_operands(s, list, count, shape, n));
  tiles_t tiles = {.code = code,
                   .places = s->places,
                   .list = list,
                   .count = count,
                   .spreads = s->spreads,
                   .spread_count = s->spread_count};
  double cost = 0.5 * s->spread_count;
  for (int i = 0; i < count; ++i) cost += weir_scalar_cost(code->program.steps[list[i]].scalar);
  size_t registers = (size_t)(count > 1 ? code->register_count : 0) + (size_t)s->spread_count;
  tiles.tile = weir_fused_tile(registers, code->element_size, n);
  place_registers(s, list, count, (size_t)tiles.tile * code->element_size);
  weir_fused_run(weir_kernel_pool(s->ctx), &tiles, n, cost);
  return NULL;
}

static weir_status_t* run_alone(shaped_t* s, int step) {
  const weir_fused_loop_t* loop = &s->code->loops[step];
  int64_t n = s->counts[loop->result];
  int output = s->code->output_of[loop->result];
  uint16_t list = (uint16_t)step;
  if (output >= 0) {
    WEIR_TRY(weir_fused_output(s->ctx, output, s->shapes[loop->result], 0, &s->data[loop->result]));
  } else {
    WEIR_TRY(weir_kernel_scratch(s->ctx, loop->out_type, n, &s->scratch[step]));
    s->data[loop->result] = s->scratch[step]->data;
  }
  // Elements are counted off where ops do not broadcast, whatever shapes they are in.
  int64_t flat[] = {n};
  weir_shape_view_t shape = s->shapes[loop->result];
  if (loop->kind == WEIR_SCALAR_BINARY_FLAT) shape = (weir_shape_view_t){.rank = 1, .dims = flat};
  return run_list(s, &list, 1, shape, n);
}

static weir_status_t* run_main(shaped_t* s, int largest, uint16_t* list) {
  int inputs = s->code->program.input_count;
  int64_t n = s->counts[inputs + largest];
  int count = 0;
  for (int i = 0; i < s->code->program.step_count; ++i) {
    if (!s->is_main[i]) continue;
    int value = inputs + i;
    int output = s->code->output_of[value];
    if (output >= 0)
      WEIR_TRY(weir_fused_output(s->ctx, output, s->shapes[value], n, &s->data[value]));
    list[count++] = (uint16_t)i;
  }
  return run_list(s, list, count, s->shapes[inputs + largest], n);
}

static weir_status_t* alloc(shaped_t* s) {
  size_t steps = (size_t)s->code->program.step_count;
  size_t values = steps + (size_t)s->code->program.input_count;
  s->shapes = weir_arena_array(&s->arena, values, sizeof(*s->shapes));
  s->counts = weir_arena_array(&s->arena, values, sizeof(*s->counts));
  s->data = weir_arena_array(&s->arena, values, sizeof(*s->data));
  s->is_main = weir_arena_array(&s->arena, steps, sizeof(*s->is_main));
  s->scratch = weir_arena_array(&s->arena, steps, sizeof(*s->scratch));
  s->places = weir_arena_array(&s->arena, values, sizeof(*s->places));
  s->spreads = weir_arena_array(&s->arena, values, sizeof(*s->spreads));
  bool is_good =
      s->shapes && s->counts && s->data && s->is_main && s->scratch && s->places && s->spreads;
  return is_good ? NULL : weir_out_of_memory();
}

static weir_status_t* run_all(shaped_t* s) {
  int count = s->code->program.step_count;
  uint16_t* list = weir_arena_array(&s->arena, (size_t)count, sizeof(*list));
  if (!list) return weir_out_of_memory();
  int largest = largest_step(s);
  choose_main(s, largest);
  for (int i = 0; i < count; ++i) {
    if (!s->is_main[i]) WEIR_TRY(run_alone(s, i));
  }
  return s->is_main[largest] ? run_main(s, largest, list) : NULL;
}

weir_status_t* weir_fused_compute_shapes(weir_kernel_ctx_t* ctx) {
  shaped_t s = {.ctx = ctx, .code = ctx->state};
  weir_status_t* status = alloc(&s);
  if (!status) status = find_shapes(&s);
  if (!status) status = run_all(&s);
  for (int i = 0; i < s.code->program.step_count && s.scratch; ++i)
    weir_tensor_release(s.scratch[i]);
  weir_arena_free(&s.arena);
  return status;
}

// cuda_plan.c — Launches of a program, by the shapes of its outputs.
//
// A launch goes over all elements of one shape and computes, of each, all that leads to its results
// from the inputs. What is smaller is computed again for each element it is repeated for: that
// costs less than another launch, or memory. Shapes broadcast along their trailing dimensions, so
// through whatever steps an input comes, its own shape says which of its elements belongs to which
// result.
//
// What a reduction makes belongs to a launch over the shape of what it reduces, along with all else
// of that shape. A launch has but one: others are launches of their own.
#include "kernel/fused/cuda_launch.h"

typedef struct planner_t {
  const weir_cuda_fused_t* code;
  const weir_fused_shapes_t* shapes;
  weir_arena_t* arena;
  weir_fused_launches_t* out;
} planner_t;

// ---- how an operand lies ----

// Dimension |d| of |shape|, as one of rank |rank|.
static int64_t dim_of(weir_shape_view_t shape, int rank, int d) {
  int own = d - (rank - shape.rank);
  return own < 0 ? 1 : shape.dims[own];
}

static bool is_row(weir_shape_view_t x, weir_shape_view_t shape) {
  int d = shape.rank - 1;
  while (d >= 0 && dim_of(x, shape.rank, d) == shape.dims[d]) --d;
  while (d >= 0 && dim_of(x, shape.rank, d) == 1) --d;
  return d < 0;
}

static bool is_column(weir_shape_view_t x, weir_shape_view_t shape, int64_t* out_extent) {
  int d = shape.rank - 1;
  for (*out_extent = 1; d >= 0 && dim_of(x, shape.rank, d) == 1; --d) *out_extent *= shape.dims[d];
  while (d >= 0 && dim_of(x, shape.rank, d) == shape.dims[d]) --d;
  return d < 0;
}

static void classify(const planner_t* p, weir_fused_operand_t* operand,
                     const weir_fused_launch_t* launch) {
  weir_shape_view_t x = p->shapes->shapes[operand->value];
  int64_t count = p->shapes->counts[operand->value];
  operand->extent = count;
  if (count == launch->n) operand->kind = WEIR_FUSED_FULL;
  else if (count == 1) operand->kind = WEIR_FUSED_ONE;
  else if (is_row(x, launch->shape)) operand->kind = WEIR_FUSED_ROW;
  else if (is_column(x, launch->shape, &operand->extent)) operand->kind = WEIR_FUSED_COLUMN;
  else operand->kind = WEIR_FUSED_STRIDED;
}

// ---- strides ----

static int64_t stride_at(weir_shape_view_t x, int rank, int d) {
  int64_t stride = 1;
  for (int k = rank - 1; k > d; --k) stride *= dim_of(x, rank, k);
  return dim_of(x, rank, d) == 1 ? 0 : stride;
}

// Whether dimension |d| goes on where the last one so far ends, for all operands.
static bool merges(const planner_t* p, const weir_fused_launch_t* launch, int d) {
  int last = launch->rank - 1;
  for (int i = 0; i < launch->operand_count && last >= 0; ++i) {
    const weir_fused_operand_t* operand = &launch->operands[i];
    if (operand->kind != WEIR_FUSED_STRIDED) continue;
    int64_t stride = stride_at(p->shapes->shapes[operand->value], launch->shape.rank, d);
    if (operand->strides[last] != stride * launch->shape.dims[d]) return false;
  }
  return last >= 0;
}

// False: too many dimensions are left.
static bool find_strides(const planner_t* p, weir_fused_launch_t* launch) {
  for (int d = 0; d < launch->shape.rank; ++d) {
    int64_t dim = launch->shape.dims[d];
    if (dim == 1) continue;
    bool is_merged = merges(p, launch, d);
    int at = is_merged ? launch->rank - 1 : launch->rank++;
    if (at == WEIR_FUSED_MAX_DIMS) return false;
    launch->dims[at] = dim * (is_merged ? launch->dims[at] : 1);
    for (int i = 0; i < launch->operand_count; ++i) {
      weir_shape_view_t x = p->shapes->shapes[launch->operands[i].value];
      if (launch->operands[i].kind == WEIR_FUSED_STRIDED)
        launch->operands[i].strides[at] = stride_at(x, launch->shape.rank, d);
    }
  }
  return true;
}

// False: there are too many ways to broadcast.
static bool place_operands(const planner_t* p, weir_fused_launch_t* launch) {
  int strided = 0;
  for (int i = 0; i < launch->operand_count; ++i) {
    classify(p, &launch->operands[i], launch);
    strided += launch->operands[i].kind == WEIR_FUSED_STRIDED;
  }
  if (strided == 0) return true;
  return strided <= WEIR_FUSED_MAX_STRIDED && find_strides(p, launch);
}

// ---- a launch for each shape ----

// Whether elements of one belong to the same elements of the other, from the last dimension on.
static bool is_alike(weir_shape_view_t a, weir_shape_view_t b) {
  int rank = WEIR_MAX(a.rank, b.rank);
  for (int d = 0; d < rank; ++d) {
    if (dim_of(a, rank, d) != dim_of(b, rank, d)) return false;
  }
  return true;
}

// Ops that count elements take them as they come, in whatever shape.
static bool is_regular(const planner_t* p) {
  const weir_fused_program_t* program = &p->code->program;
  for (int i = 0; i < program->step_count; ++i) {
    const weir_fused_step_t* step = &program->steps[i];
    if (step->scalar.kind == WEIR_SCALAR_BINARY_FLAT &&
        !is_alike(p->shapes->shapes[step->operands[0]], p->shapes->shapes[step->operands[1]]))
      return false;
  }
  return true;
}

// The step that makes |value|, if that is a reduction; NULL: it is not.
static const weir_fused_step_t* reduction_of(const planner_t* p, int value) {
  const weir_fused_step_t* step = weir_fused_step_of(&p->code->program, value);
  return step && weir_scalar_reduces(step->scalar) ? step : NULL;
}

// The value whose shape a launch goes over that makes |value|.
static int value_gone_over(const planner_t* p, int value) {
  const weir_fused_step_t* step = reduction_of(p, value);
  return step ? step->operands[0] : value;
}

static weir_fused_launch_t* find_launch(const planner_t* p, int value) {
  weir_shape_view_t shape = p->shapes->shapes[value_gone_over(p, value)];
  bool is_reduction = reduction_of(p, value) != NULL;
  for (int i = 0; i < p->out->count; ++i) {
    weir_fused_launch_t* launch = &p->out->items[i];
    bool has_room = is_reduction ? launch->reduced == WEIR_FUSED_NO_VALUE
                                 : launch->result_count < WEIR_FUSED_MAX_RESULTS;
    if (is_alike(launch->shape, shape) && has_room) return launch;
  }
  return NULL;
}

static weir_fused_launch_t* add_launch(planner_t* p, int value, int operand_capacity) {
  weir_fused_launch_t* launch = &p->out->items[p->out->count];
  int over = value_gone_over(p, value);
  *launch = (weir_fused_launch_t){
      .n = p->shapes->counts[over],
      .shape = p->shapes->shapes[over],
      .reduced = WEIR_FUSED_NO_VALUE,
      .operands = weir_arena_array(p->arena, (size_t)operand_capacity, sizeof(*launch->operands)),
      .results = weir_arena_array(p->arena, WEIR_FUSED_MAX_RESULTS, sizeof(*launch->results))};
  if (!launch->operands || !launch->results) return NULL;
  ++p->out->count;
  return launch;
}

// Whether the innermost dimensions are reduced, those of one element aside.
static bool is_row_reduced(weir_shape_view_t shape, uint32_t axes) {
  int last = shape.rank - 1;
  while (last >= 0 && shape.dims[last] == 1) --last;
  return last >= 0 && weir_fused_is_reduced(axes, shape.rank, last);
}

static void add_result(const planner_t* p, weir_fused_launch_t* launch, int value) {
  const weir_fused_step_t* reduction = reduction_of(p, value);
  if (!reduction) {
    launch->results[launch->result_count++] = (uint16_t)value;
    return;
  }
  launch->reduced = (uint16_t)value;
  launch->shape = p->shapes->shapes[reduction->operands[0]];  // the axes are counted in it
  launch->is_row = is_row_reduced(launch->shape, reduction->axes);
}

static weir_status_t* sort_outputs(planner_t* p) {
  const weir_fused_program_t* program = &p->code->program;
  for (int i = 0; i < program->output_count; ++i) {
    int value = program->outputs[i];
    if (p->shapes->counts[value_gone_over(p, value)] == 0) continue;
    weir_fused_launch_t* launch = find_launch(p, value);
    if (!launch) launch = add_launch(p, value, program->input_count);
    if (!launch) return weir_out_of_memory();
    add_result(p, launch, value);
  }
  return NULL;
}

static bool place_inputs(planner_t* p, weir_fused_launch_t* launch) {
  uint64_t sources = 0;
  for (int i = 0; i < launch->result_count; ++i) sources |= p->code->sources[launch->results[i]];
  if (launch->reduced != WEIR_FUSED_NO_VALUE) sources |= p->code->sources[launch->reduced];
  for (int i = 0; i < p->code->program.input_count; ++i) {
    if (sources >> i & 1) launch->operands[launch->operand_count++].value = (uint16_t)i;
  }
  return place_operands(p, launch);
}

// ---- a launch for each step ----

static weir_status_t* add_step(planner_t* p, int at) {
  const weir_fused_program_t* program = &p->code->program;
  const weir_fused_step_t* step = &program->steps[at];
  int value = program->input_count + at;
  bool is_unread = reduction_of(p, value) && p->code->output_of[value] < 0;
  if (p->shapes->counts[value_gone_over(p, value)] == 0 || is_unread) return NULL;
  weir_fused_launch_t* launch = add_launch(p, value, WEIR_FUSED_MAX_OPERANDS);
  if (!launch) return weir_out_of_memory();
  add_result(p, launch, value);
  for (int k = 0; k < weir_scalar_arity(step->scalar); ++k) {
    bool is_new = true;
    for (int j = 0; j < k; ++j) is_new = is_new && step->operands[j] != step->operands[k];
    if (is_new) launch->operands[launch->operand_count++].value = step->operands[k];
  }
  if (place_operands(p, launch)) return NULL;
  return weir_fused_at_node(
      program, at,
      WEIR_STATUS(UNIMPLEMENTED, "Broadcast between more than %d dimensions is not supported",
                  (int)WEIR_FUSED_MAX_DIMS));
}

static weir_status_t* make_room(planner_t* p, int count) {
  p->out->count = 0;
  p->out->items = weir_arena_array(p->arena, (size_t)count, sizeof(*p->out->items));
  return p->out->items ? NULL : weir_out_of_memory();
}

weir_status_t* weir_fused_plan(const weir_cuda_fused_t* code, const weir_fused_shapes_t* shapes,
                               weir_arena_t* arena, weir_fused_launches_t* out_launches) {
  planner_t p = {.code = code, .shapes = shapes, .arena = arena, .out = out_launches};
  bool is_placed = is_regular(&p);
  WEIR_TRY(make_room(&p, code->program.output_count));
  if (is_placed) WEIR_TRY(sort_outputs(&p));
  for (int i = 0; i < out_launches->count && is_placed; ++i)
    is_placed = place_inputs(&p, &out_launches->items[i]);
  out_launches->is_stepwise = !is_placed;
  if (is_placed) return NULL;
  WEIR_TRY(make_room(&p, code->program.step_count));
  for (int i = 0; i < code->program.step_count; ++i) WEIR_TRY(add_step(&p, i));
  return NULL;
}

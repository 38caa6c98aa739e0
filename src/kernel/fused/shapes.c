// shapes.c — Shapes of values, step by step, with the errors that the nodes would have given.
#include "kernel/fused/shapes.h"

#include <stdio.h>

#include "base/details.h"
#include "kernel/elementwise/cwise.h"
#include "kernel/nn/activation_op.h"
#include "kernel/nn/bias.h"

static bool is_same(weir_shape_view_t a, weir_shape_view_t b) {
  bool is_equal = a.rank == b.rank;
  for (int i = 0; i < a.rank && is_equal; ++i) is_equal = a.dims[i] == b.dims[i];
  return is_equal;
}

int64_t weir_shape_view_count(weir_shape_view_t shape) {
  int64_t count = 1;
  for (int i = 0; i < shape.rank; ++i) count *= shape.dims[i];
  return count;
}

static weir_status_t* keep_shape(weir_arena_t* arena, const weir_broadcast_t* plan,
                                 weir_shape_view_t* out_shape) {
  int64_t* dims = weir_arena_array(arena, (size_t)plan->out_rank + 1, sizeof(*dims));
  if (!dims) return weir_out_of_memory();
  memcpy(dims, plan->out_dims, sizeof(*dims) * (size_t)plan->out_rank);
  *out_shape = (weir_shape_view_t){.rank = plan->out_rank, .dims = dims};
  return NULL;
}

static weir_status_t* broadcast(weir_arena_t* arena, weir_shape_view_t x, weir_shape_view_t y,
                                weir_shape_view_t* out_shape) {
  weir_broadcast_t plan;
  *out_shape = x;
  if (is_same(x, y) || y.rank == 0) return NULL;
  *out_shape = y;
  if (x.rank == 0) return NULL;
  WEIR_TRY(weir_cwise_broadcast(x, y, &plan));
  return keep_shape(arena, &plan, out_shape);
}

static weir_status_t* select_shape(weir_arena_t* arena, weir_shape_view_t condition,
                                   weir_shape_view_t t, weir_shape_view_t e,
                                   weir_shape_view_t* out_shape) {
  weir_shape_view_t values;
  weir_broadcast_t plan;
  WEIR_TRY(broadcast(arena, t, e, &values));
  if (!weir_broadcast_plan(condition, values, &plan))
    return weir_cwise_select_error(condition, t, e);
  if (plan.rank < 0) return weir_cwise_broadcast(condition, values, &plan);
  return keep_shape(arena, &plan, out_shape);
}

// The node that a step was.
typedef struct node_text_t {
  char name[512];
  char op[128];
} node_text_t;

static void describe(const weir_fused_program_t* program, int step, node_text_t* out) {
  snprintf(out->name, sizeof(out->name), "%.*s", WEIR_VIEW_ARG(program->names[step]));
  snprintf(out->op, sizeof(out->op), "%.*s", WEIR_VIEW_ARG(program->op_names[step]));
}

static weir_status_t* unlike_error(const weir_fused_program_t* program, int step,
                                   weir_shape_view_t x, weir_shape_view_t y) {
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  node_text_t node;
  describe(program, step, &node);
  return weir_activation_shape_error(node.name, node.op, weir_shape_text(x.rank, x.dims, a),
                                     weir_shape_text(y.rank, y.dims, b));
}

weir_status_t* weir_fused_at_node(const weir_fused_program_t* program, int step,
                                  weir_status_t* take_status) {
  node_text_t node;
  describe(program, step, &node);
  return weir_status_at_node(take_status, node.name, node.op);
}

// Errors are those of the sum over all but the channels.
static weir_status_t* reduced_shape(weir_arena_t* arena, weir_shape_view_t x, uint32_t axes,
                                    weir_shape_view_t* out_shape) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (x.rank < 2)
    return WEIR_STATUS(INVALID_ARGUMENT, "Input tensor must be at least 2D: %s",
                       weir_shape_text(x.rank, x.dims, text));
  int64_t* dims = weir_arena_array(arena, (size_t)x.rank, sizeof(*dims));
  if (!dims) return weir_out_of_memory();
  *out_shape = (weir_shape_view_t){.dims = dims};
  for (int d = 0; d < x.rank; ++d) {
    if (!weir_fused_is_reduced(axes, x.rank, d)) dims[out_shape->rank++] = x.dims[d];
  }
  return NULL;
}

static weir_status_t* find_shape(const weir_fused_program_t* program, int at, weir_arena_t* arena,
                                 weir_shape_view_t* shapes) {
  const weir_fused_step_t* step = &program->steps[at];
  int arity = weir_scalar_arity(step->scalar);
  weir_shape_view_t x = shapes[step->operands[0]];
  weir_shape_view_t y = shapes[step->operands[arity > 1 ? 1 : 0]];
  weir_shape_view_t* out = &shapes[program->input_count + at];
  switch (step->scalar.kind) {
    case WEIR_SCALAR_BINARY: return broadcast(arena, x, y, out);
    case WEIR_SCALAR_SELECT: return select_shape(arena, x, y, shapes[step->operands[2]], out);
    case WEIR_SCALAR_BINARY_FLAT:
      if (weir_shape_view_count(x) != weir_shape_view_count(y)) return weir_cwise_flat_error(x, y);
      break;
    case WEIR_SCALAR_BIAS: WEIR_TRY(weir_bias_check(x, y, -1)); break;
    case WEIR_SCALAR_REDUCE: return reduced_shape(arena, x, step->axes, out);
    case WEIR_SCALAR_BINARY_SAME:
    case WEIR_SCALAR_ACTIVATION_GRAD:
      if (!is_same(x, y)) return unlike_error(program, at, x, y);
      break;
    default: break;
  }
  *out = x;
  return NULL;
}

weir_status_t* weir_fused_find_shapes(const weir_fused_program_t* program, weir_arena_t* arena,
                                      weir_fused_shapes_t* shapes) {
  for (int i = 0; i < program->input_count; ++i)
    shapes->counts[i] = weir_shape_view_count(shapes->shapes[i]);
  for (int i = 0; i < program->step_count; ++i) {
    weir_status_t* status = find_shape(program, i, arena, shapes->shapes);
    if (status) return weir_fused_at_node(program, i, status);
    int value = program->input_count + i;
    shapes->counts[value] = weir_shape_view_count(shapes->shapes[value]);
  }
  return NULL;
}

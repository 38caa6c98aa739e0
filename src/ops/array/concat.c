// concat.c — Concat, ConcatV2, ConcatOffset: joining tensors along an axis.
#include "ops/array/common.h"
#include "ops/array/concat_shape.h"

typedef weir_concat_inputs_t inputs_t;

static inputs_t concat_inputs(const weir_node_def_t* node) {
  return weir_concat_inputs(node, node->input_count - 1);
}

static weir_status_t* concat_shape(weir_shape_ctx_t* ctx) {
  return weir_concat_shape(ctx, concat_inputs(ctx->node));
}

// ---- kernel ----

static weir_status_t* concat_dims(const weir_kernel_ctx_t* ctx, inputs_t in, int axis,
                                  int64_t* dims) {
  const weir_tensor_t* first = weir_kernel_input(ctx, in.first);
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  for (int k = 0; k < first->rank; ++k) dims[k] = first->dims[k];
  for (int i = 1; i < in.count; ++i) {
    const weir_tensor_t* t = weir_kernel_input(ctx, in.first + i);
    if (t->rank != first->rank) {
      return WEIR_STATUS(
          INVALID_ARGUMENT,
          "ConcatOp : Ranks of all input tensors should match: shape[0] = %s vs. shape[%d] = %s",
          weir_tensor_shape_text(first, a), i, weir_tensor_shape_text(t, b));
    }
    for (int k = 0; k < t->rank; ++k) {
      if (k != axis && t->dims[k] != dims[k]) {
        return WEIR_STATUS(INVALID_ARGUMENT,
                           "ConcatOp : Dimension %d in both shapes must be equal: shape[0] = %s "
                           "vs. shape[%d] = %s",
                           k, weir_tensor_shape_text(first, a), i, weir_tensor_shape_text(t, b));
      }
    }
    dims[axis] += t->dims[axis];
  }
  return NULL;
}

static weir_status_t* concat(weir_kernel_ctx_t* ctx) {
  inputs_t in = concat_inputs(ctx->node);
  const weir_tensor_t* axis_input = weir_kernel_input(ctx, in.axis);
  const weir_tensor_t* first = weir_kernel_input(ctx, in.first);
  const weir_dtype_t dtype = weir_tensor_type(first);
  if (axis_input->count != 1 || axis_input->rank > 0) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "%s tensor should be a scalar integer, but got shape %s",
                       in.axis == 0 ? "concat_dim" : "axis",
                       weir_tensor_shape_text(axis_input, text));
  }
  int64_t value = weir_tensor_int_at(axis_input, 0);
  if (value != 0 && (value < -first->rank || value >= first->rank)) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "ConcatOp : Expected concatenating dimensions in the range [%d, %d), but got %lld",
        -first->rank, first->rank, (long long)value);
  }
  for (int i = 0; i < in.count; ++i) {
    if (weir_kernel_input(ctx, in.first + i)->rank > 0) continue;
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "ConcatOp : Can't concatenate scalars (use tf.stack instead)");
  }
  int axis = (int)(value < 0 ? value + first->rank : value);
  int64_t dims[WEIR_MAX_RANK];
  WEIR_TRY(concat_dims(ctx, in, axis, dims));
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, first->rank, dims, &out));
  if (out->count == 0) return NULL;
  int64_t outer = 1;
  for (int k = 0; k < axis; ++k) outer *= dims[k];
  weir_kernel_parts_t parts = {.ctx = ctx,
                               .dtype = dtype,
                               .rows = outer,
                               .columns = out->count / outer,
                               .whole = (uintptr_t)out->data};
  for (int i = 0; i < in.count; ++i) {
    const weir_tensor_t* t = weir_kernel_input(ctx, in.first + i);
    WEIR_TRY(weir_kernel_join_part(&parts, t->data, t->count / outer));
  }
  return weir_kernel_finish_parts(&parts);
}

// ---- gradient: dy cut back into pieces ----

// True when every value's size along the axis is known.
static bool static_sizes(weir_grad_ctx_t* g, inputs_t in, int64_t* sizes, int* out_axis) {
  const weir_tensor_t* axis_value = array_grad_constant(g, weir_grad_input(g, in.axis));
  if (!axis_value || axis_value->count != 1) return false;
  int64_t axis = weir_tensor_int_at(axis_value, 0);
  for (int i = 0; i < in.count; ++i) {
    const weir_shape_t* s = weir_grad_shape(g, weir_grad_input(g, in.first + i));
    if (s->rank <= 0 || axis < -s->rank || axis >= s->rank) return false;
    *out_axis = (int)(axis < 0 ? axis + s->rank : axis);
    sizes[i] = s->dims[*out_axis];
    if (sizes[i] < 0) return false;
  }
  return true;
}

static weir_status_t* grad_by_split(weir_grad_ctx_t* g, inputs_t in, const int64_t* sizes,
                                    int axis) {
  weir_edge_t parts = weir_grad_node_with(
      g, "SplitV",
      WEIR_EDGES(weir_grad_dy(g, 0), weir_build_int64s(g->builder, sizes, in.count),
                 weir_build_int32(g->builder, axis)),
      WEIR_ATTRS(weir_attr_int("num_split", in.count)));
  for (int i = 0; i < in.count; ++i)
    WEIR_TRY(weir_grad_set(g, in.first + i, weir_build_output(parts, i)));
  return NULL;
}

static weir_status_t* grad_by_slices(weir_grad_ctx_t* g, inputs_t in, weir_edge_t* scratch) {
  weir_edge_t axis = weir_grad_input(g, in.axis);
  if (weir_grad_dtype(g, axis) != WEIR_DTYPE_INT32) {
    axis = weir_grad_node_with(g, "Cast", WEIR_EDGES(axis),
                               WEIR_ATTRS(weir_attr_type("DstT", WEIR_DTYPE_INT32)));
  }
  weir_edge_t rank = weir_grad_node(g, "Rank", WEIR_EDGES(weir_grad_input(g, in.first)));
  axis = weir_grad_node(g, "FloorMod", WEIR_EDGES(axis, rank));
  weir_edge_t shapes = weir_grad_node(g, "ShapeN", (weir_edges_t){g->inputs + in.first, in.count});
  scratch[0] = axis;
  for (int i = 0; i < in.count; ++i) scratch[i + 1] = weir_build_output(shapes, i);
  weir_edge_t offsets = weir_grad_node(g, "ConcatOffset", (weir_edges_t){scratch, in.count + 1});
  weir_edge_t dy = weir_grad_dy(g, 0);
  for (int i = 0; i < in.count; ++i) {
    weir_edge_t dx =
        weir_grad_node(g, "Slice", WEIR_EDGES(dy, weir_build_output(offsets, i), scratch[i + 1]));
    WEIR_TRY(weir_grad_set(g, in.first + i, dx));
  }
  return NULL;
}

static weir_status_t* concat_grad(weir_grad_ctx_t* g) {
  inputs_t in = concat_inputs(g->node);
  size_t count = (size_t)in.count + 1;
  int64_t* sizes = weir_alloc_array(count, sizeof(*sizes));
  weir_edge_t* scratch = weir_alloc_array(count, sizeof(*scratch));
  weir_status_t* status = NULL;
  int axis = 0;
  if (!sizes || !scratch) {
    status = weir_out_of_memory();
  } else if (static_sizes(g, in, sizes, &axis)) {
    status = grad_by_split(g, in, sizes, axis);
  } else {
    status = grad_by_slices(g, in, scratch);
  }
  weir_free(sizes);
  weir_free(scratch);
  return status;
}

// ---- ConcatOffset ----

static weir_status_t* offset_shape(weir_shape_ctx_t* ctx) {
  for (int i = 1; i < ctx->node->input_count; ++i)
    WEIR_TRY(weir_shape_set(ctx, i - 1, weir_shape_input(ctx, i)));
  return NULL;
}

static void append_sizes(const weir_tensor_t* sizes, weir_strbuf_t* out) {
  for (int64_t k = 0; k < sizes->count; ++k)
    weir_strbuf_printf(out, "%s%lld", k ? " " : "", (long long)weir_tensor_int_at(sizes, k));
}

static weir_status_t* offsets_differ(const weir_tensor_t* first, const weir_tensor_t* other,
                                     int number, int axis) {
  weir_strbuf_t a = {0}, b = {0};
  append_sizes(first, &a);
  append_sizes(other, &b);
  weir_status_t* status = WEIR_STATUS(
      INVALID_ARGUMENT,
      "All dimensions except %d must match. Input %d has shape [%.*s] and doesn't match "
      "input 0 with shape [%.*s].",
      axis, number, WEIR_VIEW_ARG(weir_strbuf_view(&b)), WEIR_VIEW_ARG(weir_strbuf_view(&a)));
  weir_strbuf_free(&a);
  weir_strbuf_free(&b);
  return status;
}

static weir_status_t* check_offsets(const weir_kernel_ctx_t* ctx, int axis) {
  const weir_tensor_t* first = weir_kernel_input(ctx, 1);
  for (int i = 2; i < ctx->input_count; ++i) {
    const weir_tensor_t* t = weir_kernel_input(ctx, i);
    for (int64_t k = 0; k < first->count; ++k) {
      if (k != axis && weir_tensor_int_at(t, k) != weir_tensor_int_at(first, k)) {
        return offsets_differ(first, t, i - 1, axis);
      }
    }
  }
  return NULL;
}

static weir_status_t* offset_axis(const weir_kernel_ctx_t* ctx, int* out_axis) {
  const weir_tensor_t* dim = weir_kernel_input(ctx, 0);
  char shape[WEIR_SHAPE_TEXT_SIZE];
  if (dim->rank != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Concat dim tensor should be a scalar integer, but got shape %s",
                       weir_tensor_shape_text(dim, shape));
  }
  int64_t size = weir_kernel_input(ctx, 1)->count;
  for (int i = 1; i < ctx->input_count; ++i) {
    const weir_tensor_t* t = weir_kernel_input(ctx, i);
    if (t->rank != 1)
      return WEIR_STATUS(INVALID_ARGUMENT, "input %d should be a vector, but got shape %s", i,
                         weir_tensor_shape_text(t, shape));
  }
  int64_t axis = weir_tensor_int_at(dim, 0);
  if (axis < -size || axis >= size) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Concat dim is out of range: %lld vs. %lld",
                       (long long)axis, (long long)size);
  }
  for (int i = 1; i < ctx->input_count; ++i) {
    const weir_tensor_t* t = weir_kernel_input(ctx, i);
    if (t->count == size) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "input %d should contain %lld elements, but got %lld",
                       i - 1, (long long)size, (long long)t->count);
  }
  *out_axis = (int)(axis < 0 ? axis + size : axis);
  return NULL;
}

static weir_status_t* offset_cpu(weir_kernel_ctx_t* ctx) {
  int axis = 0;
  int64_t offset = 0;
  WEIR_TRY(offset_axis(ctx, &axis));
  WEIR_TRY(check_offsets(ctx, axis));
  for (int i = 1; i < ctx->input_count; ++i) {
    const weir_tensor_t* t = weir_kernel_input(ctx, i);
    weir_tensor_t* out = NULL;
    WEIR_TRY(weir_kernel_output(ctx, i - 1, 1, t->dims, &out));
    for (int64_t k = 0; k < t->count; ++k) weir_move_set_int(out, k, k == axis ? offset : 0);
    offset += weir_tensor_int_at(t, axis);
  }
  return NULL;
}

const weir_op_module_t weir_ops_array_concat = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Concat",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "N: int >= 2; T: type",
         .inputs = "concat_dim: int32; values: N * T",
         .outputs = "output: T",
         .summary = "Joins tensors along a dimension.",
         .infer_shape = concat_shape,
         .build_grad = concat_grad,
         .kernels = WEIR_MOVE_HOST_KERNELS("T", concat, "concat_dim, values", "output",
                                           .host_inputs = "concat_dim")},
        {.name = "ConcatV2",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "N: int >= 2; T: type; Tidx: {int32, int64} = DT_INT32",
         .inputs = "values: N * T; axis: Tidx",
         .outputs = "output: T",
         .summary = "Joins tensors along a dimension.",
         .infer_shape = concat_shape,
         .build_grad = concat_grad,
         .kernels =
             WEIR_MOVE_HOST_KERNELS("T", concat, "values, axis", "output", .host_inputs = "axis")},
        {.name = "ConcatOffset",
         .attrs = "N: int >= 2; shape_type: {int32, int64} = DT_INT32",
         .inputs = "concat_dim: int32; shape: N * shape_type",
         .outputs = "offset: N * shape_type",
         .flags = WEIR_OP_CHEAP | WEIR_OP_NO_GRADIENT,
         .summary = "Returns where each input of a Concat begins in its output.",
         .infer_shape = offset_shape,
         .kernels = WEIR_PORTABLE_KERNEL(.compute = offset_cpu, .host_inputs = "concat_dim, shape",
                                         .host_outputs = "offset")},
        {0}}};

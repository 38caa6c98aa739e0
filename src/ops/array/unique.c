// unique.c — Unique, UniqueV2, UniqueWithCounts, UniqueWithCountsV2: distinct elements in order of
// first appearance.
#include "base/interrupt.h"
#include "ops/array/element_set.h"

static weir_status_t* unique_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* x = NULL;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 1, &x));
  WEIR_TRY(weir_shape_set_vector(ctx, 0, -1));
  WEIR_TRY(weir_shape_set(ctx, 1, x));
  return ctx->node->output_count > 2 ? weir_shape_set_vector(ctx, 2, -1) : NULL;
}

static weir_status_t* unique_v2_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* x = weir_shape_input(ctx, 0);
  array_ints_t axis_ints;
  int64_t dims[WEIR_MAX_RANK];
  array_input_ints(ctx, 1, &axis_ints);
  if (ctx->node->output_count > 2) WEIR_TRY(weir_shape_set_vector(ctx, 2, -1));
  WEIR_TRY(weir_shape_set_vector(ctx, 1, -1));
  if (x->rank < 0 || !axis_ints.is_exact) return weir_shape_set(ctx, 0, &weir_shape_unknown);
  int axis = 0;
  if (axis_ints.count == 0) {
    WEIR_TRY(weir_shape_with_rank(ctx, x, 1, NULL));
  } else if (axis_ints.count > 1) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "axis does not support input tensors larger than 1 elements.");
  } else {
    WEIR_TRY(array_axis(axis_ints.values[0], x->rank, &axis));
  }
  for (int i = 0; i < x->rank; ++i) dims[i] = i == axis ? -1 : x->dims[i];
  WEIR_TRY(weir_shape_set_vector(ctx, 1, x->dims[axis]));
  return weir_shape_set_dims(ctx, 0, x->rank, dims);
}

// The rows along |axis| as runs of memory: |x| itself when it is the first axis.
static weir_status_t* rows_of(weir_kernel_ctx_t* ctx, const weir_tensor_t* x, int axis,
                              int64_t inner, weir_tensor_t** out_rows) {
  if (axis == 0) {
    *out_rows = weir_tensor_retain(ctx->inputs[0].tensor);
    return NULL;
  }
  int64_t size = x->dims[axis];
  int64_t outer = size * inner == 0 ? 0 : x->count / (size * inner);
  WEIR_TRY(weir_kernel_scratch(ctx, weir_tensor_type(x), x->count, out_rows));
  weir_move_dim_t box[] = {
      {size, inner, outer * inner}, {outer, size * inner, inner}, {inner, 1, 1}};
  return weir_move_box(weir_kernel_pool(ctx), weir_tensor_type(x), 3, box, x->data,
                       (*out_rows)->data);
}

static weir_status_t* number_rows(weir_kernel_ctx_t* ctx, element_set_t* set,
                                  const weir_tensor_t* rows, int64_t count) {
  weir_tensor_t* idx = NULL;
  weir_tensor_t* counts = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 1, 1, &count, &idx));
  size_t step = (size_t)set->row * set->size;
  for (int64_t i = 0; i < count; ++i) {
    WEIR_TRY(weir_interrupt_poll(i));
    weir_move_set_int(idx, i,
                      element_set_find(set, (const char*)rows->data + (size_t)i * step, true));
  }
  if (ctx->output_count < 3) return NULL;
  WEIR_TRY(weir_kernel_output(ctx, 2, 1, &set->count, &counts));
  weir_move_zero(weir_tensor_type(counts), counts->data, counts->count);
  for (int64_t i = 0; i < count; ++i) {
    int64_t member = weir_tensor_int_at(idx, i);
    weir_move_set_int(counts, member, weir_tensor_int_at(counts, member) + 1);
  }
  return NULL;
}

// Copies the members out, back to where the axis was.
static weir_status_t* write_members(weir_kernel_ctx_t* ctx, const element_set_t* set,
                                    const weir_tensor_t* x, int axis, int64_t inner) {
  int64_t dims[WEIR_MAX_RANK];
  weir_tensor_t* y = NULL;
  for (int i = 0; i < x->rank; ++i) dims[i] = i == axis ? set->count : x->dims[i];
  WEIR_TRY(weir_kernel_output(ctx, 0, x->rank, dims, &y));
  if (y->count == 0) return NULL;
  int64_t outer = set->row / inner;
  for (int64_t i = 0; i < set->count; ++i) {
    weir_move_dim_t box[] = {{outer, inner, set->count * inner}, {inner, 1, 1}};
    WEIR_TRY(weir_move_box(NULL, set->dtype, 2, box, set->rows[i],
                           (char*)y->data + (size_t)(i * inner) * set->size));
  }
  return NULL;
}

static weir_status_t* unique(weir_kernel_ctx_t* ctx, int axis) {
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  int64_t count = x->dims[axis];
  int64_t inner = 1, row = 1;
  weir_tensor_t* rows = NULL;
  element_set_t set = {0};
  for (int i = 0; i < x->rank; ++i) {
    if (i != axis) row *= x->dims[i];
    if (i > axis) inner *= x->dims[i];
  }
  weir_status_t* status = element_set_create(&set, weir_tensor_type(x), row, count);
  if (!status) status = rows_of(ctx, x, axis, inner, &rows);
  if (!status) status = number_rows(ctx, &set, rows, count);
  if (!status) status = write_members(ctx, &set, x, axis, inner);
  element_set_free(&set);
  weir_tensor_release(rows);
  return status;
}

static weir_status_t* unique_cpu(weir_kernel_ctx_t* ctx) {
  if (weir_kernel_input(ctx, 0)->rank != 1)
    return WEIR_STATUS(INVALID_ARGUMENT, "unique expects a 1D vector.");
  return unique(ctx, 0);
}

static weir_status_t* unique_v2_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  const weir_tensor_t* axis_input = weir_kernel_input(ctx, 1);
  if (axis_input->rank != 1) return WEIR_STATUS(INVALID_ARGUMENT, "axis expects a 1D vector.");
  if (axis_input->count > 1) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "axis does not support input tensors larger than 1 elements");
  }
  if (axis_input->count == 0) return unique_cpu(ctx);
  int axis = 0;
  int64_t value = weir_tensor_int_at(axis_input, 0);
  if (value < -x->rank || value >= x->rank) {
    return WEIR_STATUS(INVALID_ARGUMENT, "axis has to be between [0, %d)", x->rank);
  }
  axis = (int)(value < 0 ? value + x->rank : value);
  return unique(ctx, axis);
}

#define UNIQUE_TYPES                                                                           \
  "T: float, double, half, bfloat16, bool, int8, int16, int32, int64, uint8, uint16, uint32, " \
  "uint64, string"

const weir_op_module_t weir_ops_array_unique = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Unique",
         .attrs = "T: type; out_idx: {int32, int64} = DT_INT32",
         .inputs = "x: T",
         .outputs = "y: T; idx: out_idx",
         .summary = "Returns the distinct elements of a vector and the number of each element's.",
         .infer_shape = unique_shape,
         .kernels = WEIR_CPU_KERNEL(.types = UNIQUE_TYPES, .compute = unique_cpu)},
        {.name = "UniqueV2",
         .attrs = "T: type; Taxis: {int32, int64} = DT_INT64; out_idx: {int32, int64} = DT_INT32",
         .inputs = "x: T; axis: Taxis",
         .outputs = "y: T; idx: out_idx",
         .summary = "Returns the distinct slices of a tensor along an axis.",
         .infer_shape = unique_v2_shape,
         .kernels = WEIR_CPU_KERNEL(.types = UNIQUE_TYPES, .compute = unique_v2_cpu,
                                    .host_inputs = "axis")},
        {.name = "UniqueWithCounts",
         .attrs = "T: type; out_idx: {int32, int64} = DT_INT32",
         .inputs = "x: T",
         .outputs = "y: T; idx: out_idx; count: out_idx",
         .summary = "As Unique, with the number of times each element occurs.",
         .infer_shape = unique_shape,
         .kernels = WEIR_CPU_KERNEL(.types = UNIQUE_TYPES, .compute = unique_cpu)},
        {.name = "UniqueWithCountsV2",
         .attrs = "T: type; Taxis: {int32, int64} = DT_INT64; out_idx: {int32, int64} = DT_INT32",
         .inputs = "x: T; axis: Taxis",
         .outputs = "y: T; idx: out_idx; count: out_idx",
         .summary = "As UniqueV2, with the number of times each slice occurs.",
         .infer_shape = unique_v2_shape,
         .kernels = WEIR_CPU_KERNEL(.types = UNIQUE_TYPES, .compute = unique_v2_cpu,
                                    .host_inputs = "axis")},
        {0}}};

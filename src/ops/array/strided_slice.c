// strided_slice.c — StridedSlice and StridedSliceGrad: Python's slices.
#include "kernel/move/strided_slice.h"

#include "ops/array/common.h"

static void read_masks(weir_attrs_t attrs, weir_strided_slice_spec_t* spec) {
  spec->begin_mask = (uint64_t)weir_attrs_int(attrs, "begin_mask");
  spec->end_mask = (uint64_t)weir_attrs_int(attrs, "end_mask");
  spec->ellipsis_mask = (uint64_t)weir_attrs_int(attrs, "ellipsis_mask");
  spec->new_axis_mask = (uint64_t)weir_attrs_int(attrs, "new_axis_mask");
  spec->shrink_axis_mask = (uint64_t)weir_attrs_int(attrs, "shrink_axis_mask");
}

// ---- shapes ----

// A slice of a shape vector: shape[1:3] or shape[0].
static weir_status_t* slice_value(weir_shape_ctx_t* ctx, const weir_strided_slice_t* slice) {
  array_ints_t ints;
  int64_t values[WEIR_MAX_RANK];
  if (!array_is_index_type(weir_dtype_base(ctx->node->input_types[0]))) return NULL;
  array_input_ints(ctx, 0, &ints);
  if (!ints.is_known || !slice->is_known || slice->out_rank > 1) return NULL;
  for (int64_t i = 0; i < slice->size[0]; ++i) {
    int64_t at = slice->begin[0] + i * slice->stride[0];
    if (at < 0 || at >= ints.count) return NULL;
    values[i] = ints.values[at];
  }
  return array_set_value(ctx, 0, (int)slice->size[0], values);
}

static weir_status_t* join_index_shapes(weir_shape_ctx_t* ctx) {
  const weir_shape_t* index = NULL;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, &index));
  WEIR_TRY(weir_shape_join(ctx, index, weir_shape_input(ctx, 2), &index));
  return weir_shape_join(ctx, index, weir_shape_input(ctx, 3), &index);
}

static weir_status_t* strided_slice_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* in = weir_shape_input(ctx, 0);
  array_ints_t begin, end, strides;
  WEIR_TRY(join_index_shapes(ctx));
  array_input_ints(ctx, 1, &begin);
  array_input_ints(ctx, 2, &end);
  array_input_ints(ctx, 3, &strides);
  if (in->rank < 0 || !strides.is_exact) return weir_shape_set(ctx, 0, &weir_shape_unknown);
  if ((begin.is_known && begin.count != strides.count) ||
      (end.is_known && end.count != strides.count)) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Expected begin, end, and strides to be 1D equal size tensors");
  }
  weir_strided_slice_spec_t spec = {.count = strides.count,
                                    .begin = begin.is_exact ? begin.values : NULL,
                                    .end = end.is_exact ? end.values : NULL,
                                    .strides = strides.values};
  weir_strided_slice_t slice;
  read_masks(weir_shape_attrs(ctx), &spec);
  WEIR_TRY(weir_strided_slice_resolve(&spec, in->rank, in->dims, &slice));
  WEIR_TRY(weir_shape_set_dims(ctx, 0, slice.out_rank, slice.out_dims));
  if (ctx->output_handles && slice.out_rank == 0) ctx->output_handles[0] = ctx->input_handles[0];
  return in->rank == 1 ? slice_value(ctx, &slice) : NULL;
}

static weir_status_t* strided_slice_grad_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* out = NULL;
  WEIR_TRY(weir_shape_from_value(ctx, 0, &out));
  return weir_shape_set(ctx, 0, out);
}

// ---- kernels ----

typedef struct spec_values_t {
  int64_t begin[WEIR_MAX_RANK];
  int64_t end[WEIR_MAX_RANK];
  int64_t strides[WEIR_MAX_RANK];
} spec_values_t;

// Reads the three inputs from |first| on.
static weir_status_t* read_spec(const weir_kernel_ctx_t* ctx, int first, spec_values_t* values,
                                weir_strided_slice_spec_t* spec) {
  const weir_tensor_t* begin = weir_kernel_input(ctx, first);
  const weir_tensor_t* end = weir_kernel_input(ctx, first + 1);
  const weir_tensor_t* strides = weir_kernel_input(ctx, first + 2);
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE], c[WEIR_SHAPE_TEXT_SIZE];
  if (begin->rank != 1 || end->rank != 1 || strides->rank != 1 || begin->count != end->count ||
      begin->count != strides->count || begin->count > WEIR_MAX_RANK) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Expected begin, end, and strides to be 1D equal size tensors, but got "
                       "shapes %s, %s, and %s "
                       "instead.",
                       weir_tensor_shape_text(begin, a), weir_tensor_shape_text(end, b),
                       weir_tensor_shape_text(strides, c));
  }
  *spec = (weir_strided_slice_spec_t){.count = (int)begin->count,
                                      .begin = values->begin,
                                      .end = values->end,
                                      .strides = values->strides};
  for (int i = 0; i < spec->count; ++i) {
    values->begin[i] = weir_move_int_at(begin, i);
    values->end[i] = weir_move_int_at(end, i);
    values->strides[i] = weir_move_int_at(strides, i);
  }
  read_masks(weir_kernel_attrs(ctx), spec);
  return NULL;
}

// Whether the slice is whole rows of the first dimension, in order.
static bool is_rows(const weir_strided_slice_t* slice, const int64_t* dims) {
  for (int i = 0; i < slice->rank; ++i) {
    if (slice->stride[i] != 1) return false;
    if (i > 0 && slice->size[i] != dims[i]) return false;
  }
  return slice->rank > 0;
}

static weir_status_t* set_rows(weir_kernel_ctx_t* ctx, const weir_strided_slice_t* slice) {
  weir_tensor_t* rows = NULL;
  weir_tensor_t* view = NULL;
  WEIR_TRY(weir_tensor_slice(ctx->inputs[0].tensor, slice->begin[0],
                             slice->begin[0] + slice->size[0], &rows));
  weir_status_t* status = weir_tensor_reshape(rows, slice->out_rank, slice->out_dims, &view);
  weir_tensor_release(rows);
  if (!status) weir_kernel_set(ctx, 0, view);
  return status;
}

static weir_status_t* strided_slice(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const weir_dtype_t dtype = weir_tensor_type(in);
  const size_t size = weir_dtype_size(dtype);
  spec_values_t values;
  weir_strided_slice_spec_t spec;
  weir_strided_slice_t slice;
  WEIR_TRY(read_spec(ctx, 1, &values, &spec));
  WEIR_TRY(weir_strided_slice_resolve(&spec, in->rank, in->dims, &slice));
  int64_t count = 1;
  for (int i = 0; i < slice.rank; ++i) count *= slice.size[i];
  if (is_rows(&slice, in->dims) && array_rows_are_view(in, slice.begin[0], slice.size[0]))
    return set_rows(ctx, &slice);
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, slice.out_rank, slice.out_dims, &out));
  if (count == 0) return NULL;
  weir_move_dim_t box[WEIR_MAX_RANK];
  int64_t offset = weir_strided_slice_box(&slice, in->dims, box);
  return weir_kernel_move_box(ctx, dtype, in->rank, box,
                              (const char*)in->data + (size_t)offset * size, out->data);
}

static weir_status_t* check_dy(const weir_strided_slice_t* slice, const weir_tensor_t* dy) {
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  bool is_same = slice->out_rank == dy->rank;
  for (int i = 0; is_same && i < dy->rank; ++i) is_same = slice->out_dims[i] == dy->dims[i];
  if (is_same) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "shape of dy was %s instead of %s",
                     weir_tensor_shape_text(dy, a),
                     weir_shape_text(slice->out_rank, slice->out_dims, b));
}

static weir_status_t* strided_slice_grad_compute(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* shape = weir_kernel_input(ctx, 0);
  const weir_tensor_t* dy = weir_kernel_input(ctx, 4);
  const weir_dtype_t dtype = weir_tensor_type(dy);
  int64_t dims[WEIR_MAX_RANK];
  spec_values_t values;
  weir_strided_slice_spec_t spec;
  weir_strided_slice_t slice;
  if (shape->rank != 1 || shape->count > WEIR_MAX_RANK) {
    return WEIR_STATUS(INVALID_ARGUMENT, "shape must be 1-D, got shape.shape = rank %d",
                       shape->rank);
  }
  int rank = (int)shape->count;
  for (int i = 0; i < rank; ++i) dims[i] = weir_tensor_int_at(shape, i);
  WEIR_TRY(read_spec(ctx, 1, &values, &spec));
  WEIR_TRY(weir_strided_slice_resolve(&spec, rank, dims, &slice));
  WEIR_TRY(check_dy(&slice, dy));
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, rank, dims, &out));
  WEIR_TRY(weir_kernel_move_zero(ctx, dtype, out->data, out->count));
  if (dy->count == 0) return NULL;
  weir_move_dim_t box[WEIR_MAX_RANK];
  int64_t offset = weir_strided_slice_box(&slice, dims, box);
  for (int i = 0; i < rank; ++i) {  // the big side is the destination here
    int64_t stride = box[i].src_stride;
    box[i].src_stride = box[i].dst_stride;
    box[i].dst_stride = stride;
  }
  return weir_kernel_move_box(ctx, dtype, rank, box, dy->data,
                              (char*)out->data + (size_t)offset * weir_dtype_size(dtype));
}

// ---- gradients ----

static weir_edge_t with_masks(weir_grad_ctx_t* g, const char* op, weir_edges_t inputs) {
  return weir_grad_node_like(
      g, op, inputs,
      WEIR_NAMES("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"));
}

// StridedSliceGrad has no int16 indices.
static weir_edge_t widen_index(weir_grad_ctx_t* g, weir_edge_t index) {
  if (weir_grad_dtype(g, index) != WEIR_DTYPE_INT16) return index;
  return weir_grad_node_with(g, "Cast", WEIR_EDGES(index),
                             WEIR_ATTRS(weir_attr_type("DstT", WEIR_DTYPE_INT32)));
}

static weir_status_t* strided_slice_grad(weir_grad_ctx_t* g) {  // dy scattered into zeros
  weir_edge_t begin = widen_index(g, weir_grad_input(g, 1));
  weir_edge_t end = widen_index(g, weir_grad_input(g, 2));
  weir_edge_t strides = widen_index(g, weir_grad_input(g, 3));
  weir_edge_t shape = array_grad_shape(g, weir_grad_input(g, 0), weir_grad_dtype(g, begin));
  return weir_grad_set(g, 0,
                       with_masks(g, "StridedSliceGrad",
                                  WEIR_EDGES(shape, begin, end, strides, weir_grad_dy(g, 0))));
}

static weir_status_t* strided_slice_grad_grad(weir_grad_ctx_t* g) {
  weir_edge_t dx = with_masks(g, "StridedSlice",
                              WEIR_EDGES(weir_grad_dy(g, 0), weir_grad_input(g, 1),
                                         weir_grad_input(g, 2), weir_grad_input(g, 3)));
  return weir_grad_set(g, 4, dx);
}

#define MASKS                                                                                \
  "begin_mask: int = 0; end_mask: int = 0; ellipsis_mask: int = 0; new_axis_mask: int = 0; " \
  "shrink_axis_mask: int = 0"

const weir_op_module_t weir_ops_array_strided_slice = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "StridedSlice",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "T: type; Index: {int16, int32, int64}; " MASKS,
         .inputs = "input: T; begin: Index; end: Index; strides: Index",
         .outputs = "output: T",
         .flags = WEIR_OP_VIEW,
         .summary = "Slices a tensor as Python does.",
         .infer_shape = strided_slice_shape,
         .cost = weir_cost_fn_outputs,
         .build_grad = strided_slice_grad,
         .kernels = WEIR_MOVE_HOST_KERNELS("T", strided_slice, "input, begin, end, strides",
                                           "output", .host_inputs = "begin, end, strides")},
        {.name = "StridedSliceGrad",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "T: type; Index: {int32, int64}; " MASKS,
         .inputs = "shape: Index; begin: Index; end: Index; strides: Index; dy: T",
         .outputs = "output: T",
         .summary = "Puts a slice into a tensor of zeros.",
         .infer_shape = strided_slice_grad_shape,
         .build_grad = strided_slice_grad_grad,
         .kernels = WEIR_MOVE_HOST_KERNELS("T", strided_slice_grad_compute,
                                           "shape, begin, end, strides, dy", "output",
                                           .host_inputs = "shape, begin, end, strides")},
        {0}}};

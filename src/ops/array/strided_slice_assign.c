// strided_slice_assign.c — StridedSliceAssign, ResourceStridedSliceAssign,
// TensorStridedSliceUpdate: values put where Python's slices point.
#include "kernel/move/move_op.h"
#include "kernel/move/strided_slice.h"
#include "ops/array/common.h"

enum { SPEC = 1, VALUE = 4 };  // inputs: begin, end and strides from SPEC on

// ---- kernels ----

typedef struct spec_values_t {
  int64_t begin[WEIR_MAX_RANK];
  int64_t end[WEIR_MAX_RANK];
  int64_t strides[WEIR_MAX_RANK];
} spec_values_t;

static weir_status_t* read_spec(const weir_kernel_ctx_t* ctx, spec_values_t* values,
                                weir_strided_slice_spec_t* spec) {
  const weir_tensor_t* begin = weir_kernel_input(ctx, SPEC);
  const weir_tensor_t* end = weir_kernel_input(ctx, SPEC + 1);
  const weir_tensor_t* strides = weir_kernel_input(ctx, SPEC + 2);
  const weir_attrs_t attrs = weir_kernel_attrs(ctx);
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE], c[WEIR_SHAPE_TEXT_SIZE];
  if (begin->rank != 1 || end->rank != 1 || strides->rank != 1 || begin->count != end->count ||
      begin->count != strides->count || begin->count > WEIR_MAX_RANK) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "Expected begin, end, and strides to be 1D equal size tensors, but got shapes %s, %s, and "
        "%s instead.",
        weir_tensor_shape_text(begin, a), weir_tensor_shape_text(end, b),
        weir_tensor_shape_text(strides, c));
  }
  *spec = (weir_strided_slice_spec_t){
      .count = (int)begin->count,
      .begin = values->begin,
      .end = values->end,
      .strides = values->strides,
      .begin_mask = (uint64_t)weir_attrs_int(attrs, "begin_mask"),
      .end_mask = (uint64_t)weir_attrs_int(attrs, "end_mask"),
      .ellipsis_mask = (uint64_t)weir_attrs_int(attrs, "ellipsis_mask"),
      .new_axis_mask = (uint64_t)weir_attrs_int(attrs, "new_axis_mask"),
      .shrink_axis_mask = (uint64_t)weir_attrs_int(attrs, "shrink_axis_mask")};
  for (int i = 0; i < spec->count; ++i) {
    values->begin[i] = weir_move_int_at(begin, i);
    values->end[i] = weir_move_int_at(end, i);
    values->strides[i] = weir_move_int_at(strides, i);
  }
  return NULL;
}

// A value may have more dimensions than the slice: |lead| is then negative, and they must be 1.
static bool can_broadcast(const weir_tensor_t* value, const weir_strided_slice_t* slice) {
  int lead = slice->out_rank - value->rank;
  for (int i = 0; i < value->rank; ++i) {
    if (value->dims[i] == 1) continue;
    if (lead + i < 0 || value->dims[i] != slice->out_dims[lead + i]) return false;
  }
  return true;
}

// Resolves the slice of |target| and checks that the value can be broadcast to it. TensorFlow takes
// any value where the slice is empty.
static weir_status_t* resolve(const weir_kernel_ctx_t* ctx, const weir_tensor_t* target,
                              weir_strided_slice_t* slice, bool* out_is_empty) {
  const weir_tensor_t* value = weir_kernel_input(ctx, VALUE);
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  spec_values_t values;
  weir_strided_slice_spec_t spec;
  WEIR_TRY(read_spec(ctx, &values, &spec));
  WEIR_TRY(weir_strided_slice_resolve(&spec, target->rank, target->dims, slice));
  *out_is_empty = false;
  for (int i = 0; i < slice->rank; ++i) *out_is_empty |= slice->size[i] == 0;
  if (*out_is_empty || can_broadcast(value, slice)) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Cannot broadcast input shape %s into final shape %s",
                     weir_tensor_shape_text(value, a),
                     weir_shape_text(slice->out_rank, slice->out_dims, b));
}

// Copies the value into the places of |slice| in |target|.
static weir_status_t* put(const weir_kernel_ctx_t* ctx, const weir_strided_slice_t* slice,
                          weir_tensor_t* target) {
  const weir_tensor_t* value = weir_kernel_input(ctx, VALUE);
  const weir_dtype_t dtype = weir_tensor_type(target);
  weir_move_dim_t box[WEIR_MAX_RANK];
  int64_t offset = weir_strided_slice_box(slice, target->dims, box);
  for (int i = 0; i < slice->rank; ++i) {  // the big side is the destination here
    box[i].dst_stride = box[i].src_stride;
    box[i].src_stride = 0;
  }
  int64_t stride = 1;
  for (int i = value->rank - 1; i >= 0; --i) {  // new axes and repeated ones keep a stride of 0
    if (value->dims[i] == 1) continue;
    int axis = slice->out_axis[slice->out_rank - value->rank + i];
    if (axis >= 0) box[axis].src_stride = stride;
    stride *= value->dims[i];
  }
  return weir_kernel_move_box(ctx, dtype, slice->rank, box, value->data,
                              (char*)target->data + (size_t)offset * weir_dtype_size(dtype));
}

static weir_status_t* assign_locked(weir_kernel_ctx_t* ctx, weir_variable_t* variable, int mode) {
  (void)mode;
  const weir_tensor_t* value = weir_kernel_input(ctx, VALUE);
  weir_strided_slice_t slice;
  bool is_empty = false;
  WEIR_TRY(weir_variable_make_sole_locked(variable, ctx->node->name));
  if (variable->tensor->dtype != value->dtype) {
    return WEIR_STATUS(INVALID_ARGUMENT, "l-value dtype %s does not match r-value dtype %s",
                       weir_dtype_name(weir_tensor_type(variable->tensor)),
                       weir_dtype_name(weir_tensor_type(value)));
  }
  WEIR_TRY(resolve(ctx, variable->tensor, &slice, &is_empty));
  return is_empty ? NULL : put(ctx, &slice, variable->tensor);
}

static weir_status_t* assign(weir_kernel_ctx_t* ctx) {
  weir_variable_t* variable = NULL;
  WEIR_TRY(weir_kernel_live_variable(ctx, 0, &variable));
  return weir_kernel_update_variable(ctx, variable, assign_locked, 0);
}

static weir_status_t* update(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  const void* data = x->data;
  weir_strided_slice_t slice;
  bool is_empty = false;
  WEIR_TRY(resolve(ctx, x, &slice, &is_empty));
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_forward(ctx, 0, 0, x->rank, x->dims, &out));
  if (out->data != data) {
    WEIR_TRY(weir_kernel_move_copy(ctx, weir_tensor_type(out), data, out->data, out->count));
  }
  return is_empty ? NULL : put(ctx, &slice, out);
}

// ---- gradient ----

static weir_edge_t with_masks(weir_grad_ctx_t* g, const char* op, weir_edges_t inputs) {
  static const char* const names[] = {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask",
                                      "shrink_axis_mask"};
  weir_named_attr_t items[WEIR_COUNT_OF(names)];
  for (size_t i = 0; i < WEIR_COUNT_OF(names); ++i) {
    items[i] = weir_attr_int(names[i], weir_attrs_int(weir_grad_attrs(g), names[i]));
  }
  return weir_grad_node_with(g, op, inputs, (weir_attrs_t){items, WEIR_COUNT_OF(names)});
}

// The axes of a slice along which a value of shape |small| was repeated, where both are known.
static weir_edge_t repeated_axes(weir_grad_ctx_t* g, const weir_shape_t* big,
                                 const weir_shape_t* small) {
  int64_t axes[WEIR_MAX_RANK];
  int count = 0, lead = big->rank - small->rank;
  for (int i = 0; i < big->rank; ++i) {
    if (i < lead || (small->dims[i - lead] == 1 && big->dims[i] != 1)) axes[count++] = i;
  }
  return array_grad_ints(g, WEIR_DTYPE_INT32, axes, count);
}

// Sums the gradient of the slice over what was repeated to fill it.
static weir_edge_t sum_repeated(weir_grad_ctx_t* g, weir_edge_t dslice, weir_edge_t value) {
  const weir_shape_t* big = weir_grad_shape(g, dslice);
  const weir_shape_t* small = weir_grad_shape(g, value);
  weir_edge_t axes;
  if (weir_shape_is_full(big) && weir_shape_is_full(small) && small->rank <= big->rank) {
    if (weir_shape_equal(big, small)) return dslice;
    axes = repeated_axes(g, big, small);
  } else {
    weir_edge_t args =
        weir_grad_node(g, "BroadcastGradientArgs",
                       WEIR_EDGES(weir_grad_shape_of(g, dslice), weir_grad_shape_of(g, value)));
    axes = weir_build_output(args, 1);
  }
  weir_edge_t sum = weir_grad_node(g, "Sum", WEIR_EDGES(dslice, axes));
  return weir_grad_node(g, "Reshape", WEIR_EDGES(sum, weir_grad_shape_of(g, value)));
}

// The value gets the slice of dy, the input what is left of dy.
static weir_status_t* update_grad(weir_grad_ctx_t* g) {
  weir_edge_t dy = weir_grad_dy(g, 0);
  weir_edge_t begin = weir_grad_input(g, SPEC), end = weir_grad_input(g, SPEC + 1);
  weir_edge_t strides = weir_grad_input(g, SPEC + 2);
  weir_edge_t dslice = with_masks(g, "StridedSlice", WEIR_EDGES(dy, begin, end, strides));
  weir_edge_t zero = weir_grad_scalar(g, dy, 0);
  WEIR_TRY(weir_grad_set(
      g, 0, with_masks(g, "TensorStridedSliceUpdate", WEIR_EDGES(dy, begin, end, strides, zero))));
  return weir_grad_set(g, VALUE, sum_repeated(g, dslice, weir_grad_input(g, VALUE)));
}

#define MASKS                                                                                \
  "begin_mask: int = 0; end_mask: int = 0; ellipsis_mask: int = 0; new_axis_mask: int = 0; " \
  "shrink_axis_mask: int = 0"
#define SPEC_INPUTS "begin: Index; end: Index; strides: Index; value: T"
// Variables of int32 are the CPU's.
#define ASSIGN_KERNELS(host)                                                                 \
  ((const weir_kernel_def_t[]){{WEIR_DEVICE_CPU, .compute = assign, .host_inputs = host},    \
                               WEIR_MOVE_GPU_ROW("T: " WEIR_MOVED_TYPES, weir_move_gpu_init, \
                                                 .compute = assign, .host_inputs = host),    \
                               {0}})

const weir_op_module_t weir_ops_array_strided_slice_assign = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "StridedSliceAssign",
         .attrs = "T: type; Index: {int32, int64}; " MASKS,
         .inputs = "ref: Ref(T); " SPEC_INPUTS,
         .outputs = "output_ref: Ref(T)",
         .summary = "Assigns to a slice of a variable.",
         .infer_shape = weir_shape_fn_unchanged,
         .kernels = ASSIGN_KERNELS("begin, end, strides")},
        {.name = "ResourceStridedSliceAssign",
         .attrs = "T: type; Index: {int32, int64}; " MASKS,
         .inputs = "ref: resource; " SPEC_INPUTS,
         .flags = WEIR_OP_STATEFUL,
         .summary = "Assigns to a slice of a variable.",
         .infer_shape = weir_shape_fn_none,
         .kernels = ASSIGN_KERNELS("ref, begin, end, strides")},
        {.name = "TensorStridedSliceUpdate",
         .attrs = "T: type; Index: {int32, int64}; " MASKS,
         .inputs = "input: T; " SPEC_INPUTS,
         .outputs = "output: T",
         .summary = "Returns a tensor with a slice replaced.",
         .infer_shape = weir_shape_fn_unchanged,
         .build_grad = update_grad,
         .kernels = WEIR_MOVE_HOST_KERNELS("T", update, "input, begin, end, strides, value",
                                           "output", .host_inputs = "begin, end, strides")},
        {0}}};

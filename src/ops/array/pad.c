// pad.c — Pad and PadV2: a tensor with a constant border.
#include "ops/array/common.h"

// ---- shape ----

static weir_status_t* pad_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* in = weir_shape_input(ctx, 0);
  const weir_shape_t* paddings = NULL;
  const weir_tensor_t* value = weir_shape_value(ctx, 1);
  int64_t dims[WEIR_MAX_RANK];
  int64_t two = 2;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 2, &paddings));
  if (ctx->node->input_count > 2)
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 2), 0, NULL));
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(paddings, 1), two, &two));
  int64_t rank = weir_shape_dim(paddings, 0);
  if (in->rank >= 0) {
    if (rank >= 0) WEIR_TRY(weir_shape_with_rank(ctx, in, (int)rank, NULL));
    rank = in->rank;
  }
  if (rank < 0 || rank > WEIR_MAX_RANK) return weir_shape_set(ctx, 0, &weir_shape_unknown);
  if (value && value->count != 2 * rank) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "The first dimension of paddings must be the rank of inputs");
  }
  for (int i = 0; i < rank; ++i) {
    int64_t dim = in->rank >= 0 ? in->dims[i] : -1;
    int64_t before = value ? weir_tensor_int_at(value, 2 * i) : 0;
    int64_t after = value ? weir_tensor_int_at(value, 2 * i + 1) : 0;
    if (before < 0 || after < 0)
      return WEIR_STATUS(INVALID_ARGUMENT, "Paddings must be non-negative");
    int64_t sum = 0;
    if (__builtin_add_overflow(before, after, &sum) ||
        __builtin_add_overflow(sum, WEIR_MAX(dim, 0), &sum)) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Dimension size overflow from adding %lld and %lld to %lld",
                         (long long)before, (long long)after, (long long)dim);
    }
    dims[i] = value && dim >= 0 ? sum : -1;
  }
  return weir_shape_set_dims(ctx, 0, (int)rank, dims);
}

// ---- kernel ----

static weir_status_t* check_paddings(const weir_tensor_t* in, const weir_tensor_t* paddings) {
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  if (paddings->rank != 2 || paddings->dims[1] != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "paddings must be a matrix with 2 columns: %s",
                       weir_tensor_shape_text(paddings, a));
  }
  if (paddings->dims[0] != in->rank) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "The first dimension of paddings must be the rank of inputs%s%s",
                       weir_tensor_shape_text(paddings, a), weir_tensor_shape_text(in, b));
  }
  for (int64_t i = 0; i < paddings->count; i += 2) {
    int64_t before = weir_tensor_int_at(paddings, i), after = weir_tensor_int_at(paddings, i + 1);
    if (before < 0 || after < 0) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Paddings must be non-negative: %lld %lld",
                         (long long)before, (long long)after);
    }
  }
  return NULL;
}

// The output in parts, each of which is written once: |part| 2k is what the padding before
// dimension k adds, 2k + 1 what the one after it does, 2 * rank the place of the input. A part is
// as wide as the input in the dimensions before k, as the output in those after it. Returns its
// first element.
static int64_t find_part(const weir_tensor_t* in, const weir_tensor_t* paddings,
                         const weir_tensor_t* out, int part, weir_move_dim_t* box) {
  const int k = part / 2;
  int64_t first = 0, stride = 1;
  for (int i = in->rank - 1; i >= 0; --i) {
    int64_t before = weir_tensor_int_at(paddings, 2 * i);
    int64_t size = i < k ? in->dims[i] : out->dims[i];
    if (i == k) size = weir_tensor_int_at(paddings, part);
    box[i] = (weir_move_dim_t){.size = size, .dst_stride = stride};
    if (i < k) first += before * stride;
    if (i == k && part % 2 == 1) first += (before + in->dims[i]) * stride;
    stride *= out->dims[i];
  }
  return first;
}

static const char zero[16] = {0};

static const void* border_value(const weir_kernel_ctx_t* ctx) {
  return ctx->input_count > 2 ? weir_kernel_input(ctx, 2)->data : zero;
}

static weir_status_t* fill_border(weir_kernel_ctx_t* ctx, weir_tensor_t* out) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const weir_dtype_t dtype = weir_tensor_type(out);
  const void* value = border_value(ctx);
  // Strings and the like are empty already.
  if (value == zero && !weir_dtype_is_plain(dtype)) return NULL;
  for (int part = 0; part < 2 * in->rank; ++part) {
    weir_move_dim_t box[WEIR_MAX_RANK];
    int64_t first = find_part(in, weir_kernel_input(ctx, 1), out, part, box);
    WEIR_TRY(weir_kernel_move_box(ctx, dtype, in->rank, box, value,
                                  (char*)out->data + (size_t)first * weir_dtype_size(dtype)));
  }
  return NULL;
}

static weir_status_t* pad_on_gpu(const weir_kernel_ctx_t* ctx, const weir_tensor_t* out) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  weir_move_border_t border = {.value = border_value(ctx)};
  for (int i = 0; i < in->rank; ++i)
    border.before[i] = weir_tensor_int_at(weir_kernel_input(ctx, 1), 2 * i);
  return weir_gpu_move_border(ctx, in, &border, out);
}

static weir_status_t* pad(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const weir_tensor_t* paddings = weir_kernel_input(ctx, 1);
  const weir_dtype_t dtype = weir_tensor_type(in);
  int64_t dims[WEIR_MAX_RANK];
  WEIR_TRY(check_paddings(in, paddings));
  if (ctx->input_count > 2 && weir_kernel_input(ctx, 2)->rank != 0) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "constant_values must be a scalar. Found: %s",
                       weir_tensor_shape_text(weir_kernel_input(ctx, 2), text));
  }
  bool is_same = true;
  for (int i = 0; i < in->rank; ++i) {
    const int64_t before = weir_tensor_int_at(paddings, 2 * i);
    const int64_t after = weir_tensor_int_at(paddings, 2 * i + 1);
    if (__builtin_add_overflow(in->dims[i], before, &dims[i]) ||
        __builtin_add_overflow(dims[i], after, &dims[i])) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Expected a non-negative size, got %lld",
                         (long long)dims[i]);
    }
    is_same = is_same && before == 0 && after == 0;
  }
  if (is_same) {
    weir_kernel_pass(ctx, 0, 0);
    return NULL;
  }
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank, dims, &out));
  if (out->count == 0) return NULL;
  if (weir_move_gpu(ctx)) return pad_on_gpu(ctx, out);
  WEIR_TRY(fill_border(ctx, out));
  weir_move_dim_t box[WEIR_MAX_RANK];
  int64_t first = find_part(in, paddings, out, 2 * in->rank, box);
  weir_move_contiguous_src(in->rank, box);
  return weir_kernel_move_box(ctx, dtype, in->rank, box, in->data,
                              (char*)out->data + (size_t)first * weir_dtype_size(dtype));
}

// ---- gradient: the middle of dy ----

static weir_edge_t first_column(weir_grad_ctx_t* g, weir_edge_t paddings) {
  const weir_tensor_t* value = array_grad_constant(g, paddings);
  weir_dtype_t dtype = weir_grad_dtype(g, paddings);
  if (value && value->count <= 2 * WEIR_MAX_RANK) {
    int64_t begin[WEIR_MAX_RANK];
    int count = (int)value->count / 2;
    for (int i = 0; i < count; ++i) begin[i] = weir_tensor_int_at(value, 2 * i);
    return array_grad_ints(g, dtype, begin, count);
  }
  weir_edge_t columns =
      weir_grad_node_with(g, "Unpack", WEIR_EDGES(paddings),
                          WEIR_ATTRS(weir_attr_int("num", 2), weir_attr_int("axis", 1)));
  return columns;
}

static weir_status_t* pad_grad(weir_grad_ctx_t* g) {
  weir_edge_t begin = first_column(g, weir_grad_input(g, 1));
  weir_edge_t size = array_grad_shape(g, weir_grad_input(g, 0), weir_grad_dtype(g, begin));
  return weir_grad_set(g, 0,
                       weir_grad_node(g, "Slice", WEIR_EDGES(weir_grad_dy(g, 0), begin, size)));
}

const weir_op_module_t weir_ops_array_pad = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Pad",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "T: type; Tpaddings: {int32, int64} = DT_INT32",
         .inputs = "input: T; paddings: Tpaddings",
         .outputs = "output: T",
         .flags = WEIR_OP_VIEW,
         .summary = "Puts a border of zeros around a tensor.",
         .infer_shape = pad_shape,
         .build_grad = pad_grad,
         .simplify = array_simplify_same,
         .kernels = WEIR_MOVE_HOST_KERNELS("T", pad, "input, paddings", "output",
                                           .host_inputs = "paddings")},
        {.name = "PadV2",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "T: type; Tpaddings: {int32, int64} = DT_INT32",
         .inputs = "input: T; paddings: Tpaddings; constant_values: T",
         .outputs = "output: T",
         .flags = WEIR_OP_VIEW,
         .summary = "Puts a border of one value around a tensor.",
         .infer_shape = pad_shape,
         .build_grad = pad_grad,
         .simplify = array_simplify_same,
         .kernels = WEIR_MOVE_HOST_KERNELS("T", pad, "input, paddings, constant_values", "output",
                                           .host_inputs = "paddings, constant_values")},
        {0}}};

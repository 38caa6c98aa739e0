// slice.c — Slice: a box of a tensor, given by its first corner and its size.
#include "ops/array/common.h"

// ---- shape ----

// A slice of a vector that is itself a shape.
static weir_status_t* slice_value(weir_shape_ctx_t* ctx, int64_t begin, int64_t size) {
  array_ints_t ints;
  if (!array_is_index_type(weir_dtype_base(ctx->node->input_types[0]))) return NULL;
  array_input_ints(ctx, 0, &ints);
  if (!ints.is_known || begin + size > ints.count) return NULL;
  return array_set_value(ctx, 0, (int)size, ints.values + begin);
}

// -1 stands for what is not known, or for all that is left.
static weir_status_t* check_value(int64_t value) {
  if (value >= -1) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Invalid value in tensor used for shape: %lld",
                     (long long)value);
}

static weir_status_t* slice_dims(const weir_shape_t* in, const array_ints_t* begin,
                                 const array_ints_t* size, int64_t* dims) {
  for (int i = 0; i < in->rank; ++i) {
    int64_t b = begin->is_exact ? begin->values[i] : -1;
    bool size_known = size->is_known && (size->is_exact || size->values[i] >= 0);
    int64_t s = size_known ? size->values[i] : -2;
    dims[i] = s >= 0 ? s : -1;
    WEIR_TRY(check_value(b));
    if (size_known) WEIR_TRY(check_value(s));
    if (!begin->is_exact || in->dims[i] < 0) continue;
    if (s == -1 && b > in->dims[i]) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Negative dimension size caused by subtracting %lld from %lld",
                         (long long)b, (long long)in->dims[i]);
    }
    if (b < 0 || b > in->dims[i]) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Expected begin[%d] in [0, %lld], but got %lld", i,
                         (long long)in->dims[i], (long long)b);
    }
    if (s == -1) dims[i] = in->dims[i] - b;
    if (s >= 0 && s > in->dims[i] - b) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Expected size[%d] in [0, %lld], but got %lld", i,
                         (long long)(in->dims[i] - b), (long long)s);
    }
  }
  return NULL;
}

static weir_status_t* slice_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* in = weir_shape_input(ctx, 0);
  const weir_shape_t* index = NULL;
  array_ints_t begin, size;
  int64_t dims[WEIR_MAX_RANK];
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, &index));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 2), 1, NULL));
  WEIR_TRY(weir_shape_join(ctx, index, weir_shape_input(ctx, 2), &index));
  int64_t rank = index->rank == 1 ? index->dims[0] : -1;
  if (in->rank < 0 && rank >= 0 && rank <= WEIR_MAX_RANK) {
    for (int i = 0; i < rank; ++i) dims[i] = -1;
    in = weir_shape_make(ctx->arena, (int)rank, dims);
    if (!in) return weir_out_of_memory();
  }
  if (in->rank < 0) return weir_shape_set(ctx, 0, &weir_shape_unknown);
  if (rank >= 0) WEIR_TRY(weir_shape_with_rank(ctx, in, (int)rank, NULL));
  array_input_ints(ctx, 1, &begin);
  array_input_ints(ctx, 2, &size);
  if ((begin.is_known && begin.count != in->rank) || (size.is_known && size.count != in->rank)) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Expected begin and size arguments to be 1-D tensors of size %d", in->rank);
  }
  WEIR_TRY(slice_dims(in, &begin, &size, dims));
  WEIR_TRY(weir_shape_set_dims(ctx, 0, in->rank, dims));
  return in->rank == 1 && begin.is_exact && dims[0] >= 0
             ? slice_value(ctx, begin.values[0], dims[0])
             : NULL;
}

// ---- kernel ----

static weir_status_t* read_box(const weir_kernel_ctx_t* ctx, int64_t* begin, int64_t* size) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const weir_tensor_t* begins = weir_kernel_input(ctx, 1);
  const weir_tensor_t* sizes = weir_kernel_input(ctx, 2);
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  if (begins->rank != 1 || sizes->rank != 1 || begins->count != in->rank ||
      sizes->count != in->rank) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Expected begin and size arguments to be 1-D tensors of size %d, but got "
                       "shapes %s and %s instead.",
                       in->rank, weir_tensor_shape_text(begins, a),
                       weir_tensor_shape_text(sizes, b));
  }
  for (int i = 0; i < in->rank; ++i) {
    int64_t dim = in->dims[i];
    begin[i] = weir_tensor_int_at(begins, i);
    size[i] = weir_tensor_int_at(sizes, i);
    if (size[i] == -1) size[i] = dim - begin[i];
    if (dim == 0 && (begin[i] != 0 || size[i] != 0)) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Expected begin[%d] == 0 (got %lld) and size[%d] == 0 (got %lld) when "
                         "input.dim_size(%d) == 0",
                         i, (long long)begin[i], i, (long long)size[i], i);
    }
    if (begin[i] < 0 || begin[i] > dim) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Expected begin[%d] in [0, %lld], but got %lld", i,
                         (long long)dim, (long long)begin[i]);
    }
    if (size[i] < 0 || size[i] > dim - begin[i]) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Expected size[%d] in [0, %lld], but got %lld", i,
                         (long long)(dim - begin[i]), (long long)size[i]);
    }
  }
  return NULL;
}

// Rows of the first dimension are one run of memory.
static bool is_rows(const weir_tensor_t* in, const int64_t* size) {
  for (int i = 1; i < in->rank; ++i) {
    if (size[i] != in->dims[i]) return false;
  }
  return in->rank > 0;
}

static weir_status_t* slice(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const weir_dtype_t dtype = weir_tensor_type(in);
  int64_t begin[WEIR_MAX_RANK], size[WEIR_MAX_RANK];
  WEIR_TRY(read_box(ctx, begin, size));
  weir_tensor_t* out = NULL;
  if (is_rows(in, size) && array_rows_are_view(in, begin[0], size[0])) {
    WEIR_TRY(weir_tensor_slice(ctx->inputs[0].tensor, begin[0], begin[0] + size[0], &out));
    weir_kernel_set(ctx, 0, out);
    return NULL;
  }
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank, size, &out));
  if (out->count == 0) return NULL;
  weir_move_dim_t box[WEIR_MAX_RANK];
  int64_t offset = 0, stride = 1;
  for (int i = in->rank - 1; i >= 0; --i) {
    box[i].size = size[i];
    box[i].src_stride = stride;
    offset += begin[i] * stride;
    stride *= in->dims[i];
  }
  weir_move_contiguous_dst(in->rank, box);
  return weir_kernel_move_box(ctx, dtype, in->rank, box,
                              (const char*)in->data + (size_t)offset * weir_dtype_size(dtype),
                              out->data);
}

// ---- gradient: dy padded with zeros to the input's shape ----

static bool static_paddings(weir_grad_ctx_t* g, int64_t* paddings, int* out_rank) {
  const weir_shape_t* x = weir_grad_shape(g, weir_grad_input(g, 0));
  const weir_shape_t* y = weir_grad_shape(g, weir_grad_output(g, 0));
  const weir_tensor_t* begin = array_grad_constant(g, weir_grad_input(g, 1));
  if (!weir_shape_is_full(x) || !weir_shape_is_full(y) || !begin || begin->count != x->rank ||
      y->rank != x->rank) {
    return false;
  }
  for (int i = 0; i < x->rank; ++i) {
    paddings[2 * i] = weir_tensor_int_at(begin, i);
    paddings[2 * i + 1] = x->dims[i] - y->dims[i] - paddings[2 * i];
  }
  *out_rank = x->rank;
  return true;
}

static weir_edge_t dynamic_paddings(weir_grad_ctx_t* g) {
  weir_edge_t begin = weir_grad_input(g, 1);
  weir_dtype_t dtype = weir_grad_dtype(g, begin);
  weir_edge_t x_shape = array_grad_shape(g, weir_grad_input(g, 0), dtype);
  weir_edge_t y_shape = array_grad_shape(g, weir_grad_output(g, 0), dtype);
  weir_edge_t rest = weir_grad_node(
      g, "Sub", WEIR_EDGES(weir_grad_node(g, "Sub", WEIR_EDGES(x_shape, y_shape)), begin));
  return weir_grad_node_with(g, "Pack", WEIR_EDGES(begin, rest),
                             WEIR_ATTRS(weir_attr_int("axis", 1)));
}

static weir_status_t* slice_grad(weir_grad_ctx_t* g) {
  int64_t paddings[2 * WEIR_MAX_RANK];
  int rank = 0;
  weir_edge_t padding;
  if (static_paddings(g, paddings, &rank)) {
    const int64_t dims[] = {rank, 2};
    weir_tensor_t* tensor = NULL;
    WEIR_TRY(weir_tensor_create_from(WEIR_DTYPE_INT64, 2, dims, paddings, &tensor));
    padding = weir_build_const(g->builder, tensor);
  } else {
    padding = dynamic_paddings(g);
  }
  return weir_grad_set(g, 0, weir_grad_node(g, "Pad", WEIR_EDGES(weir_grad_dy(g, 0), padding)));
}

const weir_op_module_t weir_ops_array_slice = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Slice",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "T: type; Index: {int32, int64}",
         .inputs = "input: T; begin: Index; size: Index",
         .outputs = "output: T",
         .flags = WEIR_OP_VIEW,
         .summary = "Cuts a box out of a tensor; a size of -1 means to the end.",
         .infer_shape = slice_shape,
         .cost = weir_cost_fn_outputs,
         .build_grad = slice_grad,
         .simplify = array_simplify_same,
         .kernels = WEIR_MOVE_HOST_KERNELS("T", slice, "input, begin, size", "output",
                                           .host_inputs = "begin, size")},
        {0}}};

// transpose.c — Transpose, ConjugateTranspose, InvertPermutation.
#include "ops/array/common.h"

// ---- shape ----

static weir_status_t* transpose_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* in = weir_shape_input(ctx, 0);
  array_ints_t perm;
  int64_t dims[WEIR_MAX_RANK];
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, NULL));
  array_input_ints(ctx, 1, &perm);
  int64_t rank = weir_shape_dim(weir_shape_input(ctx, 1), 0);
  if (perm.is_known) rank = perm.count;
  if (in->rank >= 0) {
    if (rank >= 0) WEIR_TRY(weir_shape_with_rank(ctx, in, (int)rank, NULL));
    rank = in->rank;
  }
  // What is permuted by no axis or one may be a scalar or a vector: the kernel lets both pass.
  if (rank > WEIR_MAX_RANK || (in->rank < 0 && rank < 2))
    return weir_shape_set(ctx, 0, &weir_shape_unknown);
  for (int i = 0; i < rank; ++i) {
    int64_t from = perm.is_exact ? perm.values[i] : -1;
    if (perm.is_exact && (from < -rank || from >= rank)) {
      return WEIR_STATUS(INVALID_ARGUMENT, "perm dim %lld is out of range of input rank %lld",
                         (long long)from, (long long)rank);
    }
    if (perm.is_exact && from < 0) from += rank;
    dims[i] = from >= 0 && in->rank >= 0   ? in->dims[from]
              : rank <= 1 && in->rank == 1 ? in->dims[0]
                                           : -1;
  }
  return weir_shape_set_dims(ctx, 0, (int)rank, dims);
}

// ---- kernels ----

static weir_status_t* read_perm(const weir_tensor_t* in, const weir_tensor_t* perm, int* out) {
  bool seen[WEIR_MAX_RANK] = {false};
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (perm->rank != 1)
    return WEIR_STATUS(INVALID_ARGUMENT, "perm must be rank 1, got shape %s",
                       weir_tensor_shape_text(perm, text));
  if (perm->count != in->rank) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "transpose expects a vector of size %d. But input(1) is a vector of size %lld", in->rank,
        (long long)perm->count);
  }
  for (int i = 0; i < in->rank; ++i) {
    int64_t from = weir_tensor_int_at(perm, i);
    int64_t axis = from < 0 ? from + in->rank : from;
    if (axis < 0 || axis >= in->rank) {
      return WEIR_STATUS(INVALID_ARGUMENT, "%lld is out of range [0 .. %d)", (long long)axis,
                         in->rank);
    }
    seen[axis] = true;
    out[i] = (int)axis;
  }
  for (int i = 0; i < in->rank; ++i) {
    if (!seen[i]) return WEIR_STATUS(INVALID_ARGUMENT, "%d is missing from the permutation", i);
  }
  return NULL;
}

// Whether only dimensions of size 1 change places, so that memory stays as it is.
static bool keeps_order(const weir_tensor_t* in, const int* perm) {
  int last = -1;
  for (int i = 0; i < in->rank; ++i) {
    if (in->dims[perm[i]] == 1) continue;
    if (perm[i] < last) return false;
    last = perm[i];
  }
  return true;
}

static void conjugate(weir_tensor_t* t) {
  if (t->dtype == WEIR_DTYPE_COMPLEX64) {
    float* x = t->data;
    for (int64_t i = 0; i < t->count; ++i) x[2 * i + 1] = -x[2 * i + 1];
  } else if (t->dtype == WEIR_DTYPE_COMPLEX128) {
    double* x = t->data;
    for (int64_t i = 0; i < t->count; ++i) x[2 * i + 1] = -x[2 * i + 1];
  }
}

static weir_status_t* transpose(weir_kernel_ctx_t* ctx, bool may_share,
                                weir_tensor_t** out_tensor) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  int perm[WEIR_MAX_RANK];
  int64_t dims[WEIR_MAX_RANK], strides[WEIR_MAX_RANK];
  weir_move_dim_t box[WEIR_MAX_RANK];
  WEIR_TRY(read_perm(in, weir_kernel_input(ctx, 1), perm));
  for (int i = 0; i < in->rank; ++i) dims[i] = in->dims[perm[i]];
  if (may_share && keeps_order(in, perm)) {
    WEIR_TRY(weir_tensor_reshape(ctx->inputs[0].tensor, in->rank, dims, out_tensor));
    weir_kernel_set(ctx, 0, *out_tensor);
    return NULL;
  }
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank, dims, out_tensor));
  if (in->count == 0) return NULL;
  int64_t stride = 1;
  for (int i = in->rank - 1; i >= 0; --i) {
    strides[i] = stride;
    stride *= in->dims[i];
  }
  for (int i = 0; i < in->rank; ++i) {
    box[i].size = in->dims[perm[i]];
    box[i].src_stride = strides[perm[i]];
  }
  weir_move_contiguous_dst(in->rank, box);
  return weir_kernel_move_box(ctx, weir_tensor_type(in), in->rank, box, in->data,
                              (*out_tensor)->data);
}

static weir_status_t* transpose_compute(weir_kernel_ctx_t* ctx) {
  weir_tensor_t* out = NULL;
  return transpose(ctx, true, &out);
}

static weir_status_t* conjugate_transpose_cpu(weir_kernel_ctx_t* ctx) {
  weir_tensor_t* out = NULL;
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  bool may_share = !weir_dtype_is_complex(weir_tensor_type(in)) && !weir_tensor_is_variable(in);
  WEIR_TRY(transpose(ctx, may_share, &out));
  conjugate(out);
  return NULL;
}

// ---- gradients and simplification ----

static weir_edge_t inverse_perm(weir_grad_ctx_t* g) {
  weir_edge_t perm = weir_grad_input(g, 1);
  const weir_tensor_t* value = array_grad_constant(g, perm);
  if (!value || value->count > WEIR_MAX_RANK)
    return weir_grad_node(g, "InvertPermutation", WEIR_EDGES(perm));
  int64_t inverse[WEIR_MAX_RANK] = {0};
  int rank = (int)value->count;
  for (int i = 0; i < rank; ++i) {
    int64_t from = weir_tensor_int_at(value, i);
    if (from < 0) from += rank;
    if (from < 0 || from >= rank) return weir_grad_node(g, "InvertPermutation", WEIR_EDGES(perm));
    inverse[from] = i;
  }
  return array_grad_ints(g, weir_tensor_type(value), inverse, rank);
}

static weir_status_t* transpose_grad(weir_grad_ctx_t* g) {
  return weir_grad_set(
      g, 0, weir_grad_node(g, g->node->op_name, WEIR_EDGES(weir_grad_dy(g, 0), inverse_perm(g))));
}

static weir_status_t* transpose_simplify(weir_simplify_ctx_t* ctx) {
  const weir_tensor_t* perm = ctx->builder->vtable->constant(ctx->builder, ctx->inputs[1]);
  for (int64_t i = 0; perm && i < perm->count; ++i) {
    if (weir_tensor_int_at(perm, i) != i) return NULL;
  }
  return perm ? weir_simplify_to_input(ctx, 0) : NULL;
}

// ---- InvertPermutation ----

static weir_status_t* invert_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* x = NULL;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 1, &x));
  return weir_shape_set(ctx, 0, x);
}

static weir_status_t* invert_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  weir_tensor_t* y = NULL;
  if (x->rank != 1) return WEIR_STATUS(INVALID_ARGUMENT, "invert_permutation expects a 1D vector.");
  WEIR_TRY(weir_kernel_output(ctx, 0, 1, x->dims, &y));
  for (int64_t i = 0; i < x->count; ++i) weir_move_set_int(y, i, -1);
  for (int64_t i = 0; i < x->count; ++i) {
    int64_t d = weir_tensor_int_at(x, i);
    if (d < 0 || d >= x->count) {
      return WEIR_STATUS(INVALID_ARGUMENT, "%lld is not between 0 and %lld", (long long)d,
                         (long long)x->count);
    }
    if (weir_tensor_int_at(y, d) != -1) {
      return WEIR_STATUS(INVALID_ARGUMENT, "%lld is duplicated in the input.", (long long)d);
    }
    weir_move_set_int(y, d, i);
  }
  return NULL;
}

const weir_op_module_t weir_ops_array_transpose = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Transpose",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "T: type; Tperm: {int32, int64} = DT_INT32",
         .inputs = "x: T; perm: Tperm",
         .outputs = "y: T",
         .flags = WEIR_OP_VIEW,
         .summary = "Permutes the dimensions of a tensor.",
         .infer_shape = transpose_shape,
         .build_grad = transpose_grad,
         .simplify = transpose_simplify,
         .kernels = WEIR_MOVE_KERNELS("T", .compute = transpose_compute, .host_inputs = "perm")},
        {.name = "ConjugateTranspose",
         .attrs = "T: type; Tperm: {int32, int64} = DT_INT32",
         .inputs = "x: T; perm: Tperm",
         .outputs = "y: T",
         .flags = WEIR_OP_VIEW,
         .summary = "Permutes the dimensions of a tensor and conjugates its elements.",
         .infer_shape = transpose_shape,
         .build_grad = transpose_grad,
         .kernels = WEIR_CPU_KERNEL(.compute = conjugate_transpose_cpu, .host_inputs = "perm")},
        {.name = "InvertPermutation",
         .attrs = "T: {int32, int64} = DT_INT32",
         .inputs = "x: T",
         .outputs = "y: T",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "Returns the inverse of a permutation.",
         .infer_shape = invert_shape,
         .kernels =
             WEIR_PORTABLE_KERNEL(.compute = invert_cpu, .host_inputs = "x", .host_outputs = "y")},
        {0}}};

// add.c — SparseAdd, SparseAddGrad: the sum of two sparse tensors.
#include <math.h>
#include <stdlib.h>

#include "ops/math/common.h"
#include "ops/sparse/union.h"
#include "tensor/cast.h"
#include "tensor/numeric.h"

#define ADDED_TYPES "T: float, double, int8, int16, int32, int64, complex64, complex128"

static weir_status_t* add_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* shape = NULL;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 2), 1, &shape));
  WEIR_TRY(weir_sparse_shape_set(ctx, 0, -1, weir_shape_dim(shape, 0)));
  return weir_shape_set(ctx, 2, shape);
}

static weir_status_t* check_operands(const weir_sparse_t* a, const weir_sparse_t* b) {
  char x[WEIR_SHAPE_TEXT_SIZE], y[WEIR_SHAPE_TEXT_SIZE];
  if (a->indices->rank != 2 || b->indices->rank != 2) {
    return WEIR_STATUS(
        INVALID_ARGUMENT, "Input indices should be matrices but received shapes: %s and %s",
        weir_tensor_shape_text(a->indices, x), weir_tensor_shape_text(b->indices, y));
  }
  if (a->values->rank != 1 || b->values->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Input values should be vectors but received shapes: %s and %s",
                       weir_tensor_shape_text(a->values, x), weir_tensor_shape_text(b->values, y));
  }
  if (a->count != a->values->count || b->count != b->values->count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Expected %" PRId64 " and %" PRId64 " non-empty input values, got %" PRId64
                       " and %" PRId64,
                       a->count, b->count, a->values->count, b->values->count);
  }
  if (a->shape->rank != 1 || b->shape->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Input shapes should be a vector but received shapes %s and %s",
                       weir_tensor_shape_text(a->shape, x), weir_tensor_shape_text(b->shape, y));
  }
  if (a->rank != b->rank) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Input indices must have the same dimension, got %d and %d", a->rank,
                       b->rank);
  }
  if (a->rank != a->shape->count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Second dimension of a_indices and length of a_shape must match, got %d and "
                       "%" PRId64,
                       a->rank, a->shape->count);
  }
  return NULL;
}

// Whether the magnitude of |value| is at least |least|, an element of its real type.
static bool is_large(weir_dtype_t dtype, const void* value, const void* least) {
  switch (dtype) {
    case WEIR_DTYPE_INT8: return *(const int8_t*)least <= abs(*(const int8_t*)value);
    case WEIR_DTYPE_INT16: return *(const int16_t*)least <= abs(*(const int16_t*)value);
    case WEIR_DTYPE_INT32: return *(const int32_t*)least <= llabs(*(const int32_t*)value);
    case WEIR_DTYPE_INT64: {
      int64_t x = *(const int64_t*)value;
      return *(const int64_t*)least <= (x == INT64_MIN ? x : llabs(x));
    }
    case WEIR_DTYPE_FLOAT: return *(const float*)least <= fabsf(*(const float*)value);
    case WEIR_DTYPE_DOUBLE: return *(const double*)least <= fabs(*(const double*)value);
    case WEIR_DTYPE_COMPLEX64:
      return *(const float*)least <= cabsf(*(const weir_complex64_t*)value);
    default: return *(const double*)least <= cabs(*(const weir_complex128_t*)value);
  }
}

static weir_dtype_t real_type(weir_dtype_t dtype) {
  return dtype == WEIR_DTYPE_COMPLEX64    ? WEIR_DTYPE_FLOAT
         : dtype == WEIR_DTYPE_COMPLEX128 ? WEIR_DTYPE_DOUBLE
                                          : dtype;
}

// Sums what |pairs| say, drops small sums; |sums| has room for all.
static int64_t sum_pairs(const weir_sparse_t* a, const weir_sparse_t* b, const void* least,
                         weir_sparse_pair_t* pairs, int64_t count, char* sums) {
  const weir_dtype_t dtype = weir_tensor_type(a->values);
  const size_t size = weir_dtype_size(dtype);
  const weir_binary_fn_t add = weir_binary_find(WEIR_BINARY_ADD, dtype);
  int64_t kept = 0;
  for (int64_t i = 0; i < count; ++i) {
    char* sum = sums + (size_t)kept * size;
    weir_sparse_pair_t pair = pairs[i];
    if (pair.b < 0) memcpy(sum, weir_sparse_at(a->values, pair.a), size);
    else if (pair.a < 0) memcpy(sum, weir_sparse_at(b->values, pair.b), size);
    else
      add(weir_sparse_at(a->values, pair.a), weir_sparse_at(b->values, pair.b), sum, 1,
          WEIR_SPAN_BOTH);
    // What only one of them has stays, however small.
    if (pair.a < 0 || pair.b < 0 || is_large(dtype, sum, least)) pairs[kept++] = pair;
  }
  return kept;
}

static weir_status_t* add_pairs(weir_kernel_ctx_t* ctx, const weir_sparse_t* a,
                                const weir_sparse_t* b, weir_sparse_pair_t* pairs, char* sums) {
  const weir_tensor_t* thresh = weir_kernel_input(ctx, 6);
  const weir_dtype_t dtype = weir_tensor_type(a->values);
  char least[16];
  int64_t count = 0;
  weir_tensor_t* values = NULL;
  WEIR_TRY(weir_cast_elements(real_type(dtype), least, weir_tensor_type(thresh), thresh->data, 1));
  count = sum_pairs(a, b, least, pairs, weir_sparse_union(a, b, pairs), sums);
  WEIR_TRY(weir_sparse_write_union(ctx, a, b, pairs, count));
  WEIR_TRY(weir_kernel_output(ctx, 1, 1, &count, &values));
  if (count > 0) memcpy(values->data, sums, (size_t)count * weir_dtype_size(dtype));
  return weir_sparse_output_vector(ctx, 2, a->dims, a->rank);
}

static weir_status_t* add_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* thresh = weir_kernel_input(ctx, 6);
  weir_sparse_t a, b;
  weir_sparse_get(weir_kernel_input(ctx, 0), weir_kernel_input(ctx, 1), weir_kernel_input(ctx, 2),
                  &a);
  weir_sparse_get(weir_kernel_input(ctx, 3), weir_kernel_input(ctx, 4), weir_kernel_input(ctx, 5),
                  &b);
  WEIR_TRY(check_operands(&a, &b));
  WEIR_TRY(weir_sparse_check_same_shape(&a, &b));
  if (thresh->rank != 0) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "The magnitude threshold must be a scalar: got shape %s",
                       weir_tensor_shape_text(thresh, text));
  }
  const size_t most = (size_t)a.count + (size_t)b.count;
  weir_sparse_pair_t* pairs = weir_alloc_array(most, sizeof(*pairs));
  char* sums = weir_alloc_array(most + 1, weir_dtype_size(weir_tensor_type(a.values)));
  weir_status_t* status =
      pairs && sums ? add_pairs(ctx, &a, &b, pairs, sums) : weir_out_of_memory();
  weir_free(pairs);
  weir_free(sums);
  return status;
}

static weir_status_t* add_grad(weir_grad_ctx_t* g) {
  weir_edge_t both = weir_grad_node(g, "SparseAddGrad",
                                    WEIR_EDGES(weir_grad_dy(g, 1), weir_grad_input(g, 0),
                                               weir_grad_input(g, 3), weir_grad_output(g, 0)));
  WEIR_TRY(weir_grad_set(g, 1, both));
  return weir_grad_set(g, 4, weir_build_output(both, 1));
}

// ---- SparseAddGrad ----

static weir_status_t* add_grad_shape(weir_shape_ctx_t* ctx) {
  for (int i = 0; i < 2; ++i) {
    const weir_shape_t* indices = NULL;
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1 + i), 2, &indices));
    WEIR_TRY(weir_shape_set_vector(ctx, i, weir_shape_dim(indices, 0)));
  }
  return NULL;
}

static weir_status_t* check_add_grad(const weir_tensor_t* grad, const weir_tensor_t* const* parts) {
  char text[3][WEIR_SHAPE_TEXT_SIZE];
  if (grad->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Input backprop_val_grad should be a vector but received shape: %s",
                       weir_tensor_shape_text(grad, text[0]));
  }
  if (parts[0]->rank != 2 || parts[1]->rank != 2 || parts[2]->rank != 2) {
    return WEIR_STATUS(
        INVALID_ARGUMENT, "Input indices should be matrices but received shapes: %s and %s and %s",
        weir_tensor_shape_text(parts[0], text[0]), weir_tensor_shape_text(parts[1], text[1]),
        weir_tensor_shape_text(parts[2], text[2]));
  }
  if (parts[0]->dims[1] != parts[1]->dims[1] || parts[1]->dims[1] != parts[2]->dims[1]) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "The densified operands should have the same ndims; for A, B, sum got: "
                       "%" PRId64 "%" PRId64 "%" PRId64,
                       parts[0]->dims[1], parts[1]->dims[1], parts[2]->dims[1]);
  }
  if (grad->count != parts[2]->dims[0]) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "# elements of backprop_val_grad and # rows of sum_indices should match "
                       "(#nnz of sum): got %" PRId64 " and %" PRId64,
                       grad->count, parts[2]->dims[0]);
  }
  return NULL;
}

// Compares row *|at| of one operand with row |k| of the sum and takes its gradient where they are
// the same. True: the operand has no row any more that comes before.
static bool step_operand(const weir_tensor_t* indices, const weir_tensor_t* sum,
                         const weir_tensor_t* grad, int64_t k, int64_t* at, weir_tensor_t* out) {
  const int64_t rank = indices->dims[1];
  if (*at >= indices->dims[0]) return true;
  int order = weir_sparse_compare(WEIR_TENSOR_DATA(indices, int64_t) + *at * rank,
                                  WEIR_TENSOR_DATA(sum, int64_t) + k * rank, (int)rank);
  if (order > 0) return true;
  if (order == 0) {
    memcpy(weir_sparse_at(out, *at), weir_sparse_at(grad, k),
           weir_dtype_size(weir_tensor_type(grad)));
  }
  ++*at;
  return order == 0;
}

static weir_status_t* add_grad_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* grad = weir_kernel_input(ctx, 0);
  const weir_tensor_t* const parts[] = {weir_kernel_input(ctx, 1), weir_kernel_input(ctx, 2),
                                        weir_kernel_input(ctx, 3)};
  weir_tensor_t* out[2];
  int64_t at[2] = {0, 0};
  WEIR_TRY(check_add_grad(grad, parts));
  for (int i = 0; i < 2; ++i) {
    WEIR_TRY(weir_kernel_output(ctx, i, 1, parts[i]->dims, &out[i]));
    weir_move_zero(weir_tensor_type(out[i]), out[i]->data, out[i]->count);
  }
  for (int64_t k = 0; k < grad->count;) {
    if (at[0] >= out[0]->count && at[1] >= out[1]->count) break;
    bool is_past_a = step_operand(parts[0], parts[2], grad, k, &at[0], out[0]);
    bool is_past_b = step_operand(parts[1], parts[2], grad, k, &at[1], out[1]);
    k += is_past_a && is_past_b;
  }
  return NULL;
}

const weir_op_module_t weir_ops_sparse_add = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "SparseAdd",
         .attrs = "T: numbertype; Treal: realnumbertype",
         .inputs = "a_indices: int64; a_values: T; a_shape: int64; b_indices: int64; b_values: T; "
                   "b_shape: int64; thresh: Treal",
         .outputs = "sum_indices: int64; sum_values: T; sum_shape: int64",
         .summary = "The sum of two sparse tensors, without elements that are smaller than thresh.",
         .infer_shape = add_shape,
         .build_grad = add_grad,
         .kernels = WEIR_CPU_KERNEL(.types = ADDED_TYPES, .compute = add_cpu)},
        {.name = "SparseAddGrad",
         .attrs = "T: numbertype",
         .inputs = "backprop_val_grad: T; a_indices: int64; b_indices: int64; sum_indices: int64",
         .outputs = "a_val_grad: T; b_val_grad: T",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "The gradients of SparseAdd with respect to the values.",
         .infer_shape = add_grad_shape,
         .kernels = WEIR_CPU_KERNEL(.types = ADDED_TYPES, .compute = add_grad_cpu)},
        {0}}};

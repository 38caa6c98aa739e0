// nd_scatter.h — Putting slices into a tensor by rows of indices: what the scatters into tensors
// and into variables share.
#ifndef WEIR_OPS_ARRAY_ND_SCATTER_H_
#define WEIR_OPS_ARRAY_ND_SCATTER_H_

#include "kernel/elementwise/element_add.h"
#include "kernel/elementwise/update.h"
#include "kernel/move/scatter_op.h"
#include "ops/array/nd_index.h"

typedef enum nd_scatter_t {
  ND_SCATTER_UPDATE,
  ND_SCATTER_ADD,
  ND_SCATTER_SUB,
  ND_SCATTER_MIN,
  ND_SCATTER_MAX,
} nd_scatter_t;

// Elements of a tensor of that shape, or -1 where that is not known.
static inline int64_t nd_scatter_count(const weir_shape_t* shape) {
  int64_t count = shape->rank < 0 ? -1 : 1;
  for (int i = 0; i < shape->rank; ++i) {
    if (shape->dims[i] == 0) return 0;
    if (shape->dims[i] < 0 || count < 0 || __builtin_mul_overflow(count, shape->dims[i], &count)) {
      count = -1;
    }
  }
  return count;
}

// Checks that |updates| is a slice of |out| for each row of |indices|, as far as shapes are known.
static inline weir_status_t* nd_scatter_check_shapes(weir_shape_ctx_t* ctx,
                                                     const weir_shape_t* indices,
                                                     const weir_shape_t* updates,
                                                     const weir_shape_t* out) {
  WEIR_TRY(weir_shape_at_least(ctx, indices, 1));
  if (nd_scatter_count(out) == 0 &&
      (nd_scatter_count(indices) > 0 || nd_scatter_count(updates) > 0))
    return WEIR_STATUS(INVALID_ARGUMENT, "Indices and updates specified for empty input");
  if (indices->rank < 0 || updates->rank < 0 || out->rank < 0 ||
      indices->dims[indices->rank - 1] < 0)
    return NULL;
  int outer = indices->rank - 1;
  int64_t depth = indices->dims[outer];
  if (depth > out->rank || updates->rank != outer + out->rank - depth) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Shapes of indices, updates and output do not fit: ranks %d, %d and %d with "
                       "%lld indices a row",
                       indices->rank, updates->rank, out->rank, (long long)depth);
  }
  for (int i = 0; i < updates->rank; ++i) {
    int64_t expected = i < outer ? indices->dims[i] : out->dims[i - outer + depth];
    int64_t joined = 0;
    WEIR_TRY(weir_dim_join(ctx, expected, updates->dims[i], &joined));
  }
  return NULL;
}

// Indices a row. To TensorFlow's kernels, though not to its shape functions, a vector is a column.
static inline int64_t nd_scatter_depth(const weir_tensor_t* indices) {
  return indices->rank > 1 ? indices->dims[indices->rank - 1] : 1;
}

// The same for tensors. TensorFlow also refuses updates that no index places.
static inline weir_status_t* nd_scatter_check(const weir_tensor_t* indices,
                                              const weir_tensor_t* updates,
                                              const weir_tensor_t* out) {
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE], c[WEIR_SHAPE_TEXT_SIZE];
  if (indices->rank < 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Indices shape must have rank at least one. Found:%s",
                       weir_tensor_shape_text(indices, a));
  }
  bool has_any = indices->count > 0 || updates->count > 0;
  if (has_any && (out->count == 0 || indices->count == 0 || updates->count == 0))
    return WEIR_STATUS(INVALID_ARGUMENT, "Indices and updates specified for empty output");
  int outer = WEIR_MAX(indices->rank - 1, 1);
  int64_t depth = nd_scatter_depth(indices);
  bool fits = depth <= out->rank && updates->rank == outer + out->rank - depth;
  for (int i = 0; fits && i < updates->rank; ++i) {
    fits = updates->dims[i] == (i < outer ? indices->dims[i] : out->dims[i - outer + depth]);
  }
  if (fits) return NULL;
  return WEIR_STATUS(
      INVALID_ARGUMENT,
      "Dimensions [0,%d) of indices[shape=%s] must match those of updates[shape=%s], "
      "and the inner ones of updates those of the output[shape=%s]",
      outer, weir_tensor_shape_text(indices, a), weir_tensor_shape_text(updates, b),
      weir_tensor_shape_text(out, c));
}

static inline nd_index_t nd_scatter_index(const weir_tensor_t* indices, const weir_tensor_t* out) {
  nd_index_t nd = nd_index_make(indices, out->rank, out->dims);
  if (indices->rank > 1) return nd;
  nd.depth = 1;
  nd.count = indices->count;
  nd.slice = out->count / out->dims[0];
  return nd;
}

// A difference of bools is one where they differ.
static inline void nd_scatter_sub_bools(void* dst, const void* src, int64_t count) {
  bool* y = dst;
  const bool* x = src;
  for (int64_t i = 0; i < count; ++i) y[i] = y[i] != x[i];
}

// How one slice is put: by one of the two functions, by joining strings, or else by copying.
typedef struct nd_scatter_fns_t {
  bool joins;
  weir_element_add_fn_t add;  // sums, also of bools
  weir_update_fn_t update;    // minima and maxima
} nd_scatter_fns_t;

static inline weir_status_t* nd_scatter_find(nd_scatter_t mode, weir_dtype_t dtype,
                                             nd_scatter_fns_t* out_fns) {
  *out_fns = (nd_scatter_fns_t){.joins = mode == ND_SCATTER_ADD && dtype == WEIR_DTYPE_STRING};
  if (out_fns->joins) return NULL;
  switch (mode) {
    case ND_SCATTER_UPDATE: return NULL;
    case ND_SCATTER_ADD: out_fns->add = weir_element_add_fn(dtype); break;
    case ND_SCATTER_SUB:
      out_fns->add = dtype == WEIR_DTYPE_BOOL ? nd_scatter_sub_bools : weir_element_sub_fn(dtype);
      break;
    case ND_SCATTER_MIN: out_fns->update = weir_update_find(WEIR_UPDATE_MIN, dtype); break;
    case ND_SCATTER_MAX: out_fns->update = weir_update_find(WEIR_UPDATE_MAX, dtype); break;
  }
  if (out_fns->add || out_fns->update) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "elements of type %s cannot be scattered by this op",
                     weir_dtype_name(dtype));
}

// Strings are added by joining them.
static inline weir_status_t* nd_scatter_join(weir_string_t* dst, const weir_string_t* src,
                                             int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    weir_view_t more = weir_string_view(&src[i]);
    size_t size = weir_string_view(&dst[i]).size;
    char* bytes = weir_string_resize(&dst[i], size + more.size);
    if (!bytes) return weir_out_of_memory();
    if (more.size) memcpy(bytes + size, more.data, more.size);
  }
  return NULL;
}

static inline weir_status_t* nd_scatter_put(const nd_scatter_fns_t* fns, weir_dtype_t dtype,
                                            void* dst, const void* src, int64_t count) {
  if (fns->joins) return nd_scatter_join(dst, src, count);
  if (!fns->add && !fns->update) return weir_elements_copy(dtype, dst, src, count);
  if (fns->add) fns->add(dst, src, count);
  else fns->update(dst, src, count, false);
  return NULL;
}

// Puts the slices of |updates| into |out| where |nd| says, in order. Only a GPU's rows have a
// state.
static inline weir_status_t* nd_scatter_at(weir_kernel_ctx_t* ctx, const nd_index_t* nd,
                                           const weir_tensor_t* updates, nd_scatter_t mode,
                                           weir_tensor_t* out) {
  const weir_dtype_t dtype = weir_tensor_type(out);
  nd_scatter_fns_t fns;
  bool ignore = false;
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  WEIR_TRY(nd_index_policy(weir_kernel_attrs(ctx), &ignore));
  if (ctx->state) {
    weir_move_places_t places = {.indices = nd->indices,
                                 .count = nd->count,
                                 .depth = nd->depth,
                                 .dims = nd->dims,
                                 .inner = nd->slice};
    return weir_gpu_scatter(ctx, ctx->state, &places, updates, false, out);
  }
  WEIR_TRY(nd_scatter_find(mode, dtype, &fns));
  size_t step = (size_t)nd->slice * weir_dtype_size(dtype);
  for (int64_t i = 0; i < nd->count; ++i) {
    int64_t at = nd_index_at(nd, i);
    if (at < 0 && ignore) continue;
    if (at < 0) {
      return WEIR_STATUS(INVALID_ARGUMENT, "%s does not index into shape %s",
                         nd_index_text(nd, i, a), weir_tensor_shape_text(out, b));
    }
    WEIR_TRY(nd_scatter_put(&fns, dtype, (char*)out->data + (size_t)at * step,
                            (const char*)updates->data + (size_t)i * step, nd->slice));
  }
  return NULL;
}

// The same by |indices|. REQUIRES: nd_scatter_check passed, and |out| is not empty.
static inline weir_status_t* nd_scatter(weir_kernel_ctx_t* ctx, const weir_tensor_t* indices,
                                        const weir_tensor_t* updates, nd_scatter_t mode,
                                        weir_tensor_t* out) {
  nd_index_t nd = nd_scatter_index(indices, out);
  return nd_scatter_at(ctx, &nd, updates, mode, out);
}

// A copy of input 0 as output 0, in its own memory where possible: to scatter into.
static inline weir_status_t* nd_scatter_output(weir_kernel_ctx_t* ctx, weir_tensor_t** out) {
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  const void* data = x->data;
  const weir_dtype_t dtype = weir_tensor_type(x);
  WEIR_TRY(weir_kernel_forward(ctx, 0, 0, x->rank, x->dims, out));
  if ((*out)->data == data) return NULL;
  return weir_kernel_move_copy(ctx, dtype, data, (*out)->data, (*out)->count);
}

// Shape function of (tensor, indices, updates) -> output.
static inline weir_status_t* nd_scatter_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* out = weir_shape_input(ctx, 0);
  WEIR_TRY(nd_scatter_check_shapes(ctx, weir_shape_input(ctx, 1), weir_shape_input(ctx, 2), out));
  return weir_shape_set(ctx, 0, out);
}

// The row of a GPU: |fn| and fn_gpu, its init.
#define ND_SCATTER_GPU_ROW(gpu_types, fn, ...)                                  \
  {                                                                             \
    WEIR_DEVICE_GPU, .types = "T: " gpu_types, .compute = fn, .init = fn##_gpu, \
                     .state_size = sizeof(weir_scatter_state_t), __VA_ARGS__    \
  }

#endif  // WEIR_OPS_ARRAY_ND_SCATTER_H_

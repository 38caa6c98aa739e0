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

// Dimensions [begin, end) of a shape, as far as it has them.
typedef struct nd_scatter_part_t {
  const char* name;
  const weir_shape_t* shape;
  int begin;
  int end;
} nd_scatter_part_t;

// "dimensions [0,1) of indices[shape=[2,1]] = [2]".
static inline void nd_scatter_describe(const nd_scatter_part_t* part, const weir_shape_t* own,
                                       weir_strbuf_t* text) {
  weir_strbuf_printf(text, "imensions [%d,%d) of %s[shape=", part->begin, part->end, part->name);
  weir_shape_append(part->shape, text);
  weir_strbuf_puts(text, "] = ");
  weir_shape_append(own, text);
}

// Checks that both parts may be the same.
static inline weir_status_t* nd_scatter_join_parts(weir_shape_ctx_t* ctx,
                                                   const nd_scatter_part_t parts[2]) {
  const weir_shape_t *own[2], *joined;
  for (int i = 0; i < 2; ++i) {
    own[i] = weir_shape_sub(ctx, parts[i].shape, parts[i].begin, parts[i].end);
    if (!own[i]) return weir_out_of_memory();
  }
  weir_status_t* status = weir_shape_join(ctx, own[0], own[1], &joined);
  if (weir_status_code(status) != WEIR_INVALID_ARGUMENT) return status;
  weir_strbuf_t text = {0};
  weir_strbuf_puts(&text, "D");
  nd_scatter_describe(&parts[0], own[0], &text);
  weir_strbuf_puts(&text, " must match d");
  nd_scatter_describe(&parts[1], own[1], &text);
  status = weir_status_prefix(status, "%s: ", text.data ? text.data : "");
  weir_strbuf_free(&text);
  return status;
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
  const nd_scatter_part_t rows[2] = {{"indices", indices, 0, outer},
                                     {"updates", updates, 0, outer}};
  int depth = (int)WEIR_MIN(indices->dims[outer], WEIR_MAX_RANK);
  const nd_scatter_part_t slices[2] = {{"input", out, depth, out->rank},
                                       {"updates", updates, outer, updates->rank}};
  WEIR_TRY(nd_scatter_join_parts(ctx, rows));
  return nd_scatter_join_parts(ctx, slices);
}

// Indices a row. To TensorFlow's kernels, though not to its shape functions, a vector is a column.
static inline int64_t nd_scatter_depth(const weir_tensor_t* indices) {
  return indices->rank > 1 ? indices->dims[indices->rank - 1] : 1;
}

// A slice of a tensor of |rank| and |dims| for each row of |indices|.
typedef struct nd_scatter_fit_t {
  const weir_tensor_t* indices;
  const weir_tensor_t* updates;
  int rank;
  const int64_t* dims;
  int outer;      // dimensions of the rows
  int64_t depth;  // indices a row
} nd_scatter_fit_t;

static inline bool nd_scatter_rows_fit(const nd_scatter_fit_t* f) {
  bool fits = f->updates->rank >= f->outer;
  for (int i = 0; fits && i < f->outer; ++i) fits = f->updates->dims[i] == f->indices->dims[i];
  return fits;
}

static inline bool nd_scatter_slices_fit(const nd_scatter_fit_t* f) {
  bool fits = f->depth <= f->rank && f->updates->rank - f->outer == f->rank - f->depth;
  for (int i = f->outer; fits && i < f->updates->rank; ++i)
    fits = f->updates->dims[i] == f->dims[i - f->outer + f->depth];
  return fits;
}

static inline weir_status_t* nd_scatter_rows_differ(const nd_scatter_fit_t* f) {
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Dimensions [0,%d) of indices[shape=%s] must match dimensions [0,%d) of "
                     "updates[shape=%s]",
                     f->outer, weir_tensor_shape_text(f->indices, a), f->outer,
                     weir_tensor_shape_text(f->updates, b));
}

// |first|: which dimensions of the updates it names.
static inline weir_status_t* nd_scatter_slices_differ(const nd_scatter_fit_t* f, int64_t first) {
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Dimensions [%lld,%d) of input[shape=%s] must match dimensions [%lld,%d) of "
                     "updates[shape=%s]",
                     (long long)f->depth, f->rank, weir_shape_text(f->rank, f->dims, a),
                     (long long)first, f->updates->rank, weir_tensor_shape_text(f->updates, b));
}

// Checks it in the words of TensorFlow's scatters into zeros.
static inline weir_status_t* nd_scatter_check_fit(const nd_scatter_fit_t* f) {
  if (!nd_scatter_rows_fit(f)) return nd_scatter_rows_differ(f);
  return nd_scatter_slices_fit(f) ? NULL : nd_scatter_slices_differ(f, f->outer);
}

// In those of its scatters into variables, which look at the first dimension and at ranks before.
static inline weir_status_t* nd_scatter_check_variable_fit(const nd_scatter_fit_t* f) {
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  if (f->updates->rank > 0 && f->updates->dims[0] != f->indices->dims[0]) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Dimensions [0,1) of indices[shape=%s] = %lld must match dimensions [0,1) "
                       "of updates[shape=%s] = %lld",
                       weir_tensor_shape_text(f->indices, a), (long long)f->indices->dims[0],
                       weir_tensor_shape_text(f->updates, b), (long long)f->updates->dims[0]);
  }
  if (f->updates->rank >= f->outer && f->updates->rank - f->outer != f->rank - f->depth)
    return nd_scatter_slices_differ(f, f->depth);
  if (!nd_scatter_rows_fit(f)) return nd_scatter_rows_differ(f);
  return nd_scatter_slices_fit(f) ? NULL : nd_scatter_slices_differ(f, f->depth);
}

// And in those of its scatters into tensors.
static inline weir_status_t* nd_scatter_check_tensor_fit(const nd_scatter_fit_t* f) {
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  int64_t inner = f->rank - f->depth;
  weir_tensor_shape_text(f->updates, b);
  if (f->updates->rank < 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Updates shape must have rank at least one. Found:%s", b);
  }
  if (!nd_scatter_rows_fit(f)) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Outer dimensions of indices and update must match. Indices shape: %s, "
                       "updates shape:%s",
                       weir_tensor_shape_text(f->indices, a), b);
  }
  if (inner < 0 || f->updates->rank - f->outer != inner) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Inner dimensions of output shape must match inner dimensions of updates "
                       "shape. Output: %s updates: %s",
                       weir_shape_text(f->rank, f->dims, a), b);
  }
  if (nd_scatter_slices_fit(f)) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "The inner %lld dimensions of output.shape=%s must match the inner %lld "
                     "dimensions of updates.shape=%s",
                     (long long)inner, weir_shape_text(f->rank, f->dims, a), (long long)inner, b);
}

// The same for tensors. TensorFlow also refuses updates that no index places.
static inline weir_status_t* nd_scatter_check(const weir_tensor_t* indices,
                                              const weir_tensor_t* updates,
                                              const weir_tensor_t* out, bool is_variable) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (is_variable && out->rank < 1)
    return WEIR_STATUS(INVALID_ARGUMENT, "Output must be at least 1-D, got shape: []");
  if (indices->rank < 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Indices shape must have rank at least one. Found:%s",
                       weir_tensor_shape_text(indices, text));
  }
  bool has_any = indices->count > 0 || updates->count > 0;
  if (has_any && (out->count == 0 || indices->count == 0 || updates->count == 0))
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Indices and updates specified for empty output.  indices shape: %s",
                       weir_tensor_shape_text(indices, text));
  const nd_scatter_fit_t fit = {.indices = indices,
                                .updates = updates,
                                .rank = out->rank,
                                .dims = out->dims,
                                .outer = WEIR_MAX(indices->rank - 1, 1),
                                .depth = nd_scatter_depth(indices)};
  return is_variable ? nd_scatter_check_variable_fit(&fit) : nd_scatter_check_tensor_fit(&fit);
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
  for (int i = 0; i < 3; ++i) WEIR_TRY(weir_shape_at_least(ctx, weir_shape_input(ctx, i), 1));
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

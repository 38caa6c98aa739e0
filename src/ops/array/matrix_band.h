// matrix_band.h — Several diagonals of matrices at once, packed as the rows of a matrix: what the
// ops that read, write or make them share.
#ifndef WEIR_OPS_ARRAY_MATRIX_BAND_H_
#define WEIR_OPS_ARRAY_MATRIX_BAND_H_

#include "kernel/move/diagonals.h"
#include "ops/array/common.h"

// The diagonals [lower, upper]: 0 is the main one, positive ones are above it.
typedef struct band_t {
  int64_t lower, upper;
} band_t;

static inline int64_t band_count(band_t band) { return band.upper - band.lower + 1; }

static inline weir_status_t* check_order(band_t band) {
  if (band.lower <= band.upper) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "lower_diag_index must not be larger than upper_diag_index: %lld > %lld",
                     (long long)band.lower, (long long)band.upper);
}

// Reads k: one number, or two. Shape functions look at their order at once.
static inline weir_status_t* make_band(const array_ints_t* k, band_t* out_band) {
  if (k->count < 1 || k->count > 2) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "diag_index must have only one or two elements, received %d elements.",
                       k->count);
  }
  *out_band = (band_t){k->values[0], k->values[k->count - 1]};
  return check_order(*out_band);
}

// The same for kernels, which look at the order when they have seen the bounds.
static inline weir_status_t* read_band(const weir_tensor_t* k, band_t* out_band) {
  if (k->rank > 1) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "diag_index must be a scalar or vector, received shape: %s",
                       weir_tensor_shape_text(k, text));
  }
  if (k->count == 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "Expected diag_index to have at least 1 element");
  if (k->count > 2) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "diag_index must have only one or two elements, received %lld elements.",
                       (long long)k->count);
  }
  *out_band = (band_t){weir_tensor_int_at(k, 0), weir_tensor_int_at(k, k->count - 1)};
  return NULL;
}

// Matrices of |rows| x |columns| with the diagonals of |band| as rows of |length| elements.
typedef struct layout_t {
  band_t band;
  int64_t rows, columns, length;
  bool left_above, left_below;  // where short diagonals stand in their rows, else right
} layout_t;

// Nodes of the second version have no such attribute.
static inline void read_align(weir_attrs_t attrs, layout_t* layout) {
  layout->left_above = layout->left_below = true;
  if (!weir_attrs_find(attrs, "align")) return;
  weir_view_t align = weir_attrs_string(attrs, "align");
  layout->left_above = weir_view_is(align, "LEFT_LEFT") || weir_view_is(align, "LEFT_RIGHT");
  layout->left_below = weir_view_is(align, "LEFT_LEFT") || weir_view_is(align, "RIGHT_LEFT");
}

// The same as GPUs have it.
static inline weir_diagonals_t gpu_layout(const layout_t* l) {
  return (weir_diagonals_t){.lower = l->band.lower,
                            .upper = l->band.upper,
                            .rows = l->rows,
                            .columns = l->columns,
                            .length = l->length,
                            .left_above = l->left_above,
                            .left_below = l->left_below};
}

// Diagonal |d| in a matrix and in the packed rows: the first element's places and how many.
typedef struct diagonal_t {
  int64_t in_matrix, in_rows, length;
} diagonal_t;

static inline diagonal_t find_diagonal(const layout_t* l, int64_t d) {
  int64_t row = WEIR_MAX(-d, 0), column = WEIR_MAX(d, 0);
  int64_t length = WEIR_MIN(l->columns - column, l->rows - row);
  bool is_left = (d >= 0 && l->left_above) || (d <= 0 && l->left_below);
  return (diagonal_t){
      .in_matrix = row * l->columns + column,
      .in_rows = (l->band.upper - d) * l->length + (is_left ? 0 : l->length - length),
      .length = length};
}

// Copies all diagonals, from matrices to rows or back.
static inline weir_status_t* move_diagonals(weir_kernel_ctx_t* ctx, const layout_t* l, bool to_rows,
                                            const weir_tensor_t* src, weir_tensor_t* dst) {
  const weir_dtype_t dtype = weir_tensor_type(dst);
  const size_t size = weir_dtype_size(dtype);
  const int64_t in_matrix = l->rows * l->columns, in_rows = band_count(l->band) * l->length;
  if (src->count == 0) return NULL;
  for (int64_t d = l->band.lower; d <= l->band.upper; ++d) {
    diagonal_t at = find_diagonal(l, d);
    if (at.length <= 0) continue;
    weir_move_dim_t to[] = {{src->count / in_matrix, in_matrix, in_rows},
                            {at.length, l->columns + 1, 1}};
    weir_move_dim_t from[] = {{src->count / in_rows, in_rows, in_matrix},
                              {at.length, 1, l->columns + 1}};
    int64_t src_at = to_rows ? at.in_matrix : at.in_rows;
    int64_t dst_at = to_rows ? at.in_rows : at.in_matrix;
    WEIR_TRY(weir_move_box(weir_kernel_pool(ctx), dtype, 2, to_rows ? to : from,
                           (const char*)src->data + (size_t)src_at * size,
                           (char*)dst->data + (size_t)dst_at * size));
  }
  return NULL;
}

static inline weir_status_t* check_scalar(const weir_tensor_t* t, const char* name) {
  return t->rank == 0 ? NULL
                      : WEIR_STATUS(INVALID_ARGUMENT, "%s must be a scalar, received rank %d", name,
                                    t->rank);
}

static inline weir_status_t* check_bound(const char* name, int64_t d, int64_t rows,
                                         int64_t columns) {
  if (d == 0 || rows < 0 || columns < 0 || (-rows < d && d < columns)) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "%s is out of bound: %lld. It must be between %lld and %lld",
                     name, (long long)d, (long long)-rows, (long long)columns);
}

// The shape of the packed diagonals of matrices of |dims|.
static inline weir_status_t* part_dims(band_t band, int rank, const int64_t* dims, int* out_rank,
                                       int64_t* out_dims) {
  int64_t rows = dims[rank - 2], columns = dims[rank - 1];
  WEIR_TRY(check_bound("lower_diag_index", band.lower, rows, columns));
  WEIR_TRY(check_bound("upper_diag_index", band.upper, rows, columns));
  WEIR_TRY(check_order(band));
  int n = rank - 2;
  for (int i = 0; i < n; ++i) out_dims[i] = dims[i];
  if (band_count(band) > 1) out_dims[n++] = band_count(band);
  int64_t length = WEIR_MIN(rows + WEIR_MIN(band.upper, 0), columns - WEIR_MAX(band.lower, 0));
  out_dims[n++] = rows < 0 || columns < 0 ? -1 : length;
  *out_rank = n;
  return NULL;
}

// Of the second version's gradients too, as in TensorFlow: whose short diagonals stand elsewhere.
static inline weir_attrs_t align_attr(weir_grad_ctx_t* g, weir_named_attr_t* item) {
  *item = weir_attr_string("align", "RIGHT_LEFT");
  if (weir_attrs_find(weir_grad_attrs(g), "align")) {
    *item = weir_attr_view("align", weir_attrs_string(weir_grad_attrs(g), "align"));
  }
  return (weir_attrs_t){item, 1};
}

#define ALIGN "align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = 'RIGHT_LEFT'"
#define MATRIX_TYPES                                                                           \
  "T: bool, complex64, complex128, float, double, half, bfloat16, int8, int16, int32, int64, " \
  "uint8, uint16, uint32, uint64"
// A GPU's row has a function as state, which is how it is told where elements are.
#define BAND_KERNELS(fn, init_, host, gpu_host)                                        \
  ((const weir_kernel_def_t[]){                                                        \
      {WEIR_DEVICE_CPU, .types = MATRIX_TYPES, .compute = fn, .host_inputs = host},    \
      {WEIR_DEVICE_GPU, .types = "T: " WEIR_MOVED_TYPES, .compute = fn, .init = init_, \
       .state_size = sizeof(weir_cuda_function_t), .host_inputs = gpu_host},           \
      {0}})

#endif  // WEIR_OPS_ARRAY_MATRIX_BAND_H_

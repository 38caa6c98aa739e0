// uniform_dot.c — UniformQuantizedDot, UniformQuantizedDotHybrid: products of uniformly quantised
// matrices, and of floats that are quantised row by row.
#include "kernel/quantized/product.h"
#include "ops/quantized/uniform.h"
#include "ops/quantized/uniform_row.h"

// ---- shapes ----

static weir_status_t* product_shape(weir_shape_ctx_t* ctx, int64_t* out_columns) {
  const weir_shape_t *lhs, *rhs;
  int64_t inner;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 2, &lhs));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 2, &rhs));
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(lhs, 1), weir_shape_dim(rhs, 0), &inner));
  *out_columns = weir_shape_dim(rhs, 1);
  return weir_shape_set_dims(ctx, 0, 2, (const int64_t[]){weir_shape_dim(lhs, 0), *out_columns});
}

static weir_status_t* dot_shape(weir_shape_ctx_t* ctx) {
  int64_t columns = 0;
  WEIR_TRY(product_shape(ctx, &columns));
  WEIR_TRY(uniform_scales_shape(ctx, 2, 0, columns));
  WEIR_TRY(uniform_scales_shape(ctx, 4, 1, columns));
  return uniform_scales_shape(ctx, 6, 1, columns);
}

static weir_status_t* hybrid_shape(weir_shape_ctx_t* ctx) {
  int64_t columns = 0;
  WEIR_TRY(product_shape(ctx, &columns));
  return uniform_scales_shape(ctx, 2, 1, columns);
}

// ---- kernels ----

typedef struct state_t {
  int32_t low, high;
} state_t;

static weir_status_t* check_axis(weir_attrs_t attrs, const char* name) {
  const int64_t axis = weir_attrs_int(attrs, name);
  if (axis == 1 || axis == -1) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "%s Attr must be 1 (per-channel) or -1 (per-tensor).", name);
}

static weir_status_t* hybrid_init(const weir_kernel_init_t* init, void* state) {
  (void)state;
  return check_axis(init->node->attrs, "rhs_quantization_axis");
}

static weir_status_t* dot_init(const weir_kernel_init_t* init, void* state) {
  state_t* self = state;
  const weir_attrs_t attrs = init->node->attrs;
  WEIR_TRY(uniform_attr(attrs, "output_quantization_min_val", &self->low));
  WEIR_TRY(uniform_attr(attrs, "output_quantization_max_val", &self->high));
  if (weir_attrs_int(attrs, "lhs_quantization_axis") != -1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "lhs_quantization_axis Attr must be -1 (per-tensor).");
  }
  WEIR_TRY(check_axis(attrs, "rhs_quantization_axis"));
  return check_axis(attrs, "output_quantization_axis");
}

static weir_status_t* check_matrices(const weir_tensor_t* lhs, const weir_tensor_t* rhs) {
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  if (lhs->rank != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "lhs rank must be 2, but given lhs shape %s",
                       weir_tensor_shape_text(lhs, a));
  }
  if (rhs->rank != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "rhs rank must be 2, but given rhs shape %s",
                       weir_tensor_shape_text(rhs, a));
  }
  if (lhs->dims[1] == rhs->dims[0]) return NULL;
  return WEIR_STATUS(
      INVALID_ARGUMENT,
      "lhs.dim_size(1) and rhs.dim_size(0) must be equal, but given lhs shape %s and "
      "rhs shape %s",
      weir_tensor_shape_text(lhs, a), weir_tensor_shape_text(rhs, b));
}

// Scales and zero points of columns or of all.
static weir_status_t* check_columns(const weir_tensor_t* scales, const weir_tensor_t* zeros,
                                    int64_t columns, const char* name) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  WEIR_TRY(uniform_same_shape(scales, zeros));
  if (scales->rank > 1 || (scales->rank == 1 && scales->count != columns)) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "%s scales/zero_points must be scalars or vectors of %lld elements, but "
                       "given shape %s",
                       name, (long long)columns, weir_tensor_shape_text(scales, text));
  }
  if (uniform_are_positive(scales)) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "%s scales elements must be all positive.", name);
}

// acc[i][j] = sum of (a[i][d] - a_zero[i]) * (b[d][j] - b_zero[j]), modulo 2^32. |a_zeros| has one
// a row, or one for all.
typedef struct product_t {
  int64_t rows, columns, depth;
  const int8_t *a, *b;
  const int32_t* a_zeros;
  bool has_row_zeros;
  const weir_tensor_t* b_zeros;
  int32_t* acc;
  uint32_t* sums;  // of the columns of b
} product_t;

static void correct_rows(void* arg, int64_t begin, int64_t end) {
  const product_t* p = arg;
  for (int64_t i = begin; i < end; ++i) {
    const uint32_t zero = (uint32_t)p->a_zeros[p->has_row_zeros ? i : 0];
    uint32_t sum = 0;
    for (int64_t d = 0; d < p->depth; ++d) sum += (uint32_t)p->a[i * p->depth + d];
    const uint32_t moved = sum - (uint32_t)p->depth * zero;
    int32_t* acc = p->acc + i * p->columns;
    for (int64_t j = 0; j < p->columns; ++j) {
      const uint32_t b_zero = (uint32_t)uniform_zero(p->b_zeros, j);
      acc[j] = (int32_t)((uint32_t)acc[j] - zero * p->sums[j] - b_zero * moved);
    }
  }
}

static weir_status_t* multiply(weir_kernel_ctx_t* ctx, product_t* p) {
  weir_pool_t* pool = weir_kernel_pool(ctx);
  weir_quantized_matmul_t args = {.a = {.data = p->a, .is_signed = true},
                                  .b = {.data = p->b, .is_signed = true},
                                  .m = p->rows,
                                  .n = p->columns,
                                  .k = p->depth};
  WEIR_TRY(weir_quantized_matmul(pool, &args, p->acc));
  p->sums = weir_calloc((size_t)WEIR_MAX(p->columns, 1), sizeof(uint32_t));
  if (!p->sums) return weir_out_of_memory();
  for (int64_t d = 0; d < p->depth; ++d)
    for (int64_t j = 0; j < p->columns; ++j) p->sums[j] += (uint32_t)p->b[d * p->columns + j];
  weir_pool_for(pool, p->rows, (double)(p->depth + p->columns), correct_rows, p);
  weir_free(p->sums);
  return NULL;
}

static weir_status_t* check_dot(const weir_kernel_ctx_t* ctx) {
  const weir_tensor_t *lhs_scales = weir_kernel_input(ctx, 2),
                      *lhs_zeros = weir_kernel_input(ctx, 3),
                      *rhs_scales = weir_kernel_input(ctx, 4),
                      *out_scales = weir_kernel_input(ctx, 6);
  const int64_t columns = weir_kernel_input(ctx, 1)->dims[1];
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  if (lhs_scales->rank != 0 || lhs_zeros->rank != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "lhs scales/zero_points must be all scalar tensors. Given: %s%s",
                       weir_tensor_shape_text(lhs_scales, a), weir_tensor_shape_text(lhs_zeros, b));
  }
  WEIR_TRY(check_columns(lhs_scales, lhs_zeros, columns, "lhs"));
  WEIR_TRY(check_columns(rhs_scales, weir_kernel_input(ctx, 5), columns, "rhs"));
  WEIR_TRY(check_columns(out_scales, weir_kernel_input(ctx, 7), columns, "output"));
  if (rhs_scales->rank != 0 || out_scales->rank == 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "If rhs is per-tensor quantized, output must be also per-tensor quantized. "
                     "Given rhs scales and zero_points of shape %s but given output scales and "
                     "zero_points of shape %s",
                     weir_tensor_shape_text(rhs_scales, a), weir_tensor_shape_text(out_scales, b));
}

// Brings the sums of column |j| to the scale of the output.
static weir_status_t* finish_column(const weir_kernel_ctx_t* ctx, int64_t j, weir_tensor_t* out) {
  const state_t* self = ctx->state;
  const double scale = (double)*WEIR_TENSOR_DATA(weir_kernel_input(ctx, 2), float) *
                       (double)uniform_scale(weir_kernel_input(ctx, 4), j) /
                       (double)uniform_scale(weir_kernel_input(ctx, 6), j);
  const int32_t zero = uniform_zero(weir_kernel_input(ctx, 7), j);
  uniform_factor_t factor = {0};
  WEIR_TRY(uniform_find_factor(scale, &factor));
  int32_t* acc = out->data;
  for (int64_t i = j; i < out->count; i += out->dims[1])
    acc[i] = uniform_apply(factor, acc[i], zero, self->low, self->high);
  return NULL;
}

static weir_status_t* dot_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t *lhs = weir_kernel_input(ctx, 0), *rhs = weir_kernel_input(ctx, 1);
  weir_tensor_t* out = NULL;
  WEIR_TRY(check_matrices(lhs, rhs));
  WEIR_TRY(check_dot(ctx));
  const int64_t dims[2] = {lhs->dims[0], rhs->dims[1]};
  WEIR_TRY(weir_kernel_output(ctx, 0, 2, dims, &out));
  product_t p = {.rows = dims[0],
                 .columns = dims[1],
                 .depth = lhs->dims[1],
                 .a = lhs->data,
                 .b = rhs->data,
                 .a_zeros = weir_kernel_input(ctx, 3)->data,
                 .b_zeros = weir_kernel_input(ctx, 5),
                 .acc = out->data};
  WEIR_TRY(multiply(ctx, &p));
  for (int64_t j = 0; j < dims[1]; ++j) WEIR_TRY(finish_column(ctx, j, out));
  return NULL;
}

// ---- rows of floats ----

typedef struct hybrid_t {
  const float* x;
  int64_t depth, columns;
  int8_t* q;
  float* scales;
  int32_t* zeros;
  const weir_tensor_t* rhs_scales;
  const int32_t* acc;
  float* out;
} hybrid_t;

static void quantize_rows(void* arg, int64_t begin, int64_t end) {
  const hybrid_t* h = arg;
  for (int64_t i = begin; i < end; ++i)
    uniform_quantize_row(h->x + i * h->depth, h->depth, h->q + i * h->depth, &h->scales[i],
                         &h->zeros[i]);
}

static void finish_rows(void* arg, int64_t begin, int64_t end) {
  const hybrid_t* h = arg;
  for (int64_t i = begin; i < end; ++i) {
    for (int64_t j = 0; j < h->columns; ++j) {
      const int64_t at = i * h->columns + j;
      h->out[at] = (float)h->acc[at] * h->scales[i] * uniform_scale(h->rhs_scales, j);
    }
  }
}

static weir_status_t* run_hybrid(weir_kernel_ctx_t* ctx, hybrid_t* h, weir_tensor_t* out,
                                 int32_t* acc) {
  const int64_t rows = out->dims[0];
  weir_pool_t* pool = weir_kernel_pool(ctx);
  weir_pool_for(pool, rows, 2.0 * (double)h->depth, quantize_rows, h);
  product_t p = {.rows = rows,
                 .columns = h->columns,
                 .depth = h->depth,
                 .a = h->q,
                 .b = weir_kernel_input(ctx, 1)->data,
                 .a_zeros = h->zeros,
                 .has_row_zeros = true,
                 .b_zeros = weir_kernel_input(ctx, 3),
                 .acc = acc};
  WEIR_TRY(multiply(ctx, &p));
  h->acc = acc;
  h->out = out->data;
  weir_pool_for(pool, rows, (double)h->columns, finish_rows, h);
  return NULL;
}

static weir_status_t* hybrid_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t *lhs = weir_kernel_input(ctx, 0), *rhs = weir_kernel_input(ctx, 1);
  weir_tensor_t* out = NULL;
  WEIR_TRY(check_matrices(lhs, rhs));
  WEIR_TRY(
      check_columns(weir_kernel_input(ctx, 2), weir_kernel_input(ctx, 3), rhs->dims[1], "rhs"));
  const int64_t dims[2] = {lhs->dims[0], rhs->dims[1]};
  WEIR_TRY(weir_kernel_output(ctx, 0, 2, dims, &out));
  if (out->count == 0) return NULL;
  hybrid_t h = {.x = lhs->data,
                .depth = lhs->dims[1],
                .columns = dims[1],
                .q = weir_alloc_array((size_t)WEIR_MAX(lhs->count, 1), 1),
                .scales = weir_alloc_array((size_t)dims[0], sizeof(float)),
                .zeros = weir_alloc_array((size_t)dims[0], sizeof(int32_t)),
                .rhs_scales = weir_kernel_input(ctx, 2)};
  int32_t* acc = weir_alloc_array((size_t)out->count, sizeof(int32_t));
  weir_status_t* status =
      h.q && h.scales && h.zeros && acc ? run_hybrid(ctx, &h, out, acc) : weir_out_of_memory();
  weir_free(h.q);
  weir_free(h.scales);
  weir_free(h.zeros);
  weir_free(acc);
  return status;
}

#define RANGE(PREFIX)                                                                  \
  PREFIX "_quantization_axis: int = -1; " PREFIX "_quantization_min_val: int; " PREFIX \
         "_quantization_max_val: int"

const weir_op_module_t weir_ops_quantized_uniform_dot = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "UniformQuantizedDot",
         .summary = "Product of two uniformly quantised matrices",
         .attrs =
             "Tin: {qint8}; Tout: {qint32}; " RANGE("lhs") "; " RANGE("rhs") "; " RANGE("output"),
         .inputs = "lhs: Tin; rhs: Tin; lhs_scales: float; lhs_zero_points: int32; rhs_scales: "
                   "float; rhs_zero_points: int32; output_scales: float; output_zero_points: int32",
         .outputs = "output: Tout",
         .infer_shape = dot_shape,
         .kernels =
             WEIR_CPU_KERNEL(.compute = dot_cpu, .init = dot_init, .state_size = sizeof(state_t))},
        {.name = "UniformQuantizedDotHybrid",
         .summary = "Product of a matrix, quantised row by row, and a quantised one",
         .attrs = "Tlhs: {float}; Trhs: {qint8}; Tout: {float}; " RANGE("rhs"),
         .inputs = "lhs: Tlhs; rhs: Trhs; rhs_scales: float; rhs_zero_points: int32",
         .outputs = "output: Tout",
         .infer_shape = hybrid_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = hybrid_cpu, .init = hybrid_init,
                                    .state_size = sizeof(state_t))},
        {0}}};

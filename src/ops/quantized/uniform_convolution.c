// uniform_convolution.c — UniformQuantizedConvolution, UniformQuantizedConvolutionHybrid: over any
// number of axes, with groups, dilations and any order of dimensions.
#include "ops/quantized/uniform.h"
#include "ops/quantized/uniform_row.h"
#include "ops/quantized/uniform_window.h"

// ---- shapes ----

// |out_features|: as many as there are, -1 where that is not known.
static weir_status_t* result_shape(weir_shape_ctx_t* ctx, int64_t* out_features) {
  const weir_shape_t *lhs = weir_shape_input(ctx, 0), *rhs = weir_shape_input(ctx, 1);
  int64_t dims[WEIR_MAX_RANK];
  uniform_window_t w;
  *out_features = -1;
  WEIR_TRY(weir_shape_at_least(ctx, lhs, 2));
  WEIR_TRY(weir_shape_at_least(ctx, rhs, 2));
  WEIR_TRY(uniform_window_read(weir_shape_attrs(ctx), &w));
  if (!weir_shape_is_full(lhs) || !weir_shape_is_full(rhs)) {
    for (int i = 0; i < lhs->rank; ++i) dims[i] = -1;
    if (lhs->rank < 0) return weir_shape_set(ctx, 0, &weir_shape_unknown);
    return weir_shape_set_dims(ctx, 0, lhs->rank, dims);
  }
  WEIR_TRY(uniform_window_fit(weir_shape_attrs(ctx), &w, lhs->rank, lhs->dims, rhs->rank, rhs->dims,
                              dims));
  *out_features = dims[w.out[1]];
  return weir_shape_set_dims(ctx, 0, lhs->rank, dims);
}

static weir_status_t* conv_shape(weir_shape_ctx_t* ctx) {
  int64_t features = -1;
  WEIR_TRY(result_shape(ctx, &features));
  WEIR_TRY(uniform_scales_shape(ctx, 2, 0, features));
  WEIR_TRY(uniform_scales_shape(ctx, 4, 1, features));
  return uniform_scales_shape(ctx, 6, 1, features);
}

static weir_status_t* hybrid_shape(weir_shape_ctx_t* ctx) {
  int64_t features = -1;
  WEIR_TRY(result_shape(ctx, &features));
  return uniform_scales_shape(ctx, 2, 1, features);
}

// ---- sums ----

// Sizes and strides in the order batch, feature, axes (a filter: output and input feature, axes).
typedef struct view_t {
  int64_t size[WEIR_MAX_RANK], stride[WEIR_MAX_RANK];
} view_t;

static void set_view(view_t* v, int rank, const int64_t* dims, const int* order) {
  int64_t strides[WEIR_MAX_RANK], stride = 1;
  for (int i = rank - 1; i >= 0; --i) {
    strides[i] = stride;
    stride *= dims[i];
  }
  for (int i = 0; i < rank; ++i) {
    v->size[i] = dims[order[i]];
    v->stride[i] = strides[order[i]];
  }
}

typedef struct conv_t {
  const uniform_window_t* w;
  view_t lhs, rhs, out;
  const int8_t *x, *filter;
  const weir_tensor_t* rhs_zeros;
  const int32_t* lhs_zeros;
  bool has_batch_zeros;
  // Either: factors for each output feature, and numbers; or scales, and floats.
  const uniform_factor_t* factors;
  const weir_tensor_t* out_zeros;
  int32_t low, high;
  const float* lhs_scales;
  const weir_tensor_t* rhs_scales;
  void* y;
} conv_t;

// Where the input is that tap |k| of a window at |place| reads, along all axes; false: nowhere.
static bool find_input(const conv_t* c, const int64_t* place, const int64_t* k, int64_t* out) {
  const uniform_window_t* w = c->w;
  int64_t at = 0;
  for (int i = 0; i < w->axes; ++i) {
    const int64_t p = place[i] * w->stride[i] + k[i] * w->rhs_dilation[i] - w->before[i];
    if (p < 0 || p % w->lhs_dilation[i] != 0) return false;
    if (p / w->lhs_dilation[i] >= c->lhs.size[i + 2]) return false;
    at += p / w->lhs_dilation[i] * c->lhs.stride[i + 2];
  }
  *out = at;
  return true;
}

// The sum of input features at one tap, modulo 2^32.
static uint32_t sum_features(const conv_t* c, const int8_t* x, const int8_t* f, int32_t x_zero,
                             int32_t f_zero) {
  uint32_t sum = 0;
  for (int64_t i = 0; i < c->rhs.size[1]; ++i) {
    const uint32_t a = (uint32_t)x[i * c->lhs.stride[1]] - (uint32_t)x_zero;
    const uint32_t b = (uint32_t)f[i * c->rhs.stride[1]] - (uint32_t)f_zero;
    sum += a * b;
  }
  return sum;
}

static int32_t sum_window(const conv_t* c, int64_t batch, int64_t feature, const int64_t* place) {
  const uniform_window_t* w = c->w;
  const int64_t group = feature / (c->out.size[1] / w->feature_groups);
  const int8_t* x = c->x + batch * c->lhs.stride[0] + group * c->rhs.size[1] * c->lhs.stride[1];
  const int32_t x_zero = c->lhs_zeros[c->has_batch_zeros ? batch : 0];
  const int32_t f_zero = uniform_zero(c->rhs_zeros, feature);
  int64_t k[WEIR_MAX_RANK] = {0}, taps = 1, at;
  uint32_t sum = 0;
  for (int i = 0; i < w->axes; ++i) taps *= c->rhs.size[i + 2];
  for (int64_t t = 0; t < taps; ++t) {
    int64_t of_filter = feature * c->rhs.stride[0];
    for (int i = 0; i < w->axes; ++i) of_filter += k[i] * c->rhs.stride[i + 2];
    if (find_input(c, place, k, &at))
      sum += sum_features(c, x + at, c->filter + of_filter, x_zero, f_zero);
    for (int i = w->axes - 1; i >= 0; --i) {
      if (++k[i] < c->rhs.size[i + 2]) break;
      k[i] = 0;
    }
  }
  return (int32_t)sum;
}

static void set_element(const conv_t* c, int64_t at, int64_t batch, int64_t feature, int32_t sum) {
  if (c->factors) {
    ((int32_t*)c->y)[at] = uniform_apply(c->factors[feature], sum,
                                         uniform_zero(c->out_zeros, feature), c->low, c->high);
  } else {
    ((float*)c->y)[at] = (float)sum * c->lhs_scales[batch] * uniform_scale(c->rhs_scales, feature);
  }
}

static void run_range(void* arg, int64_t begin, int64_t end) {
  const conv_t* c = arg;
  const int rank = c->w->axes + 2;
  int64_t place[WEIR_MAX_RANK] = {0};
  for (int64_t i = begin; i < end; ++i) {
    int64_t rest = i, at = 0;
    for (int d = rank - 1; d >= 0; --d) {
      place[d] = rest % c->out.size[d];
      rest /= c->out.size[d];
      at += place[d] * c->out.stride[d];
    }
    const int64_t group = place[1] / (c->out.size[1] / c->w->batch_groups);
    const int64_t batch = group * c->out.size[0] + place[0];
    set_element(c, at, batch, place[1], sum_window(c, batch, place[1], place + 2));
  }
}

static void run(weir_kernel_ctx_t* ctx, conv_t* c, int64_t count) {
  double taps = 1;
  for (int i = 1; i < c->w->axes + 2; ++i) taps *= (double)c->rhs.size[i];
  weir_pool_for(weir_kernel_pool(ctx), count, 3 * taps + 20, run_range, c);
}

// ---- kernels ----

// Scales and zero points of output features or of all.
static weir_status_t* check_features(const weir_tensor_t* scales, const weir_tensor_t* zeros,
                                     int64_t features, const char* name) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  WEIR_TRY(uniform_same_shape(scales, zeros));
  if (scales->rank > 1 || (scales->rank == 1 && scales->count != features)) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "%s scales/zero_points must be scalars or vectors of %lld elements, but "
                       "given shape %s",
                       name, (long long)features, weir_tensor_shape_text(scales, text));
  }
  if (uniform_are_positive(scales)) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "%s scales elements must be all positive.", name);
}

static weir_status_t* start(weir_kernel_ctx_t* ctx, uniform_window_t* w, conv_t* c,
                            weir_tensor_t** out) {
  const weir_tensor_t *lhs = weir_kernel_input(ctx, 0), *rhs = weir_kernel_input(ctx, 1);
  const weir_attrs_t attrs = weir_kernel_attrs(ctx);
  int64_t dims[WEIR_MAX_RANK];
  WEIR_TRY(uniform_window_read(attrs, w));
  WEIR_TRY(uniform_window_fit(attrs, w, lhs->rank, lhs->dims, rhs->rank, rhs->dims, dims));
  WEIR_TRY(weir_kernel_output(ctx, 0, lhs->rank, dims, out));
  c->w = w;
  set_view(&c->lhs, lhs->rank, lhs->dims, w->lhs);
  set_view(&c->rhs, rhs->rank, rhs->dims, w->rhs);
  set_view(&c->out, lhs->rank, dims, w->out);
  c->filter = rhs->data;
  c->y = (*out)->data;
  return NULL;
}

// Of an output in which |c->out.size[1]| features are along dimension |axis|.
static weir_status_t* check_axis(weir_attrs_t attrs, const char* name, int axis) {
  const int64_t given = weir_attrs_int(attrs, name);
  if (given == -1 || given == axis) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "%s Attr must be -1 (per-tensor) or %d, the feature dimension, given: %lld",
                     name, axis, (long long)given);
}

// That there is a scale for each of the features, where the attribute |name| says so.
static weir_status_t* check_scales(const weir_kernel_ctx_t* ctx, const char* name, int first,
                                   int64_t features) {
  const int64_t axis = weir_attrs_int(weir_kernel_attrs(ctx), name);
  int64_t dims[WEIR_MAX_RANK];
  if (axis < 0) return NULL;
  dims[axis] = features;
  return uniform_check((int)axis + 1, dims, weir_kernel_input(ctx, first),
                       weir_kernel_input(ctx, first + 1), axis);
}

static weir_status_t* check_conv(const weir_kernel_ctx_t* ctx, const conv_t* c) {
  const weir_attrs_t attrs = weir_kernel_attrs(ctx);
  const int64_t features = c->out.size[1];
  if (weir_attrs_int(attrs, "lhs_quantization_axis") != -1)
    return WEIR_STATUS(INVALID_ARGUMENT, "lhs_quantization_axis Attr must be -1 (per-tensor).");
  WEIR_TRY(check_axis(attrs, "rhs_quantization_axis", c->w->rhs[0]));
  WEIR_TRY(check_axis(attrs, "output_quantization_axis", c->w->out[1]));
  WEIR_TRY(check_scales(ctx, "rhs_quantization_axis", 4, features));
  WEIR_TRY(check_scales(ctx, "output_quantization_axis", 6, features));
  if (weir_kernel_input(ctx, 2)->rank != 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "lhs scales/zero_points must be all scalar tensors.");
  WEIR_TRY(check_features(weir_kernel_input(ctx, 2), weir_kernel_input(ctx, 3), features, "lhs"));
  WEIR_TRY(check_features(weir_kernel_input(ctx, 4), weir_kernel_input(ctx, 5), features, "rhs"));
  WEIR_TRY(
      check_features(weir_kernel_input(ctx, 6), weir_kernel_input(ctx, 7), features, "output"));
  if (weir_kernel_input(ctx, 4)->rank != 0 || weir_kernel_input(ctx, 6)->rank == 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "If rhs is per-tensor quantized, output must be also per-tensor quantized.");
}

static weir_status_t* run_conv(weir_kernel_ctx_t* ctx, conv_t* c, int64_t count,
                               uniform_factor_t* factors) {
  const weir_attrs_t attrs = weir_kernel_attrs(ctx);
  WEIR_TRY(uniform_attr(attrs, "output_quantization_min_val", &c->low));
  WEIR_TRY(uniform_attr(attrs, "output_quantization_max_val", &c->high));
  for (int64_t i = 0; i < c->out.size[1]; ++i) {
    const double scale = (double)*WEIR_TENSOR_DATA(weir_kernel_input(ctx, 2), float) *
                         (double)uniform_scale(weir_kernel_input(ctx, 4), i) /
                         (double)uniform_scale(weir_kernel_input(ctx, 6), i);
    WEIR_TRY(uniform_find_factor(scale, &factors[i]));
  }
  c->factors = factors;
  run(ctx, c, count);
  return NULL;
}

static weir_status_t* conv_cpu(weir_kernel_ctx_t* ctx) {
  uniform_window_t w;
  conv_t c = {.x = weir_kernel_input(ctx, 0)->data,
              .lhs_zeros = weir_kernel_input(ctx, 3)->data,
              .rhs_zeros = weir_kernel_input(ctx, 5),
              .out_zeros = weir_kernel_input(ctx, 7)};
  weir_tensor_t* out = NULL;
  WEIR_TRY(start(ctx, &w, &c, &out));
  WEIR_TRY(check_conv(ctx, &c));
  uniform_factor_t* factors =
      weir_alloc_array((size_t)WEIR_MAX(c.out.size[1], 1), sizeof(*factors));
  if (!factors) return weir_out_of_memory();
  weir_status_t* status = run_conv(ctx, &c, out->count, factors);
  weir_free(factors);
  return status;
}

// The elements of each image in one row, in the order of the view, which then is a plain one.
static void gather_rows(conv_t* c, const float* x, int64_t count, float* rows) {
  const int rank = c->w->axes + 2;
  int64_t place[WEIR_MAX_RANK] = {0};
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = 0;
    for (int d = 0; d < rank; ++d) at += place[d] * c->lhs.stride[d];
    rows[i] = x[at];
    for (int d = rank - 1; d >= 0; --d) {
      if (++place[d] < c->lhs.size[d]) break;
      place[d] = 0;
    }
  }
  int64_t stride = 1;
  for (int d = rank - 1; d >= 0; --d) {
    c->lhs.stride[d] = stride;
    stride *= c->lhs.size[d];
  }
}

static weir_status_t* hybrid_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* lhs = weir_kernel_input(ctx, 0);
  uniform_window_t w;
  conv_t c = {.rhs_zeros = weir_kernel_input(ctx, 3),
              .rhs_scales = weir_kernel_input(ctx, 2),
              .has_batch_zeros = true};
  weir_tensor_t* out = NULL;
  WEIR_TRY(start(ctx, &w, &c, &out));
  WEIR_TRY(check_axis(weir_kernel_attrs(ctx), "rhs_quantization_axis", w.rhs[0]));
  WEIR_TRY(check_scales(ctx, "rhs_quantization_axis", 2, c.out.size[1]));
  WEIR_TRY(check_features(c.rhs_scales, c.rhs_zeros, c.out.size[1], "rhs"));
  if (out->count == 0) return NULL;
  const int64_t batch = c.lhs.size[0], size = batch ? lhs->count / batch : 0;
  float* rows = weir_alloc_array((size_t)WEIR_MAX(lhs->count, 1), sizeof(float));
  int8_t* q = weir_alloc_array((size_t)WEIR_MAX(lhs->count, 1), 1);
  float* scales = weir_alloc_array((size_t)WEIR_MAX(batch, 1), sizeof(float));
  int32_t* zeros = weir_alloc_array((size_t)WEIR_MAX(batch, 1), sizeof(int32_t));
  const bool has_memory = rows && q && scales && zeros;
  if (has_memory) {
    gather_rows(&c, lhs->data, lhs->count, rows);
    for (int64_t i = 0; i < batch; ++i)
      uniform_quantize_row(rows + i * size, size, q + i * size, &scales[i], &zeros[i]);
    c.x = q;
    c.lhs_scales = scales;
    c.lhs_zeros = zeros;
    run(ctx, &c, out->count);
  }
  weir_free(rows);
  weir_free(q);
  weir_free(scales);
  weir_free(zeros);
  return has_memory ? NULL : weir_out_of_memory();
}

#define WINDOW                                                                               \
  "window_strides: list(int) = []; padding: string; explicit_padding: list(int) = []; "      \
  "lhs_dilation: list(int) = []; rhs_dilation: list(int) = []; batch_group_count: int = 1; " \
  "feature_group_count: int = 1; dimension_numbers: string = ''; "
#define RANGE(PREFIX)                                                                  \
  PREFIX "_quantization_axis: int = -1; " PREFIX "_quantization_min_val: int; " PREFIX \
         "_quantization_max_val: int"

const weir_op_module_t weir_ops_quantized_uniform_convolution = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "UniformQuantizedConvolution",
         .summary = "Convolution of uniformly quantised tensors",
         .attrs = "Tin: {qint8}; Tout: {qint32}; " WINDOW RANGE("lhs") "; " RANGE("rhs") "; " RANGE(
             "output"),
         .inputs = "lhs: Tin; rhs: Tin; lhs_scales: float; lhs_zero_points: int32; rhs_scales: "
                   "float; rhs_zero_points: int32; output_scales: float; output_zero_points: int32",
         .outputs = "output: Tout",
         .infer_shape = conv_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = conv_cpu)},
        {.name = "UniformQuantizedConvolutionHybrid",
         .summary = "Convolution of floats, quantised image by image, by a quantised filter",
         .attrs = "Tlhs: {float}; Trhs: {qint8}; Tout: {float}; " WINDOW RANGE("rhs"),
         .inputs = "lhs: Tlhs; rhs: Trhs; rhs_scales: float; rhs_zero_points: int32",
         .outputs = "output: Tout",
         .infer_shape = hybrid_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = hybrid_cpu)},
        {0}}};

// hsv.c — RGBToHSV and HSVToRGB: colours as hue, saturation and value.
#include <math.h>

#include "op/grad_ctx.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"
#include "tensor/numeric.h"

static weir_status_t* color_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* in = weir_shape_input(ctx, 0);
  int64_t channels;
  WEIR_TRY(weir_shape_at_least(ctx, in, 1));
  if (in->rank > 0) WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(in, -1), 3, &channels));
  return weir_shape_set(ctx, 0, in);
}

// ---- kernels ----
typedef struct colors_t {
  const void* src;
  void* dst;
} colors_t;

#define T double
#define ACC double
#define NAME(x) x##_double
#define LOAD(x) (x)
#define STORE(x) (x)
#include "ops/image/hsv.inc"
#define T float
#define ACC float
#define NAME(x) x##_float
#define LOAD(x) (x)
#define STORE(x) (x)
#include "ops/image/hsv.inc"
#define T weir_half_t
#define ACC float
#define NAME(x) x##_half
#define LOAD(x) weir_half_to_float(x)
#define STORE(x) weir_half_from_float(x)
#include "ops/image/hsv.inc"
#define T weir_bfloat16_t
#define ACC float
#define NAME(x) x##_bfloat16
#define LOAD(x) weir_bfloat16_to_float(x)
#define STORE(x) weir_bfloat16_from_float(x)
#include "ops/image/hsv.inc"

static const weir_range_fn_t kToHsv[WEIR_DTYPE_COUNT] = {[WEIR_DTYPE_DOUBLE] = to_hsv_double,
                                                         [WEIR_DTYPE_FLOAT] = to_hsv_float,
                                                         [WEIR_DTYPE_HALF] = to_hsv_half,
                                                         [WEIR_DTYPE_BFLOAT16] = to_hsv_bfloat16};
static const weir_range_fn_t kToRgb[WEIR_DTYPE_COUNT] = {[WEIR_DTYPE_DOUBLE] = to_rgb_double,
                                                         [WEIR_DTYPE_FLOAT] = to_rgb_float,
                                                         [WEIR_DTYPE_HALF] = to_rgb_half,
                                                         [WEIR_DTYPE_BFLOAT16] = to_rgb_bfloat16};

static weir_status_t* convert(weir_kernel_ctx_t* ctx, const weir_range_fn_t* functions) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const int64_t count = in->count;
  weir_tensor_t* out = NULL;
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (in->rank < 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "input must be at least 1D%s",
                       weir_tensor_shape_text(in, text));
  }
  if (in->dims[in->rank - 1] != 3) {
    return WEIR_STATUS(FAILED_PRECONDITION,
                       "input must have 3 channels but input only has %lld channels.",
                       (long long)in->dims[in->rank - 1]);
  }
  colors_t colors = {.src = in->data};
  WEIR_TRY(weir_kernel_forward(ctx, 0, 0, in->rank, in->dims, &out));
  colors.dst = out->data;
  weir_pool_for(weir_kernel_pool(ctx), count / 3, 8.0, functions[weir_tensor_type(out)], &colors);
  return NULL;
}

static weir_status_t* to_hsv_cpu(weir_kernel_ctx_t* ctx) { return convert(ctx, kToHsv); }
static weir_status_t* to_rgb_cpu(weir_kernel_ctx_t* ctx) { return convert(ctx, kToRgb); }

// ---- gradient of RGBToHSV ----
// Everything below is of one channel: all but the last dimension, which is 1.
typedef struct slopes_t {
  weir_grad_ctx_t* g;
  weir_edge_t color[3];     // red, green, blue
  weir_edge_t is_high[3];   // 1 where it is the largest; of equal ones the first is
  weir_edge_t is_low[3];    // 1 where it is the smallest; of equal ones the last is
  weir_edge_t is_light[3];  // 1 where it is more than 0
  weir_edge_t one;
} slopes_t;

static weir_edge_t op2(slopes_t* s, const char* op, weir_edge_t a, weir_edge_t b) {
  return weir_grad_node(s->g, op, WEIR_EDGES(a, b));
}
static weir_edge_t mul(slopes_t* s, weir_edge_t a, weir_edge_t b) { return op2(s, "Mul", a, b); }
static weir_edge_t add(slopes_t* s, weir_edge_t a, weir_edge_t b) { return op2(s, "AddV2", a, b); }
static weir_edge_t sub(slopes_t* s, weir_edge_t a, weir_edge_t b) { return op2(s, "Sub", a, b); }
static weir_edge_t square(slopes_t* s, weir_edge_t a) { return mul(s, a, a); }
// 1 / |a|, and 0 for 0.
static weir_edge_t inverse(slopes_t* s, weir_edge_t a) { return op2(s, "DivNoNan", s->one, a); }

static weir_edge_t mask(slopes_t* s, weir_edge_t flags) {
  return weir_grad_node_with(
      s->g, "Cast", WEIR_EDGES(flags),
      WEIR_ATTRS(weir_attr_type("DstT", weir_grad_dtype(s->g, s->color[0]))));
}

// Whether color |i| beats the other two: |strict| where they come before it, else |equal|.
static weir_edge_t beats(slopes_t* s, int i, const char* strict, const char* equal) {
  weir_edge_t both[2];
  int n = 0;
  for (int k = 0; k < 3; ++k) {
    if (k != i) both[n++] = op2(s, k < i ? strict : equal, s->color[i], s->color[k]);
  }
  return mask(s, op2(s, "LogicalAnd", both[0], both[1]));
}

static void split(slopes_t* s, weir_edge_t colors, weir_edge_t* parts) {
  weir_edge_t first =
      weir_grad_node_with(s->g, "Split", WEIR_EDGES(weir_build_int32(s->g->builder, -1), colors),
                          WEIR_ATTRS(weir_attr_int("num_split", 3)));
  for (int i = 0; i < 3; ++i) parts[i] = weir_build_output(first, i);
}

static slopes_t make_slopes(weir_grad_ctx_t* g) {
  slopes_t s = {.g = g, .one = weir_grad_scalar(g, weir_grad_input(g, 0), 1)};
  split(&s, weir_grad_input(g, 0), s.color);
  weir_edge_t zero = weir_grad_scalar(g, weir_grad_input(g, 0), 0);
  for (int i = 0; i < 3; ++i) {
    s.is_high[i] = beats(&s, i, "Greater", "GreaterEqual");
    s.is_low[i] = beats(&s, i, "LessEqual", "Less");
    s.is_light[i] = mask(&s, op2(&s, "Greater", s.color[i], zero));
  }
  return s;
}

// Saturation is 1 - low / high: low / high^2 for the highest color, -1 / high for the lowest.
static weir_edge_t saturation_slope(slopes_t* s, int i) {
  const int n = (i + 1) % 3, p = (i + 2) % 3;
  weir_edge_t low = add(s, mul(s, s->is_low[n], s->color[n]), mul(s, s->is_low[p], s->color[p]));
  weir_edge_t high = add(s, mul(s, s->is_high[n], s->color[n]), mul(s, s->is_high[p], s->color[p]));
  weir_edge_t up = mul(s, mul(s, s->is_high[i], low), inverse(s, square(s, s->color[i])));
  weir_edge_t down = mul(s, s->is_low[i], inverse(s, high));
  return mul(s, s->is_light[i], sub(s, up, down));
}

// Of the hue where |top|, another color than |i|, is the highest: a slope of |i| as the lowest and
// one as the middle, where |other| is the lowest.
static weir_edge_t hue_under(slopes_t* s, int i, int top, int other, weir_edge_t gap) {
  weir_edge_t as_low =
      mul(s, mul(s, s->is_low[i], gap), inverse(s, square(s, sub(s, s->color[i], s->color[top]))));
  weir_edge_t as_middle = mul(s, s->is_low[other], inverse(s, gap));
  return mul(s, mul(s, s->is_light[top], s->is_high[top]), add(s, as_low, as_middle));
}

static weir_edge_t hue_slope(slopes_t* s, int i, weir_edge_t range) {
  const int n = (i + 1) % 3, p = (i + 2) % 3;
  weir_edge_t gap = sub(s, s->color[p], s->color[n]);
  weir_edge_t as_high =
      mul(s, mul(s, s->is_light[i], s->is_high[i]), mul(s, gap, inverse(s, square(s, range))));
  weir_edge_t under = add(s, hue_under(s, i, n, p, gap), hue_under(s, i, p, n, gap));
  return mul(s, weir_grad_scalar(s->g, s->color[0], 1.0 / 6.0), add(s, as_high, under));
}

static weir_status_t* to_hsv_grad(weir_grad_ctx_t* g) {
  slopes_t s = make_slopes(g);
  weir_edge_t hsv[3], dy[3], dx[3];
  split(&s, weir_grad_output(g, 0), hsv);
  split(&s, weir_grad_dy(g, 0), dy);
  weir_edge_t range = mul(&s, hsv[1], hsv[2]);
  for (int i = 0; i < 3; ++i) {
    weir_edge_t hue = mul(&s, dy[0], hue_slope(&s, i, range));
    weir_edge_t saturation = mul(&s, dy[1], saturation_slope(&s, i));
    dx[i] = add(&s, add(&s, mul(&s, dy[2], s.is_high[i]), saturation), hue);
  }
  weir_edges_t parts = WEIR_EDGES(dx[0], dx[1], dx[2], weir_build_int32(g->builder, -1));
  return weir_grad_set(
      g, 0, weir_grad_node_with(g, "ConcatV2", parts, WEIR_ATTRS(weir_attr_int("N", 3))));
}

#define COLOR_ATTRS "T: {half, bfloat16, float, double} = DT_FLOAT"

const weir_op_module_t weir_ops_image_hsv = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "RGBToHSV",
         .summary = "Colours as hue, saturation and value",
         .attrs = COLOR_ATTRS,
         .inputs = "images: T",
         .outputs = "output: T",
         .infer_shape = color_shape,
         .build_grad = to_hsv_grad,
         .kernels = WEIR_CPU_KERNEL(.compute = to_hsv_cpu)},
        {.name = "HSVToRGB",
         .summary = "Colours of hue, saturation and value as red, green and blue",
         .attrs = COLOR_ATTRS,
         .inputs = "images: T",
         .outputs = "output: T",
         .flags = WEIR_OP_NO_GRADIENT,
         .infer_shape = color_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = to_rgb_cpu)},
        {0}}};

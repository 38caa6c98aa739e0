// dilation2d.c — Greyscale dilation and its gradients, for every real type.
#include "kernel/pool/dilation2d.h"

#include <float.h>

#include "tensor/numeric.h"

typedef struct job_t {
  const weir_dilation2d_t* geo;
  const void *in, *filter, *dy;
  void* out;
} job_t;

// Where the window of one output pixel lies, maybe in part outside of the image.
typedef struct window_t {
  int64_t image, top, left;
} window_t;

typedef struct winner_t {
  int64_t in, filter;
} winner_t;

static inline window_t window_at(const weir_dilation2d_t* g, int64_t pixel) {
  int64_t line = pixel / g->out_w, image = line / g->out_h;
  return (window_t){.image = image,
                    .top = (line - image * g->out_h) * g->stride_h - g->pad_top,
                    .left = (pixel - line * g->out_w) * g->stride_w - g->pad_left};
}

#define LOAD(t) (t)
#define STORE(v) (v)
#define SUM(a, b) ((a) + (b))
#define T float
#define V float
#define NAME(x) x##_float
#define LOWEST -FLT_MAX
#include "kernel/pool/dilation2d.inc"
#define T double
#define V double
#define NAME(x) x##_double
#define LOWEST -DBL_MAX
#include "kernel/pool/dilation2d.inc"
#undef SUM
// Integers wrap.
#define SUM(a, b) ((V)((uint64_t)(a) + (uint64_t)(b)))
#define T int8_t
#define V int8_t
#define NAME(x) x##_int8
#define LOWEST INT8_MIN
#include "kernel/pool/dilation2d.inc"
#define T int16_t
#define V int16_t
#define NAME(x) x##_int16
#define LOWEST INT16_MIN
#include "kernel/pool/dilation2d.inc"
#define T int32_t
#define V int32_t
#define NAME(x) x##_int32
#define LOWEST INT32_MIN
#include "kernel/pool/dilation2d.inc"
#define T int64_t
#define V int64_t
#define NAME(x) x##_int64
#define LOWEST INT64_MIN
#include "kernel/pool/dilation2d.inc"
#define T uint8_t
#define V uint8_t
#define NAME(x) x##_uint8
#define LOWEST 0
#include "kernel/pool/dilation2d.inc"
#define T uint16_t
#define V uint16_t
#define NAME(x) x##_uint16
#define LOWEST 0
#include "kernel/pool/dilation2d.inc"
#define T uint32_t
#define V uint32_t
#define NAME(x) x##_uint32
#define LOWEST 0
#include "kernel/pool/dilation2d.inc"
#define T uint64_t
#define V uint64_t
#define NAME(x) x##_uint64
#define LOWEST 0
#include "kernel/pool/dilation2d.inc"
#undef LOAD
#undef STORE
#undef SUM
#define LOAD(t) weir_half_to_float(t)
#define STORE(v) weir_half_from_float(v)
#define SUM(a, b) LOAD(STORE((a) + (b)))
#define T weir_half_t
#define V float
#define NAME(x) x##_half
#define LOWEST -65504.0f
#include "kernel/pool/dilation2d.inc"
#undef LOAD
#undef STORE
#define LOAD(t) weir_bfloat16_to_float(t)
#define STORE(v) weir_bfloat16_from_float(v)
#define T weir_bfloat16_t
#define V float
#define NAME(x) x##_bfloat16
#define LOWEST -0x1.fep127f
#include "kernel/pool/dilation2d.inc"

typedef struct type_t {
  size_t size;
  weir_range_fn_t forward, input, filter;
} type_t;

#define TYPE(dtype, c_type, name) \
  [WEIR_DTYPE_##dtype] = {sizeof(c_type), forward_##name, input_##name, filter_##name}

static const type_t types[WEIR_DTYPE_COUNT] = {
    TYPE(FLOAT, float, float),      TYPE(DOUBLE, double, double),
    TYPE(HALF, weir_half_t, half),  TYPE(BFLOAT16, weir_bfloat16_t, bfloat16),
    TYPE(INT8, int8_t, int8),       TYPE(INT16, int16_t, int16),
    TYPE(INT32, int32_t, int32),    TYPE(INT64, int64_t, int64),
    TYPE(UINT8, uint8_t, uint8),    TYPE(UINT16, uint16_t, uint16),
    TYPE(UINT32, uint32_t, uint32), TYPE(UINT64, uint64_t, uint64),
};

static const type_t* type_of(weir_dtype_t dtype) {
  WEIR_CHECK(types[dtype].size > 0);
  return &types[dtype];
}

static double pixel_cost_ns(const weir_dilation2d_t* g) {
  return (double)(g->filter_h * g->filter_w) * (double)g->depth;
}

void weir_dilation2d_forward(weir_pool_t* pool, weir_dtype_t dtype, const weir_dilation2d_t* geo,
                             const void* in, const void* filter, void* out) {
  job_t job = {.geo = geo, .in = in, .filter = filter, .out = out};
  weir_pool_for(pool, geo->batch * geo->out_h * geo->out_w, pixel_cost_ns(geo),
                type_of(dtype)->forward, &job);
}

void weir_dilation2d_backprop_input(weir_pool_t* pool, weir_dtype_t dtype,
                                    const weir_dilation2d_t* geo, const void* in,
                                    const void* filter, const void* dy, void* dx) {
  job_t job = {.geo = geo, .in = in, .filter = filter, .dy = dy, .out = dx};
  double cost_ns = pixel_cost_ns(geo) * (double)(geo->out_h * geo->out_w);
  weir_pool_for(pool, geo->batch, cost_ns, type_of(dtype)->input, &job);
}

void weir_dilation2d_backprop_filter(weir_pool_t* pool, weir_dtype_t dtype,
                                     const weir_dilation2d_t* geo, const void* in,
                                     const void* filter, const void* dy, void* dw) {
  const type_t* type = type_of(dtype);
  job_t job = {.geo = geo, .in = in, .filter = filter, .dy = dy, .out = dw};
  memset(dw, 0, (size_t)(geo->filter_h * geo->filter_w * geo->depth) * type->size);
  double cost_ns =
      (double)(geo->filter_h * geo->filter_w) * (double)(geo->batch * geo->out_h * geo->out_w);
  weir_pool_for(pool, geo->depth, cost_ns, type->filter, &job);
}

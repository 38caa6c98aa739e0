// bias.c — Adding a vector along one dimension, and its gradient.
#include "kernel/nn/bias.h"

#include "base/alloc.h"
#include "kernel/simd.h"
#include "tensor/numeric.h"
#include "tensor/tensor.h"

weir_status_t* weir_bias_check(weir_shape_view_t x, weir_shape_view_t bias, int axis) {
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  if (x.rank < 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Input tensor must be at least 2D: %s",
                       weir_shape_text(x.rank, x.dims, a));
  }
  if (bias.rank != 1)
    return WEIR_STATUS(INVALID_ARGUMENT, "Biases must be 1D: %s",
                       weir_shape_text(bias.rank, bias.dims, a));
  if (bias.dims[0] == x.dims[axis < 0 ? x.rank - 1 : axis]) return NULL;
  return WEIR_STATUS(
      INVALID_ARGUMENT,
      "Must provide as many biases as the channel dimension of the input tensor: %s vs. %s",
      weir_shape_text(bias.rank, bias.dims, a), weir_shape_text(x.rank, x.dims, b));
}

enum {
  STRETCH = 128,  // rows summed before the sum is added to the whole
  LANES = 16,
  PIECES = 16,                // at most so many
  PIECE_ELEMENTS = 16 << 10,  // at least so many elements each
  TILE = 64,                  // at least so many channels each
};

typedef struct job_t {
  weir_bias_t shape;
  const void* x;
  const void* bias;
  void* y;
  void* partial;   // per block: the sum and the sum of the stretch at hand
  int64_t blocks;  // of rows
  int64_t tiles;   // of channels
} job_t;

#define T float
#define ACC float
#define LOAD(v) (v)
#define STORE(v) (v)
#define NAME(x) x##_float
#include "kernel/nn/bias.inc"
#define T double
#define ACC double
#define LOAD(v) (v)
#define STORE(v) (v)
#define NAME(x) x##_double
#include "kernel/nn/bias.inc"
#define T weir_half_t
#define ACC float
#define LOAD(v) weir_half_to_float(v)
#define STORE(v) weir_half_from_float(v)
#define NAME(x) x##_half
#include "kernel/nn/bias.inc"
#define T weir_bfloat16_t
#define ACC float
#define LOAD(v) weir_bfloat16_to_float(v)
#define STORE(v) weir_bfloat16_from_float(v)
#define NAME(x) x##_bfloat16
#include "kernel/nn/bias.inc"
// Integers wrap: signed ones are summed as their unsigned twins.
#define T uint8_t
#define ACC uint8_t
#define LOAD(v) (v)
#define STORE(v) (uint8_t)(v)
#define NAME(x) x##_uint8
#include "kernel/nn/bias.inc"
#define T uint16_t
#define ACC uint16_t
#define LOAD(v) (v)
#define STORE(v) (uint16_t)(v)
#define NAME(x) x##_uint16
#include "kernel/nn/bias.inc"
#define T uint32_t
#define ACC uint32_t
#define LOAD(v) (v)
#define STORE(v) (v)
#define NAME(x) x##_uint32
#include "kernel/nn/bias.inc"
#define T uint64_t
#define ACC uint64_t
#define LOAD(v) (v)
#define STORE(v) (v)
#define NAME(x) x##_uint64
#include "kernel/nn/bias.inc"
#define T weir_complex64_t
#define ACC weir_complex64_t
#define LOAD(v) (v)
#define STORE(v) (v)
#define NAME(x) x##_complex64
#include "kernel/nn/bias.inc"
#define T weir_complex128_t
#define ACC weir_complex128_t
#define LOAD(v) (v)
#define STORE(v) (v)
#define NAME(x) x##_complex128
#include "kernel/nn/bias.inc"

typedef struct type_t {
  weir_range_fn_t add_rows, sum_row_blocks, sum_channels;
  void (*sum_finish)(const job_t* job);
  size_t sum_size;
} type_t;

static const type_t* type_of(weir_dtype_t dtype) {
#define ROW(DTYPE, t, acc) \
  [WEIR_DTYPE_##DTYPE] = { \
    add_rows_##t,          \
    sum_row_blocks_##t,    \
    sum_channels_##t,      \
    sum_finish_##t,        \
    sizeof(acc)            \
  }
  static const type_t types[WEIR_DTYPE_COUNT] = {
      ROW(FLOAT, float, float),
      ROW(DOUBLE, double, double),
      ROW(HALF, half, float),
      ROW(BFLOAT16, bfloat16, float),
      ROW(INT8, uint8, uint8_t),
      ROW(UINT8, uint8, uint8_t),
      ROW(INT16, uint16, uint16_t),
      ROW(UINT16, uint16, uint16_t),
      ROW(INT32, uint32, uint32_t),
      ROW(UINT32, uint32, uint32_t),
      ROW(INT64, uint64, uint64_t),
      ROW(UINT64, uint64, uint64_t),
      ROW(COMPLEX64, complex64, weir_complex64_t),
      ROW(COMPLEX128, complex128, weir_complex128_t),
  };
#undef ROW
  WEIR_CHECK(types[dtype].add_rows);
  return &types[dtype];
}

void weir_bias_add(weir_pool_t* pool, weir_dtype_t dtype, const weir_bias_t* shape, const void* x,
                   const void* bias, void* y) {
  job_t job = {.shape = *shape, .x = x, .bias = bias, .y = y};
  if (shape->outer * shape->channels * shape->inner == 0) return;
  int64_t rows = shape->inner == 1 ? shape->outer : shape->outer * shape->channels;
  double cost_ns = 0.4 * (double)(shape->inner == 1 ? shape->channels : shape->inner);
  weir_pool_for(pool, rows, cost_ns, type_of(dtype)->add_rows, &job);
}

weir_status_t* weir_bias_sum(weir_pool_t* pool, weir_dtype_t dtype, const weir_bias_t* shape,
                             const void* x, void* bias) {
  const type_t* type = type_of(dtype);
  job_t job = {.shape = *shape, .x = x, .y = bias};
  if (shape->channels == 0) return NULL;
  int64_t count = shape->outer * shape->channels * shape->inner;
  if (shape->inner != 1 && count > 0) {
    weir_pool_for(pool, shape->channels, 0.3 * (double)(shape->outer * shape->inner),
                  type->sum_channels, &job);
    return NULL;
  }
  // By rows only where there are several stretches: one is summed in order, as in TensorFlow.
  int64_t pieces = WEIR_MAX(WEIR_MIN(PIECES, count / PIECE_ELEMENTS), 1);
  job.blocks = WEIR_MAX(WEIR_MIN(pieces, shape->outer / STRETCH), 1);
  job.tiles = WEIR_MAX(WEIR_MIN(pieces / job.blocks, shape->channels / TILE), 1);
  if (count == 0) job.shape.outer = 0;  // nothing to read, also where inner is 0
  job.partial = weir_alloc_array((size_t)(2 * job.blocks * shape->channels), type->sum_size);
  if (!job.partial) return weir_out_of_memory();
  int64_t items = job.blocks * job.tiles;
  weir_pool_for(pool, items, 0.3 * (double)count / (double)items, type->sum_row_blocks, &job);
  type->sum_finish(&job);
  weir_free(job.partial);
  return NULL;
}

// resize_bilinear.c — QuantizedResizeBilinear: quantised images of another size, in fixed point.
#include <math.h>

#include "ops/quantized/common.h"

static weir_status_t* resize_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t *images, *size, *sizes;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 4, &images));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, &size));
  if (weir_shape_dim(size, 0) >= 0 && weir_shape_dim(size, 0) != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Dimension must be 2 but is %lld",
                       (long long)weir_shape_dim(size, 0));
  }
  int64_t dims[4] = {weir_shape_dim(images, 0), -1, -1, weir_shape_dim(images, 3)};
  WEIR_TRY(weir_shape_from_value(ctx, 1, &sizes));
  for (int i = 0; i < 2 && sizes->rank == 2; ++i) dims[1 + i] = sizes->dims[i];
  WEIR_TRY(weir_shape_set_dims(ctx, 0, 4, dims));
  return quantized_bounds_shape(ctx, 2, 3);
}

// Between which two of the old places a new one is, and how far on.
typedef struct spot_t {
  int64_t lower, upper;
  float weight;
} spot_t;

static void fill_spots(weir_attrs_t attrs, int64_t in, int64_t out, spot_t* spots) {
  const bool is_aligned = weir_attrs_bool(attrs, "align_corners") && out > 1;
  const bool has_half_pixels = weir_attrs_bool(attrs, "half_pixel_centers");
  const float scale = is_aligned ? (float)(in - 1) / (float)(out - 1) : (float)in / (float)out;
  for (int64_t i = 0; i < out; ++i) {
    const float at = has_half_pixels ? ((float)i + 0.5f) * scale - 0.5f : (float)i * scale;
    const float below = floorf(at);
    spots[i].upper = WEIR_MIN((int64_t)ceilf(at), in - 1);
    spots[i].lower = WEIR_MIN(WEIR_MAX((int64_t)below, 0), in - 1);
    spots[i].weight = at - below;
  }
}

typedef struct job_t {
  weir_dtype_t dtype;
  int64_t in_h, in_w, out_h, out_w, depth;
  const spot_t *rows, *columns;
  const void* x;
  void* y;
} job_t;

// Four numbers around a place, weighed by whole numbers of 2^-bits; quotients round to zero.
WEIR_INLINE int64_t weigh(const int64_t v[4], int64_t x, int64_t y, int bits) {
  const int64_t one = (int64_t)1 << bits;
  const int64_t top = v[0] * one + (v[1] - v[0]) * x;
  const int64_t bottom = v[2] * one + (v[3] - v[2]) * x;
  const int64_t out = top + (bottom - top) / one * y;
  return (out + one / 2) / one;
}

// The pixel (row, x): all its channels.
static void resize_pixel(const job_t* job, const int64_t from[4], const spot_t* row,
                         const spot_t* column, int64_t to) {
  const float x = column->weight, y = row->weight;
  for (int64_t c = 0; c < job->depth; ++c) {
    if (job->dtype == WEIR_DTYPE_FLOAT) {
      const float* in = (const float*)job->x + c;
      const float top = in[from[0]] + (in[from[1]] - in[from[0]]) * x;
      const float bottom = in[from[2]] + (in[from[3]] - in[from[2]]) * x;
      ((float*)job->y)[to + c] = top + (bottom - top) * y;
    } else if (job->dtype == WEIR_DTYPE_QUINT8) {
      const uint8_t* in = (const uint8_t*)job->x + c;
      const int64_t v[4] = {in[from[0]], in[from[1]], in[from[2]], in[from[3]]};
      ((uint8_t*)job->y)[to + c] =
          (uint8_t)weigh(v, (int64_t)(x * 128.0f), (int64_t)(y * 128.0f), 7);
    } else {
      const int32_t* in = (const int32_t*)job->x + c;
      int64_t v[4];
      for (int i = 0; i < 4; ++i) v[i] = (int64_t)(float)in[from[i]];  // as TensorFlow reads them
      ((int32_t*)job->y)[to + c] =
          (int32_t)weigh(v, (int64_t)(x * 0x1p30f), (int64_t)(y * 0x1p30f), 30);
    }
  }
}

static void resize_rows(void* arg, int64_t begin, int64_t end) {
  const job_t* job = arg;
  for (int64_t i = begin; i < end; ++i) {
    const spot_t* row = &job->rows[i % job->out_h];
    const int64_t image = i / job->out_h * job->in_h;
    const int64_t top = (image + row->lower) * job->in_w, bottom = (image + row->upper) * job->in_w;
    for (int64_t k = 0; k < job->out_w; ++k) {
      const spot_t* column = &job->columns[k];
      const int64_t from[4] = {
          (top + column->lower) * job->depth, (top + column->upper) * job->depth,
          (bottom + column->lower) * job->depth, (bottom + column->upper) * job->depth};
      resize_pixel(job, from, row, column, (i * job->out_w + k) * job->depth);
    }
  }
}

static weir_status_t* check_inputs(const weir_kernel_ctx_t* ctx, int64_t* sizes) {
  const weir_tensor_t *in = weir_kernel_input(ctx, 0), *size = weir_kernel_input(ctx, 1);
  char text[WEIR_SHAPE_TEXT_SIZE];
  for (int i = 2; i < 4; ++i) {
    if (weir_kernel_input(ctx, i)->rank == 0) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "%s must be a scalar", i == 2 ? "min" : "max");
  }
  if (in->rank != 4) {
    return WEIR_STATUS(INVALID_ARGUMENT, "input must be 4-dimensional%s",
                       weir_tensor_shape_text(in, text));
  }
  if (size->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "shape_t must be 1-dimensional%s",
                       weir_tensor_shape_text(size, text));
  }
  if (size->count != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "shape_t must have two elements%s",
                       weir_tensor_shape_text(size, text));
  }
  for (int i = 0; i < 2; ++i) sizes[i] = weir_tensor_int_at(size, i);
  if (sizes[0] <= 0 || sizes[1] <= 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "output dimensions must be positive");
  if (in->dims[3] <= 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "image must have at least one channel");
  if (in->dims[1] <= 0 || in->dims[2] <= 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "input image must be of non-zero size");
  return NULL;
}

static weir_status_t* run(weir_kernel_ctx_t* ctx, job_t* job, int64_t batch) {
  spot_t* spots = weir_alloc_array((size_t)job->out_h + (size_t)job->out_w, sizeof(spot_t));
  if (!spots) return weir_out_of_memory();
  fill_spots(weir_kernel_attrs(ctx), job->in_h, job->out_h, spots);
  fill_spots(weir_kernel_attrs(ctx), job->in_w, job->out_w, spots + job->out_h);
  job->rows = spots;
  job->columns = spots + job->out_h;
  weir_pool_for(weir_kernel_pool(ctx), batch * job->out_h, 4.0 * (double)(job->out_w * job->depth),
                resize_rows, job);
  weir_free(spots);
  return NULL;
}

static weir_status_t* resize_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  int64_t sizes[2] = {0, 0};
  weir_tensor_t* out = NULL;
  WEIR_TRY(check_inputs(ctx, sizes));
  const int64_t dims[4] = {in->dims[0], sizes[0], sizes[1], in->dims[3]};
  WEIR_TRY(weir_kernel_output(ctx, 0, 4, dims, &out));
  job_t job = {.dtype = weir_tensor_type(in),
               .in_h = in->dims[1],
               .in_w = in->dims[2],
               .out_h = sizes[0],
               .out_w = sizes[1],
               .depth = in->dims[3],
               .x = in->data,
               .y = out->data};
  const bool is_same = job.in_h == job.out_h && job.in_w == job.out_w;
  if (out->count > 0 && is_same) memcpy(out->data, in->data, weir_tensor_byte_size(in));
  if (out->count > 0 && !is_same) WEIR_TRY(run(ctx, &job, in->dims[0]));
  return quantized_set_bounds(ctx, *WEIR_TENSOR_DATA(weir_kernel_input(ctx, 2), float),
                              *WEIR_TENSOR_DATA(weir_kernel_input(ctx, 3), float));
}

const weir_op_module_t weir_ops_quantized_resize_bilinear = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "QuantizedResizeBilinear",
         .summary = "Quantised images of another size, interpolated along both axes",
         .attrs = "T: {quint8, qint32, float}; align_corners: bool = false; half_pixel_centers: "
                  "bool = false",
         .inputs = "images: T; size: int32; min: float; max: float",
         .outputs = "resized_images: T; out_min: float; out_max: float",
         .infer_shape = resize_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = resize_cpu, .host_inputs = "size")},
        {0}}};

// resize_area.c — ResizeArea: images resized by the mean over the area of each pixel.
#include <math.h>

#include "kernel/image/resample.h"
#include "ops/image/resize.h"

// How much of the cell [cell, cell + 1) is in [begin, end), which is |scale| long.
static float part_inside(int64_t cell, float begin, float end, float scale) {
  const bool ends_inside = (float)(cell + 1) > end;
  if ((float)cell < begin) return ends_inside ? scale : (float)(cell + 1) - begin;
  return ends_inside ? end - (float)cell : 1.0f;
}

// The cells that an element covers. With align_corners an axis of one cell has a scale of 0: all
// there is, is that cell.
static weir_status_t* add_element(float scale, int64_t i, weir_taps_t* taps) {
  if (scale == 0) return weir_taps_add(taps, 0, 1.0f);
  const float begin = (float)i * scale, end = (float)(i + 1) * scale;
  const int64_t last = (int64_t)ceilf(end) - 1;
  for (int64_t cell = (int64_t)floorf(begin); cell <= last; ++cell) {
    const float part = part_inside(cell, begin, end, scale);
    WEIR_TRY(weir_taps_add(taps, WEIR_MIN(cell, taps->in - 1), part / scale));
  }
  return NULL;
}

static weir_status_t* add_taps(const weir_resize_options_t* options, weir_taps_t* taps) {
  const float scale = weir_resize_scale(options, taps->in, taps->out);
  for (int64_t i = 0; i < taps->out; ++i) {
    WEIR_TRY(add_element(scale, i, taps));
    weir_taps_next(taps);
  }
  return NULL;
}

static weir_status_t* make_taps(const weir_resize_sizes_t* s, weir_taps_t* rows,
                                weir_taps_t* columns) {
  WEIR_TRY(weir_taps_init(rows, s->image_h, s->out_h));
  WEIR_TRY(weir_taps_init(columns, s->image_w, s->out_w));
  WEIR_TRY(add_taps(&s->options, rows));
  return add_taps(&s->options, columns);
}

static weir_status_t* area_cpu(weir_kernel_ctx_t* ctx) {
  weir_resize_sizes_t s = {0};
  weir_tensor_t *out = NULL, *scratch = NULL;
  weir_taps_t rows = {0}, columns = {0};
  WEIR_TRY(weir_resize_read(ctx, &s));
  WEIR_TRY(weir_kernel_output(ctx, 0, 4, (int64_t[]){s.batch, s.out_h, s.out_w, s.channels}, &out));
  if (out->count == 0) return NULL;
  weir_resample_t r = {.rows = &rows,
                       .columns = &columns,
                       .batch = s.batch,
                       .channels = s.channels,
                       .dst = out->data,
                       .dtype = WEIR_DTYPE_FLOAT};
  weir_status_t* status = make_taps(&s, &rows, &columns);
  if (!status) status = weir_resize_as_floats(ctx, weir_kernel_input(ctx, 0), &scratch, &r.src);
  if (!status) status = weir_resample(weir_kernel_pool(ctx), &r);
  weir_tensor_release(scratch);
  weir_taps_free(&rows);
  weir_taps_free(&columns);
  return status;
}

const weir_op_module_t weir_ops_image_resize_area = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ResizeArea",
         .summary = "Resizes images by the mean over the area of each pixel",
         .attrs = "T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}; "
                  "align_corners: bool = false",
         .inputs = "images: T; size: int32",
         .outputs = "resized_images: float",
         .infer_shape = weir_resize_shape,
         .kernels =
             WEIR_CPU_KERNEL(.compute = area_cpu, .init = weir_resize_init,
                             .state_size = sizeof(weir_resize_options_t), .host_inputs = "size")},
        {0}}};

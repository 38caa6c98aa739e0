// decode.c — The bytes of an image file to the output of a node, by format.
#include "ops/image/decode.h"

#include "image/bmp.h"
#include "image/gif.h"
#include "image/jxl.h"
#include "image/png.h"
#include "image/webp.h"

// ---- outputs ----

// Allocates |frames| images; of one, where nothing else is said, the first dimension is left out.
static weir_status_t* make_output(weir_kernel_ctx_t* ctx, bool has_frames, const int64_t* dims,
                                  weir_tensor_t** out) {
  return weir_kernel_output(ctx, 0, has_frames ? 4 : 3, has_frames ? dims : dims + 1, out);
}

// Bytes in front of a tensor of wider elements, to those.
static void widen(weir_tensor_t* tensor) {
  const uint8_t* from = tensor->data;
  const float scale = 1.0f / 255.0f;
  if (tensor->dtype == WEIR_DTYPE_UINT16) {
    uint16_t* to = tensor->data;
    for (int64_t i = tensor->count - 1; i >= 0; --i) to[i] = (uint16_t)(from[i] << 8);
  } else if (tensor->dtype == WEIR_DTYPE_FLOAT) {
    float* to = tensor->data;
    for (int64_t i = tensor->count - 1; i >= 0; --i) to[i] = (float)from[i] * scale;
  }
}

// The same of 16-bit numbers in front of floats.
static void widen_words(weir_tensor_t* tensor) {
  const uint16_t* from = tensor->data;
  float* to = tensor->data;
  const float scale = 1.0f / 65535.0f;
  for (int64_t i = tensor->count - 1; i >= 0; --i) to[i] = (float)from[i] * scale;
}

// ---- formats ----

static weir_status_t* refuse(const weir_kernel_ctx_t* ctx, const char* format) {
  const weir_decode_t* d = ctx->state;
  if (d->kind == WEIR_DECODE_CROP) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "DecodeAndCropJpeg operation can run on JPEG only, but detected %s.",
                       format);
  }
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Trying to decode %s format using a wrong op. Use `decode_image` instead. Op "
                     "used: %s",
                     format, ctx->node->op->name);
}

static weir_status_t* read_window(const weir_kernel_ctx_t* ctx, weir_jpeg_options_t* options) {
  const weir_tensor_t* window = weir_kernel_input(ctx, 1);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (window->rank != 1 || window->count != 4) {
    return WEIR_STATUS(INVALID_ARGUMENT, "crop_window must be 1-D of four elements, got shape %s",
                       weir_tensor_shape_text(window, text));
  }
  options->crop_y = weir_tensor_int_at(window, 0), options->crop_x = weir_tensor_int_at(window, 1);
  options->crop_height = weir_tensor_int_at(window, 2);
  options->crop_width = weir_tensor_int_at(window, 3);
  return NULL;
}

static weir_status_t* decode_jpeg(weir_kernel_ctx_t* ctx, weir_view_t contents) {
  const weir_decode_t* d = ctx->state;
  weir_jpeg_options_t options = d->jpeg;
  weir_jpeg_t* jpeg = NULL;
  weir_tensor_t* out = NULL;
  int64_t dims[4] = {1};
  int channels = 0;
  if (d->channels == 4) return WEIR_STATUS(INVALID_ARGUMENT, "JPEG does not support 4 channels");
  if (d->kind == WEIR_DECODE_BMP) return refuse(ctx, "JPEG");
  if (d->kind == WEIR_DECODE_CROP) WEIR_TRY(read_window(ctx, &options));
  options.channels = (int)d->channels;
  WEIR_TRY(weir_jpeg_open(contents, &options, &jpeg));
  weir_jpeg_size(jpeg, &dims[2], &dims[1], &channels);
  dims[3] = channels;
  weir_status_t* status = make_output(ctx, d->kind == WEIR_DECODE_GIF, dims, &out);
  if (!status) status = weir_jpeg_decode(jpeg, out->data);
  if (!status) widen(out);
  weir_jpeg_destroy(jpeg);
  return status;
}

static weir_status_t* decode_png(weir_kernel_ctx_t* ctx, weir_view_t contents) {
  const weir_decode_t* d = ctx->state;
  const int bits = d->dtype == WEIR_DTYPE_UINT8 ? 8 : 16;
  weir_png_t* png = NULL;
  weir_tensor_t* out = NULL;
  uint32_t width = 0, height = 0;
  int channels = 0;
  if (d->kind == WEIR_DECODE_BMP || d->kind == WEIR_DECODE_CROP) return refuse(ctx, "PNG");
  weir_status_t* status = weir_png_open(contents, &png);
  if (status) goto done;
  weir_png_size(png, &width, &height, &channels);
  if ((int64_t)width * height >= 1 << 29) {
    status = WEIR_STATUS(INVALID_ARGUMENT, "PNG size too large for int: %u by %u", width, height);
    goto done;
  }
  if (d->channels != 0) channels = (int)d->channels;
  const int64_t dims[4] = {1, height, width, channels};
  status = make_output(ctx, d->kind == WEIR_DECODE_GIF, dims, &out);
  if (!status) status = weir_png_decode(png, channels, bits, out->data);
  if (!status && d->dtype == WEIR_DTYPE_FLOAT) widen_words(out);
done:
  weir_png_destroy(png);
  return status;
}

static weir_status_t* decode_bmp(weir_kernel_ctx_t* ctx, weir_view_t contents) {
  const weir_decode_t* d = ctx->state;
  weir_bmp_t bmp;
  weir_tensor_t* out = NULL;
  if (d->kind != WEIR_DECODE_BMP && d->kind != WEIR_DECODE_IMAGE) return refuse(ctx, "BMP");
  if (d->channels == 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "`channels` must be 0, 3 or 4 for BMP, but got 1");
  }
  WEIR_TRY(weir_bmp_open(contents, &bmp));
  const int channels = d->channels ? (int)d->channels : bmp.channels;
  const int64_t dims[4] = {1, bmp.height, bmp.width, channels};
  WEIR_TRY(make_output(ctx, false, dims, &out));
  weir_bmp_decode(&bmp, channels, out->data);
  widen(out);
  return NULL;
}

// A small file may hold many frames that each repeat a large one.
static weir_status_t* check_size(const int64_t* dims) {
  const double most = 8589934592.0;
  if ((double)dims[0] * (double)(dims[1] * dims[2] * dims[3]) <= most) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "%lld frames of %lld by %lld pixels are too many",
                     (long long)dims[0], (long long)dims[2], (long long)dims[1]);
}

static weir_status_t* check_frames(const weir_decode_t* d, const int64_t* dims) {
  if (d->kind == WEIR_DECODE_GIF || d->kind == WEIR_DECODE_IMAGE || dims[0] == 1)
    return check_size(dims);
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Got %lld frames, but animated gifs can only be decoded by tf.io.decode_gif "
                     "or tf.io.decode_image",
                     (long long)dims[0]);
}

static weir_status_t* decode_gif(weir_kernel_ctx_t* ctx, weir_view_t contents) {
  const weir_decode_t* d = ctx->state;
  weir_gif_t* gif = NULL;
  weir_tensor_t* out = NULL;
  int64_t dims[4] = {0, 0, 0, 3};
  if (d->channels != 0 && d->channels != 3) {
    return WEIR_STATUS(INVALID_ARGUMENT, "channels must be 0 or 3 for GIF, got %lld",
                       (long long)d->channels);
  }
  if (d->kind == WEIR_DECODE_BMP || d->kind == WEIR_DECODE_CROP) return refuse(ctx, "GIF");
  WEIR_TRY(weir_gif_open(contents, &gif));
  weir_gif_size(gif, &dims[0], &dims[2], &dims[1]);
  if (!d->expands) dims[0] = 1;
  const bool has_frames =
      d->expands && (d->kind == WEIR_DECODE_GIF || d->kind == WEIR_DECODE_IMAGE);
  weir_status_t* status = check_frames(d, dims);
  if (!status) status = make_output(ctx, has_frames, dims, &out);
  if (!status) status = weir_gif_decode(gif, dims[0], out->data);
  if (!status) widen(out);
  weir_gif_destroy(gif);
  return status;
}

static weir_status_t* decode_webp(weir_kernel_ctx_t* ctx, weir_view_t contents) {
  const weir_decode_t* d = ctx->state;
  weir_webp_t webp;
  weir_tensor_t* out = NULL;
  // TensorFlow's other ops put out four dimensions where they said three.
  if (d->kind != WEIR_DECODE_WEBP && d->kind != WEIR_DECODE_IMAGE && d->kind != WEIR_DECODE_GIF)
    return refuse(ctx, "WebP");
  if (d->channels == 1) return WEIR_STATUS(INVALID_ARGUMENT, "WebP only supports 3 or 4 channels");
  if (d->dtype != WEIR_DTYPE_UINT8)
    return WEIR_STATUS(INVALID_ARGUMENT, "WebP only supports uint8 for dtype");
  WEIR_TRY(weir_webp_open(contents, &webp));
  if (d->channels != 0 && d->channels != webp.channels) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Number of channels requested does not match input");
  }
  const int64_t frames = d->expands && webp.frames > 0 ? webp.frames : 1;
  const int channels = webp.frames > 0 ? 4 : webp.channels;  // frames may leave parts empty
  const int64_t dims[4] = {frames, webp.height, webp.width, channels};
  WEIR_TRY(check_size(dims));
  WEIR_TRY(make_output(ctx, d->expands, dims, &out));
  return weir_webp_decode(contents, &webp, frames, out->data);
}

static weir_status_t* decode_jxl(weir_kernel_ctx_t* ctx, weir_view_t contents) {
  const weir_decode_t* d = ctx->state;
  weir_jxl_t jxl;
  weir_tensor_t* out = NULL;
  // In TensorFlow these put out other shapes than they said.
  if (d->kind == WEIR_DECODE_GIF || d->kind == WEIR_DECODE_WEBP || d->kind == WEIR_DECODE_CROP)
    return refuse(ctx, "JPEG XL");
  if (d->dtype != WEIR_DTYPE_UINT8)
    return WEIR_STATUS(INVALID_ARGUMENT, "JXL only supports uint8 for dtype");
  WEIR_TRY(weir_jxl_open(contents, &jxl));
  if (d->channels != 0 && d->channels != jxl.channels)
    return WEIR_STATUS(INVALID_ARGUMENT, "Number of channels requested does not match input");
  const int64_t dims[4] = {1, jxl.height, jxl.width, jxl.channels};
  WEIR_TRY(check_size(dims));
  WEIR_TRY(make_output(ctx, false, dims, &out));
  return weir_jxl_decode(contents, &jxl, out->data);
}

// ---- all of them ----

static bool begins(weir_view_t contents, const char* magic, size_t size) {
  return contents.size >= size && memcmp(contents.data, magic, size) == 0;
}

weir_status_t* weir_decode(weir_kernel_ctx_t* ctx, weir_view_t contents) {
  if (begins(contents, "\xff\xd8\xff", 3)) return decode_jpeg(ctx, contents);
  if (begins(contents, "\x89PNG\r\n\x1a\n", 8)) return decode_png(ctx, contents);
  if (begins(contents, "GIF8", 4)) return decode_gif(ctx, contents);
  if (begins(contents, "BM", 2)) return decode_bmp(ctx, contents);
  if (begins(contents, "RIFF", 4) && contents.size > 12 &&
      memcmp(contents.data + 8, "WEBP", 4) == 0)
    return decode_webp(ctx, contents);
  if (begins(contents, "\xff\x0a", 2) || begins(contents, "\0\0\0\x0cJXL \r\n\x87\n", 12))
    return decode_jxl(ctx, contents);
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Unknown image file format. One of JPEG, JPEG XL, PNG, GIF, BMP, WebP "
                     "required.");
}

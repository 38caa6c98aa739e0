// decode_image.c — DecodeJpeg and DecodePng: the bytes of an image file to pixels. As in
// TensorFlow, either reads the other's format, too.
#include "image/jpeg.h"
#include "image/png.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

typedef struct decode_t {
  int64_t channels;
  weir_dtype_t dtype;
  weir_jpeg_options_t jpeg;
} decode_t;

// ---- attributes ----

static weir_status_t* init_channels(const weir_kernel_init_t* init, decode_t* d) {
  d->channels = weir_attrs_int(init->node->attrs, "channels");
  if (d->channels == 0 || d->channels == 1 || d->channels == 3 || d->channels == 4) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "`channels` must be 0, 1, 3 or 4 but got %lld",
                     (long long)d->channels);
}

static weir_status_t* png_init(const weir_kernel_init_t* init, void* state) {
  decode_t* d = state;
  d->dtype = weir_attrs_type(init->node->attrs, "dtype");
  d->jpeg = (weir_jpeg_options_t){
      .ratio = 1, .is_fancy = true, .is_fast = true, .acceptable_fraction = 1.0f};
  return init_channels(init, d);
}

static weir_status_t* jpeg_init(const weir_kernel_init_t* init, void* state) {
  decode_t* d = state;
  const weir_attrs_t attrs = init->node->attrs;
  const int64_t ratio = weir_attrs_int(attrs, "ratio");
  const weir_view_t method = weir_attrs_string(attrs, "dct_method");
  d->dtype = WEIR_DTYPE_UINT8;
  if (ratio != 1 && ratio != 2 && ratio != 4 && ratio != 8) {
    return WEIR_STATUS(INVALID_ARGUMENT, "ratio must be 1, 2, 4, or 8, got %lld", (long long)ratio);
  }
  // Without a choice TensorFlow takes the fast one.
  d->jpeg.is_fast = method.size == 0 || weir_view_is(method, "INTEGER_FAST");
  if (!d->jpeg.is_fast && !weir_view_is(method, "INTEGER_ACCURATE")) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "dct_method must be one of {'', 'INTEGER_FAST', 'INTEGER_ACCURATE'}, not '%.*s'",
        WEIR_VIEW_ARG(method));
  }
  d->jpeg.ratio = (int)ratio;
  d->jpeg.is_fancy = weir_attrs_bool(attrs, "fancy_upscaling");
  d->jpeg.recovers = weir_attrs_bool(attrs, "try_recover_truncated");
  d->jpeg.acceptable_fraction = weir_attrs_float(attrs, "acceptable_fraction");
  return init_channels(init, d);
}

// ---- shapes ----

static weir_status_t* decode_shape(weir_shape_ctx_t* ctx) {
  const int64_t channels = weir_attrs_int(weir_shape_attrs(ctx), "channels");
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 0, NULL));
  if (channels < 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "channels must be non-negative, got %lld",
                       (long long)channels);
  }
  const int64_t dims[3] = {-1, -1, channels == 0 ? -1 : channels};
  return weir_shape_set_dims(ctx, 0, 3, dims);
}

// ---- kernels ----

// Bytes in front of a tensor of 16-bit elements, to those.
static void widen(weir_tensor_t* tensor) {
  const uint8_t* from = tensor->data;
  uint16_t* to = tensor->data;
  for (int64_t i = tensor->count - 1; i >= 0; --i) to[i] = (uint16_t)(from[i] << 8);
}

static weir_status_t* decode_jpeg(weir_kernel_ctx_t* ctx, weir_view_t contents) {
  const decode_t* d = ctx->state;
  weir_jpeg_options_t options = d->jpeg;
  weir_jpeg_t* jpeg = NULL;
  weir_tensor_t* out = NULL;
  int64_t dims[3];
  int channels = 0;
  if (d->channels == 4) return WEIR_STATUS(INVALID_ARGUMENT, "JPEG does not support 4 channels");
  options.channels = (int)d->channels;
  WEIR_TRY(weir_jpeg_open(contents, &options, &jpeg));
  weir_jpeg_size(jpeg, &dims[1], &dims[0], &channels);
  dims[2] = channels;
  weir_status_t* status = weir_kernel_output(ctx, 0, 3, dims, &out);
  if (!status) status = weir_jpeg_decode(jpeg, out->data);
  if (!status && d->dtype == WEIR_DTYPE_UINT16) widen(out);
  weir_jpeg_destroy(jpeg);
  return status;
}

static weir_status_t* decode_png(weir_kernel_ctx_t* ctx, weir_view_t contents) {
  const decode_t* d = ctx->state;
  const int bits = d->dtype == WEIR_DTYPE_UINT8 ? 8 : 16;
  weir_png_t* png = NULL;
  weir_tensor_t* out = NULL;
  uint32_t width = 0, height = 0;
  int channels = 0;
  weir_status_t* status = weir_png_open(contents, &png);
  if (status) goto done;
  weir_png_size(png, &width, &height, &channels);
  if ((int64_t)width * height >= 1 << 29) {
    status = WEIR_STATUS(INVALID_ARGUMENT, "PNG size too large for int: %u by %u", width, height);
    goto done;
  }
  if (d->channels != 0) channels = (int)d->channels;
  const int64_t dims[3] = {height, width, channels};
  status = weir_kernel_output(ctx, 0, 3, dims, &out);
  if (!status) status = weir_png_decode(png, channels, bits, out->data);
done:
  weir_png_destroy(png);
  return status;
}

static bool begins(weir_view_t contents, const char* magic, size_t size) {
  return contents.size >= size && memcmp(contents.data, magic, size) == 0;
}

static weir_status_t* decode_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* input = weir_kernel_input(ctx, 0);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (input->rank != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "`contents` must be scalar but got shape%s",
                       weir_tensor_shape_text(input, text));
  }
  const weir_view_t contents = weir_string_view(WEIR_TENSOR_DATA(input, weir_string_t));
  if (contents.size == 0) return WEIR_STATUS(INVALID_ARGUMENT, "Input is empty.");
  if (contents.size > INT32_MAX) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Input contents are too large for int: %zu",
                       contents.size);
  }
  if (begins(contents, "\xff\xd8\xff", 3)) return decode_jpeg(ctx, contents);
  if (begins(contents, "\x89PNG\r\n\x1a\n", 8)) return decode_png(ctx, contents);
  if (begins(contents, "BM", 2)) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Trying to decode BMP format using a wrong op. Use `decode_bmp` or "
                       "`decode_image` instead. Op used: %s",
                       ctx->node->op->name);
  }
  if (begins(contents, "GIF8", 4) || begins(contents, "RIFF", 4)) {
    return WEIR_STATUS(UNIMPLEMENTED, "GIF and WebP files cannot be read");
  }
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Unknown image file format. One of JPEG, PNG, GIF, BMP required.");
}

const weir_op_module_t weir_ops_image_decode_image = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "DecodeJpeg",
         .summary = "The pixels of a JPEG file",
         .attrs = "channels: int = 0; ratio: int = 1; fancy_upscaling: bool = true; "
                  "try_recover_truncated: bool = false; acceptable_fraction: float = 1.0; "
                  "dct_method: string = ''",
         .inputs = "contents: string",
         .outputs = "image: uint8",
         .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_UNBOUNDED,
         .infer_shape = decode_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = decode_cpu, .state_size = sizeof(decode_t),
                                    .init = jpeg_init)},
        {.name = "DecodePng",
         .summary = "The pixels of a PNG file",
         .attrs = "channels: int = 0; dtype: {uint8, uint16} = DT_UINT8",
         .inputs = "contents: string",
         .outputs = "image: dtype",
         .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_UNBOUNDED,
         .infer_shape = decode_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = decode_cpu, .state_size = sizeof(decode_t),
                                    .init = png_init)},
        {0}}};

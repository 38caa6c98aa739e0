// encode_jpeg.c — EncodeJpeg and EncodeJpegVariableQuality: pixels to the bytes of a JPEG file.
#include "image/jpeg.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

typedef struct encode_t {
  int channels;  // 0: those of the image
  weir_jpeg_params_t params;
} encode_t;

static weir_status_t* encode_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 3, NULL));
  return weir_shape_set_scalar(ctx, 0);
}

static weir_status_t* encode_init(const weir_kernel_init_t* init, void* state) {
  encode_t* e = state;
  const weir_attrs_t attrs = init->node->attrs;
  const weir_view_t format = weir_attrs_string(attrs, "format");
  const int64_t quality = weir_attrs_int(attrs, "quality");
  if (quality < 0 || quality > 100) {
    return WEIR_STATUS(INVALID_ARGUMENT, "quality must be in [0,100], got %lld",
                       (long long)quality);
  }
  e->channels = weir_view_is(format, "grayscale") ? 1 : weir_view_is(format, "rgb") ? 3 : 0;
  e->params = (weir_jpeg_params_t){
      .quality = (int)quality,
      .is_progressive = weir_attrs_bool(attrs, "progressive"),
      .is_optimized = weir_attrs_bool(attrs, "optimize_size"),
      .has_small_chroma = weir_attrs_bool(attrs, "chroma_downsampling"),
      .density_unit = weir_view_is(weir_attrs_string(attrs, "density_unit"), "in") ? 1 : 2,
      .x_density = (uint16_t)weir_attrs_int(attrs, "x_density"),
      .y_density = (uint16_t)weir_attrs_int(attrs, "y_density"),
      .xmp = weir_attrs_string(attrs, "xmp_metadata")};
  return NULL;
}

static weir_status_t* check_image(const encode_t* e, const weir_tensor_t* image) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (image->rank != 3) {
    return WEIR_STATUS(INVALID_ARGUMENT, "image must be 3-dimensional%s",
                       weir_tensor_shape_text(image, text));
  }
  if (image->count >= INT32_MAX) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Cannot encode images with >= max int32 elements");
  }
  if (e->channels != 0 && image->dims[2] != e->channels) {
    return WEIR_STATUS(INVALID_ARGUMENT, "format %s expects %d channels, got %s",
                       e->channels == 1 ? "grayscale" : "rgb", e->channels,
                       weir_tensor_shape_text(image, text));
  }
  if (image->dims[2] != 1 && image->dims[2] != 3) {
    return WEIR_STATUS(INVALID_ARGUMENT, "image must have 1 or 3 channels, got %s",
                       weir_tensor_shape_text(image, text));
  }
  return NULL;
}

static weir_status_t* encode(weir_kernel_ctx_t* ctx, const encode_t* e) {
  const weir_tensor_t* image = weir_kernel_input(ctx, 0);
  weir_tensor_t* out = NULL;
  weir_strbuf_t file = {0};
  WEIR_TRY(check_image(e, image));
  const int64_t height = image->dims[0], width = image->dims[1];
  if (height < 1 || width < 1 || height > 65500 || width > 65500) {
    return WEIR_STATUS(INTERNAL, "JPEG encoding failed: a JPEG cannot be of %lld by %lld pixels",
                       (long long)width, (long long)height);
  }
  const weir_jpeg_source_t source = {.pixels = image->data,
                                     .width = (int)width,
                                     .height = (int)height,
                                     .channels = (int)image->dims[2]};
  weir_status_t* status = weir_kernel_output(ctx, 0, 0, NULL, &out);
  if (!status) status = weir_jpeg_encode(&source, &e->params, &file);
  if (!status) status = weir_tensor_set_string(out, 0, file.data, file.size);
  weir_strbuf_free(&file);
  return status;
}

static weir_status_t* encode_cpu(weir_kernel_ctx_t* ctx) { return encode(ctx, ctx->state); }

// ---- EncodeJpegVariableQuality ----
static weir_status_t* variable_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 3, NULL));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 0, NULL));
  return weir_shape_set_scalar(ctx, 0);
}

static weir_status_t* variable_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* quality = weir_kernel_input(ctx, 1);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (quality->rank != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "quality must be scalar: %s",
                       weir_tensor_shape_text(quality, text));
  }
  const int64_t value = weir_tensor_int_at(quality, 0);
  if (value < 0 || value > 100) {
    return WEIR_STATUS(INVALID_ARGUMENT, "quality must be in [0,100], got %lld", (long long)value);
  }
  const encode_t e = {.params = {.quality = (int)value,
                                 .has_small_chroma = true,
                                 .density_unit = 1,
                                 .x_density = 300,
                                 .y_density = 300}};
  return encode(ctx, &e);
}

const weir_op_module_t weir_ops_image_encode_jpeg = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "EncodeJpeg",
         .summary = "An image as a JPEG file",
         .attrs = "format: {'', 'grayscale', 'rgb'} = ''; quality: int = 95; "
                  "progressive: bool = false; optimize_size: bool = false; "
                  "chroma_downsampling: bool = true; density_unit: {'in', 'cm'} = 'in'; "
                  "x_density: int = 300; y_density: int = 300; xmp_metadata: string = ''",
         .inputs = "image: uint8",
         .outputs = "contents: string",
         .flags = WEIR_OP_NO_GRADIENT,
         .infer_shape = encode_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = encode_cpu, .state_size = sizeof(encode_t),
                                    .init = encode_init)},
        {.name = "EncodeJpegVariableQuality",
         .summary = "An image as a JPEG file of a quality that is an input",
         .inputs = "images: uint8; quality: int32",
         .outputs = "contents: string",
         .flags = WEIR_OP_NO_GRADIENT,
         .infer_shape = variable_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = variable_cpu)},
        {0}}};

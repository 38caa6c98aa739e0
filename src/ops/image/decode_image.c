// decode_image.c — DecodeImage, DecodeJpeg, DecodePng, DecodeGif, DecodeBmp, DecodeWebP and
// DecodeJxl: the bytes of an image file to pixels. As in TensorFlow, most read the other formats,
// too.
#include "op/shape_ctx.h"
#include "ops/image/decode.h"

// ---- attributes ----

static weir_status_t* init_channels(const weir_kernel_init_t* init, weir_decode_t* d) {
  d->channels = weir_attrs_int(init->node->attrs, "channels");
  if (d->channels == 0 || d->channels == 1 || d->channels == 3 || d->channels == 4) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "`channels` must be 0, 1, 3 or 4 but got %lld",
                     (long long)d->channels);
}

static const weir_jpeg_options_t kUsualJpeg = {
    .ratio = 1, .is_fancy = true, .is_fast = true, .acceptable_fraction = 1.0f};

static weir_decode_kind_t kind_of(const weir_kernel_init_t* init) {
  static const struct {
    const char* op;
    weir_decode_kind_t kind;
  } kKinds[] = {{"DecodeImage", WEIR_DECODE_IMAGE},
                {"DecodePng", WEIR_DECODE_PNG},
                {"DecodeBmp", WEIR_DECODE_BMP},
                {"DecodeJxl", WEIR_DECODE_JXL}};
  for (size_t i = 0; i < sizeof kKinds / sizeof *kKinds; ++i) {
    if (strcmp(init->node->op->name, kKinds[i].op) == 0) return kKinds[i].kind;
  }
  return WEIR_DECODE_WEBP;
}

static weir_status_t* gif_init(const weir_kernel_init_t* init, void* state) {
  (void)init;
  *(weir_decode_t*)state = (weir_decode_t){.kind = WEIR_DECODE_GIF,
                                           .channels = 3,
                                           .dtype = WEIR_DTYPE_UINT8,
                                           .expands = true,
                                           .jpeg = kUsualJpeg};
  return NULL;
}

// Of the others that say nothing about JPEGs.
static weir_status_t* plain_init(const weir_kernel_init_t* init, void* state) {
  weir_decode_t* d = state;
  const weir_attrs_t attrs = init->node->attrs;
  const weir_attr_t *dtype = weir_attrs_find(attrs, "dtype"),
                    *expands = weir_attrs_find(attrs, "expand_animations");
  d->kind = kind_of(init);
  d->dtype = dtype ? dtype->u.type : WEIR_DTYPE_UINT8;
  d->expands = expands ? expands->u.b : true;
  d->jpeg = kUsualJpeg;
  return init_channels(init, d);
}

static weir_status_t* jpeg_init(const weir_kernel_init_t* init, void* state) {
  weir_decode_t* d = state;
  const weir_attrs_t attrs = init->node->attrs;
  const int64_t ratio = weir_attrs_int(attrs, "ratio");
  const weir_view_t method = weir_attrs_string(attrs, "dct_method");
  d->kind = WEIR_DECODE_JPEG;
  d->dtype = WEIR_DTYPE_UINT8;
  d->expands = true;
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

static weir_status_t* crop_init(const weir_kernel_init_t* init, void* state) {
  weir_decode_t* d = state;
  WEIR_TRY(jpeg_init(init, state));
  d->kind = WEIR_DECODE_CROP;
  d->jpeg.crops = true;
  return NULL;
}

// ---- shapes ----

static weir_status_t* read_channels(weir_shape_ctx_t* ctx, int64_t* out_channels) {
  const int64_t channels = weir_attrs_int(weir_shape_attrs(ctx), "channels");
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 0, NULL));
  *out_channels = channels == 0 ? -1 : channels;
  if (channels >= 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "channels must be non-negative, got %lld",
                     (long long)channels);
}

static weir_status_t* decode_shape(weir_shape_ctx_t* ctx) {
  int64_t channels;
  WEIR_TRY(read_channels(ctx, &channels));
  return weir_shape_set_dims(ctx, 0, 3, (int64_t[]){-1, -1, channels});
}

static weir_status_t* image_shape(weir_shape_ctx_t* ctx) {
  int64_t channels;
  WEIR_TRY(read_channels(ctx, &channels));
  if (weir_attrs_bool(weir_shape_attrs(ctx), "expand_animations")) return NULL;
  return weir_shape_set_dims(ctx, 0, 3, (int64_t[]){-1, -1, channels});
}

static weir_status_t* gif_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 0, NULL));
  return weir_shape_set_dims(ctx, 0, 4, (int64_t[]){-1, -1, -1, 3});
}

static weir_status_t* webp_shape(weir_shape_ctx_t* ctx) {
  int64_t channels;
  WEIR_TRY(read_channels(ctx, &channels));
  return weir_shape_set_dims(ctx, 0, 4, (int64_t[]){-1, -1, -1, channels});
}

static weir_status_t* crop_shape(weir_shape_ctx_t* ctx) {
  const weir_tensor_t* window = weir_shape_value(ctx, 1);
  const weir_shape_t* shape;
  int64_t dims[3] = {-1, -1, -1}, joined;
  WEIR_TRY(read_channels(ctx, &dims[2]));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, &shape));
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(shape, 0), 4, &joined));
  for (int i = 0; window && i < 2; ++i) {
    dims[i] = weir_tensor_int_at(window, 2 + i);
    if (dims[i] < -1) return WEIR_STATUS(INVALID_ARGUMENT, "crop_window has a negative size");
  }
  return weir_shape_set_dims(ctx, 0, 3, dims);
}

// ---- kernel ----

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
  return weir_decode(ctx, contents);
}

#define DECODE_FLAGS (WEIR_OP_NO_GRADIENT | WEIR_OP_UNBOUNDED)
#define DECODE_KERNEL(init_fn) \
  WEIR_CPU_KERNEL(.compute = decode_cpu, .state_size = sizeof(weir_decode_t), .init = init_fn)
#define JPEG_ATTRS                                                    \
  "channels: int = 0; ratio: int = 1; fancy_upscaling: bool = true; " \
  "try_recover_truncated: bool = false; acceptable_fraction: float = 1.0; dct_method: string = ''"

const weir_op_module_t weir_ops_image_decode_image = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "DecodeJpeg",
         .summary = "The pixels of a JPEG file",
         .attrs = JPEG_ATTRS,
         .inputs = "contents: string",
         .outputs = "image: uint8",
         .flags = DECODE_FLAGS,
         .infer_shape = decode_shape,
         .kernels = DECODE_KERNEL(jpeg_init)},
        {.name = "DecodeAndCropJpeg",
         .summary = "The pixels of a window of a JPEG file",
         .attrs = JPEG_ATTRS,
         .inputs = "contents: string; crop_window: int32",
         .outputs = "image: uint8",
         .flags = DECODE_FLAGS,
         .infer_shape = crop_shape,
         .kernels = DECODE_KERNEL(crop_init)},
        {.name = "DecodePng",
         .summary = "The pixels of a PNG file",
         .attrs = "channels: int = 0; dtype: {uint8, uint16} = DT_UINT8",
         .inputs = "contents: string",
         .outputs = "image: dtype",
         .flags = DECODE_FLAGS,
         .infer_shape = decode_shape,
         .kernels = DECODE_KERNEL(plain_init)},
        {.name = "DecodeGif",
         .summary = "The pixels of all frames of a GIF file",
         .inputs = "contents: string",
         .outputs = "image: uint8",
         .flags = DECODE_FLAGS,
         .infer_shape = gif_shape,
         .kernels = DECODE_KERNEL(gif_init)},
        {.name = "DecodeBmp",
         .summary = "The pixels of a BMP file",
         .attrs = "channels: int = 0",
         .inputs = "contents: string",
         .outputs = "image: uint8",
         .flags = DECODE_FLAGS,
         .infer_shape = decode_shape,
         .kernels = DECODE_KERNEL(plain_init)},
        {.name = "DecodeWebP",
         .summary = "The pixels of a WebP file",
         .attrs = "channels: int = 0; dtype: {uint8} = DT_UINT8",
         .inputs = "contents: string",
         .outputs = "image: dtype",
         .flags = DECODE_FLAGS,
         .infer_shape = webp_shape,
         .kernels = DECODE_KERNEL(plain_init)},
        {.name = "DecodeJxl",
         .summary = "The pixels of a JPEG XL file",
         .attrs = "channels: int = 0; dtype: {uint8} = DT_UINT8",
         .inputs = "contents: string",
         .outputs = "image: dtype",
         .flags = DECODE_FLAGS,
         .infer_shape = decode_shape,
         .kernels = DECODE_KERNEL(plain_init)},
        {.name = "DecodeImage",
         .summary = "The pixels of an image file of any format",
         .attrs = "channels: int = 0; dtype: {uint8, uint16, float} = DT_UINT8; "
                  "expand_animations: bool = true",
         .inputs = "contents: string",
         .outputs = "image: dtype",
         .flags = DECODE_FLAGS,
         .infer_shape = image_shape,
         .kernels = DECODE_KERNEL(plain_init)},
        {0}}};

// encode_png.c — EncodePng: pixels to the bytes of PNG files.
#include "image/png.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

static weir_status_t* encode_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* image = weir_shape_input(ctx, 0);
  WEIR_TRY(weir_shape_at_least(ctx, image, 3));
  if (image->rank < 0) return NULL;
  return weir_shape_set(ctx, 0, weir_shape_sub(ctx, image, 0, image->rank - 3));
}

typedef struct encode_t {
  const weir_tensor_t* images;
  weir_tensor_t* out;
  weir_png_source_t source;  // of the first
  size_t image_size;
  int level;
} encode_t;

static weir_status_t* encode_one(const encode_t* e, int64_t i) {
  weir_png_source_t source = e->source;
  weir_strbuf_t file = {0};
  source.pixels = (const char*)e->images->data + (size_t)i * e->image_size;
  weir_status_t* status = weir_png_encode(&source, e->level, &file);
  if (!status) status = weir_tensor_set_string(e->out, i, file.data, file.size);
  weir_strbuf_free(&file);
  return status;
}

static weir_status_t* encode_init(const weir_kernel_init_t* init, void* state) {
  const int64_t level = weir_attrs_int(init->node->attrs, "compression");
  if (level < -1 || level > 9) {
    return WEIR_STATUS(INVALID_ARGUMENT, "compression should be in [-1,9], got %lld",
                       (long long)level);
  }
  *(int*)state = (int)level;
  return NULL;
}

static weir_status_t* encode_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* images = weir_kernel_input(ctx, 0);
  char text[WEIR_SHAPE_TEXT_SIZE];
  encode_t e = {.images = images, .level = *(const int*)ctx->state};
  if (images->rank < 3) {
    return WEIR_STATUS(INVALID_ARGUMENT, "images must be at least rank 3%s",
                       weir_tensor_shape_text(images, text));
  }
  if (images->count >= INT32_MAX) {
    return WEIR_STATUS(INVALID_ARGUMENT, "image cannot have >= int32 max elements");
  }
  const int64_t* dims = images->dims + images->rank - 3;
  if (dims[2] < 1 || dims[2] > 4) {
    return WEIR_STATUS(INVALID_ARGUMENT, "image must have 1, 2, 3, or 4 channels, got %lld",
                       (long long)dims[2]);
  }
  WEIR_TRY(weir_kernel_output(ctx, 0, images->rank - 3, images->dims, &e.out));
  if (e.out->count == 0) return NULL;
  if (images->count == 0) return WEIR_STATUS(INTERNAL, "PNG encoding failed: there are no pixels");
  const int bits = weir_tensor_type(images) == WEIR_DTYPE_UINT8 ? 8 : 16;
  e.source = (weir_png_source_t){.width = (uint32_t)dims[1],
                                 .height = (uint32_t)dims[0],
                                 .channels = (int)dims[2],
                                 .bits = bits};
  e.image_size = (size_t)(images->count / e.out->count) * (size_t)bits / 8;
  for (int64_t i = 0; i < e.out->count; ++i) WEIR_TRY(encode_one(&e, i));
  return NULL;
}

const weir_op_module_t weir_ops_image_encode_png = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "EncodePng",
         .summary = "Images as PNG files",
         .attrs = "compression: int = -1; T: {uint8, uint16} = DT_UINT8",
         .inputs = "image: T",
         .outputs = "contents: string",
         .flags = WEIR_OP_NO_GRADIENT,
         .infer_shape = encode_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = encode_cpu, .state_size = sizeof(int),
                                    .init = encode_init)},
        {0}}};

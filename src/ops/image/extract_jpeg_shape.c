// extract_jpeg_shape.c — ExtractJpegShape: what the headers of a JPEG file say of its size.
#include "image/jpeg.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

static weir_status_t* extract_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 0, NULL));
  return weir_shape_set_vector(ctx, 0, 3);
}

static weir_status_t* extract_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* input = weir_kernel_input(ctx, 0);
  char text[WEIR_SHAPE_TEXT_SIZE];
  weir_tensor_t* out = NULL;
  int64_t sizes[3];
  int channels = 0;
  if (input->rank != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "contents must be scalar, got shape %s",
                       weir_tensor_shape_text(input, text));
  }
  const weir_view_t contents = weir_string_view(WEIR_TENSOR_DATA(input, weir_string_t));
  WEIR_TRY(weir_jpeg_read_size(contents, &sizes[1], &sizes[0], &channels));
  sizes[2] = channels;
  WEIR_TRY(weir_kernel_output(ctx, 0, 1, (int64_t[]){3}, &out));
  for (int i = 0; i < 3; ++i) {
    if (out->dtype == WEIR_DTYPE_INT64) {
      WEIR_TENSOR_DATA(out, int64_t)[i] = sizes[i];
    } else {
      WEIR_TENSOR_DATA(out, int32_t)[i] = (int32_t)sizes[i];
    }
  }
  return NULL;
}

const weir_op_module_t weir_ops_image_extract_jpeg_shape = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){{.name = "ExtractJpegShape",
                                    .summary = "Height, width and channels of a JPEG file",
                                    .attrs = "output_type: {int32, int64} = DT_INT32",
                                    .inputs = "contents: string",
                                    .outputs = "image_shape: output_type",
                                    .flags = WEIR_OP_NO_GRADIENT,
                                    .infer_shape = extract_shape,
                                    .kernels = WEIR_CPU_KERNEL(.compute = extract_cpu)},
                                   {0}}};

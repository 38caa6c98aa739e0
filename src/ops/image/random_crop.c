// random_crop.c — RandomCrop: a window of an image, somewhere.
#include "kernel/random/random.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"
#include "ops/image/removed.h"

static weir_status_t* crop_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t *image = NULL, *size = NULL, *window = NULL;
  int64_t two;
  WEIR_TRY(check_removed(ctx, 8, "Random crop is now pure Python"));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 3, &image));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, &size));
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(size, 0), 2, &two));
  WEIR_TRY(weir_shape_from_value(ctx, 1, &window));
  return weir_shape_set_dims(
      ctx, 0, 3,
      (int64_t[]){weir_shape_dim(window, 0), weir_shape_dim(window, 1), weir_shape_dim(image, 2)});
}

static weir_status_t* crop_init(const weir_kernel_init_t* init, void* state) {
  weir_random_state_init(state, weir_attrs_int(init->node->attrs, "seed"),
                         weir_attrs_int(init->node->attrs, "seed2"));
  return NULL;
}

static void crop_deinit(void* state) { weir_random_state_deinit(state); }

static weir_status_t* read_size(const weir_kernel_ctx_t* ctx, int64_t* out_height,
                                int64_t* out_width) {
  const weir_tensor_t *image = weir_kernel_input(ctx, 0), *size = weir_kernel_input(ctx, 1);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (image->rank != 3) {
    return WEIR_STATUS(INVALID_ARGUMENT, "input must be 3-dimensional%s",
                       weir_tensor_shape_text(image, text));
  }
  if (size->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "shape_t must be 1-dimensional%s",
                       weir_tensor_shape_text(size, text));
  }
  if (size->count != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "shape_t must have two elements%s",
                       weir_tensor_shape_text(size, text));
  }
  *out_height = weir_tensor_int_at(size, 0), *out_width = weir_tensor_int_at(size, 1);
  if (*out_width > image->dims[1]) {
    return WEIR_STATUS(FAILED_PRECONDITION,
                       "width must be >= target_width: width = %lld, target_width = %lld",
                       (long long)image->dims[1], (long long)*out_width);
  }
  if (*out_height > image->dims[0]) {
    return WEIR_STATUS(FAILED_PRECONDITION,
                       "height must be >= target_height: height = %lld, target_height = %lld",
                       (long long)image->dims[0], (long long)*out_height);
  }
  if (*out_height >= 0 && *out_width >= 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,  // TensorFlow ends the process
                     "Expected shape dimensions to be non-negative, got [%lld,%lld]",
                     (long long)*out_height, (long long)*out_width);
}

static void copy_window(const weir_tensor_t* image, int64_t top, int64_t left, weir_tensor_t* out) {
  const size_t pixel = (size_t)image->dims[2] * weir_dtype_size(weir_tensor_type(image));
  const size_t row = (size_t)out->dims[1] * pixel;
  for (int64_t y = 0; y < out->dims[0]; ++y) {
    const char* from =
        (const char*)image->data + (size_t)((top + y) * image->dims[1] + left) * pixel;
    memcpy((char*)out->data + (size_t)y * row, from, row);
  }
}

static weir_status_t* crop_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* image = weir_kernel_input(ctx, 0);
  int64_t height = 0, width = 0, top = 0, left = 0;
  weir_tensor_t* out = NULL;
  WEIR_TRY(read_size(ctx, &height, &width));
  const int64_t more_rows = image->dims[0] - height, more_columns = image->dims[1] - width;
  if (more_rows == 0 && more_columns == 0) {
    weir_kernel_pass(ctx, 0, 0);
    return NULL;
  }
  WEIR_TRY(weir_kernel_output(ctx, 0, 3, (int64_t[]){height, width, image->dims[2]}, &out));
  weir_random_words_t words = weir_random_words(weir_random_reserve(ctx->state, 1));
  if (more_columns > 0) left = weir_random_word(&words) % (more_columns + 1);
  if (more_rows > 0) top = weir_random_word(&words) % (more_rows + 1);
  if (out->count > 0) copy_window(image, top, left, out);
  return NULL;
}

const weir_op_module_t weir_ops_image_random_crop = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "RandomCrop",
         .attrs = "T: {uint8, int8, int16, int32, int64, float, double}; seed: int = 0; "
                  "seed2: int = 0",
         .inputs = "image: T; size: int64",
         .outputs = "output: T",
         .flags = WEIR_OP_STATEFUL,
         .summary = "A window of an image, somewhere; in graphs of old versions only",
         .infer_shape = crop_shape,
         .kernels =
             WEIR_CPU_KERNEL(.compute = crop_cpu, .init = crop_init, .deinit = crop_deinit,
                             .state_size = sizeof(weir_random_state_t), .host_inputs = "size")},
        {0}}};

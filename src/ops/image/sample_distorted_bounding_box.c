// sample_distorted_bounding_box.c — SampleDistortedBoundingBox of all versions: a random crop of an
// image that shows enough of one of its objects. The numbers are TensorFlow's for the same seeds.
#include <math.h>

#include "base/interrupt.h"
#include "kernel/move/move.h"
#include "kernel/random/random.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"
#include "ops/random/generators.h"

typedef struct rectangle_t {
  int64_t left, top, right, bottom;
} rectangle_t;

typedef struct sample_t {
  weir_random_state_t generator;  // of the stateful ops
  bool has_generator;
  float min_covered;  // an attribute of the first version
  float least_ratio, most_ratio;
  float least_area, most_area;  // in parts of the image
  int64_t attempts;
  bool takes_image;  // where there are no boxes
} sample_t;

// ---- attributes ----
static weir_status_t* read_range(weir_attrs_t attrs, const char* name, const char* title,
                                 float* out_least, float* out_most) {
  const weir_attr_t* range = weir_attrs_list(attrs, name);
  if (range->count != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "%s range field must specify 2 dimensions", title);
  }
  *out_least = range->u.floats[0], *out_most = range->u.floats[1];
  if (*out_least > 0 && *out_most > 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "%s range must be non-negative: [%g, %g]", title,
                     (double)*out_least, (double)*out_most);
}

static weir_status_t* check_covered(float covered) {
  if (covered >= 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Min object covered must be non-negative: %g",
                     (double)covered);
}

static weir_status_t* read_attrs(weir_attrs_t attrs, sample_t* s) {
  if (weir_attrs_find(attrs, "min_object_covered"))
    s->min_covered = weir_attrs_float(attrs, "min_object_covered");
  WEIR_TRY(check_covered(s->min_covered));
  s->takes_image = weir_attrs_bool(attrs, "use_image_if_no_bounding_boxes");
  WEIR_TRY(
      read_range(attrs, "aspect_ratio_range", "Aspect ratio", &s->least_ratio, &s->most_ratio));
  WEIR_TRY(read_range(attrs, "area_range", "Area", &s->least_area, &s->most_area));
  if (!(s->least_area <= 1 && s->most_area <= 1)) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Area range must be less then or equal to 1.0: [%g, %g]",
                       (double)s->least_area, (double)s->most_area);
  }
  s->attempts = weir_attrs_int(attrs, "max_attempts");
  if (s->attempts > 0 && s->attempts <= INT32_MAX) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Max attempts must be non-negative: %lld",
                     (long long)s->attempts);
}

static weir_status_t* sample_init(const weir_kernel_init_t* init, void* state) {
  sample_t* s = state;
  const weir_attrs_t attrs = init->node->attrs;
  WEIR_TRY(read_attrs(attrs, s));
  if (!weir_attrs_find(attrs, "seed2")) return NULL;
  weir_random_state_init(&s->generator, weir_attrs_int(attrs, "seed"),
                         weir_attrs_int(attrs, "seed2"));
  s->has_generator = true;
  return NULL;
}

static void sample_deinit(void* state) {
  sample_t* s = state;
  if (s->has_generator) weir_random_state_deinit(&s->generator);
}

// ---- shapes ----
static weir_status_t* sample_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t *size, *boxes, *seed;
  int64_t joined;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 1, &size));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 3, &boxes));
  if (ctx->node->input_count > 2)
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 2), 0, NULL));
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(size, 0), 3, &joined));
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(boxes, 2), 4, &joined));
  if (ctx->node->input_count > 3) {
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 3), 1, &seed));
    WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(seed, 0), 2, &joined));
  }
  WEIR_TRY(weir_shape_set_vector(ctx, 0, 3));
  WEIR_TRY(weir_shape_set_vector(ctx, 1, 3));
  return weir_shape_set_dims(ctx, 2, 3, (int64_t[]){1, 1, 4});
}

// ---- random crops ----
// In [0, count): of every remainder of a word as many are left.
static int64_t draw_below(weir_random_words_t* words, int64_t count) {
  const uint32_t n = (uint32_t)count;
  const uint32_t rejected = (n & (n - 1)) == 0 ? 0 : UINT32_MAX % n + 1;
  uint32_t word = weir_random_word(words);
  while (word < rejected) word = weir_random_word(words);
  return word % n;
}

// [0, 1) with 23 bits.
static float draw_float(weir_random_words_t* words) {
  const uint32_t bits = 127u << 23 | (weir_random_word(words) & 0x7fffffu);
  float value;
  memcpy(&value, &bits, sizeof value);
  return value - 1.0f;
}

static int64_t width_of(int64_t height, float ratio) { return lrintf((float)height * ratio); }

// The highest crop of that ratio that is no wider than the image.
static int64_t highest_crop(int64_t width, int64_t height, float most_area, float ratio) {
  int64_t highest = lrintf(sqrtf(most_area / ratio));
  if (width_of(highest, ratio) > width) {
    highest = (int64_t)(((double)width + 0.5 - (double)0.0000001f) / (double)ratio);
    if (width_of(highest, ratio) > width) --highest;
  }
  return WEIR_MIN(highest, height);
}

// A crop of an image of |width| by |height|; false when there is none that fits.
static bool draw_crop(const sample_t* s, int64_t width, int64_t height, float ratio,
                      weir_random_words_t* words, rectangle_t* crop) {
  if (width <= 0 || height <= 0 || s->least_area > s->most_area) return false;
  const float least = s->least_area * (float)width * (float)height;
  const float most = s->most_area * (float)width * (float)height;
  const int64_t highest = highest_crop(width, height, most, ratio);
  int64_t h = WEIR_MIN(lrintf(sqrtf(least / ratio)), highest);
  if (h < highest) h += draw_below(words, highest - h + 1);
  // Rounding may have made it a little too small or too large.
  if ((float)(width_of(h, ratio) * h) < least) ++h;
  if ((float)(width_of(h, ratio) * h) > most) --h;
  const int64_t w = width_of(h, ratio);
  const float area = (float)(w * h);
  if (area < least || area > most || w > width || h > height || w <= 0 || h <= 0) return false;
  crop->top = h < height ? draw_below(words, height - h) : 0;
  crop->left = w < width ? draw_below(words, width - w) : 0;
  crop->right = crop->left + w;
  crop->bottom = crop->top + h;
  return true;
}

static float area_of(const rectangle_t* r) {
  return (float)((r->right - r->left) * (r->bottom - r->top));
}

static float common_area(const rectangle_t* a, const rectangle_t* b) {
  const rectangle_t both = {.left = WEIR_MAX(a->left, b->left),
                            .top = WEIR_MAX(a->top, b->top),
                            .right = WEIR_MIN(a->right, b->right),
                            .bottom = WEIR_MIN(a->bottom, b->bottom)};
  return both.left > both.right || both.top > both.bottom ? 0 : area_of(&both);
}

// ---- kernel ----
typedef struct image_t {
  int64_t width, height;
  const float* boxes;  // y1, x1, y2, x2 in parts of it
  int64_t count;
  float min_covered;
} image_t;

static rectangle_t object_at(const image_t* image, int64_t i) {
  const float *box = image->boxes + 4 * i, width = (float)image->width,
              height = (float)image->height;
  return (rectangle_t){.left = (int64_t)(box[1] * width),
                       .top = (int64_t)(box[0] * height),
                       .right = (int64_t)(box[3] * width),
                       .bottom = (int64_t)(box[2] * height)};
}

static bool covers(const image_t* image, const rectangle_t* crop) {
  const rectangle_t whole = {.right = image->width, .bottom = image->height};
  if (area_of(crop) < 1) return false;
  for (int64_t i = 0; i < WEIR_MAX(image->count, 1); ++i) {
    const rectangle_t object = image->count > 0 ? object_at(image, i) : whole;
    const float area = area_of(&object);
    if (area >= 1 && common_area(crop, &object) / area >= image->min_covered) return true;
  }
  return false;
}

static weir_status_t* read_size(const weir_tensor_t* size, image_t* image) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (size->rank != 1 || size->count != 3) {
    return WEIR_STATUS(INVALID_ARGUMENT, "image_size must %s%s",
                       size->rank != 1 ? "be 1-dimensional" : "contain 3 elements",
                       weir_tensor_shape_text(size, text));
  }
  image->height = weir_move_int_at(size, 0), image->width = weir_move_int_at(size, 1);
  if (image->height < 0 || image->height >= INT32_MAX)
    return WEIR_STATUS(INVALID_ARGUMENT, "image height cannot be >= int32 max");
  if (image->width < 0 || image->width >= INT32_MAX)
    return WEIR_STATUS(INVALID_ARGUMENT, "image width cannot be >= int32 max");
  return NULL;
}

static weir_status_t* read_boxes(const weir_tensor_t* boxes, image_t* image) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (boxes->rank != 3) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "input boxes must be 3-dimensional [batch, num_boxes, coords]: %s",
                       weir_tensor_shape_text(boxes, text));
  }
  if (boxes->dims[2] != 4) {
    return WEIR_STATUS(INVALID_ARGUMENT, "bounding boxes must have shape [4] or [*, 4], got %s",
                       weir_tensor_shape_text(boxes, text));
  }
  image->boxes = boxes->data;
  image->count = boxes->count / 4;
  return NULL;
}

static weir_status_t* check_boxes(const sample_t* s, const image_t* image) {
  for (int64_t i = 0; i < 4 * image->count; ++i) {
    if (!(image->boxes[i] >= 0 && image->boxes[i] <= 1)) {
      return WEIR_STATUS(INVALID_ARGUMENT, "All bounding box coordinates must be in [0.0, 1.0]: %g",
                         (double)image->boxes[i]);
    }
  }
  if (image->count > 0 || s->takes_image) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "No bounding boxes provided as input. One must enable "
                     "use_image_if_no_bounding_boxes if you wish to not provide any bounding "
                     "boxes.");
}

static weir_status_t* read_image(const weir_kernel_ctx_t* ctx, image_t* image) {
  const sample_t* s = ctx->state;
  char text[WEIR_SHAPE_TEXT_SIZE];
  WEIR_TRY(read_size(weir_kernel_input(ctx, 0), image));
  WEIR_TRY(read_boxes(weir_kernel_input(ctx, 1), image));
  image->min_covered = s->min_covered;
  if (ctx->input_count > 2) {
    const weir_tensor_t* covered = weir_kernel_input(ctx, 2);
    if (covered->rank != 0) {
      return WEIR_STATUS(INVALID_ARGUMENT, "min_object_covered must be 0-D, got shape %s",
                         weir_tensor_shape_text(covered, text));
    }
    image->min_covered = *WEIR_TENSOR_DATA(covered, float);
    WEIR_TRY(check_covered(image->min_covered));
  }
  return check_boxes(s, image);
}

// The whole image where no attempt was good.
static weir_status_t* draw_sample(const sample_t* s, const image_t* image, weir_philox_t philox,
                                  rectangle_t* out_crop) {
  weir_random_words_t words = weir_random_words(philox);
  for (int64_t i = 0; i < s->attempts; ++i) {
    const float ratio = draw_float(&words) * (s->most_ratio - s->least_ratio) + s->least_ratio;
    WEIR_TRY(weir_interrupt_poll(i));
    if (draw_crop(s, image->width, image->height, ratio, &words, out_crop) &&
        covers(image, out_crop))
      return NULL;
  }
  *out_crop = (rectangle_t){.right = image->width, .bottom = image->height};
  return NULL;
}

// Stores three numbers in an integer type of any width.
static weir_status_t* put_three(weir_kernel_ctx_t* ctx, int i, const int64_t* values) {
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, i, 1, (int64_t[]){3}, &out));
  const size_t size = weir_dtype_size(weir_tensor_type(out));
  // The low bytes come first on every supported host.
  for (int k = 0; k < 3; ++k) memcpy((char*)out->data + (size_t)k * size, &values[k], size);
  return NULL;
}

static weir_status_t* sample_cpu(weir_kernel_ctx_t* ctx) {
  sample_t* s = ctx->state;
  image_t image = {0};
  rectangle_t crop;
  weir_philox_t philox;
  weir_tensor_t* out = NULL;
  if (s->has_generator) {
    philox = weir_random_reserve(&s->generator, (uint64_t)s->attempts);
  } else {
    WEIR_TRY(weir_philox_of_seed(ctx, 3, &philox));
  }
  WEIR_TRY(read_image(ctx, &image));
  WEIR_TRY(draw_sample(s, &image, philox, &crop));
  WEIR_TRY(put_three(ctx, 0, (int64_t[]){crop.top, crop.left, 0}));
  WEIR_TRY(put_three(ctx, 1, (int64_t[]){crop.bottom - crop.top, crop.right - crop.left, -1}));
  WEIR_TRY(weir_kernel_output(ctx, 2, 3, (int64_t[]){1, 1, 4}, &out));
  float* box = out->data;
  box[0] = (float)crop.top / (float)image.height;
  box[1] = (float)crop.left / (float)image.width;
  box[2] = (float)crop.bottom / (float)image.height;
  box[3] = (float)crop.right / (float)image.width;
  return NULL;
}

#define SAMPLE_TYPE "T: {uint8, int8, int16, int32, int64}; "
#define SAMPLE_SEEDS "seed: int = 0; seed2: int = 0; "
#define SAMPLE_ATTRS                                                                        \
  "aspect_ratio_range: list(float) = [0.75, 1.33]; area_range: list(float) = [0.05, 1.0]; " \
  "max_attempts: int = 100; use_image_if_no_bounding_boxes: bool = false"
#define SAMPLE_KERNEL                                                                         \
  WEIR_CPU_KERNEL(.compute = sample_cpu, .state_size = sizeof(sample_t), .init = sample_init, \
                  .deinit = sample_deinit)

const weir_op_module_t weir_ops_image_sample_distorted_bounding_box = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "SampleDistortedBoundingBox",
         .summary = "A random crop that shows enough of an object",
         .attrs = SAMPLE_TYPE SAMPLE_SEEDS "min_object_covered: float = 0.1; " SAMPLE_ATTRS,
         .inputs = "image_size: T; bounding_boxes: float",
         .outputs = "begin: T; size: T; bboxes: float",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT,
         .infer_shape = sample_shape,
         .kernels = SAMPLE_KERNEL},
        {.name = "SampleDistortedBoundingBoxV2",
         .summary = "A random crop that shows enough of an object",
         .attrs = SAMPLE_TYPE SAMPLE_SEEDS SAMPLE_ATTRS,
         .inputs = "image_size: T; bounding_boxes: float; min_object_covered: float",
         .outputs = "begin: T; size: T; bboxes: float",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT,
         .infer_shape = sample_shape,
         .kernels = SAMPLE_KERNEL},
        {.name = "StatelessSampleDistortedBoundingBox",
         .summary = "A random crop that shows enough of an object, as a seed says",
         .attrs = SAMPLE_TYPE "Tseed: {int32, int64}; " SAMPLE_ATTRS,
         .inputs = "image_size: T; bounding_boxes: float; min_object_covered: float; seed: Tseed",
         .outputs = "begin: T; size: T; bboxes: float",
         .infer_shape = sample_shape,
         .kernels = SAMPLE_KERNEL},
        {0}}};

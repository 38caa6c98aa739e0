// combined_non_max_suppression.c — CombinedNonMaxSuppression: the best boxes of each class that do
// not overlap, and the best of those in each image.
#include <stdatomic.h>
#include <stdlib.h>

#include "kernel/image/suppress.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

// ---- shape ----
static weir_status_t* check_scalar(weir_shape_ctx_t* ctx, int i) {
  const weir_tensor_t* t = weir_shape_value(ctx, i);
  if (!t || weir_tensor_int_at(t, 0) >= 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Dimension size, given by scalar input %d, must be non-negative but is %lld",
                     i, (long long)weir_tensor_int_at(t, 0));
}

static weir_status_t* scalar_value(weir_shape_ctx_t* ctx, int i, int64_t* out_value) {
  const weir_tensor_t* t = weir_shape_value(ctx, i);
  *out_value = t ? weir_tensor_int_at(t, 0) : -1;
  if (!t || *out_value > 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "%s should be > 0",
                     i == 2 ? "max_output_size_per_class" : "max_total_size");
}

static weir_status_t* set_shapes(weir_shape_ctx_t* ctx, int64_t batch, int64_t size) {
  WEIR_TRY(weir_shape_set_dims(ctx, 0, 3, (int64_t[]){batch, size, 4}));
  WEIR_TRY(weir_shape_set_dims(ctx, 1, 2, (int64_t[]){batch, size}));
  WEIR_TRY(weir_shape_set_dims(ctx, 2, 2, (int64_t[]){batch, size}));
  return weir_shape_set_vector(ctx, 3, batch);
}

static weir_status_t* combined_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t *boxes, *scores;
  int64_t batch, joined, total, each;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 4, &boxes));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 3, &scores));
  for (int i = 2; i < 6; ++i) {
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), 0, NULL));
  }
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(boxes, 0), weir_shape_dim(scores, 0), &batch));
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(boxes, 1), weir_shape_dim(scores, 1), &joined));
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(boxes, 3), 4, &joined));
  const int64_t sets = weir_shape_dim(boxes, 2), classes = weir_shape_dim(scores, 2);
  if (sets >= 0 && sets != 1 && classes >= 0 && sets != classes) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "third dimension of boxes must be either 1 or equal to the third dimension "
                       "of scores");
  }
  for (int i = 2; i < 4; ++i) WEIR_TRY(check_scalar(ctx, i));
  WEIR_TRY(scalar_value(ctx, 3, &total));
  if (!weir_attrs_bool(weir_shape_attrs(ctx), "pad_per_class") || total < 0)
    return set_shapes(ctx, batch, total);
  WEIR_TRY(scalar_value(ctx, 2, &each));
  const bool is_known = each >= 0 && classes >= 0;
  return set_shapes(ctx, batch, is_known ? WEIR_MIN(total, each * classes) : -1);
}

// ---- inputs ----
typedef struct found_t {
  float score;
  int32_t box, class;
} found_t;

typedef struct combined_t {
  int64_t batch, count, sets, classes;  // sets of boxes: one, or one a class
  int64_t each, total, size;            // at most of a class and of an image; the outputs' size
  float threshold, least_score;
  bool clips;
  const float *boxes, *scores;
  found_t* found;         // owned: room for |each| of every class of every image
  int64_t* found_counts;  // owned: of every class of every image
  float *out_boxes, *out_scores, *out_classes;
  int32_t* out_counts;
  _Atomic(weir_status_t*) status;
} combined_t;

static weir_status_t* check_shapes(const weir_tensor_t* boxes, const weir_tensor_t* scores) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (boxes->rank == 0 || scores->rank == 0 || boxes->dims[0] != scores->dims[0])
    return WEIR_STATUS(INVALID_ARGUMENT, "boxes and scores must have same batch size");
  if (boxes->rank != 4) {
    return WEIR_STATUS(INVALID_ARGUMENT, "boxes must be 4-D [batch, num_boxes, q, 4], got shape %s",
                       weir_tensor_shape_text(boxes, text));
  }
  if (scores->rank != 3) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "scores must be 3-D [batch, num_boxes, num_classes], got shape %s",
                       weir_tensor_shape_text(scores, text));
  }
  if (boxes->dims[2] != 1 && boxes->dims[2] != scores->dims[2]) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "third dimension of boxes must be either 1 or num classes");
  }
  if (boxes->dims[3] != 4) return WEIR_STATUS(INVALID_ARGUMENT, "boxes must have 4 columns");
  if (boxes->dims[1] == scores->dims[1]) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "scores has incompatible shape");
}

static weir_status_t* check_scalars(const weir_kernel_ctx_t* ctx) {
  static const char* const kNames[4] = {"max_size_per_class", "max_total_size", "iou_threshold",
                                        "score_threshold"};
  char text[WEIR_SHAPE_TEXT_SIZE];
  for (int i = 0; i < 4; ++i) {
    const weir_tensor_t* t = weir_kernel_input(ctx, i + 2);
    if (t->rank != 0) {
      return WEIR_STATUS(INVALID_ARGUMENT, "%s must be 0-D, got shape %s", kNames[i],
                         weir_tensor_shape_text(t, text));
    }
    if (i < 2 && weir_tensor_int_at(t, 0) <= 0)
      return WEIR_STATUS(INVALID_ARGUMENT, "%s must be positive", kNames[i]);
  }
  const float threshold = *WEIR_TENSOR_DATA(weir_kernel_input(ctx, 4), float);
  if (threshold >= 0 && threshold <= 1) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "iou_threshold must be in [0, 1]");
}

static weir_status_t* read_inputs(const weir_kernel_ctx_t* ctx, combined_t* c) {
  const weir_tensor_t *boxes = weir_kernel_input(ctx, 0), *scores = weir_kernel_input(ctx, 1);
  const weir_attrs_t attrs = weir_kernel_attrs(ctx);
  WEIR_TRY(check_shapes(boxes, scores));
  WEIR_TRY(check_scalars(ctx));
  c->batch = boxes->dims[0], c->count = boxes->dims[1];
  c->sets = boxes->dims[2], c->classes = scores->dims[2];
  c->boxes = boxes->data, c->scores = scores->data;
  const int64_t most = weir_tensor_int_at(weir_kernel_input(ctx, 2), 0);
  c->each = WEIR_MIN(most, c->count);
  c->total = weir_tensor_int_at(weir_kernel_input(ctx, 3), 0);
  c->threshold = *WEIR_TENSOR_DATA(weir_kernel_input(ctx, 4), float);
  c->least_score = *WEIR_TENSOR_DATA(weir_kernel_input(ctx, 5), float);
  c->clips = weir_attrs_bool(attrs, "clip_boxes");
  c->size = c->total;
  if (c->count > INT32_MAX || c->classes > INT32_MAX ||
      (c->each > 0 && c->classes > INT32_MAX / c->each)) {
    return WEIR_STATUS(INVALID_ARGUMENT, "size_per_class * num_classes causes overflow");
  }
  if (weir_attrs_bool(attrs, "pad_per_class")) c->size = WEIR_MIN(c->total, most * c->classes);
  return NULL;
}

// ---- kernel ----
static const float* corners_of(const combined_t* c, int64_t image, const found_t* found) {
  const int64_t set = c->sets > 1 ? found->class : 0;
  return c->boxes + 4 * ((image * c->count + found->box) * c->sets + set);
}

// The best of one class of one image. |scratch|: room for corners and scores of all boxes.
static weir_status_t* suppress_class(combined_t* c, int64_t i, float* scratch) {
  const int64_t image = i / c->classes, class = i % c->classes;
  float *corners = scratch, *scores = scratch + 4 * c->count;
  for (int64_t k = 0; k < c->count; ++k) {
    const found_t box = {.box = (int32_t)k, .class = (int32_t) class};
    memcpy(corners + 4 * k, corners_of(c, image, &box), 4 * sizeof(float));
    scores[k] = c->scores[(image * c->count + k) * c->classes + class];
  }
  const weir_suppress_t suppress = {.count = c->count,
                                    .scores = scores,
                                    .boxes = corners,
                                    .most = c->each,
                                    .threshold = c->threshold,
                                    .least_score = c->least_score};
  weir_chosen_t chosen = {0};
  weir_status_t* status = weir_suppress(&suppress, &chosen);
  for (int64_t k = 0; !status && k < chosen.count; ++k) {
    c->found[i * c->each + k] =
        (found_t){.score = chosen.scores[k], .box = chosen.boxes[k], .class = (int32_t) class};
  }
  c->found_counts[i] = chosen.count;
  weir_chosen_free(&chosen);
  return status;
}

static void suppress_classes(void* arg, int64_t begin, int64_t end) {
  combined_t* c = arg;
  float* scratch = weir_alloc_array((size_t)(5 * c->count), sizeof(float));
  weir_status_t* status = scratch ? NULL : weir_out_of_memory();
  for (int64_t i = begin; !status && i < end; ++i) status = suppress_class(c, i, scratch);
  weir_free(scratch);
  // The first error is kept.
  weir_status_t* none = NULL;
  if (status && !atomic_compare_exchange_strong(&c->status, &none, status))
    weir_status_destroy(status);
}

static int compare_found(const void* a, const void* b) {
  const found_t *x = a, *y = b;
  if (x->score != y->score) return x->score > y->score ? -1 : 1;
  if (x->class != y->class) return x->class < y->class ? -1 : 1;
  return x->box < y->box ? -1 : x->box > y->box;
}

static float clipped(const combined_t* c, float x) {
  return c->clips ? WEIR_MAX(WEIR_MIN(x, 1.0f), 0.0f) : x;
}

// The best of all classes of one image, and zeros behind them.
static void put_image(const combined_t* c, int64_t image) {
  found_t* found = c->found + image * c->classes * c->each;
  int64_t count = 0;
  for (int64_t class = 0; class < c->classes; ++class) {
    const int64_t more = c->found_counts[image * c->classes + class];
    memmove(found + count, found + class * c->each, (size_t)more * sizeof *found);
    count += more;
  }
  if (count > 0) qsort(found, (size_t)count, sizeof *found, compare_found);
  count = WEIR_MIN(count, c->size);
  const int64_t at = image * c->size;
  memset(c->out_boxes + 4 * at, 0, (size_t)(4 * c->size) * sizeof(float));
  memset(c->out_scores + at, 0, (size_t)c->size * sizeof(float));
  memset(c->out_classes + at, 0, (size_t)c->size * sizeof(float));
  for (int64_t i = 0; i < count; ++i) {
    const float* corners = corners_of(c, image, &found[i]);
    for (int k = 0; k < 4; ++k) c->out_boxes[4 * (at + i) + k] = clipped(c, corners[k]);
    c->out_scores[at + i] = found[i].score;
    c->out_classes[at + i] = (float)found[i].class;
  }
  c->out_counts[image] = (int32_t)count;
}

static void put_images(void* arg, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) put_image(arg, i);
}

static weir_status_t* make_outputs(weir_kernel_ctx_t* ctx, combined_t* c) {
  weir_tensor_t *boxes, *scores, *classes, *counts;
  WEIR_TRY(weir_kernel_output(ctx, 0, 3, (int64_t[]){c->batch, c->size, 4}, &boxes));
  WEIR_TRY(weir_kernel_output(ctx, 1, 2, (int64_t[]){c->batch, c->size}, &scores));
  WEIR_TRY(weir_kernel_output(ctx, 2, 2, (int64_t[]){c->batch, c->size}, &classes));
  WEIR_TRY(weir_kernel_output(ctx, 3, 1, &c->batch, &counts));
  c->out_boxes = boxes->data, c->out_scores = scores->data;
  c->out_classes = classes->data, c->out_counts = counts->data;
  return NULL;
}

static weir_status_t* combined_cpu(weir_kernel_ctx_t* ctx) {
  combined_t c = {0};
  WEIR_TRY(read_inputs(ctx, &c));
  WEIR_TRY(make_outputs(ctx, &c));
  const int64_t lists = c.batch * c.classes;
  c.found = weir_alloc_array((size_t)(lists * c.each + 1), sizeof(found_t));
  c.found_counts = weir_calloc((size_t)lists + 1, sizeof(int64_t));
  weir_status_t* status = c.found && c.found_counts ? NULL : weir_out_of_memory();
  if (!status && c.count > 0) {
    weir_pool_for(weir_kernel_pool(ctx), lists, (double)c.count * 30.0, suppress_classes, &c);
    status = atomic_load(&c.status);
  }
  if (!status) {
    weir_pool_for(weir_kernel_pool(ctx), c.batch, (double)(c.classes * c.each + c.size) * 20.0,
                  put_images, &c);
  }
  weir_free(c.found);
  weir_free(c.found_counts);
  return status;
}

const weir_op_module_t weir_ops_image_combined_non_max_suppression = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "CombinedNonMaxSuppression",
         .summary = "The best boxes of all classes that do not overlap within one",
         .attrs = "pad_per_class: bool = false; clip_boxes: bool = true",
         .inputs = "boxes: float; scores: float; max_output_size_per_class: int32; "
                   "max_total_size: int32; iou_threshold: float; score_threshold: float",
         .outputs = "nmsed_boxes: float; nmsed_scores: float; nmsed_classes: float; "
                    "valid_detections: int32",
         .infer_shape = combined_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = combined_cpu)},
        {0}}};

// non_max_suppression.c — NonMaxSuppression of all versions: the best boxes that do not overlap.
#include <float.h>

#include "kernel/image/suppress.h"
#include "ops/image/resize.h"
#include "tensor/cast.h"
#include "tensor/numeric.h"

typedef struct nms_t {
  weir_suppress_t s;
  bool pads;
  weir_tensor_t *boxes, *scores;  // owned: as floats, where they are halves
} nms_t;

// ---- shapes ----
static weir_status_t* check_scalars(weir_shape_ctx_t* ctx, int first) {
  for (int i = first; i < ctx->node->input_count; ++i) {
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), 0, NULL));
  }
  return NULL;
}

static weir_status_t* nms_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t *boxes, *scores;
  int64_t joined;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 2, &boxes));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, &scores));
  WEIR_TRY(check_scalars(ctx, 2));
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(boxes, 0), weir_shape_dim(scores, 0), &joined));
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(boxes, 1), 4, &joined));
  return weir_shape_set_vector(ctx, 0, -1);
}

// All selected are vectors, of the size that is padded to; the last output is their number.
static weir_status_t* padded_shape(weir_shape_ctx_t* ctx) {
  const weir_tensor_t* most = weir_shape_value(ctx, 2);
  const int last = ctx->node->output_count - 1;
  int64_t size = -1;
  WEIR_TRY(nms_shape(ctx));
  if (weir_attrs_bool(weir_shape_attrs(ctx), "pad_to_max_output_size") && most) {
    size = weir_tensor_int_at(most, 0);
    if (size < 0) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Dimension size, given by scalar input %d, must be non-negative but is "
                         "%lld",
                         2, (long long)size);
    }
  }
  for (int i = 0; i < last; ++i) WEIR_TRY(weir_shape_set_vector(ctx, i, size));
  return weir_shape_set_scalar(ctx, last);
}

static weir_status_t* overlaps_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t *overlaps, *scores;
  int64_t joined;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 2, &overlaps));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, &scores));
  WEIR_TRY(check_scalars(ctx, 2));
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(overlaps, 0), weir_shape_dim(scores, 0), &joined));
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(overlaps, 0), weir_shape_dim(overlaps, 1), &joined));
  return weir_shape_set_vector(ctx, 0, -1);
}

// ---- inputs ----
// A scalar of float or half, as T: what is a half there is rounded to one.
static weir_status_t* read_scalar(const weir_kernel_ctx_t* ctx, int i, const char* name,
                                  weir_dtype_t dtype, float* out_value) {
  const weir_tensor_t* t = weir_kernel_input(ctx, i);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (t->rank != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "%s must be 0-D, got shape %s", name,
                       weir_tensor_shape_text(t, text));
  }
  weir_half_t half;
  if (dtype == WEIR_DTYPE_HALF && weir_tensor_type(t) == WEIR_DTYPE_FLOAT) {
    WEIR_TRY(weir_cast_elements(WEIR_DTYPE_HALF, &half, WEIR_DTYPE_FLOAT, t->data, 1));
    return weir_cast_elements(WEIR_DTYPE_FLOAT, out_value, WEIR_DTYPE_HALF, &half, 1);
  }
  return weir_cast_elements(WEIR_DTYPE_FLOAT, out_value, weir_tensor_type(t), t->data, 1);
}

static weir_status_t* read_most(const weir_kernel_ctx_t* ctx, nms_t* n) {
  const weir_tensor_t* t = weir_kernel_input(ctx, 2);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (t->rank != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "max_output_size must be 0-D, got shape %s",
                       weir_tensor_shape_text(t, text));
  }
  n->s.most = weir_tensor_int_at(t, 0);
  return NULL;
}

static weir_status_t* check_threshold(const nms_t* n) {
  if (n->s.threshold >= 0 && n->s.threshold <= 1) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "iou_threshold must be in [0, 1]");
}

static weir_status_t* read_scores(weir_kernel_ctx_t* ctx, nms_t* n) {
  const weir_tensor_t* scores = weir_kernel_input(ctx, 1);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (scores->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "scores must be 1-D%s (Shape must be rank 1 but is rank %d)",
                       weir_tensor_shape_text(scores, text), scores->rank);
  }
  if (scores->count != n->s.count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "scores has incompatible shape (Dimensions must be equal, but are %lld and "
                       "%lld)",
                       (long long)n->s.count, (long long)scores->count);
  }
  if (n->s.count > INT32_MAX) return WEIR_STATUS(INVALID_ARGUMENT, "too many boxes");
  if (n->s.most < 0) return WEIR_STATUS(INVALID_ARGUMENT, "output size must be non-negative");
  return weir_resize_as_floats(ctx, scores, &n->scores, &n->s.scores);
}

static weir_status_t* read_boxes(weir_kernel_ctx_t* ctx, nms_t* n) {
  const weir_tensor_t* boxes = weir_kernel_input(ctx, 0);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (boxes->rank != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "boxes must be 2-D%s (Shape must be rank 2 but is rank %d)",
                       weir_tensor_shape_text(boxes, text), boxes->rank);
  }
  if (boxes->dims[1] != 4) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "boxes must have 4 columns (Dimension must be 4 but is %lld)",
                       (long long)boxes->dims[1]);
  }
  n->s.count = boxes->dims[0];
  n->s.is_half = weir_tensor_type(boxes) == WEIR_DTYPE_HALF;
  WEIR_TRY(read_scores(ctx, n));
  return weir_resize_as_floats(ctx, boxes, &n->boxes, &n->s.boxes);
}

static weir_status_t* read_overlaps(weir_kernel_ctx_t* ctx, nms_t* n) {
  const weir_tensor_t* overlaps = weir_kernel_input(ctx, 0);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (overlaps->rank != 2 || overlaps->dims[0] != overlaps->dims[1]) {
    return WEIR_STATUS(INVALID_ARGUMENT, "overlaps must be %s%s",
                       overlaps->rank != 2 ? "2-D" : "square",
                       weir_tensor_shape_text(overlaps, text));
  }
  n->s.count = overlaps->dims[0];
  n->s.overlaps = overlaps->data;
  return read_scores(ctx, n);
}

// ---- kernels ----
static weir_status_t* put_chosen(weir_kernel_ctx_t* ctx, const nms_t* n,
                                 const weir_chosen_t* chosen) {
  const int64_t size = n->pads ? n->s.most : chosen->count, tail = size - chosen->count;
  const int outputs = ctx->output_count;
  weir_tensor_t *boxes = NULL, *scores = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, 1, &size, &boxes));
  int32_t* data = boxes->data;
  if (chosen->count) memcpy(data, chosen->boxes, (size_t)chosen->count * sizeof(int32_t));
  if (tail) memset(data + chosen->count, 0, (size_t)tail * sizeof(int32_t));
  if (outputs == 3) {
    WEIR_TRY(weir_kernel_output(ctx, 1, 1, &size, &scores));
    const weir_dtype_t dtype = weir_tensor_type(scores);
    const size_t element = weir_dtype_size(dtype), used = (size_t)chosen->count * element;
    WEIR_TRY(
        weir_cast_elements(dtype, scores->data, WEIR_DTYPE_FLOAT, chosen->scores, chosen->count));
    if (tail) memset((char*)scores->data + used, 0, (size_t)tail * element);
  }
  return outputs > 1 ? weir_kernel_output_int(ctx, outputs - 1, chosen->count) : NULL;
}

// Ends what |status| may have left half done.
static weir_status_t* finish(weir_kernel_ctx_t* ctx, nms_t* n, weir_status_t* status) {
  weir_chosen_t chosen = {0};
  if (!status) status = weir_suppress(&n->s, &chosen);
  if (!status) status = put_chosen(ctx, n, &chosen);
  weir_chosen_free(&chosen);
  weir_tensor_release(n->boxes);
  weir_tensor_release(n->scores);
  return status;
}

static weir_status_t* nms_v1_cpu(weir_kernel_ctx_t* ctx) {
  nms_t n = {.s = {.threshold = weir_attrs_float(weir_kernel_attrs(ctx), "iou_threshold"),
                   .least_score = -FLT_MAX}};
  WEIR_TRY(read_most(ctx, &n));
  WEIR_TRY(check_threshold(&n));
  return finish(ctx, &n, read_boxes(ctx, &n));
}

// Of V2 to V5, which have more inputs one after the other.
static weir_status_t* nms_cpu(weir_kernel_ctx_t* ctx) {
  const weir_dtype_t dtype = weir_tensor_type(weir_kernel_input(ctx, 0));
  const float lowest = dtype == WEIR_DTYPE_HALF ? -65504.0f : -FLT_MAX;
  nms_t n = {.s = {.least_score = lowest}};
  WEIR_TRY(read_most(ctx, &n));
  WEIR_TRY(read_scalar(ctx, 3, "iou_threshold", dtype, &n.s.threshold));
  WEIR_TRY(check_threshold(&n));
  if (ctx->input_count > 4)
    WEIR_TRY(read_scalar(ctx, 4, "score_threshold", dtype, &n.s.least_score));
  if (ctx->input_count > 5) WEIR_TRY(read_scalar(ctx, 5, "soft_nms_sigma", dtype, &n.s.sigma));
  if (n.s.sigma < 0) return WEIR_STATUS(INVALID_ARGUMENT, "soft_nms_sigma_val must be >= 0.0");
  const weir_attr_t* pads = weir_attrs_find(weir_kernel_attrs(ctx), "pad_to_max_output_size");
  n.pads = pads && pads->u.b;
  return finish(ctx, &n, read_boxes(ctx, &n));
}

static weir_status_t* nms_overlaps_cpu(weir_kernel_ctx_t* ctx) {
  nms_t n = {0};
  WEIR_TRY(read_most(ctx, &n));
  WEIR_TRY(read_scalar(ctx, 3, "overlap_threshold", WEIR_DTYPE_FLOAT, &n.s.threshold));
  WEIR_TRY(read_scalar(ctx, 4, "score_threshold", WEIR_DTYPE_FLOAT, &n.s.least_score));
  return finish(ctx, &n, read_overlaps(ctx, &n));
}

#define NMS_TYPE "T: {half, float} = DT_FLOAT"
#define NMS_TYPES NMS_TYPE "; T_threshold: {half, float} = DT_FLOAT"
#define NMS_PADS "; pad_to_max_output_size: bool = false"
#define NMS_INPUTS "boxes: T; scores: T; max_output_size: int32; "
#define NMS_SUMMARY "The best boxes that do not overlap"

const weir_op_module_t weir_ops_image_non_max_suppression = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "NonMaxSuppression",
         .summary = NMS_SUMMARY,
         .attrs = "iou_threshold: float = 0.5",
         .inputs = "boxes: float; scores: float; max_output_size: int32",
         .outputs = "selected_indices: int32",
         .flags = WEIR_OP_NO_GRADIENT,
         .infer_shape = nms_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = nms_v1_cpu)},
        {.name = "NonMaxSuppressionV2",
         .summary = NMS_SUMMARY,
         .attrs = NMS_TYPES,
         .inputs = NMS_INPUTS "iou_threshold: T_threshold",
         .outputs = "selected_indices: int32",
         .flags = WEIR_OP_NO_GRADIENT,
         .infer_shape = nms_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = nms_cpu)},
        {.name = "NonMaxSuppressionV3",
         .summary = NMS_SUMMARY,
         .attrs = NMS_TYPES,
         .inputs = NMS_INPUTS "iou_threshold: T_threshold; score_threshold: T_threshold",
         .outputs = "selected_indices: int32",
         .infer_shape = nms_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = nms_cpu)},
        {.name = "NonMaxSuppressionV4",
         .summary = NMS_SUMMARY,
         .attrs = NMS_TYPES NMS_PADS,
         .inputs = NMS_INPUTS "iou_threshold: T_threshold; score_threshold: T_threshold",
         .outputs = "selected_indices: int32; valid_outputs: int32",
         .infer_shape = padded_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = nms_cpu)},
        {.name = "NonMaxSuppressionV5",
         .summary = "The best boxes, where one that overlaps counts for less",
         .attrs = NMS_TYPE NMS_PADS,
         .inputs = NMS_INPUTS "iou_threshold: T; score_threshold: T; soft_nms_sigma: T",
         .outputs = "selected_indices: int32; selected_scores: T; valid_outputs: int32",
         .infer_shape = padded_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = nms_cpu)},
        {.name = "NonMaxSuppressionWithOverlaps",
         .summary = "The best boxes that do not overlap, by a matrix of overlaps",
         .inputs = "overlaps: float; scores: float; max_output_size: int32; "
                   "overlap_threshold: float; score_threshold: float",
         .outputs = "selected_indices: int32",
         .flags = WEIR_OP_NO_GRADIENT,
         .infer_shape = overlaps_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = nms_overlaps_cpu)},
        {0}}};

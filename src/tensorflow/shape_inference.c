// shape_inference.c — ops.h: what shape functions of programs see and say. The context is Weir's.
#include <inttypes.h>

#include "op/shape_ctx.h"
#include "tensorflow/c/ops.h"
#include "tensorflow/internal.h"

struct TF_ShapeHandle {
  const weir_shape_t* shape;  // borrowed from the context, never NULL
};

struct TF_DimensionHandle {
  int64_t value;  // -1: not known
};

static weir_shape_ctx_t* inside(TF_ShapeInferenceContext* ctx) { return (weir_shape_ctx_t*)ctx; }

static TF_ShapeHandle* new_handle(const weir_shape_t* shape) {
  TF_ShapeHandle* handle = shape ? weir_malloc(sizeof(*handle)) : NULL;
  if (handle) handle->shape = shape;
  return handle;
}

// ---- handles ----

TF_ShapeHandle* TF_NewShapeHandle(void) { return new_handle(&weir_shape_unknown); }
void TF_DeleteShapeHandle(TF_ShapeHandle* handle) { weir_free(handle); }

TF_DimensionHandle* TF_NewDimensionHandle(void) {
  TF_DimensionHandle* handle = weir_malloc(sizeof(*handle));
  if (handle) handle->value = -1;
  return handle;
}
void TF_DeleteDimensionHandle(TF_DimensionHandle* handle) { weir_free(handle); }
int TF_DimensionHandleValueKnown(TF_DimensionHandle* dim_handle) { return dim_handle->value >= 0; }
int64_t TF_DimensionHandleValue(TF_DimensionHandle* dim_handle) { return dim_handle->value; }

TF_ShapeHandle* TF_ShapeInferenceContextScalar(TF_ShapeInferenceContext* ctx) {
  (void)ctx;
  return new_handle(&weir_shape_scalar);
}

TF_ShapeHandle* TF_ShapeInferenceContextVectorFromSize(TF_ShapeInferenceContext* ctx, size_t size) {
  const int64_t dim = (int64_t)size;
  return new_handle(weir_shape_make(inside(ctx)->arena, 1, &dim));
}

// ---- inputs and outputs ----

int64_t TF_ShapeInferenceContextNumInputs(TF_ShapeInferenceContext* ctx) {
  return inside(ctx)->node->input_count;
}

void TF_ShapeInferenceContextGetInput(TF_ShapeInferenceContext* ctx, int i, TF_ShapeHandle* handle,
                                      TF_Status* status) {
  const int count = inside(ctx)->node->input_count;
  if (i < 0 || i >= count) {
    tf_status_take(status, WEIR_STATUS(INVALID_ARGUMENT,
                                       "input index %d is out of range: the op has %d", i, count));
    return;
  }
  tf_status_clear(status);
  handle->shape = weir_shape_input(inside(ctx), i);
}

void TF_ShapeInferenceContextSetOutput(TF_ShapeInferenceContext* ctx, int i, TF_ShapeHandle* handle,
                                       TF_Status* status) {
  const int count = inside(ctx)->node->output_count;
  const bool is_there = i >= 0 && i < count;
  tf_status_take(
      status, is_there ? weir_shape_set(inside(ctx), i, handle->shape)
                       : WEIR_STATUS(INVALID_ARGUMENT,
                                     "output index %d is out of range: the op has %d", i, count));
}

void TF_ShapeInferenceContextSetUnknownShape(TF_ShapeInferenceContext* ctx, TF_Status* status) {
  tf_status_take(status, weir_shape_fn_unknown(inside(ctx)));
}

void TF_ShapeInferenceContext_GetAttrType(TF_ShapeInferenceContext* ctx, const char* attr_name,
                                          TF_DataType* val, TF_Status* status) {
  const weir_attr_t* value = NULL;
  weir_status_t* result = tf_attr_of(inside(ctx)->node, attr_name, WEIR_ATTR_TYPE, false, &value);
  if (tf_status_take(status, result)) *val = (TF_DataType)value->u.type;
}

// ---- looking at shapes ----

int64_t TF_ShapeInferenceContextRank(TF_ShapeInferenceContext* ctx, TF_ShapeHandle* handle) {
  (void)ctx;
  return WEIR_MAX(handle->shape->rank, -1);
}

int TF_ShapeInferenceContextRankKnown(TF_ShapeInferenceContext* ctx, TF_ShapeHandle* handle) {
  return TF_ShapeInferenceContextRank(ctx, handle) >= 0;
}

void TF_ShapeInferenceContextDim(TF_ShapeInferenceContext* ctx, TF_ShapeHandle* shape_handle,
                                 int64_t i, TF_DimensionHandle* result) {
  (void)ctx;
  const weir_shape_t* shape = shape_handle->shape;
  const bool is_there = shape->rank >= 0 && i >= -shape->rank && i < shape->rank;
  result->value = is_there ? weir_shape_dim(shape, (int)i) : -1;
}

// ---- checking ranks ----

static weir_status_t* check_rank(int64_t rank) {
  if (rank >= 0 && rank <= INT32_MAX) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Rank cannot be negative or exceed %d: %" PRId64, INT32_MAX,
                     rank);
}

void TF_ShapeInferenceContextWithRank(TF_ShapeInferenceContext* ctx, TF_ShapeHandle* handle,
                                      int64_t rank, TF_ShapeHandle* result, TF_Status* status) {
  const weir_shape_t* shape = NULL;
  weir_status_t* failure = check_rank(rank);
  if (!failure) failure = weir_shape_with_rank(inside(ctx), handle->shape, (int)rank, &shape);
  if (tf_status_take(status, failure)) result->shape = shape;
}

void TF_ShapeInferenceContextWithRankAtLeast(TF_ShapeInferenceContext* ctx, TF_ShapeHandle* handle,
                                             int64_t rank, TF_ShapeHandle* result,
                                             TF_Status* status) {
  weir_status_t* failure = check_rank(rank);
  if (!failure) failure = weir_shape_at_least(inside(ctx), handle->shape, (int)rank);
  if (tf_status_take(status, failure)) result->shape = handle->shape;
}

void TF_ShapeInferenceContextWithRankAtMost(TF_ShapeInferenceContext* ctx, TF_ShapeHandle* handle,
                                            int64_t rank, TF_ShapeHandle* result,
                                            TF_Status* status) {
  weir_status_t* failure = check_rank(rank);
  if (!failure) failure = weir_shape_at_most(inside(ctx), handle->shape, (int)rank);
  if (tf_status_take(status, failure)) result->shape = handle->shape;
}

// ---- making shapes of shapes ----

// Where |index|, which may count from the end, is in a shape of |rank| dimensions.
static weir_status_t* place(const char* what, int64_t index, int rank, int* out_place) {
  const int64_t place = index < 0 ? index + rank : WEIR_MIN(index, rank);
  if (place < 0)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Subshape %s out of bounds: %" PRId64 ", for shape with rank %d", what,
                       index, rank);
  *out_place = (int)place;
  return NULL;
}

static weir_status_t* subshape(weir_shape_ctx_t* ctx, const weir_shape_t* shape, int64_t start,
                               int64_t end, const weir_shape_t** out_shape) {
  int first = 0;
  int last = 0;
  *out_shape = &weir_shape_unknown;
  if (shape->rank < 0) return NULL;
  WEIR_TRY(place("start", start, shape->rank, &first));
  WEIR_TRY(place("end", end, shape->rank, &last));
  if (first > last)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Subshape must have computed start <= end, but is %d and %d (computed from "
                       "start %" PRId64 " and end %" PRId64 " over shape with rank %d)",
                       first, last, start, end, shape->rank);
  *out_shape = weir_shape_sub(ctx, shape, first, last);
  return *out_shape ? NULL : weir_out_of_memory();
}

void TF_ShapeInferenceContextSubshape(TF_ShapeInferenceContext* ctx, TF_ShapeHandle* shape_handle,
                                      int64_t start, int64_t end, TF_ShapeHandle* result,
                                      TF_Status* status) {
  const weir_shape_t* shape = NULL;
  weir_status_t* failure = subshape(inside(ctx), shape_handle->shape, start, end, &shape);
  if (tf_status_take(status, failure)) result->shape = shape;
}

void TF_ShapeInferenceContextConcatenateShapes(TF_ShapeInferenceContext* ctx, TF_ShapeHandle* first,
                                               TF_ShapeHandle* second, TF_ShapeHandle* result,
                                               TF_Status* status) {
  const weir_shape_t* shape = weir_shape_concat(inside(ctx), first->shape, second->shape);
  if (tf_status_take(status, shape ? NULL : weir_out_of_memory())) result->shape = shape;
}

// cudnn_graph.c — A convolution, with what follows it or without, as a graph of cuDNN's operations.
#include <string.h>

#include "kernel/conv/cudnn_internal.h"

enum { MOST_DIMS = 5, BETWEEN_ID = 16 };  // tensors between operations are counted from there

static weir_status_t* check(int result, const char* doing) {
  return result == 0 ? NULL
                     : WEIR_STATUS(INTERNAL, "cuDNN: describing %s: error %d", doing, result);
}

// What the descriptions have in common.
typedef struct graph_ctx_t {
  const cudnn_t* dnn;
  const dnn_functions_t* call;
  const weir_cudnn_conv_t* conv;
  weir_conv_t shape;  // the convolution's, as it is in the graph
  cudnn_graph_t* graph;
} graph_ctx_t;

static int make(const graph_ctx_t* g, int kind, dnn_t* out_made) {
  WEIR_CHECK(g->graph->part_count < (int)WEIR_COUNT_OF(g->graph->parts));
  int result = g->call->make(kind, out_made);
  if (!result) g->graph->parts[g->graph->part_count++] = *out_made;
  return result;
}

static int type_of(weir_dtype_t dtype) {
  return dtype == WEIR_DTYPE_DOUBLE     ? 1
         : dtype == WEIR_DTYPE_HALF     ? 2
         : dtype == WEIR_DTYPE_BFLOAT16 ? 9
                                        : 0;
}

// What sums are computed in.
static int compute_type(const weir_cudnn_conv_t* c) {
  return type_of(c->dtype == WEIR_DTYPE_DOUBLE ? WEIR_DTYPE_DOUBLE : WEIR_DTYPE_FLOAT);
}

// Axes of an image are two; a volume has all three.
static int first_axis(const weir_conv_t* conv) {
  return conv->in[0] == 1 && conv->filter[0] == 1 && conv->out[0] == 1 ? 1 : 0;
}

// ---- tensors ----

// [outer, inner, sizes…], whose memory has |inner| before or after the sizes.
typedef struct tensor_t {
  int64_t id, outer, inner;
  const int64_t* sizes;
  bool is_virtual;  // between operations: it has no memory
} tensor_t;

static weir_status_t* describe_tensor(const graph_ctx_t* g, const tensor_t* t, dnn_t* out_tensor) {
  const weir_cudnn_conv_t* c = g->conv;
  int64_t dims[MOST_DIMS] = {t->outer, t->inner}, strides[MOST_DIMS];
  int64_t alignment = c->is_unaligned ? (int64_t)weir_dtype_size(c->dtype) : 16;
  int first = first_axis(&g->shape), axes = 3 - first;
  int type = t->is_virtual ? compute_type(c) : type_of(c->dtype);
  for (int i = 0; i < axes; ++i) dims[2 + i] = t->sizes[first + i];
  int64_t stride = c->is_nchw ? 1 : t->inner;
  for (int i = axes; i-- > 0; stride *= dims[2 + i]) strides[2 + i] = stride;
  strides[1] = c->is_nchw ? stride : 1;
  strides[0] = c->is_nchw ? stride * t->inner : stride;
  const dnn_functions_t* call = g->call;
  int result = make(g, DNN_TENSOR, out_tensor);
  dnn_t made = *out_tensor;
  if (!result) result = call->set(made, DNN_TENSOR_TYPE, DNN_TYPE_DATA_TYPE, 1, &type);
  if (!result) result = call->set(made, DNN_TENSOR_DIMS, DNN_TYPE_INT64, 2 + axes, dims);
  if (!result) result = call->set(made, DNN_TENSOR_STRIDES, DNN_TYPE_INT64, 2 + axes, strides);
  if (!result) result = call->set(made, DNN_TENSOR_ID, DNN_TYPE_INT64, 1, &t->id);
  if (!result) result = call->set(made, DNN_TENSOR_ALIGNMENT, DNN_TYPE_INT64, 1, &alignment);
  if (!result && t->is_virtual)
    result = call->set(made, DNN_TENSOR_IS_VIRTUAL, DNN_TYPE_BOOLEAN, 1, &t->is_virtual);
  return check(result ? result : call->finish(made), "a tensor");
}

// The |i|-th of the tensors of the output's shape that operations hand on.
static weir_status_t* describe_between(const graph_ctx_t* g, int i, dnn_t* out_tensor) {
  tensor_t t = {.id = BETWEEN_ID + i,
                .outer = g->shape.batch,
                .inner = g->shape.out_c,
                .sizes = g->shape.out,
                .is_virtual = true};
  return describe_tensor(g, &t, out_tensor);
}

// ---- the convolution ----

static weir_status_t* describe_convolution(const graph_ctx_t* g, dnn_t* out_convolution) {
  const weir_conv_t* v = &g->shape;
  const dnn_functions_t* call = g->call;
  int first = first_axis(v), mode = DNN_CROSS_CORRELATION, type = compute_type(g->conv);
  int64_t axes = 3 - first;
  int result = make(g, DNN_CONVOLUTION, out_convolution);
  dnn_t made = *out_convolution;
  if (!result) result = call->set(made, DNN_CONVOLUTION_TYPE, DNN_TYPE_DATA_TYPE, 1, &type);
  if (!result) result = call->set(made, DNN_CONVOLUTION_MODE, DNN_TYPE_MODE, 1, &mode);
  if (!result) result = call->set(made, DNN_CONVOLUTION_AXES, DNN_TYPE_INT64, 1, &axes);
  const struct {
    int name;
    const int64_t* values;
  } lists[] = {{DNN_CONVOLUTION_DILATIONS, v->dilation},
               {DNN_CONVOLUTION_STRIDES, v->stride},
               {DNN_CONVOLUTION_PADS_BEFORE, v->pad},
               {DNN_CONVOLUTION_PADS_AFTER, v->pad}};
  for (size_t i = 0; i < WEIR_COUNT_OF(lists) && !result; ++i)
    result = call->set(made, lists[i].name, DNN_TYPE_INT64, axes, lists[i].values + first);
  return check(result ? result : call->finish(made), "a convolution");
}

typedef struct tensors_t {
  dnn_t x, w, y;
} tensors_t;

static weir_status_t* describe_operation(const graph_ctx_t* g, const tensors_t* t,
                                         dnn_t convolution, dnn_t* out_operation) {
  static const int kinds[] = {DNN_FORWARD, DNN_BY_INPUT, DNN_BY_FILTER};
  static const int firsts[] = {DNN_FORWARD_FIRST, DNN_BY_INPUT_FIRST, DNN_BY_FILTER_FIRST};
  const dnn_functions_t* call = g->call;
  bool is_double = g->conv->dtype == WEIR_DTYPE_DOUBLE;
  int first = firsts[g->conv->kind], scale_type = is_double ? DNN_TYPE_DOUBLE : DNN_TYPE_FLOAT;
  double one = 1, zero = 0;
  float one_float = 1, zero_float = 0;
  const void* alpha = is_double ? (const void*)&one : &one_float;
  const void* beta = is_double ? (const void*)&zero : &zero_float;
  int result = make(g, kinds[g->conv->kind], out_operation);
  dnn_t made = *out_operation;
  if (!result) result = call->set(made, first, scale_type, 1, alpha);
  if (!result) result = call->set(made, first + 1, scale_type, 1, beta);
  const dnn_t all[] = {convolution, t->w, t->x, t->y};
  for (int i = 0; i < 4 && !result; ++i)
    result = call->set(made, first + 2 + i, DNN_TYPE_DESCRIPTOR, 1, &all[i]);
  return check(result ? result : call->finish(made), "an operation");
}

// ---- what follows ----

// y = |mode|(x, b); |b| is NULL for a function of one argument.
static weir_status_t* describe_pointwise(const graph_ctx_t* g, int mode, dnn_t x, dnn_t b, dnn_t y,
                                         dnn_t* out_operation) {
  const dnn_functions_t* call = g->call;
  dnn_t function = NULL;
  int type = compute_type(g->conv), nan_mode = DNN_PROPAGATE_NAN;
  int result = make(g, DNN_POINTWISE, &function);
  if (!result) result = call->set(function, DNN_POINTWISE_MODE, DNN_TYPE_POINTWISE_MODE, 1, &mode);
  if (!result) result = call->set(function, DNN_POINTWISE_TYPE, DNN_TYPE_DATA_TYPE, 1, &type);
  if (!result && mode == DNN_POINTWISE_RELU)
    result = call->set(function, DNN_POINTWISE_NAN_MODE, DNN_TYPE_NAN_MODE, 1, &nan_mode);
  if (!result) result = call->finish(function);
  if (!result) result = make(g, DNN_POINTWISE_OPERATION, out_operation);
  dnn_t made = *out_operation;
  const dnn_t all[] = {function, x, b, y};
  for (int i = 0; i < 4 && !result; ++i) {
    if (all[i])
      result = call->set(made, DNN_POINTWISE_OPERATION_OF + i, DNN_TYPE_DESCRIPTOR, 1, &all[i]);
  }
  return check(result ? result : call->finish(made), "a function");
}

// From |sums|, what the convolution makes, to |y|.
static weir_status_t* describe_tail(const graph_ctx_t* g, dnn_t sums, dnn_t y, dnn_t* operations,
                                    int* count) {
  static const int64_t ones[] = {1, 1, 1};
  dnn_t bias = NULL, added = y;
  bool has_relu = g->conv->tail == WEIR_CONV_BIAS_RELU;
  tensor_t t = {.id = BIAS_ID, .outer = 1, .inner = g->shape.out_c, .sizes = ones};
  WEIR_TRY(describe_tensor(g, &t, &bias));
  if (has_relu) WEIR_TRY(describe_between(g, 1, &added));
  WEIR_TRY(describe_pointwise(g, DNN_POINTWISE_ADD, sums, bias, added, &operations[(*count)++]));
  if (!has_relu) return NULL;
  return describe_pointwise(g, DNN_POINTWISE_RELU, added, NULL, y, &operations[(*count)++]);
}

// ---- the whole ----

static int64_t rounded_up(int64_t count, int64_t unit) { return (count + unit - 1) / unit * unit; }

// Whether vectors of channels, 16 bytes each, would be welcome: images of few channels do not keep
// tensor cores busy.
static bool wants_vectors(const weir_device_t* device, const weir_cudnn_conv_t* conv) {
  bool has_tensor_cores = conv->dtype == WEIR_DTYPE_HALF || conv->dtype == WEIR_DTYPE_BFLOAT16 ||
                          (conv->dtype == WEIR_DTYPE_FLOAT && weir_cuda_allows_tf32(device));
  return has_tensor_cores && !conv->is_nchw && conv->conv.groups == 1 &&
         conv->kind != WEIR_CONV_BY_INPUT;
}

// Images of colours, say, whose windows go by two pixels or four.
static bool is_foldable(const weir_conv_t* v) {
  const int64_t few = 4, most = 4, stride = v->stride[1];
  if (v->in[0] != 1 || v->filter[0] != 1 || v->in_c > few) return false;
  if (stride < 2 || stride > most || v->stride[2] != stride) return false;
  return v->dilation[1] == 1 && v->dilation[2] == 1;
}

// Squares of pixels become pixels, padding and all. Windows begin where such a square does, and go
// on to the end of their last one, where weights are 0.
static void fold_shape(const weir_conv_t* v, int64_t width, weir_conv_t* out) {
  const int64_t stride = v->stride[1];
  out->in_c = out->group_in = rounded_up(v->in_c * stride * stride, width);
  for (int axis = 1; axis < 3; ++axis) {
    out->filter[axis] = (v->filter[axis] + stride - 1) / stride;
    out->in[axis] = v->out[axis] + out->filter[axis] - 1;
    out->stride[axis] = 1;
    out->pad[axis] = 0;
  }
}

bool weir_cudnn_shape(const weir_device_t* device, const weir_cudnn_conv_t* conv, int way,
                      weir_conv_t* out_shape) {
  const weir_conv_t* v = &conv->conv;
  const int64_t width = 16 / (int64_t)weir_dtype_size(conv->dtype);
  *out_shape = *v;
  if (way & WAY_TAIL && conv->tail == WEIR_CONV_NO_TAIL) return false;
  if (!(way & (WAY_WIDE | WAY_FOLDED))) return true;
  if ((way & WAY_WIDE && way & WAY_FOLDED) || !wants_vectors(device, conv)) return false;
  if (way & WAY_WIDE) out_shape->in_c = out_shape->group_in = rounded_up(v->in_c, width);
  else if (is_foldable(v)) fold_shape(v, width, out_shape);
  return out_shape->in_c != v->in_c;
}

static weir_status_t* describe_graph(const graph_ctx_t* g, dnn_t* operations, int count) {
  const dnn_functions_t* call = g->call;
  int result = make(g, DNN_GRAPH, &g->graph->graph);
  dnn_t made = g->graph->graph;
  if (!result)
    result = call->set(made, DNN_GRAPH_OPERATIONS, DNN_TYPE_DESCRIPTOR, count, operations);
  if (!result) result = call->set(made, DNN_GRAPH_HANDLE, DNN_TYPE_HANDLE, 1, &g->dnn->handle);
  return check(result ? result : call->finish(made), "a graph");
}

weir_status_t* weir_cudnn_describe(const cudnn_t* dnn, const weir_cudnn_conv_t* conv, int way,
                                   cudnn_graph_t* out_graph) {
  memset(out_graph, 0, sizeof(*out_graph));
  graph_ctx_t g = {.dnn = dnn, .call = &dnn->call, .conv = conv, .graph = out_graph};
  if (!weir_cudnn_shape(dnn->device, conv, way, &g.shape))
    return WEIR_STATUS(INVALID_ARGUMENT, "cuDNN: there is no such graph of this convolution");
  const weir_conv_t* v = &g.shape;
  tensors_t t = {NULL};
  dnn_t y = NULL, convolution = NULL, operations[3] = {NULL};
  int count = 1;
  const tensor_t tensors[] = {
      {.id = X_ID, .outer = v->batch, .inner = v->in_c, .sizes = v->in},
      {.id = W_ID, .outer = v->out_c, .inner = v->group_in, .sizes = v->filter},
      {.id = Y_ID, .outer = v->batch, .inner = v->out_c, .sizes = v->out}};
  WEIR_TRY(describe_tensor(&g, &tensors[0], &t.x));
  WEIR_TRY(describe_tensor(&g, &tensors[1], &t.w));
  WEIR_TRY(describe_tensor(&g, &tensors[2], &y));
  t.y = y;
  if (way & WAY_TAIL) WEIR_TRY(describe_between(&g, 0, &t.y));
  WEIR_TRY(describe_convolution(&g, &convolution));
  WEIR_TRY(describe_operation(&g, &t, convolution, &operations[0]));
  if (way & WAY_TAIL) WEIR_TRY(describe_tail(&g, t.y, y, operations, &count));
  return describe_graph(&g, operations, count);
}

void weir_cudnn_graph_drop(const cudnn_t* dnn, cudnn_graph_t* graph) {
  while (graph->part_count > 0) weir_cudnn_drop(dnn, graph->parts[--graph->part_count]);
  graph->graph = NULL;
}

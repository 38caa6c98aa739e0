// cross_entropy.c — SoftmaxCrossEntropyWithLogits and SparseSoftmaxCrossEntropyWithLogits.
#include "kernel/elementwise/cwise.h"
#include "kernel/move/staging.h"
#include "kernel/nn/cuda_softmax.h"
#include "kernel/nn/softmax.h"
#include "op/cost.h"
#include "op/grad_ctx.h"
#include "op/shape_ctx.h"

// ---- shapes ----
static weir_status_t* dense_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* shape;
  WEIR_TRY(weir_shape_broadcast(ctx, weir_shape_input(ctx, 0), weir_shape_input(ctx, 1), &shape));
  WEIR_TRY(weir_shape_with_rank(ctx, shape, 2, &shape));
  WEIR_TRY(weir_shape_set_vector(ctx, 0, weir_shape_dim(shape, 0)));
  return weir_shape_set(ctx, 1, shape);
}

static weir_status_t* sparse_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t *features, *labels;
  int64_t rows;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 2, &features));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, &labels));
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(features, 0), weir_shape_dim(labels, 0), &rows));
  WEIR_TRY(weir_shape_set_vector(ctx, 0, rows));
  return weir_shape_set_dims(ctx, 1, 2, (const int64_t[]){rows, weir_shape_dim(features, 1)});
}

// ---- gradients ----
static weir_edge_t expand(weir_grad_ctx_t* g, weir_edge_t x) {
  return weir_grad_node(g, "ExpandDims", WEIR_EDGES(x, weir_build_int32(g->builder, -1)));
}

// dlogits = dloss * backprop, plus what flows into backprop itself: (dbackprop - sum(dbackprop *
// p)) * p.
static weir_edge_t logits_grad(weir_grad_ctx_t* g, weir_edge_t dloss) {
  weir_edge_t dx = weir_grad_mul(g, expand(g, dloss), weir_grad_output(g, 1));
  if (!weir_grad_has_dy(g, 1)) return dx;
  weir_edge_t p = weir_grad_node(g, "Softmax", WEIR_EDGES(weir_grad_input(g, 0))),
              dp = weir_grad_dy(g, 1);
  weir_edge_t axis = weir_build_int32s(g->builder, (const int32_t[]){-1}, 1);
  weir_edge_t mean = weir_grad_node_with(g, "Sum", WEIR_EDGES(weir_grad_mul(g, dp, p), axis),
                                         WEIR_ATTRS(weir_attr_bool("keep_dims", true)));
  weir_edge_t second = weir_grad_mul(g, weir_grad_node(g, "Sub", WEIR_EDGES(dp, mean)), p);
  return weir_grad_node(g, "AddV2", WEIR_EDGES(dx, second));
}

static weir_status_t* dense_grad(weir_grad_ctx_t* g) {
  weir_edge_t dloss = weir_grad_dy(g, 0);
  WEIR_TRY(weir_grad_set(g, 0, logits_grad(g, dloss)));
  weir_edge_t log_p = weir_grad_node(g, "LogSoftmax", WEIR_EDGES(weir_grad_input(g, 0)));
  return weir_grad_set(g, 1, weir_grad_mul(g, expand(g, dloss), weir_grad_neg(g, log_p)));
}

static weir_status_t* sparse_grad(weir_grad_ctx_t* g) {
  return weir_grad_set(g, 0, logits_grad(g, weir_grad_dy(g, 0)));
}

// ---- kernels ----
// Repeats |staged|, of the elements of |t|, to |dims|, so that the loops see equal shapes.
static weir_status_t* repeat(weir_kernel_ctx_t* ctx, const weir_tensor_t* t, const int64_t dims[2],
                             weir_staged_t* staged) {
  int64_t columns = t->rank > 0 ? t->dims[t->rank - 1] : 1, rows = t->rank == 2 ? t->dims[0] : 1;
  if (rows == dims[0] && columns == dims[1]) return NULL;
  weir_dtype_t dtype = weir_compute_type(weir_tensor_type(t));
  size_t size = weir_dtype_size(dtype);
  weir_tensor_t* whole;
  WEIR_TRY(weir_kernel_scratch(ctx, dtype, dims[0] * dims[1], &whole));
  for (int64_t i = 0; i < dims[0] * dims[1]; ++i) {
    int64_t from = (rows == 1 ? 0 : i / dims[1] * columns) + (columns == 1 ? 0 : i % dims[1]);
    memcpy((char*)whole->data + (size_t)i * size, (const char*)staged->data + (size_t)from * size,
           size);
  }
  weir_staged_release(staged);
  *staged = (weir_staged_t){.data = whole->data, .scratch = whole};
  return NULL;
}

static weir_status_t* dense_outputs(weir_kernel_ctx_t* ctx, int64_t dims[2],
                                    weir_tensor_t** out_loss, weir_tensor_t** out_backprop) {
  const weir_tensor_t *features = weir_kernel_input(ctx, 0), *labels = weir_kernel_input(ctx, 1);
  weir_broadcast_t plan;
  if (!weir_broadcast_plan(weir_shape_view_of(features), weir_shape_view_of(labels), &plan)) {
    char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "logits and labels must be broadcastable: logits_size=%s labels_size=%s",
                       weir_tensor_shape_text(features, a), weir_tensor_shape_text(labels, b));
  }
  if (plan.out_rank != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "logits and labels must be either 2-dimensional, or broadcasted to be "
                       "2-dimensional");
  }
  memcpy(dims, plan.out_dims, 2 * sizeof(*dims));
  WEIR_TRY(weir_kernel_output(ctx, 0, 1, dims, out_loss));
  return weir_kernel_output(ctx, 1, 2, dims, out_backprop);
}

static weir_status_t* dense_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t *features = weir_kernel_input(ctx, 0), *labels = weir_kernel_input(ctx, 1);
  weir_staged_t x = {0}, l = {0}, loss = {0}, backprop = {0};
  weir_tensor_t *loss_out, *backprop_out;
  int64_t dims[2];
  WEIR_TRY(dense_outputs(ctx, dims, &loss_out, &backprop_out));
  weir_status_t* status = weir_stage_input(ctx, features, false, &x);
  if (!status) status = weir_stage_input(ctx, labels, false, &l);
  if (!status) status = repeat(ctx, features, dims, &x);
  if (!status) status = repeat(ctx, labels, dims, &l);
  if (!status) status = weir_stage_output(ctx, loss_out, false, &loss);
  if (!status) status = weir_stage_output(ctx, backprop_out, false, &backprop);
  if (status) goto done;
  if (dims[0] > 0 && dims[1] == 0) {
    memset(loss.data, 0,
           (size_t)dims[0] * weir_dtype_size(weir_compute_type(weir_tensor_type(features))));
  }
  weir_softmax_loss(weir_kernel_pool(ctx), weir_compute_type(weir_tensor_type(features)), dims[0],
                    dims[1], x.data, l.data, loss.data, backprop.data);
  status = weir_stage_finish(ctx, loss_out, false, &loss);
  if (!status) status = weir_stage_finish(ctx, backprop_out, false, &backprop);
done:
  weir_staged_release(&x);
  weir_staged_release(&l);
  weir_staged_release(&loss);
  weir_staged_release(&backprop);
  return status;
}

static weir_status_t* check_sparse(const weir_tensor_t* logits, const weir_tensor_t* labels) {
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  if (logits->rank != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "logits must be 2-D, but got shape %s",
                       weir_tensor_shape_text(logits, a));
  }
  if (labels->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "labels must be 1-D, but got shape %s",
                       weir_tensor_shape_text(labels, a));
  }
  if (logits->dims[0] != labels->dims[0]) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "logits and labels must have the same first dimension, got logits shape %s "
                       "and labels shape %s",
                       weir_tensor_shape_text(logits, a), weir_tensor_shape_text(labels, b));
  }
  if (logits->dims[1] <= 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Must have at least one class, but got logits shape %s",
                       weir_tensor_shape_text(logits, a));
  }
  return NULL;
}

static weir_status_t* bad_label(const weir_tensor_t* labels, int64_t i, int64_t classes) {
  enum { SHOWN = 100 };
  weir_strbuf_t text = {0};
  for (int64_t j = 0; j < WEIR_MIN(labels->count, SHOWN); ++j) {
    weir_strbuf_printf(&text, " %lld", (long long)weir_tensor_int_at(labels, j));
  }
  if (labels->count > SHOWN) weir_strbuf_puts(&text, "...");
  weir_status_t* status = WEIR_STATUS(INVALID_ARGUMENT,
                                      "Received a label value of %lld which is outside the valid "
                                      "range of [0, %lld).  Label values:%.*s",
                                      (long long)weir_tensor_int_at(labels, i), (long long)classes,
                                      WEIR_VIEW_ARG(weir_strbuf_view(&text)));
  weir_strbuf_free(&text);
  return status;
}

// Reads the labels as int64 and refuses those that are no class.
static weir_status_t* read_labels(const weir_tensor_t* labels, int64_t classes, int64_t* out) {
  for (int64_t i = 0; i < labels->count; ++i) {
    out[i] = weir_tensor_int_at(labels, i);
    if (out[i] < 0 || out[i] >= classes) return bad_label(labels, i, classes);
  }
  return NULL;
}

static weir_status_t* sparse_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t *logits = weir_kernel_input(ctx, 0), *labels = weir_kernel_input(ctx, 1);
  weir_staged_t x = {0}, loss = {0}, backprop = {0};
  weir_tensor_t *loss_out, *backprop_out, *classes = NULL;
  WEIR_TRY(check_sparse(logits, labels));
  int64_t rows = logits->dims[0], columns = logits->dims[1];
  weir_dtype_t type = weir_compute_type(weir_tensor_type(logits));
  weir_status_t* status = weir_kernel_scratch(ctx, WEIR_DTYPE_INT64, rows, &classes);
  if (!status) status = read_labels(labels, columns, classes->data);
  if (!status) status = weir_stage_input(ctx, logits, false, &x);
  if (!status) status = weir_kernel_output(ctx, 0, 1, &rows, &loss_out);
  if (!status)
    status = weir_kernel_forward(ctx, 0, 1, 2, (const int64_t[]){rows, columns}, &backprop_out);
  if (!status) status = weir_stage_output(ctx, loss_out, false, &loss);
  if (!status) status = weir_stage_output(ctx, backprop_out, false, &backprop);
  if (status) goto done;
  weir_sparse_softmax_loss(weir_kernel_pool(ctx), type, rows, columns, x.data, classes->data,
                           loss.data, backprop.data);
  status = weir_stage_finish(ctx, loss_out, false, &loss);
  if (!status) status = weir_stage_finish(ctx, backprop_out, false, &backprop);
done:
  weir_tensor_release(classes);
  weir_staged_release(&x);
  weir_staged_release(&loss);
  weir_staged_release(&backprop);
  return status;
}

// ---- GPU ----
static weir_status_t* dense_gpu_init(const weir_kernel_init_t* init, void* state) {
  return weir_cuda_softmax_find(init->device, WEIR_SOFTMAX_DENSE_LOSS, init->node->input_types[0],
                                WEIR_DTYPE_INT32, state);
}

static weir_status_t* sparse_gpu_init(const weir_kernel_init_t* init, void* state) {
  return weir_cuda_softmax_find(init->device, WEIR_SOFTMAX_SPARSE_LOSS, init->node->input_types[0],
                                init->node->input_types[1], state);
}

// Strides of |t|, as rows and columns are repeated.
static void find_strides(const weir_tensor_t* t, int64_t* out_row, int64_t* out_column) {
  int64_t columns = t->rank > 0 ? t->dims[t->rank - 1] : 1;
  *out_row = t->rank < 2 || t->dims[0] == 1 ? 0 : columns;
  *out_column = columns == 1 ? 0 : 1;
}

static weir_status_t* dense_gpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t *features = weir_kernel_input(ctx, 0), *labels = weir_kernel_input(ctx, 1);
  weir_tensor_t *loss, *backprop;
  int64_t dims[2];
  WEIR_TRY(dense_outputs(ctx, dims, &loss, &backprop));
  weir_softmax_rows_t rows = {.x = features->data,
                              .labels = labels->data,
                              .loss = loss->data,
                              .y = backprop->data,
                              .rows = dims[0],
                              .columns = dims[1]};
  find_strides(features, &rows.x_row, &rows.x_column);
  find_strides(labels, &rows.label_row, &rows.label_column);
  return weir_cuda_softmax(ctx->device, ctx->state, &rows);
}

static weir_status_t* sparse_gpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t *logits = weir_kernel_input(ctx, 0), *labels = weir_kernel_input(ctx, 1);
  weir_tensor_t *loss, *backprop;
  WEIR_TRY(check_sparse(logits, labels));
  weir_softmax_rows_t rows = {.x = logits->data,
                              .classes = labels->data,
                              .rows = logits->dims[0],
                              .columns = logits->dims[1],
                              .x_row = logits->dims[1],
                              .x_column = 1};
  WEIR_TRY(weir_kernel_output(ctx, 0, 1, &rows.rows, &loss));
  WEIR_TRY(
      weir_kernel_forward(ctx, 0, 1, 2, (const int64_t[]){rows.rows, rows.columns}, &backprop));
  rows.loss = loss->data;
  rows.y = backprop->data;
  return weir_cuda_softmax(ctx->device, ctx->state, &rows);
}

#define KERNELS(name)                                                     \
  (const weir_kernel_def_t[]) {                                           \
    {WEIR_DEVICE_CPU, .compute = name##_cpu},                             \
        {WEIR_DEVICE_GPU, .compute = name##_gpu, .init = name##_gpu_init, \
         .state_size = sizeof(weir_cuda_softmax_t)},                      \
    {                                                                     \
      0                                                                   \
    }                                                                     \
  }

const weir_op_module_t weir_ops_nn_cross_entropy = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "SoftmaxCrossEntropyWithLogits",
         .mixed = WEIR_MIXED_DENY,
         .summary =
             "Cross entropy of softmax(features) with rows of probabilities, and its gradient",
         .attrs = "T: {half, bfloat16, float, double}",
         .inputs = "features: T; labels: T",
         .outputs = "loss: T; backprop: T",
         .infer_shape = dense_shape,
         .cost = weir_cost_fn_many,
         .build_grad = dense_grad,
         .kernels = KERNELS(dense)},
        {.name = "SparseSoftmaxCrossEntropyWithLogits",
         .mixed = WEIR_MIXED_DENY,
         .summary = "Cross entropy of softmax(features) with classes, and its gradient",
         .attrs = "T: {half, bfloat16, float, double}; Tlabels: {int32, int64} = DT_INT64",
         .inputs = "features: T; labels: Tlabels",
         .outputs = "loss: T; backprop: T",
         .infer_shape = sparse_shape,
         .cost = weir_cost_fn_many,
         .build_grad = sparse_grad,
         .kernels = KERNELS(sparse)},
        {0}}};

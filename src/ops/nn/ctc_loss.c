// ctc_loss.c — CTCLoss: how unlikely label sequences are that say nothing about when each label is.
#include "base/string.h"
#include "op/grad_ctx.h"
#include "ops/nn/ctc_common.h"
#include "ops/sparse/sparse.h"

// The labels of a batch, as the kernel wants them.
typedef struct labels_t {
  int32_t* values;
  int64_t* begins;
  int64_t* ends;
  bool* is_skipped;
} labels_t;

static void labels_free(labels_t* labels) {
  weir_free(labels->values);
  weir_free(labels->begins);
  weir_free(labels->ends);
  weir_free(labels->is_skipped);
}

static weir_status_t* labels_alloc(labels_t* labels, int64_t count, int64_t batch) {
  labels->values = weir_alloc_array((size_t)count, sizeof(int32_t));
  labels->begins = weir_calloc((size_t)batch, sizeof(int64_t));
  labels->ends = weir_calloc((size_t)batch, sizeof(int64_t));
  labels->is_skipped = weir_calloc((size_t)batch, sizeof(bool));
  return labels->values && labels->begins && labels->ends && labels->is_skipped
             ? NULL
             : weir_out_of_memory();
}

// ---- checks ----

static weir_status_t* check_shapes(const weir_tensor_t* logits, const weir_tensor_t* indices,
                                   const weir_tensor_t* values, const weir_tensor_t* lengths) {
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  WEIR_TRY(weir_ctc_check_ranks(logits, lengths));
  if (indices->rank != 2) return WEIR_STATUS(INVALID_ARGUMENT, "labels_indices is not a matrix");
  if (indices->dims[1] <= 1) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "labels_indices second dimension must be >= 1. Received %lld",
                       (long long)indices->dims[1]);
  }
  if (values->rank != 1) return WEIR_STATUS(INVALID_ARGUMENT, "labels_values is not a vector");
  if (logits->dims[1] == 0) return WEIR_STATUS(INVALID_ARGUMENT, "batch_size must not be 0");
  if (logits->dims[1] != lengths->dims[0]) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "len(sequence_length) != batch_size.  len(sequence_length):  %lld "
                       "batch_size: %lld",
                       (long long)lengths->dims[0], (long long)logits->dims[1]);
  }
  if (indices->dims[0] != values->dims[0]) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "labels_indices and labels_values must contain the same number of rows, but "
                       "saw shapes: %s vs. %s",
                       weir_tensor_shape_text(indices, a), weir_tensor_shape_text(values, b));
  }
  if (indices->dims[1] != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Order length must be SparseTensor rank.");
  }
  return NULL;
}

static weir_status_t* check_times(const weir_tensor_t* logits, const weir_tensor_t* lengths) {
  if (logits->dims[0] == 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Max time or first dimension of input cannot be 0.");
  }
  if (logits->dims[2] == 0) {  // TensorFlow does not survive it
    return WEIR_STATUS(INVALID_ARGUMENT, "num_classes must be at least 1");
  }
  for (int64_t b = 0; b < lengths->count; ++b) {
    const int32_t length = WEIR_TENSOR_DATA(lengths, int32_t)[b];
    if (length < 0) return WEIR_STATUS(INVALID_ARGUMENT, "seq_len(%lld) < 0", (long long)b);
    if (length > logits->dims[0]) {
      return WEIR_STATUS(INVALID_ARGUMENT, "sequence_length(%lld) <= %lld", (long long)b,
                         (long long)logits->dims[0]);
    }
  }
  return NULL;
}

// Rows must be in order, in a matrix of a row a sequence.
static weir_status_t* check_indices(const weir_tensor_t* indices, int64_t batch) {
  int64_t longest = 0;
  const int64_t* rows = indices->data;
  for (int64_t i = 0; i < indices->dims[0]; ++i) longest = WEIR_MAX(longest, rows[2 * i + 1]);
  const int64_t dims[2] = {batch,
                           indices->dims[0] > 0 && longest < INT64_MAX ? longest + 1 : longest};
  const weir_sparse_t sparse = {
      .indices = indices, .rows = rows, .dims = dims, .count = indices->dims[0], .rank = 2};
  weir_status_t* status = weir_sparse_check_order(&sparse);
  return status ? weir_status_prefix(status, "label SparseTensor is not valid: ") : NULL;
}

// ---- reading ----

static const char* labels_text(const int32_t* values, int64_t count, weir_strbuf_t* text) {
  enum { SHOWN = 100 };
  for (int64_t i = 0; i < WEIR_MIN(count, SHOWN); ++i) {
    weir_strbuf_printf(text, "%s%d", i > 0 ? "," : "", (int)values[i]);
  }
  return count > SHOWN ? "..." : "";
}

static weir_status_t* bad_labels(bool is_negative, int64_t b, int64_t classes,
                                 const int32_t* values, int64_t count) {
  weir_strbuf_t text = {0};
  const char* more = labels_text(values, count, &text);
  const weir_view_t view = weir_strbuf_view(&text);
  weir_status_t* status =
      is_negative
          ? WEIR_STATUS(INVALID_ARGUMENT,
                        "All labels must be nonnegative integers, batch: %lld labels: %.*s%s",
                        (long long)b, WEIR_VIEW_ARG(view), more)
          : WEIR_STATUS(INVALID_ARGUMENT,
                        "Saw a non-null label (index >= num_classes - 1) following a null label, "
                        "batch: %lld num_classes: %lld labels: %.*s%s",
                        (long long)b, (long long)classes, WEIR_VIEW_ARG(view), more);
  weir_strbuf_free(&text);
  return status;
}

// Copies the labels of sequence |b|: the last class, and what is above it, ends them.
static weir_status_t* read_sequence(labels_t* labels, int64_t b, int64_t classes, bool collapses,
                                    const int32_t* values, int64_t count) {
  bool is_over = false, has_negative = false;
  int64_t end = labels->begins[b];
  for (int64_t i = 0; i < count; ++i) {
    if (collapses && i > 0 && values[i] == values[i - 1]) continue;
    const bool is_null = values[i] >= classes - 1;
    if (!is_null && is_over) return bad_labels(false, b, classes, values, count);
    is_over = is_over || is_null;
    has_negative = has_negative || values[i] < 0;
    if (!is_null) labels->values[end++] = values[i];
  }
  if (has_negative) return bad_labels(true, b, classes, values, count);
  labels->ends[b] = end;
  return NULL;
}

static weir_status_t* read_labels(weir_kernel_ctx_t* ctx, labels_t* labels) {
  const weir_attrs_t attrs = weir_kernel_attrs(ctx);
  const bool collapses = weir_attrs_bool(attrs, "preprocess_collapse_repeated");
  const bool skips = weir_attrs_bool(attrs, "ignore_longer_outputs_than_inputs");
  const weir_tensor_t* logits = weir_kernel_input(ctx, 0);
  const int64_t batch = logits->dims[1], rows = weir_kernel_input(ctx, 1)->dims[0];
  const int64_t* indices = weir_kernel_input(ctx, 1)->data;
  const int32_t* values = weir_kernel_input(ctx, 2)->data;
  const int32_t* lengths = weir_kernel_input(ctx, 3)->data;
  for (int64_t b = 0, at = 0, end = 0; b < batch; ++b, at = end) {
    while (end < rows && indices[2 * end] == b) ++end;
    if (end == at) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Labels length is zero in batch %lld", (long long)b);
    }
    labels->begins[b] = b > 0 ? labels->ends[b - 1] : 0;
    WEIR_TRY(read_sequence(labels, b, logits->dims[2], collapses, values + at, end - at));
    labels->is_skipped[b] = end - at > lengths[b];
    if (!labels->is_skipped[b] || skips) continue;
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Not enough time for target transition sequence (required: %lld, "
                       "available: %d)%lldYou can turn this error into a warning by using the flag "
                       "ignore_longer_outputs_than_inputs",
                       (long long)(end - at), (int)lengths[b], (long long)b);
  }
  return NULL;
}

static weir_status_t* loss_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t *logits = weir_kernel_input(ctx, 0), *lengths = weir_kernel_input(ctx, 3);
  const weir_tensor_t *indices = weir_kernel_input(ctx, 1), *values = weir_kernel_input(ctx, 2);
  weir_tensor_t *loss = NULL, *gradient = NULL;
  labels_t labels = {0};
  WEIR_TRY(check_shapes(logits, indices, values, lengths));
  WEIR_TRY(check_times(logits, lengths));
  WEIR_TRY(check_indices(indices, logits->dims[1]));
  WEIR_TRY(weir_kernel_output(ctx, 0, 1, &logits->dims[1], &loss));
  WEIR_TRY(weir_kernel_output(ctx, 1, 3, logits->dims, &gradient));
  weir_status_t* status = labels_alloc(&labels, values->count, logits->dims[1]);
  if (!status) status = read_labels(ctx, &labels);
  if (!status) {
    const weir_ctc_input_t in = weir_ctc_input(logits, lengths);
    const weir_ctc_labels_t sequences = {
        .values = labels.values,
        .begins = labels.begins,
        .ends = labels.ends,
        .is_skipped = labels.is_skipped,
        .merges_repeated = weir_attrs_bool(weir_kernel_attrs(ctx), "ctc_merge_repeated")};
    status = weir_ctc_loss(weir_kernel_pool(ctx), weir_tensor_type(logits), &in, &sequences,
                           loss->data, gradient->data);
  }
  labels_free(&labels);
  return status;
}

static weir_status_t* loss_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t *logits = NULL, *indices = NULL, *values = NULL;
  int64_t batch, rows;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 2, &indices));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 2), 1, &values));
  WEIR_TRY(weir_ctc_shapes(ctx, 3, &logits, &batch));
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(indices, 0), weir_shape_dim(values, 0), &rows));
  WEIR_TRY(weir_shape_set_vector(ctx, 0, batch));
  return weir_shape_set_dims(
      ctx, 1, 3, (const int64_t[]){weir_shape_dim(logits, 0), batch, weir_shape_dim(logits, 2)});
}

// The op made the gradient along with the loss; there is none of second order.
static weir_status_t* loss_grad(weir_grad_ctx_t* g) {
  weir_edge_t gradient = weir_grad_node_with(
      g, "PreventGradient", WEIR_EDGES(weir_grad_output(g, 1)),
      WEIR_ATTRS(weir_attr_string("message",
                                  "Currently there is no way to take the second "
                                  "derivative of ctc_loss")));
  weir_edge_t column = weir_grad_node(
      g, "ExpandDims", WEIR_EDGES(weir_grad_dy(g, 0), weir_build_int32(g->builder, -1)));
  return weir_grad_set(g, 0, weir_grad_mul(g, column, gradient));
}

const weir_op_module_t weir_ops_nn_ctc_loss = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "CTCLoss",
         .attrs = "preprocess_collapse_repeated: bool = false; ctc_merge_repeated: bool = true; "
                  "ignore_longer_outputs_than_inputs: bool = false; "
                  "T: {float, double} = DT_FLOAT",
         .inputs = "inputs: T; labels_indices: int64; labels_values: int32; "
                   "sequence_length: int32",
         .outputs = "loss: T; gradient: T",
         .summary = "The CTC loss of label sequences, and its gradient",
         .infer_shape = loss_shape,
         .build_grad = loss_grad,
         .kernels = WEIR_CPU_KERNEL(.compute = loss_cpu)},
        {0}}};

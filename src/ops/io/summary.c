// summary.c — ScalarSummary, HistogramSummary, TensorSummary, TensorSummaryV2, MergeSummary.
#include "file/summary.h"

#include <math.h>

#include "base/map.h"
#include "ops/io/common.h"
#include "tensor/cast.h"
#include "wire/wire.h"

// Sets output 0 to what was built, and frees it.
static weir_status_t* output_summary(weir_kernel_ctx_t* ctx, weir_strbuf_t* summary) {
  weir_status_t* status = weir_strbuf_finish(summary);
  if (!status) status = io_output_string(ctx, 0, weir_strbuf_view(summary));
  weir_strbuf_free(summary);
  return status;
}

// ---- ScalarSummary ----

static weir_status_t* different_shapes(const weir_tensor_t* tags, const weir_tensor_t* values) {
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  weir_view_t tag = tags->count == 1 ? io_string(tags, 0) : weir_view("", 0);
  bool has_tag = tags->count == 1;
  return WEIR_STATUS(INVALID_ARGUMENT, "tags and values are not the same shape: %s != %s%s%.*s%s",
                     weir_tensor_shape_text(tags, a), weir_tensor_shape_text(values, b),
                     has_tag ? " (tag '" : "", WEIR_VIEW_ARG(tag), has_tag ? "')" : "");
}

static weir_status_t* scalar_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* tags = weir_kernel_input(ctx, 0);
  const weir_tensor_t* values = weir_kernel_input(ctx, 1);
  weir_dtype_t dtype = weir_tensor_type(values);
  if (!weir_tensor_same_shape(tags, values)) return different_shapes(tags, values);
  weir_strbuf_t summary = {0};
  weir_status_t* status = NULL;
  for (int64_t i = 0; i < values->count && !status; ++i) {
    float value = 0;
    const char* element = (const char*)values->data + (size_t)i * weir_dtype_size(dtype);
    status = weir_cast_elements(WEIR_DTYPE_FLOAT, &value, dtype, element, 1);
    weir_summary_put_scalar(&summary, io_string(tags, i), value);
  }
  if (!status) return output_summary(ctx, &summary);
  weir_strbuf_free(&summary);
  return status;
}

// ---- HistogramSummary ----

static weir_status_t* fill_histogram(const weir_kernel_ctx_t* ctx, const weir_tensor_t* values,
                                     weir_histogram_t* histogram) {
  enum { kChunk = 512 };
  double chunk[kChunk];
  weir_dtype_t dtype = weir_tensor_type(values);
  for (int64_t begin = 0; begin < values->count; begin += kChunk) {
    int64_t count = WEIR_MIN(values->count - begin, (int64_t)kChunk);
    const char* from = (const char*)values->data + (size_t)begin * weir_dtype_size(dtype);
    WEIR_TRY(weir_cast_elements(WEIR_DTYPE_DOUBLE, chunk, dtype, from, count));
    for (int64_t i = 0; i < count; ++i) {
      if (isnan(chunk[i])) {
        return WEIR_STATUS(INVALID_ARGUMENT, "Nan in summary histogram for: %s", ctx->node->name);
      }
      if (isinf(chunk[i])) {
        return WEIR_STATUS(INVALID_ARGUMENT, "Infinity in Histogram for: %s", ctx->node->name);
      }
      weir_histogram_add(histogram, chunk[i]);
    }
  }
  return NULL;
}

static weir_status_t* histogram_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* tag = weir_kernel_input(ctx, 0);
  weir_histogram_t histogram;
  if (tag->rank != 0) return WEIR_STATUS(INVALID_ARGUMENT, "tags must be scalar");
  weir_histogram_init(&histogram);
  WEIR_TRY(fill_histogram(ctx, weir_kernel_input(ctx, 1), &histogram));
  weir_strbuf_t summary = {0};
  weir_summary_put_histogram(&summary, io_string(tag, 0), &histogram);
  return output_summary(ctx, &summary);
}

// ---- TensorSummary, TensorSummaryV2 ----

static weir_status_t* output_tensor(weir_kernel_ctx_t* ctx, weir_view_t tag, weir_view_t node_name,
                                    const weir_tensor_t* tensor, weir_view_t metadata) {
  weir_strbuf_t summary = {0};
  weir_status_t* status = weir_summary_put_tensor(&summary, tag, node_name, tensor, metadata);
  if (!status) return output_summary(ctx, &summary);
  weir_strbuf_free(&summary);
  return status;
}

static weir_status_t* tensor_v1_cpu(weir_kernel_ctx_t* ctx) {
  return output_tensor(ctx, weir_view(NULL, 0), weir_view_of(ctx->node->name),
                       weir_kernel_input(ctx, 0), weir_view(NULL, 0));
}

static weir_status_t* tensor_v2_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* tag = weir_kernel_input(ctx, 0);
  const weir_tensor_t* metadata = weir_kernel_input(ctx, 2);
  if (tag->rank != 0) return WEIR_STATUS(INVALID_ARGUMENT, "tag must be scalar");
  if (metadata->rank != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "serialized_summary_metadata must be scalar");
  }
  weir_view_t message = io_string(metadata, 0);
  weir_wire_reader_t reader = weir_wire_reader(message);
  while (weir_wire_next(&reader)) continue;
  WEIR_TRY(weir_wire_check(&reader, "SummaryMetadata"));
  if (!message.data) message = weir_view("", 0);
  return output_tensor(ctx, io_string(tag, 0), weir_view(NULL, 0), weir_kernel_input(ctx, 1),
                       message);
}

// ---- MergeSummary ----

static weir_status_t* unparsed(void) {
  return WEIR_STATUS(INVALID_ARGUMENT, "Could not parse one of the summary inputs");
}

// Values without a tag, of TensorSummary, may be many.
static weir_status_t* note_tag(weir_view_t value, weir_map_t* tags) {
  static char kSeen;
  weir_view_t tag = {0};
  weir_wire_reader_t reader = weir_wire_reader(value);
  while (weir_wire_next(&reader)) {
    if (reader.field == 1 && reader.type == WEIR_WIRE_BYTES) tag = reader.bytes;
  }
  if (reader.error) return unparsed();
  if (tag.size == 0) return NULL;
  if (weir_map_find(tags, tag)) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Duplicate tag %.*s found in summary inputs",
                       WEIR_VIEW_ARG(tag));
  }
  return weir_map_put(tags, tag, &kSeen);
}

static weir_status_t* merge_one(weir_view_t message, weir_map_t* tags, weir_strbuf_t* out) {
  weir_wire_reader_t reader = weir_wire_reader(message);
  while (weir_wire_next(&reader)) {
    if (reader.field != 1 || reader.type != WEIR_WIRE_BYTES) continue;
    WEIR_TRY(note_tag(reader.bytes, tags));
    weir_strbuf_append(out, reader.raw.data, reader.raw.size);
  }
  return reader.error ? unparsed() : NULL;
}

static weir_status_t* merge_cpu(weir_kernel_ctx_t* ctx) {
  weir_map_t tags = {0};
  weir_strbuf_t summary = {0};
  weir_status_t* status = NULL;
  for (int i = 0; i < ctx->input_count && !status; ++i) {
    const weir_tensor_t* input = weir_kernel_input(ctx, i);
    for (int64_t k = 0; k < input->count && !status; ++k) {
      status = merge_one(io_string(input, k), &tags, &summary);
    }
  }
  weir_map_free(&tags);
  if (!status) return output_summary(ctx, &summary);
  weir_strbuf_free(&summary);
  return status;
}

#define REAL_TYPES \
  "float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64"

const weir_op_module_t weir_ops_io_summary = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ScalarSummary",
         .attrs = "T: {" REAL_TYPES "}",
         .inputs = "tags: string; values: T",
         .outputs = "summary: string",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "A Summary of one value a tag.",
         .infer_shape = weir_shape_fn_scalar,
         .kernels = WEIR_CPU_KERNEL(.compute = scalar_cpu)},
        {.name = "HistogramSummary",
         .attrs = "T: {" REAL_TYPES "} = DT_FLOAT",
         .inputs = "tag: string; values: T",
         .outputs = "summary: string",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "A Summary that holds the histogram of a tensor.",
         .infer_shape = weir_shape_fn_scalar,
         .kernels = WEIR_CPU_KERNEL(.compute = histogram_cpu)},
        {.name = "TensorSummary",
         .attrs = "T: type; description: string = ''; labels: list(string) = []; "
                  "display_name: string = ''",
         .inputs = "tensor: T",
         .outputs = "summary: string",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "A Summary that holds a tensor, named by the node.",
         .infer_shape = weir_shape_fn_scalar,
         .kernels = WEIR_CPU_KERNEL(.compute = tensor_v1_cpu, .host_inputs = "tensor")},
        {.name = "TensorSummaryV2",
         .attrs = "T: type",
         .inputs = "tag: string; tensor: T; serialized_summary_metadata: string",
         .outputs = "summary: string",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "A Summary that holds a tensor and a description of it.",
         .infer_shape = weir_shape_fn_scalar,
         .kernels = WEIR_CPU_KERNEL(.compute = tensor_v2_cpu, .host_inputs = "tensor")},
        {.name = "MergeSummary",
         .attrs = "N: int >= 1",
         .inputs = "inputs: N * string",
         .outputs = "summary: string",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "One Summary of the values of many.",
         .infer_shape = weir_shape_fn_scalar,
         .kernels = WEIR_CPU_KERNEL(.compute = merge_cpu)},
        {0}}};

// reduce_join.c — ReduceJoin: joins strings along dimensions, in the order in which these are
// named; UnsortedSegmentJoin: joins those of the same segment.
#include "base/alloc.h"
#include "base/interrupt.h"
#include "base/string.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

static void append_joined(weir_strbuf_t* out, bool is_first, weir_view_t separator,
                          const weir_tensor_t* from, int64_t i) {
  const weir_view_t part = weir_string_view(WEIR_TENSOR_DATA(from, weir_string_t) + i);
  if (!is_first) weir_strbuf_append(out, separator.data, separator.size);
  weir_strbuf_append(out, part.data, part.size);
}

static weir_status_t* put_text(weir_strbuf_t* text, weir_tensor_t* out, int64_t i) {
  WEIR_TRY(weir_strbuf_finish(text));
  WEIR_TRY(weir_string_set(WEIR_TENSOR_DATA(out, weir_string_t) + i, text->data, text->size));
  text->size = 0;
  return NULL;
}

// ---- ReduceJoin ----

// Dimensions that are joined or kept, the last one varying fastest.
typedef struct walk_t {
  int rank;
  int64_t dims[WEIR_MAX_RANK];
  int64_t strides[WEIR_MAX_RANK];
  int64_t count;
} walk_t;

static void add_dim(walk_t* walk, const weir_tensor_t* in, int axis) {
  int64_t stride = 1;
  for (int i = axis + 1; i < in->rank; ++i) stride *= in->dims[i];
  walk->dims[walk->rank] = in->dims[axis];
  walk->strides[walk->rank++] = stride;
  walk->count *= in->dims[axis];
}

static int64_t offset_at(const walk_t* walk, int64_t index) {
  int64_t offset = 0;
  for (int i = walk->rank - 1; i >= 0; --i) {
    offset += index % walk->dims[i] * walk->strides[i];
    index /= walk->dims[i];
  }
  return offset;
}

// TensorFlow lets the first dimension that is named vary fastest.
static weir_status_t* find_joined(const weir_tensor_t* in, const weir_tensor_t* axes,
                                  bool is_joined[WEIR_MAX_RANK], walk_t* joined) {
  for (int64_t k = 0; k < axes->count; ++k) {
    const int32_t named = WEIR_TENSOR_DATA(axes, int32_t)[k];
    if (named < -in->rank || named >= in->rank) {
      return WEIR_STATUS(OUT_OF_RANGE,
                         "Invalid reduction dimension %d for input with %d dimension(s)", named,
                         in->rank);
    }
    const int axis = named < 0 ? named + in->rank : named;
    if (is_joined[axis]) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Duplicate reduction dimension %d", named);
    }
    is_joined[axis] = true;
  }
  for (int64_t k = axes->count; k-- > 0;) {
    const int32_t named = WEIR_TENSOR_DATA(axes, int32_t)[k];
    add_dim(joined, in, named < 0 ? named + in->rank : named);
  }
  return NULL;
}

static weir_status_t* reduce_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const weir_view_t separator = weir_attrs_string(weir_kernel_attrs(ctx), "separator");
  const bool keeps = weir_attrs_bool(weir_kernel_attrs(ctx), "keep_dims");
  bool is_joined[WEIR_MAX_RANK] = {false};
  walk_t joined = {.count = 1}, kept = {.count = 1};
  int64_t dims[WEIR_MAX_RANK];
  int rank = 0;
  WEIR_TRY(find_joined(in, weir_kernel_input(ctx, 1), is_joined, &joined));
  for (int i = 0; i < in->rank; ++i) {
    if (!is_joined[i]) add_dim(&kept, in, i);
    if (!is_joined[i] || keeps) dims[rank++] = is_joined[i] ? 1 : in->dims[i];
  }
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, rank, dims, &out));
  weir_strbuf_t text = {0};
  weir_status_t* status = NULL;
  for (int64_t i = 0; i < out->count && !status; ++i) {
    const int64_t base = offset_at(&kept, i);
    for (int64_t j = 0; j < joined.count; ++j) {
      append_joined(&text, j == 0, separator, in, base + offset_at(&joined, j));
    }
    status = weir_interrupt_poll(i);
    if (!status) status = put_text(&text, out, i);
  }
  weir_strbuf_free(&text);
  return status;
}

static weir_status_t* reduce_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* in = weir_shape_input(ctx, 0);
  const weir_tensor_t* axes = weir_shape_value(ctx, 1);
  const bool keeps = weir_attrs_bool(weir_shape_attrs(ctx), "keep_dims");
  WEIR_TRY(weir_shape_at_most(ctx, weir_shape_input(ctx, 1), 1));
  if (in->rank < 0 || !axes) {
    if (!keeps || in->rank < 0) return NULL;
    int64_t unknown[WEIR_MAX_RANK];
    for (int i = 0; i < in->rank; ++i) unknown[i] = -1;
    return weir_shape_set_dims(ctx, 0, in->rank, unknown);
  }
  bool is_joined[WEIR_MAX_RANK] = {false};
  for (int64_t k = 0; k < axes->count; ++k) {
    const int32_t axis = WEIR_TENSOR_DATA(axes, int32_t)[k];
    if (axis < -in->rank || axis >= in->rank) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Invalid reduction dimension %d for input with %d dimensions.", axis,
                         in->rank);
    }
    is_joined[axis < 0 ? axis + in->rank : axis] = true;
  }
  int64_t dims[WEIR_MAX_RANK];
  int rank = 0;
  for (int i = 0; i < in->rank; ++i) {
    if (!is_joined[i] || keeps) dims[rank++] = is_joined[i] ? 1 : in->dims[i];
  }
  return weir_shape_set_dims(ctx, 0, rank, dims);
}

// ---- UnsortedSegmentJoin ----

static weir_status_t* check_segments(const weir_tensor_t* in, const weir_tensor_t* ids,
                                     const weir_tensor_t* count) {
  if (count->rank != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Number of segments must be a scalar");
  }
  const int64_t segments = weir_tensor_int_at(count, 0);
  if (segments < 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Number of segments must be non-negative but got %lld",
                       (long long)segments);
  }
  if (ids->rank == 0) return WEIR_STATUS(INVALID_ARGUMENT, "Segment_id cannot have rank 0");
  if (ids->rank > in->rank) {
    return WEIR_STATUS(OUT_OF_RANGE, "Invalid segment_id rank %d for input with %d dimension(s)",
                       ids->rank, in->rank);
  }
  for (int i = 0; i < ids->rank; ++i) {
    if (ids->dims[i] == in->dims[i]) continue;
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Segment dimension is %lld while input dimension is %lld in rank %d",
                       (long long)ids->dims[i], (long long)in->dims[i], i);
  }
  for (int64_t i = 0; i < ids->count; ++i) {
    const int64_t id = weir_tensor_int_at(ids, i);
    if (id >= 0 && id < segments) continue;
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "segment_ids are not allowed to exceed num_segments or to have negative values.");
  }
  return NULL;
}

// The rows of each segment in their order: |next| leads from one to the one after, -1 ends.
static int64_t* chain_rows(const weir_tensor_t* ids, int64_t segments) {
  int64_t* chains = weir_alloc_array((size_t)(segments + ids->count), sizeof(*chains));
  if (!chains) return NULL;
  int64_t* next = chains + segments;
  for (int64_t s = 0; s < segments; ++s) chains[s] = -1;
  for (int64_t i = ids->count; i-- > 0;) {
    const int64_t segment = weir_tensor_int_at(ids, i);
    next[i] = chains[segment];
    chains[segment] = i;
  }
  return chains;
}

static weir_status_t* join_segments(const weir_tensor_t* in, const int64_t* chains,
                                    weir_view_t separator, weir_tensor_t* out) {
  const int64_t segments = out->dims[0], width = out->count ? out->count / segments : 1;
  const int64_t* next = chains + segments;
  weir_strbuf_t text = {0};
  weir_status_t* status = NULL;
  for (int64_t i = 0; i < out->count && !status; ++i) {
    const int64_t first = chains[i / width];
    for (int64_t row = first; row >= 0; row = next[row]) {
      append_joined(&text, row == first, separator, in, row * width + i % width);
    }
    status = weir_interrupt_poll(i);
    if (!status) status = put_text(&text, out, i);
  }
  weir_strbuf_free(&text);
  return status;
}

static weir_status_t* segment_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const weir_tensor_t* ids = weir_kernel_input(ctx, 1);
  const weir_tensor_t* count = weir_kernel_input(ctx, 2);
  WEIR_TRY(check_segments(in, ids, count));
  int64_t dims[WEIR_MAX_RANK] = {weir_tensor_int_at(count, 0)};
  const int rank = in->rank - ids->rank + 1;
  for (int i = 1; i < rank; ++i) dims[i] = in->dims[ids->rank - 1 + i];
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, rank, dims, &out));
  int64_t* chains = chain_rows(ids, dims[0]);
  if (!chains) return weir_out_of_memory();
  const weir_view_t separator = weir_attrs_string(weir_kernel_attrs(ctx), "separator");
  weir_status_t* status = join_segments(in, chains, separator, out);
  weir_free(chains);
  return status;
}

const weir_op_module_t weir_ops_string_reduce_join = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ReduceJoin",
         .attrs = "keep_dims: bool = false; separator: string = ''",
         .inputs = "inputs: string; reduction_indices: int32",
         .outputs = "output: string",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "Joins strings along dimensions",
         .infer_shape = reduce_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = reduce_cpu)},
        {.name = "UnsortedSegmentJoin",
         .attrs = "separator: string = ''; Tindices: {int32, int64}; Tnumsegments: {int32, int64} "
                  "= DT_INT32",
         .inputs = "inputs: string; segment_ids: Tindices; num_segments: Tnumsegments",
         .outputs = "output: string",
         .summary = "Joins the strings of each segment",
         .infer_shape = weir_shape_fn_unsorted_segment,
         .kernels = WEIR_CPU_KERNEL(.compute = segment_cpu)},
        {0}}};

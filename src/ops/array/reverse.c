// reverse.c — Reverse, ReverseV2 and ReverseSequence.
#include "ops/array/common.h"

// ---- ReverseV2 ----

static weir_status_t* mark_axes(const weir_tensor_t* axes, int rank, bool* marks) {
  memset(marks, 0, (size_t)rank * sizeof(bool));
  for (int64_t i = 0; i < axes->count; ++i) {
    int64_t axis = weir_tensor_int_at(axes, i);
    int64_t at = axis < 0 ? axis + rank : axis;
    if (at < 0 || at >= rank) {
      return WEIR_STATUS(INVALID_ARGUMENT, "'axis'[%lld] = %lld is out of valid range [0, %d]",
                         (long long)i, (long long)axis, rank - 1);
    }
    if (marks[at])
      return WEIR_STATUS(INVALID_ARGUMENT, "axis %lld specified more than once.", (long long)at);
    marks[at] = true;
  }
  return NULL;
}

static weir_status_t* reverse_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* in = weir_shape_input(ctx, 0);
  const weir_tensor_t* axes = weir_shape_value(ctx, 1);
  bool marks[WEIR_MAX_RANK];
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, NULL));
  if (axes && in->rank >= 0) WEIR_TRY(mark_axes(axes, in->rank, marks));
  return weir_shape_set(ctx, 0, in);
}

static weir_status_t* reverse_marked(weir_kernel_ctx_t* ctx, const bool* marks) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const weir_dtype_t dtype = weir_tensor_type(in);
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank, in->dims, &out));
  if (in->count == 0) return NULL;
  weir_move_dim_t box[WEIR_MAX_RANK];
  int64_t offset = 0;
  for (int i = 0; i < in->rank; ++i) box[i].size = in->dims[i];
  weir_move_contiguous_src(in->rank, box);
  weir_move_contiguous_dst(in->rank, box);
  for (int i = 0; i < in->rank; ++i) {
    if (!marks[i]) continue;
    offset += (in->dims[i] - 1) * box[i].src_stride;
    box[i].src_stride = -box[i].src_stride;
  }
  return weir_kernel_move_box(ctx, dtype, in->rank, box,
                              (const char*)in->data + (size_t)offset * weir_dtype_size(dtype),
                              out->data);
}

static weir_status_t* reverse(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const weir_tensor_t* axes = weir_kernel_input(ctx, 1);
  bool marks[WEIR_MAX_RANK];
  if (axes->rank != 1)
    return WEIR_STATUS(INVALID_ARGUMENT, "'dims' must be 1-dimension, not %d", axes->rank);
  if (in->rank == 0) {
    weir_kernel_pass(ctx, 0, 0);
    return NULL;
  }
  WEIR_TRY(mark_axes(axes, in->rank, marks));
  return reverse_marked(ctx, marks);
}

static weir_status_t* reverse_grad(weir_grad_ctx_t* g) {
  return weir_grad_set(
      g, 0, weir_grad_node(g, "ReverseV2", WEIR_EDGES(weir_grad_dy(g, 0), weir_grad_input(g, 1))));
}

// ---- Reverse: a truth value for each dimension ----

static weir_status_t* old_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* in = weir_shape_input(ctx, 0);
  const weir_shape_t* dims = NULL;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, &dims));
  const int64_t rank = weir_shape_dim(dims, 0);
  if (rank > 8) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "reverse does not work on tensors with more than 8 dimensions");
  }
  if (rank >= 0) WEIR_TRY(weir_shape_with_rank(ctx, in, (int)rank, &in));
  return weir_shape_set(ctx, 0, in);
}

static weir_status_t* old_reverse(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const weir_tensor_t* dims = weir_kernel_input(ctx, 1);
  if (in->rank == 0) {
    weir_kernel_pass(ctx, 0, 0);
    return NULL;
  }
  if (in->dims[0] == 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Invalid input first dimension. Found 0.");
  }
  if (dims->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "'dims' must be 1-dimension, not %d", dims->rank);
  }
  if (dims->count != in->rank) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "'dims' must have the same number of values as 'input' has dimensions. "
                       "'input' has %d'dims' has %lld values",
                       in->rank, (long long)dims->count);
  }
  if (in->rank > 8) {
    return WEIR_STATUS(UNIMPLEMENTED, "reverse is not implemented for tensors of rank > 8.");
  }
  return reverse_marked(ctx, dims->data);
}

static weir_status_t* old_grad(weir_grad_ctx_t* g) {
  return weir_grad_set(
      g, 0, weir_grad_node(g, "Reverse", WEIR_EDGES(weir_grad_dy(g, 0), weir_grad_input(g, 1))));
}

// ---- ReverseSequence ----

static weir_status_t* sequence_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* in = weir_shape_input(ctx, 0);
  const weir_shape_t* lengths = NULL;
  int64_t batch = weir_attrs_int(weir_shape_attrs(ctx), "batch_dim");
  int64_t seq = weir_attrs_int(weir_shape_attrs(ctx), "seq_dim");
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, &lengths));
  if (in->rank < 0) return weir_shape_set(ctx, 0, in);
  if (batch < 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "batch_dim must be >=0, got %lld", (long long)batch);
  }
  if (batch >= in->rank) {
    return WEIR_STATUS(INVALID_ARGUMENT, "batch_dim must be < input rank: %lld vs. %d",
                       (long long)batch, in->rank);
  }
  if (seq >= in->rank || seq < 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "seq_dim must be < input rank: %lld vs. %d",
                       (long long)seq, in->rank);
  }
  int64_t dims[WEIR_MAX_RANK];
  for (int i = 0; i < in->rank; ++i) dims[i] = in->dims[i];
  WEIR_TRY(weir_dim_join(ctx, dims[batch], weir_shape_dim(lengths, 0), &dims[batch]));
  return weir_shape_set_dims(ctx, 0, in->rank, dims);
}

static weir_status_t* check_dims(const weir_tensor_t* in, const weir_tensor_t* lengths,
                                 int64_t batch, int64_t seq) {
  if (lengths->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "seq_lens input must be 1-dim, not %d", lengths->rank);
  }
  if (batch == seq)
    return WEIR_STATUS(INVALID_ARGUMENT, "batch_dim == seq_dim == %lld", (long long)seq);
  if (seq < 0 || seq >= in->rank) {
    return WEIR_STATUS(INVALID_ARGUMENT, "seq_dim must be < input rank ( %lld vs. %d)",
                       (long long)seq, in->rank);
  }
  if (batch < 0 || batch >= in->rank) {
    return WEIR_STATUS(INVALID_ARGUMENT, "batch_dim must be < input rank ( %lld vs. %d)",
                       (long long)batch, in->rank);
  }
  if (lengths->count != in->dims[batch]) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Length of seq_lens != input.dims(%lld), (%lld vs. %lld)",
                       (long long)batch, (long long)lengths->count, (long long)in->dims[batch]);
  }
  return NULL;
}

static weir_status_t* check_lengths(const weir_tensor_t* in, const weir_tensor_t* lengths,
                                    int64_t seq) {
  for (int64_t i = 0; i < lengths->count; ++i) {
    int64_t length = weir_tensor_int_at(lengths, i);
    if (length < 0) return WEIR_STATUS(INVALID_ARGUMENT, "seq_lens(%lld) < 0", (long long)i);
    if (length > in->dims[seq]) {
      return WEIR_STATUS(INVALID_ARGUMENT, "seq_lens(%lld) > input.dims(%lld)", (long long)i,
                         (long long)seq);
    }
  }
  return NULL;
}

// One batch entry: the first |length| places of the sequence backwards, the rest as it is.
static weir_status_t* reverse_entry(weir_kernel_ctx_t* ctx, const weir_tensor_t* in, int64_t entry,
                                    int64_t length, weir_tensor_t* out) {
  const weir_dtype_t dtype = weir_tensor_type(in);
  const size_t size = weir_dtype_size(dtype);
  int64_t batch = weir_attrs_int(weir_kernel_attrs(ctx), "batch_dim");
  int64_t seq = weir_attrs_int(weir_kernel_attrs(ctx), "seq_dim");
  for (int part = 0; part < 2; ++part) {
    weir_move_dim_t box[WEIR_MAX_RANK];
    for (int i = 0; i < in->rank; ++i) box[i].size = in->dims[i];
    weir_move_contiguous_src(in->rank, box);
    weir_move_contiguous_dst(in->rank, box);
    int64_t src = entry * box[batch].src_stride, dst = src;
    box[batch].size = 1;
    if (part == 0) {
      src += (length - 1) * box[seq].src_stride;
      box[seq].size = length;
      box[seq].src_stride = -box[seq].src_stride;
    } else {
      src += length * box[seq].src_stride;
      dst = src;
      box[seq].size = in->dims[seq] - length;
    }
    if (box[seq].size == 0) continue;
    WEIR_TRY(weir_kernel_move_box(ctx, dtype, in->rank, box,
                                  (const char*)in->data + (size_t)src * size,
                                  (char*)out->data + (size_t)dst * size));
  }
  return NULL;
}

// The lengths are the device's: what is too long is all.
static weir_status_t* sequence_on_gpu(weir_kernel_ctx_t* ctx, int64_t batch, int64_t seq,
                                      weir_tensor_t* out) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  weir_move_sequences_t s = {.count = in->count,
                             .batch = in->dims[batch],
                             .batch_stride = 1,
                             .places = in->dims[seq],
                             .place_stride = 1};
  for (int i = (int)batch + 1; i < in->rank; ++i) s.batch_stride *= in->dims[i];
  for (int i = (int)seq + 1; i < in->rank; ++i) s.place_stride *= in->dims[i];
  return weir_gpu_move_sequences(ctx, weir_tensor_type(in), &s, in->data, weir_kernel_input(ctx, 1),
                                 out->data);
}

static weir_status_t* sequence(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const weir_tensor_t* lengths = weir_kernel_input(ctx, 1);
  int64_t batch = weir_attrs_int(weir_kernel_attrs(ctx), "batch_dim");
  int64_t seq = weir_attrs_int(weir_kernel_attrs(ctx), "seq_dim");
  WEIR_TRY(check_dims(in, lengths, batch, seq));
  if (!weir_move_gpu(ctx)) WEIR_TRY(check_lengths(in, lengths, seq));
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank, in->dims, &out));
  if (weir_move_gpu(ctx)) return sequence_on_gpu(ctx, batch, seq, out);
  for (int64_t i = 0; i < lengths->count && in->count > 0; ++i) {
    WEIR_TRY(reverse_entry(ctx, in, i, weir_tensor_int_at(lengths, i), out));
  }
  return NULL;
}

static weir_status_t* sequence_gpu_init(const weir_kernel_init_t* init, void* state) {
  return weir_move_indexed_gpu_init(init, state, "sequences", 1);
}

static weir_status_t* sequence_grad(weir_grad_ctx_t* g) {
  weir_attrs_t attrs = weir_grad_attrs(g);
  return weir_grad_set(
      g, 0,
      weir_grad_node_with(
          g, "ReverseSequence", WEIR_EDGES(weir_grad_dy(g, 0), weir_grad_input(g, 1)),
          WEIR_ATTRS(weir_attr_int("seq_dim", weir_attrs_int(attrs, "seq_dim")),
                     weir_attr_int("batch_dim", weir_attrs_int(attrs, "batch_dim")))));
}

const weir_op_module_t weir_ops_array_reverse = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ReverseV2",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "Tidx: {int32, int64} = DT_INT32; T: {uint8, int8, uint16, int16, int32, uint32, "
                  "int64, uint64, bool, "
                  "bfloat16, half, float, double, complex64, complex128, string}",
         .inputs = "tensor: T; axis: Tidx",
         .outputs = "output: T",
         .flags = WEIR_OP_VIEW,
         .summary = "Reverses a tensor along the given axes.",
         .infer_shape = reverse_shape,
         .build_grad = reverse_grad,
         .kernels =
             WEIR_MOVE_HOST_KERNELS("T", reverse, "tensor, axis", "output", .host_inputs = "axis")},
        {.name = "Reverse",
         .attrs = "T: {uint8, int8, uint16, int16, uint32, int32, uint64, int64, bool, bfloat16, "
                  "half, float, double, complex64, complex128, string}",
         .inputs = "tensor: T; dims: bool",
         .outputs = "output: T",
         .flags = WEIR_OP_VIEW,
         .summary = "Reverses a tensor along the dimensions that are marked.",
         .infer_shape = old_shape,
         .build_grad = old_grad,
         .kernels = WEIR_MOVE_HOST_KERNELS("T", old_reverse, "tensor, dims", "output",
                                           .host_inputs = "dims")},
        {.name = "ReverseSequence",
         .attrs = "seq_dim: int; batch_dim: int = 0; T: type; Tlen: {int32, int64} = DT_INT64",
         .inputs = "input: T; seq_lengths: Tlen",
         .outputs = "output: T",
         .summary = "Reverses the beginnings of sequences, each of a length of its own.",
         .infer_shape = sequence_shape,
         .build_grad = sequence_grad,
         .kernels =
             (const weir_kernel_def_t[]){
                 {WEIR_DEVICE_CPU, .compute = sequence},
                 WEIR_MOVE_GPU_ROW("T: " WEIR_MOVED_TYPES, sequence_gpu_init, .compute = sequence),
                 {0}}},
        {0}}};

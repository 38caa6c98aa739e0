// ctc_decode.c — CTCGreedyDecoder, CTCBeamSearchDecoder: the label sequences that logits over time
// stand for.
#include "ops/nn/ctc_common.h"

static weir_status_t* check_decode(const weir_tensor_t* logits, const weir_tensor_t* lengths) {
  WEIR_TRY(weir_ctc_check_ranks(logits, lengths));
  if (logits->count == 0) return WEIR_STATUS(INVALID_ARGUMENT, "inputs must not be empty");
  if (logits->dims[1] != lengths->dims[0]) {
    return WEIR_STATUS(FAILED_PRECONDITION,
                       "len(sequence_length) != batch_size.  len(sequence_length):  %lld "
                       "batch_size: %lld",
                       (long long)lengths->dims[0], (long long)logits->dims[1]);
  }
  for (int64_t b = 0; b < lengths->count; ++b) {
    if (WEIR_TENSOR_DATA(lengths, int32_t)[b] <= logits->dims[0]) continue;
    return WEIR_STATUS(FAILED_PRECONDITION, "sequence_length(%lld) <= %lld", (long long)b,
                       (long long)logits->dims[0]);
  }
  return NULL;
}

// Output |i| of |each| kinds, of which there are |count| each: indices, values and shape of a
// sparse matrix with a row a sequence.
static weir_status_t* write_sparse(weir_kernel_ctx_t* ctx, int i, int each,
                                   const weir_ctc_path_t* paths, int64_t batch, int64_t stride) {
  int64_t count = 0, longest = 0;
  weir_tensor_t *indices = NULL, *values = NULL, *shape = NULL;
  for (int64_t b = 0; b < batch; ++b) {
    count += paths[b * stride].count;
    longest = WEIR_MAX(longest, paths[b * stride].count);
  }
  WEIR_TRY(weir_kernel_output(ctx, i, 2, (const int64_t[]){count, 2}, &indices));
  WEIR_TRY(weir_kernel_output(ctx, i + each, 1, &count, &values));
  WEIR_TRY(weir_kernel_output(ctx, i + 2 * each, 1, (const int64_t[]){2}, &shape));
  int64_t *index = indices->data, *value = values->data;
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t t = 0; t < paths[b * stride].count; ++t) {
      *index++ = b;
      *index++ = t;
      *value++ = paths[b * stride].labels[t];
    }
  }
  WEIR_TENSOR_DATA(shape, int64_t)[0] = batch;
  WEIR_TENSOR_DATA(shape, int64_t)[1] = longest;
  return NULL;
}

static void free_paths(weir_ctc_path_t* paths, int64_t count) {
  for (int64_t i = 0; paths && i < count; ++i) weir_free(paths[i].labels);
  weir_free(paths);
}

// ---- the likeliest class at each step ----

typedef struct greedy_t {
  const weir_ctc_input_t* in;
  weir_ctc_path_t* paths;
  void* scores;
  int64_t blank;
  bool merges;
} greedy_t;

#define GREEDY(NAME, T)                                                            \
  static int64_t NAME##_largest(const T* x, int64_t n) {                           \
    int64_t best = 0;                                                              \
    for (int64_t c = 1; c < n; ++c) best = x[c] > x[best] ? c : best;              \
    return best;                                                                   \
  }                                                                                \
  static void NAME(void* arg, int64_t begin, int64_t end) {                        \
    const greedy_t* job = arg;                                                     \
    const weir_ctc_input_t* in = job->in;                                          \
    for (int64_t b = begin; b < end; ++b) {                                        \
      weir_ctc_path_t* path = &job->paths[b];                                      \
      int64_t last = -1;                                                           \
      T score = 0;                                                                 \
      for (int64_t t = 0; t < in->lengths[b]; ++t) {                               \
        const T* x = (const T*)in->logits + (t * in->batch + b) * in->classes;     \
        const int64_t best = NAME##_largest(x, in->classes);                       \
        const bool is_kept = best != job->blank && !(job->merges && best == last); \
        score -= x[best];                                                          \
        if (is_kept) path->labels[path->count++] = (int32_t)best;                  \
        last = best;                                                               \
      }                                                                            \
      ((T*)job->scores)[b] = score;                                                \
    }                                                                              \
  }
GREEDY(greedy_float, float)
GREEDY(greedy_double, double)

static weir_status_t* alloc_paths(const weir_ctc_input_t* in, weir_ctc_path_t** out_paths) {
  weir_ctc_path_t* paths = weir_calloc((size_t)in->batch, sizeof(*paths));
  if (!paths) return weir_out_of_memory();
  *out_paths = paths;
  for (int64_t b = 0; b < in->batch; ++b) {
    const size_t length = (size_t)WEIR_MAX(in->lengths[b], 0);
    paths[b].labels = weir_alloc_array(length, sizeof(*paths[b].labels));
    if (!paths[b].labels) return weir_out_of_memory();
  }
  return NULL;
}

static weir_status_t* greedy_cpu(weir_kernel_ctx_t* ctx) {
  const weir_attrs_t attrs = weir_kernel_attrs(ctx);
  const weir_tensor_t *logits = weir_kernel_input(ctx, 0), *lengths = weir_kernel_input(ctx, 1);
  WEIR_TRY(check_decode(logits, lengths));
  const weir_ctc_input_t in = weir_ctc_input(logits, lengths);
  const int64_t blank = weir_attrs_int(attrs, "blank_index");
  if (blank < -in.classes || blank >= in.classes) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "blank_index expected to be between %lld and %lld but was %lld",
                       (long long)-in.classes, (long long)in.classes - 1, (long long)blank);
  }
  weir_tensor_t* scores = NULL;
  weir_ctc_path_t* paths = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 3, 2, (const int64_t[]){in.batch, 1}, &scores));
  weir_status_t* status = alloc_paths(&in, &paths);
  if (!status) {
    greedy_t job = {.in = &in,
                    .paths = paths,
                    .scores = scores->data,
                    .blank = blank < 0 ? blank + in.classes : blank,
                    .merges = weir_attrs_bool(attrs, "merge_repeated")};
    weir_pool_for(weir_kernel_pool(ctx), in.batch, (double)(in.time * in.classes),
                  weir_tensor_type(logits) == WEIR_DTYPE_DOUBLE ? greedy_double : greedy_float,
                  &job);
    status = write_sparse(ctx, 0, 1, paths, in.batch, 1);
  }
  free_paths(paths, in.batch);
  return status;
}

// ---- beam search ----

static weir_status_t* beam_cpu(weir_kernel_ctx_t* ctx) {
  const weir_attrs_t attrs = weir_kernel_attrs(ctx);
  const weir_tensor_t *logits = weir_kernel_input(ctx, 0), *lengths = weir_kernel_input(ctx, 1);
  const weir_ctc_search_t search = {.beam_width = weir_attrs_int(attrs, "beam_width"),
                                    .top_paths = weir_attrs_int(attrs, "top_paths"),
                                    .merges_repeated = weir_attrs_bool(attrs, "merge_repeated")};
  WEIR_TRY(check_decode(logits, lengths));
  if (search.top_paths > search.beam_width) {
    return WEIR_STATUS(INVALID_ARGUMENT, "requested more paths than the beam width.");
  }
  const weir_ctc_input_t in = weir_ctc_input(logits, lengths);
  const int64_t top = search.top_paths;
  weir_tensor_t* log_probs = NULL;
  WEIR_TRY(
      weir_kernel_output(ctx, (int)(3 * top), 2, (const int64_t[]){in.batch, top}, &log_probs));
  weir_ctc_path_t* paths = weir_calloc((size_t)log_probs->count, sizeof(*paths));
  weir_status_t* status =
      paths ? weir_ctc_beam_search(weir_kernel_pool(ctx), weir_tensor_type(logits), &in, &search,
                                   paths, log_probs->data)
            : weir_out_of_memory();
  for (int i = 0; !status && i < (int)top; ++i) {
    status = write_sparse(ctx, i, (int)top, paths + i, in.batch, top);
  }
  free_paths(paths, log_probs->count);
  return status;
}

// ---- shapes ----

static weir_status_t* decode_shape(weir_shape_ctx_t* ctx, int64_t paths) {
  const weir_shape_t* logits = NULL;
  int64_t batch;
  WEIR_TRY(weir_ctc_shapes(ctx, 1, &logits, &batch));
  for (int64_t i = 0; i < paths; ++i) {
    WEIR_TRY(weir_shape_set_dims(ctx, (int)i, 2, (const int64_t[]){-1, 2}));
    WEIR_TRY(weir_shape_set_vector(ctx, (int)(paths + i), -1));
    WEIR_TRY(weir_shape_set_vector(ctx, (int)(2 * paths + i), 2));
  }
  return weir_shape_set_dims(ctx, (int)(3 * paths), 2, (const int64_t[]){batch, paths});
}

static weir_status_t* greedy_shape(weir_shape_ctx_t* ctx) { return decode_shape(ctx, 1); }
static weir_status_t* beam_shape(weir_shape_ctx_t* ctx) {
  return decode_shape(ctx, weir_attrs_int(weir_shape_attrs(ctx), "top_paths"));
}

const weir_op_module_t weir_ops_nn_ctc_decode = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "CTCGreedyDecoder",
         .attrs = "merge_repeated: bool = false; blank_index: int = -1; "
                  "T: {float, double} = DT_FLOAT",
         .inputs = "inputs: T; sequence_length: int32",
         .outputs = "decoded_indices: int64; decoded_values: int64; decoded_shape: int64; "
                    "log_probability: T",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "Decodes logits by the likeliest class at each step",
         .infer_shape = greedy_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = greedy_cpu)},
        {.name = "CTCBeamSearchDecoder",
         .attrs = "beam_width: int >= 1; top_paths: int >= 1; merge_repeated: bool = true; "
                  "T: {float, double} = DT_FLOAT",
         .inputs = "inputs: T; sequence_length: int32",
         .outputs = "decoded_indices: top_paths * int64; decoded_values: top_paths * int64; "
                    "decoded_shape: top_paths * int64; log_probability: T",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "Decodes logits to the likeliest label sequences that a beam search finds",
         .infer_shape = beam_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = beam_cpu)},
        {0}}};

// random_shuffle.c — RandomShuffle, StatelessShuffle: permutes the rows of a tensor.
#include "kernel/random/random.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"
#include "ops/random/generators.h"

static weir_status_t* shuffle_init(const weir_kernel_init_t* init, void* state) {
  weir_random_state_init(state, weir_attrs_int(init->node->attrs, "seed"),
                         weir_attrs_int(init->node->attrs, "seed2"));
  return NULL;
}

static void shuffle_deinit(void* state) { weir_random_state_deinit(state); }

// A Fisher-Yates walk from the front that draws exactly size - 1 words, as TensorFlow's.
static void permute(weir_philox_t philox, int64_t* rows, int64_t size) {
  weir_random_words_t words = weir_random_words(philox);
  for (int64_t i = 0; i < size; ++i) rows[i] = i;
  for (int64_t i = 0; i < size - 1; ++i) {
    int64_t j = i + (int64_t)(weir_random_word(&words) % (uint64_t)(size - i));
    int64_t row = rows[i];
    rows[i] = rows[j];
    rows[j] = row;
  }
}

static weir_status_t* copy_rows(const weir_tensor_t* value, const int64_t* rows,
                                weir_tensor_t* out) {
  const int64_t row_count = value->count / value->dims[0];
  const int64_t size = row_count * (int64_t)weir_dtype_size(weir_tensor_type(value));
  const bool is_plain = weir_dtype_is_plain(weir_tensor_type(value));
  for (int64_t i = 0; i < value->dims[0]; ++i) {
    char* dst = (char*)out->data + i * size;
    const char* src = (const char*)value->data + rows[i] * size;
    if (is_plain) {
      memcpy(dst, src, (size_t)size);
    } else {
      WEIR_TRY(weir_elements_copy(weir_tensor_type(value), dst, src, row_count));
    }
  }
  return NULL;
}

static bool is_permuted(const weir_tensor_t* value) {
  return value->count > 1 && value->dims[0] > 1;
}

static weir_status_t* shuffle_rows(weir_kernel_ctx_t* ctx, weir_philox_t philox) {
  const weir_tensor_t* value = weir_kernel_input(ctx, 0);
  const int64_t size = value->dims[0];
  weir_tensor_t* rows = NULL;
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, value->rank, value->dims, &out));
  WEIR_TRY(weir_kernel_scratch(ctx, WEIR_DTYPE_INT64, size, &rows));
  permute(philox, WEIR_TENSOR_DATA(rows, int64_t), size);
  weir_status_t* status = copy_rows(value, WEIR_TENSOR_DATA(rows, int64_t), out);
  weir_tensor_release(rows);
  return status;
}

static weir_status_t* shuffle_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* value = weir_kernel_input(ctx, 0);
  if (!is_permuted(value)) {
    weir_kernel_pass(ctx, 0, 0);
    return NULL;
  }
  return shuffle_rows(ctx, weir_random_reserve(ctx->state, (uint64_t)(value->dims[0] - 1 + 3) / 4));
}

static weir_status_t* stateless_cpu(weir_kernel_ctx_t* ctx) {
  weir_philox_t philox;
  WEIR_TRY(weir_philox_of_key(ctx, &philox));
  if (is_permuted(weir_kernel_input(ctx, 0))) return shuffle_rows(ctx, philox);
  weir_kernel_pass(ctx, 0, 0);
  return NULL;
}

static weir_status_t* stateless_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* key = weir_shape_input(ctx, 1);
  int64_t one = 1;
  WEIR_TRY(weir_shape_with_rank(ctx, key, 1, NULL));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 2), 1, NULL));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 3), 0, NULL));
  if (key->rank == 1) WEIR_TRY(weir_dim_join(ctx, key->dims[0], 1, &one));
  return weir_shape_set(ctx, 0, weir_shape_input(ctx, 0));
}

const weir_op_module_t weir_ops_random_random_shuffle = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "RandomShuffle",
         .attrs = "seed: int = 0; seed2: int = 0; T: type",
         .inputs = "value: T",
         .outputs = "output: T",
         .flags = WEIR_OP_VIEW | WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT,
         .summary = "Permutes a tensor along its first dimension, at random",
         .infer_shape = weir_shape_fn_unchanged,
         .kernels =
             WEIR_CPU_KERNEL(.compute = shuffle_cpu, .state_size = sizeof(weir_random_state_t),
                             .init = shuffle_init, .deinit = shuffle_deinit)},
        {.name = "StatelessShuffle",
         .attrs = "T: type",
         .inputs = "value: T; key: uint64; counter: uint64; alg: int32",
         .outputs = "output: T",
         .flags = WEIR_OP_VIEW | WEIR_OP_NO_GRADIENT,
         .summary = "Permutes a tensor along its first dimension as a key says",
         .infer_shape = stateless_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = stateless_cpu, .host_inputs = "key, counter, alg")},
        {0}}};

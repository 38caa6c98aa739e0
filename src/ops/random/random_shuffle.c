// random_shuffle.c — RandomShuffle: permutes the rows of a tensor.
#include "kernel/random/random.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

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

static weir_status_t* shuffle_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* value = weir_kernel_input(ctx, 0);
  weir_tensor_t* rows = NULL;
  weir_tensor_t* out = NULL;
  if (value->count <= 1 || value->dims[0] <= 1) {
    weir_kernel_pass(ctx, 0, 0);
    return NULL;
  }
  const int64_t size = value->dims[0];
  WEIR_TRY(weir_kernel_output(ctx, 0, value->rank, value->dims, &out));
  WEIR_TRY(weir_kernel_scratch(ctx, WEIR_DTYPE_INT64, size, &rows));
  permute(weir_random_reserve(ctx->state, (uint64_t)(size - 1 + 3) / 4),
          WEIR_TENSOR_DATA(rows, int64_t), size);
  weir_status_t* status = copy_rows(value, WEIR_TENSOR_DATA(rows, int64_t), out);
  weir_tensor_release(rows);
  return status;
}

const weir_op_module_t weir_ops_random_random_shuffle = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "RandomShuffle",
         .attrs = "seed: int = 0; seed2: int = 0; T: type",
         .inputs = "value: T",
         .outputs = "output: T",
         .flags = WEIR_OP_VIEW | WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT,
         .summary = "Permutes a tensor along its first dimension",
         .infer_shape = weir_shape_fn_unchanged,
         .kernels =
             WEIR_CPU_KERNEL(.compute = shuffle_cpu, .state_size = sizeof(weir_random_state_t),
                             .init = shuffle_init, .deinit = shuffle_deinit)},
        {0}}};

// cuda_top_k.c — Launches of top_k.cu.
#include "kernel/reduce/cuda_top_k.h"

#include "kernel/cuda/source.h"

WEIR_CUDA_SOURCE(top_k);

static int kind_of(weir_dtype_t dtype) {
  switch (dtype) {
    case WEIR_DTYPE_UINT8:
    case WEIR_DTYPE_UINT16:
    case WEIR_DTYPE_UINT32:
    case WEIR_DTYPE_UINT64: return 0;
    default: return weir_dtype_is_floating(dtype) ? 2 : 1;
  }
}

weir_status_t* weir_cuda_top_k_find(weir_device_t* device, weir_dtype_t dtype, weir_dtype_t index,
                                    weir_cuda_top_k_t* out) {
  weir_strbuf_t text = {0};
  bool is_wide = weir_dtype_size(dtype) == 8;
  out->entry_size = is_wide ? 16 : 8;
  weir_strbuf_printf(&text, "#define T %s\n#define KIND %d\n#define KEY %s\n#define INDEX %s\n",
                     weir_cuda_type_name(dtype), kind_of(dtype), is_wide ? "uint64_t" : "uint32_t",
                     weir_cuda_type_name(index));
  return weir_cuda_build(device, &text, weir_cuda_source_top_k, "top_k", &out->function);
}

// Bytes of a block's entries in shared memory, and of all blocks' elsewhere, at most.
enum { SHARED = 32 << 10, ELSEWHERE = 256 << 20 };
enum { MIN_THREADS = 32, MAX_THREADS = 1024, BLOCKS_OF_A_MULTIPROCESSOR = 32 };

// top_k_t of top_k.cu.
typedef struct top_k_t {
  int64_t rows;
  uint32_t columns, k;
  uint32_t capacity;
} top_k_t;

// The power of two that is not below |n|.
static uint32_t power_for(int64_t n) {
  uint32_t power = 1;
  while (power < n) power *= 2;
  return power;
}

static weir_cuda_size_t size_of(const weir_kernel_ctx_t* ctx, const top_k_t* t, size_t bytes) {
  int64_t most = (int64_t)weir_cuda_core(ctx->device)->multiprocessors;
  if (bytes <= SHARED) most *= BLOCKS_OF_A_MULTIPROCESSOR;
  else most = WEIR_MIN(most, WEIR_MAX((int64_t)(ELSEWHERE / bytes), 1));
  bool is_whole = t->columns <= t->capacity;
  uint32_t threads = is_whole ? t->capacity / 2 : MAX_THREADS;
  threads = WEIR_MIN(WEIR_MAX(threads, MIN_THREADS), MAX_THREADS);
  return (weir_cuda_size_t){.grid = {(unsigned)WEIR_MIN(t->rows, most), 1, 1},
                            .block = {threads, 1, 1},
                            .shared_bytes = bytes <= SHARED ? (unsigned)bytes : 0};
}

weir_status_t* weir_cuda_top_k(weir_kernel_ctx_t* ctx, const weir_cuda_top_k_t* self,
                               const weir_tensor_t* x, weir_tensor_t* values,
                               weir_tensor_t* indices) {
  if (values->count == 0) return NULL;
  int64_t columns = x->dims[x->rank - 1], k = values->dims[x->rank - 1];
  if (columns > INT64_C(1) << 30)
    return WEIR_STATUS(UNIMPLEMENTED, "Rows of more than 2^30 elements on a GPU");
  top_k_t t = {.rows = values->count / k, .columns = (uint32_t)columns, .k = (uint32_t)k};
  t.capacity = power_for(columns);
  if (t.capacity * self->entry_size > SHARED) t.capacity = power_for(k);
  size_t bytes = t.capacity * self->entry_size;
  weir_cuda_size_t size = size_of(ctx, &t, bytes);
  weir_tensor_t* memory = NULL;
  if (bytes > SHARED) {
    int64_t words = (int64_t)(size.grid[0] * (bytes / sizeof(int64_t)));
    WEIR_TRY(weir_kernel_scratch(ctx, WEIR_DTYPE_INT64, words, &memory));
  }
  const void* from = x->data;
  void *to = values->data, *places = indices->data, *entries = memory ? memory->data : NULL;
  weir_status_t* status = weir_cuda_launch(ctx->device, self->function, &size,
                                           WEIR_CUDA_ARGS(&from, &to, &places, &entries, &t));
  weir_tensor_release(memory);
  return status;
}

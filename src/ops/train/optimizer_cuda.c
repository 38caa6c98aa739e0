// optimizer_cuda.c — Sources and launches of optimizers on GPUs.
#include "ops/train/optimizer_cuda.h"

#include "kernel/cuda/source.h"

WEIR_CUDA_SOURCE(optimizer_loop);
WEIR_CUDA_SOURCE(optimizer);

// ---- init ----

static void define(const weir_kernel_init_t* init, const weir_optimizer_state_t* s,
                   weir_strbuf_t* out) {
  weir_dtype_t dtype = init->node->input_types[s->grad];
  weir_strbuf_printf(out, "#define E %s\n#define T %s\n%s%s", weir_cuda_type_name(dtype),
                     dtype == WEIR_DTYPE_DOUBLE ? "double" : "float",
                     weir_cuda_source_optimizer_loop, s->family->cuda_source);
  weir_strbuf_printf(out,
                     "#define STEP %s\n#define SLOTS %d\n#define SCALARS %d\n#define FLAG "
                     "%s\n#define UPDATES %d\n",
                     s->family->cuda_loop, s->slot_count, s->scalar_count,
                     s->flag ? "true" : "false", s->most_updates);
  if (s->indices >= 0)
    weir_strbuf_printf(out, "#define INDEX %s\n",
                       weir_cuda_type_name(init->node->input_types[s->indices]));
}

static weir_status_t* find(const weir_kernel_init_t* init, const weir_optimizer_state_t* s,
                           const char* name, weir_cuda_function_t* out_function) {
  weir_strbuf_t definitions = {0};
  define(init, s, &definitions);
  return weir_cuda_build(init->device, &definitions, weir_cuda_source_optimizer, name,
                         out_function);
}

weir_status_t* weir_optimizer_cuda_init(const weir_kernel_init_t* init,
                                        weir_optimizer_state_t* state) {
  if (state->indices < 0) return find(init, state, "dense", &state->update);
  WEIR_TRY(find(init, state, "find_uses", &state->find_uses));
  return find(init, state, "by_rows", &state->update);
}

// ---- one run ----

// Structs of optimizer.cu depend on how many slots and scalars there are: here they are words, one
// after the other.
enum { CHUNK_BYTES = 16 * 256 * 4 };  // of each slot, for a block

// update_t. Returns whether all elements can be moved sixteen bytes at a time.
static bool gather_pointers(const weir_kernel_ctx_t* ctx, const weir_optimizer_update_t* update,
                            uint64_t* words) {
  const weir_optimizer_state_t* s = ctx->state;
  uint64_t all = 0;
  int count = 0;
  for (int i = 0; i < s->slot_count; ++i)
    words[count++] = (uintptr_t)update->variables[i]->tensor->data;
  words[count++] = (uintptr_t)weir_optimizer_grad(ctx, update)->data;
  for (int i = 0; i < count; ++i) all |= words[i];
  for (int i = 0; i < s->scalar_count; ++i) {
    const weir_tensor_t* scalar = weir_optimizer_scalar(ctx, update, i);
    words[count++] = scalar ? (uintptr_t)scalar->data : 0;
  }
  return (all & 15) == 0;
}

static weir_status_t* run_dense(weir_kernel_ctx_t* ctx, const weir_optimizer_update_t* updates,
                                int count) {
  const weir_optimizer_state_t* s = ctx->state;
  const int pointers = s->slot_count + 1 + s->scalar_count;
  uint64_t table[WEIR_OPTIMIZER_TABLE_WORDS] = {0};
  uint64_t* item = table + 1;
  int64_t chunks = 0;
  for (int k = 0; k < count; ++k) {
    const weir_tensor_t* grad = weir_optimizer_grad(ctx, &updates[k]);
    int64_t chunk = CHUNK_BYTES / (int64_t)weir_dtype_size(weir_tensor_type(grad));
    if (grad->count == 0) continue;
    chunks += (grad->count + chunk - 1) / chunk;
    bool is_aligned = gather_pointers(ctx, &updates[k], item);
    item[pointers] = (uint64_t)grad->count;
    item[pointers + 1] = (uint64_t)chunks;
    item[pointers + 2] = is_aligned;
    item += pointers + 3;
    ++table[0];
  }
  if (chunks == 0) return NULL;
  weir_cuda_size_t size = weir_cuda_size_for(ctx->device, chunks * 256);
  return weir_cuda_launch(ctx->device, s->update, &size, WEIR_CUDA_ARGS(table));
}

static weir_status_t* run_rows(weir_kernel_ctx_t* ctx, const weir_optimizer_update_t* update) {
  const weir_optimizer_state_t* s = ctx->state;
  const weir_tensor_t* grad = weir_optimizer_grad(ctx, update);
  const weir_tensor_t* indices = weir_kernel_input(ctx, s->indices);
  const void* at = indices->data;
  uint64_t pointers[WEIR_OPTIMIZER_MAX_SLOTS + 1 + WEIR_OPTIMIZER_MAX_SCALARS];
  int64_t rows = update->variables[0]->tensor->dims[0];
  unsigned count = (unsigned)indices->count;
  weir_tensor_t* scratch = NULL;
  if (grad->count == 0) return NULL;
  if (indices->count > UINT32_MAX)
    return WEIR_STATUS(UNIMPLEMENTED, "Updates of 2^32 rows and more");
  int64_t width = grad->count / grad->dims[0];
  gather_pointers(ctx, update, pointers);
  WEIR_TRY(weir_kernel_scratch(ctx, WEIR_DTYPE_INT64, rows, &scratch));
  void* uses = scratch->data;
  weir_cuda_size_t by_index = weir_cuda_size_for(ctx->device, count);
  weir_cuda_size_t by_warp = weir_cuda_size_for(ctx->device, (int64_t)count * 32);
  weir_status_t* status = weir_cuda_zero(ctx->device, uses, weir_tensor_byte_size(scratch));
  if (!status)
    status = weir_cuda_launch(ctx->device, s->find_uses, &by_index,
                              WEIR_CUDA_ARGS(&at, &count, &uses, &rows));
  if (!status)
    status = weir_cuda_launch(ctx->device, s->update, &by_warp,
                              WEIR_CUDA_ARGS(pointers, &at, &count, &uses, &rows, &width));
  weir_tensor_release(scratch);
  return status;
}

weir_status_t* weir_optimizer_cuda_run(weir_kernel_ctx_t* ctx,
                                       const weir_optimizer_update_t* updates, int count) {
  const weir_optimizer_state_t* s = ctx->state;
  return s->indices >= 0 ? run_rows(ctx, updates) : run_dense(ctx, updates, count);
}

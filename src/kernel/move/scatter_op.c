// scatter_op.c — Sources and launches of scatters on GPUs.
#include "kernel/move/scatter_op.h"

#include "kernel/cuda/source.h"

WEIR_CUDA_SOURCE(scatter);

// ---- init ----

// What atomicAdd calls |dtype|; NULL: it has no such type.
static const char* added_type(weir_dtype_t dtype) {
  switch (dtype) {
    case WEIR_DTYPE_FLOAT: return "float";
    case WEIR_DTYPE_DOUBLE: return "double";
    case WEIR_DTYPE_INT32:
    case WEIR_DTYPE_UINT32: return "unsigned int";
    case WEIR_DTYPE_INT64:
    case WEIR_DTYPE_UINT64: return "unsigned long long";
    default: return NULL;
  }
}

static const char* moved_type(weir_dtype_t dtype) {
  switch (weir_dtype_size(dtype)) {
    case 1: return "uint8_t";
    case 2: return "uint16_t";
    case 4: return "uint32_t";
    case 8: return "uint64_t";
    default: return "uint128_t";
  }
}

typedef struct kind_t {
  weir_scatter_t mode;
  weir_dtype_t dtype, index;
  bool wraps;
} kind_t;

static weir_status_t* find(const weir_kernel_init_t* init, const kind_t* kind, const char* name,
                           weir_cuda_function_t* out_function) {
  weir_strbuf_t definitions = {0};
  const weir_dtype_t dtype = kind->dtype;
  const char* added = added_type(dtype);
  bool moves = kind->mode == WEIR_SCATTER_ASSIGN;
  weir_strbuf_printf(&definitions,
                     "#define T %s\n#define INDEX %s\n#define MODE %d\n#define WRAPS %d\n",
                     moves ? moved_type(dtype) : weir_cuda_type_name(dtype),
                     weir_cuda_type_name(kind->index), (int)kind->mode, kind->wraps);
  weir_strbuf_printf(&definitions,
                     "#define IS_FLOATING %d\n#define HAS_ATOMIC_ADD %d\n#define ADDED %s\n",
                     weir_dtype_is_floating(dtype), added != NULL, added ? added : "T");
  return weir_cuda_build(init->device, &definitions, weir_cuda_source_scatter, name, out_function);
}

static weir_status_t* find_all(const weir_kernel_init_t* init, const kind_t* kind,
                               weir_scatter_state_t* out_state) {
  const weir_scatter_t mode = kind->mode;
  out_state->mode = mode;
  out_state->depends_on_order =
      weir_dtype_is_floating(kind->dtype) && mode >= WEIR_SCATTER_ADD && mode <= WEIR_SCATTER_DIV;
  if (out_state->depends_on_order)
    WEIR_TRY(find(init, kind, "scatter_few", &out_state->scatter_few));
  WEIR_TRY(find(init, kind, "scatter", &out_state->scatter));
  return mode == WEIR_SCATTER_ASSIGN ? find(init, kind, "find_last", &out_state->find_last)
                                     : find(init, kind, "fill", &out_state->fill);
}

weir_status_t* weir_scatter_find(const weir_kernel_init_t* init, weir_scatter_t mode, int updates,
                                 int indices, weir_scatter_state_t* out_state) {
  const weir_dtype_t* types = init->node->input_types;
  kind_t kind = {.mode = mode, .dtype = types[updates], .index = types[indices]};
  return find_all(init, &kind, out_state);
}

weir_status_t* weir_scatter_find_wrapping(const weir_kernel_init_t* init, weir_scatter_t mode,
                                          int updates, int indices,
                                          weir_scatter_state_t* out_state) {
  const weir_dtype_t* types = init->node->input_types;
  kind_t kind = {.mode = mode, .dtype = types[updates], .index = types[indices], .wraps = true};
  return find_all(init, &kind, out_state);
}

// ---- one run ----

// Rows: each is compared with all others. More of them are added in any order, unless that must not
// be.
enum { FEW = 1024 };

// For each slice of |dst| the last of |places| that names it.
static weir_status_t* find_last(weir_kernel_ctx_t* ctx, const weir_scatter_state_t* s,
                                weir_gpu_places_t* p, const void* indices, int64_t slices,
                                weir_tensor_t** out_last) {
  WEIR_TRY(weir_kernel_scratch(ctx, WEIR_DTYPE_INT64, slices, out_last));
  void* last = (*out_last)->data;
  weir_cuda_size_t size = weir_cuda_size_for(ctx->device, p->count);
  WEIR_TRY(weir_cuda_zero(ctx->device, last, (size_t)slices * sizeof(int64_t)));
  return weir_cuda_launch(ctx->device, s->find_last, &size, WEIR_CUDA_ARGS(&indices, p, &last));
}

weir_status_t* weir_gpu_scatter(weir_kernel_ctx_t* ctx, const weir_scatter_state_t* s,
                                const weir_move_places_t* places, const weir_tensor_t* updates,
                                bool is_scalar, weir_tensor_t* dst) {
  weir_gpu_places_t p;
  WEIR_TRY(weir_gpu_places(places, &p));
  if (p.count == 0 || p.inner == 0 || dst->count == 0) return NULL;
  const void* indices = places->indices->data;
  const void* from = updates->data;
  void* to = dst->data;
  int scalar = is_scalar;
  weir_tensor_t* scratch = NULL;
  weir_status_t* status = s->mode == WEIR_SCATTER_ASSIGN
                              ? find_last(ctx, s, &p, indices, dst->count / p.inner, &scratch)
                              : NULL;
  void* last = scratch ? scratch->data : NULL;
  weir_cuda_size_t size = weir_cuda_size_for(ctx->device, p.count * p.inner);
  bool is_ordered =
      s->depends_on_order && (p.count <= FEW || weir_cuda_is_deterministic(ctx->device));
  weir_cuda_function_t function = is_ordered ? s->scatter_few : s->scatter;
  if (!status)
    status = weir_cuda_launch(ctx->device, function, &size,
                              WEIR_CUDA_ARGS(&to, &indices, &from, &p, &scalar, &last));
  weir_tensor_release(scratch);
  return status;
}

weir_status_t* weir_gpu_scatter_fill(const weir_kernel_ctx_t* ctx, const weir_scatter_state_t* s,
                                     const void* value, weir_tensor_t* dst) {
  _Alignas(16) char element[16] = {0};
  int64_t count = dst->count;
  void* to = dst->data;
  if (count == 0) return NULL;
  memcpy(element, value, weir_dtype_size(weir_tensor_type(dst)));
  weir_cuda_size_t size = weir_cuda_size_for(ctx->device, count);
  return weir_cuda_launch(ctx->device, s->fill, &size, WEIR_CUDA_ARGS(&to, &count, element));
}

// cuda_segment.c — Launches of segment.cu.
#include "kernel/reduce/cuda_segment.h"

#include "kernel/cuda/source.h"

WEIR_CUDA_SOURCE(segment);

static const char* formula_of(weir_binary_op_t op) {
  switch (op) {
    case WEIR_BINARY_MUL: return "a * b";
    case WEIR_BINARY_MAXIMUM: return "a > b || a != a ? a : b";
    case WEIR_BINARY_MINIMUM: return "a < b || a != a ? a : b";
    default: return "a + b";
  }
}

weir_status_t* weir_cuda_segment_find(const weir_kernel_init_t* init, weir_binary_op_t op,
                                      weir_dtype_t dtype, weir_dtype_t id, weir_dtype_t index,
                                      weir_cuda_segment_t* out) {
  const char* const names[] = {"segments", "long_segments"};
  weir_cuda_function_t* const found[] = {&out->segments, &out->long_segments};
  for (int i = 0; i < 2; ++i) {
    weir_strbuf_t text = {0};
    weir_strbuf_printf(&text, "#define T %s\n#define ID %s\n#define INDEX %s\n",
                       weir_cuda_type_name(dtype), weir_cuda_type_name(id),
                       weir_cuda_type_name(index));
    weir_strbuf_printf(&text, "#define JOIN (ACC)(%s)\n#define GAP %d\n", formula_of(op),
                       op == WEIR_BINARY_MUL);
    WEIR_TRY(weir_cuda_build(init->device, &text, weir_cuda_source_segment, names[i], found[i]));
  }
  return NULL;
}

enum { BLOCK = 256 };  // as segment.cu has it
// Columns of a block at most; results from which threads alone keep a GPU busy; rows of a segment
// from which several threads share them, with few results and with many.
enum { MAX_COLUMNS = 32, MANY = 1 << 16, LONG = 8, VERY_LONG = 64 };

// segments_t of segment.cu.
typedef struct segments_t {
  int64_t ids, segments;
  int64_t rows, inner;
  int norm;
  int columns;
} segments_t;

static bool is_long(const segments_t* s) {
  int64_t least = s->segments * s->inner < MANY ? LONG : VERY_LONG;
  return s->ids / s->segments >= least;
}

weir_status_t* weir_cuda_segment(const weir_kernel_ctx_t* ctx, const weir_cuda_segment_t* functions,
                                 const weir_segments_t* segments, weir_tensor_t* y) {
  if (y->count == 0) return NULL;
  const void *x = segments->data->data, *indices = segments->indices, *ids = segments->ids;
  void* to = y->data;
  segments_t s = {.ids = segments->id_count,
                  .segments = y->dims[0],
                  .rows = segments->data->dims[0],
                  .inner = y->count / y->dims[0],
                  .norm = (int)segments->norm,
                  .columns = 1};
  while (s.columns < s.inner && s.columns < MAX_COLUMNS) s.columns *= 2;
  int64_t tiles = (s.inner + s.columns - 1) / s.columns;
  bool are_long = is_long(&s);
  weir_cuda_size_t size =
      weir_cuda_size_for(ctx->device, are_long ? s.segments * tiles * BLOCK : y->count);
  return weir_cuda_launch(ctx->device, are_long ? functions->long_segments : functions->segments,
                          &size, WEIR_CUDA_ARGS(&x, &indices, &ids, &to, &s));
}

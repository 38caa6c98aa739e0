// cuda_scan.c — Launches of scan.cu.
#include "kernel/reduce/cuda_scan.h"

#include "kernel/cuda/source.h"

WEIR_CUDA_SOURCE(scan);

weir_status_t* weir_cuda_scan_find(weir_device_t* device, weir_binary_op_t op, weir_dtype_t dtype,
                                   weir_cuda_scan_t* out) {
  const char* const names[] = {"scan_columns", "scan_rows", "scan_totals", "scan_carries"};
  weir_cuda_function_t* const found[] = {&out->columns, &out->rows, &out->totals, &out->carries};
  const char* identity = op == WEIR_BINARY_ADD ? "0" : op == WEIR_BINARY_MUL ? "1" : "-INFINITY";
  const char* combine = op == WEIR_BINARY_ADD   ? "a + b"
                        : op == WEIR_BINARY_MUL ? "a * b"
                                                : "a == b ? a + (ACC)0.69314718055994530942"
                                                  " : (a > b ? a : b) + log1p(exp(-fabs(a - b)))";
  for (int i = 0; i < 4; ++i) {
    weir_strbuf_t text = {0};
    weir_strbuf_printf(&text, "#define T %s\n#define IDENTITY %s\n#define COMBINE %s\n",
                       weir_cuda_type_name(dtype), identity, combine);
    WEIR_TRY(weir_cuda_build(device, &text, weir_cuda_source_scan, names[i], found[i]));
  }
  return NULL;
}

enum { BLOCK = 256, TILE = 1024 };  // as scan.cu has them
// Elements up to which a thread takes a whole row; rows from which threads, and blocks, keep a GPU
// busy; elements of a chunk at least; chunks of a row at most, so that a few blocks see to them.
enum { SHORT = 32, MANY_COLUMNS = 4096, MANY_ROWS = 256, CHUNK = 4096, MAX_CHUNKS = 2048 };

// scan_t of scan.cu.
typedef struct scan_t {
  int64_t rows, length, inner;
  int64_t chunk, chunks;
  int is_exclusive, is_reverse;
} scan_t;

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

static void cut(scan_t* s) {
  s->chunk = s->length;
  s->chunks = 1;
  if (s->rows >= MANY_ROWS || s->length <= CHUNK) return;
  int64_t least = ceil_div(ceil_div(s->length, MAX_CHUNKS), TILE) * TILE;
  s->chunk = WEIR_MAX(least, CHUNK);
  s->chunks = ceil_div(s->length, s->chunk);
}

static weir_status_t* find_carries(weir_kernel_ctx_t* ctx, const weir_cuda_scan_t* f, scan_t* s,
                                   const void* x, const weir_tensor_t* carries) {
  weir_cuda_size_t units = weir_cuda_size_for(ctx->device, s->rows * s->chunks * BLOCK);
  weir_cuda_size_t rows = weir_cuda_size_for(ctx->device, s->rows * BLOCK);
  void* data = carries->data;
  WEIR_TRY(weir_cuda_launch(ctx->device, f->totals, &units, WEIR_CUDA_ARGS(&x, &data, s)));
  return weir_cuda_launch(ctx->device, f->carries, &rows, WEIR_CUDA_ARGS(&data, s));
}

static weir_status_t* scan_rows(weir_kernel_ctx_t* ctx, const weir_cuda_scan_t* f, scan_t* s,
                                const void* x, void* y) {
  weir_tensor_t* carries = NULL;
  weir_status_t* status = NULL;
  void* data = NULL;
  if (s->chunks > 1) {  // of 8 bytes at most
    WEIR_TRY(weir_kernel_scratch(ctx, WEIR_DTYPE_DOUBLE, s->rows * s->chunks, &carries));
    data = carries->data;
    status = find_carries(ctx, f, s, x, carries);
  }
  weir_cuda_size_t size = weir_cuda_size_for(ctx->device, s->rows * s->chunks * BLOCK);
  if (!status)
    status = weir_cuda_launch(ctx->device, f->rows, &size, WEIR_CUDA_ARGS(&x, &y, &data, s));
  weir_tensor_release(carries);
  return status;
}

weir_status_t* weir_cuda_scan(weir_kernel_ctx_t* ctx, const weir_cuda_scan_t* functions,
                              const weir_scan_shape_t* shape, const void* x, void* y) {
  scan_t s = {.rows = shape->outer * shape->inner,
              .length = shape->length,
              .inner = shape->inner,
              .is_exclusive = shape->is_exclusive,
              .is_reverse = shape->is_reverse};
  if (s.rows == 0 || s.length == 0) return NULL;
  cut(&s);
  if (s.length > SHORT && (s.inner == 1 || s.rows < MANY_COLUMNS))
    return scan_rows(ctx, functions, &s, x, y);
  weir_cuda_size_t size = weir_cuda_size_for(ctx->device, s.rows);
  return weir_cuda_launch(ctx->device, functions->columns, &size, WEIR_CUDA_ARGS(&x, &y, &s));
}

// move_op.c — Moves of kernels: on the CPU by move.h, on a GPU by move.cu and indexed.cu.
#include "kernel/move/move_op.h"

#include "kernel/cuda/source.h"

WEIR_CUDA_SOURCE(move);
WEIR_CUDA_SOURCE(indexed);

// ---- init ----

// Which of the functions is that for elements of |size| bytes, a power of two.
static int size_class(size_t size) { return __builtin_ctz((unsigned)size); }

// |name| for elements of each size from class |first| on.
static weir_status_t* find(const weir_kernel_init_t* init, const char* text, const char* index,
                           const char* name, int first, weir_cuda_function_t* functions) {
  for (int i = first; i < WEIR_MOVE_SIZES; ++i) {
    weir_strbuf_t definitions = {0};
    if (index) weir_strbuf_printf(&definitions, "#define INDEX %s\n", index);
    weir_strbuf_printf(&definitions, "typedef %s E;\n", weir_cuda_bytes_name((size_t)1 << i));
    WEIR_TRY(weir_cuda_build(init->device, &definitions, text, name, &functions[i]));
  }
  return NULL;
}

// Elements moved are of the type of the first output.
static int first_class(const weir_kernel_init_t* init) {
  return size_class(weir_dtype_size(weir_dtype_base(init->node->output_types[0])));
}

weir_status_t* weir_move_gpu_init(const weir_kernel_init_t* init, void* state) {
  weir_move_state_t* s = state;
  int first = init->node->output_count > 0 ? first_class(init) : 0;
  WEIR_TRY(find(init, weir_cuda_source_move, NULL, "box", first, s->box));
  WEIR_TRY(find(init, weir_cuda_source_move, NULL, "tiles", first, s->tiles));
  WEIR_TRY(find(init, weir_cuda_source_move, NULL, "parts", first, s->parts));
  return find(init, weir_cuda_source_move, NULL, "border", first, s->border);
}

weir_status_t* weir_move_indexed_gpu_init(const weir_kernel_init_t* init, void* state,
                                          const char* name, int indices) {
  weir_move_state_t* s = state;
  const char* index = weir_cuda_type_name(init->node->input_types[indices]);
  return find(init, weir_cuda_source_indexed, index, name, first_class(init), s->indexed);
}

// ---- sizes ----

// How many elements of |size| bytes make one that is moved at once: a power of two that divides
// |multiples|, at most 16 bytes, and to which both pointers are aligned.
static int64_t widening(size_t size, int64_t multiples, const void* src, const void* dst) {
  uint64_t all = (uint64_t)((uintptr_t)src | (uintptr_t)dst) | (uint64_t)multiples * size | 16;
  uint64_t width = all & (~all + 1);
  return width > size ? (int64_t)(width / size) : 1;
}

// ---- strided copies. The structs are as move.cu has them. ----

enum { MAX_RANK = 16, TILE = 32, TILE_THREADS = 8, SMALL = 8, AT_ONCE = 4 };

typedef struct box_t {
  int rank;
  int is_wide;
  int64_t count;
  weir_cuda_divisor_t by[MAX_RANK];
  int64_t sizes[MAX_RANK], src[MAX_RANK], dst[MAX_RANK];
} box_t;

typedef struct tiles_t {
  int64_t rows, columns;
  int64_t row_tiles, column_tiles;
  int64_t column_stride, row_stride;
} tiles_t;

static box_t box_of(int rank, const weir_move_dim_t* dims) {
  box_t box = {.rank = rank, .count = 1};
  for (int i = 0; i < rank; ++i) {
    box.sizes[i] = dims[i].size;
    box.src[i] = dims[i].src_stride;
    box.dst[i] = dims[i].dst_stride;
    box.count *= dims[i].size;
  }
  box.is_wide = box.count > INT32_MAX;
  for (int i = 0; i < rank && !box.is_wide; ++i) box.by[i] = weir_cuda_divisor(dims[i].size);
  return box;
}

// The innermost run in larger pieces, where all that is stepped over is a multiple of them. Returns
// the size of a piece.
static size_t widen(size_t size, int rank, weir_move_dim_t* dims, const void* src,
                    const void* dst) {
  weir_move_dim_t* last = &dims[rank - 1];
  if (last->src_stride != 1 || last->dst_stride != 1) return size;
  int64_t multiples = last->size;
  for (int i = 0; i + 1 < rank; ++i) multiples |= dims[i].src_stride | dims[i].dst_stride;
  int64_t width = widening(size, multiples, src, dst);
  for (int i = 0; i + 1 < rank; ++i) {
    dims[i].src_stride /= width;
    dims[i].dst_stride /= width;
  }
  last->size /= width;
  return size * (size_t)width;
}

// The dimension whose elements are neighbours in the source, where it is another than the last,
// whose elements are neighbours in the destination, and both are long; or -1.
static int find_transposed(int rank, const weir_move_dim_t* dims) {
  weir_move_dim_t last = dims[rank - 1];
  if (last.dst_stride != 1 || last.src_stride == 1 || last.src_stride == 0 || last.size < SMALL)
    return -1;
  for (int i = 0; i + 1 < rank; ++i) {
    if (dims[i].src_stride == 1 && dims[i].size >= SMALL) return i;
  }
  return -1;
}

static weir_status_t* copy_tiles(const weir_kernel_ctx_t* ctx, size_t size, int rank,
                                 weir_move_dim_t* dims, int at, const void* src, void* dst) {
  const weir_move_dim_t row = dims[at], column = dims[rank - 1];
  for (int i = at; i + 2 < rank; ++i) dims[i] = dims[i + 1];
  tiles_t tiles = {.rows = row.size,
                   .columns = column.size,
                   .row_tiles = (row.size + TILE - 1) / TILE,
                   .column_tiles = (column.size + TILE - 1) / TILE,
                   .column_stride = column.src_stride,
                   .row_stride = row.dst_stride};
  box_t box = box_of(rank - 2, dims);
  weir_cuda_size_t grid =
      weir_cuda_size_for(ctx->device, box.count * tiles.row_tiles * tiles.column_tiles * 256);
  grid.block[0] = TILE;
  grid.block[1] = TILE_THREADS;
  return weir_cuda_launch(ctx->device, weir_move_gpu(ctx)->tiles[size_class(size)], &grid,
                          WEIR_CUDA_ARGS(&src, &dst, &tiles, &box));
}

static weir_status_t* copy_merged(const weir_kernel_ctx_t* ctx, size_t size, int rank,
                                  weir_move_dim_t* dims, const void* src, void* dst) {
  if (rank > MAX_RANK) {
    for (int64_t i = 0; i < dims[0].size; ++i) {
      weir_move_dim_t rest[WEIR_MOVE_MAX_RANK];
      memcpy(rest, dims + 1, (size_t)(rank - 1) * sizeof(*dims));
      WEIR_TRY(copy_merged(ctx, size, rank - 1, rest,
                           (const char*)src + i * dims[0].src_stride * (int64_t)size,
                           (char*)dst + i * dims[0].dst_stride * (int64_t)size));
    }
    return NULL;
  }
  if (rank == 0) return weir_cuda_copy(ctx->device, dst, src, size);
  if (rank == 1 && dims[0].src_stride == 1 && dims[0].dst_stride == 1)
    return weir_cuda_copy(ctx->device, dst, src, (size_t)dims[0].size * size);
  int transposed = find_transposed(rank, dims);
  if (transposed >= 0) return copy_tiles(ctx, size, rank, dims, transposed, src, dst);
  size = widen(size, rank, dims, src, dst);
  box_t box = box_of(rank, dims);
  weir_cuda_size_t grid = weir_cuda_size_for(ctx->device, (box.count + AT_ONCE - 1) / AT_ONCE);
  return weir_cuda_launch(ctx->device, weir_move_gpu(ctx)->box[size_class(size)], &grid,
                          WEIR_CUDA_ARGS(&src, &dst, &box));
}

weir_status_t* weir_kernel_move_box(const weir_kernel_ctx_t* ctx, weir_dtype_t dtype, int rank,
                                    weir_move_dim_t* dims, const void* src, void* dst) {
  if (!weir_move_gpu(ctx)) return weir_move_box(weir_kernel_pool(ctx), dtype, rank, dims, src, dst);
  rank = weir_move_merge(rank, dims);
  return rank < 0 ? NULL : copy_merged(ctx, weir_dtype_size(dtype), rank, dims, src, dst);
}

weir_status_t* weir_kernel_move_copy(const weir_kernel_ctx_t* ctx, weir_dtype_t dtype,
                                     const void* src, void* dst, int64_t count) {
  if (!weir_move_gpu(ctx)) return weir_move_copy(weir_kernel_pool(ctx), dtype, src, dst, count);
  size_t size = (size_t)count * weir_dtype_size(dtype);
  return size ? weir_cuda_copy(ctx->device, dst, src, size) : NULL;
}

weir_status_t* weir_kernel_move_zero(const weir_kernel_ctx_t* ctx, weir_dtype_t dtype, void* dst,
                                     int64_t count) {
  size_t size = (size_t)count * weir_dtype_size(dtype);
  if (weir_move_gpu(ctx)) return size ? weir_cuda_zero(ctx->device, dst, size) : NULL;
  weir_move_zero(dtype, dst, count);
  return NULL;
}

// ---- parts of rows ----

enum { SMALL_PART = 1 << 18 };  // bytes: what is larger on average takes longer than its launch

typedef struct parts_t {
  int count, is_cut;
  uint32_t total;
  weir_cuda_divisor_t columns;
  int64_t row_stride;
  uintptr_t whole;
  uintptr_t at[WEIR_MOVE_MAX_PARTS];
  uint32_t ends[WEIR_MOVE_MAX_PARTS];
} parts_t;

static weir_status_t* move_part(const weir_kernel_parts_t* p, uintptr_t whole, uintptr_t part,
                                int64_t width) {
  weir_move_dim_t dims[] = {{p->rows, width, p->columns}, {width, 1, 1}};
  if (!p->is_cut)
    return weir_kernel_move_box(p->ctx, p->dtype, 2, dims, (const void*)part, (void*)whole);
  dims[0] = (weir_move_dim_t){p->rows, p->columns, width};
  return weir_kernel_move_box(p->ctx, p->dtype, 2, dims, (const void*)whole, (void*)part);
}

static weir_status_t* launch_parts(const weir_kernel_parts_t* p, size_t size) {
  uintptr_t addresses = p->whole;
  int64_t multiples = p->rows > 1 ? p->columns : 0, end = 0;
  for (int i = 0; i < p->count; ++i) {
    addresses |= p->at[i];
    multiples |= p->widths[i];
  }
  int64_t wide = widening(size, multiples, (const void*)addresses, NULL);
  parts_t parts = {.count = p->count,
                   .is_cut = p->is_cut,
                   .total = (uint32_t)(p->waiting / wide * p->rows),
                   .columns = weir_cuda_divisor(p->waiting / wide),
                   .row_stride = p->columns / wide,
                   .whole = p->whole};
  for (int i = 0; i < p->count; ++i) {
    parts.at[i] = p->at[i];
    parts.ends[i] = (uint32_t)(end += p->widths[i] / wide);
  }
  weir_cuda_size_t grid = weir_cuda_size_for(p->ctx->device, parts.total);
  return weir_cuda_launch(p->ctx->device,
                          weir_move_gpu(p->ctx)->parts[size_class(size * (size_t)wide)], &grid,
                          WEIR_CUDA_ARGS(&parts));
}

static weir_status_t* move_waiting(const weir_kernel_parts_t* p, size_t size) {
  if (p->count > 1 && p->waiting * p->rows * (int64_t)size <= (int64_t)p->count * SMALL_PART)
    return launch_parts(p, size);
  uintptr_t whole = p->whole;
  for (int i = 0; i < p->count; ++i) {
    WEIR_TRY(move_part(p, whole, p->at[i], p->widths[i]));
    whole += (size_t)p->widths[i] * size;
  }
  return NULL;
}

weir_status_t* weir_kernel_finish_parts(weir_kernel_parts_t* parts) {
  size_t size = weir_dtype_size(parts->dtype);
  weir_status_t* status = move_waiting(parts, size);
  parts->whole += (size_t)parts->waiting * size;
  parts->waiting = parts->count = 0;
  return status;
}

static weir_status_t* add_part(weir_kernel_parts_t* p, uintptr_t part, int64_t width) {
  if (width == 0 || p->rows == 0) return NULL;
  p->at[p->count] = part;
  p->widths[p->count++] = width;
  p->waiting += width;
  bool can_wait = weir_move_gpu(p->ctx) && p->count < WEIR_MOVE_MAX_PARTS;
  return can_wait ? NULL : weir_kernel_finish_parts(p);
}

weir_status_t* weir_kernel_join_part(weir_kernel_parts_t* parts, const void* part, int64_t width) {
  return add_part(parts, (uintptr_t)part, width);
}

weir_status_t* weir_kernel_cut_part(weir_kernel_parts_t* parts, void* part, int64_t width) {
  return add_part(parts, (uintptr_t)part, width);
}

// ---- borders ----

typedef struct border_t {
  int rank;
  int is_mirror;
  int64_t offset;
  int64_t count;
  int64_t sizes[MAX_RANK], before[MAX_RANK], inner[MAX_RANK], strides[MAX_RANK];
} border_t;

// Dimensions without a border are joined with their neighbours before them: with any for a
// constant, with such as have none themselves for a mirror image. False when too many are left.
static bool merge_border(const weir_tensor_t* in, const weir_move_border_t* border,
                         const weir_tensor_t* out, border_t* b) {
  bool is_last_plain = false;
  *b = (border_t){.is_mirror = !border->value, .offset = border->offset, .count = out->count};
  for (int i = 0; i < in->rank; ++i) {
    bool is_plain = in->dims[i] == out->dims[i];
    if (is_plain && b->rank > 0 && (is_last_plain || !b->is_mirror)) {
      int at = b->rank - 1;
      b->sizes[at] *= out->dims[i];
      b->before[at] *= out->dims[i];
      b->inner[at] *= in->dims[i];
      continue;
    }
    if (b->rank == MAX_RANK) return false;
    b->sizes[b->rank] = out->dims[i];
    b->before[b->rank] = border->before[i];
    b->inner[b->rank++] = in->dims[i];
    is_last_plain = is_plain;
  }
  return true;
}

// The size of a piece of the innermost dimension that is moved at once.
static size_t widen_border(size_t size, const weir_tensor_t* in, const weir_tensor_t* out,
                           border_t* b) {
  int last = b->rank - 1;
  if (last < 0 || (b->is_mirror && b->before[last] | (b->sizes[last] ^ b->inner[last])))
    return size;
  int64_t width =
      widening(size, b->sizes[last] | b->before[last] | b->inner[last], in->data, out->data);
  b->sizes[last] /= width;
  b->before[last] /= width;
  b->inner[last] /= width;
  b->count /= width;
  return size * (size_t)width;
}

weir_status_t* weir_gpu_move_border(const weir_kernel_ctx_t* ctx, const weir_tensor_t* in,
                                    const weir_move_border_t* border, const weir_tensor_t* out) {
  const size_t size = weir_dtype_size(weir_tensor_type(in));
  const void* src = in->data;
  void* dst = out->data;
  border_t b;
  if (!merge_border(in, border, out, &b))
    return WEIR_STATUS(UNIMPLEMENTED, "Borders in more than %d dimensions", MAX_RANK);
  size_t wide = widen_border(size, in, out, &b);
  _Alignas(16) char value[16] = {0};
  for (size_t i = 0; border->value && i < wide; i += size) memcpy(value + i, border->value, size);
  int64_t stride = 1;
  for (int i = b.rank - 1; i >= 0; --i) {
    b.strides[i] = stride;
    stride *= b.inner[i];
  }
  weir_cuda_size_t grid = weir_cuda_size_for(ctx->device, b.count);
  return weir_cuda_launch(ctx->device, weir_move_gpu(ctx)->border[size_class(wide)], &grid,
                          WEIR_CUDA_ARGS(&src, &dst, &b, value));
}

// ---- by indices ----

weir_status_t* weir_kernel_move_gather(const weir_kernel_ctx_t* ctx, weir_dtype_t dtype,
                                       const weir_move_gather_t* gather, const void* src,
                                       const weir_tensor_t* indices, void* dst, int64_t* out_bad) {
  if (!weir_move_gpu(ctx))
    return weir_move_gather(weir_kernel_pool(ctx), dtype, gather, src, indices, dst, out_bad);
  const void* index = indices->data;
  size_t size = weir_dtype_size(dtype);
  weir_move_gather_t g = *gather;
  *out_bad = -1;
  int64_t count = g.batch * g.outer * g.index_count * g.inner;
  if (count == 0) return NULL;
  int64_t width = widening(size, g.inner, src, dst);
  g.inner /= width;
  weir_cuda_size_t grid = weir_cuda_size_for(ctx->device, count / width);
  return weir_cuda_launch(ctx->device,
                          weir_move_gpu(ctx)->indexed[size_class(size * (size_t)width)], &grid,
                          WEIR_CUDA_ARGS(&src, &index, &dst, &g));
}

weir_status_t* weir_gpu_places(const weir_move_places_t* places, weir_gpu_places_t* out_places) {
  if (places->depth > WEIR_GPU_MAX_DEPTH)
    return WEIR_STATUS(UNIMPLEMENTED, "Rows of more than %d indices", WEIR_GPU_MAX_DEPTH);
  *out_places =
      (weir_gpu_places_t){.depth = places->depth, .count = places->count, .inner = places->inner};
  for (int i = 0; i < places->depth; ++i) out_places->dims[i] = places->dims[i];
  return NULL;
}

weir_status_t* weir_gpu_move_slices(const weir_kernel_ctx_t* ctx, weir_dtype_t dtype,
                                    const weir_move_places_t* places, const void* src, void* dst) {
  weir_gpu_places_t p;
  WEIR_TRY(weir_gpu_places(places, &p));
  if (p.count == 0 || p.inner == 0) return NULL;
  const void* index = places->indices->data;
  size_t size = weir_dtype_size(dtype);
  int64_t width = widening(size, p.inner, src, dst);
  p.inner /= width;
  weir_cuda_size_t grid = weir_cuda_size_for(ctx->device, p.count * p.inner);
  return weir_cuda_launch(ctx->device,
                          weir_move_gpu(ctx)->indexed[size_class(size * (size_t)width)], &grid,
                          WEIR_CUDA_ARGS(&src, &index, &dst, &p));
}

weir_status_t* weir_gpu_move_sequences(const weir_kernel_ctx_t* ctx, weir_dtype_t dtype,
                                       const weir_move_sequences_t* sequences, const void* src,
                                       const weir_tensor_t* lengths, void* dst) {
  weir_move_sequences_t s = *sequences;
  if (s.count == 0) return NULL;
  const void* index = lengths->data;
  size_t size = weir_dtype_size(dtype);
  int64_t width = widening(size, s.batch_stride | s.place_stride, src, dst);
  s.count /= width;
  s.batch_stride /= width;
  s.place_stride /= width;
  weir_cuda_size_t grid = weir_cuda_size_for(ctx->device, s.count);
  return weir_cuda_launch(ctx->device,
                          weir_move_gpu(ctx)->indexed[size_class(size * (size_t)width)], &grid,
                          WEIR_CUDA_ARGS(&src, &index, &dst, &s));
}

// move.c — Moving elements without knowing their type: strided copies of any rank, fills, gathers
// of rows.
#include "kernel/move/move.h"

#include "base/memory.h"

// The innermost two dimensions of a strided copy: |na| rows of |nb| elements.
typedef struct weir_plane_t {
  int64_t na, src_a, dst_a;
  int64_t nb, src_b, dst_b;
} weir_plane_t;

// Elements by size. Wrapped memory has any alignment, and tensors of all types pass through here.
typedef uint8_t weir_bytes1_t __attribute__((may_alias));
typedef uint16_t weir_bytes2_t __attribute__((may_alias, aligned(1)));
typedef uint32_t weir_bytes4_t __attribute__((may_alias, aligned(1)));
typedef uint64_t weir_bytes8_t __attribute__((may_alias, aligned(1)));
typedef struct weir_bytes16_t {
  uint64_t low, high;
} __attribute__((may_alias, packed)) weir_bytes16_t;

#define NAME plane1
#define T weir_bytes1_t
#include "kernel/move/move_plane.inc"
#define NAME plane2
#define T weir_bytes2_t
#include "kernel/move/move_plane.inc"
#define NAME plane4
#define T weir_bytes4_t
#include "kernel/move/move_plane.inc"
#define NAME plane8
#define T weir_bytes8_t
#include "kernel/move/move_plane.inc"
#define NAME plane16
#define T weir_bytes16_t
#include "kernel/move/move_plane.inc"

typedef struct plane_ops_t {
  void (*copy)(const weir_plane_t* plane, const void* src, void* dst);
  void (*fill)(const void* value, void* dst, int64_t count);
  void (*gather)(const void* src, const int64_t* rows, void* dst, int64_t count);
} plane_ops_t;

static const plane_ops_t* plane_ops(size_t size) {
  static const plane_ops_t ops[] = {{plane1, plane1_fill, plane1_gather},
                                    {plane2, plane2_fill, plane2_gather},
                                    {plane4, plane4_fill, plane4_gather},
                                    {plane8, plane8_fill, plane8_gather},
                                    {plane16, plane16_fill, plane16_gather}};
  switch (size) {
    case 1: return &ops[0];
    case 2: return &ops[1];
    case 4: return &ops[2];
    case 8: return &ops[3];
    default: return &ops[4];
  }
}

static void pool_for(weir_pool_t* pool, int64_t total, double cost_ns, weir_range_fn_t fn,
                     void* arg) {
  if (pool) {
    weir_pool_for(pool, total, cost_ns, fn, arg);
  } else {
    fn(arg, 0, total);
  }
}

// ---- dimensions ----

void weir_move_contiguous_src(int rank, weir_move_dim_t* dims) {
  int64_t stride = 1;
  for (int i = rank - 1; i >= 0; --i) {
    dims[i].src_stride = stride;
    stride *= dims[i].size;
  }
}

void weir_move_contiguous_dst(int rank, weir_move_dim_t* dims) {
  int64_t stride = 1;
  for (int i = rank - 1; i >= 0; --i) {
    dims[i].dst_stride = stride;
    stride *= dims[i].size;
  }
}

int weir_move_merge(int rank, weir_move_dim_t* dims) {
  int n = 0;
  for (int i = 0; i < rank; ++i) {
    if (dims[i].size == 0) return -1;
    if (dims[i].size == 1) continue;
    if (n > 0 && dims[n - 1].src_stride == dims[i].src_stride * dims[i].size &&
        dims[n - 1].dst_stride == dims[i].dst_stride * dims[i].size) {
      int64_t size = dims[n - 1].size * dims[i].size;
      dims[n - 1] = dims[i];
      dims[n - 1].size = size;
    } else {
      dims[n++] = dims[i];
    }
  }
  return n;
}

// Brings the dimension that is contiguous in |src| next to the last, which is contiguous in |dst|:
// a transposition.
static void order_dims(int rank, weir_move_dim_t* dims) {
  weir_move_dim_t last = dims[rank - 1];
  if (last.dst_stride != 1 || last.src_stride == 1 || last.src_stride == 0) return;
  for (int i = rank - 2; i >= 0; --i) {
    if (dims[i].src_stride != 1) continue;
    weir_move_dim_t found = dims[i];
    for (int j = i; j < rank - 2; ++j) dims[j] = dims[j + 1];
    dims[rank - 2] = found;
    return;
  }
}

// ---- strided copies of plain elements ----

typedef struct box_t {
  const plane_ops_t* ops;
  size_t size;  // bytes an element
  int rank;     // of the dimensions outside the plane
  const weir_move_dim_t* dims;
  weir_plane_t plane;   // its rows are cut into chunks
  int64_t chunk;        // rows a chunk
  int64_t chunk_count;  // chunks a plane
  const char* src;
  char* dst;
} box_t;

// A position among the outer dimensions.
typedef struct cursor_t {
  int64_t src;
  int64_t dst;
  int64_t index[WEIR_MOVE_MAX_RANK];
} cursor_t;

static void cursor_seek(cursor_t* cursor, int rank, const weir_move_dim_t* dims, int64_t position) {
  cursor->src = 0;
  cursor->dst = 0;
  for (int i = rank - 1; i >= 0; --i) {
    cursor->index[i] = position % dims[i].size;
    position /= dims[i].size;
    cursor->src += cursor->index[i] * dims[i].src_stride;
    cursor->dst += cursor->index[i] * dims[i].dst_stride;
  }
}

static void cursor_next(cursor_t* cursor, int rank, const weir_move_dim_t* dims) {
  for (int i = rank - 1; i >= 0; --i) {
    cursor->src += dims[i].src_stride;
    cursor->dst += dims[i].dst_stride;
    if (++cursor->index[i] < dims[i].size) return;
    cursor->index[i] = 0;
    cursor->src -= dims[i].src_stride * dims[i].size;
    cursor->dst -= dims[i].dst_stride * dims[i].size;
  }
}

static void box_range(void* arg, int64_t begin, int64_t end) {
  const box_t* box = arg;
  const int64_t size = (int64_t)box->size;
  cursor_t cursor;
  cursor_seek(&cursor, box->rank, box->dims, begin / box->chunk_count);
  int64_t chunk = begin % box->chunk_count;
  for (int64_t i = begin; i < end; ++i) {
    weir_plane_t plane = box->plane;
    int64_t first = chunk * box->chunk;
    plane.na = WEIR_MIN(box->chunk, box->plane.na - first);
    box->ops->copy(&plane, box->src + (cursor.src + first * plane.src_a) * size,
                   box->dst + (cursor.dst + first * plane.dst_a) * size);
    if (++chunk == box->chunk_count) {
      chunk = 0;
      cursor_next(&cursor, box->rank, box->dims);
    }
  }
}

// A long row is cut in two dimensions, so that it can be shared among threads.
enum { LONG_ROW = 16384 };

static void run_box(weir_pool_t* pool, box_t* box, weir_move_dim_t last, weir_move_dim_t before) {
  box->plane = (weir_plane_t){.na = before.size,
                              .src_a = before.src_stride,
                              .dst_a = before.dst_stride,
                              .nb = last.size,
                              .src_b = last.src_stride,
                              .dst_b = last.dst_stride};
  int64_t outer = 1;
  for (int i = 0; i < box->rank; ++i) outer *= box->dims[i].size;
  int64_t rows = WEIR_MAX(1, LONG_ROW / WEIR_MAX(last.size, 1));
  // A transposition reads as many elements in a run as a chunk has rows: whole cache lines.
  int64_t multiple = before.src_stride == 1 ? 32 : 8;
  box->chunk = WEIR_MIN(before.size, (rows + multiple - 1) / multiple * multiple);
  box->chunk_count = (before.size + box->chunk - 1) / box->chunk;
  bool is_run = last.src_stride == 1 && last.dst_stride == 1;
  double element_ns = is_run ? 0.06 * (double)box->size : 0.3 + 0.1 * (double)box->size;
  double cost_ns = 2 + element_ns * (double)box->chunk * (double)last.size;
  pool_for(pool, outer * box->chunk_count, cost_ns, box_range, box);
}

static void copy_range(void* arg, int64_t begin, int64_t end) {
  const box_t* box = arg;
  size_t offset = (size_t)begin * box->size;
  memcpy(box->dst + offset, box->src + offset, (size_t)(end - begin) * box->size);
}

static void copy_run(weir_pool_t* pool, size_t size, const void* src, void* dst, int64_t count) {
  box_t box = {.size = size, .src = src, .dst = dst};
  if ((size_t)count * size < 65536) {
    copy_range(&box, 0, count);
  } else {
    pool_for(pool, count, 0.06 * (double)size, copy_range, &box);
  }
}

// ---- elements that are more than bytes ----

// The bytes that |count| elements have beside themselves.
static size_t outside_size(weir_dtype_t dtype, const void* elements, int64_t count) {
  size_t size = 0;
  if (dtype != WEIR_DTYPE_STRING) return 0;
  for (int64_t i = 0; i < count; ++i)
    size += weir_string_view((const weir_string_t*)elements + i).size;
  return size;
}

// A long string that is copied often: few bytes can make more than there is memory for.
static weir_status_t* check_outside(size_t size) {
  if (size < WEIR_LARGE_BLOCK || !weir_memory_lacks(size)) return NULL;
  return WEIR_STATUS(RESOURCE_EXHAUSTED, "there is no memory for strings of %zu bytes in all",
                     size);
}

static size_t box_outside_size(weir_dtype_t dtype, int rank, const weir_move_dim_t* dims,
                               const char* src, int64_t count) {
  size_t size = 0;
  cursor_t cursor;
  if (dtype != WEIR_DTYPE_STRING) return 0;
  cursor_seek(&cursor, rank, dims, 0);
  for (int64_t i = 0; i < count; ++i) {
    size += outside_size(dtype, (const weir_string_t*)(const void*)src + cursor.src, 1);
    cursor_next(&cursor, rank, dims);
  }
  return size;
}

static weir_status_t* copy_objects(weir_dtype_t dtype, int rank, const weir_move_dim_t* dims,
                                   const char* src, char* dst) {
  const int64_t size = (int64_t)weir_dtype_size(dtype);
  int64_t count = 1;
  for (int i = 0; i < rank; ++i) count *= dims[i].size;
  WEIR_TRY(check_outside(box_outside_size(dtype, rank, dims, src, count)));
  cursor_t cursor;
  cursor_seek(&cursor, rank, dims, 0);
  for (int64_t i = 0; i < count; ++i) {
    WEIR_TRY(weir_elements_copy(dtype, dst + cursor.dst * size, src + cursor.src * size, 1));
    cursor_next(&cursor, rank, dims);
  }
  return NULL;
}

weir_status_t* weir_move_box(weir_pool_t* pool, weir_dtype_t dtype, int rank, weir_move_dim_t* dims,
                             const void* src, void* dst) {
  rank = weir_move_merge(rank, dims);
  if (rank < 0) return NULL;
  if (!weir_dtype_is_plain(dtype)) return copy_objects(dtype, rank, dims, src, dst);
  size_t size = weir_dtype_size(dtype);
  if (rank == 0) {
    memcpy(dst, src, size);
    return NULL;
  }
  if (rank == 1 && dims[0].src_stride == 1 && dims[0].dst_stride == 1) {
    copy_run(pool, size, src, dst, dims[0].size);
    return NULL;
  }
  order_dims(rank, dims);
  box_t box = {.ops = plane_ops(size), .size = size, .dims = dims, .src = src, .dst = dst};
  weir_move_dim_t last = dims[rank - 1];
  weir_move_dim_t before = {.size = 1};
  if (rank > 1) before = dims[rank - 2];
  box.rank = WEIR_MAX(rank - 2, 0);
  run_box(pool, &box, last, before);
  return NULL;
}

weir_status_t* weir_move_copy(weir_pool_t* pool, weir_dtype_t dtype, const void* src, void* dst,
                              int64_t count) {
  if (count == 0) return NULL;
  if (!weir_dtype_is_plain(dtype)) return weir_elements_copy(dtype, dst, src, count);
  copy_run(pool, weir_dtype_size(dtype), src, dst, count);
  return NULL;
}

// ---- fills ----

static void fill_range(void* arg, int64_t begin, int64_t end) {
  const box_t* box = arg;
  box->ops->fill(box->src, box->dst + (size_t)begin * box->size, end - begin);
}

weir_status_t* weir_move_fill(weir_pool_t* pool, weir_dtype_t dtype, const void* value, void* dst,
                              int64_t count) {
  size_t size = weir_dtype_size(dtype);
  if (!weir_dtype_is_plain(dtype)) {
    size_t outside = 0;
    if (__builtin_mul_overflow(outside_size(dtype, value, 1), (size_t)count, &outside))
      outside = SIZE_MAX;
    WEIR_TRY(check_outside(outside));
    for (int64_t i = 0; i < count; ++i) {
      WEIR_TRY(weir_elements_copy(dtype, (char*)dst + (size_t)i * size, value, 1));
    }
    return NULL;
  }
  box_t box = {.ops = plane_ops(size), .size = size, .src = value, .dst = dst};
  pool_for(pool, count, 0.05 * (double)size, fill_range, &box);
  return NULL;
}

void weir_move_zero(weir_dtype_t dtype, void* dst, int64_t count) {
  if (count > 0 && weir_dtype_is_plain(dtype))
    memset(dst, 0, (size_t)count * weir_dtype_size(dtype));
}

// ---- gathers ----

typedef struct gather_job_t {
  weir_move_gather_t shape;
  const weir_tensor_t* indices;
  weir_dtype_t dtype;
  size_t size;
  const plane_ops_t* ops;
  const char* src;
  char* dst;
} gather_job_t;

static int64_t find_bad_index(const weir_tensor_t* indices, int64_t count, int64_t rows) {
  for (int64_t i = 0; i < count; ++i) {
    int64_t index = weir_move_int_at(indices, i);
    if (index < 0 || index >= rows) return i;
  }
  return -1;
}

// Rows of one element: indices are widened by blocks, so that the loop over elements is not also
// one over index types.
static void gather_singles(const gather_job_t* job, int64_t first_index, int64_t count,
                           const char* src, char* dst) {
  int64_t rows[256];
  for (int64_t i = 0; i < count; i += 256) {
    int64_t n = WEIR_MIN(count - i, 256);
    for (int64_t j = 0; j < n; ++j) rows[j] = weir_move_int_at(job->indices, first_index + i + j);
    job->ops->gather(src, rows, dst + (size_t)i * job->size, n);
  }
}

// Items are rows of the output: (batch, outer, index).
static void gather_range(void* arg, int64_t begin, int64_t end) {
  const gather_job_t* job = arg;
  const weir_move_gather_t* g = &job->shape;
  const size_t row_size = (size_t)g->inner * job->size;
  int64_t i = begin;
  while (i < end) {
    int64_t slab = i / g->index_count;  // (batch, outer)
    int64_t k = i % g->index_count;
    int64_t count = WEIR_MIN(end - i, g->index_count - k);
    int64_t first_index = slab / g->outer * g->index_count + k;
    const char* src = job->src + (size_t)slab * (size_t)g->rows * row_size;
    char* dst = job->dst + (size_t)i * row_size;
    if (g->inner == 1) {
      gather_singles(job, first_index, count, src, dst);
    } else {
      for (int64_t j = 0; j < count; ++j) {
        size_t row = (size_t)weir_move_int_at(job->indices, first_index + j);
        memcpy(dst + (size_t)j * row_size, src + row * row_size, row_size);
      }
    }
    i += count;
  }
}

// Where the |i|-th row of the output comes from.
static const char* gathered_row(const gather_job_t* job, int64_t i) {
  const weir_move_gather_t* g = &job->shape;
  int64_t slab = i / g->index_count;
  int64_t index =
      weir_move_int_at(job->indices, slab / g->outer * g->index_count + i % g->index_count);
  return job->src + (size_t)(slab * g->rows + index) * (size_t)g->inner * job->size;
}

static weir_status_t* gather_objects(const gather_job_t* job) {
  const weir_move_gather_t* g = &job->shape;
  const size_t row_size = (size_t)g->inner * job->size;
  int64_t total = g->batch * g->outer * g->index_count;
  size_t outside = 0;
  for (int64_t i = 0; i < total && job->dtype == WEIR_DTYPE_STRING; ++i)
    outside += outside_size(job->dtype, gathered_row(job, i), g->inner);
  WEIR_TRY(check_outside(outside));
  for (int64_t i = 0; i < total; ++i)
    WEIR_TRY(weir_elements_copy(job->dtype, job->dst + (size_t)i * row_size, gathered_row(job, i),
                                g->inner));
  return NULL;
}

weir_status_t* weir_move_gather(weir_pool_t* pool, weir_dtype_t dtype,
                                const weir_move_gather_t* gather, const void* src,
                                const weir_tensor_t* indices, void* dst, int64_t* out_bad) {
  *out_bad = find_bad_index(indices, gather->batch * gather->index_count, gather->rows);
  int64_t total = gather->batch * gather->outer * gather->index_count;
  if (*out_bad >= 0 || total == 0 || gather->inner == 0) return NULL;
  size_t size = weir_dtype_size(dtype);
  gather_job_t job = {.shape = *gather,
                      .indices = indices,
                      .dtype = dtype,
                      .size = size,
                      .ops = plane_ops(size),
                      .src = src,
                      .dst = dst};
  if (!weir_dtype_is_plain(dtype)) return gather_objects(&job);
  pool_for(pool, total, 2 + 0.1 * (double)gather->inner * (double)size, gather_range, &job);
  return NULL;
}

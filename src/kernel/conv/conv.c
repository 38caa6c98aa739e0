// conv.c — Convolution as products of matrices: which way to take, and that of tiles of patches.
#include "kernel/conv/conv.h"

#include "base/alloc.h"
#include "kernel/conv/conv_direct.h"
#include "kernel/gemm/gemm.h"

enum {
  TILE_BYTES =
      512 << 10,        // patches of one tile: what stays in a second-level cache beside the filter
  TILE_MIN_ROWS = 256,  // fewer, and packing the filter anew for each tile shows
  TILE_MIN_ROWS_LARGE = 512,  // the same for filters that exceed the cache
  LARGE_FILTER = 256 << 10,   // elements
  FILTER_BLOCKS = 16,         // at most so many partial sums of a filter gradient
  PARTIAL_BYTES = 64 << 20,   // and so much memory for them
  SMALL_BATCH = 8,            // below it, an input gradient has too few images to share out
};

// One call's work, as its tasks see it.
typedef struct job_t {
  const weir_conv_t* conv;
  const void* in;      // what patches are taken from; for the input gradient: dy
  const void* filter;  // for the filter gradient: dy
  void* out;
  void* partial;      // filter gradient: sums of blocks 1, 2, …
  weir_pool_t* pool;  // input gradient: for products within a block; or NULL
  int64_t rows;       // output pixels of all images
  int64_t tile_rows;
  int64_t blocks;        // filter gradient
  int64_t block_images;  // input gradient
  atomic_bool is_out_of_memory;
} job_t;

// Where the patch of one output pixel lies.
typedef struct patch_t {
  int64_t image;
  int64_t front, top, left;  // of the window, maybe outside of the image
  int64_t first, last;       // the filter columns within the image, for a dilation of 1
} patch_t;

static inline patch_t patch_at(const weir_conv_t* c, int64_t row) {
  patch_t p;
  int64_t line = row / c->out[2], slice = line / c->out[1];
  p.image = c->out[0] == 1 ? slice : slice / c->out[0];  // a division less for images
  p.front = (slice - p.image * c->out[0]) * c->stride[0] - c->pad[0];
  p.top = (line - slice * c->out[1]) * c->stride[1] - c->pad[1];
  p.left = (row - line * c->out[2]) * c->stride[2] - c->pad[2];
  p.first = WEIR_MIN(WEIR_MAX(-p.left, 0), c->filter[2]);
  p.last = WEIR_MAX(WEIR_MIN(c->in[2] - p.left, c->filter[2]), p.first);
  return p;
}

// Where the slice of the input under depth |kd| of the filter begins; -1 when it is padding.
static inline int64_t slice_at(const weir_conv_t* c, const patch_t* p, int64_t kd) {
  int64_t depth = p->front + kd * c->dilation[0];
  if (depth < 0 || depth >= c->in[0]) return -1;
  return (p->image * c->in[0] + depth) * c->in[1] * c->in[2] * c->in_c;
}

static inline int64_t volume(const int64_t sizes[3]) { return sizes[0] * sizes[1] * sizes[2]; }

static inline int64_t patch_size(const weir_conv_t* c) { return volume(c->filter) * c->group_in; }

// A patch is one pixel and neighbouring outputs have neighbouring pixels: the input is its own
// matrix of patches.
static inline bool is_pointwise(const weir_conv_t* c) {
  for (int axis = 0; axis < 3; ++axis) {
    if (c->filter[axis] != 1 || c->stride[axis] != 1 || c->pad[axis] != 0 ||
        c->in[axis] != c->out[axis]) {
      return false;
    }
  }
  return true;
}

static int64_t tile_count(const job_t* job) {
  return (job->rows + job->tile_rows - 1) / job->tile_rows;
}

static size_t tile_size(const job_t* job, size_t element) {
  return is_pointwise(job->conv) ? element
                                 : (size_t)(job->tile_rows * patch_size(job->conv)) * element;
}

static void* tile_alloc(job_t* job, size_t element) {
  weir_allocator_t* host = weir_host_allocator();
  void* col = host->vtable->alloc(host, tile_size(job, element), 64);
  if (!col) atomic_store(&job->is_out_of_memory, true);
  return col;
}

static void tile_free(const job_t* job, void* col, size_t element) {
  weir_allocator_t* host = weir_host_allocator();
  host->vtable->free(host, col, tile_size(job, element));
}

static void gemm_float(weir_pool_t* pool, weir_trans_t ta, weir_trans_t tb, int64_t m, int64_t n,
                       int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb,
                       int beta, float* c, int64_t ldc) {
  weir_gemm(pool, ta, tb, m, n, k, 1.0f, a, lda, b, ldb, (float)beta, c, ldc);
}

static void gemm_double(weir_pool_t* pool, weir_trans_t ta, weir_trans_t tb, int64_t m, int64_t n,
                        int64_t k, const double* a, int64_t lda, const double* b, int64_t ldb,
                        int beta, double* c, int64_t ldc) {
  weir_gemm_double(pool, ta, tb, m, n, k, 1.0, a, lda, b, ldb, beta, c, ldc);
}

// Integers wrap, so the products are of the unsigned type.
static void gemm_int32(weir_pool_t* pool, weir_trans_t ta, weir_trans_t tb, int64_t m, int64_t n,
                       int64_t k, const uint32_t* a, int64_t lda, const uint32_t* b, int64_t ldb,
                       int beta, uint32_t* c, int64_t ldc) {
  (void)pool;
  for (int64_t i = 0; i < m; ++i) {
    uint32_t* row = c + i * ldc;
    if (!beta) memset(row, 0, (size_t)n * sizeof(*row));
    for (int64_t p = 0; p < k; ++p) {
      uint32_t x = ta == WEIR_NO_TRANS ? a[i * lda + p] : a[p * lda + i];
      const uint32_t* y = tb == WEIR_NO_TRANS ? b + p * ldb : b + p;
      int64_t step = tb == WEIR_NO_TRANS ? 1 : ldb;
      for (int64_t j = 0; j < n; ++j) row[j] += x * y[j * step];
    }
  }
}

#define T float
#define NAME(x) x##_float
#define GEMM gemm_float
#include "kernel/conv/conv.inc"
#define T double
#define NAME(x) x##_double
#define GEMM gemm_double
#include "kernel/conv/conv.inc"
#define T uint32_t
#define NAME(x) x##_int32
#define GEMM gemm_int32
#include "kernel/conv/conv.inc"

typedef struct type_t {
  size_t size;
  weir_range_fn_t forward_tiles, input_blocks, filter_blocks, sum_blocks, flip_spots;
} type_t;

static const type_t* type_of(weir_dtype_t dtype) {
  static const type_t f = {sizeof(float),       forward_tiles_float, input_blocks_float,
                           filter_blocks_float, sum_blocks_float,    flip_spots_float};
  static const type_t d = {sizeof(double),       forward_tiles_double, input_blocks_double,
                           filter_blocks_double, sum_blocks_double,    flip_spots_double};
  static const type_t i = {sizeof(int32_t),     forward_tiles_int32, input_blocks_int32,
                           filter_blocks_int32, sum_blocks_int32,    flip_spots_int32};
  WEIR_CHECK(dtype == WEIR_DTYPE_FLOAT || dtype == WEIR_DTYPE_DOUBLE || dtype == WEIR_DTYPE_INT32);
  return dtype == WEIR_DTYPE_FLOAT ? &f : dtype == WEIR_DTYPE_DOUBLE ? &d : &i;
}

static int64_t choose_tile_rows(const weir_conv_t* c, size_t element, int64_t rows) {
  int64_t least = patch_size(c) * c->group_out > LARGE_FILTER ? TILE_MIN_ROWS_LARGE : TILE_MIN_ROWS;
  int64_t tile = WEIR_MAX(TILE_BYTES / (patch_size(c) * (int64_t)element), least);
  tile = WEIR_MIN(tile, (rows + 7) / 8);  // something for everyone when there is little
  return WEIR_MAX((tile + 15) / 16 * 16, 32);
}

static double row_cost_ns(const weir_conv_t* c) {
  return (double)c->groups * (double)patch_size(c) * (double)c->group_out / 16.0;
}

static bool is_direct(weir_dtype_t dtype, const weir_conv_t* c) {
  return dtype == WEIR_DTYPE_FLOAT && !is_pointwise(c) && weir_conv_direct_fits(c);
}

static job_t make_job(const weir_conv_t* c, size_t element) {
  int64_t rows = c->batch * volume(c->out);
  job_t job = {.conv = c, .rows = rows, .tile_rows = choose_tile_rows(c, element, rows)};
  atomic_init(&job.is_out_of_memory, false);
  return job;
}

static weir_status_t* job_status(job_t* job) {
  return atomic_load(&job->is_out_of_memory) ? weir_out_of_memory() : NULL;
}

weir_status_t* weir_conv_forward(weir_pool_t* pool, weir_dtype_t dtype, const weir_conv_t* conv,
                                 const void* in, const void* filter, void* out) {
  const type_t* type = type_of(dtype);
  int64_t count = conv->batch * volume(conv->out) * conv->out_c;
  if (count == 0) return NULL;
  if (patch_size(conv) == 0) {
    memset(out, 0, (size_t)count * type->size);
    return NULL;
  }
  if (is_direct(dtype, conv)) return weir_conv_direct_forward(pool, conv, in, filter, out);
  job_t job = make_job(conv, type->size);
  job.in = in;
  job.filter = filter;
  job.out = out;
  weir_pool_for(pool, tile_count(&job), row_cost_ns(conv) * (double)job.tile_rows,
                type->forward_tiles, &job);
  return job_status(&job);
}

// dx of a convolution of stride 1 is dy convolved with the turned filter: tiles of pixels instead
// of images.
static weir_conv_t turned(const weir_conv_t* c) {
  weir_conv_t back = *c;
  back.in_c = c->out_c, back.out_c = c->in_c;
  back.group_in = c->group_out, back.group_out = c->group_in;
  for (int axis = 0; axis < 3; ++axis) {
    back.in[axis] = c->out[axis], back.out[axis] = c->in[axis];
    back.pad[axis] = (c->filter[axis] - 1) * c->dilation[axis] - c->pad[axis];
  }
  return back;
}

static weir_status_t* backprop_input_turned(weir_pool_t* pool, weir_dtype_t dtype,
                                            const weir_conv_t* c, const void* filter,
                                            const void* dy, void* dx) {
  const type_t* type = type_of(dtype);
  weir_conv_t back = turned(c);
  size_t size = (size_t)(patch_size(c) * c->out_c) * type->size;
  void* flipped = weir_aligned_malloc(size, 64);
  if (!flipped) return weir_out_of_memory();
  job_t job = {.conv = c, .filter = filter, .out = flipped};
  double spot_ns = (double)(c->group_in * c->out_c);
  weir_pool_for(pool, volume(c->filter), spot_ns, type->flip_spots, &job);
  weir_status_t* status = weir_conv_forward(pool, dtype, &back, dy, flipped, dx);
  weir_free(flipped);
  return status;
}

weir_status_t* weir_conv_backprop_input(weir_pool_t* pool, weir_dtype_t dtype,
                                        const weir_conv_t* conv, const void* filter, const void* dy,
                                        void* dx) {
  const type_t* type = type_of(dtype);
  int64_t pixels = volume(conv->out);
  int64_t count = conv->batch * volume(conv->in) * conv->in_c;
  if (count == 0) return NULL;
  if (pixels == 0 || patch_size(conv) * conv->out_c == 0) {
    memset(dx, 0, (size_t)count * type->size);
    return NULL;
  }
  bool has_unit_stride = conv->stride[0] == 1 && conv->stride[1] == 1 && conv->stride[2] == 1;
  // Turning the filter must cost less than scattering patches.
  weir_conv_t back = turned(conv);
  bool is_worth = is_direct(dtype, &back) && conv->batch * pixels >= 2 * conv->out_c;
  if (has_unit_stride && !is_pointwise(conv) && (conv->batch < SMALL_BATCH || is_worth)) {
    return backprop_input_turned(pool, dtype, conv, filter, dy, dx);
  }
  job_t job = make_job(conv, type->size);
  job.in = dy;
  job.filter = filter;
  job.out = dx;
  job.block_images = WEIR_MAX(WEIR_MIN(TILE_MIN_ROWS / pixels, conv->batch / SMALL_BATCH), 1);
  int64_t blocks = (conv->batch + job.block_images - 1) / job.block_images;
  if (blocks < SMALL_BATCH) job.pool = pool;
  double cost_ns = row_cost_ns(conv) * (double)(pixels * job.block_images);
  weir_pool_for(pool, blocks, cost_ns, type->input_blocks, &job);
  return job_status(&job);
}

// A filter's gradient sums over all pixels: no sums of a network are longer. On 64-bit ARM, where
// products round as TensorFlow's do (gemm_packed.h), they keep to its chains: maxima and rectifiers
// near a tie turn a rounding into another path.
static bool is_filter_direct(weir_dtype_t dtype, const weir_conv_t* conv) {
#if defined(__aarch64__)
  (void)dtype, (void)conv;
  return false;
#else
  return is_direct(dtype, conv);
#endif
}

// As many blocks as pay: a power of two, so that they share out evenly, within the memory allowed.
static int64_t choose_blocks(const job_t* job, size_t filter_bytes) {
  int64_t tiles = tile_count(job), blocks = 1;
  while (blocks < FILTER_BLOCKS && blocks * 2 <= tiles &&
         (blocks == 1 || (size_t)(blocks * 2) * filter_bytes <= PARTIAL_BYTES)) {
    blocks *= 2;
  }
  return blocks;
}

weir_status_t* weir_conv_backprop_filter(weir_pool_t* pool, weir_dtype_t dtype,
                                         const weir_conv_t* conv, const void* in, const void* dy,
                                         void* dw) {
  const type_t* type = type_of(dtype);
  int64_t count = patch_size(conv) * conv->out_c;
  if (count == 0) return NULL;
  job_t job = make_job(conv, type->size);
  if (job.rows == 0) {
    memset(dw, 0, (size_t)count * type->size);
    return NULL;
  }
  if (is_filter_direct(dtype, conv))
    return weir_conv_direct_backprop_filter(pool, conv, in, dy, dw);
  size_t filter_bytes = (size_t)count * type->size;
  job.in = in;
  job.filter = dy;
  job.out = dw;
  job.blocks = choose_blocks(&job, filter_bytes);
  job.partial = weir_aligned_malloc((size_t)(job.blocks - 1) * filter_bytes, 64);
  if (!job.partial) return weir_out_of_memory();
  double cost_ns = row_cost_ns(conv) * (double)job.rows / (double)job.blocks;
  weir_pool_for(pool, job.blocks, cost_ns, type->filter_blocks, &job);
  if (job.blocks > 1) weir_pool_for(pool, count, (double)job.blocks * 0.3, type->sum_blocks, &job);
  weir_free(job.partial);
  return job_status(&job);
}

// conv3d.c — Three-dimensional convolution as products of matrices over tiles of patches.
#include "kernel/conv3d.h"

#include "base/alloc.h"
#include "kernel/gemm.h"

enum {
  TILE_BYTES = 512 << 10,    // patches of one tile: what stays in a second-level cache
  TILE_MIN_ROWS = 128,       // fewer, and packing the filter anew for each tile shows
  FILTER_BLOCKS = 16,        // at most so many partial sums of a filter gradient
  PARTIAL_BYTES = 64 << 20,  // and so much memory for them
  SMALL_BATCH = 8,           // below it, an input gradient has too few images to share out
};

// One call's work, as its tasks see it.
typedef struct job_t {
  const weir_conv3d_t* conv;
  const void* in;      // what patches are taken from; for the input gradient: dy
  const void* filter;  // for the filter gradient: dy
  void* out;
  void* partial;            // filter gradient: sums of blocks 1, 2, …
  weir_pool_t* inner_pool;  // input gradient: for the products of the only task; or NULL
  int64_t rows;             // output voxels of all images
  int64_t tile_rows;
  int64_t blocks;  // filter gradient
  atomic_bool is_out_of_memory;
} job_t;

// Where the patch of one output voxel lies.
typedef struct patch_t {
  int64_t image;
  int64_t at[3];  // of the window's first voxel, maybe outside of the image
} patch_t;

static inline patch_t patch_at(const weir_conv3d_t* c, int64_t row) {
  patch_t p;
  for (int axis = 2; axis >= 0; --axis) {
    int64_t next = row / c->out[axis];
    p.at[axis] = (row - next * c->out[axis]) * c->stride[axis] - c->pad[axis];
    row = next;
  }
  p.image = row;
  return p;
}

// The input line, counted over all images, under filter row (kd, kh); -1 when it is padding.
static inline int64_t line_at(const weir_conv3d_t* c, const patch_t* p, int64_t kd, int64_t kh) {
  int64_t d = p->at[0] + kd * c->dilation[0], h = p->at[1] + kh * c->dilation[1];
  if (d < 0 || d >= c->in[0] || h < 0 || h >= c->in[1]) return -1;
  return (p->image * c->in[0] + d) * c->in[1] + h;
}

static inline int64_t patch_size(const weir_conv3d_t* c) {
  return c->filter[0] * c->filter[1] * c->filter[2] * c->group_in;
}

static int64_t tile_count(const job_t* job) {
  return (job->rows + job->tile_rows - 1) / job->tile_rows;
}

static void* tile_alloc(job_t* job, size_t element) {
  void* col = weir_aligned_malloc((size_t)(job->tile_rows * patch_size(job->conv)) * element, 64);
  if (!col) atomic_store(&job->is_out_of_memory, true);
  return col;
}

#define T float
#define NAME(x) x##_float
#define GEMM weir_gemm
#include "kernel/conv3d.inc"
#define T double
#define NAME(x) x##_double
#define GEMM weir_gemm_double
#include "kernel/conv3d.inc"

typedef struct type_t {
  size_t size;
  weir_range_fn_t forward_tiles, input_images, filter_blocks, sum_blocks;
} type_t;

static const type_t* type_of(weir_dtype_t dtype) {
  static const type_t f = {sizeof(float), forward_tiles_float, input_images_float,
                           filter_blocks_float, sum_blocks_float};
  static const type_t d = {sizeof(double), forward_tiles_double, input_images_double,
                           filter_blocks_double, sum_blocks_double};
  WEIR_CHECK(dtype == WEIR_DTYPE_FLOAT || dtype == WEIR_DTYPE_DOUBLE);
  return dtype == WEIR_DTYPE_FLOAT ? &f : &d;
}

static int64_t voxel_count(const int64_t sizes[3]) { return sizes[0] * sizes[1] * sizes[2]; }

static double row_cost_ns(const weir_conv3d_t* c) {
  return (double)c->groups * (double)patch_size(c) * (double)c->group_out / 16.0;
}

static job_t make_job(const weir_conv3d_t* c, size_t element) {
  job_t job = {.conv = c, .rows = c->batch * voxel_count(c->out)};
  int64_t tile = WEIR_MAX(TILE_BYTES / (patch_size(c) * (int64_t)element), TILE_MIN_ROWS);
  tile = WEIR_MIN(tile, (job.rows + 7) / 8);  // something for everyone when there is little
  job.tile_rows = WEIR_MAX((tile + 15) / 16 * 16, 32);
  atomic_init(&job.is_out_of_memory, false);
  return job;
}

static weir_status_t* job_status(job_t* job) {
  return atomic_load(&job->is_out_of_memory) ? weir_out_of_memory() : NULL;
}

weir_status_t* weir_conv3d_forward(weir_pool_t* pool, weir_dtype_t dtype, const weir_conv3d_t* conv,
                                   const void* in, const void* filter, void* out) {
  const type_t* type = type_of(dtype);
  int64_t count = conv->batch * voxel_count(conv->out) * conv->out_c;
  if (count == 0) return NULL;
  if (patch_size(conv) == 0) {
    memset(out, 0, (size_t)count * type->size);
    return NULL;
  }
  job_t job = make_job(conv, type->size);
  job.in = in;
  job.filter = filter;
  job.out = out;
  weir_pool_for(pool, tile_count(&job), row_cost_ns(conv) * (double)job.tile_rows,
                type->forward_tiles, &job);
  return job_status(&job);
}

weir_status_t* weir_conv3d_backprop_input(weir_pool_t* pool, weir_dtype_t dtype,
                                          const weir_conv3d_t* conv, const void* filter,
                                          const void* dy, void* dx) {
  const type_t* type = type_of(dtype);
  int64_t count = conv->batch * voxel_count(conv->in) * conv->in_c;
  if (count == 0) return NULL;
  if (voxel_count(conv->out) * patch_size(conv) * conv->out_c == 0) {
    memset(dx, 0, (size_t)count * type->size);
    return NULL;
  }
  job_t job = make_job(conv, type->size);
  job.in = dy;
  job.filter = filter;
  job.out = dx;
  if (conv->batch < SMALL_BATCH) {
    job.inner_pool = pool;
    type->input_images(&job, 0, conv->batch);
  } else {
    double cost_ns = row_cost_ns(conv) * (double)voxel_count(conv->out);
    weir_pool_for(pool, conv->batch, cost_ns, type->input_images, &job);
  }
  return job_status(&job);
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

weir_status_t* weir_conv3d_backprop_filter(weir_pool_t* pool, weir_dtype_t dtype,
                                           const weir_conv3d_t* conv, const void* in,
                                           const void* dy, void* dw) {
  const type_t* type = type_of(dtype);
  int64_t count = patch_size(conv) * conv->out_c;
  if (count == 0) return NULL;
  size_t filter_bytes = (size_t)count * type->size;
  job_t job = make_job(conv, type->size);
  if (job.rows == 0) {
    memset(dw, 0, filter_bytes);
    return NULL;
  }
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

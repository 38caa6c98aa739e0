// conv_direct.c — Convolution of floats as products whose rows are pointers into the input.
//
// A slice is one depth of one image's output; a tile is a few lines of a slice, or a few slices.
#include "kernel/conv/conv_direct.h"

#include "base/alloc.h"
#include "kernel/gemm/gemm_packed.h"

enum {
  TILE_ROWS = 512,            // output pixels of a tile: fewer, and packing the filter shows
  TILE_MIN_ROWS = 32,         // even when there are few for everyone
  TILE_FLOATS = 128 << 10,    // of padded input: stays in a second-level cache
  LARGE_FILTER = 256 << 10,   // elements: exceeds that cache anyway
  WANTED_TASKS = 8,           // something for everyone
  PART_MIN = 64,              // channels, or rows of a filter, that a task's product has at least
  FILTER_BLOCKS = 16,         // at most so many partial sums of a filter gradient
  PARTIAL_FLOATS = 16 << 20,  // and so much memory for them
};

// How a convolution is cut up, and where things lie in what the tiles read: the input itself, or a
// padded copy of what lies under a tile.
typedef struct plan_t {
  const weir_conv_t* conv;
  bool is_padded;
  int64_t slices;                   // of the output
  int64_t tile_slices, tile_lines;  // one of them is 1, or the lines are all of a slice
  int64_t slice_tiles, tiles;       // of one slice, of all
  int64_t in_lines;                 // under a tile
  int64_t line, window;             // floats of a line; between depths under a window
  int64_t run, runs;                // floats side by side in a patch, and how many such
  int64_t parts;  // of a tile's product, a task each: channels, or rows of the filter gradient
} plan_t;

typedef struct range_t {
  int64_t begin, end;
} range_t;

typedef struct tile_t {
  int64_t slice, slices, line, lines;  // the first ones and how many
} tile_t;

typedef struct job_t {
  plan_t plan;
  const float* in;
  const float* filter;  // for the filter gradient: dy
  float* out;
  float* partial;  // filter gradient: sums of blocks 1, 2, …
  int64_t blocks;
  atomic_bool is_out_of_memory;
} job_t;

// A task's own memory.
typedef struct scratch_t {
  float* padded;      // the tile's input
  float* packed;      // after it, for a product over elements far apart; or NULL
  size_t size;        // of both
  int64_t* line;      // where the first window of each output line of the tile begins
  int64_t* run;       // where the runs of a patch are, from there on
  const float** row;  // of the product
} scratch_t;

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// From the first to the last pixel under |count| windows in a row.
static int64_t extent(const weir_conv_t* c, int axis, int64_t count) {
  return (count - 1) * c->stride[axis] + (c->filter[axis] - 1) * c->dilation[axis] + 1;
}

static bool has_padding(const weir_conv_t* c) {
  for (int axis = 0; axis < 3; ++axis) {
    if (c->pad[axis] != 0 || extent(c, axis, c->out[axis]) > c->in[axis]) return true;
  }
  return false;
}

bool weir_conv_direct_fits(const weir_conv_t* c) {
  const weir_gemm_micro_t* micro = weir_gemm_micro();
  return micro && c->groups == 1 && c->dilation[2] == 1 && c->out_c >= micro->narrowest;
}

// ---- tiles ----

static int64_t filter_size(const plan_t* p) { return p->runs * p->run * p->conv->out_c; }

// Tiles of many pixels, each in several parts where there are few of them.
static void choose_tile(plan_t* p, int64_t most_parts) {
  const weir_conv_t* c = p->conv;
  int64_t width = c->out[2], height = c->out[1], all_lines = p->slices * height;
  int64_t lines = ceil_div(all_lines, ceil_div(WANTED_TASKS, most_parts));
  lines = WEIR_MIN(WEIR_MAX(lines, TILE_MIN_ROWS / width), TILE_ROWS / width);
  int64_t floats = filter_size(p) > LARGE_FILTER ? 4 * TILE_FLOATS : TILE_FLOATS;
  if (p->is_padded) lines = WEIR_MIN(lines, floats / (c->stride[1] * p->line * c->filter[0]));
  lines = WEIR_MAX(lines, 1);
  p->slice_tiles = ceil_div(height, lines);
  p->tile_lines = ceil_div(height, p->slice_tiles);
  p->tile_slices = p->slice_tiles > 1 ? 1 : WEIR_MIN(lines / height, p->slices);
  p->tiles = p->slice_tiles > 1 ? p->slices * p->slice_tiles : ceil_div(p->slices, p->tile_slices);
  p->parts = WEIR_MIN(ceil_div(WANTED_TASKS, p->tiles), most_parts);
}

// |width|: of what the parts share out.
static plan_t make_plan(const weir_conv_t* c, int64_t width) {
  plan_t p = {.conv = c, .is_padded = has_padding(c), .slices = c->batch * c->out[0]};
  p.run = c->filter[2] * c->in_c;
  p.runs = c->filter[0] * c->filter[1];
  p.line = (p.is_padded ? extent(c, 2, c->out[2]) : c->in[2]) * c->in_c;
  choose_tile(&p, WEIR_MAX(width / PART_MIN, 1));
  p.in_lines = extent(c, 1, p.tile_lines);
  p.window = p.is_padded ? p.in_lines * p.line : c->dilation[0] * c->in[1] * p.line;
  return p;
}

// The |index|-th part of |width|. Multiples of 32 keep the register tiles whole.
static range_t part_at(const plan_t* p, int64_t index, int64_t width) {
  int64_t step = ceil_div(ceil_div(width, p->parts), 32) * 32;
  return (range_t){WEIR_MIN(index * step, width), WEIR_MIN((index + 1) * step, width)};
}

static tile_t tile_at(const plan_t* p, int64_t index) {
  const int64_t height = p->conv->out[1];
  if (p->slice_tiles == 1) {
    int64_t slice = index * p->tile_slices;
    return (tile_t){slice, WEIR_MIN(p->tile_slices, p->slices - slice), 0, height};
  }
  int64_t line = index % p->slice_tiles * p->tile_lines;
  return (tile_t){index / p->slice_tiles, 1, line, WEIR_MIN(p->tile_lines, height - line)};
}

// The first output pixel of a tile; its pixels follow one another.
static int64_t first_row(const plan_t* p, tile_t t) {
  return (t.slice * p->conv->out[1] + t.line) * p->conv->out[2];
}

static int64_t line_count(tile_t t) { return t.slices * t.lines; }

// ---- padding ----

static void zero(float* to, int64_t n) { memset(to, 0, (size_t)n * sizeof(float)); }

static void pad_line(const plan_t* p, const float* line, float* to) {
  const weir_conv_t* c = p->conv;
  int64_t pad = c->pad[2] * c->in_c;
  int64_t first = WEIR_MIN(WEIR_MAX(pad, 0), p->line);
  int64_t last = WEIR_MAX(WEIR_MIN(pad + c->in[2] * c->in_c, p->line), first);
  zero(to, first);
  memcpy(to + first, line + first - pad, (size_t)(last - first) * sizeof(float));
  zero(to + last, p->line - last);
}

// Copies what lies under a tile, slice by slice and depth by depth of the filter.
static void pad_tile(const plan_t* p, tile_t t, const float* in, float* to) {
  const weir_conv_t* c = p->conv;
  for (int64_t i = 0; i < t.slices * c->filter[0]; ++i, to += p->window) {
    int64_t slice = t.slice + i / c->filter[0], image = slice / c->out[0];
    int64_t depth =
        (slice - image * c->out[0]) * c->stride[0] - c->pad[0] + i % c->filter[0] * c->dilation[0];
    bool is_outside = depth < 0 || depth >= c->in[0];
    const float* from =
        is_outside ? NULL : in + (image * c->in[0] + depth) * c->in[1] * c->in[2] * c->in_c;
    for (int64_t l = 0, n = extent(c, 1, t.lines); l < n; ++l) {
      int64_t ih = t.line * c->stride[1] - c->pad[1] + l;
      if (is_outside || ih < 0 || ih >= c->in[1]) zero(to + l * p->line, p->line);
      else pad_line(p, from + ih * c->in[2] * c->in_c, to + l * p->line);
    }
  }
}

// ---- scratch ----

// Allocates |s| for a product of |rows|. False: is_out_of_memory is set.
static bool scratch_alloc(job_t* job, int64_t rows, bool is_far, scratch_t* s) {
  const plan_t* p = &job->plan;
  const weir_conv_t* c = p->conv;
  weir_allocator_t* host = weir_host_allocator();
  int64_t lines = p->tile_slices * p->tile_lines;
  int64_t padded = p->is_padded ? p->tile_slices * c->filter[0] * p->window : 0;
  s->size = (size_t)(padded + (is_far ? WEIR_GEMM_PACKED_SIZE : 1)) * sizeof(float);
  s->padded = host->vtable->alloc(host, s->size, 64);
  s->packed = is_far && s->padded ? s->padded + padded : NULL;
  s->line = weir_alloc_array((size_t)lines, sizeof(int64_t));
  s->run = weir_alloc_array((size_t)p->runs, sizeof(int64_t));
  s->row = weir_alloc_array((size_t)(rows + WEIR_MICRO_ROWS - 1), sizeof(float*));
  bool ok = s->padded && s->line && s->run && s->row;
  if (!ok) atomic_store(&job->is_out_of_memory, true);
  for (int64_t i = 0; ok && i < p->runs; ++i) {
    s->run[i] = i / c->filter[1] * p->window + i % c->filter[1] * c->dilation[1] * p->line;
  }
  return ok;
}

static void scratch_free(scratch_t* s) {
  weir_allocator_t* host = weir_host_allocator();
  if (s->padded) host->vtable->free(host, s->padded, s->size);
  weir_free(s->line);
  weir_free(s->run);
  weir_free(s->row);
}

// Finds the tile's lines, in the input or in the copy that it makes: offsets from what it returns.
static const float* load_tile(const job_t* job, tile_t t, scratch_t* s) {
  const plan_t* p = &job->plan;
  const weir_conv_t* c = p->conv;
  if (p->is_padded) pad_tile(p, t, job->in, s->padded);
  for (int64_t i = 0; i < line_count(t); ++i) {
    int64_t slice = i / t.lines, line = i % t.lines * c->stride[1];
    int64_t image = (t.slice + slice) / c->out[0];
    int64_t depth = (t.slice + slice - image * c->out[0]) * c->stride[0];
    s->line[i] =
        p->is_padded
            ? slice * c->filter[0] * p->window + line * p->line
            : ((image * c->in[0] + depth) * c->in[1] + t.line * c->stride[1] + line) * p->line;
  }
  return p->is_padded ? s->padded : job->in;
}

// ---- forward ----

static void forward_tile(const job_t* job, tile_t t, range_t cols, scratch_t* s) {
  const weir_conv_t* c = job->plan.conv;
  const float* from = load_tile(job, t, s);
  int64_t rows = 0;
  for (int64_t i = 0; i < line_count(t); ++i) {
    for (int64_t w = 0; w < c->out[2]; ++w)
      s->row[rows++] = from + s->line[i] + w * c->stride[2] * c->in_c;
  }
  for (int64_t i = 0; i < WEIR_MICRO_ROWS - 1; ++i) s->row[rows + i] = s->row[rows - 1];
  weir_gemm_indirect(
      &(weir_gemm_indirect_t){.m = rows,
                              .n = cols.end - cols.begin,
                              .row = s->row,
                              .runs = {s->run, job->plan.runs, job->plan.run, 1},
                              .b = job->filter + cols.begin,
                              .ldb = c->out_c,
                              .c = job->out + first_row(&job->plan, t) * c->out_c + cols.begin,
                              .ldc = c->out_c});
}

static void forward_tasks(void* arg, int64_t begin, int64_t end) {
  job_t* job = arg;
  const plan_t* p = &job->plan;
  scratch_t s;
  if (scratch_alloc(job, p->tile_slices * p->tile_lines * p->conv->out[2], false, &s)) {
    for (int64_t i = begin; i < end; ++i) {
      range_t cols = part_at(p, i % p->parts, p->conv->out_c);
      if (cols.begin < cols.end) forward_tile(job, tile_at(p, i / p->parts), cols, &s);
    }
  }
  scratch_free(&s);
}

static double cost_ns(const plan_t* p) {
  return (double)(p->slices * p->conv->out[1] * p->conv->out[2]) * (double)filter_size(p) / 16.0;
}

weir_status_t* weir_conv_direct_forward(weir_pool_t* pool, const weir_conv_t* conv, const float* in,
                                        const float* filter, float* out) {
  job_t job = {.plan = make_plan(conv, conv->out_c), .in = in, .filter = filter, .out = out};
  int64_t tasks = job.plan.tiles * job.plan.parts;
  weir_pool_for(pool, tasks, cost_ns(&job.plan) / (double)tasks, forward_tasks, &job);
  return atomic_load(&job.is_out_of_memory) ? weir_out_of_memory() : NULL;
}

// ---- filter gradient ----

// dw, or its partial sum, += patches^T * dy: a row of the product is one element of all patches,
// and its runs are lines of the output.
static void filter_tile(const job_t* job, tile_t t, range_t rows, scratch_t* s, bool adds,
                        float* sum) {
  const plan_t* p = &job->plan;
  const weir_conv_t* c = p->conv;
  const float* from = load_tile(job, t, s);
  int64_t count = rows.end - rows.begin;
  for (int64_t i = 0; i < count + WEIR_MICRO_ROWS - 1; ++i) {
    int64_t row = rows.begin + WEIR_MIN(i, count - 1);
    s->row[i] = from + s->run[row / p->run] + row % p->run;
  }
  weir_gemm_indirect(
      &(weir_gemm_indirect_t){.m = count,
                              .n = c->out_c,
                              .row = s->row,
                              .runs = {s->line, line_count(t), c->out[2], c->stride[2] * c->in_c},
                              .b = job->filter + first_row(p, t) * c->out_c,
                              .ldb = c->out_c,
                              .c = sum + rows.begin * c->out_c,
                              .ldc = c->out_c,
                              .adds = adds,
                              .packed = s->packed});
}

// Each block of tiles sums into a filter of its own; the first one into the result.
static void filter_tasks(void* arg, int64_t begin, int64_t end) {
  job_t* job = arg;
  const plan_t* p = &job->plan;
  bool is_far = weir_gemm_is_far(p->conv->stride[2] * p->conv->in_c);
  scratch_t s;
  if (scratch_alloc(job, p->runs * p->run, is_far, &s)) {
    for (int64_t task = begin; task < end; ++task) {
      int64_t block = task / p->parts;
      range_t rows = part_at(p, task % p->parts, p->runs * p->run);
      float* sum = block == 0 ? job->out : job->partial + (block - 1) * filter_size(p);
      int64_t first = block * p->tiles / job->blocks, last = (block + 1) * p->tiles / job->blocks;
      for (int64_t i = first; i < last && rows.begin < rows.end; ++i)
        filter_tile(job, tile_at(p, i), rows, &s, i != first, sum);
    }
  }
  scratch_free(&s);
}

static void sum_blocks(void* arg, int64_t begin, int64_t end) {
  job_t* job = arg;
  float* restrict out = job->out;
  for (int64_t block = 1; block < job->blocks; ++block) {
    const float* restrict from = job->partial + (block - 1) * filter_size(&job->plan);
    for (int64_t i = begin; i < end; ++i) out[i] += from[i];
  }
}

// As many blocks as pay: a power of two, so that they share out evenly, within the memory allowed.
static int64_t choose_blocks(const plan_t* p) {
  int64_t blocks = 1;
  while (blocks < FILTER_BLOCKS && blocks * 2 <= p->tiles &&
         blocks * 2 * filter_size(p) <= PARTIAL_FLOATS) {
    blocks *= 2;
  }
  return blocks;
}

weir_status_t* weir_conv_direct_backprop_filter(weir_pool_t* pool, const weir_conv_t* conv,
                                                const float* in, const float* dy, float* dw) {
  int64_t rows = conv->filter[0] * conv->filter[1] * conv->filter[2] * conv->in_c;
  job_t job = {.plan = make_plan(conv, rows), .in = in, .filter = dy, .out = dw};
  job.blocks = choose_blocks(&job.plan);
  job.plan.parts = WEIR_MIN(ceil_div(WANTED_TASKS, job.blocks), WEIR_MAX(rows / PART_MIN, 1));
  size_t partial = (size_t)((job.blocks - 1) * filter_size(&job.plan)) * sizeof(float);
  job.partial = weir_aligned_malloc(partial, 64);
  if (!job.partial) return weir_out_of_memory();
  int64_t tasks = job.blocks * job.plan.parts;
  weir_pool_for(pool, tasks, cost_ns(&job.plan) / (double)tasks, filter_tasks, &job);
  if (job.blocks > 1) {
    weir_pool_for(pool, filter_size(&job.plan), (double)job.blocks * 0.3, sum_blocks, &job);
  }
  weir_free(job.partial);
  return atomic_load(&job.is_out_of_memory) ? weir_out_of_memory() : NULL;
}

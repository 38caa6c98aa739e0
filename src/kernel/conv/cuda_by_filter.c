// cuda_by_filter.c — Launches of by_filter.cu.
#include "kernel/conv/cuda_by_filter.h"

#include "kernel/cuda/source.h"

WEIR_CUDA_SOURCE(by_filter);

enum { MOST_CHANNELS = 96, LEAST_PIXELS = 48, MOST_CHUNKS = 16, MOST_SIZE = 1 << 20 };

// What the source is made for; its words.
typedef struct kind_t {
  int64_t taps_y, taps_x;
  int64_t tile_c, tile_k;
  int64_t lane, rows, split;
  int64_t chunks;
} kind_t;

static int64_t shared_bytes(const kind_t* kind) {
  int64_t pixels = 8 * kind->lane, lines = kind->taps_y - 1 + 2 * kind->rows;
  int64_t x = lines * (pixels + kind->taps_x - 1) * (kind->tile_c + 8);
  int64_t y = 2 * kind->rows * pixels * (kind->tile_k + 8);
  return (x + y) * (int64_t)sizeof(float);
}

static int64_t rounded_up(int64_t count, int64_t unit) { return (count + unit - 1) / unit * unit; }

// Lines are cut into as few chunks as |limit| allows, unless more waste fewer pixels: |lane| must
// be odd. No chunks: none are small enough.
static void cut_lines(const weir_conv_t* v, int64_t limit, kind_t* kind) {
  kind_t tried = *kind;
  for (tried.chunks = 1; tried.chunks <= MOST_CHUNKS; ++tried.chunks) {
    tried.lane = rounded_up(v->out[2], 8 * tried.chunks) / (8 * tried.chunks) | 1;
    if (shared_bytes(&tried) > limit) continue;
    if (kind->chunks == 0 || tried.chunks * tried.lane < kind->chunks * kind->lane) *kind = tried;
  }
}

// Threads of 32 channels need registers for more sums, so that fewer fit. A few warps more, each
// with a share of a line, are no gain.
static kind_t find_kind(const weir_device_t* device, const weir_conv_t* v) {
  const int64_t most_split = 4, limit = weir_cuda_core(device)->shared_bytes;
  kind_t kind = {.taps_y = v->filter[1], .taps_x = v->filter[2], .rows = 1};
  kind.tile_c = v->in_c > 16 ? 32 : 16;
  kind.tile_k = v->out_c > 32 ? 64 : 32;
  int64_t warps = kind.tile_c > 16 ? 12 : 16, used = kind.taps_y * kind.tile_k / 32;
  kind.split = WEIR_MIN(WEIR_MAX(warps / used, 1), most_split);
  cut_lines(v, limit, &kind);
  kind_t two = kind;
  two.rows = 2;
  return kind.chunks > 0 && shared_bytes(&two) <= limit ? two : kind;
}

static bool is_taken(const weir_conv_t* v) {
  const int64_t most_taps = v->in_c > 16 ? 3 : 4;
  if (v->groups != 1 || v->in[0] != 1 || v->filter[0] != 1) return false;
  for (int axis = 1; axis < 3; ++axis) {
    if (v->filter[axis] < 2 || v->filter[axis] > most_taps) return false;
    if (v->stride[axis] != 1 || v->dilation[axis] != 1 || v->in[axis] > MOST_SIZE) return false;
  }
  if (v->in_c % 4 != 0 || v->out_c % 4 != 0 || v->in_c > MOST_CHANNELS) return false;
  return v->out[2] >= LEAST_PIXELS && v->out_c <= MOST_SIZE && v->out[2] * v->out_c < INT32_MAX;
}

bool weir_by_filter_takes(const weir_device_t* device, const weir_cudnn_conv_t* conv,
                          const weir_conv_t* shape) {
  const int ampere = 80;
  if (conv->kind != WEIR_CONV_BY_FILTER || conv->dtype != WEIR_DTYPE_FLOAT) return false;
  if (!weir_cuda_allows_tf32(device) || weir_cuda_core(device)->architecture < ampere) return false;
  if (conv->is_nchw || conv->is_unaligned || !is_taken(shape)) return false;
  return find_kind(device, shape).chunks > 0;
}

static weir_status_t* build(weir_device_t* device, const kind_t* kind, const char* name,
                            weir_cuda_function_t* out) {
  weir_strbuf_t text = {0};
  weir_strbuf_printf(&text,
                     "#define TAPS_Y %d\n#define TAPS_X %d\n#define TILE_C %d\n#define TILE_K %d\n"
                     "#define LANE %d\n#define ROWS %d\n#define SPLIT %d\n",
                     (int)kind->taps_y, (int)kind->taps_x, (int)kind->tile_c, (int)kind->tile_k,
                     (int)kind->lane, (int)kind->rows, (int)kind->split);
  return weir_cuda_build(device, &text, weir_cuda_source_by_filter, name, out);
}

static weir_by_filter_shape_t shape_of(const weir_conv_t* v, const kind_t* kind) {
  int64_t tiles_k = rounded_up(v->out_c, kind->tile_k) / kind->tile_k;
  int64_t tiles = rounded_up(v->in_c, kind->tile_c) / kind->tile_c * tiles_k;
  int64_t stages = rounded_up(v->out[1], kind->rows) / kind->rows;
  return (weir_by_filter_shape_t){.lines = (int32_t)v->in[1],
                                  .pixels = (int32_t)v->in[2],
                                  .channels = (int32_t)v->in_c,
                                  .out_lines = (int32_t)v->out[1],
                                  .out_pixels = (int32_t)v->out[2],
                                  .out_channels = (int32_t)v->out_c,
                                  .line_pad = (int32_t)v->pad[1],
                                  .pixel_pad = (int32_t)v->pad[2],
                                  .chunks = (int32_t)kind->chunks,
                                  .tiles = (int32_t)tiles,
                                  .tiles_k = (int32_t)tiles_k,
                                  .stages = v->batch * kind->chunks * stages};
}

weir_status_t* weir_by_filter_make(weir_device_t* device, const weir_conv_t* shape,
                                   weir_by_filter_t* out) {
  const kind_t kind = find_kind(device, shape);
  const int64_t taps = kind.taps_y * kind.taps_x, packs = taps * shape->in_c * shape->out_c / 4;
  *out = (weir_by_filter_t){.shape = shape_of(shape, &kind)};
  int64_t tiles = out->shape.tiles;
  int64_t blocks = WEIR_MAX(weir_cuda_core(device)->multiprocessors / tiles, 1);
  blocks = WEIR_MIN(blocks, out->shape.stages);
  out->shape.parts = (int32_t)(blocks * kind.split);
  out->part_size = blocks * kind.split * tiles * taps * kind.tile_c * kind.tile_k;
  out->size = (weir_cuda_size_t){
      .grid = {(unsigned)blocks, (unsigned)tiles, 1},
      .block = {(unsigned)(kind.taps_y * kind.tile_k / 32 * kind.split * 32), 1, 1},
      .shared_bytes = (unsigned)shared_bytes(&kind)};
  out->adding =
      (weir_cuda_size_t){.grid = {(unsigned)((packs + 31) / 32), 1, 1}, .block = {32, 8, 1}};
  WEIR_TRY(build(device, &kind, "by_filter", &out->by_filter));
  return build(device, &kind, "add_parts", &out->add_parts);
}

weir_status_t* weir_by_filter_run(weir_device_t* device, const weir_by_filter_t* self,
                                  const void* x, const void* dy, void* dw) {
  weir_by_filter_shape_t shape = self->shape;
  weir_tensor_t* scratch = NULL;
  WEIR_TRY(weir_tensor_create_in(weir_device_allocator(device, WEIR_MEMORY_DEVICE),
                                 WEIR_DTYPE_FLOAT, 1, &self->part_size, &scratch));
  void* parts = scratch->data;
  weir_status_t* status = weir_cuda_launch(device, self->by_filter, &self->size,
                                           WEIR_CUDA_ARGS(&x, &dy, &parts, &shape));
  if (!status)
    status = weir_cuda_launch(device, self->add_parts, &self->adding,
                              WEIR_CUDA_ARGS(&parts, &dw, &shape));
  weir_tensor_release(scratch);  // whoever gets it comes after, in the order of the stream
  return status;
}

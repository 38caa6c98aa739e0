// cuda_reduce.c — Formulas of reductions as text, and how their work is spread over a GPU.
#include "kernel/reduce/cuda_reduce.h"

#include "kernel/cuda/source.h"
#include "kernel/reduce/reduce_internal.h"

WEIR_CUDA_SOURCE(reduce);

// ---- formulas ----

typedef struct formula_t {
  const char* identity[2];  // of floating types; of integers and bool
  const char* load;         // NULL: v
  const char* combine[2];
  const char* finish[2];  // NULL: a
} formula_t;

#define LOWEST "((T)-1 < (T)0 ? (ACC)(~0ull << (8 * sizeof(T) - 1)) : (ACC)0)"
#define HIGHEST "((T)-1 < (T)0 ? (ACC)~(~0ull << (8 * sizeof(T) - 1)) : (ACC)(T)-1)"
#define SUM \
  { "0", "0" }
#define ADD \
  { "a + b", "a + b" }
static const formula_t formulas[WEIR_REDUCE_COUNT] = {
    [WEIR_REDUCE_SUM] = {SUM, NULL, ADD, {NULL, NULL}},
    [WEIR_REDUCE_MEAN] = {SUM, NULL, ADD, {"a / (ACC)n", "n == 0 ? (ACC)0 : a / (ACC)n"}},
    [WEIR_REDUCE_PROD] = {{"1", "1"}, NULL, {"a * b", "a * b"}, {NULL, NULL}},
    [WEIR_REDUCE_MAX] = {{"-INFINITY", LOWEST},
                         NULL,
                         {"b > a || b != b ? b : a", "b > a ? b : a"},
                         {NULL, NULL}},
    [WEIR_REDUCE_MIN] = {{"INFINITY", HIGHEST},
                         NULL,
                         {"b < a || b != b ? b : a", "b < a ? b : a"},
                         {NULL, NULL}},
    // The squares of integers wrap in their type, and the root of a negative sum is 0.
    [WEIR_REDUCE_NORM] = {SUM,
                          "v * v",
                          ADD,
                          {"sqrt(a)", "(T)a > (T)0 ? (ACC)sqrt((double)(T)a) : (ACC)0"}},
    [WEIR_REDUCE_HALF_SQUARES] = {SUM, "v * v", ADD, {"a * (ACC)0.5", NULL}},
    [WEIR_REDUCE_ALL] = {{NULL, "1"}, NULL, {NULL, "a & b"}, {NULL, NULL}},
    [WEIR_REDUCE_ANY] = {{NULL, "0"}, NULL, {NULL, "a | b"}, {NULL, NULL}},
};

static const char* accumulator(weir_dtype_t dtype) {
  switch (dtype) {
    case WEIR_DTYPE_HALF:
    case WEIR_DTYPE_BFLOAT16:
    case WEIR_DTYPE_FLOAT: return "float";
    case WEIR_DTYPE_DOUBLE: return "double";
    case WEIR_DTYPE_BOOL: return "uint32_t";
    case WEIR_DTYPE_INT8:
    case WEIR_DTYPE_INT16:
    case WEIR_DTYPE_INT32:
    case WEIR_DTYPE_INT64: return "int64_t";
    default: return "uint64_t";
  }
}

weir_status_t* weir_cuda_reduce_define(weir_reduce_op_t op, weir_dtype_t dtype,
                                       weir_strbuf_t* out) {
  const formula_t* formula = &formulas[op];
  int kind = weir_dtype_is_floating(dtype) ? 0 : 1;
  if (!weir_cuda_type_name(dtype) || !formula->identity[kind])
    return WEIR_STATUS(UNIMPLEMENTED, "No reduction of type %s", weir_dtype_name(dtype));
  weir_strbuf_printf(out, "#define T %s\n#define ACC %s\n#define IDENTITY ((ACC)%s)\n",
                     weir_cuda_type_name(dtype), accumulator(dtype), formula->identity[kind]);
  weir_strbuf_printf(out, "#define LOAD %s\n#define COMBINE %s\n#define FINISH %s\n",
                     formula->load ? formula->load : "v", formula->combine[kind],
                     formula->finish[kind] ? formula->finish[kind] : "a");
  return NULL;
}

weir_status_t* weir_cuda_reduce_build(weir_device_t* device, const weir_strbuf_t* definitions,
                                      bool has_rows, bool has_columns, weir_cuda_reduce_t* out) {
  const struct {
    const char* name;
    weir_cuda_function_t* to;
    bool is_there;
  } functions[] = {{"reduce_rows_by_lanes", &out->lanes, has_rows},
                   {"reduce_rows", &out->rows, has_rows},
                   {"reduce_columns", &out->columns, has_columns},
                   {"reduce_column_packs", &out->packs, has_columns},
                   {"reduce_join", &out->join, true}};
  for (size_t i = 0; i < WEIR_COUNT_OF(functions); ++i) {
    if (!functions[i].is_there) continue;
    weir_strbuf_t text = {0};
    weir_strbuf_printf(&text, "%s%s%s", definitions->data, has_rows ? "#define ROWS\n" : "",
                       has_columns ? "#define COLUMNS\n" : "");
    WEIR_TRY(weir_cuda_build(device, &text, weir_cuda_source_reduce, functions[i].name,
                             functions[i].to));
  }
  return NULL;
}

weir_status_t* weir_cuda_reduce_find(weir_device_t* device, weir_reduce_op_t op, weir_dtype_t dtype,
                                     weir_cuda_reduce_t* out) {
  weir_strbuf_t text = {0};
  weir_status_t* status = weir_cuda_reduce_define(op, dtype, &text);
  weir_strbuf_puts(&text, "enum { WIDTH = 16 / sizeof(T) };\n");
  if (!status) status = weir_strbuf_finish(&text);
  if (!status) status = weir_cuda_reduce_build(device, &text, true, true, out);
  weir_strbuf_free(&text);
  return status;
}

// ---- launches ----

enum { MAX_AXES = 8, BLOCK = 256, WARP = 32, BLOCKS_EACH = 8 };
enum { LEAST = 4 };  // packs that a thread of a piece takes

// As the kernel has it.
typedef struct axes_t {
  int64_t dims[MAX_AXES], strides[MAX_AXES];
  int count;
} axes_t;
typedef struct reduction_t {
  axes_t kept, reduced;
  int64_t outputs, rows, inner, count, pieces, per_piece;
} reduction_t;

typedef struct launch_t {
  weir_kernel_ctx_t* ctx;
  const weir_cuda_reduce_t* functions;
  const void* source;
  void* y;
  int64_t width;  // elements of a pack
  int64_t most;   // blocks that keep the GPU busy
  int block;      // threads of one
  int is_packed;
  reduction_t r;
} launch_t;

static weir_status_t* pass_axes(const reduce_axes_t* from, axes_t* to) {
  if (from->count > MAX_AXES)
    return WEIR_STATUS(UNIMPLEMENTED, "A reduction of %d separate dimensions on a GPU",
                       from->count);
  to->count = from->count;
  for (int i = 0; i < from->count; ++i) {
    to->dims[i] = from->dims[i];
    to->strides[i] = from->strides[i];
  }
  return NULL;
}

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The least power of two that is no less, up to |most|.
static int power_of_two(int64_t n, int most) {
  int power = 1;
  while (power < n && power < most) power *= 2;
  return power;
}

static weir_cuda_size_t blocks(const launch_t* l, int64_t count) {
  int64_t grid = WEIR_MIN(WEIR_MAX(count, 1), 4 * l->most);
  return (weir_cuda_size_t){.grid = {(unsigned)grid, 1, 1}, .block = {(unsigned)l->block, 1, 1}};
}

// Cuts |length| steps of each of |items| blocks into pieces, where there are not blocks enough; a
// piece is at least |least| steps.
static void cut(launch_t* l, int64_t items, int64_t length, int64_t least, int64_t unit) {
  int64_t pieces = items >= l->most ? 1 : l->most / WEIR_MAX(items, 1);
  pieces = WEIR_MAX(WEIR_MIN(pieces, length / least), 1);
  int64_t each = ceil_div(ceil_div(length, unit), pieces) * unit;
  l->r.per_piece = WEIR_MAX(each, unit);
  l->r.pieces = WEIR_MAX(ceil_div(length, l->r.per_piece), 1);
}

static weir_status_t* join(launch_t* l, weir_tensor_t* partials, int64_t outputs) {
  l->block = BLOCK;
  weir_cuda_size_t size = blocks(l, ceil_div(outputs, BLOCK / WARP));
  return weir_cuda_launch(
      l->ctx->device, l->functions->join, &size,
      WEIR_CUDA_ARGS(&partials->data, &l->y, &outputs, &l->r.pieces, &l->r.count));
}

// Launches |function| with |last|, its last argument, and joins pieces.
static weir_status_t* run(launch_t* l, weir_cuda_function_t function, int64_t items,
                          int64_t outputs, int* last) {
  weir_tensor_t* partials = NULL;
  void* to = NULL;
  if (l->r.pieces > 1) {  // accumulators are of 8 bytes at most
    WEIR_TRY(weir_kernel_scratch(l->ctx, WEIR_DTYPE_INT64, outputs * l->r.pieces, &partials));
    to = partials->data;
  }
  weir_cuda_size_t size = blocks(l, items * l->r.pieces);
  weir_status_t* status = weir_cuda_launch(
      l->ctx->device, function, &size, WEIR_CUDA_ARGS((void*)l->source, &l->y, &to, &l->r, last));
  if (!status && partials) status = join(l, partials, outputs);
  weir_tensor_release(partials);
  return status;
}

// The innermost run is reduced.
static weir_status_t* run_rows(launch_t* l) {
  reduction_t* r = &l->r;
  bool is_one = r->outputs == 1 && r->rows == 1;  // then a last pack need not be full
  l->is_packed = l->is_packed && (is_one || r->inner % l->width == 0);
  int64_t width = l->is_packed ? l->width : 1, steps = ceil_div(r->count, width);
  if (steps > 512 && r->outputs < 8 * l->most) {
    cut(l, r->outputs, r->count, LEAST * BLOCK * width, width);
    return run(l, l->functions->rows, r->outputs, r->outputs, &l->is_packed);
  }
  int lanes = power_of_two(steps, WARP);
  weir_cuda_size_t size = blocks(l, ceil_div(r->outputs, BLOCK / lanes));
  return weir_cuda_launch(l->ctx->device, l->functions->lanes, &size,
                          WEIR_CUDA_ARGS((void*)l->source, &l->y, r, &lanes, &l->is_packed));
}

// The innermost run is kept. A block is as many columns across as there are, or an even part of
// them, and as many rows down as it has threads left: channels of any number then keep its threads
// busy.
static weir_status_t* run_columns(launch_t* l) {
  reduction_t* r = &l->r;
  l->is_packed = l->is_packed && r->inner % l->width == 0;
  int64_t columns = r->inner / (l->is_packed ? l->width : 1), tiles = ceil_div(columns, BLOCK);
  int across = (int)ceil_div(columns, tiles);
  int down = (int)WEIR_MAX(WEIR_MIN(BLOCK / across, r->rows), 1);
  l->block = (int)ceil_div((int64_t)across * down, WARP) * WARP;
  l->most = l->most * BLOCK / l->block;
  int64_t items = r->outputs * tiles;
  cut(l, items, r->rows, (int64_t)LEAST * down, 1);
  weir_cuda_function_t function = l->is_packed ? l->functions->packs : l->functions->columns;
  return run(l, function, items, r->outputs * r->inner, &across);
}

weir_status_t* weir_cuda_reduce_from(weir_kernel_ctx_t* ctx, const weir_cuda_reduce_t* functions,
                                     const weir_cuda_reduction_t* what) {
  launch_t l = {.ctx = ctx,
                .functions = functions,
                .source = what->source,
                .y = what->y,
                .width = what->width,
                .most = (int64_t)weir_cuda_core(ctx->device)->multiprocessors * BLOCKS_EACH,
                .block = BLOCK,
                .is_packed = what->is_packed,
                .r = {.pieces = 1}};
  reduce_shape_t shape;
  weir_reduce_analyse(what->rank, what->dims, what->is_reduced, &shape);
  if (shape.kept.total * (shape.inner_reduced ? 1 : shape.inner) == 0) return NULL;
  WEIR_TRY(pass_axes(&shape.kept, &l.r.kept));
  WEIR_TRY(pass_axes(&shape.reduced, &l.r.reduced));
  l.r.outputs = shape.kept.total;
  l.r.rows = shape.reduced.total;
  l.r.inner = shape.inner;
  l.r.count = shape.reduced_count;
  return shape.inner_reduced ? run_rows(&l) : run_columns(&l);
}

weir_status_t* weir_cuda_reduce(weir_kernel_ctx_t* ctx, const weir_cuda_reduce_t* functions,
                                weir_dtype_t dtype, int rank, const int64_t* dims,
                                const bool* is_reduced, const void* x, void* y) {
  weir_cuda_reduction_t what = {.rank = rank,
                                .dims = dims,
                                .is_reduced = is_reduced,
                                .source = &x,
                                .y = y,
                                .width = 16 / (int64_t)weir_dtype_size(dtype),
                                .is_packed = ((uintptr_t)x & 15) == 0};
  return weir_cuda_reduce_from(ctx, functions, &what);
}

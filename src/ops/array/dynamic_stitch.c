// dynamic_stitch.c — DynamicStitch and ParallelDynamicStitch: rows of several inputs put into one
// tensor by index.
#include "base/alloc.h"
#include "kernel/cuda/source.h"
#include "ops/array/common.h"

// Joins the shape of a row of pair |i| into |tail|.
static weir_status_t* join_tail(weir_shape_ctx_t* ctx, int i, const weir_shape_t** tail) {
  int n = ctx->node->input_count / 2;
  const weir_shape_t* index = weir_shape_input(ctx, i);
  const weir_shape_t* data = weir_shape_input(ctx, n + i);
  if (index->rank < 0 || data->rank < 0) return NULL;
  WEIR_TRY(weir_shape_at_least(ctx, data, index->rank));
  for (int k = 0; k < index->rank; ++k) {
    int64_t joined = 0;
    WEIR_TRY(weir_dim_join(ctx, index->dims[k], data->dims[k], &joined));
  }
  const weir_shape_t* rest = weir_shape_sub(ctx, data, index->rank, data->rank);
  return rest ? weir_shape_join(ctx, *tail, rest, tail) : weir_out_of_memory();
}

static weir_status_t* stitch_shape(weir_shape_ctx_t* ctx) {
  int n = ctx->node->input_count / 2;
  const weir_shape_t* tail = &weir_shape_unknown;
  int64_t rows = 0;
  for (int i = 0; i < n; ++i) {
    const weir_tensor_t* value = weir_shape_value(ctx, i);
    WEIR_TRY(join_tail(ctx, i, &tail));
    if (!value) rows = -1;
    for (int64_t k = 0; rows >= 0 && k < value->count; ++k)
      rows = WEIR_MAX(rows, weir_tensor_int_at(value, k) + 1);
  }
  if (tail->rank < 0) return weir_shape_set(ctx, 0, &weir_shape_unknown);
  int64_t dims[WEIR_MAX_RANK + 1];
  dims[0] = rows;
  for (int i = 0; i < tail->rank; ++i) dims[i + 1] = tail->dims[i];
  return weir_shape_set_dims(ctx, 0, tail->rank + 1, dims);
}

static weir_status_t* check_pair(const weir_kernel_ctx_t* ctx, int i) {
  int n = ctx->input_count / 2;
  const weir_tensor_t* index = weir_kernel_input(ctx, i);
  const weir_tensor_t* data = weir_kernel_input(ctx, n + i);
  const weir_tensor_t* index0 = weir_kernel_input(ctx, 0);
  const weir_tensor_t* data0 = weir_kernel_input(ctx, n);
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  bool starts = data->rank >= index->rank;
  for (int k = 0; starts && k < index->rank; ++k) starts = data->dims[k] == index->dims[k];
  if (!starts) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "data[%d].shape = %s does not start with indices[%d].shape = %s", i,
                       weir_tensor_shape_text(data, a), i, weir_tensor_shape_text(index, b));
  }
  int rest = data->rank - index->rank;
  bool is_same = rest == data0->rank - index0->rank;
  for (int k = 0; is_same && k < rest; ++k)
    is_same = data->dims[index->rank + k] == data0->dims[index0->rank + k];
  if (!is_same) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Need data[0].shape[%d:] = data[%d].shape[%d:], got data[0].shape = %s, "
                       "data[%d].shape = %s",
                       index0->rank, i, index->rank, weir_tensor_shape_text(data0, a), i,
                       weir_tensor_shape_text(data, b));
  }
  return NULL;
}

static weir_status_t* count_rows(const weir_kernel_ctx_t* ctx, int64_t* out_rows) {
  char place[WEIR_SHAPE_TEXT_SIZE];
  *out_rows = 0;
  for (int i = 0; i < ctx->input_count / 2; ++i) {
    const weir_tensor_t* index = weir_kernel_input(ctx, i);
    for (int64_t k = 0; k < index->count; ++k) {
      int64_t at = weir_tensor_int_at(index, k);
      if (at < 0) {
        return WEIR_STATUS(INVALID_ARGUMENT, "indices[%d]%s = %lld is out of range", i,
                           array_place_text(index, k, place), (long long)at);
      }
      *out_rows = WEIR_MAX(*out_rows, at + 1);
    }
  }
  if (*out_rows > INT32_MAX) {  // TensorFlow counts them as int32
    return WEIR_STATUS(INVALID_ARGUMENT, "Expected a non-negative size, got %d", INT32_MIN);
  }
  return NULL;
}

// Checks the inputs and makes the output, with |*out_row| elements in each row.
static weir_status_t* make_output(weir_kernel_ctx_t* ctx, weir_tensor_t** out, int64_t* out_row) {
  int n = ctx->input_count / 2;
  const weir_tensor_t* index0 = weir_kernel_input(ctx, 0);
  const weir_tensor_t* data0 = weir_kernel_input(ctx, n);
  int64_t dims[WEIR_MAX_RANK + 1], rows = 0, row = 1;
  WEIR_TRY(count_rows(ctx, &rows));
  for (int i = 0; i < n; ++i) WEIR_TRY(check_pair(ctx, i));
  int rest = data0->rank - index0->rank;
  dims[0] = rows;
  for (int k = 0; k < rest; ++k) {
    dims[k + 1] = data0->dims[index0->rank + k];
    row *= dims[k + 1];
  }
  *out_row = row;
  return weir_kernel_output(ctx, 0, rest + 1, dims, out);
}

// Later inputs win where indices repeat. Rows that no index names are zero.
static weir_status_t* stitch_cpu(weir_kernel_ctx_t* ctx) {
  int n = ctx->input_count / 2;
  const weir_dtype_t dtype = weir_tensor_type(weir_kernel_input(ctx, n));
  int64_t row = 0;
  weir_tensor_t* out = NULL;
  WEIR_TRY(make_output(ctx, &out, &row));
  if (out->count == 0) return NULL;
  weir_move_zero(dtype, out->data, out->count);
  size_t step = (size_t)row * weir_dtype_size(dtype);
  for (int i = 0; i < n; ++i) {
    const weir_tensor_t* index = weir_kernel_input(ctx, i);
    const char* src = weir_kernel_input(ctx, n + i)->data;
    for (int64_t k = 0; k < index->count; ++k) {
      char* dst = (char*)out->data + (size_t)weir_tensor_int_at(index, k) * step;
      WEIR_TRY(weir_elements_copy(dtype, dst, src + (size_t)k * step, row));
    }
  }
  return NULL;
}

// ---- on GPUs ----

WEIR_CUDA_SOURCE(stitch);
enum { ROWS = 480, WIDEST = 16 };  // as stitch.cu has them

typedef struct rows_t {
  int count;
  int64_t inner;
  uint64_t at[ROWS];
} rows_t;

// For pieces of 1, 2, 4, 8 and 16 bytes, from an element's size on. Immutable after init.
typedef struct stitch_gpu_t {
  weir_cuda_function_t stitch[WEIR_MOVE_SIZES];
} stitch_gpu_t;

static weir_status_t* stitch_gpu_init(const weir_kernel_init_t* init, void* state) {
  stitch_gpu_t* self = state;
  size_t size = weir_dtype_size(init->node->output_types[0]);
  for (int i = 0; i < WEIR_MOVE_SIZES; ++i) {
    weir_strbuf_t text = {0};
    if ((size_t)1 << i < size) continue;
    weir_strbuf_printf(&text, "typedef %s E;\n", weir_cuda_bytes_name((size_t)1 << i));
    WEIR_TRY(
        weir_cuda_build(init->device, &text, weir_cuda_source_stitch, "stitch", &self->stitch[i]));
  }
  return NULL;
}

// Where each row of the output is, by the indices, which are in host memory.
static void find_rows(const weir_kernel_ctx_t* ctx, size_t step, uint64_t* at) {
  int n = ctx->input_count / 2;
  for (int i = 0; i < n; ++i) {
    const weir_tensor_t* index = weir_kernel_input(ctx, i);
    uint64_t src = (uint64_t)(uintptr_t)weir_kernel_input(ctx, n + i)->data;
    for (int64_t k = 0; k < index->count; ++k)
      at[weir_tensor_int_at(index, k)] = src + (uint64_t)k * step;
  }
}

static weir_status_t* move_rows(const weir_kernel_ctx_t* ctx, size_t step, const uint64_t* at,
                                weir_tensor_t* out) {
  const stitch_gpu_t* self = ctx->state;
  for (int64_t first = 0; first < out->dims[0]; first += ROWS) {
    void* to = (char*)out->data + (size_t)first * step;
    rows_t rows = {.count = (int)WEIR_MIN(out->dims[0] - first, ROWS)};
    uint64_t all = (uint64_t)(uintptr_t)to | step | WIDEST;
    for (int i = 0; i < rows.count; ++i) all |= rows.at[i] = at[first + i];
    int width = __builtin_ctzll(all);  // all of it is a multiple of so many bits of bytes
    rows.inner = (int64_t)(step >> width);
    weir_cuda_size_t grid = weir_cuda_size_for(ctx->device, rows.count * rows.inner);
    WEIR_TRY(weir_cuda_launch(ctx->device, self->stitch[width], &grid, WEIR_CUDA_ARGS(&to, &rows)));
  }
  return NULL;
}

// Addresses of rows travel as arguments of launches: each is moved once, the last that is named.
static weir_status_t* stitch_gpu(weir_kernel_ctx_t* ctx) {
  int64_t row = 0;
  weir_tensor_t* out = NULL;
  WEIR_TRY(make_output(ctx, &out, &row));
  if (out->count == 0) return NULL;
  size_t step = (size_t)row * weir_dtype_size(weir_tensor_type(out));
  uint64_t* at = weir_calloc((size_t)out->dims[0], sizeof(*at));
  if (!at) return weir_out_of_memory();
  find_rows(ctx, step, at);
  weir_status_t* status = move_rows(ctx, step, at, out);
  weir_free(at);
  return status;
}

static weir_status_t* stitch_grad(weir_grad_ctx_t* g) {  // each input gets its rows of dy back
  int n = g->node->input_count / 2;
  weir_edge_t dy = weir_grad_dy(g, 0);
  for (int i = 0; i < n; ++i) {
    weir_edge_t dx = weir_grad_node(
        g, "GatherV2", WEIR_EDGES(dy, weir_grad_input(g, i), weir_build_int32(g->builder, 0)));
    WEIR_TRY(weir_grad_set(g, n + i, dx));
  }
  return NULL;
}

// int32 is in host memory, as all shapes are that are stitched together.
static const weir_kernel_def_t stitch_kernels[] = {
    {WEIR_DEVICE_CPU, .compute = stitch_cpu, .host_inputs = "indices"},
    {WEIR_DEVICE_GPU, .types = "T: " WEIR_MOVED_TYPES, .compute = stitch_gpu,
     .init = stitch_gpu_init, .state_size = sizeof(stitch_gpu_t), .host_inputs = "indices"},
    {WEIR_DEVICE_GPU, .types = "T: int32", .compute = stitch_cpu, .host_inputs = "indices, data",
     .host_outputs = "merged"},
    {0}};

const weir_op_module_t weir_ops_array_dynamic_stitch = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "DynamicStitch",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "N: int >= 1; T: type",
         .inputs = "indices: N * int32; data: N * T",
         .outputs = "merged: T",
         .summary = "Puts rows of several tensors into one by index; the last one wins.",
         .infer_shape = stitch_shape,
         .build_grad = stitch_grad,
         .kernels = stitch_kernels},
        {.name = "ParallelDynamicStitch",
         .attrs = "N: int >= 1; T: type",
         .inputs = "indices: N * int32; data: N * T",
         .outputs = "merged: T",
         .summary = "As DynamicStitch; the caller does not care which of equal indices wins.",
         .infer_shape = stitch_shape,
         .build_grad = stitch_grad,
         .kernels = stitch_kernels},
        {0}}};

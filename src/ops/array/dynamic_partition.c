// dynamic_partition.c — DynamicPartition: rows sorted into several outputs.
#include "kernel/cuda/answer.h"
#include "kernel/cuda/source.h"
#include "kernel/reduce/cuda_scan.h"
#include "ops/array/common.h"

static weir_status_t* partition_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* data = weir_shape_input(ctx, 0);
  const weir_shape_t* partitions = weir_shape_input(ctx, 1);
  int64_t dims[WEIR_MAX_RANK + 1] = {-1};
  if (data->rank < 0 || partitions->rank < 0) return NULL;
  if (data->rank < partitions->rank) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "data must have at least the rank of partitions: %d vs. %d", data->rank,
                       partitions->rank);
  }
  for (int i = 0; i < partitions->rank; ++i) {
    int64_t joined = 0;
    WEIR_TRY(weir_dim_join(ctx, data->dims[i], partitions->dims[i], &joined));
  }
  int rank = data->rank - partitions->rank + 1;
  for (int i = 1; i < rank; ++i) dims[i] = data->dims[partitions->rank + i - 1];
  for (int i = 0; i < ctx->node->output_count; ++i)
    WEIR_TRY(weir_shape_set_dims(ctx, i, rank, dims));
  return NULL;
}

static weir_status_t* out_of_range(const weir_tensor_t* partitions, int64_t i, int32_t value,
                                   int64_t num) {
  char place[WEIR_SHAPE_TEXT_SIZE];
  return WEIR_STATUS(INVALID_ARGUMENT, "partitions%s = %d is not in [0, %lld)",
                     array_place_text(partitions, i, place), value, (long long)num);
}

static weir_status_t* count_partitions(const weir_tensor_t* partitions, int64_t num,
                                       int64_t* counts) {
  const int32_t* p = partitions->data;
  for (int64_t i = 0; i < partitions->count; ++i) {
    if (p[i] < 0 || p[i] >= num) return out_of_range(partitions, i, p[i], num);
    ++counts[p[i]];
  }
  return NULL;
}

static weir_status_t* create_outputs(weir_kernel_ctx_t* ctx, const weir_tensor_t* data,
                                     const weir_tensor_t* partitions, const int64_t* counts) {
  int64_t dims[WEIR_MAX_RANK + 1];
  int rank = data->rank - partitions->rank + 1;
  for (int i = 1; i < rank; ++i) dims[i] = data->dims[partitions->rank + i - 1];
  for (int i = 0; i < ctx->output_count; ++i) {
    weir_tensor_t* out = NULL;
    dims[0] = counts[i];
    WEIR_TRY(weir_kernel_output(ctx, i, rank, dims, &out));
  }
  return NULL;
}

static weir_status_t* deal_rows(weir_kernel_ctx_t* ctx, const weir_tensor_t* data,
                                const weir_tensor_t* partitions, int64_t* next) {
  const weir_dtype_t dtype = weir_tensor_type(data);
  const int32_t* p = partitions->data;
  int64_t row = partitions->count == 0 ? 0 : data->count / partitions->count;
  size_t step = (size_t)row * weir_dtype_size(dtype);
  memset(next, 0, (size_t)ctx->output_count * sizeof(*next));
  if (row == 0) return NULL;
  for (int64_t i = 0; i < partitions->count; ++i) {
    char* dst = (char*)ctx->outputs[p[i]].tensor->data + (size_t)next[p[i]]++ * step;
    WEIR_TRY(weir_elements_copy(dtype, dst, (const char*)data->data + (size_t)i * step, row));
  }
  return NULL;
}

static weir_status_t* check_shapes(const weir_tensor_t* data, const weir_tensor_t* partitions) {
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  bool starts = data->rank >= partitions->rank;
  for (int i = 0; starts && i < partitions->rank; ++i)
    starts = data->dims[i] == partitions->dims[i];
  if (starts) return NULL;
  return WEIR_STATUS(
      INVALID_ARGUMENT,
      "data.shape must start with partitions.shape, got data.shape = %s, partitions.shape = %s",
      weir_tensor_shape_text(data, a), weir_tensor_shape_text(partitions, b));
}

static weir_status_t* partition_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* data = weir_kernel_input(ctx, 0);
  const weir_tensor_t* partitions = weir_kernel_input(ctx, 1);
  WEIR_TRY(check_shapes(data, partitions));
  int64_t* counts = weir_calloc((size_t)ctx->output_count, sizeof(*counts));
  if (!counts) return weir_out_of_memory();
  weir_status_t* status = count_partitions(partitions, ctx->output_count, counts);
  if (!status) status = create_outputs(ctx, data, partitions, counts);
  if (!status) status = deal_rows(ctx, data, partitions, counts);
  weir_free(counts);
  return status;
}

// ---- on a GPU ----

WEIR_CUDA_SOURCE(partition);

enum { WARP = 32, AT_ONCE = 64, WIDE = 16 };  // the first two as partition.cu has them

typedef struct partition_gpu_t {
  weir_cuda_function_t count, starts, order;
  weir_cuda_function_t rows, wide_rows;  // of elements, and of WIDE bytes
  weir_cuda_scan_t scan;
} partition_gpu_t;

// As partition.cu has them.
typedef struct deal_t {
  const void* parts;
  int64_t rows, chunk, chunks;
  int count;
  int64_t* table;
} deal_t;
typedef struct outputs_t {
  int count;
  int64_t first;
  int64_t ends[AT_ONCE];
  void* at[AT_ONCE];
} outputs_t;

// The numbers it asks for are where the outputs begin, where the last ends, how far from the end
// the first row is that has no output (0: none), and what it says instead.
typedef struct partition_call_t {
  weir_answer_t answer;  // first
  deal_t deal;
  void* order;
} partition_call_t;

static weir_status_t* build(const weir_kernel_init_t* init, size_t size, const char* name,
                            weir_cuda_function_t* out_function) {
  weir_strbuf_t text = {0};
  weir_strbuf_printf(&text, "typedef %s E;\n", weir_cuda_bytes_name(size));
  return weir_cuda_build(init->device, &text, weir_cuda_source_partition, name, out_function);
}

static weir_status_t* partition_gpu_init(const weir_kernel_init_t* init, void* state) {
  partition_gpu_t* self = state;
  size_t size = weir_dtype_size(weir_dtype_base(init->node->input_types[0]));
  WEIR_TRY(build(init, WIDE, "deal_count", &self->count));
  WEIR_TRY(build(init, WIDE, "deal_starts", &self->starts));
  WEIR_TRY(build(init, WIDE, "deal_order", &self->order));
  WEIR_TRY(build(init, size, "deal_rows", &self->rows));
  WEIR_TRY(build(init, WIDE, "deal_rows", &self->wide_rows));
  return weir_cuda_scan_find(init->device, WEIR_BINARY_ADD, WEIR_DTYPE_INT64, &self->scan);
}

// Chunks that keep a GPU busy, but fewer of many outputs: the table has a place for each of each.
static deal_t deal_of(const weir_tensor_t* partitions, int count) {
  enum { CHUNK = 1024, MOST_PLACES = 1 << 22 };
  deal_t deal = {.parts = partitions->data, .rows = partitions->count, .count = count};
  for (deal.chunk = CHUNK;; deal.chunk *= 2) {
    deal.chunks = (deal.rows + deal.chunk - 1) / deal.chunk;
    if (deal.chunks == 1 || deal.chunks * count <= MOST_PLACES) return deal;
  }
}

static weir_status_t* find_order(partition_call_t* self, void* table) {
  weir_answer_t* answer = &self->answer;
  const partition_gpu_t* f = answer->ctx->state;
  weir_device_t* device = answer->ctx->device;
  deal_t counting = self->deal;
  int64_t places = counting.count * counting.chunks + 1;
  int64_t* numbers = answer->numbers->data;
  int64_t* bad = numbers + counting.count + 1;
  counting.table = table;
  weir_cuda_size_t warps = weir_cuda_size_for(device, counting.chunks * WARP);
  weir_cuda_size_t few = weir_cuda_size_for(device, counting.count + 1);
  weir_scan_shape_t shape = {.outer = 1, .length = places, .inner = 1, .is_exclusive = true};
  WEIR_TRY(weir_cuda_launch(device, f->count, &warps, WEIR_CUDA_ARGS(&counting, &bad)));
  WEIR_TRY(weir_cuda_scan(answer->ctx, &f->scan, &shape, table, self->deal.table));
  WEIR_TRY(weir_cuda_launch(device, f->starts, &few, WEIR_CUDA_ARGS(&self->deal, &bad, &numbers)));
  return weir_cuda_launch(device, f->order, &warps, WEIR_CUDA_ARGS(&self->deal, &self->order));
}

static weir_status_t* partition_count(weir_answer_t* answer) {
  partition_call_t* self = (partition_call_t*)answer;
  weir_kernel_ctx_t* ctx = answer->ctx;
  const weir_tensor_t *data = weir_kernel_input(ctx, 0), *partitions = weir_kernel_input(ctx, 1);
  WEIR_TRY(check_shapes(data, partitions));
  int count = ctx->output_count;
  int64_t rows = partitions->count, *numbers = NULL;
  void *table = NULL, *starts = NULL;
  WEIR_TRY(weir_answer_numbers(answer, count + 3, &numbers));
  if (rows == 0) return NULL;  // all of them are 0 then
  self->deal = deal_of(partitions, count);
  int64_t places = count * self->deal.chunks + 1;
  WEIR_TRY(weir_answer_scratch(answer, 0, WEIR_DTYPE_INT64, places, 0, &table));
  WEIR_TRY(weir_answer_scratch(answer, 1, WEIR_DTYPE_INT64, places, WEIR_ANSWER_ANY, &starts));
  WEIR_TRY(weir_answer_scratch(answer, 2, WEIR_DTYPE_INT64, rows, WEIR_ANSWER_ANY, &self->order));
  self->deal.table = starts;
  return find_order(self, table);
}

// Fills outputs from |first| on, at most AT_ONCE.
static weir_status_t* write_outputs(const partition_call_t* self, int first,
                                    const int64_t* starts) {
  weir_kernel_ctx_t* ctx = self->answer.ctx;
  const partition_gpu_t* f = ctx->state;
  const weir_tensor_t* data = weir_kernel_input(ctx, 0);
  outputs_t outputs = {.count = WEIR_MIN(ctx->output_count - first, AT_ONCE),
                       .first = starts[first]};
  int64_t rows = starts[first + outputs.count] - outputs.first;
  size_t size = weir_dtype_size(weir_tensor_type(data));
  int64_t width = self->deal.rows ? data->count / self->deal.rows : 0;
  if (rows == 0 || width == 0) return NULL;
  uintptr_t all = (uintptr_t)data->data | (uintptr_t)width * size;
  for (int i = 0; i < outputs.count; ++i) {
    outputs.ends[i] = starts[first + i + 1] - outputs.first;
    outputs.at[i] = ctx->outputs[first + i].tensor->data;
    if (ctx->outputs[first + i].tensor->count) all |= (uintptr_t)outputs.at[i];
  }
  bool is_wide = all % WIDE == 0;
  if (is_wide) width = width * (int64_t)size / WIDE;
  const void* from = data->data;
  void* order = self->order;
  weir_cuda_size_t grid = weir_cuda_size_for(ctx->device, rows * width);
  return weir_cuda_launch(ctx->device, is_wide ? f->wide_rows : f->rows, &grid,
                          WEIR_CUDA_ARGS(&from, &order, &width, &outputs));
}

static weir_status_t* partition_write(weir_answer_t* answer, const int64_t* numbers) {
  const partition_call_t* self = (const partition_call_t*)answer;
  weir_kernel_ctx_t* ctx = answer->ctx;
  const weir_tensor_t *data = weir_kernel_input(ctx, 0), *partitions = weir_kernel_input(ctx, 1);
  int count = ctx->output_count;
  int64_t bad = numbers[count + 1];
  if (bad)
    return out_of_range(partitions, partitions->count - bad, (int32_t)numbers[count + 2], count);
  int64_t* counts = weir_alloc_array((size_t)count, sizeof(*counts));
  if (!counts) return weir_out_of_memory();
  for (int i = 0; i < count; ++i) counts[i] = numbers[i + 1] - numbers[i];
  weir_status_t* status = create_outputs(ctx, data, partitions, counts);
  weir_free(counts);
  for (int i = 0; i < count && !status; i += AT_ONCE) status = write_outputs(self, i, numbers);
  return status;
}

static void partition_gpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  static const weir_answer_fns_t fns = {
      .size = sizeof(partition_call_t), .before = partition_count, .after = partition_write};
  weir_answer_run(ctx, &fns, done);
}

// ---- gradient: row numbers dealt the same way say where each row of the dys goes back to ----

static weir_edge_t row_numbers(weir_grad_ctx_t* g, weir_edge_t partitions) {
  weir_edge_t count = weir_grad_node(g, "Size", WEIR_EDGES(partitions));
  weir_edge_t numbers = weir_grad_node(
      g, "Range",
      WEIR_EDGES(weir_build_int32(g->builder, 0), count, weir_build_int32(g->builder, 1)));
  if (weir_grad_shape(g, partitions)->rank == 1) return numbers;
  return weir_grad_node(g, "Reshape", WEIR_EDGES(numbers, weir_grad_shape_of(g, partitions)));
}

static weir_status_t* partition_grad(weir_grad_ctx_t* g) {
  weir_edge_t data = weir_grad_input(g, 0);
  weir_edge_t partitions = weir_grad_input(g, 1);
  int num = g->node->output_count;
  weir_edge_t* parts = weir_alloc_array(2 * (size_t)num, sizeof(*parts));
  if (!parts) return weir_out_of_memory();
  weir_edge_t dealt =
      weir_grad_node_with(g, "DynamicPartition", WEIR_EDGES(row_numbers(g, partitions), partitions),
                          WEIR_ATTRS(weir_attr_int("num_partitions", num)));
  for (int i = 0; i < num; ++i) {
    parts[i] = weir_build_output(dealt, i);
    parts[num + i] = weir_grad_dy(g, i);
  }
  weir_edge_t dx = weir_grad_node_with(g, "ParallelDynamicStitch", (weir_edges_t){parts, 2 * num},
                                       WEIR_ATTRS(weir_attr_int("N", num)));
  weir_free(parts);
  dx = weir_grad_node(g, "Reshape", WEIR_EDGES(dx, weir_grad_shape_of(g, data)));
  return weir_grad_set(g, 0, dx);
}

const weir_op_module_t weir_ops_array_dynamic_partition = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "DynamicPartition",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "num_partitions: int >= 1; T: type",
         .inputs = "data: T; partitions: int32",
         .outputs = "outputs: num_partitions * T",
         .summary = "Sorts the rows of a tensor into several outputs.",
         .infer_shape = partition_shape,
         .build_grad = partition_grad,
         .kernels =
             (const weir_kernel_def_t[]){
                 {WEIR_DEVICE_CPU, .compute = partition_cpu},
                 {WEIR_DEVICE_GPU, .types = "T: int32, " WEIR_MOVED_TYPES,
                  .compute_async = partition_gpu, .init = partition_gpu_init,
                  .state_size = sizeof(partition_gpu_t)},
                 {0}}},
        {0}}};

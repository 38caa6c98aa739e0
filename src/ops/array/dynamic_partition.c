// dynamic_partition.c — DynamicPartition: rows sorted into several outputs.
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

static weir_status_t* count_partitions(const weir_tensor_t* partitions, int64_t num,
                                       int64_t* counts) {
  const int32_t* p = partitions->data;
  char place[WEIR_SHAPE_TEXT_SIZE];
  for (int64_t i = 0; i < partitions->count; ++i) {
    if (p[i] < 0 || p[i] >= num) {
      return WEIR_STATUS(INVALID_ARGUMENT, "partitions%s = %d is not in [0, %lld)",
                         array_place_text(partitions, i, place), p[i], (long long)num);
    }
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

static weir_status_t* partition_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* data = weir_kernel_input(ctx, 0);
  const weir_tensor_t* partitions = weir_kernel_input(ctx, 1);
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  bool starts = data->rank >= partitions->rank;
  for (int i = 0; starts && i < partitions->rank; ++i)
    starts = data->dims[i] == partitions->dims[i];
  if (!starts) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "data.shape must start with partitions.shape, got data.shape = %s, partitions.shape = %s",
        weir_tensor_shape_text(data, a), weir_tensor_shape_text(partitions, b));
  }
  int64_t* counts = weir_calloc((size_t)ctx->output_count, sizeof(*counts));
  if (!counts) return weir_out_of_memory();
  weir_status_t* status = count_partitions(partitions, ctx->output_count, counts);
  if (!status) status = create_outputs(ctx, data, partitions, counts);
  if (!status) status = deal_rows(ctx, data, partitions, counts);
  weir_free(counts);
  return status;
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
    .ops = (const weir_op_def_t[]){{.name = "DynamicPartition",
                                    .mixed = WEIR_MIXED_CLEAR,
                                    .attrs = "num_partitions: int >= 1; T: type",
                                    .inputs = "data: T; partitions: int32",
                                    .outputs = "outputs: num_partitions * T",
                                    .summary = "Sorts the rows of a tensor into several outputs.",
                                    .infer_shape = partition_shape,
                                    .build_grad = partition_grad,
                                    .kernels = WEIR_CPU_KERNEL(.compute = partition_cpu)},
                                   {0}}};

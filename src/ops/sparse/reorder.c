// reorder.c — SparseReorder: the rows of a sparse tensor in the order of their indices.
#include "ops/math/common.h"
#include "ops/sparse/sparse.h"

static weir_status_t* reorder_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_sparse_shape_check(ctx, 0));
  const weir_shape_t* indices = NULL;
  const weir_shape_t* values = NULL;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 2, &indices));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, &values));
  WEIR_TRY(weir_shape_set(ctx, 0, indices));
  return weir_shape_set(ctx, 1, values);
}

static bool is_ordered(const weir_sparse_t* s) {
  for (int64_t i = 1; i < s->count; ++i) {
    if (weir_sparse_compare(weir_sparse_row(s, i - 1), weir_sparse_row(s, i), s->rank) > 0)
      return false;
  }
  return true;
}

typedef struct move_job_t {
  const weir_sparse_t* s;
  const int64_t* order;
  int64_t* indices;
  char* values;
  size_t size;
} move_job_t;

static void move_rows(void* arg, int64_t begin, int64_t end) {
  const move_job_t* job = arg;
  const size_t row = (size_t)job->s->rank * sizeof(int64_t);
  for (int64_t i = begin; i < end; ++i) {
    memcpy(job->indices + i * job->s->rank, weir_sparse_row(job->s, job->order[i]), row);
    memcpy(job->values + (size_t)i * job->size,
           (const char*)job->s->values->data + (size_t)job->order[i] * job->size, job->size);
  }
}

static weir_status_t* write_ordered(weir_kernel_ctx_t* ctx, const weir_sparse_t* s,
                                    const int64_t* order) {
  weir_dtype_t dtype = weir_tensor_type(s->values);
  if (dtype == WEIR_DTYPE_STRING || dtype == WEIR_DTYPE_RESOURCE || dtype == WEIR_DTYPE_VARIANT) {
    WEIR_TRY(weir_sparse_gather(ctx, 0, s->indices, order, s->count));
    return weir_sparse_gather(ctx, 1, s->values, order, s->count);
  }
  weir_tensor_t* indices = NULL;
  weir_tensor_t* values = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, 2, s->indices->dims, &indices));
  WEIR_TRY(weir_kernel_output(ctx, 1, 1, s->values->dims, &values));
  move_job_t job = {.s = s,
                    .order = order,
                    .indices = indices->data,
                    .values = values->data,
                    .size = weir_dtype_size(dtype)};
  weir_pool_for(weir_kernel_pool(ctx), s->count, 3, move_rows, &job);
  return NULL;
}

static weir_status_t* reorder_cpu(weir_kernel_ctx_t* ctx) {
  weir_sparse_t s;
  WEIR_TRY(weir_sparse_read(ctx, 0, &s));
  if (is_ordered(&s)) {
    weir_kernel_pass(ctx, 0, 0);
    weir_kernel_pass(ctx, 1, 1);
    return NULL;
  }
  int64_t* order = weir_alloc_array((size_t)s.count, sizeof(*order));
  if (!order) return weir_out_of_memory();
  weir_status_t* status = weir_sparse_order(&s, weir_kernel_pool(ctx), order);
  if (!status) status = write_ordered(ctx, &s, order);
  weir_free(order);
  return status;
}

// Where each row went: the numbers of the rows, reordered too, inverted.
static weir_status_t* reorder_grad(weir_grad_ctx_t* g) {
  weir_edge_t zero = weir_build_int32(g->builder, 0);
  weir_edge_t count = weir_grad_node(g, "Size", WEIR_EDGES(weir_grad_input(g, 1)));
  weir_edge_t numbers = node3(g, "Range", zero, count, weir_build_int32(g->builder, 1));
  weir_edge_t ordered =
      node3(g, "SparseReorder", weir_grad_input(g, 0), numbers, weir_grad_input(g, 2));
  weir_edge_t inverse = node1(g, "InvertPermutation", weir_build_output(ordered, 1));
  return weir_grad_set(g, 1, node3(g, "GatherV2", weir_grad_dy(g, 1), inverse, zero));
}

const weir_op_module_t weir_ops_sparse_reorder = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "SparseReorder",
         .attrs = "T: type",
         .inputs = "input_indices: int64; input_values: T; input_shape: int64",
         .outputs = "output_indices: int64; output_values: T",
         .flags = WEIR_OP_VIEW,
         .summary = "Sorts the rows of a sparse tensor by their indices.",
         .infer_shape = reorder_shape,
         .build_grad = reorder_grad,
         .kernels = WEIR_CPU_KERNEL(.types = SPARSE_ANY, .compute = reorder_cpu)},
        {0}}};

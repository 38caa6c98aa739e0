// reduce.c — SparseReduceSum, SparseReduceMax, each also Sparse: reductions of a sparse tensor over
// dimensions. Only what is there counts: the maximum of -1 alone is -1.
#include "ops/math/common.h"
#include "ops/sparse/sparse.h"

typedef struct reduce_state_t {
  weir_binary_fn_t fn;
  bool keep_dims;
} reduce_state_t;

static weir_status_t* sum_init(const weir_kernel_init_t* init, void* state) {
  *(reduce_state_t*)state = (reduce_state_t){
      .fn = weir_binary_find(WEIR_BINARY_ADD, weir_attrs_type(init->node->attrs, "T")),
      .keep_dims = weir_attrs_bool(init->node->attrs, "keep_dims")};
  return NULL;
}

static weir_status_t* max_init(const weir_kernel_init_t* init, void* state) {
  *(reduce_state_t*)state = (reduce_state_t){
      .fn = weir_binary_find(WEIR_BINARY_MAXIMUM, weir_attrs_type(init->node->attrs, "T")),
      .keep_dims = weir_attrs_bool(init->node->attrs, "keep_dims")};
  return NULL;
}

// Which dimensions stay, and rows in an order in which those that meet are next to each other.
typedef struct plan_t {
  weir_sparse_t s;
  int kept[WEIR_MAX_RANK];
  int kept_count;
  int out_rank;
  int64_t out_dims[WEIR_MAX_RANK];
  int out_axis[WEIR_MAX_RANK];  // where |kept| are in the output
  int64_t* order;               // owned
} plan_t;

static weir_status_t* read_inputs(const weir_kernel_ctx_t* ctx, weir_sparse_t* s) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  weir_sparse_get(weir_kernel_input(ctx, 0), weir_kernel_input(ctx, 1), weir_kernel_input(ctx, 2),
                  s);
  if (s->shape->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Expected input_shape to be a vector; got shape: %s",
                       weir_tensor_shape_text(s->shape, text));
  }
  if (weir_kernel_input(ctx, 3)->rank > 1) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Expected reduction_axes to be a scalar or a vector; got shape: %s",
                       weir_tensor_shape_text(weir_kernel_input(ctx, 3), text));
  }
  return weir_sparse_check_dims(s->dims, s->shape->count, NULL);
}

static weir_status_t* find_reduced(const weir_tensor_t* axes, int64_t rank, bool* is_reduced) {
  for (int d = 0; d < rank; ++d) is_reduced[d] = false;
  for (int64_t i = 0; i < axes->count; ++i) {
    int64_t axis = weir_tensor_int_at(axes, i);
    if (axis < -rank || axis >= rank) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Invalid reduction dimension %" PRId64 ", for input with %" PRId64
                         " dimensions.",
                         axis, rank);
    }
    is_reduced[axis < 0 ? axis + rank : axis] = true;
  }
  return NULL;
}

static weir_status_t* make_plan(weir_kernel_ctx_t* ctx, plan_t* plan) {
  const reduce_state_t* state = ctx->state;
  bool is_reduced[WEIR_MAX_RANK] = {false};
  int by[WEIR_MAX_RANK];
  weir_sparse_t* s = &plan->s;
  WEIR_TRY(read_inputs(ctx, s));
  WEIR_TRY(find_reduced(weir_kernel_input(ctx, 3), s->shape->count, is_reduced));
  WEIR_TRY(weir_sparse_check_parts(s));
  for (int d = 0; d < s->rank; ++d) {
    if (!is_reduced[d]) {
      plan->out_axis[plan->kept_count] = plan->out_rank;
      by[plan->kept_count] = plan->kept[plan->kept_count] = d;
      ++plan->kept_count;
    }
    if (!is_reduced[d] || state->keep_dims)
      plan->out_dims[plan->out_rank++] = is_reduced[d] ? 1 : s->dims[d];
  }
  int count = plan->kept_count;
  for (int d = 0; d < s->rank; ++d) {
    if (is_reduced[d]) by[count++] = d;
  }
  plan->order = weir_alloc_array((size_t)s->count, sizeof(*plan->order));
  if (!plan->order) return weir_out_of_memory();
  return weir_sparse_order_by(s, weir_kernel_pool(ctx), by, s->rank, plan->order);
}

static bool same_group(const plan_t* plan, int64_t a, int64_t b) {
  const int64_t* x = weir_sparse_row(&plan->s, plan->order[a]);
  const int64_t* y = weir_sparse_row(&plan->s, plan->order[b]);
  for (int k = 0; k < plan->kept_count; ++k) {
    if (x[plan->kept[k]] != y[plan->kept[k]]) return false;
  }
  return true;
}

// Reduces the group that begins at |begin| into |out|; returns where the next one begins.
static int64_t reduce_group(const plan_t* plan, weir_binary_fn_t fn, int64_t begin, void* out) {
  const weir_tensor_t* values = plan->s.values;
  memcpy(out, weir_sparse_at(values, plan->order[begin]),
         weir_dtype_size(weir_tensor_type(values)));
  int64_t i = begin + 1;
  for (; i < plan->s.count && same_group(plan, begin, i); ++i)
    fn(out, weir_sparse_at(values, plan->order[i]), out, 1, WEIR_SPAN_BOTH);
  return i;
}

// ---- dense results ----

static weir_status_t* dense_shape(weir_shape_ctx_t* ctx) {
  const weir_tensor_t* shape = weir_shape_value(ctx, 2);
  const weir_tensor_t* axes = weir_shape_value(ctx, 3);
  bool is_reduced[WEIR_MAX_RANK];
  int64_t dims[WEIR_MAX_RANK];
  int rank = 0;
  if (!shape || !axes || shape->count > WEIR_MAX_RANK)
    return weir_shape_set(ctx, 0, &weir_shape_unknown);
  if (shape->count == 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "Number of dims in shape tensor must not be 0");
  weir_status_t* status = find_reduced(axes, shape->count, is_reduced);
  if (status) {  // the kernel's business
    weir_status_destroy(status);
    return weir_shape_set(ctx, 0, &weir_shape_unknown);
  }
  for (int64_t d = 0; d < shape->count; ++d) {
    int64_t size = WEIR_TENSOR_DATA(shape, int64_t)[d];
    if (size < 0) return weir_shape_set(ctx, 0, &weir_shape_unknown);
    if (!is_reduced[d]) dims[rank++] = size;
    else if (weir_attrs_bool(weir_shape_attrs(ctx), "keep_dims")) dims[rank++] = 1;
  }
  return weir_shape_set_dims(ctx, 0, rank, dims);
}

static weir_status_t* write_dense(weir_kernel_ctx_t* ctx, const plan_t* plan) {
  const reduce_state_t* state = ctx->state;
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, plan->out_rank, plan->out_dims, &out));
  weir_move_zero(weir_tensor_type(out), out->data, out->count);
  for (int64_t i = 0; i < plan->s.count;) {
    const int64_t* row = weir_sparse_row(&plan->s, plan->order[i]);
    int64_t place = 0;
    for (int k = 0; k < plan->kept_count; ++k)
      place = place * plan->s.dims[plan->kept[k]] + row[plan->kept[k]];
    if (place < 0 || place >= out->count) {
      return WEIR_STATUS(INTERNAL,
                         "Obtained a write index of %" PRId64
                         " which is outside of bounds of [0, %" PRId64 ")",
                         place, out->count);
    }
    i = reduce_group(plan, state->fn, i, weir_sparse_at(out, place));
  }
  return NULL;
}

static weir_status_t* reduce_cpu(weir_kernel_ctx_t* ctx) {
  plan_t plan = {.order = NULL};
  weir_status_t* status = make_plan(ctx, &plan);
  if (!status) status = write_dense(ctx, &plan);
  weir_free(plan.order);
  return status;
}

// ---- sparse results ----

static weir_status_t* write_sparse(weir_kernel_ctx_t* ctx, const plan_t* plan) {
  const reduce_state_t* state = ctx->state;
  weir_tensor_t* indices = NULL;
  weir_tensor_t* values = NULL;
  int64_t count = 0;
  for (int64_t i = 0; i < plan->s.count; ++i) count += i == 0 || !same_group(plan, i - 1, i);
  WEIR_TRY(weir_kernel_output(ctx, 0, 2, (const int64_t[]){count, plan->out_rank}, &indices));
  WEIR_TRY(weir_kernel_output(ctx, 1, 1, &count, &values));
  WEIR_TRY(weir_sparse_output_vector(ctx, 2, plan->out_dims, plan->out_rank));
  weir_move_zero(WEIR_DTYPE_INT64, indices->data, indices->count);
  int64_t at = 0;
  for (int64_t i = 0; i < plan->s.count; ++at) {
    int64_t* to = WEIR_TENSOR_DATA(indices, int64_t) + at * plan->out_rank;
    const int64_t* row = weir_sparse_row(&plan->s, plan->order[i]);
    for (int k = 0; k < plan->kept_count; ++k) to[plan->out_axis[k]] = row[plan->kept[k]];
    i = reduce_group(plan, state->fn, i, weir_sparse_at(values, at));
  }
  return NULL;
}

static weir_status_t* reduce_sparse_cpu(weir_kernel_ctx_t* ctx) {
  plan_t plan = {.order = NULL};
  weir_status_t* status = make_plan(ctx, &plan);
  if (!status) status = write_sparse(ctx, &plan);
  weir_free(plan.order);
  return status;
}

// ---- gradient ----

// The gradient of each value is that of the element it went into: the gradient gets the reduced
// dimensions back as 1s, and indices there become 0 by dividing by the dimension.
static weir_status_t* sum_grad(weir_grad_ctx_t* g) {
  weir_edge_t shape = cast_to(g, weir_grad_input(g, 2), WEIR_DTYPE_INT32);
  weir_edge_t rank = weir_grad_node(g, "Size", WEIR_EDGES(shape));
  weir_edge_t zero = weir_build_int32(g->builder, 0);
  weir_edge_t one = weir_build_int32(g->builder, 1);
  weir_edge_t axes = node2(g, "FloorMod", node2(g, "AddV2", weir_grad_input(g, 3), rank), rank);
  const int32_t minus_one[] = {-1};
  axes = node2(g, "Reshape", axes, weir_build_int32s(g->builder, minus_one, 1));
  weir_edge_t all = node3(g, "Range", zero, rank, one);
  weir_edge_t ones = node2(g, "Fill", node1(g, "Shape", axes), one);
  weir_edge_t kept = weir_grad_node_with(g, "DynamicStitch", WEIR_EDGES(all, axes, shape, ones),
                                         WEIR_ATTRS(weir_attr_int("N", 2)));
  weir_edge_t scale =
      node2(g, "FloorDiv", weir_grad_input(g, 2), cast_to(g, kept, WEIR_DTYPE_INT64));
  weir_edge_t dy = node2(g, "Reshape", weir_grad_dy(g, 0), kept);
  weir_edge_t places = node2(g, "FloorDiv", weir_grad_input(g, 0), scale);
  return weir_grad_set(g, 1, node2(g, "GatherNd", dy, places));
}

static weir_status_t* sparse_shape(weir_shape_ctx_t* ctx) {
  for (int i = 0; i < 3; ++i) WEIR_TRY(weir_shape_set(ctx, i, &weir_shape_unknown));
  return NULL;
}

#define REDUCE_OP(op_name, types_, outputs_, text, shape_fn, grad, init_fn, fn, constraint)       \
  {                                                                                               \
    .name = op_name, .attrs = "keep_dims: bool = false; T: " types_,                              \
    .inputs = "input_indices: int64; input_values: T; input_shape: int64; reduction_axes: int32", \
    .outputs = outputs_, .summary = text, .infer_shape = shape_fn, .build_grad = grad,            \
    .kernels = WEIR_CPU_KERNEL(.types = constraint, .compute = fn, .init = init_fn,               \
                               .state_size = sizeof(reduce_state_t))                              \
  }
#define DENSE "output: T"
#define SPARSE "output_indices: int64; output_values: T; output_shape: int64"

const weir_op_module_t weir_ops_sparse_reduce = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        REDUCE_OP("SparseReduceSum", "numbertype", DENSE, "Sums of a sparse tensor, as a dense one",
                  dense_shape, sum_grad, sum_init, reduce_cpu, SPARSE_NUMBER),
        REDUCE_OP("SparseReduceSumSparse", "numbertype", SPARSE,
                  "Sums of a sparse tensor, as a sparse one", sparse_shape, NULL, sum_init,
                  reduce_sparse_cpu, SPARSE_NUMBER),
        REDUCE_OP("SparseReduceMax", "realnumbertype", DENSE,
                  "Maxima of a sparse tensor, as a dense one", dense_shape, NULL, max_init,
                  reduce_cpu, SPARSE_REAL),
        REDUCE_OP("SparseReduceMaxSparse", "realnumbertype", SPARSE,
                  "Maxima of a sparse tensor, as a sparse one", sparse_shape, NULL, max_init,
                  reduce_sparse_cpu, SPARSE_REAL),
        {0}}};

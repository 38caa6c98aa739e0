// nccl.c — NcclAllReduce, NcclReduce, NcclBroadcast, and what TensorFlow makes of the last two:
// _NcclReduceSend and _NcclReduceRecv, _NcclBroadcastSend and _NcclBroadcastRecv. Between GPUs of
// one process, within a step; nodes meet by the name that they share.
#include "base/map.h"
#include "op/grad_ctx.h"
#include "op/shape_ctx.h"
#include "ops/collective/there.h"

// ---- nodes that meet ----

static weir_update_op_t merge_of(weir_view_t reduction) {
  if (weir_view_is(reduction, "prod")) return WEIR_UPDATE_MUL;
  if (weir_view_is(reduction, "max")) return WEIR_UPDATE_MAX;
  return weir_view_is(reduction, "min") ? WEIR_UPDATE_MIN : WEIR_UPDATE_ADD;
}

static weir_status_t* named_init(const weir_kernel_init_t* init, weir_collective_t* what) {
  const weir_attrs_t attrs = init->node->attrs;
  int64_t count = weir_attrs_int(attrs, "num_devices");
  if (count < 1 || count > INT32_MAX)
    return WEIR_STATUS(INVALID_ARGUMENT, "num_devices must be a positive int32, got %lld",
                       (long long)count);
  weir_view_t name = weir_attrs_string(attrs, "shared_name");
  *what = (weir_collective_t){.kind = WEIR_COLLECTIVE_REDUCE,
                              .space = WEIR_COLLECTIVE_SPACE_NAME,
                              .way = WEIR_COLLECTIVE_BY_NCCL,
                              .dtype = weir_attrs_type(attrs, "T"),
                              .group_size = (int)count,
                              .rank = -1,
                              .id = weir_hash_bytes(name.data, name.size, 0)};
  if (weir_attrs_find(attrs, "reduction"))
    what->merge = merge_of(weir_attrs_string(attrs, "reduction"));
  return NULL;
}

static weir_status_t* all_reduce_init(const weir_kernel_init_t* init, void* state) {
  return named_init(init, state);
}

static weir_status_t* reduce_send_init(const weir_kernel_init_t* init, void* state) {
  weir_collective_t* what = state;
  WEIR_TRY(named_init(init, what));
  what->is_for_one = true;
  return NULL;
}

static weir_status_t* reduce_recv_init(const weir_kernel_init_t* init, void* state) {
  weir_collective_t* what = state;
  WEIR_TRY(reduce_send_init(init, what));
  what->is_source = true;
  return NULL;
}

static weir_status_t* broadcast_recv_init(const weir_kernel_init_t* init, void* state) {
  weir_collective_t* what = state;
  WEIR_TRY(named_init(init, what));
  what->kind = WEIR_COLLECTIVE_BROADCAST;
  return NULL;
}

static weir_status_t* broadcast_send_init(const weir_kernel_init_t* init, void* state) {
  weir_collective_t* what = state;
  WEIR_TRY(broadcast_recv_init(init, what));
  what->is_source = true;
  return NULL;
}

// The same name is another meeting's in another step, and in another session.
static weir_collective_t wish_of(const weir_kernel_ctx_t* ctx) {
  weir_collective_t what = *(const weir_collective_t*)ctx->state;
  const uint64_t parts[] = {what.id, ctx->step->scope, (uint64_t)ctx->step->id};
  what.id = weir_hash_bytes((const char*)parts, sizeof(parts), 0);
  return what;
}

static void meet_gpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  weir_collective_t what = wish_of(ctx);
  weir_member_start(ctx, &what, ctx->inputs[0].tensor, NULL, done);
}

static weir_status_t* set_nothing(weir_kernel_ctx_t* ctx, const weir_collective_t* what) {
  (void)ctx, (void)what;
  return NULL;
}

static void send_gpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  weir_collective_t what = wish_of(ctx);
  weir_member_start(ctx, &what, ctx->inputs[0].tensor, set_nothing, done);
}

static weir_status_t* read_shape(const weir_kernel_ctx_t* ctx, int64_t dims[WEIR_MAX_RANK],
                                 weir_collective_t* what) {
  int64_t count = 0;
  if (weir_kernel_input(ctx, 0)->rank != 1)
    return WEIR_STATUS(INVALID_ARGUMENT, "the shape to receive must be a vector");
  WEIR_TRY(weir_kernel_ints(ctx, 0, dims, WEIR_MAX_RANK, &what->dim_count));
  WEIR_TRY(weir_shape_check_sizes(what->dim_count, dims));
  what->dims = dims;
  return weir_shape_count(what->dtype, what->dim_count, dims, &count);
}

static void receive_gpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  weir_collective_t what = wish_of(ctx);
  int64_t dims[WEIR_MAX_RANK];
  weir_status_t* status = read_shape(ctx, dims, &what);
  if (status) weir_done_call(done, status);
  else weir_member_start(ctx, &what, NULL, NULL, done);
}

static weir_status_t* received_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* shape = NULL;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 1, NULL));
  WEIR_TRY(weir_shape_from_value(ctx, 0, &shape));
  return weir_shape_set(ctx, 0, shape);
}

// ---- NcclReduce: one node, whose inputs stay on their GPUs ----

static weir_status_t* reduce_init(const weir_kernel_init_t* init, void* state) {
  weir_nccl_merge_t* merge = state;
  weir_collective_t what = {.merge = merge_of(weir_attrs_string(init->node->attrs, "reduction"))};
  *merge = weir_collective_merge_there(&what);
  return NULL;
}

static weir_status_t* check_shapes(const weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* first = weir_kernel_input(ctx, 0);
  char x[WEIR_SHAPE_TEXT_SIZE], y[WEIR_SHAPE_TEXT_SIZE];
  for (int i = 1; i < ctx->input_count; ++i) {
    const weir_tensor_t* other = weir_kernel_input(ctx, i);
    if (weir_tensor_same_shape(first, other)) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "inputs 0 and %d have different shapes, %s and %s", i,
                       weir_tensor_shape_text(first, x), weir_tensor_shape_text(other, y));
  }
  return NULL;
}

// In the order of devices, as those that meet have it: so they share a communicator.
static void insert_rank(weir_nccl_rank_t* ranks, int count, weir_nccl_rank_t rank) {
  int at = count;
  for (; at > 0 && ranks[at - 1].device->ordinal > rank.device->ordinal; --at)
    ranks[at] = ranks[at - 1];
  ranks[at] = rank;
}

static weir_status_t* reduce_all(weir_kernel_ctx_t* ctx, weir_nccl_rank_t* ranks,
                                 weir_tensor_t* out) {
  weir_nccl_call_t call = {.kind = WEIR_NCCL_REDUCE,
                           .merge = *(const weir_nccl_merge_t*)ctx->state,
                           .dtype = weir_tensor_type(out),
                           .count = out->count,
                           .root = -1,
                           .rank_count = ctx->input_count,
                           .ranks = ranks};
  for (int i = 0; i < ctx->input_count; ++i) {
    const weir_tensor_t* x = weir_kernel_input(ctx, i);
    weir_nccl_rank_t rank = {.device = weir_tensor_space(x)->device, .from = x->data};
    if (rank.device == ctx->device) {
      rank.to = out->data;
      rank.span = weir_span_current();
    }
    insert_rank(ranks, i, rank);
  }
  for (int i = 0; i < ctx->input_count; ++i) {
    if (ranks[i].device == ctx->device) call.root = i;
  }
  if (call.root < 0)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "No input tensor uses the same device as the NcclReduce op");
  return out->count ? weir_nccl_run(&call) : NULL;
}

static weir_status_t* reduce_gpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* first = weir_kernel_input(ctx, 0);
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_nccl_check());
  WEIR_TRY(check_shapes(ctx));
  WEIR_TRY(weir_kernel_output(ctx, 0, first->rank, first->dims, &out));
  weir_nccl_rank_t* ranks = weir_calloc((size_t)ctx->input_count, sizeof(*ranks));
  if (!ranks) return weir_out_of_memory();
  weir_status_t* status = reduce_all(ctx, ranks, out);
  weir_free(ranks);
  return status;
}

// ---- NcclBroadcast: readers on other GPUs copy it, each GPU once ----

static weir_status_t* broadcast_gpu(weir_kernel_ctx_t* ctx) {
  weir_kernel_pass(ctx, 0, 0);
  return NULL;
}

// ---- gradients ----

static weir_status_t* check_sum(const weir_grad_ctx_t* g) {
  if (weir_view_is(weir_attrs_string(weir_grad_attrs(g), "reduction"), "sum")) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "No gradient defined for %s except sum.", g->node->op_name);
}

static weir_status_t* all_reduce_grad(weir_grad_ctx_t* g) {
  const weir_attrs_t attrs = weir_grad_attrs(g);
  WEIR_TRY(check_sum(g));
  weir_strbuf_t name = {0};
  weir_strbuf_printf(&name, "%.*s_grad", WEIR_VIEW_ARG(weir_attrs_string(attrs, "shared_name")));
  weir_status_t* status = weir_strbuf_finish(&name);
  if (!status) {
    weir_edge_t dx = weir_grad_node_with(
        g, "NcclAllReduce", WEIR_EDGES(weir_grad_dy(g, 0)),
        WEIR_ATTRS(weir_attr_string("reduction", "sum"), weir_attr_string("shared_name", name.data),
                   weir_attr_int("num_devices", weir_attrs_int(attrs, "num_devices"))));
    status = weir_grad_set(g, 0, dx);
  }
  weir_strbuf_free(&name);
  return status;
}

static weir_status_t* reduce_grad(weir_grad_ctx_t* g) {
  WEIR_TRY(check_sum(g));
  weir_edge_t dy = weir_grad_dy(g, 0);
  const weir_shape_t* shape = weir_grad_shape(g, dy);
  weir_edge_t dx = weir_grad_node_with(g, "NcclBroadcast", WEIR_EDGES(dy),
                                       WEIR_ATTRS(weir_attr_shape("shape", shape)));
  for (int i = 0; i < g->node->input_count; ++i) WEIR_TRY(weir_grad_set(g, i, dx));
  return NULL;
}

// What flows back from readers on other GPUs has been added up: TensorFlow has NcclReduce do that.
static weir_status_t* broadcast_grad(weir_grad_ctx_t* g) {
  return weir_grad_set(g, 0, weir_grad_dy(g, 0));
}

// ---- definitions ----

#define TYPES "T: {half, float, float64, int32, int64}; "
#define REDUCTION "reduction: {'min', 'max', 'prod', 'sum'}; "
#define NAMED "num_devices: int; shared_name: string"
#define FLAGS (WEIR_OP_STATEFUL | WEIR_OP_UNBOUNDED)
#define GPU_KERNEL(...) \
  ((const weir_kernel_def_t[]){{WEIR_DEVICE_GPU, .is_only = true, __VA_ARGS__}})
#define MEETS(fn, init_fn, ...)                                                                 \
  GPU_KERNEL(.compute_async = (fn), .init = (init_fn), .state_size = sizeof(weir_collective_t), \
             __VA_ARGS__)

const weir_op_module_t weir_ops_collective_nccl = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "NcclAllReduce",
         .attrs = REDUCTION TYPES NAMED,
         .inputs = "input: T",
         .outputs = "data: T",
         .flags = FLAGS,
         .summary = "The elements of all nodes that share a name, each on a GPU, merged",
         .infer_shape = weir_shape_fn_unchanged,
         .build_grad = all_reduce_grad,
         .kernels = MEETS(meet_gpu, all_reduce_init)},
        {.name = "_NcclReduceSend",
         .attrs = REDUCTION TYPES NAMED,
         .inputs = "input: T",
         .flags = FLAGS,
         .summary = "Gives elements to be merged to the _NcclReduceRecv that shares its name",
         .infer_shape = weir_shape_fn_none,
         .kernels = MEETS(send_gpu, reduce_send_init)},
        {.name = "_NcclReduceRecv",
         .attrs = REDUCTION TYPES NAMED,
         .inputs = "input: T",
         .outputs = "data: T",
         .flags = FLAGS,
         .summary = "Its elements merged with those of all _NcclReduceSend that share its name",
         .infer_shape = weir_shape_fn_unchanged,
         .kernels = MEETS(meet_gpu, reduce_recv_init)},
        {.name = "_NcclBroadcastSend",
         .attrs = TYPES NAMED,
         .inputs = "input: T",
         .flags = FLAGS,
         .summary = "Gives a tensor to all _NcclBroadcastRecv that share its name",
         .infer_shape = weir_shape_fn_none,
         .kernels = MEETS(send_gpu, broadcast_send_init)},
        {.name = "_NcclBroadcastRecv",
         .attrs = TYPES NAMED,
         .inputs = "shape: int32",
         .outputs = "output: T",
         .flags = FLAGS,
         .summary = "The tensor that the _NcclBroadcastSend of its name gives",
         .infer_shape = received_shape,
         .kernels = MEETS(receive_gpu, broadcast_recv_init, .host_inputs = "shape")},
        {.name = "NcclReduce",
         .attrs = REDUCTION TYPES "num_devices: int >= 1",
         .inputs = "input: num_devices * T",
         .outputs = "data: T",
         .flags = FLAGS,
         .summary = "The elements of tensors on several GPUs, one of them the node's, merged",
         .infer_shape = weir_shape_fn_unchanged,
         .build_grad = reduce_grad,
         .kernels = GPU_KERNEL(.compute = reduce_gpu, .init = reduce_init,
                               .state_size = sizeof(weir_nccl_merge_t), .takes_peers = true)},
        {.name = "NcclBroadcast",
         .attrs = TYPES "shape: shape",
         .inputs = "input: T",
         .outputs = "output: T",
         .flags = FLAGS,
         .summary = "A tensor of a GPU, for readers on any",
         .infer_shape = weir_shape_fn_unchanged,
         .build_grad = broadcast_grad,
         .kernels = GPU_KERNEL(.compute = broadcast_gpu)},
        {0}}};

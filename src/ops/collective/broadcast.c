// broadcast.c — CollectiveBcastSend and CollectiveBcastRecv, and both as V2: one member's tensor
// for all.
#include "op/shape_ctx.h"
#include "ops/collective/member.h"

static weir_status_t* declared_init(const weir_kernel_init_t* init, weir_collective_t* what) {
  const weir_shape_t* shape = weir_attrs_shape(init->node->attrs, "shape");
  WEIR_TRY(weir_member_init(init, WEIR_COLLECTIVE_BROADCAST, what));
  if (!weir_shape_is_full(shape)) {
    weir_strbuf_t text = {0};
    weir_shape_append(shape, &text);
    WEIR_TRY(weir_strbuf_finish(&text));
    weir_status_t* status =
        WEIR_STATUS(INVALID_ARGUMENT, "Shape %s is not fully defined", text.data);
    weir_strbuf_free(&text);
    return status;
  }
  what->dim_count = shape->rank;
  what->dims = shape->dims;
  return NULL;
}

static weir_status_t* send_init(const weir_kernel_init_t* init, void* state) {
  weir_collective_t* what = state;
  WEIR_TRY(declared_init(init, what));
  what->is_source = true;
  return NULL;
}

static weir_status_t* recv_init(const weir_kernel_init_t* init, void* state) {
  return declared_init(init, state);
}

static weir_status_t* keyed_send_init(const weir_kernel_init_t* init, void* state) {
  weir_collective_t* what = state;
  WEIR_TRY(weir_member_init(init, WEIR_COLLECTIVE_BROADCAST, what));
  what->is_source = true;
  return NULL;
}

static weir_status_t* keyed_recv_init(const weir_kernel_init_t* init, void* state) {
  return weir_member_init(init, WEIR_COLLECTIVE_BROADCAST, state);
}

static void recv_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  weir_collective_t what = *(const weir_collective_t*)ctx->state;
  weir_member_start(ctx, &what, NULL, NULL, done);
}

// Reads the shape to be received from the last input.
static weir_status_t* read_shape(const weir_kernel_ctx_t* ctx, int64_t dims[WEIR_MAX_RANK],
                                 weir_collective_t* what) {
  int64_t count = 0;
  if (weir_kernel_input(ctx, 3)->rank != 1)
    return WEIR_STATUS(INVALID_ARGUMENT, "the shape to receive must be a vector");
  WEIR_TRY(weir_kernel_ints(ctx, 3, dims, WEIR_MAX_RANK, &what->dim_count));
  for (int i = 0; i < what->dim_count; ++i) {
    if (dims[i] < 0)
      return WEIR_STATUS(INVALID_ARGUMENT, "Dimension %lld must be >= 0", (long long)dims[i]);
  }
  what->dims = dims;
  return weir_shape_count(what->dtype, what->dim_count, dims, &count);
}

static void keyed_recv_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  weir_collective_t what = *(const weir_collective_t*)ctx->state;
  int64_t dims[WEIR_MAX_RANK];
  weir_status_t* status = weir_member_keys(ctx, 0, &what);
  if (!status) status = read_shape(ctx, dims, &what);
  if (status) weir_done_call(done, status);
  else weir_member_start(ctx, &what, NULL, NULL, done);
}

static weir_status_t* declared_shape(weir_shape_ctx_t* ctx) {
  return weir_shape_set(ctx, 0, weir_attrs_shape(weir_shape_attrs(ctx), "shape"));
}

static weir_status_t* received_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* shape = NULL;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 3), 1, NULL));
  WEIR_TRY(weir_shape_from_value(ctx, 3, &shape));
  return weir_shape_set(ctx, 0, shape);
}

#define BROADCAST(op_name, op_attrs, op_inputs, text, shape_fn, init_fn, cpu, host)               \
  {                                                                                               \
    .name = (op_name),                                                                            \
    .attrs = "T: {bool, float, half, double, int32, int64}; " op_attrs                            \
             "communication_hint: string = 'auto'; timeout_seconds: float = 0",                   \
    .inputs = (op_inputs), .outputs = "data: T",                                                  \
    .flags = WEIR_OP_STATEFUL | WEIR_OP_ALLOW_DISTRIBUTED | WEIR_OP_UNBOUNDED, .summary = (text), \
    .infer_shape = (shape_fn),                                                                    \
    .kernels =                                                                                    \
        WEIR_MEMBER_KERNELS(.compute_async = (cpu), .init = (init_fn), .host_inputs = (host))     \
  }
#define KEYS "group_size: int; group_key: int; instance_key: int; shape: shape; "
#define KEY_INPUTS "group_size: int32; group_key: int32; instance_key: int32"
#define SENDS "Gives a tensor to all members of a group"
#define RECEIVES "The tensor that one member of a group gives"

const weir_op_module_t weir_ops_collective_broadcast = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        BROADCAST("CollectiveBcastSend", KEYS, "input: T", SENDS, declared_shape, send_init,
                  weir_member_cpu, NULL),
        BROADCAST("CollectiveBcastRecv", KEYS, NULL, RECEIVES, declared_shape, recv_init, recv_cpu,
                  NULL),
        BROADCAST("CollectiveBcastSendV2", "", "input: T; " KEY_INPUTS, SENDS,
                  weir_shape_fn_unchanged, keyed_send_init, weir_member_keyed_cpu,
                  WEIR_MEMBER_KEYS),
        BROADCAST("CollectiveBcastRecvV2", "Tshape: {int32, int64} = DT_INT32; ",
                  KEY_INPUTS "; shape: Tshape", RECEIVES, received_shape, keyed_recv_init,
                  keyed_recv_cpu, WEIR_MEMBER_KEYS ", shape"),
        {0}}};

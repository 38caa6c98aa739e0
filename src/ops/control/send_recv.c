// send_recv.c — Send, Recv, their internal names and the host kind: tensors that cross from one
// device to another by the step's rendezvous.
#include <stdio.h>

#include "op/kernel.h"
#include "op/shape_ctx.h"

// The key up to the frame: "src_device;incarnation;dst_device;tensor_name;", then "0:0", ready for
// use outside of loops.
typedef struct transfer_state_t {
  char* key;
  size_t prefix_size;
  size_t key_size;
} transfer_state_t;

static weir_status_t* transfer_init(const weir_kernel_init_t* init, void* state) {
  transfer_state_t* transfer = state;
  weir_attrs_t attrs = init->node->attrs;
  weir_view_t from = weir_attrs_string(attrs, "send_device");
  weir_view_t to = weir_attrs_string(attrs, "recv_device");
  weir_view_t name = weir_attrs_string(attrs, "tensor_name");
  unsigned long long incarnation =
      (unsigned long long)weir_attrs_int(attrs, "send_device_incarnation");
  weir_strbuf_t key = {0};
  weir_strbuf_printf(&key, "%.*s;%016llx;%.*s;%.*s;", WEIR_VIEW_ARG(from), incarnation,
                     WEIR_VIEW_ARG(to), WEIR_VIEW_ARG(name));
  transfer->prefix_size = key.size;
  weir_strbuf_puts(&key, "0:0");
  weir_status_t* status = weir_strbuf_finish(&key);
  if (status) {
    weir_strbuf_free(&key);
    return status;
  }
  transfer->key = key.data;
  transfer->key_size = key.size;
  return NULL;
}

static void transfer_deinit(void* state) { weir_free(((transfer_state_t*)state)->key); }

static bool is_in_loop(const weir_kernel_ctx_t* ctx) {
  return ctx->frame_id != 0 || ctx->iteration != 0;
}

// Bytes a key takes, the terminator included.
static size_t key_capacity(const transfer_state_t* transfer) { return transfer->prefix_size + 48; }

// Writes the key of this frame and iteration to |buffer|, of key_capacity.
static weir_view_t loop_key(const weir_kernel_ctx_t* ctx, char* buffer) {
  const transfer_state_t* transfer = ctx->state;
  memcpy(buffer, transfer->key, transfer->prefix_size);
  int size = snprintf(buffer + transfer->prefix_size, 48, "%llu:%lld",
                      (unsigned long long)ctx->frame_id, (long long)ctx->iteration);
  return weir_view(buffer, transfer->prefix_size + (size_t)size);
}

static weir_status_t* check_rendezvous(const weir_kernel_ctx_t* ctx) {
  if (ctx->step->rendezvous) return NULL;
  return WEIR_STATUS(INTERNAL, "Op kernel context needs to provide a rendezvous (node '%s')",
                     ctx->node->name);
}

// ---- send ----

static weir_status_t* send_cpu(weir_kernel_ctx_t* ctx) {
  const transfer_state_t* transfer = ctx->state;
  weir_rendezvous_t* rendezvous = ctx->step->rendezvous;
  weir_view_t key = weir_view(transfer->key, transfer->key_size);
  char* buffer = NULL;
  WEIR_TRY(check_rendezvous(ctx));
  if (is_in_loop(ctx)) {
    buffer = weir_malloc(key_capacity(transfer));
    if (!buffer) return weir_out_of_memory();
    key = loop_key(ctx, buffer);
  }
  weir_tensor_t* tensor = ctx->is_input_dead ? NULL : ctx->inputs[0].tensor;
  weir_status_t* status = rendezvous->vtable->send(rendezvous, key, tensor, tensor == NULL);
  weir_free(buffer);
  return status;
}

// ---- receive ----

typedef struct recv_t {
  weir_kernel_ctx_t* ctx;
  weir_done_t done;
  char key[];
} recv_t;

static void recv_done(void* arg, weir_status_t* take_status, weir_tensor_t* take_tensor,
                      bool is_dead) {
  recv_t* recv = arg;
  weir_kernel_ctx_t* ctx = recv->ctx;
  weir_done_t done = recv->done;
  weir_free(recv);
  if (!take_status && !is_dead && take_tensor &&
      take_tensor->dtype != weir_dtype_base(ctx->node->output_types[0])) {
    take_status = WEIR_STATUS(INVALID_ARGUMENT, "Recv of type %s got a tensor of type %s",
                              weir_dtype_name(ctx->node->output_types[0]),
                              weir_dtype_name(weir_tensor_type(take_tensor)));
  }
  if (take_status || is_dead) {
    weir_tensor_release(take_tensor);  // a dead output stays empty
  } else {
    weir_kernel_set(ctx, 0, take_tensor);
  }
  weir_done_call(done, take_status);
}

static void recv_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  const transfer_state_t* transfer = ctx->state;
  bool has_own_key = is_in_loop(ctx);
  weir_status_t* status = check_rendezvous(ctx);
  recv_t* recv =
      status ? NULL : weir_malloc(sizeof(*recv) + (has_own_key ? key_capacity(transfer) : 0));
  if (!recv) {
    weir_done_call(done, status ? status : weir_out_of_memory());
    return;
  }
  recv->ctx = ctx;
  recv->done = done;
  weir_view_t key =
      has_own_key ? loop_key(ctx, recv->key) : weir_view(transfer->key, transfer->key_size);
  weir_rendezvous_t* rendezvous = ctx->step->rendezvous;
  rendezvous->vtable->recv_async(rendezvous, key, ctx->step->cancel, recv_done, recv);
}

#define TRANSFER_STATE \
  .state_size = sizeof(transfer_state_t), .init = transfer_init, .deinit = transfer_deinit
#define TRANSFER_ATTRS                                                                            \
  "tensor_name: string; send_device: string; send_device_incarnation: int; recv_device: string; " \
  "client_terminated: bool = false"
// What is sent is in host memory, on every device: who receives it may be in another task.
#define SEND_OP(op_name)                                                               \
  {                                                                                    \
    .name = op_name, .attrs = "T: type; " TRANSFER_ATTRS, .inputs = "tensor: T",       \
    .flags = WEIR_OP_STATEFUL | WEIR_OP_CHEAP, .role = WEIR_ROLE_SEND,                 \
    .summary = "Sends a tensor to another device.", .infer_shape = weir_shape_fn_none, \
    .kernels = (const weir_kernel_def_t[]) {                                           \
      {WEIR_DEVICE_CPU, .is_portable = true, .compute = send_cpu, TRANSFER_STATE,      \
       .host_inputs = "tensor"},                                                       \
      {                                                                                \
        0                                                                              \
      }                                                                                \
    }                                                                                  \
  }
#define RECV_OP(op_name)                                                                           \
  {                                                                                                \
    .name = op_name, .attrs = "tensor_type: type; " TRANSFER_ATTRS,                                \
    .outputs = "tensor: tensor_type",                                                              \
    .flags = WEIR_OP_STATEFUL | WEIR_OP_CHEAP | WEIR_OP_ALLOW_DISTRIBUTED, .role = WEIR_ROLE_RECV, \
    .summary = "Receives a tensor from another device.", .infer_shape = weir_shape_fn_unknown,     \
    .kernels = (const weir_kernel_def_t[]) {                                                       \
      {WEIR_DEVICE_CPU, .is_portable = true, .compute_async = recv_cpu, TRANSFER_STATE,            \
       .host_outputs = "tensor"},                                                                  \
      {                                                                                            \
        0                                                                                          \
      }                                                                                            \
    }                                                                                              \
  }

const weir_op_module_t weir_ops_control_send_recv = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){SEND_OP("Send"),
                                   RECV_OP("Recv"),
                                   SEND_OP("_Send"),
                                   RECV_OP("_Recv"),
                                   SEND_OP("_HostSend"),
                                   RECV_OP("_HostRecv"),
                                   {0}}};

// queue_access.c — Enqueue, dequeue, close, size of queues, by handle or by Ref(string).
#include "op/shape_ctx.h"
#include "ops/queue/queue_resource.h"

static weir_queue_t* find_queue(weir_kernel_ctx_t* ctx, weir_done_t done) {
  weir_resource_t* resource = NULL;
  weir_status_t* status = weir_shared_handle_resource(ctx, 0, &weir_queue_type, &resource);
  if (!status) return (weir_queue_t*)resource;
  weir_done_call(done, status);
  return NULL;
}

static void enqueue(weir_kernel_ctx_t* ctx, weir_done_t done, bool is_many) {
  weir_queue_t* queue = find_queue(ctx, done);
  if (!queue) return;
  weir_queue_enqueue(queue, ctx, 1, is_many, done);
  weir_resource_release((weir_resource_t*)queue);
}

static void enqueue_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) { enqueue(ctx, done, false); }
static void enqueue_many_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) { enqueue(ctx, done, true); }

static void dequeue_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  weir_queue_t* queue = find_queue(ctx, done);
  if (!queue) return;
  weir_queue_dequeue(queue, ctx, -1, false, done);
  weir_resource_release((weir_resource_t*)queue);
}

static void dequeue_batch(weir_kernel_ctx_t* ctx, weir_done_t done, bool is_up_to) {
  int64_t count = 0;
  weir_status_t* status = weir_kernel_int(ctx, 1, &count);
  if (!status && count < 0) {
    status = WEIR_STATUS(INVALID_ARGUMENT, "%s requested %lld < 0 elements",
                         is_up_to ? "DequeueUpToOp" : "DequeueManyOp", (long long)count);
  }
  if (status) {
    weir_done_call(done, status);
    return;
  }
  weir_queue_t* queue = find_queue(ctx, done);
  if (!queue) return;
  weir_queue_dequeue(queue, ctx, count, is_up_to, done);
  weir_resource_release((weir_resource_t*)queue);
}

static void dequeue_many_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  dequeue_batch(ctx, done, false);
}
static void dequeue_up_to_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  dequeue_batch(ctx, done, true);
}

static void close_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  bool cancels = weir_attrs_bool(weir_kernel_attrs(ctx), "cancel_pending_enqueues");
  weir_queue_t* queue = find_queue(ctx, done);
  if (!queue) return;
  weir_queue_close(queue, ctx, cancels, done);
  weir_resource_release((weir_resource_t*)queue);
}

static weir_status_t* size_cpu(weir_kernel_ctx_t* ctx) {
  weir_resource_t* queue = NULL;
  WEIR_TRY(weir_shared_handle_resource(ctx, 0, &weir_queue_type, &queue));
  int64_t size = weir_queue_size((weir_queue_t*)queue);
  weir_resource_release(queue);
  return weir_kernel_output_int(ctx, 0, size);
}

static weir_status_t* is_closed_cpu(weir_kernel_ctx_t* ctx) {
  weir_resource_t* queue = NULL;
  WEIR_TRY(weir_shared_handle_resource(ctx, 0, &weir_queue_type, &queue));
  bool is_closed = weir_queue_is_closed((weir_queue_t*)queue);
  weir_resource_release(queue);
  return weir_kernel_output_bool(ctx, 0, is_closed);
}

// ---- shapes ----
static weir_status_t* dequeue_shape(weir_shape_ctx_t* ctx) {
  const weir_handle_info_t* info = ctx->input_handles[0];
  if (ctx->node->output_count != 1 || !info || !info->shape) return NULL;
  return weir_shape_set(ctx, 0, info->shape);
}

static weir_status_t* batch_shape(weir_shape_ctx_t* ctx, bool is_up_to) {
  const weir_handle_info_t* info = ctx->input_handles[0];
  const weir_tensor_t* count = weir_shape_value(ctx, 1);
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 0, NULL));
  int64_t rows = !is_up_to && count ? weir_tensor_int_at(count, 0) : -1;
  if (count && weir_tensor_int_at(count, 0) < 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Input 'n' must be non-negative, but is %lld",
                       (long long)weir_tensor_int_at(count, 0));
  }
  if (ctx->node->output_count != 1 || !info || !info->shape || info->shape->rank < 0) return NULL;
  const weir_shape_t* first = weir_shape_make(ctx->arena, 1, &rows);
  return first ? weir_shape_set(ctx, 0, weir_shape_concat(ctx, first, info->shape))
               : weir_out_of_memory();
}

static weir_status_t* dequeue_many_shape(weir_shape_ctx_t* ctx) { return batch_shape(ctx, false); }
static weir_status_t* dequeue_up_to_shape(weir_shape_ctx_t* ctx) { return batch_shape(ctx, true); }

#define ENQUEUE(op, text, in, op_flags, fn)                                                     \
  {                                                                                             \
    .name = op, .summary = text, .attrs = "Tcomponents: list(type) >= 1; timeout_ms: int = -1", \
    .inputs = "handle: " in "; components: Tcomponents", .flags = op_flags,                     \
    .infer_shape = weir_shape_fn_none, .kernels = (const weir_kernel_def_t[]) {                 \
      {WEIR_DEVICE_CPU, .compute_async = fn, .host_inputs = "handle"}, { 0 }                    \
    }                                                                                           \
  }
#define DEQUEUE(op, text, ins, hosts, op_flags, fn, shape_fn)                             \
  {                                                                                       \
    .name = op, .summary = text,                                                          \
    .attrs = "component_types: list(type) >= 1; timeout_ms: int = -1", .inputs = ins,     \
    .outputs = "components: component_types", .flags = op_flags, .infer_shape = shape_fn, \
    .kernels = (const weir_kernel_def_t[]) {                                              \
      {WEIR_DEVICE_CPU, .compute_async = fn, .host_inputs = hosts}, { 0 }                 \
    }                                                                                     \
  }
#define CLOSE(op, text, in, op_flags)                                               \
  {                                                                                 \
    .name = op, .summary = text, .attrs = "cancel_pending_enqueues: bool = false",  \
    .inputs = "handle: " in, .flags = op_flags, .infer_shape = weir_shape_fn_none,  \
    .kernels = (const weir_kernel_def_t[]) {                                        \
      {WEIR_DEVICE_CPU, .compute_async = close_cpu, .host_inputs = "handle"}, { 0 } \
    }                                                                               \
  }
#define QUERY(op, text, in, out, op_flags, fn)                                \
  {                                                                           \
    .name = op, .summary = text, .inputs = "handle: " in, .outputs = out,     \
    .flags = (op_flags) | WEIR_OP_CHEAP, .infer_shape = weir_shape_fn_scalar, \
    .kernels = (const weir_kernel_def_t[]) {                                  \
      {WEIR_DEVICE_CPU, .compute = fn, .host_inputs = "handle"}, { 0 }        \
    }                                                                         \
  }

const weir_op_module_t weir_ops_queue_queue_access = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        ENQUEUE("QueueEnqueue", "Puts a tuple into a queue, waiting for room", "Ref(string)", 0,
                enqueue_cpu),
        ENQUEUE("QueueEnqueueV2", "Puts a tuple into a queue, waiting for room", "resource",
                WEIR_OP_STATEFUL, enqueue_cpu),
        ENQUEUE("QueueEnqueueMany", "Puts the rows of tensors into a queue, waiting for room",
                "Ref(string)", 0, enqueue_many_cpu),
        ENQUEUE("QueueEnqueueManyV2", "Puts the rows of tensors into a queue, waiting for room",
                "resource", WEIR_OP_STATEFUL, enqueue_many_cpu),
        DEQUEUE("QueueDequeue", "Takes a tuple out of a queue, waiting for one",
                "handle: Ref(string)", "handle", 0, dequeue_cpu, weir_shape_fn_unknown),
        DEQUEUE("QueueDequeueV2", "Takes a tuple out of a queue, waiting for one",
                "handle: resource", "handle", WEIR_OP_STATEFUL, dequeue_cpu, dequeue_shape),
        DEQUEUE(
            "QueueDequeueMany", "Takes n tuples out of a queue as rows, waiting for all of them",
            "handle: Ref(string); n: int32", "handle, n", 0, dequeue_many_cpu, dequeue_many_shape),
        DEQUEUE("QueueDequeueManyV2",
                "Takes n tuples out of a queue as rows, waiting for all of them",
                "handle: resource; n: int32", "handle, n", WEIR_OP_STATEFUL, dequeue_many_cpu,
                dequeue_many_shape),
        DEQUEUE("QueueDequeueUpTo",
                "Takes n tuples out of a queue as rows; fewer only once it is closed",
                "handle: Ref(string); n: int32", "handle, n", 0, dequeue_up_to_cpu,
                dequeue_up_to_shape),
        DEQUEUE("QueueDequeueUpToV2",
                "Takes n tuples out of a queue as rows; fewer only once it is closed",
                "handle: resource; n: int32", "handle, n", WEIR_OP_STATEFUL, dequeue_up_to_cpu,
                dequeue_up_to_shape),
        CLOSE("QueueClose", "Ends enqueuing; what is in the queue can still be taken",
              "Ref(string)", 0),
        CLOSE("QueueCloseV2", "Ends enqueuing; what is in the queue can still be taken", "resource",
              WEIR_OP_STATEFUL),
        QUERY("QueueSize", "The number of tuples in a queue", "Ref(string)", "size: int32", 0,
              size_cpu),
        QUERY("QueueSizeV2", "The number of tuples in a queue", "resource", "size: int32",
              WEIR_OP_STATEFUL, size_cpu),
        QUERY("QueueIsClosed", "Whether a queue is closed", "Ref(string)", "is_closed: bool", 0,
              is_closed_cpu),
        QUERY("QueueIsClosedV2", "Whether a queue is closed", "resource", "is_closed: bool",
              WEIR_OP_STATEFUL, is_closed_cpu),
        {0}}};

// communicator.c — CollectiveInitializeCommunicator, CollectiveReduceV3, CollectiveAllToAllV3: a
// group that is a resource, whose members have ranks. Its calls are counted: the n-th one of a
// member meets the n-th ones of the others.
#include <stdio.h>

#include "op/shape_ctx.h"
#include "ops/collective/member.h"

typedef struct communicator_t {
  weir_resource_t base;
  int group_key, group_size, rank;
  atomic_int next_call;
} communicator_t;

static void communicator_destroy(weir_resource_t* resource) { weir_free(resource); }

static const weir_resource_type_t communicator_type = {
    .name = "N10tensorflow23CollectiveGroupResourceE", .destroy = communicator_destroy};

static void release_communicator(void* object) { weir_resource_release(object); }

// ---- making one ----

static weir_status_t* init_init(const weir_kernel_init_t* init, void* state) {
  weir_collective_t* what = state;
  WEIR_TRY(weir_member_init(init, WEIR_COLLECTIVE_GROUP, what));
  what->space = WEIR_COLLECTIVE_SPACE_GROUP;
  return NULL;
}

static weir_status_t* read_scalar(const weir_kernel_ctx_t* ctx, int i, const char* name,
                                  int* out_value) {
  const weir_tensor_t* tensor = weir_kernel_input(ctx, i);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (tensor->rank == 0) return weir_member_scalar(ctx, i, name, out_value);
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Unexpected dimensions on input %s. It shoulbe a scalar, got tensor with "
                     "shape %s",
                     name, weir_tensor_shape_text(tensor, text));
}

static weir_status_t* read_group(const weir_kernel_ctx_t* ctx, weir_collective_t* what) {
  WEIR_TRY(read_scalar(ctx, 0, "group_key", &what->group_key));
  WEIR_TRY(read_scalar(ctx, 1, "rank", &what->rank));
  WEIR_TRY(read_scalar(ctx, 2, "group_size", &what->group_size));
  if (what->group_size <= 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "group_size must be positive integer but got %d",
                       what->group_size);
  }
  if (what->rank < 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "rank must be non-negative integer but got %d",
                       what->rank);
  if (what->rank < what->group_size) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "rank must be less than group size but got %d >= %d",
                     what->rank, what->group_size);
}

static weir_status_t* put_communicator(weir_kernel_ctx_t* ctx, const weir_collective_t* what) {
  weir_handle_t* handle = NULL;
  weir_tensor_t* out = NULL;
  char name[128];
  communicator_t* made = weir_calloc(1, sizeof(*made));
  if (!made) return weir_out_of_memory();
  weir_resource_init(&made->base, &communicator_type);
  made->group_key = what->group_key;
  made->group_size = what->group_size;
  made->rank = what->rank;
  atomic_init(&made->next_call, 0);
  snprintf(name, sizeof(name), "Collective Group with group_key = %d, group_size = %d, rank = %d",
           made->group_key, made->group_size, made->rank);
  weir_status_t* status =
      weir_handle_create(ctx->device->name, "localhost", name, communicator_type.name, &handle);
  if (status) {
    weir_resource_release(&made->base);
    return status;
  }
  handle->object = made;
  handle->release_object = release_communicator;
  status = weir_tensor_create_handle(handle, &out);
  weir_handle_release(handle);
  if (!status) weir_kernel_set(ctx, 0, out);
  return status;
}

static void init_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  weir_collective_t what = *(const weir_collective_t*)ctx->state;
  weir_status_t* status = read_group(ctx, &what);
  if (status) weir_done_call(done, status);
  else weir_member_start(ctx, &what, NULL, put_communicator, done);
}

// ---- using one ----

static weir_status_t* reduce_init(const weir_kernel_init_t* init, void* state) {
  weir_collective_t* what = state;
  WEIR_TRY(weir_member_init(init, WEIR_COLLECTIVE_REDUCE, what));
  what->space = WEIR_COLLECTIVE_SPACE_CALL;
  return NULL;
}

static weir_status_t* exchange_init(const weir_kernel_init_t* init, void* state) {
  weir_collective_t* what = state;
  WEIR_TRY(weir_member_init(init, WEIR_COLLECTIVE_ALL_TO_ALL, what));
  what->space = WEIR_COLLECTIVE_SPACE_CALL;
  return NULL;
}

static weir_status_t* read_communicator(weir_kernel_ctx_t* ctx, weir_collective_t* what) {
  weir_resource_t* resource = NULL;
  WEIR_TRY(weir_kernel_resource(ctx, 1, &communicator_type, &resource));
  communicator_t* communicator = (communicator_t*)resource;
  weir_status_t* status = NULL;
  if (weir_kernel_input(ctx, 2)->count > 0) {
    status = WEIR_STATUS(UNIMPLEMENTED, "Group assignments are not supported yet.");
  } else {
    what->group_key = communicator->group_key;
    what->group_size = communicator->group_size;
    what->rank = communicator->rank;
    // Relaxed: a number that nobody else gets.
    what->instance_key =
        atomic_fetch_add_explicit(&communicator->next_call, 1, memory_order_relaxed);
  }
  weir_resource_release(resource);
  return status;
}

static void call_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  weir_collective_t what = *(const weir_collective_t*)ctx->state;
  weir_status_t* status = read_communicator(ctx, &what);
  if (status) weir_done_call(done, status);
  else weir_member_start(ctx, &what, ctx->inputs[0].tensor, NULL, done);
}

const weir_op_module_t weir_ops_collective_communicator = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "CollectiveInitializeCommunicator",
         .attrs = "communication_hint: string = 'auto'; timeout_seconds: float = 0",
         .inputs = "group_key: int32; rank: int32; group_size: int32",
         .outputs = "communicator: resource",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_ALLOW_DISTRIBUTED,
         .summary = "A group whose members know their ranks",
         .infer_shape = weir_shape_fn_scalar,
         .kernels = WEIR_MEMBER_KERNELS(.compute_async = init_cpu, .init = init_init,
                                        .host_inputs = "group_key, rank, group_size")},
        {.name = "CollectiveReduceV3",
         .attrs = "T: {bfloat16, float, half, double, int32, int64}; reduction: {'Min', 'Max', "
                  "'Mul', 'Add'}; timeout_seconds: float = 0",
         .inputs = "input: T; communicator: resource; group_assignment: int32",
         .outputs = "data: T",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_ALLOW_DISTRIBUTED | WEIR_OP_UNBOUNDED,
         .summary = "The elements of all members of a group, merged",
         .infer_shape = weir_shape_fn_unchanged,
         .kernels = WEIR_MEMBER_KERNELS(.compute_async = call_cpu, .init = reduce_init,
                                        .host_inputs = "group_assignment")},
        {.name = "CollectiveAllToAllV3",
         .attrs = "T: {bfloat16, float, half, double, int32, int64}; timeout_seconds: float = 0",
         .inputs = "input: T; communicator: resource; group_assignment: int32",
         .outputs = "data: T",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_ALLOW_DISTRIBUTED | WEIR_OP_UNBOUNDED,
         .summary = "Row i of the member of each rank, where i is the member's own",
         .infer_shape = weir_shape_fn_unchanged,
         .kernels = WEIR_MEMBER_KERNELS(.compute_async = call_cpu, .init = exchange_init,
                                        .host_inputs = "group_assignment")},
        {0}}};

// assign_group.c — CollectiveAssignGroupV2: which row of a table of groups a device is in.
#include "op/kernel.h"
#include "op/shape_ctx.h"

static weir_status_t* check_inputs(const weir_kernel_ctx_t* ctx) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  const weir_tensor_t* groups = weir_kernel_input(ctx, 0);
  if (groups->rank != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "group_assignment must be a 2-d Tensor, but received tensor of shape: %s",
                       weir_tensor_shape_text(groups, text));
  }
  static const char* const names[] = {"device_index", "base_key"};
  for (int i = 0; i < 2; ++i) {
    const weir_tensor_t* tensor = weir_kernel_input(ctx, i + 1);
    if (tensor->rank == 0) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "%s must be a scalar, but received tensor of shape: %s",
                       names[i], weir_tensor_shape_text(tensor, text));
  }
  return NULL;
}

// Looks row by row, no further than need be: what is wrong after the device is not noticed, as in
// TensorFlow.
static weir_status_t* find_group(const weir_tensor_t* groups, int32_t device, int32_t base,
                                 int32_t* out_key) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  const int32_t* at = WEIR_TENSOR_DATA(groups, int32_t);
  for (int64_t group = 0; group < groups->dims[0]; ++group) {
    *out_key = (int32_t)((uint32_t)base + (uint32_t)group);
    if (*out_key == 0) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Using the reserved group_key = 0 is not allowed: group_id = %lld, "
                         "base_key = %d",
                         (long long)group, base);
    }
    for (int64_t i = 0; i < groups->dims[1]; ++i, ++at) {
      if (*at < 0 || *at >= groups->count) {
        return WEIR_STATUS(INVALID_ARGUMENT,
                           "Not all items in group_assignment Tensor<type: int32 shape: %s> is "
                           "within [0, number of devices)",
                           weir_tensor_shape_text(groups, text));
      }
      if (*at == device) return NULL;
    }
  }
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "device_index %d is not found in group_assignment Tensor<type: int32 shape: "
                     "%s>",
                     device, weir_tensor_shape_text(groups, text));
}

static weir_status_t* assign_cpu(weir_kernel_ctx_t* ctx) {
  WEIR_TRY(check_inputs(ctx));
  const weir_tensor_t* groups = weir_kernel_input(ctx, 0);
  int32_t device = WEIR_TENSOR_DATA(weir_kernel_input(ctx, 1), int32_t)[0];
  int32_t base = WEIR_TENSOR_DATA(weir_kernel_input(ctx, 2), int32_t)[0], key = 0;
  WEIR_TRY(find_group(groups, device, base, &key));
  WEIR_TRY(weir_kernel_output_int(ctx, 0, groups->dims[1]));
  return weir_kernel_output_int(ctx, 1, key);
}

const weir_op_module_t weir_ops_collective_assign_group = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "CollectiveAssignGroupV2",
         .inputs = "group_assignment: int32; device_index: int32; base_key: int32",
         .outputs = "group_size: int32; group_key: int32",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_ALLOW_DISTRIBUTED,
         .summary = "Size and key of the group that a device is in",
         .infer_shape = weir_shape_fn_scalar,
         .kernels = WEIR_CPU_KERNEL(.compute = assign_cpu)},
        {0}}};

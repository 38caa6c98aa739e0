// scatter_nd.c — ResourceScatterNdAdd … ScatterNdUpdate: updates of slices of a variable by rows of
// indices, by handle or by reference.
#include "op/cost.h"
#include "ops/array/nd_scatter.h"

#define NUMBERS                                                                               \
  "complex128, complex64, double, float, bfloat16, half, int32, int8, uint8, int16, uint16, " \
  "uint32, int64, uint64"
#define ORDERED \
  "double, float, bfloat16, half, int32, int8, uint8, int16, uint16, uint32, int64, uint64"

static weir_status_t* scatter_locked(weir_kernel_ctx_t* ctx, weir_variable_t* variable, int mode) {
  const weir_tensor_t* indices = weir_kernel_input(ctx, 1);
  WEIR_TRY(weir_variable_make_sole_with_locked(variable, ctx->node->name, &ctx->inputs[2].tensor));
  const weir_tensor_t* updates = weir_kernel_input(ctx, 2);
  weir_tensor_t* params = variable->tensor;
  if (params->dtype != updates->dtype) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Trying to scatter %s into a variable of %s",
                       weir_dtype_name(weir_tensor_type(updates)),
                       weir_dtype_name(weir_tensor_type(params)));
  }
  WEIR_TRY(nd_scatter_check(indices, updates, params, true));
  if (indices->count == 0 && updates->count == 0) return NULL;
  return nd_scatter(ctx, indices, updates, (nd_scatter_t)mode, params);
}

static weir_status_t* scatter(weir_kernel_ctx_t* ctx, nd_scatter_t mode) {
  weir_variable_t* variable = NULL;
  WEIR_TRY(weir_kernel_live_variable(ctx, 0, &variable));
  return weir_kernel_update_variable(ctx, variable, scatter_locked, mode);
}

static weir_status_t* update(weir_kernel_ctx_t* ctx) { return scatter(ctx, ND_SCATTER_UPDATE); }
static weir_status_t* add(weir_kernel_ctx_t* ctx) { return scatter(ctx, ND_SCATTER_ADD); }
static weir_status_t* sub(weir_kernel_ctx_t* ctx) { return scatter(ctx, ND_SCATTER_SUB); }
static weir_status_t* min(weir_kernel_ctx_t* ctx) { return scatter(ctx, ND_SCATTER_MIN); }
static weir_status_t* max(weir_kernel_ctx_t* ctx) { return scatter(ctx, ND_SCATTER_MAX); }

WEIR_SCATTER_INIT(update_gpu, ASSIGN)
WEIR_SCATTER_INIT(add_gpu, ADD)
WEIR_SCATTER_INIT(sub_gpu, SUB)
WEIR_SCATTER_INIT(min_gpu, MIN)
WEIR_SCATTER_INIT(max_gpu, MAX)

static weir_status_t* resource_shape(weir_shape_ctx_t* ctx) {
  const weir_handle_info_t* info = ctx->input_handles[0];
  return nd_scatter_check_shapes(ctx, weir_shape_input(ctx, 1), weir_shape_input(ctx, 2),
                                 info && info->shape ? info->shape : &weir_shape_unknown);
}

static weir_status_t* ref_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(nd_scatter_check_shapes(ctx, weir_shape_input(ctx, 1), weir_shape_input(ctx, 2),
                                   weir_shape_input(ctx, 0)));
  return weir_shape_set(ctx, 0, weir_shape_input(ctx, 0));
}

// Rows of the table below.
#define RESOURCE_SCATTER(op, row_types, gpu_types, fn, text)                                       \
  {                                                                                                \
    .name = op,                                                                                    \
    .attrs =                                                                                       \
        "T: type; Tindices: {int32, int64}; use_locking: bool = true; bad_indices_policy: string " \
        "= ''",                                                                                    \
    .inputs = "ref: resource; indices: Tindices; updates: T", .flags = WEIR_OP_STATEFUL,           \
    .summary = text, .infer_shape = resource_shape, .cost = weir_cost_fn_updates,                  \
    .kernels = (const weir_kernel_def_t[]) {                                                       \
      {WEIR_DEVICE_CPU, .types = "T: " row_types, .compute = fn, .host_inputs = "ref"},            \
          ND_SCATTER_GPU_ROW(gpu_types, fn, .host_inputs = "ref"), {                               \
        0                                                                                          \
      }                                                                                            \
    }                                                                                              \
  }
#define REF_SCATTER(op, allowed, locking, op_flags, row_types, gpu_types, fn, text)             \
  {                                                                                             \
    .name = op,                                                                                 \
    .attrs = "T: " allowed "; Tindices: {int32, int64}; use_locking: bool = " locking           \
             "; bad_indices_policy: string = ''",                                               \
    .inputs = "ref: Ref(T); indices: Tindices; updates: T", .outputs = "output_ref: Ref(T)",    \
    .flags = op_flags, .summary = text, .infer_shape = ref_shape, .cost = weir_cost_fn_updates, \
    .kernels = (const weir_kernel_def_t[]) {                                                    \
      {WEIR_DEVICE_CPU, .types = "T: " row_types, .compute = fn},                               \
          ND_SCATTER_GPU_ROW(gpu_types, fn, .host_inputs = NULL), {                             \
        0                                                                                       \
      }                                                                                         \
    }                                                                                           \
  }

const weir_op_module_t weir_ops_state_scatter_nd = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        RESOURCE_SCATTER("ResourceScatterNdUpdate", "bool, string, " NUMBERS, WEIR_MOVED_TYPES,
                         update, "Replaces slices of a variable by rows of indices."),
        RESOURCE_SCATTER("ResourceScatterNdAdd", "bool, " NUMBERS, WEIR_SCATTERED_NUMBERS, add,
                         "Adds to slices of a variable by rows of indices."),
        RESOURCE_SCATTER("ResourceScatterNdSub", "bool, " NUMBERS, WEIR_SCATTERED_NUMBERS, sub,
                         "Subtracts from slices of a variable by rows of indices."),
        RESOURCE_SCATTER("ResourceScatterNdMin", ORDERED, WEIR_SCATTERED_NUMBERS, min,
                         "Keeps the smaller elements in slices of a variable."),
        RESOURCE_SCATTER("ResourceScatterNdMax", ORDERED, WEIR_SCATTERED_NUMBERS, max,
                         "Keeps the larger elements in slices of a variable."),
        REF_SCATTER("ScatterNdUpdate", "type", "true", WEIR_OP_NO_GRADIENT,
                    "bool, string, " NUMBERS, WEIR_MOVED_TYPES, update,
                    "Replaces slices of a variable by rows of indices."),
        REF_SCATTER("ScatterNdAdd", "numbertype", "false", WEIR_OP_NO_GRADIENT, NUMBERS,
                    WEIR_SCATTERED_NUMBERS, add,
                    "Adds to slices of a variable by rows of indices."),
        REF_SCATTER("ScatterNdSub", "numbertype", "false", WEIR_OP_NO_GRADIENT, NUMBERS,
                    WEIR_SCATTERED_NUMBERS, sub,
                    "Subtracts from slices of a variable by rows of indices."),
        REF_SCATTER("ScatterNdMin", "numbertype", "false", 0, ORDERED, WEIR_SCATTERED_NUMBERS, min,
                    "Keeps the smaller elements in slices of a variable."),
        REF_SCATTER("ScatterNdMax", "numbertype", "false", 0, ORDERED, WEIR_SCATTERED_NUMBERS, max,
                    "Keeps the larger elements in slices of a variable."),
        {0}}};

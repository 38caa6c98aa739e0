// switch.c — Switch, Merge and their kin: conditionals as dead and live values.
#include "op/grad_ctx.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

// Moves an input, be it a tensor or a reference, to an output. An output without either is dead.
WEIR_INLINE void pass_value(weir_kernel_ctx_t* ctx, int from, int to) {
  ctx->outputs[to] = ctx->inputs[from];
  ctx->inputs[from] = (weir_value_t){.tensor = NULL, .ref = NULL};
}

static weir_status_t* not_scalar(const char* what, const weir_tensor_t* t) {
  char shape[WEIR_SHAPE_TEXT_SIZE];
  return WEIR_STATUS(INVALID_ARGUMENT, "%s must be a scalar, but it has shape %s", what,
                     weir_tensor_shape_text(t, shape));
}

// ---- Switch ----

static weir_status_t* switch_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 0, NULL));
  for (int i = 0; i < ctx->node->output_count; ++i) {
    WEIR_TRY(weir_shape_set(ctx, i, weir_shape_input(ctx, 0)));
    if (ctx->output_handles) ctx->output_handles[i] = ctx->input_handles[0];
  }
  return NULL;
}

static weir_status_t* switch_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* pred = weir_kernel_input(ctx, 1);
  if (WEIR_UNLIKELY(pred->rank != 0)) return not_scalar("The second input", pred);
  pass_value(ctx, 0, *WEIR_TENSOR_DATA(pred, const bool) ? 1 : 0);
  return NULL;
}

static weir_status_t* switch_n_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* index = weir_kernel_input(ctx, 1);
  if (index->rank != 0) return not_scalar("The second input", index);
  int64_t at = weir_tensor_int_at(index, 0);
  bool is_inside = at >= 0 && at < ctx->output_count;
  pass_value(ctx, 0, is_inside ? (int)at : ctx->output_count - 1);
  return NULL;
}

// Only one of the two gradients is alive; the merge of both is the gradient. Each is guarded by a
// Switch of its own, because it may have been computed outside the branch; where a branch gives
// none, its zeros are made within the branch.
static weir_status_t* switch_grad(weir_grad_ctx_t* g) {
  weir_edge_t pred = weir_grad_input(g, 1);
  weir_edge_t dys[2];
  for (int i = 0; i < 2; ++i) {
    if (weir_grad_has_dy(g, i)) {
      dys[i] =
          weir_build_output(weir_grad_node(g, "Switch", WEIR_EDGES(weir_grad_dy(g, i), pred)), i);
    } else {
      dys[i] = weir_grad_node(g, "ZerosLike", WEIR_EDGES(weir_grad_output(g, i)));
    }
  }
  return weir_grad_set(g, 0, weir_grad_node(g, "Merge", WEIR_EDGES(dys[0], dys[1])));
}

// ---- Merge ----

static const weir_shape_t* common_shape(weir_shape_ctx_t* ctx, const weir_shape_t* a,
                                        const weir_shape_t* b) {
  int64_t dims[WEIR_MAX_RANK];
  if (a->rank < 0 || a->rank != b->rank) return &weir_shape_unknown;
  for (int i = 0; i < a->rank; ++i) dims[i] = a->dims[i] == b->dims[i] ? a->dims[i] : -1;
  return weir_shape_make(ctx->arena, a->rank, dims);
}

static weir_status_t* merge_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* shape = weir_shape_input(ctx, 0);
  const weir_handle_info_t* handle = ctx->input_handles ? ctx->input_handles[0] : NULL;
  for (int i = 1; i < ctx->node->input_count; ++i) {
    shape = common_shape(ctx, shape, weir_shape_input(ctx, i));
    if (!shape) return weir_out_of_memory();
    const weir_handle_info_t* other = ctx->input_handles ? ctx->input_handles[i] : NULL;
    if (!other || !handle || other->dtype != handle->dtype) {
      handle = NULL;
    } else if (!weir_shape_equal(handle->shape, other->shape)) {
      weir_handle_info_t* both = weir_arena_alloc(ctx->arena, sizeof(*both));
      if (!both) return weir_out_of_memory();
      *both = (weir_handle_info_t){.dtype = handle->dtype,
                                   .shape = common_shape(ctx, handle->shape, other->shape)};
      handle = both->shape ? both : NULL;
    }
  }
  WEIR_TRY(weir_shape_set(ctx, 0, shape));
  if (ctx->output_handles) ctx->output_handles[0] = handle;
  return weir_shape_set_scalar(ctx, 1);
}

// The tensors that value_index can be, made once.
typedef struct merge_state_t {
  weir_tensor_t** indices;
  int count;
} merge_state_t;

static weir_status_t* merge_init(const weir_kernel_init_t* init, void* state) {
  merge_state_t* merge = state;
  int count = init->node->input_count;
  merge->indices = weir_calloc((size_t)count, sizeof(*merge->indices));
  if (!merge->indices) return weir_out_of_memory();
  for (int32_t i = 0; i < count; ++i) {
    WEIR_TRY(weir_tensor_create_from(WEIR_DTYPE_INT32, 0, NULL, &i, &merge->indices[i]));
    ++merge->count;
  }
  return NULL;
}

static void merge_deinit(void* state) {
  merge_state_t* merge = state;
  for (int i = 0; i < merge->count; ++i) weir_tensor_release(merge->indices[i]);
  weir_free(merge->indices);
}

static weir_status_t* merge_cpu(weir_kernel_ctx_t* ctx) {
  const merge_state_t* merge = ctx->state;
  int live = -1;
  for (int i = 0; i < ctx->input_count; ++i) {
    if (!ctx->inputs[i].tensor && !ctx->inputs[i].ref) continue;
    if (live >= 0) return WEIR_STATUS(INTERNAL, "Merge can not have more than one valid input.");
    live = i;
  }
  if (live < 0) return NULL;  // all dead: so are the outputs
  pass_value(ctx, live, 0);
  weir_kernel_set(ctx, 1, weir_tensor_retain_inline(merge->indices[live]));
  return NULL;
}

// The gradient goes back to the input the value came from. value_index says which: no need to find
// the predicate.
static weir_status_t* merge_grad(weir_grad_ctx_t* g) {
  int count = g->node->input_count;
  if (!weir_grad_has_dy(g, 0)) return NULL;
  if (count == 1) return weir_grad_set_value(g, 0, weir_grad_dy_value(g, 0));
  weir_edge_t dy = weir_grad_dy(g, 0);
  weir_edge_t index = weir_grad_output(g, 1);
  if (count == 2) {
    weir_edge_t is_second =
        weir_grad_node(g, "Equal", WEIR_EDGES(index, weir_build_int32(g->builder, 1)));
    weir_edge_t split = weir_grad_node(g, "Switch", WEIR_EDGES(dy, is_second));
    WEIR_TRY(weir_grad_set(g, 0, split));
    return weir_grad_set(g, 1, weir_build_output(split, 1));
  }
  for (int i = 0; i < count; ++i) {
    weir_edge_t is_this =
        weir_grad_node(g, "Equal", WEIR_EDGES(index, weir_build_int32(g->builder, i)));
    weir_edge_t split = weir_grad_node(g, "Switch", WEIR_EDGES(dy, is_this));
    WEIR_TRY(weir_grad_set(g, i, weir_build_output(split, 1)));
  }
  return NULL;
}

// ---- RefSelect ----

static weir_status_t* ref_select_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 0, NULL));
  const weir_shape_t* shape = weir_shape_input(ctx, 1);
  for (int i = 2; i < ctx->node->input_count; ++i) {
    if (!weir_shape_is_full(shape) || !weir_shape_equal(shape, weir_shape_input(ctx, i)))
      shape = &weir_shape_unknown;
  }
  return weir_shape_set(ctx, 0, weir_shape_is_full(shape) ? shape : &weir_shape_unknown);
}

static weir_status_t* ref_select_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* index = weir_kernel_input(ctx, 0);
  if (index->rank != 0) return not_scalar("Index", index);
  int64_t at = weir_tensor_int_at(index, 0);
  if (at < 0 || at >= ctx->input_count - 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Index must be in the range [0, %d) but got %lld",
                       ctx->input_count - 1, (long long)at);
  }
  pass_value(ctx, (int)at + 1, 0);
  return NULL;
}

#define SWITCH_TYPES                                                                           \
  "T: qint32, quint8, qint8, variant, resource, string, bool, complex128, complex64, double, " \
  "float, bfloat16, half, "                                                                    \
  "int32, int8, uint8, int16, uint16, uint32, int64, uint64"
#define SELECT_TYPES                                                                           \
  "T: variant, resource, string, bool, complex128, complex64, double, float, bfloat16, half, " \
  "int32, int8, uint8, int16, "                                                                \
  "uint16, uint32, int64, uint64"
#define MERGE_KERNEL                                                              \
  WEIR_PORTABLE_KERNEL(.compute = merge_cpu, .state_size = sizeof(merge_state_t), \
                       .init = merge_init, .deinit = merge_deinit, .host_outputs = "value_index")

const weir_op_module_t weir_ops_control_switch = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Switch",
         .attrs = "T: type",
         .inputs = "data: T; pred: bool",
         .outputs = "output_false: T; output_true: T",
         .flags = WEIR_OP_CHEAP,
         .role = WEIR_ROLE_SWITCH,
         .summary = "Passes its input to one of two outputs; the other is dead.",
         .infer_shape = switch_shape,
         .build_grad = switch_grad,
         .kernels = WEIR_PORTABLE_KERNEL(.types = SWITCH_TYPES, .compute = switch_cpu,
                                         .host_inputs = "pred")},
        {.name = "RefSwitch",
         .attrs = "T: type",
         .inputs = "data: Ref(T); pred: bool",
         .outputs = "output_false: Ref(T); output_true: Ref(T)",
         .flags = WEIR_OP_CHEAP | WEIR_OP_UNINITIALIZED_INPUT,
         .role = WEIR_ROLE_SWITCH,
         .summary = "Passes a reference to one of two outputs; the other is dead.",
         .infer_shape = switch_shape,
         .build_grad = switch_grad,
         .kernels = WEIR_PORTABLE_KERNEL(.types = SWITCH_TYPES, .compute = switch_cpu,
                                         .host_inputs = "pred")},
        {.name = "_SwitchN",
         .attrs = "num_outs: int >= 1; T: type",
         .inputs = "data: T; output_index: int32",
         .outputs = "outputs: num_outs * T",
         .flags = WEIR_OP_CHEAP,
         .role = WEIR_ROLE_SWITCH,
         .summary = "Passes its input to one of several outputs; the others are dead.",
         .infer_shape = switch_shape,
         .kernels = WEIR_PORTABLE_KERNEL(.types = SWITCH_TYPES, .compute = switch_n_cpu,
                                         .host_inputs = "output_index")},
        {.name = "Merge",
         .attrs = "T: type; N: int >= 1",
         .inputs = "inputs: N * T",
         .outputs = "output: T; value_index: int32",
         .flags = WEIR_OP_CHEAP,
         .role = WEIR_ROLE_MERGE,
         .summary = "Passes on the input that is alive, and which it was.",
         .infer_shape = merge_shape,
         .build_grad = merge_grad,
         .kernels = MERGE_KERNEL},
        {.name = "RefMerge",
         .attrs = "T: type; N: int >= 1",
         .inputs = "inputs: N * Ref(T)",
         .outputs = "output: Ref(T); value_index: int32",
         .flags = WEIR_OP_CHEAP,
         .role = WEIR_ROLE_MERGE,
         .summary = "Passes on the reference that is alive, and which it was.",
         .infer_shape = merge_shape,
         .build_grad = merge_grad,
         .kernels = MERGE_KERNEL},
        {.name = "RefSelect",
         .attrs = "T: type; N: int >= 1",
         .inputs = "index: int32; inputs: N * Ref(T)",
         .outputs = "output: Ref(T)",
         .flags = WEIR_OP_CHEAP,
         .summary = "Passes on one of several references.",
         .infer_shape = ref_select_shape,
         .kernels = WEIR_PORTABLE_KERNEL(.types = SELECT_TYPES, .compute = ref_select_cpu,
                                         .host_inputs = "index")},
        {0}}};

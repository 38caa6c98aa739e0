// cond.c — If, Case, their stateless kind and the old _If: one of several functions called; ToBool:
// the truth of a tensor.
#include "op/call.h"
#include "ops/control/output_shapes.h"

static weir_status_t* cond_shape(weir_shape_ctx_t* ctx) {
  bool is_set = false;
  WEIR_TRY(set_output_shapes(ctx, &is_set));
  return is_set ? NULL : weir_shape_fn_unknown(ctx);
}

// ---- If ----

typedef struct if_state_t {
  weir_callee_t branches[2];  // by truth
  bool is_switched;           // its condition is that of a Switch, though its branches are called
} if_state_t;

static weir_status_t* if_init(const weir_kernel_init_t* init, void* state) {
  if_state_t* branch = state;
  weir_callee_init(&branch->branches[0], weir_attrs_func(init->node->attrs, "else_branch"));
  weir_callee_init(&branch->branches[1], weir_attrs_func(init->node->attrs, "then_branch"));
  branch->is_switched = weir_call_asks_to_lower(init->node->attrs);
  return NULL;
}

// A bool of any shape is true where it has elements, but TensorFlow makes a Switch of what asks for
// it.
static weir_status_t* truth_of(const if_state_t* branch, const weir_tensor_t* condition,
                               bool* out_truth) {
  char shape[WEIR_SHAPE_TEXT_SIZE];
  bool is_bool = weir_tensor_type(condition) == WEIR_DTYPE_BOOL;
  if (!branch->is_switched || !is_bool || condition->rank == 0)
    return weir_tensor_truth(condition, out_truth);
  return WEIR_STATUS(INVALID_ARGUMENT, "The second input must be a scalar, but it has shape %s",
                     weir_tensor_shape_text(condition, shape));
}

static void if_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  if_state_t* branch = ctx->state;
  bool truth = false;
  weir_status_t* status = truth_of(branch, weir_kernel_input(ctx, 0), &truth);
  if (status) {
    weir_done_call(done, status);
    return;
  }
  weir_callee_call(&branch->branches[truth], ctx, 1, done);
}

// ---- Case ----

typedef struct case_state_t {
  weir_callee_t* branches;
  int count;
} case_state_t;

static weir_status_t* case_init(const weir_kernel_init_t* init, void* state) {
  case_state_t* branch = state;
  const weir_attr_t* funcs = weir_attrs_list(init->node->attrs, "branches");
  branch->branches = weir_calloc(funcs->count, sizeof(*branch->branches));
  if (!branch->branches) return weir_out_of_memory();
  branch->count = (int)funcs->count;
  for (int i = 0; i < branch->count; ++i)
    weir_callee_init(&branch->branches[i], &funcs->u.funcs[i]);
  return NULL;
}

static void case_deinit(void* state) { weir_free(((case_state_t*)state)->branches); }

static void case_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  case_state_t* branch = ctx->state;
  int64_t index = 0;
  weir_status_t* status = weir_kernel_int(ctx, 0, &index);
  if (status) {
    weir_done_call(done, status);
    return;
  }
  if (index < 0 || index >= branch->count)
    index = branch->count - 1;  // the last one is the default
  weir_callee_call(&branch->branches[index], ctx, 1, done);
}

#define IF_OP(op_name, op_flags)                                                        \
  {                                                                                     \
    .name = op_name,                                                                    \
    .attrs =                                                                            \
        "Tcond: type; Tin: list(type) >= 0; Tout: list(type) >= 0; then_branch: func; " \
        "else_branch: func; "                                                           \
        "output_shapes: list(shape) = []",                                              \
    .inputs = "cond: Tcond; input: Tin", .outputs = "output: Tout", .flags = op_flags,  \
    .summary = "Calls one of two functions.", .infer_shape = cond_shape,                \
    .kernels = (const weir_kernel_def_t[]) {                                            \
      {WEIR_DEVICE_CPU, .compute_async = if_cpu, .state_size = sizeof(if_state_t),      \
       .init = if_init, .host_inputs = "cond"},                                         \
      {                                                                                 \
        0                                                                               \
      }                                                                                 \
    }                                                                                   \
  }
static weir_status_t* to_bool_cpu(weir_kernel_ctx_t* ctx) {
  bool truth = false;
  WEIR_TRY(weir_tensor_truth(weir_kernel_input(ctx, 0), &truth));
  return weir_kernel_output_bool(ctx, 0, truth);
}

#define CASE_OP(op_name, op_flags)                                                             \
  {                                                                                            \
    .name = op_name,                                                                           \
    .attrs =                                                                                   \
        "Tin: list(type) >= 0; Tout: list(type) >= 0; branches: list(func) >= 1; "             \
        "output_shapes: list(shape) = []",                                                     \
    .inputs = "branch_index: int32; input: Tin", .outputs = "output: Tout", .flags = op_flags, \
    .summary = "Calls one of several functions.", .infer_shape = cond_shape,                   \
    .kernels = (const weir_kernel_def_t[]) {                                                   \
      {WEIR_DEVICE_CPU,   .compute_async = case_cpu, .state_size = sizeof(case_state_t),       \
       .init = case_init, .deinit = case_deinit,     .host_inputs = "branch_index"},           \
      {                                                                                        \
        0                                                                                      \
      }                                                                                        \
    }                                                                                          \
  }

const weir_op_module_t weir_ops_control_cond = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        IF_OP("If", WEIR_OP_STATEFUL),
        IF_OP("StatelessIf", WEIR_OP_NO_FOLD),
        CASE_OP("Case", WEIR_OP_STATEFUL),
        CASE_OP("StatelessCase", WEIR_OP_NO_FOLD),
        {.name = "_If",
         .attrs = "Tcond: type; Tin: list(type) >= 1; Tout: list(type) "
                  ">= 1; then_branch: func; else_branch: func",
         .inputs = "cond: Tcond; input: Tin",
         .outputs = "output: Tout",
         .flags = WEIR_OP_STATEFUL,
         .summary = "Calls one of two functions.",
         .infer_shape = weir_shape_fn_unknown,
         .kernels = WEIR_CPU_KERNEL(.compute_async = if_cpu, .state_size = sizeof(if_state_t),
                                    .init = if_init, .host_inputs = "cond")},
        {.name = "ToBool",
         .attrs = "T: type",
         .inputs = "input: T",
         .outputs = "output: bool",
         .summary = "Whether a tensor is true.",
         .infer_shape = weir_shape_fn_scalar,
         .kernels = WEIR_CPU_KERNEL(.compute = to_bool_cpu)},
        {0}}};

// to_graph.c — DatasetToGraph, V2: a dataset as the GraphDef that makes it.
#include "ops/data/graph_out.h"

static weir_status_t* output_string(weir_kernel_ctx_t* ctx, const weir_strbuf_t* bytes) {
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, 0, NULL, &out));
  return weir_string_set(WEIR_TENSOR_DATA(out, weir_string_t), bytes->data, bytes->size);
}

static weir_status_t* write_graph(weir_graph_out_t* out, weir_data_t* dataset,
                                  weir_strbuf_t* graph_def) {
  const char* name = NULL;
  WEIR_TRY(weir_graph_out_dataset(out, dataset, &name));
  return weir_graph_out_finish(out, name, graph_def);
}

// Whatever keeps a dataset from being written is one error to TensorFlow. Consumes |take_status|.
static weir_status_t* blame(weir_status_t* take_status) {
  if (!take_status || weir_status_code(take_status) == WEIR_RESOURCE_EXHAUSTED) return take_status;
  weir_status_t* status =
      WEIR_STATUS(FAILED_PRECONDITION, "Failed to serialize the input pipeline graph: %s",
                  weir_status_message(take_status));
  weir_status_destroy(take_status);
  return status;
}

static weir_status_t* to_graph(weir_kernel_ctx_t* ctx, weir_state_policy_t policy) {
  weir_data_t* dataset = NULL;
  WEIR_TRY(weir_dataset_of(weir_kernel_input(ctx, 0), &dataset));
  weir_graph_out_t out = {
      .ctx = ctx,
      .functions = ctx->step->functions,
      .policy = policy,
      .strips_devices = weir_attrs_bool(weir_kernel_attrs(ctx), "strip_device_assignment"),
      .datasets = {.owns_keys = true},
      .functions_by_name = {.owns_keys = true}};
  weir_strbuf_t graph_def = {0};
  weir_status_t* status = blame(write_graph(&out, dataset, &graph_def));
  if (!status) status = output_string(ctx, &graph_def);
  weir_strbuf_free(&graph_def);
  weir_graph_out_free(&out);
  return status;
}

// As in TensorFlow, the names of ops with state that are fine (stateful_whitelist) say nothing.
static weir_status_t* to_graph_cpu(weir_kernel_ctx_t* ctx) {
  bool is_allowed = weir_attrs_bool(weir_kernel_attrs(ctx), "allow_stateful");
  return to_graph(ctx, is_allowed ? WEIR_STATE_WARN : WEIR_STATE_FAIL);
}

// As in TensorFlow, a policy that there is none of ignores state.
static weir_status_t* to_graph_v2_cpu(weir_kernel_ctx_t* ctx) {
  int64_t policy = weir_attrs_int(weir_kernel_attrs(ctx), "external_state_policy");
  bool is_known = policy >= WEIR_STATE_WARN && policy <= WEIR_STATE_FAIL;
  return to_graph(ctx, is_known ? (weir_state_policy_t)policy : WEIR_STATE_IGNORE);
}

const weir_op_module_t weir_ops_data_to_graph = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "DatasetToGraph",
         .attrs = "stateful_whitelist: list(string) >= 0 = []; allow_stateful: bool = false; "
                  "strip_device_assignment: bool = false",
         .inputs = "input_dataset: variant",
         .outputs = "graph: string",
         .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "A dataset as the GraphDef that makes it",
         .infer_shape = weir_shape_fn_scalar,
         .kernels = WEIR_CPU_KERNEL(.compute = to_graph_cpu)},
        {.name = "DatasetToGraphV2",
         .attrs = "external_state_policy: int = 0; strip_device_assignment: bool = false",
         .inputs = "input_dataset: variant",
         .outputs = "graph: string",
         .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "A dataset as the GraphDef that makes it",
         .infer_shape = weir_shape_fn_scalar,
         .kernels = WEIR_CPU_KERNEL(.compute = to_graph_v2_cpu)},
        {0}}};

// constant.c — TF_TryEvaluateConstant: what an output always is, by running what it needs.
#include "tensorflow/internal.h"

// Whether |node| gives the same whenever it runs, as far as it is concerned.
static bool is_constant_op(const weir_node_t* node) {
  const weir_role_t role = weir_node_role(node);
  const bool has_kernel = *weir_op_kernels(node->def.op);
  if (!has_kernel || weir_node_has(node, WEIR_OP_STATEFUL | WEIR_OP_NO_FOLD)) return false;
  return role == WEIR_ROLE_NONE || role == WEIR_ROLE_CONST || role == WEIR_ROLE_NO_OP;
}

// Whether all that |root| needs is constant. Nodes are visited once.
static weir_status_t* depends_on_constants(const weir_graph_t* graph, weir_node_t* root,
                                           bool* out_is_constant) {
  bool* is_seen = weir_calloc(graph->node_count, sizeof(*is_seen));
  weir_node_t** stack = weir_calloc(graph->node_count, sizeof(weir_node_t*));
  weir_status_t* status = is_seen && stack ? NULL : weir_out_of_memory();
  size_t depth = 0;
  bool is_constant = true;
  if (!status) {
    stack[depth++] = root;
    is_seen[root->id] = true;
  }
  while (depth > 0 && is_constant) {
    const weir_node_t* node = stack[--depth];
    is_constant = is_constant_op(node) && node->control_count == 0;
    for (int i = 0; i < node->def.input_count && is_constant; ++i) {
      weir_node_t* input = node->inputs[i].node;
      if (!is_seen[input->id]) stack[depth++] = input;
      is_seen[input->id] = true;
    }
  }
  weir_free(is_seen);
  weir_free(stack);
  *out_is_constant = is_constant;
  return status;
}

static weir_status_t* evaluate(weir_graph_t* graph, weir_edge_t edge, TF_Tensor** out_result) {
  const weir_session_options_t options = {.threads = 1, .isolate_state = true};
  const weir_step_spec_t spec = {.fetches = &edge, .fetch_count = 1};
  weir_session_t* session = NULL;
  weir_tensor_t* result = NULL;
  WEIR_TRY(weir_session_create(graph, &options, &session));
  weir_status_t* status = weir_session_run(session, &spec, &result);
  weir_session_destroy(session);
  return status ? status : tf_tensor_out(result, out_result);
}

unsigned char TF_TryEvaluateConstant(TF_Graph* graph, TF_Output output, TF_Tensor** result,
                                     TF_Status* status) {
  bool is_constant = false;
  *result = NULL;
  weir_mutex_lock(&graph->graph->mu);
  weir_status_t* failure = tf_check_output(graph->graph, output);
  if (!failure) failure = depends_on_constants(graph->graph, tf_node(output.oper), &is_constant);
  weir_mutex_unlock(&graph->graph->mu);
  if (!failure && is_constant) failure = evaluate(graph->graph, tf_edge(output), result);
  return tf_status_take(status, failure) && is_constant;
}

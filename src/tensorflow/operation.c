// operation.c — Looking at operations: names, types, and who reads what.
#include "tensorflow/internal.h"

const char* TF_OperationName(TF_Operation* oper) { return tf_node(oper)->def.name; }
const char* TF_OperationOpType(TF_Operation* oper) { return tf_node(oper)->def.op_name; }
const char* TF_OperationDevice(TF_Operation* oper) { return tf_node(oper)->def.device; }
int TF_OperationNumOutputs(TF_Operation* oper) { return tf_node(oper)->def.output_count; }
int TF_OperationNumInputs(TF_Operation* oper) { return tf_node(oper)->def.input_count; }

TF_DataType TF_OperationOutputType(TF_Output oper_out) {
  const weir_node_def_t* def = &tf_node(oper_out.oper)->def;
  const bool is_there = oper_out.index >= 0 && oper_out.index < def->output_count;
  return is_there ? (TF_DataType)def->output_types[oper_out.index] : (TF_DataType)0;
}

TF_DataType TF_OperationInputType(TF_Input oper_in) {
  const weir_node_def_t* def = &tf_node(oper_in.oper)->def;
  const bool is_there = oper_in.index >= 0 && oper_in.index < def->input_count;
  return is_there ? (TF_DataType)def->input_types[oper_in.index] : (TF_DataType)0;
}

static int list_length(TF_Operation* oper, const char* arg_name, bool outputs, TF_Status* status) {
  const weir_node_def_t* def = &tf_node(oper)->def;
  const weir_arg_t* args = !def->op ? NULL : outputs ? def->op->outputs : def->op->inputs;
  const int arg_count = !def->op ? 0 : outputs ? def->op->output_count : def->op->input_count;
  tf_status_clear(status);
  for (int i = 0; i < arg_count; ++i) {
    int first = 0, count = 0;
    if (strcmp(args[i].name, arg_name)) continue;
    if (outputs) weir_node_output_range(def, i, &first, &count);
    else weir_node_input_range(def, i, &first, &count);
    return count;
  }
  tf_status_take(status, WEIR_STATUS(INVALID_ARGUMENT, "%s arg '%s' not found",
                                     outputs ? "Output" : "Input", arg_name));
  return -1;
}

int TF_OperationOutputListLength(TF_Operation* oper, const char* arg_name, TF_Status* status) {
  return list_length(oper, arg_name, true, status);
}
int TF_OperationInputListLength(TF_Operation* oper, const char* arg_name, TF_Status* status) {
  return list_length(oper, arg_name, false, status);
}

// ---- inputs ----

TF_Output TF_OperationInput(TF_Input oper_in) {
  const weir_node_t* node = tf_node(oper_in.oper);
  if (oper_in.index < 0 || oper_in.index >= node->def.input_count) return (TF_Output){NULL, -1};
  return tf_output(node->inputs[oper_in.index]);
}

void TF_OperationAllInputs(TF_Operation* oper, TF_Output* inputs, int max_inputs) {
  const weir_node_t* node = tf_node(oper);
  for (int i = 0; i < node->def.input_count && i < max_inputs; ++i)
    inputs[i] = tf_output(node->inputs[i]);
}

int TF_OperationNumControlInputs(TF_Operation* oper) { return tf_node(oper)->control_count; }

int TF_OperationGetControlInputs(TF_Operation* oper, TF_Operation** control_inputs,
                                 int max_control_inputs) {
  const weir_node_t* node = tf_node(oper);
  for (int i = 0; i < node->control_count && i < max_control_inputs; ++i)
    control_inputs[i] = tf_operation(node->control_inputs[i]);
  return node->control_count;
}

// ---- readers: a node knows its inputs only, so all nodes are looked at ----

static int find_consumers(TF_Output output, TF_Input* consumers, int max_consumers) {
  weir_graph_t* graph = tf_node(output.oper)->graph;
  int count = 0;
  weir_mutex_lock(&graph->mu);
  for (size_t i = 0; i < graph->node_count; ++i) {
    const weir_node_t* node = graph->nodes[i];
    for (int k = 0; k < node->def.input_count; ++k) {
      if (!weir_edge_equal(node->inputs[k], tf_edge(output))) continue;
      if (count < max_consumers) consumers[count] = (TF_Input){tf_operation(node), k};
      ++count;
    }
  }
  weir_mutex_unlock(&graph->mu);
  return count;
}

int TF_OperationOutputNumConsumers(TF_Output oper_out) { return find_consumers(oper_out, NULL, 0); }
int TF_OperationOutputConsumers(TF_Output oper_out, TF_Input* consumers, int max_consumers) {
  return find_consumers(oper_out, consumers, max_consumers);
}

static int find_control_outputs(TF_Operation* oper, TF_Operation** found, int max_found) {
  const weir_node_t* of = tf_node(oper);
  weir_graph_t* graph = of->graph;
  int count = 0;
  weir_mutex_lock(&graph->mu);
  for (size_t i = 0; i < graph->node_count; ++i) {
    const weir_node_t* node = graph->nodes[i];
    for (int k = 0; k < node->control_count; ++k) {
      if (node->control_inputs[k] != of) continue;
      if (count < max_found) found[count] = tf_operation(node);
      ++count;
    }
  }
  weir_mutex_unlock(&graph->mu);
  return count;
}

int TF_OperationNumControlOutputs(TF_Operation* oper) {
  return find_control_outputs(oper, NULL, 0);
}
int TF_OperationGetControlOutputs(TF_Operation* oper, TF_Operation** control_outputs,
                                  int max_control_outputs) {
  return find_control_outputs(oper, control_outputs, max_control_outputs);
}

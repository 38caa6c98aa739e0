// infer.c — Shape inference: calls each op's shape function with what is known of its inputs.
#include "base/details.h"
#include "graph/graph.h"
#include "graph/graph_internal.h"

const weir_tensor_t* weir_edge_constant(weir_edge_t edge) {
  while (edge.node && edge.index == 0 && weir_node_has(edge.node, WEIR_OP_PASS_THROUGH) &&
         edge.node->inputs) {
    edge = edge.node->inputs[0];
  }
  if (!edge.node || weir_node_role(edge.node) != WEIR_ROLE_CONST) return NULL;
  const weir_attr_t* value = weir_attrs_find(edge.node->def.attrs, "value");
  return value && value->kind == WEIR_ATTR_TENSOR && !value->is_list ? value->u.tensor : NULL;
}

typedef struct infer_inputs_t {
  const weir_shape_t** shapes;
  const weir_tensor_t** values;
  const weir_shape_t** values_as_shape;
  const weir_handle_info_t** handles;
} infer_inputs_t;

static bool gather_inputs(const weir_node_t* node, weir_arena_t* scratch, infer_inputs_t* in) {
  size_t count = (size_t)node->def.input_count;
  in->shapes = weir_arena_array(scratch, count, sizeof(*in->shapes));
  in->values = weir_arena_array(scratch, count, sizeof(*in->values));
  in->values_as_shape = weir_arena_array(scratch, count, sizeof(*in->values_as_shape));
  in->handles = weir_arena_array(scratch, count, sizeof(*in->handles));
  if (!in->shapes || !in->values || !in->values_as_shape || !in->handles) return false;
  for (size_t i = 0; i < count; ++i) {
    weir_edge_t edge = node->inputs ? node->inputs[i] : WEIR_NO_EDGE;
    bool is_known = edge.node && edge.node->shapes && edge.index < edge.node->def.output_count;
    in->shapes[i] = is_known ? edge.node->shapes[edge.index] : &weir_shape_unknown;
    in->values[i] = is_known ? weir_edge_constant(edge) : NULL;
    in->values_as_shape[i] = is_known ? edge.node->values_as_shape[edge.index] : NULL;
    in->handles[i] = is_known ? edge.node->handles[edge.index] : NULL;
  }
  return true;
}

// |take_status| with the shapes that did not fit, in TensorFlow's words.
static weir_status_t* with_shapes(const weir_node_t* node, const infer_inputs_t* in,
                                  weir_status_t* take_status) {
  enum { MAX_NAMED = 8 };
  const int count = WEIR_MIN(node->def.input_count, (int)MAX_NAMED);
  weir_strbuf_t text = {0};
  char shape[WEIR_SHAPE_TEXT_SIZE];
  if (!take_status || count == 0) return take_status;
  for (int i = 0; i < count; ++i)
    weir_strbuf_printf(&text, "%s%s", i ? ", " : " with input shapes: ",
                       weir_shape_text(in->shapes[i]->rank, in->shapes[i]->dims, shape));
  if (count < node->def.input_count) weir_strbuf_puts(&text, ", ...");
  if (!text.failed) take_status = weir_status_append(take_status, weir_strbuf_view(&text));
  weir_strbuf_free(&text);
  return take_status;
}

weir_status_t* weir_graph_infer(weir_node_t* node) {
  if (!node->def.op || !node->def.op->def || !node->def.op->def->infer_shape) return NULL;
  weir_arena_t scratch = {0};
  infer_inputs_t in;
  if (!gather_inputs(node, &scratch, &in)) {
    weir_arena_free(&scratch);
    return weir_out_of_memory();
  }
  weir_shape_ctx_t ctx = {.node = &node->def,
                          .arena = &node->graph->arena,
                          .input_shapes = in.shapes,
                          .input_values = in.values,
                          .input_values_as_shape = in.values_as_shape,
                          .input_handles = in.handles,
                          .output_shapes = node->shapes,
                          .output_values_as_shape = node->values_as_shape,
                          .output_handles = node->handles,
                          .producer = node->graph->producer};
  weir_status_t* status = with_shapes(node, &in, node->def.op->def->infer_shape(&ctx));
  weir_arena_free(&scratch);
  return weir_status_at_node(status, node->def.name, node->def.op_name);
}

void weir_node_forget_shapes(weir_node_t* node) {
  for (int i = 0; i < node->def.output_count; ++i) {
    node->shapes[i] = &weir_shape_unknown;
    node->values_as_shape[i] = NULL;
    node->handles[i] = NULL;
  }
}

// graph_builder.c — The builder interface over a graph.
#include "graph/graph.h"

static weir_status_t* builder_add(weir_builder_t* self, const char* op, weir_edges_t inputs,
                                  weir_attrs_t attrs, const char* name_hint,
                                  weir_edge_t* out_first) {
  weir_graph_builder_t* builder = (weir_graph_builder_t*)self;
  const char* base = name_hint ? name_hint : op[0] == '_' ? op + 1 : op;
  weir_node_params_t params = {.op = op,
                               .prefix = builder->prefix,
                               .name = base,
                               .unique_name = true,
                               .device = builder->device,
                               .inputs = inputs,
                               .control_inputs = builder->controls,
                               .control_count = builder->control_count,
                               .attrs = attrs};
  weir_node_t* node = NULL;
  WEIR_TRY(weir_graph_add(builder->graph, &params, &node));
  *out_first = (weir_edge_t){.node = node, .index = 0};
  return NULL;
}

static weir_status_t* builder_add_control(weir_builder_t* self, weir_edge_t node, weir_edge_t on) {
  (void)self;
  return weir_graph_add_control(node.node, on.node);
}

static weir_dtype_t builder_dtype(weir_builder_t* self, weir_edge_t edge) {
  (void)self;
  return weir_dtype_base(weir_edge_dtype(edge));
}

static const weir_shape_t* builder_shape(weir_builder_t* self, weir_edge_t edge) {
  (void)self;
  return edge.node->shapes ? weir_edge_shape(edge) : &weir_shape_unknown;
}

static const weir_tensor_t* builder_constant(weir_builder_t* self, weir_edge_t edge) {
  (void)self;
  return weir_edge_constant(edge);
}

static const weir_node_def_t* builder_node(weir_builder_t* self, weir_edge_t edge) {
  (void)self;
  return &edge.node->def;
}

static weir_edge_t builder_input(weir_builder_t* self, weir_edge_t node, int index) {
  (void)self;
  return node.node->inputs[index];
}

const weir_builder_vtable_t weir_graph_builder_vtable = {.add = builder_add,
                                                         .add_control = builder_add_control,
                                                         .dtype = builder_dtype,
                                                         .shape = builder_shape,
                                                         .constant = builder_constant,
                                                         .node = builder_node,
                                                         .input = builder_input};

void weir_graph_builder_init(weir_graph_builder_t* builder, weir_graph_t* graph,
                             const char* prefix) {
  *builder = (weir_graph_builder_t){.base = {.vtable = &weir_graph_builder_vtable, .status = NULL},
                                    .graph = graph,
                                    .prefix = prefix};
}

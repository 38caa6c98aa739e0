// frame.c — Adding a node to a frame: its inputs resolved, the op found, run, and what it made
// kept.
#include "eager/frame.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/details.h"
#include "graph/function.h"
#include "graph/graph_internal.h"
#include "tensor/handle.h"

enum { RECENT = 64 };  // ops that are found without a lock; a power of two

// A node of a frame. Immutable once it is there, but for a live one.
typedef struct eager_node_t {
  weir_node_t node;  // first
  weir_eager_op_t* op;
  int device;                   // that it ran on
  weir_variable_t* variable;    // of a live node, retained; NULL: of others
  struct eager_node_t* newest;  // of a live node: the last read of it; NULL: this one
  weir_value_t values[];        // one an output
} eager_node_t;

typedef struct frame_t {
  weir_graph_adder_t base;  // first
  weir_graph_t* graph;      // which owns this
  weir_eager_t* eager;      // retained
  int64_t id;               // among the context's
  weir_step_t step;
  weir_map_t imports;  // edges of other frames → their leaves here
  char container[40];  // of state that ends with the frame
  bool has_state;
  weir_eager_op_t** own_ops;  // of nodes with state of their own name
  size_t own_count, own_capacity;
  weir_eager_op_t* recent[RECENT];  // by hash
} frame_t;

static const weir_graph_adder_vtable_t frame_vtable;

static frame_t* frame_of(const weir_graph_t* graph) {
  bool is_frame = graph && graph->adder && graph->adder->vtable == &frame_vtable;
  return is_frame ? (frame_t*)graph->adder : NULL;
}

static eager_node_t* node_of(weir_edge_t edge) { return (eager_node_t*)edge.node; }

weir_eager_t* weir_eager_of(const weir_graph_t* graph) {
  const frame_t* frame = frame_of(graph);
  return frame ? frame->eager : NULL;
}

weir_eager_op_t* weir_eager_node_op(const weir_node_t* node) {
  return ((const eager_node_t*)node)->op;
}

// ---- making nodes ----

static const weir_shape_t** make_shapes(weir_arena_t* arena, const eager_node_t* node) {
  size_t count = (size_t)node->node.def.output_count;
  const weir_shape_t** shapes = weir_arena_array(arena, count, sizeof(*shapes));
  for (size_t i = 0; shapes && i < count; ++i) {
    const weir_tensor_t* t = node->values[i].tensor;
    shapes[i] = !t             ? &weir_shape_unknown
                : t->rank == 0 ? &weir_shape_scalar
                               : weir_shape_make(arena, t->rank, t->dims);
    if (!shapes[i]) return NULL;
  }
  return shapes;
}

// A node of |op|, not run and not registered. |inputs| are in the arena.
static eager_node_t* make_node(frame_t* frame, weir_eager_op_t* op, weir_edge_t* inputs) {
  size_t count = (size_t)op->def.output_count;
  eager_node_t* node =
      weir_arena_alloc(&frame->graph->arena, sizeof(*node) + count * sizeof(node->values[0]));
  if (!node) return NULL;
  node->op = op;
  node->node.def = op->def;
  node->node.graph = frame->graph;
  node->node.inputs = inputs;
  return node;
}

// Nothing is known of values but their tensors: nobody is told of partly known ones.
static weir_status_t* describe(frame_t* frame, eager_node_t* node) {
  weir_arena_t* arena = &frame->graph->arena;
  size_t count = (size_t)node->node.def.output_count;
  node->node.shapes = make_shapes(arena, node);
  void* nothing = weir_arena_array(arena, count, sizeof(void*));
  node->node.values_as_shape = nothing;
  node->node.handles = nothing;
  return node->node.shapes && nothing ? NULL : weir_out_of_memory();
}

static void release_values(eager_node_t* node) {
  for (int i = 0; i < node->node.def.output_count; ++i) weir_value_release(&node->values[i]);
  if (node->variable) weir_resource_release(&node->variable->base);
  node->variable = NULL;
}

// The node joins the others; without a name that leads to it.
static weir_status_t* join(frame_t* frame, eager_node_t* node) {
  weir_graph_t* graph = frame->graph;
  if (!WEIR_GROW(graph->nodes, graph->node_capacity, graph->node_count + 1))
    return weir_out_of_memory();
  node->node.id = (int)graph->node_count;
  graph->nodes[graph->node_count++] = &node->node;
  ++graph->version;
  return NULL;
}

// ---- leaves: what comes from other frames ----

typedef struct import_key_t {
  int64_t frame;
  int64_t place;  // of the node and its output
} import_key_t;

static import_key_t key_of(weir_edge_t edge) {
  const frame_t* from = frame_of(edge.node->graph);
  return (import_key_t){from->id, (int64_t)edge.node->id << 24 | edge.index};
}

static weir_status_t* clone_handle(weir_arena_t* arena, const weir_handle_info_t* from,
                                   const weir_handle_info_t** out_info) {
  weir_handle_info_t* info = weir_arena_alloc(arena, sizeof(*info));
  if (!info) return weir_out_of_memory();
  info->dtype = from->dtype;
  info->shape = from->shape && from->shape->rank >= 0
                    ? weir_shape_make(arena, from->shape->rank, from->shape->dims)
                    : &weir_shape_unknown;
  *out_info = info;
  return info->shape ? NULL : weir_out_of_memory();
}

static weir_status_t* find_leaf_op(frame_t* frame, weir_dtype_t dtype, weir_eager_op_t** out_op) {
  weir_eager_ask_t ask = {.op = "Placeholder", .attrs = WEIR_ATTRS(weir_attr_type("dtype", dtype))};
  return weir_eager_find_op(frame->eager, &ask, weir_eager_ask_hash(&ask), ask.op, out_op);
}

static weir_status_t* make_leaf(frame_t* frame, weir_edge_t edge, weir_edge_t* out_edge) {
  const eager_node_t* from = node_of(edge);
  const weir_value_t* value = &from->values[edge.index];
  weir_eager_op_t* op = NULL;
  if (!value->tensor)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "output %d of '%s', of another scope, is a reference or dead: it cannot be "
                       "used here",
                       edge.index, edge.node->def.name);
  WEIR_TRY(find_leaf_op(frame, weir_dtype_base(weir_edge_dtype(edge)), &op));
  eager_node_t* leaf = make_node(frame, op, NULL);
  if (!leaf) return weir_out_of_memory();
  leaf->device = from->device;
  leaf->values[0].tensor = weir_tensor_retain(value->tensor);
  weir_status_t* status = describe(frame, leaf);
  const weir_handle_info_t* info = edge.node->handles[edge.index];
  if (!status && info) status = clone_handle(&frame->graph->arena, info, &leaf->node.handles[0]);
  if (!status) status = join(frame, leaf);
  if (status) release_values(leaf);
  *out_edge = (weir_edge_t){.node = &leaf->node, .index = 0};
  return status;
}

static weir_status_t* add(weir_graph_adder_t* self, const weir_node_params_t* params,
                          weir_node_t** out_node);
static weir_status_t* add_live(frame_t* frame, weir_edge_t handle, weir_variable_t* variable,
                               eager_node_t** out_node);

static weir_status_t* import(frame_t* frame, weir_edge_t edge, weir_edge_t* out_edge) {
  import_key_t key = key_of(edge);
  weir_view_t view = weir_view(&key, sizeof(key));
  weir_edge_t* known = weir_map_find(&frame->imports, view);
  if (known) {
    *out_edge = *known;
    return NULL;
  }
  weir_edge_t* kept = weir_arena_alloc(&frame->graph->arena, sizeof(*kept));
  if (!kept) return weir_out_of_memory();
  weir_variable_t* variable = node_of(edge)->variable;
  if (variable) {  // its handle comes in, and is read here
    weir_edge_t handle = {.node = NULL};
    eager_node_t* live = NULL;
    WEIR_TRY(import(frame, edge.node->inputs[0], &handle));
    WEIR_TRY(add_live(frame, handle, variable, &live));
    *kept = (weir_edge_t){.node = &live->node, .index = 0};
  } else {
    WEIR_TRY(make_leaf(frame, edge, kept));
  }
  *out_edge = *kept;
  return weir_map_put(&frame->imports, view, kept);
}

// ---- live nodes ----

static weir_status_t* find_read_op(frame_t* frame, weir_dtype_t dtype, weir_eager_op_t** out_op) {
  weir_eager_ask_t ask = {.op = "ReadVariableOp",
                          .attrs = WEIR_ATTRS(weir_attr_type("dtype", dtype)),
                          .types = (const weir_dtype_t[]){WEIR_DTYPE_RESOURCE},
                          .input_count = 1};
  return weir_eager_find_op(frame->eager, &ask, weir_eager_ask_hash(&ask), ask.op, out_op);
}

static const weir_shape_t* shape_now(weir_arena_t* arena, weir_variable_t* variable) {
  const weir_shape_t* shape = &weir_shape_unknown;
  weir_mutex_lock(&variable->mu);
  const weir_tensor_t* t = variable->tensor;
  if (t) shape = weir_shape_make(arena, t->rank, t->dims);
  weir_mutex_unlock(&variable->mu);
  return shape;
}

// A read of |variable| that waits until someone wants the value: who looks single rows up does not,
// and an update then need not copy it.
static weir_status_t* add_live(frame_t* frame, weir_edge_t handle, weir_variable_t* variable,
                               eager_node_t** out_node) {
  weir_eager_op_t* op = NULL;
  weir_arena_t* arena = &frame->graph->arena;
  WEIR_TRY(find_read_op(frame, variable->dtype, &op));
  weir_edge_t* inputs = weir_arena_array(arena, 1, sizeof(*inputs));
  eager_node_t* node = inputs ? make_node(frame, op, inputs) : NULL;
  if (!node) return weir_out_of_memory();
  inputs[0] = handle;
  WEIR_TRY(describe(frame, node));
  node->node.shapes[0] = shape_now(arena, variable);
  if (!node->node.shapes[0]) return weir_out_of_memory();
  WEIR_TRY(join(frame, node));
  weir_resource_retain(&variable->base);
  node->variable = variable;
  *out_node = node;
  return NULL;
}

static weir_status_t* run_node(frame_t* frame, eager_node_t* node, const char* name);

static bool is_current(eager_node_t* node) {
  weir_mutex_lock(&node->variable->mu);
  bool is_current = node->variable->tensor == node->values[0].tensor;
  weir_mutex_unlock(&node->variable->mu);
  return is_current;
}

// The read of a live node's variable that shows what it holds now.
static weir_status_t* renew(frame_t* frame, eager_node_t* node, eager_node_t** out_node) {
  eager_node_t* newest = node->newest ? node->newest : node;
  if (newest->values[0].tensor && !is_current(newest)) {
    WEIR_TRY(add_live(frame, node->node.inputs[0], node->variable, &newest));
    node->newest = newest;
  }
  *out_node = newest;
  if (newest->values[0].tensor) return NULL;
  WEIR_TRY(run_node(frame, newest, newest->node.def.name));
  const weir_shape_t** shapes = make_shapes(&frame->graph->arena, newest);
  if (!shapes) return weir_out_of_memory();
  newest->node.shapes = shapes;
  return NULL;
}

// ---- inputs ----

static weir_status_t* check_edge(const frame_t* frame, weir_edge_t edge) {
  const frame_t* from = frame_of(edge.node->graph);
  if (!from || from->eager != frame->eager)
    return WEIR_STATUS(INVALID_ARGUMENT, "'%s:%d' is of another graph", edge.node->def.name,
                       edge.index);
  if (edge.index >= 0 && edge.index < edge.node->def.output_count) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "'%s:%d': the node has %d outputs", edge.node->def.name,
                     edge.index, edge.node->def.output_count);
}

static weir_status_t* no_edge(void) { return WEIR_STATUS(INVALID_ARGUMENT, "an input is no edge"); }

static weir_status_t* resolve(frame_t* frame, weir_edge_t edge, weir_edge_t* out_edge) {
  if (!edge.node) return no_edge();
  WEIR_TRY(check_edge(frame, edge));
  if (edge.node->graph != frame->graph) WEIR_TRY(import(frame, edge, &edge));
  if (node_of(edge)->variable) {
    eager_node_t* newest = NULL;
    WEIR_TRY(renew(frame, node_of(edge), &newest));
    edge.node = &newest->node;
  }
  *out_edge = edge;
  return NULL;
}

weir_status_t* weir_eager_local(weir_graph_t* graph, weir_edge_t edge, weir_edge_t* out_edge) {
  return resolve(frame_of(graph), edge, out_edge);
}

weir_status_t* weir_eager_source(weir_graph_t* graph, weir_edge_t edge, weir_edge_t* out_edge) {
  frame_t* frame = frame_of(graph);
  if (!edge.node) return no_edge();
  WEIR_TRY(check_edge(frame, edge));
  if (edge.node->graph != graph) WEIR_TRY(import(frame, edge, &edge));
  *out_edge = node_of(edge)->variable ? edge.node->inputs[0] : edge;
  return NULL;
}

weir_edge_t weir_eager_live_handle(weir_edge_t edge) {
  bool is_live = edge.node && frame_of(edge.node->graph) && node_of(edge)->variable;
  return is_live ? edge.node->inputs[0] : WEIR_NO_EDGE;
}

// The inputs as the node keeps them.
static weir_status_t* resolve_inputs(frame_t* frame, weir_edges_t given, weir_edge_t** out_inputs) {
  if (given.count < 0) return WEIR_STATUS(INVALID_ARGUMENT, "%d inputs", given.count);
  weir_edge_t* inputs =
      weir_arena_array(&frame->graph->arena, (size_t)given.count, sizeof(*inputs));
  if (!inputs) return weir_out_of_memory();
  for (int i = 0; i < given.count; ++i) {
    weir_edge_t edge = given.items[i];
    bool is_plain = edge.node && edge.node->graph == frame->graph && edge.index >= 0 &&
                    edge.index < edge.node->def.output_count && !node_of(edge)->variable;
    if (WEIR_LIKELY(is_plain)) inputs[i] = edge;
    else WEIR_TRY(resolve(frame, edge, &inputs[i]));
  }
  *out_inputs = inputs;
  return NULL;
}

// ---- running ----

enum { FEW = 8 };

static weir_status_t* run_node(frame_t* frame, eager_node_t* node, const char* name) {
  weir_eager_value_t few[FEW];
  size_t count = (size_t)node->node.def.input_count;
  weir_eager_value_t* inputs = count > FEW ? weir_alloc_array(count, sizeof(*inputs)) : few;
  if (!inputs) return weir_out_of_memory();
  few[0] = (weir_eager_value_t){.device = 0};
  for (size_t i = 0; i < count; ++i) {
    const eager_node_t* from = node_of(node->node.inputs[i]);
    inputs[i] = (weir_eager_value_t){.value = from->values[node->node.inputs[i].index],
                                     .device = from->device};
  }
  weir_status_t* status = weir_eager_execute(frame->eager, node->op, &frame->step, name, inputs,
                                             node->values, &node->device);
  if (inputs != few) weir_free(inputs);
  return status;
}

// ---- constants ----

// What all constants of a type have in common: their own value is a scalar that nobody sees.
static weir_status_t* find_const_op(frame_t* frame, const weir_node_params_t* params,
                                    weir_dtype_t dtype, weir_eager_op_t** out_op) {
  weir_tensor_t* none = NULL;
  WEIR_TRY(weir_tensor_create(dtype, 0, NULL, &none));
  if (weir_dtype_is_plain(dtype)) memset(none->data, 0, weir_dtype_size(dtype));
  weir_eager_ask_t ask = {
      .op = "Const",
      .device = params->device,
      .attrs = WEIR_ATTRS(weir_attr_tensor("value", none), weir_attr_type("dtype", dtype))};
  weir_status_t* status =
      weir_eager_find_op(frame->eager, &ask, weir_eager_ask_hash(&ask), params->name, out_op);
  weir_tensor_release(none);
  return status;
}

static weir_status_t* own_attrs(frame_t* frame, eager_node_t* node, weir_tensor_t* value) {
  weir_attrs_t common = node->op->def.attrs;
  weir_named_attr_t* items = weir_arena_array(&frame->graph->arena, common.count, sizeof(*items));
  if (!items) return weir_out_of_memory();
  memcpy(items, common.items, common.count * sizeof(*items));
  for (size_t i = 0; i < common.count; ++i) {
    if (items[i].value.kind == WEIR_ATTR_TENSOR) items[i].value = weir_attr_tensor("", value).value;
  }
  node->node.def.attrs.items = items;
  return NULL;
}

static weir_status_t* add_const(frame_t* frame, const weir_node_params_t* params,
                                weir_tensor_t* value, weir_node_t** out_node) {
  weir_eager_op_t* op = NULL;
  WEIR_TRY(find_const_op(frame, params, weir_tensor_type(value), &op));
  eager_node_t* node = make_node(frame, op, NULL);
  if (!node) return weir_out_of_memory();
  WEIR_TRY(own_attrs(frame, node, value));
  node->values[0].tensor = weir_tensor_retain(value);
  weir_status_t* status = describe(frame, node);
  if (!status) status = join(frame, node);
  if (status) release_values(node);
  *out_node = &node->node;
  return status;
}

// The tensor of a constant that is asked for as it should be; NULL: the op's checks will tell.
static weir_tensor_t* constant_of(const weir_node_params_t* params) {
  if (strcmp(params->op, "Const") || params->inputs.count) return NULL;
  const weir_attr_t* value = weir_attrs_find(params->attrs, "value");
  const weir_attr_t* dtype = weir_attrs_find(params->attrs, "dtype");
  bool is_whole = value && value->kind == WEIR_ATTR_TENSOR && !value->is_list && value->u.tensor &&
                  dtype && dtype->kind == WEIR_ATTR_TYPE && !dtype->is_list &&
                  dtype->u.type == weir_tensor_type(value->u.tensor);
  return is_whole ? value->u.tensor : NULL;
}

// ---- nodes with state of their own name ----

// Variables belong to the context, by their names; all else goes with the frame.
static weir_status_t* place_state(frame_t* frame, const weir_op_t* op, weir_eager_ask_t* ask) {
  const weir_attr_t* given = weir_attrs_find(ask->attrs, "container");
  bool is_given = given && given->kind == WEIR_ATTR_STRING && given->u.s.size > 0;
  if (op->role == WEIR_ROLE_VARIABLE || is_given || !weir_op_attr(op, "container")) return NULL;
  weir_named_attr_t* items =
      weir_arena_array(&frame->graph->arena, ask->attrs.count + 1, sizeof(*items));
  if (!items) return weir_out_of_memory();
  size_t count = 0;
  for (size_t i = 0; i < ask->attrs.count; ++i) {
    if (strcmp(ask->attrs.items[i].name, "container")) items[count++] = ask->attrs.items[i];
  }
  items[count++] = weir_attr_string("container", frame->container);
  ask->attrs = (weir_attrs_t){.items = items, .count = count};
  frame->has_state = true;
  return NULL;
}

static weir_status_t* make_own_op(frame_t* frame, const weir_op_t* op, weir_eager_ask_t ask,
                                  const char* name, weir_eager_op_t** out_op) {
  if (!WEIR_GROW(frame->own_ops, frame->own_capacity, frame->own_count + 1))
    return weir_out_of_memory();
  WEIR_TRY(place_state(frame, op, &ask));
  WEIR_TRY(weir_eager_make_op(frame->eager, &ask, name, out_op));
  (*out_op)->is_unique = true;
  frame->own_ops[frame->own_count++] = *out_op;
  return NULL;
}

// They have names, and what shape functions say of what they hold.
static weir_status_t* finish_own(eager_node_t* node) {
  const weir_shape_t** shapes = node->node.shapes;
  WEIR_TRY(weir_node_alloc_shapes(&node->node));
  WEIR_TRY(weir_graph_infer(&node->node));
  node->node.shapes = shapes;
  return weir_graph_register(node->node.graph, &node->node);
}

// ---- adding ----

static weir_status_t* find_op(frame_t* frame, const weir_node_params_t* params,
                              const weir_edge_t* inputs, const char** name,
                              weir_eager_op_t** out_op) {
  weir_dtype_t few[FEW];
  size_t count = (size_t)params->inputs.count;
  weir_dtype_t* types =
      count > FEW ? weir_arena_array(&frame->graph->arena, count, sizeof(*types)) : few;
  if (!types) return weir_out_of_memory();
  for (size_t i = 0; i < count; ++i) types[i] = weir_edge_dtype(inputs[i]);
  weir_eager_ask_t ask = {.op = params->op,
                          .device = params->device,
                          .attrs = params->attrs,
                          .types = types,
                          .input_count = params->inputs.count,
                          .refuse_attrs = params->refuse_attrs};
  uint64_t hash = weir_eager_ask_hash(&ask);
  weir_eager_op_t** recent = &frame->recent[hash & (RECENT - 1)];
  if (WEIR_LIKELY(*recent && weir_eager_op_answers(*recent, &ask, hash))) {
    *out_op = *recent;
    return NULL;
  }
  const weir_op_t* op = weir_graph_find_op(frame->graph, params->op);
  if (op && weir_eager_op_is_unique(op)) {
    *name = weir_node_params_name(frame->graph, params);
    return *name ? make_own_op(frame, op, ask, *name, out_op) : weir_out_of_memory();
  }
  WEIR_TRY(weir_eager_find_op(frame->eager, &ask, hash, params->name, out_op));
  *recent = *out_op;
  return NULL;
}

static weir_status_t* add_run(frame_t* frame, const weir_node_params_t* params,
                              weir_node_t** out_node) {
  weir_edge_t* inputs = NULL;
  weir_eager_op_t* op = NULL;
  const char* name = params->name;
  WEIR_TRY(resolve_inputs(frame, params->inputs, &inputs));
  WEIR_TRY(find_op(frame, params, inputs, &name, &op));
  eager_node_t* node = make_node(frame, op, inputs);
  if (!node) return weir_out_of_memory();
  weir_status_t* status = run_node(frame, node, name);
  if (!status) status = describe(frame, node);
  if (!status) status = op->is_unique ? finish_own(node) : join(frame, node);
  if (status) release_values(node);
  *out_node = &node->node;
  return status;
}

static weir_status_t* add(weir_graph_adder_t* self, const weir_node_params_t* params,
                          weir_node_t** out_node) {
  frame_t* frame = (frame_t*)self;
  weir_tensor_t* constant = constant_of(params);
  weir_node_t* node = NULL;
  weir_status_t* status =
      constant ? add_const(frame, params, constant, &node) : add_run(frame, params, &node);
  if (!status) *out_node = node;
  return status;
}

// ---- variables ----

static weir_status_t* find_variable(frame_t* frame, weir_edge_t handle, weir_variable_t** out) {
  const weir_handle_t* h = weir_tensor_handle(node_of(handle)->values[0].tensor);
  weir_resources_t* resources =
      weir_resources_of(frame->step.session_resources, node_of(handle)->device);
  weir_resource_t* found = NULL;
  weir_status_t* status = weir_resources_find(resources, weir_view_of(h->container),
                                              weir_view_of(h->name), &weir_variable_type, &found);
  *out = (weir_variable_t*)found;
  if (weir_status_code(status) != WEIR_NOT_FOUND) return status;
  weir_status_destroy(status);
  return NULL;
}

// Whether there is a value of the type and shape that |initial| would give it.
static weir_status_t* check_variable(weir_variable_t* variable, const char* name,
                                     weir_edge_t initial, bool* out_is_set) {
  weir_tensor_t* value = weir_variable_read(variable);
  const weir_shape_t* shape = weir_edge_shape(initial);
  weir_dtype_t dtype = weir_dtype_base(weir_edge_dtype(initial));
  *out_is_set = value != NULL;
  bool fits =
      !value || (variable->dtype == dtype && weir_shape_accepts(shape, value->rank, value->dims));
  weir_status_t* status = NULL;
  if (!fits) {
    char have[WEIR_SHAPE_TEXT_SIZE], want[WEIR_SHAPE_TEXT_SIZE];
    status = WEIR_STATUS(INVALID_ARGUMENT,
                         "variable '%s' is there already, as %s%s: it cannot be made as %s%s", name,
                         weir_dtype_name(variable->dtype), weir_tensor_shape_text(value, have),
                         weir_dtype_name(dtype), weir_shape_text(shape->rank, shape->dims, want));
  }
  weir_tensor_release(value);
  return status;
}

weir_status_t* weir_eager_variable(weir_graph_t* graph, weir_edge_t handle, weir_edge_t initial,
                                   weir_edge_t* out_value, weir_node_t** out_initializer) {
  frame_t* frame = frame_of(graph);
  weir_variable_t* variable = NULL;
  eager_node_t* live = NULL;
  bool is_set = false;
  *out_initializer = NULL;
  weir_status_t* status = find_variable(frame, handle, &variable);
  if (!status && variable)
    status = check_variable(variable, handle.node->def.name, initial, &is_set);
  if (!status && !is_set) {
    weir_node_params_t params = {.op = "AssignVariableOp",
                                 .prefix = handle.node->def.name,
                                 .name = "Assign",
                                 .inputs = WEIR_EDGES(handle, initial)};
    status = add(&frame->base, &params, out_initializer);
    if (!status && !variable) status = find_variable(frame, handle, &variable);
  }
  if (!status && !variable)
    status = WEIR_STATUS(INTERNAL, "variable '%s' was not made", handle.node->def.name);
  if (!status) status = add_live(frame, handle, variable, &live);
  if (!status) *out_value = (weir_edge_t){.node = &live->node, .index = 0};
  if (variable) weir_resource_release(&variable->base);
  return status;
}

// ---- values ----

weir_status_t* weir_eager_read(weir_graph_t* graph, weir_edge_t edge, weir_tensor_t** out_tensor) {
  frame_t* frame = frame_of(graph);
  WEIR_TRY(resolve(frame, edge, &edge));
  const eager_node_t* node = node_of(edge);
  const weir_value_t* value = &node->values[edge.index];
  weir_tensor_t* tensor =
      value->ref ? weir_variable_read(value->ref) : weir_tensor_retain(value->tensor);
  if (!tensor)
    return WEIR_STATUS(FAILED_PRECONDITION, "output %d of '%s' has no value", edge.index,
                       edge.node->def.name);
  weir_status_t* status =
      weir_eager_move(frame->eager, tensor, node->device, WEIR_EAGER_HOST, out_tensor);
  weir_tensor_release(tensor);
  return status;
}

// ---- the frame ----

void weir_eager_cancel_frame(weir_graph_t* graph) {
  weir_cancel_start(frame_of(graph)->step.cancel);
}

static void destroy(weir_graph_adder_t* self) {
  frame_t* frame = (frame_t*)self;
  weir_eager_t* eager = frame->eager;
  for (size_t i = 0; i < frame->graph->node_count; ++i)
    release_values((eager_node_t*)frame->graph->nodes[i]);
  for (size_t i = 0; i < frame->own_count; ++i) weir_eager_op_destroy(eager, frame->own_ops[i]);
  weir_free(frame->own_ops);
  weir_map_free(&frame->imports);
  if (frame->has_state)
    weir_resources_clear(frame->step.session_resources, weir_view_of(frame->container));
  weir_eager_step_deinit(&frame->step);
  weir_free(frame);
  weir_eager_unref(eager);
}

static const weir_graph_adder_vtable_t frame_vtable = {
    .add = add, .build_call_grad = weir_eager_build_call_grad, .destroy = destroy};

weir_status_t* weir_eager_frame_create(weir_eager_t* eager, weir_graph_t** out_graph) {
  weir_graph_t* graph = NULL;
  WEIR_TRY(weir_graph_new(eager->graph->registry, &graph));
  weir_function_library_release(graph->library);
  graph->library = weir_function_library_retain(eager->graph->library);
  frame_t* frame = weir_calloc(1, sizeof(*frame));
  if (!frame) {
    weir_graph_unref(graph);
    return weir_out_of_memory();
  }
  frame->base.vtable = &frame_vtable;
  frame->graph = graph;
  frame->eager = weir_eager_ref(eager);
  frame->imports.owns_keys = true;
  graph->adder = &frame->base;
  weir_status_t* status = weir_eager_step_init(eager, &frame->step);
  frame->id = frame->step.id;
  snprintf(frame->container, sizeof(frame->container), "scope_%" PRId64, frame->id);
  if (status) weir_graph_unref(graph);
  else *out_graph = graph;
  return status;
}

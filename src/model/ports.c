// ports.c — Binds the signatures of a model to the edges of its graph.
#include "model/model.h"
#include "tensor/tensor_proto.h"

void weir_model_list_ports(const weir_model_port_t* ports, int count, weir_strbuf_t* out) {
  if (!count) weir_strbuf_puts(out, "none");
  for (int i = 0; i < count; ++i) weir_strbuf_printf(out, "%s'%s'", i ? ", " : "", ports[i].name);
}

// ---- signatures that a file names ----

static const weir_shape_t* shape_of(weir_edge_t edge, const weir_shape_t* said) {
  const weir_shape_t* inferred = weir_edge_shape(edge);
  return said->rank < 0 && inferred ? inferred : said;
}

static weir_status_t* keep_dims(weir_arena_t* arena, const weir_shape_t* shape,
                                weir_model_port_t* port) {
  int rank = WEIR_MAX(shape->rank, 0);
  int64_t* dims = weir_arena_array(arena, (size_t)rank, sizeof(*dims));
  if (!dims) return weir_out_of_memory();
  for (int i = 0; i < rank; ++i) dims[i] = shape->dims[i];
  port->rank = shape->rank;
  port->dims = dims;
  return NULL;
}

static weir_status_t* bind_port(weir_model_t* model, const weir_port_info_t* info,
                                weir_model_port_t* port) {
  WEIR_TRY(weir_graph_find_edge(model->graph, weir_view_of(info->tensor), &port->edge));
  weir_dtype_t dtype = weir_dtype_base(weir_edge_dtype(port->edge));
  if (info->dtype && dtype && info->dtype != dtype) {
    return WEIR_STATUS(INVALID_ARGUMENT, "'%s' is said to be %s, but %s is %s", info->name,
                       weir_dtype_name(info->dtype), info->tensor, weir_dtype_name(dtype));
  }
  port->name = weir_arena_strndup(&model->arena, info->name, strlen(info->name));
  port->tensor = weir_arena_strndup(&model->arena, info->tensor, strlen(info->tensor));
  port->dtype = dtype ? dtype : info->dtype;
  if (!port->name || !port->tensor) return weir_out_of_memory();
  return keep_dims(&model->arena, shape_of(port->edge, info->shape), port);
}

static weir_status_t* bind_ports(weir_model_t* model, const weir_port_list_t* list,
                                 const weir_model_port_t** out_ports) {
  weir_model_port_t* ports = weir_arena_array(&model->arena, list->count, sizeof(*ports));
  if (!ports) return weir_out_of_memory();
  for (size_t i = 0; i < list->count; ++i) WEIR_TRY(bind_port(model, &list->items[i], &ports[i]));
  *out_ports = ports;
  return NULL;
}

static weir_status_t* read_defaults(weir_model_t* model, const weir_port_list_t* list,
                                    weir_bound_signature_t* bound) {
  bound->defaults = weir_arena_array(&model->arena, list->count, sizeof(weir_tensor_t*));
  if (!bound->defaults) return weir_out_of_memory();
  for (size_t i = 0; i < list->count; ++i) {
    if (!list->items[i].default_value.size) continue;
    WEIR_TRY(
        weir_status_prefix(weir_tensor_parse(list->items[i].default_value, &bound->defaults[i]),
                           "default of '%s': ", list->items[i].name));
  }
  return NULL;
}

static weir_status_t* bind_signature(weir_model_t* model, const weir_signature_info_t* info,
                                     weir_bound_signature_t* bound) {
  weir_signature_t* out = &bound->info;
  out->name = weir_arena_strndup(&model->arena, info->name, strlen(info->name));
  out->method = weir_arena_strndup(&model->arena, info->method, strlen(info->method));
  if (!out->name || !out->method) return weir_out_of_memory();
  weir_status_t* status = bind_ports(model, &info->inputs, &out->inputs);
  if (!status) status = bind_ports(model, &info->outputs, &out->outputs);
  if (status) return weir_status_prefix(status, "signature '%s': ", info->name);
  out->output_count = (int)info->outputs.count;
  out->input_count = (int)info->inputs.count;
  return weir_status_prefix(read_defaults(model, &info->inputs, bound),
                            "signature '%s': ", info->name);
}

static weir_status_t* make_room(weir_model_t* model, size_t count) {
  model->signatures = weir_arena_array(&model->arena, count, sizeof(*model->signatures));
  return model->signatures ? NULL : weir_out_of_memory();
}

weir_status_t* weir_model_bind(weir_model_t* model, const weir_meta_graph_t* meta) {
  WEIR_TRY(make_room(model, meta->signature_count));
  for (size_t i = 0; i < meta->signature_count; ++i) {
    ++model->signature_count;  // what it holds is released, even of half a signature
    WEIR_TRY(bind_signature(model, &meta->signatures[i], &model->signatures[i]));
  }
  return NULL;
}

// ---- the signature of a graph that names none ----

static bool is_input(const weir_node_t* node) {
  return weir_node_role(node) == WEIR_ROLE_PLACEHOLDER && node->def.output_count == 1;
}

// What a caller may want to see: values, neither handles nor references to variables.
static bool is_value(weir_dtype_t dtype) {
  return weir_dtype_is_valid(dtype) && dtype != WEIR_DTYPE_RESOURCE && dtype != WEIR_DTYPE_VARIANT;
}

typedef struct guess_t {
  weir_model_t* model;
  bool* is_read;        // by node
  bool* follows_input;  // by node: some placeholder leads there
  bool has_inputs;
  weir_port_list_t inputs, outputs;
} guess_t;

// Notes what |node| reads, and whether an input leads to it; true when that is new.
static bool look_at(guess_t* guess, const weir_node_t* node) {
  bool follows = is_input(node);
  guess->has_inputs = guess->has_inputs || follows;
  for (int k = 0; k < node->def.input_count; ++k) {
    guess->is_read[node->inputs[k].node->id] = true;
    follows = follows || guess->follows_input[node->inputs[k].node->id];
  }
  for (int k = 0; k < node->control_count; ++k)
    guess->is_read[node->control_inputs[k]->id] = true;  // it is there for something else
  bool is_new = follows && !guess->follows_input[node->id];
  guess->follows_input[node->id] = follows;
  return is_new;
}

static weir_status_t* look_around(guess_t* guess, weir_arena_t* arena) {
  const weir_graph_t* graph = guess->model->graph;
  weir_node_t** order = NULL;
  guess->is_read = weir_arena_array(arena, graph->node_count, sizeof(bool));
  guess->follows_input = weir_arena_array(arena, graph->node_count, sizeof(bool));
  if (!guess->is_read || !guess->follows_input) return weir_out_of_memory();
  WEIR_TRY(weir_graph_order(graph, arena, &order));
  for (bool has_changed = true; has_changed;) {  // once more for each loop that a loop is in
    has_changed = false;
    for (size_t i = 0; i < graph->node_count; ++i)
      has_changed = look_at(guess, order[i]) || has_changed;
  }
  return NULL;
}

static weir_status_t* add_edge(guess_t* guess, weir_port_list_t* list, weir_edge_t edge) {
  weir_arena_t* arena = &guess->model->arena;
  const char* name = edge.node->def.name;
  weir_port_info_t port = {
      .name = edge.index ? weir_arena_printf(arena, "%s:%d", name, edge.index) : name,
      .tensor = weir_arena_printf(arena, "%s:%d", name, edge.index),
      .shape = &weir_shape_unknown};
  if (!port.name || !port.tensor) return weir_out_of_memory();
  if (!WEIR_GROW(list->items, list->capacity, list->count + 1)) return weir_out_of_memory();
  list->items[list->count++] = port;
  return NULL;
}

static weir_status_t* add_node(guess_t* guess, weir_node_t* node) {
  if (is_input(node)) {
    WEIR_TRY(add_edge(guess, &guess->inputs, (weir_edge_t){.node = node, .index = 0}));
    return NULL;
  }
  if (guess->is_read[node->id] || (guess->has_inputs && !guess->follows_input[node->id]))
    return NULL;
  for (int i = 0; i < node->def.output_count; ++i) {
    if (is_value(node->def.output_types[i]))
      WEIR_TRY(add_edge(guess, &guess->outputs, (weir_edge_t){.node = node, .index = i}));
  }
  return NULL;
}

static weir_status_t* bind_guess(guess_t* guess, weir_arena_t* arena) {
  weir_model_t* model = guess->model;
  WEIR_TRY(look_around(guess, arena));
  for (size_t i = 0; i < model->graph->node_count; ++i)
    WEIR_TRY(add_node(guess, model->graph->nodes[i]));
  weir_signature_info_t info = {.name = "serving_default",
                                .method = "tensorflow/serving/predict",
                                .inputs = guess->inputs,
                                .outputs = guess->outputs};
  WEIR_TRY(make_room(model, 1));
  ++model->signature_count;
  return bind_signature(model, &info, &model->signatures[0]);
}

weir_status_t* weir_model_bind_default(weir_model_t* model) {
  guess_t guess = {.model = model};
  weir_arena_t arena = {0};
  weir_status_t* status = bind_guess(&guess, &arena);
  weir_free(guess.inputs.items);
  weir_free(guess.outputs.items);
  weir_arena_free(&arena);
  return status;
}

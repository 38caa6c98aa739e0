// import.c — TF_GraphImportGraphDef*: what the options ask for is done to the message, node by
// node, before the graph imports it.
//
// Names get their prefix or number, inputs that are mapped name what they are mapped to, and nodes
// that need nothing of the GraphDef get the control inputs. What the graph then reads is an
// ordinary GraphDef whose nodes may name nodes that the graph has.
#include "tensorflow/import.h"

#include "tensorflow/internal.h"
#include "wire/wire.h"

enum { GRAPH_NODE = 1 };
enum { NODE_NAME = 1, NODE_INPUT = 3, NODE_DEVICE = 4, NODE_ATTR = 5 };

typedef struct import_t {
  weir_graph_t* graph;
  TF_ImportGraphDefOptions* options;
  weir_arena_t arena;
  const char* prefix;  // with its '/'; "" for none
  weir_map_t names;    // in the GraphDef → in the graph
  weir_map_t taken;    // names in the graph that the import gives
  weir_strbuf_t out;
} import_t;

// "name:2", "^name", "name".
typedef struct reference_t {
  weir_view_t name;
  int64_t index;
  bool is_control;
} reference_t;

static reference_t parse_reference(weir_view_t text) {
  reference_t ref = {.name = text};
  if (text.size && text.data[0] == '^') {
    ref.is_control = true;
    ref.name = weir_view(text.data + 1, text.size - 1);
    return ref;
  }
  size_t colon = text.size;
  while (colon > 0 && text.data[colon - 1] != ':') --colon;
  int64_t index = 0;
  const bool has_index =
      colon > 1 && weir_parse_int64(weir_view(text.data + colon, text.size - colon), &index);
  if (!has_index || index < 0) return ref;
  ref.name.size = colon - 1;
  ref.index = index;
  return ref;
}

// ---- names ----

static bool is_taken(const import_t* import, const char* name) {
  return weir_graph_find(import->graph, weir_view_of(name)) ||
         weir_map_find(&import->taken, weir_view_of(name));
}

static weir_status_t* choose_name(import_t* import, weir_view_t name, const char** out_name) {
  const char* base =
      weir_arena_printf(&import->arena, "%s%.*s", import->prefix, WEIR_VIEW_ARG(name));
  const char* chosen = base;
  for (int i = 1; chosen && import->options->uniquify_names && is_taken(import, chosen); ++i)
    chosen = weir_arena_printf(&import->arena, "%s_%d", base, i);
  if (!chosen) return weir_out_of_memory();
  *out_name = chosen;
  return weir_map_put(&import->taken, weir_view_of(chosen), (void*)(uintptr_t)chosen);
}

static weir_status_t* name_node(import_t* import, weir_view_t node) {
  weir_view_t name = {0};
  weir_wire_reader_t r = weir_wire_reader(node);
  while (weir_wire_next(&r)) {
    if (r.field == NODE_NAME && r.type == WEIR_WIRE_BYTES) name = r.bytes;
  }
  WEIR_TRY(weir_wire_check(&r, "NodeDef"));
  if (weir_map_find(&import->names, name))
    return WEIR_STATUS(INVALID_ARGUMENT, "Node '%.*s' is not unique", WEIR_VIEW_ARG(name));
  const char* chosen = NULL;
  WEIR_TRY(choose_name(import, name, &chosen));
  return weir_map_put(&import->names, name, (void*)(uintptr_t)chosen);
}

static weir_status_t* name_nodes(import_t* import, weir_view_t graph_def) {
  weir_wire_reader_t r = weir_wire_reader(graph_def);
  while (weir_wire_next(&r)) {
    if (r.field == GRAPH_NODE && r.type == WEIR_WIRE_BYTES) WEIR_TRY(name_node(import, r.bytes));
  }
  return weir_wire_check(&r, "GraphDef");
}

// ---- nodes ----

typedef struct inputs_t {
  weir_strbuf_t data;
  weir_strbuf_t controls;
  bool depends;  // on a node of the GraphDef
} inputs_t;

static tf_input_mapping_t* find_mapping(import_t* import, const reference_t* ref) {
  for (size_t i = 0; i < import->options->mapping_count; ++i) {
    tf_input_mapping_t* mapping = &import->options->mappings[i];
    const bool is_index = ref->is_control ? mapping->index < 0 : mapping->index == ref->index;
    if (is_index && weir_view_is(ref->name, mapping->name)) return mapping;
  }
  return NULL;
}

static void put_input(inputs_t* inputs, bool is_control, const char* name, int64_t index) {
  weir_strbuf_t* out = is_control ? &inputs->controls : &inputs->data;
  const size_t begin = weir_wire_begin(out, NODE_INPUT);
  if (is_control) weir_strbuf_putc(out, '^');
  weir_strbuf_puts(out, name);
  if (!is_control && index) weir_strbuf_printf(out, ":%lld", (long long)index);
  weir_wire_end(out, begin);
}

static weir_status_t* map_input(import_t* import, weir_view_t node, weir_view_t text,
                                inputs_t* inputs) {
  const reference_t ref = parse_reference(text);
  tf_input_mapping_t* mapping = find_mapping(import, &ref);
  if (mapping) {
    mapping->is_used = true;
    put_input(inputs, ref.is_control, mapping->to.node->def.name, mapping->to.index);
    return NULL;
  }
  const char* name = weir_map_find(&import->names, ref.name);
  if (!name)
    return WEIR_STATUS(INVALID_ARGUMENT, "Node '%.*s': Unknown input node '%.*s'",
                       WEIR_VIEW_ARG(node), WEIR_VIEW_ARG(text));
  put_input(inputs, ref.is_control, name, ref.index);
  inputs->depends = true;
  return NULL;
}

// "loc:@name" of a node of the GraphDef names what it is called now.
static void put_place(const import_t* import, weir_view_t place, weir_strbuf_t* out) {
  static const char scheme[] = "loc:@";
  const size_t size = sizeof(scheme) - 1;
  const char* name =
      weir_view_starts_with(place, scheme)
          ? weir_map_find(&import->names, weir_view(place.data + size, place.size - size))
          : NULL;
  const size_t begin = weir_wire_begin(out, 2);  // AttrValue.ListValue.s
  if (name) weir_strbuf_printf(out, "%s%s", scheme, name);
  else weir_strbuf_append(out, place.data, place.size);
  weir_wire_end(out, begin);
}

// An entry of NodeDef.attr: only "_class" changes.
static void put_attr(const import_t* import, const weir_wire_reader_t* field, weir_strbuf_t* out) {
  weir_view_t key = {0}, value = {0}, list = {0};
  weir_wire_reader_t r = weir_wire_reader(field->bytes);
  while (weir_wire_next(&r)) {
    if (r.field == 1 && r.type == WEIR_WIRE_BYTES) key = r.bytes;
    if (r.field == 2 && r.type == WEIR_WIRE_BYTES) value = r.bytes;
  }
  weir_wire_reader_t v = weir_wire_reader(value);
  while (weir_wire_next(&v)) {
    if (v.field == 1 && v.type == WEIR_WIRE_BYTES) list = v.bytes;  // AttrValue.list
  }
  if (!weir_view_is(key, "_class") || !list.size) {
    weir_strbuf_append(out, field->raw.data, field->raw.size);
    return;
  }
  const size_t entry = weir_wire_begin(out, NODE_ATTR);
  weir_wire_put_bytes(out, 1, key.data, key.size);
  const size_t in_value = weir_wire_begin(out, 2);
  const size_t in_list = weir_wire_begin(out, 1);
  weir_wire_reader_t l = weir_wire_reader(list);
  while (weir_wire_next(&l)) {
    if (l.field == 2 && l.type == WEIR_WIRE_BYTES) put_place(import, l.bytes, out);
  }
  weir_wire_end(out, in_list);
  weir_wire_end(out, in_value);
  weir_wire_end(out, entry);
}

static weir_status_t* map_node(import_t* import, weir_view_t node) {
  const TF_ImportGraphDefOptions* options = import->options;
  weir_view_t name = {0};
  bool has_device = false;
  inputs_t inputs = {0};
  weir_status_t* status = NULL;
  const size_t begin = weir_wire_begin(&import->out, GRAPH_NODE);
  weir_wire_reader_t r = weir_wire_reader(node);
  while (weir_wire_next(&r)) {
    if (r.field == NODE_NAME && r.type == WEIR_WIRE_BYTES) name = r.bytes;
  }
  const char* chosen = weir_map_find(&import->names, name);
  weir_wire_put_string(&import->out, NODE_NAME, chosen ? chosen : "");
  r = weir_wire_reader(node);
  while (weir_wire_next(&r) && !status) {
    has_device |= r.field == NODE_DEVICE && r.type == WEIR_WIRE_BYTES && r.bytes.size;
    if (r.field == NODE_NAME) continue;
    if (r.field == NODE_INPUT && r.type == WEIR_WIRE_BYTES)
      status = map_input(import, name, r.bytes, &inputs);
    else if (r.field == NODE_ATTR && r.type == WEIR_WIRE_BYTES) put_attr(import, &r, &import->out);
    else weir_strbuf_append(&import->out, r.raw.data, r.raw.size);
  }
  for (size_t i = 0; i < options->control_count && !inputs.depends; ++i)
    put_input(&inputs, true, options->controls[i]->def.name, 0);
  if (!has_device && options->default_device)
    weir_wire_put_string(&import->out, NODE_DEVICE, options->default_device);
  weir_strbuf_append(&import->out, inputs.data.data, inputs.data.size);
  weir_strbuf_append(&import->out, inputs.controls.data, inputs.controls.size);
  weir_wire_end(&import->out, begin);
  weir_strbuf_free(&inputs.data);
  weir_strbuf_free(&inputs.controls);
  return status;
}

static weir_status_t* map_nodes(import_t* import, weir_view_t graph_def) {
  weir_wire_reader_t r = weir_wire_reader(graph_def);
  while (weir_wire_next(&r)) {
    if (r.field == GRAPH_NODE && r.type == WEIR_WIRE_BYTES) WEIR_TRY(map_node(import, r.bytes));
    else weir_strbuf_append(&import->out, r.raw.data, r.raw.size);
  }
  return weir_strbuf_finish(&import->out);
}

// ---- the whole ----

static weir_status_t* choose_prefix(import_t* import) {
  const TF_ImportGraphDefOptions* options = import->options;
  import->prefix = "";
  if (!options->prefix || !*options->prefix) return NULL;
  const size_t size = strlen(options->prefix);
  const size_t used = options->prefix[size - 1] == '/' ? size - 1 : size;
  const char* prefix = weir_arena_strndup(&import->arena, options->prefix, used);
  char* unique = NULL;
  if (prefix && options->uniquify_prefix) unique = tf_graph_unique_prefix(import->graph, prefix);
  if (!prefix || (options->uniquify_prefix && !unique)) return weir_out_of_memory();
  import->prefix = weir_arena_printf(&import->arena, "%s/", unique ? unique : prefix);
  weir_free(unique);
  return import->prefix ? NULL : weir_out_of_memory();
}

static weir_status_t* find_return(const import_t* import, const tf_return_t* wanted,
                                  weir_edge_t* out_edge) {
  const reference_t ref = {.name = weir_view_of(wanted->name), .index = wanted->index};
  tf_input_mapping_t* mapping = find_mapping((import_t*)(uintptr_t)import, &ref);
  const char* name = weir_map_find(&import->names, ref.name);
  if (mapping) {
    mapping->is_used = true;
    *out_edge = mapping->to;
    return NULL;
  }
  weir_node_t* node = name ? weir_graph_find(import->graph, weir_view_of(name)) : NULL;
  if (!node)
    return WEIR_STATUS(INVALID_ARGUMENT, "Requested return tensor '%s:%d' not found in graph def",
                       wanted->name, wanted->index);
  if (wanted->index < 0 || wanted->index >= node->def.output_count)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Invalid return output %d of node '%s', which has %d output(s)",
                       wanted->index, wanted->name, node->def.output_count);
  *out_edge = (weir_edge_t){.node = node, .index = wanted->index};
  return NULL;
}

static weir_status_t* fill_results(import_t* import, TF_ImportGraphDefResults* results) {
  const TF_ImportGraphDefOptions* options = import->options;
  for (size_t i = 0; i < options->output_count; ++i) {
    weir_edge_t edge = WEIR_NO_EDGE;
    WEIR_TRY(find_return(import, &options->outputs[i], &edge));
    results->outputs[results->output_count++] = tf_output(edge);
  }
  for (size_t i = 0; i < options->operation_count; ++i) {
    const char* wanted = options->operations[i].name;
    const char* name = weir_map_find(&import->names, weir_view_of(wanted));
    weir_node_t* node = name ? weir_graph_find(import->graph, weir_view_of(name)) : NULL;
    if (!node)
      return WEIR_STATUS(INVALID_ARGUMENT, "Requested return node '%s' not found in graph def",
                         wanted);
    results->operations[results->operation_count++] = tf_operation(node);
  }
  for (size_t i = 0; i < options->mapping_count; ++i) {
    const tf_input_mapping_t* mapping = &options->mappings[i];
    if (mapping->is_used || weir_map_find(&import->names, weir_view_of(mapping->name))) continue;
    results->missing_names[results->missing_count] =
        weir_arena_strndup(&results->arena, mapping->name, strlen(mapping->name));
    if (!results->missing_names[results->missing_count]) return weir_out_of_memory();
    results->missing_indexes[results->missing_count++] = mapping->index;
  }
  return NULL;
}

// What is asked for must be there before anything is added.
static weir_status_t* check_returns(const import_t* import) {
  const TF_ImportGraphDefOptions* options = import->options;
  for (size_t i = 0; i < options->output_count; ++i) {
    const reference_t ref = {.name = weir_view_of(options->outputs[i].name),
                             .index = options->outputs[i].index};
    if (weir_map_find(&import->names, ref.name) || find_mapping((import_t*)(uintptr_t)import, &ref))
      continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "Requested return tensor '%s:%d' not found in graph def",
                       options->outputs[i].name, options->outputs[i].index);
  }
  for (size_t i = 0; i < options->operation_count; ++i) {
    if (weir_map_find(&import->names, weir_view_of(options->operations[i].name))) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "Requested return node '%s' not found in graph def",
                       options->operations[i].name);
  }
  return NULL;
}

static weir_status_t* import_locked(import_t* import, weir_view_t graph_def,
                                    TF_ImportGraphDefResults* results) {
  weir_graph_t* graph = import->graph;
  const int64_t producer = graph->producer;
  const bool was_empty = graph->node_count == 0;
  WEIR_TRY(choose_prefix(import));
  WEIR_TRY(name_nodes(import, graph_def));
  WEIR_TRY(check_returns(import));
  WEIR_TRY(map_nodes(import, graph_def));
  WEIR_TRY(weir_graph_import(graph, weir_strbuf_view(&import->out), NULL));
  if (!was_empty && graph->producer > producer) graph->producer = producer;
  return results ? fill_results(import, results) : NULL;
}

weir_status_t* tf_graph_import_locked(weir_graph_t* graph, weir_view_t graph_def,
                                      const TF_ImportGraphDefOptions* options,
                                      TF_ImportGraphDefResults* results) {
  import_t import = {.graph = graph, .options = (TF_ImportGraphDefOptions*)(uintptr_t)options};
  for (size_t i = 0; i < options->mapping_count; ++i) options->mappings[i].is_used = false;
  weir_status_t* status = import_locked(&import, graph_def, results);
  weir_map_free(&import.names);
  weir_map_free(&import.taken);
  weir_strbuf_free(&import.out);
  weir_arena_free(&import.arena);
  return status;
}

weir_status_t* tf_graph_import(weir_graph_t* graph, weir_view_t graph_def,
                               const TF_ImportGraphDefOptions* options,
                               TF_ImportGraphDefResults* results) {
  weir_mutex_lock(&graph->mu);
  weir_status_t* status = tf_graph_import_locked(graph, graph_def, options, results);
  weir_mutex_unlock(&graph->mu);
  return status;
}

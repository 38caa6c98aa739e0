// saver_graph.c — The nodes of a saver: names, SaveV2, RestoreV2 and assignments, laid out as
// tf.compat.v1.train.Saver lays them out.
#include <stdlib.h>

#include "api/part.h"
#include "api/saver.h"
#include "api/scope.h"
#include "api/tables.h"
#include "base/alloc.h"

// A table to save: its keys and its values are two items.
typedef struct table_t {
  weir_node_t* reader;      // gives both; NULL: not made yet
  weir_edge_t restored[2];  // keys, values
} table_t;

// One tensor to save.
typedef struct item_t {
  weir_edge_t variable;  // a handle or a reference
  table_t* table;        // that this is half of; NULL: a variable
  int half;              // of the table: 0 its keys, 1 its values
  const char* name;
  const char* slice;  // of the tensor |name|; "": all of it
  const char* device;
  weir_dtype_t dtype;
  int order;  // in which they were given
} item_t;
typedef struct items_t {
  item_t* items;
  int count;
} items_t;

static weir_edge_t add(weir_scope_t* s, const char* op, const char* name, weir_edges_t inputs,
                       weir_attrs_t attrs) {
  return weir_scope_first(weir_scope_add(s, op, name, inputs, attrs));
}

// ---- what to save ----

static bool is_handle(weir_edge_t edge) { return weir_edge_dtype(edge) == WEIR_DTYPE_RESOURCE; }

// The handle behind a value, or the edge itself.
static weir_edge_t variable_of(weir_edge_t edge) {
  bool is_read =
      !is_handle(edge) && edge.node->def.input_count == 1 && is_handle(edge.node->inputs[0]);
  return is_read ? edge.node->inputs[0] : edge;
}

// Replaces |part| where the variable of |handle| is one. False after an error, which sticks.
static bool find_part(weir_scope_t* s, const weir_node_t* handle, weir_variable_part_t* part) {
  weir_variable_part_t found;
  weir_status_t* status = weir_part_of(handle, &s->root->arena, &found);
  if (status) weir_scope_fail(s, status);
  if (!status && found.name) *part = found;
  return !status;
}

static void set_variable(weir_scope_t* s, weir_edge_t variable, const char* name, item_t* item) {
  const weir_node_t* node = variable.node;
  weir_variable_part_t part = {.name = node->def.name, .slice = ""};
  if (!find_part(s, node, &part)) return;
  *item = (item_t){.variable = variable,
                   .name = name ? name : part.name,
                   .slice = part.slice,
                   .device = node->def.device,
                   .dtype = weir_attrs_type(node->def.attrs, "dtype")};
}

// "NAME-keys" and "NAME-values", as TensorFlow calls them.
static void set_table(weir_scope_t* s, weir_edge_t handle, const char* name, item_t* items) {
  const weir_node_t* node = handle.node;
  table_t* table = weir_scope_alloc(s, 1, sizeof(*table));
  for (int i = 0; table && i < 2; ++i) {
    const char* half = weir_arena_printf(&s->root->arena, "%s-%s", name ? name : node->def.name,
                                         i ? "values" : "keys");
    if (!half) weir_scope_fail(s, weir_out_of_memory());
    items[i] = (item_t){.variable = handle,
                        .table = table,
                        .half = i,
                        .name = half ? half : "",
                        .slice = "",
                        .device = node->def.device,
                        .dtype = weir_attrs_type(node->def.attrs, i ? "value_dtype" : "key_dtype")};
  }
}

// Returns how many items |saved| is.
static int set_items(weir_scope_t* s, weir_saved_t saved, item_t* items) {
  if (!saved.variable.node) {
    weir_scope_fail(s,
                    WEIR_STATUS(INVALID_ARGUMENT, "saver: a variable is an edge without a node"));
    return 0;
  }
  weir_edge_t variable = variable_of(saved.variable);
  if (weir_table_can_change(variable.node)) {
    set_table(s, variable, saved.name, items);
    return 2;
  }
  if (weir_node_role(variable.node) == WEIR_ROLE_VARIABLE)
    set_variable(s, variable, saved.name, items);
  else
    weir_scope_fail(s, WEIR_STATUS(INVALID_ARGUMENT,
                                   "saver: '%s' (%s) is neither a variable nor a "
                                   "table that can change",
                                   variable.node->def.name, variable.node->def.op_name));
  return 1;
}

// By name; the slices of one tensor stay in order.
static int compare_items(const void* a, const void* b) {
  const item_t *x = a, *y = b;
  const int by_name = strcmp(x->name, y->name);
  return by_name ? by_name : (x->order > y->order) - (x->order < y->order);
}

// Whether both can be in one checkpoint. Slices that overlap are found when they are written.
static bool are_apart(const item_t* a, const item_t* b) {
  return strcmp(a->name, b->name) || (*a->slice && *b->slice && strcmp(a->slice, b->slice));
}

static bool lies_in_file(const weir_node_t* handle) {
  return weir_part_attr(handle, WEIR_VARIABLE_FILE) != NULL;
}

// The variables of the scope or, failing these, of the graph; what lies in files is kept there.
static int count_default(weir_scope_t* s, weir_saved_t* out) {
  int count = 0;
  for (int i = 0; i < weir_scope_variable_count(s); ++i) {
    weir_edge_t handle = weir_scope_variable_at(s, i).handle;
    if (lies_in_file(handle.node)) continue;
    if (out) out[count].variable = handle;
    ++count;
  }
  if (weir_scope_variable_count(s)) return count;
  weir_graph_t* graph = weir_scope_graph(s);
  weir_mutex_lock(&graph->mu);
  for (size_t i = 0; i < graph->node_count; ++i) {
    if (weir_node_role(graph->nodes[i]) != WEIR_ROLE_VARIABLE) continue;
    if (lies_in_file(graph->nodes[i])) continue;
    if (out) out[count].variable = weir_scope_first(graph->nodes[i]);
    ++count;
  }
  weir_mutex_unlock(&graph->mu);
  return count;
}

static items_t sorted(weir_scope_t* s, items_t list) {
  for (int i = 0; i < list.count; ++i) list.items[i].order = i;
  qsort(list.items, (size_t)list.count, sizeof(*list.items), compare_items);
  for (int i = 1; i < list.count; ++i) {
    if (are_apart(&list.items[i - 1], &list.items[i])) continue;
    weir_scope_fail(s, WEIR_STATUS(INVALID_ARGUMENT, "saver: two variables are called '%s'",
                                   list.items[i].name));
  }
  return list;
}

static items_t list_items(weir_scope_t* s, const weir_saver_options_t* options) {
  int count = options->variables ? options->variable_count : count_default(s, NULL);
  const weir_saved_t* saved = options->variables;
  if (count <= 0) weir_scope_fail(s, WEIR_STATUS(INVALID_ARGUMENT, "saver: no variables to save"));
  if (weir_scope_status(s)) return (items_t){0};
  item_t* items = weir_scope_alloc(s, 2 * (size_t)count, sizeof(*items));
  if (!saved) {
    weir_saved_t* all = weir_scope_alloc(s, (size_t)count, sizeof(*all));
    if (all) count_default(s, all);
    saved = all;
  }
  if (!items || !saved) return (items_t){0};
  int item_count = 0;
  for (int i = 0; i < count && !weir_scope_status(s); ++i)
    item_count += set_items(s, saved[i], &items[item_count]);
  if (weir_scope_status(s)) return (items_t){0};
  return sorted(s, (items_t){.items = items, .count = item_count});
}

// ---- constants ----

static weir_edge_t strings(weir_scope_t* s, const char* name, const char* const* values,
                           int count) {
  weir_tensor_t* tensor = NULL;
  weir_status_t* status = NULL;
  if (weir_scope_status(s)) return WEIR_NO_EDGE;
  status = weir_tensor_create_strings(1, &(int64_t){count}, values, NULL, &tensor);
  if (status) weir_scope_fail(s, status);
  weir_edge_t edge = weir_const(weir_scope_name(s, name), tensor);
  weir_tensor_release(tensor);
  return edge;
}

static weir_edge_t names_const(weir_scope_t* s, const char* name, items_t list, bool is_slices) {
  const char** values = weir_scope_alloc(s, (size_t)list.count, sizeof(*values));
  for (int i = 0; values && i < list.count; ++i)
    values[i] = is_slices ? list.items[i].slice : list.items[i].name;
  return values ? strings(s, name, values, list.count) : WEIR_NO_EDGE;
}

// ---- saving ----

static weir_scope_t* on_device(weir_scope_t* s, const char* device) {
  return *device ? weir_scope_on(s, device) : s;
}

static weir_edge_t read_table(weir_scope_t* s, const item_t* item) {
  weir_attrs_t attrs = item->variable.node->def.attrs;
  if (!item->table->reader)
    item->table->reader = weir_scope_add(
        on_device(s, item->device), "LookupTableExportV2", NULL, WEIR_EDGES(item->variable),
        WEIR_ATTRS(weir_attr_type("Tkeys", weir_attrs_type(attrs, "key_dtype")),
                   weir_attr_type("Tvalues", weir_attrs_type(attrs, "value_dtype"))));
  return (weir_edge_t){.node = item->table->reader, .index = item->half};
}

static weir_edge_t read_item(weir_scope_t* s, const item_t* item) {
  if (item->table) return read_table(s, item);
  if (!is_handle(item->variable)) return item->variable;
  return add(on_device(s, item->device), "ReadVariableOp", NULL, WEIR_EDGES(item->variable),
             WEIR_ATTRS(weir_attr_type("dtype", item->dtype)));
}

// Notes what is saved in |saver|, which has room for it.
static weir_node_t* save_items(weir_scope_t* s, weir_saver_t* saver, weir_edge_t filename,
                               items_t list) {
  weir_edge_t* inputs = weir_scope_alloc(s, (size_t)list.count + 3, sizeof(*inputs));
  if (!inputs) return NULL;
  inputs[0] = filename;
  inputs[1] = names_const(s, "SaveV2/tensor_names", list, false);
  inputs[2] = names_const(s, "SaveV2/shape_and_slices", list, true);
  for (int i = 0; i < list.count; ++i) {
    inputs[3 + i] = read_item(s, &list.items[i]);
    saver->values[saver->value_count++] = inputs[3 + i];
  }
  return weir_scope_add(s, "SaveV2", NULL, (weir_edges_t){.items = inputs, .count = list.count + 3},
                        WEIR_NO_ATTRS);
}

// Items of the same device as |list|'s first come first; returns how many.
static int partition(items_t list) {
  int count = 1;
  for (int i = 1; i < list.count; ++i) {
    if (strcmp(list.items[i].device, list.items[0].device)) continue;
    item_t item = list.items[i];
    memmove(&list.items[count + 1], &list.items[count], sizeof(item) * (size_t)(i - count));
    list.items[count++] = item;
  }
  return count;
}

static int count_devices(items_t list) {
  int count = 0;
  for (int at = 0; at < list.count; ++count)
    at += partition((items_t){.items = list.items + at, .count = list.count - at});
  return count;
}

// One shard a device, written beside each other and then merged.
static weir_node_t* save_sharded(weir_scope_t* s, weir_saver_t* saver, items_t list) {
  int count = count_devices(list);
  weir_edge_t total = weir_const_int(weir_scope_name(s, "num_shards"), count);
  weir_edge_t suffix = weir_const_string(s, "_temp/part");
  weir_edge_t base = add(s, "StringJoin", NULL, WEIR_EDGES(saver->filename, suffix), WEIR_NO_ATTRS);
  weir_edge_t* prefixes = weir_scope_alloc(s, (size_t)count, sizeof(*prefixes));
  weir_node_t** nodes = weir_scope_alloc(s, (size_t)count, sizeof(*nodes));
  int at = 0;
  for (int i = 0; i < count && !weir_scope_status(s); ++i) {
    items_t part = {.items = list.items + at, .count = list.count - at};
    part.count = partition(part);
    weir_scope_t* there = on_device(s, part.items[0].device);
    weir_edge_t shard = weir_const_int(weir_scope_name(there, "ShardedFilename/shard"), i);
    prefixes[i] =
        add(there, "ShardedFilename", NULL, WEIR_EDGES(base, shard, total), WEIR_NO_ATTRS);
    nodes[i] = save_items(there, saver, prefixes[i], part);
    at += part.count;
  }
  if (weir_scope_status(s)) return NULL;
  weir_scope_t* after = weir_scope_after(s, nodes, count);
  weir_edge_t packed = add(after, "Pack", "MergeV2Checkpoints/checkpoint_prefixes",
                           (weir_edges_t){.items = prefixes, .count = count}, WEIR_NO_ATTRS);
  return weir_scope_add(s, "MergeV2Checkpoints", NULL, WEIR_EDGES(packed, saver->filename),
                        WEIR_ATTRS(weir_attr_bool("delete_old_dirs", true)));
}

// ---- restoring ----

static weir_node_t* assign_item(weir_scope_t* s, const item_t* item, weir_edge_t value) {
  weir_scope_t* there = on_device(s, item->device);
  if (!is_handle(item->variable))
    return weir_scope_add(there, "Assign", NULL, WEIR_EDGES(item->variable, value), WEIR_NO_ATTRS);
  weir_edge_t same = add(there, "Identity", NULL, WEIR_EDGES(value), WEIR_NO_ATTRS);
  return weir_scope_add(there, "AssignVariableOp", NULL, WEIR_EDGES(item->variable, same),
                        WEIR_NO_ATTRS);
}

// The shape a variable was declared with, when it says so in full; the value read must have it. The
// node is named after the variable, so that a failure says which it was.
static weir_edge_t checked(weir_scope_t* s, const item_t* item, weir_edge_t value) {
  const weir_shape_t* shape = weir_attrs_shape(item->variable.node->def.attrs, "shape");
  if (weir_scope_status(s) || !weir_shape_is_full(shape)) return value;
  return add(s, "EnsureShape", item->variable.node->def.name, WEIR_EDGES(value),
             WEIR_ATTRS(weir_attr_shape("shape", shape)));
}

// NULL while only half of the table is there.
static weir_node_t* fill_table(weir_scope_t* s, const item_t* item, weir_edge_t value) {
  weir_edge_t* halves = item->table->restored;
  halves[item->half] = value;
  if (!halves[0].node || !halves[1].node) return NULL;
  return weir_scope_add(on_device(s, item->device), "LookupTableImportV2", NULL,
                        WEIR_EDGES(item->variable, halves[0], halves[1]), WEIR_NO_ATTRS);
}

static weir_node_t* restore_item(weir_scope_t* s, const item_t* item, weir_edge_t value) {
  if (item->table) return fill_table(s, item, value);
  return assign_item(s, item, checked(s, item, value));
}

// The nodes that map the files of the scope's variables, whether these are saved or not: whoever
// restores does not initialise.
static int map_nodes(weir_scope_t* s, weir_node_t** out_nodes) {
  int count = 0;
  for (int i = 0; i < weir_scope_variable_count(s); ++i) {
    weir_variable_info_t variable = weir_scope_variable_at(s, i);
    if (lies_in_file(variable.handle.node)) out_nodes[count++] = variable.initializer;
  }
  return count;
}

static weir_node_t* restore_items(weir_scope_t* s, weir_edge_t filename, items_t list) {
  const size_t most_mapped = (size_t)weir_scope_variable_count(s);
  weir_dtype_t* types = weir_scope_alloc(s, (size_t)list.count, sizeof(*types));
  weir_node_t** nodes = weir_scope_alloc(s, (size_t)list.count + most_mapped, sizeof(*nodes));
  if (!types || !nodes) return NULL;
  const int mapped_count = map_nodes(s, nodes);
  weir_scope_t* mapped = mapped_count ? weir_scope_after(s, nodes, mapped_count) : s;
  int count = mapped_count;
  for (int i = 0; i < list.count; ++i) types[i] = list.items[i].dtype;
  weir_edge_t names = names_const(s, "RestoreV2/tensor_names", list, false);
  weir_edge_t slices = names_const(s, "RestoreV2/shape_and_slices", list, true);
  weir_edge_t values = add(s, "RestoreV2", NULL, WEIR_EDGES(filename, names, slices),
                           WEIR_ATTRS(weir_attr_types("dtypes", types, (size_t)list.count)));
  for (int i = 0; i < list.count && !weir_scope_status(s); ++i) {
    values.index = i;
    weir_scope_t* after = lies_in_file(list.items[i].variable.node) ? mapped : s;
    weir_node_t* node = restore_item(after, &list.items[i], values);
    if (node) nodes[count++] = node;
  }
  return weir_group(s, "restore_all", nodes, count);
}

void weir_saver_build(weir_saver_t* saver, weir_scope_t* scope,
                      const weir_saver_options_t* options) {
  items_t list = list_items(scope, options);
  if (weir_scope_status(scope)) return;
  weir_scope_t* s = weir_scope_in(weir_scope_lift(scope), options->name ? options->name : "save");
  weir_edge_t initial = weir_const_string(weir_scope_name(s, "filename/input"), "model");
  weir_attrs_t scalar = WEIR_ATTRS(weir_attr_shape("shape", &weir_shape_scalar));
  weir_edge_t name = add(s, "PlaceholderWithDefault", "filename", WEIR_EDGES(initial), scalar);
  saver->filename = add(s, "PlaceholderWithDefault", "Const", WEIR_EDGES(name), scalar);
  saver->values = weir_alloc_array((size_t)list.count, sizeof(*saver->values));
  if (!saver->values) {
    weir_scope_fail(s, weir_out_of_memory());
    return;
  }
  weir_node_t* save = options->is_sharded ? save_sharded(s, saver, list)
                                          : save_items(s, saver, saver->filename, list);
  weir_scope_t* after = weir_scope_after(s, &save, 1);
  saver->saved =
      add(after, "Identity", "control_dependency", WEIR_EDGES(saver->filename), WEIR_NO_ATTRS);
  saver->restored = restore_items(s, saver->filename, list);
}

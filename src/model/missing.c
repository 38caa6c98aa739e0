// missing.c — Which ops a model needs and this build lacks, in its graph and in its functions.
#include "graph/function.h"
#include "model/model.h"
#include "wire/wire.h"

enum { FUNCTION_NODE = 3 };  // of FunctionDef
enum { NODE_OP = 2 };        // of NodeDef

typedef struct scan_t {
  weir_graph_t* graph;
  weir_map_t missing;  // op → where it was seen first; keys are the graph's or the library's
  weir_map_t seen;     // functions
} scan_t;

bool* weir_model_reach(const weir_graph_t* graph, weir_node_t* const* roots, size_t root_count,
                       weir_arena_t* arena) {
  bool* reached = weir_arena_array(arena, graph->node_count + 1, sizeof(*reached));
  const weir_node_t** stack = weir_arena_array(arena, graph->node_count + 1, sizeof(*stack));
  size_t depth = 0;
  if (!reached || !stack) return NULL;
  for (size_t i = 0; i < root_count; ++i) {
    if (!reached[roots[i]->id]) stack[depth++] = roots[i];
    reached[roots[i]->id] = true;
  }
  while (depth) {
    const weir_node_t* node = stack[--depth];
    for (int i = 0; i < node->def.input_count + node->control_count; ++i) {
      bool is_data = i < node->def.input_count;
      const weir_node_t* on =
          is_data ? node->inputs[i].node : node->control_inputs[i - node->def.input_count];
      if (reached[on->id]) continue;
      reached[on->id] = true;
      stack[depth++] = on;
    }
  }
  return reached;
}

static weir_status_t* note_missing(scan_t* scan, weir_view_t op, const char* where) {
  if (weir_map_find(&scan->missing, op)) return NULL;
  return weir_map_put(&scan->missing, op, (void*)(uintptr_t)where);
}

static weir_status_t* scan_op(scan_t* scan, weir_view_t op, const char* where) {
  if (weir_function_find(scan->graph->library, op)) return NULL;
  return weir_registry_find(scan->graph->registry, op) ? NULL : note_missing(scan, op, where);
}

static weir_status_t* scan_node_def(scan_t* scan, weir_view_t node, const char* where) {
  weir_wire_reader_t r = weir_wire_reader(node);
  while (weir_wire_next(&r)) {
    if (r.field == NODE_OP && r.type == WEIR_WIRE_BYTES) WEIR_TRY(scan_op(scan, r.bytes, where));
  }
  return weir_wire_check(&r, "NodeDef");
}

static weir_status_t* scan_function(void* arg, const weir_function_t* function) {
  scan_t* scan = arg;
  weir_view_t name = weir_view_of(function->name);
  if (weir_map_find(&scan->seen, name)) return NULL;
  WEIR_TRY(weir_map_put(&scan->seen, name, (void*)(uintptr_t)function));
  weir_wire_reader_t r = weir_wire_reader(function->def);
  while (weir_wire_next(&r)) {
    if (r.field == FUNCTION_NODE && r.type == WEIR_WIRE_BYTES)
      WEIR_TRY(scan_node_def(scan, r.bytes, function->name));
  }
  return weir_wire_check(&r, "FunctionDef");
}

static weir_status_t* scan_called(scan_t* scan, weir_view_t name) {
  weir_function_library_t* library = scan->graph->library;
  if (weir_map_find(&scan->seen, name) || !weir_function_find(library, name)) return NULL;
  return weir_function_visit_needed(library, name, scan_function, scan);
}

static weir_status_t* scan_node(scan_t* scan, const weir_node_t* node) {
  WEIR_TRY(scan_op(scan, weir_view_of(node->def.op_name), node->def.name));
  WEIR_TRY(scan_called(scan, weir_view_of(node->def.op_name)));
  for (size_t i = 0; i < node->def.attrs.count; ++i) {
    const weir_attr_t* attr = &node->def.attrs.items[i].value;
    if (attr->kind != WEIR_ATTR_FUNC) continue;
    const weir_func_t* funcs = attr->is_list ? attr->u.funcs : attr->u.func;
    for (size_t k = 0; k < (attr->is_list ? attr->count : 1); ++k)
      WEIR_TRY(scan_called(scan, funcs[k].name));
  }
  return NULL;
}

static weir_status_t* scan_reached(scan_t* scan, weir_node_t* const* roots, size_t root_count,
                                   weir_arena_t* arena) {
  const bool* reached = weir_model_reach(scan->graph, roots, root_count, arena);
  if (!reached) return weir_out_of_memory();
  for (size_t i = 0; i < scan->graph->node_count; ++i) {
    if (reached[i]) WEIR_TRY(scan_node(scan, scan->graph->nodes[i]));
  }
  return NULL;
}

static weir_status_t* tell(const weir_map_t* missing) {
  weir_strbuf_t text = {0};
  weir_map_entry_t* entry = NULL;
  for (size_t i = 0; (entry = weir_map_next(missing, &i));) {
    weir_strbuf_printf(&text, "%s%.*s (in '%s')", text.size ? ", " : "", WEIR_VIEW_ARG(entry->key),
                       (const char*)entry->value);
  }
  weir_status_t* status = weir_strbuf_finish(&text);
  if (!status) {
    status =
        WEIR_STATUS(UNIMPLEMENTED, "%zu op%s of the model %s not in this build: %s", missing->count,
                    missing->count == 1 ? "" : "s", missing->count == 1 ? "is" : "are", text.data);
  }
  weir_strbuf_free(&text);
  return status;
}

weir_status_t* weir_model_check_ops(weir_graph_t* graph, weir_node_t* const* roots,
                                    size_t root_count) {
  scan_t scan = {.graph = graph};
  weir_arena_t arena = {0};
  weir_status_t* status = scan_reached(&scan, roots, root_count, &arena);
  if (!status && scan.missing.count) status = tell(&scan.missing);
  weir_arena_free(&arena);
  weir_map_free(&scan.missing);
  weir_map_free(&scan.seen);
  return status;
}

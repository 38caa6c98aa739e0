// function_def.c — Writing a function: a body with arguments and results becomes a FunctionDef of
// the library.
#include <stdio.h>

#include "graph/function.h"
#include "graph/node_def.h"
#include "wire/wire.h"

enum { FUNCTION_SIGNATURE = 1, FUNCTION_NODE = 3, FUNCTION_RET = 4, FUNCTION_CONTROL_RET = 6 };
enum {
  OP_DEF_NAME = 1,
  OP_DEF_INPUT = 2,
  OP_DEF_OUTPUT = 3,
  OP_DEF_DESCRIPTION = 6,
  OP_DEF_IS_STATEFUL = 17,
  OP_DEF_CONTROL_OUTPUT = 20,
};
enum { ARG_NAME = 1, ARG_TYPE = 3 };
enum { ENTRY_KEY = 1, ENTRY_VALUE = 2 };
enum { RESULT_NAME_SIZE = 24 };

// Within a function an output is called "node:argument:index", and an argument by its name alone.
void weir_function_write_value(weir_edge_t edge, weir_strbuf_t* out) {
  const weir_node_def_t* def = &edge.node->def;
  weir_strbuf_puts(out, def->name);
  if (weir_node_role(edge.node) == WEIR_ROLE_ARG) return;
  for (int arg = 0; arg < def->op->output_count; ++arg) {
    int first, size;
    weir_node_output_range(def, arg, &first, &size);
    if (edge.index >= first + size) continue;
    weir_strbuf_printf(out, ":%s:%d", def->op->outputs[arg].name, edge.index - first);
    return;
  }
}

static void write_arg(uint32_t field, const char* name, weir_dtype_t type, weir_strbuf_t* out) {
  size_t begin = weir_wire_begin(out, field);
  weir_wire_put_string(out, ARG_NAME, name);
  weir_wire_put_int(out, ARG_TYPE, weir_dtype_base(type));
  weir_wire_end(out, begin);
}

static const char* result_name(const weir_function_naming_t* naming, int index,
                               char text[RESULT_NAME_SIZE]) {
  if (naming && naming->results) return naming->results[index];
  snprintf(text, RESULT_NAME_SIZE, "result%d", index);
  return text;
}

// Arguments and results are no nodes of the FunctionDef.
static bool is_written(const weir_node_t* node) {
  weir_role_t role = weir_node_role(node);
  return role != WEIR_ROLE_ARG && role != WEIR_ROLE_RETVAL;
}

static bool is_stateful(const weir_graph_t* graph) {
  for (size_t i = 0; i < graph->node_count; ++i) {
    const weir_node_t* node = graph->nodes[i];
    if (is_written(node) && weir_node_has(node, WEIR_OP_STATEFUL)) return true;
  }
  return false;
}

static void write_signature(const char* name, const weir_function_body_t* body,
                            const weir_function_naming_t* naming, weir_strbuf_t* out) {
  char text[RESULT_NAME_SIZE];
  size_t begin = weir_wire_begin(out, FUNCTION_SIGNATURE);
  weir_wire_put_string(out, OP_DEF_NAME, name);
  for (int i = 0; i < body->arg_count; ++i) {
    const weir_node_t* arg = body->args[i];
    write_arg(OP_DEF_INPUT, arg->def.name, arg->def.output_types[0], out);
  }
  for (int i = 0; i < body->ret_count; ++i) {
    weir_edge_t value = body->rets[i]->inputs[0];
    write_arg(OP_DEF_OUTPUT, result_name(naming, i, text), weir_edge_dtype(value), out);
  }
  if (naming && naming->description)
    weir_wire_put_string(out, OP_DEF_DESCRIPTION, naming->description);
  if (is_stateful(body->graph)) weir_wire_put_bool(out, OP_DEF_IS_STATEFUL, true);
  for (int i = 0; naming && i < naming->control_count; ++i)
    weir_wire_put_string(out, OP_DEF_CONTROL_OUTPUT, naming->control_names[i]);
  weir_wire_end(out, begin);
}

static void write_control(const weir_function_naming_t* naming, int index, weir_strbuf_t* out) {
  size_t entry = weir_wire_begin(out, FUNCTION_CONTROL_RET);
  weir_wire_put_string(out, ENTRY_KEY, naming->control_names[index]);
  weir_wire_put_string(out, ENTRY_VALUE, naming->controls[index]->def.name);
  weir_wire_end(out, entry);
}

static void write_result(const weir_function_body_t* body, const weir_function_naming_t* naming,
                         int index, weir_strbuf_t* out) {
  char text[RESULT_NAME_SIZE];
  size_t entry = weir_wire_begin(out, FUNCTION_RET);
  weir_wire_put_string(out, ENTRY_KEY, result_name(naming, index, text));
  size_t value = weir_wire_begin(out, ENTRY_VALUE);
  weir_function_write_value(body->rets[index]->inputs[0], out);
  weir_wire_end(out, value);
  weir_wire_end(out, entry);
}

weir_status_t* weir_function_write_body(const char* name, const weir_function_body_t* body,
                                        const weir_function_naming_t* naming, weir_strbuf_t* out) {
  write_signature(name, body, naming, out);
  for (size_t i = 0; i < body->graph->node_count; ++i) {
    const weir_node_t* node = body->graph->nodes[i];
    if (!is_written(node)) continue;
    size_t begin = weir_wire_begin(out, FUNCTION_NODE);
    WEIR_TRY(weir_function_node_write(node, out));
    weir_wire_end(out, begin);
  }
  for (int i = 0; i < body->ret_count; ++i) write_result(body, naming, i, out);
  for (int i = 0; naming && i < naming->control_count; ++i) write_control(naming, i, out);
  return weir_strbuf_finish(out);
}

weir_status_t* weir_function_library_add_body(weir_function_library_t* library, const char* name,
                                              const weir_function_body_t* body) {
  weir_strbuf_t def = {0};
  weir_status_t* status = weir_function_write_body(name, body, NULL, &def);
  if (!status) status = weir_function_library_add(library, weir_view(def.data, def.size));
  weir_strbuf_free(&def);
  return status;
}

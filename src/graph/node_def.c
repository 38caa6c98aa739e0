// node_def.c — NodeDef messages in and out.
#include "graph/node_def.h"

#include "wire/wire.h"

enum { NODE_NAME = 1, NODE_OP = 2, NODE_INPUT = 3, NODE_DEVICE = 4, NODE_ATTR = 5 };
enum { ENTRY_KEY = 1, ENTRY_VALUE = 2 };

typedef struct counts_t {
  size_t inputs;
  size_t attrs;
  size_t unknown;  // bytes
} counts_t;

static weir_status_t* count_fields(weir_view_t message, counts_t* counts) {
  weir_wire_reader_t r = weir_wire_reader(message);
  while (weir_wire_next(&r)) {
    bool is_known = r.field <= NODE_ATTR && r.type == WEIR_WIRE_BYTES;
    counts->inputs += is_known && r.field == NODE_INPUT;
    counts->attrs += is_known && r.field == NODE_ATTR;
    counts->unknown += is_known ? 0 : r.raw.size;
  }
  return weir_wire_check(&r, "NodeDef");
}

static weir_status_t* parse_attr(weir_view_t entry, weir_arena_t* arena,
                                 weir_tensor_list_t* tensors, weir_named_attr_t* out_attr) {
  weir_view_t key = {0};
  weir_view_t value = {0};
  weir_wire_reader_t r = weir_wire_reader(entry);
  while (weir_wire_next(&r)) {
    if (r.type != WEIR_WIRE_BYTES) continue;
    if (r.field == ENTRY_KEY) key = r.bytes;
    if (r.field == ENTRY_VALUE) value = r.bytes;
  }
  WEIR_TRY(weir_wire_check(&r, "NodeDef.attr"));
  out_attr->name = weir_arena_strndup(arena, key.data, key.size);
  if (!out_attr->name) return weir_out_of_memory();
  return weir_attr_parse_named(out_attr->name, value, arena, tensors, &out_attr->value);
}

static weir_status_t* parse_fields(weir_view_t message, weir_arena_t* arena,
                                   weir_tensor_list_t* tensors, counts_t counts,
                                   weir_parsed_node_t* node) {
  weir_view_t* inputs = weir_arena_array(arena, counts.inputs, sizeof(*inputs));
  weir_named_attr_t* attrs = weir_arena_array(arena, counts.attrs, sizeof(*attrs));
  char* unknown = weir_arena_alloc(arena, counts.unknown);
  if (!inputs || !attrs || !unknown) return weir_out_of_memory();
  *node = (weir_parsed_node_t){
      .inputs = inputs, .attrs = {.items = attrs}, .unknown_fields = weir_view(unknown, 0)};
  weir_wire_reader_t r = weir_wire_reader(message);
  while (weir_wire_next(&r)) {
    if (r.field > NODE_ATTR || r.type != WEIR_WIRE_BYTES) {
      memcpy(unknown + node->unknown_fields.size, r.raw.data, r.raw.size);
      node->unknown_fields.size += r.raw.size;
      continue;
    }
    switch (r.field) {
      case NODE_NAME: node->name = r.bytes; break;
      case NODE_OP: node->op = r.bytes; break;
      case NODE_INPUT: inputs[node->input_count++] = r.bytes; break;
      case NODE_DEVICE: node->device = r.bytes; break;
      default: WEIR_TRY(parse_attr(r.bytes, arena, tensors, &attrs[node->attrs.count++])); break;
    }
  }
  return NULL;
}

weir_status_t* weir_node_def_parse(weir_view_t message, weir_arena_t* arena,
                                   weir_tensor_list_t* tensors, weir_parsed_node_t* out_node) {
  counts_t counts = {0};
  *out_node = (weir_parsed_node_t){0};
  WEIR_TRY(count_fields(message, &counts));
  weir_status_t* status = parse_fields(message, arena, tensors, counts, out_node);
  return weir_status_prefix(status, "node '%.*s': ", WEIR_VIEW_ARG(out_node->name));
}

static void write_value(weir_edge_t edge, weir_strbuf_t* out) {
  weir_strbuf_puts(out, edge.node->def.name);
  if (edge.index > 0) weir_strbuf_printf(out, ":%d", edge.index);
}

// How an output is named where the node is.
typedef void (*write_value_fn_t)(weir_edge_t edge, weir_strbuf_t* out);

static void write_inputs(const weir_node_t* node, write_value_fn_t value, weir_strbuf_t* out) {
  for (int i = 0; i < node->def.input_count; ++i) {
    size_t begin = weir_wire_begin(out, NODE_INPUT);
    value(node->inputs[i], out);
    weir_wire_end(out, begin);
  }
  for (int i = 0; i < node->control_count; ++i) {
    size_t begin = weir_wire_begin(out, NODE_INPUT);
    weir_strbuf_putc(out, '^');
    weir_strbuf_puts(out, node->control_inputs[i]->def.name);
    weir_wire_end(out, begin);
  }
}

static weir_status_t* write_node(const weir_node_t* node, write_value_fn_t value,
                                 weir_strbuf_t* out) {
  weir_wire_put_string(out, NODE_NAME, node->def.name);
  weir_wire_put_string(out, NODE_OP, node->def.op_name);
  write_inputs(node, value, out);
  if (*node->def.device) weir_wire_put_string(out, NODE_DEVICE, node->def.device);
  for (size_t i = 0; i < node->def.attrs.count; ++i)
    WEIR_TRY(weir_attr_write_entry(&node->def.attrs.items[i], NODE_ATTR, out));
  weir_strbuf_append(out, node->unknown_fields.data, node->unknown_fields.size);
  return NULL;
}

weir_status_t* weir_node_def_write(const weir_node_t* node, weir_strbuf_t* out) {
  return write_node(node, write_value, out);
}

weir_status_t* weir_function_node_write(const weir_node_t* node, weir_strbuf_t* out) {
  return write_node(node, weir_function_write_value, out);
}

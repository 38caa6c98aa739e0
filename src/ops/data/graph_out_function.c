// graph_out_function.c — Functions of a dataset that becomes a graph: what they need comes along,
// and what depends on state is said, or refused.
#include "ops/data/external.h"
#include "ops/data/graph_out.h"
#include "wire/wire.h"

enum {
  LIBRARY_FUNCTION = 1,  // of FunctionDefLibrary
  LIBRARY_GRADIENT = 2,
  GRADIENT_OF = 1,  // of GradientDef
  GRADIENT_IS = 2,
  FUNCTION_NODE = 3,  // of FunctionDef
  NODE_DEVICE = 4,    // of NodeDef
};

// ---- devices ----

// "/job:worker/task:1/device:CPU:0" becomes "/device:CPU:0".
static weir_view_t local_name(weir_view_t device) {
  static const char mark[] = "/device:";
  for (size_t i = 0; i + sizeof(mark) - 1 <= device.size; ++i)
    if (memcmp(device.data + i, mark, sizeof(mark) - 1) == 0)
      return weir_view(device.data + i, device.size - i);
  return weir_view("", 0);
}

static weir_status_t* write_local_node(weir_view_t node, weir_strbuf_t* out) {
  weir_wire_reader_t reader = weir_wire_reader(node);
  while (weir_wire_next(&reader)) {
    if (reader.field != NODE_DEVICE || reader.type != WEIR_WIRE_BYTES) {
      weir_strbuf_append(out, reader.raw.data, reader.raw.size);
      continue;
    }
    weir_view_t device = local_name(reader.bytes);
    weir_wire_put_bytes(out, NODE_DEVICE, device.data, device.size);
  }
  return weir_wire_check(&reader, "NodeDef");
}

static weir_status_t* write_local(weir_view_t def, weir_strbuf_t* out) {
  weir_wire_reader_t reader = weir_wire_reader(def);
  while (weir_wire_next(&reader)) {
    if (reader.field != FUNCTION_NODE || reader.type != WEIR_WIRE_BYTES) {
      weir_strbuf_append(out, reader.raw.data, reader.raw.size);
      continue;
    }
    size_t begin = weir_wire_begin(out, FUNCTION_NODE);
    WEIR_TRY(write_local_node(reader.bytes, out));
    weir_wire_end(out, begin);
  }
  return weir_wire_check(&reader, "FunctionDef");
}

// ---- the library ----

static weir_status_t* write_function(weir_graph_out_t* out, const weir_function_text_t* function) {
  weir_strbuf_t* library = &out->library;
  size_t begin = weir_wire_begin(library, LIBRARY_FUNCTION);
  if (out->strips_devices) WEIR_TRY(write_local(function->def, library));
  else weir_strbuf_append(library, function->def.data, function->def.size);
  weir_wire_end(library, begin);
  if (function->gradient.size == 0) return NULL;
  size_t gradient = weir_wire_begin(library, LIBRARY_GRADIENT);
  weir_wire_put_bytes(library, GRADIENT_OF, function->name.data, function->name.size);
  weir_wire_put_bytes(library, GRADIENT_IS, function->gradient.data, function->gradient.size);
  weir_wire_end(library, gradient);
  return NULL;
}

// Remembers the function as it was found: datasets that were loaded have libraries of their own, in
// which a name may stand for another.
static weir_status_t* remember(weir_graph_out_t* out, const weir_function_text_t* function) {
  weir_strbuf_t* def = weir_calloc(1, sizeof(*def));
  if (!def) return weir_out_of_memory();
  weir_strbuf_append(def, function->def.data, function->def.size);
  weir_status_t* status = weir_strbuf_finish(def);
  if (!status) status = weir_map_put(&out->functions_by_name, function->name, def);
  if (!status) return NULL;
  weir_strbuf_free(def);
  weir_free(def);
  return status;
}

static weir_status_t* add(void* arg, const weir_function_text_t* function) {
  weir_graph_out_t* out = arg;
  const weir_strbuf_t* known = weir_map_find(&out->functions_by_name, function->name);
  if (known && weir_view_equal(weir_strbuf_view(known), function->def)) return NULL;
  if (known)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Cannot add function '%.*s' because a different function with the same name "
                       "already exists.",
                       WEIR_VIEW_ARG(function->name));
  WEIR_TRY(remember(out, function));
  return write_function(out, function);
}

weir_status_t* weir_graph_out_function(weir_graph_out_t* out, weir_view_t name) {
  weir_functions_t* functions = out->functions;
  if (!functions)
    return WEIR_STATUS(FAILED_PRECONDITION, "the step has no function library to find '%.*s' in",
                       WEIR_VIEW_ARG(name));
  if (out->policy != WEIR_STATE_IGNORE)
    WEIR_TRY(weir_external_check(functions, name, out->policy, "a dataset"));
  return functions->vtable->visit_needed(functions, name, add, out);
}

// function_needs.c — Which functions a function needs: those that it calls, or names in attributes,
// and those that they need.
#include "graph/function.h"
#include "wire/wire.h"

enum {
  FUNCTION_NODE = 3,  // of FunctionDef
  NODE_OP = 2,        // of NodeDef
  NODE_ATTR = 5,
  ENTRY_VALUE = 2,  // of entries of a map of attributes
  VALUE_LIST = 1,   // of AttrValue
  VALUE_FUNC = 10,
  LIST_FUNC = 9,  // of its ListValue
  FUNC_NAME = 1,  // of NameAttrList
  FUNC_ATTR = 2,
  MAX_DEPTH = 32,  // of attributes of functions in attributes
};

typedef struct needs_t {
  weir_function_library_t* library;
  weir_map_t found;  // name → function, in the order in which they were found
} needs_t;

// What is no function of the library is an op.
static weir_status_t* add(needs_t* needs, weir_view_t name) {
  const weir_function_t* function = weir_function_find(needs->library, name);
  if (!function || weir_map_find(&needs->found, name)) return NULL;
  return weir_map_put(&needs->found, weir_view_of(function->name), (void*)(uintptr_t)function);
}

static weir_status_t* scan_value(needs_t* needs, weir_view_t value, int depth);

static weir_status_t* scan_entry(needs_t* needs, weir_view_t entry, int depth) {
  weir_wire_reader_t reader = weir_wire_reader(entry);
  while (weir_wire_next(&reader)) {
    if (reader.field == ENTRY_VALUE && reader.type == WEIR_WIRE_BYTES)
      WEIR_TRY(scan_value(needs, reader.bytes, depth));
  }
  return weir_wire_check(&reader, "AttrValue");
}

static weir_status_t* scan_func(needs_t* needs, weir_view_t func, int depth) {
  if (depth > MAX_DEPTH)
    return WEIR_STATUS(INVALID_ARGUMENT, "functions are nested too deep in an attribute");
  weir_wire_reader_t reader = weir_wire_reader(func);
  while (weir_wire_next(&reader)) {
    if (reader.type != WEIR_WIRE_BYTES) continue;
    if (reader.field == FUNC_NAME) WEIR_TRY(add(needs, reader.bytes));
    if (reader.field == FUNC_ATTR) WEIR_TRY(scan_entry(needs, reader.bytes, depth + 1));
  }
  return weir_wire_check(&reader, "NameAttrList");
}

static weir_status_t* scan_list(needs_t* needs, weir_view_t list, int depth) {
  weir_wire_reader_t reader = weir_wire_reader(list);
  while (weir_wire_next(&reader)) {
    if (reader.field == LIST_FUNC && reader.type == WEIR_WIRE_BYTES)
      WEIR_TRY(scan_func(needs, reader.bytes, depth));
  }
  return weir_wire_check(&reader, "AttrValue");
}

static weir_status_t* scan_value(needs_t* needs, weir_view_t value, int depth) {
  weir_wire_reader_t reader = weir_wire_reader(value);
  while (weir_wire_next(&reader)) {
    if (reader.type != WEIR_WIRE_BYTES) continue;
    if (reader.field == VALUE_FUNC) WEIR_TRY(scan_func(needs, reader.bytes, depth));
    if (reader.field == VALUE_LIST) WEIR_TRY(scan_list(needs, reader.bytes, depth));
  }
  return weir_wire_check(&reader, "AttrValue");
}

static weir_status_t* scan_node(needs_t* needs, weir_view_t node) {
  weir_wire_reader_t reader = weir_wire_reader(node);
  while (weir_wire_next(&reader)) {
    if (reader.type != WEIR_WIRE_BYTES) continue;
    if (reader.field == NODE_OP) WEIR_TRY(add(needs, reader.bytes));
    if (reader.field == NODE_ATTR) WEIR_TRY(scan_entry(needs, reader.bytes, 0));
  }
  return weir_wire_check(&reader, "NodeDef");
}

static weir_status_t* scan_function(needs_t* needs, const weir_function_t* function) {
  if (function->gradient) WEIR_TRY(add(needs, weir_view_of(function->gradient)));
  weir_wire_reader_t reader = weir_wire_reader(function->def);
  while (weir_wire_next(&reader)) {
    if (reader.field == FUNCTION_NODE && reader.type == WEIR_WIRE_BYTES)
      WEIR_TRY(scan_node(needs, reader.bytes));
  }
  return weir_wire_check(&reader, "FunctionDef");
}

static weir_status_t* visit(needs_t* needs, weir_function_needed_fn_t fn, void* arg) {
  weir_map_entry_t* entry;
  for (size_t i = 0; (entry = weir_map_next(&needs->found, &i));) {
    const weir_function_t* function = entry->value;
    WEIR_TRY(fn(arg, function));
    WEIR_TRY(scan_function(needs, function));  // what it finds is visited later
  }
  return NULL;
}

weir_status_t* weir_function_visit_needed(weir_function_library_t* library, weir_view_t name,
                                          weir_function_needed_fn_t fn, void* arg) {
  needs_t needs = {.library = library};
  WEIR_TRY(add(&needs, name));
  weir_status_t* status =
      needs.found.count
          ? visit(&needs, fn, arg)
          : WEIR_STATUS(NOT_FOUND, "Function '%.*s' is not defined", WEIR_VIEW_ARG(name));
  weir_map_free(&needs.found);
  return status;
}

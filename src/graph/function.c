// function.c — The function library: adding, finding and writing FunctionDefs.
#include "graph/function.h"

#include "wire/message.h"
#include "wire/wire.h"

enum { LIBRARY_FUNCTION = 1, LIBRARY_GRADIENT = 2 };
enum { FUNCTION_SIGNATURE = 1 };
enum { OP_DEF_NAME = 1, OP_DEF_IS_STATEFUL = 17 };

struct weir_function_library_t {
  weir_ref_t ref;
  weir_mutex_t mu;       // guards all below
  weir_map_t functions;  // name → weir_function_t, in the arena
  weir_arena_t arena;
  weir_tensor_list_t tensors;
  size_t next_number;
};

weir_status_t* weir_function_library_create(weir_function_library_t** out_library) {
  weir_function_library_t* library = weir_calloc(1, sizeof(*library));
  if (!library) return weir_out_of_memory();
  weir_ref_init(&library->ref);
  weir_mutex_init(&library->mu);
  *out_library = library;
  return NULL;
}

weir_function_library_t* weir_function_library_retain(weir_function_library_t* library) {
  weir_ref_inc(&library->ref, 1);
  return library;
}

void weir_function_library_release(weir_function_library_t* library) {
  if (!library || !weir_ref_dec(&library->ref)) return;
  weir_map_free(&library->functions);
  weir_tensor_list_free(&library->tensors);
  weir_arena_free(&library->arena);
  weir_mutex_destroy(&library->mu);
  weir_free(library);
}

static weir_status_t* find_field(weir_view_t message, uint32_t field, const char* what,
                                 weir_view_t* out_bytes) {
  weir_wire_reader_t r = weir_wire_reader(message);
  *out_bytes = (weir_view_t){0};
  while (weir_wire_next(&r)) {
    if (r.field == field && r.type == WEIR_WIRE_BYTES) *out_bytes = r.bytes;
  }
  return weir_wire_check(&r, what);
}

static weir_status_t* is_stateful(weir_view_t op_def, bool* out_is_stateful) {
  weir_wire_reader_t r = weir_wire_reader(op_def);
  while (weir_wire_next(&r)) {
    if (r.field == OP_DEF_IS_STATEFUL && r.type == WEIR_WIRE_VARINT)
      *out_is_stateful = weir_wire_bool(&r);
  }
  return weir_wire_check(&r, "FunctionDef.signature");
}

// Whether the library has this very function: clients send all of theirs again and again.
static bool is_known(const weir_function_library_t* library, weir_view_t message) {
  weir_wire_reader_t function = weir_wire_reader(message);
  while (weir_wire_next(&function)) {
    if (function.field != FUNCTION_SIGNATURE || function.type != WEIR_WIRE_BYTES) continue;
    weir_wire_reader_t signature = weir_wire_reader(function.bytes);
    while (weir_wire_next(&signature)) {
      if (signature.field != OP_DEF_NAME || signature.type != WEIR_WIRE_BYTES) continue;
      const weir_function_t* existing = weir_map_find(&library->functions, signature.bytes);
      return existing && weir_message_equal(&weir_message_function_def, existing->def, message);
    }
  }
  return false;
}

static weir_status_t* add_locked(weir_function_library_t* library, weir_view_t message) {
  if (is_known(library, message)) return NULL;
  char* copy = weir_arena_strndup(&library->arena, message.data, message.size);
  weir_function_t* function = weir_arena_alloc(&library->arena, sizeof(*function));
  if (!copy || !function) return weir_out_of_memory();
  function->def = weir_view(copy, message.size);
  weir_view_t signature;
  WEIR_TRY(find_field(function->def, FUNCTION_SIGNATURE, "FunctionDef", &signature));
  WEIR_TRY(weir_op_parse(signature, &library->arena, &library->tensors, &function->signature));
  WEIR_TRY(is_stateful(signature, &function->is_stateful));
  function->name = function->signature->name;
  if (weir_map_find(&library->functions, weir_view_of(function->name))) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "Cannot add function '%s' because a different function with the same name already exists.",
        function->name);
  }
  function->number = library->next_number++;
  return weir_map_put(&library->functions, weir_view_of(function->name), function);
}

size_t weir_function_library_mark(weir_function_library_t* library) {
  weir_mutex_lock(&library->mu);
  size_t mark = library->next_number;
  weir_mutex_unlock(&library->mu);
  return mark;
}

void weir_function_library_rollback(weir_function_library_t* library, size_t mark) {
  weir_mutex_lock(&library->mu);
  weir_map_entry_t* entry;
  for (size_t i = 0; (entry = weir_map_next(&library->functions, &i));) {
    const weir_function_t* function = entry->value;
    if (function->number < mark) continue;
    weir_map_remove(&library->functions, weir_view_of(function->name));
    i = 0;  // removal may move entries
  }
  weir_mutex_unlock(&library->mu);
}

weir_status_t* weir_function_library_remove(weir_function_library_t* library, weir_view_t name) {
  weir_mutex_lock(&library->mu);
  bool was_there = weir_map_remove(&library->functions, name) != NULL;
  weir_mutex_unlock(&library->mu);
  if (was_there) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Tried to remove non-existent function '%.*s'.",
                     WEIR_VIEW_ARG(name));
}

weir_status_t* weir_function_library_add(weir_function_library_t* library,
                                         weir_view_t function_def) {
  weir_mutex_lock(&library->mu);
  weir_status_t* status = add_locked(library, function_def);
  weir_mutex_unlock(&library->mu);
  return status;
}

static weir_status_t* add_gradient(weir_function_library_t* library, weir_view_t message) {
  weir_view_t name, gradient;
  WEIR_TRY(find_field(message, 1, "GradientDef", &name));
  WEIR_TRY(find_field(message, 2, "GradientDef", &gradient));
  weir_mutex_lock(&library->mu);
  weir_function_t* function = weir_map_find(&library->functions, name);
  if (function)
    function->gradient = weir_arena_strndup(&library->arena, gradient.data, gradient.size);
  weir_mutex_unlock(&library->mu);
  if (!function)
    return WEIR_STATUS(INVALID_ARGUMENT, "gradient of unknown function '%.*s'",
                       WEIR_VIEW_ARG(name));
  return function->gradient ? NULL : weir_out_of_memory();
}

weir_status_t* weir_function_library_import(weir_function_library_t* library, weir_view_t message) {
  weir_wire_reader_t r = weir_wire_reader(message);
  while (weir_wire_next(&r)) {
    if (r.field == LIBRARY_FUNCTION && r.type == WEIR_WIRE_BYTES)
      WEIR_TRY(weir_function_library_add(library, r.bytes));
  }
  WEIR_TRY(weir_wire_check(&r, "FunctionDefLibrary"));
  r = weir_wire_reader(message);
  while (weir_wire_next(&r)) {
    if (r.field == LIBRARY_GRADIENT && r.type == WEIR_WIRE_BYTES)
      WEIR_TRY(add_gradient(library, r.bytes));
  }
  return NULL;
}

const weir_function_t* weir_function_find(weir_function_library_t* library, weir_view_t name) {
  weir_mutex_lock(&library->mu);
  const weir_function_t* function = weir_map_find(&library->functions, name);
  weir_mutex_unlock(&library->mu);
  return function;
}

weir_status_t* weir_function_library_write(weir_function_library_t* library, weir_strbuf_t* out) {
  weir_mutex_lock(&library->mu);
  weir_map_entry_t* entry;
  for (size_t i = 0; (entry = weir_map_next(&library->functions, &i));) {
    const weir_function_t* function = entry->value;
    weir_wire_put_bytes(out, LIBRARY_FUNCTION, function->def.data, function->def.size);
  }
  for (size_t i = 0; (entry = weir_map_next(&library->functions, &i));) {
    const weir_function_t* function = entry->value;
    if (!function->gradient) continue;
    size_t begin = weir_wire_begin(out, LIBRARY_GRADIENT);
    weir_wire_put_string(out, 1, function->name);
    weir_wire_put_string(out, 2, function->gradient);
    weir_wire_end(out, begin);
  }
  weir_mutex_unlock(&library->mu);
  return weir_strbuf_finish(out);
}

// function.c — TF_Function: messages in and out, and functions of graphs.
#include "tensorflow/function.h"

#include "graph/function.h"
#include "tensorflow/internal.h"
#include "wire/wire.h"

enum { FUNCTION_SIGNATURE = 1, FUNCTION_ATTR = 5, LIBRARY_FUNCTION = 1, LIBRARY_GRADIENT = 2 };

static weir_status_t* read_name(weir_view_t def, char** out_name) {
  weir_view_t name = {0};
  weir_wire_reader_t r = weir_wire_reader(def);
  while (weir_wire_next(&r)) {
    if (r.field != FUNCTION_SIGNATURE || r.type != WEIR_WIRE_BYTES) continue;
    weir_wire_reader_t signature = weir_wire_reader(r.bytes);
    while (weir_wire_next(&signature)) {
      if (signature.field == 1 && signature.type == WEIR_WIRE_BYTES) name = signature.bytes;
    }
  }
  weir_status_t* status = weir_wire_check(&r, "FunctionDef");
  weir_status_destroy(status);
  if (status)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Invalid FunctionDef given to TF_FunctionImportFunctionDef");
  *out_name = weir_strndup(name.data ? name.data : "", name.size);
  return *out_name ? NULL : weir_out_of_memory();
}

weir_status_t* tf_function_create(weir_view_t def, weir_view_t library,
                                  TF_Function** out_function) {
  TF_Function* function = weir_calloc(1, sizeof(*function));
  if (!function) return weir_out_of_memory();
  weir_strbuf_append(&function->def, def.data, def.size);
  weir_strbuf_append(&function->kin, library.data, library.size);
  weir_status_t* status = weir_strbuf_finish(&function->def);
  if (!status) status = weir_strbuf_finish(&function->kin);
  if (!status) status = read_name(def, &function->name);
  if (status) TF_DeleteFunction(function);
  else *out_function = function;
  return status;
}

void TF_DeleteFunction(TF_Function* func) {
  if (!func) return;
  weir_free(func->name);
  weir_strbuf_free(&func->def);
  weir_strbuf_free(&func->kin);
  weir_free(func);
}

const char* TF_FunctionName(TF_Function* func) { return func->name; }

void TF_FunctionToFunctionDef(TF_Function* func, TF_Buffer* output_func_def, TF_Status* status) {
  weir_strbuf_t bytes = {0};
  weir_strbuf_append(&bytes, func->def.data, func->def.size);
  tf_status_take(status, tf_buffer_take(output_func_def, &bytes));
}

TF_Function* TF_FunctionImportFunctionDef(const void* proto, size_t proto_len, TF_Status* status) {
  TF_Function* function = NULL;
  tf_status_take(status,
                 tf_function_create(weir_view(proto, proto_len), weir_view("", 0), &function));
  return function;
}

// ---- attributes ----

static weir_view_t find_attr(const TF_Function* func, const char* name, bool* out_is_found) {
  weir_view_t found = {0};
  weir_wire_reader_t r = weir_wire_reader(weir_strbuf_view(&func->def));
  while (weir_wire_next(&r)) {
    weir_view_t key = {0}, value = {0};
    if (r.field != FUNCTION_ATTR || r.type != WEIR_WIRE_BYTES) continue;
    weir_wire_reader_t entry = weir_wire_reader(r.bytes);
    while (weir_wire_next(&entry)) {
      if (entry.field == 1 && entry.type == WEIR_WIRE_BYTES) key = entry.bytes;
      if (entry.field == 2 && entry.type == WEIR_WIRE_BYTES) value = entry.bytes;
    }
    if (!weir_view_is(key, name)) continue;
    found = value;  // of several entries the last counts, as in any map of a message
    *out_is_found = true;
  }
  return found;
}

void TF_FunctionSetAttrValueProto(TF_Function* func, const char* attr_name, const void* proto,
                                  size_t proto_len, TF_Status* status) {
  weir_wire_reader_t r = weir_wire_reader(weir_view(proto, proto_len));
  while (weir_wire_next(&r)) {
  }
  if (!tf_status_take(status, weir_wire_check(&r, "AttrValue"))) return;
  const size_t entry = weir_wire_begin(&func->def, FUNCTION_ATTR);
  weir_wire_put_string(&func->def, 1, attr_name);
  weir_wire_put_bytes(&func->def, 2, proto, proto_len);
  weir_wire_end(&func->def, entry);
  tf_status_take(status, weir_strbuf_finish(&func->def));
}

void TF_FunctionGetAttrValueProto(TF_Function* func, const char* attr_name,
                                  TF_Buffer* output_attr_value, TF_Status* status) {
  bool is_found = false;
  const weir_view_t value = find_attr(func, attr_name, &is_found);
  weir_strbuf_t bytes = {0};
  weir_strbuf_append(&bytes, value.data ? value.data : "", value.size);
  weir_status_t* result =
      is_found ? tf_buffer_take(output_attr_value, &bytes)
               : WEIR_STATUS(INVALID_ARGUMENT, "Function '%s' has no attr named '%s'.", func->name,
                             attr_name);
  weir_strbuf_free(&bytes);
  tf_status_take(status, result);
}

// ---- functions of graphs ----

// Of what |func| brings along, what the graph has not by name. A graph may have been given others
// since: those stay.
static weir_status_t* add_kin(weir_function_library_t* library, const TF_Function* func) {
  weir_wire_reader_t r = weir_wire_reader(weir_strbuf_view(&func->kin));
  while (weir_wire_next(&r)) {
    char* name = NULL;
    if (r.field != LIBRARY_FUNCTION || r.type != WEIR_WIRE_BYTES) continue;
    WEIR_TRY(read_name(r.bytes, &name));
    const bool is_known = weir_function_find(library, weir_view_of(name)) != NULL;
    weir_free(name);
    if (!is_known) WEIR_TRY(weir_function_library_add(library, r.bytes));
  }
  return weir_wire_check(&r, "FunctionDefLibrary");
}

static weir_status_t* copy_function(weir_graph_t* graph, const TF_Function* func,
                                    const TF_Function* grad) {
  weir_function_library_t* library = graph->library;
  WEIR_TRY(add_kin(library, func));
  WEIR_TRY(weir_function_library_add(library, weir_strbuf_view(&func->def)));
  if (!grad) return NULL;
  WEIR_TRY(add_kin(library, grad));
  weir_strbuf_t message = {0};
  weir_wire_put_bytes(&message, LIBRARY_FUNCTION, grad->def.data, grad->def.size);
  const size_t gradient = weir_wire_begin(&message, LIBRARY_GRADIENT);
  weir_wire_put_string(&message, 1, func->name);
  weir_wire_put_string(&message, 2, grad->name);
  weir_wire_end(&message, gradient);
  weir_status_t* status = weir_strbuf_finish(&message);
  if (!status) status = weir_function_library_import(library, weir_strbuf_view(&message));
  weir_strbuf_free(&message);
  return status;
}

void TF_GraphCopyFunction(TF_Graph* g, const TF_Function* func, const TF_Function* grad,
                          TF_Status* status) {
  if (!func) {
    tf_status_take(status, WEIR_STATUS(INVALID_ARGUMENT,
                                       "'func' argument to TF_GraphCopyFunction cannot be null"));
    return;
  }
  weir_mutex_lock(&g->graph->mu);
  const size_t before = weir_function_library_mark(g->graph->library);
  weir_status_t* result = copy_function(g->graph, func, grad);
  if (result) weir_function_library_rollback(g->graph->library, before);
  weir_mutex_unlock(&g->graph->mu);
  tf_status_take(status, result);
}

// Calls for each function of the graph in the order of the library's message; counts all.
static weir_status_t* list_functions(TF_Graph* g, TF_Function** funcs, int max_func,
                                     int* out_count) {
  weir_strbuf_t library = {0};
  weir_status_t* status = weir_function_library_write(g->graph->library, &library);
  weir_wire_reader_t r = weir_wire_reader(weir_strbuf_view(&library));
  *out_count = 0;
  while (!status && weir_wire_next(&r)) {
    if (r.field != LIBRARY_FUNCTION) continue;
    if (*out_count < max_func) {
      status = tf_function_create(r.bytes, weir_strbuf_view(&library), &funcs[*out_count]);
      if (status) break;
    }
    ++*out_count;
  }
  for (int i = 0; status && i < WEIR_MIN(*out_count, max_func); ++i) TF_DeleteFunction(funcs[i]);
  weir_strbuf_free(&library);
  return status;
}

int TF_GraphNumFunctions(TF_Graph* g) {
  int count = 0;
  return weir_status_report(list_functions(g, NULL, 0, &count)) ? 0 : count;
}

int TF_GraphGetFunctions(TF_Graph* g, TF_Function** funcs, int max_func, TF_Status* status) {
  int count = 0;
  const bool is_ok = tf_status_take(status, list_functions(g, funcs, max_func, &count));
  return is_ok ? WEIR_MIN(count, max_func) : 0;
}

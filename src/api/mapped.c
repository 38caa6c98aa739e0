// mapped.c — Variables that lie in files, of which their handles tell.
#include "weir/mapped.h"

#include "api/op_args.h"
#include "api/part.h"
#include "api/scope.h"
#include "eager/frame.h"

static weir_status_t* check(const weir_scope_t* scope, const char* name, weir_dims_t shape) {
  bool is_known = shape.rank > 0 && shape.rank <= WEIR_MAX_RANK && shape.dims;
  if (scope->root->function)
    return WEIR_STATUS(INVALID_ARGUMENT, "variable '%s' is made inside a function", name);
  if (weir_scope_is_eager(scope))
    return WEIR_STATUS(UNIMPLEMENTED, "variable '%s' in a file on an eager scope", name);
  if (scope->variable_device)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "variable '%s' lies in a file: weir_scope_on says on which machine", name);
  for (int i = 0; is_known && i < shape.rank; ++i) is_known = shape.dims[i] > 0;
  if (is_known) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "variable '%s' lies in a file: all of its dimensions must be positive", name);
}

static void add_nodes(weir_scope_t* scope, const char* path, const weir_shape_t* shape,
                      weir_variable_info_t* v) {
  const weir_node_t* handle = v->handle.node;
  const weir_dtype_t dtype = weir_attrs_type(handle->def.attrs, "dtype");
  weir_scope_t bare = {.root = scope->root, .prefix = handle->def.name, .device = scope->device};
  v->initializer =
      weir_scope_add(&bare, "_MapVariable", "Map", WEIR_EDGES(v->handle),
                     WEIR_ATTRS(weir_attr_type("dtype", dtype), weir_attr_shape("shape", shape),
                                weir_attr_string("path", path)));
  v->value = weir_scope_first(weir_scope_add(&bare, "ReadVariableOp", "Read", WEIR_EDGES(v->handle),
                                             WEIR_ATTRS(weir_attr_type("dtype", dtype))));
  v->initial = v->value;  // of its type and shape: nothing else holds what the file does
}

weir_edge_t weir_mapped_variable_with(weir_scope_t* scope, const char* name, const char* path,
                                      weir_dims_t shape, const weir_mapped_options_t* options) {
  WEIR_ASSERT_ARG(scope);
  options = options ? options : &(const weir_mapped_options_t){0};
  if (scope->root->status || !WEIR_HAS_ARG(scope, name) || !WEIR_HAS_ARG(scope, path))
    return WEIR_NO_EDGE;
  const weir_variable_part_t* part = options->part;
  weir_status_t* status = check(scope, name, shape);
  const weir_shape_t* made =
      status ? NULL : weir_shape_make(&scope->root->arena, shape.rank, shape.dims);
  if (!status && !made) status = weir_out_of_memory();
  if (!status && part) status = weir_part_check(name, made, part);
  if (status) {
    weir_scope_fail(scope, status);
    return WEIR_NO_EDGE;
  }
  weir_named_attr_t attrs[] = {
      weir_attr_type("dtype", options->dtype ? options->dtype : WEIR_DTYPE_FLOAT),
      weir_attr_shape("shape", made),
      weir_attr_string("shared_name", ""),
      weir_attr_string(WEIR_VARIABLE_FILE, path),
      weir_attr_string(WEIR_PART_NAME, part ? part->name : ""),
      weir_attr_string(WEIR_PART_SLICE, part ? part->slice : "")};
  const size_t count = WEIR_COUNT_OF(attrs) - (part ? 0 : 2);
  weir_variable_info_t variable = {.is_trainable = !options->is_state};
  variable.handle = weir_scope_first(weir_scope_add_handle(
      scope, name, scope->device, (weir_attrs_t){.items = attrs, .count = count}));
  if (scope->root->status) return WEIR_NO_EDGE;
  add_nodes(scope, path, made, &variable);
  weir_scope_remember(scope, &variable);
  return scope->root->status ? WEIR_NO_EDGE : variable.value;
}

const char* weir_variable_file(weir_scope_t* scope, weir_edge_t variable) {
  WEIR_ASSERT_ARG(scope);
  if (!weir_part_has_variable(scope, variable, __func__)) return NULL;
  const weir_attr_t* file = weir_part_attr(weir_part_handle(variable.node), WEIR_VARIABLE_FILE);
  if (!file) return NULL;
  const char* path = weir_arena_strndup(&scope->root->arena, file->u.s.data, file->u.s.size);
  if (!path) weir_scope_fail(scope, weir_out_of_memory());
  return path;
}

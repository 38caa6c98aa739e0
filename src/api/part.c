// part.c — Variables that are slices of larger tensors, of which their handles tell.
#include "api/part.h"

#include "api/scope.h"
#include "file/slice.h"

weir_status_t* weir_part_check(const char* name, const weir_shape_t* shape,
                               const weir_variable_part_t* part) {
  int rank = 0;
  int64_t dims[WEIR_MAX_RANK];
  weir_slice_t slice;
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (!part->name || !part->slice)
    return WEIR_STATUS(INVALID_ARGUMENT, "variable '%s' is a part without %s", name,
                       part->name ? "a slice" : "the name of the whole");
  weir_status_t* status = weir_slice_parse_spec(weir_view_of(part->slice), &rank, dims, &slice);
  if (!status) status = weir_slice_resolve(&slice, rank, dims);
  if (status) {
    weir_status_destroy(status);
    return WEIR_STATUS(INVALID_ARGUMENT, "variable '%s': '%s' is no slice of '%s'", name,
                       part->slice, part->name);
  }
  if (!weir_shape_is_full(shape)) return NULL;
  if (shape->rank == rank && !memcmp(shape->dims, slice.lengths, sizeof(int64_t) * (size_t)rank))
    return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "variable '%s' of shape %s is not the slice %s of '%s'",
                     name, weir_shape_text(shape->rank, shape->dims, text), part->slice,
                     part->name);
}

weir_edge_t weir_part_variable(weir_scope_t* scope, const char* name, weir_edge_t initial,
                               const weir_variable_part_t* part, bool is_trainable) {
  WEIR_ASSERT_ARG(scope);
  if (scope->root->status || !WEIR_HAS_ARG(scope, part)) return WEIR_NO_EDGE;
  const bool is_shaped = initial.node && !weir_edge_is_none(initial);
  weir_status_t* status = weir_part_check(
      name ? name : "", is_shaped ? weir_edge_shape(initial) : &weir_shape_unknown, part);
  if (!status) return weir_scope_add_variable(scope, name, initial, part, is_trainable);
  weir_scope_fail(scope, status);
  return WEIR_NO_EDGE;
}

bool weir_part_has_variable(weir_scope_t* scope, weir_edge_t variable, const char* function) {
  if (scope->root->status ||
      !weir_scope_has_argument(scope, variable.node, function, "variable.node"))
    return false;
  const int count = variable.node->def.output_count;
  if (variable.index >= 0 && variable.index < count) return true;
  weir_scope_fail(
      scope, WEIR_STATUS(INVALID_ARGUMENT, "%s: variable is '%s:%d', but the node has %d outputs",
                         function, variable.node->def.name, variable.index, count));
  return false;
}

const weir_node_t* weir_part_handle(const weir_node_t* variable) {
  const bool is_read =
      variable->def.input_count == 1 && weir_edge_dtype(variable->inputs[0]) == WEIR_DTYPE_RESOURCE;
  return is_read ? variable->inputs[0].node : variable;
}

const weir_attr_t* weir_part_attr(const weir_node_t* handle, const char* name) {
  const weir_attr_t* attr = weir_attrs_find(handle->def.attrs, name);
  return attr && attr->kind == WEIR_ATTR_STRING && !attr->is_list ? attr : NULL;
}

weir_status_t* weir_part_of(const weir_node_t* handle, weir_arena_t* arena,
                            weir_variable_part_t* out_part) {
  const weir_attr_t* name = weir_part_attr(handle, WEIR_PART_NAME);
  const weir_attr_t* slice = weir_part_attr(handle, WEIR_PART_SLICE);
  *out_part = (weir_variable_part_t){0};
  if (!name || !slice) return NULL;
  out_part->name = weir_arena_strndup(arena, name->u.s.data, name->u.s.size);
  out_part->slice = weir_arena_strndup(arena, slice->u.s.data, slice->u.s.size);
  return out_part->name && out_part->slice ? NULL : weir_out_of_memory();
}

bool weir_variable_part(weir_scope_t* scope, weir_edge_t variable, weir_variable_part_t* out_part) {
  WEIR_ASSERT_ARG(scope);
  if (!weir_part_has_variable(scope, variable, __func__)) return false;
  weir_variable_part_t part = {0};
  weir_status_t* status = weir_part_of(weir_part_handle(variable.node), &scope->root->arena, &part);
  if (status) weir_scope_fail(scope, status);
  if (status || !part.name) return false;
  if (out_part) *out_part = part;
  return true;
}

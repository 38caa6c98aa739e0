// resolve.c — Attributes of a node against its op: checks, inference from inputs, defaults, and the
// types that follow.
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

#include "base/details.h"
#include "base/string.h"
#include "op/spec.h"

// No node has more tensors on one side; what asks for more is a damaged graph.
#define MAX_TENSORS (1 << 24)

const weir_attr_def_t* weir_op_attr(const weir_op_t* op, const char* name) {
  for (int i = 0; i < op->attr_count; ++i) {
    if (strcmp(op->attrs[i].name, name) == 0) return &op->attrs[i];
  }
  return NULL;
}

// Ends a message as TensorFlow does: "; NodeDef: {{node x}}; Op<…>". Consumes |take_status|.
static weir_status_t* at_node(weir_status_t* take_status, const weir_op_t* op,
                              const char* node_name) {
  weir_strbuf_t text = {0};
  weir_op_append_summary(op, &text);
  weir_status_t* status = weir_status_create(
      weir_status_code(take_status), __FILE__, __LINE__, "%s\n\t; NodeDef: {{node %s}}; %s",
      weir_status_message(take_status), node_name, text.data ? text.data : op->name);
  weir_strbuf_free(&text);
  weir_status_destroy(take_status);
  return status;
}

// ---- checks ----

static weir_status_t* check_type(weir_dtype_t type) {
  if (weir_dtype_is_ref(type) && weir_dtype_is_valid(weir_dtype_base(type))) {
    return WEIR_STATUS(INVALID_ARGUMENT, "AttrValue must not have reference type value of %s",
                       weir_dtype_name(type));
  }
  if (type == WEIR_DTYPE_INVALID) {
    return WEIR_STATUS(INVALID_ARGUMENT, "AttrValue has invalid DataType");
  }
  if (!weir_dtype_is_valid(type)) {
    return WEIR_STATUS(INVALID_ARGUMENT, "AttrValue has invalid DataType enum: %d", (int)type);
  }
  return NULL;
}

static weir_status_t* check_kind(const weir_attr_def_t* def, const weir_attr_t* value) {
  if (!value->is_list && value->kind == WEIR_ATTR_NONE) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "AttrValue missing value with expected type '%s'\n\t for attr '%s'",
                       weir_attr_kind_name(def->kind, def->is_list), def->name);
  }
  bool is_empty_list = value->is_list && value->count == 0;
  if (value->is_list != def->is_list || (!is_empty_list && value->kind != def->kind)) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "AttrValue had value with type '%s' when '%s' expected\n\t for attr '%s'",
                       weir_attr_kind_name(value->kind, value->is_list),
                       weir_attr_kind_name(def->kind, def->is_list), def->name);
  }
  if (def->kind != WEIR_ATTR_TYPE) return NULL;
  weir_status_t* status = def->is_list ? NULL : check_type(value->u.type);
  for (size_t i = 0; def->is_list && !status && i < value->count; ++i) {
    status = check_type(value->u.types[i]);
  }
  if (!status) return NULL;
  weir_status_t* named =
      WEIR_STATUS(INVALID_ARGUMENT, "%s\n\t for attr '%s'", weir_status_message(status), def->name);
  weir_status_destroy(status);
  return named;
}

static weir_status_t* check_minimum(const weir_attr_def_t* def, const weir_attr_t* value) {
  if (!def->has_minimum) return NULL;
  if (def->is_list) {
    if ((int64_t)value->count >= def->minimum) return NULL;
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Length for attr '%s' of %zu must be at least minimum %" PRId64, def->name,
                       value->count, def->minimum);
  }
  if (value->u.i >= def->minimum) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Value for attr '%s' of %" PRId64 " must be at least minimum %" PRId64,
                     def->name, value->u.i, def->minimum);
}

static weir_status_t* check_allowed_type(const weir_attr_def_t* def, weir_dtype_t type) {
  if (!def->allowed_types || (def->allowed_types >> type & 1)) return NULL;
  weir_strbuf_t text = {0};
  for (size_t i = 0; i < def->allowed_type_count; ++i) {
    weir_strbuf_printf(&text, "%s%s", i ? ", " : "", weir_dtype_name(def->allowed_type_list[i]));
  }
  weir_status_t* status = WEIR_STATUS(
      INVALID_ARGUMENT, "Value for attr '%s' of %s is not in the list of allowed values: %s",
      def->name, weir_dtype_name(type), text.data ? text.data : "");
  weir_strbuf_free(&text);
  return status;
}

static weir_status_t* check_allowed_string(const weir_attr_def_t* def, weir_view_t value) {
  if (!def->allowed_string_count) return NULL;
  for (size_t i = 0; i < def->allowed_string_count; ++i) {
    if (weir_view_equal(def->allowed_strings[i], value)) return NULL;
  }
  weir_strbuf_t text = {0};
  for (size_t i = 0; i < def->allowed_string_count; ++i) {
    weir_strbuf_printf(&text, "%s\"%.*s\"", i ? ", " : "", WEIR_VIEW_ARG(def->allowed_strings[i]));
  }
  weir_status_t* status = WEIR_STATUS(
      INVALID_ARGUMENT, "Value for attr '%s' of \"%.*s\" is not in the list of allowed values: %s",
      def->name, WEIR_VIEW_ARG(value), text.data ? text.data : "");
  weir_strbuf_free(&text);
  return status;
}

weir_status_t* weir_attr_check(const weir_attr_def_t* def, const weir_attr_t* value) {
  WEIR_TRY(check_kind(def, value));
  WEIR_TRY(check_minimum(def, value));
  size_t count = def->is_list ? value->count : 1;
  for (size_t i = 0; i < count; ++i) {
    if (def->kind == WEIR_ATTR_TYPE) {
      WEIR_TRY(check_allowed_type(def, def->is_list ? value->u.types[i] : value->u.type));
    } else if (def->kind == WEIR_ATTR_STRING) {
      WEIR_TRY(check_allowed_string(def, def->is_list ? value->u.strings[i] : value->u.s));
    }
  }
  return NULL;
}

// ---- inference ----

// The resolution of one node: |values| are those of the op's attributes, NONE where not known yet.
typedef struct resolve_t {
  const weir_op_t* op;
  const char* node_name;
  weir_attr_t* values;
  const weir_dtype_t* input_types;
  int input_count;
  weir_arena_t* arena;
} resolve_t;

static weir_attr_t* value_of(const resolve_t* r, const char* name) {
  const weir_attr_def_t* def = weir_op_attr(r->op, name);
  WEIR_CHECK(def != NULL);  // the spec parser saw to it
  return &r->values[def - r->op->attrs];
}

static bool is_known(const weir_attr_t* value) {
  return value->is_list || (value->kind != WEIR_ATTR_NONE && value->kind != WEIR_ATTR_PLACEHOLDER);
}

static const char* count_attr(const weir_arg_t* arg) {
  return arg->number_attr ? arg->number_attr : arg->type_list_attr;
}

// Tensors of |arg|, or -1 when its count attribute is not known.
static int64_t known_count(const resolve_t* r, const weir_arg_t* arg) {
  const char* name = count_attr(arg);
  if (!name) return 1;
  const weir_attr_t* value = value_of(r, name);
  if (!is_known(value)) return -1;
  if (value->is_list) return (int64_t)value->count;
  return value->kind == WEIR_ATTR_INT && value->u.i >= 0 ? value->u.i : -1;
}

static weir_status_t* wrong_input_count(const resolve_t* r) {
  weir_status_t* status = WEIR_STATUS(
      INVALID_ARGUMENT, "NodeDef expected inputs do not match %d inputs specified", r->input_count);
  return at_node(status, r->op, r->node_name);
}

// The tensors that each argument of the one unknown count has: what the others leave, shared
// evenly.
static weir_status_t* unknown_count(const resolve_t* r, int64_t* out_count) {
  const char* unknown = NULL;
  int64_t left = r->input_count;
  int64_t sharers = 0;
  for (int i = 0; i < r->op->input_count; ++i) {
    const weir_arg_t* arg = &r->op->inputs[i];
    int64_t count = known_count(r, arg);
    if (count >= 0) {
      left -= WEIR_MIN(count, MAX_TENSORS);
      continue;
    }
    if (unknown && strcmp(unknown, count_attr(arg)) != 0) {
      weir_status_t* status = WEIR_STATUS(
          INVALID_ARGUMENT, "attrs '%s' and '%s' cannot both be inferred from the inputs", unknown,
          count_attr(arg));
      return at_node(status, r->op, r->node_name);
    }
    unknown = count_attr(arg);
    ++sharers;
  }
  *out_count = 0;
  if (left < 0 || (sharers == 0 && left != 0)) return wrong_input_count(r);
  if (sharers == 0) return NULL;
  if (left % sharers != 0) return wrong_input_count(r);
  *out_count = left / sharers;
  return NULL;
}

static weir_status_t* infer_type_list(const resolve_t* r, const weir_arg_t* arg, int first,
                                      int64_t count) {
  weir_dtype_t* types = weir_arena_array(r->arena, (size_t)count, sizeof(*types));
  if (!types) return weir_out_of_memory();
  for (int64_t i = 0; i < count; ++i) types[i] = weir_dtype_base(r->input_types[first + i]);
  *value_of(r, arg->type_list_attr) = weir_attr_types("", types, (size_t)count).value;
  return NULL;
}

static weir_status_t* infer_from_inputs(const resolve_t* r) {
  int64_t unknown = 0;
  WEIR_TRY(unknown_count(r, &unknown));
  int first = 0;
  for (int i = 0; i < r->op->input_count; ++i) {
    const weir_arg_t* arg = &r->op->inputs[i];
    int64_t count = known_count(r, arg);
    bool is_counted = count >= 0;
    if (!is_counted) count = unknown;
    if (count > r->input_count - first) return wrong_input_count(r);
    if (arg->type_attr && count > 0 && !is_known(value_of(r, arg->type_attr))) {
      weir_dtype_t type = weir_dtype_base(r->input_types[first]);
      *value_of(r, arg->type_attr) = weir_attr_type("", type).value;
    }
    if (!is_counted && arg->number_attr) {
      *value_of(r, arg->number_attr) = weir_attr_int("", count).value;
    } else if (!is_counted) {
      WEIR_TRY(infer_type_list(r, arg, first, count));
    }
    first += (int)count;
  }
  return NULL;
}

// ---- resolution ----

static weir_status_t* take_given(resolve_t* r, weir_attrs_t given, size_t* out_extra_count) {
  *out_extra_count = 0;
  for (size_t i = 0; i < given.count; ++i) {
    const weir_attr_def_t* def = weir_op_attr(r->op, given.items[i].name);
    if (!def) {
      ++*out_extra_count;
      continue;
    }
    const weir_attr_t* value = &given.items[i].value;
    if (value->kind != WEIR_ATTR_PLACEHOLDER) {
      weir_status_t* status = weir_attr_check(def, value);
      if (status) return at_node(status, r->op, r->node_name);
    }
    weir_attr_t* slot = &r->values[def - r->op->attrs];
    *slot = *value;
    if (value->is_list) slot->kind = def->kind;  // an empty list did not know its kind
  }
  return NULL;
}

static weir_status_t* missing_attr(const resolve_t* r, const char* name) {
  weir_strbuf_t text = {0};
  weir_op_append_summary(r->op, &text);
  weir_status_t* status =
      WEIR_STATUS(INVALID_ARGUMENT, "NodeDef missing attr '%s' from %s; NodeDef: {{node %s}}", name,
                  text.data ? text.data : r->op->name, r->node_name);
  weir_strbuf_free(&text);
  return status;
}

static weir_status_t* complete(resolve_t* r, weir_attrs_t given, size_t extra_count,
                               weir_attrs_t* out_attrs) {
  size_t own_count = (size_t)r->op->attr_count;
  weir_named_attr_t* items = weir_arena_array(r->arena, own_count + extra_count, sizeof(*items));
  if (!items) return weir_out_of_memory();
  for (size_t i = 0; i < own_count; ++i) {
    const weir_attr_def_t* def = &r->op->attrs[i];
    weir_attr_t* value = &r->values[i];
    if (!value->is_list && value->kind == WEIR_ATTR_NONE) {
      if (!def->has_default) return missing_attr(r, def->name);
      *value = def->default_value;
    } else if (value->kind != WEIR_ATTR_PLACEHOLDER) {
      weir_status_t* status = weir_attr_check(def, value);  // what was inferred must fit too
      if (status) return at_node(status, r->op, r->node_name);
    }
    items[i] = (weir_named_attr_t){.name = def->name, .value = *value};
  }
  size_t next = own_count;
  for (size_t i = 0; i < given.count; ++i) {
    const char* name = given.items[i].name;
    if (weir_op_attr(r->op, name)) continue;
    items[next].value = given.items[i].value;
    items[next].name = weir_arena_strndup(r->arena, name, strlen(name));
    if (!items[next++].name) return weir_out_of_memory();
  }
  *out_attrs = (weir_attrs_t){.items = items, .count = own_count + extra_count};
  return NULL;
}

weir_status_t* weir_op_resolve(const weir_op_t* op, const char* node_name, weir_attrs_t given,
                               const weir_dtype_t* input_types, int input_count,
                               weir_arena_t* arena, weir_attrs_t* out_attrs) {
  resolve_t r = {.op = op,
                 .node_name = node_name ? node_name : "",
                 .input_types = input_types,
                 .input_count = input_count,
                 .arena = arena};
  r.values = weir_arena_array(arena, (size_t)op->attr_count, sizeof(*r.values));
  if (!r.values) return weir_out_of_memory();
  size_t extra_count = 0;
  WEIR_TRY(take_given(&r, given, &extra_count));
  if (input_types) WEIR_TRY(infer_from_inputs(&r));
  return complete(&r, given, extra_count, out_attrs);
}

// ---- types of arguments ----

// Tensors of |arg| under complete attributes; -1 when they are not.
static int64_t arg_count(const weir_arg_t* arg, weir_attrs_t attrs) {
  const char* name = count_attr(arg);
  if (!name) return 1;
  const weir_attr_t* value = weir_attrs_find(attrs, name);
  if (!value) return -1;
  if (value->is_list) return (int64_t)value->count;
  return value->kind == WEIR_ATTR_INT ? value->u.i : -1;
}

static weir_status_t* arg_type(const weir_arg_t* arg, const char* node_name, weir_attrs_t attrs,
                               int64_t i, weir_dtype_t* out_type) {
  weir_dtype_t type = arg->type;
  if (arg->type_attr || arg->type_list_attr) {
    const char* name = arg->type_attr ? arg->type_attr : arg->type_list_attr;
    const weir_attr_t* value = weir_attrs_find(attrs, name);
    bool is_list = arg->type_list_attr != NULL;
    if (!value || value->is_list != is_list || value->kind != WEIR_ATTR_TYPE) {
      return WEIR_STATUS(INVALID_ARGUMENT, "attr '%s' of node '%s' holds no type for '%s'", name,
                         node_name, arg->name);
    }
    type = is_list ? value->u.types[i] : value->u.type;
  }
  *out_type = arg->is_ref ? weir_dtype_ref(type) : type;
  return NULL;
}

weir_status_t* weir_op_arg_types(const weir_op_t* op, const char* node_name, weir_attrs_t attrs,
                                 bool outputs, weir_arena_t* arena, const weir_dtype_t** out_types,
                                 int* out_count) {
  const weir_arg_t* args = outputs ? op->outputs : op->inputs;
  int count = outputs ? op->output_count : op->input_count;
  int64_t total = 0;
  for (int i = 0; i < count; ++i) {
    int64_t n = arg_count(&args[i], attrs);
    if (n < 0 || n > MAX_TENSORS || (total += n) > MAX_TENSORS) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "'%s' of node '%s' has a bad number of tensors, %" PRId64, args[i].name,
                         node_name, n);
    }
  }
  weir_dtype_t* types = weir_arena_array(arena, (size_t)total, sizeof(*types));
  if (!types) return weir_out_of_memory();
  int64_t next = 0;
  for (int i = 0; i < count; ++i) {
    int64_t n = arg_count(&args[i], attrs);
    for (int64_t k = 0; k < n; ++k) {
      WEIR_TRY(arg_type(&args[i], node_name, attrs, k, &types[next++]));
    }
  }
  *out_types = types;
  *out_count = (int)total;
  return NULL;
}

static void arg_range(const weir_arg_t* args, weir_attrs_t attrs, int arg, int* out_first,
                      int* out_count) {
  int64_t first = 0;
  for (int i = 0; i < arg; ++i) first += arg_count(&args[i], attrs);
  *out_first = (int)first;
  *out_count = (int)arg_count(&args[arg], attrs);
}

void weir_node_input_range(const weir_node_def_t* node, int arg, int* out_first, int* out_count) {
  WEIR_CHECK(node->op && arg >= 0 && arg < node->op->input_count);
  arg_range(node->op->inputs, node->attrs, arg, out_first, out_count);
}

void weir_node_output_range(const weir_node_def_t* node, int arg, int* out_first, int* out_count) {
  WEIR_CHECK(node->op && arg >= 0 && arg < node->op->output_count);
  arg_range(node->op->outputs, node->attrs, arg, out_first, out_count);
}

static weir_status_t* at_member(const weir_attr_t* names, const weir_attr_t* ops, int i,
                                weir_status_t* take_status) {
  char name[512], op[128];
  snprintf(name, sizeof(name), "%.*s", WEIR_VIEW_ARG(names->u.strings[i]));
  snprintf(op, sizeof(op), "%.*s", WEIR_VIEW_ARG(ops->u.strings[i]));
  return weir_status_at_node(take_status, name, op);
}

weir_status_t* weir_composite_at_node(const weir_node_def_t* node, int i,
                                      weir_status_t* take_status) {
  return at_member(weir_attrs_list(node->attrs, "names"), weir_attrs_list(node->attrs, "ops"), i,
                   take_status);
}

static size_t string_count(weir_attrs_t attrs, const char* name) {
  const weir_attr_t* list = weir_attrs_find(attrs, name);
  return list && list->kind == WEIR_ATTR_STRING && list->is_list ? list->count : 0;
}

// Whoever made a graph may have given a node attributes of these names, too.
bool weir_node_is_extended(const weir_node_def_t* node) {
  size_t count = string_count(node->attrs, "_names");
  const weir_attr_t* base = weir_attrs_find(node->attrs, "_base");
  return count > 0 && string_count(node->attrs, "_ops") == count &&
         string_count(node->attrs, "_outputs") == (size_t)node->output_count && base &&
         base->kind == WEIR_ATTR_INT && !base->is_list && base->u.i >= 0 &&
         (size_t)base->u.i < count;
}

weir_status_t* weir_extended_at_node(const weir_node_def_t* node, int i,
                                     weir_status_t* take_status) {
  bool is_there = weir_node_is_extended(node) && (size_t)i < string_count(node->attrs, "_names");
  if (!is_there) return take_status;
  return at_member(weir_attrs_list(node->attrs, "_names"), weir_attrs_list(node->attrs, "_ops"), i,
                   take_status);
}

// spec.c — The parser of op definitions: attributes, arguments, defaults, in TensorFlow's own
// spelling.
#include "op/spec.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/string.h"
#include "tensor/tensor_proto.h"
#include "wire/text.h"

// What is being parsed, for messages, and where its results go.
typedef struct spec_t {
  const char* file;
  const weir_op_def_t* def;
  const char* what;   // "attr", "input" or "output"
  weir_view_t piece;  // between two semicolons
  weir_view_t rest;   // of |piece|, not read yet
  weir_arena_t* arena;
  weir_tensor_list_t* tensors;
} spec_t;

static weir_status_t* bad(const spec_t* s, const char* problem) {
  return WEIR_STATUS(INVALID_ARGUMENT, "%s: op %s: %s '%.*s': %s", s->file, s->def->name, s->what,
                     WEIR_VIEW_ARG(s->piece), problem);
}

// ---- tokens ----

static void skip_space(spec_t* s) {
  while (s->rest.size && isspace((unsigned char)*s->rest.data)) {
    s->rest.data++;
    s->rest.size--;
  }
}

static void advance(spec_t* s, size_t size) {
  s->rest.data += size;
  s->rest.size -= size;
  skip_space(s);
}

static bool accept(spec_t* s, const char* token) {
  if (!weir_view_starts_with(s->rest, token)) return false;
  advance(s, strlen(token));
  return true;
}

static bool peek(const spec_t* s, char c) { return s->rest.size && *s->rest.data == c; }

static weir_view_t word(spec_t* s, bool (*belongs)(char)) {
  size_t size = 0;
  while (size < s->rest.size && belongs(s->rest.data[size])) ++size;
  weir_view_t text = weir_view(s->rest.data, size);
  advance(s, size);
  return text;
}

static bool is_name_char(char c) { return isalnum((unsigned char)c) || c == '_'; }

static bool is_number_char(char c) { return isalnum((unsigned char)c) || strchr("+-.", c) != NULL; }

static weir_status_t* read_name(spec_t* s, const char** out_name) {
  weir_view_t name = word(s, is_name_char);
  if (name.size == 0 || isdigit((unsigned char)name.data[0])) return bad(s, "a name is expected");
  *out_name = weir_arena_strndup(s->arena, name.data, name.size);
  return *out_name ? NULL : weir_out_of_memory();
}

// Takes the next piece up to a semicolon that is not within quotes or brackets. False at the end.
static bool next_piece(spec_t* s, weir_view_t* text) {
  for (;;) {
    if (text->size == 0) return false;
    char quote = 0;
    int depth = 0;
    size_t i = 0;
    for (; i < text->size; ++i) {
      char c = text->data[i];
      if (quote) {
        if (c == '\\' && i + 1 < text->size) {
          ++i;
        } else if (c == quote) {
          quote = 0;
        }
        continue;
      }
      if (c == '\'' || c == '"') quote = c;
      if (c == '{' || c == '[' || c == '(') ++depth;
      if (c == '}' || c == ']' || c == ')') --depth;
      if (c == ';' && depth <= 0) break;
    }
    s->piece = weir_view_trim(weir_view(text->data, i));
    s->rest = s->piece;
    size_t used = i < text->size ? i + 1 : i;
    *text = weir_view(text->data + used, text->size - used);
    if (s->piece.size) return true;
  }
}

static char unescape(char c) {
  switch (c) {
    case 'n': return '\n';
    case 't': return '\t';
    case 'r': return '\r';
    case '0': return '\0';
    default: return c;
  }
}

// A string in single or double quotes, with backslash escapes.
static weir_status_t* read_quoted(spec_t* s, weir_view_t* out_text) {
  if (!peek(s, '\'') && !peek(s, '"')) return bad(s, "a quoted string is expected");
  char quote = *s->rest.data;
  char* text = weir_arena_alloc(s->arena, s->rest.size);
  if (!text) return weir_out_of_memory();
  size_t size = 0;
  for (size_t i = 1; i < s->rest.size; ++i) {
    char c = s->rest.data[i];
    if (c == quote) {
      *out_text = weir_view(text, size);
      advance(s, i + 1);
      return NULL;
    }
    if (c == '\\' && i + 1 < s->rest.size) c = unescape(s->rest.data[++i]);
    text[size++] = c;
  }
  return bad(s, "the string has no closing quote");
}

static weir_status_t* read_type(spec_t* s, weir_dtype_t* out_type) {
  weir_view_t name = word(s, is_name_char);
  if (name.size && weir_dtype_from_name(name.data, name.size, out_type)) return NULL;
  return bad(s, "a type is expected");
}

// ---- kinds and allowed values ----

static const weir_dtype_t number_types[] = {
    WEIR_DTYPE_FLOAT,  WEIR_DTYPE_DOUBLE,  WEIR_DTYPE_INT32,     WEIR_DTYPE_UINT8,
    WEIR_DTYPE_INT16,  WEIR_DTYPE_INT8,    WEIR_DTYPE_COMPLEX64, WEIR_DTYPE_INT64,
    WEIR_DTYPE_QINT8,  WEIR_DTYPE_QUINT8,  WEIR_DTYPE_QINT32,    WEIR_DTYPE_BFLOAT16,
    WEIR_DTYPE_QINT16, WEIR_DTYPE_QUINT16, WEIR_DTYPE_UINT16,    WEIR_DTYPE_COMPLEX128,
    WEIR_DTYPE_HALF,   WEIR_DTYPE_UINT32,  WEIR_DTYPE_UINT64};
static const weir_dtype_t real_number_types[] = {
    WEIR_DTYPE_FLOAT,  WEIR_DTYPE_DOUBLE, WEIR_DTYPE_INT32,  WEIR_DTYPE_UINT8,
    WEIR_DTYPE_INT16,  WEIR_DTYPE_INT8,   WEIR_DTYPE_INT64,  WEIR_DTYPE_BFLOAT16,
    WEIR_DTYPE_UINT16, WEIR_DTYPE_HALF,   WEIR_DTYPE_UINT32, WEIR_DTYPE_UINT64};
static const weir_dtype_t quantized_types[] = {
    WEIR_DTYPE_QINT8, WEIR_DTYPE_QUINT8, WEIR_DTYPE_QINT32, WEIR_DTYPE_QINT16, WEIR_DTYPE_QUINT16};
static const struct {
  const char* name;
  const weir_dtype_t* types;
  size_t count;
} type_sets[] = {
    {"numbertype", number_types, WEIR_COUNT_OF(number_types)},
    {"realnumbertype", real_number_types, WEIR_COUNT_OF(real_number_types)},
    {"quantizedtype", quantized_types, WEIR_COUNT_OF(quantized_types)},
};

static const struct {
  const char* name;
  const char* list_name;
} kind_names[] = {
    [WEIR_ATTR_NONE] = {"any", "list(any)"},
    [WEIR_ATTR_STRING] = {"string", "list(string)"},
    [WEIR_ATTR_INT] = {"int", "list(int)"},
    [WEIR_ATTR_FLOAT] = {"float", "list(float)"},
    [WEIR_ATTR_BOOL] = {"bool", "list(bool)"},
    [WEIR_ATTR_TYPE] = {"type", "list(type)"},
    [WEIR_ATTR_SHAPE] = {"shape", "list(shape)"},
    [WEIR_ATTR_TENSOR] = {"tensor", "list(tensor)"},
    [WEIR_ATTR_FUNC] = {"func", "list(func)"},
    [WEIR_ATTR_PLACEHOLDER] = {"placeholder", "list(placeholder)"},
};

const char* weir_attr_kind_name(weir_attr_kind_t kind, bool is_list) {
  return is_list ? kind_names[kind].list_name : kind_names[kind].name;
}

static void allow_types(weir_attr_def_t* attr, const weir_dtype_t* types, size_t count) {
  attr->kind = WEIR_ATTR_TYPE;
  attr->allowed_type_list = types;
  attr->allowed_type_count = count;
  for (size_t i = 0; i < count; ++i) attr->allowed_types |= UINT64_C(1) << types[i];
}

static size_t count_commas(weir_view_t text) {
  size_t count = 0;
  for (size_t i = 0; i < text.size; ++i) count += text.data[i] == ',';
  return count;
}

static weir_status_t* read_string_set(spec_t* s, weir_attr_def_t* attr) {
  weir_view_t* strings = weir_arena_array(s->arena, count_commas(s->rest) + 1, sizeof(*strings));
  if (!strings) return weir_out_of_memory();
  size_t count = 0;
  do {
    WEIR_TRY(read_quoted(s, &strings[count++]));
  } while (accept(s, ","));
  attr->kind = WEIR_ATTR_STRING;
  attr->allowed_strings = strings;
  attr->allowed_string_count = count;
  return NULL;
}

static weir_status_t* read_type_set(spec_t* s, weir_attr_def_t* attr) {
  weir_dtype_t* types = weir_arena_array(s->arena, count_commas(s->rest) + 1, sizeof(*types));
  if (!types) return weir_out_of_memory();
  size_t count = 0;
  do {
    WEIR_TRY(read_type(s, &types[count++]));
    if (!weir_dtype_is_valid(types[count - 1])) return bad(s, "a type of the set is no base type");
  } while (accept(s, ","));
  allow_types(attr, types, count);
  return NULL;
}

static weir_status_t* read_set(spec_t* s, weir_attr_def_t* attr) {
  bool is_strings = peek(s, '\'') || peek(s, '"');
  WEIR_TRY(is_strings ? read_string_set(s, attr) : read_type_set(s, attr));
  return accept(s, "}") ? NULL : bad(s, "the set has no closing brace");
}

// "int", "{float, double}", "numbertype": what may also stand within list(...).
static weir_status_t* read_kind(spec_t* s, weir_attr_def_t* attr) {
  if (accept(s, "{")) return read_set(s, attr);
  weir_view_t name = word(s, is_name_char);
  for (size_t i = 0; i < WEIR_COUNT_OF(type_sets); ++i) {
    if (!weir_view_is(name, type_sets[i].name)) continue;
    allow_types(attr, type_sets[i].types, type_sets[i].count);
    return NULL;
  }
  for (size_t i = WEIR_ATTR_STRING; i <= WEIR_ATTR_FUNC; ++i) {
    if (!weir_view_is(name, kind_names[i].name)) continue;
    attr->kind = (weir_attr_kind_t)i;
    return NULL;
  }
  return bad(s, "an attribute type is expected");
}

static weir_status_t* read_kind_or_list(spec_t* s, weir_attr_def_t* attr) {
  weir_view_t before = s->rest;
  if (!accept(s, "list") || !accept(s, "(")) {
    s->rest = before;
    return read_kind(s, attr);
  }
  attr->is_list = true;
  WEIR_TRY(read_kind(s, attr));
  return accept(s, ")") ? NULL : bad(s, "the list has no closing parenthesis");
}

// ---- defaults ----

static weir_status_t* read_int(spec_t* s, int64_t* out_value) {
  return weir_parse_int64(word(s, is_number_char), out_value) ? NULL
                                                              : bad(s, "an integer is expected");
}

static weir_status_t* read_float(spec_t* s, float* out_value) {
  double value = 0;
  weir_view_t text = word(s, is_number_char);
  if (!weir_parse_double(text, &value)) return bad(s, "a number is expected");
  char digits[64];
  if (text.size < sizeof(digits)) {  // strtof rounds once, where a cast of the double rounds twice
    memcpy(digits, text.data, text.size);
    digits[text.size] = '\0';
    *out_value = strtof(digits, NULL);
  } else {
    *out_value = (float)value;
  }
  return NULL;
}

static weir_status_t* read_bool(spec_t* s, bool* out_value) {
  weir_view_t text = word(s, is_name_char);
  *out_value = weir_view_is(text, "true");
  return *out_value || weir_view_is(text, "false") ? NULL : bad(s, "true or false is expected");
}

// Takes the text of a message in braces and makes wire bytes of it.
static weir_status_t* read_message(spec_t* s, const weir_message_t* message, weir_strbuf_t* out) {
  int depth = 0;
  size_t size = 0;
  do {
    if (size >= s->rest.size) return bad(s, "the message has no closing brace");
    char c = s->rest.data[size++];
    depth += (c == '{') - (c == '}');
  } while (depth > 0);
  weir_view_t text = weir_view(s->rest.data + 1, size >= 2 ? size - 2 : 0);
  weir_status_t* status = weir_text_parse(message, text, out);
  if (!status) status = weir_strbuf_finish(out);
  if (status) {
    return weir_status_prefix(status, "%s: op %s: %s '%.*s': ", s->file, s->def->name, s->what,
                              WEIR_VIEW_ARG(s->piece));
  }
  advance(s, size);
  return NULL;
}

// "[2,?]", "<unknown>", or TensorFlow's "{ unknown_rank: true }".
static weir_status_t* read_shape(spec_t* s, const weir_shape_t** out_shape) {
  if (peek(s, '{')) {
    weir_strbuf_t bytes = {0};
    weir_status_t* status = read_message(s, &weir_message_tensor_shape, &bytes);
    if (!status) status = weir_shape_parse(weir_strbuf_view(&bytes), s->arena, out_shape);
    weir_strbuf_free(&bytes);
    return status;
  }
  if (accept(s, "<unknown>")) {
    *out_shape = &weir_shape_unknown;
    return NULL;
  }
  if (!accept(s, "[")) return bad(s, "a shape is expected");
  int64_t dims[16];
  int rank = 0;
  while (!accept(s, "]")) {
    if (rank == (int)WEIR_COUNT_OF(dims)) return bad(s, "the shape has too many dimensions");
    dims[rank] = -1;
    if (!accept(s, "?")) WEIR_TRY(read_int(s, &dims[rank]));
    if (dims[rank] < -1) return bad(s, "a dimension is negative");
    ++rank;
    if (!accept(s, ",") && !peek(s, ']')) return bad(s, "the shape has no closing bracket");
  }
  *out_shape = weir_shape_make(s->arena, rank, dims);
  return *out_shape ? NULL : weir_out_of_memory();
}

static weir_status_t* read_tensor(spec_t* s, weir_tensor_t** out_tensor) {
  if (!peek(s, '{')) return bad(s, "a tensor in braces is expected");
  weir_strbuf_t bytes = {0};
  weir_tensor_t* tensor = NULL;
  weir_status_t* status = read_message(s, &weir_message_tensor, &bytes);
  if (!status) status = weir_tensor_parse(weir_strbuf_view(&bytes), &tensor);
  weir_strbuf_free(&bytes);
  if (!status) status = weir_tensor_list_add(s->tensors, tensor);
  if (!status) *out_tensor = tensor;
  return status;
}

static weir_status_t* read_func(spec_t* s, weir_func_t* out_func) {
  *out_func = (weir_func_t){.attrs = {.items = NULL, .count = 0}};
  return read_quoted(s, &out_func->name);
}

static weir_status_t* read_single(spec_t* s, weir_attr_t* value) {
  switch (value->kind) {
    case WEIR_ATTR_STRING: return read_quoted(s, &value->u.s);
    case WEIR_ATTR_INT: return read_int(s, &value->u.i);
    case WEIR_ATTR_FLOAT: return read_float(s, &value->u.f);
    case WEIR_ATTR_BOOL: return read_bool(s, &value->u.b);
    case WEIR_ATTR_TYPE: return read_type(s, &value->u.type);
    case WEIR_ATTR_SHAPE: return read_shape(s, &value->u.shape);
    case WEIR_ATTR_TENSOR: return read_tensor(s, &value->u.tensor);
    case WEIR_ATTR_FUNC: {
      weir_func_t* func = weir_arena_alloc(s->arena, sizeof(*func));
      if (!func) return weir_out_of_memory();
      value->u.func = func;
      return read_func(s, func);
    }
    default: return bad(s, "this attribute type has no default");
  }
}

static weir_status_t* read_element(spec_t* s, weir_attr_kind_t kind, void* items, size_t i) {
  switch (kind) {
    case WEIR_ATTR_STRING: return read_quoted(s, (weir_view_t*)items + i);
    case WEIR_ATTR_INT: return read_int(s, (int64_t*)items + i);
    case WEIR_ATTR_FLOAT: return read_float(s, (float*)items + i);
    case WEIR_ATTR_BOOL: return read_bool(s, (bool*)items + i);
    case WEIR_ATTR_TYPE: return read_type(s, (weir_dtype_t*)items + i);
    case WEIR_ATTR_SHAPE: return read_shape(s, (const weir_shape_t**)items + i);
    case WEIR_ATTR_TENSOR: return read_tensor(s, (weir_tensor_t**)items + i);
    default: return read_func(s, (weir_func_t*)items + i);
  }
}

static weir_status_t* read_list(spec_t* s, weir_attr_t* value) {
  value->is_list = true;
  if (!accept(s, "[")) return bad(s, "a list in brackets is expected");
  size_t capacity = count_commas(s->rest) + 1;
  void* items = weir_arena_array(s->arena, capacity, sizeof(weir_func_t));  // the largest element
  if (!items) return weir_out_of_memory();
  while (!accept(s, "]")) {
    if (value->count == capacity) return bad(s, "the list has no closing bracket");
    WEIR_TRY(read_element(s, value->kind, items, value->count++));
    if (!accept(s, ",") && !peek(s, ']')) return bad(s, "the list has no closing bracket");
  }
  value->u.ints = items;  // all pointers of the union share their representation
  return NULL;
}

static weir_status_t* read_default(spec_t* s, weir_attr_def_t* attr) {
  weir_attr_t* value = &attr->default_value;
  value->kind = attr->kind;
  WEIR_TRY(attr->is_list ? read_list(s, value) : read_single(s, value));
  attr->has_default = true;
  weir_status_t* status = weir_attr_check(attr, value);
  if (!status) return NULL;
  return weir_status_prefix(status, "%s: op %s: %s '%.*s': ", s->file, s->def->name, s->what,
                            WEIR_VIEW_ARG(s->piece));
}

// ---- attributes ----

static size_t count_pieces(spec_t* s, const char* text) {
  size_t count = 0;
  weir_view_t rest = weir_view_of(text);
  while (next_piece(s, &rest)) ++count;
  return count;
}

static weir_status_t* parse_attr(spec_t* s, weir_attr_def_t* attr) {
  WEIR_TRY(read_name(s, &attr->name));
  if (!accept(s, ":")) return bad(s, "a colon is expected after the name");
  WEIR_TRY(read_kind_or_list(s, attr));
  if (accept(s, ">=")) {
    attr->has_minimum = true;
    if (!attr->is_list && attr->kind != WEIR_ATTR_INT)
      return bad(s, "only int and lists have a minimum");
    WEIR_TRY(read_int(s, &attr->minimum));
  }
  if (accept(s, "=")) WEIR_TRY(read_default(s, attr));
  return s->rest.size == 0 ? NULL : bad(s, "there is more than can be read");
}

static weir_status_t* parse_attrs(spec_t* s, weir_op_t* op) {
  s->what = "attr";
  size_t count = count_pieces(s, s->def->attrs);
  weir_attr_def_t* attrs = weir_arena_array(s->arena, count, sizeof(*attrs));
  if (!attrs) return weir_out_of_memory();
  op->attrs = attrs;
  weir_view_t text = weir_view_of(s->def->attrs);
  while (next_piece(s, &text)) {
    weir_attr_def_t* attr = &attrs[op->attr_count];
    WEIR_TRY(parse_attr(s, attr));
    if (weir_op_attr(op, attr->name)) return bad(s, "the name is used twice");
    op->attr_count++;
  }
  return NULL;
}

// ---- arguments ----

// What counts arguments has a minimum of 1 unless the definition gives another.
static void set_default_minimum(const weir_op_t* op, const char* name) {
  weir_attr_def_t* attr = (weir_attr_def_t*)(uintptr_t)weir_op_attr(op, name);
  if (attr->has_minimum) return;
  attr->has_minimum = true;
  attr->minimum = 1;
}

static weir_status_t* resolve_type(spec_t* s, const weir_op_t* op, const char* name,
                                   weir_arg_t* arg) {
  const weir_attr_def_t* attr = weir_op_attr(op, name);
  if (!attr) {
    if (weir_dtype_from_name(name, strlen(name), &arg->type)) return NULL;
    return bad(s, "the type is neither a type nor an attribute");
  }
  if (attr->kind != WEIR_ATTR_TYPE) return bad(s, "the attribute named as its type holds no type");
  if (!attr->is_list) {
    arg->type_attr = attr->name;
    return NULL;
  }
  if (arg->number_attr) return bad(s, "a list of types cannot be repeated");
  arg->type_list_attr = attr->name;
  set_default_minimum(op, attr->name);
  return NULL;
}

static weir_status_t* read_arg_type(spec_t* s, const weir_op_t* op, weir_arg_t* arg) {
  if (!arg->is_ref && accept(s, "Ref")) {
    if (!accept(s, "(")) return bad(s, "a parenthesis is expected after Ref");
    arg->is_ref = true;
    WEIR_TRY(read_arg_type(s, op, arg));
    return accept(s, ")") ? NULL : bad(s, "Ref has no closing parenthesis");
  }
  const char* name = NULL;
  WEIR_TRY(read_name(s, &name));
  if (!accept(s, "*")) return resolve_type(s, op, name, arg);
  const weir_attr_def_t* attr = weir_op_attr(op, name);
  if (!attr || attr->kind != WEIR_ATTR_INT || attr->is_list) {
    return bad(s, "the repeat count is not an int attribute");
  }
  if (arg->number_attr) return bad(s, "there are two repeat counts");
  arg->number_attr = attr->name;
  set_default_minimum(op, attr->name);
  return read_arg_type(s, op, arg);
}

static bool has_arg(const weir_arg_t* args, int count, const char* name) {
  for (int i = 0; i < count; ++i) {
    if (strcmp(args[i].name, name) == 0) return true;
  }
  return false;
}

static weir_status_t* parse_args(spec_t* s, const weir_op_t* op, const char* what, const char* spec,
                                 const weir_arg_t** out_args, int* out_count) {
  s->what = what;
  size_t capacity = count_pieces(s, spec);
  weir_arg_t* args = weir_arena_array(s->arena, capacity, sizeof(*args));
  if (!args) return weir_out_of_memory();
  weir_view_t text = weir_view_of(spec);
  int count = 0;
  while (next_piece(s, &text)) {
    weir_arg_t* arg = &args[count];
    WEIR_TRY(read_name(s, &arg->name));
    if (!accept(s, ":")) return bad(s, "a colon is expected after the name");
    WEIR_TRY(read_arg_type(s, op, arg));
    if (s->rest.size) return bad(s, "there is more than can be read");
    if (has_arg(args, count, arg->name)) return bad(s, "the name is used twice");
    ++count;
  }
  *out_args = args;
  *out_count = count;
  return NULL;
}

weir_status_t* weir_spec_parse(const char* file, const weir_op_def_t* def, weir_arena_t* arena,
                               weir_tensor_list_t* tensors, weir_op_t* out_op) {
  spec_t s = {.file = file ? file : "?", .def = def, .arena = arena, .tensors = tensors};
  weir_op_t op = {.name = def->name, .flags = def->flags, .role = def->role, .def = def};
  WEIR_TRY(parse_attrs(&s, &op));
  WEIR_TRY(parse_args(&s, &op, "input", def->inputs, &op.inputs, &op.input_count));
  WEIR_TRY(parse_args(&s, &op, "output", def->outputs, &op.outputs, &op.output_count));
  *out_op = op;
  return NULL;
}

// ---- kernel rows ----

static weir_status_t* type_mask(weir_view_t types, uint64_t* out_mask) {
  weir_view_t part;
  uint64_t mask = 0;
  while (weir_view_next(&types, ',', &part)) {
    weir_dtype_t type = WEIR_DTYPE_INVALID;
    part = weir_view_trim(part);
    for (size_t i = 0; i < WEIR_COUNT_OF(type_sets); ++i) {
      if (!weir_view_is(part, type_sets[i].name)) continue;
      for (size_t k = 0; k < type_sets[i].count; ++k) mask |= UINT64_C(1) << type_sets[i].types[k];
      part.size = 0;
    }
    if (part.size == 0) continue;
    if (!weir_dtype_from_name(part.data, part.size, &type) || !weir_dtype_is_valid(type)) {
      return WEIR_STATUS(INVALID_ARGUMENT, "'%.*s' is not a type", WEIR_VIEW_ARG(part));
    }
    mask |= UINT64_C(1) << type;
  }
  *out_mask = mask;
  return NULL;
}

weir_status_t* weir_spec_kernel_types(const char* types, const char* attr, uint64_t* out_mask) {
  weir_view_t rest = weir_view_of(types);
  weir_view_t part;
  *out_mask = 0;
  while (rest.size && weir_view_next(&rest, ';', &part)) {
    weir_view_t name;
    if (weir_view_trim(part).size == 0) continue;
    if (!weir_view_next(&part, ':', &name) || part.size == 0) {
      return WEIR_STATUS(INVALID_ARGUMENT, "'%.*s' is not 'attribute: types'", WEIR_VIEW_ARG(name));
    }
    if (weir_view_is(weir_view_trim(name), attr)) return type_mask(part, out_mask);
  }
  return NULL;
}

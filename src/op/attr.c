// attr.c — Attribute values in memory: lookup, building, copying, comparing, printing.
#include "op/attr.h"

#include <inttypes.h>

#include "base/map.h"
#include "base/string.h"

// ---- lookup ----

const weir_attr_t* weir_attrs_find(weir_attrs_t attrs, const char* name) {
  for (size_t i = 0; i < attrs.count; ++i) {
    if (strcmp(attrs.items[i].name, name) == 0) return &attrs.items[i].value;
  }
  return NULL;
}

static const weir_attr_t* require(weir_attrs_t attrs, const char* name, weir_attr_kind_t kind) {
  const weir_attr_t* value = weir_attrs_find(attrs, name);
  WEIR_CHECK(value != NULL);
  WEIR_CHECK(value->kind == kind && !value->is_list);
  return value;
}

int64_t weir_attrs_int(weir_attrs_t attrs, const char* name) {
  return require(attrs, name, WEIR_ATTR_INT)->u.i;
}

float weir_attrs_float(weir_attrs_t attrs, const char* name) {
  return require(attrs, name, WEIR_ATTR_FLOAT)->u.f;
}

bool weir_attrs_bool(weir_attrs_t attrs, const char* name) {
  return require(attrs, name, WEIR_ATTR_BOOL)->u.b;
}

weir_dtype_t weir_attrs_type(weir_attrs_t attrs, const char* name) {
  return require(attrs, name, WEIR_ATTR_TYPE)->u.type;
}

weir_view_t weir_attrs_string(weir_attrs_t attrs, const char* name) {
  return require(attrs, name, WEIR_ATTR_STRING)->u.s;
}

const weir_shape_t* weir_attrs_shape(weir_attrs_t attrs, const char* name) {
  return require(attrs, name, WEIR_ATTR_SHAPE)->u.shape;
}

weir_tensor_t* weir_attrs_tensor(weir_attrs_t attrs, const char* name) {
  return require(attrs, name, WEIR_ATTR_TENSOR)->u.tensor;
}

const weir_func_t* weir_attrs_func(weir_attrs_t attrs, const char* name) {
  return require(attrs, name, WEIR_ATTR_FUNC)->u.func;
}

const weir_attr_t* weir_attrs_list(weir_attrs_t attrs, const char* name) {
  const weir_attr_t* value = weir_attrs_find(attrs, name);
  WEIR_CHECK(value != NULL);
  WEIR_CHECK(value->is_list);
  return value;
}

// ---- building ----

static weir_named_attr_t named(const char* name, weir_attr_kind_t kind) {
  return (weir_named_attr_t){.name = name, .value = {.kind = kind}};
}

static weir_named_attr_t named_list(const char* name, weir_attr_kind_t kind, size_t count) {
  return (weir_named_attr_t){.name = name,
                             .value = {.kind = kind, .is_list = true, .count = count}};
}

weir_named_attr_t weir_attr_int(const char* name, int64_t value) {
  weir_named_attr_t attr = named(name, WEIR_ATTR_INT);
  attr.value.u.i = value;
  return attr;
}

weir_named_attr_t weir_attr_float(const char* name, float value) {
  weir_named_attr_t attr = named(name, WEIR_ATTR_FLOAT);
  attr.value.u.f = value;
  return attr;
}

weir_named_attr_t weir_attr_bool(const char* name, bool value) {
  weir_named_attr_t attr = named(name, WEIR_ATTR_BOOL);
  attr.value.u.b = value;
  return attr;
}

weir_named_attr_t weir_attr_type(const char* name, weir_dtype_t value) {
  weir_named_attr_t attr = named(name, WEIR_ATTR_TYPE);
  attr.value.u.type = value;
  return attr;
}

weir_named_attr_t weir_attr_string(const char* name, const char* value) {
  return weir_attr_view(name, weir_view_of(value));
}

weir_named_attr_t weir_attr_view(const char* name, weir_view_t value) {
  weir_named_attr_t attr = named(name, WEIR_ATTR_STRING);
  attr.value.u.s = value;
  return attr;
}

weir_named_attr_t weir_attr_shape(const char* name, const weir_shape_t* value) {
  weir_named_attr_t attr = named(name, WEIR_ATTR_SHAPE);
  attr.value.u.shape = value;
  return attr;
}

weir_named_attr_t weir_attr_tensor(const char* name, weir_tensor_t* value) {
  weir_named_attr_t attr = named(name, WEIR_ATTR_TENSOR);
  attr.value.u.tensor = value;
  return attr;
}

weir_named_attr_t weir_attr_func(const char* name, const weir_func_t* value) {
  weir_named_attr_t attr = named(name, WEIR_ATTR_FUNC);
  attr.value.u.func = value;
  return attr;
}

weir_named_attr_t weir_attr_ints(const char* name, const int64_t* values, size_t count) {
  weir_named_attr_t attr = named_list(name, WEIR_ATTR_INT, count);
  attr.value.u.ints = values;
  return attr;
}

weir_named_attr_t weir_attr_floats(const char* name, const float* values, size_t count) {
  weir_named_attr_t attr = named_list(name, WEIR_ATTR_FLOAT, count);
  attr.value.u.floats = values;
  return attr;
}

weir_named_attr_t weir_attr_types(const char* name, const weir_dtype_t* values, size_t count) {
  weir_named_attr_t attr = named_list(name, WEIR_ATTR_TYPE, count);
  attr.value.u.types = values;
  return attr;
}

weir_named_attr_t weir_attr_strings(const char* name, const weir_view_t* values, size_t count) {
  weir_named_attr_t attr = named_list(name, WEIR_ATTR_STRING, count);
  attr.value.u.strings = values;
  return attr;
}

weir_named_attr_t weir_attr_shapes(const char* name, const weir_shape_t* const* values,
                                   size_t count) {
  weir_named_attr_t attr = named_list(name, WEIR_ATTR_SHAPE, count);
  attr.value.u.shapes = values;
  return attr;
}

weir_named_attr_t weir_attr_copy(const char* name, const weir_attr_t* value) {
  return (weir_named_attr_t){.name = name, .value = *value};
}

// ---- tensor lists ----

weir_status_t* weir_tensor_list_add(weir_tensor_list_t* list, weir_tensor_t* take_tensor) {
  if (!WEIR_GROW(list->items, list->capacity, list->count + 1)) {
    weir_tensor_release(take_tensor);
    return weir_out_of_memory();
  }
  list->items[list->count++] = take_tensor;
  return NULL;
}

void weir_tensor_list_free(weir_tensor_list_t* list) {
  for (size_t i = 0; i < list->count; ++i) weir_tensor_release(list->items[i]);
  weir_free(list->items);
  *list = (weir_tensor_list_t){.items = NULL, .count = 0, .capacity = 0};
}

// ---- copying ----

static weir_status_t* clone_view(weir_view_t view, weir_arena_t* arena, weir_view_t* out_view) {
  char* text = weir_arena_strndup(arena, view.data ? view.data : "", view.size);
  if (!text) return weir_out_of_memory();
  *out_view = weir_view(text, view.size);
  return NULL;
}

static weir_status_t* clone_shape(const weir_shape_t* shape, weir_arena_t* arena,
                                  const weir_shape_t** out_shape) {
  *out_shape = weir_shape_make(arena, shape->rank, shape->dims);
  return *out_shape ? NULL : weir_out_of_memory();
}

static weir_status_t* clone_func(const weir_func_t* func, weir_arena_t* arena,
                                 weir_tensor_list_t* tensors, weir_func_t* out_func) {
  WEIR_TRY(clone_view(func->name, arena, &out_func->name));
  weir_named_attr_t* items = weir_arena_array(arena, func->attrs.count, sizeof(*items));
  if (!items) return weir_out_of_memory();
  for (size_t i = 0; i < func->attrs.count; ++i) {
    const char* name = func->attrs.items[i].name;
    items[i].name = weir_arena_strndup(arena, name, strlen(name));
    if (!items[i].name) return weir_out_of_memory();
    WEIR_TRY(weir_attr_clone(&func->attrs.items[i].value, arena, tensors, &items[i].value));
  }
  out_func->attrs = (weir_attrs_t){.items = items, .count = func->attrs.count};
  return NULL;
}

static weir_status_t* clone_bytes(const void* items, size_t count, size_t size, weir_arena_t* arena,
                                  void** out_items) {
  *out_items = weir_arena_array(arena, count, size);
  if (!*out_items) return weir_out_of_memory();
  if (count) memcpy(*out_items, items, count * size);
  return NULL;
}

static weir_status_t* clone_tensors(const weir_attr_t* value, weir_arena_t* arena,
                                    weir_tensor_list_t* tensors, weir_attr_t* copy) {
  void* items = NULL;
  WEIR_TRY(clone_bytes(value->u.tensors, value->count, sizeof(weir_tensor_t*), arena, &items));
  for (size_t i = 0; i < value->count; ++i) {
    WEIR_TRY(weir_tensor_list_add(tensors, weir_tensor_retain(value->u.tensors[i])));
  }
  copy->u.tensors = items;
  return NULL;
}

static weir_status_t* clone_shapes(const weir_attr_t* value, weir_arena_t* arena,
                                   weir_attr_t* copy) {
  const weir_shape_t** shapes = weir_arena_array(arena, value->count, sizeof(*shapes));
  if (!shapes) return weir_out_of_memory();
  for (size_t i = 0; i < value->count; ++i) {
    WEIR_TRY(clone_shape(value->u.shapes[i], arena, &shapes[i]));
  }
  copy->u.shapes = shapes;
  return NULL;
}

static weir_status_t* clone_strings(const weir_attr_t* value, weir_arena_t* arena,
                                    weir_attr_t* copy) {
  weir_view_t* strings = weir_arena_array(arena, value->count, sizeof(*strings));
  if (!strings) return weir_out_of_memory();
  for (size_t i = 0; i < value->count; ++i) {
    WEIR_TRY(clone_view(value->u.strings[i], arena, &strings[i]));
  }
  copy->u.strings = strings;
  return NULL;
}

static weir_status_t* clone_funcs(const weir_attr_t* value, weir_arena_t* arena,
                                  weir_tensor_list_t* tensors, weir_attr_t* copy) {
  weir_func_t* funcs = weir_arena_array(arena, value->count, sizeof(*funcs));
  if (!funcs) return weir_out_of_memory();
  for (size_t i = 0; i < value->count; ++i) {
    WEIR_TRY(clone_func(&value->u.funcs[i], arena, tensors, &funcs[i]));
  }
  copy->u.funcs = funcs;
  return NULL;
}

static weir_status_t* clone_list(const weir_attr_t* value, weir_arena_t* arena,
                                 weir_tensor_list_t* tensors, weir_attr_t* copy) {
  void* items = NULL;
  switch (value->kind) {
    case WEIR_ATTR_NONE:
    case WEIR_ATTR_PLACEHOLDER: return NULL;
    case WEIR_ATTR_STRING: return clone_strings(value, arena, copy);
    case WEIR_ATTR_INT:
      WEIR_TRY(clone_bytes(value->u.ints, value->count, sizeof(int64_t), arena, &items));
      copy->u.ints = items;
      return NULL;
    case WEIR_ATTR_FLOAT:
      WEIR_TRY(clone_bytes(value->u.floats, value->count, sizeof(float), arena, &items));
      copy->u.floats = items;
      return NULL;
    case WEIR_ATTR_BOOL:
      WEIR_TRY(clone_bytes(value->u.bools, value->count, sizeof(bool), arena, &items));
      copy->u.bools = items;
      return NULL;
    case WEIR_ATTR_TYPE:
      WEIR_TRY(clone_bytes(value->u.types, value->count, sizeof(weir_dtype_t), arena, &items));
      copy->u.types = items;
      return NULL;
    case WEIR_ATTR_SHAPE: return clone_shapes(value, arena, copy);
    case WEIR_ATTR_TENSOR: return clone_tensors(value, arena, tensors, copy);
    case WEIR_ATTR_FUNC: return clone_funcs(value, arena, tensors, copy);
  }
  return NULL;
}

static weir_status_t* clone_single(const weir_attr_t* value, weir_arena_t* arena,
                                   weir_tensor_list_t* tensors, weir_attr_t* copy) {
  switch (value->kind) {
    case WEIR_ATTR_STRING:
    case WEIR_ATTR_PLACEHOLDER: return clone_view(value->u.s, arena, &copy->u.s);
    case WEIR_ATTR_SHAPE: return clone_shape(value->u.shape, arena, &copy->u.shape);
    case WEIR_ATTR_TENSOR:
      // A message that spells a repeated value once is much smaller than the tensor: worth keeping.
      if (value->raw.size && value->raw.size < weir_tensor_byte_size(value->u.tensor)) {
        WEIR_TRY(clone_view(value->raw, arena, &copy->raw));
      }
      return weir_tensor_list_add(tensors, weir_tensor_retain(value->u.tensor));
    case WEIR_ATTR_FUNC: {
      weir_func_t* func = weir_arena_alloc(arena, sizeof(*func));
      if (!func) return weir_out_of_memory();
      copy->u.func = func;
      return clone_func(value->u.func, arena, tensors, func);
    }
    default: return NULL;
  }
}

weir_status_t* weir_attr_clone(const weir_attr_t* value, weir_arena_t* arena,
                               weir_tensor_list_t* tensors, weir_attr_t* out_value) {
  weir_attr_t copy = *value;
  copy.raw = weir_view(NULL, 0);
  WEIR_TRY(value->is_list ? clone_list(value, arena, tensors, &copy)
                          : clone_single(value, arena, tensors, &copy));
  *out_value = copy;
  return NULL;
}

// ---- comparing ----

static bool tensor_equal(const weir_tensor_t* a, const weir_tensor_t* b) {
  if (a == b) return true;
  if (a->dtype != b->dtype || !weir_tensor_same_shape(a, b)) return false;
  if (a->count == 0 || a->data == b->data) return true;
  if (a->dtype != WEIR_DTYPE_STRING) {
    return memcmp(a->data, b->data, weir_tensor_byte_size(a)) == 0;
  }
  for (int64_t i = 0; i < a->count; ++i) {
    weir_view_t x = weir_string_view(WEIR_TENSOR_DATA(a, weir_string_t) + i);
    weir_view_t y = weir_string_view(WEIR_TENSOR_DATA(b, weir_string_t) + i);
    if (!weir_view_equal(x, y)) return false;
  }
  return true;
}

static bool func_equal(const weir_func_t* a, const weir_func_t* b) {
  if (!weir_view_equal(a->name, b->name) || a->attrs.count != b->attrs.count) return false;
  for (size_t i = 0; i < a->attrs.count; ++i) {  // a map: the order says nothing
    const weir_attr_t* other = weir_attrs_find(b->attrs, a->attrs.items[i].name);
    if (!other || !weir_attr_equal(&a->attrs.items[i].value, other)) return false;
  }
  return true;
}

// The attribute that element |i| of a list would be by itself.
static weir_attr_t element_at(const weir_attr_t* list, size_t i) {
  weir_attr_t element = {.kind = list->kind};
  switch (list->kind) {
    case WEIR_ATTR_NONE:
    case WEIR_ATTR_PLACEHOLDER: break;
    case WEIR_ATTR_STRING: element.u.s = list->u.strings[i]; break;
    case WEIR_ATTR_INT: element.u.i = list->u.ints[i]; break;
    case WEIR_ATTR_FLOAT: element.u.f = list->u.floats[i]; break;
    case WEIR_ATTR_BOOL: element.u.b = list->u.bools[i]; break;
    case WEIR_ATTR_TYPE: element.u.type = list->u.types[i]; break;
    case WEIR_ATTR_SHAPE: element.u.shape = list->u.shapes[i]; break;
    case WEIR_ATTR_TENSOR: element.u.tensor = list->u.tensors[i]; break;
    case WEIR_ATTR_FUNC: element.u.func = &list->u.funcs[i]; break;
  }
  return element;
}

bool weir_attr_equal(const weir_attr_t* a, const weir_attr_t* b) {
  if (a->is_list != b->is_list) return false;
  if (a->is_list) {
    if (a->count != b->count) return false;
    if (a->count && a->kind != b->kind) return false;
    for (size_t i = 0; i < a->count; ++i) {
      weir_attr_t x = element_at(a, i);
      weir_attr_t y = element_at(b, i);
      if (!weir_attr_equal(&x, &y)) return false;
    }
    return true;
  }
  if (a->kind != b->kind) return false;
  switch (a->kind) {
    case WEIR_ATTR_NONE: return true;
    case WEIR_ATTR_STRING:
    case WEIR_ATTR_PLACEHOLDER: return weir_view_equal(a->u.s, b->u.s);
    case WEIR_ATTR_INT: return a->u.i == b->u.i;
    case WEIR_ATTR_FLOAT:  // bit for bit: NaN equals NaN, 0 and -0 differ
      // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): as said
      return memcmp(&a->u.f, &b->u.f, sizeof(float)) == 0;
    case WEIR_ATTR_BOOL: return a->u.b == b->u.b;
    case WEIR_ATTR_TYPE: return a->u.type == b->u.type;
    case WEIR_ATTR_SHAPE: return weir_shape_equal(a->u.shape, b->u.shape);
    case WEIR_ATTR_TENSOR: return tensor_equal(a->u.tensor, b->u.tensor);
    case WEIR_ATTR_FUNC: return func_equal(a->u.func, b->u.func);
  }
  return false;
}

static uint64_t hash_tensor(const weir_tensor_t* tensor) {
  uint64_t hash = weir_hash_bytes(tensor->dims, sizeof(int64_t) * tensor->rank, tensor->dtype);
  if (tensor->dtype != WEIR_DTYPE_STRING) {
    return weir_hash_bytes(tensor->data, weir_tensor_byte_size(tensor), hash);
  }
  for (int64_t i = 0; i < tensor->count; ++i) {
    weir_view_t text = weir_string_view(WEIR_TENSOR_DATA(tensor, weir_string_t) + i);
    hash = weir_hash_bytes(text.data, text.size, hash);
  }
  return hash;
}

static uint64_t hash_func(const weir_func_t* func) {
  uint64_t hash = weir_hash_bytes(func->name.data, func->name.size, func->attrs.count);
  uint64_t sum = 0;  // a sum, because the order of a map says nothing
  for (size_t i = 0; i < func->attrs.count; ++i) {
    const weir_named_attr_t* attr = &func->attrs.items[i];
    sum += weir_hash_bytes(attr->name, strlen(attr->name), weir_attr_hash(&attr->value));
  }
  return weir_hash_mix(hash + sum);
}

uint64_t weir_attr_hash(const weir_attr_t* value) {
  if (value->is_list) {
    uint64_t hash = value->count;
    for (size_t i = 0; i < value->count; ++i) {
      weir_attr_t element = element_at(value, i);
      hash = weir_hash_mix(hash * 31 + weir_attr_hash(&element));
    }
    return hash;
  }
  uint64_t seed = (uint64_t)value->kind;
  switch (value->kind) {
    case WEIR_ATTR_NONE: return seed;
    case WEIR_ATTR_STRING:
    case WEIR_ATTR_PLACEHOLDER: return weir_hash_bytes(value->u.s.data, value->u.s.size, seed);
    case WEIR_ATTR_INT: return weir_hash_mix((uint64_t)value->u.i + seed);
    case WEIR_ATTR_FLOAT: return weir_hash_bytes(&value->u.f, sizeof(float), seed);
    case WEIR_ATTR_BOOL: return weir_hash_mix(seed + (value->u.b ? 100 : 200));
    case WEIR_ATTR_TYPE: return weir_hash_mix(seed * 1000 + (uint64_t)value->u.type);
    case WEIR_ATTR_SHAPE: {
      const weir_shape_t* shape = value->u.shape;
      size_t rank = shape->rank > 0 ? (size_t)shape->rank : 0;
      return weir_hash_bytes(shape->dims, sizeof(int64_t) * rank, seed + (uint64_t)shape->rank);
    }
    case WEIR_ATTR_TENSOR: return weir_hash_mix(seed + hash_tensor(value->u.tensor));
    case WEIR_ATTR_FUNC: return weir_hash_mix(seed + hash_func(value->u.func));
  }
  return seed;
}

// ---- printing ----

static void append_quoted(weir_view_t text, weir_strbuf_t* out) {
  const size_t limit = 80;  // as much as a message can bear
  weir_strbuf_putc(out, '"');
  for (size_t i = 0; i < WEIR_MIN(text.size, limit); ++i) {
    unsigned char c = (unsigned char)text.data[i];
    if (c == '"' || c == '\\') {
      weir_strbuf_printf(out, "\\%c", c);
    } else if (c < 0x20 || c >= 0x7f) {
      weir_strbuf_printf(out, "\\%03o", c);
    } else {
      weir_strbuf_putc(out, (char)c);
    }
  }
  weir_strbuf_puts(out, text.size > limit ? "...\"" : "\"");
}

static void append_func(const weir_func_t* func, weir_strbuf_t* out) {
  weir_strbuf_append(out, func->name.data, func->name.size);
  weir_strbuf_putc(out, '[');
  for (size_t i = 0; i < func->attrs.count; ++i) {
    weir_strbuf_printf(out, "%s%s=", i ? ", " : "", func->attrs.items[i].name);
    weir_attr_append_text(&func->attrs.items[i].value, out);
  }
  weir_strbuf_putc(out, ']');
}

static void append_tensor(const weir_tensor_t* tensor, weir_strbuf_t* out) {
  char shape[WEIR_SHAPE_TEXT_SIZE];
  weir_strbuf_printf(
      out, "Tensor<type: %s shape: %s values: ", weir_dtype_name(weir_tensor_type(tensor)),
      weir_tensor_shape_text(tensor, shape));
  weir_tensor_print(tensor, 3, out);
  weir_strbuf_putc(out, '>');
}

void weir_attr_append_text(const weir_attr_t* value, weir_strbuf_t* out) {
  if (value->is_list) {
    const size_t limit = 50;
    weir_strbuf_putc(out, '[');
    for (size_t i = 0; i < WEIR_MIN(value->count, limit); ++i) {
      weir_attr_t element = element_at(value, i);
      if (i) weir_strbuf_puts(out, ", ");
      weir_attr_append_text(&element, out);
    }
    weir_strbuf_puts(out, value->count > limit ? ", ...]" : "]");
    return;
  }
  switch (value->kind) {
    case WEIR_ATTR_NONE: weir_strbuf_puts(out, "<Unknown AttrValue type>"); break;
    case WEIR_ATTR_STRING: append_quoted(value->u.s, out); break;
    case WEIR_ATTR_INT: weir_strbuf_printf(out, "%" PRId64, value->u.i); break;
    case WEIR_ATTR_FLOAT: weir_strbuf_printf(out, "%g", (double)value->u.f); break;
    case WEIR_ATTR_BOOL: weir_strbuf_puts(out, value->u.b ? "true" : "false"); break;
    case WEIR_ATTR_TYPE: weir_strbuf_puts(out, weir_dtype_name(value->u.type)); break;
    case WEIR_ATTR_SHAPE: weir_shape_append(value->u.shape, out); break;
    case WEIR_ATTR_TENSOR: append_tensor(value->u.tensor, out); break;
    case WEIR_ATTR_FUNC: append_func(value->u.func, out); break;
    case WEIR_ATTR_PLACEHOLDER:
      weir_strbuf_putc(out, '$');
      weir_strbuf_append(out, value->u.s.data, value->u.s.size);
      break;
  }
}

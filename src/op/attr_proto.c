// attr_proto.c — Attribute values to and from AttrValue messages.
#include "op/attr.h"
#include "tensor/tensor_proto.h"
#include "tensor/variant_proto.h"
#include "wire/wire.h"

// Fields of AttrValue and of AttrValue.ListValue; the values have the same numbers in both, but for
// func.
enum {
  FIELD_LIST = 1,
  FIELD_S = 2,
  FIELD_I = 3,
  FIELD_F = 4,
  FIELD_B = 5,
  FIELD_TYPE = 6,
  FIELD_SHAPE = 7,
  FIELD_TENSOR = 8,
  FIELD_PLACEHOLDER = 9,
  FIELD_FUNC = 10,
  FIELD_LIST_FUNC = 9,
};

// Functions within attributes of functions: deeper nesting than this is refused, as the recursion
// is ours.
#define MAX_DEPTH 64

typedef struct parse_t {
  weir_arena_t* arena;
  weir_tensor_list_t* tensors;
  int depth;
  bool is_internal;
} parse_t;

static weir_status_t* parse_value(parse_t* p, weir_view_t proto, weir_attr_t* out_value);

static weir_status_t* bad_wire_type(uint32_t field) {
  return WEIR_STATUS(INVALID_ARGUMENT, "malformed AttrValue: field %u has the wrong wire type",
                     field);
}

static weir_status_t* parse_tensor(parse_t* p, weir_view_t proto, weir_tensor_t** out_tensor) {
  weir_tensor_t* tensor = NULL;
  WEIR_TRY(weir_variant_parse(proto, &tensor));
  WEIR_TRY(weir_tensor_list_add(p->tensors, tensor));
  *out_tensor = tensor;
  return NULL;
}

static weir_status_t* parse_shape(parse_t* p, weir_view_t proto, const weir_shape_t** out_shape) {
  return p->is_internal ? weir_shape_parse_symbolic(proto, p->arena, out_shape)
                        : weir_shape_parse(proto, p->arena, out_shape);
}

// ---- functions: NameAttrList {name = 1, attr map = 2} ----

static weir_status_t* parse_map_entry(parse_t* p, weir_view_t proto, weir_named_attr_t* out) {
  weir_view_t key = weir_view("", 0);
  weir_view_t value = weir_view("", 0);
  weir_wire_reader_t r = weir_wire_reader(proto);
  while (weir_wire_next(&r)) {
    if (r.type != WEIR_WIRE_BYTES) continue;
    if (r.field == 1) key = r.bytes;
    if (r.field == 2) value = r.bytes;
  }
  WEIR_TRY(weir_wire_check(&r, "NameAttrList"));
  out->name = weir_arena_strndup(p->arena, key.data ? key.data : "", key.size);
  if (!out->name) return weir_out_of_memory();
  return parse_value(p, value, &out->value);
}

static weir_status_t* parse_func(parse_t* p, weir_view_t proto, weir_func_t* out_func) {
  if (p->depth >= MAX_DEPTH) {
    return WEIR_STATUS(INVALID_ARGUMENT, "AttrValue nests functions more than %d deep", MAX_DEPTH);
  }
  size_t count = 0;
  weir_wire_reader_t r = weir_wire_reader(proto);
  while (weir_wire_next(&r)) count += r.field == 2 && r.type == WEIR_WIRE_BYTES;
  WEIR_TRY(weir_wire_check(&r, "NameAttrList"));
  weir_named_attr_t* items = weir_arena_array(p->arena, count, sizeof(*items));
  if (!items) return weir_out_of_memory();
  *out_func = (weir_func_t){.name = {.data = "", .size = 0}, .attrs = {items, count}};
  size_t i = 0;
  r = weir_wire_reader(proto);
  p->depth++;
  while (weir_wire_next(&r)) {
    if (r.type != WEIR_WIRE_BYTES) continue;
    if (r.field == 1) out_func->name = r.bytes;
    if (r.field == 2) WEIR_TRY(parse_map_entry(p, r.bytes, &items[i++]));
  }
  p->depth--;
  return NULL;
}

// ---- lists ----

static weir_attr_kind_t list_kind(uint32_t field) {
  switch (field) {
    case FIELD_S: return WEIR_ATTR_STRING;
    case FIELD_I: return WEIR_ATTR_INT;
    case FIELD_F: return WEIR_ATTR_FLOAT;
    case FIELD_B: return WEIR_ATTR_BOOL;
    case FIELD_TYPE: return WEIR_ATTR_TYPE;
    case FIELD_SHAPE: return WEIR_ATTR_SHAPE;
    case FIELD_TENSOR: return WEIR_ATTR_TENSOR;
    case FIELD_LIST_FUNC: return WEIR_ATTR_FUNC;
    default: return WEIR_ATTR_NONE;
  }
}

static weir_wire_type_t element_wire_type(weir_attr_kind_t kind) {
  switch (kind) {
    case WEIR_ATTR_INT:
    case WEIR_ATTR_BOOL:
    case WEIR_ATTR_TYPE: return WEIR_WIRE_VARINT;
    case WEIR_ATTR_FLOAT: return WEIR_WIRE_FIXED32;
    default: return WEIR_WIRE_BYTES;
  }
}

static size_t element_size(weir_attr_kind_t kind) {
  switch (kind) {
    case WEIR_ATTR_STRING: return sizeof(weir_view_t);
    case WEIR_ATTR_INT: return sizeof(int64_t);
    case WEIR_ATTR_FLOAT: return sizeof(float);
    case WEIR_ATTR_BOOL: return sizeof(bool);
    case WEIR_ATTR_TYPE: return sizeof(weir_dtype_t);
    case WEIR_ATTR_FUNC: return sizeof(weir_func_t);
    default: return sizeof(void*);
  }
}

// Number of values the current field adds to the list.
static weir_status_t* count_field(const weir_wire_reader_t* r, weir_attr_kind_t kind,
                                  uint64_t* out_count) {
  weir_wire_type_t type = element_wire_type(kind);
  *out_count = 1;
  if (type == WEIR_WIRE_BYTES || r->type != WEIR_WIRE_BYTES) {
    return r->type == type ? NULL : bad_wire_type(r->field);
  }
  if (weir_wire_packed_count(weir_wire_packed(r, type), out_count)) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "malformed AttrValue: truncated packed field %u", r->field);
}

static weir_status_t* count_list(weir_view_t proto, weir_attr_kind_t* out_kind, size_t* out_count) {
  weir_attr_kind_t kind = WEIR_ATTR_NONE;
  uint64_t total = 0;
  weir_wire_reader_t r = weir_wire_reader(proto);
  while (weir_wire_next(&r)) {
    weir_attr_kind_t field_kind = list_kind(r.field);
    if (field_kind == WEIR_ATTR_NONE) continue;
    uint64_t count = 0;
    WEIR_TRY(count_field(&r, field_kind, &count));
    if (count == 0) continue;
    if (kind != WEIR_ATTR_NONE && kind != field_kind) {
      return WEIR_STATUS(INVALID_ARGUMENT, "AttrValue has a list with values of several types");
    }
    kind = field_kind;
    total += count;
  }
  *out_kind = kind;
  *out_count = (size_t)total;
  return weir_wire_check(&r, "AttrValue");
}

static void store_scalar(weir_attr_kind_t kind, void* items, size_t i, uint64_t bits) {
  switch (kind) {
    case WEIR_ATTR_INT: ((int64_t*)items)[i] = (int64_t)bits; break;
    case WEIR_ATTR_BOOL: ((bool*)items)[i] = bits != 0; break;
    case WEIR_ATTR_TYPE: ((weir_dtype_t*)items)[i] = (weir_dtype_t)(int32_t)bits; break;
    default: {
      uint32_t word = (uint32_t)bits;
      memcpy((float*)items + i, &word, sizeof(word));
      break;
    }
  }
}

static weir_status_t* store_message(parse_t* p, weir_attr_kind_t kind, void* items, size_t i,
                                    weir_view_t bytes) {
  switch (kind) {
    case WEIR_ATTR_STRING: ((weir_view_t*)items)[i] = bytes; return NULL;
    case WEIR_ATTR_SHAPE: return parse_shape(p, bytes, (const weir_shape_t**)items + i);
    case WEIR_ATTR_TENSOR: return parse_tensor(p, bytes, (weir_tensor_t**)items + i);
    default: return parse_func(p, bytes, (weir_func_t*)items + i);
  }
}

static void set_list(weir_attr_t* list, const void* items) {
  switch (list->kind) {
    case WEIR_ATTR_STRING: list->u.strings = items; break;
    case WEIR_ATTR_INT: list->u.ints = items; break;
    case WEIR_ATTR_FLOAT: list->u.floats = items; break;
    case WEIR_ATTR_BOOL: list->u.bools = items; break;
    case WEIR_ATTR_TYPE: list->u.types = items; break;
    case WEIR_ATTR_SHAPE: list->u.shapes = items; break;
    case WEIR_ATTR_TENSOR: list->u.tensors = items; break;
    default: list->u.funcs = items; break;
  }
}

static weir_status_t* parse_list(parse_t* p, weir_view_t proto, weir_attr_t* list) {
  list->is_list = true;
  WEIR_TRY(count_list(proto, &list->kind, &list->count));
  if (list->count == 0) return NULL;
  void* items = weir_arena_array(p->arena, list->count, element_size(list->kind));
  if (!items) return weir_out_of_memory();
  weir_wire_type_t type = element_wire_type(list->kind);
  size_t i = 0;
  weir_wire_reader_t r = weir_wire_reader(proto);
  while (weir_wire_next(&r)) {
    if (list_kind(r.field) != list->kind) continue;
    if (type == WEIR_WIRE_BYTES) {
      WEIR_TRY(store_message(p, list->kind, items, i++, r.bytes));
      continue;
    }
    weir_wire_packed_t packed = weir_wire_packed(&r, type);
    uint64_t bits = 0;
    while (i < list->count && weir_wire_packed_next(&packed, &bits)) {
      store_scalar(list->kind, items, i++, bits);
    }
  }
  set_list(list, items);
  return NULL;
}

// ---- single values ----

static weir_status_t* parse_message_field(parse_t* p, const weir_wire_reader_t* r,
                                          weir_attr_t* value) {
  switch (r->field) {
    case FIELD_LIST: return parse_list(p, r->bytes, value);
    case FIELD_S:
      value->kind = WEIR_ATTR_STRING;
      value->u.s = r->bytes;
      return NULL;
    case FIELD_SHAPE:
      value->kind = WEIR_ATTR_SHAPE;
      return parse_shape(p, r->bytes, &value->u.shape);
    case FIELD_TENSOR:
      value->kind = WEIR_ATTR_TENSOR;
      return parse_tensor(p, r->bytes, &value->u.tensor);
    case FIELD_PLACEHOLDER:
      value->kind = WEIR_ATTR_PLACEHOLDER;
      value->u.s = r->bytes;
      return NULL;
    default: {
      weir_func_t* func = weir_arena_alloc(p->arena, sizeof(*func));
      if (!func) return weir_out_of_memory();
      value->kind = WEIR_ATTR_FUNC;
      value->u.func = func;
      return parse_func(p, r->bytes, func);
    }
  }
}

static weir_status_t* parse_field(parse_t* p, const weir_wire_reader_t* r, weir_attr_t* value) {
  weir_wire_type_t type = r->field == FIELD_F ? WEIR_WIRE_FIXED32
                          : r->field == FIELD_I || r->field == FIELD_B || r->field == FIELD_TYPE
                              ? WEIR_WIRE_VARINT
                              : WEIR_WIRE_BYTES;
  if (r->type != type) return bad_wire_type(r->field);
  *value = (weir_attr_t){.kind = WEIR_ATTR_NONE};  // of a oneof the last one counts
  switch (r->field) {
    case FIELD_I:
      value->kind = WEIR_ATTR_INT;
      value->u.i = weir_wire_int(r);
      return NULL;
    case FIELD_F:
      value->kind = WEIR_ATTR_FLOAT;
      value->u.f = weir_wire_float(r);
      return NULL;
    case FIELD_B:
      value->kind = WEIR_ATTR_BOOL;
      value->u.b = weir_wire_bool(r);
      return NULL;
    case FIELD_TYPE:
      value->kind = WEIR_ATTR_TYPE;
      value->u.type = (weir_dtype_t)(int32_t)r->value;
      return NULL;
    default: return parse_message_field(p, r, value);
  }
}

static weir_status_t* parse_value(parse_t* p, weir_view_t proto, weir_attr_t* out_value) {
  weir_attr_t value = {.kind = WEIR_ATTR_NONE};
  weir_wire_reader_t r = weir_wire_reader(proto);
  while (weir_wire_next(&r)) {
    if (r.field >= FIELD_LIST && r.field <= FIELD_FUNC) WEIR_TRY(parse_field(p, &r, &value));
  }
  WEIR_TRY(weir_wire_check(&r, "AttrValue"));
  value.raw = proto;
  *out_value = value;
  return NULL;
}

weir_status_t* weir_attr_parse(weir_view_t proto, weir_arena_t* arena, weir_tensor_list_t* tensors,
                               weir_attr_t* out_value) {
  parse_t p = {.arena = arena, .tensors = tensors, .depth = 0};
  return parse_value(&p, proto, out_value);
}

weir_status_t* weir_attr_parse_named(const char* name, weir_view_t proto, weir_arena_t* arena,
                                     weir_tensor_list_t* tensors, weir_attr_t* out_value) {
  parse_t p = {.arena = arena, .tensors = tensors, .depth = 0, .is_internal = name[0] == '_'};
  return weir_status_prefix(parse_value(&p, proto, out_value), "attr '%s': ", name);
}

// ---- writing ----

static weir_status_t* write_func(const weir_func_t* func, uint32_t field, weir_strbuf_t* out) {
  size_t message = weir_wire_begin(out, field);
  if (func->name.size) weir_wire_put_bytes(out, 1, func->name.data, func->name.size);
  for (size_t i = 0; i < func->attrs.count; ++i)
    WEIR_TRY(weir_attr_write_entry(&func->attrs.items[i], 2, out));
  weir_wire_end(out, message);
  return NULL;
}

static void write_shape(const weir_shape_t* shape, weir_strbuf_t* out) {
  size_t message = weir_wire_begin(out, FIELD_SHAPE);
  weir_shape_write(shape, out);
  weir_wire_end(out, message);
}

static weir_status_t* write_tensor(const weir_tensor_t* tensor, weir_strbuf_t* out) {
  size_t message = weir_wire_begin(out, FIELD_TENSOR);
  WEIR_TRY(weir_tensor_type(tensor) == WEIR_DTYPE_VARIANT ? weir_variant_write(tensor, out)
                                                          : weir_tensor_write(tensor, out));
  weir_wire_end(out, message);
  return NULL;
}

static void write_packed(const weir_attr_t* list, weir_strbuf_t* out) {
  uint32_t field = list->kind == WEIR_ATTR_INT     ? FIELD_I
                   : list->kind == WEIR_ATTR_FLOAT ? FIELD_F
                   : list->kind == WEIR_ATTR_BOOL  ? FIELD_B
                                                   : FIELD_TYPE;
  size_t message = weir_wire_begin(out, field);
  for (size_t i = 0; i < list->count; ++i) {
    switch (list->kind) {
      case WEIR_ATTR_INT: weir_wire_put_varint(out, (uint64_t)list->u.ints[i]); break;
      case WEIR_ATTR_FLOAT: {
        uint32_t bits;
        memcpy(&bits, &list->u.floats[i], sizeof(bits));
        const uint8_t bytes[4] = {(uint8_t)bits, (uint8_t)(bits >> 8), (uint8_t)(bits >> 16),
                                  (uint8_t)(bits >> 24)};
        weir_strbuf_append(out, bytes, sizeof(bytes));
        break;
      }
      case WEIR_ATTR_BOOL: weir_wire_put_varint(out, list->u.bools[i]); break;
      default: weir_wire_put_varint(out, (uint64_t)list->u.types[i]); break;
    }
  }
  weir_wire_end(out, message);
}

static weir_status_t* write_list(const weir_attr_t* list, weir_strbuf_t* out) {
  if (list->count == 0) return NULL;
  for (size_t i = 0; i < list->count; ++i) {
    switch (list->kind) {
      case WEIR_ATTR_STRING:
        weir_wire_put_bytes(out, FIELD_S, list->u.strings[i].data, list->u.strings[i].size);
        break;
      case WEIR_ATTR_SHAPE: write_shape(list->u.shapes[i], out); break;
      case WEIR_ATTR_TENSOR: WEIR_TRY(write_tensor(list->u.tensors[i], out)); break;
      case WEIR_ATTR_FUNC: WEIR_TRY(write_func(&list->u.funcs[i], FIELD_LIST_FUNC, out)); break;
      default: write_packed(list, out); return NULL;
    }
  }
  return NULL;
}

weir_status_t* weir_attr_write(const weir_attr_t* value, weir_strbuf_t* out) {
  if (value->raw.size) {
    weir_strbuf_append(out, value->raw.data, value->raw.size);
    return weir_strbuf_finish(out);
  }
  if (value->is_list) {
    size_t message = weir_wire_begin(out, FIELD_LIST);
    WEIR_TRY(write_list(value, out));
    weir_wire_end(out, message);
    return weir_strbuf_finish(out);
  }
  switch (value->kind) {
    case WEIR_ATTR_NONE: break;
    case WEIR_ATTR_STRING:
      weir_wire_put_bytes(out, FIELD_S, value->u.s.data, value->u.s.size);
      break;
    case WEIR_ATTR_INT: weir_wire_put_int(out, FIELD_I, value->u.i); break;
    case WEIR_ATTR_FLOAT: weir_wire_put_float(out, FIELD_F, value->u.f); break;
    case WEIR_ATTR_BOOL: weir_wire_put_bool(out, FIELD_B, value->u.b); break;
    case WEIR_ATTR_TYPE: weir_wire_put_int(out, FIELD_TYPE, (int64_t)value->u.type); break;
    case WEIR_ATTR_SHAPE: write_shape(value->u.shape, out); break;
    case WEIR_ATTR_TENSOR: WEIR_TRY(write_tensor(value->u.tensor, out)); break;
    case WEIR_ATTR_FUNC: WEIR_TRY(write_func(value->u.func, FIELD_FUNC, out)); break;
    case WEIR_ATTR_PLACEHOLDER:
      weir_wire_put_bytes(out, FIELD_PLACEHOLDER, value->u.s.data, value->u.s.size);
      break;
  }
  return weir_strbuf_finish(out);
}

weir_status_t* weir_attr_write_entry(const weir_named_attr_t* attr, uint32_t field,
                                     weir_strbuf_t* out) {
  size_t entry = weir_wire_begin(out, field);
  weir_wire_put_string(out, 1, attr->name);
  size_t value = weir_wire_begin(out, 2);
  WEIR_TRY(weir_attr_write(&attr->value, out));
  weir_wire_end(out, value);
  weir_wire_end(out, entry);
  return NULL;
}

// op_proto.c — Ops as OpDef messages and as the one-line summary of error messages.
#include <ctype.h>
#include <inttypes.h>

#include "base/string.h"
#include "op/spec.h"
#include "wire/wire.h"

// Field numbers.
enum {
  OP_NAME = 1,
  OP_INPUT = 2,
  OP_OUTPUT = 3,
  OP_ATTR = 4,
  OP_SUMMARY = 5,
  OP_IS_AGGREGATE = 16,
  OP_IS_STATEFUL = 17,
  OP_IS_COMMUTATIVE = 18,
  OP_ALLOWS_UNINITIALIZED = 19,
  OP_IS_DISTRIBUTED = 21
};
enum {
  ARG_NAME = 1,
  ARG_TYPE = 3,
  ARG_TYPE_ATTR = 4,
  ARG_NUMBER_ATTR = 5,
  ARG_TYPE_LIST_ATTR = 6,
  ARG_IS_REF = 16
};
enum {
  ATTR_NAME = 1,
  ATTR_TYPE = 2,
  ATTR_DEFAULT = 3,
  ATTR_HAS_MINIMUM = 5,
  ATTR_MINIMUM = 6,
  ATTR_ALLOWED = 7
};

static const struct {
  uint32_t field;
  weir_op_flags_t flag;
} flag_fields[] = {
    {OP_IS_AGGREGATE, WEIR_OP_AGGREGATE},
    {OP_IS_STATEFUL, WEIR_OP_STATEFUL},
    {OP_IS_COMMUTATIVE, WEIR_OP_COMMUTATIVE},
    {OP_ALLOWS_UNINITIALIZED, WEIR_OP_UNINITIALIZED_INPUT},
    {OP_IS_DISTRIBUTED, WEIR_OP_ALLOW_DISTRIBUTED},
};

// ---- writing ----

static void write_arg(const weir_arg_t* arg, uint32_t field, weir_strbuf_t* out) {
  size_t message = weir_wire_begin(out, field);
  weir_wire_put_string(out, ARG_NAME, arg->name);
  if (arg->type) weir_wire_put_int(out, ARG_TYPE, (int64_t)arg->type);
  if (arg->type_attr) weir_wire_put_string(out, ARG_TYPE_ATTR, arg->type_attr);
  if (arg->number_attr) weir_wire_put_string(out, ARG_NUMBER_ATTR, arg->number_attr);
  if (arg->type_list_attr) weir_wire_put_string(out, ARG_TYPE_LIST_ATTR, arg->type_list_attr);
  if (arg->is_ref) weir_wire_put_bool(out, ARG_IS_REF, true);
  weir_wire_end(out, message);
}

static weir_status_t* write_value(const weir_attr_t* value, uint32_t field, weir_strbuf_t* out) {
  size_t message = weir_wire_begin(out, field);
  WEIR_TRY(weir_attr_write(value, out));
  weir_wire_end(out, message);
  return NULL;
}

static weir_status_t* write_attr(const weir_attr_def_t* attr, weir_strbuf_t* out) {
  size_t message = weir_wire_begin(out, OP_ATTR);
  weir_wire_put_string(out, ATTR_NAME, attr->name);
  weir_wire_put_string(out, ATTR_TYPE, weir_attr_kind_name(attr->kind, attr->is_list));
  if (attr->has_default) WEIR_TRY(write_value(&attr->default_value, ATTR_DEFAULT, out));
  if (attr->has_minimum) {
    weir_wire_put_bool(out, ATTR_HAS_MINIMUM, true);
    if (attr->minimum) weir_wire_put_int(out, ATTR_MINIMUM, attr->minimum);
  }
  if (attr->allowed_type_count) {
    weir_attr_t list = weir_attr_types("", attr->allowed_type_list, attr->allowed_type_count).value;
    WEIR_TRY(write_value(&list, ATTR_ALLOWED, out));
  } else if (attr->allowed_string_count) {
    weir_attr_t list =
        weir_attr_strings("", attr->allowed_strings, attr->allowed_string_count).value;
    WEIR_TRY(write_value(&list, ATTR_ALLOWED, out));
  }
  weir_wire_end(out, message);
  return NULL;
}

weir_status_t* weir_op_write(const weir_op_t* op, weir_strbuf_t* out) {
  weir_wire_put_string(out, OP_NAME, op->name);
  for (int i = 0; i < op->input_count; ++i) write_arg(&op->inputs[i], OP_INPUT, out);
  for (int i = 0; i < op->output_count; ++i) write_arg(&op->outputs[i], OP_OUTPUT, out);
  for (int i = 0; i < op->attr_count; ++i) WEIR_TRY(write_attr(&op->attrs[i], out));
  if (op->def && op->def->summary) weir_wire_put_string(out, OP_SUMMARY, op->def->summary);
  for (size_t i = 0; i < WEIR_COUNT_OF(flag_fields); ++i) {
    if (op->flags & flag_fields[i].flag) weir_wire_put_bool(out, flag_fields[i].field, true);
  }
  return weir_strbuf_finish(out);
}

// ---- parsing ----

typedef struct parse_t {
  weir_arena_t* arena;
  weir_tensor_list_t* tensors;
} parse_t;

static weir_status_t* copy_text(parse_t* p, const weir_wire_reader_t* r, const char** out_text) {
  if (r->type != WEIR_WIRE_BYTES) {
    return WEIR_STATUS(INVALID_ARGUMENT, "malformed OpDef: field %u is no string", r->field);
  }
  *out_text = NULL;
  if (r->bytes.size == 0) return NULL;
  *out_text = weir_arena_strndup(p->arena, r->bytes.data, r->bytes.size);
  return *out_text ? NULL : weir_out_of_memory();
}

static weir_status_t* parse_arg_field(parse_t* p, const weir_wire_reader_t* r, weir_arg_t* arg) {
  switch (r->field) {
    case ARG_NAME: return copy_text(p, r, &arg->name);
    case ARG_TYPE: arg->type = (weir_dtype_t)(int32_t)r->value; return NULL;
    case ARG_TYPE_ATTR: return copy_text(p, r, &arg->type_attr);
    case ARG_NUMBER_ATTR: return copy_text(p, r, &arg->number_attr);
    case ARG_TYPE_LIST_ATTR: return copy_text(p, r, &arg->type_list_attr);
    case ARG_IS_REF: arg->is_ref = weir_wire_bool(r); return NULL;
    default: return NULL;
  }
}

static weir_status_t* parse_arg(parse_t* p, weir_view_t proto, weir_arg_t* arg) {
  weir_wire_reader_t r = weir_wire_reader(proto);
  while (weir_wire_next(&r)) WEIR_TRY(parse_arg_field(p, &r, arg));
  WEIR_TRY(weir_wire_check(&r, "OpDef.ArgDef"));
  if (!arg->name) arg->name = "";
  return NULL;
}

static weir_status_t* parse_kind(weir_view_t text, weir_attr_def_t* attr) {
  for (int i = WEIR_ATTR_STRING; i <= WEIR_ATTR_FUNC; ++i) {
    attr->kind = (weir_attr_kind_t)i;
    attr->is_list = true;
    if (weir_view_is(text, weir_attr_kind_name(attr->kind, true))) return NULL;
    attr->is_list = false;
    if (weir_view_is(text, weir_attr_kind_name(attr->kind, false))) return NULL;
  }
  return WEIR_STATUS(INVALID_ARGUMENT, "Unrecognized type '%.*s' in attr", WEIR_VIEW_ARG(text));
}

static weir_status_t* parse_allowed(parse_t* p, weir_view_t proto, weir_attr_def_t* attr) {
  weir_attr_t list = {.kind = WEIR_ATTR_NONE};
  WEIR_TRY(weir_attr_parse(proto, p->arena, p->tensors, &list));
  if (!list.is_list || list.count == 0) return NULL;
  if (list.kind == WEIR_ATTR_STRING) {
    attr->allowed_strings = list.u.strings;
    attr->allowed_string_count = list.count;
  } else if (list.kind == WEIR_ATTR_TYPE) {
    attr->allowed_type_list = list.u.types;
    attr->allowed_type_count = list.count;
    for (size_t i = 0; i < list.count; ++i) {
      if (weir_dtype_is_valid(list.u.types[i]))
        attr->allowed_types |= UINT64_C(1) << list.u.types[i];
    }
  }
  return NULL;
}

static weir_status_t* parse_attr_field(parse_t* p, const weir_wire_reader_t* r,
                                       weir_attr_def_t* attr) {
  switch (r->field) {
    case ATTR_NAME: return copy_text(p, r, &attr->name);
    case ATTR_TYPE: return parse_kind(r->bytes, attr);
    case ATTR_DEFAULT:
      attr->has_default = true;
      return weir_attr_parse(r->bytes, p->arena, p->tensors, &attr->default_value);
    case ATTR_HAS_MINIMUM: attr->has_minimum = weir_wire_bool(r); return NULL;
    case ATTR_MINIMUM: attr->minimum = weir_wire_int(r); return NULL;
    case ATTR_ALLOWED: return parse_allowed(p, r->bytes, attr);
    default: return NULL;
  }
}

static weir_status_t* parse_attr(parse_t* p, weir_view_t proto, weir_attr_def_t* attr) {
  weir_wire_reader_t r = weir_wire_reader(proto);
  while (weir_wire_next(&r)) WEIR_TRY(parse_attr_field(p, &r, attr));
  WEIR_TRY(weir_wire_check(&r, "OpDef.AttrDef"));
  if (!attr->name) attr->name = "";
  if (attr->kind == WEIR_ATTR_NONE) {
    return WEIR_STATUS(INVALID_ARGUMENT, "attr '%s' of an OpDef has no type", attr->name);
  }
  if (!attr->has_default) return NULL;
  if (attr->default_value.is_list) attr->default_value.kind = attr->kind;
  return weir_attr_check(attr, &attr->default_value);
}

// An attribute that an argument names must be there with the right type, as the accessors rely on
// it.
static weir_status_t* check_ref(const weir_op_t* op, const weir_arg_t* arg, const char* name,
                                weir_attr_kind_t kind, bool is_list) {
  if (!name) return NULL;
  const weir_attr_def_t* attr = weir_op_attr(op, name);
  if (attr && attr->kind == kind && attr->is_list == is_list) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "'%s' of op %s names '%s', which is no attr of type %s",
                     arg->name, op->name, name, weir_attr_kind_name(kind, is_list));
}

static weir_status_t* check_args(const weir_op_t* op, const weir_arg_t* args, int count) {
  for (int i = 0; i < count; ++i) {
    const weir_arg_t* arg = &args[i];
    WEIR_TRY(check_ref(op, arg, arg->type_attr, WEIR_ATTR_TYPE, false));
    WEIR_TRY(check_ref(op, arg, arg->number_attr, WEIR_ATTR_INT, false));
    WEIR_TRY(check_ref(op, arg, arg->type_list_attr, WEIR_ATTR_TYPE, true));
    int given = (arg->type != WEIR_DTYPE_INVALID) + (arg->type_attr != NULL) +
                (arg->type_list_attr != NULL);
    if (given != 1 || (arg->number_attr && arg->type_list_attr)) {
      return WEIR_STATUS(INVALID_ARGUMENT, "'%s' of op %s needs exactly one kind of type",
                         arg->name, op->name);
    }
    if (arg->type && !weir_dtype_is_valid(weir_dtype_base(arg->type))) {
      return WEIR_STATUS(INVALID_ARGUMENT, "'%s' of op %s has the bad type %d", arg->name, op->name,
                         (int)arg->type);
    }
  }
  return NULL;
}

static weir_status_t* count_fields(weir_view_t proto, size_t counts[OP_ATTR + 1]) {
  weir_wire_reader_t r = weir_wire_reader(proto);
  while (weir_wire_next(&r)) {
    if (r.field < OP_INPUT || r.field > OP_ATTR) continue;
    if (r.type != WEIR_WIRE_BYTES) {
      return WEIR_STATUS(INVALID_ARGUMENT, "malformed OpDef: field %u is no message", r.field);
    }
    counts[r.field]++;
  }
  return weir_wire_check(&r, "OpDef");
}

weir_status_t* weir_op_parse(weir_view_t op_def, weir_arena_t* arena, weir_tensor_list_t* tensors,
                             weir_op_t** out_op) {
  parse_t p = {.arena = arena, .tensors = tensors};
  size_t counts[OP_ATTR + 1] = {0};
  WEIR_TRY(count_fields(op_def, counts));
  weir_op_t* op = weir_arena_alloc(arena, sizeof(*op));
  weir_arg_t* inputs = weir_arena_array(arena, counts[OP_INPUT], sizeof(*inputs));
  weir_arg_t* outputs = weir_arena_array(arena, counts[OP_OUTPUT], sizeof(*outputs));
  weir_attr_def_t* attrs = weir_arena_array(arena, counts[OP_ATTR], sizeof(*attrs));
  if (!op || !inputs || !outputs || !attrs) return weir_out_of_memory();
  *op = (weir_op_t){.name = "", .inputs = inputs, .outputs = outputs, .attrs = attrs};
  weir_wire_reader_t r = weir_wire_reader(op_def);
  while (weir_wire_next(&r)) {
    if (r.field == OP_NAME) {
      WEIR_TRY(copy_text(&p, &r, &op->name));
    } else if (r.field == OP_INPUT) {
      WEIR_TRY(parse_arg(&p, r.bytes, &inputs[op->input_count++]));
    } else if (r.field == OP_OUTPUT) {
      WEIR_TRY(parse_arg(&p, r.bytes, &outputs[op->output_count++]));
    } else if (r.field == OP_ATTR) {
      WEIR_TRY(parse_attr(&p, r.bytes, &attrs[op->attr_count++]));
    }
    for (size_t i = 0; i < WEIR_COUNT_OF(flag_fields); ++i) {
      if (r.field == flag_fields[i].field && weir_wire_bool(&r)) op->flags |= flag_fields[i].flag;
    }
  }
  if (!op->name) op->name = "";
  WEIR_TRY(check_args(op, op->inputs, op->input_count));
  WEIR_TRY(check_args(op, op->outputs, op->output_count));
  *out_op = op;
  return NULL;
}

// ---- summary ----

static void append_enum_name(weir_dtype_t type, weir_strbuf_t* out) {
  weir_strbuf_puts(out, "DT_");
  for (const char* c = weir_dtype_name(type); *c; ++c) {
    weir_strbuf_putc(out, (char)toupper((unsigned char)*c));
  }
}

static void append_args(const weir_arg_t* args, int count, weir_strbuf_t* out) {
  for (int i = 0; i < count; ++i) {
    const weir_arg_t* arg = &args[i];
    weir_strbuf_printf(out, "%s%s:", i ? ", " : "", arg->name);
    if (arg->is_ref) weir_strbuf_puts(out, "Ref(");
    if (arg->number_attr) weir_strbuf_printf(out, "%s*", arg->number_attr);
    if (arg->type) {
      append_enum_name(arg->type, out);
    } else if (arg->type_attr) {
      weir_strbuf_puts(out, arg->type_attr);
    }
    if (arg->is_ref) weir_strbuf_putc(out, ')');
  }
}

static void append_default(const weir_attr_def_t* attr, weir_strbuf_t* out) {
  weir_strbuf_puts(out, ",default=");
  const weir_attr_t* value = &attr->default_value;
  if (attr->kind == WEIR_ATTR_TYPE && !attr->is_list) {
    append_enum_name(value->u.type, out);
  } else {
    weir_attr_append_text(value, out);
  }
}

static void append_attr(const weir_attr_def_t* attr, weir_strbuf_t* out) {
  weir_strbuf_printf(out, "; attr=%s:%s", attr->name,
                     weir_attr_kind_name(attr->kind, attr->is_list));
  if (attr->has_default) append_default(attr, out);
  if (attr->has_minimum) weir_strbuf_printf(out, ",min=%" PRId64, attr->minimum);
  if (!attr->allowed_type_count && !attr->allowed_string_count) return;
  weir_strbuf_puts(out, ",allowed=[");
  for (size_t i = 0; i < attr->allowed_type_count; ++i) {
    if (i) weir_strbuf_puts(out, ", ");
    append_enum_name(attr->allowed_type_list[i], out);
  }
  for (size_t i = 0; i < attr->allowed_string_count; ++i) {
    weir_strbuf_printf(out, "%s\"%.*s\"", i ? ", " : "", WEIR_VIEW_ARG(attr->allowed_strings[i]));
  }
  weir_strbuf_putc(out, ']');
}

void weir_op_append_summary(const weir_op_t* op, weir_strbuf_t* out) {
  weir_strbuf_printf(out, "Op<name=%s; signature=", op->name);
  append_args(op->inputs, op->input_count, out);
  weir_strbuf_puts(out, " -> ");
  append_args(op->outputs, op->output_count, out);
  for (int i = 0; i < op->attr_count; ++i) append_attr(&op->attrs[i], out);
  if (op->flags & WEIR_OP_COMMUTATIVE) weir_strbuf_puts(out, "; is_commutative=true");
  if (op->flags & WEIR_OP_AGGREGATE) weir_strbuf_puts(out, "; is_aggregate=true");
  if (op->flags & WEIR_OP_STATEFUL) weir_strbuf_puts(out, "; is_stateful=true");
  if (op->flags & WEIR_OP_UNINITIALIZED_INPUT) {
    weir_strbuf_puts(out, "; allows_uninitialized_input=true");
  }
  weir_strbuf_putc(out, '>');
}

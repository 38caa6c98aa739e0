// decode_json_example.c — DecodeJSONExample: Examples written as JSON, by protobuf's rules, as
// messages.
//
// The values of a list stand one by one on the wire, not packed, as TensorFlow writes them. What is
// not JSON by RFC 8259 (single quotes, names without quotes, a comma at the end), which TensorFlow
// reads as well, is refused.
#include <math.h>

#include "base/base64.h"
#include "base/interrupt.h"
#include "base/json.h"
#include "base/string.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"
#include "wire/wire.h"

static weir_status_t* bad(const char* what, const weir_json_t* value) {
  return WEIR_STATUS(INVALID_ARGUMENT, "Error while parsing JSON: %s: %.*s", what,
                     WEIR_VIEW_ARG(value->text));
}

static weir_status_t* check_object(const weir_json_t* value) {
  if (value->kind == WEIR_JSON_OBJECT) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Error while parsing JSON: expected '{', found %s",
                     weir_json_kind_name(value->kind));
}

static weir_status_t* no_field(const weir_json_t* member) {
  return WEIR_STATUS(INVALID_ARGUMENT, "Error while parsing JSON: no such field: '%.*s'",
                     WEIR_VIEW_ARG(member->key));
}

static bool is_key(const weir_json_t* member, const char* name, const char* proto_name) {
  return weir_view_is(member->key, name) || weir_view_is(member->key, proto_name);
}

// ---- single values ----

// Base 64 in either alphabet, with or without padding.
static weir_status_t* put_bytes(const weir_json_t* value, weir_strbuf_t* out) {
  if (value->kind != WEIR_JSON_STRING) return bad("expected a string", value);
  const size_t begin = weir_wire_begin(out, 1);
  if (!weir_base64_read(value->text, out)) return bad("corrupt base64", value);
  weir_wire_end(out, begin);
  return NULL;
}

static bool has_digit(weir_view_t text) {
  for (size_t i = 0; i < text.size; ++i) {
    if (text.data[i] >= '0' && text.data[i] <= '9') return true;
  }
  return false;
}

static weir_status_t* put_float(const weir_json_t* value, weir_strbuf_t* out) {
  double number = 0;
  if (value->kind == WEIR_JSON_NUMBER) {
    number = value->number;
  } else if (value->kind != WEIR_JSON_STRING) {
    return bad("expected number or string", value);
  } else if (!weir_parse_double(weir_view_trim(value->text), &number)) {
    return bad("non-number characters in quoted number", value);
  }
  if (!isfinite(number) && has_digit(value->text)) return bad("float out of range", value);
  if (isfinite(number) && !isfinite((float)number)) return bad("float out of range", value);
  weir_wire_put_float(out, 1, (float)number);
  return NULL;
}

static weir_status_t* put_int(const weir_json_t* value, weir_strbuf_t* out) {
  int64_t number = 0;
  double real = 0;
  if (value->kind != WEIR_JSON_NUMBER && value->kind != WEIR_JSON_STRING) {
    return bad("expected number or string", value);
  }
  if (!weir_parse_int64(value->text, &number)) {
    // 3.0 and 3e2 are integers, too.
    if (!weir_parse_double(value->text, &real)) return bad("invalid number", value);
    if (real != floor(real))
      return bad("expected integer, but JSON number had fractional part", value);
    if (!(real >= -0x1p63 && real < 0x1p63)) return bad("JSON number out of range for int", value);
    number = (int64_t)real;
  }
  weir_wire_put_tag(out, 1, WEIR_WIRE_VARINT);
  weir_wire_put_varint(out, (uint64_t)number);
  return NULL;
}

// ---- a feature: one of three lists ----

typedef weir_status_t* (*put_fn_t)(const weir_json_t* value, weir_strbuf_t* out);

static const struct {
  const char* name;
  const char* proto_name;
  put_fn_t put;
} lists[] = {{"bytesList", "bytes_list", put_bytes},
             {"floatList", "float_list", put_float},
             {"int64List", "int64_list", put_int}};

// What a null within a list stands for.
static void put_default(uint32_t list, weir_strbuf_t* out) {
  if (list == 1) {
    weir_wire_put_tag(out, 1, WEIR_WIRE_BYTES);
    weir_wire_put_varint(out, 0);
  } else if (list == 2) {
    weir_wire_put_float(out, 1, 0);
  } else {
    weir_wire_put_tag(out, 1, WEIR_WIRE_VARINT);
    weir_wire_put_varint(out, 0);
  }
}

// Lists within lists are read as one, as protobuf's parser does.
static weir_status_t* put_value(uint32_t list, const weir_json_t* value, weir_strbuf_t* out) {
  if (value->kind == WEIR_JSON_ARRAY) {
    for (const weir_json_t* v = value->first; v; v = v->next) WEIR_TRY(put_value(list, v, out));
    return NULL;
  }
  if (value->kind == WEIR_JSON_NULL) {
    put_default(list, out);
    return NULL;
  }
  return lists[list - 1].put(value, out);
}

static weir_status_t* put_list(uint32_t list, const weir_json_t* object, weir_strbuf_t* out) {
  WEIR_TRY(check_object(object));
  const size_t begin = weir_wire_begin(out, list);
  for (const weir_json_t* m = object->first; m; m = m->next) {
    if (!weir_view_is(m->key, "value")) return no_field(m);
    if (m->kind == WEIR_JSON_NULL) continue;
    WEIR_TRY(put_value(list, m, out));
  }
  weir_wire_end(out, begin);
  return NULL;
}

static weir_status_t* put_feature(const weir_json_t* object, weir_strbuf_t* out) {
  WEIR_TRY(check_object(object));
  bool has_list = false;
  for (const weir_json_t* m = object->first; m; m = m->next) {
    uint32_t list = 0;
    for (uint32_t i = 0; i < WEIR_COUNT_OF(lists); ++i) {
      if (is_key(m, lists[i].name, lists[i].proto_name)) list = i + 1;
    }
    if (list == 0) return no_field(m);
    if (m->kind == WEIR_JSON_NULL) continue;
    if (has_list) {
      return WEIR_STATUS(
          INVALID_ARGUMENT,
          "Error while parsing JSON: '%.*s' has already been set (either directly or "
          "as part of a oneof)",
          WEIR_VIEW_ARG(m->key));
    }
    has_list = true;
    WEIR_TRY(put_list(list, m, out));
  }
  return NULL;
}

// ---- Example { features { feature: map } } ----

static bool comes_again(const weir_json_t* member) {
  for (const weir_json_t* m = member->next; m; m = m->next) {
    if (weir_view_equal(m->key, member->key)) return true;
  }
  return false;
}

static weir_status_t* put_map(const weir_json_t* object, weir_strbuf_t* out) {
  WEIR_TRY(check_object(object));
  for (const weir_json_t* m = object->first; m; m = m->next) {
    if (comes_again(m)) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Error while parsing JSON: got unexpectedly-repeated repeated map key: "
                         "'%.*s'",
                         WEIR_VIEW_ARG(m->key));
    }
    const size_t begin = weir_wire_begin(out, 1);
    weir_wire_put_bytes(out, 1, m->key.data, m->key.size);
    if (m->kind != WEIR_JSON_NULL) {
      const size_t value = weir_wire_begin(out, 2);
      WEIR_TRY(put_feature(m, out));
      weir_wire_end(out, value);
    }
    weir_wire_end(out, begin);
  }
  return NULL;
}

static weir_status_t* put_example(const weir_json_t* example, weir_strbuf_t* out) {
  WEIR_TRY(check_object(example));
  for (const weir_json_t* features = example->first; features; features = features->next) {
    if (!weir_view_is(features->key, "features")) return no_field(features);
    if (features->kind == WEIR_JSON_NULL) continue;
    WEIR_TRY(check_object(features));
    const size_t begin = weir_wire_begin(out, 1);
    for (const weir_json_t* m = features->first; m; m = m->next) {
      if (!weir_view_is(m->key, "feature")) return no_field(m);
      if (m->kind != WEIR_JSON_NULL) WEIR_TRY(put_map(m, out));
    }
    weir_wire_end(out, begin);
  }
  return NULL;
}

static weir_status_t* decode_one(weir_view_t text, weir_string_t* out) {
  weir_arena_t arena = {0};
  weir_strbuf_t proto = {0};
  const weir_json_t* json = NULL;
  weir_status_t* status = weir_json_parse(text, &arena, &json);
  if (weir_status_code(status) == WEIR_INVALID_ARGUMENT) {
    status = weir_status_prefix(status, "Error while parsing JSON: ");
  }
  if (!status) status = put_example(json, &proto);
  if (!status) status = weir_strbuf_finish(&proto);
  if (!status) status = weir_string_set(out, proto.data, proto.size);
  weir_strbuf_free(&proto);
  weir_arena_free(&arena);
  return status;
}

static weir_status_t* decode_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank, in->dims, &out));
  for (int64_t i = 0; i < in->count; ++i) {
    WEIR_TRY(weir_interrupt_poll(i));
    WEIR_TRY(decode_one(weir_string_view(WEIR_TENSOR_DATA(in, weir_string_t) + i),
                        WEIR_TENSOR_DATA(out, weir_string_t) + i));
  }
  return NULL;
}

const weir_op_module_t weir_ops_io_decode_json_example = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){{.name = "DecodeJSONExample",
                                    .inputs = "json_examples: string",
                                    .outputs = "binary_examples: string",
                                    .summary = "Examples written as JSON, as messages",
                                    .infer_shape = weir_shape_fn_unchanged,
                                    .kernels = WEIR_CPU_KERNEL(.compute = decode_cpu)},
                                   {0}}};

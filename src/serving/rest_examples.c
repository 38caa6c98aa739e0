// rest_examples.c — :classify and :regress: features in JSON become Examples.
#include "serving/grpc_request.h"
#include "serving/rest.h"
#include "serving/results.h"

enum { EXAMPLE_FEATURES = 1, FEATURES_ENTRY = 1, ENTRY_KEY = 1, ENTRY_VALUE = 2 };
enum { FEATURE_BYTES = 1, FEATURE_FLOATS = 2, FEATURE_INTEGERS = 3, LIST_VALUE = 1 };

// ---- a feature ----

// Its values: strings, or numbers, which are floats if one of them is.
typedef struct values_t {
  weir_strbuf_t bytes;    // a BytesList
  weir_strbuf_t numbers;  // weir_json_number_t
  int strings, count;
  bool has_float;
} values_t;

static weir_status_t* read_value(weir_scan_t* scan, values_t* values) {
  weir_view_t bytes;
  weir_json_number_t number;
  int c = weir_scan_peek(scan);
  ++values->count;
  if (c == '"' || c == '{') {
    WEIR_TRY(weir_scan_bytes(scan, &bytes));
    weir_wire_put_bytes(&values->bytes, LIST_VALUE, bytes.data, bytes.size);
    ++values->strings;
  } else {
    WEIR_TRY(weir_scan_number(scan, &number));
    weir_strbuf_append(&values->numbers, &number, sizeof(number));
    values->has_float |= !number.is_integer;
  }
  if (values->strings == 0 || values->strings == values->count) return NULL;
  return weir_scan_error(scan, "strings or numbers in a feature, but not both, before this");
}

static weir_status_t* read_values(weir_scan_t* scan, values_t* values) {
  bool is_first = true, has_more = false;
  if (weir_scan_peek(scan) != '[') return read_value(scan, values);
  WEIR_TRY(weir_scan_open(scan, '['));
  for (;;) {
    WEIR_TRY(weir_scan_more(scan, '[', &is_first, &has_more));
    if (!has_more) return NULL;
    WEIR_TRY(read_value(scan, values));
  }
}

static void put_numbers(const values_t* values, weir_strbuf_t* out) {
  size_t count = values->numbers.size / sizeof(weir_json_number_t);
  size_t list = weir_wire_begin(out, values->has_float ? FEATURE_FLOATS : FEATURE_INTEGERS);
  size_t packed = weir_wire_begin(out, LIST_VALUE);
  for (size_t i = 0; i < count; ++i) {
    weir_json_number_t number;
    memcpy(&number, values->numbers.data + i * sizeof(number), sizeof(number));
    float narrow = (float)number.value;
    if (values->has_float) weir_strbuf_append(out, &narrow, sizeof(narrow));
    else weir_wire_put_varint(out, (uint64_t)number.integer);
  }
  weir_wire_end(out, packed);
  weir_wire_end(out, list);
}

// Appends an entry of Features.
static weir_status_t* read_feature(weir_scan_t* scan, weir_view_t name, weir_strbuf_t* out) {
  values_t values = {.count = 0};
  weir_status_t* status = read_values(scan, &values);
  if (!status && (values.bytes.failed || values.numbers.failed)) status = weir_out_of_memory();
  if (!status) {
    size_t entry = weir_wire_begin(out, FEATURES_ENTRY);
    weir_wire_put_bytes(out, ENTRY_KEY, name.data, name.size);
    size_t feature = weir_wire_begin(out, ENTRY_VALUE);
    if (values.strings > 0)
      weir_wire_put_bytes(out, FEATURE_BYTES, values.bytes.data, values.bytes.size);
    else if (values.count > 0) put_numbers(&values, out);
    weir_wire_end(out, feature);
    weir_wire_end(out, entry);
  }
  weir_strbuf_free(&values.bytes);
  weir_strbuf_free(&values.numbers);
  return status;
}

// ---- Examples ----

// {"feature": value, …} as an Example, appended.
static weir_status_t* read_example(weir_scan_t* scan, weir_strbuf_t* out) {
  bool is_first = true, has_more = false;
  weir_view_t name;
  WEIR_TRY(weir_scan_open(scan, '{'));
  size_t features = weir_wire_begin(out, EXAMPLE_FEATURES);
  for (;;) {
    WEIR_TRY(weir_scan_more(scan, '{', &is_first, &has_more));
    if (!has_more) break;
    WEIR_TRY(weir_scan_key(scan, &name));
    WEIR_TRY(read_feature(scan, name, out));
  }
  weir_wire_end(out, features);
  return NULL;
}

// One Example, behind what |context| holds of it, as an element of |strings|.
static weir_status_t* read_one(weir_scan_t* scan, const weir_strbuf_t* context,
                               weir_tensor_maker_t* strings) {
  weir_strbuf_t example = {0};
  weir_strbuf_append(&example, context->data, context->size);
  weir_status_t* status = read_example(scan, &example);
  if (!status) status = weir_strbuf_finish(&example);
  char* copy = status ? NULL : weir_arena_strndup(scan->arena, example.data, example.size);
  if (!status && !copy) status = weir_out_of_memory();
  weir_view_t view = weir_view(copy, example.size);
  if (!status) weir_strbuf_append(&strings->data, &view, sizeof(view));
  ++strings->count;
  weir_strbuf_free(&example);
  return status;
}

static weir_status_t* read_all(weir_scan_t* scan, const weir_strbuf_t* context,
                               weir_tensor_maker_t* strings) {
  bool is_first = true, has_more = false;
  WEIR_TRY(weir_scan_open(scan, '['));
  for (;;) {
    WEIR_TRY(weir_scan_more(scan, '[', &is_first, &has_more));
    if (!has_more) break;
    WEIR_TRY(read_one(scan, context, strings));
  }
  if (strings->count > 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "\"examples\" is empty");
}

static weir_status_t* read_tensor(const weir_scan_t* whole, weir_view_t shared,
                                  weir_view_t examples, const char* name,
                                  weir_tensor_t** out_tensor) {
  weir_strbuf_t context = {0};
  weir_tensor_maker_t strings;
  weir_tensor_maker_init(&strings, WEIR_DTYPE_STRING, name);
  weir_status_t* status = NULL;
  if (shared.data) {
    weir_scan_t scan = weir_scan_within(whole, shared);
    status = read_example(&scan, &context);
  }
  weir_scan_t scan = weir_scan_within(whole, examples);
  if (!status) status = read_all(&scan, &context, &strings);
  if (!status) status = weir_strbuf_finish(&context);
  if (!status) status = weir_tensor_maker_finish(&strings, 1, &strings.count, out_tensor);
  weir_tensor_maker_free(&strings);
  weir_strbuf_free(&context);
  return status;
}

weir_status_t* weir_rest_read_examples(weir_rest_call_t* call) {
  weir_job_t* job = &call->job;
  const weir_model_port_t* port = NULL;
  weir_tensor_t* tensor = NULL;
  weir_view_t values[WEIR_REST_MEMBERS];
  weir_scan_t scan;
  WEIR_TRY(
      weir_rest_find_members(call, (const char* const[]){"context", "examples"}, &scan, values));
  if (!values[1].data)
    return WEIR_STATUS(INVALID_ARGUMENT, "JSON: a request must have \"examples\"");
  WEIR_TRY(weir_job_bind(job, call->service->catalog, &call->spec));
  const char* method = call->method == WEIR_METHOD_CLASSIFY ? "classify" : "regress";
  WEIR_TRY(weir_job_check_method(job, method, &port));
  WEIR_TRY(read_tensor(&scan, values[0], values[1], port->name, &tensor));
  return weir_job_add_input(job, port, tensor);
}

// ---- answers ----

static void put_class(const weir_classes_t* classes, int64_t i, weir_strbuf_t* out) {
  size_t size = 0;
  const char* label = classes->classes ? weir_tensor_string(classes->classes, i, &size) : "";
  weir_strbuf_putc(out, '[');
  weir_json_put_view(weir_view(label, size), out);
  weir_strbuf_putc(out, ',');
  weir_json_put_float(classes->scores ? ((const float*)classes->scores->data)[i] : 0, out);
  weir_strbuf_putc(out, ']');
}

weir_status_t* weir_rest_write_classes(weir_rest_call_t* call, weir_strbuf_t* out) {
  weir_classes_t classes;
  WEIR_TRY(weir_job_classes(&call->job, &classes));
  weir_strbuf_puts(out, "{\"results\": [");
  for (int64_t i = 0; i < classes.examples; ++i) {
    weir_strbuf_puts(out, i ? ",\n[" : "[");
    for (int64_t k = 0; k < classes.count; ++k) {
      if (k > 0) weir_strbuf_putc(out, ',');
      put_class(&classes, i * classes.count + k, out);
    }
    weir_strbuf_putc(out, ']');
  }
  weir_strbuf_puts(out, "]}\n");
  return NULL;
}

weir_status_t* weir_rest_write_regressions(weir_rest_call_t* call, weir_strbuf_t* out) {
  const float* values = NULL;
  int64_t count = 0;
  WEIR_TRY(weir_job_regressions(&call->job, &values, &count));
  weir_strbuf_puts(out, "{\"results\": [");
  for (int64_t i = 0; i < count; ++i) {
    if (i > 0) weir_strbuf_putc(out, ',');
    weir_json_put_float(values[i], out);
  }
  weir_strbuf_puts(out, "]}\n");
  return NULL;
}

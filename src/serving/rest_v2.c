// rest_v2.c — The Open Inference Protocol (KServe v2): a model's description, and :infer.
#include <inttypes.h>

#include "serving/rest.h"

// ---- types ----

static const struct {
  const char* name;
  weir_dtype_t dtype;
} types[] = {
    {"BOOL", WEIR_DTYPE_BOOL},     {"UINT8", WEIR_DTYPE_UINT8},   {"UINT16", WEIR_DTYPE_UINT16},
    {"UINT32", WEIR_DTYPE_UINT32}, {"UINT64", WEIR_DTYPE_UINT64}, {"INT8", WEIR_DTYPE_INT8},
    {"INT16", WEIR_DTYPE_INT16},   {"INT32", WEIR_DTYPE_INT32},   {"INT64", WEIR_DTYPE_INT64},
    {"FP16", WEIR_DTYPE_HALF},     {"FP32", WEIR_DTYPE_FLOAT},    {"FP64", WEIR_DTYPE_DOUBLE},
    {"BF16", WEIR_DTYPE_BFLOAT16}, {"BYTES", WEIR_DTYPE_STRING}};

static const char* type_name(weir_dtype_t dtype) {
  for (size_t i = 0; i < WEIR_COUNT_OF(types); ++i) {
    if (types[i].dtype == dtype) return types[i].name;
  }
  return weir_dtype_name(dtype);
}

static weir_dtype_t find_type(weir_view_t name) {
  for (size_t i = 0; i < WEIR_COUNT_OF(types); ++i) {
    if (weir_view_is(name, types[i].name)) return types[i].dtype;
  }
  return WEIR_DTYPE_INVALID;
}

// ---- the description ----

static void put_ports(const char* key, const weir_model_port_t* ports, int count,
                      weir_strbuf_t* out) {
  weir_strbuf_printf(out, ", \"%s\": [", key);
  for (int i = 0; i < count; ++i) {
    weir_strbuf_puts(out, i ? ", {\"name\": " : "{\"name\": ");
    weir_json_put_string(ports[i].name, out);
    weir_strbuf_printf(out, ", \"datatype\": \"%s\", \"shape\": [", type_name(ports[i].dtype));
    for (int k = 0; k < ports[i].rank; ++k)
      weir_strbuf_printf(out, "%s%" PRId64, k ? ", " : "", ports[i].dims[k]);
    weir_strbuf_puts(out, "]}");
  }
  weir_strbuf_putc(out, ']');
}

static void put_versions(void* arg, int64_t number, weir_version_state_t state, weir_code_t code,
                         const char* message) {
  (void)code;
  (void)message;
  weir_strbuf_t* out = arg;
  if (state != WEIR_VERSION_AVAILABLE) return;
  weir_strbuf_printf(out, "%s\"%" PRId64 "\"", out->data[out->size - 1] == '[' ? "" : ", ", number);
}

weir_status_t* weir_rest_write_v2_model(weir_catalog_t* catalog, const weir_model_spec_t* spec,
                                        weir_strbuf_t* out) {
  weir_version_t* version = NULL;
  WEIR_TRY(weir_catalog_find(catalog, spec, &version));
  const weir_signature_t* signature = weir_model_find_signature(version->model, NULL);
  weir_strbuf_puts(out, "{\"name\": ");
  weir_json_put_string(version->model_name, out);
  weir_strbuf_puts(out, ", \"versions\": [");
  weir_status_t* status = weir_strbuf_finish(out);
  if (!status) status = weir_catalog_visit(catalog, spec, put_versions, out);
  weir_strbuf_puts(out, "], \"platform\": \"tensorflow_savedmodel\"");
  put_ports("inputs", signature ? signature->inputs : NULL, signature ? signature->input_count : 0,
            out);
  put_ports("outputs", signature ? signature->outputs : NULL,
            signature ? signature->output_count : 0, out);
  weir_strbuf_puts(out, "}\n");
  weir_version_release(version);
  return status;
}

// ---- the request ----

// An input as it is described; |data| as it lies.
typedef struct tensor_t {
  weir_view_t name, datatype, data;
  int64_t dims[WEIR_JSON_MAX_DEPTH];
  int rank;  // -1: no shape
} tensor_t;

static weir_status_t* read_shape(weir_scan_t* scan, tensor_t* tensor) {
  bool is_first = true, has_more = false;
  weir_json_number_t number;
  WEIR_TRY(weir_scan_open(scan, '['));
  for (tensor->rank = 0;; ++tensor->rank) {
    WEIR_TRY(weir_scan_more(scan, '[', &is_first, &has_more));
    if (!has_more) return NULL;
    WEIR_TRY(weir_scan_number(scan, &number));
    if (!number.is_integer || number.integer < 0 || tensor->rank == WEIR_JSON_MAX_DEPTH)
      return weir_scan_error(scan, "a dimension before this");
    tensor->dims[tensor->rank] = number.integer;
  }
}

static weir_status_t* read_tensor(weir_scan_t* scan, tensor_t* tensor) {
  bool is_first = true, has_more = false;
  weir_view_t key, value;
  WEIR_TRY(weir_scan_open(scan, '{'));
  for (;;) {
    WEIR_TRY(weir_scan_more(scan, '{', &is_first, &has_more));
    if (!has_more) return NULL;
    WEIR_TRY(weir_scan_key(scan, &key));
    if (weir_view_is(key, "name")) WEIR_TRY(weir_scan_string(scan, &tensor->name));
    else if (weir_view_is(key, "datatype")) WEIR_TRY(weir_scan_string(scan, &tensor->datatype));
    else if (weir_view_is(key, "shape")) WEIR_TRY(read_shape(scan, tensor));
    else WEIR_TRY(weir_scan_skip(scan, weir_view_is(key, "data") ? &tensor->data : &value));
  }
}

// Data may be flat or nested: the shape says how it is meant.
static weir_status_t* add_input(weir_job_t* job, const weir_scan_t* whole, const tensor_t* tensor) {
  const weir_model_port_t* port = NULL;
  weir_tensor_maker_t maker;
  weir_tensor_t* made = NULL;
  WEIR_TRY(weir_job_find_input(job, tensor->name, &port));
  weir_dtype_t dtype = find_type(tensor->datatype);
  if (dtype != port->dtype || tensor->rank < 0 || !tensor->data.data)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "input '%s' must have \"shape\", \"data\", and the \"datatype\" %s",
                       port->name, type_name(port->dtype));
  weir_scan_t scan = *whole;
  scan.at = tensor->data.data;
  scan.depth = 3;
  weir_tensor_maker_init(&maker, dtype, port->name);
  weir_status_t* status = weir_tensor_maker_read(&maker, &scan, 0);
  if (!status) status = weir_tensor_maker_finish(&maker, tensor->rank, tensor->dims, &made);
  weir_tensor_maker_free(&maker);
  return status ? status : weir_job_add_input(job, port, made);
}

static weir_status_t* read_inputs(weir_job_t* job, weir_scan_t* scan) {
  bool is_first = true, has_more = false;
  WEIR_TRY(weir_scan_open(scan, '['));
  for (;;) {
    WEIR_TRY(weir_scan_more(scan, '[', &is_first, &has_more));
    if (!has_more) return NULL;
    tensor_t tensor = {.rank = -1};
    WEIR_TRY(read_tensor(scan, &tensor));
    WEIR_TRY(add_input(job, scan, &tensor));
  }
}

static weir_status_t* read_outputs(weir_job_t* job, weir_scan_t* scan) {
  bool is_first = true, has_more = false;
  WEIR_TRY(weir_scan_open(scan, '['));
  for (bool is_asked = false;; is_asked = true) {
    WEIR_TRY(weir_scan_more(scan, '[', &is_first, &has_more));
    if (!has_more) return NULL;
    tensor_t tensor = {.rank = -1};
    WEIR_TRY(read_tensor(scan, &tensor));
    if (!is_asked) job->output_count = 0;
    WEIR_TRY(weir_job_only_output(job, tensor.name));
  }
}

weir_status_t* weir_rest_read_infer(weir_rest_call_t* call) {
  weir_job_t* job = &call->job;
  bool is_first = true, has_more = false;
  weir_view_t key, value, text = weir_http_call_request(call->http)->body;
  weir_scan_t scan = weir_scan(text.size ? text : weir_view("", 0), &job->arena);
  WEIR_TRY(weir_job_bind(job, call->service->catalog, &call->spec));
  WEIR_TRY(weir_scan_open(&scan, '{'));
  for (;;) {
    WEIR_TRY(weir_scan_more(&scan, '{', &is_first, &has_more));
    if (!has_more) return weir_scan_end(&scan);
    WEIR_TRY(weir_scan_key(&scan, &key));
    if (weir_view_is(key, "inputs")) WEIR_TRY(read_inputs(job, &scan));
    else if (weir_view_is(key, "outputs")) WEIR_TRY(read_outputs(job, &scan));
    else if (weir_view_is(key, "id")) WEIR_TRY(weir_scan_string(&scan, &call->id));
    else WEIR_TRY(weir_scan_skip(&scan, &value));
  }
}

// ---- the answer ----

weir_status_t* weir_rest_write_infer(weir_rest_call_t* call, weir_strbuf_t* out) {
  const weir_job_t* job = &call->job;
  weir_strbuf_puts(out, "{\"model_name\": ");
  weir_json_put_string(job->version->model_name, out);
  weir_strbuf_printf(out, ", \"model_version\": \"%" PRId64 "\"", job->version->number);
  if (call->id.data) weir_strbuf_puts(out, ", \"id\": ");
  if (call->id.data) weir_json_put_view(call->id, out);
  weir_strbuf_puts(out, ", \"outputs\": [");
  for (int i = 0; i < job->output_count; ++i) {
    const weir_tensor_t* tensor = job->outputs[i].tensor;
    weir_strbuf_puts(out, i ? ",\n{\"name\": " : "{\"name\": ");
    weir_json_put_string(job->outputs[i].name, out);
    weir_strbuf_printf(out, ", \"datatype\": \"%s\", \"shape\": [",
                       type_name(weir_tensor_type(tensor)));
    for (int k = 0; k < tensor->rank; ++k)
      weir_strbuf_printf(out, "%s%" PRId64, k ? ", " : "", tensor->dims[k]);
    weir_strbuf_puts(out, "], \"data\": ");
    WEIR_TRY(weir_json_put_flat(tensor, out));
    weir_strbuf_putc(out, '}');
  }
  weir_strbuf_puts(out, "]}\n");
  return NULL;
}

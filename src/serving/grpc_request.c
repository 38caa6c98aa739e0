// grpc_request.c — PredictRequest and its kin.
#include "serving/grpc_request.h"

#include <stdio.h>

#include "cluster/task/tensor_message.h"
#include "tensor/tensor_proto.h"

enum { REQUEST_SPEC = 1, PREDICT_INPUTS = 2, PREDICT_FILTER = 3, EXAMPLES_INPUT = 2 };
enum { ENTRY_KEY = 1, ENTRY_VALUE = 2 };               // of maps
enum { INPUT_LIST = 1, INPUT_LIST_WITH_CONTEXT = 2 };  // Input
enum { LIST_EXAMPLES = 1, LIST_CONTEXT = 2 };          // ExampleList, ExampleListWithContext

// ---- ModelSpec ----

static weir_status_t* read_wrapped_int(weir_view_t message, int64_t* out_value) {
  weir_wire_reader_t reader = weir_wire_reader(message);
  *out_value = 0;
  while (weir_wire_next(&reader)) {
    if (reader.field == 1 && reader.type == WEIR_WIRE_VARINT) *out_value = weir_wire_int(&reader);
  }
  return weir_wire_check(&reader, "Int64Value");
}

weir_status_t* weir_model_spec_read(weir_view_t message, weir_model_spec_t* out_spec) {
  weir_wire_reader_t reader = weir_wire_reader(message);
  while (weir_wire_next(&reader)) {
    if (reader.type != WEIR_WIRE_BYTES) continue;
    if (reader.field == WEIR_SPEC_NAME) out_spec->name = reader.bytes;
    if (reader.field == WEIR_SPEC_SIGNATURE) out_spec->signature = reader.bytes;
    if (reader.field == WEIR_SPEC_LABEL) {  // one of these two: the later one counts
      out_spec->label = reader.bytes;
      out_spec->has_version = false;
    }
    if (reader.field != WEIR_SPEC_VERSION) continue;
    out_spec->has_version = true;
    out_spec->label = weir_view("", 0);
    WEIR_TRY(read_wrapped_int(reader.bytes, &out_spec->version));
  }
  return weir_wire_check(&reader, "ModelSpec");
}

weir_status_t* weir_model_spec_find(weir_view_t message, uint32_t field,
                                    weir_model_spec_t* out_spec) {
  weir_wire_reader_t reader = weir_wire_reader(message);
  while (weir_wire_next(&reader)) {
    if (reader.field == field && reader.type == WEIR_WIRE_BYTES)
      WEIR_TRY(weir_model_spec_read(reader.bytes, out_spec));
  }
  return weir_wire_check(&reader, "request");
}

static weir_status_t* bind(weir_job_t* job, const weir_grpc_input_t* input, weir_view_t message) {
  weir_model_spec_t spec = {.has_version = false};
  WEIR_TRY(weir_model_spec_find(message, REQUEST_SPEC, &spec));
  if (input->known) return weir_job_bind_version(job, input->known, spec.signature);
  return weir_job_bind(job, input->catalog, &spec);
}

// ---- PredictRequest ----

static weir_status_t* add_tensor(weir_job_t* job, const weir_grpc_input_t* input,
                                 weir_view_t entry) {
  weir_view_t name = {0}, proto = {0};
  const weir_model_port_t* port = NULL;
  weir_tensor_t* tensor = NULL;
  weir_wire_reader_t reader = weir_wire_reader(entry);
  while (weir_wire_next(&reader)) {
    if (reader.field == ENTRY_KEY && reader.type == WEIR_WIRE_BYTES) name = reader.bytes;
    if (reader.field == ENTRY_VALUE && reader.type == WEIR_WIRE_BYTES) proto = reader.bytes;
  }
  WEIR_TRY(weir_wire_check(&reader, "PredictRequest.inputs"));
  WEIR_TRY(weir_job_find_input(job, name, &port));
  weir_status_t* status = input->buffer ? weir_message_get_tensor(input->buffer, proto, &tensor)
                                        : weir_tensor_parse(proto, &tensor);
  if (status) return weir_status_prefix(status, "input '%s': ", port->name);
  return weir_job_add_input(job, port, tensor);
}

weir_status_t* weir_predict_request_read(weir_job_t* job, const weir_grpc_input_t* input,
                                         weir_view_t message) {
  WEIR_TRY(bind(job, input, message));
  weir_wire_reader_t reader = weir_wire_reader(message);
  bool is_filtered = false;
  while (weir_wire_next(&reader)) {
    if (reader.type != WEIR_WIRE_BYTES) continue;
    if (reader.field == PREDICT_INPUTS) WEIR_TRY(add_tensor(job, input, reader.bytes));
    if (reader.field != PREDICT_FILTER) continue;
    if (!is_filtered) job->output_count = 0;
    is_filtered = true;
    WEIR_TRY(weir_job_only_output(job, reader.bytes));
  }
  return weir_wire_check(&reader, "PredictRequest");
}

// ---- Examples ----

weir_status_t* weir_job_check_method(const weir_job_t* job, const char* method,
                                     const weir_model_port_t** out_port) {
  const weir_signature_t* signature = job->signature;
  char wanted[64];
  snprintf(wanted, sizeof(wanted), "tensorflow/serving/%s", method);
  if (strcmp(signature->method, wanted) != 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "Expected %s signature method_name to be %s. Was: %s",
                       method, wanted, signature->method);
  *out_port = NULL;
  for (int i = 0; i < signature->input_count; ++i) {
    if (signature->input_count == 1 || strcmp(signature->inputs[i].name, "inputs") == 0)
      *out_port = &signature->inputs[i];
  }
  if (*out_port && (*out_port)->dtype == WEIR_DTYPE_STRING) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "signature '%s' has no input of strings that takes Examples",
                     signature->name);
}

typedef struct examples_t {
  weir_view_t context;  // empty: none
  weir_view_t* items;
  size_t count, capacity;
} examples_t;

static weir_status_t* read_list(weir_view_t list, bool has_context, examples_t* examples) {
  weir_wire_reader_t reader = weir_wire_reader(list);
  while (weir_wire_next(&reader)) {
    if (reader.type != WEIR_WIRE_BYTES) continue;
    if (reader.field == LIST_CONTEXT && has_context) examples->context = reader.bytes;
    if (reader.field != LIST_EXAMPLES) continue;
    if (!WEIR_GROW(examples->items, examples->capacity, examples->count + 1))
      return weir_out_of_memory();
    examples->items[examples->count++] = reader.bytes;
  }
  return weir_wire_check(&reader, "ExampleList");
}

static weir_status_t* read_input(weir_view_t message, examples_t* examples) {
  weir_wire_reader_t reader = weir_wire_reader(message);
  while (weir_wire_next(&reader)) {
    bool has_context = reader.field == INPUT_LIST_WITH_CONTEXT;
    if (reader.type != WEIR_WIRE_BYTES || (reader.field != INPUT_LIST && !has_context)) continue;
    examples->count = 0;
    WEIR_TRY(read_list(reader.bytes, has_context, examples));
  }
  return weir_wire_check(&reader, "Input");
}

// Messages one behind the other are merged by whoever parses them: an example's own features win.
static weir_status_t* make_tensor(const examples_t* examples, weir_tensor_t** out_tensor) {
  int64_t count = (int64_t)examples->count;
  weir_tensor_t* tensor = NULL;
  weir_strbuf_t whole = {0};
  WEIR_TRY(weir_tensor_create(WEIR_DTYPE_STRING, 1, &count, &tensor));
  weir_status_t* status = NULL;
  for (int64_t i = 0; i < count && !status; ++i) {
    whole.size = 0;
    weir_strbuf_append(&whole, examples->context.data, examples->context.size);
    weir_strbuf_append(&whole, examples->items[i].data, examples->items[i].size);
    status = weir_strbuf_finish(&whole);
    if (!status) status = weir_tensor_set_string(tensor, i, whole.data, whole.size);
  }
  weir_strbuf_free(&whole);
  if (status) weir_tensor_release(tensor);
  else *out_tensor = tensor;
  return status;
}

weir_status_t* weir_examples_request_read(weir_job_t* job, const weir_grpc_input_t* input,
                                          weir_view_t message, const char* method) {
  const weir_model_port_t* port = NULL;
  examples_t examples = {.count = 0};
  weir_tensor_t* tensor = NULL;
  WEIR_TRY(bind(job, input, message));
  WEIR_TRY(weir_job_check_method(job, method, &port));
  weir_wire_reader_t reader = weir_wire_reader(message);
  weir_status_t* status = NULL;
  while (!status && weir_wire_next(&reader)) {
    if (reader.field == EXAMPLES_INPUT && reader.type == WEIR_WIRE_BYTES)
      status = read_input(reader.bytes, &examples);
  }
  if (!status) status = weir_wire_check(&reader, "request");
  if (!status && examples.count == 0)
    status = WEIR_STATUS(INVALID_ARGUMENT, "Input is empty: there are no Examples");
  if (!status) status = make_tensor(&examples, &tensor);
  if (!status) status = weir_job_add_input(job, port, tensor);
  weir_free(examples.items);
  return status;
}

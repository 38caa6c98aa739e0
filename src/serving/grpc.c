// grpc.c — tensorflow.serving.PredictionService and ModelService: calls, their jobs, their answers.
#include "cluster/task/tensor_message.h"
#include "serving/grpc_request.h"
#include "serving/results.h"
#include "serving/service.h"
#include "tensor/shape.h"

enum { RESPONSE_RESULT = 1, RESPONSE_SPEC = 2 };  // of Predict (a map), Classify, Regress
enum {
  RESULT_ITEMS = 1,
  CLASSES_ITEMS = 1,
  CLASS_LABEL = 1,
  CLASS_SCORE = 2,
  REGRESSION_VALUE = 1
};
enum { METADATA_SPEC = 1, METADATA_FIELDS = 2, METADATA_ENTRIES = 2 };
enum { ENTRY_KEY = 1, ENTRY_VALUE = 2, ANY_URL = 1, ANY_VALUE = 2 };
enum { SIGNATURE_INPUTS = 1, SIGNATURE_OUTPUTS = 2, SIGNATURE_METHOD = 3 };
enum { INFO_NAME = 1, INFO_DTYPE = 2, INFO_SHAPE = 3 };
enum { STATUS_SPEC = 1, STATUS_VERSIONS = 1 };
enum {
  VERSION_NUMBER = 1,
  VERSION_STATE = 2,
  VERSION_STATUS = 3,
  PROTO_CODE = 1,
  PROTO_MESSAGE = 2
};

typedef struct grpc_call_t {
  weir_job_t job;  // first: what done is given
  weir_service_t* service;
  weir_rpc_call_t* rpc;
  weir_serving_method_t method;
  int64_t begin_ns;
} grpc_call_t;

// ---- the end of a call ----

static void put_spec(weir_strbuf_t* out, uint32_t field, const weir_version_t* version,
                     const char* signature) {
  size_t spec = weir_wire_begin(out, field);
  weir_wire_put_string(out, WEIR_SPEC_NAME, version->model_name);
  size_t number = weir_wire_begin(out, WEIR_SPEC_VERSION);
  weir_wire_put_int(out, 1, version->number);
  weir_wire_end(out, number);
  if (signature) weir_wire_put_string(out, WEIR_SPEC_SIGNATURE, signature);
  weir_wire_end(out, spec);
}

static void count_call(grpc_call_t* call, weir_code_t code) {
  weir_counted_t counted = {.api = WEIR_API_GRPC,
                            .method = call->method,
                            .code = code,
                            .duration_ns = weir_clock_ns() - call->begin_ns,
                            .run_ns = call->job.run_ns};
  if (call->job.version) counted.model = weir_view_of(call->job.version->model_name);
  weir_counts_add(call->service->counts, &counted);
}

// Answers, with one of the two, and forgets the call.
static void end_call(grpc_call_t* call, weir_status_t* take_status,
                     weir_message_builder_t* builder) {
  weir_rpc_message_t* message = NULL;
  weir_service_t* service = call->service;
  weir_rpc_call_t* rpc = call->rpc;
  weir_status_t* status = take_status;
  if (status) weir_message_abandon(builder);
  else status = weir_message_finish(builder, &message);
  count_call(call, weir_status_code(status));
  weir_job_clear(&call->job);
  weir_free(call);
  weir_service_leave(service);
  if (status) weir_rpc_call_fail(rpc, status);
  else weir_rpc_call_respond(rpc, message);
}

// ---- Predict, Classify, Regress ----

static void put_outputs(const weir_job_t* job, weir_message_builder_t* builder) {
  for (int i = 0; i < job->output_count; ++i)
    weir_message_put_named_tensor(builder, RESPONSE_RESULT, weir_view_of(job->outputs[i].name),
                                  job->outputs[i].tensor);
}

static weir_status_t* put_classes(const weir_job_t* job, weir_strbuf_t* out) {
  weir_classes_t classes;
  WEIR_TRY(weir_job_classes(job, &classes));
  size_t result = weir_wire_begin(out, RESPONSE_RESULT);
  for (int64_t i = 0; i < classes.examples; ++i) {
    size_t item = weir_wire_begin(out, RESULT_ITEMS);
    for (int64_t k = i * classes.count; k < (i + 1) * classes.count; ++k) {
      size_t one = weir_wire_begin(out, CLASSES_ITEMS), size = 0;
      const char* label = classes.classes ? weir_tensor_string(classes.classes, k, &size) : "";
      if (classes.classes) weir_wire_put_bytes(out, CLASS_LABEL, label, size);
      if (classes.scores)
        weir_wire_put_float(out, CLASS_SCORE, ((const float*)weir_tensor_data(classes.scores))[k]);
      weir_wire_end(out, one);
    }
    weir_wire_end(out, item);
  }
  weir_wire_end(out, result);
  return NULL;
}

static weir_status_t* put_regressions(const weir_job_t* job, weir_strbuf_t* out) {
  const float* values = NULL;
  int64_t count = 0;
  WEIR_TRY(weir_job_regressions(job, &values, &count));
  size_t result = weir_wire_begin(out, RESPONSE_RESULT);
  for (int64_t i = 0; i < count; ++i) {
    size_t item = weir_wire_begin(out, RESULT_ITEMS);
    weir_wire_put_float(out, REGRESSION_VALUE, values[i]);
    weir_wire_end(out, item);
  }
  weir_wire_end(out, result);
  return NULL;
}

static void job_done(weir_job_t* job, weir_status_t* take_status) {
  grpc_call_t* call = (grpc_call_t*)job;
  weir_message_builder_t builder = {.message = NULL};
  weir_status_t* status = take_status;
  if (!status && call->method == WEIR_METHOD_PREDICT) put_outputs(job, &builder);
  else if (!status && call->method == WEIR_METHOD_CLASSIFY)
    status = put_classes(job, &builder.head);
  else if (!status) status = put_regressions(job, &builder.head);
  if (!status) put_spec(&builder.head, RESPONSE_SPEC, job->version, job->signature->name);
  end_call(call, status, &builder);
}

static void run_call(void* arg) {
  grpc_call_t* call = arg;
  weir_rpc_buffer_t* buffer = weir_rpc_call_request(call->rpc);
  weir_grpc_input_t input = {.catalog = call->service->catalog, .buffer = buffer};
  weir_view_t message = weir_rpc_buffer_view(buffer);
  weir_status_t* status = call->method == WEIR_METHOD_PREDICT
                              ? weir_predict_request_read(&call->job, &input, message)
                              : weir_examples_request_read(
                                    &call->job, &input, message,
                                    call->method == WEIR_METHOD_CLASSIFY ? "classify" : "regress");
  if (status) job_done(&call->job, status);
  else weir_job_start(&call->job);
}

static void start_call(weir_service_t* service, weir_rpc_call_t* rpc, weir_serving_method_t method,
                       weir_task_fn_t run) {
  weir_status_t* status = weir_service_enter(service);
  grpc_call_t* call = status ? NULL : weir_calloc(1, sizeof(*call));
  if (!status && !call) {
    weir_service_leave(service);
    status = weir_out_of_memory();
  }
  if (status) {
    weir_counted_t counted = {
        .api = WEIR_API_GRPC, .method = method, .code = weir_status_code(status)};
    weir_counts_add(service->counts, &counted);
    weir_rpc_call_fail(rpc, status);
    return;
  }
  call->service = service;
  call->rpc = rpc;
  call->method = method;
  call->begin_ns = weir_clock_ns();
  call->job.deadline_ns = WEIR_MIN(weir_service_deadline(service), weir_rpc_call_deadline(rpc));
  call->job.done = job_done;
  weir_pool_submit(service->pool, run, call);
}

static void handle_predict(void* self, weir_rpc_call_t* call) {
  start_call(self, call, WEIR_METHOD_PREDICT, run_call);
}
static void handle_classify(void* self, weir_rpc_call_t* call) {
  start_call(self, call, WEIR_METHOD_CLASSIFY, run_call);
}
static void handle_regress(void* self, weir_rpc_call_t* call) {
  start_call(self, call, WEIR_METHOD_REGRESS, run_call);
}

// ---- GetModelMetadata ----

static void put_ports(weir_strbuf_t* out, uint32_t field, const weir_model_port_t* ports,
                      int count) {
  for (int i = 0; i < count; ++i) {
    size_t entry = weir_wire_begin(out, field);
    weir_wire_put_string(out, ENTRY_KEY, ports[i].name);
    size_t info = weir_wire_begin(out, ENTRY_VALUE);
    weir_wire_put_string(out, INFO_NAME, ports[i].tensor);
    weir_wire_put_int(out, INFO_DTYPE, ports[i].dtype);
    size_t shape = weir_wire_begin(out, INFO_SHAPE);
    if (ports[i].rank >= 0) weir_shape_write_dims(ports[i].rank, ports[i].dims, out);
    else weir_shape_write(&weir_shape_unknown, out);
    weir_wire_end(out, shape);
    weir_wire_end(out, info);
    weir_wire_end(out, entry);
  }
}

// A SignatureDefMap.
static void put_signatures(weir_strbuf_t* out, const weir_model_t* model) {
  for (int i = 0; i < weir_model_signature_count(model); ++i) {
    const weir_signature_t* signature = weir_model_signature_at(model, i);
    size_t entry = weir_wire_begin(out, 1);
    weir_wire_put_string(out, ENTRY_KEY, signature->name);
    size_t value = weir_wire_begin(out, ENTRY_VALUE);
    put_ports(out, SIGNATURE_INPUTS, signature->inputs, signature->input_count);
    put_ports(out, SIGNATURE_OUTPUTS, signature->outputs, signature->output_count);
    weir_wire_put_string(out, SIGNATURE_METHOD, signature->method);
    weir_wire_end(out, value);
    weir_wire_end(out, entry);
  }
}

// Of what may be asked for there is one field, signature_def, and it must be.
static weir_status_t* read_metadata_request(weir_view_t message, weir_model_spec_t* spec) {
  bool has_field = false;
  weir_wire_reader_t reader = weir_wire_reader(message);
  WEIR_TRY(weir_model_spec_find(message, METADATA_SPEC, spec));
  while (weir_wire_next(&reader)) {
    if (reader.field != METADATA_FIELDS || reader.type != WEIR_WIRE_BYTES) continue;
    has_field = true;
    if (!weir_view_is(reader.bytes, "signature_def"))
      return WEIR_STATUS(INVALID_ARGUMENT, "Metadata field %.*s is not supported",
                         (int)WEIR_MIN(reader.bytes.size, (size_t)200), reader.bytes.data);
  }
  WEIR_TRY(weir_wire_check(&reader, "GetModelMetadataRequest"));
  return has_field ? NULL
                   : WEIR_STATUS(INVALID_ARGUMENT,
                                 "GetModelMetadataRequest must specify at least "
                                 "one metadata_field");
}

static void put_metadata(weir_strbuf_t* out, const weir_version_t* version) {
  put_spec(out, METADATA_SPEC, version, NULL);
  size_t entry = weir_wire_begin(out, METADATA_ENTRIES);
  weir_wire_put_string(out, ENTRY_KEY, "signature_def");
  size_t any = weir_wire_begin(out, ENTRY_VALUE);
  weir_wire_put_string(out, ANY_URL, "type.googleapis.com/tensorflow.serving.SignatureDefMap");
  size_t map = weir_wire_begin(out, ANY_VALUE);
  put_signatures(out, version->model);
  weir_wire_end(out, map);
  weir_wire_end(out, any);
  weir_wire_end(out, entry);
}

static void run_metadata(void* arg) {
  grpc_call_t* call = arg;
  weir_model_spec_t spec = {.has_version = false};
  weir_message_builder_t builder = {.message = NULL};
  weir_status_t* status =
      read_metadata_request(weir_rpc_buffer_view(weir_rpc_call_request(call->rpc)), &spec);
  if (!status) status = weir_catalog_find(call->service->catalog, &spec, &call->job.version);
  if (!status) put_metadata(&builder.head, call->job.version);
  end_call(call, status, &builder);
}

static void handle_metadata(void* self, weir_rpc_call_t* call) {
  start_call(self, call, WEIR_METHOD_METADATA, run_metadata);
}

// ---- GetModelStatus ----

static void put_version(void* arg, int64_t number, weir_version_state_t state, weir_code_t code,
                        const char* message) {
  weir_strbuf_t* out = arg;
  size_t version = weir_wire_begin(out, STATUS_VERSIONS);
  weir_wire_put_int(out, VERSION_NUMBER, number);
  weir_wire_put_int(out, VERSION_STATE, state);
  size_t status = weir_wire_begin(out, VERSION_STATUS);
  if (code) weir_wire_put_int(out, PROTO_CODE, code);
  if (message[0]) weir_wire_put_string(out, PROTO_MESSAGE, message);
  weir_wire_end(out, status);
  weir_wire_end(out, version);
}

static void run_status(void* arg) {
  grpc_call_t* call = arg;
  weir_model_spec_t spec = {.has_version = false};
  weir_message_builder_t builder = {.message = NULL};
  weir_status_t* status = weir_model_spec_find(
      weir_rpc_buffer_view(weir_rpc_call_request(call->rpc)), STATUS_SPEC, &spec);
  if (!status)
    status = weir_catalog_visit(call->service->catalog, &spec, put_version, &builder.head);
  end_call(call, status, &builder);
}

static void handle_status(void* self, weir_rpc_call_t* call) {
  start_call(self, call, WEIR_METHOD_STATUS, run_status);
}

// Inline: what they do on the io thread is to count and to queue.
const weir_rpc_method_t weir_serving_methods[WEIR_SERVICE_METHOD_COUNT] = {
    {"/tensorflow.serving.PredictionService/Predict", handle_predict, .is_inline = true},
    {"/tensorflow.serving.PredictionService/Classify", handle_classify, .is_inline = true},
    {"/tensorflow.serving.PredictionService/Regress", handle_regress, .is_inline = true},
    {"/tensorflow.serving.PredictionService/GetModelMetadata", handle_metadata, .is_inline = true},
    {"/tensorflow.serving.ModelService/GetModelStatus", handle_status, .is_inline = true},
    {.path = NULL}};

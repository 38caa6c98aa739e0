// warm_up.c — Runs a version before it serves: on recorded requests, or on zeros.
#include <inttypes.h>

#include "base/log.h"
#include "file/record.h"
#include "serving/catalog_internal.h"
#include "serving/grpc_request.h"
#include "serving/job.h"

// Of PredictionLog, and of the logs within it.
enum { LOG_CLASSIFY = 2, LOG_REGRESS = 3, LOG_PREDICT = 6, LOG_REQUEST = 1 };
enum { MAX_RECORDS = 1000 };  // TensorFlow Serving's limit

static weir_status_t* run_request(weir_version_t* version, uint32_t kind, weir_view_t request) {
  weir_job_t job = {.deadline_ns = INT64_MAX};
  weir_grpc_input_t input = {.known = version};
  weir_status_t* status = kind == LOG_PREDICT ? weir_predict_request_read(&job, &input, request)
                                              : weir_examples_request_read(
                                                    &job, &input, request,
                                                    kind == LOG_CLASSIFY ? "classify" : "regress");
  if (!status) status = weir_job_run(&job);
  weir_job_clear(&job);
  return status;
}

static weir_status_t* run_record(weir_version_t* version, weir_view_t record) {
  weir_wire_reader_t reader = weir_wire_reader(record);
  while (weir_wire_next(&reader)) {
    uint32_t kind = reader.field;
    bool is_known = kind == LOG_PREDICT || kind == LOG_CLASSIFY || kind == LOG_REGRESS;
    if (!is_known || reader.type != WEIR_WIRE_BYTES) continue;
    weir_wire_reader_t log = weir_wire_reader(reader.bytes);
    while (weir_wire_next(&log)) {
      if (log.field == LOG_REQUEST && log.type == WEIR_WIRE_BYTES)
        WEIR_TRY(run_request(version, kind, log.bytes));
    }
    WEIR_TRY(weir_wire_check(&log, "PredictionLog"));
  }
  return weir_wire_check(&reader, "PredictionLog");
}

static weir_status_t* run_records(weir_version_t* version, const char* path) {
  weir_record_reader_t* reader = NULL;
  weir_view_t record;
  WEIR_TRY(weir_record_reader_open(path, &reader));
  weir_status_t* status = NULL;
  int count = 0;
  for (; count < MAX_RECORDS && !status; ++count) {
    status = weir_record_next(reader, &record);
    if (weir_status_code(status) == WEIR_OUT_OF_RANGE) break;
    if (!status) status = run_record(version, record);
  }
  weir_record_reader_destroy(reader);
  if (weir_status_code(status) == WEIR_OUT_OF_RANGE) {
    weir_status_destroy(status);
    status = NULL;
  }
  return weir_status_prefix(status, "warm-up request %d of '%s': ", count, path);
}

// One run of each signature whose inputs all have a rank; dimensions that are not known are 1.
static weir_status_t* run_zeros(weir_version_t* version, const weir_signature_t* signature) {
  weir_job_t job = {.deadline_ns = INT64_MAX};
  weir_status_t* status = weir_job_bind_version(&job, version, weir_view_of(signature->name));
  for (int i = 0; i < signature->input_count && !status; ++i) {
    const weir_model_port_t* port = &signature->inputs[i];
    int64_t dims[WEIR_MAX_RANK];
    weir_tensor_t* tensor = NULL;
    for (int k = 0; k < port->rank; ++k) dims[k] = port->dims[k] < 0 ? 1 : port->dims[k];
    status = weir_tensor_create(port->dtype, WEIR_MAX(port->rank, 0), dims, &tensor);
    if (status) break;
    if (port->dtype != WEIR_DTYPE_STRING && weir_tensor_byte_size(tensor) > 0)
      memset(weir_tensor_data(tensor), 0, weir_tensor_byte_size(tensor));
    status = weir_job_add_input(&job, port, tensor);
  }
  if (!status) status = weir_job_run(&job);
  weir_job_clear(&job);
  return status;
}

static void warm_with_zeros(weir_version_t* version) {
  for (int i = 0; i < weir_model_signature_count(version->model); ++i) {
    const weir_signature_t* signature = weir_model_signature_at(version->model, i);
    weir_status_t* status = run_zeros(version, signature);
    if (status)  // zeros may make no sense to it
      WEIR_LOG(INFO, "model '%s': signature '%s' does not run on zeros: %s", version->model_name,
               signature->name, weir_status_message(status));
    weir_status_destroy(status);
  }
}

weir_status_t* weir_version_warm_up(weir_version_t* version, const char* path, bool with_zeros) {
  weir_strbuf_t name = {0};
  weir_strbuf_printf(&name, "%s/assets.extra/tf_serving_warmup_requests", path);
  weir_status_t* status = weir_strbuf_finish(&name);
  bool is_there = !status && weir_fs_exists(name.data);
  if (is_there) status = run_records(version, name.data);
  else if (!status && with_zeros) warm_with_zeros(version);
  weir_strbuf_free(&name);
  return status;
}

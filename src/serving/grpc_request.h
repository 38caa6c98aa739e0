// grpc_request.h — TensorFlow Serving's request messages, read into jobs.
#ifndef WEIR_SERVING_GRPC_REQUEST_H_
#define WEIR_SERVING_GRPC_REQUEST_H_

#include "rpc/rpc.h"
#include "serving/job.h"
#include "wire/wire.h"

// Fields of ModelSpec.
enum { WEIR_SPEC_NAME = 1, WEIR_SPEC_VERSION = 2, WEIR_SPEC_SIGNATURE = 3, WEIR_SPEC_LABEL = 4 };

typedef struct weir_grpc_input_t {
  weir_catalog_t* catalog;
  weir_version_t* known;  // instead of the one that the request names; NULL: that
  weir_rpc_buffer_t*
      buffer;  // that holds the message, for tensors to stay in; NULL: they are copied
} weir_grpc_input_t;

// A ModelSpec; views into |message|.
WEIR_MUST_USE weir_status_t* weir_model_spec_read(weir_view_t message, weir_model_spec_t* out_spec);
// The ModelSpec in field |field| of |message|; empty where there is none.
WEIR_MUST_USE weir_status_t* weir_model_spec_find(weir_view_t message, uint32_t field,
                                                  weir_model_spec_t* out_spec);
// PredictRequest.
WEIR_MUST_USE weir_status_t* weir_predict_request_read(weir_job_t* job,
                                                       const weir_grpc_input_t* input,
                                                       weir_view_t message);
// ClassificationRequest or RegressionRequest; |method|: "classify" or "regress".
WEIR_MUST_USE weir_status_t* weir_examples_request_read(weir_job_t* job,
                                                        const weir_grpc_input_t* input,
                                                        weir_view_t message, const char* method);

// Whether the signature is of |method|, and the input that takes Examples.
WEIR_MUST_USE weir_status_t* weir_job_check_method(const weir_job_t* job, const char* method,
                                                   const weir_model_port_t** out_port);

#endif  // WEIR_SERVING_GRPC_REQUEST_H_

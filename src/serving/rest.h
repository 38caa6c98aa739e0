// rest.h — REST requests: what the files that answer them share.
#ifndef WEIR_SERVING_REST_H_
#define WEIR_SERVING_REST_H_

#include "serving/json_tensor.h"
#include "serving/service.h"

typedef struct weir_rest_call_t weir_rest_call_t;
// Reads the request's body into the job, whose model and version are known from the path.
typedef weir_status_t* (*weir_rest_read_fn_t)(weir_rest_call_t* call);
// Writes the answer of a job that has run.
typedef weir_status_t* (*weir_rest_write_fn_t)(weir_rest_call_t* call, weir_strbuf_t* out);

struct weir_rest_call_t {
  weir_job_t job;  // first: what done is given. Its arena holds strings of the request
  weir_service_t* service;
  weir_http_call_t* http;
  weir_model_spec_t spec;  // views into the path
  weir_serving_method_t method;
  weir_rest_read_fn_t read;
  weir_rest_write_fn_t write;
  int64_t begin_ns;
  bool is_row_format;  // predict: "instances", not "inputs"
  weir_view_t id;      // infer: of the request; NULL data: none
};

// The body's members |names|, found before they are read: they may come in any order. A value is as
// it lies there; NULL data: it is not there. "signature_name" goes to the call's spec. |out_scan|
// is of the whole body.
enum { WEIR_REST_MEMBERS = 2 };
WEIR_MUST_USE weir_status_t* weir_rest_find_members(weir_rest_call_t* call,
                                                    const char* const names[WEIR_REST_MEMBERS],
                                                    weir_scan_t* out_scan,
                                                    weir_view_t out_values[WEIR_REST_MEMBERS]);

// predict, classify, regress: TensorFlow Serving's.
WEIR_MUST_USE weir_status_t* weir_rest_read_predict(weir_rest_call_t* call);
WEIR_MUST_USE weir_status_t* weir_rest_write_predict(weir_rest_call_t* call, weir_strbuf_t* out);
WEIR_MUST_USE weir_status_t* weir_rest_read_examples(weir_rest_call_t* call);
WEIR_MUST_USE weir_status_t* weir_rest_write_classes(weir_rest_call_t* call, weir_strbuf_t* out);
WEIR_MUST_USE weir_status_t* weir_rest_write_regressions(weir_rest_call_t* call,
                                                         weir_strbuf_t* out);
// infer: the Open Inference Protocol's.
WEIR_MUST_USE weir_status_t* weir_rest_read_infer(weir_rest_call_t* call);
WEIR_MUST_USE weir_status_t* weir_rest_write_infer(weir_rest_call_t* call, weir_strbuf_t* out);

// Pages about models; |spec| as in a call.
WEIR_MUST_USE weir_status_t* weir_rest_write_status(weir_catalog_t* catalog,
                                                    const weir_model_spec_t* spec,
                                                    weir_strbuf_t* out);
WEIR_MUST_USE weir_status_t* weir_rest_write_metadata(weir_catalog_t* catalog,
                                                      const weir_model_spec_t* spec,
                                                      weir_strbuf_t* out);
WEIR_MUST_USE weir_status_t* weir_rest_write_v2_model(weir_catalog_t* catalog,
                                                      const weir_model_spec_t* spec,
                                                      weir_strbuf_t* out);

#endif  // WEIR_SERVING_REST_H_

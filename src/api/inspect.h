// inspect.h — What the describers of files share: a report that is text or JSON. Thread-confined.
#ifndef WEIR_API_INSPECT_H_
#define WEIR_API_INSPECT_H_

#include "base/json.h"
#include "base/string.h"
#include "file/mapping.h"
#include "tensor/shape.h"
#include "weir/dtype.h"
#include "wire/wire.h"

typedef struct weir_report_t {
  bool is_json;
  const char* path;
  weir_strbuf_t out;
} weir_report_t;

// ---- JSON, nothing in text: commas are put where one is missing ----
void weir_report_key(weir_report_t* report, const char* key);  // NULL: an element of an array
void weir_report_open(weir_report_t* report, const char* key, char bracket);
void weir_report_close(weir_report_t* report, char bracket);
void weir_report_string(weir_report_t* report, const char* key, weir_view_t value);
void weir_report_number(weir_report_t* report, const char* key, int64_t value);
// "dtype" and "shape"; a negative |rank|: not known, null.
void weir_report_type(weir_report_t* report, weir_dtype_t dtype, int rank, const int64_t* dims);

// ---- text, nothing in JSON ----
void weir_report_line(weir_report_t* report, const char* format, ...) WEIR_PRINTF(2, 3);
// "[2,?]" with '?' for what is not known; "any shape" for an unknown rank. Returns |out|->data.
const char* weir_report_shape(int rank, const int64_t* dims, weir_strbuf_t* out);

// Begins the object of a file: its "kind" and, in text, a first line "path: what".
void weir_report_begin(weir_report_t* report, const char* kind, const char* what);

// ---- describers: each appends the whole of a report. What they take is gone when they return,
// also when they fail ----
WEIR_MUST_USE weir_status_t* weir_inspect_saved_model(weir_report_t* report, weir_view_t bytes,
                                                      const char* directory);
WEIR_MUST_USE weir_status_t* weir_inspect_meta_graph(weir_report_t* report, weir_view_t bytes);
WEIR_MUST_USE weir_status_t* weir_inspect_graph(weir_report_t* report, weir_view_t bytes,
                                                bool is_text);
WEIR_MUST_USE weir_status_t* weir_inspect_checkpoint(weir_report_t* report, const char* prefix);
// A line and a member on the variables beside a SavedModel.
WEIR_MUST_USE weir_status_t* weir_inspect_variables(weir_report_t* report, const char* prefix);
WEIR_MUST_USE weir_status_t* weir_inspect_records(weir_report_t* report,  // or events
                                                  weir_file_t* take_file);
WEIR_MUST_USE weir_status_t* weir_inspect_npy(weir_report_t* report, weir_view_t bytes);
WEIR_MUST_USE weir_status_t* weir_inspect_safetensors(weir_report_t* report,
                                                      weir_mapping_t* take_mapping);
WEIR_MUST_USE weir_status_t* weir_inspect_zip(weir_report_t* report, weir_file_t* take_file);

// As weir_inspect_file, of a file that is in memory and would be called |path|. Only a file can be
// a checkpoint.
WEIR_MUST_USE weir_status_t* weir_inspect_bytes(weir_view_t bytes, const char* path, bool json,
                                                char** out_text);

#endif  // WEIR_API_INSPECT_H_

// job.h — One run of a signature that a client asked for, however the request came.
//
// Thread-confined to whoever has it: the request's thread, then the run's, then who is told.
#ifndef WEIR_SERVING_JOB_H_
#define WEIR_SERVING_JOB_H_

#include "base/alloc.h"
#include "serving/catalog.h"

typedef struct weir_job_t weir_job_t;
// The outputs are set, or |take_status| says why not. On the thread that ran it.
typedef void (*weir_job_done_fn_t)(weir_job_t* job, weir_status_t* take_status);

struct weir_job_t {
  weir_arena_t arena;  // names, bytes of strings
  weir_version_t* version;
  const weir_signature_t* signature;
  weir_named_tensor_t* inputs;  // owned tensors; names are the signature's
  int input_count;
  weir_named_tensor_t* outputs;
  int output_count;
  int64_t deadline_ns;  // INT64_MAX: none
  weir_job_done_fn_t done;
  int64_t run_ns;  // how long the run took

  weir_job_t* next;  // of a lane
  int64_t rows;      // along the first dimension, of a job in a lane
};

// Finds model, version and signature, and makes room. All outputs are asked for.
WEIR_MUST_USE weir_status_t* weir_job_bind(weir_job_t* job, weir_catalog_t* catalog,
                                           const weir_model_spec_t* spec);
// The same where the version is known; retains it.
WEIR_MUST_USE weir_status_t* weir_job_bind_version(weir_job_t* job, weir_version_t* version,
                                                   weir_view_t signature);
void weir_job_clear(weir_job_t* job);  // releases all; the job is as new

// INVALID_ARGUMENT names the input and those that there are.
WEIR_MUST_USE weir_status_t* weir_job_find_input(const weir_job_t* job, weir_view_t name,
                                                 const weir_model_port_t** out_port);
// INVALID_ARGUMENT when it is there already; |take_tensor| is released then.
WEIR_MUST_USE weir_status_t* weir_job_add_input(weir_job_t* job, const weir_model_port_t* port,
                                                weir_tensor_t* take_tensor);
// From now on only the outputs so named are asked for.
WEIR_MUST_USE weir_status_t* weir_job_only_output(weir_job_t* job, weir_view_t name);
// The output named |name|, or NULL.
weir_tensor_t* weir_job_output(const weir_job_t* job, const char* name);

// Runs it, joined with others where that is asked for, and calls done: before it returns, or later.
void weir_job_start(weir_job_t* job);
// Runs it now, alone. done is not called.
WEIR_MUST_USE weir_status_t* weir_job_run(weir_job_t* job);
// Milliseconds that are left of the deadline: 0 for no deadline. DEADLINE_EXCEEDED when it passed.
WEIR_MUST_USE weir_status_t* weir_job_time_left(const weir_job_t* job, int64_t* out_ms);

#endif  // WEIR_SERVING_JOB_H_

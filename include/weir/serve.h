// serve.h — Serving models: a process that answers TensorFlow Serving's REST and gRPC APIs.
//
//   const char* models[] = {"mnist=exported/mnist"};
//   weir_serve_t* serve = NULL;
//   check(weir_serve_create(&(weir_serve_options_t){.models = models, .model_count = 1}, &serve));
//   weir_serve_wait(serve, -1);
//   weir_serve_destroy(serve, 5000);
//
// Threading: thread-safe. In a build without the cluster weir_serve_create says UNIMPLEMENTED.
#ifndef WEIR_SERVE_H_
#define WEIR_SERVE_H_

#include <stdbool.h>
#include <stdint.h>

#include "weir/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_serve_t weir_serve_t;

// Every zero is the default. Strings are borrowed until the function returns.
typedef struct weir_serve_options_t {
  // "NAME=DIR", or "DIR", whose last part is the name. DIR has a folder for each version, named by
  // its number; or is a model itself, which then is version 1.
  const char* const* models;
  int model_count;
  // "[MODEL/]LABEL=VERSION": names that clients may ask for versions by.
  const char* const* labels;
  int label_count;
  int keep_versions;  // so many of the newest versions serve; 0: one; negative: all
  int poll_ms;        // how often folders are looked at; 0: each second; negative: never
  bool warm_up;       // without recorded requests: each signature runs once on zeros

  const char* bind;      // host to listen on; NULL: 127.0.0.1. "0.0.0.0": every interface
  int port;              // gRPC; 0: 8500; negative: any that is free
  int rest_port;         // HTTP; 0: 8501; negative: any that is free
  const char* tls_cert;  // PEM files; a certificate turns TLS on, for both
  const char* tls_key;
  const char* tls_ca;
  bool is_tls_mutual;      // clients must have a certificate signed by tls_ca
  const char* token_file;  // a file with a secret that every request must bear; NULL: none

  int threads;             // of each model's kernels; 0: one a CPU
  int max_batch;           // rows that requests are joined up to; below 2: they are not joined
  int batch_timeout_us;    // so long the first request of a batch waits for others
  uint64_t max_body_size;  // bytes of a request; 0: 128 MiB
  int max_requests;        // at a time; more are refused. 0: 1000
  int max_connections;     // of each API; 0: 1000
  int request_timeout_ms;  // 0: none, but gRPC's own deadlines
} weir_serve_options_t;

// Loads the models, then listens. NOT_FOUND, or what a model's load says: it has no version that
// serves. UNAVAILABLE: cannot listen there.
WEIR_API WEIR_MUST_USE weir_status_t* weir_serve_create(const weir_serve_options_t* options,
                                                        weir_serve_t** out_serve);
WEIR_API int weir_serve_port(const weir_serve_t* serve);       // of gRPC
WEIR_API int weir_serve_rest_port(const weir_serve_t* serve);  // of HTTP
// Waits for weir_serve_stop, for up to |timeout_ms| (negative: for ever); whether it was called.
WEIR_API bool weir_serve_wait(weir_serve_t* serve, int timeout_ms);
WEIR_API void weir_serve_stop(weir_serve_t* serve);
// Takes no further requests, lets running ones end for up to |grace_ms|, and frees all. NULL is
// fine.
WEIR_API void weir_serve_destroy(weir_serve_t* serve, int grace_ms);

#ifdef __cplusplus
}
#endif
#endif  // WEIR_SERVE_H_

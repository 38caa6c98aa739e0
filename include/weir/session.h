// session.h — Sessions: run any part of a graph, many steps at once, on state that lives between
// steps.
//
// Threading: thread-safe; runs may overlap.
#ifndef WEIR_SESSION_H_
#define WEIR_SESSION_H_

#include "weir/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_session_t weir_session_t;

// Zero-initialise; every zero is the default.
typedef struct weir_session_options_t {
  // "grpc://host:port" or "grpc+tls://…": a master that runs the steps; NULL: this process does. A
  // step that needs a task which is gone is UNAVAILABLE; ABORTED if it, or the master, restarted
  // meanwhile, and the next step begins on a new session of the master.
  const char* target;
  // |target| only. Tasks that the steps may use, besides the master: "/job:ps,/job:worker/task:1";
  // others are neither waited for nor missed when they die. NULL: all of the cluster.
  const char* device_filters;
  int threads;  // in all, the caller included; 0: one a CPU; 1: no thread is ever started
  const char*
      disabled_passes;  // names separated by commas, "all" for none at all; NULL: every pass runs
  // Not with |target|: servers have theirs. What this process computes with: "cpu:2,guard:1" are
  // two CPUs and a guard device, which is for tests. NULL: one CPU. It is what TensorFlow has
  // device_count of ConfigProto for.
  const char* devices;
  // Where nodes go whose device nobody gave: "graph", the first device that can run them; "cost",
  // where the step is expected to end first, "cost:TRACE.json" by node times of a trace that
  // weir_session_run_traced gave; "random:7", anywhere, by the seed; or a device,
  // "/device:GUARD:0". NULL: "graph".
  const char* place;
  // For "cost": file with the rates of devices, as weir_session_describe_rates gives them, so that
  // the same graph is placed alike whenever and wherever. NULL: they are measured.
  const char* rates;
  // "bf16" or "half": products and convolutions of floats, and what is between them, compute in 16
  // bits, where there are kernels for it; variables, optimizers, sums and losses stay in float.
  // Gradients in half need a scaled loss. What TensorFlow has auto_mixed_precision of
  // RewriterConfig for. NULL: none.
  const char* mixed_precision;
  bool allow_soft_placement;  // a device the graph names but this process lacks becomes the CPU
  bool isolate_state;    // own variables and queues; default: shared by all sessions of the graph
  const char* tls_ca;    // "grpc+tls://" only. PEM file of whom to trust; NULL: the system's
  const char* tls_cert;  // own certificate and its key, for servers that ask for one; NULL: none
  const char* tls_key;
  // "grpc://" and "grpc+tls://": a file with the token that the server asks for; NULL: none.
  const char* token_file;
} weir_session_options_t;

WEIR_API WEIR_MUST_USE weir_status_t* weir_session_create(weir_graph_t* graph,
                                                          const weir_session_options_t* options,
                                                          weir_session_t** out_session);
WEIR_API weir_graph_t* weir_session_graph(const weir_session_t* session);  // borrowed
// Cancels running steps, waits for them, and frees the session. State is gone with the graph's last
// session.
WEIR_API void weir_session_destroy(weir_session_t* session);
// Cancels every step now running; they return CANCELLED. Later runs are not affected.
WEIR_API void weir_session_cancel(weir_session_t* session);
// Drops variables, queues and all other state of the named containers; none given: of all.
WEIR_API void weir_session_reset(weir_session_t* session, const char* const* containers, int count);

typedef struct weir_feed_t {
  weir_edge_t edge;       // any edge of the graph
  weir_tensor_t* tensor;  // borrowed for the call
} weir_feed_t;

// Cancellation of one call from another thread.
typedef struct weir_cancellation_t weir_cancellation_t;
WEIR_API WEIR_MUST_USE weir_status_t* weir_cancellation_create(
    weir_cancellation_t** out_cancellation);
WEIR_API void weir_cancellation_cancel(weir_cancellation_t* cancellation);
WEIR_API void weir_cancellation_destroy(weir_cancellation_t* cancellation);

typedef struct weir_run_options_t {
  int64_t timeout_ms;                 // 0: none. DEADLINE_EXCEEDED when it passes
  weir_cancellation_t* cancellation;  // NULL: none
  bool trace;                         // time every node
} weir_run_options_t;

// What one step feeds, fetches and runs. Zero-initialise.
typedef struct weir_step_spec_t {
  const weir_feed_t* feeds;
  int feed_count;
  const weir_edge_t* fetches;
  int fetch_count;
  weir_node_t* const* targets;
  int target_count;
} weir_step_spec_t;
// Array and count in one, for designated initialisers: {WEIR_FEEDS({x, tx}, {y, ty}),
// WEIR_FETCHES(loss)}.
#define WEIR_FEEDS(...)                        \
  .feeds = (const weir_feed_t[]){__VA_ARGS__}, \
  .feed_count = (int)(sizeof((const weir_feed_t[]){__VA_ARGS__}) / sizeof(weir_feed_t))
#define WEIR_FETCHES(...)                        \
  .fetches = (const weir_edge_t[]){__VA_ARGS__}, \
  .fetch_count = (int)(sizeof((const weir_edge_t[]){__VA_ARGS__}) / sizeof(weir_edge_t))
#define WEIR_TARGETS(...)                         \
  .targets = (weir_node_t* const[]){__VA_ARGS__}, \
  .target_count = (int)(sizeof((weir_node_t* const[]){__VA_ARGS__}) / sizeof(weir_node_t*))

// Runs one step. |results| gets fetch_count tensors, the caller's to release; none is set on
// failure.
WEIR_API WEIR_MUST_USE weir_status_t* weir_session_run(weir_session_t* session,
                                                       const weir_step_spec_t* spec,
                                                       weir_tensor_t** results);
// As run, with options. |out_metadata| (may be NULL): a serialised RunMetadata when traced;
// weir_buffer_free it.
WEIR_API WEIR_MUST_USE weir_status_t* weir_session_run_with(
    weir_session_t* session, const weir_step_spec_t* spec, const weir_run_options_t* options,
    weir_tensor_t** results, char** out_metadata, size_t* out_metadata_size);
// As run, and gives Chrome's trace JSON of the step, of a remote session by the clocks of its
// tasks; weir_buffer_free it.
WEIR_API WEIR_MUST_USE weir_status_t* weir_session_run_traced(weir_session_t* session,
                                                              const weir_step_spec_t* spec,
                                                              weir_tensor_t** results,
                                                              char** out_json);
// What a step would do, without running it.
typedef struct weir_describe_options_t {
  const char* trace;  // file with node times, as weir_session_run_traced gives them; NULL: by what
                      // ops compute, and how fast devices are
  // File with the rates of a cluster's tasks, on which nodes go instead of this process's devices:
  // lines as weir_session_describe_rates gives them, with full names of CPUs; NULL: none.
  const char* cluster;
  bool json;        // one object, else text
  bool with_nodes;  // each node with its device
} weir_describe_options_t;
// Where its nodes go, how long it should take, the bytes that cross between memories, and the
// critical path; weir_buffer_free it. |options| may be NULL. UNIMPLEMENTED for remote sessions.
WEIR_API WEIR_MUST_USE weir_status_t* weir_session_describe_step(
    weir_session_t* session, const weir_step_spec_t* spec, const weir_describe_options_t* options,
    char** out_text);
// How fast the devices are, as text; weir_buffer_free it. UNIMPLEMENTED for remote sessions.
WEIR_API WEIR_MUST_USE weir_status_t* weir_session_describe_rates(weir_session_t* session,
                                                                  char** out_text);
// Bytes that were in use at most on all devices with memory of their own; 0 for remote sessions.
WEIR_API int64_t weir_session_device_peak_bytes(const weir_session_t* session);
// The share of about the last second in which GPUs of the session were at work, for it or others, 0
// to 1; of several the mean. Negative: there is none, or it does not tell; for remote sessions,
// too.
WEIR_API double weir_session_device_busy(const weir_session_t* session);
// Runs |target| alone; fetches one scalar float.
WEIR_API WEIR_MUST_USE weir_status_t* weir_session_run_target(weir_session_t* session,
                                                              weir_node_t* target);
WEIR_API WEIR_MUST_USE weir_status_t* weir_session_fetch_float(weir_session_t* session,
                                                               weir_edge_t edge, float* out_value);

// ---- callables: a step prepared once, run often. Thread-safe. Feeds are given in the spec's
// order; its tensors are ignored.
typedef struct weir_callable_t weir_callable_t;
WEIR_API WEIR_MUST_USE weir_status_t* weir_callable_create(weir_session_t* session,
                                                           const weir_step_spec_t* spec,
                                                           weir_callable_t** out_callable);
WEIR_API void weir_callable_destroy(weir_callable_t* callable);
WEIR_API WEIR_MUST_USE weir_status_t* weir_callable_run(weir_callable_t* callable,
                                                        weir_tensor_t* const* feeds,
                                                        weir_tensor_t** results);
WEIR_API size_t
weir_callable_node_count(const weir_callable_t* callable);  // nodes that a step runs; 0 when remote

// ---- partial runs: feed and fetch one step piece by piece ----
typedef struct weir_partial_run_t weir_partial_run_t;
// |spec| names all feeds and fetches that will ever be used. It may outlive its session, whose end
// cancels what has not run.
WEIR_API WEIR_MUST_USE weir_status_t* weir_partial_run_create(weir_session_t* session,
                                                              const weir_step_spec_t* spec,
                                                              weir_partial_run_t** out_partial);
// Feeds and fetches some of them, each at most once.
WEIR_API WEIR_MUST_USE weir_status_t* weir_partial_run_continue(weir_partial_run_t* partial,
                                                                const weir_step_spec_t* spec,
                                                                weir_tensor_t** results);
WEIR_API void weir_partial_run_destroy(weir_partial_run_t* partial);  // cancels what has not run

#ifdef __cplusplus
}
#endif
#endif  // WEIR_SESSION_H_

// input.h — Input: records and Examples, batchers of tensors in memory, and pipelines of readers
// and queues whose threads a coordinator starts and stops. weir/dataset.h has pipelines without
// those.
//
//   weir_edge_t files = weir_string_input_producer(s, names, 2, .epochs = 1);
//   weir_edge_t record = weir_read_records(s, files).value, batch;
//   weir_batch(s, &record, 1, 32, &batch);
//   weir_queue_runner_t runners[4];
//   int count = weir_queue_runners(s, runners, 4);          // before the scope is finished
//   …
//   check(weir_coordinator_create(&coordinator));
//   for (int i = 0; i < count; ++i) check(weir_queue_runner_start(&runners[i], session,
//   coordinator)); …                                                       // steps, until
//   OUT_OF_RANGE weir_coordinator_request_stop(coordinator, NULL);
//   check(weir_coordinator_join(coordinator, 10000));
#ifndef WEIR_INPUT_H_
#define WEIR_INPUT_H_

#include "weir/attrs.h"
#include "weir/scope.h"
#include "weir/session.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- coordinators: threads that stop together. Thread-safe. ----
typedef struct weir_coordinator_t weir_coordinator_t;
WEIR_API WEIR_MUST_USE weir_status_t* weir_coordinator_create(weir_coordinator_t** out_coordinator);
// Requests a stop and waits for the threads, however long they take. Errors are lost: join first.
WEIR_API void weir_coordinator_destroy(weir_coordinator_t* coordinator);
// Asks all threads to stop, because of |take_status| or, when it is NULL, because all is done. Of
// several errors the first counts; OUT_OF_RANGE, the end of the data, is none.
WEIR_API void weir_coordinator_request_stop(weir_coordinator_t* coordinator,
                                            weir_status_t* take_status);
WEIR_API bool weir_coordinator_should_stop(weir_coordinator_t* coordinator);
// Sleeps until a stop is requested or |timeout_ms| are over; returns whether one was.
WEIR_API bool weir_coordinator_wait(weir_coordinator_t* coordinator, int64_t timeout_ms);
// Runs |fn| on a new thread. An error that it returns requests a stop.
typedef weir_status_t* (*weir_thread_fn_t)(weir_coordinator_t* coordinator, void* arg);
WEIR_API WEIR_MUST_USE weir_status_t* weir_coordinator_start(weir_coordinator_t* coordinator,
                                                             weir_thread_fn_t fn, void* arg);
// Waits until every thread has ended, and returns the error that stopped them. DEADLINE_EXCEEDED
// when some still run |grace_ms| after the stop was requested; -1: waits for ever.
WEIR_API WEIR_MUST_USE weir_status_t* weir_coordinator_join(weir_coordinator_t* coordinator,
                                                            int64_t grace_ms);

// ---- queue runners: threads that keep a queue filled ----
typedef struct weir_queue_runner_t {
  weir_node_t* enqueue;  // what each thread runs again and again
  weir_node_t* close;    // run once when the last thread found the end of the data
  weir_node_t* cancel;   // run once when a stop is requested: closes, and wakes who is enqueueing
  int threads;           // 0: 1
  int runs;              // of |enqueue| by all threads together; 0: no limit
} weir_queue_runner_t;
// A runner that feeds |queue|, remembered by the root scope.
WEIR_API void weir_queue_runner_add(weir_scope_t* scope, weir_edge_t queue, weir_node_t* enqueue,
                                    int threads, int runs);
// Copies up to |capacity| of the scope's runners, and returns how many there are.
WEIR_API int weir_queue_runners(weir_scope_t* scope, weir_queue_runner_t* out_runners,
                                int capacity);
// Starts the threads. They end at OUT_OF_RANGE, at the coordinator's stop, or by an error, which
// stops the coordinator. |session| must outlive them.
WEIR_API WEIR_MUST_USE weir_status_t* weir_queue_runner_start(const weir_queue_runner_t* runner,
                                                              weir_session_t* session,
                                                              weir_coordinator_t* coordinator);

// ---- pipelines ----
typedef struct weir_producer_options_t {
  int reserved;
  int epochs;       // how often each string comes; 0: for ever
  bool no_shuffle;  // every epoch has its own order otherwise
  int64_t seed;     // of that order; 0: any
  int capacity;     // of the queue; 0: 32
} weir_producer_options_t;
// A queue (its handle) of the strings, such as names of files, with a runner.
WEIR_API weir_edge_t weir_string_input_producer_with(weir_scope_t* scope,
                                                     const char* const* strings, int count,
                                                     const weir_producer_options_t* options);
#define weir_string_input_producer(scope, strings, count, ...) \
  weir_string_input_producer_with(scope, strings, count,       \
                                  &(const weir_producer_options_t){0, __VA_ARGS__})

typedef struct weir_record_edges_t {
  weir_edge_t key;    // "file:offset"
  weir_edge_t value;  // the record
} weir_record_edges_t;
// The next record of the TFRecord files that |files|, a queue of their names, holds.
WEIR_API weir_record_edges_t weir_read_records(weir_scope_t* scope, weir_edge_t files);

typedef struct weir_batch_options_t {
  int reserved;
  int threads;                     // that fill the queue; 0: 1
  int capacity;                    // of the queue, in examples; 0: min_after_dequeue + 3 batches
  bool enqueue_many;               // each tensor is several examples already
  bool allow_smaller_final_batch;  // otherwise what is left at the end is dropped
  bool dynamic_pad;                // weir_batch: unknown dimensions are padded with zeros
  int min_after_dequeue;           // weir_shuffle_batch: to choose from, at least; 0: 10 batches
  int64_t seed;                    // weir_shuffle_batch: 0: any
} weir_batch_options_t;
// Makes |out_batches| from |tensors|, examples of one kind, by a queue with a runner. Shapes must
// be known (dynamic_pad: ranks).
WEIR_API void weir_batch_with(weir_scope_t* scope, const weir_edge_t* tensors, int count,
                              int batch_size, weir_edge_t* out_batches,
                              const weir_batch_options_t* options);
#define weir_batch(scope, tensors, count, batch_size, out_batches, ...) \
  weir_batch_with(scope, tensors, count, batch_size, out_batches,       \
                  &(const weir_batch_options_t){0, __VA_ARGS__})
// The same in random order.
WEIR_API void weir_shuffle_batch_with(weir_scope_t* scope, const weir_edge_t* tensors, int count,
                                      int batch_size, weir_edge_t* out_batches,
                                      const weir_batch_options_t* options);
#define weir_shuffle_batch(scope, tensors, count, batch_size, out_batches, ...) \
  weir_shuffle_batch_with(scope, tensors, count, batch_size, out_batches,       \
                          &(const weir_batch_options_t){0, __VA_ARGS__})

typedef struct weir_dense_feature_t {
  const char* name;
  weir_dtype_t dtype;         // FLOAT, INT64 or STRING
  weir_dims_t shape;          // of one example, known; left out: a scalar
  weir_edge_t default_value;  // for examples without it; no node: an error
} weir_dense_feature_t;
// Reads serialised Examples, a vector of strings, into one tensor a feature: [batch, shape…].
WEIR_API void weir_parse_dense(weir_scope_t* scope, weir_edge_t serialized,
                               const weir_dense_feature_t* features, int count,
                               weir_edge_t* out_values);

// ---- records ----
// A TFRecord file. Thread-compatible.
typedef struct weir_record_writer_t weir_record_writer_t;
WEIR_API WEIR_MUST_USE weir_status_t* weir_record_writer_create(const char* path,
                                                                weir_record_writer_t** out_writer);
WEIR_API WEIR_MUST_USE weir_status_t* weir_record_writer_write(weir_record_writer_t* writer,
                                                               const void* data, size_t size);
WEIR_API WEIR_MUST_USE weir_status_t* weir_record_writer_flush(weir_record_writer_t* writer);
// Flushes and frees, also on error. NULL is fine.
WEIR_API WEIR_MUST_USE weir_status_t* weir_record_writer_close(weir_record_writer_t* take_writer);

// An Example: features by name. Out of memory shows when it is written. Thread-compatible.
typedef struct weir_example_t weir_example_t;
WEIR_API WEIR_MUST_USE weir_status_t* weir_example_create(weir_example_t** out_example);
WEIR_API void weir_example_destroy(weir_example_t* example);
WEIR_API void weir_example_clear(weir_example_t* example);  // to use it again
WEIR_API void weir_example_floats(weir_example_t* example, const char* name, const float* values,
                                  int64_t count);
WEIR_API void weir_example_ints(weir_example_t* example, const char* name, const int64_t* values,
                                int64_t count);
WEIR_API void weir_example_bytes(weir_example_t* example, const char* name, const void* data,
                                 size_t size);
// Writes it as one record.
WEIR_API WEIR_MUST_USE weir_status_t* weir_example_write(const weir_example_t* example,
                                                         weir_record_writer_t* writer);

// ---- batchers: tensors in memory by batches of rows, in a new order every epoch.
// Thread-compatible. ----
typedef struct weir_batcher_t weir_batcher_t;
typedef struct weir_batcher_options_t {
  int reserved;
  int batch_size;       // 0: 32
  bool no_shuffle;      // rows come in order, as views that copy nothing
  uint64_t seed;        // of the orders: the same gives the same
  int epochs;           // 0: for ever
  bool drop_remainder;  // no smaller batch at the end of an epoch
} weir_batcher_options_t;
// |tensors| (retained) have the same number of rows, at least one batch of them when the remainder
// is dropped. INVALID_ARGUMENT says what does not fit.
WEIR_API WEIR_MUST_USE weir_status_t* weir_batcher_create_with(
    weir_tensor_t* const* tensors, int count, const weir_batcher_options_t* options,
    weir_batcher_t** out_batcher);
#define weir_batcher_create(tensors, count, out_batcher, ...)                               \
  weir_batcher_create_with(tensors, count, &(const weir_batcher_options_t){0, __VA_ARGS__}, \
                           out_batcher)
WEIR_API void weir_batcher_destroy(weir_batcher_t* batcher);
// The next batch: one tensor each, the caller's to release. OUT_OF_RANGE after the last epoch.
WEIR_API WEIR_MUST_USE weir_status_t* weir_batcher_next(weir_batcher_t* batcher,
                                                        weir_tensor_t** out_tensors);
WEIR_API int weir_batcher_tensor_count(const weir_batcher_t* batcher);
WEIR_API int64_t weir_batcher_batch_count(const weir_batcher_t* batcher);  // of one epoch
WEIR_API int64_t weir_batcher_epoch(const weir_batcher_t* batcher);        // finished so far
// Goes to batch |index|, counted over all epochs: where a resumed run goes on.
WEIR_API void weir_batcher_seek(weir_batcher_t* batcher, int64_t index);

#ifdef __cplusplus
}
#endif
#endif  // WEIR_INPUT_H_

// dataset.h — Datasets: input pipelines as parts of the graph, as tf.data builds them.
//
//   static void parse(weir_scope_t* s, const weir_edge_t* element, weir_edge_t* results, void*
//   user);
//
//   weir_dataset_t d = weir_dataset_records(s, weir_const_strings(s, names, 2));
//   d = weir_dataset_repeat(s, weir_dataset_shuffle(s, d, 1000), -1);
//   d = weir_dataset_map(s, d, parse, NULL, 2, .parallel = WEIR_AUTOTUNE);
//   d = weir_dataset_prefetch(s, weir_dataset_batch(s, d, 32), 2);
//   weir_dataset_iterator_t it = weir_dataset_iterator(s, d);
//   weir_edge_t batch[2];
//   weir_dataset_get_next(s, it, batch);          // images and labels, for the model
//   …
//   check(weir_fit(session, step, loss, NULL, .init = init, .start = it.initializer));
//
// A dataset is a value that says how elements are made; nothing runs before an iterator walks over
// it. An element is some tensors, of which type and shape are known as far as they can be. Work
// ahead of the steps is done by threads of the runtime, which end with the session.
//
// Errors stick in the scope, and what follows does nothing, as everywhere: a dataset without a node
// is INVALID_ARGUMENT. Datasets are valid as long as their root scope. See docs/datasets.md.
#ifndef WEIR_DATASET_H_
#define WEIR_DATASET_H_

#include "weir/function.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_dataset_t {
  weir_edge_t variant;  // what dataset ops of weir/ops.h take; no node after an error
  weir_spec_t element;  // types and shapes of an element's tensors
} weir_dataset_t;

// How many at a time, or how far ahead: the runtime chooses.
enum { WEIR_AUTOTUNE = -1 };

// ---- sources ----
// int64 scalars from |start| to |stop|, without that. |step| is not 0.
WEIR_API weir_dataset_t weir_dataset_range(weir_scope_t* scope, int64_t start, int64_t stop,
                                           int64_t step);
// One element: |tensors|.
WEIR_API weir_dataset_t weir_dataset_tensors(weir_scope_t* scope, const weir_edge_t* tensors,
                                             int count);
// An element for each row of |tensors|, which all have as many.
WEIR_API weir_dataset_t weir_dataset_slices(weir_scope_t* scope, const weir_edge_t* tensors,
                                            int count);

typedef struct weir_files_options_t {
  int reserved;
  const char* compression;  // "GZIP" or "ZLIB"; NULL: none
  int64_t buffer_size;      // bytes read at a time; 0: 256 KiB
  int64_t header_bytes;     // weir_dataset_fixed_length: left out before the first record
  int64_t footer_bytes;     // weir_dataset_fixed_length: left out after the last
} weir_files_options_t;
// The records of TFRecord files: string scalars. |files| is a string, or a vector of them.
WEIR_API weir_dataset_t weir_dataset_records_with(weir_scope_t* scope, weir_edge_t files,
                                                  const weir_files_options_t* options);
#define weir_dataset_records(scope, files, ...) \
  weir_dataset_records_with(scope, files, &(const weir_files_options_t){0, __VA_ARGS__})
// The lines of text files, without their ends.
WEIR_API weir_dataset_t weir_dataset_lines_with(weir_scope_t* scope, weir_edge_t files,
                                                const weir_files_options_t* options);
#define weir_dataset_lines(scope, files, ...) \
  weir_dataset_lines_with(scope, files, &(const weir_files_options_t){0, __VA_ARGS__})
// Records of |record_bytes| each.
WEIR_API weir_dataset_t weir_dataset_fixed_length_with(weir_scope_t* scope, weir_edge_t files,
                                                       int64_t record_bytes,
                                                       const weir_files_options_t* options);
#define weir_dataset_fixed_length(scope, files, record_bytes, ...) \
  weir_dataset_fixed_length_with(scope, files, record_bytes,       \
                                 &(const weir_files_options_t){0, __VA_ARGS__})

typedef struct weir_shuffle_options_t {
  int reserved;
  int64_t seed;     // 0: the scope's, or any
  bool is_same;     // every walk has the same order; otherwise each its own
  bool no_shuffle;  // weir_dataset_files: names come in their order
} weir_shuffle_options_t;
// The names of files that match |patterns|, such as "data/*.tfrecord", a string or a vector of
// them. Matched when the iterator starts.
WEIR_API weir_dataset_t weir_dataset_files_with(weir_scope_t* scope, weir_edge_t patterns,
                                                const weir_shuffle_options_t* options);
#define weir_dataset_files(scope, patterns, ...) \
  weir_dataset_files_with(scope, patterns, &(const weir_shuffle_options_t){0, __VA_ARGS__})

// ---- functions on elements ----
typedef struct weir_map_options_t {
  int reserved;
  int64_t parallel;   // calls at a time; 0: one after another; WEIR_AUTOTUNE: one a CPU
  bool is_any_order;  // what is ready first comes first
} weir_map_options_t;
// What |fn| makes of each element: |result_count| tensors.
WEIR_API weir_dataset_t weir_dataset_map_with(weir_scope_t* scope, weir_dataset_t dataset,
                                              weir_function_fn_t fn, void* user, int result_count,
                                              const weir_map_options_t* options);
#define weir_dataset_map(scope, dataset, fn, user, result_count, ...) \
  weir_dataset_map_with(scope, dataset, fn, user, result_count,       \
                        &(const weir_map_options_t){0, __VA_ARGS__})
// The elements for which |fn| returns true, a bool scalar.
typedef weir_edge_t (*weir_filter_fn_t)(weir_scope_t* scope, const weir_edge_t* element,
                                        void* user);
WEIR_API weir_dataset_t weir_dataset_filter(weir_scope_t* scope, weir_dataset_t dataset,
                                            weir_filter_fn_t fn, void* user);

// A dataset for one element of another: built on |scope|, inside a function.
typedef weir_dataset_t (*weir_flat_map_fn_t)(weir_scope_t* scope, const weir_edge_t* element,
                                             void* user);
// The elements of the datasets that |fn| makes of each element, one dataset after another.
WEIR_API weir_dataset_t weir_dataset_flat_map(weir_scope_t* scope, weir_dataset_t dataset,
                                              weir_flat_map_fn_t fn, void* user);
typedef struct weir_interleave_options_t {
  int reserved;
  int64_t cycle_length;  // datasets that take turns; 0: one a CPU
  int64_t block_length;  // elements a turn; 0: 1
  int64_t parallel;      // datasets read at a time, at most |cycle_length|; 0: one after another
  bool is_any_order;     // of parallel ones: what is ready first comes first
} weir_interleave_options_t;
// The same with several datasets in turn.
WEIR_API weir_dataset_t weir_dataset_interleave_with(weir_scope_t* scope, weir_dataset_t dataset,
                                                     weir_flat_map_fn_t fn, void* user,
                                                     const weir_interleave_options_t* options);
#define weir_dataset_interleave(scope, dataset, fn, user, ...) \
  weir_dataset_interleave_with(scope, dataset, fn, user,       \
                               &(const weir_interleave_options_t){0, __VA_ARGS__})

// ---- batches ----
typedef struct weir_dataset_batch_options_t {
  int reserved;
  bool drop_remainder;  // no smaller batch at the end: the batch's size is part of the shape
  // weir_dataset_padded_batch: what each tensor is filled up to, -1 for the largest of the batch;
  // a shape that is not set, or missing: the element's.
  weir_shapes_t shapes;
  // What it is filled up with, one scalar a tensor; NULL: zeros, and empty strings.
  const weir_edge_t* values;
  int value_count;
} weir_dataset_batch_options_t;
// |size| elements stacked, which have the same shapes.
WEIR_API weir_dataset_t weir_dataset_batch_with(weir_scope_t* scope, weir_dataset_t dataset,
                                                int64_t size,
                                                const weir_dataset_batch_options_t* options);
#define weir_dataset_batch(scope, dataset, size, ...) \
  weir_dataset_batch_with(scope, dataset, size,       \
                          &(const weir_dataset_batch_options_t){0, __VA_ARGS__})
// The same of elements whose shapes differ in size but not in rank.
WEIR_API weir_dataset_t weir_dataset_padded_batch_with(weir_scope_t* scope, weir_dataset_t dataset,
                                                       int64_t size,
                                                       const weir_dataset_batch_options_t* options);
#define weir_dataset_padded_batch(scope, dataset, size, ...) \
  weir_dataset_padded_batch_with(scope, dataset, size,       \
                                 &(const weir_dataset_batch_options_t){0, __VA_ARGS__})

// ---- which elements, and in which order ----
// Each element is drawn from the next |buffer_size| ones.
WEIR_API weir_dataset_t weir_dataset_shuffle_with(weir_scope_t* scope, weir_dataset_t dataset,
                                                  int64_t buffer_size,
                                                  const weir_shuffle_options_t* options);
#define weir_dataset_shuffle(scope, dataset, buffer_size, ...) \
  weir_dataset_shuffle_with(scope, dataset, buffer_size,       \
                            &(const weir_shuffle_options_t){0, __VA_ARGS__})
// |count| times the dataset; -1: for ever.
WEIR_API weir_dataset_t weir_dataset_repeat(weir_scope_t* scope, weir_dataset_t dataset,
                                            int64_t count);
// The first |count| elements, or all but those; -1: all of them.
WEIR_API weir_dataset_t weir_dataset_take(weir_scope_t* scope, weir_dataset_t dataset,
                                          int64_t count);
WEIR_API weir_dataset_t weir_dataset_skip(weir_scope_t* scope, weir_dataset_t dataset,
                                          int64_t count);
// Elements |index|, |index| + |shard_count| and so on: what one of |shard_count| workers reads.
WEIR_API weir_dataset_t weir_dataset_shard(weir_scope_t* scope, weir_dataset_t dataset,
                                           int64_t shard_count, int64_t index);
// The tensors of one element of each dataset, until one ends.
WEIR_API weir_dataset_t weir_dataset_zip(weir_scope_t* scope, const weir_dataset_t* datasets,
                                         int count);
// The elements of |first|, then those of |second|, which have the same types.
WEIR_API weir_dataset_t weir_dataset_concatenate(weir_scope_t* scope, weir_dataset_t first,
                                                 weir_dataset_t second);

// ---- time and memory ----
// Elements are made once, and then kept in memory, or in files whose names begin with |prefix|
// (NULL or "": memory).
WEIR_API weir_dataset_t weir_dataset_cache(weir_scope_t* scope, weir_dataset_t dataset,
                                           const char* prefix);
// Up to |count| elements are made ahead, while steps run. 0: none.
WEIR_API weir_dataset_t weir_dataset_prefetch(weir_scope_t* scope, weir_dataset_t dataset,
                                              int64_t count);

// ---- iterators ----
typedef struct weir_dataset_iterator_t {
  weir_edge_t handle;        // no node after an error
  weir_node_t* initializer;  // starts a walk, or starts anew; NULL: it starts by itself, once
  weir_spec_t element;
} weir_dataset_iterator_t;
// A walk that begins when its initializer runs, with the values that what the dataset is made from
// has then. FAILED_PRECONDITION in steps before.
WEIR_API weir_dataset_iterator_t weir_dataset_iterator(weir_scope_t* scope, weir_dataset_t dataset);
// A walk that begins with the first step, once a session. The dataset depends on nothing that is
// fed and on no variable: it becomes a function.
WEIR_API weir_dataset_iterator_t weir_dataset_one_shot(weir_scope_t* scope, weir_dataset_t dataset);
// A node that makes |iterator| walk over another dataset, of the same types: training and test data
// in turn. The iterator's shapes are those of its first dataset.
WEIR_API weir_node_t* weir_dataset_restart(weir_scope_t* scope, weir_dataset_iterator_t iterator,
                                           weir_dataset_t dataset);
// The next element: one edge a tensor of it, as many as iterator.element has types. OUT_OF_RANGE in
// the step after the last one. All that a step takes of one element comes from one call.
WEIR_API void weir_dataset_get_next(weir_scope_t* scope, weir_dataset_iterator_t iterator,
                                    weir_edge_t* out_values);

#ifdef __cplusplus
}
#endif
#endif  // WEIR_DATASET_H_

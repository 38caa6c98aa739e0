// ctc.h — Connectionist temporal classification: the loss of label sequences that say nothing about
// when each label is, and beam search for the likeliest ones. Thread-safe.
//
// Logits are [time, batch, classes]; of every sequence of the batch the first |lengths| steps
// count.
#ifndef WEIR_KERNEL_NN_CTC_H_
#define WEIR_KERNEL_NN_CTC_H_

#include "base/thread.h"
#include "weir/dtype.h"

typedef struct weir_ctc_input_t {
  const void* logits;  // float or double
  const int32_t* lengths;
  int64_t time;
  int64_t batch;
  int64_t classes;
} weir_ctc_input_t;

// The labels of the whole batch, one sequence after the other: those of sequence b are from
// |begins|[b] up to |ends|[b]. A label is a class other than the last one, which is the blank.
typedef struct weir_ctc_labels_t {
  const int32_t* values;
  const int64_t* begins;
  const int64_t* ends;
  const bool* is_skipped;  // of sequence b: its loss and gradient are 0
  bool merges_repeated;    // equal labels without a blank between them are one
} weir_ctc_labels_t;

// Writes loss [batch] and gradient, of the shape of the logits. RESOURCE_EXHAUSTED.
WEIR_MUST_USE weir_status_t* weir_ctc_loss(weir_pool_t* pool, weir_dtype_t dtype,
                                           const weir_ctc_input_t* in,
                                           const weir_ctc_labels_t* labels, void* loss,
                                           void* gradient);

// A decoded sequence.
typedef struct weir_ctc_path_t {
  int32_t* labels;  // owned by whoever holds the path
  int64_t count;
} weir_ctc_path_t;

// The |top_paths| likeliest sequences that a search over |beam_width| of them finds, best first:
// paths[b * top_paths + i] with the logarithm of its probability, |log_probs|, of the same order.
// Paths are zeroed before, and to be freed by the caller also after an error. INVALID_ARGUMENT when
// there are fewer of them.
typedef struct weir_ctc_search_t {
  int64_t beam_width;
  int64_t top_paths;
  bool merges_repeated;  // in what is returned
} weir_ctc_search_t;
WEIR_MUST_USE weir_status_t* weir_ctc_beam_search(weir_pool_t* pool, weir_dtype_t dtype,
                                                  const weir_ctc_input_t* in,
                                                  const weir_ctc_search_t* search,
                                                  weir_ctc_path_t* paths, void* log_probs);

#endif  // WEIR_KERNEL_NN_CTC_H_

// summary.h — Summaries: the Summary messages that summary ops give out and event files hold.
#ifndef WEIR_FILE_SUMMARY_H_
#define WEIR_FILE_SUMMARY_H_

#include "base/string.h"
#include "tensor/tensor.h"

// Each appends one Summary.Value to a Summary being built; |out|'s failure is sticky.
void weir_summary_put_scalar(weir_strbuf_t* out, weir_view_t tag, float value);

// ---- histograms, in TensorFlow's buckets: limits grow by a tenth from 1e-12 to 1e20, on both
// sides ----

#define WEIR_HISTOGRAM_BUCKETS 1551

// Thread-compatible. Make with weir_histogram_init.
typedef struct weir_histogram_t {
  double min;
  double max;
  double count;
  double sum;
  double sum_squares;
  double buckets[WEIR_HISTOGRAM_BUCKETS];
} weir_histogram_t;

void weir_histogram_init(weir_histogram_t* histogram);
void weir_histogram_add(weir_histogram_t* histogram, double value);  // finite
void weir_summary_put_histogram(weir_strbuf_t* out, weir_view_t tag,
                                const weir_histogram_t* histogram);

// A tensor under |tag| or, where that is empty, |node_name|; |metadata| is a SummaryMetadata
// message and left out when its data is NULL.
WEIR_MUST_USE weir_status_t* weir_summary_put_tensor(weir_strbuf_t* out, weir_view_t tag,
                                                     weir_view_t node_name,
                                                     const weir_tensor_t* tensor,
                                                     weir_view_t metadata);

#endif  // WEIR_FILE_SUMMARY_H_

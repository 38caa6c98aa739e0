// summary.c — Summaries of scalars, histograms and tensors.
#include "file/summary.h"

#include <float.h>
#include <math.h>
#include <pthread.h>

#include "tensor/tensor_proto.h"
#include "wire/wire.h"

// Summary {1: value}; Summary.Value {1: tag, 2: simple_value, 5: histo, 7: node_name, 8: tensor,
// 9: metadata}; HistogramProto {1: min, 2: max, 3: num, 4: sum, 5: sum_squares, 6: bucket_limit,
// 7: bucket}.

void weir_summary_put_scalar(weir_strbuf_t* out, weir_view_t tag, float value) {
  size_t begin = weir_wire_begin(out, 1);
  if (tag.size > 0) weir_wire_put_bytes(out, 1, tag.data, tag.size);
  weir_wire_put_float(out, 2, value);
  weir_wire_end(out, begin);
}

// ---- histograms ----

static double limits[WEIR_HISTOGRAM_BUCKETS];
static pthread_once_t limits_once = PTHREAD_ONCE_INIT;

// The products are taken one after the other, so that the limits agree with TensorFlow's to the
// bit.
static void make_limits(void) {
  enum { kZero = WEIR_HISTOGRAM_BUCKETS / 2 };
  int i = 1;
  for (double v = 1.0e-12; v < 1.0e20; v *= 1.1, ++i) {
    WEIR_CHECK(i < kZero);
    limits[kZero + i] = v;
    limits[kZero - i] = -v;
  }
  WEIR_CHECK(i == kZero);
  limits[kZero] = 0;
  limits[2 * kZero] = DBL_MAX;
  limits[0] = -DBL_MAX;
}

void weir_histogram_init(weir_histogram_t* histogram) {
  pthread_once(&limits_once, make_limits);
  memset(histogram, 0, sizeof *histogram);
  histogram->min = DBL_MAX;
  histogram->max = -DBL_MAX;
}

// The first bucket whose limit is greater than |value|; the last one takes DBL_MAX itself.
static size_t find_bucket(double value) {
  size_t low = 0;
  size_t high = WEIR_HISTOGRAM_BUCKETS - 1;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (limits[middle] > value) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

// TensorFlow's build rounds the square and the sum once where the instruction set always has a
// fused multiply-add, and twice elsewhere; so the bytes of a summary are its own.
static double add_square(double sum, double value) {
#ifdef __aarch64__
  return fma(value, value, sum);
#else
  return sum + value * value;
#endif
}

void weir_histogram_add(weir_histogram_t* histogram, double value) {
  histogram->buckets[find_bucket(value)] += 1;
  if (value < histogram->min) histogram->min = value;
  if (value > histogram->max) histogram->max = value;
  histogram->count += 1;
  histogram->sum += value;
  histogram->sum_squares = add_square(histogram->sum_squares, value);
}

// Runs of empty buckets are written as one.
static void put_buckets(const weir_histogram_t* histogram, bool counts, weir_strbuf_t* out) {
  size_t begin = weir_wire_begin(out, counts ? 7 : 6);
  for (size_t i = 0; i < WEIR_HISTOGRAM_BUCKETS; ++i) {
    double count = histogram->buckets[i];
    bool next_is_empty = i + 1 < WEIR_HISTOGRAM_BUCKETS && histogram->buckets[i + 1] <= 0;
    if (count <= 0 && next_is_empty) continue;
    double value = counts ? count : limits[i];
    weir_strbuf_append(out, &value, sizeof value);
  }
  weir_wire_end(out, begin);
}

static void put_field(weir_strbuf_t* out, uint32_t field, double value) {
  if (value != 0) weir_wire_put_double(out, field, value);
}

void weir_summary_put_histogram(weir_strbuf_t* out, weir_view_t tag,
                                const weir_histogram_t* histogram) {
  size_t begin = weir_wire_begin(out, 1);
  if (tag.size > 0) weir_wire_put_bytes(out, 1, tag.data, tag.size);
  size_t body = weir_wire_begin(out, 5);
  put_field(out, 1, histogram->min);
  put_field(out, 2, histogram->max);
  put_field(out, 3, histogram->count);
  put_field(out, 4, histogram->sum);
  put_field(out, 5, histogram->sum_squares);
  put_buckets(histogram, false, out);
  put_buckets(histogram, true, out);
  weir_wire_end(out, body);
  weir_wire_end(out, begin);
}

// ---- tensors ----

weir_status_t* weir_summary_put_tensor(weir_strbuf_t* out, weir_view_t tag, weir_view_t node_name,
                                       const weir_tensor_t* tensor, weir_view_t metadata) {
  size_t begin = weir_wire_begin(out, 1);
  if (tag.size > 0) weir_wire_put_bytes(out, 1, tag.data, tag.size);
  if (node_name.size > 0) weir_wire_put_bytes(out, 7, node_name.data, node_name.size);
  size_t body = weir_wire_begin(out, 8);
  WEIR_TRY(weir_tensor_write(tensor, out));
  weir_wire_end(out, body);
  if (metadata.data) weir_wire_put_bytes(out, 9, metadata.data, metadata.size);
  weir_wire_end(out, begin);
  return weir_strbuf_finish(out);
}

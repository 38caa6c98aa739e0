// counts.c — Counters by model, API and method; TensorFlow Serving's names beside our own.
#include "serving/counts.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "serving/batch.h"

enum { CODE_COUNT = WEIR_UNAUTHENTICATED + 1 };
// Upper bounds of the histograms, in microseconds; above them one more bucket.
static const int bounds_us[] = {50,    100,   250,   500,    1000,   2500,   5000,
                                10000, 25000, 50000, 100000, 250000, 500000, 1000000};
enum { BOUND_COUNT = WEIR_COUNT_OF(bounds_us) };

typedef struct histogram_t {
  atomic_llong buckets[BOUND_COUNT + 1];
  atomic_llong sum_ns;
} histogram_t;

typedef struct row_t {
  atomic_llong codes[CODE_COUNT];
  histogram_t latency, run;
} row_t;

struct weir_counts_t {
  weir_catalog_t* catalog;
  int model_count;
  row_t rows[];  // by model, the last for unknown ones; API; method
};

static const char* const api_names[] = {"REST", "gRPC"};
static const char* const method_names[] = {"Predict", "Classify",    "Regress",
                                           "Infer",   "GetMetadata", "GetStatus"};

weir_status_t* weir_counts_create(weir_catalog_t* catalog, weir_counts_t** out_counts) {
  int models = weir_catalog_model_count(catalog);
  size_t rows = (size_t)(models + 1) * WEIR_API_COUNT * WEIR_METHOD_COUNT;
  weir_counts_t* counts = weir_calloc(1, sizeof(*counts) + rows * sizeof(counts->rows[0]));
  if (!counts) return weir_out_of_memory();
  counts->catalog = catalog;
  counts->model_count = models;
  *out_counts = counts;
  return NULL;
}

void weir_counts_destroy(weir_counts_t* counts) { weir_free(counts); }

static row_t* row_of(weir_counts_t* counts, int model, int api, int method) {
  return &counts->rows[(model * WEIR_API_COUNT + api) * WEIR_METHOD_COUNT + method];
}

// Nothing is ordered by these: each is read on its own.
static void add(atomic_llong* counter, int64_t amount) {
  atomic_fetch_add_explicit(counter, amount, memory_order_relaxed);
}
static long long value_of(atomic_llong* counter) {
  return atomic_load_explicit(counter, memory_order_relaxed);
}

static void add_time(histogram_t* histogram, int64_t ns) {
  int bucket = 0;
  while (bucket < BOUND_COUNT && ns > bounds_us[bucket] * INT64_C(1000)) ++bucket;
  add(&histogram->buckets[bucket], 1);
  add(&histogram->sum_ns, ns);
}

void weir_counts_add(weir_counts_t* counts, const weir_counted_t* counted) {
  int model = 0;
  while (model < counts->model_count &&
         !weir_view_is(counted->model, weir_catalog_model_name(counts->catalog, model)))
    ++model;
  row_t* row = row_of(counts, model, (int)counted->api, (int)counted->method);
  bool is_code = (unsigned)counted->code < CODE_COUNT;
  add(&row->codes[is_code ? counted->code : WEIR_UNKNOWN], 1);
  add_time(&row->latency, counted->duration_ns);
  if (counted->run_ns > 0) add_time(&row->run, counted->run_ns);
}

// ---- text ----

typedef void (*put_row_fn_t)(const char* labels, row_t* row, const char* name, weir_strbuf_t* out);

static void put_codes(const char* labels, row_t* row, const char* name, weir_strbuf_t* out) {
  for (int code = 0; code < CODE_COUNT; ++code) {
    long long count = value_of(&row->codes[code]);
    const char* text = code == WEIR_OK ? "OK" : weir_code_name((weir_code_t)code);
    if (count) weir_strbuf_printf(out, "%s{%s,status=\"%s\"} %lld\n", name, labels, text, count);
  }
}

static void put_histogram(const char* labels, histogram_t* histogram, const char* name,
                          double unit_us, weir_strbuf_t* out) {
  long long counts[BOUND_COUNT + 1], total = 0, below = 0;
  for (int i = 0; i <= BOUND_COUNT; ++i) total += counts[i] = value_of(&histogram->buckets[i]);
  if (total == 0) return;
  for (int i = 0; i < BOUND_COUNT; ++i) {
    below += counts[i];
    weir_strbuf_printf(out, "%s_bucket{%s,le=\"%g\"} %lld\n", name, labels, bounds_us[i] / unit_us,
                       below);
  }
  weir_strbuf_printf(out, "%s_bucket{%s,le=\"+Inf\"} %lld\n%s_sum{%s} %.9g\n%s_count{%s} %lld\n",
                     name, labels, total, name, labels,
                     (double)value_of(&histogram->sum_ns) / 1e3 / unit_us, name, labels, total);
}

static void put_latency(const char* labels, row_t* row, const char* name, weir_strbuf_t* out) {
  put_histogram(labels, &row->latency, name, name[0] == ':' ? 1 : 1e6, out);
}
static void put_run(const char* labels, row_t* row, const char* name, weir_strbuf_t* out) {
  put_histogram(labels, &row->run, name, name[0] == ':' ? 1 : 1e6, out);
}

static void put_rows(weir_counts_t* counts, const char* name, const char* kind, const char* help,
                     put_row_fn_t put, weir_strbuf_t* out) {
  weir_strbuf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind);
  for (int i = 0; i < (counts->model_count + 1) * WEIR_API_COUNT * WEIR_METHOD_COUNT; ++i) {
    int model = i / (WEIR_API_COUNT * WEIR_METHOD_COUNT);
    weir_strbuf_t labels = {0};  // names of models need no escapes: see the catalog
    weir_strbuf_printf(
        &labels, "model_name=\"%s\",API=\"%s\",entrypoint=\"%s\"",
        model < counts->model_count ? weir_catalog_model_name(counts->catalog, model) : "",
        api_names[i / WEIR_METHOD_COUNT % WEIR_API_COUNT], method_names[i % WEIR_METHOD_COUNT]);
    if (!labels.failed) put(labels.data, &counts->rows[i], name, out);
    weir_strbuf_free(&labels);
  }
}

typedef struct state_page_t {
  weir_strbuf_t* out;
  const char* model;
} state_page_t;

static void put_version(void* arg, int64_t number, weir_version_state_t state, weir_code_t code,
                        const char* message) {
  (void)code;
  (void)message;
  state_page_t* page = arg;
  weir_strbuf_printf(page->out,
                     "weir_serve_version_state{model_name=\"%s\",version=\"%" PRId64
                     "\",state=\"%s\"} 1\n",
                     page->model, number, weir_version_state_name(state));
}

static void put_versions(weir_counts_t* counts, weir_strbuf_t* out) {
  weir_strbuf_puts(out,
                   "# HELP weir_serve_version_state Versions of models and their states; always "
                   "1.\n# TYPE weir_serve_version_state gauge\n");
  for (int i = 0; i < counts->model_count; ++i) {
    state_page_t page = {out, weir_catalog_model_name(counts->catalog, i)};
    weir_model_spec_t spec = {.name = weir_view_of(page.model)};
    weir_status_destroy(weir_catalog_visit(counts->catalog, &spec, put_version, &page));
  }
}

void weir_counts_write(weir_counts_t* counts, weir_strbuf_t* out) {
  long long jobs = 0, runs = 0;
  put_rows(counts, "weir_serve_requests_total", "counter", "Requests answered.", put_codes, out);
  put_rows(counts, "weir_serve_latency_seconds", "histogram",
           "From the complete request to its answer.", put_latency, out);
  put_rows(counts, "weir_serve_run_seconds", "histogram", "Runs of the model.", put_run, out);
  put_rows(counts, ":tensorflow:serving:request_count", "counter", "Requests answered.", put_codes,
           out);
  put_rows(counts, ":tensorflow:serving:request_latency", "histogram",
           "Microseconds from the complete request to its answer.", put_latency, out);
  put_rows(counts, ":tensorflow:serving:runtime_latency", "histogram",
           "Microseconds of runs of the model.", put_run, out);
  put_versions(counts, out);
  weir_batch_counts(&jobs, &runs);
  weir_strbuf_printf(out,
                     "# HELP weir_serve_batched_requests_total Requests that came to lanes of "
                     "batches.\n# TYPE weir_serve_batched_requests_total counter\n"
                     "weir_serve_batched_requests_total %lld\n"
                     "# HELP weir_serve_batches_total Runs that they took.\n"
                     "# TYPE weir_serve_batches_total counter\nweir_serve_batches_total %lld\n",
                     jobs, runs);
}

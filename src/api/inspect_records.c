// inspect_records.c — What is in TFRecord files: Examples, events, or bytes.
#include <math.h>

#include "api/inspect.h"
#include "base/map.h"
#include "file/example.h"
#include "file/record.h"

enum { EVENT_TIME = 1, EVENT_STEP = 2, EVENT_VERSION = 3, EVENT_GRAPH = 4, EVENT_SUMMARY = 5 };

// ---- events ----

typedef struct tag_t {
  const char* name;
  int64_t count, first_step, last_step;
  double last;  // of a scalar; NaN: it is none
} tag_t;

typedef struct events_t {
  weir_arena_t arena;
  weir_map_t tags;  // → tag_t
  int64_t count, graphs;
} events_t;

static weir_status_t* add_value(events_t* events, weir_view_t value, int64_t step) {
  weir_view_t name = weir_view("", 0);
  double scalar = NAN;
  weir_wire_reader_t r = weir_wire_reader(value);
  while (weir_wire_next(&r)) {
    if (r.field == 1 && r.type == WEIR_WIRE_BYTES) name = r.bytes;
    if (r.field == 2 && r.type == WEIR_WIRE_FIXED32) scalar = (double)weir_wire_float(&r);
  }
  WEIR_TRY(weir_wire_check(&r, "Summary.Value"));
  tag_t* tag = weir_map_find(&events->tags, name);
  if (!tag) {
    tag = weir_arena_array(&events->arena, 1, sizeof(*tag));
    char* copy = weir_arena_strndup(&events->arena, name.data, name.size);
    if (!tag || !copy) return weir_out_of_memory();
    *tag = (tag_t){.name = copy, .first_step = step};
    WEIR_TRY(weir_map_put(&events->tags, weir_view_of(copy), tag));
  }
  ++tag->count;
  tag->last_step = step;
  tag->last = scalar;
  return NULL;
}

static weir_status_t* add_event(events_t* events, weir_view_t event) {
  int64_t step = 0;
  weir_view_t summary = weir_view("", 0);
  weir_wire_reader_t r = weir_wire_reader(event);
  while (weir_wire_next(&r)) {
    if (r.field == EVENT_STEP && r.type == WEIR_WIRE_VARINT) step = weir_wire_int(&r);
    if (r.field == EVENT_SUMMARY && r.type == WEIR_WIRE_BYTES) summary = r.bytes;
    events->graphs += r.field == EVENT_GRAPH && r.type == WEIR_WIRE_BYTES;
  }
  WEIR_TRY(weir_wire_check(&r, "Event"));
  ++events->count;
  weir_wire_reader_t s = weir_wire_reader(summary);
  while (weir_wire_next(&s)) {
    if (s.field == 1 && s.type == WEIR_WIRE_BYTES) WEIR_TRY(add_value(events, s.bytes, step));
  }
  return weir_wire_check(&s, "Summary");
}

static void report_tag(weir_report_t* report, const tag_t* tag) {
  weir_report_open(report, NULL, '{');
  weir_report_string(report, "tag", weir_view_of(tag->name));
  weir_report_number(report, "count", tag->count);
  weir_report_number(report, "first_step", tag->first_step);
  weir_report_number(report, "last_step", tag->last_step);
  weir_report_close(report, '}');
  weir_report_line(report, "  %-40s %8lld values, steps %lld to %lld", tag->name,
                   (long long)tag->count, (long long)tag->first_step, (long long)tag->last_step);
  if (!isnan(tag->last)) weir_report_line(report, ", last %g", tag->last);
  weir_report_line(report, "\n");
}

static void report_events(weir_report_t* report, const events_t* events) {
  weir_map_entry_t* e;
  weir_report_begin(report, "events", "event file of TensorBoard");
  weir_report_number(report, "events", events->count);
  weir_report_number(report, "graphs", events->graphs);
  weir_report_line(report, "%lld events, %zu tags%s\n", (long long)events->count,
                   events->tags.count, events->graphs ? ", a graph" : "");
  weir_report_open(report, "tags", '[');
  for (size_t i = 0; (e = weir_map_next(&events->tags, &i));) report_tag(report, e->value);
  weir_report_close(report, ']');
}

// ---- records ----

static bool is_version_event(weir_view_t record) {
  weir_wire_reader_t r = weir_wire_reader(record);
  while (weir_wire_next(&r)) {
    if (r.field == EVENT_VERSION && r.type == WEIR_WIRE_BYTES)
      return weir_view_starts_with(r.bytes, "brain.Event:");
  }
  return false;
}

static void report_feature(void* arg, weir_view_t name, const weir_feature_t* feature) {
  weir_report_t* report = arg;
  const char* type =
      feature->dtype == WEIR_DTYPE_INVALID ? "empty" : weir_dtype_name(feature->dtype);
  weir_report_open(report, NULL, '{');
  weir_report_string(report, "name", name);
  weir_report_string(report, "dtype", weir_view_of(type));
  weir_report_number(report, "count", feature->count);
  weir_report_close(report, '}');
  weir_report_line(report, "  %-32.*s %-8s %lld value%s\n", WEIR_VIEW_ARG(name), type,
                   (long long)feature->count, feature->count == 1 ? "" : "s");
}
static void ignore_feature(void* arg, weir_view_t name, const weir_feature_t* feature) {
  (void)name;
  (void)feature;
  ++*(int*)arg;
}

// The features of the first record, where it is an Example.
static void report_example(weir_report_t* report, weir_view_t record) {
  int count = 0;
  weir_status_t* status = weir_example_parse(record, ignore_feature, &count);
  weir_report_open(report, "features", '[');
  if (!status && count > 0) {
    weir_report_line(report, "the first is an Example:\n");
    weir_status_destroy(weir_example_parse(record, report_feature, report));
  }
  weir_report_close(report, ']');
  weir_status_destroy(status);
}

static bool is_end(weir_status_t* take_status) {
  bool is_out = weir_status_code(take_status) == WEIR_OUT_OF_RANGE;
  if (is_out) weir_status_destroy(take_status);
  return is_out;
}

static weir_status_t* walk_events(weir_report_t* report, weir_record_reader_t* reader) {
  events_t events = {.count = 1};  // the version was read
  weir_view_t record = {0};
  weir_status_t* status = NULL;
  while (!status && !(status = weir_record_next(reader, &record)))
    status = add_event(&events, record);
  if (is_end(status)) status = NULL;
  if (!status) report_events(report, &events);
  weir_map_free(&events.tags);
  weir_arena_free(&events.arena);
  return status;
}

static weir_status_t* walk_records(weir_report_t* report, weir_record_reader_t* reader,
                                   weir_view_t first) {
  int64_t count = 1, bytes = (int64_t)first.size;
  weir_view_t record = {0};
  weir_strbuf_t copy = {0};
  weir_strbuf_append(&copy, first.data, first.size);
  weir_status_t* status = weir_strbuf_finish(&copy);
  while (!status && !(status = weir_record_next(reader, &record))) {
    ++count;
    bytes += (int64_t)record.size;
  }
  if (is_end(status)) status = NULL;
  if (!status) {
    weir_report_begin(report, "tfrecord", "TFRecord file");
    weir_report_number(report, "records", count);
    weir_report_number(report, "bytes", bytes);
    weir_report_line(report, "%lld records, %lld bytes; all checksums are right\n",
                     (long long)count, (long long)bytes);
    report_example(report, weir_strbuf_view(&copy));
  }
  weir_strbuf_free(&copy);
  return status;
}

weir_status_t* weir_inspect_records(weir_report_t* report, weir_file_t* take_file) {
  weir_record_reader_t* reader = NULL;
  weir_view_t first = {0};
  WEIR_TRY(weir_record_reader_create(take_file, &reader));
  weir_status_t* status = weir_record_next(reader, &first);
  if (!status)
    status =
        is_version_event(first) ? walk_events(report, reader) : walk_records(report, reader, first);
  weir_report_close(report, '}');
  weir_record_reader_destroy(reader);
  return weir_status_prefix(status, "%s: ", report->path);
}

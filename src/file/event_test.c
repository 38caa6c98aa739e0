// event_test.c — Tests of event files and the summaries in them.
#include "file/event.h"

#include <float.h>

#include "file/record.h"
#include "file/testing.h"
#include "wire/text.h"

// The events of |path| after the version event as text, without their times.
static void read_events(const char* path, weir_strbuf_t* out) {
  weir_record_reader_t* reader = NULL;
  weir_view_t record;
  CHECK_OK(weir_record_reader_open(path, &reader));
  CHECK_OK(weir_record_next(reader, &record));
  assert_true(weir_view_ends_with(record, "brain.Event:2"));
  weir_status_t* status;
  while (!(status = weir_record_next(reader, &record))) {
    assert_int_equal(record.data[0], 9);  // wall_time comes first
    weir_view_t rest = weir_view(record.data + 9, record.size - 9);
    CHECK_OK(weir_text_print(&weir_message_event, rest, out));
  }
  CHECK_FAILS(status, OUT_OF_RANGE, "");
  weir_record_reader_destroy(reader);
}

static void test_events(void** state) {
  (void)state;
  weir_event_writer_t* writer = NULL;
  weir_strbuf_t text = {0};
  CHECK_OK(weir_event_writer_create(test_path("logs/run1"), ".v2", &writer));
  const char* path = weir_event_writer_path(writer);
  assert_non_null(strstr(path, "/logs/run1/events.out.tfevents."));
  assert_true(weir_view_ends_with(weir_view_of(path), ".v2"));
  CHECK_OK(weir_event_add_scalar(writer, 7, "loss", 0.5));
  CHECK_OK(weir_event_add_graph(writer, 0, weir_view_of("graph")));
  CHECK_OK(weir_event_writer_flush(writer));
  read_events(path, &text);
  assert_string_equal(
      text.data,
      "step: 7\nsummary {\n  value {\n    tag: \"loss\"\n    simple_value: 0.5\n  }\n}\n"
      "graph_def: \"graph\"\n");
  text.size = 0;
  weir_event_writer_set_flush_seconds(writer, 0);
  CHECK_OK(weir_event_add_scalar(writer, 8, "loss", 0.25));
  read_events(path, &text);
  assert_non_null(strstr(text.data, "step: 8"));
  weir_strbuf_free(&text);
  CHECK_OK(weir_event_writer_close(writer));
  CHECK_OK(weir_event_writer_close(NULL));
  CHECK_OK(weir_fs_write_all(test_path("file"), weir_view_of("")));
  CHECK_FAILS(weir_event_writer_create(test_path("file"), NULL, &writer), FAILED_PRECONDITION,
              "file");
}

static void test_histogram(void** state) {
  (void)state;
  static weir_histogram_t histogram;
  weir_histogram_init(&histogram);
  static const double kValues[] = {0, 1, -1, 1e-13, 1e300, DBL_MAX, -DBL_MAX};
  for (size_t i = 0; i < WEIR_COUNT_OF(kValues); ++i) weir_histogram_add(&histogram, kValues[i]);
  assert_true(histogram.count == 7 && histogram.max == DBL_MAX && histogram.min == -DBL_MAX);
  double total = 0;
  for (size_t i = 0; i < WEIR_HISTOGRAM_BUCKETS; ++i) total += histogram.buckets[i];
  assert_true(total == 7);
  assert_true(histogram.buckets[WEIR_HISTOGRAM_BUCKETS - 1] == 2);
  assert_true(histogram.buckets[1] == 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {FILE_TEST(test_events), FILE_TEST(test_histogram)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

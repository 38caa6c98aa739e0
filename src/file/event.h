// event.h — Event files: what TensorBoard reads. A record file of Event messages.
#ifndef WEIR_FILE_EVENT_H_
#define WEIR_FILE_EVENT_H_

#include "base/string.h"
#include "file/summary.h"

// Appends events to one file. Thread-safe.
typedef struct weir_event_writer_t weir_event_writer_t;

// Creates |directory|/events.out.tfevents.<seconds>.<host><suffix>, the directory too where it is
// missing, and writes the version event. |suffix| may be NULL.
WEIR_MUST_USE weir_status_t* weir_event_writer_create(const char* directory, const char* suffix,
                                                      weir_event_writer_t** out_writer);
const char* weir_event_writer_path(const weir_event_writer_t* writer);  // of the file

// Seconds between flushes that writing itself makes; 0: every event is flushed. 120 at first.
void weir_event_writer_set_flush_seconds(weir_event_writer_t* writer, double seconds);
WEIR_MUST_USE weir_status_t* weir_event_writer_flush(weir_event_writer_t* writer);
// Flushes, closes, and frees |take_writer|, also on error. NULL is fine.
WEIR_MUST_USE weir_status_t* weir_event_writer_close(weir_event_writer_t* take_writer);

// Writes |event|, a whole Event message.
WEIR_MUST_USE weir_status_t* weir_event_write(weir_event_writer_t* writer, weir_view_t event);
// Write an Event of now at |step|: with a Summary message (what summary ops give out), a GraphDef,
// a scalar, a histogram, a RunMetadata under a tag.
WEIR_MUST_USE weir_status_t* weir_event_add_summary(weir_event_writer_t* writer, int64_t step,
                                                    weir_view_t summary);
WEIR_MUST_USE weir_status_t* weir_event_add_graph(weir_event_writer_t* writer, int64_t step,
                                                  weir_view_t graph_def);
WEIR_MUST_USE weir_status_t* weir_event_add_scalar(weir_event_writer_t* writer, int64_t step,
                                                   const char* tag, double value);
WEIR_MUST_USE weir_status_t* weir_event_add_histogram(weir_event_writer_t* writer, int64_t step,
                                                      const char* tag,
                                                      const weir_histogram_t* histogram);
WEIR_MUST_USE weir_status_t* weir_event_add_run_metadata(weir_event_writer_t* writer, int64_t step,
                                                         weir_view_t tag, weir_view_t metadata);

#endif  // WEIR_FILE_EVENT_H_

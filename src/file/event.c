// event.c — Writing event files.
#include "file/event.h"

#include <unistd.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "file/record.h"
#include "wire/wire.h"

// Event {1: wall_time, 2: step, 3: file_version, 4: graph_def, 5: summary, 8: TaggedRunMetadata}.
enum { kWallTime = 1, kStep = 2, kFileVersion = 3, kGraphDef = 4, kSummary = 5, kRunMetadata = 8 };

struct weir_event_writer_t {
  weir_mutex_t mu;
  weir_writer_t* file;      // guarded by mu
  int64_t flush_period_ns;  // guarded by mu
  int64_t next_flush_ns;    // guarded by mu
  char* path;
};

// ---- life ----

static weir_status_t* open_file(weir_event_writer_t* writer, const char* directory,
                                const char* suffix) {
  char host[256] = "localhost";
  if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0') strcpy(host, "localhost");
  weir_strbuf_t path = {0};
  weir_strbuf_puts(&path, directory);
  if (path.size > 0 && path.data[path.size - 1] != '/') weir_strbuf_putc(&path, '/');
  weir_strbuf_printf(&path, "events.out.tfevents.%010lld.%s%s",
                     (long long)(weir_wall_clock_us() / 1000000), host, suffix ? suffix : "");
  weir_status_t* status = weir_strbuf_finish(&path);
  if (!status && directory[0]) status = weir_fs_make_directories(directory);
  if (!status) status = weir_writer_open(path.data, true, &writer->file);
  if (status) {
    weir_strbuf_free(&path);
    return status;
  }
  writer->path = path.data;
  return NULL;
}

static void put_head(weir_strbuf_t* out, int64_t step) {
  weir_wire_put_double(out, kWallTime, (double)weir_wall_clock_us() / 1e6);
  if (step != 0) weir_wire_put_int(out, kStep, step);
}

static weir_status_t* write_version(weir_event_writer_t* writer) {
  weir_strbuf_t event = {0};
  put_head(&event, 0);
  weir_wire_put_string(&event, kFileVersion, "brain.Event:2");
  weir_status_t* status = weir_strbuf_finish(&event);
  if (!status) status = weir_event_write(writer, weir_strbuf_view(&event));
  if (!status) status = weir_event_writer_flush(writer);
  weir_strbuf_free(&event);
  return status;
}

weir_status_t* weir_event_writer_create(const char* directory, const char* suffix,
                                        weir_event_writer_t** out_writer) {
  weir_event_writer_t* writer = weir_calloc(1, sizeof *writer);
  if (!writer) return weir_out_of_memory();
  weir_mutex_init(&writer->mu);
  weir_event_writer_set_flush_seconds(writer, 120);
  weir_status_t* status = open_file(writer, directory, suffix);
  if (!status) status = write_version(writer);
  if (status) {
    weir_status_destroy(weir_event_writer_close(writer));
    return status;
  }
  *out_writer = writer;
  return NULL;
}

const char* weir_event_writer_path(const weir_event_writer_t* writer) { return writer->path; }

void weir_event_writer_set_flush_seconds(weir_event_writer_t* writer, double seconds) {
  weir_mutex_lock(&writer->mu);
  writer->flush_period_ns = (int64_t)(WEIR_MIN(seconds, 1e9) * 1e9);
  writer->next_flush_ns = weir_clock_ns() + writer->flush_period_ns;
  weir_mutex_unlock(&writer->mu);
}

static weir_status_t* flush_locked(weir_event_writer_t* writer) WEIR_REQUIRES(writer->mu) {
  writer->next_flush_ns = weir_clock_ns() + writer->flush_period_ns;
  return weir_writer_flush(writer->file);
}

weir_status_t* weir_event_writer_flush(weir_event_writer_t* writer) {
  weir_mutex_lock(&writer->mu);
  weir_status_t* status = flush_locked(writer);
  weir_mutex_unlock(&writer->mu);
  return status;
}

weir_status_t* weir_event_writer_close(weir_event_writer_t* take_writer) {
  if (!take_writer) return NULL;
  weir_status_t* status = weir_writer_close(take_writer->file);
  weir_mutex_destroy(&take_writer->mu);
  weir_free(take_writer->path);
  weir_free(take_writer);
  return status;
}

// ---- events ----

weir_status_t* weir_event_write(weir_event_writer_t* writer, weir_view_t event) {
  weir_mutex_lock(&writer->mu);
  weir_status_t* status = weir_record_write(writer->file, event.data, event.size);
  if (!status && weir_clock_ns() >= writer->next_flush_ns) status = flush_locked(writer);
  weir_mutex_unlock(&writer->mu);
  return status;
}

static weir_status_t* add_bytes(weir_event_writer_t* writer, int64_t step, uint32_t field,
                                weir_view_t bytes) {
  weir_strbuf_t event = {0};
  put_head(&event, step);
  weir_wire_put_bytes(&event, field, bytes.data, bytes.size);
  weir_status_t* status = weir_strbuf_finish(&event);
  if (!status) status = weir_event_write(writer, weir_strbuf_view(&event));
  weir_strbuf_free(&event);
  return status;
}

weir_status_t* weir_event_add_summary(weir_event_writer_t* writer, int64_t step,
                                      weir_view_t summary) {
  return add_bytes(writer, step, kSummary, summary);
}

weir_status_t* weir_event_add_graph(weir_event_writer_t* writer, int64_t step,
                                    weir_view_t graph_def) {
  return add_bytes(writer, step, kGraphDef, graph_def);
}

// Writes the Summary in |summary| unless building it failed, and frees it.
static weir_status_t* add_built(weir_event_writer_t* writer, int64_t step, weir_strbuf_t* summary) {
  weir_status_t* status = weir_strbuf_finish(summary);
  if (!status) status = weir_event_add_summary(writer, step, weir_strbuf_view(summary));
  weir_strbuf_free(summary);
  return status;
}

weir_status_t* weir_event_add_scalar(weir_event_writer_t* writer, int64_t step, const char* tag,
                                     double value) {
  weir_strbuf_t summary = {0};
  weir_summary_put_scalar(&summary, weir_view_of(tag), (float)value);
  return add_built(writer, step, &summary);
}

weir_status_t* weir_event_add_histogram(weir_event_writer_t* writer, int64_t step, const char* tag,
                                        const weir_histogram_t* histogram) {
  weir_strbuf_t summary = {0};
  weir_summary_put_histogram(&summary, weir_view_of(tag), histogram);
  return add_built(writer, step, &summary);
}

// TaggedRunMetadata {1: tag, 2: run_metadata}.
weir_status_t* weir_event_add_run_metadata(weir_event_writer_t* writer, int64_t step,
                                           weir_view_t tag, weir_view_t metadata) {
  weir_strbuf_t tagged = {0};
  weir_wire_put_bytes(&tagged, 1, tag.data, tag.size);
  weir_wire_put_bytes(&tagged, 2, metadata.data, metadata.size);
  weir_status_t* status = weir_strbuf_finish(&tagged);
  if (!status) status = add_bytes(writer, step, kRunMetadata, weir_strbuf_view(&tagged));
  weir_strbuf_free(&tagged);
  return status;
}

// reader_state.c — Where a reader is, as a ReaderBaseState message, and going there.
#include "base/alloc.h"
#include "ops/reader/reader_internal.h"
#include "wire/wire.h"

// Numbers of ReaderBaseState's fields.
enum { STATE_STARTED = 1, STATE_FINISHED = 2, STATE_RECORDS = 3, STATE_WORK = 4 };

static weir_status_t* check_kind(const weir_reader_t* reader, const char* what) {
  const weir_reader_kind_t kind = reader->config.kind;
  if (kind == WEIR_READER_IDENTITY || kind == WEIR_READER_WHOLE_FILE) return NULL;
  return WEIR_STATUS(UNIMPLEMENTED, "Reader %s", what);
}

weir_status_t* weir_reader_save(weir_reader_t* reader, weir_strbuf_t* out) {
  WEIR_TRY(check_kind(reader, "SerializeState"));
  weir_mutex_lock(&reader->mu);
  if (reader->started_count) weir_wire_put_int(out, STATE_STARTED, reader->started_count);
  if (reader->finished_count) weir_wire_put_int(out, STATE_FINISHED, reader->finished_count);
  if (reader->record_count) weir_wire_put_int(out, STATE_RECORDS, reader->record_count);
  if (reader->work.size) {
    weir_wire_put_bytes(out, STATE_WORK, reader->work.data, reader->work.size);
  }
  weir_mutex_unlock(&reader->mu);
  return weir_strbuf_finish(out);
}

typedef struct saved_t {
  int64_t started, finished, records;
  weir_view_t work;
} saved_t;

// ---- words for messages, as TensorFlow's ----

static const char* kind_name(const weir_reader_t* reader) {
  return reader->config.kind == WEIR_READER_IDENTITY ? "IdentityReader" : "WholeFileReader";
}

static void put_escaped(weir_view_t text, weir_strbuf_t* out) {
  static const char special[] = "\n\r\t\"'\\", letters[] = "nrt\"'\\";
  for (size_t i = 0; i < text.size; ++i) {
    const unsigned char c = (unsigned char)text.data[i];
    const char* at = c ? strchr(special, c) : NULL;
    if (at) {
      weir_strbuf_printf(out, "\\%c", letters[at - special]);
    } else if (c < 32 || c >= 127) {
      weir_strbuf_printf(out, "\\%03o", c);
    } else {
      weir_strbuf_putc(out, (char)c);
    }
  }
}

static void put_count(const char* name, int64_t value, weir_strbuf_t* out) {
  if (value) weir_strbuf_printf(out, "\n%s: %lld", name, (long long)value);
}

static void put_saved(const saved_t* s, weir_strbuf_t* out) {
  put_count("work_started", s->started, out);
  put_count("work_finished", s->finished, out);
  put_count("num_records_produced", s->records, out);
  if (s->work.size == 0) return;
  weir_strbuf_puts(out, "\ncurrent_work: \"");
  put_escaped(s->work, out);
  weir_strbuf_putc(out, '"');
}

// INVALID_ARGUMENT "|what| IdentityReader 'name': |take_detail|".
static weir_status_t* bad_state(const weir_reader_t* reader, const char* what,
                                weir_strbuf_t* take_detail) {
  weir_status_t* status = weir_strbuf_finish(take_detail);
  if (!status) {
    status = WEIR_STATUS(INVALID_ARGUMENT, "%s %s '%s': %s", what, kind_name(reader),
                         reader->config.name, take_detail->data ? take_detail->data : "");
  }
  weir_strbuf_free(take_detail);
  return status;
}

static weir_status_t* parse_state(const weir_reader_t* reader, weir_view_t state, saved_t* out) {
  weir_wire_reader_t field = weir_wire_reader(state);
  weir_strbuf_t detail = {0};
  *out = (saved_t){.work = weir_view("", 0)};
  while (weir_wire_next(&field)) {
    switch (field.field) {
      case STATE_STARTED: out->started = weir_wire_int(&field); break;
      case STATE_FINISHED: out->finished = weir_wire_int(&field); break;
      case STATE_RECORDS: out->records = weir_wire_int(&field); break;
      case STATE_WORK: out->work = field.bytes; break;
      default: break;
    }
  }
  if (field.error) {
    put_escaped(state, &detail);
    return bad_state(reader, "Could not parse state for", &detail);
  }
  const bool is_negative = out->started < 0 || out->finished < 0 || out->records < 0;
  if (!is_negative && out->started <= out->finished) return NULL;
  put_saved(out, &detail);
  return bad_state(reader,
                   is_negative ? "Unexpected negative value when restoring in"
                               : "Inconsistent work started vs. finished when restoring in",
                   &detail);
}

weir_status_t* weir_reader_restore(weir_reader_t* reader, weir_view_t state) {
  saved_t saved;
  weir_status_t* failure = check_kind(reader, "RestoreState");
  if (!failure) failure = parse_state(reader, state, &saved);
  if (failure) {
    weir_reader_reset(reader);
    return failure;
  }
  weir_mutex_lock(&reader->mu);
  weir_reader_close_file(reader);
  reader->started_count = saved.started;
  reader->finished_count = saved.finished;
  reader->record_count = saved.records;
  reader->work.size = 0;
  weir_strbuf_append(&reader->work, saved.work.data, saved.work.size);
  weir_status_t* status = weir_strbuf_finish(&reader->work);
  weir_mutex_unlock(&reader->mu);
  return status;
}

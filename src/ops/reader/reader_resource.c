// reader_resource.c — Readers: turns of reads, files from a queue, and the ways to cut a file up.
#include "ops/reader/reader_resource.h"

#include "base/alloc.h"
#include "base/interrupt.h"
#include "file/record.h"
#include "wire/wire.h"

enum { READ_AHEAD = 1 << 18 };

struct weir_reader_t {
  weir_resource_t base;
  weir_reader_config_t config;  // immutable
  weir_mutex_t mu;
  weir_waiters_t turns;  // reads that wait for the one that is under way
  bool is_busy;          // a read is under way. All guarded by mu, as what follows
  int64_t record_count;
  int64_t started_count;
  int64_t finished_count;
  char* path;          // of the current file; NULL for none
  weir_strbuf_t work;  // the name that was taken last
  weir_file_t* file;
  weir_record_reader_t* records;  // RECORD: reads and owns the file instead of |file|
  uint64_t offset;                // in |file|, of the next byte to be read from |buffer| or after
  int64_t index;                  // of the next record; TEXT_LINE: lines passed
  weir_strbuf_t buffer;           // what was read ahead, from |buffer_offset|
  uint64_t buffer_offset;
};

// ---- the current file ----
static void close_file(weir_reader_t* r) {
  weir_record_reader_destroy(r->records);
  if (r->file) weir_file_close(r->file);
  weir_free(r->path);
  r->records = NULL;
  r->file = NULL;
  r->path = NULL;
  r->offset = r->buffer_offset = 0;
  r->index = 0;
  r->buffer.size = 0;
}

static bool is_in_progress(const weir_reader_t* r) { return r->finished_count < r->started_count; }

// Makes at least |size| bytes at |offset| readable, fewer only at the end of the file.
static weir_status_t* look(weir_reader_t* r, size_t size, weir_view_t* out_bytes) {
  size_t skip = (size_t)(r->offset - r->buffer_offset);
  size_t kept = r->offset >= r->buffer_offset && skip < r->buffer.size ? r->buffer.size - skip : 0;
  if (kept < size) {
    size_t got = 0;
    size_t want = WEIR_MAX(size, kept + READ_AHEAD);
    if (kept > 0 && skip > 0) memmove(r->buffer.data, r->buffer.data + skip, kept);
    r->buffer.size = kept;
    r->buffer_offset = r->offset;
    skip = 0;
    if (!weir_strbuf_reserve(&r->buffer, want - kept)) return weir_out_of_memory();
    WEIR_TRY(weir_file_read(r->file, r->offset + kept, r->buffer.data + kept, want - kept, &got));
    r->buffer.size = kept += got;
  }
  *out_bytes = kept > 0 ? weir_view(r->buffer.data + skip, kept) : weir_view("", 0);
  return NULL;
}

// Splits the next line off, with *out_is_end at the end of the file. A view until the next look.
static weir_status_t* next_line(weir_reader_t* r, weir_view_t* out_line, bool* out_is_end) {
  weir_view_t bytes = {0};
  const char* end = NULL;
  for (size_t want = 1;; want = bytes.size + 1) {
    size_t seen = bytes.size;
    WEIR_TRY(look(r, want, &bytes));
    if (bytes.size > seen) end = memchr(bytes.data + seen, '\n', bytes.size - seen);
    if (end || bytes.size < want) break;
  }
  *out_is_end = bytes.size == 0;
  size_t size = end ? (size_t)(end - bytes.data) : bytes.size;
  r->offset += size + (end ? 1 : 0);
  if (size > 0 && bytes.data[size - 1] == '\r') --size;
  *out_line = weir_view(bytes.data, size);
  return NULL;
}

static weir_status_t* skip_lines(weir_reader_t* r) {
  bool is_end = false;
  weir_view_t line;
  while (!is_end && r->index < r->config.skip_lines) {
    WEIR_TRY(next_line(r, &line, &is_end));
    if (!is_end) r->index += 1;
  }
  return NULL;
}

static weir_status_t* open_any(const weir_reader_t* r, weir_file_t** out_file) {
  if (!r->config.is_compressed) return weir_file_open(r->path, out_file);
  return weir_file_open_inflated(r->path, r->config.compression, out_file);
}

static weir_status_t* open_records(weir_reader_t* r) {
  weir_file_t* file = NULL;
  WEIR_TRY(open_any(r, &file));
  return weir_record_reader_create(file, &r->records);
}

static weir_status_t* open_fixed(weir_reader_t* r) {
  const uint64_t header = (uint64_t)r->config.header_size;
  weir_view_t bytes = {0};
  WEIR_TRY(open_any(r, &r->file));
  if (header > 0 && header <= r->file->size) {  // the size of a compressed file is not known
    r->offset = header - 1;
    WEIR_TRY(look(r, 1, &bytes));
  }
  r->offset = header;
  if (header > 0 && bytes.size == 0) return WEIR_STATUS(OUT_OF_RANGE, "reached end of file");
  return NULL;
}

static weir_status_t* open_file(weir_reader_t* r) {
  switch (r->config.kind) {
    case WEIR_READER_TEXT_LINE: WEIR_TRY(weir_file_open(r->path, &r->file)); return skip_lines(r);
    case WEIR_READER_RECORD: return open_records(r);
    case WEIR_READER_FIXED_LENGTH: return open_fixed(r);
    case WEIR_READER_IDENTITY: return NULL;
    case WEIR_READER_WHOLE_FILE:
      break;  // opened when it is read: a missing file fails every read, as in TensorFlow
  }
  return NULL;
}

// Begins the file |name|. Failing, the reader is between files.
static weir_status_t* start_file(weir_reader_t* r, const weir_tensor_t* name) {
  if (weir_tensor_type(name) != WEIR_DTYPE_STRING || name->count != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Expected to dequeue a one-element string tensor");
  }
  weir_view_t path = weir_string_view(WEIR_TENSOR_DATA(name, weir_string_t));
  close_file(r);
  r->work.size = 0;
  weir_strbuf_append(&r->work, path.data, path.size);
  WEIR_TRY(weir_strbuf_finish(&r->work));
  if (r->config.kind == WEIR_READER_IDENTITY) {
    r->started_count += 1;
    return NULL;
  }
  if (path.size > 0 && memchr(path.data, '\0', path.size)) {
    return WEIR_STATUS(INVALID_ARGUMENT, "path '%.*s' holds a zero byte", WEIR_VIEW_ARG(path));
  }
  r->path = weir_strndup(path.data ? path.data : "", path.size);
  weir_status_t* status = r->path ? open_file(r) : weir_out_of_memory();
  if (status) {
    close_file(r);
  } else {
    r->started_count += 1;
  }
  return status;
}

// ---- records ----
// Reads key and value of the next record; |*out_is_end| when there is none. |value| is filled.
static weir_status_t* next_text(weir_reader_t* r, weir_strbuf_t* key, weir_strbuf_t* value,
                                bool* out_is_end) {
  weir_view_t line;
  WEIR_TRY(next_line(r, &line, out_is_end));
  if (*out_is_end) return NULL;
  weir_strbuf_printf(key, "%s:%lld", r->path, (long long)++r->index);
  weir_strbuf_append(value, line.data, line.size);
  return NULL;
}

static weir_status_t* next_whole(weir_reader_t* r, weir_strbuf_t* key, weir_strbuf_t* value,
                                 bool* out_is_end) {
  *out_is_end = r->index > 0;
  if (*out_is_end) return NULL;
  WEIR_TRY(weir_fs_read_all(r->path, value));
  weir_strbuf_puts(key, r->path);
  r->index = 1;
  return NULL;
}

static weir_status_t* next_record(weir_reader_t* r, weir_strbuf_t* key, weir_strbuf_t* value,
                                  bool* out_is_end) {
  weir_view_t record;
  uint64_t offset = weir_record_tell(r->records);
  weir_status_t* status = weir_record_next(r->records, &record);
  *out_is_end = status && weir_status_code(status) == WEIR_OUT_OF_RANGE;
  if (*out_is_end) {
    weir_status_destroy(status);
    return NULL;
  }
  if (status) return status;
  weir_strbuf_printf(key, "%s:%llu", r->path, (unsigned long long)offset);
  weir_strbuf_append(value, record.data, record.size);
  return NULL;
}

static weir_status_t* next_fixed(weir_reader_t* r, weir_strbuf_t* key, weir_strbuf_t* value,
                                 bool* out_is_end) {
  const weir_reader_config_t* c = &r->config;
  const uint64_t need = (uint64_t)c->record_size + (uint64_t)c->footer_size;
  weir_view_t bytes = {0};
  *out_is_end = r->offset > r->file->size || r->file->size - r->offset < need;
  if (*out_is_end) return NULL;
  WEIR_TRY(look(r, (size_t)need, &bytes));
  *out_is_end = bytes.size < need;
  if (*out_is_end) return NULL;
  weir_strbuf_printf(key, "%s:%lld", r->path, (long long)r->index++);
  weir_strbuf_append(value, bytes.data, (size_t)c->record_size);
  r->offset += (uint64_t)(c->hop_size > 0 ? c->hop_size : c->record_size);
  return NULL;
}

static weir_status_t* next_name(weir_reader_t* r, weir_strbuf_t* key, weir_strbuf_t* value,
                                bool* out_is_end) {
  *out_is_end = false;
  weir_strbuf_append(key, r->work.data, r->work.size);
  weir_strbuf_append(value, r->work.data, r->work.size);
  return NULL;
}

static weir_status_t* next_any(weir_reader_t* r, weir_strbuf_t* key, weir_strbuf_t* value,
                               bool* out_is_end) {
  switch (r->config.kind) {
    case WEIR_READER_TEXT_LINE: return next_text(r, key, value, out_is_end);
    case WEIR_READER_WHOLE_FILE: return next_whole(r, key, value, out_is_end);
    case WEIR_READER_RECORD: return next_record(r, key, value, out_is_end);
    case WEIR_READER_IDENTITY: return next_name(r, key, value, out_is_end);
    case WEIR_READER_FIXED_LENGTH: break;
  }
  return next_fixed(r, key, value, out_is_end);
}

// ---- a read ----
typedef struct pair_t {
  weir_strbuf_t key;
  weir_strbuf_t value;
} pair_t;

typedef struct read_t {
  weir_reader_t* reader;  // retained
  weir_queue_t* queue;    // retained
  weir_kernel_ctx_t* ctx;
  weir_done_t done;
  int64_t limit;  // negative: one record, scalars
  pair_t* pairs;
  size_t pair_count;
  size_t pair_capacity;
  // The dequeue of a file's name: a kernel call of its own within the step.
  weir_kernel_ctx_t name_ctx;
  weir_node_def_t name_node;
  weir_dtype_t name_type;
  weir_value_t name;
  weir_status_t* name_status;
  atomic_int name_state;  // who goes on: NAME_* below
} read_t;

// The thread that asked for a name and the one that brings it may be one or two. Whoever comes
// second goes on, so that names at hand make a loop and not a recursion.
enum { NAME_ASKED, NAME_BROUGHT, NAME_AWAITED };

static void read_free(read_t* read) {
  for (size_t i = 0; i < read->pair_count; ++i) {
    weir_strbuf_free(&read->pairs[i].key);
    weir_strbuf_free(&read->pairs[i].value);
  }
  weir_free(read->pairs);
  weir_value_release(&read->name);
  weir_resource_release((weir_resource_t*)read->queue);
  weir_resource_release((weir_resource_t*)read->reader);
  weir_free(read);
}

static weir_status_t* set_output(const read_t* read, int output, bool is_key) {
  weir_tensor_t* out = NULL;
  const int64_t count = (int64_t)read->pair_count;
  WEIR_TRY(weir_kernel_output(read->ctx, output, read->limit < 0 ? 0 : 1, &count, &out));
  for (int64_t i = 0; i < count; ++i) {
    const weir_strbuf_t* text = is_key ? &read->pairs[i].key : &read->pairs[i].value;
    WEIR_TRY(weir_strbuf_finish(text));
    WEIR_TRY(weir_tensor_set_string(out, i, text->data ? text->data : "", text->size));
  }
  return NULL;
}

static void give_turn(weir_reader_t* reader) {
  weir_waiters_t completed = {0};
  weir_mutex_lock(&reader->mu);
  reader->is_busy = false;
  reader->turns.flush(&reader->base, &completed);
  weir_mutex_unlock(&reader->mu);
  weir_waiters_answer(&completed);
}

static void read_finish(read_t* read, weir_status_t* status, bool has_turn) {
  weir_done_t done = read->done;
  if (!status) status = set_output(read, 0, true);
  if (!status) status = set_output(read, 1, false);
  if (has_turn) give_turn(read->reader);
  read_free(read);
  weir_done_call(done, status);
}

// Reads from the current file, up to the limit or its end. mu is held.
static weir_status_t* read_pairs(read_t* read, weir_reader_t* r) {
  const size_t limit = read->limit < 0 ? 1 : (size_t)read->limit;
  bool is_end = false;
  while (read->pair_count < limit && !is_end) {
    if (!WEIR_GROW(read->pairs, read->pair_capacity, read->pair_count + 1))
      return weir_out_of_memory();
    pair_t* pair = &read->pairs[read->pair_count];
    *pair = (pair_t){0};
    weir_status_t* status = next_any(r, &pair->key, &pair->value, &is_end);
    if (status || is_end) {
      weir_strbuf_free(&pair->key);
      weir_strbuf_free(&pair->value);
    }
    if (status) return status;
    if (is_end) break;
    read->pair_count += 1;
    r->record_count += 1;
    // A whole file, or a name, is at its end with its only record.
    is_end = r->config.kind == WEIR_READER_WHOLE_FILE || r->config.kind == WEIR_READER_IDENTITY;
  }
  if (is_end) {
    r->finished_count = r->started_count;
    close_file(r);
  }
  return NULL;
}

// Ends a read whose step is cancelled, between two reads of the file: a line or a record may be as
// long as it likes. The reader is left where it was.
typedef struct reading_t {
  weir_interrupt_t base;
  weir_cancel_t* cancel;
} reading_t;

static bool is_cancelled(weir_interrupt_t* base) {
  return weir_cancel_is_cancelled(((reading_t*)base)->cancel);
}

// Goes on with the name that was dequeued, if any, and the current file. True when the read is
// complete or has failed; otherwise a name is needed.
static bool read_step(read_t* read, weir_status_t** out_status) {
  weir_reader_t* r = read->reader;
  weir_tensor_t* name = read->name.tensor;
  weir_status_t* status = NULL;
  reading_t reading = {.base = {.is_due = is_cancelled}, .cancel = read->ctx->step->cancel};
  weir_interrupt_t* before = weir_interrupt_set(&reading.base);
  weir_mutex_lock(&r->mu);
  // A reset may have come in between: the name is good all the same.
  if (name) status = start_file(r, name);
  if (!status && is_in_progress(r)) status = read_pairs(read, r);
  if (status) weir_strbuf_free(&r->buffer);  // which may hold gigabytes of a line without end
  weir_mutex_unlock(&r->mu);
  weir_interrupt_set(before);
  weir_value_release(&read->name);
  *out_status = status;
  return status || read->pair_count > 0 || read->limit == 0;
}

static void read_run(read_t* read);

static void on_name(void* arg, weir_status_t* take_status) {
  read_t* read = arg;
  read->name_status = take_status;
  if (atomic_exchange(&read->name_state, NAME_BROUGHT) == NAME_AWAITED) read_run(read);
}

// True when the name is there already.
static bool ask_name(read_t* read) {
  read->name_type = WEIR_DTYPE_STRING;
  read->name_node = *read->ctx->node;
  read->name_node.output_count = 1;
  read->name_node.output_types = &read->name_type;
  read->name_ctx = *read->ctx;
  read->name_ctx.node = &read->name_node;
  read->name_ctx.outputs = &read->name;
  read->name_ctx.output_count = 1;
  atomic_store(&read->name_state, NAME_ASKED);
  weir_queue_dequeue(read->queue, &read->name_ctx, -1, false,
                     (weir_done_t){.fn = on_name, .arg = read});
  return atomic_exchange(&read->name_state, NAME_AWAITED) == NAME_BROUGHT;
}

static void read_run(read_t* read) {
  weir_status_t* status = read->name_status;
  while (!status && !read_step(read, &status)) {
    if (!ask_name(read)) return;
    status = read->name_status;
  }
  read_finish(read, status, true);
}

static void on_turn(void* arg, weir_status_t* take_status) {
  read_t* read = arg;
  if (take_status) {
    read_finish(read, take_status, false);
  } else {
    read_run(read);
  }
}

static void turns_flush(weir_resource_t* owner, weir_waiters_t* completed) {
  weir_reader_t* r = (weir_reader_t*)owner;
  if (r->is_busy || !r->turns.head) return;
  r->is_busy = true;
  weir_waiter_complete(r->turns.head, NULL, completed);
}

void weir_reader_read(weir_reader_t* reader, weir_queue_t* queue, weir_kernel_ctx_t* ctx,
                      int64_t limit, weir_done_t done) {
  read_t* read = weir_calloc(1, sizeof(*read));
  weir_waiter_t* turn = weir_calloc(1, sizeof(*turn));
  if (!read || !turn) {
    weir_free(read);
    weir_free(turn);
    weir_done_call(done, weir_out_of_memory());
    return;
  }
  weir_resource_retain((weir_resource_t*)reader);
  weir_resource_retain((weir_resource_t*)queue);
  read->reader = reader;
  read->queue = queue;
  read->ctx = ctx;
  read->done = done;
  read->limit = limit;
  turn->cancel_message = "Read operation was cancelled";
  weir_waiter_submit(&reader->turns, turn, &reader->base, ctx,
                     (weir_done_t){.fn = on_turn, .arg = read});
}

// ---- the rest ----
int64_t weir_reader_records_produced(weir_reader_t* reader) {
  weir_mutex_lock(&reader->mu);
  int64_t count = reader->record_count;
  weir_mutex_unlock(&reader->mu);
  return count;
}

int64_t weir_reader_files_finished(weir_reader_t* reader) {
  weir_mutex_lock(&reader->mu);
  int64_t count = reader->finished_count;
  weir_mutex_unlock(&reader->mu);
  return count;
}

void weir_reader_reset(weir_reader_t* reader) {
  weir_mutex_lock(&reader->mu);
  close_file(reader);
  reader->record_count = reader->started_count = reader->finished_count = 0;
  reader->work.size = 0;
  weir_mutex_unlock(&reader->mu);
}

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

static weir_status_t* parse_state(weir_view_t state, saved_t* out) {
  weir_wire_reader_t field = weir_wire_reader(state);
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
    return WEIR_STATUS(INVALID_ARGUMENT, "Could not parse state for the reader");
  }
  if (out->started < 0 || out->finished < 0 || out->records < 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Unexpected negative value when restoring a reader");
  }
  if (out->started > out->finished) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Inconsistent work started vs. finished when restoring a reader: "
                       "%lld vs. %lld",
                       (long long)out->started, (long long)out->finished);
  }
  return NULL;
}

weir_status_t* weir_reader_restore(weir_reader_t* reader, weir_view_t state) {
  saved_t saved;
  weir_status_t* failure = check_kind(reader, "RestoreState");
  if (!failure) failure = parse_state(state, &saved);
  if (failure) {
    weir_reader_reset(reader);
    return failure;
  }
  weir_mutex_lock(&reader->mu);
  close_file(reader);
  reader->started_count = saved.started;
  reader->finished_count = saved.finished;
  reader->record_count = saved.records;
  reader->work.size = 0;
  weir_strbuf_append(&reader->work, saved.work.data, saved.work.size);
  weir_status_t* status = weir_strbuf_finish(&reader->work);
  weir_mutex_unlock(&reader->mu);
  return status;
}

static void reader_destroy(weir_resource_t* resource) {
  weir_reader_t* reader = (weir_reader_t*)resource;
  close_file(reader);
  weir_strbuf_free(&reader->buffer);
  weir_strbuf_free(&reader->work);
  weir_mutex_destroy(&reader->mu);
  weir_free(reader);
}

const weir_resource_type_t weir_reader_type = {.name = WEIR_READER_TYPE_NAME,
                                               .destroy = reader_destroy};

weir_status_t* weir_reader_create(const weir_reader_config_t* config, weir_reader_t** out_reader) {
  weir_reader_t* reader = weir_calloc(1, sizeof(*reader));
  if (!reader) return weir_out_of_memory();
  weir_resource_init(&reader->base, &weir_reader_type);
  weir_mutex_init(&reader->mu);
  weir_waiters_init(&reader->turns, &reader->mu, turns_flush);
  reader->config = *config;
  *out_reader = reader;
  return NULL;
}

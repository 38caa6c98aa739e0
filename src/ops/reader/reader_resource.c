// reader_resource.c — Readers: turns of reads, and files from a queue.
#include "base/alloc.h"
#include "base/interrupt.h"
#include "ops/reader/reader_internal.h"

// ---- a read ----
static bool is_in_progress(const weir_reader_t* r) { return r->finished_count < r->started_count; }

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
    weir_status_t* status = weir_reader_next(r, &pair->key, &pair->value, &is_end);
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
    weir_reader_close_file(r);
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
  if (name) status = weir_reader_start_file(r, name);
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
  read->name_node.input_name = NULL;  // which is asked of a graph's own definition alone
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
  weir_reader_close_file(reader);
  reader->record_count = reader->started_count = reader->finished_count = 0;
  reader->work.size = 0;
  weir_mutex_unlock(&reader->mu);
}

static void reader_destroy(weir_resource_t* resource) {
  weir_reader_t* reader = (weir_reader_t*)resource;
  weir_reader_close_file(reader);
  weir_strbuf_free(&reader->buffer);
  weir_strbuf_free(&reader->work);
  weir_free((char*)reader->config.name);
  weir_mutex_destroy(&reader->mu);
  weir_free(reader);
}

const weir_resource_type_t weir_reader_type = {.name = WEIR_READER_TYPE_NAME,
                                               .destroy = reader_destroy};

weir_status_t* weir_reader_create(const weir_reader_config_t* config, weir_reader_t** out_reader) {
  weir_reader_t* reader = weir_calloc(1, sizeof(*reader));
  char* name = weir_strdup(config->name ? config->name : "");
  if (!reader || !name) {
    weir_free(reader);
    weir_free(name);
    return weir_out_of_memory();
  }
  weir_resource_init(&reader->base, &weir_reader_type);
  weir_mutex_init(&reader->mu);
  weir_waiters_init(&reader->turns, &reader->mu, turns_flush);
  reader->config = *config;
  reader->config.name = name;
  *out_reader = reader;
  return NULL;
}

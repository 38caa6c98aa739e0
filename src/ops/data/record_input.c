// record_input.c — RecordInput: batches of records of files, in a random order, for ever.
//
// Epoch by epoch, files in a random order are read into a buffer, in which each record changes
// places with another; batches are taken from its end. TensorFlow reads with threads, so its order
// depends on them where there are several or a buffer is smaller than an epoch; here it does not.
#include "base/fingerprint.h"
#include "file/record.h"
#include "kernel/random/twister.h"
#include "ops/data/background_kernel.h"
#include "ops/data/file_stream.h"

enum { kGroup = 16 };  // records that are put into the buffer together

typedef struct record_t {
  char* data;
  size_t size;
} record_t;
typedef struct records_t {
  record_t* items;
  size_t count, capacity;
} records_t;

typedef struct yielder_t {
  // Of the node.
  weir_view_t pattern;
  int64_t seed, buffer_size, parallelism, batch_size;
  float shift;
  weir_compression_t compression;
  weir_mutex_t mu;  // guards all below
  weir_twister_t twister;
  uint64_t epoch;
  weir_names_t files;            // of the epoch, in a random order
  size_t shard;                  // every |parallelism|-th of them from here on is read together
  size_t file;                   // the one that is read; past the end: all are
  weir_record_reader_t* reader;  // of it; NULL: not open
  records_t group;               // read, not in the buffer yet
  records_t buffer;
  weir_status_t* failure;  // said again and again
} yielder_t;

static void records_free(records_t* records) {
  for (size_t i = 0; i < records->count; ++i) weir_free(records->items[i].data);
  weir_free(records->items);
}

static weir_status_t* yielder_init(const weir_kernel_init_t* init, void* state) {
  yielder_t* self = state;
  weir_attrs_t attrs = init->node->attrs;
  weir_mutex_init(&self->mu);
  self->pattern = weir_attrs_string(attrs, "file_pattern");
  self->seed = weir_attrs_int(attrs, "file_random_seed");
  self->shift = weir_attrs_float(attrs, "file_shuffle_shift_ratio");
  self->buffer_size = weir_attrs_int(attrs, "file_buffer_size");
  self->parallelism = weir_attrs_int(attrs, "file_parallelism");
  self->batch_size = weir_attrs_int(attrs, "batch_size");
  (void)weir_compression_parse(weir_attrs_string(attrs, "compression_type"), &self->compression);
  weir_twister_seed(&self->twister, (uint64_t)self->seed);
  if (self->batch_size >= 0 && self->buffer_size > 0 && self->parallelism > 0) return NULL;
  return WEIR_STATUS(
      INVALID_ARGUMENT,
      "batch_size %lld, file_buffer_size %lld, file_parallelism %lld: the first must "
      "not be negative, the others must be greater than zero",
      (long long)self->batch_size, (long long)self->buffer_size, (long long)self->parallelism);
}

static void yielder_deinit(void* state) {
  yielder_t* self = state;
  weir_record_reader_destroy(self->reader);
  weir_names_free(&self->files);
  records_free(&self->group);
  records_free(&self->buffer);
  weir_status_destroy(self->failure);
  weir_mutex_destroy(&self->mu);
}

// ---- epochs ----

static weir_status_t* match_files(yielder_t* self) {
  weir_view_t rest = self->pattern, part;
  weir_names_free(&self->files);
  self->files = (weir_names_t){0};
  weir_status_t* status = NULL;
  while (!status && weir_view_next(&rest, ',', &part)) {
    weir_names_t found = {0};
    char* pattern = weir_strndup(part.data, part.size);
    status = pattern ? weir_fs_glob(pattern, &found) : weir_out_of_memory();
    weir_names_sort(&found);
    for (size_t i = 0; i < found.count && !status; ++i)
      status = weir_names_add(&self->files, weir_view_of(found.items[i]));
    weir_names_free(&found);
    weir_free(pattern);
  }
  if (status || self->files.count > 0) return status;
  return WEIR_STATUS(NOT_FOUND, "Found no files at %.*s", WEIR_VIEW_ARG(self->pattern));
}

static void reverse(char** items, size_t begin, size_t end) {
  for (; begin + 1 < end; ++begin, --end) {
    char* item = items[begin];
    items[begin] = items[end - 1];
    items[end - 1] = item;
  }
}

static weir_status_t* begin_epoch(yielder_t* self) {
  ++self->epoch;
  self->shard = self->file = 0;
  WEIR_TRY(match_files(self));
  weir_twister_t twister;
  const size_t count = self->files.count;
  weir_twister_seed(&twister,
                    weir_murmur64_seeded(&self->epoch, sizeof self->epoch, (uint64_t)self->seed));
  weir_twister_shuffle(&twister, self->files.items, count);
  if (!(self->shift >= 0 && self->shift < 1)) return NULL;
  const size_t shift = (size_t)(self->shift * (float)count);
  reverse(self->files.items, 0, shift);
  reverse(self->files.items, shift, count);
  reverse(self->files.items, 0, count);
  return NULL;
}

static bool is_epoch_read(const yielder_t* self) {
  return self->epoch == 0 || self->file >= self->files.count;
}

// ---- records ----

static bool has_room(const yielder_t* self) {
  return self->buffer.count < (uint64_t)self->buffer_size;
}

// Moves the group into the buffer, the last first, as far as there is room.
static weir_status_t* add_group(yielder_t* self) {
  records_t *group = &self->group, *buffer = &self->buffer;
  for (; group->count > 0 && has_room(self); --group->count) {
    if (!WEIR_GROW(buffer->items, buffer->capacity, buffer->count + 1)) return weir_out_of_memory();
    size_t place = (size_t)(weir_twister_next(&self->twister) % (buffer->count + 1));
    buffer->items[buffer->count] = buffer->items[place];  // also where it is the same
    buffer->items[place] = group->items[group->count - 1];
    ++buffer->count;
  }
  return NULL;
}

static weir_status_t* keep_record(yielder_t* self, weir_view_t record) {
  records_t* group = &self->group;
  if (!WEIR_GROW(group->items, group->capacity, group->count + 1)) return weir_out_of_memory();
  char* copy = weir_strndup(record.data, record.size);
  if (!copy) return weir_out_of_memory();
  group->items[group->count++] = (record_t){.data = copy, .size = record.size};
  return NULL;
}

static weir_status_t* open_file(yielder_t* self) {
  const char* name = self->files.items[self->file];
  weir_file_t* file = NULL;
  weir_status_t* status = weir_compression_open(self->compression, name, &file);
  if (!status) return weir_record_reader_create(file, &self->reader);
  if (weir_status_code(status) == WEIR_RESOURCE_EXHAUSTED) return status;
  weir_status_destroy(status);
  return WEIR_STATUS(INVALID_ARGUMENT, "Can't open %s", name);
}

static void leave_file(yielder_t* self, bool* out_is_shard_read) {
  weir_record_reader_destroy(self->reader);
  self->reader = NULL;
  *out_is_shard_read = self->files.count - self->file <= (uint64_t)self->parallelism;
  if (!*out_is_shard_read) {
    self->file += (size_t)self->parallelism;
    return;
  }
  ++self->shard;
  bool is_last = self->shard >= (uint64_t)self->parallelism || self->shard >= self->files.count;
  self->file = is_last ? self->files.count : self->shard;
}

// Reads one record into the group, or leaves a file.
static weir_status_t* read_one(yielder_t* self, bool* out_is_shard_read) {
  weir_view_t record;
  if (!self->reader) WEIR_TRY(open_file(self));
  uint64_t begin = weir_record_tell(self->reader);
  weir_status_t* status = weir_record_next(self->reader, &record);
  if (!status) {
    status = keep_record(self, record);
    if (status) weir_record_seek(self->reader, begin);  // it is read again, then
    return status;
  }
  if (weir_status_code(status) != WEIR_OUT_OF_RANGE) return status;
  weir_status_destroy(status);
  leave_file(self, out_is_shard_read);
  return NULL;
}

// Reads until the buffer is full or holds the rest of the epoch, and something.
static weir_status_t* fill(yielder_t* self, weir_cancel_t* cancel) {
  bool is_shard_read = self->group.count > 0 && is_epoch_read(self);
  while (has_room(self)) {
    if (self->group.count >= kGroup || is_shard_read) WEIR_TRY(add_group(self));
    if (!has_room(self)) break;
    is_shard_read = is_shard_read && self->group.count > 0;
    if (is_epoch_read(self) && self->group.count == 0) {
      if (self->buffer.count > 0) break;
      if (weir_cancel_is_cancelled(cancel))  // files without records are read for ever
        return WEIR_STATUS(CANCELLED, "Step was cancelled");
      WEIR_TRY(begin_epoch(self));
    }
    WEIR_TRY(read_one(self, &is_shard_read));
  }
  return NULL;
}

static weir_status_t* yield_one(yielder_t* self, weir_cancel_t* cancel, weir_string_t* out) {
  bool is_read = is_epoch_read(self) && self->group.count == 0;
  if (self->buffer.count == 0 || !is_read) WEIR_TRY(fill(self, cancel));
  const record_t* last = &self->buffer.items[self->buffer.count - 1];
  WEIR_TRY(weir_string_set(out, last->data, last->size));
  weir_free(last->data);
  --self->buffer.count;
  return NULL;
}

static bool stays(const weir_status_t* status) {
  weir_code_t code = weir_status_code(status);
  return code != WEIR_CANCELLED && code != WEIR_RESOURCE_EXHAUSTED;
}

static weir_status_t* yield_batch(weir_kernel_ctx_t* ctx) {
  yielder_t* self = ctx->state;
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, 1, &self->batch_size, &out));
  weir_mutex_lock(&self->mu);
  weir_status_t* status = self->failure ? weir_status_copy(self->failure) : NULL;
  for (int64_t i = 0; i < self->batch_size && !status; ++i)
    status = yield_one(self, ctx->step->cancel, &WEIR_TENSOR_DATA(out, weir_string_t)[i]);
  if (status && !self->failure && stays(status)) self->failure = weir_status_copy(status);
  weir_mutex_unlock(&self->mu);
  return status;
}

static void yield_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  weir_background_kernel(ctx, done, yield_batch);
}

const weir_op_module_t weir_ops_data_record_input = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "RecordInput",
         .attrs = "file_pattern: string; file_random_seed: int = 301; "
                  "file_shuffle_shift_ratio: float = 0; file_buffer_size: int = 10000; "
                  "file_parallelism: int = 16; batch_size: int = 32; compression_type: string = ''",
         .outputs = "records: string",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY | WEIR_OP_UNBOUNDED,
         .summary = "Batches of records of files in a random order, for ever",
         .infer_shape = weir_shape_fn_unknown,
         .kernels = WEIR_CPU_KERNEL(.compute_async = yield_cpu, .init = yielder_init,
                                    .deinit = yielder_deinit, .state_size = sizeof(yielder_t))},
        {0}}};

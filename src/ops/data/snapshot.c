// snapshot.c — Writing datasets into folders, and finding them.
#include "ops/data/snapshot.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/map.h"
#include "base/philox.h"
#include "file/record.h"
#include "tensor/tensor_proto.h"
#include "wire/wire.h"

enum { RUN_ID = 2, TIMESTAMP = 3, VERSION = 4, DTYPE = 5, COUNT = 6, FINALIZED = 1000 };
enum { FORMAT_VERSION = 2 };
#define METADATA "snapshot.metadata"

weir_status_t* weir_snapshot_compression(weir_view_t text, weir_compression_t* out_compression) {
  if (weir_compression_parse(text, out_compression)) return NULL;
  if (weir_view_is(text, "SNAPPY"))
    return WEIR_STATUS(UNIMPLEMENTED, "datasets cannot be saved or loaded in SNAPPY here");
  return WEIR_STATUS(INVALID_ARGUMENT, "Unsupported compression: %.*s", WEIR_VIEW_ARG(text));
}

weir_status_t* weir_snapshot_join(const char* folder, const char* name, char** out_path) {
  weir_strbuf_t text = {0};
  weir_strbuf_append(&text, folder, strlen(folder));
  weir_strbuf_putc(&text, '/');
  weir_strbuf_append(&text, name, strlen(name));
  weir_status_t* status = weir_strbuf_finish(&text);
  if (!status) *out_path = weir_strndup(text.data, text.size);
  weir_strbuf_free(&text);
  return status || *out_path ? status : weir_out_of_memory();
}

// ---- shards ----

typedef struct shard_t {
  char* path;
  weir_writer_t* file;   // NULL: compressed, then what is written is gathered
  weir_writer_t memory;  // writes into |text|
  weir_strbuf_t text;
} shard_t;

struct weir_snapshot_writer_t {
  char* path;
  char* run_folder;
  uint64_t run;
  weir_compression_t compression;
  int width;
  weir_dtype_t* types;
  weir_map_t shards;  // number → shard_t
  int64_t count;      // elements
};

static weir_status_t* memory_write(weir_writer_t* writer, const void* data, size_t size) {
  shard_t* shard = (shard_t*)((char*)writer - offsetof(shard_t, memory));
  weir_strbuf_append(&shard->text, data, size);
  return NULL;
}
static const weir_writer_vtable_t memory_vtable = {.write = memory_write};

static weir_status_t* shard_open(const weir_snapshot_writer_t* self, int64_t number,
                                 shard_t* shard) {
  char name[64];
  char* folder = NULL;
  snprintf(name, sizeof(name), "%08" PRId64 ".shard", number);
  WEIR_TRY(weir_snapshot_join(self->run_folder, name, &folder));
  weir_status_t* status = weir_fs_make_directories(folder);
  if (!status) status = weir_snapshot_join(folder, "00000000.snapshot", &shard->path);
  weir_free(folder);
  shard->memory.vtable = &memory_vtable;
  if (!status && !self->compression.is_compressed)
    status = weir_writer_open(shard->path, false, &shard->file);
  return status;
}

static void shard_free(shard_t* shard) {
  if (shard->file) weir_status_destroy(weir_writer_close(shard->file));
  weir_strbuf_free(&shard->text);
  weir_free(shard->path);
  weir_free(shard);
}

static weir_status_t* shard_finish(const weir_snapshot_writer_t* self, shard_t* shard) {
  weir_strbuf_t packed = {0};
  if (!self->compression.is_compressed) {
    weir_writer_t* file = shard->file;
    shard->file = NULL;
    return weir_writer_close(file);
  }
  WEIR_TRY(weir_strbuf_finish(&shard->text));
  weir_status_t* status =
      weir_deflate(self->compression.format, -1, weir_strbuf_view(&shard->text), &packed);
  if (!status) status = weir_strbuf_finish(&packed);
  if (!status) status = weir_fs_write_all(shard->path, weir_strbuf_view(&packed));
  weir_strbuf_free(&packed);
  return status;
}

static weir_status_t* find_shard(weir_snapshot_writer_t* self, int64_t number, shard_t** out) {
  const weir_view_t key = weir_view((const char*)&number, sizeof(number));
  *out = weir_map_find(&self->shards, key);
  if (*out) return NULL;
  shard_t* shard = weir_calloc(1, sizeof(*shard));
  if (!shard) return weir_out_of_memory();
  weir_status_t* status = shard_open(self, number, shard);
  if (!status) status = weir_map_put(&self->shards, key, shard);
  if (status) shard_free(shard);
  else *out = shard;
  return status;
}

// ---- the writer ----

static weir_status_t* name_run(weir_snapshot_writer_t* self) {
  char name[32];
  self->run = weir_random_entropy();
  snprintf(name, sizeof(name), "%" PRIu64, self->run);
  WEIR_TRY(weir_snapshot_join(self->path, name, &self->run_folder));
  return weir_fs_make_directories(self->run_folder);
}

weir_status_t* weir_snapshot_writer_create(weir_view_t path, weir_compression_t compression,
                                           const weir_data_t* dataset,
                                           weir_snapshot_writer_t** out_writer) {
  if (path.size > 0 && memchr(path.data, '\0', path.size))
    return WEIR_STATUS(INVALID_ARGUMENT, "path '%.*s' holds a zero byte", WEIR_VIEW_ARG(path));
  weir_snapshot_writer_t* self = weir_calloc(1, sizeof(*self));
  if (!self) return weir_out_of_memory();
  self->shards.owns_keys = true;
  self->compression = compression;
  self->width = dataset->count;
  self->path = weir_strndup(path.data ? path.data : "", path.size);
  self->types = weir_alloc_array((size_t)dataset->count, sizeof(*self->types));
  weir_status_t* status = self->path && self->types ? NULL : weir_out_of_memory();
  if (!status) memcpy(self->types, dataset->types, (size_t)self->width * sizeof(*self->types));
  if (!status) status = name_run(self);
  if (status) weir_snapshot_writer_destroy(self);
  else *out_writer = self;
  return status;
}

void weir_snapshot_writer_destroy(weir_snapshot_writer_t* writer) {
  if (!writer) return;
  weir_map_entry_t* entry = NULL;
  for (size_t i = 0; (entry = weir_map_next(&writer->shards, &i));) shard_free(entry->value);
  weir_map_free(&writer->shards);
  weir_free(writer->types);
  weir_free(writer->run_folder);
  weir_free(writer->path);
  weir_free(writer);
}

weir_status_t* weir_snapshot_writer_add(weir_snapshot_writer_t* writer, int64_t shard,
                                        weir_tensor_t* const* element) {
  shard_t* to = NULL;
  WEIR_TRY(find_shard(writer, shard, &to));
  weir_strbuf_t text = {0};
  weir_status_t* status = NULL;
  for (int i = 0; i < writer->width && !status; ++i) {
    text.size = 0;
    status = weir_tensor_write(element[i], &text);
    if (!status) status = weir_strbuf_finish(&text);
    if (!status)
      status = weir_record_write(to->file ? to->file : &to->memory, text.data, text.size);
  }
  weir_strbuf_free(&text);
  ++writer->count;
  return status;
}

static void write_metadata(const weir_snapshot_writer_t* self, weir_strbuf_t* out) {
  struct timespec now = {0};
  char run[32];
  timespec_get(&now, TIME_UTC);
  snprintf(run, sizeof(run), "%" PRIu64, self->run);
  weir_wire_put_string(out, RUN_ID, run);
  weir_wire_put_int(out, TIMESTAMP, (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000);
  weir_wire_put_int(out, VERSION, FORMAT_VERSION);
  size_t types = weir_wire_begin(out, DTYPE);
  for (int i = 0; i < self->width; ++i) weir_wire_put_varint(out, (uint64_t)self->types[i]);
  weir_wire_end(out, types);
  weir_wire_put_int(out, COUNT, self->count);
  weir_wire_put_bool(out, FINALIZED, true);
}

weir_status_t* weir_snapshot_writer_finish(weir_snapshot_writer_t* writer) {
  weir_map_entry_t* entry = NULL;
  weir_strbuf_t text = {0};
  char* path = NULL;
  for (size_t i = 0; (entry = weir_map_next(&writer->shards, &i));)
    WEIR_TRY(shard_finish(writer, entry->value));
  WEIR_TRY(weir_snapshot_join(writer->path, METADATA, &path));
  write_metadata(writer, &text);
  weir_status_t* status = weir_strbuf_finish(&text);
  if (!status) status = weir_fs_replace(path, weir_strbuf_view(&text));
  weir_strbuf_free(&text);
  weir_free(path);
  return status;
}

// ---- reading ----

static weir_status_t* parse_metadata(weir_view_t text, const char* path, char** out_run_folder,
                                     int64_t* out_count) {
  weir_wire_reader_t r = weir_wire_reader(text);
  weir_view_t run = {0};
  int64_t version = 0;
  while (weir_wire_next(&r)) {
    if (r.field == RUN_ID && r.type == WEIR_WIRE_BYTES) run = r.bytes;
    if (r.field == VERSION) version = weir_wire_int(&r);
    if (r.field == COUNT) *out_count = weir_wire_int(&r);
  }
  WEIR_TRY(weir_wire_check(&r, "snapshot metadata"));
  if (version != FORMAT_VERSION)
    return WEIR_STATUS(UNIMPLEMENTED, "the dataset in '%s' is of format %lld, not %d", path,
                       (long long)version, FORMAT_VERSION);
  bool is_name = run.size > 0 && !memchr(run.data, '\0', run.size);
  for (size_t i = 0; i < run.size; ++i) is_name &= run.data[i] >= '0' && run.data[i] <= '9';
  if (!is_name) return WEIR_STATUS(DATA_LOSS, "the dataset in '%s' names no run", path);
  char* name = weir_strndup(run.data, run.size);
  if (!name) return weir_out_of_memory();
  weir_status_t* status = weir_snapshot_join(path, name, out_run_folder);
  weir_free(name);
  return status;
}

weir_status_t* weir_snapshot_find(const char* path, char** out_run_folder, int64_t* out_count) {
  char* metadata = NULL;
  weir_strbuf_t text = {0};
  WEIR_TRY(weir_snapshot_join(path, METADATA, &metadata));
  weir_status_t* status =
      weir_fs_exists(metadata)
          ? weir_fs_read_all(metadata, &text)
          : WEIR_STATUS(NOT_FOUND, "Could not find metadata file [%s]", metadata);
  if (!status) status = parse_metadata(weir_strbuf_view(&text), path, out_run_folder, out_count);
  weir_strbuf_free(&text);
  weir_free(metadata);
  return status;
}

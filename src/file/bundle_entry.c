// bundle_entry.c — The messages and file names of a checkpoint, and its index.
#include <stdlib.h>

#include "base/alloc.h"
#include "file/bundle.h"
#include "file/table.h"
#include "file/temporary.h"
#include "tensor/shape.h"
#include "wire/wire.h"

// kTensorBundleVersion: the format written, and the oldest reader that understands it is 0.
enum { kProducer = 1, kLittleEndian = 0 };

void weir_bundle_append_index_path(const char* prefix, weir_strbuf_t* out) {
  weir_strbuf_printf(out, "%s.index", prefix);
}

void weir_bundle_append_data_path(const char* prefix, int shard, int shard_count,
                                  weir_strbuf_t* out) {
  weir_strbuf_printf(out, "%s.data-%05d-of-%05d", prefix, shard, shard_count);
}

// ---- BundleHeaderProto {1: num_shards, 2: endianness, 3: version {1: producer, 2: min_consumer}}
// ----

static weir_status_t* check_version(weir_view_t proto) {
  int64_t min_consumer = 0;
  weir_wire_reader_t reader = weir_wire_reader(proto);
  while (weir_wire_next(&reader)) {
    if (reader.field == 2) min_consumer = weir_wire_int(&reader);
  }
  WEIR_TRY(weir_wire_check(&reader, "VersionDef"));
  if (min_consumer <= kProducer) return NULL;
  return WEIR_STATUS(UNIMPLEMENTED, "Checkpoint needs a reader of version %lld, this one is %d",
                     (long long)min_consumer, kProducer);
}

weir_status_t* weir_bundle_parse_header(weir_view_t proto, int* out_shard_count) {
  int64_t shard_count = 0;
  int64_t endianness = kLittleEndian;
  weir_wire_reader_t reader = weir_wire_reader(proto);
  while (weir_wire_next(&reader)) {
    if (reader.field == 1) shard_count = weir_wire_int(&reader);
    if (reader.field == 2) endianness = weir_wire_int(&reader);
    if (reader.field == 3) WEIR_TRY(check_version(reader.bytes));
  }
  WEIR_TRY(weir_wire_check(&reader, "BundleHeaderProto"));
  if (endianness != kLittleEndian) {
    return WEIR_STATUS(UNIMPLEMENTED, "Checkpoint was written by a big-endian machine");
  }
  if (shard_count < 0 || shard_count > INT32_MAX) {
    return WEIR_STATUS(DATA_LOSS, "Checkpoint claims %lld shards", (long long)shard_count);
  }
  *out_shard_count = (int)shard_count;
  return NULL;
}

static void write_header(int shard_count, weir_strbuf_t* out) {
  if (shard_count > 0) weir_wire_put_int(out, 1, shard_count);
  size_t begin = weir_wire_begin(out, 3);
  weir_wire_put_int(out, 1, kProducer);
  weir_wire_end(out, begin);
}

// ---- BundleEntryProto {1: dtype, 2: shape, 3: shard_id, 4: offset, 5: size, 6: crc32c, 7: slices}
// ----

static weir_status_t* parse_dims(weir_view_t proto, weir_bundle_entry_t* entry) {
  weir_arena_t arena = {0};
  const weir_shape_t* shape = NULL;
  weir_status_t* status = weir_shape_parse(proto, &arena, &shape);
  if (!status && (!weir_shape_is_full(shape) || shape->rank > WEIR_MAX_RANK)) {
    status = WEIR_STATUS(DATA_LOSS, "checkpoint entry has an incomplete shape");
  }
  if (!status) {
    entry->rank = shape->rank;
    for (int i = 0; i < shape->rank; ++i) entry->dims[i] = shape->dims[i];
  }
  weir_arena_free(&arena);
  return status;
}

static weir_status_t* check_entry(const weir_bundle_entry_t* entry, int64_t shard, int64_t offset,
                                  int64_t size) {
  int64_t count = 0;
  if (!weir_dtype_is_valid(entry->dtype)) {
    return WEIR_STATUS(DATA_LOSS, "checkpoint entry has the unknown type %d", (int)entry->dtype);
  }
  if (shard < 0 || shard > INT32_MAX || offset < 0 || size < 0 || size > INT64_MAX - offset) {
    return WEIR_STATUS(DATA_LOSS,
                       "checkpoint entry has a bad place: shard %lld, offset %lld, size %lld",
                       (long long)shard, (long long)offset, (long long)size);
  }
  WEIR_TRY(weir_shape_count(entry->dtype, entry->rank, entry->dims, &count));
  return NULL;
}

weir_status_t* weir_bundle_parse_entry(weir_view_t proto, weir_bundle_entry_t* out_entry) {
  int64_t dtype = 0;
  int64_t shard = 0;
  int64_t offset = 0;
  int64_t size = 0;
  *out_entry = (weir_bundle_entry_t){.proto = proto};
  weir_wire_reader_t reader = weir_wire_reader(proto);
  while (weir_wire_next(&reader)) {
    if (reader.field == 1) dtype = weir_wire_int(&reader);
    if (reader.field == 2) WEIR_TRY(parse_dims(reader.bytes, out_entry));
    if (reader.field == 3) shard = weir_wire_int(&reader);
    if (reader.field == 4) offset = weir_wire_int(&reader);
    if (reader.field == 5) size = weir_wire_int(&reader);
    if (reader.field == 6) out_entry->crc = (uint32_t)reader.value;
    if (reader.field == 7) ++out_entry->slice_count;
  }
  WEIR_TRY(weir_wire_check(&reader, "BundleEntryProto"));
  out_entry->dtype =
      dtype > 0 && dtype < WEIR_DTYPE_COUNT ? (weir_dtype_t)dtype : WEIR_DTYPE_INVALID;
  WEIR_TRY(check_entry(out_entry, shard, offset, size));
  out_entry->shard = (int)shard;
  out_entry->offset = (uint64_t)offset;
  out_entry->size = (uint64_t)size;
  return NULL;
}

void weir_bundle_write_entry(const weir_bundle_entry_t* entry, weir_strbuf_t* out) {
  weir_wire_put_int(out, 1, entry->dtype);
  size_t begin = weir_wire_begin(out, 2);
  weir_shape_write_dims(entry->rank, entry->dims, out);
  weir_wire_end(out, begin);
  if (entry->shard != 0) weir_wire_put_int(out, 3, entry->shard);
  if (entry->offset != 0) weir_wire_put_int(out, 4, (int64_t)entry->offset);
  if (entry->size != 0) weir_wire_put_int(out, 5, (int64_t)entry->size);
  if (entry->crc != 0) weir_wire_put_fixed32(out, 6, entry->crc);
}

// ---- the index ----

static int compare_rows(const void* a, const void* b) {
  return weir_view_compare(((const weir_bundle_row_t*)a)->key, ((const weir_bundle_row_t*)b)->key);
}

static weir_status_t* write_table(weir_writer_t* writer, int shard_count,
                                  const weir_bundle_row_t* rows, size_t row_count) {
  weir_strbuf_t header = {0};
  weir_table_builder_t builder = weir_table_builder(writer);
  write_header(shard_count, &header);
  weir_status_t* status = weir_strbuf_finish(&header);
  if (!status) status = weir_table_add(&builder, weir_view("", 0), weir_strbuf_view(&header));
  for (size_t i = 0; i < row_count && !status; ++i) {
    status = weir_table_add(&builder, rows[i].key, rows[i].proto);
  }
  if (!status) status = weir_table_finish(&builder);
  if (!status) status = weir_writer_sync(writer);
  weir_table_builder_free(&builder);
  weir_strbuf_free(&header);
  return status;
}

weir_status_t* weir_bundle_write_index(const char* prefix, int shard_count, weir_bundle_row_t* rows,
                                       size_t row_count) {
  weir_strbuf_t path = {0};
  weir_strbuf_t temporary = {0};
  weir_writer_t* writer = NULL;
  weir_bundle_append_index_path(prefix, &path);
  weir_bundle_append_index_path(prefix, &temporary);
  weir_temporary_append(&temporary);
  if (row_count > 1) qsort(rows, row_count, sizeof *rows, compare_rows);
  weir_status_t* status = weir_strbuf_finish(&path);
  if (!status) status = weir_strbuf_finish(&temporary);
  if (!status) status = weir_writer_open(temporary.data, false, &writer);
  if (status) goto done;
  status = write_table(writer, shard_count, rows, row_count);
  weir_status_t* closed = weir_writer_close(writer);
  if (!status) {
    status = closed;
  } else {
    weir_status_destroy(closed);
  }
  if (!status) status = weir_fs_rename(temporary.data, path.data);
  if (status) {
    weir_status_destroy(weir_fs_remove(temporary.data));
  } else {
    status = weir_fs_sync_parent(path.data);
    weir_temporary_clean(path.data);  // of saves that were killed
  }
done:
  weir_strbuf_free(&path);
  weir_strbuf_free(&temporary);
  return status;
}

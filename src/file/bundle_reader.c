// bundle_reader.c — Reading checkpoints.
#include "base/alloc.h"
#include "base/crc32c.h"
#include "base/thread.h"
#include "file/bundle.h"
#include "file/coding.h"
#include "file/table.h"
#include "wire/wire.h"

struct weir_bundle_t {
  char* prefix;
  weir_strbuf_t index;  // the whole index file
  weir_table_t table;   // over |index|
  int shard_count;
  weir_mutex_t mu;
  weir_file_t** shards;  // guarded by mu: opened when first needed
};

// ---- opening ----

static weir_status_t* read_header(weir_bundle_t* bundle) {
  bool found = false;
  weir_table_cursor_t cursor = weir_table_cursor(&bundle->table);
  weir_status_t* status = weir_table_next(&cursor, &found);
  if (!status && (!found || weir_table_key(&cursor).size != 0)) {
    status = WEIR_STATUS(DATA_LOSS, "checkpoint has no header");
  }
  if (!status) status = weir_bundle_parse_header(weir_table_value(&cursor), &bundle->shard_count);
  weir_table_cursor_free(&cursor);
  return status;
}

static weir_status_t* open_index(weir_bundle_t* bundle) {
  weir_strbuf_t path = {0};
  weir_bundle_append_index_path(bundle->prefix, &path);
  weir_status_t* status = weir_strbuf_finish(&path);
  if (!status) status = weir_fs_read_all(path.data, &bundle->index);
  if (status) goto done;
  status = weir_table_open(weir_strbuf_view(&bundle->index), &bundle->table);
  if (!status) status = read_header(bundle);
  if (status) status = weir_status_prefix(status, "%s: ", path.data);
done:
  weir_strbuf_free(&path);
  return status;
}

weir_status_t* weir_bundle_open(const char* prefix, weir_bundle_t** out_bundle) {
  weir_bundle_t* bundle = weir_calloc(1, sizeof *bundle);
  if (!bundle) return weir_out_of_memory();
  weir_mutex_init(&bundle->mu);
  bundle->prefix = weir_strdup(prefix);
  weir_status_t* status = bundle->prefix ? open_index(bundle) : weir_out_of_memory();
  if (!status && bundle->shard_count > 0) {
    bundle->shards = weir_calloc((size_t)bundle->shard_count, sizeof(weir_file_t*));
    if (!bundle->shards) status = weir_out_of_memory();
  }
  if (status) {
    weir_bundle_close(bundle);
    return status;
  }
  *out_bundle = bundle;
  return NULL;
}

void weir_bundle_close(weir_bundle_t* bundle) {
  if (!bundle) return;
  for (int i = 0; bundle->shards && i < bundle->shard_count; ++i)
    weir_file_close(bundle->shards[i]);
  weir_free(bundle->shards);
  weir_strbuf_free(&bundle->index);
  weir_mutex_destroy(&bundle->mu);
  weir_free(bundle->prefix);
  weir_free(bundle);
}

int weir_bundle_shard_count(const weir_bundle_t* bundle) { return bundle->shard_count; }

// ---- entries ----

weir_status_t* weir_bundle_find(const weir_bundle_t* bundle, weir_view_t key,
                                weir_bundle_entry_t* out_entry) {
  bool found = false;
  weir_table_cursor_t cursor = weir_table_cursor(&bundle->table);
  weir_status_t* status = weir_table_seek(&cursor, key, &found);
  if (!status && (!found || key.size == 0 || !weir_view_equal(weir_table_key(&cursor), key))) {
    status = WEIR_STATUS(NOT_FOUND, "Key %.*s not found in checkpoint", WEIR_VIEW_ARG(key));
  } else if (!status) {
    status = weir_bundle_parse_entry(weir_table_value(&cursor), out_entry);
    if (status) status = weir_status_prefix(status, "entry %.*s: ", WEIR_VIEW_ARG(key));
  }
  weir_table_cursor_free(&cursor);
  return status;
}

weir_status_t* weir_bundle_list(const weir_bundle_t* bundle, weir_names_t* out_names) {
  weir_table_cursor_t cursor = weir_table_cursor(&bundle->table);
  bool found = false;
  weir_status_t* status = weir_table_next(&cursor, &found);
  while (!status && found) {
    weir_view_t key = weir_table_key(&cursor);
    if (key.size > 0 && !weir_slice_is_key(key)) status = weir_names_add(out_names, key);
    if (!status) status = weir_table_next(&cursor, &found);
  }
  weir_table_cursor_free(&cursor);
  return status;
}

// ---- bytes ----

static weir_status_t* shard_locked(weir_bundle_t* bundle, int shard, weir_file_t** out_file)
    WEIR_REQUIRES(bundle->mu) {
  if (!bundle->shards[shard]) {
    weir_strbuf_t path = {0};
    weir_bundle_append_data_path(bundle->prefix, shard, bundle->shard_count, &path);
    weir_status_t* status = weir_strbuf_finish(&path);
    if (!status) status = weir_file_open(path.data, &bundle->shards[shard]);
    weir_strbuf_free(&path);
    if (status) return status;
  }
  *out_file = bundle->shards[shard];
  return NULL;
}

// The data file of an entry, which must hold all of the entry's bytes: so a false size is refused
// before memory is taken for it.
static weir_status_t* find_shard(weir_bundle_t* bundle, const weir_bundle_entry_t* entry,
                                 weir_file_t** out_file) {
  if (entry->shard >= bundle->shard_count) {
    return WEIR_STATUS(DATA_LOSS, "shard %d of a checkpoint of %d shards", entry->shard,
                       bundle->shard_count);
  }
  weir_mutex_lock(&bundle->mu);
  weir_status_t* status = shard_locked(bundle, entry->shard, out_file);
  weir_mutex_unlock(&bundle->mu);
  if (status) return status;
  if (entry->offset + entry->size <= (*out_file)->size) return NULL;
  return WEIR_STATUS(DATA_LOSS, "%s; file ends early: %llu bytes at offset %llu of %llu",
                     (*out_file)->path, (unsigned long long)entry->size,
                     (unsigned long long)entry->offset, (unsigned long long)(*out_file)->size);
}

static weir_status_t* check_crc(const weir_bundle_entry_t* entry, uint32_t crc) {
  if (weir_crc32c_unmask(entry->crc) == crc) return NULL;
  return WEIR_STATUS(DATA_LOSS,
                     "Checksum does not match: stored %u vs. calculated on the restored bytes %u",
                     weir_crc32c_unmask(entry->crc), crc);
}

static weir_status_t* read_plain(weir_file_t* file, const weir_bundle_entry_t* entry,
                                 weir_tensor_t* tensor) {
  size_t size = weir_tensor_byte_size(tensor);
  if (size != entry->size) {
    return WEIR_STATUS(DATA_LOSS,
                       "Invalid size in bundle entry: stored size %llu; expected size %zu",
                       (unsigned long long)entry->size, size);
  }
  WEIR_TRY(weir_file_read_exactly(file, entry->offset, tensor->data, size));
  return check_crc(entry, weir_crc32c(tensor->data, size));
}

// Lengths as varints, a masked crc32c of the lengths, then the bytes. The checksums take each
// length as a uint32 (a uint64 where it does not fit), not its varint.
static weir_status_t* decode_strings(const weir_bundle_entry_t* entry, weir_view_t bytes,
                                     weir_tensor_t* tensor) {
  weir_view_t lengths = bytes;
  uint32_t crc = 0;
  uint64_t length = 0;
  for (int64_t i = 0; i < tensor->count; ++i) {
    uint8_t fixed[8];
    if (!weir_take_varint(&bytes, &length)) return WEIR_STATUS(DATA_LOSS, "cut off string lengths");
    weir_encode64(fixed, length);
    crc = weir_crc32c_extend(crc, fixed, length <= UINT32_MAX ? 4 : 8);
  }
  if (bytes.size < 4 || weir_crc32c_unmask(weir_decode32(bytes.data)) != crc) {
    return WEIR_STATUS(DATA_LOSS, "The length checksum does not match: expected %u", crc);
  }
  crc = weir_crc32c_extend(crc, bytes.data, bytes.size);
  bytes = weir_view(bytes.data + 4, bytes.size - 4);
  for (int64_t i = 0; i < tensor->count; ++i) {
    bool has_length = weir_take_varint(&lengths, &length);
    if (!has_length || length > bytes.size) return WEIR_STATUS(DATA_LOSS, "cut off string");
    WEIR_TRY(weir_tensor_set_string(tensor, i, bytes.data, (size_t)length));
    bytes = weir_view(bytes.data + length, bytes.size - (size_t)length);
  }
  if (bytes.size != 0)
    return WEIR_STATUS(DATA_LOSS, "%zu bytes follow the last string", bytes.size);
  return check_crc(entry, crc);
}

static weir_status_t* decode_variants(const weir_bundle_entry_t* entry, weir_view_t bytes,
                                      weir_tensor_t* tensor) {
  uint32_t crc = 0;
  WEIR_TRY(weir_bundle_parse_variants(bytes, tensor, &crc));
  return check_crc(entry, crc);
}

// Of strings and variants.
static weir_status_t* read_coded(weir_file_t* file, const weir_bundle_entry_t* entry,
                                 weir_tensor_t* tensor) {
  char* data = weir_malloc((size_t)entry->size);
  if (!data) return weir_out_of_memory();
  weir_view_t bytes = weir_view(data, (size_t)entry->size);
  weir_status_t* status = weir_file_read_exactly(file, entry->offset, data, bytes.size);
  if (!status)
    status = entry->dtype == WEIR_DTYPE_STRING ? decode_strings(entry, bytes, tensor)
                                               : decode_variants(entry, bytes, tensor);
  weir_free(data);
  return status;
}

static weir_status_t* check_place(weir_bundle_t* bundle, const weir_table_cursor_t* cursor) {
  weir_bundle_entry_t entry;
  weir_file_t* file = NULL;
  weir_view_t key = weir_table_key(cursor);
  if (key.size == 0) return NULL;  // the header
  weir_status_t* status = weir_bundle_parse_entry(weir_table_value(cursor), &entry);
  if (status) return weir_status_prefix(status, "entry %.*s: ", WEIR_VIEW_ARG(key));
  return entry.slice_count > 0 ? NULL : find_shard(bundle, &entry, &file);
}

weir_status_t* weir_bundle_check_files(weir_bundle_t* bundle) {
  weir_table_cursor_t cursor = weir_table_cursor(&bundle->table);
  bool found = false;
  weir_status_t* status = weir_table_next(&cursor, &found);
  while (!status && found) {
    status = check_place(bundle, &cursor);
    if (!status) status = weir_table_next(&cursor, &found);
  }
  weir_table_cursor_free(&cursor);
  return status;
}

// Each string has a length of at least one byte, a variant five with its checksum; each other
// element its size.
static weir_status_t* check_size(const weir_bundle_entry_t* entry) {
  int64_t count = 0;
  WEIR_TRY(weir_shape_count(entry->dtype, entry->rank, entry->dims, &count));
  size_t least = entry->dtype == WEIR_DTYPE_STRING    ? 1
                 : entry->dtype == WEIR_DTYPE_VARIANT ? 5
                                                      : weir_dtype_size(entry->dtype);
  if ((uint64_t)count <= entry->size / least) return NULL;
  return WEIR_STATUS(DATA_LOSS, "Invalid size in bundle entry: stored size %llu for %lld elements",
                     (unsigned long long)entry->size, (long long)count);
}

// Reads the tensor of an entry that is stored whole.
static weir_status_t* read_entry(weir_bundle_t* bundle, const weir_bundle_entry_t* entry,
                                 weir_tensor_t** out_tensor) {
  weir_file_t* file = NULL;
  weir_tensor_t* tensor = NULL;
  bool is_coded = entry->dtype == WEIR_DTYPE_STRING || entry->dtype == WEIR_DTYPE_VARIANT;
  if (!is_coded && !weir_dtype_is_plain(entry->dtype)) {
    return WEIR_STATUS(UNIMPLEMENTED, "reading tensors of type %s from checkpoints",
                       weir_dtype_name(entry->dtype));
  }
  WEIR_TRY(check_size(entry));
  WEIR_TRY(find_shard(bundle, entry, &file));
  WEIR_TRY(weir_tensor_create(entry->dtype, entry->rank, entry->dims, &tensor));
  weir_status_t* status =
      is_coded ? read_coded(file, entry, tensor) : read_plain(file, entry, tensor);
  if (status) {
    weir_tensor_release(tensor);
    return status;
  }
  *out_tensor = tensor;
  return NULL;
}

// ---- slices ----

// Reads the stored part |part| and copies what it shares with |wanted|; adds to *|covered|.
static weir_status_t* copy_part(weir_bundle_t* bundle, weir_view_t key,
                                const weir_bundle_entry_t* full, const weir_slice_t* part,
                                const weir_slice_t* wanted, weir_tensor_t* dst, int64_t* covered) {
  weir_slice_t resolved = *part;
  weir_slice_t common;
  weir_bundle_entry_t entry;
  weir_tensor_t* src = NULL;
  weir_strbuf_t part_key = {0};
  WEIR_TRY(weir_slice_resolve(&resolved, full->rank, full->dims));
  if (!weir_slice_intersect(&resolved, wanted, &common)) return NULL;
  weir_slice_append_key(key, part, &part_key);
  weir_status_t* status = weir_strbuf_finish(&part_key);
  if (!status) status = weir_bundle_find(bundle, weir_strbuf_view(&part_key), &entry);
  if (status) goto done;
  if (entry.dtype != full->dtype || entry.rank != full->rank ||
      memcmp(entry.dims, resolved.lengths, sizeof(int64_t) * (size_t)full->rank) != 0) {
    status = WEIR_STATUS(DATA_LOSS,
                         "a stored slice differs in type or shape from what its tensor lists");
    goto done;
  }
  status = read_entry(bundle, &entry, &src);
  if (!status) status = weir_slice_copy(&common, &resolved, src, wanted, dst);
  if (!status) *covered += weir_slice_count(&common);
done:
  weir_tensor_release(src);
  weir_strbuf_free(&part_key);
  return status;
}

static weir_status_t* insufficient(weir_view_t key, const weir_slice_t* slice) {
  weir_strbuf_t text = {0};
  weir_slice_append(slice, &text);
  weir_status_t* status = WEIR_STATUS(
      INVALID_ARGUMENT,
      "Does not have sufficient slices for partitioned tensor %.*s to restore in slice_spec: %.*s",
      WEIR_VIEW_ARG(key), WEIR_VIEW_ARG(weir_strbuf_view(&text)));
  weir_strbuf_free(&text);
  return status;
}

static weir_status_t* read_parts(weir_bundle_t* bundle, weir_view_t key,
                                 const weir_bundle_entry_t* full, const weir_slice_t* slice,
                                 const weir_slice_t* wanted, weir_tensor_t* dst) {
  int64_t covered = 0;
  weir_wire_reader_t reader = weir_wire_reader(full->proto);
  while (weir_wire_next(&reader)) {
    weir_slice_t part;
    if (reader.field != 7) continue;
    WEIR_TRY(weir_slice_parse(reader.bytes, &part));
    WEIR_TRY(copy_part(bundle, key, full, &part, wanted, dst, &covered));
  }
  // Stored slices never overlap: a writer refuses a key twice and partitioners cut boxes.
  return covered == dst->count ? NULL : insufficient(key, slice);
}

static weir_status_t* copy_box(const weir_bundle_entry_t* full, const weir_tensor_t* whole,
                               const weir_slice_t* wanted, weir_tensor_t* dst) {
  weir_slice_t all;
  weir_slice_set_full(&all, full->rank);
  WEIR_TRY(weir_slice_resolve(&all, full->rank, full->dims));
  return dst->count > 0 ? weir_slice_copy(wanted, &all, whole, wanted, dst) : NULL;
}

static weir_status_t* read_box(weir_bundle_t* bundle, weir_view_t key,
                               const weir_bundle_entry_t* full, const weir_slice_t* slice,
                               weir_tensor_t** out_tensor) {
  weir_slice_t wanted = *slice;
  weir_tensor_t* whole = NULL;
  weir_tensor_t* dst = NULL;
  WEIR_TRY(weir_slice_resolve(&wanted, full->rank, full->dims));
  weir_status_t* status = weir_tensor_create(full->dtype, full->rank, wanted.lengths, &dst);
  if (status) goto done;
  if (full->slice_count > 0) {
    status = read_parts(bundle, key, full, slice, &wanted, dst);
  } else {
    status = read_entry(bundle, full, &whole);
    if (!status) status = copy_box(full, whole, &wanted, dst);
  }
  if (status) goto done;
  *out_tensor = dst;
  dst = NULL;
done:
  weir_tensor_release(whole);
  weir_tensor_release(dst);
  return status;
}

weir_status_t* weir_bundle_read_slice(weir_bundle_t* bundle, weir_view_t key,
                                      const weir_slice_t* slice, weir_tensor_t** out_tensor) {
  weir_bundle_entry_t entry;
  WEIR_TRY(weir_bundle_find(bundle, key, &entry));
  weir_status_t* status;
  bool is_whole = slice->rank == entry.rank && weir_slice_is_full(slice, entry.dims);
  if (entry.slice_count == 0 && is_whole) {
    status = read_entry(bundle, &entry, out_tensor);
  } else {
    status = read_box(bundle, key, &entry, slice, out_tensor);
  }
  if (weir_status_code(status) != WEIR_DATA_LOSS) return status;
  return weir_status_prefix(status, "TensorBundle at %s, key %.*s: ", bundle->prefix,
                            WEIR_VIEW_ARG(key));
}

weir_status_t* weir_bundle_read(weir_bundle_t* bundle, weir_view_t key,
                                weir_tensor_t** out_tensor) {
  weir_bundle_entry_t entry;
  weir_slice_t all;
  WEIR_TRY(weir_bundle_find(bundle, key, &entry));
  weir_slice_set_full(&all, entry.rank);
  return weir_bundle_read_slice(bundle, key, &all, out_tensor);
}

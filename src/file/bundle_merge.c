// bundle_merge.c — Merging checkpoints that the tasks of a cluster wrote, each its own, into one.
#include "base/alloc.h"
#include "base/map.h"
#include "file/bundle.h"
#include "file/roots.h"
#include "file/table.h"
#include "wire/wire.h"

// An entry of the merged index.
typedef struct merged_row_t {
  bool is_partitioned;
  weir_strbuf_t proto;
} merged_row_t;

typedef struct merge_t {
  const char* destination;
  weir_map_t rows;       // key → merged_row_t, owned
  weir_names_t data;     // data files of the parts, in the order of their new shard numbers
  weir_names_t indexes;  // index files of the parts
} merge_t;

static void merge_free(merge_t* merge) {
  weir_map_entry_t* e;
  for (size_t i = 0; (e = weir_map_next(&merge->rows, &i));) {
    weir_strbuf_free(&((merged_row_t*)e->value)->proto);
    weir_free(e->value);
  }
  weir_map_free(&merge->rows);
  weir_names_free(&merge->data);
  weir_names_free(&merge->indexes);
}

// Lists the slices of |proto| also in |row|.
static weir_status_t* append_slices(weir_view_t proto, merged_row_t* row) {
  weir_wire_reader_t reader = weir_wire_reader(proto);
  while (weir_wire_next(&reader)) {
    if (reader.field == 7) weir_strbuf_append(&row->proto, reader.raw.data, reader.raw.size);
  }
  return weir_strbuf_finish(&row->proto);
}

static weir_status_t* same_tensor(weir_view_t key, const weir_bundle_entry_t* entry,
                                  const merged_row_t* row) {
  weir_bundle_entry_t other;
  WEIR_TRY(weir_bundle_parse_entry(weir_strbuf_view(&row->proto), &other));
  if (row->is_partitioned && entry->slice_count > 0 && other.dtype == entry->dtype &&
      other.rank == entry->rank &&
      memcmp(other.dims, entry->dims, sizeof(int64_t) * (size_t)entry->rank) == 0) {
    return NULL;
  }
  return WEIR_STATUS(INVALID_ARGUMENT, "Tensor %.*s is in more than one of the merged checkpoints",
                     WEIR_VIEW_ARG(key));
}

static weir_status_t* merge_row(merge_t* merge, weir_view_t key, weir_view_t proto,
                                int first_shard) {
  weir_bundle_entry_t entry;
  WEIR_TRY(weir_bundle_parse_entry(proto, &entry));
  merged_row_t* row = weir_map_find(&merge->rows, key);
  if (row) {
    WEIR_TRY(same_tensor(key, &entry, row));
    return append_slices(proto, row);
  }
  row = weir_calloc(1, sizeof *row);
  if (!row) return weir_out_of_memory();
  weir_status_t* status = weir_map_put(&merge->rows, key, row);
  if (status) {
    weir_free(row);
    return status;
  }
  row->is_partitioned = entry.slice_count > 0;
  if (!row->is_partitioned) entry.shard += first_shard;
  weir_bundle_write_entry(&entry, &row->proto);
  return append_slices(proto, row);
}

static weir_status_t* merge_table(merge_t* merge, const weir_table_t* table, int first_shard,
                                  int* out_shard_count) {
  bool found = false;
  weir_table_cursor_t cursor = weir_table_cursor(table);
  weir_status_t* status = weir_table_next(&cursor, &found);
  if (!status && (!found || weir_table_key(&cursor).size != 0)) {
    status = WEIR_STATUS(DATA_LOSS, "checkpoint has no header");
  }
  if (!status) status = weir_bundle_parse_header(weir_table_value(&cursor), out_shard_count);
  if (!status) status = weir_table_next(&cursor, &found);
  while (!status && found) {
    status = merge_row(merge, weir_table_key(&cursor), weir_table_value(&cursor), first_shard);
    if (!status) status = weir_table_next(&cursor, &found);
  }
  weir_table_cursor_free(&cursor);
  return status;
}

// Reads the index of one part and notes its files.
static weir_status_t* merge_part(merge_t* merge, const char* prefix, const char* index_path) {
  weir_strbuf_t index = {0};
  weir_strbuf_t path = {0};
  weir_table_t table;
  int shard_count = 0;
  int first_shard = (int)merge->data.count;
  weir_status_t* status = weir_fs_read_all(index_path, &index);
  if (status) goto done;
  status = weir_table_open(weir_strbuf_view(&index), &table);
  if (!status) status = merge_table(merge, &table, first_shard, &shard_count);
  if (status) {
    status = weir_status_prefix(status, "%s: ", index_path);
    goto done;
  }
  for (int i = 0; i < shard_count && !status; ++i) {
    path.size = 0;
    weir_bundle_append_data_path(prefix, i, shard_count, &path);
    status = weir_strbuf_finish(&path);
    if (!status) status = weir_names_add(&merge->data, weir_strbuf_view(&path));
  }
  if (!status) status = weir_names_add(&merge->indexes, weir_view_of(index_path));
done:
  weir_strbuf_free(&path);
  weir_strbuf_free(&index);
  return status;
}

// To be kept out is another matter than not to be there.
static weir_status_t* check_roots(const char* path) {
  const weir_fs_t* fs = NULL;
  const char* local = NULL;
  WEIR_TRY(weir_fs_find(path, &fs, &local));
  return weir_roots_check(local, WEIR_ROOTS_OPEN);
}

static weir_status_t* merge_parts(merge_t* merge, const char* const* prefixes, size_t count,
                                  bool allow_missing) {
  weir_strbuf_t path = {0};
  weir_status_t* status = NULL;
  for (size_t i = 0; i < count && !status; ++i) {
    path.size = 0;
    weir_bundle_append_index_path(prefixes[i], &path);
    status = weir_strbuf_finish(&path);
    if (!status) status = check_roots(path.data);
    if (status) break;
    if (weir_fs_exists(path.data)) {
      status = merge_part(merge, prefixes[i], path.data);
    } else if (!allow_missing) {
      status =
          WEIR_STATUS(INVALID_ARGUMENT, "allow_missing_files was set to false and %s did not exist",
                      prefixes[i]);
    }
  }
  weir_strbuf_free(&path);
  if (!status && merge->indexes.count == 0) {
    status = WEIR_STATUS(INVALID_ARGUMENT,
                         "At least one prefix checkpoint file must exist, but none existed.");
  }
  return status;
}

static weir_status_t* rename_data(const merge_t* merge) {
  weir_strbuf_t path = {0};
  weir_status_t* status = NULL;
  for (size_t i = 0; i < merge->data.count && !status; ++i) {
    path.size = 0;
    weir_bundle_append_data_path(merge->destination, (int)i, (int)merge->data.count, &path);
    status = weir_strbuf_finish(&path);
    if (!status) status = weir_fs_rename(merge->data.items[i], path.data);
  }
  if (!status && merge->data.count > 0) status = weir_fs_sync_parent(path.data);
  weir_strbuf_free(&path);
  return status;
}

static weir_status_t* write_index(const merge_t* merge) {
  weir_bundle_row_t* rows = weir_alloc_array(merge->rows.count + 1, sizeof *rows);
  if (!rows) return weir_out_of_memory();
  size_t count = 0;
  weir_map_entry_t* e;
  for (size_t i = 0; (e = weir_map_next(&merge->rows, &i));) {
    weir_view_t proto = weir_strbuf_view(&((merged_row_t*)e->value)->proto);
    rows[count++] = (weir_bundle_row_t){.key = e->key, .proto = proto};
  }
  weir_status_t* status =
      weir_bundle_write_index(merge->destination, (int)merge->data.count, rows, count);
  weir_free(rows);
  return status;
}

// The part whose index is the destination's own, when a part is merged into itself, stays.
static weir_status_t* remove_indexes(const merge_t* merge) {
  weir_strbuf_t own = {0};
  weir_bundle_append_index_path(merge->destination, &own);
  weir_status_t* status = weir_strbuf_finish(&own);
  for (size_t i = 0; i < merge->indexes.count && !status; ++i) {
    if (strcmp(merge->indexes.items[i], own.data) == 0) continue;
    status = weir_fs_remove(merge->indexes.items[i]);
  }
  weir_strbuf_free(&own);
  return status;
}

weir_status_t* weir_bundle_merge(const char* const* prefixes, size_t count, const char* destination,
                                 bool allow_missing) {
  merge_t merge = {.destination = destination, .rows = {.owns_keys = true}};
  weir_view_t parent = weir_path_parent(destination);
  weir_strbuf_t directory = {0};
  weir_status_t* status = merge_parts(&merge, prefixes, count, allow_missing);
  if (status) goto done;
  if (parent.size > 0) {
    weir_strbuf_append(&directory, parent.data, parent.size);
    status = weir_strbuf_finish(&directory);
    if (!status) status = weir_fs_make_directories(directory.data);
  }
  if (!status) status = rename_data(&merge);
  if (!status) status = write_index(&merge);
  if (!status) status = remove_indexes(&merge);
done:
  weir_strbuf_free(&directory);
  merge_free(&merge);
  return status;
}

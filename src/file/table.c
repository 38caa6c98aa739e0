// table.c — Reading sorted tables.
#include "file/table.h"

#include "base/crc32c.h"
#include "file/coding.h"

enum { kTrailerSize = 5 };  // compression, masked crc32c

int weir_view_compare(weir_view_t a, weir_view_t b) {
  size_t size = WEIR_MIN(a.size, b.size);
  int order = size > 0 ? memcmp(a.data, b.data, size) : 0;
  if (order != 0) return order;
  return a.size < b.size ? -1 : a.size > b.size;
}

static weir_status_t* corrupt(const char* what) {
  return WEIR_STATUS(DATA_LOSS, "corrupted table: %s", what);
}

// ---- blocks ----

static weir_status_t* check_trailer(weir_view_t block, const char* trailer) {
  uint32_t crc = weir_crc32c_extend(weir_crc32c(block.data, block.size), trailer, 1);
  if (weir_crc32c_unmask(weir_decode32(trailer + 1)) != crc) {
    return corrupt("block checksum mismatch");
  }
  switch (trailer[0]) {
    case 0: return NULL;
    case 1:
      return WEIR_STATUS(UNIMPLEMENTED,
                         "table block is compressed with snappy, which is not supported");
    default:
      return WEIR_STATUS(DATA_LOSS, "corrupted table: unknown block compression %d", trailer[0]);
  }
}

static weir_status_t* open_block(weir_view_t file, weir_view_t* handle, weir_block_t* out_block) {
  uint64_t offset = 0;
  uint64_t size = 0;
  if (!weir_take_varint(handle, &offset) || !weir_take_varint(handle, &size)) {
    return corrupt("bad block handle");
  }
  size_t limit = file.size - WEIR_TABLE_FOOTER_SIZE;
  if (offset > limit || size > limit - offset || limit - offset - size < kTrailerSize) {
    return corrupt("truncated block read");
  }
  weir_view_t block = weir_view(file.data + offset, (size_t)size);
  WEIR_TRY(check_trailer(block, block.data + block.size));
  if (block.size < 4) return corrupt("bad block contents");
  uint32_t count = weir_decode32(block.data + block.size - 4);
  if (count > (block.size - 4) / 4) return corrupt("bad block contents");
  size_t entries = block.size - 4 - (size_t)count * 4;
  *out_block = (weir_block_t){.entries = weir_view(block.data, entries),
                              .restarts = block.data + entries,
                              .restart_count = count};
  return NULL;
}

static void cursor_rewind(weir_block_cursor_t* cursor, size_t offset) {
  weir_view_t entries = cursor->block.entries;
  cursor->rest = weir_view(entries.data + offset, entries.size - offset);
  cursor->key.size = 0;
  cursor->value = weir_view(NULL, 0);
}

static void cursor_open(weir_block_cursor_t* cursor, weir_block_t block) {
  cursor->block = block;
  cursor_rewind(cursor, 0);
}

static weir_status_t* cursor_next(weir_block_cursor_t* cursor, bool* out_found) {
  *out_found = false;
  if (cursor->rest.size == 0) return NULL;
  uint64_t shared = 0;
  uint64_t unshared = 0;
  uint64_t value_size = 0;
  weir_view_t rest = cursor->rest;
  if (!weir_take_varint(&rest, &shared) || !weir_take_varint(&rest, &unshared) ||
      !weir_take_varint(&rest, &value_size) || shared > cursor->key.size || unshared > rest.size ||
      value_size > rest.size - unshared) {
    return corrupt("bad entry in block");
  }
  cursor->key.size = (size_t)shared;
  weir_strbuf_append(&cursor->key, rest.data, (size_t)unshared);
  WEIR_TRY(weir_strbuf_finish(&cursor->key));
  cursor->value = weir_view(rest.data + unshared, (size_t)value_size);
  size_t used = (size_t)(unshared + value_size);
  cursor->rest = weir_view(rest.data + used, rest.size - used);
  *out_found = true;
  return NULL;
}

// The key at restart |i|, whole by definition. False when the restart is damaged.
static bool restart_key(const weir_block_t* block, uint32_t i, size_t* out_offset,
                        weir_view_t* out_key) {
  uint64_t shared = 0;
  uint64_t unshared = 0;
  uint64_t value_size = 0;
  *out_offset = weir_decode32(block->restarts + (size_t)i * 4);
  if (*out_offset >= block->entries.size) return false;
  weir_view_t rest =
      weir_view(block->entries.data + *out_offset, block->entries.size - *out_offset);
  if (!weir_take_varint(&rest, &shared) || !weir_take_varint(&rest, &unshared) ||
      !weir_take_varint(&rest, &value_size) || shared != 0 || unshared > rest.size) {
    return false;
  }
  *out_key = weir_view(rest.data, (size_t)unshared);
  return true;
}

// Goes to the first entry not less than |key|: halves the restarts, then walks.
static weir_status_t* cursor_seek(weir_block_cursor_t* cursor, weir_view_t key, bool* out_found) {
  uint32_t low = 0;
  uint32_t high =
      cursor->block.restart_count;  // restarts before |low| are less, from |high| on not
  size_t start = 0;
  cursor_rewind(cursor, 0);
  *out_found = false;
  if (cursor->block.entries.size == 0) return NULL;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    size_t offset = 0;
    weir_view_t found;
    if (!restart_key(&cursor->block, middle, &offset, &found))
      return corrupt("bad restart in block");
    if (weir_view_compare(found, key) < 0) {
      low = middle + 1;
      start = offset;
    } else {
      high = middle;
    }
  }
  cursor_rewind(cursor, start);
  do {
    WEIR_TRY(cursor_next(cursor, out_found));
  } while (*out_found && weir_view_compare(weir_strbuf_view(&cursor->key), key) < 0);
  return NULL;
}

// ---- tables ----

weir_status_t* weir_table_open(weir_view_t file, weir_table_t* out_table) {
  if (file.size < WEIR_TABLE_FOOTER_SIZE) return corrupt("file is too short to be an sstable");
  const char* footer = file.data + file.size - WEIR_TABLE_FOOTER_SIZE;
  if (weir_decode64(footer + 40) != WEIR_TABLE_MAGIC) {
    return corrupt("not an sstable (bad magic number)");
  }
  weir_view_t handles = weir_view(footer, 40);
  uint64_t ignored = 0;
  for (int i = 0; i < 2; ++i) {  // offset and size of the metaindex
    if (!weir_take_varint(&handles, &ignored)) return corrupt("bad block handle");
  }
  *out_table = (weir_table_t){.file = file};
  return open_block(file, &handles, &out_table->index);
}

weir_table_cursor_t weir_table_cursor(const weir_table_t* table) {
  weir_table_cursor_t cursor = {.table = table};
  cursor_open(&cursor.index, table->index);
  return cursor;
}

void weir_table_cursor_free(weir_table_cursor_t* cursor) {
  weir_strbuf_free(&cursor->index.key);
  weir_strbuf_free(&cursor->data.key);
}

// Opens the block that the index entry under the cursor names.
static weir_status_t* open_data(weir_table_cursor_t* cursor) {
  weir_view_t handle = cursor->index.value;
  weir_block_t block;
  WEIR_TRY(open_block(cursor->table->file, &handle, &block));
  cursor_open(&cursor->data, block);
  return NULL;
}

weir_status_t* weir_table_next(weir_table_cursor_t* cursor, bool* out_found) {
  for (;;) {
    WEIR_TRY(cursor_next(&cursor->data, out_found));
    if (*out_found) return NULL;
    bool has_block = false;
    WEIR_TRY(cursor_next(&cursor->index, &has_block));
    if (!has_block) return NULL;
    WEIR_TRY(open_data(cursor));
  }
}

weir_status_t* weir_table_seek(weir_table_cursor_t* cursor, weir_view_t key, bool* out_found) {
  *out_found = false;
  cursor->data.rest = weir_view(NULL, 0);
  bool has_block = false;
  WEIR_TRY(cursor_seek(&cursor->index, key, &has_block));
  if (!has_block) return NULL;
  WEIR_TRY(open_data(cursor));
  WEIR_TRY(cursor_seek(&cursor->data, key, out_found));
  return *out_found ? NULL : weir_table_next(cursor, out_found);
}

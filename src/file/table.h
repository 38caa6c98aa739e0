// table.h — Sorted tables: an immutable file of byte-string keys and values, ordered by key.
//
// The layout is LevelDB's, as TensorFlow uses it for the index of a checkpoint. A block holds
// entries
//   varint shared, varint unshared, varint value_size, the unshared end of the key, the value
// where |shared| bytes are taken from the key before; every 16th entry is a restart, with nothing
// shared, and the offsets of the restarts end the block (uint32 each, then their number). Behind a
// block stand a byte for its compression and a masked crc32c over both. The last block but the
// footer is the index: for each data block a key not less than its last one, and its place. The
// footer has 48 bytes: the places of metaindex and index, padding, and a magic number.
//
// A table works on bytes in memory; iterators are thread-confined, the bytes immutable.
#ifndef WEIR_FILE_TABLE_H_
#define WEIR_FILE_TABLE_H_

#include "base/string.h"
#include "file/fs.h"

#define WEIR_TABLE_FOOTER_SIZE 48
#define WEIR_TABLE_MAGIC 0xdb4775248b80fb57u

// ---- reading ----

// A block of which the checksum is right and the restarts lie within.
typedef struct weir_block_t {
  weir_view_t entries;
  const char* restarts;  // |restart_count| little-endian uint32
  uint32_t restart_count;
} weir_block_t;

typedef struct weir_table_t {
  weir_view_t file;  // borrowed
  weir_block_t index;
} weir_table_t;

// A place within one block. |key| is rebuilt from prefixes; |value| points into the file.
typedef struct weir_block_cursor_t {
  weir_block_t block;
  weir_view_t rest;  // entries not read yet
  weir_strbuf_t key;
  weir_view_t value;
} weir_block_cursor_t;

// Walks a table in the order of its keys.
typedef struct weir_table_cursor_t {
  const weir_table_t* table;
  weir_block_cursor_t index;
  weir_block_cursor_t data;
} weir_table_cursor_t;

// Reads footer and index of the table that is |file|, which must outlive it. DATA_LOSS when it is
// no table or damaged; UNIMPLEMENTED when it is compressed.
WEIR_MUST_USE weir_status_t* weir_table_open(weir_view_t file, weir_table_t* out_table);

// A cursor before the first entry. Free it with weir_table_cursor_free.
weir_table_cursor_t weir_table_cursor(const weir_table_t* table);
void weir_table_cursor_free(weir_table_cursor_t* cursor);
// Goes to the next entry; *out_found is false after the last one.
WEIR_MUST_USE weir_status_t* weir_table_next(weir_table_cursor_t* cursor, bool* out_found);
// Goes to the first entry whose key is not less than |key|.
WEIR_MUST_USE weir_status_t* weir_table_seek(weir_table_cursor_t* cursor, weir_view_t key,
                                             bool* out_found);
WEIR_INLINE weir_view_t weir_table_key(const weir_table_cursor_t* c) {
  return weir_strbuf_view(&c->data.key);
}
WEIR_INLINE weir_view_t weir_table_value(const weir_table_cursor_t* c) { return c->data.value; }

// Bytewise order.
int weir_view_compare(weir_view_t a, weir_view_t b);

// ---- writing ----

typedef struct weir_block_builder_t {
  weir_strbuf_t data;
  weir_strbuf_t restarts;  // encoded
  weir_strbuf_t last_key;
  int since_restart;  // entries since the last restart
  int restart_interval;
} weir_block_builder_t;

typedef struct weir_table_builder_t {
  weir_writer_t* writer;  // borrowed
  uint64_t offset;        // written so far
  weir_block_builder_t data;
  weir_block_builder_t index;
  weir_strbuf_t pending;  // the place of the last block, whose index key waits for the next key
  bool has_pending;
  weir_strbuf_t last_key;
} weir_table_builder_t;

// A builder that writes to |writer|, which starts empty. Free it with weir_table_builder_free.
weir_table_builder_t weir_table_builder(weir_writer_t* writer);
void weir_table_builder_free(weir_table_builder_t* builder);
// Adds an entry; keys must ascend strictly (INVALID_ARGUMENT otherwise).
WEIR_MUST_USE weir_status_t* weir_table_add(weir_table_builder_t* builder, weir_view_t key,
                                            weir_view_t value);
// Writes what is left, index and footer. Does not flush or close the writer.
WEIR_MUST_USE weir_status_t* weir_table_finish(weir_table_builder_t* builder);

#endif  // WEIR_FILE_TABLE_H_

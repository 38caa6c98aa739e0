// table_builder.c — Writing sorted tables, byte for byte as TensorFlow writes them.
#include "base/crc32c.h"
#include "file/coding.h"
#include "file/table.h"
#include "wire/wire.h"

enum { kBlockSize = 256 << 10, kDataRestartInterval = 16, kIndexRestartInterval = 1 };

// ---- blocks ----

static void block_reset(weir_block_builder_t* block) {
  block->data.size = 0;
  block->last_key.size = 0;
  block->restarts.size = 0;
  block->since_restart = 0;
  weir_put32(&block->restarts, 0);
}

static void block_add(weir_block_builder_t* block, weir_view_t key, weir_view_t value) {
  size_t shared = 0;
  if (block->since_restart < block->restart_interval) {
    size_t limit = WEIR_MIN(block->last_key.size, key.size);
    while (shared < limit && block->last_key.data[shared] == key.data[shared]) ++shared;
  } else {
    weir_put32(&block->restarts, (uint32_t)block->data.size);
    block->since_restart = 0;
  }
  weir_wire_put_varint(&block->data, shared);
  weir_wire_put_varint(&block->data, key.size - shared);
  weir_wire_put_varint(&block->data, value.size);
  weir_strbuf_append(&block->data, key.data ? key.data + shared : "", key.size - shared);
  weir_strbuf_append(&block->data, value.data, value.size);
  block->last_key.size = shared;
  weir_strbuf_append(&block->last_key, key.data ? key.data + shared : "", key.size - shared);
  ++block->since_restart;
}

static void block_free(weir_block_builder_t* block) {
  weir_strbuf_free(&block->data);
  weir_strbuf_free(&block->restarts);
  weir_strbuf_free(&block->last_key);
}

// Completes the block, writes it with its trailer, empties it, and appends its place to
// |out_handle|.
static weir_status_t* write_block(weir_table_builder_t* builder, weir_block_builder_t* block,
                                  weir_strbuf_t* out_handle) {
  uint32_t restart_count = (uint32_t)(block->restarts.size / 4);
  weir_strbuf_append(&block->data, block->restarts.data, block->restarts.size);
  weir_put32(&block->data, restart_count);
  size_t size = block->data.size;
  weir_strbuf_putc(&block->data, 0);  // not compressed
  WEIR_TRY(weir_strbuf_finish(&block->restarts));
  WEIR_TRY(weir_strbuf_finish(&block->last_key));
  WEIR_TRY(weir_strbuf_finish(&block->data));
  weir_put32(&block->data, weir_crc32c_mask(weir_crc32c(block->data.data, size + 1)));
  WEIR_TRY(weir_strbuf_finish(&block->data));
  weir_wire_put_varint(out_handle, builder->offset);
  weir_wire_put_varint(out_handle, size);
  WEIR_TRY(weir_writer_write(builder->writer, block->data.data, block->data.size));
  builder->offset += block->data.size;
  block_reset(block);
  return weir_strbuf_finish(out_handle);
}

// ---- tables ----

weir_table_builder_t weir_table_builder(weir_writer_t* writer) {
  weir_table_builder_t builder = {.writer = writer};
  builder.data.restart_interval = kDataRestartInterval;
  builder.index.restart_interval = kIndexRestartInterval;
  block_reset(&builder.data);
  block_reset(&builder.index);
  return builder;
}

void weir_table_builder_free(weir_table_builder_t* builder) {
  block_free(&builder->data);
  block_free(&builder->index);
  weir_strbuf_free(&builder->pending);
  weir_strbuf_free(&builder->last_key);
}

// Shortens |key| to a key that is not less than it and less than |next|, to keep the index small.
static void shorten_between(weir_strbuf_t* key, weir_view_t next) {
  size_t limit = WEIR_MIN(key->size, next.size);
  size_t at = 0;
  while (at < limit && key->data[at] == next.data[at]) ++at;
  if (at == limit) return;  // one is a prefix of the other
  uint8_t byte = (uint8_t)key->data[at];
  if (byte < 0xff && byte + 1 < (uint8_t)next.data[at]) {
    key->data[at] = (char)(byte + 1);
    key->size = at + 1;
  }
}

// Shortens |key| to a key that is not less than it.
static void shorten_last(weir_strbuf_t* key) {
  for (size_t i = 0; i < key->size; ++i) {
    uint8_t byte = (uint8_t)key->data[i];
    if (byte != 0xff) {
      key->data[i] = (char)(byte + 1);
      key->size = i + 1;
      return;
    }
  }
}

static void add_pending(weir_table_builder_t* builder) {
  if (!builder->has_pending) return;
  block_add(&builder->index, weir_strbuf_view(&builder->last_key),
            weir_strbuf_view(&builder->pending));
  builder->has_pending = false;
}

static weir_status_t* flush_data(weir_table_builder_t* builder) {
  if (builder->data.data.size == 0) return NULL;
  builder->pending.size = 0;
  WEIR_TRY(write_block(builder, &builder->data, &builder->pending));
  builder->has_pending = true;
  return NULL;
}

weir_status_t* weir_table_add(weir_table_builder_t* builder, weir_view_t key, weir_view_t value) {
  bool is_first = builder->offset == 0 && builder->data.data.size == 0;
  if (!is_first && weir_view_compare(key, weir_strbuf_view(&builder->last_key)) <= 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "table keys must ascend: '%.*s' comes after '%.*s'",
                       WEIR_VIEW_ARG(key), WEIR_VIEW_ARG(weir_strbuf_view(&builder->last_key)));
  }
  // An entry this large has a block for itself.
  if (key.size + value.size >= 2 * kBlockSize) WEIR_TRY(flush_data(builder));
  if (builder->has_pending) {
    shorten_between(&builder->last_key, key);
    add_pending(builder);
  }
  builder->last_key.size = 0;
  weir_strbuf_append(&builder->last_key, key.data, key.size);
  WEIR_TRY(weir_strbuf_finish(&builder->last_key));
  block_add(&builder->data, key, value);
  size_t estimate = builder->data.data.size + builder->data.restarts.size + 4;
  return estimate >= kBlockSize ? flush_data(builder) : weir_strbuf_finish(&builder->data.data);
}

weir_status_t* weir_table_finish(weir_table_builder_t* builder) {
  static const char kPadding[40];
  weir_strbuf_t footer = {0};
  weir_block_builder_t metaindex = {.restart_interval = kDataRestartInterval};
  block_reset(&metaindex);
  weir_status_t* status = flush_data(builder);
  if (status) goto done;
  status = write_block(builder, &metaindex, &footer);
  if (status) goto done;
  if (builder->has_pending) shorten_last(&builder->last_key);
  add_pending(builder);
  status = write_block(builder, &builder->index, &footer);
  if (status) goto done;
  weir_strbuf_append(&footer, kPadding, sizeof kPadding - footer.size);
  weir_put64(&footer, WEIR_TABLE_MAGIC);
  status = weir_strbuf_finish(&footer);
  if (!status) status = weir_writer_write(builder->writer, footer.data, footer.size);
done:
  block_free(&metaindex);
  weir_strbuf_free(&footer);
  return status;
}

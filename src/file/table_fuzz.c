// table_fuzz.c — Fuzz target: any bytes as a sorted table, with checksums made right first.
#include "base/alloc.h"
#include "base/crc32c.h"
#include "file/coding.h"
#include "file/table.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

static void walk(weir_view_t file) {
  weir_table_t table;
  bool found = false;
  weir_status_t* status = weir_table_open(file, &table);
  if (!status) {
    weir_table_cursor_t cursor = weir_table_cursor(&table);
    int steps = 0;
    do {
      status = weir_table_next(&cursor, &found);
    } while (!status && found && ++steps < 1000);
    weir_status_destroy(status);
    status = weir_table_seek(&cursor, weir_view_of("m"), &found);
    weir_table_cursor_free(&cursor);
  }
  weir_status_destroy(status);
}

// Lays the input out as one data block and one index block whose trailers are right, so that the
// fuzzer gets past the checksums.
static void walk_sealed(const uint8_t* data, size_t size) {
  weir_strbuf_t file = {0};
  size_t split = size > 0 ? data[0] % size : 0;
  const size_t sizes[2] = {split, size - split};
  for (int i = 0; i < 2; ++i) {
    size_t begin = file.size;
    weir_strbuf_append(&file, data + (i ? split : 0), sizes[i]);
    weir_strbuf_putc(&file, 0);
    if (!file.failed) {
      weir_put32(&file, weir_crc32c_mask(weir_crc32c(file.data + begin, file.size - begin)));
    }
  }
  weir_strbuf_t footer = {0};
  const uint64_t handles[4] = {0, split, split + 5, size - split};
  for (int i = 0; i < 4; ++i) {
    for (uint64_t v = handles[i];; v >>= 7) {
      weir_strbuf_putc(&footer, (char)(v >= 0x80 ? (v | 0x80) : v));
      if (v < 0x80) break;
    }
  }
  while (footer.size < 40 && !footer.failed) weir_strbuf_putc(&footer, 0);
  weir_put64(&footer, WEIR_TABLE_MAGIC);
  weir_strbuf_append(&file, footer.data, footer.size);
  if (!file.failed && !footer.failed) walk(weir_strbuf_view(&file));
  weir_strbuf_free(&footer);
  weir_strbuf_free(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  walk(weir_view(data, size));
  walk_sealed(data, size);
  return 0;
}

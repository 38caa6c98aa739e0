// files.c — Finds functions of src/file, which no library exports, by name: for
// tests/files_test.py.
#include <string.h>

#include "base/string.h"
#include "file/bundle.h"
#include "file/checkpoint_state.h"
#include "file/event.h"
#include "file/fs.h"
#include "file/npy.h"
#include "file/record.h"

typedef void (*function_t)(void);

__attribute__((visibility("default"))) function_t weir_probe_file_function(const char* name);

#define ROW(function) \
  { #function, (function_t)function }
static const struct {
  const char* name;
  function_t function;
} functions[] = {
    ROW(weir_bundle_add),
    ROW(weir_bundle_close),
    ROW(weir_bundle_finish),
    ROW(weir_bundle_merge),
    ROW(weir_bundle_open),
    ROW(weir_bundle_read),
    ROW(weir_bundle_writer_create),
    ROW(weir_bundle_writer_destroy),
    ROW(weir_checkpoint_latest),
    ROW(weir_checkpoint_state_save),
    ROW(weir_event_add_graph),
    ROW(weir_event_add_scalar),
    ROW(weir_event_add_summary),
    ROW(weir_event_writer_close),
    ROW(weir_event_writer_create),
    ROW(weir_event_writer_path),
    ROW(weir_npy_load),
    ROW(weir_npy_save),
    ROW(weir_record_next),
    ROW(weir_record_reader_destroy),
    ROW(weir_record_reader_open),
    ROW(weir_record_write),
    ROW(weir_strbuf_free),
    ROW(weir_writer_close),
    ROW(weir_writer_open),
};

function_t weir_probe_file_function(const char* name) {
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; ++i) {
    if (strcmp(functions[i].name, name) == 0) return functions[i].function;
  }
  return NULL;
}

// reader_resource.h — Readers: records out of files whose names come from a queue. Thread-safe.
//
// Reads take turns in order of arrival. A read that needs the next file takes a name from the
// queue; while there is none, it waits without holding a thread. A file that cannot be opened is
// passed over by the next read; a damaged one fails every read until the reader is reset.
#ifndef WEIR_OPS_READER_READER_RESOURCE_H_
#define WEIR_OPS_READER_READER_RESOURCE_H_

#include "file/deflate.h"
#include "ops/queue/queue_resource.h"

typedef enum weir_reader_kind_t {
  WEIR_READER_TEXT_LINE,     // lines without their end, "\n" or "\r\n"
  WEIR_READER_WHOLE_FILE,    // a file is a record
  WEIR_READER_RECORD,        // TFRecord files
  WEIR_READER_FIXED_LENGTH,  // equal pieces between a header and a footer
  WEIR_READER_IDENTITY,      // a file's name is a record
} weir_reader_kind_t;

// A value type.
typedef struct weir_reader_config_t {
  weir_reader_kind_t kind;
  const char* name;    // of the node that made it, for messages
  int64_t skip_lines;  // TEXT_LINE: at the start of a file
  int64_t header_size, record_size, footer_size, hop_size;  // FIXED_LENGTH; hop 0: record_size
  bool is_compressed;                 // RECORD, FIXED_LENGTH: files are deflated
  weir_deflate_format_t compression;  // and how
} weir_reader_config_t;

typedef struct weir_reader_t weir_reader_t;
extern const weir_resource_type_t weir_reader_type;
#define WEIR_READER_TYPE_NAME "N10tensorflow15ReaderInterfaceE"

WEIR_MUST_USE weir_status_t* weir_reader_create(const weir_reader_config_t* config,
                                                weir_reader_t** out_reader);

// An asynchronous kernel's body: sets outputs 0 and 1 to key and value of the next record, or, with
// |limit| >= 0, to vectors of up to so many of one file. OUT_OF_RANGE when the queue is closed and
// empty.
void weir_reader_read(weir_reader_t* reader, weir_queue_t* queue, weir_kernel_ctx_t* ctx,
                      int64_t limit, weir_done_t done);

int64_t weir_reader_records_produced(weir_reader_t* reader);
int64_t weir_reader_files_finished(weir_reader_t* reader);
void weir_reader_reset(weir_reader_t* reader);  // as freshly created

// Where a reader of names is, as a ReaderBaseState message, and going there. UNIMPLEMENTED for
// other kinds.
WEIR_MUST_USE weir_status_t* weir_reader_save(weir_reader_t* reader, weir_strbuf_t* out);
WEIR_MUST_USE weir_status_t* weir_reader_restore(weir_reader_t* reader, weir_view_t state);

#endif  // WEIR_OPS_READER_READER_RESOURCE_H_

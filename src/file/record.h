// record.h — TFRecord files: a sequence of byte strings, each guarded by checksums.
//
// One record: uint64 length, uint32 masked crc32c of the length's 8 bytes, the bytes, uint32 masked
// crc32c of the bytes; all little-endian. Readers and writers are thread-compatible.
#ifndef WEIR_FILE_RECORD_H_
#define WEIR_FILE_RECORD_H_

#include "base/string.h"
#include "file/fs.h"

// ---- writing ----

// Appends one record to |writer|.
WEIR_MUST_USE weir_status_t* weir_record_write(weir_writer_t* writer, const void* data,
                                               size_t size);

// ---- reading ----

typedef struct weir_record_reader_t weir_record_reader_t;

// Opens |path|. NOT_FOUND when it is missing.
WEIR_MUST_USE weir_status_t* weir_record_reader_open(const char* path,
                                                     weir_record_reader_t** out_reader);
// Reads from |take_file|, which is closed with the reader and also when this fails.
WEIR_MUST_USE weir_status_t* weir_record_reader_create(weir_file_t* take_file,
                                                       weir_record_reader_t** out_reader);
void weir_record_reader_destroy(weir_record_reader_t* reader);

// Reads the next record; |out_record| is borrowed until the next call. OUT_OF_RANGE at the end of
// the file (fewer bytes than a header are left, as in TensorFlow), DATA_LOSS for a record that is
// cut off
// ("truncated record at 12") or whose checksum is wrong ("corrupted record at 12"); the reader
// stays where it is then, so that a file that is still being written can be read on.
WEIR_MUST_USE weir_status_t* weir_record_next(weir_record_reader_t* reader,
                                              weir_view_t* out_record);

// Where the next record begins; and going to such a place.
uint64_t weir_record_tell(const weir_record_reader_t* reader);
void weir_record_seek(weir_record_reader_t* reader, uint64_t offset);

#endif  // WEIR_FILE_RECORD_H_

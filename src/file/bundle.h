// bundle.h — Checkpoints: named tensors in TensorFlow's V2 format, a sorted index beside data
// files.
//
// A checkpoint is named by a prefix. "prefix.index" is a sorted table: under "" the
// BundleHeaderProto, under each tensor's name a BundleEntryProto that says type, shape and where in
// "prefix.data-00000-of-00001" the bytes are, with their checksum. A partitioned variable has an
// entry that lists its slices, and each slice has an entry of its own (file/slice.h).
//
// Readers are thread-safe after open. Writers are thread-confined.
#ifndef WEIR_FILE_BUNDLE_H_
#define WEIR_FILE_BUNDLE_H_

#include "file/fs.h"
#include "file/slice.h"
#include "tensor/tensor.h"

// What a checkpoint knows of one tensor. A value type; |proto| is borrowed from the reader.
typedef struct weir_bundle_entry_t {
  weir_dtype_t dtype;
  int rank;
  int64_t dims[WEIR_MAX_RANK];  // of the full tensor
  int shard;                    // the data file
  uint64_t offset;              // within it
  uint64_t size;                // bytes
  uint32_t crc;                 // masked, of the bytes
  int slice_count;              // 0: stored whole
  weir_view_t proto;            // BundleEntryProto
} weir_bundle_entry_t;

// ---- reading ----

typedef struct weir_bundle_t weir_bundle_t;

// Opens the checkpoint |prefix|. NOT_FOUND when it has no index, DATA_LOSS when that is damaged,
// UNIMPLEMENTED for a big-endian or compressed one.
WEIR_MUST_USE weir_status_t* weir_bundle_open(const char* prefix, weir_bundle_t** out_bundle);
void weir_bundle_close(weir_bundle_t* bundle);
int weir_bundle_shard_count(const weir_bundle_t* bundle);  // data files

// Looks |key| up. NOT_FOUND "Key x not found in checkpoint".
WEIR_MUST_USE weir_status_t* weir_bundle_find(const weir_bundle_t* bundle, weir_view_t key,
                                              weir_bundle_entry_t* out_entry);
// Reads a whole tensor, put together from its slices where it is partitioned. DATA_LOSS when the
// bytes do not have the checksum of the entry.
WEIR_MUST_USE weir_status_t* weir_bundle_read(weir_bundle_t* bundle, weir_view_t key,
                                              weir_tensor_t** out_tensor);
// Reads the box |slice| of a tensor, however that was partitioned when it was saved.
// INVALID_ARGUMENT when the slices stored do not cover it.
WEIR_MUST_USE weir_status_t* weir_bundle_read_slice(weir_bundle_t* bundle, weir_view_t key,
                                                    const weir_slice_t* slice,
                                                    weir_tensor_t** out_tensor);
// Whether the files are all there: every entry parses, and its data file holds its bytes. Reads
// none of them, which is when checksums are compared. DATA_LOSS, NOT_FOUND, or INVALID_ARGUMENT.
WEIR_MUST_USE weir_status_t* weir_bundle_check_files(weir_bundle_t* bundle);
// Adds the names of all tensors, sorted.
WEIR_MUST_USE weir_status_t* weir_bundle_list(const weir_bundle_t* bundle, weir_names_t* out_names);

// ---- writing ----

typedef struct weir_bundle_writer_t weir_bundle_writer_t;

// Begins the checkpoint |prefix| in files of temporary names; nothing is visible before finish.
// Tensors begin at multiples of |alignment|, a power of two (TensorFlow's own is 1).
WEIR_MUST_USE weir_status_t* weir_bundle_writer_create(const char* prefix, size_t alignment,
                                                       weir_bundle_writer_t** out_writer);
// Writes one tensor. INVALID_ARGUMENT for a key that is there already, UNIMPLEMENTED for resources
// and variants that are neither TensorLists nor numbers nor states of iterators.
WEIR_MUST_USE weir_status_t* weir_bundle_add(weir_bundle_writer_t* writer, weir_view_t key,
                                             const weir_tensor_t* tensor);
// Writes |tensor| as the part |slice| of a tensor of shape |dims|.
WEIR_MUST_USE weir_status_t* weir_bundle_add_slice(weir_bundle_writer_t* writer, weir_view_t key,
                                                   int rank, const int64_t* dims,
                                                   const weir_slice_t* slice,
                                                   const weir_tensor_t* tensor);
// Makes the checkpoint durable and visible: data to disk, data renamed, index to disk, index
// renamed.
WEIR_MUST_USE weir_status_t* weir_bundle_finish(weir_bundle_writer_t* writer);
// Frees the writer; removes the temporary files of one that was not finished.
void weir_bundle_writer_destroy(weir_bundle_writer_t* writer);

// Merges checkpoints into |destination|, whose data files are those of the parts, renamed; the
// parts are gone afterwards. INVALID_ARGUMENT when a part is missing (unless |allow_missing| and
// one is there) or a tensor is in two parts.
WEIR_MUST_USE weir_status_t* weir_bundle_merge(const char* const* prefixes, size_t count,
                                               const char* destination, bool allow_missing);

// ---- names and entries, for this folder ----

void weir_bundle_append_index_path(const char* prefix, weir_strbuf_t* out);
void weir_bundle_append_data_path(const char* prefix, int shard, int shard_count,
                                  weir_strbuf_t* out);
WEIR_MUST_USE weir_status_t* weir_bundle_parse_entry(weir_view_t proto,
                                                     weir_bundle_entry_t* out_entry);
// Appends the entry's fields but for slices.
void weir_bundle_write_entry(const weir_bundle_entry_t* entry, weir_strbuf_t* out);
// Parses BundleHeaderProto, refusing what cannot be read.
WEIR_MUST_USE weir_status_t* weir_bundle_parse_header(weir_view_t proto, int* out_shard_count);
// The bytes of a variant tensor, and their checksum; and back.
WEIR_MUST_USE weir_status_t* weir_bundle_write_variants(weir_writer_t* out,
                                                        const weir_tensor_t* tensor,
                                                        uint32_t* out_crc);
WEIR_MUST_USE weir_status_t* weir_bundle_parse_variants(weir_view_t bytes, weir_tensor_t* tensor,
                                                        uint32_t* out_crc);
// A tensor of the index: its key and its BundleEntryProto.
typedef struct weir_bundle_row_t {
  weir_view_t key;
  weir_view_t proto;
} weir_bundle_row_t;
// Writes the index of a checkpoint atomically: its header and |rows|, which are sorted here.
WEIR_MUST_USE weir_status_t* weir_bundle_write_index(const char* prefix, int shard_count,
                                                     weir_bundle_row_t* rows, size_t row_count);

#endif  // WEIR_FILE_BUNDLE_H_

// snapshot.h — Datasets in folders, as TensorFlow's save and load have them: "snapshot.metadata",
// and for the run that it names a folder for each shard, "<run>/00000000.shard/00000000.snapshot",
// records of TensorProto, one a component.
#ifndef WEIR_OPS_DATA_SNAPSHOT_H_
#define WEIR_OPS_DATA_SNAPSHOT_H_

#include "ops/data/dataset.h"
#include "ops/data/file_stream.h"

// "", "GZIP" or "ZLIB". UNIMPLEMENTED for "SNAPPY", INVALID_ARGUMENT for other words.
WEIR_MUST_USE weir_status_t* weir_snapshot_compression(weir_view_t text,
                                                       weir_compression_t* out_compression);
// A path from two parts.
WEIR_MUST_USE weir_status_t* weir_snapshot_join(const char* folder, const char* name,
                                                char** out_path);

// ---- writing; thread-confined ----

typedef struct weir_snapshot_writer_t weir_snapshot_writer_t;
// |dataset|: whose elements are written; borrowed for the call.
WEIR_MUST_USE weir_status_t* weir_snapshot_writer_create(weir_view_t path,
                                                         weir_compression_t compression,
                                                         const weir_data_t* dataset,
                                                         weir_snapshot_writer_t** out_writer);
void weir_snapshot_writer_destroy(weir_snapshot_writer_t* writer);  // NULL-safe
WEIR_MUST_USE weir_status_t* weir_snapshot_writer_add(weir_snapshot_writer_t* writer, int64_t shard,
                                                      weir_tensor_t* const* element);
// Completes the files; from then on readers find this run.
WEIR_MUST_USE weir_status_t* weir_snapshot_writer_finish(weir_snapshot_writer_t* writer);

// ---- reading ----

// The folder of the run that |path| is about, to be freed; NOT_FOUND when there is none.
WEIR_MUST_USE weir_status_t* weir_snapshot_find(const char* path, char** out_run_folder,
                                                int64_t* out_count);

#endif  // WEIR_OPS_DATA_SNAPSHOT_H_

// checkpoint.h — Checkpoints without a graph: what tensors they hold, their values, and new ones
// from memory.
//
//   weir_checkpoint_t* checkpoint = NULL;
//   check(weir_checkpoint_open("runs/model.ckpt-100", &checkpoint));
//   for (size_t i = 0; i < weir_checkpoint_count(checkpoint); ++i)
//     puts(weir_checkpoint_at(checkpoint, i)->name);
//   check(weir_checkpoint_read(checkpoint, "dense/kernel", &kernel));
//   weir_checkpoint_close(checkpoint);
//
// Sessions save and restore theirs by weir/file.h or by a saver (weir/saver.h).
#ifndef WEIR_CHECKPOINT_H_
#define WEIR_CHECKPOINT_H_

#include "weir/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- reading. Thread-safe. ----

typedef struct weir_checkpoint_t weir_checkpoint_t;

// What is known of a tensor before it is read. Borrowed, as long as the checkpoint is open.
typedef struct weir_checkpoint_tensor_t {
  const char* name;
  weir_dtype_t dtype;
  int rank;
  const int64_t* dims;
  int64_t byte_size;  // in the files, of all its slices; of elements in memory for the first format
  int slice_count;    // 0: it is stored whole
  const char* file;   // that holds it; NULL: its slices may be in several
} weir_checkpoint_tensor_t;

// Opens a checkpoint by its prefix ("dir/model.ckpt-100"), by the name of its index, by its
// directory (the latest there, as the file "checkpoint" says), or a file in the first format.
// NOT_FOUND when there is none, DATA_LOSS when its index is damaged.
WEIR_API WEIR_MUST_USE weir_status_t* weir_checkpoint_open(const char* path,
                                                           weir_checkpoint_t** out_checkpoint);
WEIR_API void weir_checkpoint_close(weir_checkpoint_t* checkpoint);                // NULL is fine
WEIR_API const char* weir_checkpoint_prefix(const weir_checkpoint_t* checkpoint);  // borrowed
WEIR_API int weir_checkpoint_version(const weir_checkpoint_t* checkpoint);  // of the format: 1, 2
WEIR_API int weir_checkpoint_shard_count(const weir_checkpoint_t* checkpoint);  // data files
WEIR_API size_t weir_checkpoint_count(const weir_checkpoint_t* checkpoint);
// Sorted by name.
WEIR_API const weir_checkpoint_tensor_t* weir_checkpoint_at(const weir_checkpoint_t* checkpoint,
                                                            size_t index);
// NULL when there is none of that name.
WEIR_API const weir_checkpoint_tensor_t* weir_checkpoint_find(const weir_checkpoint_t* checkpoint,
                                                              const char* name);
// Reads a whole tensor, the caller's to release. NOT_FOUND suggests a name that is like it;
// DATA_LOSS when its bytes do not have the checksum that they were written with.
WEIR_API WEIR_MUST_USE weir_status_t* weir_checkpoint_read(weir_checkpoint_t* checkpoint,
                                                           const char* name,
                                                           weir_tensor_t** out_tensor);

// ---- writing, in the second format. Thread-confined. ----

typedef struct weir_checkpoint_writer_t weir_checkpoint_writer_t;

// Begins the checkpoint |prefix| in |shard_count| data files (0: one) of temporary names: nothing
// is visible, and what is there of that name stays, before finish.
WEIR_API WEIR_MUST_USE weir_status_t* weir_checkpoint_writer_create(
    const char* prefix, int shard_count, weir_checkpoint_writer_t** out_writer);
// Writes a tensor to the data file that has the fewest bytes. INVALID_ARGUMENT for a name that is
// there already.
WEIR_API WEIR_MUST_USE weir_status_t* weir_checkpoint_add(weir_checkpoint_writer_t* writer,
                                                          const char* name,
                                                          const weir_tensor_t* tensor);
// Makes the checkpoint durable and visible. INVALID_ARGUMENT when nothing was added.
WEIR_API WEIR_MUST_USE weir_status_t* weir_checkpoint_finish(weir_checkpoint_writer_t* writer);
// Drops what was not finished. NULL is fine.
WEIR_API void weir_checkpoint_writer_destroy(weir_checkpoint_writer_t* writer);

#ifdef __cplusplus
}
#endif
#endif  // WEIR_CHECKPOINT_H_

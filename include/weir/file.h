// file.h — Checkpoints, event files, npy and npz arrays, as TensorFlow and NumPy write them.
#ifndef WEIR_FILE_H_
#define WEIR_FILE_H_

#include "weir/session.h"
#include "weir/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- npy ----
WEIR_API WEIR_MUST_USE weir_status_t* weir_tensor_load_npy(const char* path,
                                                           weir_tensor_t** out_tensor);
WEIR_API WEIR_MUST_USE weir_status_t* weir_tensor_save_npy(const weir_tensor_t* tensor,
                                                           const char* path);

// ---- npz: several arrays in one file, by name. Reading is thread-safe. ----
typedef struct weir_npz_t weir_npz_t;
typedef struct weir_npz_options_t {
  uint64_t limit;  // bytes that one array may take once it is unpacked; 0: 4 GiB
} weir_npz_options_t;
// Opens what numpy.savez or numpy.savez_compressed wrote. |options| may be NULL. Damage is found
// here, or when the array is read: DATA_LOSS; names that leave the file's folder, or that are there
// twice, are INVALID_ARGUMENT.
WEIR_API WEIR_MUST_USE weir_status_t* weir_npz_open(const char* path,
                                                    const weir_npz_options_t* options,
                                                    weir_npz_t** out_npz);
WEIR_API void weir_npz_close(weir_npz_t* npz);  // NULL is fine
WEIR_API int weir_npz_count(const weir_npz_t* npz);
// "weights" for the member "weights.npy"; borrowed. NULL when |index| is out of range.
WEIR_API const char* weir_npz_name(const weir_npz_t* npz, int index);
// NOT_FOUND naming it; RESOURCE_EXHAUSTED when it is larger than the limit.
WEIR_API WEIR_MUST_USE weir_status_t* weir_npz_read(const weir_npz_t* npz, const char* name,
                                                    weir_tensor_t** out_tensor);
// Writes |count| arrays. The file appears at once, or not at all.
WEIR_API WEIR_MUST_USE weir_status_t* weir_npz_save(const char* path, const char* const* names,
                                                    weir_tensor_t* const* tensors, int count,
                                                    bool is_compressed);

// ---- event files for TensorBoard. Thread-safe. ----
typedef struct weir_events_t weir_events_t;
// Creates events.out.tfevents.* in |directory|, which is made when missing.
WEIR_API WEIR_MUST_USE weir_status_t* weir_events_create(const char* directory,
                                                         weir_events_t** out_events);
WEIR_API WEIR_MUST_USE weir_status_t* weir_events_scalar(weir_events_t* events, const char* tag,
                                                         float value, int64_t step);
// Writes the Summary that a summary node gave out (weir/summary.h): a string tensor of one element.
WEIR_API WEIR_MUST_USE weir_status_t* weir_events_add_summary(weir_events_t* events,
                                                              const weir_tensor_t* summary,
                                                              int64_t step);
WEIR_API WEIR_MUST_USE weir_status_t* weir_events_graph(weir_events_t* events, weir_graph_t* graph);
WEIR_API WEIR_MUST_USE weir_status_t* weir_events_flush(weir_events_t* events);
WEIR_API WEIR_MUST_USE weir_status_t* weir_events_close(
    weir_events_t* take_events);  // flushes; NULL is fine

// ---- checkpoints in TensorFlow's V2 format ----
// Saves every variable of the session's graph under |prefix| ("dir/model.ckpt-100"), and makes it
// the latest in the file "checkpoint" beside it. FAILED_PRECONDITION names variables that are not
// initialised; nothing is written then.
WEIR_API WEIR_MUST_USE weir_status_t* weir_checkpoint_save(weir_session_t* session,
                                                           const char* prefix);
// Restores every variable of the graph from |prefix|. NOT_FOUND names a variable that the
// checkpoint lacks; none is changed then.
WEIR_API WEIR_MUST_USE weir_status_t* weir_checkpoint_restore(weir_session_t* session,
                                                              const char* prefix);

#ifdef __cplusplus
}
#endif
#endif  // WEIR_FILE_H_

// tensorboard.h — What TensorBoard shows, written by a program itself: histograms, pictures,
// sounds, texts, hyperparameters, how a step ran, embeddings. docs/tensorboard.md is a guide.
//
// Scalars and graphs are in weir/file.h; nodes that say such things within a step in
// weir/summary.h. All of this goes to the run whose folder |events| writes in, and may be called
// from several threads.
#ifndef WEIR_TENSORBOARD_H_
#define WEIR_TENSORBOARD_H_

#include "weir/file.h"

#ifdef __cplusplus
extern "C" {
#endif

// How the elements of |values|, real numbers of any shape, are spread. INVALID_ARGUMENT for NaN and
// infinities.
WEIR_API WEIR_MUST_USE weir_status_t* weir_events_histogram(weir_events_t* events, const char* tag,
                                                            weir_tensor_t* values, int64_t step);
// The first |count| (0: 3) of |images|: [batch, height, width, channels] of uint8, half, float or
// double, with 1, 3 or 4 channels. Floats are scaled to what can be seen.
WEIR_API WEIR_MUST_USE weir_status_t* weir_events_images(weir_events_t* events, const char* tag,
                                                         weir_tensor_t* images, int count,
                                                         int64_t step);
// The first |count| (0: 3) of |sounds|: floats from -1 to 1, [batch, frames] or [batch, frames,
// channels], of |rate| frames a second.
WEIR_API WEIR_MUST_USE weir_status_t* weir_events_sounds(weir_events_t* events, const char* tag,
                                                         weir_tensor_t* sounds, float rate,
                                                         int count, int64_t step);
// |text|: Markdown.
WEIR_API WEIR_MUST_USE weir_status_t* weir_events_text(weir_events_t* events, const char* tag,
                                                       const char* text, int64_t step);
// How a step ran: |metadata| is a RunMetadata, as weir_session_run_with gives it when it traces.
// The graph page offers it under |tag|, which no other may have in the run. INVALID_ARGUMENT when
// it is no such message.
WEIR_API WEIR_MUST_USE weir_status_t* weir_events_run_metadata(weir_events_t* events,
                                                               const char* tag,
                                                               const void* metadata, size_t size,
                                                               int64_t step);

// ---- hyperparameters: a run is a row of a table, beside its scalars ----

typedef enum weir_hparam_kind_t {
  WEIR_HPARAM_NUMBER,
  WEIR_HPARAM_TEXT,
  WEIR_HPARAM_BOOL
} weir_hparam_kind_t;

typedef struct weir_hparam_t {
  const char* name;
  weir_hparam_kind_t kind;
  double number;     // of a BOOL: 0 is false
  const char* text;  // of a TEXT
} weir_hparam_t;

// Says what the run trains with; once, at its start.
WEIR_API WEIR_MUST_USE weir_status_t* weir_events_hparams(weir_events_t* events,
                                                          const weir_hparam_t* hparams, int count);
// Says that the run ended, and whether well.
WEIR_API WEIR_MUST_USE weir_status_t* weir_events_hparams_end(weir_events_t* events,
                                                              bool has_succeeded);

// ---- embeddings: the rows of a variable as points ----

typedef struct weir_projected_t {
  const char* variable;       // by its name in checkpoints; each row is a point
  const char* const* labels;  // what the points are called, one a row; NULL: nothing
  int64_t label_count;
  const char* metadata_path;  // without labels: a file of tab-separated columns, one line a row
  const char* sprite_path;    // a picture of small pictures, one a row; NULL: none
  int sprite_width, sprite_height;  // of a small one
} weir_projected_t;

// Writes projector_config.pbtxt, and a file for each list of labels, into |directory|, which must
// be the one that checkpoints are saved in: the newest is shown. Paths are relative to it.
// INVALID_ARGUMENT for labels with tabs or ends of lines.
WEIR_API WEIR_MUST_USE weir_status_t* weir_projector_write(const char* directory,
                                                           const weir_projected_t* projected,
                                                           int count);

#ifdef __cplusplus
}
#endif
#endif  // WEIR_TENSORBOARD_H_

// summary.h — Summaries: nodes that say what TensorBoard shall show.
//
//   weir_summary_scalar(s, "loss", loss);
//   weir_summary_histogram(s, "layer1/weights", w);
//   weir_edge_t summaries = weir_summary_merge_all(s);
//   …                                   // in a step: fetch |summaries|, then
//   check(weir_events_add_summary(events, result, step));
//
// Each gives out a serialised Summary (a scalar string) and is collected under WEIR_SUMMARIES.
// Errors stick in the scope. weir_events_add_summary is in weir/file.h.
#ifndef WEIR_SUMMARY_H_
#define WEIR_SUMMARY_H_

#include "weir/scope.h"

#ifdef __cplusplus
extern "C" {
#endif

// |value|: a scalar of a real number type. A |tag| is where TensorBoard shows it: "group/name".
WEIR_API weir_edge_t weir_summary_scalar(weir_scope_t* scope, const char* tag, weir_edge_t value);
// |values|: any shape, a real number type.
WEIR_API weir_edge_t weir_summary_histogram(weir_scope_t* scope, const char* tag,
                                            weir_edge_t values);
// |texts|: a string or a vector of strings, Markdown.
WEIR_API weir_edge_t weir_summary_text(weir_scope_t* scope, const char* tag, weir_edge_t texts);

typedef struct weir_summary_image_options_t {
  int reserved;
  int max_images;  // of the batch; 0: 3
} weir_summary_image_options_t;
// |images|: [batch, height, width, channels] of uint8, half or float; 1, 3 or 4 channels.
WEIR_API weir_edge_t weir_summary_image_with(weir_scope_t* scope, const char* tag,
                                             weir_edge_t images,
                                             const weir_summary_image_options_t* options);
#define weir_summary_image(scope, tag, images, ...) \
  weir_summary_image_with(scope, tag, images, &(const weir_summary_image_options_t){0, __VA_ARGS__})

typedef struct weir_summary_audio_options_t {
  int reserved;
  int max_sounds;  // of the batch; 0: 3
} weir_summary_audio_options_t;
// |sounds|: floats from -1 to 1, [batch, frames] or [batch, frames, channels], of |rate| (a float
// scalar) frames a second.
WEIR_API weir_edge_t weir_summary_audio_with(weir_scope_t* scope, const char* tag,
                                             weir_edge_t sounds, weir_edge_t rate,
                                             const weir_summary_audio_options_t* options);
#define weir_summary_audio(scope, tag, sounds, rate, ...) \
  weir_summary_audio_with(scope, tag, sounds, rate,       \
                          &(const weir_summary_audio_options_t){0, __VA_ARGS__})

// All summaries collected so far as one; an edge without a node when there is none. Tags must
// differ.
WEIR_API weir_edge_t weir_summary_merge_all(weir_scope_t* scope);

#ifdef __cplusplus
}
#endif
#endif  // WEIR_SUMMARY_H_

// summary.c — Summaries as nodes, collected to be merged.
#include "weir/summary.h"

#include "nodes.h"

static weir_edge_t collect(weir_scope_t* scope, weir_edge_t summary) {
  weir_scope_collect(scope, WEIR_SUMMARIES, summary);
  return summary;
}

weir_edge_t weir_summary_scalar(weir_scope_t* scope, const char* tag, weir_edge_t value) {
  if (!weir_lib_ready(scope, "summary_scalar", value)) return WEIR_LIB_NONE;
  return collect(scope, weir_scalar_summary(scope, weir_const_string(scope, tag), value));
}

weir_edge_t weir_summary_histogram(weir_scope_t* scope, const char* tag, weir_edge_t values) {
  if (!weir_lib_ready(scope, "summary_histogram", values)) return WEIR_LIB_NONE;
  return collect(scope, weir_histogram_summary(scope, weir_const_string(scope, tag), values));
}

weir_edge_t weir_summary_image_with(weir_scope_t* scope, const char* tag, weir_edge_t images,
                                    const weir_summary_image_options_t* options) {
  options = options ? options : &(const weir_summary_image_options_t){0};
  if (!weir_lib_ready(scope, "summary_image", images)) return WEIR_LIB_NONE;
  weir_opt_int_t count = {options->max_images, options->max_images != 0};
  return collect(
      scope, weir_image_summary(scope, weir_const_string(scope, tag), images, .max_images = count));
}

weir_edge_t weir_summary_audio_with(weir_scope_t* scope, const char* tag, weir_edge_t sounds,
                                    weir_edge_t rate, const weir_summary_audio_options_t* options) {
  options = options ? options : &(const weir_summary_audio_options_t){0};
  if (!weir_lib_ready(scope, "summary_audio", sounds, rate)) return WEIR_LIB_NONE;
  weir_opt_int_t count = {options->max_sounds, options->max_sounds != 0};
  return collect(scope, weir_audio_summary_v2(scope, weir_const_string(scope, tag), sounds, rate,
                                              .max_outputs = count));
}

weir_edge_t weir_summary_text(weir_scope_t* scope, const char* tag, weir_edge_t texts) {
  if (!weir_lib_ready(scope, "summary_text", texts)) return WEIR_LIB_NONE;
  if (weir_edge_type(texts) != WEIR_DTYPE_STRING) {
    weir_lib_fail(scope, "summary_text: '%s' is not of strings", weir_node_name(texts.node));
    return WEIR_LIB_NONE;
  }
  // SummaryMetadata {plugin_data {plugin_name: "text"}} on the wire.
  weir_edge_t metadata = weir_const_string(scope,
                                           "\x0a\x06\x0a\x04"
                                           "text");
  return collect(scope,
                 weir_tensor_summary_v2(scope, weir_const_string(scope, tag), texts, metadata));
}

weir_edge_t weir_summary_merge_all(weir_scope_t* scope) {
  const weir_edge_t* summaries = NULL;
  const int count = weir_scope_collected(scope, WEIR_SUMMARIES, &summaries);
  if (!count || weir_scope_status(scope)) return WEIR_LIB_NONE;
  return weir_merge_summary(scope, summaries, count);
}

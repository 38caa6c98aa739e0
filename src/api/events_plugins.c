// events_plugins.c — Events that carry a plug-in's data: hyperparameters, texts, how a step ran.
#include "api/events.h"
#include "base/thread.h"
#include "tensor/tensor.h"
#include "weir/argument.h"
#include "weir/tensorboard.h"
#include "wire/message.h"
#include "wire/wire.h"

// SummaryMetadata {1: plugin_data {1: plugin_name, 2: content}}.
static void put_metadata(const char* plugin, weir_view_t content, weir_strbuf_t* out) {
  const size_t data = weir_wire_begin(out, 1);
  weir_wire_put_string(out, 1, plugin);
  if (content.size) weir_wire_put_bytes(out, 2, content.data, content.size);
  weir_wire_end(out, data);
}

// Writes |tensor| under |tag| for |plugin|.
static weir_status_t* add_tensor(weir_events_t* events, const char* tag, const char* plugin,
                                 weir_view_t content, const weir_tensor_t* tensor, int64_t step) {
  weir_strbuf_t metadata = {0}, summary = {0};
  put_metadata(plugin, content, &metadata);
  weir_status_t* status = weir_strbuf_finish(&metadata);
  if (!status)
    status = weir_summary_put_tensor(&summary, weir_view_of(tag), weir_view("", 0), tensor,
                                     weir_strbuf_view(&metadata));
  if (!status) status = weir_event_add_summary(events->writer, step, weir_strbuf_view(&summary));
  weir_strbuf_free(&metadata);
  weir_strbuf_free(&summary);
  return status;
}

weir_status_t* weir_events_text(weir_events_t* events, const char* tag, const char* text,
                                int64_t step) {
  WEIR_REQUIRE_ARG(events);
  WEIR_REQUIRE_ARG(tag);
  WEIR_REQUIRE_ARG(text);
  weir_tensor_t* tensor = NULL;
  WEIR_TRY(weir_tensor_create_strings(0, NULL, &text, NULL, &tensor));
  weir_status_t* status = add_tensor(events, tag, "text", weir_view("", 0), tensor, step);
  weir_tensor_release(tensor);
  return status;
}

weir_status_t* weir_events_run_metadata(weir_events_t* events, const char* tag,
                                        const void* metadata, size_t size, int64_t step) {
  WEIR_REQUIRE_ARG(events);
  WEIR_REQUIRE_ARG(tag);
  WEIR_REQUIRE_ARG(metadata);
  weir_wire_reader_t reader = weir_wire_reader(weir_view(metadata, size));
  while (weir_wire_next(&reader)) continue;
  WEIR_TRY(weir_wire_check(&reader, "RunMetadata"));
  return weir_event_add_run_metadata(events->writer, step, weir_view_of(tag),
                                     weir_view(metadata, size));
}

// ---- hyperparameters ----

// HParamsPluginData's fields, all of version 0, and SessionStartInfo's and SessionEndInfo's.
enum { kStart = 3, kEnd = 4 };
enum { kHparams = 1, kStartTime = 5 };
enum { kEndStatus = 1, kEndTime = 2, kSucceeded = 1, kFailed = 2 };

static double seconds_now(void) { return (double)weir_wall_clock_us() / 1e6; }

// An entry {1: key, 2: google.protobuf.Value {2: number, 3: string, 4: bool}}.
static void put_hparam(const weir_hparam_t* hparam, weir_strbuf_t* out) {
  const size_t entry = weir_wire_begin(out, kHparams);
  weir_wire_put_string(out, 1, hparam->name);
  const size_t value = weir_wire_begin(out, 2);
  if (hparam->kind == WEIR_HPARAM_TEXT) weir_wire_put_string(out, 3, hparam->text);
  else if (hparam->kind == WEIR_HPARAM_BOOL) weir_wire_put_bool(out, 4, hparam->number != 0);
  else weir_wire_put_double(out, 2, hparam->number);
  weir_wire_end(out, value);
  weir_wire_end(out, entry);
}

// The value that goes with the plug-in's data: none.
static weir_status_t* add_session(weir_events_t* events, const char* tag, weir_strbuf_t* content) {
  weir_tensor_t* nothing = NULL;
  weir_status_t* status = weir_strbuf_finish(content);
  if (!status) status = weir_tensor_create(WEIR_DTYPE_FLOAT, 1, (const int64_t[]){0}, &nothing);
  if (!status) status = add_tensor(events, tag, "hparams", weir_strbuf_view(content), nothing, 0);
  weir_tensor_release(nothing);
  weir_strbuf_free(content);
  return status;
}

weir_status_t* weir_events_hparams(weir_events_t* events, const weir_hparam_t* hparams, int count) {
  WEIR_REQUIRE_ARG(events);
  WEIR_REQUIRE_COUNT(count);
  if (count > 0) WEIR_REQUIRE_ARG(hparams);
  for (int i = 0; i < count; ++i) {
    const weir_hparam_t* h = &hparams[i];
    if (!h->name) return WEIR_STATUS(INVALID_ARGUMENT, "hyperparameter %d has no name", i);
    if (h->kind == WEIR_HPARAM_TEXT && !h->text)
      return WEIR_STATUS(INVALID_ARGUMENT, "hyperparameter '%s' is a text, and has none", h->name);
  }
  weir_strbuf_t content = {0};
  const size_t start = weir_wire_begin(&content, kStart);
  for (int i = 0; i < count; ++i) put_hparam(&hparams[i], &content);
  weir_wire_put_double(&content, kStartTime, seconds_now());
  weir_wire_end(&content, start);
  return add_session(events, "_hparams_/session_start_info", &content);
}

weir_status_t* weir_events_hparams_end(weir_events_t* events, bool has_succeeded) {
  WEIR_REQUIRE_ARG(events);
  weir_strbuf_t content = {0};
  const size_t end = weir_wire_begin(&content, kEnd);
  weir_wire_put_int(&content, kEndStatus, has_succeeded ? kSucceeded : kFailed);
  weir_wire_put_double(&content, kEndTime, seconds_now());
  weir_wire_end(&content, end);
  return add_session(events, "_hparams_/session_end_info", &content);
}

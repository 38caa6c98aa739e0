// checkpoint_state.c — The file "checkpoint": CheckpointState in text format.
#include "file/checkpoint_state.h"

#include "base/alloc.h"
#include "wire/text.h"
#include "wire/wire.h"

// CheckpointState's fields.
enum { kLatest = 1, kAll = 2, kTimestamps = 3, kLastPreserved = 4 };

void weir_checkpoint_state_free(weir_checkpoint_state_t* state) {
  weir_free(state->latest);
  weir_free(state->timestamps);
  weir_names_free(&state->all);
  *state = (weir_checkpoint_state_t){0};
}

static void append_path(const char* directory, weir_strbuf_t* out) {
  size_t size = strlen(directory);
  bool needs_slash = size > 0 && directory[size - 1] != '/';
  weir_strbuf_printf(out, "%s%scheckpoint", directory, needs_slash ? "/" : "");
}

static weir_status_t* read_timestamps(const weir_wire_reader_t* reader, size_t* count,
                                      size_t* capacity, double** timestamps) {
  weir_wire_packed_t packed = weir_wire_packed(reader, WEIR_WIRE_FIXED64);
  uint64_t bits = 0;
  while (weir_wire_packed_next(&packed, &bits)) {
    if (!WEIR_GROW(*timestamps, *capacity, *count + 1)) return weir_out_of_memory();
    memcpy(&(*timestamps)[(*count)++], &bits, sizeof bits);
  }
  return NULL;
}

static weir_status_t* read_fields(weir_view_t message, weir_checkpoint_state_t* state) {
  size_t count = 0;
  size_t capacity = 0;
  weir_wire_reader_t reader = weir_wire_reader(message);
  while (weir_wire_next(&reader)) {
    if (reader.field == kLatest) {
      weir_free(state->latest);
      state->latest = weir_strndup(reader.bytes.data, reader.bytes.size);
      if (!state->latest) return weir_out_of_memory();
    }
    if (reader.field == kAll) WEIR_TRY(weir_names_add(&state->all, reader.bytes));
    if (reader.field == kTimestamps) {
      WEIR_TRY(read_timestamps(&reader, &count, &capacity, &state->timestamps));
    }
    if (reader.field == kLastPreserved) state->last_preserved = weir_wire_double(&reader);
  }
  WEIR_TRY(weir_wire_check(&reader, "CheckpointState"));
  if (count != state->all.count) {
    // Timestamps that do not belong to the paths say nothing.
    weir_free(state->timestamps);
    state->timestamps = NULL;
  }
  return NULL;
}

weir_status_t* weir_checkpoint_state_load(const char* directory,
                                          weir_checkpoint_state_t* out_state) {
  weir_strbuf_t path = {0};
  weir_strbuf_t text = {0};
  weir_strbuf_t wire = {0};
  weir_checkpoint_state_t state = {0};
  append_path(directory, &path);
  weir_status_t* status = weir_strbuf_finish(&path);
  if (!status) status = weir_fs_read_all(path.data, &text);
  if (status) goto done;
  status = weir_text_parse(&weir_message_checkpoint_state, weir_strbuf_view(&text), &wire);
  if (!status) status = read_fields(weir_strbuf_view(&wire), &state);
  if (status) {
    status = weir_status_prefix(status, "%s: ", path.data);
    goto done;
  }
  *out_state = state;
  state = (weir_checkpoint_state_t){0};
done:
  weir_checkpoint_state_free(&state);
  weir_strbuf_free(&path);
  weir_strbuf_free(&text);
  weir_strbuf_free(&wire);
  return status;
}

static void write_fields(const weir_checkpoint_state_t* state, weir_strbuf_t* out) {
  if (state->latest) weir_wire_put_string(out, kLatest, state->latest);
  for (size_t i = 0; i < state->all.count; ++i)
    weir_wire_put_string(out, kAll, state->all.items[i]);
  for (size_t i = 0; state->timestamps && i < state->all.count; ++i) {
    weir_wire_put_double(out, kTimestamps, state->timestamps[i]);
  }
  if (state->last_preserved != 0) weir_wire_put_double(out, kLastPreserved, state->last_preserved);
}

weir_status_t* weir_checkpoint_state_save(const char* directory,
                                          const weir_checkpoint_state_t* state) {
  weir_strbuf_t path = {0};
  weir_strbuf_t text = {0};
  weir_strbuf_t wire = {0};
  append_path(directory, &path);
  write_fields(state, &wire);
  weir_status_t* status = weir_strbuf_finish(&path);
  if (!status) status = weir_strbuf_finish(&wire);
  if (!status) {
    status = weir_text_print(&weir_message_checkpoint_state, weir_strbuf_view(&wire), &text);
  }
  if (!status) status = weir_strbuf_finish(&text);
  if (!status) status = weir_fs_replace(path.data, weir_strbuf_view(&text));
  weir_strbuf_free(&path);
  weir_strbuf_free(&text);
  weir_strbuf_free(&wire);
  return status;
}

static bool is_absolute(const char* path) { return path[0] == '/' || strstr(path, "://"); }

weir_status_t* weir_checkpoint_latest(const char* directory, weir_strbuf_t* out_prefix) {
  weir_checkpoint_state_t state = {0};
  WEIR_TRY(weir_checkpoint_state_load(directory, &state));
  weir_status_t* status = NULL;
  size_t size = strlen(directory);
  if (!state.latest || state.latest[0] == '\0') {
    status = WEIR_STATUS(NOT_FOUND, "%s/checkpoint names no checkpoint", directory);
  } else if (is_absolute(state.latest) || size == 0) {
    weir_strbuf_puts(out_prefix, state.latest);
  } else {
    const char* slash = directory[size - 1] == '/' ? "" : "/";
    weir_strbuf_printf(out_prefix, "%s%s%s", directory, slash, state.latest);
  }
  if (!status) status = weir_strbuf_finish(out_prefix);
  weir_checkpoint_state_free(&state);
  return status;
}

// saver.c — Savers: running the nodes, and looking at checkpoints.
#include "api/saver.h"

#include <math.h>

#include "base/alloc.h"
#include "base/log.h"
#include "file/bundle.h"
#include "session/session.h"

enum { DEFAULT_KEPT = 5 };

weir_saver_t* weir_saver_create_with(weir_scope_t* scope, const weir_saver_options_t* options) {
  options = options ? options : &(const weir_saver_options_t){0};
  WEIR_ASSERT_ARG(scope);
  if (weir_scope_status(scope)) return NULL;
  weir_saver_t* saver = weir_calloc(1, sizeof(*saver));
  if (!saver) {
    weir_scope_fail(scope, weir_out_of_memory());
    return NULL;
  }
  saver->max_to_keep = options->max_to_keep ? options->max_to_keep : DEFAULT_KEPT;
  saver->is_sharded = options->is_sharded;
  saver->keep_best = options->keep_best;
  saver->higher_is_better = options->higher_is_better;
  saver->keep_every_seconds = options->keep_every_n_hours * 3600;
  if (saver->keep_every_seconds > 0) saver->last_preserved = weir_saver_now();
  saver->next_keep = saver->last_preserved + saver->keep_every_seconds;
  weir_saver_build(saver, scope, options);
  if (!weir_scope_status(scope)) return saver;
  weir_saver_destroy(saver);
  return NULL;
}

void weir_saver_destroy(weir_saver_t* saver) {
  if (!saver) return;
  weir_status_t* status = weir_saver_wait(saver);
  if (status) WEIR_LOG(ERROR, "a checkpoint was not saved: %s", weir_status_message(status));
  weir_status_destroy(status);
  for (size_t i = 0; i < saver->kept_count; ++i) weir_free(saver->kept[i].prefix);
  weir_free(saver->kept);
  weir_free(saver->values);
  weir_free(saver);
}

// ---- saving ----

// Runs the nodes that save, with |save->values| in place of what these would read.
static weir_status_t* run_save(const weir_saver_t* saver, weir_session_t* session,
                               const weir_save_t* save) {
  const int value_count = save->values ? saver->value_count : 0;
  weir_tensor_t* result = NULL;
  weir_feed_t* feeds = weir_alloc_array((size_t)value_count + 1, sizeof(*feeds));
  if (!feeds) return weir_out_of_memory();
  feeds[0] = (weir_feed_t){saver->filename, NULL};
  for (int i = 0; i < value_count; ++i)
    feeds[i + 1] = (weir_feed_t){saver->values[i], save->values[i]};
  const char* path = save->path;
  weir_status_t* status = weir_tensor_create_strings(0, NULL, &path, NULL, &feeds[0].tensor);
  weir_step_spec_t spec = {
      .feeds = feeds, .feed_count = value_count + 1, .fetches = &saver->saved, .fetch_count = 1};
  if (!status) status = weir_session_run(session, &spec, &result);
  weir_tensor_release(feeds[0].tensor);
  weir_tensor_release(result);
  weir_free(feeds);
  return status;
}

weir_status_t* weir_saver_end(weir_saver_t* saver, const weir_save_t* save,
                              weir_status_t* take_status) {
  weir_saver_remove_leftovers(saver, save->path);
  WEIR_TRY(take_status);
  WEIR_TRY(weir_saver_add_kept(saver, save->path, weir_saver_now(), save->metric));
  return weir_saver_update_state(saver, save->path);
}

weir_status_t* weir_saver_write(weir_saver_t* saver, weir_session_t* session,
                                const weir_save_t* save) {
  return weir_saver_end(saver, save, run_save(saver, session, save));
}

// Whether that is why a snapshot failed; then it is forgotten.
static bool is_unknown_to_servers(weir_status_t** status) {
  const weir_code_t code = weir_status_code(*status);
  if (code != WEIR_UNIMPLEMENTED && code != WEIR_NOT_FOUND) return false;
  weir_status_destroy(*status);
  *status = NULL;
  return true;
}

// On servers, other clients' steps may go on meanwhile: what is saved is taken between them where
// that can be done, and as it is otherwise.
static weir_status_t* write_on_servers(weir_saver_t* saver, weir_session_t* session,
                                       const weir_save_t* save) {
  void* step = NULL;
  weir_status_t* status = weir_saver_begin_snapshot(saver, session, save->path, &step);
  if (is_unknown_to_servers(&status)) return weir_saver_write(saver, session, save);
  if (!status) status = weir_saver_end_snapshot(session, step);
  return weir_saver_end(saver, save, status);
}

// Consumes |take_path|.
static weir_status_t* save_as(weir_saver_t* saver, weir_session_t* session, char* take_path,
                              double metric, bool in_background) {
  const weir_save_t save = {.path = take_path, .metric = metric};
  weir_status_t* status = NULL;
  if (in_background) {
    status = weir_saver_start(saver, session, take_path, metric);
    if (!session->remote || !is_unknown_to_servers(&status)) return status;
  }
  if (session->remote && !in_background) status = write_on_servers(saver, session, &save);
  else status = weir_saver_write(saver, session, &save);
  weir_free(take_path);
  return status;
}

// The name to save under, in a directory that is there.
static weir_status_t* make_path(const char* prefix, int64_t step, char** out_path) {
  weir_strbuf_t path = {0};
  char* directory = weir_saver_directory(prefix);
  weir_status_t* status = directory ? weir_fs_make_directories(directory) : weir_out_of_memory();
  weir_strbuf_puts(&path, prefix);
  if (step >= 0) weir_strbuf_printf(&path, "-%lld", (long long)step);
  if (!status && !*weir_saver_base_name(prefix))
    status =
        WEIR_STATUS(INVALID_ARGUMENT, "saver: '%s' names a directory, not a checkpoint", prefix);
  if (!status) status = weir_strbuf_finish(&path);
  weir_free(directory);
  if (!status) *out_path = path.data;
  else weir_strbuf_free(&path);
  return status;
}

weir_status_t* weir_saver_save_with(weir_saver_t* saver, weir_session_t* session,
                                    const char* prefix, int64_t step,
                                    const weir_save_options_t* options, char** out_path) {
  WEIR_REQUIRE_ARG(saver);
  WEIR_REQUIRE_ARG(session);
  WEIR_REQUIRE_ARG(prefix);
  const weir_save_options_t defaults = {0};
  options = options ? options : &defaults;
  const double metric = options->metric ? *options->metric : NAN;
  char *path = NULL, *copy = NULL;
  WEIR_TRY(weir_saver_wait(saver));
  WEIR_TRY(make_path(prefix, step, &path));
  if (out_path) copy = weir_strdup(path);
  weir_status_t* status = out_path && !copy ? weir_out_of_memory() : NULL;
  if (status) weir_free(path);
  else status = save_as(saver, session, path, metric, options->in_background);
  if (!status && out_path) *out_path = copy;
  else weir_free(copy);
  return status;
}

weir_status_t* weir_saver_save(weir_saver_t* saver, weir_session_t* session, const char* prefix,
                               int64_t step, char** out_path) {
  return weir_saver_save_with(saver, session, prefix, step, NULL, out_path);
}

// ---- restoring ----

weir_status_t* weir_saver_restore(weir_saver_t* saver, weir_session_t* session,
                                  const char* prefix) {
  WEIR_REQUIRE_ARG(saver);
  WEIR_REQUIRE_ARG(session);
  WEIR_REQUIRE_ARG(prefix);
  weir_tensor_t* name = NULL;
  weir_tensor_t* none = NULL;
  WEIR_TRY(weir_saver_wait(saver));
  WEIR_TRY(weir_tensor_create_strings(0, NULL, &prefix, NULL, &name));
  weir_step_spec_t spec = {WEIR_FEEDS({saver->filename, name}), WEIR_TARGETS(saver->restored)};
  weir_status_t* status = weir_session_run(session, &spec, &none);
  weir_tensor_release(name);
  return status;
}

static weir_status_t* recover(weir_saver_t* saver, const char* directory,
                              const weir_checkpoint_state_t* state) {
  weir_strbuf_t path = {0};
  weir_status_t* status = NULL;
  for (size_t i = 0; i < state->all.count && !status; ++i) {
    status = weir_saver_path(directory, state->all.items[i], &path);
    const double time = state->timestamps ? state->timestamps[i] : weir_saver_now();
    if (!status) status = weir_saver_add_kept(saver, path.data, time, NAN);
  }
  weir_strbuf_free(&path);
  if (status || saver->keep_every_seconds <= 0) return status;
  // The hours go on where the last run was: else runs shorter than that would never keep one.
  if (state->last_preserved > 0) saver->last_preserved = state->last_preserved;
  saver->next_keep = saver->last_preserved + saver->keep_every_seconds;
  return NULL;
}

weir_status_t* weir_saver_recover(weir_saver_t* saver, const char* directory) {
  WEIR_REQUIRE_ARG(saver);
  WEIR_REQUIRE_ARG(directory);
  weir_checkpoint_state_t state = {0};
  WEIR_TRY(weir_saver_wait(saver));
  weir_status_t* status = weir_checkpoint_state_load(directory, &state);
  if (weir_status_code(status) == WEIR_NOT_FOUND) {
    weir_status_destroy(status);
    return NULL;
  }
  if (!status) status = recover(saver, directory, &state);
  if (!status) status = weir_saver_recover_best(saver, directory);
  weir_checkpoint_state_free(&state);
  return status;
}

// ---- looking at checkpoints ----

weir_status_t* weir_latest_checkpoint(const char* directory, char** out_prefix) {
  WEIR_REQUIRE_ARG(directory);
  WEIR_REQUIRE_ARG(out_prefix);
  weir_strbuf_t prefix = {0};
  weir_strbuf_t index = {0};
  weir_status_t* status = weir_checkpoint_latest(directory, &prefix);
  bool is_there = !status;
  if (weir_status_code(status) == WEIR_NOT_FOUND) {
    weir_status_destroy(status);
    status = NULL;
  }
  if (is_there) {  // the file may list what is gone
    weir_bundle_append_index_path(prefix.data, &index);
    status = weir_strbuf_finish(&index);
    is_there = !status && weir_fs_exists(index.data);
  }
  weir_strbuf_free(&index);
  if (!status) *out_prefix = is_there ? prefix.data : NULL;
  if (!is_there) weir_strbuf_free(&prefix);
  return status;
}

weir_status_t* weir_checkpoint_has(const char* prefix, const char* name, bool* out_has) {
  WEIR_REQUIRE_ARG(prefix);
  WEIR_REQUIRE_ARG(name);
  WEIR_REQUIRE_ARG(out_has);
  weir_bundle_t* bundle = NULL;
  weir_bundle_entry_t entry;
  WEIR_TRY(weir_bundle_open(prefix, &bundle));
  weir_status_t* status = weir_bundle_find(bundle, weir_view_of(name), &entry);
  bool is_absent = weir_status_code(status) == WEIR_NOT_FOUND;
  *out_has = !status;
  weir_bundle_close(bundle);
  if (!is_absent) return status;
  weir_status_destroy(status);
  return NULL;
}

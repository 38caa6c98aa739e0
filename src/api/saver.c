// saver.c — Savers: running the nodes, and which checkpoints of a training run stay.
#include "api/saver.h"

#include "base/alloc.h"
#include "base/thread.h"
#include "file/bundle.h"

enum { DEFAULT_KEPT = 5 };

static double wall_seconds(void) { return (double)weir_wall_clock_us() / 1e6; }

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
  saver->keep_every_seconds = options->keep_every_n_hours * 3600;
  saver->next_keep = wall_seconds() + saver->keep_every_seconds;
  weir_saver_build(saver, scope, options);
  if (!weir_scope_status(scope)) return saver;
  weir_saver_destroy(saver);
  return NULL;
}

void weir_saver_destroy(weir_saver_t* saver) {
  if (!saver) return;
  for (size_t i = 0; i < saver->kept_count; ++i) weir_free(saver->kept[i].prefix);
  weir_free(saver->kept);
  weir_free(saver);
}

// ---- which stay ----

static const char* base_name(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static char* directory_of(const char* prefix) {
  weir_view_t parent = weir_path_parent(prefix);
  return parent.size ? weir_strndup(parent.data, parent.size) : weir_strdup(".");
}

// Removes the files of a checkpoint. Missing ones are no error: somebody may have tidied up.
static weir_status_t* remove_checkpoint(const char* prefix) {
  const char* base = base_name(prefix);
  char* directory = directory_of(prefix);
  weir_names_t names = {0};
  weir_strbuf_t path = {0};
  weir_status_t* status = directory ? weir_fs_list(directory, &names) : weir_out_of_memory();
  size_t size = strlen(base);
  for (size_t i = 0; i < names.count && !status; ++i) {
    const char* name = names.items[i];
    if (strncmp(name, base, size) != 0) continue;
    bool is_part = strncmp(name + size, ".data-", 6) == 0 || strcmp(name + size, ".index") == 0 ||
                   strcmp(name + size, ".meta") == 0;
    if (!is_part) continue;
    path.size = 0;
    weir_strbuf_printf(&path, "%s/%s", directory, name);
    status = weir_strbuf_finish(&path);
    if (!status) status = weir_fs_remove(path.data);
    if (weir_status_code(status) == WEIR_NOT_FOUND) {
      weir_status_destroy(status);
      status = NULL;
    }
  }
  weir_names_free(&names);
  weir_strbuf_free(&path);
  weir_free(directory);
  return status;
}

static void drop_kept(weir_saver_t* saver, size_t index) {
  weir_free(saver->kept[index].prefix);
  --saver->kept_count;
  memmove(&saver->kept[index], &saver->kept[index + 1],
          sizeof(*saver->kept) * (saver->kept_count - index));
}

// Adds a checkpoint as the newest; one of the same name is no longer among the older.
static weir_status_t* add_kept(weir_saver_t* saver, const char* prefix, double time) {
  for (size_t i = 0; i < saver->kept_count; ++i) {
    if (strcmp(saver->kept[i].prefix, prefix) != 0) continue;
    drop_kept(saver, i);
    break;
  }
  char* copy = weir_strdup(prefix);
  if (!copy || !WEIR_GROW(saver->kept, saver->kept_capacity, saver->kept_count + 1)) {
    weir_free(copy);
    return weir_out_of_memory();
  }
  saver->kept[saver->kept_count++] = (weir_kept_t){.prefix = copy, .time = time};
  return NULL;
}

static size_t excess(const weir_saver_t* saver) {
  if (saver->max_to_keep < 0 || saver->kept_count <= (size_t)saver->max_to_keep) return 0;
  return saver->kept_count - (size_t)saver->max_to_keep;
}

static weir_status_t* drop_old(weir_saver_t* saver) {
  weir_status_t* status = NULL;
  while (!status && excess(saver) > 0) {
    const weir_kept_t oldest = saver->kept[0];
    bool stays = saver->keep_every_seconds > 0 && oldest.time > saver->next_keep;
    if (stays) {
      saver->next_keep += saver->keep_every_seconds;
      saver->last_preserved = oldest.time;
    } else {
      status = remove_checkpoint(oldest.prefix);
    }
    drop_kept(saver, 0);
  }
  return status;
}

// Says which checkpoints there are. Those of other directories are kept, but not listed in this
// one's.
static weir_status_t* write_state(const weir_saver_t* saver, const char* prefix) {
  weir_checkpoint_state_t state = {.latest = weir_strdup(base_name(prefix)),
                                   .last_preserved = saver->last_preserved};
  char* directory = directory_of(prefix);
  state.timestamps = weir_alloc_array(saver->kept_count + 1, sizeof(double));
  bool has_memory = state.latest && directory && state.timestamps;
  weir_status_t* status = has_memory ? NULL : weir_out_of_memory();
  size_t size = strlen(prefix) - (has_memory ? strlen(state.latest) : 0);
  for (size_t i = 0; i < saver->kept_count && !status; ++i) {
    const weir_kept_t* kept = &saver->kept[i];
    bool is_here = strncmp(kept->prefix, prefix, size) == 0 && !strchr(kept->prefix + size, '/');
    if (!is_here) continue;
    state.timestamps[state.all.count] = kept->time;
    status = weir_names_add(&state.all, weir_view_of(kept->prefix + size));
  }
  if (!status) status = weir_checkpoint_state_save(directory, &state);
  weir_checkpoint_state_free(&state);
  weir_free(directory);
  return status;
}

// Makes |prefix| the latest, and drops the oldest. They are listed until they are gone: what a
// killed run leaves of them, the next one finds there (weir_saver_recover) and removes.
static weir_status_t* update_state(weir_saver_t* saver, const char* prefix) {
  WEIR_TRY(write_state(saver, prefix));
  if (excess(saver) == 0) return NULL;
  WEIR_TRY(drop_old(saver));
  return write_state(saver, prefix);
}

// ---- saving and restoring ----

static weir_status_t* run(weir_saver_t* saver, weir_session_t* session, const char* prefix,
                          bool is_save) {
  weir_tensor_t* name = NULL;
  weir_tensor_t* result = NULL;
  WEIR_TRY(weir_tensor_create_strings(0, NULL, &prefix, NULL, &name));
  weir_step_spec_t spec = {WEIR_FEEDS({saver->filename, name}), .fetches = &saver->saved,
                           .fetch_count = is_save, .targets = &saver->restored,
                           .target_count = !is_save};
  weir_status_t* status = weir_session_run(session, &spec, &result);
  weir_tensor_release(name);
  weir_tensor_release(result);
  return status;
}

weir_status_t* weir_saver_save(weir_saver_t* saver, weir_session_t* session, const char* prefix,
                               int64_t step, char** out_path) {
  WEIR_REQUIRE_ARG(saver);
  WEIR_REQUIRE_ARG(session);
  WEIR_REQUIRE_ARG(prefix);
  weir_strbuf_t path = {0};
  char* directory = directory_of(prefix);
  weir_status_t* status = directory ? weir_fs_make_directories(directory) : weir_out_of_memory();
  weir_strbuf_puts(&path, prefix);
  if (step >= 0) weir_strbuf_printf(&path, "-%lld", (long long)step);
  if (!status && !*base_name(prefix))
    status =
        WEIR_STATUS(INVALID_ARGUMENT, "saver: '%s' names a directory, not a checkpoint", prefix);
  if (!status) status = weir_strbuf_finish(&path);
  if (!status) status = run(saver, session, path.data, true);
  if (!status) status = add_kept(saver, path.data, wall_seconds());
  if (!status) status = update_state(saver, path.data);
  weir_free(directory);
  if (!status && out_path) *out_path = path.data;
  else weir_strbuf_free(&path);
  return status;
}

weir_status_t* weir_saver_restore(weir_saver_t* saver, weir_session_t* session,
                                  const char* prefix) {
  WEIR_REQUIRE_ARG(saver);
  WEIR_REQUIRE_ARG(session);
  WEIR_REQUIRE_ARG(prefix);
  return run(saver, session, prefix, false);
}

weir_status_t* weir_saver_recover(weir_saver_t* saver, const char* directory) {
  WEIR_REQUIRE_ARG(saver);
  WEIR_REQUIRE_ARG(directory);
  weir_checkpoint_state_t state = {0};
  weir_strbuf_t path = {0};
  weir_status_t* status = weir_checkpoint_state_load(directory, &state);
  if (weir_status_code(status) == WEIR_NOT_FOUND) {
    weir_status_destroy(status);
    return NULL;
  }
  for (size_t i = 0; i < state.all.count && !status; ++i) {
    const char* name = state.all.items[i];
    path.size = 0;
    if (*name == '/') weir_strbuf_puts(&path, name);
    else weir_strbuf_printf(&path, "%s/%s", directory, name);
    status = weir_strbuf_finish(&path);
    double time = state.timestamps ? state.timestamps[i] : wall_seconds();
    if (!status) status = add_kept(saver, path.data, time);
  }
  weir_strbuf_free(&path);
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

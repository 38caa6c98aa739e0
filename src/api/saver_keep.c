// saver_keep.c — Which checkpoints of a training run stay, and the file that says which there are.
#include "api/saver.h"
#include "base/alloc.h"
#include "base/thread.h"

double weir_saver_now(void) { return (double)weir_wall_clock_us() / 1e6; }

// ---- names ----

const char* weir_saver_base_name(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

char* weir_saver_directory(const char* prefix) {
  weir_view_t parent = weir_path_parent(prefix);
  return parent.size ? weir_strndup(parent.data, parent.size) : weir_strdup(".");
}

weir_status_t* weir_saver_path(const char* directory, const char* name, weir_strbuf_t* out) {
  const bool is_absolute = *name == '/' || strstr(name, "://");
  out->size = 0;
  if (is_absolute) weir_strbuf_puts(out, name);
  else weir_strbuf_printf(out, "%s/%s", directory, name);
  return weir_strbuf_finish(out);
}

bool weir_saver_is_part(const char* name, const char* base) {
  const size_t size = strlen(base);
  if (strncmp(name, base, size) != 0) return false;
  return strncmp(name + size, ".data-", 6) == 0 || strcmp(name + size, ".index") == 0 ||
         strcmp(name + size, ".meta") == 0;
}

// ---- the list ----

// Missing ones are no error: somebody may have tidied up.
static weir_status_t* remove_file(const char* path) {
  weir_status_t* status = weir_fs_remove(path);
  if (weir_status_code(status) != WEIR_NOT_FOUND) return status;
  weir_status_destroy(status);
  return NULL;
}

static weir_status_t* remove_index(const char* prefix, weir_strbuf_t* path) {
  path->size = 0;
  weir_strbuf_printf(path, "%s.index", prefix);
  WEIR_TRY(weir_strbuf_finish(path));
  return remove_file(path->data);
}

// Removes the files of a checkpoint, the index first: what a run that is killed meanwhile leaves is
// no checkpoint to anybody.
static weir_status_t* remove_checkpoint(const char* prefix) {
  const char* base = weir_saver_base_name(prefix);
  char* directory = weir_saver_directory(prefix);
  weir_names_t names = {0};
  weir_strbuf_t path = {0};
  weir_status_t* status = directory ? weir_fs_list(directory, &names) : weir_out_of_memory();
  if (!status) status = remove_index(prefix, &path);
  for (size_t i = 0; i < names.count && !status; ++i) {
    if (!weir_saver_is_part(names.items[i], base)) continue;
    status = weir_saver_path(directory, names.items[i], &path);
    if (!status) status = remove_file(path.data);
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

void weir_saver_forget(weir_saver_t* saver, const char* prefix) {
  for (size_t i = 0; i < saver->kept_count; ++i) {
    if (strcmp(saver->kept[i].prefix, prefix) != 0) continue;
    drop_kept(saver, i);
    return;
  }
}

weir_status_t* weir_saver_add_kept(weir_saver_t* saver, const char* prefix, double time,
                                   double metric) {
  weir_saver_forget(saver, prefix);
  char* copy = weir_strdup(prefix);
  if (!copy || !WEIR_GROW(saver->kept, saver->kept_capacity, saver->kept_count + 1)) {
    weir_free(copy);
    return weir_out_of_memory();
  }
  saver->kept[saver->kept_count++] = (weir_kept_t){.prefix = copy, .time = time, .metric = metric};
  return NULL;
}

// ---- which go ----

// The oldest that is neither among the newest nor among the best; |kept_count|: there is none.
static size_t find_excess(const weir_saver_t* saver) {
  if (saver->max_to_keep < 0) return saver->kept_count;
  for (size_t i = 0; i + (size_t)saver->max_to_keep < saver->kept_count; ++i) {
    if (!weir_saver_is_kept_best(saver, i)) return i;
  }
  return saver->kept_count;
}

static weir_status_t* drop_excess(weir_saver_t* saver) {
  weir_status_t* status = NULL;
  for (size_t i; !status && (i = find_excess(saver)) < saver->kept_count;) {
    const weir_kept_t oldest = saver->kept[i];
    bool stays = saver->keep_every_seconds > 0 && oldest.time > saver->next_keep;
    if (stays) {
      saver->next_keep += saver->keep_every_seconds;
      saver->last_preserved = oldest.time;
    } else {
      status = remove_checkpoint(oldest.prefix);
    }
    drop_kept(saver, i);
  }
  return status;
}

// ---- the files that say which there are ----

bool weir_saver_is_beside(const weir_kept_t* kept, const char* prefix, const char** out_name) {
  const size_t size = (size_t)(weir_saver_base_name(prefix) - prefix);
  *out_name = kept->prefix + size;
  return strncmp(kept->prefix, prefix, size) == 0 && !strchr(*out_name, '/');
}

// Says which checkpoints there are. Those of other directories are kept, but not listed in this
// one's.
static weir_status_t* write_state(const weir_saver_t* saver, const char* prefix) {
  weir_checkpoint_state_t state = {.latest = weir_strdup(weir_saver_base_name(prefix)),
                                   .last_preserved = saver->last_preserved};
  char* directory = weir_saver_directory(prefix);
  state.timestamps = weir_alloc_array(saver->kept_count + 1, sizeof(double));
  bool has_memory = state.latest && directory && state.timestamps;
  weir_status_t* status = has_memory ? NULL : weir_out_of_memory();
  for (size_t i = 0; i < saver->kept_count && !status; ++i) {
    const char* name = NULL;
    if (!weir_saver_is_beside(&saver->kept[i], prefix, &name)) continue;
    state.timestamps[state.all.count] = saver->kept[i].time;
    status = weir_names_add(&state.all, weir_view_of(name));
  }
  if (!status) status = weir_checkpoint_state_save(directory, &state);
  weir_checkpoint_state_free(&state);
  weir_free(directory);
  return status;
}

// Those that go are listed until they are gone: what a killed run leaves of them, the next one
// finds there (weir_saver_recover) and removes. The best are named before the latest is, so that
// none is ever listed without its metric.
weir_status_t* weir_saver_update_state(weir_saver_t* saver, const char* prefix) {
  WEIR_TRY(weir_saver_write_best(saver, prefix));
  WEIR_TRY(write_state(saver, prefix));
  if (find_excess(saver) == saver->kept_count) return NULL;
  WEIR_TRY(drop_excess(saver));
  return write_state(saver, prefix);
}

// saver_resume.c — Going on from the newest checkpoint that is whole.
//
// A save is atomic: data and index are on disk under temporary names before they are renamed, and
// the state file names a checkpoint only after that. So a run that is killed at any moment leaves
// the checkpoint before whole, and named. What is damaged nevertheless was damaged later, by disks,
// copies that ended early, or people; it is told by sizes and checksums, which every checkpoint
// has.
#include <stdlib.h>

#include "api/saver.h"
#include "base/alloc.h"
#include "base/log.h"
#include "file/bundle.h"
#include "weir/argument.h"

typedef struct search_t {
  weir_saver_t* saver;
  weir_session_t* session;
  const char* base;  // what checkpoints are called before "-<step>"
  char* directory;
  weir_names_t tried;     // paths
  weir_strbuf_t refused;  // which, and why
  bool has_damaged;       // whether any of these has files
  char* found;            // the path that was restored
} search_t;

static void search_free(search_t* search) {
  weir_free(search->directory);
  weir_free(search->found);
  weir_names_free(&search->tried);
  weir_strbuf_free(&search->refused);
}

// ---- one checkpoint ----

static void refuse(search_t* search, const char* name, weir_status_t* take_why) {
  weir_strbuf_printf(&search->refused, "%s%s: %s", search->refused.size ? "; " : "", name,
                     weir_status_message(take_why));
  weir_status_destroy(take_why);
}

static weir_status_t* has_files(const char* path, bool* out_has) {
  weir_names_t names = {0};
  char* directory = weir_saver_directory(path);
  weir_status_t* status = directory ? weir_fs_list(directory, &names) : weir_out_of_memory();
  for (size_t i = 0; i < names.count && !*out_has; ++i)
    *out_has = weir_saver_is_part(names.items[i], weir_saver_base_name(path));
  weir_names_free(&names);
  weir_free(directory);
  if (weir_status_code(status) != WEIR_NOT_FOUND) return status;
  weir_status_destroy(status);
  return NULL;
}

static weir_status_t* check_files(const char* path) {
  weir_bundle_t* bundle = NULL;
  WEIR_TRY(weir_bundle_open(path, &bundle));
  weir_status_t* status = weir_bundle_check_files(bundle);
  weir_bundle_close(bundle);
  return status;
}

// What the files themselves can be blamed for; UNKNOWN is what disks that fail give.
static bool is_damage(const weir_status_t* status) {
  switch (weir_status_code(status)) {
    case WEIR_DATA_LOSS:
    case WEIR_NOT_FOUND:
    case WEIR_INVALID_ARGUMENT:
    case WEIR_UNKNOWN: return true;
    default: return false;
  }
}

// The restoring node reads all tensors, with their checksums, before any variable is assigned.
static weir_status_t* restore(search_t* search, const char* path, weir_status_t** out_damage) {
  weir_status_t* status = check_files(path);
  bool is_damaged = is_damage(status);
  if (!status) {
    status = weir_saver_restore(search->saver, search->session, path);
    is_damaged = weir_status_code(status) == WEIR_DATA_LOSS;
  }
  if (!is_damaged) return status;
  *out_damage = status;
  return NULL;
}

static bool was_tried(const search_t* search, const char* path) {
  for (size_t i = 0; i < search->tried.count; ++i) {
    if (!strcmp(search->tried.items[i], path)) return true;
  }
  return false;
}

static weir_status_t* try_one(search_t* search, const char* name) {
  weir_strbuf_t path = {0};
  weir_status_t* damage = NULL;
  weir_status_t* status = weir_saver_path(search->directory, name, &path);
  if (status || was_tried(search, path.data)) goto done;
  status = weir_names_add(&search->tried, weir_strbuf_view(&path));
  if (!status) status = restore(search, path.data, &damage);
  if (status) goto done;
  if (damage) {
    refuse(search, name, damage);
    weir_saver_forget(search->saver, path.data);
    status = has_files(path.data, &search->has_damaged);
  } else {
    search->found = weir_strdup(path.data);
    if (!search->found) status = weir_out_of_memory();
  }
done:
  weir_strbuf_free(&path);
  return status;
}

// ---- what there is ----

// A file of the directory that is the index of a checkpoint.
typedef struct unlisted_t {
  char* name;  // of the checkpoint, owned
  int64_t step;
  int64_t modified_us;
} unlisted_t;

static int compare_unlisted(const void* a, const void* b) {
  const unlisted_t *x = a, *y = b;
  if (x->modified_us != y->modified_us) return x->modified_us > y->modified_us ? -1 : 1;
  return x->step > y->step ? -1 : x->step < y->step;
}

// Whether |name| is "<base>.index" or "<base>-<step>.index".
static bool is_index(const char* name, const char* base, int64_t* out_step) {
  static const char kIndex[] = ".index";
  const size_t size = strlen(name), base_size = strlen(base), end_size = sizeof(kIndex) - 1;
  if (size < base_size + end_size || strcmp(name + size - end_size, kIndex) != 0) return false;
  if (strncmp(name, base, base_size) != 0) return false;
  weir_view_t step = weir_view(name + base_size, size - base_size - end_size);
  *out_step = -1;
  if (step.size == 0) return true;
  return step.data[0] == '-' &&
         weir_parse_int64(weir_view(step.data + 1, step.size - 1), out_step) && *out_step >= 0;
}

static weir_status_t* look_at(search_t* search, const char* name, unlisted_t* out) {
  weir_strbuf_t path = {0};
  weir_file_info_t info = {0};
  weir_status_t* status = weir_saver_path(search->directory, name, &path);
  if (!status) status = weir_fs_info(path.data, &info);
  weir_strbuf_free(&path);
  if (status) return status;
  out->modified_us = info.modified_us;
  out->name = weir_strndup(name, strlen(name) - strlen(".index"));
  return out->name ? NULL : weir_out_of_memory();
}

// Tries all of the directory that bear the name, last saved first.
static weir_status_t* try_unlisted(search_t* search) {
  weir_names_t names = {0};
  unlisted_t* all = NULL;
  size_t count = 0;
  weir_status_t* status = weir_fs_list(search->directory, &names);
  if (!status) all = weir_calloc(names.count + 1, sizeof(*all));
  if (!status && !all) status = weir_out_of_memory();
  for (size_t i = 0; i < names.count && !status; ++i) {
    if (!is_index(names.items[i], search->base, &all[count].step)) continue;
    status = look_at(search, names.items[i], &all[count]);
    if (!status) ++count;
  }
  if (count > 1) qsort(all, count, sizeof(*all), compare_unlisted);
  for (size_t i = 0; i < count && !status && !search->found; ++i)
    status = try_one(search, all[i].name);
  for (size_t i = 0; i < count; ++i) weir_free(all[i].name);
  weir_free(all);
  weir_names_free(&names);
  return status;
}

// The newest first; the latest need not be on the list.
static weir_status_t* try_listed(search_t* search, const weir_checkpoint_state_t* state) {
  weir_status_t* status = try_one(search, state->latest);
  for (size_t i = state->all.count; i-- > 0 && !status && !search->found;)
    status = try_one(search, state->all.items[i]);
  return status;
}

// ---- the search ----

// As in TensorFlow, a directory without a state file has no checkpoint, whatever lies there; but
// whoever lost only that file should hear of it.
static weir_status_t* note_unnamed(search_t* search) {
  weir_names_t names = {0};
  int64_t step = 0;
  weir_status_t* status = weir_fs_list(search->directory, &names);
  for (size_t i = 0; i < names.count && !search->refused.size; ++i) {
    if (is_index(names.items[i], search->base, &step))
      refuse(search, "the file 'checkpoint'",
             WEIR_STATUS(NOT_FOUND, "is not there, so what lies beside it is left alone"));
  }
  weir_names_free(&names);
  if (weir_status_code(status) != WEIR_NOT_FOUND) return status;
  weir_status_destroy(status);
  return NULL;
}

// What the state file says; |*out_is_there| is false where there is none. One that cannot be read
// is empty.
static weir_status_t* load_state(search_t* search, weir_checkpoint_state_t* state,
                                 bool* out_is_there) {
  weir_status_t* status = weir_checkpoint_state_load(search->directory, state);
  *out_is_there = weir_status_code(status) != WEIR_NOT_FOUND;
  if (!*out_is_there) {
    weir_status_destroy(status);
    return NULL;
  }
  if (!status && (!state->latest || !*state->latest))
    status = WEIR_STATUS(DATA_LOSS, "it names no checkpoint");
  if (!is_damage(status)) return status;
  refuse(search, "the file 'checkpoint'", status);
  weir_checkpoint_state_free(state);
  return NULL;
}

static weir_status_t* find(search_t* search) {
  weir_checkpoint_state_t state = {0};
  bool is_there = false;
  weir_status_t* status = load_state(search, &state, &is_there);
  if (!status && state.latest) {
    status = weir_saver_recover(search->saver, search->directory);
    if (!status) status = try_listed(search, &state);
  }
  if (!status && !search->found) status = is_there ? try_unlisted(search) : note_unnamed(search);
  weir_checkpoint_state_free(&state);
  if (!status) status = weir_strbuf_finish(&search->refused);
  if (status || search->found || !search->has_damaged) return status;
  return WEIR_STATUS(DATA_LOSS, "no checkpoint in '%s' is whole: %s", search->directory,
                     search->refused.data);
}

static void hand_over(search_t* search, char** out_path, char** out_refused) {
  if (search->refused.size && !out_refused)
    WEIR_LOG(WARNING, "checkpoints in '%s' were passed over: %s", search->directory,
             search->refused.data);
  if (out_refused) {
    *out_refused = search->refused.data;
    search->refused = (weir_strbuf_t){0};
  }
  if (out_path) {
    *out_path = search->found;
    search->found = NULL;
  }
}

weir_status_t* weir_saver_resume(weir_saver_t* saver, weir_session_t* session, const char* prefix,
                                 char** out_path, char** out_refused) {
  WEIR_REQUIRE_ARG(saver);
  WEIR_REQUIRE_ARG(session);
  WEIR_REQUIRE_ARG(prefix);
  search_t search = {.saver = saver,
                     .session = session,
                     .base = weir_saver_base_name(prefix),
                     .directory = weir_saver_directory(prefix)};
  weir_status_t* status = weir_saver_wait(saver);
  if (!status) status = search.directory ? find(&search) : weir_out_of_memory();
  if (!status) hand_over(&search, out_path, out_refused);
  search_free(&search);
  return status;
}

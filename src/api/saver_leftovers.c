// saver_leftovers.c — Folders of shards, "<checkpoint>_temp", that saves which failed or were
// killed have left: this save's own, when it is over, and those in which nobody has written for a
// while. In others a process may write that was the chief a moment ago. The clock is the file
// system's.
#include <ctype.h>

#include "api/saver.h"
#include "base/alloc.h"
#include "base/log.h"

#define SHARDS "_temp"
#define QUIET_US ((int64_t)60 * 1000000)

// ---- which ----

// How much of a checkpoint's |name| is not the step at its end.
static size_t root_size(weir_view_t name) {
  size_t size = name.size;
  while (size > 0 && isdigit((unsigned char)name.data[size - 1])) --size;
  return size > 0 && size < name.size && name.data[size - 1] == '-' ? size : name.size;
}

// Whether |name| is the folder of a checkpoint that differs from |base| in its step at most.
static bool is_leftover(weir_view_t name, weir_view_t base, bool* out_is_own) {
  const size_t end_size = sizeof(SHARDS) - 1;
  if (name.size <= end_size) return false;
  const weir_view_t other = weir_view(name.data, name.size - end_size);
  if (memcmp(other.data + other.size, SHARDS, end_size) != 0) return false;
  *out_is_own = weir_view_equal(other, base);
  return weir_view_equal(weir_view(other.data, root_size(other)),
                         weir_view(base.data, root_size(base)));
}

static weir_status_t* note_time(const char* path, int64_t* latest_us) {
  weir_file_info_t info = {0};
  WEIR_TRY(weir_fs_info(path, &info));
  *latest_us = WEIR_MAX(*latest_us, info.modified_us);
  return NULL;
}

// When the checkpoint was written; 0: it was not.
static int64_t written_us(const char* prefix) {
  weir_strbuf_t path = {0};
  int64_t us = 0;
  weir_strbuf_printf(&path, "%s.index", prefix);
  weir_status_t* status = weir_strbuf_finish(&path);
  if (!status) status = note_time(path.data, &us);
  weir_status_destroy(status);
  weir_strbuf_free(&path);
  return us;
}

// ---- removing ----

static weir_status_t* remove_file(const char* path, int64_t* latest_us) {
  (void)latest_us;
  return weir_fs_remove(path);
}

static weir_status_t* each_file(const char* folder, weir_status_t* (*visit)(const char*, int64_t*),
                                int64_t* latest_us) {
  weir_names_t names = {0};
  weir_strbuf_t path = {0};
  weir_status_t* status = weir_fs_list(folder, &names);
  for (size_t i = 0; i < names.count && !status; ++i) {
    status = weir_saver_path(folder, names.items[i], &path);
    if (!status) status = visit(path.data, latest_us);
  }
  weir_strbuf_free(&path);
  weir_names_free(&names);
  return status;
}

// Removes a folder, unless somebody has written in it shortly before |now_us|.
static weir_status_t* remove_folder(const char* folder, int64_t now_us) {
  int64_t latest_us = 0;
  WEIR_TRY(note_time(folder, &latest_us));
  WEIR_TRY(each_file(folder, note_time, &latest_us));
  if (now_us - latest_us < QUIET_US) return NULL;
  WEIR_TRY(each_file(folder, remove_file, NULL));
  return weir_fs_remove_directory(folder);
}

static weir_status_t* remove_all(const char* directory, const char* prefix) {
  const weir_view_t base = weir_view_of(weir_saver_base_name(prefix));
  const int64_t now_us = written_us(prefix);
  weir_names_t names = {0};
  weir_strbuf_t path = {0};
  bool is_own = false;
  weir_status_t* status = weir_fs_list(directory, &names);
  for (size_t i = 0; i < names.count && !status; ++i) {
    if (!is_leftover(weir_view_of(names.items[i]), base, &is_own)) continue;
    status = weir_saver_path(directory, names.items[i], &path);
    if (!status) status = remove_folder(path.data, is_own ? INT64_MAX : now_us);
  }
  weir_strbuf_free(&path);
  weir_names_free(&names);
  return status;
}

void weir_saver_remove_leftovers(const weir_saver_t* saver, const char* prefix) {
  if (!saver->is_sharded) return;
  char* directory = weir_saver_directory(prefix);
  weir_status_t* status = directory ? remove_all(directory, prefix) : weir_out_of_memory();
  if (status) WEIR_LOG(WARNING, "shards beside '%s' stay: %s", prefix, weir_status_message(status));
  weir_status_destroy(status);
  weir_free(directory);
}

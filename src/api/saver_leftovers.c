// saver_leftovers.c — Folders of shards, "<checkpoint>_temp", that saves which failed or were
// killed have left. One process saves in a directory, one checkpoint at a time: when that is over,
// nobody needs them.
#include <ctype.h>

#include "api/saver.h"
#include "base/alloc.h"
#include "base/log.h"

#define SHARDS "_temp"

// How much of a checkpoint's |name| is not the step at its end.
static size_t root_size(weir_view_t name) {
  size_t size = name.size;
  while (size > 0 && isdigit((unsigned char)name.data[size - 1])) --size;
  return size > 0 && size < name.size && name.data[size - 1] == '-' ? size : name.size;
}

// Whether |name| is the folder of a checkpoint that differs from |base| in its step at most.
static bool is_leftover(const char* name, const char* base) {
  const size_t size = strlen(name), end_size = sizeof(SHARDS) - 1;
  if (size <= end_size || strcmp(name + size - end_size, SHARDS) != 0) return false;
  const weir_view_t other = weir_view(name, size - end_size), own = weir_view_of(base);
  return weir_view_equal(weir_view(other.data, root_size(other)),
                         weir_view(own.data, root_size(own)));
}

static weir_status_t* remove_folder(const char* folder) {
  weir_names_t names = {0};
  weir_strbuf_t path = {0};
  weir_status_t* status = weir_fs_list(folder, &names);
  for (size_t i = 0; i < names.count && !status; ++i) {
    path.size = 0;
    weir_strbuf_printf(&path, "%s/%s", folder, names.items[i]);
    status = weir_strbuf_finish(&path);
    if (!status) status = weir_fs_remove(path.data);
  }
  if (!status) status = weir_fs_remove_directory(folder);
  weir_strbuf_free(&path);
  weir_names_free(&names);
  return status;
}

static weir_status_t* remove_all(const char* directory, const char* base) {
  weir_names_t names = {0};
  weir_strbuf_t path = {0};
  weir_status_t* status = weir_fs_list(directory, &names);
  for (size_t i = 0; i < names.count && !status; ++i) {
    if (!is_leftover(names.items[i], base)) continue;
    status = weir_saver_path(directory, names.items[i], &path);
    if (!status) status = remove_folder(path.data);
  }
  weir_strbuf_free(&path);
  weir_names_free(&names);
  return status;
}

void weir_saver_remove_leftovers(const weir_saver_t* saver, const char* prefix) {
  if (!saver->is_sharded) return;
  char* directory = weir_saver_directory(prefix);
  weir_status_t* status =
      directory ? remove_all(directory, weir_saver_base_name(prefix)) : weir_out_of_memory();
  if (status) WEIR_LOG(WARNING, "shards beside '%s' stay: %s", prefix, weir_status_message(status));
  weir_status_destroy(status);
  weir_free(directory);
}

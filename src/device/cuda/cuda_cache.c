// cuda_cache.c — Files of a folder of the user's.
//
// A file is named by the hash of its key. It begins with the fingerprint of what follows, so that a
// torn or changed file is noticed; it is replaced as a whole, so that two processes do no harm to
// each other.
#include "device/cuda/cuda_cache.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/fingerprint.h"
#include "base/log.h"
#include "base/map.h"
#include "file/fs.h"
#include "file/roots.h"

static weir_status_t* find_directory(weir_strbuf_t* out) {
  const char* own = getenv("WEIR_CACHE_DIR");
  const char* base = getenv("XDG_CACHE_HOME");
  const char* home = getenv("HOME");
  if (own && *own) weir_strbuf_puts(out, own);
  else if (base && *base) weir_strbuf_printf(out, "%s/weir", base);
  else if (home && *home) weir_strbuf_printf(out, "%s/.cache/weir", home);
  else return WEIR_STATUS(NOT_FOUND, "no place for a cache");
  return weir_strbuf_finish(out);
}

static weir_status_t* find_path(const char* name, weir_strbuf_t* out) {
  WEIR_TRY(find_directory(out));
  weir_strbuf_printf(out, "/%s", name);
  return weir_strbuf_finish(out);
}

weir_status_t* weir_cuda_cache_name(weir_view_t key, const char* kind, weir_strbuf_t* out_name) {
  uint64_t first = weir_fingerprint64(key.data, key.size);
  uint64_t second = weir_hash_bytes(key.data, key.size, key.size);
  weir_strbuf_printf(out_name, "%016llx%016llx.%s", (unsigned long long)first,
                     (unsigned long long)second, kind);
  return weir_strbuf_finish(out_name);
}

// What follows the fingerprint of |text|; empty where it is not whole.
static weir_view_t content_of(weir_view_t text) {
  uint64_t print = 0;
  if (text.size <= sizeof(print)) return weir_view(NULL, 0);
  memcpy(&print, text.data, sizeof(print));
  weir_view_t content = weir_view(text.data + sizeof(print), text.size - sizeof(print));
  return weir_fingerprint64(content.data, content.size) == print ? content : weir_view(NULL, 0);
}

bool weir_cuda_cache_load(const char* name, char** out_data, size_t* out_size) {
  weir_strbuf_t path = {0}, text = {0};
  weir_status_t* status = find_path(name, &path);
  weir_roots_suspend();
  if (!status) status = weir_fs_read_all(path.data, &text);
  weir_roots_resume();
  weir_view_t content = status ? weir_view(NULL, 0) : content_of(weir_view(text.data, text.size));
  char* data = content.size ? weir_malloc(content.size) : NULL;
  if (data) memcpy(data, content.data, content.size);
  weir_status_destroy(status);
  weir_strbuf_free(&text);
  weir_strbuf_free(&path);
  *out_data = data;
  *out_size = content.size;
  return data != NULL;
}

static weir_status_t* write_to(const char* path, const void* data, size_t size) {
  uint64_t print = weir_fingerprint64(data, size);
  weir_strbuf_t text = {0};
  weir_strbuf_append(&text, (const char*)&print, sizeof(print));
  weir_strbuf_append(&text, data, size);
  weir_status_t* status = weir_strbuf_finish(&text);
  if (!status) status = weir_fs_replace(path, weir_view(text.data, text.size));
  weir_strbuf_free(&text);
  return status;
}

void weir_cuda_cache_store(const char* name, const void* data, size_t size) {
  weir_strbuf_t directory = {0}, path = {0};
  weir_status_t* status = find_directory(&directory);
  if (!status) status = find_path(name, &path);
  weir_roots_suspend();
  if (!status) status = weir_fs_make_directories(directory.data);
  if (!status) status = write_to(path.data, data, size);
  weir_roots_resume();
  if (status) WEIR_LOG(INFO, "what was found is not kept: %s", weir_status_message(status));
  weir_status_destroy(status);
  weir_strbuf_free(&path);
  weir_strbuf_free(&directory);
}

bool weir_cuda_cache_recall(weir_view_t key, const char* kind, void* out_record, size_t size) {
  weir_strbuf_t name = {0};
  char* data = NULL;
  size_t found = 0;
  weir_status_t* status = weir_cuda_cache_name(key, kind, &name);
  bool is_there = !status && weir_cuda_cache_load(name.data, &data, &found) && found == size;
  if (is_there) memcpy(out_record, data, size);
  weir_free(data);
  weir_status_destroy(status);
  weir_strbuf_free(&name);
  return is_there;
}

void weir_cuda_cache_remember(weir_view_t key, const char* kind, const void* record, size_t size) {
  weir_strbuf_t name = {0};
  weir_status_t* status = weir_cuda_cache_name(key, kind, &name);
  if (!status) weir_cuda_cache_store(name.data, record, size);
  weir_status_destroy(status);
  weir_strbuf_free(&name);
}

// mapping.c — Mapping files into memory.
#include "file/mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "file/roots.h"

static weir_status_t* map(const char* path, const char* local, weir_mapping_t* mapping) {
  weir_file_info_t info;
  WEIR_TRY(weir_roots_check(local, WEIR_ROOTS_OPEN));
  WEIR_TRY(weir_fs_info(path, &info));
  const int file = open(local, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return WEIR_STATUS(PERMISSION_DENIED, "%s: %s", path, strerror(errno));
  void* data = mmap(NULL, (size_t)info.size, PROT_READ, MAP_PRIVATE, file, 0);
  const int error = errno;
  close(file);
  if (data == MAP_FAILED)
    return WEIR_STATUS(INVALID_ARGUMENT, "%s: cannot be mapped: %s", path, strerror(error));
  mapping->data = data;
  mapping->size = (size_t)info.size;
  return NULL;
}

static weir_mapping_t* make(void) {
  weir_mapping_t* mapping = weir_calloc(1, sizeof(*mapping));
  if (mapping) weir_ref_init(&mapping->ref);
  return mapping;
}

weir_status_t* weir_mapping_create(const char* path, weir_mapping_t** out_mapping) {
  const weir_fs_t* fs = NULL;
  const char* local = NULL;
  WEIR_TRY(weir_fs_find(path, &fs, &local));
  if (fs != &weir_fs_posix)
    return WEIR_STATUS(UNIMPLEMENTED, "files of the file system of '%s' cannot be mapped", path);
  weir_mapping_t* mapping = make();
  if (!mapping) return weir_out_of_memory();
  weir_status_t* status = map(path, local, mapping);
  if (status) weir_free(mapping);
  else *out_mapping = mapping;
  return status;
}

weir_status_t* weir_mapping_from_view(weir_view_t bytes, weir_mapping_t** out_mapping) {
  weir_mapping_t* mapping = make();
  if (!mapping) return weir_out_of_memory();
  mapping->data = (char*)bytes.data;
  mapping->size = bytes.size;
  mapping->is_borrowed = true;
  *out_mapping = mapping;
  return NULL;
}

weir_mapping_t* weir_mapping_retain(weir_mapping_t* mapping) {
  weir_ref_inc(&mapping->ref, 1);
  return mapping;
}

void weir_mapping_release(weir_mapping_t* mapping) {
  if (!mapping || !weir_ref_dec(&mapping->ref)) return;
  if (!mapping->is_borrowed) munmap(mapping->data, mapping->size);
  weir_free(mapping);
}

void weir_mapping_drop(void* data, size_t size, void* mapping) {
  (void)data;
  (void)size;
  weir_mapping_release(mapping);
}

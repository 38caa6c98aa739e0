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

// Opens |local| with |size| bytes. A file that has other content is not touched.
static weir_status_t* open_sized(const char* path, const char* local, size_t size, int* out_file) {
  struct stat info;
  const int file = open(local, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
  if (file < 0) return WEIR_STATUS(PERMISSION_DENIED, "%s: %s", path, strerror(errno));
  weir_status_t* status = NULL;
  if (fstat(file, &info) || !S_ISREG(info.st_mode))
    status = WEIR_STATUS(INVALID_ARGUMENT, "%s: is no file that can be mapped", path);
  else if (info.st_size && (size_t)info.st_size != size)
    status = WEIR_STATUS(INVALID_ARGUMENT, "%s: has %lld bytes, not %zu", path,
                         (long long)info.st_size, size);
  else if (!info.st_size && ftruncate(file, (off_t)size))
    status = WEIR_STATUS(RESOURCE_EXHAUSTED, "%s: cannot have %zu bytes: %s", path, size,
                         strerror(errno));
  if (status) close(file);
  else *out_file = file;
  return status;
}

static weir_status_t* map_shared(const char* path, const char* local, size_t size,
                                 weir_mapping_t* mapping) {
  int file = -1;
  WEIR_TRY(weir_roots_check(local, WEIR_ROOTS_OPEN));
  WEIR_TRY(open_sized(path, local, size, &file));
  void* data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  const int error = errno;
  close(file);
  if (data == MAP_FAILED)
    return WEIR_STATUS(RESOURCE_EXHAUSTED, "%s: cannot be mapped: %s", path, strerror(error));
  (void)madvise(data, size, MADV_RANDOM);  // pages around the one that is read are not wanted
  mapping->data = data;
  mapping->size = size;
  mapping->guard = weir_guard_add(data, size, path);
  return mapping->guard ? NULL : weir_out_of_memory();
}

static weir_mapping_t* make(void) {
  weir_mapping_t* mapping = weir_calloc(1, sizeof(*mapping));
  if (mapping) weir_ref_init(&mapping->ref);
  return mapping;
}

static weir_status_t* find_local(const char* path, const char** out_local) {
  const weir_fs_t* fs = NULL;
  WEIR_TRY(weir_fs_find(path, &fs, out_local));
  if (fs == &weir_fs_posix) return NULL;
  return WEIR_STATUS(UNIMPLEMENTED, "files of the file system of '%s' cannot be mapped", path);
}

weir_status_t* weir_mapping_create(const char* path, weir_mapping_t** out_mapping) {
  const char* local = NULL;
  WEIR_TRY(find_local(path, &local));
  weir_mapping_t* mapping = make();
  if (!mapping) return weir_out_of_memory();
  weir_status_t* status = map(path, local, mapping);
  if (status) weir_free(mapping);
  else *out_mapping = mapping;
  return status;
}

weir_status_t* weir_mapping_create_shared(const char* path, size_t size,
                                          weir_mapping_t** out_mapping) {
  const char* local = NULL;
  WEIR_TRY(find_local(path, &local));
  if (!size) return WEIR_STATUS(INVALID_ARGUMENT, "%s: nothing is to be mapped", path);
  weir_mapping_t* mapping = make();
  if (!mapping) return weir_out_of_memory();
  weir_status_t* status = map_shared(path, local, size, mapping);
  if (status) weir_mapping_release(mapping);
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
  if (!mapping->is_borrowed && mapping->data) munmap(mapping->data, mapping->size);
  weir_guard_remove(mapping->guard);
  weir_free(mapping);
}

void weir_mapping_drop(void* data, size_t size, void* mapping) {
  (void)data;
  (void)size;
  weir_mapping_release(mapping);
}

// By this deallocator, tensors in shared mappings are known.
static void drop_shared(void* data, size_t size, void* mapping) {
  weir_mapping_drop(data, size, mapping);
}

weir_status_t* weir_mapping_to_tensor(weir_mapping_t* take_mapping, weir_dtype_t dtype, int rank,
                                      const int64_t* dims, weir_tensor_t** out_tensor) {
  return weir_tensor_wrap(dtype, rank, dims, take_mapping->data, take_mapping->size, drop_shared,
                          take_mapping, out_tensor);
}

bool weir_mapping_has(const weir_tensor_t* tensor) {
  return (tensor->root ? tensor->root : tensor)->deallocator == drop_shared;
}

weir_status_t* weir_mapping_check(const weir_tensor_t* tensor) {
  const weir_tensor_t* root = tensor->root ? tensor->root : tensor;
  if (!weir_mapping_has(root)) return NULL;
  return weir_guard_check(((const weir_mapping_t*)root->deallocator_arg)->guard);
}

// fs_posix.c — The POSIX file system.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/interrupt.h"
#include "file/fs.h"
#include "file/roots.h"

// Some systems refuse single transfers of 2 GiB and more.
// And between two transfers a step may be cancelled.
static const size_t kMaxTransfer = (size_t)64 << 20;

// The codes TensorFlow gives to the same errors.
static weir_code_t code_of_errno(int error) {
  switch (error) {
    case ENOENT:
    case ENODEV:
    case ENXIO: return WEIR_NOT_FOUND;
    case EEXIST: return WEIR_ALREADY_EXISTS;
    case EACCES:
    case EPERM:
    case EROFS: return WEIR_PERMISSION_DENIED;
    case EINVAL:
    case ENAMETOOLONG:
    case ELOOP:
    case EFAULT: return WEIR_INVALID_ARGUMENT;
    case ENOTDIR:
    case EISDIR:
    case ESPIPE:
    case ENOTEMPTY:
    case EBUSY:
    case ETXTBSY:
    case EBADF: return WEIR_FAILED_PRECONDITION;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EMLINK: return WEIR_RESOURCE_EXHAUSTED;
    case EXDEV:
    case ENOSYS: return WEIR_UNIMPLEMENTED;
    case EAGAIN:
    case EINTR: return WEIR_UNAVAILABLE;
    default: return WEIR_UNKNOWN;
  }
}

static weir_status_t* errno_status(int error, const char* path) {
  return weir_status_create(code_of_errno(error), __FILE__, __LINE__, "%s; %s", path,
                            strerror(error));
}

static int open_file(const char* path, int flags) {
  int fd;
  do {
    fd = open(path, flags | O_CLOEXEC, 0666);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

// ---- reading ----

typedef struct posix_file_t {
  weir_file_t base;
  int fd;
  bool is_device;  // its bytes have no end: it is empty, as its size says
} posix_file_t;

static weir_status_t* posix_read(weir_file_t* self, uint64_t offset, void* buffer, size_t size,
                                 size_t* out_size) {
  int fd = ((posix_file_t*)self)->fd;
  size_t got = 0;
  while (got < size && !((posix_file_t*)self)->is_device) {
    if (weir_is_interrupted())
      return WEIR_STATUS(CANCELLED, "%s: reading was cancelled", self->path);
    size_t want = WEIR_MIN(size - got, kMaxTransfer);
    ssize_t n = pread(fd, (char*)buffer + got, want, (off_t)(offset + got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_status(errno, self->path);
    if (n == 0) break;
    got += (size_t)n;
  }
  *out_size = got;
  return NULL;
}

static void posix_close_file(weir_file_t* self) {
  close(((posix_file_t*)self)->fd);
  weir_free(self->path);
  weir_free(self);
}

static const weir_file_vtable_t kFile = {.read = posix_read, .close = posix_close_file};

static weir_status_t* posix_open_read(const weir_fs_t* fs, const char* path,
                                      weir_file_t** out_file) {
  (void)fs;
  struct stat info;
  posix_file_t* file = NULL;
  char* copy = NULL;
  weir_status_t* status = NULL;
  WEIR_TRY(weir_roots_check(path, WEIR_ROOTS_OPEN));
  int fd = open_file(path, O_RDONLY | O_NONBLOCK);  // a FIFO would wait for a writer
  if (fd < 0) return errno_status(errno, path);
  if (fstat(fd, &info) != 0) {
    status = errno_status(errno, path);
    goto done;
  }
  if (S_ISDIR(info.st_mode)) {
    status = errno_status(EISDIR, path);
    goto done;
  }
  if (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode)) {  // reads carry their offset
    status = errno_status(ESPIPE, path);
    goto done;
  }
  file = weir_calloc(1, sizeof *file);
  copy = weir_strdup(path);
  if (!file || !copy) {
    status = weir_out_of_memory();
    goto done;
  }
  file->base = (weir_file_t){.vtable = &kFile, .size = (uint64_t)info.st_size, .path = copy};
  file->fd = fd;
  file->is_device = !S_ISREG(info.st_mode);
  *out_file = &file->base;
  return NULL;
done:
  weir_free(file);
  weir_free(copy);
  close(fd);
  return status;
}

// ---- writing ----

enum { kBufferSize = 1 << 16 };

typedef struct posix_writer_t {
  weir_writer_t base;
  int fd;
  size_t used;  // bytes of |buffer| not yet handed to the system
  char buffer[kBufferSize];
} posix_writer_t;

// Waits until a pipe takes more bytes.
static weir_status_t* wait_writable(int fd, const char* path) {
  enum { kLookMs = 50 };
  struct pollfd poll_fd = {.fd = fd, .events = POLLOUT};
  while (poll(&poll_fd, 1, kLookMs) == 0) {
    if (weir_is_interrupted()) return WEIR_STATUS(CANCELLED, "%s: writing was cancelled", path);
  }
  return NULL;
}

static weir_status_t* write_fully(int fd, const char* data, size_t size, const char* path) {
  while (size > 0) {
    ssize_t n = write(fd, data, WEIR_MIN(size, kMaxTransfer));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      WEIR_TRY(wait_writable(fd, path));
      continue;
    }
    if (n < 0) return errno_status(errno, path);
    data += n;
    size -= (size_t)n;
  }
  return NULL;
}

static weir_status_t* posix_flush(weir_writer_t* base) {
  posix_writer_t* self = (posix_writer_t*)base;
  size_t used = self->used;
  self->used = 0;  // a failed write is not tried again: what reached the file is not known
  return write_fully(self->fd, self->buffer, used, base->path);
}

static weir_status_t* posix_write(weir_writer_t* base, const void* data, size_t size) {
  posix_writer_t* self = (posix_writer_t*)base;
  if (size > kBufferSize - self->used) WEIR_TRY(posix_flush(base));
  if (size >= kBufferSize) return write_fully(self->fd, data, size, base->path);
  memcpy(self->buffer + self->used, data, size);
  self->used += size;
  return NULL;
}

static weir_status_t* posix_sync(weir_writer_t* base) {
  WEIR_TRY(posix_flush(base));
  // Pipes and the like cannot be synced and need not be.
  if (fsync(((posix_writer_t*)base)->fd) != 0 && errno != EINVAL && errno != EROFS) {
    return errno_status(errno, base->path);
  }
  return NULL;
}

static weir_status_t* posix_close_writer(weir_writer_t* base) {
  weir_status_t* status = posix_flush(base);
  if (close(((posix_writer_t*)base)->fd) != 0 && errno != EINTR && !status) {
    status = errno_status(errno, base->path);
  }
  weir_free(base->path);
  weir_free(base);
  return status;
}

static const weir_writer_vtable_t kWriter = {
    .write = posix_write, .flush = posix_flush, .sync = posix_sync, .close = posix_close_writer};

static weir_status_t* posix_open_write(const weir_fs_t* fs, const char* path, bool append,
                                       weir_writer_t** out_writer) {
  (void)fs;
  WEIR_TRY(weir_roots_check(path, WEIR_ROOTS_OPEN));
  // A FIFO that nobody reads would wait for a reader: it is an error instead.
  int flags = O_WRONLY | O_CREAT | O_NONBLOCK | (append ? O_APPEND : O_TRUNC);
  int fd = open_file(path, flags);
  if (fd < 0) return errno_status(errno, path);
  struct stat info;
  uint64_t size = append && fstat(fd, &info) == 0 ? (uint64_t)info.st_size : 0;
  posix_writer_t* writer = weir_malloc(sizeof *writer);
  char* copy = weir_strdup(path);
  if (!writer || !copy) {
    weir_free(writer);
    weir_free(copy);
    close(fd);
    return weir_out_of_memory();
  }
  writer->base = (weir_writer_t){.vtable = &kWriter, .size = size, .path = copy};
  writer->fd = fd;
  writer->used = 0;
  *out_writer = &writer->base;
  return NULL;
}

// ---- names ----

static weir_status_t* posix_info(const weir_fs_t* fs, const char* path,
                                 weir_file_info_t* out_info) {
  (void)fs;
  struct stat info;
  WEIR_TRY(weir_roots_check(path, WEIR_ROOTS_LOOK));
  if (stat(path, &info) != 0) return errno_status(errno, path);
  *out_info = (weir_file_info_t){
      .size = (uint64_t)info.st_size,
      .is_directory = S_ISDIR(info.st_mode),
      .modified_us = (int64_t)info.st_mtim.tv_sec * 1000000 + info.st_mtim.tv_nsec / 1000};
  return NULL;
}

static weir_status_t* posix_rename(const weir_fs_t* fs, const char* from, const char* to) {
  (void)fs;
  WEIR_TRY(weir_roots_check(from, WEIR_ROOTS_OPEN));
  WEIR_TRY(weir_roots_check(to, WEIR_ROOTS_OPEN));
  return rename(from, to) == 0 ? NULL : errno_status(errno, from);
}

static weir_status_t* posix_remove(const weir_fs_t* fs, const char* path) {
  (void)fs;
  WEIR_TRY(weir_roots_check(path, WEIR_ROOTS_OPEN));
  return unlink(path) == 0 ? NULL : errno_status(errno, path);
}

static weir_status_t* posix_remove_directory(const weir_fs_t* fs, const char* path) {
  (void)fs;
  WEIR_TRY(weir_roots_check(path, WEIR_ROOTS_OPEN));
  return rmdir(path) == 0 ? NULL : errno_status(errno, path);
}

static weir_status_t* posix_make_directory(const weir_fs_t* fs, const char* path) {
  (void)fs;
  WEIR_TRY(weir_roots_check(path, WEIR_ROOTS_LOOK));
  return mkdir(path, 0777) == 0 ? NULL : errno_status(errno, path);
}

static weir_status_t* posix_list(const weir_fs_t* fs, const char* path, weir_names_t* out_names) {
  (void)fs;
  WEIR_TRY(weir_roots_check(path, WEIR_ROOTS_OPEN));
  DIR* directory = opendir(path);
  if (!directory) return errno_status(errno, path);
  weir_status_t* status = NULL;
  while (!status) {
    errno = 0;
    const struct dirent* entry = readdir(directory);
    if (!entry) {
      if (errno != 0) status = errno_status(errno, path);
      break;
    }
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    status = weir_names_add(out_names, weir_view_of(entry->d_name));
  }
  closedir(directory);
  return status;
}

// File systems that do not sync directories say EINVAL: nothing more can be done there.
static weir_status_t* posix_sync_directory(const weir_fs_t* fs, const char* path) {
  (void)fs;
  WEIR_TRY(weir_roots_check(path, WEIR_ROOTS_OPEN));
  int fd = open_file(path, O_RDONLY | O_DIRECTORY);
  if (fd < 0) return errno_status(errno, path);
  weir_status_t* status = NULL;
  if (fsync(fd) != 0 && errno != EINVAL && errno != EROFS) status = errno_status(errno, path);
  close(fd);
  return status;
}

static const weir_fs_vtable_t kPosix = {.open_read = posix_open_read,
                                        .open_write = posix_open_write,
                                        .info = posix_info,
                                        .rename = posix_rename,
                                        .remove = posix_remove,
                                        .remove_directory = posix_remove_directory,
                                        .make_directory = posix_make_directory,
                                        .list = posix_list,
                                        .sync_directory = posix_sync_directory};

const weir_fs_t weir_fs_posix = {.vtable = &kPosix, .scheme = "file"};

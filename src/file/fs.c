// fs.c — Choosing a file system by scheme, and what every file system gets for free.
#include "file/fs.h"

#include <fnmatch.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "file/roots.h"
#include "file/temporary.h"

// The first row serves paths without a scheme.
static const weir_fs_t* const kFileSystems[] = {&weir_fs_posix};

// Splits "scheme://rest"; an empty scheme when there is none.
static weir_view_t path_scheme(const char* path, const char** out_local) {
  const char* mark = strstr(path, "://");
  *out_local = path;
  if (!mark) return weir_view(path, 0);
  for (const char* p = path; p < mark; ++p) {
    bool is_word = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
                   (p > path && ((*p >= '0' && *p <= '9') || *p == '.'));
    if (!is_word) return weir_view(path, 0);
  }
  *out_local = mark + 3;
  return weir_view(path, (size_t)(mark - path));
}

weir_status_t* weir_fs_find(const char* path, const weir_fs_t** out_fs, const char** out_local) {
  weir_view_t scheme = path_scheme(path, out_local);
  if (scheme.size == 0) {
    *out_fs = kFileSystems[0];
    return NULL;
  }
  for (size_t i = 0; i < WEIR_COUNT_OF(kFileSystems); ++i) {
    if (weir_view_is(scheme, kFileSystems[i]->scheme)) {
      *out_fs = kFileSystems[i];
      return NULL;
    }
  }
  return WEIR_STATUS(UNIMPLEMENTED, "File system scheme '%.*s' not implemented (file: '%s')",
                     WEIR_VIEW_ARG(scheme), path);
}

// ---- names ----

weir_status_t* weir_names_add(weir_names_t* names, weir_view_t name) {
  char* copy = weir_strndup(name.data ? name.data : "", name.size);
  if (!copy || !WEIR_GROW(names->items, names->capacity, names->count + 1)) {
    weir_free(copy);
    return weir_out_of_memory();
  }
  names->items[names->count++] = copy;
  return NULL;
}

static int compare_names(const void* a, const void* b) {
  return strcmp(*(char* const*)a, *(char* const*)b);
}

void weir_names_sort(weir_names_t* names) {
  if (names->count > 1) qsort(names->items, names->count, sizeof *names->items, compare_names);
}

void weir_names_free(weir_names_t* names) {
  for (size_t i = 0; i < names->count; ++i) weir_free(names->items[i]);
  weir_free(names->items);
  *names = (weir_names_t){0};
}

weir_view_t weir_path_parent(const char* path) {
  const char* slash = strrchr(path, '/');
  if (!slash) return weir_view(path, 0);
  return weir_view(path, slash == path ? 1 : (size_t)(slash - path));
}

// ---- reading ----

weir_status_t* weir_file_open(const char* path, weir_file_t** out_file) {
  const weir_fs_t* fs = NULL;
  const char* local = NULL;
  WEIR_TRY(weir_fs_find(path, &fs, &local));
  return fs->vtable->open_read(fs, local, out_file);
}

weir_status_t* weir_file_read(weir_file_t* file, uint64_t offset, void* buffer, size_t size,
                              size_t* out_size) {
  return file->vtable->read(file, offset, buffer, size, out_size);
}

weir_status_t* weir_file_read_exactly(weir_file_t* file, uint64_t offset, void* buffer,
                                      size_t size) {
  size_t got = 0;
  WEIR_TRY(file->vtable->read(file, offset, buffer, size, &got));
  if (got == size) return NULL;
  return WEIR_STATUS(DATA_LOSS, "%s; file ends early: %zu of %zu bytes at offset %llu", file->path,
                     got, size, (unsigned long long)offset);
}

void weir_file_close(weir_file_t* file) {
  if (file) file->vtable->close(file);
}

// The size is only a hint: special files say 0, and a file may grow.
weir_status_t* weir_fs_read_all(const char* path, weir_strbuf_t* out) {
  enum { kChunk = 1 << 16 };
  weir_file_t* file = NULL;
  WEIR_TRY(weir_file_open(path, &file));
  weir_status_t* status = NULL;
  uint64_t offset = 0;
  for (;;) {
    size_t want = file->size > offset ? (size_t)(file->size - offset) : kChunk;
    size_t got = 0;
    if (!weir_strbuf_reserve(out, want)) {
      status = weir_out_of_memory();
      break;
    }
    status = weir_file_read(file, offset, out->data + out->size, want, &got);
    if (status) break;
    out->size += got;
    out->data[out->size] = '\0';
    offset += got;
    if (got < want || offset == file->size) break;
  }
  weir_file_close(file);
  return status;
}

// ---- files in memory ----

typedef struct memory_file_t {
  weir_file_t base;
  weir_view_t data;
} memory_file_t;

static weir_status_t* memory_read(weir_file_t* self, uint64_t offset, void* buffer, size_t size,
                                  size_t* out_size) {
  weir_view_t data = ((memory_file_t*)self)->data;
  size_t at = offset < data.size ? (size_t)offset : data.size;
  *out_size = WEIR_MIN(size, data.size - at);
  if (*out_size > 0) memcpy(buffer, data.data + at, *out_size);
  return NULL;
}

static void memory_close(weir_file_t* self) {
  weir_free(self->path);
  weir_free(self);
}

static const weir_file_vtable_t kMemoryFile = {.read = memory_read, .close = memory_close};

weir_status_t* weir_file_from_view(weir_view_t data, const char* name, weir_file_t** out_file) {
  memory_file_t* file = weir_calloc(1, sizeof *file);
  char* path = weir_strdup(name);
  if (!file || !path) {
    weir_free(file);
    weir_free(path);
    return weir_out_of_memory();
  }
  file->base = (weir_file_t){.vtable = &kMemoryFile, .size = data.size, .path = path};
  file->data = data;
  *out_file = &file->base;
  return NULL;
}

// ---- writing ----

weir_status_t* weir_writer_open(const char* path, bool append, weir_writer_t** out_writer) {
  const weir_fs_t* fs = NULL;
  const char* local = NULL;
  WEIR_TRY(weir_fs_find(path, &fs, &local));
  return fs->vtable->open_write(fs, local, append, out_writer);
}

weir_status_t* weir_writer_write(weir_writer_t* writer, const void* data, size_t size) {
  if (size == 0) return NULL;
  WEIR_TRY(writer->vtable->write(writer, data, size));
  writer->size += size;
  return NULL;
}

weir_status_t* weir_writer_flush(weir_writer_t* writer) { return writer->vtable->flush(writer); }
weir_status_t* weir_writer_sync(weir_writer_t* writer) { return writer->vtable->sync(writer); }

weir_status_t* weir_writer_close(weir_writer_t* take_writer) {
  return take_writer ? take_writer->vtable->close(take_writer) : NULL;
}

static weir_status_t* write_whole(const char* path, weir_view_t data, bool sync) {
  weir_writer_t* writer = NULL;
  WEIR_TRY(weir_writer_open(path, false, &writer));
  weir_status_t* status = weir_writer_write(writer, data.data, data.size);
  if (!status && sync) status = weir_writer_sync(writer);
  weir_status_t* closed = weir_writer_close(writer);
  if (!status) return closed;
  weir_status_destroy(closed);
  return status;
}

weir_status_t* weir_fs_write_all(const char* path, weir_view_t data) {
  return write_whole(path, data, false);
}

weir_status_t* weir_fs_replace(const char* path, weir_view_t data) {
  weir_strbuf_t temporary = {0};
  weir_strbuf_puts(&temporary, path);
  weir_temporary_append(&temporary);
  weir_status_t* status = weir_strbuf_finish(&temporary);
  if (status) goto done;
  status = write_whole(temporary.data, data, true);
  if (!status) status = weir_fs_rename(temporary.data, path);
  if (status) {
    weir_status_destroy(weir_fs_remove(temporary.data));
  } else {
    status = weir_fs_sync_parent(path);
  }
done:
  weir_strbuf_free(&temporary);
  return status;
}

// ---- directories ----

weir_status_t* weir_fs_info(const char* path, weir_file_info_t* out_info) {
  const weir_fs_t* fs = NULL;
  const char* local = NULL;
  WEIR_TRY(weir_fs_find(path, &fs, &local));
  return fs->vtable->info(fs, local, out_info);
}

bool weir_fs_exists(const char* path) {
  weir_file_info_t info;
  weir_status_t* status = weir_fs_info(path, &info);
  weir_status_destroy(status);
  return status == NULL;
}

weir_status_t* weir_fs_rename(const char* from, const char* to) {
  const weir_fs_t* fs = NULL;
  const weir_fs_t* other = NULL;
  const char* local = NULL;
  const char* target = NULL;
  WEIR_TRY(weir_fs_find(from, &fs, &local));
  WEIR_TRY(weir_fs_find(to, &other, &target));
  if (fs != other) {
    return WEIR_STATUS(UNIMPLEMENTED, "Renaming %s to %s not implemented", from, to);
  }
  return fs->vtable->rename(fs, local, target);
}

weir_status_t* weir_fs_remove(const char* path) {
  const weir_fs_t* fs = NULL;
  const char* local = NULL;
  WEIR_TRY(weir_fs_find(path, &fs, &local));
  return fs->vtable->remove(fs, local);
}

weir_status_t* weir_fs_remove_directory(const char* path) {
  const weir_fs_t* fs = NULL;
  const char* local = NULL;
  WEIR_TRY(weir_fs_find(path, &fs, &local));
  return fs->vtable->remove_directory(fs, local);
}

weir_status_t* weir_fs_list(const char* path, weir_names_t* out_names) {
  const weir_fs_t* fs = NULL;
  const char* local = NULL;
  WEIR_TRY(weir_fs_find(path, &fs, &local));
  return fs->vtable->list(fs, local, out_names);
}

weir_status_t* weir_fs_sync_parent(const char* path) {
  const weir_fs_t* fs = NULL;
  const char* local = NULL;
  WEIR_TRY(weir_fs_find(path, &fs, &local));
  if (!fs->vtable->sync_directory) return NULL;
  weir_view_t parent = weir_path_parent(local);
  char* copy = parent.size ? weir_strndup(parent.data, parent.size) : weir_strdup(".");
  if (!copy) return weir_out_of_memory();
  weir_status_t* status = fs->vtable->sync_directory(fs, copy);
  weir_free(copy);
  return status;
}

// Somebody else may make the same directory at the same time: then all is well.
static weir_status_t* make_directory(const weir_fs_t* fs, const char* path) {
  weir_status_t* status = fs->vtable->make_directory(fs, path);
  if (weir_status_code(status) != WEIR_ALREADY_EXISTS) return status;
  weir_status_destroy(status);
  weir_file_info_t info = {0};
  WEIR_TRY(fs->vtable->info(fs, path, &info));
  if (info.is_directory) return NULL;
  return WEIR_STATUS(FAILED_PRECONDITION, "%s; exists and is not a directory", path);
}

weir_status_t* weir_fs_make_directories(const char* path) {
  const weir_fs_t* fs = NULL;
  const char* local = NULL;
  WEIR_TRY(weir_fs_find(path, &fs, &local));
  char* copy = weir_strdup(local);
  if (!copy) return weir_out_of_memory();
  weir_status_t* status = NULL;
  for (char* p = copy; *p && !status; ++p) {
    if (p[0] != '/' || p == copy || p[1] == '/' || p[1] == '\0') continue;
    *p = '\0';
    status = make_directory(fs, copy);
    *p = '/';
  }
  if (!status && *copy) status = make_directory(fs, copy);
  weir_free(copy);
  return status;
}

// ---- glob ----

typedef struct globber_t {
  const weir_fs_t* fs;
  const char* scheme;  // put before each result: "file://" or ""
  int scheme_size;
  weir_names_t* out;
} globber_t;

static bool has_wildcard(weir_view_t part) {
  for (size_t i = 0; i < part.size; ++i) {
    if (strchr("*?[\\", part.data[i])) return true;
  }
  return false;
}

static weir_status_t* glob_from(const globber_t* globber, const char* base, const char* rest);

// Goes on below |base| + |name|, which exists or is to be checked by the next step.
static weir_status_t* glob_into(const globber_t* globber, const char* base, weir_view_t name,
                                const char* rest) {
  weir_strbuf_t path = {0};
  weir_strbuf_puts(&path, base);
  weir_strbuf_append(&path, name.data, name.size);
  weir_status_t* status = weir_strbuf_finish(&path);
  if (!status) status = glob_from(globber, path.data, rest);
  weir_strbuf_free(&path);
  return status;
}

// What cannot be looked at is not there, unless it is memory that was missing.
static weir_status_t* is_found(weir_status_t* take_status, bool* out_is_found) {
  *out_is_found = !take_status;
  if (weir_status_code(take_status) == WEIR_RESOURCE_EXHAUSTED) return take_status;
  weir_status_destroy(take_status);
  return NULL;
}

static weir_status_t* glob_finish(const globber_t* globber, const char* path) {
  weir_file_info_t info;
  bool is_there = false;
  WEIR_TRY(is_found(globber->fs->vtable->info(globber->fs, path, &info), &is_there));
  if (!is_there) return NULL;
  weir_strbuf_t full = {0};
  weir_strbuf_append(&full, globber->scheme, (size_t)globber->scheme_size);
  weir_strbuf_puts(&full, path);
  weir_status_t* status = weir_strbuf_finish(&full);
  if (!status) status = weir_names_add(globber->out, weir_strbuf_view(&full));
  weir_strbuf_free(&full);
  return status;
}

// A directory that cannot be listed holds no match. What is found in the working directory begins
// with "./", as TensorFlow has it.
static weir_status_t* glob_directory(const globber_t* globber, const char* base,
                                     const char* pattern, const char* rest) {
  weir_names_t names = {0};
  bool is_listed = false;
  if (*base == '\0') base = "./";
  weir_status_t* status =
      is_found(globber->fs->vtable->list(globber->fs, base, &names), &is_listed);
  for (size_t i = 0; i < names.count && is_listed && !status; ++i) {
    if (fnmatch(pattern, names.items[i], FNM_PATHNAME) != 0) continue;
    status = glob_into(globber, base, weir_view_of(names.items[i]), rest);
  }
  weir_names_free(&names);
  return status;
}

// |base| is what has matched, with its slash; |rest| the pattern still to match.
static weir_status_t* glob_from(const globber_t* globber, const char* base, const char* rest) {
  if (*rest == '\0') return glob_finish(globber, base);
  size_t slashes = strspn(rest, "/");
  if (slashes > 0) return glob_into(globber, base, weir_view(rest, slashes), rest + slashes);
  weir_view_t part = weir_view(rest, strcspn(rest, "/"));
  if (!has_wildcard(part)) return glob_into(globber, base, part, rest + part.size);
  char* pattern = weir_strndup(part.data, part.size);
  if (!pattern) return weir_out_of_memory();
  weir_status_t* status = glob_directory(globber, base, pattern, rest + part.size);
  weir_free(pattern);
  return status;
}

// Below the roots, what may not be looked at is not there, as elsewhere; but to ask for a folder
// outside of them is an error.
static weir_status_t* check_fixed_part(const char* local) {
  weir_view_t fixed = weir_view(local, strcspn(local, "*?[\\"));
  if (!weir_roots_are_set()) return NULL;
  if (fixed.size < strlen(local))
    while (fixed.size > 0 && fixed.data[fixed.size - 1] != '/') --fixed.size;
  char* path = fixed.size ? weir_strndup(fixed.data, fixed.size) : weir_strdup(".");
  if (!path) return weir_out_of_memory();
  weir_status_t* status = weir_roots_check(path, WEIR_ROOTS_OPEN);
  weir_free(path);
  return status;
}

weir_status_t* weir_fs_glob(const char* pattern, weir_names_t* out_paths) {
  globber_t globber = {.scheme = pattern, .out = out_paths};
  const char* local = NULL;
  WEIR_TRY(weir_fs_find(pattern, &globber.fs, &local));
  globber.scheme_size = (int)(local - pattern);
  if (!*local) return NULL;
  WEIR_TRY(check_fixed_part(local));
  return glob_from(&globber, "", local);
}

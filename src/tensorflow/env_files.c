// env_files.c — env.h: files.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/philox.h"
#include "file/fs.h"
#include "tensorflow/c/env.h"
#include "tensorflow/internal.h"

struct TF_StringStream {
  weir_names_t names;
  size_t next;
};

// ---- directories ----

static weir_status_t* make_directory(const char* path) {
  const weir_fs_t* fs = NULL;
  const char* local = NULL;
  WEIR_TRY(weir_fs_find(path, &fs, &local));
  return fs->vtable->make_directory(fs, local);
}

void TF_CreateDir(const char* dirname, TF_Status* status) {
  tf_status_take(status, make_directory(dirname));
}

void TF_DeleteDir(const char* dirname, TF_Status* status) {
  tf_status_take(status, weir_fs_remove_directory(dirname));
}

void TF_DeleteFile(const char* filename, TF_Status* status) {
  tf_status_take(status, weir_fs_remove(filename));
}

static weir_status_t* stat_file(const char* path, TF_FileStatistics* stats) {
  weir_file_info_t info;
  WEIR_TRY(weir_fs_info(path, &info));
  *stats = (TF_FileStatistics){.length = (int64_t)info.size,
                               .mtime_nsec = info.modified_us * 1000,
                               .is_directory = info.is_directory};
  return NULL;
}

void TF_FileStat(const char* filename, TF_FileStatistics* stats, TF_Status* status) {
  tf_status_take(status, stat_file(filename, stats));
}

// ---- deleting all of a tree ----

// What could not be deleted, and why the first of it could not.
typedef struct remains_t {
  int64_t files;
  int64_t directories;
  weir_status_t* status;
} remains_t;

static void note(remains_t* remains, weir_status_t* take_status, int64_t* count) {
  if (!take_status) return;
  ++*count;
  if (remains->status) weir_status_destroy(take_status);
  else remains->status = take_status;
}

static bool is_directory(const char* path) {
  weir_file_info_t info;
  weir_status_t* status = weir_fs_info(path, &info);
  const bool is_known = !status;
  weir_status_destroy(status);
  return is_known && info.is_directory;
}

// A directory whose turn it is; those below it come before it.
typedef struct tree_t {
  weir_names_t directories;  // parents before their children
  remains_t remains;
} tree_t;

// Deletes the files of a directory, and remembers the directories.
static void clear_directory(tree_t* tree, const char* path) {
  weir_names_t names = {0};
  weir_status_t* status = weir_fs_list(path, &names);
  for (size_t i = 0; !status && i < names.count; ++i) {
    weir_strbuf_t child = {0};
    weir_strbuf_printf(&child, "%s/%s", path, names.items[i]);
    status = weir_strbuf_finish(&child);
    if (!status && is_directory(child.data))
      status = weir_names_add(&tree->directories, weir_strbuf_view(&child));
    else if (!status) note(&tree->remains, weir_fs_remove(child.data), &tree->remains.files);
    weir_strbuf_free(&child);
  }
  note(&tree->remains, status, &tree->remains.directories);
  weir_names_free(&names);
}

static void delete_tree(const char* path, remains_t* out_remains) {
  tree_t tree = {0};
  weir_status_t* status = weir_names_add(&tree.directories, weir_view_of(path));
  note(&tree.remains, status, &tree.remains.directories);
  for (size_t i = 0; i < tree.directories.count; ++i)
    clear_directory(&tree, tree.directories.items[i]);
  for (size_t i = tree.directories.count; i-- > 0;)
    note(&tree.remains, weir_fs_remove_directory(tree.directories.items[i]),
         &tree.remains.directories);
  weir_names_free(&tree.directories);
  *out_remains = tree.remains;
}

void TF_DeleteRecursively(const char* dirname, int64_t* undeleted_file_count,
                          int64_t* undeleted_dir_count, TF_Status* status) {
  remains_t remains = {0};
  if (!weir_fs_exists(dirname))
    note(&remains, WEIR_STATUS(NOT_FOUND, "Directory doesn't exist: '%s'", dirname),
         &remains.directories);
  else if (is_directory(dirname)) delete_tree(dirname, &remains);
  else note(&remains, weir_fs_remove(dirname), &remains.files);
  *undeleted_file_count = remains.files;
  *undeleted_dir_count = remains.directories;
  tf_status_take(status, remains.status);
}

// ---- writing ----

static weir_writer_t* writer_of(TF_WritableFileHandle* handle) { return (weir_writer_t*)handle; }

void TF_NewWritableFile(const char* filename, TF_WritableFileHandle** handle, TF_Status* status) {
  weir_writer_t* writer = NULL;
  if (tf_status_take(status, weir_writer_open(filename, false, &writer)))
    *handle = (TF_WritableFileHandle*)writer;
}
void TF_CloseWritableFile(TF_WritableFileHandle* handle, TF_Status* status) {
  tf_status_take(status, weir_writer_close(writer_of(handle)));
}
void TF_SyncWritableFile(TF_WritableFileHandle* handle, TF_Status* status) {
  tf_status_take(status, weir_writer_sync(writer_of(handle)));
}
void TF_FlushWritableFile(TF_WritableFileHandle* handle, TF_Status* status) {
  tf_status_take(status, weir_writer_flush(writer_of(handle)));
}
void TF_AppendWritableFile(TF_WritableFileHandle* handle, const char* data, size_t length,
                           TF_Status* status) {
  tf_status_take(status, weir_writer_write(writer_of(handle), data, length));
}

// ---- names ----

TF_StringStream* TF_GetChildren(const char* filename, TF_Status* status) {
  TF_StringStream* stream = weir_calloc(1, sizeof(*stream));
  weir_status_t* failure = stream ? weir_fs_list(filename, &stream->names) : weir_out_of_memory();
  if (tf_status_take(status, failure)) return stream;
  TF_StringStreamDone(stream);
  return NULL;
}

bool TF_StringStreamNext(TF_StringStream* list, const char** result) {
  const bool is_there = list && list->next < list->names.count;
  *result = is_there ? list->names.items[list->next++] : NULL;
  return is_there;
}

void TF_StringStreamDone(TF_StringStream* list) {
  if (!list) return;
  weir_names_free(&list->names);
  weir_free(list);
}

// Ends with a '/', as TensorFlow's do.
static weir_status_t* add_folder(weir_names_t* names, const char* path) {
  if (!path || !*path || !is_directory(path)) return NULL;
  weir_strbuf_t text = {0};
  weir_strbuf_puts(&text, path);
  if (path[strlen(path) - 1] != '/') weir_strbuf_putc(&text, '/');
  weir_status_t* status = weir_strbuf_finish(&text);
  if (!status) status = weir_names_add(names, weir_strbuf_view(&text));
  weir_strbuf_free(&text);
  return status;
}

TF_StringStream* TF_GetLocalTempDirectories(void) {
  static const char* const variables[] = {"TEST_TMPDIR", "TMPDIR", "TMP"};
  TF_StringStream* stream = weir_calloc(1, sizeof(*stream));
  weir_status_t* status = stream ? NULL : weir_out_of_memory();
  for (size_t i = 0; !status && i < WEIR_COUNT_OF(variables); ++i)
    status = add_folder(&stream->names, getenv(variables[i]));
  if (!status) status = add_folder(&stream->names, "/tmp");
  if (!status) return stream;
  weir_status_destroy(status);
  TF_StringStreamDone(stream);
  return NULL;
}

char* TF_GetTempFileName(const char* extension) {
  TF_StringStream* folders = TF_GetLocalTempDirectories();
  const char* folder = NULL;
  weir_strbuf_t name = {0};
  if (folders && TF_StringStreamNext(folders, &folder))
    weir_strbuf_printf(&name, "%sweir_%d_%016llx%s%s", folder, (int)getpid(),
                       (unsigned long long)weir_random_entropy(), *extension ? "." : "", extension);
  TF_StringStreamDone(folders);
  weir_status_t* status = weir_strbuf_finish(&name);
  char* copy = status || !name.size ? NULL : strdup(name.data);  // the caller calls free
  weir_status_destroy(status);
  weir_strbuf_free(&name);
  return copy;
}

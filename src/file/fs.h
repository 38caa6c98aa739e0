// fs.h — File systems: every file Weir touches is opened, listed, renamed through this interface.
//
// A path names its file system by scheme: "file:///x" and plain paths are POSIX; any other scheme
// is UNIMPLEMENTED until a file system for it is added to the table in fs.c. Every error names the
// path: NOT_FOUND, PERMISSION_DENIED, ALREADY_EXISTS, FAILED_PRECONDITION (not a directory, not
// empty), RESOURCE_EXHAUSTED (disk full, too many open files), UNKNOWN for the rest.
//
// The functions on paths are thread-safe. Readers are thread-safe (reads carry their offset);
// writers are thread-compatible.
#ifndef WEIR_FILE_FS_H_
#define WEIR_FILE_FS_H_

#include "base/base.h"
#include "base/string.h"

// ---- what a file system implements ----

typedef struct weir_file_t weir_file_t;      // open for reading
typedef struct weir_writer_t weir_writer_t;  // open for writing
typedef struct weir_fs_t weir_fs_t;

typedef struct weir_file_vtable_t {
  // required: reads at |offset|; fewer than |size| bytes only at the end of the file.
  weir_status_t* (*read)(weir_file_t* self, uint64_t offset, void* buffer, size_t size,
                         size_t* out_size);
  void (*close)(weir_file_t* self);  // required: frees |self|
} weir_file_vtable_t;
struct weir_file_t {
  const weir_file_vtable_t* vtable;
  uint64_t size;  // when it was opened
  char* path;     // owned; for messages
};

typedef struct weir_writer_vtable_t {
  weir_status_t* (*write)(weir_writer_t* self, const void* data,
                          size_t size);          // required; may buffer
  weir_status_t* (*flush)(weir_writer_t* self);  // required: hands the buffer to the system
  weir_status_t* (*sync)(weir_writer_t* self);   // required: flushes, and waits for the disk
  weir_status_t* (*close)(
      weir_writer_t* self);  // required: flushes and frees |self|, also on error
} weir_writer_vtable_t;
struct weir_writer_t {
  const weir_writer_vtable_t* vtable;
  uint64_t size;  // bytes in the file, buffered ones included
  char* path;     // owned; for messages
};

typedef struct weir_file_info_t {
  uint64_t size;
  bool is_directory;
  int64_t modified_us;  // when it last changed, since 1970; 0: not known
} weir_file_info_t;

// A growing list of owned strings. Zero-initialise to use.
typedef struct weir_names_t {
  char** items;
  size_t count;
  size_t capacity;
} weir_names_t;
WEIR_MUST_USE weir_status_t* weir_names_add(weir_names_t* names, weir_view_t name);  // copies
void weir_names_sort(weir_names_t* names);
void weir_names_free(weir_names_t* names);

// Paths come without their scheme.
typedef struct weir_fs_vtable_t {
  weir_status_t* (*open_read)(const weir_fs_t* self, const char* path, weir_file_t** out_file);
  // Creates the file or, unless |append|, empties it.
  weir_status_t* (*open_write)(const weir_fs_t* self, const char* path, bool append,
                               weir_writer_t** out_writer);
  weir_status_t* (*info)(const weir_fs_t* self, const char* path, weir_file_info_t* out_info);
  weir_status_t* (*rename)(const weir_fs_t* self, const char* from, const char* to);  // replaces
  weir_status_t* (*remove)(const weir_fs_t* self, const char* path);
  weir_status_t* (*remove_directory)(const weir_fs_t* self, const char* path);  // an empty one
  weir_status_t* (*make_directory)(const weir_fs_t* self, const char* path);    // one level
  weir_status_t* (*list)(const weir_fs_t* self, const char* path, weir_names_t* out_names);
  // optional, default nothing: makes renames within the directory |path| durable.
  weir_status_t* (*sync_directory)(const weir_fs_t* self, const char* path);
} weir_fs_vtable_t;
struct weir_fs_t {
  const weir_fs_vtable_t* vtable;
  const char* scheme;  // "file"; also the one of paths without a scheme when it is the first row
};

extern const weir_fs_t weir_fs_posix;

// The file system of |path|, and the path without its scheme. UNIMPLEMENTED for an unknown scheme.
WEIR_MUST_USE weir_status_t* weir_fs_find(const char* path, const weir_fs_t** out_fs,
                                          const char** out_local);

// ---- reading ----

WEIR_MUST_USE weir_status_t* weir_file_open(const char* path, weir_file_t** out_file);
// A file whose bytes are |data|, borrowed until it is closed.
WEIR_MUST_USE weir_status_t* weir_file_from_view(weir_view_t data, const char* name,
                                                 weir_file_t** out_file);
// Reads up to |size| bytes at |offset|; fewer only at the end.
WEIR_MUST_USE weir_status_t* weir_file_read(weir_file_t* file, uint64_t offset, void* buffer,
                                            size_t size, size_t* out_size);
// Reads exactly |size| bytes. DATA_LOSS when the file ends before.
WEIR_MUST_USE weir_status_t* weir_file_read_exactly(weir_file_t* file, uint64_t offset,
                                                    void* buffer, size_t size);
void weir_file_close(weir_file_t* file);

// Appends the whole of a file to |out|.
WEIR_MUST_USE weir_status_t* weir_fs_read_all(const char* path, weir_strbuf_t* out);

// ---- writing ----

WEIR_MUST_USE weir_status_t* weir_writer_open(const char* path, bool append,
                                              weir_writer_t** out_writer);
WEIR_MUST_USE weir_status_t* weir_writer_write(weir_writer_t* writer, const void* data,
                                               size_t size);
WEIR_MUST_USE weir_status_t* weir_writer_flush(weir_writer_t* writer);
WEIR_MUST_USE weir_status_t* weir_writer_sync(weir_writer_t* writer);
// Flushes and frees |take_writer|, also when it returns an error. NULL is fine.
WEIR_MUST_USE weir_status_t* weir_writer_close(weir_writer_t* take_writer);

WEIR_MUST_USE weir_status_t* weir_fs_write_all(const char* path, weir_view_t data);
// As write_all, but a reader sees the old content or the new one, whatever happens in between.
WEIR_MUST_USE weir_status_t* weir_fs_replace(const char* path, weir_view_t data);

// ---- names ----

bool weir_fs_exists(const char* path);
WEIR_MUST_USE weir_status_t* weir_fs_info(const char* path, weir_file_info_t* out_info);
WEIR_MUST_USE weir_status_t* weir_fs_rename(const char* from, const char* to);
WEIR_MUST_USE weir_status_t* weir_fs_remove(const char* path);
WEIR_MUST_USE weir_status_t* weir_fs_remove_directory(const char* path);
// Makes |path| and what is missing above it; fine when it is there already.
WEIR_MUST_USE weir_status_t* weir_fs_make_directories(const char* path);
// Adds the names within a directory, without "." and "..", in no order.
WEIR_MUST_USE weir_status_t* weir_fs_list(const char* path, weir_names_t* out_names);
// Adds the paths that match |pattern| (*, ?, [set], \ quotes; none crosses a '/'), in no order.
WEIR_MUST_USE weir_status_t* weir_fs_glob(const char* pattern, weir_names_t* out_paths);
// Makes the renames within the directory that holds |path| durable.
WEIR_MUST_USE weir_status_t* weir_fs_sync_parent(const char* path);
// What stands before the last '/' of |path| ("/" for "/x"); empty when there is none.
weir_view_t weir_path_parent(const char* path);

#endif  // WEIR_FILE_FS_H_

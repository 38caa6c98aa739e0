// roots.c — The folders that graphs may use, where a process runs those of others.
#include "file/roots.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/string.h"
#include "base/thread.h"
#include "file/fs.h"

typedef struct roots_t {
  int users;           // how often they were added
  char* list;          // as given
  weir_names_t paths;  // without links
} roots_t;

static pthread_rwlock_t g_lock = PTHREAD_RWLOCK_INITIALIZER;
static roots_t g_roots;  // guarded by g_lock
static atomic_bool g_is_set;
static _Thread_local int suspensions;

// ---- which ----

static weir_status_t* add_root(weir_names_t* paths, weir_view_t folder) {
  char path[PATH_MAX], resolved[PATH_MAX];
  struct stat info;
  if (folder.size == 0 || folder.size >= sizeof(path))
    return WEIR_STATUS(INVALID_ARGUMENT, "file roots: '%.*s' is no folder", WEIR_VIEW_ARG(folder));
  memcpy(path, folder.data, folder.size);
  path[folder.size] = '\0';
  if (!realpath(path, resolved) || stat(resolved, &info) != 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "file roots: '%s': %s", path, strerror(errno));
  if (!S_ISDIR(info.st_mode))
    return WEIR_STATUS(INVALID_ARGUMENT, "file roots: '%s' is no folder", path);
  return weir_names_add(paths, weir_view_of(resolved));
}

static weir_status_t* set_roots(const char* list) {
  weir_view_t rest = weir_view_of(list), folder;
  roots_t roots = {.users = 1, .list = weir_strdup(list)};
  weir_status_t* status = roots.list ? NULL : weir_out_of_memory();
  if (!status && rest.size == 0) status = add_root(&roots.paths, rest);
  while (!status && weir_view_next(&rest, ':', &folder)) status = add_root(&roots.paths, folder);
  if (status) {
    weir_names_free(&roots.paths);
    weir_free(roots.list);
    return status;
  }
  g_roots = roots;
  atomic_store(&g_is_set, true);
  return NULL;
}

weir_status_t* weir_roots_add(const char* list) {
  if (!list) return NULL;
  weir_status_t* status = NULL;
  pthread_rwlock_wrlock(&g_lock);
  if (g_roots.users == 0) status = set_roots(list);
  else if (strcmp(g_roots.list, list) == 0) ++g_roots.users;
  else
    status = WEIR_STATUS(FAILED_PRECONDITION, "file roots '%s': this process has '%s' already",
                         list, g_roots.list);
  pthread_rwlock_unlock(&g_lock);
  return status;
}

void weir_roots_remove(void) {
  pthread_rwlock_wrlock(&g_lock);
  WEIR_CHECK(g_roots.users > 0);
  if (--g_roots.users == 0) {
    atomic_store(&g_is_set, false);
    weir_names_free(&g_roots.paths);
    weir_free(g_roots.list);
    g_roots = (roots_t){0};
  }
  pthread_rwlock_unlock(&g_lock);
}

bool weir_roots_are_set(void) { return atomic_load(&g_is_set) && suspensions == 0; }
void weir_roots_suspend(void) { ++suspensions; }
void weir_roots_resume(void) { --suspensions; }

// ---- who ----

// Cuts the last name off |path|. False where what it was does not tell which folder is left.
static bool cut_name(char* path) {
  size_t size = strlen(path);
  while (size > 1 && path[size - 1] == '/') path[--size] = '\0';
  char* slash = strrchr(path, '/');
  const char* name = slash ? slash + 1 : path;
  if (*name == '\0' || strcmp(name, "..") == 0 || strcmp(name, ".") == 0) return false;
  if (!slash) memcpy(path, ".", 2);
  else slash[slash == path ? 1 : 0] = '\0';
  return true;
}

// The path without links, or of what is not there the folder that is, above it. False: not known.
static bool resolve(const char* path, char out[PATH_MAX], bool* out_is_there) {
  char prefix[PATH_MAX];
  struct stat info;
  *out_is_there = realpath(path, out) != NULL;
  if (*out_is_there) return true;
  size_t size = strlen(path);
  if (size == 0 || size >= sizeof(prefix)) return false;
  memcpy(prefix, path, size + 1);
  for (;;) {
    // What is there and yet leads nowhere is a link to where a file would be made.
    if (lstat(prefix, &info) == 0 || (errno != ENOENT && errno != ENOTDIR)) return false;
    if (!cut_name(prefix)) return false;
    if (realpath(prefix, out)) return true;
  }
}

static bool is_below(const char* path, const char* folder) {
  size_t size = strlen(folder);
  if (size == 1) return true;  // "/"
  return strncmp(path, folder, size) == 0 && (path[size] == '\0' || path[size] == '/');
}

static bool is_allowed(const char* path, weir_roots_use_t use) {
  char resolved[PATH_MAX];
  bool is_there = false, is_good = false;
  if (!resolve(path, resolved, &is_there)) return false;
  pthread_rwlock_rdlock(&g_lock);
  for (size_t i = 0; i < g_roots.paths.count && !is_good; ++i) {
    const char* root = g_roots.paths.items[i];
    bool is_above = use == WEIR_ROOTS_LOOK && is_there && is_below(root, resolved);
    is_good = is_below(resolved, root) || is_above;
  }
  is_good |= g_roots.users == 0;  // they were removed just now
  pthread_rwlock_unlock(&g_lock);
  return is_good;
}

weir_status_t* weir_roots_check(const char* path, weir_roots_use_t use) {
  if (!weir_roots_are_set() || is_allowed(path, use)) return NULL;
  return WEIR_STATUS(PERMISSION_DENIED,
                     "%s; is not below the folders that graphs may use here (--file-roots)", path);
}

// sqlite.c — Queries of SQLite databases, by libsqlite3, which is opened with the first database.
#include "file/sqlite.h"

#include <dlfcn.h>

#include "base/alloc.h"
#include "base/library.h"
#include "base/thread.h"
#include "file/roots.h"

// Of SQLite's interface, which promises that these stay as they are.
typedef struct sqlite3_t sqlite3_t;
typedef struct statement_t statement_t;
enum { kOk = 0, kRow = 100, kDone = 101 };
enum { kReadWrite = 0x2, kCreate = 0x4, kPrivateCache = 0x40000 };
enum { kStepsBetweenLooks = 10000 };  // of SQLite's machine, until it asks whether to stop

// Judges an action of a query, by what it is about: 0 allows it.
typedef int (*authorizer_fn_t)(void* arg, int action, const char* what, const char* value,
                               const char* database, const char* trigger);

typedef struct library_t {
  int (*open)(const char* path, sqlite3_t** db, int flags, const char* vfs);
  int (*close)(sqlite3_t* db);
  int (*extended_codes)(sqlite3_t* db, int on);
  int (*limit)(sqlite3_t* db, int which, int value);
  int (*authorize)(sqlite3_t* db, authorizer_fn_t fn, void* arg);
  void (*progress)(sqlite3_t* db, int steps, int (*fn)(void* arg), void* arg);
  const char* (*message)(sqlite3_t* db);
  const char* (*code_message)(int code);
  int (*prepare)(sqlite3_t* db, const char* sql, int size, statement_t** statement,
                 const char** tail);
  int (*step)(statement_t* statement);
  int (*finalize)(statement_t* statement);
  int (*column_count)(statement_t* statement);
  int64_t (*column_int)(statement_t* statement, int column);
  double (*column_double)(statement_t* statement, int column);
  const void* (*column_blob)(statement_t* statement, int column);
  int (*column_size)(statement_t* statement, int column);
} library_t;

static library_t g_library;
static pthread_once_t g_once = PTHREAD_ONCE_INIT;
static bool g_is_there;

// A process may hold another SQLite, whose symbols everybody sees: TensorFlow's has one. The two
// must not be mixed, so the library's calls of itself stay within it; sanitizers cannot have that.
#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(RTLD_DEEPBIND) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
enum { kFlags = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND };
#else
enum { kFlags = RTLD_NOW | RTLD_LOCAL };
#endif

static void load(void) {
  void* library = dlopen("libsqlite3.so.0", kFlags);
  g_is_there =
      library && weir_library_find(library, "sqlite3_open_v2", &g_library.open) &&
      weir_library_find(library, "sqlite3_close_v2", &g_library.close) &&
      weir_library_find(library, "sqlite3_extended_result_codes", &g_library.extended_codes) &&
      weir_library_find(library, "sqlite3_limit", &g_library.limit) &&
      weir_library_find(library, "sqlite3_set_authorizer", &g_library.authorize) &&
      weir_library_find(library, "sqlite3_progress_handler", &g_library.progress) &&
      weir_library_find(library, "sqlite3_errmsg", &g_library.message) &&
      weir_library_find(library, "sqlite3_errstr", &g_library.code_message) &&
      weir_library_find(library, "sqlite3_prepare_v2", &g_library.prepare) &&
      weir_library_find(library, "sqlite3_step", &g_library.step) &&
      weir_library_find(library, "sqlite3_finalize", &g_library.finalize) &&
      weir_library_find(library, "sqlite3_column_count", &g_library.column_count) &&
      weir_library_find(library, "sqlite3_column_int64", &g_library.column_int) &&
      weir_library_find(library, "sqlite3_column_double", &g_library.column_double) &&
      weir_library_find(library, "sqlite3_column_blob", &g_library.column_blob) &&
      weir_library_find(library, "sqlite3_column_bytes", &g_library.column_size);
}

// TensorFlow's code for one of SQLite's, whose low byte is the kind of error.
static weir_code_t code_of(int code) {
  switch (code & 0xff) {
    case 4: return WEIR_ABORTED;               // ABORT
    case 8: return WEIR_FAILED_PRECONDITION;   // READONLY
    case 20: return WEIR_FAILED_PRECONDITION;  // MISMATCH
    case 2: return WEIR_INTERNAL;              // INTERNAL
    case 21: return WEIR_INTERNAL;             // MISUSE
    case 25: return WEIR_OUT_OF_RANGE;         // RANGE
    case 14: return WEIR_INVALID_ARGUMENT;     // CANTOPEN
    case 19: return WEIR_INVALID_ARGUMENT;     // CONSTRAINT
    case 12: return WEIR_INVALID_ARGUMENT;     // NOTFOUND
    case 26: return WEIR_INVALID_ARGUMENT;     // NOTADB
    case 11: return WEIR_DATA_LOSS;            // CORRUPT
    case 23: return WEIR_PERMISSION_DENIED;    // AUTH
    case 3: return WEIR_PERMISSION_DENIED;     // PERM
    case 13: return WEIR_RESOURCE_EXHAUSTED;   // FULL
    case 18: return WEIR_RESOURCE_EXHAUSTED;   // TOOBIG
    case 22: return WEIR_RESOURCE_EXHAUSTED;   // NOLFS
    case 5: return WEIR_UNAVAILABLE;           // BUSY
    case 6: return WEIR_UNAVAILABLE;           // LOCKED
    case 15: return WEIR_UNAVAILABLE;          // PROTOCOL
    case 7: return WEIR_UNAVAILABLE;           // NOMEM
    case 9: return WEIR_CANCELLED;             // INTERRUPT
    default: return WEIR_UNKNOWN;
  }
}

struct weir_sqlite_t {
  sqlite3_t* db;
  statement_t* statement;
  char* query;  // for messages
};

// Where graphs may use some folders only, a query must not reach files by itself.
static int judge(void* arg, int action, const char* what, const char* value, const char* database,
                 const char* trigger) {
  enum { kDeny = 1, kPragma = 19, kAttach = 24 };
  (void)arg, (void)value, (void)database, (void)trigger;
  bool is_place = action == kPragma && what && strstr(what, "_directory");
  return action == kAttach || is_place ? kDeny : kOk;
}

static void keep_in(sqlite3_t* db) {
  enum { kAttachedLimit = 7 };
  (void)g_library.limit(db, kAttachedLimit, 0);
  (void)g_library.authorize(db, judge, NULL);
}

static weir_status_t* check_path(const char* path) {
  if (weir_roots_are_set() && strncmp(path, "file:", 5) == 0)  // SQLite may take it for a URI
    return WEIR_STATUS(PERMISSION_DENIED, "%s; is no path (--file-roots)", path);
  return weir_roots_check(path, WEIR_ROOTS_OPEN);
}

weir_status_t* weir_sqlite_open(const char* path, weir_sqlite_t** out_db) {
  pthread_once(&g_once, load);
  if (!g_is_there)
    return WEIR_STATUS(
        UNIMPLEMENTED,
        "SQLite databases: the library libsqlite3.so.0 is not there or cannot be opened");
  WEIR_TRY(check_path(path));
  weir_sqlite_t* self = weir_calloc(1, sizeof(*self));
  if (!self) return weir_out_of_memory();
  int code = g_library.open(path, &self->db, kReadWrite | kCreate | kPrivateCache, NULL);
  if (code != kOk) {
    weir_sqlite_close(self);
    return weir_status_create(code_of(code), __FILE__, __LINE__, "Sqlite::Open(%s) failed: %s",
                              path, g_library.code_message(code));
  }
  (void)g_library.extended_codes(self->db, 1);
  if (weir_roots_are_set()) keep_in(self->db);
  *out_db = self;
  return NULL;
}

void weir_sqlite_close(weir_sqlite_t* db) {
  if (!db) return;
  (void)g_library.finalize(db->statement);  // what it returns is the last step's error
  (void)g_library.close(db->db);
  weir_free(db->query);
  weir_free(db);
}

static weir_status_t* failure(const weir_sqlite_t* self, int code, const char* what) {
  return weir_status_create(code_of(code), __FILE__, __LINE__, "%s failed: [%d] %s: %s", what, code,
                            g_library.message(self->db), self->query);
}

weir_status_t* weir_sqlite_prepare(weir_sqlite_t* db, const char* query, int* out_column_count) {
  WEIR_CHECK(!db->query);
  db->query = weir_strdup(query);
  if (!db->query) return weir_out_of_memory();
  int code = g_library.prepare(db->db, query, -1, &db->statement, NULL);
  if (code != kOk) return failure(db, code, "Prepare()");
  *out_column_count = g_library.column_count(db->statement);
  return NULL;
}

static int is_cancelled(void* arg) { return weir_cancel_is_cancelled(arg); }

weir_status_t* weir_sqlite_step(weir_sqlite_t* db, weir_cancel_t* cancel, bool* out_is_end) {
  g_library.progress(db->db, kStepsBetweenLooks, is_cancelled, cancel);
  int code = g_library.step(db->statement);
  g_library.progress(db->db, 0, NULL, NULL);
  *out_is_end = code != kRow;
  return code == kRow || code == kDone ? NULL : failure(db, code, "Step()");
}

int64_t weir_sqlite_int(weir_sqlite_t* db, int column) {
  return g_library.column_int(db->statement, column);
}

double weir_sqlite_double(weir_sqlite_t* db, int column) {
  return g_library.column_double(db->statement, column);
}

weir_view_t weir_sqlite_bytes(weir_sqlite_t* db, int column) {
  const void* data =
      g_library.column_blob(db->statement, column);  // before the size, which it sets
  int size = g_library.column_size(db->statement, column);
  return weir_view(data ? data : "", data ? (size_t)size : 0);
}

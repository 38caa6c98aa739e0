// sqlite.h — Queries of SQLite databases, by libsqlite3, which is opened with the first database.
//
// Without the library all is UNIMPLEMENTED, with a message that says what is missing. What SQLite
// refuses has the codes that TensorFlow gives it. A query is thread-confined.
#ifndef WEIR_FILE_SQLITE_H_
#define WEIR_FILE_SQLITE_H_

#include "base/cancel.h"
#include "base/string.h"

typedef struct weir_sqlite_t weir_sqlite_t;  // a database with at most one query

// Opens the database |path|; an empty one is made where there is none.
WEIR_MUST_USE weir_status_t* weir_sqlite_open(const char* path, weir_sqlite_t** out_db);
void weir_sqlite_close(weir_sqlite_t* db);  // NULL-safe
// Begins |query|, the first statement of it; once for each database.
WEIR_MUST_USE weir_status_t* weir_sqlite_prepare(weir_sqlite_t* db, const char* query,
                                                 int* out_column_count);
// Goes on to the next row. CANCELLED soon after |cancel| is.
WEIR_MUST_USE weir_status_t* weir_sqlite_step(weir_sqlite_t* db, weir_cancel_t* cancel,
                                              bool* out_is_end);

// Columns of the row, as SQLite converts them; text and blobs are borrowed until the next step.
int64_t weir_sqlite_int(weir_sqlite_t* db, int column);
double weir_sqlite_double(weir_sqlite_t* db, int column);
weir_view_t weir_sqlite_bytes(weir_sqlite_t* db, int column);

#endif  // WEIR_FILE_SQLITE_H_

// tables.h — The entries of lookup tables, from a session and into it, by steps whose nodes the
// graph has or gains. Thread-safe.
#ifndef WEIR_API_TABLES_H_
#define WEIR_API_TABLES_H_

#include "graph/graph.h"
#include "weir/session.h"

// Whether |node| is a table that can change, so that its entries are state as variables are.
bool weir_table_can_change(const weir_node_t* node);

// The table of that name in the session's graph that can change; NULL: none.
weir_node_t* weir_tables_find(weir_session_t* session, const char* name);

// The entries of |tables|, nodes of the session's graph: keys and values of each, twice |count|,
// the caller's to release. None is set on failure.
WEIR_MUST_USE weir_status_t* weir_tables_read(weir_session_t* session, weir_node_t* const* tables,
                                              int count, weir_tensor_t** out_entries);
// INVALID_ARGUMENT naming |table| unless it may hold these.
WEIR_MUST_USE weir_status_t* weir_table_check(const weir_node_t* table, const weir_tensor_t* keys,
                                              const weir_tensor_t* values);
// Gives each table, which can change, those of |entries|, in the order of read, in place of what it
// has.
WEIR_MUST_USE weir_status_t* weir_tables_fill(weir_session_t* session, weir_node_t* const* tables,
                                              int count, weir_tensor_t* const* entries);

#endif  // WEIR_API_TABLES_H_

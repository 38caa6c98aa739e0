// tables.h — Lookup tables become constants: what freezing does with them.
#ifndef WEIR_MODEL_TABLES_H_
#define WEIR_MODEL_TABLES_H_

#include "graph/graph.h"
#include "weir/session.h"

// Whether the handle of a table is what |node| gives out.
bool weir_model_is_table(const weir_node_t* node);

// Every table of |graph| that |is_needed| (by node) becomes one that is filled once, with the
// entries that the table of its name in |source|, the graph of |session|, has now; and whoever uses
// it waits until it is. Filling it again, at the next step, does nothing. FAILED_PRECONDITION names
// a node that changes a table, or a table that keeps more than scalars.
WEIR_MUST_USE weir_status_t* weir_model_freeze_tables(weir_graph_t* graph, const bool* is_needed,
                                                      weir_graph_t* source,
                                                      weir_session_t* session);

#endif  // WEIR_MODEL_TABLES_H_

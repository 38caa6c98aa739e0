// mapped.h — Variables that lie in files: tables larger than memory, of which only what is used is
// read.
//
//   weir_edge_t table = weir_mapped_variable(s, "table", "/data/table", WEIR_SHAPE(400000000, 64));
//   weir_edge_t x = weir_embedding_lookup(s, WEIR_TABLES(table), ids);
//
// The file holds the elements and nothing else. Where there is none, it is made, sparse: all zeros,
// and no larger on the disk than what is written. One that is there is taken as it is, so a table
// outlives its process, and other programs may fill it. It is mapped: lookups and sparse updates
// touch the pages of their rows, the system keeps in memory what is used most, and what was written
// reaches the disk when it sees fit, also after the process was killed; not when the machine fails.
//
// A variable in a file is a variable in all but this. Its initializer maps the file and changes
// nothing. Who reads the whole of it gets a copy. Assigning writes to the file; another shape is
// FAILED_PRECONDITION. Savers leave it out, unless it is listed, and map it when they restore:
// after a crash the file may be ahead of the checkpoint. What optimizers keep beside it, and starts
// as zeros, is in files "/data/table.Momentum"; what starts otherwise is INVALID_ARGUMENT. Rules
// that move rows without a gradient (Adam's) read and write all pages. On CPUs only. Threading: as
// the scope's.
//
// When a page cannot be written or read, since the disk is full or somebody shortened the file, one
// line of standard error says so, and whoever reads or writes the variable from then on gets
// DATA_LOSS, until it is mapped anew. (Weir handles SIGBUS for that, and hands on what is not its.)
#ifndef WEIR_MAPPED_H_
#define WEIR_MAPPED_H_

#include "weir/attrs.h"
#include "weir/partition.h"
#include "weir/scope.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_mapped_options_t {
  int reserved;
  weir_dtype_t dtype;                // default: float; numbers only
  const weir_variable_part_t* part;  // of a larger tensor; NULL: it is by itself. Borrowed
  bool is_state;                     // optimizers leave it alone
} weir_mapped_options_t;

// A variable of |shape| in the file |path| of the machine that it is on. Returns its value, as
// weir_variable does. On a scope that deals variables out (weir_scope_replica) INVALID_ARGUMENT
// sticks: weir_scope_on says whose file it is. UNIMPLEMENTED on eager scopes.
WEIR_API weir_edge_t weir_mapped_variable_with(weir_scope_t* scope, const char* name,
                                               const char* path, weir_dims_t shape,
                                               const weir_mapped_options_t* options);
#define weir_mapped_variable(scope, name, path, shape, ...) \
  weir_mapped_variable_with(scope, name, path, shape,       \
                            &(const weir_mapped_options_t){0, __VA_ARGS__})
// The file of |variable|, a value or a handle, as long as the root scope; NULL: it lies in none.
WEIR_API const char* weir_variable_file(weir_scope_t* scope, weir_edge_t variable);

#ifdef __cplusplus
}
#endif
#endif  // WEIR_MAPPED_H_

// partition.h — Variables in parts: tables too large for one parameter server, or for one variable.
//
//   weir_tables_t table = weir_partitioned_variable(s, "table", init, WEIR_SHAPE(rows, 64),
//                                                   weir_partition_fixed(8));
//   weir_edge_t x = weir_embedding_lookup(s, table, ids, .partition = WEIR_PARTITION_DIV);
//
// Each part is a variable of its own, "table/part_0", of consecutive rows. Savers write all of them
// as slices of one tensor "table", as TensorFlow's partitioned variables are written, and restore
// them from a checkpoint in which that tensor was whole or in other parts. Optimizers see parts;
// what they keep beside one is a slice of "table/Adam". Threading: as the scope's.
#ifndef WEIR_PARTITION_H_
#define WEIR_PARTITION_H_

#include "weir/attrs.h"
#include "weir/embedding.h"
#include "weir/initializer.h"
#include "weir/scope.h"

#ifdef __cplusplus
extern "C" {
#endif

// Into how many parts. Made by the functions below.
typedef struct weir_partitioner_t {
  int parts;          // so many, but at most one a row; 0: by |part_size|
  int64_t part_size;  // bytes that a part may have, unless one row has more
  int most_parts;     // rather than more, parts are larger; 0: any number
} weir_partitioner_t;

WEIR_API weir_partitioner_t weir_partition_fixed(int parts);
// |most_parts| 0: any number.
WEIR_API weir_partitioner_t weir_partition_by_size(int64_t part_size, int most_parts);

typedef struct weir_partitioned_options_t {
  int reserved;
  weir_dtype_t dtype;  // default: float
  // Where the parts are, in turn, and where their initial values are made: "/job:ps/task:0". NULL:
  // where the scope has its variables, which weir_scope_replica deals out.
  const char* const* devices;  // borrowed for the call
  int device_count;
  // Part 0 lies in the file "<path>.part_0", and so on: weir/mapped.h. NULL: in memory. Then |init|
  // must be the default, since what starts is what is there, and the devices be given.
  const char* path;  // borrowed for the call
} weir_partitioned_options_t;

// A trainable variable of |shape| in parts along dimension 0; the first ones may have a row more.
// The result lives as long as the root scope. Initial values are drawn for each part by itself, as
// by TensorFlow: with a seed of its own, |init| draws the same numbers for all of them.
// INVALID_ARGUMENT sticks for a shape without rows and for a partitioner that gives no parts.
WEIR_API weir_tables_t weir_partitioned_variable_with(weir_scope_t* scope, const char* name,
                                                      weir_init_t init, weir_dims_t shape,
                                                      weir_partitioner_t partitioner,
                                                      const weir_partitioned_options_t* options);
#define weir_partitioned_variable(scope, name, init, shape, partitioner, ...) \
  weir_partitioned_variable_with(scope, name, init, shape, partitioner,       \
                                 &(const weir_partitioned_options_t){0, __VA_ARGS__})

// ---- for those who cut in their own way ----

// Which slice of a larger tensor a variable is.
typedef struct weir_variable_part_t {
  const char* name;   // of the tensor, in checkpoints
  const char* slice;  // its shape, then first index and length by dimension: "10 4 0,5:0,4"
} weir_variable_part_t;
// As weir_variable and weir_state_variable, but a part. |part| is borrowed for the call.
WEIR_API weir_edge_t weir_part_variable(weir_scope_t* scope, const char* name, weir_edge_t initial,
                                        const weir_variable_part_t* part, bool is_trainable);
// Whether |variable|, a value or a handle, is a part, and which. |out_part| may be NULL; its
// strings live as long as the root scope.
WEIR_API bool weir_variable_part(weir_scope_t* scope, weir_edge_t variable,
                                 weir_variable_part_t* out_part);

#ifdef __cplusplus
}
#endif
#endif  // WEIR_PARTITION_H_

// sequences_read.h — SequenceExample messages as rows of values, by example and key: between the
// two halves of sequences.h. Thread-confined.
#ifndef WEIR_OPS_IO_SEQUENCES_READ_H_
#define WEIR_OPS_IO_SEQUENCES_READ_H_

#include "base/map.h"
#include "file/example.h"
#include "ops/io/sequences.h"

typedef struct weir_seq_rows_t {  // what an example has of a key
  size_t first;                   // of |all|
  int64_t count;
  bool is_there;
} weir_seq_rows_t;

typedef struct weir_seq_part_t {  // the context, or the lists
  const weir_feature_set_t* set;
  bool is_lists;
  int64_t key_count;
  weir_map_t keys;        // key → the number of the first of that name, plus one
  weir_seq_rows_t* rows;  // examples times keys
} weir_seq_part_t;

typedef struct weir_seq_parse_t {
  const weir_sequences_plan_t* plan;
  const weir_tensor_t* serialized;
  const weir_tensor_t* names;
  bool is_batch;
  int64_t batch;
  int64_t example;  // that is being read
  weir_seq_part_t context, lists;
  weir_feature_t* all;
  size_t all_count, all_capacity;
  weir_status_t* status;  // of what is read in a callback
} weir_seq_parse_t;

WEIR_MUST_USE weir_status_t* weir_seq_part_init(const weir_seq_parse_t* p, weir_seq_part_t* part);
void weir_seq_part_deinit(weir_seq_part_t* part);  // also after a failed init
WEIR_MUST_USE weir_status_t* weir_seq_read_example(weir_seq_parse_t* p, int64_t example);

weir_dtype_t weir_seq_type_of(const weir_feature_set_t* set, int64_t key);
const weir_seq_rows_t* weir_seq_rows_at(const weir_seq_part_t* part, int64_t example, int64_t key);
int64_t weir_seq_value_count(const weir_seq_parse_t* p, const weir_seq_rows_t* rows);

// INVALID_ARGUMENT where values of |key| are not of its type.
WEIR_MUST_USE weir_status_t* weir_seq_check_types(const weir_seq_parse_t* p,
                                                  const weir_seq_part_t* part, int64_t key);
// The errors that a dense feature is not there, and that a row has too few or too many values.
WEIR_MUST_USE weir_status_t* weir_seq_is_missing(const weir_seq_parse_t* p,
                                                 const weir_seq_part_t* part, int64_t example,
                                                 int64_t d);
WEIR_MUST_USE weir_status_t* weir_seq_bad_count(const weir_seq_parse_t* p, int64_t example,
                                                weir_view_t key, int64_t row, int64_t count,
                                                const weir_shape_t* shape);

#endif  // WEIR_OPS_IO_SEQUENCES_READ_H_

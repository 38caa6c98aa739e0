// parts.h — Which part of a table has which rows, and work done beside the parts. Not public.
#ifndef WEIR_LIBRARY_PARTS_H_
#define WEIR_LIBRARY_PARTS_H_

#include "weir/sampled.h"

// Which part each of some ids is in, and its row there.
typedef struct weir_lib_place_t {
  weir_edge_t part, row;
} weir_lib_place_t;
weir_lib_place_t weir_lib_place(weir_scope_t* scope, weir_tables_t tables, weir_edge_t ids,
                                weir_partition_t partition);

// Ids dealt out to the parts: output i of both nodes is of part i.
typedef struct weir_lib_deal_t {
  weir_edge_t rows;    // there
  weir_edge_t orders;  // int32: where each was among all
} weir_lib_deal_t;
// |ids|: a vector. No nodes after an error.
weir_lib_deal_t weir_lib_deal(weir_scope_t* scope, weir_tables_t tables, weir_edge_t ids,
                              weir_partition_t partition);

// Rows of one part, where that is, so that rows cross and no table does. Through the variable
// itself, where there is one: its value need not be read whole. |max_norm| 0: as they are.
weir_edge_t weir_lib_gather(weir_scope_t* scope, weir_edge_t table, weir_edge_t ids,
                            float max_norm);

// What losses over many classes start from.
typedef struct weir_lib_classes_t {
  weir_scope_t* scope;
  weir_tables_t weights, biases;
  weir_edge_t labels;  // int64 [batch, num_true]
  weir_edge_t inputs;  // [batch, size]
  int num_true, num_sampled;
  int64_t num_classes, size;
  bool is_removing_hits;
  const weir_sampled_options_t* options;
} weir_lib_classes_t;

// inputs · weights + bias: of the labels, [batch, num_true], and of the sample, [batch,
// num_sampled].
typedef struct weir_lib_scores_t {
  weir_edge_t own, sampled;
} weir_lib_scores_t;
// Computed where the weights are: inputs and results cross, rows do not. As many biases as weights.
weir_lib_scores_t weir_lib_scores_on_parts(const weir_lib_classes_t* p, weir_edge_t flat_labels,
                                           weir_edge_t candidates);

#endif  // WEIR_LIBRARY_PARTS_H_

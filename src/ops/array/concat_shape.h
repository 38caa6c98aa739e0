// concat_shape.h — Which inputs of Concat and its kin are joined, and the shape of the result.
#ifndef WEIR_OPS_ARRAY_CONCAT_SHAPE_H_
#define WEIR_OPS_ARRAY_CONCAT_SHAPE_H_

#include "op/shape_ctx.h"

// The ops differ in where the axis is: before the values (Concat, QuantizedConcat) or after them
// (ConcatV2, QuantizedConcatV2).
typedef struct weir_concat_inputs_t {
  int axis;   // index of the input that holds it
  int first;  // of the values
  int count;
} weir_concat_inputs_t;

// Of a node that has |count| values.
weir_concat_inputs_t weir_concat_inputs(const weir_node_def_t* node, int count);
// Sets output 0.
weir_status_t* weir_concat_shape(weir_shape_ctx_t* ctx, weir_concat_inputs_t in);

#endif  // WEIR_OPS_ARRAY_CONCAT_SHAPE_H_

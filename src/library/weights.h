// weights.h — Variables of a layer and what is done with them. Not public.
#ifndef WEIR_LIBRARY_WEIGHTS_H_
#define WEIR_LIBRARY_WEIGHTS_H_

#include "weir/initializer.h"
#include "weir/layer.h"

// |init|, or |fallback| with its seeds where it is WEIR_INIT_DEFAULT.
weir_init_t weir_lib_init(weir_init_t init, weir_init_t fallback);
// Rows |begin| to |begin| + |rows| of a variable of shape |whole|, which has rows.
typedef struct weir_lib_part_of_t {
  weir_dims_t whole;
  int64_t begin, rows;
} weir_lib_part_of_t;
// What such a part starts with.
weir_edge_t weir_lib_init_part(weir_scope_t* scope, weir_init_t init, weir_dtype_t dtype,
                               const weir_lib_part_of_t* part);
// |shared| when given, else a trainable variable that starts with weir_lib_init(init, fallback).
weir_edge_t weir_lib_weight(weir_scope_t* scope, const char* name, weir_edge_t shared,
                            weir_init_t init, weir_init_t fallback, weir_dtype_t dtype,
                            weir_dims_t shape);
// Collects l1 * sum(|w|) + l2 * sum(w²) under WEIR_LOSSES.
void weir_lib_regularize(weir_scope_t* scope, weir_edge_t weight, float l1, float l2);
// activation(x + bias): each where there is one.
typedef struct weir_lib_finish_t {
  bool no_bias;
  weir_edge_t bias;  // shared
  weir_init_t bias_init;
  weir_activation_fn_t activation;
} weir_lib_finish_t;
weir_edge_t weir_lib_finish(weir_scope_t* scope, weir_edge_t x, int64_t units,
                            const weir_lib_finish_t* how);

#endif  // WEIR_LIBRARY_WEIGHTS_H_

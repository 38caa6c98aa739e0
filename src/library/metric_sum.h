// metric_sum.h — A float variable that sums up over steps, as all metrics have. Not public.
#ifndef WEIR_LIBRARY_METRIC_SUM_H_
#define WEIR_LIBRARY_METRIC_SUM_H_

#include "weir/metric.h"

typedef struct weir_metric_sum_t {
  weir_edge_t value;    // what has been summed up
  weir_edge_t updated;  // the same after this step
  weir_node_t* reset;
} weir_metric_sum_t;

// |addend|: a float scalar, or a vector of |size| elements when |size| is not 0.
weir_metric_sum_t weir_metric_sum(weir_scope_t* scope, const char* name, int64_t size,
                                  weir_edge_t addend);
// |weights| in float and of the shape of |values|.
weir_edge_t weir_metric_weights(weir_scope_t* scope, weir_edge_t weights, weir_edge_t values);

#endif  // WEIR_LIBRARY_METRIC_SUM_H_

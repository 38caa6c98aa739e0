// edge.h — An output of a node, the currency of graph construction.
#ifndef WEIR_EDGE_H_
#define WEIR_EDGE_H_

typedef struct weir_node_t weir_node_t;

// Output |index| of |node|. A value type; valid as long as the graph. node == NULL: none.
typedef struct weir_edge_t {
  weir_node_t* node;
  int index;
} weir_edge_t;

#endif  // WEIR_EDGE_H_

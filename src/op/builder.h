// builder.h — The abstract node builder: how gradients, simplifications and the C API add nodes
// without knowing the graph.
#ifndef WEIR_OP_BUILDER_H_
#define WEIR_OP_BUILDER_H_

#include "op/op.h"
#include "weir/edge.h"

#define WEIR_NO_EDGE ((weir_edge_t){.node = NULL, .index = 0})
WEIR_INLINE bool weir_edge_is_none(weir_edge_t edge) { return edge.node == NULL; }
WEIR_INLINE bool weir_edge_equal(weir_edge_t a, weir_edge_t b) {
  return a.node == b.node && a.index == b.index;
}

typedef struct weir_edges_t {
  const weir_edge_t* items;
  int count;
} weir_edges_t;
#define WEIR_EDGES(...)                            \
  ((weir_edges_t){                                 \
      .items = (const weir_edge_t[]){__VA_ARGS__}, \
      .count = (int)(sizeof((const weir_edge_t[]){__VA_ARGS__}) / sizeof(weir_edge_t))})
#define WEIR_NO_EDGES ((weir_edges_t){.items = NULL, .count = 0})

typedef struct weir_builder_t weir_builder_t;
typedef struct weir_builder_vtable_t {
  // Required. Adds a node; type and number attributes that the inputs determine need not be given.
  weir_status_t* (*add)(weir_builder_t* self, const char* op, weir_edges_t inputs,
                        weir_attrs_t attrs, const char* name_hint, weir_edge_t* out_first);
  // Required. Adds a control dependency of |node| on |on|.
  weir_status_t* (*add_control)(weir_builder_t* self, weir_edge_t node, weir_edge_t on);
  weir_dtype_t (*dtype)(weir_builder_t* self, weir_edge_t edge);  // required; base type
  const weir_shape_t* (*shape)(weir_builder_t* self,
                               weir_edge_t edge);  // required; may be unknown, never NULL
  const weir_tensor_t* (*constant)(weir_builder_t* self,
                                   weir_edge_t edge);  // required; NULL when not constant
  const weir_node_def_t* (*node)(weir_builder_t* self, weir_edge_t edge);  // required; the producer
  weir_edge_t (*input)(weir_builder_t* self, weir_edge_t node,
                       int index);  // required; the producer's input
} weir_builder_vtable_t;
struct weir_builder_t {
  const weir_builder_vtable_t* vtable;
  weir_status_t* status;  // sticky: the first error; once set, every call returns WEIR_NO_EDGE
};

// All of these are no-ops returning WEIR_NO_EDGE after an error, and when an edge given is
// WEIR_NO_EDGE they set INTERNAL.
weir_edge_t weir_build(weir_builder_t* b, const char* op, weir_edges_t inputs, weir_attrs_t attrs);
weir_edge_t weir_build_output(weir_edge_t first, int index);  // another output of the same node
weir_edge_t weir_build_const(weir_builder_t* b, weir_tensor_t* take_tensor);
weir_edge_t weir_build_int32(weir_builder_t* b, int32_t value);                      // scalar Const
weir_edge_t weir_build_int32s(weir_builder_t* b, const int32_t* values, int count);  // vector Const
weir_edge_t weir_build_int64s(weir_builder_t* b, const int64_t* values, int count);
weir_edge_t weir_build_scalar(weir_builder_t* b, weir_dtype_t dtype,
                              double value);  // scalar Const of any number type
weir_edge_t weir_build_bool(weir_builder_t* b, bool value);
WEIR_INLINE weir_dtype_t weir_build_dtype(weir_builder_t* b, weir_edge_t e) {
  return b->status || !e.node ? WEIR_DTYPE_INVALID : b->vtable->dtype(b, e);
}
WEIR_INLINE const weir_shape_t* weir_build_shape(weir_builder_t* b, weir_edge_t e) {
  return b->status || !e.node ? &weir_shape_unknown : b->vtable->shape(b, e);
}

#endif  // WEIR_OP_BUILDER_H_

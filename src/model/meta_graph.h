// meta_graph.h — What a MetaGraphDef says beside its graph: signatures, assets, how its variables
// are restored, what initialises it.
//
// Immutable after read. Views point into the message, which must outlive it.
#ifndef WEIR_MODEL_META_GRAPH_H_
#define WEIR_MODEL_META_GRAPH_H_

#include "base/alloc.h"
#include "base/string.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

// A named tensor of a signature, before its graph is there.
typedef struct weir_port_info_t {
  const char* name;
  const char* tensor;
  weir_dtype_t dtype;  // INVALID: it does not say
  const weir_shape_t* shape;
  weir_view_t default_value;  // TensorProto; empty: none
} weir_port_info_t;
typedef struct weir_port_list_t {
  weir_port_info_t* items;
  size_t count, capacity;  // |items| is on the heap until the message is read, then in the arena
} weir_port_list_t;
typedef struct weir_signature_info_t {
  const char* name;
  const char* method;
  weir_port_list_t inputs;  // by name, in order of bytes
  weir_port_list_t outputs;
} weir_signature_info_t;
typedef struct weir_asset_info_t {
  const char* tensor;  // that is fed with the path
  const char* file;    // below assets/; names no other folder
} weir_asset_info_t;

typedef struct weir_meta_graph_t {
  weir_arena_t arena;
  weir_view_t graph_def;
  const char* filename_tensor;  // of the saver; "" when there is none, like the next two
  const char* save_tensor;
  const char* restore_op;
  const char* init_op;       // "": none
  const char** table_inits;  // collection table_initializer
  size_t table_init_count;
  weir_signature_info_t* signatures;  // by name
  size_t signature_count;
  weir_asset_info_t* assets;
  size_t asset_count;
} weir_meta_graph_t;

// Reads a MetaGraphDef. DATA_LOSS says what is malformed, INVALID_ARGUMENT what makes no sense.
// |out_meta| is to be freed, also after an error.
WEIR_MUST_USE weir_status_t* weir_meta_graph_read(weir_view_t message, weir_meta_graph_t* out_meta);
void weir_meta_graph_free(weir_meta_graph_t* meta);

#endif  // WEIR_MODEL_META_GRAPH_H_

// object_graph.h — The graph of objects in a checkpoint of TensorFlow 2: which object is reached by
// which names, and what the values of each are called in the checkpoint.
//
// It is a TrackableObjectGraph, the string _CHECKPOINTABLE_OBJECT_GRAPH of the checkpoint. Object 0
// is the root. What comes in is never trusted. Threading: immutable after the parse.
#ifndef WEIR_FILE_OBJECT_GRAPH_H_
#define WEIR_FILE_OBJECT_GRAPH_H_

#include "base/alloc.h"
#include "base/string.h"

// Fields of its messages.
enum { WEIR_GRAPH_NODE = 1 };
enum { WEIR_NODE_CHILD = 1, WEIR_NODE_ATTRIBUTE = 2 };
enum { WEIR_CHILD_OBJECT = 1, WEIR_CHILD_NAME = 2 };
enum { WEIR_ATTRIBUTE_NAME = 1, WEIR_ATTRIBUTE_FULL_NAME = 2, WEIR_ATTRIBUTE_KEY = 3 };

#define WEIR_OBJECT_GRAPH_KEY "_CHECKPOINTABLE_OBJECT_GRAPH"
#define WEIR_OBJECT_VALUE "VARIABLE_VALUE"  // the attribute that is the value of a variable
#define WEIR_OBJECT_TABLE "table"           // that which is a table: two tensors, its key and these
#define WEIR_OBJECT_TABLE_KEYS "-keys"
#define WEIR_OBJECT_TABLE_VALUES "-values"

typedef struct weir_object_child_t {
  weir_view_t name;
  size_t object;
} weir_object_child_t;

// A tensor of an object. In the arena.
typedef struct weir_object_attribute_t {
  const char* attribute;  // "VARIABLE_VALUE"
  const char* name;       // what the variable was called; "" where that was not written
  const char* key;        // of the tensor in the checkpoint
  size_t object;
} weir_object_attribute_t;

typedef struct weir_object_t {
  weir_object_child_t* children;
  size_t child_count;
  size_t first_attribute, attribute_count;  // places in the graph's list
  // The way from the root that has the fewest names, joined by '/', as the checkpoint's keys spell
  // it; "" for the root; NULL: no way leads there.
  const char* path;
} weir_object_t;

typedef struct weir_object_graph_t {
  weir_arena_t arena;
  weir_object_t* objects;
  size_t count;
  weir_object_attribute_t* attributes;  // in the order of the objects
  size_t attribute_count;
} weir_object_graph_t;

// DATA_LOSS where it contradicts itself. |bytes| must outlive the graph.
WEIR_MUST_USE weir_status_t* weir_object_graph_parse(weir_view_t bytes,
                                                     weir_object_graph_t* out_graph);
void weir_object_graph_free(weir_object_graph_t* graph);
// The object that |path| leads to, by any names that lead there; NULL: none.
const weir_object_t* weir_object_graph_find(const weir_object_graph_t* graph, weir_view_t path);

// A variable or a table to be written: the path to its object, whose names are spelt as above, and
// what it is called.
typedef struct weir_object_source_t {
  const char* path;
  const char* name;
  bool is_table;
} weir_object_source_t;
// Appends the message of a graph with these and the objects on the way to them. INVALID_ARGUMENT
// names a path with an empty or misspelt name, or one that is there twice.
WEIR_MUST_USE weir_status_t* weir_object_graph_write(const weir_object_source_t* sources,
                                                     size_t count, weir_strbuf_t* out);
// Appends the key of the tensor of a variable, or of a table.
void weir_object_append_key(const weir_object_source_t* source, weir_strbuf_t* out);

#endif  // WEIR_FILE_OBJECT_GRAPH_H_

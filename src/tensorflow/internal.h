// internal.h — What the drop-in C API stands on: its handles, and the way from Weir's values to
// TensorFlow's and back.
//
// Every handle wraps an object of the layers below; nothing is implemented twice. A TF_Operation is
// a weir_node_t. A TF_Status takes over what a weir_status_t says.
#ifndef WEIR_TENSORFLOW_INTERNAL_H_
#define WEIR_TENSORFLOW_INTERNAL_H_

#include "base/alloc.h"
#include "base/string.h"
#include "graph/graph.h"
#include "tensor/tensor.h"
#include "tensorflow/c/c_api.h"
#include "weir/session.h"

// TensorFlow's TF_GRAPH_DEF_VERSION, whose ops these are.
#define TF_GRAPH_VERSION 2474

struct TF_Tensor {
  weir_tensor_t* tensor;  // owned reference, never NULL
};

struct TF_Graph {
  weir_graph_t* graph;  // owned reference
};

struct TF_SessionOptions {
  char* target;          // owned; NULL: this process
  weir_strbuf_t config;  // ConfigProto
};

// A step under way, fed and fetched piece by piece, by its handle.
typedef struct partial_t partial_t;

struct TF_Session {
  weir_session_t* session;  // owned
  weir_graph_t* graph;      // owned reference
  char* target;             // owned; NULL: this process
  weir_mutex_t mu;          // guards what follows
  bool is_closed;
  partial_t* partials;
  uint64_t next_partial;
};

// ---- statuses ----
// Makes |out| say what |take_status| says, OK for NULL, and consumes that. True when all is well.
bool tf_status_take(TF_Status* out, weir_status_t* take_status);
void tf_status_clear(TF_Status* out);
// The other way: NULL for OK, else a new status.
WEIR_MUST_USE weir_status_t* tf_status_to_weir(const TF_Status* status);

// ---- buffers ----
// Fills an empty |out| with the bytes, which are taken over. INVALID_ARGUMENT when |out| has some.
WEIR_MUST_USE weir_status_t* tf_buffer_take(TF_Buffer* out, weir_strbuf_t* take_bytes);
WEIR_INLINE weir_view_t tf_buffer_view(const TF_Buffer* buffer) {
  return buffer ? weir_view(buffer->data, buffer->length) : weir_view("", 0);
}
// A new buffer with the bytes; they are freed when there is no memory. NULL then.
TF_Buffer* tf_buffer_new(weir_strbuf_t* take_bytes);

// ---- tensors ----
// A handle on |take_tensor|; NULL, and the tensor is released, when out of memory.
TF_Tensor* tf_tensor_wrap(weir_tensor_t* take_tensor);
// What a step can be fed: strings as Weir keeps them, all else as it is. A new reference.
WEIR_MUST_USE weir_status_t* tf_tensor_in(const TF_Tensor* tensor, weir_tensor_t** out_tensor);
// What a caller may do with as it likes: strings that others hold are copied. Consumes the tensor.
WEIR_MUST_USE weir_status_t* tf_tensor_out(weir_tensor_t* take_tensor, TF_Tensor** out_tensor);

// ---- operations ----
WEIR_INLINE weir_node_t* tf_node(const TF_Operation* operation) {
  return (weir_node_t*)(uintptr_t)operation;
}
WEIR_INLINE TF_Operation* tf_operation(const weir_node_t* node) {
  return (TF_Operation*)(uintptr_t)node;
}
WEIR_INLINE weir_edge_t tf_edge(TF_Output output) {
  return (weir_edge_t){.node = tf_node(output.oper), .index = output.index};
}
WEIR_INLINE TF_Output tf_output(weir_edge_t edge) {
  return (TF_Output){.oper = tf_operation(edge.node), .index = edge.index};
}
// INVALID_ARGUMENT when |output| is none of |graph|. The graph's lock may be held.
WEIR_MUST_USE weir_status_t* tf_check_output(const weir_graph_t* graph, TF_Output output);
// Finds attribute |name|; NULL and INVALID_ARGUMENT when there is none, NULL after an earlier
// error.
const weir_attr_t* tf_find_attr(const weir_node_def_t* def, const char* name, TF_Status* status);
// The attribute, of this kind: NOT_FOUND when there is none of the name, INVALID_ARGUMENT when it
// is of another kind.
WEIR_MUST_USE weir_status_t* tf_attr_of(const weir_node_def_t* def, const char* name,
                                        weir_attr_kind_t kind, bool is_list,
                                        const weir_attr_t** out_value);
TF_AttrMetadata tf_attr_metadata(const weir_node_def_t* def, const char* attr_name,
                                 TF_Status* status);
// Copies the texts of a list, NULL: an empty one, to |storage|.
WEIR_MUST_USE weir_status_t* tf_attr_copy_strings(const weir_attr_t* attr, void** values,
                                                  size_t* lengths, int max_values, void* storage,
                                                  size_t storage_size);

// ---- graphs ----
WEIR_MUST_USE weir_status_t* tf_graph_create(TF_Graph** out_graph);
WEIR_MUST_USE weir_status_t* tf_graph_to_def(weir_graph_t* graph, weir_strbuf_t* out_def);
// "name", or "name_1" … where a node has the name or lives below it.
char* tf_graph_unique_prefix(const weir_graph_t* graph, const char* name);

// ---- sessions ----
// The session options that a target and a ConfigProto ask for; strings are borrowed from |arena|
// and |options|.
WEIR_MUST_USE weir_status_t* tf_session_options(const TF_SessionOptions* options,
                                                weir_arena_t* arena,
                                                weir_session_options_t* out_options);
// Makes a handle on |take_session|, which is destroyed on failure.
WEIR_MUST_USE weir_status_t* tf_session_wrap(weir_graph_t* graph, const char* target,
                                             weir_session_t* take_session,
                                             TF_Session** out_session);
WEIR_MUST_USE weir_status_t* tf_session_open(weir_graph_t* graph, const TF_SessionOptions* options,
                                             TF_Session** out_session);
void tf_session_free(TF_Session* session);  // NULL-safe
// CANCELLED once it is closed.
WEIR_MUST_USE weir_status_t* tf_session_check(TF_Session* session);
void tf_partials_free(TF_Session* session);
WEIR_MUST_USE weir_status_t* tf_run_options_parse(const TF_Buffer* buffer,
                                                  weir_run_options_t* out_options);

// The devices of a process; NULL after an error.
struct weir_runtime_t;
TF_DeviceList* tf_device_list_new(const struct weir_runtime_t* runtime, TF_Status* status);

// What one run names, from the caller's arrays. |feeds| own a reference on each tensor.
typedef struct tf_step_t {
  weir_step_spec_t spec;
  weir_feed_t* feeds;
  weir_edge_t* fetches;
  weir_tensor_t** results;
} tf_step_t;
typedef struct tf_step_args_t {
  const TF_Output* inputs;
  TF_Tensor* const* input_values;  // NULL: the step is only set up
  int input_count;
  const TF_Output* outputs;
  int output_count;
  const TF_Operation* const* targets;
  int target_count;
} tf_step_args_t;
WEIR_MUST_USE weir_status_t* tf_step_init(const tf_step_args_t* args, tf_step_t* out_step);
// Gives out the results, all or none of them.
WEIR_MUST_USE weir_status_t* tf_step_give(tf_step_t* step, TF_Tensor** output_values);
void tf_step_free(tf_step_t* step);

#endif  // WEIR_TENSORFLOW_INTERNAL_H_

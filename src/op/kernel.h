// kernel.h — The kernel context: how a kernel reaches its inputs, outputs, memory, state and the
// step it runs in.
//
// A context is thread-confined to its kernel call (for an asynchronous kernel: until done is
// called). Everything it points to outlives it. Kernels never see the graph, the executor or the
// session.
#ifndef WEIR_OP_KERNEL_H_
#define WEIR_OP_KERNEL_H_

#include "base/cancel.h"
#include "base/thread.h"
#include "device/device.h"
#include "op/op.h"
#include "op/rendezvous.h"
#include "op/resource.h"

// What travels along an edge: a tensor, or a reference to a variable (a ref edge). Both NULL: dead
// or nothing yet.
typedef struct weir_value_t {
  weir_tensor_t* tensor;
  weir_variable_t* ref;
} weir_value_t;
WEIR_INLINE void weir_value_release(weir_value_t* value) {
  if (value->tensor) weir_tensor_release(value->tensor);
  if (value->ref) weir_resource_release(&value->ref->base);
  *value = (weir_value_t){.tensor = NULL, .ref = NULL};
}

WEIR_INLINE void weir_done_call(weir_done_t done, weir_status_t* take_status) {
  done.fn(done.arg, take_status);
}

// ---- function calls: implemented by the session ----
typedef struct weir_functions_t weir_functions_t;
typedef uint64_t weir_function_handle_t;  // 0: none
typedef struct weir_call_t {
  weir_function_handle_t function;
  weir_tensor_t* const* args;  // borrowed for the duration of the call
  int arg_count;
  weir_tensor_t** rets;  // filled with owned references on success
  int ret_count;
} weir_call_t;
typedef weir_status_t* (*weir_function_visit_fn_t)(void* arg, const weir_op_t* op,
                                                   weir_view_t node_def);
// A function of a library, by its messages; borrowed.
typedef struct weir_function_text_t {
  weir_view_t name;
  weir_view_t def;       // FunctionDef
  weir_view_t gradient;  // the name of the function that is its gradient; empty: none
} weir_function_text_t;
typedef weir_status_t* (*weir_function_text_fn_t)(void* arg, const weir_function_text_t* function);
typedef struct weir_functions_vtable_t {
  // Instantiates |func| (name and attributes) once; the same pair gives the same handle. NOT_FOUND
  // for an unknown name.
  weir_status_t* (*instantiate)(weir_functions_t* self, const weir_func_t* func,
                                weir_function_handle_t* out_handle);
  // The same for calls of |start| whose arguments and results are in host memory: all of the body
  // runs on the first CPU, whatever devices it asks for.
  weir_status_t* (*instantiate_on_host)(weir_functions_t* self, const weir_func_t* func,
                                        weir_function_handle_t* out_handle);
  // Optional, default none: the FunctionDef that a name stands for, valid as long as the library;
  // empty: there is none.
  weir_view_t (*definition)(weir_functions_t* self, weir_view_t name);
  // How many results the function of a handle has; -1: there is none of that handle.
  int (*result_count)(weir_functions_t* self, weir_function_handle_t handle);
  // Runs it within the step of |ctx|. |call| and its arrays must live until |done|.
  void (*call)(weir_functions_t* self, weir_kernel_ctx_t* ctx, weir_call_t* call, weir_done_t done);
  // Runs it as a step of its own, which |cancel| ends: from any thread, in no kernel. |call|, its
  // arrays, |cancel| and the session's or worker's graph must live until |done|, which is called on
  // any thread, maybe before the return.
  void (*start)(weir_functions_t* self, weir_cancel_t* cancel, weir_call_t* call, weir_done_t done);
  // Calls |fn| for every node of the body of function |name|, as it was defined: with its op, NULL
  // where that is another function, and its NodeDef. Until the first that returns an error, which
  // is returned. NOT_FOUND for an unknown name.
  weir_status_t* (*visit)(weir_functions_t* self, weir_view_t name, weir_function_visit_fn_t fn,
                          void* arg);
  // Calls |fn| for function |name| and for all that it needs, each once: those that it calls or
  // names, and what these need. Otherwise as |visit|.
  weir_status_t* (*visit_needed)(weir_functions_t* self, weir_view_t name,
                                 weir_function_text_fn_t fn, void* arg);
  // Runs what output |fetch| of a GraphDef ("name" or "name:1") needs, with the functions that the
  // graph brings and with this program's state: on the first CPU, as a step of its own, which
  // |cancel| ends. Waits, so it is not called on threads of a pool. RESOURCE_EXHAUSTED where graphs
  // that run graphs are nested too deep.
  weir_status_t* (*run_graph)(weir_functions_t* self, weir_cancel_t* cancel, weir_view_t graph_def,
                              weir_view_t fetch, weir_tensor_t** out_tensor);
  // Creates functions of the same library for state that calls them after the step, and maybe after
  // the session or graph of it: iterators. The clone must not outlive the resources that it is part
  // of.
  weir_status_t* (*clone)(weir_functions_t* self, weir_functions_t** out_functions);
  // The same with the functions of |library|, a FunctionDefLibrary, instead of its own. It is as
  // deep as a graph that is run.
  weir_status_t* (*clone_with)(weir_functions_t* self, weir_view_t library,
                               weir_functions_t** out_functions);
  void (*destroy)(weir_functions_t* self);  // of a clone, when none of its calls is under way
} weir_functions_vtable_t;
struct weir_functions_t {
  const weir_functions_vtable_t* vtable;
};

// What all kernels of one step share.
typedef struct weir_step_t {
  int64_t id;
  weir_cancel_t* cancel;                // never NULL; blocking kernels register with it
  weir_rendezvous_t* rendezvous;        // may be NULL
  weir_resources_t* resources;          // weir_kernel_step_resources
  weir_resources_t* session_resources;  // variables, queues
  weir_device_t* const* devices;        // of the process; may be NULL where there is but one
  int device_count;
  weir_functions_t* functions;  // may be NULL
  weir_pool_t* inter_pool;      // for continuations of asynchronous kernels
  struct weir_hub_t* hub;       // where collectives meet (ops/collective/hub.h); may be NULL
  uint64_t scope;               // of whose steps |id| is one: a number of the session
  atomic_llong next_id;         // for unique names within the step
} weir_step_t;

// What a kernel's init sees.
struct weir_kernel_init_t {
  const weir_node_def_t* node;
  const weir_kernel_def_t* kernel;  // whose init it is
  weir_device_t* device;
  weir_functions_t* functions;  // may be NULL
};

struct weir_kernel_ctx_t {
  const weir_node_def_t* node;
  const weir_kernel_def_t* kernel;
  void* state;  // the kernel's own struct, shared by all steps of the plan: immutable or locked by
                // itself
  weir_value_t*
      inputs;  // owned by the context's maker; a kernel may take one out by weir_kernel_take_input
  weir_value_t* outputs;         // all empty at first
  const weir_value_t* promised;  // outputs that readers have already, to be filled; NULL: none
  weir_device_t* device;
  uint64_t host_outputs;  // bit i: output i, of the first 64, is in host memory on every device
  weir_step_t* step;
  int input_count;
  int output_count;
  int64_t frame_id;  // identifies frame and iteration, for names of per-iteration state
  int64_t iteration;
  bool is_input_dead;  // only for kernels that run on dead inputs (Send, Merge)
};

// ---- inputs ----
WEIR_INLINE const weir_tensor_t* weir_kernel_input(const weir_kernel_ctx_t* ctx, int i) {
  return ctx->inputs[i].tensor;
}
WEIR_INLINE weir_attrs_t weir_kernel_attrs(const weir_kernel_ctx_t* ctx) {
  return ctx->node->attrs;
}
// Takes the reference out of the input's place; the caller owns it.
WEIR_INLINE weir_tensor_t* weir_kernel_take_input(weir_kernel_ctx_t* ctx, int i) {
  weir_tensor_t* t = ctx->inputs[i].tensor;
  ctx->inputs[i].tensor = NULL;
  return t;
}
WEIR_INLINE weir_variable_t* weir_kernel_input_ref(const weir_kernel_ctx_t* ctx, int i) {
  return ctx->inputs[i].ref;
}

// Who input |i| comes from, for messages; the node itself where nobody knows.
WEIR_INLINE const char* weir_kernel_input_name(const weir_kernel_ctx_t* ctx, int i) {
  return ctx->node->input_name ? ctx->node->input_name(ctx->node, i) : ctx->node->name;
}

// The scalar (any rank, one element) or vector value of an int32/int64 host input. INVALID_ARGUMENT
// names the input.
WEIR_MUST_USE weir_status_t* weir_kernel_int(const weir_kernel_ctx_t* ctx, int i,
                                             int64_t* out_value);
// Up to |capacity| values of a vector (or scalar) input.
WEIR_MUST_USE weir_status_t* weir_kernel_ints(const weir_kernel_ctx_t* ctx, int i, int64_t* values,
                                              int capacity, int* out_count);
// Reads an axis input or value: negative counts from the end. INVALID_ARGUMENT "Expected dimension
// in the range [-r, r)".
WEIR_MUST_USE weir_status_t* weir_kernel_axis(int64_t axis, int rank, int* out_axis);

// ---- outputs ----
// Allocates output |i| of the node's output type. |out_tensor| is borrowed; the context owns it.
WEIR_MUST_USE weir_status_t* weir_kernel_output(weir_kernel_ctx_t* ctx, int i, int rank,
                                                const int64_t* dims, weir_tensor_t** out_tensor);
// As output, but in the memory of input |from| when this kernel is its last reader, its type has
// the same size and its element count is equal; the input must not be read after an element of the
// output was written out of order.
WEIR_MUST_USE weir_status_t* weir_kernel_forward(weir_kernel_ctx_t* ctx, int from, int i, int rank,
                                                 const int64_t* dims, weir_tensor_t** out_tensor);
// Makes |take_tensor| output |i|.
WEIR_INLINE void weir_kernel_set(weir_kernel_ctx_t* ctx, int i, weir_tensor_t* take_tensor) {
  ctx->outputs[i].tensor = take_tensor;
}
// Output |i| is input |from| itself, sharing memory.
WEIR_INLINE void weir_kernel_pass(weir_kernel_ctx_t* ctx, int from, int i) {
  if (ctx->inputs[from].tensor) {
    ctx->outputs[i].tensor = ctx->inputs[from].tensor;
    ctx->inputs[from].tensor = NULL;
  }
}
// Output |i| is a scalar of the node's output type.
WEIR_MUST_USE weir_status_t* weir_kernel_output_int(weir_kernel_ctx_t* ctx, int i,
                                                    int64_t value);  // int32 or int64
WEIR_MUST_USE weir_status_t* weir_kernel_output_bool(weir_kernel_ctx_t* ctx, int i, bool value);
// Ref outputs: passes a reference on (retained).
void weir_kernel_set_ref(weir_kernel_ctx_t* ctx, int i, weir_variable_t* variable);

// Of a kernel that is not trusted to set what it should: INTERNAL where an output is missing.
WEIR_MUST_USE weir_status_t* weir_kernel_check_outputs(const weir_kernel_ctx_t* ctx);

// Which inputs, or outputs, of a node are in host memory on a device whose memory is its own: those
// that the kernel lists, all that no device memory can hold, and of borrowed portable kernels
// int32. Bit i is tensor i, of the first 64.
uint64_t weir_kernel_host_args(const weir_node_def_t* node, const weir_kernel_def_t* kernel,
                               bool outputs);
// The same of one of them, however many there are.
bool weir_kernel_is_host_arg(const weir_node_def_t* node, const weir_kernel_def_t* kernel,
                             bool outputs, int i);
WEIR_INLINE bool weir_kernel_is_host_input(const weir_node_def_t* node,
                                           const weir_kernel_def_t* kernel, int i) {
  return weir_kernel_is_host_arg(node, kernel, false, i);
}
WEIR_INLINE bool weir_kernel_is_host_output(const weir_kernel_ctx_t* ctx, int i) {
  return WEIR_LIKELY(i < 64) ? ctx->host_outputs >> i & 1
                             : weir_kernel_is_host_arg(ctx->node, ctx->kernel, true, i);
}

// Scratch memory, released by the caller.
WEIR_MUST_USE weir_status_t* weir_kernel_scratch(weir_kernel_ctx_t* ctx, weir_dtype_t dtype,
                                                 int64_t count, weir_tensor_t** out_tensor);

// ---- work ----
WEIR_INLINE weir_pool_t* weir_kernel_pool(const weir_kernel_ctx_t* ctx) {
  return ctx->device->pool;
}

// ---- resources ----
// Where state of this kernel's device lives.
WEIR_INLINE weir_resources_t* weir_kernel_resources(const weir_kernel_ctx_t* ctx) {
  int ordinal = ctx->device->ordinal;
  weir_resources_t* all = ctx->step->session_resources;
  return WEIR_LIKELY(ordinal == 0) ? all : weir_resources_of(all, ordinal);
}
// Where state lives that is gone with the step: stacks, TensorArrays. A step that runs one kernel
// at a time has none until one asks.
WEIR_MUST_USE weir_status_t* weir_kernel_step_resources(const weir_kernel_ctx_t* ctx,
                                                        weir_resources_t** out_manager);
// Where the resource of a handle lives. INVALID_ARGUMENT when this device cannot reach it.
WEIR_MUST_USE weir_status_t* weir_kernel_manager(const weir_kernel_ctx_t* ctx,
                                                 const weir_handle_t* handle,
                                                 weir_resources_t** out_manager);
// The resource behind handle input |i|, retained. Looks in the step's manager when the container is
// the step's.
WEIR_MUST_USE weir_status_t* weir_kernel_resource(weir_kernel_ctx_t* ctx, int i,
                                                  const weir_resource_type_t* type,
                                                  weir_resource_t** out_resource);
// The variable behind input |i|, be it a handle or a ref; retained. FAILED_PRECONDITION "Error
// while reading resource variable x from Container: localhost. This could mean that the variable
// was uninitialized. Not found: …" when a handle has none.
WEIR_MUST_USE weir_status_t* weir_kernel_variable(weir_kernel_ctx_t* ctx, int i,
                                                  weir_variable_t** out_variable);
// The same, but NOT_FOUND when a handle has none or one without a value.
WEIR_MUST_USE weir_status_t* weir_kernel_live_variable(weir_kernel_ctx_t* ctx, int i,
                                                       weir_variable_t** out_variable);
// Calls |fn| with |take_variable| locked. Then output 0, where there is one, is a reference to it.
typedef weir_status_t* (*weir_variable_fn_t)(weir_kernel_ctx_t* ctx, weir_variable_t* variable,
                                             int mode);
WEIR_MUST_USE weir_status_t* weir_kernel_update_variable(weir_kernel_ctx_t* ctx,
                                                         weir_variable_t* take_variable,
                                                         weir_variable_fn_t fn, int mode);
// A name that no other call of this step gets: for stacks and TensorArrays.
WEIR_MUST_USE weir_status_t* weir_kernel_unique_name(weir_kernel_ctx_t* ctx, const char* prefix,
                                                     char* buffer, size_t size);
// "container" that marks handles of per-step resources.
#define WEIR_STEP_CONTAINER "__per_step__"

#endif  // WEIR_OP_KERNEL_H_

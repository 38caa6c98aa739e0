// plugin.h — Ops of your own: a shared object that exports weir_plugin_modules(), loaded by
// weir_plugin_load or `weir … --plugin=FILE`. examples/plugin/ is a whole one.
//
//   static weir_status_t* compute(weir_kernel_ctx_t* ctx) { … }
//   static const weir_plugin_op_t ops[] = {
//       {.name = "Clamp", .attrs = "T: {float, double}; limit: float = 1.0", .inputs = "x: T",
//        .outputs = "y: T", .infer_shape = weir_plugin_shape_unchanged,
//        .kernels = (const weir_plugin_kernel_t[]){{.device = "CPU", .compute = compute}, {0}}},
//       {0}};
//   const weir_plugin_t* weir_plugin_modules(void) {
//     static const weir_plugin_t plugin = {.abi = WEIR_PLUGIN_ABI, .name = "clamp", .ops = ops};
//     return &plugin;
//   }
//
// Compile with -shared -fPIC and link with libweir. What is declared here stays as it is for one
// WEIR_PLUGIN_ABI; contexts are opaque and belong to the call they are given to.
#ifndef WEIR_PLUGIN_H_
#define WEIR_PLUGIN_H_

#include "weir/attrs.h"
#include "weir/done.h"
#include "weir/scope.h"
#include "weir/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_PLUGIN_ABI 2

typedef struct weir_kernel_ctx_t weir_kernel_ctx_t;      // a kernel's call
typedef struct weir_kernel_init_t weir_kernel_init_t;    // the making of a kernel's state
typedef struct weir_shape_ctx_t weir_shape_ctx_t;        // a shape function's
typedef struct weir_grad_ctx_t weir_grad_ctx_t;          // a gradient function's
typedef struct weir_shape_t weir_shape_t;                // a shape, known in part perhaps
typedef struct weir_plugin_attrs_t weir_plugin_attrs_t;  // attributes and arguments of the node

// ---- definitions. All of them must live as long as the process: static const. ----
typedef struct weir_plugin_kernel_t {
  const char* device;  // required: "CPU"; NULL ends the table
  const char* types;   // "T: float, double"; NULL: all that the op allows
  // One of the two is required. Both are called from several threads at once, for different steps
  // too. compute has set the outputs when it returns. compute_async may return before that and must
  // call weir_plugin_done once, then or later, on any thread: for what waits, for a device or for
  // other programs, and would hold up a thread of the session meanwhile.
  weir_status_t* (*compute)(weir_kernel_ctx_t* ctx);
  void (*compute_async)(weir_kernel_ctx_t* ctx, weir_done_t done);
  // State of a node, made before its first step: |state_size| zeroed bytes, which init fills and
  // deinit, also called after a failed init, empties. A stateful op's lives as long as the session,
  // another's as long as the plan for one set of feeds and fetches. All steps share it: what
  // changes in it needs a lock. 0, NULL and NULL: none.
  size_t state_size;
  weir_status_t* (*init)(const weir_kernel_init_t* init, void* state);
  void (*deinit)(void* state);
  // Arguments that are in the host's memory on any device, sizes and axes mostly: "sizes, axis".
  // NULL: none.
  const char* host_inputs;
  const char* host_outputs;
} weir_plugin_kernel_t;

enum {
  WEIR_PLUGIN_STATEFUL = 1,     // has side effects: never folded, merged or dropped
  WEIR_PLUGIN_COMMUTATIVE = 2,  // of its two inputs
  WEIR_PLUGIN_NO_GRADIENT = 4,  // no gradient flows through it, without an error
};

// Specs are in TensorFlow's spelling: attrs "T: {float, double}; N: int >= 1; k: int = 3", inputs
// "values: N * T; axis: int32", outputs "y: T".
typedef struct weir_plugin_op_t {
  const char* name;  // required, "CamelCase"; NULL ends the table
  const char* attrs;
  const char* inputs;
  const char* outputs;
  const char* summary;                                   // one line for `weir ops`
  unsigned flags;                                        // WEIR_PLUGIN_*
  weir_status_t* (*infer_shape)(weir_shape_ctx_t* ctx);  // NULL: nothing can be said
  weir_status_t* (*build_grad)(weir_grad_ctx_t* ctx);    // NULL: not differentiable
  const weir_plugin_kernel_t* kernels;                   // ended by a zero row
} weir_plugin_op_t;

typedef struct weir_plugin_t {
  int abi;                      // WEIR_PLUGIN_ABI
  const char* name;             // for messages
  const weir_plugin_op_t* ops;  // ended by a zero row
} weir_plugin_t;

// What a plug-in exports. A function of this name in a shared object, not in libweir.
#ifdef __GNUC__
__attribute__((visibility("default")))
#endif
const weir_plugin_t*
weir_plugin_modules(void);

// ---- loading. Thread-safe. ----
// Loads a shared object and registers its ops for the whole process; graphs built afterwards can
// use them. It is never unloaded; loading it again does nothing. NOT_FOUND when it cannot be opened
// or is no plug-in, FAILED_PRECONDITION for another ABI, INVALID_ARGUMENT for a bad definition or a
// name that is taken; nothing is registered then.
WEIR_API WEIR_MUST_USE weir_status_t* weir_plugin_load(const char* path);
// The same for a plug-in that is linked into the program.
WEIR_API WEIR_MUST_USE weir_status_t* weir_plugin_register(const weir_plugin_t* plugin);

// ---- attributes. INVALID_ARGUMENT when the op has none of that name and kind. ----
WEIR_API const weir_plugin_attrs_t* weir_plugin_init_attrs(const weir_kernel_init_t* init);
WEIR_API const weir_plugin_attrs_t* weir_plugin_kernel_attrs(const weir_kernel_ctx_t* ctx);
WEIR_API const weir_plugin_attrs_t* weir_plugin_shape_attrs(const weir_shape_ctx_t* ctx);
WEIR_API const weir_plugin_attrs_t* weir_plugin_grad_attrs(const weir_grad_ctx_t* ctx);
WEIR_API WEIR_MUST_USE weir_status_t* weir_plugin_attr_int(const weir_plugin_attrs_t* attrs,
                                                           const char* name, int64_t* out_value);
WEIR_API WEIR_MUST_USE weir_status_t* weir_plugin_attr_float(const weir_plugin_attrs_t* attrs,
                                                             const char* name, float* out_value);
WEIR_API WEIR_MUST_USE weir_status_t* weir_plugin_attr_bool(const weir_plugin_attrs_t* attrs,
                                                            const char* name, bool* out_value);
WEIR_API WEIR_MUST_USE weir_status_t* weir_plugin_attr_type(const weir_plugin_attrs_t* attrs,
                                                            const char* name,
                                                            weir_dtype_t* out_value);
// The bytes are borrowed and not terminated.
WEIR_API WEIR_MUST_USE weir_status_t* weir_plugin_attr_string(const weir_plugin_attrs_t* attrs,
                                                              const char* name,
                                                              const char** out_data,
                                                              size_t* out_size);
WEIR_API WEIR_MUST_USE weir_status_t* weir_plugin_attr_ints(const weir_plugin_attrs_t* attrs,
                                                            const char* name,
                                                            weir_ints_t* out_values);  // borrowed
WEIR_API WEIR_MUST_USE weir_status_t* weir_plugin_attr_floats(
    const weir_plugin_attrs_t* attrs, const char* name, weir_floats_t* out_values);  // borrowed
WEIR_API WEIR_MUST_USE weir_status_t* weir_plugin_attr_types(const weir_plugin_attrs_t* attrs,
                                                             const char* name,
                                                             weir_types_t* out_values);  // borrowed
WEIR_API WEIR_MUST_USE weir_status_t* weir_plugin_attr_shape(const weir_plugin_attrs_t* attrs,
                                                             const char* name,
                                                             weir_dims_t* out_shape);  // borrowed

// ---- arguments. A list ("xs: N * T") is several tensors in a row. ----
// The tensors [*out_first, *out_first + *out_count) that input, or output, |name| consists of.
// INVALID_ARGUMENT when the op has none of that name.
WEIR_API WEIR_MUST_USE weir_status_t* weir_plugin_input_range(const weir_plugin_attrs_t* attrs,
                                                              const char* name, int* out_first,
                                                              int* out_count);
WEIR_API WEIR_MUST_USE weir_status_t* weir_plugin_output_range(const weir_plugin_attrs_t* attrs,
                                                               const char* name, int* out_first,
                                                               int* out_count);

// ---- kernels ----
WEIR_API const char* weir_plugin_node_name(const weir_kernel_ctx_t* ctx);  // borrowed
WEIR_API int weir_plugin_input_count(const weir_kernel_ctx_t* ctx);        // tensors
WEIR_API int weir_plugin_output_count(const weir_kernel_ctx_t* ctx);
// Input |index|, borrowed, not to be written to. |index| must be in range.
WEIR_API const weir_tensor_t* weir_plugin_input(const weir_kernel_ctx_t* ctx, int index);
// Makes output |index|, of the type the op says; borrowed, to be filled.
WEIR_API WEIR_MUST_USE weir_status_t* weir_plugin_output(weir_kernel_ctx_t* ctx, int index,
                                                         int rank, const int64_t* dims,
                                                         weir_tensor_t** out_tensor);
// As output, but in the memory of input |from| where nobody else reads that, type and number of
// elements permitting: element i must not be read after it was written.
WEIR_API WEIR_MUST_USE weir_status_t* weir_plugin_forward(weir_kernel_ctx_t* ctx, int from,
                                                          int index, int rank, const int64_t* dims,
                                                          weir_tensor_t** out_tensor);
// Makes |tensor| output |index|; retained. INVALID_ARGUMENT when it is not of the type the op says.
WEIR_API WEIR_MUST_USE weir_status_t* weir_plugin_set(weir_kernel_ctx_t* ctx, int index,
                                                      weir_tensor_t* tensor);
// Output |index| is input |from| itself.
WEIR_API WEIR_MUST_USE weir_status_t* weir_plugin_pass(weir_kernel_ctx_t* ctx, int from, int index);
// The value of an int32 or int64 input: of one element, or up to |capacity| of a vector.
WEIR_API WEIR_MUST_USE weir_status_t* weir_plugin_int(const weir_kernel_ctx_t* ctx, int index,
                                                      int64_t* out_value);
WEIR_API WEIR_MUST_USE weir_status_t* weir_plugin_ints(const weir_kernel_ctx_t* ctx, int index,
                                                       int64_t* values, int capacity,
                                                       int* out_count);
// The node's state, as init left it; borrowed. NULL when the kernel has none.
WEIR_API void* weir_plugin_state(const weir_kernel_ctx_t* ctx);
// Ends an asynchronous kernel: NULL or its error. |ctx| is gone afterwards.
WEIR_API void weir_plugin_done(weir_done_t done, weir_status_t* take_status);
// Calls |fn| on a thread of the session, now or later.
WEIR_API void weir_plugin_submit(weir_kernel_ctx_t* ctx, void (*fn)(void* arg), void* arg);
// Calls |fn| on ranges that cover [0, total), on the session's threads; |cost_ns|: of one item.
WEIR_API void weir_plugin_parallel_for(weir_kernel_ctx_t* ctx, int64_t total, double cost_ns,
                                       void (*fn)(void* arg, int64_t begin, int64_t end),
                                       void* arg);

// ---- cancellation. What takes long looks at it now and then; what waits says what wakes it. ----
// Whether the step is cancelled or out of time: then the kernel's outputs and status are of no
// account any more. Asked by the thread that compute was called on, not within parallel_for; of an
// asynchronous kernel, by any.
WEIR_API bool weir_plugin_is_cancelled(const weir_kernel_ctx_t* ctx);
// Has |fn| called once the step is cancelled, on the thread that cancels it: it must be short and
// not end the kernel itself. Returns a token, or 0 when the step is cancelled already or memory is
// exhausted: then |fn| is never called, and the kernel must not wait if it is cancelled.
WEIR_API uint64_t weir_plugin_on_cancel(weir_kernel_ctx_t* ctx, void (*fn)(void* arg), void* arg);
// To be called with each token, before the kernel ends. True when |fn| was not and will not be
// called; waits for it where it is being called on another thread.
WEIR_API bool weir_plugin_off_cancel(weir_kernel_ctx_t* ctx, uint64_t token);

// ---- shape functions ----
// Rank of an input, -1 when unknown; fills up to |capacity| dimensions, -1 where unknown.
WEIR_API int weir_plugin_shape_input(const weir_shape_ctx_t* ctx, int index, int64_t* dims,
                                     int capacity);
WEIR_API WEIR_MUST_USE weir_status_t* weir_plugin_shape_set(weir_shape_ctx_t* ctx, int output,
                                                            int rank, const int64_t* dims);
// To use as they are: output 0 as input 0; output 0 as inputs 0 and 1 broadcast; all scalars.
WEIR_API weir_status_t* weir_plugin_shape_unchanged(weir_shape_ctx_t* ctx);
WEIR_API weir_status_t* weir_plugin_shape_broadcast(weir_shape_ctx_t* ctx);
WEIR_API weir_status_t* weir_plugin_shape_scalar(weir_shape_ctx_t* ctx);
// Output 0 as all inputs, which must agree.
WEIR_API weir_status_t* weir_plugin_shape_merge_all(weir_shape_ctx_t* ctx);

// Shapes to compute with, as the built-in ops do: immutable, borrowed, gone with |ctx|. Functions
// that may fail do so in TensorFlow's words, "Shape must be rank 1 but is rank 2".
WEIR_API const weir_shape_t* weir_plugin_shape_at(const weir_shape_ctx_t* ctx, int index);
// -1 when not known; |axis| may count from the end.
WEIR_API int weir_plugin_shape_rank(const weir_shape_t* shape);
WEIR_API int64_t weir_plugin_shape_dim(const weir_shape_t* shape, int axis);
// A shape of |rank| (-1: unknown) and |dims| (-1: unknown).
WEIR_API WEIR_MUST_USE weir_status_t* weir_plugin_shape_make(weir_shape_ctx_t* ctx, int rank,
                                                             const int64_t* dims,
                                                             const weir_shape_t** out_shape);
WEIR_API WEIR_MUST_USE weir_status_t* weir_plugin_shape_with_rank(weir_shape_ctx_t* ctx,
                                                                  const weir_shape_t* shape,
                                                                  int rank,
                                                                  const weir_shape_t** out_shape);
WEIR_API WEIR_MUST_USE weir_status_t* weir_plugin_shape_at_least(weir_shape_ctx_t* ctx,
                                                                 const weir_shape_t* shape,
                                                                 int rank);
// What is known of either, or of |a| and |b| broadcast.
WEIR_API WEIR_MUST_USE weir_status_t* weir_plugin_shape_join(weir_shape_ctx_t* ctx,
                                                             const weir_shape_t* a,
                                                             const weir_shape_t* b,
                                                             const weir_shape_t** out_shape);
WEIR_API WEIR_MUST_USE weir_status_t* weir_plugin_shape_join_broadcast(
    weir_shape_ctx_t* ctx, const weir_shape_t* a, const weir_shape_t* b,
    const weir_shape_t** out_shape);
// The dimensions of |a| and then those of |b|; those of |shape| in [begin, end).
WEIR_API WEIR_MUST_USE weir_status_t* weir_plugin_shape_concat(weir_shape_ctx_t* ctx,
                                                               const weir_shape_t* a,
                                                               const weir_shape_t* b,
                                                               const weir_shape_t** out_shape);
WEIR_API WEIR_MUST_USE weir_status_t* weir_plugin_shape_sub(weir_shape_ctx_t* ctx,
                                                            const weir_shape_t* shape, int begin,
                                                            int end,
                                                            const weir_shape_t** out_shape);
// The value of input |index| where it is constant, borrowed, or NULL; and the shape that it spells,
// unknown where it is not constant.
WEIR_API const weir_tensor_t* weir_plugin_shape_value(const weir_shape_ctx_t* ctx, int index);
WEIR_API WEIR_MUST_USE weir_status_t* weir_plugin_shape_from_value(weir_shape_ctx_t* ctx, int index,
                                                                   const weir_shape_t** out_shape);
WEIR_API WEIR_MUST_USE weir_status_t* weir_plugin_shape_give(weir_shape_ctx_t* ctx, int output,
                                                             const weir_shape_t* shape);

// ---- attributes of a new node ----
typedef enum weir_attr_arg_kind_t {
  WEIR_ARG_INT,
  WEIR_ARG_FLOAT,
  WEIR_ARG_BOOL,
  WEIR_ARG_TYPE,
  WEIR_ARG_STRING,
  WEIR_ARG_INTS,
  WEIR_ARG_FLOATS,
  WEIR_ARG_TYPES,
} weir_attr_arg_kind_t;
typedef struct weir_attr_arg_t {
  const char* name;
  weir_attr_arg_kind_t kind;
  union {
    int64_t i;
    float f;
    bool b;
    weir_dtype_t type;
    const char* s;
    weir_ints_t ints;
    weir_floats_t floats;
    weir_types_t types;
  } value;
} weir_attr_arg_t;

// ---- gradients: nodes that compute what flows back to the inputs. Errors stick in |ctx|. ----
WEIR_API weir_edge_t weir_plugin_grad_input(weir_grad_ctx_t* ctx, int index);
WEIR_API weir_edge_t weir_plugin_grad_output(weir_grad_ctx_t* ctx, int index);
WEIR_API weir_edge_t weir_plugin_grad_dy(weir_grad_ctx_t* ctx, int index);  // of output |index|
// Output 0 of a new node.
WEIR_API weir_edge_t weir_plugin_grad_node(weir_grad_ctx_t* ctx, const char* op,
                                           const weir_edge_t* inputs, int input_count,
                                           const weir_attr_arg_t* attrs, int attr_count);
// Sets the gradient of input |index| and returns the first error.
WEIR_API WEIR_MUST_USE weir_status_t* weir_plugin_grad_set(weir_grad_ctx_t* ctx, int index,
                                                           weir_edge_t dx);

// ---- using ops that weir/ops.h has no function for ----
// A node of any op. Attributes that the inputs determine, or that have a default, may be left out.
// NULL after an error, which sticks in the scope.
WEIR_API weir_node_t* weir_scope_node(weir_scope_t* scope, const char* op,
                                      const weir_edge_t* inputs, int input_count,
                                      const weir_attr_arg_t* attrs, int attr_count);

#ifdef __cplusplus
}
#endif
#endif  // WEIR_PLUGIN_H_

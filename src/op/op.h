// op.h — What an op is: the definition its author writes, and the parsed form everyone else reads.
//
// Adding an op is writing one file under ops/<group>/ that exports one weir_op_module_t
// (docs/adding-an-op.md).
#ifndef WEIR_OP_OP_H_
#define WEIR_OP_OP_H_

#include "op/attr.h"
#include "weir/done.h"

typedef struct weir_op_t weir_op_t;
typedef struct weir_shape_ctx_t weir_shape_ctx_t;        // op/shape_ctx.h
typedef struct weir_grad_ctx_t weir_grad_ctx_t;          // op/grad_ctx.h
typedef struct weir_simplify_ctx_t weir_simplify_ctx_t;  // op/simplify.h
typedef struct weir_kernel_ctx_t weir_kernel_ctx_t;      // op/kernel.h
typedef struct weir_kernel_init_t weir_kernel_init_t;    // op/kernel.h
typedef struct weir_cost_ctx_t weir_cost_ctx_t;          // op/cost.h
typedef struct weir_cost_t weir_cost_t;                  // op/cost.h

// Traits, read by passes and executor: no list of op names lives outside ops/.
typedef uint32_t weir_op_flags_t;
enum {
  WEIR_OP_STATEFUL =
      1u << 0,  // has side effects or hidden state: never folded, merged or dropped while asked for
  WEIR_OP_COMMUTATIVE = 1u << 1,  // of its two inputs
  WEIR_OP_AGGREGATE = 1u << 2,    // sums its inputs (AddN): gradients may use it
  WEIR_OP_CHEAP =
      1u << 3,  // runs on the thread that made it ready, whatever the size of its inputs
  WEIR_OP_POINTWISE = 1u << 4,            // elementwise with broadcasting: fusable
  WEIR_OP_SHAPE_ONLY = 1u << 5,           // reads its inputs' shapes, never their elements
  WEIR_OP_UNINITIALIZED_INPUT = 1u << 6,  // a ref input may be uninitialised (Assign)
  WEIR_OP_NO_GRADIENT = 1u << 7,  // differentiating through it gives no gradient, without an error
  WEIR_OP_NO_FOLD = 1u << 8,  // stateless by name, yet neither folded nor left out unread (a guard)
  WEIR_OP_ALLOW_DISTRIBUTED =
      1u << 9,  // AggregateOps and friends across tasks: kept for OpDef output
  WEIR_OP_PASS_THROUGH =
      1u << 10,             // output 0 is input 0, unchanged (Identity): a pass may bypass it
  WEIR_OP_VIEW = 1u << 11,  // an output may share memory with an input (Reshape, Cast to the same
                            // type): when that is written to, the output changes
  WEIR_OP_UNBOUNDED = 1u << 12,  // its time depends on more than its inputs' sizes: on a file, or
                                 // on what data unpacks to
  WEIR_OP_SNAPSHOT =
      1u << 13,  // what it reads of a resource is never memory of a reference variable
  WEIR_OP_COMPOSITE = 1u << 14,  // stands for several nodes: its errors name the one that failed,
                                 // its attributes 'names' and 'ops' say who they all were, the last
                                 // at the end, and 'outputs' whose its outputs are, counted from
                                 // the number of inputs on
  WEIR_OP_HOST_ONLY = 1u << 16,  // all it takes and makes is in host memory on every device
  WEIR_OP_STEP_STATE = 1u << 15,  // stateful, but all of it dies with the step (TensorArrays)
  WEIR_OP_READ_ONLY = 1u << 17,   // changes nothing of the resources and references it is given
};

// How an elementwise op makes an element of its output from those of its inputs: what passes fuse
// by, and kernels of fused nodes run. The last two are reductions, which a fused node takes along
// where its device can; only as what comes last.
typedef enum weir_scalar_kind_t {
  WEIR_SCALAR_NONE = 0,
  WEIR_SCALAR_UNARY,            // a row of kernel/elementwise/unary_ops.inc
  WEIR_SCALAR_BINARY,           // a row of binary_ops.inc; the inputs broadcast
  WEIR_SCALAR_BINARY_FLAT,      // the same, of inputs with as many elements
  WEIR_SCALAR_BINARY_SAME,      // the same, of two inputs of one shape
  WEIR_SCALAR_BIAS,             // the same, of a tensor and a vector along its last dimension
  WEIR_SCALAR_ACTIVATION,       // of kernel/nn/activation.h; a float attribute is its parameter
  WEIR_SCALAR_ACTIVATION_GRAD,  // its gradient, of inputs of one shape
  WEIR_SCALAR_CAST,             // from the input's type to the output's
  WEIR_SCALAR_SELECT,           // the second or third input, as the first says; they broadcast
  WEIR_SCALAR_REDUCE,           // over dimensions that the step names (program.h); no op's own
  WEIR_SCALAR_REDUCE_CHANNELS,  // over all but the channels: the last dimension, or the second one
                                // where an attribute data_format is "NCHW"
} weir_scalar_kind_t;
typedef struct weir_scalar_t {
  uint8_t kind;      // weir_scalar_kind_t
  uint8_t function;  // weir_unary_op_t, weir_binary_op_t, weir_activation_t or weir_reduce_op_t
} weir_scalar_t;

// What mixed precision (pass/mixed.c) makes of a float node: whether it may compute in 16 bits. It
// is a matter of what the op's numbers are used for; which types there are kernels for is another.
typedef enum weir_mixed_t {
  WEIR_MIXED_NONE = 0,  // stays in float (variables, optimizers, statistics, whatever is not known)
  WEIR_MIXED_DENY,   // likewise, and so does what is computed from it: sums, exponentials, losses
  WEIR_MIXED_ALLOW,  // is much faster in 16 bits, summing in float: products, convolutions
  WEIR_MIXED_INFER,  // does not lose much by it: 16 bits between nodes that are in 16 bits
  WEIR_MIXED_CLEAR,  // loses nothing by it, moving or choosing: 16 bits beside any such node
} weir_mixed_t;

// The op that does the work of a node and of what is next to it (pass/epilogue.c), and how it is
// told of that. Attributes that both have are the node's; its inputs come first.
typedef enum weir_extended_form_t {
  WEIR_EXTENDED_NONE = 0,
  WEIR_EXTENDED_LIST,  // 'fused_ops' are what follows, from a bias on; 'args' what that reads
                       // besides
  WEIR_EXTENDED_SIDE,  // 'side_input' is added to output 0, 'activation_mode' is applied to that
  WEIR_EXTENDED_GRAD,  // gradient of such an op: input 0 comes before the gradient of its
                       // activation; 'offset' and 'y' are its input 2 and output 0
} weir_extended_form_t;
typedef struct weir_extended_t {
  const char* op;  // NULL: none
  uint8_t form;    // weir_extended_form_t
  const char* of;  // of WEIR_EXTENDED_GRAD: the op whose gradient it is
} weir_extended_t;

// Ops the runtime itself must recognise. Everything else is NONE.
typedef enum weir_role_t {
  WEIR_ROLE_NONE = 0,
  WEIR_ROLE_SWITCH,  // outputs: one alive, the others dead (Switch, RefSwitch, _SwitchN)
  WEIR_ROLE_MERGE,
  WEIR_ROLE_ENTER,
  WEIR_ROLE_EXIT,
  WEIR_ROLE_NEXT_ITERATION,
  WEIR_ROLE_LOOP_COND,
  WEIR_ROLE_CONTROL_TRIGGER,  // runs even when its control inputs are dead
  WEIR_ROLE_CONST,
  WEIR_ROLE_PLACEHOLDER,  // must be fed
  WEIR_ROLE_ARG,          // function input |index|
  WEIR_ROLE_RETVAL,       // function output |index|
  WEIR_ROLE_SEND,
  WEIR_ROLE_RECV,  // runs even when ... is dead: deadness arrives by the rendezvous
  WEIR_ROLE_NO_OP,
  WEIR_ROLE_VARIABLE,  // holds state by itself (VariableV2, VarHandleOp)
} weir_role_t;

#define WEIR_DEVICE_CPU "CPU"

// A kernel: how an op computes on one kind of device, for some types.
typedef struct weir_kernel_def_t {
  const char* device;  // required: "CPU"; NULL ends the table
  const char* types;   // optional: constraints on type attributes, "T: float, double; Tidx: int32";
                       // default all
  // One of the two is required.
  weir_status_t* (*compute)(weir_kernel_ctx_t* ctx);
  void (*compute_async)(weir_kernel_ctx_t* ctx,
                        weir_done_t done);  // calls done exactly once, on any thread
  weir_status_t* (*init)(const weir_kernel_init_t* init,
                         void* state);  // optional: parses attributes into |state|
  void (*deinit)(void* state);          // optional; also after a failed init
  uint32_t state_size;   // bytes of the kernel's own struct, zeroed, ctx->state; made once a plan
  bool is_portable : 1;  // it touches elements in host memory only: it serves every kind of device
                         // that has no kernel of its own for the node. There int32, the type of
                         // shapes and counters, stays in host memory with it, as in TensorFlow
  bool has_device_int32 : 1;  // but not with this one, which copies or reinterprets
  bool names_functions : 1;   // of an op with state and functions: the state is the session's all
                              // the same, since it holds no handle of a function
  bool is_recordable : 1;     // of an op with state: a step that a device repeats by itself
                              // (device.h: recordings) takes it on all the same
  bool is_only : 1;           // no other row comes after it, nor one that ends the table
  bool keeps_int32 : 1;       // set by the registry, with |abroad|: in host memory
  bool takes_peers : 1;       // inputs may be in the memory of peers of its device: none is copied
  const char* tails;  // optional, of a weir_extended_t's op: what it can do besides, "BiasAdd,
                      // Relu", each at most once and in this order; nodes are rewritten to no other
  const char* host_inputs;  // optional: names of input args that live in host memory on any device,
                            // "shape, axis"
  const char* host_outputs;  // likewise for outputs
  // The same two lists, bit i: argument i. The registry sets them in its copy of the row; an author
  // leaves them out.
  uint64_t host_input_args;
  uint64_t host_output_args;
  const struct weir_kernel_def_t* abroad;  // likewise: a portable row, as other kinds have it
  const void* foreign;  // what it was made from: a plug-in's row (api/plugin.c), or what came by
                        // TensorFlow's C API (tensorflow/kernel.c)
  int32_t priority;     // of rows that accept a node the highest one is taken, then the oldest
  const char* label;    // optional: for those nodes alone whose attribute _kernel says so
} weir_kernel_def_t;
// The table of an op with one kernel: .kernels = WEIR_CPU_KERNEL(.compute = roll_cpu).
#define WEIR_CPU_KERNEL(...) \
  ((const weir_kernel_def_t[]){{WEIR_DEVICE_CPU, .is_only = true, __VA_ARGS__}})
// The same, for one that hands tensors on or looks at their shapes: .is_portable.
#define WEIR_PORTABLE_KERNEL(...) WEIR_CPU_KERNEL(.is_portable = true, __VA_ARGS__)

// The kernels of an op that names a variable of type attribute "dtype": on every kind of device,
// but those of int32, which counts and must not move with every reader, and of what only a host can
// hold, on the CPU.
#define WEIR_VARIABLE_KERNELS(...)                                                       \
  {                                                                                      \
    {WEIR_DEVICE_CPU, .is_portable = true,                                               \
     .types =                                                                            \
         "dtype: float, double, half, bfloat16, int8, int16, int64, uint8, uint16, "     \
         "uint32, uint64, bool, complex64, complex128, qint8, quint8, qint16, quint16, " \
         "qint32",                                                                       \
     __VA_ARGS__},                                                                       \
        {WEIR_DEVICE_CPU, __VA_ARGS__}, {                                                \
      0                                                                                  \
    }                                                                                    \
  }

// An op, as its author writes it. Specs are in TensorFlow's own spelling:
//   attrs   "T: {float, double} = DT_FLOAT; N: int >= 1; strides: list(int); padding:
//   {'SAME','VALID'}; f: func"
//           (also: numbertype, realnumbertype, quantizedtype as sets of types)
//   inputs  "values: N * T; axis: Tidx; var: Ref(T); args: Tin" (Tin: a list(type) attribute)
typedef struct weir_op_def_t {
  const char* name;     // required; NULL ends the table
  const char* attrs;    // optional
  const char* inputs;   // optional
  const char* outputs;  // optional
  weir_op_flags_t flags;
  weir_role_t role;
  weir_scalar_t scalar;  // optional: not elementwise. Of one output; attributes that are neither
                         // types nor numbers of type float have their default where it holds
  weir_mixed_t mixed;    // of the type attribute that its first input of type float has
  const char* summary;   // optional: one line for `weir ops` and the generated documentation
  weir_status_t* (*infer_shape)(
      weir_shape_ctx_t* ctx);  // required: weir_shape_fn_unknown when nothing can be said
  weir_status_t* (*build_grad)(weir_grad_ctx_t* ctx);  // optional: no gradient
  weir_status_t* (*simplify)(
      weir_simplify_ctx_t* ctx);  // optional: algebraic rewriting of one node
  // Optional: how much a node computes and touches. |cost| holds the default, one operation an
  // element and all that is read and written, for it to change.
  void (*cost)(const weir_cost_ctx_t* ctx, weir_cost_t* cost);
  // Optional: the op that does in one go what several nodes of this one do, on devices that have a
  // kernel for it. It is WEIR_OP_COMPOSITE and has all inputs and outputs of this one, each "N *
  // …". Attributes that both have are the nodes' in common.
  const char* joined;
  weir_extended_t extended;          // optional: on devices whose kernel for it has |tails|
  const weir_kernel_def_t* kernels;  // optional
} weir_op_def_t;

typedef struct weir_op_module_t {
  const char* file;          // __FILE__
  const weir_op_def_t* ops;  // ended by a zero row
} weir_op_module_t;

// ---- the parsed form. Immutable after the registry's creation. ----
typedef struct weir_arg_t {
  const char* name;
  weir_dtype_t type;           // a fixed type, or INVALID
  const char* type_attr;       // or the type attribute
  const char* number_attr;     // repeated so many times
  const char* type_list_attr;  // or a list(type) attribute
  bool is_ref;
} weir_arg_t;

typedef struct weir_attr_def_t {
  const char* name;
  weir_attr_kind_t kind;
  bool is_list;
  bool has_minimum;
  bool has_default;
  int64_t minimum;         // of the value, or of the length of a list
  uint64_t allowed_types;  // bit 1 << dtype; 0: all
  const weir_dtype_t*
      allowed_type_list;  // the same in the order of the definition, for messages and OpDefs
  size_t allowed_type_count;
  const weir_view_t* allowed_strings;
  size_t allowed_string_count;  // 0: all
  weir_attr_t default_value;
} weir_attr_def_t;

struct weir_op_t {
  const char* name;
  const weir_arg_t* inputs;
  int input_count;  // args, not tensors
  const weir_arg_t* outputs;
  int output_count;
  const weir_attr_def_t* attrs;
  int attr_count;
  weir_op_flags_t flags;
  weir_role_t role;
  const weir_op_def_t* def;  // functions; NULL for a function of the library used as an op
  // Its kernels, for weir_op_kernels; NULL: none. Replaced when a module brings more.
  _Atomic(const weir_kernel_def_t* const*) kernel_tables;
};

// The op's kernels: the definition's own and those of other modules (a .cu twin: a row with the
// op's name and kernels, nothing else), by priority. Each table is ended by a zero row, all of them
// by NULL.
const weir_kernel_def_t* const* weir_op_kernels(const weir_op_t* op);

const weir_attr_def_t* weir_op_attr(const weir_op_t* op, const char* name);  // NULL when absent
// Appends the op in one line, as TensorFlow's messages end: "Op<name=Abs; signature=x:T -> y:T;
// attr=T:type,allowed=[…]>".
void weir_op_append_summary(const weir_op_t* op, weir_strbuf_t* out);

// A node as ops see it: name, op, attributes, and the types of its inputs and outputs, lists
// flattened.
typedef struct weir_node_def_t weir_node_def_t;
struct weir_node_def_t {
  const char* name;
  const char* op_name;  // also when |op| is unknown
  const weir_op_t* op;  // NULL for an op nobody registered
  const char* device;   // requested; "" for none
  weir_attrs_t attrs;
  int input_count;  // tensors
  int output_count;
  const weir_dtype_t* input_types;  // reference types where the op declares Ref
  const weir_dtype_t* output_types;
  // For messages: the name of the node that makes input |i|. NULL: this one is in no graph, as a
  // copy is not.
  const char* (*input_name)(const weir_node_def_t* node, int i);
};

// The tensors [*out_first, *out_first + *out_count) that make up argument |arg| (index into
// op->inputs or op->outputs).
void weir_node_input_range(const weir_node_def_t* node, int arg, int* out_first, int* out_count);
void weir_node_output_range(const weir_node_def_t* node, int arg, int* out_first, int* out_count);

// An error of the node of number |i| among those that |node|, a WEIR_OP_COMPOSITE, stands for.
weir_status_t* weir_composite_at_node(const weir_node_def_t* node, int i,
                                      weir_status_t* take_status);

// The nodes that |node|, made by pass/epilogue.c, stands for; the last one at the end. Its
// attributes
// '_names', '_ops', '_outputs' (who its outputs were) and '_base' (which of them it does the work
// of before all) say so. False: it stands for itself.
bool weir_node_is_extended(const weir_node_def_t* node);
// An error of the node of number |i| among those.
weir_status_t* weir_extended_at_node(const weir_node_def_t* node, int i,
                                     weir_status_t* take_status);

// Checks and completes attributes against the definition: unknown kinds, types that are not
// allowed, minima; fills defaults. |given| may lack type and number attributes that |input_types|
// determine: they are inferred. The result is in |arena|.
WEIR_MUST_USE weir_status_t* weir_op_resolve(const weir_op_t* op, const char* node_name,
                                             weir_attrs_t given, const weir_dtype_t* input_types,
                                             int input_count, weir_arena_t* arena,
                                             weir_attrs_t* out_attrs);
// Types of all tensors of the inputs (or outputs) under complete attributes. INVALID_ARGUMENT when
// sizes disagree.
WEIR_MUST_USE weir_status_t* weir_op_arg_types(const weir_op_t* op, const char* node_name,
                                               weir_attrs_t attrs, bool outputs,
                                               weir_arena_t* arena, const weir_dtype_t** out_types,
                                               int* out_count);

// ---- registry. Thread-safe: ops, and kernels of ops, may be added, by one thread at a time, while
// others read; nothing else of an op is ever changed, and none is removed. ----
typedef struct weir_registry_t weir_registry_t;

// Parses and validates every definition. INVALID_ARGUMENT names file, op and the bad piece of a
// spec. |modules| ends with NULL and must outlive the registry.
WEIR_MUST_USE weir_status_t* weir_registry_create(const weir_op_module_t* const* modules,
                                                  weir_registry_t** out_registry);
// Adds the ops of more modules, all or none of them.
WEIR_MUST_USE weir_status_t* weir_registry_add(weir_registry_t* registry,
                                               const weir_op_module_t* const* modules);
void weir_registry_destroy(weir_registry_t* registry);
const weir_op_t* weir_registry_find(const weir_registry_t* registry,
                                    weir_view_t name);  // NULL when absent
size_t weir_registry_count(const weir_registry_t* registry);
const weir_op_t* weir_registry_at(const weir_registry_t* registry, size_t index);  // sorted by name
// The kernel for a node on a device type; NULL: none.
const weir_kernel_def_t* weir_op_kernel(const weir_node_def_t* node, const char* device_type);
// The same; INVALID_ARGUMENT, listing what is registered, when there
// is none; NOT_FOUND when the op is unknown.
WEIR_MUST_USE weir_status_t* weir_op_find_kernel(const weir_node_def_t* node,
                                                 const char* device_type,
                                                 const weir_kernel_def_t** out_kernel);
// Types for which a kernel row accepts |attr|, as a mask; all allowed types when the row does not
// constrain it.
uint64_t weir_kernel_types(const weir_op_t* op, const weir_kernel_def_t* kernel, const char* attr);
// Appends the op as an OpDef message.
WEIR_MUST_USE weir_status_t* weir_op_write(const weir_op_t* op, weir_strbuf_t* out);
// Parses one OpDef signature (of a FunctionDef) into |arena|.
WEIR_MUST_USE weir_status_t* weir_op_parse(weir_view_t op_def, weir_arena_t* arena,
                                           weir_tensor_list_t* tensors, weir_op_t** out_op);

#endif  // WEIR_OP_OP_H_

// prepared.h — Ops that are ready to run: attributes complete, types known, kernels initialised on
// the devices that they were run on. Immutable but for what is made when it is first needed.
#ifndef WEIR_EAGER_PREPARED_H_
#define WEIR_EAGER_PREPARED_H_

#include "eager/context.h"
#include "runtime/op_call.h"

// What an op is asked for as. Everything is borrowed.
typedef struct weir_eager_ask_t {
  const char* op;
  const char* device;  // NULL or "": none
  weir_attrs_t attrs;  // what the inputs determine, and what has a default, may be left out
  const weir_dtype_t* types;
  int input_count;
  bool refuse_attrs;  // that the op does not have
} weir_eager_ask_t;

typedef enum weir_eager_kind_t {
  WEIR_EAGER_KERNEL,  // a kernel is called
  WEIR_EAGER_PLAN,    // it calls functions: a plan of one node is run
  WEIR_EAGER_CONST,   // the tensor is the node's own, and not part of what is prepared
} weir_eager_kind_t;

// On one device.
typedef struct weir_eager_kernel_t {
  _Atomic(weir_op_call_t*) call;  // NULL: not made yet
  uint64_t host_inputs;           // as weir_kernel_host_args gives them
  const weir_kernel_def_t* def;
} weir_eager_kernel_t;

struct weir_eager_op_t {
  weir_node_def_t def;  // of the name of the op; |device| is what was asked for
  weir_eager_kind_t kind;
  atomic_bool is_retired;  // a function that it may call was removed: no longer found
  bool is_unique;          // names state: made for one node, and not found by others
  int asked;               // the device that was asked for; -1: none
  atomic_int home;         // the device where nothing asks for another; -1: not chosen yet
  _Atomic(weir_plan_t*) plan;
  _Atomic(const struct weir_eager_gradient_t*) gradient;  // in the arena; NULL: none yet
  uint64_t hash;
  weir_eager_op_t* next;  // in the same slot of the cache
  weir_eager_ask_t ask;   // a copy, in the arena
  weir_arena_t arena;     // guarded by the context's make_mu once it is made
  weir_tensor_list_t tensors;
  weir_eager_kernel_t kernels[];  // one a device
};

uint64_t weir_eager_ask_hash(const weir_eager_ask_t* ask);
bool weir_eager_op_answers(const weir_eager_op_t* op, const weir_eager_ask_t* ask, uint64_t hash);
// The op as it is asked for, from the cache or made. It lives as long as the context.
// INVALID_ARGUMENT and NOT_FOUND as for a node of a graph, with |name| as the node's.
WEIR_MUST_USE weir_status_t* weir_eager_find_op(weir_eager_t* eager, const weir_eager_ask_t* ask,
                                                uint64_t hash, const char* name,
                                                weir_eager_op_t** out_op);
// Whether each node of the op has state of its own name.
bool weir_eager_op_is_unique(const weir_op_t* op);
// One that nobody else finds, of the name given; the caller's to destroy.
WEIR_MUST_USE weir_status_t* weir_eager_make_op(weir_eager_t* eager, const weir_eager_ask_t* ask,
                                                const char* name, weir_eager_op_t** out_op);
void weir_eager_op_destroy(weir_eager_t* eager, weir_eager_op_t* op);  // NULL-safe
void weir_eager_free_ops(weir_eager_t* eager);

// Removes a function of the library: what is run from now on does not know it. INVALID_ARGUMENT
// when there is none.
WEIR_MUST_USE weir_status_t* weir_eager_remove_function(weir_eager_t* eager, weir_view_t name);

// The kernel on device |ordinal|, made ready.
WEIR_MUST_USE weir_status_t* weir_eager_op_call(weir_eager_t* eager, weir_eager_op_t* op,
                                                int ordinal, weir_op_call_t** out_call);
// The plan of one that calls functions.
WEIR_MUST_USE weir_status_t* weir_eager_op_plan(weir_eager_t* eager, weir_eager_op_t* op,
                                                weir_plan_t** out_plan);

#endif  // WEIR_EAGER_PREPARED_H_

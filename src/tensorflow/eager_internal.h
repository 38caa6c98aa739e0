// eager_internal.h — The handles of the eager C API, over eager/.
#ifndef WEIR_TENSORFLOW_EAGER_INTERNAL_H_
#define WEIR_TENSORFLOW_EAGER_INTERNAL_H_

#include "base/cancel.h"
#include "eager/execute.h"
#include "tensorflow/c/eager/c_api.h"
#include "tensorflow/c/eager/c_api_experimental.h"
#include "tensorflow/internal.h"

struct TFE_Context {
  weir_eager_t* eager;  // owned reference
  uint64_t id;
  TFE_ContextDevicePlacementPolicy policy;
  weir_mutex_t mu;  // guards what follows
  int step_depth;
  weir_resources_t* step_resources;  // of the step between start and end; NULL: there is none
};

// Immutable, shared by ops.
struct TFE_TensorHandle {
  weir_ref_t ref;
  weir_tensor_t* tensor;  // owned reference, in the memory of any device
  weir_eager_t* eager;    // owned reference; NULL: on the first CPU of any context
  int device;             // of the op that made it
};

struct TFE_Op {
  TFE_Context* ctx;     // borrowed
  weir_arena_t arena;   // all that follows
  const weir_op_t* op;  // borrowed; of a function: as long as it is there
  const char* name;
  const char* device;         // as it was given; ""
  weir_status_t* error;       // the first of setters that cannot tell
  TFE_TensorHandle** inputs;  // held; on the heap
  size_t input_count, input_capacity;
  weir_named_attr_t* attrs;  // on the heap
  size_t attr_count, attr_capacity;
  int next_arg;   // whose inputs come next; -1: they came one by one, where there may be several
  uint64_t told;  // attributes that the inputs so far tell, of the op's first 64
  weir_tensor_list_t tensors;  // of attributes
  weir_cancel_t* cancel;       // borrowed; NULL: none
};

// A handle on |take_tensor|. |eager| may be NULL. The tensor is released on failure.
WEIR_MUST_USE weir_status_t* tfe_handle_create(weir_eager_t* eager, int device,
                                               weir_tensor_t* take_tensor,
                                               TFE_TensorHandle** out_handle);
TFE_TensorHandle* tfe_handle_ref(TFE_TensorHandle* handle);
// Reads the name of a device, which may be as short as "CPU:0".
WEIR_MUST_USE weir_status_t* tfe_device_parse(const char* text, weir_device_name_t* out_name);
// Sets |attr|, unless it was set or inputs tell it: of an attribute the first word holds. Errors
// stick in |op|.
void tfe_op_set(TFE_Op* op, weir_named_attr_t attr);
void tfe_op_fail(TFE_Op* op, weir_status_t* take_status);
// The op with the inputs and attributes that it has, prepared.
WEIR_MUST_USE weir_status_t* tfe_op_prepare(TFE_Op* op, weir_eager_op_t** out_op);
// The ops that were given a cancellation manager are its children.
weir_cancel_t* tfe_cancellation_get(TFE_CancellationManager* manager);
// INVALID_ARGUMENT naming |what|, where |argument| is NULL.
#define TFE_REQUIRE(argument, what) \
  ((argument) ? NULL : WEIR_STATUS(INVALID_ARGUMENT, "Invalid %s: it is NULL", what))

#endif  // WEIR_TENSORFLOW_EAGER_INTERNAL_H_

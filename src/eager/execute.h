// execute.h — Running one op on values: where it runs, copies between memories, the kernel or plan.
#ifndef WEIR_EAGER_EXECUTE_H_
#define WEIR_EAGER_EXECUTE_H_

#include "eager/prepared.h"

// A value and the device that made it: of references and variants nothing else says where they are.
typedef struct weir_eager_value_t {
  weir_value_t value;
  int device;
} weir_eager_value_t;

// Runs |op| on |inputs|, which stay the caller's. |outputs|, as many as it has and all empty
// before, are the caller's in every case; they are of |*out_device|. Errors name the node |name|.
WEIR_MUST_USE weir_status_t* weir_eager_execute(weir_eager_t* eager, weir_eager_op_t* op,
                                                weir_step_t* step, const char* name,
                                                const weir_eager_value_t* inputs,
                                                weir_value_t* outputs, int* out_device);

#define WEIR_EAGER_HOST (-1)
// |tensor| as it is in the memory of device |to|, WEIR_EAGER_HOST: of the host. |from| made it.
// |*out_tensor| is the caller's; the same tensor where it is there already.
WEIR_MUST_USE weir_status_t* weir_eager_move(weir_eager_t* eager, weir_tensor_t* tensor, int from,
                                             int to, weir_tensor_t** out_tensor);

#endif  // WEIR_EAGER_EXECUTE_H_

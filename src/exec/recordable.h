// recordable.h — Whether what a plan launches is the same in every step, so that a device may
// repeat it by itself.
#ifndef WEIR_EXEC_RECORDABLE_H_
#define WEIR_EXEC_RECORDABLE_H_

#include "exec/plan.h"

// What a step may find changed in a value that is in host memory.
typedef enum weir_varies_t {
  WEIR_VARIES_NOT,  // nothing: it follows from constants, and from shapes
  WEIR_VARIES_FED,  // it is what was fed, as it was fed
  WEIR_VARIES_ANY,  // the host computes it from what was fed
} weir_varies_t;

typedef struct weir_recordable_t {
  weir_device_t* device;         // that repeats; NULL: steps cannot be recorded
  const weir_plan_node_t* node;  // because of it; NULL: of the plan as a whole
  const char* why;
  // By node: what its inputs in host memory vary by. In the arena that was given.
  uint8_t* varies;
} weir_recordable_t;

// Steps that are given arguments and variables of the same shapes launch the same kernels with the
// same numbers where nothing that the host computes with depends on elements of arguments or of
// variables, on state that is not in variables, or on what the host fetches of the device.
WEIR_MUST_USE weir_status_t* weir_plan_is_recordable(const weir_plan_t* plan, weir_arena_t* arena,
                                                     weir_recordable_t* out_recordable);
// Whether |node| copies from the host's memory to that of its device.
bool weir_plan_node_uploads(const weir_plan_node_t* node);

#endif  // WEIR_EXEC_RECORDABLE_H_

// shadow.h — Variables of a step that is recorded: stand-ins, so that nothing of the session
// changes before what was recorded runs, and what has to be true of the variables for it to run
// again.
//
// A recording reads and writes variables at addresses. Where a step updates a variable in place,
// that is the same memory in every step. Where it leaves other memory in the variable, the
// recording keeps the memory that it reads, and what the variable holds is copied there before each
// run.
#ifndef WEIR_EXEC_SHADOW_H_
#define WEIR_EXEC_SHADOW_H_

#include "exec/run.h"

typedef struct weir_shadow_t {
  weir_variable_t* variable;  // the session's; retained
  weir_variable_t* stand_in;  // retained; NULL: the step is over
  const weir_plan_node_t* node;
  bool is_host;    // in host memory, and only read: what it holds is copied before each run
  bool is_read;    // the step has nothing that writes it
  bool is_shared;  // it was only read, and others may hold it, too
  void* data;      // where the variable's elements have to be
  int rank;        // and its shape
  int64_t dims[WEIR_MAX_RANK];
} weir_shadow_t;

// Thread-compatible.
typedef struct weir_shadows_t {
  weir_device_t* device;
  weir_shadow_t* items;
  int count;
  size_t capacity;
  weir_resources_t* resources;  // the stand-ins', in place of the session's; NULL: the step is over
} weir_shadows_t;

// Makes stand-ins for the variables of the step on |device|. An error says why it cannot be
// recorded now: a variable has no value.
WEIR_MUST_USE weir_status_t* weir_shadows_create(const weir_run_params_t* params,
                                                 weir_device_t* device,
                                                 weir_shadows_t* out_shadows);
void weir_shadows_free(weir_shadows_t* shadows);
// The last of the recording: copies what the step left in other memory to that of the variables,
// and drops the stand-ins. An error: it is not to be run.
WEIR_MUST_USE weir_status_t* weir_shadows_settle(weir_shadows_t* shadows,
                                                 const weir_run_params_t* params);

typedef enum weir_shadow_state_t {
  WEIR_SHADOW_FIT,      // all are locked
  WEIR_SHADOW_BUSY,     // someone reads or writes one
  WEIR_SHADOW_CHANGED,  // one is not where it was
} weir_shadow_state_t;
// Locks the variables of the device if all are where they were and nobody else holds what they
// hold, so that it may be written. Never waits.
weir_shadow_state_t weir_shadows_lock(weir_shadows_t* shadows);
void weir_shadows_unlock(weir_shadows_t* shadows);
// Of a variable in host memory: what it holds, retained; NULL where its shape is not the same.
weir_tensor_t* weir_shadow_read(const weir_shadow_t* shadow);
// Whether the plan's variables are still the ones of |params|'s session.
bool weir_shadows_match(const weir_shadows_t* shadows, const weir_run_params_t* params);

#endif  // WEIR_EXEC_SHADOW_H_

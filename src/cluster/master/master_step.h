// master_step.h — One step of a session: its parts run side by side, here and on other tasks, and
// end together.
#ifndef WEIR_CLUSTER_MASTER_MASTER_STEP_H_
#define WEIR_CLUSTER_MASTER_MASTER_STEP_H_

#include "cluster/master/master_session.h"

typedef struct weir_master_step_t weir_master_step_t;
// Called once, on any thread, when every part has ended. |take_status| NULL: the results are there.
// The step is gone when this returns.
typedef void (*weir_step_done_fn_t)(void* arg, weir_master_step_t* step,
                                    weir_status_t* take_status);

typedef struct weir_step_params_t {
  weir_master_session_t* session;  // retained by the step
  weir_master_run_t* run;
  weir_tensor_t* const* args;  // run->feed_count of them, retained; NULL: a partial run,
                               // whose maker ends the step of the task (weir_task_end_step)
  bool is_traced;
  weir_step_done_fn_t done;
  void* arg;
} weir_step_params_t;

// Makes a step that waits to be started. It must be started.
WEIR_MUST_USE weir_status_t* weir_master_step_create(const weir_step_params_t* params,
                                                     weir_master_step_t** out_step);
void weir_master_step_start(weir_master_step_t* step);
// Ends the step early; done is still called. Allowed from create until done is called.
void weir_master_step_cancel(weir_master_step_t* step);

// For done: result |i|, borrowed; and the RunMetadata fields of a traced step, appended.
weir_tensor_t* weir_master_step_result(const weir_master_step_t* step, int i);
WEIR_MUST_USE weir_status_t* weir_master_step_metadata(weir_master_step_t* step,
                                                       weir_strbuf_t* out);
weir_rendezvous_t* weir_master_step_rendezvous(const weir_master_step_t* step);  // borrowed
int64_t weir_master_step_id(const weir_master_step_t* step);

#endif  // WEIR_CLUSTER_MASTER_MASTER_STEP_H_

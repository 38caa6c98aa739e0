// partial_run.c — TF_SessionPRun: steps that are fed and fetched piece by piece, by their handles.
#include <stdio.h>

#include "tensorflow/internal.h"

enum { HANDLE_SIZE = 32 };

struct partial_t {
  char handle[HANDLE_SIZE];
  weir_partial_run_t* run;  // owned
  partial_t* next;
};

void tf_partials_free(TF_Session* session) {
  for (partial_t *partial = session->partials, *next; partial; partial = next) {
    next = partial->next;
    weir_partial_run_destroy(partial->run);
    weir_free(partial);
  }
  session->partials = NULL;
}

static void add_partial(TF_Session* session, partial_t* partial) {
  weir_mutex_lock(&session->mu);
  snprintf(partial->handle, HANDLE_SIZE, "partial_%llu",
           (unsigned long long)session->next_partial++);
  partial->next = session->partials;
  session->partials = partial;
  weir_mutex_unlock(&session->mu);
}

static weir_partial_run_t* find_partial(TF_Session* session, const char* handle) {
  weir_mutex_lock(&session->mu);
  const partial_t* partial = session->partials;
  while (partial && strcmp(partial->handle, handle)) partial = partial->next;
  weir_mutex_unlock(&session->mu);
  return partial ? partial->run : NULL;
}

static weir_status_t* set_up(TF_Session* session, const tf_step_t* step, char** out_handle) {
  WEIR_TRY(tf_session_check(session));
  partial_t* partial = weir_calloc(1, sizeof(*partial));
  if (!partial) return weir_out_of_memory();
  weir_status_t* status = weir_partial_run_create(session->session, &step->spec, &partial->run);
  if (status) {
    weir_free(partial);
    return status;
  }
  add_partial(session, partial);
  *out_handle = weir_strdup(partial->handle);
  return *out_handle ? NULL : weir_out_of_memory();
}

void TF_SessionPRunSetup(TF_Session* session, const TF_Output* inputs, int ninputs,
                         const TF_Output* outputs, int noutputs,
                         const TF_Operation* const* target_opers, int ntargets, const char** handle,
                         TF_Status* status) {
  const tf_step_args_t args = {.inputs = inputs,
                               .input_count = ninputs,
                               .outputs = outputs,
                               .output_count = noutputs,
                               .targets = target_opers,
                               .target_count = ntargets};
  tf_step_t step;
  char* made = NULL;
  *handle = NULL;
  weir_status_t* result = tf_step_init(&args, &step);
  if (!result) result = set_up(session, &step, &made);
  tf_step_free(&step);
  if (tf_status_take(status, result)) *handle = made;
}

static weir_status_t* go_on(TF_Session* session, const char* handle, tf_step_t* step) {
  WEIR_TRY(tf_session_check(session));
  weir_partial_run_t* run = find_partial(session, handle);
  if (!run)
    return WEIR_STATUS(INVALID_ARGUMENT, "Must run 'setup' before performing partial runs!");
  return weir_partial_run_continue(run, &step->spec, step->results);
}

void TF_SessionPRun(TF_Session* session, const char* handle, const TF_Output* inputs,
                    TF_Tensor* const* input_values, int ninputs, const TF_Output* outputs,
                    TF_Tensor** output_values, int noutputs,
                    const TF_Operation* const* target_opers, int ntargets, TF_Status* status) {
  const tf_step_args_t args = {inputs,   input_values, ninputs, outputs,
                               noutputs, target_opers, ntargets};
  tf_step_t step;
  for (int i = 0; i < noutputs; ++i) output_values[i] = NULL;
  weir_status_t* result = tf_step_init(&args, &step);
  if (!result) result = go_on(session, handle, &step);
  if (!result) result = tf_step_give(&step, output_values);
  tf_step_free(&step);
  tf_status_take(status, result);
}

void TF_DeletePRunHandle(const char* handle) { weir_free((void*)(uintptr_t)handle); }

// master_run.c — Steps that clients ask for: RunStep and callables.
#include "base/alloc.h"
#include "base/details.h"
#include "cluster/master/master_internal.h"
#include "cluster/task/fields.h"
#include "cluster/task/messages.h"

// ---- answers ----

// RunStep's and RunCallable's responses have it in the same field.
static void put_metadata(master_call_t* call, weir_message_builder_t* builder) {
  const weir_master_run_t* run = call->run;
  size_t at = weir_wire_begin(&builder->head, RUN_STEP_RESPONSE_METADATA);
  if (call->is_traced) builder->status = weir_master_step_metadata(call->step, &builder->head);
  for (int i = 0; call->wants_partitions && i < run->partition_count; ++i)
    weir_wire_put_bytes(&builder->head, RUN_METADATA_PARTITION_GRAPHS, run->partitions[i].data,
                        run->partitions[i].size);
  weir_wire_end(&builder->head, at);
}

void weir_master_call_fail_run(master_call_t* call, weir_status_t* take_status) {
  weir_message_builder_t builder = {.message = NULL};
  if (!call->errors_in_body) {
    weir_master_call_finish(call, take_status, NULL);
    return;
  }
  weir_wire_put_int(&builder.head, RUN_STEP_RESPONSE_STATUS_CODE, weir_status_code(take_status));
  weir_wire_put_string(&builder.head, RUN_STEP_RESPONSE_STATUS_ERROR_MESSAGE,
                       weir_status_message(take_status));
  weir_status_destroy(take_status);
  weir_master_call_finish(call, NULL, &builder);
}

static void step_done(void* arg, weir_master_step_t* step, weir_status_t* take_status) {
  master_call_t* call = arg;
  weir_message_builder_t builder = {.message = NULL};
  weir_rpc_call_on_cancel(call->call, NULL, NULL);
  if (take_status) {
    weir_master_call_fail_run(call, take_status);
    return;
  }
  for (int i = 0; i < call->run->fetch_count; ++i) {
    weir_tensor_t* result = weir_master_step_result(step, i);
    if (call->is_callable) weir_message_put_tensor(&builder, RUN_CALLABLE_RESPONSE_FETCH, result);
    else
      weir_message_put_named_tensor(&builder, RUN_STEP_RESPONSE_TENSOR, call->signature.fetches[i],
                                    result);
  }
  if (call->is_traced || call->wants_partitions) put_metadata(call, &builder);
  weir_master_call_finish(call, NULL, &builder);
}

static void cancel_step(void* arg) { weir_master_step_cancel(arg); }

static void start_step(master_call_t* call) {
  weir_step_params_t params = {.session = call->session,
                               .run = call->run,
                               .args = call->tensors,
                               .is_traced = call->is_traced,
                               .done = step_done,
                               .arg = call};
  weir_status_t* status = NULL;
  if (call->tensor_count != call->run->feed_count)
    status = WEIR_STATUS(INVALID_ARGUMENT, "%d tensors are fed where %d are expected",
                         call->tensor_count, call->run->feed_count);
  if (!status) status = weir_master_step_create(&params, &call->step);
  if (status) {
    weir_master_call_fail_run(call, status);
    return;
  }
  weir_master_step_t* step = call->step;
  weir_rpc_call_on_cancel(call->call, cancel_step, step);
  weir_master_step_start(step);
}

// ---- RunStep ----

// The rest of RunStep where the signature is new: it waits for other tasks.
static void prepare_and_start(void* arg) {
  master_call_t* call = arg;
  weir_status_t* status = weir_master_session_prepare(call->session, &call->signature, &call->run);
  if (status) weir_master_call_fail_run(call, weir_status_mark_node(status));
  else start_step(call);
}

static void continue_partial(void* arg) { weir_master_continue_partial(arg); }

static weir_status_t* begin_run_step(master_call_t* call) {
  weir_master_t* master = call->master;
  WEIR_TRY(weir_parse_run_step(call));
  WEIR_TRY(weir_master_find(master, call->session_handle, &call->session));
  WEIR_TRY(weir_request_ids_add(&master->task->request_ids, call->request_id, "RunStep"));
  if (call->partial_handle.size) return NULL;
  return weir_master_session_find(call->session, &call->signature, &call->run);
}

static void run_step(void* arg) {
  master_call_t* call = arg;
  weir_status_t* status = begin_run_step(call);
  if (status) weir_master_call_fail_run(call, status);
  else if (call->partial_handle.size) weir_task_wait(call->master->task, continue_partial, call);
  else if (call->run) start_step(call);
  else weir_task_wait(call->master->task, prepare_and_start, call);
}

// Serves a call on this thread, which is an io thread, unless its request takes long to read.
static void serve(master_call_t* call, weir_task_fn_t fn) {
  enum { LARGE_REQUEST = 1 << 16 };
  size_t size = weir_rpc_buffer_view(weir_rpc_call_request(call->call)).size;
  if (size < LARGE_REQUEST) fn(call);
  else weir_pool_submit(call->master->task->pool, fn, call);
}

void weir_handle_run_step(void* self, weir_rpc_call_t* rpc) {
  master_call_t* call = weir_master_call_create(((weir_task_t*)self)->master, rpc);
  if (call) serve(call, run_step);
}

// ---- callables ----

enum { MAX_CALLABLES = 4096 };  // of a session; each keeps its signature ready

static weir_view_t callable_key(const int64_t* number) {
  return weir_view((const char*)number, sizeof(*number));
}

static void make_callable(void* arg) {
  master_call_t* call = arg;
  weir_master_session_t* session = call->session;
  weir_message_builder_t builder = {.message = NULL};
  weir_master_callable_t* callable = weir_malloc(sizeof(*callable));
  weir_status_t* status = callable ? NULL : weir_out_of_memory();
  if (!status) status = weir_master_session_prepare(session, &call->signature, &call->run);
  if (!status) {
    *callable = (weir_master_callable_t){
        .run = call->run, .is_traced = call->is_traced, .wants_partitions = call->wants_partitions};
    weir_mutex_lock(&session->mu);
    int64_t number = session->next_callable++;
    if (session->callables.count >= MAX_CALLABLES) {
      status = WEIR_STATUS(RESOURCE_EXHAUSTED,
                           "The session has %d callables already: release some of them first",
                           MAX_CALLABLES);
    } else {
      status = weir_map_put(&session->callables, callable_key(&number), callable);
    }
    if (!status) weir_master_run_retain(callable->run);
    weir_mutex_unlock(&session->mu);
    if (number) weir_wire_put_int(&builder.head, MAKE_CALLABLE_RESPONSE_HANDLE, number);
  }
  if (status) weir_free(callable);
  if (status) weir_message_abandon(&builder);
  weir_master_call_finish(call, weir_status_mark_node(status), &builder);
}

void weir_handle_make_callable(void* self, weir_rpc_call_t* rpc) {
  master_call_t* call = weir_master_call_create(((weir_task_t*)self)->master, rpc);
  if (!call) return;
  weir_status_t* status = weir_parse_make_callable(call);
  if (!status) status = weir_master_find(call->master, call->session_handle, &call->session);
  if (!status)
    status =
        weir_request_ids_add(&call->master->task->request_ids, call->request_id, "MakeCallable");
  if (status) weir_master_call_finish(call, status, NULL);
  else weir_task_wait(call->master->task, make_callable, call);
}

static weir_status_t* find_callable(master_call_t* call) {
  weir_master_session_t* session = call->session;
  weir_view_t key = callable_key(&call->callable);
  weir_mutex_lock(&session->mu);
  weir_master_callable_t* callable = weir_map_find(&session->callables, key);
  if (callable) {
    call->run = weir_master_run_retain(callable->run);
    call->is_traced = callable->is_traced;
    call->wants_partitions = callable->wants_partitions;
  }
  weir_mutex_unlock(&session->mu);
  if (callable) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "No such callable handle: %lld", (long long)call->callable);
}

static void run_callable(void* arg) {
  master_call_t* call = arg;
  weir_master_t* master = call->master;
  call->is_callable = true;
  weir_status_t* status = weir_parse_run_callable(call);
  if (!status) status = weir_master_find(master, call->session_handle, &call->session);
  if (!status)
    status = weir_request_ids_add(&master->task->request_ids, call->request_id, "RunCallable");
  if (!status) status = find_callable(call);
  if (status) weir_master_call_finish(call, status, NULL);
  else start_step(call);
}

void weir_handle_run_callable(void* self, weir_rpc_call_t* rpc) {
  master_call_t* call = weir_master_call_create(((weir_task_t*)self)->master, rpc);
  if (call) serve(call, run_callable);
}

// Releasing what is not there is no mistake.
static void release_callable(master_call_t* call) {
  weir_master_session_t* session = call->session;
  weir_mutex_lock(&session->mu);
  weir_master_callable_t* callable =
      weir_map_remove(&session->callables, callable_key(&call->callable));
  weir_mutex_unlock(&session->mu);
  if (callable) weir_master_run_release(session, callable->run);
  weir_free(callable);
}

void weir_handle_release_callable(void* self, weir_rpc_call_t* rpc) {
  master_call_t* call = weir_master_call_create(((weir_task_t*)self)->master, rpc);
  if (!call) return;
  weir_status_t* status = weir_parse_handle(call, "ReleaseCallableRequest");
  if (!status) status = weir_master_find(call->master, call->session_handle, &call->session);
  if (!status) release_callable(call);
  weir_master_call_finish(call, status, NULL);
}

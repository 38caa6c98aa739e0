// master_partial.c — Partial runs: one step whose feeds arrive and whose fetches are taken in
// several calls, over the step's rendezvous.
#include <stdio.h>

#include "base/alloc.h"
#include "base/details.h"
#include "cluster/master/master_internal.h"
#include "cluster/task/fields.h"
#include "cluster/task/messages.h"

enum { MAX_PARTIALS = 1000 };  // of a session: each is a step that waits

// Held by the session's table and by the calls that use it; the step holds it until it ends.
typedef struct partial_t {
  weir_ref_t ref;
  weir_master_session_t* session;  // not retained: the session's table holds this
  weir_master_run_t* run;          // retained
  weir_task_t* task;
  int64_t step_id;
  weir_rendezvous_t* rendezvous;
  weir_mutex_t mu;  // guards all below
  weir_cond_t ended;
  weir_master_step_t* step;  // NULL once it has ended
  weir_status_t* status;     // how it ended
  bool* is_fed;
  bool* is_fetched;
  int left;  // feeds and fetches still to come
} partial_t;

static void partial_unref(partial_t* partial) {
  if (!partial || !weir_ref_dec(&partial->ref)) return;
  if (partial->rendezvous) weir_task_end_step(partial->task, partial->step_id);
  weir_rendezvous_release(partial->rendezvous);
  weir_master_run_release(partial->session, partial->run);
  weir_status_destroy(partial->status);
  weir_free(partial->is_fed);
  weir_free(partial->is_fetched);
  weir_cond_destroy(&partial->ended);
  weir_mutex_destroy(&partial->mu);
  weir_free(partial);
}

static void partial_done(void* arg, weir_master_step_t* step, weir_status_t* take_status) {
  partial_t* partial = arg;
  (void)step;
  if (take_status) partial->rendezvous->vtable->abort(partial->rendezvous, take_status);
  weir_mutex_lock(&partial->mu);
  partial->step = NULL;
  partial->status = take_status;
  weir_cond_broadcast(&partial->ended);
  weir_mutex_unlock(&partial->mu);
  partial_unref(partial);
}

// ---- setup ----

static weir_status_t* partial_create(master_call_t* call, partial_t** out_partial) {
  const weir_master_run_t* run = call->run;
  partial_t* partial = weir_calloc(1, sizeof(*partial));
  if (!partial) return weir_out_of_memory();
  atomic_init(&partial->ref, 2);  // the table, the step
  weir_mutex_init(&partial->mu);
  weir_cond_init(&partial->ended);
  partial->session = call->session;
  partial->task = call->master->task;
  partial->run = weir_master_run_retain(call->run);
  partial->left = run->feed_count + run->fetch_count;
  partial->is_fed = weir_calloc((size_t)run->feed_count, sizeof(bool));
  partial->is_fetched = weir_calloc((size_t)run->fetch_count, sizeof(bool));
  weir_step_params_t params = {
      .session = call->session, .run = call->run, .done = partial_done, .arg = partial};
  weir_status_t* status = partial->is_fed && partial->is_fetched ? NULL : weir_out_of_memory();
  if (!status) status = weir_master_step_create(&params, &partial->step);
  if (status) {
    atomic_init(&partial->ref, 1);
    partial_unref(partial);
    return status;
  }
  partial->step_id = weir_master_step_id(partial->step);
  partial->rendezvous = weir_rendezvous_retain(weir_master_step_rendezvous(partial->step));
  *out_partial = partial;
  return NULL;
}

static bool has_ended(partial_t* partial) {
  weir_mutex_lock(&partial->mu);
  bool result = partial->step == NULL;
  weir_mutex_unlock(&partial->mu);
  return result;
}

// Forgets the steps that have ended and that nobody asked for any more, when there are many.
static void make_room(weir_master_session_t* session) {
  partial_t* ended;
  do {
    weir_map_entry_t* entry;
    ended = NULL;
    weir_mutex_lock(&session->mu);
    bool is_full = session->partials.count >= MAX_PARTIALS;
    for (size_t i = 0; is_full && !ended && (entry = weir_map_next(&session->partials, &i));)
      if (has_ended(entry->value)) ended = weir_map_remove(&session->partials, entry->key);
    weir_mutex_unlock(&session->mu);
    partial_unref(ended);
  } while (ended);
}

static weir_status_t* keep(weir_master_session_t* session, partial_t* partial, char* handle,
                           size_t size) {
  weir_status_t* status;
  weir_mutex_lock(&session->mu);
  snprintf(handle, size, "partial_run_%lld", (long long)session->next_partial++);
  if (session->is_closed) {  // and has dropped its partial runs: nobody would drop this one
    status =
        WEIR_STATUS(CANCELLED, "Step was cancelled by an explicit call to `Session::Close()`.");
  } else if (session->partials.count >= MAX_PARTIALS) {
    status = WEIR_STATUS(RESOURCE_EXHAUSTED,
                         "The session has %d partial runs already: finish some of them first",
                         MAX_PARTIALS);
  } else {
    status = weir_map_put(&session->partials, weir_view_of(handle), partial);
  }
  weir_mutex_unlock(&session->mu);
  return status;
}

static void setup(void* arg) {
  master_call_t* call = arg;
  weir_master_session_t* session = call->session;
  partial_t* partial = NULL;
  char handle[64] = "";
  weir_status_t* status = weir_master_session_prepare(session, &call->signature, &call->run);
  make_room(session);
  if (!status) status = partial_create(call, &partial);
  if (!status) {
    status = keep(session, partial, handle, sizeof(handle));
    weir_master_step_t* step = partial->step;
    if (status) weir_master_step_cancel(step);
    if (status) partial_unref(partial);
    weir_master_step_start(step);
  }
  weir_message_builder_t builder = {.message = NULL};
  if (!status)
    weir_wire_put_string(&builder.head, PARTIAL_RUN_SETUP_RESPONSE_PARTIAL_RUN_HANDLE, handle);
  weir_master_call_finish(call, weir_status_mark_node(status), &builder);
}

static void handle_setup(weir_task_t* task, weir_rpc_call_t* rpc, bool is_snapshot) {
  master_call_t* call = weir_master_call_create(task->master, rpc);
  if (!call) return;
  weir_status_t* status = weir_parse_partial_setup(call);
  call->signature.is_snapshot = is_snapshot;
  if (!status) status = weir_master_find(call->master, call->session_handle, &call->session);
  if (!status)
    status =
        weir_request_ids_add(&call->master->task->request_ids, call->request_id, "PartialRunSetup");
  if (status) weir_master_call_finish(call, status, NULL);
  else weir_task_wait(call->master->task, setup, call);
}

void weir_handle_partial_setup(void* self, weir_rpc_call_t* rpc) { handle_setup(self, rpc, false); }

void weir_handle_snapshot_setup(void* self, weir_rpc_call_t* rpc) { handle_setup(self, rpc, true); }

// ---- continuing ----

// The place of |name| among the declared |edges|, marked as used.
static weir_status_t* claim(partial_t* partial, weir_view_t name, const weir_edge_t* edges,
                            bool* is_used, int count, const char* what, int* out_index) {
  weir_edge_t edge;
  weir_graph_t* graph = partial->session->graph;
  weir_mutex_lock(&graph->mu);
  weir_status_t* status = weir_graph_find_edge(graph, name, &edge);
  weir_mutex_unlock(&graph->mu);
  if (status) return status;
  weir_mutex_lock(&partial->mu);
  int at = 0;
  while (at < count && !weir_edge_equal(edges[at], edge)) ++at;
  bool was_used = at < count && is_used[at];
  if (at < count && !was_used) {
    is_used[at] = true;
    --partial->left;
  }
  weir_mutex_unlock(&partial->mu);
  *out_index = at;
  if (at == count)
    return WEIR_STATUS(INVALID_ARGUMENT, "The %s %.*s was not specified in partial_run_setup.",
                       what, WEIR_VIEW_ARG(name));
  if (was_used)
    return WEIR_STATUS(INVALID_ARGUMENT, "The %s %.*s has already been %s.", what,
                       WEIR_VIEW_ARG(name), what[2] == 'e' && what[1] == 'e' ? "fed" : "fetched");
  return NULL;
}

// Whether what the call fetches can be had from what was fed before and what it feeds itself. Names
// that are wrong are left to claim.
static weir_status_t* check_fetches(partial_t* partial, master_call_t* call) {
  const weir_master_signature_t* signature = &call->signature;
  const weir_master_run_t* run = partial->run;
  weir_graph_t* graph = partial->session->graph;
  size_t feed_count = (size_t)run->feed_count, fetch_count = (size_t)signature->fetch_count;
  bool* is_fed = weir_arena_array(&call->arena, feed_count + 1, sizeof(*is_fed));
  weir_edge_t* fetches = weir_arena_array(&call->arena, fetch_count + 1, sizeof(*fetches));
  if (!is_fed || !fetches) return weir_out_of_memory();
  weir_status_t* unknown = NULL;
  weir_mutex_lock(&partial->mu);
  if (feed_count) memcpy(is_fed, partial->is_fed, feed_count * sizeof(*is_fed));
  weir_mutex_unlock(&partial->mu);
  weir_mutex_lock(&graph->mu);
  for (int i = 0; i < signature->feed_count && !unknown; ++i) {
    weir_edge_t edge;
    unknown = weir_graph_find_edge(graph, signature->feeds[i], &edge);
    for (int k = 0; k < run->feed_count && !unknown; ++k)
      is_fed[k] |= weir_edge_equal(run->feeds[k], edge);
  }
  for (int i = 0; i < signature->fetch_count && !unknown; ++i)
    unknown = weir_graph_find_edge(graph, signature->fetches[i], &fetches[i]);
  weir_status_t* status = NULL;
  if (!unknown)
    status = weir_partial_run_check(
        graph, (weir_edges_t){.items = fetches, .count = signature->fetch_count},
        (weir_edges_t){.items = run->feeds, .count = run->feed_count}, is_fed);
  weir_mutex_unlock(&graph->mu);
  weir_status_destroy(unknown);
  return status;
}

static weir_status_t* send_feeds(partial_t* partial, const master_call_t* call) {
  weir_rendezvous_t* rendezvous = partial->rendezvous;
  for (int i = 0; i < call->signature.feed_count; ++i) {
    int index = 0;
    char key[WEIR_PARTIAL_KEY_SIZE];
    WEIR_TRY(claim(partial, call->signature.feeds[i], partial->run->feeds, partial->is_fed,
                   partial->run->feed_count, "feed", &index));
    WEIR_TRY(weir_signature_check_feed(partial->run->feeds[index], call->tensors[i]));
    WEIR_TRY(rendezvous->vtable->send(rendezvous, weir_partial_run_key("feed", index, key),
                                      call->tensors[i], false));
  }
  return NULL;
}

static weir_status_t* take_fetch(partial_t* partial, int index, weir_cancel_t* cancel,
                                 weir_tensor_t** out_tensor) {
  char key[WEIR_PARTIAL_KEY_SIZE];
  return weir_rendezvous_wait(partial->rendezvous, weir_partial_run_key("fetch", index, key),
                              cancel, out_tensor);
}

static weir_status_t* take_fetches(partial_t* partial, const master_call_t* call,
                                   weir_cancel_t* cancel, weir_message_builder_t* builder) {
  for (int i = 0; i < call->signature.fetch_count; ++i) {
    int index = 0;
    weir_tensor_t* tensor = NULL;
    weir_view_t name = call->signature.fetches[i];
    WEIR_TRY(claim(partial, name, partial->run->fetches, partial->is_fetched,
                   partial->run->fetch_count, "fetch", &index));
    WEIR_TRY(take_fetch(partial, index, cancel, &tensor));
    weir_message_put_named_tensor(builder, RUN_STEP_RESPONSE_TENSOR, name, tensor);
    weir_tensor_release(tensor);
  }
  return NULL;
}

static bool is_used_up(partial_t* partial) {
  weir_mutex_lock(&partial->mu);
  bool result = partial->left == 0;
  weir_mutex_unlock(&partial->mu);
  return result;
}

// Everything was fed and fetched: waits for what the step still does, and forgets it.
static weir_status_t* wait_for_end(partial_t* partial, weir_view_t handle) {
  weir_master_session_t* session = partial->session;
  weir_mutex_lock(&partial->mu);
  while (partial->step) weir_cond_wait(&partial->ended, &partial->mu);
  weir_status_t* status = weir_status_copy(partial->status);
  weir_mutex_unlock(&partial->mu);
  weir_mutex_lock(&session->mu);
  bool is_removed = weir_map_remove(&session->partials, handle) == partial;
  weir_mutex_unlock(&session->mu);
  if (is_removed) partial_unref(partial);
  return status;
}

static void cancel_wait(void* arg) { weir_cancel_start(arg); }

void weir_master_continue_partial(master_call_t* call) {
  weir_master_session_t* session = call->session;
  weir_message_builder_t builder = {.message = NULL};
  weir_cancel_t* cancel = NULL;
  weir_mutex_lock(&session->mu);
  partial_t* partial = weir_map_find(&session->partials, call->partial_handle);
  if (partial) weir_ref_inc(&partial->ref, 1);
  weir_mutex_unlock(&session->mu);
  weir_status_t* status = NULL;
  if (!partial)
    status = WEIR_STATUS(INVALID_ARGUMENT, "Must run 'setup' before performing partial runs!");
  if (!status) status = weir_cancel_create(session->cancel, &cancel);
  if (cancel) weir_rpc_call_on_cancel(call->call, cancel_wait, cancel);
  if (!status) status = check_fetches(partial, call);
  if (!status) status = send_feeds(partial, call);
  if (!status) status = take_fetches(partial, call, cancel, &builder);
  if (!status && is_used_up(partial)) status = wait_for_end(partial, call->partial_handle);
  weir_rpc_call_on_cancel(call->call, NULL, NULL);
  weir_cancel_destroy(cancel);
  partial_unref(partial);
  if (!status) {
    weir_master_call_finish(call, NULL, &builder);
    return;
  }
  weir_message_abandon(&builder);
  weir_master_call_fail_run(call, weir_status_mark_node(status));
}

void weir_master_drop_partials(weir_master_session_t* session) {
  for (;;) {
    size_t i = 0;
    weir_mutex_lock(&session->mu);
    weir_map_entry_t* entry = weir_map_next(&session->partials, &i);
    partial_t* partial = entry ? weir_map_remove(&session->partials, entry->key) : NULL;
    weir_mutex_unlock(&session->mu);
    if (!partial) return;
    partial_unref(partial);  // its step has been cancelled with the session
  }
}

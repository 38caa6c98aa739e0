// session.c — Sessions: creation, running steps, cancellation, callables.
#include "session/session.h"

#include <stdio.h>

#include "exec/step_stats.h"
#include "ops/builtin_ops.h"
#include "weir/argument.h"

#define LOCAL_TASK "/job:localhost/replica:0/task:0"
#define DEFAULT_CONTAINER "localhost"
enum { MAX_PLANS = 1000 };  // signatures kept ready; of more, those used last

// The state that the graph's sessions share, made by the first of them.
static weir_status_t* join_state(weir_session_t* session, weir_resources_t** out_resources) {
  weir_graph_t* graph = session->graph;
  weir_status_t* status = NULL;
  weir_mutex_lock(&graph->mu);
  if (!graph->resources) status = weir_resources_create(DEFAULT_CONTAINER, &graph->resources);
  if (!status) ++graph->resource_users;
  *out_resources = graph->resources;
  weir_mutex_unlock(&graph->mu);
  session->shares_state = !status;
  return status;
}

// The last of them ends it.
static void leave_state(weir_session_t* session) {
  if (!session->shares_state) return;
  weir_graph_t* graph = session->graph;
  weir_resources_t* ended = NULL;
  weir_mutex_lock(&graph->mu);
  if (--graph->resource_users == 0) {
    ended = graph->resources;
    graph->resources = NULL;
  }
  weir_mutex_unlock(&graph->mu);
  weir_resources_destroy(ended);
}

static weir_status_t* generation_create(weir_session_generation_t** out_generation) {
  weir_session_generation_t* generation = weir_calloc(1, sizeof(*generation));
  if (!generation) return weir_out_of_memory();
  weir_status_t* status = weir_cancel_create(NULL, &generation->cancel);
  if (status) weir_free(generation);
  else *out_generation = generation;
  return status;
}

static void generation_destroy(weir_session_generation_t* generation) {
  if (!generation) return;
  weir_cancel_destroy(generation->cancel);
  weir_free(generation);
}

static weir_status_t* init(weir_session_t* session, const weir_session_options_t* options) {
  weir_runtime_options_t wanted = {.task = LOCAL_TASK,
                                   .container = DEFAULT_CONTAINER,
                                   .threads = options->threads,
                                   .devices = options->devices};
  weir_program_options_t program = {.graph = session->graph,
                                    .disabled_passes = options->disabled_passes,
                                    .mixed_precision = options->mixed_precision,
                                    .place = options->place,
                                    .rates = options->rates,
                                    .allow_soft_placement = options->allow_soft_placement};
  WEIR_TRY(generation_create(&session->generation));
  if (!options->isolate_state) WEIR_TRY(join_state(session, &wanted.resources));
  WEIR_TRY(weir_runtime_create(&wanted, &program.runtime));
  weir_status_t* status = weir_program_create(&program, &session->program);
  weir_runtime_release(program.runtime);
  return status;
}

weir_status_t* weir_session_create_local(weir_graph_t* graph, const weir_session_options_t* options,
                                         weir_session_t** out_session) {
  weir_session_options_t defaults = {0};
  weir_session_t* session = weir_calloc(1, sizeof(*session));
  if (!session) return weir_out_of_memory();
  weir_live_add(&session->live, session);
  session->graph = weir_graph_ref(graph);
  weir_lru_init(&session->plans, MAX_PLANS);
  weir_mutex_init(&session->mu);
  weir_cond_init(&session->idle);
  weir_status_t* status = init(session, options ? options : &defaults);
  if (status) {
    weir_session_destroy(session);
    return status;
  }
  *out_session = session;
  return NULL;
}

weir_status_t* weir_session_create_remote(weir_graph_t* graph, weir_remote_session_t* take_remote,
                                          weir_session_t** out_session) {
  weir_session_t* session = weir_calloc(1, sizeof(*session));
  if (!session) {
    take_remote->vtable->destroy(take_remote);
    return weir_out_of_memory();
  }
  weir_live_add(&session->live, session);
  weir_mutex_init(&session->mu);
  session->graph = weir_graph_ref(graph);
  session->remote = take_remote;
  *out_session = session;
  return NULL;
}

// Waits until |running_count|, the session's or a generation's, is zero.
static void wait_until_idle(weir_session_t* session, const int* running_count) {
  weir_mutex_lock(&session->mu);
  while (*running_count > 0) weir_cond_wait(&session->idle, &session->mu);
  weir_mutex_unlock(&session->mu);
}

// Those that outlive their session say so when they are run.
static void forget_callables(weir_session_t* session);

static void destroy_remote(weir_session_t* session) {
  session->remote->vtable->destroy(session->remote);
  weir_mutex_destroy(&session->mu);
  weir_graph_unref(session->graph);
  weir_free(session);
}

void weir_session_destroy(weir_session_t* session) {
  if (!session) return;
  if (!weir_live_remove(session)) weir_abort_ended(__func__, "session");
  forget_callables(session);
  if (session->remote) {
    destroy_remote(session);
    return;
  }
  if (session->generation) weir_cancel_start(session->generation->cancel);
  wait_until_idle(session, &session->running_count);
  weir_map_entry_t* entry;
  for (size_t i = 0; (entry = weir_map_next(&session->plans.items, &i));)
    weir_plan_release(entry->value);
  weir_lru_free(&session->plans);
  weir_program_destroy(session->program);
  leave_state(session);
  generation_destroy(session->generation);
  weir_cond_destroy(&session->idle);
  weir_mutex_destroy(&session->mu);
  weir_graph_unref(session->graph);
  weir_free(session);
}

void weir_session_cancel(weir_session_t* session) {
  WEIR_ASSERT_ARG(session);
  if (session->remote) {
    session->remote->vtable->cancel(session->remote);
    return;
  }
  weir_session_generation_t* fresh = NULL;
  weir_status_destroy(generation_create(
      &fresh));  // without it, later steps are cancelled too: better than none at all
  weir_mutex_lock(&session->mu);
  weir_session_generation_t* old = session->generation;
  if (fresh) session->generation = fresh;
  weir_mutex_unlock(&session->mu);
  weir_cancel_start(old->cancel);
  if (!fresh) return;
  wait_until_idle(session, &old->running_count);  // steps hold |old| until they are through
  generation_destroy(old);
}

void weir_session_reset(weir_session_t* session, const char* const* containers, int count) {
  if (count > 0) WEIR_ASSERT_ARG(containers);
  WEIR_ASSERT_ARG(session);
  if (session->remote) {
    session->remote->vtable->reset(session->remote, containers, count);
    return;
  }
  for (int i = 0; i < count; ++i)
    weir_resources_clear(session->program->resources, weir_view_of(containers[i]));
  if (count == 0) weir_resources_clear_all(session->program->resources);
}

// ---- running ----

// A call's own cancellation and the session's: when either fires, the step ends.
static void forward_cancel(void* arg) { weir_cancel_start(arg); }

weir_running_t weir_session_enter(weir_session_t* session) {
  weir_mutex_lock(&session->mu);
  weir_running_t running = {.generation = session->generation, .step_id = ++session->next_step_id};
  ++session->running_count;
  ++running.generation->running_count;
  weir_mutex_unlock(&session->mu);
  return running;
}

void weir_session_leave(weir_session_t* session, const weir_running_t* running) {
  weir_mutex_lock(&session->mu);
  --session->running_count;
  if (--running->generation->running_count == 0) weir_cond_broadcast(&session->idle);
  weir_mutex_unlock(&session->mu);
}

weir_status_t* weir_session_execute_as(weir_session_t* session, const weir_running_t* running,
                                       const weir_session_run_params_t* params) {
  weir_cancel_t* parent = running->generation->cancel;
  weir_cancel_t* step_cancel = parent;
  weir_cancel_token_t token = 0;
  weir_status_t* status = NULL;
  if (params->cancel) {
    status = weir_cancel_create(parent, &step_cancel);
    if (!status) token = weir_cancel_register(params->cancel, forward_cancel, step_cancel);
    if (!status && weir_cancel_is_cancelled(params->cancel)) weir_cancel_start(step_cancel);
  }
  if (!status) {
    weir_run_params_t run = weir_program_step(session->program, params->plan);
    run.args = params->args;
    run.rets = params->rets;
    run.cancel = step_cancel;
    run.rendezvous = params->rendezvous;
    run.step_id = running->step_id;
    run.deadline_ns = params->timeout_ms > 0 ? weir_clock_ns() + params->timeout_ms * 1000000 : 0;
    run.trace = params->trace;
    status = weir_run(&run);
  }
  if (token) weir_cancel_deregister(params->cancel, token);
  if (step_cancel != parent) weir_cancel_destroy(step_cancel);
  return status;
}

weir_status_t* weir_session_execute(weir_session_t* session,
                                    const weir_session_run_params_t* params) {
  weir_running_t running = weir_session_enter(session);
  weir_status_t* status = weir_session_execute_as(session, &running, params);
  weir_session_leave(session, &running);
  return status;
}

struct weir_cancellation_t {
  weir_cancel_t* cancel;
};

weir_status_t* weir_cancellation_create(weir_cancellation_t** out_cancellation) {
  WEIR_REQUIRE_ARG(out_cancellation);
  weir_cancellation_t* cancellation = weir_calloc(1, sizeof(*cancellation));
  if (!cancellation) return weir_out_of_memory();
  weir_status_t* status = weir_cancel_create(NULL, &cancellation->cancel);
  if (status) {
    weir_free(cancellation);
    return status;
  }
  *out_cancellation = cancellation;
  return NULL;
}

weir_cancel_t* weir_cancellation_get(weir_cancellation_t* cancellation) {
  return cancellation->cancel;
}

void weir_cancellation_cancel(weir_cancellation_t* cancellation) {
  WEIR_ASSERT_ARG(cancellation);
  weir_cancel_start(cancellation->cancel);
}

void weir_cancellation_destroy(weir_cancellation_t* cancellation) {
  if (!cancellation) return;
  weir_cancel_destroy(cancellation->cancel);
  weir_free(cancellation);
}

static weir_status_t* run_plan(weir_session_t* session, weir_plan_t* plan,
                               const weir_step_spec_t* spec, const weir_run_options_t* options,
                               weir_trace_t* trace, weir_tensor_t** results) {
  enum { INLINE_FEEDS = 16 };
  weir_tensor_t* few[INLINE_FEEDS];
  for (int i = 0; i < spec->feed_count; ++i) {
    WEIR_TRY(weir_signature_check_feed(spec->feeds[i].edge, spec->feeds[i].tensor));
  }
  weir_tensor_t** args = few;
  if (spec->feed_count > INLINE_FEEDS)
    args = weir_alloc_array((size_t)spec->feed_count, sizeof(*args));
  if (!args) return weir_out_of_memory();
  for (int i = 0; i < spec->feed_count; ++i) args[i] = spec->feeds[i].tensor;
  weir_session_run_params_t params = {
      .plan = plan,
      .args = args,
      .rets = results,
      .cancel = options && options->cancellation ? options->cancellation->cancel : NULL,
      .timeout_ms = options ? options->timeout_ms : 0,
      .trace = trace,
  };
  weir_status_t* status = weir_session_execute(session, &params);
  if (args != few) weir_free(args);
  return status;
}

// A master finds nodes by their names, and so would run what another graph calls the same.
static weir_status_t* run_remote(weir_session_t* session, const weir_step_spec_t* spec,
                                 const weir_run_options_t* options, weir_tensor_t** results,
                                 weir_strbuf_t* out_metadata) {
  WEIR_TRY(weir_signature_check(session->graph, spec));
  return session->remote->vtable->run(session->remote, spec, options, results, out_metadata);
}

static weir_status_t* run_spec(weir_session_t* session, const weir_step_spec_t* spec,
                               const weir_run_options_t* options, weir_trace_t* trace,
                               weir_tensor_t** results) {
  weir_plan_t* plan = NULL;
  if (session->remote) return run_remote(session, spec, options, results, NULL);
  WEIR_TRY(weir_session_plan(session, spec, &plan));
  weir_status_t* status = run_plan(session, plan, spec, options, trace, results);
  weir_plan_release(plan);
  return status;
}

weir_status_t* weir_session_run(weir_session_t* session, const weir_step_spec_t* spec,
                                weir_tensor_t** results) {
  WEIR_REQUIRE_ARG(session);
  WEIR_REQUIRE_ARG(spec);
  if (spec->fetch_count > 0) WEIR_REQUIRE_ARG(results);
  return run_spec(session, spec, NULL, NULL, results);
}

weir_status_t* weir_session_run_with(weir_session_t* session, const weir_step_spec_t* spec,
                                     const weir_run_options_t* options, weir_tensor_t** results,
                                     char** out_metadata, size_t* out_metadata_size) {
  WEIR_REQUIRE_ARG(session);
  WEIR_REQUIRE_ARG(spec);
  if (spec->fetch_count > 0) WEIR_REQUIRE_ARG(results);
  if (!options || !options->trace) return run_spec(session, spec, options, NULL, results);
  weir_trace_t trace;
  weir_trace_init(&trace);
  weir_strbuf_t metadata = {0};
  weir_status_t* status = NULL;
  if (session->remote) status = run_remote(session, spec, options, results, &metadata);
  else status = run_spec(session, spec, options, &trace, results);
  if (!status && out_metadata && !session->remote) {
    const weir_runtime_t* runtime = session->program->runtime;
    weir_trace_devices_t devices = {.items = runtime->devices, .count = runtime->device_count};
    status = weir_trace_write_metadata(&trace, &devices, &metadata);
  }
  if (!status && out_metadata) {
    *out_metadata = metadata.data;
    *out_metadata_size = metadata.size;
  } else {
    weir_strbuf_free(&metadata);
  }
  weir_trace_free(&trace);
  return status;
}

static weir_status_t* trace_remote(weir_session_t* session, const weir_step_spec_t* spec,
                                   weir_tensor_t** results, weir_strbuf_t* out_json) {
  weir_strbuf_t metadata = {0};
  weir_run_options_t options = {.trace = true};
  weir_status_t* status = run_remote(session, spec, &options, results, &metadata);
  if (!status) status = weir_step_stats_write_chrome(weir_strbuf_view(&metadata), out_json);
  weir_strbuf_free(&metadata);
  return status;
}

static weir_status_t* trace_here(weir_session_t* session, const weir_step_spec_t* spec,
                                 weir_tensor_t** results, weir_strbuf_t* out_json) {
  weir_trace_t trace;
  weir_trace_init(&trace);
  weir_status_t* status = run_spec(session, spec, NULL, &trace, results);
  if (!status) status = weir_trace_write_chrome(&trace, out_json);
  weir_trace_free(&trace);
  return status;
}

weir_status_t* weir_session_run_traced(weir_session_t* session, const weir_step_spec_t* spec,
                                       weir_tensor_t** results, char** out_json) {
  WEIR_REQUIRE_ARG(session);
  WEIR_REQUIRE_ARG(spec);
  if (spec->fetch_count > 0) WEIR_REQUIRE_ARG(results);
  WEIR_REQUIRE_ARG(out_json);
  weir_strbuf_t json = {0};
  weir_status_t* status = session->remote ? trace_remote(session, spec, results, &json)
                                          : trace_here(session, spec, results, &json);
  if (status) weir_strbuf_free(&json);
  else *out_json = json.data;
  return status;
}

weir_status_t* weir_session_run_target(weir_session_t* session, weir_node_t* target) {
  WEIR_REQUIRE_ARG(session);
  WEIR_REQUIRE_ARG(target);
  weir_step_spec_t spec = {.targets = &target, .target_count = 1};
  weir_tensor_t* none = NULL;
  return weir_session_run(session, &spec, &none);
}

weir_status_t* weir_session_fetch_float(weir_session_t* session, weir_edge_t edge,
                                        float* out_value) {
  WEIR_REQUIRE_ARG(session);
  WEIR_REQUIRE_ARG(out_value);
  weir_step_spec_t spec = {.fetches = &edge, .fetch_count = 1};
  weir_tensor_t* result = NULL;
  WEIR_TRY(weir_session_run(session, &spec, &result));
  bool is_scalar = weir_tensor_type(result) == WEIR_DTYPE_FLOAT && result->count == 1;
  if (is_scalar) *out_value = *WEIR_TENSOR_DATA(result, float);
  weir_tensor_release(result);
  if (is_scalar) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "'%s:%d' is not a single float", edge.node->def.name,
                     edge.index);
}

// ---- callables ----

struct weir_callable_t {
  weir_session_t* session;       // NULL: it is destroyed
  weir_callable_t *next, *prev;  // of the session; guarded by its mutex
  weir_plan_t* plan;             // retained; NULL: it is remote, and runs |spec|
  weir_edge_t* feeds;
  int feed_count;
  weir_step_spec_t spec;  // without feeds; arrays are the callable's own
};

static void forget_callables(weir_session_t* session) {
  for (weir_callable_t* c = session->callables; c; c = c->next) c->session = NULL;
}

static void link_callable(weir_session_t* session, weir_callable_t* callable) {
  weir_mutex_lock(&session->mu);
  callable->session = session;
  callable->next = session->callables;
  if (callable->next) callable->next->prev = callable;
  session->callables = callable;
  weir_mutex_unlock(&session->mu);
}

static void unlink_callable(weir_callable_t* callable) {
  weir_session_t* session = callable->session;
  if (!session) return;
  weir_mutex_lock(&session->mu);
  if (callable->next) callable->next->prev = callable->prev;
  if (callable->prev) callable->prev->next = callable->next;
  else session->callables = callable->next;
  weir_mutex_unlock(&session->mu);
}

static weir_status_t* copy_spec(weir_callable_t* callable, const weir_step_spec_t* spec) {
  weir_edge_t* fetches = weir_alloc_array((size_t)spec->fetch_count, sizeof(*fetches));
  weir_node_t** targets = weir_alloc_array((size_t)spec->target_count, sizeof(*targets));
  callable->feeds = weir_alloc_array((size_t)spec->feed_count, sizeof(*callable->feeds));
  callable->spec.fetches = fetches;
  callable->spec.targets = targets;
  if (!fetches || !targets || !callable->feeds) return weir_out_of_memory();
  for (int i = 0; i < spec->feed_count; ++i) callable->feeds[i] = spec->feeds[i].edge;
  for (int i = 0; i < spec->fetch_count; ++i) fetches[i] = spec->fetches[i];
  for (int i = 0; i < spec->target_count; ++i) targets[i] = spec->targets[i];
  callable->feed_count = spec->feed_count;
  callable->spec.fetch_count = spec->fetch_count;
  callable->spec.target_count = spec->target_count;
  return NULL;
}

weir_status_t* weir_callable_create(weir_session_t* session, const weir_step_spec_t* spec,
                                    weir_callable_t** out_callable) {
  WEIR_REQUIRE_ARG(session);
  WEIR_REQUIRE_ARG(spec);
  WEIR_REQUIRE_ARG(out_callable);
  weir_plan_t* plan = NULL;
  if (session->remote) WEIR_TRY(weir_signature_check(session->graph, spec));
  else WEIR_TRY(weir_session_plan(session, spec, &plan));
  weir_callable_t* callable = weir_calloc(1, sizeof(*callable));
  if (!callable) {
    weir_plan_release(plan);
    return weir_out_of_memory();
  }
  link_callable(session, callable);
  callable->plan = plan;
  weir_status_t* status = copy_spec(callable, spec);
  if (status) weir_callable_destroy(callable);
  else *out_callable = callable;
  return status;
}

void weir_callable_destroy(weir_callable_t* callable) {
  if (!callable) return;
  unlink_callable(callable);
  weir_plan_release(callable->plan);
  weir_free(callable->feeds);
  weir_free((void*)(uintptr_t)callable->spec.fetches);
  weir_free((void*)(uintptr_t)callable->spec.targets);
  weir_free(callable);
}

static weir_status_t* run_remotely(weir_callable_t* callable, weir_tensor_t* const* feeds,
                                   weir_tensor_t** results) {
  weir_step_spec_t spec = callable->spec;
  weir_feed_t* given = weir_alloc_array((size_t)callable->feed_count, sizeof(*given));
  if (!given) return weir_out_of_memory();
  for (int i = 0; i < callable->feed_count; ++i)
    given[i] = (weir_feed_t){.edge = callable->feeds[i], .tensor = feeds[i]};
  spec.feeds = given;
  spec.feed_count = callable->feed_count;
  weir_status_t* status = run_spec(callable->session, &spec, NULL, NULL, results);
  weir_free(given);
  return status;
}

weir_status_t* weir_callable_run(weir_callable_t* callable, weir_tensor_t* const* feeds,
                                 weir_tensor_t** results) {
  WEIR_REQUIRE_ARG(callable);
  if (callable->spec.fetch_count > 0) WEIR_REQUIRE_ARG(results);
  if (callable->feed_count > 0) WEIR_REQUIRE_ARG(feeds);
  if (!callable->session)
    return WEIR_STATUS(FAILED_PRECONDITION, "weir_callable_run: its session is destroyed");
  for (int i = 0; i < callable->feed_count; ++i)
    WEIR_TRY(weir_signature_check_feed(callable->feeds[i], feeds[i]));
  if (!callable->plan) return run_remotely(callable, feeds, results);
  weir_session_run_params_t params = {.plan = callable->plan, .args = feeds, .rets = results};
  return weir_session_execute(callable->session, &params);
}

size_t weir_callable_node_count(const weir_callable_t* callable) {
  WEIR_ASSERT_ARG(callable);
  return callable->plan ? (size_t)callable->plan->node_count : 0;
}

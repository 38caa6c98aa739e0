// master_session.c — A client's session on the master: signatures become plans here and registered
// graphs elsewhere.
//
// A client names feeds, fetches and targets with every step. The first time it names a set of them,
// the master prunes the graph to it, places it on the devices of all tasks, optimises it, places
// what that added, and cuts it into parts: one becomes a plan of this process, each of the others
// goes to its task by RegisterGraph, which gives a handle. All that is a run, kept by its
// signature, so that later steps are one RunGraph a task (master_step.c).
//
// Making a run takes long and calls other tasks: no lock is held meanwhile, but for the one of
// placement while a graph is placed. Two steps with the same
// new signature may both make one; the table keeps the first, and the other takes its parts back
// from the tasks. The table is bounded, and what falls out of it lives on while steps, callables
// and partial runs hold it; the last to let go of it deregisters the parts. After the session is
// closed nobody does, for the tasks have dropped the session and all its graphs with it.
//
// The graph only grows. A run was pruned from the graph of its time; nodes that came later cannot
// be part of it, so runs stay valid when a client extends the graph. The version that a client
// sends along tells whether another client extended it meanwhile.
//
// Failure: a task that restarts knows neither session nor handle and answers ABORTED, which the
// client gets; TensorFlow's clients make a new session then. The master does not mend the old one:
// the state of that task is lost, and only the client knows how to restore it.
#include "cluster/master/master_session.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cluster/master/master_internal.h"
#include "cluster/task/fields.h"
#include "cluster/task/messages.h"
#include "graph/flatten.h"
#include "pass/fence.h"
#include "pass/partition.h"
#include "runtime/placing.h"
#include "wire/wire.h"

enum {
  DELETE_TIMEOUT_S = 10,
  MAX_RUNS = 1000,  // signatures kept ready; of more, those used last
};

// ---- life ----

static weir_status_t* create_on_peer(weir_master_session_t* session, const weir_peer_t* peer,
                                     const weir_master_config_t* config, weir_cancel_t* cancel) {
  weir_device_name_t name;
  WEIR_TRY(weir_device_name_parse(weir_view_of(peer->name), &name));
  weir_strbuf_t request = {0};
  const weir_alias_t* alias = session->alias;
  weir_wire_put_string(&request, CREATE_WORKER_SESSION_REQUEST_SESSION_HANDLE, session->handle);
  size_t server = weir_wire_begin(&request, CREATE_WORKER_SESSION_REQUEST_SERVER_DEF);
  if (alias)
    weir_wire_put_bytes(&request, SERVER_DEF_CLUSTER, config->cluster_def.data,
                        config->cluster_def.size);
  weir_wire_put_string(&request, SERVER_DEF_JOB_NAME, name.job);
  weir_wire_put_int(&request, SERVER_DEF_TASK_INDEX, name.task);
  weir_wire_put_string(&request, SERVER_DEF_PROTOCOL, "grpc");
  weir_wire_end(&request, server);
  if (config->is_isolated)
    weir_wire_put_bool(&request, CREATE_WORKER_SESSION_REQUEST_ISOLATE_SESSION_STATE, true);
  weir_wire_put_string(&request, CREATE_WORKER_SESSION_REQUEST_MASTER_TASK,
                       alias ? alias->task : session->task->name);
  weir_wire_put_int(&request, CREATE_WORKER_SESSION_REQUEST_MASTER_INCARNATION,
                    (int64_t)session->task->runtime->devices[0]->incarnation);
  weir_rpc_buffer_t* response = NULL;
  weir_status_t* status =
      weir_peer_call(peer->channel, "CreateWorkerSession", &request, cancel, 0, &response);
  weir_rpc_buffer_release(response);
  return weir_status_prefix(status, "%s: ", peer->name);
}

static weir_status_t* init(weir_master_session_t* session, const weir_master_config_t* config,
                           weir_view_t graph_def, weir_cancel_t* cancel) {
  weir_task_t* task = session->task;
  snprintf(session->handle, sizeof(session->handle), "%016llx%016llx",
           (unsigned long long)weir_task_random(), (unsigned long long)weir_task_random());
  session->allow_soft_placement = config->allow_soft_placement;
  session->timeout_ms = config->timeout_ms;
  WEIR_TRY(weir_cancel_create(NULL, &session->cancel));
  WEIR_TRY(weir_graph_create(&session->graph));
  weir_import_params_t import = {.prefix = NULL};
  WEIR_TRY(weir_task_check_graph(task, graph_def.size));
  WEIR_TRY(weir_graph_import(session->graph, graph_def, &import));
  session->graph_size = graph_def.size;
  if (config->cluster_def.size)
    WEIR_TRY(weir_alias_find(config->target, task->job, task->index, config->cluster_def,
                             &session->alias));
  WEIR_TRY(weir_master_find_devices(session, config, cancel));
  if (config->is_isolated) WEIR_TRY(weir_resources_create(task->job, &session->own_resources));
  if (session->own_resources) weir_gate_set(session->own_resources, task->gate);
  bool is_shared = !config->is_isolated && !session->alias;  // its state, by names that others use
  weir_program_options_t program = {.runtime = task->runtime,
                                    .graph = session->graph,
                                    .resources = session->own_resources,
                                    .disabled_passes = config->is_unoptimized ? "all" : NULL,
                                    .place = task->place,
                                    .homes = is_shared ? task->master->homes : NULL,
                                    .mixed_precision = weir_config_mixed_precision(config->message),
                                    .is_placed = true};
  weir_strbuf_append(&session->config, config->message.data, config->message.size);
  WEIR_TRY(weir_program_create(&program, &session->program));
  if (session->program->place.kind == WEIR_PLACE_COST)
    WEIR_TRY(weir_master_find_rates(session, cancel));
  for (int i = 0; i < session->peer_count; ++i)
    WEIR_TRY(create_on_peer(session, &session->peers[i], config, cancel));
  return NULL;
}

weir_status_t* weir_master_session_create(weir_task_t* task, const weir_master_config_t* config,
                                          weir_view_t graph_def, weir_cancel_t* cancel,
                                          weir_master_session_t** out_session) {
  weir_master_session_t* session = weir_calloc(1, sizeof(*session));
  if (!session) return weir_out_of_memory();
  weir_ref_init(&session->ref);
  session->task = task;
  weir_mutex_init(&session->mu);
  weir_lru_init(&session->runs, MAX_RUNS);
  session->callables.owns_keys = session->partials.owns_keys = true;
  weir_status_t* status = init(session, config, graph_def, cancel);
  if (!status && weir_cancel_is_cancelled(cancel))
    status = WEIR_STATUS(CANCELLED, "the client gave up while its session was made");
  if (status && session->cancel) weir_master_session_close(session);  // on peers that have it
  if (status) weir_master_session_release(session);
  else *out_session = session;
  return status;
}

static void run_destroy(weir_master_run_t* run) {
  weir_plan_release(run->local);
  for (int i = 0; i < run->part_count; ++i) weir_free(run->parts[i].handle);
  for (int i = 0; i < run->partition_count; ++i) weir_strbuf_free(&run->partitions[i]);
  weir_free(run->partitions);
  weir_free(run->parts);
  weir_free(run->feeds);
  weir_free(run->fetches);
  weir_free(run);
}

static void run_unref(weir_master_run_t* run) {
  if (weir_ref_dec(&run->ref)) run_destroy(run);
}

void weir_master_session_retain(weir_master_session_t* session) { weir_ref_inc(&session->ref, 1); }

void weir_master_session_release(weir_master_session_t* session) {
  if (!session || !weir_ref_dec(&session->ref)) return;
  weir_map_entry_t* entry;
  for (size_t i = 0; (entry = weir_map_next(&session->runs.items, &i));) run_unref(entry->value);
  weir_lru_free(&session->runs);
  for (size_t i = 0; (entry = weir_map_next(&session->callables, &i));) {
    run_unref(((weir_master_callable_t*)entry->value)->run);
    weir_free(entry->value);
  }
  weir_map_free(&session->callables);
  weir_map_free(&session->partials);
  weir_program_destroy(session->program);
  weir_graph_unref(session->graph);
  weir_resources_destroy(session->own_resources);
  weir_cancel_destroy(session->cancel);
  for (int i = 0; i < session->peer_count; ++i) weir_free(session->peers[i].name);
  for (int i = 0; i < session->device_count; ++i) {
    weir_free((char*)(uintptr_t)session->devices[i].device);
    weir_free((char*)(uintptr_t)session->devices[i].type);
    weir_free(session->descriptions[i]);
  }
  weir_free(session->peers);
  weir_free(session->devices);
  weir_free(session->memory_limits);
  weir_free(session->descriptions);
  weir_strbuf_free(&session->config);
  weir_alias_release(session->alias);
  weir_mutex_destroy(&session->mu);
  weir_free(session);
}

static void ignore_response(void* self, weir_status_t* take_status,
                            weir_rpc_buffer_t* take_message) {
  // A peer that is gone has nothing left to delete.
  if (take_status) WEIR_LOG(INFO, "%s: %s", (const char*)self, weir_status_message(take_status));
  weir_status_destroy(take_status);
  weir_rpc_buffer_release(take_message);
}

// A call whose answer matters to nobody here.
static void tell_peer(const weir_peer_t* peer, const char* path, weir_strbuf_t* take_request) {
  weir_rpc_message_t* message = weir_rpc_message_create();
  weir_rpc_message_append_strbuf(message, take_request);
  weir_rpc_call_options_t options = {.deadline_ns =
                                         weir_clock_ns() + DELETE_TIMEOUT_S * INT64_C(1000000000)};
  weir_rpc_channel_call_async(peer->channel, path, message, &options, ignore_response,
                              (void*)(uintptr_t)path, NULL);
}

void weir_master_session_close(weir_master_session_t* session) {
  weir_mutex_lock(&session->mu);
  bool was_closed = session->is_closed;
  session->is_closed = true;
  weir_mutex_unlock(&session->mu);
  if (was_closed) return;
  weir_cancel_start(session->cancel);
  for (int i = 0; i < session->peer_count; ++i) {
    weir_strbuf_t request = {0};
    weir_wire_put_string(&request, DELETE_WORKER_SESSION_REQUEST_SESSION_HANDLE, session->handle);
    tell_peer(&session->peers[i], "/tensorflow.WorkerService/DeleteWorkerSession", &request);
  }
}

weir_status_t* weir_master_session_extend(weir_master_session_t* session, weir_view_t graph_def,
                                          int64_t version, int64_t* out_version) {
  weir_import_params_t import = {.prefix = NULL};
  weir_status_t* status = NULL;
  weir_mutex_lock(&session->graph->mu);
  weir_mutex_lock(&session->mu);
  if (version != session->version) {
    status = WEIR_STATUS(ABORTED, "Current version is %lld but caller expected %lld.",
                         (long long)session->version, (long long)version);
  }
  weir_mutex_unlock(&session->mu);
  uint64_t size = session->graph_size + graph_def.size;
  if (!status) status = weir_task_check_graph(session->task, size);
  if (!status) status = weir_graph_import(session->graph, graph_def, &import);
  if (!status) {
    session->graph_size = size;
    weir_mutex_lock(&session->mu);
    *out_version = ++session->version;
    weir_mutex_unlock(&session->mu);
  }
  weir_mutex_unlock(&session->graph->mu);
  return status;
}

// ---- signatures ----

// A signature with its names looked up. Arrays are in an arena.
typedef struct resolved_t {
  weir_step_spec_t spec;
  weir_connections_t connections;
  weir_strbuf_t key;
} resolved_t;

static bool is_node(const weir_graph_t* graph, weir_view_t edge_name) {
  const char* colon = memchr(edge_name.data, ':', edge_name.size);
  if (colon) edge_name.size = (size_t)(colon - edge_name.data);
  return weir_graph_find(graph, edge_name) != NULL;
}

// |absent| says what is wrong with a name whose node is not in the graph. One that is there and
// not found is of an op that is not known, which is what to say.
static weir_status_t* find_edge(const weir_graph_t* graph, weir_view_t name, const char* absent,
                                weir_edge_t* out_edge) {
  weir_status_t* status = weir_graph_find_edge(graph, name, out_edge);
  if (weir_status_code(status) != WEIR_NOT_FOUND || is_node(graph, name)) return status;
  weir_status_destroy(status);
  return weir_status_create(WEIR_NOT_FOUND, __FILE__, __LINE__, absent, WEIR_VIEW_ARG(name));
}

static weir_status_t* resolve_connections(const weir_graph_t* graph,
                                          const weir_master_signature_t* signature,
                                          weir_arena_t* arena,
                                          weir_connections_t* out_connections) {
  int count = signature->connection_count;
  weir_connection_t* items = weir_arena_array(arena, (size_t)count, sizeof(*items));
  if (!items) return weir_out_of_memory();
  for (int i = 0; i < count; ++i) {
    const weir_named_connection_t* named = &signature->connections[i];
    weir_status_t* status = weir_graph_find_edge(graph, named->from, &items[i].from);
    if (status) {
      weir_status_destroy(status);
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Requested tensor connection to \"%.*s\" from unknown tensor: \"%.*s\"",
                         WEIR_VIEW_ARG(named->to), WEIR_VIEW_ARG(named->from));
    }
    WEIR_TRY(
        find_edge(graph, named->to, "FeedInputs: unable to find feed output %.*s", &items[i].to));
  }
  *out_connections = (weir_connections_t){.items = items, .count = count};
  return NULL;
}

static void append_connections(weir_connections_t connections, weir_strbuf_t* key) {
  for (int i = 0; i < connections.count; ++i) {
    const weir_edge_t edges[2] = {connections.items[i].from, connections.items[i].to};
    for (int k = 0; k < 2; ++k) {
      weir_strbuf_append(key, &edges[k].node, sizeof(void*));
      weir_strbuf_append(key, &edges[k].index, sizeof(int));
    }
  }
}

static weir_status_t* resolve_names(weir_master_session_t* session,
                                    const weir_master_signature_t* signature, weir_arena_t* arena,
                                    resolved_t* resolved) {
  weir_feed_t* feeds = weir_arena_array(arena, (size_t)signature->feed_count, sizeof(*feeds));
  weir_edge_t* fetches = weir_arena_array(arena, (size_t)signature->fetch_count, sizeof(*fetches));
  weir_node_t** targets =
      weir_arena_array(arena, (size_t)signature->target_count, sizeof(*targets));
  if (!feeds || !fetches || !targets) return weir_out_of_memory();
  const weir_graph_t* graph = session->graph;
  for (int i = 0; i < signature->feed_count; ++i)
    WEIR_TRY(find_edge(graph, signature->feeds[i], "FeedInputs: unable to find feed output %.*s",
                       &feeds[i].edge));
  for (int i = 0; i < signature->fetch_count; ++i)
    WEIR_TRY(
        find_edge(graph, signature->fetches[i], "FetchOutputs node %.*s: not found", &fetches[i]));
  for (int i = 0; i < signature->target_count; ++i) {
    targets[i] = weir_graph_find(graph, signature->targets[i]);
    if (!targets[i])
      return WEIR_STATUS(NOT_FOUND, "PruneForTargets: Some target nodes not found: %.*s",
                         WEIR_VIEW_ARG(signature->targets[i]));
  }
  resolved->spec = (weir_step_spec_t){.feeds = feeds,
                                      .feed_count = signature->feed_count,
                                      .fetches = fetches,
                                      .fetch_count = signature->fetch_count,
                                      .targets = targets,
                                      .target_count = signature->target_count};
  WEIR_TRY(resolve_connections(graph, signature, arena, &resolved->connections));
  weir_strbuf_putc(&resolved->key, signature->is_partial ? 'p' : 's');
  weir_strbuf_putc(&resolved->key, signature->is_snapshot ? 'w' : 'a');
  weir_signature_append(&resolved->spec, &resolved->key);
  append_connections(resolved->connections, &resolved->key);
  return weir_strbuf_finish(&resolved->key);
}

static weir_status_t* resolve(weir_master_session_t* session,
                              const weir_master_signature_t* signature, weir_arena_t* arena,
                              resolved_t* resolved) {
  weir_mutex_lock(&session->graph->mu);
  weir_status_t* status = resolve_names(session, signature, arena, resolved);
  weir_mutex_unlock(&session->graph->mu);
  return status;
}

static weir_master_run_t* find_run_locked(weir_master_session_t* session, weir_view_t key) {
  weir_master_run_t* run = weir_lru_find(&session->runs, key);
  return run ? weir_master_run_retain(run) : NULL;
}

static weir_master_run_t* find_run(weir_master_session_t* session, weir_view_t key) {
  weir_mutex_lock(&session->mu);
  weir_master_run_t* run = find_run_locked(session, key);
  weir_mutex_unlock(&session->mu);
  return run;
}

weir_status_t* weir_master_session_find(weir_master_session_t* session,
                                        const weir_master_signature_t* signature,
                                        weir_master_run_t** out_run) {
  weir_arena_t arena = {0};
  resolved_t resolved = {.spec = {.feeds = NULL}};
  weir_status_t* status = resolve(session, signature, &arena, &resolved);
  *out_run = status ? NULL : find_run(session, weir_strbuf_view(&resolved.key));
  weir_strbuf_free(&resolved.key);
  weir_arena_free(&arena);
  return status;
}

// ---- making a run ----

static weir_status_t* register_part(weir_master_session_t* session, const weir_part_t* part,
                                    weir_master_run_t* run) {
  const weir_peer_t* peer = &session->peers[part->task - 1];
  weir_strbuf_t* def = &run->partitions[run->partition_count++];
  WEIR_TRY(weir_graph_write(part->graph, def));
  weir_strbuf_t request = {0};
  weir_wire_put_string(&request, REGISTER_GRAPH_REQUEST_SESSION_HANDLE, session->handle);
  weir_wire_put_bytes(&request, REGISTER_GRAPH_REQUEST_GRAPH_DEF, def->data, def->size);
  weir_wire_put_bool(&request, REGISTER_GRAPH_REQUEST_CREATE_WORKER_SESSION_CALLED, true);
  weir_wire_put_bytes(&request, REGISTER_GRAPH_REQUEST_CONFIG_PROTO, session->config.data,
                      session->config.size);
  weir_rpc_buffer_t* response = NULL;
  weir_status_t* status =
      weir_peer_call(peer->channel, "RegisterGraph", &request, session->cancel, 0, &response);
  weir_wire_reader_t reader = weir_wire_reader(weir_rpc_buffer_view(response));
  weir_remote_part_t* made = &run->parts[run->part_count];
  while (!status && weir_wire_next(&reader)) {
    if (reader.field != REGISTER_GRAPH_RESPONSE_GRAPH_HANDLE || reader.type != WEIR_WIRE_BYTES ||
        made->handle)
      continue;
    made->handle = weir_strndup(reader.bytes.data, reader.bytes.size);
    made->peer = part->task - 1;
  }
  if (made->handle) ++run->part_count;
  else if (!status) status = WEIR_STATUS(INTERNAL, "RegisterGraph gave no handle");
  weir_rpc_buffer_release(response);
  return weir_status_prefix(status, "%s: ", peer->name);
}

static weir_status_t* make_parts(weir_master_session_t* session, weir_part_t* parts, int count,
                                 int arg_count, int ret_count, weir_master_run_t* run) {
  run->parts = weir_calloc((size_t)count, sizeof(*run->parts));
  run->partitions = weir_calloc((size_t)count, sizeof(*run->partitions));
  if (!run->parts || !run->partitions) return weir_out_of_memory();
  for (int i = 0; i < count; ++i) parts[i].graph->producer = session->graph->producer;
  for (int i = 0; i < count; ++i) {  // this process first: its errors are the cheapest to find
    if (parts[i].task != 0) continue;
    WEIR_TRY(weir_graph_write(parts[i].graph, &run->partitions[run->partition_count++]));
    weir_source_t source = {.graph = weir_graph_ref(parts[i].graph),
                            .targets = parts[i].sinks,
                            .target_count = parts[i].sink_count,
                            .arg_count = arg_count,
                            .ret_count = ret_count,
                            .is_part = true};
    WEIR_TRY(weir_program_compile(session->program, &source, &run->local));
  }
  for (int i = 0; i < count; ++i) {
    if (parts[i].task != 0) WEIR_TRY(register_part(session, &parts[i], run));
  }
  return NULL;
}

// ---- placement ----

// By cost, what is placed is the graph as it will run; else it is placed first, so that passes see
// devices.
static weir_status_t* place_and_optimize(weir_master_session_t* session,
                                         const weir_source_t* source, weir_arena_t* arena) {
  weir_program_t* program = session->program;
  bool is_by_cost = program->place.kind == WEIR_PLACE_COST;
  weir_stage_t stage = {.devices = session->devices,
                        .device_count = session->device_count,
                        .allow_soft_placement = session->allow_soft_placement};
  if (is_by_cost) WEIR_TRY(weir_program_optimize(program, source));
  WEIR_TRY(weir_program_place_on(program, source, &stage, arena));
  return is_by_cost ? NULL : weir_program_optimize(program, source);
}

// Places the pruned graph, optimises it, places what that added, and cuts it.
static weir_status_t* split(weir_master_session_t* session, const weir_source_t* source,
                            bool is_snapshot, weir_arena_t* arena, weir_part_t** out_parts,
                            int* out_count) {
  weir_graph_t* live = NULL;
  weir_place_params_t place = {.devices = session->devices,
                               .device_count = session->device_count,
                               .allow_soft_placement = session->allow_soft_placement};
  weir_partition_params_t params = {.devices = session->devices,
                                    .device_count = session->device_count};
  int* device_of = NULL;
  if (session->device_count > 1) WEIR_TRY(weir_flatten(source->graph, WEIR_FLATTEN_AND_CALLS));
  WEIR_TRY(place_and_optimize(session, source, arena));
  WEIR_TRY(weir_graph_copy_reachable(source->graph, source->targets, source->target_count, arena,
                                     &live));
  weir_status_t* status = NULL;
  if (is_snapshot) status = weir_fence_reads(live, session->devices, session->device_count);
  place.graph = live;
  if (!status) status = weir_place(&place, arena, &device_of);
  params.graph = live;
  params.device_of = device_of;
  params.serial = atomic_fetch_add_explicit(&session->next_cut, 1, memory_order_relaxed);
  if (!status) status = weir_partition(&params, arena, out_parts, out_count);
  weir_graph_unref(live);
  return status;
}

static weir_status_t* copy_edges(const resolved_t* resolved, weir_master_run_t* run) {
  const weir_step_spec_t* spec = &resolved->spec;
  run->feeds = weir_alloc_array((size_t)spec->feed_count, sizeof(*run->feeds));
  run->fetches = weir_alloc_array((size_t)spec->fetch_count, sizeof(*run->fetches));
  if (!run->feeds || !run->fetches) return weir_out_of_memory();
  run->feed_count = spec->feed_count;
  run->fetch_count = spec->fetch_count;
  for (int i = 0; i < spec->feed_count; ++i) run->feeds[i] = spec->feeds[i].edge;
  for (int i = 0; i < spec->fetch_count; ++i) run->fetches[i] = spec->fetches[i];
  return NULL;
}

static weir_status_t* make_run(weir_master_session_t* session, const resolved_t* resolved,
                               const weir_master_signature_t* signature, weir_arena_t* arena,
                               weir_master_run_t* run) {
  const weir_step_spec_t* spec = &resolved->spec;
  const bool is_partial = signature->is_partial;
  weir_graph_t* graph = NULL;
  weir_node_t** targets = NULL;
  int target_count = spec->target_count;
  weir_part_t* parts = NULL;
  int part_count = 0;
  WEIR_TRY(weir_signature_check(session->graph, spec));
  WEIR_TRY(copy_edges(resolved, run));
  if (is_partial) {
    WEIR_TRY(weir_signature_prune_partial(session->graph, spec, session->devices[0].device, &graph,
                                          &targets, &target_count));
  } else {
    WEIR_TRY(weir_signature_prune(session->graph, spec, resolved->connections, &graph, &targets));
  }
  weir_source_t source = {.graph = graph, .targets = targets, .target_count = target_count};
  weir_status_t* status =
      split(session, &source, signature->is_snapshot, arena, &parts, &part_count);
  if (!status) {
    status = make_parts(session, parts, part_count, is_partial ? 0 : spec->feed_count,
                        is_partial ? 0 : spec->fetch_count, run);
  }
  weir_parts_release(parts, part_count);
  weir_graph_unref(graph);
  return status;
}

// ---- keeping runs ----

weir_master_run_t* weir_master_run_retain(weir_master_run_t* run) {
  weir_ref_inc(&run->ref, 1);
  return run;
}

static void deregister_parts(weir_master_session_t* session, const weir_master_run_t* run) {
  weir_mutex_lock(&session->mu);
  bool is_closed = session->is_closed;  // then the peers have dropped them
  weir_mutex_unlock(&session->mu);
  for (int i = 0; i < run->part_count && !is_closed; ++i) {
    weir_strbuf_t request = {0};
    weir_wire_put_string(&request, DEREGISTER_GRAPH_REQUEST_GRAPH_HANDLE, run->parts[i].handle);
    weir_wire_put_string(&request, DEREGISTER_GRAPH_REQUEST_SESSION_HANDLE, session->handle);
    weir_wire_put_bool(&request, DEREGISTER_GRAPH_REQUEST_CREATE_WORKER_SESSION_CALLED, true);
    tell_peer(&session->peers[run->parts[i].peer], "/tensorflow.WorkerService/DeregisterGraph",
              &request);
  }
}

void weir_master_run_release(weir_master_session_t* session, weir_master_run_t* run) {
  if (!run || !weir_ref_dec(&run->ref)) return;
  deregister_parts(session, run);
  run_destroy(run);
}

// Puts |made| into the table, unless another thread was faster; returns what the table has,
// retained. |out_evicted| is what had to make room: for the caller to release.
static weir_status_t* keep_run(weir_master_session_t* session, weir_view_t key,
                               weir_master_run_t* made, weir_master_run_t** out_run,
                               weir_master_run_t** out_evicted) {
  weir_status_t* status = NULL;
  void* evicted = NULL;
  weir_mutex_lock(&session->mu);
  *out_run = find_run_locked(session, key);
  if (!*out_run) status = weir_lru_put(&session->runs, key, made, &evicted);
  if (!*out_run && !status) {
    weir_ref_inc(&made->ref, 1);  // the table's
    *out_run = weir_master_run_retain(made);
  }
  weir_mutex_unlock(&session->mu);
  *out_evicted = evicted;
  return status;
}

weir_status_t* weir_master_session_prepare(weir_master_session_t* session,
                                           const weir_master_signature_t* signature,
                                           weir_master_run_t** out_run) {
  weir_arena_t arena = {0};
  resolved_t resolved = {.spec = {.feeds = NULL}};
  weir_master_run_t *run = NULL, *made = NULL, *evicted = NULL;
  weir_status_t* status = resolve(session, signature, &arena, &resolved);
  if (status) goto done;
  run = find_run(session, weir_strbuf_view(&resolved.key));
  if (run) goto done;
  made = weir_calloc(1, sizeof(*made));
  if (made) weir_ref_init(&made->ref);
  status = made ? make_run(session, &resolved, signature, &arena, made) : weir_out_of_memory();
  if (status) goto done;
  status = keep_run(session, weir_strbuf_view(&resolved.key), made, &run, &evicted);
done:
  weir_master_run_release(session, made);
  weir_master_run_release(session, evicted);
  weir_strbuf_free(&resolved.key);
  weir_arena_free(&arena);
  if (!status) *out_run = run;
  return status;
}

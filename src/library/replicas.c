// replicas.c — Many processes, one model: where variables go, and when they are there.
#include "weir/replicas.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "forget.h"
#include "nodes.h"

// ---- where things go ----

// Lives as long as the root scope.
typedef struct chooser_t {
  weir_ps_choice_t choice;
  char** devices;
  int64_t* loads;  // bytes, or variables
  int count;
} chooser_t;

static int64_t byte_size(weir_edge_t value) {
  int64_t dims[WEIR_MAX_RANK];
  const int rank = weir_edge_dims(value, dims, WEIR_MAX_RANK);
  int64_t size = (int64_t)weir_dtype_size(weir_edge_type(value));
  if (size <= 0) size = 1;  // strings and their like: by the number of elements
  for (int i = 0; i < rank && i < WEIR_MAX_RANK; ++i) size *= dims[i] < 0 ? 1 : dims[i];
  return size;
}

// The server with the least load, the first of several. By the number of variables, that is one
// after the other.
static const char* choose(void* arg, weir_edge_t initial) {
  chooser_t* chooser = arg;
  int least = 0;
  for (int i = 1; i < chooser->count; ++i) {
    if (chooser->loads[i] < chooser->loads[least]) least = i;
  }
  chooser->loads[least] += chooser->choice == WEIR_PS_BY_SIZE ? byte_size(initial) : 1;
  return chooser->devices[least];
}

static char* task_name(weir_scope_t* scope, const char* job, int task, const char* device) {
  const size_t size = strlen(job) + strlen(device) + 32;
  char* name = weir_scope_alloc(scope, size, 1);
  if (name) snprintf(name, size, "/job:%s/task:%d%s", job, task, device);
  return name;
}

static chooser_t* make_chooser(weir_scope_t* scope, int count,
                               const weir_scope_replica_options_t* options) {
  chooser_t* chooser = weir_scope_alloc(scope, 1, sizeof(*chooser));
  char** devices = weir_scope_alloc(scope, (size_t)count, sizeof(*devices));
  int64_t* loads = weir_scope_alloc(scope, (size_t)count, sizeof(*loads));
  if (!chooser || !devices || !loads) return NULL;
  *chooser = (chooser_t){options->choice, devices, loads, count};
  for (int i = 0; i < count; ++i) {
    devices[i] = task_name(scope, options->ps_job ? options->ps_job : "ps", i, "");
    if (!devices[i]) return NULL;
  }
  return chooser;
}

weir_scope_t* weir_scope_replica_with(weir_scope_t* scope, int ps_count, int worker,
                                      const weir_scope_replica_options_t* options) {
  options = options ? options : &(const weir_scope_replica_options_t){0};
  if (ps_count < 0 || worker < 0) {
    weir_lib_fail(scope, "worker %d with %d parameter servers: neither can be negative", worker,
                  ps_count);
  }
  if (weir_scope_status(scope) || ps_count == 0) return scope;
  chooser_t* chooser = make_chooser(scope, ps_count, options);
  const char* own = task_name(scope, options->worker_job ? options->worker_job : "worker", worker,
                              options->worker_device ? options->worker_device : "");
  if (!chooser || !own) return scope;
  return weir_scope_variables_on(weir_scope_on(scope, own), choose, chooser);
}

// ---- waiting for the chief ----

static weir_edge_t string_vector(weir_scope_t* scope, const char* const* strings, int64_t count) {
  weir_tensor_t* tensor = NULL;
  weir_status_t* status = weir_tensor_create_strings(1, &count, strings, NULL, &tensor);
  if (status) weir_scope_fail(scope, status);
  weir_edge_t edge = weir_const(scope, tensor);
  weir_tensor_release(tensor);
  return edge;
}

static const char kForget[] = "forget";  // the node's name, beside the edge's

weir_edge_t weir_uninitialized(weir_scope_t* scope) {
  const int count = weir_scope_variable_count(scope);
  weir_scope_t* s = weir_scope_in(weir_scope_lift(scope), "uninitialized");
  const char** names = weir_scope_alloc(s, (size_t)count + 1, sizeof(*names));
  weir_edge_t* states = weir_scope_alloc(s, (size_t)count + 1, sizeof(*states));
  weir_node_t** ends = weir_scope_alloc(s, (size_t)count + 1, sizeof(weir_node_t*));
  if (!names || !states || !ends || weir_scope_status(s)) return WEIR_LIB_NONE;
  for (int i = 0; i < count; ++i) {
    weir_edge_t handle = weir_scope_variable_at(s, i).handle;
    const char* device = weir_node_device(handle.node);
    names[i] = weir_node_name(handle.node);
    weir_scope_t* there = *device ? weir_scope_on(s, device) : s;
    states[i] = weir_var_is_initialized_op(there, handle);
    ends[i] = weir_destroy_resource_op(there, handle);
  }
  weir_edge_t all = string_vector(s, names, count);
  if (!count) return all;
  weir_group(s, kForget, ends, count);
  weir_edge_t missing = weir_where(s, weir_logical_not(s, weir_pack(s, states, count)));
  missing = weir_reshape(s, missing, weir_lib_vector(s, -1));
  return weir_gather_v2(s, all, missing, weir_const_int(s, 0));
}

weir_node_t* weir_lib_forgetting(weir_session_t* session, weir_edge_t uninitialized) {
  char name[512];
  const char* own = weir_node_name(uninitialized.node);
  const char* slash = strrchr(own, '/');
  const int folder = slash ? (int)(slash - own) : 0;
  const int size = snprintf(name, sizeof(name), "%.*s/%s", folder, own, kForget);
  if (!slash || size >= (int)sizeof(name)) return NULL;
  return weir_graph_find_node(weir_session_graph(session), name);
}

static int64_t now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

// A wait under way.
typedef struct waiting_t {
  weir_session_t* session;
  weir_edge_t uninitialized;
  const weir_wait_options_t* options;
  int64_t deadline_ms;  // INT64_MAX: none
  char missing[512];    // what the last look found, for the message
} waiting_t;

static void describe(waiting_t* w, const weir_tensor_t* names) {
  size_t used = 0;
  w->missing[0] = 0;
  for (int64_t i = 0; i < weir_tensor_count(names) && used < sizeof(w->missing) - 1; ++i) {
    size_t size = 0;
    const char* name = weir_tensor_string(names, i, &size);
    used += (size_t)snprintf(w->missing + used, sizeof(w->missing) - used, "%s%.*s", i ? ", " : "",
                             (int)size, name);
  }
}

static weir_run_options_t limit(const waiting_t* w) {
  weir_run_options_t options = {0};
  if (w->deadline_ms == INT64_MAX) return options;
  const int64_t left = w->deadline_ms - now_ms();
  options.timeout_ms = left > 1 ? left : 1;
  return options;
}

// A server that is not there, or has restarted, is a reason to look again.
static weir_status_t* unless_lost(waiting_t* w, weir_status_t* take_status) {
  const weir_code_t code = weir_status_code(take_status);
  if (code != WEIR_UNAVAILABLE && code != WEIR_ABORTED) return take_status;
  snprintf(w->missing, sizeof(w->missing), "(%s)", weir_status_message(take_status));
  weir_status_destroy(take_status);
  return NULL;
}

static weir_status_t* run(const waiting_t* w, weir_node_t* node) {
  weir_tensor_t* none = NULL;
  const weir_step_spec_t spec = {WEIR_TARGETS(node)};
  const weir_run_options_t options = limit(w);
  return weir_session_run_with(w->session, &spec, &options, &none, NULL, NULL);
}

static weir_status_t* look(waiting_t* w, bool* out_is_ready) {
  weir_tensor_t* names = NULL;
  weir_step_spec_t spec = {WEIR_FETCHES(w->uninitialized)};
  weir_run_options_t options = limit(w);
  weir_status_t* status = weir_session_run_with(w->session, &spec, &options, &names, NULL, NULL);
  if (status) return unless_lost(w, status);
  *out_is_ready = weir_tensor_count(names) == 0;
  describe(w, names);
  weir_tensor_release(names);
  if (*out_is_ready || !w->options->init) return NULL;
  weir_node_t* forgetting = weir_lib_forgetting(w->session, w->uninitialized);
  if (forgetting) status = run(w, forgetting);
  if (!status) status = run(w, w->options->init);
  *out_is_ready = !status;
  return unless_lost(w, status);
}

static weir_status_t* rest(const waiting_t* w, int64_t wait_ms) {
  if (w->options->coordinator) {
    if (!weir_coordinator_wait(w->options->coordinator, wait_ms)) return NULL;
    return WEIR_STATUS(CANCELLED, "asked to stop while waiting for variables: %s", w->missing);
  }
  struct timespec t = {.tv_sec = (time_t)(wait_ms / 1000), .tv_nsec = wait_ms % 1000 * 1000000};
  nanosleep(&t, NULL);
  return NULL;
}

weir_status_t* weir_wait_initialized_with(weir_session_t* session, weir_edge_t uninitialized,
                                          const weir_wait_options_t* options) {
  options = options ? options : &(const weir_wait_options_t){0};
  WEIR_REQUIRE_ARG(session);
  if (!session || !uninitialized.node)
    return WEIR_STATUS(INVALID_ARGUMENT, "no session, or no list of variables, to wait for");
  waiting_t w = {.session = session, .uninitialized = uninitialized, .options = options};
  w.deadline_ms = options->timeout_ms > 0 ? now_ms() + options->timeout_ms : INT64_MAX;
  int64_t wait_ms = options->first_wait_ms > 0 ? options->first_wait_ms : 20;
  const int64_t longest_ms = options->longest_wait_ms > 0 ? options->longest_wait_ms : 2000;
  for (bool is_ready = false;;) {
    weir_status_t* status = look(&w, &is_ready);
    const bool is_late = now_ms() >= w.deadline_ms;
    if (weir_status_code(status) == WEIR_DEADLINE_EXCEEDED && is_late) {
      if (!*w.missing) snprintf(w.missing, sizeof(w.missing), "(%s)", weir_status_message(status));
      weir_status_destroy(status);
      status = NULL;
    }
    if (status || is_ready) return status;
    if (is_late) {
      return WEIR_STATUS(DEADLINE_EXCEEDED, "still not initialised after %lld ms: %s",
                         (long long)options->timeout_ms, w.missing);
    }
    if (wait_ms > longest_ms) wait_ms = longest_ms;
    if (w.deadline_ms - now_ms() < wait_ms) wait_ms = w.deadline_ms - now_ms();
    if (wait_ms > 0) WEIR_TRY(rest(&w, wait_ms));
    wait_ms = wait_ms > 0 ? 2 * wait_ms : 1;
  }
}

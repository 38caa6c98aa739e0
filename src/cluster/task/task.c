// task.c — One task of a cluster: creation, peers.
#include "cluster/task/task.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/elastic.h"
#include "base/log.h"
#include "base/philox.h"
#include "cluster/task/collectives.h"
#include "cluster/task/ucx.h"
#include "pass/place.h"
#include "rpc/token.h"

enum {
  WAITING_THREADS = 17,
  WAITING_LIMIT = 2000,  // beyond, requests queue
  EXTRA_THREADS = 256,   // for what else there is to do while long kernels hold the others
  HOLD_LIMIT_S = 10,     // so long steps wait at the gate while one takes variables
  REQUESTS_KNOWN = 1 << 16,
  RECEIVES_KNOWN = 1 << 12,
  CHANNEL_LIMIT = 1 << 16,  // clients may name any address in a cluster definition of their own
};

#define MAX_GRAPH_SIZE ((uint64_t)INT32_MAX)  // protobuf's own limit of a message

static weir_status_t* copy_tls(const weir_rpc_tls_t* from, weir_rpc_tls_t* to) {
  *to = (weir_rpc_tls_t){
      .is_enabled = from->is_enabled,
      .cert_file = from->cert_file ? weir_strdup(from->cert_file) : NULL,
      .key_file = from->key_file ? weir_strdup(from->key_file) : NULL,
      .ca_file = from->ca_file ? weir_strdup(from->ca_file) : NULL,
  };
  bool is_complete = (to->cert_file || !from->cert_file) && (to->key_file || !from->key_file) &&
                     (to->ca_file || !from->ca_file);
  return is_complete ? NULL : weir_out_of_memory();
}

static void free_tls(weir_rpc_tls_t* tls) {
  weir_free((char*)(uintptr_t)tls->cert_file);
  weir_free((char*)(uintptr_t)tls->key_file);
  weir_free((char*)(uintptr_t)tls->ca_file);
}

// Without the one that is asked for, tensors go as ever.
static void add_transports(weir_task_t* task, const weir_task_options_t* options) {
  weir_status_t* status = NULL;
  if (options->transport == WEIR_TRANSPORT_UCX)
    status = weir_ucx_create(task, options->is_local, &task->ucx);
  if (status) WEIR_LOG(ERROR, "tensors do not go by UCX: %s", weir_status_message(status));
  weir_status_destroy(status);
  if (task->ucx) task->transports[task->transport_count++] = weir_ucx_transport(task->ucx);
  task->same_host.pool = task->pool;
  task->transports[task->transport_count++] = &task->same_host.base;
}

static weir_status_t* init(weir_task_t* task, weir_task_options_t* options) {
  weir_strbuf_t name = {0};
  weir_strbuf_printf(&name, "/job:%s/replica:0/task:%d", options->job, options->index);
  WEIR_TRY(weir_strbuf_finish(&name));
  task->name = name.data;
  task->index = options->index;
  task->place = options->place;
  task->rates = options->rates;
  task->max_message_size = options->max_message_size;
  task->max_graph_size = options->max_graph_size ? options->max_graph_size : MAX_GRAPH_SIZE;
  weir_place_policy_t policy;
  WEIR_TRY(weir_place_policy_parse(options->place, &policy));
  task->spec = options->spec;
  options->spec = (weir_cluster_spec_t){.job_count = 0};
  WEIR_TRY(copy_tls(&options->tls, &task->tls));
  task->token = weir_rpc_token_retain(options->token);
  for (int i = 0; i < task->spec.job_count; ++i) {
    if (!strcmp(task->spec.jobs[i].name, options->job)) task->job = task->spec.jobs[i].name;
  }
  if (!task->job) {
    return WEIR_STATUS(INVALID_ARGUMENT, "the cluster has no job '%s'", options->job);
  }
  int threads = options->threads > 0 ? options->threads : weir_cpu_count();
  // The caller a pool counts is an io thread here, which leaves the work to the others.
  WEIR_TRY(weir_pool_create(threads + 1, &task->pool));
  weir_pool_make_elastic(task->pool, EXTRA_THREADS);
  WEIR_TRY(weir_pool_create(WAITING_THREADS, &task->waiting_pool));
  weir_runtime_options_t runtime = {
      .task = task->name, .container = task->job, .pool = task->pool, .devices = options->devices};
  WEIR_TRY(weir_runtime_create(&runtime, &task->runtime));
  weir_rpc_loop_options_t loop = {.thread_count = options->io_threads};
  WEIR_TRY(weir_rpc_loop_create(&loop, &task->loop));
  WEIR_TRY(weir_gate_create(HOLD_LIMIT_S * INT64_C(1000000000), &task->gate));
  weir_gate_set(task->runtime->resources, task->gate);
  if (options->members.etcd.endpoints)
    WEIR_TRY(weir_members_create(task, &options->members, &task->members));
  add_transports(task, options);
  return weir_collectives_create(task, &task->collectives);
}

weir_status_t* weir_task_create(weir_task_options_t* options, weir_task_t** out_task) {
  weir_task_t* task = weir_calloc(1, sizeof(*task));
  if (!task) return weir_out_of_memory();
  weir_mutex_init(&task->mu);
  weir_cond_init(&task->waited);
  weir_same_host_init(&task->same_host);
  weir_transfer_log_init(&task->transfers);
  task->channels.owns_keys = true;
  task->steps.owns_keys = true;
  weir_status_t* status = weir_request_ids_init(&task->request_ids, REQUESTS_KNOWN);
  if (!status) status = weir_request_ids_init(&task->receive_ids, RECEIVES_KNOWN);
  if (!status) status = init(task, options);
  if (status) {
    weir_task_destroy(task);
    return status;
  }
  *out_task = task;
  return NULL;
}

void weir_task_destroy(weir_task_t* task) {
  if (!task) return;
  weir_task_end_all_steps(task);
  if (task->runtime) weir_hub_stop(task->runtime->hub);
  weir_map_entry_t* entry;
  for (size_t i = 0; (entry = weir_map_next(&task->channels, &i));)
    weir_rpc_channel_destroy(entry->value);
  weir_map_free(&task->channels);
  weir_members_destroy(task->members);
  weir_ucx_destroy(task->ucx);
  weir_collectives_destroy(task->collectives);
  weir_map_free(&task->steps);
  weir_mutex_lock(&task->mu);
  while (task->waiting_count > 0) weir_cond_wait(&task->waited, &task->mu);
  weir_mutex_unlock(&task->mu);
  weir_pool_destroy(task->waiting_pool);
  weir_pool_destroy(task->pool);
  weir_rpc_loop_destroy(task->loop);
  weir_runtime_release(task->runtime);
  weir_cluster_spec_free(&task->spec);
  free_tls(&task->tls);
  weir_rpc_token_release(task->token);
  weir_request_ids_free(&task->request_ids);
  weir_request_ids_free(&task->receive_ids);
  weir_same_host_free(&task->same_host);
  weir_transfer_log_free(&task->transfers);
  weir_gate_destroy(task->gate);
  weir_cond_destroy(&task->waited);
  weir_mutex_destroy(&task->mu);
  weir_free(task->name);
  weir_free(task);
}

uint64_t weir_task_random(void) {
  uint64_t value = weir_random_entropy();
  return value ? value : 1;
}

weir_status_t* weir_task_check_graph(const weir_task_t* task, uint64_t size) {
  if (size <= task->max_graph_size) return NULL;
  return WEIR_STATUS(RESOURCE_EXHAUSTED,
                     "a graph of %llu bytes is larger than the %llu that are taken here "
                     "(--max-graph-size)",
                     (unsigned long long)size, (unsigned long long)task->max_graph_size);
}

// ---- functions that may block ----

typedef struct waiting_t {
  weir_task_t* task;
  weir_task_fn_t fn;
  void* arg;
} waiting_t;

static void run_waiting(void* arg) {
  waiting_t waiting = *(waiting_t*)arg;
  weir_free(arg);
  waiting.fn(waiting.arg);
  weir_mutex_lock(&waiting.task->mu);
  --waiting.task->waiting_count;
  weir_cond_broadcast(&waiting.task->waited);  // under the lock: the task may be gone after it
  weir_mutex_unlock(&waiting.task->mu);
}

static void* waiting_main(void* arg) {
  run_waiting(arg);
  return NULL;
}

static bool start_thread(waiting_t* waiting) {
  pthread_t thread;
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);  // signals are for the program's own threads
  bool is_started = pthread_create(&thread, NULL, waiting_main, waiting) == 0;
  if (is_started) pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  return is_started;
}

void weir_task_wait(weir_task_t* task, weir_task_fn_t fn, void* arg) {
  waiting_t* waiting = weir_malloc(sizeof(*waiting));
  if (!waiting) {
    weir_pool_submit(task->waiting_pool, fn, arg);
    return;
  }
  *waiting = (waiting_t){.task = task, .fn = fn, .arg = arg};
  weir_mutex_lock(&task->mu);
  int count = ++task->waiting_count;
  weir_mutex_unlock(&task->mu);
  bool is_crowded = count >= WAITING_THREADS && count < WAITING_LIMIT;
  if (!is_crowded || !start_thread(waiting))
    weir_pool_submit(task->waiting_pool, run_waiting, waiting);
}

// ---- peers ----

weir_status_t* weir_task_channel_to(weir_task_t* task, const char* address,
                                    weir_rpc_channel_t** out_channel) {
  weir_view_t key = weir_view_of(address);
  weir_status_t* status = NULL;
  weir_mutex_lock(&task->mu);
  weir_rpc_channel_t* channel = weir_map_find(&task->channels, key);
  if (!channel && task->channels.count >= CHANNEL_LIMIT) {
    status =
        WEIR_STATUS(RESOURCE_EXHAUSTED, "'%s': the server has channels to %d addresses already",
                    address, CHANNEL_LIMIT);
  } else if (!channel) {
    weir_rpc_channel_options_t options = {.address = address,
                                          .tls = task->tls,
                                          .token = task->token,
                                          .max_message_size = task->max_message_size};
    status = weir_rpc_channel_create(task->loop, &options, &channel);
    if (!status) status = weir_map_put(&task->channels, key, channel);
  }
  weir_mutex_unlock(&task->mu);
  if (!status) *out_channel = channel;
  return status;
}

weir_status_t* weir_task_channel(weir_task_t* task, const weir_alias_t* alias, weir_view_t peer,
                                 weir_rpc_channel_t** out_channel) {
  weir_device_name_t name;
  WEIR_TRY(weir_device_name_parse(peer, &name));
  const weir_cluster_spec_t* spec = alias ? &alias->spec : &task->spec;
  const bool is_ours = !alias && task->members;
  *out_channel = is_ours ? weir_members_channel(task->members, name.job, name.task) : NULL;
  if (*out_channel) return NULL;
  const char* address = weir_cluster_spec_find(spec, name.job, name.task);
  if (!address) {
    return WEIR_STATUS(NOT_FOUND, "'%.*s' names no task of the cluster that '%s' is part of",
                       WEIR_VIEW_ARG(peer), alias ? alias->task : task->name);
  }
  return weir_task_channel_to(task, address, out_channel);
}

// ucx.c — The life of the UCX transport, and its thread.
#include "cluster/task/ucx.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"
#include "cluster/task/ucx_internal.h"
#include "wire/wire.h"

enum {
  LOOK_MS = 1000,       // between looks at who waits for too long
  MAX_PAUSE_MS = 10,    // between looks at a UCX that tells nothing
  PROGRESS_LIMIT = 64,  // of calls that found something to do, until other work has its turn
  END_LIMIT_MS = 1000,  // for what is under way at the end
};

static const weir_transport_vtable_t ucx_vtable = {.url = UCX_URL,
                                                   .offer = weir_ucx_offer,
                                                   .withdraw = weir_ucx_withdraw,
                                                   .collect = weir_ucx_collect,
                                                   .cancel = weir_ucx_cancel,
                                                   .pass = weir_ucx_pass};

// ---- the thread's work ----

static void wake(weir_ucx_t* ucx) {
  uint64_t one = 1;
  ssize_t size = write(ucx->wake_fd, &one, sizeof(one));
  (void)size;  // it fails where the thread is to wake up already
}

void weir_ucx_queue(weir_ucx_t* ucx, ucx_job_t* job) {
  job->next = NULL;
  weir_mutex_lock(&ucx->mu);
  *ucx->last_job = job;
  ucx->last_job = &job->next;
  weir_mutex_unlock(&ucx->mu);
  wake(ucx);
}

void weir_ucx_look_soon(weir_ucx_t* ucx) {
  weir_mutex_lock(&ucx->mu);
  ucx->must_look = true;
  weir_mutex_unlock(&ucx->mu);
  wake(ucx);
}

static void run_jobs(weir_ucx_t* ucx) {
  weir_mutex_lock(&ucx->mu);
  ucx_job_t* job = ucx->jobs;
  ucx->jobs = NULL;
  ucx->last_job = &ucx->jobs;
  weir_mutex_unlock(&ucx->mu);
  while (job) {
    ucx_job_t* next = job->next;
    job->run(ucx, job);
    job = next;
  }
}

static void look(weir_ucx_t* ucx, bool is_end) {
  weir_ucx_look_at_offers(ucx, is_end);
  weir_ucx_look_at_sends(ucx, is_end);
}

// Has UCX do what there is to do. False when there was nothing.
static bool progress(weir_ucx_t* ucx) {
  int count = 0;
  while (count < PROGRESS_LIMIT && ucx->api->progress(ucx->worker) > 0) ++count;
  return count > 0;
}

// Sleeps until something happens, here or in UCX.
static void sleep_until_woken(weir_ucx_t* ucx, bool is_awaited) {
  ucs_status_t armed = ucx->event_fd >= 0 ? ucx->api->arm(ucx->worker) : UCS_OK;
  if (armed == UCS_ERR_BUSY) return;  // something has happened meanwhile
  bool is_polled = ucx->event_fd < 0 || armed != UCS_OK;
  struct pollfd fds[] = {{.fd = ucx->wake_fd, .events = POLLIN},
                         {.fd = ucx->event_fd, .events = POLLIN}};
  ucx->pause_ms = WEIR_MIN(ucx->pause_ms * 2 + 1, MAX_PAUSE_MS);
  int timeout_ms = is_awaited ? LOOK_MS : -1;
  poll(fds, is_polled ? 1 : 2, is_polled ? ucx->pause_ms : timeout_ms);
  uint64_t count = 0;
  if (fds[0].revents && read(ucx->wake_fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
    WEIR_LOG(ERROR, "an eventfd cannot be read: %s", strerror(errno));
}

static void run(weir_ucx_t* ucx) {
  int64_t next_look_ns = 0;
  for (bool is_ending = false; !is_ending;) {
    run_jobs(ucx);
    bool has_worked = progress(ucx);
    weir_mutex_lock(&ucx->mu);
    is_ending = ucx->is_ending;
    bool must_look = ucx->must_look;
    ucx->must_look = false;
    bool is_awaited = ucx->offers.count > 0 || ucx->sends;
    bool has_jobs = ucx->jobs != NULL;
    weir_mutex_unlock(&ucx->mu);
    int64_t now_ns = weir_clock_ns();
    if (must_look || now_ns >= next_look_ns) {
      look(ucx, false);
      next_look_ns = now_ns + LOOK_MS * INT64_C(1000000);
    }
    if (has_worked) ucx->pause_ms = 0;
    else if (!is_ending && !has_jobs && !must_look) sleep_until_woken(ucx, is_awaited);
  }
}

// ---- opening and closing ----

// Settings of ours, where the user's variables do not say otherwise. A UCX that lacks one goes by
// its own.
static void set_defaults(weir_ucx_t* ucx, ucp_config_t* config) {
  static const struct {
    const char *variable, *name, *value;
    bool is_of_local;
  } defaults[] = {
      {"UCX_NET_DEVICES", "NET_DEVICES", "lo", true},  // no other machine is to reach the task
      // Of TCP: 8 KiB by default, and a system call for each.
      {"UCX_TCP_TX_SEG_SIZE", "TX_SEG_SIZE", "256k", false},
      {"UCX_TCP_RX_SEG_SIZE", "RX_SEG_SIZE", "256k", false}};
  for (size_t i = 0; i < WEIR_COUNT_OF(defaults); ++i) {
    bool is_left = getenv(defaults[i].variable) || (defaults[i].is_of_local && !ucx->is_local);
    if (!is_left && ucx->api->set_config(config, defaults[i].name, defaults[i].value))
      WEIR_LOG(INFO, "this UCX knows no %s", defaults[i].variable);
  }
}

static weir_status_t* open_context(weir_ucx_t* ucx, bool with_events) {
  const ucx_api_t* api = ucx->api;
  ucp_config_t* config = NULL;
  ucp_params_t params = {.mask = UCP_PARAM_FEATURES,
                         .features = UCP_FEATURE_AM | (with_events ? UCP_FEATURE_WAKEUP : 0)};
  ucs_status_t code = api->read_config(NULL, NULL, &config);
  if (code) return weir_ucx_api_error(api, "UCX's variables", code);
  set_defaults(ucx, config);
  code = api->create_context(UCP_MAJOR, UCP_MINOR, &params, config, &ucx->context);
  api->free_config(config);
  return code ? weir_ucx_api_error(api, "no context of UCX", code) : NULL;
}

static weir_status_t* open_worker(weir_ucx_t* ucx, bool with_events) {
  const ucx_api_t* api = ucx->api;
  ucp_worker_params_t params = {.mask = 0};  // of one thread
  ucp_worker_attr_t attr = {.mask = UCP_WORKER_ATTR_MAX_HEADER};
  ucp_handler_params_t handler = {.mask = UCP_HANDLER_ID | UCP_HANDLER_FN | UCP_HANDLER_ARG,
                                  .id = UCX_MESSAGE_ID,
                                  .fn = weir_ucx_receive,
                                  .arg = ucx};
  WEIR_TRY(open_context(ucx, with_events));
  ucs_status_t code = api->create_worker(ucx->context, &params, &ucx->worker);
  if (!code && with_events) code = api->get_event_fd(ucx->worker, &ucx->event_fd);
  if (!code) code = api->query_worker(ucx->worker, &attr);
  if (!code) code = api->set_handler(ucx->worker, &handler);
  if (!code) code = api->get_address(ucx->worker, &ucx->address, &ucx->address_size);
  ucx->max_header_size = attr.max_header_size;
  return code ? weir_ucx_api_error(api, "no worker of UCX", code) : NULL;
}

static void close_worker(weir_ucx_t* ucx) {
  if (ucx->address) ucx->api->free_address(ucx->worker, ucx->address);
  if (ucx->worker) ucx->api->destroy_worker(ucx->worker);
  if (ucx->context) ucx->api->destroy_context(ucx->context);
  ucx->address = NULL;
  ucx->worker = NULL;
  ucx->context = NULL;
  ucx->event_fd = -1;
}

// With UCX's events if it can have them, else it is asked again and again.
static weir_status_t* open(weir_ucx_t* ucx) {
  weir_status_t* status = open_worker(ucx, true);
  if (!status) return NULL;
  weir_status_destroy(status);
  close_worker(ucx);
  return open_worker(ucx, false);
}

// Ends everything, so that nothing of UCX's is under way when its memory goes.
static void end(weir_ucx_t* ucx) {
  run_jobs(ucx);
  look(ucx, true);
  int64_t deadline_ns = weir_clock_ns() + END_LIMIT_MS * INT64_C(1000000);
  while (weir_ucx_has_sends(ucx) && weir_clock_ns() < deadline_ns) {
    if (!progress(ucx)) usleep(1000);
  }
}

static void* thread_main(void* arg) {
  weir_ucx_t* ucx = arg;
  weir_status_t* status = open(ucx);
  bool is_open = !status;
  weir_mutex_lock(&ucx->mu);
  ucx->has_started = true;
  ucx->failure = status;
  weir_cond_broadcast(&ucx->cond);
  weir_mutex_unlock(&ucx->mu);
  if (is_open) run(ucx);
  if (is_open) end(ucx);
  close_worker(ucx);
  weir_ucx_forget_sends(ucx);
  weir_ucx_forget_arrivals(ucx);
  return NULL;
}

static weir_status_t* start_thread(weir_ucx_t* ucx) {
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);  // signals are for the program's own threads
  int error = pthread_create(&ucx->thread, NULL, thread_main, ucx);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  if (error) return WEIR_STATUS(RESOURCE_EXHAUSTED, "no thread for UCX: %s", strerror(error));
  weir_mutex_lock(&ucx->mu);
  while (!ucx->has_started) weir_cond_wait(&ucx->cond, &ucx->mu);
  weir_status_t* status = ucx->failure;
  weir_mutex_unlock(&ucx->mu);
  if (status) pthread_join(ucx->thread, NULL);
  return status;
}

static void free_ucx(weir_ucx_t* ucx) {
  if (ucx->wake_fd >= 0) close(ucx->wake_fd);
  weir_map_free(&ucx->offers);
  weir_map_free(&ucx->peers);
  weir_cond_destroy(&ucx->cond);
  weir_mutex_destroy(&ucx->mu);
  weir_free(ucx);
}

weir_status_t* weir_ucx_create(weir_task_t* task, bool is_local, weir_ucx_t** out_ucx) {
  const ucx_api_t* api = NULL;
  WEIR_TRY(weir_ucx_api_open(&api));
  weir_ucx_t* ucx = weir_calloc(1, sizeof(*ucx));
  if (!ucx) return weir_out_of_memory();
  unsigned major = 0, minor = 0, release = 0;
  api->version(&major, &minor, &release);
  snprintf(ucx->version, sizeof(ucx->version), "%u.%u", major, minor);
  ucx->base.vtable = &ucx_vtable;
  ucx->task = task;
  ucx->api = api;
  ucx->instance = weir_task_random();
  ucx->is_local = is_local;
  ucx->event_fd = -1;
  ucx->last_job = &ucx->jobs;
  weir_mutex_init(&ucx->mu);
  weir_cond_init(&ucx->cond);
  ucx->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  weir_status_t* status = start_thread(ucx);
  if (status) {
    free_ucx(ucx);
    return status;
  }
  WEIR_LOG(INFO, "large tensors go by UCX %u.%u.%u to tasks that have it", major, minor, release);
  *out_ucx = ucx;
  return NULL;
}

void weir_ucx_destroy(weir_ucx_t* ucx) {
  if (!ucx) return;
  weir_mutex_lock(&ucx->mu);
  ucx->is_ending = true;
  weir_mutex_unlock(&ucx->mu);
  wake(ucx);
  pthread_join(ucx->thread, NULL);
  free_ucx(ucx);
}

// ---- what others ask for ----

weir_transport_t* weir_ucx_transport(weir_ucx_t* ucx) { return &ucx->base; }

void weir_ucx_put_address(const weir_ucx_t* ucx, weir_strbuf_t* response) {
  weir_wire_put_fixed64(response, ADDRESS_INSTANCE, ucx->instance);
  weir_wire_put_bytes(response, ADDRESS_BYTES, ucx->address, ucx->address_size);
  weir_wire_put_string(response, ADDRESS_VERSION, ucx->version);
}

weir_ucx_counts_t weir_ucx_count(weir_ucx_t* ucx) {
  if (!ucx) return (weir_ucx_counts_t){.sends_open = 0};
  return (weir_ucx_counts_t){.tensors_received = atomic_load(&ucx->tensors_received),
                             .bytes_received = atomic_load(&ucx->bytes_received),
                             .tensors_sent = atomic_load(&ucx->tensors_sent),
                             .bytes_sent = atomic_load(&ucx->bytes_sent),
                             .sends_open = atomic_load(&ucx->sends_open)};
}

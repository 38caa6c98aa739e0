// master_rates.c — How fast the tasks of a session are, for placement by cost: as a file says, or
// as far as a master can tell by itself.
//
// What it can tell: its own CPU, which stands for those of all tasks, and what calls to the others
// take, one after the other, many at once, and large. A tensor that goes to another task is such a
// call, and a step is two for each task that takes part (RunGraph, CleanupGraph).
#include "base/alloc.h"
#include "cluster/master/master_internal.h"
#include "cluster/task/messages.h"
#include "runtime/rates.h"
#include "runtime/rates_file.h"

enum { MANY = 32, LARGE = 1 << 20, PATIENCE_S = 10 };
enum { ATTEMPTS = 3, ATTEMPTS_NS = 20000000 };  // as many at least, and for so long

// ---- calls ----

// Calls that are under way to one task.
typedef struct calls_t {
  weir_mutex_t mu;
  weir_cond_t idle;
  int left;               // guarded by mu, as what follows
  weir_status_t* status;  // of the first that failed
} calls_t;

static void on_answer(void* arg, weir_status_t* take_status, weir_rpc_buffer_t* take_answer) {
  calls_t* calls = arg;
  weir_rpc_buffer_release(take_answer);
  weir_mutex_lock(&calls->mu);
  if (!calls->status) calls->status = take_status;
  else weir_status_destroy(take_status);
  if (--calls->left == 0) weir_cond_broadcast(&calls->idle);
  weir_mutex_unlock(&calls->mu);
}

// A request for the task's status; |size| bytes of it are in a field that nobody knows.
static weir_rpc_message_t* make_request(size_t size) {
  enum { UNKNOWN_FIELD = 1000 };
  static const char padding[4096];
  weir_rpc_message_t* message = weir_rpc_message_create();
  weir_strbuf_t request = {0};
  size_t field = weir_wire_begin(&request, UNKNOWN_FIELD);
  for (size_t i = 0; i < size; i += sizeof(padding))
    weir_strbuf_append(&request, padding, sizeof(padding));
  weir_wire_end(&request, field);
  weir_rpc_message_append_strbuf(message, &request);
  return message;
}

// How long |count| calls take that begin together.
static weir_status_t* time_calls(const weir_peer_t* peer, int count, size_t size,
                                 weir_cancel_t* cancel, double* out_ns) {
  calls_t calls = {.left = count};
  weir_mutex_init(&calls.mu);
  weir_cond_init(&calls.idle);
  int64_t start = weir_clock_ns();
  weir_rpc_call_options_t options = {.deadline_ns = start + PATIENCE_S * INT64_C(1000000000),
                                     .cancel = cancel};
  for (int i = 0; i < count; ++i)
    weir_rpc_channel_call_async(peer->channel, "/tensorflow.WorkerService/GetStatus",
                                make_request(size), &options, on_answer, &calls, NULL);
  weir_mutex_lock(&calls.mu);
  while (calls.left > 0) weir_cond_wait(&calls.idle, &calls.mu);
  weir_mutex_unlock(&calls.mu);
  *out_ns = (double)(weir_clock_ns() - start);
  weir_cond_destroy(&calls.idle);
  weir_mutex_destroy(&calls.mu);
  return weir_status_prefix(calls.status, "%s: ", peer->name);
}

// The shortest of some attempts: others disturb only upwards, and so does a processor that slept.
static weir_status_t* time_best(const weir_peer_t* peer, int count, size_t size,
                                weir_cancel_t* cancel, double* out_ns) {
  const int64_t end = weir_clock_ns() + ATTEMPTS_NS;
  *out_ns = 1e18;
  for (int i = 0; i < ATTEMPTS || weir_clock_ns() < end; ++i) {
    double ns = 0;
    WEIR_TRY(time_calls(peer, count, size, cancel, &ns));
    *out_ns = WEIR_MIN(*out_ns, ns);
  }
  return NULL;
}

static weir_status_t* measure_peer(const weir_peer_t* peer, weir_cancel_t* cancel,
                                   weir_rates_t* rates) {
  double one = 0, many = 0, large = 0;
  WEIR_TRY(time_best(peer, 1, 0, cancel, &one));
  WEIR_TRY(time_best(peer, MANY, 0, cancel, &many));
  WEIR_TRY(time_best(peer, 1, LARGE, cancel, &large));
  rates->copy_ns = one;
  rates->message_ns = WEIR_MAX(many - one, 0) / (MANY - 1);
  rates->copy_bytes = LARGE / WEIR_MAX(large - one, 1) * 1e9;
  rates->step_ns = 2 * one;
  return NULL;
}

// ---- this process ----

// Measured once for all sessions.
static weir_status_t* measure_cpu(weir_master_t* master, const weir_registry_t* registry,
                                  weir_rates_t* out_rates) {
  weir_status_t* status = NULL;
  weir_mutex_lock(&master->rates_mu);
  *out_rates = master->cpu_rates;
  if (out_rates->flops == 0)
    status = weir_rates_measure_cpu(master->task->runtime, registry, out_rates);
  if (!status) master->cpu_rates = *out_rates;
  weir_mutex_unlock(&master->rates_mu);
  return status;
}

// ---- the devices of a session ----

static bool is_cpu(const weir_placement_t* device) {
  return strcmp(device->type, WEIR_DEVICE_CPU) == 0;
}

// The first CPU of task |task|; the first of all where it has none.
static int find_cpu(const weir_master_session_t* session, int task) {
  for (int i = 0; i < session->device_count; ++i) {
    if (session->devices[i].task == task && is_cpu(&session->devices[i])) return i;
  }
  return 0;
}

// Gives all devices of |task| its |rates|: what is not its first CPU is for those who ask for it,
// and how fast that is makes no difference.
static void set_rates(weir_master_session_t* session, int task, weir_rates_t rates) {
  int cpu = find_cpu(session, task);
  for (int i = 0; i < session->device_count; ++i) {
    weir_placement_t* device = &session->devices[i];
    if (device->task != task) continue;
    device->rates = rates;
    device->rates.is_host = task == 0 && is_cpu(device);
    device->rates.processor = is_cpu(device) ? cpu : i;
    device->rates.executor = cpu * WEIR_LANES + WEIR_LANE_EXECUTOR;
    device->is_reserved = i != cpu;
  }
}

static weir_status_t* measure(weir_master_session_t* session, weir_cancel_t* cancel) {
  weir_rates_t cpu;
  WEIR_TRY(measure_cpu(session->task->master, session->graph->registry, &cpu));
  set_rates(session, 0, cpu);
  for (int i = 0; i < session->peer_count; ++i) {
    weir_rates_t rates = cpu;
    WEIR_TRY(measure_peer(&session->peers[i], cancel, &rates));
    set_rates(session, i + 1, rates);
  }
  return NULL;
}

static weir_status_t* load(weir_master_session_t* session) {
  const char* path = session->task->rates;
  weir_arena_t arena = {0};
  weir_placement_t* listed = NULL;
  int count = 0;
  weir_status_t* status = weir_cluster_rates_load(path, &arena, &listed, &count);
  for (int task = 0; task <= session->peer_count && !status; ++task) {
    const char* name = session->devices[find_cpu(session, task)].device;
    int i = 0;
    while (i < count && strcmp(listed[i].device, name)) ++i;
    if (i < count) set_rates(session, task, listed[i].rates);
    else status = WEIR_STATUS(NOT_FOUND, "rates '%s': nothing is said of %s", path, name);
  }
  weir_arena_free(&arena);
  return status;
}

weir_status_t* weir_master_find_rates(weir_master_session_t* session, weir_cancel_t* cancel) {
  return session->task->rates ? load(session) : measure(session, cancel);
}

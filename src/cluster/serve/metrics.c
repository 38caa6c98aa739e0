// metrics.c — Counters of a server's calls, and their text in Prometheus' format.
#include "cluster/serve/metrics.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/memory.h"
#include "cluster/master/master.h"
#include "cluster/task/ucx.h"
#include "cluster/worker/worker.h"
#include "ops/queue/queue_resource.h"

enum { CODE_COUNT = WEIR_UNAUTHENTICATED + 1 };

// Upper bounds of the histogram, in microseconds; above them one more bucket.
static const int bounds_us[] = {25,    50,    100,   250,    500,    1000,   2500,    5000,
                                10000, 25000, 50000, 100000, 250000, 500000, 1000000, 10000000};
enum { BOUND_COUNT = WEIR_COUNT_OF(bounds_us) };

// On lines of its own: methods are called by different threads.
typedef struct method_t {
  _Alignas(128) const char* path;
  atomic_llong codes[CODE_COUNT];
  atomic_llong buckets[BOUND_COUNT + 1];
  atomic_llong sum_ns, request_bytes, response_bytes;
} method_t;

struct weir_metrics_t {
  method_t* methods;  // as in the server's table; then health checking; then the unknown
  int count;
  int64_t start_us;  // of the process' life as a server, since 1970
};

// ---- counting ----

weir_status_t* weir_metrics_create(const weir_rpc_method_t* methods, weir_metrics_t** out_metrics) {
  size_t count = 0;
  while (methods[count].path) ++count;
  weir_metrics_t* metrics = weir_calloc(1, sizeof(*metrics));
  if (!metrics) return weir_out_of_memory();
  size_t size = (count + 2) * sizeof(*metrics->methods);
  metrics->methods = weir_aligned_malloc(size, _Alignof(method_t));
  if (!metrics->methods) {
    weir_free(metrics);
    return weir_out_of_memory();
  }
  memset(metrics->methods, 0, size);
  for (size_t i = 0; i < count; ++i) metrics->methods[i].path = methods[i].path;
  metrics->methods[count].path = "/grpc.health.v1.Health/Check";
  metrics->methods[count + 1].path = "unknown";
  metrics->count = (int)count + 2;
  metrics->start_us = weir_wall_clock_us();
  *out_metrics = metrics;
  return NULL;
}

void weir_metrics_destroy(weir_metrics_t* metrics) {
  if (!metrics) return;
  weir_free(metrics->methods);
  weir_free(metrics);
}

// Nothing is ordered by these: each is read on its own.
static void count(atomic_llong* counter, int64_t amount) {
  atomic_fetch_add_explicit(counter, amount, memory_order_relaxed);
}

static long long value_of(atomic_llong* counter) {
  return atomic_load_explicit(counter, memory_order_relaxed);
}

void weir_metrics_observe(void* arg, const weir_rpc_record_t* record) {
  weir_metrics_t* metrics = arg;
  method_t* method = &metrics->methods[record->method >= 0 ? record->method : metrics->count - 1];
  bool is_code = (unsigned)record->code < CODE_COUNT;
  int bucket = 0;
  while (bucket < BOUND_COUNT && record->duration_ns > bounds_us[bucket] * INT64_C(1000)) ++bucket;
  count(&method->codes[is_code ? record->code : WEIR_UNKNOWN], 1);
  count(&method->buckets[bucket], 1);
  count(&method->sum_ns, record->duration_ns);
  count(&method->request_bytes, (int64_t)record->request_size);
  count(&method->response_bytes, (int64_t)record->response_size);
}

// ---- text ----

static void put_head(weir_strbuf_t* out, const char* name, const char* type, const char* help) {
  weir_strbuf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_gauge(weir_strbuf_t* out, const char* name, int64_t value, const char* help) {
  put_head(out, name, "gauge", help);
  weir_strbuf_printf(out, "%s %" PRId64 "\n", name, value);
}

static void put_counter(weir_strbuf_t* out, const char* name, int64_t value, const char* help) {
  put_head(out, name, "counter", help);
  weir_strbuf_printf(out, "%s %" PRId64 "\n", name, value);
}

static void put_escaped(weir_strbuf_t* out, const char* text) {
  for (; *text; ++text) {
    if (*text == '\n') {
      weir_strbuf_puts(out, "\\n");
      continue;
    }
    if (*text == '"' || *text == '\\') weir_strbuf_putc(out, '\\');
    weir_strbuf_putc(out, *text);
  }
}

static void put_calls(weir_metrics_t* metrics, weir_strbuf_t* out) {
  put_head(out, "weir_rpc_calls_total", "counter", "Calls answered, by method and status code.");
  for (int i = 0; i < metrics->count; ++i) {
    for (int code = 0; code < CODE_COUNT; ++code) {
      long long calls = value_of(&metrics->methods[i].codes[code]);
      if (calls)
        weir_strbuf_printf(out, "weir_rpc_calls_total{method=\"%s\",code=\"%s\"} %lld\n",
                           metrics->methods[i].path, weir_code_name((weir_code_t)code), calls);
    }
  }
}

static void put_bytes(weir_metrics_t* metrics, weir_strbuf_t* out) {
  put_head(out, "weir_rpc_request_bytes_total", "counter", "Bytes of requests received.");
  for (int i = 0; i < metrics->count; ++i) {
    long long bytes = value_of(&metrics->methods[i].request_bytes);
    if (bytes)
      weir_strbuf_printf(out, "weir_rpc_request_bytes_total{method=\"%s\"} %lld\n",
                         metrics->methods[i].path, bytes);
  }
  put_head(out, "weir_rpc_response_bytes_total", "counter", "Bytes of responses sent.");
  for (int i = 0; i < metrics->count; ++i) {
    long long bytes = value_of(&metrics->methods[i].response_bytes);
    if (bytes)
      weir_strbuf_printf(out, "weir_rpc_response_bytes_total{method=\"%s\"} %lld\n",
                         metrics->methods[i].path, bytes);
  }
}

static void put_histogram(method_t* method, weir_strbuf_t* out) {
  long long buckets[BOUND_COUNT + 1], total = 0;
  for (int i = 0; i <= BOUND_COUNT; ++i) total += buckets[i] = value_of(&method->buckets[i]);
  if (total == 0) return;
  long long below = 0;
  for (int i = 0; i < BOUND_COUNT; ++i) {
    below += buckets[i];
    weir_strbuf_printf(out, "weir_rpc_latency_seconds_bucket{method=\"%s\",le=\"%g\"} %lld\n",
                       method->path, bounds_us[i] * 1e-6, below);
  }
  weir_strbuf_printf(out, "weir_rpc_latency_seconds_bucket{method=\"%s\",le=\"+Inf\"} %lld\n",
                     method->path, total);
  weir_strbuf_printf(out, "weir_rpc_latency_seconds_sum{method=\"%s\"} %.9f\n", method->path,
                     (double)value_of(&method->sum_ns) * 1e-9);
  weir_strbuf_printf(out, "weir_rpc_latency_seconds_count{method=\"%s\"} %lld\n", method->path,
                     total);
}

// ---- the state now ----

static void put_queue(void* arg, const char* container, const char* name,
                      weir_resource_t* resource) {
  weir_strbuf_t* out = arg;
  weir_strbuf_puts(out, "weir_queue_size{container=\"");
  put_escaped(out, container);
  weir_strbuf_puts(out, "\",name=\"");
  put_escaped(out, name);
  weir_strbuf_printf(out, "\"} %" PRId64 "\n", weir_queue_size((weir_queue_t*)resource));
}

static void put_task(weir_task_t* task, weir_strbuf_t* out) {
  int worker_sessions = 0, running = 0;
  weir_worker_load(task->worker, &worker_sessions, &running);
  put_counter(out, "weir_steps_total", atomic_load(&task->steps_run),
              "Steps that this task's master started or its worker took part in.");
  put_counter(out, "weir_tensor_received_bytes_total", atomic_load(&task->bytes_received),
              "Bytes of tensors fetched from other tasks.");
  put_counter(out, "weir_tensor_sent_bytes_total", atomic_load(&task->bytes_sent),
              "Bytes of tensors that other tasks fetched here.");
  put_counter(out, "weir_tensor_same_host_bytes_total", atomic_load(&task->same_host.bytes_read),
              "Bytes of tensors copied from the memory of other tasks on this machine.");
  weir_ucx_counts_t ucx = weir_ucx_count(task->ucx);
  put_counter(out, "weir_tensor_ucx_bytes_total", ucx.bytes_received,
              "Bytes of tensors that came from other tasks by UCX.");
  put_counter(out, "weir_tensors_ucx_total", ucx.tensors_received,
              "Tensors that came from other tasks by UCX.");
  put_gauge(out, "weir_tensors_ucx_sending", ucx.sends_open,
            "Tensors that go to other tasks by UCX and are still needed for it.");
  put_gauge(out, "weir_tensors_awaited", atomic_load(&task->receives_open),
            "Tensors that other tasks asked for and have no answer to yet.");
  put_gauge(out, "weir_tensors_held", weir_same_host_count(&task->same_host),
            "Tensors that tasks on this machine were told to copy and have not yet.");
  weir_mutex_lock(&task->mu);
  int64_t steps = (int64_t)task->steps.count;
  weir_mutex_unlock(&task->mu);
  put_gauge(out, "weir_steps_open", steps, "Steps that run or are not cleaned up yet.");
  put_gauge(out, "weir_graphs_running", running, "Parts of graphs that the worker runs.");
  put_head(out, "weir_sessions", "gauge", "Sessions, by who has them: master or worker.");
  weir_strbuf_printf(out, "weir_sessions{role=\"master\"} %d\nweir_sessions{role=\"worker\"} %d\n",
                     weir_master_session_count(task->master), worker_sessions);
  put_head(out, "weir_pool_queued", "gauge", "Work that waits for a thread, by pool.");
  weir_strbuf_printf(out,
                     "weir_pool_queued{pool=\"kernels\"} %d\nweir_pool_queued{pool=\"waiting\"} "
                     "%d\n",
                     weir_pool_queued(task->pool), weir_pool_queued(task->waiting_pool));
  put_head(out, "weir_queue_size", "gauge", "Elements in each queue of the task.");
  weir_resources_visit(task->runtime->resources, &weir_queue_type, put_queue, out);
}

static int64_t resident_bytes(void) {
  long long total = 0, resident = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (!file) return 0;
  int count = fscanf(file, "%lld %lld", &total, &resident);
  fclose(file);
  return count == 2 ? resident * sysconf(_SC_PAGESIZE) : 0;
}

static int64_t open_files(void) {
  DIR* folder = opendir("/proc/self/fd");
  if (!folder) return 0;
  int64_t files = -3;  // ".", ".." and the folder itself
  while (readdir(folder)) ++files;
  closedir(folder);
  return files;
}

typedef struct device_gauge_t {
  const char *name, *help;
  size_t at;  // of the number within a weir_allocator_use_t
} device_gauge_t;

static const device_gauge_t device_gauges[] = {
    {"weir_device_memory_bytes", "Memory of tensors in use, by device.",
     offsetof(weir_allocator_use_t, in_use)},
    {"weir_device_memory_peak_bytes", "The most of it so far.",
     offsetof(weir_allocator_use_t, peak)},
    {"weir_device_memory_limit_bytes", "The most that it can be.",
     offsetof(weir_allocator_use_t, limit)}};

// One line for each device that has memory of its own and tells.
static void put_device_memory(const weir_runtime_t* runtime, const device_gauge_t* gauge,
                              weir_strbuf_t* out) {
  put_head(out, gauge->name, "gauge", gauge->help);
  for (int i = 0; i < runtime->device_count; ++i) {
    const weir_device_t* device = runtime->devices[i];
    weir_allocator_t* allocator = weir_device_allocator(device, WEIR_MEMORY_DEVICE);
    if (weir_device_is_host(device) || !allocator->vtable->get_use) continue;
    weir_allocator_use_t use;
    int64_t value = 0;
    allocator->vtable->get_use(allocator, &use);
    memcpy(&value, (const char*)&use + gauge->at, sizeof(value));
    weir_strbuf_printf(out, "%s{device=\"%s\"} %" PRId64 "\n", gauge->name, device->name, value);
  }
}

static void put_devices(const weir_runtime_t* runtime, weir_strbuf_t* out) {
  put_head(out, "weir_device_info", "gauge", "The devices of this task; always 1.");
  for (int i = 0; i < runtime->device_count; ++i)
    weir_strbuf_printf(out, "weir_device_info{device=\"%s\"} 1\n", runtime->devices[i]->name);
  for (size_t i = 0; i < WEIR_COUNT_OF(device_gauges); ++i)
    put_device_memory(runtime, &device_gauges[i], out);
  put_head(out, "weir_device_busy_ratio", "gauge",
           "Share of the last moments in which a GPU was at work, for whatever process.");
  for (int i = 0; i < runtime->device_count; ++i) {
    weir_device_t* device = runtime->devices[i];
    double busy = device->vtable->busy ? device->vtable->busy(device) : -1;
    if (busy >= 0)
      weir_strbuf_printf(out, "weir_device_busy_ratio{device=\"%s\"} %.2f\n", device->name, busy);
  }
}

static void put_memory(weir_strbuf_t* out) {
  put_gauge(out, "weir_tensor_memory_bytes", weir_host_allocator_bytes(),
            "Memory of tensors in use.");
  put_gauge(out, "weir_tensor_memory_peak_bytes", weir_host_allocator_peak(),
            "The most of it so far.");
  put_gauge(out, "weir_heap_bytes", (int64_t)weir_memory_allocated(),
            "Memory allocated and not freed, tensors and all else.");
  put_gauge(out, "process_resident_memory_bytes", resident_bytes(), "Resident memory.");
}

static void put_process(const weir_metrics_t* metrics, weir_strbuf_t* out) {
  struct timespec cpu = {0};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
  put_memory(out);
  put_gauge(out, "process_open_fds", open_files(), "Open file descriptors.");
  put_head(out, "process_cpu_seconds_total", "counter", "Time on CPUs.");
  weir_strbuf_printf(out, "process_cpu_seconds_total %.6f\n",
                     (double)cpu.tv_sec + (double)cpu.tv_nsec * 1e-9);
  put_head(out, "process_start_time_seconds", "gauge", "When it began to serve, since 1970.");
  weir_strbuf_printf(out, "process_start_time_seconds %.3f\n", (double)metrics->start_us * 1e-6);
}

void weir_metrics_write_common(weir_metrics_t* metrics, weir_rpc_server_t* server,
                               weir_strbuf_t* out) {
  int connections = 0, calls = 0;
  weir_rpc_server_load(server, &connections, &calls);
  put_head(out, "weir_build_info", "gauge", "Which Weir this is; always 1.");
  weir_strbuf_printf(out, "weir_build_info{version=\"%s\"} 1\n", WEIR_VERSION);
  put_gauge(out, "weir_rpc_connections", connections, "Open connections.");
  put_gauge(out, "weir_rpc_calls_running", calls, "Calls that are not answered yet.");
  put_calls(metrics, out);
  put_bytes(metrics, out);
  put_head(out, "weir_rpc_latency_seconds", "histogram",
           "From the complete request to its answer, by method.");
  for (int i = 0; i < metrics->count; ++i) put_histogram(&metrics->methods[i], out);
  put_process(metrics, out);
}

static void put_address(const weir_task_t* task, const char* job, const weir_cluster_task_t* of,
                        weir_strbuf_t* out) {
  weir_strbuf_t address = {0};
  if (task->members && weir_cluster_is_absent(of->address))
    weir_members_write_address(task->members, job, of->index, &address);
  put_escaped(out, address.data ? address.data : of->address);
  weir_strbuf_free(&address);
}

// The tasks of the cluster, this one among them, and where each listens.
static void put_cluster(const weir_task_t* task, weir_strbuf_t* out) {
  put_head(out, "weir_task_info", "gauge", "Which task of the cluster this is; always 1.");
  weir_strbuf_printf(out, "weir_task_info{job=\"%s\",task=\"%d\"} 1\n", task->job, task->index);
  put_head(out, "weir_cluster_task_info", "gauge", "The tasks of the cluster; always 1.");
  for (int i = 0; i < task->spec.job_count; ++i) {
    const weir_cluster_job_t* job = &task->spec.jobs[i];
    for (int k = 0; k < job->task_count; ++k) {
      weir_strbuf_printf(out, "weir_cluster_task_info{job=\"%s\",task=\"%d\",address=\"", job->name,
                         job->tasks[k].index);
      put_address(task, job->name, &job->tasks[k], out);
      weir_strbuf_puts(out, "\"} 1\n");
    }
  }
}

static void put_state(weir_task_t* task, weir_strbuf_t* out) {
  put_cluster(task, out);
  put_task(task, out);
  put_devices(task->runtime, out);
}

void weir_metrics_write_task(weir_task_t* task, weir_strbuf_t* out) {
  put_memory(out);
  put_state(task, out);
}

void weir_metrics_write(weir_metrics_t* metrics, weir_task_t* task, weir_rpc_server_t* server,
                        weir_strbuf_t* out) {
  weir_metrics_write_common(metrics, server, out);
  put_state(task, out);
}

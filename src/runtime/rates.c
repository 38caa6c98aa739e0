// rates.c — Measuring devices: the best of a few short attempts, since others disturb only upwards.
#include "runtime/rates.h"

#include "kernel/gemm/gemm.h"

enum { ATTEMPTS = 5 };

// ---- the CPU ----

static weir_status_t* measure_products(weir_pool_t* pool, double* out_flops) {
  enum { SIDE = 256 };
  int64_t best = INT64_MAX;
  float* data = weir_alloc_array(3 * (size_t)SIDE * SIDE, sizeof(float));
  if (!data) return weir_out_of_memory();
  for (int i = 0; i < 3 * SIDE * SIDE; ++i) data[i] = 1;
  weir_gemm_args_t args = {.dtype_a = WEIR_DTYPE_FLOAT,
                           .dtype_b = WEIR_DTYPE_FLOAT,
                           .dtype_c = WEIR_DTYPE_FLOAT,
                           .m = SIDE,
                           .n = SIDE,
                           .k = SIDE,
                           .a = data,
                           .b = data + SIDE * SIDE,
                           .c = data + 2 * SIDE * SIDE};
  weir_status_t* status = NULL;
  for (int i = 0; i < ATTEMPTS && !status; ++i) {
    int64_t start = weir_clock_ns();
    status = weir_gemm_any(pool, &args);
    best = WEIR_MIN(best, weir_clock_ns() - start);
  }
  weir_free(data);
  *out_flops = 2.0 * SIDE * SIDE * SIDE / (double)WEIR_MAX(best, 1) * 1e9;
  return status;
}

static weir_status_t* measure_memory(double* out_bytes) {
  enum { SIZE = 8 << 20 };  // more than caches hold
  int64_t best = INT64_MAX;
  char* data = weir_alloc_array(2, SIZE);
  if (!data) return weir_out_of_memory();
  memset(data, 1, 2 * (size_t)SIZE);
  for (int i = 0; i < ATTEMPTS; ++i) {
    int64_t start = weir_clock_ns();
    memcpy(data + (i % 2) * SIZE, data + (1 - i % 2) * SIZE, SIZE);
    best = WEIR_MIN(best, weir_clock_ns() - start);
  }
  weir_free(data);
  *out_bytes = 2.0 * SIZE / (double)WEIR_MAX(best, 1) * 1e9;
  return NULL;
}

// ---- queues ----

typedef struct counted_t {
  weir_mutex_t mu;
  weir_cond_t cond;
  int left;  // guarded by mu
} counted_t;

typedef struct empty_t {
  weir_work_t work;  // first
  counted_t* counted;
} empty_t;

static void empty_run(weir_work_t* work) { (void)work; }

static void empty_done(weir_work_t* work) {
  counted_t* counted = ((empty_t*)work)->counted;
  weir_mutex_lock(&counted->mu);
  --counted->left;
  weir_cond_broadcast(&counted->cond);
  weir_mutex_unlock(&counted->mu);
}

// How long |count| pieces of work take that do nothing.
static int64_t time_empty(weir_device_t* device, int count) {
  enum { MOST = 16 };
  empty_t works[MOST];
  counted_t counted = {.left = count};
  weir_mutex_init(&counted.mu);
  weir_cond_init(&counted.cond);
  int64_t start = weir_clock_ns();
  for (int i = 0; i < WEIR_MIN(count, MOST); ++i) {
    works[i] = (empty_t){.work = {.run = empty_run, .done = empty_done}, .counted = &counted};
    device->vtable->submit(device, WEIR_STREAM_COMPUTE, &works[i].work);
  }
  weir_mutex_lock(&counted.mu);
  while (counted.left > 0) weir_cond_wait(&counted.cond, &counted.mu);
  weir_mutex_unlock(&counted.mu);
  int64_t elapsed = weir_clock_ns() - start;
  weir_cond_destroy(&counted.cond);
  weir_mutex_destroy(&counted.mu);
  return elapsed;
}

static void measure_queue(weir_device_t* device, weir_rates_t* rates) {
  int64_t one = INT64_MAX, nine = INT64_MAX;
  for (int i = 0; i < ATTEMPTS; ++i) {
    one = WEIR_MIN(one, time_empty(device, 1));
    nine = WEIR_MIN(nine, time_empty(device, 9));
  }
  rates->node_ns = (double)WEIR_MAX(nine - one, 8) / 8;
  rates->delay_ns = WEIR_MAX((double)one - rates->node_ns, 0);
}

// ---- copies ----

// The shortest of a few copies of |count| numbers to |device|.
static weir_status_t* time_copy(weir_device_t* device, int64_t count, int64_t* out_ns) {
  weir_tensor_t* host = NULL;
  weir_status_t* status = NULL;
  *out_ns = INT64_MAX;
  WEIR_TRY(weir_tensor_create_in(weir_device_allocator(device, WEIR_MEMORY_HOST), WEIR_DTYPE_FLOAT,
                                 1, &count, &host));
  memset(host->data, 0, weir_tensor_byte_size(host));
  for (int i = 0; i < ATTEMPTS && !status; ++i) {
    weir_tensor_t* there = NULL;
    int64_t start = weir_clock_ns();
    status = weir_device_fetch(device, WEIR_MEMORY_DEVICE, host, &there);
    *out_ns = WEIR_MIN(*out_ns, weir_clock_ns() - start);
    weir_tensor_release(there);
    if (*out_ns > 10000000) break;  // slow enough to be sure of
  }
  weir_tensor_release(host);
  return status;
}

static weir_status_t* measure_copies(weir_device_t* device, weir_rates_t* rates) {
  enum { MOST = 1 << 19, GROWTH = 32, ENOUGH_NS = 500000 };  // too short to tell, if less
  int64_t small = 0, large = 0, count = 1;
  WEIR_TRY(time_copy(device, count, &small));
  while (large - small < ENOUGH_NS && count < MOST) {
    count *= GROWTH;
    WEIR_TRY(time_copy(device, count, &large));
  }
  rates->copy_ns = WEIR_MAX((double)small - rates->delay_ns, 0);
  rates->copy_bytes = 4.0 * (double)count / (double)WEIR_MAX(large - small, 1) * 1e9;
  return NULL;
}

// ---- all of them ----

weir_status_t* weir_rates_measure(const weir_runtime_t* runtime, weir_rates_t* out_rates) {
  enum { CPU_NODE_NS = 500 };  // of the executor, for each node
  weir_rates_t base = {.node_ns = CPU_NODE_NS, .speed = 1};
  WEIR_TRY(measure_products(runtime->pool, &base.flops));
  WEIR_TRY(measure_memory(&base.bytes));
  base.copy_bytes = base.bytes;
  for (int i = 0; i < runtime->device_count; ++i) {
    weir_device_t* device = runtime->devices[i];
    out_rates[i] = base;
    out_rates[i].is_host = weir_device_is_host(device);
    // What runs where it is called shares the threads of the pool.
    out_rates[i].processor = device->vtable->submit ? i : 0;
    if (device->speed > 0 && device->speed < 1) out_rates[i].speed = device->speed;
    if (device->vtable->submit) measure_queue(device, &out_rates[i]);
    if (!out_rates[i].is_host) WEIR_TRY(measure_copies(device, &out_rates[i]));
  }
  return NULL;
}

// rates.c — Measuring devices: the best of a few short attempts, since others disturb only upwards.
#include "runtime/rates.h"

#include "kernel/gemm/gemm.h"
#include "runtime/trial.h"

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

// ---- steps ----

// The shortest trials so far, of |few| nodes and of |many|.
enum { FEW = 2, MANY = 18 };
typedef struct trials_t {
  weir_runtime_t* runtime;
  const weir_registry_t* registry;
  weir_trial_t few, many;
} trials_t;

static weir_status_t* try_again(trials_t* trials, int a, int b, int length, weir_trial_t* best) {
  weir_trial_t trial;
  WEIR_TRY(weir_trial_run(trials->runtime, trials->registry, a, b, length, &trial));
  best->step_ns = WEIR_MIN(best->step_ns, trial.step_ns);
  best->submit_ns = WEIR_MIN(best->submit_ns, trial.submit_ns);
  return NULL;
}

static bool looks_late(const trials_t* trials) {
  return trials->few.step_ns > trials->many.step_ns / 2;
}

// What one node more takes, in turn on the two devices.
static weir_status_t* measure_more(trials_t* trials, int a, int b, weir_trial_t* out_more) {
  trials->few = trials->many = (weir_trial_t){.step_ns = 1e18, .submit_ns = 1e18};
  // In turn, so that both meet calm moments; and more often while few nodes seem to take half as
  // long as many: on some machines timers keep firing late for as long as a program lasts.
  for (int i = 0; i < ATTEMPTS || (i < 4 * ATTEMPTS && looks_late(trials)); ++i) {
    WEIR_TRY(try_again(trials, a, b, FEW, &trials->few));
    WEIR_TRY(try_again(trials, a, b, MANY, &trials->many));
  }
  out_more->step_ns = (trials->many.step_ns - trials->few.step_ns) / (MANY - FEW);
  out_more->submit_ns = (trials->many.submit_ns - trials->few.submit_ns) / (MANY - FEW);
  return NULL;
}

// What nodes and copies take in a step besides what they do, with all that the executor, streams,
// events and sleeping threads have to do with it.
static weir_status_t* measure_steps(trials_t* trials, int device, weir_rates_t* rates) {
  const double cpu_node_ns = rates->node_ns;
  weir_trial_t there, back;
  WEIR_TRY(measure_more(trials, device, device, &there));
  rates->submit_ns = WEIR_MAX(there.submit_ns, 1);
  rates->node_ns = WEIR_MAX(there.step_ns, rates->submit_ns);
  // What is left are threads that wake up: the stream's, and then the one that waits for its end.
  rates->delay_ns = WEIR_MAX(trials->few.step_ns - FEW * rates->node_ns, 0);
  if (rates->is_host) return NULL;
  WEIR_TRY(measure_more(trials, device, 0, &back));  // on average a copy and half of each node
  double copy = back.step_ns - (rates->node_ns + cpu_node_ns + rates->submit_ns) / 2;
  rates->copy_ns = WEIR_MAX(copy - rates->submit_ns - rates->delay_ns, 0);
  return NULL;
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
    if (i > 1 && *out_ns > 10000000) break;  // slow enough to be sure of
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
  rates->copy_bytes = 4.0 * (double)count / (double)WEIR_MAX(large - small, 1) * 1e9;
  return NULL;
}

// ---- all of them ----

// Devices that are of one kind and as fast as each other, as far as one can tell, are equal: nodes
// are not to be moved for what was chance in a measurement.
static void make_equal(weir_rates_t* a, weir_rates_t* b) {
  double ratio = a->copy_bytes / b->copy_bytes;
  if (ratio < 0.5 || ratio > 2) return;
  a->copy_bytes = WEIR_MAX(a->copy_bytes, b->copy_bytes);
  a->submit_ns = WEIR_MIN(a->submit_ns, b->submit_ns);
  a->node_ns = WEIR_MIN(a->node_ns, b->node_ns);
  a->delay_ns = WEIR_MIN(a->delay_ns, b->delay_ns);
  a->copy_ns = WEIR_MIN(a->copy_ns, b->copy_ns);
  int processor = b->processor;
  *b = *a;
  b->processor = processor;
}

static void level(const weir_runtime_t* runtime, weir_rates_t* rates) {
  for (int i = 0; i < runtime->device_count; ++i) {
    for (int k = i + 1; k < runtime->device_count; ++k) {
      bool is_same = strcmp(runtime->devices[i]->type, runtime->devices[k]->type) == 0;
      if (is_same && rates[i].speed == rates[k].speed) make_equal(&rates[i], &rates[k]);
    }
  }
}

void weir_rates_init(const weir_runtime_t* runtime, weir_rates_t* out_rates) {
  // With a thread alone, what runs where it is called keeps streams waiting for work.
  bool is_alone = weir_pool_thread_count(runtime->pool) == 1;
  for (int i = 0; i < runtime->device_count; ++i) {
    const weir_device_t* device = runtime->devices[i];
    // What runs where it is called shares the threads of the pool.
    out_rates[i] = (weir_rates_t){.speed = 1,
                                  .is_host = weir_device_is_host(device),
                                  .processor = weir_device_has_streams(device) ? i : 0,
                                  .executor = is_alone ? WEIR_LANE_WORK : WEIR_LANE_EXECUTOR};
  }
}

static weir_status_t* measure_device(trials_t* trials, int i, weir_rates_t* rates) {
  weir_device_t* device = trials->runtime->devices[i];
  if (device->speed > 0 && device->speed < 1) rates->speed = device->speed;
  if (!weir_device_has_streams(device)) return NULL;
  WEIR_TRY(measure_steps(trials, i, rates));
  return rates->is_host ? NULL : measure_copies(device, rates);
}

// The first device of a runtime is its CPU, and runs nodes where it is called.
weir_status_t* weir_rates_measure_cpu(weir_runtime_t* runtime, const weir_registry_t* registry,
                                      weir_rates_t* out_rates) {
  trials_t trials = {.runtime = runtime, .registry = registry};
  weir_trial_t more;
  *out_rates = (weir_rates_t){.speed = 1, .is_host = true};
  WEIR_TRY(measure_products(runtime->pool, &out_rates->flops));
  WEIR_TRY(measure_memory(&out_rates->bytes));
  WEIR_TRY(measure_more(&trials, 0, 0, &more));
  out_rates->node_ns = WEIR_MAX(more.step_ns, 1);
  out_rates->copy_bytes = out_rates->bytes;
  return NULL;
}

weir_status_t* weir_rates_measure(weir_runtime_t* runtime, const weir_registry_t* registry,
                                  weir_rates_t* out_rates) {
  weir_rates_t cpu;
  trials_t trials = {.runtime = runtime, .registry = registry};
  WEIR_TRY(weir_rates_measure_cpu(runtime, registry, &cpu));
  weir_rates_init(runtime, out_rates);
  for (int i = 0; i < runtime->device_count; ++i) {
    out_rates[i].flops = cpu.flops;
    out_rates[i].bytes = out_rates[i].copy_bytes = cpu.bytes;
    out_rates[i].node_ns = cpu.node_ns;
    WEIR_TRY(measure_device(&trials, i, &out_rates[i]));
  }
  level(runtime, out_rates);
  return NULL;
}

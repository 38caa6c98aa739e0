// rows.c — A plug-in with what clamp.c does without: a list of outputs whose shapes depend on an
// input in the host's memory; state; an asynchronous kernel that can be cancelled.
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <weir/plugin.h>

// ---- SplitRows: x cut along its rows into as many parts as there are sizes ----

static weir_status_t* split_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t *x = weir_plugin_shape_at(ctx, 0), *row = NULL, *part = NULL;
  const weir_tensor_t* sizes = weir_plugin_shape_value(ctx, 1);  // NULL where not constant
  int first = 0, count = 0;
  WEIR_TRY(weir_plugin_shape_at_least(ctx, x, 1));
  WEIR_TRY(weir_plugin_shape_with_rank(ctx, weir_plugin_shape_at(ctx, 1), 1, NULL));
  WEIR_TRY(weir_plugin_output_range(weir_plugin_shape_attrs(ctx), "parts", &first, &count));
  const int rank = weir_plugin_shape_rank(x);
  if (rank < 0) return NULL;  // nothing can be said
  WEIR_TRY(weir_plugin_shape_sub(ctx, x, 1, rank, &row));
  const bool is_known = sizes && weir_tensor_count(sizes) == count;
  for (int i = 0; i < count; ++i) {
    const int64_t size = is_known ? ((const int64_t*)weir_tensor_data(sizes))[i] : -1;
    WEIR_TRY(weir_plugin_shape_make(ctx, 1, &size, &part));
    WEIR_TRY(weir_plugin_shape_concat(ctx, part, row, &part));
    WEIR_TRY(weir_plugin_shape_give(ctx, first + i, part));
  }
  return NULL;
}

static weir_status_t* split_compute(weir_kernel_ctx_t* ctx) {
  enum { MAX_PARTS = 64, MAX_RANK = 8 };
  const weir_tensor_t* x = weir_plugin_input(ctx, 0);
  int64_t sizes[MAX_PARTS], dims[MAX_RANK], row_size = 1, at = 0;
  int size_count = 0, first = 0, count = 0;
  const int rank = weir_tensor_rank(x);
  WEIR_TRY(weir_plugin_ints(ctx, 1, sizes, MAX_PARTS, &size_count));
  WEIR_TRY(weir_plugin_output_range(weir_plugin_kernel_attrs(ctx), "parts", &first, &count));
  if (rank < 1 || rank > MAX_RANK) return WEIR_STATUS(INVALID_ARGUMENT, "x is of rank %d", rank);
  if (size_count != count)
    return WEIR_STATUS(INVALID_ARGUMENT, "there are %d sizes for %d parts", size_count, count);
  for (int i = 1; i < rank; ++i) row_size *= dims[i] = weir_tensor_dim(x, i);
  for (int i = 0; i < count; ++i) {
    weir_tensor_t* part = NULL;
    dims[0] = sizes[i];
    if (sizes[i] < 0 || sizes[i] > weir_tensor_dim(x, 0) - at)
      return WEIR_STATUS(INVALID_ARGUMENT, "x has no %lld rows from row %lld on",
                         (long long)sizes[i], (long long)at);
    WEIR_TRY(weir_plugin_output(ctx, first + i, rank, dims, &part));
    const float* from = (const float*)weir_tensor_data(x) + at * row_size;
    if (weir_tensor_count(part)) memcpy(weir_tensor_data(part), from, weir_tensor_byte_size(part));
    at += sizes[i];
  }
  return NULL;
}

// ---- RunningMean: the mean of a start and of all that came along, in all steps of a session ----

typedef struct mean_t {
  pthread_mutex_t mu;
  double sum, count;  // guarded by mu
} mean_t;

static weir_status_t* mean_init(const weir_kernel_init_t* init, void* state) {
  mean_t* mean = state;
  float start = 0;
  pthread_mutex_init(&mean->mu, NULL);
  WEIR_TRY(weir_plugin_attr_float(weir_plugin_init_attrs(init), "start", &start));
  mean->sum = start;
  mean->count = 1;
  return NULL;
}

static void mean_deinit(void* state) { pthread_mutex_destroy(&((mean_t*)state)->mu); }

static weir_status_t* mean_compute(weir_kernel_ctx_t* ctx) {
  mean_t* mean = weir_plugin_state(ctx);
  const weir_tensor_t* x = weir_plugin_input(ctx, 0);
  const float* values = weir_tensor_data(x);
  weir_tensor_t* y = NULL;
  WEIR_TRY(weir_plugin_output(ctx, 0, 0, NULL, &y));
  pthread_mutex_lock(&mean->mu);
  for (int64_t i = 0; i < weir_tensor_count(x); ++i) mean->sum += values[i];
  mean->count += (double)weir_tensor_count(x);
  *(float*)weir_tensor_data(y) = (float)(mean->sum / mean->count);
  pthread_mutex_unlock(&mean->mu);
  return NULL;
}

// ---- Delay: x, some milliseconds later. No thread of the session waits meanwhile. ----

typedef struct delay_t {
  weir_kernel_ctx_t* ctx;
  weir_done_t done;
  struct timespec end;
  pthread_mutex_t mu;
  pthread_cond_t changed;
  bool is_cancelled;  // guarded by mu
} delay_t;

static void delay_cancel(void* arg) {
  delay_t* delay = arg;
  pthread_mutex_lock(&delay->mu);
  delay->is_cancelled = true;
  pthread_cond_signal(&delay->changed);
  pthread_mutex_unlock(&delay->mu);
}

static void* delay_wait(void* arg) {
  delay_t* delay = arg;
  const weir_done_t done = delay->done;
  const uint64_t token = weir_plugin_on_cancel(delay->ctx, delay_cancel, delay);
  if (!token && weir_plugin_is_cancelled(delay->ctx)) delay_cancel(delay);
  pthread_mutex_lock(&delay->mu);
  for (int error = 0; !delay->is_cancelled && error != ETIMEDOUT;)
    error = pthread_cond_timedwait(&delay->changed, &delay->mu, &delay->end);
  pthread_mutex_unlock(&delay->mu);
  if (token) weir_plugin_off_cancel(delay->ctx, token);  // nobody touches |delay| from here on
  weir_status_t* status = delay->is_cancelled ? WEIR_STATUS(CANCELLED, "the delay was cancelled")
                                              : weir_plugin_pass(delay->ctx, 0, 0);
  pthread_cond_destroy(&delay->changed);
  pthread_mutex_destroy(&delay->mu);
  free(delay);
  weir_plugin_done(done, status);
  return NULL;
}

static void delay_start(weir_kernel_ctx_t* ctx, weir_done_t done) {
  int64_t ms = 0;
  pthread_t thread;
  delay_t* delay = calloc(1, sizeof(*delay));
  weir_status_t* status = delay ? weir_plugin_attr_int(weir_plugin_kernel_attrs(ctx), "ms", &ms)
                                : WEIR_STATUS(RESOURCE_EXHAUSTED, "there is no memory for a delay");
  if (!status) {
    delay->ctx = ctx;
    delay->done = done;
    clock_gettime(CLOCK_REALTIME, &delay->end);
    delay->end.tv_sec += ms / 1000 + (delay->end.tv_nsec + ms % 1000 * 1000000) / 1000000000;
    delay->end.tv_nsec = (delay->end.tv_nsec + ms % 1000 * 1000000) % 1000000000;
    pthread_mutex_init(&delay->mu, NULL);
    pthread_cond_init(&delay->changed, NULL);
    if (pthread_create(&thread, NULL, delay_wait, delay) == 0) {
      pthread_detach(thread);
      return;
    }
    status = WEIR_STATUS(RESOURCE_EXHAUSTED, "there is no thread for a delay");
  }
  free(delay);
  weir_plugin_done(done, status);
}

// ---- the plug-in ----

static const weir_plugin_kernel_t split_kernels[] = {
    {.device = "CPU", .compute = split_compute, .host_inputs = "sizes"}, {0}};
static const weir_plugin_kernel_t mean_kernels[] = {{.device = "CPU",
                                                     .compute = mean_compute,
                                                     .state_size = sizeof(mean_t),
                                                     .init = mean_init,
                                                     .deinit = mean_deinit},
                                                    {0}};
static const weir_plugin_kernel_t delay_kernels[] = {
    {.device = "CPU", .compute_async = delay_start}, {0}};
static const weir_plugin_op_t ops[] = {{.name = "SplitRows",
                                        .attrs = "N: int >= 1",
                                        .inputs = "x: float; sizes: int64",
                                        .outputs = "parts: N * float",
                                        .summary = "Cuts x along its rows into N parts",
                                        .flags = WEIR_PLUGIN_NO_GRADIENT,
                                        .infer_shape = split_shape,
                                        .kernels = split_kernels},
                                       {.name = "RunningMean",
                                        .attrs = "start: float = 0.0",
                                        .inputs = "x: float",
                                        .outputs = "mean: float",
                                        .summary = "The mean of all numbers it has seen",
                                        .flags = WEIR_PLUGIN_STATEFUL | WEIR_PLUGIN_NO_GRADIENT,
                                        .infer_shape = weir_plugin_shape_scalar,
                                        .kernels = mean_kernels},
                                       {.name = "Delay",
                                        .attrs = "T: type; ms: int >= 0",
                                        .inputs = "x: T",
                                        .outputs = "y: T",
                                        .summary = "Its input, some milliseconds later",
                                        .flags = WEIR_PLUGIN_STATEFUL,
                                        .infer_shape = weir_plugin_shape_unchanged,
                                        .kernels = delay_kernels},
                                       {0}};

const weir_plugin_t* weir_plugin_modules(void) {
  static const weir_plugin_t plugin = {.abi = WEIR_PLUGIN_ABI, .name = "rows", .ops = ops};
  return &plugin;
}

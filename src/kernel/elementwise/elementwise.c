// elementwise.c — Broadcasting: merging dimensions, and running loops over what is left on the
// pool.
#include "kernel/elementwise/elementwise.h"

// Below this much work a call is not worth looking at the pool for.
#define SERIAL_NS 20000.0
// Inner runs shorter than this are gathered into blocks first, so that the loops have something to
// vectorise.
#define SHORT_RUN 32
#define BLOCK_BYTES 2048

weir_dtype_t weir_result_type(weir_result_t result, weir_dtype_t dtype) {
  bool is_double = dtype == WEIR_DTYPE_DOUBLE || dtype == WEIR_DTYPE_COMPLEX128;
  switch (result) {
    case WEIR_RESULT_BOOL: return WEIR_DTYPE_BOOL;
    case WEIR_RESULT_BYTE: return WEIR_DTYPE_UINT8;
    case WEIR_RESULT_PART: return is_double ? WEIR_DTYPE_DOUBLE : WEIR_DTYPE_FLOAT;
    case WEIR_RESULT_PAIR: return is_double ? WEIR_DTYPE_COMPLEX128 : WEIR_DTYPE_COMPLEX64;
    default: return dtype;
  }
}

// ---- equal shapes ----

typedef struct unary_job_t {
  weir_unary_fn_t fn;
  const char* x;
  char* y;
  size_t size;
  size_t out_size;
} unary_job_t;

static void unary_range(void* arg, int64_t begin, int64_t end) {
  const unary_job_t* job = arg;
  job->fn(job->x + (size_t)begin * job->size, job->y + (size_t)begin * job->out_size, end - begin);
}

void weir_unary_apply(weir_pool_t* pool, weir_unary_fn_t fn, const void* x, size_t size, void* y,
                      size_t out_size, int64_t n, double cost) {
  if (!pool || (double)n * cost < SERIAL_NS) {
    fn(x, y, n);
    return;
  }
  unary_job_t job = {.fn = fn, .x = x, .y = y, .size = size, .out_size = out_size};
  weir_pool_for(pool, n, cost, unary_range, &job);
}

typedef struct binary_job_t {
  const weir_binary_run_t* run;
  const weir_broadcast_t* plan;
  weir_span_t span;
  atomic_bool is_bad;
} binary_job_t;

static void binary_range(void* arg, int64_t begin, int64_t end) {
  binary_job_t* job = arg;
  const weir_binary_run_t* run = job->run;
  size_t offset = (size_t)begin * run->size;
  const char* x = (const char*)run->x + (job->span == WEIR_SPAN_Y ? 0 : offset);
  const char* y = (const char*)run->y + (job->span == WEIR_SPAN_X ? 0 : offset);
  bool is_good =
      run->fn(x, y, (char*)run->z + (size_t)begin * run->out_size, end - begin, job->span);
  // Relaxed: the pool's join orders it before the read.
  if (!is_good) atomic_store_explicit(&job->is_bad, true, memory_order_relaxed);
}

bool weir_binary_apply(weir_pool_t* pool, const weir_binary_run_t* run, int64_t n,
                       weir_span_t span) {
  if (!pool || (double)n * run->cost < SERIAL_NS) return run->fn(run->x, run->y, run->z, n, span);
  binary_job_t job = {.run = run, .span = span, .is_bad = false};
  weir_pool_for(pool, n, run->cost, binary_range, &job);
  return !atomic_load_explicit(&job.is_bad, memory_order_relaxed);
}

// ---- planning ----

static int64_t dim_from_end(weir_shape_view_t shape, int i) {
  return i < shape.rank ? shape.dims[shape.rank - 1 - i] : 1;
}

// Fills the result's shape; false when a pair of dimensions does not agree.
static bool broadcast_shape(weir_shape_view_t x, weir_shape_view_t y, weir_broadcast_t* plan) {
  plan->out_rank = WEIR_MAX(x.rank, y.rank);
  plan->count = 1;
  for (int i = 0; i < plan->out_rank; ++i) {
    int64_t a = dim_from_end(x, i);
    int64_t b = dim_from_end(y, i);
    if (a != b && a != 1 && b != 1) return false;
    int64_t dim = a == 1 ? b : a;
    plan->out_dims[plan->out_rank - 1 - i] = dim;
    plan->count *= dim;
  }
  return true;
}

// Adds a dimension in front of what the plan has, merging it when both operands continue as they
// did.
static bool push_dim(weir_broadcast_t* plan, int64_t dim, int64_t x_stride, int64_t y_stride) {
  int last = plan->rank - 1;  // while planning, dimensions stand innermost first
  if (last >= 0 && x_stride == plan->x_strides[last] * plan->dims[last] &&
      y_stride == plan->y_strides[last] * plan->dims[last]) {
    plan->dims[last] *= dim;
    return true;
  }
  if (plan->rank == WEIR_BROADCAST_MAX) return false;
  plan->dims[plan->rank] = dim;
  plan->x_strides[plan->rank] = x_stride;
  plan->y_strides[plan->rank] = y_stride;
  ++plan->rank;
  return true;
}

static void swap(int64_t* a, int64_t* b) {
  int64_t held = *a;
  *a = *b;
  *b = held;
}

bool weir_broadcast_plan(weir_shape_view_t x, weir_shape_view_t y, weir_broadcast_t* out_plan) {
  weir_broadcast_t* plan = out_plan;
  plan->rank = 0;
  if (!broadcast_shape(x, y, plan)) return false;
  int64_t x_size = 1;
  int64_t y_size = 1;
  for (int i = 0; i < plan->out_rank; ++i) {
    int64_t a = dim_from_end(x, i);
    int64_t b = dim_from_end(y, i);
    if (a == 1 && b == 1) continue;
    if (!push_dim(plan, a == 1 ? b : a, a == 1 ? 0 : x_size, b == 1 ? 0 : y_size)) {
      plan->rank = -1;
      return true;
    }
    x_size *= a;
    y_size *= b;
  }
  if (plan->rank == 0 && !push_dim(plan, 1, 1, 1)) return false;
  for (int i = 0, j = plan->rank - 1; i < j; ++i, --j) {
    swap(&plan->dims[i], &plan->dims[j]);
    swap(&plan->x_strides[i], &plan->x_strides[j]);
    swap(&plan->y_strides[i], &plan->y_strides[j]);
  }
  return true;
}

// ---- running ----

// A place in the result and the operands' elements there.
typedef struct cursor_t {
  int64_t index[WEIR_BROADCAST_MAX];
  int64_t x;
  int64_t y;
} cursor_t;

static cursor_t cursor_at(const weir_broadcast_t* plan, int64_t position) {
  cursor_t c = {.x = 0, .y = 0};
  for (int i = plan->rank - 1; i >= 0; --i) {
    c.index[i] = position % plan->dims[i];
    position /= plan->dims[i];
    c.x += c.index[i] * plan->x_strides[i];
    c.y += c.index[i] * plan->y_strides[i];
  }
  return c;
}

void weir_broadcast_at(const weir_broadcast_t* plan, int64_t position, int64_t* out_x,
                       int64_t* out_y) {
  cursor_t c = cursor_at(plan, position);
  *out_x = c.x;
  *out_y = c.y;
}

// Moves on by |n| elements, at most to the end of the innermost dimension.
static void cursor_advance(const weir_broadcast_t* plan, cursor_t* c, int64_t n) {
  int i = plan->rank - 1;
  c->index[i] += n;
  c->x += n * plan->x_strides[i];
  c->y += n * plan->y_strides[i];
  while (i > 0 && c->index[i] == plan->dims[i]) {
    c->x -= plan->dims[i] * plan->x_strides[i];
    c->y -= plan->dims[i] * plan->y_strides[i];
    c->index[i] = 0;
    --i;
    ++c->index[i];
    c->x += plan->x_strides[i];
    c->y += plan->y_strides[i];
  }
}

// Copies |n| elements from |src|, or its first one |n| times.
static char* gather(char* dst, const char* src, int64_t n, bool is_repeated, size_t size) {
  for (int64_t i = 0; i < n; ++i, dst += size)
    memcpy(dst, src + (is_repeated ? 0 : (size_t)i * size), size);
  return dst;
}

WEIR_INLINE void gather_range(const weir_broadcast_t* plan, int64_t position, int64_t n,
                              const char* y, size_t size, char* out) {
  const int last = plan->rank - 1;
  const bool is_repeated = plan->y_strides[last] == 0;
  cursor_t c = cursor_at(plan, position);
  while (n > 0) {
    int64_t run = WEIR_MIN(plan->dims[last] - c.index[last], n);
    const char* from = y + (size_t)c.y * size;
    if (is_repeated) out = gather(out, from, run, true, size);
    else out = (char*)memcpy(out, from, (size_t)run * size) + (size_t)run * size;
    cursor_advance(plan, &c, run);
    n -= run;
  }
}

void weir_broadcast_gather(const weir_broadcast_t* plan, int64_t position, int64_t n, const void* y,
                           size_t size, void* out) {
  switch (size) {
    case 1: gather_range(plan, position, n, y, 1, out); return;
    case 2: gather_range(plan, position, n, y, 2, out); return;
    case 4: gather_range(plan, position, n, y, 4, out); return;
    case 8: gather_range(plan, position, n, y, 8, out); return;
    default: gather_range(plan, position, n, y, size, out); return;
  }
}

WEIR_INLINE bool range_gathered(const binary_job_t* job, int64_t begin, int64_t end, size_t size) {
  const weir_broadcast_t* plan = job->plan;
  const weir_binary_run_t* run = job->run;
  _Alignas(64) char x[BLOCK_BYTES];
  _Alignas(64) char y[BLOCK_BYTES];
  const int64_t block = BLOCK_BYTES / (int64_t)size;
  const int last = plan->rank - 1;
  const bool x_repeated = plan->x_strides[last] == 0;
  const bool y_repeated = plan->y_strides[last] == 0;
  cursor_t c = cursor_at(plan, begin);
  bool is_good = true;
  while (begin < end) {
    int64_t wanted = WEIR_MIN(block, end - begin);
    char* x_next = x;
    char* y_next = y;
    for (int64_t filled = 0; filled < wanted;) {
      int64_t n = WEIR_MIN(plan->dims[last] - c.index[last], wanted - filled);
      x_next = gather(x_next, (const char*)run->x + (size_t)c.x * size, n, x_repeated, size);
      y_next = gather(y_next, (const char*)run->y + (size_t)c.y * size, n, y_repeated, size);
      cursor_advance(plan, &c, n);
      filled += n;
    }
    is_good &= run->fn(x, y, (char*)run->z + (size_t)begin * run->out_size, wanted, WEIR_SPAN_BOTH);
    begin += wanted;
  }
  return is_good;
}

static bool range_short(const binary_job_t* job, int64_t begin, int64_t end) {
  switch (job->run->size) {
    case 1: return range_gathered(job, begin, end, 1);
    case 2: return range_gathered(job, begin, end, 2);
    case 4: return range_gathered(job, begin, end, 4);
    case 8: return range_gathered(job, begin, end, 8);
    default: return range_gathered(job, begin, end, 16);
  }
}

static bool range_long(const binary_job_t* job, int64_t begin, int64_t end) {
  const weir_broadcast_t* plan = job->plan;
  const weir_binary_run_t* run = job->run;
  const int last = plan->rank - 1;
  weir_span_t span = plan->x_strides[last] == 0   ? WEIR_SPAN_Y
                     : plan->y_strides[last] == 0 ? WEIR_SPAN_X
                                                  : WEIR_SPAN_BOTH;
  cursor_t c = cursor_at(plan, begin);
  bool is_good = true;
  while (begin < end) {
    int64_t n = WEIR_MIN(plan->dims[last] - c.index[last], end - begin);
    is_good &= run->fn((const char*)run->x + (size_t)c.x * run->size,
                       (const char*)run->y + (size_t)c.y * run->size,
                       (char*)run->z + (size_t)begin * run->out_size, n, span);
    cursor_advance(plan, &c, n);
    begin += n;
  }
  return is_good;
}

static void broadcast_range(void* arg, int64_t begin, int64_t end) {
  binary_job_t* job = arg;
  bool is_short = job->plan->dims[job->plan->rank - 1] < SHORT_RUN && job->plan->rank > 1;
  bool is_good = is_short ? range_short(job, begin, end) : range_long(job, begin, end);
  // Relaxed: the pool's join orders it before the read.
  if (!is_good) atomic_store_explicit(&job->is_bad, true, memory_order_relaxed);
}

bool weir_broadcast_apply(weir_pool_t* pool, const weir_broadcast_t* plan,
                          const weir_binary_run_t* run) {
  if (plan->count == 0) return true;
  binary_job_t job = {.run = run, .plan = plan, .is_bad = false};
  double cost = run->cost + 0.5;
  if (!pool || (double)plan->count * cost < SERIAL_NS) {
    broadcast_range(&job, 0, plan->count);
  } else {
    weir_pool_for(pool, plan->count, cost, broadcast_range, &job);
  }
  return !atomic_load_explicit(&job.is_bad, memory_order_relaxed);
}

// simulation.c — The events of a simulated cluster, in the order of time, and what each leads to.
#include "simulation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// What happens to a worker's message to or from one server, one after the other; COMPUTED and BEGIN
// are of the worker alone.
typedef enum stage_t {
  BEGIN,        // the worker begins a step
  ASKED,        // the request is at the server
  READ,         // the server's processor has read its part
  SENT,         // it has left the server's link
  FETCHED,      // and gone through the worker's
  COMPUTED,     // the worker has its gradient
  HANDED_OUT,   // a part has left the worker's link
  HANDED_IN,    // and gone through the server's
  APPLIED,      // the server's processor has applied it
  ACKNOWLEDGED  // the worker knows
} stage_t;

typedef struct event_t {
  double at;
  uint64_t number;  // of those at one time the first made comes first
  int worker, server;
  stage_t stage;
} event_t;

typedef struct worker_t {
  double processor, in, out;  // when each is free
  double began;
  int64_t step;     // of the parameters that it computes from
  int missing;      // parts that it waits for
  bool is_waiting;  // for the next step
} worker_t;

typedef struct server_t {
  double processor, in, out;
} server_t;

typedef struct simulation_t {
  const cluster_model_t* model;
  event_t* heap;
  size_t count, capacity;
  uint64_t numbers, random;
  worker_t* workers;
  server_t* servers;
  double* cores;    // when each is free
  double* times;    // of the steps counted
  int64_t skipped;  // steps before they count
  int64_t step;     // of the parameters
  int given;        // gradients of this step
  int64_t timed;    // steps whose time was taken, with those skipped
  double step_began, counted_from, now;
  int64_t late, taken;
  bool lacks_memory;
} simulation_t;

// ---- the heap of events ----

static bool is_before(const event_t* a, const event_t* b) {
  return a->at < b->at || (a->at == b->at && a->number < b->number);
}

static void swap(event_t* a, event_t* b) {
  event_t kept = *a;
  *a = *b;
  *b = kept;
}

static void push(simulation_t* s, double at, int worker, int server, stage_t stage) {
  if (s->count == s->capacity) {
    const size_t capacity = s->capacity ? 2 * s->capacity : 1024;
    event_t* heap = realloc(s->heap, capacity * sizeof(*heap));
    if (!heap) {
      s->lacks_memory = true;
      return;
    }
    s->heap = heap;
    s->capacity = capacity;
  }
  size_t i = s->count++;
  s->heap[i] = (event_t){at, s->numbers++, worker, server, stage};
  for (; i > 0 && is_before(&s->heap[i], &s->heap[(i - 1) / 2]); i = (i - 1) / 2)
    swap(&s->heap[i], &s->heap[(i - 1) / 2]);
}

static event_t pop(simulation_t* s) {
  event_t first = s->heap[0];
  s->heap[0] = s->heap[--s->count];
  for (size_t i = 0, least;; i = least) {
    least = i;
    for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < s->count; ++child) {
      if (is_before(&s->heap[child], &s->heap[least])) least = child;
    }
    if (least == i) return first;
    swap(&s->heap[i], &s->heap[least]);
  }
}

// ---- chance ----

// Uniform in (0, 1]: SplitMix64.
static double draw(simulation_t* s) {
  uint64_t z = s->random += UINT64_C(0x9E3779B97F4A7C15);
  z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
  return ((double)((z ^ z >> 31) >> 11) + 1) * 0x1p-53;
}

static double compute_time(simulation_t* s) {
  const cluster_model_t* m = s->model;
  const double turn = 6.283185307179586 * draw(s), radius = sqrt(-2 * log(draw(s)));
  double seconds = m->compute * exp(m->spread * radius * cos(turn));
  if (draw(s) <= m->slow_share) seconds *= m->slow_factor;
  return seconds;
}

// ---- what is used by one at a time ----

// When |seconds| of it are over that are asked for now.
static double use(const simulation_t* s, double* free_at, double seconds) {
  *free_at = fmax(*free_at, s->now) + seconds;
  return *free_at;
}

static double use_processor(const simulation_t* s, double* own, double seconds) {
  if (s->model->cores == 0) return use(s, own, seconds);
  int first = 0;
  for (int i = 1; i < s->model->cores; ++i) {
    if (s->cores[i] < s->cores[first]) first = i;
  }
  return use(s, &s->cores[first], seconds);
}

// On one machine a copy is made once: by who receives.
static double use_link(const simulation_t* s, double* own, double bytes, bool receives) {
  const double seconds = isinf(s->model->bandwidth) ? 0 : bytes / s->model->bandwidth;
  if (s->model->cores == 0) return use(s, own, seconds);
  return receives && seconds > 0 ? use_processor(s, own, seconds) : s->now;
}

// ---- steps ----

static void count_step(simulation_t* s, double began) {
  const int64_t i = s->timed++ - s->skipped;
  if (i < 0) s->counted_from = s->now;
  else if (i < s->model->steps) s->times[i] = s->now - began;
}

// The parameters have moved: workers that have nothing to do begin the next step.
static void end_step(simulation_t* s) {
  ++s->step;
  s->given = 0;
  count_step(s, s->step_began);
  s->step_began = s->now;
  for (int i = 0; i < s->model->workers + s->model->backups; ++i) {
    if (!s->workers[i].is_waiting) continue;
    s->workers[i].is_waiting = false;
    push(s, s->now + s->model->latency, i, 0, BEGIN);
  }
}

// All of a worker's gradient is there.
static void take_gradient(simulation_t* s, int index) {
  worker_t* worker = &s->workers[index];
  if (!s->model->is_synchronous) {
    count_step(s, worker->began);
    push(s, s->now, index, 0, BEGIN);
    return;
  }
  const bool counts = worker->step == s->step;
  s->taken += counts;
  s->late += !counts;
  worker->is_waiting = counts;
  if (!counts) push(s, s->now, index, 0, BEGIN);
  else if (++s->given == s->model->workers) end_step(s);
}

// ---- what an event leads to ----

static void to_all(simulation_t* s, int worker, stage_t stage, double bytes) {
  worker_t* w = &s->workers[worker];
  w->missing = s->model->servers;
  for (int i = 0; i < s->model->servers; ++i) {
    const double left = stage == HANDED_OUT ? use_link(s, &w->out, bytes, false) : s->now;
    push(s, left + s->model->latency, worker, i, stage);
  }
}

static void handle(simulation_t* s, const event_t* e) {
  const cluster_model_t* m = s->model;
  const double fetched = m->fetched / m->servers, pushed = m->pushed / m->servers;
  worker_t* worker = &s->workers[e->worker];
  server_t* server = &s->servers[e->server];
  double at = s->now;
  switch (e->stage) {
    case BEGIN:
      worker->began = s->now;
      worker->step = s->step;
      to_all(s, e->worker, ASKED, 0);
      return;
    case ASKED: at = use_processor(s, &server->processor, m->request); break;
    case READ: at = use_link(s, &server->out, fetched, false) + m->latency; break;
    case SENT: at = use_link(s, &worker->in, fetched, true); break;
    case FETCHED:
      if (--worker->missing > 0) return;
      at = use_processor(s, &worker->processor, compute_time(s));
      break;
    case COMPUTED: to_all(s, e->worker, HANDED_OUT, pushed); return;
    case HANDED_OUT: at = use_link(s, &server->in, pushed, true); break;
    case HANDED_IN:
      at = use_processor(s, &server->processor, m->request + pushed * m->apply);
      break;
    case APPLIED: at += m->latency; break;
    case ACKNOWLEDGED:
      if (--worker->missing == 0) take_gradient(s, e->worker);
      return;
  }
  push(s, at, e->worker, e->server, e->stage + 1);
}

// ---- all of it ----

static int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double quantile(const simulation_t* s, double share) {
  return s->times[(int)(share * (s->model->steps - 1) + 0.5)];
}

static bool open_simulation(simulation_t* s) {
  const cluster_model_t* m = s->model;
  const int workers = m->workers + m->backups;
  s->workers = calloc((size_t)workers, sizeof(*s->workers));
  s->servers = calloc((size_t)m->servers, sizeof(*s->servers));
  s->cores = calloc((size_t)m->cores + 1, sizeof(*s->cores));
  s->times = calloc((size_t)m->steps, sizeof(*s->times));
  if (!s->workers || !s->servers || !s->cores || !s->times) return false;
  s->random = m->seed;
  s->skipped = m->steps / 10 + (m->is_synchronous ? 1 : workers);
  for (int i = 0; i < workers; ++i) push(s, 0, i, 0, BEGIN);
  return true;
}

static void play(simulation_t* s) {
  while (s->timed < s->skipped + s->model->steps && !s->lacks_memory) {
    const event_t event = pop(s);
    s->now = event.at;
    handle(s, &event);
  }
}

bool simulate_cluster(const cluster_model_t* model, simulated_t* out_result) {
  simulation_t s = {.model = model};
  const bool is_open = open_simulation(&s);
  if (is_open) play(&s);
  const bool is_good = is_open && !s.lacks_memory;
  if (is_good) {
    qsort(s.times, (size_t)model->steps, sizeof(*s.times), by_size);
    *out_result =
        (simulated_t){.median = quantile(&s, 0.5),
                      .p10 = quantile(&s, 0.1),
                      .p90 = quantile(&s, 0.9),
                      .steps_per_second = model->steps / (s.now - s.counted_from),
                      .dropped = s.late ? (double)s.late / (double)(s.late + s.taken) : 0};
  }
  free(s.heap);
  free(s.workers);
  free(s.servers);
  free(s.cores);
  free(s.times);
  return is_good;
}

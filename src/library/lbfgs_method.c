// lbfgs_method.c — L-BFGS (Nocedal 1980): the inverse of the Hessian is never formed; its product
// with the gradient comes from the last steps and what they changed in the gradient. The length of
// a step fulfils the strong Wolfe conditions (Nocedal and Wright, Numerical Optimization,
// chapter 3.5), which keep what is remembered positive definite.
#include "lbfgs_method.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double kDecrease = 1e-4;  // share of the decrease that the slope promises
static const double kCurvature = 0.9;  // share of the slope that may be left
enum { MAX_EXPANSIONS = 20, MAX_ZOOMS = 30 };

// A place on the line.
typedef struct place_t {
  double at, value, slope;
} place_t;

typedef struct method_t {
  lbfgs_fn_t fn;
  void* arg;
  const lbfgs_limits_t* limits;
  size_t n;
  double *x, *gradient, *direction;  // x: the caller's
  double *trial, *trial_gradient;    // where the function was last computed
  double trial_value, trial_at;
  double *steps, *changes,
      *weights;  // of the last |count| iterations; weights: 1 / (step · change)
  double* alphas;
  int count, newest;
  double value;
  int evaluations, iterations;
} method_t;

// ---- vectors ----

static double dot(const double* a, const double* b, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

static void add_scaled(double* to, double factor, const double* from, size_t n) {
  for (size_t i = 0; i < n; ++i) to[i] += factor * from[i];
}

static double largest(const double* a, size_t n) {
  double most = 0;
  for (size_t i = 0; i < n; ++i) most = fmax(most, fabs(a[i]));
  return most;
}

// ---- along the line ----

static weir_status_t* look(method_t* m, double at, place_t* out_place) {
  for (size_t i = 0; i < m->n; ++i) m->trial[i] = m->x[i] + at * m->direction[i];
  weir_status_t* status = m->fn(m->arg, m->trial, &m->trial_value, m->trial_gradient);
  if (status) return status;
  m->trial_at = at;
  ++m->evaluations;
  double slope = dot(m->trial_gradient, m->direction, m->n);
  bool is_finite = isfinite(m->trial_value) && isfinite(slope);
  *out_place = (place_t){at, is_finite ? m->trial_value : INFINITY, is_finite ? slope : INFINITY};
  return NULL;
}

static bool may_look(const method_t* m) { return m->evaluations < m->limits->max_evaluations; }

static bool is_low(const place_t* start, const place_t* place) {
  return place->value <= start->value + kDecrease * place->at * start->slope;
}
static bool is_flat(const place_t* start, const place_t* place) {
  return fabs(place->slope) <= -kCurvature * start->slope;
}

// The minimum of the cubic through both ends and their slopes, kept away from them; else the
// middle.
static double between(const place_t* low, const place_t* high) {
  double width = high->at - low->at, middle = low->at + width / 2;
  if (!isfinite(high->value) || !isfinite(high->slope)) return middle;
  double a = low->slope + high->slope - 3 * (low->value - high->value) / (low->at - high->at);
  double square = a * a - low->slope * high->slope;
  if (!(square >= 0)) return middle;
  double b = copysign(sqrt(square), width);
  double at = high->at - width * (high->slope + b - a) / (high->slope - low->slope + 2 * b);
  double share = (at - low->at) / width;
  return share > 0.05 && share < 0.95 ? at : middle;
}

// Narrows an interval whose lower end |low| fulfils the first condition. |out_at|: 0, nothing
// found.
static weir_status_t* zoom(method_t* m, const place_t* start, place_t low, place_t high,
                           double* out_at) {
  for (int i = 0; i < MAX_ZOOMS && may_look(m); ++i) {
    place_t place;
    weir_status_t* status = look(m, between(&low, &high), &place);
    if (status) return status;
    if (!is_low(start, &place) || place.value >= low.value) {
      high = place;
      continue;
    }
    if (is_flat(start, &place)) {
      *out_at = place.at;
      return NULL;
    }
    if (place.slope * (high.at - low.at) >= 0) high = low;
    low = place;
  }
  *out_at = low.at;  // lower than the start, if only not flat
  return NULL;
}

// How far to go; 0: nowhere.
static weir_status_t* search(method_t* m, double first, double* out_at) {
  place_t start = {0, m->value, dot(m->gradient, m->direction, m->n)}, before = start;
  double at = first;
  *out_at = 0;
  for (int i = 0; i < MAX_EXPANSIONS && may_look(m); ++i, at *= 2) {
    place_t place;
    weir_status_t* status = look(m, at, &place);
    if (status) return status;
    if (!is_low(&start, &place) || (i > 0 && place.value >= before.value))
      return zoom(m, &start, before, place, out_at);
    *out_at = at;
    if (is_flat(&start, &place)) return NULL;
    if (place.slope >= 0) return zoom(m, &start, place, before, out_at);
    before = place;
  }
  return NULL;
}

// ---- the direction ----

static double* row(const method_t* m, double* rows, int age) {
  int at = (m->newest - age + m->limits->memory) % m->limits->memory;
  return rows + (size_t)at * m->n;
}
static double* weight(const method_t* m, int age) {
  return &m->weights[(m->newest - age + m->limits->memory) % m->limits->memory];
}

// The gradient times what is known of the inverse Hessian, downhill.
static void set_direction(method_t* m) {
  double* d = m->direction;
  for (size_t i = 0; i < m->n; ++i) d[i] = -m->gradient[i];
  for (int age = 0; age < m->count; ++age) {
    m->alphas[age] = *weight(m, age) * dot(row(m, m->steps, age), d, m->n);
    add_scaled(d, -m->alphas[age], row(m, m->changes, age), m->n);
  }
  if (m->count > 0) {
    const double* change = row(m, m->changes, 0);
    double scale = 1 / (*weight(m, 0) * dot(change, change, m->n));
    for (size_t i = 0; i < m->n; ++i) d[i] *= scale;
  }
  for (int age = m->count - 1; age >= 0; --age) {
    double beta = *weight(m, age) * dot(row(m, m->changes, age), d, m->n);
    add_scaled(d, m->alphas[age] - beta, row(m, m->steps, age), m->n);
  }
}

// Goes to the trial, and remembers the step where the curvature along it is positive.
static void move(method_t* m) {
  int next = (m->newest + 1) % m->limits->memory;
  double* step = m->steps + (size_t)next * m->n;
  double* change = m->changes + (size_t)next * m->n;
  for (size_t i = 0; i < m->n; ++i) {
    step[i] = m->trial[i] - m->x[i];
    change[i] = m->trial_gradient[i] - m->gradient[i];
  }
  double product = dot(step, change, m->n);
  memcpy(m->x, m->trial, m->n * sizeof(double));
  memcpy(m->gradient, m->trial_gradient, m->n * sizeof(double));
  m->value = m->trial_value;
  if (!(product > 1e-14 * dot(change, change, m->n))) {
    m->count = 0;  // the row that was written may have been one of them
    return;
  }
  m->weights[next] = 1 / product;
  m->newest = next;
  if (m->count < m->limits->memory) ++m->count;
}

// ---- iterations ----

// Takes the place |at|, where the function may have been computed before another; false: it is no
// lower there.
static weir_status_t* take(method_t* m, double at, bool* out_is_lower) {
  place_t place;
  *out_is_lower = false;
  if (at == 0) return NULL;
  weir_status_t* status = m->trial_at == at ? NULL : look(m, at, &place);
  if (status) return status;
  *out_is_lower = isfinite(m->trial_value) && m->trial_value < m->value;
  if (*out_is_lower) move(m);
  return NULL;
}

// One iteration. |out_goes_on|: there may be another.
static weir_status_t* iterate(method_t* m, weir_lbfgs_end_t* out_end, bool* out_goes_on) {
  const lbfgs_limits_t* limits = m->limits;
  double steepest = largest(m->gradient, m->n), before = m->value, at = 0;
  bool is_lower = false;
  *out_goes_on = false;
  *out_end = WEIR_LBFGS_GRADIENT;
  if (steepest <= limits->gradient_tolerance) return NULL;
  *out_end = WEIR_LBFGS_ITERATIONS;
  if (m->iterations >= limits->max_iterations) return NULL;
  set_direction(m);
  if (!(dot(m->direction, m->gradient, m->n) < 0)) m->count = 0;
  if (m->count == 0) set_direction(m);
  weir_status_t* status = search(m, m->count > 0 ? 1 : fmin(1, 1 / steepest), &at);
  if (!status) status = take(m, at, &is_lower);
  *out_end = may_look(m) ? WEIR_LBFGS_STUCK : WEIR_LBFGS_EVALUATIONS;
  if (status || !is_lower) return status;
  ++m->iterations;
  *out_end = WEIR_LBFGS_LOSS;
  *out_goes_on = before - m->value > limits->value_tolerance * fmax(1, fabs(m->value));
  if (*out_goes_on || largest(m->gradient, m->n) > limits->gradient_tolerance) return NULL;
  *out_end = WEIR_LBFGS_GRADIENT;
  return NULL;
}

static weir_status_t* run(method_t* m, weir_lbfgs_end_t* out_end) {
  place_t place;
  weir_status_t* status = look(m, 0, &place);
  if (status) return status;
  if (!isfinite(m->trial_value) || !isfinite(dot(m->trial_gradient, m->trial_gradient, m->n)))
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "L-BFGS: loss or gradient are no finite numbers (%g) at the start",
                       m->trial_value);
  m->value = m->trial_value;
  memcpy(m->gradient, m->trial_gradient, m->n * sizeof(double));
  for (bool goes_on = true; goes_on && !status;) status = iterate(m, out_end, &goes_on);
  return status;
}

weir_status_t* weir_library_lbfgs(lbfgs_fn_t fn, void* arg, const lbfgs_limits_t* limits, double* x,
                                  weir_lbfgs_result_t* out_result) {
  enum { VECTORS = 4 };
  size_t n = limits->size, memory = (size_t)limits->memory;
  // What is remembered, four vectors, and two numbers a row.
  size_t rows = 2 * memory + VECTORS;
  double* room = n > SIZE_MAX / sizeof(double) / (rows + 2)
                     ? NULL
                     : calloc(rows * n + 2 * memory, sizeof(double));
  if (!room) return WEIR_STATUS(RESOURCE_EXHAUSTED, "L-BFGS: %zu vectors of %zu numbers", rows, n);
  method_t m = {.fn = fn, .arg = arg, .limits = limits, .n = n, .x = x};
  m.gradient = room;
  m.direction = room + n;
  m.trial = room + 2 * n;
  m.trial_gradient = room + 3 * n;
  m.steps = room + VECTORS * n;
  m.changes = m.steps + memory * n;
  m.weights = m.changes + memory * n;
  m.alphas = m.weights + memory;
  weir_lbfgs_end_t end = WEIR_LBFGS_STUCK;
  weir_status_t* status = run(&m, &end);
  *out_result = (weir_lbfgs_result_t){.loss = m.value,
                                      .max_gradient = largest(m.gradient, n),
                                      .iterations = m.iterations,
                                      .evaluations = m.evaluations,
                                      .end = end};
  free(room);
  return status;
}

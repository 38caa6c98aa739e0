// stress_test.c — Steps that fail, time out, are cancelled, alone or all of a session, at every
// point, in perturbed runs: each ends once, with an outcome it may have, and leaves nothing behind.
//
// WEIR_STRESS_SECONDS says how long (3 if unset), WEIR_STRESS_SEED where to begin: the seed of a
// round that failed repeats it as far as the system's scheduler allows.
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "base/perturb.h"
#include "exec/run.h"
#include "session/session.h"
#include "testing/world.h"

enum { STEPS = 12, WORKERS = 3, DEPTH = 5, TURNS = 6, BRANCHES = 6 };

// ---- the graph: parts that fail where Log gets what is not positive ----

#define FLOAT(key) " attr {key: '" key "' value {type: DT_FLOAT}}"
#define TWO(key) " attr {key: '" key "' value {list {type: DT_FLOAT type: DT_FLOAT}}}"
#define ONE(key) " attr {key: '" key "' value {list {type: DT_FLOAT}}}"
#define ARG(name) " {name: '" name "' type: DT_FLOAT}"
#define FUNC(key, name) " attr {key: '" key "' value {func {name: '" name "'}}}"
#define BOOL(key) " attr {key: '" key "' value {type: DT_BOOL}}"
#define NUMBER(name, value) \
  " node_def {name: '" name "' op: 'Const'" FLOAT("dtype") " attr {key: 'value' value {tensor " \
  "{dtype: DT_FLOAT tensor_shape {} float_val: " value "}}}}"
#define CHECKED_LOG \
  " node_def {name: 'log' op: 'Log' input: 'x'" FLOAT("T") "}"                    \
  " node_def {name: 'check' op: 'CheckNumerics' input: 'log:y:0'" FLOAT("T")      \
  " attr {key: 'message' value {s: 'stress'}}}"

// Down(n, x): n levels of calls, at whose end x is looked at. Loop(n, x): n turns that call Down.
static const char text[] =
    "node {name: 'x' op: 'Placeholder'" FLOAT("dtype") " attr {key: 'shape' value {shape {}}}}"
    "node {name: 'n' op: 'Placeholder'" FLOAT("dtype") " attr {key: 'shape' value {shape {}}}}"
    "node {name: 'down' op: 'PartitionedCall' input: 'n' input: 'x'" TWO("Tin") ONE("Tout")
    FUNC("f", "Down") "}"
    "node {name: 'turns' op: 'While' input: 'n' input: 'x'" TWO("T") FUNC("cond", "Goes")
    FUNC("body", "Turn") "}"
    "library {"
    " function {signature {name: 'Down' input_arg" ARG("n") " input_arg" ARG("x")
    "  output_arg" ARG("r") "}" NUMBER("zero", "0")
    "  node_def {name: 'is_end' op: 'LessEqual' input: 'n' input: 'zero:output:0'" FLOAT("T") "}"
    "  node_def {name: 'if' op: 'If' input: 'is_end:z:0' input: 'n' input: 'x'" BOOL("Tcond")
    TWO("Tin") ONE("Tout") FUNC("then_branch", "End") FUNC("else_branch", "Further") "}"
    "  ret {key: 'r' value: 'if:output:0'}}"
    " function {signature {name: 'End' input_arg" ARG("n") " input_arg" ARG("x")
    "  output_arg" ARG("r") "}" CHECKED_LOG " ret {key: 'r' value: 'check:output:0'}}"
    " function {signature {name: 'Further' input_arg" ARG("n") " input_arg" ARG("x")
    "  output_arg" ARG("r") "}" NUMBER("one", "1")
    "  node_def {name: 'less' op: 'Sub' input: 'n' input: 'one:output:0'" FLOAT("T") "}"
    "  node_def {name: 'rest' op: 'PartitionedCall' input: 'less:z:0' input: 'x'" TWO("Tin")
    ONE("Tout") FUNC("f", "Down") "}"
    "  node_def {name: 'add' op: 'AddV2' input: 'rest:output:0' input: 'one:output:0'" FLOAT("T")
    "} ret {key: 'r' value: 'add:z:0'}}"
    " function {signature {name: 'Goes' input_arg" ARG("n") " input_arg" ARG("x")
    "  output_arg {name: 'r' type: DT_BOOL}}" NUMBER("zero", "0")
    "  node_def {name: 'more' op: 'Greater' input: 'n' input: 'zero:output:0'" FLOAT("T") "}"
    "  ret {key: 'r' value: 'more:z:0'}}"
    " function {signature {name: 'Turn' input_arg" ARG("n") " input_arg" ARG("x")
    "  output_arg" ARG("m") " output_arg" ARG("y") "}" NUMBER("one", "1")
    "  node_def {name: 'less' op: 'Sub' input: 'n' input: 'one:output:0'" FLOAT("T") "}"
    "  node_def {name: 'down' op: 'PartitionedCall' input: 'one:output:0' input: 'x'" TWO("Tin")
    ONE("Tout") FUNC("f", "Down") "}"
    "  node_def {name: 'keep' op: 'Maximum' input: 'x' input: 'down:output:0'" FLOAT("T") "}"
    "  ret {key: 'm' value: 'less:z:0'} ret {key: 'y' value: 'keep:z:0'}}"
    "}";

enum { WIDE, LOOP, DOWN, TURNING, QUEUE, PART_COUNT };

typedef struct stress_t {
  world_t* w;
  weir_edge_t x, n;
  weir_edge_t parts[PART_COUNT];
  weir_session_t* session;
  atomic_int failures;
} stress_t;

static weir_edge_t checked_log(world_t* w, weir_edge_t value) {
  return output(add(w, "CheckNumerics", NULL, WEIR_EDGES(OP(w, "Log", value)),
                    WEIR_ATTRS(weir_attr_string("message", "stress"))),
                0);
}

// Branches side by side; of those, more fail the smaller x is.
static weir_edge_t add_wide(world_t* w, weir_edge_t x) {
  weir_edge_t branches[BRANCHES];
  for (int i = 0; i < BRANCHES; ++i) {
    weir_edge_t less = OP(w, "Sub", x, weir_const_float(w->scope, (float)i));
    branches[i] = OP(w, "Exp", checked_log(w, less));
  }
  return output(add(w, "AddN", NULL, (weir_edges_t){branches, BRANCHES}, WEIR_NO_ATTRS), 0);
}

// Turns side by side that fail from the x-th on.
static weir_edge_t add_frame_loop(world_t* w, weir_edge_t x) {
  loop_nodes_t loop = open_loop(w, "loop", weir_const_int(w->scope, 0),
                                weir_const_float(w->scope, 0), weir_const_int(w->scope, TURNS), 3);
  weir_edge_t bound = add_enter(w, x, "loop", true, 3);
  weir_edge_t turn = output(add(w, "Cast", NULL, WEIR_EDGES(loop.i),
                                WEIR_ATTRS(weir_attr_type("DstT", WEIR_DTYPE_FLOAT))),
                            0);
  weir_edge_t left = OP(w, "Exp", checked_log(w, OP(w, "Sub", bound, turn)));
  close_loop(w, &loop, OP(w, "AddV2", loop.x, left));
  return loop.exit_x;
}

static void build(stress_t* stress, world_t* w) {
  *stress = (stress_t){.w = w};
  import_text(w, text);
  check_ok(weir_graph_find_output(w->graph, "x", &stress->x));
  check_ok(weir_graph_find_output(w->graph, "n", &stress->n));
  check_ok(weir_graph_find_output(w->graph, "down", &stress->parts[DOWN]));
  check_ok(weir_graph_find_output(w->graph, "turns:1", &stress->parts[TURNING]));
  stress->parts[WIDE] = add_wide(w, stress->x);
  stress->parts[LOOP] = add_frame_loop(w, stress->x);
  stress->parts[QUEUE] = OP(w, "Neg", add_queue(w, "q", 1).value);  // nobody puts anything there
}

static float value_of(int part, float x) {
  switch (part) {
    case WIDE: return BRANCHES * x - BRANCHES * (BRANCHES - 1) / 2;
    case LOOP: return TURNS * x - TURNS * (TURNS - 1) / 2;
    case DOWN: return DEPTH + logf(x);
    default: return x;
  }
}

// ---- one step ----

typedef enum fate_t { LEFT_ALONE, FAILS, TIMES_OUT, CANCELLED, FATE_COUNT } fate_t;
typedef enum way_t { ATTENDED, UNATTENDED, PARTIAL, WAY_COUNT } way_t;

typedef struct step_t {
  stress_t* stress;
  fate_t fate;
  way_t way;
  int parts[PART_COUNT];
  int part_count;
  bool waits;  // has the queue's part: ends only when it is ended
  bool is_brief;
  float x;
  uint32_t delay_ns;
  weir_edge_t fetches[PART_COUNT];
  weir_tensor_t* results[PART_COUNT];
  weir_tensor_t *fed_x, *fed_n;
  weir_feed_t feeds[2];
  weir_cancellation_t* cancellation;
  weir_status_t* status;
  weir_mutex_t mu;
  weir_cond_t cond;
  bool is_done;  // guarded by mu
} step_t;

static uint32_t draw(uint64_t* state, uint32_t count) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(*state >> 33) % count;
}

static void step_init(step_t* step, stress_t* stress, uint64_t* chance) {
  memset(step, 0, sizeof(*step));
  step->stress = stress;
  step->fate = draw(chance, FATE_COUNT);
  step->way = draw(chance, WAY_COUNT);
  if (step->way != ATTENDED && step->fate == TIMES_OUT) step->fate = CANCELLED;
  bool may_wait = step->fate == TIMES_OUT || step->fate == CANCELLED;
  for (int part = 0; part < PART_COUNT; ++part) {
    if (draw(chance, 2) == 0 || (part == QUEUE && !may_wait)) continue;
    step->waits |= part == QUEUE;
    step->fetches[step->part_count] = stress->parts[part];
    step->parts[step->part_count++] = part;
  }
  if (step->part_count == 0) {
    step->fetches[0] = stress->parts[DOWN];
    step->parts[step->part_count++] = DOWN;
  }
  step->is_brief = draw(chance, 2);
  step->delay_ns = draw(chance, 4) ? draw(chance, 1000000) : 0;
  step->x = step->fate == FAILS ? -(float)draw(chance, 3) : (float)(10 + draw(chance, 3));
  step->fed_x = make_float(step->x);
  step->fed_n = make_float(DEPTH);
  step->feeds[0] = (weir_feed_t){.edge = stress->x, .tensor = step->fed_x};
  step->feeds[1] = (weir_feed_t){.edge = stress->n, .tensor = step->fed_n};
  check_ok(weir_cancellation_create(&step->cancellation));
  weir_mutex_init(&step->mu);
  weir_cond_init(&step->cond);
}

static void step_free(step_t* step) {
  for (int i = 0; i < step->part_count; ++i) weir_tensor_release(step->results[i]);
  weir_tensor_release(step->fed_x);
  weir_tensor_release(step->fed_n);
  weir_status_destroy(step->status);
  weir_cancellation_destroy(step->cancellation);
  weir_cond_destroy(&step->cond);
  weir_mutex_destroy(&step->mu);
}

static void* cancel_main(void* arg) {
  step_t* step = arg;
  nanosleep(&(struct timespec){.tv_nsec = (long)step->delay_ns}, NULL);
  weir_cancellation_cancel(step->cancellation);
  return NULL;
}

static weir_step_spec_t spec_of(const step_t* step) {
  return (weir_step_spec_t){.feeds = step->feeds,
                            .feed_count = 2,
                            .fetches = step->fetches,
                            .fetch_count = step->part_count};
}

static void run_attended(step_t* step) {
  weir_step_spec_t spec = spec_of(step);
  weir_run_options_t options = {.cancellation = step->cancellation,
                                .timeout_ms = step->fate == TIMES_OUT ? 1 + step->delay_ns % 2 : 0};
  step->status =
      weir_session_run_with(step->stress->session, &spec, &options, step->results, NULL, NULL);
}

static void step_done(void* arg, weir_status_t* take_status) {
  step_t* step = arg;
  weir_mutex_lock(&step->mu);
  if (step->is_done) atomic_fetch_add(&step->stress->failures, 1);
  step->status = take_status;
  step->is_done = true;
  weir_cond_broadcast(&step->cond);
  weir_mutex_unlock(&step->mu);
}

// Nobody waits for it in the executor.
static void run_unattended(step_t* step) {
  weir_session_t* session = step->stress->session;
  weir_step_spec_t spec = spec_of(step);
  weir_plan_t* plan = NULL;
  step->status = weir_session_plan(session, &spec, &plan);
  if (step->status) return;
  weir_tensor_t* args[] = {step->fed_x, step->fed_n};
  weir_run_params_t params = weir_program_step(session->program, plan);
  params.args = args;
  params.rets = step->results;
  params.cancel = weir_cancellation_get(step->cancellation);
  params.is_brief = step->is_brief;
  weir_run_start(&params, (weir_done_t){.fn = step_done, .arg = step});
  weir_mutex_lock(&step->mu);
  while (!step->is_done) weir_cond_wait(&step->cond, &step->mu);
  weir_mutex_unlock(&step->mu);
  weir_plan_release(plan);
}

// Fed in two calls and fetched in a third; cancelled by being destroyed after any of them.
static void run_partial(step_t* step) {
  weir_partial_run_t* partial = NULL;
  weir_step_spec_t spec = spec_of(step);
  step->status = weir_partial_run_create(step->stress->session, &spec, &partial);
  if (step->status) return;
  int calls = step->fate == CANCELLED ? (int)(step->delay_ns % 3) : 3;
  for (int i = 0; i < calls && !step->status; ++i) {
    weir_step_spec_t call = {.feeds = &step->feeds[i], .feed_count = i < 2};
    if (i == 2) call.fetches = step->fetches;
    if (i == 2) call.fetch_count = step->part_count;
    step->status = weir_partial_run_continue(partial, &call, step->results);
  }
  weir_partial_run_destroy(partial);
  if (calls < 3 && !step->status) step->status = WEIR_STATUS(CANCELLED, "destroyed");
}

static bool is_outcome_good(const step_t* step) {
  weir_code_t code = weir_status_code(step->status);
  if (code == WEIR_CANCELLED) return true;  // perhaps with its session
  if (code == WEIR_DEADLINE_EXCEEDED) return step->fate == TIMES_OUT;
  if (code == WEIR_INVALID_ARGUMENT)
    return step->fate == FAILS && strstr(weir_status_message(step->status), "stress");
  if (step->status || step->waits) return false;
  for (int i = 0; i < step->part_count; ++i) {
    float expected = value_of(step->parts[i], step->x);
    if (!step->results[i] || fabsf(float_of(step->results[i]) - expected) > 1e-4f * expected)
      return false;
  }
  return step->fate != FAILS || (step->part_count == 0);
}

static void run_step(stress_t* stress, uint64_t* chance) {
  step_t step;
  pthread_t canceller;
  step_init(&step, stress, chance);
  bool has_canceller = step.fate == CANCELLED && step.way != PARTIAL;
  if (has_canceller) has_canceller = pthread_create(&canceller, NULL, cancel_main, &step) == 0;
  switch (step.way) {
    case UNATTENDED: run_unattended(&step); break;
    case PARTIAL: run_partial(&step); break;
    default: run_attended(&step); break;
  }
  if (has_canceller) pthread_join(canceller, NULL);
  if (!is_outcome_good(&step)) {
    fprintf(stderr, "a step of fate %d, way %d, with %d parts, x %g, ended with %s: %s\n",
            (int)step.fate, (int)step.way, step.part_count, step.x,
            weir_code_name(weir_status_code(step.status)), weir_status_message(step.status));
    atomic_fetch_add(&stress->failures, 1);
  }
  step_free(&step);
}

// ---- rounds ----

typedef struct worker_t {
  stress_t* stress;
  uint64_t chance;
  pthread_t thread;
} worker_t;

static void* worker_main(void* arg) {
  worker_t* worker = arg;
  for (int i = 0; i < STEPS; ++i) run_step(worker->stress, &worker->chance);
  return NULL;
}

static void run_round(stress_t* stress, uint64_t seed) {
  uint64_t chance = seed * UINT64_C(0x9e3779b97f4a7c15);
  worker_t workers[WORKERS];
  weir_perturb_start(draw(&chance, 4) ? seed : 0);
  stress->session = open_session(stress->w, 1 + (int)draw(&chance, 4));
  for (int i = 0; i < WORKERS; ++i) {
    workers[i] = (worker_t){.stress = stress, .chance = chance + (uint64_t)i};
    assert_int_equal(pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]), 0);
  }
  for (uint32_t i = draw(&chance, 3); i > 0; --i) {
    nanosleep(&(struct timespec){.tv_nsec = (long)draw(&chance, 5000000)}, NULL);
    weir_session_cancel(stress->session);
  }
  for (int i = 0; i < WORKERS; ++i) pthread_join(workers[i].thread, NULL);
  weir_session_destroy(stress->session);
  stress->w->session = NULL;
  weir_perturb_start(0);
}

static uint64_t setting(const char* name, uint64_t otherwise) {
  const char* value = getenv(name);
  return value ? strtoull(value, NULL, 0) : otherwise;
}

static void test_steps_end_in_every_way(void** state) {
  stress_t stress;
  build(&stress, *state);
  uint64_t first = setting("WEIR_STRESS_SEED", 1), seed = first;
  int64_t end = weir_clock_ns() + (int64_t)setting("WEIR_STRESS_SECONDS", 3) * 1000000000;
  for (; weir_clock_ns() < end && atomic_load(&stress.failures) == 0; ++seed)
    run_round(&stress, seed);
  printf("%llu steps in rounds %llu to %llu\n",
         (unsigned long long)(seed - first) * STEPS * WORKERS, (unsigned long long)first,
         (unsigned long long)(seed - 1));
  assert_int_equal(atomic_load(&stress.failures), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_steps_end_in_every_way, world_setup, world_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

// run_test.c — Steps that nobody waits for (weir_run_start): blocked ones, cancelled ones, and both
// at the same moment.
#include "exec/run.h"

#include <pthread.h>

#include "base/perturb.h"
#include "session/session.h"
#include "testing/world.h"

// ---- a step and how it ended ----

typedef struct step_t {
  weir_session_t* session;
  weir_plan_t* plan;
  weir_cancel_t* cancel;
  weir_tensor_t* result;
  weir_status_t* status;
  weir_mutex_t mu;
  weir_cond_t cond;
  int done_count;          // guarded by mu
  pthread_t done_thread;   // guarded by mu
  atomic_bool is_started;  // weir_run_start has returned
} step_t;

static void step_init(step_t* step, weir_session_t* session, weir_plan_t* plan,
                      weir_cancel_t* parent) {
  memset(step, 0, sizeof(*step));
  step->session = session;
  step->plan = plan;
  weir_mutex_init(&step->mu);
  weir_cond_init(&step->cond);
  check_ok(weir_cancel_create(parent, &step->cancel));
}

static void step_done(void* arg, weir_status_t* take_status) {
  step_t* step = arg;
  weir_mutex_lock(&step->mu);
  step->status = take_status;
  step->done_thread = pthread_self();
  ++step->done_count;
  weir_cond_broadcast(&step->cond);
  weir_mutex_unlock(&step->mu);
}

static void step_start(step_t* step, bool is_brief) {
  weir_run_params_t params = weir_program_step(step->session->program, step->plan);
  params.rets = &step->result;
  params.cancel = step->cancel;
  params.is_brief = is_brief;
  weir_run_start(&params, (weir_done_t){.fn = step_done, .arg = step});
  memset(&params, 0xff, sizeof(params));  // it was copied
  atomic_store(&step->is_started, true);
}

static bool step_is_done(step_t* step) {
  weir_mutex_lock(&step->mu);
  bool is_done = step->done_count > 0;
  weir_mutex_unlock(&step->mu);
  return is_done;
}

// Waits for the end and frees what the step had, but for the result.
static weir_status_t* step_wait(step_t* step) {
  int64_t deadline = weir_clock_ns() + INT64_C(60000000000);
  weir_mutex_lock(&step->mu);
  while (step->done_count == 0) {
    if (!weir_cond_wait_until(&step->cond, &step->mu, deadline)) break;
  }
  weir_mutex_unlock(&step->mu);
  weir_cancel_destroy(step->cancel);
  weir_cond_destroy(&step->cond);
  weir_mutex_destroy(&step->mu);
  return step->status;
}

static weir_status_t* step_join(step_t* step) {
  weir_status_t* status = step_wait(step);
  assert_int_equal(step->done_count, 1);
  if (status) assert_null(step->result);
  return status;
}

static float step_join_float(step_t* step) {
  check_ok(step_join(step));
  float value = float_of(step->result);
  weir_tensor_release(step->result);
  return value;
}

static weir_plan_t* plan_of(weir_session_t* session, weir_edge_t fetch) {
  weir_plan_t* plan = NULL;
  check_ok(weir_session_plan(session, &(weir_step_spec_t){WEIR_FETCHES(fetch)}, &plan));
  weir_plan_release(plan);  // the session keeps it
  return plan;
}

// A value that passes do not see through.
static weir_edge_t opaque_float(world_t* w, float value) {
  weir_edge_t v = weir_state_variable(w->scope, "opaque", weir_const_float(w->scope, value));
  check_scope(w);
  return v;
}

// x → body → x, |turns| times.
static weir_edge_t add_loop(world_t* w, int turns) {
  loop_nodes_t loop = open_loop(w, "loop", weir_const_int(w->scope, 0),
                                weir_const_float(w->scope, 1), weir_const_int(w->scope, turns), 4);
  close_loop(w, &loop, OP(w, "Neg", loop.x));
  return loop.exit_x;
}

// ---- where a step runs ----

// What needs no other thread is through when the call returns.
static void test_ends_within_the_call(void** state) {
  world_t* w = *state;
  weir_edge_t linear = OP(w, "Neg", opaque_float(w, 3));
  weir_edge_t dynamic = add_loop(w, 5);
  weir_session_t* session = open_session(w, 1);
  check_ok(weir_session_run_target(session, weir_initializer(w->scope)));
  weir_edge_t fetches[] = {linear, dynamic};
  for (int i = 0; i < 2; ++i) {
    step_t step;
    step_init(&step, session, plan_of(session, fetches[i]), NULL);
    assert_int_equal(step.plan->is_linear, i == 0);
    step_start(&step, false);
    assert_true(step_is_done(&step));
    assert_float_equal(step_join_float(&step), (i == 0 ? -3 : -1), 0);
  }
}

// A brief caller does not run what may take long.
static void test_brief_caller_hands_over(void** state) {
  world_t* w = *state;
  if (weir_perturb_is_on()) skip();  // any thread may run it then
  weir_edge_t linear = OP(w, "Neg", OP(w, "Exp", opaque_float(w, 3)));
  weir_session_t* session = open_session(w, 3);
  check_ok(weir_session_run_target(session, weir_initializer(w->scope)));
  step_t step;
  step_init(&step, session, plan_of(session, linear), NULL);
  step_start(&step, true);  // never measured: on a pool thread
  check_ok(step_join(&step));
  assert_false(pthread_equal(step.done_thread, pthread_self()));
  weir_tensor_release(step.result);
  atomic_store(&step.plan->brief_ns, 1000);  // known to be short: here
  step_init(&step, session, step.plan, NULL);
  step_start(&step, true);
  assert_true(step_is_done(&step));
  assert_true(pthread_equal(step.done_thread, pthread_self()));
  check_ok(step_join(&step));
  weir_tensor_release(step.result);
}

static void test_brief_loop(void** state) {
  enum { STEPS = 50 };
  world_t* w = *state;
  weir_edge_t value = add_loop(w, 101);
  weir_session_t* session = open_session(w, 3);
  weir_plan_t* plan = plan_of(session, value);
  step_t steps[STEPS];
  for (int i = 0; i < STEPS; ++i) {
    step_init(&steps[i], session, plan, NULL);
    step_start(&steps[i], true);
  }
  for (int i = 0; i < STEPS; ++i) assert_float_equal(step_join_float(&steps[i]), -1, 0);
}

static void test_error_names_the_node(void** state) {
  world_t* w = *state;
  queue_nodes_t q = add_queue(w, "q", 1);
  weir_session_t* session = open_session(w, 2);
  weir_tensor_t* none = NULL;
  check_ok(weir_session_run(session, &(weir_step_spec_t){WEIR_TARGETS(q.close)}, &none));
  for (int is_brief = 0; is_brief < 2; ++is_brief) {
    step_t step;
    step_init(&step, session, plan_of(session, q.value), NULL);
    step_start(&step, is_brief);
    check_error(step_join(&step), WEIR_OUT_OF_RANGE, "closed");
  }
}

// ---- blocked steps ----

// Many more steps than threads wait for elements; each gets one.
static void test_blocked_steps_hold_no_thread(void** state) {
  enum { STEPS = 60 };
  world_t* w = *state;
  queue_nodes_t q = add_queue(w, "q", STEPS);
  weir_edge_t value = OP(w, "Neg", q.value);
  weir_session_t* session = open_session(w, 2);
  weir_plan_t* plan = plan_of(session, value);
  step_t steps[STEPS];
  for (int i = 0; i < STEPS; ++i) {
    step_init(&steps[i], session, plan, NULL);
    step_start(&steps[i], i % 2);
  }
  for (int i = 0; i < STEPS; ++i) enqueue_float(session, &q, 1);
  float sum = 0;
  for (int i = 0; i < STEPS; ++i) sum += step_join_float(&steps[i]);
  assert_float_equal(sum, -STEPS, 0);
}

static void test_cancelled_while_blocked(void** state) {
  enum { STEPS = 30 };
  world_t* w = *state;
  queue_nodes_t q = add_queue(w, "q", STEPS);
  weir_session_t* session = open_session(w, 3);
  weir_plan_t* plan = plan_of(session, q.value);
  weir_cancel_t* parent = NULL;
  check_ok(weir_cancel_create(NULL, &parent));
  step_t steps[STEPS];
  for (int i = 0; i < STEPS; ++i) {
    step_init(&steps[i], session, plan, parent);
    step_start(&steps[i], i % 2);
    assert_false(step_is_done(&steps[i]));
  }
  for (int i = 0; i < STEPS / 2; ++i) weir_cancel_start(steps[i].cancel);
  weir_cancel_start(parent);  // the rest at once
  for (int i = 0; i < STEPS; ++i) check_error(step_join(&steps[i]), WEIR_CANCELLED, "");
  enqueue_float(session, &q, 5);  // nobody is left that would take it
  assert_float_equal(fetch_float(session, q.value), 5, 0);
  // Cancelled before it starts.
  step_t step;
  step_init(&step, session, plan, parent);
  step_start(&step, true);
  check_error(step_join(&step), WEIR_CANCELLED, "");
  weir_cancel_destroy(parent);
}

// ---- races ----

static void* cancel_main(void* arg) {
  step_t* step = arg;
  weir_cancel_start(step->cancel);
  return NULL;
}

// Each step gets its element from one thread while another cancels it: it ends once, one way or the
// other, and no element is lost.
static void test_end_meets_cancel(void** state) {
  enum { ROUNDS = 300 };
  world_t* w = *state;
  queue_nodes_t q = add_queue(w, "q", ROUNDS);
  weir_edge_t value = OP(w, "Neg", q.value);
  weir_session_t* session = open_session(w, 3);
  weir_plan_t* plan = plan_of(session, value);
  int left = 0;
  for (int i = 0; i < ROUNDS; ++i) {
    step_t step;
    pthread_t thread;
    step_init(&step, session, plan, NULL);
    step_start(&step, i % 2);
    assert_int_equal(pthread_create(&thread, NULL, cancel_main, &step), 0);
    enqueue_float(session, &q, 1);
    pthread_join(thread, NULL);
    weir_status_t* status = step_join(&step);
    if (status) check_error(status, WEIR_CANCELLED, "");
    else weir_tensor_release(step.result);
    if (status) ++left;
  }
  // A cancelled step may have taken its element before it noticed, never another's.
  weir_tensor_t* none = NULL;
  check_ok(weir_session_run(session, &(weir_step_spec_t){WEIR_TARGETS(q.close)}, &none));
  int found = 0;
  float element;
  weir_status_t* status = NULL;
  while (!(status = weir_session_fetch_float(session, q.value, &element))) ++found;
  weir_status_destroy(status);
  assert_true(found <= left);
}

typedef struct starter_t {
  weir_session_t* session;
  weir_plan_t* plan;
  int rounds;
  bool is_brief;
  int failures;  // steps that ended neither well nor cancelled: asserts belong to the main thread
  pthread_t thread;
} starter_t;

// Starts steps, each of which a thread of its own cancels while it is being started and run.
static void* starter_main(void* arg) {
  starter_t* starter = arg;
  for (int i = 0; i < starter->rounds; ++i) {
    step_t step;
    pthread_t thread;
    step_init(&step, starter->session, starter->plan, NULL);
    if (pthread_create(&thread, NULL, cancel_main, &step) != 0) abort();
    step_start(&step, starter->is_brief);
    pthread_join(thread, NULL);
    weir_status_t* status = step_wait(&step);
    if (status && weir_status_code(status) != WEIR_CANCELLED) ++starter->failures;
    if (step.done_count != 1 || !step.result != (status != NULL)) ++starter->failures;
    weir_status_destroy(status);
    weir_tensor_release(step.result);
  }
  return NULL;
}

static void run_starters(weir_session_t* session, weir_edge_t fetch, int rounds) {
  starter_t starters[3];
  weir_plan_t* plan = plan_of(session, fetch);
  for (int i = 0; i < 3; ++i) {
    starters[i] =
        (starter_t){.session = session, .plan = plan, .rounds = rounds, .is_brief = i % 2};
    assert_int_equal(pthread_create(&starters[i].thread, NULL, starter_main, &starters[i]), 0);
  }
  for (int i = 0; i < 3; ++i) pthread_join(starters[i].thread, NULL);
  for (int i = 0; i < 3; ++i) assert_int_equal(starters[i].failures, 0);
}

static void test_start_meets_cancel(void** state) {
  world_t* w = *state;
  queue_nodes_t q = add_queue(w, "q", 4);
  weir_edge_t loop = add_loop(w, 20);
  weir_session_t* session = open_session(w, 3);
  run_starters(session, loop, 60);
  run_starters(session, q.value, 60);
}

// Producers and consumers, all of them unattended, on few threads and a short queue.
static void test_steps_feed_each_other(void** state) {
  enum { PAIRS = 80 };
  world_t* w = *state;
  queue_nodes_t q = add_queue(w, "q", 2);
  weir_node_t* put = add(w, "QueueEnqueueV2", NULL,
                         WEIR_EDGES(q.handle, weir_const_float(w->scope, 1)), WEIR_NO_ATTRS);
  weir_node_t* one = weir_const_float(w->scope, 1).node;
  weir_edge_t told = OP(w, "Neg", output(one, 0));
  check_ok(weir_graph_add_control(told.node, put));
  weir_session_t* session = open_session(w, 2);
  weir_plan_t *taking = plan_of(session, q.value), *putting = plan_of(session, told);
  static step_t steps[2 * PAIRS];
  for (int i = 0; i < 2 * PAIRS; ++i) {
    step_init(&steps[i], session, i % 2 ? putting : taking, NULL);
    step_start(&steps[i], i % 3 == 0);
  }
  for (int i = 0; i < 2 * PAIRS; ++i)
    assert_float_equal(step_join_float(&steps[i]), (i % 2 ? -1 : 1), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_ends_within_the_call),
      TEST(test_brief_caller_hands_over),
      TEST(test_brief_loop),
      TEST(test_error_names_the_node),
      TEST(test_blocked_steps_hold_no_thread),
      TEST(test_cancelled_while_blocked),
      TEST(test_end_meets_cancel),
      TEST(test_start_meets_cancel),
      TEST(test_steps_feed_each_other),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

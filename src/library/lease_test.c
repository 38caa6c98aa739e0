// lease_test.c — Leases: one holder at a time, until the time is over or it is given back; and
// loops that are the chief's while they have one.
#include "weir/lease.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "testing/bench.h"
#include "weir/node.h"
#include "weir/optimizer.h"
#include "weir/replicas.h"
#include "weir/session.h"
#include "weir/trainer.h"

static const float kShort = 0.05f, kLong = 600;

typedef struct world_t {
  bench_t b;  // first
  weir_session_t* session;
} world_t;

static int open_world(void** state) {
  world_t* w = calloc(1, sizeof(*w));
  check_ok(weir_graph_create(&w->b.graph));
  w->b.s = weir_scope_create(w->b.graph);
  *state = w;
  return 0;
}

static int close_world(void** state) {
  weir_session_destroy(((world_t*)*state)->session);
  return teardown(state);
}

static void start(world_t* w) {
  check_built(&w->b);
  check_ok(weir_session_create(w->b.graph, NULL, &w->session));
}

static bool ask(world_t* w, weir_lease_t lease) {
  weir_tensor_t* value = NULL;
  const weir_step_spec_t spec = {WEIR_FETCHES(lease.is_held)};
  check_ok(weir_session_run(w->session, &spec, &value));
  const bool is_held = *(const bool*)weir_tensor_data(value);
  weir_tensor_release(value);
  return is_held;
}

static void release(world_t* w, weir_lease_t lease) {
  check_ok(weir_session_run_target(w->session, lease.release));
}

// ---- the lease ----

static void test_one_at_a_time(void** state) {
  world_t* w = *state;
  weir_lease_t a = weir_lease(w->b.s, .seconds = kLong, .holder = "a"),
               b = weir_lease(w->b.s, .seconds = kLong, .holder = "b"),
               other = weir_lease(w->b.s, .name = "other", .holder = "b");
  start(w);
  assert_true(ask(w, a));
  assert_false(ask(w, b));
  assert_true(ask(w, a));
  assert_true(ask(w, other));
  release(w, b);  // which does not have it
  assert_false(ask(w, b));
  release(w, a);
  assert_true(ask(w, b));
  assert_false(ask(w, a));
}

static void test_runs_out(void** state) {
  world_t* w = *state;
  weir_lease_t a = weir_lease(w->b.s, .seconds = kShort, .holder = "a"),
               b = weir_lease(w->b.s, .seconds = kLong, .holder = "b");
  start(w);
  assert_true(ask(w, a));
  usleep(2 * (useconds_t)(1e6f * kShort));
  assert_true(ask(w, b));
  assert_false(ask(w, a));
}

static void test_holders_differ_by_default(void** state) {
  world_t* w = *state;
  weir_lease_t a = weir_lease(w->b.s), b = weir_lease(w->b.s);
  start(w);
  assert_true(a.seconds == 10);
  assert_true(ask(w, a));
  assert_false(ask(w, b));
  assert_true(ask(w, a));
}

static void check_refused(weir_scope_t* s, weir_lease_t lease, const char* text) {
  assert_null(lease.is_held.node);
  assert_null(lease.release);
  check_error(weir_scope_take_error(s), WEIR_INVALID_ARGUMENT, text);
}

static void test_refused_when_built(void** state) {
  weir_scope_t* s = ((world_t*)*state)->b.s;
  check_refused(s, weir_lease(s, .seconds = -1), "lease 'chief'");
  check_refused(s, weir_lease(s, .seconds = NAN), "got nan seconds");
  check_refused(s, weir_lease(s, .name = ""), "needs names");
  check_refused(s, weir_lease(s, .holder = ""), "needs names");
}

static weir_edge_t add(world_t* w, const char* holder, float seconds) {
  const weir_edge_t inputs[] = {weir_const_string(w->b.s, holder),
                                weir_const_float(w->b.s, seconds)};
  weir_node_builder_t* builder = weir_node_begin(w->b.s, "_Lease");
  weir_node_inputs(builder, inputs, 2);
  return (weir_edge_t){weir_node_end(builder), 0};
}

// What others send need not be what weir_lease builds.
static void test_refused_when_run(void** state) {
  world_t* w = *state;
  char name[300];
  memset(name, 'x', sizeof(name) - 1);
  name[sizeof(name) - 1] = 0;
  const struct {
    weir_edge_t edge;
    const char* text;
  } cases[] = {{add(w, "a", -1), "seconds must be"},   {add(w, "a", NAN), "got nan"},
               {add(w, "a", INFINITY), "got inf"},     {add(w, "a", 1e10f), "seconds must be"},
               {add(w, "", 1), "from 1 to 255 bytes"}, {add(w, name, 1), "has 299"}};
  start(w);
  for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); ++i) {
    weir_tensor_t* value = NULL;
    const weir_step_spec_t spec = {WEIR_FETCHES(cases[i].edge)};
    check_error(weir_session_run(w->session, &spec, &value), WEIR_INVALID_ARGUMENT, cases[i].text);
  }
}

// ---- loops ----

typedef struct model_t {
  weir_edge_t loss, missing;
  weir_node_t *step, *init;
  weir_lease_t mine, theirs;
} model_t;

static model_t build(world_t* w) {
  weir_scope_t* s = w->b.s;
  weir_optimizer_t sgd = weir_sgd(0.25f);
  model_t m = {.mine = weir_lease(s, .seconds = kLong, .holder = "mine"),
               .theirs = weir_lease(s, .seconds = kLong, .holder = "theirs")};
  m.loss = weir_square(s, weir_variable(s, "x", weir_const_float(s, 1)));
  m.step = weir_minimize(s, &sgd, m.loss, .global_step = weir_global_step(s));
  m.missing = weir_uninitialized(s);
  m.init = weir_initializer(s);
  start(w);
  return m;
}

static weir_status_t* no_more_than_one(void* arg, const weir_fit_state_t* state, bool* stop) {
  (void)state;
  (void)stop;
  assert_false(ask(((void**)arg)[0], ((model_t*)((void**)arg)[1])->theirs));
  return NULL;
}

static void test_loop_has_it_until_it_ends(void** state) {
  world_t* w = *state;
  model_t m = build(w);
  void* both[] = {w, &m};
  weir_fit_result_t result;
  check_ok(weir_fit(w->session, m.step, m.loss, &result, .max_steps = 3, .init = m.init,
                    .uninitialized = m.missing, .lease = m.mine, .on_step = no_more_than_one,
                    .arg = both, .is_quiet = true, .no_signals = true));
  assert_int_equal(result.taken, 3);
  assert_true(ask(w, m.theirs));
}

// Who has it not waits for who has, and is the chief when that one is gone.
static void test_loop_without_it_is_a_worker(void** state) {
  world_t* w = *state;
  model_t m = build(w);
  assert_true(ask(w, m.theirs));
  check_error(weir_fit(w->session, m.step, m.loss, NULL, .max_steps = 3, .init = m.init,
                       .uninitialized = m.missing, .lease = m.mine, .lost_seconds = 0.2,
                       .is_quiet = true, .no_signals = true),
              WEIR_UNAVAILABLE, "waited in vain for the chief");
  release(w, m.theirs);
  check_ok(weir_fit(w->session, m.step, m.loss, NULL, .max_steps = 3, .init = m.init,
                    .uninitialized = m.missing, .lease = m.mine, .lost_seconds = 0.2,
                    .is_quiet = true, .no_signals = true));
}

static void test_loop_refuses(void** state) {
  world_t* w = *state;
  model_t m = build(w);
  check_error(weir_fit(w->session, m.step, m.loss, NULL, .uninitialized = m.missing,
                       .lease = m.mine, .is_worker = true),
              WEIR_INVALID_ARGUMENT, "one of them says who is the chief");
  check_error(weir_fit(w->session, m.step, m.loss, NULL, .init = m.init, .lease = m.mine),
              WEIR_INVALID_ARGUMENT, "a lease needs uninitialized");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
  const struct CMUnitTest tests[] = {TEST(test_one_at_a_time),
                                     TEST(test_runs_out),
                                     TEST(test_holders_differ_by_default),
                                     TEST(test_refused_when_built),
                                     TEST(test_refused_when_run),
                                     TEST(test_loop_has_it_until_it_ends),
                                     TEST(test_loop_without_it_is_a_worker),
                                     TEST(test_loop_refuses)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

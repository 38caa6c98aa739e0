// two_graphs_test.c — Edges and nodes of one graph given to another are refused by name, wherever
// they are given.
#include "api/control.h"
#include "testing/world.h"
#include "weir/optimizer.h"
#include "weir/saver.h"

// Two graphs that are alike, so that ids and names of one are good in the other.
typedef struct pair_t {
  weir_graph_t* graphs[2];
  weir_scope_t* scope;        // of the first
  weir_edge_t own, foreign;   // "x" of each
  weir_edge_t truth, number;  // of the second
  weir_edge_t variable;       // of the second
} pair_t;

static pair_t open_pair(void) {
  pair_t p = {.scope = NULL};
  for (int i = 0; i < 2; ++i) {
    check_ok(weir_graph_create(&p.graphs[i]));
    weir_scope_t* s = weir_scope_create(p.graphs[i]);
    weir_edge_t x = weir_variable(s, "x", weir_const_float(s, (float)i));
    weir_edge_t truth = weir_const_bool(weir_scope_name(s, "truth"), true);
    weir_edge_t number = weir_const_int(weir_scope_name(s, "number"), 1);
    if (i == 0) {
      p.scope = s;
      p.own = x;
      continue;
    }
    p.foreign = x;
    p.truth = truth;
    p.number = number;
    check_ok(weir_scope_finish(s));
  }
  return p;
}

static void close_pair(pair_t* p) {
  if (p->scope) weir_status_destroy(weir_scope_finish(p->scope));
  for (int i = 0; i < 2; ++i) weir_graph_release(p->graphs[i]);
}

static weir_edge_t op(weir_scope_t* s, const char* name, weir_edges_t inputs) {
  return weir_scope_first(weir_scope_add(s, name, NULL, inputs, WEIR_NO_ATTRS));
}

// ---- building ----

static weir_edge_t below_three(weir_scope_t* s, const weir_edge_t* state, void* user) {
  (void)user;
  return op(s, "Less", WEIR_EDGES(state[0], weir_const_float(s, 3)));
}
static void captures(weir_scope_t* s, weir_edge_t* state, void* user) {
  state[0] = op(s, "AddV2", WEIR_EDGES(state[0], *(weir_edge_t*)user));
}
static void becomes(weir_scope_t* s, weir_edge_t* state, void* user) {
  (void)s;
  state[0] = *(weir_edge_t*)user;
}

static void as_input(pair_t* p) { op(p->scope, "AddV2", WEIR_EDGES(p->own, p->foreign)); }
static void as_control_input(pair_t* p) {
  op(weir_scope_after(p->scope, &p->foreign.node, 1), "Neg", WEIR_EDGES(p->own));
}
static void in_a_group(pair_t* p) { weir_group(p->scope, "all", &p->foreign.node, 1); }
static void as_start_of_a_variable(pair_t* p) { weir_variable(p->scope, "v", p->foreign); }
static void as_state_of_a_loop(pair_t* p) {
  weir_edge_t out;
  weir_while_loop(p->scope, &p->foreign, 1, below_three, captures, &p->own, &out);
}
static void captured_by_a_loop(pair_t* p) {
  weir_edge_t out;
  weir_while_loop(p->scope, &p->own, 1, below_three, captures, &p->foreign, &out);
}
static void as_next_state(pair_t* p) {
  weir_edge_t out;
  weir_while_loop(p->scope, &p->own, 1, below_three, becomes, &p->foreign, &out);
}
static void as_control_input_in_a_loop(pair_t* p);
static void as_predicate(pair_t* p) {
  weir_edge_t out;
  weir_cond(p->scope, p->truth, becomes, becomes, &p->own, &out, 1);
}
static void as_result_of_a_branch(pair_t* p) {
  weir_edge_t out, truth = op(p->scope, "Less", WEIR_EDGES(p->own, p->own));
  weir_cond(p->scope, truth, becomes, becomes, &p->foreign, &out, 1);
}
static void as_a_case(pair_t* p) {
  weir_edge_t out;
  weir_switch_case(p->scope, p->number, ((weir_branch_fn_t[]){becomes, becomes}), 2, &p->own, &out,
                   1);
}

static void after_in_body(weir_scope_t* s, weir_edge_t* state, void* user) {
  weir_edge_t* foreign = user;
  state[0] = op(weir_scope_after(s, &foreign->node, 1), "Neg", WEIR_EDGES(state[0]));
}
static void as_control_input_in_a_loop(pair_t* p) {
  weir_edge_t out;
  weir_while_loop(p->scope, &p->own, 1, below_three, after_in_body, &p->foreign, &out);
}

static void gradients(pair_t* p, weir_edge_t y, weir_edge_t x, weir_edge_t grad_y) {
  weir_edge_t out;
  weir_status_t* status = weir_gradients(p->scope, &y, 1, &x, 1, &grad_y, &out);
  if (status) weir_scope_fail(p->scope, status);
}
static void as_y(pair_t* p) { gradients(p, p->foreign, p->own, WEIR_NO_EDGE); }
static void as_x(pair_t* p) { gradients(p, p->own, p->foreign, WEIR_NO_EDGE); }
static void as_grad_y(pair_t* p) { gradients(p, p->own, p->own, p->foreign); }
static void as_loss(pair_t* p) { weir_train_sgd(p->scope, p->foreign, 0.1f); }
static void as_learning_rate(pair_t* p) { weir_train_sgd_with(p->scope, p->own, p->foreign); }
static void in_a_saver(pair_t* p) {
  weir_saved_t saved = {.variable = p->foreign};
  weir_saver_destroy(weir_saver_create(p->scope, .variables = &saved, .variable_count = 1));
}

typedef struct case_t {
  const char* name;
  void (*build)(pair_t* p);
  const char* text;  // of the message
} case_t;

static void test_building(void** state) {
  (void)state;
  static const case_t cases[] = {
      {"input", as_input, "Node 'AddV2': input 1 is 'x/Read:0' of another graph"},
      {"control input", as_control_input, "Node 'Neg': control input 'x/Read' is of another graph"},
      {"group", in_a_group, "Node 'all': control input 'x/Read' is of another graph"},
      {"variable", as_start_of_a_variable,
       "variable 'v': initial value 0 is 'x/Read:0' of another"},
      {"state", as_state_of_a_loop, "Node 'while/Enter': input 0 is 'x/Read:0' of another"},
      {"capture", captured_by_a_loop, "Node 'while/AddV2': input 1 is 'x/Read:0' of another"},
      {"next state", as_next_state, "Node 'while/NextIteration': input 0 is 'x/Read:0' of another"},
      {"control in a loop", as_control_input_in_a_loop,
       "Node 'while/Neg': control input 'x/Read' is of another graph"},
      {"predicate", as_predicate, "Node 'cond/Switch': input 0 is 'truth:0' of another graph"},
      {"branch", as_result_of_a_branch, "Node 'cond/Identity_2': input 0 is 'x/Read:0' of another"},
      {"case", as_a_case, "input 0 is 'number:0' of another graph"},
      {"y", as_y, "gradients: y 0 is 'x/Read:0' of another graph"},
      {"x", as_x, "gradients: x 0 is 'x/Read:0' of another graph"},
      {"grad_y", as_grad_y, "gradients: grad_y 0 is 'x/Read:0' of another graph"},
      {"loss", as_loss, "'x/Read:0' of another graph"},
      {"learning rate", as_learning_rate, "'x/Read:0' of another graph"},
      {"saver", in_a_saver, "Node 'save/ReadVariableOp': input 0 is 'x:0' of another graph"},
  };
  for (size_t i = 0; i < WEIR_COUNT_OF(cases); ++i) {
    pair_t p = open_pair();
    print_message("%s\n", cases[i].name);
    cases[i].build(&p);
    check_error(weir_scope_finish(p.scope), WEIR_INVALID_ARGUMENT, cases[i].text);
    p.scope = NULL;
    close_pair(&p);
  }
}

// ---- running ----

static void test_running(void** state) {
  (void)state;
  pair_t p = open_pair();
  weir_session_t* session = NULL;
  weir_callable_t* callable = NULL;
  weir_partial_run_t* partial = NULL;
  weir_tensor_t* result = NULL;
  weir_tensor_t* one = make_float(1);
  check_ok(weir_session_create(p.graphs[0], NULL, &session));
  weir_step_spec_t feeds = {WEIR_FEEDS({p.foreign, one}), WEIR_FETCHES(p.own)};
  weir_step_spec_t fetches = {WEIR_FETCHES(p.own, p.foreign)};
  weir_step_spec_t targets = {WEIR_TARGETS(p.foreign.node)};
  check_error(weir_session_run(session, &feeds, &result), WEIR_INVALID_ARGUMENT,
              "feed 0 is 'x/Read:0' of another graph");
  check_error(weir_session_run(session, &fetches, (weir_tensor_t* [2]){NULL}),
              WEIR_INVALID_ARGUMENT, "fetch 1 is 'x/Read:0' of another graph");
  check_error(weir_session_run(session, &targets, &result), WEIR_INVALID_ARGUMENT,
              "target 0 is 'x/Read' of another graph");
  check_error(weir_callable_create(session, &fetches, &callable), WEIR_INVALID_ARGUMENT,
              "fetch 1 is 'x/Read:0' of another graph");
  check_error(weir_partial_run_create(session, &feeds, &partial), WEIR_INVALID_ARGUMENT,
              "feed 0 is 'x/Read:0' of another graph");
  weir_tensor_release(one);
  weir_session_destroy(session);
  close_pair(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_building),
                                     cmocka_unit_test(test_running)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

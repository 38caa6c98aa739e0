// policy_gradient.c — An agent that must remember: a sign at the entrance of a corridor says which
// way to turn at its end. Corridors have many lengths; the graph gets a piece for each new length
// while the program runs, over the same variables. A step is a partial run: the graph says what the
// agent does, the world answers, and the same step learns from it (REINFORCE).
#include <weir/weir.h>

#include "support.h"

enum { SHORTEST = 3, LONGEST = 10, UNITS = 16, BATCH = 64, SEES = 3 };  // left, right, nothing

// What it takes to walk corridors of one length.
typedef struct walk_t {
  weir_edge_t sights;   // to feed: [batch, length, SEES]
  weir_edge_t actions;  // where each agent turns: 0 or 1
  weir_edge_t rewards;  // to feed: [batch]
  weir_edge_t stepped;  // learns when fetched
} walk_t;

// Extends the graph. The cell and the policy have made their variables at the first corridor and
// use them again in all others.
static walk_t extend(weir_scope_t* s, weir_rnn_cell_t* cell, weir_edge_t policy, int length) {
  walk_t w = {0};
  weir_edge_t x[LONGEST], state;
  w.sights = weir_placeholder(s, WEIR_DTYPE_FLOAT, .shape = WEIR_SHAPE(BATCH, length, SEES));
  weir_edge_t moments = weir_unpack(s, w.sights, length, .axis = 1);
  for (int i = 0; i < length; ++i) x[i] = (weir_edge_t){moments.node, i};

  weir_rnn_cell_zero_state(cell, s, weir_const_int(s, BATCH), WEIR_DTYPE_FLOAT, &state);
  for (int i = 0; i < length; ++i) weir_rnn_cell_step(cell, s, x[i], &state);
  weir_edge_t scores = weir_mat_mul(s, state, policy);
  weir_edge_t drawn = weir_multinomial(s, scores, weir_const_int(s, 1), .seed = length,
                                       .output_dtype = WEIR_DTYPE_INT32);
  w.actions = weir_squeeze(s, drawn, .squeeze_dims = WEIR_INTS(1));

  w.rewards = weir_placeholder(s, WEIR_DTYPE_FLOAT, .shape = WEIR_SHAPE(BATCH));
  weir_edge_t surprise = weir_sparse_softmax_cross_entropy(s, w.actions, scores);  // -log p
  weir_edge_t loss = weir_mean(s, weir_mul(s, w.rewards, surprise), weir_const_int(s, 0));
  weir_optimizer_t sgd = weir_sgd(0.5f);
  weir_node_t* step = weir_minimize(s, &sgd, loss, .clip_global_norm = 1);
  w.stepped = weir_identity(weir_scope_after(s, &step, 1), loss);
  return w;
}

// One episode for a batch of agents; returns how many turned the right way.
static int walk(weir_session_t* session, const walk_t* w, int length) {
  float sights[BATCH * LONGEST * SEES] = {0}, rewards[BATCH];
  int signs[BATCH], right = 0;
  for (int i = 0; i < BATCH; ++i) {
    signs[i] = random_below(2);
    for (int k = 0; k < length; ++k) sights[(i * length + k) * SEES + (k ? 2 : signs[i])] = 1;
  }
  weir_partial_run_t* run = NULL;
  weir_tensor_t* seen = tensor_of(WEIR_DTYPE_FLOAT, WEIR_DIMS(BATCH, length, SEES), sights);
  weir_tensor_t *actions = NULL, *stepped = NULL;
  weir_step_spec_t all = {WEIR_FEEDS({w->sights, NULL}, {w->rewards, NULL}),
                          WEIR_FETCHES(w->actions, w->stepped)};
  check(weir_partial_run_create(session, &all, &run));
  weir_step_spec_t act = {WEIR_FEEDS({w->sights, seen}), WEIR_FETCHES(w->actions)};
  check(weir_partial_run_continue(run, &act, &actions));
  for (int i = 0; i < BATCH; ++i) {  // the world's answer
    bool is_right = ((int32_t*)weir_tensor_data(actions))[i] == signs[i];
    rewards[i] = is_right ? 1 : -1;
    right += is_right;
  }
  weir_tensor_t* given = tensor_of(WEIR_DTYPE_FLOAT, WEIR_DIMS(BATCH), rewards);
  weir_step_spec_t learn = {WEIR_FEEDS({w->rewards, given}), WEIR_FETCHES(w->stepped)};
  check(weir_partial_run_continue(run, &learn, &stepped));
  weir_partial_run_destroy(run);
  weir_tensor_release(seen);
  weir_tensor_release(given);
  weir_tensor_release(actions);
  weir_tensor_release(stepped);
  return right;
}

int main(int argc, char** argv) {
  const int episodes = steps_option(argc, argv, 1000);
  walk_t walks[LONGEST + 1] = {{.sights = {NULL, 0}}};
  weir_graph_t* graph = NULL;
  weir_session_t* session = NULL;
  check(weir_graph_create(&graph));
  weir_scope_t* s = weir_scope_create(graph);
  weir_scope_seed(s, 1);
  weir_rnn_cell_t* cell = weir_gru_cell(s, UNITS);
  weir_rnn_cell_build(cell, s, SEES, WEIR_DTYPE_FLOAT);
  weir_edge_t policy = weir_weight(s, "policy", weir_init_glorot_uniform(0), WEIR_SHAPE(UNITS, 2));
  check(weir_session_create(graph, NULL, &session));
  check(weir_session_run_target(session, weir_initializer(s)));
  double share = 0.5;
  for (int i = 1; i <= episodes; ++i) {
    int length = SHORTEST + random_below(LONGEST - SHORTEST + 1);
    if (!walks[length].sights.node) {
      walks[length] = extend(weir_scope_in(s, "corridor"), cell, policy, length);
      printf("episode %d: first corridor of length %d; the graph has %zu nodes\n", i, length,
             weir_graph_node_count(graph));
      if (weir_scope_status(s)) break;
    }
    share += 0.02 * ((double)walk(session, &walks[length], length) / BATCH - share);
    if (i % 100 == 0 || i == episodes) printf("episode %d: %.1f %% right\n", i, 100 * share);
  }
  weir_session_destroy(session);
  check(weir_scope_finish(s));
  weir_graph_release(graph);
  return 0;
}

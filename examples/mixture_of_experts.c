// mixture_of_experts.c — Many small models, each for its part of the input: a gate sends every row
// to one expert (DynamicPartition), their results are put together again (DynamicStitch), and an
// expert without rows does not run (a conditional).
#include <math.h>
#include <weir/weir.h>

#include "support.h"

enum { EXPERTS = 4, BATCH = 256 };

// What is to be learnt: in each quadrant of the plane another linear function.
static float truth(float x, float y) {
  if (x > 0) return y > 0 ? 3 * x - y : x + 2 * y - 1;
  return y > 0 ? 1 - 2 * x : 4 * y - x;
}

typedef struct expert_t {
  weir_edge_t rows, kernel, bias;
} expert_t;

static void compute(weir_scope_t* s, weir_edge_t* out, void* user) {
  const expert_t* e = user;
  out[0] = weir_bias_add(s, weir_mat_mul(s, e->rows, e->kernel), e->bias);
}

static void idle(weir_scope_t* s, weir_edge_t* out, void* user) {
  (void)user;
  out[0] = weir_fill(s, weir_const_ints(s, (int[]){0, 1}, 2), weir_const_float(s, 0));
}

// A linear model that runs only if there are rows for it.
static weir_edge_t expert(weir_scope_t* s, weir_edge_t rows) {
  expert_t e = {rows, weir_weight(s, "kernel", weir_init_normal(0, 0.5, 0), WEIR_SHAPE(2, 1)),
                weir_weight(s, "bias", weir_init_zeros(), WEIR_SHAPE(1))};
  weir_edge_t out, has_rows = weir_greater(s, weir_size(s, rows), weir_const_int(s, 0));
  weir_cond(s, has_rows, compute, idle, &e, &out, 1);
  return weir_ensure_shape(s, out, WEIR_SHAPE(-1, 1));
}

typedef struct model_t {
  weir_edge_t x, y, explore;  // to feed; whether rows are sent at random, as the gate's
  weir_edge_t loss, load;     // probabilities say. load: how many rows each expert got
  weir_node_t *init, *step;
} model_t;

// Sends row i of |x| to expert chosen[i], and gives back what the experts make of them, in order.
static weir_edge_t experts(weir_scope_t* s, weir_edge_t x, weir_edge_t chosen,
                           weir_edge_t* out_load) {
  weir_edge_t zero = weir_const_int(s, 0), one = weir_const_int(s, 1);
  weir_edge_t numbers = weir_range(s, zero, weir_size(s, chosen), one);
  weir_edge_t rows = weir_dynamic_partition(s, x, chosen, EXPERTS);
  weir_edge_t places = weir_dynamic_partition(s, numbers, chosen, EXPERTS);
  weir_edge_t place[EXPERTS], result[EXPERTS], load[EXPERTS];
  for (int i = 0; i < EXPERTS; ++i) {
    place[i] = (weir_edge_t){places.node, i};
    load[i] = weir_size(s, place[i]);
    result[i] = expert(weir_scope_in(s, "expert"), (weir_edge_t){rows.node, i});
  }
  *out_load = weir_pack(s, load, EXPERTS);
  return weir_dynamic_stitch(s, place, EXPERTS, result, EXPERTS);
}

static model_t build(weir_graph_t* graph) {
  model_t m = {0};
  weir_scope_t* s = weir_scope_create(graph);
  weir_scope_seed(s, 3);
  m.x = weir_placeholder(s, WEIR_DTYPE_FLOAT, .shape = WEIR_SHAPE(-1, 2));
  m.y = weir_placeholder(s, WEIR_DTYPE_FLOAT, .shape = WEIR_SHAPE(-1));
  m.explore = weir_placeholder(s, WEIR_DTYPE_BOOL, .shape = WEIR_SCALAR_SHAPE);
  weir_edge_t zero = weir_const_int(s, 0), one = weir_const_int(s, 1);

  weir_edge_t scores = weir_layer_dense(s, m.x, 32, .activation = weir_op_tanh);
  scores = weir_layer_dense(s, scores, EXPERTS);
  weir_edge_t drawn = weir_multinomial(s, scores, one, .seed = 1, .output_dtype = WEIR_DTYPE_INT32);
  drawn = weir_squeeze(s, drawn, .squeeze_dims = WEIR_INTS(1));
  weir_edge_t best = weir_arg_max(s, scores, one, .output_type = WEIR_DTYPE_INT32);
  weir_edge_t chosen = weir_select_v2(s, m.explore, drawn, best);
  weir_edge_t y = weir_squeeze(s, experts(s, m.x, chosen, &m.load), .squeeze_dims = WEIR_INTS(1));

  // Experts learn from the errors on their rows. The gate, whose choice has no derivative, learns
  // to avoid choices that gave larger errors than others: E[error] has the gradient of
  // E[error * log p(choice)].
  weir_edge_t errors = weir_squared_difference(s, y, m.y);
  m.loss = weir_mean(s, errors, zero);
  weir_edge_t regret = weir_stop_gradient(s, weir_sub(s, errors, m.loss));
  weir_edge_t log_p = weir_neg(s, weir_sparse_softmax_cross_entropy(s, chosen, scores));
  weir_edge_t sum = weir_add_v2(s, m.loss, weir_mean(s, weir_mul(s, regret, log_p), zero));
  weir_optimizer_t adam = weir_adam(0.01f);
  m.step = weir_minimize(s, &adam, sum);
  m.init = weir_initializer(s);
  check(weir_scope_finish(s));
  return m;
}

// Runs on new points. With |is_step| explores and learns, otherwise takes each row's best expert.
static float run(weir_session_t* session, const model_t* m, bool is_step, int32_t* out_load) {
  float x[BATCH][2], y[BATCH];
  for (int i = 0; i < BATCH; ++i) {
    for (int k = 0; k < 2; ++k) x[i][k] = 4 * random_float() - 2;
    y[i] = truth(x[i][0], x[i][1]);
  }
  weir_feed_t feeds[] = {{m->x, tensor_of(WEIR_DTYPE_FLOAT, WEIR_DIMS(BATCH, 2), x)},
                         {m->y, tensor_of(WEIR_DTYPE_FLOAT, WEIR_DIMS(BATCH), y)},
                         {m->explore, tensor_of(WEIR_DTYPE_BOOL, 0, NULL, &is_step)}};
  weir_tensor_t* results[2];
  weir_step_spec_t spec = {feeds, 3, WEIR_FETCHES(m->loss, m->load), &m->step, is_step};
  check(weir_session_run(session, &spec, results));
  for (int i = 0; i < 3; ++i) weir_tensor_release(feeds[i].tensor);
  memcpy(out_load, weir_tensor_data(results[1]), EXPERTS * sizeof(*out_load));
  weir_tensor_release(results[1]);
  return float_of(results[0]);
}

int main(int argc, char** argv) {
  const int steps = steps_option(argc, argv, 3000);
  int32_t load[EXPERTS];
  weir_graph_t* graph = NULL;
  weir_session_t* session = NULL;
  check(weir_graph_create(&graph));
  model_t m = build(graph);
  check(weir_session_create(graph, NULL, &session));
  check(weir_session_run_target(session, m.init));
  for (int i = 1; i <= steps; ++i) {
    run(session, &m, true, load);
    if (i % 500 && i < steps) continue;
    float error = run(session, &m, false, load);
    printf("step %d  error %.4f  rows by expert:", i, error);
    for (int k = 0; k < EXPERTS; ++k) printf(" %d", load[k]);
    puts("");
  }
  weir_session_destroy(session);
  weir_graph_release(graph);
  return 0;
}

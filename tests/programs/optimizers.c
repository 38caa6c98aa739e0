// optimizers.c — Trains small models by every optimizer, and prints losses and variables as JSON.
//
//   optimizers train OPTIMIZER MODEL          50 steps: {"losses": [...], "variables": {...}}
//   optimizers schedules                      {"schedule": [value at step 0, 3, 6 ...]}
//   optimizers clip                           {"rule": [values]}
//   optimizers average PREFIX                 moving averages step by step; saves a checkpoint
//   optimizers accumulate MODEL               12 micro-batches, applied in fours
// Models are dense, sparse (the gradient of an embedding is) or mixed (of both kinds).
// tests/optimizers_test.py does the same with TensorFlow.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/weir.h>

enum { STEPS = 50, BATCH = 8, ROWS = 20, WIDTH = 4, CLASSES = 3 };

static void check(weir_status_t* status) {
  if (weir_status_report(status)) exit(1);
}

// ---- numbers that both sides can make ----

static float number(int i, int seed) {
  return (float)(((i * 37 + seed * 11 + i * i * 3) % 101) / 101.0 - 0.5);
}

static weir_edge_t numbers(weir_scope_t* s, int rows, int columns, int seed) {
  float values[128];
  for (int i = 0; i < rows * columns; ++i) values[i] = number(i, seed);
  return weir_const_floats(s, WEIR_DIMS(rows, columns), values);
}

// ---- models ----

typedef struct model_t {
  weir_graph_t* graph;
  weir_scope_t* scope;
  weir_session_t* session;
  weir_edge_t ids, loss;
} model_t;

// Rows are classified by their number.
static weir_edge_t loss_of(weir_scope_t* s, weir_edge_t logits, weir_edge_t ids) {
  weir_edge_t labels = weir_floor_mod(s, ids, weir_const_int(s, CLASSES));
  weir_edge_t losses = weir_sparse_softmax_cross_entropy_with_logits(s, logits, labels).loss;
  return weir_mean(s, losses, weir_const_int(s, 0));
}

// logits = tanh(x a + b) c, where x are the rows |ids| of a constant or of an embedding. In the
// mixed model the loss depends on the whole embedding, too.
static model_t make_model(const char* kind) {
  model_t m = {0};
  weir_edge_t table = {0};
  check(weir_graph_create(&m.graph));
  weir_scope_t* s = m.scope = weir_scope_create(m.graph);
  m.ids = weir_placeholder(s, WEIR_DTYPE_INT32, .shape = WEIR_SHAPE(BATCH));
  weir_edge_t x;
  if (strcmp(kind, "dense")) {
    table = weir_variable(s, "table", numbers(s, ROWS, WIDTH, 1));
    x = weir_resource_gather(s, weir_variable_handle(table), m.ids, WEIR_DTYPE_FLOAT);
  } else {
    x = weir_gather_v2(s, numbers(s, ROWS, WIDTH, 1), m.ids, weir_const_int(s, 0));
  }
  weir_edge_t a = weir_variable(s, "layer/a", numbers(s, WIDTH, 5, 2));
  weir_edge_t b = weir_variable(s, "layer/b", numbers(s, 1, 5, 3));
  weir_edge_t c = weir_variable(s, "c", numbers(s, 5, CLASSES, 4));
  weir_edge_t h = weir_tanh(s, weir_add_v2(s, weir_mat_mul(s, x, a), b));
  m.loss = loss_of(s, weir_mat_mul(s, h, c), m.ids);
  if (!strcmp(kind, "mixed"))
    m.loss = weir_add_v2(s, m.loss, weir_mul(s, weir_l2_loss(s, table), weir_const_float(s, 0.1f)));
  return m;
}

static void destroy_model(model_t* m) {
  weir_session_destroy(m->session);
  check(weir_scope_finish(m->scope));
  weir_graph_release(m->graph);
}

static void open_model(model_t* m) {
  weir_node_t* init = weir_initializer(m->scope);
  check(weir_status_copy(weir_scope_status(m->scope)));
  check(weir_session_create(m->graph, NULL, &m->session));
  check(weir_session_run_target(m->session, init));
}

// Runs |target| (or nothing) and returns the float |fetch|.
static float run(const model_t* m, int step, weir_node_t* target, weir_edge_t fetch) {
  int32_t ids[BATCH];
  for (int i = 0; i < BATCH; ++i) ids[i] = (step * 3 + i * i) % ROWS;
  weir_tensor_t *fed = NULL, *result = NULL;
  check(weir_tensor_create_from(WEIR_DTYPE_INT32, 1, &(int64_t){BATCH}, ids, &fed));
  weir_step_spec_t spec = {WEIR_FEEDS({m->ids, fed}), WEIR_FETCHES(fetch), .targets = &target,
                           .target_count = target != NULL};
  check(weir_session_run(m->session, &spec, &result));
  float value = *(float*)weir_tensor_data(result);
  weir_tensor_release(fed);
  weir_tensor_release(result);
  return value;
}

// ---- printing ----

static void print_edge(const model_t* m, weir_edge_t edge) {
  weir_tensor_t* result = NULL;
  weir_step_spec_t spec = {WEIR_FETCHES(edge)};
  check(weir_session_run(m->session, &spec, &result));
  printf("[");
  for (int64_t i = 0; i < weir_tensor_count(result); ++i) {
    double value = weir_tensor_dtype(result) == WEIR_DTYPE_FLOAT
                       ? (double)((float*)weir_tensor_data(result))[i]
                   : weir_tensor_dtype(result) == WEIR_DTYPE_INT64
                       ? (double)((int64_t*)weir_tensor_data(result))[i]
                       : (double)((int32_t*)weir_tensor_data(result))[i];
    if (isnan(value)) printf("%sNaN", i ? ", " : "");
    else printf("%s%.9g", i ? ", " : "", value);
  }
  printf("]");
  weir_tensor_release(result);
}

static void print_variables(const model_t* m) {
  printf("\"variables\": {");
  for (int i = 0; i < weir_scope_variable_count(m->scope); ++i) {
    weir_variable_info_t variable = weir_scope_variable_at(m->scope, i);
    printf("%s\"%s\": ", i ? ", " : "", weir_node_name(variable.handle.node));
    print_edge(m, variable.value);
  }
  printf("}");
}

// ---- training ----

static weir_optimizer_t find_optimizer(weir_scope_t* s, const char* name) {
  const struct {
    const char* name;
    weir_optimizer_t optimizer;
  } all[] = {
      {"sgd", weir_sgd(0.5f)},
      {"sgd_decay", weir_sgd(weir_exponential_decay(s, 0.5f, weir_global_step(s), 10, 0.5f))},
      {"momentum", weir_momentum(0.1f, 0.9f)},
      {"nesterov", weir_momentum(0.1f, 0.9f, .nesterov = true)},
      {"adagrad", weir_adagrad(0.3f)},
      {"adagrad_1", weir_adagrad(0.3f, .initial_accumulator = WEIR_SET(1))},
      {"adadelta", weir_adadelta(1.0f, .epsilon = WEIR_SET(1e-4f))},
      {"adadelta_plain", weir_adadelta(0.001f)},
      {"rmsprop", weir_rmsprop(0.02f)},
      {"rmsprop_momentum",
       weir_rmsprop(0.01f, .decay = WEIR_SET(0.8f), .momentum = 0.5f, .epsilon = WEIR_SET(1e-3f))},
      {"rmsprop_centered", weir_rmsprop(0.01f, .momentum = 0.3f, .centered = true)},
      {"adam", weir_adam(0.02f)},
      {"adam_betas", weir_adam(0.05f, .beta1 = WEIR_SET(0.8f), .beta2 = WEIR_SET(0.9f),
                               .epsilon = WEIR_SET(1e-3f))},
      {"amsgrad", weir_adam(0.02f, .epsilon = WEIR_SET(1e-7f), .amsgrad = true)},
      {"adamax", weir_adamax(0.02f)},
      {"ftrl", weir_ftrl(0.3f)},
      {"ftrl_all",
       weir_ftrl(0.3f, .rate_power = WEIR_SET(-0.6f), .initial_accumulator = WEIR_SET(0.5f),
                 .l1 = 0.001f, .l2 = 0.01f, .l2_shrinkage = 0.02f, .beta = 0.1f)},
      {"proximal_sgd", weir_proximal_sgd(0.5f, .l1 = 0.001f, .l2 = 0.01f)},
      {"proximal_adagrad", weir_proximal_adagrad(0.3f, .l1 = 0.001f, .l2 = 0.01f)},
  };
  for (size_t i = 0; i < sizeof(all) / sizeof(*all); ++i) {
    if (!strcmp(all[i].name, name)) return all[i].optimizer;
  }
  fprintf(stderr, "no optimizer '%s'\n", name);
  exit(2);
}

static void train(const char* name, const char* kind) {
  model_t m = make_model(kind);
  weir_optimizer_t optimizer = find_optimizer(m.scope, name);
  weir_node_t* step =
      weir_minimize(m.scope, &optimizer, m.loss, .global_step = weir_global_step(m.scope));
  open_model(&m);
  printf("{\"losses\": [");
  for (int i = 0; i < STEPS; ++i) printf("%s%.9g", i ? ", " : "", (double)run(&m, i, step, m.loss));
  printf("], ");
  print_variables(&m);
  printf("}\n");
  destroy_model(&m);
}

static void accumulate(const char* kind) {
  model_t m = make_model(kind);
  weir_optimizer_t adam = weir_adam(0.05f);
  weir_node_t* step =
      weir_minimize(m.scope, &adam, m.loss, .global_step = weir_global_step(m.scope),
                    .accumulate = 4, .clip_global_norm = 0.2f);
  open_model(&m);
  printf("{\"losses\": [");
  for (int i = 0; i < 12; ++i) printf("%s%.9g", i ? ", " : "", (double)run(&m, i, step, m.loss));
  printf("], ");
  print_variables(&m);
  printf("}\n");
  destroy_model(&m);
}

// ---- schedules ----

static void schedules(void) {
  model_t m = make_model("dense");
  weir_scope_t* s = m.scope;
  weir_edge_t at = weir_placeholder(s, WEIR_DTYPE_INT64, .shape = WEIR_SCALAR_SHAPE);
  const struct {
    const char* name;
    weir_edge_t rate;
  } all[] = {
      {"exponential", weir_exponential_decay(s, 0.1f, at, 10, 0.9f)},
      {"exponential_stairs", weir_exponential_decay(s, 0.1f, at, 10, 0.9f, .staircase = true)},
      {"natural", weir_natural_exp_decay(s, 0.1f, at, 10, 0.3f)},
      {"natural_stairs", weir_natural_exp_decay(s, 0.1f, at, 10, 0.3f, .staircase = true)},
      {"inverse", weir_inverse_time_decay(s, 0.1f, at, 10, 0.5f)},
      {"inverse_stairs", weir_inverse_time_decay(s, 0.1f, at, 10, 0.5f, .staircase = true)},
      {"polynomial", weir_polynomial_decay(s, 0.1f, at, 40)},
      {"polynomial_power", weir_polynomial_decay(s, 0.1f, at, 40, .end_rate = WEIR_SET(0.01f),
                                                 .power = WEIR_SET(0.5f))},
      {"polynomial_cycle", weir_polynomial_decay(s, 0.1f, at, 40, .cycle = true)},
      {"piecewise",
       weir_piecewise_constant(s, at, WEIR_INTS(9, 30, 60), WEIR_FLOATS(1.0f, 0.5f, 0.25f, 0.1f))},
      {"cosine", weir_cosine_decay(s, 0.1f, at, 50)},
      {"cosine_alpha", weir_cosine_decay(s, 0.1f, at, 50, .alpha = 0.1f)},
      {"restarts", weir_cosine_decay_restarts(s, 0.1f, at, 10)},
      {"restarts_even", weir_cosine_decay_restarts(s, 0.1f, at, 10, .t_mul = WEIR_SET(1),
                                                   .m_mul = WEIR_SET(0.8f), .alpha = 0.05f)},
      {"restarts_grow", weir_cosine_decay_restarts(s, 0.1f, at, 10, .t_mul = WEIR_SET(1.5f),
                                                   .m_mul = WEIR_SET(0.9f))},
      {"linear_cosine",
       weir_linear_cosine_decay(s, 0.1f, at, 50, .alpha = 0.1f, .num_periods = WEIR_SET(1.5f))},
      {"warmup", weir_linear_warmup(s, weir_polynomial_decay(s, 0.1f, at, 90), at, 20)},
      {"warmup_start", weir_linear_warmup(s, 0.1f, at, 20, .start = 0.25f)},
  };
  open_model(&m);
  printf("{");
  for (size_t i = 0; i < sizeof(all) / sizeof(*all); ++i) {
    printf("%s\"%s\": [", i ? ", " : "", all[i].name);
    for (int64_t step = 0; step <= 99; step += 3) {
      weir_tensor_t *fed = NULL, *result = NULL;
      check(weir_tensor_create_from(WEIR_DTYPE_INT64, 0, NULL, &step, &fed));
      weir_step_spec_t spec = {WEIR_FEEDS({at, fed}), WEIR_FETCHES(all[i].rate)};
      check(weir_session_run(m.session, &spec, &result));
      printf("%s%.9g", step ? ", " : "", (double)*(float*)weir_tensor_data(result));
      weir_tensor_release(fed);
      weir_tensor_release(result);
    }
    printf("]");
  }
  printf("}\n");
  destroy_model(&m);
}

// ---- clipping ----

typedef struct clipped_t {
  const char* name;
  weir_edge_t edge;
} clipped_t;

static void print_clipped(const model_t* m, const clipped_t* all, int count) {
  printf("{");
  for (int i = 0; i < count; ++i) {
    printf("%s\"%s\": ", i ? ", " : "", all[i].name);
    print_edge(m, all[i].edge);
  }
  printf("}\n");
}

static weir_gradient_t gradient(weir_scope_t* s, float first) {
  float values[6] = {first, -2, 0.5f, 3, -0.25f, 0};
  return (weir_gradient_t){.values = weir_const_floats(s, WEIR_DIMS(3, 2), values)};
}

static void clip(void) {
  model_t m = make_model("dense");
  weir_scope_t* s = m.scope;
  weir_gradient_t x = gradient(s, 1), bad = gradient(s, NAN), huge = gradient(s, INFINITY);
  weir_gradient_t zero = {.values = weir_sub(s, x.values, x.values)}, none = {.values = {NULL, 0}};
  weir_gradient_t rows = {.values = x.values,
                          .indices = weir_const_ints(s, (const int[]){4, 1, 4}, 3),
                          .dense_shape = weir_const_ints(s, (const int[]){6, 2}, 2)};
  weir_gradient_t all[] = {x, none, rows}, spoilt[] = {x, bad}, over[] = {x, huge}, loose[] = {x};
  weir_edge_t norm = weir_clip_by_global_norm(s, all, 3, 2.0f);
  weir_clip_by_global_norm(s, spoilt, 2, 2.0f);
  weir_clip_by_global_norm(s, over, 2, 2.0f);
  weir_clip_by_global_norm(s, loose, 1, 100.0f);
  weir_gradient_t unique = weir_gradient_unique(s, rows);
  clipped_t results[] = {
      {"value", weir_clip_gradient_by_value(s, x, -1, 0.75f).values},
      {"value_nan", weir_clip_gradient_by_value(s, bad, -1, 0.75f).values},
      {"norm", weir_clip_gradient_by_norm(s, x, 2.0f).values},
      {"norm_loose", weir_clip_gradient_by_norm(s, x, 20.0f).values},
      {"norm_edge", weir_clip_gradient_by_norm(s, x, weir_const_float(s, 1.5f)).values},
      {"norm_negative", weir_clip_gradient_by_norm(s, x, -1.0f).values},
      {"norm_zero", weir_clip_gradient_by_norm(s, zero, 2.0f).values},
      {"norm_nan", weir_clip_gradient_by_norm(s, bad, 2.0f).values},
      {"average", weir_clip_gradient_by_average_norm(s, x, 0.2f).values},
      {"average_loose", weir_clip_gradient_by_average_norm(s, x, 20.0f).values},
      {"global_norm", norm},
      {"global_0", all[0].values},
      {"global_2", all[2].values},
      {"global_2_indices", all[2].indices},
      {"global_nan", spoilt[0].values},
      {"global_inf", over[0].values},
      {"global_loose", loose[0].values},
      {"unique", unique.values},
      {"unique_indices", unique.indices},
  };
  if (all[1].values.node) exit(1);
  open_model(&m);
  print_clipped(&m, results, sizeof(results) / sizeof(*results));
  destroy_model(&m);
}

// ---- moving averages ----

static void average(const char* prefix) {
  model_t m = make_model("dense");
  weir_scope_t* s = m.scope;
  weir_optimizer_t sgd = weir_sgd(0.5f);
  weir_edge_t global_step = weir_global_step(s);
  weir_node_t* step = weir_minimize(s, &sgd, m.loss, .global_step = global_step);
  weir_scope_t* after = weir_scope_after(s, &step, 1);
  weir_moving_average_t plain = weir_moving_average(after, 0.9f);
  weir_edge_t steps =
      weir_read_variable_op(after, weir_variable_handle(global_step), WEIR_DTYPE_INT64);
  weir_moving_average_t ramp =
      weir_moving_average(after, 0.9f, .num_updates = steps, .name = "Ramp");
  weir_edge_t named = weir_identity(weir_scope_name(s, "loss"), m.loss);
  weir_moving_average_t loss = weir_moving_average(s, 0.9f, .values = &named, .value_count = 1,
                                                   .zero_debias = true, .name = "Debiased");
  weir_moving_average_t biased =
      weir_moving_average(s, 0.9f, .values = &named, .value_count = 1, .name = "Biased");
  weir_node_t* update = weir_group(
      s, "all", (weir_node_t*[]){plain.update, ramp.update, loss.update, biased.update}, 4);
  weir_node_t* swap = weir_moving_average_swap(s, &plain);
  weir_node_t* restore = weir_moving_average_restore(s, &plain, weir_const_string(s, prefix));
  weir_edge_t c = weir_scope_variable_at(s, 2).value;
  weir_edge_t c_average = weir_moving_average_of(&plain, c);
  open_model(&m);
  for (int i = 0; i < 10; ++i) run(&m, i, update, m.loss);
  printf("{");
  print_variables(&m);
  check(weir_checkpoint_save(m.session, prefix));
  printf(", \"c\": [");
  print_edge(&m, c);
  check(weir_session_run_target(m.session, swap));
  printf(", ");
  print_edge(&m, c);
  printf(", ");
  print_edge(&m, c_average);
  check(weir_session_run_target(m.session, swap));
  printf(", ");
  print_edge(&m, c);
  check(weir_session_run_target(m.session, restore));
  printf(", ");
  print_edge(&m, c);
  printf("]}\n");
  destroy_model(&m);
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (!strcmp(what, "train") && argc == 4) return train(argv[2], argv[3]), 0;
  if (!strcmp(what, "accumulate") && argc == 3) return accumulate(argv[2]), 0;
  if (!strcmp(what, "schedules")) return schedules(), 0;
  if (!strcmp(what, "clip")) return clip(), 0;
  if (!strcmp(what, "average") && argc == 3) return average(argv[2]), 0;
  fputs(
      "usage: optimizers train NAME MODEL | accumulate MODEL | schedules | clip | average PREFIX\n",
      stderr);
  return 2;
}

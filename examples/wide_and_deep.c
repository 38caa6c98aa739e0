// wide_and_deep.c — Predicts clicks from sparse features: a linear part that remembers pairs of
// features, and a network over embeddings that generalises. Each part has an optimizer of its own,
// and a step touches only the rows of the tables that its examples name.
#include <math.h>
#include <weir/weir.h>

#include "support.h"

enum { USERS = 500, ITEMS = 200, GROUPS = 20, TAGS = 50, BATCH = 256, MOST_TAGS = 4, SIZE = 8 };

// ---- who clicks: by taste (a product of hidden vectors), by tags, and by hidden pairs of a user's
// group and an item ----

static float taste[USERS + ITEMS][3], tag_weight[TAGS], pair_weight[GROUPS * ITEMS];

static void make_world(void) {
  for (int i = 0; i < (USERS + ITEMS) * 3; ++i) taste[i / 3][i % 3] = 3 * random_float() - 1.5f;
  for (int i = 0; i < TAGS; ++i) tag_weight[i] = 2 * random_float() - 1;
  for (int i = 0; i < GROUPS * ITEMS; ++i) pair_weight[i] = random_below(8) ? 0.0f : 3.0f;
}

typedef struct batch_t {
  int32_t users[BATCH], items[BATCH];
  int64_t places[BATCH * MOST_TAGS][2], tags[BATCH * MOST_TAGS];  // a sparse matrix of tags
  float clicks[BATCH];
  int tag_count;
} batch_t;

static void draw(batch_t* b) {
  b->tag_count = 0;
  for (int i = 0; i < BATCH; ++i) {
    int user = b->users[i] = random_below(USERS), item = b->items[i] = random_below(ITEMS);
    float score = pair_weight[user % GROUPS * ITEMS + item] - 1;
    for (int k = 0; k < 3; ++k) score += taste[user][k] * taste[USERS + item][k];
    for (int k = 0, count = 1 + random_below(MOST_TAGS); k < count; ++k) {
      int64_t tag = b->tags[b->tag_count] = random_below(TAGS);
      b->places[b->tag_count][0] = i;
      b->places[b->tag_count++][1] = k;
      score += tag_weight[tag];
    }
    b->clicks[i] = random_float() < 1 / (1 + expf(-score));
  }
}

// ---- the model ----

typedef struct model_t {
  weir_edge_t users, items, places, tags, clicks;
  weir_edge_t loss;
  weir_metric_t auc;
  weir_node_t *init, *step;
} model_t;

// A weight for each pair of group and item, and one for each tag: all that it learns, it remembers.
static weir_edge_t wide(weir_scope_t* s, const model_t* m) {
  weir_edge_t pairs = weir_weight(s, "pairs", weir_init_zeros(), WEIR_SHAPE(GROUPS * ITEMS, 1));
  weir_edge_t weights = weir_weight(s, "tags", weir_init_zeros(), WEIR_SHAPE(TAGS, 1));
  weir_edge_t group = weir_floor_mod(s, m->users, weir_const_int(s, GROUPS));
  weir_edge_t pair = weir_add_v2(s, weir_mul(s, group, weir_const_int(s, ITEMS)), m->items);
  return weir_add_v2(s, weir_embedding_lookup(s, WEIR_TABLES(pairs), pair),
                     weir_embedding_lookup_sparse(s, WEIR_TABLES(weights), m->places, m->tags,
                                                  .combiner = WEIR_COMBINE_SUM));
}

static weir_edge_t deep(weir_scope_t* s, const model_t* m) {
  const weir_init_t small = weir_init_normal(0, 0.3, 0);
  weir_edge_t tags = weir_weight(s, "tag_embeddings", small, WEIR_SHAPE(TAGS, SIZE));
  weir_edge_t user = weir_layer_embedding(s, m->users, USERS, SIZE, .init = small);
  weir_edge_t item = weir_layer_embedding(s, m->items, ITEMS, SIZE, .init = small);
  weir_edge_t tag = weir_embedding_lookup_sparse(s, WEIR_TABLES(tags), m->places, m->tags);
  weir_edge_t parts[] = {user, item, weir_mul(s, user, item), tag};
  weir_edge_t x = weir_concat_v2(s, parts, 4, weir_const_int(s, 1));
  x = weir_ensure_shape(s, x, WEIR_SHAPE(-1, 4 * SIZE));
  x = weir_layer_dense(s, x, 64, .activation = weir_op_relu);
  x = weir_layer_dense(s, x, 32, .activation = weir_op_relu);
  return weir_layer_dense(s, x, 1);
}

static model_t build(weir_graph_t* graph) {
  model_t m = {0};
  weir_scope_t* s = weir_scope_create(graph);
  weir_scope_seed(s, 1);
  m.users = weir_placeholder(s, WEIR_DTYPE_INT32, .shape = WEIR_SHAPE(-1));
  m.items = weir_placeholder(s, WEIR_DTYPE_INT32, .shape = WEIR_SHAPE(-1));
  m.places = weir_placeholder(s, WEIR_DTYPE_INT64, .shape = WEIR_SHAPE(-1, 2));
  m.tags = weir_placeholder(s, WEIR_DTYPE_INT64, .shape = WEIR_SHAPE(-1));
  m.clicks = weir_placeholder(s, WEIR_DTYPE_FLOAT, .shape = WEIR_SHAPE(-1, 1));

  weir_edge_t remembered = wide(weir_scope_in(s, "wide"), &m);
  const int wide_count = weir_scope_variable_count(s);
  weir_edge_t scores = weir_add_v2(s, remembered, deep(weir_scope_in(s, "deep"), &m));
  m.loss = weir_loss_sigmoid_cross_entropy(s, m.clicks, scores);
  m.auc = weir_metric_auc(s, m.clicks, weir_sigmoid(s, scores));

  weir_edge_t variables[16];
  int count = weir_scope_variable_count(s);
  for (int i = 0; i < count; ++i) variables[i] = weir_scope_variable_at(s, i).value;
  weir_optimizer_t ftrl = weir_ftrl(0.1f, .initial_accumulator = WEIR_SET(1e-4f));
  weir_optimizer_t adagrad = weir_adagrad(0.05f, .initial_accumulator = WEIR_SET(1e-4f));
  weir_node_t* steps[] = {
      weir_minimize(s, &ftrl, m.loss, .variables = variables, .variable_count = wide_count),
      weir_minimize(s, &adagrad, m.loss, .variables = variables + wide_count,
                    .variable_count = count - wide_count)};
  m.step = weir_group(s, "step", steps, 2);
  m.init = weir_initializer(s);
  check(weir_scope_finish(s));
  return m;
}

// With |is_step| learns from a new batch; otherwise counts it for the metric. Returns the loss.
static float run(weir_session_t* session, const model_t* m, bool is_step) {
  static batch_t b;
  draw(&b);
  weir_feed_t feeds[] = {
      {m->users, tensor_of(WEIR_DTYPE_INT32, WEIR_DIMS(BATCH), b.users)},
      {m->items, tensor_of(WEIR_DTYPE_INT32, WEIR_DIMS(BATCH), b.items)},
      {m->places, tensor_of(WEIR_DTYPE_INT64, WEIR_DIMS(b.tag_count, 2), b.places)},
      {m->tags, tensor_of(WEIR_DTYPE_INT64, WEIR_DIMS(b.tag_count), b.tags)},
      {m->clicks, tensor_of(WEIR_DTYPE_FLOAT, WEIR_DIMS(BATCH, 1), b.clicks)}};
  return float_of(run_step(session, feeds, 5, is_step ? m->step : m->auc.update, m->loss));
}

int main(int argc, char** argv) {
  const int steps = steps_option(argc, argv, 6000);
  weir_graph_t* graph = NULL;
  weir_session_t* session = NULL;
  float loss = 0, auc = 0;
  make_world();
  check(weir_graph_create(&graph));
  model_t m = build(graph);
  check(weir_session_create(graph, NULL, &session));
  check(weir_session_run_target(session, m.init));
  for (int i = 1; i <= steps; ++i) {
    loss += 0.01f * (run(session, &m, true) - loss);
    if (i % 500 == 0) printf("step %d  loss %.3f\n", i, loss / (1 - powf(0.99f, (float)i)));
  }
  for (int i = 0; i < 100; ++i) run(session, &m, false);
  check(weir_session_fetch_float(session, m.auc.value, &auc));
  printf("area under the curve on new examples: %.3f\n", auc);
  weir_session_destroy(session);
  weir_graph_release(graph);
  return 0;
}

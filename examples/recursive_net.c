// recursive_net.c — A recursive network: a tree of cells for each expression, as the expression is.
//
// It learns arithmetic of the numbers below 5, modulo 5, from random expressions such as
// (3 + (2 * 4)): a digit is a row of a table, and each sum or product joins the vectors of what is
// left and right of it by a small network, one for each of the two signs. No two networks are
// alike, so none is a graph: everything runs when it is added, and what ran is what is
// differentiated. Tested on expressions deeper than all it has seen.
#include "support.h"

enum { MODULUS = 5, WIDTH = 32, HIDDEN = 64, BATCH = 12, TRAIN_DEPTH = 3, TEST_DEPTH = 6 };

// ---- expressions ----

typedef struct tree_t {
  char sign;  // '+', '*', or 0: a digit
  int value;
  struct tree_t *left, *right;
} tree_t;

static tree_t* random_tree(int depth) {
  tree_t* tree = calloc(1, sizeof(*tree));
  bool is_digit = depth == 0 || random_below(4) == 0;
  if (is_digit) {
    tree->value = random_below(MODULUS);
    return tree;
  }
  tree->sign = random_below(2) ? '+' : '*';
  tree->left = random_tree(depth - 1);
  tree->right = random_tree(depth - 1);
  int a = tree->left->value, b = tree->right->value;
  tree->value = (tree->sign == '+' ? a + b : a * b) % MODULUS;
  return tree;
}

static void free_tree(tree_t* tree) {
  if (!tree) return;
  free_tree(tree->left);
  free_tree(tree->right);
  free(tree);
}

static void print_tree(const tree_t* tree) {
  if (!tree->sign) {
    printf("%d", tree->value);
    return;
  }
  printf("(");
  print_tree(tree->left);
  printf(" %c ", tree->sign);
  print_tree(tree->right);
  printf(")");
}

// ---- the network ----

typedef struct cell_t {
  weir_edge_t kernel, bias, out;
} cell_t;

typedef struct model_t {
  weir_edge_t digits;  // a row for each
  cell_t plus, times;
  weir_edge_t read, read_bias;
} model_t;

static cell_t make_cell(weir_scope_t* s, const char* name) {
  weir_scope_t* in = weir_scope_in(s, name);
  weir_init_t init = weir_init_glorot_uniform(0);
  return (cell_t){.kernel = weir_weight(in, "kernel", init, WEIR_SHAPE(2 * WIDTH, HIDDEN)),
                  .bias = weir_weight(in, "bias", weir_init_zeros(), WEIR_SHAPE(HIDDEN)),
                  .out = weir_weight(in, "out", init, WEIR_SHAPE(HIDDEN, WIDTH))};
}

static model_t make_model(weir_scope_t* s) {
  return (model_t){
      .digits = weir_weight(s, "digits", weir_init_normal(0, 1, 1), WEIR_SHAPE(MODULUS, WIDTH)),
      .plus = make_cell(s, "plus"),
      .times = make_cell(s, "times"),
      .read = weir_weight(s, "read", weir_init_glorot_uniform(2), WEIR_SHAPE(WIDTH, MODULUS)),
      .read_bias = weir_weight(s, "read_bias", weir_init_zeros(), WEIR_SHAPE(MODULUS))};
}

// The states of the nodes of some trees, a row each, and what they should stand for.
typedef struct states_t {
  weir_edge_t rows[BATCH << (TEST_DEPTH + 1)];
  int labels[BATCH << (TEST_DEPTH + 1)];
  int count;
} states_t;

// Returns the state of |tree|, the last that it adds to |states|.
static weir_edge_t encode(weir_scope_t* s, const model_t* m, const tree_t* tree, states_t* states) {
  weir_edge_t state;
  if (tree->sign) {
    weir_edge_t sides[] = {encode(s, m, tree->left, states), encode(s, m, tree->right, states)};
    const cell_t* cell = tree->sign == '+' ? &m->plus : &m->times;
    weir_edge_t both = weir_concat_v2(s, sides, 2, weir_const_int(s, 1));
    weir_edge_t hidden =
        weir_relu(s, weir_bias_add(s, weir_mat_mul(s, both, cell->kernel), cell->bias));
    state = weir_tanh(s, weir_mat_mul(s, hidden, cell->out));
  } else {
    state = weir_gather_v2(s, m->digits, weir_const_ints(s, &tree->value, 1), weir_const_int(s, 0));
  }
  states->rows[states->count] = state;
  states->labels[states->count++] = tree->value;
  return state;
}

static weir_edge_t read_out(weir_scope_t* s, const model_t* m, weir_edge_t rows) {
  return weir_bias_add(s, weir_mat_mul(s, rows, m->read), m->read_bias);
}

// ---- training ----

// One step on new expressions: a scope that is gone afterwards. Returns the loss.
static float train(weir_scope_t* model, const model_t* m, const weir_optimizer_t* optimizer) {
  static states_t states;
  weir_scope_t* s = weir_eager_step(model);
  states.count = 0;
  for (int i = 0; i < BATCH; ++i) {
    tree_t* tree = random_tree(1 + random_below(TRAIN_DEPTH));
    encode(s, m, tree, &states);
    free_tree(tree);
  }
  weir_edge_t rows = weir_concat_v2(s, states.rows, states.count, weir_const_int(s, 0));
  weir_edge_t logits = read_out(s, m, rows);
  weir_edge_t labels = weir_const_ints(s, states.labels, states.count);
  weir_edge_t losses = weir_sparse_softmax_cross_entropy_with_logits(s, logits, labels).loss;
  weir_edge_t loss = weir_mean(s, losses, weir_const_int(s, 0));
  float value = 0;
  weir_minimize(s, optimizer, loss, .clip_global_norm = 5);
  check(weir_eager_float(s, loss, &value));
  check(weir_scope_finish(s));
  return value;
}

// Whether the network has |tree| right.
static bool test(weir_scope_t* model, const model_t* m, const tree_t* tree) {
  static states_t states;
  weir_scope_t* s = weir_eager_step(model);
  weir_tensor_t* answer = NULL;
  states.count = 0;
  weir_edge_t root = encode(s, m, tree, &states);
  weir_edge_t best = weir_arg_max(s, read_out(s, m, root), weir_const_int(s, 1));
  check(weir_eager_value(s, best, &answer));
  check(weir_scope_finish(s));
  bool is_right = *(const int64_t*)weir_tensor_data(answer) == tree->value;
  weir_tensor_release(answer);
  return is_right;
}

static void show(weir_scope_t* model, const model_t* m) {
  tree_t* tree = random_tree(3);
  print_tree(tree);
  printf(" = %d modulo %d: %s\n", tree->value, MODULUS, test(model, m, tree) ? "right" : "wrong");
  free_tree(tree);
}

int main(int argc, char** argv) {
  enum { TESTS = 200, SHOWN = 100 };
  int steps = steps_option(argc, argv, 1200), right = 0;
  weir_optimizer_t adam = weir_adam(0.003f);
  weir_eager_t* eager = NULL;
  check(weir_eager_create(&(weir_eager_options_t){.threads = 1}, &eager));
  weir_scope_t* model = weir_eager_scope(eager);
  weir_scope_seed(model, 1);
  model_t m = make_model(model);
  double begin = now();
  float sum = 0;
  for (int step = 1; step <= steps; ++step) {
    sum += train(model, &m, &adam);
    if (step % SHOWN && step < steps) continue;
    printf("step %d/%d  loss %.4f  %.1f s\n", step, steps, sum / SHOWN, now() - begin);
    sum = 0;
  }
  for (int i = 0; i < TESTS; ++i) {
    tree_t* tree = random_tree(TEST_DEPTH);
    right += test(model, &m, tree);
    free_tree(tree);
  }
  for (int i = 0; i < 3; ++i) show(model, &m);
  printf("right: %.1f %% of %d deeper expressions\n", 100.0 * right / TESTS, TESTS);
  check(weir_scope_finish(model));
  weir_eager_destroy(eager);
  return 0;
}

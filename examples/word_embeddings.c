// word_embeddings.c — Words as vectors, learnt from the company they keep (skip-gram): a table
// whose rows are trained sparsely, against a sample of all words.
#include <ctype.h>
#include <math.h>
#include <weir/weir.h>

#include "support.h"

enum { WORDS = 2000, SIZE = 48, BATCH = 512, WINDOW = 3, SAMPLED = 64, NEAREST = 5 };

// ---- the text as numbers of its most frequent words ----

typedef struct word_t {
  const char* text;
  int at, count;
} word_t;

typedef struct text_t {
  const char* names[WORDS];  // by falling frequency, as the sampler wants them
  int32_t* numbers;          // the text without rarer ones
  int count;
} text_t;

static int by_text(const void* a, const void* b) {
  return strcmp(((const word_t*)a)->text, ((const word_t*)b)->text);
}

static int by_count(const void* a, const void* b) {
  int difference = ((const word_t*)b)->count - ((const word_t*)a)->count;
  return difference ? difference : by_text(a, b);
}

static text_t read_words(char* bytes, size_t size) {
  text_t t = {.numbers = calloc(size, sizeof(*t.numbers))};
  word_t *all = calloc(size, sizeof(*all)), *distinct = calloc(size, sizeof(*distinct));
  int total = 0, found = -1;
  for (size_t i = 0; i < size; ++i)
    bytes[i] = isalpha((unsigned char)bytes[i]) ? (char)tolower(bytes[i]) : 0;
  for (size_t i = 0; i < size; i += strlen(bytes + i) + 1)
    if (bytes[i]) all[total] = (word_t){.text = bytes + i, .at = total}, ++total;
  qsort(all, (size_t)total, sizeof(*all), by_text);
  for (int i = 0; i < total; ++i) {  // equal words are side by side now
    if (!i || by_text(&all[i - 1], &all[i])) distinct[++found] = (word_t){all[i].text, i, 0};
    ++distinct[found].count;
  }
  qsort(distinct, (size_t)found + 1, sizeof(*distinct), by_count);
  for (int n = 0; n <= found; ++n) {
    if (n < WORDS) t.names[n] = distinct[n].text;
    for (int k = 0; k < distinct[n].count; ++k) t.numbers[all[distinct[n].at + k].at] = n;
  }
  for (int i = 0; i < total; ++i) {  // of the most frequent words, too, many are left out
    int n = t.numbers[i];
    if (n < WORDS && random_float() < sqrtf(0.01f * (float)(n + 1))) t.numbers[t.count++] = n;
  }
  free(all);
  free(distinct);
  return t;
}

// ---- the model ----

typedef struct model_t {
  weir_edge_t words, context, loss;  // words [batch], and one near each [batch, 1]
  weir_edge_t nearest;               // the words most like |words|, itself first
  weir_node_t *init, *step;
} model_t;

static model_t build(weir_graph_t* graph) {
  model_t m = {0};
  weir_scope_t* s = weir_scope_create(graph);
  weir_scope_seed(s, 1);
  m.words = weir_placeholder(s, WEIR_DTYPE_INT32, .shape = WEIR_SHAPE(-1));
  m.context = weir_placeholder(s, WEIR_DTYPE_INT64, .shape = WEIR_SHAPE(-1, 1));
  const weir_dims_t shape = WEIR_SHAPE(WORDS, SIZE);
  weir_edge_t table = weir_weight(s, "embeddings", weir_init_uniform(-0.1, 0.1, 0), shape);
  weir_edge_t weights = weir_weight(s, "weights", weir_init_zeros(), shape);
  weir_edge_t biases = weir_weight(s, "biases", weir_init_zeros(), WEIR_SHAPE(WORDS));

  weir_edge_t x = weir_embedding_lookup(s, WEIR_TABLES(table), m.words);
  m.loss =
      weir_loss_weighted(s, weir_sampled_softmax_loss(s, WEIR_TABLES(weights), WEIR_TABLES(biases),
                                                      m.context, x, SAMPLED, WORDS));
  weir_optimizer_t adagrad = weir_adagrad(0.1f, .initial_accumulator = WEIR_SET(1e-6f));
  m.step = weir_minimize(s, &adagrad, m.loss);

  weir_edge_t squares = weir_sum(s, weir_square(s, table), weir_const_int(s, 1), .keep_dims = true);
  weir_edge_t unit = weir_mul(s, table, weir_rsqrt(s, squares));  // rows of length 1
  weir_edge_t cosines = weir_mat_mul(s, weir_embedding_lookup(s, WEIR_TABLES(unit), m.words), unit,
                                     .transpose_b = true);
  m.nearest = weir_top_kv2(s, cosines, weir_const_int(s, 1 + NEAREST)).indices;
  m.init = weir_initializer(s);
  check(weir_scope_finish(s));
  return m;
}

static float train(weir_session_t* session, const model_t* m, const text_t* t) {
  int32_t words[BATCH];
  int64_t context[BATCH];
  for (int i = 0; i < BATCH; ++i) {
    int at = WINDOW + random_below(t->count - 2 * WINDOW), distance = 1 + random_below(WINDOW);
    words[i] = t->numbers[at];
    context[i] = t->numbers[random_below(2) ? at + distance : at - distance];
  }
  weir_feed_t feeds[] = {{m->words, tensor_of(WEIR_DTYPE_INT32, WEIR_DIMS(BATCH), words)},
                         {m->context, tensor_of(WEIR_DTYPE_INT64, WEIR_DIMS(BATCH, 1), context)}};
  return float_of(run_step(session, feeds, 2, m->step, m->loss));
}

static void print_nearest(weir_session_t* session, const model_t* m, const text_t* t) {
  const char* asked[] = {"king", "he", "my", "day", "love", "brother", "three", "go"};
  int32_t numbers[8];
  for (int i = 0; i < 8; ++i)
    for (numbers[i] = 0; strcmp(t->names[numbers[i]], asked[i]);) ++numbers[i];
  weir_feed_t feed = {m->words, tensor_of(WEIR_DTYPE_INT32, WEIR_DIMS(8), numbers)};
  weir_tensor_t* nearest = run_step(session, &feed, 1, NULL, m->nearest);
  const int32_t* found = weir_tensor_data(nearest);
  for (int i = 0; i < 8; ++i) {
    printf("%s:", asked[i]);
    for (int k = 1; k <= NEAREST; ++k) printf(" %s", t->names[found[i * (1 + NEAREST) + k]]);
    puts("");
  }
  weir_tensor_release(nearest);
}

int main(int argc, char** argv) {
  const int steps = steps_option(argc, argv, 5000);
  size_t size = 0;
  char* bytes = read_text("data/text/shakespeare.txt", &size);
  text_t text = read_words(bytes, size);
  weir_graph_t* graph = NULL;
  weir_session_t* session = NULL;
  check(weir_graph_create(&graph));
  model_t m = build(graph);
  check(weir_session_create(graph, NULL, &session));
  check(weir_session_run_target(session, m.init));
  float loss = 0;
  for (int i = 1; i <= steps; ++i) {
    loss += train(session, &m, &text) / 100;
    if (i % 100) continue;
    if (i == 100 || i % 1000 == 0) printf("step %d  loss %.3f\n", i, loss);
    loss = 0;
  }
  print_nearest(session, &m, &text);
  weir_session_destroy(session);
  weir_graph_release(graph);
  free(text.numbers);
  free(bytes);
  return 0;
}

// bench.h — A graph and a scope for one test of what users build with, and what such tests ask.
#ifndef WEIR_TESTS_TESTING_BENCH_H_
#define WEIR_TESTS_TESTING_BENCH_H_

#include "testing/tensors.h"
#include "weir/ops.h"

typedef struct bench_t {
  weir_graph_t* graph;
  weir_scope_t* s;
  weir_edge_t x;  // an input, where a test's own set-up makes one
} bench_t;

static inline int setup(void** state) {
  bench_t* b = calloc(1, sizeof(*b));
  check_ok(weir_graph_create(&b->graph));
  b->s = weir_scope_create(b->graph);
  *state = b;
  return 0;
}

static inline int teardown(void** state) {
  bench_t* b = *state;
  if (b->s) weir_status_destroy(weir_scope_finish(b->s));
  weir_graph_release(b->graph);
  free(b);
  return 0;
}

#define FED(b, dtype, ...) \
  weir_placeholder((b)->s, WEIR_DTYPE_##dtype, .shape = WEIR_SHAPE(__VA_ARGS__))

static inline void check_built(bench_t* b) {
  const weir_status_t* status = weir_scope_status(b->s);
  if (status) print_error("%s\n", weir_status_message(status));
  assert_null(status);
}

// The error that sticks; the bench starts anew.
static inline void check_fails(bench_t* b, weir_edge_t result, const char* text) {
  assert_null(result.node);
  check_error(weir_scope_finish(b->s), WEIR_INVALID_ARGUMENT, text);
  b->s = weir_scope_create(b->graph);
}

#endif  // WEIR_TESTS_TESTING_BENCH_H_

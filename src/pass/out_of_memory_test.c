// out_of_memory_test.c — Whatever allocation fails, a pass says so, or has done all that it does.
#include "base/alloc.h"
#include "pass/pass.h"
#include "testing/world.h"

#define GPU "/job:localhost/replica:0/task:0/device:GPU:0"
#define SHAPE_2_4 "shape { dim { size: 2 } dim { size: 4 } }"
#define FLOAT "attr { key: 'T' value { type: DT_FLOAT } }"
#define ARG(name, shape)                                    \
  "node { name: '" name "' op: 'Placeholder' device: '" GPU \
  "' attr { key: 'dtype' value { type: DT_FLOAT } }"        \
  " attr { key: 'shape' value { " shape " } } }"
#define NODE(name, op, inputs) \
  "node { name: '" name "' op: '" op "' device: '" GPU "' " inputs " " FLOAT " }"
#define VARIABLE(name)                                      \
  "node { name: '" name "' op: 'VarHandleOp' device: '" GPU \
  "' attr { key: 'dtype' value { type: DT_FLOAT } }"        \
  " attr { key: 'shape' value { " SHAPE_2_4 " } } }"

// Something for each pass: a chain that waits for an update, what follows a product, nodes that are
// alike, constants, updates of two variables, a condition.
static const char kGraph[] =
    ARG("x", SHAPE_2_4) ARG("y", SHAPE_2_4) ARG("w", "shape { dim { size: 4 } dim { size: 4 } }")
    ARG("b", "shape { dim { size: 4 } }") ARG("rate", "shape { }")
    VARIABLE("v0") VARIABLE("v1")
    "node { name: 'add' op: 'AssignAddVariableOp' device: '" GPU "' input: 'v0' input: 'y'"
    " attr { key: 'dtype' value { type: DT_FLOAT } } }"
    "node { name: 'wait' op: 'NoOp' device: '" GPU "' input: '^add' }"
    NODE("exp", "Exp", "input: 'x' input: '^wait'") NODE("abs", "Abs", "input: 'exp'")
    NODE("mul", "Mul", "input: 'abs' input: 'y'") NODE("chain", "Tanh", "input: 'mul'")
    NODE("product", "MatMul", "input: 'x' input: 'w'")
    NODE("bias", "BiasAdd", "input: 'product' input: 'b'") NODE("dense", "Relu", "input: 'bias'")
    NODE("sum0", "AddV2", "input: 'x' input: 'y'") NODE("sum1", "AddV2", "input: 'x' input: 'y'")
    NODE("alike", "MatMul", "input: 'sum0' input: 'sum1' attr { key: 'transpose_b' value { b: true } }")
    "node { name: 'two' op: 'Const' attr { key: 'dtype' value { type: DT_FLOAT } }"
    " attr { key: 'value' value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 2 } } } }"
    NODE("four", "Mul", "input: 'two' input: 'two'") NODE("folded", "Mul", "input: 'y' input: 'four'")
    NODE("not0", "Neg", "input: 'y'") NODE("not1", "Neg", "input: 'not0'")
    NODE("same", "Identity", "input: 'not1'")
    NODE("step0", "ResourceApplyGradientDescent", "input: 'v0' input: 'rate' input: 'dense'")
    NODE("step1", "ResourceApplyGradientDescent", "input: 'v1' input: 'rate' input: 'chain'")
    "node { name: 'train' op: 'NoOp' device: '" GPU "' input: '^step0' input: '^step1' }"
    "node { name: 'p' op: 'Placeholder' attr { key: 'dtype' value { type: DT_BOOL } } }"
    NODE("switch", "Switch", "input: 'x' input: 'p'") NODE("then", "Exp", "input: 'switch:1'")
    NODE("more", "Abs", "input: 'then'") NODE("else", "Neg", "input: 'switch'")
    "node { name: 'merge' op: 'Merge' device: '" GPU "' input: 'more' input: 'else' " FLOAT
    " attr { key: 'N' value { i: 2 } } }";

// Every product of constants is |self|, a tensor: a node that cannot be computed is left alone,
// which is no error.
static weir_status_t* evaluate(void* self, const weir_node_t* node, weir_tensor_t* const* inputs,
                               weir_tensor_t** outputs) {
  (void)inputs;
  bool is_product = strcmp(node->def.op_name, "Mul") == 0;
  if (is_product) outputs[0] = weir_tensor_retain(self);
  return is_product ? NULL : WEIR_STATUS(UNIMPLEMENTED, "%s", node->def.op_name);
}

typedef struct step_t {
  weir_edge_t feeds[8], fetches[8];
  weir_node_t* target;
  weir_prune_params_t params;
  weir_tensor_t* product;  // of constants
} step_t;

static void add_loop(world_t* w, weir_edge_t x) {
  weir_edge_t zero = weir_const_int(w->scope, 0), limit = weir_const_int(w->scope, 3);
  loop_nodes_t loop = open_loop(w, "loop", zero, x, limit, 10);
  close_loop(w, &loop, OP(w, "Tanh", OP(w, "Exp", loop.x)));
  add(w, "Identity", "looped", WEIR_EDGES(loop.exit_x), WEIR_NO_ATTRS);
}

static void make_step(world_t* w, step_t* step) {
  static const char* const feeds[] = {"x", "y", "w", "b", "rate", "p"};
  static const char* const fetches[] = {"chain", "alike", "folded", "same", "merge", "looped"};
  import_text(w, kGraph);
  add_loop(w, output(weir_graph_find_node(w->graph, "x"), 0));
  for (size_t i = 0; i < WEIR_COUNT_OF(feeds); ++i)
    step->feeds[i] = output(weir_graph_find_node(w->graph, feeds[i]), 0);
  for (size_t i = 0; i < WEIR_COUNT_OF(fetches); ++i)
    step->fetches[i] = output(weir_graph_find_node(w->graph, fetches[i]), 0);
  step->target = weir_graph_find_node(w->graph, "train");
  step->product = make_float(4);
  step->params =
      (weir_prune_params_t){.graph = w->graph,
                            .feeds = {.items = step->feeds, .count = WEIR_COUNT_OF(feeds)},
                            .fetches = {.items = step->fetches, .count = WEIR_COUNT_OF(fetches)},
                            .targets = &step->target,
                            .target_count = 1};
}

// What all passes make of the step while the n-th allocation fails; 0: none does.
static weir_status_t* optimize(const step_t* step, weir_dtype_t mixed, int64_t n,
                               weir_strbuf_t* out) {
  weir_graph_t* copy = NULL;
  weir_node_t** targets = NULL;
  weir_alloc_fail_at(n, false);
  weir_status_t* status = weir_prune(&step->params, &copy, &targets);
  if (status) assert_null(copy);
  weir_pass_ctx_t ctx = {.graph = copy,
                         .targets = targets,
                         .target_count = 1,
                         .mixed = mixed,
                         .evaluator = {.evaluate = evaluate, .self = step->product}};
  if (!status) status = weir_passes_run(&ctx, NULL);
  if (!status) status = weir_passes_run_local(&ctx, NULL);
  weir_alloc_fail_at(0, false);
  if (!status) status = weir_graph_write(copy, out);
  weir_graph_unref(copy);
  return status;
}

static void check_passes(const step_t* step, weir_dtype_t mixed) {
  weir_strbuf_t good = {0};
  int64_t failed = 0;
  check_ok(optimize(step, mixed, 0, &good));
  weir_arena_split(true);
  for (int64_t n = 1, passed = 0; passed < 50; n += WEIR_TEST_STRIDE) {  // none of these fails
    weir_strbuf_t out = {0};
    weir_status_t* status = optimize(step, mixed, n, &out);
    if (status) {
      ++failed;
      passed = 0;
      check_error(status, WEIR_RESOURCE_EXHAUSTED, "");
    } else {
      ++passed;
      if (!weir_view_equal(weir_strbuf_view(&out), weir_strbuf_view(&good)))
        fail_msg("without allocation %lld it is another graph", (long long)n);
    }
    weir_strbuf_free(&out);
  }
  weir_arena_split(false);
  assert_true(failed > 500 / WEIR_TEST_STRIDE);  // each of the arenas', too
  weir_strbuf_free(&good);
}

static void test_passes(void** state) {
  step_t step;
  make_step(*state, &step);
  check_passes(&step, WEIR_DTYPE_INVALID);
  check_passes(&step, WEIR_DTYPE_BFLOAT16);
  weir_tensor_release(step.product);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_passes, world_setup, world_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

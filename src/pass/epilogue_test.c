// epilogue_test.c — What products and normalisations take over, and what they leave alone.
#include "pass/pass.h"
#include "testing/world.h"

#define GPU "/job:localhost/replica:0/task:0/device:GPU:0"
#define CPU "/job:localhost/replica:0/task:0/device:CPU:0"
enum { MOST = 8 };

typedef struct fixture_t {
  world_t* w;
  const char* device;  // of what is added
  weir_edge_t feeds[MOST];
  int feed_count;
  weir_edge_t fetches[MOST];
  int fetch_count;
  weir_node_t* target;  // NULL: none
  weir_graph_t* copy;
} fixture_t;

static fixture_t start(world_t* w) { return (fixture_t){.w = w, .device = GPU}; }

static weir_node_t* put(fixture_t* f, const char* op, const char* name, weir_edges_t inputs,
                        weir_attrs_t attrs) {
  weir_node_params_t params = {.op = op,
                               .name = name,
                               .unique_name = true,
                               .device = f->device,
                               .inputs = inputs,
                               .attrs = attrs};
  weir_node_t* node = NULL;
  check_ok(weir_graph_add(f->w->graph, &params, &node));
  return node;
}
// Output 0 of a new node of the same name as its op.
#define PUT(f, op, ...) output(put(f, op, op, WEIR_EDGES(__VA_ARGS__), WEIR_NO_ATTRS), 0)

static weir_edge_t feed_of(fixture_t* f, weir_dtype_t dtype, int rank, const int64_t* dims) {
  const weir_shape_t* shape =
      rank < 0 ? &weir_shape_unknown : weir_shape_make(&f->w->graph->arena, rank, dims);
  weir_edge_t edge =
      output(put(f, "Placeholder", "fed", WEIR_NO_EDGES,
                 WEIR_ATTRS(weir_attr_type("dtype", dtype), weir_attr_shape("shape", shape))),
             0);
  f->feeds[f->feed_count++] = edge;
  return edge;
}
static weir_edge_t image(fixture_t* f) {
  return feed_of(f, WEIR_DTYPE_FLOAT, 4, (const int64_t[]){2, 3, 3, 4});
}
static weir_edge_t vector(fixture_t* f) {
  return feed_of(f, WEIR_DTYPE_FLOAT, 1, (const int64_t[]){4});
}

// Of |x| and a vector that is all of scale, offset and moments.
static weir_node_t* norm_with(fixture_t* f, weir_edge_t x, weir_edge_t v, bool is_training) {
  return put(f, "FusedBatchNormV3", "norm", WEIR_EDGES(x, v, v, v, v),
             WEIR_ATTRS(weir_attr_bool("is_training", is_training)));
}
static weir_node_t* norm_of(fixture_t* f, weir_edge_t x) {
  return norm_with(f, x, vector(f), true);
}

// Runs the pass over what is fetched, and forgets the fetches. Returns how many nodes it added.
static int run(fixture_t* f) {
  weir_prune_params_t params = {.graph = f->w->graph,
                                .feeds = {.items = f->feeds, .count = f->feed_count},
                                .fetches = {.items = f->fetches, .count = f->fetch_count},
                                .targets = &f->target,
                                .target_count = f->target != NULL};
  weir_node_t** targets = NULL;
  weir_graph_release(f->copy);
  f->copy = NULL;
  check_ok(weir_prune(&params, &f->copy, &targets));
  weir_pass_ctx_t ctx = {.graph = f->copy, .targets = targets, .target_count = params.target_count};
  size_t before = f->copy->node_count;
  check_ok(weir_pass_epilogue(&ctx));
  f->fetch_count = 0;
  return (int)(f->copy->node_count - before);
}
static void fetch(fixture_t* f, weir_edge_t edge) { f->fetches[f->fetch_count++] = edge; }
static int run_for(fixture_t* f, weir_edge_t edge) {
  fetch(f, edge);
  return run(f);
}

static const weir_node_t* found(const fixture_t* f, const char* name, const char* op) {
  const weir_node_t* node = weir_graph_find(f->copy, weir_view_of(name));
  assert_non_null(node);
  assert_string_equal(node->def.op_name, op);
  return node;
}

// What result |index| of the copy is.
static weir_edge_t result(const fixture_t* f, int index) {
  for (size_t i = 0; i < f->copy->node_count; ++i) {
    const weir_node_t* node = f->copy->nodes[i];
    if (weir_node_role(node) == WEIR_ROLE_RETVAL &&
        weir_attrs_int(node->def.attrs, "index") == index)
      return node->inputs[0];
  }
  return WEIR_NO_EDGE;
}

static void check_string(const weir_node_t* node, const char* attr, int i, const char* text) {
  assert_true(weir_view_is(weir_attrs_list(node->def.attrs, attr)->u.strings[i], text));
}

// ---- normalisations ----

static void test_norm(void** state) {
  fixture_t f = start(*state);
  weir_node_t* norm = norm_of(&f, image(&f));
  fetch(&f, PUT(&f, "Relu", output(norm, 0)));
  fetch(&f, output(norm, 1));
  fetch(&f, output(norm, 5));
  assert_int_equal(run(&f), 1);
  const weir_node_t* all = found(&f, "Relu_extended", "_FusedBatchNormEx");
  assert_int_equal(all->def.input_count, 5);
  assert_true(weir_view_is(weir_attrs_string(all->def.attrs, "activation_mode"), "Relu"));
  assert_string_equal(all->def.device, GPU);
  const int outputs[] = {0, 1, 5};
  for (int i = 0; i < 3; ++i) {
    assert_ptr_equal(result(&f, i).node, all);
    assert_int_equal(result(&f, i).index, outputs[i]);
  }
  assert_int_equal(all->shapes[0]->rank, 4);
  check_string(all, "_names", 0, "norm");
  check_string(all, "_names", 1, "Relu");
  check_string(all, "_ops", 0, "FusedBatchNormV3");
  check_string(all, "_outputs", 0, "Relu");
  check_string(all, "_outputs", 5, "norm:5");
  weir_graph_release(f.copy);
}

static void test_norm_and_addend(void** state) {
  fixture_t f = start(*state);
  weir_edge_t side = image(&f);
  weir_edge_t y = output(norm_of(&f, image(&f)), 0);
  assert_int_equal(run_for(&f, PUT(&f, "Relu", PUT(&f, "AddV2", y, side))), 1);
  const weir_node_t* all = found(&f, "Relu_extended", "_FusedBatchNormEx");
  assert_int_equal(all->def.input_count, 6);
  assert_int_equal(weir_attrs_int(all->def.attrs, "num_side_inputs"), 1);
  // The addend alone, from the other side.
  y = output(norm_of(&f, image(&f)), 0);
  assert_int_equal(run_for(&f, PUT(&f, "AddV2", side, y)), 1);
  all = found(&f, "AddV2_1_extended", "_FusedBatchNormEx");
  assert_true(weir_view_is(weir_attrs_string(all->def.attrs, "activation_mode"), "Identity"));
  // Of two that are added, one takes the other.
  weir_edge_t x = output(norm_of(&f, image(&f)), 0);
  y = output(norm_of(&f, side), 0);
  assert_int_equal(run_for(&f, PUT(&f, "Relu", PUT(&f, "AddV2", x, y))), 1);
  weir_graph_release(f.copy);
}

// What may be spread is no addend.
static void test_shapes(void** state) {
  fixture_t f = start(*state);
  weir_edge_t y = output(norm_of(&f, image(&f)), 0);
  weir_edge_t small = feed_of(&f, WEIR_DTYPE_FLOAT, 4, (const int64_t[]){2, 1, 1, 4});
  weir_edge_t unknown = feed_of(&f, WEIR_DTYPE_FLOAT, 4, (const int64_t[]){-1, 3, 3, 4});
  assert_int_equal(run_for(&f, PUT(&f, "Relu", PUT(&f, "AddV2", y, small))), 0);
  assert_int_equal(run_for(&f, PUT(&f, "Relu", PUT(&f, "AddV2", y, unknown))), 0);
  weir_graph_release(f.copy);
}

// Readers of moments come to wait for the addend, so it must not come from them.
static void test_moments(void** state) {
  fixture_t f = start(*state);
  weir_edge_t side = image(&f);
  weir_node_t* norm = norm_of(&f, image(&f));
  weir_edge_t led = PUT(&f, "AddV2", side, output(norm, 1));
  assert_int_equal(run_for(&f, PUT(&f, "Relu", PUT(&f, "AddV2", output(norm, 0), led))), 0);
  // By a control edge.
  norm = norm_of(&f, side);
  weir_edge_t mean = PUT(&f, "Neg", output(norm, 1)), late = PUT(&f, "Neg", side);
  check_ok(weir_graph_add_control(late.node, mean.node));
  assert_int_equal(run_for(&f, PUT(&f, "Relu", PUT(&f, "AddV2", output(norm, 0), late))), 0);
  // Through what was taken over before: its moments wait for the second one's now.
  weir_node_t* first = norm_of(&f, side);
  weir_node_t* second = norm_of(&f, side);
  weir_edge_t after = PUT(&f, "AddV2", side, output(second, 1));
  fetch(&f, PUT(&f, "Relu", PUT(&f, "AddV2", output(first, 0), after)));
  fetch(&f, PUT(&f, "Relu",
                PUT(&f, "AddV2", output(second, 0), PUT(&f, "AddV2", side, output(first, 1)))));
  assert_int_equal(run(&f), 1);
  weir_graph_release(f.copy);
}

// An addend that waits for an element of a queue keeps those that read moments waiting.
static void test_waiting(void** state) {
  fixture_t f = start(*state);
  const weir_dtype_t types[] = {WEIR_DTYPE_FLOAT};
  const weir_shape_t* shape = weir_shape_make(&f.w->graph->arena, 4, (const int64_t[]){2, 3, 3, 4});
  weir_named_attr_t attrs[] = {weir_attr_types("component_types", types, 1),
                               weir_attr_shapes("shapes", &shape, 1)};
  weir_node_t* queue =
      put(&f, "FIFOQueueV2", "queue", WEIR_NO_EDGES, (weir_attrs_t){.items = attrs, .count = 2});
  weir_node_t* taken = put(&f, "QueueDequeueV2", "taken", WEIR_EDGES(output(queue, 0)),
                           (weir_attrs_t){.items = attrs, .count = 1});
  taken->shapes[0] = shape;
  weir_node_t* norm = norm_of(&f, image(&f));
  weir_edge_t y = PUT(&f, "Relu", PUT(&f, "AddV2", output(norm, 0), output(taken, 0)));
  assert_int_equal(run_for(&f, y), 1);
  fetch(&f, output(norm, 1));
  assert_int_equal(run_for(&f, y), 0);
  weir_graph_release(f.copy);
}

// What others read or await stays.
static void test_read_elsewhere(void** state) {
  fixture_t f = start(*state);
  weir_edge_t y = output(norm_of(&f, image(&f)), 0);
  weir_edge_t relu = PUT(&f, "Relu", y);
  fetch(&f, y);
  assert_int_equal(run_for(&f, relu), 0);
  weir_node_t* after = put(&f, "NoOp", "after", WEIR_NO_EDGES, WEIR_NO_ATTRS);
  check_ok(weir_graph_add_control(after, y.node));
  f.target = after;
  assert_int_equal(run_for(&f, relu), 0);
  f.target = y.node;
  assert_int_equal(run_for(&f, relu), 0);
  f.target = NULL;
  assert_int_equal(run_for(&f, PUT(&f, "AddV2", relu, PUT(&f, "Neg", relu))), 1);
  weir_graph_release(f.copy);
}

static void test_controls(void** state) {
  fixture_t f = start(*state);
  weir_node_t* before = put(&f, "NoOp", "before", WEIR_NO_EDGES, WEIR_NO_ATTRS);
  weir_node_t* norm = norm_of(&f, image(&f));
  weir_edge_t relu = PUT(&f, "Relu", output(norm, 0));
  check_ok(weir_graph_add_control(relu.node, before));
  assert_int_equal(run_for(&f, relu), 1);
  const weir_node_t* all = found(&f, "Relu_extended", "_FusedBatchNormEx");
  assert_int_equal(all->control_count, 1);
  assert_string_equal(all->control_inputs[0]->def.name, "before");
  // Who reads the moments does not wait for it.
  fetch(&f, output(norm, 1));
  assert_int_equal(run_for(&f, relu), 0);
  // Who awaits the last node awaits the new one.
  weir_node_t* after = put(&f, "NoOp", "after", WEIR_NO_EDGES, WEIR_NO_ATTRS);
  check_ok(weir_graph_add_control(after, relu.node));
  f.target = after;
  assert_int_equal(run(&f), 1);
  const weir_node_t* waiting = found(&f, "after", "NoOp");
  assert_string_equal(waiting->control_inputs[0]->def.op_name, "_FusedBatchNormEx");
  weir_graph_release(f.copy);
}

// Where there is no kernel for it, or the parts run elsewhere or at other times.
static void test_unlike(void** state) {
  fixture_t f = start(*state);
  f.device = CPU;
  assert_int_equal(run_for(&f, PUT(&f, "Relu", output(norm_of(&f, image(&f)), 0))), 0);
  f.device = GPU;
  weir_edge_t y = output(norm_of(&f, image(&f)), 0);
  f.device = CPU;
  assert_int_equal(run_for(&f, PUT(&f, "Relu", y)), 0);
  f.device = GPU;
  assert_int_equal(run_for(&f, PUT(&f, "Elu", y)), 0);  // another activation
  weir_edge_t x = feed_of(&f, WEIR_DTYPE_FLOAT, 5, (const int64_t[]){1, 2, 3, 3, 4}),
              v = vector(&f);
  weir_node_t* norm = put(&f, "FusedBatchNormV3", "norm", WEIR_EDGES(x, v, v, v, v),
                          WEIR_ATTRS(weir_attr_string("data_format", "NDHWC")));
  assert_int_equal(run_for(&f, PUT(&f, "Relu", output(norm, 0))), 0);  // a layout it does not take
  weir_graph_release(f.copy);
}

static void test_branches(void** state) {
  fixture_t f = start(*state);
  weir_edge_t is_on = feed_of(&f, WEIR_DTYPE_BOOL, 0, NULL);
  weir_node_t* branch = put(&f, "Switch", "branch", WEIR_EDGES(image(&f), is_on), WEIR_NO_ATTRS);
  weir_edge_t y = output(norm_of(&f, image(&f)), 0);
  weir_edge_t sum = PUT(&f, "AddV2", y, output(branch, 1));  // in one branch alone
  assert_int_equal(run_for(&f, PUT(&f, "Relu", sum)), 0);
  weir_edge_t inside = output(norm_of(&f, output(branch, 1)), 0);
  assert_int_equal(run_for(&f, PUT(&f, "Relu", inside)), 1);
  weir_graph_release(f.copy);
}

// ---- gradients ----

typedef struct backward_t {
  weir_edge_t x, v, y, dy;
  weir_node_t* norm;
} backward_t;

static backward_t forward(fixture_t* f, bool is_training) {
  backward_t b = {.x = image(f), .v = vector(f), .dy = image(f)};
  b.norm = norm_with(f, b.x, b.v, is_training);
  b.y = PUT(f, "Relu", output(b.norm, 0));
  return b;
}

static weir_node_t* gradient(fixture_t* f, const backward_t* b, weir_edge_t dy, bool is_training) {
  weir_edge_t moments[] = {is_training ? output(b->norm, 3) : b->v,
                           is_training ? output(b->norm, 4) : b->v};
  return put(f, "FusedBatchNormGradV3", "grad",
             WEIR_EDGES(dy, b->x, b->v, moments[0], moments[1], output(b->norm, 5)),
             WEIR_ATTRS(weir_attr_bool("is_training", is_training)));
}

static void test_gradient(void** state) {
  for (int is_training = 0; is_training < 2; ++is_training) {
    fixture_t f = start(*state);
    backward_t b = forward(&f, is_training);
    weir_node_t* grad = gradient(&f, &b, PUT(&f, "ReluGrad", b.dy, b.y), is_training);
    fetch(&f, output(grad, 0));
    fetch(&f, output(grad, 2));
    assert_int_equal(run(&f), 2);  // both ways
    const weir_node_t* all = result(&f, 1).node;
    assert_string_equal(all->def.op_name, "_FusedBatchNormGradEx");
    assert_int_equal(result(&f, 1).index, 2);
    assert_int_equal(all->def.input_count, 8);
    assert_int_equal(all->inputs[0].node->def.op->role, WEIR_ROLE_ARG);  // dy as it came
    assert_string_equal(all->inputs[7].node->def.op_name, "_FusedBatchNormEx");
    check_string(all, "_ops", 0, "ReluGrad");
    assert_int_equal(weir_attrs_int(all->def.attrs, "_base"), 1);
    weir_graph_release(f.copy);
  }
}

// A mask that is read elsewhere, or is not that of the same normalisation.
static void test_other_gradients(void** state) {
  fixture_t f = start(*state);
  backward_t b = forward(&f, true);
  weir_edge_t masked = PUT(&f, "ReluGrad", b.dy, b.y);
  fetch(&f, masked);
  assert_int_equal(run_for(&f, output(gradient(&f, &b, masked, true), 0)), 1);
  weir_edge_t other = PUT(&f, "ReluGrad", b.dy, PUT(&f, "Relu", b.dy));
  assert_int_equal(run_for(&f, output(gradient(&f, &b, other, true), 0)), 0);
  // An addend is in y.
  backward_t c = {.x = b.x, .v = b.v, .dy = b.dy, .norm = norm_with(&f, b.x, b.v, true)};
  c.y = PUT(&f, "Relu", PUT(&f, "AddV2", output(c.norm, 0), b.dy));
  weir_node_t* grad = gradient(&f, &c, PUT(&f, "ReluGrad", c.dy, c.y), true);
  assert_int_equal(run_for(&f, output(grad, 0)), 1);
  // Another x than that of which y was made.
  b = forward(&f, true);
  masked = PUT(&f, "ReluGrad", b.dy, b.y);
  b.x = b.dy;
  assert_int_equal(run_for(&f, output(gradient(&f, &b, masked, true), 0)), 1);
  weir_graph_release(f.copy);
}

// ---- products ----

static weir_edge_t matrix(fixture_t* f, weir_dtype_t dtype) {
  return feed_of(f, dtype, 2, (const int64_t[]){4, 4});
}

static void test_product(void** state) {
  fixture_t f = start(*state);
  weir_edge_t a = matrix(&f, WEIR_DTYPE_FLOAT), v = vector(&f);
  weir_node_t* before = put(&f, "NoOp", "before", WEIR_NO_EDGES, WEIR_NO_ATTRS);
  weir_node_t* product = put(&f, "MatMul", "MatMul", WEIR_EDGES(a, a),
                             WEIR_ATTRS(weir_attr_bool("transpose_b", true)));
  weir_edge_t sum = PUT(&f, "BiasAdd", output(product, 0), v);
  check_ok(weir_graph_add_control(sum.node, before));
  weir_edge_t relu = PUT(&f, "Relu", sum);
  assert_int_equal(run_for(&f, relu), 1);
  const weir_node_t* all = found(&f, "Relu_extended", "_FusedMatMul");
  assert_int_equal(all->def.input_count, 3);
  assert_true(weir_attrs_bool(all->def.attrs, "transpose_b"));
  assert_int_equal(weir_attrs_list(all->def.attrs, "fused_ops")->count, 2);
  check_string(all, "fused_ops", 0, "BiasAdd");
  check_string(all, "fused_ops", 1, "Relu");
  check_string(all, "_names", 1, "BiasAdd");
  assert_int_equal(all->control_count, 1);
  // What comes before the activation is read: the bias alone is taken over.
  fetch(&f, sum);
  assert_int_equal(run_for(&f, relu), 1);
  all = found(&f, "BiasAdd_extended", "_FusedMatMul");
  assert_int_equal(weir_attrs_list(all->def.attrs, "fused_ops")->count, 1);
  assert_ptr_equal(result(&f, 0).node, all);
  // And so it is before another function.
  assert_int_equal(run_for(&f, PUT(&f, "Elu", sum)), 1);
  found(&f, "BiasAdd_extended", "_FusedMatMul");
  weir_graph_release(f.copy);
}

// A vector that a sum spreads over the rows.
static void test_spread_bias(void** state) {
  fixture_t f = start(*state);
  weir_edge_t a = matrix(&f, WEIR_DTYPE_FLOAT), v = vector(&f);
  assert_int_equal(run_for(&f, PUT(&f, "AddV2", v, PUT(&f, "MatMul", a, a))), 1);
  const weir_node_t* all = found(&f, "AddV2_extended", "_FusedMatMul");
  check_string(all, "fused_ops", 0, "BiasAdd");
  assert_int_equal(all->inputs[2].node->def.op->role, WEIR_ROLE_ARG);
  weir_edge_t unknown = feed_of(&f, WEIR_DTYPE_FLOAT, 1, (const int64_t[]){-1});
  assert_int_equal(run_for(&f, PUT(&f, "AddV2", PUT(&f, "MatMul", a, a), unknown)), 0);
  weir_edge_t column = feed_of(&f, WEIR_DTYPE_FLOAT, 2, (const int64_t[]){4, 1});
  assert_int_equal(run_for(&f, PUT(&f, "AddV2", PUT(&f, "MatMul", a, a), column)), 0);
  assert_int_equal(run_for(&f, PUT(&f, "AddV2", PUT(&f, "MatMul", a, a), a)), 0);
  weir_edge_t y = output(norm_of(&f, image(&f)), 0);  // has no place for a bias
  assert_int_equal(run_for(&f, PUT(&f, "AddV2", y, vector(&f))), 0);
  weir_graph_release(f.copy);
}

static void test_other_products(void** state) {
  fixture_t f = start(*state);
  weir_edge_t a = matrix(&f, WEIR_DTYPE_FLOAT), v = vector(&f);
  assert_int_equal(run_for(&f, PUT(&f, "Relu", PUT(&f, "MatMul", a, a))), 0);  // no bias
  weir_edge_t product = PUT(&f, "MatMul", a, a);
  fetch(&f, product);
  assert_int_equal(run_for(&f, PUT(&f, "BiasAdd", product, v)), 0);
  weir_edge_t d = matrix(&f, WEIR_DTYPE_DOUBLE);
  weir_edge_t w = feed_of(&f, WEIR_DTYPE_DOUBLE, 1, (const int64_t[]){4});
  assert_int_equal(run_for(&f, PUT(&f, "BiasAdd", PUT(&f, "MatMul", d, d), w)), 0);
  weir_graph_release(f.copy);
}

// Convolutions, where the device has a kernel that says it can.
static void test_convolution(void** state) {
  fixture_t f = start(*state);
  weir_edge_t filter = feed_of(&f, WEIR_DTYPE_FLOAT, 4, (const int64_t[]){1, 1, 4, 4});
  weir_node_t* conv = put(&f, "Conv2D", "Conv2D", WEIR_EDGES(image(&f), filter),
                          WEIR_ATTRS(weir_attr_ints("strides", (const int64_t[]){1, 1, 1, 1}, 4),
                                     weir_attr_string("padding", "SAME")));
  weir_edge_t relu = PUT(&f, "Relu", PUT(&f, "BiasAdd", output(conv, 0), vector(&f)));
  weir_node_def_t fused = conv->def;
  fused.op = weir_registry_find(f.w->graph->registry, weir_view_of("_FusedConv2D"));
  const weir_kernel_def_t* kernel = weir_op_kernel(&fused, "GPU");
  assert_true(kernel && kernel->tails && strcmp(kernel->device, "GPU") == 0);
  assert_true(run_for(&f, relu));
  const weir_node_t* all = found(&f, "Relu_extended", "_FusedConv2D");
  assert_int_equal(all->def.input_count, 3);
  assert_int_equal(weir_attrs_list(all->def.attrs, "TArgs")->count, 1);
  weir_graph_release(f.copy);
}

// What definitions say is there: an op with the inputs of the one that it extends.
static void test_definitions(void** state) {
  world_t* w = *state;
  int count = 0;
  for (size_t i = 0; i < weir_registry_count(w->graph->registry); ++i) {
    const weir_op_t* op = weir_registry_at(w->graph->registry, i);
    if (!op->def->extended.op) continue;
    const weir_op_t* extended =
        weir_registry_find(w->graph->registry, weir_view_of(op->def->extended.op));
    assert_non_null(extended);
    assert_true(extended->input_count > op->input_count);
    for (int k = 0; k < op->input_count; ++k)
      assert_string_equal(extended->inputs[k].name, op->inputs[k].name);
    for (int k = 0; k < op->output_count; ++k)
      assert_string_equal(extended->outputs[k].name, op->outputs[k].name);
    ++count;
  }
  assert_true(count >= 4);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_norm),        TEST(test_norm_and_addend), TEST(test_shapes),
      TEST(test_moments),     TEST(test_waiting),         TEST(test_read_elsewhere),
      TEST(test_controls),    TEST(test_unlike),          TEST(test_branches),
      TEST(test_gradient),    TEST(test_other_gradients), TEST(test_product),
      TEST(test_spread_bias), TEST(test_other_products),  TEST(test_convolution),
      TEST(test_definitions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

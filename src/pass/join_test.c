// join_test.c — Which updates are joined, and what becomes of those that wait for them.
#include "pass/pass.h"
#include "testing/world.h"

#define GPU "/job:localhost/replica:0/task:0/device:GPU:0"
enum { MOST = 8 };

typedef struct fixture_t {
  world_t* w;
  weir_edge_t grad, rate;
  weir_node_t* targets[MOST];
  int target_count;
  weir_graph_t* copy;
  weir_node_t** copied;  // targets of |copy|
} fixture_t;

static fixture_t start(world_t* w) {
  return (fixture_t){.w = w,
                     .grad = placeholder(w, "grad", WEIR_DTYPE_FLOAT),
                     .rate = placeholder(w, "rate", WEIR_DTYPE_FLOAT)};
}

static weir_edge_t variable(fixture_t* f, const char* name) {
  return output(add(f->w, "VarHandleOp", name, WEIR_NO_EDGES,
                    WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_FLOAT),
                               weir_attr_shape("shape", &weir_shape_unknown))),
                0);
}

typedef struct update_t {
  const char* name;
  const char* device;
  weir_node_t* after;  // NULL: nothing
  weir_edge_t rate, grad;
} update_t;

static weir_node_t* update_of(fixture_t* f, weir_edge_t var, const update_t* update) {
  weir_edge_t inputs[] = {var, update->rate.node ? update->rate : f->rate,
                          update->grad.node ? update->grad : f->grad};
  weir_node_params_t params = {.op = "ResourceApplyGradientDescent",
                               .name = update->name,
                               .device = update->device ? update->device : GPU,
                               .inputs = {.items = inputs, .count = 3},
                               .control_inputs = &update->after,
                               .control_count = update->after ? 1 : 0};
  weir_node_t* node = NULL;
  check_ok(weir_graph_add(f->w->graph, &params, &node));
  return node;
}
#define UPDATE(f, var, ...) update_of(f, var, &(update_t){.name = __VA_ARGS__})

static weir_node_t* wait_for(fixture_t* f, const char* name, weir_node_t* a, weir_node_t* b) {
  weir_node_t* node = add(f->w, "NoOp", name, WEIR_NO_EDGES, WEIR_NO_ATTRS);
  if (a) check_ok(weir_graph_add_control(node, a));
  if (b) check_ok(weir_graph_add_control(node, b));
  return node;
}

// Runs the pass over what |targets| need, as |f->copy|. Returns how many nodes became how many
// fewer.
static int run(fixture_t* f) {
  weir_edge_t feeds[] = {f->grad, f->rate};
  weir_prune_params_t params = {.graph = f->w->graph,
                                .feeds = {.items = feeds, .count = 2},
                                .targets = f->targets,
                                .target_count = f->target_count};
  weir_graph_release(f->copy);
  check_ok(weir_prune(&params, &f->copy, &f->copied));
  weir_pass_ctx_t ctx = {.graph = f->copy, .targets = f->copied, .target_count = f->target_count};
  size_t before = f->copy->node_count;
  check_ok(weir_pass_join(&ctx));
  int saved = 0;
  for (size_t i = before; i < f->copy->node_count; ++i)
    saved += (int)weir_attrs_int(f->copy->nodes[i]->def.attrs, "N") - 1;
  return saved;
}

static int saved_with(fixture_t* f, weir_node_t* target) {
  f->targets[0] = target;
  f->target_count = 1;
  return run(f);
}

static const weir_node_t* find_joined(const fixture_t* f, const char* name) {
  const weir_node_t* node = weir_graph_find(f->copy, weir_view_of(name));
  assert_non_null(node);
  return node;
}

static void test_updates_of_a_step(void** state) {
  fixture_t f = start(*state);
  weir_node_t* a = UPDATE(&f, variable(&f, "a"), "up_a");
  weir_node_t* step = wait_for(&f, "step", a, UPDATE(&f, variable(&f, "b"), "up_b"));
  check_ok(weir_graph_add_control(step, UPDATE(&f, variable(&f, "c"), "up_c")));
  assert_int_equal(saved_with(&f, step), 2);
  const weir_node_t* all = find_joined(&f, "up_c_joined");
  assert_string_equal(all->def.op_name, "_ResourceApplyGradientDescentAll");
  assert_int_equal(all->def.input_count, 9);  // variables, rates, gradients
  const char* variables[] = {"a", "b", "c"};
  for (int i = 0; i < 3; ++i) assert_string_equal(all->inputs[i].node->def.name, variables[i]);
  for (int i = 3; i < 9; ++i) {
    assert_int_equal(all->inputs[i].node->def.op->role, WEIR_ROLE_ARG);
    assert_int_equal(weir_attrs_int(all->inputs[i].node->def.attrs, "index"), i < 6 ? 1 : 0);
  }
  const weir_attr_t* names = weir_attrs_list(all->def.attrs, "names");
  assert_int_equal(names->count, 3);
  assert_true(weir_view_is(names->u.strings[1], "up_b"));
  const weir_node_t* target = f.copied[0];
  assert_int_equal(target->control_count, 1);
  assert_ptr_equal(target->control_inputs[0], all);
  weir_graph_release(f.copy);
}

// Targets of one run end together.
static void test_targets(void** state) {
  fixture_t f = start(*state);
  f.targets[0] = UPDATE(&f, variable(&f, "a"), "up_a");
  f.targets[1] = UPDATE(&f, variable(&f, "b"), "up_b");
  f.target_count = 2;
  assert_int_equal(run(&f), 1);
  assert_ptr_equal(f.copied[0], find_joined(&f, "up_b_joined"));
  assert_ptr_equal(f.copied[1], f.copied[0]);
  f.targets[2] = wait_for(&f, "last", f.targets[0], NULL);  // awaits but one of them
  f.target_count = 3;
  assert_int_equal(run(&f), 0);
  weir_graph_release(f.copy);
}

// What somebody awaits alone he gets without the others; what leads to another comes before it.
static void test_apart(void** state) {
  fixture_t f = start(*state);
  weir_node_t* a = UPDATE(&f, variable(&f, "a"), "up_a");
  weir_node_t* b = UPDATE(&f, variable(&f, "b"), "up_b", .after = a);
  weir_node_t* step = wait_for(&f, "step", a, b);
  assert_int_equal(saved_with(&f, step), 0);
  // Through a node between them.
  weir_node_t* c = UPDATE(&f, variable(&f, "c"), "up_c");
  weir_node_t* d = UPDATE(&f, variable(&f, "d"), "up_d", .after = wait_for(&f, "between", c, NULL));
  assert_int_equal(saved_with(&f, wait_for(&f, "both", c, d)), 0);
  // Two groups, of which one comes after the other.
  weir_node_t* e = UPDATE(&f, variable(&f, "e"), "up_e");
  weir_node_t* first = wait_for(&f, "first", e, UPDATE(&f, variable(&f, "f"), "up_f"));
  weir_node_t* g = UPDATE(&f, variable(&f, "g"), "up_g", .after = first);
  weir_node_t* h = UPDATE(&f, variable(&f, "h"), "up_h", .after = first);
  assert_int_equal(saved_with(&f, wait_for(&f, "second", g, h)), 2);
  const weir_node_t* late = find_joined(&f, "up_h_joined");
  assert_int_equal(late->control_count, 1);
  assert_string_equal(late->control_inputs[0]->def.name, "first");
  assert_ptr_equal(late->control_inputs[0]->control_inputs[0], find_joined(&f, "up_f_joined"));
  weir_graph_release(f.copy);
}

// Controls of all are the joined node's.
static void test_controls(void** state) {
  fixture_t f = start(*state);
  weir_node_t* x = wait_for(&f, "x", NULL, NULL);
  weir_node_t* y = wait_for(&f, "y", NULL, NULL);
  weir_node_t* a = UPDATE(&f, variable(&f, "a"), "up_a", .after = x);
  weir_node_t* b = UPDATE(&f, variable(&f, "b"), "up_b", .after = y);
  assert_int_equal(saved_with(&f, wait_for(&f, "step", a, b)), 1);
  assert_int_equal(find_joined(&f, "up_b_joined")->control_count, 2);
  weir_graph_release(f.copy);
}

// Each update has a rate of its own.
static void test_rates(void** state) {
  fixture_t f = start(*state);
  weir_node_t* a = UPDATE(&f, variable(&f, "a"), "up_a");
  weir_node_t* b = UPDATE(&f, variable(&f, "b"), "up_b", .rate = f.grad);
  assert_int_equal(saved_with(&f, wait_for(&f, "step", a, b)), 1);
  const weir_node_t* all = f.copied[0]->control_inputs[0];
  for (int i = 0; i < 2; ++i) {
    bool is_a = weir_view_is(weir_attrs_list(all->def.attrs, "names")->u.strings[i], "up_a");
    assert_int_equal(weir_attrs_int(all->inputs[2 + i].node->def.attrs, "index"), is_a ? 1 : 0);
  }
  weir_graph_release(f.copy);
}

static void test_unlike(void** state) {
  fixture_t f = start(*state);
  weir_edge_t a = variable(&f, "a"), b = variable(&f, "b");
  weir_node_t* one = UPDATE(&f, a, "one");
  assert_int_equal(saved_with(&f, wait_for(&f, "s1", one, UPDATE(&f, a, "twice"))), 0);
  weir_node_t* there = UPDATE(&f, b, "there", .device = "/device:GPU:1");
  assert_int_equal(saved_with(&f, wait_for(&f, "s3", UPDATE(&f, a, "here"), there)), 0);
  // Where there is no kernel that does it: on a CPU.
  weir_node_t* cpu = UPDATE(&f, a, "cpu_a", .device = "/device:CPU:0");
  weir_node_t* cpu_b = UPDATE(&f, b, "cpu_b", .device = "/device:CPU:0");
  assert_int_equal(saved_with(&f, wait_for(&f, "s4", cpu, cpu_b)), 0);
  weir_graph_release(f.copy);
}

// A step of |count| updates by gradients of |size| elements.
static weir_node_t* step_of(fixture_t* f, const char* name, int count, int64_t size) {
  weir_node_t* step = wait_for(f, name, NULL, NULL);
  const weir_shape_t* shape = weir_shape_make(&f->w->graph->arena, 1, &size);
  weir_edge_t grad = output(
      add(f->w, "Placeholder", NULL, WEIR_NO_EDGES,
          WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_FLOAT), weir_attr_shape("shape", shape))),
      0);
  for (int i = 0; i < count; ++i) {
    char update[32], var[32];
    snprintf(update, sizeof(update), "%s_%d", name, i);
    snprintf(var, sizeof(var), "%s_var_%d", name, i);
    check_ok(weir_graph_add_control(step, UPDATE(f, variable(f, var), update, .grad = grad)));
  }
  return step;
}

// Memory of gradients is not held without end for the sake of a launch.
static void test_large(void** state) {
  fixture_t f = start(*state);
  assert_int_equal(saved_with(&f, step_of(&f, "small", 6, 1 << 10)), 5);
  assert_int_equal(saved_with(&f, step_of(&f, "large", 6, 1 << 23)), 0);
  assert_int_equal(saved_with(&f, step_of(&f, "many", 6, 1 << 22)), 4);  // four and two
  weir_graph_release(f.copy);
}

static weir_edge_t ref_variable(fixture_t* f, const char* name) {
  return output(add(f->w, "VariableV2", name, WEIR_NO_EDGES,
                    WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_FLOAT),
                               weir_attr_shape("shape", weir_shape_make(&f->w->graph->arena, 0,
                                                                        (int64_t[]){0})))),
                0);
}

static weir_node_t* momentum_of(fixture_t* f, const char* name, bool is_nesterov) {
  char var[16], accum[16];
  snprintf(var, sizeof(var), "%s_var", name);
  snprintf(accum, sizeof(accum), "%s_accum", name);
  weir_edge_t inputs[] = {ref_variable(f, var), ref_variable(f, accum), f->rate, f->grad, f->rate};
  weir_named_attr_t nesterov = weir_attr_bool("use_nesterov", is_nesterov);
  weir_node_params_t params = {.op = "ApplyMomentum",
                               .name = name,
                               .device = GPU,
                               .inputs = {.items = inputs, .count = 5},
                               .attrs = {.items = &nesterov, .count = 1}};
  weir_node_t* node = NULL;
  check_ok(weir_graph_add(f->w->graph, &params, &node));
  return node;
}

// References that updates hand on are the joined node's outputs, one for each.
static void test_references(void** state) {
  fixture_t f = start(*state);
  weir_node_t* nodes[] = {momentum_of(&f, "a", true), momentum_of(&f, "b", true),
                          momentum_of(&f, "c", false)};
  weir_edge_t sum = OP(f.w, "AddV2", output(nodes[0], 0), output(nodes[1], 0));
  check_ok(weir_graph_add_control(sum.node, nodes[2]));
  assert_int_equal(saved_with(&f, sum.node), 1);  // c is another rule
  const weir_node_t* all = find_joined(&f, "b_joined");
  assert_int_equal(all->def.output_count, 2);
  assert_true(weir_attrs_bool(all->def.attrs, "use_nesterov"));
  for (int i = 0; i < 2; ++i) {
    assert_ptr_equal(f.copied[0]->inputs[i].node, all);
    assert_int_equal(f.copied[0]->inputs[i].index, i);
  }
  weir_graph_release(f.copy);
}

// What a definition says is there, and takes what its nodes have.
static void test_definitions(void** state) {
  world_t* w = *state;
  int count = 0;
  for (size_t i = 0; i < weir_registry_count(w->graph->registry); ++i) {
    const weir_op_t* op = weir_registry_at(w->graph->registry, i);
    if (!op->def->joined) continue;
    const weir_op_t* joined = weir_registry_find(w->graph->registry, weir_view_of(op->def->joined));
    assert_non_null(joined);
    assert_true(joined->flags & WEIR_OP_COMPOSITE);
    assert_int_equal(joined->input_count, op->input_count);
    for (int k = 0; k < op->input_count; ++k) {
      assert_string_equal(joined->inputs[k].name, op->inputs[k].name);
      assert_int_equal(joined->inputs[k].is_ref, op->inputs[k].is_ref);
      assert_string_equal(joined->inputs[k].number_attr, "N");
    }
    ++count;
  }
  assert_true(count > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_updates_of_a_step, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_targets, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_apart, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_controls, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_rates, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_unlike, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_large, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_references, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_definitions, world_setup, world_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

// analysis_test.c — Which loop each node is in, and what nodes need.
#include "graph/analysis.h"

#include "testing/world.h"

#define T(type) " attr {key: 'T' value {type: " type "}}"
#define NODE(name, op, inputs) "node {name: '" name "' op: '" op "' " inputs T("DT_FLOAT") "}"
#define IN(name) "input: '" name "' "
#define MERGE(name, a, b) \
  "node {name: '" name "' op: 'Merge' " IN(a) IN(b) T("DT_FLOAT") " attr {key: 'N' value {i: 2}}}"
#define ENTER(name, input, frame)                 \
  "node {name: '" name "' op: 'Enter' " IN(input) \
      T("DT_FLOAT") " attr {key: 'frame_name' value {s: '" frame "'}}}"
#define COND(name, input) "node {name: '" name "' op: 'LoopCond' " IN(input) "}"
#define CONST(name, control)                                                      \
  "node {name: '" name "' op: 'Const' " control                                   \
  " attr {key: 'dtype' value {type: DT_FLOAT}} attr {key: 'value' value {tensor " \
  "{dtype: DT_FLOAT tensor_shape {} float_val: 1}}}}"
#define FED(name, type) \
  "node {name: '" name "' op: 'Placeholder' attr {key: 'dtype' value {type: " type "}}}"

// A loop in a loop. |free| is a constant that nothing orders; |held| one of the outer loop; |scale|
// is the same in all iterations; |after| waits for the end.
static const char nested[] =
    FED("x", "DT_FLOAT") FED("p", "DT_BOOL") CONST("free", "") ENTER("enter", "x", "outer")
        MERGE("merge", "enter", "next") CONST("held", IN("^merge")) ENTER("scale", "x", "outer")
            ENTER("inner_enter", "merge", "inner") MERGE("inner_merge", "inner_enter", "inner_next")
                COND("inner_cond", "p") NODE("inner_sum", "AddV2", IN("inner_merge") IN("free"))
                    NODE("inner_next", "NextIteration", IN("inner_sum"))
                        NODE("inner_exit", "Exit", IN("inner_merge"))
                            NODE("sum", "AddV2", IN("inner_exit") IN("scale"))
                                NODE("more", "AddV2", IN("sum") IN("held"))
                                    NODE("next", "NextIteration", IN("more"))
                                        NODE("exit", "Exit", IN("merge"))
                                            NODE("after", "Neg", IN("free") IN("^exit"));

static weir_node_t* find(world_t* w, const char* name) {
  weir_node_t* node = weir_graph_find(w->graph, weir_view_of(name));
  if (!node) fail_msg("no node '%s'", name);
  return node;
}

static void load(world_t* w, const char* text) {
  check_ok(weir_graph_import_text(w->graph, text, strlen(text), NULL));
}

static void find_loops(world_t* w, weir_arena_t* arena, weir_loops_t* loops) {
  weir_node_t** order = NULL;
  check_ok(weir_graph_order(w->graph, arena, &order));
  check_ok(weir_loops_find(w->graph, order, w->graph->node_count, arena, loops));
}

static void check_place(world_t* w, const weir_loops_t* loops, const char* name, int inside,
                        int outputs) {
  const weir_node_t* node = find(w, name);
  check_ok(weir_loops_check(loops, node));
  if (loops->inside[node->id] != inside || loops->outputs[node->id] != outputs)
    fail_msg("%s: in %d, outputs in %d", name, loops->inside[node->id], loops->outputs[node->id]);
}

static void test_nested_loops(void** state) {
  world_t* w = *state;
  weir_arena_t arena = {0};
  weir_loops_t loops;
  load(w, nested);
  find_loops(w, &arena, &loops);
  assert_int_equal(loops.count, 3);
  int outer = loops.outputs[find(w, "enter")->id], inner = 3 - outer;
  const struct {
    const char* name;
    int inside, outputs;
  } places[] = {{"x", 0, 0},
                {"free", 0, 0},
                {"enter", 0, outer},
                {"scale", 0, outer},
                {"merge", outer, outer},
                {"held", outer, outer},  // by a control edge alone
                {"inner_enter", outer, inner},
                {"inner_merge", inner, inner},
                {"inner_sum", inner, inner},  // though it reads a constant from outside
                {"inner_next", inner, inner},
                {"inner_exit", inner, outer},
                {"sum", outer, outer},
                {"next", outer, outer},
                {"exit", outer, 0},
                {"after", 0, 0}};
  for (size_t i = 0; i < WEIR_COUNT_OF(places); ++i)
    check_place(w, &loops, places[i].name, places[i].inside, places[i].outputs);
  weir_arena_free(&arena);
}

static void test_what_a_loop_is(void** state) {
  world_t* w = *state;
  weir_arena_t arena = {0};
  weir_loops_t loops;
  load(w, nested);
  find_loops(w, &arena, &loops);
  const weir_loop_t* outer = &loops.items[loops.outputs[find(w, "enter")->id]];
  const weir_loop_t* inner = &loops.items[loops.inside[find(w, "inner_sum")->id]];
  assert_int_equal(loops.items[0].parent, -1);
  assert_int_equal(outer->parent, 0);
  assert_ptr_equal(&loops.items[inner->parent], outer);
  assert_int_equal(outer->depth, 1);
  assert_int_equal(inner->depth, 2);
  assert_true(weir_view_is(inner->name, "inner"));
  assert_int_equal(outer->enter_count, 2);
  assert_int_equal(inner->enter_count, 1);
  assert_ptr_equal(inner->enter, find(w, "inner_enter"));
  assert_ptr_equal(inner->merge, find(w, "inner_merge"));
  assert_ptr_equal(outer->merge, find(w, "merge"));
  assert_null(outer->condition);
  weir_arena_free(&arena);
}

static void test_a_name_in_two_loops_is_two_loops(void** state) {
  world_t* w = *state;
  weir_arena_t arena = {0};
  weir_loops_t loops;
  load(w, FED("x", "DT_FLOAT") ENTER("a", "x", "a") ENTER("b", "x", "b") ENTER("in_a", "a", "same")
              ENTER("in_b", "b", "same") ENTER("again", "a", "same"));
  find_loops(w, &arena, &loops);
  assert_int_equal(loops.count, 5);
  assert_int_equal(loops.outputs[find(w, "in_a")->id], loops.outputs[find(w, "again")->id]);
  assert_int_not_equal(loops.outputs[find(w, "in_a")->id], loops.outputs[find(w, "in_b")->id]);
  weir_arena_free(&arena);
}

static void test_inputs_from_different_loops(void** state) {
  world_t* w = *state;
  weir_arena_t arena = {0};
  weir_loops_t loops;
  load(w, FED("x", "DT_FLOAT") CONST("free", "") ENTER("enter", "x", "loop")
              NODE("mix", "AddV2", IN("enter") IN("x")) NODE("waits", "Neg", IN("x") IN("^enter"))
                  MERGE("merge", "enter", "free") NODE("good", "AddV2", IN("free") IN("enter"))
                      NODE("lost", "Exit", IN("x")));
  find_loops(w, &arena, &loops);
  const char* bad[] = {"mix", "waits", "merge"};
  for (size_t i = 0; i < WEIR_COUNT_OF(bad); ++i)
    check_error(weir_loops_check(&loops, find(w, bad[i])), WEIR_INVALID_ARGUMENT,
                "has inputs from different frames: '");
  check_error(weir_loops_check(&loops, find(w, "mix")), WEIR_INVALID_ARGUMENT,
              "'loop' and, by 'x', ''");
  check_ok(weir_loops_check(&loops, find(w, "good")));
  check_error(weir_loops_check(&loops, find(w, "lost")), WEIR_INVALID_ARGUMENT,
              "'lost' (Exit) is in no loop");
  weir_arena_free(&arena);
}

static void test_merges_of_loops_and_of_conditionals(void** state) {
  world_t* w = *state;
  load(w, nested);
  load(w, MERGE("either", "x", "free"));
  assert_true(weir_node_is_loop_merge(find(w, "merge")));
  assert_false(weir_node_is_loop_merge(find(w, "either")));
  assert_false(weir_node_is_loop_merge(find(w, "next")));
  assert_true(weir_node_is_back_edge(find(w, "merge"), find(w, "next")));
  assert_false(weir_node_is_back_edge(find(w, "merge"), find(w, "enter")));
}

static void check_reached(world_t* w, const weir_reach_t* reach, const char* names) {
  weir_strbuf_t found = {0};
  for (size_t i = 0; i < w->graph->node_count; ++i) {
    if (reach->is_reached[i])
      weir_strbuf_printf(&found, "%s%s", found.size ? " " : "", w->graph->nodes[i]->def.name);
  }
  assert_string_equal(found.data ? found.data : "", names);
  weir_strbuf_free(&found);
}

static void test_reaches_through_control_and_back_edges(void** state) {
  world_t* w = *state;
  weir_arena_t arena = {0};
  weir_reach_t reach;
  load(w, nested);
  check_ok(weir_reach_init(&reach, w->graph, &arena));
  weir_reach_add(&reach, find(w, "held"));
  weir_reach_sources(&reach);
  check_reached(w, &reach,
                "x free enter merge held scale inner_enter inner_merge inner_sum inner_next "
                "inner_exit sum more next");
  weir_arena_free(&arena);
}

static void stop_at_x(void* arg, weir_reach_t* reach, weir_edge_t edge) {
  if (!strcmp(edge.node->def.name, "x")) ++*(int*)arg;
  else if (edge.index >= 0) weir_reach_add(reach, edge.node);
}

static void test_a_visitor_says_where_to_go(void** state) {
  world_t* w = *state;
  weir_arena_t arena = {0};
  weir_reach_t reach;
  int stops = 0;
  weir_node_t* targets[2];
  load(w, FED("x", "DT_FLOAT") FED("y", "DT_FLOAT") NODE("a", "Neg", IN("x") IN("^y"))
              NODE("b", "AddV2", IN("a") IN("x")) NODE("c", "Neg", IN("y")));
  targets[0] = targets[1] = find(w, "b");
  check_ok(weir_reach_init(&reach, w->graph, &arena));
  weir_reach_add_results(&reach, w->graph, targets, 2);
  weir_reach_walk(&reach, stop_at_x, &stops);
  check_reached(w, &reach, "a b");
  assert_int_equal(stops, 2);
  weir_arena_free(&arena);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_nested_loops),
      TEST(test_what_a_loop_is),
      TEST(test_a_name_in_two_loops_is_two_loops),
      TEST(test_inputs_from_different_loops),
      TEST(test_merges_of_loops_and_of_conditionals),
      TEST(test_reaches_through_control_and_back_edges),
      TEST(test_a_visitor_says_where_to_go),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

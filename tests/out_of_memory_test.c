// out_of_memory_test.c — The n-th allocation fails, for every n: import, session and training steps
// end in a status.
#include "base/alloc.h"
#include "base/json.h"
#include "exec/step_stats.h"
#include "testing/world.h"
#include "weir/moving_average.h"
#include "weir/optimizer.h"

// x → softmax(relu(x W1) W2), trained by momentum, with a queue so that the general executor runs
// too.
static weir_status_t* build(weir_graph_t* graph) {
  weir_scope_t* s = weir_scope_create(graph);
  if (!s) return weir_out_of_memory();
  float values[8] = {0.1f, -0.2f, 0.3f, 0.4f, -0.5f, 0.6f, 0.7f, -0.8f};
  weir_edge_t x = weir_const_floats(s, WEIR_DIMS(2, 4), values);
  weir_edge_t w1 = weir_variable(s, "w1", weir_const_floats(s, WEIR_DIMS(4, 2), values));
  weir_edge_t w2 = weir_variable(s, "w2", weir_const_floats(s, WEIR_DIMS(2, 2), values));
  weir_node_t* hidden = weir_scope_add(s, "MatMul", NULL, WEIR_EDGES(x, w1), WEIR_NO_ATTRS);
  weir_node_t* relu = weir_scope_add(s, "Relu", NULL, WEIR_EDGES({hidden, 0}), WEIR_NO_ATTRS);
  weir_node_t* logits = weir_scope_add(s, "MatMul", NULL, WEIR_EDGES({relu, 0}, w2), WEIR_NO_ATTRS);
  weir_node_t* losses =
      weir_scope_add(s, "SparseSoftmaxCrossEntropyWithLogits", NULL,
                     WEIR_EDGES({logits, 0}, weir_const_ints(s, (int[]){0, 1}, 2)), WEIR_NO_ATTRS);
  weir_node_t* loss = weir_scope_add(
      s, "Mean", "loss", WEIR_EDGES({losses, 0}, weir_const_ints(s, (int[]){0}, 1)), WEIR_NO_ATTRS);
  weir_node_t* train = weir_train_momentum(s, (weir_edge_t){loss, 0}, 0.1f, 0.9f);
  weir_optimizer_t adam = weir_adam(0.1f);
  weir_minimize(s, &adam, ((weir_edge_t){loss, 0}), .accumulate = 2, .clip_global_norm = 1);
  weir_moving_average(s, 0.9f);
  weir_dtype_t types[] = {WEIR_DTYPE_FLOAT};
  weir_node_t* queue = weir_scope_add(s, "FIFOQueueV2", "queue", WEIR_NO_EDGES,
                                      WEIR_ATTRS(weir_attr_types("component_types", types, 1)));
  weir_node_t* put =
      weir_scope_add(s, "QueueEnqueueV2", "put", WEIR_EDGES({queue, 0}, {loss, 0}), WEIR_NO_ATTRS);
  weir_node_t* get = weir_scope_add(s, "QueueDequeueV2", "get", WEIR_EDGES({queue, 0}),
                                    WEIR_ATTRS(weir_attr_types("component_types", types, 1)));
  (void)put;
  (void)get;
  weir_group(s, "step", &train, 1);
  weir_node_t* init = weir_initializer(s);
  weir_group(s, "init", &init, 1);
  return weir_scope_finish(s);
}

// What a step is told to have done is whole, or it is an error.
static weir_status_t* check_metadata(weir_view_t metadata) {
  weir_strbuf_t json = {0};
  weir_status_t* status = weir_step_stats_write_chrome(metadata, &json);
  if (!status && !strstr(json.data, "\"name\":\"loss\""))
    status = WEIR_STATUS(DATA_LOSS, "nothing of the loss is in the trace");
  weir_strbuf_free(&json);
  return status;
}

static weir_status_t* check_description(weir_session_t* session, const weir_step_spec_t* spec) {
  char* text = NULL;
  weir_describe_options_t options = {.json = true, .with_nodes = true};
  WEIR_TRY(weir_session_describe_step(session, spec, &options, &text));
  weir_arena_t arena = {0};
  const weir_json_t* json = NULL;
  weir_status_t* status = weir_json_parse(weir_view_of(text ? text : ""), &arena, &json);
  weir_arena_free(&arena);
  weir_buffer_free(text);
  return status;
}

static weir_status_t* run(weir_session_t* session, weir_graph_t* graph) {
  WEIR_TRY(weir_session_run_target(session, weir_graph_find_node(graph, "init")));
  WEIR_TRY(weir_session_run_target(session, weir_graph_find_node(graph, "step")));
  weir_edge_t loss = {weir_graph_find_node(graph, "loss"), 0};
  weir_edge_t get = {weir_graph_find_node(graph, "get"), 0};
  weir_tensor_t* results[2] = {NULL, NULL};
  weir_step_spec_t spec = {WEIR_FETCHES(loss, get),
                           WEIR_TARGETS(weir_graph_find_node(graph, "put"))};
  weir_run_options_t options = {.trace = true};
  char* metadata = NULL;
  size_t size = 0;
  weir_status_t* status =
      weir_session_run_with(session, &spec, &options, results, &metadata, &size);
  if (!status) status = check_metadata(weir_view(metadata, size));
  if (!status) status = check_description(session, &spec);
  weir_buffer_free(metadata);
  weir_tensor_release(results[0]);
  weir_tensor_release(results[1]);
  return status;
}

static weir_status_t* whole_life(weir_view_t def) {
  weir_graph_t* graph = NULL;
  weir_session_t* session = NULL;
  weir_status_t* status = weir_graph_create(&graph);
  if (!status) status = weir_graph_import_def(graph, def.data, def.size, NULL);
  if (!status)
    status = weir_session_create(graph, &(weir_session_options_t){.threads = 1}, &session);
  if (!status) status = run(session, graph);
  weir_session_destroy(session);
  weir_graph_release(graph);
  return status;
}

// Runs |fn| with the n-th allocation failing, n = 1, 2, 3 … until it succeeds without one having
// failed.
static void sweep(weir_status_t* (*fn)(void* arg), void* arg, bool sticky) {
  int64_t failures = 0, tries = 0;
  for (int64_t n = 1;; n += WEIR_TEST_STRIDE) {
    ++tries;
    weir_alloc_fail_at(n, sticky);
    weir_status_t* status = fn(arg);
    weir_alloc_fail_at(0, false);
    weir_code_t code = weir_status_code(status);
    if (code != WEIR_OK && code != WEIR_RESOURCE_EXHAUSTED) {
      fail_msg("allocation %lld: %s: %s", (long long)n, weir_code_name(code),
               weir_status_message(status));
    }
    weir_status_destroy(status);
    failures += code != WEIR_OK;
    if (code == WEIR_OK && sticky) break;
    if (code == WEIR_OK && tries > failures + 200 / WEIR_TEST_STRIDE)
      break;  // the rest fails where nobody needs the memory
  }
  assert_true(failures > 10);
}

static weir_status_t* live(void* arg) { return whole_life(*(weir_view_t*)arg); }

static weir_status_t* construct(void* arg) {
  (void)arg;
  weir_graph_t* graph = NULL;
  WEIR_TRY(weir_graph_create(&graph));
  weir_status_t* status = build(graph);
  weir_graph_release(graph);
  return status;
}

static void with_graph(void (*fn)(weir_view_t def)) {
  weir_graph_t* graph = NULL;
  char* data = NULL;
  size_t size = 0;
  check_ok(weir_graph_create(&graph));
  check_ok(build(graph));
  check_ok(weir_graph_to_def(graph, &data, &size));
  weir_graph_release(graph);
  fn(weir_view(data, size));
  weir_buffer_free(data);
}

static void sweep_once(weir_view_t def) {
  check_ok(whole_life(def));
  sweep(live, &def, false);
}
static void sweep_sticky(weir_view_t def) { sweep(live, &def, true); }

static void test_one_failure(void** state) {
  (void)state;
  with_graph(sweep_once);
}
static void test_lasting_failure(void** state) {
  (void)state;
  with_graph(sweep_sticky);
}
static void test_construction(void** state) {
  (void)state;
  check_ok(construct(NULL));
  sweep(construct, NULL, false);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_one_failure),
      cmocka_unit_test(test_lasting_failure),
      cmocka_unit_test(test_construction),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

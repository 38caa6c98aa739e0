// graph_test.c — Graphs: adding nodes, GraphDefs in and out, functions, cycles, malformed input.
#include "graph/graph.h"

#include "graph/function.h"
#include "testing/world.h"
#include "wire/wire.h"

static weir_status_t* try_add(weir_graph_t* graph, const char* op, const char* name,
                              weir_edges_t inputs, weir_attrs_t attrs) {
  weir_node_t* node = NULL;
  return weir_graph_add(
      graph, &(weir_node_params_t){.op = op, .name = name, .inputs = inputs, .attrs = attrs},
      &node);
}

static weir_status_t* try_text(weir_graph_t* graph, const char* text) {
  return weir_graph_import_text(graph, text, strlen(text), NULL);
}

// ---- adding ----

static void test_names(void** state) {
  world_t* w = *state;
  weir_graph_t* graph = w->graph;
  check_ok(try_add(graph, "NoOp", "a", WEIR_NO_EDGES, WEIR_NO_ATTRS));
  check_error(try_add(graph, "NoOp", "a", WEIR_NO_EDGES, WEIR_NO_ATTRS), WEIR_INVALID_ARGUMENT,
              "'a' already exists");
  const char* good[] = {"A", "a.b", "a/b-c", "x_1\\>", ".x", "_x", "9"};
  const char* bad[] = {"", "a b", "-a", "/a", "a:0", "^a", "\xc3\xa4"};
  for (size_t i = 0; i < WEIR_COUNT_OF(good); ++i)
    check_ok(try_add(graph, "NoOp", good[i], WEIR_NO_EDGES, WEIR_NO_ATTRS));
  for (size_t i = 0; i < WEIR_COUNT_OF(bad); ++i) {
    check_error(try_add(graph, "NoOp", bad[i], WEIR_NO_EDGES, WEIR_NO_ATTRS), WEIR_INVALID_ARGUMENT,
                "not a valid node name");
  }
  weir_node_params_t params = {.op = "NoOp", .name = "a", .unique_name = true};
  for (int i = 1; i <= 12; ++i) {
    weir_node_t* node = NULL;
    char expected[16];
    snprintf(expected, sizeof(expected), "a_%d", i);
    check_ok(weir_graph_add(graph, &params, &node));
    assert_string_equal(node->def.name, expected);
  }
}

static void test_types(void** state) {
  world_t* w = *state;
  weir_edge_t f = weir_const_float(w->scope, 1);
  weir_edge_t i = weir_const_int(w->scope, 1);
  weir_graph_t* graph = w->graph;
  size_t count = graph->node_count;
  check_error(try_add(graph, "AddV2", "sum", WEIR_EDGES(f, i), WEIR_NO_ATTRS),
              WEIR_INVALID_ARGUMENT, "sum");
  check_error(try_add(graph, "AddV2", "sum", WEIR_EDGES(f), WEIR_NO_ATTRS), WEIR_INVALID_ARGUMENT,
              "sum");
  check_error(try_add(graph, "AddV2", "sum", WEIR_EDGES(f, {NULL, 0}), WEIR_NO_ATTRS),
              WEIR_INVALID_ARGUMENT, "input 1");
  check_error(try_add(graph, "AddV2", "sum", WEIR_EDGES(f, {f.node, 1}), WEIR_NO_ATTRS),
              WEIR_INVALID_ARGUMENT, "input 1");
  check_error(try_add(graph, "Nothing", "sum", WEIR_NO_EDGES, WEIR_NO_ATTRS), WEIR_NOT_FOUND,
              "'Nothing' (node 'sum')");
  check_error(
      try_add(graph, "Relu", "r", WEIR_EDGES(weir_const_string(w->scope, "x")), WEIR_NO_ATTRS),
      WEIR_INVALID_ARGUMENT, "r");
  check_error(try_add(graph, "Placeholder", "p", WEIR_NO_EDGES, WEIR_NO_ATTRS),
              WEIR_INVALID_ARGUMENT, "dtype");
  assert_int_equal(graph->node_count, count + 1);  // the string
  check_error(try_add(graph, "MatMul", "m", WEIR_EDGES(f, f), WEIR_NO_ATTRS), WEIR_INVALID_ARGUMENT,
              "rank");
}

static void test_shapes_are_inferred(void** state) {
  world_t* w = *state;
  weir_edge_t a = weir_const_floats(w->scope, WEIR_DIMS(2, 3), (float[]){1, 2, 3, 4, 5, 6});
  weir_edge_t b =
      OP(w, "MatMul", a, OP(w, "Transpose", a, weir_const_ints(w->scope, (int[]){1, 0}, 2)));
  int64_t dims[4] = {0};
  assert_int_equal(weir_edge_dims(b, dims, 4), 2);
  assert_int_equal(dims[0], 2);
  assert_int_equal(dims[1], 2);
  assert_int_equal(weir_edge_dims(placeholder(w, "p", WEIR_DTYPE_FLOAT), dims, 4), -1);
}

// ---- GraphDef ----

static weir_view_t written(weir_graph_t* graph, weir_strbuf_t* buffer) {
  check_ok(weir_graph_write(graph, buffer));
  return weir_strbuf_view(buffer);
}

// import(export(g)) exports the same bytes.
static void check_round_trip(weir_graph_t* graph) {
  weir_strbuf_t first = {0}, second = {0};
  weir_graph_t* copy = NULL;
  check_ok(weir_graph_create(&copy));
  weir_view_t bytes = written(graph, &first);
  check_ok(weir_graph_import_def(copy, bytes.data, bytes.size, NULL));
  weir_view_t again = written(copy, &second);
  assert_int_equal(bytes.size, again.size);
  assert_memory_equal(bytes.data, again.data, bytes.size);
  assert_int_equal(graph->node_count, copy->node_count);
  weir_graph_release(copy);
  weir_strbuf_free(&first);
  weir_strbuf_free(&second);
}

static const char sample[] =
    "node {name: 'x' op: 'Placeholder' device: '/cpu:0' attr {key: 'dtype' value {type: DT_FLOAT}}"
    " attr {key: '_class' value {list {s: 'loc:@x'}}}}"
    "node {name: 'later' op: 'Identity' input: 'strange:2' input: '^x' attr {key: 'T' value {type: "
    "DT_FLOAT}}}"
    "node {name: 'strange' op: 'NobodyKnows' input: 'x' input: '^noop' attr {key: 'weight' value "
    "{f: 2.5}}}"
    "node {name: 'noop' op: 'NoOp'}"
    "versions {producer: 1286 min_consumer: 12}"
    "library {function {signature {name: 'F' input_arg {name: 'a' type: DT_FLOAT} output_arg "
    "{name: 'b' type: DT_FLOAT}}"
    " node_def {name: 'n' op: 'Neg' input: 'a' attr {key: 'T' value {type: DT_FLOAT}}} ret {key: "
    "'b' value: 'n:y:0'}}"
    " gradient {function_name: 'F' gradient_func: 'F'}}";

static void test_round_trip(void** state) {
  world_t* w = *state;
  import_text(w, sample);
  weir_node_t* strange = weir_graph_find_node(w->graph, "strange");
  assert_null(strange->def.op);
  assert_string_equal(weir_node_op(strange), "NobodyKnows");
  assert_int_equal(weir_node_output_count(strange), 3);
  assert_int_equal(weir_node_control_count(strange), 1);
  assert_string_equal(weir_node_device(weir_graph_find_node(w->graph, "x")), "/cpu:0");
  assert_int_equal(w->graph->producer, 1286);
  check_round_trip(w->graph);
  char* text = NULL;
  size_t size = 0;
  check_ok(weir_graph_to_text(w->graph, &text, &size));
  assert_non_null(strstr(text, "NobodyKnows"));
  weir_graph_t* copy = NULL;
  check_ok(weir_graph_create(&copy));
  check_ok(weir_graph_import_text(copy, text, size, NULL));
  assert_int_equal(copy->node_count, w->graph->node_count);
  weir_graph_release(copy);
  weir_buffer_free(text);
}

static void test_unknown_fields_are_kept(void** state) {
  world_t* w = *state;
  weir_strbuf_t def = {0};
  size_t node = weir_wire_begin(&def, 1);
  weir_wire_put_string(&def, 1, "a");
  weir_wire_put_string(&def, 2, "NoOp");
  weir_wire_put_string(&def, 77, "of the node");
  weir_wire_end(&def, node);
  weir_wire_put_int(&def, 99, 12345);
  weir_wire_put_string(&def, 98, "of the graph");
  check_ok(weir_graph_import_def(w->graph, def.data, def.size, NULL));
  weir_strbuf_t out = {0};
  weir_view_t bytes = written(w->graph, &out);
  assert_non_null(memmem(bytes.data, bytes.size, "of the node", 11));
  assert_non_null(memmem(bytes.data, bytes.size, "of the graph", 12));
  check_round_trip(w->graph);
  weir_strbuf_free(&out);
  weir_strbuf_free(&def);
}

// As in TensorFlow, a graph may have been written by a newer version: its attributes are no error.
static void test_unknown_attrs_are_kept(void** state) {
  world_t* w = *state;
  import_text(w, "node { name: 'a' op: 'NoOp' attr { key: 'newer' value { i: 7 } } }");
  assert_int_equal(weir_attrs_int(weir_graph_find_node(w->graph, "a")->def.attrs, "newer"), 7);
  check_round_trip(w->graph);
}

static void test_prefix(void** state) {
  world_t* w = *state;
  check_ok(weir_graph_import_text(w->graph, sample, sizeof(sample) - 1, "left"));
  check_ok(weir_graph_import_text(w->graph, sample, sizeof(sample) - 1, "right"));
  weir_node_t* later = weir_graph_find_node(w->graph, "right/later");
  assert_non_null(later);
  assert_string_equal(weir_node_name(weir_node_input(later, 0).node), "right/strange");
  check_error(try_text(w->graph, "node {name: 'left/x' op: 'NoOp'}"), WEIR_INVALID_ARGUMENT,
              "left/x");
}

static void test_input_map(void** state) {
  world_t* w = *state;
  weir_edge_t c = weir_const_float(w->scope, 1);
  weir_strbuf_t def = {0};
  size_t node = weir_wire_begin(&def, 1);
  weir_wire_put_string(&def, 1, "n");
  weir_wire_put_string(&def, 2, "Neg");
  weir_wire_put_string(&def, 3, "x");
  weir_wire_end(&def, node);
  const char* from[] = {"x:0"};
  weir_import_params_t params = {.prefix = "p", .input_map_to = {&c, 1}, .input_map_from = from};
  weir_status_t* status = weir_graph_import(w->graph, weir_strbuf_view(&def), &params);
  weir_strbuf_free(&def);
  check_error(status, WEIR_INVALID_ARGUMENT, "T");  // an imported node must carry its attributes
}

static void test_malformed(void** state) {
  world_t* w = *state;
  weir_graph_t* graph = w->graph;
  struct {
    const char* text;
    weir_code_t code;
    const char* message;
  } cases[] = {
      {"node {op: 'NoOp'}", WEIR_INVALID_ARGUMENT, "without a name"},
      {"node {name: 'a' op: 'NoOp'} node {name: 'a' op: 'NoOp'}", WEIR_INVALID_ARGUMENT,
       "'a' already exists"},
      {"node {name: 'a' op: 'NoOp' input: '^b'}", WEIR_INVALID_ARGUMENT,
       "Node 'a': Unknown input node '^b'"},
      {"node {name: 'a' op: 'NoOp' input: 'a'}", WEIR_INVALID_ARGUMENT, "'a'"},
      {"node {name: 'a' op: 'Neg' attr {key: 'T' value {type: DT_FLOAT}}}", WEIR_INVALID_ARGUMENT,
       "'a'"},
      {"node {name: 'a' op: 'Neg' input: 'b:x' attr {key: 'T' value {type: DT_FLOAT}}}",
       WEIR_INVALID_ARGUMENT, "b:x"},
      {"node {name: 'a' op: 'Neg' input: 'b' attr {key: 'T' value {type: DT_STRING}}}",
       WEIR_INVALID_ARGUMENT, "{{node a}}"},
      {"node {name: 'a' op: 'Neg' input: 'b' attr {key: 'T' value {type: DT_FLOAT}}}"
       "node {name: 'b' op: 'Placeholder' attr {key: 'dtype' value {type: DT_INT32}}}",
       WEIR_INVALID_ARGUMENT,
       "Input 0 of node a was passed int32 from b:0 incompatible with expected float"},
      {"node {name: 'a' op: 'Neg' input: 'b:1' attr {key: 'T' value {type: DT_FLOAT}}}"
       "node {name: 'b' op: 'Placeholder' attr {key: 'dtype' value {type: DT_FLOAT}}}",
       WEIR_INVALID_ARGUMENT, "'a'"},
      {"node {name: 'a' op: 'Neg' input: 'b' attr {key: 'T' value {type: DT_FLOAT}}}"
       "node {name: 'b' op: 'Neg' input: 'a' attr {key: 'T' value {type: DT_FLOAT}}}",
       WEIR_INVALID_ARGUMENT, "cycle"},
      {"node {name: 'a' op: 'NoOp' input: '^b'} node {name: 'b' op: 'NoOp' input: '^a'}",
       WEIR_INVALID_ARGUMENT, "cycle"},
      {"node {name: 'a' op: 'NoOp' input: '^a'}", WEIR_INVALID_ARGUMENT, "cycle"},
      {"node {name: 'a' op: 'NoOp' input: '^b' input: 'b'} node {name: 'b' op: 'NoOp'}",
       WEIR_INVALID_ARGUMENT, "control input"},
      {"node {name: 'a' op: 'Const' attr {key: 'dtype' value {type: DT_INT32}} attr {key: 'value' "
       "value {tensor {dtype: "
       "DT_FLOAT tensor_shape {} float_val: 1}}}}",
       WEIR_INVALID_ARGUMENT, "a"},
      {"node {name: 'a' op: 'Nobody'} node {name: 'b' op: 'Neg' input: 'a:2000000000' attr {key: "
       "'T' value {type: DT_FLOAT}}}",
       WEIR_INVALID_ARGUMENT, "2000000000"},
      {"node {name: 'a' op: 'AddN' attr {key: 'N' value {i: 4000000000}} attr {key: 'T' value "
       "{type: DT_FLOAT}}}",
       WEIR_INVALID_ARGUMENT, "'a'"},
      {"node {name: 'a' op: 'Placeholder' attr {key: 'dtype' value {placeholder: 'T'}}}",
       WEIR_INVALID_ARGUMENT, "placeholder 'T'"},
      {"library {function {signature {name: 'F' input_arg {name: 'a' type_attr: 'T'}}}}",
       WEIR_INVALID_ARGUMENT, "T"},
      {"versions {min_consumer: 2475}", WEIR_INVALID_ARGUMENT, "2475"},
      {"versions {bad_consumers: 7 bad_consumers: 2474}", WEIR_INVALID_ARGUMENT,
       "disallows consumer version 2474"},
  };
  for (size_t i = 0; i < WEIR_COUNT_OF(cases); ++i) {
    weir_status_t* status = try_text(graph, cases[i].text);
    if (!status) print_error("case %zu was accepted\n", i);
    check_error(status, cases[i].code, cases[i].message);
    assert_int_equal(weir_graph_node_count(graph), 0);  // nothing is added
  }
  check_error(weir_graph_import_def(graph, "\x0a\xff", 2, NULL), WEIR_INVALID_ARGUMENT, "GraphDef");
  check_ok(weir_graph_import_def(graph, "", 0, NULL));
  import_text(w, sample);  // still usable
}

// Before version 22, graphs said a shape without dimensions where none was known.
static void test_old_placeholders_have_any_shape(void** state) {
  (void)state;
  const char* const nodes =
      "node {name: 'p' op: 'Placeholder' attr {key: 'dtype' value {type: DT_FLOAT}}"
      "      attr {key: 'shape' value {shape {}}}}";
  const struct {
    const char* versions;
    int rank;
  } cases[] = {{"versions {producer: 21} ", -1}, {"versions {producer: 22} ", 0}};
  for (size_t i = 0; i < WEIR_COUNT_OF(cases); ++i) {
    weir_strbuf_t text = {0};
    weir_graph_t* graph = NULL;
    weir_strbuf_printf(&text, "%s%s", i == 0 ? nodes : cases[i].versions,
                       i == 0 ? cases[i].versions : nodes);
    check_ok(weir_graph_create(&graph));
    check_ok(try_text(graph, text.data));
    weir_node_t* node = weir_graph_find(graph, weir_view_of("p"));
    assert_int_equal(node->shapes[0]->rank, cases[i].rank);
    weir_graph_unref(graph);
    weir_strbuf_free(&text);
  }
}

// Newer graphs do not have some old ops.
static void test_removed_ops(void** state) {
  world_t* w = *state;
  const char* const node =
      "node {name: 'i' op: 'Placeholder' attr {key: 'dtype' value {type: DT_UINT8}}}"
      "node {name: 's' op: 'Placeholder' attr {key: 'dtype' value {type: DT_INT64}}}"
      "node {name: 'c' op: 'RandomCrop' input: 'i' input: 's'"
      "      attr {key: 'T' value {type: DT_UINT8}}}";
  weir_strbuf_t text = {0};
  weir_strbuf_printf(&text, "versions {producer: 8} %s", node);
  check_error(try_text(w->graph, text.data), WEIR_UNIMPLEMENTED,
              "Op RandomCrop is not available in GraphDef version 8. It has been removed in "
              "version 8. Random crop is now pure Python.");
  text.size = 0;
  weir_strbuf_printf(&text, "versions {producer: 7} %s", node);
  check_ok(try_text(w->graph, text.data));
  weir_strbuf_free(&text);
}

// A failed import leaves nothing of itself: no function, version or unknown field.
static void test_failed_import_leaves_nothing(void** state) {
  world_t* w = *state;
  import_text(w, "versions {producer: 7} node {name: 'a' op: 'NoOp'}");
  weir_strbuf_t before = {0}, after = {0};
  weir_view_t bytes = written(w->graph, &before);
  weir_strbuf_t def = {0};
  weir_status_t* status =
      try_text(w->graph,
               "versions {producer: 8} node {name: 'b' op: 'NoOp' input: '^nobody'}"
               "library {function {signature {name: 'F' output_arg {name: 'b' type: DT_FLOAT}}}}");
  check_error(status, WEIR_INVALID_ARGUMENT, "nobody");
  weir_view_t again = written(w->graph, &after);
  assert_int_equal(bytes.size, again.size);
  assert_memory_equal(bytes.data, again.data, bytes.size);
  check_ok(
      try_text(w->graph,
               "library {function {signature {name: 'F' output_arg {name: 'b' type: DT_INT32}}}}"));
  weir_strbuf_free(&def);
  weir_strbuf_free(&before);
  weir_strbuf_free(&after);
}

// Every prefix of a good GraphDef, and every flipped byte, gives a graph or a status.
static void test_damaged_bytes(void** state) {
  world_t* w = *state;
  import_text(w, sample);
  weir_strbuf_t out = {0};
  weir_view_t bytes = written(w->graph, &out);
  for (size_t i = 0; i < 2 * bytes.size; ++i) {
    char* copy = malloc(bytes.size);
    memcpy(copy, bytes.data, bytes.size);
    size_t size = i < bytes.size ? i : bytes.size;
    if (i >= bytes.size) copy[i - bytes.size] ^= (char)(1 + i % 255);
    weir_graph_t* graph = NULL;
    check_ok(weir_graph_create(&graph));
    weir_status_destroy(weir_graph_import_def(graph, copy, size, NULL));
    weir_graph_release(graph);
    free(copy);
  }
  weir_strbuf_free(&out);
}

// ---- functions ----

static void test_function_library(void** state) {
  world_t* w = *state;
  import_text(w, sample);
  const weir_function_t* f = weir_function_find(w->graph->library, weir_view_of("F"));
  assert_non_null(f);
  assert_string_equal(f->gradient, "F");
  assert_false(f->is_stateful);
  weir_function_body_t body = {0};
  check_ok(
      weir_function_instantiate(w->graph->library, w->graph->registry, f, WEIR_NO_ATTRS, &body));
  assert_int_equal(body.arg_count, 1);
  assert_int_equal(body.ret_count, 1);
  assert_int_equal(body.graph->node_count, 3);
  weir_function_body_free(&body);
  check_ok(try_text(w->graph, "library {function {signature {name: 'G'}}}"));
  check_ok(try_text(w->graph, "library {function {signature {name: 'G'}}}"));  // the same again
  check_error(try_text(w->graph, "library {function {signature {name: 'G' is_stateful: true}}}"),
              WEIR_INVALID_ARGUMENT, "'G'");
  check_error(try_text(w->graph, "library {gradient {function_name: 'H' gradient_func: 'G'}}"),
              WEIR_INVALID_ARGUMENT, "'H'");
}

static void test_function_as_op(void** state) {
  world_t* w = *state;
  import_text(w, sample);
  import_text(w, "node {name: 'c' op: 'F' input: 'x'}");
  weir_edge_t x, c;
  check_ok(weir_graph_find_output(w->graph, "x", &x));
  check_ok(weir_graph_find_output(w->graph, "c", &c));
  assert_int_equal(weir_edge_type(c), WEIR_DTYPE_FLOAT);
  assert_float_equal(feed_float(open_session(w, 1), x, 3, c), -3, 0);
}

// The name of a list, of arguments or of outputs, stands for all of it; with an index for one.
static void test_lists_in_functions(void** state) {
  world_t* w = *state;
  import_text(
      w,
      "library {function {signature {name: 'Lists' input_arg {name: 'many' type: DT_FLOAT "
      "number_attr: 'N'} input_arg {name: 'axis' type: DT_INT32} output_arg {name: 'sum' type: "
      "DT_FLOAT} output_arg {name: 'parts' type: DT_FLOAT number_attr: 'N'} output_arg {name: "
      "'back' type: DT_FLOAT number_attr: 'N'} attr {name: 'N' type: 'int'}}"
      " node_def {name: 'all' op: 'AddN' input: 'many' attr {key: 'T' value {type: DT_FLOAT}} attr "
      "{key: 'N' value {placeholder: 'N'}}}"
      " node_def {name: 'cut' op: 'Split' input: 'axis' input: 'many:1' attr {key: 'T' value "
      "{type: DT_FLOAT}} attr {key: 'num_split' value {placeholder: 'N'}}}"
      " node_def {name: 'both' op: 'AddN' input: 'cut:output' input: 'all:sum:0' attr {key: 'T' "
      "value {type: DT_FLOAT}} attr {key: 'N' value {i: 3}}}"
      " ret {key: 'sum' value: 'both:sum'} ret {key: 'parts' value: 'cut:output'} ret {key: 'back' "
      "value: 'many'}}}");
  const weir_function_t* f = weir_function_find(w->graph->library, weir_view_of("Lists"));
  weir_named_attr_t attrs[] = {weir_attr_int("N", 2)};
  weir_function_body_t body = {0};
  check_ok(weir_function_instantiate(w->graph->library, w->graph->registry, f,
                                     (weir_attrs_t){.items = attrs, .count = 1}, &body));
  assert_int_equal(body.arg_count, 3);
  assert_int_equal(body.ret_count, 5);
  const weir_node_t* all = weir_graph_find(body.graph, weir_view_of("all"));
  const weir_node_t* both = weir_graph_find(body.graph, weir_view_of("both"));
  const weir_node_t* cut = weir_graph_find(body.graph, weir_view_of("cut"));
  for (int i = 0; i < 2; ++i) {
    assert_ptr_equal(all->inputs[i].node, body.args[i]);
    assert_ptr_equal(both->inputs[i].node, cut);
    assert_int_equal(both->inputs[i].index, i);
    assert_ptr_equal(body.rets[1 + i]->inputs[0].node, cut);
    assert_int_equal(body.rets[1 + i]->inputs[0].index, i);
    assert_ptr_equal(body.rets[3 + i]->inputs[0].node, body.args[i]);
  }
  assert_ptr_equal(cut->inputs[1].node, body.args[1]);
  assert_ptr_equal(both->inputs[2].node, all);
  weir_function_body_free(&body);
}

static void test_bad_function_bodies(void** state) {
  world_t* w = *state;
  import_text(w,
              "library {"
              " function {signature {name: 'NoSuchValue' output_arg {name: 'b' type: DT_FLOAT}} "
              "ret {key: 'b' value: 'n:y:0'}}"
              " function {signature {name: 'NoRet' output_arg {name: 'b' type: DT_FLOAT}}}"
              " function {signature {name: 'UnknownOp'} node_def {name: 'n' op: 'NobodyKnows'}}"
              " function {signature {name: 'Cycle'} node_def {name: 'n' op: 'NoOp' input: '^m'} "
              "node_def {name: 'm' op: 'NoOp' input: "
              "'^n'}}"
              " function {signature {name: 'Twice'} node_def {name: 'n' op: 'NoOp'} node_def "
              "{name: 'n' op: 'NoOp'}}"
              " function {signature {name: 'NoAttr' input_arg {name: 'a' type: DT_FLOAT}} node_def "
              "{name: 'n' op: 'Neg' input: 'a' "
              "attr {key: 'T' value {placeholder: 'U'}}}}"
              " function {signature {name: 'BadIndex' input_arg {name: 'a' type: DT_FLOAT} "
              "output_arg {name: 'b' type: DT_FLOAT}}"
              " ret {key: 'b' value: 'a:7'}}"
              " function {signature {name: 'WrongType' input_arg {name: 'a' type: DT_FLOAT} "
              "output_arg {name: 'b' type: DT_INT32}}"
              " ret {key: 'b' value: 'a'}}}");
  const char* names[] = {"NoSuchValue", "NoRet",  "UnknownOp", "Cycle",
                         "Twice",       "NoAttr", "BadIndex",  "WrongType"};
  for (size_t i = 0; i < WEIR_COUNT_OF(names); ++i) {
    const weir_function_t* f = weir_function_find(w->graph->library, weir_view_of(names[i]));
    assert_non_null(f);
    weir_function_body_t body = {0};
    weir_status_t* status =
        weir_function_instantiate(w->graph->library, w->graph->registry, f, WEIR_NO_ATTRS, &body);
    if (!status) print_error("%s was accepted\n", names[i]);
    assert_non_null(status);
    weir_status_destroy(status);
  }
}

// ---- order and copies ----

static void test_order(void** state) {
  world_t* w = *state;
  weir_edge_t limit = weir_const_int(w->scope, 3);
  loop_nodes_t loop =
      open_loop(w, "f", weir_const_int(w->scope, 0), weir_const_float(w->scope, 0), limit, 2);
  close_loop(w, &loop, OP(w, "Neg", loop.x));
  weir_arena_t arena = {0};
  weir_node_t** order = NULL;
  check_ok(weir_graph_order(w->graph, &arena, &order));  // back edges are no cycles
  int* at = calloc(w->graph->node_count, sizeof(int));
  for (size_t i = 0; i < w->graph->node_count; ++i) at[order[i]->id] = (int)i;
  for (size_t i = 0; i < w->graph->node_count; ++i) {
    for (int k = 0; k < order[i]->def.input_count; ++k) {
      const weir_node_t* from = order[i]->inputs[k].node;
      bool is_back = weir_node_role(from) == WEIR_ROLE_NEXT_ITERATION;
      assert_true(is_back || at[from->id] < (int)i);
    }
  }
  free(at);
  weir_arena_free(&arena);
}

static void test_set_input(void** state) {
  world_t* w = *state;
  weir_edge_t a = weir_const_float(w->scope, 1);
  weir_edge_t b = weir_const_int(w->scope, 1);
  weir_edge_t n = OP(w, "Neg", a);
  check_error(weir_graph_set_input(n.node, 1, a), WEIR_OUT_OF_RANGE, "no input 1");
  check_error(weir_graph_set_input(n.node, 0, b), WEIR_INVALID_ARGUMENT, "incompatible");
  int version = w->graph->version;
  check_ok(weir_graph_set_input(n.node, 0, weir_const_float(w->scope, 2)));
  assert_true(w->graph->version > version);
  check_ok(weir_graph_add_control(n.node, a.node));
  check_ok(weir_graph_add_control(n.node, a.node));
  assert_int_equal(n.node->control_count, 1);
  assert_float_equal(fetch_float(open_session(w, 1), n), -2, 0);
}

// What a graph has grown by fits what was written before: a constant's copies for two loops, and
// for one loop at two times, have names of their own.
static void test_portable_growth(void** state) {
  world_t* w = *state;
  weir_edge_t half = weir_const_float(w->scope, 0.5f), limit = weir_const_int(w->scope, 3);
  weir_graph_t* there = NULL;
  check_ok(weir_graph_create(&there));
  size_t sent = 0;
  loop_nodes_t loop = {.x = {0}};
  for (int i = 0; i < 3; ++i) {
    weir_strbuf_t def = {0};
    if (i < 2) {
      loop = open_loop(w, i ? "b" : "a", weir_const_int(w->scope, 0), half, limit, 10);
      close_loop(w, &loop, OP(w, "Mul", loop.x, half));
    } else {
      OP(w, "Sub", loop.x, half);
    }
    check_ok(weir_graph_write_portable(w->graph, sent, &def));
    sent = w->graph->node_count;
    check_ok(weir_graph_import_def(there, def.data, def.size, NULL));
    weir_strbuf_free(&def);
  }
  size_t copies = 0;
  for (size_t i = 0; i < there->node_count; ++i) {
    const weir_node_t* node = there->nodes[i];
    if (!strstr(node->def.name, "/in_loop")) continue;
    ++copies;
    assert_int_equal(node->control_count, 1);
    assert_string_equal(node->control_inputs[0]->def.op_name, "Merge");
  }
  assert_int_equal(there->node_count, w->graph->node_count + copies);
  assert_true(copies >= 3);
  weir_graph_release(there);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_names),
      TEST(test_types),
      TEST(test_shapes_are_inferred),
      TEST(test_round_trip),
      TEST(test_portable_growth),
      TEST(test_unknown_fields_are_kept),
      TEST(test_unknown_attrs_are_kept),
      TEST(test_prefix),
      TEST(test_input_map),
      TEST(test_malformed),
      TEST(test_old_placeholders_have_any_shape),
      TEST(test_removed_ops),
      TEST(test_failed_import_leaves_nothing),
      TEST(test_damaged_bytes),
      TEST(test_function_library),
      TEST(test_function_as_op),
      TEST(test_lists_in_functions),
      TEST(test_bad_function_bodies),
      TEST(test_order),
      TEST(test_set_input),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

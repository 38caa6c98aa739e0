// import_test.c — Tests of damaged and hostile ONNX models; tests/onnx_test.py runs ONNX's own
// tests of nodes.
#include "file/testing.h"
#include "weir/onnx.h"
#include "wire/wire.h"

enum { MODEL_GRAPH = 7, MODEL_OPSET = 8, MODEL_FUNCTION = 25, OPSET_VERSION = 2 };
enum { GRAPH_NODE = 1, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_NAME = 3, NODE_OP = 4, NODE_DOMAIN = 7 };
enum { TENSOR_DIMS = 1, TENSOR_TYPE = 2, TENSOR_NAME = 8, TENSOR_RAW = 9 };
enum { TENSOR_EXTERNAL = 13, TENSOR_LOCATION = 14 };
enum { FLOAT = 1 };

static void put_opset(weir_strbuf_t* model, int version) {
  size_t begin = weir_wire_begin(model, MODEL_OPSET);
  weir_wire_put_int(model, OPSET_VERSION, version);
  weir_wire_end(model, begin);
}

static void put_node(weir_strbuf_t* graph, const char* op, const char* input, const char* output) {
  size_t begin = weir_wire_begin(graph, GRAPH_NODE);
  weir_wire_put_string(graph, NODE_INPUT, input);
  weir_wire_put_string(graph, NODE_OUTPUT, output);
  weir_wire_put_string(graph, NODE_NAME, output);
  weir_wire_put_string(graph, NODE_OP, op);
  weir_wire_end(graph, begin);
}

static void put_name(weir_strbuf_t* graph, uint32_t field, const char* name) {
  size_t begin = weir_wire_begin(graph, field);
  weir_wire_put_string(graph, 1, name);
  weir_wire_end(graph, begin);
}

// The weight "w" of four floats; |location| NULL: its bytes are |raw|.
static void put_weight(weir_strbuf_t* graph, weir_view_t raw, const char* location) {
  size_t begin = weir_wire_begin(graph, GRAPH_INITIALIZER);
  weir_wire_put_int(graph, TENSOR_DIMS, 4);
  weir_wire_put_int(graph, TENSOR_TYPE, FLOAT);
  weir_wire_put_string(graph, TENSOR_NAME, "w");
  if (location) {
    size_t entry = weir_wire_begin(graph, TENSOR_EXTERNAL);
    weir_wire_put_string(graph, 1, "location");
    weir_wire_put_string(graph, 2, location);
    weir_wire_end(graph, entry);
    weir_wire_put_int(graph, TENSOR_LOCATION, 1);
  } else {
    weir_wire_put_bytes(graph, TENSOR_RAW, raw.data, raw.size);
  }
  weir_wire_end(graph, begin);
}

// Neg of the weight, which is one output.
static void put_model(weir_strbuf_t* model, weir_view_t raw, const char* location) {
  put_opset(model, 13);
  size_t graph = weir_wire_begin(model, MODEL_GRAPH);
  put_weight(model, raw, location);
  put_node(model, "Neg", "w", "y");
  put_name(model, GRAPH_OUTPUT, "y");
  weir_wire_end(model, graph);
}

static weir_status_t* import(weir_strbuf_t* bytes) {
  weir_onnx_t* model = NULL;
  weir_status_t* status = weir_onnx_import_bytes(bytes->data, bytes->size, &model);
  weir_onnx_destroy(model);
  weir_strbuf_free(bytes);
  return status;
}

static void test_ports(void** state) {
  (void)state;
  weir_strbuf_t bytes = {0};
  weir_onnx_t* model = NULL;
  put_model(&bytes, weir_view("0123456789abcdef", 16), NULL);
  CHECK_OK(weir_onnx_import_bytes(bytes.data, bytes.size, &model));
  assert_int_equal(weir_onnx_input_count(model), 0);
  assert_int_equal(weir_onnx_output_count(model), 1);
  assert_string_equal(weir_onnx_output_at(model, 0).name, "y");
  assert_null(weir_onnx_output_at(model, 1).name);
  weir_onnx_destroy(model);
  weir_strbuf_free(&bytes);
}

static void test_unknown_ops(void** state) {
  (void)state;
  weir_strbuf_t bytes = {0};
  put_opset(&bytes, 13);
  size_t graph = weir_wire_begin(&bytes, MODEL_GRAPH);
  put_node(&bytes, "Frobnicate", "x", "first");
  put_node(&bytes, "Twist", "x", "other");
  put_node(&bytes, "Frobnicate", "x", "second");
  weir_wire_end(&bytes, graph);
  CHECK_FAILS(import(&bytes), UNIMPLEMENTED,
              "ops that Weir cannot import: Frobnicate ('first', 'second'); Twist ('other')");
}

static void test_bad_graphs(void** state) {
  (void)state;
  weir_strbuf_t bytes = {0};
  weir_strbuf_puts(&bytes, "hello world");
  CHECK_FAILS(import(&bytes), INVALID_ARGUMENT, "");
  put_opset(&bytes, 13);
  CHECK_FAILS(import(&bytes), INVALID_ARGUMENT, "has no graph");
  put_opset(&bytes, 13);
  size_t graph = weir_wire_begin(&bytes, MODEL_GRAPH);
  put_node(&bytes, "Neg", "x", "y");
  weir_wire_end(&bytes, graph);
  CHECK_FAILS(import(&bytes), INVALID_ARGUMENT, "node 'y': Neg reads 'x'");
  put_opset(&bytes, 13);
  graph = weir_wire_begin(&bytes, MODEL_GRAPH);
  put_name(&bytes, GRAPH_OUTPUT, "y");
  weir_wire_end(&bytes, graph);
  CHECK_FAILS(import(&bytes), INVALID_ARGUMENT, "nothing computes the output 'y'");
  put_opset(&bytes, 5);
  graph = weir_wire_begin(&bytes, MODEL_GRAPH);
  put_weight(&bytes, weir_view("0123456789abcdef", 16), NULL);
  put_node(&bytes, "Neg", "w", "y");
  weir_wire_end(&bytes, graph);
  CHECK_FAILS(import(&bytes), UNIMPLEMENTED, "Neg of opset 5; Weir imports it from 6 on");
}

static void test_bad_weights(void** state) {
  (void)state;
  weir_strbuf_t bytes = {0};
  put_model(&bytes, weir_view("0123456789abcde", 15), NULL);
  CHECK_FAILS(import(&bytes), DATA_LOSS, "tensor 'w' has 15 bytes, but its shape needs 16");
  put_model(&bytes, weir_view("", 0), "weights.bin");
  CHECK_FAILS(import(&bytes), INVALID_ARGUMENT, "the model is not a file");
}

// The model as a file, whose weights are in |location|.
static weir_status_t* import_file(const char* location) {
  weir_strbuf_t bytes = {0};
  weir_onnx_t* model = NULL;
  put_model(&bytes, weir_view("", 0), location);
  CHECK_OK(weir_fs_make_directories(test_path("models")));
  CHECK_OK(weir_fs_write_all(test_path("models/a.onnx"), weir_strbuf_view(&bytes)));
  weir_strbuf_free(&bytes);
  weir_status_t* status = weir_onnx_import(test_path("models/a.onnx"), &model);
  weir_onnx_destroy(model);
  return status;
}

static void test_external_data(void** state) {
  (void)state;
  const weir_view_t data = weir_view("0123456789abcdef", 16);
  CHECK_FAILS(import_file("w.bin"), NOT_FOUND, "w.bin");
  CHECK_OK(weir_fs_write_all(test_path("models/w.bin"), data));
  CHECK_OK(weir_fs_write_all(test_path("outside.bin"), data));
  assert_int_equal(symlink("../outside.bin", test_path("models/link.bin")), 0);
  CHECK_OK(import_file("w.bin"));
  CHECK_FAILS(import_file("../outside.bin"), INVALID_ARGUMENT, "outside of the model's folder");
  CHECK_FAILS(import_file("link.bin"), INVALID_ARGUMENT, "outside of the model's folder");
  CHECK_FAILS(import_file("/etc/passwd"), INVALID_ARGUMENT, "outside of the model's folder");
  CHECK_OK(weir_fs_write_all(test_path("models/w.bin"), weir_view(data.data, 12)));
  CHECK_FAILS(import_file("w.bin"), DATA_LOSS, "has 12 bytes");
}

// A function that calls itself, and one that doubles: neither may take all there is.
static void test_endless_functions(void** state) {
  (void)state;
  weir_strbuf_t bytes = {0};
  put_opset(&bytes, 13);
  size_t graph = weir_wire_begin(&bytes, MODEL_GRAPH);
  put_weight(&bytes, weir_view("0123456789abcdef", 16), NULL);
  put_node(&bytes, "F", "w", "y");
  weir_wire_end(&bytes, graph);
  size_t function = weir_wire_begin(&bytes, MODEL_FUNCTION);
  weir_wire_put_string(&bytes, 1, "F");
  weir_wire_put_string(&bytes, 4, "x");
  weir_wire_put_string(&bytes, 5, "y");
  size_t node = weir_wire_begin(&bytes, 7);
  weir_wire_put_string(&bytes, NODE_INPUT, "x");
  weir_wire_put_string(&bytes, NODE_OUTPUT, "y");
  weir_wire_put_string(&bytes, NODE_OP, "F");
  weir_wire_end(&bytes, node);
  weir_wire_end(&bytes, function);
  CHECK_FAILS(import(&bytes), INVALID_ARGUMENT, "more than 64 deep");
}

static void test_any_byte(void** state) {
  (void)state;
  weir_strbuf_t bytes = {0};
  put_model(&bytes, weir_view("0123456789abcdef", 16), NULL);
  for (size_t i = 0; i < bytes.size; ++i) {
    for (int bit = 0; bit < 8; bit += 3) {
      weir_onnx_t* model = NULL;
      bytes.data[i] = (char)(bytes.data[i] ^ 1 << bit);
      weir_status_destroy(weir_onnx_import_bytes(bytes.data, bytes.size, &model));
      weir_onnx_destroy(model);
      bytes.data[i] = (char)(bytes.data[i] ^ 1 << bit);
    }
    weir_onnx_t* model = NULL;
    weir_status_destroy(weir_onnx_import_bytes(bytes.data, i + 1, &model));
    weir_onnx_destroy(model);
  }
  weir_strbuf_free(&bytes);
}

static void test_out_of_memory(void** state) {
  (void)state;
  weir_strbuf_t bytes = {0};
  put_model(&bytes, weir_view("0123456789abcdef", 16), NULL);
  for (int64_t n = 1;; ++n) {
    weir_onnx_t* model = NULL;
    weir_alloc_fail_at(n, false);
    weir_status_t* status = weir_onnx_import_bytes(bytes.data, bytes.size, &model);
    weir_alloc_fail_at(0, false);
    weir_onnx_destroy(model);
    if (!status) break;
    assert_int_equal(weir_status_code(status), WEIR_RESOURCE_EXHAUSTED);
    weir_status_destroy(status);
  }
  weir_strbuf_free(&bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      FILE_TEST(test_ports),       FILE_TEST(test_unknown_ops),   FILE_TEST(test_bad_graphs),
      FILE_TEST(test_bad_weights), FILE_TEST(test_external_data), FILE_TEST(test_endless_functions),
      FILE_TEST(test_any_byte),    FILE_TEST(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

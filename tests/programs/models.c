// models.c — Saves models for matrix_test.py and saved_models_test.py, which have TensorFlow load
// them.
//
//   models dense DIRECTORY       a layer of resource variables, and what trains it: y = relu(xw +
//   b) models table DIRECTORY FILE  words to numbers by a table that is read from FILE, an asset
//   models twice FROM TO         loads FROM and saves it again
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/weir.h>

static void check(weir_status_t* status) {
  if (weir_status_report(status)) exit(1);
}

static void save(weir_graph_t* graph, weir_node_t* init, const char* directory,
                 const weir_model_save_options_t* options) {
  weir_session_t* session = NULL;
  check(weir_session_create(graph, &(const weir_session_options_t){.threads = 1}, &session));
  if (init) check(weir_session_run_target(session, init));
  check(weir_model_save(session, directory, options));
  weir_session_destroy(session);
}

static void save_dense(const char* directory) {
  weir_graph_t* graph = NULL;
  check(weir_graph_create(&graph));
  weir_scope_t* s = weir_scope_create(graph);
  const int64_t dims[] = {-1, 3};
  weir_edge_t x = weir_placeholder(weir_scope_name(s, "x"), WEIR_DTYPE_FLOAT,
                                   .shape = {.rank = 2, .dims = dims});
  const float start[] = {1, -2, 3, 0.5F, 2, -1};
  weir_edge_t w = weir_variable(s, "w", weir_const_floats(s, WEIR_DIMS(3, 2), start));
  weir_edge_t b = weir_variable(s, "b", weir_const_floats(s, WEIR_DIMS(2), start));
  weir_edge_t y = weir_relu(s, weir_add_v2(s, weir_mat_mul(s, x, w), b));
  weir_edge_t unused = weir_variable(s, "unused", weir_const_float(s, 7));
  weir_node_t* init = weir_initializer(s);
  check(weir_scope_finish(s));
  (void)unused;
  const weir_named_edge_t input = {"input", x}, output = {"output", y};
  const weir_signature_spec_t signature = {
      .inputs = &input, .input_count = 1, .outputs = &output, .output_count = 1};
  save(graph, init, directory,
       &(const weir_model_save_options_t){.signatures = &signature, .signature_count = 1});
  weir_graph_release(graph);
}

static void save_table(const char* directory, const char* file) {
  weir_graph_t* graph = NULL;
  check(weir_graph_create(&graph));
  weir_scope_t* s = weir_scope_create(graph);
  weir_edge_t words = weir_placeholder(weir_scope_name(s, "words"), WEIR_DTYPE_STRING,
                                       .shape = {.rank = 1, .dims = (const int64_t[]){-1}});
  weir_edge_t path = weir_const_string(weir_scope_name(s, "path"), file);
  weir_edge_t table = weir_hash_table_v2(s, WEIR_DTYPE_STRING, WEIR_DTYPE_INT64);
  weir_node_t* init = weir_initialize_table_from_text_file_v2(s, table, path, -2, -1);
  weir_edge_t missing = weir_cast(s, weir_const_int(s, -1), WEIR_DTYPE_INT64);
  weir_edge_t ids = weir_lookup_table_find_v2(s, table, words, missing);
  check(weir_scope_finish(s));
  const weir_named_edge_t input = {"words", words}, output = {"ids", ids};
  const weir_signature_spec_t signature = {
      .inputs = &input, .input_count = 1, .outputs = &output, .output_count = 1};
  const weir_asset_t asset = {.tensor = path, .path = file};
  save(graph, NULL, directory,
       &(const weir_model_save_options_t){.signatures = &signature,
                                          .signature_count = 1,
                                          .initializer = init,
                                          .assets = &asset,
                                          .asset_count = 1});
  weir_graph_release(graph);
}

static void save_again(const char* from, const char* to) {
  weir_model_t* model = NULL;
  check(weir_model_load(from, NULL, &model));
  check(weir_model_save(weir_model_session(model), to,
                        &(const weir_model_save_options_t){.from = model}));
  weir_model_destroy(model);
}

int main(int argc, char** argv) {
  if (argc == 3 && strcmp(argv[1], "dense") == 0) save_dense(argv[2]);
  else if (argc == 4 && strcmp(argv[1], "table") == 0) save_table(argv[2], argv[3]);
  else if (argc == 4 && strcmp(argv[1], "twice") == 0) save_again(argv[2], argv[3]);
  else return 2;
  return 0;
}

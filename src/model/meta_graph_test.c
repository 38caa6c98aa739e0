// meta_graph_test.c — Signatures, assets and initialisers of MetaGraphDefs, whole and damaged.
#include "model/meta_graph.h"

#include "file/testing.h"
#include "model/saved_model.h"
#include "wire/message.h"
#include "wire/text.h"

#define MODEL                                                                                    \
  "saved_model_schema_version: 1 meta_graphs { meta_info_def { tags: 'serve' tags: 'gpu' }"      \
  " saver_def { filename_tensor_name: 'save/Const:0' restore_op_name: 'save/restore_all' }"      \
  " collection_def { key: 'legacy_init_op' value { node_list { value: 'old_init' } } }"          \
  " signature_def { key: 'second' value { method_name: 'm' } }"                                  \
  " signature_def { key: '__saved_model_init_op' value { outputs { key: '__saved_model_init_op'" \
  "   value { name: 'init' } } } }"                                                              \
  " signature_def { key: 'first' value {"                                                        \
  "   inputs { key: 'x' value { name: 'a:0' dtype: DT_FLOAT } }"                                 \
  "   inputs { key: 's' value { coo_sparse { values_tensor_name: 'v:0'"                          \
  "     indices_tensor_name: 'i:0' dense_shape_tensor_name: 'd:0' } } } } }"                     \
  " asset_file_def { tensor_info { name: 'c:0' } filename: 'words.txt' } }"

static weir_strbuf_t message_of(const char* text) {
  weir_strbuf_t out = {0};
  CHECK_OK(weir_text_parse(&weir_message_saved_model, weir_view_of(text), &out));
  return out;
}

static void test_reads(void** state) {
  (void)state;
  weir_strbuf_t bytes = message_of(MODEL);
  weir_view_t message = {0};
  weir_meta_graph_t meta = {0};
  CHECK_OK(weir_saved_model_select(weir_strbuf_view(&bytes), "gpu, serve", &message));
  CHECK_OK(weir_meta_graph_read(message, &meta));
  assert_string_equal(meta.filename_tensor, "save/Const:0");
  assert_string_equal(meta.restore_op, "save/restore_all");
  assert_string_equal(meta.init_op, "init");  // the signature goes before the collection
  assert_int_equal(meta.signature_count, 2);
  assert_string_equal(meta.signatures[0].name, "first");
  assert_int_equal(meta.signatures[0].inputs.count, 4);
  assert_string_equal(meta.signatures[0].inputs.items[0].name, "s/dense_shape");
  assert_string_equal(meta.signatures[0].inputs.items[3].tensor, "a:0");
  assert_int_equal(meta.asset_count, 1);
  assert_string_equal(meta.assets[0].file, "words.txt");
  weir_meta_graph_free(&meta);
  weir_strbuf_free(&bytes);
}

static void test_tags(void** state) {
  (void)state;
  weir_strbuf_t bytes = message_of(MODEL);
  weir_view_t message = {0};
  static const char* const wrong[] = {"serve", "gpu", "serve,gpu,tpu", ""};
  for (size_t i = 0; i < WEIR_COUNT_OF(wrong); ++i) {
    CHECK_FAILS(weir_saved_model_select(weir_strbuf_view(&bytes), wrong[i], &message), NOT_FOUND,
                "'serve,gpu'");
  }
  CHECK_OK(weir_saved_model_select(weir_strbuf_view(&bytes), "serve,gpu,serve", &message));
  CHECK_FAILS(weir_saved_model_select(weir_view("", 0), "serve", &message), DATA_LOSS,
              "without a graph");
  weir_strbuf_free(&bytes);
}

// No end of a message is taken for all of it without a word, and none is read beyond.
static void test_truncated(void** state) {
  (void)state;
  weir_strbuf_t bytes = message_of(MODEL);
  for (size_t size = 0; size < bytes.size; ++size) {
    char* part = weir_strndup(bytes.data, size);
    weir_view_t message = {0};
    weir_meta_graph_t meta = {0};
    weir_status_destroy(weir_meta_graph_read(weir_view(part, size), &meta));
    weir_meta_graph_free(&meta);
    if (size > 2) {
      CHECK_FAILS(weir_saved_model_select(weir_view(part, size), "serve,gpu", &message), DATA_LOSS,
                  "malformed");
    }
    weir_free(part);
  }
  weir_strbuf_free(&bytes);
}

static void check_refused(const char* meta_graph, weir_code_t code, const char* words) {
  weir_strbuf_t bytes = {0};
  weir_meta_graph_t meta = {0};
  CHECK_OK(weir_text_parse(&weir_message_meta_graph_def, weir_view_of(meta_graph), &bytes));
  check_status(weir_meta_graph_read(weir_strbuf_view(&bytes), &meta), code, words, meta_graph,
               __FILE__, __LINE__);
  weir_meta_graph_free(&meta);
  weir_strbuf_free(&bytes);
}

static void test_refused(void** state) {
  (void)state;
  check_refused("asset_file_def { tensor_info { name: 'c:0' } filename: 'a/../../b' }",
                WEIR_INVALID_ARGUMENT, "a/../../b");
  check_refused("asset_file_def { tensor_info { name: 'c:0' } filename: '/etc/passwd' }",
                WEIR_INVALID_ARGUMENT, "/etc/passwd");
  check_refused("asset_file_def { filename: 'a' }", WEIR_INVALID_ARGUMENT, "no tensor");
  check_refused(
      "signature_def { key: 'a' value { inputs { key: 'x' value { name: 'a\\000b' } } } }",
      WEIR_INVALID_ARGUMENT, "zero byte");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_reads),
      cmocka_unit_test(test_tags),
      cmocka_unit_test(test_truncated),
      cmocka_unit_test(test_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

// checkpoint_state_test.c — Tests of the file "checkpoint".
#include "file/checkpoint_state.h"

#include "file/testing.h"

static void test_round_trip(void** state) {
  (void)state;
  double timestamps[] = {1.5, 2.25};
  char latest[] = "model-2";
  weir_checkpoint_state_t written = {
      .latest = latest, .timestamps = timestamps, .last_preserved = 0.125};
  weir_checkpoint_state_t back = {0};
  weir_strbuf_t prefix = {0};
  CHECK_OK(weir_names_add(&written.all, weir_view_of("model-1")));
  CHECK_OK(weir_names_add(&written.all, weir_view_of("model-2")));
  CHECK_OK(weir_checkpoint_state_save(test_dir, &written));
  CHECK_OK(weir_checkpoint_state_load(test_dir, &back));
  assert_string_equal(back.latest, "model-2");
  assert_int_equal(back.all.count, 2);
  assert_string_equal(back.all.items[0], "model-1");
  assert_true(back.timestamps[1] == 2.25 && back.last_preserved == 0.125);
  CHECK_OK(weir_checkpoint_latest(test_dir, &prefix));
  assert_string_equal(prefix.data, test_path("model-2"));
  weir_strbuf_free(&prefix);
  weir_checkpoint_state_free(&back);
  weir_names_free(&written.all);
}

// A time of 0 is none, and not written; 1 is one.
static void test_last_preserved(void** state) {
  (void)state;
  for (int seconds = 0; seconds < 2; ++seconds) {
    weir_checkpoint_state_t written = {.last_preserved = seconds}, back = {0};
    weir_strbuf_t text = {0};
    CHECK_OK(weir_checkpoint_state_save(test_dir, &written));
    CHECK_OK(weir_fs_read_all(test_path("checkpoint"), &text));
    assert_int_equal(text.size > 0, seconds);
    CHECK_OK(weir_checkpoint_state_load(test_dir, &back));
    assert_true(back.last_preserved == seconds);
    weir_checkpoint_state_free(&back);
    weir_strbuf_free(&text);
  }
}

static void test_text(void** state) {
  (void)state;
  weir_checkpoint_state_t back = {0};
  weir_strbuf_t prefix = {0};
  CHECK_FAILS(weir_checkpoint_state_load(test_dir, &back), NOT_FOUND, "checkpoint");
  CHECK_OK(weir_fs_write_all(test_path("checkpoint"), weir_view_of("model_checkpoint_path: ")));
  CHECK_FAILS(weir_checkpoint_state_load(test_dir, &back), INVALID_ARGUMENT, "checkpoint");
  CHECK_OK(weir_fs_write_all(test_path("checkpoint"), weir_view_of("")));
  CHECK_FAILS(weir_checkpoint_latest(test_dir, &prefix), NOT_FOUND, "names no checkpoint");
  CHECK_OK(weir_fs_write_all(
      test_path("checkpoint"),
      weir_view_of("model_checkpoint_path: \"/abs/m-7\"\nall_model_checkpoint_paths: \"m\"\n")));
  CHECK_OK(weir_checkpoint_latest(test_dir, &prefix));
  assert_string_equal(prefix.data, "/abs/m-7");
  weir_strbuf_free(&prefix);
}

int main(void) {
  const struct CMUnitTest tests[] = {FILE_TEST(test_round_trip), FILE_TEST(test_text),
                                     FILE_TEST(test_last_preserved)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

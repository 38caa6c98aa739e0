// memory_test.c — Each allocation fails in turn: what is saved and read back is an error, or all of
// it is there.
#include "base/alloc.h"
#include "file/bundle.h"
#include "file/checkpoint_state.h"
#include "file/checkpoint_v1.h"
#include "file/deflate.h"
#include "file/record.h"
#include "file/testing.h"

static const char* const kTexts[] = {"short", "a string that does not fit into twenty-four bytes"};

static weir_tensor_t* strings(void) {
  weir_tensor_t* tensor = NULL;
  CHECK_OK(weir_tensor_create_strings(1, (const int64_t[]){2}, kTexts, NULL, &tensor));
  return tensor;
}

static bool holds_texts(const weir_tensor_t* tensor) {
  if (tensor->dtype != WEIR_DTYPE_STRING || tensor->count != 2) return false;
  for (int i = 0; i < 2; ++i) {
    weir_view_t text = weir_string_view(&WEIR_TENSOR_DATA(tensor, const weir_string_t)[i]);
    if (!weir_view_is(text, kTexts[i])) return false;
  }
  return true;
}

// Runs |fn| with the n-th allocation failing, n = 1, 2, 3 …, until it succeeds a few times: then
// there are fewer. It says whether what it read was what it had written.
static void sweep(weir_status_t* (*fn)(bool* out_is_same)) {
  int64_t successes = 0;
  for (int64_t n = 1; successes < 5; ++n) {
    bool is_same = false;
    weir_alloc_fail_at(n, false);
    weir_status_t* status = fn(&is_same);
    weir_alloc_fail_at(0, false);
    weir_code_t code = weir_status_code(status);
    if (code != WEIR_OK && code != WEIR_RESOURCE_EXHAUSTED)
      fail_msg("allocation %lld: %s", (long long)n, weir_status_message(status));
    if (code == WEIR_OK && !is_same) fail_msg("allocation %lld fails unsaid", (long long)n);
    weir_status_destroy(status);
    successes = code == WEIR_OK ? successes + 1 : 0;
  }
}

static weir_tensor_t* value;  // of all that is saved

static weir_status_t* write_bundle(void) {
  weir_bundle_writer_t* writer = NULL;
  weir_status_t* status = weir_bundle_writer_create(test_path("second"), 1, &writer);
  if (!status) status = weir_bundle_add(writer, weir_view_of("a tensor"), value);
  if (!status) status = weir_bundle_add(writer, weir_view_of("b"), value);
  if (!status) status = weir_bundle_finish(writer);
  weir_bundle_writer_destroy(writer);
  return status;
}

static weir_status_t* read_bundle(bool* out_is_same) {
  weir_bundle_t* bundle = NULL;
  weir_tensor_t *a = NULL, *b = NULL;
  weir_names_t names = {0};
  weir_status_t* status = weir_bundle_open(test_path("second"), &bundle);
  if (!status) status = weir_bundle_read(bundle, weir_view_of("a tensor"), &a);
  if (!status) status = weir_bundle_read(bundle, weir_view_of("b"), &b);
  if (!status) status = weir_bundle_list(bundle, &names);
  if (!status) *out_is_same = holds_texts(a) && holds_texts(b) && names.count == 2;
  weir_names_free(&names);
  weir_tensor_release(a);
  weir_tensor_release(b);
  weir_bundle_close(bundle);
  return status;
}

static weir_status_t* pass_bundle(bool* out_is_same) {
  WEIR_TRY(write_bundle());
  return read_bundle(out_is_same);
}

static weir_status_t* write_v1(void) {
  weir_v1_writer_t* writer = NULL;
  const int64_t two = 2;
  const weir_slice_t all = {.rank = 1, .lengths = {2}};
  weir_status_t* status = weir_v1_writer_create(test_path("first"), &writer);
  if (!status) status = weir_v1_writer_add(writer, weir_view_of("a"), &two, &all, value);
  if (!status) status = weir_v1_writer_add(writer, weir_view_of("b"), &two, &all, value);
  if (!status) status = weir_v1_writer_finish(writer);
  weir_v1_writer_destroy(writer);
  return status;
}

static weir_status_t* read_v1(bool* out_is_same) {
  weir_v1_reader_t* reader = NULL;
  weir_tensor_t* tensor = NULL;
  const weir_slice_t all = {.rank = 1, .lengths = {2}};
  weir_status_t* status = weir_v1_reader_open(test_path("first"), &reader);
  const weir_v1_tensor_t* b = status ? NULL : weir_v1_reader_find(reader, weir_view_of("b"));
  if (b) status = weir_v1_reader_read(reader, b, &all, &tensor);
  if (tensor) *out_is_same = holds_texts(tensor);
  weir_tensor_release(tensor);
  weir_v1_reader_close(reader);
  return status;
}

static weir_status_t* pass_v1(bool* out_is_same) {
  WEIR_TRY(write_v1());
  return read_v1(out_is_same);
}

static weir_status_t* pass_state(bool* out_is_same) {
  double timestamps[] = {1.5};
  char latest[] = "model-1";
  char* all[] = {latest};
  weir_checkpoint_state_t written = {
      .latest = latest, .timestamps = timestamps, .all = {.items = all, .count = 1}};
  weir_checkpoint_state_t back = {0};
  weir_strbuf_t prefix = {0};
  weir_status_t* status = weir_checkpoint_state_save(test_dir, &written);
  if (!status) status = weir_checkpoint_state_load(test_dir, &back);
  if (!status) status = weir_checkpoint_latest(test_dir, &prefix);
  if (!status) {
    *out_is_same = back.all.count == 1 && strcmp(back.all.items[0], latest) == 0 &&
                   back.timestamps && back.timestamps[0] == 1.5 && strstr(prefix.data, latest);
  }
  weir_checkpoint_state_free(&back);
  weir_strbuf_free(&prefix);
  return status;
}

// Every name of a folder, through a pattern.
static weir_status_t* pass_names(bool* out_is_same) {
  weir_names_t names = {0};
  weir_status_t* status = weir_fs_glob(test_path("[ab]"), &names);
  if (!status) *out_is_same = names.count == 2;
  weir_names_free(&names);
  return status;
}

static weir_status_t* pass_deflated(bool* out_is_same) {
  weir_strbuf_t packed = {0}, out = {0};
  const weir_view_t text = weir_view_of(kTexts[1]);
  weir_status_t* status = weir_deflate(WEIR_DEFLATE_ZLIB, 6, text, &packed);
  if (!status) status = weir_strbuf_finish(&packed);
  if (!status) status = weir_inflate(WEIR_DEFLATE_ZLIB, weir_strbuf_view(&packed), 1000, &out);
  if (!status) *out_is_same = weir_view_is(weir_strbuf_view(&out), kTexts[1]);
  weir_strbuf_free(&packed);
  weir_strbuf_free(&out);
  return status;
}

// Read from the end, then from the start again.
static weir_status_t* pass_inflated(bool* out_is_same) {
  weir_file_t* file = NULL;
  char bytes[5] = "";
  size_t got = 0;
  weir_status_t* status = weir_file_open_inflated(test_path("z"), WEIR_DEFLATE_ZLIB, &file);
  if (!status) status = weir_file_read(file, 40, bytes, 5, &got);
  if (!status) status = weir_file_read(file, 2, bytes, 5, &got);
  if (!status) *out_is_same = got == 5 && memcmp(bytes, kTexts[1] + 2, 5) == 0;
  if (file) weir_file_close(file);
  return status;
}

static void test_inflated_file(void** state) {
  (void)state;
  weir_strbuf_t packed = {0};
  CHECK_OK(weir_deflate(WEIR_DEFLATE_ZLIB, 6, weir_view_of(kTexts[1]), &packed));
  CHECK_OK(weir_fs_write_all(test_path("z"), weir_strbuf_view(&packed)));
  sweep(pass_inflated);
  weir_strbuf_free(&packed);
}

static void test_checkpoints(void** state) {
  (void)state;
  value = strings();
  sweep(pass_bundle);
  sweep(pass_v1);
  sweep(pass_state);
  weir_tensor_release(value);
}

static void test_names_and_streams(void** state) {
  (void)state;
  CHECK_OK(weir_fs_write_all(test_path("a"), weir_view_of("")));
  CHECK_OK(weir_fs_write_all(test_path("b"), weir_view_of("")));
  sweep(pass_names);
  sweep(pass_deflated);
}

int main(void) {
  const struct CMUnitTest tests[] = {FILE_TEST(test_checkpoints), FILE_TEST(test_names_and_streams),
                                     FILE_TEST(test_inflated_file)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

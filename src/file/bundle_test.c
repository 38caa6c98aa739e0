// bundle_test.c — Tests of checkpoints: what is written is read, and damage is found.
#include "file/bundle.h"

#include <sys/wait.h>

#include "file/testing.h"
#include "wire/wire.h"

static weir_tensor_t* floats(int rank, const int64_t* dims, float first) {
  weir_tensor_t* tensor = NULL;
  CHECK_OK(weir_tensor_create(WEIR_DTYPE_FLOAT, rank, dims, &tensor));
  for (int64_t i = 0; i < tensor->count; ++i) ((float*)tensor->data)[i] = first + (float)i;
  return tensor;
}

static weir_tensor_t* strings(void) {
  static const char* const kTexts[] = {"", "short",
                                       "a string that does not fit into twenty-four bytes"};
  weir_tensor_t* tensor = NULL;
  CHECK_OK(weir_tensor_create_strings(1, (const int64_t[]){3}, kTexts, NULL, &tensor));
  return tensor;
}

// Writes tensors "w" [2,3], "empty" [0,5], "scalar" [], "text" [3].
static void write_bundle(const char* prefix, size_t alignment) {
  weir_bundle_writer_t* writer = NULL;
  CHECK_OK(weir_bundle_writer_create(prefix, alignment, &writer));
  weir_tensor_t* w = floats(2, (const int64_t[]){2, 3}, 1);
  weir_tensor_t* empty = floats(2, (const int64_t[]){0, 5}, 0);
  weir_tensor_t* scalar = floats(0, NULL, 42);
  weir_tensor_t* text = strings();
  CHECK_OK(weir_bundle_add(writer, weir_view_of("text"), text));
  CHECK_OK(weir_bundle_add(writer, weir_view_of("w"), w));
  CHECK_OK(weir_bundle_add(writer, weir_view_of("scalar"), scalar));
  CHECK_OK(weir_bundle_add(writer, weir_view_of("empty"), empty));
  CHECK_FAILS(weir_bundle_add(writer, weir_view_of("w"), w), INVALID_ARGUMENT,
              "Adding duplicate key: w");
  CHECK_FAILS(weir_bundle_add(writer, weir_view("", 0), w), INVALID_ARGUMENT, "named");
  CHECK_OK(weir_bundle_finish(writer));
  CHECK_FAILS(weir_bundle_finish(writer), FAILED_PRECONDITION, "finished");
  CHECK_FAILS(weir_bundle_add(writer, weir_view_of("late"), w), FAILED_PRECONDITION, "finished");
  weir_bundle_writer_destroy(writer);
  weir_tensor_release(w);
  weir_tensor_release(empty);
  weir_tensor_release(scalar);
  weir_tensor_release(text);
}

static void expect_tensor(weir_bundle_t* bundle, const char* key, weir_tensor_t* take_expected) {
  weir_tensor_t* tensor = NULL;
  CHECK_OK(weir_bundle_read(bundle, weir_view_of(key), &tensor));
  assert_int_equal(tensor->dtype, take_expected->dtype);
  assert_true(weir_tensor_same_shape(tensor, take_expected));
  if (tensor->dtype == WEIR_DTYPE_STRING) {
    for (int64_t i = 0; i < tensor->count; ++i) {
      size_t size = 0, expected_size = 0;
      const char* text = weir_tensor_string(tensor, i, &size);
      const char* expected = weir_tensor_string(take_expected, i, &expected_size);
      assert_int_equal(size, expected_size);
      assert_memory_equal(text, expected, size);
    }
  } else if (tensor->count > 0) {
    assert_memory_equal(tensor->data, take_expected->data, weir_tensor_byte_size(tensor));
  }
  weir_tensor_release(tensor);
  weir_tensor_release(take_expected);
}

static void test_round_trip(void** state) {
  (void)state;
  for (size_t alignment = 1; alignment <= 4096; alignment *= 64) {
    weir_bundle_t* bundle = NULL;
    weir_names_t names = {0};
    weir_bundle_entry_t entry;
    write_bundle(test_path("ckpt"), alignment);
    CHECK_OK(weir_bundle_open(test_path("ckpt"), &bundle));
    expect_tensor(bundle, "w", floats(2, (const int64_t[]){2, 3}, 1));
    expect_tensor(bundle, "empty", floats(2, (const int64_t[]){0, 5}, 0));
    expect_tensor(bundle, "scalar", floats(0, NULL, 42));
    expect_tensor(bundle, "text", strings());
    CHECK_OK(weir_bundle_find(bundle, weir_view_of("w"), &entry));
    assert_true(entry.offset % alignment == 0 && entry.size == 24);
    CHECK_FAILS(weir_bundle_find(bundle, weir_view_of("v"), &entry), NOT_FOUND,
                "Key v not found in checkpoint");
    CHECK_FAILS(weir_bundle_find(bundle, weir_view("", 0), &entry), NOT_FOUND, "not found");
    CHECK_OK(weir_bundle_list(bundle, &names));
    assert_int_equal(names.count, 4);
    assert_string_equal(names.items[0], "empty");
    assert_string_equal(names.items[3], "w");
    weir_names_free(&names);
    weir_bundle_close(bundle);
  }
  weir_names_t left = {0};
  CHECK_OK(weir_fs_list(test_dir, &left));
  assert_int_equal(left.count, 2);  // index and data, nothing temporary
  weir_names_free(&left);
}

static void test_unfinished_leaves_nothing(void** state) {
  (void)state;
  weir_bundle_writer_t* writer = NULL;
  weir_bundle_t* bundle = NULL;
  weir_names_t names = {0};
  weir_tensor_t* w = floats(0, NULL, 1);
  CHECK_OK(weir_bundle_writer_create(test_path("ckpt"), 1, &writer));
  CHECK_OK(weir_bundle_add(writer, weir_view_of("w"), w));
  CHECK_FAILS(weir_bundle_open(test_path("ckpt"), &bundle), NOT_FOUND, "ckpt.index");
  weir_bundle_writer_destroy(writer);
  CHECK_OK(weir_fs_list(test_dir, &names));
  assert_int_equal(names.count, 0);
  weir_tensor_release(w);
}

// A name stands for one tensor, whole or in slices.
static void test_names_are_given_once(void** state) {
  (void)state;
  weir_bundle_writer_t* writer = NULL;
  weir_slice_t half = {.rank = 1, .starts = {0}, .lengths = {1}};
  weir_tensor_t* w = floats(1, (const int64_t[]){1}, 1);
  CHECK_OK(weir_bundle_writer_create(test_path("twice"), 1, &writer));
  CHECK_OK(weir_bundle_add(writer, weir_view_of("w"), w));
  CHECK_FAILS(weir_bundle_add(writer, weir_view_of("w"), w), INVALID_ARGUMENT, "duplicate key");
  CHECK_FAILS(weir_bundle_add_slice(writer, weir_view_of("w"), 1, (const int64_t[]){2}, &half, w),
              INVALID_ARGUMENT, "duplicate key: w");
  weir_bundle_writer_destroy(writer);
  weir_tensor_release(w);
}

// What is left of a save whose process was killed goes with the next save in that directory.
static void test_killed_leaves_nothing(void** state) {
  (void)state;
  int end = 0;
  weir_names_t names = {0};
  weir_bundle_writer_t* writer = NULL;
  weir_tensor_t* w = floats(0, NULL, 1);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    weir_status_t* status = weir_bundle_writer_create(test_path("killed"), 1, &writer);
    _exit(!status && !weir_bundle_add(writer, weir_view_of("w"), w) ? 0 : 1);
  }
  assert_int_equal(waitpid(child, &end, 0), child);
  assert_int_equal(end, 0);
  CHECK_OK(weir_fs_list(test_dir, &names));
  assert_int_equal(names.count, 1);
  weir_names_free(&names);
  names = (weir_names_t){0};
  CHECK_OK(weir_bundle_writer_create(test_path("whole"), 1, &writer));
  CHECK_OK(weir_bundle_add(writer, weir_view_of("w"), w));
  CHECK_OK(weir_bundle_finish(writer));
  weir_bundle_writer_destroy(writer);
  CHECK_OK(weir_fs_list(test_dir, &names));
  assert_int_equal(names.count, 2);
  weir_names_free(&names);
  weir_tensor_release(w);
}

static void test_slices(void** state) {
  (void)state;
  weir_bundle_writer_t* writer = NULL;
  weir_bundle_t* bundle = NULL;
  weir_tensor_t* box = NULL;
  const int64_t dims[] = {4, 3};
  weir_slice_t top = {.rank = 2, .starts = {0, 0}, .lengths = {1, -1}};
  weir_slice_t bottom = {.rank = 2, .starts = {1, 0}, .lengths = {3, -1}};
  weir_slice_t middle = {.rank = 2, .starts = {0, 1}, .lengths = {3, 2}};
  weir_tensor_t* a = floats(2, (const int64_t[]){1, 3}, 0);
  weir_tensor_t* b = floats(2, (const int64_t[]){3, 3}, 3);
  CHECK_OK(weir_bundle_writer_create(test_path("ckpt"), 1, &writer));
  CHECK_OK(weir_bundle_add_slice(writer, weir_view_of("p"), 2, dims, &top, a));
  CHECK_FAILS(weir_bundle_add_slice(writer, weir_view_of("p"), 2, dims, &top, a), INVALID_ARGUMENT,
              "duplicate");
  CHECK_FAILS(weir_bundle_add_slice(writer, weir_view_of("p"), 2, dims, &bottom, a),
              INVALID_ARGUMENT, "shape");
  CHECK_OK(weir_bundle_add_slice(writer, weir_view_of("p"), 2, dims, &bottom, b));
  CHECK_OK(weir_bundle_add_slice(writer, weir_view_of("half"), 2, dims, &bottom, b));
  CHECK_OK(weir_bundle_finish(writer));
  weir_bundle_writer_destroy(writer);
  CHECK_OK(weir_bundle_open(test_path("ckpt"), &bundle));
  expect_tensor(bundle, "p", floats(2, dims, 0));
  CHECK_OK(weir_bundle_read_slice(bundle, weir_view_of("p"), &middle, &box));
  const float expected[] = {1, 2, 4, 5, 7, 8};
  assert_memory_equal(box->data, expected, sizeof expected);
  weir_tensor_release(box);
  CHECK_FAILS(weir_bundle_read(bundle, weir_view_of("half"), &box), INVALID_ARGUMENT,
              "Does not have sufficient slices for partitioned tensor half");
  CHECK_OK(weir_bundle_read_slice(bundle, weir_view_of("half"), &bottom, &box));
  weir_tensor_release(box);
  weir_bundle_close(bundle);
  weir_strbuf_t bytes = {0};  // a part that is damaged is no part that is missing
  CHECK_OK(weir_fs_read_all(test_path("ckpt.data-00000-of-00001"), &bytes));
  bytes.data[0] ^= 0x22;
  CHECK_OK(weir_fs_write_all(test_path("ckpt.data-00000-of-00001"), weir_strbuf_view(&bytes)));
  weir_strbuf_free(&bytes);
  CHECK_OK(weir_bundle_open(test_path("ckpt"), &bundle));
  CHECK_FAILS(weir_bundle_read(bundle, weir_view_of("p"), &box), DATA_LOSS, "");
  weir_bundle_close(bundle);
  weir_tensor_release(a);
  weir_tensor_release(b);
}

static weir_status_t* read_everything(const char* prefix) {
  weir_bundle_t* bundle = NULL;
  weir_names_t names = {0};
  WEIR_TRY(weir_bundle_open(prefix, &bundle));
  weir_status_t* status = weir_bundle_list(bundle, &names);
  for (size_t i = 0; i < names.count && !status; ++i) {
    weir_tensor_t* tensor = NULL;
    status = weir_bundle_read(bundle, weir_view_of(names.items[i]), &tensor);
    weir_tensor_release(tensor);
  }
  weir_names_free(&names);
  weir_bundle_close(bundle);
  return status;
}

// An index whose tensor "p" [2] lists a slice of |slice|'s bytes, beside one that is all of it.
static weir_status_t* read_with_slice(weir_view_t slice) {
  const int64_t dims[] = {2};
  weir_slice_t all = {.rank = 1, .starts = {0}, .lengths = {2}};
  weir_bundle_entry_t stored, full = {.dtype = WEIR_DTYPE_FLOAT, .rank = 1, .dims = {2}};
  weir_strbuf_t key = {0}, part = {0}, whole = {0};
  weir_bundle_writer_t* writer = NULL;
  weir_bundle_t* bundle = NULL;
  weir_tensor_t* values = floats(1, dims, 1);
  CHECK_OK(weir_bundle_writer_create(test_path("ckpt"), 1, &writer));
  weir_slice_append_key(weir_view_of("p"), &all, &key);
  CHECK_OK(weir_bundle_add(writer, weir_strbuf_view(&key), values));
  CHECK_OK(weir_bundle_finish(writer));
  weir_bundle_writer_destroy(writer);
  CHECK_OK(weir_bundle_open(test_path("ckpt"), &bundle));
  CHECK_OK(weir_bundle_find(bundle, weir_strbuf_view(&key), &stored));
  weir_strbuf_append(&part, stored.proto.data, stored.proto.size);
  weir_bundle_close(bundle);
  weir_bundle_write_entry(&full, &whole);
  size_t begin = weir_wire_begin(&whole, 7);
  weir_slice_write(&all, &whole);
  weir_wire_end(&whole, begin);
  weir_wire_put_bytes(&whole, 7, slice.data, slice.size);
  weir_bundle_row_t rows[] = {{weir_view_of("p"), weir_strbuf_view(&whole)},
                              {weir_strbuf_view(&key), weir_strbuf_view(&part)}};
  CHECK_OK(weir_bundle_write_index(test_path("ckpt"), 1, rows, 2));
  weir_strbuf_free(&key);
  weir_strbuf_free(&part);
  weir_strbuf_free(&whole);
  weir_tensor_release(values);
  return read_everything(test_path("ckpt"));
}

// A slice that cannot be read, or lies outside of its tensor, is no slice that is not needed.
static void test_bad_slices(void** state) {
  (void)state;
  CHECK_OK(read_with_slice(weir_view("\x0a\x04\x08\x02\x10\x00", 6)));  // none, at the end
  CHECK_FAILS(read_with_slice(weir_view("\x0a\x05\x08", 3)), INVALID_ARGUMENT,
              "malformed TensorSliceProto");
  CHECK_FAILS(read_with_slice(weir_view("\x0a\x04\x08\x02\x10\x00\x0a\x02", 8)), INVALID_ARGUMENT,
              "malformed TensorSliceProto");
  CHECK_FAILS(read_with_slice(weir_view("\x0a\x01\x08", 3)), INVALID_ARGUMENT,
              "malformed TensorSliceProto.Extent");
  CHECK_FAILS(read_with_slice(weir_view("\x0a\x02\x08\x01", 4)), INVALID_ARGUMENT,
              "bad extent of a slice: start 1, length -1");
  CHECK_FAILS(read_with_slice(weir_view("\x0a\x04\x08\x01\x10\x02", 6)), INTERNAL,
              "Extent in dimension 0 out of bounds");
  CHECK_FAILS(read_with_slice(weir_view("\x0a\x00\x0a\x00", 4)), INTERNAL, "Mismatching ranks");
}

// Every damaged byte of the data and every cut is found.
static void test_damaged_data(void** state) {
  (void)state;
  weir_strbuf_t bytes = {0};
  write_bundle(test_path("ckpt"), 1);
  CHECK_OK(weir_fs_read_all(test_path("ckpt.data-00000-of-00001"), &bytes));
  for (size_t i = 0; i < bytes.size; ++i) {
    bytes.data[i] ^= 0x22;
    CHECK_OK(weir_fs_write_all(test_path("ckpt.data-00000-of-00001"), weir_strbuf_view(&bytes)));
    CHECK_FAILS(read_everything(test_path("ckpt")), DATA_LOSS, "key ");
    bytes.data[i] ^= 0x22;
  }
  for (size_t cut = 0; cut < bytes.size; cut += 5) {
    CHECK_OK(weir_fs_write_all(test_path("ckpt.data-00000-of-00001"), weir_view(bytes.data, cut)));
    CHECK_FAILS(read_everything(test_path("ckpt")), DATA_LOSS, "ends early");
  }
  CHECK_OK(weir_fs_remove(test_path("ckpt.data-00000-of-00001")));
  CHECK_FAILS(read_everything(test_path("ckpt")), NOT_FOUND, "ckpt.data-00000-of-00001");
  weir_strbuf_free(&bytes);
}

// Headers as machines and versions of other kinds would write them.
static weir_status_t* parse_header(int64_t shards, int64_t endianness, int64_t min_consumer) {
  weir_strbuf_t header = {0};
  int count = 0;
  weir_wire_put_int(&header, 1, shards);
  weir_wire_put_int(&header, 2, endianness);
  size_t version = weir_wire_begin(&header, 3);
  weir_wire_put_int(&header, 2, min_consumer);
  weir_wire_end(&header, version);
  weir_status_t* status = weir_bundle_parse_header(weir_strbuf_view(&header), &count);
  if (!status) assert_int_equal(count, shards);
  weir_strbuf_free(&header);
  return status;
}

static void test_headers(void** state) {
  (void)state;
  CHECK_OK(parse_header(0, 0, 0));
  CHECK_OK(parse_header(INT32_MAX, 0, 1));
  CHECK_FAILS(parse_header(1, 1, 0), UNIMPLEMENTED, "big-endian");
  CHECK_FAILS(parse_header(1, 0, 2), UNIMPLEMENTED, "needs a reader of version 2");
  CHECK_FAILS(parse_header(-1, 0, 0), DATA_LOSS, "claims -1 shards");
  CHECK_FAILS(parse_header(INT64_C(1) << 31, 0, 0), DATA_LOSS, "claims 2147483648 shards");
}

static weir_status_t* parse_place(int64_t shard, int64_t offset, int64_t size) {
  weir_strbuf_t proto = {0};
  weir_bundle_entry_t entry;
  weir_wire_put_int(&proto, 1, WEIR_DTYPE_FLOAT);
  weir_wire_put_int(&proto, 3, shard);
  weir_wire_put_int(&proto, 4, offset);
  weir_wire_put_int(&proto, 5, size);
  weir_status_t* status = weir_bundle_parse_entry(weir_strbuf_view(&proto), &entry);
  weir_strbuf_free(&proto);
  return status;
}

static void test_places(void** state) {
  (void)state;
  CHECK_OK(parse_place(INT32_MAX, INT64_MAX - 4, 4));
  CHECK_FAILS(parse_place(-1, 0, 4), DATA_LOSS, "bad place: shard -1");
  CHECK_FAILS(parse_place(INT64_C(1) << 31, 0, 4), DATA_LOSS, "bad place: shard 2147483648");
  CHECK_FAILS(parse_place(0, -1, 4), DATA_LOSS, "offset -1");
  CHECK_FAILS(parse_place(0, 0, -1), DATA_LOSS, "size -1");
  CHECK_FAILS(parse_place(0, INT64_MAX - 3, 4), DATA_LOSS, "size 4");
}

static void write_part(const char* prefix, const char* key, float first) {
  weir_bundle_writer_t* writer = NULL;
  const int64_t dims[] = {2, 2};
  weir_slice_t slice = {.rank = 2, .starts = {(int64_t)first, 0}, .lengths = {1, -1}};
  weir_tensor_t* part = floats(2, (const int64_t[]){1, 2}, 2 * first);
  CHECK_OK(weir_bundle_writer_create(prefix, 1, &writer));
  CHECK_OK(weir_bundle_add(writer, weir_view_of(key), part));
  CHECK_OK(weir_bundle_add_slice(writer, weir_view_of("shared"), 2, dims, &slice, part));
  CHECK_OK(weir_bundle_finish(writer));
  weir_bundle_writer_destroy(writer);
  weir_tensor_release(part);
}

static void test_merge(void** state) {
  (void)state;
  weir_bundle_t* bundle = NULL;
  char a[512], b[512], out[512];
  snprintf(a, sizeof a, "%s", test_path("part0"));
  snprintf(b, sizeof b, "%s", test_path("part1"));
  snprintf(out, sizeof out, "%s", test_path("new/all"));
  write_part(a, "x", 0);
  write_part(b, "y", 1);
  const char* const missing[] = {a, "nowhere"};
  const char* const nothing[] = {"nowhere"};
  CHECK_FAILS(weir_bundle_merge(missing, 2, out, false), INVALID_ARGUMENT,
              "allow_missing_files was set to false and nowhere did not exist");
  CHECK_FAILS(weir_bundle_merge(nothing, 1, out, true), INVALID_ARGUMENT, "At least one");
  const char* const parts[] = {a, b};
  CHECK_OK(weir_bundle_merge(parts, 2, out, false));
  CHECK_OK(weir_bundle_open(out, &bundle));
  expect_tensor(bundle, "x", floats(2, (const int64_t[]){1, 2}, 0));
  expect_tensor(bundle, "y", floats(2, (const int64_t[]){1, 2}, 2));
  expect_tensor(bundle, "shared", floats(2, (const int64_t[]){2, 2}, 0));
  weir_bundle_close(bundle);
  assert_true(weir_fs_exists(test_path("new/all.data-00001-of-00002")));
  assert_false(weir_fs_exists(test_path("part0.index")));
  write_part(a, "x", 0);
  CHECK_OK(weir_bundle_merge(parts, 1, a, false));  // into itself
  CHECK_OK(weir_bundle_open(a, &bundle));
  expect_tensor(bundle, "x", floats(2, (const int64_t[]){1, 2}, 0));
  weir_bundle_close(bundle);
  write_part(b, "x", 1);
  CHECK_FAILS(weir_bundle_merge(parts, 2, out, false), INVALID_ARGUMENT, "Tensor x");
}

// Whatever allocation fails, the writer and reader report it and leave nothing behind.
static void test_out_of_memory(void** state) {
  (void)state;
  weir_tensor_t* text = strings();
  bool is_done = false;
  for (int64_t n = 1; !is_done; ++n) {
    weir_bundle_writer_t* writer = NULL;
    weir_alloc_fail_at(n, false);
    weir_status_t* status = weir_bundle_writer_create(test_path("ckpt"), 1, &writer);
    if (!status) status = weir_bundle_add(writer, weir_view_of("text"), text);
    if (!status) status = weir_bundle_finish(writer);
    weir_bundle_writer_destroy(writer);
    if (!status) status = read_everything(test_path("ckpt"));
    weir_alloc_fail_at(0, false);
    is_done = status == NULL;
    if (status) assert_int_equal(weir_status_code(status), WEIR_RESOURCE_EXHAUSTED);
    weir_status_destroy(status);
    assert_true(n < 1000);
  }
  weir_tensor_release(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      FILE_TEST(test_round_trip),
      FILE_TEST(test_unfinished_leaves_nothing),
      FILE_TEST(test_names_are_given_once),
      FILE_TEST(test_killed_leaves_nothing),
      FILE_TEST(test_slices),
      FILE_TEST(test_bad_slices),
      FILE_TEST(test_damaged_data),
      FILE_TEST(test_headers),
      FILE_TEST(test_places),
      FILE_TEST(test_merge),
      FILE_TEST(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

// npz_test.c — Tests of .npz files; tests/formats_test.py compares with NumPy itself.
#include "file/npz.h"

#include "file/coding.h"
#include "file/testing.h"
#include "file/zip.h"
#include "tensor/tensor.h"

static weir_tensor_t* numbers(int count) {
  weir_tensor_t* tensor = NULL;
  CHECK_OK(weir_tensor_create(WEIR_DTYPE_INT32, 1, (const int64_t[]){count}, &tensor));
  for (int i = 0; i < count; ++i) WEIR_TENSOR_DATA(tensor, int32_t)[i] = i / 8;
  return tensor;
}

// The bytes of an archive of the arrays "a" and "deep/b".
static void make(bool is_compressed, weir_strbuf_t* out) {
  weir_tensor_t* tensors[] = {numbers(100), numbers(3)};
  const char* names[] = {"a", "deep/b"};
  const char* path = test_path("made.npz");
  CHECK_OK(weir_npz_save(path, names, tensors, 2, is_compressed));
  CHECK_OK(weir_fs_read_all(path, out));
  weir_tensor_release(tensors[0]);
  weir_tensor_release(tensors[1]);
}

static weir_status_t* open_bytes(weir_view_t bytes, weir_npz_t** out_npz) {
  weir_file_t* file = NULL;
  CHECK_OK(weir_file_from_view(bytes, "test.npz", &file));
  return weir_npz_from_file(file, NULL, out_npz);
}

static void test_round_trip(void** state) {
  (void)state;
  for (int is_compressed = 0; is_compressed < 2; ++is_compressed) {
    weir_strbuf_t bytes = {0};
    weir_npz_t* npz = NULL;
    weir_tensor_t* tensor = NULL;
    make(is_compressed, &bytes);
    CHECK_OK(open_bytes(weir_strbuf_view(&bytes), &npz));
    assert_int_equal(weir_npz_count(npz), 2);
    assert_string_equal(weir_npz_name(npz, 1), "deep/b");
    assert_null(weir_npz_name(npz, 2));
    CHECK_OK(weir_npz_read(npz, "a", &tensor));
    assert_int_equal(tensor->count, 100);
    assert_int_equal(WEIR_TENSOR_DATA(tensor, int32_t)[99], 12);
    weir_tensor_release(tensor);
    CHECK_FAILS(weir_npz_read(npz, "c", &tensor), NOT_FOUND, "no array 'c'");
    weir_npz_close(npz);
    weir_strbuf_free(&bytes);
  }
}

// Every byte of an archive may be another: nothing crashes, and no array is read wrong.
static void test_any_byte(void** state) {
  (void)state;
  weir_strbuf_t bytes = {0};
  make(true, &bytes);
  for (size_t i = 0; i < bytes.size; ++i) {
    weir_npz_t* npz = NULL;
    weir_tensor_t* tensor = NULL;
    bytes.data[i] = (char)(bytes.data[i] ^ 0x41);
    weir_status_destroy(open_bytes(weir_strbuf_view(&bytes), &npz));
    weir_status_t* status = npz ? weir_npz_read(npz, "a", &tensor) : NULL;
    if (tensor) assert_int_equal(WEIR_TENSOR_DATA(tensor, int32_t)[99], 12);
    weir_status_destroy(status);
    weir_tensor_release(tensor);
    weir_npz_close(npz);
    bytes.data[i] = (char)(bytes.data[i] ^ 0x41);
  }
  for (size_t size = 0; size < bytes.size; ++size) {
    weir_npz_t* npz = NULL;
    CHECK_FAILS(open_bytes(weir_view(bytes.data, size), &npz), INVALID_ARGUMENT, "zip archive");
  }
  weir_strbuf_free(&bytes);
}

// Where the entry of |name| is in the directory of |bytes|, or its header before the member.
static char* find_header(weir_strbuf_t* bytes, uint32_t mark, size_t name_at, const char* name) {
  for (size_t i = 0; i + name_at + strlen(name) <= bytes->size; ++i) {
    char* p = bytes->data + i;
    if (weir_decode32(p) == mark && memcmp(p + name_at, name, strlen(name)) == 0) return p;
  }
  return NULL;
}
#define ENTRY(bytes, name) find_header(bytes, 0x02014b50, 46, name)
#define LOCAL(bytes, name) find_header(bytes, 0x04034b50, 30, name)

// Opens the archive after |change|, which must be refused.
static void check_refused(void (*change)(weir_strbuf_t*), bool is_compressed, weir_code_t code,
                          const char* text) {
  weir_strbuf_t bytes = {0};
  weir_npz_t* npz = NULL;
  weir_tensor_t* tensor = NULL;
  make(is_compressed, &bytes);
  change(&bytes);
  weir_status_t* status = open_bytes(weir_strbuf_view(&bytes), &npz);
  if (!status) status = weir_npz_read(npz, "a", &tensor);
  check_status(status, code, text, text, __FILE__, __LINE__);
  assert_null(tensor);
  weir_npz_close(npz);
  weir_strbuf_free(&bytes);
}

static void escape(weir_strbuf_t* bytes) {
  memcpy(ENTRY(bytes, "deep/b.npy") + 46, "../../b.np", 10);
}
static void start_at_root(weir_strbuf_t* bytes) { ENTRY(bytes, "deep/b.npy")[46] = '/'; }
static void overlap(weir_strbuf_t* bytes) {
  char* a = ENTRY(bytes, "a.npy");
  weir_encode32(a + 20, weir_decode32(a + 20) + 100);
  weir_encode32(a + 24, weir_decode32(a + 24) + 100);
}
static void share(weir_strbuf_t* bytes) {
  weir_encode32(ENTRY(bytes, "deep/b.npy") + 42, weir_decode32(ENTRY(bytes, "a.npy") + 42));
}
static void spoil(weir_strbuf_t* bytes) { LOCAL(bytes, "a.npy")[200] ^= 1; }
static void inflate_more(weir_strbuf_t* bytes) { weir_encode32(ENTRY(bytes, "a.npy") + 24, 500); }
static void inflate_less(weir_strbuf_t* bytes) { weir_encode32(ENTRY(bytes, "a.npy") + 24, 5000); }
static void bomb(weir_strbuf_t* bytes) {
  weir_encode32(ENTRY(bytes, "a.npy") + 24, UINT32_MAX - 1);
}
static void encrypt(weir_strbuf_t* bytes) { ENTRY(bytes, "a.npy")[8] |= 1; }
static void pack_otherwise(weir_strbuf_t* bytes) { ENTRY(bytes, "a.npy")[10] = 12; }

static void test_hostile_archives(void** state) {
  (void)state;
  check_refused(escape, false, WEIR_INVALID_ARGUMENT, "leaves the archive's folder");
  check_refused(start_at_root, false, WEIR_INVALID_ARGUMENT, "leaves the archive's folder");
  check_refused(overlap, false, WEIR_DATA_LOSS, "overlaps");
  check_refused(share, false, WEIR_DATA_LOSS, "");
  check_refused(spoil, false, WEIR_DATA_LOSS, "CRC-32");
  check_refused(inflate_more, true, WEIR_DATA_LOSS, "larger than its entry says");
  check_refused(inflate_less, true, WEIR_DATA_LOSS, "smaller than its entry says");
  check_refused(bomb, true, WEIR_DATA_LOSS, "smaller than its entry says");
  check_refused(encrypt, true, WEIR_UNIMPLEMENTED, "encrypted");
  check_refused(pack_otherwise, true, WEIR_UNIMPLEMENTED, "method 12");
}

static void test_limit(void** state) {
  (void)state;
  weir_tensor_t* tensor = numbers(1 << 20);
  weir_npz_t* npz = NULL;
  const char* name = "x";
  const weir_npz_options_t options = {.limit = 1 << 20};
  CHECK_OK(weir_npz_save(test_path("x.npz"), &name, &tensor, 1, true));
  weir_tensor_release(tensor);
  CHECK_OK(weir_npz_open(test_path("x.npz"), &options, &npz));
  CHECK_FAILS(weir_npz_read(npz, "x", &tensor), RESOURCE_EXHAUSTED, "more than 1048576");
  weir_npz_close(npz);
}

static void test_names(void** state) {
  (void)state;
  weir_tensor_t* tensors[] = {numbers(1), numbers(1)};
  const char* twice[] = {"a", "a"};
  const char* outside[] = {"../a", "b"};
  CHECK_FAILS(weir_npz_save(test_path("t.npz"), twice, tensors, 2, false), INVALID_ARGUMENT,
              "'a' is given twice");
  CHECK_FAILS(weir_npz_save(test_path("t.npz"), outside, tensors, 2, false), INVALID_ARGUMENT,
              "cannot be the name");
  assert_false(weir_fs_exists(test_path("t.npz")));
  weir_names_t left = {0};
  CHECK_OK(weir_fs_list(test_dir, &left));
  assert_int_equal(left.count, 0);  // no temporary file either
  weir_names_free(&left);
  weir_tensor_release(tensors[0]);
  weir_tensor_release(tensors[1]);
}

static void test_out_of_memory(void** state) {
  (void)state;
  weir_strbuf_t bytes = {0};
  make(true, &bytes);
  for (int64_t n = 1;; ++n) {
    weir_file_t* file = NULL;
    weir_npz_t* npz = NULL;
    weir_tensor_t* tensor = NULL;
    CHECK_OK(weir_file_from_view(weir_strbuf_view(&bytes), "test.npz", &file));
    weir_alloc_fail_at(n, false);
    weir_status_t* status = weir_npz_from_file(file, NULL, &npz);
    if (!status) status = weir_npz_read(npz, "a", &tensor);
    weir_alloc_fail_at(0, false);
    weir_tensor_release(tensor);
    weir_npz_close(npz);
    if (!status) break;
    assert_int_equal(weir_status_code(status), WEIR_RESOURCE_EXHAUSTED);
    weir_status_destroy(status);
  }
  weir_strbuf_free(&bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      FILE_TEST(test_round_trip), FILE_TEST(test_any_byte), FILE_TEST(test_hostile_archives),
      FILE_TEST(test_limit),      FILE_TEST(test_names),    FILE_TEST(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

// serving_fuzz.c — Fuzz target: any bytes as a value of a request, read as a tensor of each type;
// what is read is written and read again, to the same tensor.
#include "base/alloc.h"
#include "serving/json_tensor.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

static weir_status_t* read_tensor(weir_view_t text, weir_dtype_t dtype, weir_tensor_t** out) {
  weir_arena_t arena = {0};
  weir_scan_t scan = weir_scan(text, &arena);
  weir_tensor_maker_t maker;
  weir_tensor_maker_init(&maker, dtype, "x");
  weir_status_t* status = weir_tensor_maker_read(&maker, &scan, 0);
  if (!status) status = weir_scan_end(&scan);
  if (!status) status = weir_tensor_maker_finish(&maker, -1, NULL, out);
  weir_tensor_maker_free(&maker);
  weir_arena_free(&arena);
  return status;
}

static bool is_same(const weir_tensor_t* a, const weir_tensor_t* b) {
  if (!weir_tensor_same_shape(a, b)) return false;
  if (a->dtype != WEIR_DTYPE_STRING)
    return a->count == 0 || memcmp(a->data, b->data, weir_tensor_byte_size(a)) == 0;
  for (int64_t i = 0; i < a->count; ++i) {
    weir_view_t left = weir_string_view(WEIR_TENSOR_DATA(a, weir_string_t) + i);
    if (!weir_view_equal(left, weir_string_view(WEIR_TENSOR_DATA(b, weir_string_t) + i)))
      return false;
  }
  return true;
}

static void check(weir_view_t text, weir_dtype_t dtype) {
  weir_tensor_t *first = NULL, *second = NULL;
  weir_strbuf_t out = {0};
  weir_status_t* status = read_tensor(text, dtype, &first);
  if (!status) {
    status = weir_json_put_tensor(first, false, &out);
    WEIR_CHECK(!status);
    // An empty array hides what is deeper than it.
    if (first->count > 0) {
      status = read_tensor(weir_strbuf_view(&out), dtype, &second);
      WEIR_CHECK(!status && is_same(first, second));
    }
  }
  weir_status_destroy(status);
  weir_tensor_release(first);
  weir_tensor_release(second);
  weir_strbuf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const weir_dtype_t dtypes[] = {WEIR_DTYPE_FLOAT, WEIR_DTYPE_DOUBLE, WEIR_DTYPE_HALF,
                                        WEIR_DTYPE_INT8,  WEIR_DTYPE_INT64,  WEIR_DTYPE_UINT64,
                                        WEIR_DTYPE_BOOL,  WEIR_DTYPE_STRING};
  if (size == 0) return 0;
  weir_view_t text = weir_view(data + 1, size - 1);
  check(text, dtypes[data[0] % WEIR_COUNT_OF(dtypes)]);
  return 0;
}

// json_tensor.c — Tensors out of JSON: elements go where they stay, as they are read.
#include "serving/json_tensor.h"

#include "base/alloc.h"
#include "base/base64.h"
#include "tensor/numeric.h"

void weir_tensor_maker_init(weir_tensor_maker_t* maker, weir_dtype_t dtype, const char* name) {
  *maker = (weir_tensor_maker_t){.dtype = dtype, .name = name};
  for (size_t i = 0; i < WEIR_COUNT_OF(maker->dims); ++i) maker->dims[i] = -1;
}

void weir_tensor_maker_free(weir_tensor_maker_t* maker) { weir_strbuf_free(&maker->data); }

// ---- bytes ----

bool weir_scan_is_b64(weir_scan_t* scan) {
  weir_scan_t ahead = *scan;
  weir_view_t key = {0};
  if (weir_scan_peek(&ahead) != '{') return false;
  ++ahead.at;
  if (weir_scan_peek(&ahead) != '"') return false;
  weir_status_t* status = weir_scan_key(&ahead, &key);
  bool is_b64 = !status && weir_view_is(key, "b64");
  weir_status_destroy(status);
  return is_b64;
}

static weir_status_t* scan_b64(weir_scan_t* scan, weir_view_t* out_bytes) {
  bool is_first = true, has_more = false;
  weir_view_t key, text;
  weir_strbuf_t bytes = {0};
  WEIR_TRY(weir_scan_open(scan, '{'));
  WEIR_TRY(weir_scan_more(scan, '{', &is_first, &has_more));
  WEIR_TRY(weir_scan_key(scan, &key));
  WEIR_TRY(weir_scan_string(scan, &text));
  WEIR_TRY(weir_scan_more(scan, '{', &is_first, &has_more));
  if (has_more) return weir_scan_error(scan, "'}' behind the value of \"b64\"");
  bool is_good = weir_base64_read(text, &bytes);
  char* copy = weir_arena_alloc(scan->arena, bytes.size + 1);
  if (copy && bytes.size > 0) memcpy(copy, bytes.data, bytes.size);
  *out_bytes = weir_view(copy, bytes.size);
  bool is_full = bytes.failed || !copy;
  weir_strbuf_free(&bytes);
  if (is_full) return weir_out_of_memory();
  return is_good ? NULL : weir_scan_error(scan, "valid base64 before this");
}

weir_status_t* weir_scan_bytes(weir_scan_t* scan, weir_view_t* out_bytes) {
  return weir_scan_is_b64(scan) ? scan_b64(scan, out_bytes) : weir_scan_string(scan, out_bytes);
}

// ---- elements ----

static weir_status_t* wrong_type(const weir_tensor_maker_t* maker, const weir_scan_t* at) {
  weir_scan_t scan = *at;
  weir_view_t text = {0};
  weir_status_t* status = weir_scan_skip(&scan, &text);
  if (status) return status;
  return WEIR_STATUS(INVALID_ARGUMENT, "input '%s': JSON value %.*s%s is not of expected type: %s",
                     maker->name, (int)WEIR_MIN(text.size, (size_t)60), text.data,
                     text.size > 60 ? "…" : "", weir_dtype_name(maker->dtype));
}

// Whole numbers of the type's range; the caller has checked that it is one of these.
static bool fits_integer(weir_dtype_t dtype, const weir_json_number_t* number) {
  if (dtype == WEIR_DTYPE_UINT64) return number->is_natural;
  if (dtype == WEIR_DTYPE_INT64) return number->is_integer;
  int bits = 8 * (int)weir_dtype_size(dtype);
  bool is_unsigned =
      dtype == WEIR_DTYPE_UINT8 || dtype == WEIR_DTYPE_UINT16 || dtype == WEIR_DTYPE_UINT32;
  int64_t top = INT64_C(1) << (is_unsigned ? bits : bits - 1);
  return number->is_integer && number->integer < top && number->integer >= (is_unsigned ? 0 : -top);
}

static bool is_integer_type(weir_dtype_t dtype) {
  switch (dtype) {
    case WEIR_DTYPE_INT8:
    case WEIR_DTYPE_INT16:
    case WEIR_DTYPE_INT32:
    case WEIR_DTYPE_INT64:
    case WEIR_DTYPE_UINT8:
    case WEIR_DTYPE_UINT16:
    case WEIR_DTYPE_UINT32:
    case WEIR_DTYPE_UINT64: return true;
    default: return false;
  }
}

// The element's bytes; little-endian machines only need the low ones of an integer.
static bool encode_number(weir_dtype_t dtype, const weir_json_number_t* number, char out[8]) {
  float narrow = (float)number->value;
  weir_half_t half = weir_half_from_float(narrow);
  weir_bfloat16_t brain = weir_bfloat16_from_float(narrow);
  switch (dtype) {
    case WEIR_DTYPE_FLOAT: memcpy(out, &narrow, sizeof(narrow)); return true;
    case WEIR_DTYPE_DOUBLE: memcpy(out, &number->value, sizeof(number->value)); return true;
    case WEIR_DTYPE_HALF: memcpy(out, &half, sizeof(half)); return true;
    case WEIR_DTYPE_BFLOAT16: memcpy(out, &brain, sizeof(brain)); return true;
    default: break;
  }
  uint64_t bits = number->is_integer ? (uint64_t)number->integer : number->natural;
  memcpy(out, &bits, sizeof(bits));
  return is_integer_type(dtype) && fits_integer(dtype, number);
}

static weir_status_t* read_number(weir_tensor_maker_t* maker, weir_scan_t* scan) {
  weir_scan_t before = *scan;
  weir_json_number_t number;
  char bytes[8];
  WEIR_TRY(weir_scan_number(scan, &number));
  if (maker->dtype == WEIR_DTYPE_FLOAT) {  // by far the most
    float value = (float)number.value;
    weir_strbuf_append(&maker->data, &value, sizeof(value));
  } else if (encode_number(maker->dtype, &number, bytes)) {
    weir_strbuf_append(&maker->data, bytes, weir_dtype_size(maker->dtype));
  } else {
    return wrong_type(maker, &before);
  }
  return NULL;
}

static weir_status_t* read_element(weir_tensor_maker_t* maker, weir_scan_t* scan) {
  int c = weir_scan_peek(scan);
  weir_view_t bytes = {0};
  bool flag = false;
  ++maker->count;
  if (maker->dtype == WEIR_DTYPE_STRING) {
    if (c != '"' && !weir_scan_is_b64(scan)) return wrong_type(maker, scan);
    WEIR_TRY(weir_scan_bytes(scan, &bytes));
    weir_strbuf_append(&maker->data, &bytes, sizeof(bytes));
  } else if (maker->dtype == WEIR_DTYPE_BOOL) {
    if (c != 't' && c != 'f') return wrong_type(maker, scan);
    WEIR_TRY(weir_scan_bool(scan, &flag));
    weir_strbuf_append(&maker->data, &flag, sizeof(flag));
  } else if (c == '-' || (c >= '0' && c <= '9') || c == 'N' || c == 'I') {
    return read_number(maker, scan);
  } else {
    return wrong_type(maker, scan);
  }
  return NULL;
}

// ---- arrays ----

static weir_status_t* not_rectangular(const weir_tensor_maker_t* maker) {
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "input '%s': arrays do not make a tensor: they differ in length or depth",
                     maker->name);
}

static weir_status_t* note_rank(weir_tensor_maker_t* maker, int rank) {
  if (maker->has_rank && maker->rank != rank) return not_rectangular(maker);
  maker->has_rank = true;
  maker->rank = rank;
  return NULL;
}

weir_status_t* weir_tensor_maker_close(weir_tensor_maker_t* maker, int depth, int64_t count) {
  if (maker->dims[depth] >= 0 && maker->dims[depth] != count) return not_rectangular(maker);
  maker->dims[depth] = count;
  // An empty array tells nothing of what is deeper.
  return count == 0 && !maker->has_rank ? note_rank(maker, depth + 1) : NULL;
}

weir_status_t* weir_tensor_maker_read(weir_tensor_maker_t* maker, weir_scan_t* scan, int depth) {
  bool is_first = true, has_more = false;
  int64_t count = 0;
  if (weir_scan_peek(scan) != '[') {
    WEIR_TRY(note_rank(maker, depth));
    return read_element(maker, scan);
  }
  WEIR_TRY(weir_scan_open(scan, '['));
  for (;; ++count) {
    WEIR_TRY(weir_scan_more(scan, '[', &is_first, &has_more));
    if (!has_more) return weir_tensor_maker_close(maker, depth, count);
    WEIR_TRY(weir_tensor_maker_read(maker, scan, depth + 1));
  }
}

// ---- the tensor ----

static void free_data(void* data, size_t size, void* arg) {
  (void)size;
  (void)arg;
  weir_free(data);
}

static weir_status_t* make_strings(const weir_tensor_maker_t* maker, int rank, const int64_t* dims,
                                   weir_tensor_t** out_tensor) {
  const weir_view_t* views = (const weir_view_t*)(const void*)maker->data.data;
  weir_tensor_t* tensor = NULL;
  WEIR_TRY(weir_tensor_create(WEIR_DTYPE_STRING, rank, dims, &tensor));
  weir_status_t* status = NULL;
  for (int64_t i = 0; i < maker->count && !status; ++i)
    status = weir_tensor_set_string(tensor, i, views[i].data, views[i].size);
  if (status) weir_tensor_release(tensor);
  else *out_tensor = tensor;
  return status;
}

weir_status_t* weir_tensor_maker_finish(weir_tensor_maker_t* maker, int rank, const int64_t* dims,
                                        weir_tensor_t** out_tensor) {
  int64_t count = 0;
  if (rank < 0) rank = maker->rank;
  if (!dims) dims = maker->dims;
  WEIR_TRY(weir_strbuf_finish(&maker->data));
  WEIR_TRY(weir_shape_count(maker->dtype, rank, dims, &count));
  if (count != maker->count)
    return WEIR_STATUS(INVALID_ARGUMENT, "input '%s': %lld values for a shape of %lld", maker->name,
                       (long long)maker->count, (long long)count);
  if (maker->dtype == WEIR_DTYPE_STRING) return make_strings(maker, rank, dims, out_tensor);
  if (count == 0) return weir_tensor_create(maker->dtype, rank, dims, out_tensor);
  weir_strbuf_t data = maker->data;
  maker->data = (weir_strbuf_t){0};
  return weir_tensor_wrap(maker->dtype, rank, dims, data.data, data.size, free_data, NULL,
                          out_tensor);
}

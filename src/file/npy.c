// npy.c — NumPy's .npy files.
#include "file/npy.h"

#include <stdio.h>

#include "file/coding.h"
#include "file/fs.h"

static const char kMagic[] = "\x93NUMPY";
enum { kMagicSize = 6, kHeaderAlignment = 64 };

// What the header says.
typedef struct header_t {
  weir_dtype_t dtype;  // STRING for 'S' and 'U'
  char kind;           // 'f', 'S', 'U' …
  size_t item_size;    // bytes an element in the file
  bool is_swapped;     // big-endian
  bool is_fortran;
  int rank;
  int64_t dims[WEIR_MAX_RANK];
} header_t;

typedef struct type_row_t {
  char kind;
  int size;
  weir_dtype_t dtype;
} type_row_t;

static const type_row_t kTypes[] = {
    {'b', 1, WEIR_DTYPE_BOOL},      {'i', 1, WEIR_DTYPE_INT8},       {'i', 2, WEIR_DTYPE_INT16},
    {'i', 4, WEIR_DTYPE_INT32},     {'i', 8, WEIR_DTYPE_INT64},      {'u', 1, WEIR_DTYPE_UINT8},
    {'u', 2, WEIR_DTYPE_UINT16},    {'u', 4, WEIR_DTYPE_UINT32},     {'u', 8, WEIR_DTYPE_UINT64},
    {'f', 2, WEIR_DTYPE_HALF},      {'f', 4, WEIR_DTYPE_FLOAT},      {'f', 8, WEIR_DTYPE_DOUBLE},
    {'c', 8, WEIR_DTYPE_COMPLEX64}, {'c', 16, WEIR_DTYPE_COMPLEX128}};

static weir_status_t* bad_header(const char* what) {
  return WEIR_STATUS(INVALID_ARGUMENT, "malformed npy header: %s", what);
}

// ---- the header: a Python dictionary {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
// ----

static void skip_space(weir_view_t* rest) { *rest = weir_view_trim(*rest); }

static bool take_char(weir_view_t* rest, char c) {
  skip_space(rest);
  if (rest->size == 0 || rest->data[0] != c) return false;
  *rest = weir_view(rest->data + 1, rest->size - 1);
  return true;
}

static bool take_word(weir_view_t* rest, const char* word) {
  skip_space(rest);
  if (!weir_view_starts_with(*rest, word)) return false;
  *rest = weir_view(rest->data + strlen(word), rest->size - strlen(word));
  return true;
}

static bool take_quoted(weir_view_t* rest, weir_view_t* out_text) {
  skip_space(rest);
  if (rest->size == 0 || (rest->data[0] != '\'' && rest->data[0] != '"')) return false;
  const char* begin = rest->data + 1;
  const char* end = memchr(begin, rest->data[0], rest->size - 1);
  if (!end) return false;
  *out_text = weir_view(begin, (size_t)(end - begin));
  *rest = weir_view(end + 1, rest->size - 2 - out_text->size);
  return true;
}

static bool take_number(weir_view_t* rest, int64_t* out_value) {
  skip_space(rest);
  size_t size = 0;
  while (size < rest->size && rest->data[size] >= '0' && rest->data[size] <= '9') ++size;
  if (size == 0 || !weir_parse_int64(weir_view(rest->data, size), out_value)) return false;
  *rest = weir_view(rest->data + size, rest->size - size);
  (void)take_char(rest, 'L');  // Python 2 wrote long integers so
  return true;
}

static weir_status_t* parse_descr(weir_view_t descr, header_t* header) {
  int64_t size = 0;
  weir_view_t rest = descr;
  char order = '|';
  if (rest.size > 0 && strchr("<>|=", rest.data[0])) {
    order = rest.data[0];
    rest = weir_view(rest.data + 1, rest.size - 1);
  }
  if (rest.size < 2) return WEIR_STATUS(UNIMPLEMENTED, "npy type '%.*s'", WEIR_VIEW_ARG(descr));
  header->kind = rest.data[0];
  bool is_sized = weir_parse_int64(weir_view(rest.data + 1, rest.size - 1), &size);
  if (!is_sized || size < 0 || size > INT32_MAX) return bad_header("bad size in descr");
  header->is_swapped = order == '>';
  if (header->kind == 'S' || header->kind == 'U') {
    header->dtype = WEIR_DTYPE_STRING;
    header->item_size = (size_t)size * (header->kind == 'U' ? 4 : 1);
    return NULL;
  }
  for (size_t i = 0; i < WEIR_COUNT_OF(kTypes); ++i) {
    if (kTypes[i].kind != header->kind || kTypes[i].size != size) continue;
    header->dtype = kTypes[i].dtype;
    header->item_size = (size_t)size;
    return NULL;
  }
  return WEIR_STATUS(UNIMPLEMENTED, "npy type '%.*s'", WEIR_VIEW_ARG(descr));
}

static weir_status_t* parse_shape(weir_view_t* rest, header_t* header) {
  if (!take_char(rest, '(')) return bad_header("shape is not a tuple");
  while (!take_char(rest, ')')) {
    if (header->rank == WEIR_MAX_RANK) return bad_header("too many dimensions");
    if (!take_number(rest, &header->dims[header->rank])) return bad_header("bad dimension");
    ++header->rank;
    if (take_char(rest, ',')) continue;
    if (!take_char(rest, ')')) return bad_header("shape is not closed");
    break;
  }
  return NULL;
}

static weir_status_t* parse_value(weir_view_t key, weir_view_t* rest, header_t* header) {
  weir_view_t text;
  if (weir_view_is(key, "descr")) {
    if (take_quoted(rest, &text)) return parse_descr(text, header);
    return WEIR_STATUS(UNIMPLEMENTED, "npy files of structures");
  }
  if (weir_view_is(key, "shape")) return parse_shape(rest, header);
  if (!weir_view_is(key, "fortran_order")) return bad_header("unknown key");
  header->is_fortran = take_word(rest, "True");
  return header->is_fortran || take_word(rest, "False") ? NULL : bad_header("bad fortran_order");
}

static weir_status_t* parse_header(weir_view_t text, header_t* header) {
  int seen = 0;
  weir_view_t key;
  if (!take_char(&text, '{')) return bad_header("not a dictionary");
  while (!take_char(&text, '}')) {
    if (!take_quoted(&text, &key) || !take_char(&text, ':')) return bad_header("bad key");
    header->rank = weir_view_is(key, "shape") ? 0 : header->rank;
    WEIR_TRY(parse_value(key, &text, header));
    ++seen;
    if (take_char(&text, ',')) continue;
    if (!take_char(&text, '}')) return bad_header("dictionary is not closed");
    break;
  }
  skip_space(&text);
  bool is_complete = seen == 3 && header->dtype != WEIR_DTYPE_INVALID && text.size == 0;
  return is_complete ? NULL : bad_header("descr, fortran_order and shape expected");
}

// Splits off magic, version and header.
static weir_status_t* take_header(weir_view_t* rest, header_t* header) {
  if (rest->size < kMagicSize + 4 || memcmp(rest->data, kMagic, kMagicSize) != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "not an npy file");
  }
  int version = (uint8_t)rest->data[6];
  if (version < 1 || version > 3) {
    return WEIR_STATUS(UNIMPLEMENTED, "npy version %d.%d", version, (uint8_t)rest->data[7]);
  }
  size_t prefix = version == 1 ? 10 : 12;
  if (rest->size < prefix) return WEIR_STATUS(DATA_LOSS, "npy file ends within its header");
  const uint8_t* at = (const uint8_t*)rest->data + 8;
  size_t size = version == 1 ? (size_t)at[0] | (size_t)at[1] << 8 : weir_decode32(at);
  if (size > rest->size - prefix) return WEIR_STATUS(DATA_LOSS, "npy file ends within its header");
  WEIR_TRY(parse_header(weir_view(rest->data + prefix, size), header));
  *rest = weir_view(rest->data + prefix + size, rest->size - prefix - size);
  return NULL;
}

// ---- elements ----

// Copies one element, reversing the bytes of each of its parts (a complex has two) where needed.
static void copy_item(const header_t* header, const char* from, char* to) {
  size_t size = header->item_size;
  if (!header->is_swapped) {
    memcpy(to, from, size);
    return;
  }
  size_t part = header->kind == 'c' ? size / 2 : size;
  for (size_t i = 0; i < size; ++i) to[i] = from[i / part * part + (part - 1 - i % part)];
}

static void put_utf8(weir_strbuf_t* out, uint32_t c) {
  uint8_t bytes[4];
  size_t size = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  static const uint8_t kLead[] = {0, 0, 0xc0, 0xe0, 0xf0};
  for (size_t i = size - 1; i > 0; --i, c >>= 6) bytes[i] = (uint8_t)(0x80 | (c & 0x3f));
  bytes[0] = (uint8_t)(kLead[size] | c);
  weir_strbuf_append(out, bytes, size);
}

static weir_status_t* text_item(const header_t* header, const char* from, weir_strbuf_t* out) {
  size_t count = header->item_size / 4;
  out->size = 0;
  for (size_t i = 0; i < count; ++i) {
    uint32_t c = weir_decode32(from + 4 * i);
    if (header->is_swapped) c = __builtin_bswap32(c);
    if (c > 0x10ffff) return WEIR_STATUS(INVALID_ARGUMENT, "npy text has the character %u", c);
    put_utf8(out, c);
  }
  return weir_strbuf_finish(out);
}

static weir_status_t* string_item(const header_t* header, const char* from, weir_strbuf_t* scratch,
                                  weir_tensor_t* tensor, int64_t index) {
  weir_view_t text = weir_view(from, header->item_size);
  if (header->kind == 'U') {
    WEIR_TRY(text_item(header, from, scratch));
    text = weir_strbuf_view(scratch);
  }
  while (text.size > 0 && text.data[text.size - 1] == '\0') --text.size;
  return weir_tensor_set_string(tensor, index, text.data, text.size);
}

// The place of C-order element |index| in a file of Fortran order.
static int64_t fortran_place(const header_t* header, int64_t index) {
  int64_t place = 0;
  int64_t stride = 1;
  int64_t position[WEIR_MAX_RANK];
  for (int i = header->rank - 1; i >= 0; --i) {
    position[i] = index % header->dims[i];
    index /= header->dims[i];
  }
  for (int i = 0; i < header->rank; ++i) {
    place += position[i] * stride;
    stride *= header->dims[i];
  }
  return place;
}

static weir_status_t* read_items(const header_t* header, weir_view_t bytes, weir_tensor_t* tensor) {
  weir_strbuf_t scratch = {0};
  weir_status_t* status = NULL;
  bool is_string = header->dtype == WEIR_DTYPE_STRING;
  bool is_fortran = header->is_fortran && header->rank > 1;
  if (!is_string && !is_fortran && !header->is_swapped) {
    if (tensor->count > 0) memcpy(tensor->data, bytes.data, weir_tensor_byte_size(tensor));
    return NULL;
  }
  for (int64_t i = 0; i < tensor->count && !status; ++i) {
    int64_t place = is_fortran ? fortran_place(header, i) : i;
    const char* from = bytes.data + (size_t)place * header->item_size;
    if (is_string) {
      status = string_item(header, from, &scratch, tensor, i);
    } else {
      copy_item(header, from, (char*)tensor->data + (size_t)i * header->item_size);
    }
  }
  weir_strbuf_free(&scratch);
  return status;
}

// numpy writes a bool as 0 or 1; any other byte would be a value that no comparison expects.
static void normalise_bools(weir_tensor_t* tensor) {
  uint8_t* bytes = tensor->data;
  for (int64_t i = 0; i < tensor->count; ++i) bytes[i] = bytes[i] != 0;
}

weir_status_t* weir_npy_parse(weir_view_t bytes, weir_tensor_t** out_tensor) {
  header_t header = {0};
  int64_t count = 0;
  weir_tensor_t* tensor = NULL;
  WEIR_TRY(take_header(&bytes, &header));
  WEIR_TRY(weir_shape_count(header.dtype, header.rank, header.dims, &count));
  size_t limit = header.item_size > 0 ? bytes.size / header.item_size : bytes.size;
  // Strings of size 0 take no bytes in the file: then a false shape is bounded by |limit| all the
  // same.
  if ((uint64_t)count > limit && (header.item_size > 0 || count > (1 << 20))) {
    return WEIR_STATUS(DATA_LOSS, "npy file ends early: %lld elements of %zu bytes, but %zu bytes",
                       (long long)count, header.item_size, bytes.size);
  }
  WEIR_TRY(weir_tensor_create(header.dtype, header.rank, header.dims, &tensor));
  weir_status_t* status = read_items(&header, bytes, tensor);
  if (status) {
    weir_tensor_release(tensor);
    return status;
  }
  if (header.dtype == WEIR_DTYPE_BOOL) normalise_bools(tensor);
  *out_tensor = tensor;
  return NULL;
}

// ---- writing ----

static weir_status_t* describe(const weir_tensor_t* tensor, size_t* out_size, weir_strbuf_t* out) {
  weir_dtype_t dtype = weir_tensor_type(tensor);
  if (dtype == WEIR_DTYPE_STRING) {
    *out_size = 1;
    for (int64_t i = 0; i < tensor->count; ++i) {
      size_t size = 0;
      const char* text = weir_tensor_string(tensor, i, &size);
      if (size > 0 && text[size - 1] == '\0') {
        return WEIR_STATUS(INVALID_ARGUMENT,
                           "string %lld ends with a zero byte, which npy files cannot hold",
                           (long long)i);
      }
      *out_size = WEIR_MAX(*out_size, size);
    }
    weir_strbuf_printf(out, "|S%zu", *out_size);
    return NULL;
  }
  for (size_t i = 0; i < WEIR_COUNT_OF(kTypes); ++i) {
    if (kTypes[i].dtype != dtype) continue;
    *out_size = (size_t)kTypes[i].size;
    weir_strbuf_printf(out, "%c%c%d", kTypes[i].size == 1 ? '|' : '<', kTypes[i].kind,
                       kTypes[i].size);
    return NULL;
  }
  return WEIR_STATUS(UNIMPLEMENTED, "npy files have no type for %s", weir_dtype_name(dtype));
}

static void put_dict(const weir_tensor_t* tensor, weir_strbuf_t* out) {
  weir_strbuf_puts(out, "', 'fortran_order': False, 'shape': (");
  for (int i = 0; i < tensor->rank; ++i) {
    weir_strbuf_printf(out, "%s%lld", i ? ", " : "", (long long)tensor->dims[i]);
  }
  // NumPy leaves room for the first dimension to grow to 20 digits.
  weir_strbuf_printf(out, "%s), }", tensor->rank == 1 ? "," : "");
  if (tensor->rank == 0) return;
  int digits = snprintf(NULL, 0, "%lld", (long long)tensor->dims[0]);
  for (; digits < 21; ++digits) weir_strbuf_putc(out, ' ');
}

static void put_header(weir_strbuf_t* dict, weir_strbuf_t* out) {
  bool is_long = false;
  size_t prefix = 10;
  size_t padding = kHeaderAlignment - (prefix + dict->size + 1) % kHeaderAlignment;
  if (dict->size + padding + 1 > UINT16_MAX) {
    is_long = true;
    prefix = 12;
    padding = kHeaderAlignment - (prefix + dict->size + 1) % kHeaderAlignment;
  }
  for (size_t i = 0; i < padding; ++i) weir_strbuf_putc(dict, ' ');
  weir_strbuf_putc(dict, '\n');
  weir_strbuf_append(out, kMagic, kMagicSize);
  weir_strbuf_append(out, is_long ? "\2\0" : "\1\0", 2);
  uint8_t size[4];
  weir_encode32(size, (uint32_t)dict->size);
  weir_strbuf_append(out, size, is_long ? 4 : 2);
  weir_strbuf_append(out, dict->data, dict->size);
}

static void put_strings(const weir_tensor_t* tensor, size_t item_size, weir_strbuf_t* out) {
  for (int64_t i = 0; i < tensor->count; ++i) {
    size_t size = 0;
    const char* text = weir_tensor_string(tensor, i, &size);
    weir_strbuf_append(out, text, size);
    for (; size < item_size; ++size) weir_strbuf_putc(out, '\0');
  }
}

weir_status_t* weir_npy_write(const weir_tensor_t* tensor, weir_strbuf_t* out) {
  weir_strbuf_t dict = {0};
  size_t item_size = 0;
  weir_strbuf_puts(&dict, "{'descr': '");
  weir_status_t* status = describe(tensor, &item_size, &dict);
  if (status) goto done;
  put_dict(tensor, &dict);
  put_header(&dict, out);
  if (tensor->dtype == WEIR_DTYPE_STRING) {
    put_strings(tensor, item_size, out);
  } else if (tensor->count > 0) {
    weir_strbuf_append(out, tensor->data, weir_tensor_byte_size(tensor));
  }
  status = weir_strbuf_finish(&dict);
  if (!status) status = weir_strbuf_finish(out);
done:
  weir_strbuf_free(&dict);
  return status;
}

// ---- files ----

weir_status_t* weir_npy_load(const char* path, weir_tensor_t** out_tensor) {
  weir_strbuf_t bytes = {0};
  weir_status_t* status = weir_fs_read_all(path, &bytes);
  if (!status) {
    status = weir_npy_parse(weir_strbuf_view(&bytes), out_tensor);
    status = weir_status_prefix(status, "%s: ", path);
  }
  weir_strbuf_free(&bytes);
  return status;
}

weir_status_t* weir_npy_save(const char* path, const weir_tensor_t* tensor) {
  weir_strbuf_t bytes = {0};
  weir_status_t* status = weir_npy_write(tensor, &bytes);
  if (!status) status = weir_fs_write_all(path, weir_strbuf_view(&bytes));
  weir_strbuf_free(&bytes);
  return status;
}

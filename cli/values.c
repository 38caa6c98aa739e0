// values.c — Values that the command line gives: lists of numbers, JSON, texts, .npy files, chance.
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

// ---- numbers ----

// Stores the number that |text| begins with; returns where it ends, NULL when it is none.
static const char* store_number(const char* text, weir_dtype_t dtype, void* to) {
  char* end = NULL;
  bool is_true = strncmp(text, "true", 4) == 0, is_false = strncmp(text, "false", 5) == 0;
  errno = 0;
  double number = is_true || is_false ? (double)is_true : strtod(text, &end);
  long long whole = is_true || is_false ? is_true : strtoll(text, NULL, 10);
  if (is_true || is_false) end = (char*)text + (is_true ? 4 : 5);
  if (end == text) return NULL;
  switch (dtype) {
    case WEIR_DTYPE_FLOAT: *(float*)to = (float)number; return end;
    case WEIR_DTYPE_DOUBLE: *(double*)to = number; return end;
    case WEIR_DTYPE_BOOL: *(bool*)to = number != 0; return end;
    case WEIR_DTYPE_UINT64: *(uint64_t*)to = strtoull(text, NULL, 10); return end;
    case WEIR_DTYPE_INT64: *(int64_t*)to = whole; return end;
    default: break;
  }
  if (number != (double)whole) return NULL;  // "1.5" is no integer
  switch (dtype) {
    case WEIR_DTYPE_INT32:
      *(int32_t*)to = (int32_t)whole;
      return whole == (int32_t)whole ? end : NULL;
    case WEIR_DTYPE_UINT32:
      *(uint32_t*)to = (uint32_t)whole;
      return whole == (uint32_t)whole ? end : NULL;
    case WEIR_DTYPE_INT16:
      *(int16_t*)to = (int16_t)whole;
      return whole == (int16_t)whole ? end : NULL;
    case WEIR_DTYPE_UINT16:
      *(uint16_t*)to = (uint16_t)whole;
      return whole == (uint16_t)whole ? end : NULL;
    case WEIR_DTYPE_INT8: *(int8_t*)to = (int8_t)whole; return whole == (int8_t)whole ? end : NULL;
    case WEIR_DTYPE_UINT8:
      *(uint8_t*)to = (uint8_t)whole;
      return whole == (uint8_t)whole ? end : NULL;
    default: return NULL;
  }
}

static weir_status_t* check_type(weir_dtype_t dtype) {
  switch (dtype) {
    case WEIR_DTYPE_FLOAT:
    case WEIR_DTYPE_DOUBLE:
    case WEIR_DTYPE_BOOL:
    case WEIR_DTYPE_STRING:
    case WEIR_DTYPE_INT8:
    case WEIR_DTYPE_INT16:
    case WEIR_DTYPE_INT32:
    case WEIR_DTYPE_INT64:
    case WEIR_DTYPE_UINT8:
    case WEIR_DTYPE_UINT16:
    case WEIR_DTYPE_UINT32:
    case WEIR_DTYPE_UINT64: return NULL;
    default:
      return WEIR_STATUS(UNIMPLEMENTED, "values of type %s are given as @file.npy",
                         weir_dtype_name(dtype));
  }
}

// "1", "1,2,3": one value is a scalar, several are a vector.
static weir_status_t* parse_list(const char* text, weir_dtype_t dtype, weir_tensor_t** out) {
  int64_t count = 1;
  for (const char* c = text; *c; ++c) count += *c == ',';
  WEIR_TRY(weir_tensor_create(dtype, count > 1, &count, out));
  char* to = weir_tensor_data(*out);
  for (const char* at = text; count > 0; --count, to += weir_dtype_size(dtype)) {
    const char* end = store_number(at, dtype, to);
    if (!end || (*end && *end != ','))
      return WEIR_STATUS(INVALID_ARGUMENT, "'%s' is not a list of %s", text,
                         weir_dtype_name(dtype));
    at = end + 1;
  }
  return NULL;
}

// ---- JSON: arrays of arrays of numbers or texts ----

enum { MAX_DEPTH = 8 };

typedef struct json_t {
  const char* at;
  weir_dtype_t dtype;
  int rank;  // -1: not known before the first element
  int64_t dims[MAX_DEPTH];
  bool is_known[MAX_DEPTH];
  weir_tensor_t* tensor;  // NULL: elements are counted only
  int64_t count;
} json_t;

static void skip_space(json_t* json) {
  while (isspace((unsigned char)*json->at)) ++json->at;
}

static int hex(char c) {
  return c >= '0' && c <= '9'                 ? c - '0'
         : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                              : -1;
}

// The character behind "\u", as UTF-8; surrogates are not joined.
static size_t put_code(const char* digits, char* to) {
  int code = 0;
  for (int i = 0; i < 4; ++i) {
    if (hex(digits[i]) < 0) return 0;
    code = code * 16 + hex(digits[i]);
  }
  if (code < 0x80) to[0] = (char)code;
  else if (code < 0x800) snprintf(to, 3, "%c%c", 0xc0 | code >> 6, 0x80 | (code & 63));
  else snprintf(to, 4, "%c%c%c", 0xe0 | code >> 12, 0x80 | (code >> 6 & 63), 0x80 | (code & 63));
  return code < 0x80 ? 1 : code < 0x800 ? 2 : 3;
}

static weir_status_t* parse_text(json_t* json) {
  const char* begin = ++json->at;
  while (*json->at && *json->at != '"') json->at += *json->at == '\\' && json->at[1] ? 2 : 1;
  if (!*json->at) return WEIR_STATUS(INVALID_ARGUMENT, "a text without an end");
  char* text = malloc((size_t)(json->at - begin) + 4);
  if (!text) return WEIR_STATUS(RESOURCE_EXHAUSTED, "no memory for a text");
  size_t size = 0;
  for (const char* c = begin; c < json->at; ++c) {
    static const char names[] = "nrtbf", codes[] = "\n\r\t\b\f";
    const char* name = *c == '\\' ? strchr(names, c[1]) : NULL;
    if (*c != '\\') text[size++] = *c;
    else if (c[1] == 'u' && json->at - c >= 6) {
      size += put_code(c + 2, text + size);
      c += 5;
    } else {
      text[size++] = name ? codes[name - names] : c[1];
      ++c;
    }
  }
  ++json->at;
  weir_status_t* status =
      json->tensor ? weir_tensor_set_string(json->tensor, json->count, text, size) : NULL;
  free(text);
  return status;
}

static weir_status_t* parse_number(json_t* json) {
  uint64_t none = 0;
  void* to = json->tensor ? (char*)weir_tensor_data(json->tensor) +
                                (size_t)json->count * weir_dtype_size(json->dtype)
                          : (void*)&none;
  const char* end = store_number(json->at, json->dtype, to);
  if (!end)
    return WEIR_STATUS(INVALID_ARGUMENT, "no %s at '%.20s'", weir_dtype_name(json->dtype),
                       json->at);
  json->at = end;
  return NULL;
}

static weir_status_t* parse_element(json_t* json, int depth) {
  if (json->rank >= 0 && json->rank != depth)
    return WEIR_STATUS(INVALID_ARGUMENT, "arrays of different depth at '%.20s'", json->at);
  json->rank = depth;
  if (json->dtype == WEIR_DTYPE_STRING && *json->at != '"')
    return WEIR_STATUS(INVALID_ARGUMENT, "no text at '%.20s'", json->at);
  WEIR_TRY(*json->at == '"' && json->dtype == WEIR_DTYPE_STRING ? parse_text(json)
                                                                : parse_number(json));
  ++json->count;
  return NULL;
}

static weir_status_t* parse_json(json_t* json, int depth);

static weir_status_t* parse_array(json_t* json, int depth) {
  int64_t count = 0;
  if (depth == MAX_DEPTH)
    return WEIR_STATUS(INVALID_ARGUMENT, "arrays of more than %d dimensions", MAX_DEPTH);
  ++json->at;
  skip_space(json);
  for (; *json->at != ']'; ++count) {
    WEIR_TRY(parse_json(json, depth + 1));
    if (*json->at == ',') ++json->at;
    else if (*json->at != ']')
      return WEIR_STATUS(INVALID_ARGUMENT, "',' or ']' is missing at '%.20s'", json->at);
    skip_space(json);
  }
  ++json->at;
  if (json->is_known[depth] && json->dims[depth] != count)
    return WEIR_STATUS(INVALID_ARGUMENT, "arrays of %lld and of %lld elements beside each other",
                       (long long)json->dims[depth], (long long)count);
  json->is_known[depth] = true;
  json->dims[depth] = count;
  if (count == 0 && json->rank < 0) json->rank = depth + 1;
  return NULL;
}

static weir_status_t* parse_json(json_t* json, int depth) {
  skip_space(json);
  WEIR_TRY(*json->at == '[' ? parse_array(json, depth) : parse_element(json, depth));
  skip_space(json);
  return NULL;
}

// Twice: to count, and to fill.
static weir_status_t* parse_whole(const char* text, weir_dtype_t dtype, weir_tensor_t** out) {
  json_t json = {.at = text, .dtype = dtype, .rank = -1};
  WEIR_TRY(parse_json(&json, 0));
  if (*json.at) return WEIR_STATUS(INVALID_ARGUMENT, "'%.20s' behind the value", json.at);
  WEIR_TRY(weir_tensor_create(dtype, json.rank, json.dims, out));
  json_t fill = {.at = text, .dtype = dtype, .rank = -1, .tensor = *out};
  return parse_json(&fill, 0);
}

// ---- any value ----

static weir_status_t* parse_plain(const char* text, weir_dtype_t dtype, weir_tensor_t** out) {
  WEIR_TRY(check_type(dtype));
  bool is_json = text[strspn(text, " ")] == '[' || (dtype == WEIR_DTYPE_STRING && *text == '"');
  if (is_json) return parse_whole(text, dtype, out);
  if (dtype == WEIR_DTYPE_STRING) return weir_tensor_create_strings(0, NULL, &text, NULL, out);
  return parse_list(text, dtype, out);
}

weir_status_t* parse_value(const char* text, weir_dtype_t dtype, weir_tensor_t** out_tensor) {
  if (*text == '@') return weir_tensor_load_npy(text + 1, out_tensor);
  weir_tensor_t* tensor = NULL;
  weir_status_t* status = parse_plain(text, dtype, &tensor);
  if (status) weir_tensor_release(tensor);
  else *out_tensor = tensor;
  return status;
}

// ---- chance ----

weir_status_t* random_value(weir_dtype_t dtype, int rank, const int64_t* dims, long batch,
                            weir_tensor_t** out_tensor) {
  static uint64_t state = 0x9e3779b97f4a7c15u;
  int64_t known[WEIR_MAX_RANK];
  weir_tensor_t* tensor = NULL;
  if (rank < 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "random values need a shape, which is not known");
  WEIR_TRY(check_type(dtype));
  for (int i = 0; i < rank; ++i) known[i] = dims[i] < 0 ? (i == 0 ? batch : 1) : dims[i];
  WEIR_TRY(weir_tensor_create(dtype, rank, known, &tensor));
  char* to = weir_tensor_data(tensor);
  for (int64_t i = 0; i < weir_tensor_count(tensor) && dtype != WEIR_DTYPE_STRING; ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    double unit = (double)(state >> 11) / 9007199254740992.0;  // 2^53
    if (dtype == WEIR_DTYPE_FLOAT) ((float*)to)[i] = (float)unit;
    else if (dtype == WEIR_DTYPE_DOUBLE) ((double*)to)[i] = unit;
    else to[(size_t)i * weir_dtype_size(dtype)] = 0;
    // Integers are mostly indices and classes, of which 0 and 1 are in any range worth measuring.
    if (weir_dtype_is_integer(dtype) || dtype == WEIR_DTYPE_BOOL) {
      memset(to + (size_t)i * weir_dtype_size(dtype), 0, weir_dtype_size(dtype));
      to[(size_t)i * weir_dtype_size(dtype)] = (char)(unit < 0.5);
    }
  }
  *out_tensor = tensor;
  return NULL;
}

void print_json_text(const char* text) {
  putchar('"');
  for (; *text; ++text) {
    if (*text == '"' || *text == '\\') printf("\\%c", *text);
    else if ((unsigned char)*text < 0x20) printf("\\u%04x", *text);
    else putchar(*text);
  }
  putchar('"');
}

// tensors.h — Making and comparing small tensors in tests; differences are reported in ULPs.
// Header-only, one test program each.
#ifndef WEIR_TESTS_TESTING_TENSORS_H_
#define WEIR_TESTS_TESTING_TENSORS_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testing/cmocka.h"
#include "weir/session.h"
#include "weir/tensor.h"

// ---- statuses ----

static inline void check_ok_at(weir_status_t* status, const char* file, int line) {
  if (!status) return;
  print_error("%s:%d: %s: %s\n", file, line, weir_code_name(weir_status_code(status)),
              weir_status_message(status));
  weir_status_destroy(status);
  _fail(file, line);
}
#define check_ok(status) check_ok_at((status), __FILE__, __LINE__)

// Asserts code and a part of the message.
static inline void check_error_at(weir_status_t* status, weir_code_t code, const char* text,
                                  const char* file, int line) {
  bool is_same = weir_status_code(status) == code && strstr(weir_status_message(status), text);
  if (!is_same) {
    print_error("%s:%d: expected %s with '%s', got %s: '%s'\n", file, line, weir_code_name(code),
                text, weir_code_name(weir_status_code(status)), weir_status_message(status));
  }
  weir_status_destroy(status);
  if (!is_same) _fail(file, line);
}
#define check_error(status, code, text) check_error_at((status), (code), (text), __FILE__, __LINE__)

// ---- making ----

static inline weir_tensor_t* make_tensor(weir_dtype_t dtype, int rank, const int64_t* dims,
                                         const void* data) {
  weir_tensor_t* tensor = NULL;
  check_ok(weir_tensor_create_from(dtype, rank, dims, data, &tensor));
  return tensor;
}
static inline weir_tensor_t* make_float(float value) {
  return make_tensor(WEIR_DTYPE_FLOAT, 0, NULL, &value);
}
static inline weir_tensor_t* make_int(int32_t value) {
  return make_tensor(WEIR_DTYPE_INT32, 0, NULL, &value);
}
static inline weir_tensor_t* make_bool(bool value) {
  return make_tensor(WEIR_DTYPE_BOOL, 0, NULL, &value);
}
static inline weir_tensor_t* make_floats(int64_t count, const float* values) {
  return make_tensor(WEIR_DTYPE_FLOAT, 1, &count, values);
}
#define FLOATS(...)                                                      \
  make_floats((int64_t)(sizeof((float[]){__VA_ARGS__}) / sizeof(float)), \
              (const float[]){__VA_ARGS__})

// ---- comparing ----

// Distance in representable values; 0 for equal values and for two NaNs.
static inline int64_t float_ulps(float a, float b) {
  if (a == b || (a != a && b != b)) return 0;
  int32_t x, y;
  memcpy(&x, &a, sizeof(x));
  memcpy(&y, &b, sizeof(y));
  int64_t left = x < 0 ? (int64_t)INT32_MIN - x : x;
  int64_t right = y < 0 ? (int64_t)INT32_MIN - y : y;
  return left > right ? left - right : right - left;
}

// Asserts a float tensor element by element; says which differ, and by how many ULPs.
static inline void check_floats_at(const weir_tensor_t* tensor, int64_t count,
                                   const float* expected, int64_t max_ulps, const char* file,
                                   int line) {
  if (!tensor || weir_tensor_dtype(tensor) != WEIR_DTYPE_FLOAT ||
      weir_tensor_count(tensor) != count) {
    print_error("%s:%d: expected %lld floats\n", file, line, (long long)count);
    _fail(file, line);
    return;
  }
  const float* values = weir_tensor_data(tensor);
  int64_t bad = 0;
  for (int64_t i = 0; i < count; ++i) {
    int64_t ulps = float_ulps(values[i], expected[i]);
    if (ulps <= max_ulps) continue;
    if (++bad <= 10) {
      print_error("%s:%d: [%lld] is %.9g, expected %.9g (%lld ULPs)\n", file, line, (long long)i,
                  (double)values[i], (double)expected[i], (long long)ulps);
    }
  }
  if (bad) _fail(file, line);
}
#define check_floats(tensor, max_ulps, ...)                                            \
  check_floats_at((tensor), (int64_t)(sizeof((float[]){__VA_ARGS__}) / sizeof(float)), \
                  (const float[]){__VA_ARGS__}, (max_ulps), __FILE__, __LINE__)

static inline float float_of(const weir_tensor_t* tensor) {
  assert_int_equal(weir_tensor_dtype(tensor), WEIR_DTYPE_FLOAT);
  assert_int_equal(weir_tensor_count(tensor), 1);
  return *(const float*)weir_tensor_data(tensor);
}
static inline int32_t int_of(const weir_tensor_t* tensor) {
  assert_int_equal(weir_tensor_dtype(tensor), WEIR_DTYPE_INT32);
  assert_int_equal(weir_tensor_count(tensor), 1);
  return *(const int32_t*)weir_tensor_data(tensor);
}

#endif  // WEIR_TESTS_TESTING_TENSORS_H_

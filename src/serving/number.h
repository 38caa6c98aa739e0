// number.h — Numbers of JSON: read fast where a double can hold every digit, written with the
// fewest digits that read back the same.
//
// NaN, Infinity and -Infinity are read and written as such, as TensorFlow Serving does.
#ifndef WEIR_SERVING_NUMBER_H_
#define WEIR_SERVING_NUMBER_H_

#include "base/base.h"
#include "base/string.h"

// A number as written. Whole numbers that fit are in |integer|, and beyond INT64_MAX in |natural|.
typedef struct weir_json_number_t {
  double value;
  bool is_integer;  // neither point nor exponent, and it fits int64_t
  bool is_natural;  // … and it fits uint64_t
  int64_t integer;
  uint64_t natural;
} weir_json_number_t;

// Reads the number that |text| begins with; |out_size|: the bytes it takes. False when there is
// none, or a double cannot hold it.
bool weir_json_read_number(weir_view_t text, weir_json_number_t* out_number, size_t* out_size);

void weir_json_put_float(float value, weir_strbuf_t* out);
void weir_json_put_double(double value, weir_strbuf_t* out);

#endif  // WEIR_SERVING_NUMBER_H_

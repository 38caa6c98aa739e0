// number.c — Decimal to binary and back, with shortcuts that are exact and the C library behind
// them.
#include "serving/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// All that a double holds exactly.
static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
enum { MAX_POWER = WEIR_COUNT_OF(powers) - 1 };

// ---- reading ----

// The parts of a number as written.
typedef struct decimal_t {
  const char *at, *end;
  bool is_negative, is_whole;
  uint64_t digits;  // of which |is_cut| were too many
  bool is_cut;
  int exponent;  // value = digits * 10^exponent
} decimal_t;

static bool is_digit(const decimal_t* d) {
  return d->at < d->end && *d->at >= '0' && *d->at <= '9';
}

// Takes digits into |d->digits|; false when there are none.
static bool take_digits(decimal_t* d, int exponent_step) {
  const char* begin = d->at;
  for (; is_digit(d); ++d->at) {
    uint64_t digit = (uint64_t)(*d->at - '0');
    if (d->digits > (UINT64_MAX - digit) / 10) d->is_cut = true;
    d->digits = d->digits * 10 + digit;
    d->exponent += exponent_step;
  }
  return d->at > begin;
}

static bool take_exponent(decimal_t* d) {
  bool is_negative = d->at < d->end && *d->at == '-';
  int exponent = 0;
  if (d->at < d->end && (*d->at == '-' || *d->at == '+')) ++d->at;
  if (!is_digit(d)) return false;
  for (; is_digit(d); ++d->at) exponent = WEIR_MIN(exponent * 10 + (*d->at - '0'), 100000);
  d->exponent += is_negative ? -exponent : exponent;
  return true;
}

// RFC 8259's grammar.
static bool take_decimal(decimal_t* d) {
  bool starts_with_zero = d->at < d->end && *d->at == '0';
  const char* begin = d->at;
  d->is_whole = true;
  if (!take_digits(d, 0) || (starts_with_zero && d->at - begin > 1)) return false;
  if (d->at < d->end && *d->at == '.') {
    d->is_whole = false;
    ++d->at;
    if (!take_digits(d, -1)) return false;
  }
  if (d->at < d->end && (*d->at == 'e' || *d->at == 'E')) {
    d->is_whole = false;
    ++d->at;
    return take_exponent(d);
  }
  return true;
}

// Digits and power of ten that doubles hold exactly give the nearest double in one operation.
static bool compute_exactly(const decimal_t* d, double* out_value) {
  if (d->is_cut || d->digits > (UINT64_C(1) << 53)) return false;
  if (d->exponent < -MAX_POWER || d->exponent > MAX_POWER) return false;
  double value = (double)d->digits;
  *out_value = d->exponent < 0 ? value / powers[-d->exponent] : value * powers[d->exponent];
  return true;
}

static bool read_word(weir_view_t text, weir_json_number_t* number, size_t* out_size) {
  static const struct {
    const char* word;
    double value;
  } words[] = {{"NaN", NAN},
               {"Infinity", INFINITY},
               {"-Infinity", -INFINITY},
               {"Inf", INFINITY},
               {"-Inf", -INFINITY}};
  for (size_t i = 0; i < WEIR_COUNT_OF(words); ++i) {
    if (!weir_view_starts_with(text, words[i].word)) continue;
    *number = (weir_json_number_t){.value = words[i].value};
    *out_size = strlen(words[i].word);
    return true;
  }
  return false;
}

bool weir_json_read_number(weir_view_t text, weir_json_number_t* out_number, size_t* out_size) {
  decimal_t d = {.at = text.data, .end = text.data + text.size};
  d.is_negative = text.size > 0 && text.data[0] == '-';
  if (d.is_negative) ++d.at;
  if (!is_digit(&d)) return read_word(text, out_number, out_size);
  if (!take_decimal(&d)) return false;
  *out_size = (size_t)(d.at - text.data);
  weir_json_number_t number = {.natural = d.digits};
  bool is_whole = d.is_whole && !d.is_cut;
  uint64_t limit = (uint64_t)INT64_MAX + d.is_negative;
  number.is_natural = is_whole && (!d.is_negative || d.digits == 0);
  number.is_integer = is_whole && d.digits <= limit;
  number.integer = (int64_t)(d.is_negative ? 0 - d.digits : d.digits);
  if (compute_exactly(&d, &number.value)) {
    if (d.is_negative) number.value = -number.value;
  } else if (!weir_parse_double(weir_view(text.data, *out_size), &number.value)) {
    return false;
  }
  *out_number = number;
  return true;
}

// ---- writing ----

static bool put_special(double value, weir_strbuf_t* out) {
  if (isfinite(value)) return false;
  weir_strbuf_puts(out, isnan(value) ? "NaN" : value < 0 ? "-Infinity" : "Infinity");
  return true;
}

// A number that looks whole gets a point, so that readers take it for a float.
static void put_text(const char* text, weir_strbuf_t* out) {
  weir_strbuf_puts(out, text);
  if (!strpbrk(text, ".e")) weir_strbuf_puts(out, ".0");
}

// |digits| * 10^|exponent|, both within what is positional: "0.00123", "12.5", "1200.0".
static void put_positional(uint64_t digits, int exponent, bool is_negative, weir_strbuf_t* out) {
  char text[64];
  char* at = text + sizeof(text);
  int point = -exponent;  // digits behind it
  while (point > 1 && digits % 10 == 0) {
    digits /= 10;
    --point;
  }
  for (; point < 1; ++point) digits *= 10;  // at least one
  for (int i = 0; digits > 0 || i <= point; ++i) {
    if (i == point) *--at = '.';
    *--at = (char)('0' + digits % 10);
    digits /= 10;
  }
  if (is_negative) *--at = '-';
  weir_strbuf_append(out, at, (size_t)(text + sizeof(text) - at));
}

// Whether every double near |decimal|, by more than its rounding, is |value| as a float.
static bool is_same_float(double decimal, float value) {
  const double slack = 4.5e-16;
  return (float)(decimal * (1 - slack)) == value && (float)(decimal * (1 + slack)) == value;
}

// The fewest digits, from 6 on: fewer show as zeros at the end of these.
static bool put_float_fast(float magnitude, bool is_negative, weir_strbuf_t* out) {
  if (!(magnitude >= 1e-4f && magnitude < 1e9f)) return false;
  double value = (double)magnitude;
  int log = 0;  // floor(log10(value))
  while (value >= powers[log + 1]) ++log;
  while (log <= 0 && value * powers[-log] < 1) --log;
  for (int precision = 6; precision <= 9; ++precision) {
    int exponent = log + 1 - precision;
    double scaled = exponent > 0 ? value / powers[exponent] : value * powers[-exponent];
    uint64_t digits = (uint64_t)(scaled + 0.5);
    double back =
        exponent > 0 ? (double)digits * powers[exponent] : (double)digits / powers[-exponent];
    if (!is_same_float(back, magnitude)) continue;
    for (; exponent > 0; --exponent) digits *= 10;
    put_positional(digits, exponent, is_negative, out);
    return true;
  }
  return false;
}

void weir_json_put_float(float value, weir_strbuf_t* out) {
  if (put_special(value, out)) return;
  bool is_negative = signbit(value);
  if (value == 0) weir_strbuf_puts(out, is_negative ? "-0.0" : "0.0");
  if (value == 0 || put_float_fast(fabsf(value), is_negative, out)) return;
  char text[40];
  for (int precision = 6; precision <= 9; ++precision) {
    snprintf(text, sizeof(text), "%.*g", precision, (double)value);
    if (strtof(text, NULL) == value) break;
  }
  put_text(text, out);
}

void weir_json_put_double(double value, weir_strbuf_t* out) {
  if (put_special(value, out)) return;
  char text[40];
  for (int precision = 15; precision <= 17; ++precision) {
    snprintf(text, sizeof(text), "%.*g", precision, value);
    if (strtod(text, NULL) == value) break;
  }
  put_text(text, out);
}

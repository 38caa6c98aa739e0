// sobol.c — Direction numbers of Sobol's sequence: the first few of a dimension are in a table, a
// primitive polynomial over GF(2) makes the others of them.
#include "kernel/random/sobol.h"

typedef struct row_t {
  int degree;
  int dimensions;
  const char* digits;
} row_t;

static const row_t kRows[] = {
#include "kernel/random/sobol_table.inc"
};

// Reads numbers of any width, highest bit first.
typedef struct bits_t {
  const char* digits;
  int used;  // bits of the first digit
} bits_t;

static uint32_t digit_value(char digit) {
  if (digit >= '0' && digit <= '9') return (uint32_t)(digit - '0');
  if (digit >= 'A' && digit <= 'Z') return (uint32_t)(digit - 'A') + 10;
  if (digit >= 'a' && digit <= 'z') return (uint32_t)(digit - 'a') + 36;
  return digit == '(' ? 62 : 63;
}

static uint32_t read_bits(bits_t* bits, int width) {
  uint32_t value = 0;
  for (int i = 0; i < width; ++i) {
    value = value << 1 | (digit_value(*bits->digits) >> (5 - bits->used) & 1);
    if (++bits->used == 6) {
      ++bits->digits;
      bits->used = 0;
    }
  }
  return value;
}

// Where |dimension|, from 1 on, stands in the table.
static bits_t find_dimension(int64_t dimension, int* out_degree) {
  const row_t* row = kRows;
  for (--dimension; dimension >= row->dimensions; ++row) dimension -= row->dimensions;
  const int degree = row->degree;
  const int64_t width = (degree - 1) * (degree + 2) / 2;
  *out_degree = degree;
  return (bits_t){.digits = row->digits + dimension * ((width + 5) / 6)};
}

void weir_sobol_directions(int64_t dimension, uint32_t out_directions[WEIR_SOBOL_BITS]) {
  uint32_t* m = out_directions;  // number j is below 2^(j + 1) until the end
  int degree = WEIR_SOBOL_BITS;
  uint32_t inner = 0;
  if (dimension == 0) {
    for (int j = 0; j < degree; ++j) m[j] = 1;
  } else {
    bits_t bits = find_dimension(dimension, &degree);
    inner = read_bits(&bits, degree - 1);
    for (int j = 0; j < degree; ++j) m[j] = read_bits(&bits, j) << 1 | 1;
  }
  for (int j = degree; j < WEIR_SOBOL_BITS; ++j) {
    m[j] = m[j - degree] ^ m[j - degree] << degree;
    for (int k = 1; k < degree; ++k) {
      if (inner >> (degree - 1 - k) & 1) m[j] ^= m[j - k] << k;
    }
  }
  for (int j = 0; j < WEIR_SOBOL_BITS; ++j) m[j] <<= WEIR_SOBOL_BITS - 1 - j;
}

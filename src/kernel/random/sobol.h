// sobol.h — Sobol's sequence: points that fill the unit cube evenly.
#ifndef WEIR_KERNEL_RANDOM_SOBOL_H_
#define WEIR_KERNEL_RANDOM_SOBOL_H_

#include "base/base.h"

enum {
  WEIR_SOBOL_BITS = 31,         // of a coordinate, and of the number of a point
  WEIR_SOBOL_DIMENSIONS = 1111  // that the table has
};

// The direction numbers of one dimension, below WEIR_SOBOL_DIMENSIONS.
void weir_sobol_directions(int64_t dimension, uint32_t out_directions[WEIR_SOBOL_BITS]);

// Coordinate of point |index|, from 1 on, by the directions of its dimension: in units of 2^-31.
WEIR_INLINE uint32_t weir_sobol_at(const uint32_t directions[WEIR_SOBOL_BITS], uint32_t index) {
  uint32_t value = 0;
  uint32_t gray = index ^ index >> 1;
  for (int bit = 0; gray != 0; ++bit, gray >>= 1) {
    if (gray & 1) value ^= directions[bit];
  }
  return value;
}

#endif  // WEIR_KERNEL_RANDOM_SOBOL_H_

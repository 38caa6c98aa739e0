// twister.h — The Mersenne Twister of 64 bits (MT19937-64), and the order that the GNU C++ library
// makes of it: TensorFlow's order of files is that. A value type, thread-confined.
#ifndef WEIR_KERNEL_RANDOM_TWISTER_H_
#define WEIR_KERNEL_RANDOM_TWISTER_H_

#include "base/base.h"

enum { WEIR_TWISTER_SIZE = 312 };
typedef struct weir_twister_t {
  uint64_t state[WEIR_TWISTER_SIZE];
  int next;  // of them
} weir_twister_t;

void weir_twister_seed(weir_twister_t* twister, uint64_t seed);
uint64_t weir_twister_next(weir_twister_t* twister);
// Puts |count| pointers, fewer than 2^32, in a random order.
void weir_twister_shuffle(weir_twister_t* twister, char** items, size_t count);

#endif  // WEIR_KERNEL_RANDOM_TWISTER_H_

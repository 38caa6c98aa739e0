// siphash.h — SipHash-2-4: a hash with a key of 128 bits, the same everywhere, for which nobody
// without the key can find texts that collide.
#ifndef WEIR_BASE_SIPHASH_H_
#define WEIR_BASE_SIPHASH_H_

#include "base/base.h"

uint64_t weir_siphash(const uint64_t key[2], const void* data, size_t size);

#endif  // WEIR_BASE_SIPHASH_H_

// fingerprint.h — The 64-bit fingerprint of bytes (FarmHash's, frozen by its authors): the same in
// every process, on every machine and in TensorFlow, so it may be stored in files and models.
#ifndef WEIR_BASE_FINGERPRINT_H_
#define WEIR_BASE_FINGERPRINT_H_

#include "base/base.h"

uint64_t weir_fingerprint64(const void* data, size_t size);
// MurmurHash64A with the seed of TensorFlow's Hash64, which older formats and orders depend on.
uint64_t weir_murmur64(const void* data, size_t size);
uint64_t weir_murmur64_seeded(const void* data, size_t size, uint64_t seed);

#endif  // WEIR_BASE_FINGERPRINT_H_

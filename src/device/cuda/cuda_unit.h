// cuda_unit.h — A CUDA source on its way to machine code: compiled by a thread of a pool, beside
// others, or by whoever needs it before one has begun. Thread-safe.
#ifndef WEIR_DEVICE_CUDA_UNIT_H_
#define WEIR_DEVICE_CUDA_UNIT_H_

#include "base/thread.h"

typedef struct cuda_unit_t cuda_unit_t;

// See weir_cuda_compile. Nothing begins yet.
WEIR_MUST_USE weir_status_t* weir_cuda_unit_create(const char* name, const char* source,
                                                   int architecture, cuda_unit_t** out_unit);
cuda_unit_t* weir_cuda_unit_retain(cuda_unit_t* unit);
void weir_cuda_unit_release(cuda_unit_t* unit);  // NULL-safe
// A thread of |pool|, which may be gone before the unit, compiles it when it has time.
void weir_cuda_unit_start(cuda_unit_t* unit, weir_pool_t* pool);
// Compiles it here, if nobody has begun; does not wait.
void weir_cuda_unit_assist(cuda_unit_t* unit);
// Releases a unit that nobody waits for: what has not begun will not.
void weir_cuda_unit_abandon(cuda_unit_t* unit);  // NULL-safe
// Returns when it is compiled, by this thread if need be: the waiting never depends on the pool.
// |out_code| lives as long as the unit.
WEIR_MUST_USE weir_status_t* weir_cuda_unit_finish(cuda_unit_t* unit, const char** out_code);

#endif  // WEIR_DEVICE_CUDA_UNIT_H_

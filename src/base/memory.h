// memory.h — How much memory there is. The system promises more than it has and ends the process
// that takes it at its word, so large blocks are refused before they are asked for.
#ifndef WEIR_BASE_MEMORY_H_
#define WEIR_BASE_MEMORY_H_

#include "base/base.h"

// Bytes this process can have: the machine's memory, or what its control group may use of it.
size_t weir_memory_limit(void);
// Bytes it has now; 0 when the system does not tell.
size_t weir_memory_resident(void);

// Bytes allocated and not freed, as the C library or a sanitizer counts them; 0 when none does.
// What the C library keeps ready for each thread counts, too.
size_t weir_memory_allocated(void);

#define WEIR_LARGE_BLOCK ((size_t)4 << 20)  // smaller ones are not worth asking for
// Whether the process cannot have |size| bytes more.
bool weir_memory_lacks(size_t size);

#endif  // WEIR_BASE_MEMORY_H_

// mapping_guard.h — Pages of mapped files that cannot be read or written: the disk is full, or
// fails, or somebody shortened the file. The system ends a process that touches one (SIGBUS), and
// with it all that has nothing to do with the file.
//
// A guarded range is given a page of zeros there instead, of this process alone, and is lost from
// then on: one line of standard error says so at once, and who owns the range asks before he
// trusts it. Addresses in no guarded range are left to who handled SIGBUS before. Thread-safe.
#ifndef WEIR_FILE_MAPPING_GUARD_H_
#define WEIR_FILE_MAPPING_GUARD_H_

#include "base/base.h"

typedef struct weir_guard_t weir_guard_t;

// Guards |size| bytes of |path| mapped at |data|. NULL without memory.
weir_guard_t* weir_guard_add(const void* data, size_t size, const char* path);
// When the range is no longer mapped. May be NULL.
void weir_guard_remove(weir_guard_t* guard);
// NULL or DATA_LOSS, which names the file.
WEIR_MUST_USE weir_status_t* weir_guard_check(const weir_guard_t* guard);

#endif  // WEIR_FILE_MAPPING_GUARD_H_

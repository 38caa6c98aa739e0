// live.h — Which handles of users are in use: ending one twice is told of, where it would free
// memory twice.
#ifndef WEIR_BASE_LIVE_H_
#define WEIR_BASE_LIVE_H_

#include "base/base.h"

// Part of what the handle stands for. Thread-safe.
typedef struct weir_live_t weir_live_t;
struct weir_live_t {
  const void* handle;
  weir_live_t* next;
};

void weir_live_add(weir_live_t* entry, const void* handle);
// Whether |handle|, which may point to freed memory, was in use. It is not from now on.
bool weir_live_remove(const void* handle);
// Aborts saying what |fault| the |argument| of |function| has, and which calls led there.
void weir_abort_on(const char* function, const char* argument, const char* fault)
    __attribute__((noreturn));
// Aborts saying that |function| was given an |argument| that has ended before.
void weir_abort_ended(const char* function, const char* argument) __attribute__((noreturn));

#endif  // WEIR_BASE_LIVE_H_

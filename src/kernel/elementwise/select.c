// select.c — Runs of elements chosen by a condition, for every size of element.
#include "kernel/elementwise/select.h"

#include <string.h>

#include "kernel/simd.h"

typedef uint8_t bytes1_t __attribute__((may_alias));
typedef uint16_t bytes2_t __attribute__((may_alias));
typedef uint32_t bytes4_t __attribute__((may_alias));
typedef uint64_t bytes8_t __attribute__((may_alias));

#define T bytes1_t
#define NAME select_1
#include "kernel/elementwise/select.inc"
#define T bytes2_t
#define NAME select_2
#include "kernel/elementwise/select.inc"
#define T bytes4_t
#define NAME select_4
#include "kernel/elementwise/select.inc"
#define T bytes8_t
#define NAME select_8
#include "kernel/elementwise/select.inc"

static void select_any(const weir_select_run_t* r, size_t size) {
  for (size_t i = 0; i < (size_t)r->count; ++i) {
    const char* t = (const char*)r->t + i * (size_t)r->t_step * size;
    const char* e = (const char*)r->e + i * (size_t)r->e_step * size;
    memmove((char*)r->y + i * size, r->condition[i * (size_t)r->condition_step] ? t : e, size);
  }
}

void weir_select_run(const weir_select_run_t* run, size_t size) {
  switch (size) {
    case 1: select_1(run); return;
    case 2: select_2(run); return;
    case 4: select_4(run); return;
    case 8: select_8(run); return;
    default: select_any(run, size); return;
  }
}

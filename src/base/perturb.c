// perturb.c — The generator behind perturbed runs: one stream a thread, by splitmix64.
#include "base/perturb.h"

#if WEIR_HAVE_PERTURB
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic(uint64_t) seed;        // 0: off
static _Atomic(uint64_t) start;       // counts weir_perturb_start: threads begin new streams
static _Atomic(uint64_t) stream;      // number of the next thread to draw
static _Thread_local uint64_t begun;  // the start this thread's stream belongs to, plus one
static _Thread_local uint64_t state;

static void read_environment(void) {
  const char* text = getenv("WEIR_PERTURB");
  if (text) atomic_store(&seed, strtoull(text, NULL, 0));
}

void weir_perturb_start(uint64_t new_seed) {
  pthread_once(&once, read_environment);
  atomic_store(&seed, new_seed);
  atomic_store(&stream, 0);
  atomic_fetch_add(&start, 1);
}

bool weir_perturb_is_on(void) {
  pthread_once(&once, read_environment);
  return atomic_load_explicit(&seed, memory_order_relaxed) != 0;  // a setting of the whole program
}

static uint64_t next(void) {
  uint64_t now = atomic_load(&start) + 1;
  if (begun != now) {
    begun = now;
    state = atomic_load(&seed) ^ atomic_fetch_add(&stream, 1) * UINT64_C(0xd1342543de82ef95);
  }
  uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

size_t weir_perturb_draw(size_t count) {
  return weir_perturb_is_on() && count > 1 ? (size_t)(next() % count) : 0;
}

void weir_perturb_pause(void) {
  if (!weir_perturb_is_on()) return;
  uint64_t draw = next() % 64;
  if (draw < 6) sched_yield();
  if (draw == 6) nanosleep(&(struct timespec){.tv_nsec = (long)(next() % 50000)}, NULL);
}
#endif

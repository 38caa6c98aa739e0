// thread.c — Mutexes, condition variables on the monotonic clock, clocks, and the CPU count.
#include "base/thread.h"

#include <errno.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "base/perturb.h"

#define NS_A_SECOND 1000000000

void weir_mutex_init(weir_mutex_t* mutex) {
  WEIR_CHECK(pthread_mutex_init(&mutex->raw, NULL) == 0);
}
void weir_mutex_destroy(weir_mutex_t* mutex) { pthread_mutex_destroy(&mutex->raw); }

// The wrappers are the primitives of the analysis, so it cannot look into them.
WEIR_NO_THREAD_SAFETY void weir_mutex_lock(weir_mutex_t* mutex) {
  weir_perturb_pause();
  WEIR_CHECK(pthread_mutex_lock(&mutex->raw) == 0);
}
WEIR_NO_THREAD_SAFETY bool weir_mutex_try_lock(weir_mutex_t* mutex) {
  return pthread_mutex_trylock(&mutex->raw) == 0;
}
WEIR_NO_THREAD_SAFETY void weir_mutex_unlock(weir_mutex_t* mutex) {
  WEIR_CHECK(pthread_mutex_unlock(&mutex->raw) == 0);
  weir_perturb_pause();
}

void weir_cond_init(weir_cond_t* cond) {
  pthread_condattr_t attributes;
  WEIR_CHECK(pthread_condattr_init(&attributes) == 0);
  WEIR_CHECK(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0);
  WEIR_CHECK(pthread_cond_init(&cond->raw, &attributes) == 0);
  pthread_condattr_destroy(&attributes);
}

void weir_cond_destroy(weir_cond_t* cond) { pthread_cond_destroy(&cond->raw); }

void weir_cond_wait(weir_cond_t* cond, weir_mutex_t* mutex) {
  WEIR_CHECK(pthread_cond_wait(&cond->raw, &mutex->raw) == 0);
}

bool weir_cond_wait_until(weir_cond_t* cond, weir_mutex_t* mutex, int64_t deadline_ns) {
  if (deadline_ns < 0) deadline_ns = 0;
  struct timespec deadline = {.tv_sec = (time_t)(deadline_ns / NS_A_SECOND),
                              .tv_nsec = (long)(deadline_ns % NS_A_SECOND)};
  int error = pthread_cond_timedwait(&cond->raw, &mutex->raw, &deadline);
  WEIR_CHECK(error == 0 || error == ETIMEDOUT);
  return error == 0;
}

void weir_cond_signal(weir_cond_t* cond) { pthread_cond_signal(&cond->raw); }
void weir_cond_broadcast(weir_cond_t* cond) { pthread_cond_broadcast(&cond->raw); }

int64_t weir_clock_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * NS_A_SECOND + now.tv_nsec;
}

int64_t weir_wall_clock_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int weir_cpu_count(void) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) {
    int count = CPU_COUNT(&allowed);
    if (count > 0) return count;
  }
  long online = sysconf(_SC_NPROCESSORS_ONLN);  // more CPUs than cpu_set_t holds
  return online > 0 ? (int)online : 1;
}

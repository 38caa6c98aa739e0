// wrong_clock.c — A wall clock that is wrong, for a process that loads this first (LD_PRELOAD): by
// as many seconds as the file named by WEIR_WRONG_CLOCK says in eight bytes, now or later. The
// steady clock stays as it is, as it does on machines whose time is set.
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#pragma GCC visibility push(default)  // these stand in for the C library's

static const volatile int64_t* wrong_by;

__attribute__((constructor)) static void open_file(void) {
  const char* path = getenv("WEIR_WRONG_CLOCK");
  const int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  void* memory = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*wrong_by), PROT_READ, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) abort();
  wrong_by = memory;
  close(fd);
}

int clock_gettime(clockid_t clock, struct timespec* out) {
  const long error = syscall(SYS_clock_gettime, clock, out);
  if (!error && clock == CLOCK_REALTIME && wrong_by) out->tv_sec += *wrong_by;
  return (int)error;
}

int gettimeofday(struct timeval* restrict out, void* restrict zone) {
  struct timespec now;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  *out = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
  return 0;
}

int timespec_get(struct timespec* out, int base) {
  return base == TIME_UTC && !clock_gettime(CLOCK_REALTIME, out) ? base : 0;
}

time_t time(time_t* out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out) *out = now.tv_sec;
  return now.tv_sec;
}

// memory.c — The memory of the machine, of the control group, and of this process.
#include "base/memory.h"

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_SANITIZER 1
size_t __sanitizer_get_current_allocated_bytes(void);
#else
#define HAS_SANITIZER 0
#endif

static size_t limit;
static pthread_once_t limit_once = PTHREAD_ONCE_INIT;

// The first number of a small file; |otherwise| when it has none ("max").
static size_t read_number(const char* path, size_t otherwise) {
  char text[64] = "";
  FILE* file = fopen(path, "re");
  if (!file) return otherwise;
  char* end = text;
  unsigned long long value = fgets(text, sizeof(text), file) ? strtoull(text, &end, 10) : 0;
  fclose(file);
  return end > text ? (size_t)value : otherwise;
}

static void find_limit(void) {
  long pages = sysconf(_SC_PHYS_PAGES);
  long page_size = sysconf(_SC_PAGESIZE);
  limit = pages > 0 && page_size > 0 ? (size_t)pages * (size_t)page_size : SIZE_MAX;
  // As a container sees its own group: versions 2 and 1.
  limit = WEIR_MIN(limit, read_number("/sys/fs/cgroup/memory.max", SIZE_MAX));
  limit = WEIR_MIN(limit, read_number("/sys/fs/cgroup/memory/memory.limit_in_bytes", SIZE_MAX));
}

size_t weir_memory_limit(void) {
  pthread_once(&limit_once, find_limit);
  return limit;
}

size_t weir_memory_resident(void) {
  unsigned long long whole = 0, resident = 0;
  FILE* file = fopen("/proc/self/statm", "re");
  if (!file) return 0;
  if (fscanf(file, "%llu %llu", &whole, &resident) != 2) resident = 0;
  fclose(file);
  return (size_t)resident * (size_t)sysconf(_SC_PAGESIZE);
}

size_t weir_memory_allocated(void) {
#if HAS_SANITIZER
  return __sanitizer_get_current_allocated_bytes();
#elif defined(__GLIBC__)
  struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
#else
  return 0;
#endif
}

bool weir_memory_lacks(size_t size) {
  size_t most = weir_memory_limit();
  return size > most || weir_memory_resident() > most - size;
}

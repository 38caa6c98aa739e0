// log.c — Diagnostics to stderr, one line a message.
#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define LOG_DEFAULT_LEVEL 2
#define LOG_SILENT_LEVEL 3

static atomic_int min_level = -1;  // not read yet

// Weir's own variable wins. Anything that is not one digit 0…3 is as good as unset.
static int read_level(void) {
  static const char* const names[] = {"WEIR_LOG_LEVEL", "TF_CPP_MIN_LOG_LEVEL"};
  for (size_t i = 0; i < WEIR_COUNT_OF(names); ++i) {
    const char* text = getenv(names[i]);
    if (!text || text[0] < '0' || text[0] > '0' + LOG_SILENT_LEVEL || text[1] != '\0') continue;
    return text[0] - '0';
  }
  return LOG_DEFAULT_LEVEL;
}

void weir_log_read_level(void) {
  atomic_store_explicit(&min_level, read_level(), memory_order_relaxed);
}

bool weir_log_is_on(weir_log_level_t level) {
  // Relaxed: who reads it at the same time finds the same.
  int least = atomic_load_explicit(&min_level, memory_order_relaxed);
  if (least < 0) {
    weir_log_read_level();
    least = atomic_load_explicit(&min_level, memory_order_relaxed);
  }
  return (int)level >= least;
}

// A message may hold names from outside: bytes that are not printable ASCII are shown by number, so
// that they neither forge lines nor confuse a terminal.
static void put_escaped(const char* text) {
  for (; *text; ++text) {
    unsigned char byte = (unsigned char)*text;
    if (byte >= 0x20 && byte < 0x7f) fputc(byte, stderr);
    else fprintf(stderr, "\\x%02x", byte);
  }
}

void weir_log_write(weir_log_level_t level, const char* file, int line, const char* format, ...) {
  static const char letters[] = "IWE";
  enum { LONGEST = 4096 };
  char letter = (size_t)level < sizeof(letters) - 1 ? letters[level] : 'E';
  char message[LONGEST];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof(message), format, args);
  va_end(args);
  flockfile(stderr);  // messages of several threads do not mix
  fprintf(stderr, "%c %s:%d] ", letter, file, line);
  put_escaped(message);
  fputc('\n', stderr);
  funlockfile(stderr);
}

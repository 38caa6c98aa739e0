// log.h — Diagnostics to stderr, silent by default: TF_CPP_MIN_LOG_LEVEL or WEIR_LOG_LEVEL (0 info
// … 3 fatal; default 2).
#ifndef WEIR_BASE_LOG_H_
#define WEIR_BASE_LOG_H_

#include "base/base.h"

typedef enum weir_log_level_t {
  WEIR_LOG_INFO = 0,
  WEIR_LOG_WARNING = 1,
  WEIR_LOG_ERROR = 2
} weir_log_level_t;

// Looks at the variables again; the first message does so by itself.
void weir_log_read_level(void);
bool weir_log_is_on(weir_log_level_t level);
void weir_log_write(weir_log_level_t level, const char* file, int line, const char* format, ...)
    WEIR_PRINTF(4, 5);
#define WEIR_LOG(level, ...)                                             \
  do {                                                                   \
    if (weir_log_is_on(WEIR_LOG_##level))                                \
      weir_log_write(WEIR_LOG_##level, __FILE__, __LINE__, __VA_ARGS__); \
  } while (0)

#endif  // WEIR_BASE_LOG_H_

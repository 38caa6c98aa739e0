// ucx_api.c — Opens UCX's libraries, and has them keep to our house rules: nothing on stdout, no
// handlers of signals.
#include "cluster/task/ucx_api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/library.h"
#include "base/log.h"

static ucx_api_t g_api;
static const char* g_missing;  // NULL: all is there
static pthread_once_t g_once = PTHREAD_ONCE_INIT;

enum { UCS_LOG_ERROR = 1, UCS_LOG_WARN = 2 };  // ucs_log_level_t; more is less important
enum { UCS_LOG_STOP = 0 };                     // no other handler is to see the message

// UCX's errors are mostly what we go on without: who calls it says what became of it.
static int log_message(const char* file, unsigned line, const char* function, int level,
                       const void* component, const char* format, va_list args) {
  (void)function;
  (void)component;
  if (level > UCS_LOG_WARN || !weir_log_is_on(WEIR_LOG_INFO)) return UCS_LOG_STOP;
  char text[512];
  vsnprintf(text, sizeof(text), format, args);
  weir_log_write(level > UCS_LOG_ERROR ? WEIR_LOG_INFO : WEIR_LOG_WARNING, file, (int)line,
                 "UCX: %s", text);
  return UCS_LOG_STOP;
}

static bool find_functions(void* library) {
  bool is_there = true;
#define WEIR_UCX_FIND(type, name, symbol, arguments) \
  is_there = is_there && weir_library_find(library, #symbol, &g_api.name);
  WEIR_UCX_FUNCTIONS(WEIR_UCX_FIND)
#undef WEIR_UCX_FIND
  return is_there;
}

// What the libraries do by themselves, which is not for a library to do. Without these functions
// they go on doing so.
static void calm(void* library) {
  void (*push_handler)(int (*fn)(const char* file, unsigned line, const char* function, int level,
                                 const void* component, const char* format, va_list args));
  void (*disable_signals)(void);
  if (weir_library_find(library, "ucs_log_push_handler", &push_handler)) push_handler(log_message);
  if (weir_library_find(library, "ucs_debug_disable_signals", &disable_signals)) disable_signals();
}

static void load(void) {
  void* ucs = dlopen("libucs.so.0", RTLD_NOW | RTLD_LOCAL);
  void* ucp = ucs ? dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL) : NULL;
  unsigned major = 0, minor = 0, release = 0;
  g_missing = "libucp.so.0 and libucs.so.0 are not there (Debian: libucx0)";
  if (!ucp) return;
  g_missing = "libucp.so.0 lacks functions of UCX 1.13";
  if (!find_functions(ucp) || !weir_library_find(ucs, "ucs_status_string", &g_api.status_text))
    return;
  g_api.version(&major, &minor, &release);
  if (major != UCP_MAJOR || minor < UCP_MINOR) return;
  calm(ucs);
  g_missing = NULL;
}

weir_status_t* weir_ucx_api_open(const ucx_api_t** out_api) {
  pthread_once(&g_once, load);
  if (g_missing) return WEIR_STATUS(UNAVAILABLE, "%s", g_missing);
  *out_api = &g_api;
  return NULL;
}

weir_status_t* weir_ucx_api_error(const ucx_api_t* api, const char* what, ucs_status_t code) {
  if (code == UCS_ERR_CANCELED) return WEIR_STATUS(CANCELLED, "%s: cancelled", what);
  return WEIR_STATUS(UNAVAILABLE, "%s: %s", what, api->status_text(code));
}

// cuda_compiler.c — NVRTC, and the cache before it.
#include "device/cuda/cuda_compiler.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/string.h"
#include "base/thread.h"
#include "device/cuda/cuda_cache.h"
#include "device/cuda/cuda_driver.h"
#include "file/fs.h"
#include "file/roots.h"

// ---- NVRTC ----

typedef void* rtc_program_t;
#define RTC_FUNCTIONS(FUNCTION)                                                                  \
  FUNCTION(version, nvrtcVersion, (int* out_major, int* out_minor))                              \
  FUNCTION(create, nvrtcCreateProgram,                                                           \
           (rtc_program_t * out_program, const char* source, const char* name, int header_count, \
            const char* const* headers, const char* const* header_names))                        \
  FUNCTION(destroy, nvrtcDestroyProgram, (rtc_program_t * program))                              \
  FUNCTION(compile, nvrtcCompileProgram,                                                         \
           (rtc_program_t program, int count, const char* const* options))                       \
  FUNCTION(log_size, nvrtcGetProgramLogSize, (rtc_program_t program, size_t * out_size))         \
  FUNCTION(log, nvrtcGetProgramLog, (rtc_program_t program, char* buffer))                       \
  FUNCTION(code_size, nvrtcGetCUBINSize, (rtc_program_t program, size_t * out_size))             \
  FUNCTION(code, nvrtcGetCUBIN, (rtc_program_t program, char* buffer))

static struct {
#define RTC_FIELD(name, symbol, arguments) int(*name) arguments;
  RTC_FUNCTIONS(RTC_FIELD)
#undef RTC_FIELD
} rtc;
static int version;            // 1300: 13.0
static weir_status_t* reason;  // why there is none; for the life of the process
static pthread_once_t once = PTHREAD_ONCE_INIT;

// NVRTC looks for its other half on the loader's path only; what is open already it finds, wherever
// it is.
static void open_builtins(const char* nvrtc) {
  weir_names_t paths = {0};
  weir_strbuf_t pattern = {0};
  weir_view_t folder = weir_path_parent(nvrtc);
  weir_strbuf_printf(&pattern, "%.*s/libnvrtc-builtins.so.*", WEIR_VIEW_ARG(folder));
  weir_status_t* status = weir_strbuf_finish(&pattern);
  weir_roots_suspend();
  if (!status) status = weir_fs_glob(pattern.data, &paths);
  weir_roots_resume();
  for (size_t i = 0; i < paths.count && !status; ++i)
    dlopen(paths.items[i], RTLD_NOW | RTLD_GLOBAL);
  weir_status_destroy(status);  // without it NVRTC says what it lacks
  weir_strbuf_free(&pattern);
  weir_names_free(&paths);
}

static weir_status_t* open_rtc(void) {
  // $WEIR_NVRTC is for where it is not on the loader's path: a wheel of PyPI's.
  const char* given = getenv("WEIR_NVRTC");
  const char* const sonames[] = {given ? given : "libnvrtc.so.13", given ? NULL : "libnvrtc.so.12",
                                 NULL};
#define RTC_SYMBOL(name, symbol, arguments) #symbol,
  static const char* const symbols[] = {RTC_FUNCTIONS(RTC_SYMBOL)};
#undef RTC_SYMBOL
  int major = 0, minor = 0;
  if (given) open_builtins(given);
  WEIR_TRY(weir_cuda_open(sonames, symbols, WEIR_COUNT_OF(symbols), &rtc));
  rtc.version(&major, &minor);
  version = 100 * major + minor;
  return NULL;
}

static void open_once(void) { reason = open_rtc(); }

static weir_status_t* wrong_source(rtc_program_t program, const char* name) {
  size_t size = 0;
  char* text = rtc.log_size(program, &size) == 0 ? weir_calloc(size + 1, 1) : NULL;
  if (text) rtc.log(program, text);
  weir_status_t* status = WEIR_STATUS(INTERNAL, "%s: %s", name, text ? text : "not compiled");
  weir_free(text);
  return status;
}

static weir_status_t* take_code(rtc_program_t program, const char* name, char** out_code,
                                size_t* out_size) {
  size_t size = 0;
  if (rtc.code_size(program, &size) != 0 || size == 0) return wrong_source(program, name);
  char* code = weir_malloc(size);
  if (!code) return weir_out_of_memory();
  if (rtc.code(program, code) != 0) {
    weir_free(code);
    return wrong_source(program, name);
  }
  *out_code = code;
  *out_size = size;
  return NULL;
}

static weir_status_t* compile(const char* name, const char* source, int architecture,
                              char** out_code, size_t* out_size) {
  enum { KNOWS_SPLITTING = 1300 };
  char target[64], split[64];
  snprintf(target, sizeof(target), "--gpu-architecture=sm_%d", architecture);
  // Functions of a source beside each other: the code is the same.
  snprintf(split, sizeof(split), "--split-compile=%d", WEIR_MIN(weir_cpu_count(), 8));
  bool is_exact = strstr(source, "\n#define NO_CONTRACTION\n");
  const char* const options[] = {target, "--std=c++17", "--extra-device-vectorization",
                                 is_exact ? "--fmad=false" : "--fmad=true", split};
  int count = WEIR_COUNT_OF(options) - (version < KNOWS_SPLITTING);
  rtc_program_t program = NULL;
  if (rtc.create(&program, source, name, 0, NULL, NULL) != 0) return weir_out_of_memory();
  weir_status_t* status = NULL;
  if (rtc.compile(program, count, options) != 0) status = wrong_source(program, name);
  else status = take_code(program, name, out_code, out_size);
  rtc.destroy(&program);
  return status;
}

// ---- the cache ----

// All that the code depends on.
static weir_status_t* cache_name(const char* source, int architecture, weir_strbuf_t* out) {
  weir_strbuf_t key = {0};
  char kind[16];
  snprintf(kind, sizeof(kind), "sm_%d", architecture);
  weir_strbuf_printf(&key, "nvrtc %d %s\n", version, kind);
  weir_strbuf_puts(&key, source);
  weir_status_t* status = weir_strbuf_finish(&key);
  if (!status) status = weir_cuda_cache_name(weir_view(key.data, key.size), kind, out);
  weir_strbuf_free(&key);
  return status;
}

static weir_cuda_compile_fn_t replacement;

void weir_cuda_compiler_replace(weir_cuda_compile_fn_t own) { replacement = own; }

weir_status_t* weir_cuda_compile(const char* name, const char* source, int architecture,
                                 char** out_code, size_t* out_size) {
  if (replacement) return replacement(name, source, architecture, out_code, out_size);
  pthread_once(&once, open_once);
  if (reason) return weir_status_copy(reason);
  weir_strbuf_t kept = {0};
  weir_status_t* status = cache_name(source, architecture, &kept);
  if (!status && !weir_cuda_cache_load(kept.data, out_code, out_size)) {
    status = compile(name, source, architecture, out_code, out_size);
    if (!status) weir_cuda_cache_store(kept.data, *out_code, *out_size);
  }
  weir_strbuf_free(&kept);
  return status;
}

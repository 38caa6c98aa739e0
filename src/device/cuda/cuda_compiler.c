// cuda_compiler.c — NVRTC, and the cache before it.
//
// A file of the cache is named by all that its code depends on: source, options, architecture and
// NVRTC's version. It begins with the fingerprint of what follows, so that a torn or changed file
// is noticed; it is replaced as a whole, so that two processes do no harm to each other.
#include "device/cuda/cuda_compiler.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/fingerprint.h"
#include "base/log.h"
#include "base/map.h"
#include "base/string.h"
#include "device/cuda/cuda_driver.h"
#include "file/fs.h"

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
  if (!status) status = weir_fs_glob(pattern.data, &paths);
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
  char target[64];
  snprintf(target, sizeof(target), "--gpu-architecture=sm_%d", architecture);
  bool is_exact = strstr(source, "\n#define NO_CONTRACTION\n");
  const char* const options[] = {target, "--std=c++17", "--extra-device-vectorization",
                                 is_exact ? "--fmad=false" : "--fmad=true"};
  rtc_program_t program = NULL;
  if (rtc.create(&program, source, name, 0, NULL, NULL) != 0) return weir_out_of_memory();
  weir_status_t* status = NULL;
  if (rtc.compile(program, WEIR_COUNT_OF(options), options) != 0)
    status = wrong_source(program, name);
  else status = take_code(program, name, out_code, out_size);
  rtc.destroy(&program);
  return status;
}

// ---- the cache ----

static weir_status_t* cache_directory(weir_strbuf_t* out) {
  const char* own = getenv("WEIR_CACHE_DIR");
  const char* base = getenv("XDG_CACHE_HOME");
  const char* home = getenv("HOME");
  if (own && *own) weir_strbuf_puts(out, own);
  else if (base && *base) weir_strbuf_printf(out, "%s/weir", base);
  else if (home && *home) weir_strbuf_printf(out, "%s/.cache/weir", home);
  else return WEIR_STATUS(NOT_FOUND, "no place for a cache");
  return weir_strbuf_finish(out);
}

static weir_status_t* cache_path(const char* source, int architecture, weir_strbuf_t* out) {
  WEIR_TRY(cache_directory(out));
  size_t size = strlen(source);
  uint64_t first = weir_fingerprint64(source, size);
  uint64_t second = weir_hash_bytes(source, size, (uint64_t)version << 16 | (uint64_t)architecture);
  weir_strbuf_printf(out, "/%016llx%016llx.sm_%d", (unsigned long long)first,
                     (unsigned long long)second, architecture);
  return weir_strbuf_finish(out);
}

// False: it is not there, or not whole.
static bool load(const char* path, char** out_code, size_t* out_size) {
  weir_strbuf_t text = {0};
  uint64_t print = 0;
  weir_status_t* status = weir_fs_read_all(path, &text);
  bool is_whole = !status && text.size > sizeof(print);
  if (is_whole) memcpy(&print, text.data, sizeof(print));
  size_t size = is_whole ? text.size - sizeof(print) : 0;
  is_whole = is_whole && weir_fingerprint64(text.data + sizeof(print), size) == print;
  char* code = is_whole ? weir_malloc(size) : NULL;
  if (code) memcpy(code, text.data + sizeof(print), size);
  weir_strbuf_free(&text);
  weir_status_destroy(status);
  *out_code = code;
  *out_size = size;
  return code != NULL;
}

static weir_status_t* write_to(const char* directory, const char* path, const char* code,
                               size_t size) {
  uint64_t print = weir_fingerprint64(code, size);
  weir_strbuf_t text = {0};
  WEIR_TRY(weir_fs_make_directories(directory));
  weir_strbuf_append(&text, (const char*)&print, sizeof(print));
  weir_strbuf_append(&text, code, size);
  weir_status_t* status = weir_strbuf_finish(&text);
  if (!status) status = weir_fs_replace(path, weir_view(text.data, text.size));
  weir_strbuf_free(&text);
  return status;
}

// What cannot be kept is compiled again the next time.
static void store(const char* path, const char* code, size_t size) {
  weir_strbuf_t directory = {0};
  weir_status_t* status = cache_directory(&directory);
  if (!status) status = write_to(directory.data, path, code, size);
  if (status) WEIR_LOG(INFO, "a GPU kernel is not kept: %s", weir_status_message(status));
  weir_status_destroy(status);
  weir_strbuf_free(&directory);
}

weir_status_t* weir_cuda_compile(const char* name, const char* source, int architecture,
                                 char** out_code, size_t* out_size) {
  pthread_once(&once, open_once);
  if (reason) return weir_status_copy(reason);
  weir_strbuf_t path = {0};
  weir_status_t* no_cache = cache_path(source, architecture, &path);
  bool has_cache = !no_cache;
  weir_status_destroy(no_cache);
  weir_status_t* status = NULL;
  if (!has_cache || !load(path.data, out_code, out_size)) {
    status = compile(name, source, architecture, out_code, out_size);
    if (!status && has_cache) store(path.data, *out_code, *out_size);
  }
  weir_strbuf_free(&path);
  return status;
}

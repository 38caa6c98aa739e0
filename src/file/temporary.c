// temporary.c — Temporary files: names, and what killed processes left of them.
#include "file/temporary.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/map.h"
#include "base/philox.h"
#include "base/thread.h"
#include "file/roots.h"

#define MARK ".tempstate"
#define MAX_AGE_US ((int64_t)24 * 3600 * 1000000)

// ---- who writes ----

static uint64_t host;  // a hash of the machine's boot and the process namespace; 0: not known
static pthread_once_t host_once = PTHREAD_ONCE_INIT;

static void find_host(void) {
  weir_strbuf_t boot = {0};
  struct stat space;
  weir_roots_suspend();
  weir_status_t* status = weir_fs_read_all("/proc/sys/kernel/random/boot_id", &boot);
  weir_roots_resume();
  if (!status && !boot.failed && stat("/proc/self/ns/pid", &space) == 0) {
    uint64_t parts[] = {(uint64_t)space.st_dev, (uint64_t)space.st_ino};
    host = weir_hash_bytes(parts, sizeof(parts), weir_hash_bytes(boot.data, boot.size, 0));
  }
  weir_status_destroy(status);
  weir_strbuf_free(&boot);
}

void weir_temporary_append(weir_strbuf_t* path) {
  pthread_once(&host_once, find_host);
  weir_strbuf_printf(path, MARK "%016" PRIx64 "-%d-%016" PRIx64, host, (int)getpid(),
                     weir_random_entropy());
}

// ---- who is gone ----

// Reads 16 hexadecimal digits.
static bool read_hex(const char** text, uint64_t* out_value) {
  uint64_t value = 0;
  for (int i = 0; i < 16; ++i, ++*text) {
    const char* digits = "0123456789abcdef";
    const char* digit = **text ? strchr(digits, **text) : NULL;
    if (!digit) return false;
    value = value << 4 | (uint64_t)(digit - digits);
  }
  *out_value = value;
  return true;
}

// Whether |name| is one that weir_temporary_append made, and by whom.
static bool parse_name(const char* name, uint64_t* out_host, int* out_process) {
  const char* text = strstr(name, MARK);
  for (const char* next = text; next; next = strstr(next + 1, MARK)) text = next;  // the last one
  uint64_t random = 0;
  if (!text) return false;
  text += strlen(MARK);
  if (!read_hex(&text, out_host) || *text++ != '-' || !isdigit((unsigned char)*text)) return false;
  char* end = NULL;
  errno = 0;
  long process = strtol(text, &end, 10);
  if (errno || process <= 0 || process > INT32_MAX || *end != '-') return false;
  text = end + 1;
  *out_process = (int)process;
  return read_hex(&text, &random) && !*text;
}

// When a file was written, by the clock of the file system, which is not this host's where it is
// shared; INT64_MIN: there is no such file, or that is not known.
static int64_t modified_us(const char* path) {
  weir_file_info_t info = {0};
  weir_status_t* status = weir_fs_info(path, &info);
  const bool is_known = !status && !info.is_directory && info.modified_us > 0;
  weir_status_destroy(status);
  return is_known ? info.modified_us : INT64_MIN;
}

// |now_us| is when a file beside it was written just now.
static bool is_abandoned(const char* name, const char* path, int64_t now_us) {
  uint64_t by_host = 0;
  int process = 0;
  if (!parse_name(name, &by_host, &process)) return false;
  const int64_t written_us = modified_us(path);
  if (written_us == INT64_MIN) return false;
  if (host && by_host == host) return kill(process, 0) != 0 && errno == ESRCH;
  return now_us > written_us && now_us - written_us > MAX_AGE_US;
}

static weir_status_t* clean(const char* directory, int64_t now_us, weir_names_t* names,
                            weir_strbuf_t* path) {
  WEIR_TRY(weir_fs_list(directory, names));
  for (size_t i = 0; i < names->count; ++i) {
    path->size = 0;
    weir_strbuf_printf(path, "%s/%s", directory, names->items[i]);
    WEIR_TRY(weir_strbuf_finish(path));
    if (!is_abandoned(names->items[i], path->data, now_us)) continue;
    weir_status_t* status = weir_fs_remove(path->data);
    if (weir_status_code(status) != WEIR_NOT_FOUND) WEIR_TRY(status);
    weir_status_destroy(status);  // another one was quicker
  }
  return NULL;
}

void weir_temporary_clean(const char* path) {
  weir_names_t names = {0};
  weir_strbuf_t scratch = {0};
  weir_view_t parent = weir_path_parent(path);
  char* directory = parent.size ? weir_strndup(parent.data, parent.size) : weir_strdup(".");
  pthread_once(&host_once, find_host);
  weir_status_t* status =
      directory ? clean(directory, modified_us(path), &names, &scratch) : weir_out_of_memory();
  if (status)
    WEIR_LOG(WARNING, "temporary files beside '%s' stay: %s", path, weir_status_message(status));
  weir_status_destroy(status);
  weir_names_free(&names);
  weir_strbuf_free(&scratch);
  weir_free(directory);
}

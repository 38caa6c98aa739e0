// token.c — The secret that the tasks and clients of a cluster share.
#include "rpc/token.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdatomic.h>
#include <stdio.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/thread.h"

enum { TOKEN_MIN = 16, TOKEN_MAX = 1024, MOST = 4 };
enum { LOOK_NS = 1000000000 };  // between two looks at the file

#define SCHEME "Bearer "

// What a file has.
typedef struct secrets_t {
  char items[MOST][TOKEN_MAX + 1];
  int count;
} secrets_t;

struct weir_rpc_token_t {
  atomic_int refs;
  char* path;
  weir_mutex_t mu;
  secrets_t secrets;  // guarded by mu, as what follows
  struct stat seen;   // of the file, good or not
  int64_t looked_ns;  // when that was
};

// ---- the file ----

static weir_status_t* read_some(const char* path, char* buffer, size_t room, size_t* out_size,
                                struct stat* out_info) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return WEIR_STATUS(INVALID_ARGUMENT, "token file '%s': %s", path, strerror(errno));
  ssize_t size = read(fd, buffer, room);
  int error = errno;
  const bool is_open_to_all = fstat(fd, out_info) == 0 && (out_info->st_mode & S_IROTH);
  close(fd);
  if (size < 0) return WEIR_STATUS(INVALID_ARGUMENT, "token file '%s': %s", path, strerror(error));
  if (is_open_to_all)
    WEIR_LOG(ERROR, "token file '%s' can be read by every user of this machine (chmod o-r)", path);
  *out_size = (size_t)size;
  return NULL;
}

static bool is_visible(weir_view_t text) {
  for (size_t i = 0; i < text.size; ++i) {
    if (text.data[i] < 0x21 || text.data[i] > 0x7e) return false;
  }
  return true;
}

static weir_status_t* add_line(weir_view_t line, secrets_t* out) {
  if (line.size > TOKEN_MAX)
    return WEIR_STATUS(INVALID_ARGUMENT, "a line of more than %d bytes", (int)TOKEN_MAX);
  if (line.size < TOKEN_MIN)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "a line of %zu letters; a secret of less than %d can be guessed", line.size,
                       (int)TOKEN_MIN);
  if (!is_visible(line))
    return WEIR_STATUS(INVALID_ARGUMENT, "a line of other than visible ASCII letters");
  if (out->count == MOST) return WEIR_STATUS(INVALID_ARGUMENT, "more than %d lines", (int)MOST);
  memcpy(out->items[out->count], line.data, line.size);
  out->items[out->count++][line.size] = '\0';
  return NULL;
}

static weir_status_t* parse(weir_view_t text, secrets_t* out) {
  weir_view_t line = {0};
  weir_status_t* status = NULL;
  while (!status && weir_view_next(&text, '\n', &line)) {
    line = weir_view_trim(line);
    if (line.size) status = add_line(line, out);
  }
  return status || out->count ? status : WEIR_STATUS(INVALID_ARGUMENT, "no token");
}

static weir_status_t* load(const char* path, secrets_t* out, struct stat* out_info) {
  char buffer[MOST * (TOKEN_MAX + 16)];
  size_t size = 0;
  WEIR_TRY(read_some(path, buffer, sizeof(buffer), &size, out_info));
  weir_status_t* status = size == sizeof(buffer)
                              ? WEIR_STATUS(INVALID_ARGUMENT, "more than %d lines of %d bytes",
                                            (int)MOST, (int)TOKEN_MAX)
                              : parse(weir_view(buffer, size), out);
  OPENSSL_cleanse(buffer, sizeof(buffer));
  return weir_status_prefix(status, "token file '%s' has ", path);
}

static bool is_same_file(const struct stat* a, const struct stat* b) {
  return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
         a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

// Takes what the file has now. One that is no good, or gone, leaves what there was.
static void look_again_locked(weir_rpc_token_t* token) WEIR_REQUIRES(token->mu) {
  struct stat info = {0};
  secrets_t fresh = {.count = 0};
  const int64_t now_ns = weir_clock_ns();
  if (now_ns - token->looked_ns < LOOK_NS) return;
  token->looked_ns = now_ns;
  if (stat(token->path, &info) != 0 || is_same_file(&info, &token->seen)) return;
  token->seen = info;
  weir_status_t* status = load(token->path, &fresh, &info);
  if (status) {
    WEIR_LOG(ERROR, "%s; the tokens before it are kept", weir_status_message(status));
  } else {
    token->secrets = fresh;
    WEIR_LOG(INFO, "token file '%s' was read again: %d there", token->path, fresh.count);
  }
  weir_status_destroy(status);
  OPENSSL_cleanse(&fresh, sizeof(fresh));
}

// ---- life ----

weir_status_t* weir_rpc_token_open(const char* path, weir_rpc_token_t** out_token) {
  weir_rpc_token_t* token = weir_calloc(1, sizeof(*token));
  if (!token) return weir_out_of_memory();
  weir_mutex_init(&token->mu);
  atomic_init(&token->refs, 1);
  token->path = weir_strdup(path);
  weir_status_t* status =
      token->path ? load(path, &token->secrets, &token->seen) : weir_out_of_memory();
  token->looked_ns = weir_clock_ns();
  if (status) weir_rpc_token_release(token);
  else *out_token = token;
  return status;
}

weir_rpc_token_t* weir_rpc_token_retain(weir_rpc_token_t* token) {
  if (token) atomic_fetch_add(&token->refs, 1);
  return token;
}

void weir_rpc_token_release(weir_rpc_token_t* token) {
  if (!token || atomic_fetch_sub(&token->refs, 1) > 1) return;
  OPENSSL_cleanse(&token->secrets, sizeof(token->secrets));
  weir_mutex_destroy(&token->mu);
  weir_free(token->path);
  weir_free(token);
}

// ---- headers ----

void weir_rpc_token_header(weir_rpc_token_t* token, char out_value[WEIR_RPC_TOKEN_HEADER_SIZE]) {
  weir_mutex_lock(&token->mu);
  look_again_locked(token);
  snprintf(out_value, WEIR_RPC_TOKEN_HEADER_SIZE, SCHEME "%s", token->secrets.items[0]);
  weir_mutex_unlock(&token->mu);
}

void weir_rpc_token_forget(char value[WEIR_RPC_TOKEN_HEADER_SIZE]) {
  OPENSSL_cleanse(value, WEIR_RPC_TOKEN_HEADER_SIZE);
}

bool weir_rpc_token_is_in(weir_rpc_token_t* token, weir_view_t value) {
  if (value.size < strlen(SCHEME) || strncasecmp(value.data, SCHEME, strlen(SCHEME)) != 0)
    return false;
  const weir_view_t given = weir_view(value.data + strlen(SCHEME), value.size - strlen(SCHEME));
  bool is_one = false;
  weir_mutex_lock(&token->mu);
  look_again_locked(token);
  for (int i = 0; i < token->secrets.count; ++i) {
    const char* secret = token->secrets.items[i];
    is_one |= given.size == strlen(secret) && CRYPTO_memcmp(given.data, secret, given.size) == 0;
  }
  weir_mutex_unlock(&token->mu);
  return is_one;
}

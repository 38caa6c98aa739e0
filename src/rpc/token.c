// token.c — The secret that the tasks and clients of a cluster share.
#include "rpc/token.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"

enum { TOKEN_MIN = 16, TOKEN_MAX = 1024 };

#define SCHEME "Bearer "

static weir_status_t* read_some(const char* path, char* buffer, size_t room, size_t* out_size) {
  struct stat info;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return WEIR_STATUS(INVALID_ARGUMENT, "token file '%s': %s", path, strerror(errno));
  ssize_t size = read(fd, buffer, room);
  int error = errno;
  bool is_open_to_all = fstat(fd, &info) == 0 && (info.st_mode & S_IROTH);
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

weir_status_t* weir_rpc_token_load(const char* path, char** out_token) {
  char buffer[2 * TOKEN_MAX];
  size_t size = 0;
  WEIR_TRY(read_some(path, buffer, sizeof(buffer), &size));
  weir_view_t text = weir_view_trim(weir_view(buffer, size));
  weir_status_t* status = NULL;
  char* token = NULL;
  if (size == sizeof(buffer) || text.size > TOKEN_MAX) {
    status = WEIR_STATUS(INVALID_ARGUMENT, "token file '%s' has more than %d bytes", path,
                         (int)TOKEN_MAX);
  } else if (text.size < TOKEN_MIN) {
    status = WEIR_STATUS(INVALID_ARGUMENT,
                         "token file '%s' has %zu letters; a secret of less than %d can be guessed",
                         path, text.size, (int)TOKEN_MIN);
  } else if (!is_visible(text)) {
    status = WEIR_STATUS(INVALID_ARGUMENT,
                         "token file '%s' has more than one line of visible ASCII letters", path);
  } else {
    token = weir_strndup(text.data, text.size);
    if (!token) status = weir_out_of_memory();
  }
  OPENSSL_cleanse(buffer, sizeof(buffer));
  if (!status) *out_token = token;
  return status;
}

void weir_rpc_token_free(char* token) {
  if (token) OPENSSL_cleanse(token, strlen(token));
  weir_free(token);
}

weir_status_t* weir_rpc_token_header(const char* token, char** out_value) {
  weir_strbuf_t value = {0};
  weir_strbuf_printf(&value, SCHEME "%s", token);
  weir_status_t* status = weir_strbuf_finish(&value);
  if (status) weir_strbuf_free(&value);
  else *out_value = value.data;
  return status;
}

bool weir_rpc_token_is_in(const char* token, weir_view_t value) {
  if (value.size < strlen(SCHEME) || strncasecmp(value.data, SCHEME, strlen(SCHEME)) != 0)
    return false;
  weir_view_t given = weir_view(value.data + strlen(SCHEME), value.size - strlen(SCHEME));
  return given.size == strlen(token) && CRYPTO_memcmp(given.data, token, given.size) == 0;
}

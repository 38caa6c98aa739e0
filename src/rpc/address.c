// address.c — Addresses, and the sockets that listen on them or connect to them.
#include "rpc/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/string.h"

static weir_status_t* parse_unix(weir_view_t path, weir_rpc_address_t* address) {
  while (weir_view_starts_with(path, "//")) path = weir_view(path.data + 1, path.size - 1);
  if (path.size == 0 || path.size >= sizeof(address->unix_name.sun_path)) {
    return WEIR_STATUS(INVALID_ARGUMENT, "the path of a Unix socket has 1 to %zu bytes, not %zu",
                       sizeof(address->unix_name.sun_path) - 1, path.size);
  }
  address->is_unix = true;
  address->unix_name.sun_family = AF_UNIX;
  memcpy(address->unix_name.sun_path, path.data, path.size);
  return NULL;
}

weir_status_t* weir_rpc_address_parse(const char* text, weir_rpc_address_t* out_address) {
  weir_rpc_address_t address = {0};
  weir_view_t rest = weir_view_of(text);
  static const char tls[] = "grpc+tls://", plain[] = "grpc://", local[] = "unix:";
  if (weir_view_starts_with(rest, tls)) {
    address.is_tls = true;
    rest = weir_view(rest.data + strlen(tls), rest.size - strlen(tls));
  } else if (weir_view_starts_with(rest, plain)) {
    rest = weir_view(rest.data + strlen(plain), rest.size - strlen(plain));
  }
  if (weir_view_starts_with(rest, local)) {
    rest = weir_view(rest.data + strlen(local), rest.size - strlen(local));
    WEIR_TRY(parse_unix(rest, &address));
    *out_address = address;
    return NULL;
  }
  size_t colon = rest.size;
  while (colon > 0 && rest.data[colon - 1] != ':') --colon;
  weir_view_t host = weir_view(rest.data, colon ? colon - 1 : 0);
  weir_view_t port = weir_view(rest.data + colon, rest.size - colon);
  bool is_bracketed = host.size >= 2 && host.data[0] == '[' && host.data[host.size - 1] == ']';
  if (is_bracketed) host = weir_view(host.data + 1, host.size - 2);
  int64_t number = -1;
  bool is_good = colon > 0 && host.size < sizeof(address.host) && weir_parse_int64(port, &number) &&
                 number >= 0 && number <= 65535 &&
                 (is_bracketed || !memchr(host.data, ':', host.size));
  if (!is_good) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "'%s' is no address: expected host:port, [v6]:port or unix:/path",
                       text ? text : "");
  }
  if (host.size == 0) host = weir_view_of("127.0.0.1");
  memcpy(address.host, host.data, host.size);
  snprintf(address.port, sizeof(address.port), "%d", (int)number);
  *out_address = address;
  return NULL;
}

bool weir_rpc_address_is_local(const weir_rpc_address_t* address) {
  const char* host = address->host;
  return address->is_unix || strncmp(host, "127.", 4) == 0 || strcmp(host, "localhost") == 0 ||
         strcmp(host, "::1") == 0;
}

static weir_status_t* lookup(const weir_rpc_address_t* address, int flags, bool* out_is_unknown,
                             struct addrinfo** out_list) {
  struct addrinfo hints = {
      .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV};
  int error = getaddrinfo(address->host, address->port, &hints, out_list);
  *out_is_unknown = error == EAI_NONAME;
  if (!error) return NULL;
  return WEIR_STATUS(UNAVAILABLE, "cannot resolve host '%s': %s", address->host,
                     error == EAI_SYSTEM ? strerror(errno) : gai_strerror(error));
}

weir_status_t* weir_rpc_address_resolve(const weir_rpc_address_t* address, bool may_block,
                                        weir_rpc_target_t out_targets[WEIR_RPC_MAX_TARGETS],
                                        int* out_count) {
  *out_count = 0;
  if (address->is_unix) {
    memcpy(&out_targets[0].name, &address->unix_name, sizeof(address->unix_name));
    out_targets[0].size = sizeof(address->unix_name);
    *out_count = 1;
    return NULL;
  }
  struct addrinfo* list = NULL;
  bool is_unknown = false;
  weir_status_t* status = lookup(address, may_block ? 0 : AI_NUMERICHOST, &is_unknown, &list);
  if (status && is_unknown && !may_block) {  // a name, not a number: not an error yet
    weir_status_destroy(status);
    return NULL;
  }
  if (status) return status;
  for (struct addrinfo* at = list; at && *out_count < WEIR_RPC_MAX_TARGETS; at = at->ai_next) {
    weir_rpc_target_t* target = &out_targets[(*out_count)++];
    memcpy(&target->name, at->ai_addr, at->ai_addrlen);
    target->size = at->ai_addrlen;
  }
  freeaddrinfo(list);
  return NULL;
}

// Removes the file of a Unix socket whose server is gone. One that answers stays.
static void remove_stale_socket(const weir_rpc_target_t* target) {
  const struct sockaddr_un* name = (const struct sockaddr_un*)&target->name;
  struct stat info;
  if (lstat(name->sun_path, &info) != 0 || !S_ISSOCK(info.st_mode)) return;
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return;
  int rc = connect(fd, (const struct sockaddr*)&target->name, target->size);
  if (rc != 0 && errno == ECONNREFUSED) unlink(name->sun_path);
  close(fd);
}

static int open_listener(const weir_rpc_target_t* target) {
  int fd = socket(target->name.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  int one = 1, zero = 0;
  if (target->name.ss_family != AF_UNIX)
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  // [::] means all interfaces, those of IPv4 too, whatever the system's default.
  if (target->name.ss_family == AF_INET6)
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
  if (bind(fd, (const struct sockaddr*)&target->name, target->size) == 0 && listen(fd, 1024) == 0)
    return fd;
  int error = errno;
  close(fd);
  errno = error;
  return -1;
}

weir_status_t* weir_rpc_listen(const weir_rpc_address_t* address, int* out_fd) {
  weir_rpc_target_t targets[WEIR_RPC_MAX_TARGETS];
  int count = 0;
  WEIR_TRY(weir_rpc_address_resolve(address, true, targets, &count));
  int error = ENOENT;
  for (int i = 0; i < count; ++i) {
    if (address->is_unix) remove_stale_socket(&targets[i]);
    int fd = open_listener(&targets[i]);
    if (fd >= 0) {
      *out_fd = fd;
      return NULL;
    }
    error = errno;
  }
  if (address->is_unix) {
    return WEIR_STATUS(UNAVAILABLE, "cannot listen on unix:%s: %s", address->unix_name.sun_path,
                       strerror(error));
  }
  return WEIR_STATUS(UNAVAILABLE, "cannot listen on %s:%s: %s", address->host, address->port,
                     strerror(error));
}

weir_status_t* weir_rpc_connect(const weir_rpc_target_t* target, int* out_fd) {
  int fd = socket(target->name.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return WEIR_STATUS(UNAVAILABLE, "cannot open a socket: %s", strerror(errno));
  if (connect(fd, (const struct sockaddr*)&target->name, target->size) == 0 ||
      errno == EINPROGRESS || errno == EINTR) {
    *out_fd = fd;
    return NULL;
  }
  int error = errno;
  close(fd);
  char text[WEIR_RPC_NAME_SIZE];
  weir_rpc_socket_text(&target->name, text);
  return WEIR_STATUS(UNAVAILABLE, "cannot connect to %s: %s", text, strerror(error));
}

static void set_option(int fd, int level, int name, int value) {
  // All of them are improvements that a socket works without.
  (void)setsockopt(fd, level, name, &value, sizeof(value));
}

void weir_rpc_socket_tune(int fd) {
  struct sockaddr_storage name = {0};
  socklen_t size = sizeof(name);
  if (getsockname(fd, (struct sockaddr*)&name, &size) != 0 || name.ss_family == AF_UNIX) return;
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 15);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 4);
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 35000);
}

void weir_rpc_socket_text(const struct sockaddr_storage* name, char out_text[WEIR_RPC_NAME_SIZE]) {
  char host[INET6_ADDRSTRLEN] = "";
  if (name->ss_family == AF_INET) {
    const struct sockaddr_in* in = (const struct sockaddr_in*)name;
    inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host));
    snprintf(out_text, WEIR_RPC_NAME_SIZE, "%s:%d", host, ntohs(in->sin_port));
  } else if (name->ss_family == AF_INET6) {
    const struct sockaddr_in6* in6 = (const struct sockaddr_in6*)name;
    inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host));
    snprintf(out_text, WEIR_RPC_NAME_SIZE, "[%s]:%d", host, ntohs(in6->sin6_port));
  } else {
    const struct sockaddr_un* local = (const struct sockaddr_un*)name;
    bool has_path = name->ss_family == AF_UNIX && local->sun_path[0];
    snprintf(out_text, WEIR_RPC_NAME_SIZE, has_path ? "unix:%s" : "unix", local->sun_path);
  }
}

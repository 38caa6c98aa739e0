// same_host.c — Tensors between tasks of one machine, copied from memory to memory.
#include "cluster/task/same_host.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cluster/task/fields.h"
#include "wire/wire.h"

#define PIECE_SIZE ((size_t)1 << 20)  // copied at a time, by one thread
#define PIECE_COST_NS 200000.0
#define KEY_SIZE WEIR_SAME_HOST_KEY_SIZE
#define BACKLOG 1024         // places that are told and not yet looked at
#define MAX_PLACE_SIZE 4096  // of a message that tells one

enum {
  WISH_HOST = 1,  // fields of our own value in the options of a request
  WISH_AGAIN = 2,
  WISH_SOCKET = 3,
  WISH_TOKEN = 4,
  PLACE_TOKEN = 1,  // of what goes over the Unix socket
  PLACE_ADDRESS = 2,
  PLACE_WORD = 3,
  PLACE_DTYPE = 4,
  PLACE_DIM = 5,
};
_Static_assert(64 + 9 * WEIR_MAX_RANK <= MAX_PLACE_SIZE, "a place fits into its message");

// A tensor that a receiver may read.
typedef struct hold_t {
  atomic_ullong word;  // word_of the token while it is held, then 0
  weir_tensor_t* tensor;
  weir_same_host_reader_t reader;
} hold_t;

// What a receiver looks for in the producer's memory.
static uint64_t word_of(const char token[KEY_SIZE]) {
  uint64_t word;
  memcpy(&word, token, sizeof(word));
  return word | 1;
}

static weir_view_t key_of(const int64_t* id) { return weir_view((const char*)id, sizeof(*id)); }

// ---- which host ----

// 0 when the machine does not say.
static uint64_t find_host(void) {
  static const char* const spaces[] = {"/proc/self/ns/pid", "/proc/self/ns/net"};
  char boot[64] = "";
  int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  ssize_t size = read(fd, boot, sizeof(boot));
  close(fd);
  if (size <= 0) return 0;
  uint64_t host = weir_hash_bytes(boot, (size_t)size, geteuid());
  for (size_t i = 0; i < WEIR_COUNT_OF(spaces); ++i) {
    struct stat space;
    if (stat(spaces[i], &space) != 0) return 0;
    uint64_t parts[] = {(uint64_t)space.st_dev, (uint64_t)space.st_ino};
    host = weir_hash_bytes(parts, sizeof(parts), host);
  }
  return host;
}

// ---- the Unix socket ----

// In the abstract namespace. What stands before the name keeps others from having us talk to
// sockets that are not ours.
#define SOCKET_PREFIX "\0weir/same_host/"
#define PREFIX_SIZE (sizeof(SOCKET_PREFIX) - 1)
#define ADDRESS_SIZE ((socklen_t)(offsetof(struct sockaddr_un, sun_path) + PREFIX_SIZE + KEY_SIZE))

static struct sockaddr_un socket_address(const char name[KEY_SIZE]) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  memcpy(address.sun_path, SOCKET_PREFIX, PREFIX_SIZE);
  memcpy(address.sun_path + PREFIX_SIZE, name, KEY_SIZE);
  return address;
}

static int open_socket(void) {
  return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static bool start_listening(weir_same_host_t* same) {
  if (getrandom(same->name, KEY_SIZE, 0) != KEY_SIZE) return false;
  struct sockaddr_un address = socket_address(same->name);
  int fd = open_socket();
  if (fd < 0) return false;
  if (bind(fd, (struct sockaddr*)&address, ADDRESS_SIZE) != 0 || listen(fd, BACKLOG) != 0) {
    close(fd);
    return false;
  }
  same->socket = fd;
  return true;
}

// The process at the other end, as the kernel knows it. 0: none that we deal with.
static int find_peer(const weir_same_host_t* same, int fd) {
  struct ucred peer = {.pid = 0};
  socklen_t size = sizeof(peer);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return 0;
  return peer.pid > 0 && peer.pid != same->self && peer.uid == geteuid() ? peer.pid : 0;
}

static const weir_transport_vtable_t same_host_vtable;

void weir_same_host_init(weir_same_host_t* same) {
  const char* wish = getenv("WEIR_SAME_HOST");
  same->base.vtable = &same_host_vtable;
  weir_mutex_init(&same->mu);
  same->holds.owns_keys = true;
  same->refused.owns_keys = true;
  same->socket = -1;
  same->self = getpid();
  same->host = wish && !strcmp(wish, "0") ? 0 : find_host();
  if (same->host && !start_listening(same)) same->host = 0;
}

// ---- holds ----

static void hold_end(hold_t* hold) {
  if (!hold) return;
  atomic_store(&hold->word, 0);
  // Before the memory changes: pairs with the receiver's fence between elements and word.
  atomic_thread_fence(memory_order_seq_cst);
  weir_tensor_release(hold->tensor);
  weir_free(hold);
}

// Ends the holds of a step, of a connection, or all.
static void end_holds(weir_same_host_t* same, const int64_t* step_id, const uint64_t* connection) {
  hold_t* hold;
  do {
    hold = NULL;
    weir_mutex_lock(&same->mu);
    weir_map_entry_t* entry;
    for (size_t i = 0; !hold && same->holds.count && (entry = weir_map_next(&same->holds, &i));) {
      const weir_same_host_reader_t* reader = &((hold_t*)entry->value)->reader;
      if (step_id && reader->step_id != *step_id) continue;
      if (connection && reader->connection != *connection) continue;
      hold = weir_map_remove(&same->holds, entry->key);
    }
    weir_mutex_unlock(&same->mu);
    hold_end(hold);
  } while (hold);
}

void weir_same_host_end_step(weir_same_host_t* same, int64_t step_id) {
  end_holds(same, &step_id, NULL);
}

void weir_same_host_end_connection(weir_same_host_t* same, uint64_t connection) {
  end_holds(same, NULL, &connection);
}

void weir_same_host_free(weir_same_host_t* same) {
  end_holds(same, NULL, NULL);
  if (same->socket >= 0) close(same->socket);
  weir_map_free(&same->holds);
  weir_map_free(&same->offers);
  weir_map_free(&same->refused);
  weir_mutex_destroy(&same->mu);
}

int weir_same_host_count(weir_same_host_t* same) {
  weir_mutex_lock(&same->mu);
  int count = (int)same->holds.count;
  weir_mutex_unlock(&same->mu);
  return count;
}

// Puts a hold into the table. False: there is one of that number, or no memory.
static bool hold_add(weir_same_host_t* same, hold_t* hold) {
  weir_view_t key = key_of(&hold->reader.request_id);
  weir_mutex_lock(&same->mu);
  bool is_new = !weir_map_find(&same->holds, key);
  weir_status_t* status = is_new ? weir_map_put(&same->holds, key, hold) : NULL;
  weir_mutex_unlock(&same->mu);
  bool is_added = is_new && !status;
  weir_status_destroy(status);
  return is_added;
}

static void put_place(weir_strbuf_t* message, const hold_t* hold) {
  const weir_tensor_t* tensor = hold->tensor;
  weir_wire_put_bytes(message, PLACE_TOKEN, hold->reader.token, KEY_SIZE);
  weir_wire_put_fixed64(message, PLACE_ADDRESS, (uintptr_t)tensor->data);
  weir_wire_put_fixed64(message, PLACE_WORD, (uintptr_t)&hold->word);
  weir_wire_put_int(message, PLACE_DTYPE, weir_tensor_type(tensor));
  for (int i = 0; i < tensor->rank; ++i)
    weir_wire_put_fixed64(message, PLACE_DIM, (uint64_t)tensor->dims[i]);
}

// Tells the reader where the tensor is. Nothing here waits.
static bool tell_place(const weir_same_host_t* same, const hold_t* hold) {
  struct sockaddr_un address = socket_address(hold->reader.socket);
  weir_strbuf_t message = {0};
  put_place(&message, hold);
  int fd = message.failed ? -1 : open_socket();
  bool is_told = fd >= 0 && connect(fd, (struct sockaddr*)&address, ADDRESS_SIZE) == 0 &&
                 find_peer(same, fd) != 0 &&
                 send(fd, message.data, message.size, MSG_NOSIGNAL) == (ssize_t)message.size;
  if (fd >= 0) close(fd);
  weir_strbuf_free(&message);
  return is_told;
}

bool weir_same_host_hold(weir_same_host_t* same, const weir_same_host_reader_t* reader,
                         weir_tensor_t* tensor) {
  bool is_fit = same->host && reader->request_id && weir_dtype_is_plain(weir_tensor_type(tensor)) &&
                weir_tensor_byte_size(tensor) >= WEIR_TRANSPORT_MIN_SIZE;
  hold_t* hold = is_fit ? weir_malloc(sizeof(*hold)) : NULL;
  if (!hold) return false;
  atomic_init(&hold->word, word_of(reader->token));
  hold->reader = *reader;
  hold->tensor = weir_tensor_retain(tensor);
  // Told before it is in the table: from then on, others may end it.
  if (tell_place(same, hold) && hold_add(same, hold)) return true;
  hold_end(hold);
  return false;
}

weir_tensor_t* weir_same_host_take(weir_same_host_t* same, int64_t request_id,
                                   uint64_t connection) {
  weir_tensor_t* tensor = NULL;
  weir_view_t key = key_of(&request_id);
  weir_mutex_lock(&same->mu);
  hold_t* hold = weir_map_find(&same->holds, key);
  if (hold && hold->reader.connection == connection) weir_map_remove(&same->holds, key);
  else hold = NULL;
  weir_mutex_unlock(&same->mu);
  if (hold) tensor = weir_tensor_retain(hold->tensor);
  hold_end(hold);
  return tensor;
}

// ---- what requests and responses say ----

void weir_same_host_ask_again(int64_t request_id, weir_strbuf_t* request) {
  weir_strbuf_t value = {0};
  weir_wire_put_fixed64(&value, WISH_AGAIN, (uint64_t)request_id);
  weir_transport_put_offer(request, WEIR_SAME_HOST_URL, &value);
  weir_strbuf_free(&value);
}

void weir_same_host_offer(weir_same_host_t* same, const void* peer, weir_same_host_offer_t* offer,
                          weir_strbuf_t* request) {
  int64_t id = (int64_t)(uintptr_t)peer;
  if (!same->host || getrandom(offer->token, KEY_SIZE, 0) != KEY_SIZE) return;
  weir_view_t token = weir_view(offer->token, KEY_SIZE);
  weir_mutex_lock(&same->mu);
  bool is_refused = weir_map_find(&same->refused, key_of(&id)) != NULL;
  weir_status_t* status = is_refused ? NULL : weir_map_put(&same->offers, token, offer);
  weir_mutex_unlock(&same->mu);
  offer->is_made = !is_refused && !status;
  weir_status_destroy(status);
  if (!offer->is_made) return;
  weir_strbuf_t value = {0};
  weir_wire_put_fixed64(&value, WISH_HOST, same->host);
  weir_wire_put_bytes(&value, WISH_SOCKET, same->name, KEY_SIZE);
  weir_wire_put_bytes(&value, WISH_TOKEN, offer->token, KEY_SIZE);
  weir_transport_put_offer(request, WEIR_SAME_HOST_URL, &value);
  weir_strbuf_free(&value);
}

void weir_same_host_withdraw(weir_same_host_t* same, weir_same_host_offer_t* offer) {
  if (!offer->is_made) return;
  weir_mutex_lock(&same->mu);
  weir_map_remove(&same->offers, weir_view(offer->token, KEY_SIZE));
  weir_mutex_unlock(&same->mu);
  weir_free(offer->place);
  *offer = (weir_same_host_offer_t){.is_made = false};
}

void weir_same_host_refuse(weir_same_host_t* same, const void* peer) {
  int64_t id = (int64_t)(uintptr_t)peer;
  weir_mutex_lock(&same->mu);
  weir_status_t* status = weir_map_put(&same->refused, key_of(&id), same);
  weir_mutex_unlock(&same->mu);
  weir_status_destroy(status);  // without memory for it, the next tensor tries again
}

weir_same_host_wish_t weir_same_host_wish(const weir_same_host_t* same, weir_view_t offer) {
  weir_same_host_wish_t wish = {.is_here = false};
  weir_wire_reader_t reader = weir_wire_reader(offer);
  while (weir_wire_next(&reader)) {
    bool is_number = reader.type == WEIR_WIRE_FIXED64, is_bytes = reader.type == WEIR_WIRE_BYTES;
    if (reader.field == WISH_HOST && is_number) wish.is_here = reader.value == same->host;
    if (reader.field == WISH_AGAIN && is_number) wish.again = weir_wire_int(&reader);
    if (reader.field == WISH_SOCKET && is_bytes) wish.socket = reader.bytes;
    if (reader.field == WISH_TOKEN && is_bytes) wish.token = reader.bytes;
  }
  if (!same->host || wish.socket.size != KEY_SIZE || wish.token.size != KEY_SIZE)
    wish.is_here = false;
  return wish;
}

// ---- places that producers tell ----

static bool parse_place(weir_view_t message, weir_same_host_place_t* place,
                        weir_view_t* out_token) {
  weir_wire_reader_t reader = weir_wire_reader(message);
  *out_token = weir_view("", 0);
  while (weir_wire_next(&reader)) {
    switch (reader.field) {
      case PLACE_TOKEN:
        if (reader.type == WEIR_WIRE_BYTES) *out_token = reader.bytes;
        break;
      case PLACE_ADDRESS: place->address = reader.value; break;
      case PLACE_WORD: place->word = reader.value; break;
      case PLACE_DTYPE: place->dtype = weir_wire_int(&reader); break;
      case PLACE_DIM:
        if (place->rank == WEIR_MAX_RANK) return false;
        place->dims[place->rank++] = weir_wire_int(&reader);
        break;
      default: break;
    }
  }
  return !reader.error;
}

// Reads what a process says, and notes it if it is waited for.
static void note_place(weir_same_host_t* same, int fd) {
  char message[MAX_PLACE_SIZE];
  weir_view_t token;
  weir_same_host_place_t place = {.process = find_peer(same, fd)};
  if (!place.process) return;
  ssize_t size = recv(fd, message, sizeof(message), MSG_TRUNC);
  if (size <= 0 || (size_t)size > sizeof(message)) return;
  if (!parse_place(weir_view(message, (size_t)size), &place, &token)) return;
  weir_same_host_offer_t* offer = weir_map_find(&same->offers, token);
  if (!offer || offer->place) return;
  offer->place = weir_malloc(sizeof(place));
  if (offer->place) *offer->place = place;
}

// Looks at what producers said until |offer| is answered. NULL: it is not.
static const weir_same_host_place_t* find_place(weir_same_host_t* same,
                                                weir_same_host_offer_t* offer) {
  weir_mutex_lock(&same->mu);
  for (int i = 0; i < BACKLOG && !offer->place; ++i) {
    int fd = accept4(same->socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) break;
    note_place(same, fd);
    close(fd);
  }
  const weir_same_host_place_t* place = offer->place;  // which does not change any more
  weir_mutex_unlock(&same->mu);
  return place;
}

// ---- reading ----

// No memory is asked for that the machine does not have: the peer's cannot have been larger.
static weir_status_t* create_tensor(const weir_same_host_place_t* place,
                                    weir_tensor_t** out_tensor) {
  weir_dtype_t dtype = (weir_dtype_t)place->dtype;
  if (place->dtype <= 0 || place->dtype > INT32_MAX || !weir_dtype_is_plain(dtype))
    return WEIR_STATUS(INVALID_ARGUMENT, "elements of type %lld cannot be read from memory",
                       (long long)place->dtype);
  int64_t count = 0;
  WEIR_TRY(weir_shape_count(dtype, place->rank, place->dims, &count));
  long pages = sysconf(_SC_PHYS_PAGES), page_size = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page_size > 0 &&
      (uint64_t)count * weir_dtype_size(dtype) / (uint64_t)page_size > (uint64_t)pages)
    return WEIR_STATUS(RESOURCE_EXHAUSTED, "%lld elements are more than this machine can hold",
                       (long long)count);
  return weir_tensor_create(dtype, place->rank, place->dims, out_tensor);
}

// Copies |size| bytes from another process. 0, or the error's number.
static int read_memory(int process, uint64_t address, void* data, size_t size) {
  for (size_t done = 0; done < size;) {
    struct iovec here = {.iov_base = (char*)data + done, .iov_len = size - done};
    struct iovec there = {.iov_base = (void*)(uintptr_t)(address + done), .iov_len = size - done};
    ssize_t count = process_vm_readv(process, &here, 1, &there, 1, 0);
    if (count < 0 && errno != EINTR) return errno;
    if (count == 0) return EFAULT;
    if (count > 0) done += (size_t)count;
  }
  return 0;
}

typedef struct copy_t {
  const weir_same_host_place_t* place;
  char* data;
  size_t size;
  atomic_int error;
} copy_t;

static void copy_pieces(void* arg, int64_t begin, int64_t end) {
  copy_t* copy = arg;
  for (int64_t i = begin; i < end && !atomic_load(&copy->error); ++i) {
    size_t at = (size_t)i * PIECE_SIZE;
    int error = read_memory(copy->place->process, copy->place->address + at, copy->data + at,
                            WEIR_MIN(PIECE_SIZE, copy->size - at));
    if (error) atomic_store(&copy->error, error);
  }
}

// Fills |tensor|, and makes sure that these were its elements to the end.
static weir_status_t* copy_tensor(weir_pool_t* pool, const weir_same_host_place_t* place,
                                  uint64_t expected, weir_tensor_t* tensor) {
  copy_t copy = {.place = place, .data = tensor->data, .size = weir_tensor_byte_size(tensor)};
  int64_t pieces = (int64_t)((copy.size + PIECE_SIZE - 1) / PIECE_SIZE);
  uint64_t word = 0;
  atomic_init(&copy.error, 0);
  weir_pool_for(pool, pieces, PIECE_COST_NS, copy_pieces, &copy);
  atomic_thread_fence(memory_order_seq_cst);  // pairs with the one in hold_end
  int error = atomic_load(&copy.error);
  if (!error) error = read_memory(place->process, place->word, &word, sizeof(word));
  if (error)
    return WEIR_STATUS(UNAVAILABLE, "process %d's memory cannot be read: %s", place->process,
                       strerror(error));
  if (word != expected)
    return WEIR_STATUS(DATA_LOSS, "process %d does not hold the tensor it speaks of",
                       place->process);
  return NULL;
}

weir_status_t* weir_same_host_read(weir_same_host_t* same, weir_pool_t* pool,
                                   weir_same_host_offer_t* offer, weir_tensor_t** out_tensor) {
  const weir_same_host_place_t* place = find_place(same, offer);
  weir_tensor_t* tensor = NULL;
  if (!place)
    return WEIR_STATUS(UNAVAILABLE, "no process that may be read told the place of the tensor");
  weir_status_t* status = create_tensor(place, &tensor);
  if (!status) status = copy_tensor(pool, place, word_of(offer->token), tensor);
  if (status) {
    weir_tensor_release(tensor);
    return status;
  }
  // Statistics, ordered with nothing.
  atomic_fetch_add_explicit(&same->tensors_read, 1, memory_order_relaxed);
  atomic_fetch_add_explicit(&same->bytes_read, (long long)weir_tensor_byte_size(tensor),
                            memory_order_relaxed);
  *out_tensor = tensor;
  return NULL;
}

// ---- the transport ----

static weir_same_host_t* same_of(weir_transport_t* base) { return (weir_same_host_t*)base; }

static void* transport_offer(weir_transport_t* base, const void* peer, weir_strbuf_t* request) {
  weir_same_host_offer_t* offer = weir_calloc(1, sizeof(*offer));
  if (offer) weir_same_host_offer(same_of(base), peer, offer, request);
  if (offer && offer->is_made) return offer;
  weir_free(offer);
  return NULL;
}

static void transport_withdraw(weir_transport_t* base, void* take_offer) {
  weir_same_host_withdraw(same_of(base), take_offer);
  weir_free(take_offer);
}

static void run_collect(void* arg) {
  weir_same_host_offer_t* offer = arg;
  weir_tensor_t* tensor = NULL;
  weir_status_t* status = weir_same_host_read(offer->same, offer->same->pool, offer, &tensor);
  offer->done(offer->arg, status, tensor);
}

static void transport_collect(weir_transport_t* base, void* self, weir_collected_fn_t done,
                              void* arg) {
  weir_same_host_offer_t* offer = self;
  offer->same = same_of(base);
  offer->done = done;
  offer->arg = arg;
  weir_pool_submit(offer->same->pool, run_collect, offer);
}

static void transport_refuse(weir_transport_t* base, const void* peer) {
  weir_same_host_refuse(same_of(base), peer);
}

static bool transport_pass(weir_transport_t* base, const weir_passing_t* passing) {
  weir_same_host_wish_t wish = weir_same_host_wish(same_of(base), passing->offer);
  if (!wish.is_here) return false;
  weir_same_host_reader_t reader = {.request_id = passing->request_id,
                                    .step_id = passing->step_id,
                                    .connection = passing->connection};
  memcpy(reader.socket, wish.socket.data, wish.socket.size);
  memcpy(reader.token, wish.token.data, wish.token.size);
  if (!weir_same_host_hold(same_of(base), &reader, passing->tensor)) return false;
  passing->done(passing->arg, NULL);
  return true;
}

static const weir_transport_vtable_t same_host_vtable = {.url = WEIR_SAME_HOST_URL,
                                                         .offer = transport_offer,
                                                         .withdraw = transport_withdraw,
                                                         .collect = transport_collect,
                                                         .ask_again = weir_same_host_ask_again,
                                                         .refuse = transport_refuse,
                                                         .pass = transport_pass};

// same_host.c — Tensors between tasks of one machine, copied from memory to memory.
#include "cluster/same_host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "wire/wire.h"

#define TYPE_URL "weir/same_host"
#define PIECE_SIZE ((size_t)1 << 20)  // copied at a time, by one thread
#define PIECE_COST_NS 200000.0

enum {
  ANY_TYPE_URL = 1,  // fields of google.protobuf.Any
  ANY_VALUE = 2,
  REQUEST_OPTIONS = 6,  // transport_options of RecvTensorRequest and RecvTensorResponse
  RESPONSE_OPTIONS = 4,
  RESPONSE_REQUIRE_ACK = 5,
  WISH_HOST = 1,  // of our own value in a request
  WISH_AGAIN = 2,
  PLACE_PROCESS = 1,  // and in a response
  PLACE_ADDRESS = 2,
  PLACE_WORD = 3,  // address of the word that proves the hold
  PLACE_DTYPE = 4,
  PLACE_DIM = 5,
};

// A tensor that a receiver may read.
typedef struct hold_t {
  atomic_ullong word;  // word_of the request while it is held, then 0
  weir_tensor_t* tensor;
  weir_same_host_reader_t reader;
} hold_t;

// What a receiver looks for in the producer's memory. It is not the number itself, which is in the
// receiver's memory too, where a peer that lies could point.
static uint64_t word_of(int64_t request_id) {
  uint64_t word = weir_hash_mix((uint64_t)request_id ^ UINT64_C(0x77656972686f6c64));
  return word ? word : 1;
}

static weir_view_t key_of(const int64_t* id) { return weir_view((const char*)id, sizeof(*id)); }

// ---- which host ----

// 0 when the machine does not say.
static uint64_t find_host(void) {
  char boot[64] = "";
  struct stat space;
  int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  ssize_t size = read(fd, boot, sizeof(boot));
  close(fd);
  if (size <= 0 || stat("/proc/self/ns/pid", &space) != 0) return 0;
  uint64_t parts[] = {(uint64_t)space.st_dev, (uint64_t)space.st_ino, (uint64_t)geteuid()};
  uint64_t host = weir_hash_bytes(boot, (size_t)size, 0);
  return weir_hash_bytes(parts, sizeof(parts), host);
}

void weir_same_host_init(weir_same_host_t* same) {
  const char* wish = getenv("WEIR_SAME_HOST");
  weir_mutex_init(&same->mu);
  same->holds.owns_keys = true;
  same->refused.owns_keys = true;
  same->host = wish && !strcmp(wish, "0") ? 0 : find_host();
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
  weir_map_free(&same->holds);
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

bool weir_same_host_hold(weir_same_host_t* same, const weir_same_host_reader_t* reader,
                         weir_tensor_t* tensor, weir_strbuf_t* response) {
  bool is_fit = same->host && reader->request_id && weir_dtype_is_plain(weir_tensor_type(tensor)) &&
                weir_tensor_byte_size(tensor) >= WEIR_SAME_HOST_MIN_SIZE;
  hold_t* hold = is_fit ? weir_malloc(sizeof(*hold)) : NULL;
  if (!hold) return false;
  atomic_init(&hold->word, word_of(reader->request_id));
  hold->reader = *reader;
  hold->tensor = weir_tensor_retain(tensor);
  size_t size = response->size;
  size_t any = weir_wire_begin(response, RESPONSE_OPTIONS);
  weir_wire_put_string(response, ANY_TYPE_URL, TYPE_URL);
  size_t place = weir_wire_begin(response, ANY_VALUE);
  weir_wire_put_int(response, PLACE_PROCESS, getpid());
  weir_wire_put_fixed64(response, PLACE_ADDRESS, (uintptr_t)tensor->data);
  weir_wire_put_fixed64(response, PLACE_WORD, (uintptr_t)&hold->word);
  weir_wire_put_int(response, PLACE_DTYPE, weir_tensor_type(tensor));
  for (int i = 0; i < tensor->rank; ++i)
    weir_wire_put_fixed64(response, PLACE_DIM, (uint64_t)tensor->dims[i]);
  weir_wire_end(response, place);
  weir_wire_end(response, any);
  weir_wire_put_bool(response, RESPONSE_REQUIRE_ACK, true);
  if (!response->failed && hold_add(same, hold)) return true;
  response->size = size;
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

// The value of an Any of our type; empty otherwise.
static weir_view_t find_value(weir_view_t any) {
  weir_view_t url = weir_view("", 0), value = weir_view("", 0);
  weir_wire_reader_t reader = weir_wire_reader(any);
  while (weir_wire_next(&reader)) {
    if (reader.field == ANY_TYPE_URL && reader.type == WEIR_WIRE_BYTES) url = reader.bytes;
    if (reader.field == ANY_VALUE && reader.type == WEIR_WIRE_BYTES) value = reader.bytes;
  }
  return !reader.error && weir_view_is(url, TYPE_URL) ? value : weir_view("", 0);
}

static void put_wish(weir_strbuf_t* request, uint32_t field, uint64_t value) {
  size_t any = weir_wire_begin(request, REQUEST_OPTIONS);
  weir_wire_put_string(request, ANY_TYPE_URL, TYPE_URL);
  size_t wish = weir_wire_begin(request, ANY_VALUE);
  weir_wire_put_fixed64(request, field, value);
  weir_wire_end(request, wish);
  weir_wire_end(request, any);
}

bool weir_same_host_offer(weir_same_host_t* same, const void* peer, weir_strbuf_t* request) {
  if (!same->host) return false;
  int64_t id = (int64_t)(uintptr_t)peer;
  weir_mutex_lock(&same->mu);
  bool is_refused = weir_map_find(&same->refused, key_of(&id)) != NULL;
  weir_mutex_unlock(&same->mu);
  if (!is_refused) put_wish(request, WISH_HOST, same->host);
  return !is_refused;
}

void weir_same_host_ask_again(int64_t request_id, weir_strbuf_t* request) {
  put_wish(request, WISH_AGAIN, (uint64_t)request_id);
}

void weir_same_host_refuse(weir_same_host_t* same, const void* peer) {
  int64_t id = (int64_t)(uintptr_t)peer;
  weir_mutex_lock(&same->mu);
  weir_status_t* status = weir_map_put(&same->refused, key_of(&id), same);
  weir_mutex_unlock(&same->mu);
  weir_status_destroy(status);  // without memory for it, the next tensor tries again
}

weir_same_host_wish_t weir_same_host_wish(const weir_same_host_t* same,
                                          weir_view_t transport_options) {
  weir_same_host_wish_t wish = {.is_here = false};
  weir_wire_reader_t reader = weir_wire_reader(find_value(transport_options));
  while (weir_wire_next(&reader)) {
    if (reader.type != WEIR_WIRE_FIXED64) continue;
    if (reader.field == WISH_HOST) wish.is_here = same->host && reader.value == same->host;
    if (reader.field == WISH_AGAIN) wish.again = weir_wire_int(&reader);
  }
  return wish;
}

bool weir_same_host_find(weir_view_t transport_options, weir_view_t* out_place) {
  *out_place = find_value(transport_options);
  return out_place->size > 0;
}

// ---- reading ----

typedef struct place_t {
  int64_t process;
  uint64_t address, word;
  int64_t dtype;
  int rank;
  int64_t dims[WEIR_MAX_RANK];
} place_t;

static weir_status_t* parse_place(weir_view_t value, place_t* place) {
  weir_wire_reader_t reader = weir_wire_reader(value);
  while (weir_wire_next(&reader)) {
    switch (reader.field) {
      case PLACE_PROCESS: place->process = weir_wire_int(&reader); break;
      case PLACE_ADDRESS: place->address = reader.value; break;
      case PLACE_WORD: place->word = reader.value; break;
      case PLACE_DTYPE: place->dtype = weir_wire_int(&reader); break;
      case PLACE_DIM:
        if (place->rank == WEIR_MAX_RANK)
          return WEIR_STATUS(INVALID_ARGUMENT, "a tensor has more than %d dimensions",
                             WEIR_MAX_RANK);
        place->dims[place->rank++] = weir_wire_int(&reader);
        break;
      default: break;
    }
  }
  WEIR_TRY(weir_wire_check(&reader, "place of a tensor"));
  if (place->process <= 0 || place->process > INT32_MAX)
    return WEIR_STATUS(INVALID_ARGUMENT, "%lld is no process", (long long)place->process);
  if (place->dtype <= 0 || place->dtype > INT32_MAX ||
      !weir_dtype_is_plain((weir_dtype_t)place->dtype))
    return WEIR_STATUS(INVALID_ARGUMENT, "elements of type %lld cannot be read from memory",
                       (long long)place->dtype);
  return NULL;
}

// No memory is asked for that the machine does not have: the peer's cannot have been larger.
static weir_status_t* create_tensor(const place_t* place, weir_tensor_t** out_tensor) {
  weir_dtype_t dtype = (weir_dtype_t)place->dtype;
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
static int read_memory(int64_t process, uint64_t address, void* data, size_t size) {
  for (size_t done = 0; done < size;) {
    struct iovec here = {.iov_base = (char*)data + done, .iov_len = size - done};
    struct iovec there = {.iov_base = (void*)(uintptr_t)(address + done), .iov_len = size - done};
    ssize_t count = process_vm_readv((pid_t)process, &here, 1, &there, 1, 0);
    if (count < 0 && errno != EINTR) return errno;
    if (count == 0) return EFAULT;
    if (count > 0) done += (size_t)count;
  }
  return 0;
}

typedef struct copy_t {
  const place_t* place;
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
static weir_status_t* copy_tensor(weir_pool_t* pool, const place_t* place, int64_t request_id,
                                  weir_tensor_t* tensor) {
  copy_t copy = {.place = place, .data = tensor->data, .size = weir_tensor_byte_size(tensor)};
  int64_t pieces = (int64_t)((copy.size + PIECE_SIZE - 1) / PIECE_SIZE);
  uint64_t word = 0;
  atomic_init(&copy.error, 0);
  weir_pool_for(pool, pieces, PIECE_COST_NS, copy_pieces, &copy);
  atomic_thread_fence(memory_order_seq_cst);  // pairs with the one in hold_end
  int error = atomic_load(&copy.error);
  if (!error) error = read_memory(place->process, place->word, &word, sizeof(word));
  if (error)
    return WEIR_STATUS(UNAVAILABLE, "process %lld's memory cannot be read: %s",
                       (long long)place->process, strerror(error));
  if (word != word_of(request_id))
    return WEIR_STATUS(DATA_LOSS, "process %lld does not hold the tensor it speaks of",
                       (long long)place->process);
  return NULL;
}

weir_status_t* weir_same_host_read(weir_same_host_t* same, weir_pool_t* pool, weir_view_t value,
                                   int64_t request_id, weir_tensor_t** out_tensor) {
  place_t place = {.process = 0};
  weir_tensor_t* tensor = NULL;
  weir_status_t* status = parse_place(value, &place);
  if (!status) status = create_tensor(&place, &tensor);
  if (!status) status = copy_tensor(pool, &place, request_id, tensor);
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

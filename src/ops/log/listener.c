// listener.c — Who wants to have what is printed.
#include "ops/log/listener.h"

#include "base/alloc.h"
#include "base/thread.h"

typedef struct listener_t {
  weir_print_fn_t fn;
  struct listener_t* next;
} listener_t;

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static listener_t* first;  // guarded by mu; kept to the end of the process, as is each of them

weir_status_t* weir_print_listen(weir_print_fn_t fn) {
  listener_t* listener = weir_malloc(sizeof(*listener));
  if (!listener) return weir_out_of_memory();
  pthread_mutex_lock(&mu);
  *listener = (listener_t){.fn = fn, .next = first};
  first = listener;
  pthread_mutex_unlock(&mu);
  return NULL;
}

bool weir_print_tell(const char* text) {
  pthread_mutex_lock(&mu);
  const listener_t* told = first;
  pthread_mutex_unlock(&mu);
  for (const listener_t* listener = told; listener; listener = listener->next) listener->fn(text);
  return told;
}

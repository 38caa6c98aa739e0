// live.c — A list of the handles in use: a program has few, and ends them rarely.
#include "base/live.h"

#include "base/thread.h"

static weir_mutex_t mu = {PTHREAD_MUTEX_INITIALIZER};
static weir_live_t* entries;  // guarded by |mu|

void weir_live_add(weir_live_t* entry, const void* handle) {
  weir_mutex_lock(&mu);
  *entry = (weir_live_t){.handle = handle, .next = entries};
  entries = entry;
  weir_mutex_unlock(&mu);
}

bool weir_live_remove(const void* handle) {
  weir_mutex_lock(&mu);
  weir_live_t** link = &entries;
  while (*link && (*link)->handle != handle) link = &(*link)->next;
  bool is_live = *link != NULL;
  if (is_live) *link = (*link)->next;
  weir_mutex_unlock(&mu);
  return is_live;
}

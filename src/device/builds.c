// builds.c — The list of a thread.
#include "device/builds.h"

#include "base/alloc.h"

static _Thread_local weir_builds_t* gathered;

weir_builds_t* weir_builds_gather(weir_builds_t* builds) {
  weir_builds_t* before = gathered;
  gathered = builds;
  return before;
}

weir_status_t* weir_builds_add(weir_build_t* build) {
  weir_builds_t* builds = gathered;
  if (!builds) return NULL;
  if (!WEIR_GROW(builds->items, builds->capacity, builds->count + 1)) return weir_out_of_memory();
  builds->items[builds->count].build = build;
  builds->items[builds->count++].owner = builds->owner;
  return NULL;
}

weir_status_t* weir_builds_finish(weir_builds_t* builds, int32_t* out_owner) {
  weir_status_t* status = NULL;
  // Others take the first; so this thread begins with the last.
  for (size_t i = builds->count; i-- > 0;) builds->items[i].build->assist(builds->items[i].build);
  for (size_t i = 0; i < builds->count && !status; ++i) {
    status = builds->items[i].build->finish(builds->items[i].build);
    if (status) *out_owner = builds->items[i].owner;
  }
  weir_builds_free(builds);
  return status;
}

void weir_builds_free(weir_builds_t* builds) {
  weir_free(builds->items);
  *builds = (weir_builds_t){0};
}

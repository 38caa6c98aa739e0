// service.c — How many requests there are at a time, and for how long.
#include "serving/service.h"

weir_status_t* weir_service_enter(weir_service_t* service) {
  int before = atomic_fetch_add(&service->running, 1);
  if (before < service->max_requests) return NULL;
  atomic_fetch_sub(&service->running, 1);
  return WEIR_STATUS(RESOURCE_EXHAUSTED, "%d requests are under way, which is the limit", before);
}

void weir_service_leave(weir_service_t* service) { atomic_fetch_sub(&service->running, 1); }

int64_t weir_service_deadline(const weir_service_t* service) {
  return service->timeout_ns > 0 ? weir_clock_ns() + service->timeout_ns : INT64_MAX;
}

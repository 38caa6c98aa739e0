// monitor.c — Waiting that cancellation ends.
#include "ops/data/monitor.h"

void weir_monitor_init(weir_monitor_t* monitor) {
  weir_mutex_init(&monitor->mu);
  weir_cond_init(&monitor->changed);
}

void weir_monitor_destroy(weir_monitor_t* monitor) {
  weir_cond_destroy(&monitor->changed);
  weir_mutex_destroy(&monitor->mu);
}

static void wake(void* arg) {
  weir_monitor_t* monitor = arg;
  weir_mutex_lock(&monitor->mu);
  weir_cond_broadcast(&monitor->changed);
  weir_mutex_unlock(&monitor->mu);
}

weir_cancel_token_t weir_monitor_enter(weir_monitor_t* monitor, weir_cancel_t* cancel) {
  weir_cancel_token_t token = weir_cancel_register(cancel, wake, monitor);
  weir_mutex_lock(&monitor->mu);
  return token;
}

void weir_monitor_leave(weir_monitor_t* monitor, weir_cancel_t* cancel, weir_cancel_token_t token) {
  weir_mutex_unlock(&monitor->mu);
  // Outside the mutex, which a callback under way takes.
  if (token) (void)weir_cancel_deregister(cancel, token);
}

bool weir_monitor_wait(weir_monitor_t* monitor, weir_cancel_t* cancel) {
  if (weir_cancel_is_cancelled(cancel)) return false;
  weir_cond_wait(&monitor->changed, &monitor->mu);
  return true;
}

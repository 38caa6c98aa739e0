// signals.c — SIGTERM and SIGINT: the first ends what serves in order, the second at once.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

typedef struct watcher_t {
  sigset_t signals;
  const char* name;  // of the verb
  pthread_mutex_t mu;
  void (*stop)(void* arg);  // guarded by mu; NULL once nobody is to be told
  void* arg;
} watcher_t;

static watcher_t watcher = {.mu = PTHREAD_MUTEX_INITIALIZER};  // outlives its thread

static void set_signals(sigset_t* signals) {
  sigemptyset(signals);
  sigaddset(signals, SIGTERM);
  sigaddset(signals, SIGINT);
}

void block_ending_signals(void) {
  sigset_t signals;
  set_signals(&signals);
  pthread_sigmask(SIG_BLOCK, &signals, NULL);
}

static void* watch_signals(void* arg) {
  (void)arg;
  int number = 0;
  sigwait(&watcher.signals, &number);
  pthread_mutex_lock(&watcher.mu);
  if (watcher.stop) watcher.stop(watcher.arg);
  pthread_mutex_unlock(&watcher.mu);
  sigwait(&watcher.signals, &number);
  fprintf(stderr, "weir %s: signal %d again: ending at once\n", watcher.name, number);
  _exit(128 + number);
}

bool watch_ending_signals(const char* name, void (*stop)(void* arg), void* arg) {
  pthread_t thread;
  watcher.name = name;
  watcher.stop = stop;
  watcher.arg = arg;
  set_signals(&watcher.signals);
  int error = pthread_create(&thread, NULL, watch_signals, NULL);
  if (error) fprintf(stderr, "weir %s: cannot start a thread: %s\n", name, strerror(error));
  else pthread_detach(thread);
  return error == 0;
}

void unwatch_ending_signals(void) {
  pthread_mutex_lock(&watcher.mu);
  watcher.stop = NULL;
  pthread_mutex_unlock(&watcher.mu);
}

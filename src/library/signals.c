// signals.c — Catching SIGINT and SIGTERM for the time of a training loop.
//
// The handler may do next to nothing: it sets a flag and writes a byte to a pipe, where a thread
// waits that may do everything. Any thread may be the one the handler runs on, hence the atomics.
#include "signals.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static const int kSignals[] = {SIGINT, SIGTERM};
enum { SIGNAL_COUNT = sizeof(kSignals) / sizeof(kSignals[0]) };
static const char kCaught = 's', kEnd = 'e';  // bytes of the pipe

static atomic_int is_caught;
static struct sigaction before[SIGNAL_COUNT];  // what the process did about them
static int hearing_end;                        // of the pipe
static atomic_int telling_end;

// The thread that waits, and what for.
static pthread_t watcher;
static int grace_ms;  // negative: no end
static void (*call_overdue)(void* arg);
static void* overdue_arg;

static void tell(char byte) {
  const int saved = errno;
  while (write(telling_end, &byte, 1) < 0 && errno == EINTR) continue;
  errno = saved;
}

static void note(int number) {
  (void)number;
  is_caught = 1;
  tell(kCaught);
}

// Waits for a byte of the pipe; false when |timeout_ms| pass without one.
static bool hear(int timeout_ms, char* out_byte) {
  struct pollfd pipe_end = {.fd = hearing_end, .events = POLLIN};
  if (poll(&pipe_end, 1, timeout_ms) == 0) return false;
  return read(hearing_end, out_byte, 1) == 1;
}

static void* watch(void* arg) {
  char byte = 0;
  (void)arg;
  while (byte != kCaught && byte != kEnd) hear(-1, &byte);
  // Another signal within the grace, of the other kind, is impatience.
  if (byte == kCaught && (!hear(grace_ms, &byte) || byte == kCaught)) call_overdue(overdue_arg);
  while (byte != kEnd) hear(-1, &byte);
  return NULL;
}

// The program's own threads get its signals.
static int start_watcher(void) {
  sigset_t all, mask;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &mask);
  const int error = pthread_create(&watcher, NULL, watch, NULL);
  pthread_sigmask(SIG_SETMASK, &mask, NULL);
  return error;
}

static weir_status_t* start_watching(void) {
  int ends[2];
  if (pipe(ends))
    return WEIR_STATUS(RESOURCE_EXHAUSTED, "fit: no pipe for signals: %s", strerror(errno));
  for (int i = 0; i < 2; ++i) fcntl(ends[i], F_SETFD, FD_CLOEXEC);
  hearing_end = ends[0];
  telling_end = ends[1];
  const int error = start_watcher();
  if (!error) return NULL;
  close(ends[0]);
  close(ends[1]);
  return WEIR_STATUS(RESOURCE_EXHAUSTED, "fit: no thread for signals: %s", strerror(error));
}

weir_status_t* weir_signals_catch(double grace_seconds, void (*overdue)(void* arg), void* arg) {
  struct sigaction action;
  const double ms = 1000 * grace_seconds;
  grace_ms = ms < 0 ? -1 : ms < INT_MAX ? (int)ms : INT_MAX;
  call_overdue = overdue;
  overdue_arg = arg;
  is_caught = 0;
  WEIR_TRY(start_watching());
  memset(&action, 0, sizeof(action));
  action.sa_handler = note;
  action.sa_flags = (int)(SA_RESTART | SA_RESETHAND);  // a second one ends the program
  sigemptyset(&action.sa_mask);
  for (int i = 0; i < SIGNAL_COUNT; ++i) {
    sigaction(kSignals[i], NULL, &before[i]);
    if (before[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, NULL);
  }
  return NULL;
}

bool weir_signals_caught(void) { return is_caught != 0; }

void weir_signals_restore(void) {
  for (int i = 0; i < SIGNAL_COUNT; ++i) sigaction(kSignals[i], &before[i], NULL);
  tell(kEnd);
  pthread_join(watcher, NULL);
  close(hearing_end);
  close(telling_end);
  is_caught = 0;
}

// signals.c — Catching SIGINT and SIGTERM for the time of a training loop.
#include "signals.h"

#include <signal.h>
#include <string.h>

static const int kSignals[] = {SIGINT, SIGTERM};
enum { SIGNAL_COUNT = sizeof(kSignals) / sizeof(kSignals[0]) };

static volatile sig_atomic_t is_caught;
static struct sigaction before[SIGNAL_COUNT];  // what the process did about them

static void note(int number) {
  (void)number;
  is_caught = 1;
}

void weir_signals_catch(void) {
  struct sigaction action;
  memset(&action, 0, sizeof(action));
  action.sa_handler = note;
  action.sa_flags = (int)(SA_RESTART | SA_RESETHAND);  // a second one ends the program
  sigemptyset(&action.sa_mask);
  is_caught = 0;
  for (int i = 0; i < SIGNAL_COUNT; ++i) {
    sigaction(kSignals[i], NULL, &before[i]);
    if (before[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, NULL);
  }
}

bool weir_signals_caught(void) { return is_caught != 0; }

void weir_signals_restore(void) {
  for (int i = 0; i < SIGNAL_COUNT; ++i) sigaction(kSignals[i], &before[i], NULL);
  is_caught = 0;
}

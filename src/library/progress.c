// progress.c — How far a training run is: a bar on a terminal, lines now and then elsewhere.
#include "progress.h"

#include <stdio.h>
#include <unistd.h>

enum { WIDTH = 30, LOG_EVERY = 100 };
static const double kRedraw = 0.1;  // seconds: more often is only flicker

void weir_progress_begin(weir_progress_t* p, const weir_fit_options_t* options, int64_t step,
                         double now) {
  *p = (weir_progress_t){.first = step,
                         .shown_step = step,
                         .last = options->max_steps,
                         .item_name = options->item_name ? options->item_name : "items",
                         .every = options->log_every > 0 ? options->log_every : LOG_EVERY,
                         .began = now,
                         .is_quiet = options->is_quiet,
                         .is_terminal = isatty(STDOUT_FILENO) == 1};
}

static void print_bar(int64_t step, int64_t last) {
  const int done = (int)(WIDTH * step / last);
  printf("[%.*s%*s] ", done, "##############################", WIDTH - done, "");
}

static void print_line(const weir_progress_t* p, int64_t step, float loss, double seconds) {
  const double steps = (double)(step - p->first);
  printf("step %lld", (long long)step);
  if (p->last > 0) printf("/%lld", (long long)p->last);
  printf("  loss %.4f", (double)loss);
  if (seconds <= 0 || steps <= 0) return;
  if (p->items > 0) printf("  %.0f %s/s", (double)p->items / seconds, p->item_name);
  else printf("  %.1f steps/s", steps / seconds);
  if (p->last <= 0) return;
  const long left = (long)(seconds / steps * (double)(p->last - step));
  printf("  %ld:%02ld left", left / 60, left % 60);
}

void weir_progress_show(weir_progress_t* p, int64_t step, float loss, double now) {
  if (p->is_quiet) return;
  // A step counted by others, too, may pass the one at which a line is due.
  const bool is_next = step / p->every != p->shown_step / p->every;
  const bool is_due = p->is_terminal ? now - p->shown >= kRedraw : is_next;
  if (!is_due && !p->is_last) return;
  p->shown = now;
  p->shown_step = step;
  if (p->is_terminal) fputs("\r", stdout);
  if (p->is_terminal && p->last > 0) print_bar(step < p->last ? step : p->last, p->last);
  print_line(p, step, loss, now - p->began);
  fputs(p->is_terminal ? "\033[K" : "\n", stdout);  // what is left of a longer line goes
  fflush(stdout);
  p->is_open = p->is_terminal;
}

void weir_progress_note(weir_progress_t* p, const char* what, const char* why) {
  if (p->is_quiet) return;
  weir_progress_end(p);
  fprintf(stderr, "%s: %s\n", what, why);
}

void weir_progress_end(weir_progress_t* p) {
  if (!p->is_open) return;
  fputs("\n", stdout);
  fflush(stdout);
  p->is_open = false;
}

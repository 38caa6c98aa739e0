// progress.h — How far a training run is: a bar on a terminal, lines now and then elsewhere. Not
// public.
#ifndef WEIR_LIBRARY_PROGRESS_H_
#define WEIR_LIBRARY_PROGRESS_H_

#include "weir/trainer.h"

typedef struct weir_progress_t {
  int64_t first, last;    // steps before, and at the end; last 0: not known
  int64_t items;          // since the beginning
  const char* item_name;  // borrowed
  int64_t every;          // steps between lines
  int64_t shown_step;     // of the last line
  double began, shown;    // seconds
  bool is_quiet;
  bool is_terminal;
  bool is_open;  // the terminal's line is not ended
  bool is_last;  // no step follows
} weir_progress_t;

void weir_progress_begin(weir_progress_t* progress, const weir_fit_options_t* options, int64_t step,
                         double now);
void weir_progress_show(weir_progress_t* progress, int64_t step, float loss, double now);
void weir_progress_end(weir_progress_t* progress);
// A line of its own on standard error: |what|, and why.
void weir_progress_note(weir_progress_t* progress, const char* what, const char* why);

#endif  // WEIR_LIBRARY_PROGRESS_H_

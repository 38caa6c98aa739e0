// perturb.h — Chance in the order of things, for tests: threads pause at the borders of locks, and
// whoever has a choice of what to do next draws.
//
// Off unless the environment has WEIR_PERTURB=SEED (or a test calls weir_perturb_start), and only
// in builds with the option WEIR_PERTURB, which the presets for tests turn on: in others these
// functions are empty. The numbers a thread draws follow from the seed and the order in which
// threads came to draw first, so that a seed replays a run as far as the system's own scheduler
// lets it. Thread-safe.
#ifndef WEIR_BASE_PERTURB_H_
#define WEIR_BASE_PERTURB_H_

#include "base/base.h"

#if WEIR_HAVE_PERTURB
void weir_perturb_start(uint64_t seed);  // 0: stops
bool weir_perturb_is_on(void);
// A number in [0, count); 0 when off.
size_t weir_perturb_draw(size_t count);
// Lets other threads go first, for a moment, or not.
void weir_perturb_pause(void);
#else
WEIR_INLINE void weir_perturb_start(uint64_t seed) { (void)seed; }
WEIR_INLINE bool weir_perturb_is_on(void) { return false; }
WEIR_INLINE size_t weir_perturb_draw(size_t count) { return (void)count, 0; }
WEIR_INLINE void weir_perturb_pause(void) {}
#endif

#endif  // WEIR_BASE_PERTURB_H_

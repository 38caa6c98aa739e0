// suppress.c — Non-maximum suppression.
#include "kernel/image/suppress.h"

#include <math.h>

#include "base/alloc.h"
#include "base/interrupt.h"
#include "kernel/image/boxes.h"
#include "tensor/numeric.h"

typedef struct candidate_t {
  int32_t box;
  float score;
  int64_t seen;  // how many of the chosen it was compared with
} candidate_t;

typedef struct run_t {
  const weir_suppress_t* s;
  weir_box_t* boxes;      // owned; NULL with overlaps
  candidate_t* heap;      // owned: the best first
  int64_t candidates;     // in it
  weir_chosen_t* chosen;  // the result
} run_t;

// ---- candidates ----
static bool is_better(const candidate_t* a, const candidate_t* b) {
  return a->score > b->score || (a->score == b->score && a->box < b->box);
}

static void sink(run_t* r, int64_t at) {
  candidate_t* heap = r->heap;
  const candidate_t moved = heap[at];
  for (int64_t child = 2 * at + 1; child < r->candidates; child = 2 * at + 1) {
    if (child + 1 < r->candidates && is_better(&heap[child + 1], &heap[child])) ++child;
    if (!is_better(&heap[child], &moved)) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = moved;
}

static candidate_t pop(run_t* r) {
  const candidate_t best = r->heap[0];
  r->heap[0] = r->heap[--r->candidates];
  if (r->candidates > 0) sink(r, 0);
  return best;
}

static void push(run_t* r, candidate_t candidate) {
  int64_t at = r->candidates++;
  while (at > 0 && is_better(&candidate, &r->heap[(at - 1) / 2])) {
    r->heap[at] = r->heap[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  r->heap[at] = candidate;
}

static weir_status_t* set_up(run_t* r) {
  const weir_suppress_t* s = r->s;
  const size_t count = (size_t)s->count, most = (size_t)WEIR_MIN(s->most, s->count);
  r->heap = weir_alloc_array(count + 1, sizeof(candidate_t));
  r->chosen->boxes = weir_alloc_array(most + 1, sizeof(int32_t));
  r->chosen->scores = weir_alloc_array(most + 1, sizeof(float));
  if (s->boxes) r->boxes = weir_alloc_array(count + 1, sizeof(weir_box_t));
  if (!r->heap || !r->chosen->boxes || !r->chosen->scores || (s->boxes && !r->boxes))
    return weir_out_of_memory();
  for (int64_t i = 0; i < s->count; ++i) {
    if (s->boxes) r->boxes[i] = weir_box_of(s->boxes + 4 * i);
    if (s->scores[i] > s->least_score)
      r->heap[r->candidates++] = (candidate_t){.box = (int32_t)i, .score = s->scores[i]};
  }
  for (int64_t i = r->candidates / 2; i-- > 0;) sink(r, i);
  return NULL;
}

// ---- suppression ----
static float rounded(const weir_suppress_t* s, float x) {
  return s->is_half ? weir_half_to_float(weir_half_from_float(x)) : x;
}

static float overlap_of(const run_t* r, int64_t a, int64_t b) {
  const weir_suppress_t* s = r->s;
  if (!s->boxes) return s->overlaps[a * s->count + b];
  return rounded(s, weir_box_overlap(&r->boxes[a], &r->boxes[b]));
}

static float weight_of(const weir_suppress_t* s, float overlap) {
  if (!(s->sigma > 0)) return overlap <= s->threshold ? 1.0f : 0.0f;
  const float scale = rounded(s, -0.5f / s->sigma);
  return rounded(s, expf(rounded(s, rounded(s, scale * overlap) * overlap)));
}

// Compares with what was chosen since it was last. False: another that overlaps is in its stead.
static bool compare(const run_t* r, candidate_t* candidate) {
  const weir_suppress_t* s = r->s;
  const int64_t seen = candidate->seen;
  candidate->seen = r->chosen->count;
  for (int64_t j = r->chosen->count - 1; j >= seen; --j) {
    const float overlap = overlap_of(r, candidate->box, r->chosen->boxes[j]);
    candidate->score = rounded(s, candidate->score * weight_of(s, overlap));
    if (!(s->sigma > 0) && overlap > s->threshold) return false;
    if (candidate->score <= s->least_score) break;
  }
  return true;
}

static weir_status_t* choose(run_t* r) {
  weir_chosen_t* chosen = r->chosen;
  for (int64_t i = 0; chosen->count < r->s->most && r->candidates > 0; ++i) {
    candidate_t candidate = pop(r);
    const float score = candidate.score;
    WEIR_TRY(weir_interrupt_poll(i));
    if (!compare(r, &candidate)) continue;
    if (candidate.score == score) {
      chosen->boxes[chosen->count] = candidate.box;
      chosen->scores[chosen->count++] = score;
    } else if (candidate.score > r->s->least_score) {
      push(r, candidate);
    }
  }
  return NULL;
}

weir_status_t* weir_suppress(const weir_suppress_t* suppress, weir_chosen_t* chosen) {
  run_t r = {.s = suppress, .chosen = chosen};
  *chosen = (weir_chosen_t){0};
  weir_status_t* status = set_up(&r);
  if (!status) status = choose(&r);
  weir_free(r.boxes);
  weir_free(r.heap);
  return status;
}

void weir_chosen_free(weir_chosen_t* chosen) {
  weir_free(chosen->boxes);
  weir_free(chosen->scores);
}

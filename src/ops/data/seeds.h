// seeds.h — Where random datasets have their seeds and numbers from: TensorFlow's, number by
// number.
#ifndef WEIR_OPS_DATA_SEEDS_H_
#define WEIR_OPS_DATA_SEEDS_H_

#include "base/philox.h"
#include "ops/data/state.h"

// Numbers of 32 bits, one at a time. A value type.
typedef struct weir_samples_t {
  weir_philox_t philox;
  uint32_t group[4];
  int used;  // of |group|
} weir_samples_t;
weir_samples_t weir_samples_create(int64_t seed, int64_t seed2);
uint32_t weir_samples_next(weir_samples_t* samples);

void weir_samples_state(weir_samples_t* samples, weir_state_t* state);

// Seeds for one walk after another: other ones each time, or the same. Thread-safe, a resource.
typedef struct weir_seeds_t weir_seeds_t;
// Seeds that are both zero are drawn.
WEIR_MUST_USE weir_status_t* weir_seeds_create(int64_t seed, int64_t seed2, bool is_renewed,
                                               weir_seeds_t** out_seeds);
weir_seeds_t* weir_seeds_retain(weir_seeds_t* seeds);
void weir_seeds_release(weir_seeds_t* seeds);  // NULL-safe
// Numbers of the next walk.
weir_samples_t weir_seeds_next(weir_seeds_t* seeds);

// Numbers of the order that single elements are found in: always the same.
weir_samples_t weir_seeds_order(const weir_seeds_t* seeds);
// Which walk is the next.
void weir_seeds_state(weir_seeds_t* seeds, weir_state_t* state);

// Seeds of each place in the tree of a walk. Where a dataset is below two others, each of them
// walks over elements in the order that it would have alone. Thread-safe.
typedef struct weir_seed_places_t weir_seed_places_t;
WEIR_MUST_USE weir_status_t* weir_seed_places_create(weir_seed_places_t** out_places);
void weir_seed_places_destroy(weir_seed_places_t* places);  // NULL-safe
// Those of all places, also where nobody walks just now.
void weir_seed_places_state(weir_seed_places_t* places, weir_state_t* state);
// The seeds at the place of |iterator|, whose dataset was given |own|; borrowed.
WEIR_MUST_USE weir_status_t* weir_seeds_at(const weir_iterator_t* iterator, weir_seeds_t* own,
                                           weir_seeds_t** out_seeds);

// Whether |dataset| shuffles what is below it and no more. TensorFlow makes one dataset of such and
// a repetition above it.
bool weir_shuffle_is_plain(const weir_data_t* dataset);
// Another such dataset over |input|, with the same seeds. Owned.
WEIR_MUST_USE weir_status_t* weir_shuffle_create_like(const weir_data_t* dataset,
                                                      weir_data_t* input,
                                                      weir_data_t** out_dataset);
// Lets a walk over such a dataset go |times| times over what is below, -1: for ever. Before the
// first element.
void weir_shuffle_set_times(weir_iterator_t* iterator, int64_t times);

// The seeds behind handle input |i|, or NULL where that is a dummy; retained.
WEIR_MUST_USE weir_status_t* weir_seeds_find(weir_kernel_ctx_t* ctx, int i,
                                             weir_seeds_t** out_seeds);

#endif  // WEIR_OPS_DATA_SEEDS_H_

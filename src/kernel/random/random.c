// random.c — Distributions over Philox words, in parallel.
#include "kernel/random/random.h"

#include <math.h>

#include "tensor/numeric.h"

#define GROUP 4  // words of one Philox call
#define LANES 8  // calls computed side by side
#define BLOCK (GROUP * LANES)
#define TRUNCATION 2.0
#define TWO_PI 6.283185307179586476925286766559

// ---- Philox, LANES counters at a time, for the vectoriser ----
static void next_block(weir_philox_t* philox, uint32_t words[BLOCK]) {
  uint32_t c0[LANES], c1[LANES], c2[LANES], c3[LANES];
  uint64_t low = philox->counter[0] | (uint64_t)philox->counter[1] << 32;
  uint64_t high = philox->counter[2] | (uint64_t)philox->counter[3] << 32;
  for (unsigned i = 0; i < LANES; ++i) {
    uint64_t lane_low = low + i;
    uint64_t lane_high = high + (lane_low < low);
    c0[i] = (uint32_t)lane_low;
    c1[i] = (uint32_t)(lane_low >> 32);
    c2[i] = (uint32_t)lane_high;
    c3[i] = (uint32_t)(lane_high >> 32);
  }
  uint32_t k0 = philox->key[0], k1 = philox->key[1];
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < LANES; ++i) {
      uint64_t a = (uint64_t)0xd2511f53u * c0[i];
      uint64_t b = (uint64_t)0xcd9e8d57u * c2[i];
      c0[i] = (uint32_t)(b >> 32) ^ c1[i] ^ k0;
      c1[i] = (uint32_t)b;
      c2[i] = (uint32_t)(a >> 32) ^ c3[i] ^ k1;
      c3[i] = (uint32_t)a;
    }
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
  for (int i = 0; i < LANES; ++i) {
    words[GROUP * i] = c0[i];
    words[GROUP * i + 1] = c1[i];
    words[GROUP * i + 2] = c2[i];
    words[GROUP * i + 3] = c3[i];
  }
  weir_philox_skip(philox, LANES);
}

// ---- words to numbers: each makes |count| elements of the words of a block ----
typedef void (*convert_fn_t)(const weir_random_spec_t* spec, const uint32_t* words, void* dst,
                             int64_t count);

WEIR_INLINE float unit_float(uint32_t word) {
  return weir_float_from_bits(127u << 23 | (word & 0x7fffffu)) - 1.0f;
}

static void uniform_float(const weir_random_spec_t* spec, const uint32_t* words, void* dst,
                          int64_t count) {
  (void)spec;
  float* out = dst;
  for (int64_t i = 0; i < count; ++i) out[i] = unit_float(words[i]);
}
static void uniform_double(const weir_random_spec_t* spec, const uint32_t* words, void* dst,
                           int64_t count) {
  (void)spec;
  double* out = dst;
  for (int64_t i = 0; i < count; ++i)
    out[i] = weir_random_to_double(words[2 * i], words[2 * i + 1]);
}
static void uniform_half(const weir_random_spec_t* spec, const uint32_t* words, void* dst,
                         int64_t count) {
  (void)spec;
  weir_half_t* out = dst;
  for (int64_t i = 0; i < count; ++i)
    out[i] = weir_half_from_float((float)(words[i] & 0x3ffu) / 1024.0f);
}
static void uniform_bfloat16(const weir_random_spec_t* spec, const uint32_t* words, void* dst,
                             int64_t count) {
  (void)spec;
  weir_bfloat16_t* out = dst;
  for (int64_t i = 0; i < count; ++i)
    out[i] = weir_bfloat16_from_float((float)(words[i] & 0x7fu) / 128.0f);
}

static void uniform_int32(const weir_random_spec_t* spec, const uint32_t* words, void* dst,
                          int64_t count) {
  uint32_t* out = dst;
  const uint32_t low = (uint32_t)spec->low, range = (uint32_t)spec->range;
  for (int64_t i = 0; i < count; ++i) out[i] = low + words[i] % range;
}
static void uniform_int64(const weir_random_spec_t* spec, const uint32_t* words, void* dst,
                          int64_t count) {
  uint64_t* out = dst;
  for (int64_t i = 0; i < count; ++i) {
    uint64_t bits = words[2 * i] | (uint64_t)words[2 * i + 1] << 32;
    out[i] = (uint64_t)spec->low + bits % spec->range;
  }
}
static void full_int32(const weir_random_spec_t* spec, const uint32_t* words, void* dst,
                       int64_t count) {
  (void)spec;
  memcpy(dst, words, (size_t)count * sizeof(uint32_t));
}
static void full_int64(const weir_random_spec_t* spec, const uint32_t* words, void* dst,
                       int64_t count) {
  (void)spec;
  uint64_t* out = dst;
  for (int64_t i = 0; i < count; ++i) out[i] = words[2 * i] | (uint64_t)words[2 * i + 1] << 32;
}

// The Box-Muller transform. The C library's functions, as TensorFlow: anything else would differ in
// the last bit.
WEIR_INLINE void box_muller_float(const uint32_t* words, float pair[2]) {
  float u = unit_float(words[0]);
  if (u < 1.0e-7f) u = 1.0e-7f;
  const float angle = (float)(TWO_PI * (double)unit_float(words[1]));
  const float radius = sqrtf(-2.0f * logf(u));
  sincosf(angle, &pair[0], &pair[1]);
  pair[0] *= radius;
  pair[1] *= radius;
}
WEIR_INLINE void box_muller_double(const uint32_t* words, double pair[2]) {
  double u = weir_random_to_double(words[0], words[1]);
  if (u < 1.0e-7) u = 1.0e-7;
  const double angle = TWO_PI * weir_random_to_double(words[2], words[3]);
  const double radius = sqrt(-2.0 * log(u));
  sincos(angle, &pair[0], &pair[1]);
  pair[0] *= radius;
  pair[1] *= radius;
}

WEIR_INLINE void store_float(weir_dtype_t dtype, void* dst, int64_t i, float value) {
  if (dtype == WEIR_DTYPE_FLOAT) {
    ((float*)dst)[i] = value;
  } else if (dtype == WEIR_DTYPE_HALF) {
    ((weir_half_t*)dst)[i] = weir_half_from_float(value);
  } else {
    ((weir_bfloat16_t*)dst)[i] = weir_bfloat16_from_float(value);
  }
}

static void normal_float(const weir_random_spec_t* spec, const uint32_t* words, void* dst,
                         int64_t count) {
  for (int64_t i = 0; i < count; i += 2) {
    float pair[2];
    box_muller_float(words + i, pair);
    store_float(spec->dtype, dst, i, pair[0]);
    if (i + 1 < count) store_float(spec->dtype, dst, i + 1, pair[1]);
  }
}
static void normal_double(const weir_random_spec_t* spec, const uint32_t* words, void* dst,
                          int64_t count) {
  (void)spec;
  double* out = dst;
  for (int64_t i = 0; i < count; i += 2) {
    double pair[2];
    box_muller_double(words + 2 * i, pair);
    out[i] = pair[0];
    if (i + 1 < count) out[i + 1] = pair[1];
  }
}

static const convert_fn_t convert_table[][WEIR_DTYPE_COUNT] = {
    [WEIR_RANDOM_UNIFORM] = {[WEIR_DTYPE_FLOAT] = uniform_float,
                             [WEIR_DTYPE_DOUBLE] = uniform_double,
                             [WEIR_DTYPE_HALF] = uniform_half,
                             [WEIR_DTYPE_BFLOAT16] = uniform_bfloat16},
    [WEIR_RANDOM_NORMAL] = {[WEIR_DTYPE_FLOAT] = normal_float,
                            [WEIR_DTYPE_DOUBLE] = normal_double,
                            [WEIR_DTYPE_HALF] = normal_float,
                            [WEIR_DTYPE_BFLOAT16] = normal_float},
    [WEIR_RANDOM_UNIFORM_INT] =
        {[WEIR_DTYPE_INT32] = uniform_int32, [WEIR_DTYPE_INT64] = uniform_int64},
    [WEIR_RANDOM_FULL_INT] = {[WEIR_DTYPE_INT32] = full_int32,
                              [WEIR_DTYPE_UINT32] = full_int32,
                              [WEIR_DTYPE_INT64] = full_int64,
                              [WEIR_DTYPE_UINT64] = full_int64},
};

// ---- filling ----
typedef struct fill_t {
  const weir_random_spec_t* spec;
  convert_fn_t convert;
  weir_philox_t philox;
  char* data;
  int64_t count;
  int64_t size;   // bytes an element
  int64_t group;  // elements a Philox call gives: 4, or 2 of 64 bits
} fill_t;

static void fill_groups(void* arg, int64_t begin, int64_t end) {
  const fill_t* f = arg;
  uint32_t words[BLOCK];
  weir_philox_t philox = f->philox;
  weir_philox_skip(&philox, (uint64_t)begin);
  for (int64_t g = begin; g < end; g += LANES) {
    int64_t first = g * f->group;
    int64_t last = WEIR_MIN(WEIR_MIN(g + LANES, end) * f->group, f->count);
    next_block(&philox, words);
    f->convert(f->spec, words, f->data + first * f->size, last - first);
  }
}

// Each group of outputs has 256 words an output of its own to reject from, so that groups do not
// depend on each other.
static void fill_truncated_groups(void* arg, int64_t begin, int64_t end) {
  const fill_t* f = arg;
  const bool is_double = f->spec->dtype == WEIR_DTYPE_DOUBLE;
  for (int64_t g = begin; g < end; ++g) {
    weir_philox_t philox = f->philox;
    weir_philox_skip(&philox, (uint64_t)(g * f->group * WEIR_RANDOM_GROUPS_PER_OUTPUT / GROUP));
    weir_random_words_t words = weir_random_words(philox);
    int64_t at = g * f->group;
    const int64_t last = WEIR_MIN(at + f->group, f->count);
    while (at < last) {
      uint32_t x[GROUP];
      double pair[2];
      float narrow[2];
      for (int i = 0; i < (is_double ? 4 : 2); ++i) x[i] = weir_random_word(&words);
      if (is_double) {
        box_muller_double(x, pair);
      } else {
        box_muller_float(x, narrow);
        pair[0] = (double)narrow[0];
        pair[1] = (double)narrow[1];
      }
      for (int i = 0; i < 2 && at < last; ++i) {
        if (!(fabs(pair[i]) < TRUNCATION)) continue;
        if (is_double) {
          ((double*)f->data)[at++] = pair[i];
        } else {
          store_float(f->spec->dtype, f->data, at++, (float)pair[i]);
        }
      }
    }
  }
}

void weir_random_fill(weir_pool_t* pool, const weir_random_spec_t* spec, weir_philox_t philox,
                      void* data, int64_t count) {
  if (count == 0) return;
  fill_t f = {.spec = spec,
              .philox = philox,
              .data = data,
              .count = count,
              .size = (int64_t)weir_dtype_size(spec->dtype)};
  f.group = f.size == 8 ? 2 : 4;
  const int64_t groups = (count + f.group - 1) / f.group;
  if (spec->kind == WEIR_RANDOM_TRUNCATED_NORMAL) {
    weir_pool_for(pool, groups, 90.0, fill_truncated_groups, &f);
    return;
  }
  f.convert = convert_table[spec->kind][spec->dtype];
  WEIR_CHECK(f.convert != NULL);
  weir_pool_for(pool, groups, spec->kind == WEIR_RANDOM_NORMAL ? 60.0 : 6.0, fill_groups, &f);
}

weir_philox_t weir_random_scramble(uint64_t seed0, uint64_t seed1) {
  weir_philox_t philox = {.counter = {(uint32_t)seed0, (uint32_t)(seed0 >> 32), (uint32_t)seed1,
                                      (uint32_t)(seed1 >> 32)},
                          .key = {0x3ec8f720u, 0x02461e29u}};
  uint32_t mix[GROUP];
  weir_philox_next(&philox, mix);
  return (weir_philox_t){.counter = {0, 0, mix[2], mix[3]}, .key = {mix[0], mix[1]}};
}

// ---- shared generators ----
void weir_random_state_init(weir_random_state_t* state, int64_t seed, int64_t seed2) {
  weir_mutex_init(&state->mu);
  state->philox = weir_philox_from_seeds(seed, seed2);
}

void weir_random_state_deinit(weir_random_state_t* state) { weir_mutex_destroy(&state->mu); }

weir_philox_t weir_random_reserve(weir_random_state_t* state, uint64_t groups) {
  weir_mutex_lock(&state->mu);
  weir_philox_t philox = state->philox;
  weir_philox_skip(&state->philox, groups);
  weir_mutex_unlock(&state->mu);
  return philox;
}

void weir_random_skip_words(weir_random_words_t* words, uint64_t count) {
  while (count > 0 && words->used < GROUP) {
    ++words->used;
    --count;
  }
  if (count == 0) return;
  weir_philox_skip(&words->philox, count / GROUP);
  for (count %= GROUP; count > 0; --count) (void)weir_random_word(words);
}

// truncated.cu — Normal draws within bounds, the CPU's (random_truncated.inc) up to the last bits of
// logarithms and sines. After philox.cu and the definitions of T, the type of the numbers, and
// MAX_ROUNDS.
//
// Rows take their numbers from one stretch, each from where the one before it ended, which is known
// when that is full. So one warp draws them, row by row: each lane makes the candidates of a call of
// Philox, or two, and what is accepted goes into the row in the calls' order.
#define NO_CONTRACTION
typedef element_t<T> of;
typedef of::acc_t A;

enum { LANES = 32, PER_CALL = sizeof(T) == 8 ? 2 : 4 };
#define ALL_LANES 0xffffffffu

// Rounded as the type is after each operation, and as the C library rounds its functions.
__device__ __forceinline__ A rounded(A v) { return of::load(of::store(v)); }
__device__ __forceinline__ A mul_add(A a, A b, A c) { return rounded(rounded(a * b) + c); }
__device__ __forceinline__ A log_of(A v) { return rounded((A)log((double)v)); }
__device__ __forceinline__ A exp_of(A v) { return rounded((A)exp((double)v)); }

// ---- what is drawn from ----

enum { BY_NORMAL, BY_UNIFORM, BY_EXPONENTIAL };

struct target_t {
  A mean, deviation, low, high;  // the bounds in deviations from the mean
  A width, root;
  int kind, calls, candidates;  // of a lane
};

__device__ __forceinline__ int kind_of(const target_t& t) {
  A inside = rounded((A)1.3);
  if ((t.low < -inside && t.high >= 0) || (t.high > inside && t.low <= 0)) return BY_NORMAL;
  A exponent = rounded((A)0.5 + rounded(rounded(t.low * rounded(t.low - t.root)) / 4));
  A cutoff = rounded(rounded(2 * exp_of(exponent)) / rounded(t.low + t.root));
  return t.width < cutoff ? BY_UNIFORM : BY_EXPONENTIAL;
}

__device__ __forceinline__ target_t target_of(A mean, A deviation, A low, A high) {
  target_t t = {mean, deviation};
  bool is_mirrored = (isinf(low) && low < 0) || high < mean;  // the finite bound is the lower one
  if (is_mirrored) t.deviation = -deviation;
  t.low = rounded(rounded((is_mirrored ? high : low) - mean) / t.deviation);
  t.high = rounded(rounded((is_mirrored ? low : high) - mean) / t.deviation);
  t.width = rounded(t.high - t.low);
  t.root = rounded(sqrt(mul_add(t.low, t.low, 4)));
  t.kind = kind_of(t);
  t.calls = t.kind == BY_UNIFORM ? 2 : 1;
  t.candidates = t.kind == BY_EXPONENTIAL ? PER_CALL / 2 : PER_CALL;
  return t;
}

// ---- candidates ----

struct candidates_t {
  A z[PER_CALL];
  bool is_good[PER_CALL];
};

__device__ __forceinline__ void uniforms_of(words_t words, A* values) {
#pragma unroll
  for (int i = 0; i < PER_CALL; ++i) {
    T value;
    uniform_of(words.at + i * (4 / PER_CALL), &value);
    values[i] = of::load(value);
  }
}

__device__ __forceinline__ void by_normal(const target_t& t, words_t words, candidates_t* c) {
#pragma unroll
  for (int i = 0; i < PER_CALL; i += 2) normals_of(words.at + i * (4 / PER_CALL), c->z + i);
#pragma unroll
  for (int i = 0; i < PER_CALL; ++i) {
    c->z[i] = rounded(c->z[i]);
    c->is_good[i] = c->z[i] >= t.low && c->z[i] <= t.high;
  }
}

__device__ __forceinline__ void by_uniform(const target_t& t, words_t first, words_t second,
                                           candidates_t* c) {
  A plus = t.low < 0 ? (A)0 : rounded(t.low * t.low), u[PER_CALL];
  uniforms_of(first, c->z);
  uniforms_of(second, u);
#pragma unroll
  for (int i = 0; i < PER_CALL; ++i) {
    A z = c->z[i] = mul_add(c->z[i], t.width, t.low);
    c->is_good[i] = u[i] <= exp_of(rounded(mul_add(-z, z, plus) / 2));
  }
}

__device__ __forceinline__ void by_exponential(const target_t& t, words_t words, candidates_t* c) {
  A alpha = rounded(rounded(t.low + t.root) / 2), u[PER_CALL];
  uniforms_of(words, u);
#pragma unroll
  for (int i = 0; i < PER_CALL / 2; ++i) {
    A z = c->z[i] = rounded(rounded(-log_of(u[2 * i]) / alpha) + t.low);
    A x = t.low < alpha ? rounded(alpha - z) : rounded(t.low - alpha);
    c->is_good[i] = u[2 * i + 1] <= exp_of(rounded(rounded(-x * x) / 2)) && z < t.high;
  }
}

__device__ __forceinline__ candidates_t candidates_of(const target_t& t, const philox_t& philox,
                                                      uint64_t call) {
  candidates_t c = {};
  words_t words = words_of(philox, call);
  if (t.kind == BY_NORMAL) by_normal(t, words, &c);
  else if (t.kind == BY_UNIFORM) by_uniform(t, words, words_of(philox, call + 1), &c);
  else by_exponential(t, words, &c);
  return c;
}

// ---- rows ----

// Which candidates of all lanes are accepted: a bit a lane, for the first of each, the second...
struct votes_t {
  uint32_t at[PER_CALL];
};

__device__ __forceinline__ votes_t votes_of(const candidates_t& c) {
  votes_t votes;
#pragma unroll
  for (int i = 0; i < PER_CALL; ++i) votes.at[i] = __ballot_sync(ALL_LANES, c.is_good[i]);
  return votes;
}

// After |rejected| others in a row, the one of MAX_ROUNDS is taken as it is. (Not of normal draws: two
// in five are within their bounds.) Returns how many are rejected at the end.
__device__ __forceinline__ int take_late(int candidates, int rejected, candidates_t* c,
                                         votes_t* votes) {
  int first = LANES * candidates, last = -1;
  int late = MAX_ROUNDS - 1 - rejected, at = threadIdx.x * candidates;
#pragma unroll
  for (int i = 0; i < PER_CALL; ++i) {
    if (votes->at[i]) first = min(first, (__ffs(votes->at[i]) - 1) * candidates + i);
  }
  if (late < first) {
#pragma unroll
    for (int i = 0; i < PER_CALL; ++i) c->is_good[i] |= at + i == late && i < candidates;
    *votes = votes_of(*c);
  }
#pragma unroll
  for (int i = 0; i < PER_CALL; ++i) {
    if (votes->at[i]) last = max(last, (31 - __clz(votes->at[i])) * candidates + i);
  }
  return last < 0 ? rejected + LANES * candidates : LANES * candidates - 1 - last;
}

// Returns the call that the next row begins with.
__device__ __forceinline__ uint64_t fill_row(const target_t& t, const philox_t& philox,
                                             uint64_t call, T* out, int64_t count) {
  int rejected = 0;
  for (int64_t done = 0;;) {
    candidates_t c = candidates_of(t, philox, call + threadIdx.x * t.calls);
    votes_t votes = votes_of(c);
    rejected = take_late(t.candidates, rejected, &c, &votes);
    int before = 0, own = 0, total = 0;
#pragma unroll
    for (int i = 0; i < PER_CALL; ++i) {
      before += __popc(votes.at[i] & ((1u << threadIdx.x) - 1));
      total += __popc(votes.at[i]);
    }
    int64_t left = count - done;
#pragma unroll
    for (int i = 0; i < PER_CALL; ++i) {
      if (!c.is_good[i]) continue;
      if (before + own < left)
        out[done + before + own] = of::store(mul_add(c.z[i], t.deviation, t.mean));
      ++own;
    }
    uint32_t is_last = __ballot_sync(ALL_LANES, before < left && left <= before + own);
    if (is_last) return call + __ffs(is_last) * t.calls;
    done += total;
    call += LANES * t.calls;
  }
}

// Of each row, or of all of them where the step is 0.
struct parameters_t {
  const T* at[4];  // means, deviations, lower and upper bounds
  int64_t steps[4];
};

// |anew| goes before |philox|. A row without a distribution is NaN. By one warp.
extern "C" __global__ void truncated(T* out, int64_t count, int64_t row_size, parameters_t from,
                                     philox_t philox, const philox_t* anew) {
  uint64_t call = 0;
  if (anew) philox = *anew;
  for (int64_t row = 0; row * row_size < count; ++row) {
    T* to = out + row * row_size;
    int64_t size = min(row_size, count - row * row_size);
    A p[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) p[i] = of::load(from.at[i][row * from.steps[i]]);
    if (p[1] > 0 && p[2] < p[3] && (isfinite(p[2]) || isfinite(p[3]))) {
      call = fill_row(target_of(p[0], p[1], p[2], p[3]), philox, call, to, size);
    } else {
      for (int64_t i = threadIdx.x; i < size; i += LANES) to[i] = of::store((A)NAN);
    }
  }
}

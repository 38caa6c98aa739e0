// random_binomial.c — Binomial draws: by inversion where few successes are expected, by Hörmann's
// transformed rejection (BTRS) where there are more.
#include "kernel/random/random_draw.h"
#include "tensor/numeric.h"

enum { FEW = 10 };              // expected successes
enum { GROUPS_OF_A_FEW = 42 };  // of the generator, for a draw by inversion

typedef struct uniform_t {  // pairs of doubles, handed out last one first
  weir_philox_t philox;
  double values[2];
  int left;
} uniform_t;

static double next(uniform_t* uniform) {
  if (uniform->left == 0) {
    uint32_t words[4];
    weir_philox_next(&uniform->philox, words);
    uniform->values[0] = weir_random_to_double(words[0], words[1]);
    uniform->values[1] = weir_random_to_double(words[2], words[3]);
    uniform->left = 2;
  }
  return uniform->values[--uniform->left];
}

// Counts the waits for a success that fit into all trials.
static double by_inversion(uniform_t* uniform, double count, double p) {
  double trials = 0, successes = 0;
  for (;;) {
    trials += ceil(log(next(uniform)) / log1p(-p));
    if (!(trials <= count)) return successes;
    ++successes;
  }
}

// log(k!) less Stirling's formula.
static double stirling_rest(double k) {
  static const double values[] = {0.0810614667953272,  0.0413406959554092, 0.0276779256849983,
                                  0.02079067210376509, 0.0166446911898211, 0.0138761288230707,
                                  0.0118967099458917,  0.0104112652619720, 0.00925546218271273,
                                  0.00833056343336287};
  if (k >= 0 && k <= 9) return values[(int)k];
  const double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

// The logarithm of the probability of |k| relative to that of |mode|, |r| being p / (1 - p).
static double log_ratio(double k, double mode, double count, double r) {
  double sum = (mode + 0.5) * log((mode + 1) / (r * (count - mode + 1)));
  sum = WEIR_MUL_ADD(count + 1, log((count - mode + 1) / (count - k + 1)), sum);
  sum = WEIR_MUL_ADD(k + 0.5, log(r * (count - k + 1) / (k + 1)), sum);
  return sum + stirling_rest(mode) + stirling_rest(count - mode) - stirling_rest(k) -
         stirling_rest(count - k);
}

static double by_rejection(uniform_t* uniform, double count, double p) {
  const double deviation = sqrt(count * p * (1 - p));
  const double b = WEIR_MUL_ADD(2.53, deviation, 1.15);
  const double a = WEIR_MUL_ADD(0.01, p, WEIR_MUL_ADD(0.0248, b, -0.0873));
  const double c = WEIR_MUL_ADD(count, p, 0.5);
  const double alpha = (2.83 + 5.1 / b) * deviation;
  const double mode = floor((count + 1) * p);
  for (;;) {
    const double u = next(uniform) - 0.5, v = next(uniform);
    const double edge = 0.5 - fabs(u);
    const double k = floor(WEIR_MUL_ADD(2 * a / edge + b, u, c));
    if (edge >= 0.07 && v <= 0.92 - 4.2 / b) return k;
    if (k < 0 || k > count) continue;
    const double bound = log_ratio(k, mode, count, p / (1 - p));
    if (log(v * alpha / (a / (edge * edge) + b)) <= bound) return k;
  }
}

static double narrow(weir_dtype_t dtype, double value) {
  if (dtype == WEIR_DTYPE_DOUBLE) return value;
  return dtype == WEIR_DTYPE_FLOAT ? (double)(float)value
                                   : (double)weir_half_to_float(weir_half_from_float((float)value));
}

static double draw(weir_philox_t philox, uint64_t index, weir_dtype_t dtype, double count,
                   double p) {
  const bool are_few = !(narrow(dtype, count * p) >= FEW);
  uniform_t uniform = {.philox = philox};
  weir_philox_skip(&uniform.philox,
                   index * (are_few ? GROUPS_OF_A_FEW : WEIR_RANDOM_GROUPS_PER_OUTPUT));
  return are_few ? by_inversion(&uniform, count, p) : by_rejection(&uniform, count, p);
}

double weir_random_binomial(weir_philox_t philox, uint64_t index, weir_dtype_t dtype, double count,
                            double p) {
  if (isnan(count) || isnan(p)) return NAN;
  if (count <= 0 || p <= 0) return 0;
  if (p >= 1) return count;
  return p <= 0.5 ? draw(philox, index, dtype, count, p)
                  : count - draw(philox, index, dtype, count, narrow(dtype, 1 - p));
}

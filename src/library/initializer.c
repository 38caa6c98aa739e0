// initializer.c — What variables start with.
#include "weir/initializer.h"

#include <math.h>
#include <string.h>

#include "nodes.h"
#include "weights.h"
#include "weir/plugin.h"

// A normal distribution cut off at two deviations has this deviation itself.
static const double TRUNCATED_DEVIATION = .87962566103423978;

weir_init_t weir_init_constant(double value) {
  return (weir_init_t){.kind = WEIR_INIT_CONSTANT, .first = value};
}
weir_init_t weir_init_zeros(void) { return weir_init_constant(0); }
weir_init_t weir_init_ones(void) { return weir_init_constant(1); }

weir_init_t weir_init_uniform(double low, double high, int64_t seed) {
  return (weir_init_t){.kind = WEIR_INIT_UNIFORM, .first = low, .second = high, .seed = seed};
}
weir_init_t weir_init_normal(double mean, double deviation, int64_t seed) {
  return (weir_init_t){.kind = WEIR_INIT_NORMAL, .first = mean, .second = deviation, .seed = seed};
}
weir_init_t weir_init_truncated_normal(double mean, double deviation, int64_t seed) {
  return (weir_init_t){
      .kind = WEIR_INIT_TRUNCATED_NORMAL, .first = mean, .second = deviation, .seed = seed};
}
weir_init_t weir_init_variance_scaling(double scale, weir_fan_t fan,
                                       weir_distribution_t distribution, int64_t seed) {
  return (weir_init_t){.kind = WEIR_INIT_VARIANCE_SCALING,
                       .first = scale,
                       .fan = fan,
                       .distribution = distribution,
                       .seed = seed};
}
weir_init_t weir_init_glorot_uniform(int64_t seed) {
  return weir_init_variance_scaling(1, WEIR_FAN_AVERAGE, WEIR_DISTRIBUTION_UNIFORM, seed);
}
weir_init_t weir_init_glorot_normal(int64_t seed) {
  return weir_init_variance_scaling(1, WEIR_FAN_AVERAGE, WEIR_DISTRIBUTION_TRUNCATED_NORMAL, seed);
}
weir_init_t weir_init_he_uniform(int64_t seed) {
  return weir_init_variance_scaling(2, WEIR_FAN_IN, WEIR_DISTRIBUTION_UNIFORM, seed);
}
weir_init_t weir_init_he_normal(int64_t seed) {
  return weir_init_variance_scaling(2, WEIR_FAN_IN, WEIR_DISTRIBUTION_TRUNCATED_NORMAL, seed);
}
weir_init_t weir_init_lecun_uniform(int64_t seed) {
  return weir_init_variance_scaling(1, WEIR_FAN_IN, WEIR_DISTRIBUTION_UNIFORM, seed);
}
weir_init_t weir_init_lecun_normal(int64_t seed) {
  return weir_init_variance_scaling(1, WEIR_FAN_IN, WEIR_DISTRIBUTION_TRUNCATED_NORMAL, seed);
}
weir_init_t weir_init_identity(double gain) {
  return (weir_init_t){.kind = WEIR_INIT_IDENTITY, .first = gain};
}
weir_init_t weir_init_orthogonal(double gain, int64_t seed) {
  return (weir_init_t){.kind = WEIR_INIT_ORTHOGONAL, .first = gain, .seed = seed};
}
weir_init_t weir_init_value(weir_edge_t value) {
  return (weir_init_t){.kind = WEIR_INIT_VALUE, .value = value};
}

// ---- building ----

typedef struct builder_t {
  weir_scope_t* scope;
  weir_dtype_t dtype;
  weir_dims_t shape;
  weir_dims_t whole;  // of which |shape| is a part
  int64_t begin;      // its first row there
  weir_edge_t dims;   // |shape| as a vector
  weir_lib_seeds_t seeds;
} builder_t;

static weir_edge_t number(const builder_t* b, double value) {
  return weir_lib_number(b->scope, b->dtype, value);
}

static weir_edge_t uniform(const builder_t* b, double low, double high) {
  weir_edge_t draw = weir_random_uniform(b->scope, b->dims, b->dtype, .seed = b->seeds.seed,
                                         .seed2 = b->seeds.seed2);
  weir_edge_t least = number(b, low);
  weir_edge_t width = weir_sub(b->scope, number(b, high), least);
  return weir_add_v2(b->scope, weir_mul(b->scope, draw, width), least);
}

static weir_edge_t shift(const builder_t* b, weir_edge_t draw, double mean, double deviation) {
  weir_edge_t wide = weir_mul(b->scope, draw, number(b, deviation));
  return weir_add_v2(b->scope, wide, number(b, mean));
}

static weir_edge_t normal(const builder_t* b, double mean, double deviation) {
  weir_edge_t draw = weir_random_standard_normal(b->scope, b->dims, b->dtype, .seed = b->seeds.seed,
                                                 .seed2 = b->seeds.seed2);
  return shift(b, draw, mean, deviation);
}

static weir_edge_t truncated_normal(const builder_t* b, double mean, double deviation) {
  weir_edge_t draw = weir_truncated_normal(b->scope, b->dims, b->dtype, .seed = b->seeds.seed,
                                           .seed2 = b->seeds.seed2);
  return shift(b, draw, mean, deviation);
}

// How many inputs and outputs a unit has: the last two dimensions, times the receptive field.
static double fan(const builder_t* b, weir_fan_t kind) {
  const int rank = b->whole.rank;
  const int64_t* dims = b->whole.dims;
  double field = 1;
  for (int i = 0; i < rank - 2; ++i) field *= (double)dims[i];
  double in = rank == 0 ? 1 : rank == 1 ? (double)dims[0] : field * (double)dims[rank - 2];
  double out = rank == 0 ? 1 : field * (double)dims[rank - 1];
  double chosen = kind == WEIR_FAN_IN ? in : kind == WEIR_FAN_OUT ? out : (in + out) / 2;
  return chosen > 1 ? chosen : 1;
}

static weir_edge_t variance_scaling(const builder_t* b, const weir_init_t* init) {
  const double variance = init->first / fan(b, init->fan);
  switch (init->distribution) {
    case WEIR_DISTRIBUTION_UNIFORM: return uniform(b, -sqrt(3 * variance), sqrt(3 * variance));
    case WEIR_DISTRIBUTION_NORMAL: return normal(b, 0, sqrt(variance));
    default: return truncated_normal(b, 0, sqrt(variance) / TRUNCATED_DEVIATION);
  }
}

static weir_edge_t identity(const builder_t* b, double gain) {
  if (b->shape.rank != 2) {
    weir_lib_fail(b->scope, "identity initializer: needs a matrix, got rank %d", b->shape.rank);
    return WEIR_LIB_NONE;
  }
  const double begin = (double)b->begin, end = begin + (double)b->shape.dims[0];
  weir_edge_t places =
      weir_range(b->scope, weir_lib_number(b->scope, WEIR_DTYPE_INT32, begin),
                 weir_lib_number(b->scope, WEIR_DTYPE_INT32, end), weir_const_int(b->scope, 1));
  weir_edge_t columns = weir_lib_number(b->scope, WEIR_DTYPE_INT32, (double)b->shape.dims[1]);
  return weir_one_hot(b->scope, places, columns, number(b, gain), number(b, 0));
}

// Q of a random matrix that is at least as tall as wide. Q is made unique by a positive diagonal of
// R.
static weir_edge_t orthogonal(const builder_t* b, double gain) {
  const int rank = b->shape.rank;
  if (rank < 2) {
    weir_lib_fail(b->scope, "orthogonal initializer: needs at least a matrix, got rank %d", rank);
    return WEIR_LIB_NONE;
  }
  int64_t rows = 1, columns = b->shape.dims[rank - 1];
  for (int i = 0; i < rank - 1; ++i) rows *= b->shape.dims[i];
  const bool is_wide = rows < columns;
  builder_t tall = *b;
  tall.dims =
      is_wide ? weir_lib_vector(b->scope, columns, rows) : weir_lib_vector(b->scope, rows, columns);
  weir_edge_t matrix = normal(&tall, 0, 1);
  // By its name: there are builds without linear algebra, whose scopes say so.
  weir_node_t* qr = weir_scope_node(b->scope, "Qr", &matrix, 1, NULL, 0);
  if (!qr) return WEIR_LIB_NONE;
  const weir_edge_t q = {qr, 0}, r = {qr, 1};
  weir_edge_t signs = weir_sign(b->scope, weir_matrix_diag_part(b->scope, r));
  weir_edge_t unique = weir_mul(b->scope, q, signs);
  if (is_wide) unique = weir_transpose(b->scope, unique, weir_lib_vector(b->scope, 1, 0));
  return weir_mul(b->scope, number(b, gain), weir_reshape(b->scope, unique, b->dims));
}

static weir_edge_t build(const builder_t* b, const weir_init_t* init) {
  switch (init->kind) {
    case WEIR_INIT_CONSTANT: return weir_fill(b->scope, b->dims, number(b, init->first));
    case WEIR_INIT_UNIFORM: return uniform(b, init->first, init->second);
    case WEIR_INIT_NORMAL: return normal(b, init->first, init->second);
    case WEIR_INIT_TRUNCATED_NORMAL: return truncated_normal(b, init->first, init->second);
    case WEIR_INIT_VARIANCE_SCALING: return variance_scaling(b, init);
    case WEIR_INIT_IDENTITY: return identity(b, init->first);
    case WEIR_INIT_ORTHOGONAL: return orthogonal(b, init->first);
    default:
      weir_lib_fail(b->scope, "initializer: unknown kind %d", (int)init->kind);
      return WEIR_LIB_NONE;
  }
}

// The part's rows of all.
static weir_edge_t cut(const builder_t* b, weir_edge_t value) {
  if (b->whole.rank == 0 || b->shape.dims[0] == b->whole.dims[0]) return value;
  int64_t first[WEIR_MAX_RANK] = {b->begin};
  weir_edge_t begin = weir_lib_ints(b->scope, first, b->whole.rank);
  return weir_slice(b->scope, value, begin, weir_lib_ints(b->scope, b->shape.dims, b->shape.rank));
}

// A value of the caller's must be what the variable is.
static weir_edge_t check_value(const builder_t* b, weir_edge_t value) {
  if (!weir_lib_ready(b->scope, "initializer", value)) return WEIR_LIB_NONE;
  bool is_same = weir_edge_type(value) == b->dtype && weir_lib_rank(value) == b->whole.rank;
  for (int i = 0; is_same && i < b->whole.rank; ++i)
    is_same = weir_lib_dim(value, i) == b->whole.dims[i];
  if (is_same) return cut(b, value);
  weir_lib_fail(b->scope, "initializer: value '%s' is not of the variable's type and shape",
                weir_node_name(value.node));
  return WEIR_LIB_NONE;
}

static weir_edge_t start(builder_t b, weir_init_t init) {
  weir_scope_t* scope = b.scope;
  const weir_dims_t shape = b.whole;
  if (weir_scope_status(scope)) return WEIR_LIB_NONE;
  if (shape.rank < 0) weir_lib_fail(scope, "initializer: the rank of the variable is not known");
  for (int i = 0; i < shape.rank; ++i) {
    if (shape.dims[i] >= 0) continue;
    weir_lib_fail(scope, "initializer: dimension %d of the variable is not known", i);
    return WEIR_LIB_NONE;
  }
  if (init.kind == WEIR_INIT_DEFAULT) {
    weir_init_t glorot = weir_init_glorot_uniform(init.seed);
    glorot.graph_seed = init.graph_seed;
    init = glorot;
  }
  if (init.kind == WEIR_INIT_VARIANCE_SCALING && !(init.first > 0)) {
    weir_lib_fail(scope, "initializer: scale must be positive, got %g", init.first);
    return WEIR_LIB_NONE;
  }
  if (init.kind == WEIR_INIT_VALUE) return check_value(&b, init.value);
  b.dims = weir_lib_ints(scope, b.shape.dims, shape.rank);
  b.seeds = weir_lib_seeds(scope, init.seed, init.graph_seed);
  return build(&b, &init);
}

weir_edge_t weir_init_edge(weir_scope_t* scope, weir_init_t init, weir_dtype_t dtype,
                           weir_dims_t shape) {
  return start((builder_t){.scope = scope, .dtype = dtype, .shape = shape, .whole = shape}, init);
}

weir_edge_t weir_lib_init_part(weir_scope_t* scope, weir_init_t init, weir_dtype_t dtype,
                               const weir_lib_part_of_t* part) {
  int64_t dims[WEIR_MAX_RANK];
  if (weir_scope_status(scope)) return WEIR_LIB_NONE;
  memcpy(dims, part->whole.dims, sizeof(*dims) * (size_t)part->whole.rank);
  dims[0] = part->rows;
  builder_t b = {.scope = scope,
                 .dtype = dtype,
                 .shape = {dims, part->whole.rank, true},
                 .whole = part->whole,
                 .begin = part->begin};
  return start(b, init);
}

weir_edge_t weir_weight(weir_scope_t* scope, const char* name, weir_init_t init,
                        weir_dims_t shape) {
  if (!WEIR_HAS_ARG(scope, name)) return (weir_edge_t){0};
  return weir_variable(scope, name, weir_init_edge(scope, init, WEIR_DTYPE_FLOAT, shape));
}

// random_index_shuffle.c — RandomIndexShuffle: where an index goes to in a random permutation,
// without the permutation: a block cipher (Simon) over the numbers of as many bits, applied until
// the result is within the range.
#include <math.h>

#include "op/kernel.h"
#include "op/shape_ctx.h"

enum { MAX_ROUNDS = 1024 };

// A cipher of two words of |width| bits.
typedef struct cipher_t {
  int width;
  uint64_t mask;
  int rounds;
  uint64_t keys[MAX_ROUNDS];
} cipher_t;

static uint64_t rotate_left(const cipher_t* c, uint64_t x, int by) {
  by %= c->width;
  return by == 0 ? x : (x << by | x >> (c->width - by)) & c->mask;
}

static void make_cipher(cipher_t* c, uint64_t max_index, const uint32_t seed[3], int rounds) {
  int bits = max_index > 0 ? (int)ceil(log2((double)max_index)) : 0;
  bits = WEIR_MAX(bits + bits % 2, 16);
  c->width = bits / 2;
  c->mask = ((uint64_t)1 << c->width) - 1;
  c->rounds = rounds;
  uint64_t sequence = 0x7369f885192c0ef5u & c->mask;  // a constant of the cipher, a bit a round
  for (int i = 0; i < rounds; ++i) {
    if (i < 3) {
      c->keys[i] = seed[i] & c->mask;
      continue;
    }
    const uint64_t last = c->keys[i - 1];
    const uint64_t turned = rotate_left(c, last, c->width - 3) ^ rotate_left(c, last, c->width - 4);
    c->keys[i] = (0xfffffffcu & c->mask) ^ (sequence & 1) ^ c->keys[i - 3] ^ turned;
    sequence >>= 1;
  }
}

static uint64_t mix(const cipher_t* c, uint64_t x) {
  return (rotate_left(c, x, 1) & rotate_left(c, x, 8)) ^ rotate_left(c, x, 2);
}

static uint64_t encrypt(const cipher_t* c, uint64_t value) {
  uint64_t left = value >> c->width & c->mask, right = value & c->mask;
  for (int i = 0; i < c->rounds; i += 2) {
    left ^= mix(c, right) ^ c->keys[i];
    right ^= mix(c, left) ^ c->keys[i + 1];
  }
  return left << c->width | right;
}

static int64_t element_at(const weir_tensor_t* t, int64_t i) {
  switch (weir_tensor_type(t)) {
    case WEIR_DTYPE_INT32: return WEIR_TENSOR_DATA(t, int32_t)[i];
    case WEIR_DTYPE_UINT32: return WEIR_TENSOR_DATA(t, uint32_t)[i];
    default: return WEIR_TENSOR_DATA(t, int64_t)[i];
  }
}

// Element |i| of a scalar or vector.
static int64_t number_at(const weir_tensor_t* t, int64_t i) {
  return element_at(t, t->rank == 0 ? 0 : i);
}

static weir_status_t* check_numbers(weir_dtype_t dtype, int64_t index, int64_t max_index) {
  const bool is_unsigned = dtype == WEIR_DTYPE_UINT32 || dtype == WEIR_DTYPE_UINT64;
  if (!is_unsigned && index < 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "index must be >= 0 but was %lld", (long long)index);
  }
  if (!is_unsigned && max_index < 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "max_index must be >= 0 but was %lld",
                       (long long)max_index);
  }
  if ((uint64_t)max_index >= (uint64_t)index) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "max_index must be >= index, but %lld < %lld",
                     (long long)max_index, (long long)index);
}

static void write_number(weir_tensor_t* out, int64_t i, uint64_t value) {
  if (weir_dtype_size(weir_tensor_type(out)) == 8) {
    WEIR_TENSOR_DATA(out, uint64_t)[i] = value;
  } else {
    WEIR_TENSOR_DATA(out, uint32_t)[i] = (uint32_t)value;
  }
}

// How many there are: 1 of scalars alone. 0 where the inputs do not agree.
static int64_t count_items(const weir_tensor_t* index, const weir_tensor_t* seed,
                           const weir_tensor_t* max_index) {
  int64_t count = 1;
  const int64_t sizes[] = {index->rank == 1 ? index->dims[0] : -1,
                           seed->rank == 2 ? seed->dims[0] : -1,
                           max_index->rank == 1 ? max_index->dims[0] : -1};
  for (int i = 0; i < 3; ++i) count = WEIR_MAX(count, sizes[i]);
  const bool fits = index->rank <= 1 && max_index->rank <= 1 &&
                    (sizes[0] < 0 || sizes[0] == count) && (sizes[2] < 0 || sizes[2] == count);
  return fits ? count : 0;
}

static weir_status_t* shuffle_one(weir_kernel_ctx_t* ctx, int64_t i, int rounds,
                                  weir_tensor_t* out) {
  const weir_tensor_t* seed = weir_kernel_input(ctx, 1);
  const int64_t index = number_at(weir_kernel_input(ctx, 0), i);
  const int64_t max_index = number_at(weir_kernel_input(ctx, 2), i);
  WEIR_TRY(check_numbers(weir_tensor_type(out), index, max_index));
  uint32_t words[3];
  for (int k = 0; k < 3; ++k) {
    words[k] = (uint32_t)element_at(seed, (seed->rank == 2 ? 3 * i : 0) + k);
  }
  cipher_t cipher;
  make_cipher(&cipher, (uint64_t)max_index, words, rounds);
  uint64_t value = (uint64_t)index;
  do {
    value = encrypt(&cipher, value);
  } while (value > (uint64_t)max_index);
  write_number(out, i, value);
  return NULL;
}

static weir_status_t* shuffle_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* index = weir_kernel_input(ctx, 0);
  const weir_tensor_t* seed = weir_kernel_input(ctx, 1);
  const weir_tensor_t* max_index = weir_kernel_input(ctx, 2);
  const int64_t count = count_items(index, seed, max_index);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (count == 0) return WEIR_STATUS(INVALID_ARGUMENT, "Index bust be a scalar or vector.");
  const bool is_seed = (seed->rank == 1 && seed->dims[0] == 3) ||
                       (seed->rank == 2 && seed->dims[0] == count && seed->dims[1] == 3);
  if (!is_seed) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "Seed must be a vector of size [3] or a matrix of size [%lld, 3] but got %s.",
        (long long)count, weir_tensor_shape_text(seed, text));
  }
  // The cipher wants an even number of rounds, four at least.
  int64_t rounds = weir_attrs_int(weir_kernel_attrs(ctx), "rounds");
  rounds = WEIR_MIN(WEIR_MAX(rounds + (rounds & 1), 4), MAX_ROUNDS);
  const bool is_vector = index->rank == 1 || seed->rank == 2 || max_index->rank == 1;
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, is_vector ? 1 : 0, &count, &out));
  for (int64_t i = 0; i < count; ++i) WEIR_TRY(shuffle_one(ctx, i, (int)rounds, out));
  return NULL;
}

static weir_status_t* shuffle_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* index = weir_shape_input(ctx, 0);
  const weir_shape_t* seed = weir_shape_input(ctx, 1);
  const weir_shape_t* max_index = weir_shape_input(ctx, 2);
  int64_t count = -1;
  WEIR_TRY(weir_shape_at_most(ctx, index, 1));
  WEIR_TRY(weir_shape_at_least(ctx, seed, 1));
  WEIR_TRY(weir_shape_at_most(ctx, seed, 2));
  WEIR_TRY(weir_shape_at_most(ctx, max_index, 1));
  if (seed->rank >= 1 && weir_shape_dim(seed, -1) >= 0 && weir_shape_dim(seed, -1) != 3) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "Seed must have shape [3] or [n, 3] but got %s.",
                       weir_shape_text(seed->rank, seed->dims, text));
  }
  if (index->rank < 0 || seed->rank < 0 || max_index->rank < 0) return NULL;
  if (index->rank == 0 && seed->rank == 1 && max_index->rank == 0) {
    return weir_shape_set_scalar(ctx, 0);
  }
  if (index->rank == 1) WEIR_TRY(weir_dim_join(ctx, count, index->dims[0], &count));
  if (seed->rank == 2) WEIR_TRY(weir_dim_join(ctx, count, seed->dims[0], &count));
  if (max_index->rank == 1) WEIR_TRY(weir_dim_join(ctx, count, max_index->dims[0], &count));
  return weir_shape_set_vector(ctx, 0, count);
}

const weir_op_module_t weir_ops_random_random_index_shuffle = {
    .file = __FILE__,
    .ops =
        (const weir_op_def_t[]){{.name = "RandomIndexShuffle",
                                 .attrs = "rounds: int = 4; dtype: {int32, uint32, int64, uint64}; "
                                          "Tseed: {int32, uint32, int64, uint64}",
                                 .inputs = "index: dtype; seed: Tseed; max_index: dtype",
                                 .outputs = "output: dtype",
                                 .flags = WEIR_OP_NO_GRADIENT,
                                 .summary = "Where indices go to in a random permutation",
                                 .infer_shape = shuffle_shape,
                                 .kernels = WEIR_CPU_KERNEL(.compute = shuffle_cpu)},
                                {0}}};

// to_hash_bucket.c — StringToHashBucketFast, StringToHashBucketStrong, StringToHashBucket: strings
// as numbers below a limit, by three hashes; _TensorToHashBucketFast: the same of numbers as
// AsString writes them.
#include <inttypes.h>
#include <stdio.h>

#include "base/fingerprint.h"
#include "base/interrupt.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

typedef uint64_t (*hash_fn_t)(weir_view_t text, const uint64_t key[2]);

static weir_status_t* hash_all(weir_kernel_ctx_t* ctx, hash_fn_t hash, const uint64_t key[2]) {
  const weir_tensor_t* input = weir_kernel_input(ctx, 0);
  const uint64_t buckets = (uint64_t)weir_attrs_int(weir_kernel_attrs(ctx), "num_buckets");
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, input->rank, input->dims, &out));
  for (int64_t i = 0; i < input->count; ++i) {
    WEIR_TRY(weir_interrupt_poll(i));
    const weir_view_t text = weir_string_view(WEIR_TENSOR_DATA(input, weir_string_t) + i);
    WEIR_TENSOR_DATA(out, int64_t)[i] = (int64_t)(hash(text, key) % buckets);
  }
  return NULL;
}

static uint64_t fast_hash(weir_view_t text, const uint64_t key[2]) {
  (void)key;
  return weir_fingerprint64(text.data, text.size);
}

static weir_status_t* fast_cpu(weir_kernel_ctx_t* ctx) { return hash_all(ctx, fast_hash, NULL); }

// Up to 8 bytes, the first one lowest.
static uint64_t word_at(const char* data, size_t size) {
  uint64_t word = 0;
  for (size_t i = size; i-- > 0;) word = word << 8 | (uint8_t)data[i];
  return word;
}

static uint64_t legacy_hash(weir_view_t text, const uint64_t key[2]) {
  (void)key;
  return weir_murmur64(text.data, text.size);
}

static weir_status_t* legacy_cpu(weir_kernel_ctx_t* ctx) {
  return hash_all(ctx, legacy_hash, NULL);
}

static uint64_t rotate(uint64_t x, int by) { return x << by | x >> (64 - by); }

static void sip_rounds(uint64_t v[4], int count) {
  while (count-- > 0) {
    v[0] += v[1], v[1] = rotate(v[1], 13) ^ v[0], v[0] = rotate(v[0], 32);
    v[2] += v[3], v[3] = rotate(v[3], 16) ^ v[2];
    v[0] += v[3], v[3] = rotate(v[3], 21) ^ v[0];
    v[2] += v[1], v[1] = rotate(v[1], 17) ^ v[2], v[2] = rotate(v[2], 32);
  }
}

// SipHash-2-4.
static uint64_t strong_hash(weir_view_t text, const uint64_t key[2]) {
  uint64_t v[4] = {key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d),
                   key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573)};
  for (size_t at = 0;; at += 8) {
    const size_t left = text.size - at;
    const uint64_t word = left >= 8 ? word_at(text.data + at, 8)
                                    : word_at(text.data + at, left) | (uint64_t)text.size << 56;
    v[3] ^= word;
    sip_rounds(v, 2);
    v[0] ^= word;
    if (left < 8) break;
  }
  v[2] ^= 0xff;
  sip_rounds(v, 4);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static weir_status_t* strong_init(const weir_kernel_init_t* init, void* state) {
  const weir_attr_t* key = weir_attrs_list(init->node->attrs, "key");
  if (key->count != 2) return WEIR_STATUS(INVALID_ARGUMENT, "Key must have 2 elements");
  for (int i = 0; i < 2; ++i) ((uint64_t*)state)[i] = (uint64_t)key->u.ints[i];
  return NULL;
}

static weir_status_t* strong_cpu(weir_kernel_ctx_t* ctx) {
  return hash_all(ctx, strong_hash, ctx->state);
}

static int write_number(const weir_tensor_t* t, int64_t i, char* text, size_t size) {
  switch (weir_tensor_type(t)) {
    case WEIR_DTYPE_INT8: return snprintf(text, size, "%d", WEIR_TENSOR_DATA(t, int8_t)[i]);
    case WEIR_DTYPE_UINT8: return snprintf(text, size, "%u", WEIR_TENSOR_DATA(t, uint8_t)[i]);
    case WEIR_DTYPE_INT16: return snprintf(text, size, "%d", WEIR_TENSOR_DATA(t, int16_t)[i]);
    case WEIR_DTYPE_UINT16: return snprintf(text, size, "%u", WEIR_TENSOR_DATA(t, uint16_t)[i]);
    case WEIR_DTYPE_INT32: return snprintf(text, size, "%" PRId32, WEIR_TENSOR_DATA(t, int32_t)[i]);
    case WEIR_DTYPE_UINT32:
      return snprintf(text, size, "%" PRIu32, WEIR_TENSOR_DATA(t, uint32_t)[i]);
    case WEIR_DTYPE_UINT64:
      return snprintf(text, size, "%" PRIu64, WEIR_TENSOR_DATA(t, uint64_t)[i]);
    default: return snprintf(text, size, "%" PRId64, WEIR_TENSOR_DATA(t, int64_t)[i]);
  }
}

static weir_status_t* number_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* input = weir_kernel_input(ctx, 0);
  const uint64_t buckets = (uint64_t)weir_attrs_int(weir_kernel_attrs(ctx), "num_buckets");
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, input->rank, input->dims, &out));
  for (int64_t i = 0; i < input->count; ++i) {
    WEIR_TRY(weir_interrupt_poll(i));
    char text[32];
    int size = write_number(input, i, text, sizeof(text));
    uint64_t hash = weir_fingerprint64(text, (size_t)size);
    WEIR_TENSOR_DATA(out, int64_t)[i] = (int64_t)(hash % buckets);
  }
  return NULL;
}

const weir_op_module_t weir_ops_string_to_hash_bucket = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "StringToHashBucketFast",
         .attrs = "num_buckets: int >= 1",
         .inputs = "input: string",
         .outputs = "output: int64",
         .summary = "Buckets of strings by their fingerprint, the same in every run",
         .infer_shape = weir_shape_fn_unchanged,
         .kernels = WEIR_CPU_KERNEL(.compute = fast_cpu)},
        {.name = "StringToHashBucketStrong",
         .attrs = "num_buckets: int >= 1; key: list(int)",
         .inputs = "input: string",
         .outputs = "output: int64",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "Buckets of strings by a hash with a key",
         .infer_shape = weir_shape_fn_unchanged,
         .kernels = WEIR_CPU_KERNEL(.compute = strong_cpu, .init = strong_init,
                                    .state_size = 2 * sizeof(uint64_t))},
        {.name = "StringToHashBucket",
         .attrs = "num_buckets: int >= 1",
         .inputs = "string_tensor: string",
         .outputs = "output: int64",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "Buckets of strings by TensorFlow's old hash",
         .infer_shape = weir_shape_fn_unchanged,
         .kernels = WEIR_CPU_KERNEL(.compute = legacy_cpu)},
        {.name = "_TensorToHashBucketFast",
         .attrs = "T: {int8, uint8, int16, uint16, int32, uint32, int64, uint64}; num_buckets: int "
                  ">= 1",
         .inputs = "input: T",
         .outputs = "output: int64",
         .summary = "Buckets of numbers by the fingerprint of their decimal digits",
         .infer_shape = weir_shape_fn_unchanged,
         .kernels = WEIR_CPU_KERNEL(.compute = number_cpu)},
        {0}}};

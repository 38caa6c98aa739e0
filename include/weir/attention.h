// attention.h — Attention: what a position looks at, decided by the data.
//
//   weir_attention_result_t a = weir_multi_head_attention(s, x, x, 8, 64, .is_causal = true);
//   x = weir_layer_norm(s, weir_add_v2(s, x, a.output));
//
// Masks are bool, true where one may look; they need only be broadcastable. A query that may look
// at nothing looks at everything alike. Errors stick in the scope. Threading: as the scope's.
#ifndef WEIR_ATTENTION_H_
#define WEIR_ATTENTION_H_

#include "weir/attrs.h"
#include "weir/initializer.h"
#include "weir/scope.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_attention_result_t {
  weir_edge_t output;
  weir_edge_t weights;  // how much each query looks at each key; rows sum to 1
} weir_attention_result_t;

// ---- scaled dot products ----

typedef struct weir_attention_options_t {
  int reserved;
  weir_edge_t mask;        // [..., queries, keys]; default: none
  bool is_causal;          // query i looks at keys 0 … i only
  weir_opt_float_t scale;  // of the products; default: 1 / sqrt(depth)
  float dropout_rate;      // of weights, in training; default: 0
  weir_edge_t training;    // as in weir_layer_dropout
  bool is_training;
  int64_t seed;
} weir_attention_options_t;
// softmax(query * keyᵀ * scale) * value. |query| is [..., queries, depth], |key| [..., keys, depth]
// with a known depth, |value| [..., keys, n].
WEIR_API weir_attention_result_t weir_attention_with(weir_scope_t* scope, weir_edge_t query,
                                                     weir_edge_t key, weir_edge_t value,
                                                     const weir_attention_options_t* options);
#define weir_attention(scope, query, key, value, ...)   \
  weir_attention_with((scope), (query), (key), (value), \
                      &(const weir_attention_options_t){0, __VA_ARGS__})

// ---- several heads ----

typedef struct weir_multi_head_options_t {
  int reserved;
  const char* name;  // default: "multi_head_attention"
  weir_edge_t key;   // default: the value
  int value_dim;     // of a head; default: key_dim
  int output_size;   // default: as the query
  bool no_bias;
  weir_init_t kernel_init, bias_init;  // default: Glorot's uniform, zeros
  weir_edge_t mask;                    // [batch, queries, keys], or of rank 2 or 4
  bool is_causal;
  float dropout_rate;
  weir_edge_t training;
  bool is_training;
  int64_t seed;
} weir_multi_head_options_t;
// |query| [batch, queries, n] looks at |value| [batch, keys, m] through |heads| heads of |key_dim|
// each. Variables are those of Keras' MultiHeadAttention: "query/kernel" [n, heads, key_dim],
// "query/bias", "key/…", "value/…", "attention_output/kernel" [heads, value_dim, output_size],
// "attention_output/bias". The weights are [batch, heads, queries, keys].
WEIR_API weir_attention_result_t
weir_multi_head_attention_with(weir_scope_t* scope, weir_edge_t query, weir_edge_t value, int heads,
                               int key_dim, const weir_multi_head_options_t* options);
#define weir_multi_head_attention(scope, query, value, heads, key_dim, ...)     \
  weir_multi_head_attention_with((scope), (query), (value), (heads), (key_dim), \
                                 &(const weir_multi_head_options_t){0, __VA_ARGS__})

// ---- for decoders: one query a step, over a memory that stays ----

// A memory and how it is looked at; owned by the root scope.
typedef struct weir_memory_attention_t weir_memory_attention_t;
typedef struct weir_memory_attention_options_t {
  int reserved;
  const char* name;           // default: "bahdanau_attention" or "luong_attention"
  weir_edge_t memory_length;  // integers [batch]: what is beyond is not looked at; default: all
  bool normalize;             // Bahdanau: the weight-normalised form. Luong: with a learnt scale
  weir_init_t kernel_init;    // default: Glorot's uniform
} weir_memory_attention_options_t;
// Scores v · tanh(keys + query * W), where keys = memory * U; |memory| is [batch, steps, n].
// Variables "memory_layer/kernel", "query_layer/kernel", "attention_v"; normalised: "attention_g"
// and "attention_b".
WEIR_API weir_memory_attention_t* weir_bahdanau_attention_with(
    weir_scope_t* scope, weir_edge_t memory, int units,
    const weir_memory_attention_options_t* options);
// Scores keys · query; queries must have |units|. Variable "memory_layer/kernel"; scaled:
// "attention_g".
WEIR_API weir_memory_attention_t* weir_luong_attention_with(
    weir_scope_t* scope, weir_edge_t memory, int units,
    const weir_memory_attention_options_t* options);
#define weir_bahdanau_attention(scope, memory, units, ...) \
  weir_bahdanau_attention_with((scope), (memory), (units), \
                               &(const weir_memory_attention_options_t){0, __VA_ARGS__})
#define weir_luong_attention(scope, memory, units, ...) \
  weir_luong_attention_with((scope), (memory), (units), \
                            &(const weir_memory_attention_options_t){0, __VA_ARGS__})
// Looks at the memory with |query| [batch, m]: output [batch, n], weights [batch, steps]. May be
// called inside a loop.
WEIR_API weir_attention_result_t weir_attend(weir_memory_attention_t* attention,
                                             weir_scope_t* scope, weir_edge_t query);

// ---- positions ----

// A constant [length, depth]: sines in the even columns, cosines in the odd ones, of wavelengths
// from 2π to 10000 · 2π.
WEIR_API weir_edge_t weir_positional_encoding(weir_scope_t* scope, int length, int depth);

#ifdef __cplusplus
}
#endif
#endif  // WEIR_ATTENTION_H_

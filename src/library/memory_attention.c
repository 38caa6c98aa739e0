// memory_attention.c — Additive and multiplicative attention of a decoder over a memory.
#include "attention.h"
#include "nodes.h"
#include "weights.h"
#include "weir/attention.h"

struct weir_memory_attention_t {
  weir_scope_t* scope;  // where its variables go
  weir_init_t kernel_init;
  weir_dtype_t dtype;
  int units;
  bool is_additive;
  weir_edge_t values;               // the memory, zero beyond its lengths
  weir_edge_t keys;                 // [batch, steps, units]
  weir_edge_t mask;                 // [batch, steps]; none: all
  weir_edge_t query_kernel;         // additive; made by the first query
  weir_edge_t vector, scale, bias;  // where there are such
};

static weir_edge_t weight(const weir_memory_attention_t* a, weir_scope_t* s, const char* name,
                          weir_init_t fallback, weir_dims_t shape) {
  const bool is_kernel = fallback.kind != WEIR_INIT_CONSTANT;
  return weir_lib_weight(s, name, WEIR_LIB_NONE, is_kernel ? a->kernel_init : fallback, fallback,
                         a->dtype, shape);
}

static void set_length(weir_memory_attention_t* a, weir_edge_t memory, weir_edge_t length) {
  weir_scope_t* s = a->scope;
  a->values = memory;
  if (!length.node || weir_scope_status(s)) return;
  weir_edge_t steps = weir_lib_element(s, weir_shape(s, memory), 1);
  weir_edge_t position = weir_range(s, weir_const_int(s, 0), steps, weir_const_int(s, 1));
  weir_edge_t lengths = weir_lib_cast(s, length, WEIR_DTYPE_INT32);
  a->mask = weir_less(s, position, weir_expand_dims(s, lengths, weir_const_int(s, 1)));
  weir_edge_t is_memory = weir_expand_dims(s, a->mask, weir_const_int(s, 2));
  a->values = weir_select_v2(s, is_memory, memory, weir_lib_number(s, a->dtype, 0));
}

static weir_edge_t make_keys(const weir_memory_attention_t* a) {
  weir_scope_t* s = a->scope;
  const int64_t width = weir_lib_dim(a->values, 2);
  weir_edge_t kernel = weight(a, weir_scope_in(s, "memory_layer"), "kernel",
                              weir_init_glorot_uniform(0), WEIR_SHAPE(width, a->units));
  weir_edge_t rows = weir_reshape(s, a->values, weir_lib_vector(s, -1, width));
  weir_edge_t leading = weir_lib_part(s, weir_shape(s, a->values), 0, 2);
  return weir_reshape(s, weir_mat_mul(s, rows, kernel),
                      weir_lib_concat(s, leading, weir_lib_vector(s, a->units), 0));
}

static weir_memory_attention_t* make(weir_scope_t* scope, weir_edge_t memory, int units,
                                     const weir_memory_attention_options_t* options,
                                     const char* name) {
  if (!weir_lib_ready(scope, name, memory)) return NULL;
  if (units < 1 || weir_lib_rank(memory) != 3 || weir_lib_dim(memory, 2) < 1) {
    weir_lib_fail(scope,
                  "%s: '%s' must be of rank 3 with a known last dimension, and units (%d) positive",
                  name, weir_node_name(memory.node), units);
    return NULL;
  }
  weir_memory_attention_t* a = weir_scope_alloc(scope, 1, sizeof(*a));
  if (!a) return NULL;
  *a =
      (weir_memory_attention_t){.scope = weir_scope_in(scope, options->name ? options->name : name),
                                .kernel_init = options->kernel_init,
                                .dtype = weir_edge_type(memory),
                                .units = units};
  set_length(a, memory, options->memory_length);
  if (weir_scope_status(scope)) return NULL;
  a->keys = make_keys(a);
  return a;
}

weir_memory_attention_t* weir_bahdanau_attention_with(
    weir_scope_t* scope, weir_edge_t memory, int units,
    const weir_memory_attention_options_t* options) {
  options = options ? options : &(const weir_memory_attention_options_t){0};
  weir_memory_attention_t* a = make(scope, memory, units, options, "bahdanau_attention");
  if (!a) return NULL;
  a->is_additive = true;
  a->vector = weight(a, a->scope, "attention_v", weir_init_glorot_uniform(0), WEIR_SHAPE(units));
  if (!options->normalize || weir_scope_status(scope)) return a;
  weir_scope_t* s = a->scope;
  a->bias = weight(a, s, "attention_b", weir_init_zeros(), WEIR_SHAPE(units));
  weir_edge_t root = weir_rsqrt(s, weir_lib_number(s, a->dtype, units));
  a->scale = weir_variable(s, "attention_g", root);
  weir_edge_t norm = weir_rsqrt(s, weir_lib_sum(s, weir_square(s, a->vector)));
  a->vector = weir_mul(s, weir_mul(s, a->scale, a->vector), norm);
  return a;
}

weir_memory_attention_t* weir_luong_attention_with(weir_scope_t* scope, weir_edge_t memory,
                                                   int units,
                                                   const weir_memory_attention_options_t* options) {
  options = options ? options : &(const weir_memory_attention_options_t){0};
  weir_memory_attention_t* a = make(scope, memory, units, options, "luong_attention");
  if (a && options->normalize)
    a->scale = weight(a, a->scope, "attention_g", weir_init_ones(), WEIR_SCALAR_SHAPE);
  return a;
}

// ---- looking ----

static weir_edge_t additive_scores(weir_memory_attention_t* a, weir_scope_t* s, weir_edge_t query) {
  if (!a->query_kernel.node) {
    a->query_kernel =
        weight(a, weir_scope_in(a->scope, "query_layer"), "kernel", weir_init_glorot_uniform(0),
               WEIR_SHAPE(weir_lib_dim(query, 1), a->units));
  }
  weir_edge_t wanted =
      weir_expand_dims(s, weir_mat_mul(s, query, a->query_kernel), weir_const_int(s, 1));
  weir_edge_t sum = weir_add_v2(s, a->keys, wanted);
  if (a->bias.node) sum = weir_add_v2(s, sum, a->bias);
  return weir_sum(s, weir_mul(s, a->vector, weir_tanh(s, sum)), weir_const_int(s, 2));
}

static weir_edge_t product_scores(const weir_memory_attention_t* a, weir_scope_t* s,
                                  weir_edge_t query) {
  weir_edge_t column = weir_expand_dims(s, query, weir_const_int(s, 2));
  weir_edge_t scores =
      weir_squeeze(s, weir_batch_mat_mul_v2(s, a->keys, column), .squeeze_dims = WEIR_INTS(2));
  return a->scale.node ? weir_mul(s, a->scale, scores) : scores;
}

weir_attention_result_t weir_attend(weir_memory_attention_t* attention, weir_scope_t* scope,
                                    weir_edge_t query) {
  weir_attention_result_t result = {WEIR_LIB_NONE, WEIR_LIB_NONE};
  if (!attention || !weir_lib_ready(scope, "attend", query)) return result;
  const int64_t width = weir_lib_dim(query, 1);
  const bool is_fit = attention->is_additive ? width > 0 : width == attention->units;
  if (weir_lib_rank(query) != 2 || !is_fit) {
    weir_lib_fail(scope, "attention: the query '%s' must be a matrix of %s width, but has %lld",
                  weir_node_name(query.node), attention->is_additive ? "known" : "the keys'",
                  (long long)width);
    return result;
  }
  weir_scope_t* s = weir_scope_in(scope, "attend");
  weir_edge_t scores = attention->is_additive ? additive_scores(attention, s, query)
                                              : product_scores(attention, s, query);
  result.weights = weir_softmax(s, weir_lib_mask_scores(s, scores, attention->mask));
  weir_edge_t row = weir_expand_dims(s, result.weights, weir_const_int(s, 1));
  result.output = weir_squeeze(s, weir_batch_mat_mul_v2(s, row, attention->values),
                               .squeeze_dims = WEIR_INTS(1));
  return result;
}

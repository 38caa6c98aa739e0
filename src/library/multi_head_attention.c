// multi_head_attention.c — Attention through several heads, each with projections of its own.
#include "nodes.h"
#include "weights.h"
#include "weir/attention.h"

typedef struct heads_t {
  weir_scope_t* scope;
  const weir_multi_head_options_t* options;
  weir_dtype_t dtype;
  int64_t count;
} heads_t;

// x [batch, steps, …] times a kernel, whose first |contracted| dimensions are those of x after the
// second, plus a bias: a product of matrices.
static weir_edge_t project(const heads_t* h, const char* name, weir_edge_t x, weir_dims_t shape,
                           int contracted) {
  const weir_multi_head_options_t* options = h->options;
  weir_scope_t* s = weir_scope_in(h->scope, name);
  int64_t rows = 1, columns = 1;
  for (int i = 0; i < shape.rank; ++i) *(i < contracted ? &rows : &columns) *= shape.dims[i];
  weir_edge_t kernel = weir_lib_weight(s, "kernel", WEIR_LIB_NONE, options->kernel_init,
                                       weir_init_glorot_uniform(0), h->dtype, shape);
  kernel = weir_reshape(s, kernel, weir_lib_vector(s, rows, columns));
  weir_edge_t y = weir_mat_mul(s, weir_reshape(s, x, weir_lib_vector(s, -1, rows)), kernel);
  if (options->no_bias) return y;
  weir_dims_t rest = {shape.dims + contracted, shape.rank - contracted, true};
  weir_edge_t bias = weir_lib_weight(s, "bias", WEIR_LIB_NONE, options->bias_init,
                                     weir_init_zeros(), h->dtype, rest);
  return weir_bias_add(s, y, weir_reshape(s, bias, weir_lib_vector(s, columns)));
}

// [batch, steps, sizes…] from a matrix of all rows; batch and steps are those of |like|.
static weir_edge_t unfold(weir_scope_t* s, weir_edge_t y, weir_edge_t like, const int64_t* sizes,
                          int size_count) {
  weir_edge_t leading = weir_lib_part(s, weir_shape(s, like), 0, 2);
  return weir_reshape(s, y, weir_lib_concat(s, leading, weir_lib_ints(s, sizes, size_count), 0));
}

// [batch, heads, steps, dim].
static weir_edge_t split_heads(const heads_t* h, const char* name, weir_edge_t x, int64_t dim) {
  const int64_t width = weir_lib_dim(x, 2);
  weir_edge_t y = project(h, name, x, WEIR_SHAPE(width, h->count, dim), 1);
  const int64_t sizes[] = {h->count, dim};
  return weir_transpose(h->scope, unfold(h->scope, y, x, sizes, 2),
                        weir_lib_vector(h->scope, 0, 2, 1, 3));
}

static bool check(weir_scope_t* scope, weir_edge_t x, const char* what) {
  if (weir_lib_rank(x) == 3 && weir_lib_dim(x, 2) > 0) return true;
  weir_lib_fail(scope,
                "multi-head attention: the %s '%s' must be of rank 3 with a known last dimension",
                what, weir_node_name(x.node));
  return false;
}

static weir_edge_t mask_of_heads(weir_scope_t* s, weir_edge_t mask) {
  if (weir_scope_status(s) || !mask.node || weir_lib_rank(mask) != 3) return mask;
  return weir_expand_dims(s, mask, weir_const_int(s, 1));
}

weir_attention_result_t weir_multi_head_attention_with(weir_scope_t* scope, weir_edge_t query,
                                                       weir_edge_t value, int heads, int key_dim,
                                                       const weir_multi_head_options_t* options) {
  options = options ? options : &(const weir_multi_head_options_t){0};
  weir_attention_result_t result = {WEIR_LIB_NONE, WEIR_LIB_NONE};
  weir_edge_t key = options->key.node ? options->key : value;
  if (!weir_lib_ready(scope, "multi-head attention", query, value, key)) return result;
  if (!check(scope, query, "query") || !check(scope, value, "value") || !check(scope, key, "key"))
    return result;
  if (heads < 1 || key_dim < 1) {
    weir_lib_fail(scope, "multi-head attention needs heads of at least one number, got %d of %d",
                  heads, key_dim);
    return result;
  }
  weir_scope_t* s = weir_scope_in(scope, options->name ? options->name : "multi_head_attention");
  heads_t h = {.scope = s, .options = options, .dtype = weir_edge_type(query), .count = heads};
  const int64_t value_dim = options->value_dim ? options->value_dim : key_dim;
  const int64_t size = options->output_size ? options->output_size : weir_lib_dim(query, 2);
  weir_edge_t q = split_heads(&h, "query", query, key_dim);
  weir_edge_t k = split_heads(&h, "key", key, key_dim);
  weir_edge_t v = split_heads(&h, "value", value, value_dim);
  if (weir_scope_status(s)) return result;
  result = weir_attention(s, q, k, v, .mask = mask_of_heads(s, options->mask),
                          .is_causal = options->is_causal, .dropout_rate = options->dropout_rate,
                          .training = options->training, .is_training = options->is_training,
                          .seed = options->seed);
  if (weir_scope_status(s)) return result;
  weir_edge_t joined = weir_transpose(s, result.output, weir_lib_vector(s, 0, 2, 1, 3));
  weir_edge_t y = project(&h, "attention_output", joined, WEIR_SHAPE(heads, value_dim, size), 2);
  result.output = unfold(s, y, query, &size, 1);
  return result;
}

// parse_sequence_example.c — ParseSequenceExample, V2, ParseSingleSequenceExample: SequenceExample
// messages become dense, sparse and ragged tensors.
#include "ops/io/common.h"
#include "ops/io/sequences.h"

// ---- what is asked for ----

// Memory for what a plan borrows. Freed by lists_free.
typedef struct lists_t {
  weir_view_t *context_keys, *list_keys;
  weir_tensor_t** defaults;
  bool* may_miss;
} lists_t;

static weir_feature_set_t set_of(weir_attrs_t attrs, bool is_lists) {
  const weir_attr_t* sparse =
      weir_attrs_list(attrs, is_lists ? "feature_list_sparse_types" : "context_sparse_types");
  const weir_attr_t* dense =
      weir_attrs_list(attrs, is_lists ? "feature_list_dense_types" : "Tcontext_dense");
  const weir_attr_t* shapes =
      weir_attrs_list(attrs, is_lists ? "feature_list_dense_shapes" : "context_dense_shapes");
  const weir_attr_t* ragged = weir_attrs_find(
      attrs, is_lists ? "feature_list_ragged_value_types" : "context_ragged_value_types");
  const weir_attr_t* splits = weir_attrs_find(
      attrs, is_lists ? "feature_list_ragged_split_types" : "context_ragged_split_types");
  return (weir_feature_set_t){.sparse_count = (int64_t)sparse->count,
                              .dense_count = (int64_t)dense->count,
                              .ragged_count = ragged ? (int64_t)ragged->count : 0,
                              .sparse_types = sparse->u.types,
                              .dense_types = dense->u.types,
                              .ragged_types = ragged ? ragged->u.types : NULL,
                              .split_types = splits ? splits->u.types : NULL,
                              .dense_shapes = shapes->u.shapes};
}

static size_t key_count(const weir_feature_set_t* set) {
  return (size_t)(set->sparse_count + set->dense_count + set->ragged_count);
}

static weir_status_t* lists_create(const weir_kernel_ctx_t* ctx, weir_sequences_plan_t* plan,
                                   int first_default, lists_t* out) {
  plan->context = set_of(weir_kernel_attrs(ctx), false);
  plan->lists = set_of(weir_kernel_attrs(ctx), true);
  out->context_keys = weir_calloc(key_count(&plan->context) + 1, sizeof(*out->context_keys));
  out->list_keys = weir_calloc(key_count(&plan->lists) + 1, sizeof(*out->list_keys));
  out->defaults = weir_calloc((size_t)plan->context.dense_count + 1, sizeof(*out->defaults));
  out->may_miss = weir_calloc((size_t)plan->lists.dense_count + 1, sizeof(*out->may_miss));
  if (!out->context_keys || !out->list_keys || !out->defaults || !out->may_miss)
    return weir_out_of_memory();
  for (int64_t d = 0; d < plan->context.dense_count; ++d)
    out->defaults[d] = ctx->inputs[first_default + (int)d].tensor;
  plan->context.keys = out->context_keys;
  plan->lists.keys = out->list_keys;
  plan->defaults = out->defaults;
  plan->may_miss = out->may_miss;
  return NULL;
}

static void lists_free(lists_t* lists) {
  weir_free(lists->context_keys);
  weir_free(lists->list_keys);
  weir_free(lists->defaults);
  weir_free(lists->may_miss);
}

// ---- checks ----

static weir_status_t* expect_rank(const weir_tensor_t* tensor, int rank, const char* name) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (tensor->rank == rank) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Expected %s to be a %s, got shape: %s", name,
                     rank == 0 ? "scalar" : "vector", weir_tensor_shape_text(tensor, text));
}

static weir_status_t* check_batch(const weir_kernel_ctx_t* ctx) {
  const weir_tensor_t *serialized = weir_kernel_input(ctx, 0), *names = weir_kernel_input(ctx, 1);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (serialized->rank > 1)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Expected serialized to be a scalar or vector, got shape: %s",
                       weir_tensor_shape_text(serialized, text));
  if (names->count == 0 || names->count == serialized->count) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "example_names must be empty or have the correct number of elements");
}

// Parses, and what comes out are the node's outputs.
static weir_status_t* parse_to_outputs(weir_kernel_ctx_t* ctx, const weir_sequences_plan_t* plan,
                                       const weir_tensor_t* names) {
  WEIR_TRY(weir_sequences_check_defaults(plan));
  weir_tensor_t** out = weir_calloc((size_t)ctx->output_count + 1, sizeof(*out));
  if (!out) return weir_out_of_memory();
  weir_status_t* status = weir_sequences_parse(plan, weir_kernel_input(ctx, 0), names, out);
  for (int i = 0; i < ctx->output_count && !status; ++i) weir_kernel_set(ctx, i, out[i]);
  weir_free(out);
  return status;
}

// ---- ParseSequenceExample: keys are attributes ----

static weir_view_t* put_attr_keys(const weir_kernel_ctx_t* ctx, const char* attr, weir_view_t* at) {
  const weir_attr_t* keys = weir_attrs_list(weir_kernel_attrs(ctx), attr);
  for (size_t i = 0; i < keys->count; ++i) *at++ = keys->u.strings[i];
  return at;
}

static bool has_string(const weir_attr_t* list, weir_view_t text) {
  for (size_t i = 0; i < list->count; ++i)
    if (weir_view_equal(list->u.strings[i], text)) return true;
  return false;
}

static weir_status_t* parse_v1(weir_kernel_ctx_t* ctx, weir_sequences_plan_t* plan,
                               lists_t* lists) {
  const weir_attr_t* missing =
      weir_attrs_list(weir_kernel_attrs(ctx), "feature_list_dense_missing_assumed_empty");
  WEIR_TRY(lists_create(ctx, plan, 2, lists));
  WEIR_TRY(check_batch(ctx));
  weir_view_t* at = put_attr_keys(ctx, "context_sparse_keys", lists->context_keys);
  put_attr_keys(ctx, "context_dense_keys", at);
  at = put_attr_keys(ctx, "feature_list_sparse_keys", lists->list_keys);
  put_attr_keys(ctx, "feature_list_dense_keys", at);
  for (int64_t d = 0; d < plan->lists.dense_count; ++d)
    lists->may_miss[d] = has_string(missing, lists->list_keys[plan->lists.sparse_count + d]);
  return parse_to_outputs(ctx, plan, weir_kernel_input(ctx, 1));
}

// ---- ParseSequenceExampleV2: keys are vectors, or of another shape with as many ----

static weir_status_t* put_vector_keys(const weir_kernel_ctx_t* ctx, int input, const char* name,
                                      int64_t expected, weir_view_t** at) {
  const weir_tensor_t* keys = weir_kernel_input(ctx, input);
  if (keys->count != expected)
    return WEIR_STATUS(INVALID_ARGUMENT, "Expected len(%s) == %lld, got: %lld", name,
                       (long long)expected, (long long)keys->count);
  for (int64_t i = 0; i < expected; ++i) *(*at)++ = io_string(keys, i);
  return NULL;
}

static weir_status_t* put_set_keys(const weir_kernel_ctx_t* ctx, int first,
                                   const char* const* names, const weir_feature_set_t* set,
                                   weir_view_t* at) {
  WEIR_TRY(put_vector_keys(ctx, first, names[0], set->sparse_count, &at));
  WEIR_TRY(put_vector_keys(ctx, first + 1, names[1], set->dense_count, &at));
  return put_vector_keys(ctx, first + 2, names[2], set->ragged_count, &at);
}

static weir_status_t* parse_v2(weir_kernel_ctx_t* ctx, weir_sequences_plan_t* plan,
                               lists_t* lists) {
  static const char* const context_names[] = {"context_sparse_keys", "context_dense_keys",
                                              "context_ragged_keys"};
  static const char* const list_names[] = {"feature_list_sparse_keys", "feature_list_dense_keys",
                                           "feature_list_ragged_keys"};
  const weir_tensor_t* missing = weir_kernel_input(ctx, 8);
  WEIR_TRY(lists_create(ctx, plan, 9, lists));
  WEIR_TRY(check_batch(ctx));
  WEIR_TRY(put_set_keys(ctx, 2, context_names, &plan->context, lists->context_keys));
  WEIR_TRY(put_set_keys(ctx, 5, list_names, &plan->lists, lists->list_keys));
  if (missing->count != plan->lists.dense_count)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Expected len(feature_list_dense_missing_assumed_empty to match "
                       "Nfeature_list_dense");
  for (int64_t d = 0; d < missing->count; ++d)
    lists->may_miss[d] = WEIR_TENSOR_DATA(missing, const bool)[d];
  return parse_to_outputs(ctx, plan, weir_kernel_input(ctx, 1));
}

// ---- ParseSingleSequenceExample: keys are scalars ----

static weir_status_t* put_scalar_keys(const weir_kernel_ctx_t* ctx, int* input, int64_t count,
                                      weir_view_t* at) {
  for (int64_t i = 0; i < count; ++i) {
    const weir_tensor_t* key = weir_kernel_input(ctx, (*input)++);
    WEIR_TRY(expect_rank(key, 0, "keys"));
    *at++ = io_string(key, 0);
  }
  return NULL;
}

static weir_status_t* parse_single(weir_kernel_ctx_t* ctx, weir_sequences_plan_t* plan,
                                   lists_t* lists) {
  const weir_tensor_t* missing = weir_kernel_input(ctx, 1);
  const weir_tensor_t* name = weir_kernel_input(ctx, ctx->input_count - 1);
  const int dense = (int)weir_attrs_list(weir_kernel_attrs(ctx), "Tcontext_dense")->count;
  int input = 2;
  plan->is_single = true;
  WEIR_TRY(lists_create(ctx, plan, ctx->input_count - 1 - dense, lists));
  WEIR_TRY(expect_rank(name, 0, "debug_name"));
  WEIR_TRY(expect_rank(weir_kernel_input(ctx, 0), 0, "serialized"));
  WEIR_TRY(expect_rank(missing, 1, "feature_list_dense_missing_assumed_empty"));
  WEIR_TRY(put_scalar_keys(ctx, &input, (int64_t)key_count(&plan->context), lists->context_keys));
  WEIR_TRY(put_scalar_keys(ctx, &input, (int64_t)key_count(&plan->lists), lists->list_keys));
  for (int64_t d = 0; d < plan->lists.dense_count; ++d) {
    const weir_view_t key = lists->list_keys[plan->lists.sparse_count + d];
    for (int64_t i = 0; i < missing->count; ++i)
      lists->may_miss[d] |= weir_view_equal(io_string(missing, i), key);
  }
  return parse_to_outputs(ctx, plan, name);
}

// ---- kernels ----

static weir_status_t* run(weir_kernel_ctx_t* ctx,
                          weir_status_t* (*parse)(weir_kernel_ctx_t*, weir_sequences_plan_t*,
                                                  lists_t*)) {
  weir_sequences_plan_t plan = {.is_single = false};
  lists_t lists = {0};
  weir_status_t* status = parse(ctx, &plan, &lists);
  lists_free(&lists);
  return status;
}

static weir_status_t* v1_cpu(weir_kernel_ctx_t* ctx) { return run(ctx, parse_v1); }
static weir_status_t* v2_cpu(weir_kernel_ctx_t* ctx) { return run(ctx, parse_v2); }
static weir_status_t* single_cpu(weir_kernel_ctx_t* ctx) { return run(ctx, parse_single); }

// An attribute that says how many there are, by a number or as a list, and one that must have as
// many.
typedef struct length_t {
  const char *label, *number, *list;
} length_t;

static weir_status_t* check_length(weir_attrs_t attrs, length_t l) {
  const weir_attr_t* count = weir_attrs_find(attrs, l.number);
  const weir_attr_t* list = weir_attrs_find(attrs, l.list);
  if (!count || !list) return NULL;
  const int64_t expected = count->is_list ? (int64_t)count->count : count->u.i;
  if (expected == (int64_t)list->count) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "%s (%lld) must match the size of %s (%zu)", l.label,
                     (long long)expected, l.list, list->count);
}

static weir_status_t* check_known(const weir_attr_t* shapes) {
  for (size_t i = 0; i < shapes->count; ++i) {
    bool is_known = shapes->u.shapes[i]->rank >= 0;
    for (int k = 0; k < shapes->u.shapes[i]->rank; ++k)
      is_known &= shapes->u.shapes[i]->dims[k] >= 0;
    if (!is_known) return WEIR_STATUS(INVALID_ARGUMENT, "Shape %zu is not fully defined", i);
  }
  return NULL;
}

// Lists of attributes that are of one length, and shapes that are known.
static weir_status_t* check_attrs(weir_attrs_t attrs) {
  static const length_t lengths[] = {
      {"num_context_sparse", "Ncontext_sparse", "context_sparse_keys"},
      {"num_context_sparse", "Ncontext_sparse", "context_sparse_types"},
      {"num_context_dense", "Ncontext_dense", "context_dense_keys"},
      {"num_context_dense", "Ncontext_dense", "Tcontext_dense"},
      {"num_context_dense", "Tcontext_dense", "context_dense_shapes"},
      {"num_feature_list_sparse", "Nfeature_list_sparse", "feature_list_sparse_keys"},
      {"num_feature_list_sparse", "Nfeature_list_sparse", "feature_list_sparse_types"},
      {"num_feature_list_dense", "Nfeature_list_dense", "feature_list_dense_keys"},
      {"num_feature_list_dense", "Nfeature_list_dense", "feature_list_dense_types"},
      {"num_feature_list_dense", "feature_list_dense_types", "feature_list_dense_shapes"},
      {"num_context_ragged", "context_ragged_value_types", "context_ragged_split_types"},
      {"num_feature_list_ragged", "feature_list_ragged_value_types",
       "feature_list_ragged_split_types"}};
  for (size_t i = 0; i < WEIR_COUNT_OF(lengths); ++i) WEIR_TRY(check_length(attrs, lengths[i]));
  WEIR_TRY(check_known(weir_attrs_list(attrs, "context_dense_shapes")));
  return check_known(weir_attrs_list(attrs, "feature_list_dense_shapes"));
}

static weir_status_t* parse_init(const weir_kernel_init_t* init, void* state) {
  (void)state;
  return check_attrs(init->node->attrs);
}

// ---- shapes ----

// |take|: the first output of a part, which is advanced behind it.
static weir_status_t* set_part(weir_shape_ctx_t* ctx, const weir_shape_t* prefix, bool is_lists,
                               bool has_lengths, int* take) {
  const weir_feature_set_t set = set_of(weir_shape_attrs(ctx), is_lists);
  const int sparse = (int)set.sparse_count, dense = (int)set.dense_count;
  const int ragged = (int)set.ragged_count;
  const int64_t width = prefix->rank < 0 ? -1 : prefix->rank + (is_lists ? 2 : 1);
  const int first = *take;
  for (int i = 0; i < sparse; ++i) {
    WEIR_TRY(weir_shape_set_dims(ctx, first + i, 2, (const int64_t[]){-1, width}));
    WEIR_TRY(weir_shape_set_vector(ctx, first + sparse + i, -1));
    WEIR_TRY(weir_shape_set_vector(ctx, first + 2 * sparse + i, width));
  }
  *take += 3 * sparse;
  const weir_shape_t* rows = weir_shape_make(ctx->arena, 1, (const int64_t[]){-1});
  if (!rows) return weir_out_of_memory();
  const weir_shape_t* outer = is_lists ? weir_shape_concat(ctx, prefix, rows) : prefix;
  for (int i = 0; i < dense; ++i) {
    if (prefix->rank < 0) continue;
    const weir_shape_t* whole = weir_shape_concat(ctx, outer, set.dense_shapes[i]);
    WEIR_TRY(weir_shape_set(ctx, *take + i, whole));
    if (has_lengths) WEIR_TRY(weir_shape_set(ctx, *take + dense + i, prefix));
  }
  *take += (has_lengths ? 2 : 1) * dense;
  // Splits of one example are a scalar, which TensorFlow's shape function does not say.
  const int64_t splits = prefix->rank == 1 && prefix->dims[0] >= 0 ? prefix->dims[0] + 1 : -1;
  for (int i = 0; i < ragged; ++i) {
    WEIR_TRY(weir_shape_set_vector(ctx, *take + i, -1));
    if (prefix->rank == 1) WEIR_TRY(weir_shape_set_vector(ctx, *take + ragged + i, splits));
    if (is_lists) WEIR_TRY(weir_shape_set_vector(ctx, *take + 2 * ragged + i, -1));
  }
  *take += (is_lists ? 3 : 2) * ragged;
  return NULL;
}

static weir_status_t* set_shapes(weir_shape_ctx_t* ctx, const weir_shape_t* prefix,
                                 bool has_lengths) {
  int at = 0;
  WEIR_TRY(check_attrs(weir_shape_attrs(ctx)));
  WEIR_TRY(set_part(ctx, prefix, false, false, &at));
  return set_part(ctx, prefix, true, has_lengths, &at);
}

static weir_status_t* v1_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* serialized = NULL;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 1, &serialized));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, NULL));
  return set_shapes(ctx, serialized, true);
}

static weir_status_t* v2_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_at_most(ctx, weir_shape_input(ctx, 0), 1));
  WEIR_TRY(weir_shape_at_most(ctx, weir_shape_input(ctx, 1), 1));
  return set_shapes(ctx, weir_shape_input(ctx, 0), true);
}

static weir_status_t* single_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* serialized = NULL;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 0, &serialized));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, NULL));
  return set_shapes(ctx, serialized, false);
}

#define TYPES "list({float, int64, string}) >= 0 = []"
#define SPLITS "list({int32, int64}) >= 0 = []"
#define KEYS(n) n "_sparse_keys: list(string) >= 0; " n "_dense_keys: list(string) >= 0"
#define COUNTS                                                    \
  "Ncontext_sparse: int >= 0 = 0; Ncontext_dense: int >= 0 = 0; " \
  "Nfeature_list_sparse: int >= 0 = 0; Nfeature_list_dense: int >= 0 = 0; "
#define TYPES_AND_SHAPES                                                                         \
  "context_sparse_types: " TYPES "; Tcontext_dense: " TYPES "; feature_list_dense_types: " TYPES \
  "; context_dense_shapes: list(shape) >= 0 = []; feature_list_sparse_types: " TYPES             \
  "; feature_list_dense_shapes: list(shape) >= 0 = []"
#define CONTEXT                                       \
  "context_sparse_indices: Ncontext_sparse * int64; " \
  "context_sparse_values: context_sparse_types; "     \
  "context_sparse_shapes: Ncontext_sparse * int64; context_dense_values: Tcontext_dense"
#define LISTS                                                   \
  "feature_list_sparse_indices: Nfeature_list_sparse * int64; " \
  "feature_list_sparse_values: feature_list_sparse_types; "     \
  "feature_list_sparse_shapes: Nfeature_list_sparse * int64; "  \
  "feature_list_dense_values: feature_list_dense_types"
#define LENGTHS "; feature_list_dense_lengths: Nfeature_list_dense * int64"
#define KERNEL(fn) WEIR_CPU_KERNEL(.compute = fn, .state_size = 1, .init = parse_init)

const weir_op_module_t weir_ops_io_parse_sequence_example = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ParseSequenceExample",
         .attrs = "feature_list_dense_missing_assumed_empty: list(string) >= 0; " KEYS(
             "context") "; " KEYS("feature_list") "; " COUNTS TYPES_AND_SHAPES,
         .inputs = "serialized: string; debug_name: string; context_dense_defaults: Tcontext_dense",
         .outputs = CONTEXT "; " LISTS LENGTHS,
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "Reads SequenceExample messages into tensors",
         .infer_shape = v1_shape,
         .kernels = KERNEL(v1_cpu)},
        {.name = "ParseSequenceExampleV2",
         .attrs = "Ncontext_sparse: int >= 0 = 0; Tcontext_dense: " TYPES
                  "; context_sparse_types: " TYPES "; context_ragged_value_types: " TYPES
                  "; context_ragged_split_types: " SPLITS
                  "; context_dense_shapes: list(shape) >= 0 = []; "
                  "Nfeature_list_sparse: int >= 0 = 0; Nfeature_list_dense: int >= 0 = 0; "
                  "feature_list_dense_types: " TYPES "; feature_list_sparse_types: " TYPES
                  "; feature_list_ragged_value_types: " TYPES
                  "; feature_list_ragged_split_types: " SPLITS
                  "; feature_list_dense_shapes: list(shape) >= 0 = []",
         .inputs = "serialized: string; debug_name: string; context_sparse_keys: string; "
                   "context_dense_keys: string; context_ragged_keys: string; "
                   "feature_list_sparse_keys: string; feature_list_dense_keys: string; "
                   "feature_list_ragged_keys: string; "
                   "feature_list_dense_missing_assumed_empty: bool; "
                   "context_dense_defaults: Tcontext_dense",
         .outputs = CONTEXT "; context_ragged_values: context_ragged_value_types; "
                            "context_ragged_row_splits: context_ragged_split_types; " LISTS LENGTHS
                            "; feature_list_ragged_values: feature_list_ragged_value_types; "
                            "feature_list_ragged_outer_splits: feature_list_ragged_split_types; "
                            "feature_list_ragged_inner_splits: feature_list_ragged_split_types",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "Reads SequenceExample messages into tensors",
         .infer_shape = v2_shape,
         .kernels = KERNEL(v2_cpu)},
        {.name = "ParseSingleSequenceExample",
         .attrs = COUNTS TYPES_AND_SHAPES,
         .inputs = "serialized: string; feature_list_dense_missing_assumed_empty: string; "
                   "context_sparse_keys: Ncontext_sparse * string; "
                   "context_dense_keys: Ncontext_dense * string; "
                   "feature_list_sparse_keys: Nfeature_list_sparse * string; "
                   "feature_list_dense_keys: Nfeature_list_dense * string; "
                   "context_dense_defaults: Tcontext_dense; debug_name: string",
         .outputs = CONTEXT "; " LISTS,
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "Reads one SequenceExample message into tensors",
         .infer_shape = single_shape,
         .kernels = KERNEL(single_cpu)},
        {0}}};

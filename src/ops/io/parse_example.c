// parse_example.c — ParseExample, ParseExampleV2, ParseSingleExample: Example messages become
// dense, sparse and ragged tensors.
#include "ops/io/common.h"
#include "ops/io/examples.h"

// ---- what is asked for ----

// The plan as node and inputs say; |keys| are filled in by who calls.
static weir_examples_plan_t plan_of(const weir_kernel_ctx_t* ctx, const char* sparse_attr,
                                    weir_view_t* keys, weir_tensor_t** defaults) {
  const weir_attrs_t attrs = weir_kernel_attrs(ctx);
  const weir_attr_t* dense = weir_attrs_list(attrs, "Tdense");
  const weir_attr_t* ragged = weir_attrs_find(attrs, "ragged_value_types");
  const int first = ctx->input_count - (int)dense->count;
  for (size_t d = 0; d < dense->count; ++d) defaults[d] = ctx->inputs[first + (int)d].tensor;
  return (weir_examples_plan_t){
      .sparse_count = weir_attrs_int(attrs, sparse_attr),
      .dense_count = (int64_t)dense->count,
      .ragged_count = ragged ? (int64_t)ragged->count : 0,
      .keys = keys,
      .sparse_types = weir_attrs_list(attrs, "sparse_types")->u.types,
      .dense_types = dense->u.types,
      .ragged_types = ragged ? ragged->u.types : NULL,
      .split_types = ragged ? weir_attrs_list(attrs, "ragged_split_types")->u.types : NULL,
      .dense_shapes = weir_attrs_list(attrs, "dense_shapes")->u.shapes,
      .defaults = defaults};
}

// Parses, and what comes out are the node's outputs.
static weir_status_t* parse_to_outputs(weir_kernel_ctx_t* ctx, const weir_examples_plan_t* plan,
                                       const weir_tensor_t* names) {
  WEIR_TRY(weir_examples_check_defaults(plan));
  weir_tensor_t** out = weir_calloc((size_t)ctx->output_count + 1, sizeof(*out));
  if (!out) return weir_out_of_memory();
  weir_status_t* status = weir_examples_parse(plan, weir_kernel_input(ctx, 0), names, out);
  for (int i = 0; i < ctx->output_count && !status; ++i) weir_kernel_set(ctx, i, out[i]);
  weir_free(out);
  return status;
}

static weir_status_t* check_names(const weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* serialized = weir_kernel_input(ctx, 0);
  const weir_tensor_t* names = weir_kernel_input(ctx, 1);
  char text[WEIR_SHAPE_TEXT_SIZE], other[WEIR_SHAPE_TEXT_SIZE];
  if (names->count == 0 || weir_tensor_same_shape(names, serialized)) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Expected names have the same shape as serialized: name.shape=%s, "
                     "serialized.shape=%s",
                     weir_tensor_shape_text(names, text),
                     weir_tensor_shape_text(serialized, other));
}

// Memory for what a plan borrows. Freed by plan_free.
typedef struct lists_t {
  weir_view_t* keys;
  weir_tensor_t** defaults;
} lists_t;

static weir_status_t* lists_create(size_t key_count, size_t dense_count, lists_t* out) {
  out->keys = weir_calloc(key_count + 1, sizeof(*out->keys));
  out->defaults = weir_calloc(dense_count + 1, sizeof(*out->defaults));
  return out->keys && out->defaults ? NULL : weir_out_of_memory();
}

static void lists_free(lists_t* lists) {
  weir_free(lists->keys);
  weir_free(lists->defaults);
}

static size_t list_count(const weir_kernel_ctx_t* ctx, const char* attr) {
  return weir_attrs_list(weir_kernel_attrs(ctx), attr)->count;
}

// ---- ParseExampleV2 ----

static weir_status_t* take_keys(const weir_kernel_ctx_t* ctx, int input, const char* name,
                                const char* types, weir_view_t** keys) {
  const weir_tensor_t* tensor = weir_kernel_input(ctx, input);
  const int64_t expected = (int64_t)list_count(ctx, types);
  if (input == 3) types = "dense_types";
  if (tensor->count != expected)
    return WEIR_STATUS(INVALID_ARGUMENT, "Expected len(%s) == len(%s), got: %lld vs. %lld", name,
                       types, (long long)tensor->count, (long long)expected);
  for (int64_t i = 0; i < expected; ++i) *(*keys)++ = io_string(tensor, i);
  return NULL;
}

static weir_status_t* parse_v2(weir_kernel_ctx_t* ctx, lists_t* lists) {
  const weir_tensor_t* serialized = weir_kernel_input(ctx, 0);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (serialized->rank > 1)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Expected serialized to be a scalar or vector, got shape: %s",
                       weir_tensor_shape_text(serialized, text));
  WEIR_TRY(check_names(ctx));
  weir_view_t* key = lists->keys;
  WEIR_TRY(take_keys(ctx, 2, "sparse_keys", "sparse_types", &key));
  WEIR_TRY(take_keys(ctx, 3, "dense_keys", "Tdense", &key));
  WEIR_TRY(take_keys(ctx, 4, "ragged_keys", "ragged_value_types", &key));
  weir_examples_plan_t plan = plan_of(ctx, "num_sparse", lists->keys, lists->defaults);
  return parse_to_outputs(ctx, &plan, weir_kernel_input(ctx, 1));
}

static weir_status_t* parse_v2_cpu(weir_kernel_ctx_t* ctx) {
  size_t dense = list_count(ctx, "Tdense");
  lists_t lists = {0};
  weir_status_t* status =
      lists_create(list_count(ctx, "sparse_types") + dense + list_count(ctx, "ragged_value_types"),
                   dense, &lists);
  if (!status) status = parse_v2(ctx, &lists);
  lists_free(&lists);
  return status;
}

// ---- ParseExample ----

// Keys are one scalar input each.
static weir_status_t* parse_v1(weir_kernel_ctx_t* ctx, lists_t* lists) {
  const weir_attrs_t attrs = weir_kernel_attrs(ctx);
  const int64_t count = weir_attrs_int(attrs, "Nsparse") + weir_attrs_int(attrs, "Ndense");
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (weir_kernel_input(ctx, 0)->rank != 1)
    return WEIR_STATUS(INVALID_ARGUMENT, "Expected serialized to be a vector, got shape: %s",
                       weir_tensor_shape_text(weir_kernel_input(ctx, 0), text));
  WEIR_TRY(check_names(ctx));
  for (int64_t i = 0; i < count; ++i) {
    const weir_tensor_t* key = weir_kernel_input(ctx, 2 + (int)i);
    if (key->count != 1)
      return WEIR_STATUS(INVALID_ARGUMENT, "Expected keys to be scalars, got shape: %s",
                         weir_tensor_shape_text(key, text));
    lists->keys[i] = io_string(key, 0);
  }
  weir_examples_plan_t plan = plan_of(ctx, "Nsparse", lists->keys, lists->defaults);
  return parse_to_outputs(ctx, &plan, weir_kernel_input(ctx, 1));
}

static weir_status_t* parse_v1_cpu(weir_kernel_ctx_t* ctx) {
  size_t dense = list_count(ctx, "Tdense");
  lists_t lists = {0};
  weir_status_t* status = lists_create(list_count(ctx, "sparse_types") + dense, dense, &lists);
  if (!status) status = parse_v1(ctx, &lists);
  lists_free(&lists);
  return status;
}

// ---- ParseSingleExample ----

static weir_status_t* parse_single(weir_kernel_ctx_t* ctx, lists_t* lists) {
  const weir_attr_t* sparse = weir_attrs_list(weir_kernel_attrs(ctx), "sparse_keys");
  const weir_attr_t* dense = weir_attrs_list(weir_kernel_attrs(ctx), "dense_keys");
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (weir_kernel_input(ctx, 0)->rank != 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "Expected serialized to be a scalar, got shape: %s",
                       weir_tensor_shape_text(weir_kernel_input(ctx, 0), text));
  for (size_t i = 0; i < sparse->count; ++i) lists->keys[i] = sparse->u.strings[i];
  for (size_t i = 0; i < dense->count; ++i) lists->keys[sparse->count + i] = dense->u.strings[i];
  weir_examples_plan_t plan = plan_of(ctx, "num_sparse", lists->keys, lists->defaults);
  return parse_to_outputs(ctx, &plan, NULL);
}

static weir_status_t* parse_single_cpu(weir_kernel_ctx_t* ctx) {
  lists_t lists = {0};
  weir_status_t* status =
      lists_create(list_count(ctx, "sparse_keys") + list_count(ctx, "dense_keys"),
                   list_count(ctx, "Tdense"), &lists);
  if (!status) status = parse_single(ctx, &lists);
  lists_free(&lists);
  return status;
}

// ---- attributes ----

static weir_status_t* same_length(size_t a, size_t b, const char* what, const char* other) {
  if (a == b) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "len(%s) != len(%s)", what, other);
}

// Of keys that are attributes.
static weir_status_t* check_keys(weir_attrs_t attrs, size_t sparse_types, size_t dense_types) {
  const int64_t sparse = weir_attrs_int(attrs, "num_sparse");
  const size_t sparse_keys = weir_attrs_list(attrs, "sparse_keys")->count;
  if (sparse != (int64_t)sparse_keys || sparse != (int64_t)sparse_types) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "num_sparse (%lld) must match the size of sparse_keys (%zu) and sparse_types (%zu)",
        (long long)sparse, sparse_keys, sparse_types);
  }
  return same_length(weir_attrs_list(attrs, "dense_keys")->count, dense_types, "dense_keys",
                     "dense_types");
}

// Lists of attributes that are of one length.
static weir_status_t* check_lists(weir_attrs_t attrs) {
  const weir_attr_t* shapes = weir_attrs_list(attrs, "dense_shapes");
  const size_t dense = weir_attrs_list(attrs, "Tdense")->count;
  const size_t sparse = weir_attrs_list(attrs, "sparse_types")->count;
  const weir_attr_t* ragged = weir_attrs_find(attrs, "ragged_value_types");
  const char* number = weir_attrs_find(attrs, "Nsparse") ? "Nsparse" : "num_sparse";
  if (weir_attrs_find(attrs, "sparse_keys")) {
    WEIR_TRY(check_keys(attrs, sparse, dense));
  } else {
    WEIR_TRY(
        same_length((size_t)weir_attrs_int(attrs, number), sparse, "sparse_keys", "sparse_types"));
  }
  if (weir_attrs_find(attrs, "Ndense"))
    WEIR_TRY(
        same_length((size_t)weir_attrs_int(attrs, "Ndense"), dense, "dense_keys", "dense_types"));
  WEIR_TRY(same_length(dense, shapes->count, "dense_keys", "dense_shapes"));
  if (ragged)
    WEIR_TRY(same_length(ragged->count, weir_attrs_list(attrs, "ragged_split_types")->count,
                         "ragged_value_types", "ragged_split_types"));
  return weir_examples_check_shapes(shapes->count, shapes->u.shapes);
}

static weir_status_t* parse_init(const weir_kernel_init_t* init, void* state) {
  (void)state;
  return check_lists(init->node->attrs);
}

// ---- shapes ----

static weir_status_t* set_dense_shape(weir_shape_ctx_t* ctx, int output,
                                      const weir_shape_t* shape) {
  const weir_shape_t* prefix = weir_shape_input(ctx, 0);
  if (prefix->rank < 0) return NULL;
  return weir_shape_set(ctx, output, weir_shape_concat(ctx, prefix, shape));
}

// All outputs, where |serialized| is of a known or an unknown rank up to 1.
static weir_status_t* set_shapes(weir_shape_ctx_t* ctx, const weir_shape_t* serialized) {
  const weir_attrs_t attrs = weir_shape_attrs(ctx);
  const int sparse = (int)weir_attrs_list(attrs, "sparse_types")->count;
  const weir_attr_t* shapes = weir_attrs_list(attrs, "dense_shapes");
  const weir_attr_t* ragged_types = weir_attrs_find(attrs, "ragged_value_types");
  const int ragged = ragged_types ? (int)ragged_types->count : 0;
  const int64_t width = serialized->rank < 0 ? -1 : serialized->rank + 1;
  for (int i = 0; i < sparse; ++i) {
    WEIR_TRY(weir_shape_set_dims(ctx, i, 2, (const int64_t[]){-1, width}));
    WEIR_TRY(weir_shape_set_vector(ctx, sparse + i, -1));
    WEIR_TRY(weir_shape_set_vector(ctx, 2 * sparse + i, width));
  }
  for (size_t i = 0; i < shapes->count; ++i)
    WEIR_TRY(set_dense_shape(ctx, 3 * sparse + (int)i, shapes->u.shapes[i]));
  const int first = 3 * sparse + (int)shapes->count;
  int64_t splits = -1;
  if (serialized->rank == 0) splits = 0;
  if (serialized->rank == 1 && serialized->dims[0] >= 0) splits = serialized->dims[0] + 1;
  for (int i = 0; i < ragged; ++i) {
    WEIR_TRY(weir_shape_set_vector(ctx, first + i, -1));
    WEIR_TRY(weir_shape_set_vector(ctx, first + ragged + i, splits));
  }
  return NULL;
}

static weir_status_t* v2_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* serialized = weir_shape_input(ctx, 0);
  WEIR_TRY(weir_shape_at_most(ctx, serialized, 1));
  WEIR_TRY(weir_shape_at_most(ctx, weir_shape_input(ctx, 1), 1));  // names
  WEIR_TRY(check_lists(weir_shape_attrs(ctx)));
  return set_shapes(ctx, serialized);
}

static weir_status_t* v1_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* serialized = NULL;
  WEIR_TRY(check_lists(weir_shape_attrs(ctx)));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 1, &serialized));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, NULL));
  return set_shapes(ctx, serialized);
}

static weir_status_t* single_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* serialized = NULL;
  WEIR_TRY(check_lists(weir_shape_attrs(ctx)));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 0, &serialized));
  return set_shapes(ctx, serialized);
}

#define TYPES "list({float, int64, string}) >= 0"
#define DENSE_AND_SPARSE                                              \
  "sparse_indices: num_sparse * int64; sparse_values: sparse_types; " \
  "sparse_shapes: num_sparse * int64; dense_values: Tdense"
#define KERNEL(fn) WEIR_CPU_KERNEL(.compute = fn, .state_size = 1, .init = parse_init)

const weir_op_module_t weir_ops_io_parse_example = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ParseExample",
         .attrs = "Nsparse: int >= 0; Ndense: int >= 0; sparse_types: " TYPES "; Tdense: " TYPES
                  "; dense_shapes: list(shape) >= 0",
         .inputs = "serialized: string; names: string; sparse_keys: Nsparse * string; "
                   "dense_keys: Ndense * string; dense_defaults: Tdense",
         .outputs = "sparse_indices: Nsparse * int64; sparse_values: sparse_types; "
                    "sparse_shapes: Nsparse * int64; dense_values: Tdense",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "Reads Example messages into tensors",
         .infer_shape = v1_shape,
         .kernels = KERNEL(parse_v1_cpu)},
        {.name = "ParseExampleV2",
         .attrs = "Tdense: " TYPES "; num_sparse: int >= 0; sparse_types: " TYPES
                  "; ragged_value_types: " TYPES
                  "; ragged_split_types: list({int32, int64}) >= 0; dense_shapes: list(shape) >= 0",
         .inputs = "serialized: string; names: string; sparse_keys: string; dense_keys: string; "
                   "ragged_keys: string; dense_defaults: Tdense",
         .outputs = DENSE_AND_SPARSE
         "; ragged_values: ragged_value_types; ragged_row_splits: ragged_split_types",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "Reads Example messages into tensors",
         .infer_shape = v2_shape,
         .kernels = KERNEL(parse_v2_cpu)},
        {.name = "ParseSingleExample",
         .attrs = "num_sparse: int >= 0; sparse_keys: list(string) >= 0; "
                  "dense_keys: list(string) >= 0; sparse_types: " TYPES "; Tdense: " TYPES
                  "; dense_shapes: list(shape) >= 0",
         .inputs = "serialized: string; dense_defaults: Tdense",
         .outputs = DENSE_AND_SPARSE,
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "Reads one Example message into tensors",
         .infer_shape = single_shape,
         .kernels = KERNEL(parse_single_cpu)},
        {0}}};

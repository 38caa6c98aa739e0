// map_staging.c — MapStage and OrderedMapStage with their kin: tuples under keys, on their way from
// one step to another.
#include "ops/queue/staging_map.h"

static weir_status_t* find_map(weir_kernel_ctx_t* ctx, staging_map_t** out_map) {
  staging_state_t* s = ctx->state;
  weir_resource_t* resource = NULL;
  WEIR_TRY(weir_shared_handle_create(ctx, &s->handle, &weir_staging_map_type,
                                     weir_staging_map_create, s, &resource));
  *out_map = (staging_map_t*)resource;
  return NULL;
}

static weir_status_t* check_indices(const weir_tensor_t* indices) {
  const int32_t* index = indices->data;
  if (indices->count == 0) return WEIR_STATUS(INVALID_ARGUMENT, "Indices are empty");
  for (int64_t i = 1; i < indices->count; ++i) {
    if (index[i] <= index[i - 1]) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Indices are not strictly ordered");
    }
  }
  return NULL;
}

static weir_status_t* read_key(const weir_tensor_t* key, int64_t* out_key) {
  if (key->count == 0) return WEIR_STATUS(INVALID_ARGUMENT, "key must not be empty");
  if (key->count > 1) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "key must be an int64 scalar, got tensor with shape: %s",
                       weir_tensor_shape_text(key, text));
  }
  *out_key = WEIR_TENSOR_DATA(key, int64_t)[0];
  return NULL;
}

static weir_status_t* make_request(weir_kernel_ctx_t* ctx, map_request_kind_t kind,
                                   map_request_t* r) {
  const staging_state_t* s = ctx->state;
  const int place = kind == MAP_GET_ANY ? 0 : 1;
  r->kind = kind;
  if (kind != MAP_GET_ANY) WEIR_TRY(read_key(weir_kernel_input(ctx, 0), &r->key));
  r->indices = weir_tensor_retain(ctx->inputs[place].tensor);
  WEIR_TRY(check_indices(r->indices));
  if (kind != MAP_PUT) return NULL;
  r->tuple = tuple_of_inputs(ctx, 2);
  if (!r->tuple) return weir_out_of_memory();
  return check_limit(r->tuple->last_size, s->memory_limit);
}

static void submit(weir_kernel_ctx_t* ctx, weir_done_t done, map_request_kind_t kind) {
  staging_map_t* m = NULL;
  map_request_t* r = weir_calloc(1, sizeof(*r));
  weir_status_t* status = r ? find_map(ctx, &m) : weir_out_of_memory();
  if (!status) status = make_request(ctx, kind, r);
  if (status) {
    if (r) weir_staging_map_request_deinit(r);
    weir_free(r);
    weir_resource_release((weir_resource_t*)m);
    weir_done_call(done, status);
    return;
  }
  weir_staging_map_submit(m, r, ctx, done);
  weir_resource_release((weir_resource_t*)m);
}

static void put_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) { submit(ctx, done, MAP_PUT); }
static void get_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) { submit(ctx, done, MAP_GET); }
static void peek_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) { submit(ctx, done, MAP_PEEK); }
static void get_any_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  submit(ctx, done, MAP_GET_ANY);
}

static weir_status_t* size_of(weir_kernel_ctx_t* ctx, bool of_incomplete) {
  staging_map_t* m = NULL;
  WEIR_TRY(find_map(ctx, &m));
  const int64_t count = weir_staging_map_size(m, of_incomplete);
  weir_resource_release((weir_resource_t*)m);
  return weir_kernel_output_int(ctx, 0, count);
}
static weir_status_t* size_cpu(weir_kernel_ctx_t* ctx) { return size_of(ctx, false); }
static weir_status_t* incomplete_cpu(weir_kernel_ctx_t* ctx) { return size_of(ctx, true); }

static weir_status_t* clear_cpu(weir_kernel_ctx_t* ctx) {
  staging_map_t* m = NULL;
  WEIR_TRY(find_map(ctx, &m));
  weir_staging_map_clear(m);
  weir_resource_release((weir_resource_t*)m);
  return NULL;
}

#define AT_LEAST_ONE "dtypes: list(type) >= 1"
#define ANY_NUMBER "dtypes: list(type)"

#define MAP_OP(name_, types, ins, outs, text, shape, kernel)                                   \
  {                                                                                            \
    .name = name_, .attrs = STAGING_ATTRS types STAGING_NAMES, .inputs = ins, .outputs = outs, \
    .flags = WEIR_OP_STATEFUL, .summary = text, .infer_shape = shape, .kernels = kernel        \
  }

#define MAP_OPS(prefix)                                                                           \
  MAP_OP(prefix "Stage", ANY_NUMBER "; fake_dtypes: list(type) >= 1",                             \
         "key: int64; indices: int32; values: fake_dtypes", NULL,                                 \
         "Puts parts of a tuple under a key, waiting for room", weir_shape_fn_none,               \
         STAGING_KERNEL(.compute_async = put_cpu, .host_inputs = "key, indices")),                \
      MAP_OP(prefix "Unstage", AT_LEAST_ONE, "key: int64; indices: int32", "values: dtypes",      \
             "Takes parts of the tuple of a key, waiting for it", weir_shape_fn_unknown,          \
             STAGING_KERNEL(.compute_async = get_cpu, .host_inputs = "key, indices")),            \
      MAP_OP(prefix "UnstageNoKey", AT_LEAST_ONE, "indices: int32", "key: int64; values: dtypes", \
             "Takes parts of the tuple with the least key", weir_shape_fn_unknown,                \
             STAGING_KERNEL(.compute_async = get_any_cpu, .host_inputs = "indices",               \
                            .host_outputs = "key")),                                              \
      MAP_OP(prefix "Peek", AT_LEAST_ONE, "key: int64; indices: int32", "values: dtypes",         \
             "Parts of the tuple of a key in a staging map, waiting for it",                      \
             weir_shape_fn_unknown,                                                               \
             STAGING_KERNEL(.compute_async = peek_cpu, .host_inputs = "key, indices")),           \
      MAP_OP(prefix "Size", ANY_NUMBER, NULL, "size: int32",                                      \
             "The number of whole tuples in a staging map", weir_shape_fn_scalar,                 \
             STAGING_KERNEL(.compute = size_cpu)),                                                \
      MAP_OP(prefix "IncompleteSize", ANY_NUMBER, NULL, "size: int32",                            \
             "The number of tuples of a staging map that lack parts", weir_shape_fn_scalar,       \
             STAGING_KERNEL(.compute = incomplete_cpu)),                                          \
      MAP_OP(prefix "Clear", ANY_NUMBER, NULL, NULL, "Drops all tuples of a staging map",         \
             weir_shape_fn_none, STAGING_KERNEL(.compute = clear_cpu))

const weir_op_module_t weir_ops_queue_map_staging = {
    .file = __FILE__, .ops = (const weir_op_def_t[]){MAP_OPS("Map"), MAP_OPS("OrderedMap"), {0}}};

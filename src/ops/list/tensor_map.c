// tensor_map.c — EmptyTensorMap, TensorMapInsert, Lookup, Erase, HasKey, Size, StackKeys: maps from
// tensors to tensors, held by a variant.
#include "base/string.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"
#include "tensor/parcel_kinds.h"

// A map is a parcel of keys and values in turn. Whoever changes one makes another; the tensors
// within are shared.

static bool is_same_key(const weir_tensor_t* a, const weir_tensor_t* b) {
  if (a->dtype != b->dtype || !weir_tensor_same_shape(a, b)) return false;
  if (weir_tensor_type(a) != WEIR_DTYPE_STRING)
    return a->count == 0 ||
           memcmp(a->data, b->data, (size_t)a->count * weir_dtype_size(weir_tensor_type(a))) == 0;
  for (int64_t i = 0; i < a->count; ++i) {
    if (!weir_view_equal(weir_string_view(WEIR_TENSOR_DATA(a, weir_string_t) + i),
                         weir_string_view(WEIR_TENSOR_DATA(b, weir_string_t) + i)))
      return false;
  }
  return true;
}

// Where |key| is among the items; -1: it is not.
static int find_key(const weir_parcel_t* map, const weir_tensor_t* key) {
  for (int i = 0; i < map->count; i += 2) {
    if (is_same_key(map->items[i], key)) return i;
  }
  return -1;
}

static weir_status_t* read_map(const weir_kernel_ctx_t* ctx, const weir_parcel_t** out) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (in->rank != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Input map must be a scalar. Saw: %s",
                       weir_tensor_shape_text(in, text));
  }
  *out = weir_parcel_at(in, 0, &weir_map_variant_type);
  if (*out) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Input handle is not a map. Saw: 'Variant<type: %s>'",
                     weir_variant_name_at(in, 0));
}

static weir_status_t* put_map(weir_kernel_ctx_t* ctx, weir_parcel_t* take_map) {
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_tensor_create_variant(&take_map->base, &out));
  weir_kernel_set(ctx, 0, out);
  return NULL;
}

// Creates a map of the items of |from| without the pair at |skip| (-1: of all), and room for |more|
// items at the end.
static weir_status_t* copy_map(const weir_parcel_t* from, int skip, int more, weir_parcel_t** out) {
  int at = 0;
  WEIR_TRY(
      weir_parcel_create(&weir_map_variant_type, from->count - (skip < 0 ? 0 : 2) + more, out));
  for (int i = 0; i < from->count; ++i) {
    if (skip >= 0 && (i == skip || i == skip + 1)) continue;
    (*out)->items[at++] = weir_tensor_retain(from->items[i]);
  }
  return NULL;
}

static weir_status_t* no_key(const weir_tensor_t* key, const char* what) {
  weir_strbuf_t text = {0};
  weir_tensor_print(key, 3, &text);
  weir_status_t* status =
      WEIR_STATUS(INVALID_ARGUMENT, "Trying to %s. Could not find key \"%.*s\".", what,
                  WEIR_VIEW_ARG(weir_strbuf_view(&text)));
  weir_strbuf_free(&text);
  return status;
}

// ---- kernels ----

static weir_status_t* empty_cpu(weir_kernel_ctx_t* ctx) {
  weir_parcel_t* map = NULL;
  WEIR_TRY(weir_parcel_create(&weir_map_variant_type, 0, &map));
  return put_map(ctx, map);
}

static weir_status_t* insert_cpu(weir_kernel_ctx_t* ctx) {
  const weir_parcel_t* map = NULL;
  weir_parcel_t* changed = NULL;
  WEIR_TRY(read_map(ctx, &map));
  WEIR_TRY(copy_map(map, find_key(map, weir_kernel_input(ctx, 1)), 2, &changed));
  changed->items[changed->count - 2] = weir_tensor_retain(ctx->inputs[1].tensor);
  changed->items[changed->count - 1] = weir_tensor_retain(ctx->inputs[2].tensor);
  return put_map(ctx, changed);
}

static weir_status_t* lookup_cpu(weir_kernel_ctx_t* ctx) {
  const weir_parcel_t* map = NULL;
  const weir_tensor_t* key = weir_kernel_input(ctx, 1);
  WEIR_TRY(read_map(ctx, &map));
  int at = find_key(map, key);
  if (at < 0) return no_key(key, "lookup non-existent key");
  weir_tensor_t* value = map->items[at + 1];
  const weir_dtype_t want = ctx->node->output_types[0];
  if (weir_tensor_type(value) != want) {
    return WEIR_STATUS(
        INTERNAL, "Output 0 of type %s does not match declared output type %s for node %s",
        weir_dtype_name(weir_tensor_type(value)), weir_dtype_name(want), ctx->node->name);
  }
  weir_kernel_set(ctx, 0, weir_tensor_retain(value));
  return NULL;
}

static weir_status_t* erase_cpu(weir_kernel_ctx_t* ctx) {
  const weir_parcel_t* map = NULL;
  weir_parcel_t* changed = NULL;
  const weir_tensor_t* key = weir_kernel_input(ctx, 1);
  WEIR_TRY(read_map(ctx, &map));
  int at = find_key(map, key);
  if (at < 0) return no_key(key, "erase non-existent item");
  WEIR_TRY(copy_map(map, at, 0, &changed));
  return put_map(ctx, changed);
}

static weir_status_t* has_key_cpu(weir_kernel_ctx_t* ctx) {
  const weir_parcel_t* map = NULL;
  WEIR_TRY(read_map(ctx, &map));
  return weir_kernel_output_bool(ctx, 0, find_key(map, weir_kernel_input(ctx, 1)) >= 0);
}

static weir_status_t* size_cpu(weir_kernel_ctx_t* ctx) {
  const weir_parcel_t* map = NULL;
  WEIR_TRY(read_map(ctx, &map));
  return weir_kernel_output_int(ctx, 0, map->count / 2);
}

static weir_status_t* stack_keys_cpu(weir_kernel_ctx_t* ctx) {
  const weir_parcel_t* map = NULL;
  const weir_dtype_t want = ctx->node->output_types[0];
  int64_t dims[WEIR_MAX_RANK];
  weir_tensor_t* out = NULL;
  WEIR_TRY(read_map(ctx, &map));
  if (map->count == 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "TensorMapStackKeys cannot be called on empty map.");
  }
  const weir_tensor_t* first = map->items[0];
  for (int i = 0; i < map->count; i += 2) {
    if (weir_tensor_type(map->items[i]) != want)
      return WEIR_STATUS(INVALID_ARGUMENT, "Key does not match requested dtype.");
    if (!weir_tensor_same_shape(map->items[i], first))
      return WEIR_STATUS(INVALID_ARGUMENT, "Keys must all have the same shape.");
  }
  if (first->rank + 1 > WEIR_MAX_RANK)
    return WEIR_STATUS(INVALID_ARGUMENT, "Keys have too many dimensions");
  dims[0] = map->count / 2;
  memcpy(dims + 1, first->dims, sizeof(int64_t) * first->rank);
  WEIR_TRY(weir_kernel_output(ctx, 0, first->rank + 1, dims, &out));
  const size_t size = (size_t)first->count * weir_dtype_size(want);
  for (int i = 0; i < map->count; i += 2) {
    WEIR_TRY(weir_elements_copy(want, (char*)out->data + (size_t)(i / 2) * size,
                                map->items[i]->data, first->count));
  }
  return NULL;
}

// ---- shape functions ----

static weir_status_t* unknown_shape(weir_shape_ctx_t* ctx) {
  return weir_shape_set(ctx, 0, &weir_shape_unknown);
}

#define MAP_OP(op_name, specs, ins, outs, text, shape_fn, fn)                         \
  {                                                                                   \
    .name = op_name, .attrs = specs, .inputs = ins, .outputs = outs, .summary = text, \
    .infer_shape = shape_fn, .kernels = WEIR_CPU_KERNEL(.compute = fn)                \
  }
#define KEY_VALUE "key_dtype: type; value_dtype: type"

const weir_op_module_t weir_ops_list_tensor_map = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        MAP_OP("EmptyTensorMap", NULL, NULL, "handle: variant", "A map without entries",
               weir_shape_fn_scalar, empty_cpu),
        MAP_OP("TensorMapInsert", KEY_VALUE,
               "input_handle: variant; key: key_dtype; value: value_dtype",
               "output_handle: variant", "A map with one more entry, or another value of it",
               weir_shape_fn_scalar, insert_cpu),
        MAP_OP("TensorMapLookup", KEY_VALUE, "input_handle: variant; key: key_dtype",
               "value: value_dtype", "The value of a key", unknown_shape, lookup_cpu),
        MAP_OP("TensorMapErase", KEY_VALUE, "input_handle: variant; key: key_dtype",
               "output_handle: variant", "A map without an entry", weir_shape_fn_scalar, erase_cpu),
        MAP_OP("TensorMapHasKey", "key_dtype: type", "input_handle: variant; key: key_dtype",
               "has_key: bool", "Whether a map has a key", weir_shape_fn_scalar, has_key_cpu),
        MAP_OP("TensorMapSize", NULL, "input_handle: variant", "size: int32",
               "The number of entries", weir_shape_fn_scalar, size_cpu),
        MAP_OP("TensorMapStackKeys", "key_dtype: type", "input_handle: variant", "keys: key_dtype",
               "All keys, stacked", unknown_shape, stack_keys_cpu),
        {0}}};

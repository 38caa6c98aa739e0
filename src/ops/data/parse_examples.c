// parse_examples.c — ParseExampleDataset, V2: batches of Example messages as tensors, several at a
// time; a component for each key, in the order of the keys.
#include "ops/data/ahead.h"
#include "ops/data/map.h"
#include "ops/io/examples.h"
#include "ops/ragged/ragged.h"
#include "tensor/parcel.h"

typedef struct parse_t {
  weir_data_t base;
  weir_examples_plan_t plan;  // in |arena|
  weir_arena_t arena;
  weir_tensor_list_t tensors;
  weir_view_t* keys;
  weir_tensor_t** defaults;
  int* places;  // one a key: its component
  int64_t parallel_calls;
} parse_t;

typedef struct parse_iterator_t {
  weir_iterator_t base;
  weir_ahead_t ahead;
} parse_iterator_t;

static int64_t key_count(const weir_examples_plan_t* plan) {
  return plan->sparse_count + plan->dense_count + plan->ragged_count;
}

// ---- the plan ----

static weir_status_t* copy_list(weir_kernel_ctx_t* ctx, const char* name, parse_t* self,
                                weir_attr_t* out) {
  return weir_attr_clone(weir_attrs_list(weir_kernel_attrs(ctx), name), &self->arena,
                         &self->tensors, out);
}

static weir_status_t* copy_types(weir_kernel_ctx_t* ctx, const char* types, const char* keys,
                                 parse_t* self, const weir_dtype_t** out_types,
                                 int64_t* out_count) {
  weir_attr_t list = {0};
  WEIR_TRY(copy_list(ctx, types, self, &list));
  if (list.count != weir_attrs_list(weir_kernel_attrs(ctx), keys)->count)
    return WEIR_STATUS(INVALID_ARGUMENT, "len(%s) != len(%s)", keys, types);
  *out_types = list.u.types;
  *out_count = (int64_t)list.count;
  return NULL;
}

static weir_status_t* copy_keys(weir_kernel_ctx_t* ctx, const char* name, parse_t* self,
                                int64_t* at) {
  weir_attr_t list = {0};
  WEIR_TRY(copy_list(ctx, name, self, &list));
  for (size_t i = 0; i < list.count; ++i) self->keys[(*at)++] = list.u.strings[i];
  return NULL;
}

static weir_status_t* read_plan(weir_kernel_ctx_t* ctx, parse_t* self) {
  weir_examples_plan_t* plan = &self->plan;
  weir_attr_t shapes = {0};
  int64_t at = 0, splits = 0;
  WEIR_TRY(copy_types(ctx, "sparse_types", "sparse_keys", self, &plan->sparse_types,
                      &plan->sparse_count));
  WEIR_TRY(copy_types(ctx, "Tdense", "dense_keys", self, &plan->dense_types, &plan->dense_count));
  WEIR_TRY(copy_types(ctx, "ragged_value_types", "ragged_keys", self, &plan->ragged_types,
                      &plan->ragged_count));
  WEIR_TRY(copy_types(ctx, "ragged_split_types", "ragged_keys", self, &plan->split_types, &splits));
  WEIR_TRY(copy_list(ctx, "dense_shapes", self, &shapes));
  if ((int64_t)shapes.count != plan->dense_count)
    return WEIR_STATUS(INVALID_ARGUMENT, "len(dense_keys) != len(dense_shapes)");
  WEIR_TRY(weir_examples_check_shapes(shapes.count, shapes.u.shapes));
  self->keys = weir_calloc((size_t)key_count(plan) + 1, sizeof(*self->keys));
  self->defaults = weir_element_create((int)plan->dense_count + 1);
  if (!self->keys || !self->defaults) return weir_out_of_memory();
  WEIR_TRY(copy_keys(ctx, "sparse_keys", self, &at));
  WEIR_TRY(copy_keys(ctx, "dense_keys", self, &at));
  WEIR_TRY(copy_keys(ctx, "ragged_keys", self, &at));
  for (int64_t d = 0; d < plan->dense_count; ++d)
    self->defaults[d] = weir_tensor_retain(ctx->inputs[2 + d].tensor);
  plan->keys = self->keys;
  plan->dense_shapes = shapes.u.shapes;
  plan->defaults = self->defaults;
  return weir_examples_check_defaults(plan);
}

static int compare_keys(weir_view_t a, weir_view_t b) {
  const size_t size = WEIR_MIN(a.size, b.size);
  const int order = size > 0 ? memcmp(a.data, b.data, size) : 0;
  return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

// The component that |key| becomes: as many come before it as keys are less.
static int component_of(const weir_examples_plan_t* plan, int64_t key) {
  int before = 0;
  for (int64_t i = 0; i < key_count(plan); ++i)
    before += compare_keys(plan->keys[i], plan->keys[key]) < 0;
  return before;
}

static weir_status_t* place_keys(parse_t* self) {
  const int64_t count = key_count(&self->plan);
  if (count != self->base.count)
    return WEIR_STATUS(INVALID_ARGUMENT, "%lld keys are not the %d components that were declared",
                       (long long)count, self->base.count);
  self->places = weir_calloc((size_t)count + 1, sizeof(*self->places));
  if (!self->places) return weir_out_of_memory();
  for (int64_t i = 0; i < count; ++i) {
    self->places[i] = component_of(&self->plan, i);
    for (int64_t k = 0; k < i; ++k) {
      if (weir_view_equal(self->keys[i], self->keys[k]))
        return WEIR_STATUS(INVALID_ARGUMENT, "Duplicate key not allowed: %.*s",
                           WEIR_VIEW_ARG(self->keys[i]));
    }
  }
  return NULL;
}

static weir_status_t* parse_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  parse_t* self = (parse_t*)dataset;
  WEIR_TRY(weir_dataset_init_declared(ctx, dataset));
  WEIR_TRY(weir_map_parallel_calls(ctx, 1, &self->parallel_calls));
  WEIR_TRY(read_plan(ctx, self));
  WEIR_TRY(place_keys(self));
  const weir_data_t* input = dataset->inputs[0];
  if (input->count == 1 && input->types[0] == WEIR_DTYPE_STRING) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Examples are strings, in one component");
}

static void parse_deinit(weir_data_t* dataset) {
  parse_t* self = (parse_t*)dataset;
  if (self->defaults) weir_element_clear(self->defaults, (int)self->plan.dense_count);
  weir_free(self->defaults);
  weir_free(self->keys);
  weir_free(self->places);
  weir_tensor_list_free(&self->tensors);
  weir_arena_free(&self->arena);
}

// ---- an element ----

// |out|: |count| tensors, |step| apart, as variants: a vector of variants, or one that holds all.
static weir_status_t* wrap_sparse(weir_tensor_t** parts, int64_t step, weir_tensor_t** out) {
  WEIR_TRY(weir_tensor_create(WEIR_DTYPE_VARIANT, 1, (const int64_t[]){3}, out));
  for (int i = 0; i < 3; ++i) {
    weir_parcel_t* parcel = NULL;
    WEIR_TRY(weir_parcel_create(&weir_tensor_variant_type, 1, &parcel));
    parcel->items[0] = weir_tensor_retain(parts[i * step]);
    weir_parcel_put(*out, i, parcel);
  }
  return NULL;
}

static weir_status_t* wrap_ragged(weir_tensor_t* values, weir_tensor_t* splits,
                                  weir_tensor_t** out) {
  weir_parcel_t* parcel = NULL;
  WEIR_TRY(weir_tensor_create(WEIR_DTYPE_VARIANT, 0, NULL, out));
  WEIR_TRY(weir_parcel_create(&weir_ragged_variant_type, 2, &parcel));
  parcel->items[0] = weir_tensor_retain(splits);
  parcel->items[1] = weir_tensor_retain(values);
  weir_parcel_put(*out, 0, parcel);
  return NULL;
}

static weir_status_t* check_component(const weir_data_t* dataset, int i,
                                      const weir_tensor_t* item) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (weir_tensor_type(item) != dataset->types[i])
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Got wrong type for FastParseExample return value %d (expected %s, got %s).",
                       i, weir_dtype_name(dataset->types[i]),
                       weir_dtype_name(weir_tensor_type(item)));
  if (weir_shape_accepts(dataset->shapes[i], item->rank, item->dims)) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Got wrong shape for FastParseExample return value %d (got %s).", i,
                     weir_tensor_shape_text(item, text));
}

// |made|: what weir_examples_parse gave.
static weir_status_t* arrange(const parse_t* self, weir_tensor_t** made, weir_tensor_t** out) {
  const weir_examples_plan_t* plan = &self->plan;
  weir_tensor_t** dense = made + 3 * plan->sparse_count;
  weir_tensor_t** ragged = dense + plan->dense_count;
  for (int64_t key = 0; key < key_count(plan); ++key) {
    const int place = self->places[key];
    const int64_t d = key - plan->sparse_count, r = d - plan->dense_count;
    if (d < 0) WEIR_TRY(wrap_sparse(made + key, plan->sparse_count, &out[place]));
    else if (r < 0) out[place] = weir_tensor_retain(dense[d]);
    else WEIR_TRY(wrap_ragged(ragged[r], ragged[plan->ragged_count + r], &out[place]));
    WEIR_TRY(check_component(&self->base, place, out[place]));
  }
  return NULL;
}

static weir_status_t* parse(const parse_t* self, weir_tensor_t* serialized, weir_tensor_t** out) {
  const int count = (int)weir_examples_output_count(&self->plan);
  weir_tensor_t *batch = NULL, **made = NULL;
  WEIR_TRY(weir_tensor_reshape(serialized, 1, &serialized->count, &batch));
  made = weir_element_create(count + 1);
  weir_status_t* status =
      made ? weir_examples_parse(&self->plan, batch, NULL, made) : weir_out_of_memory();
  if (!status) status = arrange(self, made, out);
  weir_element_free(made, count);
  weir_tensor_release(batch);
  return status;
}

// ---- the iterator ----

static void parse_entry(void* arg, weir_ahead_entry_t* entry) {
  const parse_iterator_t* self = arg;
  const parse_t* parser = (const parse_t*)self->base.dataset;
  const int width = parser->base.count;
  weir_tensor_t** out = weir_element_create(width);
  entry->status = out ? parse(parser, entry->element[0], out) : weir_out_of_memory();
  if (entry->status && out) weir_element_clear(out, width);
  weir_element_free(entry->element, 1);
  entry->element = out;
}

static weir_status_t* parse_start(weir_iterator_t* iterator) {
  parse_iterator_t* self = (parse_iterator_t*)iterator;
  WEIR_TRY(weir_iterator_open(iterator, 0));
  self->ahead.input = iterator->inputs[0];
  self->ahead.out_width = iterator->dataset->count;
  self->ahead.limit = self->ahead.at_once = ((const parse_t*)iterator->dataset)->parallel_calls;
  self->ahead.process = parse_entry;
  self->ahead.arg = self;
  return weir_ahead_init(&self->ahead, iterator->walk);
}

static void parse_stop(weir_iterator_t* iterator) {
  weir_ahead_stop(&((parse_iterator_t*)iterator)->ahead);
}

static weir_status_t* parse_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                 weir_tensor_t** out, bool* out_is_end) {
  return weir_ahead_next(&((parse_iterator_t*)iterator)->ahead, cancel, out, out_is_end);
}

static void parse_state(weir_iterator_t* iterator, weir_state_t* state) {
  weir_ahead_state(&((parse_iterator_t*)iterator)->ahead, state,
                   weir_element_types_of(iterator->dataset));
  weir_state_inputs(iterator, state);
}

static const weir_iterator_vtable_t parse_iterator = {.size = sizeof(parse_iterator_t),
                                                      .start = parse_start,
                                                      .next = parse_next,
                                                      .stop = parse_stop,
                                                      .state = parse_state};
static const weir_dataset_vtable_t parse_dataset = {.name = "ParseExample",
                                                    .size = sizeof(parse_t),
                                                    .init = parse_init,
                                                    .deinit = parse_deinit,
                                                    .iterator = &parse_iterator};

static weir_status_t* parse_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &parse_dataset);
}

#define TYPES "list({float, int64, string}) >= 0"
#define PARSE(op, order)                                                                           \
  {                                                                                                \
    .name = op,                                                                                    \
    .attrs = "sparse_keys: list(string) >= 0; dense_keys: list(string) >= 0; sparse_types: " TYPES \
             "; Tdense: " TYPES "; dense_shapes: list(shape) >= 0; " WEIR_DATASET_SPEC "; " order  \
             "; ragged_keys: list(string) >= 0 = []; ragged_value_types: " TYPES                   \
             " = []; ragged_split_types: list({int32, int64}) >= 0 = []",                          \
    .inputs = "input_dataset: variant; num_parallel_calls: int64; dense_defaults: Tdense",         \
    .outputs = "handle: variant", .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,                \
    .summary = "Batches of Example messages as tensors", .infer_shape = weir_dataset_shape,        \
    .kernels = WEIR_DATASET_KERNEL(parse_cpu)                                                      \
  }

const weir_op_module_t weir_ops_data_parse_examples = {
    .file = __FILE__,
    .ops =
        (const weir_op_def_t[]){PARSE("ParseExampleDataset", "sloppy: bool = false"),
                                PARSE("ParseExampleDatasetV2", "deterministic: string = 'default'"),
                                {0}}};

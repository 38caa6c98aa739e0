// dataset.c — What all datasets share: lifetime, components, inputs.
#include "ops/data/dataset.h"

#include "ops/data/data_options.h"

// ---- lifetime ----

static void dataset_destroy(void* object) {
  weir_data_t* self = object;
  if (self->vtable->deinit) self->vtable->deinit(self);
  for (int i = 0; i < self->input_count; ++i) weir_dataset_release(self->inputs[i]);
  for (int i = 0; i < self->count && self->shapes; ++i) weir_free(self->shapes[i]);
  weir_strbuf_free(&self->options);
  weir_element_free(self->args, self->arg_count);
  weir_origin_release(self->origin);
  weir_free(self->inputs);
  weir_free(self->shapes);
  weir_free(self->types);
  weir_free(self);
}

const weir_variant_type_t weir_dataset_type = {.type_name = "tensorflow::DatasetVariantWrapper",
                                               .destroy = dataset_destroy};

weir_data_t* weir_dataset_retain(weir_data_t* dataset) {
  weir_variant_retain(&dataset->base);
  return dataset;
}

void weir_dataset_release(weir_data_t* dataset) {
  if (dataset) weir_variant_release(&dataset->base);
}

int64_t weir_dataset_cardinality(const weir_data_t* dataset) {
  if (dataset->vtable->cardinality) return dataset->vtable->cardinality(dataset);
  return weir_dataset_cardinality(dataset->inputs[0]);
}

int64_t weir_dataset_unknown_size(const weir_data_t* dataset) {
  (void)dataset;
  return WEIR_CARDINALITY_UNKNOWN;
}

int64_t weir_dataset_endless_size(const weir_data_t* dataset) {
  int64_t n = weir_dataset_cardinality(dataset->inputs[0]);
  return n == WEIR_CARDINALITY_INFINITE ? n : WEIR_CARDINALITY_UNKNOWN;
}

weir_status_t* weir_dataset_create(const weir_dataset_vtable_t* vtable, weir_data_t** out_dataset) {
  weir_data_t* self = weir_calloc(1, vtable->size);
  if (!self) return weir_out_of_memory();
  self->base.type = &weir_dataset_type;
  weir_ref_init(&self->base.ref);
  self->vtable = vtable;
  *out_dataset = self;
  return NULL;
}

static weir_status_t* put_over(weir_data_t* input, weir_data_t* self) {
  self->inputs = weir_calloc(1, sizeof(*self->inputs));
  if (!self->inputs) return weir_out_of_memory();
  self->inputs[self->input_count++] = weir_dataset_retain(input);
  self->depth = input->depth + 1;
  WEIR_TRY(weir_dataset_set_like(input, self));
  return weir_data_options_inherit(self);
}

weir_status_t* weir_dataset_create_over(const weir_dataset_vtable_t* vtable, weir_data_t* input,
                                        weir_data_t** out_dataset) {
  weir_data_t* self = NULL;
  WEIR_TRY(weir_dataset_create(vtable, &self));
  weir_status_t* status = put_over(input, self);
  if (status) weir_dataset_release(self);
  else *out_dataset = self;
  return status;
}

// How deep the datasets among the elements of |tensor| are.
static int depth_of(const weir_tensor_t* tensor) {
  int depth = 0;
  if (weir_tensor_type(tensor) != WEIR_DTYPE_VARIANT) return 0;
  for (int64_t i = 0; i < tensor->count; ++i) {
    const weir_variant_object_t* object = WEIR_TENSOR_DATA(tensor, const weir_variant_t)[i].object;
    if (object && object->type == &weir_dataset_type)
      depth = WEIR_MAX(depth, ((const weir_data_t*)object)->depth);
  }
  return depth;
}

// Walks, and the end of a dataset, go down as many calls as there are datasets within it.
static weir_status_t* check_depth(const weir_data_t* self) {
  enum { MAX_DEPTH = 5000 };
  if (self->depth <= MAX_DEPTH) return NULL;
  return WEIR_STATUS(RESOURCE_EXHAUSTED, "more than %d datasets are within one another", MAX_DEPTH);
}

// Remembers what it was made of, to be made again.
static weir_status_t* keep_origin(const weir_kernel_ctx_t* ctx, weir_data_t* self) {
  if (ctx->state) self->origin = weir_origin_retain(*(weir_origin_t**)ctx->state);
  self->args = weir_element_create(ctx->input_count + 1);
  if (!self->args) return weir_out_of_memory();
  self->arg_count = ctx->input_count;
  for (int i = 0; i < ctx->input_count; ++i) {
    self->args[i] = weir_tensor_retain(ctx->inputs[i].tensor);
    self->depth = WEIR_MAX(self->depth, depth_of(self->args[i]));
  }
  ++self->depth;
  return check_depth(self);
}

weir_status_t* weir_dataset_output(weir_kernel_ctx_t* ctx, const weir_dataset_vtable_t* vtable) {
  weir_data_t* self = NULL;
  weir_tensor_t* handle = NULL;
  WEIR_TRY(weir_dataset_create(vtable, &self));
  weir_status_t* status = vtable->init(ctx, self);
  if (!status) status = weir_data_options_inherit(self);
  if (!status) status = keep_origin(ctx, self);
  if (status) {
    weir_dataset_release(self);
    return status;
  }
  WEIR_TRY(weir_tensor_create_variant(&self->base, &handle));
  weir_kernel_set(ctx, 0, handle);
  return NULL;
}

weir_status_t* weir_dataset_of(const weir_tensor_t* tensor, weir_data_t** out_dataset) {
  if (weir_tensor_type(tensor) != WEIR_DTYPE_VARIANT || tensor->rank != 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "Dataset tensor must be a scalar of dtype DT_VARIANT.");
  weir_variant_object_t* object = WEIR_TENSOR_DATA(tensor, weir_variant_t)->object;
  if (!object || object->type != &weir_dataset_type)
    return WEIR_STATUS(INVALID_ARGUMENT, "Tensor must be a Dataset object.");
  *out_dataset = (weir_data_t*)object;
  return NULL;
}

// ---- inputs ----

weir_status_t* weir_dataset_set_inputs(weir_kernel_ctx_t* ctx, int first, int count,
                                       weir_data_t* self) {
  self->inputs = weir_calloc((size_t)count, sizeof(*self->inputs));
  if (!self->inputs) return weir_out_of_memory();
  for (int i = 0; i < count; ++i) {
    weir_data_t* input = NULL;
    WEIR_TRY(weir_dataset_of(weir_kernel_input(ctx, first + i), &input));
    self->inputs[self->input_count++] = weir_dataset_retain(input);
  }
  return NULL;
}

weir_status_t* weir_dataset_init_like_input(weir_kernel_ctx_t* ctx, weir_data_t* self) {
  WEIR_TRY(weir_dataset_set_inputs(ctx, 0, 1, self));
  return weir_dataset_set_like(self->inputs[0], self);
}

weir_status_t* weir_dataset_init_declared(weir_kernel_ctx_t* ctx, weir_data_t* self) {
  WEIR_TRY(weir_dataset_set_inputs(ctx, 0, 1, self));
  return weir_dataset_set_attrs(ctx, "output_types", "output_shapes", self);
}

// ---- components ----

weir_status_t* weir_dataset_set_components(int count, const weir_dtype_t* types,
                                           weir_data_t* self) {
  self->types = weir_alloc_array((size_t)count, sizeof(*self->types));
  self->shapes = weir_calloc((size_t)count, sizeof(*self->shapes));
  if (!self->types || !self->shapes) return weir_out_of_memory();
  self->count = count;
  for (int i = 0; i < count; ++i) self->types[i] = types[i];
  for (int i = 0; i < count; ++i) {
    self->shapes[i] = weir_shape_clone(&weir_shape_unknown);
    if (!self->shapes[i]) return weir_out_of_memory();
  }
  return NULL;
}

static weir_status_t* replace_shape(weir_data_t* self, int i, const weir_shape_t* shape) {
  weir_shape_t* copy = weir_shape_clone(shape);
  if (!copy) return weir_out_of_memory();
  weir_free(self->shapes[i]);
  self->shapes[i] = copy;
  return NULL;
}

weir_status_t* weir_dataset_set_shape(weir_data_t* self, int i, int rank, const int64_t* dims) {
  weir_arena_t arena = {0};
  const weir_shape_t* shape = rank < 0 ? &weir_shape_unknown : weir_shape_make(&arena, rank, dims);
  weir_status_t* status = shape ? replace_shape(self, i, shape) : weir_out_of_memory();
  weir_arena_free(&arena);
  return status;
}

weir_status_t* weir_dataset_set_like(const weir_data_t* like, weir_data_t* self) {
  WEIR_TRY(weir_dataset_set_components(like->count, like->types, self));
  for (int i = 0; i < like->count; ++i) WEIR_TRY(replace_shape(self, i, like->shapes[i]));
  return NULL;
}

weir_status_t* weir_dataset_set_attrs(weir_kernel_ctx_t* ctx, const char* types, const char* shapes,
                                      weir_data_t* self) {
  const weir_attr_t* type_list = weir_attrs_list(weir_kernel_attrs(ctx), types);
  const weir_attr_t* shape_list = weir_attrs_list(weir_kernel_attrs(ctx), shapes);
  WEIR_TRY(weir_dataset_set_components((int)type_list->count, type_list->u.types, self));
  if (shape_list->count != type_list->count)
    return WEIR_STATUS(INVALID_ARGUMENT, "%s and %s must be same length, got: %zu and %zu", types,
                       shapes, type_list->count, shape_list->count);
  for (int i = 0; i < self->count; ++i) WEIR_TRY(replace_shape(self, i, shape_list->u.shapes[i]));
  return NULL;
}

weir_status_t* weir_components_check_types(int count, const weir_dtype_t* types, int got_count,
                                           const weir_dtype_t* got) {
  if (count != got_count)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Number of components does not match: expected %d types but got %d.", count,
                       got_count);
  for (int i = 0; i < count; ++i) {
    if (types[i] != got[i])
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Data type mismatch at component %d: expected %s but got %s.", i,
                         weir_dtype_name(types[i]), weir_dtype_name(got[i]));
  }
  return NULL;
}

weir_status_t* weir_components_check_shapes(int count, const weir_shape_t* const* shapes,
                                            int got_count, const weir_shape_t* const* got) {
  if (count != got_count)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Number of components does not match: expected %d shapes but got %d.", count,
                       got_count);
  weir_status_t* status = NULL;
  for (int i = 0; i < count && !status; ++i) {
    weir_arena_t arena = {0};
    weir_strbuf_t want = {0}, have = {0};
    const weir_shape_t* merged = NULL;
    if (!weir_shape_merge(&arena, shapes[i], got[i], &merged)) {
      weir_shape_append(shapes[i], &want);
      weir_shape_append(got[i], &have);
      status = WEIR_STATUS(INVALID_ARGUMENT,
                           "Incompatible shapes at component %d: expected %s but got %s.", i,
                           want.data, have.data);
    }
    weir_strbuf_free(&want);
    weir_strbuf_free(&have);
    weir_arena_free(&arena);
  }
  return status;
}

// ---- scalars ----

static weir_status_t* check_scalar(const weir_kernel_ctx_t* ctx, int i, const char* name) {
  if (weir_kernel_input(ctx, i)->rank == 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "%s must be a scalar", name);
}

weir_status_t* weir_dataset_int(const weir_kernel_ctx_t* ctx, int i, const char* name,
                                int64_t* out_value) {
  WEIR_TRY(check_scalar(ctx, i, name));
  *out_value = weir_tensor_int_at(weir_kernel_input(ctx, i), 0);
  return NULL;
}

weir_status_t* weir_dataset_bool(const weir_kernel_ctx_t* ctx, int i, const char* name,
                                 bool* out_value) {
  WEIR_TRY(check_scalar(ctx, i, name));
  *out_value = *WEIR_TENSOR_DATA(weir_kernel_input(ctx, i), const bool);
  return NULL;
}

weir_status_t* weir_dataset_string(const weir_kernel_ctx_t* ctx, int i, const char* name,
                                   weir_view_t* out_value) {
  WEIR_TRY(check_scalar(ctx, i, name));
  *out_value = weir_string_view(weir_kernel_input(ctx, i)->data);
  return NULL;
}

weir_status_t* weir_dataset_shape_scalars(weir_shape_ctx_t* ctx) {
  for (int i = 1; i < ctx->node->input_count; ++i)
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), 0, NULL));
  return weir_shape_set_scalar(ctx, 0);
}

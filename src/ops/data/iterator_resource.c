// iterator_resource.c — An iterator that steps share.
//
// What is walked over is replaced as a whole by MakeIterator. A step that pulls holds the walk, so
// the old one ends when the last of its pulls does.
#include "ops/data/iterator_resource.h"

#include "ops/data/monitor.h"
#include "ops/data/seeds.h"
#include "ops/data/state.h"

// One walk, and whose turn it is to pull. Reference counted.
typedef struct walk_t {
  weir_ref_t ref;
  weir_walk_t base;
  weir_iterator_t* iterator;
  weir_monitor_t monitor;
  bool is_taken;  // guarded by monitor: someone pulls
} walk_t;

struct weir_iterator_resource_t {
  weir_resource_t base;
  int count;
  weir_dtype_t* types;
  weir_shape_t** shapes;
  weir_mutex_t mu;
  walk_t* walk;  // guarded by mu; NULL: not set
};

// ---- a walk ----

static void walk_release(walk_t* walk) {
  if (!walk || !weir_ref_dec(&walk->ref)) return;
  if (walk->base.cancel) weir_cancel_start(walk->base.cancel);  // threads of datasets end by it
  weir_iterator_destroy(walk->iterator);
  weir_seed_places_destroy(walk->base.seeds);
  weir_cancel_destroy(walk->base.cancel);
  if (walk->base.functions) walk->base.functions->vtable->destroy(walk->base.functions);
  weir_monitor_destroy(&walk->monitor);
  weir_free(walk);
}

static weir_status_t* walk_create(const weir_kernel_ctx_t* ctx, weir_data_t* dataset,
                                  walk_t** out_walk) {
  walk_t* walk = weir_calloc(1, sizeof(*walk));
  if (!walk) return weir_out_of_memory();
  weir_ref_init(&walk->ref);
  weir_monitor_init(&walk->monitor);
  walk->base.pool = weir_kernel_pool(ctx);
  weir_functions_t* functions = ctx->step->functions;
  weir_status_t* status = weir_cancel_create(NULL, &walk->base.cancel);
  if (!status && functions) status = functions->vtable->clone(functions, &walk->base.functions);
  if (!status) status = weir_seed_places_create(&walk->base.seeds);
  if (!status) status = weir_iterator_create_root(dataset, &walk->base, &walk->iterator);
  if (status) walk_release(walk);
  else *out_walk = walk;
  return status;
}

static weir_status_t* walk_take(walk_t* walk, weir_cancel_t* cancel) {
  weir_cancel_token_t token = weir_monitor_enter(&walk->monitor, cancel);
  while (walk->is_taken && weir_monitor_wait(&walk->monitor, cancel)) continue;
  bool is_mine = !walk->is_taken;
  walk->is_taken = true;
  weir_monitor_leave(&walk->monitor, cancel, token);
  return is_mine ? NULL : WEIR_STATUS(CANCELLED, "Iterator was cancelled");
}

static void walk_give(walk_t* walk) {
  weir_mutex_lock(&walk->monitor.mu);
  walk->is_taken = false;
  weir_cond_broadcast(&walk->monitor.changed);
  weir_mutex_unlock(&walk->monitor.mu);
}

// ---- the resource ----

static walk_t* retain_walk(weir_iterator_resource_t* self) {
  weir_mutex_lock(&self->mu);
  walk_t* walk = self->walk;
  if (walk) weir_ref_inc(&walk->ref, 1);
  weir_mutex_unlock(&self->mu);
  return walk;
}

static void resource_close(weir_resource_t* resource) {
  walk_t* walk = retain_walk((weir_iterator_resource_t*)resource);
  if (walk) weir_cancel_start(walk->base.cancel);
  walk_release(walk);
}

static void replace_walk(weir_iterator_resource_t* self, walk_t* take_walk) {
  weir_mutex_lock(&self->mu);
  walk_t* old = self->walk;
  self->walk = take_walk;
  weir_mutex_unlock(&self->mu);
  walk_release(old);
}

static void resource_destroy(weir_resource_t* resource) {
  weir_iterator_resource_t* self = (weir_iterator_resource_t*)resource;
  walk_release(self->walk);
  for (int i = 0; i < self->count && self->shapes; ++i) weir_free(self->shapes[i]);
  weir_free(self->shapes);
  weir_free(self->types);
  weir_mutex_destroy(&self->mu);
  weir_free(self);
}

const weir_resource_type_t weir_iterator_resource_type = {
    .name = WEIR_ITERATOR_TYPE_NAME,  // as TensorFlow's messages name it
    .destroy = resource_destroy,
    .close = resource_close};

weir_status_t* weir_element_spec_of(weir_attrs_t attrs, weir_element_spec_t* out_spec) {
  const weir_attr_t* types = weir_attrs_list(attrs, "output_types");
  const weir_attr_t* shapes = weir_attrs_list(attrs, "output_shapes");
  if (types->count != shapes->count)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "output_types and output_shapes must be same length, got: %zu and %zu",
                       types->count, shapes->count);
  *out_spec = (weir_element_spec_t){
      .count = (int)types->count, .types = types->u.types, .shapes = shapes->u.shapes};
  return NULL;
}

weir_status_t* weir_iterator_resource_create(const weir_element_spec_t* spec,
                                             weir_resource_t** out_resource) {
  weir_iterator_resource_t* self = weir_calloc(1, sizeof(*self));
  if (!self) return weir_out_of_memory();
  weir_resource_init(&self->base, &weir_iterator_resource_type);
  weir_mutex_init(&self->mu);
  self->count = spec->count;
  self->types = weir_alloc_array((size_t)spec->count, sizeof(*self->types));
  self->shapes = weir_calloc((size_t)spec->count, sizeof(*self->shapes));
  bool is_made = self->types && self->shapes;
  for (int i = 0; i < spec->count && is_made; ++i) {
    self->types[i] = spec->types[i];
    self->shapes[i] = weir_shape_clone(spec->shapes[i]);
    is_made = self->shapes[i] != NULL;
  }
  if (!is_made) {
    weir_resource_release(&self->base);
    return weir_out_of_memory();
  }
  *out_resource = &self->base;
  return NULL;
}

weir_status_t* weir_iterator_resource_like(const weir_iterator_resource_t* like,
                                           weir_resource_t** out_resource) {
  weir_element_spec_t spec = {.count = like->count,
                              .types = like->types,
                              .shapes = (const weir_shape_t* const*)like->shapes};
  return weir_iterator_resource_create(&spec, out_resource);
}

static weir_status_t* check(const weir_iterator_resource_t* self, int count,
                            const weir_dtype_t* types, const weir_shape_t* const* shapes) {
  WEIR_TRY(weir_components_check_types(self->count, self->types, count, types));
  return weir_components_check_shapes(self->count, (const weir_shape_t* const*)self->shapes, count,
                                      shapes);
}

weir_status_t* weir_iterator_resource_matches(weir_iterator_resource_t* resource,
                                              const weir_element_spec_t* spec) {
  WEIR_TRY(weir_components_check_types(spec->count, spec->types, resource->count, resource->types));
  return weir_components_check_shapes(spec->count, spec->shapes, resource->count,
                                      (const weir_shape_t* const*)resource->shapes);
}

weir_status_t* weir_iterator_resource_set(weir_iterator_resource_t* resource,
                                          const weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  walk_t* walk = NULL;
  WEIR_TRY(
      check(resource, dataset->count, dataset->types, (const weir_shape_t* const*)dataset->shapes));
  WEIR_TRY(walk_create(ctx, dataset, &walk));
  replace_walk(resource, walk);
  return NULL;
}

// ---- saving and restoring ----

static void walk_state(walk_t* walk, weir_state_t* state) {
  weir_state_iterator(walk->iterator, state);
  weir_seed_places_state(walk->base.seeds, state);
}

static weir_status_t* not_initialized(const char* what, const char* doing) {
  return WEIR_STATUS(FAILED_PRECONDITION,
                     "%s() failed because the iterator has not been initialized. Ensure that you "
                     "have run the initializer operation for this iterator before %s it.",
                     what, doing);
}

weir_status_t* weir_iterator_resource_save(weir_iterator_resource_t* resource,
                                           weir_state_t* state) {
  walk_t* walk = retain_walk(resource);
  if (!walk) return not_initialized("Save", "saving");
  weir_status_t* status = walk_take(walk, state->cancel);
  if (!status) {
    walk_state(walk, state);
    status = weir_state_finish(state);
    walk_give(walk);
  }
  walk_release(walk);
  return status;
}

weir_status_t* weir_iterator_resource_restore(weir_iterator_resource_t* resource,
                                              const weir_kernel_ctx_t* ctx, weir_state_t* state) {
  walk_t *old = retain_walk(resource), *walk = NULL;
  if (!old) return not_initialized("Restore", "restoring");
  weir_status_t* status = walk_create(ctx, old->iterator->dataset, &walk);
  walk_release(old);
  if (status) return status;
  walk_state(walk, state);
  status = weir_state_finish(state);
  if (status) walk_release(walk);
  else replace_walk(resource, walk);
  return status;
}

bool weir_iterator_resource_is_set(weir_iterator_resource_t* resource) {
  weir_mutex_lock(&resource->mu);
  bool is_set = resource->walk != NULL;
  weir_mutex_unlock(&resource->mu);
  return is_set;
}

weir_status_t* weir_iterator_resource_next(weir_iterator_resource_t* resource,
                                           weir_cancel_t* cancel, weir_tensor_t** out,
                                           bool* out_is_end) {
  walk_t* walk = retain_walk(resource);
  if (!walk)
    return WEIR_STATUS(FAILED_PRECONDITION,
                       "GetNext() failed because the iterator has not been initialized. Ensure "
                       "that you have run the initializer operation for this iterator before "
                       "getting the next element.");
  weir_status_t* status = walk_take(walk, cancel);
  if (!status) {
    status = weir_iterator_next(walk->iterator, cancel, out, out_is_end);
    walk_give(walk);
  }
  walk_release(walk);
  return status;
}

int weir_iterator_resource_width(const weir_iterator_resource_t* resource) {
  return resource->count;
}

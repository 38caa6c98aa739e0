// barrier.c — Barrier: brings the components of a tuple together by key; complete ones are taken in
// order of first sight.
#include "base/map.h"
#include "op/shape_ctx.h"
#include "ops/queue/queue_resource.h"

#define BARRIER_TYPE_NAME "N10tensorflow7barrier7BarrierE"

typedef struct barrier_t {
  weir_resource_t base;
  weir_mutex_t mu;
  char* name;  // immutable, as all down to |ready|
  int count;   // value components
  weir_dtype_t* types;
  weir_shape_t** shapes;
  weir_queue_t* ready;    // (index, key, values…) by index
  weir_map_t incomplete;  // guarded by mu: key → element_t
  int64_t next_index;     // guarded by mu
  bool is_closed;         // guarded by mu
  bool cancels_pending;   // guarded by mu
} barrier_t;

typedef struct element_t {
  int64_t index;
  int missing;
  weir_tensor_t* parts[];
} element_t;

typedef struct barrier_state_t {
  weir_shared_handle_t handle;
  weir_components_t components;
  const weir_shape_t** shapes;  // owned array of the node's shapes
} barrier_state_t;

static void element_free(const barrier_t* b, element_t* e) {
  for (int i = 0; e && i < b->count; ++i) weir_tensor_release(e->parts[i]);
  weir_free(e);
}

static void drop_incomplete(barrier_t* b) {
  weir_map_entry_t* entry;
  for (size_t i = 0; (entry = weir_map_next(&b->incomplete, &i));) element_free(b, entry->value);
  weir_map_free(&b->incomplete);
}

// ---- life ----
static void barrier_destroy(weir_resource_t* resource) {
  barrier_t* b = (barrier_t*)resource;
  drop_incomplete(b);
  for (int i = 0; b->shapes && i < b->count; ++i) weir_free(b->shapes[i]);
  weir_free(b->shapes);
  weir_free(b->types);
  weir_free(b->name);
  weir_resource_release((weir_resource_t*)b->ready);
  weir_mutex_destroy(&b->mu);
  weir_free(b);
}

static void barrier_close(weir_resource_t* resource) {
  weir_waiters_t completed = {0};
  weir_queue_shut(((barrier_t*)resource)->ready, &completed);
  weir_waiters_answer(&completed);
}

static const weir_resource_type_t barrier_type = {
    .name = BARRIER_TYPE_NAME, .destroy = barrier_destroy, .close = barrier_close};

static weir_status_t* make_ready(barrier_t* b) {
  const size_t count = (size_t)b->count + 2;
  weir_dtype_t* types = weir_alloc_array(count, sizeof(*types));
  const weir_shape_t** shapes = weir_alloc_array(count, sizeof(*shapes));
  weir_status_t* status = types && shapes ? NULL : weir_out_of_memory();
  if (!status) {
    types[0] = WEIR_DTYPE_INT64;
    types[1] = WEIR_DTYPE_STRING;
    shapes[0] = shapes[1] = &weir_shape_scalar;
    for (int i = 0; i < b->count; ++i) {
      types[i + 2] = b->types[i];
      shapes[i + 2] = b->shapes[i];
    }
    weir_queue_config_t config = {.policy = WEIR_QUEUE_PRIORITY,
                                  .name = b->name,
                                  .component_count = (int)count,
                                  .types = types,
                                  .shapes = shapes,
                                  .capacity = -1};
    status = weir_queue_create(&config, &b->ready);
  }
  weir_free(types);
  weir_free(shapes);
  return status;
}

static weir_status_t* copy_components(barrier_t* b, const barrier_state_t* s) {
  const size_t count = (size_t)s->components.count;
  b->count = s->components.count;
  b->name = weir_strdup(s->handle.name);
  b->types = weir_alloc_array(count, sizeof(*b->types));
  b->shapes = weir_calloc(count, sizeof(*b->shapes));
  if (!b->name || !b->types || !b->shapes) return weir_out_of_memory();
  for (int i = 0; i < b->count; ++i) {
    b->types[i] = s->components.types[i];
    b->shapes[i] = weir_shape_clone(s->shapes[i]);
    if (!b->shapes[i]) return weir_out_of_memory();
  }
  return make_ready(b);
}

static weir_status_t* barrier_create(void* arg, weir_resource_t** out_resource) {
  barrier_t* b = weir_calloc(1, sizeof(*b));
  if (!b) return weir_out_of_memory();
  weir_resource_init(&b->base, &barrier_type);
  weir_mutex_init(&b->mu);
  b->incomplete.owns_keys = true;
  b->next_index = INT64_MIN;
  weir_status_t* status = copy_components(b, arg);
  if (status) {
    weir_resource_release(&b->base);
    return status;
  }
  *out_resource = &b->base;
  return NULL;
}

static weir_status_t* init_components(weir_attrs_t attrs, barrier_state_t* s) {
  const weir_attr_t* types = weir_attrs_list(attrs, "component_types");
  const weir_attr_t* shapes = weir_attrs_list(attrs, "shapes");
  if (shapes->count != types->count)
    return WEIR_STATUS(INVALID_ARGUMENT, "All of the component shapes must be specified");
  s->shapes = weir_alloc_array(shapes->count, sizeof(*s->shapes));
  if (!s->shapes) return weir_out_of_memory();
  for (size_t i = 0; i < shapes->count; ++i)
    WEIR_TRY(weir_component_shape(shapes->u.shapes[i], &s->shapes[i]));
  s->components = (weir_components_t){(int)types->count, types->u.types, s->shapes};
  return NULL;
}

static weir_status_t* barrier_init(const weir_kernel_init_t* init, void* state) {
  barrier_state_t* s = state;
  weir_attrs_t attrs = init->node->attrs;
  WEIR_TRY(init_components(attrs, s));
  if (weir_attrs_int(attrs, "capacity") != -1) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "Barrier only accepts capacity=-1. Feed the inputs to your Barrier through a queue "
        "to enforce a limited capacity.");
  }
  return weir_shared_handle_init(init, BARRIER_TYPE_NAME, &s->handle);
}

static void barrier_deinit(void* state) {
  barrier_state_t* s = state;
  weir_shared_handle_deinit(&s->handle);
  weir_free(s->shapes);
}

static weir_status_t* barrier_cpu(weir_kernel_ctx_t* ctx) {
  barrier_state_t* s = ctx->state;
  weir_resource_t* resource = NULL;
  WEIR_TRY(weir_shared_handle_create(ctx, &s->handle, &barrier_type, barrier_create, s, &resource));
  const barrier_t* b = (const barrier_t*)resource;
  const weir_components_t has = {b->count, b->types, (const weir_shape_t* const*)b->shapes};
  weir_status_t* status = weir_components_match("barrier", b->name, &has, &s->components, false);
  if (!status) weir_shared_handle_set(ctx, &s->handle);
  weir_resource_release(resource);
  return status;
}

// ---- BarrierInsertMany ----
static weir_status_t* find_element(barrier_t* b, weir_view_t key, element_t** out_element) {
  element_t* e = weir_map_find(&b->incomplete, key);
  if (!e && b->is_closed) {
    return WEIR_STATUS(CANCELLED,
                       "Barrier '%s' is closed, but attempted to insert a brand new key: %.*s",
                       b->name, WEIR_VIEW_ARG(key));
  }
  if (!e) {
    e = weir_calloc(1, sizeof(*e) + (size_t)b->count * sizeof(e->parts[0]));
    if (!e) return weir_out_of_memory();
    e->index = b->next_index;
    e->missing = b->count;
    weir_status_t* status = weir_map_put(&b->incomplete, key, e);
    if (status) {
      weir_free(e);
      return status;
    }
  }
  *out_element = e;
  return NULL;
}

static weir_status_t* copy_row(const weir_tensor_t* values, int64_t row, weir_tensor_t** out) {
  WEIR_TRY(weir_tensor_create(weir_tensor_type(values), values->rank - 1, values->dims + 1, out));
  const int64_t size = (*out)->count * (int64_t)weir_dtype_size(weir_tensor_type(values));
  return weir_elements_copy(weir_tensor_type(values), (*out)->data,
                            (const char*)values->data + row * size, (*out)->count);
}

// Moves a complete element to the queue of ready ones.
static weir_status_t* finish_element(barrier_t* b, weir_view_t key, element_t* e,
                                     weir_waiters_t* completed) {
  weir_tensor_t** parts = weir_calloc((size_t)b->count + 2, sizeof(*parts));
  if (!parts) return weir_out_of_memory();
  const char* text = key.data;
  weir_status_t* status = weir_tensor_create_from(WEIR_DTYPE_INT64, 0, NULL, &e->index, &parts[0]);
  if (!status) status = weir_tensor_create_strings(0, NULL, &text, &key.size, &parts[1]);
  if (status) {
    weir_tensor_release(parts[0]);
    weir_free(parts);
    return status;
  }
  for (int i = 0; i < b->count; ++i) {
    parts[i + 2] = e->parts[i];
    e->parts[i] = NULL;
  }
  (void)weir_map_remove(&b->incomplete, key);
  element_free(b, e);
  status = weir_queue_put(b->ready, parts, completed);
  weir_free(parts);
  return status;
}

static weir_status_t* insert_locked(barrier_t* b, const weir_tensor_t* keys,
                                    const weir_tensor_t* values, int component,
                                    weir_waiters_t* completed) {
  if (b->is_closed && (b->cancels_pending || b->incomplete.count == 0)) {
    return WEIR_STATUS(
        CANCELLED,
        "Barrier '%s' is closed. Pending enqueues cancelled: %d. Number of incomplete keys: %zu",
        b->name, b->cancels_pending, b->incomplete.count);
  }
  bool has_new = false;
  for (int64_t i = 0; i < keys->count; ++i) {
    weir_view_t key = weir_string_view(&WEIR_TENSOR_DATA(keys, const weir_string_t)[i]);
    element_t* e = NULL;
    WEIR_TRY(find_element(b, key, &e));
    has_new |= e->index == b->next_index;
    if (e->parts[component]) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Key %.*s already has a value for component %d in barrier %s",
                         WEIR_VIEW_ARG(key), component, b->name);
    }
    weir_status_t* status = copy_row(values, i, &e->parts[component]);
    if (status) {
      weir_tensor_release(e->parts[component]);
      e->parts[component] = NULL;
      return status;
    }
    if (--e->missing == 0) WEIR_TRY(finish_element(b, key, e, completed));
  }
  if (has_new) ++b->next_index;  // what was inserted together has one index
  if (b->is_closed && b->incomplete.count == 0) weir_queue_shut(b->ready, completed);
  return NULL;
}

static weir_status_t* check_insert(const barrier_t* b, const weir_tensor_t* keys,
                                   const weir_tensor_t* values, int64_t component) {
  if (component < 0 || component >= b->count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "The component ID is out of range %lld > num_components (= %d)",
                       (long long)component, b->count);
  }
  if (weir_tensor_type(values) != b->types[component]) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Type mismatch in component %lld: expected %s, got %s",
                       (long long)component, weir_dtype_name(b->types[component]),
                       weir_dtype_name(weir_tensor_type(values)));
  }
  char k[WEIR_SHAPE_TEXT_SIZE], v[WEIR_SHAPE_TEXT_SIZE];
  if (keys->count > 0 && values->count == 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Tensors with no elements are not supported %s: received shape %s", b->name,
                       weir_tensor_shape_text(values, v));
  }
  if (keys->rank != 1 || values->rank < 1 || values->dims[0] != keys->dims[0] ||
      !weir_shape_accepts(b->shapes[component], values->rank - 1, values->dims + 1)) {
    return WEIR_STATUS(
        INVALID_ARGUMENT, "Shape mismatch in tuple component %lld: keys %s, values %s",
        (long long)component, weir_tensor_shape_text(keys, k), weir_tensor_shape_text(values, v));
  }
  return NULL;
}

static weir_status_t* insert_cpu(weir_kernel_ctx_t* ctx) {
  weir_resource_t* resource = NULL;
  int64_t component = weir_attrs_int(weir_kernel_attrs(ctx), "component_index");
  WEIR_TRY(weir_shared_handle_resource(ctx, 0, &barrier_type, &resource));
  barrier_t* b = (barrier_t*)resource;
  weir_waiters_t completed = {0};  // answered when |mu| is free again
  weir_status_t* status =
      check_insert(b, weir_kernel_input(ctx, 1), weir_kernel_input(ctx, 2), component);
  if (!status) {
    weir_mutex_lock(&b->mu);
    status = insert_locked(b, weir_kernel_input(ctx, 1), weir_kernel_input(ctx, 2), (int)component,
                           &completed);
    weir_mutex_unlock(&b->mu);
    weir_waiters_answer(&completed);
  }
  weir_resource_release(resource);
  return status;
}

// ---- BarrierTakeMany ----
// How many to ask of the ready queue. OUT_OF_RANGE when a closed barrier can never have them.
static weir_status_t* count_to_take(barrier_t* b, int64_t wanted, bool is_small_fine,
                                    int64_t* out_count) {
  weir_status_t* status = NULL;
  *out_count = wanted;
  weir_mutex_lock(&b->mu);
  if (b->is_closed) {
    int64_t available = weir_queue_size(b->ready);
    if (is_small_fine) {
      *out_count = WEIR_MIN(wanted, available);
    } else {
      available += (int64_t)b->incomplete.count;
    }
    if (available < WEIR_MAX(*out_count, 1)) {
      status = WEIR_STATUS(
          OUT_OF_RANGE,
          "Barrier '%s' is closed and has insufficient elements (requested %lld, total size %lld)",
          b->name, (long long)wanted, (long long)available);
    }
  }
  weir_mutex_unlock(&b->mu);
  return status;
}

static void take_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  weir_resource_t* resource = NULL;
  int64_t wanted = 0, count = 0;
  bool is_small_fine = weir_attrs_bool(weir_kernel_attrs(ctx), "allow_small_batch");
  weir_status_t* status = weir_kernel_int(ctx, 1, &wanted);
  if (!status && wanted < 0) {
    status =
        WEIR_STATUS(INVALID_ARGUMENT, "Barrier asked for %lld < 0 elements", (long long)wanted);
  }
  if (!status) status = weir_shared_handle_resource(ctx, 0, &barrier_type, &resource);
  if (!status) status = count_to_take((barrier_t*)resource, wanted, is_small_fine, &count);
  if (status) {
    weir_done_call(done, status);
  } else {
    weir_queue_dequeue(((barrier_t*)resource)->ready, ctx, count, is_small_fine, done);
  }
  weir_resource_release(resource);
}

static weir_status_t* insert_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* keys = weir_shape_input(ctx, 1);
  const weir_shape_t* values = weir_shape_input(ctx, 2);
  int64_t count = 0;
  WEIR_TRY(weir_shape_with_rank(ctx, keys, 1, NULL));
  WEIR_TRY(weir_shape_at_least(ctx, values, 1));
  return weir_dim_join(ctx, weir_shape_dim(keys, 0), weir_shape_dim(values, 0), &count);
}

static weir_status_t* take_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 0, NULL));
  WEIR_TRY(weir_shape_set_vector(ctx, 0, -1));
  return weir_shape_set_vector(ctx, 1, -1);
}

// ---- BarrierClose, sizes ----
static weir_status_t* close_cpu(weir_kernel_ctx_t* ctx) {
  weir_resource_t* resource = NULL;
  bool cancels = weir_attrs_bool(weir_kernel_attrs(ctx), "cancel_pending_enqueues");
  WEIR_TRY(weir_shared_handle_resource(ctx, 0, &barrier_type, &resource));
  barrier_t* b = (barrier_t*)resource;
  weir_waiters_t completed = {0};
  weir_status_t* status = NULL;
  weir_mutex_lock(&b->mu);
  if (b->is_closed && (b->cancels_pending || !cancels)) {
    status = WEIR_STATUS(CANCELLED, "Barrier '%s' is already closed.", b->name);
  } else {
    b->is_closed = true;
    b->cancels_pending = cancels;
    if (cancels) drop_incomplete(b);
    if (cancels || b->incomplete.count == 0) weir_queue_shut(b->ready, &completed);
  }
  weir_mutex_unlock(&b->mu);
  weir_waiters_answer(&completed);
  weir_resource_release(resource);
  return status;
}

static weir_status_t* put_size(weir_kernel_ctx_t* ctx, bool is_ready) {
  weir_resource_t* resource = NULL;
  WEIR_TRY(weir_shared_handle_resource(ctx, 0, &barrier_type, &resource));
  barrier_t* b = (barrier_t*)resource;
  weir_mutex_lock(&b->mu);
  int64_t size = is_ready ? weir_queue_size(b->ready) : (int64_t)b->incomplete.count;
  weir_mutex_unlock(&b->mu);
  weir_resource_release(resource);
  return weir_kernel_output_int(ctx, 0, size);
}

static weir_status_t* ready_size_cpu(weir_kernel_ctx_t* ctx) { return put_size(ctx, true); }
static weir_status_t* incomplete_size_cpu(weir_kernel_ctx_t* ctx) { return put_size(ctx, false); }

const weir_op_module_t weir_ops_queue_barrier = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Barrier",
         .summary = "Collects the components of tuples by key, which may come one by one",
         .attrs = "component_types: list(type) >= 1; shapes: list(shape) >= 0 = []; capacity: int "
                  "= -1; container: string = "
                  "''; shared_name: string = ''",
         .outputs = "handle: Ref(string)",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_CHEAP,
         .infer_shape = weir_shared_handle_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = barrier_cpu, .state_size = sizeof(barrier_state_t),
                                    .init = barrier_init, .deinit = barrier_deinit)},
        {.name = "BarrierInsertMany",
         .summary = "Gives one component to each of several keys of a barrier",
         .attrs = "T: type; component_index: int",
         .inputs = "handle: Ref(string); keys: string; values: T",
         .infer_shape = insert_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = insert_cpu)},
        {.name = "BarrierTakeMany",
         .summary = "Takes complete tuples out of a barrier, waiting for them",
         .attrs = "component_types: list(type) >= 1; allow_small_batch: bool = false; "
                  "wait_for_incomplete: bool = false; "
                  "timeout_ms: int = -1",
         .inputs = "handle: Ref(string); num_elements: int32",
         .outputs = "indices: int64; keys: string; values: component_types",
         .infer_shape = take_shape,
         .kernels = WEIR_CPU_KERNEL(.compute_async = take_cpu)},
        {.name = "BarrierClose",
         .summary = "Lets no new keys into a barrier",
         .attrs = "cancel_pending_enqueues: bool = false",
         .inputs = "handle: Ref(string)",
         .infer_shape = weir_shape_fn_none,
         .kernels = WEIR_CPU_KERNEL(.compute = close_cpu)},
        {.name = "BarrierReadySize",
         .summary = "The number of complete tuples in a barrier",
         .inputs = "handle: Ref(string)",
         .outputs = "size: int32",
         .flags = WEIR_OP_CHEAP,
         .infer_shape = weir_shape_fn_scalar,
         .kernels = WEIR_CPU_KERNEL(.compute = ready_size_cpu)},
        {.name = "BarrierIncompleteSize",
         .summary = "The number of tuples of a barrier that lack components",
         .inputs = "handle: Ref(string)",
         .outputs = "size: int32",
         .flags = WEIR_OP_CHEAP,
         .infer_shape = weir_shape_fn_scalar,
         .kernels = WEIR_CPU_KERNEL(.compute = incomplete_size_cpu)},
        {0}}};

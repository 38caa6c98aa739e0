// queue_resource.c — Queues: requests wait in two lists, one of those that bring and one of those
// that take.
#include "ops/queue/queue_resource.h"

#include "ops/queue/queue_items.h"

struct weir_queue_t {
  weir_resource_t base;
  weir_mutex_t mu;
  weir_queue_policy_t policy;  // immutable, as all down to |seed2|
  char* name;
  int component_count;
  weir_dtype_t* types;
  weir_shape_t** shapes;  // NULL: any; else one a component
  int64_t capacity;
  int64_t min_after_dequeue;
  int64_t seed, seed2;
  // Guarded by mu:
  weir_queue_items_t items;
  bool is_closed;
  weir_waiters_t enqueuers;  // also waiting closes, in order
  weir_waiters_t dequeuers;
};

typedef struct enqueue_t {
  weir_waiter_t base;
  bool is_close;
  bool is_many;
  int64_t next;           // row to put in next
  int64_t count;          // rows
  weir_tensor_t** parts;  // retained inputs
} enqueue_t;

typedef struct dequeue_t {
  weir_waiter_t base;
  bool is_batch;
  bool is_up_to;
  int64_t count;  // tuples asked for
  weir_queue_item_t* got;
  size_t got_capacity;
  size_t got_count;
} dequeue_t;

static const char* const policy_names[] = {[WEIR_QUEUE_FIFO] = "FIFOQueue",
                                           [WEIR_QUEUE_PADDING] = "PaddingFIFOQueue",
                                           [WEIR_QUEUE_SHUFFLE] = "RandomShuffleQueue",
                                           [WEIR_QUEUE_PRIORITY] = "PriorityQueue"};

// ---- enqueue ----
// Row |row| of |tensor| as a tensor of its own: a copy, so that one row does not keep a batch
// alive.
static weir_status_t* copy_row(weir_tensor_t* tensor, int64_t row, weir_tensor_t** out) {
  weir_tensor_t* part = NULL;
  WEIR_TRY(weir_tensor_create(weir_tensor_type(tensor), tensor->rank - 1, tensor->dims + 1, &part));
  const int64_t size = part->count * (int64_t)weir_dtype_size(weir_tensor_type(tensor));
  weir_status_t* status = weir_elements_copy(weir_tensor_type(tensor), part->data,
                                             (const char*)tensor->data + row * size, part->count);
  if (status) {
    weir_tensor_release(part);
    return status;
  }
  *out = part;
  return NULL;
}

static weir_status_t* push_row(weir_queue_t* queue, enqueue_t* e) {
  weir_queue_item_t item = {
      .parts = weir_calloc((size_t)queue->component_count, sizeof(weir_tensor_t*))};
  if (!item.parts) return weir_out_of_memory();
  weir_status_t* status = NULL;
  for (int i = 0; !status && i < queue->component_count; ++i) {
    if (e->is_many) {
      status = copy_row(e->parts[i], e->next, &item.parts[i]);
    } else {
      item.parts[i] = weir_tensor_retain(e->parts[i]);
    }
  }
  if (!status && !weir_queue_items_push(&queue->items, item)) status = weir_out_of_memory();
  if (status) {
    weir_queue_item_free(&item, queue->component_count);
    return status;
  }
  ++e->next;
  return NULL;
}

// Serves the first enqueuer as far as it goes; true when something changed.
static bool try_enqueue(weir_queue_t* queue, weir_waiters_t* completed) {
  enqueue_t* e = (enqueue_t*)queue->enqueuers.head;
  if (!e) return false;
  weir_status_t* status = NULL;
  bool changed = false;
  if (e->is_close) {
    if (queue->is_closed) {
      status = WEIR_STATUS(CANCELLED, "%s '%s' is already closed.", policy_names[queue->policy],
                           queue->name);
    }
    queue->is_closed = true;
    weir_waiter_complete(&e->base, status, completed);
    return true;
  }
  if (queue->is_closed) {
    status = WEIR_STATUS(CANCELLED, "%s '%s' is closed.", policy_names[queue->policy], queue->name);
    weir_waiter_complete(&e->base, status, completed);
    return true;
  }
  while (!status && e->next < e->count &&
         (queue->capacity < 0 || (int64_t)queue->items.size < queue->capacity)) {
    status = push_row(queue, e);
    changed = true;
  }
  if (!status && e->next < e->count) return changed;
  weir_waiter_complete(&e->base, status, completed);
  return true;
}

// ---- dequeue ----
static weir_status_t* insufficient(const weir_queue_t* queue, int64_t wanted) {
  return WEIR_STATUS(
      OUT_OF_RANGE,
      "%s '%s' is closed and has insufficient elements (requested %lld, current size %zu)",
      policy_names[queue->policy], queue->name, (long long)wanted, queue->items.size);
}

// Puts what a request took back to the front. Without memory for that, it is lost.
static void give_back(weir_queue_t* queue, dequeue_t* d) {
  if (!weir_queue_items_reserve(&queue->items, d->got_count)) return;
  while (d->got_count > 0) weir_queue_items_push_front(&queue->items, d->got[--d->got_count]);
}

// Takes what may be taken; true when something changed.
static bool take(weir_queue_t* queue, dequeue_t* d) {
  int64_t available =
      (int64_t)queue->items.size - (queue->is_closed ? 0 : queue->min_after_dequeue);
  bool changed = false;
  while (available-- > 0 && (int64_t)d->got_count < d->count) {
    d->got[d->got_count++] = weir_queue_items_pop(&queue->items);
    changed = true;
  }
  return changed;
}

static bool try_dequeue(weir_queue_t* queue, weir_waiters_t* completed) {
  dequeue_t* d = (dequeue_t*)queue->dequeuers.head;
  if (!d) return false;
  const int64_t wanted = d->count - (int64_t)d->got_count;
  if (queue->is_closed && (int64_t)queue->items.size < wanted) {
    weir_status_t* status = NULL;
    bool is_rest = d->is_up_to && queue->items.size + d->got_count > 0;
    if (is_rest) {
      d->count = (int64_t)(queue->items.size + d->got_count);
      (void)take(queue, d);
    } else {
      status = insufficient(queue, wanted);
      give_back(queue, d);
    }
    weir_waiter_complete(&d->base, status, completed);
    return true;
  }
  bool changed = take(queue, d);
  if ((int64_t)d->got_count < d->count) return changed;
  weir_waiter_complete(&d->base, NULL, completed);
  return true;
}

static void queue_flush(weir_resource_t* owner, weir_waiters_t* completed) {
  weir_queue_t* queue = (weir_queue_t*)owner;
  bool changed;
  do {
    changed = try_enqueue(queue, completed);
    changed |= try_dequeue(queue, completed);
  } while (changed);
}

static weir_status_t* dequeue_finish(weir_waiter_t* waiter) {
  dequeue_t* d = (dequeue_t*)waiter;
  const weir_queue_t* queue = (const weir_queue_t*)waiter->owner;
  for (int i = 0; i < queue->component_count; ++i) {
    if (d->is_batch) {
      WEIR_TRY(weir_queue_items_batch(d->got, d->got_count, i, queue->shapes[i],
                                      queue->policy == WEIR_QUEUE_PADDING, waiter->ctx));
    } else {
      weir_kernel_set(waiter->ctx, i, weir_tensor_retain(d->got[0].parts[i]));
    }
  }
  return NULL;
}

static void dequeue_abandon(weir_waiter_t* waiter) {
  give_back((weir_queue_t*)waiter->owner, (dequeue_t*)waiter);
}

static void dequeue_destroy(weir_waiter_t* waiter) {
  dequeue_t* d = (dequeue_t*)waiter;
  weir_queue_t* queue = (weir_queue_t*)waiter->owner;
  while (d->got_count > 0) weir_queue_item_free(&d->got[--d->got_count], queue->component_count);
  weir_free(d->got);
}

static void enqueue_destroy(weir_waiter_t* waiter) {
  enqueue_t* e = (enqueue_t*)waiter;
  weir_queue_t* queue = (weir_queue_t*)waiter->owner;
  for (int i = 0; e->parts && i < queue->component_count; ++i) weir_tensor_release(e->parts[i]);
  weir_free(e->parts);
}

// ---- checks of what a kernel brings ----
// What is expected of a batch is said with the batch's own size before the component's shape.
static weir_status_t* shape_mismatch(const weir_shape_t* shape, int i, const weir_tensor_t* part,
                                     bool is_many) {
  char got[WEIR_SHAPE_TEXT_SIZE];
  weir_strbuf_t expected = {0};
  weir_shape_append(shape, &expected);
  weir_view_t text = weir_strbuf_view(&expected);
  weir_strbuf_t batched = {0};
  if (is_many && shape->rank >= 0) {
    weir_strbuf_printf(&batched, "[%lld%s%.*s", (long long)part->dims[0], shape->rank ? "," : "",
                       (int)text.size - 1, text.data + 1);
    text = weir_strbuf_view(&batched);
  }
  weir_status_t* status =
      WEIR_STATUS(INVALID_ARGUMENT, "Shape mismatch in tuple component %d. Expected %.*s, got %s",
                  i, WEIR_VIEW_ARG(text), weir_tensor_shape_text(part, got));
  weir_strbuf_free(&expected);
  weir_strbuf_free(&batched);
  return status;
}

static weir_status_t* check_component(const weir_queue_t* queue, int i, const weir_tensor_t* part,
                                      bool is_many) {
  char got[WEIR_SHAPE_TEXT_SIZE];
  if (weir_tensor_type(part) != queue->types[i]) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Type mismatch in tuple component %d. Expected %s, got %s",
                       i, weir_dtype_name(queue->types[i]),
                       weir_dtype_name(weir_tensor_type(part)));
  }
  if (is_many && part->rank < 1) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "Shape mismatch in tuple component %d. Expected at least one dimension, got []", i);
  }
  int skip = is_many ? 1 : 0;
  if (queue->shapes &&
      !weir_shape_accepts(queue->shapes[i], part->rank - skip, part->dims + skip)) {
    return shape_mismatch(queue->shapes[i], i, part, is_many);
  }
  if (queue->policy == WEIR_QUEUE_PRIORITY && i == 0 && part->rank != skip) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Expected the priority element to be a scalar, but received shape: %s",
                       weir_tensor_shape_text(part, got));
  }
  return NULL;
}

static weir_status_t* check_tuple(const weir_queue_t* queue, weir_kernel_ctx_t* ctx, int first,
                                  bool is_many) {
  if (ctx->input_count - first != queue->component_count) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Wrong number of components in tuple. Expected %d, got %d",
                       queue->component_count, ctx->input_count - first);
  }
  for (int i = 0; i < queue->component_count; ++i) {
    const weir_tensor_t* part = weir_kernel_input(ctx, first + i);
    WEIR_TRY(check_component(queue, i, part, is_many));
    int64_t rows = weir_kernel_input(ctx, first)->rank ? weir_kernel_input(ctx, first)->dims[0] : 1;
    if (is_many && part->dims[0] != rows) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "All input tensors must have the same size in the 0th dimension. "
                         "Component %d has %lld, and should "
                         "have %lld",
                         i, (long long)part->dims[0], (long long)rows);
    }
  }
  return NULL;
}

static weir_status_t* check_outputs(const weir_queue_t* queue, weir_kernel_ctx_t* ctx,
                                    int64_t count) {
  if (ctx->output_count != queue->component_count) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Wrong number of components. Expected %d, got %d",
                       queue->component_count, ctx->output_count);
  }
  for (int i = 0; i < queue->component_count; ++i) {
    if (ctx->node->output_types[i] == queue->types[i]) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "Type mismatch in tuple component %d. Expected %s, got %s",
                       i, weir_dtype_name(queue->types[i]),
                       weir_dtype_name(ctx->node->output_types[i]));
  }
  for (int i = 0; count >= 0 && i < queue->component_count; ++i) {
    bool is_known = queue->shapes &&
                    (queue->policy == WEIR_QUEUE_PADDING ? queue->shapes[i]->rank >= 0
                                                         : weir_shape_is_full(queue->shapes[i]));
    if (is_known) continue;
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "%s's DequeueMany and DequeueUpTo require the components to have specified "
                       "shapes.",
                       policy_names[queue->policy]);
  }
  return NULL;
}

// ---- requests ----
void weir_queue_enqueue(weir_queue_t* queue, weir_kernel_ctx_t* ctx, int first, bool is_many,
                        weir_done_t done) {
  weir_status_t* status = check_tuple(queue, ctx, first, is_many);
  // An empty batch is in at once, whether the queue is closed or others wait.
  if (!status && is_many && weir_kernel_input(ctx, first)->dims[0] == 0) {
    weir_done_call(done, NULL);
    return;
  }
  enqueue_t* e = status ? NULL : weir_calloc(1, sizeof(*e));
  if (e) e->parts = weir_calloc((size_t)queue->component_count, sizeof(*e->parts));
  if (!status && (!e || !e->parts)) status = weir_out_of_memory();
  if (status) {
    weir_free(e);
    weir_done_call(done, status);
    return;
  }
  for (int i = 0; i < queue->component_count; ++i)
    e->parts[i] = weir_kernel_take_input(ctx, first + i);
  e->is_many = is_many;
  e->count = is_many ? e->parts[0]->dims[0] : 1;
  e->base.destroy = enqueue_destroy;
  e->base.cancel_message = "Enqueue operation was cancelled";
  weir_waiter_submit(&queue->enqueuers, &e->base, &queue->base, ctx, done);
}

void weir_queue_dequeue(weir_queue_t* queue, weir_kernel_ctx_t* ctx, int64_t count, bool is_up_to,
                        weir_done_t done) {
  weir_status_t* status = check_outputs(queue, ctx, count);
  dequeue_t* d = status ? NULL : weir_calloc(1, sizeof(*d));
  if (d) {
    d->is_batch = count >= 0;
    d->count = d->is_batch ? count : 1;
    d->got = weir_calloc((size_t)d->count, sizeof(*d->got));
  }
  if (!status && (!d || !d->got)) status = weir_out_of_memory();
  if (status) {
    weir_free(d);
    weir_done_call(done, status);
    return;
  }
  d->is_up_to = is_up_to;
  d->base.finish = dequeue_finish;
  d->base.abandon = dequeue_abandon;
  d->base.destroy = dequeue_destroy;
  d->base.cancel_message = "Dequeue operation was cancelled";
  weir_waiter_submit(&queue->dequeuers, &d->base, &queue->base, ctx, done);
}

void weir_queue_shut(weir_queue_t* queue, weir_waiters_t* completed) {
  weir_mutex_lock(&queue->mu);
  queue->is_closed = true;
  while (queue->enqueuers.head) {
    weir_waiter_complete(queue->enqueuers.head,
                         WEIR_STATUS(CANCELLED, "Enqueue operation was cancelled"), completed);
  }
  queue_flush(&queue->base, completed);
  weir_mutex_unlock(&queue->mu);
}

static void shut_and_answer(weir_queue_t* queue) {
  weir_waiters_t completed = {0};
  weir_queue_shut(queue, &completed);
  weir_waiters_answer(&completed);
}

void weir_queue_close(weir_queue_t* queue, weir_kernel_ctx_t* ctx, bool cancels_pending,
                      weir_done_t done) {
  if (cancels_pending) {
    shut_and_answer(queue);
    weir_done_call(done, NULL);
    return;
  }
  // Takes its turn after the enqueues that wait already.
  enqueue_t* e = weir_calloc(1, sizeof(*e));
  if (!e) {
    weir_done_call(done, weir_out_of_memory());
    return;
  }
  e->is_close = true;
  e->base.destroy = enqueue_destroy;
  e->base.cancel_message = "Close operation was cancelled";
  weir_waiter_submit(&queue->enqueuers, &e->base, &queue->base, ctx, done);
}

weir_status_t* weir_queue_put(weir_queue_t* queue, weir_tensor_t** take_parts,
                              weir_waiters_t* completed) {
  const size_t count = (size_t)queue->component_count;
  weir_queue_item_t item = {.parts = weir_alloc_array(count, sizeof(*item.parts))};
  if (!item.parts) {
    for (size_t i = 0; i < count; ++i) weir_tensor_release(take_parts[i]);
    return weir_out_of_memory();
  }
  memcpy(item.parts, take_parts, count * sizeof(*item.parts));
  weir_mutex_lock(&queue->mu);
  bool is_in = weir_queue_items_push(&queue->items, item);
  if (is_in) queue_flush(&queue->base, completed);
  weir_mutex_unlock(&queue->mu);
  if (is_in) return NULL;
  weir_queue_item_free(&item, queue->component_count);
  return weir_out_of_memory();
}

int64_t weir_queue_size(weir_queue_t* queue) {
  weir_mutex_lock(&queue->mu);
  int64_t size = (int64_t)queue->items.size;
  weir_mutex_unlock(&queue->mu);
  return size;
}

bool weir_queue_is_closed(weir_queue_t* queue) {
  weir_mutex_lock(&queue->mu);
  bool is_closed = queue->is_closed;
  weir_mutex_unlock(&queue->mu);
  return is_closed;
}

// ---- life ----
static void queue_destroy(weir_resource_t* resource) {
  weir_queue_t* queue = (weir_queue_t*)resource;
  weir_queue_items_free(&queue->items, queue->component_count);
  for (int i = 0; queue->shapes && i < queue->component_count; ++i) weir_free(queue->shapes[i]);
  weir_free(queue->shapes);
  weir_free(queue->types);
  weir_free(queue->name);
  weir_mutex_destroy(&queue->mu);
  weir_free(queue);
}

static void queue_close(weir_resource_t* resource) { shut_and_answer((weir_queue_t*)resource); }

static void queue_describe(weir_resource_t* resource, weir_strbuf_t* out) {
  weir_queue_t* queue = (weir_queue_t*)resource;
  weir_mutex_lock(&queue->mu);
  weir_strbuf_printf(out, "%s of %zu tuples, capacity %lld%s", policy_names[queue->policy],
                     queue->items.size, (long long)queue->capacity,
                     queue->is_closed ? ", closed" : "");
  weir_mutex_unlock(&queue->mu);
}

const weir_resource_type_t weir_queue_type = {.name = WEIR_QUEUE_TYPE_NAME,
                                              .destroy = queue_destroy,
                                              .close = queue_close,
                                              .describe = queue_describe};

static bool copy_config(weir_queue_t* queue, const weir_queue_config_t* config) {
  const size_t count = (size_t)config->component_count;
  queue->name = weir_strdup(config->name);
  queue->types = weir_alloc_array(count, sizeof(*queue->types));
  if (!queue->name || !queue->types) return false;
  memcpy(queue->types, config->types, count * sizeof(*queue->types));
  if (!config->shapes) return true;
  queue->shapes = weir_calloc(count, sizeof(*queue->shapes));
  for (size_t i = 0; queue->shapes && i < count; ++i) {
    queue->shapes[i] = weir_shape_clone(config->shapes[i]);
    if (!queue->shapes[i]) return false;
  }
  return queue->shapes != NULL;
}

weir_status_t* weir_queue_create(const weir_queue_config_t* config, weir_queue_t** out_queue) {
  weir_queue_t* queue = weir_calloc(1, sizeof(*queue));
  if (!queue) return weir_out_of_memory();
  weir_resource_init(&queue->base, &weir_queue_type);
  weir_mutex_init(&queue->mu);
  weir_waiters_init(&queue->enqueuers, &queue->mu, queue_flush);
  weir_waiters_init(&queue->dequeuers, &queue->mu, queue_flush);
  queue->policy = config->policy;
  queue->component_count = config->component_count;
  queue->capacity = config->capacity < 0 ? -1 : config->capacity;
  queue->min_after_dequeue = config->policy == WEIR_QUEUE_SHUFFLE ? config->min_after_dequeue : 0;
  queue->seed = config->seed;
  queue->seed2 = config->seed2;
  weir_queue_items_init(&queue->items, config->policy, config->seed, config->seed2);
  if (!copy_config(queue, config)) {
    weir_resource_release(&queue->base);
    return weir_out_of_memory();
  }
  *out_queue = queue;
  return NULL;
}

// ---- components ----
weir_status_t* weir_component_shape(const weir_shape_t* attr, const weir_shape_t** out_shape) {
  *out_shape = attr->rank < 0 ? &weir_shape_scalar : attr;
  if (weir_shape_is_full(*out_shape)) return NULL;
  weir_strbuf_t text = {0};
  weir_shape_append(attr, &text);
  weir_status_t* status = WEIR_STATUS(INVALID_ARGUMENT, "Shape %.*s is not fully defined",
                                      WEIR_VIEW_ARG(weir_strbuf_view(&text)));
  weir_strbuf_free(&text);
  return status;
}

static void append_components(const weir_components_t* c, bool are_types, weir_strbuf_t* out) {
  for (int i = 0; i < c->count && (are_types || c->shapes); ++i) {
    if (i > 0) weir_strbuf_puts(out, ", ");
    if (are_types) {
      weir_strbuf_puts(out, weir_dtype_name(c->types[i]));
    } else {
      weir_shape_append(c->shapes[i], out);
    }
  }
}

static weir_status_t* components_differ(const char* what, const char* name, bool are_types,
                                        const weir_components_t* has,
                                        const weir_components_t* wanted) {
  weir_strbuf_t a = {0}, b = {0};
  append_components(has, are_types, &a);
  append_components(wanted, are_types, &b);
  const char* open = are_types ? "" : "[";
  const char* close = are_types ? "" : "]";
  const char* noun = are_types ? "types" : "shapes";
  weir_status_t* status = WEIR_STATUS(
      INVALID_ARGUMENT,
      "Shared %s '%s' has component %s %s%.*s%s but requested component %s were %s%.*s%s", what,
      name, noun, open, WEIR_VIEW_ARG(weir_strbuf_view(&a)), close, noun, open,
      WEIR_VIEW_ARG(weir_strbuf_view(&b)), close);
  weir_strbuf_free(&a);
  weir_strbuf_free(&b);
  return status;
}

static bool shapes_match(const weir_shape_t* a, const weir_shape_t* b, bool is_partial) {
  if (!is_partial) return weir_shape_equal(a, b);
  if (a->rank < 0 || b->rank < 0) return true;
  bool match = a->rank == b->rank;
  for (int k = 0; match && k < a->rank; ++k)
    match = a->dims[k] < 0 || b->dims[k] < 0 || a->dims[k] == b->dims[k];
  return match;
}

weir_status_t* weir_components_match(const char* what, const char* name,
                                     const weir_components_t* has, const weir_components_t* wanted,
                                     bool is_partial) {
  bool same = has->count == wanted->count &&
              memcmp(has->types, wanted->types, (size_t)has->count * sizeof(*has->types)) == 0;
  if (!same) return components_differ(what, name, true, has, wanted);
  same = (has->shapes != NULL) == (wanted->shapes != NULL);
  for (int i = 0; same && has->shapes && i < has->count; ++i)
    same = shapes_match(has->shapes[i], wanted->shapes[i], is_partial);
  return same ? NULL : components_differ(what, name, false, has, wanted);
}

static weir_status_t* shuffles_match(const weir_queue_t* queue, const weir_queue_config_t* config) {
  if (queue->min_after_dequeue != config->min_after_dequeue) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "Shared queue '%s' has min_after_dequeue %lld but requested min_after_dequeue was %lld.",
        queue->name, (long long)queue->min_after_dequeue, (long long)config->min_after_dequeue);
  }
  bool is_seeded = config->seed != 0 || config->seed2 != 0;
  if (is_seeded && (queue->seed != config->seed || queue->seed2 != config->seed2)) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Shared queue '%s' has random seeds (%lld, %lld) but requested seeds are "
                       "(%lld, %lld).",
                       queue->name, (long long)queue->seed, (long long)queue->seed2,
                       (long long)config->seed, (long long)config->seed2);
  }
  return NULL;
}

weir_status_t* weir_queue_matches(weir_queue_t* queue, const weir_queue_config_t* config) {
  int64_t capacity = config->capacity < 0 ? -1 : config->capacity;
  if (queue->policy != config->policy) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Shared queue '%s' is another: Expected %s, found %s",
                       queue->name, policy_names[queue->policy], policy_names[config->policy]);
  }
  if (queue->capacity != capacity) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Shared queue '%s' has capacity %lld but requested capacity was %lld",
                       queue->name, (long long)queue->capacity, (long long)capacity);
  }
  if (queue->policy == WEIR_QUEUE_SHUFFLE) WEIR_TRY(shuffles_match(queue, config));
  const weir_components_t has = {queue->component_count, queue->types,
                                 (const weir_shape_t* const*)queue->shapes};
  const weir_components_t wanted = {config->component_count, config->types, config->shapes};
  return weir_components_match("queue", queue->name, &has, &wanted,
                               queue->policy == WEIR_QUEUE_PADDING);
}

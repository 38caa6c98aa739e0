// staging_map.c — Tuples under keys, on their way from one step to another. Parts may come and go
// one by one; a tuple is there once all its parts came.
//
// As in TensorFlow a capacity holds for tuples that come whole, and a limit of memory for all that
// is put; but a put counts by its last tensor alone, while a get, and a peek too, takes off all it
// got. The count is unsigned and wraps: a program that waits there waits here.
#include "ops/queue/staging_map.h"

// Tuples by ascending key.
typedef struct tuples_t {
  tuple_t** items;
  size_t count, capacity;
} tuples_t;

struct staging_map_t {
  weir_resource_t base;
  weir_mutex_t mu;
  int64_t capacity, memory_limit;  // immutable, as |part_count|
  int part_count;
  tuples_t whole;  // guarded by mu, as all below
  tuples_t incomplete;
  uint64_t bytes;
  weir_waiters_t requests;
};

// ---- tuples by key ----

// The place of |key|, or where it would be.
static size_t place_of(const tuples_t* t, int64_t key) {
  size_t begin = 0, end = t->count;
  while (begin < end) {
    const size_t middle = begin + (end - begin) / 2;
    if (t->items[middle]->key < key) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

static bool has_key(const tuples_t* t, int64_t key, size_t* out_place) {
  *out_place = place_of(t, key);
  return *out_place < t->count && t->items[*out_place]->key == key;
}

static weir_status_t* insert(tuples_t* t, size_t place, tuple_t* tuple) {
  if (!WEIR_GROW(t->items, t->capacity, t->count + 1)) return weir_out_of_memory();
  memmove(t->items + place + 1, t->items + place, (t->count - place) * sizeof(*t->items));
  t->items[place] = tuple;
  ++t->count;
  return NULL;
}

static tuple_t* take_out(tuples_t* t, size_t place) {
  tuple_t* tuple = t->items[place];
  --t->count;
  memmove(t->items + place, t->items + place + 1, (t->count - place) * sizeof(*t->items));
  return tuple;
}

static void drop_tuples(tuples_t* t) {
  for (size_t i = 0; i < t->count; ++i) tuple_destroy(t->items[i]);
  weir_free(t->items);
  *t = (tuples_t){0};
}

// ---- indices ----

static int32_t index_at(const map_request_t* r, int64_t i) {
  return WEIR_TENSOR_DATA(r->indices, int32_t)[i];
}

static weir_status_t* check_index(int64_t key, int32_t index, int count) {
  if (index >= 0 && index < count) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Index '%llu' for key '%lld' was out of bounds '%d'.",
                     (unsigned long long)(int64_t)index, (long long)key, count);
}

// ---- putting; |mu| held ----

// Consumes |take_tuple|. One whose key is there already is dropped.
static weir_status_t* put_whole(staging_map_t* m, int64_t key, tuple_t* take_tuple) {
  size_t place = 0;
  weir_status_t* status = NULL;
  take_tuple->key = key;
  if (!has_key(&m->whole, key, &place)) status = insert(&m->whole, place, take_tuple);
  if (status || m->whole.items[place] != take_tuple) tuple_destroy(take_tuple);
  return status;
}

static weir_status_t* fill_parts(const map_request_t* r, tuple_t* to) {
  for (int64_t i = 0; i < r->indices->count; ++i) {
    const int32_t index = index_at(r, i);
    WEIR_TRY(check_index(r->key, index, to->count));
    if (i >= r->tuple->count) {
      return WEIR_STATUS(INVALID_ARGUMENT, "There are %lld indices for %d values",
                         (long long)r->indices->count, r->tuple->count);
    }
    if (to->parts[index]) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "The tensor for index '%d' for key '%lld' was already initialized '%d'.",
                         index, (long long)r->key, to->count);
    }
    to->parts[index] = r->tuple->parts[i];
    r->tuple->parts[i] = NULL;
  }
  return NULL;
}

static bool is_whole(const tuple_t* tuple) {
  for (int i = 0; i < tuple->count; ++i) {
    if (!tuple->parts[i]) return false;
  }
  return true;
}

static weir_status_t* put_parts(staging_map_t* m, map_request_t* r, uint64_t size) {
  size_t place = 0;
  if (has_key(&m->incomplete, r->key, &place)) {
    WEIR_TRY(fill_parts(r, m->incomplete.items[place]));
    m->bytes += size;
    if (!is_whole(m->incomplete.items[place])) return NULL;
    return put_whole(m, r->key, take_out(&m->incomplete, place));
  }
  tuple_t* fresh = tuple_create(m->part_count);
  if (!fresh) return weir_out_of_memory();
  fresh->key = r->key;
  weir_status_t* status = fill_parts(r, fresh);
  if (!status) status = insert(&m->incomplete, place, fresh);
  if (status) {
    tuple_destroy(fresh);
    return status;
  }
  m->bytes += size;
  return NULL;
}

static bool serve_put(staging_map_t* m, map_request_t* r, weir_status_t** out_status) {
  const uint64_t size = (uint64_t)r->tuple->last_size;
  const bool is_whole_put = r->indices->count == m->part_count;
  if (m->memory_limit > 0 && m->bytes + size > (uint64_t)m->memory_limit) return false;
  if (!is_whole_put) {
    *out_status = put_parts(m, r, size);
    return true;
  }
  if (m->capacity > 0 && (int64_t)m->whole.count >= m->capacity) return false;
  tuple_t* tuple = r->tuple;
  r->tuple = NULL;
  m->bytes += size;
  *out_status = put_whole(m, r->key, tuple);
  return true;
}

// ---- getting; |mu| held ----

static weir_status_t* get_parts(staging_map_t* m, map_request_t* r, tuple_t* from) {
  r->tuple = tuple_create((int)r->indices->count);
  if (!r->tuple) return weir_out_of_memory();
  for (int64_t i = 0; i < r->indices->count; ++i) {
    const int32_t index = index_at(r, i);
    WEIR_TRY(check_index(r->key, index, from->count));
    weir_tensor_t* part = from->parts[index];
    if (!part) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Tensor at index '%d' for key '%lld' has already been removed.", index,
                         (long long)r->key);
    }
    if (r->kind == MAP_PEEK) {
      r->tuple->parts[i] = weir_tensor_retain(part);
      continue;
    }
    r->tuple->parts[i] = part;
    from->parts[index] = NULL;
  }
  m->bytes -= (uint64_t)tuple_size(r->tuple);
  return NULL;
}

static bool is_used_up(const tuple_t* tuple) {
  for (int i = 0; i < tuple->count; ++i) {
    if (tuple->parts[i]) return false;
  }
  return true;
}

static bool serve_get(staging_map_t* m, map_request_t* r, weir_status_t** out_status) {
  size_t place = 0;
  if (r->kind == MAP_GET_ANY) {
    if (m->whole.count == 0) return false;
    r->key = m->whole.items[0]->key;
  } else if (!has_key(&m->whole, r->key, &place)) {
    return false;
  }
  *out_status = get_parts(m, r, m->whole.items[place]);
  if (!*out_status && is_used_up(m->whole.items[place])) {
    tuple_destroy(take_out(&m->whole, place));
  }
  return true;
}

static void flush(weir_resource_t* owner, weir_waiters_t* completed) {
  staging_map_t* m = (staging_map_t*)owner;
  for (bool is_changed = true; is_changed;) {
    is_changed = false;
    for (weir_waiter_t *w = m->requests.head, *next; w; w = next) {
      map_request_t* r = (map_request_t*)w;
      weir_status_t* status = NULL;
      next = w->next;
      if (!(r->kind == MAP_PUT ? serve_put : serve_get)(m, r, &status)) continue;
      is_changed |= r->kind != MAP_PEEK;
      weir_waiter_complete(w, status, completed);
    }
  }
}

static weir_status_t* request_finish(weir_waiter_t* waiter) {
  map_request_t* r = (map_request_t*)waiter;
  weir_kernel_ctx_t* ctx = waiter->ctx;
  const int first = r->kind == MAP_GET_ANY ? 1 : 0;
  if (r->kind == MAP_PUT) return NULL;
  if (r->tuple->count > ctx->output_count - first) {
    return WEIR_STATUS(INVALID_ARGUMENT, "output/input size mismatch: %d vs. %d", r->tuple->count,
                       ctx->output_count - first);
  }
  if (first) {
    weir_tensor_t* key = NULL;
    WEIR_TRY(weir_kernel_output(ctx, 0, 0, NULL, &key));
    WEIR_TENSOR_DATA(key, int64_t)[0] = r->key;
  }
  WEIR_TRY(tuple_put_out(ctx, first, r->tuple));
  if (r->tuple->count == ctx->output_count - first) return NULL;
  return WEIR_STATUS(INTERNAL, "Missing %d-th output", r->tuple->count + first);
}

void weir_staging_map_request_deinit(map_request_t* r) {
  tuple_destroy(r->tuple);
  weir_tensor_release(r->indices);
}

static void request_destroy(weir_waiter_t* waiter) {
  weir_staging_map_request_deinit((map_request_t*)waiter);
}

// ---- life ----

static void map_destroy(weir_resource_t* resource) {
  staging_map_t* m = (staging_map_t*)resource;
  drop_tuples(&m->whole);
  drop_tuples(&m->incomplete);
  weir_mutex_destroy(&m->mu);
  weir_free(m);
}

static void map_close(weir_resource_t* resource) {
  staging_map_t* m = (staging_map_t*)resource;
  weir_waiters_t completed = {0};
  weir_mutex_lock(&m->mu);
  while (m->requests.head) {
    weir_waiter_complete(m->requests.head, WEIR_STATUS(CANCELLED, "The staging area is gone"),
                         &completed);
  }
  weir_mutex_unlock(&m->mu);
  weir_waiters_answer(&completed);
}

const weir_resource_type_t weir_staging_map_type = {
    .name = "StagingMap", .destroy = map_destroy, .close = map_close};

weir_status_t* weir_staging_map_create(void* arg, weir_resource_t** out_resource) {
  const staging_state_t* s = arg;
  staging_map_t* m = weir_calloc(1, sizeof(*m));
  if (!m) return weir_out_of_memory();
  weir_resource_init(&m->base, &weir_staging_map_type);
  weir_mutex_init(&m->mu);
  weir_waiters_init(&m->requests, &m->mu, flush);
  m->capacity = s->capacity;
  m->memory_limit = s->memory_limit;
  m->part_count = s->part_count;
  *out_resource = &m->base;
  return NULL;
}

// ---- what kernels call ----

void weir_staging_map_submit(staging_map_t* m, map_request_t* take_request, weir_kernel_ctx_t* ctx,
                             weir_done_t done) {
  take_request->base = (weir_waiter_t){.finish = request_finish,
                                       .destroy = request_destroy,
                                       .cancel_message = "Staging operation was cancelled"};
  weir_waiter_submit(&m->requests, &take_request->base, &m->base, ctx, done);
}

int64_t weir_staging_map_size(staging_map_t* m, bool of_incomplete) {
  weir_mutex_lock(&m->mu);
  const size_t count = of_incomplete ? m->incomplete.count : m->whole.count;
  weir_mutex_unlock(&m->mu);
  return (int64_t)count;
}

void weir_staging_map_clear(staging_map_t* m) {
  weir_waiters_t completed = {0};
  weir_mutex_lock(&m->mu);
  drop_tuples(&m->whole);
  drop_tuples(&m->incomplete);
  m->bytes = 0;
  flush(&m->base, &completed);
  weir_mutex_unlock(&m->mu);
  weir_waiters_answer(&completed);
}

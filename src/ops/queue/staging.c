// staging.c — Stage, Unstage, StagePeek, StageSize, StageClear: tuples on their way from one step
// to another, first in, first out. Whoever has to wait holds no thread, and ends with its step.
#include "ops/queue/staging.h"

typedef struct area_t {
  weir_resource_t base;
  weir_mutex_t mu;
  int64_t capacity, memory_limit;  // immutable
  tuple_t* head;                   // guarded by mu, as all below
  tuple_t* tail;
  int64_t count, bytes;
  weir_waiters_t requests;
} area_t;

typedef enum request_kind_t { REQUEST_PUT, REQUEST_GET, REQUEST_PEEK } request_kind_t;

typedef struct request_t {
  weir_waiter_t base;
  request_kind_t kind;
  int64_t index;   // PEEK
  tuple_t* tuple;  // PUT: what to put; others: what was got
} request_t;

// ---- serving; |mu| held ----

static bool has_room(const area_t* a, int64_t size) {
  return (a->capacity == 0 || a->count < a->capacity) &&
         (a->memory_limit == 0 || a->bytes + size <= a->memory_limit);
}

static void put_last(area_t* a, tuple_t* tuple) {
  if (a->tail) {
    a->tail->next = tuple;
  } else {
    a->head = tuple;
  }
  a->tail = tuple;
  a->bytes += tuple->size;
  ++a->count;
}

static tuple_t* take_first(area_t* a) {
  tuple_t* tuple = a->head;
  a->head = tuple->next;
  if (!a->head) a->tail = NULL;
  tuple->next = NULL;
  a->bytes -= tuple->size;
  --a->count;
  return tuple;
}

static tuple_t* copy_at(const area_t* a, int64_t index) {
  const tuple_t* at = a->head;
  while (index-- > 0) at = at->next;
  tuple_t* copy = tuple_create(at->count);
  for (int i = 0; copy && i < at->count; ++i) copy->parts[i] = weir_tensor_retain(at->parts[i]);
  return copy;
}

// False: it has to wait.
static bool serve(area_t* a, request_t* r, weir_status_t** out_status) {
  *out_status = NULL;
  switch (r->kind) {
    case REQUEST_PUT:
      if (!has_room(a, r->tuple->size)) return false;
      put_last(a, r->tuple);
      r->tuple = NULL;
      return true;
    case REQUEST_GET:
      if (a->count == 0) return false;
      r->tuple = take_first(a);
      return true;
    default:
      if (r->index < 0 || r->index >= a->count) return false;
      r->tuple = copy_at(a, r->index);
      if (!r->tuple) *out_status = weir_out_of_memory();
      return true;
  }
}

static void flush(weir_resource_t* owner, weir_waiters_t* completed) {
  area_t* a = (area_t*)owner;
  for (bool is_changed = true; is_changed;) {
    is_changed = false;
    for (weir_waiter_t *w = a->requests.head, *next; w; w = next) {
      weir_status_t* status = NULL;
      next = w->next;
      if (!serve(a, (request_t*)w, &status)) continue;
      is_changed |= ((request_t*)w)->kind != REQUEST_PEEK;
      weir_waiter_complete(w, status, completed);
    }
  }
}

static weir_status_t* request_finish(weir_waiter_t* waiter) {
  request_t* r = (request_t*)waiter;
  if (r->kind == REQUEST_PUT) return NULL;
  if (r->tuple->count != waiter->ctx->output_count) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Mismatch stage/unstage: %d vs. %d", r->tuple->count,
                       waiter->ctx->output_count);
  }
  return tuple_put_out(waiter->ctx, 0, r->tuple);
}

static void request_destroy(weir_waiter_t* waiter) { tuple_destroy(((request_t*)waiter)->tuple); }

// ---- life ----

static void drop_all(area_t* a) {
  while (a->count > 0) tuple_destroy(take_first(a));
}

static void area_destroy(weir_resource_t* resource) {
  area_t* a = (area_t*)resource;
  drop_all(a);
  weir_mutex_destroy(&a->mu);
  weir_free(a);
}

static void area_close(weir_resource_t* resource) {
  area_t* a = (area_t*)resource;
  weir_waiters_t completed = {0};
  weir_mutex_lock(&a->mu);
  while (a->requests.head) {
    weir_waiter_complete(a->requests.head, WEIR_STATUS(CANCELLED, "The staging area is gone"),
                         &completed);
  }
  weir_mutex_unlock(&a->mu);
  weir_waiters_answer(&completed);
}

static const weir_resource_type_t area_type = {
    .name = "StagingArea", .destroy = area_destroy, .close = area_close};

static weir_status_t* area_create(void* arg, weir_resource_t** out_resource) {
  const staging_state_t* s = arg;
  area_t* a = weir_calloc(1, sizeof(*a));
  if (!a) return weir_out_of_memory();
  weir_resource_init(&a->base, &area_type);
  weir_mutex_init(&a->mu);
  weir_waiters_init(&a->requests, &a->mu, flush);
  a->capacity = s->capacity;
  a->memory_limit = s->memory_limit;
  *out_resource = &a->base;
  return NULL;
}

static weir_status_t* find_area(weir_kernel_ctx_t* ctx, area_t** out_area) {
  staging_state_t* s = ctx->state;
  weir_resource_t* resource = NULL;
  WEIR_TRY(weir_shared_handle_create(ctx, &s->handle, &area_type, area_create, s, &resource));
  *out_area = (area_t*)resource;
  return NULL;
}

// ---- kernels ----

static weir_status_t* make_request(weir_kernel_ctx_t* ctx, area_t* a, request_kind_t kind,
                                   request_t* r) {
  *r = (request_t){.base = {.finish = request_finish,
                            .destroy = request_destroy,
                            .cancel_message = "Staging operation was cancelled"},
                   .kind = kind};
  if (kind == REQUEST_PUT) {
    r->tuple = tuple_of_inputs(ctx, 0);
    if (!r->tuple) return weir_out_of_memory();
    return check_limit(r->tuple->size, a->memory_limit);
  }
  if (kind != REQUEST_PEEK) return NULL;
  const weir_tensor_t* index = weir_kernel_input(ctx, 0);
  if (index->rank != 0) return WEIR_STATUS(INVALID_ARGUMENT, "index must be scalar");
  r->index = weir_tensor_int_at(index, 0);
  return NULL;
}

static void submit(weir_kernel_ctx_t* ctx, weir_done_t done, request_kind_t kind) {
  area_t* a = NULL;
  request_t* r = weir_calloc(1, sizeof(*r));
  weir_status_t* status = r ? find_area(ctx, &a) : weir_out_of_memory();
  if (!status) status = make_request(ctx, a, kind, r);
  if (status) {
    if (r) tuple_destroy(r->tuple);
    weir_free(r);
    if (a) weir_resource_release(&a->base);
    weir_done_call(done, status);
    return;
  }
  weir_waiter_submit(&a->requests, &r->base, &a->base, ctx, done);
  weir_resource_release(&a->base);
}

static void stage_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) { submit(ctx, done, REQUEST_PUT); }
static void unstage_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  submit(ctx, done, REQUEST_GET);
}
static void peek_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) { submit(ctx, done, REQUEST_PEEK); }

static weir_status_t* size_cpu(weir_kernel_ctx_t* ctx) {
  area_t* a = NULL;
  WEIR_TRY(find_area(ctx, &a));
  weir_mutex_lock(&a->mu);
  const int64_t count = a->count;
  weir_mutex_unlock(&a->mu);
  weir_resource_release(&a->base);
  return weir_kernel_output_int(ctx, 0, count);
}

static weir_status_t* clear_cpu(weir_kernel_ctx_t* ctx) {
  area_t* a = NULL;
  weir_waiters_t completed = {0};
  WEIR_TRY(find_area(ctx, &a));
  weir_mutex_lock(&a->mu);
  drop_all(a);
  flush(&a->base, &completed);
  weir_mutex_unlock(&a->mu);
  weir_waiters_answer(&completed);
  weir_resource_release(&a->base);
  return NULL;
}

const weir_op_module_t weir_ops_queue_staging = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Stage",
         .attrs = STAGING_ATTRS "dtypes: list(type) >= 1" STAGING_NAMES,
         .inputs = "values: dtypes",
         .flags = WEIR_OP_STATEFUL,
         .summary = "Puts a tuple into a staging area, waiting for room",
         .infer_shape = weir_shape_fn_none,
         .kernels = STAGING_KERNEL(.compute_async = stage_cpu)},
        {.name = "Unstage",
         .attrs = STAGING_ATTRS "dtypes: list(type) >= 1" STAGING_NAMES,
         .outputs = "values: dtypes",
         .flags = WEIR_OP_STATEFUL,
         .summary = "Takes the first tuple out of a staging area, waiting for one",
         .infer_shape = weir_shape_fn_unknown,
         .kernels = STAGING_KERNEL(.compute_async = unstage_cpu)},
        {.name = "StagePeek",
         .attrs = STAGING_ATTRS "dtypes: list(type) >= 1" STAGING_NAMES,
         .inputs = "index: int32",
         .outputs = "values: dtypes",
         .flags = WEIR_OP_STATEFUL,
         .summary = "A tuple of a staging area by its place, waiting for it",
         .infer_shape = weir_shape_fn_unknown,
         .kernels = STAGING_KERNEL(.compute_async = peek_cpu, .host_inputs = "index")},
        {.name = "StageSize",
         .attrs = STAGING_ATTRS "dtypes: list(type)" STAGING_NAMES,
         .outputs = "size: int32",
         .flags = WEIR_OP_STATEFUL,
         .summary = "The number of tuples in a staging area",
         .infer_shape = weir_shape_fn_scalar,
         .kernels = STAGING_KERNEL(.compute = size_cpu)},
        {.name = "StageClear",
         .attrs = STAGING_ATTRS "dtypes: list(type)" STAGING_NAMES,
         .flags = WEIR_OP_STATEFUL,
         .summary = "Empties a staging area",
         .infer_shape = weir_shape_fn_none,
         .kernels = STAGING_KERNEL(.compute = clear_cpu)},
        {0}}};

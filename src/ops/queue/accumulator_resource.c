// accumulator_resource.c — Counting, staleness and waiting of conditional accumulators.
#include "ops/queue/accumulator_resource.h"

typedef struct take_t {
  weir_waiter_t base;
  int64_t required;
  void* sum;  // moved out of the accumulator
  int64_t count;
} take_t;

static void flush(weir_resource_t* owner, weir_waiters_t* completed) {
  weir_accumulator_t* a = (weir_accumulator_t*)owner;
  take_t* take = (take_t*)a->takers.head;
  if (!take || a->count < take->required) return;
  take->sum = a->sum;
  take->count = a->count;
  a->sum = NULL;
  a->count = 0;
  ++a->global_step;
  weir_waiter_complete(&take->base, NULL, completed);
}

static weir_status_t* take_finish(weir_waiter_t* waiter) {
  take_t* take = (take_t*)waiter;
  const weir_accumulator_t* a = (const weir_accumulator_t*)waiter->owner;
  return a->vtable->emit(a, waiter->ctx, take->sum, take->count);
}

static void take_destroy(weir_waiter_t* waiter) {
  take_t* take = (take_t*)waiter;
  const weir_accumulator_t* a = (const weir_accumulator_t*)waiter->owner;
  if (take->sum) a->vtable->free_sum(take->sum);
}

// ---- life ----
static void destroy(weir_resource_t* resource) {
  weir_accumulator_t* a = (weir_accumulator_t*)resource;
  if (a->sum) a->vtable->free_sum(a->sum);
  weir_mutex_destroy(&a->mu);
  weir_free(a->name);
  weir_free(a->shape);
  weir_free(a);
}

static void close_takers(weir_resource_t* resource) {
  weir_accumulator_t* a = (weir_accumulator_t*)resource;
  weir_waiters_t completed = {0};
  weir_mutex_lock(&a->mu);
  while (a->takers.head) {
    weir_waiter_complete(a->takers.head,
                         WEIR_STATUS(CANCELLED, "Accumulator '%s' was removed", a->name),
                         &completed);
  }
  weir_mutex_unlock(&a->mu);
  weir_waiters_answer(&completed);
}

static void describe(weir_resource_t* resource, weir_strbuf_t* out) {
  weir_accumulator_t* a = (weir_accumulator_t*)resource;
  weir_mutex_lock(&a->mu);
  weir_strbuf_printf(out, "accumulator of %s, %lld gradients, step %lld", weir_dtype_name(a->dtype),
                     (long long)a->count, (long long)a->global_step);
  weir_mutex_unlock(&a->mu);
}

const weir_resource_type_t weir_accumulator_type = {.name = WEIR_ACCUMULATOR_TYPE_NAME,
                                                    .destroy = destroy,
                                                    .close = close_takers,
                                                    .describe = describe};

static weir_status_t* create(void* arg, weir_resource_t** out_resource) {
  const weir_accumulator_state_t* s = arg;
  weir_accumulator_t* a = weir_calloc(1, sizeof(*a));
  if (!a) return weir_out_of_memory();
  weir_resource_init(&a->base, &weir_accumulator_type);
  weir_mutex_init(&a->mu);
  weir_waiters_init(&a->takers, &a->mu, flush);
  a->vtable = s->vtable;
  a->dtype = s->dtype;
  a->is_mean = s->is_mean;
  a->name = weir_strdup(s->handle.name);
  a->shape = weir_shape_clone(s->shape);
  if (!a->name || !a->shape) {
    weir_resource_release(&a->base);
    return weir_out_of_memory();
  }
  *out_resource = &a->base;
  return NULL;
}

weir_status_t* weir_accumulator_init(const weir_kernel_init_t* init,
                                     const weir_accumulator_vtable_t* vtable, void* state) {
  weir_accumulator_state_t* s = state;
  weir_attrs_t attrs = init->node->attrs;
  s->vtable = vtable;
  s->dtype = weir_attrs_type(attrs, "dtype");
  s->shape = weir_attrs_shape(attrs, "shape");
  s->is_mean = weir_view_is(weir_attrs_string(attrs, "reduction_type"), "MEAN");
  return weir_shared_handle_init(init, WEIR_ACCUMULATOR_TYPE_NAME, &s->handle);
}

void weir_accumulator_deinit(void* state) {
  weir_shared_handle_deinit(&((weir_accumulator_state_t*)state)->handle);
}

// Whether there is a shape that both allow.
static bool is_compatible(const weir_shape_t* a, const weir_shape_t* b) {
  weir_arena_t scratch = {0};
  const weir_shape_t* both = NULL;
  bool is_one = weir_shape_merge(&scratch, a, b, &both);
  weir_arena_free(&scratch);
  return is_one;
}

weir_status_t* weir_accumulator_cpu(weir_kernel_ctx_t* ctx) {
  weir_accumulator_state_t* s = ctx->state;
  weir_resource_t* resource = NULL;
  WEIR_TRY(
      weir_shared_handle_create(ctx, &s->handle, &weir_accumulator_type, create, s, &resource));
  weir_accumulator_t* a = (weir_accumulator_t*)resource;
  weir_status_t* status = NULL;
  if (a->vtable != s->vtable || a->dtype != s->dtype || !is_compatible(a->shape, s->shape)) {
    status =
        WEIR_STATUS(INVALID_ARGUMENT,
                    "Shared conditional accumulator '%s' has another kind, type or shape", a->name);
  } else {
    weir_shared_handle_set(ctx, &s->handle);
  }
  weir_resource_release(resource);
  return status;
}

// ---- access ----
static weir_status_t* scalar_argument(const weir_kernel_ctx_t* ctx, const char* name,
                                      int64_t* out_value) {
  const weir_tensor_t* t = weir_kernel_input(ctx, 1);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (t->rank == 0) return weir_kernel_int(ctx, 1, out_value);
  return WEIR_STATUS(INVALID_ARGUMENT, "Argument %s must be scalar, but had bad shape %s", name,
                     weir_tensor_shape_text(t, text));
}

weir_status_t* weir_accumulator_apply_cpu(weir_kernel_ctx_t* ctx) {
  weir_resource_t* resource = NULL;
  weir_waiters_t completed = {0};
  int64_t local_step = 0;
  WEIR_TRY(scalar_argument(ctx, "local_step", &local_step));
  WEIR_TRY(weir_shared_handle_resource(ctx, 0, &weir_accumulator_type, &resource));
  weir_accumulator_t* a = (weir_accumulator_t*)resource;
  weir_status_t* status = NULL;
  weir_mutex_lock(&a->mu);
  if (local_step >= a->global_step) {  // else stale: dropped
    status = a->vtable->add(a, ctx, 2, &a->sum);
    if (!status) ++a->count;
    flush(resource, &completed);
  }
  weir_mutex_unlock(&a->mu);
  weir_waiters_answer(&completed);
  weir_resource_release(resource);
  return status;
}

void weir_accumulator_take_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  weir_resource_t* resource = NULL;
  take_t* take = NULL;
  int64_t required = 0;
  weir_status_t* status = scalar_argument(ctx, "num_required", &required);
  if (!status && required <= 0) {
    status = WEIR_STATUS(INVALID_ARGUMENT, "Argument num_required must be positive; got %lld",
                         (long long)required);
  }
  if (!status) status = weir_shared_handle_resource(ctx, 0, &weir_accumulator_type, &resource);
  if (!status &&
      ((weir_accumulator_t*)resource)->dtype != weir_attrs_type(weir_kernel_attrs(ctx), "dtype")) {
    status = WEIR_STATUS(INVALID_ARGUMENT, "The accumulator holds %s",
                         weir_dtype_name(((weir_accumulator_t*)resource)->dtype));
  }
  if (!status) {
    take = weir_calloc(1, sizeof(*take));
    if (!take) status = weir_out_of_memory();
  }
  if (status) {
    weir_resource_release(resource);
    weir_done_call(done, status);
    return;
  }
  take->required = required;
  take->base.finish = take_finish;
  take->base.destroy = take_destroy;
  take->base.cancel_message = "TakeGrad operation was cancelled";
  weir_waiter_submit(&((weir_accumulator_t*)resource)->takers, &take->base, resource, ctx, done);
  weir_resource_release(resource);
}

weir_status_t* weir_accumulator_count_cpu(weir_kernel_ctx_t* ctx) {
  weir_resource_t* resource = NULL;
  WEIR_TRY(weir_shared_handle_resource(ctx, 0, &weir_accumulator_type, &resource));
  weir_accumulator_t* a = (weir_accumulator_t*)resource;
  weir_mutex_lock(&a->mu);
  int64_t count = a->count;
  weir_mutex_unlock(&a->mu);
  weir_resource_release(resource);
  return weir_kernel_output_int(ctx, 0, count);
}

weir_status_t* weir_accumulator_set_step_cpu(weir_kernel_ctx_t* ctx) {
  weir_resource_t* resource = NULL;
  int64_t step = 0;
  WEIR_TRY(scalar_argument(ctx, "num_required", &step));  // as TensorFlow names it
  WEIR_TRY(weir_shared_handle_resource(ctx, 0, &weir_accumulator_type, &resource));
  weir_accumulator_t* a = (weir_accumulator_t*)resource;
  weir_mutex_lock(&a->mu);
  a->global_step = step;
  weir_mutex_unlock(&a->mu);
  weir_resource_release(resource);
  return NULL;
}

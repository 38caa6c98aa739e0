// mutex.c — MutexV2, MutexLock, ConsumeMutexLock: steps that take turns. Who waits holds no thread.
// A lock is held as long as anybody holds the variant that MutexLock gives.
#include "op/shape_ctx.h"
#include "op/shared_handle.h"
#include "ops/queue/waiter.h"
#include "tensor/handle.h"

#define MUTEX_TYPE_NAME "N10tensorflow12_GLOBAL__N_15MutexE"

typedef struct turns_t {
  weir_resource_t base;
  weir_mutex_t mu;
  bool is_locked;        // guarded by mu
  weir_waiters_t locks;  // guarded by mu
} turns_t;

// What holds the lock, until the last reference on it is gone.
typedef struct lock_t {
  weir_variant_object_t base;
  turns_t* turns;  // retained
} lock_t;

static void flush(weir_resource_t* owner, weir_waiters_t* completed) {
  turns_t* t = (turns_t*)owner;
  if (t->is_locked || !t->locks.head) return;
  t->is_locked = true;
  weir_waiter_complete(t->locks.head, NULL, completed);
}

static void unlock(turns_t* t) {
  weir_waiters_t completed = {0};
  weir_mutex_lock(&t->mu);
  t->is_locked = false;
  flush(&t->base, &completed);
  weir_mutex_unlock(&t->mu);
  weir_waiters_answer(&completed);
}

static void lock_destroy(void* object) {
  lock_t* lock = object;
  unlock(lock->turns);
  weir_resource_release(&lock->turns->base);
  weir_free(lock);
}

static const weir_variant_type_t lock_type = {.type_name = "tensorflow::SharedLockReleaser",
                                              .destroy = lock_destroy};

// ---- life ----

static void turns_destroy(weir_resource_t* resource) {
  turns_t* t = (turns_t*)resource;
  weir_mutex_destroy(&t->mu);
  weir_free(t);
}

static void turns_close(weir_resource_t* resource) {
  turns_t* t = (turns_t*)resource;
  weir_waiters_t completed = {0};
  weir_mutex_lock(&t->mu);
  while (t->locks.head) {
    weir_waiter_complete(t->locks.head, WEIR_STATUS(CANCELLED, "The mutex is gone"), &completed);
  }
  weir_mutex_unlock(&t->mu);
  weir_waiters_answer(&completed);
}

static const weir_resource_type_t turns_type = {
    .name = MUTEX_TYPE_NAME, .destroy = turns_destroy, .close = turns_close};

static weir_status_t* turns_create(void* arg, weir_resource_t** out_resource) {
  (void)arg;
  turns_t* t = weir_calloc(1, sizeof(*t));
  if (!t) return weir_out_of_memory();
  weir_resource_init(&t->base, &turns_type);
  weir_mutex_init(&t->mu);
  weir_waiters_init(&t->locks, &t->mu, flush);
  *out_resource = &t->base;
  return NULL;
}

// ---- kernels ----

static weir_status_t* mutex_init(const weir_kernel_init_t* init, void* state) {
  return weir_shared_handle_init(init, MUTEX_TYPE_NAME, state);
}

static void mutex_deinit(void* state) { weir_shared_handle_deinit(state); }

static weir_status_t* mutex_cpu(weir_kernel_ctx_t* ctx) {
  weir_resource_t* resource = NULL;
  WEIR_TRY(weir_shared_handle_create(ctx, ctx->state, &turns_type, turns_create, NULL, &resource));
  weir_shared_handle_set(ctx, ctx->state);
  weir_resource_release(resource);
  return NULL;
}

static weir_status_t* lock_finish(weir_waiter_t* waiter) {
  turns_t* t = (turns_t*)waiter->owner;
  lock_t* lock = weir_calloc(1, sizeof(*lock));
  weir_tensor_t* tensor = NULL;
  if (!lock) {
    unlock(t);
    return weir_out_of_memory();
  }
  lock->base.type = &lock_type;
  weir_ref_init(&lock->base.ref);
  lock->turns = t;
  weir_resource_retain(&t->base);
  WEIR_TRY(weir_tensor_create_variant(&lock->base, &tensor));  // unlocks on failure
  weir_kernel_set(waiter->ctx, 0, tensor);
  return NULL;
}

static weir_status_t* find_turns(weir_kernel_ctx_t* ctx, weir_resource_t** out_resource) {
  const weir_handle_t* handle = weir_tensor_handle(weir_kernel_input(ctx, 0));
  if (handle && strcmp(handle->type_name, MUTEX_TYPE_NAME) != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Trying to access a handle's resource using the wrong type. The handle "
                       "points to a resource (name '%s') of type '%s'",
                       handle->name, handle->type_name);
  }
  return weir_kernel_resource(ctx, 0, &turns_type, out_resource);
}

static void lock_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  weir_resource_t* resource = NULL;
  weir_waiter_t* waiter = NULL;
  weir_status_t* status = find_turns(ctx, &resource);
  if (!status) {
    waiter = weir_calloc(1, sizeof(*waiter));
    if (!waiter) status = weir_out_of_memory();
  }
  if (status) {
    weir_resource_release(resource);
    weir_done_call(done, status);
    return;
  }
  waiter->finish = lock_finish;
  waiter->cancel_message = "Lock acquisition cancelled.";
  weir_waiter_submit(&((turns_t*)resource)->locks, waiter, resource, ctx, done);
  weir_resource_release(resource);
}

// The reference goes with the kernel's inputs.
static weir_status_t* consume_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* input = weir_kernel_input(ctx, 0);
  const weir_variant_object_t* object =
      input->count == 1 ? WEIR_TENSOR_DATA(input, const weir_variant_t)->object : NULL;
  if (object && object->type == &lock_type) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Expected input to contain a SharedLockReleaser object, but saw variant: %s",
                     object ? object->type->type_name : "<empty>");
}

static weir_status_t* lock_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 0, NULL));
  return ctx->node->output_count ? weir_shape_set_scalar(ctx, 0) : NULL;
}

const weir_op_module_t weir_ops_state_mutex = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "MutexV2",
         .attrs = "container: string = ''; shared_name: string = ''",
         .outputs = "resource: resource",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_CHEAP,
         .summary = "Names a mutex",
         .infer_shape = weir_shared_handle_shape,
         .kernels =
             WEIR_CPU_KERNEL(.compute = mutex_cpu, .init = mutex_init, .deinit = mutex_deinit,
                             .state_size = sizeof(weir_shared_handle_t))},
        {.name = "MutexLock",
         .inputs = "mutex: resource",
         .outputs = "mutex_lock: variant",
         .flags = WEIR_OP_STATEFUL,
         .summary = "Locks a mutex, waiting for it",
         .infer_shape = lock_shape,
         .kernels = WEIR_CPU_KERNEL(.compute_async = lock_cpu)},
        {.name = "ConsumeMutexLock",
         .inputs = "mutex_lock: variant",
         .flags = WEIR_OP_STATEFUL,
         .summary = "Keeps a lock up to here",
         .infer_shape = lock_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = consume_cpu)},
        {0}}};

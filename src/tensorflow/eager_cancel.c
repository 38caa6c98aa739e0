// eager_cancel.c — Cancellation of eager ops, and executors, which have nothing to do.
#include "tensorflow/eager_internal.h"

typedef struct callback_t {
  TFE_CancellationToken token;  // of the caller's counting
  weir_cancel_token_t place;
  TFE_CancelCallback callback;
  struct callback_t* next;
} callback_t;

struct TFE_CancellationManager {
  weir_cancel_t* cancel;  // owned
  weir_mutex_t mu;        // guards what follows
  int64_t next_token;
  callback_t* callbacks;
  bool is_cancelling;
};

TFE_CancellationManager* TFE_NewCancellationManager(void) {
  TFE_CancellationManager* manager = weir_calloc(1, sizeof(*manager));
  WEIR_CHECK(manager);  // there is no status
  weir_status_t* status = weir_cancel_create(NULL, &manager->cancel);
  WEIR_CHECK(!status);
  weir_mutex_init(&manager->mu);
  return manager;
}

void TFE_DeleteCancellationManager(TFE_CancellationManager* manager) {
  if (!manager) return;
  for (callback_t *callback = manager->callbacks, *next; callback; callback = next) {
    next = callback->next;
    weir_cancel_deregister(manager->cancel, callback->place);
    weir_free(callback);
  }
  weir_cancel_destroy(manager->cancel);
  weir_mutex_destroy(&manager->mu);
  weir_free(manager);
}

weir_cancel_t* tfe_cancellation_get(TFE_CancellationManager* manager) { return manager->cancel; }

bool TFE_CancellationManagerIsCancelled(TFE_CancellationManager* manager) {
  return weir_cancel_is_cancelled(manager->cancel);
}

static void set_cancelling(TFE_CancellationManager* manager, bool is_cancelling) {
  weir_mutex_lock(&manager->mu);
  manager->is_cancelling = is_cancelling;
  weir_mutex_unlock(&manager->mu);
}

bool TFE_CancellationManagerIsCancelling(TFE_CancellationManager* manager) {
  weir_mutex_lock(&manager->mu);
  bool is_cancelling = manager->is_cancelling;
  weir_mutex_unlock(&manager->mu);
  return is_cancelling;
}

void TFE_CancellationManagerStartCancel(TFE_CancellationManager* manager) {
  set_cancelling(manager, true);
  weir_cancel_start(manager->cancel);
  set_cancelling(manager, false);
}

TFE_CancellationToken TFE_CancellationManagerGetToken(TFE_CancellationManager* manager) {
  weir_mutex_lock(&manager->mu);
  TFE_CancellationToken token = manager->next_token++;
  weir_mutex_unlock(&manager->mu);
  return token;
}

static void call(void* arg) {
  const callback_t* callback = arg;
  callback->callback.callback(callback->callback.context);
}

bool TFE_CancellationManagerRegisterCallback(TFE_CancellationManager* manager,
                                             TFE_CancellationToken token,
                                             const TFE_CancelCallback* c_callback,
                                             const char* callback_name) {
  (void)callback_name;
  callback_t* callback = weir_calloc(1, sizeof(*callback));
  if (!callback) return false;
  callback->token = token;
  callback->callback = *c_callback;
  callback->place = weir_cancel_register(manager->cancel, call, callback);
  if (!callback->place) {
    weir_free(callback);
    return false;
  }
  weir_mutex_lock(&manager->mu);
  callback->next = manager->callbacks;
  manager->callbacks = callback;
  weir_mutex_unlock(&manager->mu);
  return true;
}

// The callback of |token|, taken off the list.
static callback_t* take(TFE_CancellationManager* manager, TFE_CancellationToken token) {
  weir_mutex_lock(&manager->mu);
  callback_t** at = &manager->callbacks;
  while (*at && (*at)->token != token) at = &(*at)->next;
  callback_t* taken = *at;
  if (taken) *at = taken->next;
  weir_mutex_unlock(&manager->mu);
  return taken;
}

bool TFE_CancellationManagerDeregisterCallback(TFE_CancellationManager* manager,
                                               TFE_CancellationToken token) {
  callback_t* callback = take(manager, token);
  bool never_ran = callback && weir_cancel_deregister(manager->cancel, callback->place);
  weir_free(callback);
  return never_ran;
}

bool TFE_CancellationManagerTryDeregisterCallback(TFE_CancellationManager* manager,
                                                  TFE_CancellationToken token) {
  callback_t* callback = take(manager, token);
  if (!callback) return false;
  bool never_ran = weir_cancel_try_deregister(manager->cancel, callback->place);
  if (never_ran) {
    weir_free(callback);
    return true;
  }
  weir_mutex_lock(&manager->mu);  // it may be running: it goes with the manager
  callback->next = manager->callbacks;
  manager->callbacks = callback;
  weir_mutex_unlock(&manager->mu);
  return false;
}

void TFE_OpSetCancellationManager(TFE_Op* op, TFE_CancellationManager* cancellation_manager,
                                  TF_Status* status) {
  op->cancel = tfe_cancellation_get(cancellation_manager);
  tf_status_clear(status);
}

// ---- executors ----

struct TFE_Executor {
  bool is_async;  // as it was asked for
};

TFE_Executor* TFE_NewExecutor(bool is_async, bool enable_streaming_enqueue,
                              int in_flight_nodes_limit) {
  (void)enable_streaming_enqueue;
  (void)in_flight_nodes_limit;
  TFE_Executor* executor = weir_calloc(1, sizeof(*executor));
  WEIR_CHECK(executor);  // there is no status
  executor->is_async = is_async;
  return executor;
}

void TFE_DeleteExecutor(TFE_Executor* executor) { weir_free(executor); }
bool TFE_ExecutorIsAsync(TFE_Executor* executor) { return executor->is_async; }

void TFE_ExecutorWaitForAllPendingNodes(TFE_Executor* executor, TF_Status* status) {
  (void)executor;
  tf_status_clear(status);
}

void TFE_ExecutorClearError(TFE_Executor* executor) { (void)executor; }

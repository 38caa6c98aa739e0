// eager_context.c — TFE_ContextOptions and TFE_Context: devices, functions, steps.
#include "graph/function.h"
#include "ops/builtin_ops.h"
#include "tensorflow/eager_internal.h"

struct TFE_ContextOptions {
  TF_SessionOptions* session;  // owned; its ConfigProto
  TFE_ContextDevicePlacementPolicy policy;
};

// ---- options ----

TFE_ContextOptions* TFE_NewContextOptions(void) {
  TFE_ContextOptions* options = weir_calloc(1, sizeof(*options));
  WEIR_CHECK(options);  // there is no status
  options->session = TF_NewSessionOptions();
  options->policy = TFE_DEVICE_PLACEMENT_SILENT;
  return options;
}

void TFE_ContextOptionsSetConfig(TFE_ContextOptions* options, const void* proto, size_t proto_len,
                                 TF_Status* status) {
  TF_SetConfig(options->session, proto, proto_len, status);
}

void TFE_ContextOptionsSetAsync(TFE_ContextOptions* options, unsigned char enable) {
  (void)options;
  (void)enable;  // ops are through when they return, which those who wait do not mind
}

void TFE_ContextOptionsSetDevicePlacementPolicy(TFE_ContextOptions* options,
                                                TFE_ContextDevicePlacementPolicy policy) {
  options->policy = policy;
}

void TFE_DeleteContextOptions(TFE_ContextOptions* options) {
  if (!options) return;
  TF_DeleteSessionOptions(options->session);
  weir_free(options);
}

// ---- contexts ----

static weir_status_t* create(const TFE_ContextOptions* opts, TFE_Context* ctx) {
  static atomic_ullong next_id;
  weir_arena_t arena = {0};
  weir_session_options_t wanted = {0};
  weir_status_t* status = tf_session_options(opts ? opts->session : NULL, &arena, &wanted);
  weir_eager_params_t params = {.threads = wanted.threads,
                                .devices = wanted.devices,
                                .disabled_passes = wanted.disabled_passes,
                                .allow_soft_placement = wanted.allow_soft_placement};
  if (!status) status = weir_registry_builtin(&params.registry);
  if (!status) status = weir_eager_new(&params, &ctx->eager);
  weir_arena_free(&arena);
  ctx->policy = opts ? opts->policy : TFE_DEVICE_PLACEMENT_SILENT;
  ctx->id = atomic_fetch_add(&next_id, 1) + 1;
  return status;
}

TFE_Context* TFE_NewContext(const TFE_ContextOptions* opts, TF_Status* status) {
  TFE_Context* ctx = weir_calloc(1, sizeof(*ctx));
  if (ctx) weir_mutex_init(&ctx->mu);
  if (tf_status_take(status, ctx ? create(opts, ctx) : weir_out_of_memory())) return ctx;
  TFE_DeleteContext(ctx);
  return NULL;
}

void TFE_DeleteContext(TFE_Context* ctx) {
  if (!ctx) return;
  weir_resources_destroy(ctx->step_resources);
  weir_eager_unref(ctx->eager);
  weir_mutex_destroy(&ctx->mu);
  weir_free(ctx);
}

TF_DeviceList* TFE_ContextListDevices(TFE_Context* ctx, TF_Status* status) {
  return tf_device_list_new(ctx->eager->runtime, status);
}

void TFE_ContextClearCaches(TFE_Context* ctx) { (void)ctx; }
uint64_t TFE_GetContextId(TFE_Context* ctx) { return ctx->id; }

// ---- policies: a thread's own goes before the context's ----

static _Thread_local struct {
  uint64_t context;  // its id; 0: none
  TFE_ContextDevicePlacementPolicy policy;
} own_policy;

void TFE_ContextSetThreadLocalDevicePlacementPolicy(TFE_Context* ctx,
                                                    TFE_ContextDevicePlacementPolicy policy) {
  own_policy.context = ctx->id;
  own_policy.policy = policy;
}

TFE_ContextDevicePlacementPolicy TFE_ContextGetDevicePlacementPolicy(TFE_Context* ctx) {
  return own_policy.context == ctx->id ? own_policy.policy : ctx->policy;
}

void TFE_ContextSetSoftDevicePlacement(TFE_Context* ctx, unsigned char enable, TF_Status* status) {
  ctx->eager->allow_soft_placement = enable != 0;
  tf_status_clear(status);
}

void TFE_ContextSetLogDevicePlacement(TFE_Context* ctx, unsigned char enable, TF_Status* status) {
  (void)ctx;
  (void)enable;
  tf_status_clear(status);
}

void TFE_ContextSetServerDef(TFE_Context* ctx, int keep_alive_secs, const void* proto,
                             size_t proto_len, TF_Status* status) {
  (void)ctx;
  (void)keep_alive_secs;
  (void)proto;
  (void)proto_len;
  tf_status_take(status, WEIR_STATUS(UNIMPLEMENTED,
                                     "eager ops run in this process: servers are for sessions"));
}

// ---- functions ----

void TFE_ContextAddFunctionDef(TFE_Context* ctx, const char* serialized_function_def, size_t size,
                               TF_Status* status) {
  weir_status_t* result = weir_function_library_add(ctx->eager->graph->library,
                                                    weir_view(serialized_function_def, size));
  weir_code_t code = weir_status_code(result);
  if (code == WEIR_DATA_LOSS) {  // TensorFlow does not tell what is damaged from what is wrong
    weir_status_destroy(result);
    result = WEIR_STATUS(INVALID_ARGUMENT, "Invalid FunctionDef proto");
  }
  tf_status_take(status, result);
}

void TFE_ContextAddFunction(TFE_Context* ctx, TF_Function* function, TF_Status* status) {
  TF_Buffer* def = TF_NewBuffer();
  TF_FunctionToFunctionDef(function, def, status);
  if (TF_GetCode(status) == TF_OK) TFE_ContextAddFunctionDef(ctx, def->data, def->length, status);
  TF_DeleteBuffer(def);
}

void TFE_ContextRemoveFunction(TFE_Context* ctx, const char* name, TF_Status* status) {
  // TensorFlow does not mind that there is none.
  weir_status_destroy(weir_eager_remove_function(ctx->eager, weir_view_of(name)));
  tf_status_clear(status);
}

unsigned char TFE_ContextHasFunction(TFE_Context* ctx, const char* name) {
  return weir_function_find(ctx->eager->graph->library, weir_view_of(name)) != NULL;
}

void TFE_ContextGetFunctionDef(TFE_Context* ctx, const char* function_name, TF_Buffer* buf,
                               TF_Status* status) {
  const weir_function_t* function =
      weir_function_find(ctx->eager->graph->library, weir_view_of(function_name));
  weir_strbuf_t bytes = {0};
  weir_status_t* result = NULL;
  if (!function) {
    result = WEIR_STATUS(NOT_FOUND, "Unable to find FunctionDef with name: %s", function_name);
  } else {
    weir_strbuf_append(&bytes, function->def.data, function->def.size);
    result = weir_strbuf_finish(&bytes);
  }
  if (!result) result = tf_buffer_take(buf, &bytes);
  weir_strbuf_free(&bytes);
  tf_status_take(status, result);
}

// ---- steps ----

void TFE_ContextStartStep(TFE_Context* ctx) {
  weir_mutex_lock(&ctx->mu);
  weir_status_t* status = ctx->step_depth++ == 0
                              ? weir_resources_create(WEIR_STEP_CONTAINER, &ctx->step_resources)
                              : NULL;
  weir_mutex_unlock(&ctx->mu);
  weir_status_destroy(status);  // then each op is a step of its own
}

void TFE_ContextEndStep(TFE_Context* ctx) {
  weir_resources_t* ended = NULL;
  weir_mutex_lock(&ctx->mu);
  if (ctx->step_depth > 0 && --ctx->step_depth == 0) {
    ended = ctx->step_resources;
    ctx->step_resources = NULL;
  }
  weir_mutex_unlock(&ctx->mu);
  weir_resources_destroy(ended);
}

void TFE_ContextEnableRunMetadata(TFE_Context* ctx) { (void)ctx; }
void TFE_ContextDisableRunMetadata(TFE_Context* ctx) { (void)ctx; }

void TFE_ContextExportRunMetadata(TFE_Context* ctx, TF_Buffer* buf, TF_Status* status) {
  (void)ctx;
  weir_strbuf_t empty = {0};
  weir_strbuf_append(&empty, "", 0);
  tf_status_take(status, tf_buffer_take(buf, &empty));
  weir_strbuf_free(&empty);
}

void TFE_ContextAsyncWait(TFE_Context* ctx, TF_Status* status) {
  (void)ctx;
  tf_status_clear(status);
}

// unbatch_grad.c — UnbatchGrad: the gradients of all steps of a batch, as one, for the step that
// brought the batch; it waits for those that are missing. The other steps get nothing.
#include "op/shape_ctx.h"
#include "op/shared_handle.h"
#include "ops/batch/batch_rows.h"
#include "ops/queue/waiter.h"

typedef struct grad_t {
  struct grad_t* next;
  int64_t id;
  weir_tensor_t* tensor;
} grad_t;

typedef struct regatherer_t {
  weir_resource_t base;
  weir_mutex_t mu;
  grad_t* grads;  // guarded by mu, as |batches|
  weir_waiters_t batches;
} regatherer_t;

typedef struct grad_request_t {
  weir_waiter_t base;
  int64_t id;
  bool is_admitted;
  bool is_empty;          // it brought no batch
  weir_tensor_t* index;   // [id, begin, end] of each row
  weir_tensor_t* grad;    // its own
  weir_tensor_t** parts;  // those of the batch, in its order, when all are there
  int64_t part_count;
} grad_request_t;

// ---- gradients that are there; |mu| held ----

static grad_t** find_grad(regatherer_t* g, int64_t id) {
  grad_t** link = &g->grads;
  while (*link && (*link)->id != id) link = &(*link)->next;
  return link;
}

static weir_tensor_t* take_grad(grad_t** link) {
  grad_t* grad = *link;
  weir_tensor_t* tensor = grad->tensor;
  *link = grad->next;
  weir_free(grad);
  return tensor;
}

static weir_status_t* add_grad(regatherer_t* g, int64_t id, weir_tensor_t* tensor) {
  if (*find_grad(g, id)) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Two runs with the same batch key.");
  }
  grad_t* grad = weir_calloc(1, sizeof(*grad));
  if (!grad) return weir_out_of_memory();
  *grad = (grad_t){.next = g->grads, .id = id, .tensor = weir_tensor_retain(tensor)};
  g->grads = grad;
  return NULL;
}

// ---- batches; |mu| held ----

static int64_t id_at(const grad_request_t* r, int64_t i) {
  return WEIR_TENSOR_DATA(r->index, const int64_t)[3 * i];
}

static bool wants(const grad_request_t* r, int64_t id) {
  for (int64_t i = 0; !r->is_empty && i < r->index->dims[0]; ++i) {
    if (id_at(r, i) == id) return true;
  }
  return false;
}

static bool is_complete(regatherer_t* g, const grad_request_t* r) {
  for (int64_t i = 0; i < r->index->dims[0]; ++i) {
    if (!*find_grad(g, id_at(r, i))) return false;
  }
  return true;
}

static weir_status_t* take_parts(regatherer_t* g, grad_request_t* r) {
  for (int64_t i = 0; i < r->index->dims[0]; ++i) {
    grad_t** link = find_grad(g, id_at(r, i));
    if (!*link) return WEIR_STATUS(INTERNAL, "bad bookkeeping of available tensors.");
    r->parts[r->part_count++] = take_grad(link);
  }
  return NULL;
}

// INVALID_ARGUMENT when a gradient that |r| lacks is another's.
static weir_status_t* check_missing(regatherer_t* g, const grad_request_t* r) {
  for (int64_t i = 0; i < r->index->dims[0]; ++i) {
    if (*find_grad(g, id_at(r, i))) continue;
    for (const weir_waiter_t* w = g->batches.head; w; w = w->next) {
      if (w == &r->base || !wants((const grad_request_t*)w, id_at(r, i))) continue;
      return WEIR_STATUS(INVALID_ARGUMENT, "Missing tensor wanted by more than one batch.");
    }
  }
  return NULL;
}

static void admit(regatherer_t* g, grad_request_t* r, weir_waiters_t* completed) {
  weir_status_t* status = add_grad(g, r->id, r->grad);
  r->is_admitted = true;
  if (!status && !r->is_empty) status = check_missing(g, r);
  if (status || r->is_empty) weir_waiter_complete(&r->base, status, completed);
}

// A gradient that came can only complete the batches that want it.
static void flush(weir_resource_t* owner, weir_waiters_t* completed) {
  regatherer_t* g = (regatherer_t*)owner;
  grad_request_t* newest = (grad_request_t*)g->batches.tail;
  if (!newest || newest->is_admitted) return;
  const int64_t id = newest->id;
  admit(g, newest, completed);
  for (weir_waiter_t *w = g->batches.head, *next; w; w = next) {
    grad_request_t* r = (grad_request_t*)w;
    next = w->next;
    if ((w != &newest->base && !wants(r, id)) || !is_complete(g, r)) continue;
    weir_waiter_complete(w, take_parts(g, r), completed);
  }
}

static void abandon(weir_waiter_t* waiter) {
  regatherer_t* g = (regatherer_t*)waiter->owner;
  grad_t** link = find_grad(g, ((grad_request_t*)waiter)->id);
  if (*link) weir_tensor_release(take_grad(link));
}

static weir_status_t* request_finish(weir_waiter_t* waiter) {
  grad_request_t* r = (grad_request_t*)waiter;
  weir_tensor_t* out = NULL;
  if (!r->is_empty) {
    weir_pool_t* pool = weir_kernel_pool(waiter->ctx);
    WEIR_TRY(weir_batch_rows_join(pool, r->parts, r->part_count, 0, &out));
    if (weir_tensor_type(out) == waiter->ctx->node->output_types[0]) {
      weir_kernel_set(waiter->ctx, 0, out);
      return NULL;
    }
    weir_tensor_release(out);
    return WEIR_STATUS(INVALID_ARGUMENT, "Gradients of a batch are of different types");
  }
  int64_t dims[WEIR_MAX_RANK] = {0};
  for (int axis = 1; axis < r->grad->rank; ++axis) dims[axis] = r->grad->dims[axis];
  return weir_kernel_output(waiter->ctx, 0, r->grad->rank, dims, &out);
}

static void request_destroy(weir_waiter_t* waiter) {
  grad_request_t* r = (grad_request_t*)waiter;
  for (int64_t i = 0; i < r->part_count; ++i) weir_tensor_release(r->parts[i]);
  weir_free(r->parts);
  weir_tensor_release(r->index);
  weir_tensor_release(r->grad);
}

// ---- life ----

static void regatherer_destroy(weir_resource_t* resource) {
  regatherer_t* g = (regatherer_t*)resource;
  while (g->grads) weir_tensor_release(take_grad(&g->grads));
  weir_mutex_destroy(&g->mu);
  weir_free(g);
}

static void regatherer_close(weir_resource_t* resource) {
  regatherer_t* g = (regatherer_t*)resource;
  weir_waiters_t completed = {0};
  weir_mutex_lock(&g->mu);
  while (g->batches.head) {
    weir_waiter_complete(g->batches.head, WEIR_STATUS(CANCELLED, "The batch is gone"), &completed);
  }
  weir_mutex_unlock(&g->mu);
  weir_waiters_answer(&completed);
}

static const weir_resource_type_t regatherer_type = {
    .name = "UnbatchGradResource", .destroy = regatherer_destroy, .close = regatherer_close};

static weir_status_t* regatherer_create(void* arg, weir_resource_t** out_resource) {
  (void)arg;
  regatherer_t* g = weir_calloc(1, sizeof(*g));
  if (!g) return weir_out_of_memory();
  weir_resource_init(&g->base, &regatherer_type);
  weir_mutex_init(&g->mu);
  weir_waiters_init(&g->batches, &g->mu, flush);
  *out_resource = &g->base;
  return NULL;
}

// ---- kernel ----

static weir_status_t* grad_init(const weir_kernel_init_t* init, void* state) {
  return weir_shared_handle_init_names(init, state);
}

static void grad_deinit(void* state) { weir_shared_handle_deinit(state); }

static weir_status_t* check_inputs(const weir_kernel_ctx_t* ctx, bool is_empty) {
  const weir_tensor_t* index = weir_kernel_input(ctx, 1);
  const weir_tensor_t* id = weir_kernel_input(ctx, 3);
  if (id->rank != 0) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Expected `id` to be scalar. Received a tensor of shape %s",
                       weir_tensor_shape_text(id, text));
  }
  if (weir_kernel_input(ctx, 2)->rank == 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "grad must not be a scalar");
  }
  if (is_empty) return NULL;
  if (index->count == 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "batch_index is empty while the tensor isn't.");
  }
  const int64_t rows = index->rank > 0 ? index->dims[0] : 1;
  if (index->rank > 0 && index->count % 3 == 0 && index->count / 3 == rows) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "batch_index should contain %lld elements. Received %lld",
                     (long long)(3 * rows), (long long)index->count);
}

static weir_status_t* make_request(weir_kernel_ctx_t* ctx, grad_request_t* r) {
  r->is_empty = weir_kernel_input(ctx, 0)->count == 0;
  WEIR_TRY(check_inputs(ctx, r->is_empty));
  r->id = WEIR_TENSOR_DATA(weir_kernel_input(ctx, 3), int64_t)[0];
  r->index = weir_tensor_retain(ctx->inputs[1].tensor);
  r->grad = weir_tensor_retain(ctx->inputs[2].tensor);
  r->base = (weir_waiter_t){.finish = request_finish,
                            .abandon = abandon,
                            .destroy = request_destroy,
                            .cancel_message = "UnbatchGrad operation was cancelled"};
  if (r->is_empty) return NULL;
  r->parts = weir_calloc((size_t)r->index->dims[0], sizeof(*r->parts));
  return r->parts ? NULL : weir_out_of_memory();
}

static void grad_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  weir_resource_t* resource = NULL;
  grad_request_t* r = weir_calloc(1, sizeof(*r));
  weir_status_t* status = r ? make_request(ctx, r) : weir_out_of_memory();
  if (!status) {
    status = weir_shared_handle_create(ctx, ctx->state, &regatherer_type, regatherer_create, NULL,
                                       &resource);
  }
  if (status) {
    if (r) request_destroy(&r->base);
    weir_free(r);
    weir_done_call(done, status);
    return;
  }
  weir_waiter_submit(&((regatherer_t*)resource)->batches, &r->base, resource, ctx, done);
  weir_resource_release(resource);
}

static weir_status_t* grad_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* shape = weir_shape_input(ctx, 2);
  int64_t dims[WEIR_MAX_RANK];
  if (!shape || shape->rank < 0) return NULL;
  for (int axis = 0; axis < shape->rank; ++axis) dims[axis] = -1;
  return weir_shape_set_dims(ctx, 0, shape->rank, dims);
}

const weir_op_module_t weir_ops_batch_unbatch_grad = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "UnbatchGrad",
         .attrs = "container: string = ''; shared_name: string = ''; T: type",
         .inputs = "original_input: T; batch_index: int64; grad: T; id: int64",
         .outputs = "batched_grad: T",
         .flags = WEIR_OP_NO_FOLD | WEIR_OP_NO_GRADIENT,
         .summary = "The gradients of all steps of a batch as one",
         .infer_shape = grad_shape,
         .kernels =
             WEIR_CPU_KERNEL(.compute_async = grad_cpu, .init = grad_init, .deinit = grad_deinit,
                             .state_size = sizeof(weir_shared_handle_t))},
        {0}}};

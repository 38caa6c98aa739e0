// unbatch.c — Unbatch: the rows of a batch, each step its own. One step brings the batch; the
// others come with nothing, and wait for the rows of their id, for a while.
#include "base/alarm.h"
#include "op/shape_ctx.h"
#include "op/shared_handle.h"
#include "ops/queue/waiter.h"

// Rows nobody has asked for yet. All wait equally long: the first is the first to go.
typedef struct rows_t {
  struct rows_t* next;
  int64_t id;
  int64_t deadline_ns;
  weir_tensor_t* tensor;
} rows_t;

typedef struct unbatcher_t {
  weir_resource_t base;
  weir_mutex_t mu;
  int64_t timeout_ns;  // immutable
  rows_t* first;       // guarded by mu, as all below
  rows_t* last;
  weir_waiters_t requests;
  bool has_no_alarm;   // there was no thread for one: who would wait fails
  weir_alarm_t alarm;  // a set one holds a reference
} unbatcher_t;

typedef struct unbatch_request_t {
  weir_waiter_t base;
  int64_t id;
  int64_t deadline_ns;
  bool is_admitted;
  weir_tensor_t* result;
  rows_t* pieces;  // of the batch it brought
} unbatch_request_t;

// ---- rows ----

static void rows_destroy(rows_t* rows) {
  for (rows_t* next; rows; rows = next) {
    next = rows->next;
    weir_tensor_release(rows->tensor);
    weir_free(rows);
  }
}

static rows_t** find_rows(unbatcher_t* u, int64_t id) {
  rows_t** link = &u->first;
  while (*link && (*link)->id != id) link = &(*link)->next;
  return link;
}

static weir_tensor_t* take_rows(unbatcher_t* u, rows_t** link) {
  rows_t* rows = *link;
  weir_tensor_t* tensor = rows->tensor;
  *link = rows->next;
  if (u->last == rows) {
    u->last = u->first;
    while (u->last && u->last->next) u->last = u->last->next;
  }
  weir_free(rows);
  return tensor;
}

static void add_rows(unbatcher_t* u, rows_t* rows) {
  rows->next = NULL;
  if (u->last) {
    u->last->next = rows;
  } else {
    u->first = rows;
  }
  u->last = rows;
}

// ---- requests; |mu| held ----

static unbatch_request_t* find_request(unbatcher_t* u, int64_t id, const unbatch_request_t* but) {
  for (weir_waiter_t* w = u->requests.head; w; w = w->next) {
    unbatch_request_t* r = (unbatch_request_t*)w;
    if (r != but && r->id == id) return r;
  }
  return NULL;
}

// Gives every piece of |r| to who waits for it, or keeps it.
static weir_status_t* hand_out(unbatcher_t* u, unbatch_request_t* r, weir_waiters_t* completed) {
  while (r->pieces) {
    rows_t* piece = r->pieces;
    unbatch_request_t* waiting = find_request(u, piece->id, NULL);
    if (!waiting && *find_rows(u, piece->id)) {
      return WEIR_STATUS(ALREADY_EXISTS, "Multiple tensors returned for same batch key.");
    }
    r->pieces = piece->next;
    if (!waiting) {
      piece->deadline_ns = r->deadline_ns;
      add_rows(u, piece);
      continue;
    }
    waiting->result = piece->tensor;
    weir_free(piece);
    weir_waiter_complete(&waiting->base, NULL, completed);
  }
  return NULL;
}

static void admit(unbatcher_t* u, unbatch_request_t* r, weir_waiters_t* completed) {
  rows_t** there = find_rows(u, r->id);
  weir_status_t* status = NULL;
  r->is_admitted = true;
  if (*there) {
    r->result = take_rows(u, there);
    weir_waiter_complete(&r->base, NULL, completed);
    return;
  }
  if (find_request(u, r->id, r)) {
    status = WEIR_STATUS(ALREADY_EXISTS, "Multiple session runs with the same batch key.");
  }
  if (!status) status = hand_out(u, r, completed);
  if (!status) return;
  if (r->base.list) {
    weir_waiter_complete(&r->base, status, completed);
  } else {
    r->base.status = status;  // it got its own rows before
  }
}

static weir_status_t* too_late(void) {
  return WEIR_STATUS(DEADLINE_EXCEEDED, "Batched data did not arrive within timeout window.");
}

// Drops whatever has waited too long, and sets the alarm for the next.
static void expire(unbatcher_t* u, weir_waiters_t* completed) {
  const int64_t now = weir_clock_ns();
  int64_t next_ns = INT64_MAX;
  bool is_new = false;
  while (u->first && u->first->deadline_ns <= now) {
    weir_tensor_release(take_rows(u, &u->first));
  }
  for (weir_waiter_t *w = u->requests.head, *next; w; w = next) {
    const int64_t deadline_ns = ((unbatch_request_t*)w)->deadline_ns;
    next = w->next;
    if (deadline_ns <= now || u->has_no_alarm) {
      weir_waiter_complete(w, too_late(), completed);
    } else {
      next_ns = WEIR_MIN(next_ns, deadline_ns);
    }
  }
  if (u->first) next_ns = WEIR_MIN(next_ns, u->first->deadline_ns);
  if (next_ns == INT64_MAX) {
    if (weir_alarm_clear(&u->alarm)) weir_resource_release(&u->base);
    return;
  }
  if (!weir_alarm_set(&u->alarm, next_ns, &is_new)) u->has_no_alarm = true;
  if (is_new) weir_resource_retain(&u->base);
}

static void flush(weir_resource_t* owner, weir_waiters_t* completed) {
  unbatcher_t* u = (unbatcher_t*)owner;
  unbatch_request_t* r = (unbatch_request_t*)u->requests.tail;
  if (r && !r->is_admitted) admit(u, r, completed);
  expire(u, completed);
  if (u->has_no_alarm) expire(u, completed);
}

static void on_alarm(weir_alarm_t* alarm) {
  unbatcher_t* u = (unbatcher_t*)((char*)alarm - offsetof(unbatcher_t, alarm));
  weir_waiters_t completed = {0};
  weir_mutex_lock(&u->mu);
  expire(u, &completed);
  weir_mutex_unlock(&u->mu);
  weir_waiters_answer(&completed);
  weir_resource_release(&u->base);
}

static weir_status_t* request_finish(weir_waiter_t* waiter) {
  unbatch_request_t* r = (unbatch_request_t*)waiter;
  if (weir_tensor_type(r->result) != waiter->ctx->node->output_types[0]) {
    return WEIR_STATUS(INVALID_ARGUMENT, "The rows of this step are of type %s",
                       weir_dtype_name(weir_tensor_type(r->result)));
  }
  weir_kernel_set(waiter->ctx, 0, r->result);
  r->result = NULL;
  return NULL;
}

static void request_destroy(weir_waiter_t* waiter) {
  unbatch_request_t* r = (unbatch_request_t*)waiter;
  weir_tensor_release(r->result);
  rows_destroy(r->pieces);
}

// ---- life ----

static void unbatcher_destroy(weir_resource_t* resource) {
  unbatcher_t* u = (unbatcher_t*)resource;
  rows_destroy(u->first);
  weir_mutex_destroy(&u->mu);
  weir_free(u);
}

static void unbatcher_close(weir_resource_t* resource) {
  unbatcher_t* u = (unbatcher_t*)resource;
  weir_waiters_t completed = {0};
  weir_mutex_lock(&u->mu);
  while (u->requests.head) {
    weir_waiter_complete(u->requests.head, WEIR_STATUS(CANCELLED, "The batch is gone"), &completed);
  }
  const bool was_set = weir_alarm_clear(&u->alarm);
  weir_mutex_unlock(&u->mu);
  weir_waiters_answer(&completed);
  if (was_set) weir_resource_release(resource);
}

static const weir_resource_type_t unbatcher_type = {
    .name = "UnbatchResource", .destroy = unbatcher_destroy, .close = unbatcher_close};

typedef struct unbatch_state_t {
  weir_shared_handle_t handle;
  int64_t timeout_us;
} unbatch_state_t;

static weir_status_t* unbatcher_create(void* arg, weir_resource_t** out_resource) {
  const unbatch_state_t* s = arg;
  unbatcher_t* u = weir_calloc(1, sizeof(*u));
  if (!u) return weir_out_of_memory();
  weir_resource_init(&u->base, &unbatcher_type);
  weir_mutex_init(&u->mu);
  weir_waiters_init(&u->requests, &u->mu, flush);
  u->timeout_ns = 1000 * s->timeout_us;
  u->alarm.fire = on_alarm;
  *out_resource = &u->base;
  return NULL;
}

// ---- kernel ----

static weir_status_t* unbatch_init(const weir_kernel_init_t* init, void* state) {
  unbatch_state_t* s = state;
  s->timeout_us = weir_attrs_int(init->node->attrs, "timeout_micros");
  if (s->timeout_us < INT32_MIN || s->timeout_us > INT32_MAX) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Attr timeout_micros has value %lld out of range for an int32",
                       (long long)s->timeout_us);
  }
  return weir_shared_handle_init_names(init, &s->handle);
}

static void unbatch_deinit(void* state) {
  weir_shared_handle_deinit(&((unbatch_state_t*)state)->handle);
}

static weir_status_t* check_index(const weir_tensor_t* data, const weir_tensor_t* index) {
  if (data->rank == 0 || index->rank == 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "batched_tensor and batch_index must not be scalars");
  }
  if (index->dims[0] > data->dims[0]) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Wrong shape for index tensor. Expected 0th dimension size to be no greater "
                       "than %lld; Got: %lld.",
                       (long long)data->dims[0], (long long)index->dims[0]);
  }
  const int64_t columns = index->rank > 1 ? index->dims[1] : 1;
  if (columns == 3 && index->count == index->dims[0] * 3) return NULL;
  return WEIR_STATUS(
      INVALID_ARGUMENT,
      "Wrong shape for index tensor. Expected 1st dimension size to be 3 ; Got: %lld.",
      (long long)columns);
}

// The rows that |index| tells apart, from the first on: only the sizes of the ranges count.
static weir_status_t* make_pieces(weir_tensor_t* data, const weir_tensor_t* index,
                                  rows_t** out_pieces) {
  const int64_t(*ranges)[3] = index->data;
  int64_t row = 0;
  for (int64_t i = 0; i < index->dims[0]; ++i) {
    int64_t size = 0;
    if (__builtin_sub_overflow(ranges[i][2], ranges[i][1], &size) || size < 0) {
      return WEIR_STATUS(INVALID_ARGUMENT, "batch_index has a range of a negative size");
    }
    if (size > data->dims[0] - row) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Sum of split sizes must not exceed dim0-size of input tensor");
    }
    rows_t* piece = weir_calloc(1, sizeof(*piece));
    if (!piece) return weir_out_of_memory();
    *out_pieces = piece;
    out_pieces = &piece->next;
    piece->id = ranges[i][0];
    WEIR_TRY(weir_tensor_slice(data, row, row + size, &piece->tensor));
    row += size;
  }
  return NULL;
}

static weir_status_t* make_request(weir_kernel_ctx_t* ctx, const unbatcher_t* u,
                                   unbatch_request_t* r) {
  weir_tensor_t* data = ctx->inputs[0].tensor;
  const weir_tensor_t* index = weir_kernel_input(ctx, 1);
  const weir_tensor_t* id = weir_kernel_input(ctx, 2);
  WEIR_TRY(check_index(data, index));
  if (id->rank != 0) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "Input id should be scalar; Got: a tensor of shape %s.",
                       weir_tensor_shape_text(id, text));
  }
  r->id = WEIR_TENSOR_DATA(id, int64_t)[0];
  r->deadline_ns = weir_clock_ns() + u->timeout_ns;
  r->base = (weir_waiter_t){.finish = request_finish,
                            .destroy = request_destroy,
                            .cancel_message = "Unbatch operation was cancelled"};
  return make_pieces(data, index, &r->pieces);
}

static void unbatch_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  unbatch_state_t* s = ctx->state;
  weir_resource_t* resource = NULL;
  unbatch_request_t* r = weir_calloc(1, sizeof(*r));
  weir_status_t* status = r ? NULL : weir_out_of_memory();
  if (!status) {
    status =
        weir_shared_handle_create(ctx, &s->handle, &unbatcher_type, unbatcher_create, s, &resource);
  }
  unbatcher_t* u = (unbatcher_t*)resource;
  if (!status) status = make_request(ctx, u, r);
  if (status) {
    if (r) request_destroy(&r->base);
    weir_free(r);
    weir_resource_release(resource);
    weir_done_call(done, status);
    return;
  }
  weir_waiter_submit(&u->requests, &r->base, resource, ctx, done);
  weir_resource_release(resource);
}

static weir_status_t* unbatch_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* shape = weir_shape_input(ctx, 0);
  int64_t dims[WEIR_MAX_RANK];
  if (!shape || shape->rank < 0) return NULL;
  WEIR_TRY(weir_shape_at_least(ctx, shape, 1));
  for (int axis = 0; axis < shape->rank; ++axis) dims[axis] = shape->dims[axis];
  dims[0] = -1;
  return weir_shape_set_dims(ctx, 0, shape->rank, dims);
}

const weir_op_module_t weir_ops_batch_unbatch = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Unbatch",
         .attrs = "timeout_micros: int; container: string = ''; shared_name: string = ''; T: type",
         .inputs = "batched_tensor: T; batch_index: int64; id: int64",
         .outputs = "unbatched_tensor: T",
         .flags = WEIR_OP_NO_FOLD,
         .summary = "The rows of a batch that are this step's",
         .infer_shape = unbatch_shape,
         .kernels =
             WEIR_CPU_KERNEL(.compute_async = unbatch_cpu, .init = unbatch_init,
                             .deinit = unbatch_deinit, .state_size = sizeof(unbatch_state_t))},
        {0}}};

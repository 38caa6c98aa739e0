// collective_shards.c — Large reductions, of which each task of the group does a part.
//
// First the members agree, at the leader, and learn who they are. Then each joins, for every task,
// a reduction of the elements that this task is to do, at its hub. What comes back is put together.
#include "base/alloc.h"
#include "cluster/task/collectives_internal.h"

typedef struct shards_t shards_t;

// The part that one task does.
typedef struct shard_t {
  shards_t* owner;
  int64_t begin, end;  // elements
  weir_view_t task;    // into the roster
} shard_t;

struct shards_t {
  weir_collectives_t* collectives;
  weir_collective_t what;  // as the kernel wants it; |device| is our own
  char* device;
  weir_hub_caller_t caller;
  weir_cancel_t* cancel;  // of the parts; a child of the caller's
  weir_tensor_t *tensor, *flat, *output, *roster;
  shard_t* shards;
  int count;
  atomic_int waiting;        // parts that have not come back, and who starts them
  weir_first_error_t error;  // of a part
};

static void shards_free(shards_t* self) {
  weir_cancel_destroy(self->cancel);
  weir_tensor_release(self->tensor);
  weir_tensor_release(self->flat);
  weir_tensor_release(self->output);
  weir_tensor_release(self->roster);
  weir_free(self->shards);
  weir_free(self->device);
  weir_free(self);
}

// Tells the caller.
static void finish(shards_t* self) {
  weir_hub_caller_t caller = self->caller;
  weir_status_t* status = atomic_load(&self->error.status);
  weir_tensor_t* output = status ? NULL : weir_tensor_retain(self->output);
  shards_free(self);
  caller.done(caller.arg, status, output);
}

static void leave(shards_t* self) {
  // Release and acquire: whoever is last sees what all others have put into the output.
  if (atomic_fetch_sub_explicit(&self->waiting, 1, memory_order_acq_rel) == 1) finish(self);
}

static void fail(shards_t* self, weir_status_t* take_status) {
  weir_first_error_set(&self->error, take_status);
  weir_cancel_start(self->cancel);
}

// ---- parts ----

static void shard_done(void* arg, weir_status_t* take_status, weir_tensor_t* take_tensor) {
  shard_t* shard = arg;
  shards_t* self = shard->owner;
  weir_status_t* status = take_status;
  int64_t count = shard->end - shard->begin;
  bool is_right = take_tensor && take_tensor->count == count &&
                  weir_tensor_type(take_tensor) == self->what.dtype;
  if (!status && !is_right)
    status =
        WEIR_STATUS(INTERNAL, "task %.*s reduced to something else", WEIR_VIEW_ARG(shard->task));
  if (status) {
    fail(self, status);
  } else if (count) {
    size_t size = weir_dtype_size(self->what.dtype);
    memcpy((char*)self->output->data + (size_t)shard->begin * size, take_tensor->data,
           (size_t)count * size);
  }
  weir_tensor_release(take_tensor);
  leave(self);
}

static void start_shard(shards_t* self, shard_t* shard, const weir_collective_t* what) {
  weir_tensor_t* part = NULL;
  weir_hub_caller_t caller = {.cancel = self->cancel,
                              .pool = self->collectives->task->pool,
                              .done = shard_done,
                              .arg = shard};
  weir_status_t* status = weir_tensor_slice(self->flat, shard->begin, shard->end, &part);
  if (status) shard_done(shard, status, NULL);
  else weir_collectives_join_at(self->collectives, shard->task, what, part, &caller);
  weir_tensor_release(part);
}

// ---- from the roster to the parts ----

static weir_view_t roster_device(const weir_tensor_t* roster, int i) {
  size_t size = 0;
  const char* name = weir_tensor_string(roster, i + 1, &size);
  return weir_view(name, size);
}

// Lists the tasks of the roster, each once: devices of a task stand side by side. |out_rank|: of
// this member.
static weir_status_t* list_tasks(shards_t* self, int* out_rank) {
  int members = self->what.group_size;
  self->shards = weir_calloc((size_t)members, sizeof(*self->shards));
  if (!self->shards) return weir_out_of_memory();
  *out_rank = -1;
  for (int i = 0; i < members; ++i) {
    weir_view_t device = roster_device(self->roster, i), task = weir_task_of_device(device);
    if (weir_view_is(device, self->device)) *out_rank = i;
    bool is_known = false;
    for (int j = self->count - 1; j >= 0 && !is_known; --j)
      is_known = weir_view_equal(self->shards[j].task, task);
    if (!is_known) self->shards[self->count++] = (shard_t){.owner = self, .task = task};
  }
  if (*out_rank >= 0) return NULL;
  return WEIR_STATUS(INTERNAL, "the leader of a collective does not list %s", self->device);
}

static weir_status_t* prepare(shards_t* self, weir_collective_t* what) {
  uint64_t id = 0;
  if (!weir_hub_read_roster(self->roster, self->what.group_size, &id))
    return WEIR_STATUS(INTERNAL, "the leader of a collective does not say who its members are");
  *what = self->what;
  WEIR_TRY(list_tasks(self, &what->rank));
  what->space = WEIR_COLLECTIVE_SPACE_SHARD;
  what->id = id;
  const weir_tensor_t* tensor = self->tensor;
  WEIR_TRY(weir_tensor_reshape(self->tensor, 1, &tensor->count, &self->flat));
  WEIR_TRY(weir_tensor_create(self->what.dtype, tensor->rank, tensor->dims, &self->output));
  int64_t share = tensor->count / self->count, rest = tensor->count % self->count, at = 0;
  for (int i = 0; i < self->count; ++i) {
    self->shards[i].begin = at;
    at += share + (i < rest ? 1 : 0);
    self->shards[i].end = at;
  }
  return NULL;
}

// All members have agreed: |take_tensor| is the roster.
static void agreed(void* arg, weir_status_t* take_status, weir_tensor_t* take_tensor) {
  shards_t* self = arg;
  weir_collective_t what;
  self->roster = take_tensor;
  weir_status_t* status = take_status ? take_status : prepare(self, &what);
  if (status) {
    fail(self, status);
  } else {
    atomic_fetch_add_explicit(&self->waiting, self->count, memory_order_relaxed);  // one holds it
    for (int i = 0; i < self->count; ++i) start_shard(self, &self->shards[i], &what);
  }
  leave(self);
}

static weir_status_t* shards_create(weir_collectives_t* collectives, const weir_collective_t* what,
                                    weir_tensor_t* tensor, const weir_hub_caller_t* caller,
                                    shards_t** out_shards) {
  shards_t* self = weir_calloc(1, sizeof(*self));
  if (!self) return weir_out_of_memory();
  self->collectives = collectives;
  self->what = *what;
  self->caller = *caller;
  self->tensor = weir_tensor_retain(tensor);
  atomic_init(&self->waiting, 1);
  self->device = weir_strdup(what->device);
  self->what.device = self->device;
  weir_status_t* status = self->device ? NULL : weir_out_of_memory();
  if (!status) status = weir_cancel_create(caller->cancel, &self->cancel);
  if (status) shards_free(self);
  else *out_shards = self;
  return status;
}

void weir_collectives_join_shards(weir_collectives_t* self, const weir_collective_t* what,
                                  weir_tensor_t* tensor, const weir_hub_caller_t* caller) {
  shards_t* shards = NULL;
  weir_status_t* status = shards_create(self, what, tensor, caller, &shards);
  if (status) {
    caller->done(caller->arg, status, NULL);
    return;
  }
  weir_collective_t asked = shards->what;
  asked.wants_roster = true;
  asked.dim_count = tensor->rank;
  asked.dims = tensor->dims;
  weir_hub_caller_t then = {
      .cancel = shards->cancel, .pool = caller->pool, .done = agreed, .arg = shards};
  weir_collectives_join_at(self, weir_view_of(self->leader), &asked, NULL, &then);
}

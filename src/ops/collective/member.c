// member.c — Kernels of collectives: reading their nodes, joining, and setting what comes of it.
#include "ops/collective/member.h"

#include "ops/collective/there.h"

// Seconds as TensorFlow's attribute has them; 0 and less: none. A century is as good as none.
static int64_t timeout_of(float seconds) {
  const double century = 3.2e9;
  if (!(seconds > 0) || seconds > century) return 0;
  double ns = (double)seconds * 1e9;
  return ns < 1 ? 1 : (int64_t)ns;
}

static weir_update_op_t merge_of(weir_view_t name) {
  if (weir_view_is(name, "Mul")) return WEIR_UPDATE_MUL;
  if (weir_view_is(name, "Max")) return WEIR_UPDATE_MAX;
  if (weir_view_is(name, "Min")) return WEIR_UPDATE_MIN;
  return WEIR_UPDATE_ADD;
}

// Others, such as 'auto', leave it to us.
static weir_collective_way_t way_of(weir_view_t hint) {
  if (weir_view_is(hint, "nccl")) return WEIR_COLLECTIVE_BY_NCCL;
  return weir_view_is(hint, "ring") ? WEIR_COLLECTIVE_BY_HOST : WEIR_COLLECTIVE_BY_ANY;
}

static weir_status_t* read_key(weir_attrs_t attrs, const char* name, int* out_key) {
  int64_t value = weir_attrs_int(attrs, name);
  if (value < INT32_MIN || value > INT32_MAX) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Attr %s has value %lld out of range for an int32", name,
                       (long long)value);
  }
  *out_key = (int)value;
  return NULL;
}

static weir_status_t* check_size(int group_size) {
  if (group_size > 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "group_size must be positive integer but got %d",
                     group_size);
}

weir_status_t* weir_member_init(const weir_kernel_init_t* init, weir_collective_kind_t kind,
                                weir_collective_t* what) {
  const weir_attrs_t attrs = init->node->attrs;
  *what = (weir_collective_t){.kind = kind, .rank = -1};
  if (weir_attrs_find(attrs, "T")) what->dtype = weir_attrs_type(attrs, "T");
  if (weir_attrs_find(attrs, "merge_op"))
    what->merge = merge_of(weir_attrs_string(attrs, "merge_op"));
  if (weir_attrs_find(attrs, "reduction"))
    what->merge = merge_of(weir_attrs_string(attrs, "reduction"));
  if (weir_attrs_find(attrs, "final_op"))
    what->is_mean = weir_view_is(weir_attrs_string(attrs, "final_op"), "Div");
  if (weir_attrs_find(attrs, "communication_hint"))
    what->way = way_of(weir_attrs_string(attrs, "communication_hint"));
  what->timeout_ns = timeout_of(weir_attrs_float(attrs, "timeout_seconds"));
  if (!weir_attrs_find(attrs, "instance_key")) return NULL;
  WEIR_TRY(read_key(attrs, "group_size", &what->group_size));
  WEIR_TRY(read_key(attrs, "group_key", &what->group_key));
  WEIR_TRY(read_key(attrs, "instance_key", &what->instance_key));
  return check_size(what->group_size);
}

weir_status_t* weir_member_scalar(const weir_kernel_ctx_t* ctx, int i, const char* name,
                                  int* out_value) {
  const weir_tensor_t* tensor = weir_kernel_input(ctx, i);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (tensor->rank != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Unexpected dimensions on input %s, got %s", name,
                       weir_tensor_shape_text(tensor, text));
  }
  *out_value = WEIR_TENSOR_DATA(tensor, int32_t)[0];
  return NULL;
}

weir_status_t* weir_member_keys(const weir_kernel_ctx_t* ctx, int first, weir_collective_t* what) {
  WEIR_TRY(weir_member_scalar(ctx, first, "group_size", &what->group_size));
  WEIR_TRY(weir_member_scalar(ctx, first + 1, "group_key", &what->group_key));
  WEIR_TRY(weir_member_scalar(ctx, first + 2, "instance_key", &what->instance_key));
  return check_size(what->group_size);
}

// ---- from the kernel to the hub and back ----

typedef struct entry_t {
  weir_kernel_ctx_t* ctx;
  weir_collective_t what;  // without its pointers
  weir_member_finish_fn_t finish;
  weir_done_t done;
} entry_t;

static void met(void* arg, weir_status_t* take_status, weir_tensor_t* take_tensor) {
  entry_t entry = *(entry_t*)arg;
  weir_free(arg);
  weir_status_t* status = take_status;
  if (!status && entry.finish) {
    status = entry.finish(entry.ctx, &entry.what);
    weir_tensor_release(take_tensor);
  } else if (!status) {
    weir_kernel_set(entry.ctx, 0, take_tensor);
  }
  weir_done_call(entry.done, status);
}

// Whether NCCL computes it. Members of one collective come to the same answer. Those of a cluster
// meet on hosts; there, who asks for NCCL is not refused, as TensorFlow's groups of several tasks
// are not.
static weir_status_t* choose_way(const weir_kernel_ctx_t* ctx, const weir_collective_t* what,
                                 bool* out_is_there) {
  *out_is_there = false;
  if (!weir_device_is_cuda(ctx->device) || what->way == WEIR_COLLECTIVE_BY_HOST) return NULL;
  bool is_named = what->space == WEIR_COLLECTIVE_SPACE_NAME;
  if (!is_named && weir_hub_is_shared(ctx->step->hub)) return NULL;
  if (!weir_collective_can_there(what)) return NULL;
  weir_status_t* status = weir_nccl_check();
  *out_is_there = !status;
  if (what->way == WEIR_COLLECTIVE_BY_NCCL) return status;
  weir_status_destroy(status);
  return NULL;
}

void weir_member_start(weir_kernel_ctx_t* ctx, weir_collective_t* what, weir_tensor_t* tensor,
                       weir_member_finish_fn_t finish, weir_done_t done) {
  weir_step_t* step = ctx->step;
  if (!step->hub) {
    weir_done_call(done, WEIR_STATUS(INTERNAL,
                                     "Failed to get CollectiveExecutor from OpKernelContext for "
                                     "Op %s",
                                     ctx->node->name));
    return;
  }
  what->device = ctx->device->name;
  what->incarnation = ctx->device->incarnation;
  what->step_id = step->id;
  what->scope = step->scope;
  what->iteration = ctx->iteration;
  bool is_there = false;
  weir_status_t* status = choose_way(ctx, what, &is_there);
  if (!status && !is_there && !weir_device_is_host(ctx->device)) {
    weir_member_start_staged(ctx, what, tensor, finish, done);
    return;
  }
  // What was read of a reference variable is what it is now, however long the others take.
  weir_tensor_t* own = weir_tensor_retain(tensor);
  if (!status && own) status = weir_tensor_freeze(&own);
  entry_t* entry = status ? NULL : weir_malloc(sizeof(*entry));
  if (!entry) {
    weir_tensor_release(own);
    weir_done_call(done, status ? status : weir_out_of_memory());
    return;
  }
  what->place = is_there ? ctx->device : NULL;
  *entry = (entry_t){.ctx = ctx, .what = *what, .finish = finish, .done = done};
  entry->what.device = NULL;
  entry->what.dims = NULL;
  weir_hub_caller_t caller = {
      .cancel = step->cancel, .pool = step->inter_pool, .done = met, .arg = entry};
  if (is_there) {
    caller.span = weir_span_current();
    weir_hub_join(step->hub, what, own, &caller);
  } else {
    weir_hub_enter(step->hub, what, own, &caller);
  }
  weir_tensor_release(own);
}

void weir_member_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  weir_collective_t what = *(const weir_collective_t*)ctx->state;
  weir_member_start(ctx, &what, ctx->inputs[0].tensor, NULL, done);
}

void weir_member_keyed_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  weir_collective_t what = *(const weir_collective_t*)ctx->state;
  weir_status_t* status = weir_member_keys(ctx, 1, &what);
  if (status) weir_done_call(done, status);
  else weir_member_start(ctx, &what, ctx->inputs[0].tensor, NULL, done);
}

// device_copy.c — _CopyToHost, _CopyToDevice and _CopyFromPeer: what the runtime puts on edges
// between memories.
#include "op/kernel.h"
#include "op/shape_ctx.h"

// ---- a tensor ----

static void on_copied(void* arg, weir_status_t* take_status) {
  weir_done_t* done = arg;
  weir_done_t copy = *done;
  weir_free(done);
  weir_done_call(copy, take_status);
}

// In which memory the output goes, the kernel's row says.
static weir_status_t* make_output(weir_kernel_ctx_t* ctx, const weir_tensor_t* x,
                                  weir_tensor_t** out_y) {
  if (!ctx->kernel->host_outputs) return weir_kernel_output(ctx, 0, x->rank, x->dims, out_y);
  WEIR_TRY(weir_device_host_tensor(ctx->device, weir_tensor_type(x), x->rank, x->dims, out_y));
  weir_kernel_set(ctx, 0, *out_y);
  return NULL;
}

static void copy_plain(weir_kernel_ctx_t* ctx, weir_done_t done) {
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  weir_tensor_t* y = NULL;
  weir_done_t* kept = weir_malloc(sizeof(*kept));
  weir_status_t* status = kept ? NULL : weir_out_of_memory();
  if (!status) status = make_output(ctx, x, &y);
  if (status) {
    weir_free(kept);
    weir_done_call(done, status);
    return;
  }
  *kept = done;
  weir_device_copy(ctx->device, x, y, on_copied, kept);
}

// ---- what variants hold ----

typedef struct pair_t {
  weir_tensor_t *from, *to;  // retained
} pair_t;

typedef struct held_t {
  weir_allocator_t* allocator;  // of where the tensors go
  pair_t* pairs;
  size_t count;
  size_t capacity;
  weir_done_t done;
  weir_mutex_t mu;
  size_t left;            // copies under way; guarded by mu, as what follows
  weir_status_t* status;  // of the first that failed
} held_t;

static void held_free(held_t* held) {
  for (size_t i = 0; i < held->count; ++i) {
    weir_tensor_release(held->pairs[i].from);
    weir_tensor_release(held->pairs[i].to);
  }
  weir_free(held->pairs);
  weir_mutex_destroy(&held->mu);
  weir_free(held);
}

static weir_status_t* add_pair(held_t* held, weir_tensor_t* from, weir_tensor_t** out_to) {
  if (!WEIR_GROW(held->pairs, held->capacity, held->count + 1)) return weir_out_of_memory();
  WEIR_TRY(weir_tensor_create_in(held->allocator, weir_tensor_type(from), from->rank, from->dims,
                                 out_to));
  held->pairs[held->count++] =
      (pair_t){.from = weir_tensor_retain(from), .to = weir_tensor_retain(*out_to)};
  return NULL;
}

// Notes what is to be copied; the copies begin when all are known.
static weir_status_t* place_held(void* arg, weir_tensor_t* tensor, weir_tensor_t** out_tensor) {
  held_t* held = arg;
  weir_dtype_t dtype = weir_tensor_type(tensor);
  if (dtype == WEIR_DTYPE_VARIANT)
    return weir_variants_map(tensor, (weir_tensor_map_t){place_held, held}, out_tensor);
  weir_tensor_t* newest = weir_tensor_retain(tensor);
  weir_status_t* status = weir_tensor_renew(&newest);
  bool stays = !weir_dtype_is_plain(dtype) || weir_tensor_space(newest) == held->allocator->space;
  if (!status && stays) *out_tensor = weir_tensor_retain(newest);
  if (!status && !stays) status = add_pair(held, newest, out_tensor);
  weir_tensor_release(newest);
  return status;
}

static void on_held_copied(void* arg, weir_status_t* take_status) {
  held_t* held = arg;
  weir_mutex_lock(&held->mu);
  if (!held->status) held->status = take_status;
  else weir_status_destroy(take_status);
  bool is_last = --held->left == 0;
  weir_mutex_unlock(&held->mu);
  if (!is_last) return;
  weir_done_t done = held->done;
  weir_status_t* status = held->status;
  held_free(held);
  weir_done_call(done, status);
}

static void copy_held(weir_kernel_ctx_t* ctx, weir_done_t done) {
  held_t* held = weir_calloc(1, sizeof(*held));
  weir_tensor_t* y = NULL;
  if (!held) {
    weir_done_call(done, weir_out_of_memory());
    return;
  }
  bool is_to_host = ctx->kernel->host_outputs != NULL;
  weir_memory_t memory = is_to_host ? WEIR_MEMORY_HOST : WEIR_MEMORY_DEVICE;
  held->allocator = weir_device_allocator(ctx->device, memory);
  held->done = done;
  weir_mutex_init(&held->mu);
  weir_status_t* status =
      weir_variants_map(weir_kernel_input(ctx, 0), (weir_tensor_map_t){place_held, held}, &y);
  if (!status) weir_kernel_set(ctx, 0, y);
  // One more than there are copies, so that nothing is over before all have begun.
  size_t count = status ? 0 : held->count;
  weir_device_t* device = ctx->device;
  held->left = count + 1;
  for (size_t i = 0; i < count; ++i)
    weir_device_copy(device, held->pairs[i].from, held->pairs[i].to, on_held_copied, held);
  on_held_copied(held, status);
}

static void copy(weir_kernel_ctx_t* ctx, weir_done_t done) {
  bool is_variant = weir_kernel_input(ctx, 0)->dtype == WEIR_DTYPE_VARIANT;
  (is_variant ? copy_held : copy_plain)(ctx, done);
}

const weir_op_module_t weir_ops_control_device_copy = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "_CopyToHost",
         .attrs = "T: type",
         .inputs = "x: T",
         .outputs = "y: T",
         .summary = "Copies from the memory of its device to the host's.",
         .infer_shape = weir_shape_fn_unchanged,
         .kernels = WEIR_PORTABLE_KERNEL(.has_device_int32 = true, .compute_async = copy,
                                         .host_outputs = "y")},
        {.name = "_CopyToDevice",
         .attrs = "T: type",
         .inputs = "x: T",
         .outputs = "y: T",
         .summary = "Copies from the host's memory to that of its device.",
         .infer_shape = weir_shape_fn_unchanged,
         .kernels = WEIR_PORTABLE_KERNEL(.has_device_int32 = true, .compute_async = copy,
                                         .host_inputs = "x")},
        {.name = "_CopyFromPeer",
         .attrs = "T: type",
         .inputs = "x: T",
         .outputs = "y: T",
         .summary = "Copies from the memory of another device to that of its own.",
         .infer_shape = weir_shape_fn_unchanged,
         .kernels = WEIR_PORTABLE_KERNEL(.has_device_int32 = true, .compute_async = copy)},
        {0}}};

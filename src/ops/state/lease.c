// lease.c — _Lease: one of several holders at a time, until its lease runs out by the clock of this
// process.
#include "op/shape_ctx.h"
#include "op/shared_handle.h"
#include "tensor/tensor.h"

enum { MAX_NAME = 255 };
static const double kMostSeconds = 1e9;

typedef struct lease_t {
  weir_resource_t base;
  weir_mutex_t mu;
  char holder[MAX_NAME];  // guarded by mu, as what follows
  size_t size;            // of |holder|; 0: nobody
  int64_t end_ns;         // by weir_clock_ns
} lease_t;

static void lease_destroy(weir_resource_t* resource) {
  lease_t* lease = (lease_t*)resource;
  weir_mutex_destroy(&lease->mu);
  weir_free(lease);
}

static const weir_resource_type_t lease_type = {.name = "N4weir5LeaseE", .destroy = lease_destroy};

static weir_status_t* lease_create(void* arg, weir_resource_t** out_resource) {
  (void)arg;
  lease_t* lease = weir_calloc(1, sizeof(*lease));
  if (!lease) return weir_out_of_memory();
  weir_resource_init(&lease->base, &lease_type);
  weir_mutex_init(&lease->mu);
  *out_resource = &lease->base;
  return NULL;
}

static weir_status_t* lease_init(const weir_kernel_init_t* init, void* state) {
  return weir_shared_handle_init_names(init, state);
}

static void lease_deinit(void* state) { weir_shared_handle_deinit(state); }

static bool is_held_by(const lease_t* lease, weir_view_t holder) {
  return lease->size == holder.size && memcmp(lease->holder, holder.data, holder.size) == 0;
}

// With 0 |seconds| it is given back.
static void ask(lease_t* lease, weir_view_t holder, double seconds) {
  const int64_t now = weir_clock_ns();
  if (lease->size && now >= lease->end_ns) lease->size = 0;
  if (lease->size && !is_held_by(lease, holder)) return;
  lease->size = seconds > 0 ? holder.size : 0;
  memcpy(lease->holder, holder.data, lease->size);
  lease->end_ns = now + (int64_t)(seconds * 1e9);
}

static weir_status_t* read_inputs(weir_kernel_ctx_t* ctx, weir_view_t* out_holder,
                                  double* out_seconds) {
  const weir_tensor_t *holder = weir_kernel_input(ctx, 0), *seconds = weir_kernel_input(ctx, 1);
  if (holder->rank || seconds->rank)
    return WEIR_STATUS(INVALID_ARGUMENT, "holder and seconds must be scalars, got ranks %d and %d",
                       holder->rank, seconds->rank);
  out_holder->data = weir_tensor_string(holder, 0, &out_holder->size);
  *out_seconds = (double)*WEIR_TENSOR_DATA(seconds, const float);
  if (out_holder->size == 0 || out_holder->size > MAX_NAME)
    return WEIR_STATUS(INVALID_ARGUMENT, "holder must have from 1 to %d bytes, has %zu", MAX_NAME,
                       out_holder->size);
  if (*out_seconds >= 0 && *out_seconds <= kMostSeconds) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "seconds must be from 0 to %g, got %g", kMostSeconds,
                     *out_seconds);
}

static weir_status_t* lease_cpu(weir_kernel_ctx_t* ctx) {
  weir_resource_t* resource = NULL;
  weir_tensor_t* out = NULL;
  weir_view_t holder;
  double seconds = 0;
  WEIR_TRY(read_inputs(ctx, &holder, &seconds));
  WEIR_TRY(weir_kernel_output(ctx, 0, 0, NULL, &out));
  WEIR_TRY(weir_shared_handle_create(ctx, ctx->state, &lease_type, lease_create, NULL, &resource));
  lease_t* lease = (lease_t*)resource;
  weir_mutex_lock(&lease->mu);
  ask(lease, holder, seconds);
  *WEIR_TENSOR_DATA(out, bool) = is_held_by(lease, holder);
  weir_mutex_unlock(&lease->mu);
  weir_resource_release(resource);
  return NULL;
}

static weir_status_t* lease_shape(weir_shape_ctx_t* ctx) {
  for (int i = 0; i < 2; ++i)
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), 0, NULL));
  return weir_shape_set_scalar(ctx, 0);
}

const weir_op_module_t weir_ops_state_lease = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "_Lease",
         .summary = "Whether a holder has a lease, which it asks for, or for more of it",
         .attrs = "container: string = ''; shared_name: string = ''",
         .inputs = "holder: string; seconds: float",
         .outputs = "is_held: bool",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT,
         .infer_shape = lease_shape,
         .kernels =
             WEIR_CPU_KERNEL(.compute = lease_cpu, .init = lease_init, .deinit = lease_deinit,
                             .state_size = sizeof(weir_shared_handle_t))},
        {0}}};

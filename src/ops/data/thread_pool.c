// thread_pool.c — ThreadPoolHandle, ThreadPoolDataset: the same elements. Threads of their own are
// what TensorFlow's datasets have them for; here the walk's are taken.
#include "op/shared_handle.h"
#include "ops/data/state.h"

static void pool_destroy(weir_resource_t* resource) { weir_free(resource); }

static const weir_resource_type_t pool_type = {.name = "tensorflow::data::ThreadPoolResource",
                                               .destroy = pool_destroy};

static weir_status_t* pool_create(void* arg, weir_resource_t** out_resource) {
  (void)arg;
  weir_resource_t* self = weir_calloc(1, sizeof(*self));
  if (!self) return weir_out_of_memory();
  weir_resource_init(self, &pool_type);
  *out_resource = self;
  return NULL;
}

static weir_status_t* handle_init(const weir_kernel_init_t* init, void* state) {
  return weir_shared_handle_init(init, "N10tensorflow4data12_GLOBAL__N_118ThreadPoolResourceE",
                                 state);
}

static void handle_deinit(void* state) { weir_shared_handle_deinit(state); }

static weir_status_t* handle_cpu(weir_kernel_ctx_t* ctx) {
  weir_resource_t* pool = NULL;
  WEIR_TRY(weir_shared_handle_create(ctx, ctx->state, &pool_type, pool_create, NULL, &pool));
  weir_resource_release(pool);
  weir_shared_handle_set(ctx, ctx->state);
  return NULL;
}

static const weir_iterator_vtable_t same_iterator = {.size = sizeof(weir_iterator_t),
                                                     .start = weir_iterator_start_input,
                                                     .next = weir_iterator_next_input,
                                                     .state = weir_state_inputs,
                                                     .may_resume = true};
static const weir_dataset_vtable_t same_dataset = {.name = "ThreadPool",
                                                   .size = sizeof(weir_data_t),
                                                   .init = weir_dataset_init_like_input,
                                                   .iterator = &same_iterator};

static weir_status_t* dataset_cpu(weir_kernel_ctx_t* ctx) {
  weir_resource_t* pool = NULL;
  WEIR_TRY(weir_kernel_resource(ctx, 1, &pool_type, &pool));
  weir_resource_release(pool);
  return weir_dataset_output(ctx, &same_dataset);
}

const weir_op_module_t weir_ops_data_thread_pool = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ThreadPoolHandle",
         .attrs = "num_threads: int; max_intra_op_parallelism: int = 1; display_name: string; "
                  "container: string = ''; shared_name: string = ''",
         .outputs = "handle: resource",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "Names threads for a pipeline",
         .infer_shape = weir_shape_fn_scalar,
         .kernels =
             WEIR_CPU_KERNEL(.compute = handle_cpu, .init = handle_init, .deinit = handle_deinit,
                             .state_size = sizeof(weir_shared_handle_t))},
        {.name = "ThreadPoolDataset",
         .attrs = WEIR_DATASET_SPEC,
         .inputs = "input_dataset: variant; thread_pool: resource",
         .outputs = "handle: variant",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "The same elements; made by named threads elsewhere, not here",
         .infer_shape = weir_dataset_shape,
         .kernels = WEIR_DATASET_KERNEL(dataset_cpu)},
        {0}}};

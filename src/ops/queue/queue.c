// queue.c — The ops that name a queue: FIFOQueue, PaddingFIFOQueue, RandomShuffleQueue,
// PriorityQueue, old and V2.
#include "op/shape_ctx.h"
#include "ops/queue/queue_resource.h"

typedef struct queue_state_t {
  weir_shared_handle_t handle;
  weir_queue_config_t config;
  weir_dtype_t* types;          // owned, config points to it
  const weir_shape_t** shapes;  // owned array of the node's shapes
} queue_state_t;

static weir_status_t* check_random(const weir_queue_config_t* config) {
  if (config->min_after_dequeue < 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "min_after_dequeue %lld must be >= 0",
                       (long long)config->min_after_dequeue);
  }
  if (config->capacity >= 0 && config->min_after_dequeue >= config->capacity) {
    return WEIR_STATUS(INVALID_ARGUMENT, "min_after_dequeue %lld must be < capacity %lld",
                       (long long)config->min_after_dequeue, (long long)config->capacity);
  }
  return NULL;
}

static weir_status_t* component_shape(weir_queue_policy_t policy, const weir_shape_t* attr,
                                      const weir_shape_t** out_shape) {
  if (policy != WEIR_QUEUE_PADDING) return weir_component_shape(attr, out_shape);
  if (attr->rank < 0) return WEIR_STATUS(INVALID_ARGUMENT, "shape <unknown> must have known rank.");
  *out_shape = attr;
  return NULL;
}

// Types and shapes of the components; a priority queue has the priority before those it is given.
static weir_status_t* init_components(queue_state_t* s, weir_attrs_t attrs) {
  const weir_attr_t* types = weir_attrs_list(attrs, "component_types");
  const weir_attr_t* shapes = weir_attrs_list(attrs, "shapes");
  const size_t extra = s->config.policy == WEIR_QUEUE_PRIORITY ? 1 : 0;
  if (shapes->count > 0 && shapes->count != types->count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Shapes and types must have same length. Types: %zu, shapes: %zu",
                       types->count, shapes->count);
  }
  s->types = weir_alloc_array(types->count + extra, sizeof(*s->types));
  s->shapes = weir_alloc_array(types->count + extra, sizeof(*s->shapes));
  if (!s->types || !s->shapes) return weir_out_of_memory();
  s->types[0] = WEIR_DTYPE_INT64;
  s->shapes[0] = &weir_shape_scalar;
  for (size_t i = 0; i < types->count; ++i) {
    s->types[i + extra] = types->u.types[i];
    s->shapes[i + extra] = &weir_shape_unknown;
    if (shapes->count > 0)
      WEIR_TRY(component_shape(s->config.policy, shapes->u.shapes[i], &s->shapes[i + extra]));
  }
  s->config.component_count = (int)(types->count + extra);
  s->config.types = s->types;
  s->config.shapes = shapes->count > 0 || types->count == 0 ? s->shapes : NULL;
  return NULL;
}

static weir_status_t* queue_init(const weir_kernel_init_t* init, void* state,
                                 weir_queue_policy_t policy) {
  queue_state_t* s = state;
  weir_attrs_t attrs = init->node->attrs;
  s->config.policy = policy;
  s->config.capacity = weir_attrs_int(attrs, "capacity");
  if (policy == WEIR_QUEUE_SHUFFLE) {
    s->config.min_after_dequeue = weir_attrs_int(attrs, "min_after_dequeue");
    s->config.seed = weir_attrs_int(attrs, "seed");
    s->config.seed2 = weir_attrs_int(attrs, "seed2");
    WEIR_TRY(check_random(&s->config));
  }
  WEIR_TRY(init_components(s, attrs));
  if (policy == WEIR_QUEUE_PADDING && !s->config.shapes) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Shapes must be provided for all components, but received %zu dtypes and 0 "
                       "shapes.",
                       (size_t)s->config.component_count);
  }
  WEIR_TRY(weir_shared_handle_init(init, WEIR_QUEUE_TYPE_NAME, &s->handle));
  s->config.name = s->handle.name;
  return NULL;
}

static weir_status_t* fifo_init(const weir_kernel_init_t* init, void* state) {
  return queue_init(init, state, WEIR_QUEUE_FIFO);
}
static weir_status_t* padding_init(const weir_kernel_init_t* init, void* state) {
  return queue_init(init, state, WEIR_QUEUE_PADDING);
}
static weir_status_t* shuffle_init(const weir_kernel_init_t* init, void* state) {
  return queue_init(init, state, WEIR_QUEUE_SHUFFLE);
}
static weir_status_t* priority_init(const weir_kernel_init_t* init, void* state) {
  return queue_init(init, state, WEIR_QUEUE_PRIORITY);
}

static void queue_deinit(void* state) {
  queue_state_t* s = state;
  weir_shared_handle_deinit(&s->handle);
  weir_free(s->types);
  weir_free(s->shapes);
}

static weir_status_t* make_queue(void* arg, weir_resource_t** out_resource) {
  weir_queue_t* queue = NULL;
  WEIR_TRY(weir_queue_create(arg, &queue));
  *out_resource = (weir_resource_t*)queue;
  return NULL;
}

static weir_status_t* queue_cpu(weir_kernel_ctx_t* ctx) {
  queue_state_t* s = ctx->state;
  weir_resource_t* queue = NULL;
  WEIR_TRY(
      weir_shared_handle_create(ctx, &s->handle, &weir_queue_type, make_queue, &s->config, &queue));
  weir_status_t* status = weir_queue_matches((weir_queue_t*)queue, &s->config);
  if (!status) weir_shared_handle_set(ctx, &s->handle);
  weir_resource_release(queue);
  return status;
}

// A handle says what a queue of one component holds; there is no room for more.
static weir_status_t* queue_shape(weir_shape_ctx_t* ctx) {
  const weir_attr_t* types = weir_attrs_list(weir_shape_attrs(ctx), "component_types");
  const weir_attr_t* shapes = weir_attrs_list(weir_shape_attrs(ctx), "shapes");
  WEIR_TRY(weir_shared_handle_shape(ctx));
  if (weir_dtype_is_ref(ctx->node->output_types[0]) || types->count != 1 || shapes->count != 1)
    return NULL;
  return weir_shape_set_handle(ctx, 0, types->u.types[0], shapes->u.shapes[0]);
}

static weir_status_t* priority_shape(weir_shape_ctx_t* ctx) {
  return weir_shared_handle_shape(ctx);
}

#define COMPONENTS \
  "component_types: list(type) >= 1; shapes: list(shape) >= 0 = []; capacity: int = -1; "
#define SHUFFLE "min_after_dequeue: int = 0; seed: int = 0; seed2: int = 0; "
#define PRIORITY \
  "component_types: list(type) >= 0 = []; shapes: list(shape) >= 0; capacity: int = -1; "
#define NAMES "container: string = ''; shared_name: string = ''"
#define QUEUE_OP(op, text, specs, out, init_fn, shape_fn)                            \
  {                                                                                  \
    .name = op, .summary = text, .attrs = specs NAMES, .outputs = "handle: " out,    \
    .flags = WEIR_OP_STATEFUL | WEIR_OP_CHEAP, .infer_shape = shape_fn,              \
    .kernels = (const weir_kernel_def_t[]) {                                         \
      {WEIR_DEVICE_CPU, .compute = queue_cpu,   .state_size = sizeof(queue_state_t), \
       .init = init_fn, .deinit = queue_deinit, .host_outputs = "handle"},           \
      {                                                                              \
        0                                                                            \
      }                                                                              \
    }                                                                                \
  }

const weir_op_module_t weir_ops_queue_queue = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        QUEUE_OP("FIFOQueue", "A queue that gives tuples in the order in which they came",
                 COMPONENTS, "Ref(string)", fifo_init, queue_shape),
        QUEUE_OP("FIFOQueueV2", "A queue that gives tuples in the order in which they came",
                 COMPONENTS, "resource", fifo_init, queue_shape),
        QUEUE_OP("PaddingFIFOQueue",
                 "A FIFO queue of tensors that may differ in size: batches are padded", COMPONENTS,
                 "Ref(string)", padding_init, queue_shape),
        QUEUE_OP("PaddingFIFOQueueV2",
                 "A FIFO queue of tensors that may differ in size: batches are padded", COMPONENTS,
                 "resource", padding_init, queue_shape),
        QUEUE_OP("RandomShuffleQueue",
                 "A queue that gives tuples at random, leaving some for the next choice",
                 COMPONENTS SHUFFLE, "Ref(string)", shuffle_init, queue_shape),
        QUEUE_OP("RandomShuffleQueueV2",
                 "A queue that gives tuples at random, leaving some for the next choice",
                 COMPONENTS SHUFFLE, "resource", shuffle_init, queue_shape),
        QUEUE_OP("PriorityQueue", "A queue that gives the tuple with the smallest first component",
                 PRIORITY, "Ref(string)", priority_init, priority_shape),
        QUEUE_OP("PriorityQueueV2",
                 "A queue that gives the tuple with the smallest first component", PRIORITY,
                 "resource", priority_init, priority_shape),
        {0}}};

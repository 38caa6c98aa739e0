// queue_resource.h — Queues of tuples of tensors: waiting, closing and batching, over a storage
// policy. Thread-safe.
#ifndef WEIR_OPS_QUEUE_QUEUE_RESOURCE_H_
#define WEIR_OPS_QUEUE_QUEUE_RESOURCE_H_

#include "op/shared_handle.h"
#include "ops/queue/waiter.h"

typedef enum weir_queue_policy_t {
  WEIR_QUEUE_FIFO,
  WEIR_QUEUE_PADDING,  // first in, first out; batches pad components of differing shapes with zeros
  WEIR_QUEUE_SHUFFLE,  // any one, at random
  WEIR_QUEUE_PRIORITY,  // the smallest component 0, an int64 scalar
} weir_queue_policy_t;

// What a queue is made of. Borrowed for weir_queue_create.
typedef struct weir_queue_config_t {
  weir_queue_policy_t policy;
  const char* name;  // for messages
  int component_count;
  const weir_dtype_t* types;          // one a component
  const weir_shape_t* const* shapes;  // one a component, or NULL: any
  int64_t capacity;                   // negative: no limit
  int64_t min_after_dequeue;          // SHUFFLE
  int64_t seed, seed2;                // SHUFFLE
} weir_queue_config_t;

// What the tuples of a queue or a barrier are made of.
typedef struct weir_components_t {
  int count;
  const weir_dtype_t* types;
  const weir_shape_t* const* shapes;  // NULL: any
} weir_components_t;
// The shape of a component that must be known: one whose rank is not is a scalar, as TensorFlow
// reads the attribute. INVALID_ARGUMENT when a dimension is unknown.
WEIR_MUST_USE weir_status_t* weir_component_shape(const weir_shape_t* attr,
                                                  const weir_shape_t** out_shape);
// Whether two ops of one name ask for the same. INVALID_ARGUMENT "Shared queue 'q' has component
// types …". |is_partial|: dimensions that are not known match any.
WEIR_MUST_USE weir_status_t* weir_components_match(const char* what, const char* name,
                                                   const weir_components_t* has,
                                                   const weir_components_t* wanted,
                                                   bool is_partial);

typedef struct weir_queue_t weir_queue_t;
extern const weir_resource_type_t weir_queue_type;
#define WEIR_QUEUE_TYPE_NAME "N10tensorflow14QueueInterfaceE"

WEIR_MUST_USE weir_status_t* weir_queue_create(const weir_queue_config_t* config,
                                               weir_queue_t** out_queue);
// Whether an op that finds |queue| under its name may use it. INVALID_ARGUMENT "Shared queue 'q'
// has capacity …".
WEIR_MUST_USE weir_status_t* weir_queue_matches(weir_queue_t* queue,
                                                const weir_queue_config_t* config);
int64_t weir_queue_size(weir_queue_t* queue);
bool weir_queue_is_closed(weir_queue_t* queue);

// Asynchronous kernels' bodies: |done| is called once. Components are inputs [first, first + count)
// of |ctx|.
void weir_queue_enqueue(weir_queue_t* queue, weir_kernel_ctx_t* ctx, int first, bool is_many,
                        weir_done_t done);
// |count| < 0: one tuple, not batched. |is_up_to|: fewer will do once the queue is closed.
void weir_queue_dequeue(weir_queue_t* queue, weir_kernel_ctx_t* ctx, int64_t count, bool is_up_to,
                        weir_done_t done);
void weir_queue_close(weir_queue_t* queue, weir_kernel_ctx_t* ctx, bool cancels_pending,
                      weir_done_t done);

// ---- for resources made of queues (barriers) ----
// The caller answers |completed| when it holds no lock.
// Puts a tuple in at once, whatever the capacity; consumes the references in |take_parts|, also on
// failure.
WEIR_MUST_USE weir_status_t* weir_queue_put(weir_queue_t* queue, weir_tensor_t** take_parts,
                                            weir_waiters_t* completed);
// Closes and fails whoever waits for room or for more than there is.
void weir_queue_shut(weir_queue_t* queue, weir_waiters_t* completed);

#endif  // WEIR_OPS_QUEUE_QUEUE_RESOURCE_H_

// queue_items.h — What a queue holds: tuples in the order that its policy gives them. Guarded by
// the queue's mutex.
#ifndef WEIR_OPS_QUEUE_QUEUE_ITEMS_H_
#define WEIR_OPS_QUEUE_QUEUE_ITEMS_H_

#include "base/philox.h"
#include "ops/queue/queue_resource.h"

// A tuple.
typedef struct weir_queue_item_t {
  int64_t priority;       // PRIORITY: component 0
  uint64_t sequence;      // order of arrival, for equal priorities
  weir_tensor_t** parts;  // one a component; one allocation
} weir_queue_item_t;
void weir_queue_item_free(weir_queue_item_t* item, int component_count);

typedef struct weir_queue_items_t {
  weir_queue_policy_t policy;
  weir_queue_item_t* items;  // FIFO, PADDING: a ring from |first|; SHUFFLE: a set; PRIORITY: a heap
  size_t capacity;           // allocated
  size_t first;
  size_t size;
  uint64_t next_sequence;
  weir_philox_t random;  // SHUFFLE, with the words of its last group not yet used
  uint32_t random_words[4];
  int random_used;
} weir_queue_items_t;

// |seed| and |seed2| order a SHUFFLE.
void weir_queue_items_init(weir_queue_items_t* items, weir_queue_policy_t policy, int64_t seed,
                           int64_t seed2);
void weir_queue_items_free(weir_queue_items_t* items, int component_count);
// Makes room for |extra| more; false when out of memory.
bool weir_queue_items_reserve(weir_queue_items_t* items, size_t extra);
// Puts an item in; false, with nothing changed, when out of memory.
bool weir_queue_items_push(weir_queue_items_t* items, weir_queue_item_t item);
// Gives an item back to where it came from; there is room.
void weir_queue_items_push_front(weir_queue_items_t* items, weir_queue_item_t item);
// Takes the next one out; there is one.
weir_queue_item_t weir_queue_items_pop(weir_queue_items_t* items);

// Makes output |component| the batch of that component of |count| tuples. Parts have |shape|, or
// within it sizes of their own, which are padded.
WEIR_MUST_USE weir_status_t* weir_queue_items_batch(const weir_queue_item_t* items, size_t count,
                                                    int component, const weir_shape_t* shape,
                                                    bool is_padded, weir_kernel_ctx_t* ctx);

#endif  // WEIR_OPS_QUEUE_QUEUE_ITEMS_H_

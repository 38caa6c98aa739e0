// queue_items.c — What a queue holds: an array that the policy orders, and batches of it.
#include "ops/queue/queue_items.h"

void weir_queue_item_free(weir_queue_item_t* item, int component_count) {
  if (!item->parts) return;
  for (int i = 0; i < component_count; ++i) weir_tensor_release(item->parts[i]);
  weir_free(item->parts);
  item->parts = NULL;
}

void weir_queue_items_init(weir_queue_items_t* items, weir_queue_policy_t policy, int64_t seed,
                           int64_t seed2) {
  *items =
      (weir_queue_items_t){.policy = policy, .random_used = WEIR_COUNT_OF(items->random_words)};
  if (policy == WEIR_QUEUE_SHUFFLE) items->random = weir_philox_from_seeds(seed, seed2);
}

static bool is_ring(const weir_queue_items_t* items) {
  return items->policy == WEIR_QUEUE_FIFO || items->policy == WEIR_QUEUE_PADDING;
}

static size_t ring_at(const weir_queue_items_t* items, size_t i) {
  return (items->first + i) % items->capacity;
}

void weir_queue_items_free(weir_queue_items_t* items, int component_count) {
  for (size_t i = 0; i < items->size; ++i)
    weir_queue_item_free(&items->items[ring_at(items, i)], component_count);
  weir_free(items->items);
}

bool weir_queue_items_reserve(weir_queue_items_t* items, size_t extra) {
  if (items->size + extra <= items->capacity) return true;
  size_t capacity = WEIR_MAX(items->size + extra, items->capacity ? items->capacity * 2 : 16);
  weir_queue_item_t* all = weir_alloc_array(capacity, sizeof(*all));
  if (!all) return false;
  for (size_t i = 0; i < items->size; ++i) all[i] = items->items[ring_at(items, i)];
  weir_free(items->items);
  items->items = all;
  items->capacity = capacity;
  items->first = 0;
  return true;
}

// ---- the heap of priorities ----

static bool item_less(const weir_queue_item_t* a, const weir_queue_item_t* b) {
  return a->priority != b->priority ? a->priority < b->priority : a->sequence < b->sequence;
}

static void swap_items(weir_queue_item_t* a, weir_queue_item_t* b) {
  weir_queue_item_t item = *a;
  *a = *b;
  *b = item;
}

static void heap_up(weir_queue_item_t* items, size_t at) {
  while (at > 0 && item_less(&items[at], &items[(at - 1) / 2])) {
    swap_items(&items[at], &items[(at - 1) / 2]);
    at = (at - 1) / 2;
  }
}

static void heap_down(weir_queue_item_t* items, size_t size) {
  for (size_t at = 0;;) {
    size_t least = at;
    for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < size; ++child) {
      if (item_less(&items[child], &items[least])) least = child;
    }
    if (least == at) return;
    swap_items(&items[at], &items[least]);
    at = least;
  }
}

// ---- in and out ----

static void append(weir_queue_items_t* items, weir_queue_item_t item) {
  items->items[ring_at(items, items->size++)] = item;
  if (items->policy == WEIR_QUEUE_PRIORITY) heap_up(items->items, items->size - 1);
}

bool weir_queue_items_push(weir_queue_items_t* items, weir_queue_item_t item) {
  if (!weir_queue_items_reserve(items, 1)) return false;
  if (items->policy == WEIR_QUEUE_PRIORITY)
    item.priority = WEIR_TENSOR_DATA(item.parts[0], int64_t)[0];
  item.sequence = items->next_sequence++;
  append(items, item);
  return true;
}

void weir_queue_items_push_front(weir_queue_items_t* items, weir_queue_item_t item) {
  if (!is_ring(items)) {
    append(items, item);
    return;
  }
  items->first = ring_at(items, items->capacity - 1);
  items->items[items->first] = item;
  ++items->size;
}

static uint32_t random_word(weir_queue_items_t* items) {
  if (items->random_used == WEIR_COUNT_OF(items->random_words)) {
    weir_philox_next(&items->random, items->random_words);
    items->random_used = 0;
  }
  return items->random_words[items->random_used++];
}

weir_queue_item_t weir_queue_items_pop(weir_queue_items_t* items) {
  weir_queue_item_t* all = items->items;
  if (is_ring(items)) {
    weir_queue_item_t item = all[items->first];
    items->first = ring_at(items, 1);
    --items->size;
    return item;
  }
  size_t at = items->policy == WEIR_QUEUE_SHUFFLE ? random_word(items) % items->size : 0;
  weir_queue_item_t item = all[at];
  all[at] = all[--items->size];
  if (items->policy == WEIR_QUEUE_PRIORITY) heap_down(all, items->size);
  return item;
}

// ---- batches ----

// As wide as the widest part along each axis; what |shape| says where there is none.
static void batch_dims(const weir_queue_item_t* items, size_t count, int component,
                       const weir_shape_t* shape, int64_t* dims) {
  dims[0] = (int64_t)count;
  for (int k = 0; k < shape->rank; ++k) dims[k + 1] = count ? 0 : WEIR_MAX(shape->dims[k], 0);
  for (size_t i = 0; i < count; ++i) {
    const weir_tensor_t* part = items[i].parts[component];
    for (int k = 0; k < shape->rank; ++k) dims[k + 1] = WEIR_MAX(dims[k + 1], part->dims[k]);
  }
}

// Copies |part| into the corner of a block of |dims|.
static weir_status_t* copy_padded(const weir_tensor_t* part, const int64_t* dims, char* dst) {
  const int64_t size = (int64_t)weir_dtype_size(weir_tensor_type(part));
  const int64_t row = part->rank ? part->dims[part->rank - 1] : 1;
  int64_t at[WEIR_MAX_RANK] = {0};
  for (int64_t done = 0; done < part->count; done += row) {
    int64_t offset = 0;
    for (int k = 0; k < part->rank; ++k) offset = offset * dims[k] + at[k];
    WEIR_TRY(weir_elements_copy(weir_tensor_type(part), dst + offset * size,
                                (const char*)part->data + done * size, row));
    for (int k = part->rank - 2; k >= 0 && ++at[k] == part->dims[k]; --k) at[k] = 0;
  }
  return NULL;
}

weir_status_t* weir_queue_items_batch(const weir_queue_item_t* items, size_t count, int component,
                                      const weir_shape_t* shape, bool is_padded,
                                      weir_kernel_ctx_t* ctx) {
  int64_t dims[WEIR_MAX_RANK + 1];
  weir_tensor_t* out = NULL;
  batch_dims(items, count, component, shape, dims);
  WEIR_TRY(weir_kernel_output(ctx, component, shape->rank + 1, dims, &out));
  if (out->count == 0) return NULL;
  const weir_dtype_t dtype = weir_tensor_type(out);
  if (is_padded && weir_dtype_is_plain(dtype)) memset(out->data, 0, weir_tensor_byte_size(out));
  const int64_t stride = out->count / dims[0] * (int64_t)weir_dtype_size(dtype);
  for (size_t i = 0; i < count; ++i) {
    char* to = (char*)out->data + (int64_t)i * stride;
    WEIR_TRY(copy_padded(items[i].parts[component], dims + 1, to));
  }
  return NULL;
}

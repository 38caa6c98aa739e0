// map.h — A function on every element: what MapDataset, ParallelMapDataset and MapAndBatchDataset
// share.
#ifndef WEIR_OPS_DATA_MAP_H_
#define WEIR_OPS_DATA_MAP_H_

#include "ops/data/captured.h"

typedef struct weir_map_dataset_t {
  weir_data_t base;
  weir_captured_t function;
  int64_t parallel_calls;  // 0: one after the other
  bool keeps_cardinality;  // the function may not end the dataset
} weir_map_dataset_t;

// Reads what all have: input 0, the captured values after it, attribute preserve_cardinality.
WEIR_MUST_USE weir_status_t* weir_map_init(weir_kernel_ctx_t* ctx, weir_data_t* self);
void weir_map_deinit(weir_data_t* self);
int64_t weir_map_cardinality(const weir_data_t* self);
weir_status_t* weir_map_get(weir_data_t* self, const weir_walk_t* walk, int64_t index,
                            weir_tensor_t** out);
// What a call that ended with |take_status| means: OUT_OF_RANGE is the end, unless the function may
// not end the dataset.
WEIR_MUST_USE weir_status_t* weir_map_finish(const weir_data_t* self, weir_status_t* take_status,
                                             bool* out_is_end);
// Reads the number of calls side by side: -1 is as many as there are threads.
WEIR_MUST_USE weir_status_t* weir_map_parallel_calls(weir_kernel_ctx_t* ctx, int i,
                                                     int64_t* out_calls);

// Of ParallelMapDataset, for what is made of it. The dataset is a weir_map_dataset_t.
extern const weir_iterator_vtable_t weir_parallel_map_iterator, weir_map_iterator;
// Whether |dataset| maps, so that TensorFlow makes one dataset of it and a batch above it.
WEIR_INLINE bool weir_map_is_fusible(const weir_data_t* dataset) {
  const weir_iterator_vtable_t* iterator = dataset->vtable->iterator;
  return iterator == &weir_parallel_map_iterator || iterator == &weir_map_iterator;
}

#endif  // WEIR_OPS_DATA_MAP_H_

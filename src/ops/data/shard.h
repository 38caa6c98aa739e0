// shard.h — Shards that other datasets are made of.
#ifndef WEIR_OPS_DATA_SHARD_H_
#define WEIR_OPS_DATA_SHARD_H_

#include "ops/data/dataset.h"

// Every |count|-th element of |input|, from |index| on; every shard must have one. Owned.
WEIR_MUST_USE weir_status_t* weir_shard_create(weir_data_t* input, int64_t count, int64_t index,
                                               weir_data_t** out_dataset);
// Whether |dataset| is a shard of which nobody has said yet which.
bool weir_shard_is_hint(const weir_data_t* dataset);

#endif  // WEIR_OPS_DATA_SHARD_H_

// multi_device.h — An iterator whose elements are dealt to shards in turn, one a device.
// Thread-safe.
#ifndef WEIR_OPS_DATA_MULTI_DEVICE_H_
#define WEIR_OPS_DATA_MULTI_DEVICE_H_

#include "ops/data/iterator_resource.h"

typedef struct weir_multi_device_t weir_multi_device_t;
extern const weir_resource_type_t weir_multi_device_type;

typedef struct weir_multi_device_params_t {
  weir_element_spec_t spec;  // borrowed
  int shard_count;
} weir_multi_device_params_t;
WEIR_MUST_USE weir_status_t* weir_multi_device_create(const weir_multi_device_params_t* params,
                                                      weir_resource_t** out_resource);
// Whether an op that declares |spec| may use it. INVALID_ARGUMENT otherwise.
WEIR_MUST_USE weir_status_t* weir_multi_device_matches(weir_multi_device_t* self,
                                                       const weir_element_spec_t* spec);
// Walks over |dataset| from its start; up to |limit| elements a shard are made before they are
// asked for. Ends the walk before. *|out_incarnation| is what to ask for elements of this one with.
WEIR_MUST_USE weir_status_t* weir_multi_device_set(weir_multi_device_t* self,
                                                   const weir_kernel_ctx_t* ctx,
                                                   weir_data_t* dataset, int64_t limit,
                                                   int64_t* out_incarnation);
// The next element of a shard: |spec.count| owned references. Waits for it; CANCELLED with |cancel|
// or when the walk ends. INVALID_ARGUMENT for another incarnation.
WEIR_MUST_USE weir_status_t* weir_multi_device_next(weir_multi_device_t* self, int shard,
                                                    int64_t incarnation, weir_cancel_t* cancel,
                                                    weir_tensor_t** out, bool* out_is_end);
int weir_multi_device_width(const weir_multi_device_t* self);

#endif  // WEIR_OPS_DATA_MULTI_DEVICE_H_

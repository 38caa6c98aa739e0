// cache_file.h — CacheDataset with a file name: elements kept in files.
#ifndef WEIR_OPS_DATA_CACHE_FILE_H_
#define WEIR_OPS_DATA_CACHE_FILE_H_

#include "ops/data/dataset.h"

extern const weir_dataset_vtable_t weir_file_cache_dataset;

#endif  // WEIR_OPS_DATA_CACHE_FILE_H_

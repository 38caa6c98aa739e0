// catalog_internal.h — The structs behind catalog.h.
#ifndef WEIR_SERVING_CATALOG_INTERNAL_H_
#define WEIR_SERVING_CATALOG_INTERNAL_H_

#include "serving/catalog.h"

// A version that was seen. Written by the thread that looks, under the catalog's lock.
typedef struct weir_slot_t {
  int64_t number;
  char* path;
  weir_version_state_t state;
  weir_status_t* failure;   // why it does not serve; NULL: nothing is wrong
  weir_version_t* version;  // AVAILABLE
  bool is_present;          // it is in the folder
  uint64_t print;           // of its files when it failed
  int64_t retry_ns;         // when it is tried again all the same
} weir_slot_t;

typedef struct weir_served_model_t {
  char *name, *path;
  weir_slot_t* slots;  // newest first
  size_t slot_count, slot_capacity;
} weir_served_model_t;

typedef struct weir_label_t {
  char* model;  // NULL: the only one
  char* name;
  int64_t number;
} weir_label_t;

struct weir_catalog_t {
  weir_catalog_options_t options;
  weir_served_model_t* models;  // the list is fixed at start
  size_t model_count, model_capacity;
  weir_label_t* labels;
  size_t label_count, label_capacity;
  weir_mutex_t mu;   // guards slots
  weir_cond_t cond;  // |is_ending| was set
  bool is_ending;    // guarded by mu
  bool has_thread;
  pthread_t thread;
};

// Loads what is new in the model's folder, and lets go of what newer versions replace. On the
// thread that looks alone. The status is about the folder; what is wrong with versions is in the
// slots.
WEIR_MUST_USE weir_status_t* weir_served_model_refresh(weir_catalog_t* catalog,
                                                       weir_served_model_t* model);
// Runs what assets.extra has to warm the version up, or one run of zeros.
WEIR_MUST_USE weir_status_t* weir_version_warm_up(weir_version_t* version, const char* path,
                                                  bool with_zeros);

#endif  // WEIR_SERVING_CATALOG_INTERNAL_H_
